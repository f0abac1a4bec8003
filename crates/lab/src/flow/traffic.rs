//! Flows and what is known of their packets, joined from the streams of applications and from what stacks saw.

use super::Flow;
use super::build::Builder;
use super::packets::Packets;
use super::seen::Seen;
use super::stream::AppStreams;
use crate::Plan;
use std::collections::BTreeMap;
use trace::{HostId, Record};
use wire::{Instant, PacketId};

/// The flows of a run, in the order in which they began, and the packets of each.
pub(crate) struct Traffic {
    pub(crate) flows: Vec<Flow>,
    pub(crate) packets: Vec<Packets>,
    delivered: BTreeMap<PacketId, Vec<(Instant, HostId)>>,
    sent: BTreeMap<PacketId, Vec<(Instant, HostId)>>,
}

impl Traffic {
    pub(crate) fn new(plan: &Plan, records: &[Record]) -> Self {
        let seen = Seen::new(plan, records);
        let streams = AppStreams::new(records);
        let builder = Builder { plan, seen: &seen, streams: &streams };
        let (flows, packets) = builder.flows().into_iter().unzip();
        Self { flows, packets, delivered: seen.delivered, sent: seen.sent }
    }

    /// When a packet reached this host at or after `from`.
    pub(crate) fn reached(&self, packet: PacketId, host: HostId, from: Instant) -> Option<Instant> {
        let times = self.delivered.get(&packet)?;
        times.iter().find(|(at, on)| *on == host && *at >= from).map(|(at, _)| *at)
    }

    /// When and where a packet last left its origin before `until`.
    pub(crate) fn origin(&self, packet: PacketId, until: Instant) -> Option<(Instant, HostId)> {
        self.sent.get(&packet)?.iter().rev().find(|(at, _)| *at <= until).copied()
    }
}
