//! JSON lines over a UNIX stream socket: the format of control sockets and of the lab's link emulator. Only
//! [`Lines::connect`] and [`Lines::finish`] can block.

use crate::error::{Attempt, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// One end of a connection for messages, each one line of JSON. The limit for a line is 1 MiB for requests and 64 MiB
/// for answers. If the peer sends a longer line, the connection counts as closed.
#[derive(Debug)]
pub struct Lines {
    stream: UnixStream,
    inbox: Vec<u8>,
    /// Number of bytes at the start of `inbox` that contain no end of line.
    searched: usize,
    /// Bytes for which the socket had no room yet.
    unsent: Vec<u8>,
    /// Length of the longest line that is accepted, in bytes.
    longest: usize,
}

/// Length of the longest request and of the longest answer, in bytes. An answer may be long: a home agent's status has
/// about 30 bytes for each binding.
const LONGEST_REQUEST: usize = 1 << 20;
const LONGEST_ANSWER: usize = 1 << 26;
/// Time that [`Lines::finish`] waits for a peer that reads nothing.
const PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// The result of [`Lines::hear`].
#[derive(Debug, PartialEq, Eq)]
pub enum Heard<T> {
    /// A whole message has arrived.
    Message(T),
    /// A line is not a valid message. The text is the parser's error.
    Nonsense(String),
    /// No whole message has arrived yet.
    Nothing,
    /// The peer has closed the connection or sent a line beyond the limit, or the socket failed.
    Gone,
}

impl Lines {
    /// Makes a connected socket non-blocking, to receive requests and to send answers. Fails if the kernel refuses
    /// that.
    pub fn new(stream: UnixStream) -> Result<Self> {
        stream.set_nonblocking(true).attempt("set O_NONBLOCK on", "a control connection")?;
        let (inbox, unsent) = (Vec::new(), Vec::new());
        Ok(Self { stream, inbox, searched: 0, unsent, longest: LONGEST_REQUEST })
    }

    /// Connects to the socket at `path`, to send requests and receive answers. Fails if no process listens there.
    pub fn connect(path: &std::path::Path) -> Result<Self> {
        let lines = Self::new(UnixStream::connect(path).attempt("connect to", path.display())?)?;
        Ok(Self { longest: LONGEST_ANSWER, ..lines })
    }

    /// Sends one message without waiting. Fails if the socket buffer has no room for the whole message, because the
    /// peer has not read earlier messages.
    pub fn send(&mut self, message: &impl Serialize) -> Result<()> {
        self.stream.write_all(&line(message)?).attempt("send on", "a control connection")
    }

    /// Sends one message of any length, as far as the socket buffer has room; [`Lines::flush`] sends the rest. Fails
    /// without sending if more than 1 MiB of earlier messages is still unsent.
    pub fn queue(&mut self, message: &impl Serialize) -> Result<()> {
        if self.unsent.len() > LONGEST_REQUEST {
            let why = "more than 1 MiB of earlier messages is unsent, because the peer does not read";
            return Err(std::io::Error::new(std::io::ErrorKind::WouldBlock, why))
                .attempt("send on", "a control connection");
        }
        self.unsent.extend(line(message)?);
        self.flush()
    }

    /// Returns whether a part of the queued messages is still unsent.
    pub const fn wants_room(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Sends as much of the unsent data as the socket buffer has room for.
    pub fn flush(&mut self) -> Result<()> {
        let mut sent = 0;
        while let Some(left @ [_, ..]) = self.unsent.get(sent..) {
            match self.stream.write(left) {
                Ok(written) => sent += written,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).attempt("send on", "a control connection"),
            }
        }
        self.unsent.drain(..sent);
        Ok(())
    }

    /// Blocks until all queued messages are sent. Fails if the peer reads nothing for 2 s, or if a signal interrupts
    /// the wait.
    pub fn finish(&mut self) -> Result<()> {
        while self.wants_room() {
            let ready = poll(&mut [PollFd::new(&self.stream, PollFlags::OUT)], Some(&PATIENCE));
            if ready.attempt("wait for the peer of", "a control connection")? == 0 {
                let why = "the peer has read nothing for 2 s";
                return Err(std::io::Error::new(std::io::ErrorKind::TimedOut, why))
                    .attempt("send on", "a control connection");
            }
            self.flush()?;
        }
        Ok(())
    }

    /// Returns the next message if a whole line has arrived; never blocks.
    pub fn hear<T: DeserializeOwned>(&mut self) -> Heard<T> {
        loop {
            let fresh = self.inbox.get(self.searched..).unwrap_or_default();
            if let Some(end) = fresh.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.inbox.drain(..=self.searched + end).collect();
                self.searched = 0;
                return match serde_json::from_slice(&line) {
                    Ok(message) => Heard::Message(message),
                    Err(error) => Heard::Nonsense(error.to_string()),
                };
            }
            self.searched = self.inbox.len();
            if self.inbox.len() > self.longest {
                return Heard::Gone;
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Heard::Gone,
                Ok(n) => self.inbox.extend_from_slice(bytes.get(..n).unwrap_or_default()),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Heard::Nothing,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return Heard::Gone,
            }
        }
    }
}

fn line(message: &impl Serialize) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message).map_err(std::io::Error::from).attempt("write", "a message")?;
    line.push(b'\n');
    Ok(line)
}

impl AsFd for Lines {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_whole_and_nonsense_is_named() {
        let (a, b) = UnixStream::pair().unwrap();
        let (mut a, mut b) = (Lines::new(a).unwrap(), Lines::new(b).unwrap());
        assert_eq!(b.hear::<u32>(), Heard::Nothing);
        a.send(&7u32).unwrap();
        a.send(&"text").unwrap();
        assert_eq!(b.hear(), Heard::Message(7u32));
        assert!(matches!(b.hear::<u32>(), Heard::Nonsense(_)));
        drop(a);
        assert_eq!(b.hear::<u32>(), Heard::Gone);
    }

    #[test]
    fn what_is_longer_than_a_socket_s_buffer_goes_in_pieces() {
        let (a, b) = UnixStream::pair().unwrap();
        let (mut a, b) = (Lines::new(a).unwrap(), Lines::new(b).unwrap());
        let mut b = Lines { longest: LONGEST_ANSWER, ..b };
        let long = "binding ".repeat(1 << 19);
        a.queue(&long).unwrap();
        assert!(a.wants_room());
        a.queue(&7).unwrap_err(); // more than 1 MiB is unsent, because the peer has read nothing
        let heard = loop {
            match b.hear::<String>() {
                Heard::Nothing => a.flush().unwrap(),
                heard => break heard,
            }
        };
        assert!(heard == Heard::Message(long.clone()));
        assert!(!a.wants_room());
        a.queue(&long).unwrap();
        let reader = std::thread::spawn(move || {
            let mut lines = b;
            loop {
                match lines.hear::<String>() {
                    Heard::Nothing => std::thread::yield_now(),
                    heard => break heard,
                }
            }
        });
        a.finish().unwrap();
        assert!(reader.join().unwrap() == Heard::Message(long));
    }

    #[test]
    fn who_does_not_read_is_not_waited_for_for_ever() {
        let (a, b) = UnixStream::pair().unwrap();
        let mut a = Lines::new(a).unwrap();
        a.queue(&"binding ".repeat(1 << 19)).unwrap();
        a.finish().unwrap_err();
        drop(b);
    }
}
