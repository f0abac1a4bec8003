//! What a daemon changes in its network namespace beside its own veth pair, as it was before. It is put back when the daemon
//! ends, well or not; if the daemon could not do so, the next one of this namespace does, or `wayfare doctor --clean`, from
//! a record that was written before the first change. The end of a lab's daemon is the end of its namespace, which needs none
//! of this.

use super::ends::{Claim, Taken};
use super::host::{self, KERNEL_SIDE};
use super::{Interface, Spec};
use crate::error::{Attempt, Error, Result};
use crate::leftover::{boot, is_ours};
use crate::namespace::{self, NetNs, sysctl};
use crate::netlink::Saved;
use crate::{Netlink, ethtool, nft};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The settings of a namespace that a daemon writes, beside those of its interfaces.
const SYSCTLS: [&str; 7] = [
    "net/ipv4/tcp_no_metrics_save",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
    "net/ipv4/tcp_recovery",
    "net/ipv4/tcp_early_retrans",
    "net/ipv4/tcp_frto",
    "net/ipv4/tcp_dsack",
];

/// A namespace before its daemon.
#[derive(Debug, Serialize, Deserialize)]
struct Before {
    /// Numbers of namespaces mean something within one boot only.
    boot: String,
    /// The namespace's number, which no other namespace gets in this boot.
    namespace: u64,
    loopback_was_up: bool,
    sysctls: Vec<(String, String)>,
    devices: Vec<Device>,
    /// The default routes that the daemon's own replaces, and what the interfaces lose with IPv6.
    lost: Vec<Saved>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Device {
    name: String,
    was_up: bool,
    offloads: Vec<String>,
}

/// The record of a living daemon. Dropping it puts back what was before.
#[derive(Debug)]
pub(super) struct Undo {
    before: Before,
    path: PathBuf,
}

impl Undo {
    /// Writes down all that a daemon of this kind will change. If a daemon of this namespace died without putting back what it
    /// had changed, that is done first. An interface that is not there is an error, before anything was changed.
    pub(super) fn note(_claim: &Claim, spec: &Spec) -> Result<Self> {
        let folder = folder()?;
        let namespace = namespace::cookie()?;
        let path = folder.join(format!("{PREFIX}{namespace}{SUFFIX}"));
        if let Some(left) = read(&path)? {
            if left.boot == boot()? {
                left.put_back()?;
            }
            fs::remove_file(&path).attempt("remove", path.display())?;
        }
        let before = Before::of(spec, namespace)?;
        let text = serde_json::to_vec_pretty(&before).attempt("write", path.display())?;
        // The whole record or none.
        let mut file = tempfile::NamedTempFile::new_in(&folder).attempt("write in", folder.display())?;
        file.write_all(&text).attempt("write", path.display())?;
        file.persist(&path).map_err(|refused| refused.error).attempt("write", path.display())?;
        Ok(Self { before, path })
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        let done = self.before.put_back();
        let done = done.and_then(|()| fs::remove_file(&self.path).attempt("remove", self.path.display()));
        if let Err(error) = done {
            // If standard error is closed, there is no other place to report it.
            let _ = writeln!(io::stderr(), "not all is as it was before the daemon: {error}");
        }
    }
}

impl Before {
    fn of(spec: &Spec, namespace: u64) -> Result<Self> {
        let mut net = Netlink::open()?;
        let mut lost = net.default_routes()?;
        let mut devices = Vec::new();
        for Interface { name, .. } in &spec.interfaces {
            let link = net.link(name)?;
            lost.extend(net.ipv6_of(link.index)?);
            let offloads = ethtool::offloads(name)?.into_iter().map(str::to_owned).collect();
            devices.push(Device { name: name.clone(), was_up: link.up, offloads });
        }
        let of_devices = devices.iter().flat_map(|device| host::sysctls_of(&device.name));
        let paths = SYSCTLS.map(str::to_owned).into_iter().chain(of_devices);
        // What this kernel does not have is not changed.
        let sysctls =
            paths.filter_map(|path| Some((path.clone(), namespace::sysctl_value(&path)?))).collect();
        let loopback_was_up = net.link("lo")?.up;
        Ok(Self { boot: boot()?, namespace, loopback_was_up, sysctls, devices, lost })
    }

    /// Puts all of it back, in the calling thread's namespace. One part that fails does not keep the others from being put back;
    /// the error names the first that failed.
    fn put_back(&self) -> Result<()> {
        let mut net = Netlink::open()?;
        // With its addresses and the daemon's default route.
        let pair = if net.link(KERNEL_SIDE).is_ok() { net.delete_link(KERNEL_SIDE) } else { Ok(()) };
        let mut done = vec![nft::listen_again(), host::forget_foreign(), pair];
        // An interface that is gone has nothing to put back.
        let devices: Vec<&Device> =
            self.devices.iter().filter(|device| net.link(&device.name).is_ok()).collect();
        let is_there = |(path, _): &&(String, String)| namespace::sysctl_value(path).is_some();
        done.extend(self.sysctls.iter().filter(is_there).map(|(path, value)| sysctl(path, value)));
        for device in devices {
            done.push(ethtool::switch_on(&device.name, &device.offloads));
            if !device.was_up {
                done.push(net.set_up(&device.name, false));
            }
        }
        if !self.loopback_was_up {
            done.push(net.set_up("lo", false));
        }
        done.extend(self.lost.iter().map(|saved| net.add_again(saved)));
        done.into_iter().collect()
    }
}

const PREFIX: &str = "namespace-";
const SUFFIX: &str = ".json";

/// Where records are: in memory, as the namespaces are, where root writes them; in a directory of its own for another user.
fn folder() -> Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let of_user = std::env::temp_dir().join(format!("wayfare-of-{user}"));
    let places = [PathBuf::from("/run/wayfare"), of_user];
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for path in places {
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => last = error,
            _ if is_ours(&path).attempt("look at", path.display())? => return Ok(path),
            // Another user's: what it says cannot be relied on, and what is written there can be changed.
            _ => last = io::Error::from(io::ErrorKind::PermissionDenied),
        }
    }
    Err(last).attempt("make a directory for", "the record of what a daemon changes")
}

fn read(path: &Path) -> Result<Option<Before>> {
    match fs::read(path) {
        Err(none) if none.kind() == io::ErrorKind::NotFound => Ok(None),
        read => {
            let text = read.attempt("read", path.display())?;
            serde_json::from_slice(&text).attempt("understand", path.display()).map(Some)
        }
    }
}

/// What [`clean`] found in one record, and did about it.
#[derive(Debug)]
pub enum LeftByDaemon {
    /// The daemon of this namespace runs; nothing was touched.
    Alive,
    /// All is as it was before.
    PutBack,
    /// The namespace is gone, and what was changed in it.
    Gone,
    /// Something could not be put back; the record is kept.
    Failed(Error),
}

/// Puts back what dead daemons of this user changed, and says of which namespace, by the path of its record.
pub fn clean() -> Result<Vec<(PathBuf, LeftByDaemon)>> {
    let folder = folder()?;
    let mut paths = Vec::new();
    for entry in fs::read_dir(&folder).attempt("look into", folder.display())? {
        let name = entry.attempt("look into", folder.display())?.file_name();
        if name.to_string_lossy().starts_with(PREFIX) {
            paths.push(folder.join(name));
        }
    }
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    paths.sort();
    let namespaces = namespace::all()?;
    let cleaned = |path: PathBuf| {
        let left = clean_one(&path, &namespaces).unwrap_or_else(LeftByDaemon::Failed);
        (path, left)
    };
    Ok(paths.into_iter().map(cleaned).collect())
}

fn clean_one(path: &Path, namespaces: &[NetNs]) -> Result<LeftByDaemon> {
    let remove = || fs::remove_file(path).attempt("remove", path.display());
    // Its daemon may have ended just now.
    let Some(before) = read(path)? else { return Ok(LeftByDaemon::PutBack) };
    if before.boot == boot()? {
        for namespace in namespaces {
            let put_back = || {
                if namespace::cookie()? != before.namespace {
                    return Ok(None);
                }
                // Held until all is done: no daemon begins meanwhile.
                let Taken::Free(_claim) = Claim::take()? else { return Ok(Some(LeftByDaemon::Alive)) };
                before.put_back()?;
                remove()?;
                Ok(Some(LeftByDaemon::PutBack))
            };
            if let Some(left) = namespace.run(put_back)?? {
                return Ok(left);
            }
        }
    }
    remove()?;
    Ok(LeftByDaemon::Gone)
}
