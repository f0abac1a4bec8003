//! How a program outside the daemon requests a connection through a role of its host, for example by Indirect TCP to
//! 10.1.0.1:80.
//!
//! ```text
//!   program                        daemon of this host
//!   socket()                           |
//!   ── request, and the socket ──────> |   checks the socket, requests a stream from the role
//!   <────────── answer: continue ───── |
//!   connect() ── SYN ────────────────> |   holds it until the role has answered, then passes
//!   <─────────── SYN-ACK, RST, ICMP ── |   the result to the TCP of the program
//! ```
//!
//! So the program keeps its own socket, connected like any other: `connect` blocks or returns `EINPROGRESS`, and
//! `poll`, `getpeername`, `getsockname`, socket options, `fork` and `exec` work. One end of a socket pair would have no
//! address and no option of TCP. A TCP connection to the daemon would have the wrong peer. Errors are the kernel's own
//! response to a reset or an ICMP error.
//!
//! A request is one message on a `SOCK_SEQPACKET` socket, with the program's socket attached (`SCM_RIGHTS`). The
//! answer is one error number, or zero. The crate does not allocate, because a program may call it at any point.

mod policy;
mod wire_format;

pub use policy::{Policy, PolicyError, Rule};
pub use wire_format::{Answer, NAME, Name, Request};

use std::ffi::CStr;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::{SocketAddrV4, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

/// The name of the environment variable with the path of the daemon's socket for programs (`daemon.clients`).
pub const SOCKET: &CStr = c"WAYFARE_CLIENTS";
/// The name of the environment variable with the transport by which connections are made, for example `indirect`. The
/// text must be a valid [`Name`].
pub const TRANSPORT: &CStr = c"WAYFARE_TRANSPORT";
/// The name of the environment variable with the text of the [`Policy`]. If it is not set, the policy has no rules.
pub const POLICY: &CStr = c"WAYFARE_POLICY";

/// The size of the path of a UNIX socket in bytes, with the terminating zero.
pub const PATH: usize = 108;
/// The largest time in seconds that the daemon may take to answer.
const PATIENCE: i64 = 5;

/// Connects to `peer` by a transport that a role of this host's node serves, for example `indirect`. `daemon` is the
/// path of the daemon's socket. Errors are those of [`announce`], of `socket(2)` and of `connect(2)`, and
/// `ENAMETOOLONG` if the path has [`PATH`] bytes or more.
pub fn connect(daemon: &Path, transport: Name, peer: SocketAddrV4) -> io::Result<TcpStream> {
    let mut path = [0; PATH];
    let bytes = daemon.as_os_str().as_encoded_bytes();
    let room = path.get_mut(..bytes.len()).filter(|_| bytes.len() < PATH);
    room.ok_or_else(|| io::Error::from_raw_os_error(libc::ENAMETOOLONG))?.copy_from_slice(bytes);
    // SAFETY: no pointers are passed; the descriptor is new, and not used elsewhere.
    let socket = unsafe {
        let fd = check(libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0))?;
        OwnedFd::from_raw_fd(fd)
    };
    announce(&path, transport, socket.as_fd(), peer)?;
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: peer.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*peer.ip()).to_be() },
        sin_zero: [0; 8],
    };
    let len = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: the address outlives the call, and its length is given.
    check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), len) })?;
    Ok(TcpStream::from(socket))
}

/// Notifies the daemon that a TCP socket is about to be connected to `peer`, and by which transport. After `Ok`,
/// `connect` on the socket to `peer` uses that transport. `daemon` is the path of the daemon's socket with a
/// terminating zero. The error is that of the daemon's answer or of `socket(2)`, or `ENETDOWN` if the daemon cannot be
/// reached or gives no valid answer in time.
pub fn announce(
    daemon: &[u8; PATH],
    transport: Name,
    socket: BorrowedFd<'_>,
    peer: SocketAddrV4,
) -> io::Result<()> {
    let conversation = dial(daemon)?;
    let request = Request { transport, peer }.emit();
    send(&conversation, &request, socket)?;
    let mut answer = [0; Answer::LEN];
    let got = loop {
        // SAFETY: the buffer is local, and its length is given.
        let got =
            unsafe { libc::recv(conversation.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) };
        match usize::try_from(got) {
            Ok(got) => break got,
            Err(_) if interrupted() => {}
            // The daemon gave no answer in time, or has ended.
            Err(_) => return Err(io::Error::from_raw_os_error(libc::ENETDOWN)),
        }
    };
    match answer.get(..got).and_then(Answer::parse) {
        Some(Answer(0)) => Ok(()),
        Some(Answer(error)) => Err(io::Error::from_raw_os_error(error)),
        None => Err(io::Error::from_raw_os_error(libc::ENETDOWN)),
    }
}

fn dial(daemon: &[u8; PATH]) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers are passed; the descriptor is new, and not used elsewhere.
    let socket = unsafe { OwnedFd::from_raw_fd(check(libc::socket(libc::AF_UNIX, kind, 0))?) };
    let patience = libc::timeval { tv_sec: PATIENCE, tv_usec: 0 };
    let mut address =
        libc::sockaddr_un { sun_family: libc::AF_UNIX as libc::sa_family_t, sun_path: [0; PATH] };
    for (to, from) in address.sun_path.iter_mut().zip(daemon) {
        *to = from.cast_signed() as libc::c_char;
    }
    for option in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
        let (value, len) = ((&raw const patience).cast(), size_of::<libc::timeval>() as libc::socklen_t);
        // SAFETY: the value outlives the call, and its length is given.
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, value, len) };
    }
    let len = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    loop {
        // SAFETY: the address outlives the call, and its length is given.
        match check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), len) }) {
            Ok(_) => return Ok(socket),
            Err(_) if interrupted() => {}
            // If the daemon cannot be reached, the program gets the error for a network that is down. It must not look
            // like a peer that refuses.
            Err(_) => return Err(io::Error::from_raw_os_error(libc::ENETDOWN)),
        }
    }
}

/// A buffer for one descriptor, aligned for `cmsghdr`.
#[repr(align(8))]
struct Ancillary([u8; 64]);

fn send(to: &OwnedFd, bytes: &[u8], attached: BorrowedFd<'_>) -> io::Result<()> {
    let mut control = Ancillary([0; 64]);
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let size = size_of::<libc::c_int>() as u32;
    // SAFETY: a zeroed message is empty and valid; its parts are set below, and outlive the call. The control buffer
    // has room for one header and one descriptor, and is aligned for it.
    let sent = unsafe {
        let mut message: libc::msghdr = MaybeUninit::zeroed().assume_init();
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size) as _;
        libc::CMSG_DATA(header).cast::<libc::c_int>().write_unaligned(attached.as_raw_fd());
        loop {
            let sent = libc::sendmsg(to.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL);
            if sent >= 0 || !interrupted() {
                break sent;
            }
        }
    };
    if sent < 0 { Err(io::Error::from_raw_os_error(libc::ENETDOWN)) } else { Ok(()) }
}

fn interrupted() -> bool {
    io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
}

fn check(returned: libc::c_int) -> io::Result<libc::c_int> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}
