//! The timing of a run on Linux: which processes were late or stalled, and whether the machine was the cause.

use super::report::RADIO;
use super::{HostReport, LinuxReport, stalls};
use crate::control_run::Control;
use daemon::Stall;
use trace::doubt::{Doubt, LATENESS_BOUND, STALL_BOUND};

/// A process of the lab, or the thread of a store, with its timing.
struct Part<'a> {
    name: String,
    stalls: &'a [Stall],
    /// The host of the daemon or store; `None` for the link emulator.
    host: Option<&'a HostReport>,
    /// The 99th percentile of the process's lateness, in microseconds. `None` for a store, which handles no frames.
    p99_us: Option<f64>,
}

impl Part<'_> {
    fn long(&self) -> impl Iterator<Item = Stall> {
        let is_long = |stall: &&Stall| u128::from(stall.us) > STALL_BOUND.as_micros();
        self.stalls.iter().filter(is_long).copied()
    }
}

impl LinuxReport {
    /// Returns doubts about processes that were stalled too long or handled frames too late. All stalls that the
    /// machine caused are one doubt.
    pub(super) fn timing_doubts(&self) -> Vec<Doubt> {
        let processes = self.processes();
        let stores = self.stores();
        let mut of_machine: Vec<Stall> = Vec::new();
        let mut own = Vec::new();
        for part in processes.iter().chain(&stores) {
            let (shared, alone): (Vec<Stall>, Vec<Stall>) = part
                .long()
                .filter(|stall| part.host.is_none_or(|host| !host.was_to_stall(*stall)))
                .partition(|stall| self.is_of_machine(&processes, *stall));
            of_machine.extend(shared);
            if let Some(stall) = alone.iter().max_by_key(|stall| stall.us) {
                own.push(Doubt::Stalled {
                    process: part.name.clone(),
                    until_s: stall.until_us as f64 / 1e6,
                    stall_ms: stall.us as f64 / 1e3,
                    idle_ms: stalls::meanwhile(*stall, &self.idle.stalls) as f64 / 1e3,
                    alone_us: self.control_after_run().map(Control::worst_us),
                });
            }
        }
        let longest = of_machine.iter().max_by_key(|stall| stall.us);
        let machine = longest.map(|stall| Doubt::MachineStalled {
            until_s: stall.until_us as f64 / 1e6,
            stall_ms: stall.us as f64 / 1e3,
            stalled: processes.iter().filter(|one| stalls::meanwhile(*stall, one.stalls) > 0).count(),
            processes: processes.len(),
            idle_ms: stalls::meanwhile(*stall, &self.idle.stalls) as f64 / 1e3,
        });
        machine.into_iter().chain(own).chain(late(&processes, self.control_after_run())).collect()
    }

    fn control_after_run(&self) -> Option<&Control> {
        self.control.as_ref().filter(|control| control.follows_this_run)
    }

    /// Returns whether the machine caused a stall: the idle thread and at least half of the processes were stalled at
    /// the same time.
    fn is_of_machine(&self, processes: &[Part<'_>], stall: Stall) -> bool {
        let witnesses = processes.iter().filter(|one| stalls::is_shared(stall, one.stalls)).count();
        stalls::is_shared(stall, &self.idle.stalls) && witnesses * 2 >= processes.len()
    }

    /// Returns all processes with a timing report: the daemons, and the link emulator.
    fn processes(&self) -> Vec<Part<'_>> {
        let summaries = self.hosts.iter().filter_map(|host| Some((host, host.summary.as_ref()?)));
        let [_, p99_us, _] = self.lateness_us;
        let radio = Part { name: RADIO.to_owned(), stalls: &self.stalls, host: None, p99_us: Some(p99_us) };
        let daemons = summaries.map(|(host, summary)| Part {
            name: summary.name.clone(),
            stalls: &summary.stalls,
            host: Some(host),
            p99_us: Some(summary.handled.p99_us),
        });
        daemons.chain([radio]).collect()
    }

    /// Returns the timing of the store of each daemon. A store is a thread; replies of the daemon's roles wait for it.
    fn stores(&self) -> Vec<Part<'_>> {
        let summaries = self.hosts.iter().filter_map(|host| Some((host, host.summary.as_ref()?)));
        let store = |name: &str| format!("the store of {name}");
        summaries
            .map(|(host, of)| Part {
                name: store(&of.name),
                stalls: &of.store_stalls,
                host: Some(host),
                p99_us: None,
            })
            .collect()
    }
}

/// Returns doubts about processes that handled more than 1 % of their frames too late. If the control run after this
/// run was late too, returns a single doubt, about the machine.
fn late(processes: &[Part<'_>], control: Option<&Control>) -> Vec<Doubt> {
    let is_late = |p99_us: f64| p99_us > LATENESS_BOUND.as_micros() as f64;
    let known = processes.iter().filter_map(|one| Some((&one.name, one.p99_us?)));
    let late: Vec<(&String, f64)> = known.filter(|(_, p99_us)| is_late(*p99_us)).collect();
    let alone_us = control.map(Control::p99_us);
    let worst = late.iter().map(|(_, p99_us)| *p99_us).reduce(f64::max);
    if let (Some(p99_us), Some(alone_us)) = (worst, alone_us.filter(|alone_us| is_late(*alone_us))) {
        return vec![Doubt::MachineLate { late: late.len(), processes: processes.len(), p99_us, alone_us }];
    }
    late.into_iter().map(|(name, p99_us)| Doubt::Late { process: name.clone(), p99_us, alone_us }).collect()
}
