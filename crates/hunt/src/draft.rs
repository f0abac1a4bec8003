//! A random scenario as data: what [`draw`](crate::draw) makes, [`write`](crate::write) writes as TOML, and
//! [`shrink`](crate::shrink) simplifies.

use crate::fault::{Fault, Spot, What};
use crate::options::{CareOf, Clock, Offers, Options, Visited};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A mobility protocol under test.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Protocol {
    /// Cellular IP: hosts move inside one tree of stations.
    CellularIp,
    /// Mobile IP: a home agent, and foreign agents.
    MobileIp,
    /// SIGMA: SCTP associations whose addresses change.
    Sigma,
    /// Indirect TCP: routers relay the connections of hosts that move by Mobile IP.
    IndirectTcp,
}

impl Protocol {
    /// All protocols, in the order in which they are searched.
    pub const ALL: [Self; 4] = [Self::CellularIp, Self::MobileIp, Self::Sigma, Self::IndirectTcp];

    /// Returns the protocol's name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CellularIp => "cellular-ip",
            Self::MobileIp => "mobile-ip",
            Self::Sigma => "sigma",
            Self::IndirectTcp => "indirect-tcp",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|protocol| protocol.name() == text);
        let known: Vec<&str> = Self::ALL.iter().map(|protocol| protocol.name()).collect();
        named.ok_or_else(|| {
            let meant = scenario::did_you_mean(text, known.iter().copied());
            format!("there is no protocol `{text}`{meant}; allowed: {}", known.join(", "))
        })
    }
}

/// A random scenario as data, before it is written as TOML. Times are in milliseconds from the begin of the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Draft {
    /// The mobility protocol of the hosts.
    pub protocol: Protocol,
    /// The random seed of the run.
    pub seed: u64,
    /// The wire between the correspondent and the core router or gateway.
    pub core: Link,
    /// The routers, each with a cell. With Cellular IP, they are the nodes of a tree: index 0 is the gateway, and the
    /// leaves have cells.
    pub routers: Vec<Router>,
    /// The time that a radio needs to change cells, in milliseconds.
    pub retune_ms: u64,
    /// The movement detection of all mobile hosts; unused by protocols without Mobile IP.
    pub detection: Detection,
    /// The options of Mobile IP; unused by other protocols.
    pub options: Options,
    /// The size of a host's or router's buffer for a connection, in bytes.
    pub buffer: u32,
    /// The mobile hosts, at least one. Other parts of the draft name a host by its index in this list.
    pub hosts: Vec<Mobile>,
    /// Faults, in the order of time, without overlap.
    pub faults: Vec<Fault>,
    /// The time after [`Draft::last_change`] for which datagrams are sent, in milliseconds.
    pub watched_ms: u64,
}

/// How the mobile nodes of Mobile IP detect that they have moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Detection {
    /// The policy: a value of the key `movement` of a mobile node.
    pub policy: &'static str,
    /// Whether a link that comes up is a reason to register (`link_trigger`).
    pub trigger: bool,
}

impl Detection {
    /// The policies, in the order of the numbers that are drawn.
    pub const POLICIES: [&'static str; 5] = ["lcs", "pm", "pm-eager", "ecs", "expiry"];
    /// The values of the roles if a scenario gives none.
    pub const DEFAULT: Self = Self { policy: "lcs", trigger: true };
    /// The lifetime of a registration with `expiry`, in seconds.
    pub const LIFETIME: u64 = 10;

    /// Returns the longest time from the end of a move until the mobile node registers, in milliseconds. The lifetime
    /// of an advertisement is 3 s, and the period of advertisements is 1 s. With `expiry`, the registration must end.
    pub const fn longest_ms(self) -> u64 {
        match self.policy.as_bytes() {
            _ if self.trigger => 0,
            b"expiry" => Self::LIFETIME * 1000 + 1000,
            _ => 4000,
        }
    }
}

/// The properties of a wire or of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The one-way delay, in microseconds.
    pub delay_us: u64,
    /// The probability that a frame is lost, in units of 0.01 %.
    pub loss: u32,
    /// The MTU of the link, in bytes.
    pub mtu: u16,
}

/// A router, its cell, and its wire to the node above it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Router {
    /// The index in [`Draft::routers`] of the node above the router in the tree. Protocols without a tree ignore it.
    pub parent: usize,
    /// The wire to the node above the router in the tree. Without a tree, the wire to the core router.
    pub wire: Link,
    /// The link of the router's cell. Unused if there are nodes below the router.
    pub air: Link,
    /// The rate of the cell in kb/s.
    pub rate: u32,
    /// Mobile IP: what the router has for visitors with an own care-of address.
    pub visited: Visited,
    /// Mobile IP: what the router's agents offer.
    pub offers: Offers,
    /// Mobile IP: the error of the router's clock.
    pub clock: Clock,
}

/// A mobile host, with its moves and workloads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mobile {
    /// The index in [`Draft::routers`] of the router in whose cell the host begins.
    pub start: usize,
    /// The moves of the host, in the order of time.
    pub moves: Vec<Move>,
    /// The workloads of the host, at least one.
    pub work: Vec<Work>,
    /// Mobile IP: the index in [`Draft::routers`] of the router with the host's home agent.
    pub home: usize,
    /// Mobile IP: the error of the host's clock.
    pub clock: Clock,
    /// Mobile IP with [`Options::interfaces`]: the host's second radio; `None` if it has one radio.
    pub second: Option<Second>,
}

/// The second radio of a mobile host. It stays in one cell, in which the first radio never is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Second {
    /// The index in [`Draft::routers`] of the router of the cell.
    pub cell: usize,
    /// The times at which the cell comes within reach, goes out of reach, comes within reach again, and so on, in
    /// milliseconds. The host begins out of reach.
    pub turns: Vec<u64>,
}

impl Second {
    /// Returns the times without reach after each time within reach: their begins, and their ends if they end.
    pub(crate) fn losses(&self) -> impl Iterator<Item = (u64, Option<u64>)> + '_ {
        self.turns
            .chunks(2)
            .zip(1..)
            .filter_map(|(turns, next)| Some((*turns.get(1)?, self.turns.get(2 * next).copied())))
    }
}

/// A move of a mobile host to another cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move {
    /// The time of the move, in milliseconds.
    pub at: u64,
    /// The index in [`Draft::routers`] of the router to whose cell the host moves.
    pub to: usize,
    /// Cellular IP: whether the handoff is semisoft.
    pub soft: bool,
    /// SIGMA: the time for which the radio hears both cells, in milliseconds. If negative, the time for which the radio
    /// hears neither cell.
    pub overlap: i64,
}

/// A workload of a mobile host: a connection, or a stream of datagrams, between the host and a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// The port of the workload. No other workload of the draft has this port.
    pub port: u16,
    /// The index in [`Draft::hosts`] of the mobile host at the other end. `None`: the correspondent is at the other
    /// end.
    pub peer: Option<usize>,
    /// The time at which the workload starts, in milliseconds.
    pub start: u64,
    /// The kind of workload, with its amount of data.
    pub kind: Kind,
}

/// The data that a workload transfers, and their direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The mobile host downloads this number of bytes.
    Down(u64),
    /// The peer downloads this number of bytes from the mobile host.
    Up(u64),
    /// Requests of the mobile host, each with an answer.
    Asks {
        /// Bytes of payload in a request.
        question: u32,
        /// Bytes of payload in an answer.
        answer: u32,
        /// The time between two requests, in milliseconds.
        every: u64,
        /// The number of requests.
        count: u64,
    },
    /// Datagrams to or from the mobile host, at a constant rate.
    Datagrams {
        /// Whether the mobile host sends the datagrams. Otherwise its peer sends them.
        up: bool,
        /// Datagrams per second.
        rate: u32,
        /// Bytes of payload in each datagram.
        size: u32,
    },
}

/// The time from [`Draft::last_change`] to the latest end of the run, in milliseconds. Connections have this time to
/// end.
pub const PATIENCE_MS: u64 = 120_000;

/// The time that a DHCP server or client waits for an answer to its ARP request, in milliseconds (the default).
const PROBE_MS: u64 = 200;

/// Returns the name of the mobile host with this index, in the scenario and in records.
pub(crate) fn mobile_name(host: usize) -> String {
    format!("m{host}")
}

impl Draft {
    /// Returns a time in milliseconds: one retune time after the last change. A change is the end of a move, the end of
    /// a fault or the start of a workload.
    pub fn last_change(&self) -> u64 {
        let moves =
            self.hosts.iter().flat_map(|host| &host.moves).map(|step| step.at + step.overlap.unsigned_abs());
        let starts = self.hosts.iter().flat_map(|host| &host.work).map(|work| work.start);
        let faults = self.faults.iter().map(Fault::ends);
        let turns = self.hosts.iter().filter_map(|host| host.second.as_ref()?.turns.last().copied());
        moves.chain(turns).chain(starts).chain(faults).max().unwrap_or(0) + self.retune_ms
    }

    /// Returns the longest time from the end of a move until the mobile node registers, in milliseconds, if no packet is
    /// lost; 0 without Mobile IP.
    pub fn longest_detection_ms(&self) -> u64 {
        if !matches!(self.protocol, Protocol::MobileIp | Protocol::IndirectTcp) {
            return 0;
        }
        let address = match self.options.care_of {
            CareOf::Agent => 0,
            // The server and the client each ask by ARP whether another host has the address.
            CareOf::Acquired => 2 * PROBE_MS,
            CareOf::Configured(delay) => delay,
        };
        self.detection.longest_ms() + address
    }

    /// Returns the latest end of the run, in milliseconds. The run ends earlier if all connections are over.
    pub fn end(&self) -> u64 {
        self.last_change() + PATIENCE_MS
    }

    /// Returns the time at which the sources of datagrams stop, in milliseconds.
    pub fn stop(&self) -> u64 {
        self.last_change() + self.watched_ms
    }

    /// Returns the indices of the mobile hosts without connections. Such a host may crash: its applications continue
    /// after its restart.
    pub(crate) fn with_datagrams_only(&self) -> Vec<usize> {
        let is_connection = |work: &&Work| !matches!(work.kind, Kind::Datagrams { .. });
        let mut hosts = (0..self.hosts.len()).collect::<BTreeSet<_>>();
        for (index, host) in self.hosts.iter().enumerate() {
            for work in host.work.iter().filter(is_connection) {
                hosts.remove(&index);
                hosts.retain(|other| Some(*other) != work.peer);
            }
        }
        hosts.into_iter().collect()
    }

    /// Returns the indices of the routers that have a cell: all, or the leaves of a Cellular IP tree.
    pub fn cells(&self) -> Vec<usize> {
        let is_leaf = |index: &usize| {
            self.protocol != Protocol::CellularIp
                || (*index > 0
                    && !self
                        .routers
                        .iter()
                        .enumerate()
                        .any(|(other, router)| other > 0 && router.parent == *index))
        };
        (0..self.routers.len()).filter(is_leaf).collect()
    }

    /// Returns the link that `spot` names, without the effects of faults; `None` if there is no such router.
    pub(crate) fn link_at(&self, spot: Spot) -> Option<Link> {
        match spot {
            Spot::Core => Some(self.core),
            // The gateway of a tree has no node above it, so its wire is the core link.
            Spot::Wire(0) if self.protocol == Protocol::CellularIp => Some(self.core),
            Spot::Wire(index) => self.routers.get(index).map(|router| router.wire),
            Spot::Air(index) => self.routers.get(index).map(|router| router.air),
        }
    }

    /// Returns all links, to change them: the core link, then the wire and the cell of each router.
    pub(crate) fn links_mut(&mut self) -> impl Iterator<Item = &mut Link> {
        std::iter::once(&mut self.core)
            .chain(self.routers.iter_mut().flat_map(|router| [&mut router.wire, &mut router.air]))
    }

    /// Returns the smallest MTU of any link at any time, in bytes.
    pub(crate) fn narrowest(&self) -> u16 {
        let links = self.routers.iter().flat_map(|router| [router.wire.mtu, router.air.mtu]);
        let faults = self.faults.iter().filter_map(|fault| match fault.what {
            What::Narrow(_, mtu) => Some(mtu),
            _ => None,
        });
        links.chain(faults).fold(self.core.mtu, u16::min)
    }

    /// Returns the wires between a router and the correspondent, and the router's cell.
    fn path(&self, router: usize) -> Vec<Link> {
        let mut links = vec![self.core];
        let mut at = router;
        let tree = self.protocol == Protocol::CellularIp;
        if let Some(router) = self.routers.get(at) {
            links.push(router.air);
        }
        while let Some(router) = self.routers.get(at) {
            if tree && at == 0 {
                break;
            }
            links.push(router.wire);
            if !tree {
                break;
            }
            at = router.parent;
        }
        links
    }

    /// Returns the highest probability (0 to 1) that a packet is lost between a mobile host and its peer. A path
    /// through the home network, or between two mobile hosts, crosses at most three paths from a cell to the
    /// correspondent.
    pub(crate) fn worst_loss(&self) -> f64 {
        let passes =
            |router| self.path(router).iter().map(|link| 1.0 - f64::from(link.loss) / 1e4).product::<f64>();
        let mut one = self.cells().into_iter().map(passes).fold(1.0, f64::min);
        for fault in &self.faults {
            if let What::Loss(_, loss) = fault.what {
                one *= 1.0 - f64::from(loss) / 1e4;
            }
        }
        1.0 - one.powi(if self.is_triangle() { 3 } else { 1 })
    }

    /// Returns the longest round trip between a mobile host and its peer, in milliseconds, without queueing.
    pub(crate) fn worst_round_trip(&self) -> u64 {
        let delay = |router| self.path(router).iter().map(|link| link.delay_us).sum::<u64>();
        let one = self.cells().into_iter().map(delay).max().unwrap_or(0);
        2 * one * if self.is_triangle() { 3 } else { 1 } / 1000 + 1
    }

    /// Returns whether packets to a mobile host cross its home network.
    pub(crate) fn is_triangle(&self) -> bool {
        matches!(self.protocol, Protocol::MobileIp | Protocol::IndirectTcp)
            || self.hosts.iter().flat_map(|host| &host.work).any(|work| work.peer.is_some())
    }
}
