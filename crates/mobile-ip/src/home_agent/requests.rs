//! The requests at a home agent: what is accepted, and what is denied (RFC 5944, section 3.8.2); the replies.

use super::{Accepted, Denial, HomeAgent, Path, UNDER_WAY, accepted, key_of, refusal, seconds};
use crate::binding::{Binding, BindingRecord};
use crate::config::is_host;
use crate::message::{
    Association, Between, Code, PORT, Received, Registration, Request, RequestFlags, datagram,
};
use node::{Outbox, Rx, reason};
use wire::ipv4;
use wire::{Instant, Ipv4Addr, Mac, Packet, Reason, SocketAddrV4, ntp_distance};

impl HomeAgent {
    pub(super) fn registration(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        let received = match Received::of(rx.header, rx.payload(&packet)) {
            Ok(received) => received,
            Err(malformed) => return self.refuse(rx, packet, malformed.into(), out),
        };
        let (to, src) = (received.sender(), received.ip.src);
        let Registration::Request(request) = received.message else {
            return self.refuse(rx, packet, refusal::UNEXPECTED, out);
        };
        let at_home = (rx.iface == self.iface && src == request.home).then_some(packet.link.src);
        let path = Path { to, at_home };
        let denial = match self.judge(now, src, &request) {
            Ok(()) => {
                out.discard(rx.iface, packet, reason::CONSUMED);
                return self.accept(now, request, path, out);
            }
            Err(denial) => denial,
        };
        if let Denial::Silent(reason) = denial {
            return self.refuse(rx, packet, reason, out);
        }
        let may = match denial {
            Denial::Code(Code::HomeMobileFailed) => self.answers.may(now, src),
            _ => self.denials.may(now, (request.home, request.identification)),
        };
        if !may {
            return self.refuse(rx, packet, refusal::ANSWERED, out);
        }
        match denial {
            Denial::Code(code) => {
                self.refused.count(refusal::DENIED);
                self.reply(now, &request, code, 0, path, out);
            }
            Denial::Again(lifetime) => self.reply(now, &request, accepted(&request), lifetime, path, out),
            Denial::Silent(_) => {}
        }
        out.discard(rx.iface, packet, reason::CONSUMED);
    }

    /// Decides whether to accept a request (RFC 5944, section 3.8.2). Changes nothing.
    pub(super) fn judge(&self, now: Instant, src: Ipv4Addr, request: &Request) -> Result<(), Denial> {
        let association = self.association(request).ok_or(Denial::Silent(refusal::NO_ASSOCIATION))?;
        let relayed = self.judge_foreign_agent(src, request)?;
        if !request.verify(Between::MobileHome, association) {
            return Err(Denial::Code(Code::HomeMobileFailed));
        }
        if relayed == Some(false) {
            return Err(Denial::Code(Code::ForeignFailed));
        }
        self.judge_identification(now, request)?;
        let own = self.config.address.address;
        let asks = |flags| request.flags.has(flags);
        let moves = request.lifetime != 0;
        let code = if asks(RequestFlags::RESERVED) {
            Code::HomeBadRequest
        } else if request.home_agent != own {
            Code::UnknownHomeAgent
        } else if !self.is_elsewhere(request.care_of) || (moves && request.care_of == request.home) {
            Code::HomeBadRequest
        } else if asks(RequestFlags::REVERSE) {
            Code::HomeReverseTunnel
        } else if asks(RequestFlags::MINIMAL) || asks(RequestFlags::GRE) {
            Code::HomeEncapsulation
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
        is_host(care_of) && !own.any(|own| own.address == care_of || own.is_broadcast(care_of))
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
    /// A foreign agent does not add this authentication to a deregistration (RFC 5944, section 3.5.4), so a
    /// deregistration does not require it.
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
            None => Ok((known && request.lifetime != 0).then_some(false)),
        }
    }

    /// Checks the Identification of a request: replay protection by timestamps (RFC 5944, section 5.7.1).
    pub(super) fn judge_identification(&self, now: Instant, request: &Request) -> Result<(), Denial> {
        let home = self.homes.get(&request.home);
        let record = self.latest(request.home);
        if let Some(record) = record
            && record.identification == request.identification
        {
            // The request is a duplicate from the network, or a repetition by the mobile node. If the record is
            // durable, the request is answered with the same reply. It does not extend the lifetime (RFC 5944, section
            // 3.8.2.2).
            let is_durable = home.and_then(|home| home.record) == Some(record);
            let again = |granted| {
                if is_durable { Denial::Again(granted) } else { Denial::Silent(refusal::UNDER_WAY) }
            };
            match record.binding {
                None if request.lifetime == 0 => return Err(again(0)),
                Some(binding) if request.lifetime != 0 && binding.care_of == request.care_of => {
                    return Err(again(binding.granted));
                }
                _ => {}
            }
        }
        let stale = self.floor.is_some_and(|floor| ntp_distance(request.identification, floor) <= 0);
        let last = record.map(|record| record.identification);
        if stale || self.window.check(self.steady.ntp(now), last, request.identification).is_err() {
            return Err(Denial::Code(Code::IdentificationMismatch));
        }
        Ok(())
    }

    /// Returns the record that a mobile node has when all registrations under way are durable; `None` if there is none.
    /// The next request is compared with this record.
    pub(super) fn latest(&self, host: Ipv4Addr) -> Option<BindingRecord> {
        let accepted = self.under_way.of(host).rev().flatten().next();
        accepted.map(|accepted| accepted.record).or_else(|| self.homes.get(&host)?.record)
    }

    pub(super) fn accept(&mut self, now: Instant, request: Request, path: Path, out: &mut Outbox) {
        let host = request.home;
        let longest = self.config.registration_lifetime.as_secs() as u16;
        let granted = request.lifetime.min(longest);
        let ends = self.clock.wall(now + seconds(granted));
        self.homes.entry(host).or_default();
        let binding = match self.latest(host).and_then(|record| record.binding) {
            _ if granted > 0 => Some(Binding { care_of: request.care_of, granted, ends }),
            // A deregistration of another care-of address than the bound one does not end the binding.
            Some(other) if request.care_of != host && request.care_of != other.care_of => Some(other),
            _ => None,
        };
        let record = BindingRecord { identification: request.identification, binding };
        self.under_way.push(host, Some(Accepted { record, granted, path, request: Box::new(request) }));
        out.store(key_of(host), record.emit());
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
        let Some(association) = self.association(request) else { return };
        let own = self.config.address.address;
        let mut reply = request.reply(code);
        (reply.lifetime, reply.home_agent) = (lifetime, own);
        if code == Code::IdentificationMismatch {
            // The high half is the home agent's clock, so that the mobile node can correct its clock (RFC 5944, section
            // 5.7.1).
            let low = request.identification & 0xffff_ffff;
            reply.identification = self.steady.ntp(now) & !0xffff_ffff | low;
        }
        reply.sign(Between::MobileHome, association);
        if let Some(association) = self.foreign_agents.first(*path.to.ip()) {
            reply.sign(Between::ForeignHome, association);
        }
        self.codes.count(code);
        let bytes = datagram(SocketAddrV4::new(own, PORT), path.to, ipv4::DEFAULT_TTL, &reply.emit());
        match path.at_home {
            Some(mac) => out.send(self.iface, Packet::new(mac, bytes)),
            None => out.send_routed(Packet::new(Mac::ZERO, bytes)),
        }
    }

    pub(super) fn refuse(&mut self, rx: Rx, packet: Packet, reason: Reason, out: &mut Outbox) {
        self.refused.end(rx.iface, packet, Err(reason), out);
    }
}
