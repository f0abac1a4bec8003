//! `decide` against a handful of rules that a reader can keep in mind.

use super::*;

const UP: Class = Class(10);
const DOWN: Class = Class(11);
const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
const NEIGHBOR: Mac = Mac([2, 0, 0, 0, 0, 1]);
const UPLINK: Mac = Mac([2, 0, 0, 0, 0, 9]);
const AIR: Iface = Iface(1);
const WIRE: Iface = Iface(2);

/// One mapping to `MOBILE`, an uplink for everything else, and a gate that checks what comes from the air.
struct Station {
    mapping: Option<Route>,
}

fn mapping() -> Route {
    Route { action: Action::Forward(Hop::mac(AIR, NEIGHBOR)), life: Life::Refreshed(Duration::from_secs(9)) }
}

impl Rules for Station {
    fn gate(&self, port: Port) -> (RoleId, Gate) {
        let gate = if port.iface == AIR {
            Gate { class: UP, check: Some(DOWN), ttl: true, punts: 10 }
        } else {
            Gate { class: DOWN, check: None, ttl: true, punts: 0 }
        };
        (RoleId(3), gate)
    }

    fn route(&self, now: Instant, class: Class, _src: Ipv4Addr, dst: Ipv4Addr) -> Option<Found> {
        if class == UP {
            let route = Route {
                action: Action::Forward(Hop::mac(WIRE, UPLINK)),
                life: Life::Watched(Duration::from_secs(3)),
            };
            return Some(Found { entry: EntryId(1), owner: RoleId(3), route });
        }
        self.way_back(now, class, dst)
    }

    fn way_back(&self, _now: Instant, class: Class, host: Ipv4Addr) -> Option<Found> {
        let route = self.mapping.filter(|_| class == DOWN && host == MOBILE)?;
        Some(Found { entry: EntryId(0), owner: RoleId(3), route })
    }
}

fn from(iface: Iface, mac: Mac) -> Port {
    Port { iface, from: Some(mac) }
}

fn uplink_data(rules: &Station, from_mac: Mac) -> Verdict {
    decide(rules, Instant::ZERO, from(AIR, from_mac), MOBILE, FAR)
}

#[test]
fn data_from_the_mapped_neighbor_refresh_the_mapping_and_climb() {
    let verdict = uplink_data(&Station { mapping: Some(mapping()) }, NEIGHBOR);
    assert_eq!(verdict.go, Go::Out(Hop::mac(WIRE, UPLINK)));
    assert_eq!(verdict.used, [Some(EntryId(0)), Some(EntryId(1))], "the way back, and the watched route");
}

#[test]
fn data_from_elsewhere_refresh_nothing_and_go_to_the_gates_owner() {
    for rules in [Station { mapping: None }, Station { mapping: Some(mapping()) }] {
        let verdict = uplink_data(&rules, Mac([6; 6]));
        assert_eq!(verdict.go, Go::Punt(RoleId(3), Why::Check));
        assert_eq!(verdict.used, [None; 2]);
    }
}

#[test]
fn a_way_back_that_is_punted_is_for_its_owner_to_check() {
    let punted = Route { action: Action::Punt, ..mapping() };
    assert_eq!(uplink_data(&Station { mapping: Some(punted) }, NEIGHBOR).go, Go::Punt(RoleId(3), Why::Back));
}

#[test]
fn downlink_data_do_not_refresh() {
    let verdict =
        decide(&Station { mapping: Some(mapping()) }, Instant::ZERO, from(WIRE, UPLINK), FAR, MOBILE);
    assert_eq!(verdict.go, Go::Out(Hop::mac(AIR, NEIGHBOR)));
    assert_eq!(verdict.used, [None; 2]);
}

#[test]
fn a_miss_is_the_hosts() {
    let verdict = decide(&Station { mapping: None }, Instant::ZERO, from(WIRE, UPLINK), FAR, MOBILE);
    assert_eq!(verdict.go, Go::Host);
}
