//! The stack: two hosts, users that act as the input says, and wires that lose, duplicate, reorder and forge packets.

use fuzz::{Fate, Wire};
use node::stream::{OwnedMigrateEvent, OwnedStreamEvent};
use node::{Guard, MigrateOp, StreamId, StreamOp, Transport, Tuple};
use stack::{Output, Stack};
use std::collections::BTreeMap;
use std::sync::Arc;
use tcp::Profile;
use wire::{Duration, Instant, Ipv4Addr, Malformed, PacketId, Reader, Rng, SocketAddrV4};

const HOSTS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
const PORT: u16 = 80;
/// A host that sends this number of packets at one instant is in an endless loop.
const MOST: usize = 20_000;

/// Runs the target on one input.
pub(crate) fn run(bytes: &[u8]) {
    let mut r = Reader::new(bytes, Malformed("end"));
    let mut net = Network::new();
    while net.step(&mut r).is_ok() {}
}

struct Host {
    stack: Stack,
    /// The streams that were reported to the user of this host, each with its credit in bytes.
    streams: BTreeMap<StreamId, usize>,
    exported: Option<Box<wire::TcpState>>,
    next: u32,
}

struct Network {
    now: Instant,
    hosts: [Host; 2],
    /// The datagrams on their way to each host.
    wires: [Wire<Vec<u8>>; 2],
}

impl Network {
    fn new() -> Self {
        let profile = Arc::new(Profile { receive_buffer: 8000, send_buffer: 8000, ..Profile::linux_like() });
        let host = |number: usize| Host {
            stack: Stack::new(Some(HOSTS[number]), 1500, Arc::clone(&profile), Rng::new(number as u64)),
            streams: BTreeMap::new(),
            exported: None,
            next: 0,
        };
        let mut net = Self { now: Instant::ZERO, hosts: [host(0), host(1)], wires: Default::default() };
        for (number, address) in HOSTS.into_iter().enumerate() {
            let local = SocketAddrV4::new(address, PORT);
            net.makes(number, StreamOp::Listen { by: Transport::Tcp, local, foreign: false });
        }
        net
    }

    /// Executes one step of the input. The lowest bit of its code selects the host.
    fn step(&mut self, r: &mut Reader<'_>) -> Result<(), Malformed> {
        let code = r.u8()?;
        let who = usize::from(code & 1);
        match code >> 1 & 15 {
            0..=2 => self.happens(who, Fate::Arrives),
            3 => self.happens(who, Fate::Lost),
            4 => self.happens(who, Fate::Copied),
            5 => self.happens(who, Fate::Reordered),
            6 => {
                let mut forged = self.wires[who].step(Fate::Copied).unwrap_or_default();
                let (at, change) = (usize::from(r.u16()?), r.u8()?);
                if let Some(byte) = forged.get_mut(at) {
                    *byte ^= change;
                }
                self.arrives(who, &forged);
            }
            7 => self.expires(who),
            8 => self.now += Duration::from_millis(u64::from(r.u8()?)),
            9 => {
                let peer = SocketAddrV4::new(HOSTS[1 - who], PORT);
                self.makes(who, StreamOp::Open { by: Transport::Tcp, local: None, peer, foreign: false });
            }
            10 => {
                let local = SocketAddrV4::new(HOSTS[who], PORT);
                let remote = SocketAddrV4::new(HOSTS[1 - who], 49_152 + u16::from(r.u8()? & 3));
                let guards = [None, Some(Guard::Drop), Some(Guard::Reset), Some(Guard::Hold(3))];
                let guard = guards[usize::from(r.u8()? & 3)];
                self.makes(who, StreamOp::Migrate(MigrateOp::Guard(Tuple { local, remote }, guard)));
            }
            11 => {
                if let Some(state) = self.hosts[who].exported.take() {
                    self.makes(who, StreamOp::Migrate(MigrateOp::Import(state)));
                }
            }
            _ => self.uses(who, r)?,
        }
        Ok(())
    }

    /// Executes an operation of the user of one stream.
    fn uses(&mut self, who: usize, r: &mut Reader<'_>) -> Result<(), Malformed> {
        let (which, what) = (usize::from(r.u8()?), r.u8()?);
        let host = &mut self.hosts[who];
        let nth = which % host.streams.len().max(1);
        let Some((id, credit)) = host.streams.iter_mut().nth(nth) else { return Ok(()) };
        let op = match what & 15 {
            0..=3 => {
                let len = (*credit).min(usize::from(what) * 40);
                *credit -= len;
                StreamOp::Write(vec![7; len])
            }
            4..=7 => StreamOp::Read(usize::from(what) * 40 + 1),
            8 | 9 => StreamOp::Finish,
            10 => StreamOp::Abort,
            11 => StreamOp::Migrate(MigrateOp::Freeze),
            12 => StreamOp::Migrate(MigrateOp::Export),
            13 => StreamOp::Migrate(MigrateOp::Thaw),
            14 => StreamOp::Migrate(MigrateOp::Forget),
            _ => StreamOp::Write(vec![7; 9000]),
        };
        let id = *id;
        self.operates(who, id, op);
        Ok(())
    }

    fn makes(&mut self, who: usize, op: StreamOp) {
        let id = StreamId(self.hosts[who].next);
        self.hosts[who].next += 1;
        self.operates(who, id, op);
    }

    fn operates(&mut self, who: usize, id: StreamId, op: StreamOp) {
        let mut out = Output::default();
        self.hosts[who].stack.operate(self.now, id, op, &mut out);
        self.settle(who, out);
    }

    fn happens(&mut self, who: usize, fate: Fate) {
        if let Some(bytes) = self.wires[who].step(fate) {
            self.arrives(who, &bytes);
        }
    }

    fn arrives(&mut self, who: usize, bytes: &[u8]) {
        let mut out = Output::default();
        self.hosts[who].stack.receive(self.now, PacketId(1), bytes, &mut out);
        self.settle(who, out);
    }

    fn expires(&mut self, who: usize) {
        let Some(at) = self.hosts[who].stack.deadline() else { return };
        self.now = self.now.max(at);
        let mut out = Output::default();
        self.hosts[who].stack.timeout(self.now, &mut out);
        let next = self.hosts[who].stack.deadline();
        assert!(next.is_none_or(|next| next > self.now), "a timer that goes off for ever");
        self.settle(who, out);
    }

    fn settle(&mut self, who: usize, out: Output) {
        assert!(out.packets.len() < MOST, "it never falls silent");
        self.wires[1 - who].send(out.packets, MOST);
        let host = &mut self.hosts[who];
        for told in out.events {
            match told {
                OwnedStreamEvent::Accepted { new, .. } => {
                    assert_eq!(host.streams.insert(new, 0), None, "given twice")
                }
                OwnedStreamEvent::Opened(id, _)
                | OwnedStreamEvent::Migrate(id, OwnedMigrateEvent::Imported) => {
                    assert_eq!(host.streams.insert(id, 0), None)
                }
                OwnedStreamEvent::Room(id, more) => {
                    let credit = host.streams.get_mut(&id).expect("credit for an unknown stream");
                    *credit += more;
                    assert!(*credit <= 8000, "more credit than buffer");
                }
                OwnedStreamEvent::Data(id, _, bytes) => {
                    assert!(host.streams.contains_key(&id) && !bytes.is_empty() && bytes.len() <= 8000);
                }
                OwnedStreamEvent::Migrate(_, OwnedMigrateEvent::Exported(state)) => {
                    host.exported = Some(state)
                }
                OwnedStreamEvent::Closed(id, _) => drop(host.streams.remove(&id)),
                OwnedStreamEvent::Finished(id)
                | OwnedStreamEvent::Migrate(id, OwnedMigrateEvent::Refused(_))
                | OwnedStreamEvent::Migrate(id, OwnedMigrateEvent::Parted(_)) => {
                    assert!(host.streams.contains_key(&id) || host.next > id.0, "an unknown stream");
                }
            }
        }
    }
}
