//! Flows and their packets, joined from the applications' streams and from what the stacks sent and received.

use super::Flow;
use super::build::Builder;
use super::packets::Packets;
use super::seen::Seen;
use super::stops::Stops;
use super::stream::AppStreams;
use scenario::Plan;
use std::collections::BTreeMap;
use trace::{HostId, Record};
use wire::{Instant, PacketId};

/// The flows of a run, in the order in which they began, and the packets of each.
pub(crate) struct Traffic {
    pub(crate) flows: Vec<Flow>,
    pub(crate) packets: Vec<Packets>,
    delivered: BTreeMap<PacketId, Vec<(Instant, HostId)>>,
    sent: BTreeMap<PacketId, Vec<(Instant, HostId)>>,
    /// The packets that waited for stopped hosts.
    pub(crate) stops: Stops,
}

impl Traffic {
    pub(crate) fn new(plan: &Plan, records: &[Record]) -> Self {
        let seen = Seen::new(plan, records);
        let streams = AppStreams::new(records);
        let builder = Builder { plan, seen: &seen, streams: &streams };
        let (flows, packets) = builder.flows().into_iter().unzip();
        Self { flows, packets, delivered: seen.delivered, sent: seen.sent, stops: seen.stops }
    }

    /// Returns when the packet first reached this host at or after `from`, or `None` if it did not.
    pub(crate) fn reached(&self, packet: PacketId, host: HostId, from: Instant) -> Option<Instant> {
        let times = self.delivered.get(&packet)?;
        times.iter().find(|(at, on)| *on == host && *at >= from).map(|(at, _)| *at)
    }

    /// Returns when and from which host the packet last left its origin, at or before `until`.
    pub(crate) fn origin(&self, packet: PacketId, until: Instant) -> Option<(Instant, HostId)> {
        self.sent.get(&packet)?.iter().rev().find(|(at, _)| *at <= until).copied()
    }
}
