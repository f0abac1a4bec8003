//! What it costs a foreign agent to keep packets: `make kept-packets`. Each line compares two nodes with the same visitors and
//! the same packets out of a tunnel. The first node forwards them by its table. In the second, the role gets each packet,
//! forwards it and keeps it.

use mobile_ip::ForeignAgent;
use mobile_ip::message::{
    Algorithm, Association, Between, Code, PORT, Received, Registration, Request, RequestFlags, datagram,
};
use node::config::Interfaces;
use node::{
    Act, Action, Boot, Hop, Input, InterfaceAddress, Lifetime, Link, Node, Outbox, Rng, Route, RouteKey,
};
use std::time::Duration;
use wire::{Iface, Instant, Ipv4Addr, Mac, Packet, PacketId, Prefix, SocketAddrV4, WallTime, ipip, udp};

const OWN: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 1);
const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
const VISITED: Iface = Iface(1);
const UP: Iface = Iface(2);

fn home(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 16, 0, 0).to_bits() + number)
}

fn mac(iface: Iface) -> Mac {
    Mac([2, 0, 0, 0, 1, iface.0 as u8])
}

/// A node with a foreign agent and visitors.
struct Bench {
    node: Node,
    out: Outbox,
    now: Instant,
}

impl Bench {
    fn new(visitors: u32, keys: &str) -> Self {
        let names = ["visited".to_owned(), "up".to_owned()];
        let text = format!(
            "address = \"10.3.0.1/24\"\ninterface = \"visited\"\nvisitors = {visitors}\n{keys}\n\
             advertise = {{ interval = \"1000s\", lifetime = \"3000s\" }}"
        );
        let agent =
            ForeignAgent::new(toml::from_str(&text).unwrap(), Interfaces(&names), Rng::new(1)).unwrap();
        let mut node = Node::new(vec![Box::new(agent)], Vec::new());
        let mut out = Outbox::default();
        for (number, address) in [(VISITED, "10.3.0.1/24"), (UP, "10.9.0.3/24")] {
            let address: InterfaceAddress = address.parse().unwrap();
            node.add_address(Instant::ZERO, number, address);
        }
        let action = Action::Forward(Hop::mac(UP, Mac([2, 1, 0, 0, 0, 0])));
        let all = RouteKey { class: None, src: Prefix::ANY, dst: Prefix::ANY };
        node.set_route(Instant::ZERO, all, Route::new(action, Lifetime::Permanent));
        let boot = Boot { wall: WallTime::default(), stored: Vec::new(), clean: true };
        node.handle(Instant::ZERO, Input::Start(&boot), &mut out);
        for iface in [VISITED, UP] {
            let link = Link::Up { cell: None, mac: mac(iface), mtu: 1500, name: "any" };
            node.handle(Instant::ZERO, Input::Link(iface, link), &mut out);
        }
        while out.next_act().is_some() {}
        let mut bench = Self { node, out, now: Instant::from_millis(1) };
        (0..visitors).for_each(|number| bench.register(number));
        bench
    }

    fn receive(&mut self, iface: Iface, from: u64, bytes: Vec<u8>) {
        let mut packet = Packet { id: PacketId(from), ..Packet::new(mac(iface), bytes) };
        let [.., a, b, c, d] = from.to_be_bytes();
        packet.link.src = Mac([2, 1, a, b, c, d]);
        self.node.receive(self.now, iface, packet, &mut self.out);
    }

    /// Registers a visitor: its request arrives, and the home agent's reply.
    fn register(&mut self, number: u32) {
        let mut request = Request {
            flags: RequestFlags(0),
            lifetime: 3600,
            home: home(number),
            home_agent: HOME_AGENT,
            care_of: OWN,
            identification: u64::from(number),
            extensions: Vec::new(),
        };
        let key = auth::Key::new(*b"1234567812345678");
        let ours = Association { spi: 256, algorithm: Algorithm::HmacSha256, key };
        request.sign(Between::MobileHome, &ours);
        let socket = |address| SocketAddrV4::new(address, PORT);
        let asks = datagram(socket(request.home), socket(OWN), 255, &request.emit());
        self.receive(VISITED, number.into(), asks);
        let mut reply = request.reply(Code::Accepted);
        reply.sign(Between::MobileHome, &ours);
        self.receive(UP, 1 << 31, datagram(socket(HOME_AGENT), socket(OWN), 64, &reply.emit()));
        let mut is_accepted = false;
        while let Some((_, act)) = self.out.next_act() {
            if let Act::Transmit(VISITED, packet) = act
                && let Ok(received) = Received::parse(&packet.bytes)
            {
                is_accepted |=
                    matches!(received.message, Registration::Reply(reply) if reply.code.is_accepted());
            }
        }
        assert!(is_accepted, "visitor {number}");
    }

    /// Forwards one packet of each visitor in turn, `rounds` times. Returns the time of all of them.
    #[expect(clippy::disallowed_methods, reason = "it measures time")]
    fn forward(&mut self, packets: &[Vec<u8>], rounds: u32) -> Duration {
        let mut spent = Duration::ZERO;
        for _ in 0..rounds {
            // The driver's copy of a frame is not counted.
            for (number, chunk) in packets.chunks(64).map(<[_]>::to_vec).enumerate() {
                let begins = std::time::Instant::now();
                for bytes in chunk {
                    self.now = Instant(self.now.0 + 100);
                    self.receive(UP, 1 + number as u64, bytes);
                    while self.out.next_act().is_some() {}
                }
                spent += begins.elapsed();
            }
        }
        spent
    }
}

fn packets(visitors: u32, size: usize) -> Vec<Vec<u8>> {
    let of = |number| {
        let from = SocketAddrV4::new(Ipv4Addr::new(10, 2, 0, 2), 9000);
        let inner = udp::packet(from, SocketAddrV4::new(home(number), 9000), &vec![0; size - 28]);
        ipip::encapsulate(&inner, HOME_AGENT, OWN, 1).unwrap()
    };
    (0..visitors).map(of).collect()
}

/// Prints the median of nine measurements per packet, in turn, with and without a buffer.
#[test]
#[ignore = "a measurement: `make kept-packets`"]
fn keeping_packets_costs_little() {
    println!("visitors  bytes  buffer                      forwarded  kept      difference (ns per packet)");
    for (visitors, size, buffer) in [
        (1, 1480, "{}"),
        (1, 100, "{}"),
        (1, 1480, "{ packets = 8 }"),
        (1000, 1480, "{}"),
        (10_000, 1480, "{}"),
        (10_000, 1480, "{ packets = 8 }"), // 64 MiB do not suffice: the largest ring is shrunk
    ] {
        let all = packets(visitors, size);
        let mut nodes =
            ["", &format!("smooth_handoff = true\nbuffer = {buffer}")].map(|keys| Bench::new(visitors, keys));
        let rounds = 100_000_u32.div_ceil(visitors).max(9);
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..9 {
            for (bench, times) in nodes.iter_mut().zip(&mut times) {
                let each = bench.forward(&all, rounds).as_nanos() as f64 / f64::from(visitors * rounds);
                times.push(each);
            }
        }
        let [forwarded, kept] = times.map(|mut all| {
            all.sort_by(f64::total_cmp);
            all[4]
        });
        println!(
            "{visitors:>8}  {size:>5}  {buffer:<26}  {forwarded:>9.0}  {kept:>8.0}  {:>+10.0}",
            kept - forwarded
        );
    }
}
