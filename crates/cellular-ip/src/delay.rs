//! The delay device (Campbell et al., "semisoft handoff"): a FIFO in front of the new path at the crossover node.
//!
//! The new path must not be ahead of the old path. Otherwise, packets that are still on the old path when the host
//! leaves it are lost. A queue of `depth` packets delays the new path by `depth` times the interval of the packets.

use std::collections::VecDeque;
use wire::{Instant, Packet, PacketId};

/// The delay device of one host: a queue of packets, each with the latest time at which it must leave.
#[derive(Debug, Default)]
pub struct DelayDevice {
    fifo: VecDeque<(Instant, Packet)>,
}

impl DelayDevice {
    /// Appends a packet, and removes and returns those in excess of `depth`, oldest first. The packet must leave at
    /// `until` at the latest.
    pub fn push(&mut self, packet: Packet, until: Instant, depth: usize) -> Vec<Packet> {
        self.fifo.push_back((until, packet));
        let surplus = self.fifo.len().saturating_sub(depth);
        self.fifo.drain(..surplus).map(|(_, packet)| packet).collect()
    }

    /// Removes and returns the oldest packet, to make room in the node's pool; `None` if no packet waits.
    pub fn pop(&mut self) -> Option<Packet> {
        self.fifo.pop_front().map(|(_, packet)| packet)
    }

    /// Removes and returns the packets that had to leave by `now`, oldest first.
    pub fn overdue(&mut self, now: Instant) -> Vec<Packet> {
        let due = self.fifo.iter().take_while(|(until, _)| *until <= now).count();
        self.fifo.drain(..due).map(|(_, packet)| packet).collect()
    }

    /// Removes and returns all packets, oldest first.
    pub fn flush(&mut self) -> Vec<Packet> {
        self.fifo.drain(..).map(|(_, packet)| packet).collect()
    }

    /// Returns when the oldest packet must leave; `None` if no packet waits.
    pub fn deadline(&self) -> Option<Instant> {
        self.fifo.front().map(|(until, _)| *until)
    }

    /// Returns the number of packets that wait.
    pub fn len(&self) -> usize {
        self.fifo.len()
    }

    /// Returns whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    /// Calls `each` with the id of each packet that waits.
    pub fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        self.fifo.iter().for_each(|(_, packet)| each(packet.id));
    }
}
