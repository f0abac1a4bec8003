//! Network namespaces without names: each lives as long as a process in it or a descriptor of it, and leaves nothing
//! under `/run/netns`.

use crate::error::{Attempt, Result};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// A network namespace, kept alive by this value.
#[derive(Debug)]
pub struct NetNs {
    file: File,
}

impl NetNs {
    /// Makes a new one, without any process in it. Needs root's rights, or those of a [`crate::World`].
    pub fn create() -> Result<Self> {
        on_a_thread(|| {
            unshare(UnshareFlags::NEWNET).attempt("make", "a network namespace")?;
            Self::current()
        })
    }

    /// That of the calling thread.
    pub fn current() -> Result<Self> {
        Self::open("/proc/thread-self/ns/net".to_owned())
    }

    /// That of a process.
    pub fn of(pid: u32) -> Result<Self> {
        Self::open(format!("/proc/{pid}/ns/net"))
    }

    /// The kernel's number for it: two of the same number at the same time are the same namespace.
    pub fn number(&self) -> Result<u64> {
        Ok(self.file.metadata().attempt("look at", "a network namespace")?.ino())
    }

    /// Runs `work` inside, on a thread of its own, and returns what it returns. What it opens (sockets, [`NetNs`]) stays
    /// inside; the calling thread stays where it is.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        on_a_thread(|| {
            let moved = move_into_link_name_space(self.as_fd(), Some(LinkNameSpaceType::Network));
            moved.attempt("enter", "a network namespace")?;
            Ok(work())
        })
    }

    fn open(path: String) -> Result<Self> {
        Ok(Self { file: File::open(&path).attempt("open the namespace", path)? })
    }
}

impl AsFd for NetNs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Starts `command` in a new network namespace; when this returns, [`NetNs::of`] its process is that namespace.
///
/// The child is killed when the *thread* that calls this ends, so call it from one that stays. A program that changes
/// its own user afterwards outlives that; inside a [`crate::World`] it dies all the same.
pub fn spawn_in_new_net(mut command: Command) -> Result<Child> {
    let parent = std::process::id();
    let program = command.get_program().to_owned();
    let prepare = move || {
        unshare(UnshareFlags::NEWNET)?;
        die_with_parent()?;
        // It may have died before it could be said.
        match getppid() {
            Some(alive) if alive.as_raw_nonzero().get().cast_unsigned() == parent => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    };
    // SAFETY: `prepare` does system calls only.
    unsafe { command.pre_exec(prepare) };
    command.spawn().attempt("start in a new network namespace", program.display())
}

/// The caller's uid as its parent user namespace knows it: who really runs, where a world calls everybody root.
pub fn outer_uid() -> u32 {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let mut numbers = map.split_whitespace().filter_map(|word| word.parse::<u32>().ok());
    let (inside, outside) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    outside + rustix::process::geteuid().as_raw().saturating_sub(inside)
}

/// Sets a sysctl by its path below `/proc/sys`, as `net/ipv4/ip_forward`. Those of `net/` are the ones of the calling
/// thread's network namespace.
pub fn sysctl(path: &str, value: &str) -> Result<()> {
    std::fs::write(format!("/proc/sys/{path}"), value)
        .attempt("set the sysctl", format_args!("{path} = {value}"))
}

pub(crate) fn die_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: the descriptor table is not among the things that this crate unshares.
    Ok(unsafe { unshare_unsafe(flags) }?)
}

/// A thread that changes its namespace ends with its work, so that no other work runs in the wrong place.
fn on_a_thread<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, work).attempt("start", "a thread")?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Netlink;
    use crate::testing::in_world;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn work_inside_sees_only_what_is_inside() {
        in_world(|| {
            crate::testing::veth("a0", "b0");
            let inside = NetNs::create().unwrap();
            let outside = NetNs::current().unwrap().number().unwrap();
            assert_ne!(inside.number().unwrap(), outside);
            let links = inside.run(|| Netlink::open().unwrap().links().unwrap()).unwrap();
            assert!(links.iter().all(|link| link.name != "a0"), "{links:?}");
            assert_eq!(NetNs::current().unwrap().number().unwrap(), outside);
            // A panic inside is the caller's.
            assert!(std::panic::catch_unwind(|| inside.run(|| panic!("on purpose"))).is_err());
        });
    }

    #[test]
    fn sysctls_are_those_of_the_threads_namespace() {
        in_world(|| {
            let read = || std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap().trim().to_owned();
            let inside = NetNs::create().unwrap();
            inside.run(|| sysctl("net/ipv4/ip_forward", "1").unwrap()).unwrap();
            assert_eq!(inside.run(read).unwrap(), "1");
            assert_eq!(read(), "0");
            assert!(sysctl("net/no/such", "1").unwrap_err().is_absent());
        });
    }

    #[test]
    fn a_child_has_a_namespace_of_its_own_and_dies_with_the_thread_that_started_it() {
        in_world(|| {
            let here = NetNs::current().unwrap().number().unwrap();
            let mut child = on_a_thread(|| {
                let mut command = Command::new("sleep");
                command.arg("1000");
                let child = spawn_in_new_net(command)?;
                assert_ne!(NetNs::of(child.id())?.number()?, here);
                Ok(child)
            })
            .unwrap();
            assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
            assert!(NetNs::of(child.id()).unwrap_err().is_absent());
        });
    }
}
