//! A relay of two live connections moves between the kernels of two routers, under load in both directions. The bytes
//! under way between its ends move with it. It also moves after one end has finished, and after both have.

use super::ingress_tests::IngressFilter;
use super::tcp::Tcp;
use crate::host_link::{KERNEL_SIDE, accept_foreign_addresses};
use crate::testing::in_sandbox_of_root_and_of_nobody;
use node::stream::{OwnedMigrateEvent, OwnedStreamEvent, refusal};
use node::{Addr, MigrateOp, StreamId, StreamOp, Transport};
use os::{End, EndPlace, NetNs, Netlink, counters, ethtool, namespace::sysctl, pause};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, spawn};
use wire::{Duration, Ipv4Addr, Mac, Prefix, Rng};

/// The address of the fixed host and of the mobile host. Both are in this namespace.
const PEER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
/// `MOBILE` is the mobile host's address as the fixed host knows it. `ANCHOR` is the first router's address as the
/// mobile host knows it. Neither router has one of these addresses.
const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 7);
const ANCHOR: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 1);
const WIRED: StreamId = StreamId(1);
const RADIO: StreamId = StreamId(2);
const MOVES: u64 = 50;
/// Bytes that both talkers must receive between two moves.
const LOAD: u64 = 20_000;

/// Makes a router's namespace, connected by a veth pair.
fn router(device: &str, last: u8) -> NetNs {
    let there = NetNs::create().unwrap();
    let mut here = Netlink::open().unwrap();
    // Without ARP a kernel sends frames to its own link address, so both ends have the same one.
    let mac = Mac([2, 0, 0, 0, 1, last]);
    let near = End { name: device, mac, place: EndPlace::Here };
    here.add_veth(&near, &End { name: KERNEL_SIDE, mac, place: EndPlace::Fd(there.as_fd()) }).unwrap();
    here.set_arp(device, false).unwrap();
    here.set_up(device, true).unwrap();
    let _ = sysctl(&format!("net/ipv4/conf/{device}/rp_filter"), "0");
    ethtool::offloads_off(device).unwrap();
    let set_up = || {
        let mut net = Netlink::open().unwrap();
        net.loopback_up().unwrap();
        net.add_address(KERNEL_SIDE, Ipv4Addr::new(10, 8, 0, last), 32).unwrap();
        net.set_arp(KERNEL_SIDE, false).unwrap();
        net.set_up(KERNEL_SIDE, true).unwrap();
        net.set_route(Prefix::ANY, KERNEL_SIDE, None).unwrap();
        ethtool::offloads_off(KERNEL_SIDE).unwrap();
        accept_foreign_addresses().unwrap();
    };
    there.run(set_up).unwrap();
    there
}

/// A peer that sends until a stop is requested, and receives until the end.
struct Talker {
    heard: Arc<AtomicU64>,
    says: JoinHandle<u64>,
    hears: JoinHandle<(u64, bool)>,
}

impl Talker {
    /// Sends the random bytes of one seed, and compares what it receives with those of another.
    fn new(peer: TcpStream, says: u64, hears: u64, stop: &Arc<AtomicBool>) -> Self {
        let (heard, stop) = (Arc::new(AtomicU64::new(0)), Arc::clone(stop));
        let mut out = peer.try_clone().unwrap();
        let says = spawn(move || {
            let (mut words, mut said) = (Rng::new(says), 0);
            while !stop.load(Ordering::Relaxed) {
                let bytes: Vec<u8> = (0..5000).map(|_| words.draw() as u8).collect();
                out.write_all(&bytes).unwrap();
                said += bytes.len() as u64;
            }
            out.shutdown(Shutdown::Write).unwrap();
            said
        });
        let count = Arc::clone(&heard);
        let hears = spawn(move || {
            let (mut peer, mut words, mut right) = (peer, Rng::new(hears), true);
            let mut bytes = vec![0; 16_384];
            loop {
                let got = peer.read(&mut bytes).unwrap();
                if got == 0 {
                    return (count.load(Ordering::Relaxed), right);
                }
                right &= bytes[..got].iter().all(|byte| *byte == words.draw() as u8);
                count.fetch_add(got as u64, Ordering::Relaxed);
            }
        });
        Self { heard, says, hears }
    }
}

struct Stage {
    routers: [NetNs; 2],
    filters: [IngressFilter; 2],
    devices: [&'static str; 2],
    net: Netlink,
    tcp: Tcp,
    told: Vec<OwnedStreamEvent>,
    at: usize,
    ended: BTreeSet<StreamId>,
}

impl Stage {
    fn op(&mut self, id: StreamId, op: StreamOp) {
        let (tcp, told) = (&mut self.tcp, &mut self.told);
        self.routers[self.at].run(|| tcp.operate(id, op, &|_| false, told)).unwrap();
    }

    fn until(&mut self, what: &str, mut done: impl FnMut(&[OwnedStreamEvent]) -> bool) {
        for _ in 0..20_000 {
            self.look();
            if done(&self.told) {
                return;
            }
            pause(Duration::from_micros(500));
        }
        panic!("{what} never came; {:?}", self.told);
    }

    fn look(&mut self) {
        let (tcp, filter) = (&mut self.tcp, &self.filters[self.at]);
        self.routers[self.at].run(|| filter.listen(tcp)).unwrap();
        self.tcp.turn(&mut 0, &mut self.told);
    }

    fn route(&mut self) {
        for address in [MOBILE, ANCHOR] {
            self.net.set_route(Prefix::host(address), self.devices[self.at], None).unwrap();
        }
    }

    /// Moves the relay from one router to the other. Returns the number of bytes between its ends, or `None` if
    /// nothing is left to be moved. A connection that has ended cleanly stays behind.
    fn relocate(&mut self) -> Option<usize> {
        self.routers[self.at].run(|| self.filters[self.at].shut()).unwrap();
        self.note_ends();
        let there: Vec<StreamId> = [WIRED, RADIO].into_iter().filter(|id| !self.ended.contains(id)).collect();
        for id in &there {
            self.op(*id, StreamOp::Migrate(MigrateOp::Freeze));
        }
        if there.len() == 2 {
            self.op(WIRED, StreamOp::Migrate(MigrateOp::Part));
        }
        for op in [StreamOp::Migrate(MigrateOp::Export), StreamOp::Migrate(MigrateOp::Forget)] {
            for id in &there {
                self.op(*id, op.clone());
            }
        }
        let mut staged = [Vec::new(), Vec::new()];
        let mut states = Vec::new();
        for told in std::mem::take(&mut self.told) {
            match told {
                OwnedStreamEvent::Migrate(WIRED, OwnedMigrateEvent::Parted(bytes)) => staged = bytes,
                OwnedStreamEvent::Migrate(id, OwnedMigrateEvent::Exported(state)) => states.push((id, state)),
                OwnedStreamEvent::Migrate(id, OwnedMigrateEvent::Refused(why))
                    if why == refusal::NOT_ESTABLISHED =>
                {
                    self.ended.insert(id);
                }
                // The relay is over, but both connections may still have bytes to deliver.
                OwnedStreamEvent::Migrate(WIRED, OwnedMigrateEvent::Refused(why)) => {
                    assert_eq!(why, refusal::NOT_JOINED);
                }
                OwnedStreamEvent::Closed(_, None) => {}
                told => panic!("{told:?}"),
            }
        }
        self.at = 1 - self.at;
        self.tcp = Tcp::alone(Some(PEER));
        self.route();
        let between = staged.iter().map(Vec::len).sum();
        if let [(id, state)] = &mut states[..] {
            assert!(state.finished && state.unread.is_empty(), "something is left to relay");
            state.unacknowledged.extend(&staged[usize::from(*id == WIRED)]);
            state.finishing = true;
        }
        let moved: Vec<StreamId> = states.iter().map(|(id, _)| *id).collect();
        for (id, state) in states {
            self.op(id, StreamOp::Migrate(MigrateOp::Import(state)));
        }
        if moved.len() == 2 {
            self.op(WIRED, StreamOp::Migrate(MigrateOp::Join(RADIO, staged)));
        }
        let imported: Vec<OwnedStreamEvent> =
            moved.iter().map(|id| OwnedStreamEvent::Migrate(*id, OwnedMigrateEvent::Imported)).collect();
        assert_eq!(self.told, imported);
        self.told.clear();
        self.routers[self.at].run(IngressFilter::open).unwrap();
        for id in &moved {
            self.op(*id, StreamOp::Migrate(MigrateOp::Thaw));
        }
        (!moved.is_empty()).then_some(between)
    }

    /// Notes the connections that have ended, all of them cleanly.
    fn note_ends(&mut self) {
        self.told.retain(|told| match told {
            OwnedStreamEvent::Closed(id, None) => {
                self.ended.insert(*id);
                false
            }
            _ => true,
        });
        assert_eq!(self.told, []);
    }

    fn is_over(&self) -> bool {
        self.ended.len() == 2
    }
}

/// Two talkers: one is connected to the first end of a relay, the other to the second end.
struct Talk {
    stage: Stage,
    talkers: [Talker; 2],
    stop: [Arc<AtomicBool>; 2],
}

impl Talk {
    fn begin() -> Self {
        let mut net = Netlink::open().unwrap();
        net.loopback_up().unwrap();
        net.add_address("lo", PEER, 32).unwrap();
        let routers = [router("p0", 1), router("p1", 2)];
        let filters = routers.each_ref().map(|router| IngressFilter::of(router, KERNEL_SIDE));
        routers[1].run(|| filters[1].shut()).unwrap();
        let tcp = Tcp::alone(Some(PEER));
        let mut stage = Stage {
            routers,
            filters,
            devices: ["p0", "p1"],
            net,
            tcp,
            told: Vec::new(),
            at: 0,
            ended: BTreeSet::new(),
        };
        stage.route();
        let stop = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let ends = [(WIRED, MOBILE, 80, 1, 2, &stop[0]), (RADIO, ANCHOR, 81, 2, 1, &stop[1])];
        let talkers = ends.map(|(id, local, port, says, hears, stop)| {
            let listener = TcpListener::bind((PEER, port)).unwrap();
            let (local, peer) = (Some(Addr::new(local, 4000 + port)), Addr::new(PEER, port));
            stage.op(id, StreamOp::Open { by: Transport::Tcp, local, peer, foreign: true });
            Talker::new(listener.accept().unwrap().0, says, hears, stop)
        });
        stage.until("both", |told| {
            told.iter().filter(|told| matches!(told, OwnedStreamEvent::Opened(..))).count() == 2
        });
        stage.told.clear();
        stage.op(WIRED, StreamOp::Migrate(MigrateOp::Join(RADIO, [Vec::new(), Vec::new()])));
        Self { stage, talkers, stop }
    }

    /// Moves the relay after these talkers have received enough. Returns the number of bytes between its ends.
    fn relocate_under_load(&mut self, talkers: &[usize]) -> usize {
        let heard = |at: &usize| self.talkers[*at].heard.load(Ordering::Relaxed);
        let before: Vec<u64> = talkers.iter().map(heard).collect();
        let more =
            |_: &[OwnedStreamEvent]| talkers.iter().zip(&before).all(|(at, then)| heard(at) > then + LOAD);
        self.stage.until("the load", more);
        self.stage.relocate().expect("both are there")
    }

    fn stops(&self, talker: usize) {
        self.stop[talker].store(true, Ordering::Relaxed);
    }

    /// Checks that every byte has arrived, with one handshake for each talker and without a reset.
    fn end(mut self) {
        for _ in 0..20_000 {
            self.stage.look();
            self.stage.note_ends();
            if self.stage.is_over() {
                break;
            }
            pause(Duration::from_micros(500));
        }
        assert!(self.stage.is_over(), "the end never came");
        let [wired, radio] =
            self.talkers.map(|talker| (talker.says.join().unwrap(), talker.hears.join().unwrap()));
        assert_eq!((wired.1, radio.1), ((radio.0, true), (wired.0, true)), "every byte, once, in order");
        let mut all: Vec<_> = self.stage.routers.iter().map(|router| router.run(counters::here)).collect();
        all.push(Ok(counters::here()));
        for counted in all {
            let counted = counted.unwrap().unwrap();
            assert_eq!(counted["Tcp.OutRsts"], 0, "{counted:?}");
        }
        assert_eq!(counters::here().unwrap()["Tcp.PassiveOpens"], 2, "one handshake each");
    }
}

#[test]
fn a_relay_moves_between_routers_fifty_times_under_load() {
    in_sandbox_of_root_and_of_nobody(|| {
        let mut talk = Talk::begin();
        let between = (0..MOVES).filter(|_| talk.relocate_under_load(&[0, 1]) > 0).count();
        assert!(between > 0, "no move had bytes between the ends");
        talk.stops(0);
        talk.stops(1);
        talk.end();
    });
}

/// A relay moves several times after one end has finished, with the bytes of the other end. After that, the other end
/// finishes too.
#[test]
fn a_relay_moves_while_its_ends_finish() {
    in_sandbox_of_root_and_of_nobody(|| {
        let mut talk = Talk::begin();
        talk.relocate_under_load(&[0, 1]);
        talk.stops(1);
        for _ in 0..10 {
            talk.relocate_under_load(&[1]);
        }
        talk.stops(0);
        // The relay is moved until nothing is left to be moved.
        for _ in 0..10 {
            talk.stage.look();
            talk.stage.note_ends();
            if talk.stage.is_over() || talk.stage.relocate().is_none() {
                break;
            }
        }
        talk.end();
    });
}
