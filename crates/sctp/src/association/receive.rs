//! Packets that this end receives (RFC 9260, sections 6 and 8.5).

use crate::association::{Association, Transmit};
use crate::event::{AssociationEvent, Ended, State};
use crate::inbound::Taken;
use crate::keys::AuthFailure;
use crate::local_addresses::AddressUse;
use crate::message::{Cause, Chunk, Code, Data, HEADER, Packet, Sack, authenticated, kind};
use crate::outbound::{AckEffects, Unsent};
use crate::path::PathState;
use crate::tsn::Tsn;
use wire::{Instant, Ipv4Addr, Malformed, Reader, Reason, ipv4};

/// Number of bytes that an answer leaves free in its packet: the length of the longest AUTH chunk.
const SLACK: usize = 40;

/// A summary of the DATA chunks of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DataSeen {
    /// The packet has no DATA chunk.
    None,
    /// All DATA chunks were dropped: there was no room, or their TSNs were too high.
    Dropped,
    /// No DATA chunk is new, and some are duplicates. The value is the lowest TSN of the duplicates.
    Repeated(Tsn),
    /// At least one DATA chunk is new.
    New,
}

impl DataSeen {
    /// Returns the summary after one more DATA chunk.
    fn and(self, taken: Taken) -> Self {
        match (self, taken) {
            (_, Taken::New) | (Self::New, _) => Self::New,
            (Self::Repeated(first), Taken::Known(tsn)) => Self::Repeated(first.min(tsn)),
            (_, Taken::Known(first)) | (Self::Repeated(first), Taken::Dropped) => Self::Repeated(first),
            (Self::None | Self::Dropped, Taken::Dropped) => Self::Dropped,
        }
    }
}

/// The state while one packet is processed.
pub(crate) struct PacketContext<'a> {
    pub(crate) now: Instant,
    pub(crate) src: Ipv4Addr,
    pub(crate) dst: Ipv4Addr,
    /// A valid AUTH chunk precedes the present chunk of the packet.
    pub(crate) authenticated: bool,
    /// Addresses that this packet would add, and that other associations with the same ports have.
    pub(crate) taken: &'a [Ipv4Addr],
    /// Replies to this packet. They leave in one packet, as several would amplify an attack.
    pub(crate) replies: Vec<Chunk>,
    pub(crate) causes: Vec<Cause>,
    /// An ASCONF precedes the present chunk of the packet.
    pub(crate) asconf: bool,
    data: DataSeen,
}

impl<'a> PacketContext<'a> {
    pub(crate) const fn new(now: Instant, src: Ipv4Addr, dst: Ipv4Addr, taken: &'a [Ipv4Addr]) -> Self {
        Self {
            now,
            src,
            dst,
            authenticated: false,
            taken,
            replies: Vec::new(),
            causes: Vec::new(),
            asconf: false,
            data: DataSeen::None,
        }
    }
}

/// Returns whether the T bit is set (RFC 9260, section 8.5.1, B and C).
const fn is_reflected(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Abort { reflected: true, .. } | Chunk::ShutdownComplete { reflected: true })
}

impl Association {
    /// Handles a packet whose ports are this association's. An error is the reason why the packet, or a part of it,
    /// was dropped.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        (src, dst): (Ipv4Addr, Ipv4Addr),
        packet: &Packet,
        bytes: &[u8],
        taken: &[Ipv4Addr],
    ) -> Result<(), Reason> {
        if let Some(verdict) = self.second_hears(now, (src, dst), packet, bytes) {
            return verdict;
        }
        if !self.locals.receives(now, dst) {
            return Err(Reason("sctp_not_our_address"));
        }
        let reflected = self.check_tag(dst, packet)?;
        self.paths.allow_bursts(self.config.max_burst);
        let mut context = PacketContext::new(now, src, dst, taken);
        let mut verdict = Ok(());
        // A host that reflects a tag has no association, so only its ABORT or SHUTDOWN COMPLETE counts. Other chunks
        // in the packet are ignored, because the packet does not contain our own tag.
        let says = |chunk: &&Chunk| !reflected || is_reflected(chunk);
        for chunk in packet.chunks.iter().filter(says) {
            verdict = self.chunk(&mut context, chunk, bytes);
            if verdict.is_err() || self.state == State::Closed {
                break;
            }
        }
        if context.data != DataSeen::None {
            self.inbound.packet_ends(now, self.config.sack_delay);
            match context.data {
                DataSeen::New => self.data_came(now, dst, None),
                DataSeen::Repeated(first) => self.data_came(now, dst, Some(first)),
                DataSeen::None | DataSeen::Dropped => {}
            }
            if self.state == State::ShutdownSent {
                (self.shutdown_due, self.inbound.due) = (true, true); // RFC 9260, section 9.2
            }
        }
        self.answer(context);
        // An ASCONF does not prove that the peer has added `dst`: a directory may have given `dst` to the peer.
        let uses = |chunk: &Chunk| !matches!(chunk, Chunk::Auth(_) | Chunk::Asconf(_));
        // The host may have returned to an address whose deletion it requested. If the peer still uses this address,
        // it has refused the deletion, or did not receive the request.
        let back = self.locals.get(dst) == Some(AddressUse::Deleting) && self.locals.preferred == Some(dst);
        let asked = back || self.locals.get(dst) == Some(AddressUse::Adding);
        if asked && verdict.is_ok() && packet.chunks.iter().any(uses) {
            let pause = self.paths.get(src).map_or(self.config.rto_initial, |path| path.rto.backing().0);
            self.asconf_out.answer_was_lost(now, pause);
        }
        self.heard_from(now, src);
        self.probe_chosen_source(now, dst, src);
        self.wake(now, src);
        self.probe_where_heard(now, src);
        self.settle(now);
        verdict
    }

    /// Checks the verification tag (RFC 9260, sections 8.5 and 8.5.1). Returns whether the tag is that of our
    /// packets, reflected by a host without the association.
    fn check_tag(&self, dst: Ipv4Addr, packet: &Packet) -> Result<bool, Reason> {
        let reflected = packet.chunks.iter().any(is_reflected);
        let expected = if reflected { self.peer_tag } else { self.local_tag };
        if expected == 0 || packet.tag != expected {
            return Err(Reason("sctp_tag"));
        }
        // Another host may have our old address now, and its packets must not end the association (RFC 5061, section
        // 5.3, F4). The check does not apply if this host has returned to the address.
        let leaving = matches!(self.locals.get(dst), Some(AddressUse::Deleting | AddressUse::Gone(_)))
            && self.locals.preferred != Some(dst);
        if leaving && packet.chunks.iter().any(|chunk| matches!(chunk, Chunk::Abort { .. })) {
            return Err(Reason("sctp_abort_to_old_address"));
        }
        Ok(reflected)
    }

    fn chunk(&mut self, context: &mut PacketContext<'_>, chunk: &Chunk, bytes: &[u8]) -> Result<(), Reason> {
        let kind = chunk.kind();
        if kind == kind::AUTH {
            return self.authenticate(context, chunk, bytes);
        }
        // ASCONF and ASCONF-ACK without AUTH are dropped, even of a peer that does not support AUTH (RFC 5061,
        // sections 4.1.1 and 4.1.2).
        let is_signed_only = matches!(chunk, Chunk::Asconf(_) | Chunk::AsconfAck(_))
            || self.keys.as_ref().is_some_and(|keys| keys.we_want(kind));
        if !context.authenticated && is_signed_only {
            return Err(Reason("sctp_unauthenticated"));
        }
        // From an address that is not the peer's, only an authenticated ASCONF or COOKIE ECHO counts; INIT ACK may
        // come from any address.
        let known = self.paths.get(context.src).is_some();
        let exempt = matches!(chunk, Chunk::InitAck(_))
            || (context.authenticated && matches!(chunk, Chunk::Asconf(_) | Chunk::CookieEcho(_)));
        if !known && !exempt {
            return Err(Reason("sctp_unknown_source"));
        }
        self.counts_from(context.now, context.src, chunk)?;
        match chunk {
            Chunk::Data(data) => self.data(context, data),
            Chunk::Sack(sack) => self.sack(context.now, sack),
            Chunk::InitAck(ack) => self.init_ack(context.now, context.src, ack),
            Chunk::CookieAck => self.cookie_ack(context.now, context.src),
            Chunk::Heartbeat(info) if self.peer_tag != 0 => {
                context.replies.push(Chunk::HeartbeatAck(info.clone()));
            }
            Chunk::HeartbeatAck(info) => self.heartbeat_ack(context.now, context.dst, info),
            Chunk::Abort { causes, .. } => self.abort_came(causes),
            Chunk::Error(causes) => self.errors_came(causes),
            Chunk::Shutdown(cumulative) => self.shutdown_came(context, *cumulative),
            Chunk::ShutdownAck => self.shutdown_ack_came(context),
            Chunk::ShutdownComplete { .. } if self.state == State::ShutdownAckSent => {
                self.end(Ended::Finished);
            }
            Chunk::Asconf(asconf) => {
                if context.authenticated {
                    self.cookie_ack_was_lost(context.now, context.src);
                }
                self.asconf_came(context, asconf);
            }
            Chunk::AsconfAck(ack) if self.is_open() => self.asconf_ack_came(context.now, ack),
            // The second bit of an unknown type requires a report (RFC 9260, section 3.2). The parser has already
            // used the first bit, which decides whether later chunks are read.
            Chunk::Unknown { kind, .. } if kind & 0x40 != 0 => {
                context.causes.push(Cause::new(Code::UNRECOGNIZED_CHUNK, chunk.emit()));
            }
            // The endpoint handles INIT and COOKIE ECHO.
            _ => {}
        }
        Ok(())
    }

    /// Verifies AUTH (RFC 4895, section 6.3). On an error, all chunks behind AUTH are dropped as well.
    fn authenticate(
        &mut self,
        context: &mut PacketContext<'_>,
        chunk: &Chunk,
        bytes: &[u8],
    ) -> Result<(), Reason> {
        let (Chunk::Auth(auth), Some(keys), Some(covered)) = (chunk, &self.keys, authenticated(bytes)) else {
            return Err(Reason("sctp_auth_without_key"));
        };
        match keys.verify(auth, covered) {
            Ok(()) => {
                context.authenticated = true;
                self.paths.get_mut(context.src).into_iter().for_each(|path| path.signed = true);
                Ok(())
            }
            Err(AuthFailure::Algorithm) => {
                context.causes.push(Cause::new(Code::UNSUPPORTED_HMAC, auth.hmac_id.to_be_bytes()));
                Err(Reason("sctp_auth_algorithm"))
            }
            Err(AuthFailure::KeyId) => Err(Reason("sctp_auth_key")),
            Err(AuthFailure::Code) => Err(Reason("sctp_auth_code")),
        }
    }

    /// Sends the replies and errors of `context` in one packet. Replies that do not fit the packet are dropped, and
    /// ASCONF-ACK is shortened.
    pub(crate) fn answer(&mut self, context: PacketContext<'_>) {
        let mut chunks = context.replies;
        if !context.causes.is_empty() && self.peer_tag != 0 {
            chunks.push(Chunk::Error(context.causes));
        }
        let mut room = self.answer_room(context.src);
        chunks.retain_mut(|chunk| {
            if let Chunk::AsconfAck(ack) = chunk {
                ack.cut(room);
            }
            let len = chunk.emit().len();
            let fits = len <= room;
            room -= if fits { len } else { 0 };
            fits
        });
        if !chunks.is_empty() {
            self.reply(context.src, context.dst, chunks);
        }
    }

    /// Returns the number of bytes for chunks in an answer to `peer`, beside IP header, common header and AUTH.
    pub(crate) fn answer_room(&self, peer: Ipv4Addr) -> usize {
        let mtu = self.paths.get(peer).map_or(self.config.mtu, |path| path.mtu);
        usize::from(mtu).saturating_sub(ipv4::HEADER + HEADER + SLACK)
    }

    /// Sends a packet to `src`, from the address `dst` that the peer's packet came to. `dst` may be an address whose
    /// addition is not confirmed: the peer knows it already, and a probe must be answered from its destination. `dst`
    /// may be an address whose deletion was requested, if the host has returned to it. If the host does not have
    /// `dst`, the packet leaves from another address.
    pub(crate) fn reply(&mut self, src: Ipv4Addr, dst: Ipv4Addr, chunks: Vec<Chunk>) {
        let here =
            matches!(self.locals.get(dst), Some(AddressUse::All | AddressUse::Adding | AddressUse::Here))
                || self.locals.preferred == Some(dst);
        let Some(from) = Some(dst).filter(|_| here).or_else(|| self.locals.source(&[])) else { return };
        let bytes = self.seal(chunks);
        self.outbox.push_back(Transmit::new(from, src, bytes));
    }

    // --- data and acknowledgments ----------------------------------------------------------------------------------

    /// Handles a DATA chunk (RFC 9260, section 6.2).
    fn data(&mut self, context: &mut PacketContext<'_>, data: &Data) {
        if !matches!(self.state, State::Established | State::ShutdownPending | State::ShutdownSent) {
            return;
        }
        if data.data.is_empty() {
            let cause = Cause::new(Code::NO_USER_DATA, data.tsn.to_be_bytes());
            self.abort_with(cause, Ended::Violation("DATA without user data"));
            return;
        }
        if !self.inbound.knows(data.stream) {
            let [high, low] = data.stream.to_be_bytes();
            // RFC 9260, section 6.5, requires an error report to the peer.
            context.causes.push(Cause::new(Code::INVALID_STREAM, [high, low, 0, 0]));
        }
        let readable = self.inbound.readable();
        match self.inbound.take(data) {
            Ok(taken) => context.data = context.data.and(taken),
            Err(violation) => return self.violated(violation.0),
        }
        if !readable && self.inbound.readable() {
            self.events.push_back(AssociationEvent::Data);
        }
        let before = self.arriving.replace((context.dst, context.src));
        if before.is_some_and(|(local, _)| local != context.dst) {
            self.events.push_back(AssociationEvent::Arriving(context.dst));
        }
    }

    fn sack(&mut self, now: Instant, sack: &Sack) {
        if !self.is_open() {
            return;
        }
        let news = self.outbound.acknowledge(now, &mut self.paths, sack.cumulative, Some(sack));
        // The peer answers probes of its closed window, so it is alive (RFC 9260, section 6.1, A).
        if sack.a_rwnd == 0 && news.is_ok() {
            self.heard();
            let data_path = self.paths.for_data();
            if let Some(path) = self.paths.get_mut(data_path) {
                path.errors = 0;
            }
        }
        self.acknowledged(news);
    }

    fn acknowledged(&mut self, news: Result<AckEffects, Unsent>) {
        let Ok(news) = news else {
            // The peer acknowledges data that were not sent, so the acknowledgment is guessed: an attack (RFC 5062,
            // section 5.3).
            self.violated("an acknowledgment of DATA that were not sent");
            return;
        };
        if news.progress {
            self.heard();
        }
        if news.freed > 0 && self.state == State::Established {
            self.events.push_back(AssociationEvent::Room(news.freed));
        }
        for address in news.revived {
            self.path_event(address, PathState::Active);
        }
    }

    // --- heartbeats ------------------------------------------------------------------------------------------------

    /// Handles HEARTBEAT ACK (RFC 9260, sections 5.4 and 8.3). The address and the nonce must be those of a probe
    /// that is not answered yet.
    fn heartbeat_ack(&mut self, now: Instant, dst: Ipv4Addr, info: &[u8]) {
        let mut r = Reader::new(info, Malformed("sctp_heartbeat"));
        let (Ok(octets), Ok(nonce)) = (r.array::<4>(), r.u64()) else { return };
        let address = Ipv4Addr::from(octets);
        if self.route_answered(now, dst, address, nonce) {
            return;
        }
        let Some(path) = self.paths.get(address) else { return };
        if path.probe.is_some_and(|probe| probe.nonce == nonce) {
            self.wake(now, address);
        }
        let Some(path) = self.paths.get_mut(address) else { return };
        let Some(probe) = path.probe.take_if(|probe| probe.nonce == nonce) else { return };
        if let Some(sent) = probe.sent {
            path.rto.sample(now.since(sent));
        }
        path.end_back_off(now);
        if !path.confirmed {
            self.probing = now; // HB.Max.Burst limits only probes that are not answered
        }
        self.probe_was_answered();
        self.confirm(now, address);
    }

    /// Handles ABORT. In SHUTDOWN-ACK-SENT both ends have acknowledged all data, so the association has finished
    /// cleanly. An ABORT then shows that the peer has ended already: its SHUTDOWN COMPLETE was lost, and a packet
    /// other than SHUTDOWN ACK reached the peer after that.
    fn abort_came(&mut self, causes: &[Cause]) {
        let is_done = self.state == State::ShutdownAckSent;
        let why = Ended::AbortedByPeer(causes.first().map(|cause| cause.code));
        self.end(if is_done { Ended::Finished } else { why });
    }

    // --- causes in a received ERROR --------------------------------------------------------------------------------

    fn errors_came(&mut self, causes: &[Cause]) {
        for cause in causes {
            match cause.code {
                Code::STALE_COOKIE => {
                    let micros = cause.info.as_slice().try_into().map_or(0, u32::from_be_bytes);
                    self.stale_cookie(micros);
                }
                // The peer does not know ASCONF, so no more changes are requested (RFC 5061, section 5.1, A9).
                Code::UNRECOGNIZED_CHUNK if cause.info.first() == Some(&kind::ASCONF) => self.cannot_change(),
                Code::UNSUPPORTED_HMAC => self.cannot_change(),
                _ => {}
            }
        }
    }

    // --- the end of an association (RFC 9260, section 9.2) ---------------------------------------------------------

    fn shutdown_came(&mut self, context: &PacketContext<'_>, cumulative: u32) {
        if !self.is_open() {
            return;
        }
        let news = self.outbound.acknowledge(context.now, &mut self.paths, cumulative, None);
        self.acknowledged(news);
        // SHUTDOWN ACK goes to the source of this packet. Without a detour and a preferred source, SHUTDOWN ACK leaves
        // from the destination of this packet.
        (self.shutdown_to, self.shutdown_by) = (Some(context.src), Some(context.dst));
        match self.state {
            State::Established | State::ShutdownPending => {
                self.state = State::ShutdownReceived;
                self.outbound.finish();
                self.events.push_back(AssociationEvent::PeerFinished);
            }
            // Both ends have sent SHUTDOWN, and the two packets crossed.
            State::ShutdownSent => {
                self.state = State::ShutdownAckSent;
                self.shutdown_due = true;
            }
            _ => {}
        }
    }

    fn shutdown_ack_came(&mut self, context: &mut PacketContext<'_>) {
        match self.state {
            State::ShutdownSent | State::ShutdownAckSent => {
                context.replies.push(Chunk::ShutdownComplete { reflected: false });
                self.end(Ended::Finished);
            }
            // RFC 9260, section 8.5.1, E: in COOKIE-WAIT and COOKIE-ECHOED, SHUTDOWN ACK is out of the blue. The answer
            // ends the association at the peer.
            State::CookieWait | State::CookieEchoed => {
                let (src_port, dst_port) = (self.local_port, self.peer_port);
                let chunks = vec![Chunk::ShutdownComplete { reflected: true }];
                let bytes = Packet { src_port, dst_port, tag: self.local_tag, chunks }.emit();
                self.outbox.push_back(Transmit::new(context.dst, context.src, bytes));
            }
            _ => {}
        }
    }

    /// Sends SHUTDOWN or SHUTDOWN ACK when it is the next step of a shutdown and all data are acknowledged.
    pub(crate) fn shut_down_further(&mut self, now: Instant) {
        if !self.outbound.is_empty() {
            return;
        }
        match self.state {
            State::ShutdownPending => self.state = State::ShutdownSent,
            State::ShutdownReceived => self.state = State::ShutdownAckSent,
            _ => return,
        }
        self.shutdown_due = true;
        self.guard.get_or_insert(now + self.config.rto_max * 5); // T5 (RFC 9260, section 9.2)
    }
}
