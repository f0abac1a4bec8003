//! A simulated run of SIGMA: a mobile node with two radios changes its address during a download.

use node::{Mark, Value};
use recorder::run::Outcome;
use scenario::Scenario;
use trace::{HostId, Record, What};

fn run(settings: &[&str]) -> Outcome {
    let (file, text) = Scenario::find("sigma/handoff").unwrap();
    let settings: Vec<_> = settings.iter().map(|setting| setting.parse().unwrap()).collect();
    let outcome = recorder::run::simulate(Scenario::plan(&file, &text, &settings, 1).unwrap()).unwrap();
    assert_eq!(outcome.doubts, [], "{:#?}", outcome.handoffs);
    outcome
}

fn marks<'a>(run: &'a Outcome, host: &str) -> Vec<(&'a Record, &'a Mark)> {
    let is_there = |id: HostId| run.host(id) == host;
    let marks = run.records.iter().filter_map(|record| match &record.what {
        What::Marked(mark) if is_there(record.host) => Some((record, mark)),
        _ => None,
    });
    marks.collect()
}

fn field(mark: &Mark, name: &str) -> Option<Value> {
    mark.fields.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone())
}

/// Returns the names of a host's marks that are in `wanted`, in the order of time.
fn in_order(run: &Outcome, host: &str, wanted: &[&str]) -> Vec<String> {
    let names = marks(run, host).into_iter().map(|(_, mark)| mark.name.to_owned());
    names.filter(|name| wanted.contains(&name.as_str())).collect()
}

fn at(run: &Outcome, host: &str, name: &str) -> u64 {
    let (record, _) = marks(run, host).into_iter().find(|(_, mark)| mark.name == name).unwrap();
    record.at.0 / 1_000_000
}

#[test]
fn a_download_goes_on_while_the_address_changes() {
    let run = run(&[]);
    let steps: [&str; 8] = [
        "address_ready",
        "add_sent",
        "add_acknowledged",
        "handoff",
        "first_data",
        "primary_acknowledged",
        "location_known",
        "address_gone",
    ];
    let told = in_order(&run, "mobile", &steps);
    let first = ["address_ready", "location_known"].map(str::to_owned);
    assert_eq!(told[..2], first, "the first network is nothing that one moves to");
    let switch = &told[2..];
    assert_eq!(switch.len(), 8, "each once: {switch:?}");
    let place = |name: &str| switch.iter().position(|other| other == name).unwrap();
    let follow = |names: &[&str]| assert!(names.is_sorted_by_key(|name| place(name)), "{switch:?}");
    follow(&["address_ready", "add_sent", "add_acknowledged", "handoff", "primary_acknowledged"]);
    // Data may overtake the acknowledgment, and does not wait for the location manager.
    follow(&["handoff", "first_data", "address_gone"]);
    follow(&["primary_acknowledged", "location_known", "address_gone"]);
    let changes = ["peer_added", "peer_primary", "switched", "peer_deleted"];
    let mut heard = in_order(&run, "correspondent", &changes);
    heard.sort();
    assert_eq!(heard, ["peer_added", "peer_deleted", "peer_primary", "switched"]);
    let (_, last) = marks(&run, "manager").into_iter().rfind(|(_, mark)| mark.name == "located").unwrap();
    assert_eq!(field(last, "address"), Some(Value::from("10.1.6.100")));
}

#[test]
fn no_byte_is_lost_and_no_tenth_of_a_second_is_without_any() {
    let run = run(&[]);
    let (_, done) = marks(&run, "mobile").into_iter().find(|(_, mark)| mark.name == "done").unwrap();
    assert_eq!(done.fields, [("bytes", Value::Int(2_000_000))], "all of them, and all right");
    // The shutdown of the association, after the last byte, takes one more acknowledgment.
    let begun = at(&run, "mobile", "first_byte");
    let read = |record: &&Record| record.what.read().is_some();
    let ended = run.records.iter().rfind(read).unwrap().at.0 / 1_000_000;
    let mut bins = vec![0; ((ended - begun) / 100) as usize];
    for record in &run.records {
        let bin = (record.at.0 / 1_000_000).saturating_sub(begun) / 100;
        if let (Some(bytes), Some(bin)) = (record.what.read(), bins.get_mut(bin as usize)) {
            *bin += bytes;
        }
    }
    assert!(bins.iter().all(|bytes| *bytes > 0), "{bins:?}");
    assert_eq!(run.handoffs.len(), 1);
    assert_eq!((run.handoffs[0].kind.as_str(), run.handoffs[0].lost()), ("overlap", 0));
}

#[test]
fn without_overlap_the_connection_survives_and_every_part_of_the_outage_has_an_owner() {
    let run = run(&["mobile-node.radios=[\"air\"]", "bulk-server.bytes=2200000"]);
    let (_, done) = marks(&run, "mobile").into_iter().find(|(_, mark)| mark.name == "done").unwrap();
    assert_eq!(done.fields, [("bytes", Value::Int(2_200_000))]);
    assert_eq!(run.handoffs.len(), 1);
    assert_eq!(run.handoffs[0].kind, "break");
    let outage = run.handoffs[0].outage().unwrap();
    assert!(outage.is_explained(), "{:?} of {:?}", outage.unexplained(), outage.span());
}

/// A receive buffer of less than 4096 bytes must be refused. The error must name the place in the file and the smallest
/// allowed value.
#[test]
fn a_buffer_that_is_too_small_is_refused() {
    let (file, text) = Scenario::find("sigma/handoff").unwrap();
    let refusal = |at: usize, bytes: u32| {
        let pieces: Vec<&str> = text.split("buffer = 16384").collect();
        assert_eq!(pieces.len(), 3, "of the correspondent and of the mobile node");
        let buffers = [0, 1].map(|place| format!("buffer = {}", if place == at { bytes } else { 16384 }));
        let text = [pieces[0], &buffers[0], pieces[1], &buffers[1], pieces[2]].concat();
        match Scenario::plan(&file, &text, &[], 1) {
            Ok(plan) => plan.world().err().map(|error| error.to_string()),
            Err(error) => Some(error.to_string()),
        }
    };
    for (at, host) in ["correspondent", "mobile"].into_iter().enumerate() {
        assert_eq!(refusal(at, 4096), None);
        for bytes in [0, 1499, 1500, 4095] {
            let said = refusal(at, bytes).unwrap();
            let parts = [file.as_str(), host, "sctp", "`buffer` must be at least 4096"];
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        }
    }
}
