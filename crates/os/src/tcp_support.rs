//! Checks of what the kernel's TCP supports for this user, in the calling thread's network namespace.

use crate::error::{Attempt, Result};
use crate::packet::set_option;
use std::os::fd::OwnedFd;

fn tcp_socket() -> Result<OwnedFd> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .attempt("open", "a TCP socket")
}

/// Puts a socket into repair mode (`TCP_REPAIR`) and closes it. Fails without `CAP_NET_ADMIN`, and on kernels without
/// this mode.
pub fn tcp_repair() -> Result<()> {
    let socket = tcp_socket()?;
    set_option(&socket, libc::IPPROTO_TCP, libc::TCP_REPAIR, 1).attempt("set TCP_REPAIR on", "a socket")
}

/// Selects the congestion control `name` for a socket, and closes the socket. Returns a text that names the kernel's
/// default congestion control. Fails if the kernel does not have `name`, or does not permit it to this user.
pub fn congestion(name: &str) -> Result<String> {
    let socket = tcp_socket()?;
    rustix::net::sockopt::set_tcp_congestion(&socket, name).attempt("select the congestion control", name)?;
    let default = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap_or_default();
    Ok(format!("can be selected; the kernel's default is {}", default.trim()))
}
