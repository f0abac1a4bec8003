//! File descriptors: how many this process may have, and some that are kept back for what must not fail.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::fd::OwnedFd;

/// What `RLIMIT_NOFILE` is taken for where the kernel does not limit it.
const UNLIMITED: u64 = 1 << 20;

/// Raises this process's limit of descriptors to the hard limit, and returns the limit that holds from then on.
pub(crate) fn raise() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    let limit = if setrlimit(Resource::Nofile, raised).is_ok() { maximum } else { current };
    limit.unwrap_or(UNLIMITED).min(UNLIMITED) as usize
}

/// Whether an error says that this process, or the machine, has no descriptor left.
pub(crate) const fn is_used_up(error: Errno) -> bool {
    matches!(error, Errno::MFILE | Errno::NFILE)
}

/// Descriptors that are open for nothing, so that there is room for a few others when all are used up.
#[derive(Debug, Default)]
pub(crate) struct Reserve {
    held: Vec<OwnedFd>,
}

impl Reserve {
    /// Keeps `count` descriptors, or as many as there are.
    pub(crate) fn keep(count: usize) -> Self {
        let mut reserve = Self::default();
        reserve.refill(count);
        reserve
    }

    /// Gives up `count` of them. Says whether there was one at least.
    pub(crate) fn spend(&mut self, count: usize) -> bool {
        let left = self.held.len().saturating_sub(count);
        let had_some = !self.held.is_empty();
        self.held.truncate(left);
        had_some && count > 0
    }

    /// Accepts a connection, with `count` descriptors of the reserve if there is no other.
    pub(crate) fn accept<T>(
        &mut self,
        count: usize,
        mut accept: impl FnMut() -> Result<T, Errno>,
    ) -> Accepted<T> {
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

    /// Keeps `count` again, as far as there are descriptors.
    pub(crate) fn refill(&mut self, count: usize) {
        while self.held.len() < count {
            let Ok(fd) = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC) else { return };
            self.held.push(fd);
        }
    }
}

/// What became of an attempt to accept a connection.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Accepted<T> {
    /// There was one.
    One(T),
    /// None waits.
    Nothing,
    /// One waits and could not be accepted: it is to be tried again soon, and not without a pause.
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
