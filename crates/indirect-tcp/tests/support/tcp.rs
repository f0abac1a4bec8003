//! The TCP state of one half of a connection.

use node::Addr;
use wire::{Seq, TcpState};

/// Returns the state of an established connection with empty buffers.
pub(crate) const fn established(local: Addr, remote: Addr) -> TcpState {
    TcpState {
        local,
        remote,
        send_una: Seq(1000),
        send_next: Seq(1000),
        send_window: 16_384,
        largest_window: 16_384,
        window_seq: Seq(500),
        window_ack: Seq(1000),
        send_scale: 0,
        receive_next: Seq(510),
        receive_window: 16_384,
        receive_scale: 0,
        mss: 1460,
        unacknowledged: Vec::new(),
        unread: Vec::new(),
        finishing: false,
        finished: false,
        timestamp: None,
        sack_permitted: false,
        round_trip: None,
    }
}
