//! One connection of a program: the daemon's end of it in this host's own TCP, and the stream of the role that carries
//! it.

use node::{StreamId, StreamOp};
use os::epoll::{Events, Watched};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown, sockopt};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use wire::Duration;

/// Largest number of bytes of one read or write at the program's socket. It is also the number of bytes that one read
/// requests from the role.
const CHUNK: usize = 64 * 1024;

/// Moves bytes between a program and a role. It reads from the program only as many bytes as the role accepts, and from
/// the role only when no byte waits for the program.
#[expect(clippy::struct_excessive_bools, reason = "each is a separate fact")]
pub(super) struct Bridge {
    program: Watched<OwnedFd>,
    /// Bytes for which the program's socket had no room.
    pending: VecDeque<u8>,
    /// A read has been requested from the role.
    reading: bool,
    /// The role's peer will send no more.
    finished: bool,
    /// The program has been notified that the role's peer will send no more.
    shut: bool,
    /// The role has been notified that the program will send no more.
    said_end: bool,
    /// The stream has been closed cleanly; only the pending bytes remain to be sent.
    closed: bool,
}

impl Bridge {
    pub(super) const fn new(program: Watched<OwnedFd>) -> Self {
        Self {
            program,
            pending: VecDeque::new(),
            reading: false,
            finished: false,
            shut: false,
            said_end: false,
            closed: false,
        }
    }

    /// Notifies the kernel what the bridge waits for from now on. The role accepts `credit` bytes.
    pub(super) fn update_interest(&mut self, credit: usize) -> Result<(), Errno> {
        let mut flags = Events::empty();
        flags.set(Events::OUT, !self.pending.is_empty());
        flags.set(Events::IN, credit > 0 && !self.said_end && !self.closed);
        self.program.want(flags)
    }

    pub(super) fn data(&mut self, bytes: Vec<u8>) {
        self.reading = false;
        self.pending.extend(bytes);
    }

    pub(super) const fn finish(&mut self) {
        self.finished = true;
    }

    pub(super) const fn close(&mut self) {
        self.closed = true;
    }

    /// Ends the program's connection with a reset. After a clean end, the program would regard the bytes that it has
    /// received as the whole stream.
    pub(super) fn reset(self) {
        let _ = sockopt::set_socket_linger(&self.program, Some(Duration::ZERO));
    }

    /// Moves as much as possible without blocking. Returns whether the connection has ended. An error means that the
    /// program's connection has failed, for example by a reset.
    pub(super) fn pump(
        &mut self,
        id: StreamId,
        credit: &mut usize,
        ops: &mut Vec<(StreamId, StreamOp)>,
    ) -> Result<bool, Errno> {
        self.flush()?;
        if self.closed {
            return Ok(self.pending.is_empty());
        }
        // The program's socket is not read after the program has closed its half, nor while the role accepts no bytes.
        // A reset by the program is then found only here. Bytes that the program sent before the reset are lost with
        // it (RFC 9293, section 3.10.7.4).
        if *credit == 0 || self.said_end {
            sockopt::socket_error(&self.program)??;
        }
        if !self.reading && !self.finished && self.pending.is_empty() {
            self.reading = true;
            ops.push((id, StreamOp::Read(CHUNK)));
        }
        while *credit > 0 && !self.said_end {
            let mut bytes = vec![0; (*credit).min(CHUNK)];
            match recv(&self.program, &mut bytes[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => {
                    self.said_end = true;
                    ops.push((id, StreamOp::Finish));
                }
                Ok((got, _)) => {
                    bytes.truncate(got);
                    *credit = credit.saturating_sub(got);
                    ops.push((id, StreamOp::Write(bytes)));
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    fn flush(&mut self) -> Result<(), Errno> {
        while !self.pending.is_empty() {
            let (head, _) = self.pending.as_slices();
            match send(&self.program, head, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(taken) => drop(self.pending.drain(..taken)),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        if self.finished && !self.shut {
            shutdown(&self.program, Shutdown::Write)?;
            self.shut = true;
        }
        Ok(())
    }
}
