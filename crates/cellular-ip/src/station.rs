//! A node of the access network: a base station, or the node part of a gateway.
//!
//! | packet | from | what happens |
//! |---|---|---|
//! | data | downlink neighbor that its source is mapped to | mapping refreshed by the table, sent up |
//! | data | any other downlink neighbor | dropped, and the host is asked for a route-update: data never make a mapping |
//! | data | uplink | sent to the mapped neighbor; to both during semisoft; dropped without a mapping |
//! | route-update | downlink | checked, mapping made or moved, sent up |
//! | update-request | uplink | sent to the mapped neighbor; to both during semisoft; dropped without a mapping |
//! | ICMP error of a node | wired downlink | sent up |

use crate::admission::{Admission, plausible};
use crate::cache::{Leg, Mapping, RouteCache, Semisoft};
use crate::config::StationConfig;
use crate::message::{ICMP_TYPE, RouteUpdate, control_code};
use crate::per_second::PerSecond;
use crate::reason;
use crate::update_request::{self, UPDATE_REQUEST, UpdateRequest};
use node::config::{ConfigError, Interfaces};
use node::{Expiry, Input, Listen, Mark, Outbox, Proto, PuntReason, Role, Rx, Span, Stage, Value};
use std::collections::BTreeMap;
use table::{Action, Class, Hop, IngressPolicy, Lifetime, Port, Route, RouteKey};
use wire::ipv4::{self, Header};
use wire::{
    Iface, Instant, Ipv4Addr, Packet, PacketId, Prefix, Reason, WallTime, icmp, ntp_distance, ntp_span,
};

/// Names of the marks that a node records.
pub mod mark {
    /// A host is now mapped to another neighbor than before, or had no mapping before.
    pub const MAPPING_CHANGED: &str = "mapping_changed";
    /// From now on, packets to the host take the new path.
    pub const PATH_SWITCHED: &str = "path_switched";
    /// A host has two mappings: this node is the crossover of a semisoft handoff.
    pub const SEMISOFT_BEGUN: &str = "semisoft_begun";
    /// A semisoft handoff was cancelled: a route-update confirmed the old path, and the new path is removed.
    pub const SEMISOFT_CANCELLED: &str = "semisoft_cancelled";
    /// A mapping ended: no packet came from the host for the route-timeout, or no route-update has confirmed the
    /// mapping for too long.
    pub const MAPPING_EXPIRED: &str = "mapping_expired";
    /// The delay devices together held `delay_pool` packets when another packet arrived; at most one mark a second.
    pub const POOL_EXHAUSTED: &str = "delay_pool_exhausted";
    /// A route-update of `host` from `neighbor` has a wrong digest, possibly by tampering; at most one mark a second.
    pub const POSSIBLE_TAMPERING: &str = "possible_tampering";
    /// A host was asked for a route-update, with the reason in the field `why`. At most one mark a second for each
    /// host.
    pub const UPDATE_REQUESTED: &str = "update_requested";
    /// No route-update has confirmed a mapping for more than three times the route-reauth-time: data no longer refresh
    /// it.
    pub const MAPPING_UNCONFIRMED: &str = "mapping_unconfirmed";
}

/// The class of packets from mobile hosts.
const UP: Class = Class(16);
/// The class of packets to mobile hosts.
const DOWN: Class = Class(17);

/// The timers of a host's cache entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Due {
    /// During a semisoft handoff: the mapping to the old neighbor expires.
    Primary,
    /// During a semisoft handoff: the mapping to the new neighbor expires.
    Secondary,
    /// A packet must leave the delay device.
    Hold,
    /// The host's last timestamp is removed, because all messages up to it are now outside the replay window.
    Forget,
}

/// The role of a node of the access network: a base station, or the node part of a gateway.
#[derive(Debug)]
pub struct Station {
    config: StationConfig,
    uplink: Leg,
    radio: Option<Iface>,
    downlinks: Vec<Iface>,
    admission: Admission,
    cache: RouteCache,
    expiry: Expiry<(Ipv4Addr, Due)>,
    /// The number of packets in all delay devices of this node.
    pooled: usize,
    /// When to search next for mappings that no route-update has confirmed; [`Instant::NEVER`] if there is nothing to
    /// search.
    sweep: Instant,
    /// The names of this second's marks, if they are limited to one a second.
    marked: PerSecond<&'static str>,
    /// Hosts that were asked for a route-update in this second.
    asked: PerSecond<Ipv4Addr>,
    pool_exhausted: u64,
    refused: BTreeMap<Reason, u64>,
}

impl Station {
    /// Creates the role of a node, on a host with these interfaces. It is an error if the configuration is invalid, or
    /// names an interface that the host does not have.
    pub fn new(config: StationConfig, interfaces: Interfaces<'_>) -> Result<Self, ConfigError> {
        config.check()?;
        let uplink = interfaces.number("uplink.interface", &config.uplink.interface)?;
        let uplink = Leg { iface: uplink, mac: config.uplink.mac };
        let radio = config.radio.as_deref().map(|name| interfaces.number("radio", name)).transpose()?;
        let wired = config.downlinks.iter().map(|name| interfaces.number("downlinks", name));
        let mut downlinks = wired.collect::<Result<Vec<_>, _>>()?;
        downlinks.extend(radio);
        if downlinks.contains(&uplink.iface) {
            return Err(ConfigError::new(
                "uplink.interface",
                "must not be one of `downlinks`, nor the `radio`",
            ));
        }
        let admission = Admission::new(&config);
        Ok(Self {
            config,
            uplink,
            radio,
            downlinks,
            admission,
            cache: RouteCache::default(),
            expiry: Expiry::default(),
            pooled: 0,
            sweep: Instant::NEVER,
            marked: PerSecond::default(),
            asked: PerSecond::default(),
            pool_exhausted: 0,
            refused: BTreeMap::new(),
        })
    }

    /// Handles one input. Returns a route-update that was accepted, with its interface: the caller sends it up or
    /// consumes it. Returns `None` for other inputs.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        input: Input<'_>,
        out: &mut Outbox,
    ) -> Option<(Iface, Packet)> {
        match input {
            Input::Start(boot) => self.start(now, boot.wall, out),
            Input::Timeout => self.timeout(now, out),
            Input::Packet(rx, packet) => match rx.why {
                PuntReason::Listen => return self.control(now, &rx, packet, out),
                PuntReason::Action => self.downlink(now, &rx, packet, out),
                PuntReason::ReversePath | PuntReason::Check => self.uplink(now, &rx, packet, out),
                // The copy of a packet that was forwarded. No route of this role permits one.
                PuntReason::Kept(_) => out.discard(rx.iface, packet, node::reason::CONSUMED),
            },
            Input::Idle(key, _) => self.expired(now, key.dst.address(), out),
            Input::Wall(wall) => self.admission.set_clock(now, wall),
            Input::Link(..)
            | Input::Stream(..)
            | Input::Serve(..)
            | Input::Notice(_)
            | Input::Notification(_)
            | Input::Stored(_)
            | Input::Command(..)
            | Input::Failed(_) => {}
        }
        None
    }

    /// Sends a packet that arrived by `iface` towards the gateway.
    pub(crate) fn send_up(&mut self, iface: Iface, packet: Packet, out: &mut Outbox) {
        self.send(self.uplink, iface, packet, out);
    }

    fn start(&mut self, now: Instant, wall: WallTime, out: &mut Outbox) {
        self.admission.start(now, wall);
        let from_uplink = Port { iface: self.uplink.iface, from: None };
        out.ingress_policy(
            from_uplink,
            IngressPolicy { class: DOWN, check: None, ttl: true, icmp: true, punts: 0 },
        );
        let punts = self.config.strays;
        for iface in &self.downlinks {
            let port = Port { iface: *iface, from: None };
            out.ingress_policy(
                port,
                IngressPolicy { class: UP, check: Some(DOWN), ttl: true, icmp: true, punts },
            );
        }
        let up = Action::Forward(Hop::mac(self.uplink.iface, self.uplink.mac));
        out.route(RouteKey::all(UP), Route::new(up, Lifetime::Permanent));
        // This node's own ICMP errors are sent up: their destinations are beyond the gateway, or are reached from the
        // gateway.
        out.route(RouteKey::all(Class::HOST), Route::new(up, Lifetime::Permanent));
        out.route(RouteKey::all(DOWN), Route::new(Action::Drop(reason::NO_MAPPING), Lifetime::Permanent));
    }

    // --- control packets -------------------------------------------------------------------------------------------

    fn control(
        &mut self,
        now: Instant,
        rx: &Rx,
        packet: Packet,
        out: &mut Outbox,
    ) -> Option<(Iface, Packet)> {
        let iface = rx.iface;
        let leg = Leg { iface, mac: packet.link.src };
        if !self.downlinks.contains(&iface) {
            self.control_from_above(rx, packet, out);
            return None;
        }
        let air = self.radio == Some(iface);
        match self.admission.admit(now, rx, &packet, &self.config, air, &self.cache) {
            Ok(update) => {
                self.update(now, leg, &update, out);
                Some((iface, packet))
            }
            Err(reason) => {
                if reason == reason::BAD_AUTH && self.marked.first(now, mark::POSSIBLE_TAMPERING) {
                    let seen = Mark::new("station", mark::POSSIBLE_TAMPERING).with("host", source(&packet));
                    out.mark(seen.with("neighbor", leg.mac.to_string()));
                }
                self.refuse(iface, packet, reason, out);
                None
            }
        }
    }

    /// Forwards an update-request, the only control packet that may come from the uplink. The request takes the path of
    /// data to the host, but is never delayed.
    fn control_from_above(&mut self, rx: &Rx, packet: Packet, out: &mut Outbox) {
        let (iface, icmp) = (rx.iface, rx.payload(&packet));
        if control_code(&rx.header, icmp) != Some(UPDATE_REQUEST) {
            return self.refuse(iface, packet, reason::WRONG_DIRECTION, out);
        }
        let host = match UpdateRequest::parse(&rx.header, icmp) {
            Ok(UpdateRequest { mobile, .. }) => mobile,
            Err(malformed) => return self.refuse(iface, packet, malformed.into(), out),
        };
        match self.cache.mapping(host) {
            Some(Mapping::One { leg, .. }) => self.send(*leg, iface, packet, out),
            Some(Mapping::Two(two)) => {
                let (primary, secondary) = (two.primary, two.secondary);
                if let Some(primary) = primary {
                    self.send(primary, iface, packet.clone(), out);
                }
                self.send(secondary, iface, packet, out);
            }
            None => self.refuse(iface, packet, reason::NO_MAPPING, out),
        }
    }

    fn update(&mut self, now: Instant, from: Leg, update: &RouteUpdate, out: &mut Outbox) {
        let host = update.mobile;
        // If the mapping is older than the host's present attachment, the mapping is of a path that the host has left.
        // Then this node is not the crossover.
        let known = self.cache.hosts.get(&host).map(|entry| entry.last_timestamp);
        let stale =
            known.zip(update.attached_since()).is_some_and(|(last, since)| ntp_distance(last, since) < 0);
        let semisoft = update.semisoft && self.config.semisoft && !stale;
        let entry = self.cache.enter(host, update.timestamp);
        match entry.mapping.take() {
            Some(Mapping::One { leg: old, .. }) if old == from => self.map(host, from, false, out),
            Some(Mapping::One { leg: old, .. }) if semisoft => self.begin_semisoft(now, host, old, from, out),
            Some(Mapping::One { .. }) | None => self.map(host, from, true, out),
            Some(Mapping::Two(two)) if semisoft => self.continue_semisoft(now, host, *two, from, out),
            Some(Mapping::Two(two)) => self.end_semisoft(host, *two, from, out),
        }
        if self.sweep == Instant::NEVER && !self.config.route_reauth_time.is_zero() {
            self.sweep = now + self.config.route_reauth_time;
        }
    }

    /// Gives a host one mapping, whose lifetime the table keeps.
    fn map(&mut self, host: Ipv4Addr, leg: Leg, changed: bool, out: &mut Outbox) {
        for due in [Due::Primary, Due::Secondary, Due::Hold, Due::Forget] {
            self.expiry.stop((host, due));
        }
        if let Some(entry) = self.cache.hosts.get_mut(&host) {
            entry.mapping = Some(Mapping::One { leg, ends: false });
        }
        let lifetime = Lifetime::SoftState(self.config.route_timeout);
        let action = Action::Forward(Hop::mac(leg.iface, leg.mac));
        out.route(RouteKey::to(DOWN, host), Route::new(action, lifetime));
        if changed {
            let named =
                |name| Mark::new("station", name).with("host", host).with("neighbor", leg.mac.to_string());
            out.mark(named(mark::MAPPING_CHANGED).at(Span::Ends(Stage::Registration)));
            out.mark(named(mark::PATH_SWITCHED).at(Span::Begins(Stage::PathSwitch)));
        }
    }

    /// Begins a semisoft handoff: a route-update with S=1 came from another neighbor than the mapped one. This node is
    /// the crossover.
    fn begin_semisoft(&mut self, now: Instant, host: Ipv4Addr, old: Leg, new: Leg, out: &mut Outbox) {
        let ends = now + self.config.route_timeout;
        let two = Semisoft {
            primary: Some(old),
            // Only the table knows the age of the mapping to the old neighbor. So this mapping may last longer than the
            // route-timeout, but not shorter.
            primary_ends: ends,
            secondary: new,
            secondary_ends: ends,
            delayed: true,
            device: crate::delay::DelayDevice::default(),
        };
        out.route(RouteKey::to(DOWN, host), Route::new(Action::Punt, Lifetime::Permanent));
        out.mark(
            Mark::new("station", mark::SEMISOFT_BEGUN).with("host", host).with("to", new.mac.to_string()),
        );
        self.expiry.stop((host, Due::Forget));
        self.keep(host, two);
    }

    /// Handles a route-update with S=1 while the host has two mappings.
    fn continue_semisoft(
        &mut self,
        now: Instant,
        host: Ipv4Addr,
        mut two: Semisoft,
        from: Leg,
        out: &mut Outbox,
    ) {
        let ends = now + self.config.route_timeout;
        if two.primary == Some(from) {
            two.primary_ends = ends;
        } else {
            if from != two.secondary {
                // A host has at most two mappings, so a third neighbor replaces the second.
                self.discard_all(&mut two, out);
                two.secondary = from;
                two.delayed = true;
            }
            two.secondary_ends = ends;
        }
        self.keep(host, two);
    }

    /// Ends a semisoft handoff: a route-update that is not semisoft came while the host had two mappings. One mapping
    /// remains.
    fn end_semisoft(&mut self, host: Ipv4Addr, mut two: Semisoft, from: Leg, out: &mut Outbox) {
        if from == two.secondary {
            self.map(host, from, true, out);
            self.flush(&mut two, out);
            return;
        }
        self.discard_all(&mut two, out);
        let cancelled = two.primary == Some(from);
        if cancelled {
            out.mark(Mark::new("station", mark::SEMISOFT_CANCELLED).with("host", host));
        }
        self.map(host, from, !cancelled, out);
    }

    // --- data ------------------------------------------------------------------------------------------------------

    /// Forwards data to a host with two mappings.
    fn downlink(&mut self, now: Instant, rx: &Rx, packet: Packet, out: &mut Outbox) {
        let (iface, header) = (rx.iface, &rx.header);
        let (pool, depth, hold) = (self.config.delay_pool, self.config.delay_device, self.config.delay_hold);
        let exempt = self.config.delay_exempt.contains(&(header.tos >> 2));
        let Some(two) = self.cache.semisoft(header.dst) else {
            return self.refuse(iface, packet, reason::NO_MAPPING, out);
        };
        let (primary, secondary) = (two.primary, two.secondary);
        let mut to_new = Vec::new();
        let before = two.device.len();
        if exempt || !two.delayed {
            to_new.push(packet.clone());
        } else if self.pooled >= pool {
            self.pool_exhausted += 1;
            if self.marked.first(now, mark::POOL_EXHAUSTED) {
                out.mark(Mark::new("station", mark::POOL_EXHAUSTED).with("host", header.dst));
            }
            match two.device.pop() {
                Some(oldest) => {
                    to_new.push(oldest);
                    to_new.extend(two.device.push(packet.clone(), now + hold, depth));
                }
                None => to_new.push(packet.clone()), // undelayed: a copy is neither dropped nor reordered
            }
        } else {
            to_new.extend(two.device.push(packet.clone(), now + hold, depth));
        }
        self.pooled = self.pooled + two.device.len() - before;
        match two.device.deadline() {
            Some(at) => self.expiry.set((header.dst, Due::Hold), at),
            None => self.expiry.stop((header.dst, Due::Hold)),
        }
        if let Some(primary) = primary {
            self.send(primary, iface, packet, out);
        }
        for packet in to_new {
            self.send(secondary, iface, packet, out);
        }
    }

    /// Handles data whose source failed the table's check: the host has no mapping, two mappings, or a mapping to
    /// another neighbor.
    fn uplink(&mut self, now: Instant, rx: &Rx, packet: Packet, out: &mut Outbox) {
        let (iface, host) = (rx.iface, rx.header.src);
        let from = Leg { iface, mac: packet.link.src };
        if self.is_error_of_a_node(iface, &rx.header, rx.payload(&packet)) {
            return self.send_up(iface, packet, out);
        }
        let ends = now + self.config.route_timeout;
        let mapped = self.cache.mapping(host).is_some();
        match self.cache.semisoft(host) {
            Some(two) if from == two.secondary => {
                two.secondary_ends = ends;
                let heard = std::mem::replace(&mut two.delayed, false);
                self.expiry.set((host, Due::Secondary), ends);
                if heard {
                    self.flush_host(host, out);
                }
                self.send_up(iface, packet, out);
            }
            Some(two) if two.primary == Some(from) => {
                two.primary_ends = ends;
                self.expiry.set((host, Due::Primary), ends);
                self.send_up(iface, packet, out);
            }
            _ => {
                let (reason, why) = if mapped {
                    (reason::UPLINK_MISMATCH, update_request::Why::Mismatch)
                } else {
                    (reason::UPLINK_NO_MAPPING, update_request::Why::NoMapping)
                };
                self.refuse(iface, packet, reason, out);
                self.ask(now, host, from, why, out);
            }
        }
    }

    /// Returns whether the packet is an ICMP error that another node has sent from the gateway's address. Such an error
    /// arrives by wire: a wired downlink leads to nodes, and not to mobile hosts.
    fn is_error_of_a_node(&self, iface: Iface, header: &Header, payload: &[u8]) -> bool {
        let wired = self.radio != Some(iface);
        let error =
            header.protocol == ipv4::ICMP && payload.first().is_some_and(|kind| icmp::is_error(*kind));
        wired && error && header.src == self.config.gateway
    }

    /// Sends a host an update-request, at most one a second for each host. Does nothing if no mobile host can have the
    /// address.
    fn ask(&mut self, now: Instant, host: Ipv4Addr, to: Leg, why: update_request::Why, out: &mut Outbox) {
        if !plausible(host, &self.config) || !self.asked.first(now, host) {
            return;
        }
        let (gateway, node, key_generation) =
            (self.config.gateway, self.config.id, self.config.key_generation);
        let request = UpdateRequest { gateway, mobile: host, why, node, key_generation };
        out.mark(Mark::new("station", mark::UPDATE_REQUESTED).with("host", host).with("why", why.name()));
        out.send(to.iface, Packet::new(to.mac, request.emit()));
    }

    /// Sends the delayed packets of a host that was heard on the new path, before any later packet. If the mapping to
    /// the old neighbor has expired, one mapping remains.
    fn flush_host(&mut self, host: Ipv4Addr, out: &mut Outbox) {
        let Some(entry) = self.cache.hosts.get_mut(&host) else { return };
        let Some(Mapping::Two(mut two)) = entry.mapping.take() else { return };
        self.flush(&mut two, out);
        self.expiry.stop((host, Due::Hold));
        match two.primary {
            Some(_) => self.keep(host, *two),
            None => self.map(host, two.secondary, false, out),
        }
    }

    // --- timers ----------------------------------------------------------------------------------------------------

    fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        while let Some((host, due)) = self.expiry.pop(now) {
            match due {
                Due::Primary => self.primary_ended(host, out),
                Due::Secondary => self.secondary_ended(now, host, out),
                Due::Hold => self.held_long_enough(now, host, out),
                Due::Forget => self.cache.forget(host),
            }
        }
        if self.sweep <= now {
            self.sweep_mappings(now, out);
        }
    }

    /// Limits the lifetime of each mapping that no route-update has confirmed for three times the route-reauth-time:
    /// another host may have sent the data that refreshed the mapping. If the host has two mappings, the mapping to the
    /// new neighbor is removed immediately.
    fn sweep_mappings(&mut self, now: Instant, out: &mut Outbox) {
        let (time, limit) = (self.admission.ntp(now), self.config.route_reauth_time * 3);
        let overdue = |last: u64| ntp_distance(time, last).saturating_sub(ntp_span(limit));
        let old = self.cache.hosts.iter().filter(|(_, entry)| overdue(entry.last_timestamp) > 0);
        let old: Vec<Ipv4Addr> = old.map(|(host, _)| *host).collect();
        for host in old {
            let entry = self.cache.hosts.get_mut(&host);
            match entry.and_then(|entry| entry.mapping.as_mut()) {
                Some(Mapping::One { ends: true, .. }) | None => {}
                Some(Mapping::One { leg, ends }) => {
                    *ends = true;
                    let action = Action::Forward(Hop::mac(leg.iface, leg.mac));
                    let lifetime = Lifetime::Until(now + self.config.route_timeout);
                    out.route(RouteKey::to(DOWN, host), Route::new(action, lifetime));
                    out.mark(Mark::new("station", mark::MAPPING_UNCONFIRMED).with("host", host));
                }
                Some(Mapping::Two(_)) => self.secondary_ended(now, host, out),
            }
        }
        let any = !self.cache.hosts.is_empty();
        self.sweep = if any { now + self.config.route_reauth_time } else { Instant::NEVER };
    }

    fn primary_ended(&mut self, host: Ipv4Addr, out: &mut Outbox) {
        let Some(two) = self.cache.semisoft(host) else { return };
        two.primary = None;
        if !two.delayed {
            let leg = two.secondary;
            self.map(host, leg, true, out);
        }
    }

    fn secondary_ended(&mut self, now: Instant, host: Ipv4Addr, out: &mut Outbox) {
        let Some(entry) = self.cache.hosts.get_mut(&host) else { return };
        let Some(Mapping::Two(mut two)) = entry.mapping.take() else { return };
        self.discard_all(&mut two, out);
        match two.primary {
            Some(leg) => self.map(host, leg, false, out),
            None => self.expired(now, host, out),
        }
    }

    fn held_long_enough(&mut self, now: Instant, host: Ipv4Addr, out: &mut Outbox) {
        let Some(two) = self.cache.semisoft(host) else { return };
        let (leg, packets, next) = (two.secondary, two.device.overdue(now), two.device.deadline());
        self.pooled -= packets.len();
        if let Some(at) = next {
            self.expiry.set((host, Due::Hold), at);
        }
        for packet in packets {
            self.send(leg, self.uplink.iface, packet, out);
        }
    }

    /// Removes the mapping of a host. The host's last timestamp is kept for twice the replay window, so that replays
    /// are refused.
    fn expired(&mut self, now: Instant, host: Ipv4Addr, out: &mut Outbox) {
        self.cache.bury(host);
        out.route(RouteKey::to(DOWN, host), None);
        out.mark(Mark::new("station", mark::MAPPING_EXPIRED).with("host", host));
        for due in [Due::Primary, Due::Secondary, Due::Hold] {
            self.expiry.stop((host, due));
        }
        // The replay window extends as far ahead of the node's clock as behind it.
        self.expiry.set((host, Due::Forget), now + self.config.replay_window * 2);
    }

    // --- helper functions ------------------------------------------------------------------------------------------

    fn keep(&mut self, host: Ipv4Addr, two: Semisoft) {
        if two.primary.is_some() {
            self.expiry.set((host, Due::Primary), two.primary_ends);
        }
        self.expiry.set((host, Due::Secondary), two.secondary_ends);
        if let Some(entry) = self.cache.hosts.get_mut(&host) {
            entry.mapping = Some(Mapping::Two(Box::new(two)));
        }
    }

    fn flush(&mut self, two: &mut Semisoft, out: &mut Outbox) {
        let packets = two.device.flush();
        self.pooled -= packets.len();
        for packet in packets {
            self.send(two.secondary, self.uplink.iface, packet, out);
        }
    }

    /// Drops the delayed packets for the new neighbor. A copy of each was sent to the old neighbor, unless the
    /// mapping to the old neighbor had expired.
    fn discard_all(&mut self, two: &mut Semisoft, out: &mut Outbox) {
        let packets = two.device.flush();
        self.pooled -= packets.len();
        for packet in packets {
            self.refuse(self.uplink.iface, packet, reason::SEMISOFT_ENDED, out);
        }
    }

    /// Sends a packet that arrived by `iface` to a neighbor. The time to live is decremented, as in the table's
    /// forwarding.
    fn send(&mut self, leg: Leg, iface: Iface, mut packet: Packet, out: &mut Outbox) {
        if !ipv4::decrement_ttl(&mut packet.bytes) {
            return self.refuse(iface, packet, node::reason::TTL_EXPIRED, out);
        }
        packet.link.dst = leg.mac;
        out.send(leg.iface, packet);
    }

    fn refuse(&mut self, iface: Iface, packet: Packet, reason: Reason, out: &mut Outbox) {
        *self.refused.entry(reason).or_default() += 1;
        out.discard(iface, packet, reason);
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let sweep = Some(self.sweep).filter(|at| *at != Instant::NEVER);
        Instant::sooner(self.expiry.next(), sweep)
    }

    pub(crate) fn status(&self) -> Value {
        let refused = self.refused.iter().map(|(reason, count)| (reason.0.to_owned(), Value::from(*count)));
        Value::map([
            ("hosts", Value::from(self.cache.mapped() as u64)),
            ("delayed_packets", Value::from(self.pooled as u64)),
            ("delay_pool_exhausted", Value::from(self.pool_exhausted)),
            ("refused", Value::Map(refused.collect())),
        ])
    }

    /// Returns the number of mappings and of delayed packets.
    pub(crate) fn entries(&self) -> usize {
        self.cache.mappings() + self.pooled
    }

    pub(crate) fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        for entry in self.cache.hosts.values() {
            if let Some(Mapping::Two(two)) = &entry.mapping {
                two.device.holds(each);
            }
        }
    }
}

/// Returns the source address of a datagram for a mark; `?` if the datagram is malformed.
fn source(packet: &Packet) -> String {
    ipv4::addresses(&packet.bytes).map_or_else(|| "?".to_owned(), |(source, _)| source.to_string())
}

/// Control packets pass through the role, even if they are sent to another gateway.
pub(crate) const LISTENS: [Listen; 1] = [Listen::Transit(Proto::Icmp(ICMP_TYPE), Prefix::ANY)];

impl Role for Station {
    fn name(&self) -> &'static str {
        "station"
    }

    fn listens(&self) -> &[Listen] {
        &LISTENS
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        if let Some((iface, packet)) = self.take(now, input, out) {
            self.send_up(iface, packet, out);
        }
    }

    fn reporter(&self) -> Option<Ipv4Addr> {
        Some(self.config.gateway)
    }

    fn deadline(&self) -> Option<Instant> {
        Self::deadline(self)
    }

    fn status(&self) -> Value {
        Self::status(self)
    }

    fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        Self::holds(self, each);
    }

    fn entries(&self) -> usize {
        Self::entries(self)
    }
}
