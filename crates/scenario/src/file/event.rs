//! Events of a scenario: faults of hosts and links. An `[[event]]` has an instant. A `[[random_event]]` draws events
//! from the seed of the run.

use super::error::Wrong;
use super::layout::Layout;
use super::limits::mtu_problem;
use super::nearest::did_you_mean;
use super::{Scenario, units};
use node::config::{SpanFault, read_signed_span};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use trace::{Event, EventKind};
use wire::{Duration, Rng};

/// One `[[event]]` of a scenario: what happens to a host or link at an instant.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = shapes()))]
pub struct EventTable {
    /// The time, from the begin of the run.
    #[serde(deserialize_with = "node::config::span", serialize_with = "units::write_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub at: Duration,
    /// The kind of the event, for example `crash`. It decides which other keys the event has.
    pub kind: EventKind,
    /// The name of the host. For a `cut` or `restore` of a cell: the only host for which the cell is cut [default: all
    /// hosts].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The name of the wire or segment. Only for kinds that apply to links: `cut`, `restore`, `loss` and `mtu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<String>,
    /// The number of the cell. Only for kinds that apply to links: `cut`, `restore`, `loss` and `mtu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<u16>,
    /// For kind `loss`: the probability, from 0 to 1, that a frame is lost from this time on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub loss: Option<f64>,
    /// For kind `mtu`: the size of the largest datagram from this time on, in bytes, at least 68.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 68))]
    pub mtu: Option<u16>,
    /// For kind `clock`: the step of the wall clock, for example `+5s` or `-200ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
}

/// Events at random instants, which are drawn from the run's seed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RandomTable {
    /// The kinds of the drawn events, all equally likely. Each event is ended automatically after the time `lasts`, for
    /// example a `crash` by a `restart`.
    #[schemars(length(min = 1))]
    pub kinds: Vec<EventKind>,
    /// The average number of events that are drawn per second, above 0 and at most 1000. Drawn events that conflict
    /// with earlier events are left out.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = MOST_A_SECOND))]
    pub rate: f64,
    /// The time from an event to the event that ends it. A step of a clock is not ended.
    #[serde(deserialize_with = "node::config::span", serialize_with = "units::write_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub lasts: Duration,
    /// The earliest time of an event, from the begin of the run [default: 0 s].
    #[serde(default, deserialize_with = "node::config::span", serialize_with = "units::write_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub from: Duration,
    /// The time before which all events begin, from the begin of the run [default: the end of the run].
    #[serde(
        default,
        deserialize_with = "node::config::some_span",
        serialize_with = "units::write_some_span",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(schema_with = "node::config::schema::span")]
    pub to: Option<Duration>,
    /// The names of the hosts [default: all hosts]. Only with kinds that apply to hosts, for example `crash`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub hosts: Option<Vec<String>>,
    /// The names of the wires and segments [default: all if `cells` is absent, otherwise none]. Only with kinds that apply
    /// to links, for example `cut`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub wires: Option<Vec<String>>,
    /// The numbers of the cells [default: all cells if `wires` is absent, otherwise none]. Only with kinds that apply
    /// to links, for example `cut`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub cells: Option<Vec<u16>>,
    /// For kind `loss`: the probability, from 0 to 1, that a frame is lost during the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub loss: Option<f64>,
    /// For kind `mtu`: the size of the largest datagram during the event, in bytes, at least 68.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 68))]
    pub mtu: Option<u16>,
    /// For kind `clock`: the step of the wall clock, for example `+5s` or `-200ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
}

/// A step of a host's wall clock, in nanoseconds. Not zero if it was parsed. Its text is, for example, `+5s` or
/// `-200ms`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step(pub i64);

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { '-' } else { '+' };
        write!(f, "{sign}{}", units::span_text(Duration::from_nanos(self.0.unsigned_abs())))
    }
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = toml::Value::deserialize(deserializer)?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        // A step is a signed 64-bit number of nanoseconds.
        let signed = match value.as_str().map(read_signed_span) {
            Some(Ok(nanos)) => Some(nanos).filter(|nanos| *nanos != 0).map(Self),
            Some(Err(error)) if error.fault == SpanFault::TooLong => {
                let most = i64::MAX / 1_000_000_000;
                let problem = format!("`{text}` is too large a step; allowed: at most {most}s");
                return Err(D::Error::custom(problem));
            }
            Some(Err(error)) if error.fault == SpanFault::Decimals => return Err(D::Error::custom(error)),
            Some(Err(_)) | None => None,
        };
        signed.ok_or_else(|| {
            D::Error::custom(format!(
                "`{text}` is not a step of a clock; write + or -, a number above 0 and a unit, for example \"+5s\" or \"-200ms\""
            ))
        })
    }
}

impl JsonSchema for Step {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Step".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = node::config::schema::signed_span(generator);
        schema.insert("description".to_owned(), "A step of a clock: a time with a sign.".into());
        schema
    }
}

/// Largest rate of random events per second.
const MOST_A_SECOND: f64 = 1000.0;

/// Returns the schemas of the valid combinations of a kind and its keys.
fn shapes() -> serde_json::Value {
    use EventKind::{Clock, Continue, Crash, Cut, DiskFree, DiskFull, Loss, Mtu, Restart, Restore, Stop};
    let key = |kinds: &[EventKind], needed: &[&str], others: &[&str]| {
        let refused: Vec<serde_json::Value> = ["host", "wire", "cell", "loss", "mtu", "step"]
            .iter()
            .filter(|key| !needed.contains(key) && !others.contains(key))
            .map(|key| serde_json::json!({ "required": [key] }))
            .collect();
        serde_json::json!({
            "properties": { "kind": { "enum": kinds, "description": "The kind of the event." } },
            "required": needed,
            "not": { "anyOf": refused },
        })
    };
    serde_json::Value::Array(vec![
        key(&[Crash, Restart, Stop, Continue, DiskFull, DiskFree], &["host"], &[]),
        key(&[Clock], &["host", "step"], &[]),
        key(&[Cut, Restore], &["wire"], &[]),
        key(&[Cut, Restore], &["cell"], &["host"]),
        key(&[Loss], &["wire", "loss"], &[]),
        key(&[Loss], &["cell", "loss"], &[]),
        key(&[Mtu], &["wire", "mtu"], &[]),
        key(&[Mtu], &["cell", "mtu"], &[]),
    ])
}

impl EventTable {
    /// Creates an event without a host, link or value. `at`: the time from the begin of the run.
    pub const fn new(at: Duration, kind: EventKind) -> Self {
        Self { at, kind, host: None, wire: None, cell: None, loss: None, mtu: None, step: None }
    }

    /// Returns the host or link of the event in words, for example `home`, `wire left` or `cell 2 for mobile`. Empty if
    /// the event has neither.
    pub fn target(&self) -> String {
        match (&self.wire, self.cell, &self.host) {
            (Some(wire), ..) => format!("wire {wire}"),
            (None, Some(cell), Some(host)) => format!("cell {cell} for {host}"),
            (None, Some(cell), None) => format!("cell {cell}"),
            (None, None, host) => host.clone().unwrap_or_default(),
        }
    }

    /// Returns the event in the form of the run's records: kind, host or link, and value as text.
    pub fn recorded(&self) -> Event {
        let value = match self.kind {
            EventKind::Loss => self.loss.map(|loss| format!("{} %", loss * 100.0)),
            EventKind::Mtu => self.mtu.map(|mtu| mtu.to_string()),
            EventKind::Clock => self.step.map(|step| step.to_string()),
            _ => None,
        };
        Event { value: value.map(Into::into), ..Event::new(self.kind, self.target()) }
    }
}

/// Returns all events of a run, ordered by time: those of the scenario, and those that `seed` draws. An error has the
/// path of the key, and the problem.
pub(super) fn events(scenario: &Scenario, layout: &Layout, seed: u64) -> Result<Vec<EventTable>, Wrong> {
    for (index, event) in scenario.event.iter().enumerate() {
        let path = |(key, problem): Wrong| (format!("event[{index}].{key}"), problem);
        check(scenario, layout, event).map_err(path)?;
    }
    let mut all: Vec<EventTable> = scenario.event.clone();
    states(&all).map_err(|(index, problem)| (format!("event[{index}].kind"), problem))?;
    for (index, random) in scenario.random_event.iter().enumerate() {
        let path = |(key, problem): Wrong| (format!("random_event[{index}].{key}"), problem);
        let targets = targets(scenario, layout, random).map_err(path)?;
        let mut rng = Rng::new(seed).fork("event").fork(&index.to_string());
        draw(scenario, random, &targets, &mut rng, &mut all);
    }
    all.sort_by_key(|event| event.at);
    Ok(all)
}

/// Checks the keys of one event. An error has the name of the key, and the problem.
fn check(scenario: &Scenario, layout: &Layout, event: &EventTable) -> Result<(), Wrong> {
    let end = scenario.duration;
    if event.at >= end {
        return wrong(
            "at",
            format!("must be before the end of the run; allowed: 0s to below {}", units::span_text(end)),
        );
    }
    let kind = event.kind;
    if let Some(host) = &event.host {
        layout.known(host).map_err(|problem| ("host".to_owned(), problem))?;
    }
    if let Some(wire) = &event.wire {
        known_wire(scenario, wire).map_err(|problem| ("wire".to_owned(), problem))?;
    }
    if let Some(cell) = event.cell {
        known_cell(scenario, cell).map_err(|problem| ("cell".to_owned(), problem))?;
    }
    let needs = |key: &str, what: &str| wrong(key, format!("is missing: `{}` {what}", kind.name()));
    let name = kind.name();
    let has_not = |key: &str| {
        wrong(
            key,
            format!(
                "kind `{name}` does not have this key; allowed only with `cut`, `restore`, `loss` and `mtu`"
            ),
        )
    };
    if kind.is_of_link() {
        match (&event.wire, event.cell, &event.host) {
            (None, None, _) => return needs("wire", "needs a `wire` or a `cell`"),
            (Some(_), Some(_), _) => return wrong("cell", "give a `wire` or a `cell`, not both".to_owned()),
            (Some(_), None, Some(_)) => {
                return wrong(
                    "host",
                    "not allowed with `wire`; only a `cell` can be cut for one host".to_owned(),
                );
            }
            (None, Some(_), Some(host)) => for_one(layout, kind, host)?,
            _ => {}
        }
    } else {
        match (&event.host, &event.wire, event.cell) {
            (None, ..) => return needs("host", "needs a `host`"),
            (_, Some(_), _) => return has_not("wire"),
            (_, _, Some(_)) => return has_not("cell"),
            _ => {}
        }
    }
    numbers(kind, event.loss, event.mtu, event.step)
}

/// Checks an event of a cell that names a host. Only `cut` and `restore` apply to a single host, and only to a host
/// with a radio that moves between cells.
fn for_one(layout: &Layout, kind: EventKind, host: &str) -> Result<(), Wrong> {
    if !matches!(kind, EventKind::Cut | EventKind::Restore) {
        return wrong(
            "host",
            format!(
                "not allowed with `{}` of a cell, because it applies to all hosts in the cell; remove `host`",
                kind.name()
            ),
        );
    }
    if !layout.moves(host) {
        return wrong("host", format!("`{host}` has no radio that moves between cells; name a mobile host"));
    }
    Ok(())
}

/// Checks that an event of the kind `kind` has the values that the kind needs, and no others.
fn numbers(kind: EventKind, loss: Option<f64>, mtu: Option<u16>, step: Option<Step>) -> Result<(), Wrong> {
    let name = kind.name();
    let given = [
        ("loss", loss.is_some(), kind == EventKind::Loss, "a number from 0 to 1, for example `loss = 0.1`"),
        ("mtu", mtu.is_some(), kind == EventKind::Mtu, "a number of bytes, for example `mtu = 1280`"),
        (
            "step",
            step.is_some(),
            kind == EventKind::Clock,
            "a time with a sign, for example `step = \"+5s\"`",
        ),
    ];
    for (key, is_given, is_needed, what) in given {
        match (is_given, is_needed) {
            (true, false) => {
                let owner = if key == "step" { "clock" } else { key };
                return wrong(
                    key,
                    format!("kind `{name}` does not have this key; allowed only with kind `{owner}`"),
                );
            }
            (false, true) => return wrong(key, format!("is missing: `{name}` needs {what}")),
            _ => {}
        }
    }
    if loss.is_some_and(|loss| !(0.0..=1.0).contains(&loss)) {
        return wrong("loss", "must be a probability from 0 to 1".to_owned());
    }
    if let Some(problem) = mtu.and_then(mtu_problem) {
        return wrong("mtu", problem);
    }
    Ok(())
}

fn wrong<T>(key: &str, problem: String) -> Result<T, Wrong> {
    Err((key.to_owned(), problem))
}

fn known_wire(scenario: &Scenario, wire: &str) -> Result<(), String> {
    if scenario.wire.contains_key(wire) || scenario.segment.contains_key(wire) {
        return Ok(());
    }
    let names: Vec<&str> = scenario.wire.keys().chain(scenario.segment.keys()).map(String::as_str).collect();
    let meant = did_you_mean(wire, names.iter().copied());
    Err(format!("there is no wire or segment `{wire}`{meant}; there are: {}", names.join(", ")))
}

/// Checks that the scenario has a cell with this number.
pub(in crate::file) fn known_cell(scenario: &Scenario, cell: u16) -> Result<(), String> {
    if scenario.cell.contains_key(&cell.to_string()) {
        return Ok(());
    }
    let names: Vec<&str> = scenario.cell.keys().map(String::as_str).collect();
    Err(format!("there is no cell {cell}; there are: {}", names.join(", ")))
}

/// The state of a host or link after some of its events.
#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "four states that do not depend on each other")]
struct State {
    crashed: bool,
    stopped: bool,
    cut: bool,
    full: bool,
}

/// Refuses an event that ends a state which has not begun, or that begins a state which has not ended. An error has
/// the event's index in `events`, and the problem.
fn states(events: &[EventTable]) -> Result<(), (usize, String)> {
    let mut order: Vec<(usize, &EventTable)> = events.iter().enumerate().collect();
    order.sort_by_key(|(_, event)| event.at);
    let mut states: BTreeMap<String, State> = BTreeMap::new();
    for (index, event) in order {
        let target = event.target();
        let state = states.entry(target.clone()).or_default();
        let problem = match event.kind {
            EventKind::Crash if state.crashed => {
                Some("has crashed already; a `restart` must come before this `crash`")
            }
            EventKind::Restart if !state.crashed => Some("did not crash before; `restart` follows a `crash`"),
            EventKind::Stop if state.crashed => Some("has crashed; a `restart` must come before this `stop`"),
            EventKind::Stop if state.stopped => {
                Some("is stopped already; a `continue` must come before this `stop`")
            }
            EventKind::Continue if !state.stopped => Some("is not stopped; `continue` follows a `stop`"),
            EventKind::Cut if state.cut => Some("is cut already; a `restore` must come before this `cut`"),
            EventKind::Restore if !state.cut => Some("is not cut; `restore` follows a `cut`"),
            EventKind::DiskFull if state.full => {
                Some("has a full disk already; a `disk-free` must come before this `disk-full`")
            }
            EventKind::DiskFree if !state.full => Some("has no full disk; `disk-free` follows a `disk-full`"),
            _ => None,
        };
        if let Some(problem) = problem {
            return Err((index, format!("`{target}` {problem}")));
        }
        match event.kind {
            EventKind::Crash => (state.crashed, state.stopped) = (true, false),
            EventKind::Restart => state.crashed = false,
            EventKind::Stop => state.stopped = true,
            EventKind::Continue => state.stopped = false,
            EventKind::Cut => state.cut = true,
            EventKind::Restore => state.cut = false,
            EventKind::DiskFull => state.full = true,
            EventKind::DiskFree => state.full = false,
            EventKind::Loss | EventKind::Mtu | EventKind::Clock => {}
        }
    }
    Ok(())
}

/// Checks the keys of one `[[random_event]]`. An error has the name of the key, and the problem.
fn check_random(scenario: &Scenario, random: &RandomTable) -> Result<(), Wrong> {
    let end = scenario.duration;
    if !(random.rate > 0.0 && random.rate <= MOST_A_SECOND) {
        return wrong("rate", format!("must be above 0 and at most {MOST_A_SECOND} events per second"));
    }
    if random.lasts.is_zero() {
        return wrong("lasts", "must be greater than zero, for example `200ms`".to_owned());
    }
    let to = random.to.unwrap_or(end);
    if to > end {
        let problem =
            format!("must be within the run; allowed: above `from`, at most {}", units::span_text(end));
        return wrong("to", problem);
    }
    if random.from >= to {
        return wrong(
            "from",
            format!("must be before {} (`to`, or the end of the run)", units::span_text(to)),
        );
    }
    if random.kinds.is_empty() {
        return wrong(
            "kinds",
            "is empty; name at least one kind, for example `kinds = [\"crash\"]`".to_owned(),
        );
    }
    let has = |kind: EventKind| random.kinds.contains(&kind);
    for (key, is_given, kind) in [
        ("loss", random.loss.is_some(), EventKind::Loss),
        ("mtu", random.mtu.is_some(), EventKind::Mtu),
        ("step", random.step.is_some(), EventKind::Clock),
    ] {
        if is_given && !has(kind) {
            return wrong(key, format!("allowed only if `kinds` has `{}`", kind.name()));
        }
    }
    once("kinds", random.kinds.iter().map(|kind| kind.name()))?;
    let wires = random.wires.clone();
    let cells = random.cells.as_deref().map(|cells| cells.iter().map(ToString::to_string).collect());
    for (key, names, of_link) in
        [("hosts", random.hosts.clone(), false), ("wires", wires, true), ("cells", cells, true)]
    {
        let Some(names) = names else { continue };
        if names.is_empty() {
            return wrong(key, format!("is empty; give at least one entry, or remove the key `{key}`"));
        }
        if !random.kinds.iter().any(|kind| kind.is_of_link() == of_link) {
            let happen = if of_link { "hosts" } else { "wires and cells" };
            return wrong(
                key,
                format!(
                    "not allowed, because all `kinds` apply to {happen}; kinds allowed with this key: {}",
                    kinds_of(of_link)
                ),
            );
        }
        once(key, names.iter().map(String::as_str))?;
    }
    Ok(())
}

/// Refuses a name that is twice in a list.
fn once<'a>(key: &str, names: impl Iterator<Item = &'a str>) -> Result<(), Wrong> {
    let mut seen = BTreeSet::new();
    for (index, name) in names.enumerate() {
        if !seen.insert(name) {
            return wrong(
                &format!("{key}[{index}]"),
                format!("`{name}` is listed twice; list it once, because all entries are equally likely"),
            );
        }
    }
    Ok(())
}

/// Returns the names of kinds of random events, for a message: kinds that apply to links if `links`, else kinds that
/// apply to hosts.
fn kinds_of(links: bool) -> String {
    let all = [
        EventKind::Crash,
        EventKind::Stop,
        EventKind::Clock,
        EventKind::DiskFull,
        EventKind::Cut,
        EventKind::Loss,
        EventKind::Mtu,
    ];
    let names = all.iter().filter(|kind| kind.is_of_link() == links).map(|kind| format!("`{}`", kind.name()));
    names.collect::<Vec<_>>().join(", ")
}

/// Returns, for each kind of `random`, one possible event for each host or link. The instants are replaced later.
fn targets(
    scenario: &Scenario,
    layout: &Layout,
    random: &RandomTable,
) -> Result<Vec<Vec<EventTable>>, Wrong> {
    check_random(scenario, random)?;
    let mut all = Vec::new();
    for (index, kind) in random.kinds.iter().copied().enumerate() {
        if matches!(kind, EventKind::Restart | EventKind::Continue | EventKind::Restore | EventKind::DiskFree)
        {
            let problem =
                format!("`{}` follows automatically after the time `lasts`; remove this kind", kind.name());
            return wrong(&format!("kinds[{index}]"), problem);
        }
        let fresh = EventTable {
            loss: random.loss.filter(|_| kind == EventKind::Loss),
            mtu: random.mtu.filter(|_| kind == EventKind::Mtu),
            step: random.step.filter(|_| kind == EventKind::Clock),
            ..EventTable::new(random.from, kind)
        };
        let of_kind = if kind.is_of_link() {
            links(scenario, random).map(|(wire, cell)| EventTable { wire, cell, ..fresh.clone() }).collect()
        } else {
            hosts(layout, random).map(|host| EventTable { host: Some(host), ..fresh.clone() }).collect()
        };
        let of_kind: Vec<EventTable> = of_kind;
        for event in &of_kind {
            check(scenario, layout, event).map_err(|(key, problem)| match key.as_str() {
                "host" => ("hosts".to_owned(), problem),
                "wire" => ("wires".to_owned(), problem),
                "cell" => ("cells".to_owned(), problem),
                _ => (key, problem),
            })?;
        }
        if of_kind.is_empty() {
            return wrong(
                "kinds",
                format!(
                    "the scenario has no host or link to which `{}` applies; remove this kind",
                    kind.name()
                ),
            );
        }
        all.push(of_kind);
    }
    Ok(all)
}

fn hosts(layout: &Layout, random: &RandomTable) -> impl Iterator<Item = String> {
    let all = || layout.hosts().map(|(name, _)| name.to_owned()).collect();
    random.hosts.clone().unwrap_or_else(all).into_iter()
}

fn links(scenario: &Scenario, random: &RandomTable) -> impl Iterator<Item = (Option<String>, Option<u16>)> {
    let all = random.wires.is_none() && random.cells.is_none();
    let wires: Vec<String> = if all {
        scenario.wire.keys().chain(scenario.segment.keys()).cloned().collect()
    } else {
        random.wires.clone().unwrap_or_default()
    };
    let cells: Vec<u16> = if all {
        scenario.cell.keys().filter_map(|cell| cell.parse().ok()).collect()
    } else {
        random.cells.clone().unwrap_or_default()
    };
    let wires = wires.into_iter().map(|wire| (Some(wire), None));
    wires.chain(cells.into_iter().map(|cell| (None, Some(cell))))
}

/// Draws the events of one `[[random_event]]`, each with the event that ends it, and appends them to `all`. An event
/// that conflicts with an earlier one is left out.
fn draw(
    scenario: &Scenario,
    random: &RandomTable,
    targets: &[Vec<EventTable>],
    rng: &mut Rng,
    all: &mut Vec<EventTable>,
) {
    // The states of different hosts and links are independent, so the events of each are checked alone.
    let mut of_target: BTreeMap<String, Vec<EventTable>> = BTreeMap::new();
    for event in &*all {
        of_target.entry(event.target()).or_default().push(event.clone());
    }
    let (mut at, to) = (random.from, random.to.unwrap_or(scenario.duration));
    loop {
        // The times between events are exponentially distributed, as in a Poisson process.
        let part = (rng.draw() >> 11) as f64 / (1u64 << 53) as f64;
        let next = Duration::try_from_secs_f64(-(1.0 - part).ln() / random.rate);
        at = at.saturating_add(next.unwrap_or(Duration::MAX)); // `Duration::MAX` if the rate is very low
        if at >= to {
            return;
        }
        let Some(of_kind) = pick(targets, rng) else { return };
        let Some(event) = pick(of_kind, rng) else { return };
        let begin = EventTable { at, ..event.clone() };
        let end = at + random.lasts;
        let ends = begin.kind.end().filter(|_| end < scenario.duration);
        let before = of_target.entry(begin.target()).or_default();
        let is_free =
            !before.iter().any(|other| other.kind == begin.kind && at <= other.at && other.at <= end);
        let known = before.len();
        before.extend(ends.map(|kind| EventTable { at: end, kind, ..lifted(scenario, &begin) }));
        before.push(begin);
        if is_free && states(before).is_ok() {
            all.extend_from_slice(before.get(known..).unwrap_or_default());
        } else {
            before.truncate(known);
        }
    }
}

/// Returns the event that ends a loss or MTU fault: `event` with the value that the scenario gives the link.
fn lifted(scenario: &Scenario, event: &EventTable) -> EventTable {
    let wire = event.wire.as_ref().and_then(|wire| scenario.wire.get(wire));
    let segment = event.wire.as_ref().and_then(|wire| scenario.segment.get(wire));
    let cell = event.cell.and_then(|cell| scenario.cell.get(&cell.to_string()));
    let of_wire = wire.map(|wire| (wire.loss, wire.mtu)).or(segment.map(|of| (of.loss, of.mtu)));
    let own = of_wire.or(cell.map(|cell| (cell.loss, cell.mtu)));
    EventTable {
        loss: own.map(|(loss, _)| loss).filter(|_| event.kind == EventKind::Loss),
        mtu: own.map(|(_, mtu)| mtu).filter(|_| event.kind == EventKind::Mtu),
        ..event.clone()
    }
}

fn pick<'a, T>(list: &'a [T], rng: &mut Rng) -> Option<&'a T> {
    // Not all elements are exactly equally likely. The difference is negligible, because a list is short compared with
    // 2^32 elements.
    list.get((((rng.draw() >> 32) * list.len() as u64) >> 32) as usize)
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
