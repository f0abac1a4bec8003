//! The requests at a foreign agent: what is relayed, and what is denied (RFC 5944, section 3.7.2).

use super::{ForeignAgent, GAVE_WAY, NO_PLACE, REPEATED_BY_ANOTHER, Visitor};
use super::{USED_CHALLENGES, has_own_address, is_after_challenge, is_authenticated_to_home};
use crate::config::AgentReverseTunnel;
use crate::encapsulation;
use crate::message::{Between, Code, PORT, Request, RequestFlags, datagram};
use crate::pending::{Pending, RequestKey, Standing, low};
use crate::refusal;
use node::Outbox;
use std::collections::BTreeSet;
use wire::ipv4::{self, Header};
use wire::{Duration, Instant, Ipv4Addr, Mac, Packet, Reason, SocketAddrV4};

/// The shortest time between two requests of a mobile node (RFC 5944, section 3.6.3).
const BETWEEN_REQUESTS: Duration = Duration::from_secs(1);

impl ForeignAgent {
    pub(super) fn request(
        &mut self,
        now: Instant,
        ip: &Header,
        pending: Pending,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let Pending { mac, ref request, .. } = pending;
        if let Some(Err(malformed)) = request.previous_agent(&self.config.numbers) {
            return Err(malformed.into());
        }
        // A mobile node without a home address names itself by a Network Access Identifier, and gets a home address from its
        // home agent (RFC 2794). This agent needs a home address (RFC 5944, section 3.7.1).
        if request.home.is_unspecified() && request.has_network_access_identifier() && !mac.is_group() {
            return self.deny(now, &pending, Code::NonzeroHomeRequired, out);
        }
        // The reply is sent to the source address at `mac`. So `mac` must not be a group, and the source address must be
        // a host's address and not this agent's: the home address, or the mobile node's own care-of address.
        let is_own = [request.home, ip.src].contains(&self.config.address.address);
        let source = if has_own_address(request) { request.care_of } else { request.home };
        if mac.is_group() || ip.src != source || !wire::ipv4::is_host(request.home) || is_own {
            return Err(refusal::IMPLAUSIBLE_SOURCE);
        }
        if self.is_repeated_by_another(&pending) {
            return Err(REPEATED_BY_ANOTHER);
        }
        let judged = self.judge(&pending);
        if judged.as_ref().err().is_none_or(|code| is_after_challenge(*code)) {
            self.use_challenge(request);
        }
        match judged {
            Ok(give_way) => self.relay(now, pending, &give_way, out),
            Err(code) => {
                if code == Code::ForeignResources {
                    self.refused.count(NO_PLACE);
                }
                return self.deny(now, &pending, code, out);
            }
        }
        Ok(())
    }

    /// Returns the waiting requests to drop so that `pending` can be relayed, or the code of the denial of `pending`.
    pub(super) fn judge(&self, pending: &Pending) -> Result<Vec<RequestKey>, Code> {
        let request = &pending.request;
        let own = self.config.address.address;
        self.judge_challenge(pending)?;
        if !self.is_authentic(request) {
            return Err(Code::MobileFailed);
        }
        // A request to the broadcast address of the visited link would be sent to all its hosts.
        let is_no_agent =
            |it| !wire::ipv4::is_host(it) || it == request.home || self.config.address.is_broadcast(it);
        // The Mobile-Home Authentication shows which extensions must be removed (RFC 5944, section 3.7.2.2). Without it, the
        // home agent would drop the request, and it would wait here until its time is over.
        let is_signed = request.authentication(Between::MobileHome).is_some();
        let is_reserved = request.flags.has_reserved(self.config.direct_tunnels, &self.config.numbers);
        if is_reserved || is_no_agent(request.home_agent) || !is_signed {
            return Err(Code::ForeignBadRequest);
        }
        // A request with an address of this host as the home agent is not relayed (RFC 5944, section 3.7.2). It is
        // relayed if a home agent on this host has the address.
        let is_ours = |address: &Ipv4Addr| *address == own || self.config.own.contains(address);
        let is_beside = self.config.beside.contains(&request.home_agent);
        if is_ours(&request.home_agent) && !is_beside {
            return Err(Code::InvalidHomeAgent);
        }
        // A co-located care-of address is an address of the visited link.
        let is_care_of = if has_own_address(request) {
            self.config.address.link.contains(request.care_of) && !is_ours(&request.care_of)
        } else {
            request.lifetime == 0 || request.care_of == own
        };
        if !is_care_of {
            return Err(Code::InvalidCareOf);
        }
        // This host's own packets to a visitor's home address may go to the visitor. So the addresses of neighbors, of
        // other roles' peers and of this host are denied as home addresses.
        let is_others = self.config.address.link.contains(request.home)
            || self.config.partners.contains(&request.home)
            || is_ours(&request.home);
        if request.lifetime != 0 && is_others {
            return Err(Code::ForeignProhibited);
        }
        if request.lifetime > self.longest() {
            return Err(Code::LifetimeTooLong);
        }
        // The tunnel to a co-located care-of address does not end here.
        if !has_own_address(request)
            && !encapsulation::are_available(&self.config.encapsulations, request.flags)
        {
            return Err(Code::ForeignEncapsulation);
        }
        self.judge_reverse(pending)?;
        self.place(pending).ok_or(Code::ForeignResources)
    }

    /// Checks what a request asks of a reverse tunnel: the delivery style, the distance, and whether there is one, in the
    /// order of RFC 3024, section 4.2.1. Fails with the code of the denial.
    fn judge_reverse(&self, Pending { mac, request, ttl, .. }: &Pending) -> Result<(), Code> {
        let style = request.encapsulating_delivery();
        if !request.flags.has(RequestFlags::REVERSE) {
            // The extension has a meaning only with flag T.
            return match self.config.reverse_tunnel {
                _ if style.is_some() => Err(Code::ForeignBadRequest),
                AgentReverseTunnel::Required if request.lifetime != 0 => Err(Code::ForeignReverseMandatory),
                _ => Ok(()),
            };
        }
        match style {
            Some([_, ..]) => Err(Code::ForeignBadRequest),
            // The reverse tunnel of a mobile node with its own care-of address does not begin here.
            _ if has_own_address(request) && *ttl == u8::MAX => Ok(()),
            Some([]) if !self.config.encapsulating_delivery => Err(Code::DeliveryStyle),
            // With another time to live, a router has forwarded the request: the mobile node is not on this link.
            _ if *ttl != u8::MAX => Err(Code::TooDistant),
            _ if self.config.reverse_tunnel == AgentReverseTunnel::None => Err(Code::ForeignReverseTunnel),
            _ if request.lifetime == 0 => Ok(()),
            _ => {
                let pair = self.reverse_pair((request.home, request.home_agent), *mac);
                pair.map(|_| ()).ok_or(Code::ForeignResources)
            }
        }
    }

    /// Checks the challenge of a request, if one is required (RFC 4721, section 3.2). It must be advertised recently,
    /// or sent in the last reply to this mobile node. It must be unused, except in a repetition of a request that
    /// waits. Fails with the code of the denial.
    fn judge_challenge(&self, Pending { mac, request, .. }: &Pending) -> Result<(), Code> {
        if !self.config.challenge {
            return Ok(());
        }
        if !request.has_challenge() {
            return Err(Code::MissingChallenge);
        }
        // Without the authentication that covers it, a challenge proves nothing.
        let challenge = request.challenge().ok_or(Code::MobileFailed)?;
        let known = self.challenged.get(&request.home);
        let waits = self.waiting.get((request.home, low(request.identification)));
        let is_repeated = waits.is_some_and(|other| other.mac == *mac && other.request == *request);
        if !is_repeated && known.is_some_and(|known| known.used.iter().any(|used| used == challenge)) {
            return Err(Code::StaleChallenge);
        }
        let is_issued = known.is_some_and(|known| known.issued.as_deref() == Some(challenge));
        if is_issued || self.advertiser.challenges.is_valid(challenge) {
            Ok(())
        } else {
            Err(Code::UnknownChallenge)
        }
    }

    /// Records the challenge of a request with a correct Mobile-Foreign Authentication, if challenges are required.
    fn use_challenge(&mut self, request: &Request) {
        let Some(challenge) = request.challenge().filter(|_| self.config.challenge) else { return };
        let used = &mut self.challenged.entry(request.home).or_default().used;
        if used.iter().any(|other| other == challenge) {
            return; // the request is a repetition
        }
        if used.len() >= USED_CHALLENGES {
            used.pop_front();
        }
        used.push_back(challenge.to_vec());
    }

    /// Returns whether the Mobile-Foreign Authentication of a request is correct. Returns true if there is no
    /// association with the mobile node and no challenge is required, because then no authentication is required.
    pub(super) fn is_authentic(&self, request: &Request) -> bool {
        if self.mobile_nodes.first(request.home).is_none() {
            return !self.config.challenge;
        }
        let spi = request.authentication(Between::MobileForeign).map(|found| found.spi);
        let association = spi.and_then(|spi| self.mobile_nodes.named(request.home, spi));
        association.is_some_and(|association| request.verify(Between::MobileForeign, association))
    }

    /// Returns whether another link address has sent the same request before. If so, this request may be a replay: the
    /// reply and the visit belong to the other link address. So it is with a changed copy, also from the same link address.
    pub(super) fn is_repeated_by_another(&self, pending: &Pending) -> bool {
        let asked = (pending.request.home, low(pending.request.identification));
        let is_other = |other: &Pending| other.mac != pending.mac || self.is_changed_copy(other, pending);
        self.waiting.get(asked).is_some_and(is_other)
            || self.is_overtaken(pending)
            || self.handoffs.remembered.was_asked_by_another(pending)
    }

    /// Returns whether a request is a changed copy of a waiting one with the same low half of the Identification, and no association
    /// with the mobile node shows who has changed it. The next request of a mobile node has another Identification. The
    /// low half can be the same if it comes whole seconds later.
    fn is_changed_copy(&self, other: &Pending, pending: &Pending) -> bool {
        let is_later = other.request.identification != pending.request.identification
            && pending.since >= other.since + BETWEEN_REQUESTS;
        self.mobile_nodes.first(pending.request.home).is_none()
            && other.request != pending.request
            && !is_later
    }

    /// Returns whether the mobile node has registered from another link address, with the same request or with one that
    /// arrived later than `pending`.
    pub(super) fn is_overtaken(&self, Pending { mac, number, request, .. }: &Pending) -> bool {
        let visitor = self.visitors.get(&(request.home, request.home_agent));
        let is_later =
            |visitor: &Visitor| *number < visitor.number || visitor.history.has(request.identification);
        visitor.is_some_and(|visitor| visitor.mac != *mac && is_later(visitor))
    }

    /// Returns how plausible a request from `mac` is. The authentication of the request is not checked here.
    pub(super) fn standing(&self, mac: Mac, request: &Request) -> Standing {
        let visitor = self.visitors.get(&(request.home, request.home_agent));
        let is_known = self.waiting.is_answered(request.home_agent)
            || self.opened.contains_key(&request.home_agent)
            || self.home_agents.first(request.home_agent).is_some()
            || self.mobile_nodes.first(request.home).is_some();
        match visitor {
            Some(visitor) if visitor.mac == mac => Standing::Visitor,
            _ if is_known => Standing::Known,
            _ => Standing::Unknown,
        }
    }

    /// Returns the waiting requests to drop so that `new` can wait; `None` if `new` must be denied.
    pub(super) fn place(&self, new: &Pending) -> Option<Vec<RequestKey>> {
        let mut give_way = self.class_place(new)?;
        give_way.extend(self.waiting.place(new)?);
        Some(give_way)
    }

    /// Returns the waiting requests to drop so that the home agent of `new` can have a packet class. `None` if no class
    /// can become free, or if `new` begins a visit and the maximum number of visits is reached. The result is empty for
    /// a deregistration: it begins no visit. A waiting request reserves a class for its home agent, because the visit
    /// needs a class when the request is accepted.
    pub(super) fn class_place(&self, new: &Pending) -> Option<Vec<RequestKey>> {
        let Request { home, home_agent, lifetime, .. } = new.request;
        if lifetime == 0 {
            return Some(Vec::new());
        }
        if self.is_busy() && !self.visitors.contains_key(&(home, home_agent)) {
            return None;
        }
        let taken: BTreeSet<_> = self.opened.keys().copied().chain(self.waiting.wanted()).collect();
        if taken.contains(&home_agent) || taken.len() < self.classes.home_agents().into() {
            return Some(Vec::new());
        }
        let has_class = |other| self.opened.contains_key(&other);
        let other = self.waiting.home_agent_that_gives_way(new, has_class)?;
        Some(self.waiting.wanting(other))
    }

    pub(super) fn relay(
        &mut self,
        now: Instant,
        mut pending: Pending,
        give_way: &[RequestKey],
        out: &mut Outbox,
    ) {
        let Pending { mac, ref request, .. } = pending;
        let waits = self.waiting.get((request.home, low(request.identification)));
        let is_again = waits.is_some_and(|waits| waits.is_new && waits.request == *request);
        for asked in give_way {
            if let Some(other) = self.waiting.remove(*asked)
                && (other.mac, other.request.home) != (mac, request.home)
            {
                self.refused.count(GAVE_WAY);
            }
        }
        self.keep_path_to(request.home_agent, out);
        let mut relayed = request.clone();
        relayed.strip();
        if let Some(association) = self.home_agents.first(request.home_agent)
            && is_authenticated_to_home(request)
        {
            relayed.sign(Between::ForeignHome, association);
        }
        let own = SocketAddrV4::new(self.config.address.address, PORT);
        let to = SocketAddrV4::new(request.home_agent, PORT);
        let bytes = datagram(own, to, ipv4::DEFAULT_TTL, &relayed.emit());
        out.send_routed(Packet::new(Mac::ZERO, bytes));
        if let Some(visitor) = self.visitors.get_mut(&(request.home, request.home_agent))
            && visitor.mac == mac
        {
            visitor.history.sees(request.identification);
        }
        if self.config.smooth_handoff {
            pending.is_new = self.is_proven(&pending) && self.is_latest(now, &pending.request);
            self.notify_previous(now, &pending, out);
            if pending.is_new {
                self.readmit(now, &pending, out);
                self.note_new(&pending);
            }
            pending.is_new |= is_again;
        }
        self.waiting.insert(now + self.patience(&pending.request), pending);
    }

    /// Returns how long a request waits for its reply: `pending_timeout`, or the requested lifetime if this is shorter
    /// and not 0 (RFC 5944, section 3.7.2.2).
    pub(super) fn patience(&self, request: &Request) -> Duration {
        let timeout = self.config.pending_timeout;
        match request.lifetime {
            0 => timeout,
            lifetime => timeout.min(Duration::from_secs(lifetime.into())),
        }
    }

    /// Denies a request with `code`, at most once a second for each link address (RFC 5944, section 3.7.2, has this
    /// limit for each mobile node). Fails if a request from the same link address was denied within the last second, or
    /// if requests from 1024 other link addresses were.
    pub(super) fn deny(
        &mut self,
        now: Instant,
        pending: &Pending,
        code: Code,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        if !self.denials.may(now, pending.mac) {
            return Err(refusal::ANSWERED);
        }
        let mut reply = pending.request.reply(code);
        if code == Code::LifetimeTooLong {
            reply.lifetime = self.longest();
        }
        self.send_reply(pending, reply, out);
        Ok(())
    }
}
