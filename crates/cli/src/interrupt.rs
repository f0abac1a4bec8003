//! Ctrl-C, and being told to end: a flag that a run looks at, so that it can clean up.

use crate::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The signal that set the flag, or 0.
static SIGNAL: OnceLock<Arc<AtomicUsize>> = OnceLock::new();

/// The exit code of a command that a signal ended (POSIX sh, section 2.8.2, and every shell): 128 and its number.
pub(crate) fn exit_code() -> u8 {
    let signal = SIGNAL.get().map_or(0, |signal| signal.load(Ordering::Relaxed));
    128 + u8::try_from(signal).ok().filter(|signal| (1..128).contains(signal)).unwrap_or(SIGINT as u8)
}

/// A flag that SIGINT, SIGTERM and SIGHUP set.
pub(crate) fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let last = SIGNAL.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&flag))
            .and_then(|_| signal_hook::flag::register_usize(signal, Arc::clone(last), signal as usize))
            .map_err(|error| Failure::Machine(format!("cannot watch for signals: {error}")))?;
    }
    Ok(flag)
}
