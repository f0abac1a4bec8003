//! Child processes: their states and signals. Also this process's priority and memory, and sleeping.

use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions, kill_process_group, pidfd_open,
    set_dumpable_behavior, waitpid,
};
use std::io;
use std::os::fd::OwnedFd;
use wire::Duration;

/// A change of the state of a child process: it was stopped, was continued or has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateChange {
    /// The change as text, for example `was stopped`, `was continued`, `was killed by signal 9` or
    /// `ended with exit status 1`.
    pub what: String,
    /// Whether the child has ended.
    pub ended: bool,
}

/// Returns the last change of a child's state if it was not returned yet, otherwise `None`. If a child was stopped and
/// continued since the last call, only `was continued` is returned.
pub fn state_change(child: u32) -> Option<StateChange> {
    let pid = Pid::from_raw(child.cast_signed())?;
    let (_, status) =
        waitpid(Some(pid), WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::CONTINUED).ok()??;
    let change = |what: String, ended| Some(StateChange { what, ended });
    if status.stopped() {
        change("was stopped".to_owned(), false)
    } else if status.continued() {
        change("was continued".to_owned(), false)
    } else if let Some(signal) = status.terminating_signal() {
        change(format!("was killed by signal {signal}"), true)
    } else {
        change(format!("ended with exit status {}", status.exit_status().unwrap_or_default()), true)
    }
}

/// Opens a descriptor of a process (`pidfd_open(2)`). After the process has ended, the descriptor never refers to
/// another process with the same pid. Fails with `ESRCH` if there is no such process.
pub fn open_pidfd(pid: u32) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(pid.cast_signed()).ok_or(rustix::io::Errno::SRCH)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Continues a stopped child (SIGCONT). Does nothing if the child runs or does not exist.
pub fn resume(child: u32) {
    if let Some(pid) = Pid::from_raw(child.cast_signed()) {
        let _ = rustix::process::kill_process(pid, Signal::CONT);
    }
}

/// Stops a child with all its threads (SIGSTOP). Does nothing if the child does not exist.
pub fn stop(child: u32) {
    if let Some(pid) = Pid::from_raw(child.cast_signed()) {
        let _ = rustix::process::kill_process(pid, Signal::STOP);
    }
}

/// Stops (SIGSTOP) all processes in the process group of `leader` if `is_stopped`; otherwise continues them (SIGCONT).
/// Does nothing if there is no such group.
pub fn halt_group(leader: u32, is_stopped: bool) {
    let signal = if is_stopped { Signal::STOP } else { Signal::CONT };
    if let Some(group) = Pid::from_raw(leader.cast_signed()) {
        let _ = kill_process_group(group, signal);
    }
}

/// Returns whether a process is stopped by a signal or by a tracer, by its state in `/proc/PID/stat` (proc(5)).
pub fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The command's name, in parentheses, may contain any character.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    matches!(state, Some('T' | 't'))
}

/// Returns whether a process is frozen by its control group (cgroups(7)): by `freezer.state` in cgroup v1, by
/// `cgroup.events` in cgroup v2. A frozen process continues only when its control group is thawed. In cgroup v1, even a
/// killed process does not end before that.
pub fn is_frozen(pid: u32) -> bool {
    let read = |path: String| std::fs::read_to_string(path).unwrap_or_default();
    read(format!("/proc/{pid}/cgroup")).lines().any(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { return false };
        if controllers.is_empty() {
            ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].iter().any(|root| {
                read(format!("{root}{group}/cgroup.events")).lines().any(|line| line == "frozen 1")
            })
        } else {
            controllers.split(',').any(|name| name == "freezer")
                && read(format!("/sys/fs/cgroup/freezer{group}/freezer.state")).trim() == "FROZEN"
        }
    })
}

/// How a process group is to be ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// SIGTERM: the processes may end cleanly.
    Asked,
    /// SIGKILL: the kernel ends the processes at once.
    Forced,
}

/// Sends SIGTERM or SIGKILL to all processes of the process group of `leader`. Does nothing if there is no such group.
pub fn signal_group(leader: u32, ending: Ending) {
    let signal = match ending {
        Ending::Asked => Signal::TERM,
        Ending::Forced => Signal::KILL,
    };
    if let Some(group) = Pid::from_raw(leader.cast_signed()) {
        let _ = kill_process_group(group, signal);
    }
}

/// Protects the memory of this process, which has keys. Other processes of its user cannot trace it without
/// `CAP_SYS_PTRACE`, and there is no core dump (`PR_SET_DUMPABLE`, `RLIMIT_CORE`). Programs that it starts inherit
/// `RLIMIT_CORE`.
pub fn seal_memory() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let _ = setrlimit(Resource::Core, none);
    hide_memory();
}

/// Protects the memory of this process from tracers and core dumps, by `PR_SET_DUMPABLE` only. A process of a lab uses
/// this, because programs of the lab's hosts would inherit `RLIMIT_CORE`.
pub fn hide_memory() {
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Makes a write beyond the file size limit (`RLIMIT_FSIZE`, `ulimit -f`) fail with `EFBIG`, so that it is reported
/// like a full disk. Without this, SIGXFSZ ends the process at once. The signal is handled and not ignored: exec resets
/// a handler to the default action, but programs would inherit an ignored signal.
pub fn bear_file_size_limit() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: all zeros are a valid action without flags and with an empty mask; the handler does nothing.
    unsafe {
        let mut action = std::mem::zeroed::<libc::sigaction>();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGXFSZ, &raw const action, std::ptr::null_mut());
    }
}

/// Sleeps for `span`. Only for polling loops that have no descriptor to wait on.
#[expect(clippy::disallowed_methods, reason = "the lint refers to this function")]
pub fn pause(span: Duration) {
    std::thread::sleep(span);
}

/// Bytes that are allocated and touched in advance for the heap in [`lock_memory`].
const HEAP: usize = 8 << 20;
/// Bytes by which the heap grows. Touching its new pages takes some tens of microseconds.
const HEAP_STEP: libc::c_int = 256 << 10;
/// An allocation of at least this many bytes is mapped separately, and grows without a copy.
const LARGE: libc::c_int = 1 << 20;

/// Locks the memory of this process, and all memory that it allocates later, against paging (`mlockall`). Does not
/// report whether the kernel refused it.
///
/// The caller must have ordinary priority, because the first access to each page takes time. At real-time priority it
/// would delay the daemons of another lab.
pub fn lock_memory() {
    // Freed memory stays with the process. Otherwise each large buffer would return to the kernel, and the next one
    // would need new pages.
    // SAFETY: the calls take only numbers.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX);
        libc::mallopt(libc::M_TOP_PAD, HEAP_STEP);
        libc::mallopt(libc::M_MMAP_THRESHOLD, libc::c_int::MAX);
        libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE);
    }
    drop(std::hint::black_box(Vec::<u8>::with_capacity(HEAP)));
    // SAFETY: the calls take only numbers.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE) };
}

/// Gives the calling thread real-time priority, if the kernel permits it, as it does for root. Otherwise requests the
/// nice value -15, which the kernel may also refuse. The run's timing report then shows how late the thread is. Threads
/// and processes that a real-time thread starts have ordinary priority; a nice value is inherited.
///
/// All real-time threads of labs have the same priority, so they preempt each other only at the end of a time slice
/// (`SCHED_RR`). So a thread has this priority only while packets wait for it, and not while it sets up or writes
/// records.
pub fn set_realtime() {
    if !set_scheduler(libc::SCHED_RR, 1) {
        let _ = rustix::process::setpriority_process(None, -15);
    }
}

/// Resets the calling thread to ordinary scheduling (`SCHED_OTHER`). A nice value does not change.
pub fn set_ordinary() {
    set_scheduler(libc::SCHED_OTHER, 0);
}

fn set_scheduler(policy: libc::c_int, priority: libc::c_int) -> bool {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameter outlives the call, and nothing is written.
    unsafe { libc::sched_setscheduler(0, policy | libc::SCHED_RESET_ON_FORK, &raw const parameter) == 0 }
}

/// Returns 64 random bits from the system. A daemon without a configured seed calls it once.
pub fn entropy() -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: the buffer outlives the call, and its length is given.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    // A request for at most 256 bytes is never answered in part (getrandom(2)).
    assert!(got == bytes.len().cast_signed(), "getrandom(2) returned {got} instead of 8 random bytes");
    u64::from_ne_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn every_change_of_a_child_is_told() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let pid = child.id();
        assert_eq!(state_change(pid), None);
        let wait = |wanted: &str| {
            for _ in 0..1000 {
                if let Some(change) = state_change(pid) {
                    assert_eq!(change.what, wanted);
                    return change.ended;
                }
                pause(Duration::from_millis(5));
            }
            panic!("never heard that it {wanted}");
        };
        let signal =
            |signal| rustix::process::kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal);
        signal(rustix::process::Signal::STOP).unwrap();
        assert!(!wait("was stopped"));
        signal(rustix::process::Signal::CONT).unwrap();
        assert!(!wait("was continued"));
        signal(rustix::process::Signal::KILL).unwrap();
        assert!(wait("was killed by signal 9"));
        let _ = child.wait(); // its end was returned above
    }
}
