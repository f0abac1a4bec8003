//! The server: grants the addresses of one link (RFC 2131, section 4.3).

use crate::config::ServerConfig;
use crate::leases::{ClientId, Leases};
use crate::mark::{DhcpEvent, SERVER};
use crate::message::{CLIENT_PORT, Kind, Message, SERVER_PORT};
use crate::pending::{Pending, Waiting};
use crate::refusal;
use node::config::{ConfigError, Interfaces};
use node::{Input, Link, Listen, Neighbor, Notification, Outbox, Proto, Refusals, Role, Rx, Value};
use wire::{Duration, Iface, Instant, Ipv4Addr, Mac, Packet, Reason, SocketAddrV4, arp, udp};

/// For this time an offered address is kept for its client (not from an RFC; RFC 2131, section 4.3.1, requires none).
const OFFER_HOLDS: Duration = Duration::from_mins(1);
/// For this time no client gets an address that another host uses (not from an RFC).
const IN_USE_HOLDS: Duration = Duration::from_mins(10);

/// The role of a server for one link.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    iface: Iface,
    listens: [Listen; 2],
    /// The link address of the interface; `None` while the link is down.
    mac: Option<Mac>,
    leases: Leases,
    waiting: Waiting,
    refused: Refusals,
}

impl Server {
    /// Creates a server on a host with these interfaces. An error names the invalid key of the configuration.
    pub fn new(config: ServerConfig, interfaces: Interfaces<'_>) -> Result<Self, ConfigError> {
        config.check()?;
        let iface = interfaces.number("interface", &config.interface)?;
        Ok(Self {
            iface,
            listens: [Listen::Group(iface, Ipv4Addr::BROADCAST), Listen::Local(Proto::Udp(SERVER_PORT))],
            mac: None,
            leases: Leases::new(&config),
            waiting: Waiting::default(),
            refused: Refusals::default(),
            config,
        })
    }

    fn packet(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        // The group that the role listens to also receives packets for other roles.
        if !Message::is_for(&rx.header, rx.payload(&packet), SERVER_PORT) {
            return out.pass(rx, packet);
        }
        let ends = Message::of(&rx.header, rx.payload(&packet), SERVER_PORT)
            .map_err(Reason::from)
            .and_then(|message| self.receive(now, rx.iface, &message, out));
        self.refused.end(rx.iface, packet, ends, out);
    }

    fn receive(
        &mut self,
        now: Instant,
        iface: Iface,
        message: &Message,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        if iface != self.iface {
            return Err(refusal::OTHER_LINK);
        }
        if !message.relay.is_unspecified() {
            return Err(refusal::RELAYED);
        }
        match message.kind {
            Kind::Discover => self.discover(now, message, out),
            Kind::Request => self.request(now, message, out),
            Kind::Decline => self.decline(now, message, out),
            Kind::Release => self.release(now, message),
            Kind::Offer | Kind::Ack | Kind::Nak | Kind::Inform => Err(refusal::UNSUPPORTED),
        }
    }

    // --- addresses -------------------------------------------------------------------------------------------------

    /// Offers an address, after no other host has answered for it (RFC 2131, section 4.3.1).
    fn discover(&mut self, now: Instant, message: &Message, out: &mut Outbox) -> Result<(), Reason> {
        let client = id(message);
        let Some(address) = self.leases.candidate(now, (&client, message.client), message.requested) else {
            out.mark(DhcpEvent::PoolExhausted.into());
            return Err(refusal::EXHAUSTED);
        };
        self.check_address(now, address, message, Kind::Offer, out)
    }

    /// Keeps an address for a client, and asks by ARP whether another host uses it. The answer follows after
    /// `probe_wait`.
    fn check_address(
        &mut self,
        now: Instant,
        address: Ipv4Addr,
        message: &Message,
        answer: Kind,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let Some(mac) = self.mac else { return Err(refusal::BUSY) };
        if self.waiting.is_full() && !self.waiting.has(address) {
            return Err(refusal::BUSY);
        }
        let client = id(message);
        // A lease that holds is not shortened by an offer.
        if !self.leases.has(now, &client, address) {
            self.leases.give(&client, address, now + OFFER_HOLDS);
        }
        let pending = Pending { message: message.clone(), answer };
        if self.waiting.insert(address, pending, now + self.config.probe_wait) {
            out.neighbor(self.iface, address, Neighbor::Watched);
            let asks = arp::Message::request(mac, self.config.address.address, address);
            out.send(self.iface, Packet::arp(Mac::BROADCAST, &asks));
        }
        Ok(())
    }

    /// Handles an ARP message of a host that uses `address`: its client gets another address, or no acknowledgment.
    fn in_use(&mut self, now: Instant, address: Ipv4Addr, by: Mac, out: &mut Outbox) {
        let Some(Pending { message, answer }) = self.waiting.remove_in_use(address, by) else { return };
        out.neighbor(self.iface, address, None);
        out.mark(DhcpEvent::SkippedInUse { address }.into());
        self.leases.skip(address, now + IN_USE_HOLDS);
        if answer == Kind::Offer {
            if let Err(reason) = self.discover(now, &message, out) {
                self.refused.count(reason);
            }
        } else {
            self.answer(Kind::Nak, &message, None, out);
        }
    }

    /// Answers a request for an address, or for the extension of a lease (RFC 2131, section 4.3.2).
    fn request(&mut self, now: Instant, message: &Message, out: &mut Outbox) -> Result<(), Reason> {
        let client = id(message);
        match (message.server, message.requested) {
            // The client has selected an offer.
            (Some(server), _) if server != self.config.address.address => {
                // The client takes another server's offer.
                if let Some(offered) = self.leases.last_of(&client) {
                    self.leases.end(now, offered);
                }
                Err(refusal::OTHER_SERVER)
            }
            (Some(_), None) => Err(refusal::NO_ADDRESS),
            (Some(_), Some(address))
                if self.leases.has(now, &client, address)
                    && self.leases.may_have(message.client, address) =>
            {
                self.grant(now, address, message, out);
                Ok(())
            }
            (Some(_), Some(_)) => {
                self.answer(Kind::Nak, message, None, out);
                Err(refusal::NOT_LEASED)
            }
            // The client has the address, or had it before its link changed.
            (None, requested) => {
                let current = Some(message.current).filter(|current| !current.is_unspecified());
                let address = current.or(requested).ok_or(refusal::NO_ADDRESS)?;
                self.again(now, address, message, out)
            }
        }
    }

    /// Extends a lease. If the server does not know it, for example after a restart, the client keeps its address if no
    /// other client and no other host has it.
    fn again(
        &mut self,
        now: Instant,
        address: Ipv4Addr,
        message: &Message,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let client = id(message);
        let may = self.leases.may_have(message.client, address);
        // The address can be another server's of this link: then that server answers.
        if self.config.address.link.contains(address) && !self.leases.is_ours(address) {
            return Err(refusal::NOT_LEASED);
        }
        // A client that has started again asks for its former address, and has no address yet. If the server has no record
        // of the client, it must be silent: another server of this link may have one (RFC 2131, section 4.3.2).
        let starts_again = message.current.is_unspecified() && self.config.address.link.contains(address);
        if starts_again && !self.leases.knows(&client, message.client) {
            return Err(refusal::NOT_LEASED);
        }
        if !may || !self.leases.is_free_for(now, &client, address) {
            self.answer(Kind::Nak, message, None, out);
            return Err(refusal::NOT_LEASED);
        }
        if self.leases.has(now, &client, address) {
            self.grant(now, address, message, out);
            return Ok(());
        }
        self.check_address(now, address, message, Kind::Ack, out)
    }

    fn grant(&mut self, now: Instant, address: Ipv4Addr, message: &Message, out: &mut Outbox) {
        if message.current.is_unspecified() {
            out.mark(DhcpEvent::Leased { host: address }.into());
        }
        self.leases.give(&id(message), address, now + self.config.lease);
        self.answer(Kind::Ack, message, Some(address), out);
    }

    /// Notes that the client has found another host with its address (RFC 2131, section 4.3.3).
    fn decline(&mut self, now: Instant, message: &Message, out: &mut Outbox) -> Result<(), Reason> {
        self.is_for_us(message)?;
        let address = message.requested.ok_or(refusal::NO_ADDRESS)?;
        if !self.leases.has(now, &id(message), address) {
            return Err(refusal::NOT_LEASED);
        }
        out.mark(DhcpEvent::SkippedInUse { address }.into());
        self.leases.skip(address, now + IN_USE_HOLDS);
        Ok(())
    }

    /// Ends a lease (RFC 2131, section 4.3.4).
    fn release(&mut self, now: Instant, message: &Message) -> Result<(), Reason> {
        self.is_for_us(message)?;
        if !self.leases.has(now, &id(message), message.current) {
            return Err(refusal::NOT_LEASED);
        }
        self.leases.end(now, message.current);
        Ok(())
    }

    fn is_for_us(&self, message: &Message) -> Result<(), Reason> {
        let is_for_us = message.server == Some(self.config.address.address);
        if is_for_us { Ok(()) } else { Err(refusal::OTHER_SERVER) }
    }

    // --- answers ---------------------------------------------------------------------------------------------------

    /// Answers a message with the address `yours`, or without one.
    fn answer(&self, kind: Kind, message: &Message, yours: Option<Ipv4Addr>, out: &mut Outbox) {
        let own = self.config.address;
        let mut answer = Message {
            broadcast: message.broadcast,
            server: Some(own.address),
            identifier: message.identifier.clone(), // RFC 6842
            ..Message::new(kind, message.transaction, message.client)
        };
        if let Some(yours) = yours {
            let seconds = self.config.lease.as_secs() as u32;
            answer.current = if kind == Kind::Ack { message.current } else { Ipv4Addr::UNSPECIFIED };
            answer.yours = yours;
            answer.lease = Some(seconds);
            answer.renew = Some(seconds / 2);
            answer.rebind = Some((u64::from(seconds) * 7 / 8) as u32);
            answer.prefix = Some(own.link.len());
            answer.router = self.config.router;
        }
        // RFC 2131, section 4.1: a client with an address gets the answer there. Others get it at the address that they
        // will have, by their link address, unless they cannot receive it yet.
        let (to, mac) = match yours {
            Some(yours) if !message.broadcast => {
                let current = Some(message.current).filter(|current| !current.is_unspecified());
                (current.unwrap_or(yours), message.client)
            }
            _ => (Ipv4Addr::BROADCAST, Mac::BROADCAST),
        };
        let (from, to) = (SocketAddrV4::new(own.address, SERVER_PORT), SocketAddrV4::new(to, CLIENT_PORT));
        out.send(self.iface, Packet::new(mac, udp::packet(from, to, &answer.emit())));
    }

    fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        while let Some((address, Pending { message, answer })) = self.waiting.pop(now) {
            out.neighbor(self.iface, address, None);
            if answer == Kind::Ack {
                self.grant(now, address, &message, out);
            } else {
                self.answer(answer, &message, Some(address), out);
            }
        }
    }

    fn link(&mut self, link: Link<'_>, out: &mut Outbox) {
        match link {
            Link::Up { mac, .. } => self.mac = Some(mac),
            Link::Down(Link::UNSUPPORTED) | Link::Heard(..) => {}
            Link::Down(_) => {
                self.mac = None;
                for address in self.waiting.clear() {
                    out.neighbor(self.iface, address, None);
                }
            }
        }
    }
}

/// Returns the identity of the client of a message (RFC 2131, section 4.2).
fn id(message: &Message) -> ClientId {
    if message.identifier.is_empty() {
        return [&[1][..], &message.client.0].concat();
    }
    message.identifier.clone()
}

impl Role for Server {
    fn name(&self) -> &'static str {
        SERVER
    }

    fn listens(&self) -> &[Listen] {
        &self.listens
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Timeout => self.timeout(now, out),
            Input::Packet(rx, packet) => self.packet(now, rx, packet, out),
            Input::Link(iface, link) if iface == self.iface => self.link(link, out),
            Input::Notification(Notification::AddressInUse(iface, address, by)) if *iface == self.iface => {
                self.in_use(now, *address, *by, out);
            }
            // The role has no commands and no streams, stores nothing, and sets no routes.
            Input::Start(_)
            | Input::Command(..)
            | Input::Link(..)
            | Input::Idle(..)
            | Input::Notice(_)
            | Input::Stream(..)
            | Input::Serve(..)
            | Input::Wall(_)
            | Input::Notification(_)
            | Input::Failed(_)
            | Input::Stored(_) => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.waiting.due()
    }

    fn status(&self) -> Value {
        Value::map([
            ("addresses", Value::from(self.config.last.to_bits() - self.config.first.to_bits() + 1)),
            ("clients", Value::from(self.leases.clients())),
            ("refused", self.refused.status()),
        ])
    }
}
