//! Programs of this host that request connections through its roles. The crate `client` is the program's side.
//!
//! After its request, the program connects to the true destination. The host's only route leads to the daemon, so the
//! daemon gets the program's SYN. The daemon holds the SYN until the role has an answer. If the role is connected, the
//! daemon passes the SYN back to the kernel, where a socket now listens on the destination's address
//! (`IP_TRANSPARENT`). The daemon also passes later segments of this connection back to the kernel.
//!
//! If the role could not connect, a reset or an ICMP error answers the SYN. So the program's own TCP reports the error
//! that the role got. After a time-out, nothing answers the SYN. The node, the ledger and the links never see the
//! segments of a program's connection, like packets over the loopback.

mod bridge;
mod listener;
#[cfg(test)]
mod tests;

use super::host_link::{self, KERNEL_SIDE};
use super::sockets::{options, repair, reset};
use super::source::{ReadyClients, Source};
use bridge::Bridge;
pub(super) use listener::ClientListener;
pub use listener::is_open_to_programs;
use listener::{ProgramRequest, Requester};
use node::stream::{OwnedStreamEvent, refusal};
use node::{Addr, Expiry, StreamId, StreamOp, Transport};
use os::epoll::{Epoll, Events, Watched};
use os::{Result, namespace::sysctl};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, accept_with, bind, getpeername, ipproto, listen, socket_with,
    sockopt,
};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use wire::icmp::IcmpError;
use wire::ipv4::Header;
use wire::{Duration, Instant, Ipv4Addr, SocketAddrV4};

/// Largest number of connections of programs. At this number, a new one replaces an ended one; if none has ended, the
/// request is refused with `ENOBUFS`.
const MOST: usize = 1024;
const BACKLOG: i32 = 64;
/// Time within which a program must connect after its request.
const SOON: Duration = Duration::from_secs(10);
/// How long the daemon remembers an ended connection, because segments of it may still arrive: twice the kernel's
/// TIME-WAIT.
const LATE: Duration = Duration::from_mins(2);

pub(crate) struct Clients {
    epoll: Arc<Epoll>,
    listener: Option<ClientListener>,
    own: Option<Ipv4Addr>,
    connections: BTreeMap<StreamId, Connection>,
    by_ends: BTreeMap<Ends, StreamId>,
    /// Sockets that listen on the addresses of the destinations to which programs are being connected.
    listeners: BTreeMap<Addr, Watched<OwnedFd>>,
    /// The destinations at whose listeners `accept` failed, for example because no descriptor was left. They are tried
    /// again.
    resting: BTreeSet<Addr>,
    /// Whether some of the listeners in `listeners` may not be needed any more.
    check_listeners: bool,
    /// Connections that may wait for other events than before.
    touched: BTreeSet<StreamId>,
    expiry: Expiry<StreamId>,
    next: u32,
    /// The connections that were visited, for tests.
    #[cfg(test)]
    visits: Vec<StreamId>,
}

/// The program's port and the peer of a program's connection. The program's address is an address of this host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ends {
    port: u16,
    peer: Addr,
}

struct Connection {
    ends: Ends,
    state: State,
    /// Bytes that the role still accepts.
    credit: usize,
}

enum State {
    /// The role was requested to connect. `requester` waits for the daemon's answer, and `syn` is the SYN that the
    /// program has sent since.
    Asked {
        requester: Option<Requester>,
        program: OwnedFd,
        syn: Option<Vec<u8>>,
    },
    /// The role is connected, and the program is about to connect.
    Opened,
    Bridge(Bridge),
    /// The role could not connect, or its connection ended before the program was connected.
    Refused(Errno),
    Over,
}

/// What the daemon must do for the programs' connections.
#[derive(Default)]
pub(crate) struct ClientRequests {
    /// Operations for the roles.
    pub(crate) ops: Vec<(StreamId, StreamOp)>,
    /// Datagrams for the host's own stack.
    pub(crate) datagrams: Vec<Vec<u8>>,
}

impl Clients {
    pub(crate) fn open(
        epoll: &Arc<Epoll>,
        listener: Option<ClientListener>,
        own: Option<Ipv4Addr>,
    ) -> Result<Self> {
        if listener.is_some() {
            host_link::accept_foreign_addresses()?;
            // Segments return to the host with one of its own addresses as their source.
            sysctl(&format!("net/ipv4/conf/{KERNEL_SIDE}/accept_local"), "1")?;
        }
        Ok(Self {
            epoll: Arc::clone(epoll),
            listener,
            own,
            connections: BTreeMap::new(),
            by_ends: BTreeMap::new(),
            listeners: BTreeMap::new(),
            resting: BTreeSet::new(),
            check_listeners: false,
            touched: BTreeSet::new(),
            expiry: Expiry::default(),
            next: 0,
            #[cfg(test)]
            visits: Vec::new(),
        })
    }

    /// Notifies the kernel what the sockets wait for from now on. Call it before each wait.
    pub(crate) fn update_interests(&mut self) -> std::result::Result<(), Errno> {
        if let Some(listener) = &mut self.listener {
            listener.update_interest()?;
        }
        for (peer, listener) in &mut self.listeners {
            listener.want(if self.resting.contains(peer) { Events::empty() } else { Events::IN })?;
        }
        while let Some(id) = self.touched.pop_first() {
            if let Some(Connection { state: State::Bridge(carried), credit, .. }) =
                self.connections.get_mut(&id)
            {
                carried.update_interest(*credit)?;
            }
        }
        Ok(())
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let listener = self.listener.as_ref().and_then(ClientListener::deadline);
        self.expiry.next().into_iter().chain(listener).min()
    }

    /// Returns whether a waiting program could not be accepted. The caller tries again after a short pause.
    pub(crate) fn rests(&self) -> bool {
        !self.resting.is_empty() || self.listener.as_ref().is_some_and(ClientListener::rests)
    }

    /// Limits the number of silent programs to a share of `descriptors`, the number of descriptors that this process
    /// may have.
    pub(crate) fn sharing(mut self, descriptors: usize) -> Self {
        if let Some(listener) = &mut self.listener {
            listener.share(descriptors);
        }
        self
    }

    /// Handles new requests of programs, and their data and connections, at the sockets in `ready`. `transport` finds a
    /// transport by its name.
    pub(crate) fn serve(
        &mut self,
        now: Instant,
        ready: ReadyClients,
        transport: &dyn Fn(&str) -> Option<Transport>,
        requests: &mut ClientRequests,
    ) {
        for wanted in self.listener.as_mut().map(|listener| listener.hear(now, &ready)).unwrap_or_default() {
            self.admit(now, wanted, transport, requests);
        }
        while let Some(id) = self.expiry.pop(now) {
            self.expire(id, requests);
        }
        let mut bridges = ready.bridges;
        let mut stand_ins = std::mem::take(&mut self.resting);
        stand_ins.extend(ready.stand_ins);
        for peer in stand_ins {
            self.accept(peer, &mut bridges);
        }
        if std::mem::take(&mut self.check_listeners) {
            self.close_listeners();
        }
        for id in bridges {
            self.pump(now, id, requests);
        }
    }

    fn admit(
        &mut self,
        now: Instant,
        wanted: ProgramRequest,
        transport: &dyn Fn(&str) -> Option<Transport>,
        requests: &mut ClientRequests,
    ) {
        let ProgramRequest { requester, request, program } = wanted;
        let peer = request.peer;
        if repair::is_ours(peer) {
            return requester.accept(); // it uses the loopback, which does not lead here
        }
        let Some(by) = transport(request.transport.as_str()) else {
            return requester.answer(Errno::PROTONOSUPPORT);
        };
        let own = self.own.ok_or(Errno::NETUNREACH);
        let local = match own.and_then(|own| listener::bound(&program, own)) {
            Ok(local) => local,
            Err(error) => return requester.answer(error),
        };
        let Some(id) = self.number() else { return requester.answer(Errno::NOBUFS) };
        let ends = Ends { port: local.port(), peer };
        // An older connection with the same ends is forgotten: the program's port now belongs to the new connection.
        if let Some(old) = self.by_ends.insert(ends, id) {
            self.forget(old);
            self.by_ends.insert(ends, id);
        }
        let state = State::Asked { requester: Some(requester), program, syn: None };
        self.connections.insert(id, Connection { ends, state, credit: 0 });
        self.expiry.set(id, now + SOON);
        requests.ops.push((id, StreamOp::Open { by, local: Some(local), peer, foreign: false }));
    }

    /// Returns the next free number. If there are [`MOST`] connections, removes the ended connection with the lowest
    /// number first; returns `None` if no connection has ended.
    fn number(&mut self) -> Option<StreamId> {
        if self.connections.len() >= MOST {
            let is_over =
                |connection: &Connection| matches!(connection.state, State::Over | State::Refused(_));
            let oldest = self.connections.iter().find(|(_, connection)| is_over(connection));
            let oldest = oldest.map(|(id, _)| *id)?;
            self.forget(oldest);
        }
        for _ in 0..=MOST {
            let id = StreamId(StreamId::OUTSIDE + self.next % StreamId::OWN);
            self.next = self.next.wrapping_add(1);
            if !self.connections.contains_key(&id) {
                return Some(id);
            }
        }
        None
    }

    /// Answers a program that it may connect. Does nothing if the program was answered before.
    pub(crate) fn asked(&mut self, id: StreamId) {
        if let Some(Connection { state: State::Asked { requester, .. }, .. }) = self.connections.get_mut(&id)
            && let Some(requester) = requester.take()
        {
            requester.accept();
        }
    }

    /// Handles a segment from the host's own stack that belongs to a program's connection: keeps the SYN until the role
    /// has an answer, answers a segment of a refused connection, and passes any other segment back to the host's own
    /// stack. Returns false for a datagram that belongs to no such connection.
    pub(crate) fn takes(&mut self, bytes: &[u8], requests: &mut ClientRequests) -> bool {
        if self.by_ends.is_empty() {
            return false;
        }
        let Some(ends) = ends_of(bytes) else { return false };
        let Some(id) = self.by_ends.get(&ends).copied() else { return false };
        let Some(connection) = self.connections.get_mut(&id) else { return false };
        match &mut connection.state {
            State::Asked { syn, .. } => {
                *syn = Some(bytes.to_vec());
                self.expiry.stop(id); // from now on the role limits the time
            }
            State::Refused(error) => requests.datagrams.extend(answer(*error, bytes)),
            State::Opened | State::Bridge(_) | State::Over => requests.datagrams.push(bytes.to_vec()),
        }
        true
    }

    /// Handles an event of a role's stream that carries a program's connection.
    pub(crate) fn told(&mut self, now: Instant, told: OwnedStreamEvent, requests: &mut ClientRequests) {
        let (id, _) = told.event();
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match told {
            OwnedStreamEvent::Opened(..) => return self.opened(now, id, requests),
            OwnedStreamEvent::Closed(_, why) => return self.closed(now, id, why.as_deref(), requests),
            OwnedStreamEvent::Room(_, more) => connection.credit += more,
            OwnedStreamEvent::Data(_, _, bytes) => {
                if let State::Bridge(carried) = &mut connection.state {
                    carried.data(bytes);
                }
            }
            OwnedStreamEvent::Finished(_) => {
                if let State::Bridge(carried) = &mut connection.state {
                    carried.finish();
                }
            }
            // These are events of listeners and of connections that move. A program requests neither.
            OwnedStreamEvent::Accepted { .. } | OwnedStreamEvent::Migrate(..) => {}
        }
        self.pump(now, id, requests);
    }

    fn opened(&mut self, now: Instant, id: StreamId, requests: &mut ClientRequests) {
        self.asked(id);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let State::Asked { syn, .. } = &mut connection.state else { return };
        let (syn, peer) = (syn.take(), connection.ends.peer);
        // This closes the daemon's copy of the program's socket. So from now on the program's own close ends the
        // socket.
        connection.state = State::Opened;
        if let Err(error) = self.stand_in(peer) {
            requests.ops.push((id, StreamOp::Abort));
            return self.refuse(now, id, error, syn, requests);
        }
        self.expiry.set(id, now + SOON);
        requests.datagrams.extend(syn);
    }

    /// Listens on the address of a destination.
    fn stand_in(&mut self, peer: Addr) -> std::result::Result<(), Errno> {
        if self.listeners.contains_key(&peer) {
            return Ok(());
        }
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(AddressFamily::INET, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        options::set(&fd, libc::SOL_IP, libc::IP_TRANSPARENT, 1)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        sockopt::set_socket_reuseaddr(&fd, true)?;
        bind(&fd, &peer)?;
        listen(&fd, BACKLOG)?;
        let fd = Watched::new(&self.epoll, fd, Source::StandIn(peer).token(), Events::IN)?;
        self.listeners.insert(peer, fd);
        Ok(())
    }

    /// Accepts the programs that have connected to the address of this destination, and adds their connections to
    /// `new`.
    fn accept(&mut self, peer: Addr, new: &mut BTreeSet<StreamId>) {
        let Some(listener) = self.listeners.get(&peer) else { return };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        loop {
            let socket = match accept_with(&**listener, flags) {
                Ok(socket) => socket,
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(_) => {
                    self.resting.insert(peer);
                    return;
                }
            };
            let from = getpeername(&socket).ok().flatten().and_then(|from| SocketAddrV4::try_from(from).ok());
            let id = from.and_then(|from| self.by_ends.get(&Ends { port: from.port(), peer }));
            let Some(id) = id else {
                refuse(socket);
                continue;
            };
            if let Some(connection) = self.connections.get_mut(id)
                && matches!(connection.state, State::Opened)
                && let Ok(socket) =
                    Watched::new(&self.epoll, socket, Source::Bridge(*id).token(), Events::empty())
            {
                connection.state = State::Bridge(Bridge::new(socket));
                self.expiry.stop(*id);
                self.check_listeners = true;
                new.insert(*id);
            }
        }
    }

    /// Closes the listeners to which no program is about to connect.
    fn close_listeners(&mut self) {
        let opened = self.connections.values().filter(|c| matches!(c.state, State::Opened));
        let awaited: BTreeSet<Addr> = opened.map(|connection| connection.ends.peer).collect();
        self.listeners.retain(|peer, _| awaited.contains(peer));
    }

    fn pump(&mut self, now: Instant, id: StreamId, requests: &mut ClientRequests) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let State::Bridge(carried) = &mut connection.state else { return };
        #[cfg(test)]
        self.visits.push(id);
        self.touched.insert(id);
        match carried.pump(id, &mut connection.credit, &mut requests.ops) {
            Ok(false) => {}
            Ok(true) => self.end(now, id, State::Over),
            Err(_) => {
                requests.ops.push((id, StreamOp::Abort));
                self.end(now, id, State::Over);
            }
        }
    }

    fn closed(&mut self, now: Instant, id: StreamId, why: Option<&str>, requests: &mut ClientRequests) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        self.check_listeners = true;
        match std::mem::replace(&mut connection.state, State::Over) {
            State::Asked { requester, program, syn } => {
                let error = error_of(why);
                if error == Errno::TIMEDOUT {
                    // No datagram can report a time-out. With this limit, the program's own TCP reports the time-out
                    // when it would repeat the SYN once more.
                    let _ = options::set(&program, libc::IPPROTO_TCP, libc::TCP_SYNCNT, 1);
                }
                if let Some(requester) = requester {
                    requester.answer(error);
                    self.forget(id);
                } else {
                    self.refuse(now, id, error, syn, requests);
                }
            }
            State::Bridge(mut carried) if why.is_none() => {
                carried.close();
                connection.state = State::Bridge(carried);
                self.pump(now, id, requests);
            }
            State::Bridge(carried) => {
                carried.reset();
                self.end(now, id, State::Over);
            }
            // The handshake of the program's own TCP may be incomplete. Its next segment is answered by a reset.
            State::Opened => self.end(now, id, State::Refused(Errno::CONNRESET)),
            state @ (State::Refused(_) | State::Over) => connection.state = state,
        }
    }

    fn refuse(
        &mut self,
        now: Instant,
        id: StreamId,
        error: Errno,
        syn: Option<Vec<u8>>,
        requests: &mut ClientRequests,
    ) {
        requests.datagrams.extend(syn.and_then(|syn| answer(error, &syn)));
        self.end(now, id, State::Refused(error));
    }

    fn end(&mut self, now: Instant, id: StreamId, state: State) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.state = state;
            self.expiry.set(id, now + LATE);
        }
    }

    /// Handles the expired time limit of a connection, and forgets the connection. If its program did not connect after
    /// its request, the role's stream is aborted.
    fn expire(&mut self, id: StreamId, requests: &mut ClientRequests) {
        let is_open =
            |connection: &Connection| matches!(connection.state, State::Asked { .. } | State::Opened);
        if self.connections.get(&id).is_some_and(is_open) {
            requests.ops.push((id, StreamOp::Abort));
        }
        self.forget(id);
    }

    fn forget(&mut self, id: StreamId) {
        self.expiry.stop(id);
        self.check_listeners = true;
        if let Some(connection) = self.connections.remove(&id)
            && self.by_ends.get(&connection.ends) == Some(&id)
        {
            self.by_ends.remove(&connection.ends);
        }
    }
}

/// Returns the ends of a TCP segment from this host; `None` for any other datagram.
/// Ends a connection that no role serves with a reset, so that the program does not take it for an answered one.
fn refuse(socket: OwnedFd) {
    let _ = sockopt::set_socket_linger(&socket, Some(std::time::Duration::ZERO));
    drop(socket);
}

fn ends_of(bytes: &[u8]) -> Option<Ends> {
    let (header, payload) = Header::parse(bytes).ok()?;
    let [a, b, c, d] = *payload.first_chunk().filter(|_| header.protocol == ::tcp::PROTOCOL)?;
    let peer = Addr::new(header.dst, u16::from_be_bytes([c, d]));
    Some(Ends { port: u16::from_be_bytes([a, b]), peer })
}

/// Returns the error of a program's `connect` for a reason of [`refusal`]; `EHOSTUNREACH` for any other reason.
fn error_of(why: Option<&str>) -> Errno {
    match why {
        Some(refusal::REFUSED) => Errno::CONNREFUSED,
        Some(refusal::RESET) => Errno::CONNRESET,
        Some(refusal::TIMED_OUT) => Errno::TIMEDOUT,
        Some(refusal::IN_USE) => Errno::ADDRINUSE,
        Some(refusal::NO_ADDRESS) => Errno::NETUNREACH,
        Some(refusal::NO_TRANSPORT) => Errno::PROTONOSUPPORT,
        Some(refusal::FULL) => Errno::NOBUFS,
        Some(refusal::NOT_OURS) => Errno::ADDRNOTAVAIL,
        _ => Errno::HOSTUNREACH,
    }
}

/// Returns the datagram that makes a kernel report this error for one of its segments, or the nearest error that a
/// datagram can report. Returns `None` for a time-out, which no datagram reports.
fn answer(error: Errno, segment: &[u8]) -> Option<Vec<u8>> {
    let (header, payload) = Header::parse(segment).ok()?;
    match error {
        Errno::CONNREFUSED | Errno::CONNRESET => reset(&header, payload),
        Errno::TIMEDOUT => None,
        Errno::NETUNREACH => IcmpError::NetUnreachable.about(segment, header.dst),
        _ => IcmpError::HostUnreachable.about(segment, header.dst),
    }
}
