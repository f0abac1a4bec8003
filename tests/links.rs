//! Tests of links in the simulator: ports that are plugged in and out, segments that several hosts share, and chains of
//! routers.

use recorder::run::Outcome;
use scenario::{Scenario, Setting};
use std::collections::BTreeMap;
use trace::{HostId, Record, What};
use wire::ipv4;
use wire::{Cell, Duration, Iface, Instant, Ipv4Addr, Packet};

fn simulate(file: &str, text: &str, settings: &[&str]) -> Outcome {
    let settings: Vec<Setting> = settings.iter().map(|setting| setting.parse().unwrap()).collect();
    let plan = Scenario::plan(file, text, &settings, 1).unwrap();
    let outcome = recorder::run::simulate(plan).unwrap();
    assert!(outcome.doubts.is_empty(), "{:?}", outcome.doubts);
    assert_eq!(outcome.ledger.doubts(), []);
    assert!(outcome.ledger.balances());
    outcome
}

fn run(name: &str, settings: &[&str]) -> Outcome {
    let (file, text) = Scenario::find(name).unwrap();
    simulate(&file, &text, settings)
}

fn host(outcome: &Outcome, name: &str) -> HostId {
    HostId(outcome.plan.hosts.iter().position(|host| host.config.name == name).unwrap() as u32)
}

/// Returns the bits per second of datagrams of UDP, with all headers, that arrived at a host from 1 s to 3 s.
fn arrived(outcome: &Outcome, name: &str) -> f64 {
    let host = host(outcome, name);
    let span = Instant::from_millis(1000)..Instant::from_millis(3000);
    let bits = outcome.records.iter().filter_map(|record| match &record.what {
        What::Received(iface, packet) if record.host == host && *iface != Iface::HOST => {
            let is_udp = ipv4::protocol(&packet.bytes) == Some(ipv4::UDP);
            (is_udp && span.contains(&record.at)).then_some((packet.bytes.len() + 14) as f64 * 8.0)
        }
        _ => None,
    });
    bits.sum::<f64>() / 2.0
}

fn near(seen: f64, wanted: f64) {
    assert!((seen / wanted - 1.0).abs() < 0.02, "{seen:.0} b/s, not {wanted:.0}");
}

/// Two hosts that each send 12 Mb/s to the other. `more`: a further role of the second host.
fn both_ways(link: &str, more: &str) -> String {
    let role = |own: &str, to: &str, more: &str| {
        format!(
            "role = [{{ kind = 'apps/constant-rate', to = '{to}:9000', rate = 1000, size = 1472, start = '0.1s', stop = '3.5s' }}, \
             {{ kind = 'apps/sink', at = '{own}:9000' }}{more}]"
        )
    };
    let (router, other) = (role("router", "mobile", ""), role("mobile", "router", more));
    format!(
        "about = 'both ways'\nduration = '4s'\n{link}\n[host.router]\n{router}\n[host.mobile]\naddress = '10.1.0.2'\n{other}\n"
    )
}

#[test]
fn a_full_duplex_port_carries_its_rate_in_each_direction_and_a_cell_and_a_segment_share_it() {
    let cell = "[cell.1]\nstation = 'router'\nrate = '10Mb/s'\nnet = '10.1.0.0/24'\n";
    let port = format!("{cell}duplex = 'full'\n");
    let slow = format!("{port}uplink_rate = '4Mb/s'\n");
    let segment = "[segment.lan]\nhosts = ['router', 'mobile']\nrate = '10Mb/s'\nnet = '10.1.0.0/24'\n";
    for (link, down, up) in [(cell, 5e6, 5e6), (&port, 10e6, 10e6), (&slow, 10e6, 4e6), (segment, 5e6, 5e6)] {
        let more = if link == segment { "" } else { ", { kind = 'apps/roam' }" };
        let outcome = simulate("ways.toml", &both_ways(link, more), &[]);
        assert!(outcome.flows.iter().all(|flow| flow.bytes > 0), "both hosts receive");
        near(arrived(&outcome, "mobile"), down);
        near(arrived(&outcome, "router"), up);
    }
}

/// The cable is unplugged at 3 s, and plugged in 200 ms later. Its host is notified of both, and receives and sends
/// nothing in between.
#[test]
fn a_host_is_notified_that_its_cable_is_unplugged_and_plugged() {
    let outcome = run("links/plug", &[]);
    let mobile = host(&outcome, "mobile");
    let at = Instant::from_millis;
    let own = outcome.records.iter().filter(|record| record.host == mobile && record.at >= at(3000));
    let links: Vec<(Instant, String)> = own
        .clone()
        .filter_map(|record| match &record.what {
            What::Down(_, why) => Some((record.at, why.to_string())),
            What::Up(_, cell) => Some((record.at, format!("{cell:?}"))),
            _ => None,
        })
        .collect();
    assert_eq!(links, [(at(3000), "unplugged".to_owned()), (at(3200), format!("{:?}", Some(Cell(2))))]);
    let between = own.filter(|record| record.at < at(3200));
    let received =
        between.filter(|record| matches!(record.what, What::Received(iface, _) if iface != Iface::HOST));
    assert_eq!(received.count(), 0);
    assert!(outcome.flows.iter().all(|flow| flow.bytes == 6_000_000), "the download is complete");
}

#[test]
fn a_cable_is_cut_and_restored_by_events() {
    let (file, text) = Scenario::find("links/plug").unwrap();
    let events = "[[event]]\nat = '1.5s'\nkind = 'cut'\ncell = 1\nhost = 'mobile'\n\
                  [[event]]\nat = '2s'\nkind = 'restore'\ncell = 1\nhost = 'mobile'\n";
    let outcome = simulate(&file, &format!("{text}\n{events}"), &[]);
    let mobile = host(&outcome, "mobile");
    let downs = outcome.records.iter().filter_map(|record| match &record.what {
        What::Down(_, why) if record.host == mobile => Some(why.to_string()),
        _ => None,
    });
    assert_eq!(downs.collect::<Vec<_>>(), ["no carrier", "unplugged"]);
}

/// Returns the shortest time of a full packet through the tunnel from the home agent to the foreign agent.
fn through_the_tunnel(routers: u32) -> Duration {
    let outcome = run("links/plug", &[&format!("chain.net.routers={routers}"), "duration=5s"]);
    let (home, foreign) = (host(&outcome, "home"), host(&outcome, "foreign"));
    let full =
        |packet: &Packet| ipv4::protocol(&packet.bytes) == Some(ipv4::IPIP) && packet.bytes.len() == 1500;
    let (mut sent, mut times) = (BTreeMap::new(), Vec::new());
    for Record { at, host, what } in &outcome.records {
        match what {
            What::Sent(_, packet) if *host == home && full(packet) => drop(sent.insert(packet.id, *at)),
            What::Received(_, packet) if *host == foreign && full(packet) => {
                times.extend(sent.get(&packet.id).map(|sent| at.since(*sent)));
            }
            _ => {}
        }
    }
    times.into_iter().min().unwrap()
}

/// Each router of the chain adds the delay of one link, 1 ms, and the time of one packet on it.
#[test]
fn each_router_of_a_chain_adds_one_hop() {
    let packet = Duration::from_nanos(1514 * 8 * 10);
    for routers in [0, 1, 5, 20] {
        let hop = Duration::from_millis(1) + packet;
        assert_eq!(through_the_tunnel(routers), hop * (routers + 1), "{routers} routers");
    }
}

/// Three hosts of one segment receive a broadcast, and a unicast frame reaches its destination only. A router has two
/// segments.
#[test]
fn a_segment_joins_all_its_hosts() {
    let outcome = run("links/segments", &[]);
    assert!(outcome.flows.iter().all(|flow| flow.bytes == 1_500_000), "both downloads are complete");
    for name in ["red", "blue", "files", "mail", "router"] {
        let own = host(&outcome, name);
        let plan = &outcome.plan.hosts[own.index()];
        for record in outcome.records.iter().filter(|record| record.host == own) {
            let What::Received(iface, packet) = &record.what else { continue };
            let Some(port) = usize::from(iface.0).checked_sub(1).and_then(|index| plan.ports.get(index))
            else {
                continue;
            };
            assert!(packet.link.dst.is_group() || packet.link.dst == port.mac, "{name} received {packet:?}");
        }
    }
    let (file, text) = Scenario::find("links/segments").unwrap();
    let cut = "[[event]]\nat = '1s'\nkind = 'cut'\nwire = 'lan'\n[[event]]\nat = '1.2s'\nkind = 'restore'\nwire = 'lan'\n";
    let outcome = simulate(&file, &format!("{text}\n{cut}"), &[]);
    let downs = outcome.records.iter().filter(|record| matches!(record.what, What::Down(..)));
    let hosts: Vec<HostId> = downs.map(|record| record.host).collect();
    assert_eq!(hosts, ["router", "red", "blue"].map(|name| host(&outcome, name)));
    assert!(outcome.flows.iter().all(|flow| flow.bytes == 1_500_000), "both downloads are complete");
}

/// A mobile node in the overlap of two cells of one channel registers with the new agent while it receives data from the
/// old one. It loses no datagram. If it receives data of its own cell only, or no other cell at all, its data stop.
#[test]
fn a_node_in_the_overlap_of_two_cells_loses_nothing() {
    let lost = |settings: &[&str]| run("links/overlap", settings).flows[0].lost;
    assert_eq!(lost(&[]), 0);
    assert!(lost(&["radio.data=one"]) > 50);
    assert!(lost(&["radio.hears=cell"]) > 50);
    let outcome = run("links/overlap", &[]);
    let mobile = host(&outcome, "mobile");
    let downs = outcome
        .records
        .iter()
        .filter(|record| record.host == mobile && matches!(record.what, What::Down(..)));
    assert_eq!(downs.count(), 0, "the node hears a station all the time");
    let ups = outcome.records.iter().filter(|record| record.host == mobile);
    let ups: Vec<_> = ups
        .filter_map(|record| match &record.what {
            What::Up(_, cell) => Some((record.at.0 / 1_000_000, cell.map(|cell| cell.0))),
            _ => None,
        })
        .collect();
    assert_eq!(
        ups,
        [(5, Some(1)), (6000, Some(2))],
        "its radio is in the other cell, without an interruption"
    );
    // Advertisements of both agents, from the begin to the end of the overlap.
    for (agent, from, to) in [("home", 0, 6000), ("foreign", 3000, 9000)] {
        let mac = outcome.plan.hosts[host(&outcome, agent).index()].ports.last().unwrap().mac;
        let heard: Vec<Instant> = outcome
            .records
            .iter()
            .filter(|record| record.host == mobile)
            .filter_map(|record| match &record.what {
                What::Received(_, packet) if packet.link.src == mac && packet.link.dst.is_group() => {
                    Some(record.at)
                }
                _ => None,
            })
            .collect();
        let span = Instant::from_millis(from)..=Instant::from_millis(to);
        assert!(heard.len() >= 2 && heard.iter().all(|at| span.contains(at)), "{agent}: {heard:?}");
    }
}

/// With a hysteresis, an eager mobile node in the overlap changes when the signal of the other cell is stronger by 6 dB, and
/// not as soon as it hears the other agent. The record says why it stayed. It loses no datagram.
#[test]
fn a_node_in_the_overlap_waits_for_a_stronger_signal() {
    let (file, text) = Scenario::find("links/overlap").unwrap();
    // The signal of cell 2 becomes stronger by 6 dB at 4.55 s.
    let text = text.replace(
        r#"2 = [["0s", -120], ["3s", -120], ["3s", -62], ["9s", -62]]"#,
        r#"2 = [["0s", -120], ["3s", -120], ["3s", -85], ["6s", -25], ["9s", -25]]"#,
    );
    let outcome = simulate(&file, &text, &["mobile-node.signal_hysteresis=6"]);
    let foreign = node::Value::from(Ipv4Addr::new(10, 2, 0, 1));
    let decided = |name: &str, why: &str| {
        let found = outcome.records.iter().filter(|record| match &record.what {
            What::Marked(mark) if mark.name == name => {
                let has = |key: &str, value: &node::Value| {
                    mark.fields.iter().any(|field| *field == (key, value.clone()))
                };
                has("agent", &foreign) && has("why", &node::Value::from(why))
            }
            _ => false,
        });
        found.map(|record| record.at.0 / 1_000_000).collect::<Vec<_>>()
    };
    let (stayed, chosen) =
        (decided("agent_ignored", "below_hysteresis"), decided("agent_chosen", "stronger_signal"));
    let ([stayed], [chosen]) = (&stayed[..], &chosen[..]) else { panic!("{stayed:?}, {chosen:?}") };
    assert!((3000..4100).contains(stayed) && (4550..6000).contains(chosen), "{stayed} ms, {chosen} ms");
    assert_eq!(outcome.flows[0].lost, 0);
}

/// A mobile host of Cellular IP unplugs its cable itself: the handoff continues as on the air. A semisoft packet cannot be
/// sent in another cell, so a semisoft handoff costs as much as a hard one.
#[test]
fn a_role_that_moves_its_cable_itself_completes_its_handoffs() {
    let outcome = run("first", &["cell.2.duplex=full", "cell.3.duplex=full"]);
    let failed = outcome.handoffs.iter().filter(|handoff| handoff.failed);
    assert_eq!((outcome.handoffs.len(), failed.count()), (4, 0));
    assert_eq!(outcome.ledger.dropped.get("no_carrier"), Some(&2));
}
