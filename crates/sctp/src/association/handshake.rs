//! The opening of an association: the four packets of the handshake, lost packets, collisions and duplicates (RFC
//! 9260, sections 5.1 and 5.2).

use crate::Config;
use crate::association::asconf_in::AsconfIn;
use crate::association::{Association, Open, Transmit, introduction};
use crate::config::LEAST_WINDOW;
use crate::cookie::Cookie;
use crate::event::{AssociationEvent, Ended, State};
use crate::inbound::Inbound;
use crate::keys::{self, Keys, Offer};
use crate::local_addresses::{AddressUse, LocalAddresses};
use crate::message::{Cause, Chunk, Code, Init, Packet, Parameter};
use crate::path::{PathState, Paths};
use crate::secret_rng::SecretRng;
use crate::tsn::begin;
use crate::unicast::unicast;
use std::sync::Arc;
use wire::{Instant, Ipv4Addr};

/// State that is needed only until the association is open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opening {
    /// The peer's addresses that INIT may go to.
    pub(crate) peers: Vec<Ipv4Addr>,
    /// The address that a directory gave during the opening, and `tries` at that time. The next packet goes to this
    /// address. Later packets alternate between this address and the other addresses, as the directory's answer is not
    /// signed.
    pub(crate) at: Option<(Ipv4Addr, u32)>,
    /// INIT ACK came from an address that only a directory named.
    pub(crate) doubtful: bool,
    /// Number of time-outs of INIT, or of COOKIE ECHO since INIT ACK came. A stale cookie also counts.
    pub(crate) tries: u32,
    /// INIT or COOKIE ECHO is to be sent.
    due: bool,
    /// When INIT or COOKIE ECHO was last sent, if `tries` was 0 then. The answer measures the round trip.
    sent: Option<Instant>,
    /// How often this INIT or COOKIE ECHO was sent, including repetitions before T1 expired.
    copies: u32,
    cookie: Vec<u8>,
    /// By how many milliseconds the last cookie was too old, plus at most 1 ms.
    stale: Option<u32>,
    /// Unrecognized parameters of INIT ACK, to be reported with COOKIE ECHO.
    reports: Vec<u8>,
}

impl Association {
    /// Begins an association: INIT is due (RFC 9260, section 5.1, A). `None` if one of the ends has no address.
    pub(crate) fn open(now: Instant, config: &Arc<Config>, mut rng: SecretRng, open: &Open) -> Option<Self> {
        let peer = *open.peer.first()?;
        open.local.first()?;
        let init = introduction(config, rng.tag(), rng.u64() as u32, rng.bytes(), &open.local);
        let ports = (open.local_port, open.peer_port);
        let mut it = Self::new(now, config, rng, init, &open.local, peer, ports);
        for other in open.peer.iter().take(config.max_addresses) {
            it.add_path(now, *other, false);
        }
        it.opening.peers.clone_from(&open.peer);
        it.opening.due = true;
        it.state = State::CookieWait;
        Some(it)
    }

    /// Returns our address that INIT or COOKIE ECHO leaves from. `None` if the association is open or closed, or has
    /// no usable address.
    pub fn opens_from(&self) -> Option<Ipv4Addr> {
        let opens = matches!(self.state, State::CookieWait | State::CookieEchoed);
        self.locals.source_of_change(&[]).filter(|_| opens)
    }

    /// Continues the opening from `local`, because the host has lost the address that INIT or COOKIE ECHO left from.
    /// Returns whether the opening continues from `local`.
    ///
    /// If COOKIE ECHO was sent, and the peer supports address changes, COOKIE ECHO is sent again from `local`. The
    /// caller requests the change of addresses when the association is open. A new opening would conflict with the
    /// association that the peer may have already. In all other cases of an opening, the opening begins again from
    /// `local`.
    pub fn open_from(&mut self, now: Instant, local: Ipv4Addr) -> bool {
        match self.state {
            State::CookieEchoed if self.asconf_out.supported => {
                self.second.iter_mut().for_each(|second| _ = second.open_from(now, local));
                self.hasten_opening();
                return self.move_to(now, local, &[local]).is_ok();
            }
            State::CookieWait | State::CookieEchoed => {}
            _ => return false,
        }
        self.another_opening(now, local).map(|anew| self.become_it(anew)).is_some()
    }

    /// Returns a new opening of the same association from `local`. It has another tag and initial TSN, as the peer
    /// may have the association of COOKIE ECHO already (RFC 9260, section 5.3.1).
    pub(crate) fn another_opening(&mut self, now: Instant, local: Ipv4Addr) -> Option<Self> {
        let (local_port, peer_port) = self.ports();
        let (local, peer) = (vec![local], self.opening.peers.clone());
        let open = Open { local, local_port, peer, peer_port };
        Self::open(now, &self.config, self.rng.fork(), &open)
    }

    fn wait_for_init_ack(&mut self) {
        self.state = State::CookieWait;
        (self.peer_tag, self.keys, self.second) = (0, None, None);
        (self.opening.due, self.opening.copies, self.timer) = (true, 0, None);
    }

    /// Returns the association of a COOKIE ECHO that came to `dst` (RFC 9260, section 5.1, D).
    pub(crate) fn accept(
        now: Instant,
        config: &Arc<Config>,
        rng: SecretRng,
        cookie: &Cookie,
        dst: Ipv4Addr,
    ) -> Self {
        let ours = introduction(config, cookie.tag, cookie.tsn, cookie.random, &cookie.locals);
        // If the cookie lists no address of ours, our address is the destination of COOKIE ECHO: this host may have
        // moved since INIT ACK.
        let locals = if cookie.locals.is_empty() { vec![dst] } else { cookie.locals.clone() };
        let ports = (cookie.local_port, cookie.remote_port);
        let mut it = Self::new(now, config, rng, ours, &locals, cookie.remote, ports);
        // The only confirmed address is the destination of INIT ACK (RFC 9260, section 5.4, 2). COOKIE ECHO may come
        // from another address: then the peer has moved, and will request the change.
        it.adopt(now, &cookie.init, cookie.remote);
        it.established(now, cookie.remote);
        it
    }

    /// Takes the parameters of the peer's INIT or INIT ACK. Paths that exist already are kept.
    pub(crate) fn adopt(&mut self, now: Instant, peers: &Init, src: Ipv4Addr) {
        let config = Arc::clone(&self.config);
        self.peer_tag = peers.tag;
        self.inbound = Inbound::new(begin(peers.tsn), config.window(), peers.outbound.min(config.streams));
        self.outbound.streams = peers.inbound.min(config.streams);
        self.outbound.window = peers.a_rwnd;
        self.asconf_in = AsconfIn::new(peers.tsn);
        self.keys = Keys::derive(&config, &self.init, peers);
        self.asconf_out.supported = keys::offer(peers) == Offer::Authenticated && self.keys.is_some();
        let primary = src;
        for address in std::iter::once(src).chain(peers.addresses()) {
            if self.paths.len() < config.max_addresses && unicast(address) {
                self.add_path(now, address, false);
            }
        }
        self.paths.primary = primary;
        self.data_path = primary;
        self.moved = true;
    }

    /// Establishes the association, and confirms `src`: at this address the peer got INIT ACK or answered COOKIE ECHO
    /// (RFC 9260, section 5.4).
    pub(crate) fn established(&mut self, now: Instant, src: Ipv4Addr) {
        self.open_again(now, src, false);
    }

    /// Establishes the association, for the first time or after a restart. `was_told`: the association was open and
    /// lost nothing, so the user does not get [`AssociationEvent::Opened`] and [`AssociationEvent::Room`] again.
    pub(crate) fn open_again(&mut self, now: Instant, src: Ipv4Addr, was_told: bool) {
        self.state = State::Established;
        (self.timer, self.second) = (None, None);
        self.moved = true;
        self.heard();
        if !was_told {
            self.events.push_back(AssociationEvent::Opened);
            self.events.push_back(AssociationEvent::Room(self.outbound.room()));
        }
        self.confirm(now, src);
        self.settle(now);
    }

    /// Sends COOKIE ACK for the cookie that created this association.
    pub(crate) fn greet(&mut self, src: Ipv4Addr, dst: Ipv4Addr) {
        let bytes = self.seal(vec![Chunk::CookieAck]);
        // COOKIE ACK precedes the probes of other addresses, as the peer may not answer them before it gets COOKIE
        // ACK.
        self.outbox.push_front(Transmit::new(dst, src, bytes));
    }

    /// Confirms an address of the peer, and makes its path active. The address becomes primary if the peer has
    /// requested that.
    pub(crate) fn confirm(&mut self, now: Instant, address: Ipv4Addr) {
        let later = self.next_heartbeat(now, address);
        let Some(path) = self.paths.get_mut(address) else { return };
        path.heartbeat = later;
        path.probe = None;
        path.errors = 0;
        path.hearsay = false;
        if !path.confirmed || path.state != PathState::Active {
            (path.confirmed, path.state) = (true, PathState::Active);
            self.path_event(address, PathState::Active);
        }
        self.confirmed_primary(address);
    }

    // --- INIT and COOKIE ECHO that are sent ------------------------------------------------------------------------

    /// Returns the INIT or COOKIE ECHO that is due, or `None`.
    pub(crate) fn opening_packet(&mut self, now: Instant) -> Option<Transmit> {
        if !std::mem::take(&mut self.opening.due) {
            return None;
        }
        let dst = self.opening_destination();
        let src = self.opens_from()?;
        let rto = self.paths.get(dst).map_or(self.config.rto_initial, |path| path.rto.current());
        self.timer = Some(now + rto);
        self.opening.copies += 1;
        self.opening.sent = Some(now).filter(|_| self.opening.tries == 0 && self.opening.copies == 1);
        let bytes = if self.state == State::CookieWait {
            let mut init = self.init.clone();
            init.parameters.extend(self.opening.stale.map(Parameter::CookiePreservative));
            let (src_port, dst_port) = (self.local_port, self.peer_port);
            Packet { src_port, dst_port, tag: 0, chunks: vec![Chunk::Init(init)] }.emit()
        } else {
            let mut chunks = vec![Chunk::CookieEcho(self.opening.cookie.clone())];
            if !self.opening.reports.is_empty() {
                let cause = Cause::new(Code::UNRECOGNIZED_PARAMETERS, self.opening.reports.clone());
                chunks.push(Chunk::Error(vec![cause]));
            }
            self.seal(chunks)
        };
        Some(Transmit::new(src, dst, bytes))
    }

    /// Makes INIT or COOKIE ECHO due now, before T1 expires, in this opening and in the second one.
    pub(crate) fn hasten_opening(&mut self) {
        self.opening.due |= matches!(self.state, State::CookieWait | State::CookieEchoed);
        self.second.iter_mut().for_each(|second| second.hasten_opening());
    }

    pub(crate) fn opening_destination(&self) -> Ipv4Addr {
        let turn = match self.opening.at {
            Some((at, before)) => match self.opening.tries.saturating_sub(before) {
                turn if turn.is_multiple_of(2) => return at,
                turn => turn / 2,
            },
            None => self.opening.tries,
        };
        if self.state == State::CookieEchoed {
            return self.paths.primary;
        }
        // INIT goes to each address in turn, as a directory may have given addresses that are out of date.
        let peers = &self.opening.peers;
        let turn = (turn as usize).checked_rem(peers.len());
        turn.and_then(|at| peers.get(at)).copied().unwrap_or(self.paths.primary)
    }

    /// Handles the expiry of T1: INIT or COOKIE ECHO is due again, or the opening fails (RFC 9260, section 5.1.6).
    pub(crate) fn opening_timeout(&mut self, now: Instant) {
        let dst = self.opening_destination();
        if let Some(path) = self.paths.get_mut(dst) {
            path.rto.back_off();
        }
        self.timer = None;
        self.opening.tries += 1;
        if self.opening.tries > self.config.max_init_retransmits {
            self.end(Ended::TimedOut);
        } else {
            self.open_beside(now);
            self.opening.due = true;
            self.events.push_back(AssociationEvent::Silent(self.opening.tries));
        }
    }

    // --- packets of the handshake that are received ----------------------------------------------------------------

    /// Handles INIT ACK in COOKIE-WAIT (RFC 9260, section 5.1, C). In any other state it is dropped (RFC 9260,
    /// section 5.2.3).
    pub(crate) fn init_ack(&mut self, now: Instant, src: Ipv4Addr, ack: &Init) {
        if self.state != State::CookieWait {
            return;
        }
        let Some(cookie) = ack.cookie() else {
            let missing = [0, 0, 0, 1, 0, 7]; // one parameter, the cookie
            self.peer_tag = ack.tag;
            self.abort_with(
                Cause::new(Code::MISSING_PARAMETER, missing),
                Ended::Violation("INIT ACK without a cookie"),
            );
            return;
        };
        if let Err(cause) = acceptable(ack) {
            self.peer_tag = ack.tag;
            self.abort_with(cause, Ended::Violation("INIT ACK with an invalid field or parameter"));
            return;
        }
        let offer = keys::offer(ack);
        let doubtful = self.paths.get(src).is_some_and(|path| path.hearsay);
        if doubtful && self.config.pair_key.is_some() && offer != Offer::Authenticated {
            return; // a peer with the key authenticates
        }
        if self.config.require_reconfiguration && offer != Offer::Authenticated {
            // RFC 5061, section 6: the packet is dropped, the association ends, and the user is notified.
            self.end(Ended::Unsupported);
            return;
        }
        self.opening.cookie = cookie.to_vec();
        (self.opening.at, self.opening.doubtful) = (None, doubtful);
        self.opening.reports = ack.reports().collect::<Vec<_>>().concat();
        self.paths = Paths::new(now, src, &self.config);
        self.adopt(now, ack, src);
        self.first_round_trip(now, src);
        self.state = State::CookieEchoed;
        (self.opening.due, self.opening.tries, self.opening.copies, self.timer) = (true, 0, 0, None);
    }

    /// Handles COOKIE ACK in COOKIE-ECHOED (RFC 9260, section 5.1, E).
    pub(crate) fn cookie_ack(&mut self, now: Instant, src: Ipv4Addr) {
        if self.state == State::CookieEchoed {
            self.first_round_trip(now, src);
            self.opened_at(src);
            self.established(now, src);
        }
    }

    /// Removes addresses where the peer is not, if a directory gave an address. `here`: the address where the peer
    /// answered. If `here` is the address of the directory, the addresses of INIT ACK are removed. Otherwise the
    /// address of the directory is removed.
    fn opened_at(&mut self, here: Ipv4Addr) {
        let opening = std::mem::take(&mut self.opening);
        let Some((at, _)) = opening.at else { return };
        let all: Vec<Ipv4Addr> = self.paths.iter().map(|path| path.address).collect();
        for address in all.into_iter().filter(|address| (*address == at) != (here == at)) {
            self.remove_path(address);
            self.asconf_in.has_left(address); // late packets from there: the peer may have been there before
        }
        (self.paths.primary, self.data_path, self.moved) = (here, here, true);
    }

    /// Handles an authenticated ASCONF from `src` in COOKIE-ECHOED: the peer has the association, and its COOKIE ACK
    /// was lost. If `src` is the address that a directory gave, the peer has the association there, and not at the
    /// addresses of INIT ACK.
    pub(crate) fn cookie_ack_was_lost(&mut self, now: Instant, src: Ipv4Addr) {
        if self.state == State::CookieEchoed {
            let is_of_directory = self.opening.at.is_some_and(|(at, _)| at == src);
            let here = if is_of_directory { src } else { self.paths.primary };
            self.opened_at(here);
            self.established(now, here);
        }
    }

    fn first_round_trip(&mut self, now: Instant, src: Ipv4Addr) {
        if let (Some(sent), Some(path)) = (self.opening.sent.take(), self.paths.get_mut(src)) {
            path.rto.sample(now.since(sent));
        }
    }

    /// Begins again with INIT, because the cookie was too old by `staleness` microseconds (RFC 9260, section 5.2.6).
    pub(crate) fn stale_cookie(&mut self, staleness: u32) {
        if self.state != State::CookieEchoed {
            return;
        }
        self.opening.tries += 1;
        if self.opening.tries > self.config.max_init_retransmits {
            self.end(Ended::TimedOut);
            return;
        }
        if let Some(here) = self.opens_from() {
            self.locals = LocalAddresses::new(&[here]); // the source of INIT shows our address
        }
        self.opening.stale = Some(staleness / 1000 + 1);
        self.wait_for_init_ack();
    }

    /// Answers an INIT that matches this association (RFC 9260, sections 5.2.1 and 5.2.2). The state of the
    /// association does not change, as the cookie of INIT ACK contains the new state.
    pub(crate) fn init_came(&mut self, now: Instant, src: Ipv4Addr, dst: Ipv4Addr, init: &Init) {
        if self.state == State::ShutdownAckSent {
            self.shutdown_due = true; // RFC 9260, section 9.2
            return;
        }
        // An address that only a directory named is not one of the peer's.
        let is_peers = |address| self.paths.get(address).is_some_and(|path| !path.hearsay);
        let stranger = init.addresses().chain([src]).find(|address| !is_peers(*address));
        // RFC 9260, sections 5.2.1 and 5.2.2, require the check for new addresses in COOKIE-ECHOED and in an
        // open association.
        let known = self.is_open() || self.state == State::CookieEchoed;
        if let Some(address) = stranger.filter(|_| known) {
            // A restart that adds addresses may be an attack by another host (RFC 9260, section 5.2.2).
            let mut info = Vec::new();
            info.extend_from_slice(&Parameter::Ipv4(address).emit());
            let causes = vec![Cause::new(Code::RESTART_WITH_NEW_ADDRESSES, info)];
            self.answer_init(src, dst, init.tag, Chunk::Abort { reflected: false, causes });
            return;
        }
        let usable = self
            .locals
            .with(AddressUse::All)
            .filter(|address| *address != dst && self.locals.sends(*address));
        let locals: Vec<Ipv4Addr> = std::iter::once(dst).chain(usable).collect();
        // In a collision the two INITs make one association: our tag and TSN stay the same (RFC 9260, section 5.2.1).
        let (tag, tsn, random) = if self.is_open() {
            (self.rng.tag(), self.rng.u64() as u32, self.rng.bytes())
        } else {
            (self.local_tag, self.init.tsn, self.random())
        };
        let cookie = Cookie {
            made: now,
            remote: src,
            local_port: self.local_port,
            remote_port: self.peer_port,
            ties: if self.state == State::CookieWait { (0, 0) } else { self.ties },
            tag,
            tsn,
            random,
            locals: if locals.len() > 1 { locals } else { Vec::new() },
            init: init.clone(),
        };
        let answer = init_ack(&self.config, &cookie, &self.rng);
        self.answer_init(src, dst, init.tag, Chunk::InitAck(answer));
    }

    fn random(&self) -> [u8; 32] {
        let found = self.init.parameters.iter().find_map(|parameter| match parameter {
            Parameter::Random(random) => random.as_slice().try_into().ok(),
            _ => None,
        });
        found.unwrap_or_default()
    }

    fn answer_init(&mut self, src: Ipv4Addr, dst: Ipv4Addr, tag: u32, chunk: Chunk) {
        let (src_port, dst_port) = (self.local_port, self.peer_port);
        let bytes = Packet { src_port, dst_port, tag, chunks: vec![chunk] }.emit();
        self.outbox.push_back(Transmit::new(dst, src, bytes));
    }

    /// Handles a valid cookie that matches this association (RFC 9260, section 5.2.4). Returns whether the chunks
    /// after COOKIE ECHO are to be processed.
    pub(crate) fn cookie_came(
        &mut self,
        now: Instant,
        src: Ipv4Addr,
        dst: Ipv4Addr,
        cookie: &Cookie,
    ) -> bool {
        let (ours, theirs) = (cookie.tag == self.local_tag, cookie.init.tag == self.peer_tag);
        match (ours, theirs) {
            // RFC 9260, section 5.2.4, action A: the peer has restarted.
            (false, false) if cookie.ties == self.ties => self.restart(now, src, dst, cookie),
            // RFC 9260, section 5.2.4, action B: both ends sent INIT, and the peer's COOKIE ECHO came first.
            (true, false) if !self.is_open() => {
                self.adopt(now, &cookie.init, cookie.remote);
                self.opening = Opening::default();
                self.established(now, cookie.remote);
                self.reply(src, dst, vec![Chunk::CookieAck]);
                true
            }
            // RFC 9260, section 5.2.4, action B: the peer answered our INIT before it sent its own INIT, with another
            // tag. The peer's newest tag counts.
            (true, false) => {
                if self.state == State::Established && self.inbound.is_fresh() {
                    self.adopt(now, &cookie.init, cookie.remote);
                    self.confirm(now, cookie.remote);
                } else {
                    self.peer_tag = cookie.init.tag;
                }
                self.reply(src, dst, vec![Chunk::CookieAck]);
                true
            }
            // RFC 9260, section 5.2.4, action D: COOKIE ECHO is a duplicate, or COOKIE ACK was lost.
            (true, true) => {
                self.reply(src, dst, vec![Chunk::CookieAck]);
                if self.state == State::CookieEchoed {
                    self.opening = Opening::default();
                    self.established(now, cookie.remote);
                }
                self.wake(now, src); // the peer acknowledges our data only after COOKIE ACK
                true
            }
            // RFC 9260, section 5.2.4, action C, and combinations without an action.
            _ => false,
        }
    }
}

/// Returns the INIT ACK that carries `cookie`.
pub(crate) fn init_ack(config: &Config, cookie: &Cookie, rng: &SecretRng) -> Init {
    let mut ack = introduction(config, cookie.tag, cookie.tsn, cookie.random, &cookie.locals);
    ack.parameters.push(Parameter::Cookie(cookie.emit(rng)));
    ack.parameters.extend(cookie.init.reports().map(Parameter::Unrecognized));
    ack
}

/// Checks an INIT or INIT ACK. Returns the cause for ABORT if it is not acceptable.
pub(crate) fn acceptable(init: &Init) -> Result<(), Cause> {
    // RFC 9260, section 3.3.2: neither the tag nor a number of streams may be zero, and the window must be at least
    // 1500 bytes. Erratum 7148 requires the same of INIT ACK.
    let lacks_room = init.a_rwnd < LEAST_WINDOW;
    if init.tag == 0 || init.outbound == 0 || init.inbound == 0 || lacks_room {
        return Err(Cause::new(Code::INVALID_PARAMETER, []));
    }
    match keys::offer(init) {
        Offer::Unsafe => Err(Cause::new(Code::PROTOCOL_VIOLATION, "ASCONF without AUTH")),
        Offer::Broken => Err(Cause::new(Code::PROTOCOL_VIOLATION, "RANDOM not 32 bytes, or no SHA-1")),
        Offer::Plain | Offer::Authenticated => Ok(()),
    }
}
