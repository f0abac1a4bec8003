//! Smooth handoffs at the new foreign agent (draft-ietf-mobileip-optim-09, sections 7.1 and 9.1).
//!
//! A mobile node that comes from another foreign agent adds a Previous Foreign Agent Notification to its request. This
//! agent then sends the mobile node's Binding Update to the previous agent at once: it does not wait for the home
//! agent's reply. So packets of the previous agent can arrive before the reply. This agent delivers them to the pending
//! visitor, if they come out of a tunnel of the previous agent that the mobile node has named. If the request had a correct
//! Mobile-Foreign Authentication, it delivers those of the home agent too (not from the draft): the home agent has accepted the
//! request, and its reply may be lost. With `direct_tunnels`, these are the packets of all hosts, as for a visitor.
//!
//! The request is not authenticated to this agent without an association. So a host could make this agent send Binding
//! Updates to any address. Therefore their number per link address and per target is limited, and a target is never a
//! group, a broadcast address or this host.
//!
//! What a request claims before its reply is kept apart from what accepted registrations have shown ([`Claim`], [`Arrival`]). A
//! claim without a proof has no effect if the mobile node visits this agent or has left it by a Binding Update, and such claims
//! have separate places. An accepted registration needs no claim: it names the previous agent itself.

use super::departures::Departure;
use super::history::Ended;
use super::keys::Proof;
use super::remembered::Remembered;
use super::special::SPECIALS;
use super::{
    ForeignAgent, NOT_A_VISITOR, NOT_PREVIOUS_AGENT, Sources, Visit, by_host, has_named, merged, of_host,
};
use crate::limiter::{Doubling, Limiter, PerSecond};
use crate::mark::HandoffEvent;
use crate::message::{Between, Binding, PreviousAgent, Request, Update};
use crate::passed::Passed;
use crate::pending::{Pending, RequestKey, low};
use node::{Action, Class, Expiry, Lifetime, Outbox, Route, RouteKey, Rx, Value};
use std::collections::{BTreeMap, BTreeSet};
use wire::ipv4::{self};
use wire::{Duration, Instant, Ipv4Addr, Mac, Packet, Reason, ntp_distance};

/// The reason not to send a Binding Update: the previous agent of the notification cannot be another foreign agent, or the
/// new care-of address is not that of the request. It is only counted, because the request is relayed.
pub(super) const IMPLAUSIBLE_PREVIOUS_AGENT: Reason = Reason("implausible_previous_agent");
/// The reason not to send a Binding Update: too many were sent in this second to the same target, or for the same link
/// address. It is only counted, because the request is relayed.
pub(super) const TOO_MANY_UPDATES: Reason = Reason("too_many_updates");
/// The reason not to deliver packets before the registration is accepted: the request has no proof, and the mobile node visits
/// this agent, has left it, or is claimed by another link address too. A visit counts if its home agent is as trusted as that of
/// the request. Or too many such requests wait. It is only counted.
pub(super) const NO_EARLY_DELIVERY: Reason = Reason("no_early_delivery");
/// The reason to drop a packet for a pending visitor out of a tunnel: the request waits for its reply, and the mobile node
/// has received [`EARLY`] packets since.
pub(super) const EARLY_LIMIT: Reason = Reason("early_packet_limit");
/// The reason to drop a packet for a pending visitor out of a tunnel: the request does not wait any more, and was not
/// accepted.
pub(super) const NOT_ACCEPTED: Reason = Reason("registration_not_accepted");

/// The largest number of packets that a mobile node receives before its registration is accepted, if its request had no
/// Mobile-Foreign Authentication (not from the draft).
const EARLY: u32 = 64;
/// The longest time of this delivery, if `pending_timeout` is longer (not from the draft).
const EARLY_TIME: Duration = Duration::from_secs(7);
/// How long packets of a previous agent are delivered after the lifetime of its entry (not from the draft). The lifetime begins later
/// at that agent, when the Update arrives. At its end, the agent sends all that waits.
const ON_THE_WAY: Duration = Duration::from_secs(1);
/// The largest number of Binding Acknowledges per second to one mobile node (not from the draft).
const ACKNOWLEDGES: u32 = 8;
/// The largest number of Binding Updates per second for one link address, or for one mobile node (not from the draft). A
/// mobile node sends at most one request per second, and corrects a denied one at once.
const UPDATES_FROM: u32 = 4;
/// The largest number of Binding Updates per second to one previous agent because of requests that are not authenticated
/// (not from the draft).
const UPDATES_TO: u32 = 64;
/// The largest number of claims without a proof (not from the draft). The number of the others is limited by that of the
/// associations and keys.
const CLAIMS: usize = 1024;
/// A registered mobile node that came from another foreign agent.
#[derive(Debug)]
pub(super) struct Arrival {
    /// The link address that has registered.
    mac: Mac,
    /// The agents that it has named, and whose tunnels bring packets for it.
    pub(super) sources: Sources,
    ends: Instant,
}

/// A mobile node that has named its previous foreign agent in a request, before the reply.
#[derive(Debug)]
pub(super) struct Claim {
    mac: Mac,
    /// The agents that it has named. Without a proof, only the first one counts before the registration is accepted.
    pub(super) sources: Sources,
    /// The request that waits for its reply.
    waits: RequestKey,
    /// The home agent of this request.
    home_agent: Ipv4Addr,
    /// The Identification of this request.
    pub(super) identification: u64,
    /// The number of packets that it may still receive before its registration is accepted.
    left: u32,
    /// Whether the request had a correct Mobile-Foreign Authentication, and was no replay of an earlier one.
    pub(super) is_proven: bool,
    /// Whether the home agent has denied the request because of its Identification.
    is_denied: bool,
    /// Whether this agent has denied the request, because it got no answer of the home agent. An authenticated mobile node is still here.
    is_held: bool,
    ends: Instant,
}

impl Claim {
    const fn visit(&self, host: Ipv4Addr) -> Visit {
        (host, self.home_agent)
    }

    /// Returns the Identification of an authenticated request of this visit that was not denied; `None` if this is another one.
    pub(super) fn proves(&self, visit: Visit) -> Option<u64> {
        let is_it = self.is_proven && !self.is_denied && self.home_agent == visit.1;
        is_it.then_some(self.identification)
    }
}

/// How far this agent trusts the home agent of a visit, in ascending order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Trust {
    /// Any host can be such a home agent, also for the home address of a mobile node of another one.
    Unknown,
    /// The home agent, or the mobile node, has an association with this agent.
    Associated,
}

/// What happens with a packet out of a tunnel of another agent.
enum Judged {
    /// It is delivered to this link address, for this visit.
    IsHere(Visit, Mac),
    /// It is forwarded, because the mobile node has left.
    HasLeft(Visit),
}

/// The state of smooth handoffs at one foreign agent.
#[derive(Debug)]
pub(super) struct Handoffs {
    /// The registered mobile nodes that came from another agent.
    pub(super) arrivals: BTreeMap<Visit, Arrival>,
    /// The last claim about each mobile node, by home address. If it has no proof, the mobile node neither visits this agent nor
    /// has left it, with a home agent that is as trusted.
    pub(super) claims: BTreeMap<Ipv4Addr, Claim>,
    /// When the first arrival or the claim of a mobile node ends, by home address.
    pub(super) ending: Expiry<Ipv4Addr>,
    /// The classes with a route by which this role gets the packets for a mobile node out of tunnels of other agents.
    watched: BTreeMap<Ipv4Addr, BTreeSet<Class>>,
    /// The mobile nodes that left to another agent.
    pub(super) departures: BTreeMap<Visit, Departure>,
    /// The mobile nodes that have left, and to which no packets are forwarded.
    pub(super) gone: Ended,
    pub(super) remembered: Remembered,
    updates_from: PerSecond<Mac>,
    /// Limits Binding Updates because of authenticated requests, by home address.
    updates_of: PerSecond<Ipv4Addr>,
    updates_to: PerSecond<Ipv4Addr>,
    /// Limits Binding Acknowledges, by home address and Identification.
    pub(super) acknowledged: Limiter<(Ipv4Addr, u64)>,
    /// Limits Binding Acknowledges, by home address.
    pub(super) acknowledged_to: PerSecond<Ipv4Addr>,
    /// Limits Binding Warnings, by home address and target. The care-of address that the target needs does not change meanwhile.
    pub(super) warned: Doubling<(Ipv4Addr, Ipv4Addr)>,
    /// The last packets that were forwarded out of tunnels of earlier agents.
    pub(super) passed: Passed,
    /// The last packets that were forwarded out of tunnels of other hosts. They leave no trace among those of earlier agents.
    pub(super) passed_of_others: Passed,
    /// The identification of the last outer header.
    pub(super) outer_id: u16,
    /// Limits special tunnels.
    pub(super) specials: PerSecond<()>,
    /// The number of packets that were sent in special tunnels.
    pub(super) sent_back: u64,
    /// The number of Binding Updates that were sent to previous agents.
    pub(super) sent: u64,
    /// The number of packets that were delivered out of tunnels of previous agents.
    pub(super) delivered: u64,
    /// The number of packets that were forwarded by this role. The node forwards those of home agents itself.
    pub(super) forwarded: u64,
}

impl Default for Handoffs {
    fn default() -> Self {
        Self {
            arrivals: BTreeMap::new(),
            claims: BTreeMap::new(),
            ending: Expiry::default(),
            watched: BTreeMap::new(),
            departures: BTreeMap::new(),
            gone: Ended::default(),
            remembered: Remembered::default(),
            updates_from: PerSecond::new(UPDATES_FROM),
            updates_of: PerSecond::new(UPDATES_FROM),
            updates_to: PerSecond::new(UPDATES_TO),
            acknowledged: Limiter::default(),
            acknowledged_to: PerSecond::new(ACKNOWLEDGES),
            warned: Doubling::default(),
            passed: Passed::default(),
            passed_of_others: Passed::default(),
            outer_id: 0,
            specials: PerSecond::new(SPECIALS),
            sent_back: 0,
            sent: 0,
            delivered: 0,
            forwarded: 0,
        }
    }
}

impl Handoffs {
    /// Sets when the first of the arrivals and the claim of a mobile node ends.
    fn rearm(&mut self, host: Ipv4Addr) {
        let arrivals = of_host(&self.arrivals, host).map(|(_, arrival)| arrival.ends);
        let claim = self.claims.get(&host).map(|claim| claim.ends);
        match arrivals.chain(claim).min() {
            Some(first) => self.ending.set(host, first),
            None => self.ending.stop(host),
        }
    }
}

impl ForeignAgent {
    /// Sends the Binding Update of a request that is relayed to the previous agent, if the request names one. From now on,
    /// packets out of the tunnels of that agent are delivered to the mobile node. If too many updates were sent, the mobile node
    /// sends its own one a second later.
    pub(super) fn notify_previous(&mut self, now: Instant, pending: &Pending, out: &mut Outbox) {
        let numbers = self.config.numbers;
        let Some(Ok(said)) = pending.request.previous_agent(&numbers) else { return };
        if !self.is_plausible(&pending.request, &said) {
            return self.refused.count(IMPLAUSIBLE_PREVIOUS_AGENT);
        }
        if self.may_update(now, pending, said.previous) {
            let (host, previous, care_of) = (pending.request.home, said.previous, said.care_of);
            self.send_update(previous, said.update(&pending.request, &numbers), out);
            out.mark(HandoffEvent::UpdateSent { host, previous, care_of }.into());
        } else {
            self.refused.count(TOO_MANY_UPDATES);
        }
        if let Some(named) = self.named_by(pending) {
            self.expect(now, pending, named, out);
        }
    }

    /// Returns the previous agent whose tunnels bring packets for the mobile node of a request here, and until when; `None` if
    /// there is none.
    fn named_by(&self, pending: &Pending) -> Option<(Ipv4Addr, Instant)> {
        let said = pending.request.previous_agent(&self.config.numbers)?.ok()?;
        // A tunnel to a co-located care-of address does not end here.
        let is_here = said.lifetime != 0 && said.care_of == self.config.address.address;
        let until =
            pending.since + Duration::from_secs(said.lifetime.min(self.longest()).into()) + ON_THE_WAY;
        (is_here && self.is_plausible(&pending.request, &said)).then_some((said.previous, until))
    }

    fn send_update(&mut self, previous: Ipv4Addr, update: Update, out: &mut Outbox) {
        let own = self.config.address.address;
        let bytes = Binding::Update(update).datagram(own, previous, &self.config.numbers);
        self.handoffs.sent += 1;
        // Another host may have registered here with the address of that agent.
        self.past_visitors(previous, out, |_, out| out.send_routed(Packet::new(Mac::ZERO, bytes)));
    }

    /// Returns whether the previous agent of a notification can be another foreign agent, and the new care-of address is that of
    /// the request.
    fn is_plausible(&self, request: &Request, said: &PreviousAgent) -> bool {
        let is_agent = ipv4::is_host(said.previous)
            && !self.config.address.is_broadcast(said.previous)
            && said.previous != request.home
            && !self.is_own(said.previous);
        is_agent && [request.care_of, request.home].contains(&said.care_of)
    }

    /// Returns whether a previous agent may get a Binding Update now. If so, counts it.
    fn may_update(&mut self, now: Instant, pending: &Pending, previous: Ipv4Addr) -> bool {
        let handoffs = &mut self.handoffs;
        if pending.is_new {
            handoffs.updates_of.may(now, pending.request.home)
        } else {
            handoffs.updates_from.may(now, pending.mac) && handoffs.updates_to.may(now, previous)
        }
    }

    /// Returns whether a relayed request has a correct Mobile-Foreign Authentication: without one, it would have been denied
    /// if there is a configured association. With distributed keys, it has one if the mobile node has been here before.
    pub(super) fn is_proven(&self, pending: &Pending) -> bool {
        let request = &pending.request;
        match self.mobile_nodes.first(request.home) {
            Some(_) => request.authentication(Between::MobileForeign).is_some(),
            None => self.is_signed_by_key(request),
        }
    }

    /// Expects packets for the mobile node of a request in tunnels of the agent that it has named.
    fn expect(&mut self, now: Instant, pending: &Pending, named: (Ipv4Addr, Instant), out: &mut Outbox) {
        let visit = (pending.request.home, pending.request.home_agent);
        let host = visit.0;
        let is_proven = pending.is_new;
        let is_another = self.handoffs.remembered.is_from_another(pending);
        if !is_proven && (is_another || !self.may_claim(now, pending.mac, visit, out)) {
            return self.refused.count(NO_EARLY_DELIVERY);
        }
        let known = self.handoffs.claims.get(&host);
        let known = known.filter(|known| now < known.ends && known.mac == pending.mac);
        let rest = known.map_or(EARLY, |known| known.left);
        let known = known.filter(|known| known.visit(host) == visit);
        // Another host can have sent the requests without a proof.
        let claimed =
            known.filter(|known| known.is_proven || !is_proven).map(|known| &known.sources).into_iter();
        let arrived = self.handoffs.arrivals.get(&visit).map(|arrival| &arrival.sources);
        let left = self.handoffs.departures.get(&visit).map(|departure| &departure.sources);
        let earlier = claimed.chain(arrived).chain(left).flatten().copied();
        let claim = Claim {
            mac: pending.mac,
            sources: merged(now, std::iter::once(named).chain(earlier)),
            waits: (host, low(pending.request.identification)),
            home_agent: visit.1,
            identification: pending.request.identification,
            left: rest,
            is_proven,
            is_denied: false,
            is_held: false,
            ends: now + self.patience(&pending.request).min(EARLY_TIME),
        };
        self.handoffs.claims.insert(host, claim);
        self.handoffs.rearm(host);
        self.watch_tunnels(host, out);
    }

    /// Returns whether a request without a proof may claim a mobile node. If another link address claims it too, neither gets packets
    /// before the home agent has accepted its request. Which home agent the request names does not matter: any host can write a trusted one.
    fn may_claim(&mut self, now: Instant, mac: Mac, visit: Visit, out: &mut Outbox) -> bool {
        let is_known = self.is_known(now, visit);
        let known = self.handoffs.claims.get_mut(&visit.0).filter(|known| now < known.ends);
        let Some(known) = known else { return !is_known && self.has_place_for_claim(out) };
        if known.mac != mac && !known.is_proven {
            known.left = 0;
        }
        !is_known && !known.is_proven && known.mac == mac
    }

    fn trust(&self, (host, home_agent): Visit) -> Trust {
        match self.mobile_nodes.first(host).or_else(|| self.home_agents.first(home_agent)) {
            Some(_) => Trust::Associated,
            None => Trust::Unknown,
        }
    }

    /// Returns whether the mobile node of a visit visits this agent, or has left it by a Binding Update. Visits with another home agent
    /// count too, unless it is less trusted.
    fn is_known(&self, now: Instant, visit: Visit) -> bool {
        let trust = self.trust(visit);
        let visits = of_host(&self.visitors, visit.0).map(|(other, _)| other);
        let left = of_host(&self.handoffs.departures, visit.0).map(|(other, _)| other);
        let gone = self.handoffs.gone.of_host(now, visit.0).map(|(other, _)| other);
        let mut all = visits.chain(left).chain(gone);
        all.any(|other| self.trust(other) >= trust)
    }

    /// Returns whether the mobile node of a visit has sent a message with this Identification after the Binding Update by which it has
    /// left, if it has asked to forward nothing.
    pub(super) fn is_after_departure(&self, now: Instant, visit: Visit, identification: u64) -> bool {
        let gone = self.handoffs.gone.get(now, visit);
        gone.is_none_or(|gone| ntp_distance(identification, gone.identification) > 0)
    }

    /// Returns whether there is a place for another claim without a proof. If all are taken, those whose requests do not wait any
    /// more are removed.
    fn has_place_for_claim(&mut self, out: &mut Outbox) -> bool {
        let claims = &self.handoffs.claims;
        let is_full = || claims.values().filter(|claim| !claim.is_proven).count() >= CLAIMS;
        if claims.len() < CLAIMS || !is_full() {
            return true;
        }
        let is_over = |claim: &Claim| !claim.is_proven && self.waiting.get(claim.waits).is_none();
        let over = claims.iter().filter(|(_, claim)| is_over(claim)).map(|(host, _)| *host);
        let over: Vec<Ipv4Addr> = over.collect();
        for host in &over {
            self.handoffs.claims.remove(host);
            self.handoffs.rearm(*host);
            self.end_keeping_of_unaccepted(*host, out);
            self.watch_tunnels(*host, out);
        }
        !over.is_empty()
    }

    /// Returns whether the Identification of a request is later than those of the visits, of the handoffs, and of an authenticated
    /// request that this agent has of the mobile node.
    /// A host on the link can repeat an earlier request with its authentication. With nonces, the order is random: a request that
    /// seems to be earlier is then treated as one without an authentication. A request from the future that was denied or not answered
    /// may be later than all these: a known request is no later one.
    pub(super) fn is_latest(&self, now: Instant, request: &Request) -> bool {
        let host = request.home;
        if self.handoffs.remembered.was_asked(request) {
            return false;
        }
        // A configured association is the same for all home agents. A distributed key is valid for one of them.
        let is_configured = self.mobile_nodes.first(host).is_some();
        let is_own = |visit: &Visit| is_configured || visit.1 == request.home_agent;
        let visits = of_host(&self.visitors, host).map(|(visit, visitor)| (visit, visitor.last_request()));
        let left = of_host(&self.handoffs.departures, host);
        let left = left.map(|(visit, departure)| (visit, departure.identification));
        let gone = self.handoffs.gone.of_host(now, host).map(|(visit, gone)| (visit, gone.identification));
        let claimed = self.handoffs.claims.get(&host);
        let claimed = claimed.and_then(|it| Some((it.visit(host), it.proves(it.visit(host))?)));
        let mut all = visits.chain(left).chain(gone).chain(claimed).filter(|(visit, _)| is_own(visit));
        all.all(|(_, known)| ntp_distance(request.identification, known) > 0)
    }

    /// Records that a registration is accepted, with `lifetime` 0 if it ends the visit. Packets of the agents that the mobile
    /// node has named are delivered without a limit from now on.
    pub(super) fn arrived(&mut self, now: Instant, pending: &Pending, lifetime: u16, out: &mut Outbox) {
        let Pending { mac, ref request, .. } = *pending;
        let host = request.home;
        let visit = (host, request.home_agent);
        let named = self.named_by(pending).filter(|_| self.config.smooth_handoff && lifetime != 0);
        let handoffs = &mut self.handoffs;
        let before = handoffs.arrivals.remove(&visit);
        let claim = handoffs.claims.get(&host).filter(|claim| claim.visit(host) == visit);
        if named.is_none() && before.is_none() && claim.is_none() {
            return;
        }
        let claimed = claim.filter(|claim| claim.mac == mac).map(|claim| claim.sources.clone());
        let is_later = |claim: &Claim| ntp_distance(claim.identification, request.identification) > 0;
        if claim.is_some_and(|claim| claim.proves(visit).is_none() || !is_later(claim)) {
            handoffs.claims.remove(&host);
        }
        let before = before.filter(|before| before.mac == mac).map(|before| before.sources);
        // Another host can have sent the requests without a proof: what this one has named comes first.
        let all = named.into_iter().chain([claimed, before].into_iter().flatten().flatten());
        let sources = merged(now, all.filter(|_| lifetime != 0));
        if let Some(ends) = sources.iter().map(|(_, until)| *until).max() {
            handoffs.arrivals.insert(visit, Arrival { mac, sources, ends });
        }
        handoffs.rearm(host);
        self.watch_tunnels(host, out);
    }

    /// Sets or removes the route by which this role gets the packets for a mobile node out of tunnels of other agents. Their
    /// source is checked by [`Self::out_of_tunnel`], because the route applies to any source.
    pub(super) fn watch_tunnels(&mut self, host: Ipv4Addr, out: &mut Outbox) {
        let handoffs = &self.handoffs;
        let arrivals = of_host(&handoffs.arrivals, host).map(|(_, arrival)| arrival.ends);
        let claim = handoffs.claims.get(&host).map(|claim| claim.ends);
        let left = of_host(&handoffs.departures, host);
        let sources_left = left.filter(|(_, departure)| !departure.sources.is_empty());
        let ends = arrivals.chain(claim).chain(sources_left.map(|(_, left)| left.ends));
        let lifetime = ends.max().map(Lifetime::Until);
        let classes = if lifetime.is_some() { self.classes_of_agents(host) } else { BTreeSet::new() };
        let watched = classes.into_iter().zip(std::iter::repeat(lifetime));
        let punt =
            |(class, lifetime): (Class, Option<Lifetime>)| Some((class, Route::new(Action::Punt, lifetime?)));
        let mut routes: BTreeMap<Class, Route> = watched.filter_map(punt).collect();
        if let Some(direct) = self.direct_route(host) {
            routes.entry(self.classes.of_unknown()).or_insert(direct);
        }
        let classes: BTreeSet<Class> = routes.keys().copied().collect();
        let before = self.handoffs.watched.remove(&host).unwrap_or_default();
        // The route of a visit has taken the place of an early one.
        let is_of_visit = |class: &Class| {
            let mut agents = self.opened.iter().filter(|(_, opened)| opened.class == *class);
            agents.any(|(agent, _)| self.has_own_route(host, *agent))
        };
        for class in before.difference(&classes).filter(|class| !is_of_visit(class)) {
            out.route(RouteKey::to(*class, host), None);
        }
        for (class, route) in routes {
            out.route(RouteKey::to(class, host), route);
        }
        if !classes.is_empty() {
            self.handoffs.watched.insert(host, classes);
        }
    }

    /// Watches the tunnels of this home agent, which has a class from now on, for the mobile nodes whose requests to it wait.
    pub(super) fn watch_early(&mut self, home_agent: Ipv4Addr, out: &mut Outbox) {
        let of_agent = |(_, claim): &(&Ipv4Addr, &Claim)| claim.is_proven && claim.home_agent == home_agent;
        let hosts: Vec<Ipv4Addr> =
            self.handoffs.claims.iter().filter(of_agent).map(|(host, _)| *host).collect();
        for host in hosts {
            self.watch_tunnels(host, out);
        }
    }

    /// Returns the route of packets out of tunnels of all hosts for a visitor, or for a mobile node that has left; `None` if the
    /// configuration does not permit such packets, or if there is neither. The home agents of two visitors may have given
    /// them the same home address. Then the first one gets these packets ([`Self::ranked`]).
    fn direct_route(&self, host: Ipv4Addr) -> Option<Route> {
        if !self.config.direct_tunnels {
            return None;
        }
        self.ranked(host).into_iter().find_map(|visit| {
            if let Some(visitor) = self.visitors.get(&visit) {
                let action = self.action_for(visit, visitor.mac);
                return Some(Route::new(action, Lifetime::Until(visitor.ends)));
            }
            let departure = self.handoffs.departures.get(&visit)?;
            Some(Route::new(Action::Punt, Lifetime::Until(departure.ends)))
        })
    }

    /// Returns the visits of a mobile node that are recorded here, also those that it has left, and that of an authenticated request
    /// that waits. First those with a trusted home agent, that of the latest message of the mobile node first: it may have turned to
    /// another home agent. Then the others, the earliest first: the later ones may be those of another host.
    fn ranked(&self, host: Ipv4Addr) -> Vec<Visit> {
        let visits = of_host(&self.visitors, host);
        let visits = visits.map(|(visit, visitor)| (visitor.since, visitor.asked, visit));
        let left = of_host(&self.handoffs.departures, host);
        let left = left.map(|(visit, departure)| (departure.since, departure.since, visit));
        let claim = self.handoffs.claims.get(&host).filter(|claim| claim.is_proven);
        let claimed = claim.map(|claim| (Instant::NEVER, Instant::NEVER, claim.visit(host)));
        let mut all: Vec<_> = visits.chain(left).chain(claimed).collect();
        all.sort_unstable_by_key(|(since, asked, visit)| match self.trust(*visit) {
            Trust::Associated => (false, u64::MAX - asked.0, *visit),
            Trust::Unknown => (true, since.0, *visit),
        });
        all.into_iter().map(|(_, _, visit)| visit).collect()
    }

    /// Returns the classes of packets out of tunnels of other agents for a mobile node: the class of unknown sources, and those
    /// of agents that are also home agents of visitors. The class of the mobile node's own home agent is one of them
    /// only while its authenticated request waits.
    fn classes_of_agents(&self, host: Ipv4Addr) -> BTreeSet<Class> {
        let arrivals = of_host(&self.handoffs.arrivals, host).map(|(_, arrival)| &arrival.sources);
        let claim = self.handoffs.claims.get(&host);
        let left = of_host(&self.handoffs.departures, host).map(|(_, departure)| &departure.sources);
        let named = arrivals.chain(claim.map(|claim| &claim.sources)).chain(left).flatten();
        let early = claim.filter(|claim| claim.is_proven).map(|claim| claim.home_agent);
        let sources = named.map(|(agent, _)| *agent).chain(early);
        let opened = sources
            .filter(|agent| !self.has_own_route(host, *agent))
            .filter_map(|agent| self.opened.get(&agent));
        opened.map(|opened| opened.class).chain([self.classes.of_unknown()]).collect()
    }

    /// Returns whether packets for a mobile node out of tunnels of this home agent have a route, because it visits this agent or has
    /// left it.
    fn has_own_route(&self, host: Ipv4Addr, agent: Ipv4Addr) -> bool {
        let visit = (host, agent);
        self.visitors.contains_key(&visit) || self.handoffs.departures.contains_key(&visit)
    }

    /// Handles a packet out of a tunnel whose source is not the home agent of the packet's destination. It is delivered if
    /// the source is the agent that the mobile node has named, or forwarded if the mobile node has left, and dropped
    /// otherwise.
    pub(super) fn out_of_tunnel(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        let (entry, _) = rx.tunnel.unwrap_or((Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED));
        let host = rx.header.dst;
        match self.judge_arrival(now, entry, host) {
            Ok(Judged::IsHere(visit, mac)) => {
                self.handoffs.delivered += 1;
                self.deliver_in_order(now, visit, mac, (rx, packet), out);
            }
            Ok(Judged::HasLeft(visit)) => self.forward_departed(now, visit, (rx, entry, packet), out),
            Err(NOT_A_VISITOR) if self.config.special_tunnels => self.send_back(now, rx, entry, packet, out),
            Err(reason) => self.refused.end(rx.iface, packet, Err(reason), out),
        }
    }

    /// Judges a packet for `host` out of a tunnel from `entry`. Fails with the reason to drop the packet. What accepted registrations and
    /// authentic messages have shown comes first, then a request without a proof.
    fn judge_arrival(&mut self, now: Instant, entry: Ipv4Addr, host: Ipv4Addr) -> Result<Judged, Reason> {
        let ranked = self.ranked(host);
        if let Some(judged) = ranked.iter().find_map(|visit| self.judge_visit(now, entry, *visit)) {
            return Ok(judged);
        }
        let is_recorded = of_host(&self.handoffs.arrivals, host).any(|(_, arrival)| now < arrival.ends)
            || of_host(&self.handoffs.departures, host).next().is_some();
        let claimed = self.handoffs.claims.get(&host).map(|claim| claim.visit(host));
        let is_visited = claimed.is_some_and(|visit| self.is_known(now, visit));
        let claim = self.handoffs.claims.get_mut(&host).filter(|claim| now < claim.ends);
        let unknown = if is_recorded || claim.is_some() { NOT_PREVIOUS_AGENT } else { NOT_A_VISITOR };
        let is_first = |claim: &Claim| has_named(claim.sources.get(..1).unwrap_or_default(), now, entry);
        let claim = claim.filter(|claim| is_first(claim)).ok_or(unknown)?;
        if self.waiting.get(claim.waits).is_none() {
            return Err(NOT_ACCEPTED);
        }
        if is_visited {
            return Err(NOT_ACCEPTED);
        }
        // Without a correct authentication, another host may have asked for the packets of the mobile node.
        claim.left = claim.left.checked_sub(1).ok_or(EARLY_LIMIT)?;
        Ok(Judged::IsHere(claim.visit(host), claim.mac))
    }

    /// Judges a packet for the mobile node of one of its visits ([`Self::ranked`]); `None` if the packet is not for it. An authenticated
    /// request that waits comes first, then an accepted registration, and then a Binding Update.
    fn judge_visit(&self, now: Instant, entry: Ipv4Addr, visit: Visit) -> Option<Judged> {
        let visitor = self.visitors.get(&visit);
        let is_new = !self.handoffs.departures.contains_key(&visit) && visitor.is_none();
        let is_direct = self.config.direct_tunnels;
        let claim = self.handoffs.claims.get(&visit.0).filter(|claim| now < claim.ends && claim.is_proven);
        let claim = claim.filter(|claim| {
            claim.visit(visit.0) == visit && (claim.is_held || self.waiting.get(claim.waits).is_some())
        });
        // The home agent has accepted an authenticated request if it tunnels packets to this agent.
        let is_early = |claim: &&Claim| {
            has_named(&claim.sources, now, entry) || is_new && (is_direct || entry == claim.home_agent)
        };
        if let Some(claim) = claim.filter(is_early) {
            return Some(Judged::IsHere(visit, claim.mac));
        }
        let arrival = self.handoffs.arrivals.get(&visit).filter(|arrival| now < arrival.ends);
        if let Some(arrival) = arrival.filter(|arrival| has_named(&arrival.sources, now, entry)) {
            return Some(Judged::IsHere(visit, arrival.mac));
        }
        let left = self.handoffs.departures.get(&visit);
        if left.is_some_and(|left| is_direct || has_named(&left.sources, now, entry)) {
            return Some(Judged::HasLeft(visit));
        }
        visitor.filter(|_| is_direct).map(|visitor| Judged::IsHere(visit, visitor.mac))
    }

    /// Notes that this agent has denied a request, because it got no answer of the home agent.
    pub(super) fn hold_claim(&mut self, request: &Request) {
        let asked = (request.home, low(request.identification));
        let claim = self.handoffs.claims.get_mut(&asked.0);
        if let Some(claim) = claim.filter(|claim| claim.is_proven && claim.waits == asked) {
            claim.is_held = true;
        }
    }

    /// Ends the claim of a visit. Returns the agents that it has named, if it was authenticated.
    pub(super) fn end_claim(&mut self, visit: Visit) -> Option<Sources> {
        let claim = self.handoffs.claims.get(&visit.0)?;
        if claim.visit(visit.0) != visit {
            return None;
        }
        self.handoffs.claims.remove(&visit.0).filter(|claim| claim.is_proven).map(|claim| claim.sources)
    }

    /// Records that the home agent has denied a request because of its Identification. A corrected one may have an earlier one. Until it
    /// arrives, no earlier Binding Update is accepted.
    pub(super) fn corrects_identification(&mut self, pending: &Pending) {
        let request = &pending.request;
        // Another host may have repeated an earlier request, which is denied too.
        if !pending.is_new {
            return;
        }
        let asked = (request.home, low(request.identification));
        if let Some(claim) = self.handoffs.claims.get_mut(&asked.0).filter(|claim| claim.waits == asked) {
            claim.is_denied = true;
        }
        let later = |left_by: u64| ntp_distance(request.identification, left_by) > 0;
        if let Some(visitor) = self.visitors.get_mut(&(request.home, request.home_agent))
            && visitor.left_by.is_some_and(later)
        {
            visitor.is_corrected = true;
        }
    }

    /// Records an authenticated request that is no replay ([`Asked`]). If it corrects the Identification of a denied
    /// one, earlier messages are none of this visit.
    pub(super) fn note_new(&mut self, pending: &Pending) {
        let request = &pending.request;
        self.handoffs.remembered.note_asked(pending);
        let visitor = self.visitors.get_mut(&(request.home, request.home_agent));
        if let Some(visitor) = visitor.filter(|visitor| visitor.is_corrected) {
            (visitor.identification, visitor.is_corrected) = (request.identification, false);
        }
    }

    /// Ends the delivery of packets of previous agents when its time has passed. If the mobile node had left this agent, came
    /// back with an authenticated request, and was not accepted, its packets are not forwarded any more: it is not at the
    /// care-of address of before.
    pub(super) fn end_arrival(&mut self, now: Instant, host: Ipv4Addr, out: &mut Outbox) {
        let handoffs = &mut self.handoffs;
        let arrivals = of_host(&handoffs.arrivals, host).filter(|(_, arrival)| arrival.ends <= now);
        let ended: Vec<Visit> = arrivals.map(|(visit, _)| visit).collect();
        for visit in ended {
            handoffs.arrivals.remove(&visit);
        }
        let has_ended = handoffs.claims.get(&host).is_some_and(|claim| claim.ends <= now);
        let claim = if has_ended { handoffs.claims.remove(&host) } else { None };
        handoffs.rearm(host);
        self.end_keeping_of_unaccepted(host, out);
        if let Some(claim) = claim.filter(|claim| claim.is_proven) {
            self.end_older_departures(now, claim.visit(host), claim.identification, out);
        }
        self.watch_tunnels(host, out);
    }

    /// Ends the claim of an authenticated mobile node, also one for another home agent, that it made before its message with this
    /// Identification: it has left. Returns the agents that it has named.
    pub(super) fn end_older_claim(
        &mut self,
        (host, proof): (Ipv4Addr, &Proof),
        identification: u64,
        out: &mut Outbox,
    ) -> Option<Sources> {
        let claim = self.handoffs.claims.get(&host).filter(|claim| claim.is_proven)?;
        let is_older = ntp_distance(identification, claim.identification) > 0;
        if !is_older || !proof.is_for(claim.visit(host)) {
            return None;
        }
        let claim = self.handoffs.claims.remove(&host)?;
        self.handoffs.rearm(host);
        let visit = claim.visit(host);
        if !self.visitors.contains_key(&visit) && !self.handoffs.departures.contains_key(&visit) {
            self.end_keeping(visit, out);
        }
        Some(claim.sources)
    }

    /// Returns the state of smooth handoffs for the role's status.
    pub(super) fn handoffs_status(&self) -> Value {
        let handoffs = &self.handoffs;
        let arrival = |host: Ipv4Addr, sources: &Sources, state: &'static str, ends: Instant| {
            let value = [
                ("previous", sources.first().map_or(Value::None, |(agent, _)| (*agent).into())),
                ("state", state.into()),
                ("ends_unix_s", self.clock.unix_seconds(ends).into()),
            ];
            (host, Value::map(value))
        };
        let registered = handoffs.arrivals.iter();
        let registered = registered.map(|(visit, it)| arrival(visit.0, &it.sources, "registered", it.ends));
        let pending = handoffs.claims.iter();
        let pending = pending.map(|(host, it)| arrival(*host, &it.sources, "pending", it.ends));
        let departure = |((host, home_agent), departure): (&Visit, &Departure)| {
            let value = Value::map([
                ("home_agent", Value::from(*home_agent)),
                ("care_of", departure.care_of.into()),
                ("since_unix_s", self.clock.unix_seconds(departure.since).into()),
                ("ends_unix_s", self.clock.unix_seconds(departure.ends).into()),
            ]);
            (*host, value)
        };
        let keys = self.config.distributed_keys.then(|| ("keys", (self.keys.len() as u64).into()));
        let all = [
            ("arrivals", by_host(registered.chain(pending))),
            ("departures", by_host(handoffs.departures.iter().map(departure))),
            ("updates_sent", handoffs.sent.into()),
            ("delivered", handoffs.delivered.into()),
            ("forwarded", handoffs.forwarded.into()),
            ("sent_back", handoffs.sent_back.into()),
        ];
        Value::map(all.into_iter().chain(keys))
    }
}
