//! What the air of a cell costs beside the bits of its frames: beacons, and the contention of those who want to send.

use crate::channel::Sender;
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
    /// Which frame the channel is granted to next.
    pub access: Access,
}

/// Which of the frames that wait for a channel goes out next. Cells of one channel have that of the first of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Access {
    /// Each radio has a queue of its own, and the channel is granted for one frame: by the counters of [`Contention`] where
    /// there is contention, otherwise in turn, the radio first whose last frame is longest ago. Every radio that always has
    /// a frame sends equally many, as with the distributed coordination function of 802.11.
    #[default]
    Fair,
    /// One queue for all: first come, first served. A radio with more frames waiting has a larger share.
    Fifo,
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
/// analysis of the IEEE 802.11 distributed coordination function", 2000; `air_tests.rs` holds it against his model). The
/// countdown to a frame belongs to the frame: a radio that has its first frame meanwhile waits until after it.
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

/// One countdown: which radios sent at its end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Round {
    /// Slots in which no radio sent.
    pub(crate) idle: u32,
    /// Who sent then: one, or those that collided.
    pub(crate) first: Vec<Sender>,
    /// Those that have collided too often with this frame.
    pub(crate) lost: Vec<Sender>,
}

/// Where each radio that contends has counted down to, and how often it has collided in a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters(BTreeMap<Sender, Counter>);

#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    /// Slots to wait; drawn when it is wanted.
    slots: Option<u32>,
    collided: u8,
}

impl Counters {
    /// Its frames are gone.
    pub(crate) fn forget(&mut self, sender: Sender) {
        self.0.remove(&sender);
    }
}

impl Contention {
    /// Counts down until at least one of `senders` sends. In this order they draw.
    pub(crate) fn round(&self, senders: &[Sender], counters: &mut Counters, chance: &mut Seed) -> Round {
        let mut wait = |sender: &Sender| {
            let counter = counters.0.entry(*sender).or_default();
            *counter.slots.get_or_insert_with(|| self.draw(counter.collided, chance))
        };
        let waits: Vec<(Sender, u32)> = senders.iter().map(|sender| (*sender, wait(sender))).collect();
        let idle = waits.iter().map(|(_, slots)| *slots).min().unwrap_or(0);
        let first: Vec<Sender> =
            waits.iter().filter(|(_, slots)| *slots == idle).map(|(sender, _)| *sender).collect();
        let mut lost = Vec::new();
        for (sender, slots) in waits {
            let Some(counter) = counters.0.get_mut(&sender) else { continue };
            counter.slots = slots.checked_sub(idle + 1);
            if slots == idle {
                counter.collided = if first.len() > 1 { (counter.collided + 1) % ATTEMPTS } else { 0 };
                if first.len() > 1 && counter.collided == 0 {
                    lost.push(sender);
                }
            }
        }
        Round { idle, first, lost }
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
