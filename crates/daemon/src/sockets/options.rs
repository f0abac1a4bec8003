//! Socket options of Linux's TCP that no library offers yet.

use os::check;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd};
use wire::{Duration, RoundTripTime};

// Numbers of options and requests, from `linux/tcp.h`, `linux/sockios.h` and `asm-generic/socket.h`.
pub(crate) const TCP_MAXSEG: i32 = 2;
pub(crate) const TCP_INFO: i32 = 11;
pub(crate) const TCP_REPAIR: i32 = 19;
pub(crate) const TCP_REPAIR_QUEUE: i32 = 20;
pub(crate) const TCP_QUEUE_SEQ: i32 = 21;
pub(crate) const TCP_REPAIR_OPTIONS: i32 = 22;
pub(crate) const TCP_TIMESTAMP: i32 = 24;
pub(crate) const TCP_REPAIR_WINDOW: i32 = 29;
pub(crate) const SO_MEMINFO: i32 = 55;
pub(crate) const SO_BUF_LOCK: i32 = 72;
pub(crate) const SIOCINQ: libc::Ioctl = libc::FIONREAD;
pub(crate) const SIOCOUTQ: libc::Ioctl = libc::TIOCOUTQ;
pub(crate) const SIOCOUTQNSD: libc::Ioctl = 0x894B;

/// The type of a socket option's value.
///
/// # Safety
///
/// Every bit pattern must be a valid value. There must be no padding, because the kernel reads and writes the bytes
/// directly.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: an integer has no padding, and every bit pattern is valid.
unsafe impl Plain for i32 {}
// SAFETY: an integer has no padding, and every bit pattern is valid.
unsafe impl Plain for u32 {}
// SAFETY: an integer has no padding, and every bit pattern is valid.
unsafe impl Plain for u64 {}
// SAFETY: `u32` fields in `repr(C)` have no padding, and every bit pattern is valid.
unsafe impl Plain for MemoryInfo {}
// SAFETY: eight `u8` fields and then `u32` fields in `repr(C)` have no padding, and every bit pattern is valid.
unsafe impl Plain for TcpInfo {}
// SAFETY: five `u32` fields in `repr(C)` have no padding, and every bit pattern is valid.
unsafe impl Plain for RepairWindow {}
// SAFETY: each element has two `u32` fields in `repr(C)`, so there is no padding, and every bit pattern is valid.
unsafe impl<const N: usize> Plain for [RepairOption; N] {}

/// The value of `SO_MEMINFO`, since Linux 4.12 (`linux/sock_diag.h`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct MemoryInfo {
    sizes: [u32; 8],
    /// Number of packets that the kernel dropped because the receive buffer was full. It wraps.
    pub(crate) drops: u32,
}

/// The first fields of `struct tcp_info`, which `TCP_INFO` reads.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct TcpInfo {
    pub(crate) state: u8,
    ca_state: u8,
    retransmits: u8,
    probes: u8,
    backoff: u8,
    pub(crate) options: u8,
    /// The window scale of the peer and of this host, in four bits each. On a little-endian machine, the peer's is in
    /// the lower bits.
    scales: u8,
    flags: u8,
    pub(crate) rto: u32,
    ato: u32,
    pub(crate) snd_mss: u32,
    rcv_mss: u32,
    counts: [u32; 5],
    times: [u32; 4],
    pub(crate) pmtu: u32,
    rcv_ssthresh: u32,
    pub(crate) rtt: u32,
    rttvar: u32,
    pub(crate) snd_ssthresh: u32,
    pub(crate) snd_cwnd: u32,
    advmss: u32,
    reordering: u32,
    rcv_rtt: u32,
    rcv_space: u32,
    pub(crate) total_retrans: u32,
    /// This field and the fields after it are zero if the kernel does not have them: `bytes_acked` exists since Linux
    /// 4.1, `segs_in` since 4.2. A 64-bit value is kept as two `u32`, in the order of the machine's memory.
    pacing: [u32; 4],
    bytes_acked: [u32; 2],
    bytes_received: [u32; 2],
    segs_out: u32,
    segs_in: u32,
}

impl TcpInfo {
    /// `TCP_ESTABLISHED`, and the states of connections that finish (`net/tcp_states.h`).
    pub(crate) const ESTABLISHED: u8 = 1;
    pub(crate) const FIN_WAIT1: u8 = 4;
    pub(crate) const FIN_WAIT2: u8 = 5;
    /// `TCP_CLOSE`: neither connected nor connecting.
    pub(crate) const CLOSE: u8 = 7;
    pub(crate) const CLOSE_WAIT: u8 = 8;
    pub(crate) const LAST_ACK: u8 = 9;
    pub(crate) const CLOSING: u8 = 11;
    /// The bit of `options` that is set if timestamps were agreed.
    pub(crate) const TIMESTAMPS: u8 = 1;
    /// The bit of `options` that is set if selective acknowledgments were agreed.
    pub(crate) const SACK: u8 = 2;
    /// The bit of `options` that is set if window scaling was agreed.
    pub(crate) const WINDOW_SCALE: u8 = 4;

    /// Returns the round-trip time, if it was measured. The kernel has no option to set it.
    pub(crate) fn round_trip(&self) -> Option<RoundTripTime> {
        let [smoothed, variation] =
            [self.rtt, self.rttvar].map(|micros| Duration::from_micros(micros.into()));
        (self.rtt > 0).then(|| RoundTripTime::new(smoothed, variation))
    }

    /// Returns the lower 32 bits of the number of bytes that the peer has acknowledged since this socket was set up.
    pub(crate) const fn bytes_acked(&self) -> u32 {
        low(self.bytes_acked)
    }

    /// Returns the lower 32 bits of the number of bytes that were received in order since this socket was set up.
    pub(crate) const fn bytes_received(&self) -> u32 {
        low(self.bytes_received)
    }

    /// Returns the number of segments that were received since this socket was set up.
    pub(crate) const fn segs_in(&self) -> u32 {
        self.segs_in
    }

    /// Returns the window scales of the peer and of this host; zero if scaling was not agreed.
    pub(crate) const fn scales(&self) -> (u8, u8) {
        if self.options & Self::WINDOW_SCALE == 0 {
            return (0, 0);
        }
        let (low, high) = (self.scales & 15, self.scales >> 4);
        if cfg!(target_endian = "little") { (low, high) } else { (high, low) }
    }
}

/// Returns the lower 32 bits of a 64-bit value. The argument is the value as two `u32`, in the order of the machine's
/// memory.
const fn low([first, second]: [u32; 2]) -> u32 {
    if cfg!(target_endian = "little") { first } else { second }
}

/// The windows of a connection in repair mode (`struct tcp_repair_window`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct RepairWindow {
    pub(crate) snd_wl1: u32,
    pub(crate) snd_wnd: u32,
    pub(crate) max_window: u32,
    pub(crate) rcv_wnd: u32,
    pub(crate) rcv_wup: u32,
}

/// `struct tcp_repair_opt`: a TCP option as it was agreed.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct RepairOption {
    pub(crate) code: u32,
    pub(crate) value: u32,
}

pub(crate) fn get<T: Plain>(fd: &impl AsFd, level: i32, name: i32) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut len = size_of::<T>() as libc::socklen_t;
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `len` bytes, the size of `value`, which outlives the call.
    check(unsafe { libc::getsockopt(fd, level, name, value.as_mut_ptr().cast(), &raw mut len) })?;
    // SAFETY: each byte is zero or was written by the kernel, and every bit pattern is a valid value.
    Ok(unsafe { value.assume_init() })
}

pub(crate) fn set<T: Plain>(fd: &impl AsFd, level: i32, name: i32, value: T) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: the kernel reads `len` bytes of a value that outlives the call.
    check(unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), len) })?;
    Ok(())
}

/// Makes the socket drop every segment that it receives from now on.
pub(crate) fn block_segments(fd: &impl AsFd) -> io::Result<()> {
    // "Return 0": keep no byte of a segment.
    let mut refuse = libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 };
    let program = libc::sock_fprog { len: 1, filter: &raw mut refuse };
    let (fd, len) = (fd.as_fd().as_raw_fd(), size_of::<libc::sock_fprog>() as libc::socklen_t);
    let program = (&raw const program).cast();
    // SAFETY: the kernel reads the program and its one instruction; both outlive the call.
    check(unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program, len) })?;
    Ok(())
}

/// Undoes [`block_segments`].
pub(crate) fn unblock_segments(fd: &impl AsFd) -> io::Result<()> {
    set(fd, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, 0)
}

/// Returns the number of bytes in the queue to which the request `which` refers, for example `SIOCINQ`.
pub(crate) fn queued(fd: &impl AsFd, which: libc::Ioctl) -> io::Result<usize> {
    let mut count: libc::c_int = 0;
    // SAFETY: these requests write one integer, which outlives the call.
    check(unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), which, &raw mut count) })?;
    Ok(usize::try_from(count).unwrap_or_default())
}
