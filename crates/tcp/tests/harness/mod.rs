//! Two ends and two links in virtual time.

use std::collections::BTreeMap;
use tcp::{Connection, Profile, Segment, Seq, State};
use wire::{Duration, Instant, Ipv4Addr, Rng, SocketAddrV4};

pub(crate) const A: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 2, 0, 1), 4000);
pub(crate) const B: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 1, 0, 7), 80);

/// One direction of a link.
#[derive(Clone)]
pub(crate) struct Link {
    /// The rate in bits per second; 0 is unlimited.
    pub(crate) rate: u64,
    pub(crate) delay: Duration,
    /// The number of packets that may wait, including the one on the wire.
    pub(crate) queue: usize,
    /// The probability of a loss, in percent. `reorder`, `double` and `corrupt` are the probabilities of other faults,
    /// in percent.
    pub(crate) loss: u64,
    pub(crate) reorder: u64,
    pub(crate) double: u64,
    pub(crate) corrupt: u64,
    pub(crate) rng: Rng,
    pub(crate) leaving: Vec<Instant>,
}

impl Link {
    pub(crate) fn perfect(delay_ms: u64) -> Self {
        let delay = Duration::from_millis(delay_ms);
        let leaving = Vec::new();
        Self {
            rate: 0,
            delay,
            queue: usize::MAX,
            loss: 0,
            reorder: 0,
            double: 0,
            corrupt: 0,
            rng: Rng::new(1),
            leaving,
        }
    }

    fn happens(&mut self, percent: u64) -> bool {
        self.rng.draw() % 100 < percent
    }

    /// Flips a random bit, with the probability `corrupt`.
    fn spoil(&mut self, bytes: &mut [u8]) {
        if self.corrupt > 0 && self.happens(self.corrupt) {
            let at = self.rng.draw() as usize % bytes.len();
            bytes[at] ^= 1 << (self.rng.draw() % 8);
        }
    }

    /// Returns the arrival times of the copies of a packet of `bytes` bytes; none if the packet is lost.
    fn carry(&mut self, now: Instant, bytes: usize) -> Vec<Instant> {
        if self.happens(self.loss) {
            return Vec::new();
        }
        let mut at = now;
        if let Some(nanos) = (bytes as u64 * 8 * 1_000_000_000).checked_div(self.rate) {
            self.leaving.retain(|left| *left > now);
            if self.leaving.len() >= self.queue {
                return Vec::new();
            }
            at = self.leaving.last().copied().unwrap_or(now) + Duration::from_nanos(nanos);
            self.leaving.push(at);
        }
        let copies = 1 + usize::from(self.happens(self.double));
        (0..copies)
            .map(|_| {
                let late = if self.happens(self.reorder) { self.rng.draw() % 60_000_000 } else { 0 };
                at + self.delay + Duration::from_nanos(late)
            })
            .collect()
    }
}

/// One end and its application, which writes `data`, reads everything, and finishes after the last byte of `data`.
pub(crate) struct End {
    pub(crate) tcp: Option<Connection>,
    pub(crate) data: Vec<u8>,
    pub(crate) written: usize,
    pub(crate) got: Vec<u8>,
    pub(crate) profile: Profile,
    pub(crate) iss: Seq,
    /// The largest number of bytes that the application reads in one call.
    pub(crate) appetite: usize,
}

impl End {
    pub(crate) fn new(profile: &Profile, iss: u32, data: Vec<u8>) -> Self {
        let (profile, iss) = (profile.clone(), Seq(iss));
        Self { tcp: None, data, written: 0, got: Vec::new(), profile, iss, appetite: usize::MAX }
    }

    fn work(&mut self) {
        let Some(tcp) = &mut self.tcp else { return };
        self.got.extend(tcp.read(self.appetite));
        let most = self.data.len().min(self.written + tcp.room());
        self.written += tcp.write(&self.data[self.written..most]);
        if self.written == self.data.len() {
            tcp.finish();
        }
    }
}

pub(crate) struct Network {
    pub(crate) now: Instant,
    pub(crate) ends: [End; 2],
    pub(crate) links: [Link; 2],
    pub(crate) sent: u64,
    /// The fingerprint (FNV-1a) of all segments that were sent, with their times.
    pub(crate) number: u64,
    wire: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
}

impl Network {
    /// Returns a network of two ends, of which the first connects to the second.
    pub(crate) fn new(mut ends: [End; 2], links: [Link; 2]) -> Self {
        let [a, _] = &mut ends;
        a.tcp = Some(Connection::connect(A, B, a.iss, &a.profile));
        Self {
            now: Instant::ZERO,
            ends,
            links,
            sent: 0,
            number: 0xcbf2_9ce4_8422_2325,
            wire: BTreeMap::new(),
        }
    }

    /// Lets the application of an end work, and sends what its connection may send.
    pub(crate) fn flush(&mut self, who: usize) {
        let (src, dst) = if who == 0 { (A, B) } else { (B, A) };
        let end = &mut self.ends[who];
        end.work();
        while let Some(segment) = end.tcp.as_mut().and_then(|tcp| tcp.poll(self.now)) {
            let bytes = segment.emit(*src.ip(), *dst.ip());
            for byte in self.now.0.to_be_bytes().into_iter().chain([who as u8]).chain(bytes.iter().copied()) {
                self.number = (self.number ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
            for at in self.links[who].carry(self.now, bytes.len() + 20) {
                self.sent += 1;
                let mut bytes = bytes.clone();
                self.links[who].spoil(&mut bytes);
                self.wire.insert((at, self.sent), (1 - who, bytes));
            }
        }
    }

    fn arrive(&mut self, who: usize, bytes: &[u8]) {
        let (src, dst) = if who == 0 { (B, A) } else { (A, B) };
        let Ok(segment) = Segment::parse(bytes, *src.ip(), *dst.ip()) else { return };
        let end = &mut self.ends[who];
        match &mut end.tcp {
            Some(tcp) => tcp.receive(self.now, &segment),
            None => end.tcp = Connection::accept(self.now, dst, src, &segment, end.iss, &end.profile),
        }
        self.flush(who);
    }

    /// Executes the next event. Returns false if there is none.
    pub(crate) fn step(&mut self) -> bool {
        // An application that left bytes unread reads again 10 ms later.
        let again = self.now + Duration::from_millis(10);
        let deadline = |end: &End| {
            let tcp = end.tcp.as_ref()?;
            tcp.deadline().into_iter().chain((tcp.readable() > 0).then_some(again)).min()
        };
        let timers = (0..2).filter_map(|who| Some((deadline(&self.ends[who])?, who)));
        let timer = timers.min();
        let packet = self.wire.keys().next().map(|(at, _)| *at);
        match (packet, timer) {
            (Some(at), None) => self.take(at),
            (Some(at), Some((timer, _))) if at <= timer => self.take(at),
            (_, Some((at, who))) => {
                self.now = self.now.max(at);
                if let Some(tcp) = &mut self.ends[who].tcp {
                    tcp.timeout(self.now);
                }
                self.flush(who);
            }
            (None, None) => return false,
        }
        true
    }

    fn take(&mut self, at: Instant) {
        self.now = at;
        if let Some((_, (who, bytes))) = self.wire.pop_first() {
            self.arrive(who, &bytes);
        }
    }

    /// Runs until `done`, or until there are no more events; panics after too many steps.
    pub(crate) fn run(&mut self, done: impl Fn(&Self) -> bool) {
        self.flush(0);
        for _ in 0..20_000_000 {
            if done(self) || !self.step() {
                return;
            }
        }
        panic!("still running at {}", self.now);
    }

    pub(crate) fn states(&self) -> [Option<State>; 2] {
        [0, 1].map(|who: usize| self.ends[who].tcp.as_ref().map(Connection::state))
    }

    pub(crate) fn tcp(&mut self, who: usize) -> &mut Connection {
        self.ends[who].tcp.as_mut().unwrap()
    }
}

pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    (0..len).map(|_| rng.draw() as u8).collect()
}
