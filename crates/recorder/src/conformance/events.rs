//! The events of a run that are compared, sorted by node.

use super::tolerance;
use crate::decode::{Control, Numbers};
use cellular_ip::mobile::mark;
use node::{Mark, Value};
use std::collections::{BTreeMap, BTreeSet};
use trace::{HostId, Record, What};
use wire::{Duration, Iface, Instant, Ipv4Addr, PacketId};

/// A control message as a node sent or received it.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) at: Instant,
    pub(super) iface: Iface,
    pub(super) control: Control,
    /// The time since the latest handoff of the mobile host began, or since the begin of the run if it has had no
    /// handoff. The mobile host is the host with the address `control.about`; if no such host is known, it is the host
    /// of the record.
    pub(super) since: Duration,
}

/// The begin of a handoff.
#[derive(Clone, Debug)]
pub(super) struct Move {
    pub(super) at: Instant,
    pub(super) what: String,
    /// The time since the previous handoff of the host, or since the begin of the run.
    pub(super) since: Duration,
}

/// A sequence of messages whose order is compared: the messages of one protocol that a node sent (`true`) or received
/// (`false`). Two protocols of one node may react to an event in any order, because they are independent.
pub(super) type MessageSequence = (HostId, bool, &'static str);

/// The events of one run.
pub(super) struct Events {
    pub(super) moves: BTreeMap<HostId, Vec<Move>>,
    pub(super) messages: BTreeMap<MessageSequence, Vec<Message>>,
    /// The number of route-updates that are excluded, see [`super::Comparison::refreshes`].
    pub(super) refreshes: usize,
    /// The time of the last record.
    pub(super) end: Instant,
}

impl Events {
    pub(super) fn new(records: &[Record], numbers: &Numbers) -> Self {
        let end = records.iter().map(|record| record.at).max().unwrap_or_default();
        let mut events = Self { moves: moves(records), messages: BTreeMap::new(), refreshes: 0, end };
        let optional = optional(records, &events.moves, numbers);
        events.refreshes = optional.len();
        let mut senders: BTreeMap<Ipv4Addr, HostId> = BTreeMap::new();
        for record in records {
            let (iface, packet, sent) = match &record.what {
                What::Sent(iface, packet) => (*iface, packet, true),
                What::Received(iface, packet) => (*iface, packet, false),
                _ => continue,
            };
            let Some(control) = Control::of(packet, numbers) else { continue };
            // An address belongs to the host of the first record of a control message from this address.
            senders.entry(control.src).or_insert(record.host);
            if !optional.contains(&packet.id) {
                let host = senders.get(&control.about).copied();
                let since = events.since(host.unwrap_or(record.host), record.at);
                let message = Message { at: record.at, iface, control, since };
                let course = (record.host, sent, message.control.protocol());
                events.messages.entry(course).or_default().push(message);
            }
        }
        events
    }

    pub(super) fn moves_of(&self, host: HostId) -> Vec<Move> {
        self.moves.get(&host).cloned().unwrap_or_default()
    }

    pub(super) fn said(&self, course: MessageSequence) -> Vec<Message> {
        self.messages.get(&course).cloned().unwrap_or_default()
    }

    fn since(&self, host: HostId, at: Instant) -> Duration {
        let before = self.moves.get(&host).into_iter().flatten().rfind(|one| one.at <= at);
        at.since(before.map_or(Instant::ZERO, |one| one.at))
    }
}

fn moves(records: &[Record]) -> BTreeMap<HostId, Vec<Move>> {
    let mut moves: BTreeMap<HostId, Vec<Move>> = BTreeMap::new();
    for (record, mark) in marks(records).filter(|(_, mark)| mark.name == node::HANDOFF) {
        let field = |name| text(mark, name).unwrap_or_default();
        let what = format!("{} handoff from {} to {}", field("kind"), field("from"), field("to"));
        let list = moves.entry(record.host).or_default();
        let since = record.at.since(list.last().map_or(Instant::ZERO, |one| one.at));
        list.push(Move { at: record.at, what, since });
    }
    moves
}

/// Returns the route-updates that the route-update timer of a host sent within the tolerance of a handoff of this host.
fn optional(
    records: &[Record],
    moves: &BTreeMap<HostId, Vec<Move>>,
    numbers: &Numbers,
) -> BTreeSet<PacketId> {
    let mut optional = BTreeSet::new();
    let mut by_timer: BTreeSet<HostId> = BTreeSet::new();
    for record in records {
        match &record.what {
            What::Marked(mark) if is_by_timer(mark) => {
                by_timer.insert(record.host);
            }
            // The route-update of the timer is the next control message that the host sends after this mark.
            What::Sent(_, packet) if by_timer.contains(&record.host) => {
                let Some(control) = Control::of(packet, numbers) else { continue };
                by_timer.remove(&record.host);
                let mut near = moves.get(&record.host).into_iter().flatten();
                let close = |one: &Move| {
                    let apart = record.at.since(one.at).max(one.at.since(record.at));
                    apart <= tolerance(one.since)
                };
                if !control.is_semisoft() && near.any(close) {
                    optional.insert(packet.id);
                }
            }
            _ => {}
        }
    }
    optional
}

fn is_by_timer(mark: &Mark) -> bool {
    mark.name == mark::ROUTE_UPDATE_SENT && text(mark, "why") == Some("timer")
}

fn marks(records: &[Record]) -> impl Iterator<Item = (&Record, &Mark)> {
    records.iter().filter_map(|record| match &record.what {
        What::Marked(mark) => Some((record, mark)),
        _ => None,
    })
}

fn text<'a>(mark: &'a Mark, name: &str) -> Option<&'a str> {
    mark.fields.iter().find(|(key, _)| *key == name).map(|(_, value)| value).and_then(Value::as_text)
}
