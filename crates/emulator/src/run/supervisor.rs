//! Pid 1 of a lab: it sets up the namespaces, starts the daemons, carries frames, and detects daemons that stop.

use super::daemon::{Daemon, Greeting};
use super::hosts::{self, HostOrders};
use super::order::Order;
use super::programs::Programs as Workloads;
use super::report::{HostReport, LinuxReport};
use super::start::Start;
use super::sum_up::{sum_up, write_radio};
use super::{LinuxError, file, write};
use crate::control_run::Control;
use crate::idle::{self, Idle};
use crate::link_emulator::{DownHosts, LinkEmulator, LinkOrder, Port};
use daemon::Ask;
use os::{Clock, End, EndPlace, NetNs, Netlink, Offset, PacketSocket};
use roles::RoleConfig;
use scenario::{HostPlan, Plan, PlannedEvent, Scenario};
use serde::{Deserialize, Serialize};
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use trace::HostId;
use wire::{Duration, Iface, Mac};

/// Time from the requests to begin until the zero of the run's clock.
const LEAD: Duration = Duration::from_millis(50);
/// The MTU of a new veth pair, in bytes: the kernel's default.
const ORDINARY_MTU: u16 = 1500;
/// Runs the plan in the lab's directory `dir`, and writes the report there. An error is returned, and is also written
/// to standard output for the parent process.
pub fn carry_out(dir: &Path) -> Result<(), LinuxError> {
    os::hide_memory();
    work(dir).inspect_err(|error| {
        // The error is not written to a file, because a full file system may be the cause.
        let _ = serde_json::to_vec(&Failed::of(error)).map(|text| io::stdout().write_all(&text));
    })
}

/// Why pid 1 of the lab ended early: its message to the parent on standard output.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Failed {
    /// This machine lacks a feature; the text names the feature.
    Lacks(String),
    /// A daemon did not become ready, and this machine is not the cause.
    NotReady { host: String, why: String },
    /// Another problem of the lab, as text.
    Lab(String),
}

impl Failed {
    fn of(error: &LinuxError) -> Self {
        match error {
            LinuxError::Machine(error) => Self::Lacks(error.to_string()),
            LinuxError::Lacks(what) => Self::Lacks(what.clone()),
            LinuxError::NotReady { host, why } => Self::NotReady { host: host.clone(), why: why.clone() },
            other => Self::Lab(other.to_string()),
        }
    }
}

impl From<Failed> for LinuxError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Lacks(what) => Self::Lacks(what),
            Failed::NotReady { host, why } => Self::NotReady { host, why },
            Failed::Lab(what) => Self::Lab(what),
        }
    }
}

fn work(dir: &Path) -> Result<(), LinuxError> {
    let text = super::read(&dir.join(file::PLAN))?;
    let order: Order = toml::from_str(&text).map_err(|error| LinuxError::Lab(error.to_string()))?;
    let plan = Scenario::plan(&order.name, &order.document, &[], order.seed)
        .map_err(|error| LinuxError::Lab(error.to_string()))?;
    needs(&plan)?;
    os::lock_memory();
    let ports = ports(&plan);
    let namespaces = lay_out(&plan, &ports)?;
    // The daemons connect to the link emulator when they start.
    let mut radio = LinkEmulator::new(plan.fabric(), ports, &dir.join(file::RADIO_SOCKET))?;
    radio.order(link_orders(&plan));
    let down = DownHosts::new(plan.hosts.len());
    radio.heed(down.clone());
    hosts::mount_disks(&plan, dir)?;
    let starter = Start { plan: &plan, order: &order, dir };
    let mut daemons = start(&starter, &namespaces)?;
    wait_until_ready(&mut daemons)?;
    let clock = Clock::ahead(LEAD);
    for daemon in &mut daemons {
        let end = Some(plan.end().0);
        daemon.tell_to_begin(&Ask::Begin { t0: clock.t0, end, since: 0, wall_shift: 0 });
    }
    let stolen_before = crate::steal_time::since_boot();
    let mut workloads = Workloads::new(&plan, &namespaces, dir);
    let mut orders = HostOrders::new(starter, &namespaces, down, clock);
    let idle = carry(&plan, clock, &mut radio, &mut daemons, &mut workloads, &mut orders)?;
    let ordered = orders.end(&mut daemons);
    let programs = workloads.end(clock.now())?;
    let stolen = crate::steal_time::since_boot().saturating_sub(stolen_before);
    // First all daemons end. What they sent after the end of the run is then held by the link emulator, and not lost.
    stop(&mut daemons);
    let mut carried = radio.take_stock()?;
    carried.records.extend(ordered);
    write_radio(&dir.join(file::RADIO), &carried)?;
    let mut report = LinuxReport {
        stolen_ms: stolen.as_millis() as u64,
        programs,
        idle,
        began_ns: clock.wall_at_zero(Offset::sample()).0,
        ..sum_up(&plan, &carried, daemons.into_iter().map(|daemon| daemon.report).collect())
    };
    if order.control || !report.timing_doubts().is_empty() {
        // No daemon runs any more. If the measurement fails, the run is still valid.
        let control = crate::control_run::measure(&dir.join(file::CONTROL_SOCKET)).ok();
        report.control = control.map(|control| Control { follows_this_run: true, ..control });
    }
    let json = serde_json::to_string_pretty(&report)
        .map_err(|error| LinuxError::File(dir.join(file::REPORT), error.into()))?;
    write(&dir.join(file::REPORT), &json)
}

/// Returns the events of links, for the link emulator.
fn link_orders(plan: &Plan) -> Vec<LinkOrder> {
    let of_link = |event: &PlannedEvent| match &event.order {
        sim::Order::Link(host, places, change) => {
            let (host, places, change) = (*host, places.clone(), *change);
            Some(LinkOrder { at: event.at, host, places, change, recorded: event.recorded.clone() })
        }
        sim::Order::Host(..) => None,
    };
    plan.events.iter().filter_map(of_link).collect()
}

/// Checks that this kernel has what the plan needs beyond links and namespaces. A run that failed in the middle would
/// look like a failure of the protocol.
fn needs(plan: &Plan) -> Result<(), LinuxError> {
    if plan.tree.is_some() {
        return Err(LinuxError::Lab(
            "a scenario with a [tree] has more hosts than one kernel supports; run it in the simulator"
                .to_owned(),
        ));
    }
    let lacks = |what: &str, why: &os::Error| LinuxError::Lacks(format!("{what}: {why}"));
    PacketSocket::allowed().map_err(|why| lacks("raw sockets, which carry the frames", &why))?;
    for HostPlan { config, .. } in &plan.hosts {
        let checked = config.tcp.kernel_rto_min().and_then(|_| config.tcp.kernel_send_buffer());
        checked.map_err(|why| LinuxError::Lacks(format!("host `{}`: {why}", config.name)))?;
    }
    let hands_over = |host: &&HostPlan| host.config.roles.iter().any(RoleConfig::needs_tcp_repair);
    let Some(host) = plan.hosts.iter().find(hands_over) else { return Ok(()) };
    let what = format!("TCP_REPAIR, with which `{}` moves connections", host.config.name);
    NetNs::create()?.run(os::tcp_support::tcp_repair)?.map_err(|why| lacks(&what, &why))
}

/// Returns the link emulator's end of each interface.
pub fn ports(plan: &Plan) -> Vec<Port> {
    let mut ports = Vec::new();
    for (host, spec) in (0..).map(HostId).zip(&plan.hosts) {
        for (iface, port) in (1..).map(Iface).zip(&spec.ports) {
            // The scenario does not name this end. The daemon's end has the name in the scenario.
            let device = format!("p{}", port.port.0);
            ports.push(Port { port: port.port, host, iface, device });
        }
    }
    ports
}

/// Creates a network namespace for each host, and a veth pair for each interface: one end in the host's namespace, the
/// other in the caller's.
pub fn lay_out(plan: &Plan, ports: &[Port]) -> Result<Vec<NetNs>, LinuxError> {
    let mut net = Netlink::open()?;
    net.loopback_up()?;
    let _ = os::namespace::sysctl("net/ipv6/conf/default/disable_ipv6", "1");
    let mut namespaces = Vec::new();
    for _ in &plan.hosts {
        let namespace = NetNs::create()?;
        // IPv6 is switched off before any interface exists, so that the kernel sends no announcements.
        namespace.run(|| {
            let _ = os::namespace::sysctl("net/ipv6/conf/default/disable_ipv6", "1");
            let _ = os::namespace::sysctl("net/ipv6/conf/all/disable_ipv6", "1");
            // A daemon detects by the ICMP error that a datagram had no socket, so the rate of errors must not be
            // limited.
            let _ = os::namespace::sysctl("net/ipv4/icmp_ratemask", "0");
        })?;
        namespaces.push(namespace);
    }
    for port in ports {
        let host = plan.hosts.get(port.host.index());
        let spec = host.and_then(|host| host.ports.get(usize::from(port.iface.0) - 1));
        let (Some(spec), Some(namespace)) = (spec, namespaces.get(port.host.index())) else {
            continue;
        };
        let [.., high, low] = port.port.0.to_be_bytes();
        let here =
            End { name: &port.device, mac: Mac([2, 0x57, 0x46, 0xfe, high, low]), place: EndPlace::Here };
        let there = End { name: &spec.name, mac: spec.mac, place: EndPlace::Fd(namespace.as_fd()) };
        net.add_veth(&here, &there)?;
        let mtu = largest(plan, port);
        if mtu > ORDINARY_MTU {
            net.set_mtu(&port.device, mtu.into())?;
            namespace.run(|| Netlink::open()?.set_mtu(&spec.name, mtu.into()))??;
        }
    }
    Ok(namespaces)
}

/// Returns the largest MTU that an interface may have in a run: that of the scenario, or of an event of the scenario.
/// The device must carry datagrams of this size. The node refuses what is larger than the MTU at that time.
fn largest(plan: &Plan, port: &Port) -> u16 {
    let host = plan.hosts.get(port.host.index());
    let own = host.and_then(|host| host.config.interfaces.get(usize::from(port.iface.0) - 1));
    let of_events = plan.events.iter().filter_map(|event| event.table.mtu);
    own.map(|own| own.mtu).into_iter().chain(of_events).max().unwrap_or(ORDINARY_MTU)
}

fn start(start: &Start<'_>, namespaces: &[NetNs]) -> Result<Vec<Daemon>, LinuxError> {
    let mut daemons = Vec::new();
    for ((number, host), namespace) in (0..).map(HostId).zip(&start.plan.hosts).zip(namespaces) {
        let name = host.config.name.clone();
        let child = start.spawn(number, 0, namespace)?;
        let report = HostReport { name: name.clone(), pid: child.id(), ..HostReport::default() };
        let control = start.dir.join(file::control(&name));
        let (lines, owes, has_ended, wall_shift) = (None, 0, false, 0);
        daemons.push(Daemon { name, child, control, lines, owes, has_ended, wall_shift, report });
    }
    Ok(daemons)
}

fn wait_until_ready(daemons: &mut [Daemon]) -> Result<(), LinuxError> {
    for daemon in daemons {
        let mut greeting = Greeting::new();
        while !daemon.is_ready(&mut greeting)? {
            os::pause(Duration::from_millis(1));
        }
    }
    Ok(())
}

/// Carries frames until the plan ends, or until the watching thread ends the run early. The watching thread executes
/// events and watches the daemons and programs. A third thread sleeps, to measure the machine's lateness.
fn carry(
    plan: &Plan,
    clock: Clock,
    radio: &mut LinkEmulator,
    daemons: &mut [Daemon],
    workloads: &mut Workloads<'_>,
    orders: &mut HostOrders<'_>,
) -> Result<Idle, LinuxError> {
    let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let end = plan.end();
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| watch(clock, daemons, workloads, orders, &stop, &over));
        let idle = scope.spawn(|| idle::sleep(clock, end, &over));
        os::set_realtime();
        let ran = radio.run(clock, end, &stop);
        os::set_ordinary();
        over.store(true, Ordering::Relaxed);
        let watched = watch.join().unwrap_or(Ok(()));
        ran?;
        watched?;
        idle.join().map_err(|_| {
            LinuxError::Lab("the thread that measures the lateness of this machine ended early".to_owned())
        })
    })
}

/// Executes the events of hosts and programs, and watches the daemons. The death of a daemon that the scenario did not
/// order ends the run. A daemon that another process stops makes the run invalid, even if it is continued later.
fn watch(
    clock: Clock,
    daemons: &mut [Daemon],
    workloads: &mut Workloads<'_>,
    orders: &mut HostOrders<'_>,
    stop: &AtomicBool,
    over: &AtomicBool,
) -> Result<(), LinuxError> {
    while !over.load(Ordering::Relaxed) {
        if let Err(error) = workloads.tend(clock.now()).and_then(|()| orders.tend(daemons, workloads)) {
            stop.store(true, Ordering::Relaxed);
            return Err(error);
        }
        for daemon in daemons.iter_mut().filter(|daemon| !daemon.has_ended) {
            while let Some(trouble) = os::state_change(daemon.child.id()) {
                if trouble.ended {
                    stop.store(true, Ordering::Relaxed);
                }
                daemon.report.exit.clone_from(&trouble.what);
                daemon.has_ended |= trouble.ended;
                daemon.report.changes.push(trouble.what);
            }
        }
        os::pause(orders.idle(Duration::from_millis(10)));
    }
    Ok(())
}

/// Requests each daemon to end, and takes their summaries. A daemon that was stopped is continued so that it can write
/// its records. Afterwards no daemon is left; the time for all of them is bounded.
fn stop(daemons: &mut [Daemon]) {
    for daemon in daemons.iter_mut().filter(|daemon| !daemon.has_ended) {
        if !daemon.report.changes.is_empty() || !daemon.report.stops.is_empty() {
            os::resume(daemon.child.id());
        }
        if let Some(lines) = &mut daemon.lines {
            let _ = lines.send(&Ask::Stop);
        }
    }
    let began = Clock::start();
    for daemon in daemons.iter_mut() {
        if daemon.has_ended {
            continue; // how it ended is known
        }
        match daemon.hear_the_end(began) {
            Ok(said) => daemon.take_summary(said),
            Err(why) => daemon.report.why_no_summary = Some(why),
        }
        let status = daemon.ended(began);
        daemon.report.ended_well = status.as_ref().is_ok_and(std::process::ExitStatus::success);
        daemon.report.exit = status.map_or_else(|error| error.to_string(), |status| status.to_string());
    }
}
