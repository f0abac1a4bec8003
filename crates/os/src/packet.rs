//! Raw Ethernet frames on one interface, with the kernel's receive stamp.
//!
//! A frame may be unfinished: its sender left a checksum or segmentation to hardware. [`Options::unfinished`] makes the
//! kernel report that. Otherwise such frames are received as they are, so offloads must be off at both ends
//! ([`crate::ethtool::offloads_off`]).

use crate::error::{Attempt, Result, check};
use crate::offload::{self, Unfinished};
use rustix::net::sockopt;
use std::io::{self, IoSlice};
use std::mem::{MaybeUninit, size_of, size_of_val};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use wire::{Frame, Packet, WallTime, ethernet};

/// The socket option that puts a `struct virtio_net_hdr` before each frame (`linux/if_packet.h`).
const PACKET_VNET_HDR: libc::c_int = 15;

/// Options with which a packet socket is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The requested size of the receive buffer, in bytes; [`Buffer::granted`] has the granted size.
    pub receive_buffer: usize,
    /// Whether frames bypass the device's queueing discipline when they are sent. The lab's link emulator has its own
    /// queues; a frame must not wait in a second one.
    pub bypass_qdisc: bool,
    /// Whether the kernel reports, in [`Received::unfinished`], what the sender of a frame has left to hardware.
    pub unfinished: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { receive_buffer: 8 << 20, bypass_qdisc: false, unfinished: false }
    }
}

/// The receive buffer that a socket got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// The requested size, in bytes.
    pub asked: usize,
    /// The granted size, in bytes. The kernel doubles the request, because it counts its overhead for each packet.
    pub granted: usize,
    /// Whether the system-wide limit (`net.core.rmem_max`) was not applied. Only root of the initial user namespace may
    /// exceed it.
    pub forced: bool,
}

/// The destination of a frame, as the kernel classifies it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The frame is for this interface's link address.
    Host,
    /// The frame is a broadcast.
    Broadcast,
    /// The frame is for a multicast group.
    Multicast,
    /// The frame is for another station, or of a kind that the kernel does not name here.
    Other,
}

/// A frame that was received into the caller's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// Number of bytes of the frame that are in the buffer.
    pub len: usize,
    /// Length of the frame in bytes; more than `len` if the buffer was too small.
    pub wire_len: usize,
    /// When the kernel received the frame. The kernel begins to stamp frames shortly after the machine's first socket
    /// with stamps was opened. Until then, `at` may be the time at which the frame was read.
    pub at: WallTime,
    /// The destination of the frame.
    pub kind: Kind,
    /// What the frame's sender has left to hardware; nothing unless [`Options::unfinished`] was set.
    pub unfinished: Unfinished,
}

/// Counts of a packet socket, from [`PacketSocket::statistics`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Statistics {
    /// Number of frames received, including dropped ones.
    pub packets: u32,
    /// Number of frames dropped because the receive buffer was full.
    pub drops: u32,
}

/// A non-blocking `AF_PACKET` socket, bound to one interface. It receives what the interface receives, but not what
/// is sent on the interface by this socket, another socket or the kernel.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    device: String,
    buffer: Buffer,
    /// Whether a header of [`offload::HEADER`] bytes precedes each frame, in both directions.
    has_header: bool,
}

impl PacketSocket {
    /// Opens a packet socket on `device` in the calling thread's network namespace. Fails with `ENODEV` if there is no
    /// such device.
    pub fn open(device: &str, options: &Options) -> Result<Self> {
        let index = rustix::net::netdevice::name_to_index;
        let fd = unbound().attempt("open a packet socket on", device)?;
        let index = index(&fd, device).attempt("find the interface", device)?;
        let set = |level, option, what| set_option(&fd, level, option, 1).attempt(what, device);
        set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, "ignore outgoing frames on")?;
        set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, "enable receive time stamps on")?;
        if options.bypass_qdisc {
            set(libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, "bypass the queueing discipline of")?;
        }
        if options.unfinished {
            set(libc::SOL_PACKET, PACKET_VNET_HDR, "enable offload information on")?;
        }
        let buffer = grow(&fd, options.receive_buffer).attempt("set the receive buffer on", device)?;
        bind(&fd, index).attempt("bind the packet socket to", device)?;
        Ok(Self { fd, device: device.to_owned(), buffer, has_header: options.unfinished })
    }

    /// Opens a packet socket and closes it. Fails if this process may not do so: it needs `CAP_NET_RAW`.
    pub fn allowed() -> Result<()> {
        unbound().map(drop).attempt("open", "a raw socket (AF_PACKET)")
    }

    /// Returns the requested and the granted size of the receive buffer.
    pub const fn buffer(&self) -> Buffer {
        self.buffer
    }

    /// Returns whether the socket is still bound to the interface with this index. The binding is lost when the
    /// interface is removed or leaves the namespace, even if it returns with the same index.
    pub fn is_bound_to(&self, index: u32) -> bool {
        // SAFETY: all zero is a valid `sockaddr_ll`; it outlives the call, and `len` is its size.
        unsafe {
            let mut address: libc::sockaddr_ll = MaybeUninit::zeroed().assume_init();
            let mut len = size_of_val(&address) as libc::socklen_t;
            let named = libc::getsockname(self.fd.as_raw_fd(), (&raw mut address).cast(), &raw mut len);
            named == 0 && address.sll_ifindex == index.cast_signed()
        }
    }

    /// Receives one frame into `frame`; `None` if no frame is waiting.
    ///
    /// When the interface goes down, one call fails with `ENETDOWN`. The socket receives again once the interface is
    /// up.
    pub fn receive(&self, frame: &mut [u8]) -> Result<Option<Received>> {
        match receive(&self.fd, self.has_header, frame) {
            Err(none) if none.kind() == io::ErrorKind::WouldBlock => Ok(None),
            other => other.map(Some).attempt("receive on", &self.device),
        }
    }

    /// Sends one whole Ethernet frame, header first. The caller counts errors: `ENOBUFS` or `EAGAIN` if the device's
    /// or the socket's queue is full, `ENETDOWN`, `EMSGSIZE`.
    pub fn send(&self, frame: &[u8]) -> Result<()> {
        self.send_parts(&[], frame)
    }

    /// Sends a frame whose header and payload are in different places, without copying either.
    pub fn send_payload(&self, link: &Frame, payload: &[u8]) -> Result<()> {
        self.send_parts(&ethernet::header(link), payload)
    }

    /// The number of frames that [`PacketSocket::send_packets`] sends with one system call.
    pub const AT_ONCE: usize = 16;

    /// Sends packets in this order, each as [`PacketSocket::send_payload`] does, with one system call for
    /// [`PacketSocket::AT_ONCE`] packets. If the kernel refuses a packet, the packet is tried once more. If it is refused
    /// again, calls `refused` with its index and the error, and continues with the next packet.
    pub fn send_packets(&self, packets: &[Packet], refused: &mut dyn FnMut(usize, crate::Error)) {
        let mut done = 0;
        while let Some(rest) = packets.get(done..).filter(|rest| !rest.is_empty()) {
            match self.send_some(rest).attempt("send on", &self.device) {
                Ok(sent) => done += sent,
                Err(error) => {
                    refused(done, error);
                    done += 1;
                }
            }
        }
    }

    /// Sends the first of these packets, and as many of the next ones as one system call accepts. Returns the number of
    /// packets that were sent, at least one. The error is that of the first packet.
    fn send_some(&self, packets: &[Packet]) -> io::Result<usize> {
        let (nothing, before) = ([0_u8; offload::HEADER], if self.has_header { offload::HEADER } else { 0 });
        let mut headers = [[0_u8; ethernet::HEADER]; Self::AT_ONCE];
        // SAFETY: all zero is a valid `iovec` and a valid `mmsghdr`.
        let (mut parts, mut messages): ([[libc::iovec; 3]; Self::AT_ONCE], [libc::mmsghdr; Self::AT_ONCE]) =
            unsafe { (MaybeUninit::zeroed().assume_init(), MaybeUninit::zeroed().assume_init()) };
        let places = headers.iter_mut().zip(&mut parts).zip(&mut messages);
        for (packet, ((header, parts), message)) in packets.iter().zip(places) {
            *header = ethernet::header(&packet.link);
            let unfinished = nothing.get(..before).unwrap_or_default();
            *parts = [unfinished, header, &packet.bytes]
                .map(|part| libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() });
            message.msg_hdr.msg_iov = parts.as_mut_ptr();
            message.msg_hdr.msg_iovlen = parts.len();
        }
        let count = packets.len().min(Self::AT_ONCE) as libc::c_uint;
        // SAFETY: each of the first `count` messages has parts that point to memory that outlives the call, with its true
        // length. The kernel only reads it.
        let sent = unsafe { libc::sendmmsg(self.fd.as_raw_fd(), messages.as_mut_ptr(), count, 0) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    fn send_parts(&self, first: &[u8], rest: &[u8]) -> Result<()> {
        // Zeros mean that nothing is left to hardware.
        let header: &[u8] = if self.has_header { &[0; offload::HEADER] } else { &[] };
        // A packet socket sends a frame whole or not at all.
        rustix::io::writev(&self.fd, &[header, first, rest].map(IoSlice::new))
            .attempt("send on", &self.device)?;
        Ok(())
    }

    /// Returns the counts since the last call, or since the socket was opened.
    pub fn statistics(&self) -> Result<Statistics> {
        let mut counts = [0_u32; 2];
        let mut len = size_of_val(&counts) as libc::socklen_t;
        // SAFETY: `counts` has the layout of `struct tpacket_stats` and `len` is its size.
        check(unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                counts.as_mut_ptr().cast(),
                &raw mut len,
            )
        })
        .attempt("read the statistics of the packet socket on", &self.device)?;
        let [packets, drops] = counts;
        Ok(Statistics { packets, drops })
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for PacketSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// Opens a packet socket with protocol 0. The socket receives nothing until it is bound, so it receives no frame of
/// another interface.
fn unbound() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: the call takes no pointers, and nothing else owns the descriptor.
    unsafe { check(libc::socket(libc::AF_PACKET, kind, 0)).map(|raw| OwnedFd::from_raw_fd(raw)) }
}

pub(crate) fn set_option(fd: &OwnedFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the value outlives the call, and `len` is its size.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, (&raw const value).cast(), len) })?;
    Ok(())
}

/// Requests a receive buffer of `asked` bytes: first without the system-wide limit, and if this is refused, within it.
fn grow(fd: &OwnedFd, asked: usize) -> io::Result<Buffer> {
    let forced = sockopt::set_socket_recv_buffer_size_force(fd, asked).is_ok();
    if !forced {
        sockopt::set_socket_recv_buffer_size(fd, asked)?;
    }
    Ok(Buffer { asked, granted: sockopt::socket_recv_buffer_size(fd)?, forced })
}

fn bind(fd: &OwnedFd, index: u32) -> io::Result<()> {
    // SAFETY: all zero is a valid `sockaddr_ll`.
    let mut address: libc::sockaddr_ll = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index.cast_signed();
    let len = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` outlives the call, and `len` is its size.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) })?;
    Ok(())
}

/// Room for one `timespec` control message, aligned as its header must be.
#[repr(C, align(8))]
struct Control([u8; 64]);

fn receive(fd: &OwnedFd, has_header: bool, frame: &mut [u8]) -> io::Result<Received> {
    let mut control = Control([0; 64]);
    let mut header = [0; offload::HEADER];
    let before = if has_header { header.len() } else { 0 };
    let mut iov = [
        libc::iovec { iov_base: header.as_mut_ptr().cast(), iov_len: before },
        libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() },
    ];
    // SAFETY: all zero is a valid `sockaddr_ll` and a valid `msghdr`.
    let (mut from, mut message): (libc::sockaddr_ll, libc::msghdr) =
        unsafe { (MaybeUninit::zeroed().assume_init(), MaybeUninit::zeroed().assume_init()) };
    message.msg_name = (&raw mut from).cast();
    message.msg_namelen = size_of_val(&from) as libc::socklen_t;
    message.msg_iov = iov.as_mut_ptr();
    message.msg_iovlen = iov.len();
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<Control>();
    // SAFETY: every pointer of the message points to memory that outlives the call, with its true length.
    let got = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, libc::MSG_TRUNC) };
    let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    let wire_len = got.saturating_sub(before);
    let at =
        stamp(&message).ok_or_else(|| io::Error::other("the kernel gave the frame no receive time stamp"))?;
    let kind = match from.sll_pkttype {
        libc::PACKET_HOST => Kind::Host,
        libc::PACKET_BROADCAST => Kind::Broadcast,
        libc::PACKET_MULTICAST => Kind::Multicast,
        _ => Kind::Other,
    };
    Ok(Received { len: wire_len.min(frame.len()), wire_len, at, kind, unfinished: Unfinished::parse(header) })
}

fn stamp(message: &libc::msghdr) -> Option<WallTime> {
    // SAFETY: the kernel has filled the control buffer with well-formed messages, and the macros stay within it.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(message);
        while let Some(header) = next.as_ref() {
            if (header.cmsg_level, header.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
                let time: libc::timespec = libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned();
                return Some(WallTime(time.tv_sec * 1_000_000_000 + time.tv_nsec));
            }
            next = libc::CMSG_NXTHDR(message, header);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FAR, datagram, hear, in_sandbox, in_sandbox_of_root_and_of_nobody, joined};
    use crate::{Clock, Netlink, Offset};
    use wire::Duration;

    #[test]
    fn a_frame_arrives_whole_with_the_time_of_its_arrival() {
        in_sandbox_of_root_and_of_nobody(|| {
            let wire = joined();
            // Stamping is enabled shortly after the first socket asked for it.
            wire.near.send(&datagram(b"warm up")).unwrap();
            hear(&wire.tap, 100);
            let clock = Clock::start();
            for payload in [&b"first"[..], &[0x5a; 1400]] {
                let sent = clock.now();
                wire.near.send(&datagram(payload)).unwrap();
                let returned = clock.now();
                // If the stamp were the time of reading, it would be after this wait.
                crate::testing::readable(&crate::Timer::new().unwrap(), 50);
                let heard = hear(&wire.tap, 0);
                let (received, bytes) = heard.first().unwrap();
                assert_eq!(bytes, &datagram(payload));
                assert_eq!((received.wire_len, received.kind), (bytes.len(), Kind::Host));
                let offset = Offset::sample();
                let at = clock.instant(received.at, offset);
                let slack = offset.bracket + Duration::from_micros(5);
                assert!(
                    at + slack >= sent && at <= returned + Duration::from_millis(20),
                    "{sent} {at} {returned}"
                );
            }
        });
    }

    /// More packets than one system call sends, and some that the kernel refuses because they are too long.
    #[test]
    fn packets_that_are_sent_together_arrive_in_order_without_those_that_are_refused() {
        in_sandbox(|| {
            let wire = joined();
            let link = ethernet::parse(&datagram(b"x")).unwrap().0;
            let is_long = |n: u8| [0, 5, 6, 20, 39].contains(&n);
            let packet = |n: u8| Packet {
                link,
                ..Packet::new(link.dst, vec![n; if is_long(n) { 3000 } else { 100 }])
            };
            let packets: Vec<Packet> = (0..40).map(packet).collect();
            let mut refused = Vec::new();
            wire.near.send_packets(&packets, &mut |index, error| refused.push((index, error.errno())));
            let expected: Vec<_> =
                (0..40).filter(|n| is_long(*n)).map(|n| (n.into(), Some(libc::EMSGSIZE))).collect();
            assert_eq!(refused, expected);
            let heard: Vec<Vec<u8>> = hear(&wire.tap, 200).into_iter().map(|(_, bytes)| bytes).collect();
            let sent: Vec<Vec<u8>> = packets
                .iter()
                .filter(|packet| packet.bytes.len() == 100)
                .map(|packet| ethernet::emit(&packet.link, &packet.bytes))
                .collect();
            assert_eq!(heard, sent);
        });
    }

    #[test]
    fn what_is_sent_on_the_interface_is_not_heard() {
        in_sandbox(|| {
            let wire = joined();
            let second = PacketSocket::open("a0", &Options::default()).unwrap();
            wire.near.send(&datagram(b"x")).unwrap();
            let frames = [hear(&wire.near, 100), hear(&second, 0)].concat();
            assert!(frames.iter().all(|(_, bytes)| bytes[6..12] == FAR.0), "{frames:?}");
        });
    }

    #[test]
    fn the_kind_tells_whom_a_frame_was_addressed_to() {
        in_sandbox(|| {
            let wire = joined();
            let first = |byte| {
                let mut frame = datagram(b"x");
                frame[..6].copy_from_slice(&[byte, 0, 0, 0, 0, 9]);
                frame
            };
            wire.near.send(&first(2)).unwrap();
            wire.near.send(&first(1)).unwrap();
            wire.near.send(&crate::testing::arp_request()).unwrap();
            let kinds: Vec<_> = hear(&wire.tap, 100).iter().map(|(received, _)| received.kind).collect();
            assert_eq!(kinds, [Kind::Other, Kind::Multicast, Kind::Broadcast]);
        });
    }

    #[test]
    fn drops_and_cuts_are_told() {
        in_sandbox(|| {
            let wire = joined();
            let small = Options { receive_buffer: 1, bypass_qdisc: false, unfinished: false };
            let small = wire.far.run(|| PacketSocket::open("b0", &small)).unwrap().unwrap();
            assert!(small.buffer().granted < 10_000, "{:?}", small.buffer());
            for _ in 0..50 {
                wire.near.send(&datagram(&[1; 1000])).unwrap();
            }
            let mut frame = [0; 100];
            let received = small.receive(&mut frame).unwrap().unwrap();
            assert_eq!((received.len, received.wire_len), (100, 14 + 28 + 1000));
            let kept = 1 + hear(&small, 0).len();
            let counts = small.statistics().unwrap();
            assert_eq!((counts.packets, counts.drops as usize), (50, 50 - kept));
            assert!(counts.drops > 0);
            assert_eq!(small.statistics().unwrap(), Statistics::default());
            let tap = wire.tap.statistics().unwrap();
            assert_eq!((tap.packets, tap.drops), (50, 0));
        });
    }

    #[test]
    fn refusals_are_returned_and_a_link_that_was_down_is_heard_again() {
        in_sandbox(|| {
            let wire = joined();
            let refused = wire.near.send(&datagram(&[0; 3000])).unwrap_err();
            assert_eq!(refused.errno(), Some(libc::EMSGSIZE));
            assert!(refused.to_string().contains("a0"));
            let mut here = Netlink::open().unwrap();
            here.set_up("a0", false).unwrap();
            let refused = wire.near.send(&datagram(b"x")).unwrap_err();
            assert_eq!(refused.errno(), Some(libc::ENETDOWN));
            let mut frame = [0; 100];
            assert_eq!(wire.near.receive(&mut frame).unwrap_err().errno(), Some(libc::ENETDOWN));
            assert_eq!(wire.near.receive(&mut frame).unwrap(), None);
            here.set_up("a0", true).unwrap();
            wire.near.send(&datagram(b"x")).unwrap();
            wire.tap.send(&datagram(b"back")).unwrap();
            assert!(!hear(&wire.near, 200).is_empty());
        });
    }

    #[test]
    fn the_buffer_that_was_got_is_told() {
        in_sandbox_of_root_and_of_nobody(|| {
            let buffer = joined().tap.buffer();
            assert_eq!(buffer.asked, 8 << 20);
            assert!(buffer.granted >= 200_000, "{buffer:?}");
            assert!(!buffer.forced || buffer.granted == 16 << 20, "{buffer:?}");
        });
    }

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        in_sandbox(|| {
            let refused = PacketSocket::open("no-such-dev", &Options::default()).unwrap_err();
            assert!(refused.is_absent() && refused.to_string().contains("no-such-dev"), "{refused}");
        });
    }
}
