//! Scenario files: the input of a run.

mod chain;
mod check;
mod course;
mod document;
mod error;
mod event;
mod expand;
mod host_config;
mod layout;
mod limits;
mod medium;
mod moves;
mod nearest;
mod networks;
mod path;
mod phase;
mod protocol;
mod repetition;
mod resolve;
mod schema;
mod secret;
mod segment;
mod settings;
mod sweep;
mod tree;
pub(crate) mod units;

pub use error::ScenarioError;
pub use event::{EventTable, RandomTable, Step};
pub use host_config::{host_config, host_config_error};
pub use nearest::did_you_mean;
pub use node::config::parse_rate;
pub use phase::is_shifted;
pub use repetition::Repetition;
pub use schema::schema;
pub use secret::has_keys;
pub use settings::roles_of;
pub use settings::{Setting, as_grid, overwritten, redacted, repeated};
pub use sweep::{SweepPart, SweepTable};

use crate::Plan;
use crate::program::Program;
pub(crate) use document::at_path;
use document::read;
use error::Source;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use toml::{Spanned, Table};
use tree::TreeTable;
use wire::{Duration, Ipv4Addr, Prefix};

/// A scenario file after parsing. Hosts and links have names; a [`Plan`] has numbers in place of the names.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(description = "A scenario of Wayfare: hosts, links, workloads and moves.")]
pub struct Scenario {
    /// A description of the scenario in one line.
    pub about: String,
    /// The duration of a run.
    #[serde(deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) duration: Duration,
    /// With several runs: the largest shift of an instant [default: 1 s]. Each move, start of a flow, start of a
    /// program and course is shifted by a separate time, the same on both backends. The shift is less than half of the
    /// time to the next instant on which the shifted instant depends, or to the end of the run.
    #[serde(default, rename = "phase", deserialize_with = "node::config::some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    _phase: Option<Duration>,
    /// Wires, by names of your choice.
    #[serde(default)]
    pub(crate) wire: BTreeMap<String, Wire>,
    /// Radio cells, by their numbers.
    #[serde(default)]
    #[schemars(extend("propertyNames" = { "pattern": "^[0-9]{1,5}$" }))]
    pub(crate) cell: BTreeMap<String, Cell>,
    /// Segments, by names of your choice: wires that several hosts share. A host has an interface with the name of the
    /// segment.
    #[serde(default)]
    pub(crate) segment: BTreeMap<String, Segment>,
    /// Chains of routers between two hosts, by names of your choice.
    #[serde(default)]
    pub(crate) chain: BTreeMap<String, chain::ChainTable>,
    /// Radios of mobile hosts, and path loss.
    #[serde(default)]
    pub(crate) radio: Radio,
    /// Parameters that all hosts of a Cellular IP network share.
    #[serde(rename = "cellular-ip")]
    pub(crate) cellular_ip: Option<protocol::CellularIp>,
    /// Parameters that support routers and mobile hosts of Indirect TCP share.
    #[serde(rename = "indirect-tcp")]
    pub(crate) indirect_tcp: Option<protocol::IndirectTcp>,
    /// Parameters that mobile nodes and their home agents share.
    #[serde(rename = "mobile-ip")]
    pub(crate) mobile_ip: Option<protocol::MobileIp>,
    /// Parameters that mobile nodes of SIGMA and their location manager share.
    pub(crate) sigma: Option<protocol::Sigma>,
    /// Hosts, by their names.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Host>")]
    pub(crate) host: toml::map::Map<String, toml::Value>,
    /// Faults at given instants: crashes, cuts, losses.
    #[serde(default)]
    pub(crate) event: Vec<EventTable>,
    /// Faults at random instants, drawn from the seed of the run.
    #[serde(default)]
    pub(crate) random_event: Vec<RandomTable>,
    /// A tree with many hosts, instead of wires, cells and hosts with names.
    pub(crate) tree: Option<TreeTable>,
    /// Values that a sweep varies. A single run (`--once`) ignores this table.
    #[serde(default, rename = "sweep")]
    #[schemars(with = "sweep::SweepTable")]
    _sweep: Option<IgnoredAny>,
}

/// Defines the table of a wire or cell: the keys `before`, the keys that all links have, and the keys `after`.
/// `#[serde(flatten)]` would accept unknown keys.
macro_rules! link_table {
    ($name:ident { $($before:tt)* } { $($after:tt)* }) => {
        #[derive(Clone, Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            $($before)*
            /// The size of the largest datagram, in bytes [default: 1500].
            #[serde(default = "units::ethernet_mtu")]
            #[schemars(range(min = 68))]
            pub(crate) mtu: u16,
            /// The probability that a frame is lost [default: 0].
            #[serde(default)]
            #[schemars(range(min = 0, max = 1))]
            pub(crate) loss: f64,
            /// The probability that a frame arrives twice [default: 0].
            #[serde(default)]
            #[schemars(range(min = 0, max = 1))]
            pub(crate) duplicate: f64,
            /// How much later than a frame its second copy arrives [default: 0 s]. It is lost if the link is cut before, or if
            /// the sender has left the cell.
            #[serde(default, deserialize_with = "node::config::span")]
            #[schemars(schema_with = "node::config::schema::span")]
            pub(crate) duplicate_delay: Duration,
            /// Losses in bursts [default: none].
            #[serde(default)]
            pub(crate) burst: Option<Burst>,
            $($after)*
            /// The IP network of the link, for example `10.1.0.0/24` [default: none]. The two ends of a wire, the
            /// base station of a cell, or the hosts of a segment in their order, get their addresses from this network.
            #[serde(default, deserialize_with = "node::config::some_text")]
            #[schemars(schema_with = "node::config::schema::prefix")]
            pub(crate) net: Option<Prefix>,
        }

        impl $name {
            /// Returns the random errors of the link.
            pub(crate) fn faults(&self) -> link::Faults {
                let Self { loss, duplicate, duplicate_delay, burst, .. } = *self;
                link::Faults { loss, duplicate, duplicate_delay, burst: burst.map(medium::burst) }
            }
        }
    };
}

link_table! {
    Wire {
        /// The hosts at the two ends of the wire.
        pub(crate) ends: [String; 2],
        /// Bits per second in each direction, for example `2Mb/s`.
        #[serde(deserialize_with = "node::config::rate")]
        #[schemars(schema_with = "node::config::schema::rate")]
        pub(crate) rate: u64,
        /// One delay for both directions, or a list of two: from the first end to the second, and back.
        #[serde(deserialize_with = "units::delay")]
        #[schemars(schema_with = "units::schema_delay")]
        pub(crate) delay: [Duration; 2],
        /// The largest number of frames that wait at each end of the wire, in addition to the frame that is being sent
        /// [default: 128].
        #[serde(default = "units::wire_queue")]
        pub(crate) queue: usize,
    } {}
}

link_table! {
    Cell {
        /// The host that is the base station of the cell.
        pub(crate) station: String,
        /// Bits per second that all radios of the cell share, for example `2Mb/s`. With full `duplex`: the rate of the
        /// station.
        #[serde(deserialize_with = "node::config::rate")]
        #[schemars(schema_with = "node::config::schema::rate")]
        pub(crate) rate: u64,
        /// `half`: all radios of the cell share one medium. `full`: the cell is a switch, into which hosts are plugged by
        /// cables. The station and each host send without waiting for others, and a host that moves is notified that
        /// its link is down [default: half].
        #[serde(default)]
        pub(crate) duplex: Duplex,
        /// With full `duplex`: bits per second at which each host sends [default: the value of rate].
        #[serde(default, deserialize_with = "node::config::some_rate")]
        #[schemars(schema_with = "node::config::schema::rate")]
        pub(crate) uplink_rate: Option<u64>,
        /// The propagation delay of frames in the cell [default: 0 s].
        #[serde(default, deserialize_with = "node::config::span")]
        #[schemars(schema_with = "node::config::schema::span")]
        pub(crate) delay: Duration,
        /// The time that each frame takes besides its bits: preamble, acknowledgment [default: 0 s].
        #[serde(default, deserialize_with = "node::config::span")]
        #[schemars(schema_with = "node::config::schema::span")]
        pub(crate) per_frame: Duration,
        /// The largest number of frames that wait at each radio, in addition to the frame on the air [default: 64]. With
        /// fair `access`, it applies at the base station to the frames for each host.
        #[serde(default = "units::radio_queue")]
        pub(crate) queue: usize,
        /// The largest number of frames that wait at the base station, for all hosts together [default: `queue` for each
        /// host; with `access = "fifo"`, `queue`].
        pub(crate) station_queue: Option<u32>,
        /// The order of waiting frames: `fair` (round robin over a queue for each radio) or `fifo` (one queue for all
        /// radios) [default: fair].
        #[serde(default)]
        pub(crate) access: Access,
    } {
        /// The radio channel [default: a separate one]. Cells with the same channel share it, and a radio that moves
        /// between them does not retune.
        pub(crate) channel: Option<u16>,
        /// Beacons of the base station [default: none]. They use the channel, and a radio that arrives waits for one
        /// of them.
        pub(crate) beacon: Option<Beacon>,
        /// Contention between radios [default: none].
        pub(crate) contention: Option<Contention>,
        /// The position of the base station, in metres: two numbers from -1000000 to 1000000.
        pub(crate) position: Option<path::Position>,
    }
}

link_table! {
    Segment {
        /// The hosts on the segment, at least two.
        #[schemars(length(min = 2))]
        pub(crate) hosts: Vec<String>,
        /// Bits per second that all hosts share in both directions, for example `10Mb/s`.
        #[serde(deserialize_with = "node::config::rate")]
        #[schemars(schema_with = "node::config::schema::rate")]
        pub(crate) rate: u64,
        /// The propagation delay of frames [default: 0 s].
        #[serde(default, deserialize_with = "node::config::span")]
        #[schemars(schema_with = "node::config::schema::span")]
        pub(crate) delay: Duration,
        /// The time that each frame takes besides its bits: preamble, gap between frames [default: 0 s].
        #[serde(default, deserialize_with = "node::config::span")]
        #[schemars(schema_with = "node::config::schema::span")]
        pub(crate) per_frame: Duration,
        /// The largest number of frames that wait at each host, in addition to the frame that is being sent
        /// [default: 128].
        #[serde(default = "units::wire_queue")]
        pub(crate) queue: usize,
        /// The order of waiting frames: `fair` (round robin over a queue for each host) or `fifo` (one queue for all
        /// hosts) [default: fair].
        #[serde(default)]
        pub(crate) access: Access,
    } {
        /// Contention between hosts [default: none].
        pub(crate) contention: Option<Contention>,
    }
}

/// Whether the senders of a link share one medium.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Duplex {
    /// All senders share one medium.
    #[default]
    Half,
    /// Each sender has a separate medium.
    Full,
}

/// The order of frames that wait for a channel.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Access {
    /// Each radio has a separate queue, and gets the channel for one frame at a time, as in 802.11.
    #[default]
    Fair,
    /// First come, first served: one queue for all radios of a channel.
    Fifo,
}

/// Losses in bursts: a channel with two states, good and bad, which can change before each frame (Gilbert, Elliott).
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Burst {
    /// The probability of the change from good to bad, before each frame.
    #[schemars(range(min = 0, max = 1))]
    pub(crate) enter: f64,
    /// The probability of the change from bad to good, before each frame.
    #[schemars(range(min = 0, max = 1))]
    pub(crate) leave: f64,
    /// The probability that a frame is lost in the bad state [default: 1].
    #[serde(default = "units::surely")]
    #[schemars(range(min = 0, max = 1))]
    pub(crate) loss: f64,
}

/// The beacons of a base station.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Beacon {
    /// The interval between beacons [default: 102.4 ms].
    #[serde(default = "units::beacon_interval", deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) every: Duration,
    /// The length of a beacon frame, in bytes [default: 100].
    #[serde(default = "units::beacon_bytes")]
    #[schemars(range(min = 1, max = 2346))]
    pub(crate) bytes: usize,
}

/// Contention as in IEEE 802.11: a radio that finds the channel busy waits for a random number of slots. Radios that
/// draw the same number collide.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contention {
    /// The duration of a slot, greater than zero [default: 20 us].
    #[serde(default = "units::slot", deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) slot: Duration,
    /// The number of slots for the first draw [default: 32].
    #[serde(default = "units::window")]
    #[schemars(range(min = 1, max = 32768))]
    pub(crate) window: u32,
    /// The largest number of slots for a draw after collisions [default: 1024].
    #[serde(default = "units::most")]
    #[schemars(range(min = 1, max = 32768))]
    pub(crate) most: u32,
}

impl Contention {
    /// Checks the windows. An error has the path of the key in the table of the link, and the problem.
    pub(crate) fn check(self) -> Result<(), (&'static str, &'static str)> {
        let windows = 1..=32_768;
        if !windows.contains(&self.window) || !windows.contains(&self.most) {
            return Err(("contention", "`window` and `most` must be from 1 to 32768 slots"));
        }
        if self.slot.is_zero() {
            return Err(("contention.slot", "must be greater than zero, for example `20us`"));
        }
        if self.most < self.window {
            return Err(("contention.most", "must not be less than `window`"));
        }
        Ok(())
    }
}

/// Scans: a radio leaves its channel, listens on others, and returns.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scan {
    /// The interval between scans.
    #[serde(deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) every: Duration,
    /// The duration of a scan.
    #[serde(deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) away: Duration,
}

/// The base stations whose frames a radio receives.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Hears {
    /// That of the radio's own cell.
    #[default]
    Cell,
    /// All stations in reach on the channel of the radio's own cell.
    Channel,
}

/// The base stations from which a radio receives frames to itself alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DataOf {
    /// That of the radio's own cell.
    One,
    /// All stations in reach on the channel of the radio's own cell.
    All,
}

/// Radios of mobile hosts, and path loss.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Radio {
    /// The time in which a radio receives nothing when it changes cells [default: 0 s].
    #[serde(default, deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) retune: Duration,
    /// The time in which a radio receives nothing when it tunes to its first cell [default: the value of retune].
    #[serde(default, deserialize_with = "node::config::some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) attach: Option<Duration>,
    /// The time in which a radio receives nothing when it sends one packet in another cell [default: 0 s].
    #[serde(default, deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) excursion: Duration,
    /// The longest time in which a radio still sends its waiting frames before it changes cells [default: 0 s]. Frames
    /// that wait longer are lost.
    #[serde(default, deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) drain: Duration,
    /// The largest number of frames that wait at a mobile host's radio [default: the value of its cell].
    pub(crate) queue: Option<u32>,
    /// The time that an association takes, after a cell is heard [default: 0 s].
    #[serde(default, deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) association: Duration,
    /// Scans by which a radio on a course or path hears other cells [default: the radio hears other cells always, at
    /// no cost].
    pub(crate) scan: Option<Scan>,
    /// The base stations whose frames a mobile host's radio receives: `cell`, that of its cell; or `channel`, all in
    /// reach whose cell has the same `channel` [default: cell]. What the radio sends reaches the station that it is
    /// addressed to, if this is one of them.
    #[serde(default)]
    pub(crate) hears: Hears,
    /// With `hears = "channel"`: `all`, the radio receives all frames of these stations, and changes its cell without an
    /// interruption; or `one`, it receives frames to itself alone only from the station of its cell [default: all].
    pub(crate) data: Option<DataOf>,
    /// The signal of a base station at one metre, from -100 to 30 dBm [default: -25, for 15 dBm of an 802.11b card and 40 dB of
    /// loss].
    #[serde(default = "units::at_1m")]
    #[schemars(range(min = -100, max = 30))]
    pub(crate) at_1m: f64,
    /// The path loss exponent: 2 in free space, up to 6 inside buildings [default: 3].
    #[serde(default = "units::exponent")]
    #[schemars(range(min = 1, max = 10))]
    pub(crate) exponent: f64,
}

impl Default for Radio {
    fn default() -> Self {
        let (at_1m, exponent) = (units::at_1m(), units::exponent());
        let (retune, attach, excursion) = (Duration::ZERO, None, Duration::ZERO);
        let (association, drain, scan, queue) = (Duration::ZERO, Duration::ZERO, None, None);
        let (hears, data) = (Hears::Cell, None);
        Self { retune, attach, excursion, drain, queue, association, scan, hears, data, at_1m, exponent }
    }
}

/// A host: its address, radios, roles and programs.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Host {
    /// The address of the host, on all its interfaces.
    pub(crate) address: Option<Ipv4Addr>,
    /// The number of radios of a mobile host [default: 1]. Their names are `air`, `air2` and so on.
    #[serde(default = "units::one")]
    #[schemars(range(min = 1, max = 64))]
    pub(crate) radios: usize,
    /// The signal of each cell at the host's radios, by the cell's name: a list of times with dBm.
    #[serde(default)]
    pub(crate) course: BTreeMap<String, Vec<Point>>,
    /// The path of the host in metres; the signals of cells follow from it.
    pub(crate) path: Option<path::HostPath>,
    /// The neighbor for packets that match no other route.
    pub(crate) default_route: Option<String>,
    /// The parameters of the host's TCP, as in the configuration of a daemon.
    #[serde(default)]
    #[schemars(with = "roles::TcpConfig")]
    pub(crate) tcp: Table,
    /// The error of the host's wall clock, as in the configuration of a daemon.
    #[serde(default)]
    #[schemars(with = "roles::ClockConfig")]
    pub(crate) clock: Table,
    /// Whether the host records the number of entries that its roles hold for mobile hosts, at each change [default: false].
    #[serde(default)]
    pub(crate) record_state: bool,
    /// The roles of the host, in the order in which they are offered packets.
    #[serde(default)]
    #[schemars(schema_with = "protocol::schema")]
    pub(crate) role: Vec<Table>,
    /// Programs that run on the host on Linux, besides its roles.
    #[serde(default)]
    pub(crate) program: Vec<Program>,
}

/// A point of a course: a time, and a signal in dBm.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(crate) struct Point(
    #[schemars(schema_with = "node::config::schema::span")]
    #[serde(deserialize_with = "node::config::span")]
    pub(crate) Duration,
    pub(crate) i16,
);

/// The built-in scenarios: the name that `wayfare list` prints, and the TOML text.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("first", include_str!("../../../../scenarios/first.toml")),
    ("bulk", include_str!("../../../../scenarios/bulk.toml")),
    ("mobile-ip/dhcp", include_str!("../../../../scenarios/mobile-ip/dhcp.toml")),
    ("mobile-ip/download", include_str!("../../../../scenarios/mobile-ip/download.toml")),
    ("mobile-ip/drive", include_str!("../../../../scenarios/mobile-ip/drive.toml")),
    ("mobile-ip/narrow-path", include_str!("../../../../scenarios/mobile-ip/narrow-path.toml")),
    ("mobile-ip/overlay", include_str!("../../../../scenarios/mobile-ip/overlay.toml")),
    ("mobile-ip/route-optimization", include_str!("../../../../scenarios/mobile-ip/route-optimization.toml")),
    ("mobile-ip/smooth-handoff", include_str!("../../../../scenarios/mobile-ip/smooth-handoff.toml")),
    ("mobile-ip/soak", include_str!("../../../../scenarios/mobile-ip/soak.toml")),
    ("mobile-ip/triangle", include_str!("../../../../scenarios/mobile-ip/triangle.toml")),
    ("mobile-ip/triangle-shared", include_str!("../../../../scenarios/mobile-ip/triangle-shared.toml")),
    ("mobile-ip/movement-detection", include_str!("../../../../scenarios/mobile-ip/movement-detection.toml")),
    ("mobile-ip/movement-overlap", include_str!("../../../../scenarios/mobile-ip/movement-overlap.toml")),
    ("mobile-ip/registration-delay", include_str!("../../../../scenarios/mobile-ip/registration-delay.toml")),
    ("mobile-ip/satellite", include_str!("../../../../scenarios/mobile-ip/satellite.toml")),
    ("indirect-tcp/handoff-time", include_str!("../../../../scenarios/indirect-tcp/handoff-time.toml")),
    ("sigma/handoff", include_str!("../../../../scenarios/sigma/handoff.toml")),
    ("sigma/mobile-ip", include_str!("../../../../scenarios/sigma/mobile-ip.toml")),
    ("cellular-ip/retune", include_str!("../../../../scenarios/cellular-ip/retune.toml")),
    ("cellular-ip/udp-loss", include_str!("../../../../scenarios/cellular-ip/udp-loss.toml")),
    ("air/walk", include_str!("../../../../scenarios/air/walk.toml")),
    ("links/overlap", include_str!("../../../../scenarios/links/overlap.toml")),
    ("links/plug", include_str!("../../../../scenarios/links/plug.toml")),
    ("links/segments", include_str!("../../../../scenarios/links/segments.toml")),
    ("scale/tree", include_str!("../../../../scenarios/scale/tree.toml")),
    ("scale/cellular-ip", include_str!("../../../../scenarios/scale/cellular-ip.toml")),
    ("scale/transfer", include_str!("../../../../scenarios/scale/transfer.toml")),
    ("evidence/bulk", include_str!("../../../../scenarios/evidence/bulk.toml")),
    ("evidence/kernel", include_str!("../../../../scenarios/evidence/kernel.toml")),
    ("evidence/outage", include_str!("../../../../scenarios/evidence/outage.toml")),
];

impl Scenario {
    /// Returns the name for errors and the text of a scenario: the built-in scenario `name`, or the file at the path
    /// `name`.
    ///
    /// # Errors
    ///
    /// There is no such scenario, or the file cannot be read, is empty or is not UTF-8.
    pub fn find(name: &str) -> Result<(String, String), ScenarioError> {
        Self::find_beside(name, &[])
    }

    /// Returns a scenario as [`Scenario::find`] does. The error for an unknown name lists `others` in addition to the
    /// built-in scenarios.
    ///
    /// # Errors
    ///
    /// Those of [`Scenario::find`].
    pub fn find_beside(name: &str, others: &[&str]) -> Result<(String, String), ScenarioError> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            return Ok((format!("{name} (built in)"), (*text).to_owned()));
        }
        match std::fs::read(name) {
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) if text.trim().is_empty() => Err(ScenarioError::new(
                    name,
                    "the file is empty; `wayfare schema` prints the keys of a scenario",
                )),
                Ok(text) => Ok((name.to_owned(), text)),
                Err(_) => Err(ScenarioError::new(name, "is not a scenario: the file is not UTF-8 text")),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
                let meant = nearest::did_you_mean(name, names.iter().copied());
                let known = [&names, others].concat().join(", ");
                Err(ScenarioError::new(
                    name,
                    format!(
                        "unknown scenario{meant}; give the path of a file, or a built-in scenario: {known}"
                    ),
                ))
            }
            Err(error) if error.kind() == std::io::ErrorKind::IsADirectory => Err(ScenarioError::new(
                name,
                "is a directory; give the path of a scenario file, or a built-in scenario (see `wayfare list`)",
            )),
            Err(error) => Err(ScenarioError::new(name, format!("cannot be read: {error}"))),
        }
    }

    /// Reads a scenario and builds the plan of a single run. `file`: the name of the file in errors. Other files are
    /// found relative to its folder. `seed`: the random seed of the run. Fails if the text, a setting or the scenario
    /// is invalid.
    pub fn plan(file: &str, text: &str, settings: &[Setting], seed: u64) -> Result<Plan, ScenarioError> {
        Self::repetition(file, text, settings, seed, Repetition::only(seed))
    }

    /// Reads a scenario and builds the plan of one of several runs, with shifted instants. Its arguments and errors
    /// are those of [`Scenario::plan`].
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
            // The text in the run directory must be sufficient to repeat the run without the other files.
            plan.text = inlined;
        }
        plan.document = effective.text;
        // The description appears in figures and tables, so it must not contain secret keys.
        plan.about = secret::hidden(&plan.about, &settings::keys_of(text, settings));
        Ok(plan)
    }

    /// Returns the description (`about`) of a scenario, for `wayfare list`. `None` if the text is not TOML or has no
    /// description.
    pub fn about(text: &str) -> Option<String> {
        let document: BTreeMap<String, Spanned<toml::Value>> = toml::from_str(text).ok()?;
        document.get("about")?.get_ref().as_str().map(str::to_owned)
    }
}

/// The texts of a scenario after it was read.
struct Effective {
    /// The text with shifted instants.
    text: String,
    /// The text before the shift, with the contents of the files that the scenario names. `None` if it names no file.
    inlined: Option<String>,
}

/// Reads a scenario with the files that it names, applies settings, and shifts its instants.
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
    let mut scenario = serde_path_to_error::deserialize(toml::Value::Table(document)).map_err(|error| {
        let path = error.path().to_string();
        source.at_path(&path, &roles::by_schema::<Scenario>(&path, error.inner().message()))
    })?;
    chain::expand(&mut scenario).map_err(|(key, problem)| source.at_path(&key, &problem))?;
    Ok((source, scenario, Effective { text, inlined }))
}

/// Returns warnings about a scenario that can run: a move that never happens, a move to the present cell, a workload
/// that never runs. Fails with the error of [`Scenario::plan`] if a key or the layout of hosts and links is invalid.
/// Invalid roles are not found here.
pub fn warnings(file: &str, text: &str, settings: &[Setting]) -> Result<Vec<ScenarioError>, ScenarioError> {
    let (source, scenario, _) = understand(file, text, settings, Repetition::only(0))?;
    expand::warnings(&source, &scenario)
}

/// Returns the name of a scenario for its run directory: `file` without folder and `.toml`. For a built-in scenario
/// it is the whole name, with `-` in place of `/`.
pub fn stem(file: &str) -> String {
    let name = file.trim_end_matches(" (built in)");
    let base = name.rsplit('/').next().unwrap_or(name);
    if name == file { base.trim_end_matches(".toml").to_owned() } else { name.replace('/', "-") }
}

#[cfg(test)]
mod tests;
