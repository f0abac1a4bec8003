//! Two hosts, and the network between their addresses, in virtual time.

use auth::Key;
use sctp::{
    Association, AssociationEvent, AssociationId, Config, Endpoint, Open, Piece, Rejection, State, Transmit,
};
use std::collections::BTreeMap;
use wire::{Duration, Instant, Ipv4Addr, Reason, Rng};

pub(crate) const fn mn(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, last, 0, 7)
}

pub(crate) const CN: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 9);
pub(crate) const CN2: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 9);
pub(crate) const PORT: u16 = 80;

pub(crate) fn endpoint(config: &Config, seed: u64) -> Endpoint {
    Endpoint::new(config.clone(), Key::new([seed as u8; 32]), Rng::new(seed))
}

/// The probability of each fault that the wire adds to a packet, in percent.
#[derive(Clone, Copy, Default)]
pub(crate) struct Weather {
    pub(crate) loss: u64,
    pub(crate) double: u64,
    pub(crate) reorder: u64,
    pub(crate) corrupt: u64,
}

pub(crate) struct Host {
    pub(crate) endpoint: Endpoint,
    pub(crate) id: Option<AssociationId>,
    pub(crate) events: Vec<AssociationEvent>,
    /// The bytes that the host's application writes, in messages of at most `size` bytes. `got`: the bytes that it
    /// has read.
    pub(crate) data: Vec<u8>,
    pub(crate) size: usize,
    written: usize,
    pub(crate) got: Vec<u8>,
    pub(crate) pieces: Vec<Piece>,
    /// The largest number of bytes that the application reads at a time. Zero: it reads nothing.
    pub(crate) appetite: usize,
    pub(crate) finishes: bool,
}

impl Host {
    pub(crate) fn association(&mut self) -> &mut Association {
        self.endpoint.association_mut(self.id.unwrap()).unwrap()
    }

    pub(crate) fn state(&self) -> State {
        self.id.and_then(|id| self.endpoint.association(id)).map_or(State::Closed, Association::state)
    }
}

pub(crate) struct Network {
    pub(crate) now: Instant,
    /// Host 0 is the mobile host, which opens the association. Host 1 is the correspondent, which listens.
    pub(crate) hosts: [Host; 2],
    pub(crate) weather: Weather,
    pub(crate) delay: Duration,
    /// For each host, how many of its next packets are lost.
    pub(crate) drops: [usize; 2],
    /// Transmission time of a byte, in nanoseconds. Packets with the same source and destination leave one after the
    /// other.
    pub(crate) byte: u64,
    free: BTreeMap<(Ipv4Addr, Ipv4Addr), Instant>,
    /// Addresses whose packets are lost in both directions.
    pub(crate) dead: Vec<Ipv4Addr>,
    /// MTUs of paths, in bytes, by destination. A larger packet is dropped, and a router reports that to the sender,
    /// unless the packet may be fragmented.
    pub(crate) narrow: Vec<(Ipv4Addr, u16)>,
    /// All packets that were sent, with the time and the index of the host that sent them.
    pub(crate) sent: Vec<(Instant, usize, Transmit)>,
    pub(crate) refused: Vec<Reason>,
    rng: Rng,
    wire: BTreeMap<(Instant, u64), (usize, Transmit)>,
    count: u64,
}

impl Network {
    pub(crate) fn new(config: &Config) -> Self {
        Self::with(config, config, &[mn(1)], &[CN])
    }

    pub(crate) fn with(mobile: &Config, fixed: &Config, ours: &[Ipv4Addr], theirs: &[Ipv4Addr]) -> Self {
        let host = |config: &Config, seed| Host {
            endpoint: endpoint(config, seed),
            id: None,
            events: Vec::new(),
            data: Vec::new(),
            size: 1000,
            written: 0,
            got: Vec::new(),
            pieces: Vec::new(),
            appetite: usize::MAX,
            finishes: false,
        };
        let mut net = Self {
            now: Instant::from_millis(1000),
            hosts: [host(mobile, 1), host(fixed, 2)],
            weather: Weather::default(),
            delay: Duration::from_millis(10),
            drops: [0; 2],
            byte: 0,
            free: BTreeMap::new(),
            dead: Vec::new(),
            narrow: Vec::new(),
            sent: Vec::new(),
            refused: Vec::new(),
            rng: Rng::new(1),
            wire: BTreeMap::new(),
            count: 0,
        };
        net.hosts[1].endpoint.listen(PORT, theirs);
        let open = Open { local: ours.to_vec(), local_port: 4000, peer: vec![theirs[0]], peer_port: PORT };
        net.hosts[0].id = net.hosts[0].endpoint.open(net.now, &open);
        net.flush(0);
        net
    }

    /// Returns a network with an association that is open at both ends. Each path has 8 Mb/s.
    pub(crate) fn opened(config: &Config) -> Self {
        let mut net = Self::new(config);
        net.byte = 1000;
        net.run_for(500);
        assert_eq!(net.states(), [State::Established; 2]);
        net
    }

    pub(crate) fn seed(&mut self, seed: u64) {
        self.rng = Rng::new(seed);
    }

    pub(crate) fn states(&self) -> [State; 2] {
        [self.hosts[0].state(), self.hosts[1].state()]
    }

    pub(crate) fn association(&mut self, who: usize) -> &mut Association {
        self.hosts[who].association()
    }

    pub(crate) fn events(&self, who: usize) -> &[AssociationEvent] {
        &self.hosts[who].events
    }

    fn happens(&mut self, percent: u64) -> bool {
        self.rng.draw() % 100 < percent
    }

    /// Takes the events of host `who`, runs its application, and puts its packets on the wire.
    pub(crate) fn flush(&mut self, who: usize) {
        loop {
            while let Some((id, event)) = self.hosts[who].endpoint.poll_event() {
                let host = &mut self.hosts[who];
                if event == AssociationEvent::Opened {
                    host.id = Some(id);
                }
                host.events.push(event);
            }
            self.work(who);
            let mut silent = true;
            while let Some(transmit) = self.hosts[who].endpoint.poll_transmit(self.now) {
                silent = false;
                self.send(who, &transmit);
            }
            if silent {
                return;
            }
        }
    }

    fn work(&mut self, who: usize) {
        let host = &mut self.hosts[who];
        let Some(association) = host.id.and_then(|id| host.endpoint.association_mut(id)) else { return };
        while let Some(piece) = Some(host.appetite).filter(|a| *a > 0).and_then(|a| association.read(a)) {
            host.got.extend_from_slice(&piece.data);
            host.pieces.push(piece);
        }
        while host.written < host.data.len() {
            let end = host.data.len().min(host.written + host.size);
            if association.write(0, 7, &host.data[host.written..end]).is_err() {
                break;
            }
            host.written = end;
        }
        if host.finishes && host.written == host.data.len() && association.state() == State::Established {
            association.finish(self.now);
        }
    }

    pub(crate) fn send(&mut self, who: usize, transmit: &Transmit) {
        self.count += 1;
        assert!(self.count < 3_000_000, "it never falls silent");
        self.sent.push((self.now, who, transmit.clone()));
        let gone = self.dead.contains(&transmit.src) || self.dead.contains(&transmit.dst);
        if self.drops[who] > 0 {
            self.drops[who] -= 1;
            return;
        }
        if gone || self.happens(self.weather.loss) {
            return;
        }
        let narrow = self.narrow.iter().find(|(to, _)| *to == transmit.dst).map(|(_, mtu)| *mtu);
        if let Some(mtu) = narrow.filter(|mtu| 20 + transmit.bytes.len() > usize::from(*mtu)) {
            match transmit.cut {
                None => {
                    let (now, endpoint) = (self.now, &mut self.hosts[who].endpoint);
                    endpoint
                        .icmp_error(now, transmit.dst, &transmit.bytes[..8], Rejection::TooBig(mtu))
                        .unwrap();
                    return;
                }
                Some(most) if most > mtu => return,
                Some(_) => {}
            }
        }
        let free = self.free.entry((transmit.src, transmit.dst)).or_default();
        let leaves = (*free).max(self.now) + Duration::from_nanos(self.byte * transmit.bytes.len() as u64);
        *free = leaves;
        let copies = 1 + usize::from(self.happens(self.weather.double));
        for _ in 0..copies {
            let late = if self.happens(self.weather.reorder) { self.rng.draw() % 40_000_000 } else { 0 };
            let mut copy = transmit.clone();
            if self.happens(self.weather.corrupt) {
                let at = self.rng.draw() as usize % copy.bytes.len();
                copy.bytes[at] ^= (self.rng.draw() as u8).max(1);
            }
            self.count += 1;
            self.wire.insert((leaves + self.delay + Duration::from_nanos(late), self.count), (1 - who, copy));
        }
    }

    /// Drops the packets on the wire for which `like` is true. Returns their number.
    pub(crate) fn lose(&mut self, like: impl Fn(&Transmit) -> bool) -> usize {
        let before = self.wire.len();
        self.wire.retain(|_, (_, transmit)| !like(transmit));
        before - self.wire.len()
    }

    /// Runs for `ms` milliseconds. Returns the longest time in which host `who` read nothing, in milliseconds.
    pub(crate) fn stall(&mut self, who: usize, ms: u64) -> u64 {
        let (mut worst, mut since, mut had) = (0, 0, self.hosts[who].got.len());
        for at in (0..ms).step_by(5) {
            self.run_for(5);
            if self.hosts[who].got.len() > had {
                (had, since) = (self.hosts[who].got.len(), at + 5);
            }
            worst = worst.max(at + 5 - since);
        }
        worst
    }

    pub(crate) fn arrive(&mut self, who: usize, transmit: &Transmit) {
        let Transmit { src, dst, bytes, .. } = transmit;
        if !self.dead.contains(dst) {
            let verdict = self.hosts[who].endpoint.receive(self.now, *src, *dst, bytes);
            self.refused.extend(verdict.err());
        }
        self.flush(who);
    }

    /// Handles the next packet or timer that is due at `until` or before. Returns `false` if there is none.
    pub(crate) fn step(&mut self, until: Instant) -> bool {
        let timers = (0..2).filter_map(|who| Some((self.hosts[who].endpoint.deadline()?, who)));
        let timer = timers.min();
        let packet = self.wire.keys().next().map(|(at, _)| *at);
        match (packet, timer) {
            (Some(at), timer) if at <= until && timer.is_none_or(|(timer, _)| at <= timer) => {
                self.now = at;
                if let Some((_, (who, transmit))) = self.wire.pop_first() {
                    self.arrive(who, &transmit);
                }
            }
            (_, Some((at, who))) if at <= until => {
                self.now = self.now.max(at);
                self.hosts[who].endpoint.on_timeout(self.now);
                self.flush(who);
                let next = self.hosts[who].endpoint.deadline();
                assert!(next.is_none_or(|next| next > self.now), "a timer that goes off for ever");
            }
            _ => return false,
        }
        true
    }

    pub(crate) fn run_until(&mut self, limit: Duration, done: impl Fn(&Self) -> bool) {
        let until = self.now + limit;
        self.flush(0);
        self.flush(1);
        while !done(self) {
            if !self.step(until) {
                break;
            }
        }
    }

    pub(crate) fn run_for(&mut self, ms: u64) {
        let until = self.now + Duration::from_millis(ms);
        self.run_until(Duration::from_millis(ms), |_| false);
        self.now = until;
    }
}

pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    (0..len).map(|_| rng.draw() as u8).collect()
}
