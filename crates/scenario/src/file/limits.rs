//! Limits of names and of sizes that several tables share.

use super::Scenario;
use super::error::Wrong;
use super::networks::AIR;
use wire::Duration;

/// Longest duration of a run: one day.
pub(super) const LONGEST: Duration = Duration::from_hours(24);
/// The largest coordinate of a base station in either direction, in metres (our choice).
const FARTHEST: f64 = 1e6;

/// The least MTU of IPv4, in bytes (RFC 791, section 3.2).
const LEAST_MTU: u16 = 68;
/// Longest name of a host, in bytes. An interface has the name of the neighbor, and Linux limits the length of the
/// names of interfaces (`IFNAMSIZ`).
const LONGEST_NAME: usize = 15;

/// Returns whether a name has 1 to `longest` letters, digits, `-` and `_`.
pub(super) fn is_name(name: &str, longest: usize) -> bool {
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=longest).contains(&name.len()) && name.chars().all(letters)
}

/// Returns why a host or segment cannot have this name, which is also the name of interfaces. `None` if it can.
pub(super) fn name_of_interface(name: &str) -> Option<String> {
    if !is_name(name, LONGEST_NAME) {
        let problem = "must be 1 to 15 letters, digits, - and _, because interfaces have the names of hosts and segments";
        return Some(problem.to_owned());
    }
    let radio = name.strip_prefix(AIR);
    let is_taken = ["lo", "wf-host", "wf-node"].contains(&name)
        || radio.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()));
    is_taken.then(|| {
        "must not be the name of an interface that each host may have: lo, wf-host, wf-node, or air with digits"
            .to_owned()
    })
}

/// Checks the MTU of a link with the path `path`. An error has the path of the key, and the problem.
pub(super) fn mtu(path: &str, mtu: u16) -> Result<(), Wrong> {
    mtu_problem(mtu).map_or(Ok(()), |problem| Err((format!("{path}.mtu"), problem)))
}

/// Returns why a link cannot have this MTU. `None` if it can.
pub(super) fn mtu_problem(mtu: u16) -> Option<String> {
    (mtu < LEAST_MTU).then(|| format!("must be at least {LEAST_MTU} bytes (RFC 791, section 3.2)"))
}

/// Checks that no time of a link or radio is longer than the longest run.
pub(super) fn times(scenario: &Scenario) -> Result<(), Wrong> {
    let zero = Duration::ZERO;
    let slot = |contention: &Option<super::Contention>| contention.map_or(zero, |of| of.slot);
    let mut all = Vec::new();
    for (name, wire) in &scenario.wire {
        let [there, back] = wire.delay;
        let times = [("delay", there.max(back)), ("duplicate_delay", wire.duplicate_delay)];
        all.extend(times.map(|(key, time)| (format!("wire.{name}.{key}"), time)));
    }
    for (name, cell) in &scenario.cell {
        let times = [
            ("delay", cell.delay),
            ("duplicate_delay", cell.duplicate_delay),
            ("per_frame", cell.per_frame),
            ("beacon.every", cell.beacon.map_or(zero, |beacon| beacon.every)),
            ("contention.slot", slot(&cell.contention)),
        ];
        all.extend(times.map(|(key, time)| (format!("cell.{name}.{key}"), time)));
    }
    for (name, segment) in &scenario.segment {
        let times = [
            ("delay", segment.delay),
            ("duplicate_delay", segment.duplicate_delay),
            ("per_frame", segment.per_frame),
            ("contention.slot", slot(&segment.contention)),
        ];
        all.extend(times.map(|(key, time)| (format!("segment.{name}.{key}"), time)));
    }
    let radio = &scenario.radio;
    let times = [
        ("retune", radio.retune),
        ("attach", radio.attach.unwrap_or(zero)),
        ("excursion", radio.excursion),
        ("drain", radio.drain),
        ("association", radio.association),
        ("scan.every", radio.scan.map_or(zero, |scan| scan.every)),
        ("scan.away", radio.scan.map_or(zero, |scan| scan.away)),
    ];
    all.extend(times.map(|(key, time)| (format!("radio.{key}"), time)));
    let long = all.into_iter().find(|(_, time)| *time > LONGEST);
    long.map_or(Ok(()), |(path, _)| {
        Err((path, "must be at most 1440min, the longest duration of a run".to_owned()))
    })
}

/// Checks the parameters from which signals follow.
pub(super) fn propagation(scenario: &Scenario) -> Result<(), Wrong> {
    if !(-100.0..=30.0).contains(&scenario.radio.at_1m) {
        return Err(("radio.at_1m".to_owned(), "must be from -100 to 30 (dBm)".to_owned()));
    }
    if !(1.0..=10.0).contains(&scenario.radio.exponent) {
        return Err(("radio.exponent".to_owned(), "must be from 1 to 10".to_owned()));
    }
    let is_far = |at: &f64| !(-FARTHEST..=FARTHEST).contains(at);
    let mut cells = scenario.cell.iter();
    match cells.find(|(_, cell)| cell.position.iter().flatten().any(is_far)) {
        Some((name, _)) => {
            let problem = "must be two numbers from -1000000 to 1000000, in metres";
            Err((format!("cell.{name}.position"), problem.to_owned()))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_an_interface_cannot_have_is_refused_with_the_reason() {
        assert_eq!(name_of_interface("lan-of-15-bytes"), None);
        let problem = name_of_interface("lan-of-16-bytes-").unwrap();
        assert!(problem.ends_with("because interfaces have the names of hosts and segments"), "{problem}");
    }
}
