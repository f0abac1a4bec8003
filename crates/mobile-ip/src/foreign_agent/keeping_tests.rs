use super::*;
use crate::message::{
    Acknowledge, Algorithm, Asks, Association, Between, Binding, BufferControl, Numbers, PORT, PreviousAgent,
    Request, RequestFlags, Update, datagram,
};
use crate::pending::{Pending, Standing};
use node::config::Interfaces;
use node::{Effect, Input, Rng, Role};
use wire::{SocketAddrV4, ipip, udp};

const HOST: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
const VISIT: Visit = (HOST, HOME_AGENT);
const OWN: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 1);
const NEW: Ipv4Addr = Ipv4Addr::new(10, 4, 0, 1);
const SENDER: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);
const MAC: Mac = Mac([2, 0, 0, 0, 0, 7]);

/// Returns the association of the visitor with the agent.
fn association() -> Association {
    Association { spi: 300, algorithm: Algorithm::HmacSha256, key: auth::Key::new([0xab; 16]) }
}

/// Returns a request of the visitor, without an authentication.
fn request(identification: u64) -> Request {
    Request {
        flags: RequestFlags(0),
        lifetime: 300,
        home: HOST,
        home_agent: HOME_AGENT,
        care_of: OWN,
        identification,
        extensions: Vec::new(),
    }
}

/// A foreign agent with one visitor.
struct Bench {
    agent: ForeignAgent,
    out: Outbox,
    now: Instant,
    packets: u64,
    /// The Identification of the last Binding Update.
    updates: u64,
    /// Whether the last route of the visitor's packets lets the table forward them.
    by_table: bool,
}

impl Bench {
    fn new(buffer: &str) -> Self {
        Self::with(buffer, "")
    }

    /// `more`: further keys of the agent.
    fn with(buffer: &str, more: &str) -> Self {
        let text = format!(
            "address = \"10.3.0.1/24\"\ninterface = \"visited\"\nsmooth_handoff = true\nbuffer = {{ {buffer} }}\n{more}\n\
             mobile_nodes = [{{ address = \"10.1.0.7\", spi = 300, key = \"{}\" }}]",
            "ab".repeat(16)
        );
        let names = ["visited".to_owned(), "up".to_owned()];
        let agent = ForeignAgent::new(toml::from_str(&text).unwrap(), Interfaces(&names), Rng::new(1));
        let (out, now) = (Outbox::default(), Instant::from_millis(1000));
        let mut bench = Self { agent: agent.unwrap(), out, now, packets: 0, updates: 1, by_table: true };
        bench.register();
        bench
    }

    /// Registers the visitor, or renews its registration. Returns the effects.
    fn register(&mut self) -> Vec<String> {
        self.admit();
        self.effects()
    }

    fn admit(&mut self) {
        let (from, standing, request) = (SocketAddrV4::new(HOST, 434), Standing::Known, request(1));
        let (since, is_new) = (self.now, false);
        let pending = Pending { mac: MAC, from, since, number: 1, standing, ttl: 255, is_new, request };
        self.agent.admit(self.now, &pending, 300, &mut self.out).unwrap();
    }

    /// Returns the effects as text: `link N`, `tunnel to EXIT N`, and `REASON N`, where N is the number of a packet; and
    /// the routes.
    fn effects(&mut self) -> Vec<String> {
        let by_table = &mut self.by_table;
        let read = |effect| match effect {
            Effect::Send(Some(_), packet) => Some(format!("link {}", packet.id.0)),
            Effect::Send(None, packet) if packet.id == PacketId::NEW => {
                let is_error = Header::parse(&packet.bytes).unwrap().0.protocol == ipv4::ICMP;
                is_error.then(|| "error".to_owned())
            }
            Effect::Send(None, packet) => {
                let (outer, inner) = ipip::decapsulate(&packet.bytes).unwrap();
                let ttl = Header::parse(inner).unwrap().0.ttl;
                Some(format!("tunnel to {} {} ttl {ttl}", outer.dst, packet.id.0))
            }
            Effect::Discard(_, _, reason::CONSUMED) => None,
            Effect::Discard(_, packet, reason) => Some(format!("{reason} {}", packet.id.0)),
            Effect::Do(node::Act::Route(_, Some(Route { action: Action::Punt, .. }))) => {
                *by_table = false;
                Some("punt".to_owned())
            }
            Effect::Do(node::Act::Route(key, Some(Route { action: Action::Forward(_), .. }))) => {
                *by_table |= key.class.is_some();
                None
            }
            Effect::Do(node::Act::Route(_, Some(Route { action: Action::Tunnel(_), .. }))) => {
                Some("route onward".to_owned())
            }
            _ => None,
        };
        self.out.drain_effects().filter_map(read).collect()
    }

    /// A packet for the visitor arrives. It is an UDP datagram with this payload, time to live and identification.
    fn data(&mut self, size: usize, ttl: u8, id: Option<u16>) -> Vec<String> {
        self.data_from(HOME_AGENT, size, ttl, id)
    }

    /// As [`Self::data`], out of a tunnel from `entry`.
    fn data_from(&mut self, entry: Ipv4Addr, size: usize, ttl: u8, id: Option<u16>) -> Vec<String> {
        self.packets += 1;
        let [src, dst] = [SENDER, HOST].map(|address| SocketAddrV4::new(address, 9000));
        let whole = udp::packet(src, dst, &vec![0; size]);
        let (header, payload) = Header::parse(&whole).unwrap();
        let header = Header { ttl, dont_fragment: id.is_none(), id: id.unwrap_or(0), ..header };
        let bytes = header.emit(payload);
        let packet = Packet { id: PacketId(self.packets), ..Packet::new(Mac::ZERO, bytes) };
        let rx =
            Rx { tunnel: Some((entry, OWN)), ..Rx::parse(Iface(2), PuntReason::Action, &packet).unwrap() };
        self.agent.handle(self.now, Input::Packet(rx, packet), &mut self.out);
        self.effects()
    }

    /// A Binding Update arrives: the visitor is at `care_of` from now on.
    fn update(&mut self, care_of: Ipv4Addr, is_forged: bool) -> Vec<String> {
        self.updates += 1;
        let mut update = Update {
            acknowledge: true,
            minimal: false,
            gre: false,
            lifetime: 30,
            home: HOST,
            care_of,
            identification: Some(self.updates),
            authentication: None,
        };
        let ours = association();
        let key = if is_forged { auth::Key::new([0; 16]) } else { ours.key.clone() };
        let numbers = Numbers::default();
        update.sign(numbers.smooth_authentication, &Association { key, ..ours }, &numbers);
        let [from, to] = [NEW, OWN].map(|address| SocketAddrV4::new(address, PORT));
        let bytes = datagram(from, to, 64, &Binding::Update(update).emit(&numbers));
        let packet = Packet { id: PacketId(99), ..Packet::new(Mac::ZERO, bytes) };
        let rx = Rx::parse(Iface(2), PuntReason::Listen, &packet).unwrap();
        self.agent.handle(self.now, Input::Packet(rx, packet), &mut self.out);
        self.effects()
    }

    /// A Buffer Control Request with this Identification arrives.
    fn control(&mut self, asks: Asks, identification: u64, named: &[(Ipv4Addr, u16)]) -> Vec<String> {
        let named = named.to_vec();
        let mut message = BufferControl { asks, home: HOST, identification, named, authentication: None };
        let numbers = Numbers::default();
        message.sign(&association(), &numbers);
        let [from, to] = [HOST, OWN].map(|address| SocketAddrV4::new(address, PORT));
        let bytes = datagram(from, to, 64, &message.emit(&numbers));
        let packet = Packet { id: PacketId(98), ..Packet::new(Mac::ZERO, bytes) };
        let rx = Rx::parse(Iface(1), PuntReason::Listen, &packet).unwrap();
        self.agent.handle(self.now, Input::Packet(rx, packet), &mut self.out);
        self.effects()
    }

    /// A request of the visitor arrives, and names a previous agent.
    fn ask(&mut self, identification: u64, previous: Ipv4Addr) -> Vec<String> {
        let (ours, numbers, mut asked) = (association(), Numbers::default(), request(identification));
        asked.sign(Between::MobileHome, &ours);
        let said = PreviousAgent::new(&asked, 30, previous, &ours, &numbers);
        asked.extensions.push(said.extension(&numbers));
        asked.sign(Between::MobileForeign, &ours);
        let [from, to] = [HOST, OWN].map(|address| SocketAddrV4::new(address, PORT));
        let mut packet = Packet::new(Mac::ZERO, datagram(from, to, 255, &asked.emit()));
        packet.link.src = MAC;
        let rx = Rx::parse(Iface(1), PuntReason::Listen, &packet).unwrap();
        self.agent.handle(self.now, Input::Packet(rx, packet), &mut self.out);
        self.effects()
    }

    /// A data path beside the node has forwarded a packet for the visitor at `at`, and kept it.
    fn kept_aside(&mut self, at: Instant, ttl: u8) -> Vec<String> {
        self.packets += 1;
        let [src, dst] = [SENDER, HOST].map(|address| SocketAddrV4::new(address, 9000));
        let whole = udp::packet(src, dst, &[0; 100]);
        let (header, payload) = Header::parse(&whole).unwrap();
        let bytes = Header { ttl, ..header }.emit(payload);
        let packet = Packet { id: PacketId(self.packets), ..Packet::new(Mac::ZERO, bytes) };
        let rx = Rx {
            tunnel: Some((HOME_AGENT, OWN)),
            ..Rx::parse(Iface(2), PuntReason::Kept(at), &packet).unwrap()
        };
        self.agent.handle(self.now, Input::Packet(rx, packet), &mut self.out);
        self.effects()
    }

    /// Returns what a data path may do with the packets of the last route that was set for the visitor.
    fn aside(&mut self) -> Option<Aside> {
        let route = |effect| match effect {
            Effect::Do(node::Act::Route(key, Some(route))) if key.dst == wire::Prefix::host(HOST) => {
                Some(route)
            }
            _ => None,
        };
        self.out.drain_effects().filter_map(route).last().and_then(|route| route.aside)
    }

    fn flush(&mut self) -> Vec<String> {
        self.update(NEW, false)
    }

    /// Waits until the deadline of the role; returns the milliseconds until then, and the effects.
    fn wait(&mut self) -> (u64, Vec<String>) {
        let at = self.agent.keeper.as_ref().unwrap().next().unwrap();
        let waited = at.since(self.now).as_millis() as u64;
        self.now = at;
        self.agent.keeper_timeout(at, &mut self.out);
        (waited, self.effects())
    }

    fn held(&self) -> Vec<u64> {
        let mut held = Vec::new();
        self.agent.holds(&mut |id| held.push(id.0));
        held
    }
}

#[test]
fn the_last_packet_is_sent_once_and_before_later_ones() {
    let mut bench = Bench::new("");
    assert_eq!(bench.data(100, 64, None), ["link 1"]);
    assert_eq!(bench.data(100, 64, None), ["kept_replaced 1", "link 2"]);
    assert_eq!(bench.held(), [2]);
    // The time to live was decremented for the visitor's link, and now for the tunnel.
    assert_eq!(bench.flush(), ["route onward", &format!("tunnel to {NEW} 2 ttl 62")]);
    assert_eq!(bench.held(), [0_u64; 0]);
    assert_eq!(bench.flush(), ["route onward"], "a packet leaves once");
}

#[test]
fn no_packet_leaves_without_an_authenticated_care_of_address() {
    let mut bench = Bench::new("packets = 2");
    bench.data(100, 64, None);
    assert_eq!(bench.update(NEW, true), ["bad_authentication 99"]);
    assert_eq!(bench.held(), [1], "the visit continues");
    assert_eq!(bench.data(100, 64, None), ["link 2"]);
    assert_eq!(bench.update(HOST, false), ["kept_visit_ended 1", "kept_visit_ended 2"], "it only deletes");
    assert_eq!(bench.held(), [0_u64; 0]);
}

#[test]
fn without_a_packet_or_a_table_only_the_route_is_set() {
    assert_eq!(Bench::new("").flush(), ["route onward"]);
    let mut bench = Bench::new("");
    bench.agent.keeper = None;
    assert_eq!(bench.flush(), ["route onward"]);
}

#[test]
fn a_packet_that_cannot_be_forwarded_is_not_kept_or_not_sent() {
    let mut bench = Bench::new("packets = 4");
    assert_eq!(bench.data(100, 1, None), ["error", "ttl_expired 1"]);
    assert_eq!(bench.data(100, 2, None), ["link 2"]);
    assert_eq!(bench.data(1480, 64, None), ["link 3"], "the MTU of the link is not known");
    // One error per second to one sender.
    bench.now += Duration::from_secs(1);
    assert_eq!(bench.flush(), ["route onward", "error", "ttl_expired 2", "too_big 3"]);
}

#[test]
fn paced_packets_leave_at_the_rate_and_later_ones_wait_behind() {
    // 972 bytes of data are a datagram of 1000 bytes: 4 ms at 2 Mbit/s.
    let mut bench = Bench::new("packets = 3, drain = \"paced\"");
    for _ in 0..3 {
        bench.data(972, 64, None);
    }
    let to = |number: u64| format!("tunnel to {NEW} {number} ttl 62");
    assert_eq!(bench.flush(), ["route onward", "punt", &to(1)]);
    assert_eq!(bench.data(972, 64, None), [""; 0], "a later packet waits");
    assert_eq!(bench.held(), [2, 3, 4]);
    assert_eq!(bench.wait(), (4, vec![to(2)]));
    assert_eq!(bench.wait(), (4, vec![to(3)]));
    let last = format!("tunnel to {NEW} 4 ttl 63");
    assert_eq!(bench.wait(), (4, vec![last, "route onward".to_owned()]));
    assert_eq!(bench.held(), [0_u64; 0]);
}

/// The mobile node moves again while its packets are being sent: the rest goes to its next care-of address.
#[test]
fn a_later_update_turns_the_rest() {
    let mut bench = Bench::new("packets = 3, drain = \"paced\"");
    for _ in 0..3 {
        bench.data(972, 64, None);
    }
    bench.flush();
    let next = Ipv4Addr::new(10, 5, 0, 1);
    assert_eq!(bench.update(next, false), ["punt"]);
    assert_eq!(bench.wait(), (4, vec![format!("tunnel to {next} 2 ttl 62")]));
}

/// The packets of a mobile node that has left are being sent. A request from before the departure brings nothing. With a later one,
/// the mobile node is back: the packets of the agent that it names are delivered, and kept for its next move.
#[test]
fn a_late_request_brings_nothing_and_a_return_ends_the_sending() {
    let mut bench = Bench::new("packets = 3, drain = \"paced\"");
    for _ in 0..2 {
        bench.data(972, 64, None);
    }
    bench.updates = 5;
    bench.flush();
    let previous = Ipv4Addr::new(10, 5, 0, 1);
    bench.ask(3, previous);
    assert_eq!(bench.data_from(previous, 972, 64, None), ["not_the_previous_agent 3"]);
    assert_eq!(bench.held(), [2]);
    let back = bench.ask(7, previous);
    assert!(back.contains(&"link 2".to_owned()), "{back:?}");
    assert_eq!(bench.data_from(previous, 972, 64, None), ["link 4"]);
    assert_eq!(bench.held(), [4]);
}

#[test]
fn packets_that_find_no_room_to_wait_end_the_pacing() {
    let mut bench = Bench::new("packets = 2, drain = \"paced\"");
    bench.data(972, 64, None);
    bench.data(972, 64, None);
    bench.flush();
    for _ in 3..=5 {
        assert_eq!(bench.data(972, 64, None), [""; 0]);
    }
    let all = bench.data(972, 64, None);
    let ids: Vec<&str> = all.iter().filter_map(|one| one.split(' ').nth(3)).collect();
    assert_eq!(ids, ["2", "3", "4", "5", "6"], "{all:?}");
    assert!(all.contains(&"route onward".to_owned()) && bench.held().is_empty());
}

#[test]
fn a_visitor_that_returns_gets_what_waits_by_the_link() {
    let mut bench = Bench::new("packets = 3, drain = \"paced\"");
    for _ in 0..3 {
        bench.data(972, 64, None);
    }
    bench.flush();
    assert_eq!(bench.register(), ["punt", "link 2", "link 3", "punt"], "they leave at once");
    assert_eq!(bench.agent.keeper.as_ref().unwrap().next(), None);
    assert_eq!(bench.data(100, 64, None), ["link 4"]);
    assert_eq!(bench.register(), ["punt"], "what was sent is not sent again");
}

/// Returns a bench whose link has come up again, after three packets of 1000 bytes had arrived. They leave at 4 ms intervals.
fn after_link_down(more: &str) -> Bench {
    let mut bench = Bench::with("when = \"link-down\", packets = 3, drain = \"paced\"", more);
    bench.agent.link_changed(false, &mut bench.out);
    for _ in 0..3 {
        bench.data(972, 64, None);
    }
    bench.agent.link_changed(true, &mut bench.out);
    bench.effects();
    assert!(bench.by_table);
    assert_eq!(bench.held(), [1, 2, 3]);
    assert_eq!(bench.register().last().unwrap(), "link 1", "the rest is paced, and later ones wait");
    assert!(!bench.by_table);
    bench
}

/// The queue of the link may have less room than the ring.
#[test]
fn packets_of_a_link_that_was_down_are_paced_by_the_link() {
    let mut bench = after_link_down("");
    assert_eq!(bench.data(972, 64, None), [""; 0], "a later packet waits");
    assert_eq!(bench.register(), ["punt"], "a renewal sends nothing at once");
    assert_eq!(bench.wait(), (4, vec!["link 2".to_owned()]));
    assert_eq!(bench.wait(), (4, vec!["link 3".to_owned()]));
    assert_eq!(bench.wait(), (4, vec!["link 4".to_owned()]));
    assert_eq!((bench.held(), bench.agent.keeper.as_ref().unwrap().next()), (vec![], None));
    assert!(bench.by_table, "the table forwards again");
}

/// A sender that waits for acknowledgments sends a packet for each one that arrives. So the ring is never empty.
#[test]
fn pacing_ends_although_a_packet_follows_each_other_one() {
    let mut bench = after_link_down("");
    bench.data(972, 64, None);
    let mut paced = 0;
    while !bench.by_table {
        let (pause, sent) = bench.wait();
        assert_eq!(pause, 4);
        paced += 1;
        assert!(sent.len() <= 3, "{sent:?}");
        if !bench.by_table {
            bench.data(972, 64, None);
        }
    }
    assert_eq!((paced, bench.held()), (5, vec![]), "twice three packets, the first at once");
}

/// One flow may come out of several tunnels. Its order is kept.
#[test]
fn packets_of_other_tunnels_wait_too() {
    let mut bench = after_link_down("direct_tunnels = true");
    assert_eq!(bench.data_from(SENDER, 972, 64, None), [""; 0]);
    let sent: Vec<_> = (0..3).flat_map(|_| bench.wait().1).filter(|said| said.starts_with("link")).collect();
    assert_eq!(sent, ["link 2", "link 3", "link 4"]);
    assert_eq!(bench.data_from(SENDER, 972, 64, None), ["link 5"]);
}

/// A mobile node that wants no packets to be kept gets those that wait for it.
#[test]
fn a_request_to_stop_drops_nothing_that_is_being_sent() {
    let mut bench = after_link_down("");
    assert_eq!(bench.control(Asks::Stop, 5, &[]), [""; 0]);
    assert_eq!(bench.data(972, 64, None), [""; 0]);
    let sent: Vec<_> = (0..3).flat_map(|_| bench.wait().1).collect();
    assert_eq!(sent, ["link 2", "link 3", "link 4"]);
}

#[test]
fn pacing_on_the_link_ends_when_it_goes_down_again() {
    let mut bench = after_link_down("");
    bench.data(972, 64, None);
    bench.agent.link_changed(false, &mut bench.out);
    assert_eq!(bench.effects(), ["punt"]);
    assert_eq!(bench.held(), [2, 3, 4]);
    assert_eq!(
        bench.wait(),
        (10_000, ["kept_too_old 2", "kept_too_old 3", "kept_too_old 4"].map(String::from).into())
    );

    let mut bench = after_link_down("");
    bench.agent.link_changed(false, &mut bench.out);
    bench.effects();
    assert_eq!(bench.data(972, 64, None), [""; 0]);
    assert_eq!(bench.register(), ["punt"], "nothing is sent while the link is down");
    bench.agent.link_changed(true, &mut bench.out);
    bench.effects();
    assert_eq!(bench.register(), ["punt", "link 2"]);
    assert_eq!(bench.held(), [3, 4]);
}

#[test]
fn pacing_on_the_link_turns_to_the_next_care_of_address() {
    let mut bench = after_link_down("");
    let to = |number: u64| format!("tunnel to {NEW} {number} ttl 62");
    assert_eq!(bench.flush(), ["punt"], "the route waits for the rest");
    assert_eq!(bench.wait(), (4, vec![to(2)]));
    assert_eq!(bench.wait(), (4, vec![to(3), "route onward".to_owned()]));
}

/// Each packet costs one hop: a kept one was forwarded before, and one that has waited behind it is forwarded now.
#[test]
fn what_waits_for_a_visitor_that_returns_costs_one_hop() {
    let mut bench = Bench::new("packets = 3, drain = \"paced\"");
    bench.data(972, 64, None);
    bench.data(972, 60, None);
    bench.flush();
    for ttl in [50, 1, 40] {
        assert_eq!(bench.data(972, ttl, None), [""; 0], "it waits behind the others");
    }
    bench.admit();
    let mut links = Vec::new();
    let mut dropped = Vec::new();
    for effect in bench.out.drain_effects() {
        match effect {
            Effect::Send(Some(_), packet) => {
                links.push((packet.id.0, Header::parse(&packet.bytes).unwrap().0.ttl));
            }
            Effect::Discard(_, packet, reason) => dropped.push((packet.id.0, reason)),
            _ => {}
        }
    }
    assert_eq!(links, [(2, 59), (3, 49), (5, 39)]);
    assert_eq!(dropped, [(4, reason::TTL_EXPIRED)]);
    assert_eq!(bench.held(), [3, 5], "packets that were forwarded now are kept as others");
}

#[test]
fn packets_of_a_visit_that_ended_are_dropped() {
    let mut bench = Bench::new("packets = 2, drain = \"paced\"");
    bench.data(972, 64, None);
    bench.data(972, 64, None);
    bench.flush();
    bench.agent.end_departure(Instant::ZERO, VISIT, &mut bench.out);
    let all = bench.effects();
    assert!(all[0].starts_with(&format!("tunnel to {NEW} 2")), "pacing drops nothing: {all:?}");
    assert_eq!(all[1..], ["route onward"]);
    assert_eq!(bench.agent.keeper.as_ref().unwrap().next(), None);
    bench.register();
    bench.data(100, 64, None);
    bench.agent.leave(VISIT, &mut bench.out);
    assert_eq!(bench.effects(), ["kept_visit_ended 3"]);
}

#[test]
fn a_table_without_smooth_handoffs_is_refused() {
    let text = "address = \"10.3.0.1/24\"\ninterface = \"visited\"\nbuffer = {}";
    let error = toml::from_str::<crate::config::ForeignAgentConfig>(text).unwrap().check().unwrap_err();
    assert_eq!(error.key, "buffer");
}

#[test]
fn packets_that_the_mobile_node_names_are_not_sent_unless_they_have_df() {
    let mut bench = Bench::new("packets = 4");
    bench.data(100, 64, Some(7));
    bench.data(100, 64, Some(8));
    bench.data(100, 64, None); // DF, identification 0
    let named = [(SENDER, 7), (SENDER, 0), (HOST, 8)];
    assert_eq!(bench.control(Asks::Forward, 5, &named), ["kept_duplicate 1"]);
    assert_eq!(bench.control(Asks::Forward, 5, &[(SENDER, 8)]), ["stale_control 98"]);
    let sent = [2, 3].map(|number| format!("tunnel to {NEW} {number} ttl 62"));
    assert_eq!(bench.flush(), ["route onward", &sent[0], &sent[1]]);
}

#[test]
fn packets_are_kept_from_a_request_on() {
    let mut bench = Bench::new("when = \"request\", packets = 4");
    bench.data(100, 64, None);
    assert_eq!(bench.held(), [0_u64; 0], "no request yet");
    assert_eq!(bench.control(Asks::Keep, 5, &[]), ["punt"]);
    assert_eq!(bench.data(100, 64, None), ["link 2"]);
    assert_eq!(bench.held(), [2]);
    assert_eq!(bench.register(), ["punt"], "a renewal changes nothing");
    assert_eq!(bench.control(Asks::Stop, 6, &[]), ["kept_unwanted 2"]);
    assert_eq!(bench.data(100, 64, None), ["link 3"]);
    assert_eq!(bench.held(), [0_u64; 0]);
}

/// A Binding Update ends the request to keep packets.
#[test]
fn a_visitor_that_returns_must_ask_again() {
    let mut bench = Bench::new("when = \"request\"");
    assert_eq!(bench.control(Asks::Keep, 5, &[]), ["punt"]);
    bench.updates = 5;
    assert_eq!(bench.flush(), ["route onward"]);
    assert_eq!(bench.register(), [""; 0], "the table forwards");
    assert_eq!(bench.data(100, 64, None), ["link 1"]);
    assert_eq!(bench.held(), [0_u64; 0]);
}

#[test]
fn a_request_without_a_visit_or_a_buffer_is_refused() {
    let mut bench = Bench::new("when = \"request\"");
    bench.agent.leave(VISIT, &mut bench.out);
    bench.effects();
    assert_eq!(bench.control(Asks::Keep, 5, &[]), ["not_a_visitor 98"]);
    bench.register();
    bench.agent.keeper = None;
    assert_eq!(bench.control(Asks::Keep, 5, &[]), ["no_buffer 98"]);
}

/// A message of an earlier visit changes nothing. The names of a handoff have the Identification of its Binding Update.
#[test]
fn a_request_of_an_earlier_visit_is_refused() {
    let mut bench = Bench::new("when = \"request\", packets = 3, drain = \"paced\"");
    assert_eq!(bench.control(Asks::Keep, 5, &[]), ["punt"]);
    bench.agent.leave(VISIT, &mut bench.out);
    bench.effects();
    bench.register();
    bench.agent.visitors.get_mut(&VISIT).unwrap().identification = 20;
    for asks in [Asks::Keep, Asks::Forward, Asks::Stop] {
        assert_eq!(bench.control(asks, 5, &[]), ["stale_control 98"], "{asks:?}");
        assert_eq!(bench.control(asks, 19, &[]), ["stale_control 98"], "{asks:?}");
    }
    assert_eq!(bench.control(Asks::Keep, 21, &[]), ["punt"]);
    for id in [7, 8] {
        bench.data(972, 64, Some(id));
    }
    bench.updates = 29;
    let sent = format!("tunnel to {NEW} 1 ttl 62");
    assert_eq!(bench.flush(), ["route onward", "punt", &sent]);
    assert_eq!(bench.control(Asks::Forward, 30, &[(SENDER, 8)]), ["kept_duplicate 2"]);
}

/// A thousand visits begin and end in each way. Afterwards, the agent has no more state than before.
#[test]
fn nothing_is_left_of_visits_that_have_ended() {
    let mut bench = Bench::new("when = \"request\", packets = 3, drain = \"paced\"");
    bench.agent.leave(VISIT, &mut bench.out);
    bench.effects();
    let state = |bench: &Bench| {
        let mut keeper = format!("{:?}", bench.agent.keeper.as_ref().unwrap());
        keeper.truncate(keeper.find("sent:").unwrap());
        keeper
    };
    let before = state(&bench);
    for round in 0..1000 {
        bench.register();
        bench.control(Asks::Keep, 10 + round, &[]);
        for _ in 0..4 {
            bench.data(972, 64, None);
        }
        match round % 4 {
            0 => drop(bench.agent.leave(VISIT, &mut bench.out)),
            1 => drop(bench.update(HOST, false)),
            2 => drop(bench.update(NEW, false)),
            _ => {
                bench.update(NEW, false);
                while bench.agent.is_draining(VISIT) {
                    bench.wait();
                }
            }
        }
        bench.agent.end_departure(Instant::ZERO, VISIT, &mut bench.out);
        bench.effects();
        assert_eq!(state(&bench), before, "round {round}");
        assert_eq!(bench.held(), [0_u64; 0]);
    }
}

/// The recorder counts the drop of a kept packet by the list of all reasons. A reason that is missing there would count as a
/// second loss of the packet.
#[test]
fn the_list_of_reasons_is_complete() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/foreign_agent");
    let mut defined = BTreeSet::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let names = text.split("Reason(\"kept_").skip(1).filter_map(|rest| rest.split('"').next());
        defined.extend(names.map(|name| format!("kept_{name}")));
    }
    let listed: BTreeSet<String> = KEPT_REASONS.iter().map(|reason| reason.0.to_owned()).collect();
    assert_eq!((&defined, listed.len()), (&listed, KEPT_REASONS.len()));
    assert!(listed.len() >= 6 && listed.contains(KEPT_TOO_OLD.0), "{listed:?}");
}

// --- packets that a data path beside the node has kept --------------------------------------------------------------------------

#[test]
fn a_data_path_may_forward_what_it_keeps_for_the_role() {
    let aside = |buffer: &str| {
        let mut bench = Bench::new(buffer);
        bench.agent.set_route(VISIT, MAC, &mut bench.out);
        bench.aside()
    };
    let hop = Hop::mac(Iface(1), MAC);
    assert_eq!(aside(""), Some(Aside { hop, packets: 1 }));
    assert_eq!(aside("packets = 7"), Some(Aside { hop, packets: 7 }));
    assert_eq!(aside("when = \"request\""), None, "nothing is kept yet");
    assert_eq!(aside("when = \"link-down\""), None);
    let mut bench = Bench::new("when = \"request\", packets = 7");
    bench.control(Asks::Keep, 5, &[]);
    bench.agent.set_route(VISIT, MAC, &mut bench.out);
    assert_eq!(bench.aside(), Some(Aside { hop, packets: 7 }));
    assert_eq!(bench.agent.room_aside(), 64 << 20);

    let mut bench = Bench::new("when = \"link-down\"");
    bench.agent.link_changed(false, &mut bench.out);
    assert_eq!(bench.aside(), None, "packets are held back");
}

#[test]
fn kept_packets_of_a_data_path_are_as_the_roles_own() {
    let mut bench = Bench::new("packets = 2, max_age = \"10s\"");
    let begin = bench.now;
    bench.now += Duration::from_secs(4);
    assert_eq!(bench.kept_aside(begin, 63), [""; 0], "it is not sent again");
    assert_eq!(bench.kept_aside(begin + Duration::from_secs(1), 63), [""; 0]);
    assert_eq!(bench.kept_aside(begin + Duration::from_secs(2), 63), ["kept_replaced 1"]);
    assert_eq!(bench.data(100, 64, None), ["kept_replaced 2", "link 4"]);
    assert_eq!(bench.held(), [3, 4]);
    assert_eq!(bench.wait(), (6000, vec![]), "the deadline of a packet that was replaced");
    assert_eq!(bench.wait(), (2000, vec!["kept_too_old 3".to_owned()]), "its age is that of its arrival");
    assert_eq!(bench.flush(), ["route onward", &format!("tunnel to {NEW} 4 ttl 62")]);
}

/// No event came while the data path had the packet, so its age was not checked. A Binding Update then does not send it.
#[test]
fn a_packet_that_a_data_path_has_kept_for_too_long_is_dropped() {
    let mut bench = Bench::new("packets = 2, max_age = \"10s\"");
    let begin = bench.now;
    bench.now += Duration::from_secs(10);
    assert_eq!(bench.kept_aside(begin, 63), ["kept_too_old 1"]);
    assert_eq!(bench.kept_aside(begin + Duration::from_secs(1), 63), [""; 0]);
    assert_eq!(bench.flush(), ["route onward", &format!("tunnel to {NEW} 2 ttl 62")]);
}

/// A packet was on its way through the data path when the Binding Update was handled.
#[test]
fn a_packet_that_was_kept_too_late_follows_the_visitor() {
    let mut bench = Bench::new("packets = 3");
    bench.kept_aside(bench.now, 63);
    let to = |number: u64| format!("tunnel to {NEW} {number} ttl 62");
    assert_eq!(bench.flush(), ["route onward", &to(1)]);
    assert_eq!(bench.kept_aside(bench.now, 63), [to(2)]);
    bench.agent.end_departure(Instant::ZERO, VISIT, &mut bench.out);
    bench.effects();
    assert_eq!(bench.kept_aside(bench.now, 63), ["kept_visit_ended 3"]);

    let mut bench = Bench::new("packets = 3, drain = \"paced\"");
    bench.kept_aside(bench.now, 63);
    bench.kept_aside(bench.now, 63);
    assert_eq!(bench.flush(), ["route onward", "punt", &to(1)]);
    assert_eq!(bench.kept_aside(bench.now, 63), [""; 0], "it waits behind the others");
    assert_eq!(bench.held(), [2, 3]);
}

#[test]
fn a_packet_that_was_kept_after_the_visitor_had_ended_it_is_dropped() {
    let mut bench = Bench::new("when = \"request\"");
    assert_eq!(bench.kept_aside(bench.now, 63), ["kept_unwanted 1"]);
    bench.control(Asks::Keep, 5, &[]);
    assert_eq!(bench.kept_aside(bench.now, 63), [""; 0]);
    assert_eq!(bench.control(Asks::Stop, 6, &[]), ["kept_unwanted 2"]);
    assert_eq!(bench.held(), [0_u64; 0]);
}

/// Returns a datagram for the visitor: the Binding Acknowledge of a previous agent, if the source is the agent and both ports are
/// [`PORT`].
fn acknowledge(src: Ipv4Addr, ports: [u16; 2]) -> Vec<u8> {
    let [from, to] = [SocketAddrV4::new(src, ports[0]), SocketAddrV4::new(HOST, ports[1])];
    let status = crate::message::Status::ACCEPTED;
    let message = Acknowledge { status, home: HOST, identification: Some(1), authentication: None };
    datagram(from, to, 64, &Binding::Acknowledge(message).emit(&Numbers::default()))
}

/// A packet with these bytes comes out of the tunnel of the home agent, or of a data path that has kept it.
fn arrive(bench: &mut Bench, why: PuntReason, bytes: Vec<u8>) -> Vec<String> {
    bench.packets += 1;
    let packet = Packet { id: PacketId(bench.packets), ..Packet::new(Mac::ZERO, bytes) };
    let rx = Rx { tunnel: Some((HOME_AGENT, OWN)), ..Rx::parse(Iface(2), why, &packet).unwrap() };
    bench.agent.handle(bench.now, Input::Packet(rx, packet), &mut bench.out);
    bench.effects()
}

/// The Binding Acknowledge of a previous agent comes out of the tunnel of that agent. It is delivered, and takes no place in the ring.
/// Data of the agent's host do, and so do datagrams of other hosts.
#[test]
fn a_message_of_the_agent_at_the_tunnel_takes_no_place_of_data() {
    let why = PuntReason::Action;
    let mut bench = Bench::new("");
    assert_eq!(bench.data(100, 64, None), ["link 1"]);
    let message = || acknowledge(HOME_AGENT, [PORT; 2]);
    assert_eq!(arrive(&mut bench, why, message()), ["link 2"], "the data stay");
    let [from, to] = [HOME_AGENT, HOST].map(|address| SocketAddrV4::new(address, PORT));
    let (header, payload) = Header::parse(&message()).map(|(header, rest)| (header, rest.to_vec())).unwrap();
    for (other, which) in [
        (acknowledge(HOME_AGENT, [9000, PORT]), "from another port"),
        (acknowledge(HOME_AGENT, [PORT, 9000]), "to another port"),
        (acknowledge(SENDER, [PORT; 2]), "of another host"),
        (udp::packet(from, to, &[0; 40]), "another message"),
        (udp::packet(from, to, &[]), "no message"),
        (Header { more_fragments: true, dont_fragment: false, ..header }.emit(&payload), "a first fragment"),
        (Header { offset: 3, dont_fragment: false, ..header }.emit(&payload), "a later fragment"),
        (Header { protocol: wire::ipv4::TCP, ..header }.emit(&payload), "of another protocol"),
    ] {
        let number = bench.packets;
        let kept = bench.held();
        let said = arrive(&mut bench, why, other);
        assert_eq!(said, [format!("kept_replaced {}", kept[0]), format!("link {}", number + 1)], "{which}");
    }
    // While the link is down, a packet is kept instead of being sent, also a message.
    let mut bench = Bench::new("when = \"link-down\", packets = 2");
    bench.agent.link_changed(false, &mut bench.out);
    assert_eq!(arrive(&mut bench, why, message()), ["punt"]);
    assert_eq!(bench.agent.keeper.as_ref().map(Keeper::packets), Some(1));
}

/// The home agent may be the previous agent too. A data path beside the node then keeps its Binding Acknowledge as other packets.
#[test]
fn a_message_that_a_data_path_has_kept_takes_no_place_of_data() {
    let mut bench = Bench::new("");
    bench.kept_aside(bench.now, 63);
    let why = PuntReason::Kept(bench.now);
    assert_eq!(arrive(&mut bench, why, acknowledge(HOME_AGENT, [PORT; 2])), ["kept_unwanted 2"]);
    assert_eq!(bench.held(), [1]);
}

/// A Binding Acknowledge must take no place in the ring: data would lose it. In a full ring, it would end the pacing.
#[test]
fn a_message_does_not_wait_behind_packets_that_are_being_sent() {
    let mut bench = after_link_down("");
    assert_eq!(arrive(&mut bench, PuntReason::Action, acknowledge(HOME_AGENT, [PORT; 2])), ["link 4"]);
    assert_eq!(bench.held(), [2, 3]);
    assert_eq!(bench.data(972, 64, None), [""; 0], "data wait");
}
