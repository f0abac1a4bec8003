//! The streams of a node: the user and the provider of each.
//!
//! There are four ranges of numbers, which do not overlap:
//!
//! | streams | number in that role | number everywhere else |
//! |---|---|---|
//! | that a role opens | below [`StreamId::OWN`] | the same, plus the role's number plus 1 from bit 16 on |
//! | that a role accepts | from [`StreamId::SERVED`] on | the same, plus the role's number from bit 22 on |
//! | that the driver accepts | | from [`StreamId::DRIVER`] on |
//! | that the driver requests from roles | | from [`StreamId::OUTSIDE`] on, above the numbers of all roles |

use crate::app_event::{AppChange, AppEvent};
use crate::node::Node;
use crate::stream::{OwnedStreamEvent, refusal};
use crate::{Act, Input, MigrateEvent, MigrateOp, Outbox, StreamEvent, StreamId, StreamOp, Transport};
use std::collections::BTreeMap;
use table::RoleId;
use wire::Instant;

/// The user and the provider of each stream whose number does not show its user and provider. A stream that a role
/// opens at the driver needs no entry, because its number contains the user.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    by_id: BTreeMap<StreamId, Ends>,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    user: RoleId,
    /// The role that provides the stream, or `None` if the driver does.
    provider: Option<RoleId>,
}

impl Streams {
    /// Returns the global number of a stream that its user numbered. The global number is the number outside of roles.
    const fn of_user(user: RoleId, id: StreamId) -> StreamId {
        if id.0 >= StreamId::SERVED {
            return id;
        }
        StreamId(id.0 & (StreamId::OWN - 1) | (user.0 as u32 + 1) << StreamId::OWN.trailing_zeros())
    }

    /// Returns the number that the user of a stream has for it.
    const fn to_user(id: StreamId) -> StreamId {
        if id.0 >= StreamId::SERVED { id } else { StreamId(id.0 & (StreamId::OWN - 1)) }
    }

    /// Returns the global number of a stream that its provider numbered.
    const fn of_provider(provider: RoleId, id: StreamId) -> StreamId {
        if id.0 < StreamId::SERVED {
            return id; // the user numbered the stream, and the provider has the same number
        }
        let own = id.0 & (StreamId::ACCEPTED - 1);
        StreamId(StreamId::SERVED | (provider.0 as u32) << StreamId::ACCEPTED.trailing_zeros() | own)
    }

    /// Returns the number that the provider of a stream has for it.
    const fn to_provider(id: StreamId) -> StreamId {
        if id.0 < StreamId::SERVED {
            return id;
        }
        StreamId(StreamId::SERVED | id.0 & (StreamId::ACCEPTED - 1))
    }

    /// Returns the user of a stream that the driver provides, or `None` if the driver provides no such stream.
    fn at_driver(&self, id: StreamId) -> Option<RoleId> {
        match self.by_id.get(&id) {
            Some(ends) if ends.provider.is_none() => Some(ends.user),
            Some(_) => None, // a role provides it, not the driver
            None if id.0 >= StreamId::SERVED => None,
            None => (id.0 >> StreamId::OWN.trailing_zeros()).checked_sub(1).map(|index| RoleId(index as u8)),
        }
    }
}

/// Records an event of a stream that a role provides, unless the records do not keep such events.
fn observe(provider: RoleId, stream: StreamId, event: StreamEvent<'_>, out: &mut Outbox) {
    let change = match event {
        StreamEvent::Opened(local) => AppChange::Opened(local),
        StreamEvent::Accepted(new, local, peer) => AppChange::Accepted { new, local, peer },
        StreamEvent::Data(bytes) => AppChange::Read(bytes.len() as u64),
        StreamEvent::Finished => AppChange::Finished,
        StreamEvent::Closed(why) => AppChange::Closed(why.map(str::to_owned)),
        StreamEvent::Room(_) | StreamEvent::Migrate(_) => return,
    };
    out.act(provider, Act::Delivered(AppEvent { stream, change }));
}

impl Node {
    /// Processes an event of a stream that the driver provides.
    pub(crate) fn stream(&mut self, now: Instant, id: StreamId, event: StreamEvent<'_>, out: &mut Outbox) {
        let Some(user) = self.streams.at_driver(id) else { return };
        if let StreamEvent::Accepted(new, ..) = event {
            self.streams.by_id.insert(new, Ends { user, provider: None });
        }
        self.notify_user(now, user, id, event, out);
    }

    /// Processes an event of a stream that a role provides.
    pub(crate) fn served(
        &mut self,
        now: Instant,
        provider: RoleId,
        served: &OwnedStreamEvent,
        out: &mut Outbox,
    ) {
        let (id, mut event) = served.event();
        let id = Streams::of_provider(provider, id);
        let Some(ends) = self.streams.by_id.get(&id).filter(|ends| ends.provider == Some(provider)) else {
            return; // the stream is closed, unknown, or provided by another role
        };
        let user = ends.user;
        if user == RoleId::NODE {
            return self.notify_driver(provider, id, served.clone(), out);
        }
        if let StreamEvent::Accepted(new, ..) = &mut event {
            *new = Streams::of_provider(provider, *new);
            debug_assert!(
                new.0 >= StreamId::SERVED,
                "a role must number accepted streams from `StreamId::SERVED` on"
            );
            self.streams.by_id.insert(*new, Ends { user, provider: Some(provider) });
        }
        observe(provider, id, event, out);
        self.notify_user(now, user, id, event, out);
    }

    /// Passes an event of a stream to the driver, for a program outside. A role provides the stream.
    fn notify_driver(
        &mut self,
        provider: RoleId,
        id: StreamId,
        mut event: OwnedStreamEvent,
        out: &mut Outbox,
    ) {
        match &mut event {
            OwnedStreamEvent::Accepted { new, .. } => {
                *new = Streams::of_provider(provider, *new);
                self.streams.by_id.insert(*new, Ends { user: RoleId::NODE, provider: Some(provider) });
            }
            OwnedStreamEvent::Closed(..) => drop(self.streams.by_id.remove(&id)),
            OwnedStreamEvent::Opened(..)
            | OwnedStreamEvent::Data(..)
            | OwnedStreamEvent::Room(..)
            | OwnedStreamEvent::Finished(_)
            | OwnedStreamEvent::Migrate(..) => {}
        }
        observe(provider, id, event.event().1, out);
        out.act(RoleId::NODE, Act::Served(event));
    }

    fn notify_user(
        &mut self,
        now: Instant,
        user: RoleId,
        id: StreamId,
        event: StreamEvent<'_>,
        out: &mut Outbox,
    ) {
        if matches!(event, StreamEvent::Closed(_)) {
            self.streams.by_id.remove(&id);
        }
        self.give(now, user, Input::Stream(Streams::to_user(id), event), out);
    }

    /// Executes a request for a stream. The user is a role, or [`RoleId::NODE`] for a program outside.
    pub(crate) fn operate(
        &mut self,
        now: Instant,
        user: RoleId,
        id: StreamId,
        mut op: StreamOp,
        out: &mut Outbox,
    ) {
        let global = Streams::of_user(user, id);
        let is_outside = user == RoleId::NODE;
        if let StreamOp::Open { by, .. } | StreamOp::Listen { by, .. } = &op
            && (is_outside || matches!(by, Transport::Role(_)))
        {
            debug_assert!(!self.streams.by_id.contains_key(&global), "the stream {global:?} is open already");
            let Some(provider) = self.provider_of(*by) else {
                if is_outside {
                    let closed = OwnedStreamEvent::Closed(global, Some(refusal::NO_TRANSPORT.to_owned()));
                    return out.act(user, Act::Served(closed));
                }
                return self.give(
                    now,
                    user,
                    Input::Stream(id, StreamEvent::Closed(Some(refusal::NO_TRANSPORT))),
                    out,
                );
            };
            self.streams.by_id.insert(global, Ends { user, provider: Some(provider) });
            let role = self.roles.get(usize::from(user.0)).map_or("", |role| role.name());
            if let Some(event) = AppEvent::of_op(role, global, &op) {
                out.act(provider, Act::Delivered(event));
            }
        }
        if let StreamOp::Migrate(MigrateOp::Join(other, _)) = &mut op {
            *other = Streams::of_user(user, *other);
            if !self.joinable(user, global, *other) {
                let refused = StreamEvent::Migrate(MigrateEvent::Refused(refusal::NOT_JOINABLE));
                return self.give(now, user, Input::Stream(id, refused), out);
            }
        }
        match self.streams.by_id.get(&global) {
            Some(ends) if ends.user != user => {} // another role uses the stream
            Some(Ends { provider: Some(provider), .. }) => {
                self.give(now, *provider, Input::Serve(Streams::to_provider(global), op), out);
            }
            None if is_outside || (StreamId::SERVED..StreamId::DRIVER).contains(&global.0) => {} // already closed
            Some(Ends { provider: None, .. }) | None => out.act(user, Act::Stream(global, op)),
        }
    }

    /// Returns whether both streams belong to this user and the driver provides them. Only the driver can join streams.
    fn joinable(&self, user: RoleId, one: StreamId, other: StreamId) -> bool {
        [one, other].iter().all(|id| match self.streams.by_id.get(id) {
            Some(ends) => ends.user == user && ends.provider.is_none(),
            None => id.0 < StreamId::SERVED, // the driver provides it, and its number contains the user
        })
    }

    /// Returns the name of the role that uses this stream, or `None` if no role uses it or the driver does not provide
    /// it.
    pub fn user_of(&self, id: StreamId) -> Option<&'static str> {
        let user = self.streams.at_driver(id)?;
        Some(self.roles.get(usize::from(user.0))?.name())
    }

    /// Returns whether the driver provides this stream to a role that itself provides a transport. What the users of
    /// that transport receive is reported by [`Act::Delivered`].
    pub fn relays(&self, id: StreamId) -> bool {
        let user = self.streams.at_driver(id).and_then(|user| self.roles.get(usize::from(user.0)));
        user.is_some_and(|role| !role.serves().is_empty())
    }

    /// Returns the transport with this name that a role of this node provides, or `None` if no role does.
    pub fn transport(&self, name: &str) -> Option<Transport> {
        let served = self.roles.iter().flat_map(|role| role.serves()).copied();
        served.into_iter().find(|by| matches!(by, Transport::Role(served) if *served == name))
    }

    fn provider_of(&self, by: Transport) -> Option<RoleId> {
        let index = self.roles.iter().position(|role| role.serves().contains(&by))?;
        Some(RoleId(index as u8))
    }
}

#[cfg(test)]
#[path = "streams_tests.rs"]
mod tests;
