//! Explanations of a run: the causes of an outage, the path of a packet, the events around a handoff.

mod packet;
mod timeline;

pub use packet::packet;
pub use timeline::timeline;

use crate::flow::PacketEvent;
use crate::handoff::{Experience, FlowCost, Handoff, Outage, Recovery};
use crate::journey::{Fate, Journeys};
use crate::report::{NO_DATA, NO_DATA_BY_NEW_PATH};
use crate::run::Outcome;
use draw::Table;
use std::collections::BTreeMap;
use std::fmt::Write;
use wire::{Duration, Instant, PacketId};

/// Returns the text of `explain`: each handoff and each hole, with the causes of its outages and the lost packets.
pub fn handoffs(outcome: &Outcome) -> String {
    let (plan, backend) = (&outcome.plan, outcome.backend.name());
    let mut out = format!(
        "{} on {backend}, seed {}: {}\n",
        plan.name,
        plan.seed,
        count(outcome.handoffs.len(), "handoff")
    );
    let lost = lost(outcome, &Journeys::new(plan, &outcome.records));
    for (index, one) in outcome.handoffs.iter().enumerate() {
        out.push('\n');
        out.push_str(&heading(outcome, index + 1, one));
        out.push_str(&handoff(outcome, &lost, one));
    }
    for hole in &outcome.holes {
        let _ = writeln!(
            out,
            "\nhole at {}, from {} s, outside of a handoff",
            outcome.host(hole.host),
            hole.from
        );
        let _ = writeln!(out, "  {}", flow_title(outcome, hole.flow));
        match &hole.experience {
            Experience::Outage(outage) => out.push_str(&parts(outcome, NO_DATA, outage)),
            _ => out.push_str("  never: no new data until the flow or the run ended\n"),
        }
        let _ = writeln!(out, "  lost {}", count(hole.lost as usize, "packet"));
    }
    out
}

/// Returns the title line of a handoff.
fn heading(outcome: &Outcome, number: usize, handoff: &Handoff) -> String {
    let Handoff { kind, from, to, begun, .. } = handoff;
    let failed = if handoff.failed { " (failed)" } else { "" };
    let denied = handoff.denied.as_ref();
    let denied = denied.map_or(String::new(), |code| format!("  registration denied: code {code}\n"));
    format!(
        "handoff {number}: {kind}, {} from {from} to {to}{failed}, begun at {begun} s\n{denied}",
        outcome.host(handoff.host)
    )
}

fn handoff(outcome: &Outcome, all_lost: &[Lost], handoff: &Handoff) -> String {
    let mut out = String::new();
    if handoff.flows.is_empty() {
        out.push_str("  not measured: the host had no flow at the cut\n");
    }
    for cost in &handoff.flows {
        let indent = if outcome.flows.len() > 1 {
            let _ = writeln!(out, "  {}", flow_title(outcome, cost.flow));
            "  "
        } else {
            ""
        };
        let is_charged = |lost: &&Lost| {
            let of_flow = lost.flow == cost.flow;
            of_flow && cost.losses.iter().any(|loss| (loss.recorded, loss.packet) == (lost.at, lost.packet))
        };
        let lost = all_lost.iter().filter(is_charged);
        for line in of_flow(outcome, handoff, cost, lost).lines() {
            let _ = writeln!(out, "{indent}{line}");
        }
    }
    out
}

fn flow_title(outcome: &Outcome, index: usize) -> String {
    let Some(flow) = outcome.flows.get(index) else { return String::new() };
    let [from, to] = [&flow.from, &flow.to].map(|end| crate::report::end(outcome, end));
    format!("flow {}, {from} > {to}, {}:", index + 1, flow.transport.name())
}

/// Returns a text about the effect of a handoff on one flow.
fn of_flow<'a>(
    outcome: &Outcome,
    handoff: &Handoff,
    cost: &FlowCost,
    all_lost: impl Iterator<Item = &'a Lost>,
) -> String {
    let mut out = String::new();
    match &cost.experience {
        Experience::Outage(outage) => out.push_str(&parts(outcome, NO_DATA_BY_NEW_PATH, outage)),
        Experience::Never { from } => {
            let _ = writeln!(out, "  never: no new data from {from} s until the flow or the run ended");
        }
        Experience::NotMeasured => {
            out.push_str(
                "  not measured: the flow was idle at the cut, or the run ended before the sender had to retransmit\n",
            );
        }
        Experience::None if cost.lost() == 0 => {
            out.push_str("  none: the handoff did not interrupt the flow, and no packet was lost\n");
        }
        Experience::None => {}
    }
    match cost.recovery {
        Recovery::At(recovered) => {
            let since = exact_ms(recovered.since(handoff.cut.min(recovered)));
            let _ = writeln!(out, "  recovered after {since} ms, at {recovered} s");
        }
        Recovery::Never if !matches!(cost.experience, Experience::Never { .. }) => {
            out.push_str(
                "  never recovered: less than half of the earlier goodput until the flow or the run ended\n",
            );
        }
        Recovery::Never | Recovery::Unneeded | Recovery::NotMeasured => {}
    }
    let mut by_fate: BTreeMap<&Fate, Vec<String>> = BTreeMap::new();
    for lost in all_lost {
        by_fate.entry(&lost.fate).or_default().push(lost.number.to_string());
    }
    if cost.lost() > 0 {
        let _ = writeln!(out, "  lost {}:", count(cost.lost() as usize, "packet"));
    }
    for (fate, numbers) in by_fate {
        let _ = writeln!(out, "    {} {fate}", numbers.join(", "));
    }
    if cost.duplicates > 0 {
        let _ = writeln!(out, "  {} arrived", count(cost.duplicates as usize, "duplicate"));
    }
    out
}

/// Returns a table with one row for each part of an outage, and the sum of the parts. `what` is what the outage is.
fn parts(outcome: &Outcome, what: &str, outage: &Outage) -> String {
    let mut table = Table::new(["ms", "from s", "to s", "owner", "begins with", "ends with"]);
    for owner in &outage.owners {
        let event = |name: &str, host| format!("{name} at {}", outcome.host(host));
        let (begins, ends) = match owner.hosts {
            Some((begins, ends)) => (event(&owner.begins, begins), event(&owner.ends, ends)),
            None => ("no event".to_owned(), "no event".to_owned()),
        };
        let span = exact_ms(owner.span());
        table.push([
            span,
            owner.from.to_string(),
            owner.to.to_string(),
            owner.name().to_owned(),
            begins,
            ends,
        ]);
    }
    let sum: Duration = outage.owners.iter().map(crate::handoff::Owner::span).sum();
    let mut out =
        format!("  {what} for {} ms, from {} s to {} s\n", exact_ms(outage.span()), outage.from, outage.to);
    table.render().lines().for_each(|line| {
        let _ = writeln!(out, "    {line}");
    });
    let equal = if sum == outage.span() {
        "the whole outage"
    } else {
        "NOT the outage: this is a bug in Wayfare, please report it"
    };
    let _ = writeln!(out, "    sum {} ms = {equal}", exact_ms(sum));
    if !outage.unexplained().is_zero() {
        let share = outage.unexplained().as_secs_f64() / outage.span().as_secs_f64() * 100.0;
        let _ = writeln!(out, "    unexplained {} ms, {share:.1} %", exact_ms(outage.unexplained()));
    }
    out
}

/// Returns when the next handoff of the same host begins, or [`Instant::NEVER`] if there is none.
fn next_begun(outcome: &Outcome, index: usize) -> Instant {
    let host = outcome.handoffs.get(index).map(|handoff| handoff.host);
    let mut later = outcome.handoffs.iter().skip(index + 1).filter(|other| Some(other.host) == host);
    later.next().map_or(Instant::NEVER, |next| next.begun)
}

/// A packet with data that was lost.
struct Lost {
    number: u64,
    at: Instant,
    packet: PacketId,
    /// The index of the packet's flow in the run's flows.
    flow: usize,
    fate: Fate,
}

fn lost(outcome: &Outcome, journeys: &Journeys<'_>) -> Vec<Lost> {
    let mut lost = Vec::new();
    for (flow, packets) in outcome.packets.iter().enumerate() {
        for PacketEvent { recorded: at, packet, .. } in &packets.lost {
            let number = journeys.number(*packet);
            let journey = number.and_then(|number| Some((number, journeys.packet(number)?)));
            let Some((number, journey)) = journey else { continue };
            let ends = journeys.all_ends(journey);
            let here = |end: &&crate::journey::End| end.at == *at;
            if let Some(end) = ends.iter().find(here).or(ends.last()) {
                lost.push(Lost { number, at: *at, packet: *packet, flow, fate: end.fate.clone() });
            }
        }
    }
    lost.sort_by_key(|lost| (lost.at, lost.number));
    lost
}

/// Returns milliseconds with six decimals (nanoseconds), so that printed values sum exactly.
fn exact_ms(span: Duration) -> String {
    format!("{}.{:06}", span.as_millis(), span.as_nanos() % 1_000_000)
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
