//! The growth of a receive window as in Linux 6.18. The window grows with each segment up to the room
//! (`tcp_grow_window`). The room grows with the data that the application reads in a round trip
//! (`tcp_rcv_space_adjust`, `tcp_rcvbuf_grow`). A segment that makes the window grow is acknowledged at once. So a
//! growing window doubles the number of acknowledgments.

use crate::Seq;
use wire::{Duration, Instant};

/// The largest window that a SYN can announce. Linux starts with this window, rounded down to whole segments.
const FIRST: u32 = 65_535;
/// The room of a socket with the default buffer (`tcp_rmem`, 131072 bytes), in bytes. Each segment takes the buffer of
/// an Ethernet frame: 1448 of 2304 bytes are data. Linux rounds this ratio to parts of 256.
const ROOM: u32 = 81_920;
/// The share of the data buffer that the first window uses, as a fraction: 4/5. Linux counts half of a socket's buffer
/// as data before the first segment (`TCP_DEFAULT_SCALING_RATIO`), and five eighths later.
const FIRST_SHARE: (u32, u32) = (4, 5);
/// Segments with less data than this, in bytes, do not grow the window (`tcp_event_data_recv`).
const LEAST: usize = 128;
/// The number of segments of an initial window. They count as read in the round trip before the first measurement.
const INITIAL: u32 = 10;

/// A receive window that tunes itself. All sizes are in bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Growth {
    /// The size to which the announced window may grow now (`rcv_ssthresh`).
    pub window: u32,
    /// The limit to which `window` grows (`window_clamp`).
    pub room: u32,
    /// The largest payload of a segment that has arrived.
    pub largest: usize,
    /// The smoothed round-trip time that the receiver measures with echoed timestamps; `None` before the first echo.
    pub round_trip: Option<Duration>,
    /// The timestamp of this end that was echoed in the last round-trip sample; zero at first. Only segments that are
    /// at least as large as all before them give samples.
    pub echo: u32,
    /// When the last data arrived. `was_read` uses it as the current time, because it is called without the time.
    pub now: Instant,
    /// When the current measurement of reading began.
    pub since: Instant,
    /// The sequence number up to which the application had read at `since`.
    pub read: Seq,
    /// The largest number of bytes read in one round trip; ten segments at the start.
    pub in_round_trip: u32,
}

impl Growth {
    /// Returns the state at the start of a connection, or when a connection continues at another host. The buffer has
    /// `buffer` bytes; the window field can announce `capacity` of them. `mss` is the largest payload of a segment, in
    /// bytes. `next` is the next sequence number expected.
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

    /// Sets the room, and limits the window to it.
    pub(crate) fn set_room(&mut self, bytes: u32) {
        self.room = bytes;
        self.window = self.window.min(bytes);
    }

    /// Returns the current limit of the window.
    pub(crate) const fn room(&self) -> u32 {
        self.room
    }

    /// Returns the window that is announced for `free` bytes of room if the window field is not scaled. It is a number
    /// of whole segments, of the largest size that has arrived (`__tcp_select_window`).
    pub(crate) fn whole_segments(&self, free: u32, mss: u32) -> u32 {
        let segment = if self.largest == 0 { mss } else { self.largest as u32 };
        free - free % segment.min(self.room).max(1)
    }

    /// Returns whether reading justifies a window update. The announced window `now` must be at most half of the room,
    /// and `wanted` at least twice as large as `now` (`tcp_cleanup_rbuf`).
    pub(crate) const fn is_worth_telling(&self, now: u32, wanted: u32) -> bool {
        wanted > 0 && 2 * now as u64 <= self.room as u64 && wanted as u64 >= 2 * now as u64
    }

    /// Notes a segment of `bytes` bytes. `unread` is the number of unread bytes, without this segment. Returns whether
    /// the window grew.
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

    /// Takes a round-trip sample from a segment with `bytes` bytes of data that echoes our timestamp `echo`. `left`:
    /// when this end sent that timestamp. A segment smaller than the largest gives no sample, because the peer's
    /// application may have written its data late. A repeated echo gives none either.
    pub(crate) fn echoed(&mut self, now: Instant, bytes: usize, echo: u32, left: Instant) {
        if bytes < self.largest || std::mem::replace(&mut self.echo, echo) == echo {
            return;
        }
        let sample = now.since(left);
        self.round_trip = Some(self.round_trip.map_or(sample, |smoothed| (smoothed * 7 + sample) / 8));
    }

    /// Raises the room if the application has read more in a round trip than before. `read` is the sequence number up
    /// to which it has read. `beyond` is the distance from the next expected number to the end of the data beyond gaps,
    /// in bytes. `most` is the maximum of the room.
    pub(crate) fn was_read(&mut self, read: Seq, beyond: u32, most: u32) {
        let Some(round_trip) = self.round_trip else { return };
        if self.now.since(self.since) < round_trip {
            return;
        }
        // After a move to this host, `self.read` begins at the next expected number. The application may still read
        // data that the former host received. Then `read` is before `self.read`, and no bytes are counted.
        let bytes = if read.after(self.read) { read.since(self.read) } else { 0 };
        (self.since, self.read) = (self.now, read);
        if bytes <= self.in_round_trip {
            return;
        }
        let before = u64::from(std::mem::replace(&mut self.in_round_trip, bytes));
        let twice = 2 * u64::from(bytes);
        // In slow start, the sender doubles its rate until the new window takes effect.
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
        // As on Linux 6.18, the window begins with 64240 bytes (44 segments of 1460 bytes). Each segment of 1448 bytes
        // that arrives adds two segments. At most, the window and the segment together fill the room.
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
        // As on Linux 6.18 with a receive buffer of 16384 bytes, the SYN announces 11680 bytes. Later acknowledgments
        // announce 14480 bytes.
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
        assert!(!growth.is_worth_telling(0, 0), "nothing to report");
        assert!(!growth.is_worth_telling(7240, 13_032), "not twice");
        assert!(!growth.is_worth_telling(8688, 17_376), "more than half of the room");
    }

    #[test]
    fn room_follows_what_is_read_in_a_round_trip() {
        let mut growth = growth();
        growth.was_read(Seq(60_000), 0, MOST);
        assert_eq!(growth.room(), ROOM, "no round trip is known");
        growth.echoed(Instant::from_millis(600), 1448, 7, Instant::from_millis(500));
        growth.echoed(Instant::from_millis(900), 1448, 7, Instant::from_millis(500)); // a repeated echo is ignored
        assert_eq!(growth.round_trip, Some(Duration::from_millis(100)));
        growth.now = Instant::from_millis(600);
        growth.was_read(Seq(29_200), 5000, MOST);
        // 29200 bytes were read, twice as many as in the round trip before. So the room is twice these bytes (58400),
        // plus twice 58400 for the growth, plus the 5000 bytes beyond a gap.
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
