//! Tests of the judge of two interfaces with facts that are made up.

use super::*;
use crate::draft::Protocol;
use crate::draw::{Size, draw};
use crate::options::Interfaces;

/// Returns a draft without losses, moves and faults. Its only mobile node has a preferred second interface with these turns.
fn draft(turns: &[u64]) -> Draft {
    let mut draft = draw(Protocol::MobileIp, 1, &Size::SIMULATOR);
    draft.links_mut().for_each(|link| (link.loss, link.delay_us) = (0, 1000));
    draft.faults.clear();
    draft.hosts.truncate(1);
    draft.options.interfaces =
        Some(Interfaces { is_second_preferred: true, hysteresis_ms: 2000, is_make_before_break: true });
    draft.hosts[0].moves.clear();
    draft.hosts[0].second = Some(Second { cell: 1, turns: turns.to_vec() });
    draft
}

/// Returns the verdict about requests at these times in milliseconds, each with whether it leaves by the second interface.
fn judged(draft: &Draft, requests: &[(u64, bool)]) -> Option<String> {
    let sent = requests.iter().map(|(ms, by_second)| (Instant::from_millis(*ms), *by_second)).collect();
    let facts = Facts {
        requests: [("m0".to_owned(), sent)].into(),
        ended: Instant::from_millis(100_000),
        ..Facts::default()
    };
    interface(draft, &facts)
}

#[test]
fn a_node_that_changes_in_time_is_no_violation() {
    assert_eq!(judged(&draft(&[20_000, 40_000]), &[(100, false), (22_001, true), (40_001, false)]), None);
}

#[test]
fn a_node_that_stays_on_a_lost_interface_is_found() {
    let found = judged(&draft(&[20_000, 40_000]), &[(100, false), (22_001, true), (50_000, false)]);
    assert!(found.is_some_and(|what| what.contains("lost at 40000 ms")));
}

#[test]
fn a_node_that_does_not_use_a_preferred_interface_is_found() {
    let found = judged(&draft(&[20_000]), &[(100, false), (50_000, true)]);
    assert!(found.is_some_and(|what| what.contains("came up at 20000 ms")));
    let mut other = draft(&[20_000]);
    other.options.interfaces.iter_mut().for_each(|found| found.is_second_preferred = false);
    assert_eq!(judged(&other, &[(100, false)]), None, "it is not preferred");
}

#[test]
fn what_happens_beside_another_change_is_not_judged() {
    let requests = [(100, false), (22_001, true)];
    assert!(judged(&draft(&[20_000, 40_000]), &requests).is_some());
    let again = [(100, false), (22_001, true), (44_001, true)];
    assert_eq!(judged(&draft(&[20_000, 40_000, 42_000]), &again), None, "the link comes back");
    let mut moved = draft(&[20_000, 40_000]);
    moved.hosts[0].moves.push(crate::draft::Move { at: 41_000, to: 0, soft: false, overlap: 0 });
    assert_eq!(judged(&moved, &requests), None, "the first radio moves");
}
