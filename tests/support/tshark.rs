//! Checks captures with Wireshark. Included by the tests of code that writes captures.

use std::path::Path;
use std::process::Command;

/// Returns the output of `tshark`, or `None` if it is not installed. If the variable `CI` is set, a missing `tshark` is
/// a failure.
pub(crate) fn tshark(file: &Path, arguments: &[&str]) -> Option<String> {
    run(Command::new("tshark").arg("-n").arg("-r").arg(file).args(arguments))
}

/// Executes a command of `tshark`, as [`tshark`].
pub(crate) fn run(command: &mut Command) -> Option<String> {
    match command.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8(output.stdout).unwrap())
        }
        Err(missing) => {
            #[expect(
                clippy::disallowed_methods,
                reason = "a skipped test must not pass unseen on a build server"
            )]
            let on_build_server = std::env::var("CI").is_ok();
            assert!(!on_build_server, "tshark is needed here: {missing}");
            eprintln!("SKIPPED: no tshark on this machine ({missing})");
            None
        }
    }
}
