//! The cost of each handoff: lost and duplicated packets, and an outage of which every part has a cause.
//!
//! An outage begins at the event that cut the path. It ends when the application receives the next new data, or when a
//! connection without data opens. Each stage of a handoff begins and ends at two events. Time outside all stages is
//! *unexplained*.

mod analysis;
mod cost;
mod cut;
mod experience;
mod fault;
mod hole;
mod latency;
mod links;
mod losses;
mod moves;
mod one;
mod own_route;
mod recovery;
mod route;
mod signalling;
mod stages;
mod waits;

use crate::flow::Traffic;
pub(crate) use analysis::text as text_field;
use analysis::{HandoffAnalysis, begin, is_switch};
pub use experience::{Experience, FlowCost, Handoff, Outage, Owner, Recovery};
pub use hole::Hole;
use scenario::Plan;
use trace::{Record, What};
use wire::Instant;

/// Returns all handoffs of a run in the order of time, with the cost for each flow of `traffic`.
pub(crate) fn handoffs(plan: &Plan, records: &[Record], traffic: &Traffic) -> Vec<Handoff> {
    let analysis = HandoffAnalysis::new(plan, records, traffic);
    let mut handoffs: Vec<Handoff> = Vec::new();
    // The handoffs are computed from the last to the first, because an outage may last beyond the next handoff of its
    // host.
    for one in moves::moves(plan, records).iter().rev() {
        let later = handoffs.iter_mut().rfind(|other| other.host == one.record.host);
        // If the radio loses its cell several times, and its link does not come up in between, this is one handoff.
        if let Some(same) = later.filter(|later| analysis.is_same_loss(one, later)) {
            one.from.clone_into(&mut same.from);
            continue;
        }
        let handoff = analysis.handoff(one, &handoffs);
        handoffs.extend(handoff);
    }
    handoffs.reverse();
    // A handoff begins before its decision if the path was cut before.
    handoffs.sort_by_key(|handoff| handoff.begun);
    analysis.charge_once(&mut handoffs);
    handoffs
}

/// Returns all outages of a run that belong to no handoff, in the order of time. Packets that were lost in such an outage
/// are not charged to a handoff any more.
pub(crate) fn holes(
    plan: &Plan,
    records: &[Record],
    traffic: &Traffic,
    handoffs: &mut [Handoff],
) -> Vec<Hole> {
    HandoffAnalysis::new(plan, records, traffic).holes(handoffs)
}

/// Returns the begin of each handoff that has no record of its cut, although the radio came up in a cell afterwards.
pub(crate) fn uncut(records: &[Record]) -> Vec<Instant> {
    let mut uncut = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let edge = |r: &&Record| is_radios(r) || matches!(r.what, What::Tuned(..) | What::Up(_, Some(_)));
        let mut later = records.iter().skip(index + 1).filter(|later| later.host == record.host);
        if is_radios(record) && later.find(edge).is_some_and(|next| matches!(next.what, What::Up(..))) {
            uncut.push(record.at);
        }
    }
    uncut
}

/// Returns whether a handoff of the radio begins. A handoff that only switches the path needs no record of a cut.
fn is_radios(record: &Record) -> bool {
    begin(record).is_some_and(|mark| !is_switch(mark))
}

#[cfg(test)]
mod agent_tests;
#[cfg(test)]
mod causes_tests;
#[cfg(test)]
mod due_tests;
#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod hole_tests;
#[cfg(test)]
mod losses_tests;
#[cfg(test)]
mod next_tests;
#[cfg(test)]
mod overlap_tests;
#[cfg(test)]
mod own_route_tests;
#[cfg(test)]
mod parts_tests;
#[cfg(test)]
mod stop_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tunnel_tests;
