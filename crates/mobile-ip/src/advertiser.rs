//! Agent advertisements and answers to solicitations, for home agents and foreign agents (RFC 5944, section 2.3).

use crate::advertise::Advertise;
use crate::message::{
    ALL_AGENTS, ALL_ROUTERS, ALL_SYSTEMS, Advertisement, AgentFlags, SOLICITATION, Solicitation,
};
use crate::refusal;
use node::{Listen, Outbox, Proto, Rng, Rx};
use std::collections::VecDeque;
use wire::{Duration, Iface, Instant, InterfaceAddress, Ipv4Addr, Mac, Packet, Reason};

/// The reason to drop a solicitation: the agent has sent or scheduled 2 * [`Advertise::answers`] answers in this
/// second.
pub(crate) const TOO_MANY_SOLICITATIONS: Reason = Reason("too_many_solicitations");

/// The longest delay of the advertisement that answers several solicitations together (not from an RFC). The delay is
/// random.
const CROWD: Duration = Duration::from_millis(20);

/// Sends the advertisements of one agent on one link.
#[derive(Debug)]
pub(crate) struct Advertiser {
    iface: Iface,
    own: InterfaceAddress,
    config: Advertise,
    /// The next advertisement, with its sequence number.
    next: Advertisement,
    /// When the next periodic advertisement is due; `None` while the link is down.
    due: Option<Instant>,
    rng: Rng,
    /// The whole second since [`Instant::ZERO`] in which the answers in `answered` were counted.
    second: u64,
    answered: u16,
    /// When the advertisement that answers several solicitations together is due; `None` if there is no such
    /// advertisement.
    together: Option<Instant>,
    /// The challenges in the advertisements; there are none by default.
    pub(crate) challenges: Challenges,
}

/// The challenges in the advertisements of a foreign agent (RFC 4721, section 3.2).
#[derive(Debug, Default)]
pub(crate) struct Challenges {
    /// The random numbers of the challenges; `None` without challenges.
    rng: Option<Rng>,
    /// The number of last challenges that are valid (`CHALLENGE_WINDOW` of RFC 4721, section 9).
    window: usize,
    /// The valid challenges, the oldest first.
    last: VecDeque<Vec<u8>>,
}

impl Challenges {
    /// Returns a challenge of 8 random bytes; `None` without challenges.
    pub(crate) fn draw(&mut self) -> Option<Vec<u8>> {
        self.rng.as_mut().map(|rng| rng.draw().to_be_bytes().to_vec())
    }

    /// Replaces the oldest valid challenge by a new one.
    fn change(&mut self) {
        let next = self.draw();
        self.last.extend(next);
        while self.last.len() > self.window {
            self.last.pop_front();
        }
    }

    /// Returns the newest challenge; `None` without challenges.
    pub(crate) fn newest(&self) -> Option<Vec<u8>> {
        self.last.back().cloned()
    }

    pub(crate) fn is_valid(&self, challenge: &[u8]) -> bool {
        self.last.iter().any(|valid| valid == challenge)
    }
}

impl Advertiser {
    /// Returns an advertiser that does not send yet. `kind` is [`AgentFlags::FOREIGN`], also with
    /// [`AgentFlags::REGISTRATION_REQUIRED`], or [`AgentFlags::HOME`]. A foreign agent offers its own address as the care-of address.
    pub(crate) fn new(
        iface: Iface,
        own: InterfaceAddress,
        config: Advertise,
        registration_lifetime: Duration,
        kind: AgentFlags,
        rng: Rng,
    ) -> Self {
        let foreign = kind.has(AgentFlags::FOREIGN);
        let next = Advertisement {
            src: own.address,
            dst: ALL_SYSTEMS,
            registered_only: false,
            lifetime: config.lifetime.as_secs() as u16,
            routers: vec![(own.address, 0)],
            sequence: 0,
            registration_lifetime: registration_lifetime.as_secs() as u16,
            flags: kind,
            care_of: if foreign { vec![own.address] } else { Vec::new() },
            prefix_lengths: Some(vec![own.link.len()]),
            challenge: None,
        };
        let challenges = Challenges::default();
        Self { iface, own, config, next, due: None, rng, second: 0, answered: 0, together: None, challenges }
    }

    /// Puts challenges into the advertisements from now on, the last `window` of which are valid.
    pub(crate) fn challenge(&mut self, rng: Rng, window: usize) {
        self.challenges = Challenges { rng: Some(rng), window, last: VecDeque::new() };
        self.challenges.change();
    }

    /// Returns what an agent must listen to for solicitations: two groups on `iface`, and ICMP type 10 to this host.
    pub(crate) const fn listens(iface: Iface) -> [Listen; 3] {
        [
            Listen::Group(iface, ALL_ROUTERS),
            Listen::Group(iface, ALL_AGENTS),
            Listen::Local(Proto::Icmp(SOLICITATION)),
        ]
    }

    /// Starts to advertise on a link that came up. The first advertisement is sent at a random time within one
    /// interval. So several agents that start at the same time rarely send at the same time.
    pub(crate) fn up(&mut self, now: Instant) {
        self.due = Some(now + self.rng.below(self.config.interval));
    }

    /// Stops the periodic advertisements, and drops a scheduled advertisement that answers several solicitations.
    pub(crate) const fn down(&mut self) {
        (self.due, self.together) = (None, None);
    }

    pub(crate) const fn due(&self) -> Option<Instant> {
        Instant::sooner(self.due, self.together)
    }

    /// Sends the advertisements that are due. After a periodic one, schedules the next. `busy` sets flag B: the agent
    /// takes no more visitors.
    pub(crate) fn timeout(&mut self, now: Instant, busy: bool, out: &mut Outbox) {
        if self.together.is_some_and(|due| due <= now) {
            self.together = None;
            self.send(ALL_SYSTEMS, None, busy, out);
        }
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        // Answers to solicitations repeat the newest challenge: otherwise, solicitations could make all challenges
        // invalid.
        self.challenges.change();
        self.send(ALL_SYSTEMS, None, busy, out);
        let sooner = self.rng.below(self.config.jitter);
        self.due = Some(now + self.config.interval.saturating_sub(sooner));
    }

    /// Answers a packet if it is a solicitation. The answer is sent at once, or it is one later advertisement for
    /// several solicitations. Fails with the reason to drop the packet.
    ///
    /// If the source address can be a host's, the answer that is sent at once goes only to the sender, at the link
    /// address of the solicitation (RFC 5944, section 2.1). ARP is not used: the sender's address may belong to another
    /// network.
    pub(crate) fn solicited(
        &mut self,
        now: Instant,
        rx: Rx,
        packet: &Packet,
        busy: bool,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let Solicitation { src, .. } = Solicitation::parse(&rx.header, rx.payload(packet))?;
        if rx.iface != self.iface || packet.link.src.is_group() || src == self.own.address {
            return Err(refusal::WRONG_DIRECTION);
        }
        let second = now.0 / 1_000_000_000;
        if self.second != second {
            (self.second, self.answered) = (second, 0);
        }
        if self.answered >= self.config.answers {
            // Beyond the limit of answers to single hosts, one advertisement to all hosts of the link answers several
            // solicitations. RFC 5944, section 2.3, requires a limit for advertisements to all.
            if self.answered >= self.config.answers.saturating_mul(2) {
                return Err(TOO_MANY_SOLICITATIONS);
            }
            if self.together.is_none() && self.due.is_some() {
                self.answered += 1;
                self.together = Some(now + self.rng.below(CROWD));
            }
            return Ok(());
        }
        self.answered += 1;
        if wire::ipv4::is_host(src) {
            self.send(src, Some(packet.link.src), busy, out);
        } else {
            self.send(ALL_SYSTEMS, None, busy, out);
        }
        Ok(())
    }

    fn send(&mut self, dst: Ipv4Addr, mac: Option<Mac>, busy: bool, out: &mut Outbox) {
        let busy = if busy { AgentFlags::BUSY } else { AgentFlags::default() };
        let (flags, challenge) = (self.next.flags | busy, self.challenges.newest());
        let advertisement = Advertisement { dst, flags, challenge, ..self.next.clone() };
        self.next.sequence = Advertisement::after(self.next.sequence);
        let mac = mac.or_else(|| Mac::of_group(dst)).unwrap_or(Mac::BROADCAST);
        out.send(self.iface, Packet::new(mac, advertisement.emit()));
    }
}
