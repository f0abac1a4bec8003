//! The records of a run, for looking things up.

use crate::Plan;
use crate::flow::Traffic;
use node::{Mark, Span, Stage, Value};
use std::collections::BTreeMap;
use trace::{EventKind, HostId, Record, What};
use wire::{Instant, Ipv4Addr};

/// An event that a stage begins or ends with.
pub(super) type Event = (Instant, HostId, String);

/// What ends a state that lasted until the end of the time.
pub(super) const NOT_ENDED: &str = "not_ended";

/// The records of a run, sorted for looking things up.
pub(super) struct Story<'a> {
    /// In the order of time.
    records: &'a [Record],
    pub(super) traffic: &'a Traffic,
    owners: BTreeMap<Ipv4Addr, HostId>,
    /// When the run ended.
    pub(super) end: Instant,
}

impl<'a> Story<'a> {
    pub(super) fn new(plan: &Plan, records: &'a [Record], traffic: &'a Traffic) -> Self {
        Self { records, traffic, owners: plan.owners(), end: plan.end() }
    }

    /// The records of this time, both ends included.
    pub(super) fn between(&self, from: Instant, to: Instant) -> &'a [Record] {
        let begin = self.records.partition_point(|r| r.at < from);
        let end = self.records.partition_point(|r| r.at <= to);
        self.records.get(begin..end).unwrap_or_default()
    }

    /// The states that events of the scenario began and that lasted within this time, in the order of their begin: each from
    /// what began it to what ended it.
    pub(super) fn ordered(&self, from: Instant, to: Instant) -> Vec<[Event; 2]> {
        // By the target, and the kind of event that ends the state.
        let mut open: BTreeMap<(&str, EventKind), Event> = BTreeMap::new();
        let mut all = Vec::new();
        for record in self.between(Instant::ZERO, to) {
            let What::Ordered(ordered) = &record.what else { continue };
            let event = (record.at, record.host, ordered.to_string());
            match ordered.kind {
                EventKind::Crash | EventKind::Stop | EventKind::Cut => {
                    open.extend(ordered.kind.end().map(|end| ((&*ordered.target, end), event)));
                }
                kind => all.extend(open.remove(&(&*ordered.target, kind)).map(|begun| [begun, event])),
            }
        }
        all.extend(open.into_values().map(|begun| {
            let until = (to, begun.1, NOT_ENDED.to_owned());
            [begun, until]
        }));
        all.retain(|[_, ended]| ended.0 > from);
        all.sort_by_key(|[begun, _]| begun.0);
        all
    }

    /// The first record of this time that is wanted.
    pub(super) fn first(
        &self,
        from: Instant,
        to: Instant,
        wanted: impl Fn(&Record) -> bool,
    ) -> Option<&'a Record> {
        self.between(from, to).iter().find(|r| wanted(r))
    }

    /// The first or the last mark of this edge that is about this host.
    pub(super) fn edge(
        &self,
        host: HostId,
        from: Instant,
        to: Instant,
        span: Span,
        last: bool,
    ) -> Option<&'a Record> {
        let mut matching = self.between(from, to).iter().filter(|r| match &r.what {
            What::Marked(mark) => {
                mark.span == Some(span) && (r.host == host || self.is_about(mark, "host", host))
            }
            _ => false,
        });
        if last { matching.next_back() } else { matching.next() }
    }

    /// Whether a field of a mark is an address of this host.
    pub(super) fn is_about(&self, mark: &Mark, field: &str, host: HostId) -> bool {
        let named = text(mark, field).and_then(|named| named.parse::<Ipv4Addr>().ok());
        named.is_some_and(|named| self.owners.get(&named) == Some(&host))
    }
}

/// A field of a mark that is text.
pub(crate) fn text<'a>(mark: &'a Mark, field: &str) -> Option<&'a str> {
    mark.fields.iter().find(|(key, _)| *key == field).and_then(|(_, value)| Value::as_text(value))
}

/// The mark with which a handoff begins, if this is one.
pub(super) fn begin(record: &Record) -> Option<&Mark> {
    match &record.what {
        What::Marked(mark) if mark.name == node::HANDOFF => Some(mark),
        _ => None,
    }
}

/// Whether this handoff only switches the path: the host can be reached both ways, and the radio is not the cause.
pub(super) fn is_switch(mark: &Mark) -> bool {
    mark.span == Some(Span::Begins(Stage::PathSwitch))
}

/// Whether a radio lost its cell here.
pub(super) fn is_lost(record: &Record) -> bool {
    matches!(&record.what, What::Down(_, why) if **why == *node::Link::OUT_OF_RANGE)
}

/// The event that a mark is.
pub(super) fn named(record: Option<&Record>) -> Option<Event> {
    let record = record?;
    let name = if let What::Marked(mark) = &record.what { mark.name } else { "" };
    Some((record.at, record.host, name.to_owned()))
}
