//! The mobile host, always active in this slice.
//!
//! ```text
//!              hard                                          semisoft
//!   Attached ───────> Tuning ── link up: ───> Attached        Attached ── visit new station with S=1 ──> Semisoft
//!                       │      route-update S=0, then            Semisoft ── semisoft-delay ──> Tuning
//!                       │      what waited
//! ```

use crate::config::{Kind, MobileConfig, Move, Station};
use crate::message::{Authentication, RouteUpdate, Skipped};
use node::config::{ConfigError, Interfaces};
use node::{
    Command, HANDOFF, Input, Link, Mark, Outbox, Role, Rx, Seed, Span, Stage, TimerName, Timers, Value,
};
use std::collections::VecDeque;
use table::{Action, Class, Hop, Key, Life, Route};
use wire::{Cell, Iface, Instant, Packet, PacketId, WallTime};

/// Names of what a mobile host marks.
pub mod mark {
    /// A handoff by timer was not begun, and why.
    pub const HANDOFF_REFUSED: &str = "handoff_refused";
    /// The radio would not go there; the host stays where it was.
    pub const HANDOFF_FAILED: &str = "handoff_failed";
    /// A route-update with S=0 left; fields `to`, and `why`: `handoff`, `repeat` or `timer`. Those by timer are
    /// optional: whether one comes just before a handoff is a matter of microseconds.
    pub const ROUTE_UPDATE_SENT: &str = "route_update_sent";
    /// A route-update with S=1 left, for the new base station.
    pub const SEMISOFT_SENT: &str = "semisoft_sent";
}

/// Why a mobile host ends a packet's journey.
pub mod reason {
    use wire::Reason;

    /// More of its own packets than it keeps while it retunes.
    pub const TUNING_QUEUE_FULL: Reason = Reason("tuning_queue_full");
}

#[derive(Clone, Copy, Debug)]
enum Timer {
    /// The next handoff of the configuration.
    Move,
    /// The semisoft-delay is over.
    Retune,
    /// The handoff's route-update is sent again.
    Repeat,
}

impl TimerName for Timer {
    const ALL: &'static [Self] = &[Self::Move, Self::Retune, Self::Repeat];
    fn index(self) -> usize {
        self as usize
    }
}

/// Where the host is; stations by their place in the configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Attached { at: usize },
    Semisoft { at: usize, to: usize },
    Tuning { from: Option<usize>, to: usize },
}

/// A mobile host.
#[derive(Debug)]
pub struct Mobile {
    config: MobileConfig,
    radio: Iface,
    state: State,
    timers: Timers<Timer, 3>,
    wall: WallTime,
    last_timestamp: u64,
    chance: Seed,
    /// Our own packets that wait for the radio.
    waiting: VecDeque<Packet>,
    next_move: usize,
    repeats_sent: usize,
    attached_at: Instant,
    updates: u64,
}

const HOST_ROUTE: Key = Key::all(Class::HOST);

impl Mobile {
    /// A mobile host with this configuration, on a host with these interfaces.
    pub fn new(config: MobileConfig, interfaces: Interfaces<'_>, chance: Seed) -> Result<Self, ConfigError> {
        config.check()?;
        let radio = interfaces.number("interface", &config.interface)?;
        Ok(Self {
            config,
            radio,
            state: State::Tuning { from: None, to: 0 },
            timers: Timers::default(),
            wall: WallTime::default(),
            last_timestamp: 0,
            chance,
            waiting: VecDeque::new(),
            next_move: 0,
            repeats_sent: 0,
            attached_at: Instant::ZERO,
            updates: 0,
        })
    }

    /// A host that restarts is where its timetable has led it.
    fn start(&mut self, now: Instant, wall: WallTime, out: &mut Outbox) {
        self.wall = wall;
        self.next_move = self.config.moves.iter().take_while(|step| Instant::ZERO + step.at < now).count();
        self.set_next_move();
        let last = self.next_move.checked_sub(1).and_then(|last| self.config.moves.get(last));
        let here = |step: &Move| self.config.stations.iter().position(|station| station.name == step.to);
        self.tune(None, last.and_then(here).unwrap_or(0), out);
    }

    // --- handoff ---------------------------------------------------------------------------------------------------

    /// Begins a handoff, if it can be begun now.
    fn hand_off(&mut self, now: Instant, to: &str, kind: Kind, out: &mut Outbox) -> Result<(), String> {
        let State::Attached { at } = self.state else { return Err("a handoff is under way".to_owned()) };
        let Some(index) = self.config.stations.iter().position(|station| station.name == to) else {
            return Err(format!("no station `{to}`; known: {}", self.station_names()));
        };
        if index == at {
            return Err(format!("already at `{to}`"));
        }
        let from = self.name_of(at);
        let begun = Mark::new("mobile", HANDOFF).with("kind", kind.name());
        out.mark(begun.with("from", from).with("to", to));
        self.timers.stop(Timer::Repeat);
        match kind {
            Kind::Hard => self.tune(Some(at), index, out),
            Kind::Semisoft => self.prepare(now, at, index, out),
        }
        Ok(())
    }

    /// Semisoft: the new path is built while we still listen to the old.
    fn prepare(&mut self, now: Instant, at: usize, to: usize, out: &mut Outbox) {
        let packet = self.route_update(now, to, true);
        out.mark(Mark::new("mobile", mark::SEMISOFT_SENT).with("to", self.name_of(to)));
        if let (Some(packet), Some(cell)) = (packet, self.cell_of(to)) {
            out.visit(self.radio, cell, packet);
        }
        self.state = State::Semisoft { at, to };
        self.timers.set(Timer::Retune, now + self.config.semisoft_delay);
        // An S=0 through the old station would cancel what we have just asked for: no timer until it is done.
        self.route_by(at, Life::Forever, out);
    }

    fn tune(&mut self, from: Option<usize>, to: usize, out: &mut Outbox) {
        self.state = State::Tuning { from, to };
        out.route(HOST_ROUTE, Route { action: Action::Punt, life: Life::Forever });
        if let Some(cell) = self.cell_of(to) {
            out.tune(self.radio, cell);
        }
    }

    fn link(&mut self, now: Instant, link: Link<'_>, out: &mut Outbox) {
        match (link, self.state) {
            (Link::Up { cell, .. }, State::Tuning { to, .. })
                if cell.is_some() && cell == self.cell_of(to) =>
            {
                self.attached(now, to, out);
            }
            (Link::Down(why), State::Tuning { from, to }) => {
                out.mark(
                    Mark::new("mobile", mark::HANDOFF_FAILED).with("to", self.name_of(to)).with("why", why),
                );
                if let Some(at) = from {
                    self.attached(now, at, out);
                }
            }
            _ => {}
        }
    }

    /// The route-update goes first, then what waited: data from a place that nobody has announced would be dropped.
    fn attached(&mut self, now: Instant, at: usize, out: &mut Outbox) {
        self.state = State::Attached { at };
        self.attached_at = now;
        self.repeats_sent = 0;
        self.announce(now, at, "handoff", out);
        self.set_next_repeat();
        for packet in std::mem::take(&mut self.waiting) {
            out.send_routed(packet);
        }
    }

    // --- route-updates ---------------------------------------------------------------------------------------------

    /// Sends a route-update and starts the route-update timer again.
    fn announce(&mut self, now: Instant, at: usize, why: &'static str, out: &mut Outbox) {
        if let Some(packet) = self.route_update(now, at, false) {
            self.updates += 1;
            let sent = Mark::new("mobile", mark::ROUTE_UPDATE_SENT).with("to", self.name_of(at));
            out.mark(sent.with("why", why).at(Span::Begins(Stage::Registration)));
            out.send(self.radio, packet);
        }
        self.route_by(at, Life::Watched(self.config.route_update_time), out);
    }

    fn route_update(&mut self, now: Instant, to: usize, semisoft: bool) -> Option<Packet> {
        let timestamp = self.timestamp(now);
        let station = self.config.stations.get(to)?;
        let mut update = RouteUpdate {
            mobile: self.config.address,
            gateway: self.config.gateway,
            timestamp,
            semisoft,
            auth: Authentication::unsigned(self.config.key_generation, self.config.r_mh.to_be_bytes()),
            serving_bs: Some(station.id),
            skipped: Skipped::default(),
        };
        update.sign(&self.config.session_key);
        Some(Packet::new(station.mac, update.emit()))
    }

    /// Strictly increasing, whatever the clock does; the bits that nanoseconds leave unused are random (draft 3.3.2).
    fn timestamp(&mut self, now: Instant) -> u64 {
        let clock = self.wall.plus(now.since(Instant::ZERO)).to_ntp();
        let fresh = clock & !3 | self.chance.draw() & 3;
        let next = self.last_timestamp.wrapping_add(1);
        self.last_timestamp =
            if wire::ntp_distance(fresh, next) >= 0 || self.last_timestamp == 0 { fresh } else { next };
        self.last_timestamp
    }

    /// Our packets go by this station; a watched route tells us when none has for the route-update-time.
    fn route_by(&self, at: usize, life: Life, out: &mut Outbox) {
        if let Some(station) = self.config.stations.get(at) {
            let action = Action::Forward(Hop::mac(self.radio, station.mac));
            out.route(HOST_ROUTE, Route { action, life });
        }
    }

    // --- time ------------------------------------------------------------------------------------------------------

    fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        while let Some(timer) = self.timers.pop(now) {
            match (timer, self.state) {
                (Timer::Move, _) => self.scripted_move(now, out),
                (Timer::Retune, State::Semisoft { at, to }) => self.tune(Some(at), to, out),
                (Timer::Repeat, State::Attached { at }) => {
                    self.repeats_sent += 1;
                    self.announce(now, at, "repeat", out);
                    self.set_next_repeat();
                }
                _ => {}
            }
        }
    }

    fn scripted_move(&mut self, now: Instant, out: &mut Outbox) {
        let Some(step) = self.config.moves.get(self.next_move).cloned() else { return };
        self.next_move += 1;
        self.set_next_move();
        if let Err(why) = self.hand_off(now, &step.to, step.kind, out) {
            out.mark(Mark::new("mobile", mark::HANDOFF_REFUSED).with("to", step.to).with("why", why));
        }
    }

    fn set_next_move(&mut self) {
        if let Some(step) = self.config.moves.get(self.next_move) {
            self.timers.set(Timer::Move, Instant::ZERO + step.at);
        }
    }

    fn set_next_repeat(&mut self) {
        match self.config.update_repeats.get(self.repeats_sent) {
            Some(after) => self.timers.set(Timer::Repeat, self.attached_at + *after),
            None => self.timers.stop(Timer::Repeat),
        }
    }

    // --- commands --------------------------------------------------------------------------------------------------

    /// `handoff {to, kind}`; `kind` is `hard` unless it says otherwise.
    fn command(&mut self, now: Instant, command: &Command, out: &mut Outbox) -> Result<Value, String> {
        let to = command.args.get("to").and_then(Value::as_text);
        let to = to.ok_or_else(|| format!("say where to: {{\"to\": one of {}}}", self.station_names()))?;
        let kind = match command.args.get("kind").map(Value::as_text) {
            None | Some(Some("hard")) => Kind::Hard,
            Some(Some("semisoft")) => Kind::Semisoft,
            Some(_) => return Err("`kind` is hard or semisoft".to_owned()),
        };
        self.hand_off(now, to, kind, out)?;
        Ok(Value::map([("handoff", Value::from(to)), ("kind", Value::from(kind.name()))]))
    }

    fn station_names(&self) -> String {
        let names: Vec<&str> = self.config.stations.iter().map(|station| station.name.as_str()).collect();
        names.join(", ")
    }

    fn name_of(&self, index: usize) -> String {
        self.config.stations.get(index).map(|station| station.name.clone()).unwrap_or_default()
    }

    fn cell_of(&self, index: usize) -> Option<Cell> {
        self.config.stations.get(index).map(|Station { cell, .. }| Cell(*cell))
    }
}

impl Role for Mobile {
    fn name(&self) -> &'static str {
        "mobile"
    }

    fn verbs(&self) -> &[&'static str] {
        &["handoff"]
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(boot) => self.start(now, boot.wall, out),
            Input::Timeout => self.timeout(now, out),
            Input::Link(iface, link) if iface == self.radio => self.link(now, link, out),
            Input::Packet(Rx { iface, .. }, packet) if self.waiting.len() >= self.config.tuning_queue => {
                out.discard(iface, packet, reason::TUNING_QUEUE_FULL);
            }
            Input::Packet(_, packet) => self.waiting.push_back(packet),
            Input::Idle(key, _) if key == HOST_ROUTE => {
                if let State::Attached { at } = self.state {
                    self.announce(now, at, "timer", out);
                }
            }
            Input::Command(id, command) => {
                let answer = self.command(now, command, out);
                out.answer(id, answer);
            }
            Input::Wall(wall) => self.wall = wall,
            Input::Link(..)
            | Input::Idle(..)
            | Input::Stream(..)
            | Input::Serve(..)
            | Input::News(_)
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
