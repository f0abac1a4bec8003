//! [`node::Transport::Tcp`] on Linux: the kernel's TCP, without waiting for it.

use super::callers::Callers;
use super::former::Former;
use super::knob::{Knobs, for_bytes};
use super::relay::Relay;
use super::socket::{Ended, Socket};
use super::{options, repair};
use crate::daemon::host;
use node::stream::{Told, refusal};
use node::{Addr, StreamId, StreamOp, Tuple, Value};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, accept_with, bind, connect, getpeername, getsockname, ipproto,
    listen, socket_with, sockopt,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use wire::{Ipv4Addr, SocketAddrV4, TcpState};

/// Sockets of one host; more are refused, or wait in the kernel's queue.
const MOST: usize = 4096;
/// How many of these may be connections that peers begin: the rest is for those of roles.
const fn callers_of(sockets: usize) -> usize {
    if sockets < 2 { 1 } else { sockets * 4 / 5 }
}

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// Accounts that are kept of sockets that are gone.
const ACCOUNTS: usize = 1024;

/// A socket that waits for peers, and what holds for those that come.
struct Listener {
    fd: OwnedFd,
    knobs: Knobs,
}

pub(super) struct Tcp {
    address: Option<Ipv4Addr>,
    /// The largest window that its sockets offer, if it is not the kernel's choice.
    pub(super) window: Option<u32>,
    listeners: BTreeMap<StreamId, Listener>,
    /// What was set of streams that are not open yet.
    knobs: BTreeMap<StreamId, Knobs>,
    pub(super) sockets: BTreeMap<StreamId, Socket>,
    /// Whose a tuple is.
    pub(super) by_tuple: BTreeMap<Tuple, StreamId>,
    /// Asked for each packet to and from the host: as a rule, nothing is frozen.
    frozen: BTreeSet<Tuple>,
    /// Those of which a former host had sent something. Asked for each packet to the host.
    pub(super) former: BTreeSet<Tuple>,
    /// Each has the number of the stream that asked for it.
    pub(super) relays: BTreeMap<StreamId, Relay>,
    accounts: VecDeque<Value>,
    /// Sockets that there may be.
    most: usize,
    pub(super) callers: Callers,
    /// The kernel takes in what is for addresses that are not its own.
    takes_foreign: bool,
}

impl Tcp {
    pub(super) const fn new(address: Option<Ipv4Addr>) -> Self {
        Self {
            address,
            window: None,
            listeners: BTreeMap::new(),
            knobs: BTreeMap::new(),
            sockets: BTreeMap::new(),
            by_tuple: BTreeMap::new(),
            frozen: BTreeSet::new(),
            former: BTreeSet::new(),
            relays: BTreeMap::new(),
            accounts: VecDeque::new(),
            most: MOST,
            callers: Callers::new(callers_of(MOST)),
            takes_foreign: false,
        }
    }

    /// Leaves room for other descriptors, where this process may have no more than `descriptors`: half of them are for
    /// connections that peers begin, an eighth more for those of roles.
    pub(super) fn share(&mut self, descriptors: usize) {
        self.most = MOST.min(descriptors / 2 + descriptors / 8);
        self.callers = Callers::new(callers_of(self.most));
    }

    /// What each socket waits for. One that waits for nothing is left out: the kernel would report over and over that
    /// its peer is gone.
    pub(super) fn fds(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let listeners = self.listeners.iter().filter(|(id, _)| self.may_accept(**id));
        let listeners = listeners.map(|(_, listener)| (listener.fd.as_fd(), PollFlags::IN));
        let sockets = self.sockets.iter().filter_map(|(id, socket)| {
            let flags = self.waits_for(*id, socket);
            (!flags.is_empty()).then(|| (socket.fd.as_fd(), flags))
        });
        listeners.chain(sockets)
    }

    /// Whether a listener is asked for another connection: if not, that waits in the kernel's queue.
    fn may_accept(&self, listener: StreamId) -> bool {
        self.sockets.len() < self.most && self.callers.is_asked(listener)
    }

    /// What a socket waits for: on its user's behalf, or on its relay's.
    fn waits_for(&self, id: StreamId, socket: &Socket) -> PollFlags {
        if socket.rests() {
            return PollFlags::empty();
        }
        let relay = socket.joined.and_then(|relay| self.relays.get(&relay));
        socket.waits_for() | relay.map_or(PollFlags::empty(), |relay| relay.waits_for(id))
    }

    /// Those that have something for us, by one call of the system: to ask each of them would take longer than a packet. An error
    /// or a peer that is gone is reported also of a socket that waits for nothing.
    fn ready(&self) -> Vec<StreamId> {
        let listeners = self.listeners.iter().filter(|(id, _)| self.may_accept(**id));
        let listeners = listeners.map(|(id, listener)| (*id, listener.fd.as_fd(), PollFlags::IN));
        let sockets =
            self.sockets.iter().map(|(id, socket)| (*id, socket.fd.as_fd(), self.waits_for(*id, socket)));
        let (ids, mut fds): (Vec<_>, Vec<_>) =
            listeners.chain(sockets).map(|(id, fd, flags)| (id, PollFd::from_borrowed_fd(fd, flags))).unzip();
        if fds.is_empty() {
            return ids; // as on most hosts: then not even one call
        }
        let asked = poll(&mut fds, Some(&Timespec::default()));
        let knows_by_itself = |id: &StreamId| self.sockets.get(id).is_some_and(Socket::has_news);
        let all = ids.into_iter().zip(&fds);
        all.filter(|(id, fd)| asked.is_err() || !fd.revents().is_empty() || knows_by_itself(id))
            .map(|(id, _)| id)
            .collect()
    }

    pub(super) fn operate(
        &mut self,
        id: StreamId,
        op: StreamOp,
        guarded: &dyn Fn(&Tuple) -> bool,
        told: &mut Vec<Told>,
    ) {
        match op {
            StreamOp::Open { local, peer, foreign, .. } => {
                let knobs = self.knobs.remove(&id).unwrap_or_default();
                let opened = self.connect(local, peer, foreign, knobs);
                self.add(id, opened, told);
            }
            StreamOp::Listen { local, foreign, .. } => {
                let knobs = self.knobs.remove(&id).unwrap_or_default();
                match self.listen(local, foreign, knobs) {
                    Ok(fd) => {
                        self.listeners.insert(id, Listener { fd, knobs });
                        told.push(Told::Opened(id, local));
                    }
                    Err(error) => told.push(Told::Closed(id, Some(words(error)))),
                }
            }
            StreamOp::Import(state) => {
                let knobs = self.knobs.remove(&id).unwrap_or_default();
                let mut imported = self.import(&state);
                if let Ok(socket) = &mut imported {
                    socket.knobs = knobs;
                    knobs.apply(&socket.fd);
                    socket.guarded = guarded(&socket.tuple);
                    told.push(Told::Imported(id));
                }
                self.add(id, imported, told);
            }
            StreamOp::Finish | StreamOp::Abort | StreamOp::Forget if self.listeners.contains_key(&id) => {
                self.listeners.remove(&id);
                told.push(Told::Closed(id, None));
            }
            StreamOp::Join(other, staged) => self.join(id, other, staged, told),
            StreamOp::Part => self.part(id, told),
            StreamOp::Set(knob) if !self.sockets.contains_key(&id) => {
                // What was accepted and is gone will not be opened.
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

    /// All that has come and all that there is room for.
    pub(super) fn receive(&mut self, accepted: &mut u32, told: &mut Vec<Told>) {
        let mut relays = BTreeSet::new();
        for id in self.ready() {
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
        // A socket is called writable when a third of its buffer is free. A relay gives it the bytes as soon as one fits.
        relays.extend(self.relays.iter().filter(|(_, relay)| !relay.is_empty()).map(|(id, _)| *id));
        for relay in relays {
            self.pump(relay, told);
        }
    }

    /// A tuple has got a guard, or lost it. What was thawed meanwhile goes on.
    pub(super) fn guard(&mut self, tuple: &Tuple, guarded: bool, told: &mut Vec<Told>) {
        let Some(id) = self.by_tuple.get(tuple).copied() else { return };
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        socket.guarded = guarded;
        let ended = socket.go_on(id, told);
        self.settle(id, ended, told);
    }

    pub(super) fn has_frozen(&self) -> bool {
        !self.frozen.is_empty()
    }

    pub(super) fn is_frozen(&self, tuple: &Tuple) -> bool {
        self.frozen.contains(tuple)
    }

    /// What the kernel says of each socket: of those that are gone, what it said last.
    pub(super) fn accounts(&self) -> Vec<Value> {
        let open = self.sockets.iter().map(|(id, socket)| socket.account(*id));
        self.accounts.iter().cloned().chain(open).collect()
    }

    fn connect(
        &mut self,
        local: Option<Addr>,
        peer: Addr,
        foreign: bool,
        knobs: Knobs,
    ) -> Result<Socket, Errno> {
        let fd = self.socket(foreign, knobs)?;
        let any = SocketAddrV4::new(self.address.unwrap_or(Ipv4Addr::UNSPECIFIED), 0);
        if local.is_some_and(|local| local.port() != 0) {
            // A program's socket may have this port already, and connects through us: to another peer (`clients::door`).
            sockopt::set_socket_reuseaddr(&fd, true)?;
        }
        bind(&fd, &local.unwrap_or(any))?;
        match connect(&fd, &peer) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error),
        }
        let local = address_of(getsockname(&fd)?)?;
        Ok(Socket { knobs, ..Socket::new(fd, Tuple { local, remote: peer }, true) })
    }

    fn listen(&mut self, local: Addr, foreign: bool, knobs: Knobs) -> Result<OwnedFd, Errno> {
        let fd = self.socket(foreign, knobs)?;
        // What is left of older connections does not matter to who waits for new ones.
        sockopt::set_socket_reuseaddr(&fd, true)?;
        bind(&fd, &local)?;
        listen(&fd, BACKLOG)?;
        Ok(fd)
    }

    fn socket(&mut self, foreign: bool, knobs: Knobs) -> Result<OwnedFd, Errno> {
        if self.sockets.len() + self.listeners.len() >= self.most {
            return Err(Errno::NFILE);
        }
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        // Plain TCP: a multipath socket cannot be moved.
        let fd = socket_with(AddressFamily::INET, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        if let Some(window) = self.window {
            // Until the kernel knows its segments, the route bounds the window.
            sockopt::set_socket_recv_buffer_size(&fd, for_bytes(window))?;
        }
        knobs.apply(&fd);
        if foreign {
            self.take_in_foreign()?;
            // Not only that it can be bound: what is sent from it, and what is accepted, is routed as our own.
            options::set(&fd, libc::SOL_IP, libc::IP_TRANSPARENT, 1).map_err(|error| errno(&error))?;
        }
        Ok(fd)
    }

    /// From now on the kernel takes in what is for addresses that are not its own, as far as the node lets that through.
    fn take_in_foreign(&mut self) -> Result<(), Errno> {
        if !self.takes_foreign {
            host::take_in_foreign().map_err(|error| errno(&error.cause))?;
            self.takes_foreign = true;
        }
        Ok(())
    }

    fn import(&mut self, state: &TcpState) -> Result<Socket, Errno> {
        if self.sockets.len() >= self.most {
            return Err(Errno::NFILE);
        }
        if !repair::is_ours(state.local) {
            self.take_in_foreign()?;
        }
        let fd = repair::import(state).map_err(|error| errno(&error))?;
        let mut socket = Socket::new(fd, Tuple { local: state.local, remote: state.remote }, false);
        (socket.frozen, socket.repaired) = (true, true);
        (socket.finishing, socket.peer_finished) = (state.finishing, state.finished);
        socket.pending.extend(&state.unacknowledged);
        socket.former = Former::of(state);
        socket.lingers = state.finishing && state.finished && state.unread.is_empty();
        socket.knows_end = socket.lingers;
        Ok(socket)
    }

    fn add(&mut self, id: StreamId, socket: Result<Socket, Errno>, told: &mut Vec<Told>) {
        match socket {
            Ok(socket) => self.insert(id, socket),
            Err(error) => told.push(Told::Closed(id, Some(words(error)))),
        }
    }

    /// Takes one connection; says whether there may be more.
    fn accept(&mut self, listener: StreamId, accepted: &mut u32, told: &mut Vec<Told>) -> bool {
        let Some(Listener { fd, knobs }) = self.listeners.get(&listener) else { return false };
        let knobs = *knobs; // which the kernel lets it inherit
        let fd = match accept_with(fd, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok(fd) => fd,
            // The peer gave up before we came.
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
            // A reset: the peer is not to wait, and nothing of the connection is to stay in the kernel.
            let _ = sockopt::set_socket_linger(&fd, Some(std::time::Duration::ZERO));
            return true;
        }
        let new = StreamId::of_driver(accepted);
        told.push(Told::Accepted { listener, new, local: tuple.local, peer: tuple.remote });
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
        if socket.former.is_some() {
            self.former.insert(socket.tuple);
        }
        self.sockets.insert(id, socket);
    }

    /// What follows from an operation on a socket: it may be gone, and its relay with it.
    fn settle(&mut self, id: StreamId, ended: Ended, told: &mut Vec<Told>) {
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

    pub(super) fn conclude(&mut self, id: StreamId, ended: Ended, told: &mut Vec<Told>) {
        let Some(why) = ended else { return };
        self.callers.ended(id);
        if let Some(socket) = self.sockets.remove(&id) {
            if why.is_none() && socket.shut && socket.knows_end {
                socket.end_in_order();
            }
            self.frozen.remove(&socket.tuple);
            if self.by_tuple.get(&socket.tuple) == Some(&id) {
                self.by_tuple.remove(&socket.tuple);
                self.former.remove(&socket.tuple);
            }
            self.accounts.push_back(socket.account(id));
            if self.accounts.len() > ACCOUNTS {
                self.accounts.pop_front();
            }
        }
        told.push(Told::Closed(id, why));
    }
}

fn address_of(any: rustix::net::SocketAddrAny) -> Result<Addr, Errno> {
    Addr::try_from(any).map_err(|_| Errno::AFNOSUPPORT)
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// What the kernel says, in the words of both worlds where there are some.
pub(super) fn words(error: Errno) -> String {
    match error {
        Errno::CONNREFUSED => refusal::REFUSED.to_owned(),
        Errno::CONNRESET | Errno::PIPE => refusal::RESET.to_owned(),
        Errno::TIMEDOUT => refusal::TIMED_OUT.to_owned(),
        Errno::HOSTUNREACH | Errno::NETUNREACH => refusal::UNREACHABLE.to_owned(),
        Errno::ADDRINUSE => refusal::IN_USE.to_owned(),
        Errno::ADDRNOTAVAIL => refusal::NOT_OURS.to_owned(),
        Errno::NFILE | Errno::MFILE => refusal::FULL.to_owned(),
        other => other.to_string(),
    }
}
