//! What the paths and the timers explain: how long an application may wait for reasons that lie outside the protocol under
//! search. Each number is a rule of a transport or of a registration, or follows from what was drawn or lost.

use crate::draft::{Draft, Kind, Protocol, Work};
use crate::fault::What;
use wire::{Duration, Instant};

/// A time in which there is no path, in milliseconds: from, and to.
type Gap = (f64, f64);

/// A time-out is at most this long (RFC 6298, section 2.5), in seconds.
const LONGEST: f64 = 60.0;
/// What a lost packet costs at least: Linux and the simulator let no time-out be shorter, in seconds.
const SHORTEST: f64 = 0.2;
/// Between two registrations there is a second (RFC 5944, section 3.6.3), in milliseconds.
const PAUSE: f64 = 1000.0;
/// A new cell is noticed within a sampling of 100 ms and a hold of 250 ms (SIGMA's monitor), in milliseconds.
pub const NOTICED: f64 = 350.0;
/// Soft state that a crash took is there again within the longest period of what refreshes it: an agent's advertisement (1 s,
/// RFC 5944, section 2.3.1) or a route-update (3 s), in milliseconds.
const REFRESH: f64 = 3000.0;
/// Frames that the queues of a station or of a wire take (the simulator's defaults), each of 1500 bytes.
const QUEUE: f64 = 64.0;

/// The first time-out, in seconds: 1 s (RFC 6298, section 2; RFC 5944, section 3.6.3), or two round trips with full queues.
pub fn first(draft: &Draft) -> f64 {
    (2.0 * (draft.worst_round_trip() as f64 + queueing(draft)) / 1e3).max(1.0)
}

/// How long a full queue of the slowest cell takes, in milliseconds: its frames, or all that its hosts may have under way.
fn queueing(draft: &Draft) -> f64 {
    let slowest =
        draft.cells().iter().filter_map(|cell| draft.routers.get(*cell)).map(|router| router.rate).min();
    let works = draft.hosts.iter().map(|host| host.work.len()).sum::<usize>() as f64;
    let bytes = (QUEUE * 1500.0).min(works * f64::from(draft.buffer));
    bytes * 8.0 / f64::from(slowest.unwrap_or(1000))
}

/// When the network lost packets of a workload, and of those that belong to none, such as registrations.
#[derive(Clone, Default, Debug)]
pub struct Lost {
    /// At random.
    pub by_chance: Vec<Instant>,
    /// In a full queue.
    pub in_queues: Vec<Instant>,
}

/// Seconds that are explained of a wait of this workload between two instants.
///
/// - Without a path for `P`, a time-out doubles: the next attempt may come as late as `2 P` after its begin.
/// - The acknowledgment that was lost when the path ended may give TCP one round-trip sample of `2 P`: [`stale_echo`].
/// - Each attempt that is lost doubles the time-out. Of random losses as many count as happened since the connection began, as a
///   time-out that has grown stays until it is measured anew; at most as many as are likely in a row once in 100 000 attempts.
///   Of full queues those within the wait count.
/// - What is lost within the shortest time-out of each other was sent by one attempt.
pub fn explained(draft: &Draft, work: &Work, wait: (Instant, Instant), lost: &Lost) -> f64 {
    let first = first(draft);
    let from = ms(wait.0) - first * 1e3;
    let within = |gap: &&Gap| gap.1 >= from && gap.0 <= ms(wait.1);
    let chains = chains(draft, work);
    let pathless = chains.iter().filter(within).map(|gap| gap.1 - gap.0).fold(0.0, f64::max) / 1e3;
    let begun = Instant::ZERO + Duration::from_millis(work.start);
    let by_chance = attempts(&lost.by_chance, begun, wait.1).min(in_a_row(draft));
    let in_queues = attempts(&lost.in_queues, wait.0, wait.1);
    let opening = opening(draft, work, &chains, lost);
    let (mut total, mut timeout) = (
        2.0 * pathless + stale_echo(draft, work, 2.0 * pathless) + opening + 2.0 * first - 2.0,
        (2.0 * pathless).max(first),
    );
    for _ in 0..by_chance + in_queues {
        total += timeout.min(LONGEST);
        timeout *= 2.0;
    }
    total
}

/// What one round-trip sample of `R` seconds costs a TCP connection.
///
/// A segment arrives, and its acknowledgment is lost as the path ends. The segment that is sent again when there is a path is outside of
/// the receiver's window, so its timestamp is not noted (RFC 7323, section 5.3: R2 comes before R3), and its answer echoes the timestamp
/// of the first one. It acknowledges new data, so the sender takes a sample (section 4.1), as long as the time without a path and the
/// time-out after it. Never-retransmitted data are acknowledged too, so the time-out counts as spurious, and the other segments that were
/// lost as not lost (RFC 5682, section 3.1). For these a probe comes after `2 R/8` (RFC 8985, section 7.2), and behind it a time-out that is
/// longer by `R/8 + 4 R/4` (RFC 6298, section 2.3). Linux sends probes in the states Open and CWR only (`tcp_schedule_loss_probe`). A
/// time-out that is found to be spurious leaves the state Open (`tcp_try_undo_loss`), and since 5.11 the timer is set after that. In the
/// state Loss no probe comes, and nothing waits for one: what counts as lost is sent again at once.
fn stale_echo(draft: &Draft, work: &Work, sample: f64) -> f64 {
    let is_tcp = draft.protocol != Protocol::Sigma && !matches!(work.kind, Kind::Datagrams { .. });
    let (probe, mean, deviations) = (2.0 / 8.0, 1.0 / 8.0, 4.0 * 0.25);
    if is_tcp { (probe + mean + deviations) * sample } else { 0.0 }
}

/// How many attempts these losses belong to.
fn attempts(lost: &[Instant], from: Instant, to: Instant) -> usize {
    let mut last: Option<Instant> = None;
    let mut attempts = 0;
    for at in lost.iter().filter(|at| **at >= from && **at <= to) {
        if last.is_none_or(|last| at.since(last).as_secs_f64() >= SHORTEST) {
            last = Some(*at);
            attempts += 1;
        }
    }
    attempts
}

/// What happens less often than this is not explained by chance.
pub const LIKELY: f64 = 1e-5;

/// The chance that a packet, or its answer, is lost at random on the worst path.
pub fn round_trip_loss(draft: &Draft) -> f64 {
    let passes = 1.0 - draft.worst_loss();
    1.0 - passes * passes
}

/// As many attempts are lost in a row once in 100 000.
fn in_a_row(draft: &Draft) -> usize {
    let chance = round_trip_loss(draft);
    if chance > 0.0 { (LIKELY.ln() / chance.ln()).ceil() as usize } else { 0 }
}

/// A connection whose first round trip took `R` has a time-out of `R + 4 R/2` (RFC 6298, section 2.2), and probes after `2 R`
/// (RFC 8985, section 7.2). `R` is longer than a round trip if something stood in its way: timestamps echo the first copy of what is
/// sent again (see [`stale_echo`]). Each attempt comes after twice as long as the last, from 1 s on: the one after an instant at which
/// attempts fail comes no later than 1 s after twice the time until then.
fn opening(draft: &Draft, work: &Work, chains: &[Gap], lost: &Lost) -> f64 {
    let round_trip = draft.worst_round_trip() as f64 + queueing(draft);
    let start = work.start as f64;
    let losses = lost.by_chance.iter().chain(&lost.in_queues).map(|at| (ms(*at), ms(*at)));
    let mut failing: Vec<Gap> = chains.iter().copied().chain(losses).collect();
    failing.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    let (mut until, mut is_delayed) = (start + 2.0 * round_trip, false);
    for (begin, end) in failing.into_iter().filter(|(_, end)| *end >= start) {
        if begin <= until {
            is_delayed = true;
            until = until.max(2.0 * end - start + 1000.0 + round_trip);
        }
    }
    if is_delayed { 5.0 * (until - start) / 1e3 } else { 0.0 }
}

/// The times without a path of a workload. Those are one that follow each other before an attempt after the first can have
/// succeeded.
fn chains(draft: &Draft, work: &Work) -> Vec<Gap> {
    let mut chains: Vec<Gap> = Vec::new();
    for gap in pathless(draft, work) {
        match chains.last_mut() {
            Some(last) if gap.0 <= last.1 + (last.1 - last.0) + first(draft) * 1e3 => {
                last.1 = last.1.max(gap.1);
            }
            _ => chains.push(gap),
        }
    }
    chains
}

/// Each time without a path of either end of a workload, until its host is registered again, in the order of time.
fn pathless(draft: &Draft, work: &Work) -> Vec<Gap> {
    let owner = draft.hosts.iter().find(|host| host.work.contains(work));
    let peer = work.peer.and_then(|peer| draft.hosts.get(peer));
    let round_trip = draft.worst_round_trip() as f64;
    let mut gaps: Vec<Gap> = Vec::new();
    for host in owner.into_iter().chain(peer) {
        let mut before = None;
        for step in &host.moves {
            let at = step.at as f64;
            let back = at + (draft.retune_ms as f64) + (-step.overlap).max(0) as f64;
            // A change of cell, a registration, and what is handed over between routers.
            let mut registered = back + 2.0 * round_trip;
            match draft.protocol {
                Protocol::Sigma if step.overlap <= NOTICED as i64 => registered += NOTICED,
                Protocol::MobileIp | Protocol::IndirectTcp
                    if before.is_some_and(|before| at <= before + PAUSE) =>
                {
                    registered += PAUSE;
                }
                _ => {}
            }
            before = Some(registered);
            gaps.push((at, registered));
        }
    }
    let after = (REFRESH + 2.0 * round_trip) as u64;
    for fault in draft.faults.iter().filter(|fault| draft.concerns(fault, work, after)) {
        let (from, to) = (fault.at as f64, fault.ends() as f64 + 2.0 * round_trip);
        if fault.blocks() {
            gaps.push((from, to + if fault.forgets() { REFRESH } else { 0.0 }));
        } else if matches!(fault.what, What::Clock(..) | What::Narrow(..)) {
            // A registration is refused once; a packet is too large once.
            gaps.push((from, to));
        }
    }
    gaps.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    gaps
}

/// Whether a workload has no path for longer than this, in milliseconds.
pub fn is_away(draft: &Draft, work: &Work, longer: f64) -> bool {
    chains(draft, work).iter().any(|gap| gap.1 - gap.0 > longer)
}

fn ms(at: Instant) -> f64 {
    at.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests;
