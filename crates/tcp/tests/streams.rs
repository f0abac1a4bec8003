//! Whole connections in virtual time: what is written is read, whatever the links do.

#![cfg(test)]

mod harness;

use harness::{End, Link, World, noise};
use proptest::prelude::*;
use tcp::{Connection, Ended, Flags, Options, Profile, Segment, Seq, State};
use wire::{Duration, Instant, Seed};

fn bad(seed: u64, loss: u64) -> Link {
    let seed = Seed::new(seed);
    Link { loss, reorder: 15, double: 5, seed, ..Link::perfect(20) }
}

/// Both directions at once, over links that lose, reorder and double; numbers wrap on the way.
fn transfer(profile: &Profile, seed: u64, loss: u64) -> World {
    let wrap = u32::MAX - 40_000;
    let ends =
        [End::new(profile, wrap, noise(seed, 150_000)), End::new(profile, wrap + 9, noise(!seed, 90_001))];
    let mut world = World::new(ends, [bad(seed, loss), bad(seed + 1000, loss)]);
    world.run(|_| false);
    world
}

#[test]
fn every_byte_arrives_both_ways_over_bad_links() {
    let patient = |profile: Profile| Profile { max_retransmissions: 40, ..profile };
    for profile in [patient(Profile::rfc6298_reno()), patient(Profile::linux_like())] {
        for seed in 0..25 {
            for loss in [0, 1, 5, 10, 20] {
                let world = transfer(&profile, seed, loss);
                let [a, b] = &world.ends;
                assert!(a.got == b.data, "seed {seed} loss {loss}: {} of {}", a.got.len(), b.data.len());
                assert!(b.got == a.data, "seed {seed} loss {loss}: {} of {}", b.got.len(), a.data.len());
                assert_eq!(world.states(), [Some(State::Closed); 2], "seed {seed} loss {loss}");
            }
        }
    }
}

#[test]
fn a_slow_reader_gets_everything() {
    for seed in 0..10 {
        let profile = Profile { receive_buffer: 3000, max_retransmissions: 40, ..Profile::rfc6298_reno() };
        let ends = [End::new(&profile, 7, noise(seed, 30_000)), End::new(&profile, 9, noise(seed, 20_000))];
        let mut world = World::new(ends, [bad(seed, 3), bad(seed + 1, 3)]);
        world.ends[0].appetite = 100;
        world.ends[1].appetite = 700;
        world.run(|world| world.ends.iter().all(|end| end.tcp.as_ref().is_some_and(Connection::at_end)));
        assert!(world.ends[0].got == world.ends[1].data && world.ends[1].got == world.ends[0].data);
    }
}

/// The figure that ns-3 and smoltcp give for the same links: 94.9 to 96.6 % of 2 Mb/s; headers alone cost 2.7 %.
#[test]
fn bulk_goodput_is_that_of_other_implementations() {
    let newreno = Profile { newreno: true, initial_window: 2, ..Profile::rfc6298_reno() };
    let linux = Profile { receive_buffer: 64_240, send_buffer: 64_240, ..Profile::linux_like() };
    for (profile, name) in [(Profile::rfc6298_reno(), "reno"), (newreno, "newreno"), (linux, "linux")] {
        let link = Link { rate: 2_000_000, queue: 20, ..Link::perfect(20) };
        let bytes = 16 << 20;
        let ends = [End::new(&profile, 1, vec![7; bytes]), End::new(&profile, 2, Vec::new())];
        let mut world = World::new(ends, [link.clone(), link]);
        world.run(|world| world.ends[1].got.len() == bytes);
        let percent = bytes as f64 * 8.0 / world.now.as_secs_f64() / 2e4;
        println!("{name}: {:.2} s, {percent:.2} %, {:?}", world.now.as_secs_f64(), world.tcp(0).info());
        assert!((93.0..97.5).contains(&percent), "{name}: {percent:.2} %");
    }
}

#[test]
fn a_connection_that_moves_keeps_its_streams() {
    for seed in 0..20 {
        let profile = Profile { max_retransmissions: 40, ..Profile::linux_like() };
        let ends =
            [End::new(&profile, 5, noise(seed, 300_000)), End::new(&profile, 6, noise(!seed, 200_000))];
        let mut world = World::new(ends, [bad(seed, 2), bad(seed + 1, 2)]);
        let mut moves = 0;
        for bytes in (0..180_000).step_by(6_000) {
            world.run(|world| world.ends[0].got.len() > bytes);
            for who in 0..2 {
                if let Some(state) = world.tcp(who).export() {
                    let moved = Connection::import(state.clone(), world.now, &profile);
                    assert_eq!(moved.export(), Some(state), "nothing is lost in the form");
                    *world.tcp(who) = moved;
                    moves += 1;
                }
            }
        }
        world.run(|_| false);
        assert!(moves >= 20, "{moves}");
        assert!(world.ends[0].got == world.ends[1].data && world.ends[1].got == world.ends[0].data);
        assert_eq!(world.states(), [Some(State::Closed); 2]);
    }
}

#[test]
fn a_peer_that_vanishes_is_given_up() {
    let profile = Profile { max_retransmissions: 3, ..Profile::rfc6298_reno() };
    let ends = [End::new(&profile, 5, noise(1, 300_000)), End::new(&profile, 6, Vec::new())];
    let mut world = World::new(ends, [Link::perfect(10), Link::perfect(10)]);
    world.run(|world| world.ends[1].got.len() > 100_000);
    world.links[0].loss = 100;
    world.run(|world| world.ends[0].tcp.as_ref().is_some_and(|tcp| tcp.state() == State::Closed));
    assert_eq!(world.tcp(0).ended(), Some(Ended::TimedOut));
}

fn hostile() -> impl Strategy<Value = (usize, u8, i64, i64, u16, usize, bool)> {
    let near = prop_oneof![-3i64..3, -70_000i64..70_000, any::<i64>()];
    (0usize..2, any::<u8>(), near.clone(), near, any::<u16>(), 0usize..40, any::<bool>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// A stranger who knows the ports injects whatever he likes: nobody panics, holds too much or answers without end.
    #[test]
    fn a_hostile_wire_stops_nobody(
        injected in proptest::collection::vec(hostile(), 1..80),
        seed in any::<u32>(),
        windows in any::<bool>(),
    ) {
        let profile = Profile { window_scale: windows, max_retransmissions: 5, ..Profile::rfc6298_reno() };
        let ends = [End::new(&profile, seed, noise(1, 50_000)), End::new(&profile, !seed, noise(2, 20_000))];
        let mut world = World::new(ends, [bad(1, 2), bad(2, 2)]);
        let mut steps = 0;
        world.run(|_| true);
        for (who, flags, seq, ack, window, len, options) in injected {
            for _ in 0..len {
                steps += usize::from(world.step());
            }
            let now = world.now;
            let Some(tcp) = world.ends[who].tcp.as_mut() else { continue };
            // Near what the end expects: it says so in all it sends.
            let (base_seq, base_ack) = tcp.export().map_or((seed, seed), |s| (s.receive_next.0, s.send_una.0));
            let options = Options {
                mss: options.then_some(window),
                window_scale: options.then_some(flags),
                sack_permitted: options,
            };
            let segment = Segment {
                seq: Seq(base_seq.wrapping_add(seq as u32)),
                ack: Seq(base_ack.wrapping_add(ack as u32)),
                flags: Flags(flags),
                window,
                options,
                payload: vec![9; len * 50],
                ..Segment::default()
            };
            tcp.receive(now, &segment);
            let answers = (0..5000).take_while(|_| tcp.poll(now).is_some()).count();
            prop_assert!(answers < 5000);
            prop_assert!(tcp.readable() <= 65_535);
        }
        prop_assert!(world.now < Instant::ZERO + Duration::from_secs(100_000) && steps < 1_000_000);
    }
}
