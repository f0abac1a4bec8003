//! Limits in time and number: of cookies, addresses of listeners, former addresses of peers, reduced MTUs, and
//! associations whose peer is gone.

use crate::harness::{CN, CN2, Network, PORT, endpoint, mn, noise};
use crate::roaming::{break_to, has, left_with_a_late_packet};
use crate::script::{Script, peer_init};
use crate::transfers::patient;
use sctp::message::{Chunk, Packet};
use sctp::{AssociationEvent, Change, ChangeOutcome, Config, Ended, Open, State};
use wire::{Duration, Ipv4Addr, Reason};

fn init() -> Vec<u8> {
    Packet { src_port: 4000, dst_port: PORT, tag: 0, chunks: vec![Chunk::Init(peer_init(&[]))] }.emit()
}

/// RFC 9260, section 5.1.5, 4: a cookie is stale when its age is more than its life. A used cookie is remembered until
/// it is stale, so it makes no second association.
#[test]
fn a_spent_cookie_is_remembered_to_the_last_instant_of_its_life() {
    let config = Config::default();
    let mut script = Script::silent(&config);
    let cookie = script.cookie(&[mn(1)]);
    script.hears(mn(1), vec![Chunk::CookieEcho(cookie.clone())]).unwrap();
    script.says();
    script.hears(mn(1), vec![Chunk::Abort { reflected: false, causes: Vec::new() }]).unwrap();
    script.says();
    script.now += u64::try_from(config.cookie_life.as_millis()).unwrap();
    let late = script.hears(mn(1), vec![Chunk::CookieEcho(cookie.clone())]);
    assert_eq!(late, Err(Reason("sctp_cookie_spent")));
    script.now += 1;
    let late = script.hears(mn(1), vec![Chunk::CookieEcho(cookie)]);
    assert_eq!(late, Err(Reason("sctp_cookie_stale")));
}

/// Two associations between the same ports had the same address, one after the other, and no longer have this address.
/// A late packet of the first association is not out of the blue.
#[test]
fn a_former_address_of_two_associations_is_remembered_for_both() {
    let (mut net, late) = left_with_a_late_packet();
    // Another host with the same port is now at the address that the mobile host has left.
    net.dead = vec![mn(2)];
    net.hosts[0].endpoint = endpoint(&patient(), 9);
    let open = Open { local: vec![mn(1)], local_port: 4000, peer: vec![CN], peer_port: PORT };
    let now = net.now;
    net.hosts[0].id = net.hosts[0].endpoint.open(now, &open);
    net.run_for(300);
    break_to(&mut net, 0, 1, 3);
    net.run_for(300);
    assert_eq!(net.association(0).local_addresses().collect::<Vec<_>>(), [mn(3)]);
    let from = net.sent.len();
    net.dead.retain(|address| *address != mn(1));
    net.arrive(1, &late);
    let aborts = net.sent[from..].iter().filter(|(_, _, t)| has(t, |c| matches!(c, Chunk::Abort { .. })));
    assert_eq!(aborts.count(), 0);
}

/// A listening port accepts associations at the present addresses of its host, at most `max_addresses`, and not at
/// former addresses.
#[test]
fn a_listener_accepts_where_its_host_is_now() {
    let mut script = Script::silent(&Config::default());
    let asks = |script: &mut Script, at| script.endpoint.receive(script.at(), mn(1), at, &init());
    assert_eq!(asks(&mut script, CN2), Err(Reason("sctp_no_listener")));
    script.endpoint.accept_at(&[CN2]);
    assert_eq!(asks(&mut script, CN2), Ok(()));
    script.endpoint.accept_at(&[]);
    assert_eq!(asks(&mut script, CN2), Err(Reason("sctp_no_listener")));
    let many: Vec<Ipv4Addr> = (1..=100).map(|last| Ipv4Addr::new(10, 7, 0, last)).collect();
    script.endpoint.accept_at(&many);
    let accepts = many.iter().filter(|at| asks(&mut script, **at).is_ok()).count();
    assert_eq!(accepts, Config::default().max_addresses);
}

/// When a link returns, the failures that were counted without the link are removed. But a link that comes and goes
/// does not keep an association with a dead peer: it ends within 12 returns (RFC 9260, section 8.1).
#[test]
fn a_link_that_comes_and_goes_does_not_keep_a_dead_peer() {
    for period in [3000, 20_000] {
        let mut net = Network::opened(&Config::default());
        net.hosts[0].data = noise(1, 30_000);
        net.dead.push(CN);
        let mut returns = 0;
        while net.states()[0] != State::Closed && returns < 100 {
            net.run_for(period);
            returned(&mut net, 0);
            returns += 1;
        }
        net.flush(0);
        assert_eq!(net.events(0).last(), Some(&AssociationEvent::Closed(Ended::TimedOut)), "{period}");
        assert!(returns <= 12, "{period}: {returns}");
    }
}

fn returned(net: &mut Network, who: usize) {
    let now = net.now;
    net.association(who).link_returned(now);
}

/// If the peer answers after each return of the link, an association outlives any number of interruptions.
#[test]
fn news_of_the_peer_renews_the_excuse_of_a_link() {
    let mut net = Network::opened(&Config::default());
    for round in 0..30 {
        net.hosts[0].data.extend(noise(round, 3000));
        net.drops = [usize::MAX; 2];
        net.run_for(64_000);
        (0..2).for_each(|who| returned(&mut net, who));
        net.run_for(64_000);
        net.drops = [0; 2];
        (0..2).for_each(|who| returned(&mut net, who));
        net.run_for(1000);
        assert_eq!(net.states()[0], State::Established, "{round}");
    }
    assert_eq!(net.hosts[1].got.len(), 90_000);
}

/// RFC 1191, section 6.3: the full MTU is tried again by the first data that leave ten minutes or more after the first
/// data since the report.
#[test]
fn a_path_that_was_narrow_is_tried_again() {
    let mut net = Network::opened(&patient());
    net.hosts[0].size = 1400;
    net.narrow.push((CN, 1000));
    let largest = |net: &Network, from: usize| {
        let own = net.sent[from..].iter().filter(|(_, who, t)| *who == 0 && t.cut.is_none());
        own.map(|(_, _, t)| 20 + t.bytes.len()).max()
    };
    let sends = |net: &mut Network, seconds: u64| {
        let from = net.sent.len();
        net.hosts[0].data.extend(noise(1, 14_000));
        net.run_for(seconds * 1000);
        largest(net, from)
    };
    sends(&mut net, 1);
    assert!(sends(&mut net, 300) <= Some(1000));
    net.narrow.clear();
    assert!(sends(&mut net, 350) <= Some(1000), "not yet");
    assert!(sends(&mut net, 1) > Some(1400));
}

/// A peer refuses the deletion of an address that it does not know. The host deletes the address nevertheless, as the
/// peer does not have it.
#[test]
fn an_address_that_the_peer_never_had_is_deleted() {
    let short = Config { max_addresses: 1, ..Config::default() };
    let mut net = Network::with(&Config::default(), &short, &[mn(1), mn(2)], &[CN]);
    net.run_for(500);
    assert_eq!(net.association(1).paths().map(|path| path.address).collect::<Vec<_>>(), [mn(1)]);
    let now = net.now;
    net.association(0).change(now, &[Change::Delete(mn(2))]).unwrap();
    net.run_for(500);
    assert_eq!(
        net.events(0).last(),
        Some(&AssociationEvent::Changed(Change::Delete(mn(2)), ChangeOutcome::Done))
    );
    assert_eq!(net.association(0).local_addresses().collect::<Vec<_>>(), [mn(1)]);
}

/// A repeated ASCONF shows that the peer is alive, but only `association_max_retrans` times. So a host that replays
/// the chunk does not keep an association with a dead peer.
#[test]
fn a_change_that_comes_again_is_news_of_the_peer_for_a_bounded_time() {
    let config = Config { association_max_retrans: 4, ..patient() };
    let mut net = Network::with(&patient(), &config, &[mn(1)], &[CN]);
    net.run_for(500);
    break_to(&mut net, 0, 1, 2);
    net.flush(0);
    let asked = |transmit: &sctp::Transmit| has(transmit, |chunk| matches!(chunk, Chunk::Asconf(_)));
    let (_, _, change) = net.sent.iter().rfind(|(_, who, t)| *who == 0 && asked(t)).unwrap().clone();
    net.lose(|_| true);
    net.drops = [usize::MAX; 2];
    net.hosts[1].data = noise(1, 1000);
    for second in 1..=300 {
        net.run_for(1000);
        net.arrive(1, &change);
        assert!(second > 8 || net.states()[1] == State::Established, "{second}");
    }
    assert_eq!(net.states()[1], State::Closed);
}

/// Returns a network with one host in `state`, and the index of this host. The host is the correspondent for
/// SHUTDOWN-RECEIVED and SHUTDOWN-ACK-SENT, and else the mobile host. `closed_window`: the peer reads nothing.
fn in_state(state: State, closed_window: bool) -> (Network, usize) {
    let opens = matches!(state, State::CookieWait | State::CookieEchoed);
    let mut net = if opens { Network::new(&Config::default()) } else { Network::opened(&Config::default()) };
    let who = usize::from(matches!(state, State::ShutdownReceived | State::ShutdownAckSent));
    if matches!(state, State::Established | State::ShutdownPending | State::ShutdownReceived) {
        net.hosts[who].data = noise(1, if closed_window { 300_000 } else { 100_000 });
        net.hosts[1 - who].appetite = if closed_window { 0 } else { usize::MAX };
        net.run_for(if closed_window { 10_000 } else { 30 });
    }
    let now = net.now;
    match state {
        State::CookieWait | State::CookieEchoed | State::Established | State::Closed => {}
        _ => net.association(0).finish(now),
    }
    net.run_until(Duration::from_secs(5), |net| net.hosts[who].state() == state);
    assert_eq!(net.hosts[who].state(), state);
    (net, who)
}

/// If the peer is gone, an association ends within 15 minutes in each state. A timer runs in each state, its expiries
/// are counted, and T5 limits the whole shutdown.
#[test]
fn a_peer_that_is_gone_is_given_up_in_every_state() {
    let states = [
        State::CookieWait,
        State::CookieEchoed,
        State::Established,
        State::ShutdownPending,
        State::ShutdownSent,
        State::ShutdownReceived,
        State::ShutdownAckSent,
    ];
    let with_window = [State::Established, State::ShutdownPending, State::ShutdownReceived];
    let cases = states.map(|state| (state, false)).into_iter().chain(with_window.map(|state| (state, true)));
    for (state, closed_window) in cases {
        let (mut net, who) = in_state(state, closed_window);
        net.drops = [usize::MAX; 2];
        net.lose(|_| true);
        net.run_for(15 * 60_000);
        assert_eq!(
            net.events(who).last(),
            Some(&AssociationEvent::Closed(Ended::TimedOut)),
            "{state:?} {closed_window}"
        );
        assert_eq!(net.hosts[who].endpoint.deadline(), None, "{state:?}");
    }
}
