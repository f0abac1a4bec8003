//! [`node::Transport::Tcp`] on Linux: the kernel's TCP, without waiting for it.

use super::options::{TCP_INFO, TcpInfo, get};
use super::repair;
use node::stream::{Told, refusal};
use node::{Addr, StreamId, StreamOp, Tuple, Value};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, accept_with, bind, connect,
    getpeername, getsockname, ipproto, listen, recv, send, shutdown, socket_with, sockopt,
};
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use wire::{Duration, Ipv4Addr, PacketId, SocketAddrV4, TcpState};

/// Sockets of one host; more are refused, or wait in the kernel's queue.
const MOST: usize = 4096;
/// Bytes of one socket that wait here for room in the kernel: its user's credit.
const CREDIT: usize = 256 * 1024;
/// Bytes that are read at once.
const CHUNK: usize = 64 * 1024;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// Accounts that are kept of sockets that are gone.
const ACCOUNTS: usize = 1024;

pub(super) struct Tcp {
    address: Option<Ipv4Addr>,
    /// The largest window that its sockets offer, if it is not the kernel's choice.
    pub(super) window: Option<u32>,
    listeners: BTreeMap<StreamId, (OwnedFd, Addr)>,
    sockets: BTreeMap<StreamId, Socket>,
    accounts: VecDeque<Value>,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Socket {
    fd: OwnedFd,
    tuple: Tuple,
    connecting: bool,
    /// What the user wants to read; zero is nothing.
    wanted: usize,
    /// What the kernel had no room for yet.
    pending: VecDeque<u8>,
    /// What the user was granted and has not written.
    credit: usize,
    finishing: bool,
    /// The kernel knows that we finish.
    shut: bool,
    /// The user knows that the peer has finished.
    knows_end: bool,
    frozen: bool,
    /// Its tuple is guarded: it rests, frozen or not.
    guarded: bool,
    /// It is in repair mode.
    repaired: bool,
}

/// Why a socket is closed, for its user; `None` if it is not.
type Ended = Option<Option<String>>;

impl Tcp {
    pub(super) const fn new(address: Option<Ipv4Addr>) -> Self {
        Self {
            address,
            window: None,
            listeners: BTreeMap::new(),
            sockets: BTreeMap::new(),
            accounts: VecDeque::new(),
        }
    }

    /// What each socket waits for. One that waits for nothing is left out: the kernel would report over and over that
    /// its peer is gone.
    pub(super) fn fds(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let room = self.sockets.len() < MOST;
        let listeners = self.listeners.values().filter(move |_| room);
        let listeners = listeners.map(|(fd, _)| (fd.as_fd(), PollFlags::IN));
        let sockets = self.sockets.values().filter_map(|socket| {
            let flags = socket.waits_for();
            (!flags.is_empty()).then(|| (socket.fd.as_fd(), flags))
        });
        listeners.chain(sockets)
    }

    pub(super) fn operate(
        &mut self,
        id: StreamId,
        op: StreamOp,
        guarded: &dyn Fn(&Tuple) -> bool,
        told: &mut Vec<Told>,
    ) {
        match op {
            StreamOp::Open { foreign: true, .. } | StreamOp::Listen { foreign: true, .. } => {
                told.push(Told::Closed(id, Some(refusal::NOT_OURS.to_owned())));
            }
            StreamOp::Open { local, peer, .. } => {
                let opened = self.connect(local, peer);
                self.add(id, opened, told);
            }
            StreamOp::Listen { local, .. } => match self.listen(local) {
                Ok(fd) => {
                    self.listeners.insert(id, (fd, local));
                    told.push(Told::Opened(id, local));
                }
                Err(error) => told.push(Told::Closed(id, Some(words(error)))),
            },
            StreamOp::Import(state) => {
                let mut imported = self.import(&state);
                if let Ok(socket) = &mut imported {
                    socket.guarded = guarded(&socket.tuple);
                    told.push(Told::Imported(id));
                }
                self.add(id, imported, told);
            }
            StreamOp::Finish | StreamOp::Abort | StreamOp::Forget if self.listeners.contains_key(&id) => {
                self.listeners.remove(&id);
                told.push(Told::Closed(id, None));
            }
            op => {
                let Some(socket) = self.sockets.get_mut(&id) else { return };
                let ended = socket.operate(id, op, told);
                self.conclude(id, ended, told);
            }
        }
    }

    /// All that has come and all that there is room for.
    pub(super) fn receive(&mut self, accepted: &mut u32, told: &mut Vec<Told>) {
        let listeners: Vec<StreamId> = self.listeners.keys().copied().collect();
        for listener in listeners {
            while self.sockets.len() < MOST && self.accept(listener, accepted, told) {}
        }
        let sockets: Vec<StreamId> = self.sockets.keys().copied().collect();
        for id in sockets {
            let Some(socket) = self.sockets.get_mut(&id) else { continue };
            let ended = socket.serve(id, told);
            self.conclude(id, ended, told);
        }
    }

    /// A tuple has got a guard, or lost it. What was thawed meanwhile goes on.
    pub(super) fn guard(&mut self, tuple: &Tuple, guarded: bool, told: &mut Vec<Told>) {
        let at = self.sockets.iter().find(|(_, socket)| socket.tuple == *tuple).map(|(id, _)| *id);
        let Some((id, socket)) = at.and_then(|id| Some((id, self.sockets.get_mut(&id)?))) else { return };
        socket.guarded = guarded;
        let ended = socket.go_on(id, told);
        self.conclude(id, ended, told);
    }

    pub(super) fn has_frozen(&self) -> bool {
        self.sockets.values().any(|socket| socket.frozen)
    }

    pub(super) fn is_frozen(&self, tuple: &Tuple) -> bool {
        self.sockets.values().any(|socket| socket.frozen && socket.tuple == *tuple)
    }

    /// What the kernel says of each socket: of those that are gone, what it said last.
    pub(super) fn accounts(&self) -> Vec<Value> {
        let open = self.sockets.iter().map(|(id, socket)| socket.account(*id));
        self.accounts.iter().cloned().chain(open).collect()
    }

    fn connect(&self, local: Option<Addr>, peer: Addr) -> Result<Socket, Errno> {
        let fd = self.socket()?;
        let any = SocketAddrV4::new(self.address.unwrap_or(Ipv4Addr::UNSPECIFIED), 0);
        bind(&fd, &local.unwrap_or(any))?;
        match connect(&fd, &peer) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error),
        }
        let local = address_of(getsockname(&fd)?)?;
        Ok(Socket::new(fd, Tuple { local, remote: peer }, true))
    }

    fn listen(&self, local: Addr) -> Result<OwnedFd, Errno> {
        let fd = self.socket()?;
        // What is left of older connections does not matter to who waits for new ones.
        sockopt::set_socket_reuseaddr(&fd, true)?;
        bind(&fd, &local)?;
        listen(&fd, BACKLOG)?;
        Ok(fd)
    }

    fn socket(&self) -> Result<OwnedFd, Errno> {
        if self.sockets.len() + self.listeners.len() >= MOST {
            return Err(Errno::NFILE);
        }
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        // Plain TCP: a multipath socket cannot be moved.
        let fd = socket_with(AddressFamily::INET, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        if let Some(window) = self.window {
            // A buffer of a given size does not grow. The kernel doubles it, and offers as much of it as packets have
            // bytes of their memory: five eighths, with full segments. Until it knows, the route bounds the window.
            sockopt::set_socket_recv_buffer_size(&fd, window as usize * 4 / 5)?;
        }
        Ok(fd)
    }

    fn import(&self, state: &TcpState) -> Result<Socket, Errno> {
        if self.sockets.len() >= MOST {
            return Err(Errno::NFILE);
        }
        let fd = repair::import(state).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let mut socket = Socket::new(fd, Tuple { local: state.local, remote: state.remote }, false);
        (socket.frozen, socket.repaired, socket.finishing) = (true, true, state.finishing);
        let unsent = state.unacknowledged.get(repair::sent(state).len()..).unwrap_or_default();
        socket.pending.extend(unsent);
        Ok(socket)
    }

    fn add(&mut self, id: StreamId, socket: Result<Socket, Errno>, told: &mut Vec<Told>) {
        match socket {
            Ok(socket) => {
                self.sockets.insert(id, socket);
            }
            Err(error) => told.push(Told::Closed(id, Some(words(error)))),
        }
    }

    /// Takes one connection; says whether there may be more.
    fn accept(&mut self, listener: StreamId, accepted: &mut u32, told: &mut Vec<Told>) -> bool {
        let Some((fd, _)) = self.listeners.get(&listener) else { return false };
        let fd = match accept_with(fd, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok(fd) => fd,
            // The peer gave up before we came.
            Err(Errno::CONNABORTED | Errno::INTR) => return true,
            Err(_) => return false,
        };
        let ends = getsockname(&fd).and_then(address_of).and_then(|local| {
            Ok(Tuple { local, remote: getpeername(&fd)?.ok_or(Errno::NOTCONN).and_then(address_of)? })
        });
        let Ok(tuple) = ends else { return true };
        let new = StreamId::of_driver(accepted);
        told.push(Told::Accepted { listener, new, local: tuple.local, peer: tuple.remote });
        let mut socket = Socket::new(fd, tuple, false);
        socket.grant(new, told);
        self.sockets.insert(new, socket);
        true
    }

    fn conclude(&mut self, id: StreamId, ended: Ended, told: &mut Vec<Told>) {
        let Some(why) = ended else { return };
        if let Some(socket) = self.sockets.remove(&id) {
            self.accounts.push_back(socket.account(id));
            if self.accounts.len() > ACCOUNTS {
                self.accounts.pop_front();
            }
        }
        told.push(Told::Closed(id, why));
    }
}

impl Socket {
    const fn new(fd: OwnedFd, tuple: Tuple, connecting: bool) -> Self {
        Self {
            fd,
            tuple,
            connecting,
            wanted: 0,
            pending: VecDeque::new(),
            credit: 0,
            finishing: false,
            shut: false,
            knows_end: false,
            frozen: false,
            guarded: false,
            repaired: false,
        }
    }

    const fn rests(&self) -> bool {
        self.frozen || self.guarded
    }

    fn waits_for(&self) -> PollFlags {
        let mut flags = PollFlags::empty();
        if self.rests() {
            return flags;
        }
        flags.set(PollFlags::OUT, self.connecting || !self.pending.is_empty());
        flags.set(PollFlags::IN, self.wanted > 0);
        flags
    }

    fn operate(&mut self, id: StreamId, op: StreamOp, told: &mut Vec<Told>) -> Ended {
        match op {
            StreamOp::Read(most) => self.wanted = most,
            StreamOp::Write(bytes) => {
                let Some(rest) = self.credit.checked_sub(bytes.len()).filter(|_| !self.finishing) else {
                    self.reset();
                    return Some(Some(refusal::BEYOND_CREDIT.to_owned()));
                };
                self.credit = rest;
                self.pending.extend(bytes);
            }
            StreamOp::Finish => self.finishing = true,
            StreamOp::Abort => {
                self.reset();
                return Some(None);
            }
            StreamOp::Freeze => self.frozen = true,
            StreamOp::Export => told.push(self.export(id)),
            StreamOp::Thaw => {
                self.frozen = false;
                return self.go_on(id, told);
            }
            StreamOp::Forget => {
                let silent = self.repaired || repair::enter(&self.fd).is_ok();
                let why = "cannot end without a word: TCP_REPAIR is refused";
                return Some((!silent).then(|| why.to_owned()));
            }
            // These make sockets, or are none's business.
            StreamOp::Open { .. } | StreamOp::Listen { .. } | StreamOp::Import(_) | StreamOp::Guard(..) => {}
            StreamOp::Join(..) => told.push(Told::Refused(id, refusal::NOT_JOINABLE.to_owned())),
            StreamOp::Part => told.push(Told::Refused(id, refusal::NOT_JOINED.to_owned())),
        }
        self.serve(id, told)
    }

    /// An end that the peer is told of by a reset. What is frozen or was moved has nothing to say, and is in repair mode or
    /// behind a guard.
    fn reset(&self) {
        let _ = sockopt::set_socket_linger(&self.fd, Some(Duration::ZERO));
    }

    fn export(&mut self, id: StreamId) -> Told {
        let refused = |why: String| Told::Refused(id, why);
        if !self.frozen {
            return refused(refusal::NOT_FROZEN.to_owned());
        }
        if let Err(error) = repair::enter(&self.fd) {
            return refused(error.to_string());
        }
        self.repaired = true;
        match repair::export(&self.fd, self.tuple.local, self.tuple.remote) {
            Ok(Some(mut state)) => {
                state.unacknowledged.extend(&self.pending);
                state.finishing = self.finishing;
                Told::Exported(id, Box::new(state))
            }
            Ok(None) => refused(refusal::NOT_ESTABLISHED.to_owned()),
            Err(error) => refused(error.to_string()),
        }
    }

    /// Leaves repair mode when nothing keeps the socket silent any more. Not before: the kernel's probe, which tells the
    /// peer where we stand, would end at the guard, and both sides would wait for a time-out.
    fn go_on(&mut self, id: StreamId, told: &mut Vec<Told>) -> Ended {
        if self.rests() {
            return None;
        }
        if std::mem::take(&mut self.repaired)
            && let Err(error) = repair::leave(&self.fd)
        {
            return Some(Some(error.to_string()));
        }
        self.serve(id, told)
    }

    /// All that can be done without waiting.
    fn serve(&mut self, id: StreamId, told: &mut Vec<Told>) -> Ended {
        if self.rests() {
            return None;
        }
        let done = self.open(id, told).and_then(|open| {
            if open {
                self.flush()?;
                self.read(id, told)?;
                self.grant(id, told);
            }
            Ok(())
        });
        if let Err(error) = done {
            return Some(Some(words(error)));
        }
        (self.shut && self.knows_end).then_some(None)
    }

    /// Whether it is connected, or why it cannot be.
    fn open(&mut self, id: StreamId, told: &mut Vec<Told>) -> Result<bool, Errno> {
        sockopt::socket_error(&self.fd)??;
        if !self.connecting {
            return Ok(true);
        }
        match getpeername(&self.fd) {
            Ok(_) => {
                self.connecting = false;
                told.push(Told::Opened(id, self.tuple.local));
                Ok(true)
            }
            Err(Errno::NOTCONN) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn flush(&mut self) -> Result<(), Errno> {
        while !self.pending.is_empty() {
            let (head, _) = self.pending.as_slices();
            match send(&self.fd, head, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(taken) => drop(self.pending.drain(..taken)),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        if self.finishing && !self.shut {
            shutdown(&self.fd, Shutdown::Write)?;
            self.shut = true;
        }
        Ok(())
    }

    fn read(&mut self, id: StreamId, told: &mut Vec<Told>) -> Result<(), Errno> {
        if self.wanted == 0 {
            return Ok(());
        }
        let mut bytes = vec![0; self.wanted.min(CHUNK)];
        match recv(&self.fd, &mut bytes[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => {
                self.knows_end = true;
                told.push(Told::Finished(id));
            }
            Ok((got, _)) => {
                bytes.truncate(got);
                told.push(Told::Data(id, PacketId::NEW, bytes));
            }
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(error) => return Err(error),
        }
        self.wanted = 0;
        Ok(())
    }

    /// Grants what there is new room for: not byte by byte, but never nothing to a user who has nothing.
    fn grant(&mut self, id: StreamId, told: &mut Vec<Told>) {
        let more = CREDIT.saturating_sub(self.pending.len() + self.credit);
        if !self.finishing && (more >= CREDIT / 4 || (more > 0 && self.credit == 0)) {
            self.credit += more;
            told.push(Told::Room(id, more));
        }
    }

    fn account(&self, id: StreamId) -> Value {
        let congestion = sockopt::tcp_congestion(&self.fd).unwrap_or_default();
        let ends = [
            ("stream", Value::from(id.0)),
            ("local", Value::from(self.tuple.local.to_string())),
            ("remote", Value::from(self.tuple.remote.to_string())),
            ("congestion", Value::from(congestion)),
        ];
        let info = get::<TcpInfo>(&self.fd, libc::IPPROTO_TCP, TCP_INFO).ok();
        let info = info.map(|info| {
            [
                ("retransmits", info.total_retrans),
                ("rto_us", info.rto),
                ("rtt_us", info.rtt),
                ("cwnd", info.snd_cwnd),
                ("ssthresh", info.snd_ssthresh),
                ("mss", info.snd_mss),
                ("pmtu", info.pmtu),
            ]
        });
        let info = info.into_iter().flatten().map(|(name, value)| (name, Value::from(value)));
        Value::Map(ends.into_iter().chain(info).map(|(name, value)| (name.to_owned(), value)).collect())
    }
}

fn address_of(any: rustix::net::SocketAddrAny) -> Result<Addr, Errno> {
    Addr::try_from(any).map_err(|_| Errno::AFNOSUPPORT)
}

/// What the kernel says, in the words of both worlds where there are some.
fn words(error: Errno) -> String {
    match error {
        Errno::CONNREFUSED => refusal::REFUSED.to_owned(),
        Errno::CONNRESET | Errno::PIPE => refusal::RESET.to_owned(),
        Errno::TIMEDOUT => refusal::TIMED_OUT.to_owned(),
        Errno::HOSTUNREACH | Errno::NETUNREACH => refusal::UNREACHABLE.to_owned(),
        Errno::ADDRINUSE => refusal::IN_USE.to_owned(),
        Errno::NFILE => refusal::FULL.to_owned(),
        other => other.to_string(),
    }
}
