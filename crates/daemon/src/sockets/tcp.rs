//! [`node::Transport::Tcp`] on Linux: the kernel's TCP, without blocking.

use super::accept_limits::AcceptLimits;
use super::error_text::error_text;
use super::relay::Relay;
use super::requested_options::{RequestedOptions, for_bytes};
use super::socket::{Ended, Socket};
use super::unacked_after_move::Unacked;
use super::wakes::Wakes;
use super::{options, repair};
use crate::host_link;
use crate::source::Source;
use node::stream::{OwnedMigrateEvent, OwnedStreamEvent};
use node::{Addr, MigrateOp, StreamId, StreamOp, Tuple, Value};
use os::epoll::{Epoll, Events, Watched};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, accept_with, bind, connect, getpeername, getsockname, ipproto,
    listen, socket_with, sockopt,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use wire::{Ipv4Addr, SocketAddrV4, TcpState};

/// Largest number of TCP sockets of one daemon. A role's request for another one is refused; connections of peers wait
/// in the kernel's queue.
const MOST: usize = 4096;
/// Returns how many of `sockets` sockets may be connections that peers open. The others are for roles.
const fn callers_of(sockets: usize) -> usize {
    if sockets < 2 { 1 } else { sockets * 4 / 5 }
}

/// Largest number of connections of one listener that may wait in the kernel to be accepted.
const BACKLOG: i32 = 128;
/// Largest number of closed sockets whose last values are kept.
const ACCOUNTS: usize = 1024;

/// A listening socket, and the options of the connections that it accepts.
pub(super) struct Listener {
    pub(super) fd: Watched<OwnedFd>,
    knobs: RequestedOptions,
}

pub(super) struct Tcp {
    pub(super) epoll: Arc<Epoll>,
    address: Option<Ipv4Addr>,
    /// The largest window that the sockets offer, in bytes; `None` for the kernel's choice.
    pub(super) window: Option<u32>,
    pub(super) listeners: BTreeMap<StreamId, Listener>,
    /// Options that were set on streams that are not open yet.
    knobs: BTreeMap<StreamId, RequestedOptions>,
    pub(super) sockets: BTreeMap<StreamId, Socket>,
    /// The stream of each tuple.
    pub(super) by_tuple: BTreeMap<Tuple, StreamId>,
    /// The tuples that are frozen, as a rule none. They are looked up for each packet to and from the host.
    frozen: BTreeSet<Tuple>,
    /// The tuples on which a former host had sent data. They are looked up for each packet to the host.
    pub(super) unacked: BTreeSet<Tuple>,
    /// The relays, by the stream that created them.
    pub(super) relays: BTreeMap<StreamId, Relay>,
    pub(super) wakes: Wakes,
    accounts: VecDeque<Value>,
    /// Largest number of TCP sockets of this daemon: [`MOST`], or fewer if the process may have few descriptors.
    most: usize,
    pub(super) callers: AcceptLimits,
    /// Whether the kernel accepts datagrams for foreign addresses.
    accepts_foreign: bool,
}

impl Tcp {
    pub(super) fn new(epoll: &Arc<Epoll>, address: Option<Ipv4Addr>) -> Self {
        Self {
            epoll: Arc::clone(epoll),
            address,
            window: None,
            listeners: BTreeMap::new(),
            knobs: BTreeMap::new(),
            sockets: BTreeMap::new(),
            by_tuple: BTreeMap::new(),
            frozen: BTreeSet::new(),
            unacked: BTreeSet::new(),
            relays: BTreeMap::new(),
            wakes: Wakes::default(),
            accounts: VecDeque::new(),
            most: MOST,
            callers: AcceptLimits::new(callers_of(MOST)),
            accepts_foreign: false,
        }
    }

    /// Limits the number of TCP sockets, so that descriptors are left for other purposes. The limit is five eighths of
    /// `descriptors`, the number of descriptors that this process may have, and at most [`MOST`]. Four fifths of the
    /// sockets are for connections that peers open.
    pub(super) fn share(&mut self, descriptors: usize) {
        self.most = MOST.min(descriptors / 2 + descriptors / 8);
        self.callers = AcceptLimits::new(callers_of(self.most));
    }

    /// Returns whether a listener may accept another connection. If not, the connection waits in the kernel's queue.
    pub(super) fn may_accept(&self, listener: StreamId) -> bool {
        self.has_room() && self.callers.is_asked(listener)
    }

    /// Returns whether any listener may accept another connection.
    pub(super) fn has_room(&self) -> bool {
        self.sockets.len() < self.most && self.callers.has_room()
    }

    pub(super) fn operate(
        &mut self,
        id: StreamId,
        op: StreamOp,
        guarded: &dyn Fn(&Tuple) -> bool,
        told: &mut Vec<OwnedStreamEvent>,
    ) {
        self.wakes.touch(id);
        match op {
            StreamOp::Open { local, peer, foreign, .. } => {
                let knobs = self.knobs.remove(&id).unwrap_or_default();
                let opened = self.connect(id, local, peer, foreign, knobs);
                self.add(id, opened, told);
            }
            StreamOp::Listen { local, foreign, .. } => {
                let knobs = self.knobs.remove(&id).unwrap_or_default();
                match self.listen(id, local, foreign, knobs) {
                    Ok(fd) => {
                        self.listeners.insert(id, Listener { fd, knobs });
                        told.push(OwnedStreamEvent::Opened(id, local));
                    }
                    Err(error) => told.push(OwnedStreamEvent::Closed(id, Some(error_text(error)))),
                }
            }
            StreamOp::Migrate(MigrateOp::Import(state)) => {
                let knobs = self.knobs.remove(&id).unwrap_or_default();
                let mut imported = self.import(id, &state);
                if let Ok(socket) = &mut imported {
                    socket.knobs = knobs;
                    knobs.apply(&socket.fd);
                    socket.guarded = guarded(&socket.tuple);
                    told.push(OwnedStreamEvent::Migrate(id, OwnedMigrateEvent::Imported));
                }
                self.add(id, imported, told);
            }
            StreamOp::Finish | StreamOp::Abort | StreamOp::Migrate(MigrateOp::Forget)
                if self.listeners.contains_key(&id) =>
            {
                self.listeners.remove(&id);
                told.push(OwnedStreamEvent::Closed(id, None));
            }
            StreamOp::Migrate(MigrateOp::Join(other, staged)) => self.join(id, other, staged, told),
            StreamOp::Migrate(MigrateOp::Part) => self.part(id, told),
            StreamOp::Set(knob) if !self.sockets.contains_key(&id) => {
                // A stream that was accepted and has ended will not be opened again.
                if self.knobs.len() < MOST && id.0 < StreamId::SERVED && !self.listeners.contains_key(&id) {
                    self.knobs.entry(id).or_default().note(knob);
                }
            }
            op => {
                let Some(socket) = self.sockets.get_mut(&id) else { return };
                let ended = socket.operate(id, op, told);
                self.settle(id, ended, told);
            }
        }
    }

    /// Serves the sockets in `ready`, and those with an event that the kernel does not report: accepts connections,
    /// reads, and writes as far as there is room. Then moves the bytes of their relays. The order of `ready` does not
    /// matter.
    pub(super) fn receive(
        &mut self,
        ready: &[StreamId],
        accepted: &mut u32,
        told: &mut Vec<OwnedStreamEvent>,
    ) {
        let mut relays = self.wakes.take_stirred();
        for id in self.with_news(ready) {
            self.wakes.visit(id);
            for _ in 0..BACKLOG {
                if !self.may_accept(id) || !self.accept(id, accepted, told) {
                    break;
                }
            }
            let Some(socket) = self.sockets.get_mut(&id) else { continue };
            relays.extend(socket.joined);
            let ended = socket.serve(id, told);
            self.conclude(id, ended, told);
        }
        for relay in relays {
            self.pump(relay, told);
        }
    }

    /// Notes that a tuple has got a guard or lost it. A thawed connection resumes when its tuple loses the guard.
    pub(super) fn guard(&mut self, tuple: &Tuple, guarded: bool, told: &mut Vec<OwnedStreamEvent>) {
        let Some(id) = self.by_tuple.get(tuple).copied() else { return };
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        socket.guarded = guarded;
        self.wakes.touch(id);
        let ended = socket.go_on(id, told);
        self.settle(id, ended, told);
    }

    pub(super) fn has_frozen(&self) -> bool {
        !self.frozen.is_empty()
    }

    pub(super) fn is_frozen(&self, tuple: &Tuple) -> bool {
        self.frozen.contains(tuple)
    }

    /// Returns the kernel's values for each socket, and the last values of at most [`ACCOUNTS`] closed ones.
    pub(super) fn accounts(&self) -> Vec<Value> {
        let open = self.sockets.iter().map(|(id, socket)| socket.account(*id));
        self.accounts.iter().cloned().chain(open).collect()
    }

    fn connect(
        &mut self,
        id: StreamId,
        local: Option<Addr>,
        peer: Addr,
        foreign: bool,
        knobs: RequestedOptions,
    ) -> Result<Socket, Errno> {
        let fd = self.socket(foreign, knobs)?;
        let any = SocketAddrV4::new(self.address.unwrap_or(Ipv4Addr::UNSPECIFIED), 0);
        if local.is_some_and(|local| local.port() != 0) {
            // A program's socket, which connects through a role to another peer, may already be bound to this port
            // (`clients::listener`).
            sockopt::set_socket_reuseaddr(&fd, true)?;
        }
        bind(&fd, &local.unwrap_or(any))?;
        match connect(&fd, &peer) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error),
        }
        let local = address_of(getsockname(&fd)?)?;
        let fd = self.watch(id, fd)?;
        Ok(Socket { knobs, ..Socket::new(fd, Tuple { local, remote: peer }, true) })
    }

    /// Adds a socket to those that the daemon waits for. It waits for nothing yet.
    fn watch(&self, id: StreamId, fd: OwnedFd) -> Result<Watched<OwnedFd>, Errno> {
        Watched::new(&self.epoll, fd, Source::Tcp(id).token(), Events::empty())
    }

    fn listen(
        &mut self,
        id: StreamId,
        local: Addr,
        foreign: bool,
        knobs: RequestedOptions,
    ) -> Result<Watched<OwnedFd>, Errno> {
        let fd = self.socket(foreign, knobs)?;
        // Remains of older connections must not prevent a new listener.
        sockopt::set_socket_reuseaddr(&fd, true)?;
        bind(&fd, &local)?;
        listen(&fd, BACKLOG)?;
        self.watch(id, fd)
    }

    fn socket(&mut self, foreign: bool, knobs: RequestedOptions) -> Result<OwnedFd, Errno> {
        if self.sockets.len() + self.listeners.len() >= self.most {
            return Err(Errno::NFILE);
        }
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        // Plain TCP: a multipath socket cannot be moved.
        let fd = socket_with(AddressFamily::INET, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        if let Some(window) = self.window {
            // Until the kernel knows the size of its segments, the route limits the window.
            sockopt::set_socket_recv_buffer_size(&fd, for_bytes(window))?;
        }
        knobs.apply(&fd);
        if foreign {
            self.accept_foreign_addresses()?;
            // The option is needed not only for `bind`. It also makes the kernel route the socket's packets as if the
            // foreign address were the host's own.
            options::set(&fd, libc::SOL_IP, libc::IP_TRANSPARENT, 1).map_err(|error| errno(&error))?;
        }
        Ok(fd)
    }

    /// Makes the kernel accept datagrams for foreign addresses, as far as the node passes them on.
    fn accept_foreign_addresses(&mut self) -> Result<(), Errno> {
        if !self.accepts_foreign {
            host_link::accept_foreign_addresses().map_err(|error| errno(&error.cause))?;
            self.accepts_foreign = true;
        }
        Ok(())
    }

    fn import(&mut self, id: StreamId, state: &TcpState) -> Result<Socket, Errno> {
        if self.sockets.len() >= self.most {
            return Err(Errno::NFILE);
        }
        if !repair::is_ours(state.local) {
            self.accept_foreign_addresses()?;
        }
        let fd = repair::import(state).map_err(|error| errno(&error))?;
        let fd = self.watch(id, fd)?;
        let mut socket = Socket::new(fd, Tuple { local: state.local, remote: state.remote }, false);
        (socket.frozen, socket.repaired) = (true, true);
        (socket.finishing, socket.peer_finished) = (state.finishing, state.finished);
        socket.pending.extend(&state.unacknowledged);
        socket.unacked = Unacked::of(state);
        socket.lingers = state.finishing && state.finished && state.unread.is_empty();
        socket.knows_end = socket.lingers;
        Ok(socket)
    }

    fn add(&mut self, id: StreamId, socket: Result<Socket, Errno>, told: &mut Vec<OwnedStreamEvent>) {
        match socket {
            Ok(socket) => self.insert(id, socket),
            Err(error) => told.push(OwnedStreamEvent::Closed(id, Some(error_text(error)))),
        }
    }

    /// Accepts one connection. Returns whether there may be more.
    fn accept(&mut self, listener: StreamId, accepted: &mut u32, told: &mut Vec<OwnedStreamEvent>) -> bool {
        let Some(Listener { fd, knobs }) = self.listeners.get(&listener) else { return false };
        let knobs = *knobs; // the accepted socket inherits them in the kernel
        let fd = match accept_with(fd, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok(fd) => fd,
            // The peer gave up before its connection was accepted.
            Err(Errno::CONNABORTED | Errno::INTR) => return true,
            Err(Errno::AGAIN) => return false,
            Err(error) => {
                self.callers.failed(listener, error);
                return false;
            }
        };
        let ends = getsockname(&fd).and_then(address_of).and_then(|local| {
            Ok(Tuple { local, remote: getpeername(&fd)?.ok_or(Errno::NOTCONN).and_then(address_of)? })
        });
        let Ok(tuple) = ends else { return true };
        if !self.callers.admits(*tuple.remote.ip()) {
            // A reset: the peer must not wait, and no state of the connection must stay in the kernel.
            let _ = sockopt::set_socket_linger(&fd, Some(std::time::Duration::ZERO));
            return true;
        }
        let new = StreamId::of_driver(accepted);
        let fd = match self.watch(new, fd) {
            Ok(fd) => fd,
            Err(error) => {
                self.callers.failed(listener, error);
                return false;
            }
        };
        told.push(OwnedStreamEvent::Accepted { listener, new, local: tuple.local, peer: tuple.remote });
        let mut socket = Socket { knobs, ..Socket::new(fd, tuple, false) };
        socket.grant(new, told);
        self.callers.begun(new, *tuple.remote.ip());
        self.insert(new, socket);
        true
    }

    fn insert(&mut self, id: StreamId, socket: Socket) {
        self.by_tuple.insert(socket.tuple, id);
        if socket.frozen {
            self.frozen.insert(socket.tuple);
        }
        if socket.unacked.is_some() {
            self.unacked.insert(socket.tuple);
        }
        self.sockets.insert(id, socket);
        self.wakes.touch(id);
    }

    /// Handles the effects of an operation on a socket: it may have ended, and its relay with it.
    fn settle(&mut self, id: StreamId, ended: Ended, told: &mut Vec<OwnedStreamEvent>) {
        let Some(socket) = self.sockets.get(&id) else { return };
        if socket.frozen {
            self.frozen.insert(socket.tuple)
        } else {
            self.frozen.remove(&socket.tuple)
        };
        let relay = socket.joined;
        if ended.is_some() {
            self.break_off(id, told);
        } else if let Some(relay) = relay {
            self.pump(relay, told);
        }
        self.conclude(id, ended, told);
    }

    pub(super) fn conclude(&mut self, id: StreamId, ended: Ended, told: &mut Vec<OwnedStreamEvent>) {
        let Some(why) = ended else { return };
        self.callers.ended(id);
        if let Some(socket) = self.sockets.remove(&id) {
            if why.is_none() && socket.shut && socket.knows_end {
                socket.end_in_order();
            }
            self.frozen.remove(&socket.tuple);
            if self.by_tuple.get(&socket.tuple) == Some(&id) {
                self.by_tuple.remove(&socket.tuple);
                self.unacked.remove(&socket.tuple);
            }
            self.accounts.push_back(socket.account(id));
            if self.accounts.len() > ACCOUNTS {
                self.accounts.pop_front();
            }
        }
        told.push(OwnedStreamEvent::Closed(id, why));
    }
}

fn address_of(any: rustix::net::SocketAddrAny) -> Result<Addr, Errno> {
    Addr::try_from(any).map_err(|_| Errno::AFNOSUPPORT)
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
