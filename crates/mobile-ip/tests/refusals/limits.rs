//! Limits of docs/mobile-ip.md that keep an agent from sending many messages or packets.

use super::*;
use mobile_ip::message::{
    Acknowledge, Binding, BindingRequest, DistributedKey, KeyScope, Numbers, PreviousAgent, Status, Update,
    Warning,
};

const SENDER: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);
const NEW: Ipv4Addr = Ipv4Addr::new(10, 4, 0, 1);
const UP: u16 = 2;
/// The types of Binding Updates and of Binding Acknowledges.
const UPDATE: u8 = 18;
const ACKNOWLEDGE: u8 = 19;

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn stamp(now: Instant) -> u64 {
    WALL.plus(now.since(Instant::ZERO)).to_ntp()
}

/// Returns the number of messages of this type that an agent sends by its table, without a tunnel.
fn sent(effects: &[Effect], kind: u8) -> usize {
    let is_it = |effect: &&Effect| match effect {
        Effect::Send(None, packet) => ipv4::payload(&packet.bytes).get(8) == Some(&kind),
        _ => false,
    };
    effects.iter().filter(is_it).count()
}

/// Tunnels are not authenticated. A host sends packets for unknown hosts in a tunnel: the agent sends 100 of them back in a
/// second, and drops the others.
#[test]
fn a_foreign_agent_sends_100_packets_a_second_in_special_tunnels() {
    let mut agent = foreign_agent("special_tunnels = true").unwrap();
    start(&mut agent);
    let mut are_sent = |ms: u64, packets: u8| {
        let mut is_sent = |number: u8| {
            let data = Packet::new(Mac::ZERO, packet(SENDER, Ipv4Addr::new(10, 1, 9, number), b"data"));
            let rx = Rx::parse(Iface(UP), PuntReason::Action, &data).unwrap();
            let rx = Rx { tunnel: Some((AGENT, VISITED)), ..rx };
            let effects = give(&mut agent, at(ms), Input::Packet(rx, data));
            !effects.iter().any(|effect| matches!(effect, Effect::Discard(..)))
        };
        let sent = (1..=packets).filter(|number| is_sent(*number)).count();
        (sent, counted(&agent, "special_tunnel_limit"))
    };
    assert_eq!(are_sent(1000, 80), (80, 0));
    assert_eq!(are_sent(1999, 40), (20, 20), "the second has not ended");
    assert_eq!(are_sent(2000, 150), (100, 70));
}

/// A home agent of 65 mobile nodes with 64 correspondents. Each correspondent asks for each mobile node: 4160 pairs.
#[test]
fn a_home_agent_remembers_4096_pairs_until_their_entries_end() {
    let node = |number: u8| Ipv4Addr::new(10, 1, 7, number);
    let peer = |number: u8| Ipv4Addr::new(10, 2, 0, number);
    let nodes =
        (1..=65).map(|number| format!("{{ address = '{}', spi = 256, key = '{KEY}' }}", node(number)));
    let peers =
        (1..=64).map(|number| format!("{{ address = '{}', spi = 400, key = '{KEY}' }}", peer(number)));
    let [nodes, peers] = [nodes.collect::<Vec<_>>(), peers.collect()].map(|all| all.join(", "));
    let mut agent = home_agent(&format!("mobile_nodes = [{nodes}]\ncorrespondents = [{peers}]")).unwrap();
    start(&mut agent);
    let registers = |agent: &mut HomeAgent, now: Instant, number: u8| {
        let asked = request(now, node(number)).emit();
        let effects = heard(agent, now, UP, MOBILE, packet(VISITED, AGENT, &asked));
        assert_eq!(code_sent(&effects), Some(Code::Accepted), "mobile node {number}");
    };
    let asks = |agent: &mut HomeAgent, now: Instant, about: u8, from: u8| {
        let asked = BindingRequest { home: node(about), identification: stamp(now), authentication: None };
        let asked = Binding::Request(asked).emit(&Numbers::default());
        sent(&heard(agent, now, UP, MOBILE, packet(peer(from), AGENT, &asked)), UPDATE)
    };
    (1..=65).for_each(|number| registers(&mut agent, at(1000), number));
    let updates: usize = (1..=65_u8)
        .flat_map(|about| (1..=64).map(move |from| (about, from)))
        .map(|(about, from)| asks(&mut agent, at(2000), about, from))
        .sum();
    assert_eq!(updates, 4096);
    // A pair that is known is answered again, and others have no room while entries may exist: for 300 s.
    assert_eq!([asks(&mut agent, at(4000), 1, 1), asks(&mut agent, at(4000), 65, 64)], [1, 0]);
    registers(&mut agent, at(200_000), 65);
    assert_eq!(asks(&mut agent, at(299_000), 65, 64), 0);
    assert_eq!(asks(&mut agent, at(303_000), 65, 64), 1);
}

/// A host sends a Binding Warning each 100 ms. The correspondent answers no Update.
#[test]
fn the_pause_between_updates_without_an_answer_doubles_up_to_64_s() {
    let correspondent = format!("correspondents = [{{ address = '{SENDER}', spi = 400, key = '{KEY}' }}]");
    let mut agent = home_agent(&correspondent).unwrap();
    start(&mut agent);
    heard(&mut agent, at(1000), UP, MOBILE, packet(VISITED, AGENT, &request(at(1000), HOME).emit()));
    let warning = Binding::Warning(Warning { home: HOME, targets: vec![SENDER] }).emit(&Numbers::default());
    let mut instants = Vec::new();
    for tenth in 20..2500_u64 {
        let effects = heard(&mut agent, at(tenth * 100), UP, MOBILE, packet(NEW, AGENT, &warning));
        instants.extend((sent(&effects, UPDATE) > 0).then_some(tenth));
    }
    let pauses: Vec<u64> = instants.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 640], "tenths of a second");
}

/// An authentic Binding Update about a mobile node that is no visitor is refused. The answers to one mobile node are limited.
#[test]
fn a_foreign_agent_acknowledges_8_updates_of_a_mobile_node_in_a_second() {
    let association = format!("mobile_nodes = [{{ address = '{HOME}', spi = 256, key = '{KEY}' }}]");
    let mut agent = foreign_agent(&format!("smooth_handoff = true\n{association}")).unwrap();
    start(&mut agent);
    let mut answers = |begin: u64, updates: u64| {
        let answer = |number: u64| {
            let now = at(begin + number);
            let update = super::handoffs::signed_update(now, HOME, NEW, &super::association());
            let update = Binding::Update(update).emit(&Numbers::default());
            let effects = heard(&mut agent, now, UP, MOBILE, packet(NEW, VISITED, &update));
            sent(&effects, ACKNOWLEDGE)
        };
        (0..updates).map(answer).sum::<usize>()
    };
    assert_eq!([answers(1000, 20), answers(1900, 50), answers(2000, 20)], [8, 0, 8]);
}

/// Mobile nodes register one after the other and leave by a Binding Update, with distributed keys. The agent forwards for as many of them
/// as there may be visits: the oldest forwarding ends.
#[test]
fn a_foreign_agent_forwards_for_as_many_mobile_nodes_as_may_visit_it() {
    let key = "ffeeddccbbaa99887766554433221100";
    let mut agent = foreign_agent(&format!(
        "smooth_handoff = true\ndistributed_keys = true\nvisitors = 10
        home_agents = [{{ address = '{AGENT}', spi = 400, key = '{key}' }}]"
    ))
    .unwrap();
    start(&mut agent);
    let foreign = Association { spi: 400, algorithm: Algorithm::HmacSha256, key: key.parse().unwrap() };
    for number in 0..30_u8 {
        let now = at(1000 + u64::from(number) * 10);
        let home = Ipv4Addr::new(10, 1, 9, number + 1);
        let asked = request(now, home);
        heard(&mut agent, now, 1, MOBILE, packet(home, VISITED, &asked.emit()));
        let mut reply = asked.reply(Code::Accepted);
        reply.lifetime = 300;
        reply.sign(Between::MobileHome, &super::association());
        let scope = KeyScope::of(&asked).unwrap();
        let given = DistributedKey::new(&scope, &super::association(), &foreign);
        reply.extensions.push(given.extension(&Numbers::default()));
        reply.sign(Between::ForeignHome, &foreign);
        heard(&mut agent, now, UP, MOBILE, packet(AGENT, VISITED, &reply.emit()));
        let key = scope.association(&super::association());
        let update = super::handoffs::signed_update(at(1005 + u64::from(number) * 10), home, NEW, &key);
        let update = Binding::Update(update).emit(&Numbers::default());
        heard(&mut agent, at(1005 + u64::from(number) * 10), UP, MOBILE, packet(NEW, VISITED, &update));
    }
    let handoffs = agent.status().get("handoffs").cloned().unwrap();
    let left = |number: u8| rows(&handoffs, "departures", &format!("10.1.9.{number}")).len();
    assert_eq!((1..=30).map(left).sum::<usize>(), 10);
    assert_eq!([left(20), left(21), left(30)], [0, 1, 1]);
}

/// A mobile node names ten previous agents in turn. The agent remembers the last four.
#[test]
fn a_foreign_agent_takes_packets_of_four_previous_agents() {
    let mut agent = super::handoffs::agent(super::handoffs::PROVEN);
    let previous = |number: u8| Ipv4Addr::new(10, 20, 0, number);
    for number in 1..=10_u8 {
        let now = at(1000 * u64::from(number));
        let mut asked = request(now, HOME);
        let said =
            PreviousAgent::new(&asked, 300, previous(number), &super::association(), &Numbers::default());
        asked.extensions.push(said.extension(&Numbers::default()));
        asked.sign(Between::MobileForeign, &super::association());
        heard(&mut agent, now, 1, MOBILE, packet(HOME, VISITED, &asked.emit()));
        heard(&mut agent, now, UP, MOBILE, reply_to(&asked, AGENT));
    }
    let mut gets =
        |number: u8| super::handoffs::receives_from(&mut agent, at(12_000), previous(number)).is_some();
    assert_eq!((1..=10).filter(|number| gets(*number)).collect::<Vec<_>>(), [7, 8, 9, 10]);
}

/// Returns a home agent with the correspondent [`SENDER`].
fn informing(changes: &str) -> HomeAgent {
    let correspondents = format!("correspondents = [{{ address = '{SENDER}', spi = 400, key = '{KEY}' }}]");
    let mut agent = home_agent(&format!("{correspondents}\n{changes}")).unwrap();
    start(&mut agent);
    agent
}

/// The mobile node registers with these flags. Returns the Binding Updates that the home agent sends.
fn registers(agent: &mut HomeAgent, ms: u64, flags: RequestFlags, lifetime: u16) -> Vec<Update> {
    let mut asked = Request { flags, lifetime, ..request(at(ms), HOME) };
    asked.extensions.clear();
    asked.sign(Between::MobileHome, &super::association());
    let effects = heard(agent, at(ms), UP, MOBILE, packet(VISITED, AGENT, &asked.emit()));
    assert_eq!(code_sent(&effects), Some(Code::Accepted), "{ms} ms");
    updates(&effects)
}

/// Returns the Binding Updates in these effects.
fn updates(effects: &[Effect]) -> Vec<Update> {
    let update = |effect: &Effect| match effect {
        Effect::Send(None, packet) => {
            match Binding::parse(ipv4::payload(&packet.bytes).get(8..)?, &Numbers::default()) {
                Some(Ok(Binding::Update(update))) => Some(update),
                _ => None,
            }
        }
        _ => None,
    };
    effects.iter().filter_map(update).collect()
}

/// The correspondent asks, and acknowledges the Binding Update that it gets.
fn gets_an_entry(agent: &mut HomeAgent, ms: u64) -> Update {
    let asked = BindingRequest { home: HOME, identification: stamp(at(ms)), authentication: None };
    let asked = Binding::Request(asked).emit(&Numbers::default());
    let got = updates(&heard(agent, at(ms), UP, MOBILE, packet(SENDER, AGENT, &asked)));
    let [update] = &got[..] else { panic!("{got:?}") };
    acknowledges(agent, ms + 10, update);
    update.clone()
}

fn acknowledges(agent: &mut HomeAgent, ms: u64, update: &Update) {
    let (numbers, identification) = (Numbers::default(), update.identification);
    let key = Association { spi: 400, ..super::association() };
    let mut answer =
        Acknowledge { status: Status::ACCEPTED, home: HOME, identification, authentication: None };
    answer.sign(numbers.route_authentication, &key, &numbers);
    heard(agent, at(ms), UP, MOBILE, packet(SENDER, AGENT, &Binding::Acknowledge(answer).emit(&numbers)));
}

/// The mobile node changes only the kind of tunnel. A correspondent with an entry is informed as after a move, until it answers:
/// otherwise it would use a kind of tunnel that the care-of address does not accept any more.
#[test]
fn a_home_agent_informs_correspondents_of_another_kind_of_tunnel() {
    let mut agent = informing("encapsulations = ['minimal', 'gre']");
    let plain = RequestFlags::default();
    let steps = [(RequestFlags::GRE, plain), (plain, RequestFlags::GRE), (plain, RequestFlags::MINIMAL)];
    for (place, (before, after)) in steps.into_iter().enumerate() {
        let begin = 100_000 * (1 + place as u64);
        registers(&mut agent, begin, before, 300);
        let entry = gets_an_entry(&mut agent, begin + 5000);
        assert_eq!((entry.minimal, entry.gre), (false, before == RequestFlags::GRE));
        assert_eq!(registers(&mut agent, begin + 10_000, before, 300), [], "a renewal");
        let changed = registers(&mut agent, begin + 20_000, after, 300);
        let [update] = &changed[..] else { panic!("{changed:?}") };
        assert_eq!(
            (update.care_of, update.minimal, update.gre),
            (VISITED, after == RequestFlags::MINIMAL, after == RequestFlags::GRE)
        );
        let again = updates(&give(&mut agent, at(begin + 21_000), Input::Timeout));
        assert_eq!(again.len(), 1, "not acknowledged");
        acknowledges(&mut agent, begin + 21_500, &again[0]);
        assert_eq!(updates(&give(&mut agent, at(begin + 30_000), Input::Timeout)), []);
    }
}

/// The binding becomes private, and ends 2 s later. The correspondent does not answer the Update that asks it to forget its entry: the
/// end of the binding causes no further one before the pause ends.
#[test]
fn the_end_of_a_binding_shortens_no_pause_between_updates() {
    let mut agent = informing("");
    registers(&mut agent, 1000, RequestFlags::default(), 300);
    gets_an_entry(&mut agent, 2000);
    let first = registers(&mut agent, 4000, RequestFlags::RESERVED, 2);
    assert_eq!(first.iter().map(|update| update.care_of).collect::<Vec<_>>(), [HOME]);
    assert_eq!(updates(&give(&mut agent, at(5000), Input::Timeout)).len(), 1);
    let key = RouteKey { class: None, src: Prefix::ANY, dst: Prefix::host(HOME) };
    let ended = give(&mut agent, at(6000), Input::Idle(key, Instant::ZERO));
    assert!(ended.iter().any(|effect| matches!(effect, Effect::Do(Act::Neighbor(_, HOME, None)))));
    assert_eq!(updates(&ended), []);
    let times: Vec<u64> = (6000..16_000)
        .step_by(1000)
        .filter(|ms| !updates(&give(&mut agent, at(*ms), Input::Timeout)).is_empty())
        .collect();
    assert_eq!(times, [7000, 11_000]);
}
