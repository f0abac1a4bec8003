//! The interfaces of a mobile node: the state of each link, the agents that are heard there, and the choice of the interface
//! that the mobile node uses (not from an RFC).
//!
//! Movement detection decides which agent of an interface is used. This choice is above it: it decides which interface is
//! used. It has no state: [`choose`] decides from the preferences, and from since when each interface is usable.

use crate::agents::{Agent, Agents};
use crate::config::{CareOf, FurtherInterface};
use crate::home_agents::HomeAgents;
use crate::message::{ALL_ROUTERS, Solicitation};
use node::{Outbox, Rng, Value};
use wire::{Cell, Duration, Iface, Instant, Ipv4Addr, Mac, Packet, nanos_of};

/// The pause between the first three solicitations. Then the pause doubles each time, up to one minute (RFC 5944,
/// section 2.4).
const SOLICITATION_PAUSE: Duration = Duration::from_secs(1);
const QUICK_SOLICITATIONS: u32 = 3;
const LONGEST_SOLICITATION_PAUSE: Duration = Duration::from_mins(1);
/// Each pause between solicitations is longer by a random time, which is less than the pause divided by this number (not
/// from an RFC). RFC 5944, section 2.4, requires random times: mobile nodes that lose an agent at the same time must not
/// all repeat their solicitations at the same time.
const SOLICITATION_SPREAD: u64 = 4;
/// The MTU of an interface in bytes, until its link comes up and reports it.
const ETHERNET_MTU: u16 = 1500;

/// An interface of a mobile node: its link, and the agents that are heard on the link.
#[derive(Debug)]
pub(crate) struct NodeInterface {
    pub(crate) iface: Iface,
    pub(crate) name: String,
    /// A higher value is preferred.
    pub(crate) preference: u8,
    /// The weakest signal, in dBm, with which the interface is used; `None`: signals do not matter.
    weakest: Option<i16>,
    pub(crate) agents: Agents,
    /// The link address of the interface; `None` while the link is down.
    pub(crate) mac: Option<Mac>,
    /// The MTU of the interface in bytes.
    pub(crate) mtu: u16,
    /// When the link came up last.
    pub(crate) linked: Instant,
    /// The cell of a radio.
    cell: Option<Cell>,
    /// The last report of the signal of `cell`, in dBm; `None` if there was none since the link came up.
    signal: Option<i16>,
    /// With `link_trigger`: whether the link came up, and no usable agent was heard since. Then the node registers with
    /// the next usable agent that it hears.
    pub(crate) triggered: bool,
    /// Whether the link came up, and [`MobileIpEvent::AgentHeard`](crate::mark) was not recorded since.
    pub(crate) detecting: bool,
    /// When the link last came up and permitted a registration without the pause between two registrations.
    pub(crate) hinted: Option<Instant>,
    /// Whether the link came up once more shortly after `hinted`.
    pub(crate) hinted_again: bool,
    pub(crate) solicitations: u32,
    /// When the next solicitation is due.
    pub(crate) solicit_at: Option<Instant>,
    /// Since when the interface is usable; `None` if it is not.
    pub(crate) usable: Option<Instant>,
    /// Until when the interface is avoided, because no agent on it has accepted a registration.
    pub(crate) avoided: Option<Instant>,
}

impl NodeInterface {
    /// Creates an interface whose link is down.
    pub(crate) fn new(iface: Iface, given: &FurtherInterface, care_of: CareOf) -> Self {
        Self {
            iface,
            name: given.name.clone(),
            preference: given.preference,
            weakest: given.weakest_signal,
            agents: Agents::of_node(care_of),
            mac: None,
            mtu: ETHERNET_MTU,
            linked: Instant::ZERO,
            cell: None,
            signal: None,
            triggered: false,
            detecting: false,
            hinted: None,
            hinted_again: false,
            solicitations: 0,
            solicit_at: None,
            usable: None,
            avoided: None,
        }
    }

    pub(crate) const fn link_up(&mut self, now: Instant, mac: Mac, mtu: u16, cell: Option<Cell>) {
        (self.mac, self.mtu, self.linked) = (Some(mac), mtu, now);
        (self.cell, self.signal, self.avoided) = (cell, None, None);
    }

    pub(crate) const fn link_down(&mut self) {
        (self.mac, self.signal, self.solicit_at) = (None, None, None);
    }

    /// Records the signal of a cell, in dBm.
    pub(crate) fn hear_signal(&mut self, cell: Cell, strength: i16) {
        if self.cell == Some(cell) {
            self.signal = Some(strength);
        }
    }

    /// Returns whether the signal is too weak for the interface to be used. False if no signal was reported.
    pub(crate) fn is_weak(&self) -> bool {
        self.weakest.is_some_and(|weakest| self.signal.is_some_and(|signal| signal < weakest))
    }

    /// Returns whether an agent was heard since the link came up. One that was heard only before may be out of reach.
    pub(crate) fn has_heard(&self, known: &Agent) -> bool {
        known.heard >= self.linked
    }

    /// Returns an agent that was heard since the link came up; `None` if it was not.
    pub(crate) fn heard(&self, agent: Ipv4Addr) -> Option<&Agent> {
        self.agents.get(agent).filter(|known| self.has_heard(known))
    }

    /// Returns whether an agent that the node can register with was heard since the link came up, and has not expired.
    pub(crate) fn has_agent(&self, home_agents: &HomeAgents) -> bool {
        let mut heard = self.agents.iter().filter(|(_, known)| self.has_heard(known));
        self.mac.is_some() && heard.any(|(who, _)| self.agents.is_usable(who, home_agents))
    }

    /// Returns whether a home agent of the node was heard since the link came up, and has not expired.
    pub(crate) fn is_home_link(&self, home_agents: &HomeAgents) -> bool {
        self.agents.iter().any(|(who, known)| self.has_heard(known) && home_agents.has(who))
    }

    /// Sends a solicitation, and sets the time of the next one. Does nothing while the link is down.
    pub(crate) fn solicit(&mut self, now: Instant, home: Ipv4Addr, rng: &mut Rng, out: &mut Outbox) {
        if self.mac.is_none() {
            return;
        }
        let solicitation = Solicitation { src: home, dst: ALL_ROUTERS };
        let mac = Mac::of_group(ALL_ROUTERS).unwrap_or(Mac::BROADCAST);
        out.send(self.iface, Packet::new(mac, solicitation.emit()));
        self.solicitations += 1;
        let doublings = (self.solicitations + 1).saturating_sub(QUICK_SOLICITATIONS).min(6);
        let pause = (SOLICITATION_PAUSE * (1 << doublings)).min(LONGEST_SOLICITATION_PAUSE);
        let random = rng.draw() % (nanos_of(pause) / SOLICITATION_SPREAD).max(1);
        self.solicit_at = Some(now + pause + Duration::from_nanos(random));
    }

    /// Notes whether the interface is usable now. Returns whether that has changed.
    pub(crate) fn note_usable(&mut self, now: Instant, is_usable: bool) -> bool {
        let has_changed = self.usable.is_some() != is_usable;
        if has_changed {
            self.usable = is_usable.then_some(now);
        }
        has_changed
    }

    pub(crate) const fn candidate(&self) -> Candidate {
        Candidate { preference: self.preference, usable: self.usable, avoided: self.avoided }
    }

    /// Returns when the interface needs attention.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.solicit_at.into_iter().chain(self.agents.due()).min()
    }

    /// Returns the interface's part of the role's status. The state is `in_use`, `usable`, `up` or `down`.
    pub(crate) fn status(&self, is_in_use: bool) -> Value {
        let state = match (is_in_use, self.usable, self.mac) {
            (true, ..) => "in_use",
            (false, Some(_), _) => "usable",
            (false, None, Some(_)) => "up",
            (false, None, None) => "down",
        };
        let agents = self.agents.iter().map(|(who, _)| Value::from(who)).collect();
        let signal = self.signal.map_or(Value::None, |signal| Value::from(i64::from(signal)));
        Value::map([
            ("name", Value::from(self.name.as_str())),
            ("preference", Value::from(u32::from(self.preference))),
            ("state", Value::from(state)),
            ("signal_dbm", signal),
            ("agents", Value::List(agents)),
        ])
    }
}

/// What the choice of an interface depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Candidate {
    pub(crate) preference: u8,
    pub(crate) usable: Option<Instant>,
    pub(crate) avoided: Option<Instant>,
}

impl Candidate {
    /// Returns whether the interface is avoided now.
    pub(crate) fn is_avoided(&self, now: Instant) -> bool {
        self.avoided.is_some_and(|until| now < until)
    }
}

/// Which interface a mobile node uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Choice {
    /// The interface in use.
    Stay,
    /// The interface in use, until this time. Then the node chooses again.
    StayUntil(Instant),
    /// The other interface with this index.
    Change(usize),
}

/// Chooses an interface: the one in use, or one of `others`.
///
/// If the interface in use is not usable, the usable one with the highest preference is chosen at once. One that is avoided
/// comes last. Otherwise, another interface is chosen if it has a higher preference, was usable for `hysteresis`, and is not
/// avoided; and not before `free`. Of equal interfaces, the one that was usable first is chosen, and then the first of the
/// list.
pub(crate) fn choose(
    now: Instant,
    hysteresis: Duration,
    free: Instant,
    in_use: Candidate,
    others: &[Candidate],
) -> Choice {
    let best = |ready: &dyn Fn(&Candidate) -> bool| {
        let ready = others.iter().enumerate().filter(|(_, other)| ready(other));
        let rank = |(_, other): &(usize, &Candidate)| {
            let earliest = std::cmp::Reverse(other.usable);
            (!other.is_avoided(now), other.preference, earliest)
        };
        // `max_by_key` returns the last of equal elements.
        ready.rev().max_by_key(rank).map(|(index, _)| index)
    };
    if in_use.usable.is_none() {
        return best(&|other| other.usable.is_some()).map_or(Choice::Stay, Choice::Change);
    }
    let due = |other: &Candidate| {
        let since = other.usable.filter(|_| other.preference > in_use.preference)?;
        Some((since + hysteresis).max(other.avoided.unwrap_or(since)).max(free))
    };
    if let Some(index) = best(&|other| due(other).is_some_and(|due| due <= now)) {
        return Choice::Change(index);
    }
    others.iter().filter_map(due).min().map_or(Choice::Stay, Choice::StayUntil)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYSTERESIS: Duration = Duration::from_secs(2);

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(seconds * 1000)
    }

    fn of(preference: u8, usable: Option<u64>) -> Candidate {
        Candidate { preference, usable: usable.map(at), avoided: None }
    }

    fn avoided(preference: u8, usable: u64, until: u64) -> Candidate {
        Candidate { avoided: Some(at(until)), ..of(preference, Some(usable)) }
    }

    fn choices(in_use: Candidate, others: &[Candidate], times: &[u64]) -> Vec<Choice> {
        let choice = |now: &u64| choose(at(*now), HYSTERESIS, Instant::ZERO, in_use, others);
        times.iter().map(choice).collect()
    }

    #[test]
    fn a_better_interface_is_used_when_it_was_usable_for_the_hysteresis() {
        let (wait, change) = (Choice::StayUntil(at(12)), Choice::Change(0));
        let better = [of(1, Some(10))];
        assert_eq!(choices(of(0, Some(0)), &better, &[10, 11, 12, 13]), [wait, wait, change, change]);
        for (what, others) in
            [("not usable", vec![of(1, None)]), ("not better", vec![of(0, Some(10))]), ("worse", vec![])]
        {
            assert_eq!(choices(of(0, Some(0)), &others, &[10, 99]), [Choice::Stay; 2], "{what}");
        }
        assert_eq!(choices(of(2, Some(0)), &[of(1, Some(1))], &[99]), [Choice::Stay], "worse");
    }

    #[test]
    fn an_interface_that_is_not_usable_is_left_at_once() {
        let lost = of(9, None);
        for (what, others, expected) in [
            (
                "the highest preference",
                vec![of(0, Some(1)), of(2, Some(9)), of(1, Some(3))],
                Choice::Change(1),
            ),
            ("the first that was usable", vec![of(1, Some(8)), of(1, Some(7))], Choice::Change(1)),
            ("the first of the list", vec![of(1, Some(7)), of(1, Some(7))], Choice::Change(0)),
            ("a usable one", vec![of(3, None), of(0, Some(9))], Choice::Change(1)),
            ("one that is avoided comes last", vec![avoided(3, 1, 60), of(0, Some(9))], Choice::Change(1)),
            ("one that is avoided, without another", vec![avoided(3, 1, 60)], Choice::Change(0)),
            ("one that is not avoided any more", vec![avoided(3, 1, 9), of(0, Some(9))], Choice::Change(0)),
            ("none", vec![of(3, None)], Choice::Stay),
            ("no other", vec![], Choice::Stay),
        ] {
            assert_eq!(choices(lost, &others, &[9]), [expected], "{what}");
        }
    }

    #[test]
    fn an_interface_without_success_is_avoided() {
        let others = [avoided(5, 10, 70)];
        assert_eq!(
            choices(of(0, Some(0)), &others, &[20, 70]),
            [Choice::StayUntil(at(70)), Choice::Change(0)]
        );
        let others = [avoided(5, 10, 70), of(1, Some(10))];
        assert_eq!(choices(of(0, Some(0)), &others, &[20, 70]), [Choice::Change(1), Choice::Change(0)]);
    }

    #[test]
    fn the_pause_between_registrations_holds_for_better_interfaces_only() {
        let choice = |in_use| choose(at(12), HYSTERESIS, at(15), in_use, &[of(1, Some(10))]);
        assert_eq!(choice(of(0, Some(0))), Choice::StayUntil(at(15)));
        assert_eq!(choice(of(0, None)), Choice::Change(0));
    }

    #[test]
    fn an_interruption_begins_the_hysteresis_again() {
        let given = FurtherInterface { name: "air2".to_owned(), preference: 1, weakest_signal: Some(-80) };
        let mut interface = NodeInterface::new(Iface(2), &given, CareOf::Agent);
        assert!(interface.note_usable(at(10), true) && !interface.note_usable(at(11), true));
        assert!(interface.note_usable(at(11), false) && interface.note_usable(at(11), true));
        assert_eq!(interface.usable, Some(at(11)));
        // A signal of another cell, or from before the link came up, does not count.
        interface.link_up(at(12), Mac([2; 6]), 1500, Some(Cell(2)));
        for (cell, strength, is_weak) in [(2, -80, false), (2, -81, true), (3, -60, true), (2, -79, false)] {
            interface.hear_signal(Cell(cell), strength);
            assert_eq!(interface.is_weak(), is_weak, "{cell} {strength}");
        }
        interface.hear_signal(Cell(2), -90);
        interface.link_up(at(13), Mac([2; 6]), 1500, Some(Cell(2)));
        assert!(!interface.is_weak());
    }
}
