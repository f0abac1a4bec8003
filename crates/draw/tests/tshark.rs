//! Checks that Wireshark reads a capture correctly.

use crate::tshark;
use draw::{Capture, Direction, Interface, Seen, Snap};
use tshark::tshark;
use wire::tunnel::{self, Kind};
use wire::{Frame, Instant, Ipv4Addr, Mac, SocketAddrV4, WallTime, ethernet, fragment, udp};

/// Returns an Ethernet frame with a UDP datagram of `payload` bytes.
fn udp_frame(payload: usize) -> Vec<u8> {
    let datagram = 8 + payload;
    let total = u16::try_from(20 + datagram).unwrap();
    let mut header = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    header[2..4].copy_from_slice(&total.to_be_bytes());
    let sum = wire::checksum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
    frame.extend(header);
    frame.extend([0x13, 0x88, 0x13, 0x89]);
    frame.extend(u16::try_from(datagram).unwrap().to_be_bytes());
    frame.extend([0, 0]);
    frame.resize(frame.len() + payload, 0xa5);
    frame
}

fn sample() -> Vec<u8> {
    let interfaces = [("mh", "wlan0"), ("gw", "eth0")];
    let interfaces = interfaces.map(|(host, name)| Interface { host: host.into(), name: name.into() });
    let mut capture = Capture::new(&interfaces, WallTime(1_700_000_000_000_000_000), Snap::default());
    let frames = [udp_frame(1000), udp_frame(20)];
    for (interface, ms, direction, frame, comment) in [
        (1, 12, Direction::Inbound, &frames[0], "delivered at mh"),
        (0, 10, Direction::Outbound, &frames[0], "lost at gw:eth0: queue full"),
        (0, 11, Direction::Outbound, &frames[1], ""),
    ] {
        let at = Instant::from_millis(ms);
        capture
            .packet(&Seen { interface, at, direction, frame, original_len: frame.len(), comment })
            .unwrap();
    }
    capture.finish().unwrap()
}

#[test]
fn wireshark_reads_names_fates_and_directions_and_finds_nothing_malformed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("capture.pcapng");
    std::fs::write(&file, sample()).unwrap();

    let Some(malformed) = tshark(&file, &["-Y", "_ws.malformed"]) else { return };
    assert_eq!(malformed, "");
    let fields = ["interface_name", "time_epoch", "cap_len", "len", "packet_flags_direction", "comment"];
    let mut arguments = vec!["-T".to_owned(), "fields".to_owned(), "-E".to_owned(), "separator=|".to_owned()];
    arguments.extend(fields.iter().flat_map(|field| ["-e".to_owned(), format!("frame.{field}")]));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let printed = tshark(&file, &arguments).unwrap();
    let rows: Vec<Vec<&str>> = printed.lines().map(|line| line.split('|').collect()).collect();
    assert_eq!(
        rows.iter().map(|row| (row[0], row[2], row[3], row[5])).collect::<Vec<_>>(),
        [
            ("mh:wlan0", "128", "1042", "lost at gw:eth0: queue full"),
            ("mh:wlan0", "62", "62", ""),
            ("gw:eth0", "128", "1042", "delivered at mh"),
        ]
    );
    assert_eq!(rows[0][1], "1700000000.010000000");
    assert_ne!(rows[0][4], rows[2][4]);
}

/// Wireshark finds the inner datagram in each kind of tunnel, and joins the fragments that a tunnel carries.
#[test]
fn wireshark_reads_each_kind_of_tunnel_and_joins_fragments() {
    let [from, to, entry, exit] = [1, 2, 3, 4].map(|last| Ipv4Addr::new(10, 0, 0, last));
    let [src, dst] = [from, to].map(|address| SocketAddrV4::new(address, 9000));
    let whole = udp::packet(src, dst, &[7; 100]);
    let cut = fragment::pieces(&udp::divisible_packet(src, dst, &[7; 1400], 5), 1000).unwrap();
    let kinds = [Kind::IpInIp, Kind::Minimal, Kind::Gre];
    let mut packets: Vec<Vec<u8>> =
        kinds.iter().map(|kind| tunnel::encapsulate(*kind, &whole, entry, exit, 9).unwrap()).collect();
    packets.extend(cut.iter().map(|piece| tunnel::encapsulate(Kind::Gre, piece, entry, exit, 9).unwrap()));
    let interface = Interface { host: "ha".into(), name: "eth0".into() };
    let mut capture = Capture::new(&[interface], WallTime(1_700_000_000_000_000_000), Snap::default());
    for (at, bytes) in (1..).map(Instant::from_millis).zip(packets) {
        let frame = ethernet::emit(&Frame::to(Mac([2; 6])), &bytes);
        let (interface, direction, original_len) = (0, Direction::Outbound, frame.len());
        capture.packet(&Seen { interface, at, direction, frame: &frame, original_len, comment: "" }).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("capture.pcapng");
    std::fs::write(&file, capture.finish().unwrap()).unwrap();

    let fields = ["-T", "fields", "-E", "separator=|", "-e", "frame.protocols", "-e", "udp.length"];
    let Some(printed) = tshark(&file, &fields) else { return };
    let rows: Vec<(&str, &str)> = printed.lines().map(|line| line.split_once('|').unwrap()).collect();
    let in_gre = "eth:ethertype:ip:gre:ip:udp:data";
    assert_eq!(
        rows,
        [
            ("eth:ethertype:ip:ip:udp:data", "108"),
            ("eth:ethertype:ip:data", ""), // Wireshark does not decode minimal encapsulation
            (in_gre, "108"),
            (in_gre, "1408"),
            ("eth:ethertype:ip:gre:ip:data", ""),
        ]
    );
    let minimal = tshark(&file, &["-Y", "ip.proto == 55", "-T", "fields", "-e", "data.data"]).unwrap();
    assert!(minimal.starts_with("1180"), "UDP, with the original source: {minimal}");
}
