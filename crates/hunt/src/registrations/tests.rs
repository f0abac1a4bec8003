//! Tests of the rules: which tunnels, replies and relayed requests violate one.

use super::*;
use crate::draft::Protocol;
use crate::draw::{Size, draw};
use crate::options::Options;
use crate::run::plan;
use mobile_ip::message::{Acknowledge, AgentFlags, Algorithm, Association, Between, Extension, datagram};
use wire::{Mac, SocketAddrV4, ipip, udp};

const CARE_OF: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const HOME: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
const FIXED: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const CORE: Iface = Iface(1);

/// The state of a run with a home agent (r0), a foreign agent (r1) and a mobile node (m0), with the time of the next event.
struct Run {
    state: Registrations,
    now: Instant,
}

impl Run {
    fn new() -> Self {
        let mut draft = draw(Protocol::MobileIp, 1, &Size::SIMULATOR);
        draft.options = Options::DEFAULT;
        draft.hosts.iter_mut().for_each(|host| host.home = 0);
        let state = Registrations::new(&plan(&draft).unwrap(), None);
        Self { state, now: Instant::from_millis(1000) }
    }

    fn host(&self, name: &str) -> HostId {
        HostId(self.state.names.iter().position(|other| other == name).unwrap() as u32)
    }

    fn air(&self, name: &str) -> Iface {
        self.state.air[&self.host(name)]
    }

    fn sends(&mut self, host: &str, iface: Iface, packet: &Packet) -> Option<Rule> {
        self.now += Duration::from_millis(1);
        self.state.sent(self.now, self.host(host), iface, packet).map(|(rule, _)| rule)
    }

    /// Lets the mobile node send a request, and the agents relay it and its reply. Returns a violated rule.
    fn registers(&mut self, change: impl Fn(&mut Request)) -> Option<Rule> {
        let request = asks(change);
        let air = self.air("m0");
        let reply = Reply { lifetime: request.lifetime, ..request.reply(Code::Accepted) };
        let steps = [
            ("m0", air, message(HOME, CARE_OF, &request.emit())),
            ("r1", CORE, message(CARE_OF, HOME_AGENT, &request.emit())),
            ("r0", CORE, message(HOME_AGENT, CARE_OF, &reply.emit())),
            ("r1", self.air("r1"), message(CARE_OF, HOME, &reply.emit())),
        ];
        steps.into_iter().find_map(|(host, iface, packet)| self.sends(host, iface, &packet))
    }

    /// Lets the home agent send data in a tunnel to this address.
    fn tunnels(&mut self, exit: Ipv4Addr) -> Option<Rule> {
        self.tunnels_by(Kind::IpInIp, &data(FIXED, HOME), exit)
    }

    fn tunnels_by(&mut self, kind: Kind, inner: &[u8], exit: Ipv4Addr) -> Option<Rule> {
        let bytes = tunnel::encapsulate(kind, inner, HOME_AGENT, exit, 1).unwrap();
        self.sends("r0", CORE, &Packet::new(Mac::ZERO, bytes))
    }
}

fn asks(change: impl Fn(&mut Request)) -> Request {
    let mut request = Request {
        flags: RequestFlags::default(),
        lifetime: 300,
        home: HOME,
        home_agent: HOME_AGENT,
        care_of: CARE_OF,
        identification: 1,
        extensions: Vec::new(),
    };
    change(&mut request);
    request
}

fn message(src: Ipv4Addr, dst: Ipv4Addr, payload: &[u8]) -> Packet {
    let [src, dst] = [src, dst].map(|address| SocketAddrV4::new(address, PORT));
    Packet::new(Mac::ZERO, datagram(src, dst, 255, payload))
}

fn data(src: Ipv4Addr, dst: Ipv4Addr) -> Vec<u8> {
    let [src, dst] = [src, dst].map(|address| SocketAddrV4::new(address, 9000));
    udp::packet(src, dst, b"data")
}

/// A tunnel to a care-of address is permitted from its acceptance until shortly after another one replaces it.
#[test]
fn a_tunnel_needs_a_binding() {
    let mut run = Run::new();
    let other = Ipv4Addr::new(10, 3, 0, 1);
    assert_eq!(run.registers(|_| {}), None);
    assert_eq!((run.tunnels(CARE_OF), run.tunnels(other)), (None, Some(Rule::Bound)));
    assert_eq!(run.registers(|asked| (asked.care_of, asked.identification) = (other, 2)), None);
    assert_eq!((run.tunnels(CARE_OF), run.tunnels(other)), (None, None), "it may have waited for ARP");
    run.now += GRACE;
    assert_eq!((run.tunnels(CARE_OF), run.tunnels(other)), (Some(Rule::Bound), None));
    // With flag S, the earlier binding stays.
    let more = |asked: &mut Request| (asked.flags, asked.identification) = (RequestFlags::SIMULTANEOUS, 3);
    assert_eq!(run.registers(more), None);
    assert_eq!((run.tunnels(CARE_OF), run.tunnels(other)), (None, None));
    run.now += Duration::from_secs(303);
    assert_eq!(run.tunnels(CARE_OF), Some(Rule::Bound), "its lifetime has ended");
}

/// A home agent may have stored a binding, and crashed before it could answer.
#[test]
fn after_a_crash_each_requested_address_may_be_bound() {
    let mut run = Run::new();
    let other = Ipv4Addr::new(10, 3, 0, 1);
    run.registers(|_| {});
    let asked = asks(|asked| (asked.care_of, asked.identification) = (other, 2));
    let air = run.air("m0");
    run.sends("m0", air, &message(HOME, other, &asked.emit()));
    assert_eq!(run.tunnels(other), Some(Rule::Bound));
    run.state.crashed(run.host("r0"));
    assert_eq!(run.tunnels(other), None);
}

#[test]
fn only_the_last_request_is_answered_again() {
    let mut run = Run::new();
    assert_eq!(run.registers(|_| {}), None);
    assert_eq!(run.registers(|_| {}), None, "the same reply again");
    assert_eq!(run.registers(|asked| asked.identification = 2), None);
    assert_eq!(run.registers(|_| {}), Some(Rule::Once));
}

/// The packets of a visitor with flag T leave the foreign agent in a tunnel.
#[test]
fn a_visitor_with_a_reverse_tunnel_is_not_routed_as_usual() {
    let mut run = Run::new();
    let packet = Packet { id: PacketId(7), ..Packet::new(Mac::ZERO, data(HOME, FIXED)) };
    let (agent, air) = (run.host("r1"), run.air("r1"));
    let passes = |run: &mut Run| {
        run.state.received(run.now, agent, air, &packet);
        run.sends("r1", CORE, &packet)
    };
    assert_eq!(run.registers(|_| {}), None);
    assert_eq!(passes(&mut run), None, "without flag T");
    let reverse = |asked: &mut Request| (asked.flags, asked.identification) = (RequestFlags::REVERSE, 2);
    assert_eq!(run.registers(reverse), None);
    assert_eq!(passes(&mut run), Some(Rule::Reverse));
    let bytes = ipip::encapsulate(&packet.bytes, CARE_OF, HOME_AGENT, 1).unwrap();
    assert_eq!(run.sends("r1", CORE, &Packet { bytes, ..packet.clone() }), None);
}

#[test]
fn a_relayed_request_has_one_of_the_last_challenges() {
    let mut run = Run::new();
    let advertise = |run: &mut Run, challenge: &[u8]| {
        let advertisement = Advertisement {
            src: CARE_OF,
            dst: mobile_ip::message::ALL_SYSTEMS,
            registered_only: false,
            lifetime: 3,
            routers: vec![(CARE_OF, 0)],
            sequence: 0,
            registration_lifetime: 300,
            flags: AgentFlags::FOREIGN,
            care_of: vec![CARE_OF],
            prefix_lengths: None,
            challenge: Some(challenge.to_vec()),
        };
        let air = run.air("r1");
        run.sends("r1", air, &Packet::new(Mac::ZERO, advertisement.emit()));
    };
    let with = |challenge: &'static [u8], identification| {
        move |asked: &mut Request| {
            asked.identification = identification;
            asked.extensions = vec![Extension::challenge(challenge.to_vec())];
            let key = crate::mobile_ip::KEY.parse().unwrap();
            let association = Association { spi: 256, algorithm: Algorithm::HmacSha256, key };
            asked.sign(Between::MobileForeign, &association);
        }
    };
    advertise(&mut run, b"one!");
    assert_eq!(run.registers(with(b"one!", 1)), None);
    assert_eq!(run.registers(|asked| asked.identification = 2), Some(Rule::Challenge), "it has none");
    advertise(&mut run, b"two!");
    advertise(&mut run, b"three");
    assert_eq!(run.registers(with(b"one!", 3)), None, "it may have waited for ARP");
    run.now += GRACE;
    assert_eq!(run.registers(with(b"one!", 4)), Some(Rule::Challenge));
    assert_eq!(run.registers(with(b"two!", 5)), None);
}

/// Both directions have the kind that the mobile node has asked for. Minimal encapsulation carries no fragments.
#[test]
fn a_tunnel_is_of_the_kind_that_was_requested() {
    let flags = [RequestFlags::default(), RequestFlags::MINIMAL, RequestFlags::GRE];
    let kinds = [Kind::IpInIp, Kind::Minimal, Kind::Gre];
    let fragment = Header { dont_fragment: false, more_fragments: true, ..Header::new(UDP, FIXED, HOME) };
    let fragment = fragment.emit(&[0; 8]);
    for (asked, flags) in flags.into_iter().enumerate() {
        let mut run = Run::new();
        let with = |request: &mut Request| request.flags = RequestFlags(flags.0 | RequestFlags::REVERSE.0);
        assert_eq!(run.registers(with), None);
        for (used, kind) in kinds.into_iter().enumerate() {
            let expected = (used != asked).then_some(Rule::Kind);
            assert_eq!(run.tunnels_by(kind, &data(FIXED, HOME), CARE_OF), expected, "{asked} {used}");
            let bytes = tunnel::encapsulate(kind, &data(HOME, FIXED), CARE_OF, HOME_AGENT, 1).unwrap();
            assert_eq!(run.sends("r1", CORE, &Packet::new(Mac::ZERO, bytes)), expected, "{asked} {used}");
            assert_eq!(run.sends("r0", CORE, &Packet::new(Mac::ZERO, data(HOME, FIXED))), None);
        }
        let by_ip = run.tunnels_by(Kind::IpInIp, &fragment, CARE_OF);
        assert_eq!(by_ip, (kinds[asked] == Kind::Gre).then_some(Rule::Kind));
    }
}

/// With associations between the agents, a foreign agent signs what it relays to the home agent, except deregistrations and
/// requests with a co-located care-of address (RFC 5944, section 3.5.4). The home agent signs its replies to it.
#[test]
fn agents_with_an_association_sign_for_each_other() {
    let mut run = Run::new();
    assert_eq!(run.registers(|_| {}), None, "there is no association");
    run.state.signing = BTreeSet::from([run.host("r1")]);
    let key = crate::mobile_ip::KEY.parse().unwrap();
    let association = Association { spi: 256, algorithm: Algorithm::HmacSha256, key };
    assert_eq!(run.registers(|asked| asked.identification = 2), Some(Rule::Signed));
    assert_eq!(run.registers(|asked| (asked.identification, asked.lifetime) = (3, 0)), None);
    let signed = |asked: &mut Request| {
        asked.identification = 4;
        asked.sign(Between::ForeignHome, &association);
    };
    let reply = asks(signed).reply(Code::Accepted);
    assert_eq!(run.registers(signed), Some(Rule::Signed), "the reply is not signed");
    let mut reply = Reply { lifetime: 300, ..reply };
    reply.sign(Between::ForeignHome, &association);
    assert_eq!(run.sends("r0", CORE, &message(HOME_AGENT, CARE_OF, &reply.emit())), None);
}

/// A router is the home agent of a mobile node and the previous foreign agent of another one, at one address. A packet that it
/// forwards has the addresses of a reverse tunnel, and the kind of the tunnel to the new care-of address.
#[test]
fn a_previous_agent_forwards_by_the_kind_of_the_new_registration() {
    let mut run = Run::new();
    let (other, visitor) = (Ipv4Addr::new(10, 3, 0, 1), Ipv4Addr::new(10, 3, 0, 8));
    let new = |agent| Home { agent, bound: BTreeMap::new(), left: BTreeMap::new() };
    run.state.homes = [(HOME, new(HOME_AGENT)), (visitor, new(other))].into();
    let asked = |flags: RequestFlags| BTreeSet::from([flags.0]);
    run.state.kinds =
        [((visitor, CARE_OF), asked(RequestFlags::MINIMAL)), ((HOME, other), asked(RequestFlags::GRE))]
            .into();
    let forwards = |run: &mut Run, kind| {
        let bytes = tunnel::encapsulate(kind, &data(visitor, HOME), CARE_OF, other, 1).unwrap();
        run.sends("r1", CORE, &Packet::new(Mac::ZERO, bytes))
    };
    assert_eq!(forwards(&mut run, Kind::Gre), Some(Rule::Kind), "it has accepted no Binding Update");
    let accepted =
        Acknowledge { status: Status::ACCEPTED, home: HOME, identification: None, authentication: None };
    let accepted = Binding::Acknowledge(accepted).datagram(CARE_OF, HOME, &Numbers::default());
    assert_eq!(run.sends("r1", CORE, &Packet::new(Mac::ZERO, accepted)), None);
    assert_eq!((forwards(&mut run, Kind::Gre), forwards(&mut run, Kind::IpInIp)), (None, Some(Rule::Kind)));
    run.state.crashed(run.host("r1"));
    assert_eq!(forwards(&mut run, Kind::Gre), Some(Rule::Kind));
}
