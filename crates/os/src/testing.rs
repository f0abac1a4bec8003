//! Functions that the tests of this crate share.

#[path = "../../../tests/support/joined.rs"]
mod joined;
#[path = "../../../tests/support/sandboxed.rs"]
mod sandboxed;

pub(crate) use joined::{FAR, arp_request, datagram, hear, joined, readable};
pub(crate) use sandboxed::{again, in_sandbox, in_sandbox_of_root_and_of_nobody, need, role};

use crate::{End, EndPlace, Netlink};
use wire::Mac;

/// Makes a veth pair, with both ends in this namespace and up, without IPv6.
pub(crate) fn veth(a: &str, b: &str) {
    let _ = crate::namespace::sysctl("net/ipv6/conf/default/disable_ipv6", "1");
    let mut here = Netlink::open().unwrap();
    let end = |name, last| End { name, mac: Mac([2, 0, 0, 0, 0, last]), place: EndPlace::Here };
    here.add_veth(&end(a, 1), &end(b, 2)).unwrap();
    here.set_up(a, true).unwrap();
    here.set_up(b, true).unwrap();
}
