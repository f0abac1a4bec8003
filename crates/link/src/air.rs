//! The use of a cell's channel besides the bits of its frames: beacons and contention.

use crate::channel::Sender;
use std::collections::BTreeMap;
use wire::{Duration, Rng};

/// How a cell uses its frequency. By default it has its own channel, no beacons and no contention.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Air {
    /// The cell's channel; cells of one channel share the air. `None`: a channel that no other cell has.
    pub channel: Option<u16>,
    /// The beacons of the base station; `None`: it sends none.
    pub beacon: Option<Beacon>,
    /// The cost of contention between several senders; `None`: it costs nothing.
    pub contention: Option<Contention>,
    /// The rule by which the channel is granted.
    pub access: Access,
}

/// The rule by which a channel is granted to a waiting frame. Cells of one channel use the rule of the first of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Access {
    /// Each radio has its own queue, and the channel is granted for one frame. With contention the counters of
    /// [`Contention`] decide. Otherwise the radio is first whose last frame is longest ago. Radios that always have a
    /// frame to send get equal numbers of frames, as with the distributed coordination function of 802.11.
    #[default]
    Fair,
    /// One queue for all radios: first come, first served. A radio with more frames waiting has a larger share.
    Fifo,
}

/// A base station's beacons. They take air time from all radios, and a radio that arrives waits for one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beacon {
    /// The beacon interval: 102.4 ms in most 802.11 networks.
    pub every: Duration,
    /// The frame's length, in bytes.
    pub bytes: usize,
}

/// Contention as in the distributed coordination function of IEEE 802.11. A radio that finds the air busy, or has just
/// sent, waits for a random number of slots. Radios that draw the same number collide, and draw from twice as many
/// slots next.
///
/// A radio that was interrupted continues its countdown, and the frame of another radio counts as one slot (Bianchi,
/// "Performance analysis of the IEEE 802.11 distributed coordination function", 2000; `air_tests.rs` compares with them
/// model). A countdown belongs to the frame at its end: a radio whose first frame is offered in the meantime waits
/// until after that frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contention {
    /// The length of a slot: 20 us for 802.11b.
    pub slot: Duration,
    /// The number of slots of the first draw: 32.
    pub window: u32,
    /// The largest number of slots of a draw: 1024.
    pub most: u32,
}

/// After 7 collisions a frame is lost (802.11's short retry limit).
const ATTEMPTS: u8 = 7;

/// One countdown, and the radios that sent at its end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Round {
    /// Slots in which no radio sent.
    pub(crate) idle: u32,
    /// The radios that sent: one, or those that collided.
    pub(crate) first: Vec<Sender>,
    /// The radios whose frame has collided too often, and is lost.
    pub(crate) lost: Vec<Sender>,
}

/// The countdown of each contending radio, and the number of its collisions in a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters(BTreeMap<Sender, Counter>);

#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    /// Slots to wait; `None` until it is drawn.
    slots: Option<u32>,
    collided: u8,
}

impl Counters {
    /// Removes the counter of a sender whose frames are gone.
    pub(crate) fn forget(&mut self, sender: Sender) {
        self.0.remove(&sender);
    }
}

impl Contention {
    /// Counts down until at least one of `senders` sends. The order of `senders` is the order in which they draw.
    pub(crate) fn round(&self, senders: &[Sender], counters: &mut Counters, rng: &mut Rng) -> Round {
        let mut wait = |sender: &Sender| {
            let counter = counters.0.entry(*sender).or_default();
            *counter.slots.get_or_insert_with(|| self.draw(counter.collided, rng))
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

    fn draw(&self, collided: u8, rng: &mut Rng) -> u32 {
        let doubled = self.window.max(1).checked_shl(u32::from(collided)).unwrap_or(u32::MAX);
        // The high half of the product is nearly uniform, because windows are small compared with 2^32.
        let window = u64::from(doubled.min(self.most.max(1)));
        (((rng.draw() >> 32) * window) >> 32) as u32
    }
}

#[cfg(test)]
#[path = "air_tests.rs"]
pub(crate) mod tests;
