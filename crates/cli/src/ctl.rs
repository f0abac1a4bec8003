//! `wayfare ctl`: requests of an operator to a running daemon.

mod show;

use crate::Failure;
use crate::output::{Format, print};
use daemon::{Answer, Ask, Running, running};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What clap prints for a command that does not exist.
const USAGE: &str =
    "wayfare ctl [OPTIONS] <HOST> status|bindings|visitors|register [AGENT]|deregister|handoff TO";
/// The end of the long help.
const MORE: &str = "\
A daemon accepts requests of root and of the user that runs it. A request that it refuses is exit code 2; a daemon
that cannot be reached is exit code 3.

Examples:
  wayfare ctl home status
  wayfare ctl /run/home.sock bindings --format json
  wayfare ctl mobile register 10.2.0.1";

#[derive(clap::Args)]
#[command(after_long_help = MORE, override_usage = USAGE)]
pub(crate) struct Args {
    /// The daemon: the name of its host, the path of its control socket (`daemon.control`), or its configuration file.
    /// A name is found only for daemons of this user outside a lab.
    host: String,
    #[command(subcommand)]
    verb: Verb,
    /// Print tables for people, or the daemon's answer as JSON.
    #[arg(long, default_value = "text", global = true)]
    format: Format,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Print the state of all roles, counters by reason and code, dropped packets, and troubles.
    Status,
    /// Print the bindings of a home agent: care-of addresses, lifetimes, and the SPI of each mobile node's key.
    Bindings,
    /// Print the visitors of a foreign agent: home agents, lifetimes, and the SPI of the keys.
    Visitors,
    /// Let a mobile node register: with the agent in use, or with another agent that it hears.
    Register {
        /// The address of a foreign agent or home agent that the mobile node hears.
        agent: Option<String>,
    },
    /// Let a mobile node end its registration. Prints the agent that gets the request. If the registration has ended already,
    /// another request is sent.
    Deregister,
    /// Let a mobile host move: to a base station (Cellular IP), to a place of the role `apps/roam`, or, with the address of
    /// an agent, to this agent (Mobile IP: as `register`).
    Handoff {
        /// The name of the station or place, or the address of the agent.
        to: String,
        /// Cellular IP: send on both paths for a limited time.
        #[arg(long)]
        semisoft: bool,
    },
}

/// How long to wait for the daemon's answer.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn ctl(args: &Args) -> Result<(), Failure> {
    let socket = socket_of(&args.host)?;
    let ask = |verb: &str, args: Value| ask(&socket, &Ask::Do { verb: verb.to_owned(), args });
    let table = |key: &'static str, owner: &'static str| {
        let status = ask("status", Value::Null)?;
        show::tables(&status, key).ok_or_else(|| {
            let roles: Vec<&str> = show::roles(&status).map(|(name, _)| name).collect();
            Failure::Usage(format!(
                "{}: no role has {key}; allowed: a host with a {owner}. Its roles: {}",
                args.host,
                if roles.is_empty() { "none".to_owned() } else { roles.join(", ") }
            ))
        })
    };
    let (answer, text) = match &args.verb {
        Verb::Status => {
            let status = ask("status", Value::Null)?;
            let text = show::status(&status);
            (status, text)
        }
        Verb::Bindings => table("bindings", "home agent")?,
        Verb::Visitors => table("visitors", "foreign agent")?,
        Verb::Register { agent } => {
            done(with_tables(&ask, ask("register", json!({ "agent": agent }).without_null()))?)
        }
        Verb::Deregister => done(with_tables(&ask, ask("deregister", Value::Null))?),
        Verb::Handoff { to, semisoft } => done(with_tables(&ask, hand_off(&ask, to, *semisoft))?),
    };
    print(&match args.format {
        Format::Text => text,
        Format::Json => format!("{answer:#}\n"),
    });
    Ok(())
}

fn done(answer: Value) -> (Value, String) {
    let text = show::line(&answer);
    (answer, text)
}

/// Sends the command that moves the host: to an agent of Mobile IP, if `to` is an address and a role registers; otherwise
/// that of a mobile host of Cellular IP, or of the role `apps/roam`.
fn hand_off(
    ask: &impl Fn(&str, Value) -> Result<Value, Failure>,
    to: &str,
    semisoft: bool,
) -> Result<Value, Failure> {
    if !semisoft && to.parse::<std::net::Ipv4Addr>().is_ok() {
        let registered = ask("register", json!({ "agent": to }));
        if !is_unknown_command(&registered) {
            return registered;
        }
    }
    let kind = if semisoft { "semisoft" } else { "hard" };
    let first = ask("handoff", json!({ "to": to, "kind": kind }));
    if semisoft || !is_unknown_command(&first) {
        return first;
    }
    let second = ask("move", json!({ "to": to }));
    if is_unknown_command(&second) { first } else { second }
}

/// Adds the tables of the host's status to the commands that a refusal lists: `bindings` and `visitors` are commands of
/// this program, and not of the daemon.
fn with_tables(
    ask: &impl Fn(&str, Value) -> Result<Value, Failure>,
    answer: Result<Value, Failure>,
) -> Result<Value, Failure> {
    match answer {
        Err(Failure::UnknownCommand(why)) => {
            let status = ask("status", Value::Null)?;
            let tables =
                ["bindings", "visitors"].into_iter().filter(|table| show::tables(&status, table).is_some());
            let tables = tables.collect::<Vec<_>>().join(", ");
            let more = if tables.is_empty() { String::new() } else { format!("; of its status: {tables}") };
            Err(Failure::UnknownCommand(why + &more))
        }
        other => other,
    }
}

/// Returns whether no role of the host has the command.
fn is_unknown_command(answer: &Result<Value, Failure>) -> bool {
    matches!(answer, Err(Failure::UnknownCommand(_)))
}

trait WithoutNull {
    fn without_null(self) -> Self;
}

impl WithoutNull for Value {
    /// Returns an object without the members that are null.
    fn without_null(mut self) -> Self {
        if let Self::Object(members) = &mut self {
            members.retain(|_, value| !value.is_null());
        }
        self
    }
}

/// Returns the control socket of a daemon: a path of a socket, the key `daemon.control` of a configuration file, or the
/// socket of the running daemon of this host.
fn socket_of(host: &str) -> Result<PathBuf, Failure> {
    let path = Path::new(host);
    if path.is_file() {
        return of_config(path);
    }
    if path.exists() || host.contains('/') {
        return Ok(path.to_owned());
    }
    let running = running().map_err(|error| Failure::Machine(error.to_string()))?;
    let Some(Running { control, .. }) = running.iter().find(|daemon| daemon.host == host) else {
        let names: Vec<&str> = running.iter().map(|daemon| daemon.host.as_str()).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(Failure::Usage(format!(
            "no daemon of this user runs for `{host}`; running: {names}. Allowed: the name of a running daemon's host, the path of a control socket, or a configuration file"
        )));
    };
    control.clone().ok_or_else(|| without_control(host))
}

fn of_config(path: &Path) -> Result<PathBuf, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
    let config = scenario::host_config(&name, &text).map_err(|error| Failure::Usage(error.to_string()))?;
    config.daemon.control.ok_or_else(|| without_control(&name))
}

fn without_control(daemon: &str) -> Failure {
    Failure::Usage(format!(
        "the daemon of {daemon} has no control socket; set `control` in [daemon] of its configuration, and start it again"
    ))
}

/// Sends a request, and returns the daemon's answer. A request that the daemon refuses is a usage error.
fn ask(socket: &Path, ask: &Ask) -> Result<Value, Failure> {
    let place = socket.display();
    let unreachable =
        |what: &str, error: &dyn std::fmt::Display| Failure::Machine(format!("{place}: {what}: {error}"));
    let mut stream = UnixStream::connect(socket).map_err(|error| {
        let what = "cannot connect to the daemon's control socket";
        let advice =
            "start the daemon with `wayfare node`, or give the path of its socket (`daemon.control`)";
        unreachable(what, &format!("{error}; {advice}"))
    })?;
    let patience = Some(PATIENCE);
    let bounded = stream.set_read_timeout(patience).and_then(|()| stream.set_write_timeout(patience));
    bounded.map_err(|error| unreachable("cannot wait for the daemon", &error))?;
    let request =
        serde_json::to_string(ask).map_err(|error| unreachable("cannot write the request", &error))?;
    let line = exchange(&mut stream, &format!("{request}\n")).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            Failure::Machine(format!("{place}: the daemon gave no answer within 10 s"))
        }
        // The end is noticed at either of the two steps.
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof => {
            unreachable("the daemon ended before it answered, or closed the connection", &error)
        }
        _ => unreachable("cannot ask the daemon", &error),
    })?;
    let refusal = |why: &str| format!("{place}: the daemon refused the request: {why}");
    match serde_json::from_str(&line) {
        Ok(Answer::Ok(value)) => Ok(value),
        Ok(Answer::Error(why)) => Err(Failure::Usage(refusal(&why))),
        Ok(Answer::Unknown(why)) => Err(Failure::UnknownCommand(refusal(&why))),
        Err(error) => Err(unreachable("the answer is not a daemon's", &error)),
    }
}

/// Sends a request, and returns the line that answers it.
fn exchange(stream: &mut UnixStream, request: &str) -> std::io::Result<String> {
    stream.write_all(request.as_bytes())?;
    let mut line = String::new();
    match BufReader::new(stream).read_line(&mut line)? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        _ => Ok(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    const UNKNOWN_COMMAND: &str = "no role of this host has the command";

    /// Executes a handoff at a daemon whose roles have these commands, and returns the commands that it got.
    fn commands(known: &[&str], to: &str) -> (Vec<String>, Result<Value, String>) {
        let asked = RefCell::new(Vec::new());
        let ask = |verb: &str, _: Value| {
            asked.borrow_mut().push(verb.to_owned());
            if known.contains(&verb) {
                return Ok(json!({ "home_agent": { "bindings": {} } }));
            }
            Err(Failure::UnknownCommand(format!("{UNKNOWN_COMMAND} `{verb}`; known: status")))
        };
        let answer = with_tables(&ask, hand_off(&ask, to, false));
        let answer = answer.map_err(|error| match error {
            Failure::UnknownCommand(why) => why,
            _ => String::new(),
        });
        (asked.into_inner(), answer)
    }

    #[test]
    fn a_handoff_to_an_address_is_a_registration_with_this_agent() {
        let roams = ["move", "register"];
        assert_eq!(commands(&roams, "10.2.0.1").0, ["register"]);
        assert_eq!(commands(&roams, "cafe").0, ["handoff", "move"]);
        assert_eq!(commands(&["handoff"], "10.2.0.1").0, ["register", "handoff"]);
    }

    #[test]
    fn a_refusal_lists_the_tables_of_the_status() {
        let (_, refused) = commands(&["status"], "cafe");
        assert_eq!(
            refused.unwrap_err(),
            format!("{UNKNOWN_COMMAND} `handoff`; known: status; of its status: bindings")
        );
    }

    #[test]
    fn a_daemon_that_ends_is_no_daemon_that_is_late() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("control");
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        // One daemon ends before the request, one when it has read a part of it.
        let daemon = std::thread::spawn(move || {
            drop(listener.accept().unwrap());
            let (mut stream, _) = listener.accept().unwrap();
            std::io::Read::read_exact(&mut stream, &mut [0; 5]).unwrap();
        });
        let refused = || ask(&socket, &Ask::Do { verb: "status".to_owned(), args: Value::Null });
        for refused in [refused(), refused()] {
            let Err(Failure::Machine(why)) = refused else { panic!("there was no daemon to answer") };
            assert!(why.contains("the daemon ended before it answered"), "{why}");
        }
        daemon.join().unwrap();
    }
}
