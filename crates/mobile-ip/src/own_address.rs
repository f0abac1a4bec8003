//! The co-located care-of address of a mobile node: its own address in the visited network (RFC 5944, section
//! 1.5). Another role acquires the address, for example by DHCP, or the configuration has it.

use crate::config::{CareOf, ForeignNetwork, MobileNodeConfig};
use crate::mark::MobileIpEvent;
use node::{
    Action, Class, Hop, InterfaceAddress, Lifetime, NextHop, Outbox, Route, RouteKey, TunnelKind, TunnelKinds,
};
use wire::{Cell, Duration, Iface, Instant, Ipv4Addr, Prefix, Reason};

/// The reason to drop a packet out of a tunnel to the co-located care-of address: it is not for the home address.
pub(crate) const NOT_FOR_HOME: Reason = Reason("not_for_home_address");

/// The reason to drop a packet out of a tunnel to the co-located care-of address: the tunnel is not the home agent's.
pub(crate) const NOT_FROM_HOME_AGENT: Reason = Reason("not_home_agents_tunnel");

/// The class of packets out of tunnels of the home agent to this host. It is closed: only the routes of this class apply.
const TUNNELLED: Class = Class(Class::CLOSED.0 + 2);
/// The class of packets out of tunnels of other hosts.
const OF_OTHERS: Class = Class(Class::CLOSED.0 + 3);

/// A tunnel that ends at the co-located care-of address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Exit {
    home_agent: Ipv4Addr,
    care_of: Ipv4Addr,
    /// The kinds in which packets arrive.
    kinds: TunnelKinds,
    /// Whether packets arrive out of tunnels of all hosts.
    is_direct: bool,
}

/// The source and the state of the co-located care-of address.
#[derive(Debug)]
pub(crate) struct OwnAddress {
    source: CareOf,
    /// The networks of the configuration, and the time until an address in them is usable.
    networks: Vec<ForeignNetwork>,
    delay: Duration,
    /// Whether packets are taken out of tunnels of all hosts, and not only of the home agent.
    is_direct: bool,
    iface: Iface,
    home: InterfaceAddress,
    /// The address that is usable now, and the router of its link.
    held: Option<(InterfaceAddress, Option<Ipv4Addr>)>,
    /// The network of the configuration whose address becomes usable at this time.
    coming: Option<(ForeignNetwork, Instant)>,
    /// The tunnel that ends here.
    tunnel: Option<Exit>,
}

impl OwnAddress {
    pub(crate) fn new(config: &MobileNodeConfig, iface: Iface) -> Self {
        Self {
            source: config.care_of,
            networks: config.networks.clone(),
            delay: config.address_delay,
            is_direct: config.direct_tunnels,
            iface,
            home: config.address,
            held: None,
            coming: None,
            tunnel: None,
        }
    }

    /// Returns the co-located care-of address; `None` if the node has none now.
    pub(crate) fn address(&self) -> Option<Ipv4Addr> {
        self.held.map(|(own, _)| own.address)
    }

    /// Returns the router of the visited network; `None` if it is not known.
    pub(crate) fn router(&self) -> Option<Ipv4Addr> {
        self.held.and_then(|(_, router)| router)
    }

    /// Returns the action for this host's own packets to other networks. `None` without an address or a router.
    pub(crate) fn first_hop(&self) -> Option<Action> {
        let to = NextHop::Via(self.router()?);
        Some(Action::Forward(Hop { iface: self.iface, to }))
    }

    /// Notes that the link came up. If the configuration has an address for this network, the address becomes usable
    /// after the delay.
    ///
    /// With its own address, the node detects each network by its link, and needs no agent for that.
    pub(crate) fn link_up(&mut self, now: Instant, cell: Option<Cell>, out: &mut Outbox) {
        match self.source {
            CareOf::Agent => return,
            CareOf::Acquired => return out.mark(MobileIpEvent::NetworkFound.into()),
            CareOf::Configured => {}
        }
        let is_here =
            |network: &&ForeignNetwork| network.cell.is_none_or(|number| cell == Some(Cell(number)));
        let Some(network) = self.networks.iter().find(is_here) else { return };
        out.mark(MobileIpEvent::NetworkFound.into());
        out.mark(MobileIpEvent::AddressBegun.into());
        // An address that becomes usable in the same step would be used before the other roles know the link.
        let delay = self.delay.max(Duration::from_nanos(1));
        self.coming = Some((*network, now + delay));
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        self.coming.as_ref().map(|(_, due)| *due)
    }

    /// Adds the address of the configuration if it is due. Returns whether it is usable now.
    pub(crate) fn timeout(&mut self, now: Instant, out: &mut Outbox) -> bool {
        let Some((ForeignNetwork { address, router, .. }, _)) = self.coming.take_if(|(_, due)| *due <= now)
        else {
            return false;
        };
        out.add_address(self.iface, address);
        out.mark(MobileIpEvent::AddressReady { address: address.address }.into());
        self.held = Some((address, Some(router)));
        true
    }

    /// Takes an address that another role has acquired. Returns whether the node may use it as a care-of address: it is
    /// on the interface of the role, and not in the home network.
    pub(crate) fn acquired(&mut self, iface: Iface, own: InterfaceAddress, router: Option<Ipv4Addr>) -> bool {
        let is_foreign = !own.link.contains(self.home.address) && !self.home.link.contains(own.address);
        let is_ours = matches!(self.source, CareOf::Acquired) && iface == self.iface;
        if is_ours && is_foreign {
            self.held = Some((own, router));
        }
        is_ours && is_foreign
    }

    /// Returns whether another role reports the loss of the address that is in use.
    pub(crate) fn is_lost(&self, iface: Iface, lost: InterfaceAddress) -> bool {
        iface == self.iface && self.held.is_some_and(|(own, _)| own == lost)
    }

    /// Gives up the address, and closes the tunnel. An address of the configuration is removed from the interface.
    /// Returns whether there was an address.
    pub(crate) fn leave(&mut self, out: &mut Outbox) -> bool {
        self.coming = None;
        self.close(out);
        let held = self.held.take();
        if let (Some((own, _)), CareOf::Configured) = (held, self.source) {
            out.remove_address(self.iface, own);
        }
        held.is_some()
    }

    /// Takes the packets for the home address out of the tunnels from this home agent to the care-of address. Packets of
    /// other senders and in tunnels of other kinds, and packets for other hosts, are not forwarded (RFC 5944, section 4.2.2).
    pub(crate) fn open(&mut self, home_agent: Ipv4Addr, kinds: TunnelKinds, out: &mut Outbox) {
        let Some(care_of) = self.address() else { return };
        let exit = Exit { home_agent, care_of, kinds, is_direct: self.is_direct };
        if self.tunnel == Some(exit) {
            return;
        }
        self.close(out);
        self.tunnel = Some(exit);
        let rules = rules(self.home.address, exit);
        for (key, action) in rules {
            out.route(key, Route::new(action, Lifetime::Permanent));
        }
    }

    /// Takes the tunnels of another home agent, or of other kinds, from now on, if tunnels are taken.
    pub(crate) fn follow(&mut self, home_agent: Ipv4Addr, kinds: TunnelKinds, out: &mut Outbox) {
        if self.tunnel.is_some() {
            self.open(home_agent, kinds, out);
        }
    }

    /// Closes the tunnel, if one is open.
    pub(crate) fn close(&mut self, out: &mut Outbox) {
        let Some(exit) = self.tunnel.take() else { return };
        let keys = rules(self.home.address, exit).into_iter().rev().map(|(key, _)| key);
        for key in keys {
            out.route(key, None);
        }
    }
}

/// Returns the routes of the exit of a tunnel. In a closed class, only a route to the single address applies to an address
/// of this host.
fn rules(home: Ipv4Addr, exit: Exit) -> [(RouteKey, Action); 8] {
    let Exit { home_agent, care_of, kinds, is_direct } = exit;
    let (not_for_home, not_home_agents) = (Action::Drop(NOT_FOR_HOME), Action::Drop(NOT_FROM_HOME_AGENT));
    let tunnel = |src| RouteKey { class: None, src, dst: Prefix::host(care_of) };
    // A correspondent that does not have the agreed kind uses IP in IP, which is always available.
    let of_others = if is_direct { kinds.or(TunnelKinds::of(TunnelKind::IpInIp)) } else { kinds };
    [
        (RouteKey::all(TUNNELLED), not_for_home),
        (RouteKey::to(TUNNELLED, care_of), not_for_home),
        (RouteKey::to(TUNNELLED, home), Action::Host),
        (RouteKey::all(OF_OTHERS), not_home_agents),
        (RouteKey::to(OF_OTHERS, care_of), not_home_agents),
        (RouteKey::to(OF_OTHERS, home), if is_direct { Action::Host } else { not_home_agents }),
        (tunnel(Prefix::ANY), Action::Open(OF_OTHERS, of_others)),
        (tunnel(Prefix::host(home_agent)), Action::Open(TUNNELLED, kinds)),
    ]
}
