//! Compares what two backends did. The control messages of each node are compared, sent and received messages
//! separately. Messages of one protocol are compared in their order.
//!
//! A message is compared by the fields that must be equal on both backends (see [`Control::constant`]) and by its
//! interface. If it cannot be read in either run, its content is not compared, and it is counted separately. The time of
//! a message counts from the first event of the host's latest handoff, and may differ by 20 ms plus 2 % of that time.
//! Handoffs are compared in the same manner: their times count from the previous handoff.
//!
//! Two kinds of events may be missing in one run. The first is a route-update that the route-update timer sent within
//! the tolerance of a handoff: whether the timer or the handoff comes first depends on microseconds. Such messages are
//! excluded and counted. The second is a message or handoff at the end of one run for which the other run had no time
//! left.

mod diff;
mod events;

pub use diff::{Difference, diff, figure};

use crate::decode::{Control, Numbers};
use events::{Events, Message, MessageSequence, Move};
use std::collections::BTreeSet;
use std::fmt;
use trace::{HostId, Record};
use wire::{Duration, Instant};

/// The result of [`compare`]: how many events of two runs are equal, and the first difference.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// The number of messages that are equal in both runs, up to the first divergence of each sequence. A message
    /// counts at each node that sent or received it.
    pub messages: usize,
    /// The number of messages that cannot be read in either run, up to the first divergence of each sequence. Their
    /// contents are not compared, and they do not count in `messages`.
    pub unreadable: usize,
    /// The number of nodes that sent or received messages in at least one run. Messages that `refreshes` counts are
    /// left out.
    pub nodes: usize,
    /// The number of handoffs that are equal in both runs, up to the first divergence of each host.
    pub handoffs: usize,
    /// For each run, the number of route-updates that are excluded, because the route-update timer sent them within the
    /// tolerance of a handoff. Each route-update counts once.
    pub refreshes: Excluded,
    /// The number of messages and handoffs at the end of one run for which the other run had no time left.
    pub cut_off: usize,
    /// The earliest divergence; `None` if there is none.
    pub divergence: Option<Divergence>,
}

/// The numbers of route-updates that are excluded from the comparison of two runs ([`Comparison::refreshes`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Excluded {
    /// The number of excluded route-updates in the first run.
    pub first: usize,
    /// The number of excluded route-updates in the second run.
    pub second: usize,
}

/// The first difference of two runs in one sequence of events.
#[derive(Clone, PartialEq, Debug)]
pub struct Divergence {
    /// The node whose events diverge.
    pub host: HostId,
    /// The sequence of the node's events in which the runs diverge.
    pub sequence: Sequence,
    /// The position in the sequence, from 1.
    pub place: usize,
    /// The first run's event at this position; `None` if its sequence is shorter.
    pub first: Option<Said>,
    /// The second run's event at this position; `None` if its sequence is shorter.
    pub second: Option<Said>,
    /// The difference as text, for example `lifetime is 60 in the first run, 30 in the second`.
    pub why: String,
}

/// The kind of a sequence of events at a node. The events of one sequence are compared in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sequence {
    /// The node's handoffs.
    Handoffs,
    /// The control messages of one protocol that the node sent.
    Sent,
    /// The control messages of one protocol that the node received.
    Received,
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Handoffs => "handoff",
            Self::Sent => "sent control message",
            Self::Received => "received control message",
        })
    }
}

/// One event of a compared run, as a divergence shows it.
#[derive(Clone, PartialEq, Debug)]
pub struct Said {
    /// The time of the event, since the begin of the run.
    pub at: Instant,
    /// The event as text: a handoff with its kind and stations, or a control message.
    pub what: String,
    /// The control message; `None` if the event is a handoff.
    pub message: Option<Control>,
}

/// The permitted difference in time is 20 ms plus 1/50 of the time since the reference event: the begin of a handoff or
/// of the run.
const TOLERANCE: Duration = Duration::from_millis(20);
const SHARE: u32 = 50;

fn tolerance(since: Duration) -> Duration {
    TOLERANCE + since / SHARE
}

/// Compares the handoffs and control messages of two runs of one scenario. Each run has its records and the numbers of
/// its messages of Mobile IP.
pub fn compare(runs: [(&[Record], &Numbers); 2]) -> Comparison {
    let runs = runs.map(|(records, numbers)| Events::new(records, numbers));
    let [a, b] = &runs;
    let mut result = Comparison {
        messages: 0,
        unreadable: 0,
        nodes: 0,
        handoffs: 0,
        refreshes: Excluded { first: a.refreshes, second: b.refreshes },
        cut_off: 0,
        divergence: None,
    };
    let moving: BTreeSet<HostId> = a.moves.keys().chain(b.moves.keys()).copied().collect();
    for host in moving {
        let (ours, theirs) = (a.moves_of(host), b.moves_of(host));
        result.walk(host, Sequence::Handoffs, &ours, &theirs, &runs);
    }
    let speaking: BTreeSet<MessageSequence> = a.messages.keys().chain(b.messages.keys()).copied().collect();
    for course in &speaking {
        let (host, sent, _) = *course;
        let sequence = if sent { Sequence::Sent } else { Sequence::Received };
        result.walk(host, sequence, &a.said(*course), &b.said(*course), &runs);
    }
    result.nodes = speaking.iter().map(|(host, ..)| *host).collect::<BTreeSet<_>>().len();
    result
}

/// An event that is compared with an event of the other run.
trait Counterpart {
    /// Returns how the events differ apart from their times, or `None` if they do not.
    fn differs(&self, other: &Self) -> Option<String>;
    /// Returns whether the event can be read, so that [`Self::differs`] compares all that must be equal.
    fn is_readable(&self) -> bool;
    /// Returns the instant of the event, and the time since the begin of the latest handoff or of the run.
    fn time(&self) -> (Instant, Duration);
    /// Returns the event in the form in which [`Divergence`] reports it.
    fn said(&self) -> Said;
}

impl Counterpart for Message {
    fn differs(&self, other: &Self) -> Option<String> {
        if self.iface != other.iface {
            return Some(format!(
                "interface {} in the first run, {} in the second",
                self.iface.0, other.iface.0
            ));
        }
        let (ours, theirs) = (self.control.constant(), other.control.constant());
        let unlike = ours.iter().zip(&theirs).find(|(a, b)| a != b);
        let unlike =
            unlike.map(|((name, a), (_, b))| format!("{name} is {a} in the first run, {b} in the second"));
        unlike
            .or_else(|| (ours.len() != theirs.len()).then(|| "the messages have different fields".to_owned()))
    }

    fn is_readable(&self) -> bool {
        self.control.unreadable().is_none()
    }

    fn time(&self) -> (Instant, Duration) {
        (self.at, self.since)
    }

    fn said(&self) -> Said {
        Said { at: self.at, what: self.control.to_string(), message: Some(self.control.clone()) }
    }
}

impl Counterpart for Move {
    fn differs(&self, other: &Self) -> Option<String> {
        (self.what != other.what)
            .then(|| format!("{} in the first run, {} in the second", self.what, other.what))
    }

    fn is_readable(&self) -> bool {
        true
    }

    fn time(&self) -> (Instant, Duration) {
        (self.at, self.since)
    }

    fn said(&self) -> Said {
        Said { at: self.at, what: self.what.clone(), message: None }
    }
}

impl Comparison {
    /// Compares one sequence of both runs up to the first divergence.
    fn walk<T: Counterpart>(
        &mut self,
        host: HostId,
        sequence: Sequence,
        a: &[T],
        b: &[T],
        runs: &[Events; 2],
    ) {
        for place in 0..a.len().max(b.len()) {
            let why = match (a.get(place), b.get(place)) {
                (Some(ours), Some(theirs)) => ours.differs(theirs).or_else(|| late(ours, theirs)),
                (Some(only), None) | (None, Some(only)) => {
                    let [first, second] = runs;
                    let (at, since) = only.time();
                    if at + tolerance(since) >= first.end.min(second.end) {
                        self.cut_off += 1;
                        continue;
                    }
                    let which = if a.len() > b.len() { "first" } else { "second" };
                    Some(format!("only the {which} run has this event"))
                }
                (None, None) => None,
            };
            if let Some(why) = why {
                let said = |list: &[T]| list.get(place).map(Counterpart::said);
                let (first, second) = (said(a), said(b));
                self.diverge(Divergence { host, sequence, place: place + 1, first, second, why });
                return;
            }
            match sequence {
                Sequence::Handoffs => self.handoffs += 1,
                _ if !a.get(place).is_some_and(Counterpart::is_readable) => self.unreadable += 1,
                Sequence::Sent | Sequence::Received => self.messages += 1,
            }
        }
    }

    /// Keeps `found` if no earlier divergence is known.
    fn diverge(&mut self, found: Divergence) {
        let is_earlier = |known: &Divergence| {
            (found.at(), found.host, found.sequence) < (known.at(), known.host, known.sequence)
        };
        if self.divergence.as_ref().is_none_or(is_earlier) {
            self.divergence = Some(found);
        }
    }
}

impl Divergence {
    /// Returns the time of the earlier of the two events, or of the only event.
    pub fn at(&self) -> Instant {
        let times = [&self.first, &self.second].into_iter().flatten().map(|said| said.at);
        times.min().unwrap_or_default()
    }
}

fn late<T: Counterpart>(ours: &T, theirs: &T) -> Option<String> {
    let ((ours, a), (theirs, b)) = (ours.time(), theirs.time());
    // A message may be under way when a handoff begins. Its time may then count from this handoff in one run, and from
    // the previous handoff in the other run. So the times since the reference events are compared, and also the times
    // since the begin of the run. The smaller difference counts.
    let absolute = ours.since(theirs).max(theirs.since(ours));
    let (apart, allowed) = (a.abs_diff(b).min(absolute), tolerance(a.min(b)));
    let ms = |span: Duration| span.as_secs_f64() * 1e3;
    (apart > allowed).then(|| format!("{:.3} ms apart, {:.3} ms are allowed", ms(apart), ms(allowed)))
}

#[cfg(test)]
mod tests;
