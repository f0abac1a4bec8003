//! What goes to the terminal, and what does not.

use linux::Clock;
use std::io::{IsTerminal, Write};
use wire::Duration;

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

/// How far long work has come and how long it still takes: one line on a terminal, nothing in a pipe.
pub(crate) struct Progress {
    done: usize,
    of: usize,
    shown: bool,
    clock: Clock,
}

impl Progress {
    pub(crate) fn new(of: usize) -> Self {
        let shown = of > 1 && std::io::stderr().is_terminal();
        let progress = Self { done: 0, of, shown, clock: Clock::start() };
        progress.show();
        progress
    }

    pub(crate) fn step(&mut self) {
        self.done += 1;
        self.show();
    }

    fn show(&self) {
        if self.shown {
            let left = left(self.done, self.of, self.clock.now().since(wire::Instant::ZERO));
            eprint!("\r\x1b[K{} {} of {} runs{left}", bar(self.done, self.of), self.done, self.of);
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

/// Thirty characters wide.
fn bar(done: usize, of: usize) -> String {
    let filled = (done * 30).checked_div(of).unwrap_or(30).min(30);
    format!("[{}{}]", "#".repeat(filled), " ".repeat(30 - filled))
}

/// If the rest takes as long as what is done took.
fn left(done: usize, of: usize, took: Duration) -> String {
    if done == 0 || done >= of {
        return String::new();
    }
    let seconds = (took.as_secs_f64() / done as f64 * (of - done) as f64).ceil() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!(", {seconds} s left"),
        (0, minutes, seconds) => format!(", {minutes} min {seconds:02} s left"),
        (hours, minutes, _) => format!(", {hours} h {minutes:02} min left"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_as_slow_as_what_is_done() {
        let after = |done, seconds| left(done, 100, Duration::from_secs(seconds));
        assert_eq!([after(0, 9), after(100, 9)], ["", ""]);
        assert_eq!([after(50, 10), after(10, 10)], [", 10 s left", ", 1 min 30 s left"]);
        assert_eq!(after(1, 60), ", 1 h 39 min left");
        assert_eq!(bar(1, 2).matches('#').count(), 15);
        assert_eq!((bar(0, 0), bar(0, 9).contains('#')), (format!("[{}]", "#".repeat(30)), false));
    }
}
