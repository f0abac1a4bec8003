//! The kernel's own packet counts, with which Wayfare's counts are compared.

use crate::error::{Attempt, Result};
use std::collections::BTreeMap;

/// The kernel's counters by name. Those of `/proc/net/snmp` have names such as `Udp.InDatagrams`. Those of a link have
/// names such as `link.NAME.rx_packets`: the direction is `rx` or `tx`, and what is counted is `bytes`, `packets`,
/// `errors` or `dropped`.
pub type Counters = BTreeMap<String, u64>;

/// The groups of `/proc/net/snmp` that are kept.
const GROUPS: [&str; 4] = ["Ip", "Icmp", "Tcp", "Udp"];
/// The columns of `/proc/net/dev` that are kept: index and name. The first column after the colon has index 0.
const COLUMNS: [(usize, &str); 8] = [
    (0, "rx_bytes"),
    (1, "rx_packets"),
    (2, "rx_errors"),
    (3, "rx_dropped"),
    (8, "tx_bytes"),
    (9, "tx_packets"),
    (10, "tx_errors"),
    (11, "tx_dropped"),
];

/// Returns the counters of the calling thread's network namespace.
pub fn here() -> Result<Counters> {
    read("/proc/thread-self/net")
}

/// Returns the counters of a process's network namespace. Fails if the process has ended.
pub fn of(pid: u32) -> Result<Counters> {
    read(&format!("/proc/{pid}/net"))
}

/// Returns the increase of each counter since `earlier`. A counter that is missing in `earlier` counts from zero. A
/// counter that is missing in `later` is left out.
pub fn since(earlier: &Counters, later: &Counters) -> Counters {
    let grown = |(name, now): (&String, &u64)| {
        (name.clone(), now.saturating_sub(earlier.get(name).copied().unwrap_or(0)))
    };
    later.iter().map(grown).collect()
}

/// Returns the value of a counter, or the counter's name as the error if the kernel did not report it.
pub fn value<'a>(counted: &Counters, name: &'a str) -> std::result::Result<u64, &'a str> {
    counted.get(name).copied().ok_or(name)
}

/// Returns the number of packets that the kernel of a namespace has sent to the namespace's node, computed from the
/// kernel's counters. Each fragment is one packet. Packets over the loopback do not leave the kernel and are not
/// counted.
///
/// Packets that exceed the MTU of their route and must not be fragmented are not counted either. The kernel drops such
/// a packet and reports the drop to itself by ICMP (`ip_fragment` in `net/ipv4/ip_output.c`). An example: one
/// connection has learnt a smaller path MTU, and another connection has a segment ready that fits only the former path
/// MTU.
///
/// The error names a counter that is missing.
pub fn sent_to_node(counted: &Counters) -> std::result::Result<u64, &'static str> {
    let of = |name| value(counted, name);
    let (sent, forwarded, pieces) = (of("Ip.OutRequests")?, of("Ip.ForwDatagrams")?, of("Ip.FragCreates")?);
    let (cut, own, too_long) = (of("Ip.FragOKs")?, of("link.lo.tx_packets")?, of("Ip.FragFails")?);
    Ok((sent + forwarded + pieces).saturating_sub(cut + own + too_long))
}

/// Returns the number of packets that the kernel of a namespace has received from the namespace's node: all packets
/// that the kernel received, except those over the loopback. The error names a counter that is missing.
pub fn taken_from_node(counted: &Counters) -> std::result::Result<u64, &'static str> {
    Ok(value(counted, "Ip.InReceives")?.saturating_sub(value(counted, "link.lo.rx_packets")?))
}

fn read(folder: &str) -> Result<Counters> {
    let text = |file: &str| {
        let path = format!("{folder}/{file}");
        std::fs::read_to_string(&path).attempt("read", path)
    };
    let mut counters = protocols(&text("snmp")?);
    counters.extend(links(&text("dev")?));
    Ok(counters)
}

/// Parses `/proc/net/snmp`, which has pairs of lines: `Udp: InDatagrams ...` and `Udp: 7 ...`. A value that is no count
/// (`Tcp: MaxConn` is -1) is left out.
fn protocols(snmp: &str) -> Counters {
    let mut counters = Counters::new();
    let mut lines = snmp.lines().filter_map(|line| line.split_once(": "));
    while let (Some((group, names)), Some((_, values))) = (lines.next(), lines.next()) {
        if GROUPS.contains(&group) {
            let pairs = names.split_whitespace().zip(values.split_whitespace());
            counters.extend(
                pairs.filter_map(|(name, value)| Some((format!("{group}.{name}"), value.parse().ok()?))),
            );
        }
    }
    counters
}

/// Parses `/proc/net/dev`: each line is a name, a colon and 16 numbers. The two heading lines have no colon.
fn links(dev: &str) -> Counters {
    let mut counters = Counters::new();
    for (name, values) in dev.lines().filter_map(|line| line.split_once(':')) {
        let values: Vec<&str> = values.split_whitespace().collect();
        for (column, what) in COLUMNS {
            if let Some(value) = values.get(column).and_then(|value| value.parse().ok()) {
                counters.insert(format!("link.{}.{what}", name.trim()), value);
            }
        }
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{hear, in_sandbox, joined, need};
    use crate::{NetNs, Netlink};
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
    use std::process::Command;
    use wire::EtherType;

    #[test]
    fn what_is_sent_is_counted_where_it_is_sent() {
        in_sandbox(|| {
            Netlink::open().unwrap().loopback_up().unwrap();
            let before = here().unwrap();
            let to = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let from = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            for _ in 0..7 {
                from.send_to(b"x", to.local_addr().unwrap()).unwrap();
                to.recv(&mut [0; 8]).unwrap();
            }
            let grown = since(&before, &of(std::process::id()).unwrap());
            assert_eq!((grown["Udp.OutDatagrams"], grown["Udp.InDatagrams"]), (7, 7));
            assert_eq!((grown["link.lo.tx_packets"], grown["link.lo.rx_bytes"]), (7, 7 * (20 + 8 + 1)));
            for name in ["Udp.NoPorts", "Udp.RcvbufErrors", "Udp.SndbufErrors", "Udp.InErrors", "Tcp.OutSegs"]
            {
                assert_eq!(grown[name], 0, "{name}");
            }
            for name in ["Tcp.RetransSegs", "Tcp.OutRsts", "Ip.InReceives", "Icmp.OutDestUnreachs"] {
                assert!(grown.contains_key(name), "{name}");
            }
            assert!(!grown.contains_key("Tcp.MaxConn"));
            let elsewhere = NetNs::create().unwrap().run(here).unwrap().unwrap();
            assert_eq!(elsewhere["Udp.OutDatagrams"], 0);
        });
    }

    /// If a segment is longer than the MTU of its route, the kernel drops the segment and reports the drop to itself by
    /// ICMP. The segment does not count as sent.
    #[test]
    fn a_segment_that_is_too_long_for_its_route_leaves_no_kernel() {
        in_sandbox(|| {
            let joined = joined();
            let mut net = Netlink::open().unwrap();
            net.loopback_up().unwrap();
            net.add_address("a0", Ipv4Addr::new(10, 9, 0, 1), 24).unwrap();
            net.set_arp("a0", true).unwrap();
            let at = (Ipv4Addr::new(10, 9, 0, 2), 80);
            let listener = joined.far.run(|| TcpListener::bind(at).unwrap()).unwrap();
            let before = here().unwrap();
            let mut client = TcpStream::connect(at).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            let narrow = ["route", "change", "10.9.0.0/24", "dev", "a0", "src", "10.9.0.1", "mtu", "1000"];
            if !need("ip", Command::new("ip").args(narrow).status().is_ok_and(|status| status.success())) {
                return;
            }
            client.write_all(&[7; 1400]).unwrap();
            server.read_exact(&mut [0; 1400]).unwrap();
            let is_ip = |frame: &[u8]| wire::ethernet::parse(frame).unwrap().0.kind == EtherType::IPV4;
            let left = hear(&joined.tap, 100).iter().filter(|(_, frame)| is_ip(frame)).count();
            let counted = since(&before, &here().unwrap());
            assert_ne!(counted["Ip.FragFails"], 0);
            assert_eq!(sent_to_node(&counted), Ok(left as u64));
        });
    }

    #[test]
    fn a_missing_counter_is_named_and_is_not_zero() {
        let names = [
            "Ip.OutRequests",
            "Ip.ForwDatagrams",
            "Ip.FragOKs",
            "Ip.FragCreates",
            "Ip.FragFails",
            "link.lo.tx_packets",
        ];
        let all: Counters = names.map(|name| (name.to_owned(), 0)).into();
        assert_eq!(sent_to_node(&all), Ok(0));
        for name in names {
            let mut counted = all.clone();
            counted.remove(name);
            assert_eq!(sent_to_node(&counted), Err(name));
        }
        assert_eq!(taken_from_node(&all), Err("Ip.InReceives"));
    }

    #[test]
    fn a_process_that_is_gone_has_no_counters() {
        assert!(of(u32::MAX).unwrap_err().is_absent());
    }
}
