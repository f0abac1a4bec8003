//! A channel: its queues of waiting frames, and the choice of the frame that is sent next.

use crate::Ticket;
use crate::air::{Access, Contention, Counters};
use crate::reason;
use crate::sender::Sender;
use std::collections::{BTreeMap, VecDeque};
use wire::{Cell, Instant, Mac, Reason, Rng};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) ticket: Ticket,
    pub(crate) cell: Cell,
    /// The destination link address.
    pub(crate) dst: Mac,
    /// The length in bytes, with the Ethernet header.
    pub(crate) bytes: usize,
    /// When the frame was offered.
    pub(crate) since: Instant,
    /// The earliest time at which the frame can be sent: a radio that visits a cell has to tune first.
    pub(crate) ready: Instant,
}

/// The number of frames that may wait in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Limit {
    /// This number of frames.
    Frames(usize),
    /// This number of frames for each receiver, and [`ALL`] frames. A frame to all receivers is one for each of them.
    ForEachReceiver(usize),
}

/// The largest number of frames in a queue with a limit for each receiver: that of the queues of an access point in Linux
/// (`fq->limit` in `net/mac80211/tx.c`).
const ALL: usize = 8192;

impl Limit {
    /// Returns whether a frame to `dst` may be appended to the queue.
    fn admits(self, queue: &VecDeque<Waiting>, dst: Mac) -> bool {
        match self {
            Self::Frames(most) => queue.len() < most,
            Self::ForEachReceiver(most) if queue.len() < most => true,
            Self::ForEachReceiver(most) => {
                let mut each: BTreeMap<Mac, usize> = BTreeMap::new();
                let (mut to_all, mut longest) = (0, 0);
                for frame in queue {
                    if frame.dst.is_group() {
                        to_all += 1;
                    } else if dst.is_group() || frame.dst == dst {
                        let count = each.entry(frame.dst).or_default();
                        *count += 1;
                        longest = longest.max(*count);
                    }
                }
                queue.len() < ALL && to_all + longest < most
            }
        }
    }
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

    /// Appends a frame to the queue of `sender`. The error is the drop reason if the limit of this queue is reached.
    ///
    /// # Panics
    ///
    /// Panics if the ticket of the frame is not later than the last ticket in the queue.
    pub(crate) fn push(&mut self, sender: Sender, frame: Waiting, limit: Limit) -> Result<(), Reason> {
        let empty = VecDeque::new();
        if !limit.admits(self.queues.get(&sender).unwrap_or(&empty), frame.dst) {
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

    const TO: [Mac; 2] = [Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2])];

    fn frame(ticket: u64, dst: Mac) -> Waiting {
        let since = Instant::ZERO;
        Waiting { ticket: Ticket(ticket), cell: Cell(1), dst, bytes: 100, since, ready: since }
    }

    /// Offers a frame to each of these destinations, and returns which frames the queue accepts.
    fn accepted(limit: Limit, destinations: &[Mac]) -> Vec<bool> {
        let mut channel = Channel::new(Access::Fair, Rng::new(1));
        let sender = Sender { port: PortId(1), visits: false };
        let offers = (1..).zip(destinations);
        offers.map(|(ticket, dst)| channel.push(sender, frame(ticket, *dst), limit).is_ok()).collect()
    }

    #[test]
    fn a_limit_for_each_receiver_leaves_room_for_the_others() {
        let [a, b] = TO;
        let offers = [a, a, a, b, b, b];
        assert_eq!(accepted(Limit::Frames(2), &offers), [true, true, false, false, false, false]);
        assert_eq!(accepted(Limit::ForEachReceiver(2), &offers), [true, true, false, true, true, false]);
    }

    #[test]
    fn a_frame_to_all_waits_for_each_receiver() {
        let ([a, b], all) = (TO, Mac::BROADCAST);
        let each = Limit::ForEachReceiver(2);
        assert_eq!(accepted(each, &[a, all, a, b, b]), [true, true, false, true, false]);
        assert_eq!(accepted(each, &[a, b, all, all]), [true, true, true, false]);
        assert_eq!(accepted(each, &[all, all, all, a]), [true, true, false, false]);
    }

    /// With one receiver, both limits are the same, whatever is sent to all.
    #[test]
    fn for_one_receiver_both_limits_are_the_same() {
        let mut rng = Rng::new(7);
        for _ in 0..200 {
            let offers: Vec<Mac> =
                (0..20).map(|_| if rng.draw().is_multiple_of(3) { Mac::BROADCAST } else { TO[0] }).collect();
            assert_eq!(accepted(Limit::Frames(5), &offers), accepted(Limit::ForEachReceiver(5), &offers));
        }
    }

    #[test]
    fn frames_to_many_receivers_are_bounded() {
        let offers: Vec<Mac> = (0..=ALL as u32).map(|n| Mac([2, 0, 0, 0, (n >> 8) as u8, n as u8])).collect();
        let accepted = accepted(Limit::ForEachReceiver(64), &offers);
        assert_eq!(accepted.iter().position(|accepted| !accepted), Some(ALL));
    }

    #[test]
    #[should_panic(expected = "Ticket(7) must be later than the last ticket in its queue, Some(Ticket(7))")]
    fn a_ticket_is_given_once() {
        let mut channel = Channel::new(Access::Fair, Rng::new(1));
        let sender = Sender { port: PortId(1), visits: false };
        for _ in 0..2 {
            channel.push(sender, frame(7, TO[0]), Limit::Frames(9)).unwrap();
        }
    }
}
