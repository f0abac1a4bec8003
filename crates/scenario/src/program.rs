//! A program of a scenario as a workload on Linux: its keys and their checks.
//!
//! A program runs in the network namespace of its host. So its sockets are those of the host's kernel stack, and all
//! packets that it sends to other hosts pass the host's node. The simulator has no kernel and cannot run programs.

use schemars::JsonSchema;
use serde::Deserialize;
use wire::Duration;

/// A program that runs on a host, on Linux only.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// A command for `sh -c`. If the command is not found (status 127) or fails, the run exits with 1 and names the
    /// command. This does not apply if the scenario has ended the program. Nothing checks before the run whether the
    /// command exists.
    pub command: String,
    /// The time at which the program starts, from the begin of the run [default: 0 s].
    #[serde(default, deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub start: Duration,
    /// The time at which the program gets SIGTERM, from the begin of the run. If the program still runs at the end of
    /// the run, it is killed.
    #[serde(default, deserialize_with = "node::config::some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub stop: Option<Duration>,
    /// Whether the program must end before the run ends, for example a client with a given size or duration [default:
    /// no]. If it does not end, the run exits with 1 and names the command. Other programs, for example servers, are
    /// killed at the end of the run without a failure.
    #[serde(default)]
    pub ends: bool,
}

impl Program {
    /// Checks the keys of a program. `run` is the duration of the run. An error has the key and the problem.
    pub(crate) fn check(&self, run: Duration) -> Result<(), (&'static str, String)> {
        if self.command.trim().is_empty() {
            return Err(("command", "the command is missing, for example `iperf3 -c 10.0.0.1`".to_owned()));
        }
        if self.start >= run {
            return Err(("start", format!("must be before {run:?}, the end of the run")));
        }
        if self.stop.is_some_and(|stop| stop <= self.start) {
            return Err(("stop", "must be later than `start`".to_owned()));
        }
        if self.ends && self.stop.is_some() {
            return Err((
                "ends",
                "a program with `stop` does not end by itself; give `ends` or `stop`, not both".to_owned(),
            ));
        }
        Ok(())
    }

    /// Returns the problem of a program that still exists at the end of the run, or `None` if the program may still run
    /// then. `is_stopped`: the program was stopped (for example by SIGSTOP) and does not run.
    pub fn trouble_at_end(&self, is_stopped: bool) -> Option<&'static str> {
        match (is_stopped, self.ends) {
            (true, _) => Some("was stopped when the run ended"),
            (false, true) => Some("did not end by itself before the end of the run"),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_hangs_is_a_failure_and_a_server_is_none() {
        let program = |ends| Program { command: "true".to_owned(), start: Duration::ZERO, stop: None, ends };
        assert_eq!(program(false).trouble_at_end(false), None);
        assert!(program(true).trouble_at_end(false).is_some());
        assert!(program(false).trouble_at_end(true).is_some(), "a program that is stopped serves nothing");
        let both = Program { stop: Some(Duration::from_secs(1)), ..program(true) };
        assert_eq!(both.check(Duration::from_secs(2)).unwrap_err().0, "ends");
        assert!(program(true).check(Duration::from_secs(2)).is_ok());
    }
}
