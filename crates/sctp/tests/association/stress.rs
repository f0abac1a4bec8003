//! Handoffs while packets are lost, paths have a small MTU, links return and peers vanish. Further tests check rules of
//! RFC 9260 for bursts, shutdown, collisions and malformed packets.

use crate::harness::{CN, CN2, Network, PORT, mn, noise};
use crate::script::{PEER_TAG, Script, data, peer_init};
use crate::transfers::patient;
use sctp::message::{Chunk, Data, Packet, Sack, set_checksum};
use sctp::{AssociationEvent, Change, Config, Ended, Open, PathState, Rejection, State, Transmit};
use wire::{Duration, Instant, Ipv4Addr, Reason};

const VICTIM: Ipv4Addr = Ipv4Addr::new(10, 66, 6, 6);

fn has(transmit: &Transmit, kind: impl Fn(&Chunk) -> bool) -> bool {
    Packet::parse(&transmit.bytes).unwrap().chunks.iter().any(kind)
}

fn is_data(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Data(_))
}

/// No data, new or repeated, go to an unconfirmed address (RFC 9260, section 5.4; RFC 5062, section 5.3). The order
/// of add, set primary and delete does not matter, in one chunk or in several.
#[test]
fn no_data_go_to_an_address_that_nobody_proved() {
    let (add, primary, delete) = (Change::Add(VICTIM), Change::SetPrimary(VICTIM), Change::Delete(mn(1)));
    let orders: [&[&[Change]]; 6] = [
        &[&[add, primary, delete]],
        &[&[add, delete, primary]],
        &[&[add, delete], &[primary]],
        &[&[add], &[delete], &[primary]],
        &[&[add], &[primary], &[delete]],
        &[&[add, primary], &[delete]],
    ];
    for order in orders {
        let mut net = Network::opened(&Config::default());
        net.hosts[1].data = noise(1, 3_000_000);
        net.run_for(100);
        for changes in order {
            let now = net.now;
            net.association(0).change(now, changes).unwrap();
            net.association(0).prefer(now, None, VICTIM).unwrap();
            net.flush(0);
            // The attacker sends from the victim's address. Of the packets to this address, the attacker receives only
            // ASCONF-ACK.
            let until = net.now + Duration::from_secs(2);
            while net.now < until && net.step(until) {
                net.lose(|transmit| {
                    transmit.dst == VICTIM && !has(transmit, |c| matches!(c, Chunk::AsconfAck(_)))
                });
            }
            net.now = until;
        }
        net.dead.push(VICTIM);
        let deleted = |event: &AssociationEvent| *event == AssociationEvent::PeerDeleted(mn(1));
        assert!(net.events(1).iter().any(deleted), "{order:?}: {:?}", net.events(0).last());
        net.run_for(300_000);
        let to_victim: Vec<_> = net.sent.iter().filter(|(_, who, t)| *who == 1 && t.dst == VICTIM).collect();
        let data = to_victim.iter().filter(|(_, _, t)| has(t, is_data)).count();
        assert_eq!(data, 0, "{order:?}");
        let bytes: usize = to_victim.iter().map(|(_, _, t)| t.bytes.len()).sum();
        assert!(bytes < 1500, "{order:?}: {} packets, {bytes} bytes", to_victim.len());
    }
}

/// RFC 9260, section 5.4: a lost probe of an unconfirmed address is repeated after one time-out, although data are in
/// flight to other addresses.
#[test]
fn a_lost_probe_is_repeated_after_one_time_out() {
    let mut net = Network::opened(&patient());
    net.hosts[1].data = noise(1, 3_000_000);
    net.run_for(100);
    let changes = [Change::Add(mn(2)), Change::SetPrimary(mn(2)), Change::Delete(mn(1))];
    let now = net.now;
    net.association(0).change(now, &changes).unwrap();
    let probe =
        |transmit: &Transmit| transmit.dst == mn(2) && has(transmit, |c| matches!(c, Chunk::Heartbeat(_)));
    net.run_until(Duration::from_secs(1), |net| net.events(1).contains(&AssociationEvent::PeerAdded(mn(2))));
    assert_eq!(net.lose(probe), 1);
    let stall = net.stall(0, 5000);
    assert!((1000..=1200).contains(&stall), "RTO.Initial and a round trip or two: {stall} ms");
}

/// A peer can be reached at a new address only 5.5 s after it has added the address, and then sends from there. The
/// probe of the address is sent again at once, before its backed-off time-out, and only once.
#[test]
fn an_address_that_is_heard_from_is_probed_again_at_once() {
    let mut net = Network::opened(&patient());
    net.hosts[1].data = noise(1, 3_000);
    net.run_for(3000);
    net.dead.push(mn(2));
    let now = net.now;
    net.association(0).change(now, &[Change::Add(mn(2))]).unwrap();
    // Probes at 0, 1 and 3 s were lost; the next one would leave at 7 s.
    net.run_for(5500);
    net.dead.clear();
    let from = net.sent.len();
    let now = net.now;
    net.association(0).change(now, &[Change::SetPrimary(mn(2)), Change::Delete(mn(1))]).unwrap();
    let probes = |net: &Network| {
        let is_probe = |t: &Transmit| t.dst == mn(2) && has(t, |c| matches!(c, Chunk::Heartbeat(_)));
        net.sent[from..].iter().filter(|(_, who, t)| *who == 1 && is_probe(t)).count()
    };
    net.run_until(Duration::from_millis(300), |net| {
        net.events(1).contains(&AssociationEvent::PeerPrimary(mn(2)))
    });
    assert!(net.events(1).contains(&AssociationEvent::PeerPrimary(mn(2))), "{:?}", net.events(1));
    assert_eq!(probes(&net), 1);
}

/// RFC 9260, sections 6.9 and 7.3: chunks that were built for a path with a larger MTU leave in IP fragments at once.
/// New chunks fit the path.
#[test]
fn a_narrower_path_costs_less_than_a_time_out() {
    for mtu in [1400, 1000, 576] {
        let mut net = Network::opened(&Config::default());
        net.hosts[1].data = noise(1, 3_000_000);
        net.hosts[1].size = 1452;
        net.narrow.push((mn(2), mtu));
        net.run_for(150);
        let now = net.now;
        net.association(0).change(now, &[Change::Add(mn(2))]).unwrap();
        net.run_for(100);
        let now = net.now;
        net.association(0).change(now, &[Change::SetPrimary(mn(2)), Change::Delete(mn(1))]).unwrap();
        let stall = net.stall(0, 1500);
        assert!(stall <= 200, "{mtu}: {stall} ms");
        let cut = net.sent.iter().filter(|(_, _, t)| t.cut.is_some()).count();
        assert!((1..=130).contains(&cut), "{mtu}: {cut} packets in fragments");
        let last = net.sent.iter().rev().find(|(_, who, t)| *who == 1 && has(t, is_data)).unwrap();
        assert!(last.2.cut.is_none() && 20 + last.2.bytes.len() <= usize::from(mtu), "{mtu}");
        net.run_for(60_000);
        assert!(net.hosts[0].got == noise(1, 3_000_000), "{mtu}");
    }
}

/// RFC 1191, section 3: no report raises an MTU. A report that quotes another tag has no effect.
#[test]
fn a_forged_report_of_a_router_changes_nothing() {
    let mut script = Script::accepted(&Config::default(), &[mn(1)]);
    let quote = |tag: u32| {
        let bytes = Packet { src_port: PORT, dst_port: 4000, tag, chunks: vec![Chunk::CookieAck] }.emit();
        bytes[..8].to_vec()
    };
    let forged = script.endpoint.icmp_error(script.at(), mn(1), &quote(1), Rejection::TooBig(600));
    assert_eq!(forged, Err(Reason("sctp_icmp_tag")));
    script.endpoint.icmp_error(script.at(), mn(1), &quote(PEER_TAG), Rejection::TooBig(1000)).unwrap();
    script.endpoint.icmp_error(script.at(), mn(1), &quote(PEER_TAG), Rejection::TooBig(9000)).unwrap();
    script.write(1);
    let said = script.says();
    assert_eq!(said.len(), 2, "cut for 1000 bytes still: {said:?}");
    // Chunks that were too large leave again before a time-out.
    script.endpoint.icmp_error(script.at(), mn(1), &quote(PEER_TAG), Rejection::TooBig(700)).unwrap();
    assert!(script.says().contains(&format!("{} DATA 0", mn(1))));
}

/// After the only link was down for 5 or 60 s and has returned, data flow within 100 ms and do not wait for a
/// backed-off time-out.
#[test]
fn a_link_that_returns_is_used_at_once() {
    for (who, ms) in [(1, 5000), (1, 60_000), (0, 5000), (0, 60_000)] {
        let mut net = Network::opened(&Config { rto_min: Duration::from_millis(200), ..Config::default() });
        net.hosts[who].data = noise(1, 3_000_000);
        net.run_for(300);
        net.dead.push(mn(1));
        net.run_for(ms);
        net.dead.clear();
        let had = net.hosts[1 - who].got.len();
        let now = net.now;
        net.association(0).link_returned(now);
        net.run_for(100);
        let more = net.hosts[1 - who].got.len() - had;
        assert!(more > 3000, "host {who} sends, {ms} ms away: {more} bytes in 100 ms");
    }
}

/// Repeated HEARTBEATs of the peer do not make a sender repeat data more than once in a time-out.
#[test]
fn whoever_repeats_heartbeats_gets_no_more_data() {
    let mut script = Script::accepted(&Config::default(), &[mn(1)]);
    script.write(10);
    script.says();
    script.wait_for_timer();
    assert_eq!(script.says().len(), 1);
    script.hears(mn(1), vec![Chunk::Heartbeat(vec![1, 2, 3])]).unwrap();
    let data = |said: Vec<String>| said.iter().filter(|said| said.contains("DATA")).count();
    assert_eq!(data(script.says()), 1);
    let more = (0..20).map(|_| {
        script.hears(mn(1), vec![Chunk::Heartbeat(vec![1, 2, 3])]).unwrap();
        data(script.says())
    });
    assert!(more.sum::<usize>() <= 1, "what the window of one chunk has room for");
}

/// RFC 9260, section 6.3.3, E3: after each time-out, one packet leaves.
#[test]
fn a_time_out_sends_one_packet() {
    let mut script = Script::accepted(&Config::default(), &[mn(1)]);
    script.write(10);
    assert_eq!(script.says().len(), 4);
    for _ in 0..4 {
        script.wait_for_timer();
        assert_eq!(script.says(), [format!("{} DATA 0", mn(1))]);
    }
}

/// When the path between two ends breaks, both detect it: the receiver of data at most HB.interval and 2 s earlier or
/// later than the sender.
#[test]
fn both_ends_give_up_a_dead_peer_within_the_same_time() {
    let config = Config { rto_min: Duration::from_millis(200), ..Config::default() };
    let mut net = Network::opened(&config);
    net.hosts[1].data = noise(1, 30_000_000);
    net.run_for(1000);
    net.dead.push(mn(1));
    let cut = net.now;
    let mut ends = [None; 2];
    while ends.contains(&None) && net.now < cut + Duration::from_secs(2000) {
        net.run_for(1000);
        for (who, end) in ends.iter_mut().enumerate() {
            if net.events(who).last() == Some(&AssociationEvent::Closed(Ended::TimedOut)) {
                end.get_or_insert((net.now - cut).as_secs());
            }
        }
    }
    let [idle, sender] = ends.map(Option::unwrap);
    // The first probe leaves after HB.interval and at most 1.5 RTOs.
    let bound = config.heartbeat_interval.as_secs() + 2;
    assert!(idle.abs_diff(sender) <= bound, "the sender after {sender} s, the receiver after {idle} s");
}

/// RFC 9260, section 6.1, D: writes in a row share a burst of Max.Burst packets.
#[test]
fn writes_in_a_row_share_a_burst() {
    let mut script = Script::accepted(&Config::default(), &[mn(1)]);
    script.write(80);
    let mut number = script.says().len();
    while number < 80 {
        script.sack(number as u32 - 2, &[]);
        number += script.says().len();
    }
    script.sack(number as u32, &[]);
    script.says();
    assert!(script.path(mn(1)).cwnd > 5 * 1468, "{:?}", script.path(mn(1)));
    let mut left = 0;
    for _ in 0..8 {
        script.write(1);
        left += script.says().len();
    }
    assert!(left <= 5, "one that the acknowledgment left over, and Max.Burst: {left}");
    script.now += 2;
    script.write(1);
    assert!(!script.says().is_empty(), "later writes are another occasion");
}

/// RFC 9260, section 3.3.1: the last chunk before a shutdown requests an immediate SACK by the I bit.
#[test]
fn the_last_chunk_before_a_shutdown_is_acknowledged_at_once() {
    let mut net = Network::opened(&patient());
    net.hosts[0].data = noise(1, 1000 * 31);
    net.hosts[0].finishes = true;
    let from = net.now;
    net.run_until(Duration::from_secs(5), |net| net.states() == [State::Closed; 2]);
    assert!(net.now - from < Duration::from_millis(250), "{:?}", net.now - from);
    let last = |(_, _, t): &&(Instant, usize, Transmit)| {
        has(t, |c| matches!(c, Chunk::Data(Data { immediate: true, .. })))
    };
    assert_eq!(net.sent.iter().filter(last).count(), 1);
}

/// RFC 9260, sections 6.4 and 9.2: a SHUTDOWN that is not answered is sent to another address.
#[test]
fn a_shutdown_tries_another_path() {
    let config = patient();
    let mut net = Network::with(&config, &config, &[mn(1)], &[CN, CN2]);
    net.run_for(3000);
    net.dead.push(CN);
    let now = net.now;
    net.association(0).finish(now);
    net.run_for(4000);
    assert_eq!(net.events(0).last(), Some(&AssociationEvent::Closed(Ended::Finished)));
}

/// RFC 9260, section 5.2.4, B: the peer opens again with another tag while both ends open. The association uses the
/// newer tag from then on.
#[test]
fn a_second_tag_of_the_peer_is_taken_over() {
    let mut script = Script::accepted(&Config::default(), &[mn(1)]);
    let id = script.id.unwrap();
    // Both ends send INIT (a collision). The peer sends two INITs with different tags, so there are two cookies: both
    // have our tag, and each has another tag of the peer.
    let mut other = crate::harness::endpoint(&Config::default(), 3);
    let open = Open { local: vec![CN], local_port: PORT, peer: vec![mn(1)], peer_port: 4000 };
    let mine = other.open(script.at(), &open).unwrap();
    std::mem::swap(&mut script.endpoint, &mut other);
    script.says();
    let init = |tag| vec![Chunk::Init(sctp::message::Init { tag, ..peer_init(&[]) })];
    let mut cookies = Vec::new();
    for tag in [0x1111, 0x2222] {
        script.hears_tagged(0, mn(1), init(tag)).unwrap();
        let answer = script.endpoint.poll_transmit(script.at()).unwrap();
        let packet = Packet::parse(&answer.bytes).unwrap();
        let [Chunk::InitAck(ack)] = packet.chunks.as_slice() else { panic!("{packet:?}") };
        script.tag = ack.tag;
        cookies.push(ack.cookie().unwrap().to_vec());
    }
    for cookie in cookies {
        script.hears(mn(1), vec![Chunk::CookieEcho(cookie)]).unwrap();
        assert_eq!(script.says()[0], format!("{} COOKIE-ACK", mn(1)));
    }
    let association = script.endpoint.association_mut(mine).unwrap();
    assert_eq!(association.state(), State::Established);
    association.write(0, 0, b"x").unwrap();
    let packet = script.endpoint.poll_transmit(script.at()).unwrap();
    assert_eq!(Packet::parse(&packet.bytes).unwrap().tag, 0x2222, "{id:?}");
}

/// RFC 9260, section 5.2.1: in COOKIE-ECHOED, an INIT with addresses that the peer's INIT ACK did not list is
/// answered with ABORT.
#[test]
fn an_init_with_new_addresses_is_refused_while_the_cookie_is_out() {
    let mut net = Network::with(&Config::default(), &Config::default(), &[mn(1)], &[CN]);
    net.run_until(Duration::from_secs(1), |net| net.states()[0] == State::CookieEchoed);
    assert_eq!(net.states()[0], State::CookieEchoed);
    let init = sctp::message::Init { tag: 0x8888, ..peer_init(&[CN, CN2]) };
    let chunks = vec![Chunk::Init(init)];
    let bytes = Packet { src_port: PORT, dst_port: 4000, tag: 0, chunks }.emit();
    let now = net.now;
    net.hosts[0].endpoint.receive(now, CN, mn(1), &bytes).unwrap();
    let answer = net.hosts[0].endpoint.poll_transmit(now).unwrap();
    assert!(has(&answer, |c| matches!(c, Chunk::Abort { .. })), "{answer:?}");
}

/// RFC 9260, section 6.10: chunks before a malformed one have their effect.
#[test]
fn what_stands_before_a_malformed_chunk_counts() {
    let mut script = Script::accepted(&Config::default(), &[mn(1)]);
    let chunks = vec![data(0, b"good"), Chunk::Sack(Sack::default())];
    let mut bytes = Packet { src_port: 4000, dst_port: PORT, tag: script.tag, chunks }.emit();
    let at = bytes.len() - 16 + 3;
    bytes[at] = 200;
    set_checksum(&mut bytes);
    let read = script.endpoint.receive(script.at(), mn(1), CN, &bytes);
    assert_eq!(read, Err(Reason("sctp_chunk_overrun")));
    script.wait(200);
    assert_eq!(script.says(), [format!("{} SACK 0", mn(1))]);
}

/// Both ends lose their addresses at the same instant, and each knows only the other's old address. A directory gives
/// the new address to one end or to both. The association continues.
#[test]
fn both_ends_move_at_once_and_meet_again() {
    [false, true].into_iter().for_each(meet_again);
}

/// `both`: the directory gives the new address of the other end to both ends, and not only to host 0.
fn meet_again(both: bool) {
    let mut net = Network::opened(&patient());
    net.hosts[1].data = noise(1, 500_000);
    net.run_for(100);
    net.dead.extend([mn(1), CN]);
    let now = net.now;
    for (who, old, new) in [(0, mn(1), mn(2)), (1, CN, CN2)] {
        let changes = [Change::Add(new), Change::SetPrimary(new), Change::Delete(old)];
        net.association(who).change(now, &changes).unwrap();
        net.association(who).prefer(now, None, new).unwrap();
    }
    net.run_for(4000);
    assert!(
        net.events(0).iter().any(|event| matches!(event, AssociationEvent::Silent(_))),
        "{:?}",
        net.events(0)
    );
    let (now, from, had) = (net.now, net.sent.len(), net.hosts[0].got.len());
    assert!(net.association(0).try_at(now, CN2));
    assert!(!net.association(0).try_at(now, CN2), "it is under way");
    if both {
        assert!(net.association(1).try_at(now, mn(2)));
    }
    // Host 1 receives the request from the new address of host 0, and sends its own request to this address at once.
    net.run_for(15);
    let asks = |(_, who, t): &(Instant, usize, Transmit)| {
        *who == 1 && t.dst == mn(2) && has(t, |c| matches!(c, Chunk::Asconf(_)))
    };
    assert!(net.sent[from..].iter().any(asks), "both: {both}");
    // A change in each direction, a probe, and data arrive before a time-out.
    net.run_for(135);
    assert!(net.hosts[0].got.len() > had, "both: {both}");
    let early = net.sent[from..].iter().find(|(_, who, t)| *who == 0 && t.dst == CN2).unwrap();
    assert!(!has(&early.2, is_data));
    net.run_for(10_000);
    assert!(net.hosts[0].got == noise(1, 500_000), "{}", net.hosts[0].got.len());
    let paths = |net: &mut Network, who| net.association(who).paths().map(|p| p.address).collect::<Vec<_>>();
    assert_eq!((paths(&mut net, 0), paths(&mut net, 1)), (vec![CN2], vec![mn(2)]));
}

/// A directory gives a wrong address. The host at this address gets at most twelve packets of less than 200 bytes, and
/// no data. Time-outs end the association.
#[test]
fn a_wrong_directory_costs_a_stranger_little() {
    let mut net = Network::opened(&Config::default());
    net.hosts[0].data = noise(1, 500_000);
    net.run_for(100);
    net.dead.extend([mn(1), CN, VICTIM]);
    let now = net.now;
    let changes = [Change::Add(mn(2)), Change::SetPrimary(mn(2)), Change::Delete(mn(1))];
    net.association(0).change(now, &changes).unwrap();
    net.association(0).prefer(now, None, mn(2)).unwrap();
    assert!(net.association(0).try_at(now, VICTIM));
    net.run_for(400_000);
    let to_victim: Vec<_> = net.sent.iter().filter(|(_, _, t)| t.dst == VICTIM).collect();
    assert!((1..=12).contains(&to_victim.len()), "{}", to_victim.len());
    assert!(to_victim.iter().all(|(_, _, t)| !has(t, is_data) && t.bytes.len() < 200));
    assert_eq!(net.events(0).last(), Some(&AssociationEvent::Closed(Ended::TimedOut)));
}

/// Confirmed addresses do not count against the limit of additions in a minute, so a peer may move 20 times in 12 s.
#[test]
fn a_peer_may_move_as_often_as_it_likes() {
    let config = Config { added_per_minute: 2, ..patient() };
    let mut net = Network::opened(&config);
    net.hosts[1].data = noise(1, 30_000_000);
    let mut here = 1;
    for _ in 0..20 {
        let there = 3 - here;
        let now = net.now;
        net.association(0).change(now, &[Change::Add(mn(there))]).unwrap();
        net.run_for(300);
        assert!(net.events(1).contains(&AssociationEvent::Path(mn(there), PathState::Active)));
        let now = net.now;
        let changes = [Change::SetPrimary(mn(there)), Change::Delete(mn(here))];
        net.association(0).change(now, &changes).unwrap();
        net.run_for(300);
        assert_eq!(net.association(0).local_addresses().collect::<Vec<_>>(), [mn(there)]);
        net.hosts[1].events.clear();
        here = there;
    }
}
