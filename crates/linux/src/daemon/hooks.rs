//! The ingress hook of a daemon by itself: other programs of its namespace change nftables too (`nft flush ruleset`), and without
//! the hook the kernel acts beside the node. What was removed is put back at once.

use super::Daemon;
use super::host::NODE_SIDE;
use crate::error::Result;
use crate::nft;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use wire::{Duration, Instant};

/// What could not be put back is tried again after this time; what was put back is told so often at most.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) struct Hooks {
    watch: nft::Watch,
    /// Why it is not at some device, though it should be.
    failure: Option<String>,
    /// When it is tried again to put it back.
    due: Option<Instant>,
    /// When an operator was told last that it was removed.
    told: Option<Instant>,
}

impl Hooks {
    /// To be opened before the hook is made: no change is missed then.
    pub(super) fn open() -> Result<Self> {
        Ok(Self { watch: nft::Watch::open()?, failure: None, due: None, told: None })
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

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
    /// Makes the hook again at each device where another program has removed it.
    pub(super) fn look_at_hooks(&mut self) {
        let now = self.clock.now();
        let Some(hooks) = &mut self.hooks else { return };
        let is_due = hooks.due.is_some_and(|due| due <= now);
        if !hooks.watch.has_changed() && !is_due {
            return;
        }
        let devices = self.ports.iter().map(|port| port.spec.name.as_str()).chain([NODE_SIDE]);
        let (mut back, mut failure) = (Vec::new(), None);
        for device in devices {
            let put_back =
                || if nft::is_deaf(device)? { Ok(false) } else { nft::deafen(&[device]).map(|()| true) };
            match put_back() {
                Ok(true) => back.push(device),
                Ok(false) => {}
                // It is hooked when it returns.
                Err(error) if error.is_absent() => {}
                Err(error) => failure = Some(error.to_string()),
            }
        }
        let mut err = std::io::stderr();
        if !back.is_empty() && hooks.told.is_none_or(|told| told + AGAIN <= now) {
            hooks.told = Some(now);
            let devices = back.join(", ");
            let _ = writeln!(
                err,
                "another program removed the nftables table wayfare_own (as `nft flush ruleset` does), which keeps the kernel from \
                 answering at {devices}: it is put back; meanwhile the kernel may have answered beside this daemon"
            );
        }
        hooks.due = failure.is_some().then(|| now + AGAIN);
        if let Some(why) = failure.as_ref().filter(|_| hooks.failure.is_none()) {
            let _ = writeln!(
                err,
                "the ingress hook is not there, so the kernel handles this daemon's packets too: {why}"
            );
        }
        hooks.failure = failure;
    }
}
