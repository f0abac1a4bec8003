//! The transports of [`node::stream`] on Linux: kernel sockets of the namespace. Their packets use the host's veth
//! pair, like those of any program.

mod accept_limits;
mod error_text;
#[cfg(test)]
mod ingress_tests;
mod interests;
mod join;
pub(super) mod options;
mod relay;
#[cfg(test)]
mod relay_moves_tests;
#[cfg(test)]
mod relay_tests;
pub(super) mod repair;
mod requested_options;
mod restart_after_move;
mod sampler;
mod socket;
mod tcp;
#[cfg(test)]
mod tests;
mod udp;
#[cfg(test)]
mod udp_tests;
mod unacked_after_move;
mod wakes;
#[cfg(test)]
mod wakes_tests;

use crate::source::ReadySockets;
use node::guard::{self, Check, Guards};
use node::stream::{OwnedStreamEvent, refusal};
use node::{Guard, Mark, MigrateOp, StreamId, StreamOp, Transport, Tuple, Value};
use os::epoll::Epoll;
use rustix::io::Errno;
use sampler::Watch;
use std::sync::Arc;
use tcp::Tcp;
use udp::{Sent, Udp};
use wire::ipv4::Header;
use wire::{Instant, Ipv4Addr, PacketId, Reason, SocketAddrV4};

pub(crate) struct Sockets {
    udp: Udp,
    tcp: Tcp,
    /// Guards of tuples that are being moved. All packets of peers reach the kernel through the daemon, so the kernel
    /// does not get the packets that a guard holds or drops.
    guards: Guards,
    /// Number of streams that were accepted so far.
    accepted: u32,
    watch: Watch,
}

/// What happens to a segment before it reaches the kernel.
pub(crate) enum Screened {
    /// The segment is passed to the kernel.
    Passes,
    /// A guard holds the segment.
    Held,
    /// The segment is dropped for this reason. If there is a datagram, it is the answer to the segment.
    Ends(Reason, Option<Vec<u8>>),
}

/// The effects of an operation, except for the stream events.
#[derive(Default)]
pub(crate) struct Done {
    /// A datagram that was passed to the kernel, which may have refused it.
    pub(crate) sent: Option<Sent>,
    /// Datagrams that a guard held, and that must now be passed to the kernel.
    pub(crate) released: Vec<guard::Held>,
    /// Datagrams that a guard held, and that are dropped: their connection is frozen, the next guard does not hold
    /// them, or their stream has ended. Each has the reason, and the answer to the datagram if there is one.
    pub(crate) ended: Vec<(PacketId, Reason, Option<Vec<u8>>)>,
}

impl Sockets {
    /// Creates the transports without sockets; `epoll` will wait for their sockets.
    pub(crate) fn new(epoll: &Arc<Epoll>, address: Option<Ipv4Addr>) -> Self {
        let (udp, tcp) = (Udp::new(epoll, address), Tcp::new(epoll, address));
        Self { udp, tcp, guards: Guards::default(), accepted: 0, watch: Watch::default() }
    }

    /// Limits the window that is offered to TCP peers, in bytes.
    pub(crate) fn offering(mut self, window: Option<u32>) -> Self {
        self.tcp.window = window;
        self
    }

    /// Limits the number of TCP sockets to a share of `descriptors`, the number of descriptors that this process may
    /// have.
    pub(crate) fn sharing(mut self, descriptors: usize) -> Self {
        self.tcp.share(descriptors);
        self
    }

    /// Returns when the next listener may be polled again after a failed `accept`; `None` if no listener is paused.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.tcp.callers.deadline()
    }

    /// Ends the pause of each listener that may be polled again after a failed `accept`.
    pub(crate) fn wake(&mut self, now: Instant) {
        self.tcp.callers.wake(now);
    }

    /// Returns the number of datagrams that the kernel dropped because the buffer of their socket was full.
    pub(crate) fn overflowed(&self) -> u64 {
        self.udp.overflowed()
    }

    /// Returns why connections of peers were refused since the last call, one reason for each.
    pub(crate) fn take_refused(&mut self) -> Vec<Reason> {
        self.tcp.callers.take_refused()
    }

    /// Notifies the kernel what the sockets wait for from now on. Call it before each wait.
    pub(crate) fn update_interests(&mut self) -> Result<(), Errno> {
        self.tcp.update_interests()
    }

    pub(crate) fn operate(&mut self, id: StreamId, op: StreamOp, told: &mut Vec<OwnedStreamEvent>) -> Done {
        let by = match &op {
            StreamOp::Open { by, .. } | StreamOp::Listen { by, .. } => *by,
            StreamOp::Migrate(MigrateOp::Import(_) | MigrateOp::Guard(..)) => Transport::Tcp,
            _ if self.udp.has(id) => Transport::Udp,
            _ => Transport::Tcp,
        };
        match (by, op) {
            (Transport::Udp, op) => self.udp.operate(id, op, &mut self.accepted, told),
            (Transport::Tcp, StreamOp::Migrate(MigrateOp::Guard(tuple, guard))) => {
                self.guard(id, tuple, guard, told)
            }
            (Transport::Tcp, op) => {
                let guards = &self.guards;
                self.tcp.operate(id, op, &|tuple| guards.has(tuple), told);
                Done::default()
            }
            // A node handles the operations on its own roles' streams itself.
            (Transport::Role(_), _) => {
                told.push(OwnedStreamEvent::Closed(id, Some(refusal::NO_TRANSPORT.to_owned())));
                Done::default()
            }
        }
    }

    fn guard(
        &mut self,
        id: StreamId,
        tuple: Tuple,
        guard: Option<Guard>,
        told: &mut Vec<OwnedStreamEvent>,
    ) -> Done {
        let mut done = Done::default();
        let Some(released) = self.guards.set(tuple, guard) else {
            told.push(OwnedStreamEvent::refused(id, refusal::FULL));
            return done;
        };
        // Before this host sends the first byte, it must know which bytes the peer has received. The last held segment
        // has the most recent acknowledgment.
        for (_, bytes) in released.iter().rev().filter(|_| guard.is_none()) {
            if let Some((header, payload)) = self.segment(bytes)
                && let Ok(segment) = ::tcp::Segment::parse(payload, header.src, header.dst)
            {
                self.tcp.catch_up(&tuple, &segment);
            }
        }
        // First the connection resumes. Then it receives the segments that the guard held.
        self.tcp.guard(&tuple, guard.is_some(), told);
        for (packet, bytes) in released {
            match self.screen_in(packet, &bytes) {
                Screened::Passes => done.released.push((packet, bytes)),
                Screened::Held => {}
                Screened::Ends(reason, answer) => done.ended.push((packet, reason, answer)),
            }
        }
        done
    }

    /// Returns the events of data that have arrived at these sockets, as far as roles have asked for them. Each call
    /// reads a limited amount of each socket. Datagrams that could not be kept are returned with the reason.
    pub(crate) fn receive(
        &mut self,
        ready: &ReadySockets,
    ) -> (Vec<OwnedStreamEvent>, Vec<(PacketId, Reason)>) {
        let (mut told, lost) = self.udp.receive(&ready.udp, &mut self.accepted);
        self.tcp.receive(&ready.tcp, &mut self.accepted, &mut told);
        (told, lost)
    }

    /// Returns all sockets, for the end of a run.
    pub(crate) fn all(&self) -> ReadySockets {
        ReadySockets { udp: self.udp.all(), tcp: self.tcp.sockets.keys().copied().collect() }
    }

    /// Checks a datagram on its path to the kernel.
    pub(crate) fn screen_in(&mut self, id: PacketId, bytes: &[u8]) -> Screened {
        let Some((header, payload)) = self.segment(bytes) else { return Screened::Passes };
        let Some((src, dst)) = ends(&header, payload) else { return Screened::Passes };
        let tuple = Tuple { local: dst, remote: src };
        self.tcp.stir(&tuple);
        match self.guards.check(&tuple, id, bytes) {
            Check::Pass if self.tcp.is_frozen(&tuple) => Screened::Ends(guard::FROZEN, None),
            Check::Pass => {
                self.observe(&tuple, &header, payload);
                Screened::Passes
            }
            Check::Held => Screened::Held,
            Check::Ends(reason) => {
                let answer = if reason == guard::GUARD_RESET { reset(&header, payload) } else { None };
                Screened::Ends(reason, answer)
            }
        }
    }

    /// Handles a segment that is about to reach a socket. If the connection was moved from another host, the segment
    /// may acknowledge data that only that host has sent.
    fn observe(&mut self, tuple: &Tuple, header: &Header, payload: &[u8]) {
        if self.tcp.has_unacked()
            && let Ok(segment) = ::tcp::Segment::parse(payload, header.src, header.dst)
        {
            self.tcp.observe(tuple, &segment);
        }
    }

    /// Checks a datagram from the kernel. Returns the reason to drop the datagram if its tuple is guarded or frozen:
    /// the kernel must send nothing on a connection that is being moved.
    pub(crate) fn screen_out(&self, bytes: &[u8]) -> Option<Reason> {
        let (header, payload) = self.segment(bytes)?;
        let (src, dst) = ends(&header, payload)?;
        let tuple = Tuple { local: src, remote: dst };
        (self.guards.has(&tuple) || self.tcp.is_frozen(&tuple)).then_some(guard::FROZEN)
    }

    /// Returns the header and the payload of a TCP segment; `None` for any other datagram. Also returns `None` if no
    /// segment must be checked at present. Segments must be checked if a tuple is guarded or frozen, if a connection
    /// has unacknowledged data of a former host, or if a relay holds bytes.
    fn segment<'a>(&self, bytes: &'a [u8]) -> Option<(Header, &'a [u8])> {
        let moves = !self.guards.is_empty() || self.tcp.has_frozen() || self.tcp.has_unacked();
        if !moves && !self.tcp.wakes.has_loaded() {
            return None;
        }
        Header::parse(bytes).ok().filter(|(header, _)| header.protocol == ::tcp::PROTOCOL)
    }

    pub(crate) fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        self.udp.holds(each);
        self.guards.holds(each);
    }

    /// Returns marks with the values of TCP sockets that have changed, if the last sample was at least 20 ms ago.
    pub(crate) fn look(&mut self, now: Instant) -> Vec<Mark> {
        self.watch.look(now, &self.tcp.sockets)
    }

    /// Returns the kernel's values for each open TCP socket, and the last values of the last 1024 closed ones.
    pub(crate) fn accounts(&self) -> Value {
        Value::List(self.tcp.accounts())
    }
}

fn ends(header: &Header, payload: &[u8]) -> Option<(SocketAddrV4, SocketAddrV4)> {
    let [a, b, c, d] = *payload.first_chunk()?;
    let port = |high, low| u16::from_be_bytes([high, low]);
    Some((SocketAddrV4::new(header.src, port(a, b)), SocketAddrV4::new(header.dst, port(c, d))))
}

/// Returns the reset that answers a segment (RFC 9293, section 3.10.7.1); `None` if the segment is malformed or is a
/// reset.
pub(super) fn reset(header: &Header, payload: &[u8]) -> Option<Vec<u8>> {
    let segment = ::tcp::Segment::parse(payload, header.src, header.dst).ok()?;
    let bytes = segment.refusal()?.emit(header.dst, header.src);
    Some(Header::new(::tcp::PROTOCOL, header.dst, header.src).emit(&bytes))
}
