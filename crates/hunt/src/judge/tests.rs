//! Each judge, with facts that keep its rule and facts that break it.

use super::*;
use crate::draft::{Link, Mobile, Move, Protocol, Router, Work};
use crate::facts::Ends;
use wire::Duration;

const PORT: u16 = 9000;

fn draft(kind: Kind) -> Draft {
    let link = Link { delay_us: 1000, loss: 0, mtu: 1500 };
    let router = Router { parent: 0, wire: link, air: link, rate: 2000 };
    let step = Move { at: 2000, to: 1, soft: false, overlap: 0 };
    let work = Work { port: PORT, peer: None, start: 500, kind };
    Draft {
        protocol: Protocol::MobileIp,
        seed: 1,
        core: link,
        routers: vec![router; 2],
        retune_ms: 5,
        buffer: 16384,
        hosts: vec![Mobile { start: 0, moves: vec![step], work: vec![work] }],
        faults: Vec::new(),
        watched_ms: 20_000,
    }
}

/// While the server reads more of a question, its client waits for no answer yet.
#[test]
fn a_question_that_is_carried_is_no_stall() {
    let mut end = End::new(at(1));
    for second in [3, 5, 6] {
        end.moves(at(second));
    }
    end.touch(at(9));
    assert_eq!((end.gap, end.last), ((at(6), at(9)), at(9)));
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn end(read: u64) -> End {
    End {
        begun: at(1),
        opened: true,
        read,
        finished: Some(at(3)),
        closed: None,
        last: at(3),
        moved: at(3),
        gap: (at(2), at(3)),
    }
}

/// A download of 1000 bytes that went well.
fn good() -> (Draft, Facts) {
    let mut facts = Facts { ended: at(10), ..Facts::default() };
    facts.streams.insert(PORT, Ends { client: Some(end(1000)), server: Some(end(0)) });
    (draft(Kind::Down(1000)), facts)
}

fn found(draft: &Draft, facts: &Facts) -> Vec<Judge> {
    judge(draft, facts).into_iter().map(|violation| violation.judge).collect()
}

/// What is found when one fact is changed.
fn changed(change: impl FnOnce(&mut Facts)) -> Vec<Judge> {
    let (draft, mut facts) = good();
    change(&mut facts);
    found(&draft, &facts)
}

fn client(facts: &mut Facts) -> &mut End {
    facts.streams.get_mut(&PORT).unwrap().client.as_mut().unwrap()
}

#[test]
fn what_went_well_violates_nothing() {
    let (draft, facts) = good();
    assert_eq!(judge(&draft, &facts), []);
}

#[test]
fn each_finding_of_the_watch_has_its_judge() {
    let text = || vec!["found".to_owned()];
    assert_eq!(changed(|facts| facts.misled = text()), [Judge::Misled]);
    assert_eq!(changed(|facts| facts.loops = text()), [Judge::Loop]);
    assert_eq!(changed(|facts| facts.owners = text()), [Judge::Owners]);
    assert_eq!(changed(|facts| facts.unconfirmed = text()), [Judge::Unconfirmed]);
    assert_eq!(changed(|facts| facts.wrong = text()), [Judge::Stream]);
    assert_eq!(changed(|facts| facts.doubts = text()), [Judge::Laws]);
}

#[test]
fn a_stream_has_each_byte_once() {
    assert_eq!(changed(|facts| client(facts).read = 999), [Judge::Stream]);
    assert_eq!(changed(|facts| client(facts).read = 1001), [Judge::Stream]);
    assert_eq!(changed(|facts| facts.streams.clear()), [Judge::Stream]);
}

#[test]
fn a_connection_does_not_fail_without_a_cause() {
    assert_eq!(
        changed(|facts| client(facts).closed = Some((at(3), Some("reset".to_owned())))),
        [Judge::Stream]
    );
}

/// Only the connections of hosts that it had connections of.
#[test]
fn a_router_that_crashes_excuses_those_that_it_served() {
    let (mut draft, mut facts) = good();
    draft.protocol = Protocol::IndirectTcp;
    client(&mut facts).closed = Some((at(3), Some("reset".to_owned())));
    facts.crashed_for.insert("m1".to_owned());
    assert_eq!(found(&draft, &facts), [Judge::Stream]);
    facts.crashed_for.insert("m0".to_owned());
    assert_eq!(found(&draft, &facts), []);
}

#[test]
fn an_end_without_news_is_silent_after_its_bound() {
    let hang = |seconds: u64| {
        changed(|facts| {
            client(facts).finished = None;
            facts.ended = at(3 + seconds);
        })
    };
    assert_eq!(hang(29), []);
    assert_eq!(hang(32), [Judge::Stream]);
}

#[test]
fn an_application_waits_no_longer_than_is_explained() {
    assert_eq!(changed(|facts| client(facts).gap = (at(2), at(4))), []);
    assert_eq!(changed(|facts| client(facts).gap = (at(2), at(6))), [Judge::Stall]);
}

/// Seconds that are explained of all of a run.
fn of_all(draft: &Draft, lost: &Lost) -> f64 {
    timers::explained(draft, &draft.hosts[0].work[0], (Instant::ZERO, Instant::NEVER), lost)
}

#[test]
fn loss_explains_time_outs_and_nothing_else_does() {
    let (mut draft, _) = good();
    // 5 ms of tuning and two round trips, twice.
    let without = of_all(&draft, &Lost::default());
    assert!((0.03..0.2).contains(&without), "{without}");
    // Lost within 200 ms of each other: one time-out of 1 s.
    let seconds = |all: &[u64]| all.iter().map(|ms| Instant::from_millis(*ms)).collect();
    let full = Lost { in_queues: seconds(&[5000, 5100, 6000]), ..Lost::default() };
    assert!((of_all(&draft, &full) - without - 3.0).abs() < 1e-9, "{}", of_all(&draft, &full));
    // 1 % on a wire that is crossed three times each way: at most 5 time-outs in a row.
    draft.core.loss = 100;
    let many = Lost { by_chance: (5..60).map(at).collect(), ..Lost::default() };
    assert!((of_all(&draft, &many) - without - 31.0).abs() < 1e-9, "{}", of_all(&draft, &many));
}

#[test]
fn what_delays_the_first_round_trip_makes_the_first_time_out_longer() {
    let (mut draft, _) = good();
    let without = of_all(&draft, &Lost::default());
    draft.hosts[0].moves[0].at = 500;
    assert!(of_all(&draft, &Lost::default()) > without + 5.0);
}

#[test]
fn a_move_before_the_first_attempt_is_over_lengthens_the_time_without_a_path() {
    let (mut draft, _) = good();
    let step = draft.hosts[0].moves[0];
    let with = |draft: &mut Draft, at| {
        draft.hosts[0].moves = vec![step, Move { at, to: 0, ..step }];
        of_all(draft, &Lost::default())
    };
    assert!(with(&mut draft, 2900) > 1.8);
    assert!(with(&mut draft, 4000) < 0.2);
}

#[test]
fn datagrams_arrive_again() {
    let draft = draft(Kind::Datagrams { up: false, rate: 20, size: 100 });
    let stop = draft.stop() / 1000 + 3;
    let arrived = |last: Option<u64>, gap: u64| {
        let arrivals = |last| Arrivals { last: at(last), gap: (at(3), at(3 + gap)) };
        let datagrams = last.map(|last| (PORT, arrivals(last))).into_iter().collect();
        found(&draft, &Facts { ended: at(stop), datagrams, ..Facts::default() })
    };
    assert_eq!(arrived(Some(stop - 4), 9), []);
    assert_eq!(arrived(Some(stop - 14), 9), [Judge::Served]);
    assert_eq!(arrived(Some(stop - 4), 12), [Judge::Served], "in between");
    assert_eq!(arrived(None, 0), [Judge::Served]);
}

#[test]
fn little_is_held() {
    assert_eq!(changed(|facts| facts.held = 300), []);
    assert_eq!(changed(|facts| facts.held = 301), [Judge::Bounded]);
    assert_eq!(changed(|facts| facts.most_open = 5001), [Judge::Bounded]);
}
