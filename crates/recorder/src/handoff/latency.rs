//! The latency of a handoff: from the cut to the switch of the path, plus one transit down the new path.

use super::analysis::{HandoffAnalysis, text};
use super::route::care_of;
use crate::decode::Control;
use node::{Mark, Span, Stage};
use std::collections::BTreeSet;
use trace::{HostId, Record, What};
use wire::{Duration, Iface, Instant, Packet, PacketId, ipv4, tunnel};

impl HandoffAnalysis<'_> {
    /// Returns the time from the cut until the switching node has the new path, plus one transit down that path. Of
    /// several such nodes, it is the last one whose packets reach the host. Returns `None` if no record shows the switch, or
    /// if none shows the transit.
    pub(super) fn latency(&self, host: HostId, cut: Instant, until: Instant) -> Option<Duration> {
        let switched = self.switching_node(host, cut, until)?;
        let mut nodes = self.correspondents(host, switched, until);
        nodes.push(switched);
        nodes.sort_by_key(|node| std::cmp::Reverse(node.at));
        let latency = |node: &Record| Some(node.at.since(cut) + self.down(host, node, until)?);
        nodes.into_iter().find_map(latency)
    }

    /// Returns since when the last of the switching nodes had the new path. Returns `None` if no record shows the switch.
    pub(super) fn path_since(&self, host: HostId, cut: Instant, until: Instant) -> Option<Instant> {
        let switched = self.switching_node(host, cut, until)?;
        let others = self.correspondents(host, switched, until);
        others.into_iter().chain([switched]).map(|node| node.at).max()
    }

    /// Returns the round trip between the host and the node that changed the host's mapping: the transit time of the
    /// host's signalling to this node, plus that of a data packet to the host. Returns `None` if a needed record is
    /// missing.
    pub(super) fn round_trip(&self, host: HostId, cut: Instant, until: Instant) -> Option<Duration> {
        let first = self.edge(host, cut, until, Span::Begins(Stage::Registration), false)?.at;
        let mapped = self.elsewhere(host, cut, until, |mark| mark.span == Some(REGISTERED))?;
        let sent = self.sent_up(host, cut, mapped).unwrap_or(first);
        Some(mapped.at.since(sent) + self.down(host, mapped, until)?)
    }

    /// Returns the record that shows that the path is switched. It is the first of these that exists: a support router
    /// took the host's last connection; a correspondent sends to the new address; a crossover or an agent has the new
    /// mapping.
    fn switching_node(&self, host: HostId, cut: Instant, until: Instant) -> Option<&Record> {
        let ends = |span| move |mark: &Mark| mark.span == Some(span);
        let moved = |mark: &Mark| mark.role == sigma::mark::CORRESPONDENT && mark.name == "switched";
        let taken = self.elsewhere(host, cut, until, ends(Span::Ends(Stage::PathSwitch)));
        taken.or_else(|| self.elsewhere(host, cut, until, moved)).or_else(|| self.mapped(host, cut, until))
    }

    /// Returns the records with which correspondents stopped to use an earlier care-of address of their binding caches, after
    /// the home agent had the new binding (`mapped`).
    fn correspondents(&self, host: HostId, mapped: &Record, until: Instant) -> Vec<&Record> {
        let What::Marked(binding) = &mapped.what else { return Vec::new() };
        let is_caches = |mark: &Mark| {
            binding.role == mobile_ip::mark::HOME_AGENT && mark.role == mobile_ip::mark::BINDING_CACHE
        };
        // The correspondents whose entry has an earlier care-of address.
        let mut earlier = BTreeSet::new();
        let mut changes = Vec::new();
        for record in self.routes_to(host, Instant::ZERO, until) {
            let What::Marked(mark) = &record.what else {
                earlier.remove(&record.host);
                continue;
            };
            if !is_caches(mark) {
                continue;
            }
            let is_earlier = care_of(mark).is_some_and(|entry| Some(entry) != care_of(binding));
            if is_earlier {
                earlier.insert(record.host);
            } else if earlier.remove(&record.host) && record.at > mapped.at {
                changes.push(record);
            }
        }
        changes
    }

    /// Returns the record of the first mapping to the host's new place. Nodes below a crossover change their mapping
    /// before the crossover, so this is its last change. An agent may bind the same care-of address several times, for
    /// example after the lifetime of a registration ended, or if a mobile node repeats a notification: the path worked from
    /// the first time on. Returns `None` if the home agent had this binding before the cut.
    fn mapped(&self, host: HostId, cut: Instant, until: Instant) -> Option<&Record> {
        let is_agents =
            |mark: &Mark| mark.role == mobile_ip::mark::HOME_AGENT && mark.span == Some(REGISTERED);
        let last = self
            .elsewhere(host, cut, until, is_agents)
            .or_else(|| self.elsewhere(host, cut, until, |mark| mark.span == Some(REGISTERED)))?;
        let What::Marked(mark) = &last.what else { return Some(last) };
        let is_home = mark.role == mobile_ip::mark::HOME_AGENT;
        if !is_home && text(mark, "care_of").is_none() {
            return Some(last);
        }
        let same = |other: &Mark| other.name == mark.name && text(other, "care_of") == text(mark, "care_of");
        let is_its = |r: &&Record| match &r.what {
            What::Marked(other) => {
                r.host == last.host && other.role == mark.role && self.is_about(other, "host", host)
            }
            _ => false,
        };
        let before = self
            .between(Instant::ZERO, cut)
            .iter()
            .rev()
            .filter(|r| r.at < cut)
            .find(|r| is_its(r) && matches!(&r.what, What::Marked(mark) if PLACES.contains(&mark.name)));
        if is_home && matches!(before.map(|r| &r.what), Some(What::Marked(mark)) if same(mark)) {
            return None;
        }
        self.between(cut, last.at)
            .iter()
            .filter(is_its)
            .find(|r| matches!(&r.what, What::Marked(mark) if same(mark)))
    }

    /// Returns the last mark about `host` that a different host made and for which `wanted` returns true.
    fn elsewhere(
        &self,
        host: HostId,
        from: Instant,
        to: Instant,
        wanted: impl Fn(&Mark) -> bool,
    ) -> Option<&Record> {
        self.between(from, to).iter().rfind(|r| match &r.what {
            What::Marked(mark) => {
                let is_about = || ["host", "address"].iter().any(|field| self.is_about(mark, field, host));
                r.host != host && wanted(mark) && is_about()
            }
            _ => false,
        })
    }

    /// Returns the transit time of the first packet that the switching node sent after the switch and the host
    /// received.
    fn down(&self, host: HostId, switched: &Record, until: Instant) -> Option<Duration> {
        let mut under_way: BTreeSet<(PacketId, Instant)> = BTreeSet::new();
        // Packets that the node sends at the same instant are recorded after its mark.
        let after = self.between(switched.at, until).iter().skip_while(|r| !std::ptr::eq(*r, switched));
        for record in after {
            match &record.what {
                What::Sent(iface, packet) if *iface != Iface::HOST => {
                    let is_down = record.host == switched.host && record.at < until;
                    under_way.extend((is_down && is_of_transport(packet)).then_some((packet.id, record.at)));
                }
                What::Received(iface, packet) if record.host == host && *iface != Iface::HOST => {
                    let sent = under_way.range((packet.id, Instant::ZERO)..=(packet.id, record.at)).next();
                    if let Some((_, sent)) = sent {
                        return Some(record.at.since(*sent));
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Returns when the host sent the route-update that changed the mapping of the crossover. Earlier route-updates may
    /// have been lost.
    fn sent_up(&self, host: HostId, cut: Instant, mapped: &Record) -> Option<Instant> {
        let within = self.between(cut, mapped.at);
        within.iter().rev().filter(|r| r.host == mapped.host).find_map(|r| {
            let What::Received(_, taken) = &r.what else { return None };
            let sends = |r: &&Record| matches!(&r.what, What::Sent(_, sent) if sent.id == taken.id);
            Some(within.iter().find(|r| r.host == host && sends(r))?.at)
        })
    }
}

const REGISTERED: Span = Span::Ends(Stage::Registration);

/// The marks of a home agent that change where it sends the packets of a mobile node.
const PLACES: [&str; 4] = ["binding_changed", "binding_removed", "binding_expired", "binding_restored"];

/// Returns whether a packet is UDP, TCP or SCTP, possibly inside tunnels, and no control message.
fn is_of_transport(packet: &Packet) -> bool {
    if let Ok((_, inner)) = tunnel::decapsulate(&packet.bytes) {
        return is_of_transport(&Packet { bytes: inner.into_owned(), ..packet.clone() });
    }
    let protocol = ipv4::protocol(&packet.bytes);
    let is_transport =
        protocol.is_some_and(|protocol| [ipv4::UDP, tcp::PROTOCOL, sctp::PROTOCOL].contains(&protocol));
    is_transport && !Control::is(packet)
}
