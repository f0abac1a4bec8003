//! The medium that a frame occupies, and the queue in front of it.

use crate::air::Air;
use crate::reason;
use std::collections::VecDeque;
use std::sync::Arc;
use wire::Rng;
use wire::{Cell, Duration, Instant, Reason};

/// The parameters of a full-duplex wire between two ports.
#[derive(Clone, PartialEq, Debug)]
pub struct WireSpec {
    /// The rate of each direction, in bits per second.
    pub rate: u64,
    /// The propagation delays: index 0 from the first end to the second, index 1 from the second end to the first.
    pub delay: [Duration; 2],
    /// The number of frames that may wait at each end, besides the frame that is being sent.
    pub queue: usize,
    /// The largest datagram that the wire accepts, in bytes.
    pub mtu: u16,
    /// The random errors of each direction.
    pub faults: Faults,
}

/// The parameters of a radio cell.
#[derive(Clone, Debug)]
pub struct CellSpec {
    /// The number of the cell.
    pub cell: Cell,
    /// The rate in bits per second, which all radios of the cell share.
    pub rate: u64,
    /// The air time of each frame beyond its bits: preamble, acknowledgement.
    pub per_frame: Duration,
    /// The propagation delay from any radio of the cell to any other.
    pub delay: Duration,
    /// The number of frames that may wait at each radio, besides the frame on the air. [`crate::RadioSpec::queue`] can
    /// override it.
    pub queue: usize,
    /// The largest datagram that the cell accepts, in bytes.
    pub mtu: u16,
    /// The random errors of all frames in the cell.
    pub faults: Faults,
    /// How the cell uses its frequency. A full-duplex cell uses none of it.
    pub air: Air,
    /// Whether the senders of the cell share one medium.
    pub duplex: Duplex,
    /// Whether the cell is a wire that several hosts share. All its radios are in it from the start, and no radio tunes
    /// to it.
    pub is_segment: bool,
}

/// Whether the senders of a cell share one medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Duplex {
    /// All senders share one medium, as on the air. This is the default.
    #[default]
    Half,
    /// Each sender has a separate medium, as at the ports of a switch. The base station is the switch with its router,
    /// and a mobile host is plugged into one port. [`CellSpec::rate`] is the rate of the base station.
    Full {
        /// The rate at which each mobile host sends, in bits per second.
        uplink: u64,
    },
}

/// The random errors of a medium. The medium draws them for each frame.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Faults {
    /// The probability (0 to 1) that a frame is lost. With bursts, it is the probability in the good state.
    pub loss: f64,
    /// The probability (0 to 1) that a frame that is not lost arrives twice.
    pub duplicate: f64,
    /// How much later than the frame its duplicate arrives.
    pub duplicate_delay: Duration,
    /// Losses in bursts. `None`: there are no bursts.
    pub burst: Option<Burst>,
}

/// Losses in bursts: a channel of two states, good and bad, that may change before each frame (Gilbert, "Capacity of a
/// burst-noise channel", 1960; Elliott, 1963, adds losses in the good state). The bad state lasts `1 / leave` frames on
/// average, and covers `enter / (enter + leave)` of all frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// The probability (0 to 1), before each frame in the good state, of a change to the bad state.
    pub enter: f64,
    /// The probability (0 to 1), before each frame in the bad state, of a change to the good state.
    pub leave: f64,
    /// The probability (0 to 1) that a frame is lost in the bad state.
    pub loss: f64,
}

impl Faults {
    /// Returns the share of frames that are lost in the long run, from 0 to 1.
    pub fn mean_loss(&self) -> f64 {
        let Some(Burst { enter, leave, loss }) = self.burst else { return self.loss };
        let bad = if enter + leave > 0.0 { enter / (enter + leave) } else { 0.0 };
        bad * loss + (1.0 - bad) * self.loss
    }
}

/// The properties of a medium, which media of one kind share.
#[derive(Clone, Debug)]
pub(crate) struct Character {
    rate: u64,
    per_frame: Duration,
    pub(crate) delay: Duration,
    pub(crate) queue: usize,
    pub(crate) mtu: u16,
    faults: Faults,
}

impl Character {
    pub(crate) fn wire(spec: &WireSpec, direction: usize) -> Self {
        let WireSpec { rate, queue, mtu, faults, .. } = *spec;
        let delay = spec.delay.get(direction).copied().unwrap_or_default();
        Self { rate, per_frame: Duration::ZERO, delay, queue, mtu, faults }
    }

    pub(crate) const fn air(spec: &CellSpec) -> Self {
        let CellSpec { rate, per_frame, delay, queue, mtu, faults, .. } = *spec;
        Self { rate, per_frame, delay, queue, mtu, faults }
    }

    /// Returns the properties of the medium from mobile hosts to the base station of a full-duplex cell; `None` for a
    /// half-duplex cell.
    pub(crate) fn uplink(spec: &CellSpec) -> Option<Self> {
        match spec.duplex {
            Duplex::Half => None,
            Duplex::Full { uplink } => Some(Self { rate: uplink, ..Self::air(spec) }),
        }
    }

    pub(crate) const fn duplicate_delay(&self) -> Duration {
        self.faults.duplicate_delay
    }

    /// Checks that a frame with a datagram of `bytes` bytes fits the MTU, and has room in the queue of its sender. The
    /// error is the drop reason.
    pub(crate) fn admits(&self, now: Instant, queue: &mut Queue, bytes: usize) -> Result<(), Reason> {
        if bytes > usize::from(self.mtu) {
            return Err(reason::MTU);
        }
        // One frame is on the medium; the others wait.
        if queue.waiting(now) > self.queue { Err(reason::QUEUE_FULL) } else { Ok(()) }
    }
}

/// One direction of a wire, or the air of a cell.
#[derive(Clone, Debug)]
pub(crate) struct Medium {
    pub(crate) character: Arc<Character>,
    /// When the last bit of the last frame is sent.
    pub(crate) busy_until: Instant,
    /// Whether the channel is in the bad state of [`Burst`].
    is_bad: bool,
    pub(crate) rng: Rng,
}

impl Medium {
    pub(crate) const fn new(character: Arc<Character>, rng: Rng) -> Self {
        Self { character, busy_until: Instant::ZERO, is_bad: false, rng }
    }

    /// Takes the medium for a frame of `bytes` bytes. Returns when its first bit and when its last bit is sent.
    pub(crate) fn occupy(&mut self, now: Instant, bytes: usize) -> (Instant, Instant) {
        let start = now.max(self.busy_until);
        self.busy_until = start + self.airtime(bytes);
        (start, self.busy_until)
    }

    /// Sets the probability of a loss. A [`Character`] that other media share is copied first.
    pub(crate) fn set_loss(&mut self, loss: f64) {
        Arc::make_mut(&mut self.character).faults.loss = loss;
    }

    pub(crate) fn set_mtu(&mut self, mtu: u16) {
        Arc::make_mut(&mut self.character).mtu = mtu;
    }

    pub(crate) fn airtime(&self, bytes: usize) -> Duration {
        let bits = bytes as u64 * 8;
        let rate = self.character.rate.max(1);
        // For frames of up to 2 GB, the product fits 64 bits. A division of 128-bit numbers takes much longer.
        let nanos = match bits.checked_mul(1_000_000_000) {
            Some(scaled) => scaled / rate,
            None => (u128::from(bits) * 1_000_000_000 / u128::from(rate)) as u64,
        };
        Duration::from_nanos(nanos) + self.character.per_frame
    }

    /// Draws the number of copies of a frame that arrive. The error means that the frame is lost.
    pub(crate) fn luck(&mut self) -> Result<u8, Reason> {
        let loss = self.loss();
        if loss > 0.0 && self.toss() < loss {
            return Err(reason::LINK_ERROR);
        }
        let duplicate = self.character.faults.duplicate;
        Ok(1 + u8::from(duplicate > 0.0 && self.toss() < duplicate))
    }

    /// Returns the probability that the next frame is lost, after a random change of the burst state.
    fn loss(&mut self) -> f64 {
        let Faults { loss: scattered, burst, .. } = self.character.faults;
        let Some(Burst { enter, leave, loss }) = burst else { return scattered };
        let turns = self.toss() < if self.is_bad { leave } else { enter };
        self.is_bad ^= turns;
        if self.is_bad { loss } else { scattered }
    }

    fn toss(&mut self) -> f64 {
        // The number has 53 random bits, so that the fraction is exact and less than one.
        (self.rng.draw() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The times at which the waiting frames of a port will have been sent. One of these times is stored inline, so a host
/// that rarely sends needs no allocation.
#[derive(Clone, Default, Debug)]
pub(crate) struct Queue {
    /// When the first frame will have been sent. This time is not later than now if the queue is empty.
    first: Instant,
    #[expect(
        clippy::box_collection,
        reason = "eight bytes at each of two million ports that never need more"
    )]
    rest: Option<Box<VecDeque<Instant>>>,
}

impl Queue {
    /// Returns the number of frames that wait or are being sent at `now`.
    pub(crate) fn waiting(&mut self, now: Instant) -> usize {
        let Some(rest) = &mut self.rest else { return usize::from(self.first > now) };
        while self.first <= now {
            let Some(next) = rest.pop_front() else { return 0 };
            self.first = next;
        }
        1 + rest.len()
    }

    /// Appends a frame that will have been sent at `out`. The caller must have called [`Queue::waiting`] at `now`.
    ///
    /// # Panics
    ///
    /// Panics if `out` is before `now`, or before the time of the frame in front.
    pub(crate) fn push(&mut self, now: Instant, out: Instant) {
        let last = self.rest.as_ref().and_then(|rest| rest.back()).map_or(self.first, |last| *last);
        assert!(
            last <= out && now <= out,
            "a frame overtakes another one: it is sent at {out} s, the other one at {last} s; now: {now} s"
        );
        if self.first <= now {
            self.first = out;
        } else {
            self.rest.get_or_insert_default().push_back(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the share of `frames` frames that were lost, and the mean length of a run of losses in frames.
    fn lost(faults: Faults, frames: usize) -> (f64, f64) {
        let spec = WireSpec { rate: 1, delay: [Duration::ZERO; 2], queue: 1, mtu: 1500, faults };
        let character = Arc::new(Character::wire(&spec, 0));
        let mut medium = Medium::new(character, Rng::new(7).fork("burst"));
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
    #[should_panic(expected = "a frame overtakes another one")]
    fn a_queue_keeps_its_order() {
        let mut queue = Queue::default();
        for out in [20, 30, 25] {
            queue.push(Instant(10), Instant(out));
        }
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
