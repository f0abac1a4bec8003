//! The addresses of a tree. Each router has a prefix with all hosts below it, so one route leads to each child.

use super::Shape;
use trace::HostId;
use wire::{Ipv4Addr, Prefix};

/// The address plan of a tree. From the highest bit, an address has the tree's prefix, then the number of the child
/// at each level of routers, then the host bits. Children are numbered from 1, in as many bits as the level needs. So
/// a router's own address, in which the numbers of its children are 0, is in no child's prefix.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Addresses {
    net: Prefix,
    /// The number of bits of a child's number, for each level of routers.
    widths: Vec<u8>,
}

/// The host bits of a router's address. The first mobile host below a station has this number plus 1.
const ROUTER: u32 = 1;

/// Returns what is allowed for a tree whose levels take `widths` bits, and each of whose lowest routers needs `needed`
/// addresses.
fn allowed(widths: &[u8], needed: u64) -> String {
    let bits =
        widths.iter().map(|width| u32::from(*width)).sum::<u32>() + needed.next_power_of_two().ilog2().max(1);
    match 32u32.checked_sub(bits) {
        Some(most) => format!("allowed: a prefix length of at most {most}"),
        None => "no prefix of IPv4 is large enough; use a smaller `fan_out` or fewer `hosts`".to_owned(),
    }
}

impl Addresses {
    /// Builds the address plan of a tree. Fails if the prefix `net` has too few addresses.
    pub(super) fn new(net: Prefix, shape: &Shape) -> Result<Self, String> {
        let widths: Vec<u8> =
            shape.fan_out().iter().map(|children| (u32::BITS - children.leading_zeros()) as u8).collect();
        let taken: u32 = u32::from(net.len()) + widths.iter().map(|width| u32::from(*width)).sum::<u32>();
        let below = shape.children(HostId(shape.start(shape.depth())));
        let needed = u64::from(below) + u64::from(ROUTER) + 2; // the first and the last address belong to no host
        if taken > 31 || 1u64 << (32 - taken) < needed {
            return Err(format!(
                "the {} hosts of this tree do not fit into {net}, because each router has a separate prefix; {}",
                shape.len(),
                allowed(&widths, needed)
            ));
        }
        Ok(Self { net, widths })
    }

    /// Returns the address of a host.
    pub(super) fn of(&self, shape: &Shape, host: HostId) -> Ipv4Addr {
        let level = shape.level(host);
        let own = match shape.parent(host) {
            Some((_, child)) if level > shape.depth() => ROUTER + 1 + child,
            _ => ROUTER,
        };
        Ipv4Addr::from_bits(self.prefix(shape, host).address().to_bits() | own)
    }

    /// Returns the prefix of all addresses that are reached through `host`. For a router it contains the router and
    /// all hosts below it. For a mobile host it is the host's own address.
    pub(super) fn below(&self, shape: &Shape, host: HostId) -> Prefix {
        if shape.level(host) > shape.depth() {
            return Prefix::host(self.of(shape, host));
        }
        self.prefix(shape, host)
    }

    /// Returns the prefix of a router. For a mobile host, returns the prefix of the router above it.
    fn prefix(&self, shape: &Shape, host: HostId) -> Prefix {
        let (mut bits, mut len) = (self.net.address().to_bits(), self.net.len());
        for (child, width) in shape.path(host).into_iter().zip(&self.widths) {
            len += width;
            bits |= (child + 1).checked_shl(32 - u32::from(len)).unwrap_or_default();
        }
        Prefix::new(Ipv4Addr::from_bits(bits), len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_address_is_one_hosts_and_within_the_prefixes_above_it_alone() {
        let shape = Shape::new(&[3, 10, 1], 95).unwrap();
        let net: Prefix = "10.0.0.0/8".parse().unwrap();
        let plan = Addresses::new(net, &shape).unwrap();
        let mut all = BTreeSet::new();
        for host in (0..shape.len()).map(HostId) {
            let own = plan.of(&shape, host);
            assert!(all.insert(own) && net.contains(own), "{own}");
            let above = std::iter::successors(Some(host), |at| Some(shape.parent(*at)?.0));
            let way: BTreeSet<HostId> = above.collect();
            for other in (1..shape.len()).map(HostId) {
                let leads = plan.below(&shape, other).contains(own);
                assert_eq!(leads, way.contains(&other), "{own} through {}", shape.name(other));
            }
        }
    }

    #[test]
    fn too_small_a_prefix_is_refused() {
        let shape = Shape::new(&[10, 10, 10], 1_000_000).unwrap();
        assert!(Addresses::new("10.0.0.0/8".parse().unwrap(), &shape).is_ok());
        // The allowed length is the longest one that fits.
        assert!(Addresses::new("10.0.0.0/10".parse().unwrap(), &shape).is_ok());
        assert!(Addresses::new("10.0.0.0/11".parse().unwrap(), &shape).is_err());
        let problem = Addresses::new("10.0.0.0/12".parse().unwrap(), &shape).unwrap_err();
        assert_eq!(
            problem,
            "the 1001111 hosts of this tree do not fit into 10.0.0.0/12, because each router has a separate prefix; allowed: a prefix length of at most 10"
        );
    }
}
