//! Writes to standard output and standard error, and records the first error of standard output.

use os::Clock;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use trace::NamedDoubt;
use wire::Duration;

/// The format of the output: text for people, or JSON for programs.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

/// The first error of writing to standard output. `main` reports it at the end.
static UNWRITTEN: Mutex<Option<io::Error>> = Mutex::new(None);

/// Whether the reader of standard output has exited.
static UNREAD: AtomicBool = AtomicBool::new(false);

/// Prints a result. An error is kept for [`unwritten`], except `EPIPE` from a reader that has exited, such as `head`.
/// After `EPIPE`, the command continues without printing.
pub(crate) fn print(text: &str) {
    let mut to = io::stdout().lock();
    let written = if os::stdout_was_closed() {
        Err(io::Error::other("the file descriptor is closed"))
    } else {
        to.write_all(text.as_bytes()).and_then(|()| to.flush())
    };
    let Err(error) = written else { return };
    if error.kind() == io::ErrorKind::BrokenPipe {
        UNREAD.store(true, Ordering::Relaxed);
    } else {
        UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// Returns whether the reader of standard output has exited, so that [`print()`] has no effect.
pub(crate) fn is_unread() -> bool {
    UNREAD.load(Ordering::Relaxed)
}

/// Returns the first error of [`print()`], if there was one.
pub(crate) fn unwritten() -> Option<io::Error> {
    UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// The environment variable with the file to which each doubt is appended as a line of JSON. Scripts and tests read
/// it instead of the text.
const DOUBTS: &str = "WAYFARE_DOUBTS";

/// Appends doubts to the file that the environment variable [`DOUBTS`] names. Does nothing if the variable is not set.
pub(crate) fn keep_doubts(doubts: &[NamedDoubt]) {
    let Some(path) = std::env::var_os(DOUBTS).filter(|path| !path.is_empty()) else { return };
    let lines: String = doubts.iter().map(|doubt| doubt.to_line() + "\n").collect();
    let file = File::options().append(true).create(true).open(&path);
    if let Err(error) = file.and_then(|mut file| file.write_all(lines.as_bytes())) {
        tell!("error: {DOUBTS}: cannot write {}: {error}", path.display());
    }
}

/// Writes to standard error, for [`tell`]. A write error is ignored, because no result is written to standard error.
pub(crate) fn write_error(text: std::fmt::Arguments<'_>) {
    let mut to = io::stderr().lock();
    let _ = to.write_fmt(text).and_then(|()| to.flush());
}

/// Prints a line on standard error. `eprintln!` would panic if the line cannot be written.
macro_rules! tell {
    ($($what:tt)*) => {
        $crate::output::write_error(format_args!("{}\n", format_args!($($what)*)))
    };
}
pub(crate) use tell;

/// Replaces the last line of the terminal by `line`.
pub(crate) fn show(line: std::fmt::Arguments<'_>) {
    write_error(format_args!("\r\x1b[K{line}"));
}

/// Without a terminal, the shortest time between two lines about progress.
const QUIET: Duration = Duration::from_secs(10);

/// Shows on standard error how many runs of a long job are done, and how long the rest takes. On a terminal this is one
/// line that is updated, otherwise a line at most every ten seconds.
pub(crate) struct Progress {
    done: usize,
    of: usize,
    terminal: bool,
    said: wire::Instant,
    clock: Clock,
}

impl Progress {
    /// Starts to show the progress of `of` runs. For a single run nothing is shown.
    pub(crate) fn new(of: usize) -> Self {
        let clock = Clock::start();
        let mut progress =
            Self { done: 0, of, terminal: io::stderr().is_terminal(), said: clock.now(), clock };
        progress.show();
        progress
    }

    /// Counts one more finished run.
    pub(crate) fn step(&mut self) {
        self.done += 1;
        self.show();
    }

    fn show(&mut self) {
        if self.of <= 1 {
            return;
        }
        let now = self.clock.now();
        let text = format!(
            "{} of {} runs{}",
            self.done,
            self.of,
            left(self.done, self.of, now.since(wire::Instant::ZERO))
        );
        if self.terminal {
            show(format_args!("{} {text}", bar(self.done, self.of)));
        } else if now.since(self.said) >= QUIET {
            self.said = now;
            tell!("{text}");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.terminal && self.of > 1 {
            show(format_args!(""));
        }
    }
}

/// Shows the progress of a job of which only the estimated length is known. On a terminal this is a line that counts
/// down, otherwise one line at the start.
pub(crate) struct Countdown {
    end: Option<mpsc::Sender<()>>,
    counter: Option<std::thread::JoinHandle<()>>,
    terminal: bool,
}

impl Countdown {
    /// If the estimate is shorter than this, nothing is shown.
    const SHORTEST: Duration = Duration::from_secs(3);

    pub(crate) fn new(what: &str, estimate: Duration) -> Self {
        let terminal = io::stderr().is_terminal();
        let mut countdown = Self { end: None, counter: None, terminal };
        if estimate < Self::SHORTEST {
            return countdown;
        }
        if !terminal {
            tell!("{what}: about {}", span(estimate.as_secs()));
            return countdown;
        }
        let (send, receive) = mpsc::channel::<()>();
        let (what, clock) = (what.to_owned(), Clock::start());
        let count = move || {
            let second = std::time::Duration::from_secs(1);
            loop {
                let passed = clock.now().since(wire::Instant::ZERO);
                if passed > estimate {
                    show(format_args!("{what}: {} so far, longer than estimated", span(passed.as_secs())));
                } else {
                    let left = estimate.saturating_sub(passed).as_secs().max(1);
                    show(format_args!("{what}: about {} left", span(left)));
                }
                if receive.recv_timeout(second) != Err(mpsc::RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        countdown.end = Some(send);
        countdown.counter = Some(std::thread::spawn(count));
        countdown
    }
}

impl Drop for Countdown {
    fn drop(&mut self) {
        self.end = None;
        if let Some(counter) = self.counter.take() {
            let _ = counter.join();
            if self.terminal {
                show(format_args!(""));
            }
        }
    }
}

/// Returns a progress bar of 30 characters.
fn bar(done: usize, of: usize) -> String {
    let filled = (done * 30).checked_div(of).unwrap_or(30).min(30);
    format!("[{}{}]", "#".repeat(filled), " ".repeat(30 - filled))
}

/// Returns a text with the estimated time that is left, assuming the speed so far. The text is empty before the first
/// run and after the last run.
fn left(done: usize, of: usize, took: Duration) -> String {
    if done == 0 || done >= of {
        return String::new();
    }
    let seconds = (took.as_secs_f64() / done as f64 * (of - done) as f64).ceil() as u64;
    format!(", {} left", span(seconds))
}

/// Returns a time in seconds as text, for example `1 min 30 s`.
pub(crate) fn span(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds:02} s"),
        (hours, minutes, _) => format!("{hours} h {minutes:02} min"),
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
