//! How Linux lets a receive window grow: with each segment to the room there is (`tcp_grow_window`), and the room with what the
//! application reads in a round trip (`tcp_rcv_space_adjust`, `tcp_rcvbuf_grow`, Linux 6.18). Each step of the window also has
//! the next segment acknowledged at once, so a window that grows doubles the number of acknowledgments.

use crate::Seq;
use wire::{Duration, Instant};

/// The largest window that a SYN can say; Linux begins with it, in whole segments.
const FIRST: u32 = 65_535;
/// The room of a socket with the default buffer (`tcp_rmem`, 131072 bytes), when each segment has an Ethernet frame's buffer
/// of its own: of 2304 bytes 1448 are data, and Linux counts in parts of 256.
const ROOM: u32 = 81_920;
/// Before a segment has come Linux takes half of a buffer for data (`TCP_DEFAULT_SCALING_RATIO`), and five eighths after.
const FIRST_SHARE: (u32, u32) = (4, 5);
/// Shorter segments do not open the window (`tcp_event_data_recv`).
const LEAST: usize = 128;
/// The segments of an initial window; so many bytes count as read in the round trip before the first.
const INITIAL: u32 = 10;

/// A receive window that tunes itself. All sizes in bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Growth {
    /// What is announced at most now (`rcv_ssthresh`).
    pub window: u32,
    /// What `window` grows to (`window_clamp`).
    pub room: u32,
    /// The largest segment so far.
    pub largest: usize,
    /// Smoothed round-trip time as a receiver sees it, from timestamps that came back.
    pub round_trip: Option<Duration>,
    /// The timestamp that came back last.
    pub echo: u32,
    /// When the last segment came: reading has no clock of its own.
    pub now: Instant,
    /// When the current measurement of what is read began, and what was read by then.
    pub since: Instant,
    /// See `since`.
    pub read: Seq,
    /// The most that was read in one round trip.
    pub in_round_trip: u32,
}

impl Growth {
    /// At the begin of a connection, or of one that goes on elsewhere. Of a buffer for so many bytes the window field can
    /// announce `capacity`. `next` is the first number to be read.
    pub(crate) const fn new(buffer: u32, capacity: u32, mss: u32, next: Seq) -> Self {
        let (data, of) = FIRST_SHARE;
        let half = buffer / of * data;
        let most = if FIRST < half { FIRST } else { half };
        let window = if most > mss { most - most % mss } else { most };
        let room = if ROOM < capacity { ROOM } else { capacity };
        let in_round_trip = INITIAL * mss;
        Self {
            window,
            room,
            largest: 0,
            round_trip: None,
            echo: 0,
            now: Instant::ZERO,
            since: Instant::ZERO,
            read: next,
            in_round_trip,
        }
    }

    /// A fixed room from now on.
    pub(crate) fn set_room(&mut self, bytes: u32) {
        self.room = bytes;
        self.window = self.window.min(bytes);
    }

    /// The room there is.
    pub(crate) const fn room(&self) -> u32 {
        self.room
    }

    /// What is announced of so much free room where the window field is not scaled: whole segments, of the size that comes
    /// (`__tcp_select_window`).
    pub(crate) fn whole_segments(&self, free: u32, mss: u32) -> u32 {
        let segment = if self.largest == 0 { mss } else { self.largest as u32 };
        free - free % segment.min(self.room).max(1)
    }

    /// Whether reading is worth a segment that says so: the window at least doubles, and was half of the room at most
    /// (`tcp_cleanup_rbuf`).
    pub(crate) const fn is_worth_telling(&self, now: u32, wanted: u32) -> bool {
        wanted > 0 && 2 * now as u64 <= self.room as u64 && wanted as u64 >= 2 * now as u64
    }

    /// A segment with so many bytes came; so many are not read yet, without its own. Says whether the window grew.
    pub(crate) fn came(&mut self, now: Instant, bytes: usize, unread: usize) -> bool {
        self.now = now;
        self.largest = self.largest.max(bytes);
        let free = self.room.saturating_sub((unread + bytes) as u32);
        let more = free.saturating_sub(self.window).min(2 * bytes as u32);
        if bytes < LEAST || more == 0 {
            return false;
        }
        self.window += more;
        true
    }

    /// A segment with so many bytes echoed our timestamp, of a segment that left then. Small ones are written late, not
    /// sent late, and say nothing.
    pub(crate) fn echoed(&mut self, now: Instant, bytes: usize, echo: u32, left: Instant) {
        if bytes < self.largest || std::mem::replace(&mut self.echo, echo) == echo {
            return;
        }
        let sample = now.since(left);
        self.round_trip = Some(self.round_trip.map_or(sample, |smoothed| (smoothed * 7 + sample) / 8));
    }

    /// The application has read up to `read`. `beyond` is how far data beyond gaps reach from the next number expected, and
    /// `most` the largest room.
    pub(crate) fn was_read(&mut self, read: Seq, beyond: u32, most: u32) {
        let Some(round_trip) = self.round_trip else { return };
        if self.now.since(self.since) < round_trip {
            return;
        }
        // What another host had received may be read after this one began to count.
        let bytes = if read.after(self.read) { read.since(self.read) } else { 0 };
        (self.since, self.read) = (self.now, read);
        if bytes <= self.in_round_trip {
            return;
        }
        let before = u64::from(std::mem::replace(&mut self.in_round_trip, bytes));
        let twice = 2 * u64::from(bytes);
        // In slow start the sender doubles its rate meanwhile.
        let ahead = twice.saturating_mul(2 * (u64::from(bytes) - before)) / before.max(1);
        let room = u32::try_from(twice.saturating_add(ahead).saturating_add(beyond.into()))
            .unwrap_or(u32::MAX)
            .min(most);
        self.room = self.room.max(room);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u32 = 3 << 20;
    const NOW: Instant = Instant::from_millis(1);

    fn growth() -> Growth {
        Growth::new(MOST, MOST, 1460, Seq(0))
    }

    #[test]
    fn a_window_begins_and_grows_as_the_kernels() {
        // Seen on Linux 6.18, a download with segments of 1448 bytes: 64240, two segments more with each, then 80896, which
        // is 80480 in the units of its scaled window field.
        let mut growth = growth();
        assert_eq!(growth.window, 64_240);
        assert!(growth.came(NOW, 1448, 0));
        assert_eq!(growth.window, 64_240 + 2 * 1448);
        let steps = (0..20).filter(|_| growth.came(NOW, 1448, 0)).count();
        assert_eq!((growth.window, steps), (ROOM - 1448, 5));
        assert!(!growth.came(NOW, 100, 0) && !growth.came(NOW, 1448, 0));
    }

    #[test]
    fn a_small_buffer_begins_with_half_and_has_room_for_a_segment_less() {
        // Seen on Linux 6.18 with a buffer for 16384 bytes: a SYN says 11680, every acknowledgment from the first on 14480.
        let mut growth = Growth::new(16_384, 16_384, 1460, Seq(0));
        assert_eq!((growth.window, growth.room()), (11_680, 16_384));
        assert!(growth.came(NOW, 1448, 0) && growth.came(NOW, 1448, 0) && !growth.came(NOW, 1448, 0));
        assert_eq!(growth.window, 16_384 - 1448);
        assert_eq!(growth.whole_segments(growth.window, 1460), 14_480);
        assert_eq!(growth.whole_segments(1000, 1460), 0, "less than a segment");
        assert_eq!(
            Growth::new(1000, 1000, 1460, Seq(0)).whole_segments(1000, 1460),
            1000,
            "no segment has room"
        );
    }

    #[test]
    fn a_window_is_told_of_when_it_doubles() {
        let growth = Growth::new(16_384, 16_384, 1460, Seq(0));
        assert!(growth.is_worth_telling(0, 1448) && growth.is_worth_telling(7240, 14_480));
        assert!(!growth.is_worth_telling(0, 0), "nothing to tell");
        assert!(!growth.is_worth_telling(7240, 13_032), "not twice");
        assert!(!growth.is_worth_telling(8688, 17_376), "more than half of the room");
    }

    #[test]
    fn room_follows_what_is_read_in_a_round_trip() {
        let mut growth = growth();
        growth.was_read(Seq(60_000), 0, MOST);
        assert_eq!(growth.room(), ROOM, "no round trip is known");
        growth.echoed(Instant::from_millis(600), 1448, 7, Instant::from_millis(500));
        growth.echoed(Instant::from_millis(900), 1448, 7, Instant::from_millis(500)); // the same again says nothing
        assert_eq!(growth.round_trip, Some(Duration::from_millis(100)));
        growth.now = Instant::from_millis(600);
        growth.was_read(Seq(29_200), 5000, MOST);
        // Twice 29200; twice as much again and again for it doubled from 14600; and what lies beyond a gap.
        assert_eq!(growth.room(), 58_400 + 2 * 58_400 + 5000);
        growth.now = Instant::from_millis(650);
        growth.was_read(Seq(200_000), 0, MOST);
        assert_eq!(growth.room(), 58_400 + 2 * 58_400 + 5000, "not before a round trip has passed");
        growth.now = Instant::from_millis(700);
        growth.was_read(Seq(10_000_000), 0, MOST);
        assert_eq!(growth.room(), MOST);
        growth.now = Instant::from_millis(1500);
        growth.was_read(Seq(10_000_100), 0, MOST);
        assert_eq!(growth.room(), MOST, "it does not shrink");
    }

    #[test]
    fn what_was_received_elsewhere_is_no_growth() {
        let mut growth = Growth::new(MOST, MOST, 1460, Seq(50_000));
        growth.echoed(Instant::from_millis(600), 1448, 7, Instant::from_millis(500));
        growth.now = Instant::from_millis(700);
        growth.was_read(Seq(40_000), 0, MOST);
        assert_eq!(growth.room(), ROOM);
    }

    #[test]
    fn what_is_not_read_takes_from_the_room() {
        let mut growth = growth();
        assert!(!growth.came(NOW, 1448, 40_000));
        assert!(growth.came(NOW, 1448, 10_000));
    }
}
