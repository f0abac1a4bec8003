//! Tests of connections that leave for another router, and of that router's answers.

use crate::others::stage::{HOST, LEFT, RIGHT, Stage, THIRD, answer, entry, id, leaves_for_the_right};
use indirect_tcp::message::{Body, Datagram, Verdict};
use node::{Boot, Guard, Input, StreamEvent};

#[test]
fn only_the_router_that_a_connection_was_committed_to_says_whose_it_is_and_of_that_attempt() {
    let (mut stage, right) = leaves_for_the_right();
    stage.points(THIRD, 30, vec![entry(1, LEFT)]);
    let third = stage.accepts(THIRD);
    stage.says(third, 1, Body::OfferAnswer(Verdict::Taken));
    stage.marks();
    stage.says(third, 0, answer(1, 1, Verdict::Taken));
    stage.says(right, 0, answer(1, 0, Verdict::Taken));
    stage.says(right, 0, answer(1, 2, Verdict::Taken));
    assert!(stage.marks().is_empty());
    // The right router does not have the connection, so the third router gets it by another attempt. Later answers
    // about the first attempt are ignored.
    stage.says(right, 0, answer(1, 1, Verdict::Moved));
    assert_eq!(stage.marks(), ["shipped"]);
    stage.says(third, 0, answer(1, 1, Verdict::Taken));
    stage.says(right, 0, answer(1, 1, Verdict::Taken));
    assert!(stage.marks().is_empty());
    stage.says(third, 0, answer(1, 2, Verdict::Taken));
    assert_eq!(stage.marks(), ["forgotten", "handed_over"]);
}

/// A router ships the connections of a host one after the other, without waiting for the answers. Each is answered
/// separately, in any order.
#[test]
fn connections_leave_without_a_wait_for_the_answers_to_others() {
    let mut stage = Stage::new();
    stage.at(10);
    stage.greets(10, &[], Vec::new());
    for connection in 1..=3 {
        stage.calls(connection);
    }
    stage.points(RIGHT, 20, (1..=3).map(|connection| entry(connection, LEFT)).collect());
    let right = stage.accepts(RIGHT);
    stage.marks();
    stage.says(right, 1, Body::OfferAnswer(Verdict::Taken));
    assert_eq!(stage.marks(), ["frozen", "shipped", "frozen", "shipped", "frozen", "shipped"]);
    let said = stage.said(right);
    let commits = said.iter().filter_map(|body| match body {
        Body::Commit { number, .. } => Some(*number),
        _ => None,
    });
    assert_eq!(commits.collect::<Vec<_>>(), [1, 2, 3]);
    assert!(!said.contains(&Body::Done), "an answer is missing");
    for (connection, marks) in
        [(2, &["forgotten"][..]), (3, &["forgotten"]), (1, &["forgotten", "handed_over"])]
    {
        stage.says(right, 1, answer(connection, 1, Verdict::Taken));
        assert_eq!(stage.marks(), marks);
    }
    assert_eq!(stage.said(right), [Body::Done]);
}

/// If a host turns back, its call may come before its greeting. The new connection stays here, as the other router
/// would refuse it.
#[test]
fn a_connection_that_was_called_for_after_the_departure_stays() {
    let called_late = || {
        let mut stage = Stage::new();
        stage.at(10);
        stage.greets(10, &[], Vec::new());
        stage.calls(1);
        stage.points(RIGHT, 11, vec![entry(1, LEFT)]);
        (2..5).for_each(|_| _ = stage.connects(HOST));
        stage.calls(5);
        assert_eq!(stage.marks().last().unwrap(), "connected");
        stage
    };
    let mut stage = called_late();
    let right = stage.accepts(RIGHT);
    assert_eq!(stage.said(right), [Body::Offer { host: HOST, sequence: 11, connections: 1 }]);
    stage.says(right, 1, Body::OfferAnswer(Verdict::Taken));
    stage.says(right, 1, answer(1, 1, Verdict::Taken));
    assert_eq!(stage.marks(), ["offered", "frozen", "shipped", "forgotten", "handed_over"]);
    stage.greets(13, &[RIGHT], Vec::new());
    assert_eq!(stage.stage(5).unwrap(), "serving");

    // If the other router does not answer, only the connections that should move there are lost.
    let mut stage = called_late();
    stage.at(31_000);
    assert_eq!(stage.marks(), ["connection_lost"]);
    assert_eq!([1, 5].map(|number| stage.stage(number)), [None, Some("serving".to_owned())]);
}

/// The host turns back while all its connections are under way. A connection is resumed here if the other router
/// answers that it does not have it. A connection that the other router has taken comes back.
#[test]
fn of_connections_on_their_way_each_goes_on_where_its_answer_says() {
    let mut stage = Stage::new();
    stage.at(10);
    stage.greets(10, &[], Vec::new());
    stage.calls(1);
    stage.calls(2);
    let entries = || vec![entry(1, LEFT), entry(2, LEFT)];
    stage.points(RIGHT, 20, entries());
    let right = stage.accepts(RIGHT);
    stage.says(right, 1, Body::OfferAnswer(Verdict::Taken));
    stage.greets(30, &[RIGHT], entries());
    stage.marks();
    stage.says(right, 1, answer(2, 1, Verdict::Moved));
    assert_eq!(stage.marks(), ["resumed"]);
    stage.says(right, 1, answer(1, 1, Verdict::Taken));
    assert_eq!(stage.marks(), ["forgotten"]);
    assert_eq!([1, 2].map(|number| stage.stage(number).unwrap()), ["expected", "serving"]);
}

/// After 30 s without an answer, the router does not know which router has the connection. If the host is elsewhere the
/// connection ends without a reset. If the host is here, no other router will serve it: both ends get a reset, and the
/// host is notified.
#[test]
fn a_connection_whose_commit_is_not_answered_ends_by_where_its_host_is() {
    let (mut stage, _) = leaves_for_the_right();
    stage.guards.clear();
    stage.at(31_000);
    assert_eq!(stage.marks(), ["connection_lost"]);
    assert_eq!(stage.guards, [Some(Guard::Drop)]);
    assert!(!stage.sent.iter().any(|said| matches!(said, Datagram::Lost(_))));

    let (mut stage, _) = leaves_for_the_right();
    stage.greets(30, &[RIGHT], vec![entry(1, LEFT)]);
    stage.marks();
    stage.guards.clear();
    stage.at(29_000);
    assert!(!stage.marks().contains(&"connection_lost".to_owned()));
    assert_eq!(stage.stage(1).unwrap(), "leaving");
    stage.at(31_000);
    assert_eq!(stage.marks(), ["connection_lost"]);
    assert_eq!(stage.guards, [Some(Guard::Reset); 2]);
    assert!(matches!(&stage.sent.last(), Some(Datagram::Lost(lost)) if lost.message.connections == [id(1)]));
    assert_eq!(stage.stage(1), None);
}

/// The host's new router cannot be reached. Then connections that have ended cleanly are not lost, and the others are
/// reset. If the host has come back to this router, its connections are resumed.
#[test]
fn a_router_that_cannot_be_reached_costs_what_is_open_and_elsewhere() {
    let two = |goes_back: bool| {
        let mut stage = Stage::new();
        stage.at(10);
        stage.greets(10, &[], Vec::new());
        stage.calls(1);
        stage.calls(2);
        let of_first = stage.halves.iter().filter(|(_, (of, _))| of.id.number == 1);
        for id in of_first.map(|(id, _)| *id).collect::<Vec<_>>() {
            stage.tell(id, StreamEvent::Closed(None));
        }
        stage.points(RIGHT, 20, vec![entry(1, LEFT), entry(2, LEFT)]);
        if goes_back {
            stage.greets(30, &[RIGHT], vec![entry(1, LEFT), entry(2, LEFT)]);
        }
        stage.marks();
        stage.aborted.clear();
        stage.at(31_000);
        let halves = stage.aborted.iter().filter(|id| stage.halves.contains_key(id)).count();
        let lost = stage.marks().iter().filter(|mark| *mark == "connection_lost").count();
        (halves, lost, stage.stage(2))
    };
    assert_eq!(two(false), (2, 1, None));
    assert_eq!(two(true), (0, 0, Some("serving".to_owned())));
}

/// A router gets an offer, takes the connection, and restarts. Then it does not know that it took the connection. If the
/// old router asks for the status, the answer must not make the old router resume the connection: the old router's state
/// of the connection may be outdated.
#[test]
fn a_router_that_has_restarted_does_not_know_whose_a_connection_is() {
    let asks = |stage: &mut Stage, sequence| {
        let right = stage.links(RIGHT);
        stage.says(right, 0, Body::Status { host: HOST, connection: id(1), attempt: 1, sequence });
        stage.said(right)
    };
    let mut stage = Stage::new();
    stage.give(Input::Start(&Boot { wall: wire::WallTime(1_000), ..Boot::default() }));
    assert_eq!(asks(&mut stage, 999), [answer(1, 1, Verdict::Failed)]);
    assert_eq!(asks(&mut stage, 1_000), [answer(1, 1, Verdict::Unknown)]);

    // The router that asked resets both ends. If the host is here again, it is notified, and both ends get a reset when
    // they next send.
    let (mut stage, right) = leaves_for_the_right();
    stage.says(right, 0, answer(1, 1, Verdict::Failed));
    assert_eq!(stage.marks(), ["connection_lost", "handed_over"]);
    assert_eq!(stage.aborted.len(), 2);
    let (mut stage, right) = leaves_for_the_right();
    stage.greets(30, &[RIGHT], vec![entry(1, LEFT)]);
    stage.marks();
    stage.guards.clear();
    stage.says(right, 0, answer(1, 1, Verdict::Failed));
    assert_eq!(stage.marks(), ["connection_lost"]);
    assert_eq!(stage.guards, [Some(Guard::Reset); 2]);
    assert!(matches!(&stage.sent.last(), Some(Datagram::Lost(_))));
}

/// A router is reached by its address, and all routers may have the same key. So the router that answers must state its
/// address.
#[test]
fn the_router_that_was_called_answers() {
    let mut stage = Stage::new();
    stage.at(10);
    stage.greets(10, &[], Vec::new());
    stage.calls(1);
    stage.points(RIGHT, 20, vec![entry(1, LEFT)]);
    let id = stage.accepts(THIRD);
    assert_eq!(stage.aborted, [id]);
    assert!(stage.said(id).is_empty());
}
