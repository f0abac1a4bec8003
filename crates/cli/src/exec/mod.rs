//! `wayfare exec -- PROGRAM`: a program's connections are made through a role of this host's node.

mod program;

use crate::Failure;
use client::{Name, Policy, PolicyError};
use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library that is preloaded into the program.
const SHIM: &str = "libwayfare_shim.so";
/// The environment variable with the libraries that the dynamic linker preloads (`ld.so(8)`).
const PRELOAD: &str = "LD_PRELOAD";

/// Run a program whose TCP connections are made through a role of this host's daemon.
///
/// Only calls of connect(2) over IPv4 in the C library are redirected. Not redirected are connections of programs that
/// make system calls themselves, connections by `io_uring`, and those that begin with `sendto` (TCP Fast Open). Go
/// programs, programs that are linked statically, and programs that run with the rights of another user are rejected.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The transport, by the name under which a role of the daemon offers it.
    #[arg(long, value_name = "TRANSPORT", default_value = "indirect")]
    by: String,
    /// The daemon's socket for programs (`daemon.clients` of its configuration); the value of `WAYFARE_CLIENTS` if the
    /// option is not given.
    #[arg(long, value_name = "SOCKET")]
    daemon: Option<PathBuf>,
    /// Redirect only connections to TO, for example 10.0.0.0/8 or 10.1.0.1:80; may be repeated.
    #[arg(long, value_name = "TO")]
    only: Vec<String>,
    /// Do not redirect connections to TO; may be repeated, and has priority over --only.
    #[arg(long, value_name = "TO")]
    except: Vec<String>,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    program: Vec<OsString>,
}

pub(crate) fn exec(args: &Args) -> Result<(), Failure> {
    let by = Name::new(args.by.as_bytes()).map(|name| name.as_str().to_owned());
    let by = by.ok_or_else(|| {
        Failure::Usage(format!(
            "--by: `{}` is not a transport; allowed: 1 to {} characters of a-z, 0-9 and -",
            args.by,
            client::NAME
        ))
    })?;
    let policy = policy(&args.only, &args.except)?;
    let daemon = daemon(args.daemon.as_deref())?;
    let shim = shim()?;
    let (name, words) = args
        .program
        .split_first()
        .ok_or_else(|| Failure::Usage("the program is missing; give it after `--`".to_owned()))?;
    let program = program::find(name).ok_or_else(|| {
        Failure::Machine(format!(
            "there is no program `{}`; give the path of an executable file, or a name in PATH",
            name.display()
        ))
    })?;
    program::check(&program).map_err(|why| Failure::Machine(format!("{}: {why}", program.display())))?;
    let preload = match variable(PRELOAD) {
        Some(others) => [shim.as_os_str(), OsStr::new(":"), &others].into_iter().collect(),
        None => shim.into_os_string(),
    };
    let refused = Command::new(&program)
        .arg0(name)
        .args(words)
        .env(PRELOAD, preload)
        .env(text(client::SOCKET), daemon)
        .env(text(client::TRANSPORT), by)
        .env(text(client::POLICY), policy)
        .exec();
    Err(Failure::Machine(format!("cannot start {}: {refused}", program.display())))
}

fn policy(only: &[String], except: &[String]) -> Result<String, Failure> {
    let rules = only.iter().map(|to| format!("+{to}")).chain(except.iter().map(|to| format!("-{to}")));
    let rules: Vec<String> = rules.collect();
    let policy = rules.join(",");
    match Policy::parse(&policy) {
        Ok(_) if rules.iter().all(|rule| !rule.contains(',')) => Ok(policy),
        Err(PolicyError::TooMany) => Err(Failure::Usage(
            "--only and --except: too many destinations; at most 32 are allowed".to_owned(),
        )),
        _ => {
            let wrong = rules.iter().find(|rule| rule.contains(',') || Policy::parse(rule).is_err());
            let wrong = wrong.map(|rule| &rule[1..]).unwrap_or_default();
            let problem = format!(
                "--only, --except: `{wrong}` is not a destination; allowed: an address or prefix, for example 10.1.0.1 \
                 or 10.0.0.0/8:80"
            );
            Err(Failure::Usage(problem))
        }
    }
}

/// Returns the path of the daemon's socket. Returns an error if no daemon listens at the socket, before the program is
/// started.
fn daemon(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let path = given.map(Path::to_owned).or_else(|| variable(&text(client::SOCKET)).map(PathBuf::from));
    let path = path.ok_or_else(|| {
        Failure::Usage(
            "the socket of the daemon is missing; give it with --daemon or WAYFARE_CLIENTS".to_owned(),
        )
    })?;
    let path = std::path::absolute(&path).unwrap_or(path);
    let is_long = path.as_os_str().len() >= client::PATH;
    if is_long {
        return Err(Failure::Usage(format!(
            "{}: the path of a socket must be shorter than {} bytes",
            path.display(),
            client::PATH
        )));
    }
    match daemon::is_open_to_programs(&path) {
        Ok(()) => Ok(path),
        Err(error) => Err(Failure::Machine(error.to_string())),
    }
}

/// Finds the library to preload: beside the command, in `deps` (where Cargo puts it), or in `../lib/wayfare`.
fn shim() -> Result<PathBuf, Failure> {
    let here = std::env::current_exe()
        .map_err(|error| Failure::Machine(format!("cannot find this program's own path: {error}")))?;
    let folder = here.parent().unwrap_or(Path::new("/"));
    let places =
        [folder.join(SHIM), folder.join("deps").join(SHIM), folder.join("../lib/wayfare").join(SHIM)];
    let found = places.iter().find(|place| place.is_file()).cloned();
    found.ok_or_else(|| {
        Failure::Machine(format!(
            "{SHIM} must be in {0}, in {0}/deps or in {0}/../lib/wayfare; build the command with cargo",
            folder.display()
        ))
    })
}

fn text(name: &CStr) -> String {
    name.to_string_lossy().into_owned()
}

/// Returns an environment variable, or `None` if it is not set or is empty.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
