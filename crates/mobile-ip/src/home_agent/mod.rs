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

mod bindings;
mod copies;
mod informing;
mod nonces;
mod requests;
mod special;

pub use informing::{NOT_SERVED, TOO_MANY_TARGETS, UNMATCHED_ACKNOWLEDGE};
pub use nonces::STALE_REQUEST;

use crate::advertiser::Advertiser;
use crate::binding::{Binding, BindingRecord};
use crate::clock::Clock;
use crate::config::{AgentReverseTunnel, Associations, HomeAgentConfig};
use crate::encapsulation;
use crate::limiter::Limiter;
use crate::mark::{HOME_AGENT, MobileIpEvent};
use crate::message::{ALL_AGENTS, AgentFlags, Code, PORT, Request, RequestFlags};
use crate::passed::Passed;
use crate::refusal;
use crate::reply_counts::ReplyCounts;
use crate::tunnels::{NOT_ABOUT_A_TUNNEL, Tunnels};
use crate::under_way::UnderWay;
use auth::ReplayWindow;
use informing::Informer;
use node::config::{ConfigError, Interfaces};
use node::{
    Announcer, Boot, Expiry, FailedAct, Input, Link, Listen, Notification, Outbox, Proto, PuntReason,
    Refusals, Rng, Role, RouteKey, Rx, Value,
};
use std::collections::BTreeMap;
use wire::{
    Duration, Iface, Instant, InterfaceAddress, Ipv4Addr, Mac, Packet, Prefix, Reason, SocketAddrV4,
    ntp_distance,
};
use wire::{icmp, ipv4};

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
    /// The nonce that was sent last, if it is newer than the one in `record`. It is not stored: after a restart, the
    /// mobile node gets a new nonce in a denial.
    nonce: Option<u32>,
    /// When each binding ends, by care-of address and by the monotonic clock. The times in `record` may differ, because
    /// the wall clock may be set in the meantime.
    ends: BTreeMap<Ipv4Addr, Instant>,
}

impl Home {
    /// Returns the bindings of the durable record, the oldest first.
    fn bindings(&self) -> &[Binding] {
        self.record.as_ref().map_or(&[], |record| record.bindings.as_slice())
    }
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
    listens: Vec<Listen>,
    clock: Clock,
    /// The clock that Identification fields are compared with. It is never set back: otherwise, a mobile node with a
    /// later Identification on record could not register until the clock reaches this Identification.
    steady: Clock,
    /// The NTP time of this start.
    started: u64,
    window: ReplayWindow,
    /// The NTP time of this start after an unclean stop; `None` after a clean stop. New requests with an Identification
    /// that is not later are denied, whatever the record contains.
    floor: Option<u64>,
    mobile_nodes: Associations,
    foreign_agents: Associations,
    informer: Informer,
    homes: BTreeMap<Ipv4Addr, Home>,
    /// When the first binding of each mobile node with several bindings ends.
    ending: Expiry<Ipv4Addr>,
    /// The random numbers of the nonces.
    nonces: Rng,
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
    error_limit: Limiter<Ipv4Addr>,
    /// The identification of the last outer header of a copy.
    outer_id: u16,
    /// The number of replies that were sent, by code.
    codes: ReplyCounts,
    /// The tunnels that end at this host, because a foreign agent with the same address has a visitor: their begin, and
    /// the visitor. Each has the largest time to live of packets for the visitor out of the reverse tunnel of a mobile
    /// node with the same begin, by the mobile node.
    exits: BTreeMap<(Ipv4Addr, Ipv4Addr), BTreeMap<Ipv4Addr, u8>>,
    /// The last packets out of reverse tunnels. Empty unless a foreign agent on this host has the same address.
    passed: Passed,
    /// The number of packets from reverse tunnels that were forwarded.
    reversed: u64,
    /// The number of replies with a key for the foreign agent.
    keys_sent: u64,
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
        let mut listens = vec![Listen::Local(Proto::Udp(PORT)), routers, agents, solicitations, errors];
        if config.reverse_tunnel != AgentReverseTunnel::None {
            listens.push(Listen::Local(Proto::IpIp));
        }
        // Requests to the broadcast address of the home network pass this host on their way to the network.
        if let Some(all) = config.address.broadcast() {
            listens.push(Listen::Transit(Proto::Udp(PORT), Prefix::host(all)));
        }
        listens.extend(broadcasts(config.address).map(|to| Listen::Group(iface, to)));
        if config.special_tunnels {
            listens.push(Listen::Transit(Proto::IpIp, config.address.link));
        }
        let nonces = rng.fork("nonces");
        let advertiser = Advertiser::new(
            iface,
            config.address,
            config.advertise.clone(),
            config.registration_lifetime,
            AgentFlags::HOME.with(AgentFlags::REVERSE, config.reverse_tunnel != AgentReverseTunnel::None)
                | encapsulation::advertised(&config.encapsulations),
            rng,
        );
        Ok(Self {
            iface,
            listens,
            clock: Clock::default(),
            steady: Clock::default(),
            started: 0,
            window: ReplayWindow::new(config.replay_window),
            floor: None,
            mobile_nodes: Associations::new(&config.mobile_nodes),
            foreign_agents: Associations::new(&config.foreign_agents),
            informer: Informer::new(&config, nonces.fork("correspondents")),
            homes: BTreeMap::new(),
            ending: Expiry::default(),
            nonces,
            under_way: UnderWay::default(),
            mac: None,
            announcer: Announcer::new(config.announcements.clone()),
            advertiser,
            tunnels: Tunnels::default(),
            answers: Limiter::default(),
            denials: Limiter::default(),
            error_limit: Limiter::default(),
            outer_id: 0,
            codes: ReplyCounts::default(),
            exits: BTreeMap::new(),
            passed: Passed::default(),
            reversed: 0,
            keys_sent: 0,
            refused: Refusals::default(),
            config,
        })
    }

    // --- starting --------------------------------------------------------------------------------------------------

    /// Sets the clocks, and restores the stored records. If a binding has not expired, packets for its mobile node are
    /// tunneled from now on, and ARP requests for the home address are answered.
    fn start(&mut self, now: Instant, boot: &Boot, out: &mut Outbox) {
        (self.clock.zero, self.steady.zero) = (boot.wall, boot.wall);
        self.started = self.steady.ntp(now);
        // The nonces of each start differ.
        self.nonces = self.nonces.fork(&self.started.to_string());
        self.informer.start(self.started);
        // After an unclean stop, the last record may be damaged, or lost in a store that does not sync. The mobile node
        // may have received the reply all the same.
        self.floor = (!boot.clean).then_some(self.started);
        for (key, value) in &boot.stored {
            match self.restore(now, key, value, out) {
                Ok(()) => {}
                Err(Reason(why)) => out.mark(MobileIpEvent::RecordRefused { why }.into()),
            }
        }
        let records = self.homes.values().filter_map(|home| home.record.as_ref());
        let timestamps = records.filter(|record| record.nonce.is_none()).map(|record| record.identification);
        let latest = timestamps.map(|last| ntp_distance(last, self.started)).max();
        self.steady.advance(latest.unwrap_or(0));
    }

    fn restore(&mut self, now: Instant, key: &[u8], value: &[u8], out: &mut Outbox) -> Result<(), Reason> {
        let mut record = BindingRecord::parse(value)?;
        let host = home_of(key).filter(|host| self.mobile_nodes.first(*host).is_some());
        let host = host.ok_or(refusal::NO_ASSOCIATION)?;
        record.bindings.retain(|binding| self.clock.wall(now) < binding.ends);
        let bindings = record.bindings.clone();
        // A request with the stored nonce may have been accepted before an unclean stop, and its record may be lost. So
        // the stored nonce is replaced.
        let nonce = (self.floor.is_some() && record.nonce.is_some()).then(|| self.nonces.draw() as u32);
        *self.homes.entry(host).or_default() = Home { record: Some(record), nonce, ends: BTreeMap::new() };
        for Binding { care_of, .. } in &bindings {
            out.mark(MobileIpEvent::BindingRestored { host, care_of: *care_of }.into());
        }
        if !bindings.is_empty() {
            self.switch(now, host, &[], &bindings, None, out);
        }
        self.forget_after_restart(now, host);
        Ok(())
    }

    fn link(&mut self, now: Instant, link: Link<'_>, out: &mut Outbox) {
        match link {
            Link::Up { mac, .. } => {
                self.mac = Some(mac);
                if !self.config.is_foreign {
                    self.advertiser.up(now);
                }
                for (host, home) in &self.homes {
                    if !home.bindings().is_empty() {
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
            _ if rx.why == PuntReason::Action => self.copy(now, rx, packet, out),
            ipv4::UDP if self.is_for_agents(&rx, &packet) => self.registration(now, rx, packet, out),
            ipv4::IPIP | ipv4::MINIMAL | ipv4::GRE if rx.header.dst == self.config.address.address => {
                self.reverse(now, rx, packet, out);
            }
            ipv4::IPIP if self.config.special_tunnels => self.special(now, rx, packet, out),
            ipv4::ICMP if rx.payload(&packet).first().is_some_and(|kind| icmp::is_error(*kind)) => {
                match self.tunnel_error(now, rx.payload(&packet), out) {
                    // It may be about a reverse tunnel of a foreign agent on this host.
                    Err(NOT_ABOUT_A_TUNNEL) if !self.config.foreign.is_empty() => out.pass(rx, packet),
                    ends => self.refused.end(rx.iface, packet, ends, out),
                }
            }
            // The foreign agent with the same address answers.
            ipv4::ICMP if self.config.is_foreign => out.pass(rx, packet),
            ipv4::ICMP => {
                let ends = self.advertiser.solicited(now, rx, &packet, false, out);
                self.refused.end(rx.iface, packet, ends, out);
            }
            _ => {
                self.copy_broadcast(rx, &packet, out);
                out.pass(rx, packet);
            }
        }
    }

    /// Returns whether a UDP datagram is a registration message to this agent. It may also be to all home agents of its
    /// network (RFC 5944, section 3.6.1.2), or to all mobility agents of its link.
    fn is_for_agents(&self, rx: &Rx, packet: &Packet) -> bool {
        let to_port = || rx.payload(packet).get(2..4) == Some(&PORT.to_be_bytes());
        let is_group = rx.header.dst == ALL_AGENTS && rx.iface == self.iface;
        rx.header.dst == self.config.address.address || ((is_group || self.is_for_all(rx)) && to_port())
    }

    /// Returns whether a packet is for all hosts of the home network. Some routers send a packet to the broadcast address of
    /// the network as a packet to 255.255.255.255 (RFC 5944, section 3.8.2.1).
    fn is_for_all(&self, rx: &Rx) -> bool {
        let is_limited = rx.header.dst == Ipv4Addr::BROADCAST && rx.iface == self.iface;
        is_limited || self.config.address.is_broadcast(rx.header.dst)
    }

    fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        while let Some(care_of) = self.tunnels.expired(now) {
            self.adjust(care_of, None, out);
        }
        while let Some(host) = self.ending.pop(now) {
            self.expired(now, host, out);
        }
        self.repeat_updates(now, out);
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
            Input::Notice(rx) => self.notice(now, &rx, out),
            Input::Link(iface, link) if iface == self.iface => self.link(now, link, out),
            Input::Failed(fault) => {
                if let FailedAct::Store(key) = &fault.act {
                    self.not_stored(now, key, out);
                }
            }
            Input::Stored(key) => self.stored(now, key, out),
            Input::Notification(Notification::TunnelExit(from, to, true)) => {
                self.exits.entry((*from, *to)).or_default();
            }
            Input::Notification(Notification::TunnelExit(from, to, false)) => {
                self.exits.remove(&(*from, *to));
            }
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
        let due = [
            self.announcer.due(),
            self.advertiser.due(),
            self.tunnels.due(),
            self.ending.next(),
            self.informer.due(),
        ];
        due.into_iter().flatten().min()
    }

    fn status(&self) -> Value {
        let binding = |binding: &Binding| {
            Value::map([
                ("care_of", Value::from(binding.care_of)),
                ("lifetime_s", Value::from(u32::from(binding.granted))),
                ("since_unix_s", Value::from(binding.since.0 / 1_000_000_000)),
                ("ends_unix_s", Value::from(binding.ends.0 / 1_000_000_000)),
                ("spi", binding.spi.map_or(Value::None, Value::from)),
                ("flags", Value::from(RequestFlags(binding.flags).letters())),
                ("encapsulation", encapsulation::name_of(RequestFlags(binding.flags)).into()),
            ])
        };
        let bound = self.homes.iter().filter(|(_, home)| !home.bindings().is_empty());
        let bindings = bound.map(|(host, home)| {
            (host.to_string(), Value::List(home.bindings().iter().map(binding).collect()))
        });
        let own = [
            ("bindings", Value::Map(bindings.collect())),
            ("reversed", Value::from(self.reversed)),
            ("codes", self.codes.status()),
            ("refused", self.refused.status()),
        ];
        let informed = self.informed_status().into_iter().flatten();
        let keys = self.config.distribute_keys.then(|| ("keys_sent", self.keys_sent.into()));
        Value::map(own.into_iter().chain(keys).chain(informed).chain(self.tunnels.status(self.clock)))
    }

    /// Returns the number of bindings, and of pairs of mobile node and correspondent to which an Update was sent.
    fn entries(&self) -> usize {
        self.homes.values().map(|home| home.bindings().len()).sum::<usize>() + self.informer.pairs()
    }
}

/// Returns the broadcast addresses of a link: 255.255.255.255, and that of its prefix. A prefix of 31 or 32 bits has none.
fn broadcasts(own: InterfaceAddress) -> impl Iterator<Item = Ipv4Addr> {
    [Ipv4Addr::BROADCAST].into_iter().chain(own.broadcast())
}

const fn seconds(seconds: u16) -> Duration {
    Duration::from_secs(seconds as u64)
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
