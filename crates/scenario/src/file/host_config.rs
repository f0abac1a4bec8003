//! Reads and checks the configuration of one host, for `wayfare node`. Errors have the key, and its line if the file
//! has the key.

use super::error::{ScenarioError, Source};
use super::{expand, read};
use roles::{HostConfig, KeyError, Via};
use std::path::{Path, PathBuf};
use wire::{InterfaceAddress, Ipv4Addr, Mac};

/// Reads the configuration of one host from TOML, and checks it. `file` is the name of the file in errors. Fails if
/// the text is empty or not TOML, if a key is invalid, or if no node can be built from it.
pub fn host_config(file: &str, text: &str) -> Result<HostConfig, ScenarioError> {
    if text.trim().is_empty() {
        return Err(Source::new(file, text).whole("the file is empty; docs/node.md describes its content"));
    }
    let (source, table) = read(file, text, [].iter())?;
    let config = expand::parse_config(&source, "", table)?;
    check(&config).map_err(|KeyError { path, problem }| source.at_path(&path, &problem))?;
    expand::build(&source, "", &config)?;
    Ok(config)
}

/// Returns an error with the position of the key `path` in a configuration. It is used for problems that are found only
/// on the machine, for example a missing device.
pub fn host_config_error(file: &str, text: &str, path: &str, problem: &str) -> ScenarioError {
    Source::new(file, text).at_path(path, problem)
}

/// Longest name of a network device, in bytes: Linux's `IFNAMSIZ` without the terminating zero.
const DEVICE: usize = 15;
/// Longest path of a UNIX socket, in bytes: Linux's `sun_path` without the terminating zero.
const SOCKET: usize = 107;
/// The least MTU of IPv4, in bytes (RFC 791, section 3.2).
const LEAST_MTU: u16 = 68;
/// Devices that a daemon cannot take over: the loopback device, and the devices that the daemon creates.
const RESERVED: [&str; 3] = ["lo", "wf-host", "wf-node"];

fn check(config: &HostConfig) -> Result<(), KeyError> {
    if config.name.is_empty() {
        return Err(KeyError::new("name", "the host needs a name: one character or more"));
    }
    interfaces(config)?;
    addresses(config)?;
    routes(config)?;
    files(config)
}

/// Returns the index of the first repeated element, and the index of its first occurrence. `None` if no element is
/// repeated.
fn repeated<T: PartialEq>(all: &[T]) -> Option<(usize, usize)> {
    all.iter().enumerate().find_map(|(second, one)| {
        let first = all.iter().take(second).position(|other| other == one)?;
        Some((second, first))
    })
}

fn interfaces(config: &HostConfig) -> Result<(), KeyError> {
    if config.interfaces.is_empty() {
        let problem = "there is none; allowed: one [[interface]] or more, each with `name` and `mac`";
        return Err(KeyError::new("interface", problem));
    }
    let at = |index: usize, key: &str| format!("interface[{index}].{key}");
    let names: Vec<&str> = config.interfaces.iter().map(|interface| interface.name.as_str()).collect();
    for (index, name) in names.iter().enumerate() {
        let is_wrong = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
        if name.is_empty() || name.len() > DEVICE || name.contains(is_wrong) || [".", ".."].contains(name) {
            let problem = format!(
                "`{name}` is not a device name; allowed: 1 to {DEVICE} bytes without blanks, slashes and colons"
            );
            return Err(KeyError::new(at(index, "name"), problem));
        }
        if RESERVED.contains(name) {
            let problem = format!(
                "`{name}` cannot be taken over; allowed: a device other than {}",
                RESERVED.join(", ")
            );
            return Err(KeyError::new(at(index, "name"), problem));
        }
    }
    if let Some((second, first)) = repeated(&names) {
        let problem =
            format!("`{}` is the name of interface[{first}] already; allowed: each name once", names[second]);
        return Err(KeyError::new(at(second, "name"), problem));
    }
    let macs = config.macs()?;
    if let Some(index) = macs.iter().position(|mac| mac.is_group() || *mac == Mac([0; 6])) {
        let problem = format!(
            "`{}` is not a unicast link address; allowed: an even first byte, and not all zero",
            macs[index]
        );
        return Err(KeyError::new(at(index, "mac"), problem));
    }
    if let Some((second, first)) = repeated(&macs) {
        let problem = format!(
            "`{}` is the link address of interface[{first}] already; allowed: each link address once",
            macs[second]
        );
        return Err(KeyError::new(at(second, "mac"), problem));
    }
    if let Some(index) = config.interfaces.iter().position(|interface| interface.mtu < LEAST_MTU) {
        let problem =
            format!("{} is too small; allowed: {LEAST_MTU} to 65535 bytes", config.interfaces[index].mtu);
        return Err(KeyError::new(at(index, "mtu"), problem));
    }
    Ok(())
}

fn is_one_host(address: Ipv4Addr) -> bool {
    let is_nobody = address.octets()[0] == 0 || address.is_loopback();
    !is_nobody && !address.is_multicast() && !address.is_broadcast()
}

fn addresses(config: &HostConfig) -> Result<(), KeyError> {
    const ALLOWED: &str = "allowed: a unicast host address, for example 10.1.0.7";
    if let Some(index) = config.addresses.iter().position(|address| !is_one_host(*address)) {
        let problem = format!("{} is not a unicast host address; {ALLOWED}", config.addresses[index]);
        return Err(KeyError::new(format!("addresses[{index}]"), problem));
    }
    if let Some((second, first)) = repeated(&config.addresses) {
        let problem =
            format!("{} is addresses[{first}] already; allowed: each address once", config.addresses[second]);
        return Err(KeyError::new(format!("addresses[{second}]"), problem));
    }
    let of_interfaces = config.interface_addresses()?;
    let index = |number: u16| usize::from(number).saturating_sub(1);
    for (number, given) in &of_interfaces {
        let InterfaceAddress { address, link } = *given;
        let is_whole_link = link.len() < 31 && address == link.address();
        if !is_one_host(address) || is_whole_link || given.is_broadcast(address) {
            let problem = format!("{address} is not a unicast host address in {link}; {ALLOWED}/16");
            return Err(KeyError::new(format!("interface[{}].address", index(*number)), problem));
        }
    }
    let only: Vec<Ipv4Addr> = of_interfaces.iter().map(|(_, given)| given.address).collect();
    if let Some((second, first)) = repeated(&only) {
        let [second, first] = [second, first].map(|place| index(of_interfaces[place].0));
        let problem = format!("interface[{first}] has this address already; allowed: each address once");
        return Err(KeyError::new(format!("interface[{second}].address"), problem));
    }
    Ok(())
}

fn routes(config: &HostConfig) -> Result<(), KeyError> {
    let own = config.own_addresses()?;
    let to_itself = |via: Option<Via>| matches!(via, Some(Via::Ip(router)) if own.contains(&router));
    match config.routes.iter().position(|route| to_itself(route.via)) {
        Some(index) => {
            let problem = "must be the address of a router, and not an address of this host";
            Err(KeyError::new(format!("route[{index}].via"), problem))
        }
        None => Ok(()),
    }
}

fn files(config: &HostConfig) -> Result<(), KeyError> {
    let daemon = &config.daemon;
    let given = [
        ("daemon.control", &daemon.control, true),
        ("daemon.clients", &daemon.clients, true),
        ("daemon.store", &daemon.store, false),
        ("daemon.records", &daemon.records, false),
    ];
    let given: Vec<(&str, &Path, bool)> = given
        .into_iter()
        .filter_map(|(key, path, is_socket)| Some((key, path.as_deref()?, is_socket)))
        .collect();
    for (key, path, is_socket) in &given {
        let bytes = path.as_os_str().len();
        if bytes == 0 {
            return Err(KeyError::new(*key, "the path is empty; give the path of a file, or remove the key"));
        }
        if *is_socket && bytes > SOCKET {
            let problem = format!(
                "{bytes} bytes are too long for the path of a socket; allowed: at most {SOCKET} bytes"
            );
            return Err(KeyError::new(*key, problem));
        }
    }
    let paths: Vec<PathBuf> = given.iter().map(|(_, path, _)| path.components().collect()).collect();
    match repeated(&paths) {
        Some((second, first)) => {
            let problem =
                format!("`{}` has this path too; allowed: a separate file for each key", given[first].0);
            Err(KeyError::new(given[second].0, problem))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
#[path = "host_config_tests.rs"]
mod tests;
