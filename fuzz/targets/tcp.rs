//! TCP: the header, and two ends with wires between them that do what the input says.

use fuzz::{Fate, Wire, set_checksum_over};
use tcp::{
    Connection, Estimator, Flags, Options, PROTOCOL, Profile, Recovery, Segment, Seq, Ticks, Timestamps,
    Timing, TooBig, Wheel,
};
use wire::{Checksum, Duration, Instant, Ipv4Addr, Malformed, Reader, SocketAddrV4};

const ADDRESSES: [SocketAddrV4; 2] =
    [SocketAddrV4::new(Ipv4Addr::new(10, 2, 0, 1), 4000), SocketAddrV4::new(Ipv4Addr::new(10, 1, 0, 7), 80)];
/// An end that sends this number of segments at one instant is in an endless loop: two windows hold fewer.
const MOST: usize = 20_000;

/// Runs the target on one input.
pub(crate) fn run(bytes: &[u8]) {
    header(bytes);
    let knobs = bytes.first_chunk().copied().unwrap_or_default();
    let mut net = Network::new(u16::from_be_bytes(knobs));
    let mut r = Reader::new(bytes.get(2..).unwrap_or_default(), Malformed("end"));
    while net.step(&mut r).is_ok() {}
}

fn header(bytes: &[u8]) {
    let [src, dst] = ADDRESSES.map(|address| *address.ip());
    let read = |bytes: &[u8]| {
        if let Ok(segment) = Segment::parse(bytes, src, dst) {
            assert_eq!(Segment::parse(&segment.emit(src, dst), src, dst), Ok(segment));
        }
    };
    read(bytes);
    // A fuzzer does not find correct checksums, so they are set here.
    let mut corrected = bytes.to_vec();
    let [high, low] = u16::try_from(bytes.len()).unwrap_or_default().to_be_bytes();
    let pseudo = Checksum::default().add(&src.octets()).add(&dst.octets()).add(&[0, PROTOCOL, high, low]);
    set_checksum_over(&mut corrected, 16, pseudo);
    read(&corrected);
}

struct Network {
    now: Instant,
    profile: Profile,
    ends: [Option<Connection>; 2],
    /// The segments on their way to each end.
    queues: [Wire<Segment<'static>>; 2],
    /// The number of bytes that each end has written. `read` has the number of bytes that each end has read.
    written: [usize; 2],
    read: [usize; 2],
    /// Whether only the two ends have sent segments.
    honest: bool,
}

impl Network {
    fn new(knobs: u16) -> Self {
        let on = |bit: u8| knobs >> bit & 1 != 0;
        let base = if on(0) { Profile::linux_like() } else { Profile::rfc6298_reno() };
        let profile = Profile {
            recovery: match knobs >> 8 & 3 {
                0 => Recovery::Tahoe,
                1 => Recovery::Reno,
                2 => Recovery::NewReno,
                _ => Recovery::Sack,
            },
            sack: on(1),
            timestamps: on(10),
            limited_transmit: on(11),
            estimator: match knobs >> 12 & 3 {
                0 => Estimator::Bsd,
                1 => Estimator::Linux,
                _ => Estimator::Rfc6298,
            },
            timing: match (on(14), knobs >> 12 & 3) {
                (false, _) => Timing::Exact,
                (true, 1) => Timing::Wheel(Wheel::LINUX),
                (true, _) => Timing::Ticks(Ticks::BSD),
            },
            too_big: if on(15) { TooBig::AwaitTimeout } else { TooBig::ResendAtOnce },
            nagle: on(2),
            window_scale: on(3),
            mss: if on(4) { 100 } else { 1460 },
            receive_buffer: if on(5) { 1000 } else { 100_000 },
            delayed_ack: if on(6) { None } else { Some(Duration::from_millis(200)) },
            ssthresh_each_rto: on(7),
            ..base
        };
        let [us, peer] = ADDRESSES;
        let first = Connection::connect(us, peer, Seq(u32::MAX - 2000), &profile);
        let mut wire = Self {
            now: Instant::ZERO,
            profile,
            ends: [Some(first), None],
            queues: Default::default(),
            written: [0; 2],
            read: [0; 2],
            honest: true,
        };
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
            7 | 8 => self.expires(who),
            9 => self.now += Duration::from_millis(u64::from(r.u8()?)),
            10 => self.writes(who, usize::from(r.u16()?)),
            11 => self.reads(who, usize::from(r.u16()?)),
            12 => self.told(who, Connection::finish),
            13 if code & 32 != 0 => self.moves(who),
            13 => self.resumes(who),
            14 if code & 32 != 0 => self.told(who, Connection::abort),
            14 => {
                // A stack does not use narrower paths. With segments of single bytes, more than `MOST` segments could
                // be sent at one instant.
                let mss = r.u16()?.max(48);
                self.told(who, |tcp| tcp.path_mss(mss));
            }
            _ => {
                let segment = self.forged(who, r)?;
                self.honest = false;
                self.arrives(who, &segment);
            }
        }
        Ok(())
    }

    /// Returns a forged segment with sequence numbers near the expected ones. Otherwise no forged segment would be
    /// accepted.
    fn forged(&self, who: usize, r: &mut Reader<'_>) -> Result<Segment<'static>, Malformed> {
        let state = self.ends[who].as_ref().and_then(|tcp| tcp.export(self.now));
        let (seq, ack) = state.map_or((0, 0), |state| (state.receive_next.0, state.send_una.0));
        let (flags, size) = (r.u8()?, r.u8()?);
        let wide = size & 128 != 0;
        let offset = |r: &mut Reader<'_>| {
            Ok(if wide { r.u32()? } else { i32::from(r.u16()?.cast_signed()).cast_unsigned() })
        };
        let (seq, ack) = (seq.wrapping_add(offset(r)?), ack.wrapping_add(offset(r)?));
        let window = r.u16()?;
        let mss = (size & 64 != 0).then_some(window);
        // The SACK blocks and the echoed timestamp are near those of segments on their way, and the timestamp is not
        // old.
        let sack = (flags & 32 != 0).then(|| (Seq(ack), Seq(ack.wrapping_add(u32::from(window)))));
        let value = self.now.0 as u32 / 1_000_000;
        let timestamps =
            (flags & 64 != 0).then(|| Timestamps { value, echo: value.wrapping_sub(seq & 0xff) });
        let options = Options {
            mss,
            window_scale: mss.map(|_| flags),
            sack_permitted: flags & 128 != 0,
            timestamps,
            sack: sack.into_iter().collect(),
        };
        let payload = vec![0; usize::from(size & 63) * 8].into();
        let (seq, ack, flags) = (Seq(seq), Seq(ack), Flags(flags & 31));
        Ok(Segment { seq, ack, flags, window, options, payload, ..Segment::default() })
    }

    fn happens(&mut self, who: usize, fate: Fate) {
        if let Some(segment) = self.queues[who].step(fate) {
            self.arrives(who, &segment);
        }
    }

    fn arrives(&mut self, who: usize, segment: &Segment<'_>) {
        match &mut self.ends[who] {
            Some(tcp) => tcp.receive(self.now, segment),
            none => {
                let (us, peer) = (ADDRESSES[who], ADDRESSES[1 - who]);
                *none = Connection::accept(self.now, us, peer, segment, Seq(7), &self.profile);
            }
        }
        self.flush(who);
    }

    fn expires(&mut self, who: usize) {
        let Some(tcp) = &mut self.ends[who] else { return };
        let Some(at) = tcp.deadline() else { return };
        self.now = self.now.max(at);
        tcp.timeout(self.now);
        assert!(tcp.deadline().is_none_or(|next| next > self.now), "a timer that goes off for ever");
        self.flush(who);
    }

    fn writes(&mut self, who: usize, len: usize) {
        let from = self.written[who];
        let bytes: Vec<u8> = (from..from + len).map(pattern).collect();
        let Some(tcp) = &mut self.ends[who] else { return };
        let room = tcp.room();
        let taken = tcp.write(&bytes);
        assert_eq!(taken, len.min(room));
        self.written[who] += taken;
        self.flush(who);
    }

    fn reads(&mut self, who: usize, most: usize) {
        let Some(tcp) = &mut self.ends[who] else { return };
        let bytes = tcp.read(most);
        if self.honest {
            let from = self.read[who];
            assert!(bytes.iter().zip(from..).all(|(byte, at)| *byte == pattern(at)), "not what was written");
        }
        self.read[who] += bytes.len();
        assert!(self.read[who] <= self.written[1 - who] || !self.honest, "more than was written");
        self.flush(who);
    }

    /// Moves the connection to another host with the same profile.
    fn moves(&mut self, who: usize) {
        self.told(who, |_| {});
        let Some(state) = self.ends[who].as_ref().and_then(|tcp| tcp.export(self.now)) else { return };
        let moved = Connection::import(state.clone(), self.now, &self.profile);
        assert_eq!(moved.export(self.now), Some(state));
        self.ends[who] = Some(moved);
        self.flush(who);
    }

    /// Records the connection and resumes it, in any state. The result must be equal to the connection.
    fn resumes(&mut self, who: usize) {
        let Some(tcp) = &mut self.ends[who] else { return };
        let resumed = Connection::resume(tcp.record(), &self.profile);
        assert_eq!(resumed.as_ref(), Some(&*tcp));
    }

    fn told(&mut self, who: usize, tell: impl FnOnce(&mut Connection)) {
        if let Some(tcp) = &mut self.ends[who] {
            tell(tcp);
            self.flush(who);
        }
    }

    fn flush(&mut self, who: usize) {
        let Some(tcp) = &mut self.ends[who] else { return };
        let mut sent = 0;
        while let Some(segment) = tcp.poll(self.now) {
            self.queues[1 - who].send([segment.into_owned()], MOST);
            sent += 1;
            assert!(sent < MOST, "it never falls silent");
        }
    }
}

/// Returns the byte at an offset of a stream. All streams have the same bytes.
fn pattern(at: usize) -> u8 {
    let [low, high, ..] = at.to_le_bytes();
    low ^ high
}
