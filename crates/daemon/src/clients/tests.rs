//! Which requests are accepted, and how programs are answered.

use super::*;
use crate::testing::in_sandbox;
use client::{Name, PATH, announce};
use os::{Netlink, pause};
use rustix::net::{AddressFamily, SocketType, connect, socket};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const OWN: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 9);
const BY: Transport = Transport::Role("errand");

/// Returns the answer to a program that requests a connection of this socket, and what the daemon asks a role for.
fn ask(clients: &mut Clients, path: &Path, by: &[u8], program: OwnedFd, peer: Addr) -> (i32, Vec<StreamOp>) {
    let mut daemon = [0; PATH];
    let bytes = path.as_os_str().as_bytes();
    daemon[..bytes.len()].copy_from_slice(bytes);
    let by = Name::new(by).unwrap();
    let asking = std::thread::spawn(move || announce(&daemon, by, program.as_fd(), peer));
    let mut ops = Vec::new();
    while !asking.is_finished() {
        let mut requests = ClientRequests::default();
        clients.serve(Instant::ZERO, &|name| (name == "errand").then_some(BY), &mut requests);
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
    let mut clients = Clients::open(None, Some(OWN)).unwrap();
    clients.listener = Some(ClientListener::open(&path).unwrap());
    (dir, path, clients)
}

#[test]
fn what_a_program_asks_for_is_looked_at() {
    in_sandbox(|| {
        let (_dir, path, mut clients) = opened();
        let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&path).unwrap());
        assert_eq!(mode & 0o777, 0o600, "whatever the umask is, others may ask for nothing");
        let second = ClientListener::open(&path).err().map(|error| error.cause.kind());
        assert_eq!(second, Some(std::io::ErrorKind::AddrInUse));
        let peer = Addr::new(Ipv4Addr::new(10, 1, 0, 1), 80);
        let tcp = || socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        let mut ask = |by: &[u8], program, peer| ask(&mut clients, &path, by, program, peer);
        assert_eq!(ask(b"none", tcp(), peer), (libc::EPROTONOSUPPORT, vec![]));
        let udp = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
        assert_eq!(ask(b"errand", udp, peer), (libc::EINVAL, vec![]));
        // A socket that is connected already.
        let listener = std::net::TcpListener::bind((OWN, 80)).unwrap();
        let connected = tcp();
        connect(&connected, &Addr::new(OWN, 80)).unwrap();
        assert_eq!(ask(b"errand", connected, peer), (libc::EINVAL, vec![]));
        // To this host itself: the role is not needed, and this is no error.
        assert_eq!(ask(b"errand", tcp(), Addr::new(OWN, 80)), (0, vec![]));
        drop(listener);
        let program = tcp();
        bind(&program, &Addr::new(Ipv4Addr::UNSPECIFIED, 4000)).unwrap();
        let local = Some(Addr::new(OWN, 4000));
        let open = StreamOp::Open { by: BY, local, peer, foreign: false };
        assert_eq!(ask(b"errand", program, peer), (0, vec![open]));
        // The program never connected.
        let mut requests = ClientRequests::default();
        clients.serve(Instant::ZERO + SOON, &|_| None, &mut requests);
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
            clients.serve(Instant::ZERO, &|_| None, &mut ClientRequests::default());
            idle
        };
        let idle: Vec<OwnedFd> = (0..64).map(|_| silent(&mut clients)).collect();
        assert_eq!(clients.fds().count(), 1 + 64);
        let program = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        let peer = Addr::new(Ipv4Addr::new(10, 1, 0, 1), 80);
        let clock = os::Clock::start();
        assert_eq!(ask(&mut clients, &path, b"none", program, peer).0, libc::EPROTONOSUPPORT);
        assert!(clock.now() < Instant::from_millis(2000), "{:?}", clock.now());
        // It sent its request at once. If a program does not, the one that was silent for longest gives way, and is
        // answered so. The others follow when their time is over.
        let _late = silent(&mut clients);
        let heard = |idle: &OwnedFd| {
            let mut answer = [0; client::Answer::LEN];
            let flags = rustix::net::RecvFlags::DONTWAIT;
            rustix::net::recv(idle, &mut answer, flags).ok().and_then(|_| client::Answer::parse(&answer))
        };
        assert_eq!(heard(&idle[0]), Some(client::Answer(libc::ETIMEDOUT)));
        assert_eq!(heard(&idle[1]), None);
        let due = clients.deadline().unwrap();
        clients.serve(due, &|_| None, &mut ClientRequests::default());
        assert_eq!(heard(&idle[63]), Some(client::Answer(libc::ETIMEDOUT)));
        assert_eq!((clients.fds().count(), clients.deadline()), (1, None));
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
    // The file stays when a daemon is killed.
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
