//! `connect(2)` for programs that do not know Wayfare. `wayfare exec` makes the dynamic linker load this library before
//! the C library (`LD_PRELOAD`, see `ld.so(8)`). The library notifies the daemon of each TCP connection over IPv4 that
//! the policy selects. If the daemon agrees, the library executes the original `connect`. The crate `client` describes
//! how the connection is then made.
//!
//! A program may call `connect` at any point and with any locks held. So this library neither allocates nor takes a
//! lock, and has no table of descriptors that `dup`, `fork` or `exec` could invalidate. `wayfare exec --help` lists
//! the connections that the library does not redirect.

use client::{Name, PATH, POLICY, Policy, SOCKET, TRANSPORT, announce};
use libc::{c_int, sockaddr, sockaddr_in, socklen_t};
use std::ffi::CStr;
use std::mem::{MaybeUninit, size_of};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

/// The settings in the environment when the program was loaded. The program may change the environment later.
struct Settings {
    daemon: [u8; PATH],
    transport: Name,
    policy: Policy,
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

type Connect = unsafe extern "C" fn(c_int, *const sockaddr, socklen_t) -> c_int;

/// The next `connect` in the order of the linker: that of the C library, or of another preloaded library.
static NEXT: OnceLock<Option<Connect>> = OnceLock::new();

/// The function that the dynamic linker calls before the program starts.
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

extern "C" fn loaded() {
    // SAFETY: the name ends with a zero. A symbol of this name has this type, or `dlsym` returns null.
    let next = unsafe {
        let next = libc::dlsym(libc::RTLD_NEXT, c"connect".as_ptr());
        std::mem::transmute::<*mut libc::c_void, Option<Connect>>(next)
    };
    let _ = NEXT.set(next);
    if let Some(settings) = settings() {
        let _ = SETTINGS.set(settings);
    }
}

fn settings() -> Option<Settings> {
    let path = variable(SOCKET)?.to_bytes();
    let mut daemon = [0; PATH];
    daemon.get_mut(..path.len()).filter(|_| path.len() < PATH)?.copy_from_slice(path);
    let policy = variable(POLICY).map_or(Ok(""), CStr::to_str).ok()?;
    let transport = Name::new(variable(TRANSPORT)?.to_bytes())?;
    Some(Settings { daemon, transport, policy: Policy::parse(policy).ok()? })
}

fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the name ends with a zero. The linker calls this before any other thread could change the environment.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: the text that `getenv` returns ends with a zero.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

/// Replaces `connect(2)`. If the socket is an unconnected TCP socket and the policy selects the destination, notifies
/// the daemon first. Returns -1 with the error in `errno` if the daemon refuses or cannot be reached. Otherwise
/// connects, and returns the result of the original `connect`.
///
/// # Safety
///
/// The requirements are those of `connect` of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: the caller guarantees that `address` has `len` bytes.
    let peer = unsafe { peer(address, len) };
    if let (Some(settings), Some(peer)) = (SETTINGS.get(), peer)
        && settings.policy.takes(peer)
        && is_unconnected_tcp(fd)
    {
        // SAFETY: the caller keeps the descriptor open during this call.
        let socket = unsafe { BorrowedFd::borrow_raw(fd) };
        if let Err(refused) = announce(&settings.daemon, settings.transport, socket, peer) {
            // SAFETY: the C library returns the address of this thread's `errno`.
            unsafe { *libc::__errno_location() = refused.raw_os_error().unwrap_or(libc::EIO) };
            return -1;
        }
    }
    // SAFETY: the arguments are the caller's.
    unsafe {
        match NEXT.get() {
            Some(Some(next)) => next(fd, address, len),
            // An initializer of another library calls this before `loaded` has run, or there is no next `connect`.
            _ => libc::syscall(libc::SYS_connect, fd, address, len) as c_int,
        }
    }
}

unsafe fn peer(address: *const sockaddr, len: socklen_t) -> Option<SocketAddrV4> {
    if address.is_null() || (len as usize) < size_of::<sockaddr_in>() {
        return None;
    }
    // SAFETY: `address` has at least this size, and any bytes are a valid `sockaddr_in`.
    let address = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
    let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
    let peer = SocketAddrV4::new(ip, u16::from_be(address.sin_port));
    (c_int::from(address.sin_family) == libc::AF_INET && peer.port() != 0).then_some(peer)
}

/// Returns whether `fd` is a TCP socket in the state CLOSED. A socket that is already connecting is not: a program may
/// call `connect` a second time to learn the progress.
fn is_unconnected_tcp(fd: c_int) -> bool {
    let is_tcp = option::<c_int>(fd, libc::SOL_SOCKET, libc::SO_PROTOCOL) == Some(libc::IPPROTO_TCP);
    is_tcp && option::<u8>(fd, libc::IPPROTO_TCP, libc::TCP_INFO) == Some(CLOSE)
}

/// The state `TCP_CLOSE`, as in the first byte of `struct tcp_info`.
const CLOSE: u8 = 7;

/// Returns the first bytes of a socket option, or `None` if the socket does not have the option. `T` is an integer type
/// in all calls.
fn option<T: Copy>(fd: c_int, level: c_int, name: c_int) -> Option<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut len = size_of::<T>() as socklen_t;
    // SAFETY: at most `len` bytes are written, which is the size of `value`.
    let got = unsafe { libc::getsockopt(fd, level, name, value.as_mut_ptr().cast(), &raw mut len) };
    // SAFETY: all bytes are set, and any bytes are a valid integer.
    (got == 0).then(|| unsafe { value.assume_init() })
}
