//! Functions that the tests of this crate share.

#[path = "../../../tests/support/joined.rs"]
mod joined;
#[path = "../../../tests/support/sandboxed.rs"]
mod sandboxed;

pub(crate) use joined::{arp_request, datagram, hear, joined, readable};
pub(crate) use sandboxed::{in_sandbox, in_sandbox_of_root_and_of_nobody, need};
