//! Measurements of Mobile IP on Linux. They print their numbers; docs/bench.md describes them.

use super::path::away;
use super::{KEY, Stage, mac};
use crate::common::*;
use mobile_ip::message::{
    Algorithm, Association, Between, Code, PORT, Received, Registration, Request, RequestFlags, datagram,
};
use os::{Clock, Options, PacketSocket};
use std::net::Ipv4Addr;
use wire::ipv4::Header;
use wire::{EtherType, Frame, SocketAddrV4, ethernet};

/// The number of registrations of which the percentiles are printed.
const REGISTRATIONS: usize = 100;

/// A mobile node registers 100 times through both agents. Each registration takes from the request that the mobile node
/// sent until the reply that it received. Its daemon, those of the agents and the home agent's store take part, and a
/// router of the kernel. A mobile node sends at most one request per second, so this takes 100 seconds.
#[test]
#[ignore = "measures this machine: `make registrations`"]
fn a_hundred_registrations_through_both_agents() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = alone();
    let mut stage = away();
    for _ in 1..REGISTRATIONS {
        pause(1010);
        stage.ask("mobile", r#"{"do":{"verb":"register"}}"#).expect("an agent");
    }
    pause(500);
    stage.stop("mobile");
    let records = std::fs::read_to_string(stage.at("mobile.records")).unwrap();
    let (mut took, mut sent) = (Vec::new(), None);
    for line in records.lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        match record["name"].as_str() {
            Some("request_sent") => sent = record["t"].as_u64(),
            Some("registered") => {
                let begun = sent.take().expect("a request");
                took.push((record["t"].as_u64().unwrap() - begun) as f64 / 1e6);
            }
            _ => {}
        }
    }
    assert!(took.len() >= REGISTRATIONS, "{} registrations", took.len());
    took.sort_by(f64::total_cmp);
    let percentile = |part: usize| took[(took.len() * part).div_ceil(100) - 1];
    eprintln!(
        "{{\"registrations\":{},\"p50_ms\":{:.3},\"p99_ms\":{:.3},\"least_ms\":{:.3},\"largest_ms\":{:.3}}}",
        took.len(),
        percentile(50),
        percentile(99),
        took[0],
        took[took.len() - 1]
    );
}

// --- packets that do not fit a tunnel -----------------------------------------------------------------------------------

const ROUNDS: usize = 25;
/// Packets of a round, and of a burst. All packets of a burst must leave the tunnel's entry before the next burst. A
/// burst is sent faster than the daemon forwards it, so that the daemon does not wait within it.
const PACKETS: usize = 5120;
const BURST: usize = 256;
/// The sizes that are compared: the larger one must be cut, the smaller one fits the tunnel exactly.
const SIZES: [usize; 2] = [1500, 1480];
/// The largest accepted share of the packet rate that cutting may cost.
const MOST: f64 = 0.15;

const NODE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const CARE_OF: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 1);

/// Returns a home agent between the home network and the rest of the network, with a binding of the mobile node, and a
/// socket in the home network.
fn tunnel_entry() -> (Stage, PacketSocket) {
    let mut stage = Stage::new(&["home", "outside"]);
    stage.has_records = false;
    stage.join(("home", "lan", 4), ("outside", "lan", 0x14), 1500);
    stage.join(("home", "up", 3), ("outside", "up", 0x13), 1500);
    for interface in ["lan", "up"] {
        stage.silence("outside", interface);
    }
    stage.start(
        "home",
        &format!(
            "interface = [\n\
             {{ name = \"lan\", mac = \"{}\", address = \"{HOME_AGENT}/24\" }},\n\
             {{ name = \"up\", mac = \"{}\", address = \"10.8.0.1/24\" }},\n]\n\
             route = [{{ to = \"0.0.0.0/0\", interface = \"up\", via = \"{}\" }}]\n\
             role = [{{ kind = \"mobile-ip/home-agent\", interface = \"lan\", address = \"{HOME_AGENT}/24\", \
             advertise = {{ interval = \"1000s\", lifetime = \"3000s\" }}, \
             mobile_nodes = [{{ address = \"{NODE}\", spi = 256, key = \"{KEY}\" }}] }}]",
            mac(4),
            mac(3),
            mac(0x33) // not that of the far end, whose kernel then ignores the frames
        ),
    );
    let options = Options { bypass_qdisc: true, ..Options::default() };
    let lan = stage.hosts["outside"].run(|| PacketSocket::open("lan", &options).unwrap()).unwrap();
    bind(&lan);
    (stage, lan)
}

/// Sends frames from the home network to the home agent.
fn to_home_agent(packet: &[u8]) -> Vec<u8> {
    ethernet::emit(&Frame { kind: EtherType::IPV4, src: mac(0x14), dst: mac(4) }, packet)
}

/// Registers the mobile node with its care-of address.
fn bind(lan: &PacketSocket) {
    for _ in 0..20 {
        let (flags, lifetime, extensions) = (RequestFlags::default(), 600, Vec::new());
        let identification = Clock::wall().to_ntp();
        let (home, home_agent, care_of) = (NODE, HOME_AGENT, CARE_OF);
        let mut request = Request { flags, lifetime, home, home_agent, care_of, identification, extensions };
        let key = KEY.parse().unwrap();
        request.sign(Between::MobileHome, &Association { spi: 256, algorithm: Algorithm::HmacSha256, key });
        let [from, to] = [NODE, HOME_AGENT].map(|address| SocketAddrV4::new(address, PORT));
        lan.send(&to_home_agent(&datagram(from, to, 64, &request.emit()))).unwrap();
        pause(100);
        let mut frame = [0; 2000];
        while let Some(received) = lan.receive(&mut frame).unwrap() {
            let (_, bytes) = ethernet::parse(&frame[..received.len]).unwrap();
            if let Ok(Received { message: Registration::Reply(reply), .. }) = Received::parse(bytes) {
                assert_eq!(reply.code, Code::Accepted);
                return;
            }
        }
    }
    panic!("the home agent did not reply");
}

/// Sends packets of this size through the tunnel, and returns the daemon's processor time for one packet in
/// nanoseconds.
fn cost(stage: &Stage, lan: &PacketSocket, size: usize) -> f64 {
    let source = Ipv4Addr::new(10, 1, 0, 9);
    let header = Header { id: 7, dont_fragment: false, ..Header::new(wire::ipv4::UDP, source, NODE) };
    let frame = to_home_agent(&header.emit(&vec![7; size - wire::ipv4::HEADER]));
    let daemon = stage.daemons["home"].id();
    let pieces = if size > 1480 { 2 } else { 1 };
    let (before, [frames, bytes]) = (processor_time(daemon), arrived(stage));
    let mut sent = 0;
    while sent < PACKETS {
        for _ in 0..BURST {
            lan.send(&frame).unwrap();
        }
        sent += BURST;
        let all = frames + (sent * pieces) as u64;
        for _ in 0..2000 {
            if arrived(stage)[0] >= all {
                break;
            }
            pause(1);
        }
        assert_eq!(arrived(stage)[0], all, "frames at the exit");
    }
    pause(2); // until the daemon waits again
    // Each piece has the headers of Ethernet and of the tunnel, and one like that of the packet.
    let heads = pieces * (14 + 20 + 20);
    assert_eq!(arrived(stage)[1] - bytes, (sent * (size - 20 + heads)) as u64, "bytes at the exit");
    (processor_time(daemon) - before) as f64 / sent as f64
}

/// Returns the numbers of frames and bytes that have arrived at the far end of the home agent's link, by the counters of
/// the kernel. A socket there would take processor time of the daemon: the kernel delivers a frame of a veth pair in the
/// thread that sends it.
fn arrived(stage: &Stage) -> [u64; 2] {
    let read = || std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let text = stage.hosts["outside"].run(read).unwrap();
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("up:")).unwrap();
    let mut numbers = line.split_whitespace().map(|number| number.parse::<u64>().unwrap());
    let (bytes, frames) = (numbers.next().unwrap(), numbers.next().unwrap());
    [frames, bytes]
}

/// Returns the processor time of all threads of a process, in nanoseconds.
fn processor_time(pid: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let times = threads.map(|thread| {
        let text = std::fs::read_to_string(thread.unwrap().path().join("schedstat")).unwrap();
        text.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    });
    times.sum()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Prints how much of the packet rate of a home agent's tunnel the cutting of packets costs. The daemon's processor
/// limits its rate, so the rate is one packet per processor time of a packet. Packets of 1500 and of 1480 bytes take
/// turns.
#[test]
#[ignore = "measures this machine: `make fragments`"]
fn cutting_packets_at_a_tunnel_costs_little() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = alone();
    let (mut stage, lan) = tunnel_entry();
    let mut costs = [Vec::new(), Vec::new()];
    for round in 0..=ROUNDS {
        for (size, costs) in SIZES.iter().zip(&mut costs) {
            let cost = cost(&stage, &lan, *size);
            if round > 0 {
                costs.push(cost); // the first round is not counted
            }
        }
    }
    let shares: Vec<f64> = costs[0].iter().zip(&costs[1]).map(|(cut, whole)| 1.0 - whole / cut).collect();
    let share = median(&shares);
    let [least, largest] =
        [shares.iter().copied().fold(f64::MAX, f64::min), shares.iter().copied().fold(f64::MIN, f64::max)];
    eprintln!(
        "{{\"cut_ns\":{:.0},\"whole_ns\":{:.0},\"share\":{share:.3},\"least\":{least:.3},\"largest\":{largest:.3},\
         \"at_most\":{MOST},\"verdict\":\"{}\"}}",
        median(&costs[0]),
        median(&costs[1]),
        if share <= MOST { "holds" } else { "does not hold" }
    );
    stage.stop("home");
}
