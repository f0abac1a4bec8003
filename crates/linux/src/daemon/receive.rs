//! What comes in: frames of the interfaces, datagrams, and the connections of clients.

use super::clients::Wishes;
use super::{BATCH, Daemon};
use crate::error::Result;
use node::Input;
use node::stream::Told;
use trace::What;
use wire::{Iface, Packet, ethernet, identity};

impl Daemon {
    /// Takes what has come on an interface, up to [`BATCH`] frames, or until a time-out is due: a burst of frames that each
    /// take a sync of the disk holds up nothing but itself. Says whether there may be more.
    pub(super) fn receive(&mut self, iface: Iface) -> Result<bool> {
        let mut frame = [0; 2048];
        for _ in 0..BATCH {
            let socket = match self.port(iface) {
                Some(port) => &port.socket,
                None => &self.host.socket,
            };
            let received = match socket.receive(&mut frame) {
                Ok(Some(received)) => received,
                Ok(None) => return Ok(false),
                Err(error) if error.errno() == Some(libc::ENETDOWN) && iface != Iface::HOST => {
                    self.lose_interface(iface);
                    return Ok(false);
                }
                Err(error) => return Err(error),
            };
            let stamp = self.clock.instant(received.at, self.wall.0);
            self.vitals.took(self.clock, usize::from(iface.0), stamp);
            self.take_frame(iface, frame.get(..received.len).unwrap_or_default());
            self.vitals.finished(self.clock, stamp);
            if self.node.deadline().is_some_and(|due| due <= self.clock.now()) {
                break;
            }
        }
        Ok(true)
    }

    pub(super) fn take_frame(&mut self, iface: Iface, frame: &[u8]) {
        let Ok((link, bytes)) = ethernet::parse(frame) else { return };
        let packet = Packet { link, id: identity(bytes), bytes: bytes.to_vec() };
        let now = self.clock.now();
        if iface == Iface::HOST && self.is_a_clients(&packet) {
            return;
        }
        self.record(now, What::Received(iface, packet.clone()));
        if iface == Iface::HOST
            && let Some(reason) = self.sockets.screen_out(&packet.bytes)
        {
            self.record(now, What::Dropped(iface, packet.id, reason.0.into()));
            return;
        }
        self.node.receive(now, iface, packet, &mut self.out);
        self.carry_out(now);
    }

    /// The kernel reports once that an interface went down: its driver did that, or an operator.
    pub(super) fn lose_interface(&mut self, iface: Iface) {
        let Some(name) = self.port(iface).map(|port| port.spec.name.clone()) else { return };
        self.vitals.lost_interfaces.push(name);
        self.link_down(iface, "interface_down");
    }

    pub(super) fn receive_datagrams(&mut self) {
        let (told, lost) = self.sockets.receive();
        self.tell(told);
        let now = self.clock.now();
        for (packet, reason) in lost {
            self.record(now, What::Lost(Iface::HOST, packet, reason.0.into()));
        }
    }

    pub(super) fn look_at_sockets(&mut self) {
        if self.records.is_some() {
            let now = self.clock.now();
            for mark in self.sockets.look(now) {
                self.record(now, What::Marked(mark));
            }
        }
    }

    pub(super) fn serve_clients(&mut self) {
        let (now, node, mut wishes) = (self.clock.now(), &self.node, Wishes::default());
        self.clients.serve(now, &|name| node.transport(name), &mut wishes);
        self.fulfil(wishes);
    }

    /// Whether a packet of this host's is on a connection that a role carries for a program.
    pub(super) fn is_a_clients(&mut self, packet: &Packet) -> bool {
        let mut wishes = Wishes::default();
        let is_taken = self.clients.takes(&packet.bytes, &mut wishes);
        self.fulfil(wishes);
        is_taken
    }

    pub(super) fn fulfil(&mut self, wishes: Wishes) {
        self.note(wishes);
        self.fulfil_all();
    }

    pub(super) fn note(&mut self, wishes: Wishes) {
        for bytes in wishes.datagrams {
            let _ = self.give_to_kernel(&bytes); // as on any way, what is lost is sent again
        }
        self.wished.extend(wishes.ops);
    }

    /// A datagram for the host's own stack.
    pub(super) fn give_to_kernel(&mut self, bytes: &[u8]) -> Result<()> {
        self.host.send(bytes)?;
        self.vitals.given_to_kernel += 1;
        Ok(())
    }

    pub(super) fn fulfil_all(&mut self) {
        while let Some((id, op)) = self.wished.next() {
            let now = self.clock.now();
            self.give(now, Input::Serve(id, op));
            self.clients.asked(id);
            self.wished.done();
        }
    }

    pub(super) fn tell(&mut self, told: Vec<Told>) {
        for told in told {
            let now = self.clock.now();
            if let Some(handed) = What::handed(&told, &self.node) {
                self.record(now, handed);
            }
            let (id, event) = told.event();
            self.give(now, Input::Stream(id, event));
        }
    }
}
