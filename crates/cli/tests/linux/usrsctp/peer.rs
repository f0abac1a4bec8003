//! Builds `peer.c`, starts it in a separate namespace, sends orders to it and reads its output.

use crate::common::*;
use os::NetNs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// Compiles `peer.c`. Returns `None` if this machine has no compiler or no usrsctp.
pub(crate) fn build(dir: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/linux/usrsctp/peer.c");
    let program = dir.join("peer");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program).arg(source);
    let output = cc.args(["-lusrsctp", "-lpthread"]).output();
    let built = output.as_ref().is_ok_and(|output| output.status.success());
    // If the library exists, a failure is an error of the program.
    let library = Path::new("/usr/include/usrsctp.h").exists();
    assert!(built || !library, "{}", text(&output.unwrap().stderr));
    need("usrsctp (libusrsctp-dev) and cc", built).then_some(program)
}

pub(crate) struct Peer {
    child: Child,
    orders: ChildStdin,
    lines: Receiver<String>,
    pub(crate) said: Vec<String>,
}

impl Peer {
    pub(crate) fn start(place: &NetNs, program: &Path, words: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = place.run(|| command.spawn()).unwrap().unwrap();
        let (orders, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (say, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| say.send(line))
        });
        Self { child, orders, lines, said: Vec::new() }
    }

    /// Sends an order to the peer: to change its addresses, or to finish.
    pub(crate) fn order(&mut self, line: &str) {
        writeln!(self.orders, "{line}").unwrap();
    }

    /// Reads the lines that the peer has printed so far. Asserts that the peer still runs: it ends only when it is
    /// dropped, or by a fault.
    fn listen(&mut self) {
        self.said.extend(self.lines.try_iter());
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "usrsctp ended, {ended:?}; it said {:?}", self.said);
    }

    /// Returns whether the peer has printed this line so far.
    pub(crate) fn has_said(&mut self, line: &str) -> bool {
        self.listen();
        self.said.iter().any(|said| said == line)
    }

    /// Returns the number of bytes that the peer sent in all, or `None` if it has not finished.
    pub(crate) fn sent(&mut self) -> Option<u64> {
        self.listen();
        self.said.iter().find_map(|line| line.strip_prefix("sent ")?.parse().ok())
    }

    /// Returns the number of bytes that the peer received, and the time in microseconds, or `None` if it has not
    /// finished.
    pub(crate) fn done(&mut self) -> Option<(u64, u64)> {
        self.listen();
        let mut words = self.said.last()?.strip_prefix("done ")?.split(' ').map(|word| word.parse().unwrap());
        words.next().zip(words.next())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
