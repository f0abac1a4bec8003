//! Network namespaces without names. A namespace exists as long as a process is in it or a descriptor of it is open. It
//! leaves nothing under `/run/netns`.

use crate::error::{Attempt, Result, check};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// A network namespace, kept alive by this value.
#[derive(Debug)]
pub struct NetNs {
    file: File,
}

impl NetNs {
    /// Creates a namespace without any process in it. Needs root's rights, or those inside a [`crate::Sandbox`].
    pub fn create() -> Result<Self> {
        on_a_thread(|| {
            unshare(UnshareFlags::NEWNET).attempt("make", "a network namespace")?;
            Self::current()
        })
    }

    /// Returns the network namespace of the calling thread.
    pub fn current() -> Result<Self> {
        Self::open(Path::new("/proc/thread-self/ns/net"))
    }

    /// Returns the network namespace of a process. Fails if the process has ended.
    pub fn of(pid: u32) -> Result<Self> {
        Self::open(Path::new(&format!("/proc/{pid}/ns/net")))
    }

    /// Returns the namespace's inode number. Two namespaces with the same number at the same time are the same
    /// namespace.
    pub fn number(&self) -> Result<u64> {
        Ok(self.file.metadata().attempt("read the inode number of", "a network namespace")?.ino())
    }

    /// Runs `work` in this namespace, on a new thread, and returns its result. Sockets that `work` opens stay in this
    /// namespace. The calling thread keeps its namespace. A panic of `work` is passed to the caller.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        on_a_thread(|| {
            let moved = move_into_link_name_space(self.as_fd(), Some(LinkNameSpaceType::Network));
            moved.attempt("enter", "a network namespace")?;
            Ok(work())
        })
    }

    /// Returns the user namespace that owns this network namespace. Fails unless this process is in that user namespace
    /// or in an ancestor of it.
    fn users(&self) -> io::Result<File> {
        // SAFETY: the call takes no argument; nothing else owns the descriptor.
        unsafe { check(libc::ioctl(self.file.as_raw_fd(), NS_GET_USERNS)).map(|fd| File::from_raw_fd(fd)) }
    }

    fn open(path: &Path) -> Result<Self> {
        Ok(Self { file: File::open(path).attempt("open the namespace", path.display())? })
    }
}

impl AsFd for NetNs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Returns the caller's effective user id as seen from the parent user namespace. In a sandbox, this is the id of the
/// user that started it, although inside the user is root.
pub fn outer_uid() -> u32 {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let mut numbers = map.split_whitespace().filter_map(|word| word.parse::<u32>().ok());
    let (inside, outside) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    outside + rustix::process::geteuid().as_raw().saturating_sub(inside)
}

/// Sets a sysctl by its path below `/proc/sys`, for example `net/ipv4/ip_forward`. Most sysctls below `net/` are
/// separate for each network namespace. Of these, the one of the calling thread's network namespace is set.
pub fn sysctl(path: &str, value: &str) -> Result<()> {
    std::fs::write(format!("/proc/sys/{path}"), value)
        .attempt("set the sysctl", format_args!("{path} = {value}"))
}

/// Mounts a tmpfs in the calling process's mount namespace. `options` are those of tmpfs(5), for example `size=8m`.
pub fn mount_tmpfs(at: &Path, options: &str) -> Result<()> {
    let options = std::ffi::CString::new(options).map_err(io::Error::from).attempt("mount", at.display())?;
    let flags = rustix::mount::MountFlags::NOSUID | rustix::mount::MountFlags::NODEV;
    rustix::mount::mount(c"tmpfs", at, c"tmpfs", flags, Some(options.as_c_str()))
        .attempt("mount a tmpfs at", at.display())
}

/// Returns a number that identifies the calling thread's network namespace: the kernel's cookie (`SO_NETNS_COOKIE`). No
/// other namespace gets the same cookie until the machine is booted again. An inode number ([`NetNs::number`]) can
/// belong to a new namespace after the old namespace has ended. Kernels before 5.14 have no cookies; for them this
/// function returns the inode number.
pub fn cookie() -> Result<u64> {
    let what = "the cookie of the network namespace";
    let socket = UnixDatagram::unbound().attempt("read", what)?;
    let (mut cookie, mut len) = (0_u64, size_of::<u64>() as libc::socklen_t);
    // SAFETY: `cookie` and `len` outlive the call, and `len` is the size of `cookie`.
    let read = check(unsafe {
        let value = (&raw mut cookie).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE, value, &raw mut len)
    });
    match read {
        Err(unknown) if unknown.raw_os_error() == Some(libc::ENOPROTOOPT) => NetNs::current()?.number(),
        read => read.attempt("read", what).map(|_| cookie),
    }
}

/// The socket option that reads the cookie (`asm-generic/socket.h`).
const SO_NETNS_COOKIE: libc::c_int = 71;

/// Returns all network namespaces that this process can reach. These are the namespaces of processes, those with a
/// name in the file system, and those that a process holds open by a descriptor.
pub fn all() -> Result<Vec<NetNs>> {
    let mut paths = vec![PathBuf::from("/proc/thread-self/ns/net")];
    let processes = std::fs::read_dir("/proc").attempt("list", "/proc")?.flatten();
    for process in
        processes.filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit))
    {
        paths.push(process.path().join("ns/net"));
        // The list is empty if the process has ended, or belongs to another user.
        let open = std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
        let is_one = |path: &PathBuf| {
            std::fs::read_link(path).is_ok_and(|to| to.as_os_str().as_encoded_bytes().starts_with(b"net:["))
        };
        paths.extend(open.map(|entry| entry.path()).filter(is_one));
    }
    // Fields 4 and 5 of `/proc/PID/mountinfo`: the mounted root within its file system, and the mount point.
    let mounts = std::fs::read_to_string("/proc/thread-self/mountinfo").unwrap_or_default();
    paths.extend(mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(3);
        (fields.next()?.starts_with("net:[")).then(|| fields.next().map(PathBuf::from))?
    }));
    let mut found: BTreeMap<u64, NetNs> = BTreeMap::new();
    for namespace in paths.into_iter().filter_map(|path| NetNs::open(&path).ok()) {
        found.entry(namespace.number()?).or_insert(namespace);
    }
    Ok(found.into_values().collect())
}

/// Returns the value of a sysctl without white space around it, or `None` if it cannot be read.
pub fn sysctl_value(path: &str) -> Option<String> {
    std::fs::read_to_string(format!("/proc/sys/{path}")).ok().map(|value| value.trim().to_owned())
}

/// Returns whether the calling thread's network namespace is that of pid 1. This is the namespace of the machine, or of
/// the container in which this process runs.
///
/// If pid 1's namespace cannot be read, there are two rules. If this process's user namespace is not the initial one
/// and owns the network namespace (`unshare -rn`), the result is false. Otherwise the result is true, unless an
/// ancestor of this process is known to have a different network namespace.
pub fn is_machines_own() -> Result<bool> {
    let own = NetNs::current()?;
    let number = own.number()?;
    let of = |pid: u32| NetNs::of(pid).and_then(|namespace| namespace.number());
    if let Ok(first) = of(1) {
        return Ok(first == number);
    }
    let users = File::open("/proc/thread-self/ns/user").and_then(|file| file.metadata());
    let is_ours = |users: Metadata| {
        users.ino() != USER_NS_INIT_INO
            && own.users().and_then(|owner| owner.metadata()).is_ok_and(|owner| owner.ino() == users.ino())
    };
    if users.is_ok_and(is_ours) {
        return Ok(false);
    }
    let ancestors = std::iter::successors(Some(std::process::id()), |pid| parent(*pid));
    Ok(ancestors.filter_map(|pid| of(pid).ok()).all(|ancestors| ancestors == number))
}

/// Returns the owner of the calling thread's network namespace: the id of the user that created the user namespace to
/// which the network namespace belongs. Returns `None` if this process may not read the id.
pub fn owner() -> Option<u32> {
    let users = NetNs::current().ok()?.users().ok()?;
    let mut uid = u32::MAX;
    // SAFETY: `uid` outlives the call, which writes a `uid_t` there.
    check(unsafe { libc::ioctl(users.as_raw_fd(), NS_GET_OWNER_UID, &raw mut uid) }).ok()?;
    Some(uid)
}

// Numbers of ioctl requests, and the inode number of the initial user namespace (`linux/nsfs.h`).
const NS_GET_USERNS: libc::Ioctl = 0xb701;
const NS_GET_OWNER_UID: libc::Ioctl = 0xb704;
const USER_NS_INIT_INO: u64 = 0xefff_fffd;

fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())?;
    (parent != 0).then_some(parent)
}

pub(crate) fn die_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: this crate never unshares the descriptor table.
    Ok(unsafe { unshare_unsafe(flags) }?)
}

/// Runs `work` on a new thread. The thread ends after `work`, so that nothing else runs in a namespace that `work` has
/// entered.
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
    use crate::testing::{in_sandbox, spawn_in_new_net};
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    #[test]
    fn work_inside_sees_only_what_is_inside() {
        in_sandbox(|| {
            crate::testing::veth("a0", "b0");
            let inside = NetNs::create().unwrap();
            let outside = NetNs::current().unwrap().number().unwrap();
            assert_ne!(inside.number().unwrap(), outside);
            let links = inside.run(|| Netlink::open().unwrap().links().unwrap()).unwrap();
            assert!(links.iter().all(|link| link.name != "a0"), "{links:?}");
            assert_eq!(NetNs::current().unwrap().number().unwrap(), outside);
            // A panic of the work in the namespace reaches the caller.
            assert!(std::panic::catch_unwind(|| inside.run(|| panic!("on purpose"))).is_err());
        });
    }

    #[test]
    fn sysctls_are_those_of_the_threads_namespace() {
        in_sandbox(|| {
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
        in_sandbox(|| {
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
