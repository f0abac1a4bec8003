//! The move of a connection to another host, in a form that every stack can produce and continue.

use crate::options;
use crate::receive::Receiver;
use crate::send::Fin;
use crate::timestamps::Clocks;
use crate::{Connection, Profile, State, TcpState};
use wire::Instant;

impl Connection {
    /// Returns the state that another host needs to continue the connection, in a form that every stack can produce.
    /// Returns `None` before the connection is established, in TIME-WAIT, and in CLOSED. If another host continues the
    /// connection, the caller must not poll `self` afterwards: two hosts would send for one connection.
    /// [`Self::record`] returns the whole connection, in any state.
    pub fn export(&self, now: Instant) -> Option<TcpState> {
        // An acknowledged FIN is exported as an unacknowledged one. The other host sends the FIN again, and so gets an
        // acknowledgment.
        let fin = u32::from(self.send.fin == Fin::Acknowledged);
        let is_movable = self.state.synchronized() && self.state != State::TimeWait;
        is_movable.then(|| TcpState {
            local: self.local,
            remote: self.remote,
            send_una: self.send.una.minus(fin),
            send_next: self.send.max,
            send_window: self.send.window,
            largest_window: self.send.largest_window,
            window_seq: self.send.wl1,
            window_ack: self.send.wl2,
            send_scale: self.send.scale,
            receive_next: self.receive.next,
            receive_window: self.receive.window(),
            receive_scale: self.receive.scale,
            mss: self.send.agreed_mss,
            unacknowledged: self.send.buffer.iter().copied().collect(),
            unread: self.receive.unread.iter().copied().collect(),
            finishing: self.send.fin != Fin::No,
            finished: self.receive.finished,
            timestamp: self.clocks.map(|clocks| clocks.value(now)),
            sack_permitted: self.sack,
            round_trip: self.send.rto.measured(),
        })
    }

    /// Continues a connection of another host. Data that was sent and not acknowledged is sent again, in slow start. If
    /// the former host measured a round trip, the time-out starts from it (RFC 9040, section 6). An acknowledgment is
    /// sent to the peer at once, so that the peer need not wait for a time-out.
    pub fn import(state: TcpState, now: Instant, profile: &Profile) -> Self {
        let mut connection = Self::new(state.local, state.remote, state.send_una.minus(1), profile);
        let send = &mut connection.send;
        // The options that the former host agreed on stay in force, whatever this host would have offered.
        let overhead = if state.timestamp.is_some() { options::TIMESTAMPS } else { 0 };
        send.agree(state.mss.clamp(1, u32::from(profile.mss).max(1)), overhead);
        send.opened(now, profile, state.sack_permitted, None);
        let fin_sent = state.fin_sent();
        send.max = send.una.plus(state.under_way());
        send.window = state.send_window;
        send.largest_window = state.largest_window.max(state.send_window);
        (send.wl1, send.wl2) = (state.window_seq, state.window_ack);
        send.scale = state.send_scale.min(14);
        send.buffer = state.unacknowledged.into();
        send.fin = if state.finishing { Fin::Queued } else { Fin::No };
        if let Some(round_trip) = state.round_trip {
            send.rto.resume(profile, round_trip, send.max);
        }
        send.last_sent = now;
        send.lose_longer(0);
        send.forget_when_sent();
        let scale = state.receive_scale.min(14);
        connection.receive = Receiver::new(profile, state.receive_next, scale);
        connection.receive.edge = state.receive_next.plus(state.receive_window.min(1 << 30));
        connection.receive.hold(state.unread, state.finished);
        connection.receive.due = true;
        let clocks = |value| Clocks::moved(now, profile, value, state.receive_next);
        connection.clocks = state.timestamp.map(clocks);
        connection.sack = state.sack_permitted;
        connection.state = match (fin_sent, state.finished) {
            (false, false) => State::Established,
            (true, false) => State::FinWait1,
            (false, true) => State::CloseWait,
            (true, true) => State::LastAck,
        };
        connection
    }
}
