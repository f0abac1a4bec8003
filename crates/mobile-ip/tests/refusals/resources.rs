//! Tests of a mobile node whose home agent lacks resources (code 130).

use super::*;

const VISITED_MAC: Mac = Mac([2, 0, 0, 0, 0, 3]);
/// The time from a request to its reply, in milliseconds.
const ROUND_TRIP: u64 = 10;

/// Returns a started mobile node with random numbers from `seed`.
fn node_of(seed: u64, changes: &str) -> MobileNode {
    let config: MobileNodeConfig = table(MOBILE_NODE, changes).try_into().unwrap();
    let mut node = MobileNode::new(config, Interfaces(&["air".to_owned()]), Rng::new(seed)).unwrap();
    start(&mut node);
    node
}

/// A request, and when it was sent, in milliseconds.
struct Sent {
    at: u64,
    request: Request,
}

/// Returns the requests that these effects send.
fn sent(at: Instant, effects: &[Effect]) -> Vec<Sent> {
    let request = |effect: &Effect| match effect {
        Effect::Send(_, packet) => match Received::parse(&packet.bytes).ok()?.message {
            Registration::Request(request) => Some(request),
            Registration::Reply(_) => None,
        },
        _ => None,
    };
    let at = at.since(Instant::ZERO).as_millis() as u64;
    effects.iter().filter_map(request).map(|request| Sent { at, request }).collect()
}

/// Runs a mobile node after these effects at 1 s, until the time `until` in milliseconds. `answer` returns the code of the reply to
/// a request, or `None` if there is none. Returns all requests.
fn run(
    node: &mut MobileNode,
    effects: &[Effect],
    until: u64,
    mut answer: impl FnMut(&Sent) -> Option<Code>,
) -> Vec<Sent> {
    let mut all = sent(Instant::from_millis(1000), effects);
    let mut answered = 0;
    let end = Instant::from_millis(until);
    loop {
        let waiting = all.get(answered).map(|one| Instant::from_millis(one.at + ROUND_TRIP));
        let Some(now) = Instant::sooner(waiting, node.deadline()).filter(|now| *now <= end) else {
            return all;
        };
        let effects = if waiting == Some(now) {
            let one = &all[answered];
            answered += 1;
            let Some(code) = answer(one) else { continue };
            let mut reply = one.request.reply(code);
            reply.sign(Between::MobileHome, &association());
            let is_direct = one.request.flags.has(RequestFlags::DECAPSULATION);
            let direct = (one.request.home_agent, one.request.care_of);
            let (from, to) = if is_direct { direct } else { (VISITED, HOME) };
            heard(node, now, 1, VISITED_MAC, packet(from, to, &reply.emit()))
        } else {
            give(node, now, Input::Timeout)
        };
        all.extend(sent(now, &effects));
    }
}

/// Runs a mobile node that visits a foreign agent from 1 s on.
fn run_away(seed: u64, changes: &str, until: u64, answer: impl FnMut(&Sent) -> Option<Code>) -> Vec<Sent> {
    let mut node = node_of(seed, changes);
    let said = Advertisement { lifetime: 9000, ..foreign_advertisement() };
    let effects = heard(&mut node, Instant::from_millis(1000), 1, VISITED_MAC, said.emit());
    run(&mut node, &effects, until, answer)
}

/// Returns the pauses between these requests, in milliseconds.
fn pauses<'a>(all: impl Iterator<Item = &'a Sent>) -> Vec<u64> {
    let times: Vec<u64> = all.map(|one| one.at).collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// A home agent that lacks resources denies the requests of many mobile nodes at one time. They must not all repeat them at one time,
/// and must not wait long: they receive nothing.
#[test]
fn denied_mobile_nodes_repeat_their_requests_at_different_times() {
    let mut times = [Vec::new(), Vec::new()];
    for seed in 1..=50 {
        let all = run_away(seed, "", 31_000, |_| Some(Code::HomeResources));
        let pauses = pauses(all.iter());
        assert!((1000..2000).contains(&pauses[0]), "{pauses:?}");
        assert!(pauses.iter().all(|pause| (1000..=3000 + ROUND_TRIP).contains(pause)), "{pauses:?}");
        assert!((10..=16).contains(&all.len()), "{pauses:?}");
        times[0].push(all[1].at);
        times[1].push(all[2].at);
    }
    for mut times in times {
        times.sort_unstable();
        assert!(times[49] - times[0] > 700, "{times:?}");
        let crowd =
            times.iter().map(|at| times.iter().filter(|other| (*at..at + 100).contains(other)).count());
        assert!(crowd.max().unwrap() < 20, "{times:?}");
    }
}

/// The home agent denies a request because of its Identification, and the corrected one because it lacks resources. Then the clock is
/// corrected again. The mobile node corrects its request as often as the home agent asks for it, and its pauses become longer.
#[test]
fn a_correction_is_used_again_after_another_denial() {
    let mut codes =
        [Code::IdentificationMismatch, Code::HomeResources, Code::IdentificationMismatch].into_iter();
    let all = run_away(1, "", 20_000, |_| codes.next());
    assert_eq!(all[3].at, all[2].at + ROUND_TRIP, "{:?}", pauses(all.iter()));
    let all = run_away(1, "", 600_000, |_| Some(Code::IdentificationMismatch));
    let pauses = pauses(all.iter());
    assert!((10..50).contains(&all.len()), "{pauses:?}");
    assert!(pauses.iter().all(|pause| *pause <= 65_000), "{pauses:?}");
}

/// With its own care-of address, the mobile node receives packets until its registration ends. The pauses after denied renewals double.
#[test]
fn with_its_own_address_the_pauses_after_denied_renewals_double() {
    let own = "care_of = 'configured'\nlifetime = '100s'\naddress_delay = '1s'\n\
               networks = [{ address = '10.3.0.77/24', router = '10.3.0.1' }]\n";
    let mut node = node_of(1, own);
    let mut codes = [Code::Accepted].into_iter();
    let all = run(&mut node, &[], 100_000, |_| codes.next().or(Some(Code::HomeResources)));
    let renewals = pauses(all.iter().skip(1));
    for (number, least) in [1000, 2000, 4000].into_iter().enumerate() {
        assert!((least..least + 1000).contains(&renewals[number]), "{renewals:?}");
    }
}

/// A mobile node receives packets at its foreign agent until its registration ends. A pause that would last longer than the registration
/// is short.
#[test]
fn no_long_pause_lasts_longer_than_the_registration() {
    for seed in 1..=20 {
        let mut codes = [Code::Accepted].into_iter();
        let all = run_away(seed, "lifetime = '60s'", 75_000, |_| codes.next().or(Some(Code::HomeResources)));
        let ends = all[0].at + 60_000;
        let is_long = |pair: &&[Sent]| pair[1].at - pair[0].at > 3000 + ROUND_TRIP;
        let long: Vec<u64> = all[1..].windows(2).filter(is_long).map(|pair| pair[1].at).collect();
        assert!(!long.is_empty() && long.iter().all(|at| *at < ends), "{long:?}, {ends}");
        assert!(all.iter().any(|one| one.at > ends), "{:?}", pauses(all.iter()));
    }
}
