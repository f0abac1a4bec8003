//! Paths: the state of each address of the peer (RFC 9260, sections 5.4, 7 and 8).

use crate::tsn::Tsn;
use crate::{Config, message};
use wire::{Duration, Instant, Ipv4Addr, Rto, ipv4};

/// Number of time-outs in a row, at this end or at the peer, before another route is tried. A single time-out may be
/// due to one lost packet.
pub(crate) const SILENT: u32 = 2;

/// Length of the IP header and the common header, in bytes.
const HEADERS: u32 = (ipv4::HEADER + message::HEADER) as u32;
/// The smallest MTU that a report can set, in bytes. IPv4's minimum of 68 bytes would leave little room for chunks.
const LEAST_MTU: u16 = 576;

/// The time after which the full MTU is tried again instead of a reduced one (RFC 1191, section 6.3).
const NARROW: Duration = Duration::from_mins(10);

/// Writes within this time share one burst (RFC 9260, section 6.1, D).
const WRITES: Duration = Duration::from_millis(1);

/// The state of a path: whether the peer has proved to have the address, and whether the path works.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PathState {
    /// The peer has not proved yet that it has this address. No data go there (RFC 9260, section 5.4).
    Unconfirmed,
    /// The address is confirmed, and has not failed more than `path_max_retrans` times in a row.
    Active,
    /// The path has failed more than `path_max_retrans` times in a row (RFC 9260, section 8.2).
    Inactive,
}

/// The state of a path, for graphs and reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathInfo {
    /// The address of the peer at the end of the path.
    pub address: Ipv4Addr,
    /// Whether the address is confirmed and answers (RFC 9260, sections 5.4 and 8.2).
    pub state: PathState,
    /// Whether the path is the primary one, to which new data go while it works.
    pub primary: bool,
    /// The congestion window, in bytes (RFC 9260, section 7.2).
    pub cwnd: u32,
    /// The slow start threshold, in bytes (RFC 9260, section 7.2). `u32::MAX` if there was no loss since the congestion
    /// state was last reset.
    pub ssthresh: u32,
    /// Bytes of DATA chunks in flight on this path, with headers and padding. New data wait while this number is at
    /// least `cwnd`.
    pub flight: u32,
    /// The retransmission time-out (RTO), including its back-off.
    pub rto: Duration,
    /// The smoothed round-trip time. `None` if no round trip was measured on the present route.
    pub srtt: Option<Duration>,
    /// Number of time-outs in a row without an answer (RFC 9260, section 8.2).
    pub errors: u32,
}

/// A HEARTBEAT that is not answered yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    pub(crate) nonce: u64,
    /// When it was sent. `None` if it was sent more than once: an answer does not show which copy it answers.
    pub(crate) sent: Option<Instant>,
    pub(crate) until: Instant,
}

/// The path to one address of the peer.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "four facts that do not exclude each other")]
pub(crate) struct Path {
    pub(crate) address: Ipv4Addr,
    pub(crate) state: PathState,
    /// Whether a HEARTBEAT or the handshake has confirmed the address.
    pub(crate) confirmed: bool,
    /// Only a directory has named the address, not the peer (module `directory`).
    pub(crate) hearsay: bool,
    /// An authenticated packet came from the address.
    pub(crate) signed: bool,
    /// This address was primary until the peer set another one. It is the last choice for retransmissions.
    pub(crate) superseded: bool,
    /// When a packet last came from the address, or when the path was created.
    pub(crate) heard: Instant,
    pub(crate) errors: u32,
    pub(crate) rto: Rto,
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    /// `partial_bytes_acked` of RFC 9260, section 7.2.2.
    partial: u32,
    pub(crate) flight: u32,
    /// Number of packets with data that may still leave at this instant (Max.Burst).
    pub(crate) burst: u32,
    /// When a write last allowed a burst.
    burst_by_write: Instant,
    pub(crate) t3: Option<Instant>,
    /// When data or a probe were last sent again before a backed-off time-out. An acknowledgment of data then ends
    /// the back-off.
    pub(crate) woken: Option<Instant>,
    /// The TSN whose acknowledgment ends fast recovery.
    pub(crate) recovery: Option<Tsn>,
    /// The TSN of the chunk whose round trip is measured, and when the chunk left.
    pub(crate) timed: Option<(Tsn, Instant)>,
    /// The number of the latest transmission to this address that was acknowledged (`Sent::order`).
    pub(crate) latest_acked: u64,
    /// When the next heartbeat is due.
    pub(crate) heartbeat: Instant,
    pub(crate) probe: Option<Probe>,
    /// The source that the user prefers for packets to this address.
    pub(crate) source: Option<Ipv4Addr>,
    pub(crate) mtu: u16,
    /// The MTU of the configuration, without reports of routers.
    widest: u16,
    /// When data were first about to leave after a report lowered the MTU.
    narrow: Option<Instant>,
    last_data: Instant,
}

impl Path {
    pub(crate) fn new(now: Instant, address: Ipv4Addr, config: &Config) -> Self {
        let mut path = Self {
            address,
            state: PathState::Unconfirmed,
            confirmed: false,
            hearsay: false,
            signed: false,
            superseded: false,
            heard: now,
            errors: 0,
            rto: Rto::new(config.rto_bounds()),
            cwnd: 0,
            ssthresh: u32::MAX,
            partial: 0,
            flight: 0,
            burst: config.max_burst,
            burst_by_write: now,
            t3: None,
            woken: None,
            recovery: None,
            timed: None,
            latest_acked: 0,
            heartbeat: now,
            probe: None,
            source: None,
            mtu: config.mtu.max(LEAST_MTU),
            widest: config.mtu.max(LEAST_MTU),
            narrow: None,
            last_data: now,
        };
        path.cwnd = path.initial_window();
        path
    }

    /// Returns the PMDCS (path maximum DATA chunk size) of RFC 9260: the length of the largest DATA chunk with its
    /// header, in bytes.
    pub(crate) fn largest_chunk(&self) -> u32 {
        (u32::from(self.mtu) - HEADERS) & !3
    }

    /// Returns the initial congestion window, in bytes (RFC 9260, section 7.2.1).
    fn initial_window(&self) -> u32 {
        let chunk = self.largest_chunk();
        (4 * chunk).min((2 * chunk).max(4404))
    }

    /// Handles a router's report that the path carries IP packets of at most `mtu` bytes. Returns whether the MTU
    /// becomes lower. A report never raises the MTU (RFC 1191, section 3), so a late or forged report cannot raise it.
    pub(crate) fn lower_mtu(&mut self, mtu: u16) -> bool {
        let lower = mtu.max(LEAST_MTU) < self.mtu;
        if lower {
            self.mtu = mtu.max(LEAST_MTU);
            self.narrow = None;
        }
        lower
    }

    /// Restores the full MTU if [`NARROW`] has passed since the first call after a report (RFC 1191, section 6.3).
    /// Called when data may leave. If the path still carries less, a router reports it again.
    pub(crate) fn widen(&mut self, now: Instant) {
        if self.mtu < self.widest && now >= *self.narrow.get_or_insert(now) + NARROW {
            (self.mtu, self.narrow) = (self.widest, None);
        }
    }

    pub(crate) const fn usable(&self) -> bool {
        matches!(self.state, PathState::Active)
    }

    /// Resets the RTO, the MTU and the congestion window, because the route has changed (RFC 9260, section 7.2.5.2).
    pub(crate) fn reset_congestion(&mut self, config: &Config) {
        self.rto = Rto::new(config.rto_bounds());
        self.woken = None;
        (self.mtu, self.narrow) = (self.widest, None);
        self.cwnd = self.initial_window();
        self.ssthresh = u32::MAX;
        self.partial = 0;
        self.recovery = None;
        self.timed = None;
    }

    /// Resets the congestion window when data begin to go to this address, unless data are in flight. An earlier
    /// window does not describe the path now.
    pub(crate) fn restart_window(&mut self) {
        if self.flight == 0 {
            self.cwnd = self.initial_window();
            self.ssthresh = u32::MAX;
            self.partial = 0;
        }
    }

    /// Returns whether a DATA chunk may leave: the congestion window and Max.Burst must allow it (RFC 9260, section
    /// 6.1, B and D). `hurry`: one packet may leave in spite of both (RFC 9260, section 7.2.4, 3). No data, new or
    /// repeated, go to an unconfirmed address (RFC 9260, section 5.4).
    pub(crate) const fn open(&self, hurry: bool) -> bool {
        self.confirmed && (hurry || (self.flight < self.cwnd && self.burst > 0))
    }

    /// Returns whether data wait for a backed-off T3 after a failure of the path. False if `woken` is less than one
    /// time-out without back-off ago.
    pub(crate) fn asleep(&self, now: Instant) -> bool {
        self.confirmed && self.errors > 0 && self.t3.is_some() && self.may_be_woken(now)
    }

    /// Returns whether the time-out is backed off, and the path was last woken at least one time-out without back-off
    /// ago.
    fn may_be_woken(&self, now: Instant) -> bool {
        self.rto.backing().1 > 0 && self.is_long_ago(now, self.woken)
    }

    /// Returns whether `last` is at least one time-out without back-off ago. True if `last` is `None`.
    fn is_long_ago(&self, now: Instant, last: Option<Instant>) -> bool {
        last.is_none_or(|last| now >= last + self.rto.backing().0)
    }

    /// Returns whether an unconfirmed address waits for a backed-off time-out of its probe. False if the probe left
    /// less than one time-out without back-off ago.
    pub(crate) fn probe_sleeps(&self, now: Instant) -> bool {
        let is_probed = self.probe.is_some_and(|probe| self.is_long_ago(now, probe.sent));
        self.state == PathState::Unconfirmed && is_probed && self.may_be_woken(now)
    }

    /// Ends the back-off: T3 expires after at most the time-out without back-off.
    pub(crate) fn end_back_off(&mut self, now: Instant) {
        self.rto.at_least(Duration::ZERO);
        self.t3 = self.t3.map(|t3| t3.min(now + self.rto.current()));
    }

    /// Records that a DATA chunk leaves, and starts T3 if it does not run. If the path was idle, the congestion window
    /// is reduced first. `bytes`: length of the chunk, with header and padding.
    pub(crate) fn sent(&mut self, now: Instant, bytes: u32) {
        // A window that was not used is halved for each RTO (RFC 9260, section 7.2.1).
        let mut idle = now.since(self.last_data);
        let least = 4 * self.largest_chunk();
        while self.flight == 0 && idle > self.rto.current() && self.cwnd > least {
            self.cwnd = (self.cwnd / 2).max(least);
            idle = idle.saturating_sub(self.rto.current());
        }
        self.last_data = now;
        self.flight += bytes;
        self.t3.get_or_insert(now + self.rto.current()); // RFC 9260, section 6.3.2, R1
    }

    /// Grows the window after an acknowledgment, except in fast recovery (RFC 9260, sections 7.2.1 and 7.2.2). `acked`:
    /// bytes of acknowledged chunks on this path. `again`: bytes of chunks that were reported as duplicates. `before`:
    /// bytes in flight before the acknowledgment. `advanced`: whether the cumulative TSN advanced.
    pub(crate) fn grow(&mut self, acked: u32, again: u32, before: u32, advanced: bool) {
        let (full, chunk) = (before >= self.cwnd, self.largest_chunk());
        if self.recovery.is_some() {
            return;
        }
        if self.cwnd <= self.ssthresh {
            if full && advanced {
                self.cwnd = self.cwnd.saturating_add(acked.min(chunk));
            }
            return;
        }
        self.partial = self.partial.saturating_add(acked).saturating_add(again);
        if self.partial >= self.cwnd {
            if full {
                self.partial -= self.cwnd;
                self.cwnd = self.cwnd.saturating_add(chunk);
            } else {
                self.partial = self.cwnd;
            }
        }
        if self.flight == 0 {
            self.partial = 0;
        }
    }

    /// Halves the window because gap blocks report a loss, once in each fast recovery (RFC 9260, sections 7.2.3 and
    /// 7.2.4). `last`: the highest TSN that was sent.
    pub(crate) fn lost(&mut self, last: Tsn) {
        if self.recovery.is_none() {
            self.halve();
            self.cwnd = self.ssthresh;
            self.recovery = Some(last);
        }
    }

    /// Handles the expiry of T3: the window is one chunk, and the RTO is doubled (RFC 9260, sections 7.2.3 and
    /// 6.3.3).
    pub(crate) fn timed_out(&mut self) {
        self.halve();
        self.cwnd = self.largest_chunk();
        self.recovery = None;
        self.timed = None;
        self.t3 = None;
        self.woken = None;
        self.rto.back_off();
    }

    fn halve(&mut self) {
        self.ssthresh = (self.cwnd / 2).max(4 * self.largest_chunk());
        self.partial = 0;
    }

    /// Resets the counter of failures, as the path works. Returns whether the path was confirmed and inactive until
    /// now.
    pub(crate) const fn alive(&mut self) -> bool {
        self.errors = 0;
        let revived = matches!(self.state, PathState::Inactive) && self.confirmed;
        if revived {
            self.state = PathState::Active;
        }
        revived
    }

    /// Counts a failure. Returns whether the failure makes the path inactive: more than `most` failures in a row.
    pub(crate) const fn failed(&mut self, most: u32) -> bool {
        self.errors = self.errors.saturating_add(1);
        let over = self.errors > most && !matches!(self.state, PathState::Inactive);
        if over {
            self.state = PathState::Inactive;
        }
        over
    }
}

/// All addresses of the peer, and the primary one.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    list: Vec<Path>,
    pub(crate) primary: Ipv4Addr,
}

impl Paths {
    /// Creates the list with the first address of the peer.
    pub(crate) fn new(now: Instant, primary: Ipv4Addr, config: &Config) -> Self {
        Self { list: vec![Path::new(now, primary, config)], primary }
    }

    /// Adds a path. Returns whether its address is new; a path that exists already is kept.
    pub(crate) fn add(&mut self, path: Path) -> bool {
        let is_new = self.get(path.address).is_none();
        self.list.extend(Some(path).filter(|_| is_new));
        is_new
    }

    pub(crate) fn remove(&mut self, address: Ipv4Addr) {
        self.list.retain(|path| path.address != address);
    }

    pub(crate) fn get(&self, address: Ipv4Addr) -> Option<&Path> {
        self.list.iter().find(|path| path.address == address)
    }

    pub(crate) fn get_mut(&mut self, address: Ipv4Addr) -> Option<&mut Path> {
        self.list.iter_mut().find(|path| path.address == address)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.list.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        self.list.iter_mut()
    }

    /// Returns the address that only a directory has named, or `None`.
    pub(crate) fn hearsay(&self) -> Option<Ipv4Addr> {
        self.list.iter().find(|path| path.hearsay).map(|path| path.address)
    }

    pub(crate) const fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the destination of new data: the primary address if its path is active, else another active one (RFC
    /// 9260, section 6.4). While the primary path is silent, data go to an active address where the peer was heard
    /// more recently. RFC 7829, section 3.2, has a similar rule for a path that may have failed.
    pub(crate) fn for_data(&self) -> Ipv4Addr {
        if self.get(self.primary).is_some_and(Path::usable) {
            return self.heard_instead(self.primary).unwrap_or(self.primary);
        }
        // If no path is active, data may still go to a confirmed address.
        let confirmed = |path: &&Path| path.confirmed;
        let primary = self.get(self.primary).filter(confirmed);
        let other = || self.list.iter().find(confirmed);
        self.best_besides(self.primary)
            .or_else(|| primary.or_else(other).map(|path| path.address))
            .unwrap_or(self.primary)
    }

    /// Returns the best active path other than `address`: if possible one that is not superseded, and of these the
    /// one with the shortest round-trip time.
    pub(crate) fn best_besides(&self, address: Ipv4Addr) -> Option<Ipv4Addr> {
        self.best(|path| path.address != address)
    }

    /// Returns the best active path for which `of` is true.
    fn best(&self, of: impl Fn(&Path) -> bool) -> Option<Ipv4Addr> {
        let rank = |path: &&Path| (path.superseded, path.rto.srtt().unwrap_or(Duration::MAX));
        self.list.iter().filter(|path| path.usable() && of(path)).min_by_key(rank).map(|path| path.address)
    }

    /// Returns the destination for a retransmission of a chunk that was lost on `original` (RFC 9260, sections 6.4.1
    /// and 7.2.4). After a gap report it is `original`, if its path is active and not superseded. After a time-out it
    /// is another path if possible. If new data go to `original`, the other path must not be superseded. It must not be
    /// silent while the peer is heard on `original`: then only the acknowledgment was lost, and the repeated data show
    /// this to the peer. In all other cases the destination is that of new data.
    pub(crate) fn for_retransmission(&self, original: Ipv4Addr, timed_out: bool) -> Ipv4Addr {
        let wanted =
            |address: Ipv4Addr| self.get(address).is_some_and(|path| path.usable() && !path.superseded);
        let data = self.for_data();
        if !timed_out {
            return if wanted(original) { original } else { data };
        }
        if data != original {
            return data;
        }
        let may = |other: &Ipv4Addr| wanted(*other) && self.heard_instead(*other) != Some(original);
        self.best_besides(original).filter(may).unwrap_or(data)
    }

    /// Returns the best active path on which the peer was heard more recently than on `silent`. `None` unless `silent`
    /// has at least [`SILENT`] failures in a row.
    fn heard_instead(&self, silent: Ipv4Addr) -> Option<Ipv4Addr> {
        let silent = self.get(silent).filter(|silent| silent.errors >= SILENT)?;
        self.best(|other| other.address != silent.address && other.heard > silent.heard)
    }

    /// Returns the length of the largest DATA chunk that all paths carry, with its header, in bytes.
    pub(crate) fn largest_chunk(&self) -> u32 {
        self.list.iter().map(Path::largest_chunk).min().unwrap_or(512)
    }

    /// Lets each path send a burst: when a packet came, a timer expired or the MTU was lowered.
    pub(crate) fn allow_bursts(&mut self, most: u32) {
        self.list.iter_mut().for_each(|path| path.burst = most);
    }

    /// Lets paths send a burst, because a message was written. A path gets a burst at most once in [`WRITES`], so
    /// writes in a row share one burst. A path without data in flight gets a burst at once, as no acknowledgment would
    /// allow the burst.
    pub(crate) fn allow_bursts_again(&mut self, now: Instant, most: u32) {
        for path in &mut self.list {
            if path.flight == 0 || now >= path.burst_by_write + WRITES {
                (path.burst, path.burst_by_write) = (most, now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(last: u8) -> Path {
        Path::new(Instant::ZERO, Ipv4Addr::new(10, 0, 0, last), &Config::default())
    }

    fn active(last: u8) -> Path {
        Path { state: PathState::Active, confirmed: true, ..path(last) }
    }

    /// RFC 9260, section 7.2.1: with an MTU of 1500 the window begins with 4404 bytes, three full packets. In slow
    /// start it grows by the acknowledged bytes, at most one chunk for each SACK.
    #[test]
    fn the_window_begins_with_4404_bytes_and_doubles() {
        let mut path = path(1);
        assert_eq!((path.largest_chunk(), path.cwnd), (1468, 4404));
        path.grow(1452, 0, 4404, true);
        assert_eq!(path.cwnd, 5856, "by what was acknowledged");
        path.grow(9000, 0, 5856, true);
        assert_eq!(path.cwnd, 5856 + 1468, "by one chunk at most");
        path.grow(1452, 0, 5000, true);
        assert_eq!(path.cwnd, 7324, "not while it is not used");
        path.grow(1452, 0, 9000, false);
        assert_eq!(path.cwnd, 7324, "not for gaps");
    }

    /// RFC 9260, section 7.2.2: in congestion avoidance the window grows by one chunk for each acknowledged window.
    #[test]
    fn avoidance_adds_one_chunk_a_window() {
        let mut path = path(1);
        path.ssthresh = 4000;
        path.flight = 4404;
        path.grow(2904, 0, 5000, true);
        assert_eq!(path.cwnd, 4404);
        path.grow(1500, 0, 5000, true);
        assert_eq!(path.cwnd, 5872);
    }

    /// RFC 9260, section 7.2.2: bytes reported as duplicates let the window grow in congestion avoidance only.
    #[test]
    fn duplicates_count_towards_the_window_in_avoidance_only() {
        let mut path = path(1);
        path.flight = 4404;
        path.grow(0, 1468, 5000, true);
        assert_eq!(path.cwnd, 4404, "slow start");
        path.ssthresh = 4000;
        path.grow(2936, 1468, 5000, true);
        assert_eq!(path.cwnd, 5872);
    }

    /// RFC 1191, section 3: a report lowers the MTU or has no effect.
    #[test]
    fn a_router_only_lowers_the_mtu() {
        let mut path = path(1);
        for (reported, lower, mtu) in [
            (1500, false, 1500),
            (9000, false, 1500),
            (1400, true, 1400),
            (1500, false, 1400),
            (0, true, 576),
        ] {
            assert_eq!((path.lower_mtu(reported), path.mtu), (lower, mtu), "{reported}");
        }
    }

    /// After ten minutes the full MTU is tried again (RFC 1191, section 6.3). After a move the full MTU is tried at
    /// once, as the route has changed.
    #[test]
    fn a_narrow_path_is_tried_again_after_ten_minutes_and_after_a_move() {
        let mut path = path(1);
        let at = |minutes| Instant::ZERO + Duration::from_mins(minutes);
        assert!(path.lower_mtu(1000));
        for (minute, mtu) in [(1, 1000), (10, 1000), (11, 1500), (12, 1500)] {
            path.widen(at(minute));
            assert_eq!(path.mtu, mtu, "{minute}");
        }
        assert!(path.lower_mtu(1000));
        path.widen(at(13));
        assert!(path.lower_mtu(900), "a new report counts from when it came");
        path.widen(at(22));
        path.widen(at(31));
        assert_eq!(path.mtu, 900);
        path.reset_congestion(&Config::default());
        assert_eq!(path.mtu, 1500);
    }

    #[test]
    fn losses_halve_once_and_timeouts_begin_anew() {
        let mut path = path(1);
        path.cwnd = 20_000;
        path.lost(7);
        path.lost(7);
        assert_eq!((path.cwnd, path.ssthresh, path.recovery), (10_000, 10_000, Some(7)));
        path.timed_out();
        assert_eq!((path.cwnd, path.ssthresh, path.recovery), (1468, 4 * 1468, None));
        assert_eq!(path.rto.current(), Duration::from_secs(2));
    }

    #[test]
    fn a_window_that_is_not_used_decays() {
        let mut path = path(1);
        path.cwnd = 40_000;
        path.sent(Instant::from_millis(2500), 1000);
        assert_eq!(path.cwnd, 10_000);
        path.flight = 0;
        path.sent(Instant::from_millis(60_000), 1000);
        assert_eq!(path.cwnd, 4 * 1468);
    }

    #[test]
    fn where_to_send_again() {
        let mut paths = Paths { list: vec![active(1)], primary: active(1).address };
        let address = |last| Ipv4Addr::new(10, 0, 0, last);
        assert_eq!(paths.for_retransmission(address(1), true), address(1), "there is no other");
        paths.add(path(2));
        assert_eq!(paths.for_retransmission(address(1), true), address(1), "the other is not confirmed");
        paths.remove(address(2));
        paths.add(active(2));
        assert_eq!(paths.for_retransmission(address(1), true), address(2));
        assert_eq!(paths.for_retransmission(address(1), false), address(1));
        paths.primary = address(2);
        paths.get_mut(address(1)).unwrap().superseded = true;
        assert_eq!(paths.for_retransmission(address(1), false), address(2), "the peer is leaving it");
        assert_eq!(paths.for_retransmission(address(2), true), address(2), "not back to where it leaves");
        paths.get_mut(address(2)).unwrap().errors = SILENT;
        assert_eq!(paths.for_retransmission(address(2), true), address(2), "nor if it is not heard there");
        paths.get_mut(address(1)).unwrap().heard = Instant::from_millis(1);
        assert_eq!(paths.for_retransmission(address(2), true), address(1), "but where it is heard");
        assert_eq!(paths.for_retransmission(address(1), true), address(1), "and there it stays");
        assert_eq!(paths.for_data(), address(1), "as do new data");
        paths.get_mut(address(2)).unwrap().errors = 1;
        assert_eq!(paths.for_retransmission(address(2), true), address(2), "one packet may be lost");
        paths.get_mut(address(2)).unwrap().state = PathState::Inactive;
        assert_eq!(paths.for_data(), address(1), "better than nothing");
    }
}
