//! Tests of offers: which routers may make them, how many, and how long the connections are waited for.

use crate::others::stage::{RIGHT, Stage, THIRD, comes_from_the_right, entry, offer};
use indirect_tcp::message::{Body, Entry, Verdict};
use node::Guard;
use wire::Ipv4Addr;

/// Of two offers for one host on the same stream the later one counts.
#[test]
fn a_later_offer_ends_those_before_of_the_same_host() {
    let (mut stage, right) = comes_from_the_right();
    stage.says(right, 2, offer(10));
    assert!(stage.aborted.is_empty());
    stage.says(right, 2, Body::Entry(entry(1, RIGHT), 1));
    assert_eq!(stage.stage(1).unwrap(), "arriving");
    stage.says(right, 1, Body::Entry(entry(1, RIGHT), 1));
    assert_eq!(
        stage.aborted,
        [right],
        "no router of ours continues after a second offer of the same attempt"
    );
}

/// Offers for hosts that are not configured are answered and not kept, whatever their number. So they use no memory,
/// and the offer for a configured host is accepted on the same connection.
#[test]
fn offers_for_hosts_that_are_not_configured_are_not_kept() {
    let mut stage = Stage::new();
    stage.at(10);
    stage.greets(10, &[RIGHT], vec![entry(1, RIGHT)]);
    let right = stage.links(RIGHT);
    for number in 1..=2_000_u16 {
        let [high, low] = number.to_be_bytes();
        let host = Ipv4Addr::new(10, 9, high, low);
        stage.says(right, u64::from(number), Body::Offer { host, sequence: 1, connections: 1 });
    }
    assert_eq!(stage.said(right), vec![Body::OfferAnswer(Verdict::Unknown); 2_000]);
    stage.says(right, 2_001, offer(10));
    assert_eq!(stage.said(right), [Body::OfferAnswer(Verdict::Taken)]);
    assert!(stage.aborted.is_empty());
    stage.says(right, 7, Body::Entry(entry(1, RIGHT), 1));
    assert_eq!(stage.aborted, [right], "the seventh offer is not known");
}

/// A host visits the router 20 times, each time with 16 other connections. The router drops segments on both halves of
/// each connection for two minutes, but on at most 256 tuples at a time: the latest ones. After that time no guard is
/// left.
#[test]
fn one_host_makes_its_router_silent_on_so_many_tuples_at_a_time() {
    let mut stage = Stage::new();
    for visit in 0..20 {
        let entries: Vec<Entry> = (0..16).map(|number| entry(16 * visit + number, RIGHT)).collect();
        let sequence = 1_000 + 10 * u64::from(visit);
        stage.greets(sequence, &[RIGHT], entries.clone());
        stage.points(THIRD, sequence + 5, entries.clone());
        let silent = stage.guarded.values().filter(|guard| **guard == Guard::Drop).count();
        assert_eq!(silent, 256.min(32 * (visit as usize + 1)), "visit {visit}");
        let latest = entries.iter().flat_map(|entry| [entry.near(), entry.far()]);
        assert!(latest.into_iter().all(|tuple| stage.guarded.contains_key(&tuple)));
    }
    assert_eq!(stage.guarded.len(), 256);
    stage.at(120_000);
    assert!(stage.guarded.is_empty());
}

/// A router that the host's greeting does not name cannot hand over the host's connections.
#[test]
fn connections_come_from_routers_that_the_host_has_named() {
    let mut stage = Stage::new();
    stage.at(10);
    stage.greets(10, &[RIGHT], vec![entry(1, RIGHT)]);
    let third = stage.links(THIRD);
    stage.says(third, 1, offer(10));
    assert!(stage.said(third).is_empty());
    assert_eq!(stage.aborted, [third]);
    let right = stage.links(RIGHT);
    stage.says(right, 1, offer(10));
    assert_eq!(stage.said(right), [Body::OfferAnswer(Verdict::Taken)]);
}

/// After an earlier router has answered that it has a connection, the connection is expected for three times
/// `patience`. A repeated answer does not extend this time.
#[test]
fn what_an_earlier_router_has_is_waited_for_three_times_as_long_and_once() {
    let mut stage = Stage::new();
    stage.at(10);
    stage.greets(10, &[RIGHT], vec![entry(1, RIGHT)]);
    stage.at(5_000);
    stage.replies(RIGHT, 10, 1);
    stage.marks();
    stage.at(25_000);
    stage.replies(RIGHT, 10, 1);
    stage.at(34_999);
    assert!(stage.marks().is_empty());
    stage.at(35_000);
    assert_eq!(stage.marks(), ["connection_lost"]);
}
