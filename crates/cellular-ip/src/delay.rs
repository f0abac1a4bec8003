//! The delay device (Campbell et al., "semisoft handoff"): a FIFO in front of the new path at the crossover node.
//!
//! The new path must not be ahead of the old one, or packets that are still on the old path when the host leaves it
//! are lost. A queue of `depth` packets holds the new path back by `depth` times the packets' spacing.

use std::collections::VecDeque;
use wire::{Instant, Packet, PacketId};

/// One host's delay device.
#[derive(Debug, Default)]
pub struct DelayDevice {
    fifo: VecDeque<(Instant, Packet)>,
}

impl DelayDevice {
    /// Puts a packet in, and takes out what no longer fits `depth`, oldest first. `until` is when it must leave at the
    /// latest.
    pub fn push(&mut self, packet: Packet, until: Instant, depth: usize) -> Vec<Packet> {
        self.fifo.push_back((until, packet));
        let surplus = self.fifo.len().saturating_sub(depth);
        self.fifo.drain(..surplus).map(|(_, packet)| packet).collect()
    }

    /// Takes the oldest, to make room in the node's pool.
    pub fn pop(&mut self) -> Option<Packet> {
        self.fifo.pop_front().map(|(_, packet)| packet)
    }

    /// Takes out what must wait no longer, oldest first.
    pub fn overdue(&mut self, now: Instant) -> Vec<Packet> {
        let due = self.fifo.iter().take_while(|(until, _)| *until <= now).count();
        self.fifo.drain(..due).map(|(_, packet)| packet).collect()
    }

    /// Takes out everything, oldest first.
    pub fn flush(&mut self) -> Vec<Packet> {
        self.fifo.drain(..).map(|(_, packet)| packet).collect()
    }

    /// When the first must leave.
    pub fn deadline(&self) -> Option<Instant> {
        self.fifo.front().map(|(until, _)| *until)
    }

    /// Packets in it.
    pub fn len(&self) -> usize {
        self.fifo.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    /// Names the packets in it.
    pub fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        self.fifo.iter().for_each(|(_, packet)| each(packet.id));
    }
}
