//! `connect(2)` for programs that know nothing of Wayfare. `wayfare exec` has the dynamic linker load this library before
//! the C library (`LD_PRELOAD`, see `ld.so(8)`); it tells the daemon of each TCP connection that is about to be made, and
//! then lets the program's own `connect` happen (see the crate `client` for what follows).
//!
//! It is called from wherever a program happens to be, with whatever locks held: so it allocates nothing, takes no lock,
//! and keeps no table of descriptors that `dup`, `fork` or `exec` could make wrong. What it cannot see is in
//! `wayfare exec --help`.

use client::{Name, PATH, POLICY, Policy, SOCKET, TRANSPORT, announce};
use libc::{c_int, sockaddr, sockaddr_in, socklen_t};
use std::ffi::CStr;
use std::mem::{MaybeUninit, size_of};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

/// What the environment said when the program was loaded: later the program may have written over it.
struct Settings {
    daemon: [u8; PATH],
    transport: Name,
    policy: Policy,
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

type Connect = unsafe extern "C" fn(c_int, *const sockaddr, socklen_t) -> c_int;

/// The `connect` that we stand before: the C library's, or that of the next library that was preloaded.
static NEXT: OnceLock<Option<Connect>> = OnceLock::new();

/// Run by the dynamic linker, before the program.
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

extern "C" fn loaded() {
    // SAFETY: the name ends with a zero; what has this name has this type, or is not there.
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
    // SAFETY: the name ends with a zero. The linker calls us before there is anybody who could change the environment.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: what `getenv` finds ends with a zero.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

/// `connect(2)`, as programs call it.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: the caller's address is as long as the caller says.
    let peer = unsafe { peer(address, len) };
    if let (Some(settings), Some(peer)) = (SETTINGS.get(), peer)
        && settings.policy.takes(peer)
        && is_unconnected_tcp(fd)
    {
        // SAFETY: the caller's descriptor is open for as long as this call.
        let socket = unsafe { BorrowedFd::borrow_raw(fd) };
        if let Err(refused) = announce(&settings.daemon, settings.transport, socket, peer) {
            // SAFETY: the address of this thread's own number.
            unsafe { *libc::__errno_location() = refused.raw_os_error().unwrap_or(libc::EIO) };
            return -1;
        }
    }
    // SAFETY: the caller's own arguments.
    unsafe {
        match NEXT.get() {
            Some(Some(next)) => next(fd, address, len),
            // Another library's beginning, before ours.
            _ => libc::syscall(libc::SYS_connect, fd, address, len) as c_int,
        }
    }
}

unsafe fn peer(address: *const sockaddr, len: socklen_t) -> Option<SocketAddrV4> {
    if address.is_null() || (len as usize) < size_of::<sockaddr_in>() {
        return None;
    }
    // SAFETY: it is as long as that, and any bytes are a `sockaddr_in`.
    let address = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
    let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
    let peer = SocketAddrV4::new(ip, u16::from_be(address.sin_port));
    (c_int::from(address.sin_family) == libc::AF_INET && peer.port() != 0).then_some(peer)
}

/// Not a datagram socket, and not one that is asked a second time how its connection is getting on.
fn is_unconnected_tcp(fd: c_int) -> bool {
    let is_tcp = option::<c_int>(fd, libc::SOL_SOCKET, libc::SO_PROTOCOL) == Some(libc::IPPROTO_TCP);
    is_tcp && option::<u8>(fd, libc::IPPROTO_TCP, libc::TCP_INFO) == Some(CLOSE)
}

/// `TCP_CLOSE`, in the first byte of `struct tcp_info`.
const CLOSE: u8 = 7;

/// The first bytes of a socket's option; the callers' types are integers.
fn option<T: Copy>(fd: c_int, level: c_int, name: c_int) -> Option<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut len = size_of::<T>() as socklen_t;
    // SAFETY: at most `len` bytes are written, which is what there is.
    let got = unsafe { libc::getsockopt(fd, level, name, value.as_mut_ptr().cast(), &raw mut len) };
    // SAFETY: all bytes are set, by us or the kernel, and any are an integer.
    (got == 0).then(|| unsafe { value.assume_init() })
}
