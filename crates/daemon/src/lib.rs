//! The daemon: drives one [`node::Node`] with real packets on the interfaces of its network namespace.
//!
//! It runs in *Own* mode: an ingress hook keeps the kernel off the interfaces, and the node decides about every
//! frame. The host's own stack is behind a veth pair inside the namespace, see [`host`]. All daemons of a lab have
//! the same clock. Events are recorded as [`trace::Record`]s.

mod acts;
mod claimed;
mod clients;
mod control;
mod drops;
mod emulator_client;
mod ends;
mod finish;
mod folder;
mod given;
mod heartbeat;
mod hooks;
mod host;
mod left_behind;
mod links;
mod receive;
mod recorder;
mod recording;
mod refusal;
mod socket_file;
mod sockets;
mod storage;
mod store;
#[cfg(test)]
mod testing;
mod troubles;
mod undo;
mod vitals;
mod waits;
mod wished;

use claimed::Claimed;
use clients::Clients;
use control::{Control, Request};
use drops::Drops;
use emulator_client::EmulatorClient;
use ends::{Claim, Signals};
use given::Given;
use hooks::Hooks;
use host::{HostLink, KERNEL_SIDE};
use links::Standing;
use node::{Boot, Command, CommandId, Input, Node, Outbox, StreamId, StreamOp, Value};
use os::{
    Attempt, Clock, LinkWatch, Netlink, Offset, Options, PacketSocket, QueueWatch, Result, TcpMetrics, Timer,
    counters,
    descriptors::{self, Reserve},
    ethtool, nft, set_timer_slack,
};
use recorder::Recorder;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use sockets::Sockets;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::os::fd::AsFd;
use std::path::PathBuf;
use storage::Storage;
use trace::{HostId, Record, What};
use undo::Undo;
use vitals::Vitals;
use wire::{Duration, Iface, Instant, Ipv4Addr, Mac, WallTime};
use wished::Wished;

pub use clients::is_open_to_programs;
pub use control::{Answer, Ask};
pub use emulator_client::{EmulatorEvent, EmulatorRequest};
use heartbeat::Stalls;
pub use heartbeat::{BEAT, Heartbeat, Stall};
pub use left_behind::{LeftByDaemon, clean, left_behind};
pub use refusal::Refusal;
pub use store::Store;
pub use vitals::DaemonSummary;
pub use waits::{Ages, Waits};

/// The configuration of a daemon.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate key")]
pub struct Spec {
    /// The host's name.
    pub name: String,
    /// Its roles and table.
    pub node: Node,
    /// Its own addresses.
    pub addresses: Vec<Ipv4Addr>,
    /// Its interfaces; number 1 is the first.
    pub interfaces: Vec<Interface>,
    /// Settings of its TCP connections.
    pub tcp: TcpMetrics,
    /// Path of the control socket.
    pub control: Option<PathBuf>,
    /// Path of the socket where programs of this host request connections through its roles.
    pub clients: Option<PathBuf>,
    /// The socket of the lab's link emulator, and this host's id there.
    pub radio: Option<(PathBuf, HostId)>,
    /// Path of the file for its records.
    pub records: Option<PathBuf>,
    /// Whether records are written while the daemon runs, because it will be killed; otherwise they are written when
    /// it ends.
    pub records_at_once: bool,
    /// Path of the database in which roles store records.
    pub store: Option<PathBuf>,
    /// Whether stored records need not survive a crash of the machine.
    pub store_without_sync: bool,
    /// Whether storing fails while the disk has no free block, even if the store has room within its file.
    pub store_needs_room: bool,
    /// Whether to wait for the command `begin` before anything happens.
    pub hold: bool,
}

impl Spec {
    fn open_store(&self) -> Result<Option<Store>> {
        let Some(path) = &self.store else { return Ok(None) };
        let mut store = Store::open(path)?;
        if self.store_without_sync {
            store = store.without_syncs()?;
        }
        Ok(Some(if self.store_needs_room { store.with_room() } else { store }))
    }
}

/// An interface that the daemon takes over.
#[derive(Clone, Debug)]
pub struct Interface {
    /// The device's name.
    pub name: String,
    /// Its link address.
    pub mac: Mac,
    /// The largest datagram that it carries, in bytes.
    pub mtu: u16,
    /// Whether it is a radio, which must tune to a cell before it carries frames.
    pub tunes: bool,
}

struct Port {
    socket: PacketSocket,
    spec: Interface,
    standing: Standing,
}

impl Port {
    /// Returns the largest datagram that is sent here, in bytes: the configured size, or the device's MTU if that is
    /// smaller.
    fn mtu(&self) -> u16 {
        self.spec.mtu.min(u16::try_from(self.standing.mtu).unwrap_or(u16::MAX))
    }
}

/// Switches a device's offloads off, sets it up, and opens a packet socket on it.
fn open_port(device: &str) -> Result<PacketSocket> {
    ethtool::offloads_off(device)?;
    host::quiet(device);
    Netlink::open()?.set_up(device, true)?;
    PacketSocket::open(device, &Options { bypass_qdisc: true, unfinished: true, ..Options::default() })
}

/// The sources that have something to read.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "one for each source that is asked only if it has something"
)]
struct Ready {
    timer: bool,
    links: bool,
    hooks: bool,
    control: bool,
    radio: bool,
    /// The link emulator has closed the connection.
    radio_ends: bool,
    interfaces: Vec<Iface>,
}

/// Bytes of the largest frame that is received: the largest datagram, which a peer's kernel may leave unsegmented,
/// with its Ethernet header.
const LARGEST: usize = 14 + 65535;
/// Frames received from one interface before the other sources are served.
const BATCH: usize = 32;
/// Milliseconds in which the kernel's last packets must reach the node after the run has ended.
const SETTLING: usize = 100;
/// Descriptors that are reserved for the end of the run: for the kernel's counters, the records and the store.
const RESERVE: usize = 8;
/// Time after which the daemon tries again to accept a client.
const REST: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// Interval of checks of the wall clock.
const WALL_WATCH: Duration = Duration::from_secs(1);

struct Daemon {
    node: Node,
    out: Outbox,
    clock: Clock,
    net: Netlink,
    links: LinkWatch,
    ports: Vec<Port>,
    host: HostLink,
    /// `None` in a lab, where the ledger shows the effect of a removed hook.
    hooks: Option<Hooks>,
    sockets: Sockets,
    clients: Clients,
    /// The requests of clients to roles.
    wished: Wished<(StreamId, StreamOp)>,
    control: Control,
    radio: Option<EmulatorClient>,
    timer: Timer,
    /// The instant to which the timer is set.
    armed: Option<Instant>,
    /// The recorder, if a file for records is configured.
    records: Option<Recorder>,
    /// The datagrams that were passed to the kernel, for the records.
    given: Given,
    storage: Option<Storage<Store>>,
    /// Input of the node's start, with the records found in the store.
    boot: Boot,
    /// Number of records that roles asked to store although there is no store.
    unstorable: usize,
    /// Why nothing can be stored, as last reported to the operator.
    complaint: Option<String>,
    /// The last sample of the wall clock, and when it was taken.
    wall: (Offset, Instant),
    /// Nanoseconds by which events of the scenario have set this host's wall clock.
    wall_shift: i64,
    /// Commands that a role has not answered yet, with their control connections.
    asked: BTreeMap<CommandId, u64>,
    last_command: u32,
    /// Those of them that ask for the status.
    asked_status: BTreeSet<CommandId>,
    drops: Drops,
    /// Buffer for one received frame.
    frame: Vec<u8>,
    /// The worst lateness of a time-out that was passed to the node.
    worst_late: Duration,
    /// Measurements of the daemon itself.
    vitals: Vitals,
    /// Detects queueing disciplines, which may hold packets without a record; only in a lab.
    queues: Option<QueueWatch>,
    /// Descriptors that are reserved for the end of the run.
    reserve: Reserve,
    told_to_begin: bool,
    began: bool,
    ends: bool,
}

/// Runs a daemon until it is stopped by a signal or a command. The namespace's interfaces must exist. Fails if another
/// daemon has the namespace, if a step of the start or the end fails, or if the former state cannot be restored.
pub fn run(spec: Spec) -> Result<()> {
    let claim = Claim::take_or_refuse(spec.hold)?;
    let signals = Signals::take()?;
    let descriptors = descriptors::raise();
    let claimed = Claimed::of(&spec)?;
    // A lab's namespace ends with its daemon, so nothing need be undone.
    let undo = if spec.hold { None } else { Some(Undo::note(&claim, &spec)?) };
    let ended = Daemon::live(spec, claimed, descriptors, &signals);
    let put_back = undo.map_or(Ok(()), Undo::put_back);
    first_error([ended, put_back])
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
    /// Runs the daemon from taking over the interfaces to the last step of its end.
    fn live(spec: Spec, claimed: Claimed, descriptors: usize, signals: &Signals) -> Result<()> {
        let (name, hold) = (spec.name.clone(), spec.hold);
        let mut daemon = Self::take_over(spec, claimed, descriptors)?;
        let before = counters::here()?;
        let offset = Offset::sample();
        if !hold {
            os::set_realtime();
            daemon.clock = Clock::start();
            daemon.begin();
        }
        let worked = daemon.work(&name, signals);
        os::set_ordinary();
        // A step that fails must not prevent the following ones.
        let mut done = vec![worked];
        let is_orderly = done.iter().all(Result::is_ok);
        if is_orderly {
            done.push(daemon.finish(&name, &before, offset));
        }
        done.extend(daemon.records.take().map(Recorder::end));
        if is_orderly && let Some(store) = daemon.storage.take().and_then(Storage::end) {
            done.push(store.close());
        }
        daemon.control.say_goodbye();
        first_error(done)
    }

    fn work(&mut self, name: &str, signals: &Signals) -> Result<()> {
        while !self.ends {
            let ready = self.wait(signals)?;
            self.serve(ready)?;
            self.check_rest(name)?;
            self.flush_records();
        }
        Ok(())
    }

    fn take_over(spec: Spec, claimed: Claimed, descriptors: usize) -> Result<Self> {
        set_timer_slack(Duration::from_micros(1))?;
        os::lock_memory();
        let mut net = Netlink::open()?;
        net.loopback_up()?;
        let host = HostLink::set_up(&mut net, &spec.addresses, &spec.tcp)?;
        let devices = spec.interfaces.iter().map(|interface| interface.name.as_str());
        let devices: Vec<&str> = devices.chain([host::NODE_SIDE]).collect();
        let hooks = if spec.hold { None } else { Some(Hooks::open()?) };
        // Install the ingress drop before setting the device up, so that the kernel receives no frame.
        nft::deafen(&devices)?;
        let mut ports = Vec::new();
        let links = LinkWatch::open()?;
        for spec in spec.interfaces.clone() {
            ports.push(Port { socket: open_port(&spec.name)?, spec, standing: Standing::default() });
        }
        // Discard the notifications caused by the set-up. Later ones are about changes after the state that is read
        // here.
        links.changes()?;
        for port in &mut ports {
            port.standing = links::standing_of(&mut net, &port.spec.name)?;
        }
        let names: Vec<&str> = ports.iter().map(|port: &Port| port.spec.name.as_str()).collect();
        let names = [&[KERNEL_SIDE, host::NODE_SIDE], &names[..]].concat();
        let queues = spec.hold.then(|| QueueWatch::open(&mut net, &names)).transpose()?;
        let Claimed { control, door, store } = claimed;
        let mut boot = Boot::default();
        if let Some(store) = &store {
            (boot.stored, boot.clean) = (store.records(), store.was_clean());
        }
        let radio = spec.radio.map(|(path, host)| EmulatorClient::connect(&path, host)).transpose()?;
        let vitals = Vitals::new(ports.len() + 1);
        let clients = Clients::open(door, spec.addresses.first().copied())?;
        let storage = store.map(Storage::start).transpose()?;
        // Last, because it empties the file: a failure before this line leaves earlier records untouched.
        let records = spec.records.as_deref().map(|at| Recorder::create(at, spec.records_at_once));
        Ok(Self {
            node: spec.node,
            out: Outbox::default(),
            clock: Clock::start(),
            net,
            links,
            ports,
            host,
            hooks,
            sockets: Sockets::new(spec.addresses.first().copied())
                .offering(spec.tcp.window)
                .sharing(descriptors),
            clients,
            wished: Wished::new(),
            control,
            radio,
            timer: Timer::new()?,
            armed: None,
            records: records.transpose()?,
            given: Given::default(),
            storage,
            boot,
            unstorable: 0,
            complaint: None,
            wall: (Offset::sample(), Instant::ZERO),
            wall_shift: 0,
            asked: BTreeMap::new(),
            asked_status: BTreeSet::new(),
            drops: Drops::default(),
            frame: vec![0; LARGEST],
            last_command: 0,
            worst_late: Duration::ZERO,
            vitals,
            queues,
            reserve: Reserve::keep(RESERVE),
            told_to_begin: false,
            began: false,
            ends: false,
        })
    }

    fn begin(&mut self) {
        self.began = true;
        let now = self.clock.now();
        self.wall = (Offset::sample(), now);
        self.vitals.begin();
        let heard = self.hear_emulator_before_start();
        let boot = Boot { wall: self.wall_at_zero(), ..std::mem::take(&mut self.boot) };
        self.give(now, Input::Start(&boot));
        for index in 1..=self.ports.len() {
            self.settle(Iface(index as u16));
        }
        for event in heard {
            self.emulator_reported(event);
        }
    }

    /// Waits until a source has something to read, and returns which. Other sources are not read, because each read
    /// is a system call.
    fn wait(&mut self, signals: &Signals) -> Result<Ready> {
        let beat = self.vitals.heartbeat.as_ref().map(Heartbeat::due);
        let hooks = self.hooks.as_ref().and_then(Hooks::due);
        let due = [self.node.deadline(), self.clients.deadline(), self.sockets.deadline(), beat, hooks]
            .into_iter()
            .flatten()
            .min();
        let due = if self.began { due.unwrap_or(Instant::NEVER) } else { Instant::ZERO };
        if (self.began || self.told_to_begin) && self.armed != Some(due) {
            self.timer.arm(self.clock, due)?;
            self.armed = Some(due);
        }
        // Frames that arrive before the begin stay in the sockets until then. The end of the link emulator is
        // reported all the same.
        let packets = if self.began { PollFlags::IN } else { PollFlags::empty() };
        let mut fds = vec![PollFd::new(&self.timer, PollFlags::IN), PollFd::new(&self.host.socket, packets)];
        fds.extend(self.ports.iter().map(|port| PollFd::new(&port.socket, packets)));
        fds.extend(self.radio.iter().map(|radio| PollFd::from_borrowed_fd(radio.as_fd(), packets)));
        let (interfaces, rim) = (self.ports.len() + 1, fds.len());
        fds.extend([PollFd::new(&self.links, PollFlags::IN), PollFd::new(signals, PollFlags::IN)]);
        fds.extend(self.hooks.iter().map(|hooks| PollFd::from_borrowed_fd(hooks.as_fd(), PollFlags::IN)));
        let watches = fds.len();
        fds.extend(self.control.fds().map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
        let inner = fds.len();
        fds.extend(self.sockets.fds().map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
        fds.extend(self.clients.fds().map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
        fds.extend(
            self.storage.iter().map(|storage| PollFd::from_borrowed_fd(storage.as_fd(), PollFlags::IN)),
        );
        let at_once = self.control.has_more() || self.storage.as_ref().is_some_and(Storage::has_more);
        let rests = self.control.rests() || self.clients.rests();
        let timeout = match (at_once, rests) {
            (true, _) => Some(Timespec::default()),
            (false, true) => Some(REST),
            (false, false) => None,
        };
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).attempt("wait on", "the daemon's sockets"),
        }
        let mut ready =
            Ready { control: self.control.has_more() || self.control.rests(), ..Ready::default() };
        for (at, fd) in (0..inner).zip(&fds).filter(|(_, fd)| !fd.revents().is_empty()) {
            match at {
                0 => ready.timer = true,
                at if at <= interfaces => ready.interfaces.push(Iface(at as u16 - 1)),
                at if at < rim => {
                    ready.radio = true;
                    ready.radio_ends = fd.revents().contains(PollFlags::HUP);
                }
                at if at == rim => ready.links = true,
                at if at == rim + 1 => self.ends = true,
                at if at < watches => ready.hooks = true,
                _ => ready.control = true,
            }
        }
        Ok(ready)
    }

    /// Serves all sources that have something to read, once.
    fn serve(&mut self, ready: Ready) -> Result<()> {
        if ready.radio_ends {
            self.lab_is_gone();
        }
        if ready.control {
            for request in self.control.hear() {
                self.obey(request);
            }
        }
        if ready.timer {
            self.timer.fired()?;
            self.armed = None;
        }
        if ready.links {
            self.hear_links()?;
        }
        if ready.hooks || (ready.timer && self.hooks.as_ref().is_some_and(|hooks| hooks.due().is_some())) {
            self.look_at_hooks();
        }
        if !self.began {
            if self.told_to_begin && self.clock.has_begun() {
                self.begin();
            }
            return Ok(());
        }
        self.vitals.beat(self.clock.now());
        for iface in ready.interfaces {
            self.receive(iface)?;
        }
        self.hear_storage();
        self.receive_datagrams();
        self.serve_clients();
        self.look_at_sockets();
        while let Some(event) = self.radio.as_mut().filter(|_| ready.radio).and_then(EmulatorClient::hear) {
            self.emulator_reported(event);
        }
        if self.radio.as_ref().is_some_and(EmulatorClient::is_gone) {
            self.lab_is_gone();
        }
        let now = self.clock.now();
        self.watch_the_wall(now);
        if let Some(due) = self.node.deadline().filter(|due| *due <= now) {
            self.worst_late = self.worst_late.max(now.since(due));
            self.give(now, Input::Timeout);
        }
        Ok(())
    }

    /// Notifies the node when the wall clock was set. A daemon that sleeps notices it when it next wakes.
    fn watch_the_wall(&mut self, now: Instant) {
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

    /// Returns this host's wall-clock time at the clock's zero.
    fn wall_at_zero(&self) -> WallTime {
        let WallTime(nanos) = self.clock.wall_at_zero(self.wall.0);
        WallTime(nanos.saturating_add(self.wall_shift))
    }

    fn give(&mut self, now: Instant, input: Input<'_>) {
        self.node.handle(now, input, &mut self.out);
        self.carry_out(now);
    }

    fn obey(&mut self, request: Request) {
        match request.ask {
            Ask::Ready => self.control.answer(request.asker, Ok(Value::None)),
            // A new zero of the clock would shift the time of everything that has happened.
            Ask::Begin { .. } if self.began || self.told_to_begin => {
                self.control.answer(request.asker, Err("it has begun already".to_owned()));
            }
            Ask::Begin { t0, end, since, wall_shift } => {
                os::set_realtime();
                self.vitals.end = end.map_or(Instant::NEVER, Instant);
                self.vitals.since = Instant(since);
                self.wall_shift = wall_shift;
                self.control.answer(request.asker, Ok(Value::None));
                self.clock = Clock { t0 };
                self.armed = None;
                self.control.is_the_labs(request.asker);
                self.told_to_begin = true;
            }
            Ask::Clock { by } => {
                self.wall_shift = self.wall_shift.saturating_add(by);
                self.control.answer(request.asker, Ok(Value::None));
                if self.began {
                    let now = self.clock.now();
                    self.give(now, Input::Wall(self.wall_at_zero()));
                }
            }
            Ask::Stop => {
                self.control.remember(request.asker);
                self.ends = true;
            }
            Ask::Do { verb, args } => {
                self.last_command += 1;
                let id = CommandId(self.last_command);
                self.asked.insert(id, request.asker);
                if verb == "status" {
                    self.asked_status.insert(id);
                }
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
            self.complain_of_records();
        }
    }

    fn port(&self, iface: Iface) -> Option<&Port> {
        self.ports.get(usize::from(iface.0).checked_sub(1)?)
    }

    fn port_mut(&mut self, iface: Iface) -> Option<&mut Port> {
        self.ports.get_mut(usize::from(iface.0).checked_sub(1)?)
    }
}
