//! The home agent: keeps the bindings of its mobile nodes. For mobile nodes that are away, it answers ARP requests and
//! tunnels the packets.
//!
//! A request is checked in this order (RFC 5944, section 3.8.2): it must be authentic, it must be new, and all that it
//! requests must be supported. Then the record of the new state is stored. Only when the record is durable, the path is
//! switched, the home network is notified, and the reply is sent.
//!
//! The agent handles other requests while a record is being stored. Until the record is durable, the accepted request
//! is used only to check later requests of the same mobile node. So if the record cannot be stored, there is nothing to
//! undo.

use crate::advertiser::Advertiser;
use crate::binding::{Binding, BindingRecord};
use crate::clock::Clock;
use crate::config::{Associations, HomeAgentConfig, is_host};
use crate::limiter::Limiter;
use crate::mark::{HOME_AGENT, MobileIpEvent};
use crate::message::{
    AgentFlags, Association, Between, Code, PORT, Received, Registration, Request, RequestFlags, datagram,
};
use crate::reply_counts::ReplyCounts;
use crate::tunnels::{NOT_ABOUT_A_TUNNEL, Report, Tunnels};
use crate::under_way::UnderWay;
use auth::ReplayWindow;
use node::config::{ConfigError, Interfaces};
use node::{
    Action, Announcer, Boot, Encap, FailedAct, Input, Lifetime, Link, Listen, Neighbor, Outbox, Proto,
    Refusals, Rng, Role, Route, RouteKey, Rx, Value, reason,
};
use std::collections::BTreeMap;
use wire::icmp::{self, IcmpError};
use wire::ipv4;
use wire::{
    Duration, Iface, Instant, Ipv4Addr, Mac, Packet, Prefix, Reason, SocketAddrV4, WallTime, ntp_distance,
};

/// Reasons for which an agent or a mobile node refuses a registration message. Malformed messages have the reasons of
/// [`crate::message`].
pub mod refusal {
    use wire::Reason;

    /// The message is a request where only replies are expected, or a reply where only requests are expected. Or it is
    /// a reply that arrived by another interface than this role's, or that the agent in use cannot have sent. The
    /// message is not answered: otherwise, a forged source address could make a host answer its own messages.
    pub const UNEXPECTED: Reason = Reason("unexpected_message");
    /// The request has no Mobile-Home Authentication, or no association with the mobile node has the SPI of the
    /// request. A stored record of a host without an association is refused for the same reason.
    pub const NO_ASSOCIATION: Reason = Reason("no_association");
    /// The request has a Foreign-Home Authentication, but there is no association with the source address of the
    /// request.
    pub const UNKNOWN_AGENT: Reason = Reason("unknown_agent_association");
    /// The request was denied with a reply. The denial is counted only, because the packet of the request is consumed.
    pub const DENIED: Reason = Reason("denied");
    /// The request is not answered, because the same sender or request was answered within the last second, or 1024
    /// other senders or requests were.
    pub const ANSWERED: Reason = Reason("answered_recently");
    /// The request repeats one that was accepted. The reply is not sent yet, because the record is not durable.
    pub const UNDER_WAY: Reason = Reason("answer_under_way");
}

/// The result of a request that does not change the binding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Denial {
    /// The request gets no reply, and its packet is dropped for this reason.
    Silent(Reason),
    /// The request gets a reply with this code.
    Code(Code),
    /// The request repeats the last accepted request. It gets the same reply with this lifetime, in seconds.
    Again(u16),
}

/// Where a reply is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Path {
    to: SocketAddrV4,
    /// The link address of a mobile node that sent the request from the home network; `None` for other requests. The
    /// reply is sent to this address, and does not follow a binding (RFC 5944, section 3.8.3.1).
    at_home: Option<Mac>,
}

/// The state of one mobile node.
#[derive(Debug, Default)]
struct Home {
    /// The last durable record, to which the routes correspond; `None` if there is none. An expired binding is already
    /// removed from this record.
    record: Option<BindingRecord>,
    /// The SPI of the registration in `record`; `None` if there is no record, or if the record was restored when the
    /// role started.
    spi: Option<u32>,
    /// When the route of the binding ends, by the monotonic clock. The node then reports the route as idle. The time in
    /// `record` may differ, because the wall clock may be set in the meantime.
    ends: Instant,
}

/// A registration whose record is not durable yet.
#[derive(Debug)]
struct Accepted {
    record: BindingRecord,
    /// The granted lifetime of the reply, in seconds.
    granted: u16,
    path: Path,
    request: Box<Request>,
}

/// While this number of storage requests wait for their results, further Registration Requests are denied with
/// [`Code::HomeResources`] (not from an RFC). At 10,000 registrations per second, these are the registrations of 1.6 s;
/// a mobile node waits at least 1 s for a reply.
const UNDER_WAY: usize = 16_384;

/// The role of a home agent (RFC 5944, section 3.8).
#[derive(Debug)]
pub struct HomeAgent {
    config: HomeAgentConfig,
    iface: Iface,
    listens: [Listen; 5],
    clock: Clock,
    /// The clock that Identification fields are compared with. It is never set back: otherwise, a mobile node with a
    /// later Identification on record could not register until the clock reaches this Identification.
    steady: Clock,
    window: ReplayWindow,
    /// The NTP time of this start after an unclean stop; `None` after a clean stop. New requests with an Identification
    /// that is not later are denied, whatever the record contains.
    floor: Option<u64>,
    mobile_nodes: Associations,
    foreign_agents: Associations,
    homes: BTreeMap<Ipv4Addr, Home>,
    /// The storage requests without a result. `None`: the request stores the end of a binding, whose route is already
    /// removed.
    under_way: UnderWay<Option<Accepted>>,
    /// The link address of this host on the home network; `None` while the link is down.
    mac: Option<Mac>,
    announcer: Announcer,
    advertiser: Advertiser,
    tunnels: Tunnels,
    /// Limits denials of requests with a wrong Mobile-Home Authentication, by source address.
    answers: Limiter<Ipv4Addr>,
    /// Limits other denials, and repeated replies, by mobile node and Identification. The source address is not used:
    /// many mobile nodes share the address of a foreign agent. With the Identification, a replayed request does not
    /// suppress the reply to the mobile node's next request.
    denials: Limiter<(Ipv4Addr, u64)>,
    /// Limits ICMP errors to the senders of tunneled datagrams, by sender.
    told: Limiter<Ipv4Addr>,
    /// The number of replies that were sent, by code.
    codes: ReplyCounts,
    refused: Refusals,
}

impl HomeAgent {
    /// Creates a home agent on a host with these interfaces. An error names the invalid key of the configuration, for
    /// example `interface` if the host does not have this interface.
    pub fn new(config: HomeAgentConfig, interfaces: Interfaces<'_>, rng: Rng) -> Result<Self, ConfigError> {
        config.check()?;
        let iface = interfaces.number("interface", &config.interface)?;
        let [routers, agents, solicitations] = Advertiser::listens(iface);
        let errors = Listen::IcmpAbout(Proto::IpIp);
        let advertiser = Advertiser::new(
            iface,
            config.address,
            config.advertise.clone(),
            config.registration_lifetime,
            AgentFlags::HOME,
            rng,
        );
        Ok(Self {
            iface,
            listens: [Listen::Local(Proto::Udp(PORT)), routers, agents, solicitations, errors],
            clock: Clock::default(),
            steady: Clock::default(),
            window: ReplayWindow::new(config.replay_window),
            floor: None,
            mobile_nodes: Associations::new(&config.mobile_nodes),
            foreign_agents: Associations::new(&config.foreign_agents),
            homes: BTreeMap::new(),
            under_way: UnderWay::default(),
            mac: None,
            announcer: Announcer::new(config.announcements.clone()),
            advertiser,
            tunnels: Tunnels::default(),
            answers: Limiter::default(),
            denials: Limiter::default(),
            told: Limiter::default(),
            codes: ReplyCounts::default(),
            refused: Refusals::default(),
            config,
        })
    }

    // --- starting --------------------------------------------------------------------------------------------------

    /// Sets the clocks, and restores the stored records. If a binding has not expired, packets for its mobile node are
    /// tunneled from now on, and ARP requests for the home address are answered.
    fn start(&mut self, now: Instant, boot: &Boot, out: &mut Outbox) {
        (self.clock.zero, self.steady.zero) = (boot.wall, boot.wall);
        // After an unclean stop, the last record may be damaged, or lost in a store that does not sync. The mobile node
        // may have received the reply all the same.
        self.floor = (!boot.clean).then(|| self.steady.ntp(now));
        for (key, value) in &boot.stored {
            match self.restore(now, key, value, out) {
                Ok(()) => {}
                Err(Reason(why)) => out.mark(MobileIpEvent::RecordRefused { why }.into()),
            }
        }
        let records = self.homes.values().filter_map(|home| home.record);
        let latest = records.map(|record| ntp_distance(record.identification, self.steady.ntp(now))).max();
        self.steady.advance(latest.unwrap_or(0));
    }

    fn restore(&mut self, now: Instant, key: &[u8], value: &[u8], out: &mut Outbox) -> Result<(), Reason> {
        let record = BindingRecord::parse(value)?;
        let host = home_of(key).filter(|host| self.mobile_nodes.first(*host).is_some());
        let host = host.ok_or(refusal::NO_ASSOCIATION)?;
        let binding = record.binding.filter(|binding| self.clock.wall(now) < binding.ends);
        self.homes.entry(host).or_default().record = Some(BindingRecord { binding, ..record });
        if let Some(binding) = binding {
            out.mark(MobileIpEvent::BindingRestored { host, care_of: binding.care_of }.into());
            self.switch(now, host, None, Some(binding), None, out);
        }
        Ok(())
    }

    fn link(&mut self, now: Instant, link: Link<'_>, out: &mut Outbox) {
        match link {
            Link::Up { mac, .. } => {
                self.mac = Some(mac);
                self.advertiser.up(now);
                for (host, home) in &self.homes {
                    if home.record.is_some_and(|record| record.binding.is_some()) {
                        self.announcer.announce(now, (self.iface, *host), mac, out);
                    }
                }
            }
            Link::Down(_) => {
                self.mac = None;
                self.advertiser.down();
            }
            Link::Heard(..) => {}
        }
    }

    // --- requests --------------------------------------------------------------------------------------------------

    fn packet(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        match rx.header.protocol {
            ipv4::UDP if rx.header.dst == self.config.address.address => {
                self.registration(now, rx, packet, out);
            }
            ipv4::ICMP if rx.payload(&packet).first().is_some_and(|kind| icmp::is_error(*kind)) => {
                let ends = self.tunnel_error(now, rx.payload(&packet), out);
                self.refused.end(rx.iface, packet, ends, out);
            }
            ipv4::ICMP => {
                let ends = self.advertiser.solicited(now, rx, &packet, false, out);
                self.refused.end(rx.iface, packet, ends, out);
            }
            _ => out.pass(rx, packet),
        }
    }

    fn registration(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
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
    fn judge(&self, now: Instant, src: Ipv4Addr, request: &Request) -> Result<(), Denial> {
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
    fn is_elsewhere(&self, care_of: Ipv4Addr) -> bool {
        let mut own = self.config.host.iter().chain([&self.config.address]);
        is_host(care_of) && !own.any(|own| own.address == care_of || own.is_broadcast(care_of))
    }

    /// Returns the association that the request's Mobile-Home Authentication names; `None` if there is none.
    fn association(&self, request: &Request) -> Option<&Association> {
        let authentication = request.authentication(Between::MobileHome)?;
        self.mobile_nodes.named(request.home, authentication.spi)
    }

    /// Checks the Foreign-Home Authentication of a request. Returns `Some(true)` if it is correct, `Some(false)` if it
    /// is wrong, or missing but required, and `None` if it is missing and not required. Fails if there is one, but no
    /// association with the source address `src`.
    ///
    /// A foreign agent does not add this authentication to a deregistration (RFC 5944, section 3.5.4), so a
    /// deregistration does not require it.
    fn judge_foreign_agent(&self, src: Ipv4Addr, request: &Request) -> Result<Option<bool>, Denial> {
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
    fn judge_identification(&self, now: Instant, request: &Request) -> Result<(), Denial> {
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
    fn latest(&self, host: Ipv4Addr) -> Option<BindingRecord> {
        let accepted = self.under_way.of(host).rev().flatten().next();
        accepted.map(|accepted| accepted.record).or_else(|| self.homes.get(&host)?.record)
    }

    fn accept(&mut self, now: Instant, request: Request, path: Path, out: &mut Outbox) {
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

    /// Removes the oldest storage request for a mobile node, because the result of this request has arrived. Returns
    /// the registration; `None` if the request stored the end of a binding.
    fn decided(&mut self, host: Ipv4Addr) -> Option<Accepted> {
        self.under_way.pop(host)?
    }

    /// Applies a registration whose record is durable, and sends the reply.
    fn stored(&mut self, now: Instant, key: &[u8], out: &mut Outbox) {
        let Some(host) = home_of(key) else { return };
        let Some(Accepted { record, granted, path, request }) = self.decided(host) else { return };
        let spi = request.authentication(Between::MobileHome).map(|found| found.spi);
        let home = self.homes.entry(host).or_default();
        home.spi = spi;
        let before = home.record.replace(record);
        let [from, to] = [before, Some(record)].map(|record| record.and_then(|record| record.binding));
        self.switch(now, host, from, to, path.at_home, out);
        self.reply(now, &request, accepted(&request), granted, path, out);
        mark_change(host, from, to, out);
    }

    /// Switches the path to a mobile node from its old to its new binding. `at_home` is the link address of the mobile
    /// node, if it sent the request from the home network.
    fn switch(
        &mut self,
        now: Instant,
        host: Ipv4Addr,
        from: Option<Binding>,
        to: Option<Binding>,
        at_home: Option<Mac>,
        out: &mut Outbox,
    ) {
        let care_of = |binding: Option<Binding>| binding.map(|binding| binding.care_of);
        self.tunnels.rebind(care_of(from), care_of(to));
        if let Some(Binding { care_of, ends, .. }) = to {
            let ends = now + until(self.clock.wall(now), ends);
            if let Some(home) = self.homes.get_mut(&host) {
                home.ends = ends;
            }
            self.tunnel(host, care_of, ends, out);
        } else if from.is_some() {
            out.route(key_to(host), None);
        }
        match (from, to, at_home) {
            (None, Some(_), _) => {
                out.neighbor(self.iface, host, Neighbor::Proxy);
                if let Some(mac) = self.mac {
                    self.announcer.announce(now, (self.iface, host), mac, out);
                }
            }
            (Some(_), None, _) => {
                out.neighbor(self.iface, host, None);
                self.announcer.stop(host);
                if let Some(mac) = at_home {
                    self.announcer.announce(now, (self.iface, host), mac, out);
                }
            }
            _ => {}
        }
    }

    fn tunnel(&self, host: Ipv4Addr, care_of: Ipv4Addr, ends: Instant, out: &mut Outbox) {
        let mtu = self.tunnels.mtu(care_of, self.config.tunnel_mtu);
        let (src, is_failing) = (self.config.address.address, self.tunnels.is_failing(care_of));
        let encap = Encap { is_failing, ..Encap::new(src, care_of, mtu) };
        out.route(key_to(host), Route { action: Action::Tunnel(encap), lifetime: Lifetime::Until(ends) });
    }

    /// Returns the mobile nodes at a care-of address, and when their bindings end.
    fn bound_to(&self, care_of: Ipv4Addr) -> impl Iterator<Item = (Ipv4Addr, Instant)> {
        let is_there = move |home: &Home| home.record?.binding.filter(|binding| binding.care_of == care_of);
        self.homes.iter().filter_map(move |(host, home)| is_there(home).map(|_| (*host, home.ends)))
    }

    /// Sets the tunnels to a care-of address to the MTU and the reachability that are known now.
    fn adjust(&self, care_of: Ipv4Addr, out: &mut Outbox) {
        for (host, ends) in self.bound_to(care_of) {
            self.tunnel(host, care_of, ends, out);
        }
    }

    /// Handles an ICMP error about a packet in a tunnel of this agent. A smaller path MTU in the error is used for
    /// later packets. The sender of the inner datagram gets an error, at most one per second, if enough of the datagram
    /// is quoted (RFC 2003, section 4).
    fn tunnel_error(&mut self, now: Instant, icmp: &[u8], out: &mut Outbox) -> Result<(), Reason> {
        let own = self.config.address.address;
        let report = Report::parse(icmp, own)?;
        if !self.tunnels.is_exit(report.care_of) {
            return Err(NOT_ABOUT_A_TUNNEL);
        }
        if let Some(mtu) = report.mtu()
            && self.tunnels.lower(now, report.care_of, mtu)
        {
            self.adjust(report.care_of, out);
        }
        let error = report.error.map(|error| match report.mtu() {
            // The reported MTU may be that of an earlier path to the exit, and larger than the present MTU.
            Some(_) => {
                let mtu = self.tunnels.mtu(report.care_of, self.config.tunnel_mtu);
                IcmpError::FragmentationNeeded { mtu }
            }
            None => error,
        });
        let told = error.and_then(|error| error.about_quoted(&report.inner, own));
        // Many routers quote too little to know the sender of the inner datagram. Then each sender of a later packet to
        // this care-of address is notified (RFC 2003, section 5.1).
        if report.inner.len() < ipv4::HEADER
            && report.error == Some(IcmpError::HostUnreachable)
            && self.tunnels.fail(now, report.care_of)
        {
            self.adjust(report.care_of, out);
        }
        let sender = told.as_ref().and_then(|bytes| ipv4::addresses(bytes)).map(|(_, to)| to);
        if let (Some(bytes), Some(to)) = (told, sender)
            && self.told.may(now, to)
        {
            out.send_routed(Packet::new(Mac::ZERO, bytes));
        }
        Ok(())
    }

    // --- replies ---------------------------------------------------------------------------------------------------

    fn reply(
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

    fn refuse(&mut self, rx: Rx, packet: Packet, reason: Reason, out: &mut Outbox) {
        self.refused.end(rx.iface, packet, Err(reason), out);
    }

    // --- ends of bindings, and failures ----------------------------------------------------------------------------

    /// Ends a binding whose route has expired. No message is sent (RFC 5944, section 3.8). Does nothing if the binding
    /// was renewed: the new route is set only when an earlier record is durable, and the old route can expire before.
    fn expired(&mut self, now: Instant, host: Ipv4Addr, out: &mut Outbox) {
        let Some(home) = self.homes.get_mut(&host).filter(|home| home.ends <= now) else { return };
        let Some(record) = &mut home.record else { return };
        let from = record.binding.take();
        let ended = *record;
        // While another storage request for the mobile node waits for its result, the end is not stored, because it
        // would replace the record of a newer registration. If the end is not stored, the next start drops the binding:
        // the old record contains the time of the end.
        let is_last = !self.under_way.has(host);
        self.switch(now, host, from, None, None, out);
        out.mark(MobileIpEvent::BindingExpired { host }.into());
        if is_last {
            self.under_way.push(host, None);
            out.store(key_of(host), ended.emit());
        }
    }

    /// Denies a registration whose record could not be stored.
    fn not_stored(&mut self, now: Instant, key: &[u8], out: &mut Outbox) {
        let Some(host) = home_of(key) else { return };
        let Some(Accepted { path, request, .. }) = self.decided(host) else { return };
        if self.homes.get(&host).is_some_and(|home| home.record.is_none()) && !self.under_way.has(host) {
            self.homes.remove(&host);
        }
        out.mark(MobileIpEvent::NotStored { host }.into());
        self.reply(now, &request, Code::HomeResources, 0, path, out);
    }

    fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        while let Some(care_of) = self.tunnels.expired(now) {
            self.adjust(care_of, out);
        }
        self.announcer.timeout(now, out);
        self.advertiser.timeout(now, false, out);
    }
}

impl Role for HomeAgent {
    fn name(&self) -> &'static str {
        HOME_AGENT
    }

    fn listens(&self) -> &[Listen] {
        &self.listens
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(boot) => self.start(now, boot, out),
            Input::Timeout => self.timeout(now, out),
            Input::Packet(rx, packet) => self.packet(now, rx, packet, out),
            Input::Link(iface, link) if iface == self.iface => self.link(now, link, out),
            Input::Failed(fault) => {
                if let FailedAct::Store(key) = &fault.act {
                    self.not_stored(now, key, out);
                }
            }
            Input::Stored(key) => self.stored(now, key, out),
            Input::Idle(key, _) => self.expired(now, key.dst.address(), out),
            Input::Wall(zero) => (self.clock.zero, self.steady.zero) = (zero, self.steady.zero.max(zero)),
            Input::Link(..)
            | Input::Stream(..)
            | Input::Serve(..)
            | Input::Notification(_)
            | Input::Command(..) => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let due = [self.announcer.due(), self.advertiser.due(), self.tunnels.due()];
        due.into_iter().flatten().min()
    }

    fn status(&self) -> Value {
        let bound =
            self.homes.iter().filter_map(|(host, home)| Some((host, home.spi, home.record?.binding?)));
        let bindings = bound.map(|(host, spi, Binding { care_of, granted, ends })| {
            let value = Value::map([
                ("care_of", Value::from(care_of)),
                ("lifetime_s", Value::from(u32::from(granted))),
                ("ends_unix_s", Value::from(ends.0 / 1_000_000_000)),
                ("spi", spi.map_or(Value::None, Value::from)),
            ]);
            (host.to_string(), value)
        });
        Value::map([
            ("bindings", Value::Map(bindings.collect())),
            ("codes", self.codes.status()),
            ("refused", self.refused.status()),
        ])
    }
}

/// Marks a change of the path to a mobile node; does nothing if the care-of address is the same as before.
fn mark_change(host: Ipv4Addr, from: Option<Binding>, to: Option<Binding>, out: &mut Outbox) {
    let place = |binding: Option<Binding>| binding.map(|binding| binding.care_of);
    if place(from) == place(to) {
        return;
    }
    out.mark(match place(to) {
        Some(care_of) => MobileIpEvent::BindingChanged { host, care_of }.into(),
        None => MobileIpEvent::BindingRemoved { host }.into(),
    });
    out.mark(MobileIpEvent::PathSwitched { host }.into());
}

/// Returns the code of an accepted request. With flag S, a request asks for simultaneous bindings, which are not
/// supported (RFC 5944, section 3.8.2.2).
const fn accepted(request: &Request) -> Code {
    if request.flags.has(RequestFlags::SIMULTANEOUS) { Code::AcceptedNoSimultaneous } else { Code::Accepted }
}

const fn seconds(seconds: u16) -> Duration {
    Duration::from_secs(seconds as u64)
}

fn until(now: WallTime, then: WallTime) -> Duration {
    Duration::from_nanos(then.0.saturating_sub(now.0).max(0).cast_unsigned())
}

/// Returns the key of a mobile node's record: the four bytes of the home address.
fn key_of(host: Ipv4Addr) -> Vec<u8> {
    host.octets().to_vec()
}

fn home_of(key: &[u8]) -> Option<Ipv4Addr> {
    <[u8; 4]>::try_from(key).ok().map(Ipv4Addr::from)
}

/// Returns the key of the route for all packets to a mobile node, from any source.
const fn key_to(host: Ipv4Addr) -> RouteKey {
    RouteKey { class: None, src: Prefix::ANY, dst: Prefix::host(host) }
}
