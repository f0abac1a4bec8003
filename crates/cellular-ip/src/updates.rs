//! When a mobile host sends its route-updates, and by which clock.

use crate::config::{MobileConfig, Station};
use crate::message::{Authentication, RouteUpdate, Skipped};
use node::Seed;
use wire::{Duration, Instant, Packet, WallTime, ntp_distance};

/// How long the first data of a host may be unanswered before it sends one more route-update; then twice as long, and so on.
const UNANSWERED: Duration = Duration::from_secs(1);
/// The largest difference between two clocks that count as the same: far below any replay window.
const SAME_CLOCK: i64 = 1_000_000_000;

/// The route-updates of one stay at a base station.
///
/// The configured repeats come first. A host that no packet has reached since then cannot know that the network has its
/// route-update, and its own data keep the route-update-time from running out. So once it has sent data, it repeats the
/// route-update after 1 s, and in gaps that double, up to the route-update-time, until a downlink packet comes.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    since: Instant,
    /// Of the configured.
    sent: u16,
    /// How often the gap was doubled.
    doubled: u8,
    /// It has sent data since.
    spoke: bool,
    /// A packet has reached it since.
    confirmed: bool,
}

impl Repeats {
    /// Begins a stay with its first route-update; returns when the next configured one is due.
    pub(crate) fn begin(&mut self, now: Instant, configured: &[Duration]) -> Option<Instant> {
        *self = Self { since: now, ..Self::default() };
        self.next(configured)
    }

    /// One more of the configured was sent; returns when the next is due.
    pub(crate) fn repeated(&mut self, configured: &[Duration]) -> Option<Instant> {
        self.sent += 1;
        self.next(configured)
    }

    fn next(&self, configured: &[Duration]) -> Option<Instant> {
        configured.get(usize::from(self.sent)).map(|after| self.since + *after)
    }

    /// Whether the first data of this stay are still to be waited for.
    pub(crate) const fn is_silent(&self) -> bool {
        !self.spoke && !self.confirmed
    }

    /// The host sends data, or has sent no answered ones yet; returns when a packet has to have come, if none has. `longest` is
    /// the route-update-time.
    pub(crate) fn unanswered(&mut self, now: Instant, longest: Duration) -> Option<Instant> {
        self.spoke = true;
        let gap = UNANSWERED.saturating_mul(1 << self.doubled.min(16)).min(longest);
        self.doubled = self.doubled.saturating_add(1);
        (!self.confirmed).then_some(now + gap)
    }

    /// A packet came by the new base station.
    pub(crate) const fn confirm(&mut self) {
        self.confirmed = true;
    }
}

/// A clock and the last timestamp that was made from it.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    /// What it says of [`Instant::ZERO`].
    wall: WallTime,
    last: u64,
}

impl Clock {
    /// Strictly increasing; the bits that nanoseconds leave unused are random (draft 3.3.2).
    fn stamp(&mut self, now: Instant, chance: &mut Seed) -> u64 {
        let fresh = self.wall.plus(now.since(Instant::ZERO)).to_ntp() & !3 | chance.draw() & 3;
        let next = self.last.wrapping_add(1);
        self.last = if ntp_distance(fresh, next) >= 0 || self.last == 0 { fresh } else { next };
        self.last
    }

    const fn is_as(self, wall: WallTime) -> bool {
        self.wall.0.abs_diff(wall.0) <= SAME_CLOCK.unsigned_abs()
    }
}

/// The host's clock, and the one it had before it was set.
///
/// Nodes refuse a timestamp that is too far from their own time. A clock that is set may have become right or wrong, and the
/// host cannot tell which. So it signs each route-update by both clocks; the nodes accept the one that is right.
#[derive(Debug)]
pub(crate) struct Clocks {
    clock: Clock,
    /// Few hosts have one.
    former: Option<Box<Clock>>,
    chance: Seed,
}

impl Clocks {
    pub(crate) fn new(chance: Seed) -> Self {
        Self { clock: Clock::default(), former: None, chance }
    }

    /// The clock of a host that starts.
    pub(crate) fn start(&mut self, wall: WallTime) {
        self.clock.wall = wall;
    }

    /// The clock was set; returns whether by more than what counts as the same. The first one that was left stays, as long as
    /// the new one is another.
    pub(crate) fn set(&mut self, wall: WallTime) -> bool {
        if self.clock.is_as(wall) {
            self.clock.wall = wall;
            return false;
        }
        let former = self.former.take().map_or(self.clock, |former| *former);
        if former.is_as(wall) {
            self.clock = Clock { wall, ..former };
        } else {
            (self.clock, self.former) = (Clock { wall, last: 0 }, Some(Box::new(former)));
        }
        true
    }

    /// The timestamps for one route-update, each for a copy of its own.
    pub(crate) fn stamps(&mut self, now: Instant) -> impl Iterator<Item = u64> + use<> {
        let former = self.former.as_mut().map(|clock| clock.stamp(now, &mut self.chance));
        let own = self.clock.stamp(now, &mut self.chance);
        former.into_iter().chain([own])
    }
}

/// A route-update of this host to a base station.
pub(crate) fn signed(config: &MobileConfig, station: &Station, timestamp: u64, semisoft: bool) -> Packet {
    let mut update = RouteUpdate {
        mobile: config.address,
        gateway: config.gateway,
        timestamp,
        semisoft,
        auth: Authentication::unsigned(config.key_generation, config.r_mh.to_be_bytes()),
        serving_bs: Some(station.id),
        skipped: Skipped::default(),
    };
    update.sign(&config.session_key);
    Packet::new(station.mac, update.emit())
}
