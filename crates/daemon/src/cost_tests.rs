//! Measures the processor time for a frame at a router with few sockets, and at a router with many.

use crate::testing::{in_sandbox, readable};
use crate::{Ask, Interface, Spec, run};
use node::{
    Action, Hop, Input, Lifetime, NextHop, Node, Outbox, Role, Route, RouteKey, StreamId, StreamOp,
    Transport, Value,
};
use os::{Clock, End, EndPlace, NetNs, Netlink, Options, PacketSocket, TcpMetrics, json_lines};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use wire::{Duration, EtherType, Frame, Iface, Instant, Ipv4Addr, Mac, Prefix, SocketAddrV4, ethernet};

/// Numbers of sockets that are compared.
const SOCKETS: [u32; 2] = [10, 10_000];
/// Numbers of frames in a burst. All frames of a burst must come back before the next burst is sent.
const BURSTS: [usize; 2] = [1, 32];
const ROUNDS: usize = 9;
/// A round sends bursts until it has sent this number of frames, or until [`ROUND`] has passed.
const FRAMES: usize = 19_200;
const ROUND: Duration = Duration::from_millis(500);
/// Sockets that the role opens in one step.
const STEP: u32 = 250;
/// The largest accepted ratio of the costs with many and with few sockets.
const MOST: f64 = 1.1;

const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(crate) const MACS: [Mac; 4] =
    [Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]), Mac([2, 0, 0, 0, 0, 3]), Mac([2, 0, 0, 0, 0, 4])];

/// A role that opens UDP sockets to which nothing is sent.
#[derive(Debug)]
struct Opener {
    sockets: u32,
    asked: u32,
    opened: u32,
    due: Option<Instant>,
}

impl Role for Opener {
    fn name(&self) -> &'static str {
        "opener"
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(_) => self.due = Some(now),
            Input::Stream(_, node::StreamEvent::Opened(_)) => self.opened += 1,
            Input::Timeout if self.due.is_some_and(|due| due <= now) => {
                let until = self.sockets.min(self.asked + STEP);
                for number in self.asked..until {
                    let local = SocketAddrV4::new(ROUTER, 20_000 + number as u16);
                    let listen = StreamOp::Listen { by: Transport::Udp, local, foreign: false };
                    out.stream(StreamId(1 + number), listen);
                }
                self.asked = until;
                self.due = (until < self.sockets).then_some(now + Duration::from_millis(1));
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.due
    }

    fn status(&self) -> Value {
        Value::from(self.opened)
    }
}

/// A daemon that runs in its own namespace, between two veth pairs. The other ends of the pairs are in this namespace.
pub(crate) struct Between {
    control: json_lines::Lines,
    /// The id of the daemon's thread.
    pub(crate) tid: i32,
    pub(crate) namespace: Arc<NetNs>,
    /// The folder of the daemon's control socket.
    pub(crate) folder: tempfile::TempDir,
}

impl Between {
    /// Makes the veth pairs and starts the daemon. `near` are the names of the ends in this namespace, of at most 15 bytes.
    /// `spec` returns the daemon's configuration; its argument is the folder, in which the control socket is `control`.
    pub(crate) fn start(near: &[String; 2], spec: impl FnOnce(&Path) -> Spec) -> Self {
        let namespace = Arc::new(NetNs::create().unwrap());
        let mut here = Netlink::open().unwrap();
        for ((near, far), macs) in near.iter().zip(["r1", "r2"]).zip(MACS.chunks(2)) {
            let place = EndPlace::Fd(namespace.as_fd());
            let near_end = End { name: near, mac: macs[0], place: EndPlace::Here };
            here.add_veth(&near_end, &End { name: far, mac: macs[1], place }).unwrap();
            here.set_arp(near, false).unwrap();
            here.set_up(near, true).unwrap();
            os::ethtool::offloads_off(near).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let tid = daemon(&namespace, spec(folder.path()));
        let mut control = None;
        until(|| {
            control = json_lines::Lines::connect(&folder.path().join("control")).ok();
            control.is_some()
        });
        let mut daemon = Self { control: control.unwrap(), tid, namespace, folder };
        daemon.ask(&Ask::Ready);
        let t0 = Clock::start().t0;
        daemon.ask(&Ask::Begin { t0, end: None, since: 0, wall_shift: 0 });
        daemon
    }

    pub(crate) fn ask(&mut self, ask: &Ask) -> serde_json::Value {
        self.control.send(ask).unwrap();
        let mut answer = None;
        until(|| {
            if let json_lines::Heard::Message(message) = self.control.hear::<serde_json::Value>() {
                answer = Some(message);
            }
            answer.is_some()
        });
        answer.unwrap()
    }
}

struct Router {
    into: PacketSocket,
    out: PacketSocket,
    daemon: Between,
}

impl Router {
    fn new(sockets: u32) -> Self {
        let near = [format!("in{sockets}"), format!("out{sockets}")];
        let mut daemon = Between::start(&near, |folder| spec(opener(sockets), folder.join("control")));
        let [into, out] = near.map(|name| {
            PacketSocket::open(&name, &Options { bypass_qdisc: true, ..Options::default() }).unwrap()
        });
        until(|| {
            let status = daemon.ask(&Ask::Do { verb: "status".into(), args: serde_json::Value::Null });
            status.to_string().contains(&format!("\"opener\":{sockets}"))
        });
        Self { into, out, daemon }
    }

    /// Forwards the frames of a round, and returns the daemon's processor time for one frame, in nanoseconds.
    fn forward(&self, burst: usize) -> f64 {
        let at = |net, port| SocketAddrV4::new(Ipv4Addr::new(10, net, 0, 1), port);
        let bytes = wire::udp::packet(at(1, 434), at(2, 434), &[7; 64]);
        let frame = ethernet::emit(&Frame { kind: EtherType::IPV4, src: MACS[0], dst: MACS[1] }, &bytes);
        let before = processor_time(self.daemon.tid);
        let (mut buffer, clock, mut sent) = ([0; 2048], Clock::start(), 0);
        while sent < FRAMES && clock.now() < Instant::ZERO + ROUND {
            sent += burst;
            for _ in 0..burst {
                self.into.send(&frame).unwrap();
            }
            let mut got = 0;
            while got < burst {
                assert!(readable(&self.out, 5_000), "a frame was lost");
                while self.out.receive(&mut buffer).unwrap().is_some() {
                    got += 1;
                }
            }
        }
        os::pause(Duration::from_millis(2)); // until the daemon waits again
        (processor_time(self.daemon.tid) - before) as f64 / sent as f64
    }
}

/// Starts a daemon, and returns the id of its thread.
pub(crate) fn daemon(namespace: &Arc<NetNs>, spec: Spec) -> i32 {
    let tid = Arc::new(AtomicI32::new(0));
    let (namespace, set) = (Arc::clone(namespace), Arc::clone(&tid));
    std::thread::spawn(move || {
        let ended = namespace.run(|| {
            set.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Relaxed);
            run(spec).unwrap();
        });
        ended.unwrap();
    });
    until(|| tid.load(Ordering::Relaxed) > 0);
    tid.load(Ordering::Relaxed)
}

/// Returns a router whose role opens this number of sockets.
fn opener(sockets: u32) -> Node {
    let opener = Opener { sockets, asked: 0, opened: 0, due: None };
    let mut node = Node::new(vec![Box::new(opener)], vec![ROUTER]);
    let dst = Prefix::host(Ipv4Addr::new(10, 2, 0, 1));
    let hop = Hop { iface: Iface(2), to: NextHop::Mac(MACS[2]) };
    let route = Route::new(Action::Forward(hop), Lifetime::Permanent);
    node.set_route(Instant::ZERO, RouteKey { class: None, src: Prefix::ANY, dst }, route);
    node
}

/// Returns the configuration of a router of a lab, with two interfaces.
pub(crate) fn spec(node: Node, control: std::path::PathBuf) -> Spec {
    let interfaces = [("r1", MACS[1]), ("r2", MACS[3])].map(|(name, mac)| Interface {
        name: name.into(),
        mac,
        mtu: 1500,
        tunes: false,
    });
    Spec {
        name: "router".into(),
        node,
        addresses: vec![ROUTER],
        interfaces: interfaces.into(),
        tcp: TcpMetrics::default(),
        control: Some(control),
        clients: None,
        radio: None,
        records: None,
        records_at_once: false,
        store: None,
        store_without_sync: false,
        store_needs_room: false,
        data_path_in_kernel: false,
        hold: true,
        clock_error: wire::ClockError::NONE,
    }
}

pub(crate) fn until(mut done: impl FnMut() -> bool) {
    for _ in 0..20_000 {
        if done() {
            return;
        }
        os::pause(Duration::from_millis(1));
    }
    panic!("it did not happen within 20 s");
}

/// Keeps this thread and those that it starts later on one processor. On a virtual machine, waking another processor
/// takes longer than ten frames.
pub(crate) fn stay_on_one_processor() {
    let mut set = CpuSet::new();
    set.set(sched_getcpu());
    sched_setaffinity(None, &set).unwrap();
}

/// Returns the processor time of a thread of this process, in nanoseconds.
pub(crate) fn processor_time(tid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/self/task/{tid}/schedstat")).unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Prints the processor time of a daemon for one frame that it forwards, with few sockets and with many.
#[test]
#[ignore = "a measurement, which needs a quiet machine"]
fn a_frame_costs_the_same_with_many_sockets() {
    in_sandbox(|| {
        stay_on_one_processor();
        let routers = SOCKETS.map(Router::new);
        for router in &routers {
            let before = processor_time(router.daemon.tid);
            os::pause(Duration::from_millis(200));
            let idle = processor_time(router.daemon.tid) - before;
            assert!(idle < 2_000_000, "a daemon without frames took {idle} ns in 200 ms");
        }
        for burst in BURSTS {
            let mut costs = [Vec::new(), Vec::new()];
            for router in &routers {
                router.forward(burst); // not counted
            }
            for _ in 0..ROUNDS {
                for (router, costs) in routers.iter().zip(&mut costs) {
                    costs.push(router.forward(burst));
                }
            }
            let ratios: Vec<f64> = costs[1].iter().zip(&costs[0]).map(|(many, few)| many / few).collect();
            let [least, largest] =
                [ratios.iter().copied().fold(f64::MAX, f64::min), ratios.iter().copied().fold(0.0, f64::max)];
            let (few, many) = (median(&costs[0]), median(&costs[1]));
            let ratio = median(&ratios);
            let verdict = if ratio <= MOST { "holds" } else { "does not hold" };
            let _ = writeln!(
                std::io::stderr(),
                "{{\"burst\":{burst},\"few\":{},\"many\":{},\"few_ns\":{few:.0},\"many_ns\":{many:.0},\
                 \"ratio\":{ratio:.2},\"least\":{least:.2},\"largest\":{largest:.2},\"at_most\":{MOST},\
                 \"verdict\":\"{verdict}\"}}",
                SOCKETS[0],
                SOCKETS[1]
            );
        }
    });
}
