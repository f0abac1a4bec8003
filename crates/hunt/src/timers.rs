//! The waits that paths and timers explain: how long an application may wait for reasons outside the protocol under
//! test. Each number is a rule of a transport or of a registration, or follows from the draft or from the lost packets.

use crate::draft::{Draft, Kind, Mobile, Protocol, Work};
use crate::fault::What;
use crate::options::{Backup, CareOf};
use wire::{Duration, Instant};

/// The begin and the end of a time without a path, in milliseconds of the run.
type Gap = (f64, f64);

/// The longest time-out, in seconds: the least maximum that RFC 6298, rule 2.5, allows.
const LONGEST: f64 = 60.0;
/// The shortest time-out of Linux and the simulator, in seconds: a lost packet costs at least this.
const SHORTEST: f64 = 0.2;
/// The least time between two registrations, in milliseconds (RFC 5944, section 3.6.3).
const PAUSE: f64 = 1000.0;
/// The time in which SIGMA's signal monitor notices a new cell, in milliseconds: a sampling interval of 100 ms, and
/// `hold` of 250 ms.
pub const NOTICED: f64 = 350.0;
/// The time in which soft state that a crash removed is refreshed, in milliseconds: the period of route-updates (3 s).
/// The period of an agent's advertisements is shorter (1 s by default).
const REFRESH: f64 = 3000.0;
/// The longest wait of a DHCP client for an answer to its first message, in seconds: 4 s, or a quarter more (RFC 2131,
/// section 4.1). Each further wait is twice as long.
const LEASE: f64 = 5.0;
/// The number of requests after which a mobile node turns to its next home agent.
const REQUESTS: usize = 3;
/// The queue length of a station or a wire, in frames of 1500 bytes (the simulator's default).
const QUEUE: f64 = 64.0;

/// Returns the first time-out in seconds: 1 s (RFC 6298, section 2; RFC 5944, section 3.6.3), or two round trips with
/// full queues if that is longer.
pub fn first(draft: &Draft) -> f64 {
    (2.0 * (draft.worst_round_trip() as f64 + queueing(draft)) / 1e3).max(1.0)
}

/// Returns the longest delay of the queue at the slowest cell, in milliseconds. The queue is full, or it has one full
/// buffer of each workload if these are fewer bytes.
fn queueing(draft: &Draft) -> f64 {
    let slowest =
        draft.cells().iter().filter_map(|cell| draft.routers.get(*cell)).map(|router| router.rate).min();
    let works = draft.hosts.iter().map(|host| host.work.len()).sum::<usize>() as f64;
    let bytes = (QUEUE * 1500.0).min(works * f64::from(draft.buffer));
    bytes * 8.0 / f64::from(slowest.unwrap_or(1000))
}

/// The times at which the network lost packets of a workload, or packets of no workload such as registrations.
#[derive(Clone, Default, Debug)]
pub struct Lost {
    /// The times of losses at random.
    pub by_chance: Vec<Instant>,
    /// The times of losses in a full queue or by a collision.
    pub in_queues: Vec<Instant>,
}

/// Returns how many seconds of a wait of this workload are explained.
///
/// - If there is no path for the time `P`, each time-out is twice the time-out before. So the next attempt comes at
///   most `2 P` after the path ended.
/// - If an acknowledgment was lost when the path ended, TCP may take one round-trip sample of `2 P`: `stale_echo`.
/// - A delayed first round trip makes the first time-outs longer: `opening`. If the first time-out is longer than one
///   second, twice the excess is added.
/// - Each lost attempt doubles the time-out. A longer time-out stays until the next round-trip sample, so random losses
///   count from the begin of the connection. The number of random losses that count has a limit: longer rows of losses
///   have a probability below 1 in 100 000.
/// - Losses in full queues count only within the wait.
/// - Losses less than the shortest time-out (0.2 s) apart belong to one attempt.
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
        (2.0 * pathless).max(first).max(lost_lease(draft)),
    );
    // After these requests, the mobile node turns to a home agent that does not exist, and back.
    if by_chance + in_queues >= REQUESTS {
        total += detour(draft) / 1e3;
    }
    for _ in 0..by_chance + in_queues {
        total += timeout.min(LONGEST);
        timeout *= 2.0;
    }
    total
}

/// Returns the seconds that one round-trip sample of `sample` seconds (`R`) can cost a TCP connection; 0 for other
/// transports. The long sample arises in these steps:
///
/// 1. A segment arrives, and its acknowledgment is lost because the path ends.
/// 2. When the path is back, the sender retransmits the segment. The retransmitted copy is outside the receiver's
///    window, so the receiver does not record its timestamp (RFC 7323, section 5.3: step R2 comes before step R3).
/// 3. The receiver's answer echoes the timestamp of the first copy, and acknowledges new data. So the sender takes a
///    sample (RFC 7323, section 4.1): the time without a path plus the time-out after this time.
///
/// The answer acknowledges data that were never retransmitted. So the time-out counts as spurious, and the other lost
/// segments count as not lost (RFC 5682, section 3.1). The sender sends a probe for these segments after `2 R/8` (RFC
/// 8985, section 7.2). The time-out after the probe is longer by `R/8 + 4 R/4` (RFC 6298, rule 2.3).
///
/// Linux sends probes in the states Open and CWR only (`tcp_schedule_loss_probe`). After a spurious time-out, the state
/// is Open (`tcp_try_undo_loss`). Since Linux 5.11, the timer of the probe is set after the state has changed. In the
/// state Loss, there is no probe: segments that count as lost are sent again at once.
fn stale_echo(draft: &Draft, work: &Work, sample: f64) -> f64 {
    let is_tcp = draft.protocol != Protocol::Sigma && !matches!(work.kind, Kind::Datagrams { .. });
    let (probe, mean, deviations) = (2.0 / 8.0, 1.0 / 8.0, 4.0 * 0.25);
    if is_tcp { (probe + mean + deviations) * sample } else { 0.0 }
}

/// Returns the number of attempts to which the losses between two instants belong.
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

/// Events with a lower probability than this are not explained as random.
pub const LIKELY: f64 = 1e-5;

/// Returns the probability that a packet or its answer is lost at random on the worst path.
pub(crate) fn round_trip_loss(draft: &Draft) -> f64 {
    let passes = 1.0 - draft.worst_loss();
    1.0 - passes * passes
}

/// Returns the least number of attempts that are lost in a row with a probability of at most [`LIKELY`]; 0 without
/// random loss.
fn in_a_row(draft: &Draft) -> usize {
    let probability = round_trip_loss(draft);
    if probability > 0.0 { (LIKELY.ln() / probability.ln()).ceil() as usize } else { 0 }
}

/// Returns the seconds that a delayed first round trip explains: `5 R` if `R` is the first round trip, or 0 if nothing
/// delayed the first round trip. The next time-out is `R + 4 R/2` (RFC 6298, rule 2.2), and a probe comes after `2 R`
/// (RFC 8985, section 7.2). `R` includes failed attempts, because a timestamp echoes the first copy of a retransmitted
/// segment (see [`stale_echo`]).
///
/// The wait of the first attempt is 1 s, and each further wait is twice the wait before. If an attempt fails at the
/// time `T` after the start, the next attempt comes at most at `2 T` + 1 s.
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

/// Returns the times in which a workload has no path. Two consecutive times are merged if the sender may have made no
/// attempt between them.
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

/// Returns the times in which an end of a workload has no path, in the order of their begins. Each time lasts until the
/// host is registered again.
fn pathless(draft: &Draft, work: &Work) -> Vec<Gap> {
    let owner = draft.hosts.iter().find(|host| host.work.contains(work));
    let peer = work.peer.and_then(|peer| draft.hosts.get(peer));
    let round_trip = draft.worst_round_trip() as f64;
    let mut gaps: Vec<Gap> = Vec::new();
    for host in owner.into_iter().chain(peer) {
        gaps.extend(turned(draft, host));
        let mut before = None;
        if draft.options.backup == Backup::Needed {
            gaps.push((0.0, detour(draft) + 2.0 * round_trip));
        }
        for step in &host.moves {
            let at = step.at as f64;
            let back = at + (draft.retune_ms as f64) + (-step.overlap).max(0) as f64;
            // After the change of cell, the registration and the transfer between routers take a round trip each.
            let mut registered = back + 2.0 * round_trip;
            match draft.protocol {
                Protocol::Sigma if step.overlap <= NOTICED as i64 => registered += NOTICED,
                Protocol::MobileIp | Protocol::IndirectTcp
                    if before.is_some_and(|before| at <= before + PAUSE) =>
                {
                    registered += PAUSE + detour(draft);
                }
                _ => {}
            }
            registered += draft.longest_detection_ms() as f64;
            before = Some(registered);
            gaps.push((at, registered));
        }
    }
    let after = (REFRESH + 2.0 * round_trip) as u64;
    for fault in draft.faults.iter().filter(|fault| draft.concerns(fault, work, after)) {
        let (from, to) = (fault.at as f64, fault.ends() as f64 + 2.0 * round_trip);
        if fault.blocks() {
            gaps.push((from, to + detour(draft) + if fault.forgets() { REFRESH } else { 0.0 }));
        } else if matches!(fault.what, What::Clock(..) | What::Narrow(..)) {
            // After a step of a clock, one registration is refused. After a change of an MTU, one packet is too large.
            gaps.push((from, to));
        }
    }
    gaps.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    gaps
}

/// Returns the times in which a host with two radios registers by the other one: when the second radio is lost, and when it is
/// used because it is preferred. The registration is late by the pause between two of them, and by the detour to another
/// home agent.
fn turned(draft: &Draft, host: &Mobile) -> Vec<Gap> {
    let Some((second, interfaces)) = host.second.as_ref().zip(draft.options.interfaces) else {
        return Vec::new();
    };
    let late = 2.0 * draft.worst_round_trip() as f64 + PAUSE + detour(draft) + draft.retune_ms as f64;
    let turns = second.turns.iter().zip([0, interfaces.hysteresis_ms].into_iter().cycle().skip(1));
    turns.map(|(at, after)| ((at + after) as f64, (at + after) as f64 + late)).collect()
}

/// Returns the longest time-out in seconds after a time without a path, because a message of DHCP was lost. 0 if the
/// mobile nodes acquire no addresses.
fn lost_lease(draft: &Draft) -> f64 {
    if draft.options.care_of == CareOf::Acquired { 2.0 * LEASE } else { 0.0 }
}

/// Returns the time in milliseconds until a mobile node turns from a home agent that does not exist to its own. These
/// are the waits for the replies to three requests, each twice as long as the one before. 0 if all home agents exist.
fn detour(draft: &Draft) -> f64 {
    let waits = f64::from((1 << REQUESTS) - 1);
    if draft.options.backup == Backup::None { 0.0 } else { waits * first(draft) * 1e3 }
}

/// Returns whether a workload has no path for more than `longer` milliseconds at any time.
pub(crate) fn is_away(draft: &Draft, work: &Work, longer: f64) -> bool {
    chains(draft, work).iter().any(|gap| gap.1 - gap.0 > longer)
}

fn ms(at: Instant) -> f64 {
    at.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests;
