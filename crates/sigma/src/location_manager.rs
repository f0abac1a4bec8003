//! The location manager: it holds the addresses of its mobile nodes, from their signed updates, and answers queries.
//!
//! An update is accepted if it passes these checks:
//!
//! - A configured key signed the update.
//! - The signing time differs from the location manager's clock by at most the fudge of the signature, and is not
//!   before the signing time of the last accepted update.
//! - The update is not a repetition, and the mobile node did not exceed its rates.
//! - The changes are permitted (RFC 2136, section 3).
//!
//! Then the record of the new state is stored. When the record is durable, the update takes effect and is answered. A
//! later update that arrives before this time is based on the accepted update. If the record cannot be stored, the
//! records of such later updates cannot be stored either.
//!
//! When a registration ends, only addresses and texts are removed. The signing time and MACs of the last updates are
//! kept, so that an old update cannot be replayed.

use crate::config::LocationManagerConfig;
use crate::location::{CODES, Location};
use crate::mark::{LOCATION_MANAGER, SigmaEvent};
use crate::message::{
    Failure, Header, Message, Name, Question, Rcode, Received, ResourceRecord, Signed, TsigKey, class, kind,
    opcode, unsigned,
};
use crate::update::Update;
use node::config::ConfigError;
use node::{
    Addr, Boot, Expiry, FailedAct, Input, Outbox, Role, StreamEvent, StreamId, StreamOp, Transport, Value,
};
use std::collections::{BTreeMap, VecDeque};
use wire::{Duration, Instant, Ipv4Addr, WallTime};

const LISTENER: StreamId = StreamId(0);
const TOO_MANY: &str = "too many messages in this second";
/// The maximum length of a message that is read, in bytes: the MTU of an Ethernet link.
const LONGEST: usize = 1500;
/// The maximum number of streams whose message is not read yet.
const HEARD: usize = 4096;
/// The maximum number of hosts whose answers are counted separately in one second.
const HOSTS: usize = 4096;
/// The maximum number of answers in one second to all hosts that are not counted separately (not from an RFC).
const SHARED: u16 = 4096;
/// The maximum number of signed messages that are checked in one second, in addition to [`VERIFIED_OF_KNOWN`] (not from
/// an RFC). At 10 us for each, they take 0.2 s.
const VERIFIED: u16 = 20_000;
/// The maximum number of signed messages that are checked in one second for each mobile node, in addition to
/// [`VERIFIED`] (not from an RFC). Only messages from the source address of the mobile node's last update count. So
/// forged messages from other addresses cannot use up this number.
const VERIFIED_OF_KNOWN: u16 = 2000;
/// The UDP payload size in the OPT record of an answer, in bytes (RFC 6891, section 6.2.4). With the headers of IPv4
/// and UDP, it needs an MTU of at least 1260 bytes.
const PAYLOAD: u16 = 1232;
const NANOS: i64 = 1_000_000_000;
/// The maximum number of records of one mobile node whose storage is not finished: the number of remembered MACs.
const UNDER_WAY: usize = CODES;

/// The state of a mobile node.
#[derive(Debug)]
struct Entry {
    key: TsigKey,
    /// The state from which queries are answered: the last durable one, without addresses and texts if the registration
    /// has ended.
    location: Location,
    /// Records whose storage was requested, in the order of the requests. `None`: the record of an ended registration,
    /// whose addresses and texts are removed already.
    under_way: VecDeque<Option<Accepted>>,
    /// The clock for signatures of this mobile node: its wall time at [`Instant::ZERO`]. It is never set back:
    /// otherwise, a mobile node that has signed with a later time could not update its addresses until the clock
    /// reaches this time. It depends on the last accepted update, so each mobile node has a separate clock.
    signature_zero: WallTime,
    updates: Rate,
    queries: Rate,
    /// The source address of the last correctly signed update that was not a repetition; `None` before the first.
    /// Repetitions are excluded, because any host that has heard a signed message can repeat it.
    known: Option<Ipv4Addr>,
    /// The rate of checked messages from the address in `known`. It also counts forged messages with this source
    /// address and the name of this key.
    verified: Rate,
}

impl Entry {
    /// Returns the state on which the next update is based: the state after the last accepted update.
    fn latest(&self) -> &Location {
        let accepted = self.under_way.iter().rev().flatten().next();
        accepted.map_or(&self.location, |accepted| &accepted.location)
    }

    /// Sets the clock for signatures to the wall clock, or to the signing time of the last accepted update if this time
    /// is later. The wall clock may have been set back.
    fn start(&mut self, now: Instant, wall: WallTime) {
        let behind = self.location.signed.saturating_sub(seconds(wall, now));
        let behind = i64::try_from(behind).unwrap_or(i64::MAX).saturating_mul(NANOS);
        self.signature_zero = WallTime(wall.0.saturating_add(behind));
    }

    /// Returns the time of the clock for signatures, in seconds since 1970.
    fn seconds(&self, now: Instant) -> u64 {
        seconds(self.signature_zero, now)
    }
}

/// An update whose record is not durable yet, and the parts of the request that the answer needs.
#[derive(Debug)]
struct Accepted {
    location: Location,
    stream: StreamId,
    asked: Asked,
}

/// The parts of a request that the answer needs.
#[derive(Clone, Debug)]
struct Asked {
    header: Header,
    question: Option<Question>,
    options: bool,
    /// The index in `entries` of the mobile node whose key signed the request, and the MAC of the request; `None`
    /// without a valid signature.
    signer: Option<(usize, Vec<u8>)>,
}

/// A count of events in the current second.
#[derive(Clone, Copy, Default, Debug)]
struct Rate {
    second: u64,
    count: u16,
}

impl Rate {
    fn may(&mut self, now: Instant, most: u16) -> bool {
        let second = now.0 / 1_000_000_000;
        if self.second != second {
            *self = Self { second, count: 0 };
        }
        self.count = self.count.saturating_add(1);
        self.count <= most
    }
}

/// The role of a location manager: a DNS server for one zone that accepts signed updates (RFC 2136, RFC 8945).
#[derive(Debug)]
pub struct LocationManager {
    config: LocationManagerConfig,
    entries: Vec<Entry>,
    by_name: BTreeMap<Name, usize>,
    lapses: Expiry<usize>,
    /// The wall clock at [`Instant::ZERO`].
    zero: WallTime,
    /// Accepted streams whose message is not read yet, and their sources.
    heard: BTreeMap<StreamId, Ipv4Addr>,
    rates: BTreeMap<Ipv4Addr, Rate>,
    /// The rate of answers to all hosts without an entry in `rates`.
    shared: Rate,
    verified: Rate,
    /// The number of answers by result code or error of the signature, and of ignored messages by reason.
    answers: BTreeMap<&'static str, u64>,
}

impl LocationManager {
    /// Creates a location manager with this configuration. Fails if [`LocationManagerConfig::check`] does.
    pub fn new(config: LocationManagerConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let entries: Vec<Entry> = config
            .mobile_nodes
            .iter()
            .map(|node| Entry {
                key: TsigKey { name: node.name.clone(), secret: node.key.clone() },
                location: Location::default(),
                under_way: VecDeque::new(),
                signature_zero: WallTime::default(),
                updates: Rate::default(),
                queries: Rate::default(),
                known: None,
                verified: Rate::default(),
            })
            .collect();
        let by_name = (0..).zip(&entries).map(|(index, entry)| (entry.key.name.clone(), index)).collect();
        Ok(Self {
            config,
            entries,
            by_name,
            lapses: Expiry::default(),
            zero: WallTime::default(),
            heard: BTreeMap::new(),
            rates: BTreeMap::new(),
            shared: Rate::default(),
            verified: Rate::default(),
            answers: BTreeMap::new(),
        })
    }

    fn start(&mut self, now: Instant, boot: &Boot, out: &mut Outbox) {
        self.zero = boot.wall;
        let seconds = seconds(boot.wall, now);
        for (key, value) in &boot.stored {
            let name = Name::read(key, 0).ok().map(|(name, _)| name);
            let Some(index) = name.and_then(|name| self.by_name.get(&name).copied()) else { continue };
            let location = Location::parse(value).unwrap_or_else(|refused| {
                out.mark(SigmaEvent::RecordRefused { why: refused.0 }.into());
                // The damaged record may be of any update until now, so updates that were signed before this start are
                // refused.
                Location { signed: seconds, ..Location::default() }
            });
            if let Some(entry) = self.entries.get_mut(index) {
                entry.location = location;
            }
            self.set_lapse(now, index);
        }
        self.entries.iter_mut().for_each(|entry| entry.start(now, boot.wall));
        out.stream(
            LISTENER,
            StreamOp::Listen { by: Transport::Udp, local: self.config.at(), foreign: false },
        );
    }

    const fn wall(&self, now: Instant) -> i64 {
        self.zero.0.saturating_add(now.0.cast_signed())
    }

    fn set_clock(&mut self, zero: WallTime) {
        self.zero = zero;
        for entry in &mut self.entries {
            entry.signature_zero = entry.signature_zero.max(zero);
        }
    }

    fn set_lapse(&mut self, now: Instant, index: usize) {
        self.lapses.stop(index);
        let Some(Entry { location, .. }) = self.entries.get(index) else { return };
        if !location.is_empty() {
            // If the wall clock was set back, the stored end may be further away than the lifetime of an update.
            let left = location.ends.0.saturating_sub(self.wall(now)).max(0).cast_unsigned();
            self.lapses.set(index, now + Duration::from_nanos(left).min(self.config.lifetime));
        }
    }

    // --- messages --------------------------------------------------------------------------------------------------

    fn accept(&mut self, id: StreamId, peer: Addr, out: &mut Outbox) {
        if self.heard.len() >= HEARD {
            return out.stream(id, StreamOp::Abort);
        }
        self.heard.insert(id, *peer.ip());
        out.stream(id, StreamOp::Read(LONGEST));
    }

    /// Handles a message, and sends at most one answer. Each message has a separate stream. The stream ends with the
    /// answer, or when the message is ignored.
    ///
    /// Source addresses are easily forged. So the correctly signed messages of a mobile node have separate rates, which
    /// a host without the key cannot use up. The rate of checks is different: it is counted before the signature is
    /// checked. So a host that forges the mobile node's source address and names the mobile node's key can use up
    /// [`VERIFIED_OF_KNOWN`].
    fn hear(&mut self, now: Instant, id: StreamId, bytes: &[u8], out: &mut Outbox) {
        let Some(host) = self.heard.remove(&id) else { return };
        let Ok(header) = Header::peek(bytes) else { return self.ignore("unreadable", id, out) };
        if header.is_response {
            return self.ignore("unasked answer", id, out);
        }
        let is_update = header.opcode == opcode::UPDATE;
        let mut asked = Asked { header, question: None, options: false, signer: None };
        let Ok(Received { message, signed }) = Received::parse(bytes) else {
            if !self.may_answer(now, host) {
                return self.ignore(TOO_MANY, id, out);
            }
            return self.refuse(now, id, &asked, Rcode::FormErr, out);
        };
        asked.question = message.questions.first().cloned();
        asked.options = message.additional.iter().any(|record| record.kind == kind::OPT);
        if let Some(signed) = &signed {
            if !self.may_verify(now, host, signed) {
                return self.ignore("too many signatures to verify in this second", id, out);
            }
            match self.signer(now, signed, is_update) {
                Ok(key) => asked.signer = Some((key, signed.tsig.mac.clone())),
                Err(_) if !self.may_answer(now, host) => return self.ignore(TOO_MANY, id, out),
                Err(failure) => return self.distrust(now, id, &asked, signed, failure, out),
            }
        }
        if is_update && let Some(signed) = signed.as_ref().filter(|_| asked.signer.is_some()) {
            return self.update(now, (id, host), &message, signed, asked, out);
        }
        if !self.may_answer_query(now, host, &asked) {
            return self.ignore(TOO_MANY, id, out);
        }
        match header.opcode {
            opcode::QUERY => {
                let answer = self.query(&message, &asked);
                self.answer(now, id, &asked, &answer, out);
            }
            opcode::UPDATE => self.refuse(now, id, &asked, Rcode::Refused, out),
            _ => self.refuse(now, id, &asked, Rcode::NotImp, out),
        }
    }

    fn may_answer(&mut self, now: Instant, host: Ipv4Addr) -> bool {
        if !self.rates.contains_key(&host) && self.rates.len() >= HOSTS {
            let second = now.0 / 1_000_000_000;
            self.rates.retain(|_, rate| rate.second == second);
            if self.rates.len() >= HOSTS {
                return self.shared.may(now, SHARED);
            }
        }
        self.rates.entry(host).or_default().may(now, self.config.answers)
    }

    /// Returns whether a message other than a correctly signed update may be answered now, and counts it. Correctly
    /// signed messages of a mobile node have a separate rate, which forged messages with the same source address cannot
    /// use up. If the separate rate is used up, the rate of the source address applies.
    fn may_answer_query(&mut self, now: Instant, host: Ipv4Addr, asked: &Asked) -> bool {
        let most = self.config.answers;
        let entry = asked.signer.as_ref().and_then(|(index, _)| self.entries.get_mut(*index));
        entry.is_some_and(|entry| entry.queries.may(now, most)) || self.may_answer(now, host)
    }

    fn may_verify(&mut self, now: Instant, host: Ipv4Addr, signed: &Signed) -> bool {
        let index = self.by_name.get(&signed.tsig.key).copied();
        let entry = index.and_then(|index| self.entries.get_mut(index));
        let known = entry.filter(|entry| entry.known == Some(host));
        known.is_some_and(|entry| entry.verified.may(now, VERIFIED_OF_KNOWN))
            || self.verified.may(now, VERIFIED)
    }

    /// Returns the index of the mobile node whose key signed a message. An update with an earlier signing time than the
    /// last accepted update fails with BADTIME (RFC 8945, section 5.2.3).
    fn signer(&self, now: Instant, signed: &Signed, is_update: bool) -> Result<usize, Failure> {
        let index = self.by_name.get(&signed.tsig.key).copied().ok_or(Failure::BadKey)?;
        let entry = self.entries.get(index).ok_or(Failure::BadKey)?;
        signed.verify(&entry.key, None, entry.seconds(now))?;
        let is_old = is_update && signed.tsig.time < entry.latest().signed;
        if is_old {
            return Err(Failure::BadTime);
        }
        Ok(index)
    }

    // --- questions -------------------------------------------------------------------------------------------------

    fn query(&self, message: &Message, asked: &Asked) -> Message {
        let refused = |rcode| Message { header: asked.header.answer(rcode), ..Message::default() };
        let [question] = message.questions.as_slice() else { return refused(Rcode::FormErr) };
        let is_data = question.kind < kind::FIRST_META;
        if question.class != class::IN || !is_data || !question.name.is_within(&self.config.zone) {
            return refused(Rcode::Refused);
        }
        let ttl = self.config.ttl.as_secs() as u32;
        let location =
            self.entry(&question.name).map(|entry| &entry.location).filter(|location| !location.is_empty());
        let mut answers =
            location.map(|location| location.records(&question.name, question.kind, ttl)).unwrap_or_default();
        let is_zone = question.name == self.config.zone;
        if is_zone && question.kind == kind::SOA {
            answers.push(self.start_of_zone());
        }
        let rcode = if location.is_some() || is_zone { Rcode::NoError } else { Rcode::NxDomain };
        // The SOA record gives the TTL of a negative answer (RFC 2308, section 3).
        let authority = if answers.is_empty() { vec![self.start_of_zone()] } else { Vec::new() };
        let header = Header { authoritative: true, ..asked.header.answer(rcode) };
        Message { header, questions: vec![question.clone()], answers, authority, additional: Vec::new() }
    }

    fn entry(&self, name: &Name) -> Option<&Entry> {
        self.entries.get(*self.by_name.get(name)?)
    }

    /// Returns the SOA record of the zone. The serial number is the latest signing time of the updates in effect. There
    /// are no secondary servers, so the timers in the record have no effect.
    fn start_of_zone(&self) -> ResourceRecord {
        const TIMES: [u32; 3] = [3600, 600, 86_400];
        let zone = &self.config.zone;
        let serial = self.entries.iter().map(|entry| entry.location.signed).max().unwrap_or_default();
        let ttl = self.config.ttl.as_secs() as u32;
        let master = zone.with_label("hostmaster").unwrap_or_else(|_| zone.clone());
        let mut data = [zone.as_bytes(), master.as_bytes()].concat();
        for word in [serial as u32, TIMES[0], TIMES[1], TIMES[2], ttl] {
            data.extend(word.to_be_bytes());
        }
        ResourceRecord { name: zone.clone(), kind: kind::SOA, class: class::IN, ttl, data }
    }

    // --- updates ---------------------------------------------------------------------------------------------------

    /// Handles a correctly signed update. A repetition may come from any host that has heard the update, so repetitions
    /// do not count against the mobile node's rate.
    fn update(
        &mut self,
        now: Instant,
        (id, host): (StreamId, Ipv4Addr),
        message: &Message,
        signed: &Signed,
        asked: Asked,
        out: &mut Outbox,
    ) {
        let Some((index, _)) = asked.signer else { return };
        let Some(entry) = self.entries.get(index) else { return };
        let is_repeated = |location: &Location| location.codes.iter().any(|code| *code == *signed.tsig.mac);
        if is_repeated(&entry.location) {
            if !self.may_answer(now, host) {
                return self.ignore(TOO_MANY, id, out);
            }
            // The changes of this update were made when its first copy was stored.
            return self.refuse(now, id, &asked, Rcode::NoError, out);
        }
        if is_repeated(entry.latest()) {
            // Only the first copy of this update is answered, when its record is stored.
            return self.ignore("under way", id, out);
        }
        let most = self.config.updates;
        let Some(entry) = self.entries.get_mut(index) else { return };
        entry.known = Some(host);
        if !entry.updates.may(now, most) {
            return self.refuse(now, id, &asked, Rcode::Refused, out);
        }
        // Without room for the MAC of this update, a replay could not be recognized.
        if entry.under_way.len() >= UNDER_WAY || entry.latest().is_full_at(signed.tsig.time) {
            return self.refuse(now, id, &asked, Rcode::ServFail, out);
        }
        let (own, before) = (entry.key.name.clone(), entry.latest().clone());
        let update = Update { message, zone: &self.config.zone, own: &own };
        match update.judge(&before, |name| self.entry(name).map(Entry::latest)) {
            Ok(location) => self.take(now, index, location, signed, (id, asked), out),
            Err(rcode) => self.refuse(now, id, &asked, rcode, out),
        }
    }

    /// Requests the storage of an accepted update. The update takes effect when its record is durable.
    fn take(
        &mut self,
        now: Instant,
        index: usize,
        mut location: Location,
        signed: &Signed,
        (stream, asked): (StreamId, Asked),
        out: &mut Outbox,
    ) {
        let lifetime = i64::try_from(self.config.lifetime.as_nanos()).unwrap_or(i64::MAX);
        location.ends = WallTime(self.wall(now).saturating_add(lifetime));
        location.accepted(signed.tsig.time, &signed.tsig.mac);
        let Some(entry) = self.entries.get_mut(index) else { return };
        out.store(key_of(&entry.key.name), location.emit());
        entry.under_way.push_back(Some(Accepted { location, stream, asked }));
    }

    /// Removes the oldest pending record of a mobile node, because its storage has succeeded or failed. Returns the
    /// index of the mobile node, and the update. `None` if the record is that of an ended registration, or if the name
    /// is unknown.
    fn decided(&mut self, key: &[u8]) -> Option<(usize, Accepted)> {
        let name = Name::read(key, 0).ok().map(|(name, _)| name)?;
        let index = *self.by_name.get(&name)?;
        let accepted = self.entries.get_mut(index)?.under_way.pop_front()??;
        Some((index, accepted))
    }

    /// Applies an update whose record is durable, and answers it.
    fn stored(&mut self, now: Instant, key: &[u8], out: &mut Outbox) {
        let Some((index, Accepted { location, stream, asked })) = self.decided(key) else { return };
        let Some(entry) = self.entries.get_mut(index) else { return };
        let address = location.addresses.first().copied();
        if address != entry.location.addresses.first().copied() {
            out.mark(SigmaEvent::Located { name: entry.key.name.to_string(), address }.into());
        }
        entry.location = location;
        self.set_lapse(now, index);
        self.refuse(now, stream, &asked, Rcode::NoError, out);
    }

    // --- answers ---------------------------------------------------------------------------------------------------

    /// Sends an answer without records. With [`Rcode::NoError`], the answer says that all changes of an update were
    /// made.
    fn refuse(&mut self, now: Instant, id: StreamId, asked: &Asked, rcode: Rcode, out: &mut Outbox) {
        let questions = asked.question.clone().into_iter().collect();
        let message = Message { header: asked.header.answer(rcode), questions, ..Message::default() };
        self.answer(now, id, asked, &message, out);
    }

    fn answer(&mut self, now: Instant, id: StreamId, asked: &Asked, message: &Message, out: &mut Outbox) {
        let name = Rcode::of(message.header.rcode).map_or("other", Rcode::name);
        self.count(name);
        let mut message = message.clone();
        if asked.options {
            let (name, kind, data) = (Name::root(), kind::OPT, Vec::new());
            message.additional.push(ResourceRecord { name, kind, class: PAYLOAD, ttl: 0, data });
        }
        let bytes = message.emit();
        let signer = asked.signer.as_ref();
        let key = signer.and_then(|(index, mac)| Some((self.entries.get(*index)?, mac)));
        let bytes = match key {
            Some((entry, mac)) => entry.key.sign(&bytes, Some(mac), entry.seconds(now)).0,
            None => bytes,
        };
        say(id, bytes, out);
    }

    /// Answers a message whose signature is refused (RFC 8945, section 5.2).
    fn distrust(
        &mut self,
        now: Instant,
        id: StreamId,
        asked: &Asked,
        signed: &Signed,
        failure: Failure,
        out: &mut Outbox,
    ) {
        self.count(failure.name());
        let questions = asked.question.clone().into_iter().collect();
        let header = asked.header.answer(Rcode::NotAuth);
        let bytes = Message { header, questions, ..Message::default() }.emit();
        let key = self.by_name.get(&signed.tsig.key).and_then(|index| self.entries.get(*index));
        let bytes = match key {
            Some(entry) if failure == Failure::BadTime => {
                // The sender signs its next update with this time. So this time must be at least the signing time of
                // the last accepted update, even if the sender's clock was ahead when it signed that update.
                let time = entry.seconds(now).max(entry.latest().signed);
                entry.key.sign_bad_time(&bytes, &signed.tsig, time)
            }
            _ => unsigned(&bytes, &signed.tsig, failure),
        };
        say(id, bytes, out);
    }

    fn ignore(&mut self, why: &'static str, id: StreamId, out: &mut Outbox) {
        self.count(why);
        out.stream(id, StreamOp::Finish);
    }

    fn count(&mut self, what: &'static str) {
        *self.answers.entry(what).or_default() += 1;
    }

    // --- ends of registrations, and failures -----------------------------------------------------------------------

    /// Removes the addresses and texts of a mobile node whose registration has ended. While the record of an update is
    /// pending, the removal is not stored, because it would replace that newer record. The removal is not stored later
    /// either: if the old record stays, the registration ends after the next start, because the record contains the
    /// time of the end.
    fn lapsed(&mut self, index: usize, out: &mut Outbox) {
        let Some(entry) = self.entries.get_mut(index) else { return };
        entry.location.addresses.clear();
        entry.location.texts.clear();
        out.mark(SigmaEvent::Lapsed { name: entry.key.name.to_string() }.into());
        if entry.under_way.is_empty() {
            entry.under_way.push_back(None);
            out.store(key_of(&entry.key.name), entry.location.emit());
        }
    }

    /// Withdraws an update that could not be stored, and answers SERVFAIL.
    fn not_stored(&mut self, now: Instant, key: &[u8], out: &mut Outbox) {
        let Some((index, Accepted { stream, asked, .. })) = self.decided(key) else { return };
        let Some(entry) = self.entries.get(index) else { return };
        out.mark(SigmaEvent::NotStored { name: entry.key.name.to_string() }.into());
        self.refuse(now, stream, &asked, Rcode::ServFail, out);
    }

    fn closed(&mut self, id: StreamId, why: Option<&str>, out: &mut Outbox) {
        self.heard.remove(&id);
        if id == LISTENER {
            out.mark(SigmaEvent::Deaf { why: why.unwrap_or_default().to_owned() }.into());
        }
    }
}

/// Returns the seconds since 1970 at `now`, by a clock that was `zero` at [`Instant::ZERO`].
fn seconds(zero: WallTime, now: Instant) -> u64 {
    zero.0.saturating_add(now.0.cast_signed()).div_euclid(NANOS).max(0).cast_unsigned()
}

/// Sends an answer and finishes the stream.
fn say(id: StreamId, bytes: Vec<u8>, out: &mut Outbox) {
    out.stream(id, StreamOp::Write(bytes));
    out.stream(id, StreamOp::Finish);
}

/// Returns the key under which the record of a mobile node is stored.
fn key_of(name: &Name) -> Vec<u8> {
    name.canonical().as_bytes().to_vec()
}

impl Role for LocationManager {
    fn name(&self) -> &'static str {
        LOCATION_MANAGER
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(boot) => self.start(now, boot, out),
            Input::Timeout => {
                while let Some(index) = self.lapses.pop(now) {
                    self.lapsed(index, out);
                }
            }
            Input::Stream(LISTENER, StreamEvent::Accepted(new, _, peer)) => self.accept(new, peer, out),
            Input::Stream(id, StreamEvent::Data(bytes)) => self.hear(now, id, bytes, out),
            Input::Stream(id, StreamEvent::Closed(why)) => self.closed(id, why, out),
            Input::Failed(fault) => {
                if let FailedAct::Store(key) = &fault.act {
                    self.not_stored(now, key, out);
                }
            }
            Input::Stored(key) => self.stored(now, key, out),
            Input::Wall(zero) => self.set_clock(zero),
            Input::Packet(..)
            | Input::Link(..)
            | Input::Idle(..)
            | Input::Notice(_)
            | Input::Stream(..)
            | Input::Command(..)
            | Input::Serve(..)
            | Input::Notification(_) => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.lapses.next()
    }

    fn status(&self) -> Value {
        let known = self.entries.iter().filter(|entry| !entry.location.is_empty()).map(|entry| {
            let addresses = entry.location.addresses.iter().map(|address| Value::from(*address)).collect();
            (entry.key.name.to_string(), Value::List(addresses))
        });
        let answers = self.answers.iter().map(|(what, count)| ((*what).to_owned(), Value::from(*count)));
        Value::map([("places", Value::Map(known.collect())), ("answers", Value::Map(answers.collect()))])
    }

    /// Returns the number of registered addresses.
    fn entries(&self) -> usize {
        self.entries.iter().map(|entry| entry.location.addresses.len()).sum()
    }
}
