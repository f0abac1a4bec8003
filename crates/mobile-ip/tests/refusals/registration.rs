//! Tests of registration: the algorithms of associations, nonces, several bindings and the flags of requests.

use super::*;
use mobile_ip::message::Extension;
use node::Value;

/// Returns a home agent whose association with the mobile node has these further keys, for example `algorithm`.
fn home_agent_with(keys: &str) -> HomeAgent {
    let peer = format!("mobile_nodes = [{{ address = \"{HOME}\", spi = 256, key = \"{KEY}\", {keys} }}]");
    let mut agent = home_agent(&peer).unwrap();
    start(&mut agent);
    agent
}

/// Returns a request at `now` that is signed with `algorithm`.
fn signed_with(now: Instant, algorithm: Algorithm) -> Request {
    let mut request = request(now, HOME);
    request.extensions.clear();
    request.sign(Between::MobileHome, &Association { algorithm, ..association() });
    request
}

/// The algorithm is that of the association, whatever the message contains. So the weak algorithms are of no use to an
/// attacker unless an association names them.
#[test]
fn a_request_is_checked_with_the_algorithm_of_its_association_only() {
    let algorithms = [
        ("hmac-sha256", Algorithm::HmacSha256),
        ("hmac-md5", Algorithm::HmacMd5),
        ("keyed-md5", Algorithm::KeyedMd5),
        ("keyed-md5-without-spi", Algorithm::KeyedMd5WithoutSpi),
    ];
    let now = Instant::from_millis(1000);
    for (name, configured) in algorithms {
        for (_, used) in algorithms {
            let mut agent = home_agent_with(&format!("algorithm = \"{name}\""));
            let asked = signed_with(now, used).emit();
            let effects = heard(&mut agent, now, 2, MOBILE, packet(VISITED, AGENT, &asked));
            assert_eq!(moved(&effects), configured == used, "{name}, {used:?}");
            let code = if configured == used { Code::Accepted } else { Code::HomeMobileFailed };
            assert_eq!(code_sent(&effects), Some(code), "{name}, {used:?}");
        }
    }
    let peer = |keys: &str| {
        home_agent(&format!(
            "mobile_nodes = [{{ address = \"{HOME}\", spi = 256, key = \"{KEY}\", {keys} }}]"
        ))
    };
    refused(peer("algorithm = \"md5\""), "unknown variant `md5`", "keyed-md5-without-spi");
}

// --- nonces (RFC 5944, section 5.7.2) ------------------------------------------------------------------------------------

/// Returns a signed request with this Identification.
fn asked_with(identification: u64, change: impl FnOnce(&mut Request)) -> Request {
    let mut request = request(Instant::ZERO, HOME);
    request.extensions.clear();
    request.identification = identification;
    change(&mut request);
    request.sign(Between::MobileHome, &association());
    request
}

/// Gives a home agent a request. Returns the reply, and whether the request changed a binding.
fn answer(agent: &mut HomeAgent, at: u64, request: &Request) -> (Option<Reply>, bool) {
    let bytes = packet(request.care_of, AGENT, &request.emit());
    let effects = heard(agent, Instant::from_millis(at), 2, MOBILE, bytes);
    let reply = reply_in(&effects);
    (reply, moved(&effects))
}

const fn with(nonce: u64, low: u64) -> u64 {
    nonce << 32 | low
}

/// Returns the code of a reply and its nonce, and checks its low half and its authentication.
fn nonce_of((reply, _): &(Option<Reply>, bool), low: u64) -> (Code, u64) {
    let reply = reply.as_ref().unwrap();
    assert!(reply.verify(Between::MobileHome, &association()));
    assert_eq!(reply.identification & 0xffff_ffff, low);
    (reply.code, reply.identification >> 32)
}

#[test]
fn each_nonce_is_accepted_once_and_a_wrong_one_gets_a_new_one() {
    let mut agent = home_agent_with("replay = 'nonces'");
    // A timestamp of now is no nonce.
    let stamp = WALL.plus(Instant::from_millis(1000).since(Instant::ZERO)).to_ntp();
    let denied = answer(&mut agent, 1000, &asked_with(stamp, |_| {}));
    let (code, first) = nonce_of(&denied, stamp & 0xffff_ffff);
    assert_eq!((code, denied.1), (Code::IdentificationMismatch, false));
    let asked = asked_with(with(first, 7), |_| {});
    let accepted = answer(&mut agent, 2000, &asked);
    let (code, second) = nonce_of(&accepted, 7);
    assert_eq!((code, accepted.1), (Code::Accepted, true));
    assert_ne!(first, second);
    // The same request gets the same reply, and changes nothing.
    assert_eq!(answer(&mut agent, 3500, &asked), (accepted.0, false));
    // The nonce of an accepted request is not accepted again. The denial does not change the present nonce: otherwise,
    // repetitions of earlier requests would keep the mobile node from registering.
    for (at, low) in [(5000, 8), (6500, 9)] {
        let replayed = answer(&mut agent, at, &asked_with(with(first, low), |_| {}));
        assert_eq!((nonce_of(&replayed, low), replayed.1), ((Code::IdentificationMismatch, second), false));
    }
    // A late repetition gets what is left of the lifetime. A second after a denial, the agent answers again.
    let late = answer(&mut agent, 42_000, &asked);
    assert_eq!(late.0.map(|reply| reply.lifetime), Some(asked.lifetime - 40));
    // Time does not matter.
    let later = answer(&mut agent, 90_000_000, &asked_with(with(second, 10), |_| {}));
    assert_eq!((nonce_of(&later, 10).0, later.1), (Code::Accepted, true));
}

/// A foreign agent that has restarted would take the sender of a repeated request for the mobile node.
#[test]
fn with_timestamps_a_late_repetition_is_denied() {
    let mut agent = home_agent_with("");
    let stamp = WALL.plus(Instant::from_millis(2000).since(Instant::ZERO)).to_ntp();
    let asked = asked_with(stamp, |_| {});
    let codes =
        [2000, 4000, 8900, 10_100, 30_000].map(|at| answer(&mut agent, at, &asked).0.map(|reply| reply.code));
    let (accepted, old) = (Some(Code::Accepted), Some(Code::IdentificationMismatch));
    assert_eq!(codes, [accepted, accepted, accepted, old, old]);
}

/// A request that is denied for another reason than its nonce has used its nonce. Otherwise an attacker could repeat the
/// request when the reason does not apply any more.
#[test]
fn a_denied_request_has_used_its_nonce() {
    let mut agent = home_agent_with("replay = 'nonces'");
    let (_, first) = nonce_of(&answer(&mut agent, 1000, &asked_with(1, |_| {})), 1);
    let bad = asked_with(with(first, 2), |asked| asked.flags = RequestFlags::RESERVED);
    let (code, second) = nonce_of(&answer(&mut agent, 2000, &bad), 2);
    assert_eq!(code, Code::HomeBadRequest);
    assert_ne!(first, second);
    let (code, present) = nonce_of(&answer(&mut agent, 4000, &bad), 2);
    assert_eq!((code, present), (Code::IdentificationMismatch, second));
    // A request with a wrong authenticator uses no nonce, whatever nonce it has.
    let mut forged = asked_with(with(second, 3), |_| {});
    forged.extensions.clear();
    forged.sign(Between::MobileHome, &Association { key: Secret::new([9; 16]), ..association() });
    assert_eq!(nonce_of(&answer(&mut agent, 6000, &forged), 3), (Code::HomeMobileFailed, second));
    let good = answer(&mut agent, 8000, &asked_with(with(second, 4), |_| {}));
    assert_eq!(nonce_of(&good, 4).0, Code::Accepted);
}

/// Gives a role `Start` with the records that the effects store.
fn restarted(mut agent: HomeAgent, effects: &[Effect], clean: bool) -> HomeAgent {
    let stored = effects.iter().find_map(|effect| match effect {
        Effect::Do(Act::Store(key, Some(value))) => Some((key.clone(), value.clone())),
        _ => None,
    });
    let boot = Boot { stored: vec![stored.unwrap()], clean, ..Boot::new(WALL) };
    give(&mut agent, Instant::ZERO, Input::Start(&boot));
    agent
}

#[test]
fn a_nonce_survives_a_restart_unless_records_may_be_lost() {
    let config =
        format!("mobile_nodes = [{{ address = \"{HOME}\", spi = 256, key = \"{KEY}\", replay = 'nonces' }}]");
    for clean in [true, false] {
        let mut agent = home_agent_with("replay = 'nonces'");
        let (_, first) = nonce_of(&answer(&mut agent, 1000, &asked_with(1, |_| {})), 1);
        let bytes = packet(VISITED, AGENT, &asked_with(with(first, 2), |_| {}).emit());
        let effects = heard(&mut agent, Instant::from_millis(2000), 2, MOBILE, bytes);
        let (_, second) = {
            let reply = reply_in(&effects);
            nonce_of(&(reply, true), 2)
        };
        let mut agent = restarted(home_agent(&config).unwrap(), &effects, clean);
        let (code, third) = nonce_of(&answer(&mut agent, 3000, &asked_with(with(second, 3), |_| {})), 3);
        let expected = if clean { Code::Accepted } else { Code::IdentificationMismatch };
        assert_eq!(code, expected, "clean: {clean}");
        assert_ne!(second, third);
        // A home agent that uses timestamps from now on accepts only requests that are later than its start.
        let mut agent = restarted(home_agent("").unwrap(), &effects, true);
        let stamp = |ms| WALL.plus(Instant::from_millis(ms).since(Instant::ZERO)).to_ntp();
        let old = answer(&mut agent, 4000, &asked_with(stamp(0), |_| {}));
        assert_eq!(old.0.unwrap().code, Code::IdentificationMismatch);
        let new = answer(&mut agent, 4000, &asked_with(stamp(4000), |_| {}));
        assert_eq!(new.0.unwrap().code, Code::Accepted);
    }
}

#[test]
fn a_mobile_node_repeats_the_same_bytes_and_uses_each_nonce_once() {
    let at = Instant::from_millis;
    let home =
        format!("home_agent = {{ address = \"{AGENT}\", spi = 256, key = \"{KEY}\", replay = 'nonces' }}");
    let mut node = mobile_node(&home).unwrap();
    start(&mut node);
    let agent = Mac([2, 0, 0, 0, 0, 3]);
    let requests = |effects: &[Effect]| -> Vec<Vec<u8>> {
        let sent = effects.iter().filter_map(|effect| match effect {
            Effect::Send(_, packet) => Received::parse(&packet.bytes).ok().map(|_| packet.bytes.clone()),
            _ => None,
        });
        sent.collect()
    };
    let read = |bytes: &[u8]| match Received::parse(bytes).unwrap().message {
        Registration::Request(request) => request,
        Registration::Reply(reply) => panic!("{reply:?}"),
    };
    let first = requests(&heard(&mut node, at(1000), 1, agent, foreign_advertisement().emit())).remove(0);
    let now = node_deadline(&node);
    let repeated = requests(&give(&mut node, now, Input::Timeout));
    assert_eq!(repeated, std::slice::from_ref(&first));
    let reply = |request: &Request, code, nonce: u64| {
        let low = request.identification & 0xffff_ffff;
        let mut reply = Reply { identification: with(nonce, low), lifetime: 300, ..request.reply(code) };
        reply.sign(Between::MobileHome, &association());
        packet(VISITED, HOME, &reply.emit())
    };
    let denial = reply(&read(&first), Code::IdentificationMismatch, 77);
    let second = read(&requests(&heard(&mut node, now, 1, agent, denial))[0]);
    assert_eq!(second.identification >> 32, 77);
    assert_ne!(second.identification as u32, read(&first).identification as u32);
    let accepted = reply(&second, Code::Accepted, 88);
    assert!(requests(&heard(&mut node, now, 1, agent, accepted)).is_empty());
    heard(&mut node, now, 1, agent, foreign_advertisement().emit());
    let answer = give(&mut node, now, Input::Command(node::CommandId(1), &register()));
    let third = read(&requests(&answer)[0]);
    assert_eq!(third.identification >> 32, 88);
    assert_ne!(third.identification as u32, second.identification as u32);
}

fn register() -> node::Command {
    node::Command { verb: "register".to_owned(), args: Value::map([]) }
}

fn node_deadline(node: &MobileNode) -> Instant {
    node.deadline().unwrap()
}

#[test]
fn a_replay_style_that_cannot_work_is_refused() {
    let peer = |keys: &str| format!("{{ address = \"{HOME}\", spi = SPI, key = \"{KEY}\", {keys} }}");
    let two = |first: &str, second: &str| {
        let [one, two] = [(first, "256"), (second, "257")].map(|(keys, spi)| peer(keys).replace("SPI", spi));
        home_agent(&format!("mobile_nodes = [{one}, {two}]"))
    };
    assert!(two("replay = 'nonces'", "replay = 'nonces'").is_ok());
    refused(two("replay = 'nonces'", "replay = 'timestamps'"), "`mobile_nodes`", "the same `replay`");
    let nonces = peer("replay = 'nonces'").replace("SPI", "256");
    refused(foreign_agent(&format!("mobile_nodes = [{nonces}]")), "`mobile_nodes`", "`timestamps`");
    refused(foreign_agent(&format!("home_agents = [{nonces}]")), "`home_agents`", "`timestamps`");
    refused(home_agent(&format!("foreign_agents = [{nonces}]")), "`foreign_agents`", "`timestamps`");
    refused(home_agent("simultaneous_bindings = 0"), "`simultaneous_bindings`", "from 1 to 8");
    refused(home_agent("simultaneous_bindings = 9"), "`simultaneous_bindings`", "from 1 to 8");
}

// --- several bindings (RFC 5944, section 3.8.2.2) ------------------------------------------------------------------------

#[test]
fn a_mobile_node_has_at_most_eight_bindings() {
    let mut agent = home_agent("").unwrap();
    start(&mut agent);
    let ask = |agent: &mut HomeAgent, number: u8, at: u64| {
        let stamp = WALL.plus(Instant::from_millis(at).since(Instant::ZERO)).to_ntp();
        let asked = asked_with(stamp, |asked| {
            asked.flags = RequestFlags::SIMULTANEOUS;
            asked.care_of = Ipv4Addr::new(10, 3, number, 1);
        });
        answer(agent, at, &asked).0.unwrap().code
    };
    for number in 0..8 {
        assert_eq!(ask(&mut agent, number, 1000 * u64::from(number + 1)), Code::Accepted);
    }
    assert_eq!(ask(&mut agent, 9, 10_000), Code::TooManyBindings);
    // A renewal needs no place.
    assert_eq!(ask(&mut agent, 3, 12_000), Code::Accepted);
}

// --- reverse tunnels (RFC 3024) ------------------------------------------------------------------------------------------

/// An attacker registers a visitor's home address with a home agent of the attacker, also with flag T. The packets of the
/// visitor must stay in the tunnel to the visitor's home agent.
#[test]
fn a_reverse_tunnel_takes_no_packets_of_another_link_address() {
    let now = Instant::from_millis(1000);
    let mut agent = foreign_agent("reverse_tunnel = 'offered'").unwrap();
    start(&mut agent);
    let register = |agent: &mut ForeignAgent, from: Mac, home_agent: Ipv4Addr, ms: u64| {
        let mut asked = request(Instant::from_millis(ms), HOME);
        (asked.flags, asked.home_agent) = (RequestFlags::REVERSE, home_agent);
        heard(agent, now, 1, from, packet(HOME, VISITED, &asked.emit()));
        heard(agent, now, UP, ATTACKER, reply_to(&asked, home_agent))
    };
    let tunnels = |effects: &[Effect]| -> Vec<(Option<Mac>, Class, Ipv4Addr)> {
        let policies = effects.iter().filter_map(|effect| match effect {
            Effect::Do(Act::IngressPolicy(port, Some(policy))) => Some((port.from, policy.class)),
            _ => None,
        });
        let exit = |class: Class| {
            effects.iter().find_map(|effect| match effect {
                Effect::Do(Act::Route(
                    key,
                    Some(node::Route { action: node::Action::Tunnel(encap), .. }),
                )) if key.class == Some(class) && key.src == Prefix::host(HOME) => Some(encap.dst),
                _ => None,
            })
        };
        policies.filter_map(|(from, class)| Some((from, class, exit(class)?))).collect()
    };
    let [(visitor, class, exit)] = tunnels(&register(&mut agent, MOBILE, AGENT, 1000))[..] else { panic!() };
    assert_eq!((visitor, exit), (Some(MOBILE), AGENT));
    let other = Ipv4Addr::new(10, 8, 0, 1);
    let [(attacker, second, exit)] = tunnels(&register(&mut agent, ATTACKER, other, 2000))[..] else {
        panic!()
    };
    assert_eq!((attacker, exit), (Some(ATTACKER), other));
    assert_ne!(class, second);
    // One link address cannot have two reverse tunnels for one home address.
    let third = register(&mut agent, ATTACKER, Ipv4Addr::new(10, 8, 0, 2), 3000);
    assert!(tunnels(&third).is_empty());
}

// --- a home agent and a foreign agent on one host --------------------------------------------------------------------------

/// A router with a home network, a visited network and an uplink, and the two agents as its roles.
pub(super) struct Router {
    node: node::Node,
    out: Outbox,
    now: Instant,
}

pub(super) const HOME_LINK: Iface = Iface(1);
pub(super) const VISITED_LINK: Iface = Iface(2);
pub(super) const UPLINK: Iface = Iface(3);
/// The link address of each interface of the router.
const ROUTER: Mac = Mac([2, 0, 0, 0, 1, 1]);
const CORRESPONDENT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 9);
/// Another mobile node, and its link address.
const SECOND: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 8);
const SECOND_MAC: Mac = Mac([2, 0, 0, 0, 0, 8]);

impl Router {
    /// Returns a router whose foreign agent has this address. The foreign agent is the first role, or the last one.
    fn new(foreign: Ipv4Addr, foreign_first: bool) -> Self {
        Self::visited_by(foreign, foreign_first, None)
    }

    /// Returns such a router, whose foreign agent has an association with this visitor.
    fn visited_by(foreign: Ipv4Addr, foreign_first: bool, visitor: Option<Ipv4Addr>) -> Self {
        let names = ["home", "visited", "up"].map(str::to_owned);
        let nodes = [HOME, SECOND]
            .map(|node| format!("{{ address = \"{node}\", spi = 256, key = \"{KEY}\" }}"))
            .join(", ");
        let changes = format!("reverse_tunnel = 'offered'\nmobile_nodes = [{nodes}]");
        let mut config: HomeAgentConfig = table(HOME_AGENT, &changes).try_into().unwrap();
        config.foreign = vec![foreign];
        let home_agent = HomeAgent::new(config, Interfaces(&names), Rng::new(1)).unwrap();
        let visitors = visitor.map_or_else(String::new, |visitor| {
            format!("\nmobile_nodes = [{{ address = \"{visitor}\", spi = 256, key = \"{KEY}\" }}]")
        });
        let changes = format!("address = \"{foreign}/32\"\nreverse_tunnel = 'offered'{visitors}");
        let mut config: ForeignAgentConfig = table(FOREIGN_AGENT, &changes).try_into().unwrap();
        (config.own, config.beside) = (vec![AGENT, foreign], vec![AGENT]);
        let foreign_agent = ForeignAgent::new(config, Interfaces(&names), Rng::new(2)).unwrap();
        let mut roles: Vec<Box<dyn Role>> = vec![Box::new(home_agent), Box::new(foreign_agent)];
        if foreign_first {
            roles.reverse();
        }
        Self::with(roles, vec![AGENT, foreign], &[(HOME_LINK, "10.1.0.2/16")])
    }

    /// Returns a router with these roles, and these addresses without and with an interface.
    pub(super) fn with(roles: Vec<Box<dyn Role>>, own: Vec<Ipv4Addr>, addresses: &[(Iface, &str)]) -> Self {
        let mut node = node::Node::new(roles, own);
        for (iface, address) in addresses {
            node.add_address(Instant::ZERO, *iface, address.parse().unwrap());
        }
        let mut router = Self { node, out: Outbox::default(), now: Instant::ZERO };
        router.node.handle(router.now, Input::Start(&Boot::new(WALL)), &mut router.out);
        for iface in [HOME_LINK, VISITED_LINK, UPLINK] {
            let up = Link::Up { cell: None, mac: ROUTER, mtu: 1500, name: "any" };
            router.node.handle(router.now, Input::Link(iface, up), &mut router.out);
        }
        let hop = node::Action::Forward(node::Hop::mac(UPLINK, ATTACKER));
        let key = RouteKey { class: None, src: Prefix::ANY, dst: Prefix::ANY };
        router.node.set_route(router.now, key, node::Route::new(hop, node::Lifetime::Permanent));
        router.acts();
        router
    }

    /// Takes the acts, and reports each record as durable. Returns the frames that were sent, and the drop reasons.
    fn acts(&mut self) -> (Vec<(Iface, Packet)>, Vec<&'static str>) {
        let (mut sent, mut drops) = (Vec::new(), Vec::new());
        while let Some((_, act)) = self.out.next_act() {
            match act {
                Act::Transmit(iface, packet) => sent.push((iface, packet)),
                Act::Drop(_, _, reason) => drops.push(reason.0),
                Act::Store(..) => self.node.resume(self.now, 1, &mut self.out),
                _ => {}
            }
        }
        (sent, drops)
    }

    pub(super) fn receive(
        &mut self,
        ms: u64,
        iface: Iface,
        from: Mac,
        bytes: Vec<u8>,
    ) -> (Vec<(Iface, Packet)>, Vec<&'static str>) {
        self.now = Instant::from_millis(ms);
        let mut packet = Packet::new(ROUTER, bytes);
        (packet.link.src, packet.id) = (from, PacketId(ms));
        self.node.receive(self.now, iface, packet, &mut self.out);
        self.acts()
    }
}

fn code_of(packet: &Packet) -> Option<Code> {
    match Received::parse(&packet.bytes).ok()?.message {
        Registration::Reply(reply) => Some(reply.code),
        Registration::Request(_) => None,
    }
}

/// A mobile node visits another network of the router that is its home agent. The tunnel begins and ends at this router.
/// The foreign agent may have the address of the home agent.
#[test]
fn two_agents_on_one_host_register_and_forward_as_on_two() {
    for (foreign, first) in [(VISITED, true), (VISITED, false), (AGENT, true), (AGENT, false)] {
        let mut router = Router::new(foreign, first);
        let asked = |ms: u64, change: &dyn Fn(&mut Request)| {
            let mut asked = request(Instant::from_millis(ms), HOME);
            asked.extensions.clear();
            asked.care_of = foreign;
            change(&mut asked);
            asked.sign(Between::MobileHome, &association());
            packet(HOME, foreign, &asked.emit())
        };
        let moves = asked(1000, &|asked| asked.flags = RequestFlags::REVERSE);
        let (sent, _) = router.receive(1000, VISITED_LINK, MOBILE, moves);
        let reply = sent.iter().find(|(iface, _)| *iface == VISITED_LINK).unwrap();
        assert_eq!(code_of(&reply.1), Some(Code::Accepted), "{foreign}, {first}");
        assert_eq!(reply.1.link.dst, MOBILE);
        // A packet for the mobile node reaches it on the visited link, as it was.
        let data = |src, dst| {
            let [src, dst] = sockets(src, dst);
            wire::udp::packet(src, dst, b"data")
        };
        let (sent, drops) = router.receive(2000, UPLINK, ATTACKER, data(CORRESPONDENT, HOME));
        let [(iface, arrived)] = sent.as_slice() else { panic!("{foreign}, {first}: {sent:?} {drops:?}") };
        assert_eq!((*iface, arrived.link.dst), (VISITED_LINK, MOBILE));
        assert_eq!(ipv4::addresses(&arrived.bytes), Some((CORRESPONDENT, HOME)));
        // A packet of the mobile node goes through the reverse tunnel, and leaves by the uplink.
        let (sent, drops) = router.receive(3000, VISITED_LINK, MOBILE, data(HOME, CORRESPONDENT));
        let [(iface, left)] = sent.as_slice() else { panic!("{foreign}, {first}: {sent:?} {drops:?}") };
        assert_eq!((*iface, ipv4::addresses(&left.bytes)), (UPLINK, Some((HOME, CORRESPONDENT))));
        let status = router.node.status();
        let reversed = status.get("home_agent").and_then(|status| status.get("reversed")?.as_int());
        // With one address, no tunnel is needed from the foreign agent to the home agent.
        assert_eq!(reversed, Some((foreign != AGENT).into()));
        // The same with the encapsulating delivery style.
        let mut encapsulating = request(Instant::from_millis(3100), HOME);
        encapsulating.extensions.clear();
        (encapsulating.care_of, encapsulating.flags) = (foreign, RequestFlags::REVERSE);
        encapsulating.sign(Between::MobileHome, &association());
        encapsulating.extensions.push(Extension::encapsulating_delivery());
        let bytes = packet(HOME, foreign, &encapsulating.emit());
        let (sent, _) = router.receive(3100, VISITED_LINK, MOBILE, bytes);
        assert!(sent.iter().any(|(_, packet)| code_of(packet) == Some(Code::Accepted)));
        let outer = wire::ipip::encapsulate(&data(HOME, CORRESPONDENT), HOME, foreign, 1).unwrap();
        let (sent, drops) = router.receive(3200, VISITED_LINK, MOBILE, outer);
        let [(iface, left)] = sent.as_slice() else { panic!("{foreign}, {first}: {sent:?} {drops:?}") };
        assert_eq!((*iface, ipv4::addresses(&left.bytes)), (UPLINK, Some((HOME, CORRESPONDENT))));
        // The mobile node comes home, and deregisters with its home agent there.
        let mut home = request(Instant::from_millis(4000), HOME);
        home.extensions.clear();
        (home.lifetime, home.care_of) = (0, HOME);
        home.sign(Between::MobileHome, &association());
        let (sent, drops) = router.receive(4000, HOME_LINK, MOBILE, packet(HOME, AGENT, &home.emit()));
        let reply = sent.iter().find_map(|(iface, packet)| Some((*iface, code_of(packet)?)));
        assert_eq!(reply, Some((HOME_LINK, Code::Accepted)), "{foreign}, {first}: {drops:?}");
    }
}

/// Two routers are the home agent and the foreign agent of each other's mobile nodes, with one address each. A packet of
/// our mobile node for our visitor comes in a tunnel from the other router. In our mobile node's reverse tunnel, it must go
/// to the visitor's home network, because the visitor may have left us without a notice. If the visitor is here, the other
/// router returns the packet in the visitor's tunnel. Then it must reach the visitor, and not the other router again.
#[test]
fn a_packet_for_a_visitor_goes_through_its_home_network_once() {
    let (other, visitor) = (Ipv4Addr::new(10, 9, 0, 1), Ipv4Addr::new(10, 5, 0, 7));
    for (first, has_association) in [(true, false), (false, false), (true, true), (false, true)] {
        let mut router = Router::visited_by(AGENT, first, has_association.then_some(visitor));
        let mut away = request(Instant::from_millis(1000), HOME);
        away.extensions.clear();
        (away.care_of, away.flags) = (other, RequestFlags::REVERSE);
        away.sign(Between::MobileHome, &association());
        let (sent, drops) = router.receive(1000, UPLINK, ATTACKER, packet(other, AGENT, &away.emit()));
        assert!(sent.iter().any(|(_, packet)| code_of(packet) == Some(Code::Accepted)), "{drops:?}");
        // Without a visit, a packet that comes back must not circle. Equal packets are forwarded.
        let [src, dst] = sockets(HOME, visitor);
        let early = wire::udp::packet(src, dst, b"early");
        let mut back = early.clone();
        assert!(ipv4::decrement_ttl(&mut back) && ipv4::decrement_ttl(&mut back));
        let expected = [(&early, 1, [].as_slice()), (&back, 0, &["tunnel_loop"]), (&early, 1, &[])];
        for (inner, number, reasons) in expected {
            let tunnel = wire::ipip::encapsulate(inner, other, AGENT, 1).unwrap();
            let (sent, drops) = router.receive(1100, UPLINK, ATTACKER, tunnel);
            assert!(sent.len() == number && sent.iter().all(|(iface, _)| *iface == UPLINK), "{sent:?}");
            assert_eq!(drops, reasons);
        }
        let mut visit =
            Request { home_agent: other, care_of: AGENT, ..request(Instant::from_millis(2000), visitor) };
        if has_association {
            visit.sign(Between::MobileForeign, &association());
        }
        router.receive(2000, VISITED_LINK, MOBILE, packet(visitor, AGENT, &visit.emit()));
        let reply = visit.reply(Code::Accepted);
        let reply = mobile_ip::message::Reply { lifetime: 300, ..reply };
        let (_, drops) = router.receive(2100, UPLINK, ATTACKER, packet(other, AGENT, &reply.emit()));
        let [src, dst] = sockets(HOME, visitor);
        let mut inner = wire::udp::packet(src, dst, b"data");
        let mut at = 2200;
        let mut goes_to = |inner: &[u8]| {
            at += 100;
            let tunnel = wire::ipip::encapsulate(inner, other, AGENT, 1).unwrap();
            let (sent, more) = router.receive(at, UPLINK, ATTACKER, tunnel);
            let [(iface, left)] = sent.as_slice() else { panic!("{first}: {sent:?} {drops:?} {more:?}") };
            assert_eq!(ipv4::addresses(&left.bytes), Some((HOME, visitor)));
            (*iface, left.bytes.clone())
        };
        for _ in 0..3 {
            let (iface, mut left) = goes_to(&inner);
            assert_eq!(iface, UPLINK, "out of the reverse tunnel, {first} {has_association}");
            assert!(ipv4::decrement_ttl(&mut left), "at the visitor's home agent");
            assert_eq!(
                goes_to(&left).0,
                VISITED_LINK,
                "out of the visitor's tunnel, {first} {has_association}"
            );
        }
        // A packet with a smaller initial time to live is taken for one of the visitor's tunnel.
        inner[8] -= 10;
        inner[10..12].fill(0);
        let sum = wire::checksum(&inner[..20]).to_be_bytes();
        inner[10..12].copy_from_slice(&sum);
        assert_eq!(goes_to(&inner).0, VISITED_LINK);
    }
}

/// A packet in a tunnel to the home agent whose source is none of its mobile nodes must be discarded (RFC 3024, section
/// 4.3.2), and must not go to the host. If a foreign agent has the same address, it may have a visitor for the packet.
#[test]
fn a_tunnel_of_another_host_to_the_home_agent_ends_there() {
    for (foreign, first, expected) in [
        (VISITED, false, "no_reverse_tunnel"),
        (VISITED, true, "no_reverse_tunnel"),
        (AGENT, false, "not_a_visitor"),
    ] {
        let mut router = Router::new(foreign, first);
        let inner = packet(Ipv4Addr::new(10, 7, 0, 1), CORRESPONDENT, b"of another host");
        let outer = wire::ipip::encapsulate(&inner, Ipv4Addr::new(10, 7, 0, 2), AGENT, 1).unwrap();
        let (sent, drops) = router.receive(1000, UPLINK, ATTACKER, outer);
        assert_eq!((sent.len(), drops), (0, vec![expected]), "{foreign}");
    }
}

/// A request with the care-of address of a foreign agent on the same host must come from that agent.
#[test]
fn a_care_of_address_of_the_host_is_accepted_from_its_foreign_agent_only() {
    let mut config: HomeAgentConfig = table(HOME_AGENT, "").try_into().unwrap();
    (config.foreign, config.host) = (vec![VISITED], vec!["10.3.0.1/24".parse().unwrap()]);
    let names = ["home", "up"].map(str::to_owned);
    let now = Instant::from_millis(1000);
    let mut agent = HomeAgent::new(config, Interfaces(&names), Rng::new(1)).unwrap();
    start(&mut agent);
    let asked = request(now, HOME).emit();
    let from = |agent: &mut HomeAgent, iface, src| {
        code_sent(&heard(agent, now, iface, MOBILE, packet(src, AGENT, &asked)))
    };
    assert_eq!(from(&mut agent, 2, Ipv4Addr::new(10, 4, 0, 1)), Some(Code::HomeBadRequest));
    // From a link, the source address of the foreign agent is forged. The answer would go to this host itself.
    assert_eq!(from(&mut agent, 2, VISITED), None);
    assert_eq!(from(&mut agent, Iface::HOST.0, VISITED), Some(Code::Accepted));
}

/// Two visitors with reverse tunnels. Neither must be able to send in the name of the other, in any delivery style.
/// Packets from a tunnel for the foreign agent's host itself must be dropped.
#[test]
fn a_visitor_sends_in_no_other_visitors_name() {
    for encapsulating in [false, true] {
        let mut router = Router::new(VISITED, true);
        for (ms, home, mac) in [(1000, HOME, MOBILE), (1100, SECOND, SECOND_MAC)] {
            let mut asked = request(Instant::from_millis(ms), home);
            asked.extensions.clear();
            asked.flags = RequestFlags::REVERSE;
            asked.sign(Between::MobileHome, &association());
            if encapsulating {
                asked.extensions.push(Extension::encapsulating_delivery());
            }
            let (sent, _) = router.receive(ms, VISITED_LINK, mac, packet(home, VISITED, &asked.emit()));
            assert!(sent.iter().any(|(_, packet)| code_of(packet) == Some(Code::Accepted)));
        }
        let data = |src| {
            let [src, dst] = sockets(src, CORRESPONDENT);
            wire::udp::packet(src, dst, b"data")
        };
        let tunnel = |outer, inner| wire::ipip::encapsulate(&data(inner), outer, VISITED, 1).unwrap();
        let frame = |src| if encapsulating { tunnel(src, src) } else { data(src) };
        let (sent, drops) = router.receive(2000, VISITED_LINK, SECOND_MAC, frame(SECOND));
        let [(UPLINK, left)] = sent.as_slice() else { panic!("{sent:?} {drops:?}") };
        assert_eq!(ipv4::addresses(&left.bytes), Some((SECOND, CORRESPONDENT)));
        assert_eq!(router.receive(2100, VISITED_LINK, SECOND_MAC, frame(HOME)).1, ["not_of_the_visitor"]);
        if encapsulating {
            let (sent, drops) = router.receive(2200, VISITED_LINK, SECOND_MAC, tunnel(SECOND, HOME));
            assert_eq!((sent.len(), drops), (0, vec!["not_of_the_visitor"]));
        }
        // A packet with the address of no visitor is routed as usual.
        let (sent, _) = router.receive(2300, VISITED_LINK, SECOND_MAC, data(Ipv4Addr::new(10, 3, 0, 8)));
        assert!(matches!(sent.as_slice(), [(UPLINK, packet)] if packet.bytes[8] == 63), "{sent:?}");
        // The packet comes from a tunnel of the home agent, then from a tunnel of another host.
        for entry in [AGENT, CORRESPONDENT] {
            let inner = packet(CORRESPONDENT, VISITED, b"for the host itself");
            let outer = wire::ipip::encapsulate(&inner, entry, VISITED, 1).unwrap();
            let (sent, drops) = router.receive(2400, UPLINK, ATTACKER, outer);
            assert_eq!((sent.len(), drops), (0, vec!["not_a_visitor"]), "{entry}");
        }
    }
}

/// A foreign agent that takes no visitors says nothing about the home agent. So the mobile node stays with its home agent.
#[test]
fn a_busy_foreign_agent_is_no_reason_to_leave_the_home_agent() {
    let agent = Mac([2, 0, 0, 0, 0, 3]);
    let other = Ipv4Addr::new(10, 1, 0, 3);
    let peers = format!("backup_home_agents = [{{ address = \"{other}\", spi = 256, key = \"{KEY}\" }}]");
    for (code, expected) in [(Code::ForeignResources, AGENT), (Code::RegistrationTimeout, other)] {
        let mut node = mobile_node(&peers).unwrap();
        start(&mut node);
        let said = Advertisement { lifetime: 600, ..foreign_advertisement() };
        let mut effects = heard(&mut node, Instant::from_millis(1000), 1, agent, said.emit());
        let mut last = AGENT;
        for _ in 0..5 {
            let sent = effects.iter().find_map(|effect| match effect {
                Effect::Send(_, packet) => match Received::parse(&packet.bytes).ok()?.message {
                    Registration::Request(request) => Some(request),
                    Registration::Reply(_) => None,
                },
                _ => None,
            });
            let Some(asked) = sent else { break };
            last = asked.home_agent;
            let now = node.deadline().unwrap();
            heard(&mut node, now, 1, agent, packet(VISITED, HOME, &asked.reply(code).emit()));
            effects = give(&mut node, now, Input::Timeout);
            if last == other {
                break;
            }
        }
        assert_eq!(last, expected, "{code}");
    }
    refused(
        mobile_node(&peers.replace("10.1.0.3", "10.1.0.2")),
        "`backup_home_agents`",
        "must differ from all other addresses",
    );
}

/// With one address on one interface, the foreign agent advertises for both agents, and the home agent is silent: a mobile
/// node knows agents by their address.
#[test]
fn two_agents_with_one_address_send_one_advertisement() {
    let names = ["visited", "up"].map(str::to_owned);
    let mut config: ForeignAgentConfig = table(FOREIGN_AGENT, "").try_into().unwrap();
    config.is_home = true;
    let mut foreign = ForeignAgent::new(config, Interfaces(&names), Rng::new(1)).unwrap();
    start(&mut foreign);
    let now = foreign.deadline().unwrap();
    let effects = give(&mut foreign, now, Input::Timeout);
    let flags = effects.iter().find_map(|effect| match effect {
        Effect::Send(_, packet) => {
            let (header, payload) = Header::parse(&packet.bytes).unwrap();
            Some(Advertisement::parse(&header, payload).ok()?.flags)
        }
        _ => None,
    });
    let flags = flags.unwrap();
    assert!(flags.has(AgentFlags::HOME) && flags.has(AgentFlags::FOREIGN));
    let mut config: HomeAgentConfig = table(HOME_AGENT, "").try_into().unwrap();
    config.is_foreign = true;
    let names = ["home", "up"].map(str::to_owned);
    let mut home = HomeAgent::new(config, Interfaces(&names), Rng::new(1)).unwrap();
    start(&mut home);
    assert_eq!(home.deadline(), None);
    let solicitation =
        mobile_ip::message::Solicitation { src: HOME, dst: mobile_ip::message::ALL_ROUTERS }.emit();
    let effects = heard(&mut home, now, 1, MOBILE, solicitation);
    assert!(matches!(effects[..], [Effect::Pass(..)]), "{effects:?}");
}
