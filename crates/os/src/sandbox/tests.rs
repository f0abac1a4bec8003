use super::*;
use crate::testing::{again, in_sandbox, in_sandbox_of_root_and_of_nobody, need, role, spawn_in_new_net};
use crate::{End, EndPlace, NetNs, Netlink};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use wire::Mac;

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).stdin(Stdio::null());
    command
}

fn can_make_sandboxes() -> bool {
    need("a sandbox", Sandbox::spawn(shell("exit 0")).is_ok())
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn its_program_is_root_and_pid_1_in_namespaces_of_its_own() {
    in_sandbox_of_root_and_of_nobody(|| {
        assert_eq!(std::process::id(), 1);
        assert!(geteuid().is_root());
        let numbers = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = numbers.filter(|entry| entry.file_name().to_str().unwrap().parse::<u32>().is_ok());
        assert_eq!(pids.count(), 1);
        assert_eq!(Netlink::open().unwrap().links().unwrap().iter().filter(|link| link.up).count(), 0);
        // Mounts made here are visible only here, because mount propagation is private.
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(mounts.lines().all(|line| !line.contains(" shared:")), "{mounts}");
    });
}

#[test]
fn its_exit_and_its_streams_come_through() {
    if !can_make_sandboxes() {
        return;
    }
    let mut command = shell("echo hello; echo $$; exit 7");
    command.stdout(Stdio::piped());
    let mut sandbox = Sandbox::spawn(command).unwrap();
    let mut said = String::new();
    sandbox.keeper().stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "hello\n1\n");
    assert_eq!(sandbox.wait(None).unwrap().unwrap().code(), Some(7));
    assert_eq!(sandbox.end().unwrap().code(), Some(7));

    let mut sandbox = Sandbox::spawn(shell("exec sleep 1000")).unwrap();
    assert_eq!(sandbox.wait(Some(Duration::from_millis(20))).unwrap(), None);
    kill(sandbox.init());
    assert_eq!(sandbox.wait(None).unwrap().unwrap().code(), Some(128 + libc::SIGKILL));
}

#[test]
fn a_program_that_is_not_there_is_named() {
    if !can_make_sandboxes() {
        return;
    }
    let refused = Sandbox::spawn(Command::new("/no/such/program")).unwrap_err();
    assert!(refused.is_absent() && refused.to_string().contains("/no/such/program"), "{refused}");
    assert_eq!(refused.attempt, "start");
}

#[test]
fn a_failed_step_says_which_it_was() {
    let cause = || io::Error::from_raw_os_error(libc::EPERM);
    for step in Step::ALL {
        let (pid, failed) = ([0, 9, 9, 0, 0], [1, step as u8, 0, 0, 0]);
        for said in [failed.to_vec(), [pid, failed].concat(), [failed, pid].concat()] {
            assert_eq!(failure(&said, "x", cause()).attempt, step.attempt(), "{said:?}");
        }
    }
    assert_eq!(failure(&[], "x", cause()).attempt, "start");
    assert_eq!(failure(&[0, 1, 0, 0, 0], "x", cause()).attempt, "start");
}

/// Starts a sandbox whose pid 1 starts two daemons, each in a new network namespace, and prints that they run. The
/// standard output of the sandbox stays open until the last of its processes is dead.
fn sandbox_with_daemons<F>() -> (Sandbox, BufReader<std::process::ChildStdout>) {
    let mut command = again::<F>("lab");
    command.stdout(Stdio::piped());
    let mut sandbox = Sandbox::spawn(command).unwrap();
    let mut stdout = BufReader::new(sandbox.keeper().stdout.take().unwrap());
    until(&mut stdout, "daemons run");
    (sandbox, stdout)
}

fn until(stdout: &mut impl BufRead, word: &str) {
    let mut line = String::new();
    while !line.contains(word) {
        line.clear();
        assert_ne!(stdout.read_line(&mut line).unwrap(), 0, "it ended without {word:?}");
    }
}

fn again_of<F: FnOnce()>(_: &F, role: &str) -> Command {
    again::<F>(role)
}

fn lab() {
    let sleep = || {
        let mut command = Command::new("sleep");
        command.arg("1000").stdin(Stdio::null());
        command
    };
    let mut daemons = [spawn_in_new_net(sleep()).unwrap(), spawn_in_new_net(sleep()).unwrap()];
    println!("daemons run");
    daemons[0].wait().unwrap();
}

/// Returns the processes of this PID namespace whose network namespace is not in `here`, as (namespace, pid).
fn elsewhere(here: &[u64]) -> Vec<(u64, u32)> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let numbered = pids.filter_map(|pid| Some((NetNs::of(pid).ok()?.number().ok()?, pid)));
    numbered.filter(|(number, _)| !here.contains(number)).collect()
}

/// Runs `end` on a sandbox, and checks that all its processes and network namespaces are gone.
fn nothing_is_left_after<F: FnOnce(&mut Sandbox)>(end: F) {
    let (mut sandbox, mut stdout) = sandbox_with_daemons::<F>();
    let own = |pid| NetNs::of(pid).unwrap().number().unwrap();
    let daemons = elsewhere(&[own(std::process::id()), own(sandbox.init())]);
    assert_eq!(daemons.len(), 2, "{daemons:?}");
    // An end of a veth pair disappears when the namespace of the other end does.
    let mut here = Netlink::open().unwrap();
    for (number, (_, pid)) in daemons.iter().enumerate() {
        let (a, mac) = (format!("w{number}"), Mac([2, 0, 0, 0, 0, 1]));
        let a = End { name: &a, mac, place: EndPlace::Here };
        here.add_veth(&a, &End { name: "eth0", mac, place: EndPlace::Process(*pid) }).unwrap();
    }
    assert!(here.link("w0").is_ok() && here.link("w1").is_ok());

    end(&mut sandbox);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert!(sandbox.wait(Some(Duration::from_secs(5))).unwrap().is_some());
    assert_eq!(elsewhere(&[own(std::process::id())]), []);
    let timer = crate::Timer::new().unwrap();
    let mut left = 500;
    while here.link("w0").is_ok() || here.link("w1").is_ok() {
        left -= 1;
        assert!(left > 0, "a network namespace outlived its sandbox");
        crate::testing::readable(&timer, 10);
    }
}

#[test]
fn killing_pid_1_ends_all_of_it() {
    if role().as_deref() == Some("lab") {
        return lab();
    }
    in_sandbox_of_root_and_of_nobody(|| nothing_is_left_after(|sandbox| kill(sandbox.init())));
}

#[test]
fn killing_the_keeper_ends_all_of_it() {
    if role().as_deref() == Some("lab") {
        return lab();
    }
    in_sandbox_of_root_and_of_nobody(|| nothing_is_left_after(|sandbox| kill(sandbox.keeper().id())));
}

#[test]
fn dropping_it_ends_all_of_it() {
    if role().as_deref() == Some("lab") {
        return lab();
    }
    in_sandbox(|| nothing_is_left_after(|sandbox| assert!(sandbox.end().is_ok())));
}

/// A sandbox ends when its caller is killed and cannot clean up. Here the caller is a separate process.
#[test]
fn killing_the_caller_ends_all_of_it() {
    let body = || {
        let name = || {};
        let mut caller = again_of(&name, "caller").stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(caller.stdout.take().unwrap());
        until(&mut stdout, "daemons run");
        assert!(elsewhere(&[NetNs::current().unwrap().number().unwrap()]).len() >= 3);
        caller.kill().unwrap();
        caller.wait().unwrap();
        // The daemons hold this pipe open; it reaches end of file with the last of them.
        stdout.read_to_string(&mut String::new()).unwrap();
    };
    match role().as_deref() {
        Some("lab") => lab(),
        Some("caller") => {
            let mut command = again_of(&|| {}, "lab");
            command.stdout(Stdio::inherit());
            let mut sandbox = Sandbox::spawn(command).unwrap();
            sandbox.wait(None).unwrap();
        }
        _ => in_sandbox(body),
    }
}

#[test]
fn a_root_that_is_no_mount_point_is_named_with_what_to_do() {
    let invalid = || io::Error::from_raw_os_error(libc::EINVAL);
    let said = |step: Step| failure(&[1, step as u8, 0, 0, 0], "wayfare", invalid()).to_string();
    assert!(said(Step::Private).contains("mount --bind DIR DIR"), "{}", said(Step::Private));
    assert!(said(Step::Proc).contains("Invalid argument"), "{}", said(Step::Proc));
}
