//! The faults of a draft, which become `[[event]]` tables. Times are in milliseconds.

/// A fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Its begin.
    pub at: u64,
    /// Its duration; 0 for a clock step or an MTU, which stay.
    pub lasts: u64,
    /// Its kind.
    pub what: What,
}

/// A kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// A host crashes, and restarts from its stored state.
    Crash(Node),
    /// A host is stopped and continued, and keeps its state.
    Stop(Node),
    /// A link carries nothing.
    Cut(Spot),
    /// A link loses more packets, in units of 0.01 %.
    Loss(Spot, u32),
    /// A link has a smaller MTU from now on.
    Narrow(Spot, u16),
    /// A host's wall clock is stepped by this number of milliseconds.
    Clock(Node, i64),
    /// The disk of a host is full.
    DiskFull(Node),
}

/// A host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Node {
    /// A router with a cell, or a node of a tree.
    Router(usize),
    /// A mobile host.
    Mobile(usize),
    /// The correspondent.
    Fixed,
    /// SIGMA's location manager.
    Manager,
}

/// A link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spot {
    /// The correspondent's wire.
    Core,
    /// The wire of a router to the node above it.
    Wire(usize),
    /// The cell of a router.
    Air(usize),
}

impl What {
    /// Returns whether it affects the correspondent.
    pub const fn is_of_fixed(self) -> bool {
        matches!(self, Self::Crash(Node::Fixed) | Self::Stop(Node::Fixed) | Self::Clock(Node::Fixed, _))
    }
}

impl Fault {
    /// Returns its end, in milliseconds.
    pub const fn ends(&self) -> u64 {
        self.at + self.lasts
    }

    /// Returns whether it stops all packets, or all signalling, at its place.
    pub const fn blocks(&self) -> bool {
        matches!(self.what, What::Crash(_) | What::Stop(_) | What::Cut(_) | What::DiskFull(_))
    }

    /// Returns whether soft state is lost until a refresh restores it.
    pub const fn forgets(&self) -> bool {
        matches!(self.what, What::Crash(_))
    }

    /// Returns the index of the router that it affects, or whose wire or cell it affects.
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

    /// Returns the index of the mobile host that it affects.
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
    pub fn renumbered(self, router: impl Fn(usize) -> usize, mobile: impl Fn(usize) -> usize) -> Self {
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
