//! Tests of the resolution and expiry of neighbors, of replies, and of messages that must not be learnt.

use super::*;

const ETH: Iface = Iface(1);
const OUR_MAC: Mac = Mac([2, 0, 0, 0, 0, 1]);
const PEER_MAC: Mac = Mac([2, 0, 0, 0, 0, 2]);
const OTHER_MAC: Mac = Mac([2, 0, 0, 0, 0, 3]);
const OURS: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
const START: Instant = Instant::ZERO;

fn packet(number: u64) -> Packet {
    Packet { id: PacketId(number), ..Packet::new(Mac::ZERO, vec![0x45]) }
}

fn hear(arp: &mut Arp, now: Instant, message: &Message) -> Heard {
    let ear = Ear {
        iface: ETH,
        mac: OUR_MAC,
        is_own: &|address| address == OURS,
        on_link: &|address| address.octets()[..3] == [10, 1, 0],
    };
    arp.hear(now, &ear, message)
}

fn find(arp: &mut Arp, now: Instant, number: u64) -> Found {
    find_at(arp, now, PEER, number)
}

fn find_at(arp: &mut Arp, now: Instant, neighbor: Ipv4Addr, number: u64) -> Found {
    arp.find(now, (ETH, neighbor), Origin::Host, packet(number), true)
}

fn waits(ask: bool) -> Found {
    Found::Wait { ask, displaced: Vec::new(), given_up: None }
}

fn here(mac: Mac, number: u64) -> Found {
    Found::Here { mac, packet: packet(number), probe: false }
}

fn held(arp: &Arp) -> Vec<u64> {
    let mut held = Vec::new();
    arp.holds(&mut |id| held.push(id.0));
    held
}

fn answer_of_peer() -> Message {
    Message::request(OUR_MAC, OURS, PEER).answer(PEER_MAC)
}

#[test]
fn packets_wait_for_the_answer_and_go_in_order() {
    let mut arp = Arp::default();
    assert_eq!(find(&mut arp, START, 1), waits(true));
    assert_eq!(find(&mut arp, START, 2), waits(false), "asked for already");
    assert_eq!(held(&arp), [1, 2]);
    let heard = hear(&mut arp, START, &answer_of_peer());
    assert_eq!((heard.released, heard.answer), (VecDeque::from([packet(1), packet(2)]), None));
    assert_eq!(find(&mut arp, START, 3), here(PEER_MAC, 3));
    assert_eq!((arp.deadline(), held(&arp)), (None, vec![]));
}

#[test]
fn more_than_three_packets_wait_and_those_of_roles_leave_first() {
    let mut arp = Arp::default();
    for number in 1..=40 {
        let origin = if number % 10 == 0 { Origin::Role } else { Origin::Forwarded };
        let found = arp.find(START, (ETH, PEER), origin, packet(number), true);
        assert_eq!(found, waits(number == 1), "none has to make room");
    }
    let released = hear(&mut arp, START, &answer_of_peer()).released;
    let numbers: Vec<u64> = released.iter().map(|packet| packet.id.0).collect();
    assert_eq!((numbers.len(), &numbers[..6]), (40, &[10, 20, 30, 40, 1, 2][..]));
}

#[test]
fn who_never_answers_is_asked_three_times() {
    let mut arp = Arp::default();
    find(&mut arp, START, 1);
    for second in 1..=2 {
        let due = START + RETRY * second;
        assert_eq!(arp.deadline(), Some(due));
        assert_eq!(arp.pop_due(Instant(due.0 - 1)), None);
        assert_eq!(arp.pop_due(due), Some(Due::Ask(ETH, PEER, None)));
        assert_eq!(arp.pop_due(due), None);
    }
    assert_eq!(arp.pop_due(START + RETRY * 3), Some(Due::Failed(ETH, VecDeque::from([packet(1)]))));
    assert_eq!((arp.deadline(), held(&arp)), (None, vec![]));
    assert_eq!(find(&mut arp, START + RETRY * 3, 2), waits(true), "and again from the start");
}

#[test]
fn an_answer_is_not_believed_for_ever() {
    let mut arp = Arp::default();
    find(&mut arp, START, 1);
    hear(&mut arp, START, &answer_of_peer());
    assert_eq!(find(&mut arp, Instant((START + FRESH).0 - 1), 2), here(PEER_MAC, 2));
    assert_eq!(find(&mut arp, START + BELIEVED, 3), waits(true), "it was not used since");
}

/// Returns a cache in which one neighbor was learnt at [`START`], and the instant at which a use of its entry began a
/// probe.
fn probed() -> (Arp, Instant) {
    let (mut arp, used) = (Arp::default(), START + FRESH);
    find(&mut arp, START, 1);
    hear(&mut arp, START, &answer_of_peer());
    assert_eq!(find(&mut arp, used, 2), Found::Here { mac: PEER_MAC, packet: packet(2), probe: true });
    assert_eq!(
        find(&mut arp, used, 3),
        here(PEER_MAC, 3),
        "one probe at a time, and the packet does not wait"
    );
    (arp, used)
}

#[test]
fn a_neighbor_in_use_is_probed_by_unicast_before_its_entry_ends() {
    let (mut arp, used) = probed();
    assert_eq!(arp.pop_due(used + RETRY), Some(Due::Ask(ETH, PEER, Some(PEER_MAC))));
    hear(&mut arp, used + RETRY, &answer_of_peer());
    assert_eq!(arp.deadline(), None);
    assert_eq!(find(&mut arp, START + BELIEVED, 4), here(PEER_MAC, 4), "the answer made it fresh again");
}

#[test]
fn a_neighbor_that_answers_no_probe_is_sought_by_broadcast() {
    let (mut arp, used) = probed();
    for second in 1..=2 {
        assert_eq!(arp.pop_due(used + RETRY * second), Some(Due::Ask(ETH, PEER, Some(PEER_MAC))));
    }
    assert_eq!(find(&mut arp, used + RETRY * 2, 4), here(PEER_MAC, 4));
    assert_eq!(arp.pop_due(used + RETRY * 3), Some(Due::Failed(ETH, VecDeque::new())));
    assert_eq!(find(&mut arp, used + RETRY * 3, 5), waits(true));
    assert_eq!(
        arp.pop_due(used + RETRY * 4),
        Some(Due::Ask(ETH, PEER, None)),
        "it may have a new link address"
    );
}

#[test]
fn a_mute_host_probes_nobody() {
    let mut arp = Arp::default();
    find(&mut arp, START, 1);
    hear(&mut arp, START, &answer_of_peer());
    let found = arp.find(START + FRESH, (ETH, PEER), Origin::Host, packet(2), false);
    assert_eq!((found, arp.deadline()), (here(PEER_MAC, 2), None));
}

type Change = fn(&mut Arp) -> VecDeque<Packet>;

#[test]
fn what_was_learnt_ends_with_the_link_and_with_the_cell() {
    let other_eth = Iface(2);
    let changes: [Change; 2] = [|arp| arp.down(ETH), |arp| arp.up(ETH, Some(Cell(2)))];
    for change in changes {
        let mut arp = Arp::default();
        arp.up(ETH, Some(Cell(1)));
        arp.set(ETH, OURS, Some(Neighbor::At(OTHER_MAC)));
        find(&mut arp, START, 1);
        hear(&mut arp, START, &answer_of_peer());
        find_at(&mut arp, START, MOBILE, 2);
        arp.find(START, (other_eth, PEER), Origin::Host, packet(3), true);
        assert_eq!(arp.up(ETH, Some(Cell(1))), [], "the same link");
        assert_eq!(find(&mut arp, START, 4), here(PEER_MAC, 4));
        assert_eq!(change(&mut arp), [packet(2)], "it waited for a neighbor of that link");
        assert_eq!(find(&mut arp, START, 5), waits(true), "no neighbor is known on the next link");
        assert_eq!(
            find_at(&mut arp, START, OURS, 6),
            here(OTHER_MAC, 6),
            "what a role has set is the role's"
        );
        assert_eq!(held(&arp), [5, 3], "other interfaces are as they were");
    }
}

#[test]
fn we_answer_for_our_own_and_learn_who_asked() {
    let mut arp = Arp::default();
    let request = Message::request(PEER_MAC, PEER, OURS);
    assert_eq!(hear(&mut arp, START, &request).answer, Some(request.answer(OUR_MAC)));
    assert_eq!(find(&mut arp, START, 1), here(PEER_MAC, 1));
    let elsewhere = Message::request(PEER_MAC, PEER, MOBILE);
    assert_eq!(hear(&mut arp, START, &elsewhere).answer, None);
    let probe = Message::request(PEER_MAC, Ipv4Addr::UNSPECIFIED, OURS);
    assert!(hear(&mut arp, START, &probe).answer.is_some(), "the prober learns that the address is in use");
}

#[test]
fn strangers_to_the_link_are_answered_and_not_learnt() {
    let mut arp = Arp::default();
    let far = Ipv4Addr::new(10, 9, 0, 9);
    assert!(hear(&mut arp, START, &Message::request(PEER_MAC, far, OURS)).answer.is_some());
    assert_eq!(find_at(&mut arp, START, far, 1), waits(true));
}

#[test]
fn an_announcement_updates_what_is_known_and_makes_nothing() {
    let mut arp = Arp::default();
    let announced = |mac| Message::gratuitous(mac, PEER);
    hear(&mut arp, START, &announced(PEER_MAC));
    assert_eq!(find(&mut arp, START, 1), waits(true), "without a request");
    assert_eq!(hear(&mut arp, START, &announced(PEER_MAC)).released.len(), 1, "now it was asked for");
    hear(&mut arp, START, &announced(OTHER_MAC));
    assert_eq!(find(&mut arp, START, 2), here(OTHER_MAC, 2), "it has moved");
}

#[test]
fn who_claims_our_address_is_not_believed() {
    let mut arp = Arp::default();
    let heard = hear(&mut arp, START, &Message::gratuitous(PEER_MAC, OURS));
    assert_eq!((heard.end, heard.answer), (reason::ARP_CONFLICT, None));
    assert_eq!(find_at(&mut arp, START, OURS, 1), waits(true), "nothing was learnt");
}

#[test]
fn an_agent_answers_for_a_host_that_is_away_but_not_to_itself() {
    let mut arp = Arp::default();
    let request = Message::request(PEER_MAC, PEER, MOBILE);
    arp.set(ETH, MOBILE, Some(Neighbor::Proxy));
    assert_eq!(hear(&mut arp, START, &request).answer, Some(request.answer(OUR_MAC)));
    assert_eq!(hear(&mut arp, START, &Message::gratuitous(OTHER_MAC, MOBILE)).answer, None, "it is back");
    arp.set(ETH, MOBILE, None);
    assert_eq!(hear(&mut arp, START, &request).answer, None);
}

#[test]
fn a_mute_host_answers_only_the_agent_that_it_knows() {
    let mut arp = Arp::default();
    let request = Message::request(PEER_MAC, PEER, OURS);
    arp.set(ETH, OURS, Some(Neighbor::Mute));
    assert!(arp.is_mute(ETH, OURS));
    assert_eq!(hear(&mut arp, START, &request).answer, None);
    arp.set(ETH, PEER, Some(Neighbor::At(PEER_MAC)));
    assert!(hear(&mut arp, START, &request).answer.is_some());
    assert_eq!(hear(&mut arp, START, &Message { sender_mac: OTHER_MAC, ..request }).answer, None);
    assert_eq!(arp.find(START, (ETH, MOBILE), Origin::Host, packet(1), false), Found::Silent(packet(1)));
}

#[test]
fn what_a_role_has_set_no_message_moves() {
    let mut arp = Arp::default();
    arp.set(ETH, PEER, Some(Neighbor::At(PEER_MAC)));
    hear(&mut arp, START, &Message::gratuitous(OTHER_MAC, PEER));
    assert_eq!(find(&mut arp, START + BELIEVED * 9, 1), here(PEER_MAC, 1));
}

fn address(number: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(OURS.to_bits() + 256 + number as u32)
}

#[test]
fn the_table_is_bounded_and_the_oldest_makes_room() {
    let mut arp = Arp::default();
    for number in 0..=CAPACITY {
        let now = START + Duration::from_millis(number as u64);
        find_at(&mut arp, now, address(number), 1);
        hear(&mut arp, now, &Message { sender: address(number), ..answer_of_peer() });
    }
    assert_eq!(arp.known.len(), CAPACITY);
    let now = START + Duration::from_secs(1);
    assert_eq!(find_at(&mut arp, now, address(0), 2), waits(true), "the oldest made room");
    assert_eq!(find_at(&mut arp, now, address(1), 2), here(PEER_MAC, 2));
}

/// The entries of neighbors to which no packet was sent make room first. Here, another host on the link creates such
/// entries: it sends requests to this node from many addresses.
#[test]
fn neighbors_that_no_packet_is_sent_to_make_room_first() {
    let mut arp = Arp::default();
    find(&mut arp, START, 1);
    hear(&mut arp, START, &answer_of_peer());
    let claim = |arp: &mut Arp, now, number| {
        let sender = Ipv4Addr::from_bits(OURS.to_bits() + 100 + number % 100);
        let sender = if number < 100 { sender } else { address(number as usize) };
        let asks = Message::request(OTHER_MAC, sender, OURS);
        let ear = Ear { iface: ETH, mac: OUR_MAC, is_own: &|it| it == OURS, on_link: &|_| true };
        arp.hear(now, &ear, &asks);
    };
    for number in 0..2 * CAPACITY as u32 {
        claim(&mut arp, START + Duration::from_millis(u64::from(number)), number);
    }
    assert_eq!(arp.known.len(), CAPACITY);
    let now = START + Duration::from_secs(2);
    assert_eq!(find(&mut arp, now, 2), here(PEER_MAC, 2), "the neighbor in use is still known");
    // An expired entry makes room before the unused valid entries, although packets were sent to its neighbor.
    let later = START + BELIEVED;
    claim(&mut arp, later, 5000);
    assert!(!arp.known.contains_key(&(ETH, PEER)));
}

#[test]
fn a_scan_that_is_forwarded_displaces_no_neighbor_in_use() {
    let mut arp = Arp::default();
    find(&mut arp, START, 1);
    hear(&mut arp, START, &answer_of_peer());
    for number in 0..2 * CAPACITY {
        arp.find(START, (ETH, address(number)), Origin::Forwarded, packet(number as u64), true);
    }
    assert_eq!(arp.sought.len(), SOUGHT);
    assert_eq!(find(&mut arp, START, 2), here(PEER_MAC, 2));
}

#[test]
fn a_scan_that_is_forwarded_keeps_no_packet_from_its_neighbor() {
    let mut arp = Arp::default();
    for number in 0..SOUGHT {
        arp.find(START, (ETH, address(number)), Origin::Forwarded, packet(number as u64), true);
    }
    let gives_up = |arp: &mut Arp, neighbor, origin, number| match arp.find(
        START,
        (ETH, neighbor),
        origin,
        packet(number),
        true,
    ) {
        Found::Wait { ask: true, given_up: Some((ETH, packets)), .. } => packets,
        other => panic!("{other:?}"),
    };
    assert_eq!(gives_up(&mut arp, PEER, Origin::Role, 600), [packet(0)], "the one sought longest");
    assert_eq!(gives_up(&mut arp, address(SOUGHT), Origin::Forwarded, 601), [packet(1)]);
}

#[test]
fn a_scan_gives_up_nobody_whom_a_role_seeks() {
    let mut arp = Arp::default();
    for number in 0..SOUGHT {
        arp.find(START, (ETH, address(number)), Origin::Role, packet(number as u64), true);
    }
    let forwarded = arp.find(START, (ETH, PEER), Origin::Forwarded, packet(600), true);
    assert_eq!(forwarded, Found::Full(packet(600)));
}

#[test]
fn the_use_of_a_watched_address_is_reported() {
    let mut arp = Arp::default();
    let probe = |mac| Message::request(mac, Ipv4Addr::UNSPECIFIED, MOBILE);
    let used = |arp: &mut Arp, message: &Message| hear(arp, START, message).in_use;
    assert_eq!(used(&mut arp, &probe(PEER_MAC)), None, "no role watches");
    arp.set(ETH, MOBILE, Some(Neighbor::Watched));
    assert!(arp.watches(ETH) && !arp.watches(Iface(ETH.0 + 1)));
    assert_eq!(used(&mut arp, &probe(PEER_MAC)), Some(MOBILE), "another host probes it");
    assert_eq!(used(&mut arp, &probe(OUR_MAC)), None, "the node's own probe returns");
    assert_eq!(used(&mut arp, &Message::gratuitous(PEER_MAC, MOBILE)), Some(MOBILE));
    assert_eq!(used(&mut arp, &Message::request(PEER_MAC, MOBILE, OURS)), Some(MOBILE), "it sends from it");
    assert_eq!(used(&mut arp, &Message::request(PEER_MAC, PEER, MOBILE)), None, "a question is no use");
    assert_eq!(used(&mut arp, &Message::gratuitous(PEER_MAC, OURS)), Some(OURS), "the node's own address");
    arp.set(ETH, MOBILE, None);
    assert!(!arp.watches(ETH));
}
