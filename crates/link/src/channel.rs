//! A channel: the frames that wait for it, in one queue for each radio, and which of them it is granted to next.

use crate::air::{Access, Contention, Counters};
use crate::fabric::Ticket;
use crate::{PortId, reason};
use std::collections::{BTreeMap, VecDeque};
use wire::{Cell, Instant, Reason, Seed};

/// A queue in front of a channel: of a radio, in its own cell or of the packets that it sends in another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Sender {
    pub(crate) port: PortId,
    pub(crate) visits: bool,
}

/// A frame that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) ticket: Ticket,
    pub(crate) cell: Cell,
    /// With its Ethernet header.
    pub(crate) bytes: usize,
    /// When it was offered.
    pub(crate) since: Instant,
    /// It cannot be sent before: a radio that visits a cell is on its way there.
    pub(crate) ready: Instant,
}

/// One frequency: one frame at a time.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    /// The cells on it, in the order in which they were added.
    pub(crate) cells: Vec<Cell>,
    pub(crate) access: Access,
    pub(crate) contention: Option<Contention>,
    /// Free again from here on.
    pub(crate) busy_until: Instant,
    /// When it is granted next; `None` while no frame waits for it.
    pub(crate) due: Option<Instant>,
    /// No queue in here is empty.
    queues: BTreeMap<Sender, VecDeque<Waiting>>,
    counters: Counters,
    chance: Seed,
}

/// What a channel decided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Grant {
    /// This queue's first frame goes out after so many idle slots.
    To(Sender, u32),
    /// After so many idle slots these collided; the last list says which of their frames are given up.
    Collision(Vec<Sender>, u32, Vec<Sender>),
}

impl Channel {
    pub(crate) fn new(access: Access, chance: Seed) -> Self {
        Self {
            cells: Vec::new(),
            access,
            contention: None,
            busy_until: Instant::ZERO,
            due: None,
            queues: BTreeMap::new(),
            counters: Counters::default(),
            chance,
        }
    }

    pub(crate) fn is_idle(&self, now: Instant) -> bool {
        self.queues.is_empty() && self.busy_until <= now
    }

    pub(crate) fn has_waiting(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Puts a frame behind the others of its queue; the newest is refused if that is full.
    pub(crate) fn push(&mut self, sender: Sender, frame: Waiting, most: usize) -> Result<(), Reason> {
        if self.queues.get(&sender).map_or(0, VecDeque::len) >= most {
            return Err(reason::QUEUE_FULL);
        }
        self.queues.entry(sender).or_default().push_back(frame);
        Ok(())
    }

    /// Takes the first frame of a queue.
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

    /// The first frame of each queue, in the order of the ports.
    pub(crate) fn heads(&self) -> impl Iterator<Item = (Sender, &Waiting)> {
        self.queues.iter().filter_map(|(sender, queue)| Some((*sender, queue.front()?)))
    }

    pub(crate) fn head(&self, sender: Sender) -> Option<&Waiting> {
        self.queues.get(&sender)?.front()
    }

    /// Who of these has the channel next. `heads` are the queues whose first frame can be sent now, each with its rank: the
    /// lowest is first where no contention decides.
    pub(crate) fn grant(&mut self, at: Instant, heads: &[(u64, Sender)]) -> Option<Grant> {
        let (_, first) = *heads.iter().min()?;
        // A radio that finds the channel idle sends at once.
        let waited = self.busy_until >= at || heads.len() > 1;
        let Some(contention) = self.contention.filter(|_| waited) else { return Some(Grant::To(first, 0)) };
        let senders: Vec<Sender> = heads.iter().map(|(_, sender)| *sender).collect();
        let round = contention.round(&senders, &mut self.counters, &mut self.chance);
        if let [winner] = *round.first {
            let winner = if self.access == Access::Fifo { first } else { winner };
            return Some(Grant::To(winner, round.idle));
        }
        let mut lost = round.lost;
        // In one queue for all only the first frame can be given up.
        lost.retain(|sender| self.access == Access::Fair || *sender == first);
        Some(Grant::Collision(round.first, round.idle, lost))
    }
}
