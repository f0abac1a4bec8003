//! `wayfare run SCENARIO --no-records`: the speed and memory of a run.

use crate::Failure;
use crate::measuring::{judged, warn};
use crate::output::{Format, print, tell};
use experiments::catalogue;
use experiments::sweep::grid;
use os::Clock;
use recorder::ledger::Running;
use recorder::run::{Counted, count as count_run};
use recorder::rundir::RepetitionPart;
use scenario::{Plan, Repetition, Scenario, Setting, warnings};
use serde_json::json;
use std::fmt::Write;
use trace::NamedDoubt;

/// Executes the runs one after the other, so that no run affects the time of another. Settings with several values
/// define a grid. All seeds of one point of the grid are run before the next point.
pub(crate) fn count(
    scenario: &str,
    settings: &[Setting],
    repetitions: &(impl Iterator<Item = (u64, Repetition)> + Clone),
    format: Format,
) -> Result<(), Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let (file, text) = catalogue::find(scenario).map_err(|error| usage(&error))?;
    let (mut doubts, mut failures) = (Vec::new(), 0);
    let axes: Vec<Vec<Setting>> = settings.iter().map(Setting::alternatives).collect();
    let points = grid(&axes);
    let mut found = Vec::new();
    for point in &points {
        found.extend(warnings(&file, &text, point).map_err(|error| usage(&error))?);
    }
    warn(found);
    let each = |point| repetitions.clone().map(move |repetition| (point, repetition));
    for (settings, (seed, repetition)) in points.iter().flat_map(each) {
        let clock = Clock::start();
        let plan =
            Scenario::repetition(&file, &text, settings, seed, repetition).map_err(|error| usage(&error))?;
        let world = plan.watched(Running::new(&plan)).map_err(|error| usage(&error))?;
        let (setup, before) = (clock.now().as_secs_f64(), processor_seconds());
        let run = count_run(world, &plan);
        let wall = clock.now().as_secs_f64() - setup;
        let processor = processor_seconds().zip(before).map(|(after, before)| after - before);
        let cost = Cost { setup, wall, processor, peak: peak_bytes() };
        match format {
            Format::Json => print(&format!("{}\n", line(&plan, &run, &cost))),
            Format::Text => print(&page(&plan, &run, &cost)),
        }
        for what in &run.failures {
            tell!("failure: seed {seed}: {what}");
        }
        failures += run.failures.len();
        doubts.extend(NamedDoubt::all("", &run.doubts));
    }
    judged(doubts, failures)
}

/// The cost of a run: times in seconds, and the peak memory of the process so far in bytes. A value is `None` if the
/// system does not report it.
struct Cost {
    setup: f64,
    wall: f64,
    processor: Option<f64>,
    peak: Option<u64>,
}

/// Returns the processor time of this thread so far, in seconds (the kernel's
/// Documentation/scheduler/sched-stats.rst).
fn processor_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(stat.split_whitespace().next()?.parse::<u64>().ok()? as f64 / 1e9)
}

/// Returns the largest resident set of this process so far, in bytes (proc(5), `VmHWM`).
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

fn line(plan: &Plan, run: &Counted, cost: &Cost) -> serde_json::Value {
    let ledger = &run.ledger;
    json!({
        "scenario": plan.name,
        "seed": plan.seed,
        "repetition": RepetitionPart::of(plan.repetition),
        "settings": plan.settings.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "hosts": plan.len(),
        "simulated_s": plan.duration.as_secs_f64(),
        "setup_s": cost.setup,
        "wall_s": cost.wall,
        "processor_s": cost.processor,
        "events": run.events,
        "packets": ledger.sent,
        "hops": run.hops,
        "peak_bytes": cost.peak,
        "fingerprint": run.fingerprint.to_string(),
        "ledger": {
            "sent": ledger.sent,
            "copied": ledger.copied,
            "delivered": ledger.delivered,
            "dropped": ledger.dropped_total(),
            "held": ledger.held,
            "vanished": ledger.vanished.len(),
        },
        "failures": run.failures,
        "doubts": run.doubts,
    })
}

fn page(plan: &Plan, run: &Counted, cost: &Cost) -> String {
    let (simulated, ledger) = (plan.duration.as_secs_f64(), &run.ledger);
    let which = RepetitionPart::of(plan.repetition);
    let which = which.map_or(String::new(), |which| format!(", run {} of {}", which.number, which.of));
    let mut out = format!(
        "{} on sim, {simulated} s of virtual time, seed {}{which}: {} hosts, no records kept\n",
        plan.name,
        plan.seed,
        plan.len()
    );
    for setting in &plan.settings {
        let _ = writeln!(out, "  {setting}");
    }
    out.push('\n');
    let _ = writeln!(out, "{:>12.3} s to create hosts and links", cost.setup);
    let _ = writeln!(
        out,
        "{:>12.3} s for the run: {:.1} times as fast as real time",
        cost.wall,
        simulated / cost.wall
    );
    if let Some(processor) = cost.processor {
        let _ = writeln!(out, "{processor:>12.3} s of processor time of the simulator's thread");
    }
    let _ = writeln!(
        out,
        "{:>12} events, {:.0} per second of the run's real time",
        run.events,
        run.events as f64 / cost.wall
    );
    let _ = writeln!(
        out,
        "{:>12} frames on links; at most {} packets under way at the same time",
        run.hops, run.most_open
    );
    if let Some(peak) = cost.peak {
        let each = peak / plan.len().max(1) as u64;
        let _ = writeln!(
            out,
            "{:>12.1} MiB of memory at the peak, {each} bytes per host",
            peak as f64 / 1_048_576.0
        );
    }
    out.push('\n');
    out.push_str(&recorder::report::books(ledger));
    out.push_str("handoffs and delays are not evaluated without records\n");
    let _ = writeln!(out, "fingerprint {}", run.fingerprint);
    out
}
