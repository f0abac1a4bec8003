//! The daemon: drives one [`node::Node`] with real packets on the interfaces of its network namespace.
//!
//! It runs in *Own* mode: the kernel is kept off the interfaces by an ingress hook, the node decides about every frame,
//! and the host's own stack hangs behind a veth pair inside the namespace, [`host`]. Time is one clock for all daemons
//! of a lab; what happens is written down as [`trace::Record`]s.

mod acts;
mod clients;
mod control;
mod finish;
mod host;
mod radio;
mod receive;
mod sockets;
mod storage;
mod vitals;
mod wished;

use crate::error::{Attempt, Result};
use crate::packet::{Options, PacketSocket};
use crate::{Clock, Netlink, Offset, Store, TcpMetrics, Timer, counters, ethtool, nft, set_timer_slack};
use clients::Clients;
use control::{Control, Request};
use host::{HostLink, KERNEL_SIDE};
use node::{Boot, Command, CommandId, Input, Link, Node, Outbox, StreamId, StreamOp, Value};
use radio::Radio;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use sockets::Sockets;
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::PathBuf;
use storage::Storage;
use trace::{HostId, Record, What};
use vitals::Vitals;
use wire::{Cell, Duration, Iface, Instant, Ipv4Addr, Mac};
use wished::Wished;

pub use clients::is_open_to_programs;
pub use control::{Answer, Ask};
pub(crate) use radio::{Told as RadioTold, Wish};
pub use vitals::{Ages, DaemonSummary, Stall};
pub(crate) use vitals::{BEAT, Heartbeat, Stalls, Waits};

/// What a daemon is made of.
#[derive(Debug)]
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
    /// Where its records go when it ends.
    pub records: Option<PathBuf>,
    /// The log of what roles store.
    pub store: Option<PathBuf>,
    /// What is stored need not survive the machine's end.
    pub store_without_sync: bool,
    /// Wait for the command `begin` before anything happens.
    pub hold: bool,
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
}

/// Where there is something for us.
#[derive(Default)]
struct Ready {
    timer: bool,
    control: bool,
    radio: bool,
    interfaces: Vec<Iface>,
}

/// Frames taken from one interface before the others have their turn.
const BATCH: usize = 32;
/// So many milliseconds the kernel's last packets have to reach the node when the run has ended.
const SETTLING: usize = 100;
/// How often the wall clock is looked at.
const WALL_WATCH: Duration = Duration::from_secs(1);

struct Daemon {
    node: Node,
    out: Outbox,
    clock: Clock,
    net: Netlink,
    ports: Vec<Port>,
    host: HostLink,
    sockets: Sockets,
    clients: Clients,
    /// What clients wish of roles.
    wished: Wished<(StreamId, StreamOp)>,
    control: Control,
    radio: Option<Radio>,
    timer: Timer,
    /// What the timer is set to.
    armed: Option<Instant>,
    /// All that happened, if somebody wants to read it in the end: it grows with every packet.
    records: Option<Vec<Record>>,
    storage: Option<Storage<Store>>,
    /// What the node is told when it begins: what was found in the store.
    boot: Boot,
    /// Records that somebody wants though there is no store.
    unstorable: usize,
    /// Why nothing can be stored, as an operator has been told.
    complaint: Option<String>,
    /// Where the wall clock stood when it was looked at last, and when that was.
    wall: (Offset, Instant),
    /// Commands that a role has not answered yet.
    asked: BTreeMap<CommandId, u64>,
    last_command: u32,
    /// The latest that a time-out was handed on.
    worst_late: Duration,
    /// What it finds out about itself.
    vitals: Vitals,
    told_to_begin: bool,
    began: bool,
    ends: bool,
}

/// Runs a daemon until it is told to stop. The namespace's interfaces must exist.
pub fn run(spec: Spec) -> Result<()> {
    let records_at = spec.records.clone();
    let name = spec.name.clone();
    let hold = spec.hold;
    let mut daemon = Daemon::take_over(spec)?;
    let before = counters::here()?;
    let offset = Offset::sample();
    if !hold {
        crate::set_realtime();
        daemon.clock = Clock::start();
        daemon.begin();
    }
    while !daemon.ends {
        let ready = daemon.wait()?;
        daemon.serve(ready)?;
        daemon.check_rest(&name)?;
    }
    crate::set_ordinary();
    daemon.finish(&name, &before, offset)?;
    if let (Some(path), Some(records)) = (records_at, &daemon.records) {
        finish::write_records(&path, records).attempt("write", path.display())?;
    }
    if let Some(store) = daemon.storage.take().and_then(Storage::end) {
        store.close()?;
    }
    daemon.control.say_goodbye();
    Ok(())
}

impl Daemon {
    fn take_over(spec: Spec) -> Result<Self> {
        set_timer_slack(Duration::from_micros(1))?;
        crate::lock_memory();
        let mut net = Netlink::open()?;
        net.loopback_up()?;
        let host = HostLink::set_up(&mut net, &spec.addresses, &spec.tcp)?;
        let mut devices: Vec<&str> =
            spec.interfaces.iter().map(|interface| interface.name.as_str()).collect();
        devices.push(host::NODE_SIDE);
        // Deaf before up: not one frame for the kernel.
        nft::deafen(&devices)?;
        let mut ports = Vec::new();
        for interface in spec.interfaces {
            ethtool::offloads_off(&interface.name)?;
            host::quiet(&interface.name);
            net.set_up(&interface.name, true)?;
            let socket =
                PacketSocket::open(&interface.name, &Options { bypass_qdisc: true, ..Options::default() })?;
            ports.push(Port { socket, spec: interface });
        }
        let store = spec.store.as_deref().map(Store::open).transpose()?;
        let store = store.map(|store| if spec.store_without_sync { store.without_syncs() } else { store });
        let mut boot = Boot::default();
        if let Some(store) = &store {
            (boot.stored, boot.clean) = (store.records(), store.was_clean());
        }
        let radio = spec.radio.map(|(path, host)| Radio::connect(&path, host)).transpose()?;
        let vitals = Vitals::new(ports.len() + 1);
        Ok(Self {
            node: spec.node,
            out: Outbox::default(),
            clock: Clock::start(),
            net,
            ports,
            host,
            sockets: Sockets::new(spec.addresses.first().copied()).offering(spec.tcp.window),
            clients: Clients::open(spec.clients.as_deref(), spec.addresses.first().copied())?,
            wished: Wished::new(),
            control: Control::open(spec.control.as_deref())?,
            radio,
            timer: Timer::new()?,
            armed: None,
            records: spec.records.is_some().then(Vec::new),
            storage: store.map(Storage::start).transpose()?,
            boot,
            unstorable: 0,
            complaint: None,
            wall: (Offset::sample(), Instant::ZERO),
            asked: BTreeMap::new(),
            last_command: 0,
            worst_late: Duration::ZERO,
            vitals,
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
        let boot = Boot { wall: self.clock.wall_at_zero(self.wall.0), ..std::mem::take(&mut self.boot) };
        self.give(now, Input::Start(&boot));
        for index in 0..self.ports.len() {
            let Some(spec) = self.ports.get(index).map(|port| port.spec.clone()) else { continue };
            if !spec.tunes {
                self.link_up(Iface(index as u16 + 1), None);
            }
        }
    }

    /// Waits until there is something for us, and says where: what is quiet is not asked, for each question is a call of
    /// the system.
    fn wait(&mut self) -> Result<Ready> {
        let beat = self.vitals.heartbeat.as_ref().map(Heartbeat::due);
        let due = [self.node.deadline(), self.clients.deadline(), beat].into_iter().flatten().min();
        let due = if self.began { due.unwrap_or(Instant::NEVER) } else { Instant::ZERO };
        if (self.began || self.told_to_begin) && self.armed != Some(due) {
            self.timer.arm(self.clock, due)?;
            self.armed = Some(due);
        }
        let mut fds =
            vec![PollFd::new(&self.timer, PollFlags::IN), PollFd::new(&self.host.socket, PollFlags::IN)];
        fds.extend(self.ports.iter().map(|port| PollFd::new(&port.socket, PollFlags::IN)));
        fds.extend(self.radio.iter().map(|radio| PollFd::from_borrowed_fd(radio.as_fd(), PollFlags::IN)));
        let (interfaces, rim) = (self.ports.len() + 1, fds.len());
        fds.extend(self.control.fds().map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
        let inner = fds.len();
        fds.extend(self.sockets.fds().map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
        fds.extend(self.clients.fds().map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
        fds.extend(
            self.storage.iter().map(|storage| PollFd::from_borrowed_fd(storage.as_fd(), PollFlags::IN)),
        );
        let at_once = self.storage.as_ref().is_some_and(Storage::has_more);
        match poll(&mut fds, at_once.then_some(&Timespec::default())) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).attempt("wait on", "the daemon's sockets"),
        }
        let mut ready = Ready::default();
        for (at, _) in (0..inner).zip(&fds).filter(|(_, fd)| !fd.revents().is_empty()) {
            match at {
                0 => ready.timer = true,
                at if at <= interfaces => ready.interfaces.push(Iface(at as u16 - 1)),
                at if at < rim => ready.radio = true,
                _ => ready.control = true,
            }
        }
        Ok(ready)
    }

    /// One round over everything that has something for us.
    fn serve(&mut self, ready: Ready) -> Result<()> {
        if ready.control {
            for request in self.control.hear() {
                self.obey(request);
            }
        }
        if ready.timer {
            self.timer.fired()?;
            self.armed = None;
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
            match told {
                radio::Told::Up { iface, cell } => self.link_up(Iface(iface), Some(Cell(cell))),
                radio::Told::Carrier { iface } => self.link_up(Iface(iface), None),
                radio::Told::Down { iface, why } => self.link_down(Iface(iface), &why),
                radio::Told::Heard { iface, cell, dbm } => {
                    let now = self.clock.now();
                    self.give(now, Input::Link(Iface(iface), Link::Heard(Cell(cell), dbm)));
                }
            }
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
            self.give(now, Input::Wall(self.clock.wall_at_zero(self.wall.0)));
        } else {
            self.wall.0 = last; // noise must not add up
        }
    }

    fn give(&mut self, now: Instant, input: Input<'_>) {
        self.node.handle(now, input, &mut self.out);
        self.carry_out(now);
    }

    fn link_up(&mut self, iface: Iface, cell: Option<Cell>) {
        let Some(spec) = self.port(iface).map(|port| port.spec.clone()) else { return };
        let now = self.clock.now();
        self.record(now, What::Up(iface, cell));
        let link = Link::Up { cell, mac: spec.mac, mtu: spec.mtu, name: &spec.name };
        self.give(now, Input::Link(iface, link));
    }

    fn link_down(&mut self, iface: Iface, why: &str) {
        let now = self.clock.now();
        self.record(now, What::Down(iface, why.to_owned().into()));
        self.give(now, Input::Link(iface, Link::Down(why)));
    }

    fn obey(&mut self, request: Request) {
        match request.ask {
            Ask::Ready => self.control.answer(request.asker, Ok(Value::None)),
            Ask::Begin { t0, end } => {
                crate::set_realtime();
                self.vitals.end = end.map_or(Instant::NEVER, Instant);
                self.control.answer(request.asker, Ok(Value::None));
                self.clock = Clock { t0 };
                self.armed = None;
                self.told_to_begin = true;
            }
            Ask::Stop => {
                self.control.remember(request.asker);
                self.ends = true;
            }
            Ask::Do { verb, args } => {
                self.last_command += 1;
                let id = CommandId(self.last_command);
                self.asked.insert(id, request.asker);
                let now = self.clock.now();
                let command = Command { verb, args: trace::value_of(&args) };
                self.give(now, Input::Command(id, &command));
            }
        }
    }

    fn record(&mut self, at: Instant, what: What) {
        if let Some(records) = &mut self.records {
            records.push(Record { at, host: HostId(0), what });
        }
    }

    fn port(&self, iface: Iface) -> Option<&Port> {
        self.ports.get(usize::from(iface.0).checked_sub(1)?)
    }
}
