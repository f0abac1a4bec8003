//! Tests which requests of programs are accepted, and how programs are answered.

use super::*;
use crate::source::Ready;
use crate::testing::{in_own_process, in_sandbox};
use client::{Name, PATH, announce};
use os::{Netlink, pause};
use rustix::net::{AddressFamily, SocketType, connect, socket};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const OWN: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 9);
const BY: Transport = Transport::Role("errand");

impl Clients {
    /// Does what a daemon does in a turn.
    fn turn(
        &mut self,
        now: Instant,
        transport: &dyn Fn(&str) -> Option<Transport>,
        requests: &mut ClientRequests,
    ) {
        let ready = self.ready();
        self.serve(now, ready, transport, requests);
    }

    /// Returns the sockets that are ready now.
    fn ready(&mut self) -> ReadyClients {
        self.update_interests().unwrap();
        Ready::now(&self.epoll).clients
    }

    fn asking(&self) -> usize {
        self.listener.as_ref().map_or(0, ClientListener::asking)
    }
}

/// Requests a connection for the socket `program`. Returns the answer, 0 or an error number, and the operations that
/// the daemon requests from a role.
fn ask(clients: &mut Clients, path: &Path, by: &[u8], program: OwnedFd, peer: Addr) -> (i32, Vec<StreamOp>) {
    let mut daemon = [0; PATH];
    let bytes = path.as_os_str().as_bytes();
    daemon[..bytes.len()].copy_from_slice(bytes);
    let by = Name::new(by).unwrap();
    let asking = std::thread::spawn(move || announce(&daemon, by, program.as_fd(), peer));
    let mut ops = Vec::new();
    while !asking.is_finished() {
        let mut requests = ClientRequests::default();
        clients.turn(Instant::ZERO, &|name| (name == "errand").then_some(BY), &mut requests);
        for (id, op) in requests.ops {
            ops.push(op);
            clients.asked(id);
        }
        pause(Duration::from_millis(1));
    }
    (asking.join().unwrap().err().map_or(0, |error| error.raw_os_error().unwrap()), ops)
}

/// Opens the daemon's side, with a socket in a folder that lasts as long as its handle, on a host that has [`OWN`].
fn opened() -> (tempfile::TempDir, PathBuf, Clients) {
    let mut net = Netlink::open().unwrap();
    net.loopback_up().unwrap();
    net.add_address("lo", OWN, 32).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("clients");
    let epoll = Arc::new(Epoll::new().unwrap());
    let mut clients = Clients::open(&epoll, None, Some(OWN)).unwrap();
    clients.listener = Some(ClientListener::open(&epoll, &path).unwrap());
    (dir, path, clients)
}

#[test]
fn what_a_program_asks_for_is_looked_at() {
    in_sandbox(|| {
        let (_dir, path, mut clients) = opened();
        let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&path).unwrap());
        assert_eq!(mode & 0o777, 0o600, "whatever the umask is, others may ask for nothing");
        let second = ClientListener::open(&clients.epoll, &path).err().map(|error| error.cause.kind());
        assert_eq!(second, Some(std::io::ErrorKind::AddrInUse));
        let peer = Addr::new(Ipv4Addr::new(10, 1, 0, 1), 80);
        let tcp = || socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        let mut ask = |by: &[u8], program, peer| ask(&mut clients, &path, by, program, peer);
        assert_eq!(ask(b"none", tcp(), peer), (libc::EPROTONOSUPPORT, vec![]));
        let udp = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
        assert_eq!(ask(b"errand", udp, peer), (libc::EINVAL, vec![]));
        // A socket that is already connected is refused.
        let listener = std::net::TcpListener::bind((OWN, 80)).unwrap();
        let connected = tcp();
        connect(&connected, &Addr::new(OWN, 80)).unwrap();
        assert_eq!(ask(b"errand", connected, peer), (libc::EINVAL, vec![]));
        // A connection to this host itself needs no role, and is no error.
        assert_eq!(ask(b"errand", tcp(), Addr::new(OWN, 80)), (0, vec![]));
        drop(listener);
        let program = tcp();
        bind(&program, &Addr::new(Ipv4Addr::UNSPECIFIED, 4000)).unwrap();
        let local = Some(Addr::new(OWN, 4000));
        let open = StreamOp::Open { by: BY, local, peer, foreign: false };
        assert_eq!(ask(b"errand", program, peer), (0, vec![open]));
        // If a program does not connect after its request, the role's stream is aborted.
        let mut requests = ClientRequests::default();
        clients.turn(Instant::ZERO + SOON, &|_| None, &mut requests);
        assert_eq!(requests.ops, [(StreamId(StreamId::OUTSIDE), StreamOp::Abort)]);
        assert!(clients.connections.is_empty() && clients.by_ends.is_empty());
    });
}

#[test]
fn programs_that_say_nothing_make_room_for_one_that_asks() {
    in_sandbox(|| {
        let (_dir, path, mut clients) = opened();
        let silent = |clients: &mut Clients| {
            let idle = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
            connect(&idle, &rustix::net::SocketAddrUnix::new(&path).unwrap()).unwrap();
            clients.turn(Instant::ZERO, &|_| None, &mut ClientRequests::default());
            idle
        };
        let idle: Vec<OwnedFd> = (0..64).map(|_| silent(&mut clients)).collect();
        assert_eq!(clients.asking(), 64);
        let program = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        let peer = Addr::new(Ipv4Addr::new(10, 1, 0, 1), 80);
        let clock = os::Clock::start();
        assert_eq!(ask(&mut clients, &path, b"none", program, peer).0, libc::EPROTONOSUPPORT);
        assert!(clock.now() < Instant::from_millis(2000), "{:?}", clock.now());
        // A program that sends no request exceeds the limit of 64. So the program that connected first is answered with
        // `ETIMEDOUT`; the other 63 are answered when they were silent for `IDLE`.
        let _late = silent(&mut clients);
        let heard = |idle: &OwnedFd| {
            let mut answer = [0; client::Answer::LEN];
            let flags = rustix::net::RecvFlags::DONTWAIT;
            rustix::net::recv(idle, &mut answer, flags).ok().and_then(|_| client::Answer::parse(&answer))
        };
        assert_eq!(heard(&idle[0]), Some(client::Answer(libc::ETIMEDOUT)));
        assert_eq!(heard(&idle[1]), None);
        let due = clients.deadline().unwrap();
        clients.turn(due, &|_| None, &mut ClientRequests::default());
        assert_eq!(heard(&idle[63]), Some(client::Answer(libc::ETIMEDOUT)));
        assert_eq!((clients.asking(), clients.deadline()), (0, None));
    });
}

#[test]
fn a_queue_that_no_daemon_takes_from_is_waited_for_no_longer_than_that() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("clients");
    let address = rustix::net::SocketAddrUnix::new(&path).unwrap();
    let listener = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    bind(&listener, &address).unwrap();
    listen(&listener, 0).unwrap();
    is_open_to_programs(&path).unwrap();
    let idle = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    let _ = rustix::io::ioctl_fionbio(&idle, true).and_then(|()| connect(&idle, &address));
    let clock = os::Clock::start();
    let refused = is_open_to_programs(&path).unwrap_err().to_string();
    assert!(refused.contains("accepts no program: its queue was full for 5 s"), "{refused}");
    let waited = clock.now();
    assert!(waited > Instant::from_millis(4500) && waited < Instant::from_millis(8000), "{waited:?}");
}

#[test]
fn a_socket_without_a_daemon_is_named_before_a_program_is_started() {
    in_own_process(|| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("clients.sock");
        let refused = || is_open_to_programs(&path).unwrap_err().to_string();
        assert!(refused().contains("there is no such socket: the daemon does not run"), "{}", refused());
        // The file of the socket stays when a daemon is killed.
        let address = rustix::net::SocketAddrUnix::new(&path).unwrap();
        let listener = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        bind(&listener, &address).unwrap();
        listen(&listener, 1).unwrap();
        drop(listener);
        assert!(refused().contains("it was killed, and its socket file is left"), "{}", refused());
        std::fs::remove_file(&path).unwrap();
        let _control = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(refused().contains("not the socket of a daemon for programs"), "{}", refused());
    });
}

#[test]
fn a_daemon_that_is_gone_is_a_network_that_is_down() {
    let dir = tempfile::tempdir().unwrap();
    let peer = Addr::new(Ipv4Addr::new(10, 1, 0, 1), 80);
    let refused = client::connect(&dir.path().join("none"), Name::new(b"errand").unwrap(), peer);
    assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::ENETDOWN));
}

#[test]
fn each_word_of_a_refusal_has_its_error() {
    for (why, error) in [
        (Some(refusal::REFUSED), libc::ECONNREFUSED),
        (Some(refusal::TIMED_OUT), libc::ETIMEDOUT),
        (Some(refusal::UNREACHABLE), libc::EHOSTUNREACH),
        (Some(refusal::NO_ADDRESS), libc::ENETUNREACH),
        (Some(refusal::IN_USE), libc::EADDRINUSE),
        (Some("anything else"), libc::EHOSTUNREACH),
        (None, libc::EHOSTUNREACH),
    ] {
        assert_eq!(error_of(why).raw_os_error(), error, "{why:?}");
    }
}

/// Adds a program's connection over a pair of UNIX sockets instead of TCP. Returns the program's end.
fn bridged(clients: &mut Clients, id: StreamId) -> std::os::unix::net::UnixStream {
    let (ours, program) = std::os::unix::net::UnixStream::pair().unwrap();
    let ours = Watched::new(&clients.epoll, ours.into(), Source::Bridge(id).token(), Events::empty());
    let state = State::Bridge(Bridge::new(ours.unwrap()));
    let ends = Ends { port: id.0 as u16, peer: Addr::new(OWN, 80) };
    clients.connections.insert(id, Connection { ends, state, credit: 100 });
    clients.by_ends.insert(ends, id);
    clients.touched.insert(id);
    program
}

/// If a role closes the stream of a program after the kernel has reported the program's socket, the connection is not
/// served.
#[test]
fn a_client_that_is_closed_while_its_token_is_ready_is_not_served() {
    in_own_process(|| {
        use std::io::Write;
        let mut clients = Clients::open(&Arc::new(Epoll::new().unwrap()), None, Some(OWN)).unwrap();
        let ids = [1, 2, 3].map(StreamId);
        let mut programs = ids.map(|id| bridged(&mut clients, id));
        assert!(clients.ready().bridges.is_empty());
        for program in &mut programs[..2] {
            program.write_all(b"data").unwrap();
        }
        let ready = clients.ready();
        assert!(ready.bridges.iter().eq(&ids[..2]), "{ready:?}");
        let mut requests = ClientRequests::default();
        clients.told(Instant::ZERO, OwnedStreamEvent::Closed(ids[0], Some("gone".into())), &mut requests);
        clients.visits.clear();
        clients.serve(Instant::ZERO, ready, &|_| None, &mut requests);
        assert_eq!(clients.visits, [ids[1]], "neither the closed one nor the one without an event");
        let written = requests.ops.iter().filter(|(_, op)| matches!(op, StreamOp::Write(_)));
        assert!(written.map(|(id, _)| *id).eq([ids[1]]), "{:?}", requests.ops);
        // The programs have closed their ends. A socket that waits for no event reports its hang-up once.
        drop(programs);
        let ready = clients.ready();
        clients.forget(ids[1]);
        clients.serve(Instant::ZERO, ready, &|_| None, &mut requests);
        assert!(clients.ready().bridges.iter().eq(&ids[2..]));
        assert!(clients.ready().bridges.is_empty());
    });
}

/// A program that has sent its request waits for the answer. Until then nothing that it does wakes the daemon.
#[test]
fn a_program_that_waits_for_its_answer_does_not_wake_the_daemon() {
    in_sandbox(|| {
        let (_dir, path, mut clients) = opened();
        let asks = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        connect(&asks, &rustix::net::SocketAddrUnix::new(&path).unwrap()).unwrap();
        let mut requests = ClientRequests::default();
        clients.turn(Instant::ZERO, &|_| None, &mut requests);
        assert_eq!(clients.asking(), 1);
        assert!(clients.ready().asking.is_empty(), "it has sent nothing");
        drop(asks);
        assert_eq!(clients.ready().asking, [0]);
        clients.turn(Instant::ZERO, &|_| None, &mut requests);
        assert_eq!(clients.asking(), 0);
        assert!(clients.ready().asking.is_empty());
    });
}

/// Adds a program's TCP connection over the loopback, with this credit of the role. Returns the program's end.
fn bridged_by_tcp(clients: &mut Clients, id: StreamId, credit: usize) -> std::net::TcpStream {
    let listener = std::net::TcpListener::bind((OWN, 0)).unwrap();
    let program = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (ours, _) = listener.accept().unwrap();
    let ours = Watched::new(&clients.epoll, ours.into(), Source::Bridge(id).token(), Events::empty());
    let ends = Ends { port: id.0 as u16, peer: Addr::new(OWN, 80) };
    let state = State::Bridge(Bridge::new(ours.unwrap()));
    clients.connections.insert(id, Connection { ends, state, credit });
    clients.by_ends.insert(ends, id);
    clients.touched.insert(id);
    program
}

fn reset_by(program: std::net::TcpStream) {
    sockopt::set_socket_linger(&program, Some(Duration::ZERO)).unwrap();
    drop(program);
}

#[test]
fn a_reset_is_found_after_the_program_has_closed_its_half_and_while_the_role_accepts_nothing() {
    use std::io::Write;
    in_sandbox(|| {
        let (_dir, _path, mut clients) = opened();
        let turn = |clients: &mut Clients| {
            let mut requests = ClientRequests::default();
            clients.turn(Instant::ZERO, &|_| None, &mut requests);
            requests.ops
        };
        let [half, full] = [1, 2].map(StreamId);
        let half_closed = bridged_by_tcp(&mut clients, half, 100);
        half_closed.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(turn(&mut clients), [(half, StreamOp::Read(64 * 1024)), (half, StreamOp::Finish)]);
        let mut blocked = bridged_by_tcp(&mut clients, full, 0);
        blocked.write_all(b"the role accepts none of these bytes").unwrap();
        assert_eq!(turn(&mut clients), []);
        for (program, id) in [(half_closed, half), (blocked, full)] {
            reset_by(program);
            assert_eq!(turn(&mut clients), [(id, StreamOp::Abort)]);
            assert!(matches!(clients.connections[&id].state, State::Over));
        }
    });
}

/// Sets the limit of descriptors to 100, and opens descriptors until `left` more can be opened. Returns the opened
/// ones.
fn leave_descriptors(left: u64) -> Vec<OwnedFd> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let mut fillers: Vec<OwnedFd> = Vec::new();
    let most = 100;
    setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum }).unwrap();
    while let Ok(fd) = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC) {
        fillers.push(fd);
    }
    fillers.truncate(fillers.len() - left as usize);
    fillers
}

#[test]
fn a_program_for_which_no_descriptor_is_left_does_not_keep_the_daemon_awake_and_is_accepted_later() {
    in_sandbox(|| {
        let (_dir, _path, mut clients) = opened();
        let id = StreamId(1);
        let peer = Addr::new(OWN, 80);
        let program = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&program, &Addr::new(OWN, 4000)).unwrap();
        let ends = Ends { port: 4000, peer };
        clients.connections.insert(id, Connection { ends, state: State::Opened, credit: 0 });
        clients.by_ends.insert(ends, id);
        clients.stand_in(peer).unwrap();
        let fillers = leave_descriptors(0);
        connect(&program, &peer).unwrap();
        let mut requests = ClientRequests::default();
        clients.turn(Instant::ZERO, &|_| None, &mut requests);
        assert!(clients.rests() && matches!(clients.connections[&id].state, State::Opened));
        assert!(clients.ready().stand_ins.is_empty(), "it must not wake the daemon");
        drop(fillers);
        clients.turn(Instant::ZERO, &|_| None, &mut requests);
        assert!(!clients.rests() && matches!(clients.connections[&id].state, State::Bridge(_)));
    });
}

/// A program that connects to a stand-in listener without a request gets a reset, as from a port without a listener.
#[test]
fn an_unexpected_connection_is_reset() {
    in_sandbox(|| {
        use std::io::Read;
        let (_dir, _path, mut clients) = opened();
        let peer = Addr::new(OWN, 80);
        clients.stand_in(peer).unwrap();
        let mut unexpected = std::net::TcpStream::connect(peer).unwrap();
        clients.turn(Instant::ZERO, &|_| None, &mut ClientRequests::default());
        let error = unexpected.read(&mut [0; 1]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_program_whose_socket_has_no_descriptor_here_is_refused_for_that_reason() {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg, socketpair};
    in_sandbox(|| {
        let pair =
            || socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let (ours, theirs) = pair();
        let program = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        let peer = Addr::new(Ipv4Addr::new(10, 1, 0, 1), 80);
        let request = client::Request { transport: Name::new(b"errand").unwrap(), peer }.emit();
        let passed = [program.as_fd()];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut send = || {
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(&passed)));
            sendmsg(&theirs, &[std::io::IoSlice::new(&request)], &mut ancillary, SendFlags::empty()).unwrap();
        };
        send();
        assert!(listener::take(&ours).is_ok());
        let _fillers = leave_descriptors(0);
        send();
        assert_eq!(listener::take(&ours).err(), Some(Errno::NOBUFS));
    });
}

#[test]
fn silent_programs_take_a_share_of_few_descriptors() {
    in_sandbox(|| {
        let (_dir, path, clients) = opened();
        let mut clients = clients.sharing(64);
        let silent: Vec<OwnedFd> = (0..20)
            .map(|_| {
                let idle = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
                connect(&idle, &rustix::net::SocketAddrUnix::new(&path).unwrap()).unwrap();
                clients.turn(Instant::ZERO, &|_| None, &mut ClientRequests::default());
                idle
            })
            .collect();
        assert_eq!((silent.len(), clients.asking()), (20, 8));
    });
}
