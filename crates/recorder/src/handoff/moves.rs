//! The begins of handoffs: the marks of the roles that move a host, and changes of the agent of Mobile IP while the radio
//! stays in reach of both agents.

use super::analysis::{begin, is_switch, text};
use mobile_ip::mark::{HOME_AGENT, MOBILE_NODE};
use node::Mark;
use scenario::Plan;
use std::collections::BTreeMap;
use trace::{HostId, Record, What};
use wire::{Instant, Ipv4Addr};

/// The kind of a handoff from one agent to another for which no role moved the host to another cell.
pub(super) const AGENT: &str = "agent";

/// The mark of a mobile node whose agent expired or left, and the reason of the choice of the next agent.
pub(super) const AGENT_LOST: &str = "agent_lost";

/// The begin of a handoff.
pub(super) struct Move<'a> {
    /// The record of the decision.
    pub(super) record: &'a Record,
    /// The kind of the handoff.
    pub(super) kind: String,
    /// The name of the station that the host leaves.
    pub(super) from: String,
    /// The name of the station to which the host moves.
    pub(super) to: String,
    pub(super) how: How,
}

/// How the path of a host is cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// The radio loses its cell, or tunes to another one.
    Radio,
    /// The host switches between two paths that it can use.
    Switch,
    /// The host changes its agent.
    Agent(Agent),
}

/// When and how a change of the agent cuts the path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Agent {
    /// When the path was cut. If the radio could still use the earlier agent: when the home agent switched the path to
    /// the new agent. Otherwise: when the radio began to use another cell, or at the decision if the earlier agent
    /// was lost, or if the home agent did not switch the path.
    pub(super) cut: Instant,
    /// The home agent, if it cut the path. Packets that it sent before are on the earlier path.
    pub(super) by: Option<HostId>,
}

/// What is known about the agent of a mobile node.
#[derive(Default)]
struct Attachment {
    /// The agent of the latest request or choice.
    chosen: Option<String>,
    /// The agent with which the node was registered last.
    used: Option<String>,
    /// Whether a registration was accepted since the last begin of a handoff.
    is_settled: bool,
    /// Whether the node has not yet chosen or asked an agent since the radio began a handoff. Until then, a change of the
    /// binding is due to a request that the node sent before the handoff.
    is_moving: bool,
    /// When the link of the interface in use first came up since then.
    up: Option<Instant>,
    /// The index of a move whose path the home agent will cut.
    waits: Option<usize>,
}

/// Returns the begins of all handoffs, in the order of time.
pub(super) fn moves<'a>(plan: &Plan, records: &'a [Record]) -> Vec<Move<'a>> {
    let owners = plan.owners();
    let mut nodes: BTreeMap<HostId, Attachment> = BTreeMap::new();
    let mut moves = Vec::new();
    for record in records {
        if let Some(mark) = begin(record) {
            let field = |name: &str| text(mark, name).unwrap_or_default().to_owned();
            let how = if is_switch(mark) { How::Switch } else { How::Radio };
            let (kind, from, to) = (field("kind"), field("from"), field("to"));
            let node = nodes.entry(record.host).or_default();
            (node.is_settled, node.up, node.waits) = (false, None, None);
            node.is_moving = how == How::Radio;
            moves.push(Move { record, kind, from, to, how });
            continue;
        }
        let What::Marked(mark) = &record.what else { continue };
        let host = if mark.role == MOBILE_NODE { Some(record.host) } else { bound(mark, &owners) };
        let Some(host) = host else { continue };
        let node = nodes.entry(host).or_default();
        // Of several interfaces, only the link of the one in use counts: the mobile node marks no other.
        if mark.role == MOBILE_NODE && mark.name == "link_up" {
            node.up = node.up.or(Some(record.at));
        }
        if mark.role == HOME_AGENT
            && mark.span.is_some()
            && let Some(Move { how, .. }) = node.waits.take().and_then(|index| moves.get_mut(index))
        {
            *how = How::Agent(Agent { cut: record.at, by: Some(record.host) });
        }
        let Some([from, to]) = node.note(mark, has_own_care_of(mark, host, &owners)) else { continue };
        let name = |agent: &str| {
            let owner = agent.parse::<Ipv4Addr>().ok().and_then(|agent| owners.get(&agent));
            owner.map_or_else(|| agent.to_owned(), |host| plan.host_name(*host).into_owned())
        };
        let up = node.up.take();
        let is_usable = up.is_none() && text(mark, "why") != Some(AGENT_LOST);
        node.waits = is_usable.then_some(moves.len());
        let how = How::Agent(Agent { cut: up.unwrap_or(record.at), by: None });
        let (from, to) = (name(&from), name(&to));
        moves.push(Move { record, kind: AGENT.to_owned(), from, to, how });
    }
    moves
}

impl Attachment {
    /// Updates the state with a mark of the mobile node, or of a home agent about the node. Returns the agent that the
    /// node leaves and the agent that it has chosen, if a handoff begins. `is_own` is whether the node itself has the
    /// care-of address of the mark. Then its path does not depend on an agent, so a change of the agent cuts nothing.
    fn note(&mut self, mark: &Mark, is_own: bool) -> Option<[String; 2]> {
        let agent = || text(mark, "agent").map(str::to_owned);
        match mark.name {
            "binding_changed" | "binding_removed" if self.is_moving => {}
            "registered" | "binding_changed" | "binding_removed" => {
                (self.is_settled, self.up) = (true, None);
                self.used = self.chosen.clone().filter(|_| !is_own);
            }
            "request_sent" => (self.chosen, self.is_moving) = (agent(), false),
            // The radio lost and found the same agent.
            "agent_heard" if agent() == self.used => self.up = None,
            "agent_chosen" => {
                (self.chosen, self.is_moving) = (agent(), false);
                let (from, to) = (self.used.clone()?, self.chosen.clone()?);
                if self.is_settled && from != to {
                    self.is_settled = false;
                    return Some([from, to]);
                }
            }
            _ => {}
        }
        None
    }
}

/// Returns whether a mark about a registration of `host` has a care-of address that is not another host's, and not the
/// home address.
fn has_own_care_of(mark: &Mark, host: HostId, owners: &BTreeMap<Ipv4Addr, HostId>) -> bool {
    let is_home = mark.fields.iter().any(|(key, value)| *key == "lifetime" && value.as_int() == Some(0));
    let care_of = text(mark, "care_of").and_then(|care_of| care_of.parse::<Ipv4Addr>().ok());
    !is_home && care_of.is_some_and(|care_of| owners.get(&care_of).is_none_or(|owner| *owner == host))
}

/// Returns the mobile node about which a mark of a home agent is.
fn bound(mark: &Mark, owners: &BTreeMap<Ipv4Addr, HostId>) -> Option<HostId> {
    let host = text(mark, "host").filter(|_| mark.role == HOME_AGENT)?.parse::<Ipv4Addr>().ok()?;
    owners.get(&host).copied()
}
