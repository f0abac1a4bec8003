//! The benchmark in the simulator: what is measured, and how it is evaluated.

use super::carry_out::points;
use super::course::{Leg, Mover, course};
use super::measure::{EXCHANGE, GOODPUT, LOST, OUTAGE, OWNERS, SIGNALLING, STALL, STATE, measure};
use super::rows::LOWER_BOUND;
use super::*;
use crate::reproduce::{Check, How, Measured, Point, Results, Samples, Validity};
use recorder::run::{Backend, simulate};
use std::sync::atomic::AtomicBool;
use wire::{Duration, Instant};

/// Returns the samples of the only run of a leg.
fn run(name: &str) -> Samples {
    let points = points(course().unwrap(), 1, |leg| leg.name == name);
    let [point] = points.as_slice() else { panic!("{} points for {name}", points.len()) };
    measure(&simulate(point.plan(0, &[]).unwrap()).unwrap()).unwrap()
}

fn value(samples: &Samples, metric: &Metric) -> f64 {
    samples[metric.name][0]
}

#[test]
fn the_owners_of_an_outage_sum_to_it_and_a_stall_is_no_shorter() {
    for name in ["compare/mobile-ip/gap/bulk", "compare/cellular-ip-hard/gap/requests"] {
        let samples = run(name);
        let outage = value(&samples, &OUTAGE);
        let owned: f64 = OWNERS.iter().map(|owner| value(&samples, owner)).sum();
        assert!(outage > 1000.0 && (owned - outage).abs() < 1e-6, "{name}: {owned} of {outage}");
        assert!(value(&samples, &STALL) >= outage, "{name}");
        assert!(value(&samples, &LOST) > 0.0 && value(&samples, &GOODPUT) > 0.0, "{name}");
    }
}

#[test]
fn plain_ip_hears_nothing_more_and_says_nothing() {
    for load in ["bulk", "requests"] {
        let samples = run(&format!("compare/plain-ip/overlap/{load}"));
        assert!(value(&samples, &OUTAGE).is_infinite());
        assert!(value(&samples, &SIGNALLING) == 0.0 && value(&samples, &STALL) > 1900.0, "{samples:?}");
        assert!(!samples.contains_key(OWNERS[0].name) && !samples.contains_key(EXCHANGE.name), "{samples:?}");
    }
}

#[test]
fn a_semisoft_handoff_loses_nothing_of_a_download() {
    let samples = run("compare/cellular-ip-semisoft/overlap/bulk");
    assert!(value(&samples, &LOST) == 0.0, "a copy that was dropped is no loss: the other came");
    assert!(value(&samples, &OUTAGE) < 100.0, "{samples:?}");
}

#[test]
fn bytes_that_a_role_hands_on_count_once() {
    let goodput = value(&run("compare/indirect-tcp/overlap/bulk"), &GOODPUT);
    assert!((1000.0..2000.0).contains(&goodput), "{goodput} kb/s, where the air carries 2000");
}

#[test]
fn answers_are_timed_after_the_outage() {
    // An exchange takes 12 ms each way by wire, and the time of 1100 bytes by radio, with headers and acknowledgments:
    // less than 30 ms.
    let near = value(&run("compare/cellular-ip-hard/overlap/requests"), &EXCHANGE);
    let far = value(&run("compare/mobile-ip/overlap/requests"), &EXCHANGE);
    assert!((24.0..30.0).contains(&near), "{near}");
    assert!(far > near, "by way of home it is {far} ms, and not more than {near}");
}

/// The state that each protocol needs for the same move. docs/glossary.md defines the entries.
#[test]
fn each_protocol_holds_its_number_of_entries() {
    let names = course().unwrap().contenders.iter().map(|contender| contender.name.clone());
    let held = |who: String| {
        let state = value(&run(&format!("compare/{who}/overlap/requests")), &STATE);
        (who, state as u64)
    };
    let held: Vec<(String, u64)> = names.map(held).collect();
    let held: Vec<(&str, u64)> = held.iter().map(|(who, state)| (who.as_str(), *state)).collect();
    // The registration, the binding and the visit.
    let mobile_ip = 3;
    // Also the arrival at the new agent and the departure from the earlier one.
    let smooth = mobile_ip + 2;
    assert_eq!(
        held,
        [
            ("plain-ip", 0),
            ("mobile-ip", mobile_ip),
            ("ecs-mobile-ip", mobile_ip),
            // The visit at the earlier agent too.
            ("elsewhere-mobile-ip", mobile_ip + 1),
            ("smooth-mobile-ip", smooth),
            ("one-packet-mobile-ip", smooth + 1),
            ("ring-mobile-ip", smooth + 8),
            // The visit at the earlier agent, the cache entry, and the pair that the home agent has informed.
            ("optimized-mobile-ip", mobile_ip + 3),
            // The connection at the host, at both routers during the handoff, and a forward pointer.
            ("indirect-tcp", mobile_ip + 4),
            // The registered address, and the second address of the association at both ends.
            ("sigma", 3),
            // The mappings at the gateway, at the new base station and at the old one.
            ("cellular-ip-hard", 3),
            // Also the second mapping of the gateway, and two packets in its delay device.
            ("cellular-ip-semisoft", 6),
        ]
    );
}

#[test]
fn all_contenders_leave_at_the_same_instants_and_are_watched_as_long() {
    let course = course().unwrap();
    let all = points(course, 3, |_| true);
    assert_eq!(all.len(), course.legs.len() * 3);
    let of = |leg: &Leg| {
        let ours = all.iter().filter(|point| point.scenario == leg.name);
        // The names of the roles differ between the protocols, so only the values are compared.
        let said = |point: &Point| point.overrides.iter().map(ToString::to_string).collect::<Vec<_>>();
        let values = |text: String| text.split_once('=').unwrap().1.to_owned();
        ours.map(|point| said(point).into_iter().map(values).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let has_timetable = |leg: &&Leg| matches!(leg.mover, Mover::Timetable(_));
    for leg in course.legs.iter().filter(has_timetable) {
        let first = course.legs.iter().find(|other| other.r#move == leg.r#move).unwrap();
        assert_eq!(of(leg), of(first), "{}", leg.name);
    }
}

/// A timetable and a signal course have the departure at the same instants, at every phase: the points of the course
/// are shifted with the departure.
#[test]
fn who_has_a_course_leaves_at_the_same_instants_as_who_has_a_timetable() {
    let course = course().unwrap();
    let begun = |name: &str| {
        let begun = |point: &Point| {
            let outcome = simulate(point.plan(0, &[]).unwrap()).unwrap();
            let [handoff] = outcome.handoffs.as_slice() else { panic!("{:?}", outcome.handoffs) };
            (handoff.begun, handoff.outage().map(|outage| outage.to.since(handoff.begun)))
        };
        points(course, 3, |leg| leg.name == name).iter().map(begun).collect::<Vec<_>>()
    };
    for r#move in ["overlap", "gap"] {
        let [ours, theirs] =
            ["sigma", "plain-ip"].map(|who| begun(&format!("compare/{who}/{move}/requests")));
        let instants =
            |runs: &[(Instant, Option<Duration>)]| runs.iter().map(|run| run.0).collect::<Vec<_>>();
        assert_eq!(instants(&ours), instants(&theirs), "{move}");
        let without = |run: &(Instant, Option<Duration>)| match r#move {
            "gap" => run.1.is_some_and(|outage| outage > Duration::from_millis(1005)),
            _ => run.1.is_none(),
        };
        assert!(ours.iter().all(without), "{move}: {ours:?}");
    }
}

#[test]
fn an_association_that_changes_its_address_loses_nothing_and_says_more() {
    let samples = run("compare/sigma/overlap/bulk");
    assert!(value(&samples, &OUTAGE) < 30.0 && value(&samples, &LOST) == 0.0, "{samples:?}");
    let others = value(&run("compare/mobile-ip/overlap/bulk"), &SIGNALLING);
    assert!(value(&samples, &SIGNALLING) > others, "{samples:?}");
}

/// In a run with a transport that is a role, at most 24 effects wait at a time (docs/risks.md).
#[test]
fn a_transport_that_is_a_role_piles_nothing_up() {
    for name in ["compare/sigma/overlap/bulk", "compare/sigma/gap/bulk", "sigma/handoff"] {
        let (file, text) = crate::catalogue::find(name).unwrap();
        let plan = scenario::Scenario::plan(&file, &text, &[], 1).unwrap();
        let run = plan.world().unwrap().run(plan.end());
        assert!((1..=24).contains(&run.largest_outbox), "{name}: {} effects waited", run.largest_outbox);
    }
}

#[test]
fn the_beat_of_questions_is_met_everywhere() {
    for n in [6, 20] {
        let phases = crate::reproduce::stratified("compare", n, super::carry_out::PERIOD);
        let mut places: Vec<u128> = phases.iter().map(|phase| phase.as_micros() % 50_000).collect();
        places.sort_unstable();
        let gaps = places.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.into_iter().all(|gap| gap.abs_diff(50_000 / n as u128) <= 2), "{places:?}");
    }
}

/// Returns a comparison on two backends with these outages of Mobile IP and of hard Cellular IP, on every leg.
fn made_up(outages: [(f64, f64); 2], validity: &Validity) -> Comparison {
    let course = course().unwrap();
    let place = |name: &str| course.contenders.iter().position(|contender| contender.name == name).unwrap();
    let wanted = ["mobile-ip", "cellular-ip-hard"].map(place).to_vec();
    let results = |(backend, (mobile, cellular)): (Backend, (f64, f64))| {
        let row = |point: Point| {
            let outage = if point.label.contains("mobile-ip") { mobile } else { cellular };
            let samples = Samples::from([(OUTAGE.name, vec![outage])]);
            (point, Some(Measured { samples, series: Vec::new(), validity: validity.clone() }))
        };
        let points = points(course, 6, |leg| wanted.contains(&leg.contender));
        Results { backend, rows: points.into_iter().map(row).collect() }
    };
    let backends = [Backend::Sim, Backend::Linux].into_iter().zip(outages).map(results).collect();
    let (same, absent) = (None, Vec::new());
    Comparison { course, wanted: wanted.clone(), repeat: Repeat::Fixed(6), backends, same, absent }
}

/// Returns a comparison whose outages depend on the backend, the protocol (whether it is Mobile IP) and the number of
/// the run, from 0. The outages are the same on every leg.
fn by_run(outage: impl Fn(Backend, bool, usize) -> f64) -> Comparison {
    let mut comparison = made_up([(0.0, 0.0), (0.0, 0.0)], &Validity::Valid);
    for results in &mut comparison.backends {
        for (point, measured) in &mut results.rows {
            let number: usize = point.label.rsplit([' ', '/']).nth(1).unwrap().parse().unwrap();
            let value = outage(results.backend, point.label.contains("mobile-ip"), number - 1);
            measured.as_mut().unwrap().samples = Samples::from([(OUTAGE.name, vec![value])]);
        }
    }
    comparison
}

/// Returns whether the property of both backends holds, and its value: the share of pairs with the same order, of all
/// pairs that are told apart.
fn one_order(comparison: &Comparison) -> (bool, Option<f64>) {
    let verdicts = verdicts(comparison);
    let both = verdicts.into_iter().find(|verdict| verdict.backend.is_none()).unwrap();
    (both.holds(), both.value)
}

#[test]
fn an_order_is_claimed_where_the_backends_agree_and_nowhere_else() {
    let order = |outages| one_order(&made_up(outages, &Validity::Valid));
    assert_eq!(order([(200.0, 100.0), (201.0, 101.0)]), (true, Some(1.0)));
    assert_eq!(order([(200.0, 100.0), (100.0, 200.0)]), (false, Some(0.0)), "no leg agrees");
    assert_eq!(order([(200.0, 100.0), (300.0, 150.0)]), (false, Some(0.0)), "one order, of other outages");
    assert_eq!(order([(200.0, 100.0), (201.0, 150.0)]), (false, Some(0.0)), "one leg agrees");
    assert_eq!(
        order([(100.0, 120.0), (100.0, 120.0)]),
        (false, None),
        "20 ms are near: no pair is told apart"
    );
    assert_eq!(order([(2000.0, 1800.0), (2000.0, 1800.0)]), (false, None), "10 % are near");
    let never = f64::INFINITY;
    assert_eq!(order([(200.0, never), (200.0, never)]), (true, Some(1.0)));
    assert_eq!(order([(200.0, never), (never, 200.0)]), (false, Some(0.0)));
    let one = Comparison {
        wanted: vec![made_up([(1.0, 1.0); 2], &Validity::Valid).wanted[0]],
        ..made_up([(200.0, 100.0); 2], &Validity::Valid)
    };
    assert!(verdicts(&one).iter().all(|verdict| verdict.backend.is_some()), "one protocol has no order");
}

#[test]
fn an_order_is_printed_only_of_what_is_told_apart_and_the_pairs_are_named() {
    let said = |outages| text(&made_up(outages, &Validity::Valid));
    let one = said([(200.0, 100.0), (201.0, 101.0)]);
    for line in [
        "in the simulator, by outage: Cellular IP hard < Mobile IP\n",
        "on Linux, by outage: Cellular IP hard < Mobile IP\n",
        "for protocols whose outages agree: Cellular IP hard < Mobile IP\n",
        "pairs checked, the same order on both backends: Mobile IP and Cellular IP hard\n",
    ] {
        assert!(one.contains(line), "{line}: {one}");
    }
    let none = said([(0.0, 0.0), (0.0, 0.0)]);
    assert!(
        none.contains("in the simulator, by outage: not ordered: ") && !none.contains("hard < "),
        "{none}"
    );
    assert!(
        none.contains(
            "pairs not checked, not told apart (by at least 30 ms and 15 %) on any backend: Mobile IP and"
        ),
        "{none}"
    );
    let differ = said([(200.0, 100.0), (201.0, 150.0)]);
    assert!(
        differ.contains("pairs not checked, the backends do not agree about both outages: Mobile IP and"),
        "{differ}"
    );
}

#[test]
fn another_order_of_legs_that_agree_is_not_excused() {
    // In the simulator, Mobile IP has 40 ms more than hard Cellular IP at each phase. On Linux, hard Cellular IP has 10
    // ms more at five of six phases.
    let longer = |number: usize| 50.0f64.mul_add(number as f64, 90.0);
    let comparison = by_run(|backend, is_mobile_ip, number| match (backend, is_mobile_ip) {
        (_, true) => longer(number),
        (Backend::Sim, false) => longer(number) - 40.0,
        (Backend::Linux, false) if number == 5 => 50.0,
        (Backend::Linux, false) => longer(number) + 10.0,
    });
    let said = text(&comparison);
    assert!(
        said.contains("for protocols whose outages agree: not ordered: Cellular IP hard, Mobile IP\n"),
        "{said}"
    );
    assert_eq!(one_order(&comparison), (false, Some(0.0)), "{said}");
}

#[test]
fn a_leg_that_differs_is_printed_with_its_distance_and_has_no_place_in_the_order() {
    let comparison = made_up([(200.0, 100.0), (200.0, 150.0)], &Validity::Valid);
    let said = text(&comparison);
    let row = |name: &str| {
        let rows = said.lines().filter(|line| line.starts_with(name));
        rows.map(|line| line.split("  ").filter(|cell| !cell.is_empty()).map(str::trim).collect::<Vec<_>>())
            .find(|cells| cells.contains(&"6") && cells.len() == 7)
            .unwrap_or_else(|| panic!("{said}"))
    };
    assert_eq!(row("Mobile IP")[2..6], ["agrees", "0.00", "200", "200"]);
    assert_eq!(row("Cellular IP hard")[2..6], ["differs", "1.00", "100", "150"]);
    assert!(said.contains("for protocols whose outages agree: Mobile IP\n"), "{said}");
    assert_eq!(json(&comparison)["agreement"][0]["agreement"], "agrees");
    assert!(json(&Comparison { backends: Vec::new(), ..comparison })["agreement"].is_null());
}

#[test]
fn the_backends_are_compared_at_the_same_phases() {
    // The simulator's main runs are at other phases than the runs on Linux. The simulator's runs at the same phases as
    // on Linux are evaluated.
    let mut comparison = made_up([(200.0, 100.0), (300.0, 150.0)], &Validity::Valid);
    comparison.same = Some(comparison.backends[1].clone());
    assert_eq!(one_order(&comparison), (true, Some(1.0)));
}

#[test]
fn two_are_told_apart_by_runs_at_the_same_phase() {
    // The outages of both protocols depend on the phase, from 100 to 640 ms. One protocol has 40 ms more at every
    // phase. Both samples are wide, but the difference is certain.
    let by_phase = |ours: fn(f64) -> f64, theirs: fn(f64) -> f64| {
        let of = |_, is_mobile_ip: bool, number: usize| {
            (if is_mobile_ip { ours } else { theirs })(number as f64 + 1.0)
        };
        let comparison = by_run(of);
        let told = super::pairs::pairs(&comparison).iter().filter(|pair| pair.order().is_some()).count();
        (told, text(&comparison).contains("in the simulator, not told apart: Mobile IP and Cellular IP hard"))
    };
    assert_eq!(by_phase(|phase| phase * 100.0 + 40.0, |phase| phase * 100.0), (8, false));
    // The outage of one protocol grows with the phase, and the outage of the other protocol falls. So the difference is
    // not certain.
    assert_eq!(by_phase(|phase| phase * 100.0 + 40.0, |phase| 700.0 - phase * 100.0), (0, true));
}

#[test]
fn an_interval_is_narrow_below_15_percent_of_the_median() {
    let is_narrow = super::carry_out::is_narrow;
    // For ten values, the interval is from the second to the ninth.
    let of = |lo: f64, hi: f64| [0.0, lo, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0, hi, 900.0];
    assert!(is_narrow(&of(93.0, 107.0)) && !is_narrow(&of(92.0, 108.0)));
    assert!(is_narrow(&[5.0; 6]) && !is_narrow(&[5.0; 5]), "fewer than six have no interval");
    assert!(is_narrow(&[f64::INFINITY; 6]) && is_narrow(&[0.0; 6]));
    assert!(!is_narrow(&[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]), "wider than nothing");
    assert!(!is_narrow(&[1.0, 1.0, 1.0, 1.0, 1.0, f64::INFINITY]) && !is_narrow(&[]));
}

#[test]
fn a_leg_is_repeated_until_its_interval_is_narrow() {
    let how =
        How { jobs: 2, linux: None, stop: &AtomicBool::new(false), progress: &|_| (), repeated: &|_, _| () };
    let course = course().unwrap();
    let wanted = select(course, &["mobile-ip".to_owned()]).unwrap();
    let comparison = compare(course, &wanted, Repeat::UntilNarrow(6), &[Backend::Sim], &how).unwrap();
    let rows = rows(&comparison);
    for row in rows.iter().filter(|row| row.metric == OUTAGE) {
        let summary = row.median.unwrap();
        let interval = summary.interval.unwrap();
        let narrow = interval.hi - interval.lo <= 0.15 * summary.median;
        assert!([10, 20, 40].contains(&row.n) && (narrow || row.n == 40), "{row:?}");
    }
    let counts: Vec<usize> = rows.iter().filter(|row| row.metric == OUTAGE).map(|row| row.n).collect();
    assert!(counts.iter().any(|n| *n < 40), "what is narrow is not repeated for nothing: {counts:?}");
    let said = text(&comparison);
    assert!(said.contains("10, 20 or 40 runs of each leg") && !said.contains("linux:"), "{said}");
}

/// Mobile IP never recovers, Cellular IP does. All three forms of the comparison mark only the stall of Mobile IP.
#[test]
fn a_stall_until_the_run_ended_is_a_lower_bound() {
    let mut comparison = made_up([(f64::INFINITY, 100.0); 2], &Validity::Valid);
    for (_, measured) in comparison.backends.iter_mut().flat_map(|results| &mut results.rows) {
        measured.as_mut().unwrap().samples.insert(STALL.name, vec![700.0]);
    }
    let stalls: Vec<Row> = rows(&comparison).into_iter().filter(|row| row.metric == STALL).collect();
    assert!(stalls.iter().all(|row| row.why_not.is_some() == (row.protocol == "mobile-ip")), "{stalls:?}");
    assert_eq!(stalls.iter().filter(|row| row.why_not.is_some()).count(), 8);
    assert_eq!(csv(&comparison).matches(LOWER_BOUND).count(), 8);
    assert_eq!(json(&comparison).to_string().matches(LOWER_BOUND).count(), 8);
    assert_eq!(text(&comparison).matches(">700").count(), 8);
}

#[test]
fn what_is_not_to_be_believed_holds_nothing_and_is_no_row() {
    let clock = trace::Doubt::WallClockSet { process: "b1".to_owned() };
    let invalid = Validity::Invalid(vec![clock]);
    let comparison = made_up([(200.0, 100.0); 2], &invalid);
    assert!(verdicts(&comparison).iter().all(|verdict| verdict.invalid && !verdict.holds()));
    let outages: Vec<Row> = rows(&comparison).into_iter().filter(|row| row.metric == OUTAGE).collect();
    assert_eq!(outages.len(), 16, "two protocols, two moves, two workloads, two backends");
    assert!(outages.iter().all(|row| row.median.is_none() && row.invalid == 6 && row.why_not.is_some()));
    assert_eq!(comparison.invalid().len(), 16 * 6);
    let said = "invalid on linux: compare/mobile-ip/overlap/bulk 1/6: b1: the wall clock was set";
    assert!(text(&comparison).contains(said));
}

#[test]
fn words_name_contenders_or_protocols() {
    let course = course().unwrap();
    let named = |word: &str| {
        let places = select(course, &[word.to_owned()])?;
        Ok::<_, String>(
            places.into_iter().map(|place| course.contenders[place].name.as_str()).collect::<Vec<_>>(),
        )
    };
    assert_eq!(named("cellular-ip"), Ok(vec!["cellular-ip-hard", "cellular-ip-semisoft"]));
    assert_eq!(named("plain-ip"), Ok(vec!["plain-ip"]));
    let mobile = named("mobile-ip").unwrap();
    assert!(mobile.len() >= 6 && mobile.iter().all(|name| name.ends_with("mobile-ip")), "{mobile:?}");
    assert_eq!(named("ring-mobile-ip"), Ok(vec!["ring-mobile-ip"]));
    assert!(named("plain").is_ok() && named("ip").is_err());
    assert_eq!(select(course, &[]).map(|all| all.len()), Ok(course.contenders.len()));
}

/// `compare --self-test` says of each breaker whether it made its statement false.
#[test]
fn a_self_test_says_which_breakers_had_an_effect() {
    assert!(judge::MUST_HOLD.len() >= 3, "each has a breaker");
    let check = |holds, value: f64| Check { value: Some(value), holds };
    let broken =
        |whole, check| Broken { must_hold: &judge::MUST_HOLD[0], set: "a=b".to_owned(), whole, check };
    let tests = [
        broken(check(true, 0.0), check(false, 2.5)),
        broken(check(true, 0.0), check(true, 0.0)),
        broken(check(false, 1.0), check(false, 1.0)),
    ];
    assert_eq!(tests.each_ref().map(Broken::broke), [true, false, false]);
    let said = self_test_text(&tests);
    for word in ["fails, as required", "HOLDS WITH THE BREAKER", "FAILS WITHOUT THE BREAKER", "2.50"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}
