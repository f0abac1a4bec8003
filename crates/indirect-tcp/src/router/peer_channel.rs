//! The connection between two routers. The router that hands connections over opens it. So there are two such
//! connections if each router hands over to the other.

use super::host::Host;
use super::{Outgoing, StreamUse, SupportRouter, Timer, refusal};
use crate::config::SupportRouterConfig;
use crate::message::{Body, ConnectionId, Frame, FrameAuth, Frames, PORT};
use node::{Addr, Outbox, SocketOption, StreamEvent, StreamId, StreamOp, Transport};
use std::collections::BTreeMap;
use wire::{Duration, Instant, Ipv4Addr, Malformed, Reason};

/// The limit of one read, in bytes.
const CHUNK: usize = 64 * 1024;
/// Each buffer of an accepted connection between routers, in bytes. It replaces a buffer size that the configuration
/// sets for the halves.
const LINK: u32 = 1024 * 1024;
/// The time after which a broken connection is opened again.
const RETRY: Duration = Duration::from_millis(500);
/// A connection that is needed and shows no activity for this time is replaced by a new one. After several losses in a
/// row the retransmission time-out is many seconds; a new connection begins with 1 s (RFC 6298, section 2).
const STALLED: Duration = Duration::from_secs(3);

/// One end of a connection between routers.
#[derive(Debug)]
pub(super) struct PeerChannel {
    /// The address of the router at the other end. `None` if that router opened the connection and has not sent its
    /// hello yet.
    pub(super) peer: Option<Ipv4Addr>,
    opened: bool,
    /// Whether the hellos were exchanged.
    up: bool,
    /// The address from which the other router connected, or `None` if this router opened the connection.
    pub(super) source: Option<Ipv4Addr>,
    /// Whether the other end has sent a frame with the key that is derived from both nonces. Then the hello of the
    /// other end is not a replay.
    pub(super) proven: bool,
    nonce: [u8; 16],
    auth: Option<FrameAuth>,
    frames: Frames,
    outgoing: Outgoing,
    /// The number of handoffs that were offered on this connection.
    handoffs: u64,
    /// The peer's offers, by the number of the handoff: at most one for each host that is configured here.
    pub(super) offers: BTreeMap<u64, Offer>,
}

/// An offer of another router.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) host: Ipv4Addr,
    /// The sequence of the greeting that the offer names.
    pub(super) sequence: u64,
    /// The mobile host's connection that the next frames are about.
    pub(super) current: Option<ConnectionId>,
}

impl PeerChannel {
    fn new(peer: Option<Ipv4Addr>, nonce: [u8; 16], auth: Option<FrameAuth>) -> Self {
        Self {
            peer,
            opened: peer.is_some(),
            up: false,
            source: None,
            proven: false,
            nonce,
            auth,
            frames: Frames::default(),
            outgoing: Outgoing::default(),
            handoffs: 0,
            offers: BTreeMap::new(),
        }
    }

    pub(super) fn accepted(room: usize, source: Ipv4Addr) -> Self {
        let mut channel = Self::new(None, [0; 16], None);
        (channel.outgoing.room, channel.source) = (room, Some(source));
        channel
    }

    /// Sends a frame. Returns its length with the code, in bytes, or 0 if this end has no key yet.
    fn send(&mut self, id: StreamId, frame: &Frame, out: &mut Outbox) -> usize {
        let Some(auth) = &mut self.auth else { return 0 };
        let bytes = auth.seal(frame);
        self.outgoing.push(id, &bytes, out);
        bytes.len()
    }
}

/// Returns the connection to another router that uses stream `id`. `None` if the stream has another use or has ended.
pub(super) fn channel_of(
    streams: &mut BTreeMap<StreamId, StreamUse>,
    id: StreamId,
) -> Option<&mut PeerChannel> {
    match streams.get_mut(&id)? {
        StreamUse::Router(channel) => Some(channel),
        StreamUse::Caller { .. } | StreamUse::Half(..) => None,
    }
}

impl SupportRouter {
    /// Opens the connection to another router if there is none. Returns whether frames can be sent on it now.
    pub(super) fn open_channel(&mut self, now: Instant, router: Ipv4Addr, out: &mut Outbox) -> bool {
        self.timers.set_by(Timer::Stalled(router), now + STALLED);
        if let Some(id) = self.channels.get(&router) {
            return matches!(self.streams.get(id), Some(StreamUse::Router(channel)) if channel.up);
        }
        let Some(key) = self.routers.get(&router).cloned() else { return false };
        let nonce = self.nonce();
        let channel = PeerChannel::new(Some(router), nonce, Some(FrameAuth::new(key, true)));
        let id = self.new_stream(StreamUse::Router(Box::new(channel)));
        self.channels.insert(router, id);
        let peer = Addr::new(router, PORT);
        // With Nagle's algorithm the last bytes of a state would wait for an acknowledgment, which the peer may delay.
        out.stream(id, StreamOp::Set(SocketOption::Nagle(false)));
        out.stream(id, StreamOp::Open { by: Transport::Tcp, local: None, peer, foreign: false });
        false
    }

    /// Sets the buffers of an accepted connection from a router to [`LINK`] bytes, if the configuration has buffer
    /// sizes for halves. The connection was accepted with the sizes for halves.
    pub(super) fn set_channel(&self, id: StreamId, out: &mut Outbox) {
        let SupportRouterConfig { send_buffer, receive_buffer, .. } = self.config;
        let sends = send_buffer.map(|_| SocketOption::SendBuffer(LINK));
        let receives = receive_buffer.map(|_| SocketOption::ReceiveBuffer(LINK));
        for knob in [sends, receives].into_iter().flatten() {
            out.stream(id, StreamOp::Set(knob));
        }
    }

    fn nonce(&mut self) -> [u8; 16] {
        let words = [self.rng.draw(), self.rng.draw()].map(u64::to_be_bytes);
        words.as_flattened().try_into().unwrap_or_default()
    }

    /// Counts a handoff to another router. Returns its number, or `None` if there is no connection to that router.
    pub(super) fn next_handoff(&mut self, router: Ipv4Addr) -> Option<u64> {
        let id = *self.channels.get(&router)?;
        let channel = channel_of(&mut self.streams, id)?;
        channel.handoffs += 1;
        Some(channel.handoffs)
    }

    /// Sends a frame on the connection that this router opened to another. Returns its length with the code in bytes,
    /// or 0 if there is no such connection.
    pub(super) fn send_to(&mut self, router: Ipv4Addr, handoff: u64, body: Body, out: &mut Outbox) -> usize {
        let Some(id) = self.channels.get(&router).copied() else { return 0 };
        self.send_on(id, handoff, body, out)
    }

    pub(super) fn send_on(&mut self, id: StreamId, handoff: u64, body: Body, out: &mut Outbox) -> usize {
        let Some(channel) = channel_of(&mut self.streams, id) else { return 0 };
        channel.send(id, &Frame { handoff, body }, out)
    }

    /// Handles an event of a connection between routers.
    pub(super) fn channel_event(
        &mut self,
        now: Instant,
        id: StreamId,
        event: StreamEvent<'_>,
        out: &mut Outbox,
    ) {
        let own = self.config.address;
        let Some(channel) = channel_of(&mut self.streams, id) else { return };
        let router = channel.peer.filter(|_| channel.opened);
        if let Some(router) = router {
            let answers = channel.up && matches!(event, StreamEvent::Room(_));
            self.channel_works(now, router, answers || matches!(event, StreamEvent::Data(_)));
        }
        let Some(channel) = channel_of(&mut self.streams, id) else { return };
        match event {
            StreamEvent::Opened(_) => {
                let body = Body::Hello { router: own, nonce: channel.nonce };
                channel.send(id, &Frame { handoff: 0, body }, out);
                out.stream(id, StreamOp::Read(CHUNK));
            }
            StreamEvent::Room(more) => channel.outgoing.grant(id, more, out),
            StreamEvent::Data(bytes) => self.channel_data(now, id, bytes, out),
            StreamEvent::Finished => {
                out.stream(id, StreamOp::Abort);
            }
            StreamEvent::Closed(_) => self.channel_lost(now, id, out),
            StreamEvent::Accepted(..) | StreamEvent::Migrate(_) => {}
        }
        if let Some(router) = router {
            self.channel_rests(router);
        }
    }

    pub(super) fn channel_data(&mut self, now: Instant, id: StreamId, bytes: &[u8], out: &mut Outbox) {
        if let Some(channel) = channel_of(&mut self.streams, id) {
            channel.frames.push(bytes);
        }
        loop {
            match self.next_frame(now, id, out) {
                Ok(true) => {}
                Ok(false) => break,
                Err(reason) => {
                    self.refused.count(reason);
                    return out.stream(id, StreamOp::Abort);
                }
            }
        }
        out.stream(id, StreamOp::Read(CHUNK));
    }

    fn next_frame(&mut self, now: Instant, id: StreamId, out: &mut Outbox) -> Result<bool, Reason> {
        let Some(channel) = channel_of(&mut self.streams, id) else { return Ok(false) };
        let Some(bytes) = channel.frames.next_frame()? else { return Ok(false) };
        if !channel.up {
            self.hello(now, id, &bytes, out)?;
            return Ok(true);
        }
        let auth = channel.auth.as_mut().ok_or(refusal::UNEXPECTED)?;
        let frame = auth.open(&bytes)?;
        if !std::mem::replace(&mut channel.proven, true) {
            channel.frames.trust();
            self.timers.stop(Timer::Caller(id));
        }
        let (opened, peer) = (channel.opened, channel.peer);
        let peer = peer.ok_or(refusal::UNEXPECTED)?;
        if opened {
            self.answered(now, peer, &frame, out)?;
        } else {
            self.offered(now, id, frame, out)?;
        }
        Ok(true)
    }

    /// Handles the first frame. It names the router, is authenticated with the key of the two routers, and has a nonce
    /// that binds all later frames to this connection.
    fn hello(&mut self, now: Instant, id: StreamId, bytes: &[u8], out: &mut Outbox) -> Result<(), Reason> {
        let own = self.config.address;
        let nonce = self.nonce();
        let Some(channel) = channel_of(&mut self.streams, id) else { return Ok(()) };
        if let Some(router) = channel.peer {
            let auth = channel.auth.as_mut().ok_or(refusal::UNEXPECTED)?;
            let Body::Hello { router: said, nonce } = auth.open(bytes)?.body else {
                return Err(refusal::UNEXPECTED);
            };
            if said != router {
                return Err(refusal::MISDIRECTED);
            }
            auth.agreed([channel.nonce, nonce]);
            channel.up = true;
            self.channel_up(now, router, out);
            return Ok(());
        }
        // The key is the key that is shared with the router that the hello names.
        let claim = bytes.get(..bytes.len().saturating_sub(16)).ok_or(Malformed("itcp_frame_truncated"))?;
        let Body::Hello { router, nonce: theirs } = Frame::parse(claim)?.body else {
            return Err(refusal::UNEXPECTED);
        };
        let key = self.routers.get(&router).ok_or(refusal::STRANGER)?;
        let mut auth = FrameAuth::new(key.clone(), false);
        auth.open(bytes)?;
        (channel.peer, channel.nonce, channel.auth) = (Some(router), nonce, Some(auth));
        channel.send(id, &Frame { handoff: 0, body: Body::Hello { router: own, nonce } }, out);
        if let Some(auth) = &mut channel.auth {
            auth.agreed([theirs, nonce]);
        }
        channel.up = true;
        Ok(())
    }

    /// Notes a new offer, which replaces earlier ones for the same host. An offer for a host that is not configured
    /// here is not noted, so a connection has at most one offer for each configured host.
    pub(super) fn note_offer(&mut self, id: StreamId, handoff: u64, host: Ipv4Addr, sequence: u64) {
        let Some(channel) = channel_of(&mut self.streams, id) else { return };
        if self.hosts.contains_key(&host) {
            channel.offers.retain(|_, offer| offer.host != host);
            channel.offers.insert(handoff, Offer { host, sequence, current: None });
        }
    }

    /// Closes earlier connections that the same router opened. That router uses the connection `id`, so the earlier
    /// connections are broken at that router. Frames that are still in flight on them must have no effect. The code of
    /// the first frame after the hello has proved that the hello on `id` is not a replay.
    pub(super) fn supersede(&mut self, id: StreamId, out: &mut Outbox) {
        let Some(StreamUse::Router(channel)) = self.streams.get(&id) else { return };
        let peer = channel.peer;
        let earlier = |(other, what): (&StreamId, &StreamUse)| match what {
            StreamUse::Router(channel) if !channel.opened && channel.peer == peer && *other != id => {
                Some(*other)
            }
            _ => None,
        };
        let earlier: Vec<StreamId> = self.streams.iter().filter_map(earlier).collect();
        for other in earlier {
            out.stream(other, StreamOp::Abort);
            self.channel_ended(other, out);
        }
    }

    /// Removes a connection between routers. State that came by this connection and was not taken is discarded. Returns
    /// the other router if this was the connection that this router opened to it.
    fn channel_ended(&mut self, id: StreamId, out: &mut Outbox) -> Option<Ipv4Addr> {
        let Some(StreamUse::Router(channel)) = self.streams.remove(&id) else { return None };
        self.timers.stop(Timer::Caller(id));
        for offer in channel.offers.values() {
            self.arrival_interrupted(offer.host, id, out);
        }
        channel.peer.filter(|router| self.channels.get(router) == Some(&id))
    }

    /// Restarts the stall timer of a connection that this router opened. If the other router accepts or sends bytes
    /// (`answers`), also restarts the give-up timers of all hosts whose connections go to that router.
    fn channel_works(&mut self, now: Instant, router: Ipv4Addr, answers: bool) {
        self.timers.set(Timer::Stalled(router), now + STALLED);
        let waits = |host: &Host| answers && host.waits_for(router);
        let hosts = self.hosts.iter().filter(|(_, host)| waits(host)).map(|(address, _)| *address);
        for address in hosts.collect::<Vec<_>>() {
            self.progress(now, address);
        }
    }

    /// Stops the stall timer if the connection is not needed: a connection that is not needed may be silent.
    pub(super) fn channel_rests(&mut self, router: Ipv4Addr) {
        if !self.is_needed(router) {
            self.timers.stop(Timer::Stalled(router));
        }
    }

    /// Closes the connection to another router, which has shown no activity, if the connection is needed. On a new
    /// connection, this router asks about the commits and repeats the offers.
    pub(super) fn stalled(&mut self, router: Ipv4Addr, out: &mut Outbox) {
        if self.is_needed(router) {
            self.hang_up_on(router, out);
        }
    }

    /// Aborts the connection that this router opened to another.
    pub(super) fn hang_up_on(&mut self, router: Ipv4Addr, out: &mut Outbox) {
        if let Some(id) = self.channels.get(&router).copied() {
            out.stream(id, StreamOp::Abort);
        }
    }

    fn channel_lost(&mut self, now: Instant, id: StreamId, out: &mut Outbox) {
        let Some(router) = self.channel_ended(id, out) else { return };
        self.channels.remove(&router);
        for departure in self.hosts.values_mut().filter_map(|host| host.departure.as_mut()) {
            if departure.to == router {
                (departure.handoff, departure.accepted) = (None, false);
            }
        }
        if self.is_needed(router) {
            self.timers.set(Timer::Reopen(router), now + RETRY);
        }
    }

    /// Returns whether an offer to `router`, or a question about a commit, is pending.
    fn is_needed(&self, router: Ipv4Addr) -> bool {
        self.hosts.values().any(|host| host.waits_for(router))
    }

    /// Opens a broken connection to another router again, if it is still needed.
    pub(super) fn reopen_channel(&mut self, now: Instant, router: Ipv4Addr, out: &mut Outbox) {
        if self.is_needed(router) {
            self.open_channel(now, router, out);
        }
    }

    /// Continues after the hellos of a connection were exchanged: asks about the commits first, then sends the offers.
    fn channel_up(&mut self, now: Instant, router: Ipv4Addr, out: &mut Outbox) {
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
