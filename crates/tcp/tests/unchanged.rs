//! A fingerprint of what two profiles send, with bytes and times. Published figures were measured with these profiles,
//! so a change must not go unnoticed. A commit that changes a fingerprint must state what was wrong before.

use crate::harness;
use harness::{End, Link, World, noise};
use tcp::{Ended, Profile, State};
use wire::{Duration, Instant, Seed};

/// The fingerprint of transfers in both directions. The links queue, lose, reorder and double, there is an outage, and
/// one reader is slow.
fn number(profile: &Profile, seed: u64, loss: u64) -> u64 {
    let profile = &Profile { max_retransmissions: 40, ..profile.clone() };
    let link = |seed| Link {
        rate: 2_000_000,
        queue: 20,
        loss,
        reorder: loss,
        double: loss,
        seed: Seed::new(seed),
        ..Link::perfect(20)
    };
    let ends = [
        End::new(profile, u32::MAX - 40_000, noise(seed, 400_000)),
        End::new(profile, 9, noise(!seed, 60_000)),
    ];
    let mut world = World::new(ends, [link(seed), link(seed + 1000)]);
    world.ends[1].appetite = 5000;
    world.run(|world| world.now > Instant::from_millis(700));
    let losses = [world.links[0].loss, world.links[1].loss];
    world.links.iter_mut().for_each(|link| link.loss = 100);
    let back = world.now + Duration::from_millis(2500);
    world.run(|world| world.now > back);
    for (link, loss) in world.links.iter_mut().zip(losses) {
        link.loss = loss;
    }
    world.run(|_| false);
    assert!(world.ends[0].got == world.ends[1].data && world.ends[1].got == world.ends[0].data);
    assert_eq!(world.states(), [Some(State::Closed); 2]);
    assert_eq!(world.tcp(0).ended(), Some(Ended::Finished));
    world.number
}

#[test]
fn profiles_send_what_they_sent() {
    let numbers = |profile: &Profile| {
        [(1, 0), (2, 1), (3, 4)].map(|(seed, loss)| format!("{:016x}", number(profile, seed, loss)))
    };
    assert_eq!(
        numbers(&Profile::rfc6298_reno()),
        ["da4558924e2d6525", "3b14269effcff77c", "d0385a2a7c75f02a"]
    );
    assert_eq!(numbers(&Profile::linux_like()), ["d0f7626fb5fff36e", "1ee174b72b337bd4", "26f7f45ea2524875"]);
}
