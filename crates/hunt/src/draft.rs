//! A random scenario as data: what [`draw`](crate::draw) makes, [`write`](crate::write) writes as TOML, and
//! [`shrink`](crate::shrink) simplifies.

use crate::fault::{Fault, Spot, What};
use std::fmt;
use std::str::FromStr;

/// The protocols that are searched.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Protocol {
    /// Cellular IP: hosts move inside one tree of stations.
    CellularIp,
    /// Mobile IP: a home agent, and foreign agents.
    MobileIp,
    /// SIGMA: SCTP associations whose addresses change.
    Sigma,
    /// Indirect TCP over Mobile IP.
    IndirectTcp,
}

impl Protocol {
    /// All of them, in the order in which they are searched.
    pub const ALL: [Self; 4] = [Self::CellularIp, Self::MobileIp, Self::Sigma, Self::IndirectTcp];

    /// Its name on the command line.
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
        named.ok_or_else(|| format!("allowed: {}", known.join(", ")))
    }
}

/// A whole scenario. Times are in milliseconds of virtual time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Draft {
    /// What its hosts move by.
    pub protocol: Protocol,
    /// The random seed of the run.
    pub seed: u64,
    /// The wire between the correspondent and the routers.
    pub core: Link,
    /// Routers with a cell each; of Cellular IP, the nodes of a tree, of which the leaves have cells.
    pub routers: Vec<Router>,
    /// How long a radio needs to change cells.
    pub retune_ms: u64,
    /// Bytes of an application that a host or a router buffers.
    pub buffer: u32,
    /// Mobile hosts.
    pub hosts: Vec<Mobile>,
    /// What goes wrong, one after the other.
    pub faults: Vec<Fault>,
    /// How long after the last move or fault datagrams are sent.
    pub watched_ms: u64,
}

/// A link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// One-way delay in microseconds.
    pub delay_us: u64,
    /// Loss, in parts of ten thousand.
    pub loss: u32,
    /// The largest packet.
    pub mtu: u16,
}

/// A router and its cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Router {
    /// Its place in the list of the node above it; of protocols without a tree, ignored.
    pub parent: usize,
    /// The wire to the node above it.
    pub wire: Link,
    /// Its cell; no cell if there are nodes below it.
    pub air: Link,
    /// The cell's rate in kb/s.
    pub rate: u32,
}

/// A mobile host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mobile {
    /// The router in whose cell it begins.
    pub start: usize,
    /// Its moves, in the order of time.
    pub moves: Vec<Move>,
    /// What its applications do.
    pub work: Vec<Work>,
}

/// A move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move {
    /// When.
    pub at: u64,
    /// The router to whose cell.
    pub to: usize,
    /// Cellular IP: semisoft.
    pub soft: bool,
    /// SIGMA: how long both cells are heard, or, if negative, none.
    pub overlap: i64,
}

/// A workload of a mobile host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// The number by which its port is known: all are different.
    pub port: u16,
    /// The other end: a mobile host, or the correspondent.
    pub peer: Option<usize>,
    /// When it starts.
    pub start: u64,
    /// What it is.
    pub kind: Kind,
}

/// A kind of workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The mobile host downloads so many bytes.
    Down(u64),
    /// The peer downloads so many bytes from it.
    Up(u64),
    /// Questions of the mobile host, each with an answer.
    Asks {
        /// Bytes of a question.
        question: u32,
        /// Bytes of an answer.
        answer: u32,
        /// Milliseconds between two questions.
        every: u64,
        /// How many.
        count: u64,
    },
    /// Datagrams to the mobile host, or from it, so many a second.
    Datagrams {
        /// From the mobile host.
        up: bool,
        /// How many a second.
        rate: u32,
        /// Bytes in each.
        size: u32,
    },
}

/// How long after the last move everything has ended, or its programs know that it has failed.
pub const PATIENCE_MS: u64 = 120_000;

/// The name of the mobile host of this number, in a scenario and in its records.
pub fn mobile_name(host: usize) -> String {
    format!("m{host}")
}

impl Draft {
    /// The instant of the last move or fault, and no earlier than when all applications have begun.
    pub fn last_change(&self) -> u64 {
        let moves =
            self.hosts.iter().flat_map(|host| &host.moves).map(|step| step.at + step.overlap.unsigned_abs());
        let starts = self.hosts.iter().flat_map(|host| &host.work).map(|work| work.start);
        let faults = self.faults.iter().map(Fault::ends);
        moves.chain(starts).chain(faults).max().unwrap_or(0) + self.retune_ms
    }

    /// When the run ends, if nothing ends it earlier.
    pub fn end(&self) -> u64 {
        self.last_change() + PATIENCE_MS
    }

    /// When the sources of datagrams stop.
    pub fn stop(&self) -> u64 {
        self.last_change() + self.watched_ms
    }

    /// Routers that have a cell.
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

    /// The link at this place, as it was drawn.
    pub fn link_at(&self, spot: Spot) -> Option<Link> {
        match spot {
            Spot::Core => Some(self.core),
            // The gateway of a tree has no wire of that kind.
            Spot::Wire(0) if self.protocol == Protocol::CellularIp => Some(self.core),
            Spot::Wire(index) => self.routers.get(index).map(|router| router.wire),
            Spot::Air(index) => self.routers.get(index).map(|router| router.air),
        }
    }

    /// All links, for who changes them all.
    pub fn links_mut(&mut self) -> impl Iterator<Item = &mut Link> {
        std::iter::once(&mut self.core)
            .chain(self.routers.iter_mut().flat_map(|router| [&mut router.wire, &mut router.air]))
    }

    /// The smallest MTU of any link at any time.
    pub fn narrowest(&self) -> u16 {
        let links = self.routers.iter().flat_map(|router| [router.wire.mtu, router.air.mtu]);
        let faults = self.faults.iter().filter_map(|fault| match fault.what {
            What::Narrow(_, mtu) => Some(mtu),
            _ => None,
        });
        links.chain(faults).fold(self.core.mtu, u16::min)
    }

    /// The wires between a router and the correspondent, with the router's cell.
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

    /// The worst chance that a packet is lost on its path between a mobile host and its peer. A path by the home network, or
    /// between two mobile hosts, crosses three such paths at most.
    pub fn worst_loss(&self) -> f64 {
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

    /// The longest round trip between a mobile host and its peer, without queues, in milliseconds.
    pub fn worst_round_trip(&self) -> u64 {
        let delay = |router| self.path(router).iter().map(|link| link.delay_us).sum::<u64>();
        let one = self.cells().into_iter().map(delay).max().unwrap_or(0);
        2 * one * if self.is_triangle() { 3 } else { 1 } / 1000 + 1
    }

    fn is_triangle(&self) -> bool {
        matches!(self.protocol, Protocol::MobileIp | Protocol::IndirectTcp)
            || self.hosts.iter().flat_map(|host| &host.work).any(|work| work.peer.is_some())
    }
}
