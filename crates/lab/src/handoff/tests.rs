//! Handoffs that went wrong in one point each, as the simulator tells them.

use super::{FlowCost, Handoff, handoffs};
use crate::flow::Traffic;
use crate::run::{Outcome, simulate};
use crate::scenario::{Scenario, Setting};
use trace::{Record, What};
use wire::Duration;

fn run(settings: &[&str]) -> Outcome {
    let (file, text) = Scenario::find("cellular-ip/udp-loss").unwrap();
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    simulate(Scenario::plan(&file, &text, &settings, 1).unwrap()).unwrap()
}

/// The new leg is ahead and nothing holds it back: the packet that ends the outage left the crossover by the new leg
/// before the route-update came there.
#[test]
fn an_outage_that_a_copy_ends_is_explained() {
    let moves = |at: &str| format!(r#"{{ at = "{at}", to = "b3", kind = "semisoft" }}"#);
    let moves = format!("mobile.moves=[{}]", moves("1.503s"));
    let outcome = run(&[&moves, "station.delay_device=0", r#"wire.left.delay=["61ms", "1ms"]"#]);
    assert_eq!(outcome.doubts, []);
    let outage = outcome.handoffs[0].outage().unwrap();
    assert!(outcome.handoffs[0].lost() > 0 && outage.unexplained().is_zero());
    assert_eq!(outage.owners.last().unwrap().name(), "first byte");
}

/// The first route-update is lost, its repetition comes through: that costs time, but the round trip is as ever.
#[test]
fn the_round_trip_is_that_of_the_update_that_came() {
    let outcome = run(&["cell.2.loss=0.5", "cell.3.loss=0.5"]);
    let millis = |span: Option<wire::Duration>| span.unwrap().as_secs_f64() * 1e3;
    let late = outcome.handoffs.iter().filter(|handoff| millis(handoff.latency) > 70.0).count();
    assert!(late > 0, "this seed loses a first route-update");
    for handoff in &outcome.handoffs {
        assert!((millis(handoff.round_trip) - 42.922).abs() < 1.0, "{handoff:?}");
    }
}

#[test]
fn what_the_stack_had_before_the_cut_ends_no_outage() {
    let (file, text) = Scenario::find("compare/mobile-ip/gap/bulk").unwrap();
    let plan = Scenario::plan(&file, &text, &[], 1).unwrap();
    let run = simulate(plan).unwrap();
    let [before] = run.handoffs.as_slice() else { panic!("{:?}", run.handoffs) };
    let mut records = run.records.clone();
    let at = before.cut + Duration::from_micros(1);
    let index = records.partition_point(|record| record.at <= at);
    let first = records.iter().find(|record| record.host == before.host && record.what.read().is_some());
    let read = first.unwrap().what.clone();
    records.insert(index, Record { at, host: before.host, what: read });
    let after = handoffs(&run.plan, &records, &Traffic::new(&run.plan, &records));
    // `recovered` is left out: the additional read adds to the goodput before the handoff, which it is compared with.
    let costs = |all: &[Handoff]| {
        let without = |cost: &FlowCost| FlowCost { recovered: None, ..cost.clone() };
        all.iter().flat_map(|handoff| handoff.flows.iter().map(without)).collect::<Vec<_>>()
    };
    assert_eq!(costs(&after), costs(&run.handoffs));
    assert!(after[0].flows[0].recovered.is_some());
}

/// A kernel may have a frame that came before the radio left, and look at it only then.
#[test]
fn what_is_handed_over_while_the_radio_is_away_ends_no_outage() {
    let (file, text) = Scenario::find("compare/mobile-ip/gap/bulk").unwrap();
    let plan = Scenario::plan(&file, &text, &[], 1).unwrap();
    let run = simulate(plan).unwrap();
    let [before] = run.handoffs.as_slice() else { panic!("{:?}", run.handoffs) };
    let mut records = run.records.clone();
    let of_tcp = |record: &Record| {
        record.host == before.host
            && record.at < before.cut
            && matches!(&record.what, What::Sent(wire::Iface::HOST, packet) if crate::segment::carries_data(packet))
    };
    let handed = records.iter().rposition(of_tcp).unwrap();
    let read = |record: &Record| record.host == before.host && record.what.read().is_some();
    let read = handed + records[handed..].iter().position(read).unwrap();
    for (place, micros) in [(read, 200), (handed, 100)] {
        let at = before.cut + Duration::from_micros(micros);
        let late = Record { at, ..records.remove(place) };
        let index = records.partition_point(|record| record.at <= at);
        records.insert(index, late);
    }
    assert_eq!(handoffs(&run.plan, &records, &Traffic::new(&run.plan, &records)), run.handoffs);
}
