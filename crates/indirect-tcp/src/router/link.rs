//! The connection between two routers: one for each that hands over, opened by it.

use super::{Due, Outgoing, SupportRouter, Use, refusal};
use crate::config::SupportRouterConfig;
use crate::message::{Body, Channel, Frame, Frames, PORT};
use node::{Addr, Knob, Outbox, StreamEvent, StreamId, StreamOp, Transport};
use std::collections::BTreeMap;
use wire::{Duration, Instant, Ipv4Addr, Malformed, Reason};

/// Bytes asked for at once.
const CHUNK: usize = 64 * 1024;
/// The buffers of a connection between routers, where halves have others than the host's.
const LINK: u32 = 1024 * 1024;
/// A connection that broke is tried again after this time.
const RETRY: Duration = Duration::from_millis(500);
/// A router that has not heard for so long whose a connection is gives up.
const GIVE_UP: Duration = Duration::from_secs(30);

/// One end of such a connection.
#[derive(Debug)]
pub(super) struct Link {
    /// Who is at the other end: known from the start by who opened, and by the other from the hello.
    pub(super) peer: Option<Ipv4Addr>,
    opened: bool,
    /// The hellos were exchanged.
    up: bool,
    nonce: [u8; 16],
    channel: Option<Channel>,
    frames: Frames,
    outgoing: Outgoing,
    /// Handoffs offered on it so far.
    handoffs: u64,
    /// What the peer offers, by number: whose connections, and which of them the next frames are about.
    pub(super) offers: BTreeMap<u64, (Ipv4Addr, Option<u32>)>,
}

/// Handoffs that one connection carries at a time; a peer that offers more is not one of ours.
const OFFERS: usize = 1024;

impl Link {
    fn new(peer: Option<Ipv4Addr>, nonce: [u8; 16], channel: Option<Channel>) -> Self {
        Self {
            peer,
            opened: peer.is_some(),
            up: false,
            nonce,
            channel,
            frames: Frames::default(),
            outgoing: Outgoing::default(),
            handoffs: 0,
            offers: BTreeMap::new(),
        }
    }

    pub(super) fn accepted(room: usize) -> Self {
        let mut link = Self::new(None, [0; 16], None);
        link.outgoing.room = room;
        link
    }

    /// Puts a frame on its way; its bytes.
    fn send(&mut self, id: StreamId, frame: &Frame, out: &mut Outbox) -> usize {
        let Some(channel) = &mut self.channel else { return 0 };
        let bytes = channel.seal(frame);
        self.outgoing.push(id, &bytes, out);
        bytes.len()
    }
}

impl SupportRouter {
    /// The connection to another router: opened now, if there is none. Whether it can carry frames already.
    pub(super) fn link_to(&mut self, router: Ipv4Addr, out: &mut Outbox) -> bool {
        if let Some(id) = self.links.get(&router) {
            return matches!(self.streams.get(id), Some(Use::Link(link)) if link.up);
        }
        let Some(key) = self.routers.get(&router).cloned() else { return false };
        let nonce = self.nonce();
        let link = Link::new(Some(router), nonce, Some(Channel::new(key, true)));
        let id = self.new_stream(Use::Link(Box::new(link)));
        self.links.insert(router, id);
        let peer = Addr::new(router, PORT);
        // The last bytes of a state would wait for what came before them, and that for a delayed acknowledgment.
        out.stream(id, StreamOp::Set(Knob::Nagle(false)));
        out.stream(id, StreamOp::Open { by: Transport::Tcp, local: None, peer, foreign: false });
        false
    }

    /// One that was accepted began as a half would, and is none: what it carries is bounded by what it is told.
    pub(super) fn set_link(&self, id: StreamId, out: &mut Outbox) {
        let SupportRouterConfig { send_buffer, receive_buffer, .. } = self.config;
        let sends = send_buffer.map(|_| Knob::SendBuffer(LINK));
        let receives = receive_buffer.map(|_| Knob::ReceiveBuffer(LINK));
        for knob in [sends, receives].into_iter().flatten() {
            out.stream(id, StreamOp::Set(knob));
        }
    }

    fn nonce(&mut self) -> [u8; 16] {
        let words = [self.chance.draw(), self.chance.draw()].map(u64::to_be_bytes);
        words.as_flattened().try_into().unwrap_or_default()
    }

    /// A number for the next handoff to another router.
    pub(super) fn next_handoff(&mut self, router: Ipv4Addr) -> Option<u64> {
        let Some(Use::Link(link)) = self.streams.get_mut(self.links.get(&router)?) else { return None };
        link.handoffs += 1;
        Some(link.handoffs)
    }

    /// Sends a frame to another router, on the connection that we opened; its bytes with their code.
    pub(super) fn send_to(&mut self, router: Ipv4Addr, handoff: u64, body: Body, out: &mut Outbox) -> usize {
        let Some(id) = self.links.get(&router).copied() else { return 0 };
        self.send_on(id, handoff, body, out)
    }

    pub(super) fn send_on(&mut self, id: StreamId, handoff: u64, body: Body, out: &mut Outbox) -> usize {
        let Some(Use::Link(link)) = self.streams.get_mut(&id) else { return 0 };
        link.send(id, &Frame { handoff, body }, out)
    }

    /// Something happened to such a connection.
    pub(super) fn link(&mut self, now: Instant, id: StreamId, event: StreamEvent<'_>, out: &mut Outbox) {
        let own = self.config.address;
        let Some(Use::Link(link)) = self.streams.get_mut(&id) else { return };
        match event {
            StreamEvent::Opened(_) => {
                let body = Body::Hello { router: own, nonce: link.nonce };
                link.send(id, &Frame { handoff: 0, body }, out);
                out.stream(id, StreamOp::Read(CHUNK));
            }
            StreamEvent::Room(more) => link.outgoing.grant(id, more, out),
            StreamEvent::Data(bytes) => self.link_heard(now, id, bytes, out),
            StreamEvent::Finished => {
                out.stream(id, StreamOp::Abort);
            }
            StreamEvent::Closed(_) => self.link_lost(now, id, out),
            _ => {}
        }
    }

    pub(super) fn link_heard(&mut self, now: Instant, id: StreamId, bytes: &[u8], out: &mut Outbox) {
        if let Some(Use::Link(link)) = self.streams.get_mut(&id) {
            link.frames.push(bytes);
        }
        loop {
            match self.next_frame(now, id, out) {
                Ok(true) => {}
                Ok(false) => break,
                Err(reason) => {
                    self.count(reason);
                    return out.stream(id, StreamOp::Abort);
                }
            }
        }
        out.stream(id, StreamOp::Read(CHUNK));
    }

    fn next_frame(&mut self, now: Instant, id: StreamId, out: &mut Outbox) -> Result<bool, Reason> {
        let Some(Use::Link(link)) = self.streams.get_mut(&id) else { return Ok(false) };
        let Some(bytes) = link.frames.next_frame()? else { return Ok(false) };
        if !link.up {
            self.hello(now, id, &bytes, out)?;
            return Ok(true);
        }
        let channel = link.channel.as_mut().ok_or(refusal::UNEXPECTED)?;
        let frame = channel.open(&bytes)?;
        let (opened, peer) = (link.opened, link.peer);
        let peer = peer.ok_or(refusal::UNEXPECTED)?;
        if opened {
            self.answered(now, peer, &frame, out)?;
        } else {
            self.offered(now, id, frame, out)?;
        }
        Ok(true)
    }

    /// The first frame: who it is, proved by the routers' key, and a number that makes all that follows this connection's.
    fn hello(&mut self, now: Instant, id: StreamId, bytes: &[u8], out: &mut Outbox) -> Result<(), Reason> {
        let own = self.config.address;
        let nonce = self.nonce();
        let Some(Use::Link(link)) = self.streams.get_mut(&id) else { return Ok(()) };
        if let Some(router) = link.peer {
            let channel = link.channel.as_mut().ok_or(refusal::UNEXPECTED)?;
            let Body::Hello { router: said, nonce } = channel.open(bytes)?.body else {
                return Err(refusal::UNEXPECTED);
            };
            if said != router {
                return Err(refusal::MISDIRECTED);
            }
            channel.agreed([link.nonce, nonce]);
            link.up = true;
            self.linked(now, router, out);
            return Ok(());
        }
        // Who it claims to be says which key has to have signed it.
        let claim = bytes.get(..bytes.len().saturating_sub(16)).ok_or(Malformed("itcp_frame_truncated"))?;
        let Body::Hello { router, nonce: theirs } = Frame::parse(claim)?.body else {
            return Err(refusal::UNEXPECTED);
        };
        let key = self.routers.get(&router).ok_or(refusal::STRANGER)?;
        let mut channel = Channel::new(key.clone(), false);
        channel.open(bytes)?;
        (link.peer, link.nonce, link.channel) = (Some(router), nonce, Some(channel));
        link.send(id, &Frame { handoff: 0, body: Body::Hello { router: own, nonce } }, out);
        if let Some(channel) = &mut link.channel {
            channel.agreed([theirs, nonce]);
        }
        link.up = true;
        Ok(())
    }

    /// A new offer; [`OFFERS`] at a time.
    pub(super) fn note_offer(&mut self, id: StreamId, handoff: u64, host: Ipv4Addr) -> Result<(), Reason> {
        let Some(Use::Link(link)) = self.streams.get_mut(&id) else { return Ok(()) };
        if link.offers.len() >= OFFERS {
            return Err(refusal::UNEXPECTED);
        }
        link.offers.insert(handoff, (host, None));
        Ok(())
    }

    fn link_lost(&mut self, now: Instant, id: StreamId, out: &mut Outbox) {
        let Some(Use::Link(link)) = self.streams.remove(&id) else { return };
        for (host, _) in link.offers.values() {
            self.arrival_interrupted(*host, id, out);
        }
        let Some(router) = link.peer.filter(|router| self.links.get(router) == Some(&id)) else { return };
        self.links.remove(&router);
        let mut waits = false;
        for departure in self.hosts.values_mut().filter_map(|host| host.departure.as_mut()) {
            if departure.to == router {
                departure.handoff = None;
                waits = true;
            }
        }
        if waits {
            self.due.set(Due::Relink(router), now + RETRY);
        }
    }

    /// Tries again for those whose connections are to go there, unless that has been tried for too long.
    pub(super) fn relink(&mut self, now: Instant, router: Ipv4Addr, out: &mut Outbox) {
        let bound = self.hosts.iter().filter_map(|(address, host)| {
            let departure = host.departure.as_ref().filter(|departure| departure.to == router)?;
            Some((*address, now >= departure.since + GIVE_UP))
        });
        let bound: Vec<(Ipv4Addr, bool)> = bound.collect();
        for (address, too_long) in bound {
            if too_long {
                self.give_up(now, address, out);
            } else {
                self.depart(now, address, out);
            }
        }
    }

    /// A connection to another router is up: whoever waits for it goes on.
    fn linked(&mut self, now: Instant, router: Ipv4Addr, out: &mut Outbox) {
        let bound = self
            .hosts
            .iter()
            .filter(|(_, host)| host.departure.as_ref().is_some_and(|departure| departure.to == router));
        let bound: Vec<Ipv4Addr> = bound.map(|(address, _)| *address).collect();
        for address in bound {
            self.depart(now, address, out);
        }
    }
}
