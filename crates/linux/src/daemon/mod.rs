//! The daemon: drives one [`node::Node`] with real packets on the interfaces of its network namespace.
//!
//! It runs in *Own* mode: the kernel is kept off the interfaces by an ingress hook, the node decides about every frame,
//! and the host's own stack hangs behind a veth pair inside the namespace, [`host`]. Time is one clock for all daemons
//! of a lab; what happens is written down as [`trace::Record`]s.

mod clients;
mod control;
mod host;
mod radio;
mod sockets;
mod storage;
mod vitals;
mod wished;

use crate::error::{Attempt, Result};
use crate::packet::{Options, PacketSocket};
use crate::{Clock, Netlink, Offset, Store, TcpMetrics, Timer, counters, ethtool, nft, set_timer_slack};
use clients::{Clients, Wishes};
use control::{Control, Request};
use host::{HostLink, KERNEL_SIDE};
use node::stream::Told;
use node::{
    Act, Boot, Command, CommandId, Fault, Input, Link, Node, Outbox, StreamId, StreamOp, Undone, Value,
};
use radio::Radio;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use sockets::{Done, Screened, Sockets};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::PathBuf;
use storage::Storage;
use trace::{HostId, Record, What};
use vitals::Vitals;
use wire::{Cell, Duration, Iface, Instant, Ipv4Addr, Mac, Packet, PacketId, Reason, ethernet, identity};
use wished::Wished;

pub use clients::is_open_to_programs;
pub use control::{Answer, Ask};
pub(crate) use radio::{Told as RadioTold, Wish};
pub use vitals::{Ages, DaemonSummary, Stall};
pub(crate) use vitals::{BEAT, Heartbeat, Waits};

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
        daemon.clock = Clock::start();
        daemon.begin();
    }
    while !daemon.ends {
        let ready = daemon.wait()?;
        daemon.serve(ready)?;
        daemon.check_rest(&name)?;
    }
    daemon.finish(&name, &before, offset)?;
    if let (Some(path), Some(records)) = (records_at, &daemon.records) {
        write_records(&path, records).attempt("write", path.display())?;
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
        crate::hasten();
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
        self.vitals.begin(now);
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
        let beat = self.vitals.heartbeat.map(|heartbeat| heartbeat.due());
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

    /// Takes what has come on an interface, up to [`BATCH`] frames, or until a time-out is due: a burst of frames that each
    /// take a sync of the disk holds up nothing but itself. Says whether there may be more.
    fn receive(&mut self, iface: Iface) -> Result<bool> {
        let mut frame = [0; 2048];
        for _ in 0..BATCH {
            let socket = match self.port(iface) {
                Some(port) => &port.socket,
                None => &self.host.socket,
            };
            let received = match socket.receive(&mut frame) {
                Ok(Some(received)) => received,
                Ok(None) => return Ok(false),
                Err(error) if error.errno() == Some(libc::ENETDOWN) && iface != Iface::HOST => {
                    self.lose_interface(iface);
                    return Ok(false);
                }
                Err(error) => return Err(error),
            };
            let stamp = self.clock.instant(received.at, self.wall.0);
            self.vitals.took(self.clock, usize::from(iface.0), stamp);
            self.take_frame(iface, frame.get(..received.len).unwrap_or_default());
            self.vitals.finished(self.clock, stamp);
            if self.node.deadline().is_some_and(|due| due <= self.clock.now()) {
                break;
            }
        }
        Ok(true)
    }

    fn take_frame(&mut self, iface: Iface, frame: &[u8]) {
        let Ok((link, bytes)) = ethernet::parse(frame) else { return };
        let packet = Packet { link, id: identity(bytes), bytes: bytes.to_vec() };
        let now = self.clock.now();
        if iface == Iface::HOST && self.is_a_clients(&packet) {
            return;
        }
        self.record(now, What::Received(iface, packet.clone()));
        if iface == Iface::HOST
            && let Some(reason) = self.sockets.screen_out(&packet.bytes)
        {
            self.record(now, What::Dropped(iface, packet.id, reason.0.into()));
            return;
        }
        self.node.receive(now, iface, packet, &mut self.out);
        self.carry_out(now);
    }

    /// The kernel reports once that an interface went down: its driver did that, or an operator.
    fn lose_interface(&mut self, iface: Iface) {
        let Some(name) = self.port(iface).map(|port| port.spec.name.clone()) else { return };
        self.vitals.lost_interfaces.push(name);
        self.link_down(iface, "interface_down");
    }

    fn receive_datagrams(&mut self) {
        let (told, lost) = self.sockets.receive();
        self.tell(told);
        let now = self.clock.now();
        for (packet, reason) in lost {
            self.record(now, What::Lost(Iface::HOST, packet, reason.0.into()));
        }
    }

    fn look_at_sockets(&mut self) {
        if self.records.is_some() {
            let now = self.clock.now();
            for mark in self.sockets.look(now) {
                self.record(now, What::Marked(mark));
            }
        }
    }

    fn serve_clients(&mut self) {
        let (now, node, mut wishes) = (self.clock.now(), &self.node, Wishes::default());
        self.clients.serve(now, &|name| node.transport(name), &mut wishes);
        self.fulfil(wishes);
    }

    /// Whether a packet of this host's is on a connection that a role carries for a program.
    fn is_a_clients(&mut self, packet: &Packet) -> bool {
        let mut wishes = Wishes::default();
        let is_taken = self.clients.takes(&packet.bytes, &mut wishes);
        self.fulfil(wishes);
        is_taken
    }

    fn fulfil(&mut self, wishes: Wishes) {
        self.note(wishes);
        self.fulfil_all();
    }

    fn note(&mut self, wishes: Wishes) {
        for bytes in wishes.datagrams {
            let _ = self.give_to_kernel(&bytes); // as on any way, what is lost is sent again
        }
        self.wished.extend(wishes.ops);
    }

    /// A datagram for the host's own stack.
    fn give_to_kernel(&mut self, bytes: &[u8]) -> Result<()> {
        self.host.send(bytes)?;
        self.vitals.given_to_kernel += 1;
        Ok(())
    }

    fn fulfil_all(&mut self) {
        while let Some((id, op)) = self.wished.next() {
            let now = self.clock.now();
            self.give(now, Input::Serve(id, op));
            self.clients.asked(id);
            self.wished.done();
        }
    }

    fn give(&mut self, now: Instant, input: Input<'_>) {
        self.node.handle(now, input, &mut self.out);
        self.carry_out(now);
    }

    fn tell(&mut self, told: Vec<Told>) {
        for told in told {
            let now = self.clock.now();
            if let Some(handed) = What::handed(&told, &self.node) {
                self.record(now, handed);
            }
            let (id, event) = told.event();
            self.give(now, Input::Stream(id, event));
        }
    }

    fn carry_out(&mut self, now: Instant) {
        self.carry_out_acts(now);
        while std::mem::take(&mut self.unstorable) > 0 {
            self.refuse_records(now, "this daemon has no store; give it one with daemon.store");
            self.carry_out_acts(now);
        }
    }

    /// An error if a role of this host did not come to rest: what it does from then on is not its protocol.
    fn check_rest(&mut self, host: &str) -> Result<()> {
        let Some(role) = self.out.take_runaway() else { return Ok(()) };
        let role = self.node.role_name(role);
        let why = format!("its role `{role}` did not come to rest within one step");
        Err(std::io::Error::other(why)).attempt("continue", format_args!("host {host}"))
    }

    /// What waited for records goes on, or is taken back: up to [`BATCH`] records, or until a time-out is due.
    fn hear_storage(&mut self) {
        for _ in 0..BATCH {
            let Some(storage) = &mut self.storage else { return };
            let now = self.clock.now();
            if storage.durable(1) > 0 {
                self.complain(None);
                self.node.resume(now, 1, &mut self.out);
            } else if let Some(why) = storage.failure() {
                self.refuse_records(now, &why);
            } else {
                return;
            }
            self.carry_out(now);
            if self.node.deadline().is_some_and(|due| due <= self.clock.now()) {
                return;
            }
        }
    }

    fn refuse_records(&mut self, now: Instant, why: &str) {
        self.complain(Some(why));
        self.node.withdraw(now, why, &mut self.out);
    }

    fn carry_out_acts(&mut self, now: Instant) {
        let (mut told, mut wishes) = (Vec::new(), Wishes::default());
        while let Some((role, act)) = self.out.next_act() {
            match act {
                Act::Transmit(iface, packet) => self.transmit(now, iface, packet),
                Act::Drop(iface, packet, reason) => {
                    let id = named(&packet);
                    self.record(now, What::Dropped(iface, id, reason.0.into()));
                }
                Act::Tune(iface, cell) => {
                    self.record(now, What::Tuned(iface, cell));
                    if !self.radio.as_mut().is_some_and(|radio| radio.tune(now, iface, cell)) {
                        self.link_down(iface, Link::UNSUPPORTED);
                    }
                }
                Act::Visit(iface, cell, packet) => self.visit(now, iface, cell, packet),
                Act::Stream(id, op) => {
                    if let Some(asked) = What::asked(id, &op, &self.node) {
                        self.record(now, asked);
                    }
                    let done = self.sockets.operate(id, op, &mut told);
                    self.operated(now, done);
                }
                Act::Served(told) => self.clients.told(now, told, &mut wishes),
                Act::Mark(mark) => self.record(now, What::Marked(mark)),
                Act::Answer(id, answer) => {
                    self.record(now, What::Answered(answer.clone()));
                    if let Some(asker) = self.asked.remove(&id) {
                        self.control.answer(asker, answer);
                    }
                }
                Act::Address(iface, address, is_added) => {
                    let changed = self.host.change_address(&mut self.net, address.address, is_added);
                    if let Err(error) = changed {
                        let (undone, why) = (Undone::Address(iface, address), error.to_string());
                        self.give(now, Input::Failed(&Fault { role, undone, why }));
                    }
                }
                Act::Store(key, value) => match &mut self.storage {
                    Some(storage) => storage.ask(key, value),
                    None => self.unstorable += 1,
                },
                Act::Handed(event) => self.record(now, What::App(event)),
                // No data path but the node's own table yet, and it answers ARP itself.
                Act::Route(..) | Act::Gate(..) | Act::Neighbor(..) => {}
            }
        }
        self.note(wishes);
        if !told.is_empty() {
            self.tell(told);
        }
        self.fulfil_all();
    }

    fn operated(&mut self, now: Instant, done: Done) {
        if let Some((packet, refused)) = done.sent {
            self.record(now, What::AppSent(packet));
            if let Some(reason) = refused {
                self.record(now, What::Lost(Iface::HOST, packet, reason.into()));
            }
        }
        for (packet, bytes) in done.released {
            if let Err(error) = self.give_to_kernel(&bytes) {
                self.record(now, What::Lost(Iface::HOST, packet, refusal(&error).into()));
            }
        }
        for (packet, reason, answer) in done.ended {
            self.end_at_the_door(now, packet, reason, answer);
        }
    }

    /// A segment that the kernel is not to see, and what answers it.
    fn end_at_the_door(&mut self, now: Instant, packet: PacketId, reason: Reason, answer: Option<Vec<u8>>) {
        self.record(now, What::Lost(Iface::HOST, packet, reason.0.into()));
        if let Some(bytes) = answer {
            let answer = Packet { id: identity(&bytes), ..Packet::new(Mac::ZERO, bytes) };
            self.record(now, What::Received(Iface::HOST, answer.clone()));
            self.node.receive(now, Iface::HOST, answer, &mut self.out);
        }
    }

    /// Segments of a connection that is on its way to another host, or from one, do not reach the kernel. Says whether
    /// this is one.
    fn screened(&mut self, now: Instant, packet: &Packet) -> bool {
        match self.sockets.screen_in(packet.id, &packet.bytes) {
            Screened::Passes => return false,
            Screened::Held => self.record(now, What::Sent(Iface::HOST, packet.clone())),
            Screened::Ends(reason, answer) => {
                self.record(now, What::Sent(Iface::HOST, packet.clone()));
                self.end_at_the_door(now, packet.id, reason, answer);
            }
        }
        true
    }

    /// Tells an operator that nothing can be stored, and when it can again: once, however often that is tried.
    fn complain(&mut self, why: Option<&str>) {
        if why.is_some() == self.complaint.is_some() {
            return;
        }
        self.complaint = why.map(str::to_owned);
        // Nobody may be listening; that is no reason to end.
        let _ = match why {
            Some(why) => writeln!(std::io::stderr(), "cannot store, so what needs it is refused: {why}"),
            None => writeln!(std::io::stderr(), "can store again"),
        };
    }

    fn transmit(&mut self, now: Instant, iface: Iface, mut packet: Packet) {
        packet.id = named(&packet);
        if iface == Iface::HOST && self.screened(now, &packet) {
            return;
        }
        let sent = match self.port(iface) {
            Some(port) => port.socket.send(&ethernet::emit(&packet.link, &packet.bytes)),
            None => self.give_to_kernel(&packet.bytes),
        };
        let id = packet.id;
        self.record(now, What::Sent(iface, packet));
        if let Err(error) = sent {
            self.record(now, What::Lost(iface, id, refusal(&error).into()));
        }
    }

    fn visit(&mut self, now: Instant, iface: Iface, cell: Cell, mut packet: Packet) {
        packet.id = named(&packet);
        if let Some(port) = self.port(iface) {
            packet.link.src = port.spec.mac;
        }
        let frame = ethernet::emit(&packet.link, &packet.bytes);
        let id = packet.id;
        self.record(now, What::Visited(iface, cell));
        self.record(now, What::Sent(iface, packet));
        if !self.radio.as_mut().is_some_and(|radio| radio.visit(now, iface, cell, &frame)) {
            self.record(now, What::Lost(iface, id, "radio_unsupported".into()));
        }
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

    /// Takes what the kernel still has for us, asks every queue what it holds, and sums up for who asked us to stop.
    fn finish(&mut self, name: &str, before: &counters::Counters, offset: Offset) -> Result<()> {
        for iface in 0..=self.ports.len() {
            while self.receive(Iface(iface as u16))? {}
        }
        self.receive_datagrams();
        while let Some(storage) = self.storage.as_ref().filter(|storage| storage.is_busy()) {
            if !storage.has_more() {
                poll(&mut [PollFd::new(storage, PollFlags::IN)], None).attempt("wait on", "the store")?;
            }
            self.hear_storage();
        }
        let now = self.clock.now();
        let mut held: Vec<(Option<Iface>, PacketId)> = Vec::new();
        self.node.holds(&mut |packet| held.push((None, packet)));
        self.sockets.holds(&mut |packet| held.push((Some(Iface::HOST), packet)));
        for (iface, packet) in held {
            self.record(now, What::Held(iface, packet));
        }
        let mut drops = u64::from(self.host.socket.statistics()?.drops);
        for port in &self.ports {
            drops += u64::from(port.socket.statistics().map_or(0, |statistics| statistics.drops));
        }
        let counters = self.settled_counters(before)?;
        self.control.summary = serde_json::to_value(self.summary(name, counters, drops, offset))
            .map_err(std::io::Error::from)
            .attempt("write", "the summary")?;
        Ok(())
    }

    /// What the kernel counted, when all that it sent has come here: what it sent last may be on its way.
    fn settled_counters(&mut self, before: &counters::Counters) -> Result<counters::Counters> {
        for _ in 0..SETTLING {
            let counted = counters::since(before, &counters::here()?);
            let taken = self.vitals.received.first().copied().unwrap_or_default();
            if counters::sent_to_node(&counted) <= taken {
                return Ok(counted);
            }
            crate::pause(Duration::from_millis(1));
            while self.receive(Iface::HOST)? {}
        }
        Ok(counters::since(before, &counters::here()?))
    }

    fn summary(
        &self,
        name: &str,
        counters: counters::Counters,
        capture_drops: u64,
        offset: Offset,
    ) -> DaemonSummary {
        let names = std::iter::once("host").chain(self.ports.iter().map(|port| port.spec.name.as_str()));
        let received = names.map(str::to_owned).zip(self.vitals.received.iter().copied());
        DaemonSummary {
            name: name.to_owned(),
            status: trace::json_of(&self.node.status()),
            tcp: trace::json_of(&self.sockets.accounts()),
            counters,
            read: self.vitals.read.summary(),
            handled: self.vitals.handled.summary(),
            stall: self.vitals.heartbeat.map(|heartbeat| heartbeat.worst()).unwrap_or_default(),
            worst_late_us: self.worst_late.as_micros() as u64,
            received: received.collect(),
            given_to_kernel: self.vitals.given_to_kernel,
            lost_interfaces: self.vitals.lost_interfaces.clone(),
            capture_drops,
            wall_clock_stepped: Offset::sample().stepped_since(offset),
            records: self.records.as_ref().map_or(0, |records| records.len() as u64),
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

/// A packet that a role has made gets its name when it leaves.
fn named(packet: &Packet) -> PacketId {
    if packet.id == PacketId::NEW { identity(&packet.bytes) } else { packet.id }
}

/// What the kernel said, as a reason.
pub(crate) fn refusal(error: &crate::Error) -> &'static str {
    match error.errno() {
        Some(libc::ENOBUFS) => "send_no_buffers",
        Some(libc::EAGAIN) => "send_queue_full",
        Some(libc::ENETDOWN) => "send_link_down",
        Some(libc::EMSGSIZE) => "send_too_long",
        Some(libc::EPERM) => "send_refused_by_filter",
        Some(libc::ENETUNREACH | libc::EHOSTUNREACH) => "send_unreachable",
        _ => "send_failed",
    }
}

fn write_records(path: &std::path::Path, records: &[Record]) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    for record in records {
        writeln!(file, "{}", record.to_line())?;
    }
    file.flush()
}
