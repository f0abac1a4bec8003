//! The UNIX socket on which programs send requests, each with its credentials and the socket that is to be connected.

use crate::socket_file::{self, SocketFile};
use crate::sockets::options::{TCP_INFO, TcpInfo, get};
use crate::source::{ReadyClients, Source};
use client::{Answer, Request};
use os::epoll::{Epoll, Events, Watched};
use os::{
    Attempt, Result,
    descriptors::{Accepted, Reserve},
    peer,
};
use rustix::fs::{Mode, fchmod};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags,
    SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, getsockname, ipproto, listen, recvmsg, send,
    socket_with, sockopt,
};
use std::collections::BTreeMap;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use wire::{Duration, Instant, Ipv4Addr, SocketAddrV4};

/// Largest number of programs that have connected and not sent their request yet. If the process may have few
/// descriptors, the limit is lower: the number of descriptors divided by [`SHARE`], but at least 1.
const ASKING: usize = 64;
const SHARE: usize = 8;
/// A program that has sent no request for this time is answered with `ETIMEDOUT`.
const IDLE: Duration = Duration::from_secs(10);
/// Descriptors that are reserved for programs: each needs one for its connection, and one for the socket that it
/// passes.
const RESERVE: usize = 4;
const BACKLOG: i32 = 64;
/// Seconds that `wayfare exec` waits for room in the queue of a daemon.
const PATIENCE: u64 = 5;
/// The socket option with the cookie of a socket's namespace (`asm-generic/socket.h`), since Linux 5.14.
const SO_NETNS_COOKIE: i32 = 71;

pub(crate) struct ClientListener {
    epoll: Arc<Epoll>,
    listener: Watched<OwnedFd>,
    _file: SocketFile,
    /// The programs that have sent no request yet, by number, in the order in which they connected. Each entry has the
    /// program's connection and the time at which the program connected.
    asking: BTreeMap<u64, (Watched<OwnedFd>, Instant)>,
    /// Largest number of programs in `asking`.
    most: usize,
    /// The number of the next program that connects.
    next: u64,
    reserve: Reserve,
    /// Whether the last program could not be accepted.
    rests: bool,
}

/// A valid request: `program` is an unconnected TCP socket in the requester's namespace.
pub(super) struct ProgramRequest {
    pub(super) requester: Requester,
    pub(super) request: Request,
    pub(super) program: OwnedFd,
}

/// A program that waits for an answer.
pub(super) struct Requester(Watched<OwnedFd>);

impl Requester {
    /// Sends the number of an error. If sending fails, the program has gone.
    pub(super) fn answer(self, error: Errno) {
        let answer = Answer(error.raw_os_error()).emit();
        let _ = send(&self.0, &answer, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }

    pub(super) fn accept(self) {
        let _ = send(&self.0, &Answer(0).emit(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }
}

impl ClientListener {
    /// Listens at this path. Programs are accepted once [`Self::update_interest`] has been called.
    pub(crate) fn open(epoll: &Arc<Epoll>, path: &Path) -> Result<Self> {
        let open = || {
            let address = SocketAddrUnix::new(path)?;
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
            socket_file::clear(path, || socket_file::knock(path, SocketType::SEQPACKET))?;
            // The mode is set before `bind`, so the file has this mode, less the umask, from the start (unix(7)).
            fchmod(&listener, Mode::RUSR | Mode::WUSR)?;
            bind(&listener, &address)?;
            listen(&listener, BACKLOG)?;
            let listener = Watched::new(epoll, listener, Source::ClientListener.token(), Events::empty())?;
            Ok::<_, io::Error>((listener, SocketFile::bound(path)))
        };
        let (listener, file) = open().attempt("listen at", path.display())?;
        Ok(Self {
            epoll: Arc::clone(epoll),
            listener,
            _file: file,
            asking: BTreeMap::new(),
            most: ASKING,
            next: 0,
            reserve: Reserve::keep(RESERVE),
            rests: false,
        })
    }

    /// Limits the number of silent programs to a share of `descriptors`, the number of descriptors that this process
    /// may have.
    pub(super) fn share(&mut self, descriptors: usize) {
        self.most = ASKING.min((descriptors / SHARE).max(1));
    }

    /// Notifies the kernel what the listener waits for from now on.
    pub(super) fn update_interest(&mut self) -> std::result::Result<(), Errno> {
        self.listener.want(if self.rests { Events::empty() } else { Events::IN })
    }

    /// Returns the number of programs that have not sent their request yet.
    #[cfg(test)]
    pub(super) fn asking(&self) -> usize {
        self.asking.len()
    }

    /// Returns when the next program without a request is answered with `ETIMEDOUT`.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.asking.first_key_value().map(|(_, (_, since))| *since + IDLE)
    }

    /// Returns whether a waiting program could not be accepted. The caller tries again after a short pause.
    pub(super) const fn rests(&self) -> bool {
        self.rests
    }

    /// Accepts programs. Returns the valid requests of the accepted programs and of the programs in `ready`. Answers
    /// the other programs itself: those with an invalid request, and those that were silent for too long or exceed the
    /// limit.
    pub(super) fn hear(&mut self, now: Instant, ready: &ReadyClients) -> Vec<ProgramRequest> {
        let new = self.next;
        if ready.listener || self.rests {
            self.accept_all(now);
        }
        let asked = ready.asking.iter().copied().chain(new..self.next);
        let mut wanted: Vec<_> = asked.filter_map(|number| self.take_request(number)).collect();
        // The request of a program that is about to be refused may have arrived at the last moment.
        while let Some((number, (_, since))) = self.asking.first_key_value()
            && (*since + IDLE <= now || self.asking.len() > self.most)
        {
            let number = *number;
            wanted.extend(self.take_request(number));
            if let Some((requester, _)) = self.asking.remove(&number) {
                Requester(requester).answer(Errno::TIMEDOUT);
            }
        }
        self.reserve.refill(RESERVE);
        wanted
    }

    /// Accepts programs that have connected, at most `most` of them. The others are accepted in the next turn, so that
    /// requests do not delay packets.
    fn accept_all(&mut self, now: Instant) {
        self.rests = false;
        for _ in 0..self.most {
            let Some(requester) = self.accept() else { break };
            let Ok(requester) =
                Watched::new(&self.epoll, requester, Source::Asking(self.next).token(), Events::IN)
            else {
                continue; // the program sees that its connection was closed
            };
            if !peer::may_order(&*requester) {
                Requester(requester).answer(Errno::ACCESS);
                continue;
            }
            self.asking.insert(self.next, (requester, now));
            self.next += 1;
        }
    }

    /// Takes the request of a program, if it has arrived. An invalid request is answered with an error, and gives
    /// `None`.
    fn take_request(&mut self, number: u64) -> Option<ProgramRequest> {
        let taken = take(&self.asking.get(&number)?.0);
        if matches!(taken, Err(Errno::AGAIN | Errno::INTR)) {
            return None;
        }
        let (mut requester, _) = self.asking.remove(&number)?;
        // Until the program is answered, its connection must not wake the daemon.
        let _ = requester.want(Events::empty());
        match taken {
            Err(error) => {
                Requester(requester).answer(error);
                None
            }
            Ok((request, program)) => {
                Some(ProgramRequest { requester: Requester(requester), request, program })
            }
        }
    }

    /// Accepts the next program, with a descriptor of the reserve if no other is left.
    fn accept(&mut self) -> Option<OwnedFd> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        // Two descriptors are needed: for the connection, and for the socket that the program passes over it.
        match self.reserve.accept(2, || accept_with(&*self.listener, flags)) {
            Accepted::One(requester) => Some(requester),
            Accepted::Nothing => None,
            Accepted::Refused => {
                self.rests = true;
                None
            }
        }
    }
}

/// Checks whether a daemon accepts programs at this path. Waits at most 5 s for room in the queue of the daemon's
/// socket. The error says whether the socket is missing, is of another kind, has no listener, or has a full queue.
pub fn is_open_to_programs(path: &Path) -> Result<()> {
    let knock = || {
        let probe = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let patience = std::time::Duration::from_secs(PATIENCE);
        sockopt::set_socket_timeout(&probe, sockopt::Timeout::Send, Some(patience))?;
        match rustix::net::connect(&probe, &SocketAddrUnix::new(path)?) {
            Err(Errno::AGAIN) => {
                let why = format!("the daemon accepts no program: its queue was full for {PATIENCE} s");
                Err(io::Error::new(io::ErrorKind::TimedOut, why))
            }
            Err(Errno::CONNREFUSED) => {
                let why =
                    "no daemon listens there: it was killed, and its socket file is left; start it again";
                Err(io::Error::new(io::ErrorKind::ConnectionRefused, why))
            }
            Err(Errno::PROTOTYPE) => {
                let why = "this is not the socket of a daemon for programs; use the path in the key `daemon.clients` of the daemon's configuration";
                Err(io::Error::new(io::ErrorKind::InvalidInput, why))
            }
            Err(Errno::NOENT) => {
                let why = "there is no such socket: the daemon does not run, or its key `daemon.clients` has another path";
                Err(io::Error::new(io::ErrorKind::NotFound, why))
            }
            other => Ok(other?),
        }
    };
    knock().attempt("reach a daemon at", path.display())
}

/// Receives the request of a program, with the socket that it passes. Fails with `AGAIN` if the request has not
/// arrived, with `NOBUFS` if no descriptor is left for the socket, and with `INVAL` if the request is malformed or the
/// socket cannot be connected.
pub(super) fn take(requester: &OwnedFd) -> std::result::Result<(Request, OwnedFd), Errno> {
    let mut bytes = [0; Request::LEN + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let got = recvmsg(requester, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT)?;
    // The kernel leaves out an attached socket if no descriptor is left for it, or if more than two are attached.
    let is_cut = got.flags.contains(ReturnFlags::CTRUNC);
    let mut attached = ancillary.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => fds.collect(),
        _ => Vec::new(),
    });
    let (program, second) = (attached.next(), attached.next());
    if is_cut && second.is_none() {
        return Err(Errno::NOBUFS);
    }
    let program = program.filter(|_| second.is_none()).ok_or(Errno::INVAL)?;
    let request = bytes.get(..got.bytes).and_then(Request::parse).ok_or(Errno::INVAL)?;
    if is_connectable(&program, requester)? { Ok((request, program)) } else { Err(Errno::INVAL) }
}

/// Returns whether `program` is an unconnected TCP socket in the network namespace of the program that sent it.
fn is_connectable(program: &OwnedFd, requester: &OwnedFd) -> std::result::Result<bool, Errno> {
    let is_tcp = sockopt::socket_domain(program)? == AddressFamily::INET
        && sockopt::socket_protocol(program)? == Some(ipproto::TCP);
    let place = |fd| get::<u64>(fd, libc::SOL_SOCKET, SO_NETNS_COOKIE).ok();
    let info = get::<TcpInfo>(program, libc::IPPROTO_TCP, TCP_INFO);
    Ok(is_tcp && info.is_ok_and(|info| info.state == TcpInfo::CLOSE) && place(program) == place(requester))
}

/// Binds a program's socket, if it is not bound, and returns its address. The role may connect from the same port to
/// another peer. Both sockets must allow that by `SO_REUSEADDR` (`socket(7)`).
pub(super) fn bound(program: &OwnedFd, own: Ipv4Addr) -> std::result::Result<SocketAddrV4, Errno> {
    let name = || SocketAddrV4::try_from(getsockname(program)?).map_err(|_| Errno::AFNOSUPPORT);
    sockopt::set_socket_reuseaddr(program, true)?;
    if name()?.port() == 0 {
        bind(program, &SocketAddrV4::new(own, 0))?;
    }
    let local = name()?;
    let ip = if local.ip().is_unspecified() { own } else { *local.ip() };
    Ok(SocketAddrV4::new(ip, local.port()))
}
