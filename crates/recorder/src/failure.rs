//! Failures of a run: flows that should have ended and did not, applications that never sent, and data that never
//! arrived or were wrong.

use crate::expected::{SETUP, Wrong, asks_for, is_cut_short, sends_from, stop_of};
use crate::flow::{End, Flow, FlowEnd, Packets, Traffic, Transport};
use crate::handoff::{Experience, Handoff, Hole};
use roles::RoleConfig;
use scenario::{Application, Plan};
use trace::{HostId, Record, What};

/// Returns the failures of a run, each with the name of the flow or application.
pub(crate) fn failures(plan: &Plan, traffic: &Traffic, handoffs: &[Handoff], holes: &[Hole]) -> Vec<String> {
    let mut failures = Vec::new();
    for (index, (flow, packets)) in traffic.flows.iter().zip(&traffic.packets).enumerate() {
        let name = || format!("flow {} ({})", index + 1, name(plan, flow));
        failures.extend(failure(plan, flow, packets).map(|what| format!("{}: {what}", name())));
    }
    failures.extend(silent(plan, &traffic.flows));
    for (number, handoff) in (1..).zip(handoffs) {
        for cost in &handoff.flows {
            if let (Experience::Never { from }, Some(flow)) = (&cost.experience, traffic.flows.get(cost.flow))
            {
                let name = name(plan, flow);
                let denied = handoff.denied.as_ref();
                let why = denied.map_or(String::new(), |code| format!(": registration denied, code {code}"));
                failures.push(format!(
                    "handoff {number}, flow {} ({name}): no new data after the cut at {from} s{why}",
                    cost.flow + 1
                ));
            }
        }
    }
    for hole in holes {
        if let (Experience::Never { from }, Some(flow)) = (&hole.experience, traffic.flows.get(hole.flow)) {
            let name = name(plan, flow);
            failures.push(format!(
                "hole, flow {} ({name}): no new data after {from} s until the flow or the run ended",
                hole.flow + 1
            ));
        }
    }
    failures
}

/// Returns one failure for each mark with which an application reports a wrong byte or a wrong answer.
pub(crate) fn wrong(plan: &Plan, flows: &[Flow], records: &[Record]) -> Vec<String> {
    let mut found = Vec::new();
    for Record { host, what, .. } in records {
        let What::Marked(mark) = what else { continue };
        let Some(wrong) = Wrong::of(mark) else { continue };
        let is_of = |flow: &&Flow| flow.to.host == *host && Some(flow.from.at) == wrong.peer;
        let flow = (1..)
            .zip(flows)
            .filter(|(_, flow)| is_of(flow))
            .find(|(_, flow)| flow.transport != Transport::Udp);
        found.push(match flow {
            Some((number, flow)) => format!("flow {number} ({}): {wrong}", name(plan, flow)),
            None => format!("{} of {}: {wrong}", wrong.reader, plan.host_name(*host)),
        });
    }
    found
}

/// Returns the ends and the transport of a flow as text.
fn name(plan: &Plan, flow: &Flow) -> String {
    let end = |end: &End| end.name(plan);
    format!("{} > {}, {}", end(&flow.from), end(&flow.to), flow.transport.name())
}

fn failure(plan: &Plan, flow: &Flow, packets: &Packets) -> Option<String> {
    let why = packets.why.as_ref().map_or(String::new(), |why| format!(": {why}"));
    let sent = packets.sendings.len();
    match flow.end {
        // A program may end its connection by a reset when it has all its data. The program's exit status shows whether
        // the program failed.
        FlowEnd::Reset | FlowEnd::Refused if packets.is_programs => None,
        FlowEnd::Reset => Some(format!("reset after {} bytes{why}", flow.bytes)),
        FlowEnd::Refused => Some(format!("refused{why}")),
        FlowEnd::Unfinished if is_bounded(plan, flow) => {
            Some(format!("unfinished: {} bytes when the run ended", flow.bytes))
        }
        _ if flow.transport == Transport::Udp && flow.arrivals.is_empty() && !packets.lost.is_empty() => {
            Some(format!("none of {sent} datagrams arrived"))
        }
        FlowEnd::Unfinished if flow.bytes == 0 && (flow.life() > SETUP || !packets.lost.is_empty()) => {
            Some(format!("no byte arrived in {} s", flow.life().as_secs_f64()))
        }
        _ => None,
    }
}

/// Returns the applications that should have begun a flow and did not, each with the reason.
fn silent(plan: &Plan, flows: &[Flow]) -> Vec<String> {
    let mut silent = Vec::new();
    for (id, host) in (0..).map(HostId).zip(&plan.hosts) {
        for role in &host.config.roles {
            let Some(name) = Application::of_config(role).map(Application::name) else { continue };
            let (to, start) = match role {
                RoleConfig::ConstantRate(config) => (config.to, config.start),
                RoleConfig::BulkClient(config) => (config.to, config.start),
                RoleConfig::RequestClient(config) => (config.to, config.start),
                _ => continue,
            };
            let is_there = flows.iter().any(|flow| {
                [(flow.from, flow.to), (flow.to, flow.from)]
                    .iter()
                    .any(|(here, there)| here.host == id && there.at.port() == to.port())
            });
            let end = plan.duration;
            let why = if start >= end {
                format!(
                    "the application never ran, because it starts at {start:?}, and the run ends at {end:?}"
                )
            } else if start + SETUP < end {
                "no data ever left the host".to_owned()
            } else {
                continue;
            };
            if !is_there {
                silent.push(format!("{name} of {} to {to}: {why}", host.config.name));
            }
        }
    }
    silent
}

/// Returns whether the flow must end before the run. It must if its sender has a fixed size, or a fixed duration that
/// ends before the run, or if its requester has a fixed number of exchanges. A flow of datagrams must end before the
/// run only if its host goes down for the rest of the run before the source is to stop.
fn is_bounded(plan: &Plan, flow: &Flow) -> bool {
    let asks = [(flow.from, flow.to), (flow.to, flow.from)];
    let stop = Some(flow).filter(|flow| flow.transport == Transport::Udp);
    let stop = stop.and_then(|flow| stop_of(plan, flow.from.host, flow.to.at));
    stop.is_some_and(|stop| is_cut_short(plan, flow.from.host, stop))
        || sends_from(plan, flow.from.host, flow.from.at.port(), flow.begun)
        || asks.into_iter().any(|(here, there)| asks_for(plan, here.host, there.at.port()))
}
