//! Pid 1 of a lab: it sets up the namespaces, starts the daemons, carries frames, and detects daemons that stop.

use super::hosts::{self, HostOrders};
use super::programs::Programs as Workloads;
use super::report::{HostReport, WorldReport};
use super::sum_up::{sum_up, write_radio};
use super::{LinuxError, Programs, file, write};
use crate::control_run::Control;
use crate::idle::{self, Idle};
use crate::link_emulator::{DownHosts, LinkEmulator, LinkOrder, Port};
use daemon::{Answer, Ask};
use os::json_lines::{Heard, Lines};
use os::{Clock, End, EndPlace, NetNs, Netlink, Offset, PacketSocket};
use roles::RoleConfig;
use scenario::{Event, HostPlan, Plan, Scenario};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use trace::HostId;
use wire::{Duration, Iface, Mac};

/// The order for pid 1, a file in the lab's directory.
#[derive(Serialize, Deserialize)]
pub(crate) struct Order {
    name: String,
    document: String,
    seed: u64,
    wayfare: PathBuf,
    /// Whether to measure the lateness of this machine without daemons, even if the run's timing was right.
    control: bool,
    instead: Option<(String, Vec<String>)>,
}

impl Order {
    pub(crate) fn new(plan: &Plan, programs: &Programs, control: bool) -> Self {
        Self {
            name: plan.name.clone(),
            document: plan.document.clone(),
            seed: plan.seed,
            wayfare: programs.wayfare.clone(),
            control,
            instead: programs.instead.clone(),
        }
    }

    pub(crate) fn to_text(&self) -> Result<String, LinuxError> {
        toml::to_string(self)
            .map_err(|error| LinuxError::World(format!("the plan cannot be written: {error}")))
    }
}

/// A daemon, as pid 1 knows it.
pub(super) struct Daemon {
    pub(super) name: String,
    pub(super) child: Child,
    pub(super) control: PathBuf,
    pub(super) lines: Option<Lines>,
    /// Number of its outstanding answers: to the message to begin, and to changes of its clock.
    pub(super) owes: u32,
    pub(super) has_ended: bool,
    /// The offset of its wall clock from the machine's, in nanoseconds.
    pub(super) wall_shift: i64,
    pub(super) report: HostReport,
}

/// Time for a daemon to take over its interfaces.
pub(super) const READY: Duration = Duration::from_secs(10);
/// If the lab's process itself did not run for longer than this within that time, the machine may be the cause.
const LONG_PAUSE: Duration = Duration::from_secs(1);
/// Time from the message to begin until the zero of the run's clock.
const LEAD: Duration = Duration::from_millis(50);
/// Time for a daemon to write its records after the request to end: several hundred megabytes after a long run, on a
/// machine that may be busy. The death of a daemon is detected at once.
const GOODBYE: Duration = Duration::from_mins(1);
/// Time after which a daemon that is still stopped, although it was continued once, is killed: another process stops
/// it.
const HELD: Duration = Duration::from_secs(2);

/// Executes the order in `dir`. An error is written to standard output, for the parent process.
pub fn carry_out(dir: &Path) -> Result<(), LinuxError> {
    os::hide_memory();
    work(dir).inspect_err(|error| {
        // Not to a file: a full file system may be the error.
        let _ = serde_json::to_vec(&Failed::of(error)).map(|text| io::stdout().write_all(&text));
    })
}

/// Why pid 1 of the lab ended early: its message to the parent on standard output.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Failed {
    /// This machine lacks a feature.
    Lacks(String),
    /// A daemon did not begin.
    NotReady { host: String, why: String },
    /// Anything else.
    World(String),
}

impl Failed {
    fn of(error: &LinuxError) -> Self {
        match error {
            LinuxError::Machine(error) => Self::Lacks(error.to_string()),
            LinuxError::Lacks(what) => Self::Lacks(what.clone()),
            LinuxError::NotReady { host, why } => Self::NotReady { host: host.clone(), why: why.clone() },
            other => Self::World(other.to_string()),
        }
    }
}

impl From<Failed> for LinuxError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Lacks(what) => Self::Lacks(what),
            Failed::NotReady { host, why } => Self::NotReady { host, why },
            Failed::World(what) => Self::World(what),
        }
    }
}

fn work(dir: &Path) -> Result<(), LinuxError> {
    let text = super::read(&dir.join(file::PLAN))?;
    let order: Order = toml::from_str(&text).map_err(|error| LinuxError::World(error.to_string()))?;
    let plan = Scenario::plan(&order.name, &order.document, &[], order.seed)
        .map_err(|error| LinuxError::World(error.to_string()))?;
    needs(&plan)?;
    os::lock_memory();
    let ports = ports(&plan);
    let namespaces = lay_out(&plan, &ports)?;
    // The daemons connect to the radio process when they start.
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
    // First all daemons end. What they sent after the end of the run is then held by the radio process, and not lost.
    stop(&mut daemons);
    let mut carried = radio.take_stock()?;
    carried.records.extend(ordered);
    write_radio(&dir.join(file::RADIO), &carried)?;
    let mut report = WorldReport {
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

/// Returns the events of links, for the radio process.
fn link_orders(plan: &Plan) -> Vec<LinkOrder> {
    let of_link = |event: &Event| match &event.order {
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
        return Err(LinuxError::World(
            "a [tree] has more hosts than one kernel supports; it is for the simulator only".to_owned(),
        ));
    }
    let lacks = |what: &str, why: &os::Error| LinuxError::Lacks(format!("{what}: {why}"));
    PacketSocket::allowed().map_err(|why| lacks("raw sockets, which carry the frames", &why))?;
    let hands_over = |host: &&HostPlan| host.config.roles.iter().any(RoleConfig::needs_tcp_repair);
    let Some(host) = plan.hosts.iter().find(hands_over) else { return Ok(()) };
    let what = format!("TCP_REPAIR, with which `{}` moves connections", host.config.name);
    NetNs::create()?.run(os::tcp_support::tcp_repair)?.map_err(|why| lacks(&what, &why))
}

/// Returns the radio process's end of each interface.
pub fn ports(plan: &Plan) -> Vec<Port> {
    let mut ports = Vec::new();
    for (host, spec) in (0..).map(HostId).zip(&plan.hosts) {
        for (iface, port) in (1..).map(Iface).zip(&spec.ports) {
            // The name of this end is not used; the daemon's end has the configured name.
            let device = format!("p{}", port.port.0);
            ports.push(Port { port: port.port, host, iface, device });
        }
    }
    ports
}

/// Creates a network namespace for each host, and a veth pair for each interface: one end in it, one here.
pub fn lay_out(plan: &Plan, ports: &[Port]) -> Result<Vec<NetNs>, LinuxError> {
    let mut net = Netlink::open()?;
    net.loopback_up()?;
    let _ = os::namespace::sysctl("net/ipv6/conf/default/disable_ipv6", "1");
    let mut namespaces = Vec::new();
    for _ in &plan.hosts {
        let namespace = NetNs::create()?;
        // Before any interface exists, so that the kernel sends no IPv6 announcements.
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
    }
    Ok(namespaces)
}

/// What is needed to start a daemon.
#[derive(Clone, Copy)]
pub(super) struct Start<'a> {
    pub(super) plan: &'a Plan,
    order: &'a Order,
    pub(super) dir: &'a Path,
}

impl Start<'_> {
    /// Starts the daemon of a host that has restarted `life` times, in its namespace. Its output is appended to that
    /// of earlier lives.
    pub(super) fn spawn(&self, number: HostId, life: u32, namespace: &NetNs) -> Result<Child, LinuxError> {
        let Self { plan, order, dir } = *self;
        let none = || LinuxError::World(format!("there is no host {}", number.0));
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

/// Returns the host's configuration with the keys that a daemon in a lab needs.
fn daemon_text(plan: &Plan, number: u32, host: &str, dir: &Path, name: &str) -> String {
    let path = |name: &str| toml::Value::from(dir.join(name).to_string_lossy().into_owned());
    let mut text = format!("{host}\n[daemon]\n");
    let _ = writeln!(text, "control = {}", path(&file::control(name)));
    let _ = writeln!(text, "clients = {}", path(&file::clients(name)));
    let _ = writeln!(text, "radio = {}", path(file::RADIO_SOCKET));
    let _ = writeln!(text, "records = {}", path(&file::records(name)));
    if hosts::is_killed(plan, HostId(number)) {
        text.push_str("records_at_once = true\n");
    }
    let store = hosts::store(plan, HostId(number), dir, name).to_string_lossy().into_owned();
    let _ = writeln!(text, "store = {}", toml::Value::from(store));
    if hosts::has_disk(plan, HostId(number)) {
        text.push_str("store_needs_room = true\n");
    }
    let _ = writeln!(text, "number = {number}\nhold = true");
    // Daemons of a lab are killed, the machine is not: no `fsync`, which would load the disk for all processes.
    text.push_str("store_without_sync = true\n");
    text
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

/// A daemon that was started and has not reported yet that it has taken over its interfaces.
pub(super) struct Greeting {
    /// When its time limit began.
    since: Clock,
    has_asked: bool,
    /// When it was last checked.
    looked: Clock,
    /// The longest time between two checks, during which this process did not run either.
    pause: Duration,
}

impl Greeting {
    pub(super) fn new() -> Self {
        Self { since: Clock::start(), has_asked: false, looked: Clock::start(), pause: Duration::ZERO }
    }

    fn look(&mut self) {
        self.pause = self.pause.max(elapsed(self.looked));
        self.looked = Clock::start();
    }

    /// Restarts the time limit, because the daemon is stopped.
    pub(super) fn excuse(&mut self) {
        (self.since, self.looked) = (Clock::start(), Clock::start());
    }
}

/// Carries frames until the plan ends. A second thread watches the daemons and the programs, and a third one sleeps.
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
        idle.join().map_err(|_| LinuxError::World("the idle thread ended early".to_owned()))
    })
}

/// Watches the daemons. The death of a daemon ends the run. A daemon that is stopped makes the run invalid, even if
/// it is continued later.
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

fn elapsed(since: Clock) -> Duration {
    since.now().since(wire::Instant::ZERO)
}

/// A daemon's exit code if its machine lacks a feature.
const CANNOT: i32 = 3;

impl Daemon {
    /// Returns the error of a daemon that ended before it was ready, with the last line of its output.
    pub(super) fn never_ready(&self, status: std::process::ExitStatus) -> LinuxError {
        let said = std::fs::read_to_string(self.control.with_extension("log")).unwrap_or_default();
        let said = said.lines().last().unwrap_or_default().trim_start_matches("error: ");
        let name = &self.name;
        match status.code() {
            Some(CANNOT) => LinuxError::Lacks(format!("{name}: {said}")),
            _ => {
                let why = format!("the daemon ended before it was ready, {status}: {said}");
                LinuxError::NotReady { host: name.clone(), why }
            }
        }
    }

    /// Returns whether the daemon has taken over its interfaces. Asks it as soon as it listens, and never blocks. An
    /// error if it has ended, or is not ready within [`READY`].
    pub(super) fn is_ready(&mut self, greeting: &mut Greeting) -> Result<bool, LinuxError> {
        if let Ok(Some(status)) = self.child.try_wait() {
            self.has_ended = true;
            return Err(self.never_ready(status));
        }
        greeting.look();
        if elapsed(greeting.since) > READY {
            return Err(self.late(greeting.pause));
        }
        if self.lines.is_none() {
            self.lines = Lines::connect(&self.control).ok();
        }
        let Some(lines) = self.lines.as_mut() else { return Ok(false) };
        if !greeting.has_asked {
            greeting.has_asked = lines.send(&Ask::Ready).is_ok();
        }
        match lines.hear::<Answer>() {
            Heard::Message(Answer::Ok(_)) => Ok(true),
            Heard::Message(Answer::Error(why)) => Err(LinuxError::NotReady { host: self.name.clone(), why }),
            Heard::Nothing => Ok(false),
            Heard::Nonsense(_) | Heard::Gone => {
                (self.lines, greeting.has_asked) = (None, false);
                Ok(false)
            }
        }
    }

    /// Returns the error of a daemon that was not ready in time. If the lab's process itself did not run for `pause`
    /// meanwhile, the machine may be the cause.
    fn late(&self, pause: Duration) -> LinuxError {
        let what = if self.lines.is_some() {
            "the daemon is not ready"
        } else {
            "no daemon answers at its control socket"
        };
        let (host, seconds) = (self.name.clone(), READY.as_secs());
        if pause > LONG_PAUSE {
            let pause = pause.as_millis();
            return LinuxError::World(format!(
                "{host}: {what} after {seconds} s; for {pause} ms of them, the lab's own process did not run either"
            ));
        }
        LinuxError::NotReady { host, why: format!("{what}, in {seconds} s") }
    }

    /// Requests the daemon to begin. It does not wait for the answer, because a frozen daemon must not delay the radio
    /// process.
    pub(super) fn tell_to_begin(&mut self, begin: &Ask) {
        self.owes = u32::from(self.lines.as_mut().is_some_and(|lines| lines.send(begin).is_ok()));
    }

    /// Waits for the answer to [`Ask::Stop`], at most [`GOODBYE`] after `began`. An error if the daemon stays
    /// stopped.
    fn hear_the_end(&mut self, began: Clock) -> Result<Option<Answer>, String> {
        let pid = self.child.id();
        let Some(lines) = self.lines.as_mut() else { return Ok(None) };
        let mut held: Option<Clock> = None;
        while elapsed(began) < GOODBYE {
            match lines.hear() {
                Heard::Message(_) if self.owes > 0 => self.owes -= 1,
                Heard::Message(answer) => return Ok(Some(answer)),
                Heard::Nothing => os::pause(Duration::from_millis(1)),
                Heard::Nonsense(_) | Heard::Gone => return Ok(None),
            }
            match held {
                _ if !os::is_stopped(pid) && !os::is_frozen(pid) => held = None,
                None => {
                    os::resume(pid); // it may have been stopped when the run was over already
                    held = Some(Clock::start());
                }
                Some(since) if elapsed(since) >= HELD => {
                    let what = if os::is_frozen(pid) { "frozen by a control group" } else { "stopped" };
                    return Err(format!("it is {what} and could not be continued, so it was killed"));
                }
                Some(_) => {}
            }
        }
        Ok(None)
    }

    /// Waits until the daemon has ended: at most [`GOODBYE`] after `began` if it gave its summary. Otherwise it is
    /// killed at once.
    fn ended(&mut self, began: Clock) -> std::io::Result<std::process::ExitStatus> {
        if self.report.summary.is_some()
            && let Some(status) = self.wait(|| elapsed(began) < GOODBYE)?
        {
            return Ok(status);
        }
        let _ = self.child.kill();
        let killed = Clock::start();
        let still = || std::io::Error::new(std::io::ErrorKind::TimedOut, "it was killed and did not end");
        self.wait(|| elapsed(killed) < HELD)?.ok_or_else(still)
    }

    fn wait(&mut self, longer: impl Fn() -> bool) -> std::io::Result<Option<std::process::ExitStatus>> {
        loop {
            match self.child.try_wait()? {
                Some(status) => return Ok(Some(status)),
                None if !longer() => return Ok(None),
                None => os::pause(Duration::from_millis(1)),
            }
        }
    }

    /// Kills the daemon and waits until it is dead.
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        (self.lines, self.owes, self.has_ended) = (None, 0, true);
    }

    fn take_summary(&mut self, said: Option<Answer>) {
        let summary = match said {
            Some(Answer::Ok(summary)) => serde_json::from_value(summary).map_err(|error| error.to_string()),
            Some(Answer::Error(problem)) => Err(problem),
            None => Err("no answer".to_owned()),
        };
        match summary {
            Ok(summary) => self.report.summary = Some(summary),
            Err(why) => self.report.why_no_summary = Some(why),
        }
    }
}
