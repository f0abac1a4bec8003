//! What goes to the terminal, and what does not.

use std::io::{IsTerminal, Write};

/// For people, or for programs.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

/// Prints a result. A reader that has gone away, as `head` does, is no error.
pub(crate) fn print(text: &str) {
    let mut to = std::io::stdout().lock();
    let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
}

/// How far long work has come: one line on a terminal, nothing in a pipe.
pub(crate) struct Progress {
    done: usize,
    of: usize,
    shown: bool,
}

impl Progress {
    pub(crate) fn new(of: usize) -> Self {
        let progress = Self { done: 0, of, shown: of > 1 && std::io::stderr().is_terminal() };
        progress.show();
        progress
    }

    pub(crate) fn step(&mut self) {
        self.done += 1;
        self.show();
    }

    fn show(&self) {
        if self.shown {
            eprint!("\r{} of {} runs", self.done, self.of);
            let _ = std::io::stderr().flush();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}
