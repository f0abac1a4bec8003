//! All written data are read, although the wire loses, duplicates, reorders and corrupts packets (RFC 9260, sections
//! 5 to 7 and 9).

use crate::harness::{CN, CN2, Network, Weather, mn, noise};
use sctp::{AssociationEvent, Config, Ended, PathState, State, WriteError};
use wire::Duration;

pub(crate) fn patient() -> Config {
    Config {
        association_max_retrans: 60,
        path_max_retrans: 20,
        max_init_retransmits: 30,
        rto_min: Duration::from_millis(200),
        ..Config::default()
    }
}

#[test]
fn a_message_crosses_and_the_association_ends() {
    let mut net = Network::new(&Config::default());
    net.hosts[0].data = noise(1, 10_000);
    net.hosts[0].finishes = true;
    net.run_for(5000);
    assert!(net.hosts[1].got == noise(1, 10_000));
    assert_eq!(net.states(), [State::Closed; 2]);
    for who in 0..2 {
        assert_eq!(net.events(who)[0], AssociationEvent::Opened);
        assert_eq!(net.events(who).last(), Some(&AssociationEvent::Closed(Ended::Finished)));
    }
    assert_eq!(net.refused, []);
}

#[test]
fn every_byte_arrives_both_ways_over_a_bad_wire() {
    for seed in 0..12 {
        for loss in [0, 2, 8, 20] {
            let mut net = Network::new(&patient());
            net.seed(seed * 100 + loss);
            net.weather = Weather { loss, double: 5, reorder: 20, corrupt: 3 };
            for who in 0..2 {
                net.hosts[who].data = noise(seed + who as u64, 100_000 - who * 30_000);
                net.hosts[who].size = [700, 5000, 30_000][seed as usize % 3];
            }
            let all = |net: &Network| net.hosts[0].got.len() == 70_000 && net.hosts[1].got.len() == 100_000;
            net.run_until(Duration::from_mins(50), all);
            assert!(net.hosts[0].got == noise(seed + 1, 70_000), "seed {seed}, loss {loss}");
            assert!(net.hosts[1].got == noise(seed, 100_000), "seed {seed}, loss {loss}");
            assert!(
                net.hosts.iter().all(|host| host
                    .events
                    .iter()
                    .filter(|e| **e == AssociationEvent::Opened)
                    .count()
                    == 1)
            );
            net.hosts[1].finishes = true;
            net.run_until(Duration::from_mins(50), |net| net.states() == [State::Closed; 2]);
            let ended =
                |who: usize| net.events(who).last() == Some(&AssociationEvent::Closed(Ended::Finished));
            assert!(ended(0) && ended(1), "seed {seed}, loss {loss}: {:?}", net.events(0).last());
        }
    }
}

/// RFC 9260, sections 6.2.1 and 6.1, A: a receive window that closes is probed, and opens again. The slow reader gets
/// all data, and at most twice its buffer is held.
#[test]
fn a_slow_reader_gets_everything_and_holds_little() {
    for weather in [Weather::default(), Weather { loss: 5, double: 3, reorder: 10, corrupt: 0 }] {
        let config = Config { receive_buffer: 8000, ..patient() };
        let mut net = Network::new(&config);
        net.weather = weather;
        net.hosts[0].data = noise(3, 60_000);
        net.hosts[1].appetite = 0;
        for round in 0..400 {
            net.run_for(1500);
            let unread = net.association(1).unread();
            assert!(unread <= 2 * 8000, "{unread} bytes in round {round}");
            net.hosts[1].appetite = 900;
            for _ in 0..3 {
                if let Some(piece) = net.association(1).read(900) {
                    net.hosts[1].got.extend(piece.data);
                }
            }
            net.hosts[1].appetite = 0;
            if net.hosts[1].got.len() == 60_000 {
                break;
            }
        }
        assert!(net.hosts[1].got == noise(3, 60_000), "{}", net.hosts[1].got.len());
        assert_eq!(net.states(), [State::Established; 2]);
    }
}

/// RFC 9260, section 6.1, A: a window that is closed for hours is probed, and does not end the association.
#[test]
fn a_closed_window_is_probed_for_hours() {
    let mut net = Network::new(&Config { receive_buffer: 4000, ..Config::default() });
    net.hosts[0].data = noise(3, 60_000);
    net.hosts[1].appetite = 0;
    net.run_for(4 * 3_600_000);
    assert_eq!(net.states(), [State::Established; 2]);
    net.hosts[1].appetite = usize::MAX;
    net.run_for(600_000);
    assert!(net.hosts[1].got == noise(3, 60_000));
}

/// RFC 9260, section 3.3.2: a receive buffer of less than 1500 bytes counts as 1500 bytes, so it takes a packet of
/// 1400 bytes.
#[test]
fn a_buffer_below_the_least_window_holds_a_packet() {
    let mut net = Network::new(&Config { receive_buffer: 1000, ..Config::default() });
    net.hosts[0].size = 1400;
    net.hosts[0].data = noise(3, 60_000);
    net.run_for(60_000);
    assert!(net.hosts[1].got == noise(3, 60_000), "{}", net.hosts[1].got.len());
    assert_eq!(net.states(), [State::Established; 2]);
}

/// RFC 9260, section 6.9: a message larger than the receive buffer is read in pieces.
#[test]
fn a_message_larger_than_the_window_is_read_in_pieces() {
    let mut net = Network::with(
        &Config::default(),
        &Config { receive_buffer: 10_000, ..Config::default() },
        &[mn(1)],
        &[CN],
    );
    net.run_for(500);
    let message = noise(4, 100_000);
    net.association(0).write(3, 9, &message).unwrap();
    net.run_for(60_000);
    assert!(net.hosts[1].got == message);
    let pieces = &net.hosts[1].pieces;
    assert!(pieces.len() > 5 && pieces[0].begins && pieces.last().unwrap().ends);
    assert_eq!(pieces.iter().filter(|piece| piece.begins).count(), 1);
    assert_eq!(pieces.iter().filter(|piece| piece.ends).count(), 1);
    assert!(pieces.iter().all(|piece| (piece.stream, piece.ppid) == (3, 9)));
}

/// RFC 9260, sections 6.5 and 6.6: messages arrive in order within a stream, but not between streams. Unordered
/// messages have no order.
#[test]
fn streams_do_not_wait_for_each_other() {
    let mut net = Network::opened(&patient());
    net.weather = Weather { loss: 15, double: 5, reorder: 50, corrupt: 0 };
    for number in 0..60_u8 {
        let association = net.association(0);
        association.write(u16::from(number % 3), 0, &[number; 2000]).unwrap();
        if number % 10 == 0 {
            association.write_unordered(5, 1, &[number; 3000]).unwrap();
        }
        net.run_for(20);
    }
    net.run_until(Duration::from_mins(5), |net| net.hosts[1].pieces.len() == 66);
    let pieces = &net.hosts[1].pieces;
    for stream in 0..3 {
        let order: Vec<u8> = pieces.iter().filter(|p| p.stream == stream).map(|p| p.data[0]).collect();
        let expected: Vec<u8> = (0..60).filter(|n| n % 3 == stream as u8).collect();
        assert_eq!(order, expected);
    }
    assert_eq!(pieces.iter().filter(|piece| piece.unordered && piece.data.len() == 3000).count(), 6);
    let all: Vec<u8> = pieces.iter().filter(|p| !p.unordered).map(|p| p.data[0]).collect();
    assert!(!all.is_sorted(), "streams overtake each other when something is lost");
}

#[test]
fn what_cannot_be_written_is_refused() {
    let mut net = Network::new(&Config::default());
    assert_eq!(net.association(0).write(0, 0, b"early"), Err(WriteError::NotOpen));
    net.run_for(500);
    let association = net.association(0);
    assert_eq!(association.write(0, 0, b""), Err(WriteError::Empty));
    assert_eq!(association.write(association.streams(), 0, b"x"), Err(WriteError::Stream));
    assert_eq!(association.write(0, 0, &vec![0; association.room() + 1]), Err(WriteError::NoRoom));
    let now = net.now;
    net.association(0).finish(now);
    assert_eq!(net.association(0).write(0, 0, b"late"), Err(WriteError::NotOpen));
}

/// The sum of all `Room` events is the number of written bytes plus the size of the send buffer.
#[test]
fn room_is_told_as_credit() {
    let mut net = Network::new(&Config::default());
    net.hosts[0].data = noise(1, 500_000);
    net.run_for(60_000);
    let credit: usize =
        net.events(0).iter().map(|e| if let AssociationEvent::Room(more) = e { *more } else { 0 }).sum();
    assert_eq!(credit - 500_000, net.association(0).room());
    assert_eq!(net.association(0).room(), 128 * 1024);
}

/// RFC 9260, sections 8.1 and 8.2: if the peer vanishes, the path becomes inactive first, and then the association
/// ends.
#[test]
fn a_peer_that_vanishes_is_given_up() {
    let mut net = Network::opened(&Config::default());
    net.hosts[0].data = noise(1, 50_000);
    net.dead.push(CN);
    net.run_for(2_000_000);
    assert_eq!(net.states()[0], State::Closed);
    let events = net.events(0);
    let inactive = events.iter().position(|e| *e == AssociationEvent::Path(CN, PathState::Inactive)).unwrap();
    assert!(inactive < events.len() - 1);
    assert_eq!(events.last(), Some(&AssociationEvent::Closed(Ended::TimedOut)));
}

#[test]
fn an_idle_peer_that_vanishes_is_given_up_by_heartbeats() {
    let mut net = Network::opened(&Config::default());
    net.dead.push(CN);
    net.run_for(3_600_000);
    assert_eq!(net.events(0).last(), Some(&AssociationEvent::Closed(Ended::TimedOut)));
}

/// INIT is sent again eight times (Max.Init.Retransmits). The intervals double up to RTO.Max, 60 s.
#[test]
fn nobody_answers() {
    let mut net = Network::new(&Config::default());
    net.dead.push(CN);
    net.run_for(1_000_000);
    let silent = (1..=8).map(AssociationEvent::Silent);
    assert_eq!(net.events(0), silent.chain([AssociationEvent::Closed(Ended::TimedOut)]).collect::<Vec<_>>());
    let seconds: Vec<u64> = net.sent.iter().map(|(at, ..)| (*at - net.sent[0].0).as_secs()).collect();
    assert_eq!(seconds, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
}

/// RFC 9260, section 8.4, 3: INIT to a port without a listener is answered with ABORT.
#[test]
fn nobody_listens() {
    let mut net = Network::new(&Config::default());
    net.hosts[1].endpoint.ignore(crate::harness::PORT);
    net.run_for(1000);
    assert_eq!(net.events(0), [AssociationEvent::Closed(Ended::AbortedByPeer(None))]);
}

/// RFC 9260, sections 6.4 and 8.2: data go to another address when the primary path fails, and return when it works
/// again.
#[test]
fn a_path_that_fails_is_left_and_found_again() {
    let config = Config { path_max_retrans: 2, heartbeat_interval: Duration::from_secs(1), ..patient() };
    let mut net = Network::with(&config, &config, &[mn(1)], &[CN, CN2]);
    net.run_for(2000);
    assert_eq!(net.association(0).paths().filter(|path| path.state == PathState::Active).count(), 2);
    net.dead.push(CN);
    net.hosts[0].data = noise(5, 300_000);
    net.run_for(20_000);
    assert!(net.hosts[1].got == noise(5, 300_000));
    assert!(net.events(0).contains(&AssociationEvent::Path(CN, PathState::Inactive)));
    assert!(net.events(0).contains(&AssociationEvent::Switched { from: CN, to: CN2 }));
    net.dead.clear();
    net.run_for(120_000);
    assert_eq!(net.events(0).last(), Some(&AssociationEvent::Switched { from: CN2, to: CN }));
}

/// RFC 9260, section 7.2.4: a single loss is repaired without a time-out.
#[test]
fn one_loss_is_repaired_fast() {
    let mut net = Network::opened(&Config::default());
    net.hosts[0].data = noise(6, 400_000);
    net.run_for(100);
    net.drops[0] = 1;
    net.run_for(3000);
    assert!(net.hosts[1].got == noise(6, 400_000));
    let counts = net.association(0).counts();
    assert!(counts.fast_retransmits > 0, "{counts:?}");
    assert_eq!(counts.timeouts, 0);
}

/// RFC 9260, sections 9.1 and 9.2: an association ends if both ends finish at the same time, and if one end aborts.
/// The peer gets the cause of the abort.
#[test]
fn both_finish_and_one_aborts() {
    let mut net = Network::opened(&Config::default());
    for who in 0..2 {
        let now = net.now;
        net.association(who).finish(now);
    }
    net.run_for(1000);
    assert_eq!(net.states(), [State::Closed; 2]);
    let mut net = Network::opened(&Config::default());
    net.association(0).abort();
    net.run_for(1000);
    assert_eq!(net.events(0).last(), Some(&AssociationEvent::Closed(Ended::Aborted)));
    let user = sctp::message::Code::USER_INITIATED_ABORT;
    assert_eq!(net.events(1).last(), Some(&AssociationEvent::Closed(Ended::AbortedByPeer(Some(user)))));
}

/// If the peer's host is gone when an end shuts down, time-outs end the association (RFC 9260, section 9.2).
#[test]
fn a_shutdown_that_nobody_answers_ends() {
    let mut net = Network::opened(&Config::default());
    net.dead.push(CN);
    let now = net.now;
    net.association(0).finish(now);
    net.run_for(1_000_000);
    assert_eq!(net.events(0).last(), Some(&AssociationEvent::Closed(Ended::TimedOut)));
}

#[test]
fn a_run_repeats_itself() {
    let run = || {
        let mut net = Network::new(&patient());
        net.weather = Weather { loss: 5, double: 5, reorder: 20, corrupt: 3 };
        net.hosts[0].data = noise(1, 200_000);
        net.run_for(20_000);
        net.sent
    };
    assert!(run() == run());
}
