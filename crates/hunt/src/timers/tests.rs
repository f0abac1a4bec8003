//! Tests of the time that is explained of a wait.

use super::*;
use crate::fault::{Fault, Spot};
use crate::judge::tests::{at, draft};

/// Returns how many seconds of a wait between two instants are explained, with losses in full queues at the times
/// `full`. All times are in seconds of the run.
fn explained_of(draft: &Draft, [from, to]: [u64; 2], full: &[u64]) -> f64 {
    let lost = Lost { in_queues: full.iter().copied().map(at).collect(), ..Lost::default() };
    explained(draft, &draft.hosts[0].work[0], (at(from), at(to)), &lost)
}

fn still() -> Draft {
    let mut draft = draft(Kind::Down(1000));
    draft.hosts[0].moves.clear();
    draft
}

#[test]
fn full_queues_count_within_the_wait() {
    assert!(explained_of(&still(), [10, 60], &[5]).abs() < 1e-9);
    assert!((explained_of(&still(), [10, 60], &[15]) - 1.0).abs() < 1e-9);
}

/// A time-out is at most 60 s (RFC 6298, rule 2.5).
#[test]
fn a_time_out_is_a_minute_at_the_most() {
    let full: Vec<u64> = (11..=19).collect();
    let sum = f64::from(1 + 2 + 4 + 8 + 16 + 32 + 60 + 60 + 60);
    assert!((explained_of(&still(), [10, 600], &full) - sum).abs() < 1e-9);
}

/// A time without a path explains nothing if it ended before the last attempt that was made before the wait.
#[test]
fn a_time_without_a_path_counts_if_it_is_in_the_wait() {
    let draft = draft(Kind::Down(1000));
    assert!(explained_of(&draft, [2, 60], &[]) > 0.05, "the move is at 2 s");
    assert!(explained_of(&draft, [4, 60], &[]).abs() < 1e-9);
}

/// A loss fault does not interrupt a path: the lost packets are counted separately.
#[test]
fn a_fault_that_only_loses_packets_is_no_time_without_a_path() {
    let mut draft = still();
    let mut with = |what| {
        draft.faults = vec![Fault { at: 5000, lasts: 2000, what }];
        explained_of(&draft, [4, 60], &[])
    };
    assert!(with(What::Loss(Spot::Core, 100)).abs() < 1e-9);
    assert!(with(What::Narrow(Spot::Core, 1200)) > 4.0);
}

/// SIGMA's signal monitor notices a new cell within 350 ms. If a host hears both cells for longer than this time, it
/// has no time without a path.
#[test]
fn a_cell_that_is_noticed_before_the_old_one_is_left_costs_nothing() {
    let mut draft = draft(Kind::Down(1000));
    draft.protocol = Protocol::Sigma;
    let mut with = |overlap| {
        draft.hosts[0].moves[0].overlap = overlap;
        explained_of(&draft, [1, 60], &[])
    };
    let (short, long) = (with(0), with(2000));
    assert!((short - long - 2.0 * 0.35).abs() < 1e-9, "{short}, {long}");
}

/// A home agent that does not exist costs three requests at the begin. A lost message of DHCP costs twice the wait for its
/// answer.
#[test]
fn a_missing_home_agent_and_a_lost_lease_cost_their_waits() {
    let mut draft = still();
    draft.options.backup = Backup::Needed;
    assert!(explained_of(&draft, [0, 60], &[]) > 14.0, "at the begin");
    draft.hosts[0].work[0].start = 20_000;
    assert!(explained_of(&draft, [30, 60], &[]).abs() < 1e-9, "and later not");
    draft.hosts[0].work[0].start = 500;
    draft.options = crate::options::Options { care_of: CareOf::Acquired, ..crate::options::Options::DEFAULT };
    assert!(explained_of(&draft, [10, 60], &[]).abs() < 1e-9, "nothing was lost");
    assert!((explained_of(&draft, [10, 60], &[15]) - 10.0).abs() < 1e-9);
}
