//! The links of a node: the addresses of its interfaces, and packets to neighbors. [`Arp`] is the neighbor cache; this
//! module executes the results of its look-ups.

use crate::arp::{Arp, Due, Ear, Found};
use crate::node::entries::EntryRecords;
use crate::node::notices::Notices;
use crate::node::store_barrier::StoreBarrier;
use crate::waiting::Origin;
use crate::{Act, Input, Link, MirrorAct, Node, Notification, Outbox};
use crate::{node::drop, reason};
use std::collections::VecDeque;
use table::{Action, Hop, Lifetime, NextHop, RoleId, Route, RouteKey};
use wire::arp::Message;
use wire::fragment::Reassembly;
use wire::{IcmpError, Iface, Instant, InterfaceAddress, Ipv4Addr, Mac, Packet, PacketId, Prefix};

/// An interface that came up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interface {
    pub(crate) iface: Iface,
    pub(crate) mac: Mac,
    pub(crate) mtu: u16,
}

impl Interface {
    /// Finds an interface in a list sorted by number. Interface number N is nearly always at index N - 1, so the
    /// function tries this index before it searches. A router may have thousands of interfaces.
    pub(crate) fn find(all: &[Self], iface: Iface) -> Option<&Self> {
        let expected = all.get(usize::from(iface.0).wrapping_sub(1)).filter(|own| own.iface == iface);
        expected.or_else(|| all.get(all.binary_search_by_key(&iface, |own| own.iface).ok()?))
    }

    /// Adds an interface to the sorted list, or changes it.
    pub(crate) fn set(all: &mut Vec<Self>, own: Self) {
        match all.binary_search_by_key(&own.iface, |other| other.iface) {
            Ok(place) => {
                if let Some(there) = all.get_mut(place) {
                    *there = own;
                }
            }
            Err(place) => all.insert(place, own),
        }
    }
}

/// State that only some nodes have: interface addresses, neighbors, pending records, fragments, the last notices, and
/// the limit of ICMP errors.
#[derive(Debug, Default)]
pub(crate) struct Net {
    pub(crate) addresses: Vec<(Iface, InterfaceAddress)>,
    pub(crate) arp: Arp,
    pub(crate) records: StoreBarrier,
    /// The fragments of incomplete datagrams to this host, by the interface of their arrival and their identity.
    pub(crate) fragments: Reassembly<(Iface, PacketId)>,
    pub(crate) notices: Notices,
    /// The second of the run to which the count `errors` belongs.
    pub(crate) second: u64,
    pub(crate) errors: u16,
    /// The identification of the last outer header of a packet that may be fragmented.
    pub(crate) outer_id: u16,
    /// The last record of the number of entries of the roles.
    pub(crate) entries: EntryRecords,
}

impl Node {
    /// Applies an act to the node itself.
    pub(crate) fn apply(&mut self, now: Instant, role: RoleId, act: &Act) {
        match act {
            Act::Route(key, route) => self.rules.set_route(now, role, *key, *route),
            Act::IngressPolicy(port, policy) => self.rules.set_ingress_policy(role, *port, *policy),
            Act::Neighbor(iface, address, neighbor) => self.net().arp.set(*iface, *address, *neighbor),
            Act::Address(iface, address, true) => self.add_address(now, *iface, *address),
            Act::Address(iface, address, false) => self.remove_address(now, *iface, *address),
            Act::Transmit(..)
            | Act::Drop(..)
            | Act::Tune(..)
            | Act::SendInCell(..)
            | Act::Stream(..)
            | Act::Mark(_)
            | Act::Answer(..)
            | Act::Store(..)
            | Act::Served(_)
            | Act::Delivered(_) => {}
        }
    }

    /// Adds an address to an interface, and the route to the link's prefix unless the prefix has 32 bits. The interface
    /// uses ARP from then on.
    pub fn add_address(&mut self, now: Instant, iface: Iface, address: InterfaceAddress) {
        self.net().addresses.push((iface, address));
        if !self.addresses.contains(&address.address) {
            self.addresses.push(address.address);
            self.rules.report(MirrorAct::Address(address.address, true));
        }
        self.connect(now, address, Some(iface));
    }

    /// Handles an interface that came up or went down, or a radio that heard a cell.
    pub(crate) fn link(&mut self, now: Instant, iface: Iface, link: Link<'_>, out: &mut Outbox) {
        if let Link::Up { mac, mtu, .. } = link {
            self.ifaces.reserve_exact(usize::from(self.ifaces.is_empty()));
            Interface::set(&mut self.ifaces, Interface { iface, mac, mtu });
            self.rules.report(MirrorAct::Mtu(iface, mtu));
        }
        self.forget_neighbors(iface, link, out);
        self.notify_all(now, &Input::Link(iface, link), out);
    }

    /// Returns whether the node reads the ARP messages of an interface: the interface has an address, or a role watches
    /// an address on it.
    pub(crate) fn hears_arp(&self, iface: Iface) -> bool {
        self.speaks_arp(iface) || self.net.as_ref().is_some_and(|net| net.arp.watches(iface))
    }

    /// Returns whether an interface has an address, and therefore uses ARP.
    pub(crate) fn speaks_arp(&self, iface: Iface) -> bool {
        self.interface_address(iface).is_some()
    }

    /// Returns whether an IP destination is a group or broadcast address on this link.
    pub(crate) fn is_for_many(&self, iface: Iface, dst: Ipv4Addr) -> bool {
        Mac::of_group(dst).is_some() || self.link_addresses(iface).any(|own| own.is_broadcast(dst))
    }

    pub(crate) fn net(&mut self) -> &mut Net {
        self.net.get_or_insert_default()
    }

    fn link_addresses(&self, iface: Iface) -> impl Iterator<Item = InterfaceAddress> {
        let all = self.net.iter().flat_map(|net| &net.addresses);
        all.filter(move |(on, _)| *on == iface).map(|(_, address)| *address)
    }

    pub(crate) fn interface_address(&self, iface: Iface) -> Option<InterfaceAddress> {
        self.link_addresses(iface).next()
    }

    /// Removes an address from an interface. Also removes the route to the link's prefix, unless the host has another
    /// address with this prefix.
    pub(crate) fn remove_address(&mut self, now: Instant, iface: Iface, address: InterfaceAddress) {
        let net = self.net();
        net.addresses.retain(|entry| *entry != (iface, address));
        let is_elsewhere = net.addresses.iter().any(|(_, other)| other.address == address.address);
        if !is_elsewhere && self.addresses.contains(&address.address) {
            self.addresses.retain(|own| *own != address.address);
            self.rules.report(MirrorAct::Address(address.address, false));
        }
        let others = self.net().addresses.iter().rfind(|(_, other)| other.link == address.link);
        let iface = others.map(|(iface, _)| *iface);
        self.connect(now, address, iface);
    }

    /// Sets or removes (`None`) the route to the link's prefix.
    pub(crate) fn connect(&mut self, now: Instant, address: InterfaceAddress, iface: Option<Iface>) {
        if address.link.len() == 32 {
            return; // a /32 has no other host
        }
        let key = RouteKey { class: None, src: Prefix::ANY, dst: address.link };
        let route = iface.map(|iface| {
            let action = Action::Forward(Hop { iface, to: NextHop::OnLink });
            Route::new(action, Lifetime::Permanent)
        });
        self.rules.set_route(now, RoleId::NODE, key, route);
    }

    /// Sends a packet to the neighbor with this IP address once ARP has resolved it. For a group or broadcast address,
    /// sends the packet at once to the link address of the group.
    pub(crate) fn send_to_neighbor(
        &mut self,
        now: Instant,
        iface: Iface,
        neighbor: Ipv4Addr,
        origin: Origin,
        mut packet: Packet,
        out: &mut Outbox,
    ) {
        if self.is_for_many(iface, neighbor) {
            packet.link.dst = Mac::of_group(neighbor).unwrap_or(Mac::BROADCAST);
            return self.transmit(iface, packet, out);
        }
        if !self.speaks_arp(iface) {
            return drop(out, iface, packet, reason::NO_NEIGHBOR);
        }
        let asker = self.asker(iface, neighbor);
        match self.net().arp.find(now, (iface, neighbor), origin, packet, asker.is_some()) {
            Found::Here { mac, mut packet, probe } => {
                if probe {
                    self.ask(iface, neighbor, mac, out);
                }
                packet.link.dst = mac;
                self.transmit(iface, packet, out);
            }
            Found::Wait { ask, displaced, given_up } => {
                for (iface, packet) in displaced {
                    drop(out, iface, packet, reason::NEIGHBOR_QUEUE);
                }
                for (iface, packet) in given_up.into_iter().flat_map(with_interface) {
                    drop(out, iface, packet, reason::NEIGHBOR_TABLE);
                }
                if ask {
                    self.ask(iface, neighbor, Mac::BROADCAST, out);
                }
            }
            Found::Silent(packet) => drop(out, iface, packet, reason::NO_NEIGHBOR),
            Found::Full(packet) => drop(out, iface, packet, reason::NEIGHBOR_TABLE),
        }
    }

    /// Removes the neighbor entries of an interface that goes down, or whose radio comes up in another cell. Drops the
    /// packets that waited for these neighbors.
    pub(crate) fn forget_neighbors(&mut self, iface: Iface, link: Link<'_>, out: &mut Outbox) {
        let Some(net) = &mut self.net else { return };
        let waited = match link {
            Link::Up { cell, .. } => net.arp.up(iface, cell),
            Link::Down(Link::UNSUPPORTED) | Link::Heard(..) => return, // unchanged
            Link::Down(_) => net.arp.down(iface),
        };
        for packet in waited {
            drop(out, iface, packet, reason::NO_NEIGHBOR);
        }
    }

    /// Returns the link address and IP address from which a request for a neighbor is sent; `None` if no address may be
    /// used. The function prefers an address on the neighbor's link.
    fn asker(&self, iface: Iface, neighbor: Ipv4Addr) -> Option<(Mac, Ipv4Addr)> {
        let net = self.net.as_ref()?;
        let mac = Interface::find(&self.ifaces, iface)?.mac;
        let may_ask = |own: &InterfaceAddress| !net.arp.is_mute(iface, own.address);
        let on_its_link = self.link_addresses(iface).find(|own| may_ask(own) && own.link.contains(neighbor));
        let own = on_its_link.or_else(|| self.link_addresses(iface).find(may_ask))?;
        Some((mac, own.address))
    }

    /// Sends a request for a neighbor, by broadcast or to the neighbor itself.
    fn ask(&self, iface: Iface, neighbor: Ipv4Addr, to: Mac, out: &mut Outbox) {
        if let Some((mac, own)) = self.asker(iface, neighbor) {
            let request = Message::request(mac, own, neighbor);
            self.transmit(iface, Packet::arp(to, &request), out);
        }
    }

    pub(crate) fn hear_arp(&mut self, now: Instant, iface: Iface, packet: Packet, out: &mut Outbox) {
        let message = match Message::parse(&packet.bytes) {
            Ok(message) => message,
            Err(malformed) => return drop(out, iface, packet, malformed.into()),
        };
        let own: Vec<InterfaceAddress> = self.link_addresses(iface).collect();
        let mac = Interface::find(&self.ifaces, iface).map_or(Mac::ZERO, |own| own.mac);
        let is_own = |address| own.iter().any(|own| own.address == address);
        let on_link = |address| own.iter().any(|own| own.link.contains(address));
        let ear = Ear { iface, mac, is_own: &is_own, on_link: &on_link };
        let heard = self.net().arp.hear(now, &ear, &message);
        drop(out, iface, packet, heard.end);
        if let Some(address) = heard.in_use {
            let in_use = Notification::AddressInUse(iface, address, message.sender_mac);
            self.notify_all(now, &Input::Notification(&in_use), out);
        }
        if let Some(answer) = heard.answer {
            self.transmit(iface, Packet::arp(answer.target_mac, &answer), out);
        }
        for mut packet in heard.released {
            packet.link.dst = message.sender_mac;
            self.transmit(iface, packet, out);
        }
    }

    /// Repeats requests that were not answered, and gives up a neighbor after the last request.
    pub(crate) fn seek_neighbors(&mut self, now: Instant, out: &mut Outbox) {
        while let Some(due) = self.net.as_mut().and_then(|net| net.arp.pop_due(now)) {
            match due {
                Due::Ask(iface, neighbor, known) => {
                    self.ask(iface, neighbor, known.unwrap_or(Mac::BROADCAST), out);
                }
                Due::Failed(iface, queue) => self.give_up(now, iface, queue, out),
            }
        }
    }

    fn give_up(&mut self, now: Instant, iface: Iface, queue: VecDeque<Packet>, out: &mut Outbox) {
        for packet in queue {
            self.tell_sender(now, iface, IcmpError::HostUnreachable, &packet, out);
            drop(out, iface, packet, reason::NO_NEIGHBOR);
        }
    }
}

fn with_interface((iface, packets): (Iface, VecDeque<Packet>)) -> impl Iterator<Item = (Iface, Packet)> {
    packets.into_iter().map(move |packet| (iface, packet))
}
