//! A simulated download over TCP: the wire is full, every byte is right, and every packet has an end.

use node::{Mark, Value};
use recorder::ledger;
use scenario::{Plan, Scenario};
use std::collections::BTreeMap;
use trace::What;
use wire::Instant;

fn plan(settings: &[&str]) -> Plan {
    let (file, text) = Scenario::find("bulk").unwrap();
    let settings: Vec<_> = settings.iter().map(|setting| setting.parse().unwrap()).collect();
    Scenario::plan(&file, &text, &settings, 7).unwrap()
}

/// The last mark of each name, and its time.
type Marks = BTreeMap<&'static str, (Instant, Mark)>;

/// Returns the client's marks, and the number of dropped packets by reason. The ledger must balance.
fn download(settings: &[&str]) -> (Marks, BTreeMap<String, u64>) {
    let plan = plan(settings);
    let run = plan.world().unwrap().run(plan.end());
    let ledger = ledger::close(&plan, &run.records);
    assert!(ledger.balances(), "{:?}", ledger.doubts());
    assert!(ledger.delivered > 0);
    let marks = run.records.into_iter().filter_map(|record| match record.what {
        What::Marked(mark) if mark.role == "bulk-client" => Some((mark.name, (record.at, mark))),
        _ => None,
    });
    (marks.collect(), ledger.dropped)
}

fn field(mark: &Mark, name: &str) -> i64 {
    let field = mark.fields.iter().find(|(field, _)| *field == name);
    field.and_then(|(_, value)| Value::as_int(value)).unwrap_or_else(|| panic!("no {name} in {mark:?}"))
}

#[test]
fn a_download_fills_the_wire() {
    let (marks, dropped) = download(&["bulk-server.duration=30s", "duration=35s"]);
    let (opened, last) = (&marks["opened"], &marks["progress"]);
    // When the connection opens, no bytes are buffered. So all bytes that are read crossed the wire after that.
    let millis = last.0.since(opened.0).as_millis() as i64;
    let (bytes, full) = (field(&last.1, "bytes"), millis * 10_000 / 8);
    assert!(bytes * 10 > full * 9, "{bytes} bytes in {millis} ms, the wire carries {full}");
    assert!(bytes < full, "more than the wire carries");
    let done = &marks["done"].1;
    assert!(done.fields.iter().all(|(name, _)| *name != "wrong_at"), "{done:?}");
    assert!(dropped.keys().all(|reason| reason == "queue_full"), "{dropped:?}");
}

/// Datagrams of 1514 bytes with their headers, 20 % more than the wire can carry: they arrive at the rate of the wire,
/// within 3 %.
#[test]
fn a_wire_carries_the_rate_that_is_claimed() {
    for (rate, packets) in [("1Mb/s", 100), ("10Mb/s", 1_000), ("100Mb/s", 10_000)] {
        let source = format!(
            "host.server.role=[{{ kind = 'apps/constant-rate', to = 'client:9000', rate = {packets}, size = 1472, \
             start = '0.1s', stop = '4.1s' }}]"
        );
        let sink = "host.client.role=[{ kind = 'apps/sink', at = 'client:9000' }]";
        let plan = plan(&[&source, sink, &format!("wire.path.rate={rate}"), "duration=5s"]);
        let run = plan.world().unwrap().run(plan.end());
        let arrived: Vec<Instant> = run
            .records
            .iter()
            .filter(|record| matches!(record.what, What::AppReceived(_)))
            .map(|record| record.at)
            .collect();
        let span = arrived[arrived.len() - 1].since(arrived[0]).as_secs_f64();
        let seen = (arrived.len() - 1) as f64 * 1514.0 * 8.0 / span;
        let claimed = f64::from(packets) * 1e4;
        assert!((seen / claimed - 1.0).abs() < 0.03, "{rate}: {seen:.0} b/s in {span:.3} s");
        assert!(span > 4.0, "{rate}: the queue is empty before the source ends");
    }
}

#[test]
fn a_wire_that_loses_and_doubles_costs_time_and_no_byte() {
    let faults = ["wire.path.loss=0.02", "wire.path.duplicate=0.02", "duration=60s"];
    let (marks, dropped) = download(&faults);
    let done = &marks["done"].1;
    assert!(field(done, "bytes") > 500_000, "{done:?}");
    assert!(done.fields.iter().all(|(name, _)| *name != "wrong_at"), "{done:?}");
    assert!(dropped["link_error"] > 10, "{dropped:?}");
}

#[test]
fn one_seed_gives_one_run() {
    let run = || {
        let plan = plan(&["wire.path.loss=0.02"]);
        plan.world().unwrap().run(plan.end()).fingerprint
    };
    assert_eq!(run(), run());
}
