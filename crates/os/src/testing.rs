//! Functions that the tests of this crate share.

#[path = "../../../tests/support/joined.rs"]
mod joined;
#[path = "../../../tests/support/sandboxed.rs"]
mod sandboxed;

pub(crate) use joined::{FAR, arp_request, datagram, hear, joined, readable};
pub(crate) use sandboxed::{again, in_sandbox, in_sandbox_of_root_and_of_nobody, need, role};

use crate::error::{Attempt, Result};
use crate::namespace::{die_with_parent, unshare};
use crate::{End, EndPlace, Netlink};
use rustix::process::getppid;
use rustix::thread::UnshareFlags;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
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

/// Starts `command` in a new network namespace. When this function has returned, [`crate::NetNs::of`] with the child's pid
/// returns the new namespace.
///
/// The child is killed when the calling *thread* ends, so the thread must outlive the child. A program that changes its
/// own user id loses this protection. Inside a [`crate::Sandbox`], such a program is still killed with pid 1.
pub(crate) fn spawn_in_new_net(mut command: Command) -> Result<Child> {
    let parent = std::process::id();
    let program = command.get_program().to_owned();
    let prepare = move || {
        unshare(UnshareFlags::NEWNET)?;
        die_with_parent()?;
        // The parent may have died before the death signal was set.
        match getppid() {
            Some(alive) if alive.as_raw_nonzero().get().cast_unsigned() == parent => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    };
    // SAFETY: `prepare` does system calls only.
    unsafe { command.pre_exec(prepare) };
    command.spawn().attempt("start in a new network namespace", program.display())
}
