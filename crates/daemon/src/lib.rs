//! The daemon: drives one [`node::Node`] with real packets on the interfaces of its network namespace.
//!
//! The daemon runs in *Own* mode: an ingress hook keeps the kernel from receiving frames of the interfaces, and the
//! node decides about every frame. The host's own stack is behind a veth pair inside the namespace, see `host_link`.
//! All daemons of a lab have the same clock. A daemon can record events as [`trace::Record`]s.

mod acts;
mod beside;
mod buffers;
mod claim;
mod clients;
mod control;
#[cfg(test)]
mod cost_tests;
#[cfg(test)]
mod cutting_tests;
mod drops;
mod emulator_client;
mod end_of_run;
mod health;
mod heartbeat;
mod hooks;
mod host_link;
mod kernel_datagrams;
mod leftovers;
mod links;
mod measurements;
mod port;
mod receive;
mod record_file;
mod record_folder;
mod recorder;
mod refusal;
mod request_queue;
mod resources;
mod restore;
mod socket_file;
mod sockets;
mod source;
mod spec;
mod store;
mod store_thread;
#[cfg(test)]
mod testing;
mod wait;
mod waits;

use buffers::Buffers;
use claim::Claim;
use clients::Clients;
use control::{Control, Request};
use data_path::DataPath;
use drops::Drops;
use emulator_client::EmulatorClient;
use hooks::Hooks;
use host_link::{HostLink, KERNEL_SIDE};
use kernel_datagrams::KernelDatagrams;
use measurements::Measurements;
use node::{Boot, Command, CommandId, Input, Node, Outbox, StreamId, StreamOp, Value};
use os::{
    Clock, LinkWatch, Netlink, Offset, QueueWatch, Result, Signals, Timer, counters,
    descriptors::{self, Reserve},
    epoll::{self, Epoll},
    nft, set_timer_slack,
};
use port::{LinkState, Port, open_port};
use recorder::Recorder;
use request_queue::RequestQueue;
use resources::Resources;
use restore::Restore;
use sockets::Sockets;
use source::Ready;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use store_thread::StoreThread;
use trace::{HostId, Record, What};
use wire::{ClockError, Duration, Iface, Instant, WallTime};

pub use beside::try_data_path;
pub use clients::is_open_to_programs;
pub use control::{Answer, Ask};
pub use data_path::check_built as check_data_path_built;
pub use emulator_client::{EmulatorEvent, EmulatorRequest};
use heartbeat::Stalls;
pub use heartbeat::{BEAT, Heartbeat, Stall};
pub use leftovers::{LeftByDaemon, Running, clean, left_behind, running};
pub use measurements::DaemonSummary;
pub use refusal::Refusal;
pub use spec::{Interface, Spec};
pub use store::Store;
pub use waits::{Ages, Waits};

/// Bytes of the largest frame that is received: the largest datagram, which a peer's kernel may leave unsegmented,
/// with its Ethernet header.
const LARGEST: usize = 14 + 65535;
/// Number of packets of one interface, or of stored records, after which the daemon serves its other sources.
const BATCH: usize = 32;
/// After the end of the run, the daemon checks at most this many times whether the kernel's last packets have reached
/// the node. A pause of 1 ms follows each check.
const SETTLING: usize = 100;
/// Descriptors that are reserved for the end of the run: for the kernel's counters, the records and the store.
const RESERVE: usize = 8;
/// The shortest interval between two checks of the wall clock.
const WALL_WATCH: Duration = Duration::from_secs(1);

/// A command that a role has not answered yet.
struct Asked {
    /// The control connection that sent it.
    requester: u64,
    /// Whether it requests the status.
    is_status: bool,
    /// Whether the node or one of its roles has the command.
    is_known: bool,
}

struct Daemon {
    node: Node,
    out: Outbox,
    clock: Clock,
    net: Netlink,
    links: LinkWatch,
    ports: Vec<Port>,
    host: HostLink,
    /// The ingress hooks, which are installed again if they are removed; `None` in a lab, where the ledger shows the
    /// effect of a removed hook.
    hooks: Option<Hooks>,
    /// The data path in the kernel; `None` if the daemon forwards all packets.
    data_path: Option<DataPath>,
    sockets: Sockets,
    clients: Clients,
    /// The operations on streams that programs of this host request from roles.
    requests: RequestQueue<(StreamId, StreamOp)>,
    control: Control,
    radio: Option<EmulatorClient>,
    epoll: Arc<Epoll>,
    /// The ready descriptors that the last wait returned.
    tokens: Vec<epoll::Ready>,
    timer: Timer,
    /// The instant to which the timer was last set; `None` if it must be set again.
    armed: Option<Instant>,
    /// The recorder, if a file for records is configured.
    records: Option<Recorder>,
    /// The last UDP datagrams that were passed to the kernel, for the records.
    kernel_datagrams: KernelDatagrams,
    store: Option<StoreThread<Store>>,
    /// Input of the node's start, with the records found in the store.
    boot: Boot,
    /// Number of requests to store a record that came although there is no store, and are not refused yet.
    unstorable: usize,
    /// Why nothing can be stored, as last reported to the operator.
    reported_store_failure: Option<String>,
    /// The offset of the wall clock from `CLOCK_BOOTTIME`, sampled at the begin and whenever the wall clock was set.
    /// Also the instant of the last check.
    wall: (Offset, Instant),
    /// Nanoseconds by which this host's wall clock is ahead of the machine's, because of events of the scenario.
    wall_shift: i64,
    /// The error of the wall clock that the roles see. Also the instant at which its drift is passed to the node next;
    /// [`Instant::NEVER`] if there is none.
    clock_error: (ClockError, Instant),
    /// Commands that a role has not answered yet.
    asked: BTreeMap<CommandId, Asked>,
    last_command: u32,
    drops: Drops,
    buffers: Buffers,
    /// The worst lateness of a time-out that was passed to the node.
    worst_late: Duration,
    measurements: Measurements,
    /// Detects queueing disciplines and filters, which may hold packets without a record; `None` outside a lab.
    queues: Option<QueueWatch>,
    /// Descriptors that are reserved for the end of the run.
    reserve: Reserve,
    told_to_begin: bool,
    began: bool,
    ends: bool,
}

/// Runs a daemon until a signal (SIGTERM, SIGINT, SIGHUP or SIGQUIT), the request [`Ask::Stop`] or the end of its lab
/// ends it. The interfaces must exist in the calling thread's network namespace. Fails if another daemon has this
/// namespace, or if the start, the work or the end of the daemon fails. Also fails if the former state of the namespace
/// cannot be restored.
pub fn run(spec: Spec) -> Result<()> {
    let claim = Claim::take_or_refuse(spec.hold)?;
    let signals = Signals::take()?;
    let descriptors = descriptors::raise();
    let claimed = Resources::of(&spec)?;
    // A lab's namespaces end with the lab, so nothing need be undone.
    let undo = if spec.hold { None } else { Some(Restore::note(&claim, &spec)?) };
    let ended = Daemon::live(spec, claimed, descriptors, &signals);
    let put_back = undo.map_or(Ok(()), Restore::put_back);
    first_error([ended, put_back])
}

/// Returns the input of the node's start, with the records of the store.
fn boot_of(store: Option<&Store>) -> Boot {
    let mut boot = Boot::default();
    if let Some(store) = store {
        (boot.stored, boot.clean) = (store.records(), store.was_clean());
    }
    boot
}

/// Returns the first error, and prints the others to standard error.
fn first_error(done: impl IntoIterator<Item = Result<()>>) -> Result<()> {
    let mut errors = done.into_iter().filter_map(Result::err);
    let first = errors.next();
    for error in errors {
        let _ = writeln!(std::io::stderr(), "{error}");
    }
    first.map_or(Ok(()), Err)
}

impl Daemon {
    /// Takes over the interfaces, works until the daemon must end, and then finishes the records and the store.
    fn live(spec: Spec, claimed: Resources, descriptors: usize, signals: &Signals) -> Result<()> {
        let (name, hold) = (spec.name.clone(), spec.hold);
        let mut daemon = Self::take_over(spec, claimed, descriptors)?;
        daemon.attach_data_path()?;
        daemon.watch_sources(signals)?;
        let before = counters::here()?;
        let offset = Offset::sample();
        if !hold {
            os::set_realtime();
            daemon.clock = Clock::start();
            daemon.begin()?;
        }
        let worked = daemon.work(&name);
        os::set_ordinary();
        // If the work failed, there is no summary, and the store is not marked as closed cleanly. The records are
        // written in any case. A step of the end that fails does not prevent the next ones.
        let mut done = vec![worked];
        let is_orderly = done.iter().all(Result::is_ok);
        if is_orderly {
            done.push(daemon.finish(&name, &before, offset));
        }
        done.extend(daemon.records.take().map(Recorder::end));
        if is_orderly && let Some(store) = daemon.store.take().and_then(StoreThread::end) {
            done.push(store.close());
        }
        daemon.control.send_summary();
        first_error(done)
    }

    fn work(&mut self, name: &str) -> Result<()> {
        while !self.ends {
            let ready = self.wait()?;
            self.serve(ready)?;
            self.check_rest(name)?;
            self.flush_records();
        }
        Ok(())
    }

    fn take_over(spec: Spec, claimed: Resources, descriptors: usize) -> Result<Self> {
        set_timer_slack(Duration::from_micros(1))?;
        os::lock_memory();
        let mut net = Netlink::open()?;
        net.loopback_up()?;
        let host = HostLink::set_up(&mut net, &spec.addresses, &spec.tcp)?;
        let devices = spec.interfaces.iter().map(|interface| interface.name.as_str());
        let devices: Vec<&str> = devices.chain([host_link::NODE_SIDE]).collect();
        let hooks = if spec.hold { None } else { Some(Hooks::open()?) };
        // The ingress drop is installed before the interfaces are set up, so that the kernel receives no frame of an
        // interface that was down.
        nft::install_ingress_drop(&devices)?;
        let mut ports = Vec::new();
        let links = LinkWatch::open()?;
        for spec in spec.interfaces.clone() {
            ports.push(Port { socket: open_port(&spec.name)?, spec, state: LinkState::default() });
        }
        // Discard the notifications caused by the set-up. The state is read after that, so no later change is missed.
        links.changes()?;
        for port in &mut ports {
            port.state = links::link_state_of(&mut net, &port.spec.name)?;
        }
        let names: Vec<&str> = ports.iter().map(|port: &Port| port.spec.name.as_str()).collect();
        let names = [&[KERNEL_SIDE, host_link::NODE_SIDE], &names[..]].concat();
        let queues = spec.hold.then(|| QueueWatch::open(&mut net, &names)).transpose()?;
        let Resources { epoll, control, listener, store, data_path } = claimed;
        let boot = boot_of(store.as_ref());
        let radio = spec.radio.map(|(path, host)| EmulatorClient::connect(&path, host)).transpose()?;
        let measurements = Measurements::new(ports.len() + 1);
        let clients = Clients::open(&epoll, listener, spec.addresses.first().copied())?.sharing(descriptors);
        let store = store.map(StoreThread::start).transpose()?;
        // Creating the recorder empties the file. So this is done late: an earlier failure leaves the old records in
        // the file.
        let records = spec.records.as_deref().map(|at| Recorder::create(at, spec.records_at_once));
        Ok(Self {
            node: spec.node,
            out: Outbox::default(),
            // Until the run begins, the time is zero. Commands are answered already, and the time must not go back when
            // the run begins.
            clock: Clock::pending(),
            net,
            links,
            ports,
            host,
            hooks,
            data_path,
            sockets: Sockets::new(&epoll, spec.addresses.first().copied())
                .offering(spec.tcp.window)
                .sharing(descriptors),
            clients,
            requests: RequestQueue::new(),
            control,
            radio,
            epoll,
            tokens: Vec::with_capacity(epoll::BATCH),
            timer: Timer::new()?,
            armed: None,
            records: records.transpose()?,
            kernel_datagrams: KernelDatagrams::default(),
            store,
            boot,
            unstorable: 0,
            reported_store_failure: None,
            wall: (Offset::sample(), Instant::ZERO),
            wall_shift: 0,
            clock_error: (spec.clock_error, Instant::NEVER),
            asked: BTreeMap::new(),
            drops: Drops::default(),
            buffers: Buffers::new(LARGEST),
            last_command: 0,
            worst_late: Duration::ZERO,
            measurements,
            queues,
            reserve: Reserve::keep(RESERVE),
            told_to_begin: false,
            began: false,
            ends: false,
        })
    }

    fn begin(&mut self) -> Result<()> {
        self.began = true;
        self.watch_frames()?;
        let now = self.clock.now();
        self.wall = (Offset::sample(), now);
        self.clock_error.1 = self.clock_error.0.next_step(now);
        self.measurements.begin();
        self.begin_data_path();
        let heard = self.hear_emulator_before_start();
        let boot = Boot { wall: self.wall_at_zero(), ..std::mem::take(&mut self.boot) };
        self.give(now, Input::Start(&boot));
        for index in 1..=self.ports.len() {
            self.settle(Iface(index as u16));
        }
        for event in heard {
            self.emulator_reported(event);
        }
        Ok(())
    }

    /// Serves each ready source once, and passes a due time-out to the node. Before the run begins, serves only the
    /// control socket, changes of links and hooks, and the end of the link emulator.
    fn serve(&mut self, ready: Ready) -> Result<()> {
        if ready.radio_ends {
            self.end_with_lab();
        }
        if ready.control {
            for request in self.control.hear() {
                self.handle_control_request(request);
            }
        }
        if ready.timer {
            self.timer.fired()?;
            self.armed = None;
        }
        if ready.links {
            self.handle_link_changes()?;
        }
        if ready.hooks || (ready.timer && self.hooks.as_ref().is_some_and(|hooks| hooks.due().is_some())) {
            self.check_hooks();
        }
        if !self.began {
            if self.told_to_begin && self.clock.has_begun() {
                self.begin()?;
            }
            return Ok(());
        }
        self.measurements.beat(self.clock.now());
        for iface in ready.interfaces {
            self.receive(iface)?;
        }
        self.end_wait_of_data_path()?;
        self.fetch_late_packets();
        self.handle_stored();
        self.receive_datagrams(&ready.sockets);
        self.serve_clients(ready.clients);
        self.sample_sockets();
        while let Some(event) = self.radio.as_mut().filter(|_| ready.radio).and_then(EmulatorClient::hear) {
            self.emulator_reported(event);
        }
        if self.radio.as_ref().is_some_and(EmulatorClient::is_gone) {
            self.end_with_lab();
        }
        let now = self.clock.now();
        self.check_wall_clock(now);
        if let Some(due) = self.node.deadline().filter(|due| *due <= now) {
            self.worst_late = self.worst_late.max(now.since(due));
            self.ask_uses(now);
            self.give(now, Input::Timeout);
        }
        Ok(())
    }

    /// Notifies the node if the host's clock drifts, or if the wall clock was set by more than 1 ms. Checks the latter at most once per [`WALL_WATCH`]; a daemon
    /// that sleeps checks when it next wakes.
    fn check_wall_clock(&mut self, now: Instant) {
        let (error, drifts) = self.clock_error;
        if drifts <= now {
            self.clock_error.1 = error.next_step(now);
            self.give(now, Input::Wall(self.wall_at_zero()));
        }
        let (last, at) = self.wall;
        if now < at + WALL_WATCH {
            return;
        }
        self.wall = (Offset::sample(), now);
        if self.wall.0.stepped_since(last) {
            self.give(now, Input::Wall(self.wall_at_zero()));
        } else {
            self.wall.0 = last; // sampling noise must not add up
        }
    }

    /// Returns this host's wall-clock time at the clock's zero, as its clock shows it now.
    fn wall_at_zero(&self) -> WallTime {
        let WallTime(nanos) = self.clock.wall_at_zero(self.wall.0);
        let ahead = self.clock_error.0.ahead(self.clock.now());
        WallTime(nanos.saturating_add(self.wall_shift).saturating_add(ahead))
    }

    fn give(&mut self, now: Instant, input: Input<'_>) {
        self.fetch_kept(now);
        self.node.handle(now, input, &mut self.out);
        self.carry_out(now);
    }

    fn handle_control_request(&mut self, request: Request) {
        match request.ask {
            Ask::Ready => self.control.answer(request.requester, Ok(Value::None)),
            // A second zero of the clock would contradict the times that refer to the first one.
            Ask::Begin { .. } if self.began || self.told_to_begin => {
                self.control.answer(request.requester, Err("the daemon has begun already".to_owned()));
            }
            Ask::Begin { t0, end, since, wall_shift } => {
                os::set_realtime();
                self.measurements.end = end.map_or(Instant::NEVER, Instant);
                self.measurements.since = Instant(since);
                self.wall_shift = wall_shift;
                self.control.answer(request.requester, Ok(Value::None));
                self.clock = Clock { t0 };
                self.armed = None;
                self.control.is_the_labs(request.requester);
                self.told_to_begin = true;
            }
            Ask::Clock { by } => {
                self.wall_shift = self.wall_shift.saturating_add(by);
                self.control.answer(request.requester, Ok(Value::None));
                if self.began {
                    let now = self.clock.now();
                    self.give(now, Input::Wall(self.wall_at_zero()));
                }
            }
            Ask::Stop => {
                self.control.remember(request.requester);
                self.ends = true;
            }
            Ask::Do { verb, args } => {
                self.last_command += 1;
                let id = CommandId(self.last_command);
                let asked = Asked {
                    requester: request.requester,
                    is_status: verb == "status",
                    is_known: self.node.has_command(&verb),
                };
                self.asked.insert(id, asked);
                let now = self.clock.now();
                let command = Command { verb, args: trace::value_of(&args) };
                self.give(now, Input::Command(id, &command));
            }
        }
    }

    fn record(&mut self, at: Instant, what: What) {
        if let Some(records) = &mut self.records {
            records.add(Record { at, host: HostId(0), what });
        }
    }

    fn flush_records(&mut self) {
        if let Some(records) = &mut self.records {
            records.flush();
            self.report_record_failure();
        }
    }

    fn port(&self, iface: Iface) -> Option<&Port> {
        self.ports.get(usize::from(iface.0).checked_sub(1)?)
    }

    fn port_mut(&mut self, iface: Iface) -> Option<&mut Port> {
        self.ports.get_mut(usize::from(iface.0).checked_sub(1)?)
    }
}
