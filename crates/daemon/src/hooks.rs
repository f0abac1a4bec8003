//! The ingress hook of a daemon outside a lab. Other programs of its namespace may remove the hook (`nft flush
//! ruleset`). Then the kernel answers packets too, not only the node. The daemon installs a removed hook again when it
//! notices the removal.

use super::Daemon;
use super::host_link::NODE_SIDE;
use os::{Result, nft};
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use wire::{Duration, Instant};

/// Time until the daemon tries again to install a hook after a failure. Also the shortest time between two reports of a
/// removal.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) struct Hooks {
    watch: nft::Watch,
    /// Why the hook is missing at a device; `None` if it is installed.
    failure: Option<String>,
    /// When the installation of the hook is tried again; `None` if it did not fail.
    due: Option<Instant>,
    /// When the removal of the hook was last reported to the operator.
    told: Option<Instant>,
}

impl Hooks {
    /// Opens the watch. Call it before the hook is installed, so that no change is missed.
    pub(super) fn open() -> Result<Self> {
        Ok(Self { watch: nft::Watch::open()?, failure: None, due: None, told: None })
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Returns why the hook is missing, as a sentence for the operator.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

impl AsFd for Hooks {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }
}

impl Daemon {
    /// If nftables changed, or a failed installation is due, installs the hook again at each device that lacks it.
    pub(super) fn check_hooks(&mut self) {
        let now = self.clock.now();
        let Some(hooks) = &mut self.hooks else { return };
        let is_due = hooks.due.is_some_and(|due| due <= now);
        if !hooks.watch.has_changed() && !is_due {
            return;
        }
        let devices = self.ports.iter().map(|port| port.spec.name.as_str()).chain([NODE_SIDE]);
        let (mut back, mut failure) = (Vec::new(), None);
        for device in devices {
            let put_back = || {
                if nft::has_ingress_drop(device)? {
                    Ok(false)
                } else {
                    nft::install_ingress_drop(&[device]).map(|()| true)
                }
            };
            match put_back() {
                Ok(true) => back.push(device),
                Ok(false) => {}
                // The hook is installed when the device returns.
                Err(error) if error.is_absent() => {}
                Err(error) => {
                    let text = "has no ingress hook, so the kernel also handles the packets of this daemon";
                    failure = Some(format!("the interface {device} {text}: {error}"));
                }
            }
        }
        let mut err = std::io::stderr();
        if !back.is_empty() && hooks.told.is_none_or(|told| told + AGAIN <= now) {
            hooks.told = Some(now);
            let devices = back.join(", ");
            let _ = writeln!(
                err,
                "another program removed the nftables table wayfare_own, as `nft flush ruleset` does. The table keeps the kernel \
                 from answering packets at {devices}. The table is installed again; before, the kernel may have answered packets"
            );
        }
        hooks.due = failure.is_some().then(|| now + AGAIN);
        if let Some(why) = failure.as_ref().filter(|_| hooks.failure.is_none()) {
            let _ = writeln!(err, "{why}");
        }
        hooks.failure = failure;
    }
}
