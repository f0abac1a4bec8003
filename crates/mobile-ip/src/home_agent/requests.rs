//! The requests at a home agent: what is accepted, and what is denied (RFC 5944, section 3.8.2); the replies.

use super::{Accepted, Denial, HomeAgent, Path, UNDER_WAY, key_of, seconds};
use crate::binding::{Binding as Bound, BindingRecord};
use crate::config::{AgentReverseTunnel, Replay};
use crate::encapsulation;
use crate::message::{
    Association, Between, Binding, Code, DistributedKey, KeyScope, PORT, Received, Registration, Request,
    RequestFlags, datagram,
};
use crate::refusal;
use node::{Outbox, Rx, reason};
use wire::ipv4;
use wire::{Duration, Iface, Instant, Ipv4Addr, Mac, Malformed, Packet, Reason, SocketAddrV4, ntp_distance};

/// For this time after a request was accepted, its repetitions get the same reply, in seconds (not from an RFC).
const LATE: u16 = 7;

impl HomeAgent {
    pub(super) fn registration(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        if self.informs() {
            match Binding::received(&rx.header, rx.payload(&packet), &self.config.numbers) {
                Ok(Some((from, message))) => {
                    return self.binding_message(now, rx, packet, (from, &message), out);
                }
                Ok(None) => {}
                Err(malformed) => return self.drop_packet(rx, packet, malformed.into(), out),
            }
        }
        let known = if self.informs() { vec![self.config.numbers.warning_extension] } else { Vec::new() };
        let received = match Received::knowing(rx.header, rx.payload(&packet), &known) {
            Ok(received) => received,
            // The foreign agent with the same address may know what this agent does not.
            Err(Malformed("mip_unknown_extension" | "mip_unknown_type")) if self.is_shared() => {
                return out.pass(rx, packet);
            }
            Err(malformed) => return self.drop_packet(rx, packet, malformed.into(), out),
        };
        if self.is_for_foreign_agent(&rx, &received.message) {
            return out.pass(rx, packet);
        }
        let (to, src) = (received.sender(), received.ip.src);
        // A request from another host with an address of this host as its source would be answered to this host itself.
        let is_forged = rx.iface != Iface::HOST && self.is_own(src);
        let Some(request) = request_of(received.message).filter(|_| !is_forged) else {
            return self.drop_packet(rx, packet, refusal::UNEXPECTED, out);
        };
        let at_home = (rx.iface == self.iface && src == request.home).then_some(packet.link.src);
        let path = Path { to, at_home };
        let denial = match self.judge(now, src, &request) {
            // No home agent accepts a request to all home agents of the network, whatever home agent it names.
            // Otherwise the mobile node could be registered with two of them (RFC 5944, sections 3.8.2.1 and 3.8.3.2).
            Ok(()) if self.is_for_all(&rx) => Denial::Code(Code::UnknownHomeAgent),
            Ok(()) => {
                out.discard(rx.iface, packet, reason::CONSUMED);
                return self.accept(now, request, path, out);
            }
            Err(denial) => denial,
        };
        if let Denial::Silent(reason) = denial {
            return self.drop_packet(rx, packet, reason, out);
        }
        let may = match denial {
            Denial::Code(Code::HomeMobileFailed) => self.answers.may(now, src),
            _ => self.denials.may(now, (request.home, request.identification)),
        };
        if !may {
            return self.drop_packet(rx, packet, refusal::ANSWERED, out);
        }
        match denial {
            Denial::Code(code) => {
                self.refused.count(refusal::DENIED);
                self.use_nonce(code, &request);
                self.reply(now, &request, code, request.lifetime, path, out);
            }
            Denial::Again(lifetime) => {
                self.reply(now, &request, self.accepted(&request), lifetime, path, out);
            }
            Denial::Silent(_) => {}
        }
        out.discard(rx.iface, packet, reason::CONSUMED);
    }

    /// Decides whether to accept a request (RFC 5944, section 3.8.2). Changes nothing.
    pub(super) fn judge(&self, now: Instant, src: Ipv4Addr, request: &Request) -> Result<(), Denial> {
        if self.mobile_nodes.first(request.home).is_none() {
            return Err(Denial::Silent(refusal::NO_ASSOCIATION));
        }
        let relayed = self.judge_foreign_agent(src, request)?;
        // Without an authentication, the request gets no answer. With an unknown SPI or a wrong authenticator, it is
        // denied, unless its foreign agent has an association and is not authentic (RFC 5944, section 3.8.2.1, step a).
        if request.authentication(Between::MobileHome).is_none() {
            return Err(Denial::Silent(refusal::NO_AUTHENTICATION));
        }
        let association = self.association(request);
        if !association.is_some_and(|association| request.verify(Between::MobileHome, association)) {
            // If no authentication is correct, only an attacker has a use for an answer.
            return Err(match relayed {
                Some(false) => Denial::Silent(refusal::BAD_AUTHENTICATION),
                Some(true) | None => Denial::Code(Code::HomeMobileFailed),
            });
        }
        let identification = self.judge_identification(now, request);
        if let Err(Denial::Code(code)) = identification {
            return Err(Denial::Code(code));
        }
        // Step c comes after step b. But the reply to an accepted request is not repeated to another foreign agent.
        if relayed == Some(false) {
            return Err(Denial::Code(Code::ForeignFailed));
        }
        identification?;
        let own = self.config.address.address;
        let asks = |flags| request.flags.has(flags);
        let (moves, reverse) = (request.lifetime != 0, self.config.reverse_tunnel);
        let code = if request.flags.has_reserved(self.informs(), &self.config.numbers) {
            Code::HomeBadRequest
        } else if request.home_agent != own {
            Code::UnknownHomeAgent
        } else if !(self.is_elsewhere(request.care_of) || self.is_relayed_here(src, request))
            || (moves && request.care_of == request.home)
        {
            Code::HomeBadRequest
        } else if moves && self.config.prohibited_care_of.iter().any(|net| net.contains(request.care_of)) {
            Code::HomeProhibited
        } else if moves && !asks(RequestFlags::REVERSE) && reverse == AgentReverseTunnel::Required {
            Code::HomeReverseMandatory
        } else if !encapsulation::are_available(&self.config.encapsulations, request.flags) {
            Code::HomeEncapsulation
        } else if self.bindings_after(now, request).len() > self.config.simultaneous_bindings {
            Code::TooManyBindings
        } else if asks(RequestFlags::REVERSE) && reverse == AgentReverseTunnel::None {
            // The last check (RFC 3024, section 4.3.1).
            Code::HomeReverseTunnel
        } else {
            return if self.under_way.len() < UNDER_WAY {
                Ok(())
            } else {
                Err(Denial::Code(Code::HomeResources))
            };
        };
        Err(Denial::Code(code))
    }

    /// Returns whether a care-of address can be another host's. A tunnel to an address of this host would end here. A
    /// tunnel to a broadcast address would end at all hosts of a link.
    pub(super) fn is_elsewhere(&self, care_of: Ipv4Addr) -> bool {
        let mut own = self.config.host.iter().chain([&self.config.address]);
        ipv4::is_host(care_of) && !own.any(|own| own.address == care_of || own.is_broadcast(care_of))
    }

    /// Returns whether a foreign agent on this host has relayed a request, and offers its care-of address. The tunnel then
    /// begins and ends at this host.
    fn is_relayed_here(&self, src: Ipv4Addr, request: &Request) -> bool {
        src == request.care_of && self.config.foreign.contains(&src)
    }

    /// Returns whether a message to this agent is for a foreign agent on this host with the same address. This is a
    /// reply, a request for another home agent, or a request of a visitor. Of the last, this agent gets the relayed
    /// request.
    fn is_for_foreign_agent(&self, rx: &Rx, message: &Registration) -> bool {
        let own = self.config.address.address;
        self.config.foreign.contains(&own)
            && match message {
                Registration::Reply(_) => true,
                Registration::Request(request) => {
                    let is_ours =
                        request.home_agent == own || self.config.address.is_broadcast(request.home_agent);
                    !is_ours || (request.care_of == own && rx.iface != Iface::HOST)
                }
            }
    }

    /// Returns the association that the request's Mobile-Home Authentication names; `None` if there is none.
    pub(super) fn association(&self, request: &Request) -> Option<&Association> {
        let authentication = request.authentication(Between::MobileHome)?;
        self.mobile_nodes.named(request.home, authentication.spi)
    }

    /// Checks the Foreign-Home Authentication of a request. Returns `Some(true)` if it is correct, `Some(false)` if it
    /// is wrong, or missing but required, and `None` if it is missing and not required. Fails if there is one, but no
    /// association with the source address `src`.
    ///
    /// A foreign agent does not add this authentication to a deregistration, nor to a request with a care-of address that is
    /// not its own (RFC 5944, section 3.5.4). It cannot add one to a request to all home agents, which is denied in any case
    /// (section 3.8.2.1): it does not know which of them hears the request. So these do not require it.
    pub(super) fn judge_foreign_agent(
        &self,
        src: Ipv4Addr,
        request: &Request,
    ) -> Result<Option<bool>, Denial> {
        let known = self.foreign_agents.first(src).is_some();
        match request.authentication(Between::ForeignHome) {
            Some(_) if !known => Err(Denial::Silent(refusal::UNKNOWN_AGENT)),
            Some(found) => {
                let association = self.foreign_agents.named(src, found.spi);
                let holds = |association| request.verify(Between::ForeignHome, association);
                Ok(Some(association.is_some_and(holds)))
            }
            None => {
                let is_for_one = !self.config.address.is_broadcast(request.home_agent);
                let is_signed = request.lifetime != 0 && request.care_of == src && is_for_one;
                Ok((known && is_signed).then_some(false))
            }
        }
    }

    /// Checks the Identification of a request (RFC 5944, section 5.7).
    pub(super) fn judge_identification(&self, now: Instant, request: &Request) -> Result<(), Denial> {
        if let Some(repeated) = self.judge_repetition(now, request) {
            return Err(repeated);
        }
        let is_new = match self.replay(request) {
            Replay::Timestamps => self.is_timely(now, request),
            Replay::Nonces => self.nonce(request.home) == Some((request.identification >> 32) as u32),
        };
        if is_new { Ok(()) } else { Err(Denial::Code(Code::IdentificationMismatch)) }
    }

    /// Returns the answer to a request that has the Identification of the last accepted request; `None` for other
    /// requests. The request is a duplicate from the network, or a repetition by the mobile node. If the record is
    /// durable, the request is answered with the same reply. It does not extend the lifetime (RFC 5944, section
    /// 3.8.2.2): a late reply has what is left of it. With timestamps, a late repetition is a replay: a foreign agent that has restarted
    /// could take its sender for the mobile node.
    fn judge_repetition(&self, now: Instant, request: &Request) -> Option<Denial> {
        let record =
            self.latest(request.home).filter(|last| last.identification == request.identification)?;
        let granted = match record.of(request.care_of) {
            Some(binding) if request.lifetime != 0 => self.granted_still(now, request, binding.granted),
            None if request.lifetime == 0
                && (request.care_of != request.home || record.bindings.is_empty()) =>
            {
                0
            }
            _ => return None,
        };
        let is_old = || self.window.check(self.steady.ntp(now), None, request.identification).is_err();
        if self.replay(request) == Replay::Timestamps && is_old() {
            return None;
        }
        let is_durable = self.homes.get(&request.home).and_then(|home| home.record.as_ref()) == Some(record);
        Some(if is_durable { Denial::Again(granted) } else { Denial::Silent(refusal::UNDER_WAY) })
    }

    /// Returns the lifetime to grant again for a binding, in seconds: what was `granted`, or what is left of it if that is shorter by
    /// more than [`LATE`].
    fn granted_still(&self, now: Instant, request: &Request, granted: u16) -> u16 {
        let ends = self.homes.get(&request.home).and_then(|home| home.ends.get(&request.care_of));
        let left = ends.map_or(Duration::MAX, |ends| ends.since(now.min(*ends)));
        let left = u16::try_from(left.as_secs()).unwrap_or(u16::MAX);
        if left.saturating_add(LATE) < granted { left } else { granted }
    }

    /// Returns whether the Identification is a timestamp near this agent's clock, and later than that of the last
    /// accepted request (RFC 5944, section 5.7.1).
    fn is_timely(&self, now: Instant, request: &Request) -> bool {
        let record = self.latest(request.home);
        // If the last request had a nonce, its Identification is no time. Then the request must be later than the start
        // of this agent, from which on the association has used timestamps.
        let had_nonce = record.is_some_and(|record| record.nonce.is_some());
        let floor = self.floor.or_else(|| had_nonce.then_some(self.started));
        let stale = floor.is_some_and(|floor| ntp_distance(request.identification, floor) <= 0);
        let last = record.filter(|_| !had_nonce).map(|record| record.identification);
        !stale && self.window.check(self.steady.ntp(now), last, request.identification).is_ok()
    }

    /// Returns how the association of a request protects against replay.
    fn replay(&self, request: &Request) -> Replay {
        self.mobile_nodes.replay(request.home)
    }

    /// Returns the nonce that the next request of a mobile node must have; `None` if no nonce was sent yet.
    fn nonce(&self, host: Ipv4Addr) -> Option<u32> {
        let sent = self.homes.get(&host).and_then(|home| home.nonce);
        sent.or_else(|| self.latest(host)?.nonce)
    }

    /// Returns a nonce that differs from the present one of a mobile node.
    fn fresh_nonce(&mut self, host: Ipv4Addr) -> u32 {
        let present = self.nonce(host);
        loop {
            let fresh = self.nonces.draw() as u32;
            if Some(fresh) != present {
                return fresh;
            }
        }
    }

    /// Replaces the nonce of a mobile node whose request is denied with `code`, if the request had the present nonce.
    /// Otherwise an attacker could send the denied request again after the reason for the denial is gone. A request
    /// with another nonce changes nothing: repeated earlier requests could keep the mobile node from registering.
    pub(super) fn use_nonce(&mut self, code: Code, request: &Request) {
        let host = request.home;
        let nonces = self.mobile_nodes.replay(host) == Replay::Nonces;
        let has = |nonce: u32| nonce == (request.identification >> 32) as u32;
        let is_used = self.nonce(host).is_none_or(|nonce| code != Code::HomeMobileFailed && has(nonce));
        if nonces && is_used {
            let fresh = self.fresh_nonce(host);
            self.homes.entry(host).or_default().nonce = Some(fresh);
        }
    }

    /// Returns the record that a mobile node has when all registrations under way are durable; `None` if there is none.
    /// The next request is compared with this record.
    pub(super) fn latest(&self, host: Ipv4Addr) -> Option<&BindingRecord> {
        let accepted = self.under_way.of(host).rev().flatten().next();
        accepted.map(|accepted| &accepted.record).or_else(|| self.homes.get(&host)?.record.as_ref())
    }

    fn granted(&self, request: &Request) -> u16 {
        request.lifetime.min(self.config.registration_lifetime.as_secs() as u16)
    }

    /// Returns the code of an accepted request. With flag S, a request asks for simultaneous bindings (RFC 5944, section
    /// 3.8.2.2).
    pub(super) fn accepted(&self, request: &Request) -> Code {
        if request.flags.has(RequestFlags::SIMULTANEOUS) && self.config.simultaneous_bindings == 1 {
            Code::AcceptedNoSimultaneous
        } else {
            Code::Accepted
        }
    }

    /// Returns the bindings that a mobile node has after this request is accepted (RFC 5944, section 3.8.2.2), the
    /// oldest first.
    fn bindings_after(&self, now: Instant, request: &Request) -> Vec<Bound> {
        let Request { home, care_of, lifetime, flags, .. } = *request;
        let mut bindings = self.latest(home).map_or_else(Vec::new, |record| record.bindings.clone());
        if lifetime == 0 {
            // A deregistration of one care-of address does not end the bindings of others.
            bindings.retain(|other| care_of != home && other.care_of != care_of);
            return bindings;
        }
        let wall = self.clock.wall(now);
        let before = bindings.iter().find(|other| other.care_of == care_of);
        let since = before.map_or(wall, |before| before.since);
        let keeps = flags.has(RequestFlags::SIMULTANEOUS) && self.config.simultaneous_bindings > 1;
        bindings.retain(|other| keeps && other.care_of != care_of);
        let granted = self.granted(request);
        let ends = self.clock.wall(now + seconds(granted));
        let spi = request.authentication(Between::MobileHome).map(|found| found.spi);
        bindings.push(Bound { care_of, flags: flags.0, granted, spi, since, ends });
        bindings
    }

    pub(super) fn accept(&mut self, now: Instant, request: Request, path: Path, out: &mut Outbox) {
        let host = request.home;
        let bindings = self.bindings_after(now, &request);
        let nonces = self.replay(&request) == Replay::Nonces;
        let nonce = nonces.then(|| self.fresh_nonce(host));
        let granted = self.granted(&request);
        self.homes.entry(host).or_default();
        let record = BindingRecord { identification: request.identification, nonce, bindings };
        out.store(key_of(host), record.emit());
        self.under_way.push(host, Some(Accepted { record, granted, path, request: Box::new(request) }));
    }

    pub(super) fn reply(
        &mut self,
        now: Instant,
        request: &Request,
        code: Code,
        lifetime: u16,
        path: Path,
        out: &mut Outbox,
    ) {
        // A request with an unknown SPI is answered with the first association of the mobile node.
        let first = || self.mobile_nodes.first(request.home);
        let Some(association) = self.association(request).or_else(first) else { return };
        let own = self.config.address.address;
        let mut reply = request.reply(code);
        (reply.lifetime, reply.home_agent) = (lifetime, own);
        let low = request.identification & 0xffff_ffff;
        match (self.replay(request), self.nonce(request.home)) {
            // The high half is the nonce of the next request (RFC 5944, section 5.7.2).
            (Replay::Nonces, Some(nonce)) => reply.identification = u64::from(nonce) << 32 | low,
            // The high half is the home agent's clock, so that the mobile node can correct its clock (RFC 5944, section
            // 5.7.1).
            (Replay::Timestamps, _) if code == Code::IdentificationMismatch => {
                reply.identification = self.steady.ntp(now) & !0xffff_ffff | low;
            }
            _ => {}
        }
        reply.sign(Between::MobileHome, association);
        let mut has_key = false;
        if let Some(foreign) = self.foreign_agents.first(*path.to.ip()) {
            if code.is_accepted() && lifetime > 0 && self.distributes_to(request, &path) {
                let scope = KeyScope::of(request);
                let key = scope.map(|scope| DistributedKey::new(&scope, association, foreign));
                has_key = key.is_some();
                reply.extensions.extend(key.map(|key| key.extension(&self.config.numbers)));
            }
            reply.sign(Between::ForeignHome, foreign);
        }
        self.keys_sent += u64::from(has_key);
        self.codes.count(code);
        let bytes = datagram(SocketAddrV4::new(own, PORT), path.to, ipv4::DEFAULT_TTL, &reply.emit());
        match path.at_home {
            Some(mac) => out.send(self.iface, Packet::new(mac, bytes)),
            None => out.send_routed(Packet::new(Mac::ZERO, bytes)),
        }
    }

    /// Returns whether an accepted request gets a key for the foreign agent: the agent has relayed it with its own care-of
    /// address, and the Identification is a time.
    fn distributes_to(&self, request: &Request, path: &Path) -> bool {
        self.config.distribute_keys
            && path.at_home.is_none()
            && request.care_of == *path.to.ip()
            && self.replay(request) == Replay::Timestamps
    }

    pub(super) fn drop_packet(&mut self, rx: Rx, packet: Packet, reason: Reason, out: &mut Outbox) {
        self.refused.end(rx.iface, packet, Err(reason), out);
    }
}

fn request_of(message: Registration) -> Option<Request> {
    match message {
        Registration::Request(request) => Some(request),
        Registration::Reply(_) => None,
    }
}
