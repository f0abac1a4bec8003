//! Simulated runs of Mobile IP with a link inside the tunnel that has a smaller MTU than Ethernet. Only packets that
//! the home agent tunnels cross that link:
//!
//! ```text
//! correspondent ── router ── home agent ))) cell 1: home network
//!                    │         └── entry ── middle ── exit ──┐
//!                   far ──────────────────────────────── foreign agent ))) cell 2: visited network
//! ```

use recorder::flow::FlowEnd;
use recorder::ledger::{self, Ledger};
use recorder::run::{Outcome, simulate};
use scenario::{Plan, Scenario, Setting};
use trace::{HostId, What};
use wire::ipv4::{self, Header};
use wire::tunnel::Kind;
use wire::{Duration, Iface, Instant, Ipv4Addr, icmp};

const SCENARIO: &str = r#"
    about = "A narrow link inside a tunnel"
    duration = "20s"
    [radio]
    retune = "5ms"
    [wire.internet]
    ends = ["correspondent", "router"]
    rate = "100Mb/s"
    delay = "10ms"
    net = "10.0.0.0/24"
    [wire.left]
    ends = ["router", "home"]
    rate = "100Mb/s"
    delay = "1ms"
    net = "10.0.1.0/24"
    [wire.entry]
    ends = ["home", "middle"]
    rate = "100Mb/s"
    delay = "1ms"
    net = "10.0.2.0/24"
    [wire.exit]
    ends = ["middle", "foreign"]
    rate = "100Mb/s"
    delay = "1ms"
    net = "10.0.3.0/24"
    [wire.right]
    ends = ["router", "far"]
    rate = "100Mb/s"
    delay = "1ms"
    net = "10.0.4.0/24"
    [wire.last]
    ends = ["far", "foreign"]
    rate = "100Mb/s"
    delay = "1ms"
    net = "10.0.5.0/24"
    [cell.1]
    station = "home"
    rate = "2Mb/s"
    net = "10.1.0.0/24"
    [cell.2]
    station = "foreign"
    rate = "2Mb/s"
    net = "10.2.0.0/24"
    [mobile-ip]
    key = "000102030405060708090a0b0c0d0e0f"
    [host.correspondent]
    role = [CORRESPONDENT]
    [host.router]
    [host.middle]
    [host.far]
    [host.home]
    role = [{ kind = "mobile-ip/home-agent" }]
    [host.foreign]
    role = [{ kind = "mobile-ip/foreign-agent" }]
    [host.mobile]
    address = "10.1.0.7"
    role = [
        { kind = "mobile-ip/mobile-node" },
        { kind = "apps/roam", start = "home", moves = [{ at = "3s", to = "foreign" }] },
        MOBILE
    ]
"#;

/// The roles of the correspondent and of the mobile node, for a transfer to the mobile node and for one from it.
const DOWN: [&str; 2] = [
    r#"{ kind = "apps/bulk-server", at = "correspondent:9000", bytes = 1_000_000 }"#,
    r#"{ kind = "apps/bulk-client", to = "correspondent:9000", start = "500ms" }"#,
];
const UP: [&str; 2] = [
    r#"{ kind = "apps/bulk-client", to = "mobile:9000", start = "500ms" }"#,
    r#"{ kind = "apps/bulk-server", at = "mobile:9000", bytes = 1_000_000 }"#,
];

/// Returns the plan for these two roles. `narrow` is the name of the narrow wire, and its MTU.
fn plan(roles: [&str; 2], narrow: (&str, u16)) -> Plan {
    plan_with(roles, narrow, &[])
}

fn plan_with([correspondent, mobile]: [&str; 2], narrow: (&str, u16), settings: &[String]) -> Plan {
    let text = SCENARIO.replace("CORRESPONDENT", correspondent).replace("MOBILE", mobile);
    let (wire, mtu) = narrow;
    let mtu = format!("wire.{wire}.mtu={mtu}");
    let settings: Vec<Setting> =
        [&mtu].into_iter().chain(settings).map(|text| text.parse().unwrap()).collect();
    Scenario::plan("tunnels", &text, &settings, 1).unwrap()
}

/// Returns the settings of agents that offer two kinds of tunnels, and reverse tunnels. The mobile node asks for `kind`, and
/// for a reverse tunnel of the style `reverse`.
fn asking(kind: Kind, reverse: &str) -> Vec<String> {
    let name = kind.name();
    let offers = ["home-agent", "foreign-agent"].map(|agent| {
        [format!("{agent}.encapsulations=[\"minimal\", \"gre\"]"), format!("{agent}.reverse_tunnel=offered")]
    });
    let asks = [format!("mobile-node.encapsulation={name}"), format!("mobile-node.reverse_tunnel={reverse}")];
    offers.into_iter().flatten().chain(asks).collect()
}

const KINDS: [Kind; 3] = Kind::ALL;

fn host(plan: &Plan, name: &str) -> HostId {
    HostId(plan.hosts.iter().position(|host| host.config.name == name).unwrap() as u32)
}

/// Returns the packets that a host's node received on its links.
fn received(outcome: &Outcome, name: &str) -> impl Iterator<Item = (Instant, Header, Vec<u8>)> {
    let host = host(&outcome.plan, name);
    outcome.records.iter().filter_map(move |record| match &record.what {
        What::Received(iface, packet) if record.host == host && *iface != Iface::HOST => {
            let (header, payload) = Header::parse(&packet.bytes).ok()?;
            Some((record.at, header, payload.to_vec()))
        }
        _ => None,
    })
}

/// Returns the errors "fragmentation needed" that a host received: the destination of its packet, and the MTU.
fn errors(outcome: &Outcome, name: &str) -> impl Iterator<Item = (Ipv4Addr, u16)> {
    let errors = received(outcome, name).filter(|(_, header, _)| header.protocol == ipv4::ICMP);
    errors.filter_map(|(_, _, payload)| {
        let message = icmp::Message::parse(&payload).ok()?;
        let quote = icmp::Quote::of(&message).ok()?;
        ((quote.kind, quote.code) == (3, 4)).then_some((quote.dst, quote.mtu))
    })
}

/// Returns the MTUs in the errors "fragmentation needed" that the correspondent received about its packets to the
/// mobile node.
fn reported(outcome: &Outcome) -> Vec<u16> {
    errors(outcome, "correspondent").filter(|(to, _)| *to == MOBILE).map(|(_, mtu)| mtu).collect()
}

const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);

/// Returns the length of the longest datagram that crossed the tunnel's last wire, and the number of datagrams.
fn tunnelled(outcome: &Outcome) -> (usize, usize) {
    let inside = received(outcome, "foreign").filter(|(_, header, _)| header.protocol == ipv4::IPIP);
    inside.fold((0, 0), |(longest, count), (_, _, payload)| {
        (longest.max(payload.len() + ipv4::HEADER), count + 1)
    })
}

/// The narrow wire and its MTU. The wire is the first one of the tunnel, or a later one about which a router notifies
/// the home agent.
const NARROW: [(&str, u16); 6] =
    [("entry", 1300), ("entry", 1492), ("entry", 576), ("exit", 1300), ("exit", 1492), ("exit", 576)];

fn transferred(roles: [&str; 2], narrow: (&str, u16)) -> Outcome {
    transferred_by(plan(roles, narrow), narrow)
}

fn transferred_by(plan: Plan, narrow: (&str, u16)) -> Outcome {
    let outcome = simulate(plan).unwrap();
    assert_eq!((&outcome.doubts[..], &outcome.failures[..]), (&[][..], &[][..]), "{narrow:?}");
    assert!(outcome.flows.iter().all(|flow| flow.end == FlowEnd::Completed), "{narrow:?}");
    let [away] = &outcome.handoffs[..] else { panic!("{:?}", outcome.handoffs) };
    assert!(
        away.outage().is_some_and(|outage| outage.span() < Duration::from_secs(1)),
        "{narrow:?}: {away:?}"
    );
    outcome
}

/// The error about the tunnel reaches the sender, which reduces its segment size.
#[test]
fn a_download_goes_on_through_a_tunnel_that_is_narrow() {
    for narrow in NARROW {
        let outcome = transferred(DOWN, narrow);
        let (longest, count) = tunnelled(&outcome);
        assert!(count > 100 && longest <= usize::from(narrow.1), "{narrow:?}: {count} of {longest} bytes");
        let told = reported(&outcome);
        // Until the home agent is notified, it assumes Ethernet's MTU for the tunnel.
        let fits = narrow.1 - 20;
        assert!(
            told.last() == Some(&fits) && told.iter().all(|mtu| [1480, fits].contains(mtu)),
            "{narrow:?}: {told:?}"
        );
    }
}

/// Only the acknowledgments of an upload are tunnelled, and they fit.
#[test]
fn an_upload_is_not_hindered_by_a_tunnel_that_is_narrow() {
    for narrow in NARROW {
        let outcome = transferred(UP, narrow);
        assert!(tunnelled(&outcome).1 > 100, "{narrow:?}");
        assert_eq!(reported(&outcome), [0; 0]);
    }
}

/// Datagrams without DF, as long as Ethernet allows, from the correspondent to the mobile node.
const DIVISIBLE: [&str; 2] = [
    r#"{ kind = "apps/constant-rate", to = "mobile:9000", rate = 20, size = 1472, dont_fragment = false, start = "500ms", stop = "17s" }"#,
    r#"{ kind = "apps/sink", at = "mobile:9000" }"#,
];

/// A datagram without DF is cut before the tunnel, also if the first link is narrower than the tunnel. A later router
/// cuts the outer datagram, and the foreign agent joins it. Only those are lost that are sent before the binding
/// changed.
#[test]
fn datagrams_that_may_be_fragmented_arrive_whole() {
    for narrow in NARROW {
        let outcome = simulate(plan(DIVISIBLE, narrow)).unwrap();
        assert_eq!((&outcome.doubts[..], &outcome.failures[..]), (&[][..], &[][..]), "{narrow:?}");
        let [flow] = &outcome.flows[..] else { panic!("{:?}", outcome.flows) };
        let Ledger { sent, copied, .. } = outcome.ledger;
        assert!(outcome.ledger.balances() && flow.end == FlowEnd::Completed, "{narrow:?}");
        assert_eq!((reported(&outcome), copied), (Vec::new(), 0), "{narrow:?}: of {sent} packets");
        let arrived = ledger::delivered(&outcome.records).len();
        assert!((325..=331).contains(&arrived), "{narrow:?}: {arrived} of 331 arrived");
        let (longest, count) = tunnelled(&outcome);
        assert!(count > 500 && longest <= usize::from(narrow.1), "{narrow:?}: {count} of {longest} bytes");
        let outer_cut = received(&outcome, "foreign").any(|(_, header, _)| header.is_fragment());
        assert_eq!(outer_cut, narrow.0 == "exit", "{narrow:?}");
    }
}

/// Returns the number of datagrams with the protocol of each kind of tunnel that `name` received from another agent.
fn kinds_received(outcome: &Outcome, name: &str) -> [usize; 3] {
    let mut counts = [0; 3];
    for (_, header, _) in received(outcome, name).filter(|(_, header, _)| header.offset == 0) {
        let kind = Kind::of_protocol(header.protocol).filter(|_| header.src != MOBILE);
        if let Some(count) = kind.and_then(|kind| counts.get_mut(kind as usize)) {
            *count += 1;
        }
    }
    counts
}

/// The tunnel is of the kind that the mobile node asks for. The sender learns what fits into a tunnel of this kind.
#[test]
fn a_download_goes_on_through_each_kind_of_tunnel() {
    for kind in KINDS {
        for narrow in [("entry", 1300), ("exit", 1300)] {
            let outcome = transferred_by(plan_with(DOWN, narrow, &asking(kind, "none")), narrow);
            let counts = kinds_received(&outcome, "foreign");
            assert!(counts[kind as usize] > 100, "{kind:?}: {counts:?}");
            assert_eq!(counts.iter().sum::<usize>(), counts[kind as usize], "{kind:?}: {counts:?}");
            assert_eq!(reported(&outcome).last(), Some(&(1300 - kind.overhead() as u16)), "{kind:?}");
        }
    }
}

/// Datagrams that are cut arrive whole through each kind of tunnel. Minimal encapsulation does not carry fragments: they are
/// carried as IP in IP (RFC 2004, section 1).
#[test]
fn fragments_arrive_through_each_kind_of_tunnel() {
    for kind in KINDS {
        let outcome = simulate(plan_with(DIVISIBLE, ("exit", 1500), &asking(kind, "none"))).unwrap();
        assert_eq!((&outcome.doubts[..], outcome.ledger.balances()), (&[][..], true), "{kind:?}");
        let arrived = ledger::delivered(&outcome.records).len();
        assert!((325..=331).contains(&arrived), "{kind:?}: {arrived} of 331 arrived");
        let carrier = if kind == Kind::Minimal { Kind::IpInIp } else { kind };
        assert!(kinds_received(&outcome, "foreign")[carrier as usize] > 500, "{kind:?}");
    }
}

/// A reverse tunnel is of the same kind as the tunnel to the care-of address, in both delivery styles. The foreign agent
/// learns the path MTU of the reverse tunnel, and notifies the mobile node.
#[test]
fn an_upload_goes_on_through_each_kind_of_narrow_reverse_tunnel() {
    for kind in KINDS {
        for (narrow, style) in
            [(("entry", 1300), "direct"), (("exit", 1300), "direct"), (("entry", 1300), "encapsulating")]
        {
            let plan = plan_with(UP, narrow, &asking(kind, style));
            let outcome = transferred_by(plan, narrow);
            let counts = kinds_received(&outcome, "home");
            assert!(counts[kind as usize] > 100, "{kind:?}, {narrow:?}, {style}: {counts:?}");
            assert_eq!(counts.iter().sum::<usize>(), counts[kind as usize], "{kind:?}, {style}: {counts:?}");
            let told: Vec<u16> = errors(&outcome, "mobile").map(|quote| quote.1).collect();
            assert_eq!(told.last(), Some(&(1300 - kind.overhead() as u16)), "{kind:?}, {narrow:?}, {style}");
        }
    }
}

/// If a fragment is lost, its datagram is lost once, with the cause of the fragment. The receiver reports the time-out
/// to the source.
#[test]
fn a_lost_fragment_is_the_loss_of_its_datagram() {
    let settings = ["wire.exit.mtu=1300", "wire.exit.loss=0.1", "duration=60s"];
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    let text = SCENARIO.replace("CORRESPONDENT", DIVISIBLE[0]).replace("MOBILE", DIVISIBLE[1]);
    let outcome = simulate(Scenario::plan("tunnels", &text, &settings, 1).unwrap()).unwrap();
    assert_eq!(outcome.doubts, []);
    assert!(outcome.ledger.balances(), "{:?}", outcome.ledger);
    let [flow] = &outcome.flows[..] else { panic!("{:?}", outcome.flows) };
    let arrived = ledger::delivered(&outcome.records).len();
    assert!((180..300).contains(&arrived), "{arrived} of 331 arrived");
    let lost = outcome.ledger.dropped["link_error"];
    assert!(!outcome.ledger.dropped.contains_key("reassembly_timeout"), "{:?}", outcome.ledger.dropped);
    assert!(lost as usize >= 331 - arrived - 6, "{lost} lost, {arrived} arrived, {flow:?}");
    let is_time_out = |(_, header, payload): (Instant, Header, Vec<u8>)| {
        header.protocol == ipv4::ICMP && payload.starts_with(&[11, 1])
    };
    // The foreign agent joins the outer datagrams, so the home agent is notified.
    assert!(received(&outcome, "home").any(is_time_out));
}
