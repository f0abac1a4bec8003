//! Where an outage went, what became of a packet, what happened around a handoff: a run as an answer to a question.

mod packet;
mod timeline;

pub use packet::packet;
pub use timeline::timeline;

use crate::handoff::{Handoff, Outage};
use crate::journey::{Fate, Journeys};
use crate::run::Outcome;
use draw::Table;
use std::collections::BTreeMap;
use std::fmt::Write;
use trace::What;
use wire::{Duration, Instant};

/// Every handoff, with its outage by owner.
pub fn handoffs(outcome: &Outcome) -> String {
    let (plan, world) = (&outcome.plan, outcome.world.name());
    let mut out = format!(
        "{} on {world}, seed {}: {}\n",
        plan.name,
        plan.seed,
        count(outcome.handoffs.len(), "handoff")
    );
    let journeys = Journeys::new(plan, &outcome.records);
    for (index, one) in outcome.handoffs.iter().enumerate() {
        out.push('\n');
        out.push_str(&heading(outcome, index + 1, one));
        out.push_str(&handoff(outcome, &journeys, index, one));
    }
    out
}

/// A handoff in a line.
fn heading(outcome: &Outcome, number: usize, handoff: &Handoff) -> String {
    let Handoff { kind, from, to, begun, .. } = handoff;
    format!(
        "handoff {number}: {kind}, {} from {from} to {to}, begun at {begun} s\n",
        outcome.host(handoff.host)
    )
}

fn handoff(outcome: &Outcome, journeys: &Journeys<'_>, index: usize, handoff: &Handoff) -> String {
    let until = next_begun(outcome, index);
    let mut out = String::new();
    match &handoff.outage {
        Some(outage) => out.push_str(&parts(outcome, outage)),
        None if !arrives(outcome, handoff, until) => {
            out.push_str(
                "  nothing to measure by: no packet reached an application before the next handoff\n",
            );
        }
        None if handoff.lost == 0 => out.push_str("  lost nothing and made no gap\n"),
        None => {}
    }
    let lost = lost(journeys, handoff, until);
    if !lost.is_empty() {
        let _ = writeln!(out, "  lost {}:", count(lost.values().map(Vec::len).sum(), "packet"));
        for (fate, numbers) in lost {
            let _ = writeln!(out, "    {} {}", numbers.join(", "), fate);
        }
    }
    if handoff.duplicates > 0 {
        let _ = writeln!(
            out,
            "  {} arrived beyond the first",
            count(handoff.duplicates as usize, "copy").replace("copys", "copies")
        );
    }
    out
}

/// A line for each owner with its two events; they sum to the outage, and that is stated.
fn parts(outcome: &Outcome, outage: &Outage) -> String {
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
    let mut out = format!(
        "  no packet for {} ms, from {} s to {} s\n",
        exact_ms(outage.span()),
        outage.from,
        outage.to
    );
    table.render().lines().for_each(|line| {
        let _ = writeln!(out, "    {line}");
    });
    let equal = if sum == outage.span() { "the whole outage" } else { "NOT the outage: a bug in Wayfare" };
    let _ = writeln!(out, "    sum {} ms = {equal}", exact_ms(sum));
    if !outage.unexplained().is_zero() {
        let share = outage.unexplained().as_secs_f64() / outage.span().as_secs_f64() * 100.0;
        let _ = writeln!(out, "    unexplained {} ms, {share:.1} %", exact_ms(outage.unexplained()));
    }
    out
}

/// When the host's next handoff begins.
fn next_begun(outcome: &Outcome, index: usize) -> Instant {
    let host = outcome.handoffs.get(index).map(|handoff| handoff.host);
    let mut later = outcome.handoffs.iter().skip(index + 1).filter(|other| Some(other.host) == host);
    later.next().map_or(Instant::NEVER, |next| next.begun)
}

fn arrives(outcome: &Outcome, handoff: &Handoff, until: Instant) -> bool {
    let within = |at: Instant| at > handoff.cut && at < until;
    let mut records = outcome.records.iter();
    records.any(|r| r.host == handoff.host && within(r.at) && matches!(r.what, What::AppReceived(_)))
}

/// Packets of applications of which no copy arrived, by what became of them, for one handoff.
fn lost(journeys: &Journeys<'_>, handoff: &Handoff, until: Instant) -> BTreeMap<String, Vec<String>> {
    let mut lost: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (number, journey) in journeys.packets().filter(|(_, journey)| journey.sent.is_some()) {
        let mut ends: Vec<_> = journeys.roots(journey).flat_map(|root| journeys.ends(root)).collect();
        ends.extend(journey.strays.iter().cloned());
        let Some(last) = ends.iter().max_by_key(|end| end.record) else { continue };
        let saved = ends.iter().any(|end| matches!(end.fate, Fate::Delivered(_) | Fate::Held(_)));
        if !saved && last.at >= handoff.begun && last.at < until {
            lost.entry(last.fate.to_string()).or_default().push(number.to_string());
        }
    }
    lost
}

/// Milliseconds to the nanosecond, so that what is printed adds up.
fn exact_ms(span: Duration) -> String {
    format!("{}.{:06}", span.as_millis(), span.as_nanos() % 1_000_000)
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
