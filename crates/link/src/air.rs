//! The air time that beacons and contention take on a cell's channel, in addition to the bits of frames.

use crate::sender::Sender;
use std::collections::BTreeMap;
use wire::{Duration, Rng};

/// How a cell uses its frequency. By default, the cell has its own channel, no beacons and no contention.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Air {
    /// The number of the cell's channel. Cells with equal numbers share one channel. `None`: no other cell uses the
    /// channel.
    pub channel: Option<u16>,
    /// The beacons of the base station. `None`: the base station sends no beacons.
    pub beacon: Option<Beacon>,
    /// The contention between several senders. `None`: contention takes no air time.
    pub contention: Option<Contention>,
    /// The rule by which the channel is granted.
    pub access: Access,
}

/// The rule by which a channel is granted to a waiting frame. Cells that share a channel use the rule of the cell that
/// was added first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Access {
    /// Each radio has a separate queue, and a grant is for one frame. With contention, the counters of [`Contention`]
    /// decide. Without contention, the radio whose last grant is longest ago gets the channel. So radios that always
    /// have a frame to send get about equal numbers of grants, as with the distributed coordination function of 802.11.
    #[default]
    Fair,
    /// One queue for all radios: first come, first served. A radio with more frames waiting has a larger share.
    Fifo,
}

/// The beacons of a base station. Beacons take air time from all radios, and a radio that tunes to the cell waits for a
/// beacon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beacon {
    /// The beacon interval: 102.4 ms in most 802.11 networks.
    pub every: Duration,
    /// The length of a beacon frame in bytes, headers included.
    pub bytes: usize,
}

/// Contention as in the distributed coordination function of IEEE 802.11. A radio that finds the channel busy, or has
/// just sent, waits for a random number of slots. Radios whose waits end in the same slot collide. After a collision,
/// these radios draw from twice as many slots, at most [`Contention::most`].
///
/// If another radio sends first, a waiting radio continues its countdown later, and the frame of the other radio counts
/// as one slot. While the radios of a channel count down, a radio that gets its first frame does not join them: it
/// begins to count after the next frame on the channel. The model is that of Bianchi, "Performance analysis of the IEEE
/// 802.11 distributed coordination function", 2000; `air_tests.rs` compares with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contention {
    /// The length of a slot, for example 20 us for 802.11b.
    pub slot: Duration,
    /// The number of values of the first draw, for example 32: the radio then waits for 0 to 31 slots.
    pub window: u32,
    /// The largest number of values of a draw, for example 1024.
    pub most: u32,
}

/// A frame is lost after this number of collisions (802.11's short retry limit).
const ATTEMPTS: u8 = 7;

/// One countdown of the waiting radios, and the radios that sent at the end of the countdown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Round {
    /// The number of slots in which no radio sent.
    pub(crate) idle: u32,
    /// The radios that sent: one radio, or several radios that collided.
    pub(crate) first: Vec<Sender>,
    /// The radios whose frame has collided too often. These frames are lost.
    pub(crate) lost: Vec<Sender>,
}

/// The counter of each contending radio: its countdown, and the number of its collisions in a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters(BTreeMap<Sender, Counter>);

#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    /// The number of slots for which the radio still waits; `None` before the number is drawn.
    slots: Option<u32>,
    collided: u8,
}

impl Counters {
    /// Removes the counter of a sender whose waiting frames were all dropped.
    pub(crate) fn forget(&mut self, sender: Sender) {
        self.0.remove(&sender);
    }
}

impl Contention {
    /// Counts down until at least one of `senders` sends. The senders draw in the order of `senders`.
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
