//! The options that a user may set on a socket, converted to the kernel's.

use node::SocketOption;
use rustix::net::sockopt;
use std::os::fd::AsFd;

/// The size that is set for a buffer of a relayed connection, in bytes, if the user has set none.
const RELAYED: usize = 64 * 1024;

/// The options that a user has set on its socket; the others keep the kernel's defaults.
#[derive(Clone, Copy, Default)]
pub(super) struct RequestedOptions {
    /// Largest number of bytes that may wait to be sent.
    pub(super) send_buffer: Option<u32>,
    /// Largest number of bytes that may wait to be read.
    receive_buffer: Option<u32>,
    nagle: Option<bool>,
}

impl RequestedOptions {
    pub(super) const fn note(&mut self, knob: SocketOption) {
        match knob {
            SocketOption::SendBuffer(bytes) => self.send_buffer = Some(bytes),
            SocketOption::ReceiveBuffer(bytes) => self.receive_buffer = Some(bytes),
            SocketOption::Nagle(on) => self.nagle = Some(on),
            SocketOption::DontFragment(_) => {} // an option of UDP
        }
    }

    /// Sets the options on a socket. An option that the kernel refuses keeps its value; this loses no data.
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

    /// Limits the buffers of a relayed connection for which the user has set no size, to [`RELAYED`] bytes; the kernel
    /// doubles this value. Without a limit, the kernel would keep megabytes in a relay between a fast network and a
    /// slow one. All these bytes would have to move with the connection.
    pub(super) fn cap(&self, fd: &impl AsFd) {
        if self.receive_buffer.is_none() {
            let _ = sockopt::set_socket_recv_buffer_size(fd, RELAYED);
        }
        if self.send_buffer.is_none() {
            let _ = sockopt::set_socket_send_buffer_size(fd, RELAYED);
        }
    }
}

/// Returns the value to set so that a buffer has room for `bytes` bytes of payload, or offers a window of `bytes`
/// bytes. The kernel doubles the value, and also counts the overhead of packets. If all segments are full, about five
/// eighths of the buffer are payload. The kernel does not enlarge a buffer whose size was set.
pub(super) const fn for_bytes(bytes: u32) -> usize {
    bytes as usize / 5 * 4
}
