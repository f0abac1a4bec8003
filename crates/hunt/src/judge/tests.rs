//! Tests of each judge, with facts that keep its rule and facts that violate it.

use super::*;
use crate::draft::{Detection, Link, Mobile, Move, Protocol, Router, Work};
use crate::facts::Ends;
use crate::fault::{Fault, Node, Spot, What};
use crate::options::{Clock, Offers, Options, Visited};
use wire::Duration;

const PORT: u16 = 9000;

/// Returns a draft with one host, which moves once, from the first of two routers to the second.
pub(crate) fn draft(kind: Kind) -> Draft {
    let link = Link { delay_us: 1000, loss: 0, mtu: 1500 };
    let router = Router {
        parent: 0,
        wire: link,
        air: link,
        rate: 2000,
        visited: Visited::Plain,
        offers: Offers::ALL,
        clock: Clock::default(),
    };
    let step = Move { at: 2000, to: 1, soft: false, overlap: 0 };
    let work = Work { port: PORT, peer: None, start: 500, kind };
    Draft {
        protocol: Protocol::MobileIp,
        seed: 1,
        core: link,
        routers: vec![router; 2],
        retune_ms: 5,
        buffer: 16384,
        hosts: vec![Mobile {
            start: 0,
            moves: vec![step],
            work: vec![work],
            home: 0,
            clock: Clock::default(),
            second: None,
        }],
        faults: Vec::new(),
        detection: Detection::DEFAULT,
        options: Options::DEFAULT,
        watched_ms: 20_000,
    }
}

/// While the server reads more of a request, the client does not wait for its answer yet.
#[test]
fn a_question_that_is_carried_is_no_stall() {
    let mut end = End::new(at(1));
    for second in [3, 5, 6] {
        end.moves(at(second));
    }
    end.touch(at(9));
    assert_eq!((end.gap, end.last), ((at(6), at(9)), at(9)));
}

pub(crate) fn at(seconds: u64) -> Instant {
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

/// Returns a download of 1000 bytes without a violation.
fn good() -> (Draft, Facts) {
    let mut facts = Facts { ended: at(10), ..Facts::default() };
    facts.streams.insert(PORT, Ends { client: Some(end(1000)), server: Some(end(0)) });
    (draft(Kind::Down(1000)), facts)
}

fn found(draft: &Draft, facts: &Facts) -> Vec<Judge> {
    judge(draft, facts).into_iter().map(|violation| violation.judge).collect()
}

/// Returns the violations when one fact is changed.
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
    assert_eq!(changed(|facts| facts.unbound = text()), [Judge::Unbound]);
    assert_eq!(changed(|facts| facts.stale = text()), [Judge::Stale]);
    assert_eq!(changed(|facts| facts.replayed = text()), [Judge::Replayed]);
    assert_eq!(changed(|facts| facts.kinds = text()), [Judge::Kinds]);
    assert_eq!(changed(|facts| facts.unsigned = text()), [Judge::Unsigned]);
    assert_eq!(changed(|facts| facts.bypassed = text()), [Judge::Bypassed]);
    assert_eq!(changed(|facts| facts.unchallenged = text()), [Judge::Unchallenged]);
    assert_eq!(changed(|facts| facts.wrong = text()), [Judge::Stream]);
    assert_eq!(changed(|facts| facts.doubts = text()), [Judge::Laws]);
}

#[test]
fn a_stream_has_each_byte_once() {
    assert_eq!(changed(|facts| client(facts).read = 999), [Judge::Stream]);
    assert_eq!(changed(|facts| client(facts).read = 1001), [Judge::Stream]);
    let goes_on = |facts: &mut Facts| (client(facts).finished, client(facts).read) = (None, 1001);
    assert_eq!(changed(goes_on), [Judge::Stream], "too many are too many before the end");
    assert_eq!(changed(|facts| facts.streams.clear()), [Judge::Stream]);
}

#[test]
fn a_connection_does_not_fail_without_a_cause() {
    assert_eq!(
        changed(|facts| client(facts).closed = Some((at(3), Some("reset".to_owned())))),
        [Judge::Stream]
    );
    let at_server = |facts: &mut Facts| {
        let server = facts.streams.get_mut(&PORT).unwrap().server.as_mut().unwrap();
        server.closed = Some((at(3), Some("reset".to_owned())));
    };
    assert_eq!(changed(at_server), [Judge::Stream]);
}

/// A crash of a router excuses failed connections only for the hosts whose connections the router had.
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

/// A peer that has nothing to send is not notified of a crash of a router. Its silence is no violation.
#[test]
fn a_server_is_not_silent_if_its_connection_was_lost_in_a_crash() {
    let (mut draft, mut facts) = good();
    draft.protocol = Protocol::IndirectTcp;
    facts.streams.get_mut(&PORT).unwrap().server.as_mut().unwrap().finished = None;
    facts.ended = at(60);
    assert_eq!(found(&draft, &facts), [Judge::Stream]);
    facts.crashed_for.insert("m0".to_owned());
    assert_eq!(found(&draft, &facts), []);
}

/// Returns a connection that failed before it was open.
fn unopened() -> (Draft, Facts) {
    let (draft, mut facts) = good();
    let failed = client(&mut facts);
    (failed.opened, failed.closed) = (false, Some((at(3), Some("unreachable".to_owned()))));
    (draft, facts)
}

#[test]
fn random_loss_excuses_a_connection_before_it_is_open() {
    let (mut draft, mut facts) = unopened();
    let with = |draft: &mut Draft, facts: &Facts, loss| {
        draft.core.loss = loss;
        found(draft, facts)
    };
    assert_eq!(with(&mut draft, &facts, 10), [Judge::Stream]);
    assert_eq!(with(&mut draft, &facts, 1000), []);
    client(&mut facts).opened = true;
    assert_eq!(with(&mut draft, &facts, 1000), [Judge::Stream]);
}

/// A SIGMA host that moves gives up the address to which its peer opens a connection. A host of another protocol keeps
/// its address.
#[test]
fn a_peer_of_sigma_that_moves_excuses_a_connection_before_it_is_open() {
    let (mut draft, facts) = unopened();
    draft.hosts[0].work[0].peer = Some(1);
    let step = draft.hosts[0].moves[0];
    let idle = Mobile { moves: Vec::new(), work: Vec::new(), ..draft.hosts[0].clone() };
    draft.hosts.push(idle);
    let moves = |draft: &mut Draft, protocol, at| {
        (draft.protocol, draft.hosts[1].moves) = (protocol, vec![Move { at, ..step }]);
        found(draft, &facts)
    };
    assert_eq!(moves(&mut draft, Protocol::Sigma, 1000), []);
    // The connection begins to open at 0.5 s. A lost INIT is sent again 1 s later.
    assert_eq!(moves(&mut draft, Protocol::Sigma, 1600), [Judge::Stream]);
    assert_eq!(moves(&mut draft, Protocol::MobileIp, 1000), [Judge::Stream]);
}

/// Returns a fault that begins at 5 s and lasts 2 s.
fn fault(what: What) -> Fault {
    Fault { at: 5000, lasts: 2000, what }
}

/// A crash that is not on a path of a host excuses nothing for that host.
#[test]
fn only_a_fault_on_its_path_excuses_a_host() {
    // There are three routers. The host begins at the first router and moves to the second at 2 s. No host is at the
    // third.
    let (mut draft, mut facts) = good();
    draft.routers.push(draft.routers[0]);
    draft.hosts[0].work[0].start = 5500;
    let failed = client(&mut facts);
    (failed.opened, failed.closed) = (false, Some((at(3), Some("unreachable".to_owned()))));
    let [elsewhere, here] =
        [2, 1].map(|router| [What::Crash(Node::Router(router)), What::Cut(Spot::Air(router))]);
    for protocol in [Protocol::Sigma, Protocol::MobileIp] {
        draft.protocol = protocol;
        for what in elsewhere {
            draft.faults = vec![fault(what)];
            assert_eq!(found(&draft, &facts), [Judge::Stream], "{protocol}: {what:?}");
        }
        for what in here {
            draft.faults = vec![fault(what)];
            assert_eq!(found(&draft, &facts), [], "{protocol}: {what:?}");
        }
    }
    // With Mobile IP, the first router is the home agent and is always needed. SIGMA has no home agent, so the crash of
    // the first router is no excuse.
    draft.faults = vec![fault(What::Crash(Node::Router(0)))];
    assert_eq!(found(&draft, &facts), []);
    draft.protocol = Protocol::Sigma;
    assert_eq!(found(&draft, &facts), [Judge::Stream]);
}

#[test]
fn only_a_fault_on_its_path_explains_a_wait() {
    let (mut draft, _) = good();
    draft.routers.push(draft.routers[0]);
    let without = of_all(&draft, &Lost::default());
    let mut with = |what| {
        draft.faults = vec![fault(what)];
        of_all(&draft, &Lost::default()) - without
    };
    assert!(with(What::Crash(Node::Router(2))).abs() < 1e-9);
    assert!(with(What::Cut(Spot::Wire(2))).abs() < 1e-9);
    assert!(with(What::Stop(Node::Mobile(1))).abs() < 1e-9);
    for what in [
        What::Crash(Node::Router(0)),
        What::Crash(Node::Router(1)),
        What::Cut(Spot::Wire(1)),
        What::Cut(Spot::Core),
        What::Stop(Node::Mobile(0)),
        What::Stop(Node::Fixed),
    ] {
        assert!(with(what) >= 4.0, "{what:?}");
    }
}

/// A cut that begins after the first attempt has no effect. But if the answer to the first attempt is lost, the cut
/// affects the second attempt.
#[test]
fn a_loss_and_what_the_next_attempt_meets_delay_the_first_round_trip_together() {
    let (mut draft, _) = good();
    (draft.hosts[0].moves, draft.hosts[0].work[0].start) = (Vec::new(), 4500);
    let lost = Lost { by_chance: vec![Instant::from_millis(4510)], ..Lost::default() };
    let opened = |draft: &Draft, lost: &Lost| {
        timers::explained(draft, &draft.hosts[0].work[0], (at(30), at(60)), lost)
    };
    let (nothing, loss) = (opened(&draft, &Lost::default()), opened(&draft, &lost));
    draft.faults = vec![fault(What::Cut(Spot::Core))];
    let (cut, both) = (opened(&draft, &Lost::default()), opened(&draft, &lost));
    assert!((nothing - cut).abs() < 1e-9, "it is open by then: {nothing}, {cut}");
    // The cut ends 2.5 s after the start of the workload. The next attempt comes after at most twice this time and 1 s.
    assert!(both - loss > 5.0 * 4.5 && both - nothing > 5.0 * 6.0, "{nothing}, {loss}, {both}");
}

/// A lost acknowledgment gives TCP a sample as long as the time without a path; SCTP and datagrams have no timestamps.
#[test]
fn a_stale_echo_explains_a_longer_time_out_of_tcp_only() {
    let (mut draft, _) = good();
    draft.hosts[0].moves.clear();
    let lasts = |draft: &Draft| of_all(draft, &Lost::default());
    let of = |draft: &mut Draft| {
        let without = lasts(draft);
        draft.faults = vec![fault(What::Cut(Spot::Core))];
        let with = lasts(draft);
        draft.faults.clear();
        with - without
    };
    let tcp = of(&mut draft);
    draft.protocol = Protocol::Sigma;
    let sctp = of(&mut draft);
    draft.protocol = Protocol::MobileIp;
    draft.hosts[0].work[0].kind = Kind::Datagrams { up: false, rate: 20, size: 100 };
    let datagrams = of(&mut draft);
    assert!((4.0..4.5).contains(&sctp) && (sctp - datagrams).abs() < 0.1, "{sctp}, {datagrams}");
    assert!((tcp - datagrams * 2.375).abs() < 1e-9, "{tcp}, {datagrams}");
}

/// In a tree, the path of a host in a cell contains the nodes above the cell, and no other nodes.
#[test]
fn nodes_above_a_cell_are_on_its_path() {
    let (mut draft, _) = good();
    draft.protocol = Protocol::CellularIp;
    // Nodes 1 and 2 are below the gateway 0; node 3 is below 1, and node 4 is below 2.
    draft.routers = [0, 0, 0, 1, 2].map(|parent| Router { parent, ..draft.routers[0] }).into();
    (draft.hosts[0].start, draft.hosts[0].moves) = (3, Vec::new());
    let work = draft.hosts[0].work[0];
    let on_path = |what| draft.concerns(&fault(what), &work, 0);
    let nodes: Vec<usize> = (0..5).filter(|router| on_path(What::Crash(Node::Router(*router)))).collect();
    assert_eq!(nodes, [0, 1, 3]);
    let wires: Vec<usize> = (0..5).filter(|router| on_path(What::Cut(Spot::Wire(*router)))).collect();
    assert_eq!(wires, [0, 1, 3]);
}

/// The fixed host is the first router above a Cellular IP gateway. So packets between two hosts of the access network
/// pass the fixed host.
#[test]
fn what_hosts_of_one_network_send_to_each_other_passes_the_first_router() {
    let (mut draft, _) = good();
    draft.hosts[0].work[0].peer = Some(0);
    let work = draft.hosts[0].work[0];
    let stop = fault(What::Stop(Node::Fixed));
    let of = |draft: &mut Draft, protocol| {
        draft.protocol = protocol;
        draft.concerns(&stop, &work, 0)
    };
    assert!(of(&mut draft, Protocol::CellularIp));
    assert!(
        ![Protocol::MobileIp, Protocol::IndirectTcp, Protocol::Sigma]
            .iter()
            .any(|other| of(&mut draft, *other))
    );
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

/// Lost packets of the workload and lost registrations count. Lost packets of another workload do not count.
#[test]
fn a_wait_is_explained_by_its_own_losses() {
    let lost = |port, at_random: bool| {
        let (mut draft, mut facts) = good();
        draft.core.loss = 100;
        client(&mut facts).gap = (at(2), at(6));
        let losses = if at_random { &mut facts.lost } else { &mut facts.full };
        losses.insert(port, vec![at(3)]);
        found(&draft, &facts)
    };
    for at_random in [true, false] {
        assert_eq!([lost(PORT, at_random), lost(CONTROL, at_random)], [vec![], vec![]]);
        assert_eq!(lost(PORT + 1, at_random), [Judge::Stall]);
    }
}

/// Returns how many seconds are explained if an application waits for the whole run.
fn of_all(draft: &Draft, lost: &Lost) -> f64 {
    timers::explained(draft, &draft.hosts[0].work[0], (Instant::ZERO, Instant::NEVER), lost)
}

#[test]
fn loss_explains_time_outs_and_nothing_else_does() {
    let (mut draft, _) = good();
    // Without losses, twice the time without a path is explained: 5 ms of tuning and two round trips.
    let without = of_all(&draft, &Lost::default());
    assert!((0.03..0.3).contains(&without), "{without}");
    // The first two losses are less than 200 ms apart and cost one time-out of 1 s. The third one costs 2 s.
    let seconds = |all: &[u64]| all.iter().map(|ms| Instant::from_millis(*ms)).collect();
    let full = Lost { in_queues: seconds(&[5000, 5100, 6000]), ..Lost::default() };
    assert!((of_all(&draft, &full) - without - 3.0).abs() < 1e-9, "{}", of_all(&draft, &full));
    // A wire with a loss of 1 % is crossed three times in each direction. So at most 5 time-outs in a row are
    // explained.
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
    assert!(with(&mut draft, 4000) < 0.3);
}

#[test]
fn datagrams_arrive_again() {
    let draft = draft(Kind::Datagrams { up: false, rate: 20, size: 100 });
    let stop = draft.stop() / 1000 + 3;
    let arrived = |last: Option<u64>, gap: u64| {
        let arrivals = |last| Arrivals { first: at(3), last: at(last), gap: (at(3), at(3 + gap)) };
        let datagrams = last.map(|last| (PORT, arrivals(last))).into_iter().collect();
        found(&draft, &Facts { ended: at(stop), datagrams, ..Facts::default() })
    };
    assert_eq!(arrived(Some(stop - 4), 9), []);
    assert_eq!(arrived(Some(stop - 14), 9), [Judge::Served]);
    assert_eq!(arrived(Some(stop - 4), 12), [Judge::Served], "in between");
    assert_eq!(arrived(None, 0), [Judge::Served]);
    let first = |first| Arrivals { first: at(first), last: at(stop - 4), gap: (at(first), at(first + 1)) };
    let late = |at_s| {
        let datagrams = [(PORT, first(at_s))].into();
        found(&draft, &Facts { ended: at(stop), datagrams, ..Facts::default() })
    };
    assert_eq!((late(9), late(15)), (vec![], vec![Judge::Served]), "the source begins at 0.5 s");
}

/// If more than 7 s are explained, a receiver may wait 3 s longer than explained.
#[test]
fn datagrams_are_missed_after_what_is_explained() {
    let mut draft = draft(Kind::Datagrams { up: false, rate: 20, size: 100 });
    draft.faults = vec![Fault { at: 5000, lasts: 10_000, what: What::Cut(Spot::Core) }];
    let explained = of_all(&draft, &Lost::default());
    let stop = draft.stop() / 1000 + 3;
    let waits = |more: f64| {
        let to = at(4) + Duration::from_millis(((explained + more) * 1e3) as u64);
        let arrivals = Arrivals { first: at(1), last: at(stop - 4), gap: (at(4), to) };
        found(&draft, &Facts { ended: at(stop), datagrams: [(PORT, arrivals)].into(), ..Facts::default() })
    };
    assert!((20.0..22.0).contains(&explained), "{explained}");
    assert_eq!((waits(2.9), waits(3.1)), (vec![], vec![Judge::Served]));
}

/// A wait that ends after the end of the run is no violation.
#[test]
fn datagrams_are_not_missed_after_the_end_of_the_run() {
    let draft = draft(Kind::Datagrams { up: false, rate: 20, size: 100 });
    let ended = |ended| {
        let arrivals = Arrivals { first: at(1), last: at(3), gap: (at(1), at(3)) };
        found(&draft, &Facts { ended, datagrams: [(PORT, arrivals)].into(), ..Facts::default() })
    };
    let stop = Instant::from_millis(draft.stop());
    assert_eq!((ended(at(5)), ended(stop)), (vec![], vec![Judge::Served]));
}

/// If datagrams with 48 bytes of headers exceed the MTU, missing datagrams are no violation. They are also no violation
/// if all datagrams of 10 s may be lost at random.
#[test]
fn datagrams_that_cannot_arrive_are_not_missed() {
    let none = |size, rate, loss| {
        let mut draft = draft(Kind::Datagrams { up: false, rate, size });
        draft.core.loss = loss;
        found(&draft, &Facts { ended: at(draft.stop() / 1000 + 3), ..Facts::default() })
    };
    assert_eq!([none(1452, 20, 0), none(1453, 20, 0)], [vec![Judge::Served], vec![]]);
    assert_eq!([none(100, 20, 2000), none(100, 1, 2000)], [vec![Judge::Served], vec![]]);
    assert_eq!(none(100, 4, 2000), [Judge::Served], "40 datagrams in 10 s: once in 10^12");
}

#[test]
fn little_is_held() {
    assert_eq!(changed(|facts| facts.held = 300), []);
    assert_eq!(changed(|facts| facts.held = 301), [Judge::Bounded]);
    assert_eq!(changed(|facts| facts.most_open = 5001), [Judge::Bounded]);
}
