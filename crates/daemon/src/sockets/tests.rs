//! Tests of the kernel's TCP as a stream, and of a live connection that moves from one kernel to another.

use super::ingress_tests::IngressFilter;
use super::tcp::Tcp;
use super::{Screened, Sockets};
use crate::testing::{in_sandbox, in_sandbox_of_root_and_of_nobody};
use node::stream::{OwnedMigrateEvent, OwnedStreamEvent, refusal};
use node::{Guard, MigrateOp, StreamId, StreamOp, Transport, Tuple};
use os::{End, EndPlace, NetNs, Netlink, counters, ethtool, namespace::sysctl};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use wire::{Duration, Ipv4Addr, Mac, PacketId, Prefix, SocketAddrV4};

const PEER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const MOVES: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 9);
const STREAM: StreamId = StreamId(1);

fn open(port: u16) -> StreamOp {
    StreamOp::Open { by: Transport::Tcp, local: None, peer: SocketAddrV4::new(PEER, port), foreign: false }
}

/// Gives the loopback of this namespace these addresses.
fn at_loopback(addresses: &[Ipv4Addr]) -> Netlink {
    let mut net = Netlink::open().unwrap();
    net.loopback_up().unwrap();
    for address in addresses {
        net.add_address("lo", *address, 32).unwrap();
    }
    net
}

fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut rng = wire::Rng::new(seed);
    (0..len).map(|_| rng.draw() as u8).collect()
}

/// The user of one stream. It writes what it has as far as it has credit, and reads what the test asks for.
struct User {
    tcp: Tcp,
    id: StreamId,
    says: Vec<u8>,
    said: usize,
    credit: usize,
    heard: Vec<u8>,
    told: Vec<OwnedStreamEvent>,
}

impl User {
    fn new(says: Vec<u8>) -> Self {
        let tcp = Tcp::alone(Some(MOVES));
        Self { tcp, id: STREAM, says, said: 0, credit: 0, heard: Vec::new(), told: Vec::new() }
    }

    fn op(&mut self, op: StreamOp) {
        self.tcp.operate(self.id, op, &|_| false, &mut self.told);
        self.absorb();
    }

    /// Takes credit and data from the events; the others remain.
    fn absorb(&mut self) {
        for told in std::mem::take(&mut self.told) {
            match told {
                OwnedStreamEvent::Room(_, more) => self.credit += more,
                OwnedStreamEvent::Data(_, _, bytes) => self.heard.extend(bytes),
                other => self.told.push(other),
            }
        }
    }

    fn round(&mut self) {
        self.tcp.turn(&mut 0, &mut self.told);
        self.absorb();
        let most = self.says.len().min(self.said + self.credit);
        if most > self.said {
            let bytes = self.says[self.said..most].to_vec();
            self.credit -= bytes.len();
            self.said = most;
            self.op(StreamOp::Write(bytes));
        }
    }

    #[track_caller]
    fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        for _ in 0..2000 {
            self.round();
            if done(self) {
                return;
            }
            os::pause(Duration::from_millis(5));
        }
        panic!("{what} did not come: {:?}", self.told);
    }

    fn closed(&self) -> Option<&Option<String>> {
        self.told
            .iter()
            .find_map(|told| if let OwnedStreamEvent::Closed(_, why) = told { Some(why) } else { None })
    }
}

#[test]
fn a_conversation_with_another_program() {
    in_sandbox(|| {
        at_loopback(&[PEER, MOVES]);
        let listener = TcpListener::bind((PEER, 80)).unwrap();
        let mut user = User::new(pattern(1_000_000, 1));
        user.op(open(80));
        let (mut peer, _) = listener.accept().unwrap();
        user.until("the connection", |user| matches!(user.told.first(), Some(OwnedStreamEvent::Opened(..))));
        assert!(user.said <= 256 * 1024, "no more than the credit");
        peer.set_nonblocking(true).unwrap();
        let mut got = Vec::new();
        user.until("the upload", |_| take(&mut peer, &mut got, usize::MAX) == 1_000_000);
        assert!(got == user.says);
        peer.write_all(b"and back").unwrap();
        user.until("nothing unless it is asked for", |user| user.heard.is_empty());
        user.op(StreamOp::Read(3));
        user.until("a part", |user| user.heard == b"and");
        user.op(StreamOp::Finish);
        drop(peer.shutdown(std::net::Shutdown::Write));
        user.op(StreamOp::Read(99));
        user.until("the rest", |user| user.heard == b"and back");
        user.op(StreamOp::Read(99));
        user.until("the end", |user| user.closed().is_some());
        assert_eq!(user.closed(), Some(&None));
        assert!(matches!(
            user.told[..],
            [OwnedStreamEvent::Opened(..), OwnedStreamEvent::Finished(_), OwnedStreamEvent::Closed(..)]
        ));
        assert_eq!(user.tcp.accounts().len(), 1);
    });
}

#[test]
fn what_goes_wrong_has_the_words_of_both_backends() {
    in_sandbox(|| {
        at_loopback(&[PEER, MOVES]);
        let closed = |user: &mut User| {
            user.until("the end", |user| user.closed().is_some());
            user.closed().cloned().unwrap().unwrap()
        };
        let mut user = User::new(Vec::new());
        user.op(open(81));
        assert_eq!(closed(&mut user), refusal::REFUSED);
        let mut user = User::new(Vec::new());
        let peer = SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 1), 80);
        user.op(StreamOp::Open { by: Transport::Tcp, local: None, peer, foreign: false });
        assert_eq!(closed(&mut user), refusal::UNREACHABLE);
        let listener = TcpListener::bind((PEER, 80)).unwrap();
        let mut user = User::new(Vec::new());
        let local = SocketAddrV4::new(PEER, 80);
        user.op(StreamOp::Listen { by: Transport::Tcp, local, foreign: false });
        assert_eq!(closed(&mut user), refusal::IN_USE);
        // A peer that closes with unread data sends a reset.
        let mut user = User::new(vec![7; 1000]);
        user.op(open(80));
        let (peer, _) = listener.accept().unwrap();
        user.until("the words", |user| user.said == 1000);
        os::pause(Duration::from_millis(20));
        drop(peer);
        user.op(StreamOp::Read(1));
        assert_eq!(closed(&mut user), refusal::RESET);
    });
}

/// Reads what has arrived, until `into` has `most` bytes. Returns the length of `into`.
fn take(from: &mut TcpStream, into: &mut Vec<u8>, most: usize) -> usize {
    let mut buffer = [0; 4096];
    loop {
        if into.len() >= most {
            return into.len();
        }
        match from.read(&mut buffer) {
            Ok(0) => return into.len(),
            Ok(got) => into.extend_from_slice(&buffer[..got]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return into.len(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Makes a namespace that has the moving address, connected by a veth pair. The peer's kernel is the caller's.
fn host(device: &str, last: u8) -> NetNs {
    let there = NetNs::create().unwrap();
    let mut here = Netlink::open().unwrap();
    let near = End { name: device, mac: Mac([2, 0, 0, 0, 1, last]), place: EndPlace::Here };
    let far = End { name: "h0", mac: Mac([2, 0, 0, 0, 2, last]), place: EndPlace::Fd(there.as_fd()) };
    here.add_veth(&near, &far).unwrap();
    here.set_up(device, true).unwrap();
    let _ = sysctl(&format!("net/ipv4/conf/{device}/rp_filter"), "0");
    ethtool::offloads_off(device).unwrap();
    let set_up = || {
        let mut net = Netlink::open().unwrap();
        net.add_address("h0", MOVES, 32).unwrap();
        net.set_up("h0", true).unwrap();
        net.set_route(Prefix::ANY, "h0", None).unwrap();
        ethtool::offloads_off("h0").unwrap();
    };
    there.run(set_up).unwrap();
    there
}

fn resets(of: &NetNs) -> u64 {
    of.run(counters::here).unwrap().unwrap()["Tcp.OutRsts"]
}

/// Moves a connection from one kernel to another, with bytes in every queue, after an attempt that is undone.
#[test]
fn a_live_connection_moves_to_another_kernel() {
    in_sandbox_of_root_and_of_nobody(|| {
        let mut net = at_loopback(&[PEER]);
        let (old, new) = (host("p0", 1), host("p1", 2));
        let [at_old, at_new] = [&old, &new].map(|host| IngressFilter::of(host, "h0"));
        net.set_route(Prefix::host(MOVES), "p0", None).unwrap();
        let listener = TcpListener::bind((PEER, 80)).unwrap();
        let mut user = User::new(pattern(2_000_000, 1));
        old.run(|| user.op(open(80))).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        peer.set_nonblocking(true).unwrap();
        let downward = pattern(40_000, 2);
        assert_eq!(peer.write(&downward).unwrap(), downward.len());
        // The peer reads nothing: bytes wait in the peer's kernel, in the kernel of the moving host, and in the stream.
        user.op(StreamOp::Read(10_000));
        user.until("a part of it", |user| user.heard.len() == 10_000 && user.said > 500_000);

        let frozen = |user: &mut User, op| {
            user.op(StreamOp::Migrate(MigrateOp::Export));
            assert_eq!(user.told.pop(), Some(OwnedStreamEvent::refused(STREAM, refusal::NOT_FROZEN)));
            old.run(|| at_old.shut()).unwrap();
            user.op(StreamOp::Migrate(MigrateOp::Freeze));
            user.op(StreamOp::Migrate(MigrateOp::Export));
            user.op(op);
        };
        // The move is undone, and the connection continues at the old host.
        frozen(&mut user, StreamOp::Migrate(MigrateOp::Thaw));
        assert!(
            matches!(user.told.pop(), Some(OwnedStreamEvent::Migrate(_, OwnedMigrateEvent::Exported(..)))),
            "{:?}",
            user.told
        );
        old.run(IngressFilter::open).unwrap();
        let mut got = Vec::new();
        user.until("more", |_| take(&mut peer, &mut got, 300_000) >= 300_000);

        frozen(&mut user, StreamOp::Migrate(MigrateOp::Forget));
        let Some(OwnedStreamEvent::Closed(_, None)) = user.told.pop() else { panic!("{:?}", user.told) };
        let Some(OwnedStreamEvent::Migrate(_, OwnedMigrateEvent::Exported(state))) = user.told.pop() else {
            panic!("{:?}", user.told)
        };
        assert!(!state.unread.is_empty() && !state.unacknowledged.is_empty(), "bytes in every queue");

        net.set_route(Prefix::host(MOVES), "p1", None).unwrap();
        let mut moved = User { tcp: Tcp::alone(Some(MOVES)), credit: 0, told: Vec::new(), ..user };
        new.run(|| moved.op(StreamOp::Migrate(MigrateOp::Import(state)))).unwrap();
        assert!(
            matches!(moved.told[..], [OwnedStreamEvent::Migrate(_, OwnedMigrateEvent::Imported)]),
            "{:?}",
            moved.told
        );
        moved.told.clear();
        moved.op(StreamOp::Migrate(MigrateOp::Thaw));
        moved.op(StreamOp::Read(1_000_000));
        moved.until("the rest", |user| {
            new.run(|| at_new.listen(&mut user.tcp)).unwrap();
            if user.heard.len() < 40_000 {
                user.op(StreamOp::Read(1_000_000));
            }
            take(&mut peer, &mut got, usize::MAX) == 2_000_000 && user.heard.len() == 40_000
        });
        assert!(got == moved.says && moved.heard == downward, "every byte, once, in order");
        assert_eq!([resets(&old), resets(&new)], [0, 0]);
    });
}

/// A connection that is thawed while it is guarded sends nothing. It is served only when the guard is removed.
#[test]
fn a_guard_outlasts_a_thaw() {
    in_sandbox(|| {
        at_loopback(&[PEER, MOVES]);
        let listener = TcpListener::bind((PEER, 80)).unwrap();
        let mut sockets = Sockets::alone(Some(MOVES));
        let mut told = Vec::new();
        sockets.operate(STREAM, open(80), &mut told);
        let (_peer, remote) = listener.accept().unwrap();
        let local = SocketAddrV4::new(MOVES, remote.port());
        let tuple = Tuple { local, remote: SocketAddrV4::new(PEER, 80) };
        told.extend(sockets.turn().0);
        assert!(matches!(told[..], [OwnedStreamEvent::Opened(..), OwnedStreamEvent::Room(..)]), "{told:?}");

        let mut op = |op| {
            let mut told = Vec::new();
            let done = sockets.operate(STREAM, op, &mut told);
            (told, done.released.len(), done.ended.iter().map(|(_, reason, _)| *reason).collect::<Vec<_>>())
        };
        op(StreamOp::Migrate(MigrateOp::Freeze));
        let (exported, ..) = op(StreamOp::Migrate(MigrateOp::Export));
        let [OwnedStreamEvent::Migrate(_, OwnedMigrateEvent::Exported(state))] = &exported[..] else {
            panic!("{exported:?}")
        };
        op(StreamOp::Migrate(MigrateOp::Forget));
        op(StreamOp::Migrate(MigrateOp::Guard(tuple, Some(Guard::Hold(1)))));
        assert_eq!(
            op(StreamOp::Migrate(MigrateOp::Import(state.clone()))).0,
            [OwnedStreamEvent::Migrate(STREAM, OwnedMigrateEvent::Imported)]
        );
        assert_eq!(op(StreamOp::Migrate(MigrateOp::Thaw)), (vec![], 0, vec![]), "the guard is still there");
        let (lifted, ..) = op(StreamOp::Migrate(MigrateOp::Guard(tuple, None)));
        assert!(matches!(lifted[..], [OwnedStreamEvent::Room(..)]), "{lifted:?}");
    });
}

/// The peer has received more than the former host knew, and the guard held the peer's acknowledgment. The new host
/// sends no byte that the peer already has, not even in its first flight.
#[test]
fn a_held_acknowledgment_counts_before_anything_is_sent() {
    in_sandbox(|| {
        at_loopback(&[PEER, MOVES]);
        let listener = TcpListener::bind((PEER, 80)).unwrap();
        let mut user = User::new(pattern(400_000, 3));
        user.op(open(80));
        let (mut peer, _) = listener.accept().unwrap();
        peer.set_nonblocking(true).unwrap();
        let mut got = Vec::new();
        user.until("all of it", |_| take(&mut peer, &mut got, usize::MAX) == 400_000);
        user.told.clear();
        for op in [
            StreamOp::Migrate(MigrateOp::Freeze),
            StreamOp::Migrate(MigrateOp::Export),
            StreamOp::Migrate(MigrateOp::Forget),
        ] {
            user.op(op);
        }
        let Some(OwnedStreamEvent::Migrate(_, OwnedMigrateEvent::Exported(mut state))) =
            user.told.first().cloned()
        else {
            panic!("{:?}", user.told)
        };
        // The state is set as if no acknowledgment had ever arrived.
        state.send_una = state.send_next.minus(400_000);
        state.unacknowledged = user.says;
        let tuple = Tuple { local: state.local, remote: state.remote };
        let segment = ::tcp::Segment {
            src_port: 80,
            dst_port: state.local.port(),
            seq: state.receive_next,
            ack: state.send_next,
            flags: ::tcp::Flags::ACK,
            window: 500,
            ..::tcp::Segment::default()
        };
        let payload = segment.emit(PEER, MOVES);
        let held = wire::ipv4::Header::new(::tcp::PROTOCOL, PEER, MOVES).emit(&payload);

        let mut sockets = Sockets::alone(Some(MOVES));
        let mut op = |op, told: &mut Vec<OwnedStreamEvent>| sockets.operate(STREAM, op, told).released.len();
        op(StreamOp::Migrate(MigrateOp::Guard(tuple, Some(Guard::Hold(1)))), &mut Vec::new());
        op(StreamOp::Migrate(MigrateOp::Import(state)), &mut Vec::new());
        assert!(matches!(sockets.screen_in(PacketId(1), &held), Screened::Held));
        let mut op = |op, told: &mut Vec<OwnedStreamEvent>| sockets.operate(STREAM, op, told).released.len();
        op(StreamOp::Migrate(MigrateOp::Thaw), &mut Vec::new());
        assert_eq!(op(StreamOp::Migrate(MigrateOp::Guard(tuple, None)), &mut Vec::new()), 1);
        let mut told = Vec::new();
        op(StreamOp::Migrate(MigrateOp::Freeze), &mut told);
        op(StreamOp::Migrate(MigrateOp::Export), &mut told);
        let [OwnedStreamEvent::Migrate(_, OwnedMigrateEvent::Exported(state))] = &told[..] else {
            panic!("{told:?}")
        };
        assert_eq!(state.unacknowledged.len(), 0);
    });
}

/// A new guard of the same tuple checks the segments that the old guard held. If a guard is removed, the kernel gets
/// the segments that the guard held.
#[test]
fn what_a_guard_gives_back_is_looked_at_again() {
    let at = |last, port| SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, last), port);
    let tuple = Tuple { local: at(9, 80), remote: at(1, 40_000) };
    let ends = ::tcp::Segment { src_port: 40_000, dst_port: 80, ..::tcp::Segment::default() };
    let payload = ends.emit(PEER, MOVES);
    let bytes = wire::ipv4::Header::new(::tcp::PROTOCOL, PEER, MOVES).emit(&payload);
    let mut sockets = Sockets::alone(Some(MOVES));
    let guard = |sockets: &mut Sockets, guard| {
        let done =
            sockets.operate(STREAM, StreamOp::Migrate(MigrateOp::Guard(tuple, guard)), &mut Vec::new());
        (done.released.len(), done.ended.iter().map(|(_, reason, _)| *reason).collect::<Vec<_>>())
    };
    for next in [Guard::Drop, Guard::Reset] {
        guard(&mut sockets, Some(Guard::Hold(1)));
        assert!(matches!(sockets.screen_in(PacketId(1), &bytes), Screened::Held));
        let (released, ended) = guard(&mut sockets, Some(next));
        assert_eq!((released, ended.len()), (0, 1), "{next:?}");
    }
    guard(&mut sockets, Some(Guard::Hold(1)));
    assert!(matches!(sockets.screen_in(PacketId(1), &bytes), Screened::Held));
    assert_eq!(guard(&mut sockets, None), (1, vec![]));
}

/// A user writes ahead as far as the kernel allows. A move must not add room to that: otherwise the backlog would reach
/// megabytes after a few moves.
#[test]
fn what_is_written_ahead_does_not_grow_from_move_to_move() {
    in_sandbox(|| {
        let mut net = at_loopback(&[PEER]);
        let there = host("p0", 1);
        let filter = IngressFilter::of(&there, "h0");
        net.set_route(Prefix::host(MOVES), "p0", None).unwrap();
        let listener = TcpListener::bind((PEER, 80)).unwrap();
        let mut user = User::new(vec![7; 40_000_000]);
        there.run(|| user.op(open(80))).unwrap();
        let (_peer, _) = listener.accept().unwrap();
        let mut backlog = Vec::new();
        for _ in 0..8 {
            let mut said = usize::MAX;
            while said != user.said {
                said = user.said;
                (0..20).for_each(|_| user.round());
            }
            user.told.clear();
            // A segment that finds no socket is answered by a reset. So segments are blocked while there is none.
            there.run(|| filter.shut()).unwrap();
            user.op(StreamOp::Migrate(MigrateOp::Freeze));
            user.op(StreamOp::Migrate(MigrateOp::Export));
            user.op(StreamOp::Migrate(MigrateOp::Forget));
            let Some(OwnedStreamEvent::Migrate(_, OwnedMigrateEvent::Exported(state))) =
                user.told.first().cloned()
            else {
                panic!("{:?}", user.told)
            };
            backlog.push(state.unacknowledged.len());
            user.credit = 0;
            there.run(|| user.op(StreamOp::Migrate(MigrateOp::Import(state)))).unwrap();
            there.run(IngressFilter::open).unwrap();
            user.op(StreamOp::Migrate(MigrateOp::Thaw));
        }
        assert!(backlog[7] < 2 * backlog[0], "{backlog:?}");
        assert_eq!(resets(&there), 0);
    });
}

/// The peer has received more than one flight, and its acknowledgments were lost. When the new host repeats the first
/// bytes, the peer acknowledges bytes that this host has not sent. The socket is restarted, so new bytes arrive.
/// Without that, the kernel would discard all further acknowledgments of the peer.
#[test]
fn a_peer_that_has_more_than_was_sent_again_is_caught_up_with() {
    in_sandbox(|| {
        let mut net = at_loopback(&[PEER]);
        let (old, new) = (host("p0", 1), host("p1", 2));
        let [at_old, at_new] = [&old, &new].map(|host| IngressFilter::of(host, "h0"));
        net.set_route(Prefix::host(MOVES), "p0", None).unwrap();
        let listener = TcpListener::bind((PEER, 80)).unwrap();
        let mut user = User::new(pattern(40_000, 3));
        old.run(|| user.op(open(80))).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        peer.set_nonblocking(true).unwrap();
        let mut got = Vec::new();
        user.until("the first part", |_| take(&mut peer, &mut got, usize::MAX) == 40_000);
        old.run(|| at_old.shut()).unwrap();
        user.told.clear();
        for op in [
            StreamOp::Migrate(MigrateOp::Freeze),
            StreamOp::Migrate(MigrateOp::Export),
            StreamOp::Migrate(MigrateOp::Forget),
        ] {
            user.op(op);
        }
        let [
            OwnedStreamEvent::Migrate(_, OwnedMigrateEvent::Exported(state)),
            OwnedStreamEvent::Closed(_, None),
        ] = &user.told[..]
        else {
            panic!("{:?}", user.told)
        };
        // The state is set as if no acknowledgment had ever arrived.
        let mut state = state.clone();
        state.send_una = state.send_next.minus(40_000);
        state.unacknowledged = user.says.clone();
        net.set_route(Prefix::host(MOVES), "p1", None).unwrap();
        let mut moved = User { tcp: Tcp::alone(Some(MOVES)), credit: 0, told: Vec::new(), ..user };
        new.run(|| moved.op(StreamOp::Migrate(MigrateOp::Import(state)))).unwrap();
        moved.says.extend(pattern(20_000, 4));
        moved.op(StreamOp::Migrate(MigrateOp::Thaw));
        moved.until("the rest", |user| {
            new.run(|| at_new.listen(&mut user.tcp)).unwrap();
            take(&mut peer, &mut got, usize::MAX) == 60_000
        });
        assert!(got == moved.says, "every byte, once, in order");
        assert!(!moved.tcp.has_unacked(), "nothing is left to be heard");
        assert_eq!([resets(&old), resets(&new)], [0, 0]);
    });
}

/// The kernel's values of a socket are sampled at most every 20 ms, and only changed values give a mark.
#[test]
fn a_socket_is_looked_at_now_and_then() {
    in_sandbox(|| {
        let _net = at_loopback(&[PEER, MOVES]);
        let listener = TcpListener::bind((PEER, 80)).unwrap();
        let mut sockets = Sockets::alone(Some(MOVES));
        sockets.operate(STREAM, open(80), &mut Vec::new());
        let (peer, _) = listener.accept().unwrap();
        assert!(
            matches!(sockets.turn().0[..], [OwnedStreamEvent::Opened(..), ..]),
            "it is open, and may write"
        );
        let ms = wire::Instant::from_millis;
        let names = |marks: Vec<node::Mark>| marks.iter().map(|mark| mark.name).collect::<Vec<_>>();
        let first = sockets.look(ms(100));
        assert!(first.iter().all(|mark| mark.role == node::mark::TCP && mark.fields.len() == 3));
        assert_eq!(names(first), ["cwnd", "srtt"]);
        assert!(sockets.look(ms(119)).is_empty(), "too soon");
        assert!(sockets.look(ms(120)).is_empty(), "nothing has changed");
        sockets.operate(STREAM, StreamOp::Write(vec![7; 20_000]), &mut Vec::new());
        (&peer).read_exact(&mut vec![0; 20_000]).unwrap();
        assert!(!sockets.look(ms(160)).is_empty(), "the round trip was measured again");
    });
}
