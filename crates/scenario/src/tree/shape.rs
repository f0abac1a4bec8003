//! The numbers and names of a tree's hosts and links. They are computed from the number of children per level, so a
//! million hosts need no list.

use link::PortId;
use trace::HostId;
use wire::{Iface, Mac};

/// The parent and the children of each host. Host 0 is the root. Then come the routers of each level, from left to
/// right, and last the mobile hosts. Mobile host `h`, from 0, is below the lowest router with number `h` modulo the
/// number of lowest routers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    fan_out: Vec<u32>,
    /// The number of the first host of each level. The last entry is the total number of hosts.
    starts: Vec<u32>,
    /// Whether each of the lowest routers has a cell instead of wires to its hosts.
    cells: bool,
}

/// The first two octets of link addresses of a tree: locally administered, and not used by hosts with names.
const MAC: [u8; 2] = [0x06, 0x57];
/// Largest number of children of a router: an interface number has 16 bits.
const MOST_CHILDREN: u32 = 60_000;
/// Largest number of hosts: a wire has two ports, and a port number has 32 bits.
const MOST_HOSTS: u64 = 1 << 30;

impl Shape {
    /// Builds a tree. `fan_out`: the number of children of each router, by level from the root. `hosts`: the number of
    /// mobile hosts below the lowest level. An error says what is allowed.
    pub fn new(fan_out: &[u32], hosts: u32) -> Result<Self, String> {
        if fan_out.is_empty() || fan_out.contains(&0) {
            return Err("must have at least one number, and each number must be at least 1".to_owned());
        }
        let (mut starts, mut level, mut total) = (vec![0], 1u64, 1u64);
        for children in fan_out {
            starts.push(total as u32);
            level = level.saturating_mul(u64::from(*children));
            total = total.saturating_add(level);
            if total > MOST_HOSTS {
                return Err(format!("allowed: at most {MOST_HOSTS} routers"));
            }
        }
        starts.push(total as u32);
        total += u64::from(hosts);
        starts.push(total.min(MOST_HOSTS) as u32);
        let most = fan_out.iter().copied().chain([hosts.div_ceil(level as u32)]).max().unwrap_or_default();
        if most > MOST_CHILDREN || total > MOST_HOSTS {
            return Err(format!(
                "allowed: at most {MOST_CHILDREN} children of one router, and {MOST_HOSTS} hosts"
            ));
        }
        Ok(Self { fan_out: fan_out.to_vec(), starts, cells: false })
    }

    /// Returns the tree with a cell below each of the lowest routers, in place of wires to the mobile hosts. Fails if
    /// there are more than 65535 lowest routers, because a cell number has 16 bits.
    pub(crate) fn with_cells(self) -> Result<Self, String> {
        if self.stations() > u32::from(u16::MAX) {
            return Err(format!(
                "allowed: at most {} base stations, because cells have numbers of 16 bits",
                u16::MAX
            ));
        }
        Ok(Self { cells: true, ..self })
    }

    /// Returns the number of all hosts: the root, the other routers and the mobile hosts.
    pub fn len(&self) -> u32 {
        self.starts.last().copied().unwrap_or_default()
    }

    /// Returns whether the tree has no host. Always `false`, because each tree has a root.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of levels of routers below the root.
    pub fn depth(&self) -> usize {
        self.fan_out.len()
    }

    /// Returns the level of a host: 0 for the root, [`Shape::depth`] for the lowest routers, and one more for mobile
    /// hosts.
    pub fn level(&self, host: HostId) -> usize {
        self.starts.partition_point(|start| *start <= host.0).saturating_sub(1)
    }

    /// Returns the number of routers on the lowest level.
    pub fn stations(&self) -> u32 {
        let depth = self.depth();
        self.start(depth + 1) - self.start(depth)
    }

    /// Returns the number of mobile hosts.
    pub fn mobiles(&self) -> u32 {
        self.len() - self.start(self.depth() + 1)
    }

    /// Returns the number of hosts that have a wire: all hosts, or with cells only the root and the other routers.
    pub fn wired(&self) -> u32 {
        if self.cells { self.start(self.depth() + 1) } else { self.len() }
    }

    /// Returns the place of a host within its level, from 0 at the left.
    pub fn place(&self, host: HostId) -> u32 {
        host.0 - self.start(self.level(host))
    }

    /// Returns the router above `host`, and the number of `host` among the children of that router, from 0. `None`
    /// for the root.
    pub fn parent(&self, host: HostId) -> Option<(HostId, u32)> {
        let level = self.level(host);
        let above = level.checked_sub(1)?;
        let place = self.place(host);
        let (parent, child) = match self.fan_out.get(above) {
            Some(children) => (place / children, place % children),
            None => (place % self.stations(), place / self.stations()),
        };
        Some((HostId(self.start(above) + parent), child))
    }

    /// Returns the number of children of a host. Zero for a mobile host.
    pub fn children(&self, host: HostId) -> u32 {
        let (level, depth) = (self.level(host), self.depth());
        if level > depth {
            return 0;
        }
        self.fan_out.get(level).copied().unwrap_or_else(|| {
            let mobiles = self.mobiles();
            mobiles / self.stations() + u32::from(self.place(host) < mobiles % self.stations())
        })
    }

    /// Returns child `number` of the router `host`, counted from 0. `number` must be less than the number of children of
    /// `host` ([`Shape::children`]).
    pub fn child(&self, host: HostId, number: u32) -> HostId {
        let level = self.level(host);
        let first = self.start(level + 1);
        HostId(match self.fan_out.get(level) {
            Some(children) => first + self.place(host) * children + number,
            None => first + number * self.stations() + self.place(host),
        })
    }

    /// Returns the name of a host: `root`, `r3.1` for the second child of the root's fourth child, `h7` for mobile
    /// host 7. All numbers are from 0.
    pub fn name(&self, host: HostId) -> String {
        match self.level(host) {
            0 => "root".to_owned(),
            level if level > self.depth() => format!("h{}", self.place(host)),
            _ => {
                let digits: Vec<String> = self.path(host).iter().map(ToString::to_string).collect();
                format!("r{}", digits.join("."))
            }
        }
    }

    /// Returns the path from the root to a host: the number of the child at each level, from 0. Empty for the root.
    pub fn path(&self, host: HostId) -> Vec<u32> {
        let (mut at, mut path) = (host, Vec::new());
        while let Some((above, child)) = self.parent(at) {
            path.push(child);
            at = above;
        }
        path.reverse();
        path
    }

    // --- links -----------------------------------------------------------------------------------------------------

    /// The interface name of a host's radio.
    pub const AIR: &'static str = "air";

    /// Returns the number of interfaces of a host. Interface 1 leads up, except at the root; all others lead down.
    /// The radio of a base station is one interface.
    pub fn interfaces(&self, host: HostId) -> u16 {
        let down = if self.has_cell(host) { 1 } else { self.children(host) };
        (down + u32::from(host.0 > 0)) as u16
    }

    fn has_cell(&self, host: HostId) -> bool {
        self.cells && self.level(host) == self.depth()
    }

    /// Returns whether an interface is a radio: interface 2 of a base station with a cell, or interface 1 of a mobile
    /// host in a cell.
    pub fn is_air(&self, host: HostId, iface: Iface) -> bool {
        let station = self.has_cell(host) && iface == Iface(2);
        station || self.cells && self.level(host) > self.depth() && iface == Iface(1)
    }

    /// Returns the name of an interface: `up`, `down3` towards the fourth child, or `air` for a radio.
    pub fn interface_name(&self, host: HostId, iface: Iface) -> String {
        if self.is_air(host, iface) {
            return Self::AIR.to_owned();
        }
        let number = u32::from(iface.0).saturating_sub(1);
        match number.checked_sub(u32::from(host.0 > 0)) {
            None => "up".to_owned(),
            Some(child) => format!("down{child}"),
        }
    }

    /// Returns the port of an interface, or `None` if the host or interface does not exist. The wire above host `n`
    /// has port `2(n-1)` at its lower end and port `2(n-1)+1` at its upper end. The radio of a mobile host has the
    /// port that the lower end of its wire would have. The radios of base stations have the highest ports.
    pub fn port(&self, host: HostId, iface: Iface) -> Option<PortId> {
        let number = u32::from(iface.0).checked_sub(1).filter(|_| host.0 < self.len())?;
        if self.has_cell(host) && number > 0 {
            return (number == 1).then(|| PortId(self.first_cell() + self.place(host)));
        }
        match number.checked_sub(u32::from(host.0 > 0)) {
            None => Some(PortId(2 * (host.0 - 1))),
            Some(child) if child < self.children(host) => {
                Some(PortId(2 * (self.child(host, child).0 - 1) + 1))
            }
            Some(_) => None,
        }
    }

    /// Returns the port of the first base station's radio.
    fn first_cell(&self) -> u32 {
        2 * (self.len() - 1)
    }

    /// Returns the host and the interface at a port, or `None` if the port does not exist.
    pub fn end(&self, port: PortId) -> Option<(HostId, Iface)> {
        if let Some(place) = port.0.checked_sub(self.first_cell()).filter(|_| self.cells) {
            return (place < self.stations()).then(|| (HostId(self.start(self.depth()) + place), Iface(2)));
        }
        let below = HostId(port.0 / 2 + 1);
        if below.0 >= self.len() {
            return None;
        }
        if port.0.is_multiple_of(2) {
            return Some((below, Iface(1)));
        }
        if below.0 >= self.wired() {
            return None;
        }
        let (above, child) = self.parent(below)?;
        Some((above, Iface((child + 1 + u32::from(above.0 > 0)) as u16)))
    }

    /// Returns the host and the interface at the other end of an interface's wire. `None` for a radio, or if the
    /// interface does not exist.
    pub fn far_end(&self, host: HostId, iface: Iface) -> Option<(HostId, Iface)> {
        if self.is_air(host, iface) {
            return None;
        }
        let number = u32::from(iface.0).checked_sub(1).filter(|_| host.0 < self.len())?;
        match number.checked_sub(u32::from(host.0 > 0)) {
            None => {
                let (above, child) = self.parent(host)?;
                Some((above, Iface((child + 1 + u32::from(above.0 > 0)) as u16)))
            }
            Some(child) => (child < self.children(host)).then(|| (self.child(host, child), Iface(1))),
        }
    }

    /// Returns the port at the other end of the wire at `port`. `None` for a radio, or if no wire has this port.
    pub fn wired_peer(&self, port: PortId) -> Option<PortId> {
        (port.0 / 2 + 1 < self.wired()).then(|| Self::peer(port))
    }

    /// Returns the port at the other end of a wire. `port` must belong to a wire: see [`Shape::wired_peer`].
    pub const fn peer(port: PortId) -> PortId {
        PortId(port.0 ^ 1)
    }

    /// Returns the link address of a port: the octets 06:57, and then the port number in network byte order.
    pub const fn mac(port: PortId) -> Mac {
        let ([a, b], [c, d, e, f]) = (MAC, port.0.to_be_bytes());
        Mac([a, b, c, d, e, f])
    }

    /// Returns the port that has a link address, or `None` if no port of the tree has it.
    pub fn port_of_mac(&self, mac: Mac) -> Option<PortId> {
        let [a, b, c, d, e, f] = mac.0;
        let port = PortId(u32::from_be_bytes([c, d, e, f]));
        ([a, b] == MAC && self.end(port).is_some()).then_some(port)
    }

    pub(super) fn start(&self, level: usize) -> u32 {
        self.starts.get(level).copied().unwrap_or_else(|| self.len())
    }

    pub(super) fn fan_out(&self) -> &[u32] {
        &self.fan_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape::new(&[2, 3], 14).unwrap()
    }

    #[test]
    fn everybody_is_a_child_of_its_parent() {
        let shape = shape();
        assert_eq!((shape.len(), shape.stations()), (1 + 2 + 6 + 14, 6));
        let mut children = 0;
        for host in (0..shape.len()).map(HostId) {
            children += shape.children(host);
            for number in 0..shape.children(host) {
                assert_eq!(shape.parent(shape.child(host, number)), Some((host, number)));
            }
        }
        assert_eq!(children, shape.len() - 1, "all but the root");
        assert_eq!(shape.parent(HostId(9 + 13)), Some((HostId(3 + 1), 2)), "host 13 below station 13 mod 6");
    }

    #[test]
    fn each_port_has_one_end_and_one_address() {
        let shape = shape();
        let mut ports = std::collections::BTreeSet::new();
        for host in (0..shape.len()).map(HostId) {
            for iface in (1..=shape.interfaces(host)).map(Iface) {
                let port = shape.port(host, iface).unwrap();
                assert_eq!(shape.end(port), Some((host, iface)));
                assert_eq!(shape.port_of_mac(Shape::mac(port)), Some(port));
                let (there, its) = shape.end(Shape::peer(port)).unwrap();
                assert_eq!(shape.far_end(host, iface), Some((there, its)));
                let above = |host, other| shape.parent(host).is_some_and(|(parent, _)| parent == other);
                assert!(above(host, there) || above(there, host));
                ports.insert(port);
            }
            let none = Iface(shape.interfaces(host) + 1);
            assert_eq!((shape.port(host, none), shape.far_end(host, none)), (None, None));
        }
        assert_eq!(ports.len() as u32, 2 * (shape.len() - 1), "two for each wire");
        assert_eq!(shape.end(PortId(2 * shape.len())), None);
    }

    #[test]
    fn a_cell_takes_the_place_of_wires() {
        let shape = shape().with_cells().unwrap();
        assert_eq!(shape.wired(), 1 + 2 + 6);
        let (station, mobile) = (HostId(3 + 1), HostId(9 + 13));
        assert_eq!((shape.interfaces(station), shape.interfaces(mobile)), (2, 1));
        assert_eq!((shape.children(station), shape.parent(mobile)), (3, Some((station, 2))));
        assert_eq!(shape.interface_name(station, Iface(1)), "up");
        let mut ports = std::collections::BTreeSet::new();
        for (host, iface) in [(station, Iface(2)), (mobile, Iface(1))] {
            assert!(shape.is_air(host, iface) && !shape.is_air(HostId(1), iface));
            assert_eq!(
                (shape.interface_name(host, iface), shape.far_end(host, iface)),
                ("air".to_owned(), None)
            );
            assert_eq!(shape.port(host, Iface(iface.0 + 1)), None);
        }
        for host in (0..shape.len()).map(HostId) {
            for iface in (1..=shape.interfaces(host)).map(Iface) {
                let port = shape.port(host, iface).unwrap();
                assert_eq!(shape.end(port), Some((host, iface)));
                assert_eq!(shape.port_of_mac(Shape::mac(port)), Some(port));
                let peer = shape.wired_peer(port).and_then(|peer| shape.end(peer));
                assert_eq!(peer, shape.far_end(host, iface), "{}", shape.name(host));
                assert!(ports.insert(port));
            }
        }
        assert_eq!(ports.len(), 2 * 8 + 6 + 14, "two for each wire, one for each radio");
        let many = Shape::new(&[60_000, 2], 1).unwrap();
        assert!(many.with_cells().is_err(), "more than there are numbers of cells");
    }

    #[test]
    fn names_say_the_way_from_the_root() {
        let shape = shape();
        let names: Vec<String> = (0..shape.len()).map(|host| shape.name(HostId(host))).collect();
        assert_eq!(names[..5], ["root", "r0", "r1", "r0.0", "r0.1"]);
        assert_eq!((names[8].as_str(), names[9].as_str(), names[22].as_str()), ("r1.2", "h0", "h13"));
        assert_eq!(shape.interface_name(HostId(0), Iface(1)), "down0");
        assert_eq!(shape.interface_name(HostId(1), Iface(1)), "up");
        assert_eq!(shape.interface_name(HostId(1), Iface(4)), "down2");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(Shape::new(&[], 1).is_err() && Shape::new(&[3, 0], 1).is_err());
        assert!(Shape::new(&[1], 60_001).is_err(), "too many below one");
        assert!(Shape::new(&[60_001], 1).is_err() && Shape::new(&[60_000, 60_000], 1).is_err());
        assert!(Shape::new(&[10, 10, 10], 1_000_000).is_ok());
    }
}
