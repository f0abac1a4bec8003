//! Resolution, ageing, answers, and who is believed.

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
    arp.find(now, ETH, PEER, packet(number), true)
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
    assert_eq!(find(&mut arp, START, 1), Found::Wait(true, None));
    assert_eq!(find(&mut arp, START, 2), Found::Wait(false, None), "asked for already");
    assert_eq!(held(&arp), [1, 2]);
    let heard = hear(&mut arp, START, &answer_of_peer());
    assert_eq!((heard.released, heard.answer), (VecDeque::from([packet(1), packet(2)]), None));
    assert_eq!(find(&mut arp, START, 3), Found::Here(PEER_MAC, packet(3)));
    assert_eq!((arp.deadline(), held(&arp)), (None, vec![]));
}

#[test]
fn the_oldest_makes_room_when_too_many_wait() {
    let mut arp = Arp::default();
    for number in 1..=3 {
        assert!(matches!(find(&mut arp, START, number), Found::Wait(_, None)));
    }
    assert_eq!(find(&mut arp, START, 4), Found::Wait(false, Some(packet(1))));
    assert_eq!(held(&arp), [2, 3, 4]);
}

#[test]
fn who_never_answers_is_asked_three_times() {
    let mut arp = Arp::default();
    find(&mut arp, START, 1);
    for second in 1..=2 {
        let due = START + RETRY * second;
        assert_eq!(arp.deadline(), Some(due));
        assert_eq!(arp.pop_due(Instant(due.0 - 1)), None);
        assert_eq!(arp.pop_due(due), Some(Due::Ask(ETH, PEER)));
        assert_eq!(arp.pop_due(due), None);
    }
    assert_eq!(arp.pop_due(START + RETRY * 3), Some(Due::Failed(ETH, VecDeque::from([packet(1)]))));
    assert_eq!((arp.deadline(), held(&arp)), (None, vec![]));
    assert_eq!(find(&mut arp, START + RETRY * 3, 2), Found::Wait(true, None), "and again from the start");
}

#[test]
fn an_answer_is_not_believed_for_ever() {
    let mut arp = Arp::default();
    find(&mut arp, START, 1);
    hear(&mut arp, START, &answer_of_peer());
    assert!(matches!(find(&mut arp, Instant((START + BELIEVED).0 - 1), 2), Found::Here(PEER_MAC, _)));
    assert_eq!(find(&mut arp, START + BELIEVED, 3), Found::Wait(true, None));
}

#[test]
fn we_answer_for_our_own_and_learn_who_asked() {
    let mut arp = Arp::default();
    let request = Message::request(PEER_MAC, PEER, OURS);
    assert_eq!(hear(&mut arp, START, &request).answer, Some(request.answer(OUR_MAC)));
    assert!(matches!(find(&mut arp, START, 1), Found::Here(PEER_MAC, _)));
    let elsewhere = Message::request(PEER_MAC, PEER, MOBILE);
    assert_eq!(hear(&mut arp, START, &elsewhere).answer, None);
    let probe = Message::request(PEER_MAC, Ipv4Addr::UNSPECIFIED, OURS);
    assert!(hear(&mut arp, START, &probe).answer.is_some(), "who probes learns that the address is taken");
}

#[test]
fn strangers_to_the_link_are_answered_and_not_learnt() {
    let mut arp = Arp::default();
    let far = Ipv4Addr::new(10, 9, 0, 9);
    assert!(hear(&mut arp, START, &Message::request(PEER_MAC, far, OURS)).answer.is_some());
    assert_eq!(arp.find(START, ETH, far, packet(1), true), Found::Wait(true, None));
}

#[test]
fn an_announcement_updates_what_is_known_and_makes_nothing() {
    let mut arp = Arp::default();
    let announced = |mac| Message::gratuitous(mac, PEER);
    hear(&mut arp, START, &announced(PEER_MAC));
    assert_eq!(find(&mut arp, START, 1), Found::Wait(true, None), "nobody had asked");
    assert_eq!(hear(&mut arp, START, &announced(PEER_MAC)).released.len(), 1, "now it was asked for");
    hear(&mut arp, START, &announced(OTHER_MAC));
    assert!(matches!(find(&mut arp, START, 2), Found::Here(OTHER_MAC, _)), "it has moved");
}

#[test]
fn who_claims_our_address_is_not_believed() {
    let mut arp = Arp::default();
    let heard = hear(&mut arp, START, &Message::gratuitous(PEER_MAC, OURS));
    assert_eq!((heard.end, heard.answer), (reason::ARP_CONFLICT, None));
    assert_eq!(arp.find(START, ETH, OURS, packet(1), true), Found::Wait(true, None), "nothing was learnt");
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
    assert_eq!(arp.find(START, ETH, MOBILE, packet(1), false), Found::Silent(packet(1)));
}

#[test]
fn what_a_role_has_set_no_message_moves() {
    let mut arp = Arp::default();
    arp.set(ETH, PEER, Some(Neighbor::At(PEER_MAC)));
    hear(&mut arp, START, &Message::gratuitous(OTHER_MAC, PEER));
    assert!(matches!(find(&mut arp, START + BELIEVED * 9, 1), Found::Here(PEER_MAC, _)));
}

#[test]
fn the_table_is_bounded_and_the_oldest_makes_room() {
    let mut arp = Arp::default();
    let address = |number: usize| Ipv4Addr::from_bits(OURS.to_bits() + 256 + number as u32);
    for number in 0..CAPACITY {
        arp.find(START, ETH, address(number), packet(1), true);
    }
    assert_eq!(arp.find(START, ETH, PEER, packet(2), true), Found::Full(packet(2)), "all are sought");
    let answer = Message { sender: address(5), ..answer_of_peer() };
    hear(&mut arp, START, &answer);
    assert_eq!(arp.find(START, ETH, PEER, packet(2), true), Found::Wait(true, None), "one was known");
    assert_eq!(arp.known.len() + arp.sought.len(), CAPACITY);
}
