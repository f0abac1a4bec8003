//! Whether standard output was open when the process began. Before `main`, the standard library opens `/dev/null` in
//! place of a closed descriptor, so that no file gets its number. Output would then be lost without an error.

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Returns whether standard output was closed when the process began.
pub fn stdout_was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Called by the dynamic linker, before the standard library is initialised.
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: the call only reads the flags of a descriptor, and fails if it is not open (fcntl(2)).
    let is_closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
    CLOSED.store(is_closed, Ordering::Relaxed);
}
