//! The steps of smooth handoffs, and the texts of the messages of route optimization.

use super::{Args, CORRESPONDENT, HOME, MobileIp, PORT, association, from_person, number, person};
use crate::transcript::{Teller, WALL};
use auth::Key as Secret;
use mobile_ip::message::{
    Acknowledge, Asks, Association, Between, Binding, BufferControl, Generalized, Numbers, PreviousAgent,
    Request, Status, Update, Warning, datagram,
};
use wire::ipv4::Header;
use wire::{Instant, Ipv4Addr, Packet, SocketAddrV4, ipip, udp};

/// Returns the packet of a step, and the interface by which it arrives; `None` if it is another step.
pub(super) fn step(teller: &Teller<MobileIp>, words: &[&str]) -> Option<(String, Packet)> {
    Some(match *words {
        ["control", asks, ref args @ ..] => ask(teller, asks, &Args::new(args)),
        ["update", "from", from, ref args @ ..] => update(teller, from, &Args::new(args)),
        ["acknowledge", "from", from, ref args @ ..] => acknowledge(teller, from, &Args::new(args)),
        // The packet of the last step, in its tunnel, has circled: the inner time to live is smaller by `hops`.
        ["again", "after", hops] => {
            let (iface, packet) = teller.cast.last.clone().unwrap();
            let (outer, inner) = ipip::decapsulate(&packet.bytes).unwrap();
            let (header, payload) = Header::parse(inner).unwrap();
            let inner = Header { ttl: header.ttl - hops.parse::<u8>().unwrap(), ..header }.emit(payload);
            (iface, from_person("router", &ipip::encapsulate(&inner, outer.src, outer.dst, 1).unwrap()))
        }
        // A foreign agent returns a packet in a special tunnel to the home agent.
        ["returned", "by", from, "for", to, ref args @ ..] => {
            let inner = number(teller, CORRESPONDENT, args.first().unwrap_or(&to).parse().unwrap());
            let outer = ipip::encapsulate(&inner, person(from).0, to.parse().unwrap(), 1).unwrap();
            ("up".to_owned(), from_person("router", &outer))
        }
        _ => return None,
    })
}

/// Returns the association between the mobile node and a foreign agent, with another key if `args` have `forged`.
fn key(args: &Args<'_>) -> Association {
    let ours = association(Between::MobileForeign);
    let key = if args.has("forged") { Secret::new([0; 16]) } else { ours.key.clone() };
    Association { spi: args.get("key-spi", ours.spi), key, ..ours }
}

/// Adds the notification of a step to a request: the agent `previous`, and the lifetime `cache`.
pub(super) fn name_previous(request: &mut Request, args: &Args<'_>) {
    if !args.has("previous") {
        return;
    }
    let numbers = Numbers::default();
    let previous = args.get("previous", Ipv4Addr::UNSPECIFIED);
    let mut said = PreviousAgent::new(request, args.get("cache", 30), previous, &key(args), &numbers);
    said.care_of = args.get("new", said.care_of);
    request.extensions.push(said.extension(&numbers));
}

/// Adds the Binding Warning Extension with this target to a request.
pub(super) fn warn(request: &mut Request, args: &Args<'_>) {
    if args.has("warn") {
        let targets = vec![args.get("warn", Ipv4Addr::UNSPECIFIED)];
        let home = args.get("about", request.home);
        request.extensions.push(Warning { home, targets }.extension(&Numbers::default()));
    }
}

/// Returns a Binding Update to the first foreign agent, and the interface by which it arrives.
fn update(teller: &Teller<MobileIp>, from: &str, args: &Args<'_>) -> (String, Packet) {
    let numbers = Numbers::default();
    let clock = WALL.plus(teller.now.since(Instant::ZERO)).to_ntp();
    let mut update = Update {
        acknowledge: !args.has("quiet"),
        minimal: args.has("minimal"),
        gre: false,
        lifetime: args.get("lifetime", 30),
        home: args.get("home", HOME),
        care_of: args.get("care_of", person(from).0),
        identification: Some(clock.wrapping_add_signed(args.get::<i64>("clock", 0) << 32)),
        authentication: None,
    };
    if args.has("timeless") {
        update.identification = None;
    }
    update.sign(numbers.smooth_authentication, &teller.cast.key(args).unwrap_or_else(|| key(args)), &numbers);
    message(&Binding::Update(update), person(from).0, person("fa").0, "up")
}

/// Returns a Buffer Control Request of the mobile node to the first foreign agent, and the interface by which it arrives. `ids`:
/// the identifications of packets of the correspondent that the mobile node has received.
fn ask(teller: &Teller<MobileIp>, asks: &str, args: &Args<'_>) -> (String, Packet) {
    let numbers = Numbers::default();
    let asks = match asks {
        "keep" => Asks::Keep,
        "forward" => Asks::Forward,
        "stop" => Asks::Stop,
        _ => panic!("no request to {asks}"),
    };
    let ids: String = args.get("ids", String::new());
    let named = ids.split(',').filter_map(|id| id.parse().ok()).map(|id| (CORRESPONDENT, id)).collect();
    let clock = WALL.plus(teller.now.since(Instant::ZERO)).to_ntp();
    let identification = clock.wrapping_add_signed(args.get::<i64>("clock", 0) << 32);
    let mut message = BufferControl { asks, home: HOME, identification, named, authentication: None };
    message.sign(&teller.cast.key(args).unwrap_or_else(|| key(args)), &numbers);
    let [from, to] = [HOME, person("fa").0].map(|address| SocketAddrV4::new(address, PORT));
    let bytes = datagram(from, to, 64, &message.emit(&numbers));
    ("visited".to_owned(), from_person("mn", &bytes))
}

/// Returns a Binding Acknowledge to the mobile node about its last request, or about the one that was `back` requests before, and
/// the interface by which it arrives.
fn acknowledge(teller: &Teller<MobileIp>, from: &str, args: &Args<'_>) -> (String, Packet) {
    let numbers = Numbers::default();
    let asked = teller.cast.requests.iter().rev().nth(args.get("back", 0));
    let asked = asked.map(|request| request.identification);
    let mut message_ = Acknowledge {
        status: Status(args.get("status", 0)),
        home: HOME,
        identification: asked.map(|asked| asked ^ u64::from(args.has("stale"))),
        authentication: None,
    };
    let signer = teller.cast.key(args).unwrap_or_else(|| key(args));
    message_.sign(numbers.smooth_authentication, &signer, &numbers);
    message(&Binding::Acknowledge(message_), person(from).0, HOME, "air")
}

fn message(message: &Binding, from: Ipv4Addr, to: Ipv4Addr, iface: &str) -> (String, Packet) {
    let [from, to] = [from, to].map(|address| SocketAddrV4::new(address, PORT));
    let bytes = datagram(from, to, 64, &message.emit(&Numbers::default()));
    (iface.to_owned(), from_person("router", &bytes))
}

/// Returns the name of a message to `to` if it is authenticated for smooth handoffs.
pub(super) fn name(message: &Binding, to: Ipv4Addr) -> Option<String> {
    let numbers = Numbers::default();
    let signed = |is: bool| if is { "signed" } else { "not signed" };
    let ours = association(Between::MobileForeign);
    let subtype = numbers.smooth_authentication;
    let is_smooth =
        |found: &Option<Generalized>| found.as_ref().is_some_and(|found| found.subtype == subtype);
    match message {
        Binding::Update(update) if is_smooth(&update.authentication) => {
            let Update { home, care_of, lifetime, .. } = update;
            let signed = signed(update.verify(subtype, &ours, &numbers));
            Some(format!("update to {to}: {home} at {care_of} for {lifetime} s, {signed}"))
        }
        Binding::Acknowledge(said) if is_smooth(&said.authentication) => {
            let signed = signed(said.verify(subtype, &ours, &numbers));
            Some(format!("acknowledge to {}: {}, {signed}", said.home, said.status.meaning()))
        }
        _ => None,
    }
}

/// Returns the name of a datagram if it is a message about the packets that an agent keeps.
pub(super) fn control_name(bytes: &[u8]) -> Option<String> {
    let (header, payload) = Header::parse(bytes).ok()?;
    let datagram = udp::Datagram::parse(payload, header.src, header.dst).ok()?;
    let numbers = Numbers::default();
    let control =
        BufferControl::parse(datagram.payload, &numbers)?.ok().filter(|_| datagram.dst_port == PORT)?;
    let is_signed = control.verify(&association(Between::MobileForeign), &numbers);
    let BufferControl { asks, named, .. } = control;
    let signed = if is_signed { "signed" } else { "not signed" };
    Some(format!("buffer control to {}: {asks:?}, names {named:?}, {signed}", header.dst))
}
