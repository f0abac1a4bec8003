//! The parts of an explanation sum to the whole, and unexplained parts are reported.

use super::*;
use crate::run;
use crate::run::Backend;
use scenario::{Plan, Scenario};
use trace::{HostId, Record, What};

const FIRST: &str = include_str!("../../../../scenarios/first.toml");

fn first() -> Outcome {
    run::simulate(Scenario::plan("first.toml", FIRST, &[], 1).unwrap()).unwrap()
}

/// Returns the first column of the table in `text`, between its rule and the line `sum`.
fn printed(text: &str) -> Vec<f64> {
    let lines = text.lines().skip_while(|line| !line.trim_start().starts_with("---")).skip(1);
    let lines = lines.take_while(|line| !line.trim_start().starts_with("sum"));
    lines.map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect()
}

#[test]
fn the_lines_of_an_outage_sum_to_it() {
    let outcome = first();
    let text = handoffs(&outcome);
    let outages: Vec<&Outage> = outcome.handoffs.iter().filter_map(|handoff| handoff.outage()).collect();
    assert_eq!(outages.len(), 2);
    assert_eq!(text.matches("= the whole outage").count(), 2);
    assert!(!text.contains("unexplained") && !text.contains("NOT"));
    for (outage, section) in outages.iter().zip(text.split("no new data by the new path for ").skip(1)) {
        let sum: f64 = printed(section).iter().map(|ms| (ms * 1e6).round()).sum();
        assert_eq!(Duration::from_nanos(sum as u64), outage.span());
        assert!(section.starts_with(&exact_ms(outage.span())));
    }
    assert!(text.contains("tune at mobile") && text.contains("mapping_changed at b1"), "{text}");
}

#[test]
fn a_semisoft_handoff_lost_nothing_and_made_no_gap() {
    let text = handoffs(&first());
    assert_eq!(text.matches("none: the handoff did not interrupt the flow").count(), 2, "{text}");
}

#[test]
fn what_was_lost_is_named_packet_by_packet() {
    let outcome = first();
    let text = handoffs(&outcome);
    assert_eq!(outcome.handoffs[0].lost(), 3);
    assert!(text.contains("lost 3 packets:\n    27, 28, 29 lost at b2:air: receiver_left_cell\n"), "{text}");
}

fn without(plan: &Plan, records: &[Record], gone: impl Fn(&Record) -> bool) -> Outcome {
    let at = records.iter().position(|r| r.at >= Instant::from_millis(3_000) && gone(r)).unwrap();
    let mut records = records.to_vec();
    records.remove(at);
    Outcome::new(plan.clone(), Backend::Sim, records, None)
}

#[test]
fn an_event_that_is_missing_leaves_a_part_unexplained() {
    type Wanted = fn(&Record) -> bool;
    let outcome = first();
    let gone: [(&str, Wanted); 3] = [
        ("up", |r| matches!(r.what, What::Up(_, Some(_)))),
        ("mapping_changed", |r| r.host == HostId(1) && is_mark(r, "mapping_changed")),
        ("path_switched", |r| r.host == HostId(1) && is_mark(r, "path_switched")),
    ];
    for (name, gone) in gone {
        let outcome = without(&outcome.plan, &outcome.records, gone);
        let text = handoffs(&outcome);
        assert!(text.contains("unexplained"), "without {name}:\n{text}");
        assert_eq!(text.matches("= the whole outage").count(), 2, "without {name}:\n{text}");
        let outage = outcome.handoffs[2].outage().unwrap();
        assert!(!outage.unexplained().is_zero(), "without {name}");
        assert_eq!(outcome.doubts.is_empty(), outage.is_explained(), "without {name}: {:?}", outcome.doubts);
    }
}

fn is_mark(record: &Record, name: &str) -> bool {
    matches!(&record.what, What::Marked(mark) if mark.name == name)
}

#[test]
fn a_handoff_without_traffic_is_not_praised() {
    let setting = "constant-rate.stop=1.5s".parse().unwrap();
    let plan = Scenario::plan("first.toml", FIRST, &[setting], 1).unwrap();
    let text = handoffs(&run::simulate(plan).unwrap());
    assert_eq!(text.matches("not measured").count(), 3, "{text}");
}

#[test]
fn the_life_of_a_packet_ends_for_each_copy() {
    let outcome = first();
    let alone = packet(&outcome, 27).unwrap();
    assert!(alone.contains("\nfate: lost at b2:air: receiver_left_cell at 1.0"), "{alone}");
    let control = packet(&outcome, 30).unwrap();
    assert!(
        control.starts_with("packet 30: route-update S=0 10.1.0.7 > 10.1.0.1 to b3, timestamp +1.005000 s"),
        "{control}"
    );
    assert!(control.contains("fate: consumed by b1 at 1.006342720 s"), "{control}");
    let copied = packet(&outcome, 84).unwrap();
    assert!(copied.contains("copy 1: delivered to mobile at 2.062090720 s"), "{copied}");
    assert!(copied.contains("copy 2: lost at b2:air: receiver_left_cell at 2.082090720 s"), "{copied}");
    assert_eq!(packet(&outcome, 0).unwrap_err(), "no packet 0; this run has packets 1 to 268");
}

#[test]
fn every_copy_in_the_ledger_has_its_end() {
    let outcome = first();
    let journeys = Journeys::new(&outcome.plan, &outcome.records);
    let ends: Vec<Fate> =
        journeys.packets().flat_map(|(_, journey)| journeys.all_ends(journey)).map(|end| end.fate).collect();
    let count = |wanted: fn(&Fate) -> bool| ends.iter().filter(|fate| wanted(fate)).count() as u64;
    let ledger = &outcome.ledger;
    assert_eq!(ends.len() as u64, ledger.sent + ledger.copied);
    assert_eq!(count(|fate| matches!(fate, Fate::Delivered(_) | Fate::Consumed(_))), ledger.delivered);
    assert_eq!(count(|fate| matches!(fate, Fate::Lost(..) | Fate::Dropped(..))), ledger.dropped_total());
}

#[test]
fn a_timeline_shows_messages_and_marks_in_order() {
    let outcome = first();
    let text = timeline(&outcome, 2).unwrap();
    for line in [
        "mobile: handoff kind=semisoft from=b3 to=b2",
        "sends on air: route-update S=1 10.1.0.7 > 10.1.0.1 to b2, timestamp +2.000000 s",
        "station: semisoft_begun host=10.1.0.7 to=b2:b1",
        "requests that air tunes to cell 2",
        "consumes packet",
        "[registration ends]",
    ] {
        let at = text.find(line).unwrap_or_else(|| panic!("`{line}` in\n{text}"));
        assert!(at > 0);
    }
    assert_eq!(timeline(&outcome, 5).unwrap_err(), "no handoff 5; this run has handoffs 1 to 4");
    assert!(timeline(&outcome, 0).is_err());
}

#[test]
fn a_radio_that_cannot_tune_is_not_down() {
    let mut outcome = first();
    let tuned = |(index, record): (usize, &Record)| match record.what {
        What::Tuned(iface, _) if record.at >= Instant::from_millis(2_000) => {
            Some((index, record.at, record.host, iface))
        }
        _ => None,
    };
    let (index, at, host, iface) = outcome.records.iter().enumerate().find_map(tuned).unwrap();
    let refused = Record { at, host, what: What::Down(iface, node::Link::UNSUPPORTED.into()) };
    outcome.records.insert(index + 1, refused);
    let text = timeline(&outcome, 2).unwrap();
    assert!(text.contains("air cannot tune to the requested cell, and stays tuned as before"), "{text}");
    assert!(!text.contains("is down"), "{text}");
}
