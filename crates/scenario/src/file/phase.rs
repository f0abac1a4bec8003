//! Phases: the differences between repetitions of a scenario.
//!
//! A scenario has fixed instants, for example a move at 4.3 s and the start of a download at 0.5 s. In a repetition
//! on another day, packets, beacons, advertisements and time-outs would be at other points of their periods. So each
//! of several runs shifts each instant by a separate time, below the scenario's `phase`. The default of `phase` is 1
//! s: the period of agents' advertisements. `phase = "0s"` disables the shift. A phase longer than the run is
//! refused.
//!
//! Repetition `i` of `n` shifts an instant by `(p(i) + u) / n` of its range. Here `p` is a permutation and `u` a
//! fraction, both drawn for each instant from the first seed and the name of the instant. The shifts are a Latin
//! hypercube (`McKay`, Beckman and Conover 1979): the runs sample all parts of the range equally often, and the
//! shifts of two instants are independent. Both backends use the same shifts.
//!
//! An instant stays within the run, and keeps its order among the instants on which it depends. The range of its
//! shift is at most half the time to the next later one of these instants, or to the end of the run. A start depends
//! on all other instants. A move depends only on the instants of its own host: the other moves of the host, and the
//! starts and ends of workloads at the host or towards it. Instants of other hosts do not limit a move. Otherwise a
//! host that moves 1 ms before another host would be shifted by at most 0.5 ms. The points of a host's `course` or
//! `path` move together. A start that the scenario leaves out is not shifted, and neither is a random event.
//!
//! An `[[event]]` happens at the same instant in all runs. It limits all other instants: an instant before the event
//! stays before it.

use super::protocol;
use super::repetition::Repetition;
use crate::application::Application;
use toml::{Table, Value};
use wire::Duration;

/// The default of `phase`: the largest shift of an instant.
const SPAN: Duration = Duration::from_secs(1);

/// Returns whether several runs of a plan are shifted against each other. `false` if the scenario has `phase = "0s"`.
pub fn is_shifted(plan: &crate::Plan) -> bool {
    let document: Option<Table> = toml::from_str(&plan.document).ok();
    let phase = document.and_then(|document| document.get("phase").and_then(parse));
    phase.is_none_or(|phase| !phase.is_zero())
}

/// Shifts the instants of a scenario's document, if there are several runs. Values that are not spans of time do not
/// change; the reader of the scenario refuses them. An error says what is wrong with the key `phase`.
pub(super) fn shift(document: &mut Table, repetition: Repetition) -> Result<(), String> {
    let span = |document: &Table, key: &str| document.get(key).and_then(parse);
    let Some(duration) = span(document, "duration") else { return Ok(()) };
    let phase = span(document, "phase");
    if phase.is_some_and(|phase| phase > duration) {
        return Err(format!("allowed: 0s (no shift) to {duration:?}, the duration of the run"));
    }
    if repetition.of > 1 {
        shift_by(document, repetition, duration, phase.unwrap_or(SPAN));
    }
    Ok(())
}

/// Shifts each instant by at most `most`.
fn shift_by(document: &mut Table, repetition: Repetition, duration: Duration, most: Duration) {
    let events = document.get("event").and_then(Value::as_array);
    let events: Vec<Duration> =
        events.into_iter().flatten().filter_map(|event| event.get("at").and_then(parse)).collect();
    let mut found = Found::default();
    for (table, hosts) in document.iter_mut().filter(|(table, _)| ["host", "tree"].contains(&table.as_str()))
    {
        for (host, keys) in hosts.as_table_mut().into_iter().flatten() {
            let Some(keys) = keys.as_table_mut() else { continue };
            found.host(table, host, keys, duration);
        }
    }
    let Found { groups, mut fences } = found;
    let everyone: Vec<String> = groups.iter().flat_map(|group| group.hosts.clone()).collect();
    fences.extend(events.into_iter().map(|at| (at, everyone.clone())));
    let known: Vec<Fence> = groups
        .iter()
        .map(|group| (group.times(), group.hosts.clone()))
        .chain(fences.into_iter().map(|(at, hosts)| (vec![at], hosts)))
        .collect();
    for (index, group) in groups.into_iter().enumerate() {
        let depends =
            |hosts: &[String]| !group.is_move || hosts.iter().any(|host| group.hosts.contains(host));
        let others = known.iter().enumerate();
        let others = others.filter(|(other, (_, hosts))| *other != index && depends(hosts));
        let others = others.flat_map(|(_, (times, _))| times).chain([&duration]);
        let room = room(&group.times(), &others.copied()).min(most);
        let by = room.mul_f64(repetition.fraction(&group.name));
        for value in group.values {
            if let Some(at) = parse(value) {
                *value = format!("{}ns", (at + by).as_nanos()).into();
            }
        }
    }
}

/// Returns the largest common shift of the instants `own`: half of the shortest time from an instant of `own` to the
/// next later instant of `others`. Zero if an instant of `own` has no later instant in `others`.
fn room(own: &[Duration], others: &(impl Iterator<Item = Duration> + Clone)) -> Duration {
    // The points of a course at 0 s are its initial state, and no events.
    let events = own.iter().filter(|at| own.len() == 1 || !at.is_zero());
    let half = |at: &Duration| {
        let next = others.clone().filter(|other| other > at).min();
        next.map_or(Duration::ZERO, |next| next.saturating_sub(*at) / 2)
    };
    events.map(half).min().unwrap_or_default()
}

/// Instants, and the hosts to which they belong.
type Fence = (Vec<Duration>, Vec<String>);

/// Instants that are shifted together.
struct Group<'a> {
    name: String,
    /// The host of the instants, and for a workload also its peer.
    hosts: Vec<String>,
    /// Whether the instants are moves of a host. Otherwise they are the start of a workload or program.
    is_move: bool,
    values: Vec<&'a mut Value>,
}

impl Group<'_> {
    fn times(&self) -> Vec<Duration> {
        self.values.iter().filter_map(|value| parse(value)).collect()
    }
}

/// The instants of a scenario: those that are shifted (`groups`), and those that are not shifted and only limit
/// others (`fences`).
#[derive(Default)]
struct Found<'a> {
    groups: Vec<Group<'a>>,
    fences: Vec<(Duration, Vec<String>)>,
}

impl<'a> Found<'a> {
    fn host(&mut self, table: &str, host: &str, keys: &'a mut Table, duration: Duration) {
        let mut way = Vec::new();
        let hosts = vec![host.to_owned()];
        for (key, value) in keys.iter_mut() {
            match (key.as_str(), value) {
                ("role", Value::Array(roles)) => {
                    for (index, role) in roles.iter_mut().enumerate() {
                        let Some(role) = role.as_table_mut() else { continue };
                        self.role(&format!("{table}.{host}.role[{index}]"), host, role, duration);
                    }
                }
                ("program", Value::Array(programs)) => {
                    for (index, program) in programs.iter_mut().enumerate() {
                        let Some(program) = program.as_table_mut() else { continue };
                        let stop = program.get("stop").and_then(parse);
                        self.fences.extend(stop.map(|stop| (stop, hosts.clone())));
                        let start = program.get_mut("start").map(|start| vec![start]);
                        self.add(&format!("{table}.{host}.program[{index}]"), &hosts, false, start);
                    }
                }
                ("course", Value::Table(cells)) => {
                    way.extend(cells.iter_mut().flat_map(|(_, points)| first_of_each(points)));
                }
                ("path", Value::Table(keys)) => {
                    way.extend(keys.get_mut("points").into_iter().flat_map(first_of_each));
                }
                _ => {}
            }
        }
        self.add(&format!("{table}.{host}.way"), &hosts, true, Some(way).filter(|way| !way.is_empty()));
    }

    fn role(&mut self, name: &str, host: &str, role: &'a mut Table, duration: Duration) {
        // An invalid rule of moves does not change; the reader of the scenario reports it.
        let _ = protocol::write_out(duration, role);
        let peer = role.get("to").and_then(Value::as_str).and_then(|to| to.split(':').next());
        let hosts: Vec<String> = [Some(host), peer].into_iter().flatten().map(str::to_owned).collect();
        self.fences.extend(role.get("stop").and_then(parse).map(|stop| (stop, hosts.clone())));
        let is_app = Application::of_table(role).is_some();
        for (key, value) in role.iter_mut() {
            match (key.as_str(), value) {
                ("start", value) if is_app && parse(value).is_some() => {
                    self.add(&format!("{name}.start"), &hosts, false, Some(vec![value]));
                }
                ("moves", Value::Array(moves)) => {
                    let at = moves.iter_mut().filter_map(|step| step.as_table_mut()?.get_mut("at"));
                    for (number, at) in at.enumerate() {
                        self.add(&format!("{name}.moves[{number}]"), &hosts, true, Some(vec![at]));
                    }
                }
                _ => {}
            }
        }
    }

    fn add(&mut self, name: &str, hosts: &[String], is_move: bool, values: Option<Vec<&'a mut Value>>) {
        let group = |values| Group { name: name.to_owned(), hosts: hosts.to_vec(), is_move, values };
        self.groups.extend(values.map(group));
    }
}

/// Returns the first element of each point: its time.
fn first_of_each(points: &mut Value) -> impl Iterator<Item = &mut Value> {
    points.as_array_mut().into_iter().flatten().filter_map(|point| point.as_array_mut()?.first_mut())
}

fn parse(value: &Value) -> Option<Duration> {
    value.as_str().and_then(node::config::parse_span)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;
    use std::collections::BTreeSet;

    fn shifted(text: &str, number: u64, of: u64) -> Table {
        let mut document: Table = toml::from_str(text).unwrap();
        shift(&mut document, Repetition { number, of, seed: 1 }).unwrap();
        document
    }

    fn moves(document: &Table) -> Vec<Duration> {
        let role = &document["host"]["mobile"]["role"];
        let role = role.as_array().unwrap().iter().find(|role| role.get("moves").is_some()).unwrap();
        role["moves"].as_array().unwrap().iter().map(|step| parse(&step["at"]).unwrap()).collect()
    }

    const FIRST: &str = include_str!("../../../../scenarios/first.toml");
    const DOWNLOAD: &str = include_str!("../../../../scenarios/mobile-ip/download.toml");
    const SIGMA: &str = include_str!("../../../../scenarios/sigma/handoff.toml");

    #[test]
    fn every_part_of_the_span_is_met_once_and_instants_are_not_locked() {
        let of = 40;
        let places = |index: usize| {
            let from = moves(&toml::from_str(FIRST).unwrap())[index];
            let place = |number| {
                let late = moves(&shifted(FIRST, number, of))[index].saturating_sub(from);
                (late.as_secs_f64() / 0.5 * of as f64) as u64
            };
            (0..of).map(place).collect::<Vec<_>>()
        };
        // The moves of `first` are 1 s apart, so each is shifted by at most 0.5 s.
        let [first, second] = [places(0), places(1)];
        for places in [&first, &second] {
            assert_eq!(places.iter().copied().collect::<BTreeSet<_>>(), (0..of).collect());
        }
        assert_ne!(first, second);
    }

    #[test]
    fn instants_stay_in_their_order_and_in_the_run() {
        for number in 0..40 {
            let document = shifted(FIRST, number, 40);
            let moves = moves(&document);
            assert!(moves.is_sorted() && *moves.last().unwrap() < Duration::from_millis(5500), "{moves:?}");
            let start = &document["host"]["correspondent"]["role"][0]["start"];
            assert!(parse(start).unwrap() < moves[0]);
        }
    }

    /// A move of another host 1 ms after a move of this host does not limit the shift. The start of this host's own
    /// application limits it.
    #[test]
    fn what_another_host_does_bounds_no_move() {
        let other = DOWNLOAD.replace("[host.mobile]", "[host.other]").replace("10.1.0.7", "10.1.0.8");
        let other = &other[other.find("[host.other]").unwrap()..];
        let text = format!("{DOWNLOAD}\n{}", other.replace("4.3s", "4.301s").replace("0.5s", "4.302s"));
        let latest = |text: &str| (0..40).map(|number| moves(&shifted(text, number, 40))[0]).max().unwrap();
        assert!(latest(&text) > Duration::from_millis(5_250), "{:?}", latest(&text));
        // The start of the host's own application limits the shift.
        let own = latest(&DOWNLOAD.replace("start = \"0.5s\"", "start = \"4.4s\""));
        assert!(own < Duration::from_millis(4_350), "{own:?}");
    }

    #[test]
    fn events_stay_where_they_are_and_bound_what_is_before_them() {
        let text = format!("{FIRST}\n[[event]]\nat = \"2.1s\"\nkind = \"crash\"\nhost = \"b1\"\n");
        for number in 0..10 {
            let document = shifted(&text, number, 10);
            assert_eq!(document["event"][0]["at"].as_str(), Some("2.1s"));
            let moves = moves(&document);
            assert!(
                moves[1] < Duration::from_millis(2050) && moves[2] >= Duration::from_secs(3),
                "{moves:?}"
            );
        }
    }

    #[test]
    fn one_run_alone_stays_as_it_is_written_and_so_does_phase_0() {
        let same = |text: &str, of| shifted(text, 0, of) == toml::from_str::<Table>(text).unwrap();
        assert!(same(FIRST, 1) && !same(FIRST, 2));
        assert_eq!(
            moves(&shifted(&format!("phase = \"0s\"\n{FIRST}"), 1, 2)),
            moves(&toml::from_str(FIRST).unwrap())
        );
        let little = moves(&shifted(&format!("phase = \"1ms\"\n{FIRST}"), 1, 2));
        assert!(little[0] > Duration::from_secs(1) && little[0] < Duration::from_millis(1001), "{little:?}");
    }

    #[test]
    fn a_phase_longer_than_the_run_is_refused_with_its_line() {
        let plan = |phase: &str| {
            Scenario::plan(
                "x.toml",
                &FIRST.replacen("duration", &format!("phase = \"{phase}\"\nduration"), 1),
                &[],
                1,
            )
        };
        assert!(plan("6s").is_ok() && plan("0s").is_ok());
        let refusal = plan("100s").unwrap_err().to_string();
        assert!(
            refusal.starts_with("x.toml, line 6, column 9: `phase`: allowed: 0s (no shift) to 6s"),
            "{refusal}"
        );
    }

    #[test]
    fn a_course_moves_as_a_whole_and_a_rule_is_written_out() {
        let course = |document: &Table| {
            let points = |cell: &str| document["host"]["mobile"]["course"][cell].as_array().unwrap().clone();
            ["1", "2"].map(points).concat().iter().map(|point| parse(&point[0]).unwrap()).collect::<Vec<_>>()
        };
        let before = course(&toml::from_str(SIGMA).unwrap());
        let after = course(&shifted(SIGMA, 1, 3));
        let by: BTreeSet<Duration> =
            after.iter().zip(&before).map(|(after, before)| after.saturating_sub(*before)).collect();
        assert!(by.len() == 1 && by.first().is_some_and(|by| !by.is_zero()), "{by:?}");
        let rule = "moves = { between = [\"foreign\", \"home\"], every = \"2s\" }";
        let text = DOWNLOAD.replace("moves = [{ at = \"4.3s\", to = \"foreign\" }]", rule);
        assert_eq!(moves(&shifted(&text, 1, 2)).len(), 4);
    }

    #[test]
    fn a_repetition_makes_the_same_plan_whoever_asks() {
        let plan = |number, of, seed| {
            let repetition = Repetition { number, of, seed: 1 };
            Scenario::repetition("first.toml", FIRST, &[], seed, repetition).unwrap().document
        };
        assert_eq!(plan(3, 9, 1), plan(3, 9, 7));
        assert_ne!(plan(3, 9, 1), plan(4, 9, 1));
    }
}
