//! When a mobile host sends its route-updates, and by which clock.

use crate::config::{MobileConfig, Station};
use crate::message::{Authentication, RouteUpdate, Skipped};
use node::Seed;
use std::num::NonZeroU64;
use wire::{Duration, Instant, Packet, WallTime, ntp_distance};

/// The largest difference between two clocks that count as the same: far below any replay window.
const SAME_CLOCK: i64 = 1_000_000_000;

/// The repetitions of one route-update, as they are configured.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    since: Instant,
    sent: usize,
}

impl Repeats {
    /// A route-update was sent that is to be repeated; returns when first.
    pub(crate) fn begin(&mut self, now: Instant, configured: &[Duration]) -> Option<Instant> {
        *self = Self { since: now, sent: 0 };
        self.next(configured)
    }

    /// It was repeated; returns when next.
    pub(crate) fn repeated(&mut self, configured: &[Duration]) -> Option<Instant> {
        self.sent += 1;
        self.next(configured)
    }

    /// A route-update was sent that is not repeated, nor is the one before it any more.
    pub(crate) const fn end(&mut self, now: Instant) {
        *self = Self { since: now, sent: usize::MAX };
    }

    /// When the last one was sent that began or ended repetitions.
    pub(crate) const fn since(&self) -> Instant {
        self.since
    }

    fn next(&self, configured: &[Duration]) -> Option<Instant> {
        configured.get(self.sent).map(|after| self.since + *after)
    }
}

/// A clock and the last timestamp that was made from it.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    /// What it says of [`Instant::ZERO`].
    wall: WallTime,
    last: u64,
    /// The first timestamp of the present stay, if this clock was there by then.
    since: Option<NonZeroU64>,
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
            (self.clock, self.former) = (Clock { wall, ..Clock::default() }, Some(Box::new(former)));
        }
        true
    }

    /// The timestamps for one route-update, each for a copy of its own, and since when the host is attached by the same clock.
    pub(crate) fn stamps(&mut self, now: Instant) -> impl Iterator<Item = (u64, Option<u64>)> + use<> {
        let mut stamp =
            |clock: &mut Clock| (clock.stamp(now, &mut self.chance), clock.since.map(NonZeroU64::get));
        let former = self.former.as_mut().map(|clock| stamp(clock));
        let own = stamp(&mut self.clock);
        former.into_iter().chain([own])
    }

    /// A stay began with the last timestamps.
    pub(crate) fn attached(&mut self) {
        for clock in [Some(&mut self.clock), self.former.as_deref_mut()].into_iter().flatten() {
            clock.since = NonZeroU64::new(clock.last);
        }
    }
}

/// A route-update of this host to a base station. A semisoft one says `since` when it is attached to the old one.
pub(crate) fn signed(
    config: &MobileConfig,
    station: &Station,
    (timestamp, since): (u64, Option<u64>),
    semisoft: bool,
) -> Packet {
    let since = since.filter(|_| semisoft);
    let mut update = RouteUpdate {
        mobile: config.address,
        gateway: config.gateway,
        timestamp,
        semisoft,
        auth: Authentication::unsigned(config.key_generation, config.r_mh.to_be_bytes()),
        serving_bs: Some(station.id),
        skipped: since.map(Skipped::attached_since).unwrap_or_default(),
    };
    update.sign(&config.session_key);
    Packet::new(station.mac, update.emit())
}
