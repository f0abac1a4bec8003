//! Tests that need a kernel of their own to play with: the test starts itself again as pid 1 of a new world.

use linux::World;
use rustix::process::geteuid;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use wire::Duration;

/// What a process that a test started of itself is to be.
const ROLE: &str = "WAYFARE_TEST_ROLE";

/// Runs the body, a closure of the calling test, in a new world that lasts at most `limit`.
pub(crate) fn in_world<F: FnOnce()>(limit: Duration, body: F) {
    if variable(ROLE).as_deref() == Some("world") {
        return body();
    }
    let spawned = World::spawn(again::<F>("world"));
    let refusal = spawned.as_ref().err().map(ToString::to_string).unwrap_or_default();
    if !need(&format!("a world {refusal}"), spawned.is_ok()) {
        return;
    }
    let ended = spawned.unwrap().wait(Some(limit)).unwrap();
    assert!(ended.is_some_and(|status| status.success()), "inside its world: {ended:?}");
}

/// The same as a user without any rights.
pub(crate) fn in_world_of_nobody<F: FnOnce()>(limit: Duration, body: F) {
    if variable(ROLE).is_none() {
        if need("root, to become another user", geteuid().is_root()) {
            let mut command = again::<F>("nobody");
            command.uid(65534).gid(65534);
            assert!(command.status().unwrap().success(), "as nobody");
        }
        return;
    }
    in_world(limit, body);
}

/// Whether a test that needs `what` can run. Where everything must be tested (`CI`), not having it is a failure;
/// elsewhere the skip is printed past the harness's capture.
fn need(what: &str, have: bool) -> bool {
    assert!(have || variable("CI").is_none(), "CI must be able to test: {what}");
    if !have {
        let _ = writeln!(std::io::stderr(), "SKIPPED, for want of: {what}");
    }
    have
}

#[expect(clippy::disallowed_methods, reason = "tests run in processes of their own, and learn from it which")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// This same test once more, in another process: its name is that of the function around the closure `F`.
fn again<F>(role: &str) -> Command {
    let name = std::any::type_name::<F>();
    let name = name.split_once("::").unwrap().1.trim_end_matches("::{{closure}}");
    // Not by its path: somebody else may not be allowed to walk there.
    let mut command = Command::new("/proc/self/exe");
    command.args([name, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).stdin(Stdio::null()).stdout(Stdio::null());
    command
}
