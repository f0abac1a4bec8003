//! The control socket: JSON lines over a UNIX socket, one answer to each request.

use super::socket_file::{self, SocketFile};
use super::source::Source;
use node::Value;
use os::{
    Attempt, Clock, Result,
    descriptors::{Accepted, Reserve},
    epoll::{Epoll, Events, Watched},
    json_lines::{Heard, Lines},
    peer,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::SocketType;
use rustix::time::Timespec;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use wire::{Duration, Instant};

/// A request of a client to the daemon on the control socket, as one line of JSON.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ask {
    /// Ask whether the daemon is ready. The daemon answers with a null value once it has taken over its interfaces.
    Ready,
    /// Begin the run: the node starts once the clock has reached its zero. A second request to begin is refused.
    Begin {
        /// The zero of the clock, in nanoseconds of `CLOCK_BOOTTIME`.
        t0: u64,
        /// The end of the run, in nanoseconds after the zero; `None` if it is not known. Lateness of the daemon after
        /// the end is not measured.
        #[serde(default)]
        end: Option<u64>,
        /// When this request was sent, in nanoseconds after the zero: 0 at the start of a run, and later after a crash.
        #[serde(default)]
        since: u64,
        /// Nanoseconds by which this host's wall clock is ahead of the machine's; negative if it is behind.
        #[serde(default)]
        wall_shift: i64,
    },
    /// Set this host's wall clock forward or back. The machine's clock does not change.
    Clock {
        /// Nanoseconds to add; negative to set the clock back.
        by: i64,
    },
    /// End the daemon. The answer is its summary ([`crate::DaemonSummary`]), or an error if there is none.
    Stop,
    /// A command for the node's roles, which give the answer.
    Do {
        /// The command's name, for example `status`.
        verb: String,
        /// The command's arguments, as the role expects them.
        #[serde(default)]
        args: serde_json::Value,
    },
}

/// The daemon's answer to an [`Ask`], as one line of JSON.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// The request was executed. The value is its result.
    Ok(serde_json::Value),
    /// The request was refused or failed. The text says why.
    Error(String),
    /// No role of this host has the command. The text says which commands there are.
    Unknown(String),
}

pub(crate) struct Request {
    pub(crate) requester: u64,
    pub(crate) ask: Ask,
}

/// Largest number of clients that are connected at one time.
const CONNECTIONS: usize = 16;
/// A client that was silent or connected for this time may be disconnected when another client needs its place.
const IDLE: Duration = Duration::from_secs(10);

struct Connection {
    lines: Watched<Lines>,
    /// When the client's last message arrived; at first, when the client connected.
    heard: Instant,
    /// When the client connected.
    since: Instant,
    /// Whether the client sent `begin`. Only a lab does.
    is_lab: bool,
}

pub(crate) struct Control {
    epoll: Arc<Epoll>,
    listener: Option<(Watched<UnixListener>, SocketFile)>,
    connections: BTreeMap<u64, Connection>,
    /// Whether a client may have sent more than was read in one turn.
    has_more: bool,
    /// Descriptors for the connections that may still be accepted.
    reserve: Reserve,
    /// Whether the last connection could not be accepted.
    rests: bool,
    clock: Clock,
    next: u64,
    /// The connections that sent `stop`.
    stops: Vec<u64>,
    /// The answer to `stop`; null until the counters have been read.
    pub(crate) summary: serde_json::Value,
}

impl Control {
    /// Listens at this path, if there is one; `epoll` will wait for the sockets.
    pub(crate) fn open(epoll: &Arc<Epoll>, path: Option<&Path>) -> Result<Self> {
        let listener = path.map(|path| listen(epoll, path)).transpose()?;
        Ok(Self {
            epoll: Arc::clone(epoll),
            listener,
            connections: BTreeMap::new(),
            has_more: false,
            reserve: Reserve::keep(if path.is_some() { CONNECTIONS } else { 0 }),
            rests: false,
            clock: Clock::start(),
            next: 0,
            stops: Vec::new(),
            summary: serde_json::Value::Null,
        })
    }

    /// Notifies the kernel what the sockets wait for from now on. Call it before each wait. There are at most
    /// [`CONNECTIONS`] connections and the listener. A socket that waits for the same events as before costs no
    /// system call.
    pub(crate) fn update_interests(&mut self) -> std::result::Result<(), Errno> {
        if let Some((listener, _)) = &mut self.listener {
            listener.want(if self.rests { Events::empty() } else { Events::IN })?;
        }
        for Connection { lines, .. } in self.connections.values_mut() {
            let room = if lines.wants_room() { Events::OUT } else { Events::empty() };
            lines.want(Events::IN | room)?;
        }
        Ok(())
    }

    /// Accepts clients, and returns the requests that have arrived, at most one of each client. A malformed request is
    /// answered by this function.
    pub(crate) fn hear(&mut self) -> Vec<Request> {
        self.has_more = false;
        self.accept();
        let now = self.clock.now();
        let mut requests = Vec::new();
        let mut gone = Vec::new();
        for (requester, Connection { lines, heard, .. }) in &mut self.connections {
            let lines = lines.source_mut();
            if lines.flush().is_err() {
                gone.push(*requester);
                continue;
            }
            // One message of each client in a turn, so that a client cannot keep the daemon from its packets.
            match lines.hear() {
                Heard::Message(ask) => {
                    (*heard, self.has_more) = (now, true);
                    requests.push(Request { requester: *requester, ask });
                }
                Heard::Nonsense(problem) => {
                    (*heard, self.has_more) = (now, true);
                    let problem = format!("not a request: {problem}");
                    if lines.queue(&Answer::Error(problem)).is_err() {
                        gone.push(*requester);
                    }
                }
                Heard::Nothing => {}
                Heard::Gone => gone.push(*requester),
            }
        }
        for requester in gone {
            self.connections.remove(&requester);
        }
        self.refill_reserve();
        requests
    }

    pub(crate) fn answer(&mut self, requester: u64, answer: std::result::Result<Value, String>) {
        let answer = match answer {
            Ok(value) => Answer::Ok(trace::json_of(&value)),
            Err(problem) => Answer::Error(problem),
        };
        self.reply(requester, &answer);
    }

    pub(crate) fn reply(&mut self, requester: u64, answer: &Answer) {
        if self
            .connections
            .get_mut(&requester)
            .is_some_and(|connection| connection.lines.source_mut().queue(answer).is_err())
        {
            self.connections.remove(&requester);
        }
    }

    /// Marks the connection of a lab, so that it is not closed for another client. A lab may send nothing between the
    /// begin and the end of the run.
    pub(crate) fn is_the_labs(&mut self, requester: u64) {
        if let Some(connection) = self.connections.get_mut(&requester) {
            connection.is_lab = true;
        }
    }

    pub(crate) fn remember(&mut self, requester: u64) {
        self.stops.push(requester);
    }

    /// Answers the clients that sent `stop`, and sends the unsent parts of all answers. Call it when the records and
    /// the store are written.
    pub(crate) fn send_summary(&mut self) {
        for requester in std::mem::take(&mut self.stops) {
            let answer = match &self.summary {
                serde_json::Value::Null => Answer::Error(
                    "the daemon could not report its counters; its last messages are on standard error"
                        .to_owned(),
                ),
                summary => Answer::Ok(summary.clone()),
            };
            self.reply(requester, &answer);
        }
        for Connection { lines, .. } in self.connections.values_mut() {
            let _ = lines.source_mut().finish(); // waits at most 2 s for a client that does not read
        }
    }

    fn accept(&mut self) {
        let now = self.clock.now();
        self.rests = false;
        loop {
            if self.connections.len() >= CONNECTIONS && self.some_have_gone() {
                self.has_more = true; // there is room once the unread data of gone clients is read
                break;
            }
            let Some(stream) = self.accept_one() else { break };
            let may_order = peer::may_order(&stream);
            let Ok(mut lines) = Lines::new(stream) else { continue };
            if !may_order {
                // An error means that the client has gone.
                let _ = lines.send(&Answer::Error(
                    "only root and the user that runs this daemon may send requests".to_owned(),
                ));
                continue;
            }
            if self.connections.len() >= CONNECTIONS && !make_room(&mut self.connections, now) {
                let _ = lines.send(&Answer::Error(format!(
                    "{CONNECTIONS} clients are connected, and no more are accepted now; try again after 10 s"
                )));
                continue;
            }
            let lines = Watched::new(&self.epoll, lines, Source::Control.token(), Events::IN);
            let Ok(lines) = lines else { continue }; // the client sees that its connection was closed
            self.connections.insert(self.next, Connection { lines, heard: now, since: now, is_lab: false });
            self.next += 1;
        }
        self.refill_reserve();
    }

    /// Reserves a descriptor for each connection that may still be accepted. Otherwise the daemon's other sockets could
    /// take the descriptors of connections that have ended.
    fn refill_reserve(&mut self) {
        if self.listener.is_some() {
            self.reserve.refill(CONNECTIONS.saturating_sub(self.connections.len()));
        }
    }

    /// Returns whether a client has closed its connection. The client's last data may still be unread.
    fn some_have_gone(&self) -> bool {
        let fds = self
            .connections
            .values()
            .map(|client| PollFd::from_borrowed_fd(client.lines.as_fd(), PollFlags::empty()));
        let mut fds: Vec<_> = fds.collect();
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok() && fds.iter().any(|fd| fd.revents().contains(PollFlags::HUP))
    }

    /// Accepts the next client, with a descriptor of the reserve if no other is left.
    fn accept_one(&mut self) -> Option<UnixStream> {
        let (listener, _) = self.listener.as_ref()?;
        let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::INVAL);
        match self.reserve.accept(1, || listener.accept().map_err(errno)) {
            Accepted::One((stream, _)) => Some(stream),
            Accepted::Nothing => None,
            Accepted::Refused => {
                self.rests = true;
                None
            }
        }
    }

    /// Returns whether a waiting client could not be accepted. The caller tries again after a short pause.
    pub(crate) const fn rests(&self) -> bool {
        self.rests
    }

    /// Returns whether a client may have sent more than was read. If so, the daemon must not sleep.
    pub(crate) const fn has_more(&self) -> bool {
        self.has_more
    }
}

/// Disconnects the client that has been idle for longest, if for at least [`IDLE`]. Otherwise disconnects the client
/// that has been connected for longest, if for at least [`IDLE`]. So clients that send requests regularly do not
/// exclude others. The client may connect again. The lab's connection is never closed. Returns whether a client was
/// disconnected.
fn make_room(connections: &mut BTreeMap<u64, Connection>, now: Instant) -> bool {
    let longest = |since: fn(&Connection) -> Instant| {
        let over = connections.iter().filter(|(_, client)| !client.is_lab && since(client) + IDLE <= now);
        over.min_by_key(|(_, client)| since(client)).map(|(requester, _)| *requester)
    };
    let gives_way = longest(|client| client.heard).or_else(|| longest(|client| client.since));
    gives_way.is_some_and(|requester| connections.remove(&requester).is_some())
}

fn listen(epoll: &Arc<Epoll>, path: &Path) -> Result<(Watched<UnixListener>, SocketFile)> {
    let knock = || socket_file::knock(path, SocketType::STREAM);
    socket_file::clear(path, knock).attempt("listen at", path.display())?;
    // Only this user may use the file from the start. The daemon has no other thread yet that could create files with
    // this umask.
    let before = rustix::process::umask(Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(path).attempt("listen at", path.display());
    rustix::process::umask(before);
    let listener = listener?;
    listener.set_nonblocking(true).attempt("listen at", path.display())?;
    let file = SocketFile::bound(path);
    let listener = Watched::new(epoll, listener, Source::Control.token(), Events::IN);
    Ok((listener.attempt("wait on", path.display())?, file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_own_process;
    use std::io::Write;

    #[test]
    fn clients_that_have_gone_keep_nobody_out() {
        in_own_process(|| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("control.sock");
            let mut control = Control::open(&Arc::new(Epoll::new().unwrap()), Some(&path)).unwrap();
            for _ in 0..3 * CONNECTIONS {
                UnixStream::connect(&path).unwrap().write_all(br#"{"do":{"verb":"sta"#).unwrap();
            }
            let mut stays = UnixStream::connect(&path).unwrap();
            stays.write_all(b"{\"do\":{\"verb\":\"status\"}}\n").unwrap();
            let mut turns = 0;
            while control.hear().is_empty() {
                turns += 1;
                assert!(control.has_more() && turns < 10, "it was refused, or never came");
            }
        });
    }

    /// When a client has gone, its descriptor is reserved again in the same turn. Otherwise programs would take it, and
    /// the next client of the control socket would have none.
    #[test]
    fn the_descriptor_of_a_client_that_has_gone_is_reserved_at_once() {
        in_own_process(|| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("control.sock");
            let mut control = Control::open(&Arc::new(Epoll::new().unwrap()), Some(&path)).unwrap();
            let client = UnixStream::connect(&path).unwrap();
            control.hear();
            assert_eq!(control.connections.len(), 1);
            control.reserve.spend(CONNECTIONS);
            drop(client);
            control.hear();
            assert!(control.connections.is_empty());
            assert_eq!(control.reserve.len(), CONNECTIONS);
        });
    }

    #[test]
    fn clients_that_keep_asking_give_way_when_they_have_had_their_time() {
        let epoll = Arc::new(Epoll::new().unwrap());
        let client = |since: u64, heard: u64, is_lab: bool| {
            let (stream, _) = UnixStream::pair().unwrap();
            let [since, heard] = [since, heard].map(|s| Instant::ZERO + Duration::from_secs(s));
            let lines = Watched::new(&epoll, Lines::new(stream).unwrap(), 0, Events::IN).unwrap();
            Connection { lines, heard, since, is_lab }
        };
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        // At 30 s, the last request of each client is at most 3 s old.
        let mut all: BTreeMap<u64, Connection> =
            (0..4).map(|n| (n, client(10 + n, 27 + n % 2, n == 0))).collect();
        assert!(!make_room(&mut all, at(20)), "no client has had its time");
        assert!(make_room(&mut all, at(30)));
        assert!(!all.contains_key(&1), "the oldest but the lab's");
        assert!(make_room(&mut all, at(38)));
        assert!(!all.contains_key(&2), "the one that has been idle for longest");
        assert!(all.contains_key(&0));
    }
}
