//! The report of a run, as text.

use crate::flow::{Delay, End};
use crate::handoff::{Experience, FlowCost, Handoff, Recovery, text_field};
use crate::ledger::Ledger;
use crate::run::Outcome;
use draw::Table;
use node::Stage;
use roles::RoleConfig;
use scenario::Plan;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use trace::{HostId, Record, What};
use wire::{Duration, Instant};

/// Returns the report of a run: handoffs, the causes of each outage, events, ledger, fingerprint, flows and failures.
/// If the records of a host are missing, the report has no tables.
pub fn text(outcome: &Outcome) -> String {
    let mut out = String::new();
    let (plan, backend) = (&outcome.plan, outcome.backend.name());
    let _ =
        writeln!(out, "{} on {backend}, {} s, seed {}", plan.name, plan.duration.as_secs_f64(), plan.seed);
    out.push('\n');
    if outcome.lacks_records() {
        out.push_str("no tables: the records of a host are missing\n");
        return out;
    }
    out.push_str(&handoff_table(outcome));
    out.push_str(&undone(outcome));
    out.push_str(&denied(outcome));
    for (number, handoff) in (1..).zip(&outcome.handoffs) {
        for cost in &handoff.flows {
            let title = format!("{}: {}", title(outcome, number, cost.flow), NO_DATA_BY_NEW_PATH);
            if let Some(lines) = outage(outcome, handoff.host, &title, &cost.experience) {
                out.push('\n');
                out.push_str(&lines);
            }
        }
    }
    for hole in &outcome.holes {
        let title = format!("hole at {}, flow {}: {NO_DATA}", outcome.host(hole.host), hole.flow + 1);
        if let Some(lines) = outage(outcome, hole.host, &title, &hole.experience) {
            out.push('\n');
            out.push_str(&lines);
        }
    }
    out.push_str(&event_table(outcome));
    out.push('\n');
    out.push_str(&books(&outcome.ledger));
    if let Some(fingerprint) = outcome.fingerprint {
        let _ = writeln!(out, "fingerprint {fingerprint}");
    }
    out.push('\n');
    out.push_str(&flow_table(outcome));
    for failure in &outcome.failures {
        let _ = writeln!(out, "failure: {failure}");
    }
    out
}

/// Returns a row for each event of the scenario, with the packets that were lost until the next event for reasons that
/// only events cause.
fn event_table(outcome: &Outcome) -> String {
    let ordered = |record: &Record| match &record.what {
        What::Ordered(event) => Some((record.at, event.to_string())),
        _ => None,
    };
    let events: Vec<(Instant, String)> = outcome.records.iter().filter_map(ordered).collect();
    if events.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["event", "at s", "what", "packets lost by events"]);
    for (index, (at, what)) in events.iter().enumerate() {
        let next = events.get(index + 1).map_or(Instant::NEVER, |(at, _)| *at);
        let is_its = |loss: &&crate::ledger::Loss| {
            *at <= loss.at && loss.at < next && scenario::is_of_event(&loss.reason)
        };
        let lost = outcome.ledger.losses.iter().filter(is_its).count();
        let at = format!("{:.3}", at.as_secs_f64());
        table.push([(index + 1).to_string(), at, what.clone(), lost.to_string()]);
    }
    let mut text = format!("\n{}", table.render());
    text.push_str(
        "packets lost by events: packets that were lost before the next event, because a host was down or a link was cut\n",
    );
    for host in idle_disks(&outcome.plan) {
        let _ = writeln!(text, "disk full at {host}: no effect, because no role of {host} stores records");
    }
    text
}

/// Returns the hosts whose disk an event fills although none of their roles stores anything.
fn idle_disks(plan: &Plan) -> BTreeSet<&str> {
    let stores = |host: &scenario::HostPlan| {
        let is_keeper = |role: &RoleConfig| {
            matches!(role, RoleConfig::MobileIpHomeAgent(_) | RoleConfig::SigmaLocationManager(_))
        };
        host.config.roles.iter().any(is_keeper)
    };
    let full = plan.events.iter().filter_map(|event| match event.order {
        sim::Order::Host(host, sim::HostEvent::DiskFull) => plan.hosts.get(host.index()),
        _ => None,
    });
    full.filter(|host| !stores(host)).map(|host| host.config.name.as_str()).collect()
}

/// Returns the title of a handoff: its number (from 1), and the number of the flow if the run has several flows. `flow`
/// counts from 0.
pub(crate) fn title(outcome: &Outcome, number: usize, flow: usize) -> String {
    match outcome.flows.len() {
        0 | 1 => format!("handoff {number}"),
        _ => format!("handoff {number}, flow {}", flow + 1),
    }
}

/// Returns the table with one row for each handoff and flow that existed at the cut, one for each handoff without such
/// a flow, and one for each hole. The columns `host` and `flow` are shown if the run has several flows.
fn handoff_table(outcome: &Outcome) -> String {
    let mut rows: Vec<(Instant, Vec<String>)> = Vec::new();
    for (number, handoff) in (1..).zip(&outcome.handoffs) {
        let costs: Vec<Option<&FlowCost>> = match handoff.flows.len() {
            0 => vec![None],
            _ => handoff.flows.iter().map(Some).collect(),
        };
        for cost in costs {
            rows.push((handoff.begun, handoff_row(outcome, number, handoff, cost)));
        }
    }
    for hole in &outcome.holes {
        let at = format!("{:.3}", hole.from.as_secs_f64());
        let [host, flow] = [outcome.host(hole.host).into_owned(), (hole.flow + 1).to_string()];
        let text = |text: &str| text.to_owned();
        rows.push((
            hole.from,
            vec![
                text(NOTHING),
                at,
                host,
                flow,
                text("hole"),
                text(NOTHING),
                text(NOTHING),
                hole.lost.to_string(),
                text(NOTHING),
                experience(&hole.experience),
                text(NOTHING),
                text(NOTHING),
            ],
        ));
    }
    rows.sort_by_key(|(at, _)| *at);
    let headers = [
        "handoff",
        "at s",
        "host",
        "flow",
        "kind",
        "from",
        "to",
        "lost",
        "duplicates",
        "outage ms",
        "recovered ms",
        "latency ms",
    ];
    let is_shown = |column: usize| outcome.flows.len() > 1 || !(column == 2 || column == 3);
    let shown = |(column, _): &(usize, &str)| is_shown(*column);
    let mut table =
        Table::new(headers.into_iter().enumerate().filter(|one| shown(one)).map(|(_, head)| head));
    for (_, row) in rows {
        table.push(row.into_iter().enumerate().filter(|(column, _)| is_shown(*column)).map(|(_, text)| text));
    }
    table.render()
}

/// Describes requested handoffs that were refused, aborted or failed: their number by host, target and reason.
fn undone(outcome: &Outcome) -> String {
    let mut counted: BTreeMap<(HostId, &str, &str, &str), (usize, Instant)> = BTreeMap::new();
    for record in &outcome.records {
        let What::Marked(mark) = &record.what else { continue };
        let name = match mark.name {
            node::HANDOFF_REFUSED => "refused",
            node::HANDOFF_ABORTED => "aborted",
            node::HANDOFF_FAILED => "failed",
            _ => continue,
        };
        let field = |name| text_field(mark, name).unwrap_or_default();
        let key = (record.host, name, field("to"), field("why"));
        counted.entry(key).or_insert((0, record.at)).0 += 1;
    }
    let mut out = String::new();
    for ((host, name, to, why), (count, first)) in counted {
        let (host, times) = (outcome.host(host), times(count, first));
        let _ = writeln!(out, "handoff of {host} to {to} {name} {times}: {why}");
    }
    out
}

/// Describes denied registrations of Mobile IP: their number by host and code.
fn denied(outcome: &Outcome) -> String {
    let mut counted: BTreeMap<(HostId, &str), (usize, Instant)> = BTreeMap::new();
    for record in &outcome.records {
        let What::Marked(mark) = &record.what else { continue };
        let is_denial = mark.role == mobile_ip::mark::MOBILE_NODE && mark.name == "denied";
        if let Some(code) = text_field(mark, "code").filter(|_| is_denial) {
            counted.entry((record.host, code)).or_insert((0, record.at)).0 += 1;
        }
    }
    let mut out = String::new();
    for ((host, code), (count, first)) in counted {
        let (host, times) = (outcome.host(host), times(count, first));
        let _ = writeln!(out, "registration of {host} denied {times}: code {code}");
    }
    out
}

/// Returns how often something happened, and when first.
fn times(count: usize, first: Instant) -> String {
    match (count, first.as_secs_f64()) {
        (1, first) => format!("at {first:.3} s"),
        (_, first) => format!("{count} times, first at {first:.3} s"),
    }
}

fn handoff_row(outcome: &Outcome, number: usize, handoff: &Handoff, cost: Option<&FlowCost>) -> Vec<String> {
    let count = |count: Option<u64>| count.map_or_else(|| NOTHING.to_owned(), |count| count.to_string());
    vec![
        number.to_string(),
        format!("{:.3}", handoff.begun.as_secs_f64()),
        outcome.host(handoff.host).into_owned(),
        cost.map_or_else(String::new, |cost| (cost.flow + 1).to_string()),
        handoff.kind.clone(),
        handoff.from.clone(),
        if handoff.failed { format!("{} (failed)", handoff.to) } else { handoff.to.clone() },
        count(cost.map(FlowCost::lost)),
        count(cost.map(|cost| cost.duplicates)),
        cost.map_or_else(|| "not measured".to_owned(), |cost| experience(&cost.experience)),
        cost.map_or_else(|| NOTHING.to_owned(), |cost| recovered(handoff, cost.recovery)),
        handoff.latency.map_or_else(|| NOTHING.to_owned(), millis),
    ]
}

/// The text of a cell without a value.
const NOTHING: &str = "-";

fn recovered(handoff: &Handoff, recovery: Recovery) -> String {
    match recovery {
        Recovery::Unneeded => "none".to_owned(),
        Recovery::At(at) => millis(at.since(handoff.cut.min(at))),
        Recovery::Never => "never".to_owned(),
        Recovery::NotMeasured => NOTHING.to_owned(),
    }
}

/// Returns the line of a run without a flow, with the reason.
fn no_flow(plan: &Plan) -> String {
    let is_application = |role: &RoleConfig| {
        use RoleConfig::{BulkClient, BulkServer, ConstantRate, RequestClient, RequestServer, Sink};
        matches!(
            role,
            ConstantRate(_) | Sink(_) | BulkServer(_) | BulkClient(_) | RequestServer(_) | RequestClient(_)
        )
    };
    let mut hosts = plan.hosts.iter();
    let why = if hosts.any(|host| !host.programs.is_empty() || host.config.roles.iter().any(is_application)) {
        "no application sent or received data"
    } else {
        "the scenario has no application that sends data; `wayfare decode CAPTURE` prints the messages of the protocols"
    };
    format!("no flow: {why}\n")
}

/// Returns the table with one row for each flow, or one line if the run has no flow.
pub(crate) fn flow_table(outcome: &Outcome) -> String {
    if outcome.flows.is_empty() {
        return no_flow(&outcome.plan);
    }
    let headers = [
        "flow",
        "from",
        "to",
        "transport",
        "bytes",
        "kb/s",
        "end",
        "app delay ms",
        "p99 ms",
        "stall ms",
        "lost",
        "resent",
    ];
    let mut table = Table::new(headers);
    for (number, flow) in (1..).zip(&outcome.flows) {
        let number: usize = number;
        let delay = |of: fn(&Delay) -> Duration| {
            flow.delay.as_ref().map_or_else(|| NOTHING.to_owned(), |delay| millis(of(delay)))
        };
        table.push([
            number.to_string(),
            end(outcome, &flow.from),
            end(outcome, &flow.to),
            flow.transport.name().to_owned(),
            flow.bytes.to_string(),
            format!("{:.1}", flow.goodput() / 1e3),
            flow.end.name().to_owned(),
            delay(|delay| delay.p50),
            delay(|delay| delay.p99),
            millis(flow.longest_stall),
            flow.lost.to_string(),
            flow.retransmissions.to_string(),
        ]);
    }
    let mut text = table.render();
    if outcome.packets.iter().any(|packets| packets.is_programs) {
        text.push_str(
            "bytes of programs: all bytes that arrived in order at the host's kernel; the program may not have read all of them\n",
        );
    }
    text
}

/// Returns the host's name and port, or the address and port if no host has the address.
pub(crate) fn end(outcome: &Outcome, end: &End) -> String {
    end.name(&outcome.plan)
}

/// Returns the text of an outage in a table: `none`, its duration in milliseconds, `never` or `not measured`.
pub fn experience(experience: &Experience) -> String {
    match experience {
        Experience::None => "none".to_owned(),
        Experience::Outage(outage) => millis(outage.span()),
        Experience::Never { .. } => "never".to_owned(),
        Experience::NotMeasured => "not measured".to_owned(),
    }
}

/// What a hole is, and the outage of a handoff: data by the earlier path do not end it.
pub(crate) const NO_DATA: &str = "no new data";
pub(crate) const NO_DATA_BY_NEW_PATH: &str = "no new data by the new path";

/// Returns a title line, and one line for each part of an outage of this host. If the link of another host is the
/// cause, the host is named. Returns `None` if there was no outage, or if it did not end.
fn outage(outcome: &Outcome, host: HostId, title: &str, experience: &Experience) -> Option<String> {
    let outage = experience.outage()?;
    let mut out =
        format!("{title} for {} ms from {:.6} s\n", millis(outage.span()), outage.from.as_secs_f64());
    for owner in &outage.owners {
        let _ = write!(out, "  {:>9} ms  {:12}", millis(owner.span()), owner.name());
        if owner.stage.is_some() {
            let _ = write!(out, "  {} .. {}", owner.begins, owner.ends);
            let is_link = owner.stage == Some(Stage::Link);
            if let Some((_, at)) = owner.hosts.filter(|(_, at)| is_link && *at != host) {
                let _ = write!(out, " at {}", outcome.host(at));
            }
        }
        out.push('\n');
    }
    Some(out)
}

/// Returns the ledger as text: the sums, the drops by reason, and the copies that each link made.
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
        let _ = writeln!(out, "  {count:>9} duplicated by {place}");
    }
    out
}

/// Returns a duration in milliseconds, with three decimals and without the unit.
pub fn millis(span: Duration) -> String {
    format!("{:.3}", span.as_secs_f64() * 1e3)
}
