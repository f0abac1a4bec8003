//! Helpers of the fuzz targets: a wire with faults, and checksums.

use std::collections::VecDeque;
use wire::Checksum;

/// One direction of a wire: the packets that were sent and have not arrived.
#[derive(Debug)]
pub struct Wire<T>(VecDeque<T>);

/// What happens to the first packet on a wire.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    /// The packet arrives.
    Arrives,
    /// The packet is lost.
    Lost,
    /// A copy of the packet arrives; the packet stays on the wire.
    Copied,
    /// The packet moves behind all others.
    Reordered,
}

impl<T> Default for Wire<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T: Clone> Wire<T> {
    /// Adds packets at the end of the wire. If more than `most` packets are on it, the last ones are lost.
    pub fn send(&mut self, packets: impl IntoIterator<Item = T>, most: usize) {
        self.0.extend(packets);
        self.0.truncate(most);
    }

    /// Applies `fate` to the first packet. Returns the packet that arrives, if any.
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

/// Writes two bytes at index `at`. If they do not fit, `bytes` does not change.
pub fn patch(bytes: &mut [u8], at: usize, field: [u8; 2]) {
    if let Some(to) = bytes.get_mut(at..at + 2) {
        to.copy_from_slice(&field);
    }
}

/// Sets the Internet checksum (RFC 1071) of `bytes` at index `at`.
pub fn set_checksum(bytes: &mut [u8], at: usize) {
    set_checksum_over(bytes, at, Checksum::default());
}

/// Sets the Internet checksum at index `at` if it covers more than `bytes`; `before` is the sum of the other bytes.
pub fn set_checksum_over(bytes: &mut [u8], at: usize, before: Checksum) {
    patch(bytes, at, [0, 0]);
    let sum = before.add(bytes).finish();
    patch(bytes, at, sum.to_be_bytes());
}
