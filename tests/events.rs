//! Events of scenarios in the simulator: the effect of each kind, the end of every packet, and the recovery of every
//! protocol.

use recorder::run::{Outcome, simulate};
use scenario::{Plan, Scenario};
use trace::{HostId, What};
use wire::{Instant, PacketId};

fn plan(name: &str, events: &str) -> Plan {
    let (file, text) = Scenario::find(name).unwrap();
    Scenario::plan(&file, &format!("{text}\n{events}"), &[], 7).unwrap()
}

fn event(at_ms: u64, kind: &str, rest: &str) -> String {
    format!("[[event]]\nat = \"{at_ms}ms\"\nkind = \"{kind}\"\n{rest}\n")
}

fn run(name: &str, events: &[String]) -> Outcome {
    let outcome = simulate(plan(name, &events.concat())).unwrap();
    assert_eq!(outcome.doubts, [], "{name}: what was ordered is no doubt");
    assert!(outcome.ledger.balances());
    outcome
}

fn host(outcome: &Outcome, name: &str) -> HostId {
    HostId(outcome.plan.host_names().iter().position(|other| other == name).unwrap() as u32)
}

/// Returns the times at which applications of a host received datagrams, in milliseconds.
fn received(outcome: &Outcome, name: &str) -> Vec<u64> {
    let host = host(outcome, name);
    let came = outcome.records.iter().filter(|r| r.host == host && matches!(r.what, What::AppReceived(_)));
    came.map(|record| record.at.0 / 1_000_000).collect()
}

fn dropped(outcome: &Outcome, reason: &str) -> u64 {
    outcome.ledger.dropped.get(reason).copied().unwrap_or_default()
}

fn within(times: &[u64], from: u64, to: u64) -> usize {
    times.iter().filter(|at| (from..to).contains(*at)).count()
}

#[test]
fn a_host_that_crashes_is_silent_until_it_restarts() {
    let host = "host = \"correspondent\"";
    let outcome = run("first", &[event(2500, "crash", host), event(3500, "restart", host)]);
    let came = received(&outcome, "mobile");
    assert_eq!(within(&came, 2600, 3500), 0);
    let sent = within(&came, 3600, 4000);
    assert!((15..=21).contains(&sent), "50 a second, and none of the past: {sent}");
    let again = simulate(outcome.plan.clone()).unwrap();
    assert_eq!(again.fingerprint, outcome.fingerprint);
}

#[test]
fn frames_to_a_crashed_host_are_lost_for_a_named_reason_and_the_outage_names_the_event() {
    let outcome =
        run("first", &[event(2500, "crash", "host = \"b2\""), event(2800, "restart", "host = \"b2\"")]);
    assert!(dropped(&outcome, "host_down") > 10, "{:?}", outcome.ledger.dropped);
    let text = recorder::report::text(&outcome);
    assert!(text.contains("1  2.500  crash of b2"), "{text}");
    let came = received(&outcome, "mobile");
    assert!(within(&came, 4200, 5000) > 30, "it is served again: {came:?}");
}

/// The base station of the old cell crashes, and a handoff ends the outage. The loss before the handoff must have a
/// cause as well.
#[test]
fn what_a_handoff_ends_is_accounted_for_since_the_crash() {
    let outcome = run("first", &[event(2500, "crash", "host = \"b2\"")]);
    let first = outcome.handoffs.iter().find(|handoff| handoff.begun.0 > 2_500_000_000).unwrap();
    let holes = outcome.holes.iter().filter_map(|hole| match &hole.experience {
        recorder::handoff::Experience::Outage(outage) if outage.to == first.begun => Some(outage),
        _ => None,
    });
    let holes: Vec<_> = holes.collect();
    assert!(!holes.is_empty(), "{:?}", outcome.holes);
    for outage in holes {
        assert!((2_500_000_000..2_560_000_000).contains(&outage.from.0), "the last one was under way");
        let known = outage.owners.iter().filter(|owner| owner.stage.is_some());
        let known: u128 = known.map(|owner| owner.to.since(owner.from).as_nanos()).sum();
        assert_eq!(known, outage.to.since(outage.from).as_nanos(), "{:?}", outage.owners);
    }
}

#[test]
fn an_outage_names_the_event_of_its_own_path() {
    let other = [event(2400, "cut", "cell = 3"), event(2900, "restore", "cell = 3")];
    let own = [event(2500, "cut", "cell = 2"), event(2800, "restore", "cell = 2")];
    let outcome = run("first", &[other, own].concat());
    let text = recorder::report::text(&outcome);
    assert!(
        text.contains("cut of cell 2 .. restore of cell 2") && !text.contains("cut of cell 3 .."),
        "{text}"
    );
}

#[test]
fn what_was_ordered_is_in_the_page_of_a_run_and_in_its_figures() {
    let folder = tempfile::tempdir().unwrap();
    let events = [event(2500, "crash", "host = \"b2\""), event(2800, "restart", "host = \"b2\"")];
    let page =
        recorder::rundir::write(&run("first", &events), folder.path(), &recorder::rundir::Options::default())
            .unwrap();
    let said: Vec<_> = page.events.iter().map(|event| (event.at_s, &*event.kind, &*event.target)).collect();
    assert_eq!(said, [(2.5, "crash", "b2"), (2.8, "restart", "b2")]);
    for figure in ["handoffs", "flows"] {
        let svg = std::fs::read_to_string(folder.path().join(format!("figures/{figure}.svg"))).unwrap();
        assert!(svg.contains(">crash of b2<"), "{figure}");
    }
}

#[test]
fn a_stopped_host_keeps_everything_and_continues() {
    let host = "host = \"b1\"";
    let outcome = run("first", &[event(2500, "stop", host), event(2700, "continue", host)]);
    let whole = run("first", &[]);
    let came = received(&outcome, "mobile");
    assert_eq!(within(&came, 2560, 2700), 0, "{came:?}");
    assert_eq!(came.len(), received(&whole, "mobile").len(), "nothing is lost");
}

#[test]
fn a_cut_wire_carries_nothing_and_its_ends_know() {
    let wire = "wire = \"internet\"";
    let outcome = run("first", &[event(2500, "cut", wire), event(2900, "restore", wire)]);
    assert!((18..=21).contains(&dropped(&outcome, "link_cut")), "{:?}", outcome.ledger.dropped);
    let ends = |wanted: fn(&What) -> bool, at: u64| {
        outcome.records.iter().filter(|r| r.at == Instant::from_millis(at) && wanted(&r.what)).count()
    };
    assert_eq!(ends(|what| matches!(what, What::Down(..)), 2500), 2);
    assert_eq!(ends(|what| matches!(what, What::Up(..)), 2900), 2);
    let text = recorder::report::text(&outcome);
    assert!(text.contains("cut of wire internet .. restore of wire internet"), "{text}");
}

#[test]
fn a_cell_is_cut_for_all_or_for_one() {
    for rest in ["cell = 2", "cell = 2\nhost = \"mobile\""] {
        let outcome = run("first", &[event(2500, "cut", rest), event(2700, "restore", rest)]);
        let came = received(&outcome, "mobile");
        assert_eq!(within(&came, 2560, 2700), 0, "{rest}: {came:?}");
        assert!(within(&came, 3200, 4000) > 30, "{rest}: {came:?}");
    }
}

#[test]
fn loss_and_mtu_of_a_link_change_and_change_back() {
    let loss = |at, loss| event(at, "loss", &format!("wire = \"internet\"\nloss = {loss}"));
    let outcome = run("first", &[loss(2500, "1"), loss(2900, "0.0")]);
    assert!((19..=21).contains(&dropped(&outcome, "link_error")), "{:?}", outcome.ledger.dropped);
    let mtu = |at, mtu| event(at, "mtu", &format!("wire = \"path\"\nmtu = {mtu}"));
    let narrow = run("bulk", &[mtu(2000, 600), mtu(4000, 1500)]);
    let longest = |from, to| {
        let sent = narrow
            .records
            .iter()
            .filter(|r| r.at > Instant::from_millis(from) && r.at < Instant::from_millis(to));
        let length = |what: &What| match what {
            What::Received(iface, packet) if iface.0 != 0 => packet.bytes.len(),
            _ => 0,
        };
        sent.map(|record| length(&record.what)).max().unwrap_or_default()
    };
    assert_eq!((longest(500, 2000), longest(2100, 4000)), (1500, 600));
    assert_eq!(narrow.failures, Vec::<String>::new(), "TCP finds the size of the path");
}

#[test]
fn a_clock_step_moves_no_timer() {
    let step = event(2500, "clock", "host = \"correspondent\"\nstep = \"-3s\"");
    let outcome = run("first", &[step]);
    let whole = run("first", &[]);
    let sent = |outcome: &Outcome| {
        let here = host(outcome, "correspondent");
        let sends = outcome.records.iter().filter(|r| r.host == here && matches!(r.what, What::AppSent(_)));
        sends.map(|record| record.at).collect::<Vec<_>>()
    };
    assert_eq!(sent(&outcome), sent(&whole));
}

/// Returns the bytes that the mobile node's applications read between two times in milliseconds.
fn read(outcome: &Outcome, from: u64, to: u64) -> u64 {
    let mobile = host(outcome, "mobile");
    let here = |r: &&trace::Record| {
        r.host == mobile && r.at >= Instant::from_millis(from) && r.at < Instant::from_millis(to)
    };
    outcome.records.iter().filter(here).filter_map(|record| record.what.read()).sum()
}

#[test]
fn a_full_disk_fails_what_is_stored_until_it_is_free() {
    let host = "host = \"home\"";
    let name = "mobile-ip/download";
    let whole = run(name, &[]);
    assert!(read(&whole, 5000, 8000) > 100_000);
    let full = run(name, &[event(100, "disk-full", host), event(9000, "disk-free", host)]);
    assert_eq!(read(&full, 5000, 8000), 0, "no binding is stored, so none is used");
}

#[test]
fn what_is_durable_survives_a_crash_and_the_outage_names_it() {
    let host = "host = \"home\"";
    let outcome = run("mobile-ip/download", &[event(6000, "crash", host), event(7000, "restart", host)]);
    assert_eq!(read(&outcome, 6600, 7000), 0);
    assert!(read(&outcome, 7000, 10_000) > 10_000, "the binding was stored, and the tunnel is there again");
    let text = recorder::report::text(&outcome);
    assert!(text.contains("crash of home .. restart of home"), "{text}");
}

/// After crashes, cuts and stops in the middle of a run of each protocol, every packet has an end. A run with a crash
/// is reproducible.
#[test]
fn every_protocol_takes_crashes_and_cuts() {
    for name in ["first", "mobile-ip/download", "indirect-tcp/handoff-time", "sigma/handoff"] {
        let bare = plan(name, "");
        for target in bare.host_names() {
            let host = format!("host = \"{target}\"");
            let outcome = run(name, &[event(2000, "crash", &host), event(2500, "restart", &host)]);
            let again = simulate(outcome.plan.clone()).unwrap();
            assert_eq!(again.fingerprint, outcome.fingerprint, "{name}, {target}");
        }
        for (kind, end, rest) in [("cut", "restore", "wires"), ("stop", "continue", "hosts")] {
            let random = format!(
                "[[random_event]]\nkinds = [\"{kind}\"]\nrate = 2\nlasts = \"200ms\"\n# {rest} until {end}\n"
            );
            run(name, &[random]);
        }
    }
}

#[test]
fn packets_that_wait_for_a_stopped_host_are_held_at_the_end() {
    let outcome = run("first", &[event(5000, "stop", "host = \"b1\"")]);
    let held = outcome.records.iter().filter(|r| matches!(r.what, What::Held(_, id) if id != PacketId::NEW));
    assert!(held.count() > 10);
}

#[test]
fn a_home_agent_whose_clock_is_set_back_registers_as_before() {
    let step = event(3000, "clock", "host = \"home\"\nstep = \"-30s\"");
    let outcome = run("mobile-ip/download", &[step]);
    // The move is at 4.3 s.
    assert!(read(&outcome, 4500, 5500) > 100_000, "{}", read(&outcome, 4500, 5500));
}

/// A stopped host is notified of a clock step when it continues. The order of both events makes no difference.
#[test]
fn a_clock_that_is_set_while_its_host_is_stopped_is_set_when_it_goes_on() {
    let home = "host = \"home\"";
    let denials = |clock_at: u64| {
        let events = [
            event(3000, "stop", home),
            event(3200, "continue", home),
            event(clock_at, "clock", &format!("{home}\nstep = \"+100s\"")),
        ];
        let outcome = run("mobile-ip/download", &events);
        let is_denial = |what: &What| matches!(what, What::Marked(mark) if mark.name == "denied");
        outcome.records.iter().filter(|record| is_denial(&record.what)).count()
    };
    assert_eq!([2900, 3100, 3300].map(denials), [1; 3], "before it stops, meanwhile, and after");
}

/// If the mobile node's clock is wrong from the start, the home agent denies the first registration (code 133), and the
/// mobile node adopts the home agent's time.
#[test]
fn a_mobile_node_whose_clock_is_wrong_registers_by_the_home_agents_clock() {
    for step in ["+90s", "-90s"] {
        let outcome =
            run("mobile-ip/download", &[event(0, "clock", &format!("host = \"mobile\"\nstep = \"{step}\""))]);
        let marks = outcome.records.iter().filter_map(|record| match &record.what {
            What::Marked(mark) if ["denied", "registered"].contains(&mark.name) => Some(mark.name),
            _ => None,
        });
        let marks: Vec<&str> = marks.collect();
        assert_eq!(marks, ["denied", "registered", "registered"], "{step}: at home, and away");
        let text = recorder::report::text(&outcome);
        assert!(read(&outcome, 4500, 5500) > 100_000, "{step}: {text}");
    }
}

/// Returns the source port and the sequence number of each segment with SYN and without ACK that a host's stack sent.
fn calls(outcome: &Outcome, name: &str) -> Vec<(u16, u32)> {
    let host = host(outcome, name);
    let mut calls = Vec::new();
    for record in outcome.records.iter().filter(|record| record.host == host) {
        let What::Received(wire::Iface::HOST, packet) = &record.what else { continue };
        let Ok((header, payload)) = wire::ipv4::Header::parse(&packet.bytes) else { continue };
        // Bytes 0 and 1: the port; 4 to 7: the sequence number; 13: the flags.
        if header.protocol == 6 && payload[13] & 0x12 == 0x02 {
            let number = u32::from_be_bytes([payload[4], payload[5], payload[6], payload[7]]);
            calls.push((u16::from_be_bytes([payload[0], payload[1]]), number));
        }
    }
    calls.dedup();
    calls
}

/// A host that restarts chooses another initial sequence number for a new connection (RFC 9293, section 3.4.1, and RFC
/// 6528). So the peer cannot take its SYN for a segment of the old connection.
#[test]
fn a_host_that_restarts_opens_a_connection_of_its_own() {
    let host = "host = \"mobile\"";
    let outcome = run("mobile-ip/download", &[event(2000, "crash", host), event(3000, "restart", host)]);
    let calls = calls(&outcome, "mobile");
    let [first, second] = calls[..] else { panic!("{calls:?}") };
    assert_ne!(first.0, second.0);
    assert_ne!(first.1, second.1);
    let ports: Vec<u16> = outcome.flows.iter().map(|flow| flow.to.at.port()).collect();
    assert_eq!(ports, [first.0, second.0], "two flows, each with its own counts");
    assert!(outcome.flows[1].bytes > 500_000, "{}", outcome.flows[1].bytes);
    let again = simulate(outcome.plan.clone()).unwrap();
    assert_eq!(again.fingerprint, outcome.fingerprint);
}

/// The verification tag in SCTP's INIT also changes with a restart (RFC 9260, section 5.3.1). The association begins at
/// 1 s, after the restart.
#[test]
fn an_association_of_a_host_that_restarts_has_another_tag() {
    let tag = |events: &[String]| -> Option<Vec<u8>> {
        let outcome = run("sigma/handoff", events);
        outcome.records.iter().find_map(|record| {
            let What::Sent(_, packet) = &record.what else { return None };
            let (header, payload) = wire::ipv4::Header::parse(&packet.bytes).ok()?;
            // After the common header of 12 bytes comes the INIT chunk, with its tag after the chunk header of 4 bytes.
            let is_init = header.protocol == 132 && payload.get(12) == Some(&1);
            payload.get(16..20).filter(|_| is_init).map(<[u8]>::to_vec)
        })
    };
    let host = "host = \"mobile\"";
    let (first, second) = (tag(&[]), tag(&[event(500, "crash", host), event(700, "restart", host)]));
    assert!(first.is_some() && second.is_some() && first != second, "{first:?} {second:?}");
}

/// Datagrams that wait for a host that stays stopped count as never received, as TCP segments do.
#[test]
fn a_flow_to_a_host_that_stays_stopped_never_came_back() {
    let outcome = run("first", &[event(1500, "stop", "host = \"mobile\"")]);
    assert!(outcome.ledger.held > 100, "{:?}", outcome.ledger);
    let text = recorder::report::text(&outcome);
    assert!(outcome.failures.iter().any(|failure| failure.contains("no new data after")), "{text}");
    let outcome = run(
        "first",
        &[event(1500, "stop", "host = \"mobile\""), event(2500, "continue", "host = \"mobile\"")],
    );
    assert_eq!(outcome.failures, Vec::<String>::new());
}

/// If a host signals to a crashed base station, the report names the crash as the cause of this part of the outage.
#[test]
fn what_a_host_signals_to_a_crashed_station_is_due_to_the_crash() {
    let b2 = "host = \"b2\"";
    let outcome = run("first", &[event(1900, "crash", b2), event(2600, "restart", b2)]);
    let text = recorder::report::text(&outcome);
    assert!(text.contains("crash of b2 .. restart of b2"), "{text}");
}

/// A handoff to a cell that is cut fails. It has no latency, and the table shows that.
#[test]
fn a_handoff_that_failed_has_no_latency() {
    let outcome = run("first", &[event(900, "cut", "cell = 3"), event(1200, "restore", "cell = 3")]);
    let first = &outcome.handoffs[0];
    assert!(first.failed && first.latency.is_none(), "{first:?}");
    assert!(recorder::report::text(&outcome).contains("b3 (failed)"));
    assert!(outcome.handoffs[1..].iter().all(|handoff| !handoff.failed));
}

/// A full disk of a host that stores nothing has no effect, and the report gives the reason.
#[test]
fn a_full_disk_of_a_host_that_stores_nothing_is_named() {
    let full = |name: &str, host: &str| {
        recorder::report::text(&run(name, &[event(2000, "disk-full", &format!("host = \"{host}\""))]))
    };
    assert!(full("first", "b2").contains("disk full at b2: no effect"));
    assert!(!full("mobile-ip/download", "home").contains("no effect"));
}
