//! Moves while an association opens, when one end may have the association already and the other not yet.

use crate::harness::{CN, CN2, Network, PORT, endpoint, mn, noise};
use crate::roaming::{answers, break_to, has};
use crate::script::Script;
use crate::transfers::patient;
use auth::Key;
use sctp::message::Chunk;
use sctp::{AssociationEvent, Change, Config, Ended, Open, State, Transmit};
use wire::{Duration, Ipv4Addr};

fn is_cookie_ack(transmit: &Transmit) -> bool {
    has(transmit, |chunk| matches!(chunk, Chunk::CookieAck))
}

fn paths(net: &mut Network, who: usize) -> Vec<wire::Ipv4Addr> {
    net.association(who).paths().map(|path| path.address).collect()
}

/// COOKIE ACK is lost with the link of the host that opens, so the peer has the association with the old address. The
/// association continues at the new address, without a second association and without a restart.
#[test]
fn an_association_that_the_peer_has_already_moves_with_its_cookie() {
    let mut net = Network::new(&patient());
    net.hosts[1].data = noise(1, 200_000);
    net.run_until(Duration::from_secs(1), |net| net.states()[1] == State::Established);
    assert_eq!(net.states(), [State::CookieEchoed, State::Established]);
    net.dead.push(mn(1));
    net.lose(|transmit| transmit.dst == mn(1));
    for here in [2, 3] {
        let now = net.now;
        assert!(net.association(0).open_from(now, mn(here)));
        assert_eq!(net.association(0).opens_from(), Some(mn(here)));
        net.flush(0);
    }
    net.lose(|transmit| transmit.src == mn(2) || transmit.dst == mn(2));
    net.run_until(Duration::from_secs(1), |net| net.states()[0] == State::Established);
    let changes = [Change::Add(mn(3)), Change::SetPrimary(mn(3)), Change::Delete(mn(1))];
    let now = net.now;
    net.association(0).change(now, &changes).unwrap();
    net.run_for(3000);
    assert!(net.hosts[0].got == noise(1, 200_000), "{:?}", net.events(0));
    assert_eq!(net.hosts[1].endpoint.associations().count(), 1);
    assert_eq!(paths(&mut net, 1), [mn(3)]);
    assert!(!net.events(1).iter().any(|event| matches!(event, AssociationEvent::Restarted { .. })));
}

/// RFC 9260, section 5.4, 2: only the destination of INIT ACK is confirmed, and not the source of COOKIE ECHO.
#[test]
fn the_source_of_a_cookie_proves_nothing() {
    let mut script = Script::silent(&Config::default());
    let cookie = script.cookie(&[mn(1)]);
    script.hears(mn(6), vec![Chunk::CookieEcho(cookie)]).unwrap();
    assert_eq!(script.says()[0], format!("{} COOKIE-ACK", mn(6)));
    assert_eq!(script.active(), [mn(1)]);
    script.write(3);
    assert!(script.says().iter().all(|said| said.starts_with(&mn(1).to_string())));
}

/// A peer moves and its COOKIE ACK is lost. Its request for a change shows that it has the association, so the
/// association is established.
#[test]
fn a_change_of_the_peer_is_as_good_as_its_cookie_ack() {
    let mut net = Network::new(&patient());
    net.run_until(Duration::from_secs(1), |net| net.states()[1] == State::Established);
    assert_eq!(net.lose(is_cookie_ack), 1);
    net.dead.push(CN);
    let changes = [Change::Add(CN2), Change::SetPrimary(CN2), Change::Delete(CN)];
    let now = net.now;
    net.association(1).change(now, &changes).unwrap();
    net.association(1).prefer(now, None, CN2).unwrap();
    net.run_for(100);
    assert_eq!(net.states(), [State::Established; 2]);
    assert_eq!(paths(&mut net, 0), [CN2]);
}

/// The peer has the association at the address that a directory gave, and its COOKIE ACK is lost. Its request for a
/// change establishes the association, without the address of INIT ACK.
#[test]
fn a_change_from_the_address_of_a_directory_is_as_good_as_a_cookie_ack() {
    const CN3: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 9);
    let mut net = Network::new(&Config { pair_key: Some((7, Key::new(*b"a key of two"))), ..patient() });
    net.run_until(Duration::from_secs(5), |net| net.states()[0] == State::CookieEchoed);
    net.lose(|_| true);
    net.dead = vec![CN];
    net.hosts[1].endpoint.accept_at(&[CN2]);
    let now = net.now;
    assert!(net.association(0).try_at(now, CN2));
    net.run_until(Duration::from_secs(1), |net| net.states()[1] == State::Established);
    assert_eq!(net.lose(|_| true), 1, "COOKIE ACK");
    let now = net.now;
    net.association(1).change(now, &[Change::Add(CN3)]).unwrap();
    net.run_for(100);
    assert_eq!(net.states(), [State::Established; 2]);
    assert_eq!(paths(&mut net, 0), [CN2, CN3]);
}

/// A host sends an ASCONF from an address that another association with the same ports has. The tag shows for which
/// association the ASCONF is.
#[test]
fn a_change_from_an_address_of_another_association_is_found_by_its_tag() {
    let mut net = Network::opened(&patient());
    let first = net.hosts[1].id;
    // The mobile host restarts without its state and opens again from another address.
    net.hosts[0].endpoint = endpoint(&patient(), 9);
    let open = Open { local: vec![mn(2)], local_port: 4000, peer: vec![CN], peer_port: PORT };
    let now = net.now;
    net.hosts[0].id = net.hosts[0].endpoint.open(now, &open);
    net.run_for(200);
    assert_ne!(net.hosts[1].id, first);
    assert_eq!(net.states(), [State::Established; 2]);
    // The mobile host is now at an address of the first association, so the addition is refused. But the peer
    // answers.
    break_to(&mut net, 0, 2, 1);
    net.run_for(200);
    assert_eq!(answers(&net, 0), 3, "{:?}", net.events(0));
}

/// A peer has moved, and a directory gives its present address, where it listens. The association opens there if the
/// peer moved before INIT (`moves == 1`). It opens there if the peer moved before COOKIE ECHO (`moves == 2`) and both
/// ends have a pair key: without a key, COOKIE ECHO is not sent to the address, which may be false.
#[test]
fn a_peer_that_has_moved_is_called_where_it_is() {
    for moves in [1, 2] {
        let pair_key = (moves == 2).then(|| (7, Key::new(*b"a key of two")));
        let mut net = Network::new(&Config { pair_key, ..patient() });
        if moves == 1 {
            net.lose(|_| true);
            net.dead.push(CN);
        }
        net.run_until(Duration::from_secs(5), |net| {
            net.events(0).contains(&AssociationEvent::Silent(1)) || net.states()[0] == State::CookieEchoed
        });
        assert_eq!(net.states()[0], if moves == 1 { State::CookieWait } else { State::CookieEchoed });
        net.lose(|_| true);
        net.dead = vec![CN];
        let now = net.now;
        net.hosts[1].endpoint.accept_at(&[CN2]);
        assert!(net.association(0).try_at(now, CN2));
        assert!(!net.association(0).try_at(now, CN2), "it goes there already");
        net.run_for(60);
        assert_eq!(net.states(), [State::Established; 2], "{moves}");
        assert_eq!(paths(&mut net, 0), [CN2]);
        assert_eq!(net.association(1).local_addresses().collect::<Vec<_>>(), [CN2]);
        net.hosts[0].data = noise(1, 50_000);
        net.run_for(300);
        // The peer may have been at its old address when an earlier COOKIE ECHO came. So a late packet from that
        // address is not out of the blue, if INIT ACK came from there.
        let (_, _, last) = net.sent.iter().rfind(|(_, who, _)| *who == 1).unwrap().clone();
        net.arrive(0, &Transmit { src: CN, ..last });
        let aborts = net.sent.iter().any(|(_, _, t)| has(t, |chunk| matches!(chunk, Chunk::Abort { .. })));
        assert_eq!(aborts, moves == 1, "the first INIT had no answer from there");
        net.hosts[0].finishes = true;
        net.run_for(2000);
        assert!(net.hosts[1].got == noise(1, 50_000));
        assert_eq!(net.events(0).last(), Some(&AssociationEvent::Closed(Ended::Finished)));
    }
}

/// Both ends return to their old addresses before their changes were answered. Each end has requested the deletion of
/// its only address that works, so each answers from an address that is being deleted.
#[test]
fn two_that_come_back_at_once_answer_each_other() {
    let mut net = Network::opened(&patient());
    break_to(&mut net, 0, 1, 2);
    let changes = [Change::Add(CN2), Change::SetPrimary(CN2), Change::Delete(CN)];
    let now = net.now;
    net.association(1).change(now, &changes).unwrap();
    net.association(1).prefer(now, None, CN2).unwrap();
    net.flush(0);
    net.flush(1);
    net.lose(|_| true);
    net.dead = vec![mn(2), CN2];
    let now = net.now;
    net.association(0).prefer(now, None, mn(1)).unwrap();
    net.association(1).prefer(now, None, CN).unwrap();
    net.run_for(50);
    for who in [0, 1] {
        assert_eq!(answers(&net, who), 3, "{who}: {:?}", net.events(who));
    }
}

/// A host moves to a third network before its change to the second one was answered. The answer comes to the third
/// address, which the peer does not know.
#[test]
fn an_answer_comes_to_where_we_are_by_now() {
    for carried_out in [false, true] {
        let mut net = Network::opened(&patient());
        net.hosts[1].data = noise(1, 500_000);
        net.run_for(100);
        break_to(&mut net, 0, 1, 2);
        if carried_out {
            net.run_until(Duration::from_secs(1), |net| {
                net.events(1).contains(&AssociationEvent::PeerAdded(mn(2)))
            });
        } else {
            net.flush(0);
        }
        net.lose(|transmit| has(transmit, |c| matches!(c, Chunk::Asconf(_) | Chunk::AsconfAck(_))));
        net.dead = vec![mn(1), mn(2)];
        let now = net.now;
        assert!(net.association(0).prefer(now, None, mn(3)).is_err(), "nothing was asked for it");
        net.association(0).move_to(now, mn(3), &[mn(3)]).unwrap();
        net.run_for(50);
        assert_eq!(answers(&net, 0), 3, "{carried_out}");
        let from = net.sent.len();
        let changes = [Change::Add(mn(3)), Change::SetPrimary(mn(3)), Change::Delete(mn(2))];
        let now = net.now;
        net.association(0).change(now, &changes).unwrap();
        net.run_for(5000);
        assert!(net.hosts[0].got == noise(1, 500_000), "{carried_out}");
        let asked = |transmit: &Transmit| has(transmit, |chunk| matches!(chunk, Chunk::Asconf(_)));
        assert_eq!(net.sent[from..].iter().filter(|(_, who, t)| *who == 0 && asked(t)).count(), 1);
    }
}
