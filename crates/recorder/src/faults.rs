//! The faults of a run: when hosts were stopped or down, and when links were cut.

use std::collections::BTreeMap;
use trace::{EventKind, HostId, Record, What};
use wire::Instant;

/// An event that begins or ends a stage: time, host and name.
pub(crate) type Boundary = (Instant, HostId, String);

/// The name of the end of a state (stopped, crashed or cut) that lasted until the end of the examined range of time.
pub(crate) const NOT_ENDED: &str = "not_ended";

/// A state (stopped, crashed or cut) that an event of the scenario began.
#[derive(Clone)]
pub(crate) struct Fault<'a> {
    /// What the first event did.
    pub(crate) kind: EventKind,
    /// The host or the link, as text.
    pub(crate) target: &'a str,
    /// The event that began the state, and the event that ended it or [`NOT_ENDED`].
    pub(crate) edges: [Boundary; 2],
}

impl Fault<'_> {
    pub(crate) const fn begun(&self) -> Instant {
        self.edges[0].0
    }

    pub(crate) const fn ended(&self) -> Instant {
        self.edges[1].0
    }

    /// Returns the host at which the event was recorded. For a link it is only one of its ends.
    pub(crate) const fn host(&self) -> HostId {
        self.edges[0].1
    }

    /// Returns whether the fault lasted until the end of the examined range.
    pub(crate) fn lasts(&self) -> bool {
        self.edges[1].2 == NOT_ENDED
    }

    pub(crate) fn is_stop(&self) -> bool {
        self.kind == EventKind::Stop
    }

    pub(crate) fn is_crash(&self) -> bool {
        self.kind == EventKind::Crash
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.kind == EventKind::Cut
    }
}

/// Returns all faults of a run, in the order of their begin.
pub(crate) fn faults(records: &[Record]) -> Vec<Fault<'_>> {
    // The open states, by the target and the kind of event that ends the state.
    let mut open: BTreeMap<(&str, EventKind), (EventKind, Boundary)> = BTreeMap::new();
    let mut all = Vec::new();
    for record in records {
        let What::Ordered(ordered) = &record.what else { continue };
        let event = (record.at, record.host, ordered.to_string());
        let target = &*ordered.target;
        match ordered.kind {
            kind @ (EventKind::Crash | EventKind::Stop | EventKind::Cut) => {
                // A crash ends a stop: no `continue` follows.
                let stopped = EventKind::Stop.end().filter(|_| kind == EventKind::Crash);
                let stopped = stopped.and_then(|end| open.remove(&(target, end)));
                all.extend(stopped.map(|(kind, begun)| Fault {
                    kind,
                    target,
                    edges: [begun, event.clone()],
                }));
                open.extend(kind.end().map(|end| ((target, end), (kind, event))));
            }
            ends => {
                let begun = open.remove(&(target, ends));
                all.extend(begun.map(|(kind, begun)| Fault { kind, target, edges: [begun, event] }));
            }
        }
    }
    all.extend(open.into_iter().map(|((target, _), (kind, begun))| {
        let end = (Instant::NEVER, begun.1, NOT_ENDED.to_owned());
        Fault { kind, target, edges: [begun, end] }
    }));
    all.sort_by_key(Fault::begun);
    all
}
