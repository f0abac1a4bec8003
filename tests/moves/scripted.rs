//! Scripted roles: the two ends of the conversation, and the router between them.

use crate::moves::voice::Voice;
use node::{
    Action, Addr, Command, CommandId, Guard, Hop, Input, Lifetime, Mark, MigrateEvent, MigrateOp, NextHop,
    Outbox, Role, Route, RouteKey, StreamEvent, StreamId, StreamOp, Transport, Tuple, Value,
};
use std::sync::{Arc, Mutex};
use wire::{Iface, Instant, Ipv4Addr, Prefix, TcpState};

/// The address of the service, which moves between hosts.
pub(crate) const SERVICE: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 9);
/// The tuple of the connection that moves, as the host of the service sees it.
pub(crate) const TUPLE: Tuple =
    Tuple { local: Addr::new(SERVICE, 80), remote: Addr::new(Ipv4Addr::new(10, 0, 0, 1), 40_000) };

/// The state that moves from one host to the other: the connection, and the progress of the service.
#[derive(Debug)]
pub(crate) struct Baton {
    state: Box<TcpState>,
    voice: Voice,
}

/// The channel between hosts, which is not under test. A newer state replaces one that was not taken out.
pub(crate) type Courier = Arc<Mutex<Option<Baton>>>;

/// The largest number of packets that a guard at the new host holds.
const HELD: usize = 64;
/// The largest number of bytes of one read.
const CHUNK: usize = 16 * 1024;
const LISTENER: StreamId = StreamId(0);
const OUTWARD: StreamId = StreamId(1);
const NAME: &str = "talker";

/// One end of the conversation: it writes as much as it has credit for, and reads all data, until a command changes
/// that.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate fact")]
pub(crate) struct Talker {
    listens: bool,
    courier: Courier,
    voice: Voice,
    stream: StreamId,
    connected: bool,
    credit: usize,
    /// Whether the talker reads nothing, so that bytes wait in the socket.
    rests: bool,
    /// Whether the connection is between `freeze` and `thaw`. Then the talker must write nothing, because the exported
    /// state would not have it.
    frozen: bool,
    finishing: bool,
    /// Whether the next byte received is marked.
    awaits: bool,
    imports: u32,
    closed: bool,
    asked: Option<CommandId>,
}

impl Talker {
    /// Returns one end of the conversation. `listens` is whether it waits for the connection from the start.
    pub(crate) fn new(listens: bool, seed: u64, courier: &Courier) -> Self {
        Self {
            listens,
            courier: Arc::clone(courier),
            voice: Voice::new(seed),
            stream: OUTWARD,
            connected: false,
            credit: 0,
            rests: false,
            frozen: false,
            finishing: false,
            awaits: false,
            imports: 0,
            closed: false,
            asked: None,
        }
    }

    // --- commands --------------------------------------------------------------------------------------------------

    fn obey(&mut self, id: CommandId, command: &Command, out: &mut Outbox) {
        match command.verb.as_str() {
            "call" => {
                let (local, peer) = (Some(TUPLE.remote), TUPLE.local);
                out.stream(OUTWARD, StreamOp::Open { by: Transport::Tcp, local, peer, foreign: false });
            }
            "rest" => self.rests = true,
            "freeze" => {
                self.frozen = true;
                out.stream(self.stream, StreamOp::Migrate(MigrateOp::Freeze));
                out.mark(Mark::new(NAME, "frozen"));
            }
            "export" => return self.ask(id, StreamOp::Migrate(MigrateOp::Export), out),
            "import" => return self.import(id, out),
            "thaw" => self.thaw(out),
            "forget" => return self.ask(id, StreamOp::Migrate(MigrateOp::Forget), out),
            "hold" => {
                out.stream(self.stream, StreamOp::Migrate(MigrateOp::Guard(TUPLE, Some(Guard::Hold(HELD)))));
            }
            "drop" => out.stream(self.stream, StreamOp::Migrate(MigrateOp::Guard(TUPLE, Some(Guard::Drop)))),
            "lift" => out.stream(self.stream, StreamOp::Migrate(MigrateOp::Guard(TUPLE, None))),
            "finish" => {
                self.finishing = true;
                out.stream(self.stream, StreamOp::Finish);
            }
            _ => {} // `report`
        }
        out.answer(id, Ok(self.report()));
    }

    /// Starts an operation. Its result is the answer to the command.
    fn ask(&mut self, id: CommandId, op: StreamOp, out: &mut Outbox) {
        self.asked = Some(id);
        out.stream(self.stream, op);
    }

    fn import(&mut self, id: CommandId, out: &mut Outbox) {
        let Some(baton) = self.courier.lock().unwrap().take() else {
            return out.answer(id, Err("nothing has come".to_owned()));
        };
        self.imports += 1;
        self.stream = StreamId(OUTWARD.0 + self.imports);
        (self.voice, self.credit, self.frozen, self.connected) = (baton.voice, 0, true, true);
        self.ask(id, StreamOp::Migrate(MigrateOp::Import(baton.state)), out);
    }

    fn thaw(&mut self, out: &mut Outbox) {
        out.stream(self.stream, StreamOp::Migrate(MigrateOp::Thaw));
        out.mark(Mark::new(NAME, "thawed"));
        (self.frozen, self.rests, self.awaits) = (false, false, true);
        out.stream(self.stream, StreamOp::Read(CHUNK));
        self.say(out);
    }

    fn report(&self) -> Value {
        Value::map([
            ("said", Value::from(self.voice.said().0)),
            ("heard", Value::from(self.voice.heard().0)),
            ("closed", Value::from(u32::from(self.closed))),
        ])
    }

    // --- the stream ------------------------------------------------------------------------------------------------

    fn event(&mut self, id: StreamId, event: StreamEvent<'_>, out: &mut Outbox) {
        match event {
            StreamEvent::Opened(_) if id == LISTENER => {}
            StreamEvent::Opened(_) => self.connected(id, out),
            StreamEvent::Accepted(new, ..) => self.connected(new, out),
            StreamEvent::Room(more) => {
                self.credit += more;
                self.say(out);
            }
            StreamEvent::Data(bytes) => self.hear(bytes, out),
            StreamEvent::Finished => out.mark(Mark::new(NAME, "finished")),
            StreamEvent::Migrate(MigrateEvent::Exported(state)) => self.exported(state, out),
            StreamEvent::Migrate(MigrateEvent::Imported) => self.answer(Ok(self.report()), out),
            StreamEvent::Migrate(MigrateEvent::Refused(why)) => self.answer(Err(why.to_owned()), out),
            StreamEvent::Migrate(MigrateEvent::Parted(_)) => {} // nothing is relayed here
            StreamEvent::Closed(why) => self.closed(why, out),
        }
    }

    fn connected(&mut self, id: StreamId, out: &mut Outbox) {
        (self.stream, self.connected) = (id, true);
        out.stream(id, StreamOp::Read(CHUNK));
    }

    fn say(&mut self, out: &mut Outbox) {
        let len = std::mem::take(&mut self.credit);
        if len > 0 && self.connected && !self.frozen && !self.finishing {
            out.stream(self.stream, StreamOp::Write(self.voice.say(len)));
        } else {
            self.credit = len;
        }
    }

    fn hear(&mut self, bytes: &[u8], out: &mut Outbox) {
        self.voice.hear(bytes);
        if std::mem::take(&mut self.awaits) {
            out.mark(Mark::new(NAME, "first_byte"));
        }
        if !self.rests {
            out.stream(self.stream, StreamOp::Read(CHUNK));
        }
    }

    fn exported(&mut self, state: &TcpState, out: &mut Outbox) {
        let waits = |bytes: &Vec<u8>| Value::from(bytes.len() as u64);
        let mark = Mark::new(NAME, "exported")
            .with("unread", waits(&state.unread))
            .with("unacknowledged", waits(&state.unacknowledged));
        out.mark(mark);
        *self.courier.lock().unwrap() =
            Some(Baton { state: Box::new(state.clone()), voice: self.voice.clone() });
        self.answer(Ok(self.report()), out);
    }

    /// Handles the end of a stream. If a command requested it, the command is answered. Otherwise the conversation has
    /// ended.
    fn closed(&mut self, why: Option<&str>, out: &mut Outbox) {
        self.connected = false;
        if self.asked.is_some() {
            return self.answer(why.map_or(Ok(Value::None), |why| Err(why.to_owned())), out);
        }
        self.closed = true;
        let ((said, said_sum), (heard, heard_sum)) = (self.voice.said(), self.voice.heard());
        let mark = Mark::new(NAME, "closed").with("said", said).with("said_sum", said_sum);
        let mark = mark.with("heard", heard).with("heard_sum", heard_sum);
        out.mark(mark.with("why", why.unwrap_or_default()));
    }

    fn answer(&mut self, answer: Result<Value, String>, out: &mut Outbox) {
        match (self.asked.take(), answer) {
            (Some(id), answer) => out.answer(id, answer),
            (None, Err(why)) => out.mark(Mark::new(NAME, "refused").with("why", why)),
            (None, Ok(_)) => out.mark(Mark::new(NAME, "refused").with("why", "answered without a question")),
        }
    }
}

impl Role for Talker {
    fn name(&self) -> &'static str {
        NAME
    }
    fn verbs(&self) -> &[&'static str] {
        &[
            "call", "rest", "freeze", "export", "import", "thaw", "forget", "hold", "drop", "lift", "finish",
            "report",
        ]
    }
    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(_) if self.listens => {
                out.stream(
                    LISTENER,
                    StreamOp::Listen { by: Transport::Tcp, local: TUPLE.local, foreign: false },
                );
            }
            Input::Stream(id, event) => self.event(id, event, out),
            Input::Command(id, command) => self.obey(id, command, out),
            _ => {}
        }
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn status(&self) -> Value {
        self.report()
    }
}

/// The router: it sends packets for the service to the host of the last command.
#[derive(Debug)]
pub(crate) struct Switch {
    /// Names, interfaces and addresses of the hosts at which the service may be.
    pub(crate) hosts: Vec<(String, Iface, Ipv4Addr)>,
}

impl Switch {
    fn point(&self, at: Option<&str>, out: &mut Outbox) -> Result<Value, String> {
        let host = self.hosts.iter().find(|(name, ..)| at == Some(name.as_str()));
        let (_, iface, address) = host.ok_or_else(|| format!("no way to {at:?}"))?;
        let key = RouteKey { class: None, src: Prefix::ANY, dst: Prefix::host(SERVICE) };
        let hop = Hop { iface: *iface, to: NextHop::Via(*address) };
        out.route(key, Route::new(Action::Forward(hop), Lifetime::Permanent));
        Ok(Value::None)
    }
}

impl Role for Switch {
    fn name(&self) -> &'static str {
        "switch"
    }
    fn verbs(&self) -> &[&'static str] {
        &["route"]
    }
    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        if let Input::Command(id, command) = input {
            let answer = self.point(command.args.get("to").and_then(Value::as_text), out);
            out.answer(id, answer);
        }
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn status(&self) -> Value {
        Value::None
    }
}
