//! Runs tests that need separate namespaces: the test starts itself again as pid 1 of a new sandbox.

use os::Sandbox;
use rustix::process::geteuid;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use wire::Duration;

/// The environment variable with the role of a process that a test started.
const ROLE: &str = "WAYFARE_TEST_ROLE";

/// Runs the body, a closure of the calling test, in a new sandbox that lasts at most `limit`.
pub(crate) fn in_sandbox<F: FnOnce()>(limit: Duration, body: F) {
    if variable(ROLE).as_deref() == Some("sandbox") {
        return body();
    }
    let spawned = Sandbox::spawn(again::<F>("sandbox"));
    let refusal = spawned.as_ref().err().map(ToString::to_string).unwrap_or_default();
    if !need(&format!("a sandbox {refusal}"), spawned.is_ok()) {
        return;
    }
    let ended = spawned.unwrap().wait(Some(limit)).unwrap();
    assert!(ended.is_some_and(|status| status.success()), "inside its sandbox: {ended:?}");
}

/// Runs the body as a user without any privileges.
pub(crate) fn in_sandbox_of_nobody<F: FnOnce()>(limit: Duration, body: F) {
    if variable(ROLE).is_none() {
        if need("root, to become another user", geteuid().is_root()) {
            let mut command = again::<F>("nobody");
            command.uid(65534).gid(65534);
            assert!(command.status().unwrap().success(), "as the user nobody");
        }
        return;
    }
    in_sandbox(limit, body);
}

/// Returns whether a test that needs `what` can run. If the variable `CI` is set, a missing requirement is a failure.
/// Otherwise the skip is printed, and the test harness does not capture it.
fn need(what: &str, have: bool) -> bool {
    assert!(have || variable("CI").is_none(), "CI must be able to test: {what}");
    if !have {
        let _ = writeln!(std::io::stderr(), "SKIPPED, because this machine lacks: {what}");
    }
    have
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests run in separate processes, and the variable names the test"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns a command that runs the calling test in another process. The test's name is that of the function around the
/// closure `F`.
fn again<F>(role: &str) -> Command {
    let name = std::any::type_name::<F>();
    let name = name.split_once("::").unwrap().1.trim_end_matches("::{{closure}}");
    // The path of the binary is not used, because another user may not be allowed to traverse it.
    let mut command = Command::new("/proc/self/exe");
    command.args([name, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).stdin(Stdio::null()).stdout(Stdio::null());
    command
}
