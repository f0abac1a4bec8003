//! What the air of a cell costs beside the bits of its frames: beacons, and the contention of those who want to send.

use crate::PortId;
use std::collections::BTreeMap;
use wire::{Duration, Seed};

/// How a cell uses its frequency. By default it has a channel of its own, no beacons, and nobody contends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Air {
    /// Its channel: cells of one channel share the air. `None` is a channel that no other cell has.
    pub channel: Option<u16>,
    /// Its base station's beacons.
    pub beacon: Option<Beacon>,
    /// What it costs that several radios want to send.
    pub contention: Option<Contention>,
}

/// A base station's beacons. They take air from everybody, and a radio that comes waits for one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beacon {
    /// From one to the next: 102.4 ms in most networks of 802.11.
    pub every: Duration,
    /// The frame's length, in bytes.
    pub bytes: usize,
}

/// Contention as in the distributed coordination function of IEEE 802.11: who finds the air busy, or has just sent, waits for
/// a random number of slots; who draws the same number as another collides, and draws from twice as many next.
///
/// A radio that was interrupted counts on from where it was, and every other's frame counts as a slot (Bianchi, "Performance
/// analysis of the IEEE 802.11 distributed coordination function", 2000; `air_tests.rs` holds it against his model). Frames go
/// first come, first served all the same: a radio with a longer queue has a larger share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contention {
    /// A slot's length: 20 us for 802.11b.
    pub slot: Duration,
    /// Slots that a first draw is from: 32.
    pub window: u32,
    /// Slots that no draw is from more of: 1024.
    pub most: u32,
}

/// After so many collisions a frame is lost (802.11's short retry limit).
const ATTEMPTS: u8 = 7;

/// What a frame had to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Access {
    /// Slots in which nobody sent.
    pub(crate) idle: u32,
    /// Times that two sent at once.
    pub(crate) collisions: u32,
    /// It collided too often.
    pub(crate) lost: bool,
}

/// Where each radio that contends has counted down to, and how often it has collided in a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters(BTreeMap<PortId, Counter>);

#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    /// Slots to wait; drawn when it is wanted.
    slots: Option<u32>,
    collided: u8,
}

impl Contention {
    /// Until one radio has the air for itself; `own` is whose frame it is.
    pub(crate) fn access(
        &self,
        own: PortId,
        rivals: &[PortId],
        counters: &mut Counters,
        chance: &mut Seed,
    ) -> Access {
        let mut access = Access::default();
        let all = || [own].into_iter().chain(rivals.iter().copied());
        while !access.lost {
            let mut wait = |port: PortId| {
                let counter = counters.0.entry(port).or_default();
                *counter.slots.get_or_insert_with(|| self.draw(counter.collided, chance))
            };
            let waits: Vec<(PortId, u32)> = all().map(|port| (port, wait(port))).collect();
            let least = waits.iter().map(|(_, slots)| *slots).min().unwrap_or(0);
            access.idle += least;
            let collide = waits.iter().filter(|(_, slots)| *slots == least).count() > 1;
            for (port, slots) in waits {
                let Some(counter) = counters.0.get_mut(&port) else { continue };
                counter.slots = slots.checked_sub(least + 1);
                if slots == least {
                    counter.collided = if collide { (counter.collided + 1) % ATTEMPTS } else { 0 };
                    access.lost |= collide && counter.collided == 0 && port == own;
                }
            }
            if !collide {
                return access;
            }
            access.collisions += 1;
        }
        access
    }

    fn draw(&self, collided: u8, chance: &mut Seed) -> u32 {
        let doubled = self.window.max(1).checked_shl(u32::from(collided)).unwrap_or(u32::MAX);
        // The high half of a product is even enough: windows are small against 2^32.
        let window = u64::from(doubled.min(self.most.max(1)));
        (((chance.draw() >> 32) * window) >> 32) as u32
    }
}

#[cfg(test)]
#[path = "air_tests.rs"]
pub(crate) mod tests;
