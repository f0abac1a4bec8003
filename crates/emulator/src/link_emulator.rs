//! The link emulator of a lab: it connects the daemons' interfaces by [`link::Fabric`], in real time.
//!
//! Every interface of a daemon is one end of a veth pair; the other end is in the link emulator's namespace. A frame's
//! arrival time is the kernel's receive stamp, not the time at which this process reads it. The timer fires before a
//! frame is due, and the process then spins until the frame's exact time. The report of a run shows how much later than
//! planned frames were sent.

use daemon::Refusal;
use daemon::{Ages, BEAT, EmulatorEvent, EmulatorRequest, Heartbeat, Stall, Waits};
use link::{
    Arrived, Change, ChangedLink, Consequence, Fabric, Flight, InterfaceState, Landing, Offer, PortId,
    SAMPLING, Ticket, Tune, Tuning,
};
use os::{
    Attempt, Clock, Netlink, Offset, Options, PacketSocket, Result, Timer, ethtool,
    json_lines::{Heard, Lines},
    namespace, nft, set_timer_slack,
};
use rustix::event::{PollFd, PollFlags, poll};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use trace::{HostId, Record, What};
use wire::{Cell, Duration, Iface, Instant, Mac, PacketId, Reason, ethernet, identity};

/// A daemon's interface, as the link emulator knows it.
#[derive(Clone, Debug)]
pub struct Port {
    /// The interface's port in the fabric.
    pub port: PortId,
    /// The host that has the interface.
    pub host: HostId,
    /// The interface's number on the host.
    pub iface: Iface,
    /// The name of the veth end in the link emulator's namespace.
    pub device: String,
}

/// What the link emulator recorded and measured during a run.
#[derive(Debug, Default)]
pub struct Report {
    /// Records of what the links did to packets.
    pub records: Vec<Record>,
    /// Number of frames that were read from each interface of a host.
    pub taken: BTreeMap<(HostId, Iface), u64>,
    /// How much later than planned each frame was sent, except for the frames in `stalled`.
    pub lateness: Vec<Duration>,
    /// The lateness of each frame that was due before the end of a stall of more than 10 ms, and was sent after the
    /// stall.
    pub stalled: Vec<Duration>,
    /// Number of frames that this process sent to each interface of a host, since the host's last daemon connected.
    pub delivered: BTreeMap<(HostId, Iface), u64>,
    /// Number of frames that an interface of a host refused, by the kernel's error.
    pub refused: BTreeMap<(HostId, Iface, Refusal), u64>,
    /// Interfaces of hosts whose end at the link emulator went down or was removed during the run.
    pub lost_interfaces: BTreeSet<(HostId, Iface)>,
    /// How long frames of the run waited until this process read them.
    pub read: Ages,
    /// The longest stall of this process.
    pub stall: Stall,
    /// The stalls of this process of more than 5 ms, at most the 1000 longest.
    pub stalls: Vec<Stall>,
    /// Number of frames that the kernel dropped before this process read them.
    pub capture_drops: u64,
    /// Whether the wall clock was set by more than 1 ms during the run. Then receive stamps may be wrong.
    pub wall_clock_stepped: bool,
}

impl Report {
    /// Returns the quantile `thousandths`/1000 of [`Self::lateness`]: 990 is the 99th percentile. It is zero if there
    /// are no frames.
    pub(crate) fn lateness_at(&self, thousandths: usize) -> Duration {
        let mut sorted = self.lateness.clone();
        sorted.sort_unstable();
        let index = (sorted.len() * thousandths / 1000).min(sorted.len().saturating_sub(1));
        sorted.get(index).copied().unwrap_or_default()
    }
}

/// Each frame is sent this much before its arrival time, because the kernel takes about as long to wake the daemon.
pub(crate) const WAKE: Duration = Duration::from_micros(60);

/// The process spins for this time before a frame is due: a timer alone is about 50 us late.
const SPIN: Duration = Duration::from_micros(80);
/// The size of the largest frame in bytes: an Ethernet header, and the largest IPv4 datagram.
const LARGEST: usize = 14 + 65535;

/// A flag for each host: whether it is down. One thread of pid 1 of the lab sets the flags while another carries
/// frames.
#[derive(Clone, Debug, Default)]
pub struct DownHosts(Arc<Vec<AtomicBool>>);

impl DownHosts {
    /// Returns flags for `hosts` hosts, none of them down.
    pub fn new(hosts: usize) -> Self {
        Self(Arc::new((0..hosts).map(|_| AtomicBool::new(false)).collect()))
    }

    /// Marks a host as down or up. While it is down, frames to it are lost.
    pub fn set(&self, host: HostId, is_down: bool) {
        if let Some(flag) = self.0.get(host.index()) {
            flag.store(is_down, Ordering::Release);
        }
    }

    fn is_down(&self, host: HostId) -> bool {
        self.0.get(host.index()).is_some_and(|flag| flag.load(Ordering::Acquire))
    }
}

/// A frame that is on a link or waits for it.
#[derive(Clone)]
struct QueuedFrame {
    packet: PacketId,
    dst: Mac,
    frame: Vec<u8>,
}

/// The reason of a loss: the host had crashed when the frame arrived.
const HOST_DOWN: Reason = Reason("host_down");
/// The reason of a loss: the receiver's interface refused the frame. So this machine lost it, and not the emulated
/// link.
const RECEIVER_REFUSED: Reason = Reason("receiver_interface_refused");

enum Scheduled {
    Land(Flight, QueuedFrame),
    /// The fabric decides which waiting radios may send.
    Grant,
    Tuned(Tuning),
    Sample(PortId),
    /// The change with this index in [`LinkEmulator::orders`] is due.
    Ordered(usize),
}

/// A change of links that the scenario orders.
#[derive(Clone, Debug)]
pub struct LinkOrder {
    /// The instant of the change in the run.
    pub at: Instant,
    /// The host whose records contain the change.
    pub host: HostId,
    /// The links that are changed: wires, cells, or a cell for one radio.
    pub places: Vec<ChangedLink>,
    /// The change of these links, for example a cut or another MTU.
    pub change: Change,
    /// The scenario's event, as the records contain it.
    pub recorded: trace::Event,
}

/// A frame or a request that arrived since the last read. Arrivals are processed in order of time.
enum Arrival {
    Frame { index: usize, frame: Vec<u8> },
    Request { host: HostId, request: EmulatorRequest },
}

/// The link emulator: the fabric, the other ends of the daemons' interfaces, and the connections to the daemons.
pub struct LinkEmulator {
    fabric: Fabric,
    ports: Vec<(Port, PacketSocket)>,
    listener: UnixListener,
    daemons: Vec<(Option<HostId>, Lines)>,
    clock: Clock,
    offset: Offset,
    timer: Timer,
    due: BinaryHeap<Reverse<(Instant, u64)>>,
    items: BTreeMap<u64, Scheduled>,
    next_item: u64,
    /// Frames that wait for access to the air interface, each at its radio.
    waiting: BTreeMap<Ticket, (PortId, QueuedFrame)>,
    /// The earliest scheduled [`Scheduled::Grant`], or [`Instant::NEVER`].
    grant_due: Instant,
    orders: Vec<LinkOrder>,
    /// The MTUs that the scenario has changed.
    mtus: BTreeMap<PortId, u16>,
    down: DownHosts,
    report: Report,
    read: Waits,
    end: Instant,
    heartbeat: Option<Heartbeat>,
    /// The buffer for a received frame.
    frame: Vec<u8>,
}

impl LinkEmulator {
    /// Sets up the devices of `ports`, and listens for connections of daemons at `socket`. Fails if the kernel refuses
    /// a step, for example because a device is missing.
    pub fn new(fabric: Fabric, ports: Vec<Port>, socket: &Path) -> Result<Self> {
        set_timer_slack(Duration::from_micros(1))?;
        let mut net = Netlink::open()?;
        let devices: Vec<&str> = ports.iter().map(|port| port.device.as_str()).collect();
        nft::install_ingress_drop(&devices)?;
        let mut open = Vec::new();
        for port in ports {
            ethtool::offloads_off(&port.device)?;
            let _ = namespace::sysctl(&format!("net/ipv6/conf/{}/disable_ipv6", port.device), "1");
            net.set_up(&port.device, true)?;
            let options = Options { bypass_qdisc: true, ..Options::default() };
            let opened = PacketSocket::open(&port.device, &options)?;
            open.push((port, opened));
        }
        let listener = UnixListener::bind(socket).attempt("listen at", socket.display())?;
        listener.set_nonblocking(true).attempt("listen at", socket.display())?;
        Ok(Self {
            fabric,
            ports: open,
            listener,
            daemons: Vec::new(),
            clock: Clock::start(),
            offset: Offset::sample(),
            timer: Timer::new()?,
            due: BinaryHeap::new(),
            items: BTreeMap::new(),
            next_item: 0,
            waiting: BTreeMap::new(),
            grant_due: Instant::NEVER,
            orders: Vec::new(),
            mtus: BTreeMap::new(),
            down: DownHosts::default(),
            report: Report::default(),
            read: Waits::default(),
            end: Instant::NEVER,
            heartbeat: None,
            frame: vec![0; LARGEST],
        })
    }

    /// Sets the changes of links that [`Self::run`] applies.
    pub fn order(&mut self, orders: Vec<LinkOrder>) {
        self.orders = orders;
    }

    /// Uses these flags of hosts that are down: frames to a host are lost while its flag is set.
    pub fn heed(&mut self, down: DownHosts) {
        self.down = down;
    }

    /// Carries frames until `clock` reaches `end`, or until `stop` is set. Fails if the kernel refuses to receive or to
    /// wait.
    pub fn run(&mut self, clock: Clock, end: Instant, stop: &AtomicBool) -> Result<()> {
        self.clock = clock;
        self.offset = Offset::sample();
        self.end = end;
        let sampled: Vec<(PortId, Instant)> = self.fabric.sampled().collect();
        for (port, first) in sampled {
            self.schedule(first, Scheduled::Sample(port));
        }
        for index in 0..self.orders.len() {
            let at = self.orders.get(index).map_or(Instant::NEVER, |order| order.at);
            self.schedule(at, Scheduled::Ordered(index));
        }
        while !stop.load(Ordering::Relaxed) {
            self.beat(end);
            self.process_arrivals()?;
            let now = self.clock.now();
            if now >= end {
                break;
            }
            self.fire(now);
            self.wait(end)?;
        }
        self.beat(end);
        if let Some(heartbeat) = self.heartbeat.take() {
            self.report.stall = heartbeat.worst();
            self.report.stalls = heartbeat.into_stalls();
        }
        Ok(())
    }

    /// Records that this process runs. From the clock's zero on, this process must run every [`BEAT`].
    fn beat(&mut self, end: Instant) {
        if self.clock.has_begun() {
            let now = self.clock.now();
            self.heartbeat.get_or_insert_with(|| Heartbeat::new(end)).beat(now);
        }
    }

    fn wait(&self, end: Instant) -> Result<()> {
        let next = self.due.peek().map_or(end, |Reverse((at, _))| (*at).min(end));
        let early = next - SPIN;
        if early <= self.clock.now() && self.clock.has_begun() {
            return Ok(());
        }
        let beat = self.heartbeat.as_ref().map_or(Instant::NEVER, Heartbeat::due);
        self.timer.arm(self.clock, early.min(beat))?;
        let mut fds =
            vec![PollFd::new(&self.timer, PollFlags::IN), PollFd::new(&self.listener, PollFlags::IN)];
        fds.extend(self.ports.iter().map(|(_, socket)| PollFd::new(socket, PollFlags::IN)));
        fds.extend(
            self.daemons.iter().map(|(_, lines)| PollFd::from_borrowed_fd(lines.as_fd(), PollFlags::IN)),
        );
        // The wait takes at most one beat, so that `stop` is noticed.
        let limit = rustix::time::Timespec { tv_sec: 0, tv_nsec: i64::from(BEAT.subsec_nanos()) };
        match poll(&mut fds, Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => self.timer.fired().map(|_| ()),
            Err(error) => Err(error).attempt("wait on", "the link emulator's sockets"),
        }
    }

    /// Processes all frames and requests that have arrived, in the order of arrival.
    fn process_arrivals(&mut self) -> Result<()> {
        let mut arrivals: Vec<(Instant, Arrival)> = Vec::new();
        let mut frame = std::mem::take(&mut self.frame);
        for (index, (port, socket)) in self.ports.iter().enumerate() {
            loop {
                let received = match socket.receive(&mut frame) {
                    Ok(Some(received)) => received,
                    Ok(None) => break,
                    Err(error) if error.errno() == Some(libc::ENETDOWN) => {
                        self.report.lost_interfaces.insert((port.host, port.iface));
                        break;
                    }
                    Err(error) => return Err(error),
                };
                let at = self.clock.instant(received.at, self.offset);
                if at > Instant::ZERO && at < self.end {
                    self.read.add(self.clock.now().since(at));
                }
                let frame = frame.get(..received.len).unwrap_or_default().to_vec();
                arrivals.push((at, Arrival::Frame { index, frame }));
            }
        }
        self.frame = frame;
        while let Ok((stream, _)) = self.listener.accept() {
            self.daemons.push((None, Lines::new(stream)?));
        }
        for host in self.read_requests(&mut arrivals) {
            self.daemon_connected(host);
        }
        arrivals.sort_by_key(|(at, _)| *at);
        for (at, arrival) in arrivals {
            // First the channel access that was due until `at` is decided. A frame that arrives at `at` does not take
            // part in it.
            self.grant(at);
            match arrival {
                Arrival::Frame { index, frame } => self.offer(at, index, frame),
                Arrival::Request { host, request } => self.handle_request(at, host, &request),
            }
        }
        self.set_grant();
        Ok(())
    }

    /// Reads the daemons' requests into `arrivals`. Returns the hosts whose daemons have connected.
    fn read_requests(&mut self, arrivals: &mut Vec<(Instant, Arrival)>) -> Vec<HostId> {
        let mut came = Vec::new();
        self.daemons.retain_mut(|(host, lines)| {
            loop {
                let request = match lines.hear() {
                    Heard::Message(request) => request,
                    Heard::Gone => return false,
                    Heard::Nonsense(_) | Heard::Nothing => return true,
                };
                match (request, *host) {
                    (EmulatorRequest::Hello { host: own }, _) => {
                        *host = Some(own);
                        came.push(own);
                    }
                    (request, Some(host)) => {
                        let (EmulatorRequest::Tune { at, .. } | EmulatorRequest::Visit { at, .. }) = request
                        else {
                            continue;
                        };
                        arrivals.push((Instant(at), Arrival::Request { host, request }));
                    }
                    _ => {}
                }
            }
        });
        came
    }

    /// Prepares for a daemon of `host` that has connected. The count of frames sent to this host is reset to zero, and
    /// the daemon is notified of changed MTUs and cut links. An older connection of the same host is closed, because
    /// its daemon was killed.
    fn daemon_connected(&mut self, host: HostId) {
        self.report.delivered.retain(|(to, _), _| *to != host);
        let last = self.daemons.iter().rposition(|(daemon, _)| *daemon == Some(host));
        let mut at = 0;
        self.daemons.retain(|(daemon, _)| {
            at += 1;
            *daemon != Some(host) || Some(at - 1) == last
        });
        let ports: Vec<(PortId, u16)> = self
            .ports
            .iter()
            .filter(|(port, _)| port.host == host)
            .map(|(port, _)| (port.port, port.iface.0))
            .collect();
        for (port, iface) in ports {
            if let Some(mtu) = self.mtus.get(&port).copied() {
                self.report_event(host, &EmulatorEvent::Mtu { iface, mtu });
            }
            if self.fabric.is_cut(port) {
                self.report_down(host, Iface(iface), node::Link::NO_CARRIER);
            }
        }
    }

    /// Decides the channel access that is due at `at` or before.
    fn grant(&mut self, at: Instant) {
        for decision in self.fabric.decide(at) {
            let Some((port, carried)) = self.waiting.remove(&decision.ticket) else { continue };
            match decision.fate {
                Ok(flight) => self.fly(flight, carried),
                Err(reason) => self.lost(decision.at, port, carried.packet, reason),
            }
        }
        for tuning in self.fabric.left() {
            self.leaves(tuning);
        }
    }

    fn set_grant(&mut self) {
        if let Some(at) = self.fabric.next_decision()
            && at < self.grant_due
        {
            self.grant_due = at;
            self.schedule(at, Scheduled::Grant);
        }
    }

    fn fly(&mut self, flight: Flight, carried: QueuedFrame) {
        let (flight, later) = self.fabric.split(flight);
        if let Some(later) = later {
            self.schedule(later.lands - WAKE, Scheduled::Land(later, carried.clone()));
        }
        self.schedule(flight.lands - WAKE, Scheduled::Land(flight, carried));
    }

    /// Handles the link's answer to a frame that was offered to the link at `at`.
    fn offered(
        &mut self,
        at: Instant,
        port: PortId,
        offer: std::result::Result<Offer, Reason>,
        carried: QueuedFrame,
    ) {
        match offer {
            Ok(Offer::Flies(flight)) => self.fly(flight, carried),
            Ok(Offer::Waits(ticket)) => {
                self.waiting.insert(ticket, (port, carried));
            }
            Err(reason) => self.lost(at, port, carried.packet, reason),
        }
    }

    fn offer(&mut self, at: Instant, index: usize, frame: Vec<u8>) {
        let Some((port, _)) = self.ports.get(index) else { return };
        let port = port.clone();
        *self.report.taken.entry((port.host, port.iface)).or_default() += 1;
        let Ok((link, bytes)) = ethernet::parse(&frame) else { return };
        let (packet, dst) = (identity(bytes), link.dst);
        let offer = self.fabric.offer_to(at, port.port, dst, bytes.len());
        self.offered(at, port.port, offer, QueuedFrame { packet, dst, frame });
    }

    fn handle_request(&mut self, at: Instant, host: HostId, request: &EmulatorRequest) {
        let port = |iface: u16| {
            let mut ports = self.ports.iter().map(|(port, _)| port);
            Some(ports.find(|port| port.host == host && port.iface == Iface(iface))?.port)
        };
        match request {
            EmulatorRequest::Tune { iface, cell, .. } => {
                let tuning = port(*iface).and_then(|port| self.fabric.tune(at, port, Cell(*cell)));
                match tuning {
                    Some(Tune::Leaves(tuning)) => self.leaves(tuning),
                    Some(Tune::Drains) => {}
                    None => self.report_down(host, Iface(*iface), node::Link::UNSUPPORTED),
                }
            }
            EmulatorRequest::Visit { iface, cell, frame, .. } => {
                let Some(port) = port(*iface) else { return };
                let frame = trace::unhex(frame).unwrap_or_default();
                let Ok((link, bytes)) = ethernet::parse(&frame) else { return };
                let (packet, dst) = (identity(bytes), link.dst);
                let offer = self.fabric.visit(at, port, Cell(*cell), bytes.len());
                self.offered(at, port, offer, QueuedFrame { packet, dst, frame });
            }
            EmulatorRequest::Hello { .. } => {}
        }
    }

    /// Processes the items that are due within [`SPIN`]. Spins until the exact time of each item.
    fn fire(&mut self, now: Instant) {
        while let Some(Reverse((at, number))) = self.due.peek().copied() {
            if at > now + SPIN {
                break;
            }
            self.due.pop();
            while self.clock.now() < at {
                std::hint::spin_loop();
            }
            match self.items.remove(&number) {
                Some(Scheduled::Land(flight, carried)) => self.land(&flight, &carried),
                Some(Scheduled::Grant) => {
                    if self.grant_due == at {
                        self.grant_due = Instant::NEVER;
                    }
                    self.grant(at);
                    self.set_grant();
                }
                Some(Scheduled::Tuned(tuning)) => self.tuned(&tuning),
                Some(Scheduled::Sample(port)) => self.sample(at, port),
                Some(Scheduled::Ordered(index)) => self.ordered(at, index),
                None => {}
            }
        }
    }

    fn tuned(&mut self, tuning: &Tuning) {
        let Some((host, iface)) = self.owner(tuning.port) else { return };
        match self.fabric.arrive(tuning) {
            Arrived::Here => {
                self.report_event(host, &EmulatorEvent::Up { iface: iface.0, cell: tuning.cell.0 });
            }
            Arrived::Elsewhere => {}
            Arrived::OutOfRange => self.report_down(host, iface, node::Link::OUT_OF_RANGE),
            Arrived::NoCarrier => self.report_down(host, iface, node::Link::NO_CARRIER),
        }
    }

    /// Schedules the arrival of a radio that has left its cell. Notifies its host if a cable was unplugged.
    fn leaves(&mut self, tuning: Tuning) {
        if let Some((host, iface)) = self.owner(tuning.port).filter(|_| tuning.unplugs) {
            self.report_down(host, iface, node::Link::UNPLUGGED);
        }
        self.schedule(tuning.ready, Scheduled::Tuned(tuning));
    }

    /// Notifies a host of the cells that one of its radios hears, and of the loss of the radio's present cell or its move to
    /// another cell of its channel.
    fn sample(&mut self, at: Instant, port: PortId) {
        let Some((host, iface)) = self.owner(port) else { return };
        let sample = self.fabric.sample(at, port);
        self.set_grant();
        for (cell, dbm) in sample.heard {
            self.report_event(host, &EmulatorEvent::Heard { iface: iface.0, cell: cell.0, dbm });
        }
        if sample.is_lost {
            self.report_down(host, iface, node::Link::OUT_OF_RANGE);
        }
        if let Some(cell) = sample.moved_to {
            self.report_event(host, &EmulatorEvent::Up { iface: iface.0, cell: cell.0 });
        }
        self.schedule(at + SAMPLING, Scheduled::Sample(port));
    }

    /// Changes links, and notifies the daemons of the effects on their interfaces.
    fn ordered(&mut self, at: Instant, index: usize) {
        let Some(LinkOrder { host, places, change, recorded, .. }) = self.orders.get(index).cloned() else {
            return;
        };
        self.report.records.push(Record { at, host, what: What::Ordered(recorded) });
        for place in places {
            for what in self.fabric.change(at, place, change) {
                self.follows(what);
            }
        }
        self.set_grant();
    }

    fn follows(&mut self, what: Consequence) {
        let (port, becomes) = match what {
            Consequence::At(port, becomes) => (port, becomes),
            Consequence::Returns(tuning) => return self.schedule(tuning.ready, Scheduled::Tuned(tuning)),
        };
        let Some((host, iface)) = self.owner(port) else { return };
        match becomes {
            InterfaceState::Down => self.report_down(host, iface, node::Link::NO_CARRIER),
            InterfaceState::OutOfRange => self.report_down(host, iface, node::Link::OUT_OF_RANGE),
            InterfaceState::In(Cell(cell)) => {
                self.report_event(host, &EmulatorEvent::Up { iface: iface.0, cell });
            }
            InterfaceState::Up => self.report_event(host, &EmulatorEvent::Carrier { iface: iface.0 }),
            InterfaceState::Mtu(mtu) => {
                self.mtus.insert(port, mtu);
                self.report_event(host, &EmulatorEvent::Mtu { iface: iface.0, mtu });
            }
        }
    }

    fn owner(&self, port: PortId) -> Option<(HostId, Iface)> {
        let (port, _) = self.ports.iter().find(|(other, _)| other.port == port)?;
        Some((port.host, port.iface))
    }

    fn land(&mut self, flight: &Flight, carried: &QueuedFrame) {
        let ports = match self.fabric.land(flight, carried.dst) {
            Landing::At(ports) => ports,
            Landing::Lost(reason) => {
                self.lost(flight.lands, flight.from, carried.packet, reason);
                return;
            }
        };
        let mut lost = Vec::new();
        for to in ports {
            let Some((port, socket)) = self.ports.iter().find(|(port, _)| port.port == to) else { continue };
            let at = (port.host, port.iface);
            if self.down.is_down(port.host) {
                lost.extend((0..flight.copies).map(|_| (carried.packet, HOST_DOWN)));
                continue;
            }
            for _ in 0..flight.copies {
                match socket.send(&carried.frame) {
                    Ok(()) => *self.report.delivered.entry(at).or_default() += 1,
                    Err(error) => {
                        *self
                            .report
                            .refused
                            .entry((at.0, at.1, Refusal::of_interface(&error)))
                            .or_default() += 1;
                        lost.push((carried.packet, RECEIVER_REFUSED));
                    }
                }
            }
        }
        for (packet, reason) in lost {
            self.lost(flight.lands, flight.from, packet, reason);
        }
        self.beat(self.end);
        let late = self.clock.now().since(flight.lands - WAKE);
        let is_explained = self.heartbeat.as_ref().is_some_and(|heart| heart.explains(flight.lands));
        let of = if is_explained { &mut self.report.stalled } else { &mut self.report.lateness };
        of.push(late);
    }

    fn report_event(&mut self, host: HostId, event: &EmulatorEvent) {
        if let Some((_, lines)) = self.daemons.iter_mut().find(|(daemon, _)| *daemon == Some(host)) {
            // If the daemon has died or does not run, the watch of pid 1 reports that. The other daemons continue.
            let _ = lines.send(event);
        }
    }

    fn report_down(&mut self, host: HostId, iface: Iface, why: &str) {
        self.report_event(host, &EmulatorEvent::Down { iface: iface.0, why: why.to_owned() });
    }

    /// Returns the report. It includes, as held, the frames that are still on links or in queues, and those that
    /// arrived after the end. Call it when no daemon sends any more.
    pub fn take_stock(mut self) -> Result<Report> {
        self.process_arrivals()?;
        let end = self.clock.now();
        let on_links = self.items.values().filter_map(|item| match item {
            Scheduled::Land(flight, carried) => Some((flight.from, flight.copies, carried.packet)),
            _ => None,
        });
        let in_queues = self.waiting.values().map(|(port, carried)| (*port, 1, carried.packet));
        for (from, copies, packet) in on_links.chain(in_queues) {
            if let Some((Port { host, iface, .. }, _)) = self.ports.iter().find(|(port, _)| port.port == from)
            {
                let held = Record { at: end, host: *host, what: What::Held(Some(*iface), packet) };
                self.report.records.extend(std::iter::repeat_n(held, usize::from(copies)));
            }
        }
        for (_, socket) in &self.ports {
            self.report.capture_drops += socket.statistics().map_or(0, |counts| u64::from(counts.drops));
        }
        self.report.read = self.read.summary();
        self.report.wall_clock_stepped = Offset::sample().stepped_since(self.offset);
        Ok(self.report)
    }

    fn lost(&mut self, at: Instant, port: PortId, packet: PacketId, reason: Reason) {
        if let Some((Port { host, iface, .. }, _)) = self.ports.iter().find(|(other, _)| other.port == port) {
            let what = What::Lost(*iface, packet, reason.0.into());
            self.report.records.push(Record { at, host: *host, what });
        }
    }

    fn schedule(&mut self, at: Instant, item: Scheduled) {
        self.next_item += 1;
        self.due.push(Reverse((at, self.next_item)));
        self.items.insert(self.next_item, item);
    }
}
