//! Executes the events of a scenario that happen to hosts: daemons are killed, restarted, stopped and continued; wall
//! clocks are set; disks are filled.
//!
//! | event | what pid 1 of the lab does |
//! |---|---|
//! | crash | from then on, frames to the host are lost; SIGKILL to its daemon and its programs |
//! | restart | a new daemon with the same configuration and store; frames reach it once it has taken over its interfaces. If it is stopped before that, it begins when it is continued |
//! | stop, continue | SIGSTOP, SIGCONT to its daemon and its programs: this stops all threads, keeps all state and needs no rights over control groups |
//! | clock | the daemon gets the time by which its wall clock changes |
//! | disk-full, disk-free | the store is on a dedicated tmpfs, which is filled with a file; the file is removed |

use super::daemon::{Daemon, Greeting};
use super::programs::Programs as Workloads;
use super::report::{CrashReport, StopReport};
use super::start::{Start, disk, has_disk};
use super::{LinuxError, file};
use crate::link_emulator::DownHosts;
use daemon::Ask;
use os::{Clock, NetNs};
use scenario::Plan;
use sim::{HostEvent, Order};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use trace::{HostId, Record, What};
use wire::{Duration, Instant};

/// Mount options of the tmpfs of a store: its size and mode.
const DISK: &str = "size=8m,mode=0700";
/// The name of the file that fills the tmpfs.
const FILLER: &str = "filler";
/// The words of [`os::state_change`] for the effects of SIGSTOP and SIGCONT.
const STOPPED: &str = "was stopped";
const CONTINUED: &str = "was continued";
/// Longest time for which pid 1 waits for the effect of a signal.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Mounts a tmpfs for the store of each host whose disk the scenario fills. The mount is visible in this mount
/// namespace only, and ends with the namespace.
pub(super) fn mount_disks(plan: &Plan, dir: &Path) -> Result<(), LinuxError> {
    for (_, name) in (0..).map(HostId).zip(plan.host_names()).filter(|(host, _)| has_disk(plan, *host)) {
        let at = disk(dir, &name);
        std::fs::create_dir(&at).map_err(|error| LinuxError::File(at.clone(), error))?;
        os::namespace::mount_tmpfs(&at, DISK)
            .map_err(|why| LinuxError::Lacks(format!("a tmpfs for the store of `{name}`: {why}")))?;
    }
    Ok(())
}

fn fill(disk: &Path) -> std::io::Result<()> {
    let mut filler = File::create(disk.join(FILLER))?;
    loop {
        match filler.write_all(&[0xff; 4096]) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::StorageFull => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// A daemon that was restarted and has not begun yet.
struct Coming {
    host: HostId,
    greeting: Greeting,
}

/// The events of hosts, ordered by time, and their execution.
pub(super) struct HostOrders<'a> {
    start: Start<'a>,
    namespaces: &'a [NetNs],
    down: DownHosts,
    clock: Clock,
    end: Instant,
    events: std::vec::IntoIter<(Instant, HostId, HostEvent, trace::Event)>,
    next: Option<(Instant, HostId, HostEvent, trace::Event)>,
    coming: Vec<Coming>,
    records: Vec<Record>,
}

impl<'a> HostOrders<'a> {
    pub(super) fn new(start: Start<'a>, namespaces: &'a [NetNs], down: DownHosts, clock: Clock) -> Self {
        let of_host = |event: &scenario::PlannedEvent| match event.order {
            Order::Host(host, what) => Some((event.at, host, what, event.recorded.clone())),
            Order::Link(..) => None,
        };
        let events: Vec<_> = start.plan.events.iter().filter_map(of_host).collect();
        let mut events = events.into_iter();
        let (next, end) = (events.next(), start.plan.end());
        Self { start, namespaces, down, clock, end, events, next, coming: Vec::new(), records: Vec::new() }
    }

    /// Returns how long the caller may sleep, at most `most`.
    pub(super) fn idle(&self, most: Duration) -> Duration {
        let most = if self.coming.is_empty() { most } else { most.min(Duration::from_millis(1)) };
        self.next.as_ref().map_or(most, |(at, ..)| most.min(at.since(self.clock.now())))
    }

    /// Executes the events that are due, and lets restarted daemons begin.
    pub(super) fn tend(
        &mut self,
        daemons: &mut [Daemon],
        workloads: &mut Workloads<'_>,
    ) -> Result<(), LinuxError> {
        while self.next.as_ref().is_some_and(|(at, ..)| *at <= self.clock.now()) {
            let Some((_, host, what, recorded)) = std::mem::replace(&mut self.next, self.events.next())
            else {
                break;
            };
            if let Some(daemon) = daemons.get_mut(host.index()) {
                self.befall(host, what, recorded, daemon, workloads)?;
            }
        }
        let mut coming = std::mem::take(&mut self.coming);
        let mut failed = None;
        coming.retain_mut(|one| {
            let Some(daemon) = daemons.get_mut(one.host.index()) else { return false };
            match self.comes(one, daemon) {
                Ok(has_begun) => !has_begun,
                Err(why) => {
                    failed = Some(why);
                    false
                }
            }
        });
        self.coming.extend(coming);
        failed.map_or(Ok(()), Err)
    }

    /// Returns the records of the events, at the end of the run. A restarted daemon that did not begin is killed. The
    /// fillers of the disks are removed, because each daemon writes to its store when it ends cleanly.
    pub(super) fn end(self, daemons: &mut [Daemon]) -> Vec<Record> {
        for daemon in daemons.iter() {
            let _ = std::fs::remove_file(disk(self.start.dir, &daemon.name).join(FILLER));
        }
        for one in self.coming {
            if let Some(daemon) = daemons.get_mut(one.host.index()) {
                daemon.kill();
            }
        }
        self.records
    }

    fn befall(
        &mut self,
        host: HostId,
        what: HostEvent,
        recorded: trace::Event,
        daemon: &mut Daemon,
        workloads: &mut Workloads<'_>,
    ) -> Result<(), LinuxError> {
        // The recorded time of a crash must be after the last act of the killed daemon. The recorded time of a stop, or
        // of a change of the clock, must be before all later acts of the daemon.
        let mut at = self.clock.now();
        match what {
            HostEvent::Crash => {
                self.coming.retain(|one| one.host != host);
                self.down.set(host, true);
                daemon.kill();
                workloads.crash(&daemon.name);
                self.continued(daemon);
                // The time at which `kill` returns would be too late: the kernel needs time to end the process, which
                // does nothing more in this time.
                at = at.max(self.keep_records(daemon)?);
                let at_us = at.since(Instant::ZERO).as_micros() as u64;
                daemon.report.crashes.push(CrashReport { at_us, restarted_us: None });
            }
            HostEvent::Restart => {
                if let Some(namespace) = self.namespaces.get(host.index()) {
                    daemon.child = self.start.spawn(host, daemon.report.crashes.len() as u32, namespace)?;
                    daemon.report.pid = daemon.child.id();
                    self.coming.push(Coming { host, greeting: Greeting::new() });
                }
            }
            HostEvent::Stop => {
                daemon.report.stops.push(StopReport { at_us: self.micros(), continued_us: None });
                workloads.stop(&daemon.name, true);
                os::stop(daemon.child.id());
                await_change(daemon, STOPPED);
            }
            HostEvent::Continue => {
                workloads.stop(&daemon.name, false);
                os::resume(daemon.child.id());
                await_change(daemon, CONTINUED);
                self.continued(daemon);
            }
            HostEvent::Clock(by) => {
                daemon.wall_shift = daemon.wall_shift.saturating_add(by);
                let runs = !self.coming.iter().any(|one| one.host == host) && !daemon.has_ended;
                if let Some(lines) = daemon.lines.as_mut().filter(|_| runs)
                    && lines.send(&Ask::Clock { by }).is_ok()
                {
                    daemon.owes += 1;
                }
            }
            HostEvent::DiskFull => {
                let at = disk(self.start.dir, &daemon.name);
                fill(&at).map_err(|error| LinuxError::File(at.join(FILLER), error))?;
            }
            HostEvent::DiskFree => {
                let at = disk(self.start.dir, &daemon.name).join(FILLER);
                std::fs::remove_file(&at).map_err(|error| LinuxError::File(at, error))?;
            }
        }
        self.records.push(Record { at, host, what: What::Ordered(recorded) });
        Ok(())
    }

    fn micros(&self) -> u64 {
        self.clock.now().since(Instant::ZERO).as_micros() as u64
    }

    fn continued(&self, daemon: &mut Daemon) {
        let now = self.micros();
        if let Some(stop) = daemon.report.stops.last_mut() {
            stop.continued_us.get_or_insert(now);
        }
    }

    /// Renames the records of a dead daemon, because the host's next daemon creates a new file. Returns the time of the
    /// last record.
    fn keep_records(&self, daemon: &Daemon) -> Result<Instant, LinuxError> {
        let from = self.start.dir.join(file::records(&daemon.name));
        if !from.exists() {
            return Ok(Instant::ZERO); // it was killed before it was ready
        }
        let last = last_record(&from).map_err(|error| LinuxError::File(from.clone(), error))?;
        let to = self.start.dir.join(file::records_before(&daemon.name, daemon.report.crashes.len()));
        std::fs::rename(&from, to).map_err(|error| LinuxError::File(from, error))?;
        Ok(last)
    }

    /// Requests a restarted daemon to begin if it has taken over its interfaces. Returns whether it has. Fails if the
    /// daemon has ended, or is not ready in time.
    fn comes(&self, one: &mut Coming, daemon: &mut Daemon) -> Result<bool, LinuxError> {
        // A daemon that was stopped begins after it is continued, and its time limit starts then.
        if daemon.report.stops.last().is_some_and(|stop| stop.continued_us.is_none()) {
            one.greeting.excuse();
            return Ok(false);
        }
        if !daemon.is_ready(&mut one.greeting)? {
            return Ok(false);
        }
        let since = self.clock.now();
        daemon.has_ended = false;
        daemon.tell_to_begin(&Ask::Begin {
            t0: self.clock.t0,
            end: Some(self.end.0),
            since: since.0,
            wall_shift: daemon.wall_shift,
        });
        if let Some(crash) = daemon.report.crashes.last_mut() {
            // The time was taken before the message was sent, because the first records may be written before this
            // process runs again.
            crash.restarted_us = Some(since.0 / 1000);
        }
        self.down.set(one.host, false);
        Ok(true)
    }
}

/// Returns the time of the last complete record in a file.
fn last_record(path: &Path) -> std::io::Result<Instant> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let lines = tail.split_inclusive(|byte| *byte == b'\n').rev().filter_map(|line| line.strip_suffix(b"\n"));
    let mut records =
        lines.filter_map(|line| Record::from_line(HostId(0), std::str::from_utf8(line).ok()?).ok());
    Ok(records.next().map_or(Instant::ZERO, |record| record.at))
}

/// Number of bytes read at the end of a file of records. It exceeds the longest record: a packet of 64 KiB in
/// hexadecimal.
const TAIL: u64 = 256 << 10;

/// Waits until the kernel reports the effect of a signal that this process has sent, for at most [`AT_ONCE`]. Otherwise
/// the watch of pid 1 would take the effect for that of another process's signal.
fn await_change(daemon: &mut Daemon, what: &str) {
    let clock = Clock::start();
    while clock.now().since(Instant::ZERO) < AT_ONCE {
        match os::state_change(daemon.child.id()) {
            Some(change) if change.what == what => return,
            // On a busy machine, the effect of the earlier SIGSTOP can be reported only now.
            Some(change) if change.what == STOPPED && what == CONTINUED => {}
            Some(change) => {
                daemon.has_ended |= change.ended;
                daemon.report.exit.clone_from(&change.what);
                daemon.report.changes.push(change.what);
                return;
            }
            None => os::pause(Duration::from_micros(100)),
        }
    }
}
