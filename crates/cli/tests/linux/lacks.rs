//! Kernels that lack what a scenario needs: the run ends with 3 and names the feature before anything starts. Scenarios
//! that do not need the feature run.

use crate::common::*;
use std::path::{Path, PathBuf};
use std::process::Command;

const CONNECTIONS_MOVE: [&str; 4] = ["run", "indirect-tcp/handoff-time", "--on", "linux"];

/// Compiles `lacks.c`. Returns `None` if this machine has no compiler.
fn library(dir: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/linux/lacks.c");
    let library = dir.join("lacks.so");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"]).arg(&library).arg(source);
    let output = cc.output();
    if !need("cc", output.is_ok()) {
        return None;
    }
    let output = output.unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(library)
}

/// Runs the command, and all that it starts, as if the kernel lacked the feature `what`.
fn run_without(what: &str, words: &[&str], library: &Path, out: &Path) -> Output {
    ended(command(words, out).env("LD_PRELOAD", library).env("LACKS", what))
}

/// Asserts that a command ended with 3, printed what is missing, and started nothing.
fn assert_lacks(output: &Output, says: &[&str], out: &Path) {
    for said in says {
        assert_exit(output, 3, said);
    }
    assert!(!out.join("runs").exists(), "no silent fall-back to the simulator");
    let said = text(&output.stderr);
    let errors = said.lines().filter(|line| line.starts_with("error: ")).count();
    let last = said.lines().last().is_some_and(|line| line.starts_with("error: "));
    assert!(!said.contains("repeated") && errors == 1 && last, "{said}");
}

#[test]
fn without_tcp_repair_no_connection_is_handed_over_and_all_else_runs() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let Some(library) = library(out.path()) else { return };
    let output = run_without("TCP_REPAIR", &CONNECTIONS_MOVE, &library, out.path());
    let says = ["TCP_REPAIR, with which `", "moves connections", "Protocol not available"];
    assert_lacks(&output, &says, out.path());
    let told = run_without("TCP_REPAIR", &["doctor"], &library, out.path());
    let line = text(&told.stdout).lines().find(|line| line.contains("TCP_REPAIR")).map(str::to_owned);
    assert!(line.is_some_and(|line| line.starts_with("missing")), "{}", text(&told.stdout));
    assert!(text(&told.stdout).contains("runs on Linux: yes"), "it is one protocol's need");
    assert_held(&run_without("TCP_REPAIR", &SHORT, &library, out.path()), "first on linux");
}

#[test]
fn without_raw_sockets_there_is_no_run() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let Some(library) = library(out.path()) else { return };
    let output = run_without("AF_PACKET", &SHORT, &library, out.path());
    assert_lacks(&output, &["raw sockets, which carry the frames", "Operation not permitted"], out.path());
    let told = run_without("AF_PACKET", &["doctor"], &library, out.path());
    assert_exit(&told, 3, "runs on Linux need: packet sockets with time stamps");
}

/// Without the capability `CAP_NET_RAW`, raw sockets are named as missing. The test needs root: another user would get
/// the capability back in a user namespace.
#[test]
fn without_the_capability_for_raw_sockets_there_is_no_run() {
    if !need("root, to lose a capability", is_root()) {
        return;
    }
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-net_raw", "--inh-caps", "-net_raw", "--"]).arg(wayfare()).args(SHORT);
    let output = ended(command.current_dir(out.path()));
    assert_lacks(&output, &["raw sockets, which carry the frames", "Operation not permitted"], out.path());
}

/// Copies the command and the libraries that it needs into the folder `root`. Returns `None` if there is no `ldd`.
fn bare_root(root: &Path) -> Option<()> {
    let linked = Command::new("ldd").arg(wayfare()).output();
    if !need("ldd", linked.is_ok()) {
        return None;
    }
    let linked = text(&linked.unwrap().stdout);
    let libraries = linked.split_whitespace().filter(|word| word.starts_with('/')).map(Path::new);
    for library in libraries {
        let to = root.join(library.strip_prefix("/").unwrap());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(library, to).unwrap();
    }
    std::fs::copy(wayfare(), root.join("wayfare")).unwrap();
    Some(())
}

/// In a plain chroot, `run` names the first missing feature, and so does `doctor`.
#[test]
fn in_a_plain_chroot_the_missing_feature_is_named() {
    if !need("root, to change the root", is_root()) {
        return;
    }
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let Some(()) = bare_root(root) else { return };
    for folder in ["proc", "dev"] {
        std::fs::create_dir(root.join(folder)).unwrap();
    }
    let at = root.display();
    // The shell mounts in a separate mount namespace, so the mounts of this machine do not change.
    let in_it = |prepare: &str, words: &str| {
        let script = format!("{prepare} exec chroot '{at}' /wayfare {words}");
        ended(Command::new("unshare").args(["-m", "sh", "-c", &script]))
    };
    let assert_missing = |prepare: &str, feature: &str, why: &str| {
        let run = "run first --on linux --set duration=900ms --set constant-rate.stop=800ms --out /run";
        let output = in_it(prepare, run);
        assert_lacks(
            &output,
            &[&format!("this machine cannot run the scenario on Linux: {feature}: {why}")],
            root,
        );
        let told = in_it(prepare, "doctor");
        let need =
            text(&told.stderr).lines().find(|line| line.contains("runs on Linux need: ")).map(str::to_owned);
        assert!(told.status.code() == Some(3) && need.is_some_and(|need| need.contains(feature)), "{told:?}");
    };
    let proc = format!("mount -t proc proc '{at}/proc' &&");
    assert_missing("", "/proc", "cannot read /proc/self/exe");
    assert_missing(&proc, "/dev/null", "cannot open /dev/null");
    std::fs::write(root.join("dev/null"), "").unwrap();
    assert_missing(&proc, "temporary files", "cannot make a directory in /tmp");
    std::fs::create_dir(root.join("tmp")).unwrap();
    assert_missing(&proc, "PID namespaces", "cannot make the mounts private for");
}
