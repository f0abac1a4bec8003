//! The role of a mobile host. The host is always active: paging is not implemented.
//!
//! ```text
//!              hard                                          semisoft
//!   Attached ───────> Tuning ── link up: ───> Attached        Attached ── route-update S=1, new path ──> Semisoft
//!                       │      route-update S=0, then            Semisoft ── semisoft-delay ──> Tuning
//!                       │      queued packets
//!                       └─ out of range ─> Lost ── strongest station heard ──> Tuning
//! ```
//!
//! A handoff order replaces a handoff that is under way. A radio that lost its cell, or failed to join a cell, receives
//! and sends nothing. Then the host tunes to the strongest station that the radio hears. If the radio reports no
//! signals, the host tries the stations in turn.

use crate::config::{Kind, MobileConfig, Move, Station};
use crate::message::ICMP_TYPE;
use crate::route_updates::{Clocks, Repeats, signed};
use crate::signals::Signals;
use crate::update_request::UpdateRequest;
use node::config::{ConfigError, Interfaces};
use node::{
    Command, HANDOFF, HANDOFF_ABORTED, HANDOFF_FAILED, HANDOFF_REFUSED, Input, Link, Listen, Mark, Outbox,
    Proto, PuntReason, Rng, Role, Rx, Span, Stage, TimerName, Timers, Value,
};
use table::{Action, Class, Hop, Lifetime, Route, RouteKey};
use wire::icmp::{self, Quote};
use wire::ipv4;
use wire::{Cell, Duration, Iface, Instant, Malformed, Packet, PacketId, WallTime};

/// Names of the marks that a mobile host records.
pub mod mark {
    /// The radio lost its cell. Fields: `at`: the name of the station; `why`: the reason.
    pub const LINK_LOST: &str = "link_lost";
    /// A route-update with S=0 was sent; each copy has a separate mark. Fields: `to`: the name of the station; `why`:
    /// `handoff`, `repeat`, `timer`, `reauth`, `abort`, `clock`, `request` or `too_big`. When runs are compared, a mark
    /// with `timer` close to a handoff may be missing in one of them: a difference of microseconds can decide whether
    /// the timer expires before the handoff.
    pub const ROUTE_UPDATE_SENT: &str = "route_update_sent";
    /// A route-update with S=1 was sent to the new base station; one mark for all copies. Field `to`: the name of the
    /// station.
    pub const SEMISOFT_SENT: &str = "semisoft_sent";
}

/// The reasons for which a mobile host drops a packet.
pub mod reason {
    use wire::Reason;

    /// A packet of this host that did not fit in the `tuning_queue`, where packets wait while the radio is tuned or has
    /// no cell.
    pub const TUNING_QUEUE_FULL: Reason = Reason("tuning_queue_full");
    /// An update-request whose source is not the gateway of the configuration.
    pub const WRONG_GATEWAY: Reason = crate::reason::WRONG_GATEWAY;
}

#[derive(Clone, Copy, Debug)]
enum Timer {
    /// The time of the next handoff in the configuration.
    Move,
    /// The end of the semisoft-delay. In the state Lost, the time to tune a radio that reports no signals.
    Retune,
    /// The time to repeat the route-update.
    Repeat,
    /// The time for a route-update, because only data have refreshed the mapping for the route-reauth-time.
    Reauth,
}

impl TimerName for Timer {
    const ALL: &'static [Self] = &[Self::Move, Self::Retune, Self::Repeat, Self::Reauth];
    fn index(self) -> usize {
        self as usize
    }
}

/// The index of a station in the configuration. It has only 16 bits, because a simulation may have a million hosts.
type StationIndex = u16;

/// The state of the attachment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Attached {
        at: StationIndex,
    },
    Semisoft {
        at: StationIndex,
        to: StationIndex,
    },
    /// The radio is being tuned to the cell of `to`. If the radio does not support this cell, it stays in the cell of
    /// `from`. `from` is `None` if the radio had no cell.
    Tuning {
        from: Option<StationIndex>,
        to: StationIndex,
    },
    /// The radio has no cell. `tried` is the station whose cell the radio lost or could not join.
    Lost {
        tried: StationIndex,
    },
}

/// The shortest time between two answers to update-requests, which are not authenticated.
const ANSWERS: Duration = Duration::from_millis(200);

/// How long a radio that reports no signals stays lost before it is tuned again.
const RETRY: Duration = Duration::from_secs(1);

/// Type and code of ICMP's "fragmentation needed and DF set" (RFC 792).
const FRAGMENTATION_NEEDED: (u8, u8) = (3, 4);

/// The role of a mobile host.
#[derive(Debug)]
pub struct Mobile {
    config: MobileConfig,
    radio: Iface,
    state: State,
    timers: Timers<Timer, 4>,
    clocks: Clocks,
    repeats: Repeats,
    signals: Signals,
    /// The station where the host is attached, or was attached last.
    home: StationIndex,
    /// While the radio reports no signals: the last station that the host tried in turn.
    sought: StationIndex,
    /// Whether the last handoff, or the handoff under way, was ordered by a command or by the timetable. If so, the
    /// order recorded the mark of the handoff.
    ordered: bool,
    /// This host's own packets that wait for the radio, the oldest first.
    waiting: Vec<Packet>,
    next_move: u16,
    updates: u64,
}

const HOST_ROUTE: RouteKey = RouteKey::all(Class::HOST);

impl Mobile {
    /// Creates the role of a mobile host, on a host with these interfaces. It is an error if the configuration is
    /// invalid, or names an interface that the host does not have. `rng` draws the two lowest bits of timestamps.
    pub fn new(mut config: MobileConfig, interfaces: Interfaces<'_>, rng: Rng) -> Result<Self, ConfigError> {
        config.check()?;
        let radio = interfaces.number("interface", &config.interface)?;
        config.interface = String::new(); // only its number is needed, and a simulation may have a million hosts
        Ok(Self {
            config,
            radio,
            state: State::Tuning { from: None, to: 0 },
            timers: Timers::default(),
            clocks: Clocks::new(rng),
            repeats: Repeats::default(),
            signals: Signals::default(),
            home: 0,
            sought: 0,
            ordered: true,
            waiting: Vec::new(),
            next_move: 0,
            updates: 0,
        })
    }

    /// Starts the clock and the timetable, and tunes to a station. After a restart, it is the station of the last move
    /// whose time has passed; without such a move, it is the first station of the configuration.
    fn start(&mut self, now: Instant, wall: WallTime, out: &mut Outbox) {
        self.clocks.start(wall);
        let past = self.config.moves.iter().take_while(|step| Instant::ZERO + step.at < now).count();
        self.next_move = past as u16;
        self.set_next_move();
        Self::hold_packets(out);
        let last = past.checked_sub(1).and_then(|last| self.config.moves.get(last));
        let here = |step: &Move| self.config.stations.iter().position(|station| station.name == step.to);
        self.tune(None, last.and_then(here).unwrap_or(0) as u16, out);
    }

    // --- handoff ---------------------------------------------------------------------------------------------------

    /// Begins a handoff to the station `to`, and aborts a handoff that is under way. Returns the kind of handoff that
    /// is used: hard if the host has no station or the radio is being tuned. During a semisoft handoff, a hard order to
    /// the new station tunes the radio at once, and an order to the old station only aborts the handoff. It is an error
    /// if `to` is unknown, if the host is attached there, or if the order changes nothing about the handoff under way.
    fn hand_off(&mut self, now: Instant, to: &str, kind: Kind, out: &mut Outbox) -> Result<Kind, String> {
        let named = self.config.stations.iter().position(|station| station.name == to);
        let Some(index) = named.map(|index| index as StationIndex) else {
            return Err(format!("no station `{to}`; known: {}", self.station_names()));
        };
        match self.state {
            State::Attached { at } if at == index => return Err(format!("already at `{to}`")),
            State::Tuning { to: goal, .. } if goal == index => {
                return Err(format!("already tuning to `{to}`"));
            }
            State::Semisoft { at, to: goal } if goal == index => {
                if kind == Kind::Semisoft {
                    return Err(format!("a semisoft handoff to `{to}` is under way"));
                }
                self.tune(Some(at), index, out);
                return Ok(Kind::Hard);
            }
            State::Semisoft { at, .. } if at == index => {
                self.abort(to, out);
                self.state = State::Attached { at };
                self.announce(now, at, "abort", out);
                return Ok(kind);
            }
            _ => {}
        }
        self.abort(to, out);
        let (at, kind) = match self.state {
            State::Attached { at } | State::Semisoft { at, .. } => (Some(at), kind),
            State::Tuning { .. } | State::Lost { .. } => (None, Kind::Hard),
        };
        // The nodes still have the new path of the aborted handoff. A route-update through the old station removes the
        // new path at the crossover. It is not sent before a hard handoff, because the radio leaves the old station at
        // once.
        if let (State::Semisoft { at, .. }, Kind::Semisoft) = (self.state, kind) {
            self.announce(now, at, "abort", out);
        }
        self.mark_handoff(index, kind, out);
        self.ordered = true;
        match (at, kind) {
            (Some(at), Kind::Semisoft) => self.prepare(now, at, index, out),
            _ => self.tune(at, index, out),
        }
        Ok(kind)
    }

    /// Marks that the handoff under way is aborted, because a handoff to `by` was ordered. Does nothing if none is
    /// under way.
    fn abort(&self, by: &str, out: &mut Outbox) {
        if let State::Semisoft { to, .. } | State::Tuning { to, .. } = self.state {
            let aborted = Mark::new("mobile", HANDOFF_ABORTED).with("to", self.name_of(to));
            out.mark(aborted.with("why", format!("`{by}` was ordered")));
        }
    }

    fn mark_handoff(&self, to: StationIndex, kind: Kind, out: &mut Outbox) {
        let begun = Mark::new("mobile", HANDOFF).with("kind", kind.name());
        out.mark(begun.with("from", self.name_of(self.home)).with("to", self.name_of(to)));
    }

    /// Begins a semisoft handoff: sets up the new path while the radio still listens on the old one.
    fn prepare(&mut self, now: Instant, at: StationIndex, to: StationIndex, out: &mut Outbox) {
        out.mark(Mark::new("mobile", mark::SEMISOFT_SENT).with("to", self.name_of(to)));
        for packet in self.route_updates(now, to, true) {
            if let Some(cell) = self.cell_of(to) {
                out.send_in_cell(self.radio, cell, packet);
            }
        }
        self.state = State::Semisoft { at, to };
        self.stop_updates();
        self.timers.set(Timer::Retune, now + self.config.semisoft_delay);
        // A route-update with S=0 through the old station would cancel the semisoft handoff. So the timers send no
        // route-update until the handoff is done.
        self.route_by(at, Lifetime::Permanent, out);
    }

    fn tune(&mut self, from: Option<StationIndex>, to: StationIndex, out: &mut Outbox) {
        self.leave(State::Tuning { from, to }, out);
        if let Some(cell) = self.cell_of(to) {
            out.tune(self.radio, cell);
        }
    }

    /// Enters a state in which the host is attached to no station, and stops the timers of the old state. From then on,
    /// the host's own packets are queued.
    fn leave(&mut self, state: State, out: &mut Outbox) {
        if matches!(self.state, State::Attached { .. } | State::Semisoft { .. }) {
            Self::hold_packets(out);
        }
        self.state = state;
        self.stop_updates();
        self.timers.stop(Timer::Retune);
    }

    fn hold_packets(out: &mut Outbox) {
        out.route(HOST_ROUTE, Route::new(Action::Punt, Lifetime::Permanent));
    }

    fn stop_updates(&mut self) {
        self.timers.stop(Timer::Repeat);
        self.timers.stop(Timer::Reauth);
    }

    fn link(&mut self, now: Instant, link: Link<'_>, out: &mut Outbox) {
        match (link, self.state) {
            (Link::Heard(cell, strength), state) => {
                let Some(station) = self.station_of(cell) else { return };
                self.signals.hear(now, station, strength);
                if matches!(state, State::Lost { .. }) {
                    self.seek(now, out);
                }
            }
            (Link::Up { cell, .. }, State::Tuning { to, .. })
                if cell.is_some() && cell == self.cell_of(to) =>
            {
                self.attached(now, to, out);
            }
            // The radio joined a cell to which the host did not tune it.
            (Link::Up { cell: Some(cell), .. }, State::Lost { .. }) => {
                if let Some(at) = self.station_of(cell) {
                    self.attached(now, at, out);
                }
            }
            // The cable of the old station was unplugged, as requested.
            (Link::Down(Link::UNPLUGGED), State::Tuning { .. }) => {}
            (Link::Down(why), State::Tuning { from, to }) => {
                let failed = Mark::new("mobile", HANDOFF_FAILED).with("to", self.name_of(to));
                out.mark(failed.with("why", why));
                match from.filter(|_| why == Link::UNSUPPORTED) {
                    Some(at) => self.attached(now, at, out),
                    None => self.lost(now, to, out),
                }
            }
            (Link::Up { .. } | Link::Down(Link::UNSUPPORTED), _) | (Link::Down(_), State::Lost { .. }) => {}
            (Link::Down(why), State::Attached { at }) => {
                self.mark_lost(at, why, out);
                self.ordered = false;
                self.lost(now, at, out);
            }
            // The new path is already set up, so the host tunes to the new station.
            (Link::Down(why), State::Semisoft { at, to }) => {
                self.mark_lost(at, why, out);
                self.signals.forget(at);
                self.tune(None, to, out);
            }
        }
    }

    fn mark_lost(&self, at: StationIndex, why: &str, out: &mut Outbox) {
        out.mark(Mark::new("mobile", mark::LINK_LOST).with("at", self.name_of(at)).with("why", why));
    }

    /// Handles a radio that lost the cell of `tried`, or could not join it.
    fn lost(&mut self, now: Instant, tried: StationIndex, out: &mut Outbox) {
        self.signals.forget(tried);
        self.leave(State::Lost { tried }, out);
        self.seek(now, out);
    }

    /// Tunes to the station with the strongest recent signal. If all signals are out of date, the host waits for a new
    /// one. A radio that has never reported a signal is tuned to the station where the host was attached last. If the
    /// radio has just lost this station or could not join it, the host tries the next station in turn after 1 s.
    fn seek(&mut self, now: Instant, out: &mut Outbox) {
        let State::Lost { tried } = self.state else { return };
        match self.signals.strongest(now) {
            Some(to) => self.find(to, out),
            None if self.signals.are_reported() => {}
            None if tried != self.home => self.find(self.home, out),
            None => self.timers.set(Timer::Retune, now + RETRY),
        }
    }

    /// Returns the next station to try in turn. The station where the host was attached last is skipped if there are
    /// others, because it is tried after each of them.
    fn next_sought(&self) -> StationIndex {
        let stations = self.config.stations.len().max(1);
        let after = |place: StationIndex| ((usize::from(place) + 1) % stations) as StationIndex;
        let next = after(self.sought);
        if next == self.home { after(next) } else { next }
    }

    /// Tunes to a station without an order. The handoff is marked, unless it follows an ordered handoff that failed.
    fn find(&mut self, to: StationIndex, out: &mut Outbox) {
        if !self.ordered {
            self.mark_handoff(to, Kind::Hard, out);
        }
        self.tune(None, to, out);
    }

    /// Enters the state Attached. Sends the route-update first, then the queued packets, because data from a host
    /// without a mapping would be dropped.
    fn attached(&mut self, now: Instant, at: StationIndex, out: &mut Outbox) {
        self.state = State::Attached { at };
        self.timers.stop(Timer::Retune);
        (self.home, self.sought) = (at, at);
        self.announce_repeatedly(now, at, "handoff", out);
        self.clocks.attached();
        for packet in std::mem::take(&mut self.waiting) {
            out.send_routed(packet);
        }
    }

    /// Handles an update-request. Only an attached host answers, because a route-update with S=0 would cancel a
    /// semisoft handoff.
    fn requested(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        let iface = rx.iface;
        match UpdateRequest::parse(&rx.header, rx.payload(&packet)) {
            Ok(request) if request.gateway == self.config.gateway => {}
            Ok(_) => return out.discard(iface, packet, reason::WRONG_GATEWAY),
            Err(malformed) => return out.discard(iface, packet, malformed.into()),
        }
        out.discard(iface, packet, node::reason::CONSUMED);
        if let State::Attached { at } = self.state
            && self.repeats.since() + ANSWERS <= now
            && iface == self.radio
        {
            self.announce_repeatedly(now, at, "request", out);
        }
    }

    /// Handles an ICMP error. Data that are too big for the access network do not reach the gateway, and refresh no
    /// mapping on the rest of the path. So if the error reports such a packet of this host, the host sends a
    /// route-update. It sends at most one per `route_update_time` for this reason, because errors can be forged. Other
    /// errors, and errors about another host's packet, are ignored.
    fn not_carried(&mut self, now: Instant, icmp: &[u8], out: &mut Outbox) {
        let too_big = || -> Result<bool, Malformed> {
            let quote = Quote::of(&icmp::Message::parse(icmp)?)?;
            let is_too_big = (quote.kind, quote.code) == FRAGMENTATION_NEEDED;
            Ok(is_too_big && quote.src == self.config.address)
        };
        if let (Ok(true), State::Attached { at }) = (too_big(), self.state)
            && self.repeats.since() + self.config.route_update_time <= now
        {
            self.announce(now, at, "too_big", out);
            self.repeats.end(now);
            self.set_next_repeat(None);
        }
    }

    // --- route-updates ---------------------------------------------------------------------------------------------

    /// Sends a route-update and repeats it as configured.
    fn announce_repeatedly(&mut self, now: Instant, at: StationIndex, why: &'static str, out: &mut Outbox) {
        self.announce(now, at, why, out);
        let next = self.repeats.begin(now, &self.config.update_repeats);
        self.set_next_repeat(next);
    }

    /// Sends a route-update through the station `at`, and restarts the timers for the next route-update.
    fn announce(&mut self, now: Instant, at: StationIndex, why: &'static str, out: &mut Outbox) {
        for packet in self.route_updates(now, at, false) {
            self.updates += 1;
            let sent = Mark::new("mobile", mark::ROUTE_UPDATE_SENT).with("to", self.name_of(at));
            out.mark(sent.with("why", why).at(Span::Begins(Stage::Registration)));
            out.send(self.radio, packet);
        }
        if !self.config.route_reauth_time.is_zero() {
            self.timers.set(Timer::Reauth, now + self.config.route_reauth_time);
        }
        self.route_by(at, Lifetime::ReportIdle(self.config.route_update_time), out);
    }

    /// Returns the copies of a route-update, one for each timestamp that nodes may accept.
    fn route_updates(&mut self, now: Instant, to: StationIndex, semisoft: bool) -> Vec<Packet> {
        let stamps = self.clocks.stamps(now);
        let Some(station) = self.config.stations.get(usize::from(to)) else { return Vec::new() };
        let signed = |stamp| signed(&self.config, station, stamp, semisoft);
        stamps.into_iter().map(signed).collect()
    }

    fn clock_set(&mut self, now: Instant, wall: WallTime, out: &mut Outbox) {
        if let (true, State::Attached { at }) = (self.clocks.set(now, wall), self.state) {
            self.announce(now, at, "clock", out);
        }
    }

    /// Routes this host's own packets to a station. With [`Lifetime::ReportIdle`], the role is notified if no packet
    /// was sent for the route-update-time.
    fn route_by(&self, at: StationIndex, lifetime: Lifetime, out: &mut Outbox) {
        if let Some(station) = self.config.stations.get(usize::from(at)) {
            let action = Action::Forward(Hop::mac(self.radio, station.mac));
            out.route(HOST_ROUTE, Route::new(action, lifetime));
        }
    }

    // --- timers ----------------------------------------------------------------------------------------------------

    fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        while let Some(timer) = self.timers.pop(now) {
            match (timer, self.state) {
                (Timer::Move, _) => self.scripted_move(now, out),
                (Timer::Retune, State::Semisoft { at, to }) => self.tune(Some(at), to, out),
                (Timer::Repeat, State::Attached { at }) => {
                    self.announce(now, at, "repeat", out);
                    let next = self.repeats.repeated(&self.config.update_repeats);
                    self.set_next_repeat(next);
                }
                (Timer::Reauth, State::Attached { at }) => self.announce(now, at, "reauth", out),
                (Timer::Retune, State::Lost { .. }) => {
                    self.sought = self.next_sought();
                    self.find(self.sought, out);
                }
                _ => {}
            }
        }
    }

    fn scripted_move(&mut self, now: Instant, out: &mut Outbox) {
        let Some(step) = self.config.moves.get(usize::from(self.next_move)).cloned() else { return };
        self.next_move += 1;
        self.set_next_move();
        if let Err(why) = self.hand_off(now, &step.to, step.kind, out) {
            out.mark(Mark::new("mobile", HANDOFF_REFUSED).with("to", step.to).with("why", why));
        }
    }

    fn set_next_move(&mut self) {
        if let Some(step) = self.config.moves.get(usize::from(self.next_move)) {
            self.timers.set(Timer::Move, Instant::ZERO + step.at);
        }
    }

    fn set_next_repeat(&mut self, next: Option<Instant>) {
        match next {
            Some(at) => self.timers.set(Timer::Repeat, at),
            None => self.timers.stop(Timer::Repeat),
        }
    }

    // --- commands --------------------------------------------------------------------------------------------------

    /// Executes `handoff {to, kind}`; `kind` is `hard` by default. The answer contains `to` and the kind that is used.
    fn command(&mut self, now: Instant, command: &Command, out: &mut Outbox) -> Result<Value, String> {
        let to = command.args.get("to").and_then(Value::as_text);
        let to = to.ok_or_else(|| format!("`to` must be the name of a station: {}", self.station_names()))?;
        let kind = match command.args.get("kind").map(Value::as_text) {
            None | Some(Some("hard")) => Kind::Hard,
            Some(Some("semisoft")) => Kind::Semisoft,
            Some(_) => return Err("`kind` must be `hard` or `semisoft`".to_owned()),
        };
        let kind = self.hand_off(now, to, kind, out)?;
        Ok(Value::map([("handoff", Value::from(to)), ("kind", Value::from(kind.name()))]))
    }

    fn station_names(&self) -> String {
        let names: Vec<&str> = self.config.stations.iter().map(|station| station.name.as_str()).collect();
        names.join(", ")
    }

    fn name_of(&self, index: StationIndex) -> String {
        self.config.stations.get(usize::from(index)).map(|station| station.name.clone()).unwrap_or_default()
    }

    fn station_of(&self, cell: Cell) -> Option<StationIndex> {
        let place = self.config.stations.iter().position(|station| station.cell == cell.0);
        place.map(|place| place as StationIndex)
    }

    fn cell_of(&self, index: StationIndex) -> Option<Cell> {
        self.config.stations.get(usize::from(index)).map(|Station { cell, .. }| Cell(*cell))
    }
}

/// The packets that the role gets: update-requests, and ICMP errors about this host's data.
const LISTENS: [Listen; 4] = [
    Listen::Local(Proto::Icmp(ICMP_TYPE)),
    Listen::IcmpAbout(Proto::Ip(ipv4::UDP)),
    Listen::IcmpAbout(Proto::Ip(ipv4::TCP)),
    Listen::IcmpAbout(Proto::Ip(ipv4::SCTP)),
];

fn is_request(packet: &Packet) -> bool {
    ipv4::payload(&packet.bytes).first() == Some(&ICMP_TYPE)
}

impl Role for Mobile {
    fn name(&self) -> &'static str {
        "mobile"
    }

    fn listens(&self) -> &[Listen] {
        &LISTENS
    }

    fn verbs(&self) -> &[&'static str] {
        &["handoff"]
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(boot) => self.start(now, boot.wall, out),
            Input::Timeout => self.timeout(now, out),
            Input::Link(iface, link) if iface == self.radio => self.link(now, link, out),
            Input::Packet(rx @ Rx { why: PuntReason::Listen, .. }, packet) if is_request(&packet) => {
                self.requested(now, rx, packet, out);
            }
            Input::Packet(rx @ Rx { why: PuntReason::Listen, .. }, packet) => {
                self.not_carried(now, rx.payload(&packet), out);
                out.pass(rx, packet);
            }
            Input::Packet(Rx { iface, .. }, packet) if self.waiting.len() >= self.config.tuning_queue => {
                out.discard(iface, packet, reason::TUNING_QUEUE_FULL);
            }
            Input::Packet(_, packet) => self.waiting.push(packet),
            Input::Idle(key, _) if key == HOST_ROUTE => {
                if let State::Attached { at } = self.state {
                    self.announce(now, at, "timer", out);
                }
            }
            Input::Command(id, command) => {
                let answer = self.command(now, command, out);
                out.answer(id, answer);
            }
            Input::Wall(wall) => self.clock_set(now, wall, out),
            Input::Link(..)
            | Input::Idle(..)
            | Input::Notice(_)
            | Input::Stream(..)
            | Input::Serve(..)
            | Input::Notification(_)
            | Input::Failed(_)
            | Input::Stored(_) => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    fn status(&self) -> Value {
        let (state, at) = match self.state {
            State::Attached { at } => ("attached", at),
            State::Semisoft { at, .. } => ("semisoft", at),
            State::Tuning { to, .. } => ("tuning", to),
            State::Lost { .. } => ("lost", self.home),
        };
        Value::map([
            ("state", Value::from(state)),
            ("station", Value::from(self.name_of(at))),
            ("route_updates", Value::from(self.updates)),
            ("waiting", Value::from(self.waiting.len() as u64)),
        ])
    }

    fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        self.waiting.iter().for_each(|packet| each(packet.id));
    }
}
