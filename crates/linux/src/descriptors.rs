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

    /// Keeps `count` again, as far as there are descriptors.
    pub(crate) fn refill(&mut self, count: usize) {
        while self.held.len() < count {
            let Ok(fd) = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC) else { return };
            self.held.push(fd);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
