//! Any program as a workload: what a scenario says of it.
//!
//! It runs in the network namespace of its host, so its sockets are those of the host's own stack, and everything that it
//! sends and receives passes the host's node. In the simulator there is nothing that it could run on.

use schemars::JsonSchema;
use serde::Deserialize;
use wire::Duration;

/// A program of a host.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// A line for `sh -c`. Only the shell knows what it needs, so it is not looked for before the run: a program that is not found
    /// fails when it is started (status 127), as does any other that fails, and the run ends with 1 and names it.
    pub command: String,
    /// When it is started, from the begin of the run: at once.
    #[serde(default, deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub start: Duration,
    /// When it is asked to end (SIGTERM). At the end of the run it is killed, if it is still there.
    #[serde(default, deserialize_with = "node::config::some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub stop: Option<Duration>,
}

impl Program {
    /// Refuses what cannot work in a run of this length: the key, and what is wrong with it.
    pub(crate) fn check(&self, run: Duration) -> Result<(), (&'static str, String)> {
        if self.command.trim().is_empty() {
            return Err(("command", "say what to run, as `iperf3 -c 10.0.0.1`".to_owned()));
        }
        if self.start >= run {
            return Err(("start", format!("the run ends at {run:?}, before the program begins")));
        }
        if self.stop.is_some_and(|stop| stop <= self.start) {
            return Err(("stop", "must be later than `start`".to_owned()));
        }
        Ok(())
    }
}
