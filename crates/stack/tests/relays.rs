//! Tests of a host that relays data, FIN and reset between two other hosts. Both connections of the relay can move to
//! another host, and staged bytes are not lost.

use crate::harness;
use harness::{Net, User, address, at, noise};
use node::{MigrateOp, SocketOption, StreamId, StreamOp, Transport};
use proptest::prelude::*;
use tcp::{Profile, State};
use wire::Duration;

const CLIENT: StreamId = StreamId(1);
const SERVER: StreamId = StreamId(2);
/// The first two streams of the relay: accepted from the client, and opened to the server.
const NEAR: StreamId = StreamId(StreamId::DRIVER);
const FAR: StreamId = StreamId(4);
const ACCEPTED: StreamId = StreamId(StreamId::DRIVER);
/// The number of the address by which the server knows the client. Host 0 is the client, host 1 the server, and hosts 2
/// and 3 are the relays.
const CLIENT_NAME: u8 = 9;

fn says(bytes: Vec<u8>) -> User {
    User { says: bytes, appetite: 10_000, finishes: true, ..User::default() }
}

/// The client and the server exchange data through host 2, which has joined its two streams with nothing staged.
fn relayed(profile: &Profile, up: usize, down: usize) -> Net {
    relayed_to(says(noise(2, up)), profile, down)
}

fn relayed_to(client: User, profile: &Profile, down: usize) -> Net {
    relayed_with(client, profile, down, &[])
}

/// Returns a network like `relayed`, but with this client. `knobs` are set on both connections of the relay before they
/// open.
fn relayed_with(client: User, profile: &Profile, down: usize, knobs: &[SocketOption]) -> Net {
    let mut net = Net::new(4, profile);
    net.owner.insert(address(CLIENT_NAME), 2);
    let listen = |host| StreamOp::Listen { by: Transport::Tcp, local: at(host, 80), foreign: false };
    net.user(1, SERVER, listen(1), User::default());
    net.hosts[1].guest = Some(says(noise(1, down)));
    for (id, knob) in [StreamId(3), FAR].into_iter().flat_map(|id| knobs.iter().map(move |knob| (id, *knob)))
    {
        net.op(2, id, StreamOp::Set(knob));
    }
    net.user(2, StreamId(3), listen(2), User::default());
    let open = |peer, local: Option<_>, foreign| StreamOp::Open { by: Transport::Tcp, local, peer, foreign };
    net.user(0, CLIENT, open(at(2, 80), None, false), client);
    net.user(2, FAR, open(at(1, 80), Some(at(CLIENT_NAME, 5000)), true), User::default());
    let until = net.now + Duration::from_secs(3);
    while (!net.hosts[2].users.contains_key(&NEAR) || net.hosts[2].users[&FAR].credit == 0) && net.step(until)
    {
    }
    net.op(2, NEAR, StreamOp::Migrate(MigrateOp::Join(FAR, [Vec::new(), Vec::new()])));
    net
}

#[track_caller]
fn assert_done(net: &Net) {
    let (client, server) = (&net.hosts[0].users[&CLIENT], &net.hosts[1].users[&ACCEPTED]);
    assert_eq!([&client.closed, &server.closed], [&[None]; 2]);
    assert!(client.heard == server.says, "downwards: {} of {}", client.heard.len(), server.says.len());
    assert!(server.heard == client.says, "upwards: {} of {}", server.heard.len(), client.says.len());
}

/// Moves both sides of a relay to another host, with their addresses and the staged bytes. A side that has ended
/// cleanly stays, and the bytes that it had received move with the other side. Returns the number of sides that have
/// moved.
fn relocate(net: &mut Net, from: usize, to: usize, ids: [StreamId; 2], new: [StreamId; 2]) -> usize {
    let there: Vec<usize> = (0..2).filter(|at| net.hosts[from].users[&ids[*at]].closed.is_empty()).collect();
    for at in &there {
        net.op(from, ids[*at], StreamOp::Migrate(MigrateOp::Freeze));
    }
    let mut staged = [Vec::new(), Vec::new()];
    if there.len() == 2 {
        net.op(from, ids[0], StreamOp::Migrate(MigrateOp::Part));
        staged = net.hosts[from].parted.take().unwrap();
    }
    let mut states = [None, None];
    for at in &there {
        net.op(from, ids[*at], StreamOp::Migrate(MigrateOp::Export));
        states[*at] = net.hosts[from].exported.take();
        net.op(from, ids[*at], StreamOp::Migrate(MigrateOp::Forget));
    }
    // If only one side moves, the bytes that are staged for it become unacknowledged bytes of its connection.
    let moved = states.iter().flatten().count();
    for (state, for_it) in states.iter_mut().zip([&staged[1], &staged[0]]).filter(|_| moved == 1) {
        let Some(state) = state else { continue };
        assert!(state.finished && state.unread.is_empty(), "something is left to relay");
        // A side that was closed before the move has left its bytes and its end to the other side.
        assert!(there.len() == 2 || state.finishing, "a side was closed before its bytes were relayed");
        state.unacknowledged.extend(for_it);
        state.finishing = true;
    }
    for (new, state) in new.into_iter().zip(states) {
        let ended = User { closed: vec![None], ..User::default() };
        match state {
            Some(state) => {
                net.owner.insert(*state.local.ip(), to);
                net.user(to, new, StreamOp::Migrate(MigrateOp::Import(state)), User::default());
            }
            None => drop(net.hosts[to].users.insert(new, ended)),
        }
    }
    if moved == 2 {
        net.op(to, new[0], StreamOp::Migrate(MigrateOp::Join(new[1], staged)));
    }
    for id in new {
        net.op(to, id, StreamOp::Migrate(MigrateOp::Thaw));
    }
    moved
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn what_is_read_is_what_was_written(
        loss in 0u64..6, reorder in 0u64..20, double in 0u64..10, linux in any::<bool>(), up in 0usize..60_000
    ) {
        let profile = if linux { Profile::linux_like() } else { Profile::rfc6298_reno() };
        let mut net = relayed(&profile, up, 150_000);
        (net.loss, net.reorder, net.double) = (loss, reorder, double);
        net.run(4000);
        assert_done(&net);
    }

    #[test]
    fn a_relayed_connection_survives_its_moves(loss in 0u64..4, pause in 20u64..200) {
        moves_to_and_fro(loss, pause);
    }
}

/// The server's side has ended, but the client's side still has data and its FIN to send. So only the client's side
/// moves. It is closed after the move.
#[test]
fn a_side_moves_alone_where_the_other_has_ended() {
    let alone: usize = [(0, 56), (0, 124), (1, 124), (1, 145), (2, 41), (3, 60)]
        .map(|(loss, pause)| moves_to_and_fro(loss, pause))
        .iter()
        .sum();
    assert!(alone > 0, "none has moved alone");
}

/// The client reads nothing before the move. The server's side has ended, in TIME-WAIT or after it, with received
/// bytes for which the client's side has no room. These bytes move with the client's side.
#[test]
fn what_an_ended_side_had_received_moves_with_the_other() {
    for server_first in [false, true] {
        let mut client = says(noise(2, 1000));
        client.appetite = 0;
        client.finishes = !server_first;
        let down = 150_000;
        let mut net = relayed_to(client, &Profile::rfc6298_reno(), down);
        net.run(100);
        let client = net.hosts[0].users.get_mut(&CLIENT).unwrap();
        (client.appetite, client.finishes) = (10_000, true);
        net.speak(0, CLIENT);
        net.run(5);
        let moved = relocate(&mut net, 2, 3, [NEAR, FAR], [StreamId(100), StreamId(101)]);
        let owner = *net.owner.get(&address(2)).unwrap();
        net.read(0, CLIENT);
        net.run(4000);
        assert_done(&net);
        assert_eq!((moved, owner), (1, 3), "the server's side had not ended");
    }
}

/// The relay moves while the client's side waits for the last acknowledgment, and holds bytes of the client for a server
/// that reads nothing. The client's side ends on the new host before these bytes are written. It must stay open, because
/// the relay would end with it. A second move takes the bytes with the server's side.
#[test]
fn a_side_that_moves_and_ends_leaves_its_bytes_to_the_relay() {
    for moves in [1, 2] {
        let mut net = relayed(&Profile::rfc6298_reno(), 150_000, 0);
        let server = net.hosts[1].guest.as_mut().expect("the server has not accepted yet");
        (server.appetite, server.finishes) = (0, false);
        net.run(5);
        net.op(1, ACCEPTED, StreamOp::Finish);
        // The server's FIN arrives after 10 ms. The acknowledgment of the client's side's FIN arrives 20 ms later.
        let until = net.now + Duration::from_millis(15);
        while net.step(until) {}
        let state = net.hosts[2].stack.info(NEAR).map(|info| info.state);
        assert_eq!(state, Some(State::LastAck));
        let new = [StreamId(100), StreamId(101)];
        assert_eq!(relocate(&mut net, 2, 3, [NEAR, FAR], new), 2);
        net.run(5);
        let closed = |net: &Net, host: usize, ids: [StreamId; 2]| {
            ids.map(|id| net.hosts[host].users[&id].closed.clone())
        };
        assert_eq!(closed(&net, 3, new), [[], []], "a side was closed before the server had its bytes");
        let (mut here, mut ids) = (3, new);
        if moves == 2 {
            (here, ids) = (2, [StreamId(102), StreamId(103)]);
            assert_eq!(relocate(&mut net, 3, here, new, ids), 1);
        }
        net.hosts[1].users.get_mut(&ACCEPTED).unwrap().appetite = 10_000;
        net.read(1, ACCEPTED);
        net.run(4000);
        assert_done(&net);
        assert_eq!(closed(&net, here, ids), [[None], [None]]);
    }
}

/// Moves a relay to another host and back 400 times, with load in both directions at first. Returns the number of moves
/// in which only one side moved.
fn moves_to_and_fro(loss: u64, pause: u64) -> usize {
    let mut net = relayed(&Profile::rfc6298_reno(), 1_500_000, 2_000_000);
    net.loss = loss;
    let (mut here, mut there, mut ids) = (2, 3, [NEAR, FAR]);
    let mut moves = [0; 3];
    for number in 0..400 {
        let until = net.now + Duration::from_millis(pause);
        while net.step(until) {}
        let new = [StreamId(100 + 2 * number), StreamId(101 + 2 * number)];
        moves[relocate(&mut net, here, there, ids, new)] += 1;
        ids = new;
        std::mem::swap(&mut here, &mut there);
    }
    net.run(4000);
    assert!(moves[2] >= 3, "{moves:?} moves");
    assert_done(&net);
    moves[1]
}

/// The buffers of both connections, and the pipe between them, bound the bytes that a router keeps for a client that
/// does not read.
#[test]
fn who_does_not_read_is_not_overrun() {
    let profile = Profile::rfc6298_reno();
    let mut net = relayed_to(User::default(), &profile, 2_000_000);
    net.run(200);
    let most = 2 * (profile.receive_buffer + profile.send_buffer) as usize + 64 * 1024;
    let said = net.hosts[1].users[&ACCEPTED].said;
    assert!(said <= most && said > most / 2, "{said} of {most}");
}

/// If buffers are set for a relay's connections, they bound the bytes that the relay keeps. The buffer sizes
/// of the host's profile have no effect then.
#[test]
fn buffers_of_its_own_bound_a_relay() {
    let knobs = [SocketOption::SendBuffer(4096), SocketOption::ReceiveBuffer(4096)];
    let mut net = relayed_with(User::default(), &Profile::linux_like(), 4_000_000, &knobs);
    net.run(200);
    net.op(2, NEAR, StreamOp::Migrate(MigrateOp::Freeze));
    net.op(2, FAR, StreamOp::Migrate(MigrateOp::Freeze));
    let mut kept = |id| {
        net.op(2, id, StreamOp::Migrate(MigrateOp::Export));
        let state = net.hosts[2].exported.take().unwrap();
        (state.unread.len(), state.unacknowledged.len())
    };
    let ((up, near), (far, back)) = (kept(NEAR), kept(FAR));
    assert!((1..=4096).contains(&far) && (1..=4096).contains(&near), "{far} and {near}");
    assert_eq!((up, back), (0, 0));
    net.op(2, NEAR, StreamOp::Migrate(MigrateOp::Part));
    let pipes = net.hosts[2].parted.take().unwrap().map(|pipe| pipe.len());
    assert_eq!(
        pipes,
        [0, 4096],
        "the pipe to the slow reader is full, and holds a page as the daemon's does"
    );
}

/// An announced receive window is not taken back. When it is used up, the next window has the size that was set.
#[test]
fn a_smaller_window_comes_when_the_larger_is_used_up() {
    let client = User { appetite: 10_000, ..User::default() };
    let mut net = relayed_to(client, &Profile::rfc6298_reno(), 600_000);
    net.op(2, FAR, StreamOp::Set(SocketOption::ReceiveBuffer(4096)));
    net.op(2, NEAR, StreamOp::Set(SocketOption::SendBuffer(4096)));
    let until = net.now + Duration::from_mins(1);
    while net.hosts[0].users[&CLIENT].heard.len() < 400_000 && net.step(until) {}
    net.op(2, FAR, StreamOp::Migrate(MigrateOp::Freeze));
    net.op(2, FAR, StreamOp::Migrate(MigrateOp::Export));
    let state = net.hosts[2].exported.take().unwrap();
    let window = state.receive_window as usize + state.unread.len();
    assert!((1..=4096).contains(&window), "{window}");
    net.op(2, FAR, StreamOp::Migrate(MigrateOp::Thaw));
    net.run(4000);
    assert_done(&net);
}

/// Credit that was granted before the change stays valid. When it is used, new credit has the size that was set.
#[test]
fn credit_stays_good_when_the_buffer_becomes_smaller() {
    let mut net = Net::new(2, &Profile::rfc6298_reno());
    let listen = StreamOp::Listen { by: Transport::Tcp, local: at(1, 80), foreign: false };
    net.user(1, SERVER, listen, User::default());
    let open = StreamOp::Open { by: Transport::Tcp, local: None, peer: at(1, 80), foreign: false };
    net.user(0, CLIENT, open, User::default());
    net.run(1);
    let credit = net.hosts[0].users[&CLIENT].credit;
    assert_eq!(credit, Profile::rfc6298_reno().send_buffer as usize);
    net.op(0, CLIENT, StreamOp::Set(SocketOption::SendBuffer(3000)));
    net.op(0, CLIENT, StreamOp::Write(noise(1, credit)));
    net.run(100);
    let user = &net.hosts[0].users[&CLIENT];
    // The peer does not read, but its receive window has room for all data that were written. So the new credit is
    // exactly the new size.
    assert_eq!((user.closed.len(), user.credit - credit), (0, 3000));
}

#[test]
fn staged_bytes_go_first_and_come_back() {
    let mut net = relayed(&Profile::rfc6298_reno(), 0, 0);
    net.hosts[0].users.get_mut(&CLIENT).unwrap().finishes = false;
    net.op(2, NEAR, StreamOp::Migrate(MigrateOp::Freeze));
    net.op(2, FAR, StreamOp::Migrate(MigrateOp::Freeze));
    net.op(2, NEAR, StreamOp::Migrate(MigrateOp::Part));
    net.op(2, NEAR, StreamOp::Migrate(MigrateOp::Join(FAR, [b"up".to_vec(), b"down".to_vec()])));
    net.op(2, NEAR, StreamOp::Migrate(MigrateOp::Part));
    assert_eq!(net.hosts[2].parted.take(), Some([b"up".to_vec(), b"down".to_vec()]), "nothing was sent");
    net.op(2, NEAR, StreamOp::Migrate(MigrateOp::Join(FAR, [b"up".to_vec(), b"down".to_vec()])));
    net.op(2, FAR, StreamOp::Migrate(MigrateOp::Thaw));
    net.op(2, NEAR, StreamOp::Migrate(MigrateOp::Part));
    assert_eq!(net.hosts[2].parted.take(), Some([Vec::new(), b"down".to_vec()]), "one side was thawed");
}

/// A reset of one side resets the other side of the relay: bytes may be lost, so that side must not end cleanly.
#[test]
fn a_reset_of_one_side_resets_the_other() {
    for (host, id, other, user) in [(0, CLIENT, 1, ACCEPTED), (1, ACCEPTED, 0, CLIENT)] {
        let mut net = relayed(&Profile::rfc6298_reno(), 500_000, 500_000);
        let until = net.now + Duration::from_millis(200);
        while net.step(until) {}
        net.op(host, id, StreamOp::Abort);
        net.run(1);
        let reset = Some("connection reset by the peer".to_owned());
        assert_eq!(net.hosts[other].users[&user].closed, std::slice::from_ref(&reset));
        assert_eq!([&net.hosts[2].users[&NEAR].closed, &net.hosts[2].users[&FAR].closed], [&[reset]; 2]);
    }
}

#[test]
fn only_two_open_connections_can_be_joined_and_once() {
    let mut net = relayed(&Profile::rfc6298_reno(), 0, 0);
    let lines = |net: &Net| net.log.matches("cannot join").count() + net.log.matches("not joined").count();
    let nothing = || [Vec::new(), Vec::new()];
    for (number, (id, op)) in [
        (NEAR, StreamOp::Migrate(MigrateOp::Join(FAR, nothing()))),
        (StreamId(3), StreamOp::Migrate(MigrateOp::Part)),
        (StreamId(3), StreamOp::Migrate(MigrateOp::Join(NEAR, nothing()))),
    ]
    .into_iter()
    .enumerate()
    {
        net.op(2, id, op);
        assert_eq!(lines(&net), number + 1, "{}", net.log);
    }
}
