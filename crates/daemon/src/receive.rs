//! Incoming data: frames of the interfaces, datagrams, and the connections of clients.

use super::clients::ClientRequests;
use super::source::{ReadyClients, ReadySockets};
use super::{BATCH, Daemon};
use node::Input;
use node::stream::OwnedStreamEvent;
use os::{Result, offload};
use trace::What;
use wire::{Iface, Packet, Reason, ethernet, fragment, ipv4};

/// The reason to drop a frame that is larger than any datagram.
const TOO_LARGE: Reason = Reason("frame_too_large");
/// The reason to count a frame for which the kernel had no memory.
const NO_MEMORY: Reason = Reason("receive_no_memory");
/// The reason to drop a datagram if no socket of the host has its port.
const NO_SOCKET: Reason = Reason("no_socket");
/// The reason to drop a frame that is shorter than an Ethernet header.
const NO_FRAME: Reason = Reason("frame_too_short");

/// The MTU of the veth pair between the node and the host's own stack, in bytes: the kernel's default.
const HOST_MTU: u16 = 1500;

impl Daemon {
    /// Receives frames on an interface until no frame is left, [`BATCH`] packets have been handled, or a time-out of
    /// the node is due. Returns whether there may be more frames.
    pub(super) fn receive(&mut self, iface: Iface) -> Result<bool> {
        let mut frame = std::mem::take(&mut self.buffers.frame);
        let received = self.receive_into(iface, &mut frame);
        self.buffers.frame = frame;
        received
    }

    fn receive_into(&mut self, iface: Iface, frame: &mut [u8]) -> Result<bool> {
        // A frame that is split into segments counts as one packet, and each segment as another.
        let mut packets = 0;
        while packets < BATCH {
            let socket = match self.port(iface) {
                Some(port) => &port.socket,
                None => &self.host.socket,
            };
            let received = match socket.receive(frame) {
                Ok(Some(received)) => received,
                Ok(None) => return Ok(false),
                Err(error) => {
                    self.receive_failed(error)?;
                    return Ok(false);
                }
            };
            let stamp = self.clock.instant(received.at, self.wall.0);
            self.measurements.took(self.clock, usize::from(iface.0), stamp);
            let bytes = frame.get(..received.len).unwrap_or_default();
            packets += 1;
            if received.wire_len > received.len {
                self.drops.count(TOO_LARGE);
            } else if received.unfinished.is_nothing() {
                self.take_frame(iface, bytes);
            } else {
                match received.unfinished.finish(bytes) {
                    Ok(frames) => {
                        packets += frames.len();
                        for frame in &frames {
                            self.take_frame(iface, frame);
                        }
                    }
                    Err(reason) => self.drops.count(reason),
                }
            }
            self.measurements.finished(self.clock, stamp);
            if self.node.deadline().is_some_and(|due| due <= self.clock.now()) {
                break;
            }
        }
        Ok(true)
    }

    /// Handles an error of a packet socket. Three causes are expected. The device went down or was removed, which the
    /// link watch reports in detail; the kernel had no memory; or the kernel cannot describe an unfinished frame
    /// (`EINVAL`). Any other error is returned.
    fn receive_failed(&mut self, error: os::Error) -> Result<()> {
        match error.errno() {
            Some(libc::ENETDOWN | libc::ENODEV | libc::ENXIO) => self.handle_link_changes(),
            Some(libc::ENOBUFS | libc::ENOMEM) => {
                self.drops.count(NO_MEMORY);
                Ok(())
            }
            Some(libc::EINVAL) => {
                self.drops.count(offload::UNSUPPORTED);
                Ok(())
            }
            _ => Err(error),
        }
    }

    pub(super) fn take_frame(&mut self, iface: Iface, frame: &[u8]) {
        let Ok((link, bytes)) = ethernet::parse(frame) else { return self.drops.count(NO_FRAME) };
        let packet = Packet { link, id: self.identify(bytes), bytes: self.buffers.copy_of(bytes) };
        let now = self.clock.now();
        if iface == Iface::HOST && self.is_of_client(&packet) {
            return;
        }
        self.record(now, What::Received(iface, packet.clone()));
        if iface == Iface::HOST
            && let Some(datagram) = self.kernel_datagrams.refused(&packet.bytes)
        {
            self.drops.count(NO_SOCKET);
            self.record(now, What::Lost(Iface::HOST, datagram, NO_SOCKET.0.into()));
        }
        if iface == Iface::HOST
            && let Some(reason) = self.sockets.screen_out(&packet.bytes)
        {
            self.drops.count(reason);
            self.record(now, What::Dropped(iface, packet.id, reason.0.into()));
            return;
        }
        self.fetch_kept(now);
        self.node.receive(now, iface, packet, &mut self.out);
        self.carry_out(now);
    }

    /// Reads data and accepts connections at the sockets of roles that are in `ready`.
    pub(super) fn receive_datagrams(&mut self, ready: &ReadySockets) {
        self.sockets.wake(self.clock.now());
        let (told, lost) = self.sockets.receive(ready);
        for reason in self.sockets.take_refused() {
            self.drops.count(reason);
        }
        self.tell(told);
        let now = self.clock.now();
        for (packet, reason) in lost {
            self.drops.count(reason);
            self.record(now, What::Lost(Iface::HOST, packet, reason.0.into()));
        }
    }

    pub(super) fn sample_sockets(&mut self) {
        if self.records.is_some() {
            let now = self.clock.now();
            for mark in self.sockets.look(now) {
                self.record(now, What::Marked(mark));
            }
        }
    }

    /// Handles requests, connections and data of programs at the sockets in `ready`.
    pub(super) fn serve_clients(&mut self, ready: ReadyClients) {
        let (now, node, mut requests) = (self.clock.now(), &self.node, ClientRequests::default());
        self.clients.serve(now, ready, &|name| node.transport(name), &mut requests);
        self.take_requests(requests);
    }

    /// Handles a packet of this host's own stack if it belongs to a connection that a role carries for a program.
    /// Returns whether it does.
    pub(super) fn is_of_client(&mut self, packet: &Packet) -> bool {
        let mut requests = ClientRequests::default();
        let is_taken = self.clients.takes(&packet.bytes, &mut requests);
        self.take_requests(requests);
        is_taken
    }

    pub(super) fn take_requests(&mut self, requests: ClientRequests) {
        self.queue_requests(requests);
        self.pass_requests();
    }

    pub(super) fn queue_requests(&mut self, requests: ClientRequests) {
        for bytes in requests.datagrams {
            let _ = self.give_to_kernel(&bytes); // as on any path, the sender repeats what is lost
        }
        self.requests.extend(requests.ops);
    }

    /// Passes a datagram to the host's own stack. A datagram that was reassembled can be longer than the MTU of the veth
    /// pair. It is passed in fragments then, which the kernel reassembles. Each one is counted, as the kernel counts them.
    pub(super) fn give_to_kernel(&mut self, bytes: &[u8]) -> Result<()> {
        if ipv4::total_len(bytes) > usize::from(HOST_MTU) {
            for piece in fragment::pieces(bytes, HOST_MTU).unwrap_or_default() {
                self.host.send(&piece)?;
                self.measurements.given_to_kernel += 1;
            }
        } else {
            self.host.send(bytes)?;
            self.measurements.given_to_kernel += 1;
        }
        Ok(())
    }

    pub(super) fn pass_requests(&mut self) {
        while let Some((id, op)) = self.requests.next() {
            let now = self.clock.now();
            self.give(now, Input::Serve(id, op));
            self.clients.asked(id);
            self.requests.done();
        }
    }

    pub(super) fn tell(&mut self, told: Vec<OwnedStreamEvent>) {
        for told in told {
            let now = self.clock.now();
            if let Some(handed) = What::delivered(&told, &self.node) {
                self.record(now, handed);
            }
            let (id, event) = told.event();
            self.give(now, Input::Stream(id, event));
        }
    }
}
