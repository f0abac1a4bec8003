//! Drives an [`Endpoint`] in real time over raw sockets, one for each address. Each socket sends from the address to
//! which it is bound. While such a socket is open, the kernel sends no ICMP error that SCTP is an unknown protocol.

use os::{Clock, NetNs};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{self, AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use sctp::{Association, AssociationEvent, AssociationId, Change, Config, Endpoint, Open};
use std::net::SocketAddrV4;
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use wire::{Duration, Ipv4Addr, Reason, Rng};

/// The program at Wayfare's end of an association. It writes the bytes of [`byte`], and checks that it receives these
/// bytes.
pub(crate) struct Driver {
    clock: Clock,
    sockets: Vec<(Ipv4Addr, OwnedFd)>,
    endpoint: Endpoint,
    id: Option<AssociationId>,
    events: Vec<AssociationEvent>,
    /// The number of bytes to write before the association is finished.
    to_write: u64,
    pub(crate) written: u64,
    pub(crate) read: u64,
    /// The largest number of bytes that were written and not acknowledged at one time.
    pub(crate) most_kept: usize,
    /// The packets that the endpoint refused: the reason, the source, and the type of the first chunk.
    pub(crate) refused: Vec<(Reason, Ipv4Addr, u8)>,
    /// The local address at which data arrived last.
    pub(crate) arriving: Option<Ipv4Addr>,
}

/// Returns the byte at a position of every transfer. The peer's program computes the same bytes.
pub(crate) fn byte(place: u64) -> u8 {
    place.wrapping_mul(31).wrapping_add(place / 251) as u8
}

impl Driver {
    pub(crate) fn new(place: &NetNs, addresses: &[Ipv4Addr], config: Config, seed: u64) -> Self {
        let open = |address: &Ipv4Addr| (*address, raw_socket(*address));
        let sockets = place.run(|| addresses.iter().map(open).collect()).unwrap();
        Self {
            clock: Clock::start(),
            sockets,
            endpoint: Endpoint::new(config, auth::Key::new([7; 32]), Rng::new(seed)),
            id: None,
            events: Vec::new(),
            to_write: 0,
            written: 0,
            read: 0,
            most_kept: 0,
            refused: Vec::new(),
            arriving: None,
        }
    }

    pub(crate) fn listen(&mut self, port: u16, addresses: &[Ipv4Addr]) {
        self.endpoint.listen(port, addresses);
    }

    /// Opens an association over which `bytes` bytes are sent, or fewer if [`Driver::finish`] is called before.
    pub(crate) fn open(&mut self, open: &Open, bytes: u64) {
        self.to_write = bytes;
        self.id = Some(self.endpoint.open(self.clock.now(), open).unwrap());
    }

    /// Stops writing. Returns the number of bytes written.
    pub(crate) fn finish(&mut self) -> u64 {
        self.to_write = self.written;
        let now = self.clock.now();
        self.association().finish(now);
        self.written
    }

    pub(crate) fn association(&mut self) -> &mut Association {
        self.endpoint.association_mut(self.id.unwrap()).unwrap()
    }

    pub(crate) fn change(&mut self, changes: &[Change]) {
        let now = self.clock.now();
        self.association().change(now, changes).unwrap();
    }

    pub(crate) fn prefer(&mut self, local: Ipv4Addr) {
        let now = self.clock.now();
        self.association().prefer(now, None, local).unwrap();
    }

    /// Drives the endpoint until `done` returns `true`. Panics after 30 s.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        self.within(Duration::from_secs(30), what, &mut done);
    }

    #[track_caller]
    pub(crate) fn within(&mut self, limit: Duration, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let end = self.clock.now() + limit;
        loop {
            self.work();
            if done(self) {
                return;
            }
            let now = self.clock.now();
            assert!(
                now < end,
                "{what} did not come; {:?} {:?}; {} bytes written, {} read; {:?}",
                self.events,
                self.refused,
                self.written,
                self.read,
                self.id.and_then(|id| self.endpoint.association(id)).map(|it| (it.state(), it.counts()))
            );
            let wake = self.endpoint.deadline().map_or(end, |deadline| deadline.min(end));
            self.wait(wake.since(now).min(Duration::from_millis(20)));
        }
    }

    /// Drives the endpoint until this event has occurred. Panics after 30 s.
    #[track_caller]
    pub(crate) fn hears(&mut self, event: &AssociationEvent) {
        self.until(&format!("{event:?}"), |driver| driver.has(event));
    }

    pub(crate) fn has(&self, event: &AssociationEvent) -> bool {
        self.events.contains(event)
    }

    fn wait(&self, longest: Duration) {
        let limit = Timespec { tv_sec: 0, tv_nsec: longest.as_nanos() as _ };
        let mut sockets: Vec<_> =
            self.sockets.iter().map(|(_, socket)| PollFd::new(socket, PollFlags::IN)).collect();
        poll(&mut sockets, Some(&limit)).unwrap();
    }

    fn work(&mut self) {
        for at in 0..self.sockets.len() {
            self.receive(at);
        }
        let now = self.clock.now();
        if self.endpoint.deadline().is_some_and(|deadline| deadline <= now) {
            self.endpoint.on_timeout(now);
        }
        loop {
            self.news();
            self.application();
            if !self.send() {
                return;
            }
        }
    }

    fn receive(&mut self, at: usize) {
        let mut packet = [0; 2048];
        let (dst, _) = self.sockets[at];
        // The number of packets is limited, because the endpoint must answer between them.
        for _ in 0..16 {
            let Ok((length, _)) = net::recv(&self.sockets[at].1, &mut packet[..], RecvFlags::DONTWAIT) else {
                return;
            };
            let header = usize::from(packet[0] & 15) * 4;
            let src = Ipv4Addr::from_octets([packet[12], packet[13], packet[14], packet[15]]);
            let verdict = self.endpoint.receive(self.clock.now(), src, dst, &packet[header..length]);
            self.refused.extend(verdict.err().map(|why| (why, src, packet[header + 12])));
        }
    }

    fn news(&mut self) {
        while let Some((id, event)) = self.endpoint.poll_event() {
            match event {
                AssociationEvent::Opened => self.id = Some(id),
                AssociationEvent::Arriving(address) => self.arriving = Some(address),
                // There are many of these events, and no test uses them.
                AssociationEvent::Data | AssociationEvent::Room(_) => continue,
                _ => {}
            }
            self.events.push(event);
        }
    }

    fn application(&mut self) {
        let now = self.clock.now();
        let Some(association) = self.id.and_then(|id| self.endpoint.association_mut(id)) else { return };
        while let Some(piece) = association.read(usize::MAX) {
            let good = (self.read..).zip(&piece.data).all(|(place, got)| *got == byte(place));
            assert!(good, "other bytes than were sent, from {} on", self.read);
            self.read += piece.data.len() as u64;
        }
        while self.written < self.to_write {
            let end = self.to_write.min(self.written + 1400 * 8);
            let message: Vec<u8> = (self.written..end).map(byte).collect();
            if association.write(0, 0, &message).is_err() {
                break;
            }
            self.written = end;
            if self.written == self.to_write {
                association.finish(now);
            }
        }
        self.most_kept = self.most_kept.max(association.unacknowledged());
    }

    /// Sends all waiting packets. Returns whether there were any.
    fn send(&mut self) -> bool {
        let mut any = false;
        while let Some(transmit) = self.endpoint.poll_transmit(self.clock.now()) {
            any = true;
            assert!(!self.has(&AssociationEvent::PeerDeleted(transmit.dst)), "the peer is no longer there");
            let to = SocketAddrV4::new(transmit.dst, 0);
            let socket = self.sockets.iter().find(|(address, _)| *address == transmit.src);
            let (_, socket) = socket.unwrap_or_else(|| panic!("{} is not ours", transmit.src));
            // If the socket's queue is full, the packet is lost.
            let _ = net::sendto(socket, &transmit.bytes, SendFlags::DONTWAIT, &to);
        }
        any
    }

    /// Returns the number of bytes written plus the number of bytes read.
    pub(crate) const fn moved(&self) -> u64 {
        self.written + self.read
    }
}

fn raw_socket(address: Ipv4Addr) -> OwnedFd {
    let sctp = Protocol::from_raw(NonZeroU32::new(u32::from(sctp::PROTOCOL)).unwrap());
    let flags = SocketFlags::CLOEXEC;
    let socket = net::socket_with(AddressFamily::INET, SocketType::RAW, flags, Some(sctp)).unwrap();
    sockopt::set_socket_recv_buffer_size(&socket, 1 << 20).unwrap();
    net::bind(&socket, &SocketAddrV4::new(address, 0)).unwrap();
    socket
}
