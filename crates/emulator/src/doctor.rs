//! Tries the features of Linux that labs and experiments need. Each probe runs in a forked child process; a probe that
//! needs separate namespaces makes them.

use os::{
    Attempt, Clock, End, EndPlace, Error, Netlink, Offset, Options, PacketSocket, Result, Timer, check,
    sandbox::{Maps, Sandbox, Step as WorldStep, leave},
    tcp_support,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::geteuid;
use rustix::thread::UnshareFlags;
use rustix::time::Timespec;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::process::Command;
use wire::{Duration, EtherType, Frame, Mac, ethernet};

/// A feature of this machine that was tried, and the result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Probe {
    /// The feature's name, for example `veth`.
    pub name: &'static str,
    /// What does not work without the feature.
    pub needed_for: &'static str,
    /// Whether the feature works on this machine for this user.
    pub ok: bool,
    /// The result as text: what was found, or why the probe failed.
    pub detail: String,
}

/// Label of what every lab on Linux needs.
const LAB: &str = "labs on Linux";
/// Label of what labs need if the user is not root.
const ROOTLESS: &str = "labs on Linux without root";
/// Label of what forwarding in the kernel needs.
const KERNEL: &str = "daemons with data_path = \"kernel\"";
/// The longest time to wait for a frame before the frame is sent again, and the largest number of times that it is
/// sent.
const STEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
const TRIES: usize = 50;
/// A probe that takes longer than this time has failed.
const LIMIT: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

type Test = fn() -> Result<String>;

const PROC: &str = "/proc";
const NULL: &str = "/dev/null";
const TEMPORARY: &str = "temporary files";

/// The probes: name of the feature, what needs the feature, whether the test runs in a new network namespace, and the
/// test.
const TESTS: [(&str, &str, bool, Test); 16] = [
    (PROC, LAB, false, proc),
    (NULL, LAB, false, null),
    (TEMPORARY, LAB, false, temporary),
    ("user namespaces", ROOTLESS, false, user_namespace),
    ("network namespaces", LAB, true, || Ok("a new network namespace was entered".to_owned())),
    ("PID namespaces", LAB, false, pid_namespace),
    ("veth", LAB, true, || veth().map(|()| "a veth pair was made".to_owned())),
    ("ingress hook", LAB, true, ingress_hook),
    ("packet sockets with time stamps", LAB, true, packet_socket),
    ("timers on CLOCK_BOOTTIME", LAB, false, timer),
    ("TCP_REPAIR", "moving TCP connections (indirect-tcp)", true, || {
        tcp_support::tcp_repair().map(|()| "a socket was put into repair mode".to_owned())
    }),
    ("TCP reno", "experiments with TCP Reno", true, || tcp_support::congestion("reno")),
    ("TCP cubic", "experiments with TCP CUBIC", true, || tcp_support::congestion("cubic")),
    ("TCP bbr", "experiments with TCP BBR", true, || tcp_support::congestion("bbr")),
    ("eBPF", KERNEL, true, ebpf),
    ("TUN", "nothing in this version", true, tun),
];

/// Runs all probes, and returns their results in the order in which they ran. The program must have a single thread,
/// because the probes run in forked children.
pub fn probe() -> Vec<Probe> {
    let run = |(name, needed_for, apart, test): (_, _, bool, Test)| {
        let (ok, detail) =
            match in_a_fork(|| if apart { leave_network().and_then(|()| test()) } else { test() }) {
                Ok(detail) => (true, detail),
                Err(detail) => (false, detail),
            };
        Probe { name, needed_for, ok, detail }
    };
    TESTS.into_iter().map(run).collect()
}

/// Returns the names of the features that a lab needs and this machine lacks, or `None` if it lacks none. Features that
/// only the data path in the kernel, one protocol or one experiment needs are not included.
pub fn missing_for_lab(probes: &[Probe]) -> Option<String> {
    missing(probes, geteuid().is_root())
}

fn missing(probes: &[Probe], root: bool) -> Option<String> {
    let needed = |probe: &&Probe| probe.needed_for == LAB || (probe.needed_for == ROOTLESS && !root);
    let names: Vec<_> =
        probes.iter().filter(needed).filter(|probe| !probe.ok).map(|probe| probe.name).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Checks the features of the file system that a lab needs: `/proc`, `/dev/null` and a directory for temporary files. A
/// plain chroot may lack them. The check needs no child process.
///
/// # Errors
///
/// The name of the first missing feature, as in [`probe`], and the kernel's error.
pub(crate) fn files_for_lab() -> std::result::Result<(), (&'static str, Error)> {
    let tests: [(&str, Test); 3] = [(PROC, proc), (NULL, null), (TEMPORARY, temporary)];
    tests.into_iter().try_for_each(|(name, test)| test().map(drop).map_err(|error| (name, error)))
}

/// Returns the name of the feature whose lack made the creation of a sandbox fail, as in [`probe`]. Returns two names
/// if either feature may be missing, and `None` if the error is not that of a step of [`Sandbox::spawn`].
pub(crate) fn lacked_by_sandbox(error: &Error) -> Option<&'static str> {
    let step = WorldStep::of(error)?;
    Some(match step {
        WorldStep::Unshare => "network namespaces, PID namespaces",
        WorldStep::UnshareUser | WorldStep::SetGroups | WorldStep::UidMap | WorldStep::GidMap => {
            "user namespaces"
        }
        WorldStep::Fork | WorldStep::Watch | WorldStep::Private | WorldStep::Proc => "PID namespaces",
    })
}

fn proc() -> Result<String> {
    let path = "/proc/self/exe";
    std::fs::read_link(path).attempt("read", path)?;
    Ok("is mounted".to_owned())
}

fn null() -> Result<String> {
    File::options().read(true).write(true).open(NULL).attempt("open", NULL)?;
    Ok("can be opened".to_owned())
}

fn temporary() -> Result<String> {
    let folder = std::env::temp_dir();
    tempfile::tempdir_in(&folder).attempt("make a directory in", folder.display())?;
    Ok(format!("in {}", folder.display()))
}

fn leave_network() -> Result<()> {
    leave(Maps::needed().as_ref(), UnshareFlags::NEWNET).map_err(|(step, cause)| Error {
        attempt: step.attempt(),
        subject: "a probe".to_owned(),
        cause,
    })
}

fn user_namespace() -> Result<String> {
    leave(Some(&Maps::of_the_caller()), UnshareFlags::empty()).map_err(|(step, cause)| Error {
        attempt: step.attempt(),
        subject: "a probe".to_owned(),
        cause,
    })?;
    Ok(format!("root in a new user namespace: {}", geteuid().is_root()))
}

fn pid_namespace() -> Result<String> {
    // The command is this program itself, because another program or `/dev/null` may be missing.
    let mut command = Command::new("/proc/self/exe");
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).attempt("open", "a pipe")?;
    let other = write.try_clone().attempt("open", "a pipe")?;
    command.arg("--help").stdin(read).stdout(write).stderr(other);
    let ended = Sandbox::spawn(command)?.wait(None)?;
    match ended {
        Some(status) if status.success() => Ok("with a separate /proc".to_owned()),
        other => {
            let how = other.map_or_else(String::new, |status| format!("the program ended with {status}"));
            Err(io::Error::other(how)).attempt("run a program as pid 1 of", "a new PID namespace")
        }
    }
}

fn veth() -> Result<()> {
    let end = |name, last| End { name, mac: Mac([2, 0, 0, 0, 0, last]), place: EndPlace::Here };
    let mut here = Netlink::open()?;
    here.add_veth(&end("a0", 1), &end("b0", 2))?;
    here.set_up("a0", true)?;
    here.set_up("b0", true)
}

fn ingress_hook() -> Result<String> {
    veth()?;
    os::nft::install_ingress_drop(&["b0"])?;
    os::nft::remove_ingress_drop()?;
    Ok("nftables, family netdev".to_owned())
}

fn packet_socket() -> Result<String> {
    veth()?;
    let (a, b) =
        (PacketSocket::open("a0", &Options::default())?, PacketSocket::open("b0", &Options::default())?);
    let frame = Frame { kind: EtherType(0x88b5), src: Mac([2, 0, 0, 0, 0, 1]), dst: Mac([2, 0, 0, 0, 0, 2]) };
    let (clock, mut buffer) = (Clock::start(), [0; 2000]);
    // A new link needs some time before it carries frames, and the kernel may first send some frames by itself.
    for _ in 0..TRIES {
        a.send(&ethernet::emit(&frame, &[0; 50]))?;
        poll(&mut [PollFd::new(&b, PollFlags::IN)], Some(&STEP)).attempt("wait for", "a frame")?;
        while let Some(received) = b.receive(&mut buffer)? {
            if matches!(ethernet::parse(&buffer[..received.len]), Ok((seen, _)) if seen == frame) {
                let after = clock.instant(received.at, Offset::sample());
                let buffer = b.buffer();
                return Ok(format!(
                    "a frame was stamped after {} us; the receive buffer has {} bytes",
                    after.0 / 1000,
                    buffer.granted
                ));
            }
        }
    }
    Err(io::Error::from(io::ErrorKind::TimedOut)).attempt("receive on", "b0")
}

fn timer() -> Result<String> {
    let (timer, clock) = (Timer::new()?, Clock::start());
    let due = clock.now() + Duration::from_millis(5);
    timer.arm(clock, due)?;
    poll(&mut [PollFd::new(&timer, PollFlags::IN)], Some(&LIMIT)).attempt("wait for", "a timer")?;
    let late = clock.now().since(due);
    if timer.fired()? {
        return Ok(format!("woken {} us late", late.as_micros()));
    }
    Err(io::Error::from(io::ErrorKind::TimedOut)).attempt("be woken by", "a timer")
}

/// Loads the program of the data path in the kernel, and attaches it to nothing.
fn ebpf() -> Result<String> {
    daemon::try_data_path()?;
    Ok("the program of the data path was loaded".to_owned())
}

fn tun() -> Result<String> {
    let path = "/dev/net/tun";
    let file = File::options().read(true).write(true).open(path).attempt("open", path)?;
    // SAFETY: all zero is a valid `ifreq`, and it outlives the call.
    let made = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as i16;
        check(libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request))
    };
    made.attempt("make", "a TUN device")?;
    Ok("a TUN device was made".to_owned())
}

/// Runs `work` in a forked child and returns its text. The first byte that the child sends over the pipe is `+` after a
/// success.
fn in_a_fork(work: impl FnOnce() -> Result<String>) -> std::result::Result<String, String> {
    let told = fork_and_ask(work).attempt("start", "a probe").map_err(|error| error.to_string())?;
    match told.split_first() {
        Some((b'+', detail)) => Ok(String::from_utf8_lossy(detail).into_owned()),
        Some((_, detail)) => Err(String::from_utf8_lossy(detail).into_owned()),
        None => Err("the probe ended abnormally, or took longer than 10 s".to_owned()),
    }
}

fn fork_and_ask(work: impl FnOnce() -> Result<String>) -> io::Result<Vec<u8>> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    // SAFETY: by this module's contract the process has one thread, so the child may call any function.
    let child = check(unsafe { libc::fork() })?;
    if child == 0 {
        drop(read);
        let told = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
            Ok(Ok(detail)) => format!("+{detail}"),
            Ok(Err(error)) => format!("-{error}"),
            Err(_) => "-the probe panicked".to_owned(),
        };
        let _ = File::from(write).write_all(told.as_bytes());
        // SAFETY: ends the child at once, without the parent's exit handlers.
        unsafe { libc::_exit(0) }
    }
    drop(write);
    let mut told = Vec::new();
    let in_time = poll(&mut [PollFd::new(&read, PollFlags::IN)], Some(&LIMIT)).is_ok_and(|ready| ready > 0);
    if in_time {
        File::from(read).read_to_end(&mut told)?;
    }
    // SAFETY: the child is ours and not yet waited for, so its pid is not reused.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{in_sandbox, in_sandbox_of_root_and_of_nobody, need};

    #[test]
    fn this_machine_can_run_a_lab_and_probing_leaves_nothing() {
        in_sandbox_of_root_and_of_nobody(|| {
            let probes = probe();
            for probe in &probes {
                eprintln!("{:34} {:5} {}", probe.name, probe.ok, probe.detail);
            }
            let lacking = missing(&probes, false);
            assert!(need(&format!("all that a lab needs: {lacking:?} of {probes:?}"), lacking.is_none()));
            assert_eq!(
                Netlink::open().unwrap().links().unwrap().iter().filter(|link| link.name == "a0").count(),
                0
            );
            let children = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
            assert_eq!(children, "");
        });
    }

    #[test]
    fn each_step_of_a_sandbox_that_fails_has_a_feature() {
        let failed = |attempt| Error {
            attempt,
            subject: "a lab".to_owned(),
            cause: io::Error::from_raw_os_error(libc::EPERM),
        };
        let known: Vec<&str> = TESTS.iter().map(|(name, ..)| *name).collect();
        for step in WorldStep::ALL {
            let features = lacked_by_sandbox(&failed(step.attempt())).unwrap();
            assert!(features.split(", ").all(|feature| known.contains(&feature)), "{features}");
        }
        assert_eq!(lacked_by_sandbox(&failed("start")), None);
        assert!(files_for_lab().is_ok());
    }

    #[test]
    fn what_a_lab_lacks_is_named() {
        let probe = |name, needed_for, ok| Probe { name, needed_for, ok, detail: String::new() };
        let probes = [
            probe("user namespaces", ROOTLESS, false),
            probe("veth", LAB, true),
            probe("eBPF", KERNEL, false),
        ];
        assert_eq!(missing(&probes, true), None);
        assert_eq!(missing(&probes, false).as_deref(), Some("user namespaces"));
        let probes = [probe("veth", LAB, false), probe("ingress hook", LAB, false)];
        assert_eq!(missing(&probes, true).as_deref(), Some("veth, ingress hook"));
    }

    #[test]
    fn a_probe_that_fails_panics_or_dies_is_a_probe_that_failed() {
        // In a separate process: a fork of the test harness could inherit a lock that another test's thread holds.
        in_sandbox(|| {
            assert_eq!(in_a_fork(|| Ok("fine".to_owned())), Ok("fine".to_owned()));
            let refused = in_a_fork(|| Err(io::Error::from_raw_os_error(libc::EPERM)).attempt("do", "it"));
            assert_eq!(refused, Err("cannot do it: Operation not permitted (os error 1)".to_owned()));
            assert_eq!(in_a_fork(|| panic!("on purpose")), Err("the probe panicked".to_owned()));
            // SAFETY: it only ends the forked child.
            let died = in_a_fork(|| unsafe { libc::_exit(1) });
            assert!(died.unwrap_err().contains("ended abnormally"));
        });
    }
}
