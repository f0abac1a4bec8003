//! Converts a kernel's connection to data and back, by `TCP_REPAIR` (`tcp(7)`). CRIU saves and restores connections in
//! the same way.
//!
//! The kernel prescribes the order of the steps. Where a step looks odd, its comment says what happens without it.

use super::options::{
    RepairOption, RepairWindow, SIOCINQ, SIOCOUTQ, SIOCOUTQNSD, SO_BUF_LOCK, TCP_INFO, TCP_MAXSEG,
    TCP_QUEUE_SEQ, TCP_REPAIR, TCP_REPAIR_OPTIONS, TCP_REPAIR_QUEUE, TCP_REPAIR_WINDOW, TCP_TIMESTAMP,
    TcpInfo, get, queued, set,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, ipproto, recv, send,
    socket_with, sockopt,
};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use wire::{Seq, SocketAddrV4, TcpState};

const TCP: i32 = libc::IPPROTO_TCP;
const NO_QUEUE: i32 = 0;
const RECV_QUEUE: i32 = 1;
const SEND_QUEUE: i32 = 2;
/// Bytes of the largest write: the kernel accepts only a part of a larger one.
const CHUNK: usize = 32 * 1024;
/// Bytes of the longest segment in a queue of the kernel.
const LARGEST_SEGMENT: usize = 64 * 1024;
/// Bytes of the send buffer with which a moved connection starts. In addition to the connection's own bytes, this is
/// what a user may write ahead.
const ROOM: usize = 64 * 1024;

/// The range of `TCP_MAXSEG` (`TCP_MIN_MSS` and `MAX_TCP_WINDOW` in `net/tcp.h`). A connection over the loopback may
/// have a larger segment size, and a value from the network may be anything.
const LEAST_MSS: u32 = 88;
const LARGEST_MSS: u32 = 32_767;

// Kinds of TCP options (RFC 9293, section 3.2; RFC 7323; RFC 2018).
const OPTION_MSS: u32 = 2;
const OPTION_WINDOW_SCALE: u32 = 3;
const OPTION_SACK_PERMITTED: u32 = 4;
const OPTION_TIMESTAMPS: u32 = 8;

/// Returns whether an address is this host's own: a socket without special rights can be bound to it.
pub(crate) fn is_ours(address: SocketAddrV4) -> bool {
    let probe = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    probe.is_ok_and(|probe| bind(&probe, &SocketAddrV4::new(*address.ip(), 0)).is_ok())
}

/// Puts the socket into repair mode: its state can be read, and closing it sends nothing.
pub(super) fn enter(fd: &impl AsFd) -> io::Result<()> {
    set(fd, TCP, TCP_REPAIR, 1)
}

/// Leaves repair mode. The kernel sends a window probe, which restarts the connection.
pub(super) fn leave(fd: &impl AsFd) -> io::Result<()> {
    set(fd, TCP, TCP_REPAIR_QUEUE, NO_QUEUE)?;
    set(fd, TCP, TCP_REPAIR, 0)
}

/// Returns the state of a connection in repair mode; `None` if the connection is not open or has ended. Segments that
/// arrive meanwhile must not reach the kernel, which would still acknowledge them.
pub(super) fn export(
    fd: &impl AsFd,
    local: SocketAddrV4,
    remote: SocketAddrV4,
) -> io::Result<Option<TcpState>> {
    let info: TcpInfo = get(fd, TCP, TCP_INFO)?;
    let Some(fins) = Fins::of(info.state) else { return Ok(None) };
    let window: RepairWindow = get(fd, TCP, TCP_REPAIR_WINDOW)?;
    let (received, receive_next) = queue(fd, RECV_QUEUE, queued(fd, SIOCINQ)?)?;
    let (unsent, out) = (queued(fd, SIOCOUTQNSD)?, queued(fd, SIOCOUTQ)?);
    let out = out.saturating_sub(usize::from(fins.ours == Fin::Out)); // a FIN counts as a byte
    let (sent, written) = queue(fd, SEND_QUEUE, out)?;
    let (send_scale, receive_scale) = info.scales();
    let send_una = written.minus(out as u32 + u32::from(fins.ours != Fin::No));
    let timestamps = info.options & TcpInfo::TIMESTAMPS != 0;
    Ok(Some(TcpState {
        local,
        remote,
        send_una,
        send_next: written.minus(unsent as u32),
        send_window: window.snd_wnd,
        largest_window: window.max_window,
        window_seq: Seq(window.snd_wl1),
        window_ack: send_una, // the kernel does not keep it
        send_scale,
        receive_next,
        // The kernel accepts a whole segment that begins in the window, so the received bytes can go beyond the window.
        receive_window: Seq(window.rcv_wup).plus(window.rcv_wnd).latest(receive_next).since(receive_next),
        receive_scale,
        mss: get(fd, TCP, TCP_MAXSEG)?,
        unacknowledged: sent,
        unread: received,
        finishing: fins.ours != Fin::No,
        finished: fins.theirs,
        timestamp: if timestamps { Some(get(fd, TCP, TCP_TIMESTAMP)?) } else { None },
        sack_permitted: info.options & TcpInfo::SACK != 0,
        round_trip: info.round_trip(),
    }))
}

/// The state of this host's FIN in the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fin {
    No,
    /// The FIN is in the send queue, and is not acknowledged.
    Out,
    Acknowledged,
}

/// Which sides have finished.
struct Fins {
    ours: Fin,
    theirs: bool,
}

impl Fins {
    /// Derives which sides have finished from the state of the kernel's socket (`net/tcp_states.h`). Returns `None` if
    /// the connection is not open or has ended.
    fn of(state: u8) -> Option<Self> {
        let (ours, theirs) = match state {
            TcpInfo::ESTABLISHED => (Fin::No, false),
            TcpInfo::FIN_WAIT1 => (Fin::Out, false),
            TcpInfo::FIN_WAIT2 => (Fin::Acknowledged, false),
            TcpInfo::CLOSE_WAIT => (Fin::No, true),
            TcpInfo::LAST_ACK | TcpInfo::CLOSING => (Fin::Out, true),
            _ => return None,
        };
        Some(Self { ours, theirs })
    }
}

/// Returns the content of a queue, and the sequence number after its last byte. Fails if the queue changed during the
/// read, because the content is then useless. The send queue may begin with acknowledged bytes, which are left out: the
/// kernel keeps a partly acknowledged segment as a whole. Such segments exist after a move, because a move divides the
/// data into other segments.
fn queue(fd: &impl AsFd, which: i32, len: usize) -> io::Result<(Vec<u8>, Seq)> {
    set(fd, TCP, TCP_REPAIR_QUEUE, which)?;
    let end: u32 = get(fd, TCP, TCP_QUEUE_SEQ)?;
    let mut bytes = vec![0; len + LARGEST_SEGMENT];
    let got = match recv(fd, &mut bytes[..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((got, _)) => got,
        Err(rustix::io::Errno::AGAIN) => 0,
        Err(error) => return Err(error.into()),
    };
    let still: u32 = get(fd, TCP, TCP_QUEUE_SEQ)?;
    let whole = got == len || (which == SEND_QUEUE && got > len && got < bytes.len());
    if !whole || still != end {
        return Err(io::Error::other("the socket's queues changed while they were read"));
    }
    bytes.truncate(got);
    Ok((bytes.split_off(got - len), Seq(end)))
}

/// Creates a socket in repair mode with the state of a connection, except for the unacknowledged bytes. After
/// [`leave`], the caller writes the unacknowledged bytes, and then this host's FIN. For the kernel the connection is
/// ESTABLISHED. So the caller must remember whether the peer has finished.
pub(super) fn import(state: &TcpState) -> io::Result<OwnedFd> {
    let fd = prepare(state)?;
    fill_in(&fd, state)?;
    Ok(fd)
}

/// Creates the socket in repair mode, without addresses.
pub(super) fn prepare(state: &TcpState) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = socket_with(AddressFamily::INET, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    // The segment size must be set before the socket is connected. Otherwise segments stay at 536 bytes, whatever is
    // set later.
    set(&fd, TCP, TCP_MAXSEG, state.mss.clamp(LEAST_MSS, LARGEST_MSS))?;
    make_room(&fd, state)?;
    // Allows an address that is not this host's, if the kernel permits it.
    let _ = set(&fd, libc::SOL_IP, libc::IP_TRANSPARENT, 1);
    sockopt::set_socket_reuseaddr(&fd, true)?;
    enter(&fd)?;
    Ok(fd)
}

/// Sets the socket's state and its addresses.
pub(super) fn fill_in(fd: &OwnedFd, state: &TcpState) -> io::Result<()> {
    // The sequence numbers of both queues can be set only before the socket is connected.
    set(fd, TCP, TCP_REPAIR_QUEUE, RECV_QUEUE)?;
    set(fd, TCP, TCP_QUEUE_SEQ, state.receive_next.minus(state.unread.len() as u32).0)?;
    set(fd, TCP, TCP_REPAIR_QUEUE, SEND_QUEUE)?;
    set(fd, TCP, TCP_QUEUE_SEQ, state.send_una.0)?;
    bind(fd, &state.local)?;
    connect(fd, &state.remote)?; // no packet leaves
    set_options(fd, state)?;
    set(fd, TCP, TCP_REPAIR_QUEUE, RECV_QUEUE)?;
    fill(fd, &state.unread)?;
    settle_room(fd)?;
    // Without a window the socket cannot send. The values must be within what the kernel considers possible.
    let window = RepairWindow {
        snd_wl1: state.window_seq.0,
        snd_wnd: state.send_window,
        max_window: state.largest_window.max(state.send_window),
        rcv_wnd: state.receive_window,
        rcv_wup: state.receive_next.0,
    };
    set(fd, TCP, TCP_REPAIR_WINDOW, window)?;
    set(fd, TCP, TCP_REPAIR_QUEUE, NO_QUEUE)
}

/// Enlarges the receive buffer of a new socket if it has too little room. It must have room for the unread bytes, which
/// are filled in at once, and for the window that was promised to the peer. Otherwise the kernel would drop some of the
/// bytes. The kernel doubles the value, and announces half of the result as window.
fn make_room(fd: &OwnedFd, state: &TcpState) -> io::Result<()> {
    let promised = state.unread.len() + state.receive_window as usize;
    if 2 * promised > sockopt::socket_recv_buffer_size(fd)? {
        sockopt::set_socket_recv_buffer_size(fd, promised)?;
    }
    Ok(())
}

/// Reduces the send buffer to [`ROOM`], and lets the kernel resize both buffers. Otherwise each move would begin with
/// the buffer size that the full queues of the former host needed, and buffers would grow at each move.
fn settle_room(fd: &OwnedFd) -> io::Result<()> {
    sockopt::set_socket_send_buffer_size(fd, ROOM)?;
    let _ = set(fd, libc::SOL_SOCKET, SO_BUF_LOCK, 0); // since Linux 5.15
    Ok(())
}

/// Sets the TCP options that both sides agreed on in the handshake, which this kernel has not seen.
fn set_options(fd: &OwnedFd, state: &TcpState) -> io::Result<()> {
    let option = |code, value| set(fd, TCP, TCP_REPAIR_OPTIONS, [RepairOption { code, value }]);
    option(OPTION_MSS, state.mss)?;
    // A scale of zero must be set too. Otherwise this kernel would use its default scale, and announce 1/128 of its
    // window to a peer without scaling.
    let shifts = u32::from(state.send_scale.min(14)) | u32::from(state.receive_scale.min(14)) << 16;
    option(OPTION_WINDOW_SCALE, shifts)?;
    if state.sack_permitted {
        option(OPTION_SACK_PERMITTED, 0)?;
    }
    if let Some(timestamp) = state.timestamp {
        option(OPTION_TIMESTAMPS, 0)?;
        // The new host continues the former host's timestamps. The timestamps of its own clock could be older than the
        // last one that the peer remembers. The peer would then drop all segments (RFC 7323, section 5).
        set(fd, TCP, TCP_TIMESTAMP, timestamp)?;
    }
    Ok(())
}

fn fill(fd: &OwnedFd, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let head = rest.get(..CHUNK).unwrap_or(rest);
        let taken = send(fd, head, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
        rest = rest.get(taken..).unwrap_or_default();
    }
    Ok(())
}
