//! Attacks on the keys of smooth handoffs that home agents distribute, and configurations of them that must be rejected.

use super::*;
use mobile_ip::message::{
    Acknowledge, Asks, Binding, BufferControl, DistributedKey, KeyScope, Numbers, PreviousAgent, Status,
    Update,
};

const NEXT: Ipv4Addr = Ipv4Addr::new(10, 4, 0, 1);
const OTHER_HOME_AGENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 3);
const ROUTER: Mac = Mac([2, 0, 0, 0, 0, 9]);
const UP: u16 = 2;
const TAKES: &str = r#"
    smooth_handoff = true
    distributed_keys = true
    buffer = { packets = 4, when = "request" }
    home_agents = [
        { address = "10.1.0.2", spi = 400, key = "ffeeddccbbaa99887766554433221100" },
        { address = "10.1.0.3", spi = 401, key = "ffeeddccbbaa99887766554433221101" },
    ]
"#;
const GIVES: &str = r#"
    distribute_keys = true
    foreign_agents = [{ address = "10.3.0.1", spi = 400, key = "ffeeddccbbaa99887766554433221100" }]
"#;

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn agent(changes: &str) -> ForeignAgent {
    let mut agent = foreign_agent(changes).unwrap();
    start(&mut agent);
    agent
}

/// Returns the association between the foreign agent and a home agent.
fn foreign_home(home_agent: Ipv4Addr) -> Association {
    let (spi, last) = if home_agent == AGENT { (400, "00") } else { (401, "01") };
    let key = format!("ffeeddccbbaa998877665544332211{last}").parse().unwrap();
    Association { spi, algorithm: Algorithm::HmacSha256, key }
}

/// Returns the key of a registration, as the mobile node derives it.
fn key_of(request: &Request) -> Association {
    KeyScope::of(request).unwrap().association(&association())
}

/// Returns the extension with the key of `request`.
fn extension(request: &Request) -> Extension {
    let scope = KeyScope::of(request).unwrap();
    let foreign = foreign_home(request.home_agent);
    DistributedKey::new(&scope, &association(), &foreign).extension(&Numbers::default())
}

/// Returns the accepting reply of the home agent, with these extensions for the foreign agent.
fn accepting(request: &Request, between: Vec<Extension>) -> Reply {
    let mut reply = request.reply(Code::Accepted);
    reply.lifetime = request.lifetime;
    reply.sign(Between::MobileHome, &association());
    reply.extensions.extend(between);
    reply.sign(Between::ForeignHome, &foreign_home(request.home_agent));
    reply
}

fn asks(agent: &mut ForeignAgent, now: Instant, asked: &Request) {
    heard(agent, now, 1, MOBILE, packet(HOME, VISITED, &asked.emit()));
}

fn answers(agent: &mut ForeignAgent, now: Instant, reply: &Reply) -> Vec<Effect> {
    heard(agent, now, UP, ROUTER, packet(reply.home_agent, VISITED, &reply.emit()))
}

/// Registers the mobile node at `ms`, with a key. Returns its request.
fn registers(agent: &mut ForeignAgent, ms: u64) -> Request {
    let asked = request(at(ms), HOME);
    asks(agent, at(ms), &asked);
    answers(agent, at(ms + 10), &accepting(&asked, vec![extension(&asked)]));
    asked
}

fn update(ms: u64, key: &Association) -> Update {
    handoffs::signed_update(at(ms), HOME, NEXT, key)
}

/// Gives the foreign agent a Binding Update of the mobile node.
fn told(agent: &mut ForeignAgent, ms: u64, update: Update) -> Vec<Effect> {
    let bytes = Binding::Update(update).emit(&Numbers::default());
    heard(agent, at(ms), UP, ROUTER, packet(NEXT, VISITED, &bytes))
}

fn visits(agent: &ForeignAgent) -> bool {
    agent.status().get("visitors").is_some_and(|visitors| visitors.get("10.1.0.7").is_some())
}

fn keys(agent: &ForeignAgent) -> i64 {
    agent.status().get("handoffs").and_then(|all| all.get("keys")?.as_int()).unwrap_or(-1)
}

/// Returns the acknowledgement in these effects, which may be in a tunnel.
fn acknowledged(effects: &[Effect]) -> Option<Acknowledge> {
    effects.iter().find_map(|effect| {
        let Effect::Send(_, packet) = effect else { return None };
        let inner = wire::ipip::decapsulate(&packet.bytes).map_or(&packet.bytes[..], |(_, inner)| inner);
        match Binding::parse(ipv4::payload(inner).get(8..)?, &Numbers::default())? {
            Ok(Binding::Acknowledge(said)) => Some(said),
            _ => None,
        }
    })
}

#[test]
fn keys_that_nobody_could_use_are_refused() {
    refused(home_agent("distribute_keys = true"), "`distribute_keys`", "needs `foreign_agents`");
    refused(foreign_agent("distributed_keys = true"), "`distributed_keys`", "needs `smooth_handoff");
    let alone = "distributed_keys = true\nsmooth_handoff = true";
    refused(foreign_agent(alone), "`distributed_keys`", "needs `home_agents`");
    refused(mobile_node("distributed_keys = true"), "`distributed_keys`", "needs `smooth_handoff");
    refused(home_agent("numbers = { vendor_extension = 127 }"), "`numbers`", "`vendor_extension`");
    refused(foreign_agent("numbers = { vendor = 16777216 }"), "`numbers`", "`vendor`");
    assert!(home_agent(GIVES).is_ok() && foreign_agent(TAKES).is_ok());
    assert!(mobile_node("distributed_keys = true\nsmooth_handoff = true").is_ok());
    let nonces = format!(
        "distributed_keys = true\nsmooth_handoff = true\n\
         home_agent = {{ address = '10.1.0.2', spi = 256, key = '{KEY}', replay = 'nonces' }}"
    );
    refused(mobile_node(&nonces), "`distributed_keys`", "needs `replay");
}

/// A host on the link sends a request with a later Identification, and without the key. The mobile node that returns with its key
/// gets the packets of its home agent before the reply all the same.
#[test]
fn a_request_without_the_key_does_not_delay_packets() {
    let mut agent = agent(TAKES);
    let first = registers(&mut agent, 1000);
    told(&mut agent, 2000, update(2000, &key_of(&first)));
    let comes = |ms| {
        let mut asked = request(at(ms), HOME);
        let said = PreviousAgent::new(&asked, 30, NEXT, &association(), &Numbers::default());
        asked.extensions.push(said.extension(&Numbers::default()));
        asked
    };
    let forged = comes(6000);
    heard(&mut agent, at(3000), 1, handoffs::ATTACKER, packet(HOME, VISITED, &forged.emit()));
    let mut back = comes(3001);
    back.sign(Between::MobileForeign, &key_of(&first));
    asks(&mut agent, at(3001), &back);
    assert_eq!(handoffs::receives_from(&mut agent, at(3002), AGENT), Some(MOBILE));
}

#[test]
fn the_key_of_a_registration_ends_the_visit() {
    let mut agent = agent(TAKES);
    let asked = registers(&mut agent, 1000);
    assert_eq!(keys(&agent), 1);
    let effects = told(&mut agent, 2000, update(2000, &key_of(&asked)));
    let answer = acknowledged(&effects).unwrap();
    let numbers = Numbers::default();
    assert_eq!(answer.status, Status::ACCEPTED);
    assert!(answer.verify(numbers.smooth_authentication, &key_of(&asked), &numbers));
    assert!(!visits(&agent));
}

/// An Update without flag A ends the visit too, and is not answered.
#[test]
fn an_update_is_answered_only_if_it_asks_for_that() {
    for acknowledge in [true, false] {
        let mut agent = agent(TAKES);
        let key = key_of(&registers(&mut agent, 1000));
        let update = handoffs::signed(Update { acknowledge, ..update(2000, &key) }, &key);
        let answer = acknowledged(&told(&mut agent, 2000, update));
        assert_eq!((visits(&agent), answer.is_some()), (false, acknowledge));
    }
}

/// An agent without the option, and one that got no key, know no association. The mobile node is not harmed.
#[test]
fn without_a_key_an_update_has_no_effect() {
    let mut without = agent(&TAKES.replace("distributed_keys = true", ""));
    let asked = registers(&mut without, 1000);
    told(&mut without, 2000, update(2000, &key_of(&asked)));
    assert!(visits(&without));
    let mut agent = agent(TAKES);
    let asked = request(at(1000), HOME);
    asks(&mut agent, at(1000), &asked);
    answers(&mut agent, at(1010), &accepting(&asked, Vec::new()));
    told(&mut agent, 2000, update(2000, &key_of(&asked)));
    assert!(visits(&agent));
    for agent in [&without, &agent] {
        assert_eq!(counted(agent, "no_association"), 1);
    }
    // A restart forgets the keys.
    let mut agent = self::agent(TAKES);
    let asked = registers(&mut agent, 1000);
    let mut agent = self::agent(TAKES);
    told(&mut agent, 2000, update(2000, &key_of(&asked)));
    assert_eq!(counted(&agent, "no_association"), 1);
}

/// The home agent signs the whole reply. With any other bit of the extension, there is no visit and no key.
#[test]
fn no_bit_of_a_key_can_be_changed_on_the_way() {
    let asked = request(at(1000), HOME);
    let good = accepting(&asked, vec![extension(&asked)]).emit();
    let extension = 20 + 38..20 + 38 + 46;
    for bit in extension.start * 8..extension.end * 8 {
        let mut agent = agent(TAKES);
        asks(&mut agent, at(1000), &asked);
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        heard(&mut agent, at(1010), UP, ROUTER, packet(AGENT, VISITED, &bad));
        assert!(!visits(&agent) && keys(&agent) == 0, "bit {bit}");
    }
}

/// A host on the path appends a key that it has made, or another one. The agent believes the one that is signed, or none.
#[test]
fn an_appended_key_is_not_believed() {
    let (asked, other) = (request(at(1000), HOME), request(at(1001), HOME));
    for (signed, is_signed) in [(Vec::new(), false), (vec![extension(&asked)], true)] {
        let mut agent = agent(TAKES);
        asks(&mut agent, at(1000), &asked);
        let mut reply = accepting(&asked, signed);
        reply.extensions.push(extension(&other));
        answers(&mut agent, at(1010), &reply);
        assert!(visits(&agent), "the registration is accepted");
        assert_eq!(
            (keys(&agent), counted(&agent, "mip_key_position")),
            (is_signed.into(), (!is_signed).into())
        );
        told(&mut agent, 2000, update(2000, &key_of(&other)));
        assert!(visits(&agent));
        told(&mut agent, 2100, update(2100, &key_of(&asked)));
        assert_eq!(visits(&agent), !is_signed);
    }
}

/// A signed reply with a malformed key, or two, accepts the registration without a key.
#[test]
fn a_malformed_key_does_not_fail_the_registration() {
    let asked = request(at(1000), HOME);
    let Extension::Skipped { kind, data } = extension(&asked) else { panic!("an authentication") };
    let resized = |length: usize| {
        let mut data = data.clone();
        data.resize(length, 0);
        vec![Extension::Skipped { kind, data }]
    };
    let twice = vec![extension(&asked), extension(&asked)];
    let cases = [(resized(43), "mip_key_length"), (resized(255), "mip_key_length"), (twice, "mip_key_twice")];
    for (between, reason) in cases {
        let mut agent = agent(TAKES);
        asks(&mut agent, at(1000), &asked);
        answers(&mut agent, at(1010), &accepting(&asked, between));
        assert!(visits(&agent));
        assert_eq!((keys(&agent), counted(&agent, reason)), (0, 1), "{reason}");
    }
}

/// The key depends on the registration: that of another request, home address or care-of address gives the agent a key that the
/// mobile node does not have.
#[test]
fn a_key_for_another_registration_is_of_no_use() {
    let asked = request(at(1000), HOME);
    let others = [
        request(at(999), HOME),
        Request { home: Ipv4Addr::new(10, 1, 0, 8), ..request(at(1000), HOME) },
        Request { care_of: NEXT, ..request(at(1000), HOME) },
    ];
    for other in others {
        let mut agent = agent(TAKES);
        asks(&mut agent, at(1000), &asked);
        answers(&mut agent, at(1010), &accepting(&asked, vec![extension(&other)]));
        for key in [key_of(&asked), key_of(&other)] {
            told(&mut agent, 2000, update(2000, &key));
        }
        assert!(visits(&agent));
        assert_eq!((counted(&agent, "no_association"), counted(&agent, "bad_authentication")), (1, 1));
    }
}

/// A reply to an earlier request has the same low half of the Identification. Its key is not taken.
#[test]
fn a_key_in_a_reply_with_another_identification_is_not_taken() {
    let mut agent = agent(TAKES);
    let asked = request(at(1000), HOME);
    asks(&mut agent, at(1000), &asked);
    let earlier = Request { identification: asked.identification - (1 << 32), ..asked };
    answers(&mut agent, at(1010), &accepting(&earlier, vec![extension(&earlier)]));
    assert_eq!((keys(&agent), counted(&agent, "key_of_another_request")), (0, 1));
}

/// Another home agent, with another association, has a mobile node with the same home address. Its key cannot end the
/// visit, also with the same SPI.
#[test]
fn a_home_agent_gets_no_power_over_the_mobile_nodes_of_another_one() {
    let mut agent = agent(TAKES);
    let asked = registers(&mut agent, 1000);
    let mut theirs = Request { home_agent: OTHER_HOME_AGENT, ..request(at(2000), HOME) };
    theirs.extensions.clear();
    theirs.sign(Between::MobileHome, &association());
    asks(&mut agent, at(2000), &theirs);
    let Extension::Skipped { kind, mut data } = extension(&theirs) else { panic!("an authentication") };
    data[8..12].copy_from_slice(&key_of(&asked).spi.to_be_bytes());
    answers(&mut agent, at(2010), &accepting(&theirs, vec![Extension::Skipped { kind, data }]));
    assert_eq!(keys(&agent), 2);
    let forged = Association { spi: key_of(&asked).spi, ..key_of(&theirs) };
    let home_agents = |agent: &ForeignAgent| {
        let visits = rows(&agent.status(), "visitors", "10.1.0.7");
        visits.iter().map(|visit| visit.get("home_agent").cloned()).collect::<Vec<_>>()
    };
    told(&mut agent, 3000, update(3000, &forged));
    assert_eq!(
        home_agents(&agent),
        [Some(node::Value::from(AGENT))],
        "its own visit has ended, not the other"
    );
    told(&mut agent, 4000, update(4000, &key_of(&asked)));
    assert!(!visits(&agent));
}

/// The key of a registration with one home agent does not authenticate a request to another one: packets of that home agent are not
/// delivered before its reply.
#[test]
fn a_key_does_not_authenticate_a_request_to_another_home_agent() {
    for (home_agent, is_known) in [(AGENT, true), (OTHER_HOME_AGENT, false)] {
        let mut agent = agent(TAKES);
        let asked = registers(&mut agent, 1000);
        told(&mut agent, 2000, handoffs::signed_update(at(2000), HOME, HOME, &key_of(&asked)));
        assert_eq!((visits(&agent), keys(&agent)), (false, 1));
        let mut back = Request { home_agent, ..request(at(3000), HOME) };
        back.extensions.clear();
        back.sign(Between::MobileHome, &association());
        let said = PreviousAgent::new(&back, 30, NEXT, &association(), &Numbers::default());
        back.extensions.push(said.extension(&Numbers::default()));
        back.sign(Between::MobileForeign, &key_of(&asked));
        asks(&mut agent, at(3000), &back);
        let reached = handoffs::receives_from(&mut agent, at(3001), home_agent);
        assert_eq!(reached.is_some(), is_known, "{home_agent}");
    }
}

/// A configured key has precedence: the mobile node uses it, and a distributed one is not kept.
#[test]
fn a_configured_association_has_precedence() {
    let configured =
        format!("mobile_nodes = [{{ address = '10.1.0.7', spi = 256, key = '{KEY}' }}]\n{TAKES}");
    let mut agent = agent(&configured);
    let mut asked = request(at(1000), HOME);
    asked.sign(Between::MobileForeign, &association());
    asks(&mut agent, at(1000), &asked);
    answers(&mut agent, at(1010), &accepting(&asked, vec![extension(&asked)]));
    assert_eq!(keys(&agent), 0);
    told(&mut agent, 2000, update(2000, &key_of(&asked)));
    assert!(visits(&agent));
    told(&mut agent, 2000, update(2000, &association()));
    assert!(!visits(&agent));
}

/// Replies are lost, so the mobile node may have the key of any of the last 8 registrations. It uses none that is earlier than
/// one that it has used. A key ends with the lifetime that was granted with it.
#[test]
fn an_earlier_key_stays_until_a_later_one_is_used() {
    let mut agent = agent(TAKES);
    let asked: Vec<Request> = (1..=9).map(|n| registers(&mut agent, n * 1000)).collect();
    assert_eq!(keys(&agent), 8);
    told(&mut agent, 10_000, update(500, &key_of(&asked[0])));
    assert_eq!(counted(&agent, "no_association"), 1, "the ninth has replaced the first");
    // An update from before the last registration has no effect, but it is signed by key 5.
    told(&mut agent, 10_000, update(500, &key_of(&asked[4])));
    assert_eq!((counted(&agent, "stale_update"), keys(&agent)), (1, 5));
    give(&mut agent, at(305_010), Input::Timeout);
    assert_eq!(keys(&agent), 4, "the lifetime of key 5 has ended");
    assert!(visits(&agent));
    told(&mut agent, 306_000, update(306_000, &key_of(&asked[7])));
    assert!(!visits(&agent));
    assert_eq!(keys(&agent), 1);
}

/// The network, or a repetition by the mobile node, doubles a request: the same key is taken once.
#[test]
fn a_repeated_reply_gives_no_second_key() {
    let mut agent = agent(TAKES);
    let asked = registers(&mut agent, 1000);
    asks(&mut agent, at(1100), &asked);
    answers(&mut agent, at(1110), &accepting(&asked, vec![extension(&asked)]));
    assert_eq!(keys(&agent), 1);
    told(&mut agent, 2000, update(2000, &key_of(&asked)));
    assert!(!visits(&agent));
}

/// The keys end with the visit, whether it is deregistered or expires. The key of an update that only deletes stays for 30 s, so
/// that the repetitions of the update are answered.
#[test]
fn the_keys_end_with_the_visit() {
    let mut deregistered = agent(TAKES);
    registers(&mut deregistered, 1000);
    let mut asked = Request { lifetime: 0, ..request(at(2000), HOME) };
    asked.extensions.clear();
    asked.sign(Between::MobileHome, &association());
    asks(&mut deregistered, at(2000), &asked);
    answers(&mut deregistered, at(2010), &accepting(&asked, Vec::new()));
    assert!(!visits(&deregistered));
    assert_eq!(keys(&deregistered), 0);
    let mut deleted = agent(TAKES);
    let asked = registers(&mut deleted, 1000);
    let key = key_of(&asked);
    let delete = handoffs::signed(Update { lifetime: 0, ..update(2000, &key) }, &key);
    told(&mut deleted, 2000, delete.clone());
    assert_eq!((visits(&deleted), keys(&deleted)), (false, 1));
    give(&mut deleted, at(31_999), Input::Timeout);
    assert_eq!(keys(&deleted), 1);
    assert!(acknowledged(&told(&mut deleted, 31_999, delete.clone())).is_some());
    give(&mut deleted, at(32_000), Input::Timeout);
    assert_eq!(keys(&deleted), 0);
    assert!(acknowledged(&told(&mut deleted, 32_001, delete)).is_none());
}

/// The mobile node has left and comes back. Its request is signed by the key that the agent still has, so its visit continues
/// before the home agent's reply. A request without this signature, or by another key, has no such effect.
#[test]
fn a_mobile_node_that_is_back_is_known_by_its_key() {
    for (signer, is_known) in
        [(None, false), (Some(Secret::new([9; 32])), false), (Some(Secret::new([])), true)]
    {
        let mut agent = agent(TAKES);
        let asked = registers(&mut agent, 1000);
        told(&mut agent, 2000, update(2000, &key_of(&asked)));
        assert!(!visits(&agent));
        let mut back = request(at(3000), HOME);
        if let Some(key) = signer {
            let own = key_of(&asked);
            let key = if is_known { own.key.clone() } else { key };
            back.sign(Between::MobileForeign, &Association { key, ..own });
        }
        asks(&mut agent, at(3000), &back);
        assert_eq!(visits(&agent), is_known);
        // An update from between the two requests does not end the visit.
        if is_known {
            told(&mut agent, 3100, update(2500, &key_of(&asked)));
            assert!(visits(&agent));
            assert_eq!(counted(&agent, "stale_update"), 1);
        }
    }
}

/// A Buffer Control Request is authenticated by the same keys.
#[test]
fn a_key_authenticates_a_request_to_keep_packets() {
    let mut agent = agent(TAKES);
    let asked = registers(&mut agent, 1000);
    let numbers = Numbers::default();
    let mut control = |ms: u64, key: &Association| {
        let identification = WALL.plus(at(ms).since(Instant::ZERO)).to_ntp();
        let (asks, named) = (Asks::Keep, Vec::new());
        let mut message = BufferControl { asks, home: HOME, identification, named, authentication: None };
        message.sign(key, &numbers);
        moved(&heard(&mut agent, at(ms), 1, MOBILE, packet(HOME, VISITED, &message.emit(&numbers))))
    };
    assert!(!control(2000, &Association { key: Secret::new([0; 32]), ..key_of(&asked) }));
    assert!(control(2000, &key_of(&asked)));
    assert_eq!(counted(&agent, "bad_authentication"), 1);
}

/// Whether the agent takes keys or not, the visited link sees neither the extension nor the key.
#[test]
fn no_key_reaches_the_visited_link() {
    for changes in [TAKES.to_owned(), TAKES.replace("distributed_keys = true", ""), String::new()] {
        let mut agent = agent(&changes);
        let asked = request(at(1000), HOME);
        asks(&mut agent, at(1000), &asked);
        let mut reply = accepting(&asked, vec![extension(&asked)]);
        reply.extensions.push(extension(&asked));
        let effects = answers(&mut agent, at(1010), &reply);
        assert_eq!(code_sent(&effects), Some(Code::Accepted));
        let DistributedKey { masked, .. } =
            accepting(&asked, vec![extension(&asked)]).distributed_key(&Numbers::default()).unwrap().unwrap();
        for effect in effects {
            let Effect::Send(Some(_), sent) = effect else { continue };
            let has = |part: &[u8]| sent.bytes.windows(part.len()).any(|bytes| bytes == part);
            assert!(!has(&masked) && !has(key_of(&asked).key.as_bytes()) && !has(&[134, 44]));
        }
    }
}

/// Gives the home agent a request, and returns the bytes of its reply.
fn home_answers(agent: &mut HomeAgent, now: Instant, from: Ipv4Addr, asked: &Request) -> Option<Vec<u8>> {
    let effects = heard(agent, now, UP, ROUTER, packet(from, AGENT, &asked.emit()));
    reply_in(&effects).map(|reply| reply.emit())
}

fn relayed(now: Instant, change: impl Fn(&mut Request)) -> Request {
    let mut asked = request(now, HOME);
    asked.extensions.clear();
    change(&mut asked);
    asked.sign(Between::MobileHome, &association());
    asked.sign(Between::ForeignHome, &foreign_home(AGENT));
    asked
}

/// A key leaves only in a signed reply to the agent that has relayed the request with its own care-of address.
#[test]
fn the_home_agent_sends_a_key_only_with_an_accepted_registration_of_this_agent() {
    let has_key = |changes: &str, from: Ipv4Addr, asked: &Request| {
        let mut agent = home_agent(changes).unwrap();
        start(&mut agent);
        let bytes = home_answers(&mut agent, at(1000), from, asked).unwrap();
        bytes.windows(2).any(|two| two == [134, 44])
    };
    let asked = relayed(at(1000), |_| {});
    assert!(has_key(GIVES, VISITED, &asked));
    let without = GIVES.replace("distribute_keys = true", "");
    assert!(!has_key(&without, VISITED, &asked), "the option is off");
    let nonces = format!(
        "{GIVES}\nmobile_nodes = [{{ address = '10.1.0.7', spi = 256, key = '{KEY}', replay = 'nonces' }}]"
    );
    assert!(!has_key(&nonces, VISITED, &asked), "denied, and with nonces");
    assert!(!has_key(GIVES, VISITED, &relayed(at(900_000), |_| {})), "denied: code 133");
    assert!(!has_key(GIVES, VISITED, &relayed(at(1000), |asked| asked.lifetime = 0)), "a deregistration");
    assert!(!has_key(GIVES, VISITED, &relayed(at(1000), |asked| asked.care_of = NEXT)), "of another agent");
    assert!(!has_key(GIVES, NEXT, &request(at(1000), HOME)), "no association with the sender");
}

/// A repeated request gets the same bytes: never two keys under one mask.
#[test]
fn a_repeated_request_gets_the_same_reply() {
    let mut agent = home_agent(GIVES).unwrap();
    start(&mut agent);
    let asked = relayed(at(1000), |_| {});
    let first = home_answers(&mut agent, at(1000), VISITED, &asked).unwrap();
    assert_eq!(home_answers(&mut agent, at(2500), VISITED, &asked), Some(first.clone()));
    let next = home_answers(&mut agent, at(3000), VISITED, &relayed(at(3000), |_| {})).unwrap();
    assert_ne!(first[20 + 38..20 + 38 + 46], next[20 + 38..20 + 38 + 46]);
}

/// The notification of a mobile node is built from its own request: what it has derived is what the home agent has sent.
#[test]
fn both_ends_have_the_same_key() {
    let mut home = home_agent(GIVES).unwrap();
    start(&mut home);
    let asked = relayed(at(1000), |_| {});
    let bytes = home_answers(&mut home, at(1000), VISITED, &asked).unwrap();
    let mut agent = agent(TAKES);
    let mut plain = asked.clone();
    plain.strip();
    asks(&mut agent, at(1000), &plain);
    heard(&mut agent, at(1010), UP, ROUTER, packet(AGENT, VISITED, &bytes));
    let moves = Request { care_of: NEXT, ..request(at(2000), HOME) };
    let said = PreviousAgent::new(&moves, 30, VISITED, &key_of(&asked), &Numbers::default());
    told(&mut agent, 2000, said.update(&moves, &Numbers::default()));
    assert!(!visits(&agent));
}

/// The mobile node came from an agent, and has left by its key. A host without a key claims it. The packets of that agent are still
/// forwarded, and delivered again when the mobile node itself comes back.
#[test]
fn a_claim_without_the_key_takes_nothing_from_a_mobile_node_that_has_left() {
    let before = Ipv4Addr::new(10, 6, 0, 1);
    let named = |ms: u64, key: &Association| {
        let mut asked = request(at(ms), HOME);
        let said = PreviousAgent::new(&asked, 30, before, &association(), &Numbers::default());
        asked.extensions.push(said.extension(&Numbers::default()));
        asked.sign(Between::MobileForeign, key);
        asked
    };
    let mut agent = agent(TAKES);
    let asked = named(1000, &association());
    asks(&mut agent, at(1000), &asked);
    answers(&mut agent, at(1010), &accepting(&asked, vec![extension(&asked)]));
    assert_eq!(handoffs::receives_from(&mut agent, at(1020), before), Some(MOBILE));
    told(&mut agent, 2000, update(2000, &key_of(&asked)));
    assert!(!visits(&agent));
    let forged = named(3000, &association()).emit();
    heard(&mut agent, at(3000), 1, handoffs::ATTACKER, packet(HOME, VISITED, &forged));
    assert_eq!(handoffs::receives_from(&mut agent, at(3010), before), None, "it is forwarded");
    asks(&mut agent, at(4001), &named(4001, &key_of(&asked)));
    assert_eq!(handoffs::receives_from(&mut agent, at(4010), before), Some(MOBILE), "it is back");
}
