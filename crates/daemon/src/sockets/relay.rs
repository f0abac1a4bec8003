//! Two joined connections: what one receives, the other sends, by `splice(2)` through one pipe per direction. So these
//! bytes do not leave the kernel.
//!
//! `sockmap` is not used: it has no back-pressure, and its bytes cannot be read back. A relay reads nothing from a
//! socket while the pipe has no room. When the relay ends, the bytes in its pipes are read out.

use super::options::{self, SIOCINQ};
use super::socket::Socket;
use node::StreamId;
use os::epoll::Events;
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, send, shutdown};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;

/// Largest number of bytes that the pipe of one direction holds. More would only have to be moved at a handoff.
const CAP: usize = 64 * 1024;
/// Largest number of bytes in the pipe of one direction if the user limits the send buffer: one page.
const LITTLE: usize = 4096;
/// Largest number of rounds of a relay in one turn of the daemon, which then serves its other sources.
const ROUNDS: usize = 8;

/// A relay between two sockets.
pub(super) struct Relay {
    pub(super) ends: [StreamId; 2],
    /// The directions: from the first end to the second, and back.
    directions: [Direction; 2],
}

/// The state of a relay.
pub(super) enum Pumped {
    /// The relay continues.
    Open,
    /// Both peers have finished, and each has been notified of the other's end.
    Over,
    /// This end has failed, for this reason.
    Broken(StreamId, Errno),
}

struct Direction {
    /// Bytes that are sent before those in the pipe: the user had read them before the relay began.
    staged: VecDeque<u8>,
    out: OwnedFd,
    into: OwnedFd,
    piped: usize,
    /// The most bytes that the pipe may hold.
    most: usize,
    /// Whether the kernel reported that the pipe is full. A pipe has a fixed number of buffers, and a small segment
    /// uses a whole buffer. So the pipe can be full before it holds `most` bytes.
    full: bool,
    /// Whether the sender has finished.
    ended: bool,
    /// Whether the receiving peer has been notified that the sender has finished.
    told: bool,
}

impl Relay {
    /// Creates a relay between the sockets `ends`. `staged` has bytes that the relay sends first: to the second end,
    /// and to the first end.
    pub(super) fn new(ends: [StreamId; 2], staged: [Vec<u8>; 2]) -> Result<Self, Errno> {
        let [there, back] = staged;
        Ok(Self { ends, directions: [Direction::new(there)?, Direction::new(back)?] })
    }

    /// Reduces the limit of the direction towards the end `to` to [`LITTLE`] bytes.
    pub(super) fn keep_little(&mut self, to: StreamId) {
        let [there, back] = &mut self.directions;
        let direction = if self.ends.first() == Some(&to) { back } else { there };
        direction.most = LITTLE;
    }

    /// Returns the other end of the relay.
    pub(super) fn other(&self, id: StreamId) -> StreamId {
        let [first, second] = self.ends;
        if id == first { second } else { first }
    }

    /// Moves bytes in both directions without blocking, in at most [`ROUNDS`] rounds.
    pub(super) fn pump(&mut self, sockets: &mut BTreeMap<StreamId, Socket>) -> Pumped {
        let [first, second] = self.ends;
        for id in self.ends {
            if let Some(Err(error)) = sockets.get(&id).map(Socket::error) {
                return Pumped::Broken(id, error);
            }
        }
        for _ in 0..ROUNDS {
            let mut moved = 0;
            for (direction, from, to) in
                self.directions.iter_mut().zip([(first, second), (second, first)]).map(flat)
            {
                match direction.fill(sockets.get_mut(&from)) {
                    Ok(bytes) => moved += bytes,
                    Err(error) => return Pumped::Broken(from, error),
                }
                let more = sockets.get(&from).is_some_and(has_more);
                match direction.drain(sockets.get_mut(&to), more) {
                    Ok(bytes) => moved += bytes,
                    Err(error) => return Pumped::Broken(to, error),
                }
            }
            if moved == 0 {
                break;
            }
        }
        if self.directions.iter().all(|direction| direction.told) { Pumped::Over } else { Pumped::Open }
    }

    /// Returns the events that an end waits for because of the relay.
    pub(super) fn waits_for(&self, id: StreamId) -> Events {
        let [there, back] = &self.directions;
        let (from, to) = if self.ends.first() == Some(&id) { (there, back) } else { (back, there) };
        let mut flags = Events::empty();
        flags.set(Events::IN, from.has_room());
        flags.set(Events::OUT, to.piped > 0 || !to.staged.is_empty());
        flags
    }

    /// Returns whether the relay holds no bytes.
    pub(super) fn is_empty(&self) -> bool {
        self.directions.iter().all(|direction| direction.piped == 0 && direction.staged.is_empty())
    }

    /// Ends the relay. Returns the bytes that it holds: those from this end, and those to this end.
    pub(super) fn part(self, id: StreamId) -> Result<[Vec<u8>; 2], Errno> {
        let is_first = self.ends.first() == Some(&id);
        let [there, back] = self.directions;
        let (there, back) = (there.empty()?, back.empty()?);
        Ok(if is_first { [there, back] } else { [back, there] })
    }
}

impl Direction {
    fn new(staged: Vec<u8>) -> Result<Self, Errno> {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // If the user has many pipes, the kernel may make a new one smaller. Then the relay holds fewer bytes, and
        // nothing else changes.
        let _ = fcntl_setpipe_size(&into, CAP);
        let staged = staged.into();
        Ok(Self { staged, out, into, piped: 0, most: CAP, full: false, ended: false, told: false })
    }

    const fn has_room(&self) -> bool {
        self.piped < self.most && !self.full && !self.ended
    }

    /// Moves bytes from a socket into the pipe, and returns their number. Returns 1 for the end of the stream and for
    /// an interrupted call, because the relay must continue after both.
    fn fill(&mut self, from: Option<&mut Socket>) -> Result<usize, Errno> {
        let Some(from) = from.filter(|from| !from.rests()) else { return Ok(0) };
        if !self.has_room() {
            return Ok(0);
        }
        match splice(&from.fd, None, &self.into, None, self.most - self.piped, SpliceFlags::NONBLOCK) {
            Err(Errno::AGAIN) if !from.is_at_end() => {
                self.full = self.piped > 0;
                Ok(0)
            }
            Ok(0) | Err(Errno::AGAIN) => {
                (self.ended, from.knows_end) = (true, true);
                Ok(1)
            }
            Ok(taken) => {
                self.piped += taken;
                Ok(taken)
            }
            Err(Errno::INTR) => Ok(1),
            Err(error) => Err(error),
        }
    }

    /// Moves bytes to a socket: first the socket's pending bytes, then the staged bytes, then the bytes in the pipe.
    /// After the last byte, passes on the end of the stream. Returns the number of staged and piped bytes that were
    /// moved, plus 1 for the end. With `more`, the kernel waits until it has a full segment, because the pipe may hold
    /// less than a segment, or no multiple of one.
    fn drain(&mut self, to: Option<&mut Socket>, more: bool) -> Result<usize, Errno> {
        let Some(to) = to.filter(|to| !to.rests()) else { return Ok(0) };
        to.flush()?;
        if !to.pending.is_empty() {
            return Ok(0);
        }
        let mut moved = self.send_staged(to)?;
        let mut flags = SpliceFlags::NONBLOCK;
        flags.set(SpliceFlags::MORE, more);
        while self.staged.is_empty() && self.piped > 0 {
            match splice(&self.out, None, &to.fd, None, self.piped, flags) {
                Ok(taken) => {
                    (self.piped, self.full) = (self.piped.saturating_sub(taken.max(1)), false);
                    moved += taken;
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        if self.ended && !self.told && self.piped == 0 && self.staged.is_empty() {
            if !to.shut {
                shutdown(&to.fd, Shutdown::Write)?;
            }
            (to.finishing, to.shut, self.told) = (true, true, true);
            moved += 1;
        }
        Ok(moved)
    }

    fn send_staged(&mut self, to: &Socket) -> Result<usize, Errno> {
        let mut moved = 0;
        while !self.staged.is_empty() {
            let (head, _) = self.staged.as_slices();
            match send(&to.fd, head, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(taken) => {
                    moved += taken;
                    self.staged.drain(..taken);
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(moved)
    }

    /// Returns all bytes that are under way in this direction.
    fn empty(self) -> Result<Vec<u8>, Errno> {
        let mut bytes: Vec<u8> = self.staged.into();
        let staged = bytes.len();
        bytes.resize(staged + self.piped, 0);
        let mut at = staged;
        while let Some(rest) = bytes.get_mut(at..).filter(|rest| !rest.is_empty()) {
            match rustix::io::read(&self.out, rest) {
                Ok(0) => return Err(Errno::IO),
                Ok(got) => at += got,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(bytes)
    }
}

fn flat<A, B, C>((a, (b, c)): (A, (B, C))) -> (A, B, C) {
    (a, b, c)
}

/// Returns whether a socket has something to read now.
fn has_more(socket: &Socket) -> bool {
    !socket.rests() && options::queued(&socket.fd, SIOCINQ).is_ok_and(|unread| unread > 0)
}
