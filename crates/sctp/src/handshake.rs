//! How an association begins: four packets, and what may come instead of them (RFC 9260, sections 5.1 and 5.2).

use crate::Config;
use crate::association::{Association, Open, Transmit, introduction};
use crate::chance::Chance;
use crate::cookie::Cookie;
use crate::event::{Ended, Event, State};
use crate::inbound::Inbound;
use crate::keys::{self, Keys, Offer};
use crate::locals::{Locals, Use};
use crate::message::{Cause, Chunk, Code, Init, Packet, Parameter};
use crate::path::{PathState, Paths};
use crate::serial::begin;
use crate::theirs::Theirs;
use std::sync::Arc;
use wire::{Instant, Ipv4Addr};

/// What is needed only until the association is open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opening {
    /// The peer's addresses that INIT may go to.
    pub(crate) peers: Vec<Ipv4Addr>,
    /// The address that a directory gave since, and how many tries there were before. The first packet goes there, the next ones there
    /// and to the other addresses in turn, as the directory's answer is not signed.
    pub(crate) at: Option<(Ipv4Addr, u32)>,
    /// INIT ACK came from where only a directory says that the peer is.
    pub(crate) doubtful: bool,
    /// INITs and COOKIE ECHOs that were sent again.
    pub(crate) tries: u32,
    /// INIT or COOKIE ECHO is to leave.
    due: bool,
    /// When it left, if it did once only: its answer tells a round trip.
    sent: Option<Instant>,
    cookie: Vec<u8>,
    /// By how much the last cookie was too old, in milliseconds.
    stale: Option<u32>,
    /// Parameters of INIT ACK that are to be reported with COOKIE ECHO.
    reports: Vec<u8>,
}

impl Association {
    /// Sends INIT (section 5.1, A). `None` without an address at either end.
    pub(crate) fn open(now: Instant, config: &Arc<Config>, mut chance: Chance, open: &Open) -> Option<Self> {
        let peer = *open.peer.first()?;
        open.local.first()?;
        let init = introduction(config, chance.tag(), chance.u64() as u32, chance.bytes(), &open.local);
        let ports = (open.local_port, open.peer_port);
        let mut it = Self::new(now, config, chance, init, &open.local, peer, ports);
        for other in open.peer.iter().take(config.max_addresses) {
            it.add_path(now, *other, false);
        }
        it.opening.peers.clone_from(&open.peer);
        it.opening.due = true;
        it.state = State::CookieWait;
        Some(it)
    }

    /// Where INIT or COOKIE ECHO leaves from. `None` if the association is open, or closed.
    pub fn opens_from(&self) -> Option<Ipv4Addr> {
        let opens = matches!(self.state, State::CookieWait | State::CookieEchoed);
        self.locals.source_of_change(&[]).filter(|_| opens)
    }

    /// The address that we open from has gone, and this one is there: the peer's answers do not find us where it was. COOKIE ECHO
    /// leaves from here by now: the peer may have the association already, so another would be in its way; when it is open, the
    /// peer can be asked for the change. Without that, and before COOKIE ECHO, all begins anew from here: nothing was written yet.
    /// Returns whether the association opens still.
    pub fn open_from(&mut self, now: Instant, local: Ipv4Addr) -> bool {
        match self.state {
            State::CookieEchoed if self.ours.supported => {
                self.second.iter_mut().for_each(|second| _ = second.open_from(now, local));
                self.hasten_opening();
                return self.move_to(now, local, &[local]).is_ok();
            }
            State::CookieWait | State::CookieEchoed => {}
            _ => return false,
        }
        self.another_opening(now, local).map(|anew| self.become_it(anew)).is_some()
    }

    /// The same association from the begin, with numbers of its own, as the peer may have the one of COOKIE ECHO (section 5.3.1).
    pub(crate) fn another_opening(&mut self, now: Instant, local: Ipv4Addr) -> Option<Self> {
        let (local_port, peer_port) = self.ports();
        let (local, peer) = (vec![local], self.opening.peers.clone());
        let open = Open { local, local_port, peer, peer_port };
        Self::open(now, &self.config, self.chance.fork(), &open)
    }

    fn wait_for_init_ack(&mut self) {
        self.state = State::CookieWait;
        (self.peer_tag, self.keys, self.second) = (0, None, None);
        (self.opening.due, self.timer) = (true, None);
    }

    /// The association of a COOKIE ECHO that came to `dst` (section 5.1, D).
    pub(crate) fn accept(
        now: Instant,
        config: &Arc<Config>,
        chance: Chance,
        cookie: &Cookie,
        dst: Ipv4Addr,
    ) -> Self {
        let ours = introduction(config, cookie.tag, cookie.tsn, cookie.random, &cookie.locals);
        // Without a list of addresses, the one is that to which the peer has turned: we may have moved since INIT ACK.
        let locals = if cookie.locals.is_empty() { vec![dst] } else { cookie.locals.clone() };
        let ports = (cookie.local_port, cookie.remote_port);
        let mut it = Self::new(now, config, chance, ours, &locals, cookie.remote, ports);
        // Section 5.4, 2: the one confirmed address is that to which INIT ACK went. COOKIE ECHO may have come from another: its
        // sender has moved, and will ask for the change.
        it.adopt(now, &cookie.init, cookie.remote);
        it.established(now, cookie.remote);
        it
    }

    /// Takes over what the peer says of itself. Paths that are there already stay.
    pub(crate) fn adopt(&mut self, now: Instant, peers: &Init, src: Ipv4Addr) {
        let config = Arc::clone(&self.config);
        self.peer_tag = peers.tag;
        self.inbound = Inbound::new(begin(peers.tsn), config.window(), peers.outbound.min(config.streams));
        self.outbound.streams = peers.inbound.min(config.streams);
        self.outbound.window = peers.a_rwnd;
        self.theirs = Theirs::new(peers.tsn);
        self.keys = Keys::derive(&config, &self.init, peers);
        self.ours.supported = keys::offer(peers) == Offer::Authenticated && self.keys.is_some();
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

    /// Both sides know each other; `src` has proved itself by what it sent back (section 5.4).
    pub(crate) fn established(&mut self, now: Instant, src: Ipv4Addr) {
        self.open_again(now, src, false);
    }

    /// The same of one that was open before, if it `was_told`: its user has its room already.
    pub(crate) fn open_again(&mut self, now: Instant, src: Ipv4Addr, was_told: bool) {
        self.state = State::Established;
        (self.timer, self.second) = (None, None);
        self.moved = true;
        self.heard();
        if !was_told {
            self.events.push_back(Event::Opened);
            self.events.push_back(Event::Room(self.outbound.room()));
        }
        self.confirm(now, src);
        self.settle(now);
    }

    /// COOKIE ACK for the cookie that began this association.
    pub(crate) fn greet(&mut self, src: Ipv4Addr, dst: Ipv4Addr) {
        let bytes = self.seal(vec![Chunk::CookieAck]);
        // Before the probes of other addresses: the peer does not answer those yet.
        self.outbox.push_front(Transmit::new(dst, src, bytes));
    }

    /// The peer is at this address.
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

    // --- packets that leave ----------------------------------------------------------------------------------------

    /// INIT or COOKIE ECHO, when it is due.
    pub(crate) fn opening_packet(&mut self, now: Instant) -> Option<Transmit> {
        if !std::mem::take(&mut self.opening.due) {
            return None;
        }
        let dst = self.opening_destination();
        let src = self.opens_from()?;
        let rto = self.paths.get(dst).map_or(self.config.rto_initial, |path| path.rto.current());
        self.timer = Some(now + rto);
        self.opening.sent = Some(now).filter(|_| self.opening.tries == 0);
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

    /// Our link has come back: the packet that waits for T1 leaves now.
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
        // Each address in turn: who asks a directory may have been told old ones.
        let peers = &self.opening.peers;
        let turn = (turn as usize).checked_rem(peers.len());
        turn.and_then(|at| peers.get(at)).copied().unwrap_or(self.paths.primary)
    }

    /// T1 went off (sections 5.1.2 and 5.1.6).
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
            self.events.push_back(Event::Silent(self.opening.tries));
        }
    }

    // --- packets that come -----------------------------------------------------------------------------------------

    /// INIT ACK (section 5.1, C). In any other state it is late, and dropped (section 5.2.3).
    pub(crate) fn init_ack(&mut self, now: Instant, src: Ipv4Addr, ack: &Init) {
        if self.state != State::CookieWait {
            return;
        }
        let Some(cookie) = ack.cookie() else {
            let missing = [0, 0, 0, 1, 0, 7]; // one parameter, the cookie
            self.peer_tag = ack.tag;
            self.abort_with(Cause::new(Code::MISSING_PARAMETER, missing), Ended::Violation("no cookie"));
            return;
        };
        if let Err(cause) = acceptable(ack) {
            self.peer_tag = ack.tag;
            self.abort_with(cause, Ended::Violation("INIT ACK"));
            return;
        }
        let offer = keys::offer(ack);
        let doubtful = self.paths.get(src).is_some_and(|path| path.hearsay);
        if doubtful && self.config.pair_key.is_some() && offer != Offer::Authenticated {
            return; // who has the key authenticates
        }
        if self.config.require_reconfiguration && offer != Offer::Authenticated {
            // RFC 5061, section 4.2.7: dropped, the TCB destroyed, the user told.
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
        (self.opening.due, self.opening.tries, self.timer) = (true, 0, None);
    }

    /// COOKIE ACK (section 5.1, E).
    pub(crate) fn cookie_ack(&mut self, now: Instant, src: Ipv4Addr) {
        if self.state == State::CookieEchoed {
            self.first_round_trip(now, src);
            self.opened_at(src);
            self.established(now, src);
        }
    }

    /// Of the address that a directory gave and those that INIT ACK gave, the peer is at one: it answered from `here`.
    fn opened_at(&mut self, here: Ipv4Addr) {
        let opening = std::mem::take(&mut self.opening);
        let Some((at, _)) = opening.at else { return };
        let all: Vec<Ipv4Addr> = self.paths.iter().map(|path| path.address).collect();
        for address in all.into_iter().filter(|address| (*address == at) != (here == at)) {
            self.remove_path(address);
            self.theirs.has_left(address); // it may have been there when the first COOKIE ECHO came
        }
        (self.paths.primary, self.data_path, self.moved) = (here, here, true);
    }

    /// The peer asks for a change of its addresses, authentically: it has the association, and its COOKIE ACK was lost.
    pub(crate) fn cookie_ack_was_lost(&mut self, now: Instant) {
        if self.state == State::CookieEchoed {
            self.opened_at(self.paths.primary);
            self.established(now, self.paths.primary);
        }
    }

    fn first_round_trip(&mut self, now: Instant, src: Ipv4Addr) {
        if let (Some(sent), Some(path)) = (self.opening.sent.take(), self.paths.get_mut(src)) {
            path.rto.sample(now.since(sent));
        }
    }

    /// The cookie was too old, by so many microseconds: once more, from the begin (section 5.2.6).
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
            self.locals = Locals::new(&[here]); // INIT says where we are by its source
        }
        self.opening.stale = Some(staleness / 1000 + 1);
        self.wait_for_init_ack();
    }

    /// An INIT that finds this association (sections 5.2.1 and 5.2.2): nothing changes; the cookie that goes back says
    /// what was found.
    pub(crate) fn init_came(&mut self, now: Instant, src: Ipv4Addr, dst: Ipv4Addr, init: &Init) {
        if self.state == State::ShutdownAckSent {
            self.shutdown_due = true; // section 9.2
            return;
        }
        // That a directory named an address makes it none of the peer's.
        let is_peers = |address| self.paths.get(address).is_some_and(|path| !path.hearsay);
        let stranger = init.addresses().chain([src]).find(|address| !is_peers(*address));
        let known = self.is_open() || self.state == State::CookieEchoed; // sections 5.2.1 and 5.2.2
        if let Some(address) = stranger.filter(|_| known) {
            // Who wants to restart with an address that it did not have may be somebody else (section 5.2.2).
            let mut info = Vec::new();
            info.extend_from_slice(&Parameter::Ipv4(address).emit());
            let causes = vec![Cause::new(Code::RESTART_WITH_NEW_ADDRESSES, info)];
            self.answer_init(src, dst, init.tag, Chunk::Abort { reflected: false, causes });
            return;
        }
        let usable =
            self.locals.with(Use::All).filter(|address| *address != dst && self.locals.sends(*address));
        let locals: Vec<Ipv4Addr> = std::iter::once(dst).chain(usable).collect();
        // In a collision the two INITs are one association: our numbers stay what they are (section 5.2.1).
        let (tag, tsn, random) = if self.is_open() {
            (self.chance.tag(), self.chance.u64() as u32, self.chance.bytes())
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
        let answer = init_ack(&self.config, &cookie, &self.chance);
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

    /// A good cookie that finds this association (section 5.2.4). Says whether what follows it in its packet counts.
    pub(crate) fn cookie_came(
        &mut self,
        now: Instant,
        src: Ipv4Addr,
        dst: Ipv4Addr,
        cookie: &Cookie,
    ) -> bool {
        let (ours, theirs) = (cookie.tag == self.local_tag, cookie.init.tag == self.peer_tag);
        match (ours, theirs) {
            // A: the peer lost its memory.
            (false, false) if cookie.ties == self.ties => self.restart(now, src, dst, cookie),
            // B: both began at once, and this one came first.
            (true, false) if !self.is_open() => {
                self.adopt(now, &cookie.init, cookie.remote);
                self.opening = Opening::default();
                self.established(now, cookie.remote);
                self.reply(src, dst, vec![Chunk::CookieAck]);
                true
            }
            // B as well: the peer had answered our INIT before it sent its own, with another tag. Its newest one counts.
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
            // D: a duplicate, or COOKIE ACK was lost.
            (true, true) => {
                self.reply(src, dst, vec![Chunk::CookieAck]);
                if self.state == State::CookieEchoed {
                    self.opening = Opening::default();
                    self.established(now, cookie.remote);
                }
                self.wake(now, src); // our data are not acknowledged before COOKIE ACK is there
                true
            }
            // C, and what is made up.
            _ => false,
        }
    }
}

/// The INIT ACK that goes with a cookie.
pub(crate) fn init_ack(config: &Config, cookie: &Cookie, chance: &Chance) -> Init {
    let mut ack = introduction(config, cookie.tag, cookie.tsn, cookie.random, &cookie.locals);
    ack.parameters.push(Parameter::Cookie(cookie.emit(chance)));
    ack.parameters.extend(cookie.init.reports().map(Parameter::Unrecognized));
    ack
}

/// The smallest `a_rwnd` that INIT and INIT ACK may have, in bytes (RFC 9260, section 3.3.2).
pub(crate) const LEAST_WINDOW: u32 = 1500;

/// Whether an INIT or INIT ACK may be answered; else what to say in ABORT.
pub(crate) fn acceptable(init: &Init) -> Result<(), Cause> {
    // Section 3.3.2: neither the tag nor a number of streams is zero, and the window holds a packet. Of INIT ACK too (erratum 7148).
    let lacks_room = init.a_rwnd < LEAST_WINDOW;
    if init.tag == 0 || init.outbound == 0 || init.inbound == 0 || lacks_room {
        return Err(Cause::new(Code::INVALID_PARAMETER, []));
    }
    match keys::offer(init) {
        Offer::Unsafe => Err(Cause::new(Code::PROTOCOL_VIOLATION, "addresses without authentication")),
        Offer::Broken => Err(Cause::new(Code::PROTOCOL_VIOLATION, "authentication parameters")),
        Offer::Plain | Offer::Authenticated => Ok(()),
    }
}

/// Whether a packet can come from, or go to, one host there.
pub(crate) fn unicast(address: Ipv4Addr) -> bool {
    !(address.is_unspecified() || address.is_multicast() || address.is_broadcast())
}
