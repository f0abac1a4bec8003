//! The text of `explain --handoff N`: the events around a handoff.

use super::{handoff, heading, lost, next_begun};
use crate::decode::{Control, Numbers};
use crate::journey::Journeys;
use crate::run::Outcome;
use draw::Table;
use node::{AppChange, AppEvent, Mark, Value};
use std::fmt::Write;
use trace::{Record, What};
use wire::Duration;

/// The time that a timeline includes before the begin of a handoff, and after the end of its outage and latency. A
/// timeline ends at the latest when the host's next handoff begins.
const MARGIN: Duration = Duration::from_millis(50);

/// Returns the events around a handoff, in the order of time. If the run has no handoff with this number, the error
/// names the valid numbers.
pub fn timeline(outcome: &Outcome, number: usize) -> Result<String, String> {
    let known = outcome.handoffs.len();
    let index = number.checked_sub(1).filter(|index| *index < known);
    let Some((index, one)) = index.and_then(|index| Some((index, outcome.handoffs.get(index)?))) else {
        return Err(match known {
            0 => "this run has no handoff".to_owned(),
            _ => format!("no handoff {number}; this run has handoffs 1 to {known}"),
        });
    };
    let journeys = Journeys::new(&outcome.plan, &outcome.records);
    let until = next_begun(outcome, index);
    let mut end = one.outage().map_or(one.cut, |outage| outage.to);
    end = end.max(one.cut + one.latency.unwrap_or_default());
    let end = (end + MARGIN).min(until);
    let from = one.begun - MARGIN;
    let numbers = outcome.plan.numbers();
    let mut table = Table::new(["at s", "ms since begin", "host", "event"]);
    for record in outcome.records.iter().filter(|record| record.at >= from && record.at <= end) {
        let Some(event) = event((outcome, &numbers), &journeys, record) else { continue };
        let since = (record.at.0.cast_signed() - one.begun.0.cast_signed()) as f64 / 1e6;
        table.push([
            record.at.to_string(),
            format!("{since:+.6}"),
            outcome.host(record.host).into_owned(),
            event,
        ]);
    }
    let mut out = heading(outcome, number, one);
    out.push_str(&handoff(outcome, &lost(outcome, &journeys), one));
    out.push('\n');
    out.push_str(&table.render());
    Ok(out)
}

/// Returns the timeline's text for a record, or `None` if a timeline leaves out such records, for example packets with
/// data.
fn event(
    (outcome, numbers): (&Outcome, &Numbers),
    journeys: &Journeys<'_>,
    record: &Record,
) -> Option<String> {
    let number = |id| journeys.number(id).map_or_else(|| "?".to_owned(), |number: u64| number.to_string());
    let control = |packet| Some(Control::of(packet, numbers)?.text(&outcome.names()));
    let iface = |iface| {
        let place = journeys.place(record.host, iface);
        place.rsplit(':').next().unwrap_or_default().to_owned()
    };
    Some(match &record.what {
        What::Sent(on, packet) => {
            let control = control(packet)?;
            format!("sends on {}: {control} (packet {})", iface(*on), number(packet.id))
        }
        What::Received(on, packet) => {
            let control = control(packet)?;
            format!("receives on {}: {control} (packet {})", iface(*on), number(packet.id))
        }
        What::Dropped(_, id, reason) if *reason == node::reason::CONSUMED.0 => {
            format!("a role consumes packet {}", number(*id))
        }
        What::Dropped(_, id, reason) if *reason == node::reason::REASSEMBLED.0 => {
            format!("joins a fragment to packet {}", number(*id))
        }
        What::Dropped(_, id, reason) => format!("drops packet {}: {reason}", number(*id)),
        What::Lost(on, id, reason) => {
            format!("packet {} is lost at {}: {reason}", number(*id), iface(*on))
        }
        What::AppReceived(id) => format!("application receives packet {}", number(*id)),
        What::Tuned(on, cell) => format!("requests that {} tunes to cell {}", iface(*on), cell.0),
        What::Visited(on, cell) => {
            format!("requests that {} sends one packet in cell {} and returns", iface(*on), cell.0)
        }
        What::Up(on, Some(cell)) => format!("{} is up in cell {}", iface(*on), cell.0),
        What::Up(on, None) => format!("{} is up", iface(*on)),
        What::Down(on, why) if **why == *node::Link::UNSUPPORTED => {
            format!("{} cannot tune to the requested cell, and stays tuned as before", iface(*on))
        }
        What::Down(on, why) => format!("{} is down: {why}", iface(*on)),
        // TCP's marks are recorded in every run for the figures. The timeline has them only if the scenario traces TCP.
        What::Marked(mark) if mark.role == node::mark::TCP && !is_traced(outcome, record) => return None,
        What::Marked(mark) => mark_text(journeys, mark),
        What::Answered(answer) => {
            format!("answers a command: {}", if answer.is_ok() { "done" } else { "error" })
        }
        What::App(event) => app_text(event)?,
        What::Ordered(event) => format!("event: {event}"),
        What::AppSent(_) | What::Held(..) => return None,
    })
}

fn app_text(event: &AppEvent) -> Option<String> {
    Some(match &event.change {
        AppChange::Read(count) => format!("application reads {count} bytes"),
        AppChange::Opened(local) => format!("application's connection is open, its local address is {local}"),
        AppChange::Accepted { peer, .. } => format!("application accepts the connection of {peer}"),
        AppChange::Finished => "application has read its stream to the end".to_owned(),
        AppChange::Closed(None) => "application's stream is closed".to_owned(),
        AppChange::Closed(Some(why)) => format!("application's stream is closed: {why}"),
        AppChange::Asked { .. } => return None,
    })
}

fn is_traced(outcome: &Outcome, record: &Record) -> bool {
    outcome.plan.hosts.get(record.host.index()).is_some_and(|host| host.config.tcp.traced)
}

fn mark_text(journeys: &Journeys<'_>, mark: &Mark) -> String {
    let mut text = format!("{}: {}", mark.role, mark.name);
    for (name, value) in &mark.fields {
        let value = match value {
            Value::Text(text) => journeys.neighbor(text).unwrap_or_else(|| text.clone()),
            other => trace::json_of(other).to_string(),
        };
        let _ = write!(text, " {name}={value}");
    }
    if let Some(span) = mark.span {
        let edge = match span {
            node::Span::Begins(stage) => format!(" [{stage} begins]"),
            node::Span::Ends(stage) => format!(" [{stage} ends]"),
        };
        text.push_str(&edge);
    }
    text
}
