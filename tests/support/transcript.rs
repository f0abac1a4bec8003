//! Runs scripts with a node that has one role, and writes transcripts. Inputs begin at the margin; outputs are numbered
//! and indented. Included by the tests of protocol crates, each of which has its own [`Cast`].

use node::config::parse_span;
use node::{
    Act, Action, Boot, Class, Command, CommandId, Encap, Hop, IngressPolicy, Input, Lifetime, Link, Mark,
    Neighbor, NextHop, Node, Outbox, Route, RouteKey, Span, StreamId, StreamOp, TunnelKind, Value,
    stream::OwnedStreamEvent,
};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use wire::{Cell, Iface, Instant, Mac, Packet, PacketId, Prefix, WallTime};

/// The wall clock at the start of a script: 2000-01-01 00:00 UTC.
pub(crate) const WALL: WallTime = WallTime(946_684_800_000_000_000);

/// What differs between protocols: the nodes, and the texts of packets and operations.
pub(crate) trait Cast: Default {
    /// Returns the node of this kind with these changes to its configuration, and the names of its interfaces, from
    /// number 1.
    fn node(&mut self, kind: &str, changes: &str) -> (Node, &'static [&'static str]);
    /// Returns whether an interface is up from the start. A radio waits for a command of the script.
    fn comes_up(&self, interface: &str) -> bool {
        !interface.starts_with("air")
    }
    /// Runs a step that only this protocol knows.
    fn step(teller: &mut Teller<Self>, words: &[&str]);
    /// Returns a packet as text.
    fn packet(&self, packet: &Packet) -> String;
    /// Returns the name of a neighbor by its link address, or `None` if it has none.
    fn neighbor(&self, mac: Mac) -> Option<&'static str>;
    /// Returns the name of a class, or `None` if it is not this protocol's.
    fn class(&self, class: Class) -> Option<&'static str>;
    /// Returns an operation on a stream as text.
    fn stream(&self, _id: StreamId, _op: &StreamOp) -> String {
        "a stream, which no role of this protocol uses".to_owned()
    }
    /// Returns an event of a stream that a role serves to a program, as text.
    fn served(&self, _told: &OwnedStreamEvent) -> String {
        "what only a program outside asks for".to_owned()
    }
    /// Records a packet that the node sends.
    fn heed(&mut self, _packet: &Packet) {}
    /// Records an operation of the node on a stream.
    fn heed_stream(&mut self, _id: StreamId, _op: &StreamOp) {}
}

/// The state of the disk: what happens to records that the role stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Disk {
    /// Records are durable immediately.
    Works,
    /// Records are refused immediately.
    Fails,
    /// Records wait, until a script makes some durable, or sets another state.
    Waits,
}

/// Writes one transcript.
pub(crate) struct Teller<C> {
    pub(crate) cast: C,
    pub(crate) now: Instant,
    text: String,
    kind: String,
    /// Changes to the role's configuration, in TOML.
    changes: String,
    node: Option<Node>,
    interfaces: &'static [&'static str],
    out: Outbox,
    effects: u32,
    stored: BTreeMap<Vec<u8>, Vec<u8>>,
    disk: Disk,
    /// Records that are neither durable nor refused yet.
    asked: VecDeque<(Vec<u8>, Option<Vec<u8>>)>,
    /// The number of packets that a script has made, so that a reader can follow each.
    pub(crate) packets: u64,
}

impl<C: Cast> Teller<C> {
    /// Returns the transcript of a script. Outputs in the script are ignored.
    pub(crate) fn tell(script: &str) -> String {
        let mut teller = Self {
            cast: C::default(),
            now: Instant::ZERO,
            text: String::new(),
            kind: String::new(),
            changes: String::new(),
            node: None,
            interfaces: &[],
            out: Outbox::default(),
            effects: 0,
            stored: BTreeMap::new(),
            disk: Disk::Works,
            asked: VecDeque::new(),
            packets: 0,
        };
        for line in script.lines().filter(|line| !line.starts_with(' ')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                [] | ["#", ..] => {}
                ["with", ..] => {
                    teller.changes.push_str(line.trim_start_matches("with"));
                    teller.changes.push('\n');
                }
                ["role", kind] => {
                    (*kind).clone_into(&mut teller.kind);
                    teller.changes.clear();
                    teller.stored.clear();
                }
                [at, ..] => {
                    let at = Instant::ZERO + parse_span(at).unwrap_or_else(|| panic!("no time: {line}"));
                    teller.run_to(at);
                }
            }
            teller.text.push_str(line);
            teller.text.push('\n');
            if let [at, step @ ..] = words.as_slice()
                && at.starts_with(|c: char| c.is_ascii_digit())
            {
                teller.step(step);
            }
        }
        teller.text
    }

    /// Runs all timers that are due until `at`.
    fn run_to(&mut self, at: Instant) {
        while let Some(due) = self.node.as_ref().and_then(Node::deadline).filter(|due| *due <= at) {
            self.now = self.now.max(due);
            self.give(Input::Timeout);
            let next = self.node.as_ref().and_then(Node::deadline);
            assert!(next.is_none_or(|next| next > self.now), "due at {next:?}, after a time-out at {due:?}");
        }
        assert!(at >= self.now, "the script goes back in time");
        self.now = at;
    }

    fn step(&mut self, words: &[&str]) {
        match *words {
            ["start"] => self.start(true),
            ["start", "unclean"] => self.start(false),
            ["wait"] => {}
            ["storage", "fails"] => self.set_disk(Disk::Fails),
            ["storage", "works"] => self.set_disk(Disk::Works),
            ["storage", "waits"] => self.set_disk(Disk::Waits),
            ["storage", "takes", records] => {
                self.take_records(records.parse().unwrap());
                self.carry_out();
            }
            ["status"] => {
                let status = self.node.as_ref().unwrap().status();
                self.line(&format!("status {}", value(&status)));
            }
            ["link", name, "up"] => self.link_up(name, None),
            ["link", name, "up", cell] => self.link_up(name, Some(Cell(cell.parse().unwrap()))),
            ["link", name, "down", why] => {
                let iface = self.iface(name);
                self.give(Input::Link(iface, Link::Down(why)));
            }
            ["heard", name, cell, dbm] => {
                let (iface, cell) = (self.iface(name), Cell(cell.parse().unwrap()));
                self.give(Input::Link(iface, Link::Heard(cell, dbm.parse().unwrap())));
            }
            ["command", verb, ref args @ ..] => {
                let args = args.iter().map(|arg| {
                    let (name, text) = arg.split_once('=').unwrap();
                    let number = text.parse::<i64>().map(Value::from);
                    (name.to_owned(), number.unwrap_or_else(|_| Value::from(text)))
                });
                let command = Command { verb: verb.to_owned(), args: Value::Map(args.collect()) };
                self.give(Input::Command(CommandId(1), &command));
            }
            _ => C::step(self, words),
        }
    }

    /// Starts a new role with its stored records.
    fn start(&mut self, clean: bool) {
        let (node, interfaces) = self.cast.node(&self.kind, &self.changes);
        (self.node, self.interfaces) = (Some(node), interfaces);
        self.asked.clear(); // as kill -9 does
        let stored = self.stored.clone().into_iter().collect();
        self.give(Input::Start(&Boot { wall: WALL, stored, clean }));
        for name in interfaces {
            if self.cast.comes_up(name) {
                self.link_up(name, None);
            }
        }
    }

    pub(crate) fn link_up(&mut self, name: &str, cell: Option<Cell>) {
        let iface = self.iface(name);
        self.give(Input::Link(iface, Link::Up { cell, mac: own(iface), mtu: 1500, name: "any" }));
    }

    /// Returns the interface of this name; `host` is that of the host's own stack.
    pub(crate) fn iface(&self, name: &str) -> Iface {
        let at = self.interfaces.iter().position(|other| *other == name);
        assert!(at.is_some() || name == "host", "no interface {name}");
        Iface(at.map_or(0, |at| at as u16 + 1))
    }

    /// Passes a packet to the node, as received from this interface.
    pub(crate) fn receive(&mut self, name: &str, mut packet: Packet) {
        let iface = self.iface(name);
        self.packets += 1;
        packet.id = PacketId(self.packets);
        if packet.link.dst == Mac::ZERO {
            packet.link.dst = own(iface);
        }
        self.node.as_mut().unwrap().receive(self.now, iface, packet, &mut self.out);
        self.carry_out();
    }

    pub(crate) fn give(&mut self, input: Input<'_>) {
        self.node.as_mut().unwrap().handle(self.now, input, &mut self.out);
        self.carry_out();
    }

    fn set_disk(&mut self, disk: Disk) {
        self.disk = disk;
        if self.node.is_some() {
            self.carry_out();
        }
    }

    fn carry_out(&mut self) {
        self.write_down();
        while self.disk != Disk::Waits && !self.asked.is_empty() {
            if self.disk == Disk::Works {
                self.take_records(self.asked.len());
            } else {
                self.refuse_records();
            }
            self.write_down();
        }
    }

    /// Makes the first `records` records durable.
    fn take_records(&mut self, records: usize) {
        for (key, value) in self.asked.drain(..records) {
            match value {
                Some(value) => self.stored.insert(key, value),
                None => self.stored.remove(&key),
            };
        }
        self.node.as_mut().unwrap().resume(self.now, records, &mut self.out);
    }

    fn refuse_records(&mut self) {
        for _ in 0..std::mem::take(&mut self.asked).len() {
            self.line("it cannot be stored");
        }
        self.node.as_mut().unwrap().withdraw(self.now, "no space", &mut self.out);
    }

    fn write_down(&mut self) {
        while let Some((_, act)) = self.out.next_act() {
            // These events are only for the records of a run. Reads of a program are in the transcript.
            if matches!(&act, Act::Delivered(event) if !matches!(event.change, node::AppChange::Read(_))) {
                continue;
            }
            let line = self.act(&act);
            self.line(&line);
            match act {
                Act::Transmit(_, packet) | Act::SendInCell(_, _, packet) => self.cast.heed(&packet),
                Act::Stream(id, op) => self.cast.heed_stream(id, &op),
                Act::Store(key, value) => self.asked.push_back((key, value)),
                _ => {}
            }
        }
    }

    fn line(&mut self, line: &str) {
        self.effects += 1;
        let millis = self.now.0 as f64 / 1e6;
        let _ = writeln!(self.text, "  {:>3} {millis:>10.3} ms  {line}", self.effects);
    }

    // --- words -------------------------------------------------------------------------------------------------------

    fn act(&self, act: &Act) -> String {
        let packet = |packet| self.cast.packet(packet);
        match act {
            Act::Transmit(Iface::HOST, sent) => format!("hand {} to this host", packet(sent)),
            Act::Transmit(iface, sent) => {
                format!("send {} to {}", packet(sent), self.neighbor(*iface, sent.link.dst))
            }
            Act::Drop(iface, dropped, reason) => {
                format!("drop {} from {}: {reason}", packet(dropped), self.interface(*iface))
            }
            Act::Route(key, route) => format!("route {}: {}", self.key(*key), self.route(route.as_ref())),
            Act::IngressPolicy(port, policy) => {
                format!("gate {}: {}", self.interface(port.iface), self.ingress_policy(*policy))
            }
            Act::Neighbor(iface, address, neighbor) => {
                let behaviour = match neighbor {
                    Some(Neighbor::At(mac)) => format!("at {}", self.neighbor(*iface, *mac)),
                    Some(Neighbor::Proxy) => "answered for".to_owned(),
                    Some(Neighbor::Mute) => "mute".to_owned(),
                    Some(Neighbor::Watched) => "watched".to_owned(),
                    None => "as usual".to_owned(),
                };
                format!("arp {address} on {}: {behaviour}", self.interface(*iface))
            }
            Act::Address(iface, address, true) => format!("address {address} on {}", self.interface(*iface)),
            Act::Address(iface, address, false) => {
                format!("address {address} off {}", self.interface(*iface))
            }
            Act::Store(_, Some(value)) => format!("store {} bytes", value.len()),
            Act::Store(_, None) => "store nothing any more".to_owned(),
            Act::Tune(iface, cell) => match self.interface(*iface) {
                "air" => format!("tune to cell {}", cell.0),
                radio => format!("tune {radio} to cell {}", cell.0),
            },
            Act::SendInCell(_, cell, sent) => format!("visit cell {} with {}", cell.0, packet(sent)),
            Act::Mark(mark) => mark_name(mark),
            Act::Answer(_, Ok(answer)) => format!("answer {}", value(answer)),
            Act::Answer(_, Err(why)) => format!("refuse: {why}"),
            Act::Served(told) => self.cast.served(told),
            Act::Stream(id, op) => self.cast.stream(*id, op),
            Act::Delivered(event) => match event.change {
                node::AppChange::Read(bytes) => format!("{bytes} bytes are handed to a program"),
                _ => String::new(),
            },
        }
    }

    fn interface(&self, iface: Iface) -> &'static str {
        usize::from(iface.0).checked_sub(1).and_then(|at| self.interfaces.get(at)).unwrap_or(&"host")
    }

    fn neighbor(&self, iface: Iface, mac: Mac) -> String {
        match self.cast.neighbor(mac) {
            _ if mac.is_group() => format!("all on {}", self.interface(iface)),
            Some(name) => name.to_owned(),
            None => format!("{mac} by {}", self.interface(iface)),
        }
    }

    fn key(&self, key: RouteKey) -> String {
        let class = match key.class {
            None => "all".to_owned(),
            Some(Class::HOST) => "this host's own".to_owned(),
            Some(class) => self.cast.class(class).map_or(format!("class {}", class.0), str::to_owned),
        };
        let from = if key.src == Prefix::ANY { String::new() } else { format!(" from {}", key.src) };
        let to = match key.dst {
            Prefix::ANY => "any".to_owned(),
            one if one.len() == 32 => one.address().to_string(),
            some => some.to_string(),
        };
        format!("{class}{from} to {to}")
    }

    fn route(&self, route: Option<&Route>) -> String {
        let Some(Route { action, lifetime, notice, aside }) = route else { return "removed".to_owned() };
        let action = match action {
            Action::Forward(Hop { iface, to: NextHop::Mac(mac) }) => {
                format!("by {}", self.neighbor(*iface, *mac))
            }
            Action::Forward(Hop { to: NextHop::Via(router), .. }) => format!("by {router}"),
            Action::Forward(Hop { iface, to: NextHop::OnLink }) => format!("on {}", self.interface(*iface)),
            Action::Tunnel(encap) => {
                let Encap { src, dst, mtu, reported, kind, is_failing } = encap;
                let failing = if *is_failing { ", failing" } else { "" };
                let mtu = if reported == mtu { mtu.to_string() } else { format!("{reported} of {mtu}") };
                let kind = if *kind == TunnelKind::IpInIp { String::new() } else { format!("{kind:?} ") };
                format!("{kind}tunnel {src} to {dst}, {mtu} bytes{failing}")
            }
            Action::Open(class, kinds) => {
                let all = [TunnelKind::IpInIp, TunnelKind::Minimal, TunnelKind::Gre];
                let names: Vec<_> =
                    all.iter().filter(|kind| kinds.has(**kind)).map(|kind| format!("{kind:?} ")).collect();
                let names = if names == ["IpInIp "] { String::new() } else { names.concat() };
                format!("open {names}as {}", self.cast.class(*class).unwrap_or("other"))
            }
            Action::Host => "this host".to_owned(),
            Action::Punt => "to the role".to_owned(),
            Action::Drop(reason) => format!("drop, {reason}"),
        };
        let noticed = notice.map_or(String::new(), |interval| format!(", noticed every {interval:?}"));
        let kept = aside.map_or(String::new(), |aside| {
            format!(", or forwarded by a data path that keeps the last {}", aside.packets)
        });
        let action = action + &noticed + &kept;
        match lifetime {
            Lifetime::Permanent => action,
            Lifetime::SoftState(span) => format!("{action}, until {span:?} after data from there"),
            Lifetime::ReportIdle(span) => format!("{action}, told when unused for {span:?}"),
            Lifetime::Until(at) => format!("{action}, until {} ms", at.0 as f64 / 1e6),
        }
    }

    fn ingress_policy(&self, policy: Option<IngressPolicy>) -> String {
        let Some(policy) = policy else { return "removed".to_owned() };
        let name = |class| self.cast.class(class).unwrap_or("other");
        let check = policy.check.map_or(String::new(), |back| {
            format!(", must come from where {} leads, {} strays a second", name(back), policy.punts)
        });
        format!("{}{check}", name(policy.class))
    }
}

/// Returns the node's own link address on an interface.
pub(crate) const fn own(iface: Iface) -> Mac {
    Mac([2, 0, 0, 0, 1, iface.0 as u8])
}

fn mark_name(mark: &Mark) -> String {
    let fields: Vec<String> =
        mark.fields.iter().map(|(name, field)| format!(" {name}={}", value(field))).collect();
    let span = match mark.span {
        Some(Span::Begins(stage)) => format!(", begins {stage}"),
        Some(Span::Ends(stage)) => format!(", ends {stage}"),
        None => String::new(),
    };
    format!("mark {}{}{span}", mark.name, fields.concat())
}

/// Returns a value as text for readers.
fn value(of: &Value) -> String {
    match of {
        Value::None => "none".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::List(values) => format!("[{}]", values.iter().map(value).collect::<Vec<_>>().join(", ")),
        Value::Map(entries) => {
            let fields: Vec<String> =
                entries.iter().map(|(name, field)| format!("{name}={}", value(field))).collect();
            format!("{{{}}}", fields.join(" "))
        }
    }
}
