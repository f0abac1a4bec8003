//! Cellular IP under stress, in simulated runs: cells out of range, lost route-updates, quick successions of handoffs,
//! narrow links, two networks, and invalid configurations.
//!
//! ```text
//! correspondent ── gw ──┬── n0 ))) cell 1     m: from n0
//!                       └── n1 ))) cell 2
//! ```

use node::Mark;
use recorder::handoff::Experience;
use recorder::run::{Outcome, simulate};
use scenario::{Scenario, Setting};
use trace::What;

const NETWORK: &str = r#"
about = "Cellular IP under stress"
duration = "12s"
[radio]
retune = "5ms"
[cellular-ip]
network_key = "000102030405060708090a0b0c0d0e0f"
[wire.internet]
ends = ["correspondent", "gw"]
rate = "100Mb/s"
delay = "0.5ms"
[wire.w-n0]
ends = ["gw", "n0"]
rate = "100Mb/s"
delay = "2ms"
[wire.w-n1]
ends = ["gw", "n1"]
rate = "100Mb/s"
delay = "2ms"
[cell.1]
station = "n0"
rate = "11Mb/s"
[cell.2]
station = "n1"
rate = "11Mb/s"
[host.gw]
address = "10.1.0.1"
role = [{ kind = "cellular-ip/gateway", uplink = "correspondent" }]
[host.n0]
role = [{ kind = "cellular-ip/station", uplink = "gw" }]
[host.n1]
role = [{ kind = "cellular-ip/station", uplink = "gw" }]
"#;

/// Returns a scenario with 50 packets per second to the host and, if `speaks`, as many from it.
fn scenario(mobile: &str, course: &str, speaks: bool) -> String {
    let source =
        r#"{ kind = "apps/constant-rate", to = "TO", rate = 50, size = 100, start = "0.5s", stop = "11s" }"#;
    let up = if speaks { format!(", {}", source.replace("TO", "correspondent:9001")) } else { String::new() };
    format!(
        "{NETWORK}[host.correspondent]\naddress = \"10.2.0.2\"\ndefault_route = \"gw\"\n\
         role = [{}, {{ kind = \"apps/sink\", at = \"correspondent:9001\" }}]\n\
         [host.m]\naddress = \"10.1.0.7\"\n{course}\n\
         role = [{{ kind = \"cellular-ip/mobile\", start = \"n0\", {mobile} }}, {{ kind = \"apps/sink\", at = \"m:9000\" }}{up}]\n",
        source.replace("TO", "m:9000"),
    )
}

fn run(text: &str, seed: u64) -> Outcome {
    simulate(Scenario::plan("stress.toml", text, &[], seed).unwrap()).unwrap()
}

fn refusal(text: &str) -> String {
    Scenario::plan("stress.toml", text, &[], 1).map(|_| ()).unwrap_err().to_string()
}

fn marks<'a>(outcome: &'a Outcome, name: &'a str) -> impl Iterator<Item = &'a Mark> {
    outcome.records.iter().filter_map(move |record| match &record.what {
        What::Marked(mark) if mark.name == name => Some(mark),
        _ => None,
    })
}

fn outages(outcome: &Outcome) -> Vec<f64> {
    let spans =
        outcome.handoffs.iter().flat_map(|handoff| &handoff.flows).map(|cost| match &cost.experience {
            Experience::None => 0.0,
            Experience::Outage(outage) => outage.span().as_secs_f64(),
            Experience::Never { .. } | Experience::NotMeasured => f64::INFINITY,
        });
    spans.collect()
}

/// If the new cell is out of range, the host is back in its old cell after two retunings and one round trip. The next
/// datagram is at most 20 ms later.
#[test]
fn a_handoff_to_a_cell_out_of_range_costs_two_retunings() {
    let course = "course.1 = [[\"0s\", -50]]\ncourse.2 = [[\"0s\", -120], [\"6s\", -120], [\"6s\", -50]]";
    for kind in ["hard", "semisoft"] {
        let moves = format!(
            "moves = [{{ at = \"2s\", to = \"n1\", kind = \"{kind}\" }}, {{ at = \"8s\", to = \"n1\", kind = \"{kind}\" }}]"
        );
        let outcome = run(&scenario(&moves, course, false), 1);
        assert_eq!(outcome.handoffs.len(), 2, "{kind}");
        assert!(outages(&outcome).iter().all(|outage| *outage < 0.04), "{kind}: {:?}", outages(&outcome));
        assert_eq!(marks(&outcome, node::HANDOFF_FAILED).count(), 1);
        assert!(outcome.failures.is_empty() && outcome.doubts.is_empty(), "{:?}", outcome.failures);
        let lost: u64 = outcome.flows.iter().map(|flow| flow.lost).sum();
        assert!(lost <= 3, "{kind}: {lost} lost");
        let text = recorder::report::text(&outcome);
        assert!(text.contains("handoff of m to n1 failed at 2."), "{text}");
    }
}

/// When a host loses its cell, it immediately uses the other cell, which it hears. When it loses the other cell too, no
/// cell is in reach until the first cell returns.
#[test]
fn a_host_that_loses_its_cell_goes_to_the_strongest_that_it_hears() {
    let course = "course.1 = [[\"0s\", -50], [\"2s\", -50], [\"2s\", -120], [\"7s\", -120], [\"7s\", -60]]\n\
                  course.2 = [[\"0s\", -50], [\"5s\", -50], [\"5s\", -120]]";
    let outcome = run(&scenario("moves = []", course, true), 1);
    let found: Vec<(&str, &str)> =
        outcome.handoffs.iter().map(|handoff| (handoff.from.as_str(), handoff.to.as_str())).collect();
    assert_eq!(found, [("n0", "n1"), ("n1", "n0")]);
    let outages = outages(&outcome);
    assert!(outages.iter().all(|outage| *outage < 2.1), "{outages:?}");
    assert!(outages.iter().filter(|outage| **outage > 0.04).count() <= 2, "{outages:?}");
    assert!(
        outcome.failures.is_empty() && outcome.doubts.is_empty(),
        "{:?} {:?}",
        outcome.failures,
        outcome.doubts
    );
}

/// Runs 20 handoffs of a host that uses 90 % of its cell for datagrams to the correspondent. Returns the numbers of
/// frames that were lost because the radio left the cell before it had sent them, and because the radio was changing
/// cells. `drain` applies only when the host tunes its radio to another cell. A radio that loses its cell drops its
/// frames immediately.
fn left_behind(kind: &str, drain: &str) -> [u64; 2] {
    let moves: Vec<String> = (0..20)
        .map(|number| {
            let to = if number % 2 == 0 { "n1" } else { "n0" };
            format!("{{ at = \"{}ms\", to = \"{to}\", kind = \"{kind}\" }}", 1000 + 457 * number)
        })
        .collect();
    let text = scenario(&format!("moves = [{}]", moves.join(", ")), "", true)
        .replace("rate = 50, size = 100", "rate = 160, size = 1400")
        .replace("11Mb/s", "2Mb/s")
        .replace("to = \"m:9000\", rate = 160", "to = \"m:9000\", rate = 1")
        .replace("retune = \"5ms\"", &format!("retune = \"5ms\"\ndrain = \"{drain}\""));
    let outcome = run(&text, 1);
    assert!(outcome.doubts.is_empty(), "{:?}", outcome.doubts);
    assert_eq!(outcome.handoffs.len(), 20);
    ["sender_left_cell", "radio_retuning"]
        .map(|reason| outcome.ledger.dropped.get(reason).copied().unwrap_or_default())
}

/// When a host tunes its radio to another cell, the frames that the radio has not sent are lost. With `drain`, the
/// radio sends them first.
#[test]
fn a_radio_that_has_time_for_it_leaves_no_frame_behind() {
    for kind in ["hard", "semisoft"] {
        let without = left_behind(kind, "0s");
        assert!(without[0] >= 8, "{kind}: {without:?}");
        let with = left_behind(kind, "100ms");
        assert!(with[0] == 0 && with[1] <= without[1] + 10, "{kind}: {with:?}, without time {without:?}");
    }
}

/// A download over semisoft handoffs. Segments that the old base station had delivered arrive again from the delay
/// device. Each is a duplicate of its handoff.
#[test]
fn segments_that_arrive_twice_are_counted_as_duplicates_of_their_handoff() {
    let network = NETWORK
        .replace("11Mb/s", "2Mb/s")
        .replace("delay = \"2ms\"", "delay = [\"41ms\", \"1ms\"]")
        .replace("uplink = \"correspondent\"", "uplink = \"correspondent\", delay_device = 8")
        .replace("uplink = \"gw\"", "uplink = \"gw\", delay_device = 8");
    let moves = ["n1", "n0", "n1", "n0"].iter().zip(1..);
    let moves = moves.map(|(to, at)| format!("{{ at = \"{at}s\", to = \"{to}\", kind = \"semisoft\" }}"));
    let text = format!(
        "{network}[host.correspondent]\naddress = \"10.2.0.2\"\ndefault_route = \"gw\"\n\
         role = [{{ kind = \"apps/bulk-server\", at = \"correspondent:9000\", bytes = 1_000_000 }}]\n\
         [host.m]\naddress = \"10.1.0.7\"\ntcp = {{ receive_buffer = 16384 }}\n\
         role = [{{ kind = \"cellular-ip/mobile\", start = \"n0\", moves = [{}] }}, \
         {{ kind = \"apps/bulk-client\", to = \"correspondent:9000\", start = \"0.5s\" }}]\n",
        moves.collect::<Vec<_>>().join(", ")
    );
    let outcome = run(&text, 1);
    assert!(outcome.failures.is_empty() && outcome.doubts.is_empty(), "{:?}", outcome.doubts);
    let mobile = outcome.plan.host_names().iter().position(|name| name == "m").unwrap() as u32;
    let mut arrived = std::collections::BTreeMap::new();
    for record in outcome.records.iter().filter(|record| record.host.0 == mobile) {
        if let What::Sent(wire::Iface::HOST, packet) = &record.what {
            *arrived.entry(packet.id).or_insert(0u64) += 1;
        }
    }
    let twice: u64 = arrived.values().map(|count| count - 1).sum();
    let counted: Vec<u64> = outcome.handoffs.iter().map(recorder::handoff::Handoff::duplicates).collect();
    assert_eq!(counted.len(), 4);
    assert!(counted.iter().all(|count| *count > 0), "{counted:?}");
    assert_eq!(counted.iter().sum::<u64>(), twice, "{counted:?}");
}

#[test]
fn a_first_attach_out_of_range_is_made_elsewhere_and_orders_are_taken() {
    let course = "course.1 = [[\"0s\", -120], [\"2s\", -120], [\"2s\", -50]]\ncourse.2 = [[\"0s\", -50]]";
    let moves = "moves = [{ at = \"6s\", to = \"n0\", kind = \"hard\" }, { at = \"8s\", to = \"n1\", kind = \"hard\" }]";
    let outcome = run(&scenario(moves, course, false), 1);
    assert_eq!(outcome.handoffs.len(), 2);
    assert!(outages(&outcome).iter().all(|outage| *outage < 0.04));
    assert!(outcome.flows[0].lost <= 2 && outcome.failures.is_empty(), "{:?}", outcome.failures);
}

/// Half of all frames are lost, and with them all route-updates of some handoffs. A node that refuses the host's data
/// requests another route-update, once per second. With 50 datagrams per second in each direction, no stall may reach 9
/// s. Without these requests the host would be cut off permanently.
#[test]
fn lost_route_updates_do_not_cut_a_host_off() {
    let moves = "moves = { between = [\"n1\", \"n0\"], every = \"2s\", kind = \"hard\" }";
    for repeats in ["[]", "[\"30ms\", \"90ms\"]"] {
        let text = scenario(&format!("update_repeats = {repeats}, {moves}"), "", true);
        let text = text.replace("rate = \"11Mb/s\"", "rate = \"11Mb/s\"\nloss = 0.5");
        for seed in 1..=20 {
            let outcome = run(&text, seed);
            let stall = outcome.flows.iter().map(|flow| flow.longest_stall.as_secs_f64()).fold(0.0, f64::max);
            assert!(stall < 9.0, "repeats {repeats}, seed {seed}: {stall} s");
        }
    }
}

/// Handoff commands every 80 ms with a semisoft-delay of 100 ms, in turn to the other cell and back. Each command back
/// aborts the handoff before it, and the last handoff is completed.
#[test]
fn the_last_of_many_orders_is_carried_out_and_the_report_has_the_others() {
    let step = |index: u32| {
        let (at, to) = (1000 + 80 * index, if index.is_multiple_of(2) { "n1" } else { "n0" });
        format!("{{ at = \"{at}ms\", to = \"{to}\", kind = \"semisoft\" }}")
    };
    let moves = format!("moves = [{}]", (0..21).map(step).collect::<Vec<_>>().join(", "));
    let outcome = run(&scenario(&moves, "", false), 1);
    assert_eq!(outcome.handoffs.len(), 1);
    assert_eq!((outcome.handoffs[0].to.as_str(), outcome.flows[0].lost), ("n1", 0));
    let text = recorder::report::text(&outcome);
    assert!(
        text.contains("handoff of m to n1 aborted 10 times, first at 1.080 s: `n0` was ordered"),
        "{text}"
    );
}

/// In the second handoff, the host returns below n0 while n0 still has its mapping to n00. Only the gateway has both
/// paths, so n0 must not be a second crossover.
#[test]
fn a_stale_mapping_makes_no_crossover() {
    let cell = |station: &str, uplink: &str, number: u32| {
        format!(
            "[wire.w-{station}]\nends = [\"{uplink}\", \"{station}\"]\nrate = \"100Mb/s\"\ndelay = \"2ms\"\n\
             [cell.{number}]\nstation = \"{station}\"\nrate = \"11Mb/s\"\n\
             [host.{station}]\nrole = [{{ kind = \"cellular-ip/station\", uplink = \"{uplink}\" }}]\n"
        )
    };
    let moves = "moves = [{ at = \"2s\", to = \"n10\", kind = \"semisoft\" }, { at = \"4s\", to = \"n01\", kind = \"semisoft\" },\
                 { at = \"6s\", to = \"n00\", kind = \"semisoft\" }]";
    let below = [cell("n00", "n0", 3), cell("n01", "n0", 4), cell("n10", "n1", 5)].concat();
    let text = scenario(moves, "", true).replace("start = \"n0\"", "start = \"n00\"") + &below;
    let outcome = run(&text, 1);
    let host = |record: &trace::Record| outcome.host(record.host).into_owned();
    let is_begun =
        |record: &&trace::Record| matches!(&record.what, What::Marked(mark) if mark.name == "semisoft_begun");
    let crossovers: Vec<String> = outcome.records.iter().filter(is_begun).map(host).collect();
    assert_eq!(crossovers, ["gw", "gw", "n0"]);
    assert!(outcome.flows.iter().all(|flow| flow.lost == 0), "{:?}", outcome.flows);
}

/// A link below the gateway has a smaller MTU than the other links. The sender's path MTU must be reduced, so that the
/// download completes.
#[test]
fn tcp_learns_of_a_narrow_link_in_the_access_network() {
    let deep = "[wire.deep]\nends = [\"n0\", \"n00\"]\nrate = \"100Mb/s\"\ndelay = \"1ms\"\n[cell.3]\nstation = \"n00\"\nrate = \"11Mb/s\"\n\
                [host.n00]\nrole = [{ kind = \"cellular-ip/station\", uplink = \"n0\" }]\n";
    let hosts = "[host.correspondent]\naddress = \"10.2.0.2\"\ndefault_route = \"gw\"\n\
                 role = [{ kind = \"apps/bulk-server\", at = \"correspondent:5001\", bytes = 1000000 }]\n\
                 [host.m]\naddress = \"10.1.0.7\"\n\
                 role = [{ kind = \"cellular-ip/mobile\", start = \"n00\", moves = [] },\n\
                         { kind = \"apps/bulk-client\", to = \"correspondent:5001\", start = \"0.5s\" }]\n";
    let text = format!("{NETWORK}{deep}{hosts}");
    for narrow in ["wire.w-n0", "wire.deep", "cell.3"] {
        let settings: [Setting; 1] = [format!("{narrow}.mtu=1200").parse().unwrap()];
        let plan = Scenario::plan("stress.toml", &text, &settings, 1).unwrap();
        let outcome = simulate(plan).unwrap();
        assert!(outcome.failures.is_empty(), "{narrow}: {:?}", outcome.failures);
        assert_eq!(outcome.flows[0].bytes, 1_000_000, "{narrow}");
    }
}

/// The uplinks of a host's first station lead to the host's gateway. The host stays in the network of this gateway.
#[test]
fn two_access_networks_are_two() {
    let second = "[wire.i2]\nends = [\"correspondent\", \"gw2\"]\nrate = \"100Mb/s\"\ndelay = \"1ms\"\n\
                  [wire.a2]\nends = [\"gw2\", \"p0\"]\nrate = \"100Mb/s\"\ndelay = \"1ms\"\n\
                  [cell.3]\nstation = \"p0\"\nrate = \"2Mb/s\"\n\
                  [host.gw2]\naddress = \"10.3.0.1\"\nrole = [{ kind = \"cellular-ip/gateway\", uplink = \"correspondent\" }]\n\
                  [host.p0]\nrole = [{ kind = \"cellular-ip/station\", uplink = \"gw2\" }]\n";
    let text = format!("{second}{}", scenario("moves = []", "", false));
    let (head, tail) = text.split_at(second.len());
    let text = format!("{tail}{head}");
    let of = |text: &str, host: &str| {
        let plan = Scenario::plan("stress.toml", text, &[], 1).unwrap();
        let found = plan.hosts.iter().find(|plan| plan.config.name == host).unwrap();
        found.text.lines().find(|line| line.starts_with("gateway = ")).unwrap().to_owned()
    };
    let away = text
        .replace("start = \"n0\"", "start = \"p0\"")
        .replace("default_route = \"gw\"", "default_route = \"gw2\"");
    assert_eq!([of(&text, "m"), of(&away, "m")], ["gateway = \"10.1.0.1\"", "gateway = \"10.3.0.1\""]);
    assert_eq!([of(&text, "n0"), of(&text, "p0")], ["gateway = \"10.1.0.1\"", "gateway = \"10.3.0.1\""]);
    assert_eq!(run(&away, 1).flows[0].lost, 0);
    let out = text.replace("moves = []", "moves = [{ at = \"2s\", to = \"p0\", kind = \"hard\" }]");
    assert!(refusal(&out).contains("no station `p0`; known: n0, n1"), "{}", refusal(&out));
}

#[test]
fn configurations_that_cannot_work_are_refused_before_the_start() {
    let text = scenario("moves = []", "", false);
    let n0 = "[host.n0]\nrole = [{ kind = \"cellular-ip/station\", uplink = \"gw\"";
    for (from, to, says) in [
        (
            n0,
            format!("{n0}, route_timeout = \"5s\""),
            "`host.n0.role[0].route_timeout`: mappings end after a route_timeout of 5s",
        ),
        (
            "moves = []",
            "moves = [], route_update_time = \"5s\"".to_owned(),
            "`host.m.role[0].route_update_time`: mappings end",
        ),
        (
            "moves = []",
            "moves = [], semisoft_delay = \"12s\"".to_owned(),
            "`host.m.role[0].semisoft_delay`: the semisoft_delay of 12s must be shorter",
        ),
        (n0, n0.replace("\"gw\"", "\"correspondent\""), "no wire between"),
    ] {
        assert!(text.contains(from));
        let refusal = refusal(&text.replacen(from, &to, 1));
        assert!(refusal.contains(says) && refusal.contains("stress.toml, line "), "{refusal}");
    }
    let cycle = text.replace("ends = [\"gw\", \"n1\"]", "ends = [\"n0\", \"n1\"]").replace(
        "[host.n0]\nrole = [{ kind = \"cellular-ip/station\", uplink = \"gw\" }]\n[host.n1]\nrole = [{ kind = \"cellular-ip/station\", uplink = \"gw\" }]",
        "[host.n0]\nrole = [{ kind = \"cellular-ip/station\", uplink = \"n1\" }]\n[host.n1]\nrole = [{ kind = \"cellular-ip/station\", uplink = \"n0\" }]",
    );
    let refusal = refusal(&cycle);
    assert!(refusal.contains("uplink`: the uplinks form a cycle: n0 > n1 > n0"), "{refusal}");
}
