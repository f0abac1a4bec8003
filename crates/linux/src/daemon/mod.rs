//! The daemon: drives one [`node::Node`] with real packets on the interfaces of its network namespace.
//!
//! It runs in *Own* mode: the kernel is kept off the interfaces by an ingress hook, the node decides about every frame,
//! and the host's own stack hangs behind a veth pair inside the namespace, [`host`]. Time is one clock for all daemons
//! of a lab; what happens is written down as [`trace::Record`]s.

mod acts;
mod claimed;
mod clients;
mod control;
mod drops;
mod ends;
mod finish;
mod folder;
mod given;
mod hooks;
mod host;
mod left_behind;
mod links;
mod radio;
mod receive;
mod recorder;
mod recording;
mod socket_file;
mod sockets;
mod storage;
mod troubles;
mod undo;
mod vitals;
mod wished;

use crate::descriptors::Reserve;
use crate::error::{Attempt, Result};
use crate::packet::{Options, PacketSocket};
use crate::queue_watch::QueueWatch;
use crate::{
    Clock, LinkWatch, Netlink, Offset, Store, TcpMetrics, Timer, counters, descriptors, ethtool, nft,
    set_timer_slack,
};
use claimed::Claimed;
use clients::Clients;
use control::{Control, Request};
use drops::Drops;
use ends::{Claim, Signals};
use given::Given;
use hooks::Hooks;
use host::{HostLink, KERNEL_SIDE};
use links::Standing;
use node::{Boot, Command, CommandId, Input, Node, Outbox, StreamId, StreamOp, Value};
use radio::Radio;
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
pub use left_behind::{LeftByDaemon, clean, left_behind};
pub(crate) use radio::{Told as RadioTold, Wish};
pub use vitals::{Ages, DaemonSummary, Stall};
pub(crate) use vitals::{BEAT, Heartbeat, Stalls, Waits};

/// What a daemon is made of.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own")]
pub struct Spec {
    /// The host's name.
    pub name: String,
    /// Its roles and table.
    pub node: Node,
    /// Its own addresses.
    pub addresses: Vec<Ipv4Addr>,
    /// Its interfaces; number 1 is the first.
    pub interfaces: Vec<Interface>,
    /// What holds for its TCP connections.
    pub tcp: TcpMetrics,
    /// Where it takes commands.
    pub control: Option<PathBuf>,
    /// Where programs of this host ask for connections through its roles.
    pub clients: Option<PathBuf>,
    /// The lab's radio process, and which host we are there.
    pub radio: Option<(PathBuf, HostId)>,
    /// Where its records go.
    pub records: Option<PathBuf>,
    /// They go there while it runs, as it will be killed; else when it ends.
    pub records_at_once: bool,
    /// The database of what roles store.
    pub store: Option<PathBuf>,
    /// What is stored need not survive the machine's end.
    pub store_without_sync: bool,
    /// Nothing is stored while the disk has no free block, though the store may have room within its file.
    pub store_needs_room: bool,
    /// Wait for the command `begin` before anything happens.
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
    /// The largest datagram it takes.
    pub mtu: u16,
    /// Whether it is a radio that has to tune before it carries anything.
    pub tunes: bool,
}

struct Port {
    socket: PacketSocket,
    spec: Interface,
    standing: Standing,
}

impl Port {
    /// The largest datagram that goes out here: what is configured, or less if the device takes less.
    fn mtu(&self) -> u16 {
        self.spec.mtu.min(u16::try_from(self.standing.mtu).unwrap_or(u16::MAX))
    }
}

/// Takes the work on packets from a device, switches it on, and opens it.
fn open_port(device: &str) -> Result<PacketSocket> {
    ethtool::offloads_off(device)?;
    host::quiet(device);
    Netlink::open()?.set_up(device, true)?;
    PacketSocket::open(device, &Options { bypass_qdisc: true, unfinished: true, ..Options::default() })
}

/// Where there is something for us.
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
    /// The radio process has closed the connection.
    radio_ends: bool,
    interfaces: Vec<Iface>,
}

/// Bytes of the largest frame that is taken: the largest datagram, which a peer's kernel leaves uncut, in Ethernet.
const LARGEST: usize = 14 + 65535;
/// Frames taken from one interface before the others have their turn.
const BATCH: usize = 32;
/// So many milliseconds the kernel's last packets have to reach the node when the run has ended.
const SETTLING: usize = 100;
/// Descriptors that are kept for the end: for the kernel's counts, the records and the store.
const RESERVE: usize = 8;
/// A client that could not be accepted is tried again after this time.
const REST: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// How often the wall clock is looked at.
const WALL_WATCH: Duration = Duration::from_secs(1);

struct Daemon {
    node: Node,
    out: Outbox,
    clock: Clock,
    net: Netlink,
    links: LinkWatch,
    ports: Vec<Port>,
    host: HostLink,
    /// A lab does without: its accounts say what a hook that was removed has done.
    hooks: Option<Hooks>,
    sockets: Sockets,
    clients: Clients,
    /// What clients wish of roles.
    wished: Wished<(StreamId, StreamOp)>,
    control: Control,
    radio: Option<Radio>,
    timer: Timer,
    /// What the timer is set to.
    armed: Option<Instant>,
    /// All that happened, if a reader is named.
    records: Option<Recorder>,
    /// What the kernel was given, for the records.
    given: Given,
    storage: Option<Storage<Store>>,
    /// What the node is told when it begins: what was found in the store.
    boot: Boot,
    /// Records that somebody wants though there is no store.
    unstorable: usize,
    /// Why nothing can be stored, as an operator has been told.
    complaint: Option<String>,
    /// Where the wall clock stood when it was looked at last, and when that was.
    wall: (Offset, Instant),
    /// By how many nanoseconds events of the scenario have set this host's wall clock.
    wall_shift: i64,
    /// Commands that a role has not answered yet.
    asked: BTreeMap<CommandId, u64>,
    last_command: u32,
    /// Commands that ask for the status.
    asked_status: BTreeSet<CommandId>,
    drops: Drops,
    /// Room for one received frame.
    frame: Vec<u8>,
    /// The latest that a time-out was handed on.
    worst_late: Duration,
    /// What it finds out about itself.
    vitals: Vitals,
    /// What may hold packets up unseen; only a lab wants to know.
    queues: Option<QueueWatch>,
    /// Descriptors for the end.
    reserve: Reserve,
    told_to_begin: bool,
    began: bool,
    ends: bool,
}

/// Runs a daemon until it is told to stop. The namespace's interfaces must exist.
pub fn run(spec: Spec) -> Result<()> {
    let claim = Claim::take_or_refuse(spec.hold)?;
    let signals = Signals::take()?;
    let descriptors = descriptors::raise();
    let claimed = Claimed::of(&spec)?;
    // A lab's namespace ends with its daemon.
    let undo = if spec.hold { None } else { Some(Undo::note(&claim, &spec)?) };
    let ended = Daemon::live(spec, claimed, descriptors, &signals);
    let put_back = undo.map_or(Ok(()), Undo::put_back);
    first_error([ended, put_back])
}

/// The first error; the others are said here.
fn first_error(done: impl IntoIterator<Item = Result<()>>) -> Result<()> {
    let mut errors = done.into_iter().filter_map(Result::err);
    let first = errors.next();
    for error in errors {
        let _ = writeln!(std::io::stderr(), "{error}");
    }
    first.map_or(Ok(()), Err)
}

impl Daemon {
    /// From the taking over to the last step of the end.
    fn live(spec: Spec, claimed: Claimed, descriptors: usize, signals: &Signals) -> Result<()> {
        let (name, hold) = (spec.name.clone(), spec.hold);
        let mut daemon = Self::take_over(spec, claimed, descriptors)?;
        let before = counters::here()?;
        let offset = Offset::sample();
        if !hold {
            crate::set_realtime();
            daemon.clock = Clock::start();
            daemon.begin();
        }
        let worked = daemon.work(&name, signals);
        crate::set_ordinary();
        // One step that fails keeps no other from being done.
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
        crate::lock_memory();
        let mut net = Netlink::open()?;
        net.loopback_up()?;
        let host = HostLink::set_up(&mut net, &spec.addresses, &spec.tcp)?;
        let devices = spec.interfaces.iter().map(|interface| interface.name.as_str());
        let devices: Vec<&str> = devices.chain([host::NODE_SIDE]).collect();
        let hooks = if spec.hold { None } else { Some(Hooks::open()?) };
        // Deaf before up: not one frame for the kernel.
        nft::deafen(&devices)?;
        let mut ports = Vec::new();
        let links = LinkWatch::open()?;
        for spec in spec.interfaces.clone() {
            ports.push(Port { socket: open_port(&spec.name)?, spec, standing: Standing::default() });
        }
        // What the kernel told until now is of the setting up. What it tells from now on is behind the state that is read here.
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
        let radio = spec.radio.map(|(path, host)| Radio::connect(&path, host)).transpose()?;
        let vitals = Vitals::new(ports.len() + 1);
        let clients = Clients::open(door, spec.addresses.first().copied())?;
        let storage = store.map(Storage::start).transpose()?;
        // At last: whatever failed until here has cost nobody earlier records.
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
        let heard = self.hear_radio_before_start();
        let boot = Boot { wall: self.wall_at_zero(), ..std::mem::take(&mut self.boot) };
        self.give(now, Input::Start(&boot));
        for index in 1..=self.ports.len() {
            self.settle(Iface(index as u16));
        }
        for told in heard {
            self.radio_told(told);
        }
    }

    /// Waits until there is something for us, and says where: what is quiet is not asked, for each question is a call of
    /// the system.
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
        // What comes before the beginning is left where it is until then. The end of the radio is told all the same.
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

    /// One round over everything that has something for us.
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
        while let Some(told) = self.radio.as_mut().filter(|_| ready.radio).and_then(Radio::hear) {
            self.radio_told(told);
        }
        if self.radio.as_ref().is_some_and(Radio::is_gone) {
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

    /// Tells the node when somebody has set the wall clock. A daemon that sleeps notices when it next wakes.
    fn watch_the_wall(&mut self, now: Instant) {
        let (last, at) = self.wall;
        if now < at + WALL_WATCH {
            return;
        }
        self.wall = (Offset::sample(), now);
        if self.wall.0.stepped_since(last) {
            self.give(now, Input::Wall(self.wall_at_zero()));
        } else {
            self.wall.0 = last; // noise must not add up
        }
    }

    /// What this host believes the time of day to have been at the clock's zero.
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
            // A clock that is set anew would move all that has happened.
            Ask::Begin { .. } if self.began || self.told_to_begin => {
                self.control.answer(request.asker, Err("it has begun already".to_owned()));
            }
            Ask::Begin { t0, end, since, wall_shift } => {
                crate::set_realtime();
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
