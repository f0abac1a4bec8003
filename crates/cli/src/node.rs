//! `wayfare node CONFIG`: runs the daemon of one host.

use crate::{Failure, measuring};
use daemon::{Interface, Spec, run};
use os::{Netlink, TcpMetrics};
use roles::{DataPathPlace, HostConfig, KeyError, RoleConfig};
use std::io::Write;
use std::path::{Path, PathBuf};
use trace::HostId;
use wire::Rng;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The configuration file of the host.
    config: PathBuf,
    /// Use interfaces in the machine's own network namespace.
    #[arg(long)]
    on_this_machine: bool,
}

pub(crate) fn node(args: &Args) -> Result<(), Failure> {
    let place = args.config.display();
    let text = std::fs::read_to_string(&args.config).map_err(|error| {
        Failure::Usage(format!("cannot read {place}: {error}; give the configuration file of a host (TOML)"))
    })?;
    let config = scenario::host_config(&place.to_string(), &text)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    metrics(&config).map_err(|KeyError { path, problem }| {
        let error = scenario::host_config_error(&place.to_string(), &text, &path, &problem);
        Failure::Usage(error.to_string())
    })?;
    if config.daemon.data_path == DataPathPlace::Kernel && config.daemon.records.is_some() {
        let problem =
            "must be \"user\" if `records` is set: packets that the kernel forwards are not recorded";
        let error = scenario::host_config_error(&place.to_string(), &text, "daemon.data_path", problem);
        return Err(Failure::Usage(error.to_string()));
    }
    let without_effect = |(index, role): (usize, &RoleConfig)| Some((index, role.without_effect()?));
    let warnings = config.roles.iter().enumerate().filter_map(without_effect).map(|(index, error)| {
        let path = format!("role[{index}].{}", error.key);
        scenario::host_config_error(&place.to_string(), &text, &path, &error.problem)
    });
    measuring::warn(warnings);
    let spec = spec(&config).map_err(|error| Failure::Usage(format!("{place}: {error}")))?;
    if !args.on_this_machine
        && os::namespace::is_machines_own().map_err(|error| Failure::Machine(error.to_string()))?
    {
        return Err(Failure::Usage(takes_over(&spec)));
    }
    of_this_machine(&config).map_err(|(path, problem)| {
        let error = scenario::host_config_error(&place.to_string(), &text, &path, &problem);
        Failure::Machine(error.to_string())
    })?;
    if config.daemon.hold {
        os::hide_memory();
    } else if scenario::has_keys(&text) {
        os::seal_memory();
        warn_of_readers(&args.config);
    }
    run(spec).map_err(|error| Failure::Machine(error.to_string()))
}

/// Checks what the configuration needs from this machine. The error contains the key whose value is not available, and
/// a text with the available values.
fn of_this_machine(config: &HostConfig) -> Result<(), (String, String)> {
    let links = Netlink::open().and_then(|mut net| net.links());
    // If the links cannot be listed, this check is left out. The daemon reports the error when it starts.
    for (index, interface) in config.interfaces.iter().enumerate() {
        let Ok(links) = &links else { break };
        if !links.iter().any(|link| link.name == interface.name) {
            let names: Vec<&str> =
                links.iter().map(|link| link.name.as_str()).filter(|name| *name != "lo").collect();
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let problem = format!(
                "this network namespace has no device `{}`; besides `lo` there are: {there}",
                interface.name
            );
            return Err((format!("interface[{index}].name"), problem));
        }
    }
    if config.daemon.data_path == DataPathPlace::Kernel {
        daemon::check_data_path_built().map_err(|why| ("daemon.data_path".to_owned(), why.to_owned()))?;
    }
    let losses = metrics(config).map(|metrics| metrics.losses).unwrap_or_default();
    if let Some(name) = losses.missing().first() {
        let problem = format!("this kernel has no `net.ipv4.{name}`; remove the key that sets it");
        return Err(("tcp".to_owned(), problem));
    }
    match &config.tcp.congestion {
        Some(name) => os::tcp_support::congestion(name).map(drop).map_err(|why| {
            let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
            let there = std::fs::read_to_string(path).unwrap_or_default().trim().replace(' ', ", ");
            (
                "tcp.congestion".to_owned(),
                format!("this kernel has no congestion control `{name}` ({why}); available: {there}"),
            )
        }),
        None => Ok(()),
    }
}

/// Warns if users other than the owner can read or change `config`, which has keys. The daemon starts all the same: the
/// owner may have given a group access to the file.
fn warn_of_readers(config: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(config).map_or(0, |file| file.permissions().mode() & 0o777);
    if mode & 0o077 != 0 {
        let place = config.display();
        let _ = writeln!(
            std::io::stderr(),
            "warning: {place} has keys, and other users can read or change it (mode {mode:04o}): `chmod 600 {place}`"
        );
    }
}

/// Returns the error for a start in the machine's own network namespace: what the daemon would change there.
fn takes_over(spec: &Spec) -> String {
    let names: Vec<&str> = spec.interfaces.iter().map(|interface| interface.name.as_str()).collect();
    let names = names.join(", ");
    let addresses: Vec<String> = spec.addresses.iter().map(ToString::to_string).collect();
    format!(
        "this is the network namespace of the machine itself, and the daemon would take it over:\n\
         - the machine's network stack receives nothing by {names} any more: an ssh connection over them ends\n\
         - offloads and IPv6 of {names} are switched off\n\
         - two interfaces are added, wf-host and wf-node, with the addresses {}\n\
         - the default route leads to wf-host, and the kernel's TCP settings are those of the configuration\n\
         The daemon undoes this when it ends; after SIGKILL, `wayfare doctor --clean` does. Start it in another network \
         namespace (`ip netns exec NAME wayfare node CONFIG`), or with --on-this-machine.",
        addresses.join(", ")
    )
}

fn spec(config: &HostConfig) -> Result<Spec, roles::NodeError> {
    let seed = config.seed.unwrap_or_else(os::entropy);
    let interfaces = config.interfaces.iter().zip(config.macs()?).map(|(interface, mac)| Interface {
        name: interface.name.clone(),
        mac,
        mtu: interface.mtu,
        tunes: interface.tunes,
    });
    let daemon = config.daemon.clone();
    let tcp = metrics(config)?;
    Ok(Spec {
        name: config.name.clone(),
        node: config.node(&Rng::new(seed).fork(&config.name))?,
        addresses: config.own_addresses()?,
        interfaces: interfaces.collect(),
        tcp,
        clock_error: config.clock.error(),
        control: daemon.control,
        clients: daemon.clients,
        radio: daemon.radio.map(|path| (path, HostId(daemon.number))),
        records: daemon.records,
        records_at_once: daemon.records_at_once,
        store: daemon.store,
        store_without_sync: daemon.store_without_sync,
        store_needs_room: daemon.store_needs_room,
        data_path_in_kernel: daemon.data_path == DataPathPlace::Kernel,
        hold: daemon.hold,
    })
}

/// Returns the settings of the kernel's TCP. Fails if the kernel cannot have a value.
fn metrics(config: &HostConfig) -> Result<TcpMetrics, KeyError> {
    let given = config.tcp.mechanisms();
    Ok(TcpMetrics {
        congestion: Some(config.tcp.congestion.clone().unwrap_or_else(|| "reno".to_owned())),
        window: config.tcp.receive_buffer,
        losses: os::TcpLosses {
            rack: given.map(|given| given.rack),
            probes: given.map(|given| given.tlp),
            forward: given.map(|given| given.frto),
            duplicates: config.tcp.dsack,
            selective: config.tcp.sack,
            timestamps: config.tcp.timestamps,
            scaling: config.tcp.window_scale,
        },
        rto_min: config.tcp.kernel_rto_min()?,
        send_buffer: config.tcp.kernel_send_buffer()?,
    })
}
