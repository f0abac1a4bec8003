//! Memory for packets that is used again.

use wire::{Packet, PacketId};

/// The size of a new buffer, in bytes: a frame of 1500 bytes, and room for two more IP headers. A packet enters at most two
/// tunnels at one node, so it is not copied into another buffer. A larger packet gets a larger buffer.
const SIZE: usize = 2048;
/// Additional room of a buffer behind a packet, in bytes.
const ROOM: usize = 2 * wire::ipv4::HEADER;
/// The largest number of unused buffers. Most packets leave before the next one is received.
const MOST: usize = 16;

/// Memory for packets. A received packet is copied into the buffer of one that was sent, because it takes time to allocate
/// memory for each frame.
#[derive(Debug)]
pub(crate) struct Buffers {
    /// The buffer for one received frame.
    pub(crate) frame: Vec<u8>,
    /// Packets that are sent with one system call; empty otherwise.
    pub(crate) together: Vec<Packet>,
    /// Buffers of packets that were sent.
    unused: Vec<Vec<u8>>,
    /// The number of the last packet that [`Buffers::next_number`] has numbered.
    last: u64,
}

impl Buffers {
    /// Returns buffers for frames of at most `largest` bytes.
    pub(crate) fn new(largest: usize) -> Self {
        Self { frame: vec![0; largest], together: Vec::new(), unused: Vec::new(), last: 0 }
    }

    /// Returns another number for each packet, in place of its identity.
    pub(crate) fn next_number(&mut self) -> PacketId {
        self.last += 1;
        PacketId(self.last)
    }

    /// Returns a buffer with these bytes, and with room for more.
    pub(crate) fn copy_of(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut copy = self.unused.pop().unwrap_or_else(|| Vec::with_capacity(SIZE));
        copy.clear();
        copy.reserve(bytes.len() + ROOM);
        copy.extend_from_slice(bytes);
        copy
    }

    /// Takes a buffer that is no longer used. Keeps only buffers of [`SIZE`] bytes: others are too small for most frames, or
    /// take too much memory.
    pub(crate) fn give_back(&mut self, buffer: Vec<u8>) {
        if self.unused.len() < MOST && buffer.capacity() == SIZE {
            self.unused.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_and_has_room_for_two_headers() {
        let mut buffers = Buffers::new(0);
        let first = buffers.copy_of(&[1; 1500]);
        let at = first.as_ptr();
        assert!(first == [1; 1500] && first.capacity() >= 1500 + ROOM);
        buffers.give_back(first);
        let second = buffers.copy_of(&[2; 9]);
        assert!(second == [2; 9] && second.as_ptr() == at);
    }

    #[test]
    fn only_buffers_of_one_size_are_kept_and_not_many() {
        let mut buffers = Buffers::new(0);
        let large = buffers.copy_of(&[3; 9000]);
        assert!(large.capacity() >= 9000 + ROOM);
        for other in [large, Vec::with_capacity(64)] {
            buffers.give_back(other);
        }
        assert!(buffers.unused.is_empty());
        for _ in 0..2 * MOST {
            buffers.give_back(Vec::with_capacity(SIZE));
        }
        assert_eq!(buffers.unused.len(), MOST);
    }
}
