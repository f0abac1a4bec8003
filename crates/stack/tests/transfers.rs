//! Streams over links that lose, duplicate and reorder packets: all data arrive unchanged, and buffers stay bounded.

use crate::harness;
use harness::{Net, User, at, noise};
use node::{Guard, MigrateOp, StreamId, StreamOp, Transport, Tuple};
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use stack::Output;
use tcp::{Profile, TooBig};
use wire::{Instant, PacketId};

const CLIENT: StreamId = StreamId(1);
const SERVER: StreamId = StreamId(2);
const ACCEPTED: StreamId = StreamId(StreamId::DRIVER);

fn listen() -> StreamOp {
    StreamOp::Listen { by: Transport::Tcp, local: at(1, 80), foreign: false }
}

fn open() -> StreamOp {
    StreamOp::Open { by: Transport::Tcp, local: None, peer: at(1, 80), foreign: false }
}

fn says(bytes: Vec<u8>, appetite: usize) -> User {
    User { says: bytes, appetite, finishes: true, ..User::default() }
}

fn sum(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Host 0 connects to host 1. Both write all their data and read all that they receive.
fn conversation(profile: &Profile, up: usize, down: usize, appetite: usize) -> Net {
    let mut net = Net::new(2, profile);
    net.user(1, SERVER, listen(), User::default());
    net.hosts[1].guest = Some(says(noise(1, down), appetite));
    net.user(0, CLIENT, open(), says(noise(2, up), appetite));
    net
}

#[track_caller]
fn assert_done(net: &Net) {
    let (client, server) = (&net.hosts[0].users[&CLIENT], &net.hosts[1].users[&ACCEPTED]);
    assert_eq!([&client.closed, &server.closed], [&[None]; 2]);
    assert_eq!(sum(&client.heard), sum(&server.says), "downwards");
    assert_eq!(sum(&server.heard), sum(&client.says), "upwards");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn what_is_read_is_what_was_written(
        loss in 0u64..8,
        reorder in 0u64..30,
        double in 0u64..10,
        appetite in prop_oneof![Just(1000usize), Just(100_000), Just(StreamOp::ALL)],
        which in 0usize..5,
        narrow in any::<bool>(),
        up in 0usize..60_000,
    ) {
        let waits = Profile { too_big: TooBig::AwaitTimeout, ..Profile::rfc6298_reno() };
        let profiles =
            [Profile::linux_like(), Profile::rfc6298_reno(), Profile::linux(), Profile::bsd44(), waits];
        let mut net = conversation(&profiles[which], up, 150_000, appetite);
        (net.loss, net.reorder, net.double) = (loss, reorder, double);
        net.mtu = if narrow { 600 } else { 1500 };
        net.run(4000);
        assert_done(&net);
    }

    /// A connection moves between two hosts while data flow in both directions.
    #[test]
    fn a_connection_survives_its_moves(loss in 0u64..4, pause in 20u64..200, which in 0usize..3) {
        let profile = [Profile::linux_like(), Profile::rfc6298_reno(), Profile::linux()][which].clone();
        let mut net = Net::new(3, &profile);
        net.user(1, SERVER, listen(), User::default());
        net.hosts[1].guest = Some(says(noise(1, 600_000), 10_000));
        net.user(0, CLIENT, open(), says(noise(2, 400_000), 10_000));
        net.loss = loss;
        let (mut here, mut there, mut id) = (1, 2, ACCEPTED);
        net.run(1);
        for number in 0..40 {
            let until = net.now + wire::Duration::from_millis(pause);
            while net.step(until) {}
            let Some(next) = relocate(&mut net, here, there, id, StreamId(100 + number)) else { break };
            id = next;
            std::mem::swap(&mut here, &mut there);
        }
        net.run(4000);
        let client = &net.hosts[0].users[&CLIENT];
        let server = &net.hosts[here].users[&id];
        prop_assert_eq!([&client.closed, &server.closed], [&[None]; 2]);
        prop_assert_eq!(sum(&client.heard), sum(&server.says));
        prop_assert_eq!(sum(&server.heard), sum(&client.says));
    }
}

/// Moves the server's end of the connection with client port 49152. Returns its new stream, or `None` if it cannot
/// move.
fn relocate(net: &mut Net, here: usize, there: usize, id: StreamId, new: StreamId) -> Option<StreamId> {
    let tuple = Tuple { local: at(1, 80), remote: at(0, 49_152) };
    net.op(there, new, StreamOp::Migrate(MigrateOp::Guard(tuple, Some(Guard::Hold(8)))));
    net.op(here, id, StreamOp::Migrate(MigrateOp::Freeze));
    net.op(here, id, StreamOp::Migrate(MigrateOp::Export));
    let Some(state) = net.hosts[here].exported.take() else {
        net.op(there, new, StreamOp::Migrate(MigrateOp::Guard(tuple, None)));
        net.op(here, id, StreamOp::Migrate(MigrateOp::Thaw));
        return None;
    };
    let before = net.hosts[here].users.remove(&id).unwrap();
    let user = User {
        says: before.says,
        said: before.said,
        heard: before.heard,
        appetite: before.appetite,
        finishes: before.finishes,
        ..User::default()
    };
    net.hosts[here].users.insert(id, User::default());
    net.op(here, id, StreamOp::Migrate(MigrateOp::Guard(tuple, Some(Guard::Drop))));
    net.op(here, id, StreamOp::Migrate(MigrateOp::Forget));
    net.owner.insert(*tuple.local.ip(), there);
    net.user(there, new, StreamOp::Migrate(MigrateOp::Import(state)), user);
    net.op(there, new, StreamOp::Migrate(MigrateOp::Thaw));
    net.op(there, new, StreamOp::Migrate(MigrateOp::Guard(tuple, None)));
    net.read(there, new);
    Some(new)
}

/// Data are delivered only when the user reads. The window closes, and both buffers bound the data that wait.
#[test]
fn who_does_not_read_is_not_overrun() {
    let profile = Profile::rfc6298_reno();
    let mut net = Net::new(2, &profile);
    net.user(1, SERVER, listen(), User::default());
    net.hosts[1].guest = Some(says(noise(1, 1_000_000), 1));
    net.user(0, CLIENT, open(), User::default());
    net.run(100);
    let said = net.hosts[1].users[&ACCEPTED].said;
    assert!(said <= (profile.receive_buffer + profile.send_buffer) as usize && said > 100_000, "{said}");
    net.hosts[0].users.get_mut(&CLIENT).unwrap().appetite = 10_000;
    net.read(0, CLIENT);
    net.run(400);
    assert_eq!(net.hosts[0].users[&CLIENT].heard.len(), 1_000_000);
}

#[test]
fn a_large_transfer_takes_the_bandwidth_of_its_window() {
    let mut net = conversation(&Profile::linux_like(), 0, 3_000_000, 100_000);
    net.run(5);
    assert_done(&net);
}

#[test]
fn what_belongs_to_nobody_is_refused() {
    let mut net = Net::new(2, &Profile::rfc6298_reno());
    net.user(0, CLIENT, open(), User::default());
    net.run(1);
    assert_eq!(net.hosts[0].users[&CLIENT].closed, [Some("connection refused".to_owned())]);
    assert_eq!(net.hosts[1].lost, [(PacketId(1), stack::reason::NO_SOCKET)]);
}

#[test]
fn who_writes_beyond_its_credit_is_cut_off() {
    let mut net = conversation(&Profile::rfc6298_reno(), 0, 0, 1);
    *net.hosts[0].users.get_mut(&CLIENT).unwrap() = User::default();
    net.run(1);
    net.op(0, CLIENT, StreamOp::Write(vec![0; 200_000]));
    assert_eq!(net.hosts[0].users[&CLIENT].closed, [Some("wrote beyond its credit".to_owned())]);
    net.run(1);
    assert_eq!(net.hosts[1].users[&ACCEPTED].closed, [Some("connection reset by the peer".to_owned())]);
}

/// A frozen connection sends no segment and answers none, whatever arrives and however long it is frozen.
#[test]
fn what_is_frozen_is_silent() {
    let mut net = conversation(&Profile::rfc6298_reno(), 100_000, 500_000, 10_000);
    let until = net.now + wire::Duration::from_millis(100);
    while net.step(until) {}
    net.op(1, ACCEPTED, StreamOp::Migrate(MigrateOp::Freeze));
    let (lines, lost) = (from_server(&net), net.hosts[1].lost.len());
    net.run(20);
    assert_eq!(from_server(&net), lines);
    assert!(net.hosts[1].lost.len() > lost);
    net.op(1, ACCEPTED, StreamOp::Migrate(MigrateOp::Thaw));
    net.run(400);
    assert_done(&net);
}

fn from_server(net: &Net) -> usize {
    net.log.matches("10.0.0.1:80 -> ").count()
}

#[test]
fn a_guard_answers_for_a_connection_that_is_not_there() {
    let tuple = Tuple { local: at(1, 80), remote: at(0, 49_152) };
    for (guard, answers, lost) in
        [(Guard::Drop, 0, "frozen"), (Guard::Reset, 1, "guard_reset"), (Guard::Hold(1), 0, "guard_full")]
    {
        let mut net = Net::new(2, &Profile::rfc6298_reno());
        net.op(1, SERVER, StreamOp::Migrate(MigrateOp::Guard(tuple, Some(guard))));
        net.user(0, CLIENT, open(), User::default());
        net.run(5);
        assert_eq!(from_server(&net), answers, "{guard:?}");
        assert_eq!(net.hosts[1].lost.last().unwrap().1.0, lost);
        let mut held = 0;
        net.hosts[1].stack.holds(&mut |_| held += 1);
        assert_eq!(held, usize::from(matches!(guard, Guard::Hold(_))));
    }
}

/// A forged error about a sequence number that is not in flight has no effect (RFC 5927).
#[test]
fn an_error_about_what_was_not_sent_is_not_believed() {
    let mut net = conversation(&Profile::linux_like(), 0, 3_000_000, 100_000);
    net.run(1);
    let mut quote =
        wire::ipv4::Header::new(tcp::PROTOCOL, *at(1, 80).ip(), *at(0, 0).ip()).emit(&vec![0; 1400]);
    quote.truncate(28);
    quote[20..24].copy_from_slice(&[0, 80, 0xc0, 0]);
    let body = [&[0, 0, 2, 100][..], &quote].concat();
    let error = wire::icmp::Message { kind: 3, code: 4, body: &body }.emit();
    let bytes = wire::ipv4::Header::new(wire::ipv4::ICMP, *at(7, 0).ip(), *at(1, 0).ip()).emit(&error);
    let mut out = Output::default();
    net.hosts[1].stack.receive(net.now, PacketId(1), &bytes, &mut out);
    assert_eq!(out.lost, [(PacketId(1), stack::reason::ICMP_STRANGE)]);
}

#[test]
fn ports_are_not_given_twice_to_one_peer() {
    let mut net = Net::new(2, &Profile::rfc6298_reno());
    for number in 0..20 {
        net.user(0, StreamId(number), open(), User::default());
    }
    let local = Some(at(0, 49_152));
    net.user(
        0,
        StreamId(50),
        StreamOp::Open { by: Transport::Tcp, local, peer: at(1, 80), foreign: false },
        User::default(),
    );
    assert_eq!(net.hosts[0].users[&StreamId(50)].closed, [Some("address in use".to_owned())]);
}

#[test]
fn an_idle_stack_is_small_and_a_stray_segment_makes_it_no_larger() {
    assert!(size_of::<stack::Stack>() <= 96, "{}", size_of::<stack::Stack>());
    let mut net = Net::new(1, &Profile::rfc6298_reno());
    net.user(0, CLIENT, open(), User::default());
    assert!(net.hosts[0].stack.deadline().is_some());
    assert!(net.hosts[0].stack.info(CLIENT).is_some_and(|info| info.mss == 1460));
    assert_eq!(net.now, Instant::ZERO);
}

/// Tracing does not change the segments of a connection. Without tracing there are no marks.
#[test]
fn what_goes_on_inside_is_marked_where_it_is_asked_for() {
    let play = |traced| {
        let mut net = conversation(&Profile { traced, ..Profile::linux() }, 20_000, 300_000, 10_000);
        net.loss = 3;
        net.run(4000);
        assert_done(&net);
        net
    };
    let (traced, silent) = (play(true), play(false));
    assert_eq!((traced.log == silent.log, silent.hosts[1].marks.len()), (true, 0));
    let server = &traced.hosts[1].marks;
    let text = |mark: &node::Mark| format!("{} {} {:?}", mark.role, mark.name, mark.fields);
    let named = |name: &str| server.iter().filter(|mark| mark.name == name).map(text).collect::<Vec<_>>();
    let states = named("state");
    let seen = |state: &str| states.iter().any(|line| line.contains(state) && line.contains("10.0.0.1:80"));
    assert!(seen("SYN-RECEIVED") && seen("ESTABLISHED") && seen("CLOSED"), "{states:?}");
    // Each value has at least its initial mark. A loss lowers `ssthresh` only once for each window, and the round-trip
    // time of the path is constant.
    for (name, least) in
        [("cwnd", 3), ("ssthresh", 2), ("srtt", 1), ("rto", 2), ("recovering", 3), ("retransmissions", 3)]
    {
        assert!(named(name).len() >= least, "{name}: {:?}", named(name));
    }
}
