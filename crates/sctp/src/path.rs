//! Paths: what is known of each address of the peer (RFC 9260, sections 5.4, 7 and 8).

use crate::Config;
use crate::detour::SILENT;
use crate::serial::Tsn;
use wire::{Duration, Instant, Ipv4Addr, Rto};

/// Bytes of the IP header and the common header.
const HEADERS: u32 = 20 + 12;
/// What a path of the least MTU must carry: IPv4's own least would leave no room for a chunk.
const LEAST_MTU: u16 = 576;

/// How long a path is believed to carry less (RFC 1191, section 6.3).
const NARROW: Duration = Duration::from_mins(10);

/// Writes within this time are one occasion to send: at most one burst.
const WRITES: Duration = Duration::from_millis(1);

/// Whether a path may be used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PathState {
    /// Nobody has proved yet that the peer is there. No data go there.
    Unconfirmed,
    /// It works, as far as is known.
    Active,
    /// It failed too often in a row.
    Inactive,
}

/// A look at a path, for graphs and reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathInfo {
    /// The peer's address.
    pub address: Ipv4Addr,
    /// Whether it may be used.
    pub state: PathState,
    /// Whether it is the primary one.
    pub primary: bool,
    /// The congestion window, in bytes.
    pub cwnd: u32,
    /// The slow start threshold, in bytes.
    pub ssthresh: u32,
    /// Bytes on their way, in chunks: what `cwnd` bounds.
    pub flight: u32,
    /// The time-out, backed off.
    pub rto: Duration,
    /// The smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Failures in a row.
    pub errors: u32,
}

/// A heartbeat that is not answered yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    pub(crate) nonce: u64,
    /// When it was sent; without that if it was sent again, as an answer does not say to which one.
    pub(crate) sent: Option<Instant>,
    pub(crate) until: Instant,
}

/// One address of the peer.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "four facts that do not exclude each other")]
pub(crate) struct Path {
    pub(crate) address: Ipv4Addr,
    pub(crate) state: PathState,
    /// Whether a nonce came back from it, ever.
    pub(crate) confirmed: bool,
    /// Only a directory says that the peer is there, and not the peer: see `directory`.
    pub(crate) hearsay: bool,
    /// Something came from there that the peer alone can sign.
    pub(crate) signed: bool,
    /// The peer has asked for another since: the last choice for what is sent again.
    pub(crate) superseded: bool,
    /// When a packet came from there last.
    pub(crate) heard: Instant,
    pub(crate) errors: u32,
    pub(crate) rto: Rto,
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    /// `partial_bytes_acked`.
    partial: u32,
    pub(crate) flight: u32,
    /// Packets with data that may still leave at this instant.
    pub(crate) burst: u32,
    /// When a write last allowed a burst.
    burst_by_write: Instant,
    pub(crate) t3: Option<Instant>,
    /// When data were last sent again before the time-out that was backed off. Their acknowledgment ends the back-off.
    pub(crate) woken: Option<Instant>,
    /// In fast recovery until this is acknowledged.
    pub(crate) recovery: Option<Tsn>,
    /// The chunk whose round trip is measured.
    pub(crate) timed: Option<(Tsn, Instant)>,
    /// The latest transmission here that was acknowledged.
    pub(crate) latest_acked: u64,
    /// When the next heartbeat is due.
    pub(crate) heartbeat: Instant,
    pub(crate) probe: Option<Probe>,
    /// The user's choice of our own address for it.
    pub(crate) source: Option<Ipv4Addr>,
    pub(crate) mtu: u16,
    /// The MTU while no router has reported a smaller one.
    widest: u16,
    /// When a router last reported a smaller MTU, while that holds.
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

    /// PMDCS: the largest DATA chunk, its header included.
    pub(crate) fn largest_chunk(&self) -> u32 {
        (u32::from(self.mtu) - HEADERS) & !3
    }

    /// Section 7.2.1.
    fn initial_window(&self) -> u32 {
        let chunk = self.largest_chunk();
        (4 * chunk).min((2 * chunk).max(4404))
    }

    /// A router reports that the path carries packets of at most `mtu` bytes. Returns whether that is less than before: a report
    /// only ever lowers the MTU (RFC 1191, section 3), so a late or forged one cannot raise it.
    pub(crate) fn lower_mtu(&mut self, mtu: u16) -> bool {
        let lower = mtu.max(LEAST_MTU) < self.mtu;
        if lower {
            self.mtu = mtu.max(LEAST_MTU);
            self.narrow = None;
        }
        lower
    }

    /// Data are about to leave: whether the path carries more again is tried from time to time (RFC 1191, section 6.3). If it does
    /// not, a router says so again.
    pub(crate) fn widen(&mut self, now: Instant) {
        if self.mtu < self.widest && now >= *self.narrow.get_or_insert(now) + NARROW {
            (self.mtu, self.narrow) = (self.widest, None);
        }
    }

    pub(crate) const fn usable(&self) -> bool {
        matches!(self.state, PathState::Active)
    }

    /// Another way to the same address: nothing that was learned counts (section 7.2, the change of a route).
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

    /// Data begin to go here: what an earlier time left behind says nothing about now.
    pub(crate) fn restart_window(&mut self) {
        if self.flight == 0 {
            self.cwnd = self.initial_window();
            self.ssthresh = u32::MAX;
            self.partial = 0;
        }
    }

    /// Whether a chunk with data may leave: section 6.1, B, and Max.Burst (D). `hurry`: one packet may leave in spite of both
    /// (section 7.2.4, 3). Data never go to an address that is not confirmed, new or repeated (section 5.4).
    pub(crate) const fn open(&self, hurry: bool) -> bool {
        self.confirmed && (hurry || (self.flight < self.cwnd && self.burst > 0))
    }

    /// Whether the peer has been silent on this path, and data wait for a time-out that was backed off, and have for as long as one that
    /// was not.
    pub(crate) fn asleep(&self, now: Instant) -> bool {
        let (base, doublings) = self.rto.backing();
        let waits = self.woken.is_none_or(|woken| now >= woken + base);
        self.confirmed && self.errors > 0 && self.t3.is_some() && doublings > 0 && waits
    }

    /// Whether the probe of an address that is not confirmed waits for a time-out that was backed off, and was sent longer ago than one
    /// that is not.
    pub(crate) fn probe_sleeps(&self, now: Instant) -> bool {
        let (base, doublings) = self.rto.backing();
        let is_late = |last: Option<Instant>| last.is_none_or(|last| now >= last + base);
        let is_probed = self.probe.is_some_and(|probe| is_late(probe.sent)) && is_late(self.woken);
        self.state == PathState::Unconfirmed && doublings > 0 && is_probed
    }

    /// What is waited for does not take longer than a time-out that is not backed off.
    pub(crate) fn end_back_off(&mut self, now: Instant) {
        self.rto.at_least(Duration::ZERO);
        self.t3 = self.t3.map(|t3| t3.min(now + self.rto.current()));
    }

    /// A chunk of so many bytes, its header included, leaves.
    pub(crate) fn sent(&mut self, now: Instant, bytes: u32) {
        // Section 7.2.1: a window that was not used is halved for each time-out.
        let mut idle = now.since(self.last_data);
        let least = 4 * self.largest_chunk();
        while self.flight == 0 && idle > self.rto.current() && self.cwnd > least {
            self.cwnd = (self.cwnd / 2).max(least);
            idle = idle.saturating_sub(self.rto.current());
        }
        self.last_data = now;
        self.flight += bytes;
        self.t3.get_or_insert(now + self.rto.current()); // section 6.3.2, R1
    }

    /// `acked` bytes of chunks on this path were acknowledged and `again` bytes were reported as duplicates; `before` were on
    /// their way (sections 7.2.1 and 7.2.2).
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

    /// Section 7.2.3: chunks were lost, as gaps say; all up to `last` was sent. Once in a recovery.
    pub(crate) fn lost(&mut self, last: Tsn) {
        if self.recovery.is_none() {
            self.halve();
            self.cwnd = self.ssthresh;
            self.recovery = Some(last);
        }
    }

    /// Section 7.2.3 and 6.3.3: T3 went off.
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

    /// It was heard from. Says whether it was inactive until now.
    pub(crate) const fn alive(&mut self) -> bool {
        self.errors = 0;
        let revived = matches!(self.state, PathState::Inactive) && self.confirmed;
        if revived {
            self.state = PathState::Active;
        }
        revived
    }

    /// It failed once more. Says whether it counts as inactive from now on.
    pub(crate) const fn failed(&mut self, most: u32) -> bool {
        self.errors = self.errors.saturating_add(1);
        let over = self.errors > most && !matches!(self.state, PathState::Inactive);
        if over {
            self.state = PathState::Inactive;
        }
        over
    }
}

/// All addresses of the peer, and which of them is meant first.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    list: Vec<Path>,
    pub(crate) primary: Ipv4Addr,
}

impl Paths {
    /// With the first address of the peer.
    pub(crate) fn new(now: Instant, primary: Ipv4Addr, config: &Config) -> Self {
        Self { list: vec![Path::new(now, primary, config)], primary }
    }

    /// Another address. Returns whether it is new; a path that is there already stays.
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

    /// The address that a directory gave.
    pub(crate) fn hearsay(&self) -> Option<Ipv4Addr> {
        self.list.iter().find(|path| path.hearsay).map(|path| path.address)
    }

    pub(crate) const fn len(&self) -> usize {
        self.list.len()
    }

    /// Where new data go: to the primary path. While that is inactive, to one that is not (section 6.4), and while it is silent, to one
    /// where the peer was heard since (as RFC 7829, section 5.1, does for a path that may have failed).
    pub(crate) fn for_data(&self) -> Ipv4Addr {
        if self.get(self.primary).is_some_and(Path::usable) {
            return self.heard_instead(self.primary).unwrap_or(self.primary);
        }
        // With none active, at least one that was confirmed once: data may go there.
        let confirmed = |path: &&Path| path.confirmed;
        let primary = self.get(self.primary).filter(confirmed);
        let other = || self.list.iter().find(confirmed);
        self.best_besides(self.primary)
            .or_else(|| primary.or_else(other).map(|path| path.address))
            .unwrap_or(self.primary)
    }

    /// An active path other than `address`: one that the peer has not turned away from, and the quickest of these.
    pub(crate) fn best_besides(&self, address: Ipv4Addr) -> Option<Ipv4Addr> {
        self.best(|path| path.address != address)
    }

    /// The best active path of these.
    fn best(&self, of: impl Fn(&Path) -> bool) -> Option<Ipv4Addr> {
        let rank = |path: &&Path| (path.superseded, path.rto.srtt().unwrap_or(Duration::MAX));
        self.list.iter().filter(|path| path.usable() && of(path)).min_by_key(rank).map(|path| path.address)
    }

    /// Where a chunk goes again that was lost on `original` (sections 6.4.1 and 7.2.4). After a time-out, elsewhere: to where the peer
    /// has turned away from only if it is heard there and the other one is silent, as it is leaving that address. Not to a silent one if
    /// it is heard on `original`: then the acknowledgment was lost, and the peer finds that out when data come again. After a gap, along
    /// the same path, if the peer still wants it.
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

    /// The best active path on which the peer was heard since it was on `silent`, which has not answered.
    fn heard_instead(&self, silent: Ipv4Addr) -> Option<Ipv4Addr> {
        let silent = self.get(silent).filter(|silent| silent.errors >= SILENT)?;
        self.best(|other| other.address != silent.address && other.heard > silent.heard)
    }

    /// The largest DATA chunk that every path carries.
    pub(crate) fn largest_chunk(&self) -> u32 {
        self.list.iter().map(Path::largest_chunk).min().unwrap_or(512)
    }

    /// Something came, or a timer went off: each path may send its burst.
    pub(crate) fn allow_bursts(&mut self, most: u32) {
        self.list.iter_mut().for_each(|path| path.burst = most);
    }

    /// Something was written. Writes in a row share a burst: each path gets another one [`WRITES`] after the last that a write
    /// gave it, or if nothing is on its way there that would bring an acknowledgment.
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

    /// RFC 9260, section 7.2.1, for an MTU of 1500: three full packets and a little.
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

    /// Section 7.2.2: one chunk for each window that was acknowledged.
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

    /// Section 7.2.2: duplicates count, and only in congestion avoidance.
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

    /// RFC 1191, section 3: a report lowers the MTU or changes nothing.
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

    /// After ten minutes larger packets are tried again (RFC 1191, section 6.3), and at once after a move, as another path leads to the
    /// address then.
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
