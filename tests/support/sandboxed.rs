//! Runs a test in separate namespaces, and reports what was skipped. The unit tests of `os`, `daemon` and `emulator`
//! use it.

use os::Sandbox;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use wire::Duration;

/// The environment variable with the role of a process that a test starts from its own binary.
const ROLE: &str = "WAYFARE_TEST_ROLE";

/// Returns whether a test that needs `what` can run. In continuous integration (`CI`) a missing feature is a failure.
/// Elsewhere the skip is printed, and the test harness does not capture it.
pub(crate) fn need(what: &str, have: bool) -> bool {
    assert!(have || variable("CI").is_none(), "CI must be able to test: {what}");
    if !have {
        let _ = writeln!(std::io::stderr(), "SKIPPED, because this machine lacks: {what}");
    }
    have
}

/// Returns the role with which this process was started.
pub(crate) fn role() -> Option<String> {
    variable(ROLE)
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests run in separate processes, and the variable names the test"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Runs the body of the calling test in a new [`Sandbox`]; the body is given as a closure of the test function.
pub(crate) fn in_sandbox<F: FnOnce()>(body: F) {
    if role().as_deref() == Some("sandbox") {
        return body();
    }
    let spawned = Sandbox::spawn(again::<F>("sandbox"));
    let refusal = spawned.as_ref().err().map(ToString::to_string).unwrap_or_default();
    if !need(&format!("a sandbox {refusal}"), spawned.is_ok()) {
        return;
    }
    let mut sandbox = spawned.unwrap();
    let ended = sandbox.wait(Some(Duration::from_mins(1))).unwrap();
    assert!(ended.is_some_and(|status| status.success()), "inside its sandbox: {ended:?}");
}

/// Runs the body in a new sandbox as the user that runs the tests. If this user is root, runs the body also as a user
/// without any rights.
pub(crate) fn in_sandbox_of_root_and_of_nobody<F: FnOnce()>(body: F) {
    if role().is_none() && need("root, to become another user", rustix::process::geteuid().is_root()) {
        let mut command = again::<F>("nobody");
        command.uid(65534).gid(65534);
        assert!(command.status().unwrap().success(), "as the user nobody");
    }
    in_sandbox(body);
}

/// Returns a command that runs the calling test again in another process. The test's name is that of the function
/// around the closure `F`.
pub(crate) fn again<F>(role: &str) -> Command {
    let name = std::any::type_name::<F>();
    let name = name.split_once("::").unwrap().1.trim_end_matches("::{{closure}}");
    // The path of the binary is not used, because another user may not be allowed to traverse it.
    let mut command = Command::new("/proc/self/exe");
    command.args([name, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"]).env(ROLE, role);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}
