//! Starts the daemon of a host.

use super::order::Order;
use super::{LinuxError, file, write};
use os::NetNs;
use scenario::Plan;
use sim::HostEvent;
use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use trace::HostId;

/// What is needed to start a daemon.
#[derive(Clone, Copy)]
pub(super) struct Start<'a> {
    pub(super) plan: &'a Plan,
    pub(super) order: &'a Order,
    pub(super) dir: &'a Path,
}

impl Start<'_> {
    /// Starts the daemon of a host that has crashed `life` times, in the host's namespace. The daemon's output is
    /// appended to that of its predecessors.
    pub(super) fn spawn(&self, number: HostId, life: u32, namespace: &NetNs) -> Result<Child, LinuxError> {
        let Self { plan, order, dir } = *self;
        let none = || LinuxError::Lab(format!("the plan has no host with the number {}", number.0));
        let host = plan.hosts.get(number.index()).ok_or_else(none)?;
        let name = &host.config.name;
        let config = dir.join(file::config(name));
        let seed = plan.seed_of_life(life);
        let text = format!("seed = {seed}\n{}", daemon_text(plan, number.0, &host.text, dir, name));
        write(&config, &text)?;
        let log_path = dir.join(file::output(name));
        let log = File::options().append(true).create(true).open(&log_path);
        let log = log.map_err(|error| LinuxError::File(log_path, error))?;
        let mut command = match &order.instead {
            Some((host, words)) if host == name => {
                let mut command = Command::new(words.first().map_or("false", String::as_str));
                let config = config.to_string_lossy();
                command.args(words.iter().skip(1).map(|word| word.replace("{config}", &config)));
                command
            }
            _ => {
                let mut command = Command::new(&order.wayfare);
                command.arg("node").arg(&config);
                command
            }
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // A process inherits the namespace of the thread that starts it.
        let child = namespace.run(|| command.spawn())?;
        child.map_err(|error| LinuxError::File(order.wayfare.clone(), error))
    }
}

/// Returns the host's configuration with the keys that a daemon in a lab needs.
fn daemon_text(plan: &Plan, number: u32, host: &str, dir: &Path, name: &str) -> String {
    let path = |name: &str| toml::Value::from(dir.join(name).to_string_lossy().into_owned());
    let mut text = format!("{host}\n[daemon]\n");
    let _ = writeln!(text, "control = {}", path(&file::control(name)));
    let _ = writeln!(text, "clients = {}", path(&file::clients(name)));
    let _ = writeln!(text, "radio = {}", path(file::RADIO_SOCKET));
    let _ = writeln!(text, "records = {}", path(&file::records(name)));
    if is_killed(plan, HostId(number)) {
        text.push_str("records_at_once = true\n");
    }
    let store = store(plan, HostId(number), dir, name).to_string_lossy().into_owned();
    let _ = writeln!(text, "store = {}", toml::Value::from(store));
    if has_disk(plan, HostId(number)) {
        text.push_str("store_needs_room = true\n");
    }
    let _ = writeln!(text, "number = {number}\nhold = true");
    // A crash of a scenario kills the daemon and not the machine, so no `fsync` is needed. It would load the disk for
    // all processes.
    text.push_str("store_without_sync = true\n");
    text
}

/// Returns the path of a host's store. The store is on a dedicated tmpfs if an event of the scenario fills the host's
/// disk.
pub(super) fn store(plan: &Plan, host: HostId, dir: &Path, name: &str) -> PathBuf {
    if has_disk(plan, host) { disk(dir, name).join("store") } else { dir.join(file::store(name)) }
}

pub(super) fn has_disk(plan: &Plan, host: HostId) -> bool {
    plan.events.iter().any(|event| event.order == sim::Order::Host(host, HostEvent::DiskFull))
}

/// Returns whether an event kills the daemon of a host.
pub(super) fn is_killed(plan: &Plan, host: HostId) -> bool {
    plan.events.iter().any(|event| event.order == sim::Order::Host(host, HostEvent::Crash))
}

pub(super) fn disk(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.disk"))
}
