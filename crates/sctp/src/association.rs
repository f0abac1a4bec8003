//! An association: its state, and the calls of its user (RFC 9260, section 11.1).

pub(crate) mod asconf_in;
pub(crate) mod asconf_out;
pub(crate) mod detour;
pub(crate) mod handshake;
pub(crate) mod receive;
pub(crate) mod restart;
pub(crate) mod route;
pub(crate) mod second_opening;
pub(crate) mod timers;
pub(crate) mod transmit;

use crate::Config;
use crate::association::asconf_in::AsconfIn;
use crate::association::asconf_out::AsconfOut;
use crate::association::detour::Detour;
use crate::association::route::Routes;
use crate::event::{AssociationEvent, Change, Ended, RequestError, State};
use crate::inbound::{Inbound, Piece};
use crate::keys::{self, Keys};
use crate::local_addresses::{AddressUse, LocalAddresses};
use crate::message::{Cause, Chunk, Code, Init, Packet, Parameter};
use crate::outbound::{Counts, Outbound};
use crate::path::{PathInfo, PathState, Paths};
use crate::secret_rng::SecretRng;
use crate::tsn::begin;
use crate::unicast::unicast;
use std::collections::VecDeque;
use std::sync::Arc;
use wire::{Instant, Ipv4Addr};

/// A packet to send: the payload of an IP packet of protocol 132, and its addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// The source address that the IP packet must have.
    pub src: Ipv4Addr,
    /// The destination address of the IP packet: an address of the peer, or of the host whose packet is answered.
    pub dst: Ipv4Addr,
    /// The SCTP packet: common header and chunks, with the right checksum.
    pub bytes: Vec<u8>,
    /// `Some(n)`: the packet is larger than the path MTU, as its chunk was built before the MTU was lowered. It must
    /// leave without DF, in IP fragments of at most `n` bytes each (RFC 9260, sections 6.9 and 7.3). `None`:
    /// unfragmented, with DF.
    pub cut: Option<u16>,
}

impl Transmit {
    pub(crate) const fn new(src: Ipv4Addr, dst: Ipv4Addr, bytes: Vec<u8>) -> Self {
        Self { src, dst, bytes, cut: None }
    }
}

/// The two ends of an association that is to be opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Open {
    /// Our addresses: at least one. The first INIT leaves from the first one.
    pub local: Vec<Ipv4Addr>,
    /// The port of this end.
    pub local_port: u16,
    /// The known addresses of the peer, at least one. INIT goes to the first, and after each time-out to the next in
    /// turn. [`Association::try_at`] can add an address.
    pub peer: Vec<Ipv4Addr>,
    /// The port of the peer, where it listens.
    pub peer_port: u16,
}

/// Why a message was not accepted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum WriteError {
    /// The association is not open, or one of the ends has finished.
    NotOpen,
    /// The message is larger than the room: see [`Association::room`].
    NoRoom,
    /// The stream number is not less than [`Association::streams`].
    Stream,
    /// The message is empty. RFC 9260, section 3.3.1, requires at least one byte.
    Empty,
}

/// One end of an association. An [`crate::Endpoint`] holds the associations and routes packets to them.
#[derive(Clone, Debug)]
pub struct Association {
    pub(crate) config: Arc<Config>,
    pub(crate) rng: SecretRng,
    pub(crate) local_port: u16,
    pub(crate) peer_port: u16,
    pub(crate) state: State,
    /// The verification tags: `local_tag` of packets from the peer, `peer_tag` of our packets (0 if not known yet).
    pub(crate) local_tag: u32,
    pub(crate) peer_tag: u32,
    /// The tie-tags for the cookie of an INIT that matches this association. They are random numbers instead of the
    /// verification tags, as other hosts may read a cookie (RFC 5062, section 3.3).
    pub(crate) ties: (u32, u32),
    /// Our INIT or INIT ACK, without the cookie.
    pub(crate) init: Init,
    pub(crate) locals: LocalAddresses,
    pub(crate) paths: Paths,
    pub(crate) routes: Routes,
    pub(crate) inbound: Inbound,
    pub(crate) outbound: Outbound,
    pub(crate) keys: Option<Keys>,
    /// Number of failures in a row, over all paths.
    pub(crate) errors: u32,
    /// Number of returns of our link since the last call of `heard`.
    pub(crate) returns: u32,
    /// Number of addresses from a directory that were tried since the peer last answered.
    pub(crate) tried: usize,
    pub(crate) opening: handshake::Opening,
    /// While COOKIE ECHO is not answered: a second opening of the same association, which waits for INIT ACK.
    pub(crate) second: Option<Box<Self>>,
    /// When T1 expires while the association opens, or T2 while it shuts down.
    pub(crate) timer: Option<Instant>,
    /// T5: when a shutdown is given up.
    pub(crate) guard: Option<Instant>,
    pub(crate) shutdown_due: bool,
    /// `shutdown_to`: the destination of our last SHUTDOWN or SHUTDOWN ACK, or of the next one. `shutdown_by`: our
    /// address that the peer's SHUTDOWN came to.
    pub(crate) shutdown_to: Option<Ipv4Addr>,
    pub(crate) shutdown_by: Option<Ipv4Addr>,
    pub(crate) asconf_out: AsconfOut,
    pub(crate) asconf_in: AsconfIn,
    pub(crate) outbox: VecDeque<Transmit>,
    pub(crate) events: VecDeque<AssociationEvent>,
    /// The last DATA chunk came to the first address, which is ours, from the second, which is the peer's.
    pub(crate) arriving: Option<(Ipv4Addr, Ipv4Addr)>,
    pub(crate) detour: Detour,
    /// A message was written since the last call of `allow_bursts_again`.
    pub(crate) written: bool,
    /// No probe of an unconfirmed address that the peer has named begins before this time (HB.Max.Burst).
    pub(crate) probing: Instant,
    pub(crate) data_path: Ipv4Addr,
    /// The peer's addresses may differ from those in the endpoint's index.
    pub(crate) moved: bool,
}

/// Returns our INIT or INIT ACK, without a cookie.
pub(crate) fn introduction(
    config: &Config,
    tag: u32,
    tsn: u32,
    random: [u8; 32],
    locals: &[Ipv4Addr],
) -> Init {
    let mut parameters = Vec::new();
    // A single address is not listed: the IP header has it as the source (RFC 9260, section 5.1.2).
    if locals.len() > 1 {
        parameters.extend(locals.iter().map(|address| Parameter::Ipv4(*address)));
    }
    parameters.push(Parameter::AddressTypes(vec![5]));
    parameters.extend(keys::parameters(config, random));
    let (outbound, inbound) = (config.streams.max(1), config.streams.max(1));
    let a_rwnd = config.window();
    Init { tag, a_rwnd, outbound, inbound, tsn, parameters }
}

impl Association {
    /// Returns an association in the state CLOSED, without any parameter of the peer but its address and port.
    pub(crate) fn new(
        now: Instant,
        config: &Arc<Config>,
        rng: SecretRng,
        init: Init,
        locals: &[Ipv4Addr],
        peer: Ipv4Addr,
        ports: (u16, u16),
    ) -> Self {
        let mut rng = rng;
        let ties = (rng.tag(), rng.tag());
        let tsn = init.tsn;
        Self {
            config: Arc::clone(config),
            rng,
            local_port: ports.0,
            peer_port: ports.1,
            state: State::Closed,
            local_tag: init.tag,
            peer_tag: 0,
            ties,
            init,
            locals: LocalAddresses::new(locals),
            paths: Paths::new(now, peer, config),
            routes: Routes::default(),
            inbound: Inbound::new(begin(0), config.window(), config.streams),
            outbound: Outbound::new(tsn, config.send_buffer, config.streams, 0),
            keys: None,
            errors: 0,
            returns: 0,
            tried: 0,
            opening: handshake::Opening::default(),
            second: None,
            timer: None,
            guard: None,
            shutdown_due: false,
            shutdown_to: None,
            shutdown_by: None,
            written: false,
            asconf_out: AsconfOut::new(tsn),
            asconf_in: AsconfIn::default(),
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            arriving: None,
            detour: Detour::default(),
            probing: Instant::ZERO,
            data_path: peer,
            moved: true,
        }
    }

    // --- calls of the user about data ------------------------------------------------------------------------------

    /// Queues a message for `stream`, with the payload protocol identifier `ppid`. On an error, no byte is queued.
    pub fn write(&mut self, stream: u16, ppid: u32, bytes: &[u8]) -> Result<(), WriteError> {
        self.writable(stream, bytes)?;
        self.outbound.write(stream, ppid, false, bytes);
        self.written = true;
        Ok(())
    }

    /// Queues a message that may overtake others of its stream (RFC 9260, section 6.6). Fails as [`Self::write`]
    /// does.
    pub fn write_unordered(&mut self, stream: u16, ppid: u32, bytes: &[u8]) -> Result<(), WriteError> {
        self.writable(stream, bytes)?;
        self.outbound.write(stream, ppid, true, bytes);
        self.written = true;
        Ok(())
    }

    fn writable(&self, stream: u16, bytes: &[u8]) -> Result<(), WriteError> {
        match bytes {
            _ if self.state != State::Established => Err(WriteError::NotOpen),
            [] => Err(WriteError::Empty),
            _ if stream >= self.outbound.streams => Err(WriteError::Stream),
            _ if bytes.len() > self.room() => Err(WriteError::NoRoom),
            _ => Ok(()),
        }
    }

    /// Returns the number of bytes that may be written now. Zero in all states except ESTABLISHED.
    /// [`AssociationEvent::Room`] reports each increase.
    pub fn room(&self) -> usize {
        if self.state == State::Established { self.outbound.room() } else { 0 }
    }

    /// Returns the number of bytes that were written, and that no cumulative acknowledgment covers yet.
    pub const fn unacknowledged(&self) -> usize {
        self.outbound.held()
    }

    /// Returns the next piece of a message, of at most `most` bytes, or `None` if there is nothing to read or `most` is
    /// 0. Reading opens the receive window.
    pub fn read(&mut self, most: usize) -> Option<Piece> {
        self.inbound.read(most)
    }

    /// Returns whether a piece of a message can be read now.
    pub fn readable(&self) -> bool {
        self.inbound.readable()
    }

    /// Returns the number of bytes of the receive buffer that are in use, including incomplete messages. A chunk of
    /// less than 16 bytes counts as 16 bytes; the excess is counted until the buffer is empty.
    pub const fn unread(&self) -> usize {
        self.inbound.held()
    }

    /// Shuts down an established association: written data are still delivered, and then the association ends in both
    /// directions. An association that is opening ends at once, without a packet. In all other states the call has no
    /// effect.
    pub fn finish(&mut self, now: Instant) {
        match self.state {
            State::Established => {
                self.state = State::ShutdownPending;
                self.outbound.finish();
            }
            State::CookieWait | State::CookieEchoed => self.end(Ended::Aborted),
            _ => {}
        }
        self.settle(now);
    }

    /// Aborts the association, unless it has ended. Sends ABORT if the peer's tag is known and an address of ours may
    /// send.
    pub fn abort(&mut self) {
        if self.state != State::Closed {
            self.abort_with(Cause::new(Code::USER_INITIATED_ABORT, []), Ended::Aborted);
        }
    }

    // --- calls of the user about addresses and the link ------------------------------------------------------------

    /// Asks the peer for changes of our own addresses, all in one chunk, in the order of `changes`.
    /// [`AssociationEvent::Changed`] reports the answer to each. If one of them is invalid, an error is returned and
    /// none is requested.
    pub fn change(&mut self, now: Instant, changes: &[Change]) -> Result<(), RequestError> {
        self.request(now, changes)
    }

    /// Prefers `local` as the source of packets to `peer`, or to all addresses of the peer if `peer` is `None`. Packets
    /// of all kinds leave from `local` when the peer has confirmed it (RFC 5061, section 5.3), unless a detour is in
    /// use. Measurements of the old route are reset (RFC 9260, section 7.2.5.2). Fails with [`RequestError::Unknown`]
    /// if `local` is not an address of this end, or `peer` not an address of the peer.
    ///
    /// A change that waits for an answer is sent again at once, as the old address may no longer work. If `peer` is
    /// `None` and no detour is in use, the change leaves from `local`, even if it deletes `local`: the host has
    /// returned there, and an answer to another address does not reach the host.
    pub fn prefer(
        &mut self,
        now: Instant,
        peer: Option<Ipv4Addr>,
        local: Ipv4Addr,
    ) -> Result<(), RequestError> {
        if !matches!(
            self.locals.get(local),
            Some(AddressUse::All | AddressUse::Adding | AddressUse::Deleting | AddressUse::Here)
        ) {
            return Err(RequestError::Unknown);
        }
        let before = self.sources();
        match peer {
            None => {
                self.locals.prefer(local);
                self.paths.iter_mut().for_each(|path| path.source = None);
            }
            Some(peer) => self.paths.get_mut(peer).ok_or(RequestError::Unknown)?.source = Some(local),
        }
        self.rerouted(&before);
        self.asconf_out.hasten(now);
        Ok(())
    }

    /// Prefers `local` as the source of packets to all addresses of the peer. In contrast to [`Self::prefer`], the peer
    /// need not have been asked to add `local` yet. Until the peer has confirmed `local`, only a change that is not
    /// answered, COOKIE ECHO, and answers to packets that came to `local` leave from `local`. `here`: all addresses
    /// that this host has now. No packet leaves from any other address, as no answer would come back. Fails with
    /// [`RequestError::Address`] if `local` is not unicast, and with [`RequestError::Unsupported`] if the peer does not
    /// support address changes.
    pub fn move_to(&mut self, now: Instant, local: Ipv4Addr, here: &[Ipv4Addr]) -> Result<(), RequestError> {
        if !unicast(local) {
            return Err(RequestError::Address);
        }
        // A peer without support continues to send to the old address. So a move has no effect, and time-outs end the
        // association.
        if !self.asconf_out.supported {
            return Err(RequestError::Unsupported);
        }
        if matches!(self.locals.get(local), None | Some(AddressUse::Gone(_))) {
            self.locals.set(local, AddressUse::Here);
        }
        let before = self.sources();
        self.locals.are_here(here);
        self.rerouted(&before);
        self.prefer(now, None, local)
    }

    /// Makes `peer` the primary address, to which new data go (RFC 9260, section 11.1.6). Fails with
    /// [`RequestError::Unknown`] if the peer does not have this address, or if the address is not confirmed.
    pub fn set_primary(&mut self, now: Instant, peer: Ipv4Addr) -> Result<(), RequestError> {
        let path = self.paths.get_mut(peer).filter(|path| path.confirmed).ok_or(RequestError::Unknown)?;
        path.superseded = false;
        self.paths.primary = peer;
        self.settle(now);
        Ok(())
    }

    /// Handles a router's report that the path to `peer` carries IP packets of at most `mtu` bytes. A report that
    /// does not lower the MTU has no effect. Chunks in flight that are too large are sent again at once.
    pub(crate) fn too_big(&mut self, peer: Ipv4Addr, mtu: u16) {
        if self.paths.get_mut(peer).is_some_and(|path| path.lower_mtu(mtu)) {
            self.outbound.lose_the_large(&mut self.paths, peer);
            self.paths.allow_bursts(self.config.max_burst);
        }
    }

    /// Handles the return of our link after an interruption. A request that waits for an answer is sent again at once:
    /// INIT, COOKIE ECHO, ASCONF or SHUTDOWN. If data wait for a backed-off time-out, one packet of them is sent on
    /// each path. A HEARTBEAT shows the peer that this host can be reached.
    pub fn link_returned(&mut self, now: Instant) {
        // Time-outs without a link do not show that the peer failed. But each return of the link counts as at most one
        // failure, if the peer did not answer after the previous return. Otherwise an association with a dead peer
        // would never end if the link comes and goes (RFC 9260, section 8.1).
        self.errors = self.errors.min(self.returns);
        self.returns = self.returns.saturating_add(1);
        self.asconf_out.hasten(now);
        self.shutdown_due |= self.waits_for_shutdown();
        if !self.is_open() {
            return self.hasten_opening();
        }
        let addresses: Vec<Ipv4Addr> = self.paths.iter().map(|path| path.address).collect();
        for address in addresses {
            self.paths.get_mut(address).into_iter().for_each(|path| path.woken = None);
            self.wake(now, address);
            // Time-outs without a link do not show that the path failed, so its back-off ends.
            self.paths.get_mut(address).into_iter().for_each(|path| path.end_back_off(now));
        }
        self.announce(now);
        self.probe_again(now);
        self.settle(now);
    }

    // --- calls of the user about the state -------------------------------------------------------------------------

    /// Returns the next event, or `None` if there is none. The caller polls until `None`.
    pub fn poll_event(&mut self) -> Option<AssociationEvent> {
        self.events.pop_front()
    }

    /// Returns the state of the association (RFC 9260, section 4).
    pub const fn state(&self) -> State {
        self.state
    }

    /// Returns the port of this end and the port of the peer.
    pub const fn ports(&self) -> (u16, u16) {
        (self.local_port, self.peer_port)
    }

    /// Returns our addresses that the peer has: those of the handshake, and those whose addition the peer has
    /// confirmed. An address whose deletion was requested is left out.
    pub fn local_addresses(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.locals.with(AddressUse::All)
    }

    /// Returns the state of each path. There is one path for each address of the peer.
    pub fn paths(&self) -> impl Iterator<Item = PathInfo> {
        self.paths.iter().map(|path| PathInfo {
            address: path.address,
            state: path.state,
            primary: path.address == self.paths.primary,
            cwnd: path.cwnd,
            ssthresh: path.ssthresh,
            flight: path.flight,
            rto: path.rto.current(),
            srtt: path.rto.srtt(),
            errors: path.errors,
        })
    }

    /// Returns the number of streams for writing. Streams are numbered from 0.
    pub const fn streams(&self) -> u16 {
        self.outbound.streams
    }

    /// Returns whether addresses can be changed: both ends support it, with authentication.
    pub(crate) const fn reconfigurable(&self) -> bool {
        self.asconf_out.supported && self.keys.is_some()
    }

    /// Returns the counts of retransmissions since the association began.
    pub const fn counts(&self) -> Counts {
        self.outbound.counts
    }

    // --- functions for several modules of an association -----------------------------------------------------------

    /// Returns whether the association was established and has not ended. True during a shutdown. Addresses can be
    /// changed only in this time.
    pub const fn is_open(&self) -> bool {
        !matches!(self.state, State::Closed | State::CookieWait | State::CookieEchoed)
    }

    /// Returns whether SHUTDOWN or SHUTDOWN ACK was sent and is not answered.
    pub(crate) const fn waits_for_shutdown(&self) -> bool {
        matches!(self.state, State::ShutdownSent | State::ShutdownAckSent)
    }

    /// Reports a change of the data path, continues a shutdown, and probes an unconfirmed address if a probe is due.
    pub(crate) fn settle(&mut self, now: Instant) {
        if !self.is_open() {
            return;
        }
        let data_path = self.paths.for_data();
        if data_path != self.data_path {
            let from = std::mem::replace(&mut self.data_path, data_path);
            self.events.push_back(AssociationEvent::Switched { from, to: data_path });
        }
        self.shut_down_further(now);
        self.probe_the_new(now);
    }

    pub(crate) fn path_event(&mut self, address: Ipv4Addr, state: PathState) {
        self.events.push_back(AssociationEvent::Path(address, state));
    }

    /// Resets the counters of failures, because the peer has answered.
    pub(crate) const fn heard(&mut self) {
        (self.errors, self.returns, self.tried) = (0, 0, 0);
    }

    /// Resets the counters of failures, because a HEARTBEAT was answered. While data are outstanding, the
    /// association's counter of failures does not change (RFC 9260, section 8.1). Otherwise a path that carries
    /// HEARTBEATs but no data would keep the association open without end, and without an error.
    pub(crate) fn probe_was_answered(&mut self) {
        if self.outbound.is_outstanding() {
            self.tried = 0;
        } else {
            self.heard();
        }
    }

    /// Counts a failure of the association, and reports the second and each later one in a row. Returns whether the
    /// failure ended the association.
    pub(crate) fn failed(&mut self) -> bool {
        self.errors = self.errors.saturating_add(1);
        if self.errors > self.config.association_max_retrans {
            self.end(Ended::TimedOut);
            return true;
        }
        if self.errors > 1 {
            self.events.push_back(AssociationEvent::Silent(self.errors));
        }
        false
    }

    pub(crate) fn end(&mut self, why: Ended) {
        if self.state != State::Closed {
            self.state = State::Closed;
            (self.timer, self.guard, self.second) = (None, None, None);
            (self.inbound.delayed, self.inbound.due) = (None, false);
            self.moved = true;
            self.events.push_back(AssociationEvent::Closed(why));
        }
    }

    /// Ends the association, and sends ABORT if the peer's tag is known and an address of ours may send.
    pub(crate) fn abort_with(&mut self, cause: Cause, why: Ended) {
        let to = self.paths.for_data();
        let source = self.locals.source(&[self.paths.get(to).and_then(|path| path.source)]);
        if self.peer_tag != 0
            && let Some(src) = source
        {
            let bytes = self.seal(vec![Chunk::Abort { reflected: false, causes: vec![cause] }]);
            self.outbox.push_back(Transmit::new(src, to, bytes));
        }
        self.end(why);
    }

    pub(crate) fn violated(&mut self, what: &'static str) {
        self.abort_with(Cause::new(Code::PROTOCOL_VIOLATION, what), Ended::Violation(what));
    }

    /// Returns a packet with `chunks`, in bytes. If the peer requires authentication of a chunk, AUTH precedes
    /// the first such chunk (RFC 4895, section 6.2).
    pub(crate) fn seal(&self, mut chunks: Vec<Chunk>) -> Vec<u8> {
        let packet = |chunks| Packet {
            src_port: self.local_port,
            dst_port: self.peer_port,
            tag: self.peer_tag,
            chunks,
        };
        let Some(keys) = &self.keys else { return packet(chunks).emit() };
        match chunks.iter().position(|chunk| keys.peer_wants(chunk.kind())) {
            None => packet(chunks).emit(),
            Some(at) => {
                chunks.insert(at, keys.chunk());
                packet(chunks).emit_signed(|covered| keys.sign(covered))
            }
        }
    }
}
