//! The grant of a free channel to one waiting frame.

use crate::air::Access;
use crate::channel::{Channel, Grant, Waiting};
use crate::fabric::fly;
use crate::flight::FlightPath;
use crate::medium::CellSpec;
use crate::sender::Sender;
use crate::{Fabric, Flight, PortId, Ticket, reason};
use wire::{Duration, Instant, Reason, Rng};

/// The decision on a waiting frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The ticket of the frame.
    pub ticket: Ticket,
    /// The port of the radio at which the frame waited.
    pub from: PortId,
    /// The instant of the decision.
    pub at: Instant,
    /// The flight of the frame, or the reason why it is lost.
    pub fate: Result<Flight, Reason>,
}

impl Fabric {
    /// Returns when [`Fabric::decide`] must be called next; `None` if no decision is due. The instant can change with
    /// each offer, visit, tuning, sample, change and decision.
    pub fn next_decision(&self) -> Option<Instant> {
        let told = self.decided.first().map(|decision| decision.at);
        let granted = self.due.first().map(|(at, _)| *at);
        told.into_iter().chain(granted).chain(self.next_to_leave()).min()
    }

    /// Grants every channel that is free by `now` and has waiting frames, in the order of time. Then the radios that
    /// have drained leave their cells ([`Fabric::left`]). Returns the decisions on frames. Frames that were dropped
    /// because their radio left a cell are included.
    ///
    /// # Panics
    ///
    /// Panics if the fabric contradicts itself: a decision is about a frame that was not offered, or a channel has two
    /// times for its next grant.
    pub fn decide(&mut self, now: Instant) -> Vec<Decision> {
        while let Some((at, place)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.due.remove(&(at, place));
            let due = self.channels.get_mut(place).and_then(|channel| channel.due.take());
            assert_eq!(due, Some(at), "channel {place} has another time in the list of due channels");
            if let Some(next) = self.grant(at, place) {
                self.arm(place, next);
            }
        }
        self.leave(now);
        let last = self.last_ticket;
        let strange = self.decided.iter().find(|decision| decision.ticket.0 > last);
        assert!(strange.is_none(), "no frame was offered with this ticket: {strange:?}");
        std::mem::take(&mut self.decided)
    }

    /// Grants a channel for one frame, unless beacons are due first or the senders collide. Returns when the channel
    /// must be granted again. Returns `None` if no frame waits, or if it is not known when a waiting frame can be sent.
    fn grant(&mut self, at: Instant, place: usize) -> Option<Instant> {
        let busy = self.send_beacons(at, place);
        if busy > at {
            return Some(busy);
        }
        let (heads, later) = self.heads(at, place);
        let channel = self.channels.get_mut(place)?;
        let Some(grant) = channel.grant(at, &heads) else { return later };
        let slot = channel.contention.map(|contention| contention.slot).unwrap_or_default();
        match grant {
            Grant::To(sender, idle) => {
                let frame = channel.pop(sender)?;
                let fate = self.send(at + slot * idle, sender, &frame);
                self.decided.push(Decision { ticket: frame.ticket, from: sender.port, at, fate });
            }
            Grant::Collision(senders, idle, lost) => {
                let longest = senders.iter().map(|sender| self.airtime(place, *sender)).max();
                let channel = self.channels.get_mut(place)?;
                channel.busy_until = at + slot * idle + longest.unwrap_or_default();
                let out = channel.busy_until;
                for sender in lost {
                    self.give_up(at, place, sender, out);
                }
            }
        }
        let channel = self.channels.get(place)?;
        channel.has_waiting().then_some(channel.busy_until)
    }

    /// Gives up the first frame of a queue, because the frame has collided too often. `out` is the end of the frame's
    /// last attempt.
    fn give_up(&mut self, at: Instant, place: usize, sender: Sender, out: Instant) {
        let Some(frame) = self.channels.get_mut(place).and_then(|channel| channel.pop(sender)) else {
            return;
        };
        let fate = Err(reason::COLLISIONS);
        self.decided.push(Decision { ticket: frame.ticket, from: sender.port, at, fate });
        if sender.visits {
            self.come_back(sender, &frame, out);
        }
    }

    /// Returns the queues whose first frame can be sent at `at`, with their ranks. Also returns the instant from which
    /// the first frame of another queue can be sent.
    ///
    /// If other frames wait, a frame that is offered at the instant of a grant takes part only in the next grant.
    /// In the simulator, a frame lands, its host answers, and the channel is granted again, all at one instant. On
    /// Linux, the answer would come about 100 us later. With this rule, the answer waits equally long in both backends.
    /// An 802.11 radio could not send at that instant either, because it senses the channel first.
    fn heads(&self, at: Instant, place: usize) -> (Vec<(u64, Sender)>, Option<Instant>) {
        let (mut heads, mut fresh, mut later) = (Vec::new(), Vec::new(), None);
        let Some(channel) = self.channels.get(place) else { return (heads, later) };
        for (sender, frame) in channel.heads() {
            let Some(radio) = self.radios.get(sender.port) else { continue };
            let ready = if sender.visits { frame.ready } else { radio.back(at) };
            let rank = match channel.access {
                Access::Fair => radio.served,
                Access::Fifo => frame.ticket.0,
            };
            if ready <= at {
                let heads = if frame.since < at { &mut heads } else { &mut fresh };
                heads.push((rank, sender));
            } else if ready != Instant::NEVER {
                later = Some(later.map_or(ready, |sooner: Instant| sooner.min(ready)));
            }
        }
        (if heads.is_empty() { fresh } else { heads }, later)
    }

    /// Sends a frame whose sender has the channel.
    pub(crate) fn send(&mut self, start: Instant, sender: Sender, frame: &Waiting) -> Result<Flight, Reason> {
        let own = self.cells.get_mut(&frame.cell).ok_or(reason::NO_CARRIER)?;
        let out = start + own.medium.airtime(frame.bytes);
        let way = if sender.visits { FlightPath::Visit(frame.cell) } else { FlightPath::Air(frame.cell) };
        let flight = fly(&mut own.medium, sender.port, way, (start, out));
        let channel = self.channels.get_mut(own.channel).ok_or(reason::NO_CARRIER)?;
        channel.busy_until = out;
        self.grants += 1;
        if let Some(radio) = self.radios.get_mut(sender.port) {
            radio.served = self.grants;
            radio.sends(flight.as_ref().map_or(out, |flight| flight.lands));
        }
        if sender.visits {
            self.come_back(sender, frame, out);
        }
        flight
    }

    /// Sets when a radio that visits another cell is back in its own cell: when the frame is sent, or later if the
    /// excursion takes longer.
    fn come_back(&mut self, sender: Sender, frame: &Waiting, out: Instant) {
        let Some(radio) = self.radios.get(sender.port) else { return };
        // The time from the offer until the radio can send is half of the excursion. This time is zero if the radio was
        // not retuned.
        let way = frame.ready.since(frame.since);
        if way.is_zero() {
            return;
        }
        let (back, own) = (out.max(frame.since + way * 2), radio.cell());
        if let Some(radio) = self.radios.get_mut(sender.port) {
            radio.be_away(frame.since, back);
        }
        // The frames that waited in the radio's own cell can be sent from `back` on.
        let place = own.and_then(|own| self.cells.get(&own)).map(|own| own.channel);
        let kept = Sender { port: sender.port, visits: false };
        if let Some(place) = place.filter(|place| self.head(*place, kept).is_some()) {
            let free = self.channels.get(place).map_or(back, |channel| channel.busy_until);
            self.arm(place, back.max(free));
        }
    }

    fn head(&self, place: usize, sender: Sender) -> Option<&Waiting> {
        self.channels.get(place)?.head(sender)
    }

    fn airtime(&self, place: usize, sender: Sender) -> Duration {
        let airtime = |frame: &Waiting| Some(self.cells.get(&frame.cell)?.medium.airtime(frame.bytes));
        self.head(place, sender).and_then(airtime).unwrap_or_default()
    }

    /// Schedules a grant of a channel at `at`, unless one is due sooner.
    pub(crate) fn arm(&mut self, place: usize, at: Instant) {
        let Some(channel) = self.channels.get_mut(place) else { return };
        if at == Instant::NEVER || channel.due.is_some_and(|due| due <= at) {
            return;
        }
        if let Some(later) = channel.due.replace(at) {
            self.due.remove(&(later, place));
        }
        self.due.insert((at, place));
    }

    /// Sends the beacons that are due before a frame can begin at `now`. Returns when the channel is free after these
    /// beacons.
    pub(crate) fn send_beacons(&mut self, now: Instant, place: usize) -> Instant {
        let Some(channel) = self.channels.get_mut(place) else { return now };
        for cell in &channel.cells {
            if let Some(own) = self.cells.get_mut(cell) {
                channel.busy_until = own.send_beacons(now, channel.busy_until);
            }
        }
        channel.busy_until
    }

    /// Drops the frames that wait at a radio that leaves its cell. A packet that the radio sends in another cell is
    /// kept.
    pub(crate) fn drop_waiting(&mut self, now: Instant, port: PortId) {
        let own = self.radios.get(port).and_then(|radio| self.cells.get(&radio.cell()?));
        let Some(channel) = own.and_then(|own| self.channels.get_mut(own.channel)) else { return };
        let lost = channel.clear(Sender { port, visits: false });
        let fate = Err(reason::SENDER_LEFT);
        self.decided.extend(lost.into_iter().map(|frame| Decision {
            ticket: frame.ticket,
            from: port,
            at: now,
            fate,
        }));
    }

    /// Returns the index of a cell's channel, and adds the cell to the channel. Adds the channel if it does not exist.
    pub(crate) fn channel_of(&mut self, spec: &CellSpec, rng: &Rng) -> usize {
        let number = spec.air.channel;
        let same = |cell: &&crate::cell::Airspace| number.is_some() && cell.air.channel == number;
        let found =
            self.cells.get(&spec.cell).or_else(|| self.cells.values().find(same)).map(|cell| cell.channel);
        let place = found.unwrap_or_else(|| {
            self.channels.push(Channel::new(spec.air.access, rng.fork("contention")));
            self.channels.len() - 1
        });
        if let Some(channel) = self.channels.get_mut(place) {
            channel.contention = channel.contention.or(spec.air.contention);
            if !channel.cells.contains(&spec.cell) {
                channel.cells.push(spec.cell);
            }
        }
        place
    }
}

#[cfg(test)]
#[path = "grant_tests.rs"]
mod tests;
