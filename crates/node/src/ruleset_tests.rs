//! Tests of the lifetimes of routes, and of the choice of the most specific route.

use super::*;
use table::{Action, Hop, Lifetime};
use wire::{Duration, Iface, Mac};

const CLASS: Class = Class(7);
const OWNER: RoleId = RoleId(2);
const HOST: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
const SECOND: Duration = Duration::from_secs(1);

fn to(mac: u8, lifetime: Lifetime) -> Route {
    Route::new(Action::Forward(Hop::mac(Iface(1), Mac([mac; 6]))), lifetime)
}

fn winner(rules: &Ruleset, now: Instant) -> Option<Action> {
    rules.route(now, CLASS, Ipv4Addr::new(10, 9, 0, 1), HOST).map(|found| found.route.action)
}

#[test]
fn the_most_specific_source_wins_then_destination_then_class() {
    let mut rules = Ruleset::default();
    let net = |text: &str| text.parse::<Prefix>().unwrap();
    let keys = [
        RouteKey { class: None, src: Prefix::ANY, dst: Prefix::ANY },
        RouteKey { class: Some(CLASS), src: Prefix::ANY, dst: Prefix::ANY },
        RouteKey { class: None, src: Prefix::ANY, dst: net("10.1.0.0/16") },
        RouteKey { class: None, src: Prefix::ANY, dst: Prefix::host(HOST) },
        RouteKey { class: None, src: net("10.9.0.0/16"), dst: Prefix::ANY },
    ];
    for (mac, key) in (1..).zip(keys) {
        rules.set_route(Instant::ZERO, OWNER, key, Some(to(mac, Lifetime::Permanent)));
        assert_eq!(winner(&rules, Instant::ZERO), Some(to(mac, Lifetime::Permanent).action), "{key:?}");
    }
    for (mac, key) in (1..).zip(keys).skip(1).collect::<Vec<_>>().into_iter().rev() {
        rules.set_route(Instant::ZERO, OWNER, key, None);
        assert_eq!(
            winner(&rules, Instant::ZERO),
            Some(to(mac - 1, Lifetime::Permanent).action),
            "without {key:?}"
        );
    }
}

#[test]
fn a_refreshed_route_is_dead_at_its_end_and_reported_once() {
    let mut rules = Ruleset::default();
    let key = RouteKey::to(CLASS, HOST);
    rules.set_route(Instant::ZERO, OWNER, key, Some(to(1, Lifetime::SoftState(SECOND))));
    let id = rules.reverse_path(Instant::ZERO, CLASS, HOST).unwrap().entry;
    let half = Instant::from_millis(500);
    rules.used(id, half);
    assert!(winner(&rules, Instant(1_499_999_999)).is_some());
    assert_eq!(winner(&rules, half + SECOND), None, "an expired mapping is never returned");
    assert_eq!(rules.next_deadline(), Some(Instant::ZERO + SECOND), "early, because of the use since");
    assert_eq!(rules.pop_idle(Instant::ZERO + SECOND), None);
    assert_eq!(rules.next_deadline(), Some(half + SECOND));
    assert_eq!(rules.pop_idle(half + SECOND), Some((OWNER, key, half)));
    assert_eq!(rules.pop_idle(half + SECOND + SECOND), None);
    assert_eq!(rules.next_deadline(), None);
}

#[test]
fn a_watched_route_stays_and_a_use_arms_it_again() {
    let mut rules = Ruleset::default();
    let key = RouteKey::to(CLASS, HOST);
    rules.set_route(Instant::ZERO, OWNER, key, Some(to(1, Lifetime::ReportIdle(SECOND))));
    let end = Instant::ZERO + SECOND;
    assert_eq!(rules.pop_idle(end), Some((OWNER, key, Instant::ZERO)));
    let found = rules.route(end, CLASS, HOST, HOST).expect("it stays");
    assert_eq!(rules.next_deadline(), None, "reported once");
    rules.used(found.entry, end);
    assert_eq!(rules.pop_idle(end + SECOND), Some((OWNER, key, end)));
}

#[test]
fn a_route_set_anew_lives_from_then_on_and_leaves_no_old_end_behind() {
    let mut rules = Ruleset::default();
    let key = RouteKey::to(CLASS, HOST);
    for tenth in 0..20 {
        rules.set_route(
            Instant::from_millis(tenth * 100),
            OWNER,
            key,
            Some(to(1, Lifetime::SoftState(SECOND))),
        );
    }
    let mut reports = 0;
    for tenth in 0..50 {
        reports += u32::from(rules.pop_idle(Instant::from_millis(tenth * 100)).is_some());
    }
    assert_eq!(reports, 1);
    rules.set_route(Instant::ZERO, OWNER, key, None);
    assert!(rules.shapes.is_empty() && rules.entries.iter().all(Option::is_none));
}

#[test]
fn many_routes_are_found_as_a_few_are() {
    for count in [FEW, FEW + 1, 3 * FEW] {
        let key = |host: usize| RouteKey::to(CLASS, Ipv4Addr::from_bits(host as u32));
        let mut rules = Ruleset::default();
        let set = |rules: &mut Ruleset, host: usize| {
            rules.set_route(Instant::ZERO, OWNER, key(host), Some(to(host as u8, Lifetime::Permanent)));
        };
        let found = |rules: &Ruleset| -> Vec<Option<Action>> {
            let way = |host| rules.reverse_path(Instant::ZERO, CLASS, Ipv4Addr::from_bits(host as u32));
            (0..count).map(|host| way(host).map(|found| found.route.action)).collect()
        };
        let all: Vec<_> = (0..count).map(|host| Some(to(host as u8, Lifetime::Permanent).action)).collect();
        (0..count).for_each(|host| set(&mut rules, host));
        assert_eq!(found(&rules), all, "{count}");
        (0..count).step_by(2).for_each(|host| rules.set_route(Instant::ZERO, OWNER, key(host), None));
        let odd = |(host, action): (usize, &Option<Action>)| action.filter(|_| host % 2 == 1);
        assert_eq!(
            found(&rules),
            all.iter().enumerate().map(odd).collect::<Vec<_>>(),
            "{count} without the even"
        );
        (0..count).step_by(2).for_each(|host| set(&mut rules, host));
        assert_eq!((found(&rules), rules.entries.len()), (all, count), "and no more room is taken");
    }
}

#[test]
fn a_gate_of_one_neighbor_beats_the_interfaces() {
    let mut rules = Ruleset::default();
    let any = Port { iface: Iface(1), from: None };
    let one = Port { iface: Iface(1), from: Some(Mac([1; 6])) };
    let policy = |class| IngressPolicy { class: Class(class), check: None, ttl: true, icmp: true, punts: 2 };
    rules.set_ingress_policy(OWNER, any, Some(policy(20)));
    rules.set_ingress_policy(OWNER, one, Some(policy(21)));
    assert_eq!(rules.ingress_policy(one).1.class, Class(21));
    assert_eq!(rules.ingress_policy(Port { from: Some(Mac([2; 6])), ..one }).1.class, Class(20));
    assert_eq!(rules.ingress_policy(Port { iface: Iface::HOST, from: None }).1.class, Class::HOST);
}

#[test]
fn punts_are_counted_by_the_second() {
    let mut rules = Ruleset::default();
    let port = Port { iface: Iface(1), from: None };
    rules.set_ingress_policy(
        OWNER,
        port,
        Some(IngressPolicy { class: CLASS, check: Some(CLASS), ttl: true, icmp: true, punts: 2 }),
    );
    let verdicts: Vec<bool> = (0..4).map(|_| rules.may_punt(Instant::ZERO, port)).collect();
    assert_eq!(verdicts, [true, true, false, false]);
    assert!(rules.may_punt(Instant::ZERO + SECOND, port));
}

#[test]
fn a_route_until_then_is_dead_at_its_end_however_much_it_is_used() {
    let mut rules = Ruleset::default();
    let key = RouteKey::to(CLASS, HOST);
    let end = Instant::ZERO + SECOND;
    rules.set_route(Instant::ZERO, OWNER, key, Some(to(1, Lifetime::Until(end))));
    let id = rules.reverse_path(Instant::ZERO, CLASS, HOST).unwrap().entry;
    let last = Instant(end.0 - 1);
    rules.used(id, last);
    assert!(winner(&rules, last).is_some());
    assert_eq!(winner(&rules, end), None);
    assert_eq!(rules.next_deadline(), Some(end));
    assert_eq!(rules.pop_idle(end), Some((OWNER, key, last)));
    assert_eq!(rules.pop_idle(end + SECOND), None, "reported once");
}

#[test]
fn a_closed_class_meets_its_own_routes_only() {
    let mut rules = Ruleset::default();
    let closed = Class(Class::CLOSED.0 + 3);
    rules.set_route(
        Instant::ZERO,
        OWNER,
        RouteKey { class: None, src: Prefix::ANY, dst: Prefix::host(HOST) },
        Some(to(1, Lifetime::Permanent)),
    );
    let found = |rules: &Ruleset| rules.route(Instant::ZERO, closed, HOST, HOST).map(|found| found.route);
    assert_eq!(found(&rules), None);
    assert!(winner(&rules, Instant::ZERO).is_some());
    rules.set_route(Instant::ZERO, OWNER, RouteKey::all(closed), Some(to(2, Lifetime::Permanent)));
    assert_eq!(found(&rules), Some(to(2, Lifetime::Permanent)), "although the other is more specific");
}

#[test]
fn what_has_arrived_takes_no_default_route() {
    let mut rules = Ruleset::default();
    let any = RouteKey { class: None, src: Prefix::ANY, dst: Prefix::ANY };
    rules.set_route(Instant::ZERO, OWNER, any, Some(to(1, Lifetime::Permanent)));
    let found = |rules: &Ruleset| {
        rules.find_route(Instant::ZERO, CLASS, HOST, HOST, true).map(|found| found.route.action)
    };
    assert_eq!(found(&rules), None);
    rules.set_route(Instant::ZERO, OWNER, RouteKey::to(CLASS, HOST), Some(to(2, Lifetime::Permanent)));
    assert_eq!(found(&rules), Some(to(2, Lifetime::Permanent).action));
}

/// The number of a removed route is used again, so the table grows only with the routes that exist at the same time.
#[test]
fn the_place_of_a_removed_route_is_used_again() {
    for count in [3, 100] {
        let mut rules = Ruleset::default();
        let key = |host: u32| RouteKey::to(CLASS, Ipv4Addr::from_bits(host));
        let route = Some(to(1, Lifetime::Permanent));
        (0..count).for_each(|host| rules.set_route(Instant::ZERO, OWNER, key(host), route));
        for host in 0..1000 {
            rules.set_route(Instant::ZERO, OWNER, key(host), None);
            rules.set_route(Instant::ZERO, OWNER, key(host + count), route);
        }
        let ids = (1000..1000 + count).map(|host| rules.id_of(key(host)).unwrap().0);
        assert_eq!(rules.entries.len(), count as usize);
        assert_eq!(ids.collect::<std::collections::BTreeSet<_>>(), (0..count).collect());
    }
}

#[test]
fn a_change_that_is_not_reported_is_noticed() {
    let mut rules = Ruleset::default();
    let soft = Some(to(1, Lifetime::SoftState(SECOND)));
    rules.set_route(Instant::ZERO, OWNER, RouteKey::to(CLASS, HOST), soft);
    assert!(rules.is_mirrored(), "without a mirror nothing is reported");
    rules.begin_mirror();
    rules.set_route(Instant::ZERO, OWNER, RouteKey::all(CLASS), soft);
    assert!(rules.is_mirrored());
    assert!(rules.pop_idle(Instant::ZERO + SECOND).is_some());
    assert!(rules.is_mirrored(), "an expired route is no longer in the copy");
    rules.entries.clear();
    assert!(!rules.is_mirrored());
}

#[test]
fn a_use_outside_keeps_a_route_and_a_late_one_does_not_bring_it_back() {
    let mut rules = Ruleset::default();
    let key = RouteKey::to(CLASS, HOST);
    rules.set_route(Instant::ZERO, OWNER, key, Some(to(1, Lifetime::SoftState(SECOND))));
    let (end, used) = (Instant::ZERO + SECOND, Instant::from_millis(700));
    let mut asked = Vec::new();
    rules.ask_uses(Instant(end.0 - 1), &mut |key| panic!("{key:?} does not end yet"));
    rules.ask_uses(end, &mut |key| {
        asked.push(*key);
        Some(used)
    });
    assert_eq!(asked, [key]);
    assert_eq!((rules.pop_idle(end), rules.next_deadline()), (None, Some(used + SECOND)));
    rules.ask_uses(used + SECOND, &mut |_| None);
    assert_eq!(rules.pop_idle(used + SECOND), Some((OWNER, key, used)), "the copy did not have it either");
    rules.used_outside(key, used + SECOND);
    assert_eq!((winner(&rules, used + SECOND), rules.next_deadline()), (None, None));
}

#[test]
fn a_use_outside_of_an_idle_route_begins_its_time_again() {
    let mut rules = Ruleset::default();
    let key = RouteKey::to(CLASS, HOST);
    rules.set_route(Instant::ZERO, OWNER, key, Some(to(1, Lifetime::ReportIdle(SECOND))));
    let end = Instant::ZERO + SECOND;
    assert_eq!(rules.pop_idle(end), Some((OWNER, key, Instant::ZERO)));
    rules.ask_uses(Instant::NEVER, &mut |key| panic!("{key:?} is reported already"));
    rules.used_outside(key, end + SECOND);
    assert_eq!(rules.next_deadline(), Some(end + SECOND + SECOND));
}
