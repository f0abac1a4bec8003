//! Executes the node's acts: sends packets, operates streams, tunes radios, stores records.

use super::clients::ClientRequests;
use super::recorder::Recorder;
use super::sockets::{Done, Screened};
use super::{BATCH, Daemon};
use crate::Refusal;
use node::{Act, FailedAct, Fault, Input, Link};
use os::{Attempt, PacketSocket, Result};
use std::io::Write;
use trace::What;
use wire::{Cell, Iface, Instant, Mac, Packet, PacketId, Reason, ethernet, identity};

impl Daemon {
    pub(super) fn carry_out(&mut self, now: Instant) {
        self.carry_out_acts(now);
        while std::mem::take(&mut self.unstorable) > 0 {
            self.refuse_records(now, "no store is configured; set `daemon.store` to the path of a file");
            self.carry_out_acts(now);
        }
    }

    /// Returns an error if the effects of a role of this host exceeded the limit of one step. The daemon must end then:
    /// the role no longer follows its protocol.
    pub(super) fn check_rest(&mut self, host: &str) -> Result<()> {
        let Some(role) = self.out.take_runaway() else { return Ok(()) };
        let role = self.node.role_name(role);
        let why = format!(
            "its roles, in the end `{role}`, requested more than 100000 effects in one step; this is a defect of a role"
        );
        Err(std::io::Error::other(why)).attempt("continue", format_args!("host {host}"))
    }

    /// Resumes the node's acts that waited for records that are now stored, or withdraws them if storing failed.
    /// Handles at most [`BATCH`] results, and stops earlier when a time-out of the node is due.
    pub(super) fn handle_stored(&mut self) {
        for _ in 0..BATCH {
            let Some(storage) = &mut self.store else { return };
            let now = self.clock.now();
            if storage.durable(1) > 0 {
                self.report_store_failure(None);
                self.node.resume(now, 1, &mut self.out);
            } else if let Some(why) = storage.failure() {
                self.refuse_records(now, &why);
            } else {
                return;
            }
            self.carry_out(now);
            if self.node.deadline().is_some_and(|due| due <= self.clock.now()) {
                return;
            }
        }
    }

    pub(super) fn refuse_records(&mut self, now: Instant, why: &str) {
        self.report_store_failure(Some(why));
        self.node.withdraw(now, why, &mut self.out);
    }

    pub(super) fn carry_out_acts(&mut self, now: Instant) {
        // The data path follows first: from now on, packets of a route that has ended come to the node.
        self.follow_rules(now);
        let (mut told, mut requests) = (Vec::new(), ClientRequests::default());
        while let Some((role, act)) = self.out.next_act() {
            match act {
                Act::Transmit(iface, packet) => self.transmit_with_next(now, iface, packet),
                Act::Drop(iface, packet, reason) => {
                    let id = self.named(&packet);
                    self.drops.count(reason);
                    self.record(now, What::Dropped(iface, id, reason.0.into()));
                }
                Act::Tune(iface, cell) => {
                    self.record(now, What::Tuned(iface, cell));
                    if !self.radio.as_mut().is_some_and(|radio| radio.tune(now, iface, cell)) {
                        self.link_down(iface, Link::UNSUPPORTED);
                    } else if let Some(port) = self.port_mut(iface) {
                        port.state.tuning = true;
                    }
                }
                Act::SendInCell(iface, cell, packet) => self.visit(now, iface, cell, packet),
                Act::Stream(id, op) => {
                    if let Some(asked) = What::asked(id, &op, &self.node) {
                        self.record(now, asked);
                    }
                    let done = self.sockets.operate(id, op, &mut told);
                    self.operated(now, done);
                }
                Act::Served(told) => self.clients.told(now, told, &mut requests),
                Act::Mark(mark) => self.record(now, What::Marked(mark)),
                Act::Answer(id, answer) => {
                    self.record(now, What::Answered(answer.clone()));
                    if let Some(asked) = self.asked.remove(&id) {
                        self.answered(&asked, answer);
                    }
                }
                Act::Address(iface, address, is_added) => {
                    // The host's own stack has the address once, also if several interfaces of the node have it.
                    let has_changed =
                        self.host.has_address(address.address) != self.node.has_address(address.address);
                    let change = || self.host.change_address(&mut self.net, address.address, is_added);
                    if let Some(Err(error)) = has_changed.then(change) {
                        let (act, why) = (FailedAct::Address(iface, address, is_added), error.to_string());
                        self.give(now, Input::Failed(&Fault { role, act, why }));
                    }
                }
                Act::Store(key, value) => match &mut self.store {
                    Some(storage) => storage.ask((self.clock, self.measurements.end), key, value),
                    None => self.unstorable += 1,
                },
                Act::Delivered(event) => self.record(now, What::App(event)),
                // The daemon forwards by the node's own table, and the node answers ARP itself. So these acts need
                // nothing here.
                Act::Route(..) | Act::IngressPolicy(..) | Act::Neighbor(..) => {}
            }
        }
        self.queue_requests(requests);
        if !told.is_empty() {
            self.tell(told);
        }
        self.pass_requests();
    }

    pub(super) fn operated(&mut self, now: Instant, done: Done) {
        if let Some((packet, refused)) = done.sent {
            self.record(now, What::AppSent(packet));
            if let Some(refusal) = refused {
                self.drops.count(Reason(refusal.name()));
                self.record(now, What::Lost(Iface::HOST, packet, refusal.name().into()));
            }
        }
        for (packet, bytes) in done.released {
            if let Err(error) = self.give_to_kernel(&bytes) {
                self.refused(now, Iface::HOST, packet, &error);
            }
        }
        for (packet, reason, answer) in done.ended {
            self.reject_segment(now, packet, reason, answer);
        }
    }

    /// Drops the segment `packet`, which the kernel must not receive. If the segment has an `answer`, passes the answer
    /// to the node as if the host's own stack had sent it.
    pub(super) fn reject_segment(
        &mut self,
        now: Instant,
        packet: PacketId,
        reason: Reason,
        answer: Option<Vec<u8>>,
    ) {
        self.drops.count(reason);
        self.record(now, What::Lost(Iface::HOST, packet, reason.0.into()));
        if let Some(bytes) = answer {
            let answer = Packet { id: self.identify(&bytes), ..Packet::new(Mac::ZERO, bytes) };
            self.record(now, What::Received(Iface::HOST, answer.clone()));
            self.node.receive(now, Iface::HOST, answer, &mut self.out);
        }
    }

    /// Holds or drops a segment of a connection that is being moved, so that the kernel does not receive it. Returns
    /// whether `packet` is such a segment.
    pub(super) fn screened(&mut self, now: Instant, packet: &Packet) -> bool {
        match self.sockets.screen_in(packet.id, &packet.bytes) {
            Screened::Passes => return false,
            Screened::Held => self.record(now, What::Sent(Iface::HOST, packet.clone())),
            Screened::Ends(reason, answer) => {
                self.record(now, What::Sent(Iface::HOST, packet.clone()));
                self.reject_segment(now, packet.id, reason, answer);
            }
        }
        true
    }

    /// Reports to the operator that nothing can be stored, and when storing works again. Each change is reported
    /// once.
    pub(super) fn report_store_failure(&mut self, why: Option<&str>) {
        if why.is_some() == self.reported_store_failure.is_some() {
            return;
        }
        self.reported_store_failure = why.map(str::to_owned);
        // Standard error may be closed; that is no reason to end.
        let _ = match why {
            Some(why) => {
                writeln!(std::io::stderr(), "the store failed, so requests that need it are refused: {why}")
            }
            None => writeln!(std::io::stderr(), "the store works again"),
        };
    }

    /// Returns the identity of a packet. Only records show it. Without a recorder, packets are numbered, because the hash
    /// of a packet takes longer than to forward it.
    pub(super) fn identify(&mut self, bytes: &[u8]) -> PacketId {
        if self.records.is_some() {
            return identity(bytes);
        }
        self.buffers.next_number()
    }

    /// Returns a packet's identity. A packet that a role has just created has no identity yet; it gets one.
    fn named(&mut self, packet: &Packet) -> PacketId {
        if packet.id == PacketId::NEW { self.identify(&packet.bytes) } else { packet.id }
    }

    /// Sends a packet, and the packets of the next acts that the same interface sends, with one system call.
    fn transmit_with_next(&mut self, now: Instant, iface: Iface, packet: Packet) {
        let is_at_once = self.records.as_ref().is_some_and(Recorder::is_at_once);
        if is_at_once || self.port(iface).is_none() || !self.transmits_next(iface) {
            return self.transmit(now, iface, packet);
        }
        let mut packets = std::mem::take(&mut self.buffers.together);
        packets.push(packet);
        while packets.len() < PacketSocket::AT_ONCE && self.transmits_next(iface) {
            if let Some((_, Act::Transmit(_, packet))) = self.out.next_act() {
                packets.push(packet);
            }
        }
        for packet in &mut packets {
            packet.id = self.named(packet);
        }
        let mut refused = Vec::new();
        if let Some(port) = self.port(iface) {
            port.socket.send_packets(&packets, &mut |index, error| refused.push((index, error)));
        }
        let mut refused = refused.into_iter().peekable();
        for (index, packet) in packets.drain(..).enumerate() {
            let id = packet.id;
            self.sent(now, iface, packet);
            if let Some((_, error)) = refused.next_if(|(of, _)| *of == index) {
                self.refused(now, iface, id, &error);
            }
        }
        self.buffers.together = packets;
    }

    /// Returns whether the next act sends a packet by this interface.
    fn transmits_next(&self, iface: Iface) -> bool {
        self.out.first_act().is_some_and(|(_, act)| matches!(act, Act::Transmit(next, _) if *next == iface))
    }

    /// Records that a packet was sent. Without a recorder, keeps its buffer for another packet.
    fn sent(&mut self, now: Instant, iface: Iface, packet: Packet) {
        if self.records.is_some() {
            self.record(now, What::Sent(iface, packet));
        } else {
            self.buffers.give_back(packet.bytes);
        }
    }

    pub(super) fn transmit(&mut self, now: Instant, iface: Iface, mut packet: Packet) {
        packet.id = self.named(&packet);
        if iface == Iface::HOST && self.screened(now, &packet) {
            return;
        }
        let id = packet.id;
        if iface == Iface::HOST && self.records.is_some() {
            self.kernel_datagrams.note(id, &packet.bytes);
        }
        let sent = if self.records.as_ref().is_some_and(Recorder::is_at_once) {
            // The record is written first, so that a daemon that is killed has sent no packet without a record.
            self.record(now, What::Sent(iface, packet.clone()));
            self.flush_records();
            self.send(iface, &packet)
        } else {
            let done = self.send(iface, &packet);
            self.sent(now, iface, packet);
            done
        };
        if let Err(error) = sent {
            self.refused(now, iface, id, &error);
        }
    }

    fn send(&mut self, iface: Iface, packet: &Packet) -> Result<()> {
        match self.port(iface) {
            Some(port) => port.socket.send_payload(&packet.link, &packet.bytes),
            None => self.give_to_kernel(&packet.bytes),
        }
    }

    fn refused(&mut self, now: Instant, iface: Iface, packet: PacketId, error: &os::Error) {
        let refusal = Refusal::of_interface(error);
        self.drops.count(Reason(refusal.name()));
        self.record(now, What::Lost(iface, packet, refusal.name().into()));
    }

    pub(super) fn visit(&mut self, now: Instant, iface: Iface, cell: Cell, mut packet: Packet) {
        packet.id = self.named(&packet);
        if let Some(port) = self.port(iface) {
            packet.link.src = port.spec.mac;
        }
        let frame = ethernet::emit(&packet.link, &packet.bytes);
        let id = packet.id;
        self.record(now, What::Visited(iface, cell));
        self.record(now, What::Sent(iface, packet));
        self.flush_records();
        if !self.radio.as_mut().is_some_and(|radio| radio.visit(now, iface, cell, &frame)) {
            self.record(now, What::Lost(iface, id, "radio_unsupported".into()));
        }
    }
}
