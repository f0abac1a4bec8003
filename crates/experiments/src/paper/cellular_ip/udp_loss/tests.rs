//! Checks of the constants of the experiment against the scenario's links.

use super::*;
use scenario::Plan;

/// The lengths of frames in bytes. A route-update packet has Ethernet and IP headers, and ICMP with the authentication
/// code. A data packet has 100 bytes after Ethernet, IP and UDP headers.
const UPDATE_BYTES: u64 = 84;
const DATA_BYTES: u64 = 142;

/// Returns the round-trip time in ms from the links alone: a route-update from the mobile host's cell to `b1`, and a
/// data packet back.
fn nominal_ms(plan: &Plan, station: &str) -> f64 {
    let ports = |name: &str| {
        let host = plan.hosts.iter().find(|host| host.config.name == name).unwrap();
        host.ports.iter().map(|port| port.port).collect::<Vec<_>>()
    };
    let (crossover, below) = (ports("b1"), ports(station));
    let joins = |ends: &[link::PortId; 2]| crossover.contains(&ends[0]) && below.contains(&ends[1]);
    let (_, wire) = plan.wires.iter().find(|(ends, _)| joins(ends)).unwrap();
    let [down, up] = wire.delay.map(|delay| delay.as_secs_f64());
    let rates = [wire.rate, plan.cells[0].rate];
    let sent = |bytes: u64| rates.iter().map(|rate| (bytes * 8) as f64 / *rate as f64).sum::<f64>();
    (down + up + sent(UPDATE_BYTES) + sent(DATA_BYTES)) * 1e3
}

#[test]
fn the_nominal_round_trip_is_that_of_the_scenarios_links() {
    for point in points(Scale::Quick).iter().filter(|point| is_hard(point)) {
        let plan = point.plan(0, &[]).unwrap();
        let nominal = point.number("rtt_ms").unwrap() - ROUND_TRIPS[0] + BASE_MS;
        for station in ["b2", "b3"] {
            let links = nominal_ms(&plan, station);
            assert!((links - nominal).abs() < 0.01, "{}: {links} ms, not {nominal}", point.label);
        }
    }
}
