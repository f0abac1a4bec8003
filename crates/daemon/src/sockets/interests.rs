//! Decides which TCP sockets the daemon visits, and what each of them waits for. No frame makes the daemon visit all
//! sockets, so the cost of a frame does not depend on their number. All listeners are updated only when the limit of
//! sockets is reached, or is no longer reached.

use super::tcp::Tcp;
use node::{StreamId, Tuple};
use os::epoll::Events;
use rustix::io::Errno;
use std::collections::BTreeSet;

impl Tcp {
    /// Notes that a segment passes to the socket with this tuple. If the socket is an end of a relay that holds bytes,
    /// the socket may have room for them now.
    pub(super) fn stir(&mut self, tuple: &Tuple) {
        let socket = self.by_tuple.get(tuple).and_then(|id| self.sockets.get(id));
        let relay = socket.and_then(|socket| socket.joined);
        self.wakes.stirred.extend(relay.filter(|relay| self.wakes.loaded.contains(relay)));
    }

    /// Returns the sockets in `ready`, and those with an event that the kernel does not report, in the order of their
    /// streams.
    pub(super) fn with_news(&self, ready: &[StreamId]) -> BTreeSet<StreamId> {
        let has_news =
            |id: &&StreamId| self.sockets.get(id).is_some_and(|socket| !socket.rests() && socket.has_news());
        let changed = self.wakes.touched.iter().filter(has_news);
        self.wakes.news.iter().chain(changed).chain(ready).copied().collect()
    }

    /// Notifies the kernel what the changed sockets wait for from now on.
    pub(super) fn update_interests(&mut self) -> Result<(), Errno> {
        self.wakes.touched.extend(self.callers.take_changed());
        let has_room = self.has_room();
        if std::mem::replace(&mut self.wakes.has_room, has_room) != has_room {
            self.wakes.touched.extend(self.listeners.keys());
        }
        while let Some(id) = self.wakes.touched.pop_first() {
            let accepts = self.may_accept(id);
            if let Some(listener) = self.listeners.get_mut(&id) {
                listener.fd.want(if accepts { Events::IN } else { Events::empty() })?;
            }
            self.update_interest(id)?;
        }
        Ok(())
    }

    fn update_interest(&mut self, id: StreamId) -> Result<(), Errno> {
        self.wakes.news.remove(&id);
        let Some(socket) = self.sockets.get_mut(&id) else { return Ok(()) };
        if socket.rests() {
            return socket.fd.want(Events::empty());
        }
        if socket.has_news() {
            self.wakes.news.insert(id);
        }
        let relay = socket.joined.and_then(|relay| self.relays.get(&relay));
        let mut events = socket.waits_for() | relay.map_or(Events::empty(), |relay| relay.waits_for(id));
        if events.is_empty() && socket.lingers {
            // After this host's FIN, the socket always counts as writable. So the kernel is requested to report only
            // changes of the socket's state (edge-triggered).
            events = Events::OUT | Events::ET;
        }
        socket.fd.want(events)
    }
}
