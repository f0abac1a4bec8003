//! The steps of transcripts about route optimization, and the names of its messages.

use super::{Args, CORRESPONDENT, HOME, HOME_AGENT, MobileIp, from_person, number};
use crate::transcript::{Teller, WALL};
use auth::Key as Secret;
use mobile_ip::message::{
    Acknowledge, Algorithm, Association, Binding, BindingRequest, Numbers, PORT, Status, Update, Warning,
    datagram,
};
use wire::ipv4::Header;
use wire::{Instant, Ipv4Addr, Packet, SocketAddrV4, tunnel};

pub(super) const CORRESPONDENT_CONFIG: &str = r#"
    address = "10.2.0.2"
    home_agents = [{ address = "10.1.0.2", spi = 400, key = "34303031343030313430303134303031", networks = ["10.1.0.0/16"] }]
"#;

fn association(args: &Args<'_>) -> Association {
    let key = if args.has("forged") { [0; 16] } else { *b"4001400140014001" };
    Association { spi: args.get("spi", 400), algorithm: Algorithm::HmacSha256, key: Secret::new(key) }
}

/// Returns the packet of a step with a message of route optimization, and the interface by which it arrives.
pub(super) fn step(teller: &mut Teller<MobileIp>, words: &[&str]) -> Option<(String, Packet)> {
    let numbers = Numbers::default();
    let now = WALL.plus(teller.now.since(Instant::ZERO)).to_ntp();
    let id = |args: &Args<'_>, otherwise: u64| {
        let nonces = (args.get("next", 0), args.get("this", 0));
        match (args.has("this"), args.has("id")) {
            (true, _) => nonces.0 << 32 | nonces.1,
            (_, true) => now.wrapping_add_signed(args.get::<i64>("id", 0) << 32),
            _ => otherwise,
        }
    };
    let (from, to, message, ttl, has_more) = match *words {
        // The home agent informs the correspondent.
        ["update", ref args @ ..] => {
            let args = &Args::new(args);
            let mut update = Update {
                acknowledge: !args.has("quiet"),
                minimal: args.has("minimal"),
                gre: args.has("gre"),
                lifetime: args.get("lifetime", 100),
                home: args.get("home", HOME),
                care_of: args.get("care_of", Ipv4Addr::new(10, 3, 0, 1)),
                identification: (!args.has("without")).then(|| id(args, now)),
                authentication: None,
            };
            update.sign(args.get("subtype", numbers.route_authentication), &association(args), &numbers);
            let to = args.get("at", CORRESPONDENT);
            (args.get("from", HOME_AGENT), to, Binding::Update(update), 64, args.has("longer"))
        }
        // The correspondent answers the last Binding Update of the home agent.
        ["acknowledge", ref args @ ..] => {
            let args = &Args::new(args);
            let asked = teller.cast.update.clone().unwrap();
            let identification = asked.identification.map(|last| last ^ u64::from(args.has("other")));
            let status = Status(args.get("status", 0));
            let mut answer = Acknowledge { status, home: asked.home, identification, authentication: None };
            if !args.has("unsigned") {
                answer.sign(numbers.route_authentication, &association(args), &numbers);
            }
            (args.get("from", CORRESPONDENT), HOME_AGENT, Binding::Acknowledge(answer), 64, false)
        }
        ["binding-request", ref args @ ..] => {
            let args = &Args::new(args);
            let (home, identification) = (args.get("home", HOME), id(args, now));
            let mut message = BindingRequest { home, identification, authentication: None };
            if args.has("signed") || args.has("forged") || args.has("subtype") {
                let subtype = args.get("subtype", numbers.route_authentication);
                message.sign(subtype, &association(args), &numbers);
            }
            (args.get("from", CORRESPONDENT), HOME_AGENT, Binding::Request(message), 64, false)
        }
        ["warning", ref args @ ..] => {
            let args = &Args::new(args);
            let targets = (0..args.get("count", 1)).map(|more| {
                let first = args.get("target", CORRESPONDENT);
                Ipv4Addr::from_bits(first.to_bits() + more)
            });
            let message = Warning { home: args.get("home", HOME), targets: targets.collect() };
            (Ipv4Addr::new(10, 3, 0, 1), HOME_AGENT, Binding::Warning(message), 64, false)
        }
        // A program of the correspondent sends to the mobile node.
        ["send", "mn"] => {
            let bytes = number(teller, CORRESPONDENT, HOME);
            return Some(("host".to_owned(), from_person("router", &bytes)));
        }
        _ => return None,
    };
    let [from, to] = [from, to].map(|address| SocketAddrV4::new(address, PORT));
    let mut payload = message.emit(&numbers);
    payload.extend(has_more.then_some(0));
    Some(("up".to_owned(), from_person("router", &datagram(from, to, ttl, &payload))))
}

/// Returns the message of route optimization in a datagram; `None` if it has none.
pub(super) fn message(bytes: &[u8]) -> Option<Binding> {
    let (header, payload) = Header::parse(bytes).ok()?;
    Some(Binding::received(&header, payload, &Numbers::default()).ok()??.1)
}

/// Returns whether a datagram, which may be in a tunnel, has an Acknowledge with another Identification than the Update in the
/// datagram `update`.
pub(super) fn answers_another(bytes: &[u8], update: &[u8]) -> bool {
    let inner = tunnel::decapsulate(bytes).map(|(_, inner)| inner.into_owned());
    match (message(inner.as_deref().unwrap_or(bytes)), message(update)) {
        (Some(Binding::Acknowledge(answer)), Some(Binding::Update(update))) => {
            answer.identification != update.identification
        }
        _ => false,
    }
}

/// Returns the name of a message, with the Identification if it is no timestamp near the clock of the transcripts.
pub(super) fn name(message: &Binding) -> String {
    let numbers = Numbers::default();
    let (subtype, ours) = (numbers.route_authentication, association(&Args::new(&[])));
    let signed = |is_signed| if is_signed { "signed" } else { "unsigned" };
    let nonces = |id: u64| {
        let is_time = (id >> 32).abs_diff(WALL.to_ntp() >> 32) < 1_000_000;
        if is_time { String::new() } else { format!(", nonces {} {}", id >> 32, id as u32) }
    };
    match message {
        Binding::Update(update) => {
            let Update { home, care_of, lifetime, identification, minimal, gre, .. } = update;
            let kinds = [(minimal, ", minimal"), (gre, ", GRE")];
            let kinds: String = kinds.iter().filter(|(asked, _)| **asked).map(|(_, name)| *name).collect();
            let what = if update.deletes() {
                format!("forget {home}")
            } else {
                format!("{home} is at {care_of} for {lifetime} s{kinds}")
            };
            let nonces = identification.map_or(String::new(), nonces);
            let quiet = if update.acknowledge { "" } else { ", wants no answer" };
            format!("update: {what}{nonces}, {}{quiet}", signed(update.verify(subtype, &ours, &numbers)))
        }
        Binding::Acknowledge(answer) => {
            let is_signed = signed(answer.verify(subtype, &ours, &numbers));
            format!("acknowledge: {} ({}), {is_signed}", answer.status.0, answer.status.meaning())
        }
        Binding::Request(asked) => {
            let is_signed = if asked.verify(subtype, &ours, &numbers) { ", signed" } else { "" };
            format!("binding request: {}{}{is_signed}", asked.home, nonces(asked.identification))
        }
        Binding::Warning(Warning { home, targets }) => {
            let named =
                if targets.len() > 2 { format!("{} targets", targets.len()) } else { format!("{targets:?}") };
            format!("warning: {home}, {named}")
        }
    }
}
