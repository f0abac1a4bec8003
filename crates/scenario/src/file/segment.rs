//! The table `[segment.NAME]`: a wire that several hosts share, as an Ethernet segment of the 1990s.
//!
//! The fabric of links has a segment as a cell without a base station, to which no radio tunes. A segment has the rules of
//! a cell: one frame at a time, a queue at each host, and the same grant of the medium.

use super::error::Wrong;
use super::{Contention, Scenario, Segment};
use link::{CellSpec, Duplex};
use std::collections::{BTreeMap, BTreeSet};
use wire::Cell;

/// The least number of hosts on a segment.
const LEAST: usize = 2;

/// Returns the number that each segment has as a cell of the fabric, by its name. The numbers are the largest ones that
/// no `[cell.N]` has.
pub(super) fn cells(scenario: &Scenario) -> BTreeMap<String, Cell> {
    let free = (0..=u16::MAX).rev().filter(|number| !scenario.cell.contains_key(&number.to_string()));
    scenario.segment.keys().cloned().zip(free.map(Cell)).collect()
}

/// Returns the parameters of a segment as a cell with this number.
pub(super) fn spec(segment: &Segment, cell: Cell) -> CellSpec {
    let Segment { rate, per_frame, delay, queue, mtu, .. } = *segment;
    let faults = segment.faults();
    let air = super::medium::shared_medium(segment.contention, segment.access);
    CellSpec { cell, rate, per_frame, delay, queue, mtu, faults, air, duplex: Duplex::Half, is_segment: true }
}

/// Checks the names, the hosts and the medium of all segments. An error has the path of the key, and the problem.
pub(super) fn check(scenario: &Scenario) -> Result<(), Wrong> {
    for (name, segment) in &scenario.segment {
        let wrong = |key: &str, problem: String| Err((format!("segment.{name}{key}"), problem));
        if let Some(problem) = super::limits::name_of_interface(name) {
            return wrong("", problem);
        }
        if scenario.host.contains_key(name) {
            let problem = format!(
                "`{name}` is a host; give the segment another name, because interfaces have the names of hosts and segments"
            );
            return wrong("", problem);
        }
        if scenario.wire.contains_key(name) {
            return wrong(
                "",
                format!("`{name}` is a wire; give the segment another name, because events name both"),
            );
        }
        let mut seen = BTreeSet::new();
        for (index, host) in segment.hosts.iter().enumerate() {
            if !seen.insert(host) {
                return wrong(
                    &format!(".hosts[{index}]"),
                    format!("`{host}` is listed twice; list each host once"),
                );
            }
        }
        if seen.len() < LEAST {
            return wrong(".hosts", format!("must have at least {LEAST} hosts; it has {}", seen.len()));
        }
        if let Some(Err((key, problem))) = segment.contention.map(Contention::check) {
            return wrong(&format!(".{key}"), problem.to_owned());
        }
        super::limits::mtu(&format!("segment.{name}"), segment.mtu)?;
    }
    Ok(())
}
