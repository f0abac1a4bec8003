//! Another program, tshark, parses the packets of this crate. If tshark is not installed, the test is skipped, but
//! fails on a build server (environment variable `CI`).

use crate::harness::{Network, mn};
use sctp::{Change, Config, Hmac};
use std::io::Write;
use std::process::{Command, Stdio};
use wire::ipv4::Header;

/// Returns a capture file of raw IP packets (pcap, link type 101).
fn capture(net: &Network) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 65_535, 101] {
        out.extend_from_slice(&word.to_ne_bytes());
    }
    for (at, _, transmit) in &net.sent {
        let packet = Header::new(sctp::PROTOCOL, transmit.src, transmit.dst).emit(&transmit.bytes);
        let (seconds, micros) = (at.0 / 1_000_000_000, at.0 / 1000 % 1_000_000);
        for word in [seconds as u32, micros as u32, packet.len() as u32, packet.len() as u32] {
            out.extend_from_slice(&word.to_ne_bytes());
        }
        out.extend_from_slice(&packet);
    }
    out
}

/// Returns the fields `fields` of all packets in `capture`, one line for each packet. `None` if tshark is not
/// installed.
fn fields(capture: &[u8], fields: &[&str]) -> Option<Vec<String>> {
    let options = ["-r", "-", "-o", "sctp.checksum:CRC 32c", "-T", "fields", "-E", "occurrence=a"];
    let fields = fields.iter().flat_map(|field| ["-e", field]);
    let mut child = Command::new("tshark")
        .args(options)
        .args(fields)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    child.stdin.take().unwrap().write_all(capture).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

/// In a whole handoff, with SHA-256 and with SHA-1, tshark finds only right checksums and well-formed packets, and
/// recognizes each chunk.
#[test]
fn tshark_reads_a_handoff_without_complaint() {
    for hmacs in [vec![Hmac::Sha256, Hmac::Sha1], vec![Hmac::Sha1]] {
        let config = Config { hmacs, ..Config::default() };
        let mut net = Network::opened(&config);
        net.association(0).write(0, 0, b"hello").unwrap();
        for changes in [
            vec![Change::Add(mn(2)), Change::SetPrimary(mn(2))],
            vec![Change::Add(mn(2))], // refused by ourselves
            vec![Change::Delete(mn(1))],
        ] {
            let now = net.now;
            _ = net.association(0).change(now, &changes);
            net.run_for(300);
        }
        let now = net.now;
        net.association(0).finish(now);
        net.run_for(1000);
        let capture = capture(&net);
        let Some(lines) = fields(
            &capture,
            &["sctp.chunk_type", "sctp.checksum.status", "_ws.malformed", "_ws.expert.message"],
        ) else {
            #[expect(
                clippy::disallowed_methods,
                reason = "a skipped test must not pass unseen on a build server"
            )]
            let on_build_server = std::env::var("CI").is_ok();
            assert!(!on_build_server, "tshark is needed here");
            eprintln!("SKIPPED: no tshark on this machine");
            return;
        };
        assert_eq!(lines.len(), net.sent.len());
        for line in &lines {
            let columns: Vec<&str> = line.split('\t').collect();
            assert_eq!(columns[1], "1", "the checksum is good: {line}");
            assert_eq!(columns[2], "", "{line}");
            assert_eq!(columns[3], "", "{line}");
        }
        let kinds: Vec<&str> = lines.iter().map(|line| line.split('\t').next().unwrap()).collect();
        assert_eq!(kinds[..4], ["1", "2", "10", "11"]);
        for kind in ["15,193", "15,128", "4", "5", "7", "8", "14"] {
            assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
        }
    }
}
