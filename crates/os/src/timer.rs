//! A timer that is a file descriptor, for event loops that wait on descriptors.

use crate::Clock;
use crate::error::{Attempt, Result};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use wire::{Duration, Instant, nanos_of};

/// A timer on `CLOCK_BOOTTIME`. Its descriptor is readable from the armed instant on.
#[derive(Debug)]
pub struct Timer {
    fd: OwnedFd,
}

impl Timer {
    /// Creates a timer that is not armed.
    pub fn new() -> Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd =
            timerfd_create(TimerfdClockId::Boottime, flags).attempt("create", "a timer on CLOCK_BOOTTIME")?;
        Ok(Self { fd })
    }

    /// Arms the timer for `at`, in place of an earlier setting. If `at` is in the past, the timer fires immediately;
    /// [`Instant::NEVER`] disarms the timer.
    pub fn arm(&self, clock: Clock, at: Instant) -> Result<()> {
        // The value 0 would disarm the timer.
        let nanos = if at == Instant::NEVER { 0 } else { clock.boottime_at(at).clamp(1, i64::MAX as u64) };
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let it_value = Timespec {
            tv_sec: (nanos / 1_000_000_000).cast_signed(),
            tv_nsec: (nanos % 1_000_000_000).cast_signed(),
        };
        let when = Itimerspec { it_interval: zero, it_value };
        timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &when).attempt("arm the timer for", at)?;
        Ok(())
    }

    /// Returns whether the timer has fired since the last call or the last [`Timer::arm`]. Afterwards the descriptor is
    /// not readable.
    pub fn fired(&self) -> Result<bool> {
        let mut count = [0; 8];
        match rustix::io::read(&self.fd, &mut count) {
            Ok(_) => Ok(true),
            Err(rustix::io::Errno::AGAIN) => Ok(false),
            Err(refused) => Err(refused).attempt("read", "the timer"),
        }
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// Sets how late the kernel may wake the calling thread from a wait with a time-out; the default is 50 us. The value
/// applies to `poll`, `epoll_wait` and sleeps, but not to [`Timer`]. Threads and processes that the thread starts later
/// inherit the value.
pub fn set_timer_slack(slack: Duration) -> Result<()> {
    let nanos = NonZeroU64::new(nanos_of(slack).max(1));
    rustix::thread::set_current_timer_slack(nanos).attempt("set", "the timer slack of this thread")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::readable;

    #[test]
    fn it_fires_at_the_instant_and_not_before() {
        set_timer_slack(Duration::from_micros(1)).unwrap();
        assert_eq!(rustix::thread::current_timer_slack().unwrap(), 1000);

        let (clock, timer) = (Clock::start(), Timer::new().unwrap());
        assert!(!timer.fired().unwrap());
        let due = clock.now() + Duration::from_millis(20);
        timer.arm(clock, due).unwrap();
        assert!(!timer.fired().unwrap());
        assert!(readable(&timer, 2_000));
        assert!(clock.now() >= due);
        assert!(timer.fired().unwrap() && !timer.fired().unwrap());
    }

    #[test]
    fn never_disarms_and_the_past_fires_at_once() {
        let (clock, timer) = (Clock::start(), Timer::new().unwrap());
        timer.arm(clock, Instant::ZERO).unwrap();
        assert!(readable(&timer, 1_000));
        timer.arm(Clock { t0: 0 }, Instant::ZERO).unwrap();
        assert!(readable(&timer, 1_000));
        timer.arm(clock, clock.now() + Duration::from_millis(10)).unwrap();
        timer.arm(clock, Instant::NEVER).unwrap();
        assert!(!readable(&timer, 30));
        timer.arm(clock, Instant(u64::MAX - 1)).unwrap();
        assert!(!readable(&timer, 10));
    }
}
