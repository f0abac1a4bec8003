//! A run as text, for people.

use crate::handoff::{Experience, Handoff};
use crate::ledger::Ledger;
use crate::run::Outcome;
use draw::Table;
use std::fmt::Write;
use wire::Duration;

/// What a run cost: the handoffs, each outage by owner, and the ledger.
pub fn text(outcome: &Outcome) -> String {
    let mut out = String::new();
    let (plan, world) = (&outcome.plan, outcome.world.name());
    let _ = writeln!(out, "{} on {world}, {} s, seed {}", plan.name, plan.duration.as_secs_f64(), plan.seed);
    out.push('\n');
    out.push_str(&handoff_table(&outcome.handoffs));
    for (number, handoff) in (1..).zip(&outcome.handoffs) {
        if let Some(lines) = outage(number, handoff) {
            out.push('\n');
            out.push_str(&lines);
        }
    }
    out.push('\n');
    out.push_str(&books(&outcome.ledger));
    if let Some(fingerprint) = outcome.fingerprint {
        let _ = writeln!(out, "fingerprint {fingerprint:016x}");
    }
    out
}

fn handoff_table(handoffs: &[Handoff]) -> String {
    let headers = ["handoff", "at s", "kind", "from", "to", "lost", "duplicates", "outage ms", "latency ms"];
    let mut table = Table::new(headers);
    for (number, handoff) in (1..).zip(handoffs) {
        let outage = handoff.worst().map_or("not measured".to_owned(), |cost| experience(&cost.experience));
        table.push([
            number.to_string(),
            format!("{:.3}", handoff.begun.as_secs_f64()),
            handoff.kind.clone(),
            handoff.from.clone(),
            handoff.to.clone(),
            handoff.lost().to_string(),
            handoff.duplicates().to_string(),
            outage,
            handoff.latency.map_or_else(String::new, millis),
        ]);
    }
    table.render()
}

/// As it is printed: `none`, milliseconds, `never` or `not measured`.
pub fn experience(experience: &Experience) -> String {
    match experience {
        Experience::None => "none".to_owned(),
        Experience::Outage(outage) => millis(outage.span()),
        Experience::Never { .. } => "never".to_owned(),
        Experience::NotMeasured => "not measured".to_owned(),
    }
}

/// One line for each owner of an outage; they sum to it.
pub fn outage(number: usize, handoff: &Handoff) -> Option<String> {
    let outage = handoff.outage()?;
    let mut out = format!(
        "handoff {number}: no packet for {} ms from {:.6} s\n",
        millis(outage.span()),
        outage.from.as_secs_f64()
    );
    for owner in &outage.owners {
        let _ = write!(out, "  {:>9} ms  {:12}", millis(owner.span()), owner.name());
        if owner.stage.is_some() {
            let _ = write!(out, "  {} .. {}", owner.begins, owner.ends);
        }
        out.push('\n');
    }
    Some(out)
}

/// The closed books.
pub fn books(ledger: &Ledger) -> String {
    let mut out = format!(
        "ledger: {} sent + {} copied = {} delivered + {} dropped + {} held\n",
        ledger.sent,
        ledger.copied,
        ledger.delivered,
        ledger.dropped_total(),
        ledger.held
    );
    for (reason, count) in &ledger.dropped {
        let _ = writeln!(out, "  {count:>9} dropped: {reason}");
    }
    for (place, count) in &ledger.doubled {
        let _ = writeln!(out, "  {count:>9} doubled by {place}");
    }
    out
}

/// Milliseconds, to the microsecond.
pub fn millis(span: Duration) -> String {
    format!("{:.3}", span.as_secs_f64() * 1e3)
}
