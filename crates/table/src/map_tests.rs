//! Tests of the form in kernel maps: each entry survives the conversion, and bytes that no entry has are refused.

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const REASONS: [Reason; 2] = [Reason("no_agent"), Reason("not_registered")];

fn reason_of(code: u32) -> Option<Reason> {
    REASONS.into_iter().find(|reason| reason.code() == code)
}

fn ports() -> impl Iterator<Item = Port> {
    let neighbors = [None, Some(Mac::ZERO), Some(Mac([2, 0, 0, 0, 0, 1])), Some(Mac::BROADCAST)];
    let of = move |iface| neighbors.map(|from| Port { iface: Iface(iface), from });
    [0, 1, 0x0100, u16::MAX].into_iter().flat_map(of)
}

fn classes() -> [Option<Class>; 4] {
    [None, Some(Class(0)), Some(Class::CLOSED), Some(Class(255))]
}

fn policies() -> impl Iterator<Item = IngressPolicy> {
    let of = |check| {
        (0..4u8).map(move |flags| IngressPolicy {
            class: Class(flags),
            check,
            ttl: flags & 1 != 0,
            icmp: flags & 2 != 0,
            punts: u16::from(flags) * 21_845,
        })
    };
    classes().into_iter().flat_map(of)
}

fn keys() -> impl Iterator<Item = RouteKey> {
    let address = Ipv4Addr::new(10, 203, 47, 129);
    let lens = (0..=32).flat_map(|src| (0..=32).map(move |dst| (src, dst)));
    lens.flat_map(move |(src, dst)| {
        let (src, dst) = (Prefix::new(address, src), Prefix::new(address, dst));
        classes().map(|class| RouteKey { class, src, dst })
    })
}

fn routes() -> impl Iterator<Item = Route> {
    let address = Ipv4Addr::new(10, 1, 2, 3);
    let hops = [NextHop::Mac(Mac([2; 6])), NextHop::Mac(Mac::ZERO), NextHop::Via(address), NextHop::OnLink];
    let forward = hops.map(|to| Action::Forward(Hop { iface: Iface(0x0102), to }));
    let encap = Encap::new(address, Ipv4Addr::BROADCAST, 1480);
    let drops = REASONS.map(Action::Drop);
    let others =
        [Action::Punt, Action::Host, Action::Tunnel(encap), Action::Open(Class(200), Kinds::of(Kind::Gre))];
    let tunnels = [Kind::Minimal, Kind::Gre]
        .map(|kind| Action::Tunnel(Encap { kind, reported: 1400, is_failing: true, ..encap }));
    let lifetimes = [
        Lifetime::Permanent,
        Lifetime::SoftState(Duration::ZERO),
        Lifetime::SoftState(SECOND),
        Lifetime::ReportIdle(SECOND),
        Lifetime::ReportIdle(Duration::from_nanos(u64::MAX)),
        Lifetime::Until(Instant::ZERO),
        Lifetime::Until(Instant::NEVER),
    ];
    let actions = forward.into_iter().chain(drops).chain(others).chain(tunnels);
    let notices = [None, Some(Duration::from_nanos(1)), Some(SECOND)];
    let aside = |to| Route {
        aside: Some(Aside { hop: Hop { iface: Iface(0x0304), to }, packets: 0x0506 }),
        ..Route::new(Action::Punt, Lifetime::Until(Instant(7)))
    };
    let plain = actions.flat_map(move |action| {
        lifetimes
            .into_iter()
            .flat_map(move |lifetime| notices.map(|notice| Route { notice, ..Route::new(action, lifetime) }))
    });
    plain.chain(hops.map(aside))
}

fn found() -> impl Iterator<Item = (Found, Instant)> {
    let of = |(number, route)| {
        let found = Found { entry: EntryId(number * 0x0101_0101), owner: RoleId(number as u8), route };
        (found, Instant(u64::from(number) << 33))
    };
    (0u32..).zip(routes()).map(of)
}

#[test]
fn every_entry_survives_the_conversion() {
    for port in ports() {
        let bytes = MapPort::new(port).to_bytes();
        assert_eq!(MapPort::from_bytes(bytes).read(), Ok(port));
    }
    for policy in policies() {
        for owner in [RoleId(0), RoleId::NODE] {
            let bytes = MapPolicy::new(owner, &policy).to_bytes();
            assert_eq!(MapPolicy::from_bytes(bytes).read(), Ok((owner, policy)));
        }
    }
    for key in keys() {
        let bytes = MapKey::new(&key).to_bytes();
        assert_eq!(MapKey::from_bytes(bytes).read(), Ok(key));
    }
    for (found, used) in found() {
        let bytes = MapRoute::new(&found, used).to_bytes();
        assert_eq!(MapRoute::from_bytes(bytes).read(reason_of), Ok((found, used)));
    }
}

/// Each entry has only one form in bytes: if a byte is changed, the bytes are those of another entry, or are refused.
#[test]
fn no_entry_has_two_forms() {
    let (mut refused, mut others) = (0, 0);
    let mut count = |is_refused: bool| if is_refused { refused += 1 } else { others += 1 };
    for (found, used) in found() {
        let bytes = MapRoute::new(&found, used).to_bytes();
        for at in 0..bytes.len() {
            for value in [0, 1, 2, 3, 7, 128, 255].into_iter().filter(|value| *value != bytes[at]) {
                let mut changed = bytes;
                changed[at] = value;
                let read = MapRoute::from_bytes(changed).read(reason_of);
                if let Ok((other, other_used)) = read {
                    assert_ne!((other, other_used), (found, used), "byte {at} of {found:?}");
                    assert_eq!(MapRoute::new(&other, other_used).to_bytes(), changed);
                }
                count(read.is_err());
            }
        }
    }
    assert!(refused > 10_000 && others > 10_000, "{refused} refused, {others} other entries");
}

#[test]
fn a_prefix_with_bits_after_its_length_is_refused() {
    let key = MapKey::new(&RouteKey::to(Class(3), Ipv4Addr::new(10, 1, 0, 7)));
    let refused = Err(NotAnEntry("route key"));
    assert_eq!(MapKey { dst_len: 31, ..key }.read(), refused);
    assert_eq!(MapKey { dst_len: 33, ..key }.read(), refused);
    assert_eq!(MapKey { src_len: 33, ..key }.read(), refused);
    assert_eq!(MapKey { has_class: 2, ..key }.read(), refused);
    assert_eq!(MapKey { has_class: 0, ..key }.read(), refused, "a class that is not given is zero");
}

#[test]
fn a_flag_is_zero_or_one_and_what_is_not_used_is_zero() {
    let port = MapPort::new(Port { iface: Iface(1), from: Some(Mac([2; 6])) });
    for changed in
        [MapPort { has_from: 0, ..port }, MapPort { has_from: 2, ..port }, MapPort { rest: 1, ..port }]
    {
        assert_eq!(changed.read(), Err(NotAnEntry("port")));
    }
    let policy = IngressPolicy::default_of(Port { iface: Iface(1), from: None });
    let policy = MapPolicy::new(RoleId(1), &policy);
    for changed in [
        MapPolicy { check: 1, ..policy },
        MapPolicy { has_check: 2, ..policy },
        MapPolicy { ttl: 3, ..policy },
        MapPolicy { icmp: 255, ..policy },
    ] {
        assert_eq!(changed.read(), Err(NotAnEntry("policy")));
    }
}

/// An array map contains zeros at first. A route of zeros must be refused.
#[test]
fn a_zeroed_route_is_no_entry_and_a_drop_for_an_unknown_reason_is_refused() {
    assert_eq!(MapRoute::from_bytes([0; MapRoute::SIZE]).read(reason_of), Err(NotAnEntry("route")));
    let route = Route::new(Action::Drop(Reason("unheard_of")), Lifetime::Permanent);
    let found = Found { entry: EntryId(1), owner: RoleId(1), route };
    let form = MapRoute::new(&found, Instant::ZERO);
    assert_eq!(form.read(reason_of), Err(NotAnEntry("route")));
    assert_eq!(form.read(|_| Some(Reason("unheard_of"))), Ok((found, Instant::ZERO)));
    assert_eq!(form.read(|_| Some(REASONS[0])), Err(NotAnEntry("route")), "another reason than its number");
}

#[test]
fn a_lifetime_that_does_not_fit_ends_as_late() {
    let route = |span| Route::new(Action::Host, Lifetime::SoftState(span));
    let found = Found { entry: EntryId(0), owner: RoleId(0), route: route(Duration::MAX) };
    let (read, _) = MapRoute::new(&found, Instant(5)).read(reason_of).unwrap();
    let end = read.route.lifetime.end(Instant(5));
    assert_eq!((end, found.route.lifetime.end(Instant(5))), (Some(Instant::NEVER), Some(Instant::NEVER)));
}

#[test]
fn the_bytes_are_those_of_the_other_side() {
    let key = RouteKey::to(Class(3), Ipv4Addr::new(10, 1, 0, 7));
    assert_eq!(MapKey::new(&key).to_bytes(), [0, 0, 0, 0, 10, 1, 0, 7, 0, 32, 1, 3]);
    let route = Route::new(Action::Forward(Hop::mac(Iface(0), Mac([2, 3, 4, 5, 6, 7]))), Lifetime::Permanent);
    let found = Found { entry: EntryId(0), owner: RoleId(9), route };
    let mut expected = [0; MapRoute::SIZE];
    expected[..4].copy_from_slice(&[9, tag::FORWARD, tag::MAC, tag::PERMANENT]);
    expected[10..16].copy_from_slice(&[2, 3, 4, 5, 6, 7]);
    assert_eq!(MapRoute::new(&found, Instant::ZERO).to_bytes(), expected);
    assert_eq!(Reason("").code(), 0x811c_9dc5, "the offset of FNV-1a");
    assert_eq!(Reason("a").code(), 0xe40c_292c, "a published test vector");
}

#[test]
fn only_packets_that_the_owner_would_get_may_be_kept_aside() {
    let hop = Hop::mac(Iface(1), Mac([2; 6]));
    let bytes = |action, packets| {
        let aside = Some(Aside { hop, packets });
        let route = Route { aside, ..Route::new(action, Lifetime::Permanent) };
        MapRoute::new(&Found { entry: EntryId(1), owner: RoleId(1), route }, Instant::ZERO)
    };
    let kept = bytes(Action::Punt, 3);
    assert_eq!((kept.action, kept.hop, kept.mtu_or_packets, kept.mac), (tag::PUNT, tag::MAC, 3, [2; 6]));
    let none = MapRoute::new(&bytes(Action::Host, 3).read(reason_of).unwrap().0, Instant::ZERO);
    assert_eq!((none.hop, none.mtu_or_packets), (0, 0));
    assert_eq!(bytes(Action::Punt, 0).hop, 0, "nothing is kept, so the owner must get each packet");
}
