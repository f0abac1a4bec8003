//! Random scripts. The next step depends on the subject's requests, as with a driver: no events of a route lifetime
//! that the role did not set, and no packets for a role that takes none.

use node::stream::OwnedStreamEvent;
use node::{
    Act, Boot, Command, CommandId, Effect, Fault, Lifetime, Link, Notification, Rng, RoleId, RouteKey,
    StreamEvent,
};
use node::{FailedAct, PuntReason, StreamId, StreamOp, Transport, Value};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::{Cell, Duration, EtherType, Frame, Iface, Instant, Mac, Packet, PacketId, WallTime};

/// The wall clock at the start of a script: 2000-01-01 00:00 UTC.
pub(crate) const WALL: WallTime = WallTime(946_684_800_000_000_000);

/// The inputs that a script can give to a role.
pub(crate) struct Talk {
    /// The names of the role's interfaces, in the order of their numbers from 1.
    pub(crate) interfaces: Vec<String>,
    /// Whether interface 1 is a radio that tunes.
    pub(crate) tunes: bool,
    /// Whether the role's radios report the signals of cells.
    pub(crate) hears: bool,
    /// Commands that the role knows, with valid and invalid arguments.
    pub(crate) commands: Vec<Command>,
    /// Returns a packet that the role may receive at this time.
    pub(crate) packet: fn(&mut Rng, Instant) -> Post,
    /// Whether the role receives packets at all.
    pub(crate) takes_packets: bool,
    /// Returns a message that a peer may send to the role on an accepted stream of datagrams. `None` if the role has no
    /// such streams.
    pub(crate) datagram: Option<fn(&mut Rng, Instant) -> Vec<u8>>,
    /// A transport that the role serves; `None` if it serves none.
    pub(crate) serves: Option<Transport>,
    /// Returns a peer's answer to the packet that the role sent last, if there is one.
    pub(crate) answer: Option<fn(&mut Rng, &Packet) -> Option<Post>>,
    /// Notifications that other roles of the host may send.
    pub(crate) news: &'static [Notification],
}

/// A packet before it gets its identity.
pub(crate) struct Post {
    pub(crate) rx: Arrival,
    pub(crate) from: Mac,
    pub(crate) bytes: Vec<u8>,
}

/// How a packet arrives. Its header is not parsed yet, and may be damaged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) iface: Iface,
    pub(crate) why: PuntReason,
}

/// One step of a script.
#[derive(Debug)]
pub(crate) enum Step {
    Start(Boot),
    /// Time passes.
    Wait(Instant),
    /// A time-out before the deadline.
    Early(Instant),
    /// A time-out at or after the deadline.
    Due(Instant),
    Packet(Arrival, Packet),
    Link(Iface, Link<'static>),
    Idle(RouteKey, Instant),
    Stream(StreamId, StreamEvent<'static>),
    Command(CommandId, Command),
    Serve(StreamId, StreamOp),
    /// An act failed: a record was not stored, or an address was not set.
    Failed(Fault),
    /// A record is durable.
    Stored(Vec<u8>),
    /// The wall clock was set.
    Wall(WallTime),
    /// Another role of the host sent a notification.
    Notification(Notification),
}

pub(crate) struct Script<'a> {
    talk: &'a Talk,
    rng: Rng,
    started: bool,
    last_id: u64,
    /// Routes whose lifetime may end.
    lives: BTreeMap<RouteKey, Lifetime>,
    /// Streams that the role has opened.
    streams: BTreeSet<StreamId>,
    accepted: u32,
    /// An accepted stream that has sent no data yet.
    fresh: Option<StreamId>,
    /// Streams that the role was asked to serve.
    asked: BTreeSet<StreamId>,
    /// The keys that the role has requested to store, and whose request has neither succeeded nor failed yet.
    under_way: VecDeque<Vec<u8>>,
    /// Addresses that the role has set or removed.
    addresses: Vec<FailedAct>,
    /// Whether a request to store has failed. Then all requests in `under_way` fail as well.
    fails: bool,
    /// The packet that the role sent last.
    sent: Option<Packet>,
}

impl<'a> Script<'a> {
    pub(crate) const fn new(talk: &'a Talk, rng: Rng) -> Self {
        Self {
            talk,
            rng,
            started: false,
            last_id: 0,
            lives: BTreeMap::new(),
            streams: BTreeSet::new(),
            accepted: 0,
            fresh: None,
            asked: BTreeSet::new(),
            under_way: VecDeque::new(),
            addresses: Vec::new(),
            fails: false,
            sent: None,
        }
    }

    /// Records the requests of the subject.
    pub(crate) fn heed(&mut self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Do(Act::Route(key, Some(route))) if route.lifetime != Lifetime::Permanent => {
                    self.lives.insert(*key, route.lifetime);
                }
                Effect::Do(Act::Route(key, _)) => {
                    self.lives.remove(key);
                }
                Effect::Stream(id, StreamOp::Open { .. } | StreamOp::Listen { .. })
                | Effect::Do(Act::Stream(id, StreamOp::Open { .. } | StreamOp::Listen { .. })) => {
                    self.streams.insert(StreamId(id.0 & 0xffff));
                }
                Effect::Served(OwnedStreamEvent::Closed(id, _)) => {
                    self.asked.remove(id);
                }
                Effect::Do(Act::Address(iface, address, is_added)) => {
                    self.addresses.push(FailedAct::Address(*iface, *address, *is_added));
                }
                Effect::Do(Act::Store(key, _)) => self.under_way.push_back(key.clone()),
                Effect::Send(_, packet) | Effect::Do(Act::Transmit(_, packet)) => {
                    self.sent = Some(packet.clone());
                }
                _ => {}
            }
        }
    }

    pub(crate) fn next(&mut self, now: Instant, deadline: Option<Instant>, alone: bool) -> Step {
        if !std::mem::replace(&mut self.started, true) {
            return Step::Start(Boot::new(WALL));
        }
        if std::mem::take(&mut self.fails)
            && let Some(key) = self.under_way.pop_front()
        {
            self.fails = true;
            return failed(FailedAct::Store(key));
        }
        match self.rng.draw() % 16 {
            0 | 1 => self.time(now, deadline),
            2..=4 => self.time_out(now, deadline),
            5..=10 if self.talk.takes_packets => self.packet(now),
            5..=10 if self.talk.datagram.is_some() => self.datagram(now),
            11 if alone => self.idle(now),
            12 if !self.talk.commands.is_empty() => self.command(),
            13 | 14 => self.serve_or_stream(alone),
            15 if alone && !self.talk.news.is_empty() => self.news(),
            15 => self.machine(),
            _ => self.link(),
        }
    }

    /// A role that serves may also use streams itself, so both kinds of steps are played.
    fn serve_or_stream(&mut self, alone: bool) -> Step {
        match self.talk.serves.filter(|_| alone) {
            Some(by) if self.streams.is_empty() => self.serve(by),
            Some(by) => match self.below(2) {
                0 => self.serve(by),
                _ => self.stream(),
            },
            None => self.stream(),
        }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.rng.draw() % end.max(1)
    }

    /// Returns a gap of time, not past the deadline: a driver would have given a time-out by then.
    fn time(&mut self, now: Instant, deadline: Option<Instant>) -> Step {
        let most = [1_000, 1_000_000, 100_000_000, 3_000_000_000][self.below(4) as usize];
        let at = now + Duration::from_nanos(self.below(most));
        Step::Wait(deadline.map_or(at, |due| at.min(due.max(now))))
    }

    fn time_out(&mut self, now: Instant, deadline: Option<Instant>) -> Step {
        match deadline {
            // There is no deadline, so no time-out is due at any time.
            None => Step::Early(now + Duration::from_nanos(self.below(1_000_000_000))),
            Some(due) if due > now && self.below(3) == 0 => {
                Step::Early(Instant(now.0 + self.below(due.0 - now.0)))
            }
            // At the deadline, or a little late, as a driver's timer may be.
            Some(due) => {
                let late = if self.below(2) == 0 { 0 } else { self.below(2_000_000) };
                Step::Due(due.max(now) + Duration::from_nanos(late))
            }
        }
    }

    fn packet(&mut self, now: Instant) -> Step {
        let answer = match (self.talk.answer, &self.sent) {
            (Some(answer), Some(sent)) if self.rng.draw().is_multiple_of(2) => answer(&mut self.rng, sent),
            _ => None,
        };
        let post = answer.unwrap_or_else(|| (self.talk.packet)(&mut self.rng, now));
        let Post { rx, from, mut bytes } = post;
        self.damage(&mut bytes);
        self.last_id += 1;
        let link = Frame { kind: EtherType::IPV4, src: from, dst: own(rx.iface) };
        Step::Packet(rx, Packet { link, id: PacketId(self.last_id), bytes })
    }

    /// Changes some packets at random.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        match self.below(6) {
            0 if !bytes.is_empty() => {
                for _ in 0..=self.below(3) {
                    let at = self.below(bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << self.below(8);
                }
            }
            1 => bytes.truncate(self.below(bytes.len() as u64) as usize),
            2 if self.below(4) == 0 => {
                *bytes = (0..self.below(64)).map(|_| self.rng.draw() as u8).collect();
            }
            _ => {}
        }
    }

    /// Returns a step in which a peer is accepted, or in which an accepted peer sends a datagram.
    fn datagram(&mut self, now: Instant) -> Step {
        let (Some(listener), Some(message)) = (self.streams.first().copied(), self.talk.datagram) else {
            return self.link();
        };
        if let Some(fresh) = self.fresh.take() {
            let mut bytes = message(&mut self.rng, now);
            self.damage(&mut bytes);
            return Step::Stream(fresh, StreamEvent::Data(bytes.leak()));
        }
        let new = StreamId(StreamId::DRIVER + self.accepted);
        (self.accepted, self.fresh) = (self.accepted + 1, Some(new));
        let here = "10.0.0.1:9000".parse().unwrap();
        Step::Stream(listener, StreamEvent::Accepted(new, here, here))
    }

    fn idle(&mut self, now: Instant) -> Step {
        let index = self.below(self.lives.len() as u64) as usize;
        match self.lives.iter().nth(index).map(|(key, life)| (*key, *life)) {
            None => self.link(),
            Some((key, life)) => {
                if matches!(life, Lifetime::SoftState(_)) {
                    self.lives.remove(&key); // removed; a watched route stays
                }
                Step::Idle(key, now)
            }
        }
    }

    fn command(&mut self) -> Step {
        let index = self.below(self.talk.commands.len() as u64) as usize;
        self.last_id += 1;
        Step::Command(CommandId(self.last_id as u32), self.talk.commands[index].clone())
    }

    fn stream(&mut self) -> Step {
        let index = self.below(self.streams.len() as u64) as usize;
        let Some(id) = self.streams.iter().nth(index).copied() else { return self.link() };
        let here = "10.0.0.1:9000".parse().unwrap();
        let accepted = match self.accepted {
            0 => id,
            some => StreamId(StreamId::DRIVER + self.below(u64::from(some)) as u32),
        };
        let any = if self.below(2) == 0 { id } else { accepted };
        match self.below(10) {
            0..=2 => Step::Stream(id, StreamEvent::Opened(here)),
            3 => Step::Stream(any, StreamEvent::Room(self.below(70_000) as usize)),
            4 => {
                let new = StreamId(StreamId::DRIVER + self.accepted);
                self.accepted += 1;
                Step::Stream(id, StreamEvent::Accepted(new, here, here))
            }
            5..=7 => Step::Stream(any, StreamEvent::Data(&[7; 100][..self.below(100) as usize])),
            8 => Step::Stream(any, StreamEvent::Finished),
            _ => {
                Step::Stream(any, StreamEvent::Closed([None, Some("address in use")][self.below(2) as usize]))
            }
        }
    }

    /// Returns a user's request on one of a few streams. Some of them are not open, some are accepted.
    fn serve(&mut self, by: Transport) -> Step {
        let base = [1 << 16, 2 << 16, StreamId::SERVED][self.below(3) as usize];
        let id = StreamId(base + self.below(2) as u32);
        let here = "10.0.0.1:9000".parse().unwrap();
        let op = match self.below(8) {
            0 => StreamOp::Open { by, local: None, peer: here, foreign: false },
            1 => StreamOp::Listen { by, local: here, foreign: false },
            2 | 3 => StreamOp::Write(vec![7; self.below(100) as usize]),
            4 => StreamOp::Read(self.below(100) as usize),
            5 => StreamOp::Read(StreamOp::ALL),
            6 => StreamOp::Finish,
            _ => StreamOp::Abort,
        };
        // A node lets no user open a stream that is open. Users do not open accepted streams.
        let opens = matches!(op, StreamOp::Open { .. } | StreamOp::Listen { .. });
        if opens && (base == StreamId::SERVED || !self.asked.insert(id)) {
            return Step::Serve(id, StreamOp::Read(1));
        }
        Step::Serve(id, op)
    }

    /// Returns a notification of another role, or an input from the driver.
    fn news(&mut self) -> Step {
        let index = self.below(2 * self.talk.news.len() as u64) as usize;
        self.talk.news.get(index).map_or_else(|| self.machine(), |news| Step::Notification(*news))
    }

    /// Returns an input from the driver.
    fn machine(&mut self) -> Step {
        if self.below(2) == 0 {
            return self.link();
        }
        match self.under_way.pop_front() {
            Some(key) if self.below(4) > 0 => Step::Stored(key),
            Some(key) => {
                self.fails = true;
                failed(FailedAct::Store(key))
            }
            None if !self.addresses.is_empty() && self.below(2) == 0 => {
                let failed_act = self.addresses.pop();
                failed_act.map_or_else(|| self.link(), failed)
            }
            // The clock at the start of the script, changed by up to a second forwards or backwards.
            None => Step::Wall(WallTime(WALL.0 + self.below(2_000_000_000).cast_signed() - 1_000_000_000)),
        }
    }

    fn link(&mut self) -> Step {
        let number = self.below(self.talk.interfaces.len() as u64) as u16 + 1;
        let cell = self.talk.tunes.then(|| Cell(self.below(4) as u16 + 1));
        let link = if self.talk.hears && self.below(3) > 0 {
            Link::Heard(Cell(self.below(3) as u16 + 1), -40 - 10 * self.below(6) as i16)
        } else if self.below(4) == 0 {
            Link::Down(["unsupported", "carrier"][self.below(2) as usize])
        } else {
            Link::Up { cell, mac: own(Iface(number)), mtu: 1500, name: "any" }
        };
        Step::Link(Iface(number), link)
    }
}

fn failed(act: FailedAct) -> Step {
    Step::Failed(Fault { role: RoleId(0), act, why: "no space left".to_owned() })
}

/// Returns the subject's own link address on an interface.
pub(crate) const fn own(iface: Iface) -> Mac {
    Mac([2, 0, 0, 0, 1, iface.0 as u8])
}

/// Returns a command with text arguments.
pub(crate) fn command(verb: &str, args: &[(&str, &str)]) -> Command {
    let args = args.iter().map(|(name, text)| ((*name).to_owned(), Value::from(*text)));
    Command { verb: verb.to_owned(), args: Value::Map(args.collect()) }
}

/// Returns the interface of a packet, and why the role gets it.
pub(crate) const fn rx(iface: u16, why: PuntReason) -> Arrival {
    Arrival { iface: Iface(iface), why }
}
