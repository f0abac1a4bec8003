//! SCTP: two ends that change their addresses, users that act as the input says, and wires that lose, duplicate,
//! reorder and corrupt packets.

use auth::Key;
use fuzz::{Fate, Wire};
use sctp::message::{Packet, set_checksum};
use sctp::{AssociationEvent, AssociationId, Change, Config, Endpoint, Hmac, Open, State, Transmit};
use wire::{Duration, Instant, Ipv4Addr, Malformed, Reader, Rng};

const PORT: u16 = 80;
/// An end that sends this number of packets at one instant is in an endless loop.
const MOST: usize = 5_000;
const BUFFER: u32 = 20_000;

/// Runs the target on one input.
pub(crate) fn run(bytes: &[u8]) {
    let mut r = Reader::new(bytes.get(1..).unwrap_or_default(), Malformed("end"));
    let mut net = Network::new(bytes.first().copied().unwrap_or_default());
    while net.step(&mut r).is_ok() {}
}

/// Returns one of the four addresses of an end.
const fn address(who: usize, which: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, who as u8, which & 3, 1)
}

struct End {
    endpoint: Endpoint,
    id: Option<AssociationId>,
    /// The number of bytes that were written to stream 0. `read` is the number of bytes that were read from it.
    written: usize,
    read: usize,
    credit: usize,
}

struct Network {
    now: Instant,
    ends: [End; 2],
    /// The packets on their way to each end.
    queues: [Wire<Transmit>; 2],
    /// Whether only the two ends have sent packets, and neither of them restarted.
    honest: bool,
}

impl Network {
    fn new(knobs: u8) -> Self {
        let on = |bit: u8| knobs >> bit & 1 != 0;
        let config = Config {
            rto_min: Duration::from_millis(if on(0) { 100 } else { 1000 }),
            mtu: if on(1) { 600 } else { 1500 },
            send_buffer: BUFFER,
            receive_buffer: if on(2) { 2000 } else { BUFFER },
            hmacs: if on(3) { vec![Hmac::Sha1] } else { vec![Hmac::Sha256, Hmac::Sha1] },
            pair_key: on(4).then(|| (1, Key::new(*b"pair"))),
            max_addresses: if on(5) { 2 } else { 16 },
            heartbeat_interval: Duration::from_secs(if on(6) { 1 } else { 30 }),
            path_max_retrans: if on(7) { 0 } else { 5 },
            ..Config::default()
        };
        let end = |number: u64| End {
            endpoint: Endpoint::new(config.clone(), Key::new([number as u8; 32]), Rng::new(number)),
            id: None,
            written: 0,
            read: 0,
            credit: 0,
        };
        let mut wire = Self {
            now: Instant::from_millis(1),
            ends: [end(1), end(2)],
            queues: Default::default(),
            honest: true,
        };
        wire.ends[1].endpoint.listen(PORT, &[address(1, 0), address(1, 1)]);
        let (local, peer) = (vec![address(0, 0)], vec![address(1, 0)]);
        let open = Open { local, local_port: PORT, peer, peer_port: PORT };
        wire.ends[0].id = wire.ends[0].endpoint.open(wire.now, &open);
        wire.flush(0);
        wire
    }

    /// Executes one step of the input. The lowest bit of its code selects the end.
    fn step(&mut self, r: &mut Reader<'_>) -> Result<(), Malformed> {
        let code = r.u8()?;
        let who = usize::from(code & 1);
        match code >> 1 & 15 {
            0..=3 => self.happens(who, Fate::Arrives),
            4 => self.happens(who, Fate::Lost),
            5 => self.happens(who, Fate::Copied),
            6 => self.happens(who, Fate::Reordered),
            7 => self.expires(who),
            8 => self.now += Duration::from_millis(u64::from(r.u8()?) * 4),
            9 | 10 => self.writes(who, usize::from(r.u16()? % 8000) + 1),
            11 => self.reads(who, usize::from(r.u16()?) + 1),
            12 | 13 => self.moves(who, r.u8()?),
            14 => self.ends_it(who, code),
            _ => {
                let Some(mut forged) = self.queues[who].step(Fate::Arrives) else { return Ok(()) };
                let (at, change) = (usize::from(r.u16()?), r.u8()?);
                if let Some(byte) = forged.bytes.get_mut(at) {
                    *byte ^= change;
                    set_checksum(&mut forged.bytes);
                    self.honest = false;
                }
                self.arrives(who, &forged);
            }
        }
        Ok(())
    }

    fn happens(&mut self, who: usize, fate: Fate) {
        if let Some(transmit) = self.queues[who].step(fate) {
            self.arrives(who, &transmit);
        }
    }

    fn arrives(&mut self, who: usize, transmit: &Transmit) {
        // An end that refuses a packet has changed nothing. It returns an error, which its caller counts.
        _ = self.ends[who].endpoint.receive(self.now, transmit.src, transmit.dst, &transmit.bytes);
        self.flush(who);
    }

    fn expires(&mut self, who: usize) {
        let Some(at) = self.ends[who].endpoint.deadline() else { return };
        self.now = self.now.max(at);
        self.ends[who].endpoint.on_timeout(self.now);
        self.flush(who);
        let next = self.ends[who].endpoint.deadline();
        assert!(next.is_none_or(|next| next > self.now), "a timer that goes off for ever");
    }

    fn writes(&mut self, who: usize, len: usize) {
        let end = &mut self.ends[who];
        let Some(association) = end.id.and_then(|id| end.endpoint.association_mut(id)) else { return };
        let bytes: Vec<u8> = (end.written..end.written + len).map(pattern).collect();
        let room = association.room();
        let taken = association.write(0, 0, &bytes).is_ok();
        assert_eq!(taken, association.state() == State::Established && len <= room);
        if taken {
            end.written += len;
            end.credit -= len;
        }
        self.flush(who);
    }

    fn reads(&mut self, who: usize, most: usize) {
        let end = &mut self.ends[who];
        let Some(association) = end.id.and_then(|id| end.endpoint.association_mut(id)) else { return };
        if let Some(piece) = association.read(most) {
            assert!(!piece.data.is_empty() && piece.data.len() <= most);
            let from = end.read;
            end.read += piece.data.len();
            if self.honest {
                let right = piece.data.iter().zip(from..).all(|(byte, at)| *byte == pattern(at));
                assert!(right, "not what was written");
                assert!(self.ends[who].read <= self.ends[1 - who].written, "more than was written");
            }
        }
        self.flush(who);
    }

    fn moves(&mut self, who: usize, what: u8) {
        let end = &mut self.ends[who];
        let Some(association) = end.id.and_then(|id| end.endpoint.association_mut(id)) else { return };
        let (here, there) = (address(who, what >> 2), address(who, what >> 4));
        _ = match what & 3 {
            0 => association.change(self.now, &[Change::Add(here)]),
            1 => association.change(self.now, &[Change::SetPrimary(here), Change::Delete(there)]),
            2 => {
                let changes = [Change::Add(here), Change::SetPrimary(here), Change::Delete(there)];
                association.change(self.now, &changes)
            }
            _ => match what >> 6 {
                0 => association.prefer(self.now, None, here),
                1 => association.move_to(self.now, here, &[here]),
                2 => {
                    association.try_at(self.now, address(1 - who, what >> 2));
                    Ok(())
                }
                _ => {
                    association.link_returned(self.now);
                    Ok(())
                }
            },
        };
        self.flush(who);
    }

    fn ends_it(&mut self, who: usize, code: u8) {
        let end = &mut self.ends[who];
        let Some(association) = end.id.and_then(|id| end.endpoint.association_mut(id)) else { return };
        if code & 0xe0 == 0xe0 {
            association.abort();
        } else if code & 0xc0 == 0xc0 {
            association.finish(self.now);
        }
        self.flush(who);
    }

    fn flush(&mut self, who: usize) {
        let end = &mut self.ends[who];
        while let Some((id, event)) = end.endpoint.poll_event() {
            match event {
                AssociationEvent::Opened if end.id != Some(id) => {
                    // Another handshake of the same two ends begins its streams again.
                    self.honest &= end.id.is_none();
                    end.id = Some(id);
                    end.credit = 0;
                }
                AssociationEvent::Restarted { intact: false } => (self.honest, end.credit) = (false, 0),
                AssociationEvent::Room(more) => end.credit += more,
                _ => {}
            }
            assert!(end.credit <= BUFFER as usize || !self.honest, "more credit than buffer");
        }
        let mut sent = 0;
        while let Some(transmit) = end.endpoint.poll_transmit(self.now) {
            assert!(Packet::parse(&transmit.bytes).is_ok(), "it cannot be read");
            assert!(transmit.bytes.len() <= 1500 - 20, "larger than the path");
            self.queues[1 - who].send([transmit], MOST);
            sent += 1;
            assert!(sent < MOST, "it never falls silent");
        }
        for (_, association) in end.endpoint.associations() {
            assert!(association.unread() <= 3 * BUFFER as usize, "it holds too much");
            assert!(association.unacknowledged() <= BUFFER as usize);
            assert!(association.paths().count() <= 17);
        }
        assert!(end.endpoint.associations().count() <= 64);
    }
}

/// Returns the byte at an offset of a stream. All streams have the same bytes.
fn pattern(at: usize) -> u8 {
    let [low, high, ..] = at.to_le_bytes();
    low ^ high
}
