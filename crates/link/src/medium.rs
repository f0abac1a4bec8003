//! What a frame has to wait for: the medium, and the queue in front of it.

use crate::air::{Access, Air, Counters};
use crate::{PortId, reason};
use std::collections::VecDeque;
use wire::Seed;
use wire::{Cell, Duration, Instant, Reason};

/// A full-duplex wire between two ports.
#[derive(Clone, Debug)]
pub struct WireSpec {
    /// Bits a second, each way.
    pub rate: u64,
    /// Propagation, from the first end to the second and back.
    pub delay: [Duration; 2],
    /// Frames that may wait at each end.
    pub queue: usize,
    /// The largest datagram, in bytes.
    pub mtu: u16,
    /// What goes wrong on it.
    pub faults: Faults,
}

/// A radio cell.
#[derive(Clone, Debug)]
pub struct CellSpec {
    /// Its number.
    pub cell: Cell,
    /// Bits a second, shared by all its radios.
    pub rate: u64,
    /// What each frame costs beyond its bits: preamble, acknowledgement.
    pub per_frame: Duration,
    /// Propagation.
    pub delay: Duration,
    /// Frames that may wait at each radio.
    pub queue: usize,
    /// The largest datagram, in bytes.
    pub mtu: u16,
    /// What goes wrong in it.
    pub faults: Faults,
    /// How it uses its frequency.
    pub air: Air,
}

/// Errors of a medium, each an independent chance for each frame.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Faults {
    /// That it is lost; where losses come in bursts, between them.
    pub loss: f64,
    /// That it arrives twice.
    pub duplicate: f64,
    /// Times at which more is lost.
    pub burst: Option<Burst>,
}

/// Losses that come together: a channel of two states, good and bad, that may change before each frame (Gilbert, "Capacity
/// of a burst-noise channel", 1960; Elliott, 1963, for what is lost in the good one). It is bad for `1 / leave` frames on
/// average, and for `enter / (enter + leave)` of all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// The chance to turn bad.
    pub enter: f64,
    /// The chance to turn good again.
    pub leave: f64,
    /// The chance that a frame is lost while it is bad.
    pub loss: f64,
}

impl Faults {
    /// The share of frames that are lost in the long run.
    pub fn mean_loss(&self) -> f64 {
        let Some(Burst { enter, leave, loss }) = self.burst else { return self.loss };
        let bad = if enter + leave > 0.0 { enter / (enter + leave) } else { 0.0 };
        bad * loss + (1.0 - bad) * self.loss
    }
}

/// One direction of a wire, or the air of a cell.
#[derive(Clone, Debug)]
pub(crate) struct Medium {
    pub(crate) rate: u64,
    pub(crate) per_frame: Duration,
    pub(crate) delay: Duration,
    pub(crate) queue: usize,
    pub(crate) mtu: u16,
    pub(crate) faults: Faults,
    pub(crate) air: Air,
    /// Free again from here on.
    pub(crate) busy_until: Instant,
    next_beacon: Instant,
    counters: Counters,
    /// In the bad state of [`Burst`].
    is_bad: bool,
    chance: Seed,
}

impl Medium {
    pub(crate) fn wire(spec: &WireSpec, direction: usize, chance: Seed) -> Self {
        Self {
            rate: spec.rate,
            per_frame: Duration::ZERO,
            delay: spec.delay.get(direction).copied().unwrap_or_default(),
            queue: spec.queue,
            mtu: spec.mtu,
            faults: spec.faults,
            air: Air::default(),
            busy_until: Instant::ZERO,
            next_beacon: Instant::NEVER,
            counters: Counters::default(),
            is_bad: false,
            chance,
        }
    }

    pub(crate) fn air(spec: &CellSpec, chance: Seed) -> Self {
        // Base stations are not in step.
        let phase = |every: Duration| chance.fork("beacon").draw() % (every.as_nanos() as u64).max(1);
        Self {
            rate: spec.rate,
            per_frame: spec.per_frame,
            delay: spec.delay,
            queue: spec.queue,
            mtu: spec.mtu,
            faults: spec.faults,
            air: spec.air,
            busy_until: Instant::ZERO,
            next_beacon: spec.air.beacon.map_or(Instant::NEVER, |beacon| Instant(phase(beacon.every))),
            counters: Counters::default(),
            is_bad: false,
            chance,
        }
    }

    /// Takes the medium for a frame of `bytes`: when its first bit goes out and when its last has.
    pub(crate) fn occupy(&mut self, now: Instant, bytes: usize) -> (Instant, Instant) {
        let start = now.max(self.busy_until);
        self.busy_until = start + self.airtime(bytes);
        (start, self.busy_until)
    }

    fn airtime(&self, bytes: usize) -> Duration {
        let bits = bytes as u64 * 8;
        let nanos = u128::from(bits) * 1_000_000_000 / u128::from(self.rate.max(1));
        Duration::from_nanos(nanos as u64) + self.per_frame
    }

    /// Beacons that are due before a frame which is offered now can begin. One that the air is not free for waits until it is.
    pub(crate) fn send_beacons(&mut self, now: Instant) {
        let Some(beacon) = self.air.beacon.filter(|beacon| !beacon.every.is_zero()) else { return };
        let (every, airtime) = (beacon.every.as_nanos() as u64, self.airtime(beacon.bytes));
        // Those of times when nobody sent are of no account.
        let missed = now.0.saturating_sub(self.next_beacon.0) / every;
        self.next_beacon.0 += missed.saturating_sub(1) * every;
        while self.next_beacon <= now.max(self.busy_until) {
            self.busy_until = self.next_beacon.max(self.busy_until) + airtime;
            self.next_beacon.0 += every;
        }
    }

    /// When a radio that listens from `from` on has heard a beacon; at once where there are none.
    pub(crate) fn beacon_after(&self, from: Instant) -> Instant {
        let Some(beacon) = self.air.beacon.filter(|beacon| !beacon.every.is_zero()) else { return from };
        let every = beacon.every.as_nanos() as u64;
        let phase = self.next_beacon.0 % every;
        let next = from.0.saturating_sub(phase).div_ceil(every) * every + phase;
        Instant(next) + self.airtime(beacon.bytes)
    }

    /// Contends for the air, if there is somebody or something to contend with. An error when the frame is lost by it.
    pub(crate) fn contend(
        &mut self,
        now: Instant,
        bytes: usize,
        own: PortId,
        rivals: &[PortId],
    ) -> Result<(), Reason> {
        let Some(contention) = self.air.contention else { return Ok(()) };
        if self.busy_until <= now && rivals.is_empty() {
            return Ok(());
        }
        let Access { idle, collisions, lost } =
            contention.access(own, rivals, &mut self.counters, &mut self.chance);
        let spent = contention.slot * idle + self.airtime(bytes) * collisions;
        self.busy_until = self.busy_until.max(now) + spent;
        if lost { Err(reason::COLLISIONS) } else { Ok(()) }
    }

    /// How many copies of a frame arrive; an error when none does.
    pub(crate) fn luck(&mut self) -> Result<u8, Reason> {
        let loss = self.loss();
        if loss > 0.0 && self.toss() < loss {
            return Err(reason::LINK_ERROR);
        }
        Ok(1 + u8::from(self.faults.duplicate > 0.0 && self.toss() < self.faults.duplicate))
    }

    /// The chance that this frame is lost.
    fn loss(&mut self) -> f64 {
        let Some(Burst { enter, leave, loss }) = self.faults.burst else { return self.faults.loss };
        let turns = self.toss() < if self.is_bad { leave } else { enter };
        self.is_bad ^= turns;
        if self.is_bad { loss } else { self.faults.loss }
    }

    fn toss(&mut self) -> f64 {
        // 53 bits, so that the fraction is exact and below one.
        (self.chance.draw() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// When the frames that wait at a port will be out.
#[derive(Clone, Default, Debug)]
pub(crate) struct Queue(VecDeque<Instant>);

impl Queue {
    /// Frames that still wait, or are going out, at `now`.
    pub(crate) fn waiting(&mut self, now: Instant) -> usize {
        while self.0.front().is_some_and(|out| *out <= now) {
            self.0.pop_front();
        }
        self.0.len()
    }

    pub(crate) fn push(&mut self, out: Instant) {
        self.0.push_back(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of so many frames were lost, and in how many runs of losses.
    fn lost(faults: Faults, frames: usize) -> (f64, f64) {
        let spec = WireSpec { rate: 1, delay: [Duration::ZERO; 2], queue: 1, mtu: 1500, faults };
        let mut medium = Medium::wire(&spec, 0, Seed::new(7).fork("burst"));
        let fates: Vec<bool> = (0..frames).map(|_| medium.luck().is_err()).collect();
        let begins = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let all = fates.iter().filter(|lost| **lost).count();
        (all as f64 / frames as f64, all as f64 / begins.max(1) as f64)
    }

    #[test]
    fn bursts_have_the_length_and_the_share_that_the_channel_says() {
        let burst = Burst { enter: 0.01, leave: 0.2, loss: 1.0 };
        let faults = Faults { burst: Some(burst), ..Faults::default() };
        let (share, length) = lost(faults, 400_000);
        assert!((share / faults.mean_loss() - 1.0).abs() < 0.05, "{share}");
        assert!((length / 5.0 - 1.0).abs() < 0.05, "1 / leave frames, not {length}");
    }

    #[test]
    fn as_much_loss_without_bursts_is_scattered() {
        let burst = Burst { enter: 0.01, leave: 0.2, loss: 1.0 };
        let mean = Faults { burst: Some(burst), ..Faults::default() }.mean_loss();
        let (share, length) = lost(Faults { loss: mean, ..Faults::default() }, 400_000);
        assert!((share / mean - 1.0).abs() < 0.05 && length < 1.1, "{share}, {length}");
    }

    #[test]
    fn a_good_channel_may_lose_too() {
        let burst = Burst { enter: 0.5, leave: 0.5, loss: 0.4 };
        let faults = Faults { loss: 0.2, burst: Some(burst), ..Faults::default() };
        assert!((faults.mean_loss() - 0.3).abs() < 1e-9);
        assert!((lost(faults, 400_000).0 - 0.3).abs() < 0.01);
        let never = Faults { burst: Some(Burst { enter: 0.0, leave: 0.0, loss: 1.0 }), ..Faults::default() };
        assert!(lost(never, 1000).0 < f64::EPSILON);
    }
}
