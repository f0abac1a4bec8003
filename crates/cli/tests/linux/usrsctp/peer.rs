//! `peer.c` in a separate namespace: builds it, starts it, sends it orders and reads its output.

use crate::common::*;
use os::NetNs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// Compiles it. Returns `None` if this machine has no compiler, or not the library.
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

    /// Sends an order: a change of its own addresses, or that it has sent enough.
    pub(crate) fn order(&mut self, line: &str) {
        writeln!(self.orders, "{line}").unwrap();
    }

    /// Reads what it has printed so far. It must still run: it ends only when it is dropped, or by a fault.
    fn listen(&mut self) {
        self.said.extend(self.lines.try_iter());
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "usrsctp ended, {ended:?}; it said {:?}", self.said);
    }

    /// Returns whether it has printed this line so far.
    pub(crate) fn has_said(&mut self, line: &str) -> bool {
        self.listen();
        self.said.iter().any(|said| said == line)
    }

    /// Returns how many bytes it sent in all, once it has finished.
    pub(crate) fn sent(&mut self) -> Option<u64> {
        self.listen();
        self.said.iter().find_map(|line| line.strip_prefix("sent ")?.parse().ok())
    }

    /// Returns how many bytes it received, and in how many microseconds, once it has finished.
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
