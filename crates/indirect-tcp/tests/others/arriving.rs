//! Tests of connections that arrive from another router, or come back from it.

use crate::others::stage::{
    HOST, LEFT, RIGHT, Stage, THIRD, answer, both_others_offer, comes_from_the_right, entry, id,
    leaves_for_the_right, offer, state,
};
use indirect_tcp::message::{Body, ConnectionId, Direction, Entry, Side, SocketState, Verdict};

#[test]
fn a_connection_is_given_up_only_by_the_offer_that_it_is_expected_by() {
    let (mut stage, right) = comes_from_the_right();
    stage.says(right, 1, Body::Abort { connection: id(1) });
    assert_eq!(stage.marks(), ["connection_lost"], "it was to come");

    // The host was elsewhere meanwhile: the abort belongs to an earlier visit.
    let (mut stage, right) = comes_from_the_right();
    stage.points(THIRD, 20, vec![entry(1, RIGHT)]);
    stage.greets(30, &[THIRD, RIGHT], vec![entry(1, RIGHT)]);
    stage.marks();
    stage.says(right, 1, Body::Abort { connection: id(1) });
    assert!(stage.marks().is_empty());
    assert_eq!(stage.stage(1).unwrap(), "expected");

    // An abort of a connection that was already taken has no effect.
    let (mut stage, right) = comes_from_the_right();
    stage.ships(right, 1, entry(1, RIGHT), 1);
    assert_eq!(stage.commits(right, 1, 1, 1), [Verdict::Taken]);
    stage.marks();
    stage.says(right, 1, Body::Abort { connection: id(1) });
    assert!(stage.marks().is_empty());
    assert_eq!(stage.stage(1).unwrap(), "serving");
}

#[test]
fn a_commit_is_of_the_attempt_that_came() {
    let (mut stage, right) = comes_from_the_right();
    stage.ships(right, 1, entry(1, RIGHT), 4);
    assert_eq!(stage.commits(right, 1, 1, 3), [Verdict::Failed]);
    assert_eq!(stage.commits(right, 1, 1, 5), [Verdict::Failed]);
    assert_eq!(stage.stage(1).unwrap(), "arriving");
    assert_eq!(stage.commits(right, 1, 1, 4), [Verdict::Taken]);
    assert_eq!(stage.marks(), ["taken"]);
    // A repeated commit is answered as before. A commit of an earlier attempt gets the same answer.
    assert_eq!(stage.commits(right, 1, 1, 4), [Verdict::Taken]);
    assert_eq!(stage.commits(right, 1, 1, 3), [Verdict::Taken]);
    assert!(stage.marks().is_empty());

    // A commit from another earlier router fails, if the state of the connection came from the right router.
    let (mut stage, [right, third]) = both_others_offer();
    stage.ships(right, 1, entry(1, RIGHT), 4);
    stage.says(third, 1, Body::Entry(entry(1, RIGHT), 4));
    assert_eq!(stage.commits(third, 1, 1, 4), [Verdict::Failed]);
    assert_eq!(stage.commits(right, 1, 1, 4), [Verdict::Taken]);
}

/// A commit must name the connection whose entry came before it. Otherwise the router aborts the connection between the
/// routers.
#[test]
fn a_commit_of_another_connection_ends_the_connection_between_the_routers() {
    let (mut stage, right) = comes_from_the_right();
    stage.ships(right, 1, entry(1, RIGHT), 1);
    assert_eq!(stage.commits(right, 1, 2, 1), []);
    assert_eq!(stage.aborted, [right]);
    assert!(stage.marks().is_empty(), "nothing is taken");
}

/// The state of a connection must come on the stream between routers on which it began, and its halves must have the
/// end points that the host has named.
#[test]
fn what_comes_of_a_connection_has_its_ends_and_comes_by_one_way() {
    let (mut stage, right) = comes_from_the_right();
    stage.says(right, 1, Body::Entry(entry(1, RIGHT), 1));
    let of_another = entry(2, RIGHT);
    for side in [Side::Near, Side::Far] {
        stage.says(right, 1, Body::State(Box::new(SocketState::new(side, state(&of_another, side)))));
    }
    assert!(stage.halves.is_empty());
    assert_eq!(stage.commits(right, 1, 1, 1), [Verdict::Failed]);

    let (mut stage, [right, third]) = both_others_offer();
    stage.says(right, 1, Body::Entry(entry(1, RIGHT), 1));
    stage.ships(third, 1, entry(1, RIGHT), 1);
    stage.says(third, 1, Body::UserBuffer(Direction::Up, vec![9; 5]));
    assert!(stage.halves.is_empty());
    stage.ships(right, 1, entry(1, RIGHT), 1);
    assert_eq!(stage.halves.len(), 2);
    assert_eq!(stage.commits(right, 1, 1, 1), [Verdict::Taken]);
    assert_eq!(stage.ahead, [[Vec::<u8>::new(), Vec::new()]]);
}

/// A host that has restarted may reuse the number of a connection. The new connection is taken by its first attempt.
/// Messages about the former connection do not affect it.
#[test]
fn a_number_that_comes_again_is_another_connection() {
    let (mut stage, right) = comes_from_the_right();
    stage.ships(right, 1, entry(1, RIGHT), 1);
    assert_eq!(stage.commits(right, 1, 1, 1), [Verdict::Taken]);
    stage.greets(20, &[], Vec::new());
    let again = Entry { id: ConnectionId { call: 25, ..id(1) }, ..entry(1, RIGHT) };
    stage.greets(30, &[RIGHT], vec![again]);
    let right = stage.links(RIGHT);
    stage.says(right, 1, offer(30));
    stage.marks();
    stage.says(right, 1, Body::Entry(entry(1, RIGHT), 2));
    stage.says(right, 1, Body::Abort { connection: id(1) });
    assert_eq!(stage.stage(1).unwrap(), "expected");
    stage.ships(right, 1, again, 1);
    assert_eq!(stage.commits(right, 1, 1, 1), [Verdict::Taken]);
    assert_eq!(stage.marks(), ["taken"]);
    // The answer about the former connection is `Taken` as well: a router that asks must not continue it.
    stage.says(right, 0, Body::Status { host: HOST, connection: id(1), attempt: 1, sequence: 10 });
    assert_eq!(stage.said(right), [answer(1, 1, Verdict::Taken)]);

    let (mut stage, right) = leaves_for_the_right();
    let former = ConnectionId { call: 9, ..id(1) };
    let taken =
        |connection| Body::CommitAnswer { host: HOST, connection, attempt: 1, verdict: Verdict::Taken };
    stage.says(right, 0, taken(former));
    assert_eq!(stage.stage(1).unwrap(), "leaving");
    stage.says(right, 0, taken(id(1)));
    assert_eq!(stage.stage(1), None);
}

/// A connection that was taken here, left, and is expected again arrives only by a later attempt. A connection that
/// comes back before its own commit was answered also needs a later attempt.
#[test]
fn a_connection_that_comes_back_comes_by_a_later_attempt() {
    let (mut stage, right) = comes_from_the_right();
    stage.ships(right, 1, entry(1, RIGHT), 4);
    assert_eq!(stage.commits(right, 1, 1, 4), [Verdict::Taken]);
    stage.points(THIRD, 20, vec![entry(1, RIGHT)]);
    let third = stage.accepts(THIRD);
    stage.says(third, 1, Body::OfferAnswer(Verdict::Taken));
    let answered = |stage: &mut Stage| {
        stage.says(third, 1, answer(1, 5, Verdict::Taken));
        stage.greets(30, &[THIRD, RIGHT], vec![entry(1, RIGHT)]);
    };
    let offered = |stage: &mut Stage, router| {
        let link = stage.links(router);
        stage.says(link, 1, offer(30));
        link
    };
    answered(&mut stage);
    let link = offered(&mut stage, RIGHT);
    stage.says(link, 1, Body::Entry(entry(1, RIGHT), 4));
    assert_eq!(stage.stage(1).unwrap(), "expected", "it was taken by this attempt, and has left");
    let link = offered(&mut stage, THIRD);
    stage.says(link, 1, Body::Entry(entry(1, RIGHT), 6));
    assert_eq!(stage.stage(1).unwrap(), "arriving");

    let (mut stage, _) = leaves_for_the_right();
    stage.greets(30, &[RIGHT], vec![entry(1, LEFT)]);
    let link = offered(&mut stage, RIGHT);
    stage.says(link, 1, Body::Entry(entry(1, LEFT), 1));
    assert_eq!(stage.stage(1).unwrap(), "leaving", "its own attempt");
    stage.says(link, 1, Body::Entry(entry(1, LEFT), 2));
    assert_eq!(stage.stage(1).unwrap(), "arriving", "the right has taken it, and hands it back");
}
