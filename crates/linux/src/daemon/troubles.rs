//! What an operator must know of a daemon that goes on: `status` has it under `troubles`.

use super::Daemon;
use super::hooks::Hooks;
use super::host::KERNEL_SIDE;
use super::recorder::Recorder;
use node::Value;
use std::io::Write;

impl Daemon {
    /// Adds to a status how many packets ended for each reason, and what is wrong now.
    pub(super) fn with_health(&self, status: Value) -> Value {
        match self.drops.add_to(status) {
            Value::Map(mut status) => {
                let troubles = self.troubles().into_iter().map(Value::Text).collect();
                status.push(("troubles".to_owned(), Value::List(troubles)));
                Value::Map(status)
            }
            other => other,
        }
    }

    fn troubles(&self) -> Vec<String> {
        let records = self.records.as_ref().and_then(Recorder::failure);
        let records = records.map(|why| format!("records cannot be written: {why}"));
        let store = self.complaint.as_ref().map(|why| format!("nothing can be stored: {why}"));
        let host = self.host.is_removed.then(|| {
            format!("{KERNEL_SIDE} was removed: packets of this host's own programs end here, until the daemon is started again")
        });
        let hooks = self.hooks.as_ref().and_then(Hooks::failure);
        let hooks = hooks.map(|why| {
            format!("the ingress hook is not there, so the kernel handles this daemon's packets too: {why}")
        });
        [records, store, host, hooks].into_iter().flatten().collect()
    }

    /// Says once that records cannot be written.
    pub(super) fn complain_of_records(&mut self) {
        if let Some(why) = self.records.as_mut().and_then(Recorder::new_failure) {
            let _ = writeln!(std::io::stderr(), "cannot write records, and continues without them: {why}");
        }
    }

    /// The lab whose links this daemon uses has ended before it, as when it was killed. The daemon ends in order, and at once: the end
    /// of the connection can be read for ever, and at real-time priority that would keep the kernel from ending the lab.
    pub(super) fn lab_is_gone(&mut self) {
        if self.radio.take().is_some() {
            let _ =
                writeln!(std::io::stderr(), "the radio process of the lab has ended, so this daemon ends");
            self.ends = true;
        }
    }

    /// The pair of this host's own stack is gone. What the daemon forwards for others does not need it, so the daemon goes on. It is
    /// not made again: whoever removed it may want just that, and programs' sockets and routes are lost either way.
    pub(super) fn host_link_removed(&mut self) {
        self.host.carries = false;
        if !std::mem::replace(&mut self.host.is_removed, true) {
            self.note_lost(KERNEL_SIDE.to_owned());
            let _ = writeln!(
                std::io::stderr(),
                "{KERNEL_SIDE} was removed: this host's own programs are cut off until the daemon is started again"
            );
        }
    }
}
