//! Stacks, the link between them, and users that write all their data and read all that they receive.

use node::stream::{OwnedMigrateEvent, OwnedStreamEvent};
use node::{Mark, StreamId, StreamOp};
use stack::{Output, Stack};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tcp::{Flags, Profile, Segment};
use wire::ipv4::{self, Header};
use wire::{Duration, Instant, Ipv4Addr, PacketId, Rng, SocketAddrV4, icmp};

pub(crate) const fn address(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host)
}

pub(crate) const fn at(host: u8, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(address(host), port)
}

pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    (0..len).map(|_| rng.draw() as u8).collect()
}

/// A user of a stream: the data that it writes, and the data that it has read.
#[derive(Default)]
pub(crate) struct User {
    pub(crate) says: Vec<u8>,
    pub(crate) said: usize,
    pub(crate) credit: usize,
    pub(crate) heard: Vec<u8>,
    /// The most bytes of one read; zero reads nothing.
    pub(crate) appetite: usize,
    pub(crate) finishes: bool,
    pub(crate) finished: bool,
    /// The reason for each `Closed` event.
    pub(crate) closed: Vec<Option<String>>,
}

pub(crate) struct Host {
    pub(crate) stack: Stack,
    pub(crate) users: BTreeMap<StreamId, User>,
    /// The user of the next accepted stream.
    pub(crate) guest: Option<User>,
    pub(crate) exported: Option<Box<wire::TcpState>>,
    pub(crate) parted: Option<[Vec<u8>; 2]>,
    pub(crate) lost: Vec<(PacketId, wire::Reason)>,
    pub(crate) marks: Vec<Mark>,
}

pub(crate) struct Net {
    pub(crate) now: Instant,
    pub(crate) hosts: Vec<Host>,
    /// The host that has each address. Host 0 has 10.0.0.0.
    pub(crate) owner: BTreeMap<Ipv4Addr, usize>,
    wire: BTreeMap<(Instant, u64), Vec<u8>>,
    sent: u64,
    pub(crate) delay: Duration,
    /// The probabilities of loss, reordering and duplication of a packet, in percent.
    pub(crate) loss: u64,
    pub(crate) reorder: u64,
    pub(crate) double: u64,
    /// The MTU in bytes of a router between all hosts.
    pub(crate) mtu: usize,
    rng: Rng,
    pub(crate) log: String,
    /// The first sequence number of each address, so that the log does not depend on random numbers.
    first: BTreeMap<SocketAddrV4, u32>,
}

impl Net {
    pub(crate) fn new(hosts: usize, profile: &Profile) -> Self {
        let host = |number: usize| Host {
            stack: Stack::new(
                Some(address(number as u8)),
                1500,
                profile.clone().into(),
                Rng::new(number as u64),
            ),
            users: BTreeMap::new(),
            guest: None,
            exported: None,
            parted: None,
            lost: Vec::new(),
            marks: Vec::new(),
        };
        Self {
            now: Instant::ZERO,
            hosts: (0..hosts).map(host).collect(),
            owner: (0..hosts).map(|number| (address(number as u8), number)).collect(),
            wire: BTreeMap::new(),
            sent: 0,
            delay: Duration::from_millis(10),
            loss: 0,
            reorder: 0,
            double: 0,
            mtu: 1500,
            rng: Rng::new(99),
            log: String::new(),
            first: BTreeMap::new(),
        }
    }

    pub(crate) fn op(&mut self, host: usize, id: StreamId, op: StreamOp) {
        let mut out = Output::default();
        self.hosts[host].stack.operate(self.now, id, op, &mut out);
        self.settle(host, out);
    }

    /// Executes an `Open`, `Listen` or `Import`, with this user of the stream.
    pub(crate) fn user(&mut self, host: usize, id: StreamId, op: StreamOp, user: User) {
        self.hosts[host].users.insert(id, user);
        self.op(host, id, op);
    }

    fn settle(&mut self, host: usize, mut out: Output) {
        for bytes in std::mem::take(&mut out.packets) {
            self.send(host, bytes);
        }
        self.hosts[host].lost.append(&mut out.lost);
        self.hosts[host].marks.append(&mut out.marks);
        for told in out.events {
            self.note(host, &told);
            self.hear(host, told);
        }
    }

    fn hear(&mut self, host: usize, told: OwnedStreamEvent) {
        let this = &mut self.hosts[host];
        match told {
            OwnedStreamEvent::Accepted { new, .. } => {
                let guest = this.guest.take().unwrap_or_default();
                this.users.insert(new, guest);
                self.read(host, new);
            }
            OwnedStreamEvent::Opened(id, _) => self.read(host, id),
            OwnedStreamEvent::Data(id, _, bytes) => {
                let user = this.users.get_mut(&id).unwrap();
                assert!(bytes.len() <= user.appetite && !bytes.is_empty(), "not what was asked for");
                user.heard.extend(bytes);
                if user.appetite != StreamOp::ALL {
                    self.read(host, id);
                }
            }
            OwnedStreamEvent::Room(id, more) => {
                this.users.get_mut(&id).unwrap().credit += more;
                self.speak(host, id);
            }
            OwnedStreamEvent::Closed(id, why) => {
                let closed = &mut this.users.get_mut(&id).unwrap().closed;
                assert!(closed.is_empty(), "closed twice");
                closed.push(why);
            }
            OwnedStreamEvent::Migrate(_, OwnedMigrateEvent::Exported(state)) => this.exported = Some(state),
            OwnedStreamEvent::Migrate(_, OwnedMigrateEvent::Parted(bytes)) => this.parted = Some(bytes),
            // A user that does not finish by itself finishes when its peer has finished.
            OwnedStreamEvent::Finished(id) if !this.users[&id].finishes => {
                self.op(host, id, StreamOp::Finish);
            }
            OwnedStreamEvent::Finished(_)
            | OwnedStreamEvent::Migrate(_, OwnedMigrateEvent::Imported | OwnedMigrateEvent::Refused(..)) => {}
        }
    }

    pub(crate) fn read(&mut self, host: usize, id: StreamId) {
        let Some(user) = self.hosts[host].users.get(&id).filter(|user| user.appetite > 0) else { return };
        let appetite = user.appetite;
        self.op(host, id, StreamOp::Read(appetite));
    }

    pub(crate) fn speak(&mut self, host: usize, id: StreamId) {
        let user = self.hosts[host].users.get_mut(&id).unwrap();
        let most = user.says.len().min(user.said + user.credit);
        let bytes = user.says[user.said..most].to_vec();
        user.credit -= bytes.len();
        user.said = most;
        let ends = user.finishes && user.said == user.says.len() && !user.finished;
        user.finished |= ends;
        if !bytes.is_empty() {
            self.op(host, id, StreamOp::Write(bytes));
        }
        if ends {
            self.op(host, id, StreamOp::Finish);
        }
    }

    fn happens(&mut self, percent: u64) -> bool {
        self.rng.draw() % 100 < percent
    }

    fn send(&mut self, host: usize, bytes: Vec<u8>) {
        let (header, payload) = Header::parse(&bytes).unwrap();
        let line = self.line(&header, payload);
        if bytes.len() > self.mtu {
            assert!(header.dont_fragment);
            self.write(&format!("{line}, too big for {}", self.mtu));
            let [high, low] = (self.mtu as u16).to_be_bytes();
            let body = [&[0, 0, high, low], &bytes[..28]].concat();
            let error = icmp::Message { kind: 3, code: 4, body: &body }.emit();
            let bytes = Header::new(ipv4::ICMP, address(254), address(host as u8)).emit(&error);
            return self.put(bytes);
        }
        if self.happens(self.loss) {
            return self.write(&format!("{line}, lost"));
        }
        self.write(&line);
        if self.happens(self.double) {
            self.put(bytes.clone());
        }
        self.put(bytes);
    }

    /// Sends a datagram. It arrives after the delay of the link, or up to 60 ms later if it is reordered.
    pub(crate) fn put(&mut self, bytes: Vec<u8>) {
        let late = if self.happens(self.reorder) { self.rng.draw() % 60_000_000 } else { 0 };
        self.sent += 1;
        self.wire.insert((self.now + self.delay + Duration::from_nanos(late), self.sent), bytes);
    }

    /// Executes the next event. Returns false if there is no event up to `until`.
    pub(crate) fn step(&mut self, until: Instant) -> bool {
        let timers = self.hosts.iter().enumerate();
        let timer = timers.filter_map(|(host, this)| Some((this.stack.deadline()?, host))).min();
        let packet = self.wire.keys().next().map(|(at, _)| *at);
        let mut out = Output::default();
        match (packet, timer) {
            (Some(at), timer) if at <= until && timer.is_none_or(|(timer, _)| at <= timer) => {
                self.now = at;
                let (key, bytes) = self.wire.pop_first().unwrap();
                let (_, dst) = ipv4::addresses(&bytes).unwrap();
                if let Some(host) = self.owner.get(&dst).copied() {
                    self.hosts[host].stack.receive(at, PacketId(key.1), &bytes, &mut out);
                    self.settle(host, out);
                }
            }
            (_, Some((at, host))) if at <= until => {
                self.now = self.now.max(at);
                self.hosts[host].stack.timeout(self.now, &mut out);
                let next = self.hosts[host].stack.deadline();
                assert!(next.is_none_or(|next| next > self.now), "a timer that goes off for ever");
                self.settle(host, out);
            }
            _ => {
                self.now = until;
                return false;
            }
        }
        true
    }

    pub(crate) fn run(&mut self, seconds: u64) {
        let until = self.now + Duration::from_secs(seconds);
        for _ in 0..5_000_000 {
            if !self.step(until) {
                return;
            }
        }
        panic!("still running at {}", self.now);
    }

    // --- the log ---------------------------------------------------------------------------------------------------

    fn write(&mut self, line: &str) {
        let millis = self.now.since(Instant::ZERO).as_micros() as f64 / 1000.0;
        let _ = writeln!(self.log, "{millis:>9.3}  {line}");
    }

    fn note(&mut self, host: usize, told: &OwnedStreamEvent) {
        let text = match told {
            OwnedStreamEvent::Data(id, _, bytes) => format!("{} Data {} bytes", id.0 & 0xff, bytes.len()),
            OwnedStreamEvent::Migrate(id, OwnedMigrateEvent::Exported(state)) => {
                let (sent, unread) = (state.unacknowledged.len(), state.unread.len());
                format!("{} Exported, {sent} not acknowledged, {unread} not read", id.0 & 0xff)
            }
            OwnedStreamEvent::Accepted { new, peer, .. } => format!("Accepted {} from {peer}", new.0 & 0xff),
            other => {
                let (id, event) = other.event();
                format!("{} {event:?}", id.0 & 0xff)
            }
        };
        self.write(&format!("host {host} is notified: {text}"));
    }

    fn line(&mut self, header: &Header, payload: &[u8]) -> String {
        let Ok(segment) = Segment::parse(payload, header.src, header.dst) else {
            return format!("{} -> {}: protocol {}", header.src, header.dst, header.protocol);
        };
        let (src, dst) = (
            SocketAddrV4::new(header.src, segment.src_port),
            SocketAddrV4::new(header.dst, segment.dst_port),
        );
        let seq = segment.seq.0.wrapping_sub(*self.first.entry(src).or_insert(segment.seq.0));
        let ack = segment.ack.0.wrapping_sub(self.first.get(&dst).copied().unwrap_or(segment.ack.0));
        let bits =
            [(Flags::SYN, 'S'), (Flags::FIN, 'F'), (Flags::RST, 'R'), (Flags::PSH, 'P'), (Flags::ACK, '.')];
        let flags: String = bits.iter().filter(|(bit, _)| segment.has(*bit)).map(|(_, name)| *name).collect();
        let data = match segment.payload.len() {
            0 => String::new(),
            len => format!(" +{len}"),
        };
        format!("{src} -> {dst}: {flags} {seq}{data} ack {ack}")
    }
}
