//! The connection between two routers: one for each that hands over, opened by it.

use super::ledger::Host;
use super::{Due, Outgoing, SupportRouter, Use, refusal};
use crate::config::SupportRouterConfig;
use crate::message::{Body, Channel, ConnectionId, Frame, Frames, PORT};
use node::{Addr, Knob, Outbox, StreamEvent, StreamId, StreamOp, Transport};
use std::collections::BTreeMap;
use wire::{Duration, Instant, Ipv4Addr, Malformed, Reason};

/// Bytes asked for at once.
const CHUNK: usize = 64 * 1024;
/// The buffers of a connection between routers, where halves have others than the host's.
const LINK: u32 = 1024 * 1024;
/// A connection that broke is tried again after this time.
const RETRY: Duration = Duration::from_millis(500);
/// One on which nothing happens for so long while something is to be said is given up for a new one. A few segments that are lost
/// in a row leave a time-out of many seconds; a new connection begins with 1 s (RFC 6298, section 2).
const STALLED: Duration = Duration::from_secs(3);

/// One end of such a connection.
#[derive(Debug)]
pub(super) struct Link {
    /// Who is at the other end: known from the start by who opened, and by the other from the hello.
    pub(super) peer: Option<Ipv4Addr>,
    opened: bool,
    /// The hellos were exchanged.
    up: bool,
    /// Who connected; none if we did.
    pub(super) source: Option<Ipv4Addr>,
    /// The other end knows the key that both hellos make: it is no record of an earlier hello.
    pub(super) proven: bool,
    nonce: [u8; 16],
    channel: Option<Channel>,
    frames: Frames,
    outgoing: Outgoing,
    /// Handoffs offered on it so far.
    handoffs: u64,
    /// What the peer offers, by number: whose connections, and which of them the next frames are about.
    pub(super) offers: BTreeMap<u64, Offer>,
}

/// What another router offers.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) host: Ipv4Addr,
    /// Of the greeting by which the host came here.
    pub(super) sequence: u64,
    /// The connection that the next frames are about.
    pub(super) current: Option<ConnectionId>,
}

/// Handoffs that one connection carries at a time; a peer that offers more is not one of ours.
const OFFERS: usize = 1024;

impl Link {
    fn new(peer: Option<Ipv4Addr>, nonce: [u8; 16], channel: Option<Channel>) -> Self {
        Self {
            peer,
            opened: peer.is_some(),
            up: false,
            source: None,
            proven: false,
            nonce,
            channel,
            frames: Frames::default(),
            outgoing: Outgoing::default(),
            handoffs: 0,
            offers: BTreeMap::new(),
        }
    }

    pub(super) fn accepted(room: usize, source: Ipv4Addr) -> Self {
        let mut link = Self::new(None, [0; 16], None);
        (link.outgoing.room, link.source) = (room, Some(source));
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
    pub(super) fn link_to(&mut self, now: Instant, router: Ipv4Addr, out: &mut Outbox) -> bool {
        self.due.set_by(Due::Stalled(router), now + STALLED);
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
        let router = link.peer.filter(|_| link.opened);
        if let Some(router) = router {
            let answers = link.up && matches!(event, StreamEvent::Room(_));
            self.link_works(now, router, answers || matches!(event, StreamEvent::Data(_)));
        }
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
        if let Some(router) = router {
            self.link_rests(router);
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
        if !std::mem::replace(&mut link.proven, true) {
            link.frames.trust();
            self.due.stop(Due::Caller(id));
        }
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

    /// A new offer; [`OFFERS`] at a time, and one for each host: a later one ends those before.
    pub(super) fn note_offer(
        &mut self,
        id: StreamId,
        handoff: u64,
        host: Ipv4Addr,
        sequence: u64,
    ) -> Result<(), Reason> {
        let Some(Use::Link(link)) = self.streams.get_mut(&id) else { return Ok(()) };
        link.offers.retain(|_, offer| offer.host != host);
        if link.offers.len() >= OFFERS {
            return Err(refusal::UNEXPECTED);
        }
        link.offers.insert(handoff, Offer { host, sequence, current: None });
        Ok(())
    }

    /// A router speaks on this connection: what it opened before is broken at its end, and what is still to come from there
    /// must not count. It was proved by the code of a frame, which no recorded hello has.
    pub(super) fn supersede(&mut self, id: StreamId, out: &mut Outbox) {
        let Some(Use::Link(link)) = self.streams.get(&id) else { return };
        let peer = link.peer;
        let earlier = |(other, what): (&StreamId, &Use)| match what {
            Use::Link(link) if !link.opened && link.peer == peer && *other != id => Some(*other),
            _ => None,
        };
        let earlier: Vec<StreamId> = self.streams.iter().filter_map(earlier).collect();
        for other in earlier {
            out.stream(other, StreamOp::Abort);
            self.link_ended(other, out);
        }
    }

    /// What came by a connection between routers, and was not taken, is void.
    fn link_ended(&mut self, id: StreamId, out: &mut Outbox) -> Option<Ipv4Addr> {
        let Some(Use::Link(link)) = self.streams.remove(&id) else { return None };
        self.due.stop(Due::Caller(id));
        for offer in link.offers.values() {
            self.arrival_interrupted(offer.host, id, out);
        }
        link.peer.filter(|router| self.links.get(router) == Some(&id))
    }

    /// Something happened on a connection that we opened, which has as long again. If the other router takes bytes, or says
    /// something (`answers`), it has as long again for all hosts whose connections are to go there.
    fn link_works(&mut self, now: Instant, router: Ipv4Addr, answers: bool) {
        self.due.set(Due::Stalled(router), now + STALLED);
        let waits = |host: &Host| answers && host.waits_for(router);
        let hosts = self.hosts.iter().filter(|(_, host)| waits(host)).map(|(address, _)| *address);
        for address in hosts.collect::<Vec<_>>() {
            self.progress(now, address);
        }
    }

    /// Where there is nothing to say, silence is no fault.
    pub(super) fn link_rests(&mut self, router: Ipv4Addr) {
        if !self.is_needed(router) {
            self.due.stop(Due::Stalled(router));
        }
    }

    /// Nothing has happened for too long on the connection to another router: what was said on it is asked for, or said again, on a
    /// new one.
    pub(super) fn stalled(&mut self, router: Ipv4Addr, out: &mut Outbox) {
        if self.is_needed(router) {
            self.hang_up_on(router, out);
        }
    }

    /// A router was silent for too long on the connection that we opened.
    pub(super) fn hang_up_on(&mut self, router: Ipv4Addr, out: &mut Outbox) {
        if let Some(id) = self.links.get(&router).copied() {
            out.stream(id, StreamOp::Abort);
        }
    }

    fn link_lost(&mut self, now: Instant, id: StreamId, out: &mut Outbox) {
        let Some(router) = self.link_ended(id, out) else { return };
        self.links.remove(&router);
        for departure in self.hosts.values_mut().filter_map(|host| host.departure.as_mut()) {
            if departure.to == router {
                (departure.handoff, departure.accepted) = (None, false);
            }
        }
        if self.is_needed(router) {
            self.due.set(Due::Relink(router), now + RETRY);
        }
    }

    /// Whether there is something to say to another router: an offer, or a question.
    fn is_needed(&self, router: Ipv4Addr) -> bool {
        self.hosts.values().any(|host| host.waits_for(router))
    }

    /// Tries again for those whose connections are to go there, or may be there.
    pub(super) fn relink(&mut self, now: Instant, router: Ipv4Addr, out: &mut Outbox) {
        if self.is_needed(router) {
            self.link_to(now, router, out);
        }
    }

    /// A connection to another router is up: first the questions, then the offers.
    fn linked(&mut self, now: Instant, router: Ipv4Addr, out: &mut Outbox) {
        self.ask_whose(router, out);
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
