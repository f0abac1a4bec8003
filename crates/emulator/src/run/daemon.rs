//! A daemon of a lab, as pid 1 knows it: its readiness, its begin and its end.

use super::LinuxError;
use super::report::HostReport;
use daemon::{Answer, Ask};
use os::Clock;
use os::json_lines::{Heard, Lines};
use std::path::PathBuf;
use std::process::Child;
use wire::Duration;

/// What pid 1 of the lab knows of one daemon.
pub(super) struct Daemon {
    pub(super) name: String,
    pub(super) child: Child,
    pub(super) control: PathBuf,
    pub(super) lines: Option<Lines>,
    /// Number of answers that the daemon has not given yet: to the request to begin, and to changes of its clock.
    pub(super) owes: u32,
    pub(super) has_ended: bool,
    /// The offset of the host's wall clock from the machine's, in nanoseconds.
    pub(super) wall_shift: i64,
    pub(super) report: HostReport,
}

/// Time for a daemon to take over its interfaces.
pub(super) const READY: Duration = Duration::from_secs(10);
/// If the lab's process was stalled for longer than this time while it waited for a daemon ([`READY`]), the machine may
/// be the cause of the daemon's lateness.
const LONG_PAUSE: Duration = Duration::from_secs(1);
/// Time for all daemons to write their records after the request to end: several hundred megabytes after a long run, on
/// a machine that may be busy. The death of a daemon is detected at once.
const GOODBYE: Duration = Duration::from_mins(1);
/// Time within which a stopped daemon must run again after it was continued, and within which a killed daemon must end.
/// A daemon that stays stopped is kept stopped by another process, so it is killed.
const HELD: Duration = Duration::from_secs(2);

/// A daemon that was started and has not reported yet that it has taken over its interfaces.
pub(super) struct Greeting {
    /// When the daemon's time limit [`READY`] began.
    since: Clock,
    has_asked: bool,
    /// When the daemon was last checked.
    looked: Clock,
    /// The longest time between two checks of the daemon. This process may have been stalled for this time.
    pause: Duration,
}

impl Greeting {
    pub(super) fn new() -> Self {
        Self { since: Clock::start(), has_asked: false, looked: Clock::start(), pause: Duration::ZERO }
    }

    fn look(&mut self) {
        self.pause = self.pause.max(elapsed(self.looked));
        self.looked = Clock::start();
    }

    /// Restarts the time limit, because the daemon is stopped.
    pub(super) fn excuse(&mut self) {
        (self.since, self.looked) = (Clock::start(), Clock::start());
    }
}

fn elapsed(since: Clock) -> Duration {
    since.now().since(wire::Instant::ZERO)
}

/// A daemon's exit code if its machine lacks a feature.
const CANNOT: i32 = 3;

impl Daemon {
    /// Returns the error of a daemon that ended before it was ready, with its last error, or else the last line of its
    /// output.
    pub(super) fn never_ready(&self, status: std::process::ExitStatus) -> LinuxError {
        let said = std::fs::read_to_string(self.control.with_extension("log")).unwrap_or_default();
        // Below the line of an error in a file are the lines that show the place.
        let error = said.lines().rev().find_map(|line| line.strip_prefix("error: "));
        let said = error.or_else(|| said.lines().last()).unwrap_or_default();
        let name = &self.name;
        match status.code() {
            Some(CANNOT) => LinuxError::Lacks(format!("{name}: {said}")),
            _ => {
                let why = format!("the daemon ended before it was ready, {status}: {said}");
                LinuxError::NotReady { host: name.clone(), why }
            }
        }
    }

    /// Returns whether the daemon has taken over its interfaces. Asks the daemon as soon as it listens, and never
    /// blocks. Fails if the daemon has ended, or is not ready within [`READY`].
    pub(super) fn is_ready(&mut self, greeting: &mut Greeting) -> Result<bool, LinuxError> {
        if let Ok(Some(status)) = self.child.try_wait() {
            self.has_ended = true;
            return Err(self.never_ready(status));
        }
        greeting.look();
        if elapsed(greeting.since) > READY {
            return Err(self.late(greeting.pause));
        }
        if self.lines.is_none() {
            self.lines = Lines::connect(&self.control).ok();
        }
        let Some(lines) = self.lines.as_mut() else { return Ok(false) };
        if !greeting.has_asked {
            greeting.has_asked = lines.send(&Ask::Ready).is_ok();
        }
        match lines.hear::<Answer>() {
            Heard::Message(Answer::Ok(_)) => Ok(true),
            Heard::Message(Answer::Error(why) | Answer::Unknown(why)) => {
                Err(LinuxError::NotReady { host: self.name.clone(), why })
            }
            Heard::Nothing => Ok(false),
            Heard::Nonsense(_) | Heard::Gone => {
                (self.lines, greeting.has_asked) = (None, false);
                Ok(false)
            }
        }
    }

    /// Returns the error of a daemon that was not ready in time. `pause` is the longest time for which the lab's
    /// process itself may have been stalled. If it is long, the machine may be the cause.
    fn late(&self, pause: Duration) -> LinuxError {
        let what = if self.lines.is_some() {
            "the daemon is not ready"
        } else {
            "no daemon answers at its control socket"
        };
        let (host, seconds) = (self.name.clone(), READY.as_secs());
        if pause > LONG_PAUSE {
            let pause = pause.as_millis();
            return LinuxError::Lab(format!(
                "{host}: {what} after {seconds} s; for {pause} ms of this time, the lab's own process did not run either"
            ));
        }
        LinuxError::NotReady { host, why: format!("{what} within {seconds} s") }
    }

    /// Requests the daemon to begin, and does not wait for the daemon's answer: a frozen daemon must not delay the link
    /// emulator.
    pub(super) fn tell_to_begin(&mut self, begin: &Ask) {
        self.owes = u32::from(self.lines.as_mut().is_some_and(|lines| lines.send(begin).is_ok()));
    }

    /// Waits for the answer to [`Ask::Stop`], until [`GOODBYE`] after `began`. Returns `None` if no valid answer
    /// arrives. Fails if the daemon is stopped or frozen and cannot be continued.
    pub(super) fn hear_the_end(&mut self, began: Clock) -> Result<Option<Answer>, String> {
        let pid = self.child.id();
        let Some(lines) = self.lines.as_mut() else { return Ok(None) };
        let mut held: Option<Clock> = None;
        while elapsed(began) < GOODBYE {
            match lines.hear() {
                Heard::Message(_) if self.owes > 0 => self.owes -= 1,
                Heard::Message(answer) => return Ok(Some(answer)),
                Heard::Nothing => os::pause(Duration::from_millis(1)),
                Heard::Nonsense(_) | Heard::Gone => return Ok(None),
            }
            match held {
                _ if !os::is_stopped(pid) && !os::is_frozen(pid) => held = None,
                None => {
                    os::resume(pid); // another process may have stopped it after the end of the run
                    held = Some(Clock::start());
                }
                Some(since) if elapsed(since) >= HELD => {
                    let what = if os::is_frozen(pid) { "frozen by a control group" } else { "stopped" };
                    return Err(format!("it is {what} and could not be continued, so it was killed"));
                }
                Some(_) => {}
            }
        }
        Ok(None)
    }

    /// Waits until the daemon has ended. If it gave its summary, it has time until [`GOODBYE`] after `began`; then it
    /// is killed. Otherwise it is killed at once. Fails if it has not ended 2 s after it was killed.
    pub(super) fn ended(&mut self, began: Clock) -> std::io::Result<std::process::ExitStatus> {
        if self.report.summary.is_some()
            && let Some(status) = self.wait(|| elapsed(began) < GOODBYE)?
        {
            return Ok(status);
        }
        let _ = self.child.kill();
        let killed = Clock::start();
        let still = || {
            std::io::Error::new(
                std::io::ErrorKind::TimedOut,
                "the daemon was killed, and had not ended after 2 s",
            )
        };
        self.wait(|| elapsed(killed) < HELD)?.ok_or_else(still)
    }

    fn wait(&mut self, longer: impl Fn() -> bool) -> std::io::Result<Option<std::process::ExitStatus>> {
        loop {
            match self.child.try_wait()? {
                Some(status) => return Ok(Some(status)),
                None if !longer() => return Ok(None),
                None => os::pause(Duration::from_millis(1)),
            }
        }
    }

    /// Kills the daemon and waits until it is dead.
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        (self.lines, self.owes, self.has_ended) = (None, 0, true);
    }

    pub(super) fn take_summary(&mut self, said: Option<Answer>) {
        let summary = match said {
            Some(Answer::Ok(summary)) => serde_json::from_value(summary).map_err(|error| error.to_string()),
            Some(Answer::Error(problem) | Answer::Unknown(problem)) => Err(problem),
            None => Err("the daemon gave no valid answer to the request to end".to_owned()),
        };
        match summary {
            Ok(summary) => self.report.summary = Some(summary),
            Err(why) => self.report.why_no_summary = Some(why),
        }
    }
}
