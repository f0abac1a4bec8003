//! Socket options of Linux's TCP that no library has yet.

use crate::error::check;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd};

// From `linux/tcp.h`, `linux/sockios.h` and `asm-generic/socket.h`.
pub(super) const TCP_MAXSEG: i32 = 2;
pub(super) const TCP_INFO: i32 = 11;
pub(super) const TCP_REPAIR: i32 = 19;
pub(super) const TCP_REPAIR_QUEUE: i32 = 20;
pub(super) const TCP_QUEUE_SEQ: i32 = 21;
pub(super) const TCP_REPAIR_OPTIONS: i32 = 22;
pub(super) const TCP_TIMESTAMP: i32 = 24;
pub(super) const TCP_REPAIR_WINDOW: i32 = 29;
pub(super) const SO_BUF_LOCK: i32 = 72;
pub(super) const SIOCINQ: libc::Ioctl = libc::FIONREAD;
pub(super) const SIOCOUTQ: libc::Ioctl = libc::TIOCOUTQ;
pub(super) const SIOCOUTQNSD: libc::Ioctl = 0x894B;

/// The value of an option.
///
/// # Safety
///
/// Every pattern of bits is a value, and there are no bytes between the fields: the kernel reads and writes it as it is.
pub(super) unsafe trait Plain: Copy {}

// SAFETY: an integer.
unsafe impl Plain for i32 {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: integers of one size each, `repr(C)`, eight bytes and then words.
unsafe impl Plain for TcpInfo {}
// SAFETY: five words, `repr(C)`.
unsafe impl Plain for RepairWindow {}
// SAFETY: two words each, `repr(C)`.
unsafe impl<const N: usize> Plain for [RepairOption; N] {}

/// The begin of `struct tcp_info`: what every kernel since 2.6 has.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct TcpInfo {
    pub(super) state: u8,
    ca_state: u8,
    retransmits: u8,
    probes: u8,
    backoff: u8,
    pub(super) options: u8,
    /// The shift of the peer's windows in the lower four bits, that of ours in the higher.
    scales: u8,
    flags: u8,
    pub(super) rto: u32,
    ato: u32,
    pub(super) snd_mss: u32,
    rcv_mss: u32,
    counts: [u32; 5],
    times: [u32; 4],
    pub(super) pmtu: u32,
    rcv_ssthresh: u32,
    pub(super) rtt: u32,
    rttvar: u32,
    pub(super) snd_ssthresh: u32,
    pub(super) snd_cwnd: u32,
    advmss: u32,
    reordering: u32,
    rcv_rtt: u32,
    rcv_space: u32,
    pub(super) total_retrans: u32,
}

impl TcpInfo {
    /// `TCP_ESTABLISHED`.
    pub(super) const ESTABLISHED: u8 = 1;
    /// In `options`: timestamps were agreed.
    pub(super) const TIMESTAMPS: u8 = 1;
    /// In `options`: selective acknowledgments were agreed.
    pub(super) const SACK: u8 = 2;
    /// In `options`: window scaling was agreed.
    pub(super) const WINDOW_SCALE: u8 = 4;

    /// The shifts of the peer's windows and of ours.
    pub(super) const fn scales(&self) -> (u8, u8) {
        if self.options & Self::WINDOW_SCALE == 0 {
            return (0, 0);
        }
        let (low, high) = (self.scales & 15, self.scales >> 4);
        if cfg!(target_endian = "little") { (low, high) } else { (high, low) }
    }
}

/// `struct tcp_repair_window`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct RepairWindow {
    pub(super) snd_wl1: u32,
    pub(super) snd_wnd: u32,
    pub(super) max_window: u32,
    pub(super) rcv_wnd: u32,
    pub(super) rcv_wup: u32,
}

/// `struct tcp_repair_opt`: a TCP option as it was agreed.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct RepairOption {
    pub(super) code: u32,
    pub(super) value: u32,
}

pub(super) fn get<T: Plain>(fd: &impl AsFd, level: i32, name: i32) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut len = size_of::<T>() as libc::socklen_t;
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `len` bytes, which is what there is, and they outlive the call.
    check(unsafe { libc::getsockopt(fd, level, name, value.as_mut_ptr().cast(), &raw mut len) })?;
    // SAFETY: all bytes are initialized, by us or the kernel, and any are a value.
    Ok(unsafe { value.assume_init() })
}

pub(super) fn set<T: Plain>(fd: &impl AsFd, level: i32, name: i32, value: T) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: the kernel reads `len` bytes of a value that outlives the call.
    check(unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), len) })?;
    Ok(())
}

/// A count of bytes in one of the queues.
pub(super) fn queued(fd: &impl AsFd, which: libc::Ioctl) -> io::Result<usize> {
    let mut count: libc::c_int = 0;
    // SAFETY: these requests write one integer, which outlives the call.
    check(unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), which, &raw mut count) })?;
    Ok(usize::try_from(count).unwrap_or_default())
}
