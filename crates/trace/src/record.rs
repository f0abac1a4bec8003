//! Records: what happened at a host, or on the link at one of its interfaces.

use crate::app::{self, AppLine};
use crate::event::{Event, EventKind};
use crate::intern::intern;
use crate::text::{Trail, hex, json_of, unhex, value_of};
use node::stream::OwnedStreamEvent;
use node::{AppChange, AppEvent, Mark, Node, Span, Stage, StreamId, StreamOp, Value};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use wire::{Cell, EtherType, Frame, Iface, Instant, Mac, Packet, PacketId};

/// A host of a scenario: its index in the scenario's list of hosts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct HostId(pub u32);

impl HostId {
    /// Returns the index of this host in the scenario's list of hosts, from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One record of a run: what happened at a host, and when.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// The instant of the recorded event, in nanoseconds since the start of the run.
    pub at: Instant,
    /// The host at which the recorded event happened. An event of a link is recorded at one host, which the scenario's plan chooses.
    pub host: HostId,
    /// What happened, with its data.
    pub what: What,
}

/// What happened at a host. `docs/glossary.md` lists the reasons for which packets are dropped or lost.
#[derive(Clone, PartialEq, Debug)]
pub enum What {
    /// The node received a packet from an interface. If the interface is [`Iface::HOST`], the host's own stack sent the
    /// packet.
    Received(Iface, Packet),
    /// The node sent a packet by an interface. If the interface is [`Iface::HOST`], the packet is for the host's own
    /// stack.
    Sent(Iface, Packet),
    /// The node dropped a packet, for this reason.
    Dropped(Iface, PacketId, Trail),
    /// A link lost a packet that this host had sent by the interface. If the interface is [`Iface::HOST`], the packet
    /// ended in the host's own stack.
    Lost(Iface, PacketId, Trail),
    /// The run ended while this packet had no end yet. The packet was at the link of this interface, in the host's own
    /// stack ([`Iface::HOST`]), or in the node and its roles (`None`).
    Held(Option<Iface>, PacketId),
    /// An application sent a datagram to the stack.
    AppSent(PacketId),
    /// An application received a datagram from the stack.
    AppReceived(PacketId),
    /// An event of an application's stream.
    App(AppEvent),
    /// A role requested that a radio tunes to this cell.
    Tuned(Iface, Cell),
    /// A role requested that a radio sends one packet in this cell, and then returns to its former cell.
    Visited(Iface, Cell),
    /// An interface can carry packets now, or it has another MTU. The cell is that of a radio that tunes, `None` for
    /// other interfaces.
    Up(Iface, Option<Cell>),
    /// An interface carries no packets, for this reason; or a radio cannot tune to the requested cell (`unsupported`).
    Down(Iface, Trail),
    /// A mark: a named step of a protocol, or a change inside a TCP connection.
    Marked(Mark),
    /// The node answered an operator's command with a value, or with an error.
    Answered(Result<Value, String>),
    /// An event of the scenario happened. An event of a link is recorded at one host, which the plan chooses.
    Ordered(Event),
}

impl What {
    /// Returns the record of a stream's event, or `None` if the event is not recorded. For a stream of a role that
    /// serves programs, only received datagrams are recorded.
    pub fn delivered(event: &OwnedStreamEvent, node: &Node) -> Option<Self> {
        match event {
            OwnedStreamEvent::Data(_, packet, _) if *packet != PacketId::NEW => {
                Some(Self::AppReceived(*packet))
            }
            event if node.relays(event.event().0) => None,
            event => AppEvent::of_event(event).map(Self::App),
        }
    }

    /// Returns the record of a request to open a stream or to listen. `None` for other requests, and for requests of a
    /// role that serves programs.
    pub fn asked(id: StreamId, op: &StreamOp, node: &Node) -> Option<Self> {
        let role = node.user_of(id).filter(|_| !node.relays(id))?;
        AppEvent::of_op(role, id, op).map(Self::App)
    }

    /// Returns the number of bytes of a stream that an application received, or `None` for any other record.
    pub const fn read(&self) -> Option<u64> {
        match self {
            Self::App(AppEvent { change: AppChange::Read(bytes), .. }) => Some(*bytes),
            _ => None,
        }
    }
}

/// A record as one line of JSON. `t` is the instant in nanoseconds of the run, and `event` says what happened. All
/// other fields are optional.
#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Line {
    t: u64,
    event: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    iface: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    packet: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    app: Option<AppLine>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    kind: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    src: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    dst: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    bytes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    cell: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    role: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    begins: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    ends: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    fields: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    error: Option<String>,
}

impl Record {
    /// Returns the record as one line of JSON, without the host: all records in a daemon's file are of one host.
    pub fn to_line(&self) -> String {
        let line = line(self.at, &self.what);
        serde_json::to_string(&line).unwrap_or_default()
    }

    /// Parses one line of JSON from the file of `host`. The error is that of the JSON parser. If a field is missing or
    /// wrong, the error contains the line.
    pub fn from_line(host: HostId, text: &str) -> Result<Self, String> {
        let line: Line = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let at = Instant(line.t);
        let what = what(&line).ok_or_else(|| format!("a field is missing or wrong in `{text}`"))?;
        Ok(Self { at, host, what })
    }
}

fn line(at: Instant, what: &What) -> Line {
    let base = |event: &str| Line { t: at.0, event: event.to_owned(), ..Line::default() };
    let on = |event: &str, iface: Iface| Line { iface: Some(iface.0), ..base(event) };
    match what {
        What::Received(iface, packet) => carry(on("received", *iface), packet),
        What::Sent(iface, packet) => carry(on("sent", *iface), packet),
        What::Dropped(iface, id, reason) => {
            Line { packet: Some(id.0), reason: Some(reason.to_string()), ..on("dropped", *iface) }
        }
        What::Lost(iface, id, reason) => {
            Line { packet: Some(id.0), reason: Some(reason.to_string()), ..on("lost", *iface) }
        }
        What::Held(iface, id) => {
            Line { packet: Some(id.0), iface: iface.map(|iface| iface.0), ..base("held") }
        }
        What::AppSent(id) => Line { packet: Some(id.0), ..base("app_sent") },
        What::AppReceived(id) => Line { packet: Some(id.0), ..base("app_received") },
        What::App(event) => Line { app: Some(app::line(event)), ..base("app") },
        What::Tuned(iface, cell) => Line { cell: Some(cell.0), ..on("tune", *iface) },
        What::Visited(iface, cell) => Line { cell: Some(cell.0), ..on("visit", *iface) },
        What::Up(iface, cell) => Line { cell: cell.map(|cell| cell.0), ..on("up", *iface) },
        What::Down(iface, why) => Line { reason: Some(why.to_string()), ..on("down", *iface) },
        What::Marked(mark) => mark_line(base("mark"), mark),
        What::Ordered(event) => ordered_line(base("ordered"), event),
        What::Answered(Ok(value)) => Line { fields: Some(json_of(value)), ..base("answer") },
        What::Answered(Err(error)) => Line { error: Some(error.clone()), ..base("answer") },
    }
}

fn carry(line: Line, packet: &Packet) -> Line {
    Line {
        packet: Some(packet.id.0),
        kind: Some(packet.link.kind.0),
        src: Some(packet.link.src.to_string()),
        dst: Some(packet.link.dst.to_string()),
        bytes: Some(hex(&packet.bytes)),
        ..line
    }
}

fn mark_line(line: Line, mark: &Mark) -> Line {
    let (begins, ends) = match mark.span {
        Some(Span::Begins(stage)) => (Some(stage.name().to_owned()), None),
        Some(Span::Ends(stage)) => (None, Some(stage.name().to_owned())),
        None => (None, None),
    };
    let fields =
        Value::Map(mark.fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect());
    Line {
        role: Some(mark.role.to_owned()),
        name: Some(mark.name.to_owned()),
        packet: mark.packet.map(|id| id.0),
        begins,
        ends,
        fields: (!mark.fields.is_empty()).then(|| json_of(&fields)),
        ..line
    }
}

fn ordered_line(line: Line, event: &Event) -> Line {
    let fields = [("target", Some(&event.target)), ("value", event.value.as_ref())];
    let given = fields.into_iter().filter_map(|(name, text)| Some((name.to_owned(), (&**text?).into())));
    let fields = Value::Map(given.collect());
    Line { name: Some(event.kind.name().to_owned()), fields: Some(json_of(&fields)), ..line }
}

fn what(line: &Line) -> Option<What> {
    let iface = || line.iface.map(Iface);
    let id = || line.packet.map(PacketId);
    let cell = || line.cell.map(Cell);
    let reason = || line.reason.clone().map(Cow::Owned);
    Some(match line.event.as_str() {
        "received" => What::Received(iface()?, packet(line)?),
        "sent" => What::Sent(iface()?, packet(line)?),
        "dropped" => What::Dropped(iface()?, id()?, reason()?),
        "lost" => What::Lost(iface()?, id()?, reason()?),
        "held" => What::Held(iface(), id()?),
        "app_sent" => What::AppSent(id()?),
        "app_received" => What::AppReceived(id()?),
        "app" => What::App(app::event(line.app.as_ref()?)?),
        "tune" => What::Tuned(iface()?, cell()?),
        "visit" => What::Visited(iface()?, cell()?),
        "up" => What::Up(iface()?, cell()),
        "down" => What::Down(iface()?, reason()?),
        "ordered" => What::Ordered(ordered(line)?),
        "mark" => What::Marked(mark(line)?),
        "answer" => What::Answered(match (&line.error, &line.fields) {
            (Some(error), _) => Err(error.clone()),
            (None, fields) => Ok(fields.as_ref().map(value_of).unwrap_or_default()),
        }),
        _ => return None,
    })
}

fn packet(line: &Line) -> Option<Packet> {
    let mac = |text: &Option<String>| text.as_deref()?.parse::<Mac>().ok();
    let link = Frame { kind: EtherType(line.kind?), src: mac(&line.src)?, dst: mac(&line.dst)? };
    Some(Packet { link, id: PacketId(line.packet?), bytes: unhex(line.bytes.as_deref()?)? })
}

fn ordered(line: &Line) -> Option<Event> {
    let kind = EventKind::of_name(line.name.as_deref()?)?;
    let text = |key| line.fields.as_ref()?.get(key)?.as_str().map(|text| Cow::Owned(text.to_owned()));
    Some(Event { kind, target: text("target")?, value: text("value") })
}

fn mark(line: &Line) -> Option<Mark> {
    let stage = |name: &str| STAGES.into_iter().find(|stage| stage.name() == name);
    let span = match (&line.begins, &line.ends) {
        (Some(name), _) => Some(Span::Begins(stage(name)?)),
        (None, Some(name)) => Some(Span::Ends(stage(name)?)),
        (None, None) => None,
    };
    let fields = match line.fields.as_ref().map(value_of) {
        Some(Value::Map(entries)) => {
            entries.into_iter().map(|(name, value)| (intern(&name), value)).collect()
        }
        _ => Vec::new(),
    };
    let (role, name) = (intern(line.role.as_deref()?), intern(line.name.as_deref()?));
    Some(Mark { role, name, span, packet: line.packet.map(PacketId), fields })
}

const STAGES: [Stage; 8] = [
    Stage::Link,
    Stage::Detection,
    Stage::Address,
    Stage::Registration,
    Stage::PathSwitch,
    Stage::FirstByte,
    Stage::Recovery,
    Stage::Traffic,
];

#[cfg(test)]
mod tests {
    use super::*;
    use node::Transport;

    fn app_event(change: AppChange) -> What {
        What::App(AppEvent { stream: StreamId(7), change })
    }

    fn records() -> Vec<What> {
        let peer = "10.0.0.1:80".parse().unwrap();
        let link = Frame { kind: EtherType::IPV4, src: Mac([2; 6]), dst: Mac([4; 6]) };
        let packet = Packet { link, id: PacketId(u64::MAX), bytes: vec![0x45, 0, 255] };
        let mark = Mark::new("mobile", "route_update_sent").at(Span::Begins(Stage::Registration));
        vec![
            What::Received(Iface::HOST, packet.clone()),
            What::Sent(Iface(2), packet),
            What::Dropped(Iface(2), PacketId(3), "bad_auth".into()),
            What::Lost(Iface(2), PacketId(3), "queue_full".into()),
            What::Held(None, PacketId(4)),
            What::Held(Some(Iface(1)), PacketId(4)),
            What::AppSent(PacketId(5)),
            What::AppReceived(PacketId(5)),
            app_event(AppChange::Read(1460)),
            app_event(AppChange::Asked {
                role: "bulk-client",
                by: Transport::Role("sctp"),
                local: None,
                peer: Some(peer),
            }),
            app_event(AppChange::Asked {
                role: "bulk-server",
                by: Transport::Tcp,
                local: Some(peer),
                peer: None,
            }),
            app_event(AppChange::Opened(peer)),
            app_event(AppChange::Accepted { new: StreamId(StreamId::DRIVER), local: peer, peer }),
            app_event(AppChange::Finished),
            app_event(AppChange::Closed(None)),
            app_event(AppChange::Closed(Some("timed out".to_owned()))),
            What::Tuned(Iface(1), Cell(3)),
            What::Visited(Iface(1), Cell(3)),
            What::Up(Iface(1), None),
            What::Up(Iface(1), Some(Cell(3))),
            What::Down(Iface(1), "unsupported".into()),
            What::Marked(mark.clone().with("to", "b3").with("n", 7u32)),
            What::Marked(Mark {
                span: Some(Span::Ends(Stage::PathSwitch)),
                packet: Some(PacketId(1)),
                ..mark
            }),
            What::Answered(Ok(Value::map([("ok", Value::Int(1))]))),
            What::Answered(Err("no".to_owned())),
            What::Ordered(Event::new(EventKind::Crash, "home")),
            What::Ordered(Event { value: Some("10 %".into()), ..Event::new(EventKind::Loss, "cell 2") }),
        ]
    }

    #[test]
    fn what_is_written_is_read_back() {
        for what in records() {
            let record = Record { at: Instant(1_234_567_890_123), host: HostId(4), what };
            assert_eq!(Record::from_line(HostId(4), &record.to_line()), Ok(record));
        }
    }

    #[test]
    fn a_broken_line_is_refused_and_named() {
        for bad in [
            "",
            "{}",
            r#"{"t":1,"event":"sent","iface":1}"#,
            r#"{"t":1,"event":"dance"}"#,
            r#"{"t":1,"x":2}"#,
        ] {
            assert!(Record::from_line(HostId(0), bad).is_err(), "{bad}");
        }
    }
}
