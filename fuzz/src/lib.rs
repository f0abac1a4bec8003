//! What the targets share.

use std::collections::VecDeque;
use wire::Checksum;

/// One direction of a wire: what was sent and has not arrived.
#[derive(Debug)]
pub struct Wire<T>(VecDeque<T>);

/// What happens to the first packet on a wire.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    /// It arrives.
    Arrives,
    /// It is lost.
    Lost,
    /// A copy arrives; it stays.
    Copied,
    /// It goes behind all others.
    Reordered,
}

impl<T> Default for Wire<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T: Clone> Wire<T> {
    /// Adds packets. Those beyond the first `most` are lost.
    pub fn send(&mut self, packets: impl IntoIterator<Item = T>, most: usize) {
        self.0.extend(packets);
        self.0.truncate(most);
    }

    /// Lets one thing happen to the first packet. Returns the packet that arrives, if any.
    pub fn step(&mut self, fate: Fate) -> Option<T> {
        match fate {
            Fate::Arrives => self.0.pop_front(),
            Fate::Copied => self.0.front().cloned(),
            Fate::Lost => {
                self.0.pop_front();
                None
            }
            Fate::Reordered => {
                let first = self.0.pop_front();
                self.0.extend(first);
                None
            }
        }
    }
}

/// Puts two bytes at `at`, if there is room.
pub fn patch(bytes: &mut [u8], at: usize, field: [u8; 2]) {
    if let Some(to) = bytes.get_mut(at..at + 2) {
        to.copy_from_slice(&field);
    }
}

/// Makes the Internet checksum at `at` fit the rest of `bytes`.
pub fn set_checksum(bytes: &mut [u8], at: usize) {
    set_checksum_over(bytes, at, Checksum::default());
}

/// The same when the checksum covers more than `bytes`; `before` has summed that up.
pub fn set_checksum_over(bytes: &mut [u8], at: usize, before: Checksum) {
    patch(bytes, at, [0, 0]);
    let sum = before.add(bytes).finish();
    patch(bytes, at, sum.to_be_bytes());
}
