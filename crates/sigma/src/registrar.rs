//! The registrar: sends the mobile node's address to the location manager until the location manager confirms it. Data
//! do not wait for the confirmation.

use crate::config::RegistrarConfig;
use crate::mark::SigmaEvent;
use crate::message::{
    Failure, Header, Message, PORT, Question, Rcode, Received, ResourceRecord, TsigKey, class, kind, opcode,
};
use crate::request_limits::{LONGEST, PAUSES, STREAMS, port};
use node::{Addr, Outbox, Rng, StreamEvent, StreamId, StreamOp, Transport};
use wire::{Duration, Instant, Ipv4Addr, WallTime};

/// The pause between a failed registration and the next one.
const RELIEF: Duration = Duration::from_secs(30);

/// An update that is not answered yet.
#[derive(Debug)]
struct Pending {
    stream: StreamId,
    address: Ipv4Addr,
    /// The signed message. Each attempt sends the same bytes, so that the location manager can recognize a
    /// repetition.
    bytes: Vec<u8>,
    id: u16,
    code: [u8; 32],
    attempts: u32,
    /// Whether the stream is open.
    open: bool,
}

/// Registers the address of a mobile node with its location manager.
#[derive(Debug)]
pub struct Registrar {
    config: RegistrarConfig,
    role: &'static str,
    key: TsigKey,
    /// The number of the registrar's first stream.
    first: u32,
    streams: u32,
    rng: Rng,
    zero: WallTime,
    /// How far the location manager's clock is ahead of this host's clock, in seconds.
    ahead: i64,
    /// The number of the last update.
    sequence: u64,
    /// The number of the update in the TXT record at the location manager; `None` if the number is not known.
    known: Option<u64>,
    wanted: Option<Ipv4Addr>,
    /// The address that the location manager has confirmed; `None` while a registration is not confirmed.
    told: Option<Ipv4Addr>,
    pending: Option<Pending>,
    due: Option<Instant>,
}

impl Registrar {
    /// Creates a registrar for the role with the name `role`. The streams of the registrar have the 64 numbers from
    /// `first` on.
    pub fn new(config: RegistrarConfig, role: &'static str, first: u32, rng: Rng) -> Self {
        let key = config.tsig();
        Self {
            config,
            role,
            key,
            first,
            streams: 0,
            rng,
            zero: WallTime::default(),
            ahead: 0,
            sequence: 0,
            known: None,
            wanted: None,
            told: None,
            pending: None,
            due: None,
        }
    }

    /// Sets the wall time at [`Instant::ZERO`], by which updates are signed.
    pub const fn set_clock(&mut self, zero: WallTime) {
        self.zero = zero;
    }

    /// Returns whether the number of a stream is one of the 64 numbers of the registrar.
    pub fn has(&self, id: StreamId) -> bool {
        (self.first..self.first + STREAMS).contains(&id.0)
    }

    /// Returns when [`Registrar::timeout`] is due; `None` if no registration is under way or planned.
    pub const fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// Starts a registration of `address`. The update is sent from this address. An earlier update that is not answered
    /// is no longer repeated.
    pub fn register(&mut self, now: Instant, address: Ipv4Addr, out: &mut Outbox) {
        self.wanted = Some(address);
        self.begin(now, out);
    }

    /// Starts a registration of `address`, unless the location manager has confirmed this address, or an update with it
    /// was sent at most once and is not answered yet.
    pub(crate) fn register_once(&mut self, now: Instant, address: Ipv4Addr, out: &mut Outbox) {
        let said = self.pending.as_ref().filter(|pending| pending.attempts <= 1);
        let says = said.map(|pending| pending.address);
        if self.wanted != Some(address) || says.or(self.told) != Some(address) {
            self.register(now, address, out);
        }
    }

    /// Begins a registration of the wanted address, from a new random port.
    fn begin(&mut self, now: Instant, out: &mut Outbox) {
        self.told = None;
        if let Some(old) = self.pending.take() {
            out.stream(old.stream, StreamOp::Finish);
        }
        let Some(address) = self.wanted else { return };
        let stream = StreamId(self.first + self.streams % STREAMS);
        self.streams = self.streams.wrapping_add(1);
        let (bytes, id, code) = self.update(now, address);
        self.pending = Some(Pending { stream, address, bytes, id, code, attempts: 0, open: false });
        let port = port(&mut self.rng);
        let (local, peer) = (Some(Addr::new(address, port)), Addr::new(self.config.address, PORT));
        out.stream(stream, StreamOp::Open { by: Transport::Udp, local, peer, foreign: false });
        self.due = Some(now + PAUSES[0]);
    }

    /// Returns the bytes, the message number and the MAC of a signed update. The update replaces all addresses of the
    /// mobile node by `address`. If the number in the TXT record is known, the update has this number as a
    /// prerequisite. So a delayed update cannot replace a newer update.
    fn update(&mut self, now: Instant, address: Ipv4Addr) -> (Vec<u8>, u16, [u8; 32]) {
        let seconds = self.seconds(now);
        self.sequence = self.sequence.max(seconds << 16) + 1;
        let id = self.rng.draw() as u16;
        let header = Header { id, opcode: opcode::UPDATE, ..Header::default() };
        let zone = Question { name: self.config.zone.clone(), kind: kind::SOA, class: class::IN };
        let record = |class, kind, ttl, data| {
            let name = self.config.name.clone();
            ResourceRecord { name, kind, class, ttl, data }
        };
        let before = self.known.map(|known| record(class::IN, kind::TXT, 0, text(known)));
        let changes = vec![
            record(class::ANY, kind::A, 0, Vec::new()),
            record(class::ANY, kind::TXT, 0, Vec::new()),
            record(class::IN, kind::A, 0, address.octets().to_vec()),
            record(class::IN, kind::TXT, 0, text(self.sequence)),
        ];
        let (questions, answers) = (vec![zone], before.into_iter().collect());
        let message = Message { header, questions, answers, authority: changes, additional: Vec::new() };
        let (bytes, code) = self.key.sign(&message.emit(), None, seconds);
        (bytes, id, code)
    }

    fn seconds(&self, now: Instant) -> u64 {
        let wall = self.zero.0.saturating_add(now.0.cast_signed()).div_euclid(1_000_000_000);
        wall.saturating_add(self.ahead).max(0).cast_unsigned()
    }

    /// Repeats an update that was not answered, or begins the next registration. After the last repetition, or if the
    /// stream did not open, the registration fails. Does nothing before [`Registrar::deadline`].
    pub fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        self.due = None;
        let Some(pending) = &mut self.pending else { return self.begin(now, out) };
        let next = PAUSES.get(pending.attempts as usize);
        match next.filter(|_| pending.open) {
            Some(pause) => {
                self.due = Some(now + *pause);
                self.send(out);
            }
            None => self.fail(now, "no answer", out),
        }
    }

    fn send(&mut self, out: &mut Outbox) {
        let Some(pending) = &mut self.pending else { return };
        pending.attempts += 1;
        let (address, attempt) = (pending.address, pending.attempts);
        out.stream(pending.stream, StreamOp::Write(pending.bytes.clone()));
        out.mark(SigmaEvent::RegistrationSent { role: self.role, address, attempt }.into());
    }

    fn fail(&mut self, now: Instant, why: &str, out: &mut Outbox) {
        if let Some(pending) = self.pending.take() {
            out.stream(pending.stream, StreamOp::Finish);
        }
        self.due = Some(now + RELIEF);
        out.mark(SigmaEvent::RegistrationFailed { role: self.role, why: why.to_owned() }.into());
    }

    /// Handles an event of one of the registrar's streams. Returns whether the event confirms the address of the mobile
    /// node.
    pub fn stream(&mut self, now: Instant, id: StreamId, event: &StreamEvent<'_>, out: &mut Outbox) -> bool {
        let Some(pending) = self.pending.as_mut().filter(|pending| pending.stream == id) else {
            return false;
        };
        match event {
            StreamEvent::Opened(_) if !pending.open => {
                pending.open = true;
                out.stream(id, StreamOp::Read(LONGEST));
                self.send(out);
            }
            StreamEvent::Data(bytes) => self.answer(now, bytes, out),
            // The port is in use, or this host does not have the address: not yet, or not any more.
            StreamEvent::Closed(_) => {
                self.pending = None;
                self.due = Some(now + PAUSES[1]);
            }
            StreamEvent::Opened(_)
            | StreamEvent::Accepted(..)
            | StreamEvent::Room(_)
            | StreamEvent::Finished
            | StreamEvent::Migrate(_) => {}
        }
        self.told.is_some()
    }

    fn answer(&mut self, now: Instant, bytes: &[u8], out: &mut Outbox) {
        let (seconds, ahead) = (self.seconds(now), self.ahead);
        let Some(pending) = &self.pending else { return };
        let verdict = self.judge(pending, bytes, seconds);
        let (stream, address) = (pending.stream, pending.address);
        match verdict {
            // There is no valid answer yet, or the update could not be stored (SERVFAIL). A repetition may succeed.
            None | Some(Verdict::Refused(Rcode::ServFail)) => {
                out.stream(stream, StreamOp::Read(LONGEST));
            }
            Some(Verdict::Done) => {
                self.known = Some(self.sequence);
                self.pending = None;
                self.told = Some(address);
                self.due = Some(now + self.config.refresh);
                out.stream(stream, StreamOp::Finish);
                out.mark(SigmaEvent::Registered { role: self.role, address }.into());
            }
            // The location manager does not accept the signing time. The next update is signed with the time of the
            // location manager's clock.
            Some(Verdict::Time(theirs)) => {
                let ours = seconds.cast_signed().saturating_sub(ahead);
                self.ahead = theirs.cast_signed().saturating_sub(ours);
                if self.ahead == ahead { self.fail(now, "BADTIME", out) } else { self.begin(now, out) }
            }
            // The TXT record has another number than `known`. The next update has no prerequisite.
            Some(Verdict::Refused(Rcode::NxRrSet)) if self.known.is_some() => {
                self.known = None;
                self.begin(now, out);
            }
            Some(Verdict::Refused(rcode)) => self.fail(now, rcode.name(), out),
        }
    }

    /// Evaluates an answer; `None` if the answer is not to this update, its signature is wrong, or its result is
    /// unknown.
    fn judge(&self, pending: &Pending, bytes: &[u8], seconds: u64) -> Option<Verdict> {
        let Received { message: Message { header, .. }, signed } = Received::parse(bytes).ok()?;
        let signed = signed?;
        if !header.is_response || header.id != pending.id || header.opcode != opcode::UPDATE {
            return None;
        }
        signed.verify(&self.key, Some(&pending.code), seconds).ok()?;
        if signed.tsig.error == Failure::BadTime as u16 {
            return Some(Verdict::Time(signed.tsig.server_time()?));
        }
        match Rcode::of(header.rcode)? {
            Rcode::NoError => Some(Verdict::Done),
            refused => Some(Verdict::Refused(refused)),
        }
    }
}

enum Verdict {
    Done,
    Time(u64),
    Refused(Rcode),
}

/// Returns the data of the TXT record with the number of an update, for example `seq=7`.
fn text(sequence: u64) -> Vec<u8> {
    let text = format!("seq={sequence}");
    let mut data = vec![text.len() as u8];
    data.extend(text.bytes());
    data
}
