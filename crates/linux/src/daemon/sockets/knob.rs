//! What may be set of one socket, in the kernel's terms.

use node::Knob;
use rustix::net::sockopt;
use std::os::fd::AsFd;

/// What a buffer of a relayed connection takes, where nobody has said what it may.
const RELAYED: usize = 64 * 1024;

/// What a user has set of its socket; the rest is the kernel's choice.
#[derive(Clone, Copy, Default)]
pub(super) struct Knobs {
    /// Bytes that may wait to be sent.
    pub(super) send_buffer: Option<u32>,
    /// Bytes that may wait to be read.
    receive_buffer: Option<u32>,
    nagle: Option<bool>,
}

impl Knobs {
    pub(super) const fn note(&mut self, knob: Knob) {
        match knob {
            Knob::SendBuffer(bytes) => self.send_buffer = Some(bytes),
            Knob::ReceiveBuffer(bytes) => self.receive_buffer = Some(bytes),
            Knob::Nagle(on) => self.nagle = Some(on),
        }
    }

    /// Tells the kernel. What it refuses stays as it was: no byte is lost by that.
    pub(super) fn apply(&self, fd: &impl AsFd) {
        if let Some(on) = self.nagle {
            let _ = sockopt::set_tcp_nodelay(fd, !on);
        }
        if let Some(bytes) = self.send_buffer {
            let _ = sockopt::set_socket_send_buffer_size(fd, for_bytes(bytes));
        }
        if let Some(bytes) = self.receive_buffer {
            let _ = sockopt::set_socket_recv_buffer_size(fd, for_bytes(bytes));
        }
    }

    /// From now on the kernel keeps no more than this of either direction. Left to itself it would keep megabytes of a
    /// relay between a fast network and a slow one, and all of it would have to move with the connection. It doubles what
    /// it is told.
    pub(super) fn cap(&self, fd: &impl AsFd) {
        if self.receive_buffer.is_none() {
            let _ = sockopt::set_socket_recv_buffer_size(fd, RELAYED);
        }
        if self.send_buffer.is_none() {
            let _ = sockopt::set_socket_send_buffer_size(fd, RELAYED);
        }
    }
}

/// What to tell the kernel so that a buffer takes so many bytes, or offers such a window. It doubles that, and counts what
/// packets have beside their bytes: of full segments about five eighths are bytes. A buffer of a given size does not grow.
pub(super) const fn for_bytes(bytes: u32) -> usize {
    bytes as usize / 5 * 4
}
