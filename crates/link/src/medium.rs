//! What a frame has to wait for: the medium, and the queue in front of it.

use crate::reason;
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
    /// What each frame costs beyond its bits: preamble, contention, acknowledgement.
    pub per_frame: Duration,
    /// Propagation.
    pub delay: Duration,
    /// Frames that may wait at each radio.
    pub queue: usize,
    /// The largest datagram, in bytes.
    pub mtu: u16,
    /// What goes wrong in it.
    pub faults: Faults,
}

/// Errors of a medium, each an independent chance for each frame.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Faults {
    /// That it is lost.
    pub loss: f64,
    /// That it arrives twice.
    pub duplicate: f64,
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
    /// Free again from here on.
    busy_until: Instant,
    chance: Seed,
}

impl Medium {
    pub(crate) fn wire(spec: &WireSpec, direction: usize, chance: Seed) -> Self {
        let delay = spec.delay.get(direction).copied().unwrap_or_default();
        Self {
            rate: spec.rate,
            per_frame: Duration::ZERO,
            delay,
            queue: spec.queue,
            mtu: spec.mtu,
            faults: spec.faults,
            busy_until: Instant::ZERO,
            chance,
        }
    }

    pub(crate) const fn air(spec: &CellSpec, chance: Seed) -> Self {
        Self {
            rate: spec.rate,
            per_frame: spec.per_frame,
            delay: spec.delay,
            queue: spec.queue,
            mtu: spec.mtu,
            faults: spec.faults,
            busy_until: Instant::ZERO,
            chance,
        }
    }

    /// Takes the medium for a frame of `bytes`: when its first bit goes out and when its last has.
    pub(crate) fn occupy(&mut self, now: Instant, bytes: usize) -> (Instant, Instant) {
        let start = now.max(self.busy_until);
        let bits = bytes as u64 * 8;
        let airtime =
            Duration::from_nanos((u128::from(bits) * 1_000_000_000 / u128::from(self.rate.max(1))) as u64);
        self.busy_until = start + airtime + self.per_frame;
        (start, self.busy_until)
    }

    /// How many copies of a frame arrive; an error when none does.
    pub(crate) fn luck(&mut self) -> Result<u8, Reason> {
        if self.faults.loss > 0.0 && self.toss() < self.faults.loss {
            return Err(reason::LINK_ERROR);
        }
        Ok(1 + u8::from(self.faults.duplicate > 0.0 && self.toss() < self.faults.duplicate))
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
