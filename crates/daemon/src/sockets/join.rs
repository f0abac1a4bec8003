//! Joins two connections by a relay, and separates them again.

use super::error_text::error_text;
use super::relay::{Pumped, Relay};
use super::socket::{Ended, Socket};
use super::tcp::Tcp;
use node::StreamId;
use node::stream::{OwnedMigrateEvent, OwnedStreamEvent, refusal};
use rustix::io::Errno;

impl Tcp {
    /// Joins the connections `id` and `other` by a relay. `staged` has the bytes that the relay sends first: those to
    /// `other`, then those to `id`.
    pub(super) fn join(
        &mut self,
        id: StreamId,
        other: StreamId,
        staged: [Vec<u8>; 2],
        told: &mut Vec<OwnedStreamEvent>,
    ) {
        let is_free = |id| {
            let socket: Option<&Socket> = self.sockets.get(id);
            socket.is_some_and(|socket| !socket.connecting && !socket.broken && socket.joined.is_none())
        };
        if id == other || ![id, other].iter().all(is_free) {
            return told.push(OwnedStreamEvent::refused(id, refusal::NOT_JOINABLE));
        }
        let mut relay = match Relay::new([id, other], staged) {
            Ok(relay) => relay,
            Err(error) => {
                return told
                    .push(OwnedStreamEvent::Migrate(id, OwnedMigrateEvent::Refused(error_text(error))));
            }
        };
        for end in relay.ends {
            self.wakes.touch(end);
            if let Some(socket) = self.sockets.get_mut(&end) {
                (socket.joined, socket.wanted, socket.credit) = (Some(id), 0, 0);
                socket.knobs.cap(&socket.fd);
                if socket.knobs.send_buffer.is_some() {
                    relay.keep_little(end);
                }
            }
        }
        self.relays.insert(id, relay);
        self.pump(id, told);
    }

    /// Ends the relay of the connection `id`. The event `Parted` has the bytes that were under way in the relay.
    pub(super) fn part(&mut self, id: StreamId, told: &mut Vec<OwnedStreamEvent>) {
        let Some(relay) = self.unjoin(id) else {
            return told.push(OwnedStreamEvent::refused(id, refusal::NOT_JOINED));
        };
        let ends = [id, relay.other(id)];
        match relay.part(id).and_then(|bytes| self.with_left_behind(ends, bytes)) {
            Ok(bytes) => told.push(OwnedStreamEvent::Migrate(id, OwnedMigrateEvent::Parted(bytes))),
            Err(error) => {
                // Bytes are lost, so both connections are reset. After a clean end, a peer would regard the bytes that
                // it has received as the whole stream.
                told.push(OwnedStreamEvent::Migrate(id, OwnedMigrateEvent::Refused(error_text(error))));
                for end in ends {
                    if let Some(socket) = self.sockets.get_mut(&end) {
                        socket.broken = true;
                    }
                }
            }
        }
        for end in ends {
            self.wakes.touch(end);
            let Some(socket) = self.sockets.get_mut(&end) else { continue };
            let ended = socket.serve(end, told);
            self.conclude(end, ended, told);
        }
    }

    /// `bytes` were under way in the relay of the connections `ends`: from the first connection, and from the second.
    /// For each connection that has ended, appends the bytes that it received and that were not read yet.
    fn with_left_behind(&mut self, ends: [StreamId; 2], bytes: [Vec<u8>; 2]) -> Result<[Vec<u8>; 2], Errno> {
        let mut all = bytes;
        for (end, bytes) in ends.iter().zip(&mut all) {
            if let Some(socket) = self.sockets.get_mut(end) {
                bytes.extend(socket.leave_behind()?);
            }
        }
        Ok(all)
    }

    /// Moves the bytes that a relay can move now. Ends the relay when both directions have ended, or when one of its
    /// connections has failed.
    pub(super) fn pump(&mut self, relay: StreamId, told: &mut Vec<OwnedStreamEvent>) {
        let Some(moving) = self.relays.get_mut(&relay) else { return };
        let ends = moving.ends;
        let pumped = moving.pump(&mut self.sockets);
        self.wakes.load(relay, !moving.is_empty());
        for end in ends {
            self.wakes.touch(end);
        }
        match pumped {
            Pumped::Open => {}
            Pumped::Over => {
                self.unjoin(relay);
                for end in ends {
                    let Some(socket) = self.sockets.get_mut(&end) else { continue };
                    socket.lingers = true;
                    let ended = socket.serve(end, told);
                    self.conclude(end, ended, told);
                }
            }
            Pumped::Broken(end, error) => {
                self.break_off(end, told);
                self.conclude(end, Some(Some(error_text(error))), told);
            }
        }
    }

    /// Handles the loss of the connection `id`. If it is an end of a relay, the other end is reset, so that its peer
    /// does not regard the received bytes as the whole stream. Exception: if the relay held no bytes and the connection
    /// `id` was closed silently (in repair mode), the other end becomes an ordinary connection again.
    pub(super) fn break_off(&mut self, id: StreamId, told: &mut Vec<OwnedStreamEvent>) {
        let is_silent = self.sockets.get(&id).is_some_and(|socket| socket.repaired);
        let Some(relay) = self.unjoin(id) else { return };
        let other = relay.other(id);
        let Some(socket) = self.sockets.get_mut(&other) else { return };
        if is_silent && relay.is_empty() {
            return;
        }
        socket.broken = true;
        let ended: Ended = socket.serve(other, told);
        self.conclude(other, ended, told);
    }

    fn unjoin(&mut self, id: StreamId) -> Option<Relay> {
        let joined = self.sockets.get(&id)?.joined?;
        let relay = self.relays.remove(&joined)?;
        self.wakes.load(joined, false);
        for end in relay.ends {
            self.wakes.touch(end);
            if let Some(socket) = self.sockets.get_mut(&end) {
                socket.joined = None;
            }
        }
        Some(relay)
    }
}
