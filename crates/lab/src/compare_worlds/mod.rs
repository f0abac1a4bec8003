//! Whether two worlds did the same: the control messages of each node, sent and received apart, those of each protocol in
//! their order.
//!
//! A message is compared by what must be equal in both worlds (see [`Control::constant`]) and by the interface that it
//! passed. Its time counts from the first event of the host's latest handoff, and may differ by 20 ms and 2 % of that
//! time; the handoffs themselves are compared the same way, each from the one before it.
//!
//! Two kinds of messages may be missing in one world. A route-update that the route-update timer sent within the
//! tolerance of a handoff is optional: which of two timers runs out first is a matter of microseconds. It is left out
//! and counted. So is what only one of two runs had time for at its very end.

mod events;

use crate::control::Control;
use events::{Course, Events, Message, Move};
use std::collections::BTreeSet;
use std::fmt;
use trace::{HostId, Record};
use wire::{Duration, Instant};

/// What two runs have in common.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// Messages that were found in both, sent and received.
    pub messages: usize,
    /// Nodes that sent or received any.
    pub nodes: usize,
    /// Handoffs that were found in both.
    pub handoffs: usize,
    /// Refreshes within the tolerance of a handoff, and their sightings on the way, in either run.
    pub refreshes: Excluded,
    /// Messages at the very end of one run that the other had no time for.
    pub cut_off: usize,
    /// Where they part, first in time.
    pub divergence: Option<Divergence>,
}

/// What was left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Excluded {
    /// Refreshes of the first run.
    pub first: usize,
    /// Refreshes of the second.
    pub second: usize,
}

/// Where two runs part.
#[derive(Clone, PartialEq, Debug)]
pub struct Divergence {
    /// At which node.
    pub host: HostId,
    /// In which of its sequences.
    pub sequence: Sequence,
    /// At which place in it, from 1.
    pub place: usize,
    /// What the first run has there.
    pub first: Option<Said>,
    /// What the second has there.
    pub second: Option<Said>,
    /// What is wrong.
    pub why: String,
}

/// A sequence of events at a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sequence {
    /// Its handoffs.
    Handoffs,
    /// The control messages of one protocol that it sent.
    Sent,
    /// The control messages of one protocol that it received.
    Received,
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Handoffs => "handoff",
            Self::Sent => "sent",
            Self::Received => "received",
        })
    }
}

/// An event of one of the runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Said {
    /// When.
    pub at: Instant,
    /// What it says.
    pub what: String,
    /// The message, unless it is a handoff.
    pub message: Option<Control>,
}

/// Times may differ by this, and by a fiftieth of the time since the handoff's first event.
const TOLERANCE: Duration = Duration::from_millis(20);
const SHARE: u32 = 50;

fn tolerance(since: Duration) -> Duration {
    TOLERANCE + since / SHARE
}

/// Compares what two runs of one scenario wrote down.
pub fn compare(first: &[Record], second: &[Record]) -> Comparison {
    let runs = [Events::new(first), Events::new(second)];
    let [a, b] = &runs;
    let mut result = Comparison {
        messages: 0,
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
    let speaking: BTreeSet<Course> = a.messages.keys().chain(b.messages.keys()).copied().collect();
    for course in &speaking {
        let (host, sent, _) = *course;
        let sequence = if sent { Sequence::Sent } else { Sequence::Received };
        result.walk(host, sequence, &a.said(*course), &b.said(*course), &runs);
    }
    result.nodes = speaking.iter().map(|(host, ..)| *host).collect::<BTreeSet<_>>().len();
    result
}

/// An event that has a counterpart in the other world.
trait Counterpart {
    /// What differs, apart from the time.
    fn differs(&self, other: &Self) -> Option<String>;
    /// When, and how long since the event that it is measured from.
    fn time(&self) -> (Instant, Duration);
    /// For the report.
    fn said(&self) -> Said;
}

impl Counterpart for Message {
    fn differs(&self, other: &Self) -> Option<String> {
        if self.iface != other.iface {
            return Some(format!("interface {} in one, {} in the other", self.iface.0, other.iface.0));
        }
        let (ours, theirs) = (self.control.constant(), other.control.constant());
        let unlike = ours.iter().zip(&theirs).find(|(a, b)| a != b);
        let unlike = unlike.map(|((name, a), (_, b))| format!("{name} is {a} in one, {b} in the other"));
        unlike.or_else(|| (ours.len() != theirs.len()).then(|| "other messages".to_owned()))
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
        (self.what != other.what).then(|| format!("{} in one, {} in the other", self.what, other.what))
    }

    fn time(&self) -> (Instant, Duration) {
        (self.at, self.since)
    }

    fn said(&self) -> Said {
        Said { at: self.at, what: self.what.clone(), message: None }
    }
}

impl Comparison {
    /// Goes along one sequence in both runs up to where they part.
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
                    Some(format!("only the {which} run has it"))
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
                Sequence::Sent | Sequence::Received => self.messages += 1,
            }
        }
    }

    /// Keeps the earliest.
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
    /// When it shows first, in either run.
    pub fn at(&self) -> Instant {
        let times = [&self.first, &self.second].into_iter().flatten().map(|said| said.at);
        times.min().unwrap_or_default()
    }
}

fn late<T: Counterpart>(ours: &T, theirs: &T) -> Option<String> {
    let ((ours, a), (theirs, b)) = (ours.time(), theirs.time());
    // What is under way when a handoff begins counts from this one in one world and from the last one in the other.
    let absolute = ours.since(theirs).max(theirs.since(ours));
    let (apart, allowed) = (a.abs_diff(b).min(absolute), tolerance(a.min(b)));
    let ms = |span: Duration| span.as_secs_f64() * 1e3;
    (apart > allowed).then(|| format!("{:.3} ms apart, {:.3} ms are allowed", ms(apart), ms(allowed)))
}

#[cfg(test)]
mod tests;
