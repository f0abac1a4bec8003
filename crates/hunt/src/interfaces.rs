//! The judge of mobile nodes with two interfaces: does a mobile node use the interface that its cells permit?

use crate::draft::{Draft, Mobile, Second, mobile_name};
use crate::facts::Facts;
use wire::Instant;

/// The time in which a mobile node sends a registration request by the other interface, in milliseconds.
const PROMPT: u64 = 3000;
/// The same time if packets are lost at random: several advertisements in a row can be lost.
const PROMPT_WITH_LOSS: u64 = 15_000;
/// The time before a change in which nothing else may happen, so that agents are heard on both interfaces, in milliseconds. If
/// packets are lost at random, it is [`PROMPT_WITH_LOSS`].
const QUIET_BEFORE: u64 = 5000;

/// Returns the text of a violation of one of these rules, or `None`:
///
/// - When the second interface of a mobile node has lost its link, and the first one has one, the next registration request
///   leaves by the first one. Nothing is requested if the first one was in use.
/// - When the second interface is preferred, and has had a link for `interface_hysteresis`, a request leaves by it.
///
/// A rule is checked only if nothing else happens meanwhile: no move, no fault, and no other change of the second
/// interface's reach.
pub(crate) fn interface(draft: &Draft, facts: &Facts) -> Option<String> {
    let both = |(number, host): (usize, &Mobile)| {
        let second = host.second.as_ref()?;
        let name = mobile_name(number);
        let sent = facts.requests.get(&name).map_or(&[][..], Vec::as_slice);
        lost(draft, host, second, sent, facts.ended)
            .or_else(|| gained(draft, host, second, sent, facts.ended))
            .map(|what| format!("{name} {what}"))
    };
    draft.hosts.iter().enumerate().find_map(both)
}

/// The time of a registration request, and whether it left by the second interface.
type Sent = (Instant, bool);

fn lost(draft: &Draft, host: &Mobile, second: &Second, sent: &[Sent], ended: Instant) -> Option<String> {
    second.losses().find_map(|(from, to)| {
        let end = from + prompt(draft) + draft.retune_ms;
        let is_judged = to.is_none_or(|to| to > end)
            && Instant::from_millis(end) <= ended
            && is_quiet(draft, host, from, end);
        let (_, is_by_second) = sent.iter().rfind(|(when, _)| *when <= Instant::from_millis(end))?;
        (is_judged && *is_by_second).then(|| {
            format!(
                "stayed on its second interface, whose link was lost at {from} ms, until {end} ms or longer"
            )
        })
    })
}

fn gained(draft: &Draft, host: &Mobile, second: &Second, sent: &[Sent], ended: Instant) -> Option<String> {
    let interfaces = draft.options.interfaces.filter(|interfaces| interfaces.is_second_preferred)?;
    second.turns.iter().zip(1..).step_by(2).find_map(|(from, next)| {
        let end = from + interfaces.hysteresis_ms + prompt(draft) + draft.retune_ms;
        let next = second.turns.get(next);
        let is_judged = next.is_none_or(|to| *to > end) && Instant::from_millis(end) <= ended && is_quiet(draft, host, *from, end);
        let is_used = sent.iter().any(|(when, by_second)| *by_second && (Instant::from_millis(*from)..=Instant::from_millis(end)).contains(when));
        (is_judged && !is_used).then(|| {
            format!("did not register by its preferred second interface, whose link came up at {from} ms, until {end} ms")
        })
    })
}

fn prompt(draft: &Draft) -> u64 {
    let is_lossy = draft.worst_loss() > 0.0;
    (if is_lossy { PROMPT_WITH_LOSS } else { PROMPT }) + 2 * draft.worst_round_trip()
}

/// Returns whether no move and no fault begins or ends shortly before `from`, or until `to`.
fn is_quiet(draft: &Draft, host: &Mobile, from: u64, to: u64) -> bool {
    let before = if draft.worst_loss() > 0.0 { PROMPT_WITH_LOSS } else { QUIET_BEFORE };
    let is_within = |begin: u64, end: u64| begin <= to && end + before >= from;
    !is_within(0, 0)
        && !host.moves.iter().any(|step| is_within(step.at, step.at + draft.retune_ms))
        && !draft.faults.iter().any(|fault| is_within(fault.at, fault.ends()))
}

#[cfg(test)]
mod tests;
