//! Tests of a mobile node whose home agent lacks resources (code 130).

use super::*;

const VISITED_MAC: Mac = Mac([2, 0, 0, 0, 0, 3]);
const HOME_MAC: Mac = Mac([2, 0, 0, 0, 0, 2]);
/// The second home agent of the tests.
const BACKUP: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 3);
/// The address of all home agents of the home network.
const ALL_HOME_AGENTS: Ipv4Addr = Ipv4Addr::new(10, 1, 255, 255);
/// The time from a request to its reply, in milliseconds.
const ROUND_TRIP: u64 = 10;

fn backup() -> String {
    format!("backup_home_agents = [{{ address = '{BACKUP}', spi = 256, key = '{KEY}' }}]\n")
}

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
            if code == Code::UnknownHomeAgent {
                reply.home_agent = if answered == 1 { AGENT } else { BACKUP };
            }
            reply.sign(Between::MobileHome, &association());
            let is_direct = one.request.flags.has(RequestFlags::DECAPSULATION);
            let (from, to) = match one.request.care_of {
                HOME => (one.request.home_agent, HOME),
                own if is_direct => (one.request.home_agent, own),
                _ => (VISITED, HOME),
            };
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

/// Returns the home agents of the requests.
fn home_agents(all: &[Sent]) -> Vec<Ipv4Addr> {
    all.iter().map(|one| one.request.home_agent).collect()
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

/// The first home agent lacks resources. The third denial in a row is the last one.
#[test]
fn after_three_denials_for_lack_of_resources_the_next_home_agent_is_asked() {
    let all = run_away(1, &backup(), 100_000, |one| {
        Some(if one.request.home_agent == AGENT { Code::HomeResources } else { Code::Accepted })
    });
    assert_eq!(home_agents(&all), [AGENT, AGENT, AGENT, BACKUP]);
    assert!(all[3].at - all[2].at == ROUND_TRIP && all[3].at < 6000, "{:?}", pauses(all.iter()));
    // A home agent that lacks resources for a shorter time is kept.
    let mut denials = 2;
    let all = run_away(1, &backup(), 100_000, |_| {
        denials -= 1;
        Some(if denials >= 0 { Code::HomeResources } else { Code::Accepted })
    });
    assert_eq!(home_agents(&all), [AGENT; 3]);
}

/// The next home agent has another nonce: it denies the first request, and the corrected one follows at once.
#[test]
fn the_next_home_agent_may_use_nonces() {
    let nonces = backup().replace(" }]", ", replay = 'nonces' }]");
    let mut is_known = false;
    let all = run_away(1, &nonces, 100_000, |one| match one.request.home_agent {
        AGENT => Some(Code::HomeResources),
        _ if std::mem::replace(&mut is_known, true) => Some(Code::Accepted),
        _ => Some(Code::IdentificationMismatch),
    });
    assert_eq!(home_agents(&all), [AGENT, AGENT, AGENT, BACKUP, BACKUP]);
    assert_eq!(all[4].at - all[3].at, ROUND_TRIP);
}

/// If no home agent has resources, the mobile node asks each of them again and again, but not more often than it would ask one.
#[test]
fn home_agents_that_all_lack_resources_are_asked_in_turn_with_pauses() {
    let all = run_away(1, &backup(), 121_000, |_| Some(Code::HomeResources));
    let asked = home_agents(&all);
    assert_eq!(asked[..8], [AGENT, AGENT, AGENT, BACKUP, BACKUP, BACKUP, AGENT, AGENT]);
    assert!((60..=120).contains(&all.len()), "{}", all.len());
    for home_agent in [AGENT, BACKUP] {
        let pauses = pauses(all.iter().filter(|one| one.request.home_agent == home_agent));
        assert!(pauses.iter().all(|pause| (1000..=6000).contains(pause)), "{pauses:?}");
    }
    for three in all.chunks(3) {
        assert!(pauses(three.iter()).iter().all(|pause| *pause >= 1000));
    }
}

/// A next home agent that does not answer does not delay the requests to the first one by more than three waits for a reply.
#[test]
fn a_home_agent_without_resources_is_asked_again_if_the_next_one_does_not_answer() {
    let all = run_away(1, &backup(), 60_000, |one| {
        (one.request.home_agent == AGENT).then_some(if one.at < 9000 {
            Code::HomeResources
        } else {
            Code::Accepted
        })
    });
    assert_eq!(home_agents(&all), [AGENT, AGENT, AGENT, BACKUP, BACKUP, BACKUP, AGENT]);
    assert_eq!(all[6].at - all[3].at, 7000);
}

/// The registration still delivers packets: the node turns to the next home agent only when it would end before the next request,
/// and before it ends.
#[test]
fn a_registration_is_kept_until_it_ends() {
    let mut is_registered = false;
    let lifetime = "lifetime = '100s'\n".to_owned();
    let all = run_away(1, &(lifetime + &backup()), 200_000, |one| match one.request.home_agent {
        AGENT if std::mem::replace(&mut is_registered, true) => Some(Code::HomeResources),
        _ => Some(Code::Accepted),
    });
    let turned = all.iter().find(|one| one.request.home_agent == BACKUP).unwrap();
    let before = all.iter().take_while(|one| one.request.home_agent == AGENT).count();
    assert!(before >= 5, "the renewals begin at 81 s: {:?}", pauses(all.iter()));
    assert!((90_000..101_000).contains(&turned.at), "{}", turned.at);
}

/// With its own care-of address, the node takes the tunnels of one home agent only: it turns when the registration has ended.
#[test]
fn with_its_own_address_the_node_turns_when_the_registration_has_ended() {
    let own = "care_of = 'configured'\nlifetime = '100s'\naddress_delay = '1s'\n\
               networks = [{ address = '10.3.0.77/24', router = '10.3.0.1' }]\n";
    let mut node = node_of(1, &(own.to_owned() + &backup()));
    let mut is_registered = false;
    let all = run(&mut node, &[], 200_000, |one| match one.request.home_agent {
        AGENT if std::mem::replace(&mut is_registered, true) => Some(Code::HomeResources),
        _ => Some(Code::Accepted),
    });
    let turned = all.iter().find(|one| one.request.home_agent == BACKUP).unwrap();
    assert!((101_000..105_000).contains(&turned.at), "{} {:?}", turned.at, pauses(all.iter()));
    // While the registration delivers packets, the pauses double.
    let renewals = pauses(all.iter().skip(1));
    for (number, least) in [1000, 2000, 4000].into_iter().enumerate() {
        assert!((least..least + 1000).contains(&renewals[number]), "{renewals:?}");
    }
}

/// At home, only the home agent of the link can end the bindings.
#[test]
fn at_home_the_node_asks_the_home_agent_of_the_link_only() {
    let mut node = node_of(1, &backup());
    let said = Advertisement {
        src: AGENT,
        lifetime: 9000,
        flags: AgentFlags::HOME,
        care_of: Vec::new(),
        ..foreign_advertisement()
    };
    let effects = heard(&mut node, Instant::from_millis(1000), 1, HOME_MAC, said.emit());
    let all = run(&mut node, &effects, 61_000, |_| Some(Code::HomeResources));
    assert!(
        all.len() > 10 && home_agents(&all).iter().all(|asked| *asked == AGENT),
        "{:?}",
        home_agents(&all)
    );
}

/// A mobile node that does not know its home agent asks all home agents of its home network again.
#[test]
fn another_home_agent_of_the_home_network_is_found() {
    let all = format!("home_agent = {{ address = '{ALL_HOME_AGENTS}', spi = 256, key = '{KEY}' }}");
    let all = run_away(1, &all, 100_000, |one| match one.request.home_agent {
        ALL_HOME_AGENTS => Some(Code::UnknownHomeAgent),
        AGENT => Some(Code::HomeResources),
        _ => Some(Code::Accepted),
    });
    assert_eq!(home_agents(&all), [ALL_HOME_AGENTS, AGENT, AGENT, AGENT, ALL_HOME_AGENTS, BACKUP]);
}
