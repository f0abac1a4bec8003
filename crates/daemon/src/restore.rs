//! Saves and restores the settings that a daemon changes in its network namespace, apart from its own veth pair. The
//! daemon restores the settings when it ends, also after an error. If it did not restore them, the next daemon of this
//! namespace does so, or `wayfare doctor --clean`. For this purpose, the daemon writes a record of the settings before
//! its first change. A lab's daemon needs no record, because its namespace ends with the lab.
//!
//! A step that fails does not prevent the other steps. The record then keeps only what could not be restored, and the
//! error lists the reasons. The next daemon and `doctor --clean` try again, unless the user removes the record. If only
//! routes, addresses or neighbors are left, the next daemon starts all the same, and keeps them in its own record. If
//! any other setting is left, the next daemon does not start.

use super::claim::Claim;
use super::host_link::{self, KERNEL_SIDE};
use super::record_folder::{PREFIX, RECORD, UNFINISHED, folder};
use super::{Interface, Spec};
use os::{
    Attempt, Error, Netlink, Result, Saved, ethtool,
    files::boot_id,
    namespace::{self, sysctl},
    nft,
};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use wire::Ipv4Addr;

/// The settings of a namespace that a daemon writes, in addition to those of its interfaces.
const SYSCTLS: [&str; 10] = [
    "net/ipv4/tcp_no_metrics_save",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
    "net/ipv4/tcp_recovery",
    "net/ipv4/tcp_early_retrans",
    "net/ipv4/tcp_frto",
    "net/ipv4/tcp_dsack",
    "net/ipv4/tcp_sack",
    "net/ipv4/tcp_timestamps",
    "net/ipv4/tcp_window_scaling",
];

/// The state of a namespace before its daemon.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Before {
    /// The boot id: namespace numbers are valid only within one boot.
    pub(super) boot: String,
    /// The namespace's cookie, which no other namespace gets in this boot.
    pub(super) namespace: u64,
    loopback_was_up: bool,
    /// The name of the host, for an operator.
    #[serde(default)]
    pub(super) host: String,
    /// The path of the daemon's control socket; `None` if it has none.
    #[serde(default)]
    pub(super) control: Option<PathBuf>,
    /// Whether the loopback did not have 127.0.0.1: the kernel adds this address when the loopback is first set up, and
    /// does not remove it.
    #[serde(default)]
    loopback_was_bare: bool,
    sysctls: Vec<(String, String)>,
    devices: Vec<Device>,
    /// The default routes that the daemon's route replaces, and the routes, addresses and neighbors that the interfaces
    /// lose when IPv6 is switched off. Also entries of these kinds that earlier daemons could not restore.
    lost: Vec<Saved>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Device {
    name: String,
    was_up: bool,
    offloads: Vec<String>,
}

/// The record of a living daemon. Dropping it restores the former state.
#[derive(Debug)]
pub(super) struct Restore {
    before: Before,
    path: PathBuf,
    is_put_back: bool,
}

impl Restore {
    /// Records all settings that a daemon with this configuration will change. If an earlier daemon of this namespace
    /// left its changes, undoes them first. Fails before this daemon changes anything, for example if an interface is
    /// missing.
    pub(super) fn note(_claim: &Claim, spec: &Spec) -> Result<Self> {
        let folder = folder()?;
        let namespace = namespace::cookie()?;
        let path = folder.join(format!("{PREFIX}{namespace}.{RECORD}"));
        let mut lost = Vec::new();
        if let Some(left) = read(&path)? {
            if left.boot == boot_id()? {
                let rest = left.put_back();
                if !rest.is_clean {
                    rest.keep(&path)?;
                }
                if let Some(why) = rest.why() {
                    let _ = writeln!(
                        io::stderr(),
                        "changes of an earlier daemon could not be undone; this daemon tries to undo them when it ends: {why}"
                    );
                }
                lost = rest.before.lost;
            }
            fs::remove_file(&path).attempt("remove", path.display())?;
        }
        let mut before = Before::of(spec, namespace)?;
        lost.retain(|saved| !before.lost.contains(saved));
        before.lost.extend(lost);
        before.write(&path)?;
        Ok(Self { before, path, is_put_back: false })
    }

    /// Restores the former state. If steps fail, the record keeps what could not be restored, and the error lists the
    /// reasons.
    pub(super) fn put_back(mut self) -> Result<()> {
        self.is_put_back = true;
        self.before.put_back().keep(&self.path)
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        if !self.is_put_back
            && let Err(error) = self.before.put_back().keep(&self.path)
        {
            // If standard error is closed, there is no other place to report it.
            let _ = writeln!(io::stderr(), "{error}");
        }
    }
}

/// The state that could not be restored, and the errors.
pub(super) struct Rest {
    before: Before,
    /// Whether everything except routes, addresses and neighbors was restored. Then the remains of the old daemon do
    /// not prevent the start of another daemon.
    is_clean: bool,
    errors: Vec<Error>,
}

impl Rest {
    /// Notes an error of a step. Returns whether the step succeeded.
    fn note(&mut self, done: Result<()>) -> bool {
        let is_done = done.is_ok();
        self.errors.extend(done.err());
        is_done
    }

    fn why(&self) -> Option<String> {
        let why: Vec<String> = self.errors.iter().map(ToString::to_string).collect();
        (!why.is_empty()).then(|| why.join("; "))
    }

    /// Removes the record if everything was restored. Otherwise writes what is left to the record, and returns an error
    /// with all reasons.
    pub(super) fn keep(&self, path: &Path) -> Result<()> {
        let Some(why) = self.why() else {
            return fs::remove_file(path).attempt("remove", path.display());
        };
        let kept = match self.before.write(path) {
            Ok(()) => {
                format!(
                    "the next daemon of this namespace and `wayfare doctor --clean` try again to restore them; to prevent this, remove {}",
                    path.display()
                )
            }
            Err(error) => error.to_string(), // the whole record is still there
        };
        Err(io::Error::other(format!("{why} ({kept})")))
            .attempt("restore", "all settings from before the daemon's start")
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
        let of_devices = devices.iter().flat_map(|device| host_link::sysctls_of(&device.name));
        let paths = SYSCTLS.map(str::to_owned).into_iter().chain(of_devices);
        // A setting that this kernel does not have is not changed.
        let sysctls =
            paths.filter_map(|path| Some((path.clone(), namespace::sysctl_value(&path)?))).collect();
        let loopback_was_up = net.link("lo")?.up;
        let loopback_was_bare = !net.has_address("lo", Ipv4Addr::LOCALHOST)?;
        // The record may be read from another working directory.
        let control = spec.control.as_deref().map(std::path::absolute).transpose();
        Ok(Self {
            boot: boot_id()?,
            namespace,
            loopback_was_up,
            host: spec.name.clone(),
            control: control.attempt("find the absolute path of", "the control socket")?,
            loopback_was_bare,
            sysctls,
            devices,
            lost,
        })
    }

    /// Restores everything, in the calling thread's namespace. A part that fails does not prevent the others.
    pub(super) fn put_back(&self) -> Rest {
        let nothing = Self {
            boot: self.boot.clone(),
            namespace: self.namespace,
            loopback_was_up: true,
            host: self.host.clone(),
            control: self.control.clone(),
            loopback_was_bare: false,
            sysctls: Vec::new(),
            devices: Vec::new(),
            lost: Vec::new(),
        };
        let mut rest = Rest { before: nothing, is_clean: false, errors: Vec::new() };
        let mut net = match Netlink::open() {
            Ok(net) => net,
            Err(error) => {
                rest.before = self.clone();
                rest.errors.push(error);
                return rest;
            }
        };
        // Deleting the pair deletes its addresses and the daemon's default route too.
        let pair = if net.link(KERNEL_SIDE).is_ok() { net.delete_link(KERNEL_SIDE) } else { Ok(()) };
        for done in [nft::remove_ingress_drop(), host_link::refuse_foreign_addresses(), pair] {
            rest.note(done);
        }
        // The settings of an interface that is gone do not exist, and are not restored.
        let is_there = |(path, _): &&(String, String)| namespace::sysctl_value(path).is_some();
        for setting in self.sysctls.iter().filter(is_there) {
            if !rest.note(sysctl(&setting.0, &setting.1)) {
                rest.before.sysctls.push(setting.clone());
            }
        }
        for device in &self.devices {
            if net.link(&device.name).is_err() {
                continue;
            }
            let mut is_done = rest.note(ethtool::switch_on(&device.name, &device.offloads));
            if !device.was_up {
                is_done &= rest.note(net.set_up(&device.name, false));
            }
            if !is_done {
                rest.before.devices.push(device.clone());
            }
        }
        if !self.loopback_was_up && !rest.note(self.loopback_down(&mut net)) {
            (rest.before.loopback_was_up, rest.before.loopback_was_bare) = (false, self.loopback_was_bare);
        }
        rest.is_clean = rest.errors.is_empty();
        for saved in &self.lost {
            if !rest.note(net.add_again(saved)) {
                rest.before.lost.push(saved.clone());
            }
        }
        rest
    }

    fn loopback_down(&self, net: &mut Netlink) -> Result<()> {
        if self.loopback_was_bare {
            let _ = net.delete_address("lo", Ipv4Addr::LOCALHOST, 8); // it may be gone already
        }
        net.set_up("lo", false)
    }

    /// Writes the whole record, or leaves the old one. The caller holds the claim of this namespace, so no other
    /// process writes the record meanwhile.
    fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_vec_pretty(self).attempt("write", path.display())?;
        let half = path.with_extension(UNFINISHED);
        let write = || {
            let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&half)?;
            file.write_all(&text)?;
            fs::rename(&half, path)
        };
        write().inspect_err(|_| drop(fs::remove_file(&half))).attempt("write", path.display())
    }
}

/// Reads the record at this path; `None` if there is none.
pub(super) fn read(path: &Path) -> Result<Option<Before>> {
    match fs::read(path) {
        Err(none) if none.kind() == io::ErrorKind::NotFound => Ok(None),
        read => {
            let text = read.attempt("read", path.display())?;
            serde_json::from_slice(&text).attempt("parse", path.display()).map(Some)
        }
    }
}
