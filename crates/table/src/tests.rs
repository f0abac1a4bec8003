//! Tests of `decide` with a few small sets of rules.

use super::*;
use wire::ipv4;

const UP: Class = Class(10);
const DOWN: Class = Class(11);
const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
const NEIGHBOR: Mac = Mac([2, 0, 0, 0, 0, 1]);
const UPLINK: Mac = Mac([2, 0, 0, 0, 0, 9]);
const AIR: Iface = Iface(1);
const WIRE: Iface = Iface(2);

/// The rules of a base station: at most one mapping (of `MOBILE`); an uplink for packets from the radio; a policy that
/// checks these packets.
struct Station {
    mapping: Option<Route>,
}

fn mapping() -> Route {
    Route::new(Action::Forward(Hop::mac(AIR, NEIGHBOR)), Lifetime::SoftState(Duration::from_secs(9)))
}

impl Rules for Station {
    fn ingress_policy(&self, port: Port) -> (RoleId, IngressPolicy) {
        let policy = if port.iface == AIR {
            IngressPolicy { class: UP, check: Some(DOWN), ttl: true, icmp: true, punts: 10 }
        } else {
            IngressPolicy { class: DOWN, check: None, ttl: true, icmp: false, punts: 0 }
        };
        (RoleId(3), policy)
    }

    fn route(&self, now: Instant, class: Class, _src: Ipv4Addr, dst: Ipv4Addr) -> Option<Found> {
        if class == UP {
            let route = Route::new(
                Action::Forward(Hop::mac(WIRE, UPLINK)),
                Lifetime::ReportIdle(Duration::from_secs(3)),
            );
            return Some(Found { entry: EntryId(1), owner: RoleId(3), route });
        }
        self.reverse_path(now, class, dst)
    }

    fn reverse_path(&self, _now: Instant, class: Class, host: Ipv4Addr) -> Option<Found> {
        let route = self.mapping.filter(|_| class == DOWN && host == MOBILE)?;
        Some(Found { entry: EntryId(0), owner: RoleId(3), route })
    }
}

fn from(iface: Iface, mac: Mac) -> Port {
    Port { iface, from: Some(mac) }
}

fn data(src: Ipv4Addr, dst: Ipv4Addr) -> Datagram {
    Datagram::new(&Header::new(ipv4::UDP, src, dst), 100)
}

fn uplink_data(rules: &Station, from_mac: Mac) -> Verdict {
    decide(rules, Instant::ZERO, from(AIR, from_mac), &data(MOBILE, FAR))
}

#[test]
fn data_from_the_mapped_neighbor_refresh_the_mapping_and_climb() {
    let verdict = uplink_data(&Station { mapping: Some(mapping()) }, NEIGHBOR);
    assert_eq!(verdict.disposition, Disposition::Out(Hop::mac(WIRE, UPLINK)));
    assert_eq!(verdict.used, [Some(EntryId(0)), Some(EntryId(1))], "the reverse path, and the watched route");
}

#[test]
fn what_is_too_large_for_a_watched_route_does_not_take_it() {
    let rules = Station { mapping: Some(mapping()) };
    let large = Datagram::new(&Header::new(ipv4::UDP, MOBILE, FAR), 70_000);
    let verdict = decide(&rules, Instant::ZERO, from(AIR, NEIGHBOR), &large);
    assert_eq!(verdict.disposition, Disposition::Drop(reason::TOO_BIG));
    assert_eq!(verdict.used, [Some(EntryId(0)), None]);
}

#[test]
fn data_from_elsewhere_refresh_nothing_and_go_to_the_gates_owner() {
    for rules in [Station { mapping: None }, Station { mapping: Some(mapping()) }] {
        let verdict = uplink_data(&rules, Mac([6; 6]));
        assert_eq!(verdict.disposition, Disposition::Punt(RoleId(3), PuntReason::Check));
        assert_eq!(verdict.used, [None; 2]);
    }
}

#[test]
fn the_source_of_what_was_opened_is_checked_as_that_of_other_packets() {
    let opened = |mapping, mac| {
        decide_opened(&Station { mapping }, Instant::ZERO, from(AIR, mac), UP, &data(MOBILE, FAR))
    };
    let fails = Disposition::Punt(RoleId(3), PuntReason::Check);
    assert_eq!(opened(None, NEIGHBOR).disposition, fails);
    assert_eq!(opened(Some(mapping()), Mac([6; 6])).disposition, fails);
    let passes = opened(Some(mapping()), NEIGHBOR);
    assert_eq!(passes.disposition, Disposition::Out(Hop::mac(WIRE, UPLINK)));
    assert_eq!(passes.used, [Some(EntryId(0)), Some(EntryId(1))]);
}

#[test]
fn a_way_back_that_is_punted_is_for_its_owner_to_check() {
    let punted = Route { action: Action::Punt, ..mapping() };
    assert_eq!(
        uplink_data(&Station { mapping: Some(punted) }, NEIGHBOR).disposition,
        Disposition::Punt(RoleId(3), PuntReason::ReversePath)
    );
}

#[test]
fn the_owner_is_noticed_of_packets_that_its_route_forwards() {
    let interval = Duration::from_secs(1);
    let noticed = |action, packet| {
        let route = Route { action, notice: Some(interval), ..mapping() };
        decide(&Station { mapping: Some(route) }, Instant::ZERO, from(WIRE, UPLINK), &packet).notice
    };
    let packet = data(FAR, MOBILE);
    let tunnel = Action::Tunnel(Encap::new(OWN, FAR, 1480));
    let expected = Some(Notice { owner: RoleId(3), interval });
    assert_eq!(noticed(mapping().action, packet), expected);
    assert_eq!(noticed(tunnel, data(OWN, MOBILE)), expected);
    assert_eq!(noticed(tunnel, packet), None, "the source is the exit: the packet is dropped");
    assert_eq!(noticed(Action::Punt, packet), None, "the role gets the packet itself");
    let late = Datagram { ttl: 1, ..packet };
    assert_eq!(noticed(mapping().action, late), None, "the packet is dropped");
    let route = Station { mapping: Some(mapping()) };
    assert_eq!(decide(&route, Instant::ZERO, from(WIRE, UPLINK), &packet).notice, None);
    let notice = Notice { owner: RoleId(3), interval };
    assert_eq!(notice.end(Instant(0)), Instant(1_000_000_000));
    assert_eq!(notice.end(Instant(999_999_999)), Instant(1_000_000_000));
    assert_eq!(notice.end(Instant(1_000_000_000)), Instant(2_000_000_000));
    let never = Notice { interval: Duration::MAX, ..notice };
    assert_eq!(never.end(Instant(7)), Instant(u64::MAX));
}

#[test]
fn downlink_data_do_not_refresh() {
    let verdict =
        decide(&Station { mapping: Some(mapping()) }, Instant::ZERO, from(WIRE, UPLINK), &data(FAR, MOBILE));
    assert_eq!(verdict.disposition, Disposition::Out(Hop::mac(AIR, NEIGHBOR)));
    assert_eq!(verdict.used, [None; 2]);
}

#[test]
fn a_miss_is_the_hosts() {
    let verdict = decide(&Station { mapping: None }, Instant::ZERO, from(WIRE, UPLINK), &data(FAR, MOBILE));
    assert_eq!((verdict.disposition, verdict.icmp), (Disposition::Host, None), "its policy is silent");
    let open = Port { iface: Iface::HOST, from: None };
    let rules = Nothing;
    let lost = Some(IcmpError::NetUnreachable);
    assert_eq!(decide(&rules, Instant::ZERO, open, &data(FAR, MOBILE)).icmp, lost, "unless it is its own");
    assert_eq!(decide(&rules, Instant::ZERO, open, &data(FAR, OWN)).icmp, None);
    assert_eq!(decide_opened(&rules, Instant::ZERO, open, Class(200), &data(FAR, MOBILE)).icmp, None);
}

/// A host with one address and without rules.
struct Nothing;

impl Rules for Nothing {
    fn ingress_policy(&self, port: Port) -> (RoleId, IngressPolicy) {
        (RoleId::NODE, IngressPolicy::default_of(port))
    }
    fn route(&self, _now: Instant, _class: Class, _src: Ipv4Addr, _dst: Ipv4Addr) -> Option<Found> {
        None
    }
    fn reverse_path(&self, _now: Instant, _class: Class, _host: Ipv4Addr) -> Option<Found> {
        None
    }
    fn is_own(&self, address: Ipv4Addr) -> bool {
        address == OWN
    }
}

// --- tunnels, and packets that are too large ------------------------------------------------------------------------

const OWN: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 1);
const CARE_OF: Ipv4Addr = Ipv4Addr::new(10, 4, 0, 1);
const VISITORS: Class = Class(200);
const ENCAP: Encap = Encap::new(OWN, CARE_OF, 1480);

/// The rules of an agent: it tunnels packets to `MOBILE` and decapsulates packets to itself. It passes packets to `FAR`
/// to its own stack, and sends all other packets over a link with a small MTU.
struct Agent {
    icmp: bool,
}

impl Rules for Agent {
    fn ingress_policy(&self, port: Port) -> (RoleId, IngressPolicy) {
        (RoleId(1), IngressPolicy { icmp: self.icmp, ..IngressPolicy::default_of(port) })
    }

    fn route(&self, _now: Instant, _class: Class, _src: Ipv4Addr, dst: Ipv4Addr) -> Option<Found> {
        let action = match dst {
            MOBILE => Action::Tunnel(ENCAP),
            OWN => Action::Open(VISITORS, Kinds::of(Kind::IpInIp)),
            FAR => Action::Host,
            _ => Action::Forward(Hop { iface: AIR, to: NextHop::OnLink }),
        };
        let route = Route::new(action, Lifetime::Until(Instant::NEVER));
        Some(Found { entry: EntryId(0), owner: RoleId(1), route })
    }

    fn reverse_path(&self, _now: Instant, _class: Class, _host: Ipv4Addr) -> Option<Found> {
        None
    }

    fn is_own(&self, address: Ipv4Addr) -> bool {
        address == OWN
    }

    fn mtu(&self, _iface: Iface) -> u16 {
        600
    }
}

fn at_agent(packet: Datagram) -> (Disposition, Option<IcmpError>) {
    let verdict = decide(&Agent { icmp: true }, Instant::ZERO, from(WIRE, UPLINK), &packet);
    let silent = decide(&Agent { icmp: false }, Instant::ZERO, from(WIRE, UPLINK), &packet);
    assert_eq!(
        (silent.disposition, silent.icmp),
        (verdict.disposition, None),
        "a policy without errors changes nothing else"
    );
    (verdict.disposition, verdict.icmp)
}

#[test]
fn what_fits_goes_into_the_tunnel_and_what_does_not_is_told_so() {
    let fits = Datagram { len: 1480, ..data(FAR, MOBILE) };
    assert_eq!(at_agent(fits), (Disposition::Encap(ENCAP), None));
    let long = Datagram { len: 1481, ..fits };
    let told = Some(IcmpError::FragmentationNeeded { mtu: 1480 });
    assert_eq!(at_agent(long), (Disposition::Drop(reason::TOO_BIG), told));
    let may_be_cut = Datagram { dont_fragment: false, ..long };
    assert_eq!(at_agent(may_be_cut), (Disposition::Encap(ENCAP), None));
    let cut = |packet| decide(&Agent { icmp: true }, Instant::ZERO, from(WIRE, UPLINK), &packet).cut;
    assert_eq!([fits, long, may_be_cut].map(cut), [None, None, Some(1480)]);
    let to_link = Datagram { dst: Ipv4Addr::new(10, 5, 0, 1), ..may_be_cut };
    assert_eq!([to_link, Datagram { len: 600, ..to_link }].map(cut), [Some(600), None]);
    let last_hop = Datagram { ttl: 1, ..may_be_cut };
    assert_eq!((at_agent(last_hop).0, cut(last_hop)), (Disposition::Drop(reason::TTL_EXPIRED), None));
    let last_hop = Datagram { ttl: 1, ..long };
    assert_eq!(at_agent(last_hop), (Disposition::Drop(reason::TTL_EXPIRED), Some(IcmpError::TimeExceeded)));
}

#[test]
fn a_narrow_link_is_told_too() {
    let told = Some(IcmpError::FragmentationNeeded { mtu: 600 });
    let elsewhere = Ipv4Addr::new(10, 5, 0, 1);
    assert_eq!(
        at_agent(Datagram { len: 601, ..data(FAR, elsewhere) }),
        (Disposition::Drop(reason::TOO_BIG), told)
    );
}

#[test]
fn a_tunnel_takes_nothing_from_its_exit_nor_our_own_by_the_wire() {
    assert_eq!(at_agent(data(CARE_OF, MOBILE)), (Disposition::Drop(reason::TUNNEL_LOOP), None));
    assert_eq!(at_agent(data(OWN, MOBILE)), (Disposition::Drop(reason::TUNNEL_LOOP), None));
    let own = decide(
        &Agent { icmp: true },
        Instant::ZERO,
        Port { iface: Iface::HOST, from: None },
        &Datagram { ttl: 1, ..data(OWN, MOBILE) },
    );
    assert_eq!(
        own.disposition,
        Disposition::Encap(ENCAP),
        "this host is a correspondent too, and forwards nothing here"
    );
}

#[test]
fn only_ip_in_ip_to_this_host_is_opened() {
    let tunnelled = Datagram { protocol: ipv4::IPIP, ..data(FAR, OWN) };
    assert_eq!(at_agent(tunnelled).0, Disposition::Open(VISITORS));
    let by_gre = Datagram { protocol: ipv4::GRE, ..tunnelled };
    assert_eq!(
        at_agent(by_gre),
        (Disposition::Drop(reason::TUNNEL_KIND), None),
        "a kind that was not agreed"
    );
    assert_eq!(at_agent(data(FAR, OWN)).0, Disposition::Host);
    assert_eq!(at_agent(data(OWN, FAR)).0, Disposition::Host, "a route may say so");
}

#[test]
fn what_was_opened_costs_a_hop_and_may_enter_another_tunnel() {
    let arrived = from(WIRE, UPLINK);
    let opened = |packet| decide_opened(&Agent { icmp: true }, Instant::ZERO, arrived, VISITORS, &packet);
    assert_eq!(opened(data(FAR, MOBILE)).disposition, Disposition::Encap(ENCAP));
    assert!(opened(data(FAR, MOBILE)).ttl);
    assert_eq!(opened(Datagram { ttl: 1, ..data(FAR, MOBILE) }).icmp, Some(IcmpError::TimeExceeded));
}

/// RFC 2003, section 5.1.
#[test]
fn a_failing_tunnel_is_reported_and_used() {
    struct Failing;
    impl Rules for Failing {
        fn ingress_policy(&self, port: Port) -> (RoleId, IngressPolicy) {
            (RoleId::NODE, IngressPolicy::default_of(port))
        }
        fn route(&self, _: Instant, _: Class, _: Ipv4Addr, _: Ipv4Addr) -> Option<Found> {
            let action = Action::Tunnel(FAILING);
            let route = Route::new(action, Lifetime::Permanent);
            Some(Found { entry: EntryId(0), owner: RoleId::NODE, route })
        }
        fn reverse_path(&self, _: Instant, _: Class, _: Ipv4Addr) -> Option<Found> {
            None
        }
    }
    const FAILING: Encap = Encap { is_failing: true, kind: Kind::Minimal, ..ENCAP };
    let verdict = |packet| decide(&Failing, Instant::ZERO, Port { iface: WIRE, from: Some(UPLINK) }, &packet);
    let fits = verdict(data(FAR, MOBILE));
    assert_eq!(
        (fits.disposition, fits.icmp),
        (Disposition::Encap(FAILING), Some(IcmpError::HostUnreachable))
    );
    let long = Datagram { len: 1481, ..data(FAR, MOBILE) };
    assert_eq!(verdict(long).icmp, Some(IcmpError::FragmentationNeeded { mtu: 1480 }));
    // A fragment is carried as IP in IP, which adds 8 bytes more.
    assert_eq!(verdict(Datagram { dont_fragment: false, ..long }).cut, Some(1472));
}

/// A report of a smaller path MTU may be old or forged. So the sender of a larger packet with DF is notified, and the
/// packet enters the tunnel all the same (RFC 2003, section 5). What this host itself cannot send is dropped.
#[test]
fn a_reported_mtu_notifies_the_sender_and_does_not_stop_the_packet() {
    const REPORTED: Encap = Encap { reported: 1380, ..ENCAP };
    struct Reported;
    impl Rules for Reported {
        fn is_own(&self, _: Ipv4Addr) -> bool {
            false
        }
        fn mtu(&self, _: Iface) -> u16 {
            1500
        }
        fn ingress_policy(&self, port: Port) -> (RoleId, IngressPolicy) {
            (RoleId::NODE, IngressPolicy::default_of(port))
        }
        fn route(&self, _: Instant, _: Class, _: Ipv4Addr, _: Ipv4Addr) -> Option<Found> {
            let route = Route::new(Action::Tunnel(REPORTED), Lifetime::Permanent);
            Some(Found { entry: EntryId(0), owner: RoleId::NODE, route })
        }
        fn reverse_path(&self, _: Instant, _: Class, _: Ipv4Addr) -> Option<Found> {
            None
        }
    }
    let verdict = |len, dont_fragment| {
        let packet = Datagram { dont_fragment, len, ..data(FAR, MOBILE) };
        let verdict = decide(&Reported, Instant::ZERO, Port { iface: WIRE, from: Some(UPLINK) }, &packet);
        (verdict.disposition, verdict.icmp, verdict.cut)
    };
    let too_big = Some(IcmpError::FragmentationNeeded { mtu: 1380 });
    assert_eq!(verdict(1380, true), (Disposition::Encap(REPORTED), None, None));
    assert_eq!(verdict(1381, true), (Disposition::Encap(REPORTED), too_big, None));
    assert_eq!(verdict(1480, true), (Disposition::Encap(REPORTED), too_big, None));
    assert_eq!(verdict(1481, true), (Disposition::Drop(reason::TOO_BIG), too_big, None));
    assert_eq!(verdict(1381, false), (Disposition::Encap(REPORTED), None, Some(1380)));
}
