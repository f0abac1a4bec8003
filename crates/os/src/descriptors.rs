//! File descriptors: the limit of this process, and a reserve for connections that must be accepted at the limit.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::fd::OwnedFd;

/// The limit, in descriptors, that is assumed if the kernel sets none. It is also the largest limit that is returned.
const UNLIMITED: u64 = 1 << 20;

/// Raises this process's soft limit of descriptors to the hard limit. Returns the limit that then holds, at most 2^20.
pub fn raise() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    let limit = if setrlimit(Resource::Nofile, raised).is_ok() { maximum } else { current };
    limit.unwrap_or(UNLIMITED).min(UNLIMITED) as usize
}

/// Returns whether an error means that this process, or the machine, has no descriptor left.
const fn is_used_up(error: Errno) -> bool {
    matches!(error, Errno::MFILE | Errno::NFILE)
}

/// Descriptors that are open only to be closed later: they make room for a few others when the limit is reached.
#[derive(Debug, Default)]
pub struct Reserve {
    held: Vec<OwnedFd>,
}

impl Reserve {
    /// Opens `count` descriptors, or as many as the limit allows.
    pub fn keep(count: usize) -> Self {
        let mut reserve = Self::default();
        reserve.refill(count);
        reserve
    }

    /// Returns the number of descriptors that are held.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.held.len()
    }

    /// Returns whether no descriptor is held.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Closes at most `count` descriptors of the reserve. Returns whether at least one was closed.
    pub fn spend(&mut self, count: usize) -> bool {
        let left = self.held.len().saturating_sub(count);
        let had_some = !self.held.is_empty();
        self.held.truncate(left);
        had_some && count > 0
    }

    /// Calls `accept` until it returns a connection or fails. If it fails for lack of a descriptor, closes at most
    /// `count` descriptors of the reserve and calls `accept` again.
    pub fn accept<T>(&mut self, count: usize, mut accept: impl FnMut() -> Result<T, Errno>) -> Accepted<T> {
        loop {
            match accept() {
                Ok(one) => return Accepted::One(one),
                Err(Errno::AGAIN) => return Accepted::Nothing,
                Err(Errno::INTR) => {}
                Err(error) if is_used_up(error) && self.spend(count) => {}
                Err(_) => return Accepted::Refused,
            }
        }
    }

    /// Opens descriptors until the reserve holds `count`, or until the limit is reached.
    pub fn refill(&mut self, count: usize) {
        while self.held.len() < count {
            let Ok(fd) = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC) else { return };
            self.held.push(fd);
        }
    }
}

/// The result of an attempt to accept a connection.
#[derive(PartialEq, Eq, Debug)]
pub enum Accepted<T> {
    /// A connection was accepted.
    One(T),
    /// No connection is waiting.
    Nothing,
    /// The kernel returned an error other than `EAGAIN`, and no descriptor of the reserve could help. The caller should
    /// try again after a short pause.
    Refused,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_may_take_descriptors_of_the_reserve() {
        let mut reserve = Reserve::keep(3);
        let mut answers = vec![Ok(7), Err(Errno::MFILE), Err(Errno::INTR)];
        assert_eq!(reserve.accept(2, || answers.pop().unwrap()), Accepted::One(7));
        assert_eq!(reserve.held.len(), 1);
        assert_eq!(reserve.accept(2, || Err::<(), _>(Errno::NFILE)), Accepted::Refused);
        assert!(reserve.held.is_empty());
        assert_eq!(reserve.accept(2, || Err::<(), _>(Errno::AGAIN)), Accepted::Nothing);
        assert_eq!(reserve.accept(2, || Err::<(), _>(Errno::PERM)), Accepted::Refused);
    }

    #[test]
    fn a_reserve_gives_up_what_it_has_and_is_refilled() {
        let mut reserve = Reserve::keep(3);
        assert!(reserve.spend(2) && reserve.held.len() == 1);
        assert!(reserve.spend(2) && reserve.held.is_empty());
        assert!(!reserve.spend(1));
        reserve.refill(3);
        assert_eq!(reserve.held.len(), 3);
    }
}
