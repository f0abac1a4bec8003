//! One of two routes stops carrying packets, without a report. The association uses the other route until the first
//! one works again.

use crate::harness::{CN, Network, PORT, mn, noise};
use crate::roaming::has;
use sctp::message::{Chunk, Data, Packet};
use sctp::{AssociationEvent, Change, Config, Ended, State, Transmit};
use wire::{Duration, Ipv4Addr};

/// Returns a network where the mobile host has two addresses. Data to the mobile host go to `mn(2)`, and packets of the
/// mobile host leave from `mn(2)`.
fn moved(config: &Config) -> Network {
    let mut net = Network::with(config, config, &[mn(1), mn(2)], &[CN]);
    net.byte = 1000;
    net.run_for(500);
    assert_eq!(net.states(), [State::Established; 2]);
    let now = net.now;
    net.association(0).change(now, &[Change::SetPrimary(mn(2))]).unwrap();
    net.association(0).move_to(now, mn(2), &[mn(1), mn(2)]).unwrap();
    net.run_for(500);
    net
}

fn quick() -> Config {
    Config { rto_min: Duration::from_millis(200), ..Config::default() }
}

/// Returns the source of the mobile host's last packet with a chunk for which `kind` is true.
fn source(net: &Network, kind: fn(&Chunk) -> bool) -> Ipv4Addr {
    let of_kind = |(_, who, transmit): &&(wire::Instant, usize, Transmit)| *who == 0 && has(transmit, kind);
    net.sent.iter().rfind(of_kind).unwrap().2.src
}

/// RFC 9260, section 6.4: repeated data show that their acknowledgments are lost. So SACKs leave from the address
/// that the data come to.
#[test]
fn what_comes_by_the_other_way_is_acknowledged_by_it() {
    for config in [quick(), Config::default()] {
        let mut net = moved(&config);
        net.hosts[1].data = noise(1, 3_000_000);
        net.run_for(300);
        assert_eq!(source(&net, |chunk| matches!(chunk, Chunk::Sack(_))), mn(2));
        net.dead.push(mn(2));
        net.run_for(120_000);
        assert!(net.hosts[0].got == noise(1, 3_000_000), "{}", net.hosts[0].got.len());
        assert_eq!(net.association(0).detour(), Some(mn(1)));
        assert_eq!(source(&net, |chunk| matches!(chunk, Chunk::Sack(_))), mn(1));
        // The route works again. The peer probes it, and the answer to a probe of the mobile host ends the detour.
        net.dead.clear();
        net.run_for(120_000);
        assert_eq!(net.association(0).detour(), None);
        assert_eq!(source(&net, |chunk| matches!(chunk, Chunk::Heartbeat(_))), mn(2));
        assert_eq!(net.states(), [State::Established; 2]);
    }
}

/// After two time-outs, the sender probes the other route, and sends the lost data on it.
#[test]
fn data_that_are_not_acknowledged_leave_by_the_way_that_works() {
    let mut net = moved(&quick());
    net.hosts[0].data = noise(1, 2_000_000);
    net.run_for(300);
    net.dead.push(mn(2));
    assert!(
        net.stall(1, 2000) < 800,
        "two time-outs, of which the second is twice as long, and two round trips"
    );
    net.run_for(10_000);
    assert!(net.hosts[1].got == noise(1, 2_000_000), "{}", net.hosts[1].got.len());
    assert_eq!(net.association(0).detour(), Some(mn(1)));
}

/// A change that is requested while the chosen route does not work is sent on the other route.
#[test]
fn a_change_is_asked_for_by_the_way_that_works() {
    let mut net = moved(&quick());
    net.dead.push(mn(2));
    let now = net.now;
    net.association(0).change(now, &[Change::Add(mn(3))]).unwrap();
    net.run_for(5000);
    assert!(net.association(0).local_addresses().any(|address| address == mn(3)));
}

/// If only acknowledgments are lost on a route, and not data, the acknowledgments leave on the other route.
#[test]
fn acknowledgments_leave_by_the_other_way_if_only_they_are_lost() {
    let mut net = moved(&quick());
    net.hosts[1].data = noise(1, 1_000_000);
    for _ in 0..60_000 {
        net.run_for(2);
        net.lose(|transmit| transmit.src == mn(2));
    }
    assert!(net.hosts[0].got == noise(1, 1_000_000), "{}", net.hosts[0].got.len());
    assert_eq!(net.states(), [State::Established; 2]);
    assert_eq!(net.association(0).detour(), Some(mn(1)));
    assert_eq!(source(&net, |chunk| matches!(chunk, Chunk::Sack(_))), mn(1));
}

/// Returns the correspondent's last packet with data.
fn last_data(net: &Network) -> Transmit {
    let is_data = |t: &Transmit| has(t, |chunk| matches!(chunk, Chunk::Data(_)));
    net.sent.iter().rfind(|(_, who, t)| *who == 1 && is_data(t)).unwrap().2.clone()
}

/// The network makes a copy of earlier data, which arrives shortly after new data. The copy does not count as a
/// retransmission, so the route does not change.
#[test]
fn a_copy_says_nothing_of_a_way() {
    let mut net = moved(&quick());
    net.hosts[1].data = noise(1, 100_000);
    net.run_for(2000);
    let last = last_data(&net);
    net.hosts[1].data.extend(noise(2, 1000));
    net.run_for(30);
    for _ in 0..5 {
        net.arrive(0, &Transmit { dst: mn(1), ..last.clone() });
    }
    assert_eq!(net.association(0).detour(), None);
}

/// One repetition shows only that one acknowledgment was lost. After two repetitions, the route changes.
#[test]
fn one_lost_acknowledgment_leaves_no_way() {
    let mut net = moved(&quick());
    net.hosts[1].data = noise(1, 100_000);
    net.run_for(3000);
    let last = Transmit { dst: mn(1), ..last_data(&net) };
    for _ in 0..5 {
        net.arrive(0, &last);
    }
    assert_eq!(net.association(0).detour(), None, "a flight that is repeated is one repetition");
    assert_eq!(source(&net, |chunk| matches!(chunk, Chunk::Sack(_))), mn(2));
    net.run_for(150);
    net.arrive(0, &last);
    assert_eq!(net.association(0).detour(), Some(mn(1)));
    assert_eq!(source(&net, |chunk| matches!(chunk, Chunk::Sack(_))), mn(1));
    // Packets from the preferred address reach the peer, so the detour ends, but not before a time-out has passed.
    net.hosts[1].data.extend(noise(3, 1000));
    net.run_for(100);
    assert_eq!(net.association(0).detour(), Some(mn(1)));
    net.run_for(1000);
    net.hosts[1].data.extend(noise(4, 1000));
    net.run_for(100);
    assert_eq!(net.association(0).detour(), None);
}

/// The route changes only if data are repeated again that the acknowledgment of the first repetition covered. A
/// repetition of later data does not show that this acknowledgment was lost.
#[test]
fn what_is_repeated_for_the_first_time_says_nothing_of_the_acknowledgment_before() {
    let mut net = moved(&quick());
    net.hosts[1].data = noise(1, 100_000);
    net.run_for(3000);
    let first = Transmit { dst: mn(1), ..last_data(&net) };
    net.arrive(0, &first);
    // Two packets are acknowledged without delay, so the peer itself repeats none.
    net.hosts[1].data.extend(noise(3, 2000));
    net.run_for(1000);
    let second = Transmit { dst: mn(1), ..last_data(&net) };
    assert_ne!(first, second);
    net.arrive(0, &second);
    assert_eq!(net.association(0).detour(), None);
    // The first data are repeated again, so none of their acknowledgments has arrived.
    net.run_for(150);
    net.arrive(0, &first);
    assert_eq!(net.association(0).detour(), Some(mn(1)));
}

/// The peer's retransmissions arrive at the host's two addresses in turn. The host changes its route at most once per
/// retransmission time-out.
#[test]
fn repetitions_at_alternating_addresses_change_the_way_once_in_a_time_out() {
    let mut net = moved(&quick());
    net.hosts[1].data = noise(1, 100_000);
    net.run_for(3000);
    let last = last_data(&net);
    net.hosts[0].data = noise(2, 10_000_000);
    net.run_for(500);
    let (mut changes, mut detour) = (Vec::new(), None);
    let end = net.now + Duration::from_secs(6);
    let mut at = 0;
    while net.now < end {
        if at % 110 == 0 {
            net.arrive(0, &Transmit { dst: mn(1 + (at / 110 % 2) as u8), ..last.clone() });
        }
        at += 5;
        net.run_for(5);
        let now = net.association(0).detour();
        if now != std::mem::replace(&mut detour, now) {
            changes.push(net.now.0 / 1_000_000);
        }
    }
    assert!(!changes.is_empty());
    let pauses = changes.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(pauses.min() >= Some(200), "{changes:?}");
}

/// Data for which the receive buffer has no room do not count as new. So repetitions after such data still count.
#[test]
fn what_finds_no_room_is_no_news() {
    let config = Config { receive_buffer: 4000, ..quick() };
    let mut net = moved(&config);
    net.hosts[0].appetite = 0;
    net.hosts[1].data = noise(1, 100_000);
    net.run_for(3000);
    let last = last_data(&net);
    let mut packet = Packet::parse(&last.bytes).unwrap();
    let Some(Chunk::Data(probe)) = packet.chunks.pop() else { panic!("{packet:?}") };
    let refused = last;
    packet.chunks = vec![Chunk::Data(Data { tsn: probe.tsn.wrapping_sub(1), ..probe })];
    let known = Transmit { dst: mn(1), bytes: packet.emit(), ..refused.clone() };
    for _ in 0..2 {
        net.arrive(0, &refused);
        net.arrive(0, &known);
        // The peer's own probes of the window are lost.
        net.dead = vec![CN];
        net.run_for(150);
        net.dead.clear();
    }
    assert_eq!(net.association(0).detour(), Some(mn(1)));
}

/// Drops all packets to and from `mn(2)` until the mobile host has sent a HEARTBEAT from its other address. Drops that
/// HEARTBEAT as well, and returns the HEARTBEAT ACK for it.
fn probed(net: &mut Network) -> Transmit {
    let from = net.sent.len();
    net.dead = vec![mn(2)];
    net.run_until(Duration::from_secs(5), |net| net.sent[from..].iter().any(is_probe));
    let probe = net.sent.iter().rfind(|sent| is_probe(sent)).unwrap().2.clone();
    assert_eq!(net.lose(|transmit| transmit.bytes == probe.bytes), 1);
    answer_to_last_probe(net)
}

/// Returns whether a sent packet is a HEARTBEAT from the mobile host's other address, `mn(1)`.
fn is_probe((_, who, transmit): &(wire::Instant, usize, Transmit)) -> bool {
    *who == 0 && transmit.src == mn(1) && has(transmit, |chunk| matches!(chunk, Chunk::Heartbeat(_)))
}

fn answer_to_last_probe(net: &Network) -> Transmit {
    let (_, _, probe) = net.sent.iter().rfind(|sent| is_probe(sent)).unwrap();
    let packet = Packet::parse(&probe.bytes).unwrap();
    let Some(Chunk::Heartbeat(info)) = packet.chunks.first() else { panic!("{packet:?}") };
    let tag = Packet::parse(&last_data(net).bytes).unwrap().tag;
    let chunks = vec![Chunk::HeartbeatAck(info.clone())];
    let answer = Packet { src_port: PORT, dst_port: 4000, tag, chunks };
    Transmit { src: CN, dst: mn(1), bytes: answer.emit(), cut: None }
}

fn hears(net: &mut Network, Transmit { src, dst, bytes, .. }: &Transmit) {
    let now = net.now;
    net.hosts[0].endpoint.receive(now, *src, *dst, bytes).unwrap();
    net.flush(0);
}

fn errors(net: &mut Network) -> u32 {
    net.association(0).paths().next().unwrap().errors
}

/// Returns a network where the mobile host has data to send. Both of its addresses work.
fn sending() -> Network {
    let mut net = moved(&quick());
    net.hosts[1].data = noise(2, 10_000);
    net.run_for(1000);
    net.hosts[0].data = noise(1, 2_000_000);
    net.run_for(300);
    net
}

/// A HEARTBEAT ACK resets the counter of failures once. A later copy of it has no effect.
#[test]
fn an_answer_to_a_probe_counts_once() {
    let mut net = sending();
    let answer = probed(&mut net);
    hears(&mut net, &answer);
    assert_eq!((net.association(0).detour(), errors(&mut net)), (Some(mn(1)), 0));
    net.dead = vec![mn(1), mn(2)];
    net.run_for(3000);
    let before = errors(&mut net);
    assert!(before >= 2, "{before}");
    hears(&mut net, &answer);
    assert_eq!(errors(&mut net), before);
}

/// A HEARTBEAT ACK has an effect only if it comes to the source of the HEARTBEAT.
#[test]
fn an_answer_at_another_address_proves_no_way() {
    let mut net = sending();
    let answer = probed(&mut net);
    hears(&mut net, &Transmit { dst: mn(2), ..answer.clone() });
    assert_eq!((net.association(0).detour(), errors(&mut net)), (None, 2));
    hears(&mut net, &answer);
    assert_eq!((net.association(0).detour(), errors(&mut net)), (Some(mn(1)), 0));
}

/// A late answer to a probe does not change the route after a single time-out.
#[test]
fn one_time_out_leaves_no_way() {
    let mut net = sending();
    probed(&mut net);
    net.dead = vec![mn(1)];
    net.run_for(1000);
    let answer = answer_to_last_probe(&net);
    assert_eq!((net.association(0).detour(), errors(&mut net)), (None, 0));
    net.dead = vec![mn(1), mn(2)];
    net.run_for(250);
    assert_eq!(errors(&mut net), 1);
    hears(&mut net, &answer);
    assert_eq!(net.association(0).detour(), None);
}

/// If both routes carry HEARTBEATs, but no packets of more than 1000 bytes, and no router reports that, the association
/// ends by time-outs. So a HEARTBEAT ACK must not clear the association's counter of failures while data are
/// outstanding (RFC 9260, section 8.1).
#[test]
fn routes_that_only_heartbeats_pass_end_the_association() {
    for config in [quick(), Config::default()] {
        let mut net = moved(&config);
        net.hosts[0].size = 1400;
        net.hosts[0].data = noise(1, 100_000);
        let begin = net.now;
        while net.now < begin + Duration::from_mins(10) && net.states()[0] != State::Closed {
            net.run_for(5);
            net.lose(|transmit| transmit.src != CN && transmit.bytes.len() > 1000);
        }
        assert_eq!(net.events(0).last(), Some(&AssociationEvent::Closed(Ended::TimedOut)));
    }
}

/// If the address of the detour is deleted, packets leave from the preferred address again, as there is no third one.
#[test]
fn a_way_that_is_given_up_is_not_used() {
    let mut net = moved(&quick());
    net.hosts[0].data = noise(1, 500_000);
    net.run_for(100);
    net.dead.push(mn(2));
    net.run_for(3000);
    assert_eq!(net.association(0).detour(), Some(mn(1)));
    net.dead = vec![mn(1)];
    let now = net.now;
    net.association(0).change(now, &[Change::Delete(mn(1))]).unwrap();
    net.run_for(5000);
    assert_eq!(net.association(0).detour(), None);
    assert!(net.hosts[1].got == noise(1, 500_000), "{}", net.hosts[1].got.len());
}

/// RFC 9260, section 6.4.1: when the primary address is silent, another address of the peer is tried, even a
/// superseded one. Data take the other route after two time-outs; the second time-out is twice as long as the first.
/// Acknowledgments take the other route when the first data on this route are repeated. This is after RTO.Initial, as
/// no round trip was measured on this route. Data go to the primary address again when its link has returned.
#[test]
fn a_silent_primary_address_is_left_for_one_that_was_superseded() {
    for (config, worst) in [(quick(), 1100), (Config::default(), 3200)] {
        for both in [false, true] {
            let mut net = moved(&config);
            net.hosts[1].data = noise(1, 20_000_000);
            if both {
                net.hosts[0].data = noise(2, 20_000_000);
            }
            net.run_for(300);
            net.dead.push(mn(2));
            let stall = net.stall(0, 10_000);
            assert!(stall < worst, "both ways: {both}, {stall} ms");
            net.dead.clear();
            let stall = net.stall(0, 5000);
            assert!(stall < 300, "both ways: {both}, {stall} ms after the return");
            // A probe of the primary address waits for at most RTO.Max.
            assert!(net.hosts[0].got.len() < 19_000_000, "there was always something to send");
            net.hosts[1].data.truncate(net.hosts[0].got.len() + 200_000);
            net.run_for(60_000);
            net.hosts[1].data.extend(noise(3, 1000));
            net.run_for(1000);
            assert_eq!(last_data(&net).dst, mn(2), "both ways: {both}");
        }
    }
}

/// RFC 9260, section 6.3.3, E2: each time-out is twice as long as the previous time-out, even if HEARTBEATs are
/// answered meanwhile. So an association outlives 30 s in which only short packets arrive.
#[test]
fn a_hole_for_full_packets_is_outlived() {
    for ms in [200, 1000] {
        let config = Config { rto_min: Duration::from_millis(ms), ..Config::default() };
        for (paths, both) in [(1, false), (1, true), (2, false), (2, true)] {
            for hole in [5_000, 10_000, 30_000] {
                let mut net = if paths == 1 { Network::opened(&config) } else { moved(&config) };
                net.hosts[0].size = 1400;
                net.hosts[0].data = noise(1, 1_000_000);
                net.hosts[1].size = 200;
                net.run_for(300);
                for at in 0..hole / 2 {
                    if both && at % 10 == 0 {
                        net.hosts[1].data.extend(noise(2, 200));
                    }
                    net.run_for(2);
                    net.lose(|transmit| transmit.src != CN && transmit.bytes.len() > 1000);
                }
                let name = format!("RTO.Min {ms}, {paths} paths, both ways: {both}, {hole} ms");
                assert_eq!(net.states(), [State::Established; 2], "{name}");
                assert!(net.hosts[1].got.len() < 900_000, "{name}");
                let longest = net.association(0).paths().map(|path| path.rto).max();
                assert!(longest >= Some(Duration::from_millis(hole / 4)), "{name}: {longest:?}");
                net.run_for(2 * hole + 6000);
                assert!(net.hosts[1].got == noise(1, 1_000_000), "{name}: {}", net.hosts[1].got.len());
            }
        }
    }
}
