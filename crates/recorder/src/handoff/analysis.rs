//! Searches in the records of a run, for the analysis of handoffs.

use super::links::{Links, is_refusal};
use crate::faults::Boundary;
use crate::flow::Traffic;
use mobile_ip::config::{CareOf, MobileNodeConfig, ReverseTunnel};
use mobile_ip::mark::{BINDING_CACHE, FOREIGN_AGENT, HOME_AGENT, MOBILE_NODE};
use mobile_ip::message::Numbers;
use node::{Mark, Span, Stage, Value};
use roles::RoleConfig;
use scenario::Plan;
use std::collections::{BTreeMap, BTreeSet};
use trace::{EventKind, HostId, Record, What};
use wire::{Iface, Instant, Ipv4Addr};

/// The records and the traffic of a run, with functions that search in them.
pub(super) struct HandoffAnalysis<'a> {
    /// The records of the run, in the order of time.
    records: &'a [Record],
    pub(super) traffic: &'a Traffic,
    pub(super) owners: BTreeMap<Ipv4Addr, HostId>,
    /// The marks of Mobile IP that change a route, with the mobile node; and the crashes of hosts, with `None`.
    pub(super) routes: Vec<(Option<HostId>, &'a Record)>,
    /// The refused tunings: the time of the request, the host and its radio. A refused tuning changes nothing.
    refused: BTreeSet<(Instant, HostId, Iface)>,
    /// The mobile nodes with several interfaces.
    several: BTreeSet<HostId>,
    /// The mobile nodes with one interface that send by the agent with which they register.
    by_agent: BTreeSet<HostId>,
    /// The mobile nodes with their own care-of address that send by the router of its network.
    by_router: BTreeSet<HostId>,
    pub(super) links: Links<'a>,
    /// The numbers of the messages of Mobile IP.
    pub(super) numbers: Numbers,
    /// When the run ended.
    pub(super) end: Instant,
}

impl<'a> HandoffAnalysis<'a> {
    pub(super) fn new(plan: &Plan, records: &'a [Record], traffic: &'a Traffic) -> Self {
        let owners = plan.owners();
        let routes = routes(records, &owners);
        let refused = refused(records);
        let several = mobile_nodes(plan, |node| !node.further_interfaces.is_empty());
        let by_agent =
            mobile_nodes(plan, |node| node.care_of == CareOf::Agent && node.further_interfaces.is_empty());
        let by_router = mobile_nodes(plan, |node| {
            node.care_of != CareOf::Agent && node.reverse_tunnel == ReverseTunnel::None
        });
        let links = Links::new(plan, records, |record| tuned(record, &refused));
        Self {
            records,
            traffic,
            owners,
            routes,
            refused,
            several,
            by_agent,
            by_router,
            links,
            numbers: plan.numbers(),
            end: plan.end(),
        }
    }

    /// Returns whether a record of a link concerns the interface in use. With several interfaces, the mobile node
    /// marks only the links of that one that come up.
    pub(super) fn is_of_interface_in_use(&self, record: &Record) -> bool {
        let is_marked = |other: &Record| {
            other.host == record.host
                && matches!(&other.what, What::Marked(mark) if mark.role == MOBILE_NODE && mark.name == "link_up")
        };
        !self.several.contains(&record.host) || self.first(record.at, record.at, is_marked).is_some()
    }

    /// Returns whether a host is a mobile node with several interfaces.
    pub(super) fn has_several_interfaces(&self, host: HostId) -> bool {
        self.several.contains(&host)
    }

    /// Returns whether a host is a mobile node with one interface that sends by the agent with which it registers.
    pub(super) fn sends_by_agent(&self, host: HostId) -> bool {
        self.by_agent.contains(&host)
    }

    /// Returns whether a host is a mobile node that sends by the router of the network of its own care-of address. It waits for no
    /// registration with its own data, unless it puts them into a reverse tunnel.
    pub(super) fn sends_by_router(&self, host: HostId) -> bool {
        self.by_router.contains(&host)
    }

    /// Returns the radio that begins to tune to another cell with this record; `None` for another record, and for a
    /// refused tuning.
    pub(super) fn tuned(&self, record: &Record) -> Option<Iface> {
        tuned(record, &self.refused)
    }

    /// Returns the records from `from` to `to`, including those at these two instants.
    pub(super) fn between(&self, from: Instant, to: Instant) -> &'a [Record] {
        let begin = self.records.partition_point(|r| r.at < from);
        let end = self.records.partition_point(|r| r.at <= to);
        self.records.get(begin..end).unwrap_or_default()
    }

    /// Returns the first record from `from` to `to` for which `wanted` returns true.
    pub(super) fn first(
        &self,
        from: Instant,
        to: Instant,
        wanted: impl Fn(&Record) -> bool,
    ) -> Option<&'a Record> {
        self.between(from, to).iter().find(|r| wanted(r))
    }

    /// Returns the first mark from `from` to `to` whose span edge is `span`, or the last such mark if `last` is true.
    /// Only marks count that `host` made, or whose field `host` is an address of `host`.
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

    /// Returns whether the field `field` of `mark` is an address of `host`.
    pub(super) fn is_about(&self, mark: &Mark, field: &str, host: HostId) -> bool {
        owner(mark, field, &self.owners) == Some(host)
    }
}

/// Returns the host that has the address in the field `field` of `mark`.
fn owner(mark: &Mark, field: &str, owners: &BTreeMap<Ipv4Addr, HostId>) -> Option<HostId> {
    owners.get(&text(mark, field)?.parse::<Ipv4Addr>().ok()?).copied()
}

/// Returns the mobile nodes of Mobile IP that have such a configuration.
fn mobile_nodes(plan: &Plan, wanted: impl Fn(&MobileNodeConfig) -> bool) -> BTreeSet<HostId> {
    let is_wanted = |role: &RoleConfig| matches!(role, RoleConfig::MobileIpMobileNode(node) if wanted(node));
    let hosts = (0..).map(HostId).zip(&plan.hosts);
    hosts.filter(|(_, host)| host.config.roles.iter().any(is_wanted)).map(|(id, _)| id).collect()
}

/// The roles and names of the marks of Mobile IP that change where the packets for a mobile node are sent.
const ROUTES: [(&str, &[&str]); 3] = [
    (HOME_AGENT, &["binding_changed", "binding_removed", "binding_expired", "binding_restored"]),
    (FOREIGN_AGENT, &["care_of_learnt", "forwarding_ended", "visitor_departed"]),
    (BINDING_CACHE, &["binding_learnt", "binding_forgotten"]),
];

fn routes<'a>(
    records: &'a [Record],
    owners: &BTreeMap<Ipv4Addr, HostId>,
) -> Vec<(Option<HostId>, &'a Record)> {
    let changed = |record: &'a Record| match &record.what {
        What::Marked(mark) => {
            let is_one = |(role, names): &(&str, &[&str])| mark.role == *role && names.contains(&mark.name);
            let is_route = ROUTES.iter().any(is_one);
            is_route.then(|| owner(mark, "host", owners)).flatten().map(|host| (Some(host), record))
        }
        What::Ordered(event) => (event.kind == EventKind::Crash).then_some((None, record)),
        _ => None,
    };
    records.iter().filter_map(changed).collect()
}

/// Returns whether a mark ends the registration at an agent: the agent has the new path from then on.
pub(super) fn is_registered(record: &Record) -> bool {
    matches!(&record.what, What::Marked(mark) if mark.span == Some(Span::Ends(Stage::Registration)))
}

/// Returns the refused tunings: the last request of a radio before the record of the refusal.
fn refused(records: &[Record]) -> BTreeSet<(Instant, HostId, Iface)> {
    let mut requested = BTreeMap::new();
    let mut refused = BTreeSet::new();
    for Record { at, host, what } in records {
        match what {
            What::Tuned(iface, _) => _ = requested.insert((*host, *iface), *at),
            What::Down(iface, why) if is_refusal(why) => {
                refused.extend(requested.remove(&(*host, *iface)).map(|at| (at, *host, *iface)));
            }
            _ => {}
        }
    }
    refused
}

/// Returns the radio that begins to tune to another cell with this record; `None` for another record, and for a
/// tuning in
/// `refused`.
fn tuned(record: &Record, refused: &BTreeSet<(Instant, HostId, Iface)>) -> Option<Iface> {
    let What::Tuned(iface, _) = record.what else { return None };
    (!refused.contains(&(record.at, record.host, iface))).then_some(iface)
}

/// Returns the text in the field `field` of `mark`, or `None` if the mark has no such field or the field is no text.
pub(crate) fn text<'a>(mark: &'a Mark, field: &str) -> Option<&'a str> {
    mark.fields.iter().find(|(key, _)| *key == field).and_then(|(_, value)| Value::as_text(value))
}

/// Returns the mark in `record`, if this mark begins a handoff.
pub(super) fn begin(record: &Record) -> Option<&Mark> {
    match &record.what {
        What::Marked(mark) if mark.name == node::HANDOFF => Some(mark),
        _ => None,
    }
}

/// Returns whether this handoff only switches the path, while the host can be reached on both paths. Then the radio
/// cuts no path.
pub(super) fn is_switch(mark: &Mark) -> bool {
    mark.span == Some(Span::Begins(Stage::PathSwitch))
}

/// Returns whether the correspondent of SIGMA on this host has switched the path.
pub(super) fn has_switched(record: &Record, sender: HostId) -> bool {
    let is_it = |mark: &Mark| mark.role == sigma::mark::CORRESPONDENT && mark.name == "switched";
    record.host == sender && matches!(&record.what, What::Marked(mark) if is_it(mark))
}

/// Returns whether the record shows that a radio went out of range of its cell.
pub(super) fn is_lost(record: &Record) -> bool {
    matches!(&record.what, What::Down(_, why) if **why == *node::Link::OUT_OF_RANGE)
}

/// Returns the time and the host of a record, and the name of its mark. The name is empty if the record is no mark.
/// Returns `None` without a record.
pub(super) fn named(record: Option<&Record>) -> Option<Boundary> {
    let record = record?;
    let name = if let What::Marked(mark) = &record.what { mark.name } else { "" };
    Some((record.at, record.host, name.to_owned()))
}
