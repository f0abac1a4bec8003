//! Third-party programs under `wayfare exec`, with a daemon whose role serves a transport, and unmodified servers.

use crate::common::*;
use crate::sandbox::in_sandbox;
use daemon::{Ask, Interface, Spec};
use node::stream::{OwnedStreamEvent, refusal};
use node::{Input, Outbox, Role, StreamEvent, StreamId, StreamOp, Transport, Value};
use os::json_lines::{Heard, Lines};
use os::{End, EndPlace, NetNs, Netlink};
use roles::HostConfig;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use wire::{Duration, Instant, Ipv4Addr, Mac};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const HOST_MAC: Mac = Mac([2, 0, 0, 0, 0, 2]);
const BY: Transport = Transport::Role("errand");
/// Time that the role waits before it executes a request.
const DELAY: Duration = Duration::from_millis(300);

/// A role that opens requested connections by the host's own TCP, after a delay. Ports 1 and 2 give errors.
#[derive(Debug, Default)]
struct Errand {
    /// For each stream that the role opened, the program's stream that requested it.
    users: BTreeMap<StreamId, StreamId>,
    own: BTreeMap<StreamId, StreamId>,
    due: Vec<(Instant, StreamId, StreamOp)>,
    opened: u32,
}

impl Errand {
    fn serve(&mut self, now: Instant, id: StreamId, op: StreamOp, out: &mut Outbox) {
        match op {
            StreamOp::Open { peer, .. } => {
                self.opened += 1;
                let op = StreamOp::Open { by: Transport::Tcp, local: None, peer, foreign: false };
                self.due.push((now + DELAY, id, op));
            }
            op => {
                if let Some(own) = self.own.get(&id) {
                    out.stream(*own, op);
                }
            }
        }
    }

    fn go(&mut self, id: StreamId, op: StreamOp, out: &mut Outbox) {
        let StreamOp::Open { peer, .. } = &op else { return };
        let why = match peer.port() {
            1 => refusal::TIMED_OUT,
            2 => refusal::UNREACHABLE,
            _ => {
                let own = StreamId(self.opened);
                self.users.insert(own, id);
                self.own.insert(id, own);
                return out.stream(own, op);
            }
        };
        out.served(OwnedStreamEvent::Closed(id, Some(why.to_owned())));
    }
}

impl Role for Errand {
    fn name(&self) -> &'static str {
        "errand"
    }
    fn serves(&self) -> &[Transport] {
        &[BY]
    }
    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Serve(id, op) => self.serve(now, id, op, out),
            Input::Timeout => {
                for (_, id, op) in self.due.extract_if(.., |(at, ..)| *at <= now).collect::<Vec<_>>() {
                    self.go(id, op, out);
                }
            }
            Input::Stream(own, event) => {
                let Some(id) = self.users.get(&own).copied() else { return };
                out.served(match event {
                    StreamEvent::Opened(local) => OwnedStreamEvent::Opened(id, local),
                    StreamEvent::Room(more) => OwnedStreamEvent::Room(id, more),
                    StreamEvent::Data(bytes) => {
                        OwnedStreamEvent::Data(id, wire::PacketId::NEW, bytes.to_vec())
                    }
                    StreamEvent::Finished => OwnedStreamEvent::Finished(id),
                    StreamEvent::Closed(why) => OwnedStreamEvent::Closed(id, why.map(str::to_owned)),
                    _ => return,
                });
            }
            _ => {}
        }
    }
    fn deadline(&self) -> Option<Instant> {
        self.due.iter().map(|(at, ..)| *at).min()
    }
    fn status(&self) -> Value {
        Value::map([("opened", Value::from(self.opened))])
    }
}

/// A host with the daemon, a wire, and a server's kernel at the other end.
struct Stage {
    host: Arc<NetNs>,
    server: NetNs,
    dir: tempfile::TempDir,
    daemon: Option<JoinHandle<()>>,
    lines: Lines,
}

impl Stage {
    fn new() -> Self {
        let (host, server) = (Arc::new(NetNs::create().unwrap()), NetNs::create().unwrap());
        server
            .run(|| {
                let mut net = Netlink::open().unwrap();
                let near = End { name: "net", mac: Mac([2, 0, 0, 0, 0, 1]), place: EndPlace::Here };
                let far = End { name: "net", mac: HOST_MAC, place: EndPlace::Fd(host.as_fd()) };
                net.add_veth(&near, &far).unwrap();
                net.loopback_up().unwrap();
                net.add_address("net", SERVER, 24).unwrap();
                net.set_up("net", true).unwrap();
                os::ethtool::offloads_off("net").unwrap();
            })
            .unwrap();
        let dir = tempfile::tempdir().unwrap();
        let config: HostConfig = toml::from_str(&format!(
            "name = \"host\"\naddresses = []\n\
             interface = [{{ name = \"net\", mac = \"{HOST_MAC}\", address = \"10.0.0.2/24\" }}]\n"
        ))
        .unwrap();
        let spec = Spec {
            name: "host".to_owned(),
            node: config.node_of(vec![Box::new(Errand::default())]).unwrap(),
            addresses: config.own_addresses().unwrap(),
            interfaces: vec![Interface { name: "net".to_owned(), mac: HOST_MAC, mtu: 1500, tunes: false }],
            tcp: os::TcpMetrics { congestion: Some("reno".to_owned()), ..Default::default() },
            clients: Some(dir.path().join("clients")),
            clock_error: wire::ClockError::NONE,
            control: Some(dir.path().join("control")),
            radio: None,
            records: None,
            records_at_once: false,
            store: None,
            store_without_sync: false,
            store_needs_room: false,
            data_path_in_kernel: false,
            hold: false,
        };
        let place = Arc::clone(&host);
        let daemon = std::thread::spawn(move || place.run(|| daemon::run(spec)).unwrap().unwrap());
        let lines = wait_for("the daemon", || Lines::connect(&dir.path().join("control")).ok());
        let mut stage = Self { host, server, dir, daemon: Some(daemon), lines };
        stage.ask(&Ask::Ready);
        stage
    }

    fn ask(&mut self, ask: &Ask) -> serde_json::Value {
        self.lines.send(ask).unwrap();
        wait_for("an answer", || match self.lines.hear::<daemon::Answer>() {
            Heard::Message(daemon::Answer::Ok(value)) => Some(value),
            Heard::Nothing => None,
            other => panic!("{other:?}"),
        })
    }

    fn opened(&mut self) -> u64 {
        let status = self.ask(&Ask::Do { verb: "status".to_owned(), args: serde_json::Value::Null });
        status["errand"]["opened"].as_u64().unwrap()
    }

    /// Runs a program in the host's namespace, under `wayfare exec`.
    fn exec(&self, options: &[&str], program: &[&str]) -> Output {
        let mut command = Command::new(wayfare());
        command.args(["exec", "--by", "errand", "--daemon"]).arg(self.dir.path().join("clients"));
        command.args(options).arg("--").args(program).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = self.host.run(|| command.spawn()).unwrap().unwrap();
        child.wait_with_output().unwrap()
    }

    /// Starts Python's web server, with a file.
    fn serve_web(&self, file: &[u8]) -> std::process::Child {
        let web = self.dir.path().join("web");
        std::fs::create_dir(&web).unwrap();
        std::fs::write(web.join("file"), file).unwrap();
        let mut command = Command::new("python3");
        command.args(["-m", "http.server", "80", "--bind", &SERVER.to_string(), "--directory"]).arg(&web);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = self.server.run(|| command.spawn()).unwrap().unwrap();
        wait_for("the web server", || {
            self.server.run(|| std::net::TcpStream::connect((SERVER, 80)).ok()).unwrap()
        });
        child
    }

    /// Starts an echo server for one connection.
    fn serve_echo(&self, port: u16) -> JoinHandle<()> {
        let listener = self.server.run(|| TcpListener::bind((SERVER, port)).unwrap()).unwrap();
        std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let mut bytes = vec![0; 65_536];
            loop {
                match peer.read(&mut bytes) {
                    Ok(0) => break,
                    Ok(got) => peer.write_all(&bytes[..got]).unwrap(),
                    Err(error) => panic!("{error}"),
                }
            }
            peer.shutdown(Shutdown::Write).unwrap();
        })
    }

    fn end(mut self) {
        self.ask(&Ask::Stop);
        self.daemon.take().unwrap().join().unwrap();
    }
}

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    need(program, found.is_ok_and(|status| status.success()))
}

fn noise(len: usize) -> Vec<u8> {
    let mut rng = wire::Rng::new(5);
    (0..len).map(|_| rng.draw() as u8).collect()
}

#[test]
fn curl_downloads_by_a_role() {
    if !has("curl") || !has("python3") {
        return;
    }
    in_sandbox(Duration::from_mins(1), || {
        let mut stage = Stage::new();
        let file = noise(3_000_000);
        let mut web = stage.serve_web(&file);
        let url = format!("http://{SERVER}/file");
        let output = stage.exec(&[], &["curl", "-sS", &url, &url]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(output.stdout == [&file[..], &file].concat(), "{} bytes", output.stdout.len());
        assert_eq!(stage.opened(), 2, "this server closes after each");
        // An excepted destination is reached directly.
        let output = stage.exec(&["--except", "10.0.0.0/24:80"], &["curl", "-sS", &url]);
        assert!(output.stdout == file, "{}", text(&output.stderr));
        assert_eq!(stage.opened(), 2);
        web.kill().unwrap();
        web.wait().unwrap();
        stage.end();
    });
}

/// A script that checks the properties of a program's socket. All of them must be those of a kernel's socket.
const PYTHON: &str = r#"
import errno, os, select, socket, sys, threading, time
server = "10.0.0.1"
def error(port, wait=True):
    s = socket.socket()
    s.setblocking(wait)
    code = s.connect_ex((server, port))
    if not wait:
        assert code == errno.EINPROGRESS, code
        assert select.select([], [s], [], 10)[1]
        code = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    return errno.errorcode.get(code, code)
print("blocking", [error(port) for port in (9, 1, 2)])
print("later", [error(port, False) for port in (9, 1, 2)])
# Registered before it is connected, and not writable until it is.
s = socket.socket()
s.setblocking(False)
watch = select.epoll()
begin = time.monotonic()
assert s.connect_ex((server, 7)) == errno.EINPROGRESS
assert s.connect_ex((server, 7)) == errno.EALREADY
watch.register(s, select.EPOLLOUT)
assert watch.poll(0.1) == []
assert watch.poll(10) == [(s.fileno(), select.EPOLLOUT)]
assert s.connect_ex((server, 7)) in (0, errno.EISCONN)
print("took", time.monotonic() - begin >= 0.25)
print("peer", s.getpeername(), "own", s.getsockname()[0])
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
s.setblocking(True)
said = os.urandom(2000000)
writer = threading.Thread(target=lambda: (s.sendall(said), s.shutdown(socket.SHUT_WR)))
writer.start()
# In a copy of the descriptor.
other = s.dup()
heard = b""
while True:
    part = other.recv(65536)
    if not part:
        break
    heard += part
writer.join()
first = next((at for at, pair in enumerate(zip(heard, said)) if pair[0] != pair[1]), None)
print("echo", heard == said or (len(heard), len(said), first))
"#;

#[test]
fn python_finds_its_sockets_as_it_knows_them() {
    if !has("python3") {
        return;
    }
    in_sandbox(Duration::from_mins(1), || {
        let mut stage = Stage::new();
        let echo = stage.serve_echo(7);
        let output = stage.exec(&["--only", "10.0.0.0/24"], &["python3", "-c", PYTHON]);
        let errors = "['ECONNREFUSED', 'ETIMEDOUT', 'EHOSTUNREACH']";
        let expected = format!(
            "blocking {errors}\nlater {errors}\ntook True\npeer ('10.0.0.1', 7) own 10.0.0.2\necho True\n"
        );
        assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
        echo.join().unwrap();
        assert_eq!(stage.opened(), 7);
        stage.end();
    });
}

#[test]
fn what_cannot_be_is_said_before_anything_starts() {
    let dir = tempfile::tempdir().unwrap();
    let at = |words: &[&str]| run(&[&["exec"], words].concat(), dir.path());
    let socket = dir.path().join("clients");
    let _daemon = rustix_seqpacket(&socket);
    let there = ["--daemon", socket.to_str().unwrap()];
    assert_exit(&at(&["--", "true"]), 2, "give it with --daemon");
    assert_exit(&at(&["--daemon", "nowhere", "--", "true"]), 3, "cannot reach a daemon at");
    assert_exit(
        &at(&[&there[..], &["--by", "In Direct", "--", "true"]].concat()),
        2,
        "is not a transport's name",
    );
    assert_exit(
        &at(&[&there[..], &["--only", "home", "--", "true"]].concat()),
        2,
        "`home` is not a destination",
    );
    assert_exit(&at(&[&there[..], &["--", "no-such-program"]].concat()), 3, "no program `no-such-program`");
    // A program without a dynamic linker: this command with its program headers removed.
    let linked = dir.path().join("static");
    let mut bytes = std::fs::read(wayfare()).unwrap();
    bytes[56..58].fill(0);
    std::fs::write(&linked, &bytes).unwrap();
    assert_exit(&at(&[&there[..], &["--", linked.to_str().unwrap()]].concat()), 3, "no program");
    std::fs::set_permissions(&linked, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert_exit(&at(&[&there[..], &["--", linked.to_str().unwrap()]].concat()), 3, "linked statically");
    assert_exit(&at(&[&there[..], &["--", "true"]].concat()), 0, "");
}

fn rustix_seqpacket(path: &Path) -> rustix::fd::OwnedFd {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
    let listener = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    bind(&listener, &SocketAddrUnix::new(path).unwrap()).unwrap();
    listen(&listener, 16).unwrap();
    listener
}
