//! The mirror: the changes of a node's rules, in their order, for a data path with its own copy of the rules.

use std::collections::VecDeque;
use table::{Found, IngressPolicy, Port, RoleId, RouteKey};
use wire::{Iface, Instant, Ipv4Addr};

/// One change of the answers of [`table::Rules`]. The cause can be a role, the operator, an address of an interface, or
/// the end of a lifetime.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MirrorAct {
    /// A route was set, with its last use; or it was removed or has expired (`None`).
    Route(RouteKey, Option<(Found, Instant)>),
    /// The ingress policy of a port was set by this role, or was removed (`None`).
    IngressPolicy(Port, Option<(RoleId, IngressPolicy)>),
    /// An address became an address of this host (`true`), or is no longer one.
    Address(Ipv4Addr, bool),
    /// The MTU of an interface is now this number of bytes.
    Mtu(Iface, u16),
}

/// The changes that the driver has not taken yet, and the numbers of routes and policies in the copy after these
/// changes.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    pub(crate) acts: VecDeque<MirrorAct>,
    routes: usize,
    policies: usize,
}

impl Mirror {
    /// Adds the act that sets a route. `is_new`: the copy has no route with this key.
    pub(crate) fn set_route(&mut self, key: RouteKey, found: Found, used: Instant, is_new: bool) {
        self.routes += usize::from(is_new);
        self.acts.push_back(MirrorAct::Route(key, Some((found, used))));
    }

    pub(crate) fn remove_route(&mut self, key: RouteKey) {
        self.routes -= 1;
        self.acts.push_back(MirrorAct::Route(key, None));
    }

    /// Adds the act that sets a policy. `is_new`: the copy has no policy for this port.
    pub(crate) fn set_policy(&mut self, port: Port, owner: RoleId, policy: IngressPolicy, is_new: bool) {
        self.policies += usize::from(is_new);
        self.acts.push_back(MirrorAct::IngressPolicy(port, Some((owner, policy))));
    }

    pub(crate) fn remove_policy(&mut self, port: Port) {
        self.policies -= 1;
        self.acts.push_back(MirrorAct::IngressPolicy(port, None));
    }

    /// Returns the number of routes and the number of policies in the copy, after all changes.
    pub(crate) const fn len(&self) -> (usize, usize) {
        (self.routes, self.policies)
    }
}
