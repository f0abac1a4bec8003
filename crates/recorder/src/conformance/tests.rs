//! Planted divergences are found, and permitted differences are not reported as divergences.

use super::*;
use crate::run;
use scenario::{Scenario, Setting};
use trace::What;
use wire::PacketId;

const FIRST: &str = include_str!("../../../../scenarios/first.toml");
const MOBILE: HostId = HostId(4);
const GATEWAY: HostId = HostId(1);

fn records(settings: &[&str], seed: u64) -> Vec<Record> {
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    run::simulate(Scenario::plan("first.toml", FIRST, &settings, seed).unwrap()).unwrap().records
}

/// Compares runs with the default numbers of Mobile IP.
fn compare(first: &[Record], second: &[Record]) -> Comparison {
    let numbers = Numbers::default();
    super::compare([(first, &numbers), (second, &numbers)])
}

fn control(record: &Record) -> Option<Control> {
    match &record.what {
        What::Sent(_, packet) | What::Received(_, packet) => Control::of(packet, &Numbers::default()),
        _ => None,
    }
}

/// Returns the indices of the control messages that a host sent or received.
fn of(records: &[Record], host: HostId, sent: bool) -> Vec<usize> {
    let wanted =
        |r: &Record| r.host == host && matches!(r.what, What::Sent(..)) == sent && control(r).is_some();
    (0..records.len()).filter(|index| wanted(&records[*index])).collect()
}

fn caught(first: &[Record], second: &[Record]) -> Divergence {
    let there = compare(first, second).divergence.expect("a divergence");
    let back = compare(second, first).divergence.expect("the same the other way round");
    assert_eq!((there.host, there.sequence, there.place), (back.host, back.sequence, back.place));
    there
}

#[test]
fn a_run_agrees_with_itself_and_with_another_seed() {
    let first = records(&[], 1);
    for second in [first.clone(), records(&[], 2)] {
        let comparison = compare(&first, &second);
        assert_eq!(comparison.divergence, None);
        assert!(comparison.messages > 50 && comparison.nodes == 4 && comparison.handoffs == 4);
        assert_eq!((comparison.refreshes, comparison.cut_off), (Excluded::default(), 0));
    }
}

#[test]
fn fifteen_milliseconds_of_difference_are_none() {
    let first = records(&[], 1);
    let mut second = first.clone();
    for record in &mut second {
        record.at += Duration::from_millis(15);
    }
    assert_eq!(compare(&first, &second).divergence, None);
}

#[test]
fn two_swapped_are_caught() {
    let first = records(&[], 1);
    let sent = of(&first, MOBILE, true);
    let semisoft = sent.iter().position(|index| control(&first[*index]).unwrap().is_semisoft()).unwrap();
    let (a, b) = (sent[semisoft - 1], sent[semisoft]);
    let mut second = first.clone();
    second[a].what = first[b].what.clone();
    second[b].what = first[a].what.clone();
    let found = caught(&first, &second);
    assert_eq!((found.host, found.sequence, found.place), (MOBILE, Sequence::Sent, semisoft));
    assert!(found.why.starts_with("S is 0 in the first run"), "{}", found.why);
}

/// Two protocols of one node react to one event. Their order relative to each other does not matter, but the order
/// within each does.
#[test]
fn messages_of_two_protocols_may_change_places_and_those_of_one_may_not() {
    let text = include_str!("../../../../scenarios/indirect-tcp/handoff-time.toml");
    let plan = Scenario::plan("handoff-time.toml", text, &[], 1).unwrap();
    let first = run::simulate(plan).unwrap().records;
    let sent = of(&first, MOBILE, true);
    let protocol = |index: usize| control(&first[index]).unwrap().protocol();
    let swapped = |a: usize, b: usize| {
        let mut second = first.clone();
        (second[a].what, second[b].what) = (first[b].what.clone(), first[a].what.clone());
        second
    };
    let together = |pair: &&[usize]| first[pair[0]].at == first[pair[1]].at;
    let pairs: Vec<&[usize]> = sent.windows(2).filter(together).collect();
    // In each foreign network, the registration request and the greeting leave at the same instant. At home, the
    // greeting needs ARP, which waits for the end of the registration.
    assert!(pairs.len() == 2 && pairs.iter().all(|pair| protocol(pair[0]) != protocol(pair[1])));
    for pair in pairs {
        assert_eq!(compare(&first, &swapped(pair[0], pair[1])).divergence, None);
    }
    let greetings: Vec<usize> =
        sent.iter().copied().filter(|index| protocol(*index) == "Indirect TCP").collect();
    let found = caught(&first, &swapped(greetings[0], greetings[1]));
    assert_eq!((found.host, found.sequence, found.place), (MOBILE, Sequence::Sent, 1));
}

#[test]
fn one_missing_and_one_extra_are_caught() {
    let first = records(&[], 1);
    for index in of(&first, GATEWAY, false) {
        let mut second = first.clone();
        second.remove(index);
        let found = caught(&first, &second);
        assert_eq!((found.host, found.sequence), (GATEWAY, Sequence::Received), "record {index}");
    }
    for index in of(&first, MOBILE, true) {
        let mut second = first.clone();
        second.insert(index, first[index].clone());
        let found = caught(&first, &second);
        assert_eq!((found.host, found.sequence), (MOBILE, Sequence::Sent), "record {index}");
    }
}

#[test]
fn one_that_is_fifty_milliseconds_late_is_caught() {
    let first = records(&[], 1);
    for index in of(&first, MOBILE, true) {
        let mut second = first.clone();
        let what = control(&first[index]).unwrap().to_string();
        second[index].at += Duration::from_millis(50);
        second.sort_by_key(|record| record.at);
        let found = caught(&first, &second);
        assert_eq!((found.host, found.sequence), (MOBILE, Sequence::Sent), "{what}");
    }
}

#[test]
fn a_handoff_that_is_late_as_a_whole_is_caught() {
    let first = records(&[], 1);
    let from = Instant::from_millis(3_000);
    let mut second = first.clone();
    second.iter_mut().filter(|r| r.at >= from).for_each(|record| record.at += Duration::from_millis(60));
    let found = caught(&first, &second);
    assert_eq!((found.host, found.sequence, found.place), (MOBILE, Sequence::Handoffs, 3));
}

#[test]
fn one_changed_byte_is_caught_wherever_it_is() {
    let first = records(&[], 1);
    let index = of(&first, GATEWAY, false)[3];
    let What::Received(_, packet) = &first[index].what else { unreachable!() };
    for byte in 0..packet.bytes.len() {
        let mut second = first.clone();
        if let What::Received(_, packet) = &mut second[index].what {
            packet.bytes[byte] ^= 0x10;
        }
        let found = caught(&first, &second);
        assert_eq!(
            (found.host, found.sequence, found.place),
            (GATEWAY, Sequence::Received, 4),
            "byte {byte}"
        );
    }
}

#[test]
fn a_changed_byte_under_a_corrected_checksum_is_caught_unless_the_wall_clock_decides_it() {
    let first = records(&[], 1);
    let index = of(&first, GATEWAY, false)[3];
    let caught = |byte: usize| {
        let mut second = first.clone();
        if let What::Received(_, packet) = &mut second[index].what {
            packet.bytes[byte] ^= 0x10;
            packet.bytes[22..24].fill(0);
            let sum = wire::checksum(&packet.bytes[20..]);
            packet.bytes[22..24].copy_from_slice(&sum.to_be_bytes());
        }
        compare(&first, &second).divergence.is_some()
    };
    let timestamp = 24..32;
    let digest = 48..64;
    for byte in (20..22).chain(24..70) {
        let by_wall_clock = timestamp.contains(&byte) || digest.contains(&byte);
        assert_eq!(caught(byte), !by_wall_clock, "byte {byte}");
    }
}

/// A message that cannot be read is not compared, because a field that cannot be read may differ.
#[test]
fn messages_that_cannot_be_read_are_not_compared_and_are_counted() {
    let text = include_str!("../../../../scenarios/mobile-ip/smooth-handoff.toml");
    let plan = Scenario::plan("smooth-handoff.toml", text, &[], 1).unwrap();
    let first = run::simulate(plan).unwrap().records;
    let whole = compare(&first, &first);
    assert_eq!((whole.divergence, whole.unreadable), (None, 0));
    let unknown = Numbers { update: 88, ..Numbers::default() };
    let found = super::compare([(&first, &unknown), (&first, &unknown)]);
    assert!(found.divergence.is_none() && found.unreadable > 0);
    assert_eq!(found.messages + found.unreadable, whole.messages);
    // A message that only one run can read is a divergence.
    assert!(super::compare([(&first, &unknown), (&first, &Numbers::default())]).divergence.is_some());
}

/// Returns records in which the route-update timer expires just before the first handoff.
fn with_refresh() -> Vec<Record> {
    records(&["mobile.route_update_time=900ms"], 1)
}

#[test]
fn a_refresh_near_a_handoff_may_be_missing_and_is_counted() {
    let first = with_refresh();
    let by_timer = |r: &Record| matches!(&r.what, What::Marked(mark) if mark.fields.iter().any(|(_, v)| v.as_text() == Some("timer")));
    let mark = first.iter().position(by_timer).unwrap();
    let What::Sent(_, packet) = &first[mark + 1].what else { panic!("the message follows its mark") };
    let id = packet.id;
    let is_of = |r: &Record, id: PacketId| match &r.what {
        What::Sent(_, packet) | What::Received(_, packet) => packet.id == id,
        _ => false,
    };
    let mut second = first.clone();
    second.remove(mark);
    second.retain(|record| !is_of(record, id));
    let comparison = compare(&first, &second);
    assert_eq!(comparison.divergence, None);
    assert_eq!(comparison.refreshes.first, comparison.refreshes.second + 1);

    // Only a route-update of the timer may be missing. So a missing route-update with another cause is a divergence.
    let mut first = first;
    if let What::Marked(mark) = &mut first[mark].what {
        mark.fields.retain(|(name, _)| *name != "why");
    }
    assert!(compare(&first, &second).divergence.is_some());
}
