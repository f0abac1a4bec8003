//! Where an outage went, what became of a packet, what happened around a handoff: a run as an answer to a question.

mod packet;
mod timeline;

pub use packet::packet;
pub use timeline::timeline;

use crate::handoff::{Handoff, Outage};
use crate::journey::{Fate, Journeys};
use crate::run::Outcome;
use crate::segment;
use draw::Table;
use std::collections::BTreeMap;
use std::fmt::Write;
use trace::{HostId, What};
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
    let lost = lost(outcome, &Journeys::new(plan, &outcome.records));
    for (index, one) in outcome.handoffs.iter().enumerate() {
        out.push('\n');
        out.push_str(&heading(outcome, index + 1, one));
        out.push_str(&handoff(outcome, &lost, index, one));
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

fn handoff(outcome: &Outcome, all_lost: &[Lost], index: usize, handoff: &Handoff) -> String {
    let until = next_begun(outcome, index);
    let mut out = String::new();
    match handoff.outage() {
        Some(outage) => out.push_str(&parts(outcome, outage)),
        None if handoff.is_never() => {
            out.push_str("  no end: packets were lost, and the application was handed nothing any more\n");
        }
        None if !arrives(outcome, handoff, until) => {
            out.push_str(
                "  nothing to measure by: no packet reached an application before the next handoff\n",
            );
        }
        None if handoff.lost() == 0 => out.push_str("  lost nothing and made no gap\n"),
        None => {}
    }
    let within = |at: Instant| at >= handoff.begun && at < until;
    let mut by_fate: BTreeMap<&Fate, Vec<String>> = BTreeMap::new();
    for lost in all_lost.iter().filter(|lost| lost.to == Some(handoff.host) && within(lost.at)) {
        by_fate.entry(&lost.fate).or_default().push(lost.number.to_string());
    }
    if handoff.lost() > 0 {
        let _ = writeln!(out, "  lost {}:", count(handoff.lost() as usize, "packet"));
    }
    for (fate, numbers) in by_fate {
        let _ = writeln!(out, "    {} {fate}", numbers.join(", "));
    }
    if handoff.duplicates() > 0 {
        let _ = writeln!(out, "  {} arrived twice", count(handoff.duplicates() as usize, "packet"));
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
    records.any(|r| {
        r.host == handoff.host && within(r.at) && matches!(r.what, What::AppReceived(_) | What::AppRead(_))
    })
}

/// A packet of an application of which no copy arrived, or a segment that was dropped.
struct Lost {
    number: u64,
    at: Instant,
    /// The host that it was for.
    to: Option<HostId>,
    fate: Fate,
}

fn lost(outcome: &Outcome, journeys: &Journeys<'_>) -> Vec<Lost> {
    let owners = outcome.plan.owners();
    let mut lost = Vec::new();
    for (number, journey) in journeys.packets() {
        let first = journey.hops.first().and_then(|hop| journeys.seen(journeys.hops().get(*hop)?));
        let dst = first.and_then(|seen| wire::ipv4::addresses(&seen.packet.bytes)).map(|(_, dst)| dst);
        let to = dst.and_then(|dst| owners.get(&dst).copied());
        let ends = journeys.all_ends(journey);
        if journey.sent.is_some() {
            let saved = ends.iter().any(|end| matches!(end.fate, Fate::Delivered(_) | Fate::Held(_)));
            let last = ends.last().filter(|_| !saved);
            lost.extend(last.map(|last| Lost { number, at: last.at, to, fate: last.fate.clone() }));
        } else if first.is_some_and(|seen| segment::carries_data(seen.packet)) {
            // A copy that was sent again does not make up for the one that was dropped: it came later.
            let dropped = ends.iter().filter(|end| matches!(end.fate, Fate::Dropped(..) | Fate::Lost(..)));
            lost.extend(dropped.map(|end| Lost { number, at: end.at, to, fate: end.fate.clone() }));
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
