//! Tests of chains: the hosts and links that they become, and the chains that are refused.

use crate::{Plan, Scenario, Setting};
use wire::Duration;

const CHAIN: &str = r#"about = "two hosts, and routers between them"
duration = "5s"
[chain.net]
ends = ["server", "client"]
routers = 3
rate = "10Mb/s"
delay = ["5ms", "1ms"]
net = "10.9.0.0/16"
[host.server]
role = [{ kind = "apps/bulk-server", at = "server:9000", bytes = 1000 }]
[host.client]
role = [{ kind = "apps/bulk-client", to = "server:9000" }]
"#;

fn plan(settings: &[&str]) -> Result<Plan, String> {
    let settings: Vec<Setting> = settings.iter().map(|setting| setting.parse().unwrap()).collect();
    Scenario::plan("chain.toml", CHAIN, &settings, 1).map_err(|error| error.to_string())
}

/// Returns the addresses of the hosts at the ends, and all names of hosts.
fn shape(plan: &Plan) -> (Vec<String>, Vec<String>) {
    let ends = plan.hosts.iter().take(2);
    let addresses = ends.map(|host| host.config.all_addresses()[0].to_string()).collect();
    (addresses, plan.host_names())
}

#[test]
fn a_chain_has_as_many_routers_as_a_setting_says() {
    for routers in [0_usize, 1, 2, 20, 60] {
        let plan = plan(&[&format!("chain.net.routers={routers}")]).unwrap();
        let (addresses, names) = shape(&plan);
        assert_eq!((plan.hosts.len(), plan.wires.len()), (routers + 2, routers + 1));
        assert_eq!(addresses, ["10.9.0.1".to_owned(), format!("10.9.0.{}", 4 * routers + 2)]);
        let routed: Vec<String> = (1..=routers).map(|number| format!("net-{number}")).collect();
        assert_eq!(names, [&["server".to_owned(), "client".to_owned()], &routed[..]].concat());
        let (_, wire) = &plan.wires[0];
        assert_eq!((wire.rate, wire.delay), (10_000_000, [5, 1].map(Duration::from_millis)));
        // Each host has a route to each link that it is not at.
        for host in &plan.hosts {
            let routes = host.config.routes.len();
            assert_eq!(routes + host.ports.len(), routers + 1, "{}", host.config.name);
        }
    }
}

#[test]
fn the_numbers_of_other_hosts_do_not_depend_on_the_chain() {
    let macs = |plan: &Plan| plan.hosts.iter().take(2).map(|host| host.ports[0].mac).collect::<Vec<_>>();
    assert_eq!(macs(&plan(&[]).unwrap()), macs(&plan(&["chain.net.routers=9"]).unwrap()));
}

#[test]
fn a_run_can_be_repeated_from_its_document() {
    let first = plan(&[]).unwrap();
    let again = Scenario::plan("again.toml", &first.document, &[], 1).unwrap();
    assert_eq!(first.host_names(), again.host_names());
}

#[test]
fn the_links_of_a_chain_can_be_segments() {
    let plan = plan(&["chain.net.duplex=half", "chain.net.delay=5ms"]).unwrap();
    assert_eq!((plan.wires.len(), plan.cells.len()), (0, 4));
    assert!(plan.cells.iter().all(|cell| cell.is_segment && cell.delay == Duration::from_millis(5)));
    assert_eq!(plan.interface_names(trace::HostId(2)), ["net-0-1", "net-1-2"]);
    assert_eq!(shape(&plan).0, ["10.9.0.1", "10.9.0.14"]);
}

#[test]
fn a_chain_that_cannot_be_built_is_refused() {
    let cases: [(&[&str], &str); 14] = [
        (&["chain.net.routers=61"], "`chain.net.routers`: must be from 0 to 60 routers"),
        (
            &["chain.net.routers=-1"],
            "`chain.net.routers`: -1 is not a number of routers; allowed: a whole number from 0 to 60",
        ),
        (
            &["chain.net.ends=['server', 'clint']"],
            "`chain.net.ends`: no host `clint`, did you mean `client`?",
        ),
        (&["chain.net.ends=['server', 'server']"], "`chain.net.ends`: must be two different hosts"),
        (
            &["chain.net.net=10.9.0.0/29"],
            "`chain.net.net`: 10.9.0.0/29 has fewer than 4 addresses for each of 4 links",
        ),
        (&["chain.net.net=10.9.0.0/31", "chain.net.routers=0"], "`chain.net.net`: 10.9.0.0/31 has fewer"),
        (&["chain.net.mtu=60"], "`chain.net.mtu`: must be at least 68 bytes"),
        (&["chain.net.loss=2.0"], "`chain.net.loss`: must be a probability from 0 to 1"),
        (
            &["chain.net.duplex=half"],
            "`chain.net.delay`: with half `duplex`, give one delay for both directions",
        ),
        (&["chain.net.contention={}"], "`chain.net.contention`: allowed only with `duplex = \"half\"`"),
        (&["host.net-2={}"], "`chain.net`: `net-2` is the name of a router of the chain; give the host"),
        (
            &["wire={ net-1-2 = { ends = ['server', 'client'], rate = '1Mb/s', delay = '1ms' } }"],
            "`chain.net`: `net-1-2` is the name of a link of the chain; give the wire or segment another name",
        ),
        (
            &[
                "wire={ own = { ends = ['client', 'server'], rate = '1Mb/s', delay = '1ms' } }",
                "chain.net.routers=0",
            ],
            "`chain.net.ends`: `server` and `client` are joined by `wire.own`; without a router",
        ),
        (
            &[
                "wire={ own = { ends = ['client', 'server'], rate = '1Mb/s', delay = '1ms', net = '10.9.7.0/24' } }",
            ],
            "`chain.net.net`: 10.9.0.0/16 overlaps 10.9.7.0/24 of `wire.own`; write networks that do not overlap",
        ),
    ];
    for (settings, problem) in cases {
        let error = plan(settings).expect_err(&format!("{settings:?} makes a plan"));
        assert!(error.contains(problem), "{settings:?}: {error}");
    }
    let renamed = CHAIN.replace("chain.net", "chain.longer-name");
    let error = Scenario::plan("chain.toml", &renamed, &[], 1).unwrap_err().to_string();
    assert!(error.contains("`chain.longer-name`: the name of a chain must be 1 to 9 letters"), "{error}");
}
