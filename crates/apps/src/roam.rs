//! The movement of a host: its radio is tuned to one cell after the other, by a timetable, by command, or to the
//! strongest cell.
//!
//! The role is for protocols that do not control the radio. A protocol that decides when to move, as Cellular IP's
//! mobile host does, tunes the radio itself.

use node::config::{ConfigError, Interfaces, check_moves, span};
use node::{Command, CommandId, Input, Link, Mark, Outbox, Role, Value};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use wire::{Cell, Duration, Iface, Instant};

/// The configuration of a host's movement between cells.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoamConfig {
    /// The name of the radio's interface.
    pub interface: String,
    /// The places, at least one. The host begins the run in the first place.
    pub places: Vec<RoamPlace>,
    /// The moves of the timetable, in ascending order of `at`.
    #[serde(default)]
    pub moves: Vec<Move>,
    /// If given, the host moves to the strongest cell. The value is a margin in dB: a cell must be stronger than the
    /// current cell by at least this margin. If absent, the host stays in its place, and tunes to its cell again if the link
    /// was lost and the cell is heard again.
    pub follow: Option<u8>,
    /// Whether a change of the cell is recorded as a handoff of the host; default true. With several radios, another role of
    /// the host may choose between them, and record the handoffs: then use false.
    #[serde(default = "yes")]
    pub handoffs: bool,
}

const fn yes() -> bool {
    true
}

/// A place to which the host can move, and the cell that covers it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoamPlace {
    /// The name of the place, as in `moves`.
    pub name: String,
    /// The number of the cell that covers the place.
    pub cell: u16,
}

/// A move of the timetable: its time, and the place to which the host moves.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// When the host moves, counted from the start of the run.
    #[serde(deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub at: Duration,
    /// The name of the place to which the host moves. A move to the present place tunes the radio again.
    pub to: String,
}

/// A cell that was last heard longer ago than this is out of reach: radios report every 100 ms.
const FORGETS: Duration = Duration::from_millis(250);

/// The role that moves the host. With `handoffs`, it sets a mark [`node::HANDOFF`] at each departure, with the fields `kind`
/// (always `move`), `from` and `to`.
#[derive(Debug)]
pub struct Roam {
    config: RoamConfig,
    interface: Iface,
    at: usize,
    next: usize,
    /// The strength of each place's cell, in dBm, and when it was heard.
    heard: BTreeMap<usize, (i16, Instant)>,
    /// Whether the radio has reported a lost link since it was last tuned.
    is_lost: bool,
}

impl Roam {
    /// Returns the role for a host with these interfaces. Fails if the interface or a place of a move is unknown. Fails
    /// if there is no place, or if the moves are not in the order of time.
    pub fn new(config: RoamConfig, interfaces: Interfaces<'_>) -> Result<Self, ConfigError> {
        let interface = interfaces.number("interface", &config.interface)?;
        if config.places.is_empty() {
            return Err(ConfigError::new(
                "places",
                "must list at least one place, the one where the host begins",
            ));
        }
        let roam = Self { config, interface, at: 0, next: 0, heard: BTreeMap::new(), is_lost: false };
        let moves = roam.config.moves.iter().map(|step| (step.at, step.to.as_str()));
        check_moves("place", &roam.names(), moves)?;
        Ok(roam)
    }

    fn place(&self, name: &str) -> Result<usize, String> {
        let place = self.config.places.iter().position(|place| place.name == name);
        place.ok_or_else(|| format!("no place `{name}`; known: {}", self.names().join(", ")))
    }

    fn names(&self) -> Vec<&str> {
        self.config.places.iter().map(|place| place.name.as_str()).collect()
    }

    fn name_of(&self, place: usize) -> &str {
        self.config.places.get(place).map_or("?", |place| place.name.as_str())
    }

    /// Tunes to the place that the timetable has for `now`. After a restart, it need not be the first place.
    fn begin(&mut self, now: Instant, out: &mut Outbox) {
        let past = self.config.moves.iter().take_while(|step| Instant::ZERO + step.at < now);
        self.next = past.count();
        let last = self.next.checked_sub(1).and_then(|last| self.config.moves.get(last));
        let here = last.and_then(|step| self.place(&step.to).ok()).unwrap_or(0);
        self.tune(here, out);
    }

    fn go(&mut self, to: usize, out: &mut Outbox) {
        if self.config.handoffs {
            let mark = Mark::new(self.name(), node::HANDOFF).with("kind", "move");
            out.mark(mark.with("from", self.name_of(self.at)).with("to", self.name_of(to)));
        }
        self.tune(to, out);
    }

    fn hear(&mut self, now: Instant, cell: Cell, strength: i16, out: &mut Outbox) {
        let Some(margin) = self.config.follow else { return self.come_back(cell, out) };
        let Some(place) = self.config.places.iter().position(|place| place.cell == cell.0) else { return };
        self.heard.insert(place, (strength, now));
        self.heard.retain(|_, (_, at)| now.since(*at) <= FORGETS);
        // Of two equally strong cells, the one that is listed first is chosen.
        let best = self.heard.iter().rev().max_by_key(|(_, (strength, _))| *strength);
        let Some((best, (strongest, _))) = best.filter(|(best, _)| **best != self.at || self.is_lost) else {
            return;
        };
        let own = self.heard.get(&self.at).filter(|_| !self.is_lost);
        if own.is_none_or(|(own, _)| *strongest >= own.saturating_add(margin.into())) {
            self.go(*best, out);
        }
    }

    /// Tunes again to the cell of the present place, if the link to it was lost and the radio hears the cell again.
    fn come_back(&mut self, cell: Cell, out: &mut Outbox) {
        if self.is_lost && self.config.places.get(self.at).is_some_and(|place| place.cell == cell.0) {
            self.tune(self.at, out);
        }
    }

    fn tune(&mut self, to: usize, out: &mut Outbox) {
        (self.at, self.is_lost) = (to, false);
        if let Some(place) = self.config.places.get(to) {
            out.tune(self.interface, Cell(place.cell));
        }
    }

    fn obey(&mut self, id: CommandId, command: &Command, out: &mut Outbox) {
        let to = command.args.get("to").and_then(Value::as_text).unwrap_or_default();
        match self.place(to) {
            Ok(place) => {
                self.go(place, out);
                out.answer(id, Ok(Value::None));
            }
            Err(problem) => out.answer(id, Err(problem)),
        }
    }

    /// Executes all moves of the timetable that are due.
    fn depart(&mut self, now: Instant, out: &mut Outbox) {
        while self.deadline().is_some_and(|due| due <= now) {
            let step = self.config.moves.get(self.next).map(|step| step.to.clone());
            self.next += 1;
            if let Some(Ok(place)) = step.map(|to| self.place(&to)) {
                self.go(place, out);
            }
        }
    }
}

impl Role for Roam {
    fn name(&self) -> &'static str {
        "roam"
    }

    fn verbs(&self) -> &[&'static str] {
        &["move"]
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(_) => self.begin(now, out),
            Input::Timeout => self.depart(now, out),
            Input::Link(iface, Link::Heard(cell, strength)) if iface == self.interface => {
                self.hear(now, cell, strength, out);
            }
            // The role has unplugged the cable itself.
            Input::Link(_, Link::Down(Link::UNPLUGGED)) => {}
            Input::Link(iface, Link::Down(why)) if iface == self.interface => {
                self.is_lost = true;
                out.mark(Mark::new(self.name(), "stuck").with("at", self.name_of(self.at)).with("why", why));
            }
            Input::Command(id, command) => self.obey(id, command, out),
            Input::Packet(..)
            | Input::Link(..)
            | Input::Idle(..)
            | Input::Notice(_)
            | Input::Stream(..)
            | Input::Failed(_)
            | Input::Wall(_)
            | Input::Serve(..)
            | Input::Stored(_)
            | Input::Notification(_) => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.config.moves.get(self.next).map(|step| Instant::ZERO + step.at)
    }

    fn status(&self) -> Value {
        Value::map([
            ("at", Value::from(self.name_of(self.at))),
            ("moves_left", Value::from((self.config.moves.len() - self.next) as u64)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::{Act, Boot, Effect};

    fn roam(moves: &[(u64, &str)]) -> Result<Roam, ConfigError> {
        let places = ["home", "foreign"];
        let place = |(cell, name): (u16, &&str)| RoamPlace { name: (*name).to_owned(), cell };
        let step = |(at, to): &(u64, &str)| Move { at: Duration::from_millis(*at), to: (*to).to_owned() };
        let config = RoamConfig {
            interface: "air".to_owned(),
            places: (1..).zip(&places).map(place).collect(),
            moves: moves.iter().map(step).collect(),
            follow: None,
            handoffs: true,
        };
        Roam::new(config, Interfaces(&["air".to_owned()]))
    }

    fn tuned(out: &mut Outbox) -> Vec<Cell> {
        let cell = |effect| match effect {
            Effect::Do(Act::Tune(_, cell)) => Some(cell),
            _ => None,
        };
        out.drain_effects().filter_map(cell).collect()
    }

    #[test]
    fn it_goes_by_the_timetable() {
        let (mut roam, mut out) = (roam(&[(100, "foreign"), (200, "home")]).unwrap(), Outbox::default());
        roam.handle(Instant::ZERO, Input::Start(&Boot::default()), &mut out);
        assert_eq!(tuned(&mut out), [Cell(1)]);
        let first = roam.deadline().unwrap();
        roam.handle(first, Input::Timeout, &mut out);
        assert_eq!(tuned(&mut out), [Cell(2)]);
        roam.handle(roam.deadline().unwrap(), Input::Timeout, &mut out);
        assert_eq!(tuned(&mut out), [Cell(1)]);
        assert_eq!(roam.deadline(), None);
    }

    #[test]
    fn it_records_handoffs_unless_another_role_does() {
        for (handoffs, marks) in [(true, 1), (false, 0)] {
            let (mut roam, mut out) = (roam(&[(100, "foreign")]).unwrap(), Outbox::default());
            roam.config.handoffs = handoffs;
            roam.handle(roam.deadline().unwrap(), Input::Timeout, &mut out);
            let is_mark = |effect: &Effect| matches!(effect, Effect::Do(Act::Mark(_)));
            assert_eq!(out.drain_effects().filter(is_mark).count(), marks);
        }
    }

    #[test]
    fn it_goes_by_command_and_nowhere_unknown() {
        let (mut roam, mut out) = (roam(&[]).unwrap(), Outbox::default());
        let command =
            |to: &str| Command { verb: "move".to_owned(), args: Value::map([("to", Value::from(to))]) };
        roam.handle(Instant::ZERO, Input::Command(CommandId(1), &command("foreign")), &mut out);
        assert_eq!(tuned(&mut out), [Cell(2)]);
        roam.handle(Instant::ZERO, Input::Command(CommandId(2), &command("away")), &mut out);
        let answers: Vec<Effect> = out.drain_effects().collect();
        let refused = Err("no place `away`; known: home, foreign".to_owned());
        assert_eq!(answers, [Effect::Do(Act::Answer(CommandId(2), refused))]);
    }

    #[test]
    fn a_cable_that_it_unplugged_is_no_lost_link() {
        for (why, marks) in [(Link::UNPLUGGED, 0), (Link::NO_CARRIER, 1)] {
            let (mut roam, mut out) = (roam(&[]).unwrap(), Outbox::default());
            roam.handle(Instant::ZERO, Input::Link(roam.interface, Link::Down(why)), &mut out);
            assert_eq!((out.drain_effects().count(), roam.is_lost), (marks, marks > 0), "{why}");
        }
    }

    #[test]
    fn a_timetable_that_cannot_be_kept_is_refused() {
        assert!(roam(&[(100, "away")]).unwrap_err().to_string().contains("no place `away`"));
        assert!(
            roam(&[(200, "home"), (100, "foreign")]).unwrap_err().to_string().contains("ascending order")
        );
    }

    #[test]
    fn a_cell_that_was_lost_is_tuned_to_when_it_is_heard_again() {
        let (mut roam, mut out) = (roam(&[]).unwrap(), Outbox::default());
        let air = roam.interface;
        let hears = |cell| Input::Link(air, Link::Heard(Cell(cell), -60));
        roam.handle(Instant::ZERO, hears(1), &mut out);
        assert_eq!(tuned(&mut out), [], "it is there");
        roam.handle(Instant::ZERO, Input::Link(air, Link::Down(Link::NO_CARRIER)), &mut out);
        roam.handle(Instant::from_millis(100), hears(2), &mut out);
        assert_eq!(tuned(&mut out), [], "another place");
        roam.handle(Instant::from_millis(200), hears(1), &mut out);
        roam.handle(Instant::from_millis(300), hears(1), &mut out);
        assert_eq!(tuned(&mut out), [Cell(1)], "once");
    }

    /// Returns the cells to which a host tunes if it hears these samples, one sample every 100 ms. The host follows the
    /// strongest cell, and starts at home.
    fn follows(margin: u8, samples: &[&[(u16, i16)]]) -> Vec<Cell> {
        let (mut roam, mut out) = (roam(&[]).unwrap(), Outbox::default());
        roam.config.follow = Some(margin);
        let air = roam.interface;
        for (number, sample) in (1..).zip(samples) {
            for (cell, strength) in *sample {
                let heard = Input::Link(air, Link::Heard(Cell(*cell), *strength));
                roam.handle(Instant::from_millis(number * 100), heard, &mut out);
            }
        }
        tuned(&mut out)
    }

    #[test]
    fn it_follows_what_is_stronger_by_the_margin_and_does_not_flap() {
        let level: &[(u16, i16)] = &[(1, -70), (2, -66)];
        assert_eq!(follows(5, &[level, level]), []);
        assert_eq!(follows(4, &[level]), [Cell(2)]);
        assert_eq!(
            follows(4, &[level, level, &[(1, -64), (2, -66)], &[(1, -62), (2, -66)]]),
            [Cell(2), Cell(1)]
        );
        assert_eq!(follows(0, &[&[(9, -20)]]), [], "no place of its");
    }

    #[test]
    fn what_is_heard_no_more_is_left_for_whatever_there_is() {
        let silent: &[(u16, i16)] = &[(2, -93)];
        assert_eq!(follows(10, &[&[(1, -60), (2, -93)], silent, silent]), [], "one sample may be missed");
        assert_eq!(follows(10, &[&[(1, -60), (2, -93)], silent, silent, silent]), [Cell(2)]);
    }
}
