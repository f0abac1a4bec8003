//! Tests of the causes of outages, for example a link at the other end of the flow, packets that are too big, or a
//! connection that is opening.

use super::stages::{opens_meanwhile, share_out};
use super::{FlowCost, Outage, Owner, Recovery};
use crate::run::{Outcome, simulate};
use scenario::Scenario;
use trace::{Record, What};
use wire::{Duration, Iface, Instant};

fn run(text: &str) -> Outcome {
    simulate(Scenario::plan("download.toml", text, &[], 1).unwrap()).unwrap()
}

const DOWNLOAD: &str = include_str!("../../../../scenarios/mobile-ip/download.toml");

/// Runs a scenario in which a mobile node at home sends questions to a second mobile node. The second has no link from
/// 4.38 s to 6.38 s. The first begins a handoff at 4.39 s.
fn other_end_away() -> Outcome {
    let server = r#"role = [{ kind = "apps/bulk-server", at = "correspondent:9000", bytes = 1_500_000 }]"#;
    let client = r#"{ kind = "apps/bulk-client", to = "correspondent:9000", start = "0.5s" }"#;
    let asks = r#"{ kind = "apps/request-client", to = "other:5001", start = "0.5s", every = "50ms" }"#;
    let other = r#"
[host.other]
address = "10.1.0.8"
course.1 = [["0s", -50], ["4.38s", -50], ["4.38s", -120], ["6.38s", -120], ["6.38s", -50]]
course.2 = [["0s", -120]]
role = [
    { kind = "mobile-ip/mobile-node" },
    { kind = "apps/roam", start = "home", follow = 3 },
    { kind = "apps/request-server", at = "other:5001" },
]
"#;
    let text = DOWNLOAD.replace(server, "").replace(client, asks);
    let text = text.replace("{ at = \"4.3s\", to = \"foreign\" }", "{ at = \"4.39s\", to = \"home\" }");
    run(&format!("{text}{other}").replace("duration = \"10s\"", "duration = \"20s\""))
}

#[test]
fn the_link_of_the_other_end_owns_what_this_host_waits_for() {
    let outcome = other_end_away();
    let outage = outcome.handoffs[0].outage().unwrap_or_else(|| panic!("{:?}", outcome.handoffs));
    let [from, to] = [outcome.flows[0].from.host, outcome.flows[0].to.host];
    let other = if from == outcome.handoffs[0].host { to } else { from };
    let link = outage
        .owners
        .iter()
        .find(|owner| owner.stage == Some(node::Stage::Link) && owner.hosts == Some((other, other)));
    let link = link.unwrap_or_else(|| panic!("{outage:?}"));
    assert!(
        link.span() > Duration::from_millis(1_500) && link.span() < Duration::from_millis(2_200),
        "{outage:?}"
    );
    assert_eq!(outage.owners.iter().map(Owner::span).sum::<Duration>(), outage.span());
    assert!(
        crate::report::text(&outcome).contains("  down .. up at other\n"),
        "{}",
        crate::report::text(&outcome)
    );
}

/// The cell of a mobile node is cut for 641 ms, and its radio needs 489 ms more. Before it has its link again, its agent expires, and
/// it tries the agent of another cell: a handoff begins without a link (found by the hunt at seed 21400).
#[test]
fn a_link_that_was_lost_before_a_handoff_owns_its_outage() {
    let server = r#"{ kind = "apps/bulk-server", at = "correspondent:9000", bytes = 1_500_000 }"#;
    let source = r#"{ kind = "apps/constant-rate", to = "mobile:9001", rate = 31, size = 613, start = "1s", stop = "9s" }"#;
    let mobile = r#"[host.mobile]
address = "10.1.0.7"
role = [
    { kind = "mobile-ip/mobile-node" },
    { kind = "apps/roam", start = "home", moves = [{ at = "2.061s", to = "foreign" }] },
    { kind = "apps/sink", at = "mobile:9001" },
]

[[event]]
at = "2.806s"
kind = "cut"
cell = 2

[[event]]
at = "3.447s"
kind = "restore"
cell = 2
"#;
    let text = DOWNLOAD.split("[host.mobile]").next().unwrap().replace(server, source);
    let text = format!("{text}{mobile}").replace("retune = \"5ms\"", "retune = \"489ms\"");
    let outcome = run(&text);
    let report = crate::report::text(&outcome);
    let [hole] = outcome.holes.as_slice() else { panic!("{report}") };
    let crate::handoff::Experience::Outage(hole) = &hole.experience else { panic!("{report}") };
    let link = |outage: &Outage| -> Duration {
        outage.owners.iter().filter(|owner| owner.stage == Some(node::Stage::Link)).map(Owner::span).sum()
    };
    assert_eq!(link(hole), hole.span(), "{report}");
    let outage = outcome.handoffs[1].outage().unwrap_or_else(|| panic!("{report}"));
    // The link is back 489 ms after the cell. The packet that ends the outage was sent shortly before.
    let back = Instant::from_millis(3_447 + 489);
    let packet = Duration::from_millis(1000 / 31 + 1);
    assert!(outage.owners[0].to <= back && outage.owners[0].to + packet > back, "{report}");
    assert_eq!(outage.owners[0].stage, Some(node::Stage::Link), "{report}");
    assert!(outage.is_explained(), "{report}");
}

/// A refused tuning changes no link, so it is the cause of no outage.
#[test]
fn a_refused_tuning_changes_no_cause() {
    let mut outcome = other_end_away();
    let expected = format!("{:?}", outcome.handoffs);
    let outage = outcome.handoffs[0].outage().unwrap();
    let [from, to] = [outage.from, outage.to];
    let hosts = [outcome.flows[0].from.host, outcome.flows[0].to.host];
    let span = Duration::from_millis(200);
    let times = std::iter::successors(Some(from + span), |at| Some(*at + span)).take_while(|at| *at < to);
    for at in times.collect::<Vec<_>>() {
        for host in hosts {
            let index = outcome.records.partition_point(|record| record.at <= at);
            let refused =
                [What::Tuned(Iface(1), wire::Cell(9)), What::Down(Iface(1), node::Link::UNSUPPORTED.into())];
            let refused = refused.map(|what| Record { at, host, what });
            outcome.records.splice(index..index, refused);
        }
    }
    let again = Outcome::new(outcome.plan, outcome.backend, outcome.records, None);
    assert_eq!(format!("{:?}", again.handoffs), expected);
}

/// Datagrams are too big for the network that the host moves to, and the next handoff ends the outage.
#[test]
fn what_is_too_big_owns_an_outage_that_the_next_handoff_ends() {
    let server = r#"{ kind = "apps/bulk-server", at = "correspondent:9000", bytes = 1_500_000 }"#;
    let source = r#"{ kind = "apps/constant-rate", to = "mobile:9000", rate = 50, size = 1200, start = "0.5s", stop = "9s" }"#;
    let text = DOWNLOAD
        .replace(server, source)
        .replace(
            r#"{ kind = "apps/bulk-client", to = "correspondent:9000", start = "0.5s" }"#,
            r#"{ kind = "apps/sink", at = "mobile:9000" }"#,
        )
        .replace("ends = [\"router\", \"foreign\"]", "ends = [\"router\", \"foreign\"]\nmtu = 1000")
        .replace("to = \"foreign\" }]", "to = \"foreign\" }, { at = \"6.3s\", to = \"home\" }]");
    let outcome = run(&text);
    let outage = outcome.handoffs[0].outage().unwrap_or_else(|| panic!("{:?}", outcome.handoffs));
    assert!(outage.unexplained().is_zero(), "{outage:?}");
    let owner =
        outage.owners.iter().find(|owner| owner.ends == "too_big").unwrap_or_else(|| panic!("{outage:?}"));
    // The router notifies the home agent, which notifies the sender. The datagrams enter the tunnel all the same (RFC
    // 2003, section 5), so the router drops each.
    let by = owner.hosts.map(|(_, host)| outcome.host(host).into_owned());
    assert_eq!(by.as_deref(), Some("router"));
    assert!(owner.span() > Duration::from_millis(1_900), "{outage:?}");
    assert_eq!(outage.owners.iter().map(Owner::span).sum::<Duration>(), outage.span());
}

/// A connection is requested just before the cut, opens when the request is retransmitted, and carries no data. The
/// outage ends when the connection is open.
#[test]
fn a_connection_that_opens_late_and_is_idle_was_cut_until_it_was_open() {
    let outcome = late_opening();
    let cost = &outcome.handoffs[0].flows[0];
    let outage = cost.experience.outage().unwrap_or_else(|| panic!("{:?}", outcome.handoffs));
    let opened = outcome.packets[cost.flow].opening.unwrap().to;
    assert_eq!((outage.to, cost.recovery), (opened, Recovery::At(opened)), "{outage:?}");
    assert!(outage.span() < Duration::from_secs(2), "{outage:?}");
    assert_eq!(outage.owners.iter().map(Owner::span).sum::<Duration>(), outage.span());
    assert!(outage.unexplained().is_zero(), "{outage:?}");
}

/// Runs the download with a connection that opens more than 0.5 s after the cut. At both ends, removes the records of
/// the stream's data after the opening, and the records of drops and losses after the opening.
fn late_opening() -> Outcome {
    let text = DOWNLOAD
        .replace("start = \"0.5s\"", "start = \"4.299s\"")
        .replace("retune = \"5ms\"", "retune = \"50ms\"");
    let whole = run(&text);
    let ends = [whole.flows[0].from.host, whole.flows[0].to.host];
    let opened = whole.packets[0].opening.unwrap().to;
    assert!(opened > whole.handoffs[0].cut + Duration::from_millis(500), "{opened:?}");
    let idle = |record: &&Record| {
        let is_stream = match &record.what {
            What::App(event) => !matches!(
                event.change,
                node::AppChange::Asked { .. } | node::AppChange::Opened(_) | node::AppChange::Accepted { .. }
            ),
            What::Received(iface, _) | What::Sent(iface, _) => *iface == Iface::HOST,
            What::Dropped(..) | What::Lost(..) => true,
            _ => false,
        };
        !(is_stream && record.at >= opened && ends.contains(&record.host))
    };
    let records: Vec<Record> = whole.records.iter().filter(idle).cloned().collect();
    Outcome::new(whole.plan.clone(), whole.backend, records, None)
}

/// The server accepts an association and sends immediately. The server's acknowledgment and data are lost, because the
/// client's cell is gone. The client retransmits in the next cell, and adds the new address when the association is
/// open.
#[test]
fn an_association_that_is_open_at_the_server_alone_opens_after_the_handoff() {
    let text = ASKS
        .replace(r#""apps/request-server", at"#, r#""apps/bulk-server", bytes = 20000, at"#)
        .replace(
            r#"transport = "sctp", start = "0.5s", exchanges = 60"#,
            r#"transport = "sctp", start = "1.93s""#,
        )
        .replace("apps/request-client", "apps/bulk-client")
        .replace(r#"address_delay = "1s", "#, "")
        .replace(r#"["2s", -50], ["2.5s", -96]"#, r#"["2s", -50], ["2s", -96]"#)
        .replace(r#"["1.5s", -96], ["2s", -60], ["2.5s", -50]"#, r#"["2.3s", -96], ["2.3s", -50]"#);
    let outcome = run(&text);
    let outage = outcome.handoffs[0].outage().unwrap_or_else(|| panic!("{:?}", outcome.handoffs));
    let opened = outcome.packets[0].opening.unwrap().to;
    assert!(opened > outage.from && opened < outage.to, "{opened:?} {outage:?}");
    assert!(outage.unexplained().is_zero(), "{outage:?}");
}

/// A client sends no question for 3 s. In this time, its host moves three times: to another cell, back, and again to
/// the other cell, whose address the host has already added. No data are due, so the flow has no outage.
#[test]
fn a_flow_that_sends_nothing_during_three_moves_has_no_outage() {
    let text = ASKS
        .replace(
            r#"start = "0.5s", exchanges = 60"#,
            r#"start = "1.5s", answer = 20000, every = "3s", exchanges = 2"#,
        )
        .replace(r#"address_delay = "1s", "#, "")
        .replace(
            r#"["2s", -50], ["2.5s", -96]"#,
            r#"["1.9s", -50], ["1.9s", -96], ["3.1s", -96], ["3.1s", -50], ["4.1s", -50], ["4.1s", -96]"#,
        )
        .replace(
            r#"["1.5s", -96], ["2s", -60], ["2.5s", -50]"#,
            r#"["2.1s", -96], ["2.1s", -50], ["2.9s", -50], ["2.9s", -96], ["3.4s", -96], ["3.4s", -50]"#,
        );
    let outcome = run(&text);
    assert_eq!(outcome.handoffs.len(), 3);
    let costs = outcome.handoffs.iter().flat_map(|handoff| &handoff.flows);
    let effects: Vec<_> = costs.map(|cost| cost.experience.millis()).collect();
    // After a second without data, the flow is idle.
    assert_eq!(effects, [Some(0.0), Some(0.0), None, None, None, None], "{:?}", outcome.handoffs);
}

/// The cell is lost, is heard again for less time than the radio needs to come up, and is lost again. The run has one
/// handoff.
#[test]
fn a_link_that_is_lost_once_is_one_handoff() {
    let way = r#"
course.1 = [["0s", -50], ["4.3s", -50], ["4.3s", -120], ["5.05s", -120], ["5.05s", -50], ["5.101s", -50], ["5.101s", -120], ["6s", -120], ["6s", -50]]
course.2 = [["0s", -120]]
"#;
    let text = DOWNLOAD.replace("[host.mobile]\n", &format!("[host.mobile]{way}"));
    let text = text.replace("moves = [{ at = \"4.3s\", to = \"foreign\" }]", "follow = 3");
    let outcome = run(&text.replace("duration = \"10s\"", "duration = \"20s\""));
    let is_begin =
        |record: &&Record| matches!(&record.what, What::Marked(mark) if mark.name == node::HANDOFF);
    assert_eq!(outcome.records.iter().filter(is_begin).count(), 2, "the radio tries twice");
    let [handoff] = outcome.handoffs.as_slice() else { panic!("{:?}", outcome.handoffs) };
    let outage = handoff.outage().unwrap();
    assert!(outage.span() > Duration::from_millis(1_700) && handoff.lost() > 0, "{handoff:?}");
    assert_eq!(outage.owners[0].name(), "link");
    assert!(outage.owners[0].span() > Duration::from_millis(1_700), "{outage:?}");
}

/// A mobile node moves between a home network and two foreign ones, 0.3 s in each. RFC 5944, section 3.6.3, allows one
/// registration a second. The wait until the next registration is allowed is part of the registration.
#[test]
fn the_wait_for_the_rate_of_registrations_is_a_part_of_the_registration() {
    let second = r#"
[wire.further]
ends = ["router", "other"]
rate = "10Mb/s"
delay = "5ms"
net = "10.0.3.0/24"

[cell.3]
station = "other"
rate = "2Mb/s"
net = "10.3.0.0/24"

[host.other]
role = [{ kind = "mobile-ip/foreign-agent" }]
"#;
    let places = ["foreign", "home", "other", "foreign", "other", "home"];
    let course = (0_u64..15).zip(places.iter().cycle());
    let course =
        course.map(|(place, to)| format!("{{ at = \"{}us\", to = \"{to}\" }}", 1_274_394 + place * 300_000));
    let moves = format!("moves = [{}]", course.collect::<Vec<_>>().join(", "));
    let text = DOWNLOAD
        .replace("rate = \"100Mb/s\"\ndelay = \"1ms\"", "rate = \"10Mb/s\"\ndelay = \"5ms\"")
        .replace("rate = \"100Mb/s\"", "rate = \"10Mb/s\"")
        .replace("bytes = 1_500_000", "bytes = 300_000")
        .replace("moves = [{ at = \"4.3s\", to = \"foreign\" }]", &moves)
        .replace("duration = \"10s\"", "duration = \"60s\"");
    let outcome = run(&format!("{text}{second}"));
    let outages = outcome.handoffs.iter().filter_map(super::Handoff::outage);
    let owners: Vec<&Owner> = outages.clone().flat_map(|outage| &outage.owners).collect();
    assert!(owners.iter().any(|owner| owner.begins == "registration_waits"), "{owners:#?}");
    for outage in outages {
        assert!(outage.unexplained().is_zero(), "{outage:?}");
    }
}

/// A SIGMA mobile node that sends questions to a server hears its second cell 0.5 s before it loses the first.
const ASKS: &str = r#"
about = "asks"
duration = "10s"
[wire.server]
ends = ["campus", "correspondent"]
rate = "10Mb/s"
delay = "10ms"
net = "10.0.0.0/24"
[wire.first]
ends = ["campus", "gateway1"]
rate = "10Mb/s"
delay = "5ms"
net = "10.0.1.0/24"
[wire.second]
ends = ["campus", "gateway2"]
rate = "10Mb/s"
delay = "5ms"
net = "10.0.2.0/24"
[wire.names]
ends = ["campus", "manager"]
rate = "10Mb/s"
delay = "1ms"
net = "10.0.3.0/24"
[sigma]
zone = "x.example"
key = "000102030405060708090a0b0c0d0e0f"
[host.manager]
role = [{ kind = "sigma/location-manager" }]
[cell.1]
station = "gateway1"
rate = "2Mb/s"
net = "10.1.0.0/24"
[cell.2]
station = "gateway2"
rate = "2Mb/s"
net = "10.2.0.0/24"
[host.correspondent]
role = [
    { kind = "sigma/correspondent", sctp = { rto_min = "200ms" } },
    { kind = "apps/request-server", at = "correspondent:9002", transport = "sctp" },
]
[host.campus]
[host.gateway1]
[host.gateway2]
[host.mobile]
radios = 2
course.1 = [["0s", -50], ["2s", -50], ["2.5s", -96]]
course.2 = [["0s", -96], ["1.5s", -96], ["2s", -60], ["2.5s", -50]]
role = [
    { kind = "sigma/mobile-node", addresses = ["10.1.0.100", "10.2.0.100"], address_delay = "1s", signal = { hold = "250ms" }, sctp = { rto_min = "200ms" } },
    { kind = "apps/request-client", to = "correspondent:9002", transport = "sctp", start = "0.5s", exchanges = 60 },
]
"#;

/// The host waits for an address that it began to acquire while it still had another network.
#[test]
fn an_address_that_is_begun_before_the_cut_owns_what_is_left_of_it() {
    let outcome = run(ASKS);
    let outage = outcome.handoffs[0].outage().unwrap_or_else(|| panic!("{:?}", outcome.handoffs));
    assert!(outage.unexplained().is_zero(), "{outage:?}");
    let address = outage.owners.iter().find(|owner| owner.stage == Some(node::Stage::Address));
    assert!(address.unwrap().span() > Duration::from_millis(450), "{outage:?}");
}

/// The host has both networks for 0.1 s: it loses the first one before the answer to its new address arrives. The
/// host's data waits for this answer, and then for the answer to the change of the path.
#[test]
fn the_answer_to_a_change_of_the_path_owns_what_the_host_waits_for_it() {
    use node::Stage::{PathSwitch, Registration};
    let text = ASKS
        .replace(r#"["2s", -50], ["2.5s", -96]]"#, r#"["2.1s", -50], ["2.1s", -120]]"#)
        .replace(r#"["1.5s", -96], ["2s", -60], ["2.5s", -50]]"#, r#"["2s", -96], ["2s", -50]]"#)
        .replace(r#"address_delay = "1s", "#, "")
        .replace(r#"hold = "250ms""#, r#"hold = "100ms""#)
        .replace("exchanges = 60", r#"exchanges = 60, every = "50ms""#)
        .replace(r#"delay = "5ms""#, r#"delay = "60ms""#);
    let outcome = run(&text);
    let handoff = &outcome.handoffs[0];
    let from_host = |flow: &&FlowCost| outcome.flows[flow.flow].from.host == handoff.host;
    let (asks, answers): (Vec<_>, Vec<_>) = handoff.flows.iter().partition(from_host);
    // The next question waits for the answer, so no question is due.
    assert_eq!(asks[0].experience, super::Experience::None, "{handoff:?}");
    let outage = answers[0].experience.outage().unwrap_or_else(|| panic!("{handoff:?}"));
    let stages: Vec<_> = outage.owners.iter().map(|owner| owner.stage).collect();
    assert_eq!(stages, [Some(Registration), Some(PathSwitch)], "{outage:?}");
    assert!(outage.unexplained().is_zero(), "{outage:?}");
}

/// Data that was sent in the first cell is retransmitted in the second cell, whose MTU is 600 bytes. The fragments end
/// the outage.
#[test]
fn what_is_sent_again_in_fragments_ends_an_outage_that_is_explained() {
    let text = ASKS
        .replace(r#"["2s", -50], ["2.5s", -96]]"#, r#"["2.1s", -50], ["2.1s", -120]]"#)
        .replace(r#"address_delay = "1s", "#, "")
        .replace("exchanges = 60", "answer = 20000, exchanges = 60")
        .replace("[cell.2]", "[cell.2]\nmtu = 600");
    let outcome = run(&text);
    let to_host = |flow: &&FlowCost| outcome.flows[flow.flow].to.host == outcome.handoffs[0].host;
    let hears = outcome.handoffs[0].flows.iter().find(to_host).unwrap();
    let outage = hears.experience.outage().unwrap_or_else(|| panic!("{:?}", outcome.handoffs));
    assert!(outage.unexplained().is_zero(), "{outage:?}");
    let is_fragment = |record: &&Record| {
        let What::Sent(_, packet) = &record.what else { return false };
        let header = wire::ipv4::Header::parse(&packet.bytes);
        header.is_ok_and(|(header, _)| header.is_fragment() && header.protocol == sctp::PROTOCOL)
    };
    assert!(
        outcome.records.iter().find(is_fragment).is_some_and(|record| record.at < outage.to),
        "{outage:?}"
    );
}

/// Sender and receiver are at home on one link. The home agent was the crossover, but does not forward the later
/// datagrams.
#[test]
fn a_datagram_that_does_not_go_through_the_crossover_ends_an_outage_that_is_explained() {
    let other = r#"
[host.other]
address = "10.1.0.8"
role = [
    { kind = "mobile-ip/mobile-node" },
    { kind = "apps/roam", start = "home" },
    { kind = "apps/constant-rate", to = "mobile:9010", rate = 50, size = 500, start = "1s", stop = "8s" },
]
"#;
    let client = r#"{ kind = "apps/bulk-client", to = "correspondent:9000", start = "0.5s" }"#;
    let text = DOWNLOAD
        .replace(r#"start = "home", moves = [{ at = "4.3s", to = "foreign" }]"#, HOMEWARD)
        .replace(client, r#"{ kind = "apps/sink", at = "mobile:9010" }"#);
    let outcome = run(&(text + other));
    let outage = outcome.handoffs[0].outage().unwrap_or_else(|| panic!("{:?}", outcome.handoffs));
    assert!(outage.unexplained().is_zero(), "{outage:?}");
}

const HOMEWARD: &str = r#"start = "foreign", moves = [{ at = "4.3s", to = "home" }]"#;

/// A host has its link again at 20 ms, and registers from 70 to 90 ms. The time between belongs to the recovery of the
/// connection that opens.
#[test]
fn a_connection_that_opens_waits_for_what_it_sends_again_between_two_stages() {
    use node::Stage::{Link, Recovery, Registration};
    let ms = |ms: u64| wire::Instant(ms * 1_000_000);
    let stage = |stage, from, to, begins: &str, ends: &str| Owner {
        stage: Some(stage),
        from: ms(from),
        to: ms(to),
        begins: begins.to_owned(),
        ends: ends.to_owned(),
        hosts: Some((trace::HostId(1), trace::HostId(1))),
    };
    let stages =
        vec![stage(Link, 5, 20, "tune", "up"), stage(Registration, 70, 90, "add_sent", "add_acknowledged")];
    let shared = share_out(ms(0), ms(100), stages);
    let owners = opens_meanwhile(shared.clone(), ms(70));
    let stages: Vec<_> = owners.iter().map(|owner| owner.stage).collect();
    assert_eq!(stages, [Some(Recovery), Some(Link), Some(Recovery), Some(Registration), None]);
    assert_eq!(owners[0], stage(Recovery, 0, 5, "cut", "tune"));
    assert_eq!(owners[2], stage(Recovery, 20, 70, "up", "add_sent"));
    // If the connection opens before the registration begins, the time between link and registration has no cause.
    assert_eq!(opens_meanwhile(shared.clone(), ms(69))[1..], shared[1..]);
}

/// The first home agent does not exist. The mobile node leaves its agent and comes back while it waits for a reply, so it
/// sends its next request, to the other home agent, only when this wait ends. The wait is a part of the registration.
#[test]
fn the_wait_for_a_home_agent_that_does_not_answer_is_a_part_of_the_registration() {
    let outcome = run(FIRST_AGENT_MISSING);
    assert!(outcome.doubts.is_empty(), "{:?}", outcome.doubts);
    let outage = outcome.handoffs[1].outage().unwrap_or_else(|| panic!("{:?}", outcome.handoffs));
    let waits = |owner: &&Owner| owner.stage == Some(node::Stage::Registration);
    let span: Duration = outage.owners.iter().filter(waits).map(Owner::span).sum();
    assert!(span > Duration::from_secs(3), "{outage:?}");
}

const FIRST_AGENT_MISSING: &str = r#"
about = "the first home agent does not exist"
duration = "14s"

[radio]
retune = "5ms"
attach = "5ms"

[mobile-ip]
key = "000102030405060708090a0b0c0d0e0f"

[wire.internet]
ends = ["fixed", "r0"]
rate = "100Mb/s"
delay = "1ms"
net = "10.0.0.0/24"

[wire.w1]
ends = ["r0", "r1"]
rate = "100Mb/s"
delay = "1ms"
net = "10.0.2.0/24"

[wire.w2]
ends = ["r0", "r2"]
rate = "100Mb/s"
delay = "1ms"
net = "10.0.3.0/24"

[cell.1]
station = "r0"
rate = "11Mb/s"
delay = "1ms"
net = "10.1.0.0/24"

[cell.2]
station = "r1"
rate = "11Mb/s"
delay = "1ms"
net = "10.2.0.0/24"

[cell.3]
station = "r2"
rate = "11Mb/s"
delay = "1ms"
net = "10.3.0.0/24"

[host.r0]
role = [{ kind = "mobile-ip/home-agent" }]

[host.r1]
role = [{ kind = "mobile-ip/foreign-agent" }]

[host.r2]
role = [{ kind = "mobile-ip/foreign-agent" }]

[host.fixed]
role = [{ kind = "apps/constant-rate", to = "m:9001", rate = 32, size = 500, start = "1s", stop = "12s" }]

[host.m]
address = "10.1.0.7"
role = [
    { kind = "mobile-ip/mobile-node", link_trigger = false, home_agent = { address = "10.1.0.250", spi = 256, key = "000102030405060708090a0b0c0d0e0f" }, backup_home_agents = [{ address = "10.1.0.1", spi = 256, key = "000102030405060708090a0b0c0d0e0f" }] },
    { kind = "apps/roam", start = "r1", moves = [{ at = "3.5s", to = "r2" }, { at = "3.7s", to = "r1" }] },
    { kind = "apps/sink", at = "m:9001" },
]
"#;
