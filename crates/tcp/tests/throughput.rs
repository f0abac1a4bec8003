//! The speed of two ends without a network: the bytes that one end sends are passed to the other end, and parsed there.
//!
//! `cargo test --release -p tcp --test connection -- --nocapture throughput::` prints a line of JSON with the speed.
//! The speed depends on the machine, and the test does not check it. The test checks that every byte arrives as it was
//! written.

use std::net::{Ipv4Addr, SocketAddrV4};
use tcp::{Connection, Profile, Segment, Seq};
use wire::{Duration, Instant};

const BYTES: usize = 256 << 20;
const US: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 1);
const PEER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 2);
/// The time between two rounds of segments and answers. If it were zero, timestamps would not advance.
const STEP: Duration = Duration::from_micros(10);

/// Returns the bytes that the stream repeats. Their number is no multiple of a segment's payload.
fn pattern() -> Vec<u8> {
    (0..65_521u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Passes all segments of `from` to `to` as bytes. Returns their number.
fn hand_over(now: Instant, from: &mut Connection, to: &mut Connection) -> u64 {
    let mut segments = 0;
    let (src, dst) = (*from.local().ip(), *from.remote().ip());
    while let Some(segment) = from.poll(now) {
        let bytes = segment.emit(src, dst);
        to.receive(now, &Segment::parse(&bytes, src, dst).unwrap());
        segments += 1;
    }
    segments
}

/// Transfers `bytes` bytes. Returns the number of segments of both ends.
fn transfer(bytes: usize) -> u64 {
    let profile = Profile::linux();
    let (pattern, mut now, mut segments) = (pattern(), Instant::ZERO, 0);
    let mut client = Connection::connect(US, PEER, Seq(1), &profile);
    let syn = client.poll(now).unwrap();
    let mut server = Connection::accept(now, PEER, US, &syn, Seq(1), &profile).unwrap();
    let (mut written, mut read) = (0, 0);
    while read < bytes {
        let from = written % pattern.len();
        let most = (bytes - written).min(pattern.len() - from);
        written += client.write(&pattern[from..from + most]);
        segments += hand_over(now, &mut client, &mut server);
        while server.readable() > 0 {
            let from = read % pattern.len();
            let got = server.read(pattern.len() - from);
            assert_eq!(got, pattern[from..from + got.len()], "byte {read} and on");
            read += got.len();
        }
        segments += hand_over(now, &mut server, &mut client);
        now += STEP;
        assert!(now < Instant::ZERO + Duration::from_mins(10), "it came to a halt at byte {read}");
    }
    assert_eq!(client.info().retransmissions, 0, "nothing was lost, and nothing was late");
    segments
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it measures time")]
fn two_ends_with_nothing_between() {
    transfer(BYTES / 16); // warms up the memory
    let begin = std::time::Instant::now();
    let segments = transfer(BYTES);
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{{\"tcp_mb_s\":{:.0},\"bytes\":{BYTES},\"segments\":{segments}}}",
        BYTES as f64 / 1e6 / seconds
    );
    assert!(segments as usize > BYTES / 1460, "segments are no larger than the path");
}
