//! The route of Mobile IP to a mobile node, by the marks of agents and of correspondents with a binding cache: since when
//! the packets of a sender reach the present place of the mobile node.
//!
//! A sender with an entry in its binding cache sends to the care-of address of the entry. Any other sender sends to the home
//! network, and the home agent sends to the care-of address of the binding. With smooth handoffs, an agent that the mobile
//! node has left sends onward. So different senders have the new route at different times.

use super::analysis::{HandoffAnalysis, is_registered, text};
use mobile_ip::mark::HOME_AGENT;
use node::{Mark, Span, Stage};
use std::collections::BTreeMap;
use trace::{HostId, Record, What};
use wire::{Iface, Instant, Ipv4Addr, PacketId};

/// A place to which packets for a mobile node are sent: a care-of address, or `None` for the home network.
pub(super) type CareOf = Option<Ipv4Addr>;

/// The packet that reached a mobile node by a new route, or an instant at which the sender could have sent one.
#[derive(Clone, Copy)]
pub(super) struct Departure {
    pub(super) sender: HostId,
    /// When the sender's node sent the packet.
    pub(super) at: Instant,
    /// `None` if no packet is known.
    pub(super) packet: Option<PacketId>,
}

/// The route from a sender to a mobile node at an instant.
#[derive(Clone, Copy)]
pub(super) enum Route<'a> {
    /// No record shows where the mobile node is.
    Unknown,
    /// The route led to the mobile node, and no record of the examined time has changed that.
    Earlier,
    /// The route led to the mobile node, since this record.
    Since(&'a Record),
    /// The route did not lead to the mobile node.
    Missing,
}

/// How a sender got the new path to a moving host.
pub(super) enum Switched<'a> {
    /// It used a path that led to the host already.
    Earlier,
    /// An agent, or another node between the two, changed the path.
    Agent {
        /// The record that ends the registration.
        mapped: Option<&'a Record>,
        /// The record that begins the switch of the path.
        switch: Option<&'a Record>,
        /// Whether there is such a node.
        is_crossed: bool,
    },
    /// The binding cache of the sender changed later than the agent.
    Sender {
        /// The record that ends the registration at the agent.
        mapped: Option<&'a Record>,
        /// The record that ends it at the sender; `None` if it did not end.
        ready: Option<&'a Record>,
    },
    /// The host itself is the sender, and its own route changed.
    Own {
        /// The record since which its packets used the new route; `None` if they did not use it yet.
        ready: Option<&'a Record>,
    },
}

impl Switched<'_> {
    /// Returns when the sender had the new path; `None` if no record shows it.
    pub(super) fn ready(&self) -> Option<Instant> {
        let ready = match self {
            Self::Earlier => None,
            Self::Agent { mapped, .. } => *mapped,
            Self::Sender { ready, .. } | Self::Own { ready } => *ready,
        };
        ready.map(|record| record.at)
    }
}

/// Where the packets of one sender for one mobile node are sent.
#[derive(Default)]
struct Places {
    /// The entry in the sender's binding cache.
    cached: CareOf,
    /// The binding at the home agent.
    bound: CareOf,
    /// The care-of addresses to which earlier foreign agents forward.
    onward: BTreeMap<HostId, Ipv4Addr>,
}

impl Places {
    /// Updates the places with a mark about the mobile node, or with the crash of a host.
    fn note(&mut self, record: &Record, sender: HostId) {
        let What::Marked(mark) = &record.what else {
            // A host that crashes forgets all but its stored bindings.
            self.onward.remove(&record.host);
            self.cached = self.cached.filter(|_| record.host != sender);
            return;
        };
        match mark.name {
            "binding_changed" | "binding_restored" => self.bound = care_of(mark),
            "binding_removed" | "binding_expired" => self.bound = None,
            "care_of_learnt" => self.onward.extend(care_of(mark).map(|care_of| (record.host, care_of))),
            "forwarding_ended" | "visitor_departed" => drop(self.onward.remove(&record.host)),
            "binding_learnt" if record.host == sender => self.cached = care_of(mark),
            "binding_forgotten" if record.host == sender => self.cached = None,
            _ => {}
        }
    }

    /// Returns the place that a packet of the sender reaches.
    fn reached(&self, owners: &BTreeMap<Ipv4Addr, HostId>) -> CareOf {
        let mut place = self.cached.or(self.bound);
        // Agents that forward to each other make a circle.
        for _ in 0..=self.onward.len() {
            let agent = place.and_then(|care_of| owners.get(&care_of));
            match agent.and_then(|agent| self.onward.get(agent)) {
                Some(next) => place = Some(*next),
                None => break,
            }
        }
        place
    }
}

impl<'a> HandoffAnalysis<'a> {
    /// Returns how the path to `host` was switched for a departure, or for the last mark about `host` if there is none.
    pub(super) fn switched(
        &self,
        host: HostId,
        [from, until]: [Instant; 2],
        departure: Option<Departure>,
    ) -> Switched<'a> {
        let Some(departure) = departure else { return self.last_switch(host, [from, until]) };
        if departure.packet.is_none() && self.registers_elsewhere(host, [from, until]) {
            return Switched::Sender { mapped: None, ready: None };
        }
        let last = |until| self.routes_to(host, from, until).rfind(|record| is_registered(record));
        match (self.route(host, from, until, &departure), departure.packet) {
            (Route::Earlier, _) => Switched::Earlier,
            (Route::Since(agent), _) if is_registered(agent) => self.agent(host, agent, until),
            (Route::Since(ready), _) => Switched::Sender { mapped: last(ready.at), ready: Some(ready) },
            (Route::Missing, None) => Switched::Sender { mapped: last(until), ready: None },
            (Route::Missing, Some(packet)) => match self.redirected(host, [from, until], packet) {
                Some(agent) => self.agent(host, agent, until),
                None => self.last_switch(host, [from, until]),
            },
            (Route::Unknown, _) => self.last_switch(host, [from, until]),
        }
    }

    /// Returns the switch by the agent of this record.
    fn agent(&self, host: HostId, agent: &'a Record, until: Instant) -> Switched<'a> {
        let begins = |r: &&Record| match &r.what {
            What::Marked(mark) => {
                let is_switch = mark.span == Some(Span::Begins(Stage::PathSwitch));
                r.host == agent.host && is_switch && self.is_about(mark, "host", host)
            }
            _ => false,
        };
        let switch = self.between(agent.at, until).iter().find(begins);
        Switched::Agent { mapped: Some(agent), switch, is_crossed: true }
    }

    /// Returns the switch by the node that made the last mark about it. Nodes below the crossover make the same marks
    /// slightly earlier. They are not used instead of a missing mark of the crossover, because then the missing mark would
    /// not be noticed.
    fn last_switch(&self, host: HostId, [from, until]: [Instant; 2]) -> Switched<'a> {
        let mapped = self.edge(host, from, until, Span::Ends(Stage::Registration), true);
        let switch = self.edge(host, from, until, Span::Begins(Stage::PathSwitch), true);
        let crossover = mapped.into_iter().chain(switch).max_by_key(|record| record.at).map(|r| r.host);
        let at_crossover = |record: &&Record| Some(record.host) == crossover;
        let [mapped, switch] = [mapped, switch].map(|record| record.filter(at_crossover));
        Switched::Agent { mapped, switch, is_crossed: crossover.is_some() }
    }

    /// Returns the route to `host` at a departure. The place of `host` is that of its registrations from `from` to `until`.
    pub(super) fn route(
        &self,
        host: HostId,
        from: Instant,
        until: Instant,
        departure: &Departure,
    ) -> Route<'a> {
        let Some(place) = self.place(host, from, until, departure.packet) else { return Route::Unknown };
        let mut places = Places::default();
        let (mut is_ready, mut since) = (place.is_none(), None);
        for record in self.routes_to(host, Instant::ZERO, departure.at) {
            places.note(record, departure.sender);
            let leads = places.reached(&self.owners) == place;
            if leads != is_ready {
                since = leads.then_some(record);
            }
            is_ready = leads;
        }
        match since.filter(|since| since.at >= from) {
            _ if !is_ready => Route::Missing,
            None => Route::Earlier,
            Some(since) if matches!(since.what, What::Marked(_)) => Route::Since(since),
            Some(_) => Route::Unknown,
        }
    }

    /// Returns the last registration of `host` from `from` to `until` after which an agent that changed its path sent this
    /// packet. Returns `None` without such an agent.
    pub(super) fn redirected(
        &self,
        host: HostId,
        [from, until]: [Instant; 2],
        packet: PacketId,
    ) -> Option<&'a Record> {
        let mut agents = self.routes_to(host, from, until).filter(|record| is_registered(record));
        agents.rfind(|agent| {
            let sends = |r: &Record| {
                let is_it =
                    matches!(&r.what, What::Sent(iface, one) if *iface != Iface::HOST && one.id == packet);
                r.host == agent.host && is_it
            };
            self.first(agent.at, until, sends).is_some()
        })
    }

    /// Returns the place of a mobile node after its registrations from `from` to `until`, or `None` if it has not registered. Of
    /// several, it is the last one whose agent has sent `packet`, because a registration with an earlier agent can be late.
    pub(super) fn place(
        &self,
        host: HostId,
        from: Instant,
        until: Instant,
        packet: Option<PacketId>,
    ) -> Option<CareOf> {
        let places = || {
            let registered = self.routes_to(host, from, until).filter(|record| is_registered(record));
            registered.filter_map(|record| match &record.what {
                What::Marked(mark) => Some(care_of(mark)),
                _ => None,
            })
        };
        let is_left = |place: &CareOf| {
            let agent = place.and_then(|care_of| self.owners.get(&care_of));
            let is_it = |r: &Record, packet| matches!(&r.what, What::Sent(_, one) if one.id == packet);
            // The last agent sent it shortly before it arrived.
            let mut sent = self.between(from, until).iter().rev();
            agent.is_none_or(|agent| {
                let mut sends = |packet| sent.any(|r| r.host == *agent && is_it(r, packet));
                *agent == host || packet.is_none_or(&mut sends)
            })
        };
        places().rev().find(is_left).or_else(|| places().next_back())
    }

    /// Returns whether a mobile node asked for registrations, but none with the agent to which its packets are sent: this agent
    /// was its previous one, and the answer to an earlier request was late.
    fn registers_elsewhere(&self, host: HostId, [from, until]: [Instant; 2]) -> bool {
        let place = self.place(host, from, until, None).flatten();
        let agent = place.and_then(|care_of| self.owners.get(&care_of)).filter(|agent| **agent != host);
        let Some(agent) = agent else { return false };
        let asked = self.between(from, until).iter().filter_map(|record| match &record.what {
            What::Marked(mark) if record.host == host && is_request(mark) => text(mark, "agent"),
            _ => None,
        });
        let asked = asked.map(|asked| asked.parse().ok().and_then(|asked: Ipv4Addr| self.owners.get(&asked)));
        let mut asked = asked.peekable();
        asked.peek().is_some() && asked.all(|asked| asked != Some(agent))
    }

    /// Returns the home agent of a mobile node; `None` if the mobile node never registered.
    pub(super) fn home_agent(&self, host: HostId) -> Option<HostId> {
        let is_home = |r: &&Record| matches!(&r.what, What::Marked(mark) if mark.role == HOME_AGENT);
        self.routes_to(host, Instant::ZERO, Instant::NEVER).find(is_home).map(|record| record.host)
    }

    /// Returns the records from `from` to `until` that change a route to `host`.
    pub(super) fn routes_to(
        &self,
        host: HostId,
        from: Instant,
        until: Instant,
    ) -> impl DoubleEndedIterator<Item = &'a Record> {
        let [begin, end] = [
            self.routes.partition_point(|(_, record)| record.at < from),
            self.routes.partition_point(|(_, record)| record.at <= until),
        ];
        let all = self.routes.get(begin..end).unwrap_or_default().iter();
        all.filter(move |(about, _)| about.is_none_or(|about| about == host)).map(|(_, record)| *record)
    }
}

fn is_request(mark: &Mark) -> bool {
    mark.span == Some(Span::Begins(Stage::Registration))
}

/// Returns the care-of address in a mark, or `None` if it has none.
pub(super) fn care_of(mark: &Mark) -> CareOf {
    text(mark, "care_of")?.parse().ok()
}
