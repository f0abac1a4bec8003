//! The answers to commands of clients. The answer to `status` has the host's clock. Under `troubles`, it lists problems with
//! which the daemon continues, but which an operator must know.

use super::hooks::Hooks;
use super::host_link::KERNEL_SIDE;
use super::recorder::Recorder;
use super::{Answer, Asked, Daemon};
use node::Value;
use os::Clock;
use std::io::Write;
use wire::{Instant, WallTime};

impl Daemon {
    /// Sends the node's answer to a command to the client that sent the command.
    pub(super) fn answered(&mut self, asked: &Asked, answer: Result<Value, String>) {
        match answer {
            Err(why) if !asked.is_known => self.control.reply(asked.requester, &Answer::Unknown(why)),
            Ok(status) if asked.is_status => {
                let status = self.with_health(status);
                self.control.answer(asked.requester, Ok(status));
            }
            answer => self.control.answer(asked.requester, answer),
        }
    }

    /// Adds to a status the numbers of dropped packets by reason, the host's clock, and the current problems. A status that
    /// is not a map is returned as it is.
    fn with_health(&self, status: Value) -> Value {
        match self.drops.add_to(status, self.sockets.overflowed()) {
            Value::Map(mut status) => {
                let troubles = self.troubles().into_iter().map(Value::Text).collect();
                status.push(("clock".to_owned(), self.host_clock()));
                status.extend(self.data_path_status());
                status.push(("troubles".to_owned(), Value::List(troubles)));
                Value::Map(status)
            }
            other => other,
        }
    }

    /// Returns the host's wall clock: its time, and how far it is ahead of the machine's.
    fn host_clock(&self) -> Value {
        let now = self.clock.now();
        let ahead = self.wall_shift.saturating_add(self.clock_error.0.ahead(now));
        // A daemon of a lab has no zero of the clock before the run begins.
        let WallTime(nanos) = if self.began {
            self.wall_at_zero().plus(now.since(Instant::ZERO))
        } else {
            WallTime(Clock::wall().0.saturating_add(ahead))
        };
        Value::map([
            ("unix_s", Value::from(nanos / 1_000_000_000)),
            ("ahead_ms", Value::from(ahead / 1_000_000)),
        ])
    }

    fn troubles(&self) -> Vec<String> {
        let records = self.records.as_ref().and_then(Recorder::failure);
        let records = records.map(|why| format!("records cannot be written: {why}"));
        let store = self.reported_store_failure.as_ref().map(|why| format!("nothing can be stored: {why}"));
        let host = self.host.is_removed.then(|| {
            format!("the interface {KERNEL_SIDE} was removed: packets of this host's own programs are lost until the daemon is started again")
        });
        let hooks = self.hooks.as_ref().and_then(Hooks::failure).map(str::to_owned);
        [records, store, host, hooks, self.data_path_trouble()].into_iter().flatten().collect()
    }

    /// Reports once that records cannot be written.
    pub(super) fn report_record_failure(&mut self) {
        if let Some(why) = self.records.as_mut().and_then(Recorder::new_failure) {
            let _ = writeln!(
                std::io::stderr(),
                "the daemon cannot write records, and continues without them: {why}"
            );
        }
    }

    /// Ends the daemon cleanly after this turn, because the link emulator of its lab has closed the connection; for
    /// example, the lab was killed. A closed connection stays readable. So the daemon would loop without a pause, and
    /// at real-time priority such a loop could keep the kernel from ending the lab.
    pub(super) fn end_with_lab(&mut self) {
        if let Some(radio) = self.radio.take() {
            let _ = self.epoll.remove(&radio);
            let _ =
                writeln!(std::io::stderr(), "the link emulator of the lab has ended, so this daemon ends");
            self.ends = true;
        }
    }

    /// Handles the removal of the veth pair of this host's own stack. The daemon continues, because forwarding for
    /// other hosts does not need the pair. The pair is not created again: the removal may be intended, and the kernel
    /// has deleted the addresses and routes of the pair.
    pub(super) fn host_link_removed(&mut self) {
        self.host.carries = false;
        if !std::mem::replace(&mut self.host.is_removed, true) {
            self.note_lost(KERNEL_SIDE.to_owned());
            let _ = writeln!(
                std::io::stderr(),
                "the interface {KERNEL_SIDE} was removed: this host's own programs have no network until the daemon is started again"
            );
        }
    }
}
