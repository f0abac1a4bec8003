//! Checks of the times in a scenario: moves of mobile hosts, and workloads.

use super::error::Wrong;
use super::layout::Layout;
use super::nearest::did_you_mean;
use super::{Host, Scenario, protocol};
use crate::application::Application;
use node::config::parse_span;
use std::collections::BTreeSet;
use toml::{Table, Value};
use wire::Duration;

/// The moves of a role that are listed in the file, with the path of the role.
struct Timetable<'a> {
    path: String,
    role: &'a Table,
    moves: Vec<Step<'a>>,
}

/// A move. A key is `None` if it is missing or malformed; the reader of the role reports that.
struct Step<'a> {
    at: Option<Duration>,
    to: Option<&'a str>,
}

fn timetables<'a>(name: &'a str, host: &'a Host) -> impl Iterator<Item = Timetable<'a>> {
    host.role.iter().enumerate().filter_map(move |(index, role)| {
        let step = |step: &'a Value| Step {
            at: step.get("at").and_then(Value::as_str).and_then(parse_span),
            to: step.get("to").and_then(Value::as_str),
        };
        let moves = role.get("moves")?.as_array()?.iter().map(step).collect();
        Some(Timetable { path: format!("host.{name}.role[{index}]"), role, moves })
    })
}

/// Refuses moves to unknown stations, moves that are not in the order of time, and two moves at one instant.
pub(super) fn check(layout: &Layout, name: &str, host: &Host) -> Result<(), Wrong> {
    let stations: Vec<String> = stations(layout);
    for Timetable { path, moves, .. } in timetables(name, host) {
        let mut before: Option<Duration> = None;
        for (index, step) in moves.iter().enumerate() {
            let wrong = |key: &str, problem: String| Err((format!("{path}.moves[{index}].{key}"), problem));
            if let Some(to) = step.to
                && !stations.iter().any(|station| station == to)
            {
                let known: Vec<&str> = stations.iter().map(String::as_str).collect();
                let meant = did_you_mean(to, known.iter().copied());
                return wrong(
                    "to",
                    format!("there is no base station `{to}`{meant}; there are: {}", known.join(", ")),
                );
            }
            let Some(at) = step.at else { continue };
            match before {
                Some(before) if at == before => {
                    return wrong(
                        "at",
                        "two moves at one instant; each move must be later than the previous move".to_owned(),
                    );
                }
                Some(before) if at < before => {
                    return wrong(
                        "at",
                        "moves must be in the order of time; this move is earlier than the previous move"
                            .to_owned(),
                    );
                }
                _ => before = Some(at),
            }
        }
    }
    Ok(())
}

fn stations(layout: &Layout) -> Vec<String> {
    let name = |station: Table| Some(station.get("name")?.as_str()?.to_owned());
    layout.stations().filter_map(name).collect()
}

/// Returns warnings about moves and workloads that can run but are probably a mistake. Each has the path of its key.
pub(super) fn warnings(scenario: &Scenario, layout: &Layout) -> Vec<Wrong> {
    layout
        .hosts()
        .flat_map(|(name, host)| {
            let of_moves = timetables(name, host).flat_map(|table| of_moves(scenario, layout, &table));
            of_moves.chain(of_spans(scenario, name, host)).collect::<Vec<_>>()
        })
        .collect()
}

fn of_moves(scenario: &Scenario, layout: &Layout, table: &Timetable<'_>) -> Vec<Wrong> {
    let end = scenario.duration;
    let first = stations(layout).into_iter().next();
    let mut here = table.role.get("start").and_then(Value::as_str).map(str::to_owned).or(first);
    let mut found = Vec::new();
    for (index, step) in table.moves.iter().enumerate() {
        let (Some(at), Some(to)) = (step.at, step.to) else { continue };
        let path = format!("{}.moves[{index}]", table.path);
        if at >= end {
            found.push((
                format!("{path}.at"),
                format!("this move never happens: the run ends at {end:?}; allowed: below {end:?}"),
            ));
        } else if here.as_deref() == Some(to) && protocol::ignores_own_cell(table.role) {
            found.push((
                format!("{path}.to"),
                format!("the host is at `{to}` already, so this move has no effect"),
            ));
        }
        here = Some(to.to_owned());
    }
    found
}

/// Returns warnings about workloads whose `stop` is not later than their `start`, or whose `start` is not before the
/// end of the run.
fn of_spans(scenario: &Scenario, name: &str, host: &Host) -> Vec<Wrong> {
    let mut found = Vec::new();
    for (index, role) in host.role.iter().enumerate() {
        let at = |key: &str| role.get(key).and_then(Value::as_str).and_then(parse_span);
        let path = |key: &str| format!("host.{name}.role[{index}].{key}");
        match (at("start"), at("stop")) {
            (Some(start), _) if start >= scenario.duration => {
                let end = scenario.duration;
                let problem = format!(
                    "starts at {start:?}, but the run ends at {end:?}, so this role never runs; allowed: below {end:?}"
                );
                found.push((path("start"), problem));
            }
            (Some(start), Some(stop)) if stop <= start => {
                let problem = format!(
                    "stops at {stop:?}, but starts at {start:?}, so this role never runs; allowed: above {start:?}"
                );
                found.push((path("stop"), problem));
            }
            _ => {}
        }
    }
    found
}

/// Refuses uplinks that form a cycle, because no packet in the cycle would reach a gateway.
pub(super) fn uplinks(layout: &Layout) -> Result<(), Wrong> {
    uplinks_in_a_cycle(layout).map_or(Ok(()), Err)
}

fn uplinks_in_a_cycle(layout: &Layout) -> Option<Wrong> {
    let uplink = |name: &str| {
        let (_, host) = layout.hosts().find(|(other, _)| *other == name)?;
        host.role.iter().enumerate().find_map(|(index, role)| Some((index, role.get("uplink")?.as_str()?)))
    };
    for (name, _) in layout.hosts() {
        let (mut way, mut seen, mut here) = (vec![name], BTreeSet::from([name]), name);
        while let Some((_, next)) = uplink(here) {
            way.push(next);
            if next == name {
                let (index, _) = uplink(name)?;
                let problem =
                    format!("the uplinks form a cycle: {}; they must lead to a gateway", way.join(" > "));
                return Some((format!("host.{name}.role[{index}].uplink"), problem));
            }
            if !seen.insert(next) {
                break;
            }
            here = next;
        }
    }
    None
}

/// Refuses two sinks or servers with the same transport and port on a host: the second would receive nothing.
pub(super) fn ports(name: &str, host: &Host) -> Result<(), Wrong> {
    let mut taken: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (index, role) in host.role.iter().enumerate() {
        let text = |key: &str| role.get(key).and_then(Value::as_str);
        let Some((_, port)) = text("at").and_then(|at| at.rsplit_once(':')) else { continue };
        let is_sink = Application::of_table(role) == Some(Application::Sink);
        let transport = text("transport").unwrap_or(if is_sink { "udp" } else { "tcp" });
        if !taken.insert((transport, port)) {
            let problem = format!(
                "another role of `{name}` has {transport} port {port}; give each role a separate port"
            );
            return Err((format!("host.{name}.role[{index}].at"), problem));
        }
    }
    Ok(())
}
