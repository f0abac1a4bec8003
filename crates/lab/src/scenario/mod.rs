//! Scenario files: the input of a run.

mod check;
mod course;
mod error;
mod event;
mod expand;
mod host_config;
mod moves;
mod nearest;
mod networks;
mod path;
mod phase;
mod protocol;
mod schema;
pub(crate) mod secret;
mod settings;
pub(crate) mod units;

pub use error::ScenarioError;
pub use event::{EventTable, RandomTable, Step};
pub use host_config::{host_config, host_config_error};
pub(crate) use nearest::did_you_mean;
pub use phase::{Repetition, is_shifted};
pub(crate) use protocol::CellularIp as CellularIpTable;
pub(crate) use protocol::schema as roles_schema;
pub use schema::schema;
pub use secret::has_keys;
pub use settings::Setting;
pub(crate) use settings::roles_of;
pub(crate) use units::parse_rate;

use crate::Plan;
use crate::program::Program;
use crate::tree::TreeTable;
use error::Source;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use toml::{Spanned, Table};
use wire::{Duration, Ipv4Addr, Prefix};

/// A scenario as its file is read, with names where a plan has numbers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(description = "A scenario of Wayfare: hosts, what connects them, and who moves when.")]
pub struct Scenario {
    /// What it is about, in a line.
    pub about: String,
    /// How long it runs.
    #[serde(deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) duration: Duration,
    /// How far several runs shift each instant at most: 1 s. A move, the start of a flow or program, a host's whole course: each
    /// by a part of its own, the same on both backends, and by less than half the time to the next. One run shifts nothing.
    #[serde(default, rename = "phase", deserialize_with = "node::config::some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    _phase: Option<Duration>,
    /// Wires, by names that are free.
    #[serde(default)]
    pub(crate) wire: BTreeMap<String, Wire>,
    /// Radio cells, by their numbers.
    #[serde(default)]
    #[schemars(extend("propertyNames" = { "pattern": "^[0-9]{1,5}$" }))]
    pub(crate) cell: BTreeMap<String, Cell>,
    /// Radios of mobile hosts, and how signals weaken.
    #[serde(default)]
    pub(crate) radio: Radio,
    /// What all hosts of a Cellular IP network share.
    #[serde(rename = "cellular-ip")]
    pub(crate) cellular_ip: Option<protocol::CellularIp>,
    /// What support routers and mobile hosts of Indirect TCP share.
    #[serde(rename = "indirect-tcp")]
    pub(crate) indirect_tcp: Option<protocol::IndirectTcp>,
    /// What mobile nodes and their home agents share.
    #[serde(rename = "mobile-ip")]
    pub(crate) mobile_ip: Option<protocol::MobileIp>,
    /// What mobile nodes of SIGMA and their location manager share.
    pub(crate) sigma: Option<protocol::Sigma>,
    /// Hosts, by their names.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Host>")]
    pub(crate) host: toml::map::Map<String, toml::Value>,
    /// What goes wrong, and when: crashes, cuts, losses.
    #[serde(default)]
    pub(crate) event: Vec<EventTable>,
    /// What goes wrong at random instants, drawn from the seed of the run.
    #[serde(default)]
    pub(crate) random_event: Vec<RandomTable>,
    /// Hosts by the thousand, in the place of all that has names.
    pub(crate) tree: Option<TreeTable>,
    /// What is varied over many runs; a single one knows nothing of it.
    #[serde(default, rename = "sweep")]
    #[schemars(with = "crate::sweep::Table")]
    _sweep: Option<IgnoredAny>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wire {
    /// The hosts at its ends.
    pub(crate) ends: [String; 2],
    /// Bits a second each way, as `2Mb/s`.
    #[serde(deserialize_with = "units::rate")]
    #[schemars(schema_with = "units::schema_rate")]
    pub(crate) rate: u64,
    /// One for both ways, or one for each: from the first end to the second, and back.
    #[serde(deserialize_with = "units::delay")]
    #[schemars(schema_with = "units::schema_delay")]
    pub(crate) delay: [Duration; 2],
    /// Frames that may wait at each end: 128.
    #[serde(default = "units::wire_queue")]
    pub(crate) queue: usize,
    /// The largest datagram, in bytes: 1500.
    #[serde(default = "units::ethernet_mtu")]
    #[schemars(range(min = 68))]
    pub(crate) mtu: u16,
    /// The chance that a frame is lost.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub(crate) loss: f64,
    /// The chance that a frame arrives twice.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub(crate) duplicate: f64,
    /// Losses that come together.
    #[serde(default)]
    pub(crate) burst: Option<Burst>,
    /// Its IP network, as `10.1.0.0/24`, from which interfaces have their addresses.
    #[serde(default, deserialize_with = "node::config::some_text")]
    #[schemars(schema_with = "node::config::schema::prefix")]
    pub(crate) net: Option<Prefix>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cell {
    /// The host that is its base station.
    pub(crate) station: String,
    /// Bits a second that all its radios share, as `2Mb/s`.
    #[serde(deserialize_with = "units::rate")]
    #[schemars(schema_with = "units::schema_rate")]
    pub(crate) rate: u64,
    /// Propagation.
    #[serde(default, deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) delay: Duration,
    /// What each frame costs beyond its bits: preamble, acknowledgement.
    #[serde(default, deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) per_frame: Duration,
    /// Frames that may wait at each radio, besides the one on the air: 64.
    #[serde(default = "units::radio_queue")]
    pub(crate) queue: usize,
    /// Frames that may wait at its base station; as many as at each radio, if it is not given.
    pub(crate) station_queue: Option<u32>,
    /// Which waiting frame has the channel next: `fair`, by frame, from a queue of each radio; `fifo`, from one queue for all.
    #[serde(default)]
    pub(crate) access: Access,
    /// The largest datagram, in bytes: 1500.
    #[serde(default = "units::ethernet_mtu")]
    #[schemars(range(min = 68))]
    pub(crate) mtu: u16,
    /// The chance that a frame is lost.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub(crate) loss: f64,
    /// The chance that a frame arrives twice.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub(crate) duplicate: f64,
    /// Losses that come together.
    #[serde(default)]
    pub(crate) burst: Option<Burst>,
    /// Its channel: cells of one channel share the air, and a radio that stays on it has nothing to tune. Its own, if none is
    /// given.
    pub(crate) channel: Option<u16>,
    /// Its base station's beacons: they take air, and a radio that comes waits for one.
    pub(crate) beacon: Option<Beacon>,
    /// What it costs that several radios want to send; nothing, if it is not given.
    pub(crate) contention: Option<Contention>,
    /// Where its base station stands, in metres.
    pub(crate) position: Option<path::Place>,
    /// Its IP network, as `10.1.0.0/24`, from which interfaces have their addresses.
    #[serde(default, deserialize_with = "node::config::some_text")]
    #[schemars(schema_with = "node::config::schema::prefix")]
    pub(crate) net: Option<Prefix>,
}

/// Which waiting frame has a channel next.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Access {
    /// Each radio has a queue of its own, and the channel is granted for one frame, as 802.11 does.
    #[default]
    Fair,
    /// First come, first served: one queue for all radios of a channel.
    Fifo,
}

/// Losses that come together: a channel of two states, good and bad, that may change before each frame (Gilbert, Elliott).
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Burst {
    /// The chance to turn bad before a frame.
    #[schemars(range(min = 0, max = 1))]
    pub(crate) enter: f64,
    /// The chance to turn good again.
    #[schemars(range(min = 0, max = 1))]
    pub(crate) leave: f64,
    /// The chance that a frame is lost while it is bad.
    #[serde(default = "units::surely")]
    #[schemars(range(min = 0, max = 1))]
    pub(crate) loss: f64,
}

/// A base station's beacons.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Beacon {
    /// From one to the next: 102.4 ms.
    #[serde(default = "units::beacon_interval", deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) every: Duration,
    /// The frame's length, in bytes: 100.
    #[serde(default = "units::beacon_bytes")]
    #[schemars(range(min = 1, max = 2346))]
    pub(crate) bytes: usize,
}

/// Contention as in IEEE 802.11: who finds the air busy waits for a random number of slots, and who draws the same number as
/// another collides.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contention {
    /// A slot's length: 20 us.
    #[serde(default = "units::slot", deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) slot: Duration,
    /// Slots that a first draw is from: 32.
    #[serde(default = "units::window")]
    #[schemars(range(min = 1, max = 32768))]
    pub(crate) window: u32,
    /// Slots that a draw is from at most, after collisions: 1024.
    #[serde(default = "units::most")]
    #[schemars(range(min = 1, max = 32768))]
    pub(crate) most: u32,
}

/// Excursions of a radio to listen elsewhere: it leaves its channel and comes back.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scan {
    /// From one to the next.
    #[serde(deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) every: Duration,
    /// How long it is away.
    #[serde(deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) away: Duration,
}

/// Radios of mobile hosts, and how signals weaken.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Radio {
    /// How long a radio hears nothing when it changes cells.
    #[serde(default, deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) retune: Duration,
    /// How long until a radio hears anything when the run begins; as long as a change of cells, if none is given.
    #[serde(default, deserialize_with = "node::config::some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) attach: Option<Duration>,
    /// How long a radio is away when it visits another cell for one packet.
    #[serde(default, deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) excursion: Duration,
    /// How long a radio stays in its cell at most to send the frames that wait at it, when it is to change cells. With 0 s they are
    /// lost.
    #[serde(default, deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) drain: Duration,
    /// Frames that may wait at a mobile host's radio; as many as the cell says that it is in, if it is not given.
    pub(crate) queue: Option<u32>,
    /// How long it takes to associate, once a cell is heard.
    #[serde(default, deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) association: Duration,
    /// How a radio on a course or path learns of other cells: it goes there to listen. All the time and at no cost, if it is not
    /// given.
    pub(crate) scan: Option<Scan>,
    /// What is heard of a base station at one metre, in dBm: 15 dBm sent, as by a card of 802.11b, less 40 dB.
    #[serde(default = "units::at_1m")]
    pub(crate) at_1m: f64,
    /// How fast signals weaken with distance: 2 in free space, up to 6 within buildings.
    #[serde(default = "units::exponent")]
    pub(crate) exponent: f64,
}

impl Default for Radio {
    fn default() -> Self {
        let (at_1m, exponent) = (units::at_1m(), units::exponent());
        let (retune, attach, excursion) = (Duration::ZERO, None, Duration::ZERO);
        let (association, drain, scan, queue) = (Duration::ZERO, Duration::ZERO, None, None);
        Self { retune, attach, excursion, drain, queue, association, scan, at_1m, exponent }
    }
}

/// A host, before its roles are expanded.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Host {
    /// Its own address, whatever interface it is reached by.
    pub(crate) address: Option<Ipv4Addr>,
    /// How many radios it has, if it is mobile: one. They are `air`, `air2` and so on.
    #[serde(default = "units::one")]
    #[schemars(range(min = 1, max = 64))]
    pub(crate) radios: usize,
    /// How strongly its radios hear each cell, by the cell's name: points in time, with dBm.
    #[serde(default)]
    pub(crate) course: BTreeMap<String, Vec<Point>>,
    /// Where it goes, from which follows what its radios hear.
    pub(crate) path: Option<path::Way>,
    /// The neighbor that takes what no other route takes.
    pub(crate) default_route: Option<String>,
    /// How its TCP behaves: as in the host's configuration.
    #[serde(default)]
    #[schemars(with = "roles::TcpConfig")]
    pub(crate) tcp: Table,
    /// Its roles, in the order in which they are offered packets.
    #[serde(default)]
    #[schemars(schema_with = "protocol::schema")]
    pub(crate) role: Vec<Table>,
    /// What runs on it beside its roles, on Linux.
    #[serde(default)]
    pub(crate) program: Vec<Program>,
}

/// A point of a course: a time, and dBm.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(crate) struct Point(
    #[schemars(schema_with = "node::config::schema::span")]
    #[serde(deserialize_with = "node::config::span")]
    pub(crate) Duration,
    pub(crate) i16,
);

/// The built-in scenarios, by the name that `list` prints.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("first", include_str!("../../../../scenarios/first.toml")),
    ("bulk", include_str!("../../../../scenarios/bulk.toml")),
    ("mobile-ip/download", include_str!("../../../../scenarios/mobile-ip/download.toml")),
    ("mobile-ip/drive", include_str!("../../../../scenarios/mobile-ip/drive.toml")),
    ("indirect-tcp/handoff-time", include_str!("../../../../scenarios/indirect-tcp/handoff-time.toml")),
    ("sigma/handoff", include_str!("../../../../scenarios/sigma/handoff.toml")),
    ("sigma/mobile-ip", include_str!("../../../../scenarios/sigma/mobile-ip.toml")),
    ("cellular-ip/retune", include_str!("../../../../scenarios/cellular-ip/retune.toml")),
    ("cellular-ip/udp-loss", include_str!("../../../../scenarios/cellular-ip/udp-loss.toml")),
    ("air/walk", include_str!("../../../../scenarios/air/walk.toml")),
    ("scale/tree", include_str!("../../../../scenarios/scale/tree.toml")),
    ("scale/cellular-ip", include_str!("../../../../scenarios/scale/cellular-ip.toml")),
    ("scale/transfer", include_str!("../../../../scenarios/scale/transfer.toml")),
    ("evidence/bulk", include_str!("../../../../scenarios/evidence/bulk.toml")),
    ("evidence/kernel", include_str!("../../../../scenarios/evidence/kernel.toml")),
    ("evidence/outage", include_str!("../../../../scenarios/evidence/outage.toml")),
];

impl Scenario {
    /// Returns the name and text of a scenario: a built-in one of this name, or the file of this path.
    pub fn find(name: &str) -> Result<(String, String), ScenarioError> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            return Ok((format!("{name} (built in)"), (*text).to_owned()));
        }
        if let Some(text) = crate::compare::scenario(name) {
            return Ok((format!("{name} (built in)"), text.to_owned()));
        }
        match std::fs::read(name) {
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) if text.trim().is_empty() => Err(ScenarioError::new(name, "the file is empty")),
                Ok(text) => Ok((name.to_owned(), text)),
                Err(_) => Err(ScenarioError::new(name, "is not a scenario: the file is not UTF-8 text")),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
                let meant = nearest::did_you_mean(name, names.iter().copied());
                let known = format!("{}, {}", names.join(", "), crate::compare::PATTERN);
                Err(ScenarioError::new(
                    name,
                    format!(
                        "unknown scenario{meant}; give the path of a file, or one that is built in: {known}"
                    ),
                ))
            }
            Err(error) => Err(ScenarioError::new(name, format!("cannot be read: {error}"))),
        }
    }

    /// Reads a scenario and builds its plan. `file` is the name of the file in errors.
    pub fn plan(file: &str, text: &str, settings: &[Setting], seed: u64) -> Result<Plan, ScenarioError> {
        Self::repetition(file, text, settings, seed, Repetition::only(seed))
    }

    /// Reads a scenario and builds the plan of one of several runs, with shifted instants.
    pub fn repetition(
        file: &str,
        text: &str,
        settings: &[Setting],
        seed: u64,
        repetition: Repetition,
    ) -> Result<Plan, ScenarioError> {
        let (source, scenario, effective) = understand(file, text, settings, repetition)?;
        let mut plan = expand::plan(&source, &scenario, seed)?;
        plan.settings = settings.to_vec();
        plan.repetition = repetition;
        if let Some(inlined) = effective.inlined {
            // The kept text must be sufficient to repeat the run without the other files.
            plan.text = inlined;
        }
        plan.document = effective.text;
        // The description appears in figures and tables.
        plan.about = secret::hidden(&plan.about, &secret::keys_of(text, settings));
        Ok(plan)
    }

    /// Returns the description of a scenario, for `list`; `None` if it cannot be read.
    pub fn about(text: &str) -> Option<String> {
        let document: BTreeMap<String, Spanned<toml::Value>> = toml::from_str(text).ok()?;
        document.get("about")?.get_ref().as_str().map(str::to_owned)
    }
}

/// A scenario as text, after it was read.
struct Effective {
    /// The text with shifted instants.
    text: String,
    /// The text before the shift, with the contents of the files that it names. `None` if it names no file.
    inlined: Option<String>,
}

/// Reads a scenario with all files that it names, and shifts its instants.
fn understand<'a>(
    file: &'a str,
    text: &'a str,
    settings: &[Setting],
    repetition: Repetition,
) -> Result<(Source<'a>, Scenario, Effective), ScenarioError> {
    let (source, mut document) = read(file, text, settings.iter())?;
    let folder = std::path::Path::new(file).parent().unwrap_or(std::path::Path::new(""));
    let is_inlined = path::inline(&mut document, folder).map_err(|(key, why)| source.at_path(&key, &why))?;
    let written =
        |document: &Table| toml::to_string(document).map_err(|error| source.whole(error.to_string()));
    let inlined = if is_inlined { Some(written(&document)?) } else { None };
    phase::shift(&mut document, repetition).map_err(|why| source.at_path("phase", &why))?;
    let text = written(&document)?;
    let scenario = serde_path_to_error::deserialize(toml::Value::Table(document))
        .map_err(|error| source.at_path(&error.path().to_string(), error.inner().message()))?;
    Ok((source, scenario, Effective { text, inlined }))
}

/// Returns warnings about a scenario that can run: a move that never happens or leads nowhere, a workload that never
/// runs. The error is that of [`Scenario::plan`].
pub fn warnings(file: &str, text: &str, settings: &[Setting]) -> Result<Vec<ScenarioError>, ScenarioError> {
    let (source, scenario, _) = understand(file, text, settings, Repetition::only(0))?;
    expand::warnings(&source, &scenario)
}

/// Reads the document of a scenario and applies settings.
pub(crate) fn read<'a, 's>(
    file: &'a str,
    text: &'a str,
    settings: impl Iterator<Item = &'s Setting>,
) -> Result<(Source<'a>, Table), ScenarioError> {
    let mut source = Source::new(file, text);
    let mut document: Table = toml::from_str(text).map_err(|error| source.toml(&error))?;
    for setting in settings {
        let changed = setting.apply(&mut document).map_err(|problem| source.whole(problem))?;
        for path in changed {
            source.changed(path, setting.to_string());
        }
    }
    Ok((source, document))
}

/// Returns an error at a key of a scenario that was read before.
pub(crate) fn at_path(
    file: &str,
    text: &str,
    settings: &[Setting],
    path: &str,
    problem: &str,
) -> ScenarioError {
    match read(file, text, settings.iter()) {
        Ok((source, _)) => source.at_path(path, problem),
        Err(error) => error,
    }
}

/// Returns the name of a run of this file.
pub fn stem(file: &str) -> String {
    let name = file.trim_end_matches(" (built in)");
    let base = name.rsplit('/').next().unwrap_or(name);
    if name == file { base.trim_end_matches(".toml").to_owned() } else { name.replace('/', "-") }
}

#[cfg(test)]
mod tests;
