//! The steps of the protocols around a move, from the marks of their roles. Each step has a mark at its begin and one
//! at its end.

use crate::run::Outcome;
use draw::Step;
use node::{HANDOFF, Mark};
use std::collections::{BTreeMap, BTreeSet};
use trace::{EventKind, HostId, Record, What};
use wire::{Instant, Ipv4Addr};

/// The largest number of scenario events that are drawn. With more events, none is drawn, because they would hide the
/// rest of the figure.
pub(super) const EVENTS: usize = 12;

/// The name of each step, and the marks with which it begins and ends.
const STEPS: [(&str, &str, &str); 11] = [
    // Steps of SIGMA. Between the answer to ADD and the decision, the host has both addresses. The host waits until the
    // signal is strong enough for the hold time.
    ("ADD address", "add_sent", "add_acknowledged"),
    ("wait for signal, hold time", "add_acknowledged", HANDOFF),
    ("SET PRIMARY", HANDOFF, "primary_acknowledged"),
    ("DNS UPDATE", "location_sent", "location_known"),
    ("DELETE address", "peer_deleted", "address_gone"),
    // Steps of Mobile IP.
    ("discovery", "link_up", "agent_heard"),
    ("registration", "request_sent", "registered"),
    // Steps of Cellular IP.
    ("semisoft packet", "semisoft_sent", "semisoft_begun"),
    ("route-update", "route_update_sent", "mapping_changed"),
    // Steps of Indirect TCP.
    ("greeting", "greeting_sent", "welcomed"),
    ("state transfer", "offered", "taken"),
];

/// Returns the steps of all hosts that moved, in the order of their begins.
pub(super) fn steps(outcome: &Outcome) -> Vec<Step> {
    let owners = outcome.plan.owners();
    let moved: BTreeSet<HostId> = outcome.handoffs.iter().map(|handoff| handoff.host).collect();
    // For each host and step: the instant of the last begin, and the step's index in `steps` if an end followed.
    let mut open: BTreeMap<(HostId, usize), (Instant, Option<usize>)> = BTreeMap::new();
    let mut steps: Vec<Step> = Vec::new();
    for record in &outcome.records {
        let What::Marked(mark) = &record.what else { continue };
        if !STEPS.iter().any(|(_, begins, ends)| [*begins, *ends].contains(&mark.name)) {
            continue;
        }
        let Some(host) = about(record, mark, &moved, &owners) else { continue };
        for (index, (name, begins, ends)) in STEPS.iter().enumerate() {
            if mark.name == *ends
                && let Some((from, place)) = open.get_mut(&(host, index))
            {
                // The last of several ends counts: a route-update changes several mappings, one after the other.
                if let Some(step) = place.and_then(|place| steps.get_mut(place)) {
                    step.to = record.at;
                } else {
                    *place = Some(steps.len());
                    let host = outcome.plan.host_name(host).to_string();
                    steps.push(Step { from: *from, to: record.at, host, name: (*name).to_owned() });
                }
            }
            if mark.name == *begins {
                open.insert((host, index), (record.at, None));
            }
        }
    }
    steps.sort();
    steps
}

/// Returns all events of the scenario. An event lasts until the event that ends it, or until the end of the run. If no
/// kind of event can end it, it has no duration.
pub(super) fn events(outcome: &Outcome) -> Vec<Step> {
    let mut open: BTreeMap<(&str, EventKind), usize> = BTreeMap::new();
    let mut events: Vec<Step> = Vec::new();
    for record in &outcome.records {
        let What::Ordered(event) = &record.what else { continue };
        if let Some(begun) =
            open.remove(&(&*event.target, event.kind)).and_then(|place| events.get_mut(place))
        {
            begun.to = record.at;
            continue;
        }
        let end = event.kind.end();
        if let Some(end) = end {
            open.insert((&*event.target, end), events.len());
        }
        let to = if end.is_some() { outcome.plan.end() } else { record.at };
        events.push(Step { from: record.at, to, host: String::new(), name: event.to_string() });
    }
    events
}

/// Returns the moved host that a mark is about: the host that made the mark, or else the host with an address in the
/// mark's fields. Returns `None` if neither moved.
fn about(
    record: &Record,
    mark: &Mark,
    moved: &BTreeSet<HostId>,
    owners: &BTreeMap<Ipv4Addr, HostId>,
) -> Option<HostId> {
    if moved.contains(&record.host) {
        return Some(record.host);
    }
    let addresses = mark.fields.iter().filter_map(|(_, value)| value.as_text()?.parse::<Ipv4Addr>().ok());
    let mut hosts = addresses.filter_map(|address| owners.get(&address).copied());
    hosts.find(|host| moved.contains(host))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run;
    use scenario::Scenario;

    fn of(name: &str) -> Vec<(String, u64, u64)> {
        let (file, text) = Scenario::find(name).unwrap();
        let outcome = run::simulate(Scenario::plan(&file, &text, &[], 1).unwrap()).unwrap();
        let us = |at: Instant| at.0 / 1000;
        steps(&outcome).into_iter().map(|step| (step.name, us(step.from), us(step.to))).collect()
    }

    #[test]
    fn the_steps_of_sigma_are_in_its_order() {
        let all = of("sigma/handoff");
        let later: Vec<&(String, u64, u64)> = all.iter().filter(|(_, from, _)| *from > 1_000_000).collect();
        let names: Vec<&str> = later.iter().map(|(name, ..)| name.as_str()).collect();
        let expected =
            ["ADD address", "wait for signal, hold time", "SET PRIMARY", "DNS UPDATE", "DELETE address"];
        assert_eq!(names, expected, "{all:?}");
        assert!(later.windows(2).all(|pair| pair[0].1 < pair[1].1), "{all:?}");
        assert_eq!((later[1].1, later[1].2), (later[0].2, 5_500_000), "it waits from the answer to the move");
        assert_eq!(later[2].1, 5_500_000);
    }

    #[test]
    fn a_repetition_without_an_answer_is_no_step_and_of_several_ends_the_last_counts() {
        let all = of("first");
        let updates: Vec<_> = all.iter().filter(|(name, ..)| name == "route-update").collect();
        // One route-update is answered at the start and one in each of four handoffs. Two repetitions in each handoff
        // have no answer.
        assert_eq!(updates.len(), 5, "{all:?}");
        assert_eq!(
            (updates[1].1, updates[1].2),
            (1_005_000, 1_006_342),
            "to the crossover, behind the station"
        );
        assert_eq!(all.iter().filter(|(name, ..)| name == "semisoft packet").count(), 2);
    }

    #[test]
    fn a_connection_is_shipped_in_each_of_three_moves() {
        let all = of("indirect-tcp/handoff-time");
        assert_eq!(all.iter().filter(|(name, ..)| name == "state transfer").count(), 3, "{all:?}");
        assert_eq!(all.iter().filter(|(name, ..)| name == "registration").count(), 4, "{all:?}");
    }
}
