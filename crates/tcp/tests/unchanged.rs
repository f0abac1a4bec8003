//! A fingerprint of what two profiles send, with bytes and times. Published figures were measured with these profiles,
//! so a change must not go unnoticed. A commit that changes a fingerprint must state what was wrong before.

use crate::harness;
use harness::{End, Link, Network, noise};
use tcp::{Ended, Profile, State};
use wire::{Duration, Instant, Rng};

/// Returns the fingerprint of transfers in both directions. The links queue, lose, reorder and duplicate packets. There
/// is an outage, and one application reads slowly.
fn number(profile: &Profile, seed: u64, loss: u64) -> u64 {
    let profile = &Profile { max_retransmissions: 40, ..profile.clone() };
    let link = |seed| Link {
        rate: 2_000_000,
        queue: 20,
        loss,
        reorder: loss,
        double: loss,
        rng: Rng::new(seed),
        ..Link::perfect(20)
    };
    let ends = [
        End::new(profile, u32::MAX - 40_000, noise(seed, 400_000)),
        End::new(profile, 9, noise(!seed, 60_000)),
    ];
    let mut net = Network::new(ends, [link(seed), link(seed + 1000)]);
    net.ends[1].appetite = 5000;
    net.run(|net| net.now > Instant::from_millis(700));
    let losses = [net.links[0].loss, net.links[1].loss];
    net.links.iter_mut().for_each(|link| link.loss = 100);
    let back = net.now + Duration::from_millis(2500);
    net.run(|net| net.now > back);
    for (link, loss) in net.links.iter_mut().zip(losses) {
        link.loss = loss;
    }
    net.run(|_| false);
    assert!(net.ends[0].got == net.ends[1].data && net.ends[1].got == net.ends[0].data);
    assert_eq!(net.states(), [Some(State::Closed); 2]);
    assert_eq!(net.tcp(0).ended(), Some(Ended::Finished));
    net.number
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
