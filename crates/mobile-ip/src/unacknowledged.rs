//! A mobile node's part in a smooth handoff (draft-ietf-mobileip-optim-09, section 9.1): the Binding Update for its previous
//! foreign agent.
//!
//! The new foreign agent builds the same Binding Update from the request, and sends it at once. The mobile node repeats it
//! until the previous agent has acknowledged it, or does not forward packets any more.

use crate::config::MobileNodeConfig;
use crate::message::{
    Acknowledge, Asks, Association, Binding, BufferControl, Extension, Numbers, PORT, PreviousAgent, Request,
    Update, datagram,
};
use crate::refusal;
use wire::{Duration, Instant, Ipv4Addr, Reason, SocketAddrV4, ipv4};

/// The pause before the mobile node sends the Binding Update itself. It doubles each time, as for requests (RFC 5944, section
/// 3.6.3). The draft has no number: "after sufficient time" (section 9.1).
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The reason to drop a Binding Acknowledge: it answers no Binding Update that waits for one.
pub(crate) const STALE_ACKNOWLEDGE: Reason = Reason("stale_acknowledge");
/// The maximum number of former agents whose keys a mobile node remembers (not from an RFC).
const LEFT: usize = 8;
/// The number of last Binding Updates whose acknowledgement ends the repetitions (not from the draft).
const RECENT: usize = 8;

/// The maximum number of handoffs whose Binding Updates are repeated at one time (not from the draft).
const FOLLOWED: usize = 4;

/// The settings of smooth handoffs of a mobile node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Whether the mobile node asks for smooth handoffs.
    pub(crate) is_on: bool,
    /// Whether foreign agents get a key from the home agent.
    pub(crate) has_distributed_keys: bool,
    /// The cache lifetime of requests, in seconds.
    lifetime: u16,
    pub(crate) numbers: Numbers,
}

impl Settings {
    pub(crate) const fn of(config: &MobileNodeConfig) -> Self {
        let lifetime = config.cache_lifetime.as_secs() as u16;
        let (is_on, has_distributed_keys) = (config.smooth_handoff, config.distributed_keys);
        Self { is_on, has_distributed_keys, lifetime, numbers: config.numbers }
    }
}

/// The keys that a mobile node has with foreign agents because the home agent distributes them.
#[derive(Debug, Default)]
pub(crate) struct AgentKeys {
    /// The agent of the registration, with the key of the last request that was accepted.
    pub(crate) held: Option<(Ipv4Addr, Association)>,
    /// The last other agent that got a request, with the key of that request: the home agent may have accepted it.
    pub(crate) asked: Option<(Ipv4Addr, Association)>,
    /// The last agents before that of the registration, the oldest first, each with the key of the last request accepted there, or of
    /// the last Binding Update that it has acknowledged; at most [`LEFT`]. If the mobile node returns to one of them, the agent
    /// may still have this key.
    left: Vec<(Ipv4Addr, Association)>,
}

impl AgentKeys {
    /// Returns the key with an agent; `None` if there is none.
    pub(crate) fn with(&self, agent: Ipv4Addr) -> Option<&Association> {
        let mut all = [&self.held, &self.asked].into_iter().flatten();
        all.find(|(own, _)| *own == agent).map(|(_, key)| key)
    }

    /// Returns the last key that an agent is known to have had; `None` if there is none.
    pub(crate) fn accepted(&self, agent: Ipv4Addr) -> Option<&Association> {
        let mut all = self.held.iter().chain(self.left.iter().rev());
        all.find(|(own, _)| *own == agent).map(|(_, key)| key)
    }

    /// Records the key of a registration that is accepted; `None` if it has none.
    pub(crate) fn hold(&mut self, held: Option<(Ipv4Addr, Association)>) {
        let before = std::mem::replace(&mut self.held, held);
        self.asked = None;
        if let Some((agent, key)) = before {
            self.remember(agent, key);
        }
    }

    /// Records the key of a Binding Update that an agent has acknowledged: this agent has the key, and no earlier one.
    pub(crate) fn confirm(&mut self, agent: Ipv4Addr, key: Association) {
        match self.held.as_mut().filter(|(own, _)| *own == agent) {
            Some((_, held)) => *held = key,
            None => self.remember(agent, key),
        }
    }

    fn remember(&mut self, agent: Ipv4Addr, key: Association) {
        self.left.retain(|(own, _)| *own != agent);
        if self.left.len() >= LEFT {
            self.left.remove(0);
        }
        self.left.push((agent, key));
    }
}

/// The Binding Updates that previous foreign agents have not acknowledged, the oldest first: one for each handoff. Each agent
/// forwards to the next one: the Binding Update for an earlier agent has the care-of address to which the mobile node moved from
/// there.
#[derive(Debug, Default)]
pub(crate) struct UnacknowledgedUpdates(Vec<UnacknowledgedUpdate>);

impl UnacknowledgedUpdates {
    /// Begins or continues the handoff from `previous`, as [`UnacknowledgedUpdate::begin`] does. Returns the extension for the new
    /// agent. If more than [`FOLLOWED`] handoffs wait, the oldest is forgotten. At home, those before `previous` are forgotten: the packets that
    /// they would save go to an agent that forwards nothing.
    pub(crate) fn begin(
        &mut self,
        now: Instant,
        previous: Ipv4Addr,
        request: &Request,
        association: &Association,
        settings: &Settings,
    ) -> Extension {
        let place = self.0.iter().position(|known| known.previous == previous);
        let before = place.map(|place| self.0.remove(place)).filter(|before| !before.is_asked);
        if request.lifetime == 0 {
            self.0.clear();
        } else if self.0.len() >= FOLLOWED {
            self.0.remove(0);
        }
        let (entry, extension) =
            UnacknowledgedUpdate::begin(now, before, previous, request, association, settings);
        self.0.push(entry);
        extension
    }

    /// Records that the mobile node sends a request to an agent that it had left. A later handoff from there is a new one. The
    /// earlier handoff stays: if the request is lost, the agent still needs the Binding Update.
    pub(crate) fn asks(&mut self, agent: Ipv4Addr) {
        self.0.iter_mut().filter(|one| one.previous == agent).for_each(|one| one.is_asked = true);
    }

    /// Forgets the handoff from an agent: the mobile node is back, or the agent has acknowledged it.
    pub(crate) fn end(&mut self, agent: Ipv4Addr) {
        self.0.retain(|entry| entry.previous != agent);
    }

    /// Ends the handoff from an agent that has acknowledged it. Returns the association of the acknowledged Binding Update. Fails with
    /// the reason to drop the message.
    pub(crate) fn acknowledged(
        &mut self,
        agent: Ipv4Addr,
        message: &Acknowledge,
        numbers: &Numbers,
    ) -> Result<Association, Reason> {
        let update = self.of(agent).ok_or(STALE_ACKNOWLEDGE)?;
        update.acknowledged(message, numbers)?;
        let association = update.association.clone();
        self.end(agent);
        Ok(association)
    }

    /// Forgets the handoffs from agents that do not forward packets any more.
    pub(crate) fn end_old(&mut self, now: Instant) {
        self.0.retain(|entry| entry.ends > now);
    }

    /// Returns the handoff from an agent; `None` if it has acknowledged the handoff, or there was none.
    pub(crate) fn of(&self, agent: Ipv4Addr) -> Option<&UnacknowledgedUpdate> {
        self.0.iter().find(|entry| entry.previous == agent)
    }

    /// Returns the last handoff; `None` if none waits.
    pub(crate) fn last(&mut self) -> Option<&mut UnacknowledgedUpdate> {
        self.0.last_mut()
    }

    /// Returns the handoffs whose Binding Update is to be sent now by the agent `by`. None is sent to that agent itself: the mobile
    /// node is back, or about to register there.
    pub(crate) fn due_at(
        &mut self,
        now: Instant,
        by: Ipv4Addr,
    ) -> impl Iterator<Item = &mut UnacknowledgedUpdate> {
        self.0.iter_mut().filter(move |entry| entry.due <= now && entry.previous != by)
    }

    /// Returns when the next Binding Update is sent again by the agent `by` (`None` without a link), or the next handoff ends; `None` if
    /// none waits.
    pub(crate) fn due(&self, by: Option<Ipv4Addr>) -> Option<Instant> {
        let can_send = |one: &UnacknowledgedUpdate| by.is_some_and(|by| by != one.previous);
        self.0.iter().map(|one| if can_send(one) { one.due.min(one.ends) } else { one.ends }).min()
    }
}

/// The Binding Update of a handoff that the previous foreign agent has not acknowledged.
#[derive(Debug)]
pub(crate) struct UnacknowledgedUpdate {
    pub(crate) previous: Ipv4Addr,
    association: Association,
    /// The last Binding Update.
    update: Update,
    /// The Identifications of the last Binding Updates, the oldest first; at most [`RECENT`].
    identifications: Vec<u64>,
    /// When the previous agent certainly forwards no packets any more.
    ends: Instant,
    /// When the mobile node sends the Binding Update itself the next time.
    due: Instant,
    pause: Duration,
    repeated: u32,
    /// Whether the handoff began with the last request.
    is_new: bool,
    /// Whether the mobile node has sent another request to the agent since.
    is_asked: bool,
}

impl UnacknowledgedUpdate {
    /// Begins the handoff from `previous` with this request, or continues `before`. The request does not have its later extensions yet.
    /// Returns the handoff, and the extension for the new agent. With a request that ends the registration, the previous agent
    /// is asked to forward nothing, and the mobile node itself has to send the Binding Update.
    fn begin(
        now: Instant,
        before: Option<Self>,
        previous: Ipv4Addr,
        request: &Request,
        association: &Association,
        settings: &Settings,
    ) -> (Self, Extension) {
        let is_end = request.lifetime == 0;
        let lifetime = if is_end { 0 } else { settings.lifetime.min(request.lifetime) };
        let said = PreviousAgent::new(request, lifetime, previous, association, &settings.numbers);
        let update = said.update(request, &settings.numbers);
        let mut identifications =
            before.as_ref().map(|before| before.identifications.clone()).unwrap_or_default();
        if identifications.len() >= RECENT {
            identifications.remove(0);
        }
        identifications.push(request.identification);
        // At home, no agent has sent the update.
        let (first, pause) = if is_end { (now, FIRST_PAUSE) } else { (now + FIRST_PAUSE, FIRST_PAUSE * 2) };
        let entry = Self {
            previous,
            association: association.clone(),
            update,
            identifications,
            ends: now + Duration::from_secs(settings.lifetime.into()),
            due: before.as_ref().filter(|_| !is_end).map_or(first, |before| before.due),
            is_new: before.is_none(),
            is_asked: false,
            pause: before.as_ref().map_or(pause, |before| before.pause),
            repeated: before.map_or(0, |before| before.repeated),
        };
        (entry, said.extension(&settings.numbers))
    }

    /// Returns the Buffer Control Request that names received packets to the previous agent, as a datagram from `home`. `None` if
    /// the handoff did not begin with the last request.
    pub(crate) fn names(
        &self,
        home: Ipv4Addr,
        named: impl Iterator<Item = (Ipv4Addr, u16)>,
        numbers: &Numbers,
    ) -> Option<Vec<u8>> {
        let identification = self.update.identification.filter(|_| self.is_new)?;
        let ends = [home, self.previous];
        Some(control(Asks::Forward, ends, identification, named.collect(), &self.association, numbers))
    }

    /// Returns the previous agent and the new care-of address, once for each handoff.
    pub(crate) fn take_new(&mut self) -> Option<(Ipv4Addr, Ipv4Addr)> {
        std::mem::take(&mut self.is_new).then_some((self.previous, self.update.care_of))
    }

    /// Returns the Binding Update from `home` to send now, as a datagram, and how often it was sent with this one. The next
    /// pause is twice as long.
    pub(crate) fn repeat(&mut self, now: Instant, home: Ipv4Addr, numbers: &Numbers) -> (Vec<u8>, u32) {
        self.due = now + self.pause;
        self.pause *= 2;
        self.repeated += 1;
        (Binding::Update(self.update.clone()).datagram(home, self.previous, numbers), self.repeated)
    }

    /// Checks whether a Binding Acknowledge from the previous agent ends the handoff. A refusal of an update that is not the last
    /// one does not. Fails with the reason to drop the message.
    pub(crate) fn acknowledged(&self, message: &Acknowledge, numbers: &Numbers) -> Result<(), Reason> {
        let is_last = message.identification == self.update.identification;
        let is_known = message.identification.is_some_and(|one| self.identifications.contains(&one));
        let is_accepted = message.status.0 < 128;
        if message.home != self.update.home || !is_known || !(is_last || is_accepted) {
            return Err(STALE_ACKNOWLEDGE);
        }
        if !message.verify(numbers.smooth_authentication, &self.association, numbers) {
            return Err(refusal::BAD_AUTHENTICATION);
        }
        Ok(())
    }
}

/// Returns a Buffer Control Request as a datagram between these ends: the home address, and the foreign agent.
pub(crate) fn control(
    asks: Asks,
    ends: [Ipv4Addr; 2],
    identification: u64,
    named: Vec<(Ipv4Addr, u16)>,
    association: &Association,
    numbers: &Numbers,
) -> Vec<u8> {
    let [home, _] = ends;
    let mut message = BufferControl { asks, home, identification, named, authentication: None };
    message.sign(association, numbers);
    let [from, to] = ends.map(|address| SocketAddrV4::new(address, PORT));
    datagram(from, to, ipv4::DEFAULT_TTL, &message.emit(numbers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Algorithm, RequestFlags, Status};

    const HOME: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);

    fn agent(number: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 3, number, 1)
    }

    /// The mobile node moves from one agent to the next one, or home.
    fn moves(updates: &mut UnacknowledgedUpdates, at: u64, from: u8, to: Option<u8>) {
        let numbers = Numbers::default();
        let settings = Settings { is_on: true, has_distributed_keys: false, lifetime: 60, numbers };
        let association =
            Association { spi: 300, algorithm: Algorithm::HmacSha256, key: auth::Key::new([1; 16]) };
        let request = Request {
            flags: RequestFlags(0),
            lifetime: if to.is_some() { 300 } else { 0 },
            home: HOME,
            home_agent: Ipv4Addr::new(10, 1, 0, 2),
            care_of: to.map_or(HOME, agent),
            identification: at,
            extensions: Vec::new(),
        };
        updates.asks(request.care_of);
        updates.begin(Instant::from_millis(at), agent(from), &request, &association, &settings);
    }

    fn waiting(updates: &UnacknowledgedUpdates) -> Vec<Ipv4Addr> {
        updates.0.iter().map(|entry| entry.previous).collect()
    }

    #[test]
    fn the_last_handoffs_are_followed_each_at_its_time() {
        let mut updates = UnacknowledgedUpdates::default();
        for number in 1..=3 {
            moves(&mut updates, 1000 * u64::from(number), number, Some(number + 1));
        }
        assert_eq!(waiting(&updates), [agent(1), agent(2), agent(3)]);
        assert_eq!(
            updates.due(Some(agent(4))),
            Some(Instant::from_millis(2000)),
            "1 s after the first handoff"
        );
        assert_eq!(updates.due(Some(agent(1))), Some(Instant::from_millis(3000)), "not to the agent in use");
        assert_eq!(updates.due(None), Some(Instant::from_millis(61_000)), "the first one ends");
        let at = Instant::from_millis(3000);
        let due: Vec<_> = updates.due_at(at, agent(4)).map(|it| (it.previous, it.update.care_of)).collect();
        assert_eq!(due, [(agent(1), agent(2)), (agent(2), agent(3))], "each leads to the next one");
        for number in 4..=6 {
            moves(&mut updates, 1000 * u64::from(number), number, Some(number + 1));
        }
        assert_eq!(waiting(&updates), [3, 4, 5, 6].map(agent), "at most four");
        // Another request for the same handoff does not make it a later one of two.
        moves(&mut updates, 6500, 6, Some(7));
        assert_eq!(waiting(&updates), [3, 4, 5, 6].map(agent));
        moves(&mut updates, 7000, 7, Some(5));
        assert_eq!(waiting(&updates), [4, 5, 6, 7].map(agent), "agent 5 may not have the request");
        moves(&mut updates, 7200, 5, Some(4));
        assert_eq!(waiting(&updates), [4, 6, 7, 5].map(agent), "another handoff from agent 5");
        assert_eq!(updates.of(agent(5)).map(|one| one.identifications.clone()), Some(vec![7200]));
        updates.end(agent(5));
        assert_eq!(waiting(&updates), [4, 6, 7].map(agent), "the node is back at agent 5");
        updates.end_old(Instant::from_millis(64_000));
        assert_eq!(waiting(&updates), [6, 7].map(agent), "the others forward nothing any more");
        moves(&mut updates, 65_000, 5, None);
        assert_eq!(waiting(&updates), [agent(5)], "at home");
    }

    /// An agent that answers a Binding Update has the key of this Update, also if no registration was accepted there. Its earlier key is
    /// of no use.
    #[test]
    fn the_key_of_an_answered_update_is_that_of_the_agent() {
        let key = |spi| Association { spi, algorithm: Algorithm::HmacSha256, key: auth::Key::new([1; 16]) };
        let mut keys = AgentKeys::default();
        keys.hold(Some((agent(1), key(1))));
        let spi = |keys: &AgentKeys, number| keys.accepted(agent(number)).map(|key| key.spi);
        keys.asked = Some((agent(2), key(2)));
        assert_eq!([1, 2].map(|number| spi(&keys, number)), [Some(1), None]);
        keys.confirm(agent(2), key(2));
        assert_eq!([1, 2].map(|number| spi(&keys, number)), [Some(1), Some(2)]);
        keys.confirm(agent(1), key(3));
        keys.hold(Some((agent(4), key(4))));
        assert_eq!([1, 2, 4].map(|number| spi(&keys, number)), [Some(3), Some(2), Some(4)]);
    }

    /// The agent has refused the first of two Binding Updates, or its answer is about another mobile node: it can still accept the
    /// second one.
    #[test]
    fn only_an_answer_to_the_last_update_can_refuse_the_handoff() {
        let mut updates = UnacknowledgedUpdates::default();
        for at in [1000, 1100] {
            moves(&mut updates, at, 1, Some(2));
        }
        let one = updates.of(agent(1)).unwrap();
        let numbers = Numbers::default();
        let ends = |home, identification, status| {
            let identification = Some(identification);
            let mut message = Acknowledge { status, home, identification, authentication: None };
            message.sign(numbers.smooth_authentication, &one.association, &numbers);
            one.acknowledged(&message, &numbers)
        };
        let other = Ipv4Addr::new(10, 1, 0, 8);
        for (home, identification, status, expected) in [
            (HOME, 1000, Status::ACCEPTED, Ok(())),
            (HOME, 1000, Status::RESOURCES, Err(STALE_ACKNOWLEDGE)),
            (HOME, 1100, Status::RESOURCES, Ok(())),
            (HOME, 1200, Status::ACCEPTED, Err(STALE_ACKNOWLEDGE)),
            (other, 1100, Status::ACCEPTED, Err(STALE_ACKNOWLEDGE)),
        ] {
            assert_eq!(ends(home, identification, status), expected, "{home} {identification} {}", status.0);
        }
    }
}
