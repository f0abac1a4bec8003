//! JSON lines over a UNIX stream socket, without blocking: how control sockets and the lab's radio are spoken to.

use crate::error::{Attempt, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// One end of a conversation. Who sends more than [`LONGEST`] bytes without a line's end is not talking to us.
#[derive(Debug)]
pub struct Lines {
    stream: UnixStream,
    inbox: Vec<u8>,
}

/// Bytes of the longest line that is taken.
pub const LONGEST: usize = 1 << 20;

/// What came in.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard<T> {
    /// A message.
    Message(T),
    /// A line that is no message, and what is wrong with it.
    Nonsense(String),
    /// Nothing now.
    Nothing,
    /// The other end has gone.
    Gone,
}

impl Lines {
    /// Talks over this socket.
    pub fn new(stream: UnixStream) -> Result<Self> {
        stream.set_nonblocking(true).attempt("make non-blocking", "a control connection")?;
        Ok(Self { stream, inbox: Vec::new() })
    }

    /// Connects to the socket at `path`.
    pub fn connect(path: &std::path::Path) -> Result<Self> {
        Self::new(UnixStream::connect(path).attempt("connect to", path.display())?)
    }

    /// Sends one message. Messages are short; a peer that has not read a socket's buffer full of them is given up.
    pub fn send(&mut self, message: &impl Serialize) -> Result<()> {
        let mut line =
            serde_json::to_vec(message).map_err(std::io::Error::from).attempt("write", "a message")?;
        line.push(b'\n');
        self.stream.write_all(&line).attempt("send on", "a control connection")
    }

    /// Takes the next message, if a whole one is there.
    pub fn hear<T: DeserializeOwned>(&mut self) -> Heard<T> {
        loop {
            if let Some(end) = self.inbox.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.inbox.drain(..=end).collect();
                return match serde_json::from_slice(&line) {
                    Ok(message) => Heard::Message(message),
                    Err(error) => Heard::Nonsense(error.to_string()),
                };
            }
            if self.inbox.len() > LONGEST {
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
}
