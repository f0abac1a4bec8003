//! The right router's end of the connection to the left router, which is under test.

use super::names::Args;
use super::{HOST, IndirectTcp, LEFT, RIGHT, accepted, entry, named, router_key};
use crate::transcript::Teller;
use indirect_tcp::message::{
    Body, Direction, Frame, FrameAuth, Frames, Halves, PORT, Side, SocketState, Verdict,
};
use node::{Addr, Input, StreamEvent};
use std::collections::VecDeque;

/// The right router's end of the connection to the left router.
pub(super) struct Right {
    channel: FrameAuth,
    opened: bool,
    nonce: [u8; 16],
    up: bool,
    frames: Frames,
    /// The highest handoff number in the received frames.
    handoff: u64,
    /// The left router's hello, until this end has sent its own.
    heard: VecDeque<Body>,
}

impl Right {
    fn new(opened: bool) -> Self {
        let mut frames = Frames::default();
        frames.trust();
        Self {
            channel: FrameAuth::new(router_key(false), opened),
            opened,
            nonce: [4; 16],
            up: false,
            frames,
            handoff: 0,
            heard: VecDeque::new(),
        }
    }

    /// Returns the right router's end of a connection that the left router opened.
    pub(super) fn called() -> Self {
        Self::new(false)
    }

    /// Receives bytes that the left router writes.
    pub(super) fn hears(&mut self, bytes: &[u8]) {
        self.frames.push(bytes);
        while let Some(bytes) = self.frames.next_frame().unwrap() {
            let frame = self.channel.open(&bytes).unwrap();
            if let (Body::Hello { nonce, .. }, false) = (&frame.body, self.up) {
                let (ours, theirs) = (self.nonce, *nonce);
                if self.opened {
                    self.channel.agreed([ours, theirs]);
                    self.up = true;
                } else {
                    self.heard.push_back(Body::Hello { router: LEFT, nonce: theirs });
                }
            } else {
                self.handoff = self.handoff.max(frame.handoff);
            }
        }
    }

    fn seal(&mut self, body: Body) -> Vec<u8> {
        let handoff =
            if matches!(body, Body::Hello { .. } | Body::Status { .. }) { 0 } else { self.handoff.max(1) };
        self.channel.seal(&Frame { handoff, body })
    }

    fn hello(&mut self) -> Vec<u8> {
        let nonce = self.nonce;
        let bytes = self.seal(Body::Hello { router: RIGHT, nonce });
        if let Some(Body::Hello { nonce: theirs, .. }) = self.heard.pop_front() {
            self.channel.agreed([theirs, nonce]);
            self.up = true;
        }
        bytes
    }
}

/// Runs a step of the right router: it `connects`, `accepts` with its hello, `says` a frame, or is `gone`.
pub(super) fn right(teller: &mut Teller<IndirectTcp>, what: &[&str]) {
    let bytes = match *what {
        ["connects"] => {
            teller.cast.right = Some(Right::new(true));
            accepted(teller, "right", Addr::new(RIGHT, 40_000));
            teller.cast.right.as_mut().unwrap().hello()
        }
        ["accepts"] => {
            let id = named(teller, "right");
            teller.give(Input::Stream(id, StreamEvent::Opened(Addr::new(LEFT, 40_000))));
            teller.give(Input::Stream(id, StreamEvent::Room(1 << 20)));
            teller.cast.right.as_mut().unwrap().hello()
        }
        ["gone"] => {
            let id = named(teller, "right");
            teller.cast.streams.remove(&id);
            return teller.give(Input::Stream(id, StreamEvent::Closed(None)));
        }
        ["says", ref words @ ..] => {
            let body = body(words);
            let forged = words.contains(&"forged");
            let mut bytes = teller.cast.right.as_mut().unwrap().seal(body);
            if let Some(last) = bytes.last_mut().filter(|_| forged) {
                *last ^= 1;
            }
            bytes
        }
        _ => panic!("no right {what:?}"),
    };
    let id = named(teller, "right");
    teller.give(Input::Stream(id, StreamEvent::Data(&bytes)));
}

fn body(words: &[&str]) -> Body {
    let args = Args::new(words);
    let verdict = || match args.get::<String>("verdict").as_deref() {
        None | Some("taken") => Verdict::Taken,
        Some("unknown") => Verdict::Unknown,
        Some("moved") => Verdict::Moved,
        _ => Verdict::Failed,
    };
    let state = |side| {
        let of = entry(RIGHT, 0);
        let tuple = if side == Side::Near { of.near() } else { of.far() };
        let mut tcp = super::names::established(tuple.local, tuple.remote);
        if args.has("finished") {
            (tcp.finishing, tcp.finished) = (true, true);
            tcp.unread.clear();
        }
        Body::State(Box::new(SocketState::new(side, tcp)))
    };
    let attempt = args.get("attempt").unwrap_or(1);
    let connection = entry(RIGHT, super::call(&args)).id;
    match words.first().copied().unwrap_or_default() {
        "offer" => {
            let sequence = super::sequence(&args, 5);
            Body::Offer { host: HOST, sequence, connections: 1 }
        }
        "offer-answer" => Body::OfferAnswer(verdict()),
        "entry" => Body::Entry(entry(RIGHT, super::call(&args)), attempt),
        "near" => state(Side::Near),
        "far" => state(Side::Far),
        "buffer" => Body::UserBuffer(Direction::Down, vec![7; args.get("bytes").unwrap_or(20)]),
        "commit" => Body::Commit { number: 1, attempt, halves: halves(&args) },
        "commit-answer" => Body::CommitAnswer { host: HOST, connection, attempt, verdict: verdict() },
        "status" => {
            let sequence = super::sequence(&args, 5);
            Body::Status { host: HOST, connection, attempt, sequence }
        }
        "abort" => Body::Abort { connection },
        "done" => Body::Done,
        "done-answer" => Body::DoneAnswer,
        word => panic!("no frame {word}"),
    }
}

/// Returns the halves of `halves=near`, `far` or `none`; both by default.
fn halves(args: &Args<'_>) -> Halves {
    match args.get::<String>("halves").as_deref() {
        None => Halves::BOTH,
        Some(which) => Halves { near: which == "near", far: which == "far" },
    }
}

/// Returns whether an address is the listener of a router in the right router's network.
pub(super) const fn is_right(peer: Addr) -> bool {
    peer.port() == PORT && peer.ip().octets()[1] == RIGHT.octets()[1]
}
