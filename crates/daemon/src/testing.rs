//! Functions that the tests of this crate share.

#[path = "../../../tests/support/joined.rs"]
mod joined;
#[path = "../../../tests/support/sandboxed.rs"]
mod sandboxed;

pub(crate) use joined::{arp_request, datagram, hear, joined, readable};
pub(crate) use sandboxed::{in_sandbox, in_sandbox_of_root_and_of_nobody, need};

/// Runs the body of the calling test in a separate process; the body is given as a closure of the test function. A test
/// that closes a descriptor, and expects that its socket or lock is gone, needs this: while another test starts a process,
/// the new process has copies of all descriptors until it executes its program.
pub(crate) fn in_own_process<F: FnOnce()>(body: F) {
    if sandboxed::role().as_deref() == Some("alone") {
        return body();
    }
    let ended = sandboxed::again::<F>("alone").status().unwrap();
    assert!(ended.success(), "in a separate process: {ended}");
}
