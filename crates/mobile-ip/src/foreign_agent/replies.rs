//! The replies of home agents at a foreign agent, and ICMP errors about requests (RFC 5944, section 3.7.3).

use super::{
    DEREGISTERED_BY_ANOTHER, ForeignAgent, HOME_AGENT_FAILED, NOT_A_FAILURE, NOT_ADMITTED, NOT_FROM_HOME,
    NOT_PENDING, REPEATED_BY_ANOTHER, REPLAYED_REPLY, Visit, has_own_address, is_after_challenge,
    is_authenticated_to_home,
};
use crate::message::{Between, Code, Extension, PORT, Reply, datagram};
use crate::pending::{Pending, low};
use node::{Outbox, Rx};
use wire::icmp::{self, Quote};
use wire::{Instant, Ipv4Addr, Packet, Reason, SocketAddrV4};
use wire::{ipv4, udp};

impl ForeignAgent {
    pub(super) fn reply(
        &mut self,
        now: Instant,
        src: Ipv4Addr,
        reply: Reply,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let asked = (reply.home, low(reply.identification));
        let pending = self.waiting.get(asked).ok_or(NOT_PENDING)?;
        // The source of a reply is the address to which the request was sent (RFC 5944, section 3.8.3.1). A request to all
        // home agents is denied, from an address that is not known before. So denials are not checked: they begin no visit.
        if reply.code.is_accepted() && src != pending.request.home_agent {
            return Err(NOT_FROM_HOME);
        }
        if !self.is_signed_by_home_agent(pending, &reply) {
            if let Some(pending) = self.waiting.remove(asked) {
                self.deny(now, &pending, Code::HomeFailed, out)?;
            }
            return Err(HOME_AGENT_FAILED);
        }
        if self.is_of_earlier_request(now, pending, &reply) {
            return Err(REPLAYED_REPLY);
        }
        let Some(pending) = self.waiting.remove(asked) else { return Err(NOT_PENDING) };
        self.handoffs.remembered.note_answered(&pending.request);
        self.waiting.has_answered(now, pending.request.home_agent);
        let key = self.key_of(&pending, &reply);
        if reply.code.is_accepted() {
            if self.is_overtaken(&pending) {
                return Err(REPEATED_BY_ANOTHER);
            }
            let lifetime = reply.lifetime.min(pending.request.lifetime).min(self.longest());
            // The tunnel of a mobile node with its own care-of address does not end here.
            let lifetime = if has_own_address(&pending.request) { 0 } else { lifetime };
            if lifetime == 0 && !self.may_end_visit(&pending, &reply) {
                self.refused.count(DEREGISTERED_BY_ANOTHER);
                self.send_reply(&pending, stripped(reply), out);
                return Ok(());
            }
            if let Err(code) = self.admit(now, &pending, lifetime, out) {
                self.refused.count(NOT_ADMITTED);
                return self.deny(now, &pending, code, out);
            }
            let visit = (pending.request.home, pending.request.home_agent);
            self.note_accepted(visit, &pending, &reply);
            self.keep_key((now, lifetime), &pending, key, out);
            self.forget_older(&pending);
            self.arrived(now, &pending, lifetime, out);
        } else if reply.code == Code::IdentificationMismatch {
            self.corrects_identification(&pending);
        }
        self.send_reply(&pending, stripped(reply), out);
        Ok(())
    }

    /// Records that the home agent has accepted a request.
    fn note_accepted(&mut self, visit: Visit, pending: &Pending, reply: &Reply) {
        let identification = pending.request.identification;
        self.handoffs.remembered.note_accepted(visit, identification);
        if let Some(visitor) = self.visitors.get_mut(&visit) {
            visitor.history.accept(identification, reply.identification);
        }
    }

    /// Returns whether an acceptance belongs to an earlier request of the visit of the same mobile node, which is here or has left.
    /// Without an association, nothing is known of the earlier ones: any host could have sent their replies.
    fn is_of_earlier_request(&self, now: Instant, pending: &Pending, reply: &Reply) -> bool {
        let Pending { mac, ref request, .. } = *pending;
        let visit = (request.home, request.home_agent);
        if !reply.code.is_accepted() || !self.is_proved(visit) {
            return false;
        }
        let (asked, replied) = (request.identification, reply.identification);
        let has_left = self.handoffs.remembered.has_left(now, request);
        if let Some(visitor) = self.visitors.get(&visit) {
            return visitor.mac != mac && (has_left || visitor.history.is_earlier(asked, replied));
        }
        // The mobile node does not send a request again after it has left.
        has_left
            || self.past(now, visit).is_some_and(|past| past.has(asked) || past.is_earlier(asked, replied))
    }

    /// Returns whether an acceptance may end a visit: it comes from the link address of the visitor, or the request or the reply is
    /// authenticated to this agent. A deregistration has no Foreign-Home Authentication (RFC 5944, section 3.5.4), so any host on the
    /// link can send both.
    fn may_end_visit(&self, pending: &Pending, reply: &Reply) -> bool {
        let visit = (pending.request.home, pending.request.home_agent);
        let is_visitor = self.visitors.get(&visit).is_none_or(|visitor| visitor.mac == pending.mac);
        let is_associated = self.home_agents.first(visit.1).is_some();
        let is_signed = is_associated && reply.authentication(Between::ForeignHome).is_some();
        is_visitor || is_signed || self.is_proven(pending)
    }

    /// Denies the waiting request to which a malformed message is the reply (code 71), unless the message comes from a
    /// visited link. Does nothing with other messages.
    pub(super) fn malformed_reply(&mut self, now: Instant, rx: Rx, packet: &Packet, out: &mut Outbox) {
        let Ok(datagram) = udp::Datagram::parse(rx.payload(packet), rx.header.src, rx.header.dst) else {
            return;
        };
        // The type, the home address and the low half of the Identification (RFC 5944, section 3.4).
        let field = |at: usize| <[u8; 4]>::try_from(datagram.payload.get(at..at + 4)?).ok();
        let (Some([3, ..]), Some(home), Some(low)) = (field(0), field(4), field(16)) else { return };
        let asked = (Ipv4Addr::from_octets(home), u32::from_be_bytes(low));
        if self.visited.contains(&rx.iface) {
            return;
        }
        if let Some(pending) = self.waiting.remove(asked) {
            // `deny` may fail, because denials are limited. Without a reply, the mobile node repeats its request.
            let _ = self.deny(now, &pending, Code::BadReply, out);
        }
    }

    /// Returns whether the Foreign-Home Authentication of a reply is correct. Returns true if it is missing and not
    /// required: the request is one to which no such authentication may be added, or there is no association with the home
    /// agent.
    ///
    /// A mobile node that does not know its home agent has not named it: then the reply names it. If there is an association
    /// with the home agent of the request, the reply cannot name another one to avoid the check.
    pub(super) fn is_signed_by_home_agent(&self, pending: &Pending, reply: &Reply) -> bool {
        let mut named = [pending.request.home_agent, reply.home_agent].into_iter();
        let Some(home_agent) = named.find(|agent| self.home_agents.first(*agent).is_some()) else {
            return true;
        };
        let found = reply.authentication(Between::ForeignHome);
        if found.is_none() && !is_authenticated_to_home(&pending.request) {
            return true;
        }
        let spi = found.map(|found| found.spi);
        let association = spi.and_then(|spi| self.home_agents.named(home_agent, spi));
        association.is_some_and(|association| reply.verify(Between::ForeignHome, association))
    }

    /// Drops the waiting requests from the same home and link address that arrived before the accepted request.
    pub(super) fn forget_older(&mut self, Pending { mac, number, request, .. }: &Pending) {
        let own = self.waiting.of(request.home, *mac).filter(|(_, other)| other.number < *number);
        for asked in own.map(|(asked, _)| asked).collect::<Vec<_>>() {
            self.waiting.remove(asked);
        }
    }

    /// Sends a reply to the home address, at the link address and the port of the request (RFC 5944, section 3.7.2.3). ARP
    /// is not used, because another host could answer an ARP request for the home address. Without a home address, the
    /// reply is for 255.255.255.255.
    pub(super) fn send_reply(&mut self, pending: &Pending, mut reply: Reply, out: &mut Outbox) {
        reply.extensions.extend(self.issue_challenge(reply.home, reply.code).map(Extension::challenge));
        if let Some(association) = self.mobile_nodes.first(reply.home) {
            reply.sign(Between::MobileForeign, association);
        }
        self.codes.count(reply.code);
        let own = SocketAddrV4::new(self.config.address.address, PORT);
        let host = if reply.home.is_unspecified() { Ipv4Addr::BROADCAST } else { reply.home };
        let to = SocketAddrV4::new(host, pending.from.port());
        let bytes = datagram(own, to, ipv4::DEFAULT_TTL, &reply.emit());
        out.send(self.iface, Packet::new(pending.mac, bytes));
    }

    /// Returns the challenge of a reply with `code` to a mobile node; `None` without challenges. It is a new one if the request
    /// has used its challenge, or if the present one is used: repetitions of earlier requests change nothing.
    fn issue_challenge(&mut self, host: Ipv4Addr, code: Code) -> Option<Vec<u8>> {
        let known = self.challenged.get(&host);
        let issued = known.and_then(|known| known.issued.clone());
        let present = issued.or_else(|| self.advertiser.challenges.newest())?;
        if !is_after_challenge(code) && !known.is_some_and(|known| known.used.contains(&present)) {
            return Some(present);
        }
        let fresh = self.advertiser.challenges.draw();
        self.challenged.entry(host).or_default().issued.clone_from(&fresh);
        fresh
    }

    /// Denies a relayed request about which an ICMP error arrived. The error must quote the relayed request. It must
    /// not arrive from a visited link: hosts there may have heard the request, and could forge the error.
    pub(super) fn unreachable(
        &mut self,
        now: Instant,
        rx: Rx,
        icmp: &[u8],
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        if self.visited.contains(&rx.iface) {
            return Err(NOT_FROM_HOME);
        }
        let message = icmp::Message::parse(icmp)?;
        let quote = Quote::of(&message)?;
        // `at` is an offset in the request. The request follows the UDP header of 8 bytes. The quote may end before the
        // field.
        let field = |at: usize| quote.payload.get(8 + at..8 + at + 4)?.try_into().ok();
        let (Some(home), Some(low)) = (field(4), field(20)) else { return Err(NOT_PENDING) };
        let asked = (Ipv4Addr::from_octets(home), u32::from_be_bytes(low));
        let about_it = |pending: &Pending| {
            quote.protocol == ipv4::UDP
                && (quote.src, quote.dst) == (self.config.address.address, pending.request.home_agent)
        };
        if !self.waiting.get(asked).is_some_and(about_it) {
            return Err(NOT_PENDING);
        }
        let code = match (quote.kind, quote.code) {
            (3, 0) => Code::HomeNetUnreachable,
            (3, 1) => Code::HomeHostUnreachable,
            (3, 3) => Code::HomePortUnreachable,
            // A redirect and a source quench say nothing about the home agent: the router has forwarded the request, or may
            // forward the next one. The reply may still arrive.
            (4 | 5, _) => return Err(NOT_A_FAILURE),
            _ => Code::HomeUnreachable,
        };
        let Some(pending) = self.waiting.remove(asked) else { return Err(NOT_PENDING) };
        self.hold_claim(&pending.request);
        self.deny(now, &pending, code, out)
    }
}

/// Returns a reply without the extensions that are for this agent only.
fn stripped(mut reply: Reply) -> Reply {
    reply.strip();
    reply
}
