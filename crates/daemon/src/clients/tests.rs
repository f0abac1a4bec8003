//! Tests which requests of programs are accepted, and how programs are answered.

use super::*;
use crate::source::Ready;
use crate::testing::in_sandbox;
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
        // The program above sent its request at once. If a program sends none, the program that was silent for the
        // longest time is answered with `ETIMEDOUT`. The others follow when their time is over.
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

/// Adds a program's connection, with a pair of UNIX sockets instead of TCP. Returns the program's end.
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
