//! Simulated runs of DHCP: a mobile node acquires its care-of address in a network with an ordinary router, and registers
//! the address with its home agent.

use recorder::run::Outcome;
use scenario::Scenario;
use trace::{Record, What};
use wire::ipv4::{self, Header};
use wire::{Duration, Iface, Instant, Ipv4Addr};

const DHCP: &str = include_str!("../scenarios/mobile-ip/dhcp.toml");

/// Runs the scenario with these replacements of parts of its text.
fn run(changes: &[(&str, &str)]) -> Outcome {
    let mut text = DHCP.to_owned();
    for (old, new) in changes {
        assert!(text.contains(old), "{old}");
        text = text.replace(old, new);
    }
    let outcome = recorder::run::simulate(Scenario::plan("dhcp", &text, &[], 1).unwrap()).unwrap();
    assert_eq!(outcome.doubts, []);
    outcome
}

/// Returns the marks of this name, each with its time and the text of its fields.
fn marks<'a>(records: &'a [Record], name: &'a str) -> impl Iterator<Item = (Instant, String)> + 'a {
    records.iter().filter_map(move |record| match &record.what {
        What::Marked(mark) if mark.name == name => Some((record.at, format!("{:?}", mark.fields))),
        _ => None,
    })
}

/// Returns the time of the first mark of this name after the move whose fields contain this text.
fn first(outcome: &Outcome, name: &str, has: &str) -> Instant {
    let moved = Instant::from_millis(4300);
    let found = marks(&outcome.records, name).find(|(at, fields)| *at >= moved && fields.contains(has));
    found.unwrap_or_else(|| panic!("no mark {name} with {has}")).0
}

fn is_between(at: Instant, from: Instant, least: u64, most: u64) -> bool {
    let passed = at.since(from);
    (Duration::from_millis(least)..=Duration::from_millis(most)).contains(&passed)
}

#[test]
fn a_mobile_node_needs_no_agent_where_it_gets_an_address() {
    let outcome = run(&[]);
    let begun = first(&outcome, "address_begun", "");
    let ready = first(&outcome, "address_ready", "10.2.0.100");
    assert!(is_between(ready, begun, 100, 120), "the server and the client each wait 50 ms for ARP");
    let bound = first(&outcome, "binding_changed", "10.2.0.100");
    assert!(is_between(bound, ready, 1, 20));
    assert_eq!(marks(&outcome.records, "done").count(), 1, "the download has ended");
}

/// The first address of the pool is another host's, which knows nothing of the server.
#[test]
fn an_address_that_a_host_of_the_link_has_is_not_granted() {
    let printer = "[host.printer]\naddress = \"10.2.0.100\"\nrole = [{ kind = \"apps/roam\", start = \"cafe\" }]\n\n[host.mobile]";
    let outcome = run(&[("[host.mobile]", printer)]);
    first(&outcome, "address_in_use", "10.2.0.100");
    first(&outcome, "binding_changed", "10.2.0.101");
}

#[test]
fn an_address_of_the_configuration_is_usable_after_its_delay() {
    let own = "care_of = \"configured\", address_delay = \"40ms\", networks = [{ cell = 2, address = \"10.2.0.9/24\", router = \"10.2.0.1\" }] }";
    let outcome = run(&[
        ("care_of = \"acquired\" }", own),
        ("    { kind = \"dhcp/client\", probe_wait = \"50ms\" },\n", ""),
    ]);
    let begun = first(&outcome, "address_begun", "");
    let ready = first(&outcome, "address_ready", "10.2.0.9");
    assert_eq!(ready.since(begun), Duration::from_millis(40));
    first(&outcome, "binding_changed", "10.2.0.9");
    assert_eq!(marks(&outcome.records, "done").count(), 1);
}

/// A foreign agent of the visited network sets the flag R: the request goes through it, and the tunnel ends at the mobile
/// node.
#[test]
fn an_agent_that_requires_registration_relays_it() {
    let agent = "role = [{ kind = \"mobile-ip/foreign-agent\" }, { kind = \"dhcp/server\",";
    let outcome = run(&[("role = [{ kind = \"dhcp/server\",", agent)]);
    first(&outcome, "request_sent", "\"10.2.0.1\"");
    first(&outcome, "binding_changed", "10.2.0.100");
    assert_eq!(marks(&outcome.records, "visitor_arrived").count(), 0);
    assert_eq!(marks(&outcome.records, "done").count(), 1);
}

/// The mobile node asks for a reverse tunnel: it puts its packets into a tunnel from the address that it has acquired. So they
/// also leave a network that drops packets with foreign source addresses, also if an agent requires a registration there.
#[test]
fn a_mobile_node_with_its_own_address_sends_through_a_reverse_tunnel() {
    let agent = "role = [{ kind = \"mobile-ip/foreign-agent\" }, { kind = \"dhcp/server\",";
    let required = ("role = [{ kind = \"dhcp/server\",", agent);
    for more in [None, Some(required)] {
        let offered = (
            "kind = \"mobile-ip/home-agent\"",
            "kind = \"mobile-ip/home-agent\", reverse_tunnel = \"offered\"",
        );
        let asked = ("care_of = \"acquired\"", "care_of = \"acquired\", reverse_tunnel = \"direct\"");
        let changes: Vec<_> = [offered, asked].into_iter().chain(more).collect();
        let outcome = run(&changes);
        assert!(outcome.ledger.balances());
        let registered = first(&outcome, "registered", "10.2.0.100");
        assert_eq!(marks(&outcome.records, "done").count(), 1, "the download has ended");
        let mobile = outcome.plan.hosts.iter().position(|host| host.config.name == "mobile").unwrap();
        let mut count = [0; 2];
        for record in outcome.records.iter().filter(|record| record.at > registered) {
            let What::Sent(iface, packet) = &record.what else { continue };
            let is_on_link = *iface != Iface::HOST && packet.link.kind == wire::EtherType::IPV4;
            if usize::try_from(record.host.0) == Ok(mobile) && is_on_link {
                let (header, _) = Header::parse(&packet.bytes).unwrap();
                let is_tunnel =
                    header.src == Ipv4Addr::new(10, 2, 0, 100) && header.dst == Ipv4Addr::new(10, 1, 0, 1);
                // Solicitations stay on the link.
                let is_plain = header.src == Ipv4Addr::new(10, 1, 0, 7) && !header.dst.is_multicast();
                count[0] += usize::from(is_plain);
                count[1] += usize::from(is_tunnel && header.protocol == ipv4::IPIP);
            }
        }
        let [plain, tunnelled] = count;
        assert!(plain == 0 && tunnelled > 100, "{plain} packets outside of the tunnel, {tunnelled} inside");
    }
}
