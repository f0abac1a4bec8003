//! Moving a connection to another host: all that the peer could notice, and nothing else.

use crate::receive::Receiver;
use crate::send::Fin;
use crate::{Connection, Profile, Seq, State};
use wire::{Instant, SocketAddrV4};

/// A connection in ESTABLISHED, as plain data. What is not in it begins anew at the other host: round-trip times, the
/// congestion window, and data that came beyond a gap, which the peer sends again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TcpState {
    /// Our end.
    pub local: SocketAddrV4,
    /// The peer's.
    pub remote: SocketAddrV4,
    /// The oldest number that the peer has not acknowledged; `unacknowledged` begins with it.
    pub send_una: Seq,
    /// The end of what was sent (Linux: the sequence of `TCP_SEND_QUEUE`).
    pub send_next: Seq,
    /// The peer's window, in bytes.
    pub send_window: u32,
    /// The largest that it ever was.
    pub largest_window: u32,
    /// The sequence number of the segment that announced it (`snd_wl1`).
    pub window_seq: Seq,
    /// Its acknowledgment number (`snd_wl2`).
    pub window_ack: Seq,
    /// The shift of the peer's windows.
    pub send_scale: u8,
    /// The next number expected from the peer.
    pub receive_next: Seq,
    /// The window that the peer was told of and has not used, in bytes.
    pub receive_window: u32,
    /// The shift of our windows. Both are zero where scaling was not agreed.
    pub receive_scale: u8,
    /// Largest payload to the peer, in bytes.
    pub mss: u32,
    /// Bytes that were written, from `send_una` on: sent first, then those that were not.
    pub unacknowledged: Vec<u8>,
    /// Bytes that were acknowledged and not read.
    pub unread: Vec<u8>,
    /// The user finished, but the FIN was not sent.
    pub finishing: bool,
}

impl Connection {
    /// The state of a connection in ESTABLISHED; `None` in any other. This one must not be polled afterwards, or two
    /// hosts would speak for one.
    pub fn export(&self) -> Option<TcpState> {
        (self.state == State::Established).then(|| TcpState {
            local: self.local,
            remote: self.remote,
            send_una: self.send.una,
            send_next: self.send.max,
            send_window: self.send.window,
            largest_window: self.send.largest_window,
            window_seq: self.send.wl1,
            window_ack: self.send.wl2,
            send_scale: self.send.scale,
            receive_next: self.receive.next,
            receive_window: self.receive.window(),
            receive_scale: self.receive.scale,
            mss: self.send.mss,
            unacknowledged: self.send.buffer.iter().copied().collect(),
            unread: self.receive.unread.iter().copied().collect(),
            finishing: self.send.fin == Fin::Queued,
        })
    }

    /// Goes on with a connection. What was not acknowledged is sent again, in slow start; the peer is told at once where
    /// we stand, so that it need not wait for its timer.
    pub fn import(state: TcpState, now: Instant, profile: &Profile) -> Self {
        let mut connection = Self::new(state.local, state.remote, state.send_una.minus(1), profile);
        let send = &mut connection.send;
        send.mss = state.mss.clamp(1, u32::from(profile.mss).max(1));
        send.opened(now, profile);
        // No more was sent than there is; what came over a network may claim it.
        let sent = state.send_next.since(state.send_una).min(state.unacknowledged.len() as u32);
        send.max = send.una.plus(sent);
        send.window = state.send_window;
        send.largest_window = state.largest_window.max(state.send_window);
        (send.wl1, send.wl2) = (state.window_seq, state.window_ack);
        send.scale = state.send_scale.min(14);
        send.buffer = state.unacknowledged.into();
        send.fin = if state.finishing { Fin::Queued } else { Fin::No };
        let scale = state.receive_scale.min(14);
        connection.receive = Receiver::new(profile, state.receive_next, scale);
        connection.receive.edge = state.receive_next.plus(state.receive_window.min(1 << 30));
        connection.receive.unread = state.unread.into();
        connection.receive.due = true;
        connection.state = State::Established;
        connection
    }
}
