//! What a home agent sends to correspondents: the care-of addresses of its mobile nodes, by Binding Updates
//! (draft-ietf-mobileip-optim-09, sections 3.1, 4 and 8).
//!
//! Only correspondents with a security association are informed. A Binding Update is sent if a packet of the correspondent
//! had to be tunneled, if the correspondent asks, if another host says that the correspondent needs it, and if the care-of
//! address changes while the correspondent may have an entry with an earlier one. After a restart, all correspondents are asked to
//! forget their entries. Without an Update, packets are tunneled as always.

use super::HomeAgent;
use super::nonces::Nonces;
use crate::binding::Binding as Bound;
use crate::config::{Associations, HomeAgentConfig, Replay};
use crate::encapsulation;
use crate::limiter::{LONGEST_PAUSE, PAUSE};
use crate::mark::HandoffEvent;
use crate::message::{
    Acknowledge, Association, Binding, BindingRequest, INFINITE, Numbers, Request, RequestFlags, Status,
    Update, Warning,
};
use crate::refusal;
use node::{Expiry, Outbox, Rng, Rx, Value};
use std::collections::BTreeMap;
use wire::tunnel::Kind;
use wire::{Duration, Instant, Ipv4Addr, Mac, Packet, Reason, SocketAddrV4, ntp_distance};

/// A Binding Acknowledge answers no Binding Update of this agent: the last one about this mobile node to this
/// correspondent has another Identification, or was acknowledged already.
pub const UNMATCHED_ACKNOWLEDGE: Reason = Reason("acknowledge_unmatched");
/// A Binding Warning has more than 16 targets.
pub const TOO_MANY_TARGETS: Reason = Reason("too_many_targets");
/// The home address of a message of route optimization is not that of a mobile node of this agent.
pub const NOT_SERVED: Reason = Reason("home_address_not_served");

/// The interval in which the role is notified once of the packets of a source to a mobile node (not from an RFC).
pub(super) const NOTICE: Duration = Duration::from_secs(1);
/// The pause between two Updates of a home agent that has restarted, so that thousands of Updates do not fill the buffers of a link
/// (not from an RFC).
const RESTART_SPACING: Duration = Duration::from_millis(1);
/// The maximum number of targets of a Binding Warning (not from an RFC).
pub(crate) const MOST_TARGETS: usize = 16;
/// The maximum number of pairs of mobile node and correspondent of which something is known (not from an RFC). Without
/// room, a correspondent is not informed.
const MOST_PAIRS: usize = 4096;

/// What an Update says: the care-of address, the lifetime in seconds, and the flags of the registration.
type Informed = (Ipv4Addr, u16, RequestFlags);

/// Returns what an Update says that deletes the entry of this mobile node.
const fn forget(host: Ipv4Addr) -> Informed {
    (host, 0, RequestFlags(0))
}

/// Where an entry of a correspondent leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Path {
    /// The care-of address; the home address if an Update deletes the binding.
    care_of: Ipv4Addr,
    /// The flags M and G of the registration, which select the kind of tunnel.
    kinds: RequestFlags,
}

impl Path {
    /// Returns the path that an Update says.
    const fn of((care_of, _, flags): Informed) -> Self {
        Self { care_of, kinds: flags.and(encapsulation::ALTERNATES) }
    }

    /// Returns whether there is none: an Update about the mobile node `host` deletes the binding.
    fn is_none(self, host: Ipv4Addr) -> bool {
        self.care_of == host
    }
}

/// The last Binding Update about one mobile node to one correspondent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    path: Path,
    identification: u64,
    /// The next Update is not sent before this time.
    next: Instant,
    pause: Duration,
    /// Whether the correspondent has accepted the Update.
    is_acknowledged: bool,
    /// The entry of an earlier Update that the correspondent may have: its path and its end. After an acknowledgement, the
    /// entry of this Update. `None` if there is no such entry.
    entry: Option<(Path, Instant)>,
    /// When the entry of this Update ends, if the correspondent accepts it.
    ends: Instant,
    /// Whether the Update is the answer to a Binding Request.
    is_answer: bool,
    /// Whether the correspondent must forget its entry first: this agent has restarted, and does not know the entry.
    forgets: bool,
}

impl Sent {
    /// Returns whether the correspondent may have an entry that has not ended. The acknowledgement of an accepted Update can be
    /// under way, or lost.
    fn may_have_entry(&self, host: Ipv4Addr, now: Instant) -> bool {
        self.possible(host, now).next().is_some()
    }

    /// Returns the entries of the mobile node `host` of which the correspondent may have one now, each with its end.
    fn possible(&self, host: Ipv4Addr, now: Instant) -> impl Iterator<Item = (Path, Instant)> {
        let own = Some((self.path, self.ends)).filter(|_| !self.is_acknowledged && !self.path.is_none(host));
        self.entry.into_iter().chain(own).filter(move |(_, ends)| *ends > now)
    }

    /// Returns whether the limit permits to answer a Binding Request now. An authentic and new Request need not wait for the pause
    /// after an Update that is no answer: the correspondent may ask because it cannot use this Update.
    fn may_answer(&self, now: Instant, is_authentic: bool) -> bool {
        now >= self.next || is_authentic && !self.is_answer
    }
}

/// The timestamps of the Updates to one correspondent; `None` before the first.
#[derive(Clone, Copy, Debug, Default)]
struct Stamps {
    /// That of the last Update. The next one has a later timestamp.
    sent: Option<u64>,
    /// That of the last Update that the correspondent has accepted.
    accepted: Option<u64>,
}

impl Stamps {
    /// Returns the timestamp of the next Update, which is sent at `now`.
    fn next(&mut self, now: u64) -> u64 {
        let earlier = self.sent.filter(|sent| ntp_distance(now, *sent) <= 0);
        let stamp = earlier.map_or(now, |sent| sent.wrapping_add(1));
        self.sent = Some(stamp);
        stamp
    }

    /// Notes the answer to the Update with this timestamp. If the last Update is refused because of its timestamp, the clock may
    /// have been set back: then the next timestamp must only be later than the last one that was accepted.
    fn answered(&mut self, stamp: u64, status: Status) {
        match status {
            Status::ACCEPTED => self.accepted = Some(stamp),
            Status::IDENTIFICATION if self.sent == Some(stamp) => self.sent = self.accepted,
            _ => {}
        }
    }
}

/// The correspondents of a home agent, and the Updates that they got.
#[derive(Debug)]
pub(super) struct Informer {
    associations: Associations,
    numbers: Numbers,
    /// The last Updates, by mobile node and correspondent.
    sent: BTreeMap<(Ipv4Addr, Ipv4Addr), Sent>,
    /// When the last Update is repeated, because the correspondent has an older entry and has not acknowledged it.
    repeats: Expiry<(Ipv4Addr, Ipv4Addr)>,
    /// The nonces of each correspondent whose association uses nonces.
    nonces: BTreeMap<Ipv4Addr, Nonces>,
    rng: Rng,
    /// The timestamps of the last Update to each correspondent.
    stamps: BTreeMap<Ipv4Addr, Stamps>,
    updates: u64,
    /// The number of Acknowledges by status.
    statuses: BTreeMap<u8, u64>,
}

impl Informer {
    /// Returns the number of pairs of mobile node and correspondent of which something is known.
    pub(super) fn pairs(&self) -> usize {
        self.sent.len()
    }

    pub(super) fn new(config: &HomeAgentConfig, rng: Rng) -> Self {
        Self {
            associations: Associations::new(&config.correspondents),
            numbers: config.numbers,
            sent: BTreeMap::new(),
            repeats: Expiry::default(),
            nonces: BTreeMap::new(),
            rng,
            stamps: BTreeMap::new(),
            updates: 0,
            statuses: BTreeMap::new(),
        }
    }

    /// Notes the NTP time of the start. The nonces of each start differ.
    pub(super) fn start(&mut self, now: u64) {
        self.rng = self.rng.fork(&now.to_string());
    }

    /// Returns the association with a correspondent that may be informed of the mobile node `host`. `None` if there is none. A host
    /// with both roles does not send to itself by this agent.
    fn association(&self, host: Ipv4Addr, correspondent: Ipv4Addr) -> Option<&Association> {
        self.associations.first(correspondent).filter(|_| correspondent != host)
    }

    /// Returns the Identification of the next Update to a correspondent (draft-ietf-mobileip-optim-09, section 4.3).
    fn identification(&mut self, now: u64, correspondent: Ipv4Addr) -> u64 {
        match self.associations.replay(correspondent) {
            Replay::Timestamps => self.stamps.entry(correspondent).or_default().next(now),
            Replay::Nonces => self.nonces.entry(correspondent).or_default().identification(&mut self.rng),
        }
    }

    /// Returns when the next Update is repeated; `None` if all were acknowledged.
    pub(super) fn due(&self) -> Option<Instant> {
        self.repeats.next()
    }

    /// Returns whether there is room for a pair, after pairs without an entry at the correspondent were removed.
    fn has_room(&mut self, now: Instant, pair: (Ipv4Addr, Ipv4Addr)) -> bool {
        if self.sent.len() >= MOST_PAIRS && !self.sent.contains_key(&pair) {
            self.sent.retain(|(host, _), sent| sent.may_have_entry(*host, now) || sent.next > now);
        }
        self.sent.len() < MOST_PAIRS || self.sent.contains_key(&pair)
    }
}

impl HomeAgent {
    /// Returns whether this agent informs correspondents.
    pub(super) fn informs(&self) -> bool {
        !self.config.correspondents.is_empty()
    }

    /// Returns whether a request asks for a private binding (flag P). Without correspondents, the flag is reserved.
    pub(super) fn is_private(&self, flags: u8) -> bool {
        self.informs() && flags & self.config.numbers.private_flag != 0
    }

    /// Handles a packet to a mobile node that this agent tunnels: its source may be a correspondent. A packet that is
    /// in a tunnel already has not been sent by its source as it is.
    pub(super) fn notice(&mut self, now: Instant, rx: &Rx, out: &mut Outbox) {
        let header = &rx.header;
        if Kind::of_protocol(header.protocol).is_none() && self.mobile_nodes.first(header.dst).is_some() {
            self.inform(now, header.dst, header.src, out);
        }
    }

    /// Handles a message of route optimization. A message for another role of this host is passed on.
    pub(super) fn binding_message(
        &mut self,
        now: Instant,
        rx: Rx,
        packet: Packet,
        (from, message): (SocketAddrV4, &Binding),
        out: &mut Outbox,
    ) {
        let ends = match message {
            // It may be for a foreign agent on this host, the previous agent of a visitor.
            Binding::Update(_) if !self.config.foreign.is_empty() => return out.pass(rx, packet),
            Binding::Update(_) => Err(refusal::UNEXPECTED),
            Binding::Acknowledge(message) => self.acknowledged(now, *from.ip(), message),
            _ if self.mobile_nodes.first(message.home()).is_none() => Err(NOT_SERVED),
            Binding::Request(message) => self.asked(now, *from.ip(), message, out),
            Binding::Warning(message) => self.warned(now, message, out),
        };
        self.refused.end(rx.iface, packet, ends, out);
    }

    fn acknowledged(&mut self, now: Instant, from: Ipv4Addr, message: &Acknowledge) -> Result<(), Reason> {
        let informer = &mut self.informer;
        let association = informer.associations.first(from).ok_or(refusal::NO_ASSOCIATION)?;
        let sent = informer.sent.get_mut(&(message.home, from)).ok_or(UNMATCHED_ACKNOWLEDGE)?;
        if message.identification != Some(sent.identification) || sent.is_acknowledged {
            return Err(UNMATCHED_ACKNOWLEDGE);
        }
        // The draft has no authentication of an Acknowledge. But a host on the path could end the repetitions without one.
        let (numbers, subtype) = (&informer.numbers, informer.numbers.route_authentication);
        if message.authentication.is_none() {
            return Err(refusal::NO_AUTHENTICATION);
        }
        if !message.verify(subtype, association, numbers) {
            return Err(refusal::BAD_AUTHENTICATION);
        }
        *informer.statuses.entry(message.status.0).or_default() += 1;
        if let Some(stamps) = informer.stamps.get_mut(&from) {
            stamps.answered(sent.identification, message.status);
        }
        // A correspondent that does not accept this home agent for the mobile node has no entry for it.
        let has_none = sent.forgets && message.status == Status::PROHIBITED;
        if message.status == Status::ACCEPTED || has_none {
            (sent.is_acknowledged, sent.forgets) = (true, false);
            sent.entry = (!sent.path.is_none(message.home)).then_some((sent.path, sent.ends));
            (sent.pause, sent.next) = (PAUSE, sent.next.min(now + PAUSE));
            informer.repeats.stop((message.home, from));
        }
        Ok(())
    }

    /// Answers a Binding Request, with the pauses of other Updates. With timestamps, it need not be authenticated: its only effect is
    /// an Update. With nonces, it has the nonce of this Update, so it must be authentic and new.
    fn asked(
        &mut self,
        now: Instant,
        from: Ipv4Addr,
        message: &BindingRequest,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let BindingRequest { home, identification, ref authentication } = *message;
        let (pair, can_inform) = ((home, from), self.news(now, home).is_some());
        let informer = &mut self.informer;
        let association = informer.association(home, from).ok_or(refusal::NO_ASSOCIATION)?;
        let with_nonces = informer.associations.replay(from) == Replay::Nonces;
        let (numbers, subtype) = (&informer.numbers, informer.numbers.route_authentication);
        match authentication {
            None if with_nonces => return Err(refusal::NO_AUTHENTICATION),
            Some(_) if !message.verify(subtype, association, numbers) => {
                return Err(refusal::BAD_AUTHENTICATION);
            }
            _ => {}
        }
        if with_nonces {
            informer.nonces.entry(from).or_default().check(identification)?;
        }
        let known = informer.sent.get(&pair);
        if known.is_some_and(|sent| !sent.may_answer(now, with_nonces)) {
            return Err(refusal::ANSWERED);
        }
        // A Request that is not answered must not prevent the answer to a later one.
        if !can_inform || !informer.has_room(now, pair) {
            return Ok(());
        }
        if with_nonces {
            informer.nonces.entry(from).or_default().answer(identification);
        }
        self.send_update(now, home, from, out);
        if let Some(sent) = self.informer.sent.get_mut(&pair) {
            sent.is_answer = true;
        }
        Ok(())
    }

    fn warned(&mut self, now: Instant, warning: &Warning, out: &mut Outbox) -> Result<(), Reason> {
        let Warning { home, targets } = warning;
        if targets.len() > MOST_TARGETS {
            return Err(TOO_MANY_TARGETS);
        }
        if !targets.iter().any(|target| self.informer.association(*home, *target).is_some()) {
            return Err(refusal::NO_ASSOCIATION);
        }
        let mut is_informed = false;
        for target in targets {
            is_informed |= self.inform(now, *home, *target, out);
        }
        if is_informed { Ok(()) } else { Err(refusal::NOTHING_TO_INFORM) }
    }

    /// Informs the correspondents that a mobile node names in a request that was accepted. Others are informed of the new
    /// care-of address, or of the new kind of tunnel, if they may have an entry with an earlier one.
    pub(super) fn inform_of_change(&mut self, now: Instant, request: &Request, out: &mut Outbox) {
        if !self.informs() {
            return;
        }
        let host = request.home;
        let Some(news) = self.news(now, host) else { return };
        let mut changed = Vec::new();
        for ((_, correspondent), sent) in
            self.informer.sent.range_mut((host, Ipv4Addr::UNSPECIFIED)..=(host, Ipv4Addr::BROADCAST))
        {
            if sent.path != Path::of(news) {
                (sent.next, sent.pause) = (now, PAUSE);
                if sent.may_have_entry(host, now) {
                    changed.push(*correspondent);
                }
            }
        }
        for correspondent in changed {
            self.inform(now, host, correspondent, out);
        }
        match request.warning(&self.config.numbers) {
            Some(Ok(warning)) if warning.home == host => {
                if let Err(reason) = self.warned(now, &warning, out) {
                    self.refused.count(reason);
                }
            }
            Some(Ok(_)) => self.refused.count(NOT_SERVED),
            Some(Err(malformed)) => self.refused.count(malformed.into()),
            None => {}
        }
    }

    /// The bindings of a mobile node have ended. Correspondents that may still have an entry, of an earlier and longer
    /// binding, are informed, unless the last Update has asked them to forget it already: that one is repeated with its pauses. What
    /// the others know has ended too, and is forgotten.
    pub(super) fn bindings_ended(&mut self, now: Instant, host: Ipv4Addr, out: &mut Outbox) {
        let own = self.informer.sent.range((host, Ipv4Addr::UNSPECIFIED)..=(host, Ipv4Addr::BROADCAST));
        let state = |sent: &Sent| (sent.may_have_entry(host, now), sent.path.is_none(host));
        let all: Vec<_> = own.map(|(pair, sent)| (*pair, state(sent))).collect();
        for (pair, (may_have_entry, is_asked)) in all {
            if may_have_entry && !is_asked {
                self.send_update(now, host, pair.1, out);
            } else if !may_have_entry {
                self.informer.sent.remove(&pair);
                self.informer.repeats.stop(pair);
            }
        }
    }

    /// Asks all correspondents to forget their entry of a mobile node whose record was restored after a restart. It is not known which
    /// of them have one, and with which care-of address: the last Update before the restart may be lost. The next packet of a
    /// correspondent comes by this agent, and causes an Update.
    pub(super) fn forget_after_restart(&mut self, now: Instant, host: Ipv4Addr) {
        for peer in &self.config.correspondents {
            let pair = (host, peer.address);
            if self.informer.association(host, peer.address).is_none() {
                continue;
            }
            if !self.informer.has_room(now, pair) {
                return;
            }
            let unknown = Path { care_of: Ipv4Addr::UNSPECIFIED, kinds: RequestFlags(0) };
            let sent = Sent {
                path: Path::of(forget(host)),
                identification: 0,
                next: now,
                pause: PAUSE,
                is_acknowledged: false,
                entry: Some((unknown, now + self.config.registration_lifetime)),
                ends: now,
                is_answer: false,
                forgets: true,
            };
            let earlier = u32::try_from(self.informer.sent.len()).unwrap_or(u32::MAX);
            self.informer.sent.insert(pair, sent);
            self.informer.repeats.set(pair, now + RESTART_SPACING * earlier);
        }
    }

    /// Repeats the Updates that are due. Otherwise a correspondent would send to an old care-of address until its entry
    /// ends.
    pub(super) fn repeat_updates(&mut self, now: Instant, out: &mut Outbox) {
        while let Some(pair @ (host, _)) = self.informer.repeats.pop(now) {
            let forgets = self.informer.sent.get(&pair).is_some_and(|known| known.forgets);
            let news = if forgets { Some(forget(host)) } else { self.news(now, host) };
            let is_sent = news.is_some_and(|news| self.send_news(now, pair, news, out));
            // The binding ends within a second. If it is renewed, the entry must still be replaced.
            let known = self.informer.sent.get(&pair);
            if !is_sent && known.is_some_and(|known| known.may_have_entry(host, now)) {
                self.informer.repeats.set(pair, now + PAUSE);
            }
        }
    }

    /// Sends a Binding Update about a mobile node to a correspondent, if there is an association, and the limit permits
    /// it. Returns whether it was sent.
    pub(super) fn inform(
        &mut self,
        now: Instant,
        host: Ipv4Addr,
        correspondent: Ipv4Addr,
        out: &mut Outbox,
    ) -> bool {
        if self.informer.association(host, correspondent).is_none() {
            return false;
        }
        let Some(news) = self.news(now, host) else { return false };
        let deletes = Path::of(news).is_none(host);
        if let Some(sent) = self.informer.sent.get(&(host, correspondent)) {
            // A correspondent that has deleted its entry cannot do more, for example while the binding is private.
            let has_deleted = sent.is_acknowledged && sent.path.is_none(host) && deletes;
            if now < sent.next || has_deleted {
                return false;
            }
        } else if deletes {
            // The correspondent has no entry of this agent.
            return false;
        }
        self.send_update(now, host, correspondent, out)
    }

    /// Returns what correspondents may know about a mobile node: the care-of address, the lifetime in seconds, and the
    /// flags of the registration. Without a binding, with several, or with a private one, it is the home address with
    /// lifetime 0. `None` if the binding ends within a second.
    fn news(&self, now: Instant, host: Ipv4Addr) -> Option<Informed> {
        let home = self.homes.get(&host);
        match home.map_or(&[][..], super::Home::bindings) {
            [Bound { care_of, flags, .. }] if !self.is_private(*flags) => {
                let ends = *home?.ends.get(care_of)?;
                let left = u16::try_from(ends.since(now).as_secs()).unwrap_or(INFINITE - 1);
                (left > 0).then_some((*care_of, left.min(INFINITE - 1), RequestFlags(*flags)))
            }
            _ => Some(forget(host)),
        }
    }

    /// Sends a Binding Update. Returns whether it was sent.
    fn send_update(
        &mut self,
        now: Instant,
        host: Ipv4Addr,
        correspondent: Ipv4Addr,
        out: &mut Outbox,
    ) -> bool {
        let Some(news) = self.news(now, host) else { return false };
        self.send_news(now, (host, correspondent), news, out)
    }

    /// Sends a Binding Update that says this to a correspondent. Returns whether it was sent.
    fn send_news(
        &mut self,
        now: Instant,
        pair: (Ipv4Addr, Ipv4Addr),
        news @ (care_of, lifetime, flags): Informed,
        out: &mut Outbox,
    ) -> bool {
        let ((host, correspondent), path) = (pair, Path::of(news));
        let ntp = self.clock.ntp(now);
        let own = self.config.address.address;
        let informer = &mut self.informer;
        if !informer.has_room(now, pair) {
            return false;
        }
        let identification = informer.identification(ntp, correspondent);
        let Some(association) = informer.association(host, correspondent) else { return false };
        let mut update = Update {
            acknowledge: true,
            minimal: flags.has(encapsulation::asks(Kind::Minimal)),
            gre: flags.has(encapsulation::asks(Kind::Gre)),
            lifetime,
            home: host,
            care_of,
            identification: Some(identification),
            authentication: None,
        };
        update.sign(informer.numbers.route_authentication, association, &informer.numbers);
        let known = informer.sent.get(&pair).copied();
        // Of the entries that the correspondent may have, the one that must be replaced for the longest time.
        let possible = known.iter().flat_map(|known| known.possible(host, now));
        let entry = possible.max_by_key(|(other, ends)| (*other != path, *ends));
        let pause = known.filter(|known| known.path == path).map_or(PAUSE, |known| known.pause);
        let sent = Sent {
            path,
            identification,
            next: now + pause,
            pause: (pause * 2).min(LONGEST_PAUSE),
            is_acknowledged: false,
            entry,
            ends: now + Duration::from_secs(lifetime.into()),
            is_answer: false,
            forgets: known.is_some_and(|known| known.forgets) && path.is_none(host),
        };
        informer.sent.insert(pair, sent);
        // An entry with another path must be replaced. Without one, packets come by this agent, and the next one
        // causes an Update.
        match sent.entry {
            Some((other, ends)) if other != path && sent.next < ends => {
                informer.repeats.set(pair, sent.next);
            }
            _ => informer.repeats.stop(pair),
        }
        informer.updates += 1;
        let bytes = Binding::Update(update).datagram(own, correspondent, &informer.numbers);
        out.send_routed(Packet::new(Mac::ZERO, bytes));
        out.mark(HandoffEvent::CorrespondentInformed { host, correspondent, lifetime }.into());
        true
    }

    /// Returns what was sent to correspondents, for the status; `None` if this agent informs none.
    pub(super) fn informed_status(&self) -> Option<[(&'static str, Value); 3]> {
        let Informer { sent, updates, statuses, .. } = &self.informer;
        let mut informed = BTreeMap::<String, Vec<Value>>::new();
        for ((host, correspondent), sent) in sent {
            let pause = u64::try_from(sent.pause.as_millis()).unwrap_or(u64::MAX);
            informed.entry(host.to_string()).or_default().push(Value::map([
                ("correspondent", Value::from(*correspondent)),
                ("care_of", Value::from(sent.path.care_of)),
                ("acknowledged", Value::from(u64::from(sent.is_acknowledged))),
                ("pause_ms", Value::from(pause)),
            ]));
        }
        let informed = informed.into_iter().map(|(host, all)| (host, Value::List(all)));
        let counts = statuses.iter().map(|(status, count)| (status.to_string(), Value::from(*count)));
        self.informs().then(|| {
            [
                ("correspondents", Value::Map(informed.collect())),
                ("updates", Value::from(*updates)),
                ("acknowledges", Value::Map(counts.collect())),
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1 << 32;

    #[test]
    fn timestamps_rise_and_follow_a_clock_that_is_set_back_if_the_correspondent_refuses() {
        let mut stamps = Stamps::default();
        assert_eq!((stamps.next(100 * SECOND), stamps.next(100 * SECOND)), (100 * SECOND, 100 * SECOND + 1));
        stamps.answered(100 * SECOND + 1, Status::ACCEPTED);
        assert_eq!(stamps.next(900 * SECOND), 900 * SECOND);
        // The clock was fast, and is set back.
        let ahead = stamps.next(110 * SECOND);
        assert_eq!(ahead, 900 * SECOND + 1);
        for (what, stamp, status) in [
            ("of an earlier Update", 900 * SECOND, Status::IDENTIFICATION),
            ("another reason", ahead, Status::PROHIBITED),
        ] {
            let mut other = stamps;
            other.answered(stamp, status);
            assert_eq!(other.next(111 * SECOND), ahead + 1, "{what}");
        }
        stamps.answered(ahead, Status::IDENTIFICATION);
        assert_eq!(stamps.next(111 * SECOND), 111 * SECOND);
        // A timestamp that was accepted is never used again.
        stamps.answered(111 * SECOND, Status::IDENTIFICATION);
        assert_eq!(stamps.next(99 * SECOND), 100 * SECOND + 2);
    }
}
