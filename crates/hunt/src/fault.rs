//! What goes wrong in a scenario: the `[[event]]` tables of a draft, as data.

/// A fault: what, from when on, and for how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// When it begins.
    pub at: u64,
    /// How long it lasts; what is set (a clock, an MTU) stays.
    pub lasts: u64,
    /// What it is.
    pub what: What,
}

/// A kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// A host dies, and starts again on what it had stored.
    Crash(Node),
    /// A host processes nothing, and keeps everything.
    Stop(Node),
    /// A link carries nothing.
    Cut(Spot),
    /// A link loses packets, in parts of ten thousand.
    Loss(Spot, u32),
    /// A link takes only smaller packets from now on.
    Narrow(Spot, u16),
    /// A host's wall clock is set, by so many milliseconds.
    Clock(Node, i64),
    /// A host cannot store.
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
    /// Whether it happens to the correspondent.
    pub const fn is_of_fixed(self) -> bool {
        matches!(self, Self::Crash(Node::Fixed) | Self::Stop(Node::Fixed) | Self::Clock(Node::Fixed, _))
    }
}

impl Fault {
    /// When it is over.
    pub const fn ends(&self) -> u64 {
        self.at + self.lasts
    }

    /// Whether nothing gets past its place while it lasts.
    pub const fn blocks(&self) -> bool {
        matches!(self.what, What::Crash(_) | What::Stop(_) | What::Cut(_) | What::DiskFull(_))
    }

    /// Whether soft state is lost that only a refresh brings back.
    pub const fn forgets(&self) -> bool {
        matches!(self.what, What::Crash(_))
    }

    /// The router that is in it.
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

    /// The mobile host that is in it.
    pub const fn mobile(&self) -> Option<usize> {
        match self.what {
            What::Crash(Node::Mobile(host))
            | What::Stop(Node::Mobile(host))
            | What::Clock(Node::Mobile(host), _) => Some(host),
            _ => None,
        }
    }

    /// The same after a router or a mobile host with a smaller number is gone.
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
