//! A channel: its queues of waiting frames, and the choice of the frame that is sent next.

use crate::Ticket;
use crate::air::{Access, Contention, Counters};
use crate::reason;
use crate::sender::Sender;
use std::collections::{BTreeMap, VecDeque};
use wire::{Cell, Instant, Reason, Rng};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) ticket: Ticket,
    pub(crate) cell: Cell,
    /// The length in bytes, with the Ethernet header.
    pub(crate) bytes: usize,
    /// When the frame was offered.
    pub(crate) since: Instant,
    /// The earliest time at which the frame can be sent: a radio that visits a cell has to tune first.
    pub(crate) ready: Instant,
}

/// One frequency, which carries one frame at a time.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    /// The cells that use the channel, in the order in which they were added.
    pub(crate) cells: Vec<Cell>,
    pub(crate) access: Access,
    pub(crate) contention: Option<Contention>,
    /// The end of the last frame or beacon that was sent on the channel.
    pub(crate) busy_until: Instant,
    /// When the channel is granted next; `None` while no grant is scheduled.
    pub(crate) due: Option<Instant>,
    /// The queues that are not empty.
    queues: BTreeMap<Sender, VecDeque<Waiting>>,
    counters: Counters,
    rng: Rng,
}

/// The result of a grant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Grant {
    /// The first frame of this queue is sent after this number of idle slots.
    To(Sender, u32),
    /// The first frames of these queues collide after this number of idle slots. The second list has the queues whose
    /// first frame is given up.
    Collision(Vec<Sender>, u32, Vec<Sender>),
}

impl Channel {
    pub(crate) fn new(access: Access, rng: Rng) -> Self {
        Self {
            cells: Vec::new(),
            access,
            contention: None,
            busy_until: Instant::ZERO,
            due: None,
            queues: BTreeMap::new(),
            counters: Counters::default(),
            rng,
        }
    }

    pub(crate) fn is_idle(&self, now: Instant) -> bool {
        self.queues.is_empty() && self.busy_until <= now
    }

    pub(crate) fn has_waiting(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Appends a frame to the queue of `sender`. The error is the drop reason if `most` frames already wait in this
    /// queue.
    ///
    /// # Panics
    ///
    /// Panics if the ticket of the frame is not later than the last ticket in the queue.
    pub(crate) fn push(&mut self, sender: Sender, frame: Waiting, most: usize) -> Result<(), Reason> {
        if self.queues.get(&sender).map_or(0, VecDeque::len) >= most {
            return Err(reason::QUEUE_FULL);
        }
        let queue = self.queues.entry(sender).or_default();
        let last = queue.back().map(|last| last.ticket);
        assert!(
            last < Some(frame.ticket),
            "{:?} must be later than the last ticket in its queue, {last:?}",
            frame.ticket
        );
        queue.push_back(frame);
        Ok(())
    }

    /// Takes the first frame of a queue, or returns `None` if the queue is empty.
    pub(crate) fn pop(&mut self, sender: Sender) -> Option<Waiting> {
        let queue = self.queues.get_mut(&sender)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&sender);
        }
        first
    }

    /// Takes all frames of a queue.
    pub(crate) fn clear(&mut self, sender: Sender) -> VecDeque<Waiting> {
        self.counters.forget(sender);
        self.queues.remove(&sender).unwrap_or_default()
    }

    /// Returns the first frame of each queue, in the order of the ports.
    pub(crate) fn heads(&self) -> impl Iterator<Item = (Sender, &Waiting)> {
        self.queues.iter().filter_map(|(sender, queue)| Some((*sender, queue.front()?)))
    }

    pub(crate) fn head(&self, sender: Sender) -> Option<&Waiting> {
        self.queues.get(&sender)?.front()
    }

    /// Chooses the queue that sends next. `heads` has the queues whose first frame can be sent now, each with its rank.
    /// Without contention, the queue with the lowest rank sends. With contention, senders can collide. If none collide,
    /// the first sender of the countdown sends ([`Access::Fair`]), or the queue with the lowest rank
    /// ([`Access::Fifo`]). Returns `None` if `heads` is empty.
    pub(crate) fn grant(&mut self, at: Instant, heads: &[(u64, Sender)]) -> Option<Grant> {
        let (_, first) = *heads.iter().min()?;
        // A radio that finds the channel idle sends at once.
        let waited = self.busy_until >= at || heads.len() > 1;
        let Some(contention) = self.contention.filter(|_| waited) else { return Some(Grant::To(first, 0)) };
        let senders: Vec<Sender> = heads.iter().map(|(_, sender)| *sender).collect();
        let round = contention.round(&senders, &mut self.counters, &mut self.rng);
        if let [winner] = *round.first {
            let winner = if self.access == Access::Fifo { first } else { winner };
            return Some(Grant::To(winner, round.idle));
        }
        let mut lost = round.lost;
        // With one queue for all radios, only the first frame of that queue can be given up.
        lost.retain(|sender| self.access == Access::Fair || *sender == first);
        Some(Grant::Collision(round.first, round.idle, lost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PortId;

    #[test]
    #[should_panic(expected = "Ticket(7) must be later than the last ticket in its queue, Some(Ticket(7))")]
    fn a_ticket_is_given_once() {
        let mut channel = Channel::new(Access::Fair, Rng::new(1));
        let sender = Sender { port: PortId(1), visits: false };
        let (ticket, cell, since) = (Ticket(7), Cell(1), Instant::ZERO);
        let frame = Waiting { ticket, cell, bytes: 100, since, ready: since };
        for _ in 0..2 {
            channel.push(sender, frame, 9).unwrap();
        }
    }
}
