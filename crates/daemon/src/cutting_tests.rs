//! Packets that are cut at the entry of a tunnel: their frames and records, and the processor time of a daemon for a packet
//! that must be cut, compared with one that fits.

use crate::cost_tests::{Between, MACS, median, processor_time, spec, stay_on_one_processor, until};
use crate::testing::{hear, in_sandbox, need};
use crate::{Ask, Spec};
use node::{Action, Encap, Hop, Lifetime, NextHop, Node, Route, RouteKey};
use os::{Netlink, Options, PacketSocket};
use std::io::Write;
use wire::ipv4::{self, Header};
use wire::{Duration, EtherType, Frame, Iface, Instant, Ipv4Addr, Mac, Prefix, ethernet, ipip};

const ROUNDS: usize = 25;
/// Packets of a round, and of a burst. All packets of a burst must leave the tunnel's entry before the next burst.
const PACKETS: usize = 5120;
const BURST: usize = 256;
/// The sizes that are compared: the larger one must be cut, the smaller one fits the tunnel exactly.
const SIZES: [usize; 2] = [1500, 1480];
/// The largest accepted share of the packet rate that cutting may cost.
const MOST: f64 = 0.15;

const ENTRY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const EXIT: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 1);
const INSIDE: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
/// The link address of the next hop. It is not that of the far end, whose kernel then ignores the frames.
const NEXT: Mac = Mac([2, 0, 0, 0, 0, 5]);

/// A daemon at the entry of a tunnel, in a separate namespace between two veth pairs.
struct Entry {
    into: PacketSocket,
    out: String,
    daemon: Between,
}

impl Entry {
    /// Starts a daemon. `name` has at most 8 bytes.
    fn new(name: &str, has_records: bool) -> Self {
        let near = [format!("in{name}"), format!("out{name}")];
        let daemon = Between::start(&near, |folder| {
            let records = has_records.then(|| folder.join("records"));
            Spec { records, ..spec(tunnel(), folder.join("control")) }
        });
        let [into, out] = near;
        let options = Options { bypass_qdisc: true, ..Options::default() };
        Self { into: PacketSocket::open(&into, &options).unwrap(), out, daemon }
    }

    /// Sends packets of this size through the tunnel, and returns the processor time of the daemon's thread for one
    /// packet in nanoseconds.
    fn cost(&self, size: usize) -> f64 {
        let frame = frame(size);
        let pieces = if size > SIZES[1] { 2 } else { 1 };
        let (before, [frames, bytes]) = (processor_time(self.daemon.tid), self.arrived());
        for burst in 1..=PACKETS / BURST {
            for _ in 0..BURST {
                self.into.send(&frame).unwrap();
            }
            let all = frames + (burst * BURST * pieces) as u64;
            until(|| self.arrived()[0] >= all);
            assert_eq!(self.arrived()[0], all, "frames at the exit");
        }
        os::pause(Duration::from_millis(2)); // until the daemon waits again
        // Each piece has the headers of Ethernet and of the tunnel, and one like that of the packet.
        let heads = pieces * (ethernet::HEADER + 2 * ipv4::HEADER);
        let expected = (PACKETS * (size - ipv4::HEADER + heads)) as u64;
        assert_eq!(self.arrived()[1] - bytes, expected, "bytes at the exit");
        (processor_time(self.daemon.tid) - before) as f64 / PACKETS as f64
    }

    /// Returns the numbers of frames and bytes that have arrived at the far end of the tunnel's first link, by the
    /// counters of the kernel. A socket there would take processor time of the daemon: the kernel delivers a frame of a
    /// veth pair in the thread that sends it.
    fn arrived(&self) -> [u64; 2] {
        let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        let mut lines = text.lines().filter_map(|line| line.trim_start().split_once(':'));
        let (_, line) = lines.find(|(name, _)| *name == self.out).unwrap();
        let mut numbers = line.split_whitespace().map(|number| number.parse::<u64>().unwrap());
        let (bytes, frames) = (numbers.next().unwrap(), numbers.next().unwrap());
        [frames, bytes]
    }
}

/// Returns a frame to the entry of the tunnel, with a packet of this size that may be cut.
fn frame(size: usize) -> Vec<u8> {
    let source = Ipv4Addr::new(10, 1, 0, 9);
    let header = Header { id: 7, dont_fragment: false, ..Header::new(ipv4::UDP, source, INSIDE) };
    let link = Frame { kind: EtherType::IPV4, src: MACS[0], dst: MACS[1] };
    ethernet::emit(&link, &header.emit(&vec![7; size - ipv4::HEADER]))
}

/// Returns a node with a tunnel to a host. A home agent sets such a route for a mobile node.
fn tunnel() -> Node {
    let mut node = Node::new(Vec::new(), vec![ENTRY]);
    let hop = Hop { iface: Iface(2), to: NextHop::Mac(NEXT) };
    let routes =
        [(INSIDE, Action::Tunnel(Encap::new(ENTRY, EXIT, SIZES[1] as u16))), (EXIT, Action::Forward(hop))];
    for (dst, action) in routes {
        let key = RouteKey { class: None, src: Prefix::ANY, dst: Prefix::host(dst) };
        node.set_route(Instant::ZERO, key, Route::new(action, Lifetime::Permanent));
    }
    node
}

/// The frames of a packet leave in order. Each has a record, and so has each frame that the kernel refuses.
#[test]
fn the_frames_of_a_packet_leave_in_order_and_are_recorded() {
    in_sandbox(|| {
        let mut entry = Entry::new("t", true);
        let out = PacketSocket::open(&entry.out, &Options::default()).unwrap();
        entry.into.send(&frame(1500)).unwrap();
        let heard: Vec<(u16, usize)> = hear(&out, 500)
            .iter()
            .map(|(_, bytes)| {
                let (_, inner) = ipip::decapsulate(ethernet::parse(bytes).unwrap().1).unwrap();
                (Header::parse(inner).unwrap().0.offset, inner.len())
            })
            .collect();
        assert_eq!(heard, [(0, 1476), (182, 44)]);
        // An interface that is down refuses each frame.
        let take_down = || Netlink::open().unwrap().set_up("r2", false).unwrap();
        entry.daemon.namespace.run(take_down).unwrap();
        os::pause(Duration::from_millis(100));
        entry.into.send(&frame(1500)).unwrap();
        os::pause(Duration::from_millis(100));
        entry.daemon.ask(&Ask::Stop);
        let path = entry.daemon.folder.path().join("records");
        let text = || std::fs::read_to_string(&path).unwrap_or_default();
        let of_frames = |text: &str| -> Vec<String> {
            let records = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
            let events = records.filter(|record| record["iface"] == 2);
            let events = events.filter_map(|record| Some(record["event"].as_str()?.to_owned()));
            events.filter(|event| event == "sent" || event == "lost").collect()
        };
        until(|| of_frames(&text()).len() >= 6);
        assert_eq!(of_frames(&text()), ["sent", "sent", "sent", "lost", "sent", "lost"]);
    });
}

/// Gives the calling thread a higher priority than that of daemons on its processor. So a burst is sent before the daemon
/// receives its first packet, and the daemon does not wait within the burst. Returns false if the kernel refuses it.
fn precede_daemons() -> bool {
    let parameter = libc::sched_param { sched_priority: 2 };
    // SAFETY: the parameter outlives the call, and nothing is written.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameter) == 0
    }
}

/// Prints how much of the packet rate of a tunnel's entry the cutting of packets costs. A packet is one that arrives at the
/// entry; it leaves in two frames if it is cut. The daemon's processor limits its rate, so the rate is one packet per
/// processor time of a packet. Packets of 1500 and of 1480 bytes take turns.
fn measure(name: &str, has_records: bool) {
    stay_on_one_processor();
    let entry = Entry::new(name, has_records);
    if !precede_daemons() && !need("the right to set a real-time priority", false) {
        return;
    }
    let mut costs = [Vec::new(), Vec::new()];
    for round in 0..=ROUNDS {
        for (size, costs) in SIZES.iter().zip(&mut costs) {
            let cost = entry.cost(*size);
            if round > 0 {
                costs.push(cost); // the first round is not counted
            }
        }
    }
    let shares: Vec<f64> = costs[0].iter().zip(&costs[1]).map(|(cut, whole)| 1.0 - whole / cut).collect();
    let share = median(&shares);
    let [least, largest] =
        [shares.iter().copied().fold(f64::MAX, f64::min), shares.iter().copied().fold(f64::MIN, f64::max)];
    let _ = writeln!(
        std::io::stderr(),
        "{{\"records\":{has_records},\"cut_ns\":{:.0},\"whole_ns\":{:.0},\"share\":{share:.3},\
         \"least\":{least:.3},\"largest\":{largest:.3},\"at_most\":{MOST},\"verdict\":\"{}\"}}",
        median(&costs[0]),
        median(&costs[1]),
        if share <= MOST { "holds" } else { "does not hold" }
    );
}

#[test]
#[ignore = "a measurement: `make fragments`"]
fn cutting_packets_at_a_tunnel_costs_little() {
    in_sandbox(|| measure("n", false));
}

/// The daemon writes records. Other threads write them to the file, and their time is not counted.
#[test]
#[ignore = "a measurement: `make fragments`"]
fn cutting_packets_at_a_tunnel_costs_little_with_records() {
    in_sandbox(|| measure("r", true));
}
