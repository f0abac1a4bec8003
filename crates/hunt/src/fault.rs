//! The faults of a draft, which become `[[event]]` tables. Times are in milliseconds.

/// A fault of a host or a link: its begin, its duration and its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The begin of the fault, in milliseconds.
    pub at: u64,
    /// The duration of the fault, in milliseconds. It is 0 for a clock step and for a new MTU: they last until the end
    /// of the run.
    pub lasts: u64,
    /// The kind of the fault, and the host or link that it affects.
    pub what: What,
}

/// A kind of fault, with the host or link that it affects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// A host crashes, and restarts from its stored state.
    Crash(Node),
    /// A host is stopped and continued, and keeps its state.
    Stop(Node),
    /// A link carries no frames.
    Cut(Spot),
    /// A link loses additional packets at random, with this probability in units of 0.01 %.
    Loss(Spot, u32),
    /// From this fault until the end of the run, the MTU of a link is this number of bytes.
    Narrow(Spot, u16),
    /// A host's wall clock is stepped by this number of milliseconds.
    Clock(Node, i64),
    /// The disk of a host is full.
    DiskFull(Node),
}

/// The host that a fault affects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Node {
    /// The router or the node of a tree with this index in the draft.
    Router(usize),
    /// The mobile host with this index in the draft.
    Mobile(usize),
    /// The correspondent: the host `fixed` of the scenario.
    Fixed,
    /// SIGMA's location manager: the host `manager` of the scenario.
    Manager,
}

/// The link that a fault affects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spot {
    /// The correspondent's wire, to the core router or the gateway.
    Core,
    /// The wire from the router with this index to the node above it.
    Wire(usize),
    /// The cell of the router with this index.
    Air(usize),
}

impl What {
    /// Returns whether the fault affects the correspondent.
    pub(crate) const fn is_of_fixed(self) -> bool {
        matches!(self, Self::Crash(Node::Fixed) | Self::Stop(Node::Fixed) | Self::Clock(Node::Fixed, _))
    }
}

impl Fault {
    /// Returns the end of the fault, in milliseconds.
    pub const fn ends(&self) -> u64 {
        self.at + self.lasts
    }

    /// Returns whether the fault stops all packets, or all signalling, at the host or link that it affects.
    pub const fn blocks(&self) -> bool {
        matches!(self.what, What::Crash(_) | What::Stop(_) | What::Cut(_) | What::DiskFull(_))
    }

    /// Returns whether the fault removes soft state, until a refresh restores it.
    pub const fn forgets(&self) -> bool {
        matches!(self.what, What::Crash(_))
    }

    /// Returns the index of the affected router, or of the router whose wire or cell is affected. `None` for the core
    /// link, and for all hosts that are no routers of the draft.
    pub const fn router(&self) -> Option<usize> {
        match self.what {
            What::Crash(Node::Router(router))
            | What::Stop(Node::Router(router))
            | What::Clock(Node::Router(router), _)
            | What::DiskFull(Node::Router(router)) => Some(router),
            What::Cut(spot) | What::Loss(spot, _) | What::Narrow(spot, _) => match spot {
                Spot::Wire(router) | Spot::Air(router) => Some(router),
                Spot::Core => None,
            },
            _ => None,
        }
    }

    /// Returns the index of the mobile host that the fault affects, or `None` if it affects no mobile host.
    pub const fn mobile(&self) -> Option<usize> {
        match self.what {
            What::Crash(Node::Mobile(host))
            | What::Stop(Node::Mobile(host))
            | What::Clock(Node::Mobile(host), _) => Some(host),
            _ => None,
        }
    }

    /// Returns the fault with new indices, after a router or a mobile host was removed.
    #[must_use]
    pub(crate) fn renumbered(self, router: impl Fn(usize) -> usize, mobile: impl Fn(usize) -> usize) -> Self {
        let node = |node| match node {
            Node::Router(index) => Node::Router(router(index)),
            Node::Mobile(index) => Node::Mobile(mobile(index)),
            other => other,
        };
        let spot = |spot| match spot {
            Spot::Wire(index) => Spot::Wire(router(index)),
            Spot::Air(index) => Spot::Air(router(index)),
            Spot::Core => Spot::Core,
        };
        let what = match self.what {
            What::Crash(host) => What::Crash(node(host)),
            What::Stop(host) => What::Stop(node(host)),
            What::Clock(host, by) => What::Clock(node(host), by),
            What::DiskFull(host) => What::DiskFull(node(host)),
            What::Cut(link) => What::Cut(spot(link)),
            What::Loss(link, loss) => What::Loss(spot(link), loss),
            What::Narrow(link, mtu) => What::Narrow(spot(link), mtu),
        };
        Self { what, ..self }
    }
}
