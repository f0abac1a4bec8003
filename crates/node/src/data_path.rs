//! A data path beside the node, with its own copy of the rules, for example in kernel maps ([`table::map`]).
//!
//! The driver changes the copy by the acts of the mirror, which come separately from other acts. A driver without such a
//! data path does not begin a mirror, and nothing is kept for it. The mirror is not part of a run's records and
//! fingerprint.
//!
//! The data path records the uses of its entries ([`table::Verdict::used`]). The driver reports them to the node: before
//! each time-out for those that would end ([`Node::ask_uses`]), and at once for a route whose owner may wait for a use
//! ([`Node::used`]).

use crate::mirror::Mirror;
use crate::ruleset::found;
use crate::{MirrorAct, Node, Ruleset};
use std::cmp::Reverse;
use table::{EntryId, RouteKey};
use wire::Instant;

impl Ruleset {
    /// Reports a change, if there is a mirror.
    pub(crate) fn report(&mut self, act: MirrorAct) {
        if let Some(mirror) = &mut self.mirror {
            mirror.acts.push_back(act);
        }
    }

    /// Begins to report changes, or begins again: first all policies and routes that exist.
    pub(crate) fn begin_mirror(&mut self) {
        let mut mirror = Box::<Mirror>::default();
        for entry in &self.policies {
            mirror.set_policy(entry.port, entry.owner, entry.policy, true);
        }
        for (id, entry) in (0..).map(EntryId).zip(&self.entries) {
            if let Some(entry) = entry.as_ref().filter(|entry| !entry.is_gone()) {
                mirror.set_route(entry.key, found((id, entry)), entry.used, true);
            }
        }
        self.mirror = Some(mirror);
    }

    /// Whether the number of reported entries is that of the entries. It looks at each, so it is for debug builds.
    pub(crate) fn is_mirrored(&self) -> bool {
        let routes = || self.entries.iter().flatten().filter(|entry| !entry.is_gone()).count();
        self.mirror.as_ref().is_none_or(|mirror| mirror.len() == (routes(), self.policies.len()))
    }

    /// Records that a packet used a route outside this table, at `at`. No effect if the route has expired here.
    pub(crate) fn used_outside(&mut self, key: RouteKey, at: Instant) {
        if let Some(id) = self.id_of(key).filter(|id| self.entry(*id).is_some_and(|entry| !entry.is_gone())) {
            self.used(id, at);
        }
    }

    /// Asks for the last use, outside this table, of each route whose lifetime ends by `by` as far as is known here.
    pub(crate) fn ask_uses(&mut self, by: Instant, last_use: &mut dyn FnMut(&RouteKey) -> Option<Instant>) {
        let mut asked = Vec::new();
        while let Some(Reverse((at, key))) = self.due.peek().copied().filter(|Reverse((at, _))| *at <= by) {
            self.due.pop();
            let Some(id) = self.id_of(key) else { continue };
            let Some(Some(entry)) = self.entries.get_mut(id.0 as usize) else { continue };
            if entry.queued == at {
                entry.used = last_use(&key).map_or(entry.used, |used| entry.used.max(used));
                entry.queued = Instant::NEVER;
                asked.push(id);
            }
        }
        for id in asked {
            if let Some(Some(entry)) = self.entries.get_mut(id.0 as usize) {
                Self::queue(&mut self.due, entry);
            }
        }
    }
}

/// For drivers with a data path that has its own copy of the rules.
impl Node {
    /// Begins the mirror. Its first acts are all that the rules answer now, so a driver may call it at any time, and again
    /// for an empty copy. The driver takes the acts after each call of the node; until then they are kept.
    pub fn begin_mirror(&mut self) {
        self.rules.begin_mirror();
        for address in &self.addresses {
            self.rules.report(MirrorAct::Address(*address, true));
        }
        for own in &self.ifaces {
            self.rules.report(MirrorAct::Mtu(own.iface, own.mtu));
        }
    }

    /// Takes the next act of the mirror.
    pub fn next_mirror_act(&mut self) -> Option<MirrorAct> {
        self.rules.mirror.as_mut()?.acts.pop_front()
    }

    /// Asks for the last use, by the data path, of each route whose lifetime ends at `by` or before as far as the node
    /// knows. A driver calls it with the present before [`crate::Input::Timeout`], which then reports and removes only
    /// routes that the data path did not use either. With [`Instant::NEVER`] it asks for all, before a data path is loaded
    /// again. `last_use` returns `None` for a route that the data path does not have.
    pub fn ask_uses(&mut self, by: Instant, last_use: &mut dyn FnMut(&RouteKey) -> Option<Instant>) {
        self.rules.ask_uses(by, last_use);
    }

    /// Records that the data path used a route at `at`. A driver calls it at once for the first use after the end of a
    /// [`table::Lifetime::ReportIdle`]: from then on, its owner is notified again of the next end. It has no effect on a
    /// route that has expired.
    pub fn used(&mut self, key: RouteKey, at: Instant) {
        self.rules.used_outside(key, at);
    }
}
