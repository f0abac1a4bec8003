//! Handles SIGINT, SIGTERM, SIGHUP and SIGQUIT. Each of these signals ends the command, and no incomplete files are
//! left.

use crate::Failure;
use crate::output::tell;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::time::Duration;

/// The number of the signal that ends the command, or 0 if no such signal has arrived.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// The process id of a child that does the work of the command and leads a process group; `None` if there is no such
/// child. A signal that ends the command also ends this process group.
static WORKER: Mutex<Option<u32>> = Mutex::new(None);

/// Returns whether a signal that ends the command has arrived.
pub(crate) fn came() -> bool {
    SIGNAL.load(Ordering::Relaxed) != 0
}

/// Returns the exit code of a command that a signal ended: 128 plus the signal's number, as shells report it (POSIX,
/// Shell Command Language, section 2.8.2).
fn exit_code() -> u8 {
    let signal = u8::try_from(SIGNAL.load(Ordering::Relaxed)).ok().filter(|signal| (1..128).contains(signal));
    128 + signal.unwrap_or(SIGINT as u8)
}

/// Prints that a signal ended the command, and returns the exit code. Returns to the first caller only: a second thread
/// that calls this function waits until the process ends.
pub(crate) fn end() -> u8 {
    static END: Mutex<()> = Mutex::new(());
    std::mem::forget(END.lock());
    tell!("interrupted; incomplete runs are removed, complete runs are kept");
    exit_code()
}

/// Starts to handle the signals at the first call. Returns the flag that a signal sets. A run on Linux ends and cleans
/// up when the flag is set; the process ends after that, or immediately if no run on Linux is active. Returns an error
/// if the signals cannot be handled.
pub(crate) fn flag() -> Result<Arc<AtomicBool>, Failure> {
    if let Some(flag) = FLAG.get() {
        return Ok(Arc::clone(flag));
    }
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT])
        .map_err(|error| Failure::Machine(format!("cannot handle signals: {error}")))?;
    let flag = Arc::clone(FLAG.get_or_init(Arc::default));
    let watched = Arc::clone(&flag);
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            SIGNAL.store(signal, Ordering::Relaxed);
            watched.store(true, Ordering::Relaxed);
            if let Some(worker) = *WORKER.lock().unwrap_or_else(PoisonError::into_inner) {
                os::signal_group(worker, os::Ending::Forced);
            }
            wait_for_labs();
            recorder::remove_unfinished();
            std::process::exit(end().into());
        }
    });
    Ok(flag)
}

fn wait_for_labs() {
    // While the sender `_stays` exists, `recv_timeout` waits for its full time.
    let (_stays, never) = mpsc::channel::<()>();
    while emulator::run::is_running() {
        let _ = never.recv_timeout(Duration::from_millis(10));
    }
}

/// Calls `wait`, which waits for the end of `process`, the leader of a process group. A signal that ends the command
/// during `wait` also ends this process group.
pub(crate) fn with_worker<T>(process: u32, wait: impl FnOnce() -> T) -> T {
    let set = |worker| *WORKER.lock().unwrap_or_else(PoisonError::into_inner) = worker;
    set(Some(process));
    let done = wait();
    set(None);
    done
}
