//! Moves while an association opens or shuts down, moves whose answer is lost, and moves back before the answer came.

use crate::harness::{CN, Network, mn, noise};
use crate::script::Script;
use crate::transfers::patient;
use sctp::message::{Chunk, Packet};
use sctp::{AssociationEvent, Change, Config, Ended, State, Transmit};
use wire::Duration;

pub(crate) fn has(transmit: &Transmit, kind: impl Fn(&Chunk) -> bool) -> bool {
    Packet::parse(&transmit.bytes).unwrap().chunks.iter().any(kind)
}

/// Returns the number of changes whose result was reported to host `who`.
pub(crate) fn answers(net: &Network, who: usize) -> usize {
    net.events(who).iter().filter(|event| matches!(event, AssociationEvent::Changed(..))).count()
}

fn is_ack(transmit: &Transmit) -> bool {
    has(transmit, |chunk| matches!(chunk, Chunk::AsconfAck(_)))
}

/// Breaks the link of the address `mn(gone)`, and moves host `who` to `mn(here)`: it requests three changes in one
/// chunk.
pub(crate) fn break_to(net: &mut Network, who: usize, gone: u8, here: u8) {
    net.dead.retain(|address| *address != mn(here));
    net.dead.push(mn(gone));
    let changes = [Change::Add(mn(here)), Change::SetPrimary(mn(here)), Change::Delete(mn(gone))];
    let now = net.now;
    net.association(who).change(now, &changes).unwrap();
    net.association(who).prefer(now, None, mn(here)).unwrap();
}

/// If the peer sends to an address that waits for its answer, the peer has added the address, and the answer was
/// lost. The change is then repeated once, before a time-out.
#[test]
fn an_answer_that_was_lost_is_asked_for_when_the_peer_uses_the_address() {
    let mut net = Network::opened(&patient());
    net.hosts[1].data = noise(1, 3_000_000);
    net.run_for(300);
    break_to(&mut net, 0, 1, 2);
    net.run_until(Duration::from_secs(1), |net| net.events(1).contains(&AssociationEvent::PeerAdded(mn(2))));
    assert_eq!(net.lose(is_ack), 1);
    let from = net.sent.len();
    net.run_for(70);
    let done = AssociationEvent::Changed(Change::Add(mn(2)), sctp::ChangeOutcome::Done);
    assert!(net.events(0).contains(&done), "{:?}", net.events(0));
    net.run_for(100);
    let asked = |(_, who, t): &&(wire::Instant, usize, Transmit)| {
        *who == 0 && has(t, |chunk| matches!(chunk, Chunk::Asconf(_)))
    };
    assert_eq!(net.sent[from..].iter().filter(asked).count(), 1, "once, though more data came");
}

/// The answers to ten copies of a change are lost, while the peer sends to the new address. The change is repeated
/// before its backed-off time-outs.
#[test]
fn an_answer_that_is_lost_again_and_again_is_asked_for_each_round_trip() {
    let mut net = Network::opened(&patient());
    net.hosts[1].data = noise(1, 3_000_000);
    net.run_for(300);
    break_to(&mut net, 0, 1, 2);
    let mut lost = 0;
    let done = AssociationEvent::Changed(Change::Add(mn(2)), sctp::ChangeOutcome::Done);
    let begun = net.now;
    while !net.events(0).contains(&done) && net.now < begun + Duration::from_mins(1) {
        net.run_for(5);
        if lost < 10 {
            lost += net.lose(is_ack);
        }
    }
    assert_eq!(lost, 10);
    let took = net.now.since(begun);
    assert!(took < Duration::from_secs(15), "{took:?}: five time-outs that double take 31 s");
}

/// RFC 9260, section 6.3.1, C4: a round trip is measured although the timed chunk is lost. So the RTO does not stay
/// backed off while packets are acknowledged.
#[test]
fn a_flight_whose_timed_chunk_is_lost_gives_a_measurement() {
    let mut script = Script::accepted(&Config::default(), &[mn(1)]);
    script.write(10);
    script.says();
    for _ in 0..2 {
        script.wait_for_timer();
        script.says();
    }
    let backed_off = script.path(mn(1)).rto;
    script.wait(10);
    script.sack(4, &[]);
    assert_eq!(script.says().len(), 2, "slow start");
    assert_eq!(script.path(mn(1)).rto, backed_off, "a retransmission gives no sample");
    script.wait(10);
    script.sack(4, &[(5, 5)]);
    assert!(
        script.path(mn(1)).rto <= Duration::from_secs(1),
        "{:?} before {backed_off:?}",
        script.path(mn(1))
    );
    // Data that were marked as lost give no measurement, as it would include the time-out.
    let mut script = Script::accepted(&Config::default(), &[mn(1)]);
    script.write(4);
    script.says();
    let ms = script.wait_for_timer();
    assert_eq!(script.says().len(), 1);
    script.wait(10);
    script.sack(4, &[]);
    assert!(
        script.path(mn(1)).srtt.is_none_or(|srtt| srtt < Duration::from_millis(ms)),
        "{:?}",
        script.path(mn(1))
    );
}

/// If the address that an association opens from is lost, the association opens from the host's new address.
#[test]
fn an_association_opens_from_where_we_are_by_now() {
    for state in [State::CookieWait, State::CookieEchoed] {
        let mut net = Network::new(&Config::default());
        net.run_until(Duration::from_secs(1), |net| net.states()[0] == state);
        assert_eq!(net.states()[0], state);
        net.dead.push(mn(1));
        net.lose(|transmit| transmit.src == mn(1) || transmit.dst == mn(1));
        net.run_for(500);
        let now = net.now;
        assert!(net.association(0).open_from(now, mn(2)));
        net.run_for(100);
        assert_eq!(net.states(), [State::Established; 2]);
        if state == State::CookieEchoed {
            // The peer may have the association already with the old address, so the change is requested now.
            let changes = [Change::Add(mn(2)), Change::SetPrimary(mn(2)), Change::Delete(mn(1))];
            let now = net.now;
            net.association(0).change(now, &changes).unwrap();
            net.run_for(100);
        }
        assert_eq!(net.association(0).local_addresses().collect::<Vec<_>>(), [mn(2)]);
        let now = net.now;
        assert!(!net.association(0).open_from(now, mn(3)), "it is open");
    }
}

/// If a host moves while an association shuts down, the written data still arrive, and the association ends cleanly
/// at both ends.
#[test]
fn an_association_that_shuts_down_moves_too() {
    for sender in [0, 1] {
        let mut net = Network::opened(&patient());
        net.hosts[sender].data = noise(1, 100_000);
        net.hosts[sender].finishes = true;
        net.run_for(60);
        assert_eq!(net.states()[sender], State::ShutdownPending);
        break_to(&mut net, 0, 1, 2);
        net.run_for(1500);
        assert!(net.hosts[1 - sender].got == noise(1, 100_000), "host {sender} sends");
        for who in [0, 1] {
            assert_eq!(
                net.events(who).last(),
                Some(&AssociationEvent::Closed(Ended::Finished)),
                "host {sender} sends"
            );
        }
    }
}

/// If SHUTDOWN or SHUTDOWN ACK is lost with the link, the association ends cleanly after the move, before a time-out.
#[test]
fn the_end_of_an_association_moves_too() {
    for (closer, who, state) in
        [(0, 0, State::ShutdownSent), (1, 0, State::ShutdownAckSent), (1, 1, State::ShutdownSent)]
    {
        let mut net = Network::opened(&patient());
        let now = net.now;
        net.association(closer).finish(now);
        net.run_until(Duration::from_secs(1), |net| net.states()[who] == state);
        assert_eq!(net.states()[who], state);
        net.lose(|transmit| transmit.src == mn(1) || transmit.dst == mn(1));
        break_to(&mut net, 0, 1, 2);
        // The change takes one round trip, and the end of the association at most two. Three round trips are shorter
        // than a time-out.
        net.run_for(70);
        for who in [0, 1] {
            assert_eq!(
                net.events(who).last(),
                Some(&AssociationEvent::Closed(Ended::Finished)),
                "{closer} {state:?}"
            );
        }
    }
}

/// A host returns to its old address before the answer to its change came. The answer would go to the new address, so
/// the host repeats the change. The peer finds the association, whether it has applied the change or not, and its
/// answer reaches the host.
#[test]
fn who_comes_back_before_the_answer_gets_it_there() {
    for carried_out in [false, true] {
        let mut net = Network::opened(&patient());
        net.hosts[1].data = noise(1, 1_000_000);
        net.run_for(100);
        break_to(&mut net, 0, 1, 2);
        if carried_out {
            net.run_until(Duration::from_secs(1), |net| {
                net.events(1).contains(&AssociationEvent::PeerAdded(mn(2)))
            });
        } else {
            net.flush(0);
        }
        net.lose(|_| true);
        net.dead = vec![mn(2)];
        let now = net.now;
        net.association(0).prefer(now, None, mn(1)).unwrap();
        net.run_for(50);
        assert_eq!(answers(&net, 0), 3, "{carried_out}: {:?}", net.events(0));
        // The peer has deleted the address (`carried_out`), or has refused to delete the source of the request.
        let known: Vec<_> = net.association(0).local_addresses().collect();
        assert_eq!(known.contains(&mn(1)), !carried_out);
        let changes = [Change::Add(mn(1)), Change::SetPrimary(mn(1)), Change::Delete(mn(2))];
        let now = net.now;
        net.association(0).change(now, &changes[usize::from(!carried_out)..]).unwrap();
        net.association(0).prefer(now, None, mn(1)).unwrap();
        let had = net.hosts[0].got.len();
        // If the address was deleted, data to this address are sent again at once. Otherwise the data were lost on the
        // link that has returned, and wait for T3.
        net.run_for(if carried_out { 150 } else { 1150 });
        assert!(net.hosts[0].got.len() > had, "{carried_out}");
        net.run_for(5000);
        assert!(net.hosts[0].got == noise(1, 1_000_000), "{carried_out}: {}", net.hosts[0].got.len());
        assert_eq!(net.association(1).paths().map(|path| path.address).collect::<Vec<_>>(), [mn(1)]);
        assert_eq!(net.association(0).paths().map(|path| path.address).collect::<Vec<_>>(), [CN]);
    }
}

/// SHUTDOWN COMPLETE is lost, and a change reaches the peer, which has ended already and answers with ABORT. The
/// ABORT is no failure: in SHUTDOWN-ACK-SENT both ends have acknowledged all data.
#[test]
fn an_abort_after_a_lost_shutdown_complete_is_the_end() {
    let mut net = Network::opened(&patient());
    let now = net.now;
    net.association(1).finish(now);
    net.run_until(Duration::from_secs(1), |net| net.states()[1] == State::Closed);
    assert_eq!(net.states(), [State::ShutdownAckSent, State::Closed]);
    assert_eq!(net.lose(|t| has(t, |chunk| matches!(chunk, Chunk::ShutdownComplete { .. }))), 1);
    break_to(&mut net, 0, 1, 2);
    net.run_for(50);
    assert!(net.sent.iter().any(|(_, _, t)| has(t, |chunk| matches!(chunk, Chunk::Abort { .. }))));
    assert_eq!(net.events(0).last(), Some(&AssociationEvent::Closed(Ended::Finished)));
}

/// A host has returned to an address whose deletion it requested. An ABORT to this address has an effect: in
/// SHUTDOWN-ACK-SENT the ABORT ends the association cleanly.
#[test]
fn an_abort_to_an_address_that_we_came_back_to_counts() {
    let mut net = Network::opened(&patient());
    let now = net.now;
    net.association(1).finish(now);
    net.run_until(Duration::from_secs(1), |net| net.states()[1] == State::Closed);
    net.lose(|_| true);
    break_to(&mut net, 0, 1, 2);
    net.flush(0);
    net.lose(|_| true);
    net.dead = vec![mn(2)];
    let now = net.now;
    net.association(0).move_to(now, mn(1), &[mn(1)]).unwrap();
    net.run_for(1000);
    assert_eq!(net.events(0).last(), Some(&AssociationEvent::Closed(Ended::Finished)));
}

/// The peer finds the association of a repeated ASCONF by an address that the ASCONF itself has deleted. The source
/// is unknown to the peer, as the host has moved again.
#[test]
fn a_change_that_is_sent_again_is_found_by_an_address_that_it_has_deleted() {
    let mut net = Network::opened(&patient());
    net.hosts[1].data = noise(1, 1_000_000);
    net.run_for(300);
    break_to(&mut net, 0, 1, 2);
    net.run_until(Duration::from_secs(1), |net| {
        net.events(1).contains(&AssociationEvent::PeerDeleted(mn(1)))
    });
    assert_eq!(net.lose(is_ack), 1);
    break_to(&mut net, 0, 2, 3);
    net.run_for(100);
    assert_eq!(net.association(0).local_addresses().collect::<Vec<_>>(), [mn(3)]);
    net.run_for(5000);
    assert!(net.hosts[0].got == noise(1, 1_000_000), "{:?}", net.events(0).last());
}

/// Returns a network where the mobile host has left an address, and a late packet with DATA from this address.
pub(crate) fn left_with_a_late_packet() -> (Network, Transmit) {
    let mut net = Network::opened(&patient());
    net.hosts[0].data = noise(1, 3000);
    net.flush(0);
    let (_, _, late) = net.sent.last().unwrap().clone();
    assert!(has(&late, |chunk| matches!(chunk, Chunk::Data(_))));
    net.run_for(300);
    break_to(&mut net, 0, 1, 2);
    net.run_for(300);
    (net, late)
}

/// A packet that was in flight when its source was deleted is late, and is not answered with ABORT. A packet with
/// another tag is answered with ABORT: it may be from another host that has the address now.
#[test]
fn a_late_packet_from_an_address_that_is_gone_does_no_harm() {
    let (mut net, late) = left_with_a_late_packet();
    let from = net.sent.len();
    let aborts = |net: &Network| {
        let sent = net.sent[from..].iter();
        sent.filter(|(_, _, t)| has(t, |chunk| matches!(chunk, Chunk::Abort { .. }))).count()
    };
    net.arrive(1, &late);
    assert_eq!(aborts(&net), 0);
    assert_eq!(net.states(), [State::Established; 2]);
    let mut packet = Packet::parse(&late.bytes).unwrap();
    packet.tag = packet.tag.wrapping_add(1);
    net.arrive(1, &Transmit { bytes: packet.emit(), ..late });
    assert_eq!(aborts(&net), 1);
    assert_eq!(net.states(), [State::Established; 2]);
}
