//! The benchmark scenario: one description of where and when a host moves, from which the scenario of each protocol
//! under test is generated.

use scenario::{Application, ScenarioError, Setting, roles_of};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use toml::map::Map;
use toml::{Table, Value};
use wire::Duration;

/// The benchmark file. Protocols are in the order of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    about: String,
    #[serde(deserialize_with = "node::config::span")]
    at: Duration,
    same: Table,
    r#move: Map<String, Value>,
    workload: Map<String, Value>,
    part: BTreeMap<String, Table>,
    contender: Map<String, Value>,
}

/// A protocol under test, as the table `[contender.NAME]` of the benchmark file describes it.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Contender {
    /// The name of the protocol in commands and files.
    #[serde(skip)]
    pub name: String,
    /// The title of the protocol in tables and figures.
    pub title: String,
    /// The description of the protocol in this benchmark.
    pub about: String,
    /// The reason why the application receives no new data after a move. `None` if it should receive new data.
    pub never: Option<String>,
    /// The moves that the protocol cannot make: the name of the move, and the reason.
    #[serde(default)]
    pub cannot: BTreeMap<String, String>,
    /// Whether the protocol is a variant of another one. With the number of runs of the quick scale, variants are measured in
    /// the simulator only, so that the comparison keeps its time on Linux.
    #[serde(default)]
    pub variant: bool,
    parts: Vec<String>,
    /// The transports of the workload's applications.
    #[serde(default)]
    transport: Carriers,
    /// Additions of the protocol to the scenario of a move, by the name of the move.
    #[serde(default)]
    on: BTreeMap<String, Table>,
    #[serde(flatten)]
    scenario: Table,
}

/// The transports of a workload, if they are not the hosts' TCP.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Carriers {
    /// The transport of the clients, at the host that moves.
    client: Option<String>,
    /// The transport of the servers, at the correspondent.
    server: Option<String>,
}

impl Carriers {
    /// Writes the transports into the roles of the workload's clients and servers.
    fn carry(&self, document: &mut Table) {
        for role in roles_of(document) {
            let carrier = match Application::of_table(role) {
                Some(application) if application.is_client() => &self.client,
                Some(application) if application.is_server() => &self.server,
                _ => continue,
            };
            if let Some(carrier) = carrier {
                role.insert("transport".to_owned(), carrier.clone().into());
            }
        }
    }
}

/// A kind of move of the host to another cell: the cells overlap, or there is a gap between them.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Move {
    /// The name of the move, as in the names of scenarios.
    #[serde(skip)]
    pub name: String,
    /// The description of the move, in one line.
    pub about: String,
    /// The time from the departure of the host to the end of the run.
    #[serde(deserialize_with = "node::config::span")]
    pub window: Duration,
    #[serde(flatten)]
    scenario: Table,
}

/// A kind of traffic between the applications of the mobile host and the correspondent, for example a download.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Workload {
    /// The name of the workload, as in the names of scenarios.
    #[serde(skip)]
    pub name: String,
    /// The description of the workload, in one line.
    pub about: String,
    #[serde(flatten)]
    scenario: Table,
}

/// One scenario of the benchmark: a protocol, a move and a workload.
#[derive(Clone, PartialEq, Debug)]
pub struct Leg {
    /// The name of the scenario: `compare/PROTOCOL/MOVE/WORKLOAD`.
    pub name: String,
    /// The protocol, as an index into [`Course::contenders`].
    pub contender: usize,
    /// The move, as an index into [`Course::moves`].
    pub r#move: usize,
    /// The workload, as an index into [`Course::workloads`].
    pub workload: usize,
    /// The text of the scenario file.
    pub text: String,
    /// The names of the hosts.
    pub hosts: Vec<String>,
    /// The cause of the host's move.
    pub mover: Mover,
}

/// The cause of a host's move.
#[derive(Clone, PartialEq, Debug)]
pub enum Mover {
    /// The timetable of a role. The text is the role's name in settings, for example `roam`.
    Timetable(String),
    /// The signal strengths with which the host receives each cell, over time.
    Course {
        /// For each cell, the key in settings (`host.mobile.course.CELL`) and the points. A point is a list of an
        /// instant and a signal strength in dBm.
        cells: Vec<(String, Vec<Value>)>,
        /// The instant at which the host departs if its points are as in `cells`.
        at: Duration,
    },
}

impl Mover {
    /// Returns the signal strengths of all hosts' `course` tables. If there are none, returns the first role with a
    /// timetable (`moves`). `None` if there is neither.
    fn of(document: &Table, at: Duration) -> Option<Self> {
        let hosts = document.get("host")?.as_table()?;
        let courses = hosts.iter().filter_map(|(name, host)| Some((name, host.get("course")?.as_table()?)));
        let points = courses.flat_map(|(name, course)| {
            let cell = move |(cell, points): (&String, &Value)| {
                Some((format!("host.{name}.course.{cell}"), points.as_array()?.clone()))
            };
            course.iter().filter_map(cell)
        });
        let cells: Vec<_> = points.collect();
        if !cells.is_empty() {
            return Some(Self::Course { cells, at });
        }
        let mut roles = hosts.values().filter_map(|host| host.get("role")?.as_array()).flatten();
        let role = roles.find(|role| role.get("moves").is_some())?;
        role.get("kind")?.as_str()?.rsplit('/').next().map(|role| Self::Timetable(role.to_owned()))
    }

    /// Returns the settings that make the host depart at the instant `departure`.
    pub(super) fn departing(&self, departure: Duration) -> Vec<Setting> {
        match self {
            Self::Timetable(role) => vec![Setting::new(&format!("{role}.moves.at"), nanos(departure))],
            Self::Course { cells, at } => {
                let shift = |(path, points): &(String, Vec<Value>)| {
                    let points = points.iter().map(|point| shifted(point, *at, departure));
                    Setting::new(path, points.collect::<Vec<_>>())
                };
                cells.iter().map(shift).collect()
            }
        }
    }
}

/// Returns a duration as scenarios write it, in nanoseconds.
pub(super) fn nanos(span: Duration) -> String {
    format!("{}ns", span.as_nanos())
}

/// Returns a point of a `course`, with its instant shifted from one departure to another. A malformed point stays
/// unchanged, and is rejected when the scenario is read.
fn shifted(point: &Value, from: Duration, to: Duration) -> Value {
    let time = |point: &Value| node::config::parse_span(point.get(0)?.as_str()?);
    let mut point = point.clone();
    if let (Some(time), Some(Value::String(text))) = (time(&point), point.get_mut(0)) {
        *text = nanos((time + to).saturating_sub(from));
    }
    point
}

/// The benchmark: its protocols, moves and workloads, and the scenarios of all combinations.
#[derive(Clone, PartialEq, Debug)]
pub struct Course {
    /// The description of the benchmark, in one line.
    pub about: String,
    /// The protocols under test, in the order of the file.
    pub contenders: Vec<Contender>,
    /// The kinds of moves, in the order of the file.
    pub moves: Vec<Move>,
    /// The workloads, in the order of the file.
    pub workloads: Vec<Workload>,
    /// The scenarios: one for each protocol, each move that the protocol can make, and each workload.
    pub legs: Vec<Leg>,
}

static BUILT_IN: LazyLock<Result<Course, String>> =
    LazyLock::new(|| Course::read(include_str!("../../../../scenarios/compare/course.toml")));

/// The pattern of the scenarios' names, shown in lists.
pub const PATTERN: &str = "compare/PROTOCOL/MOVE/WORKLOAD";

/// Returns the built-in benchmark. Returns an error if its file is invalid.
pub fn course() -> Result<&'static Course, ScenarioError> {
    BUILT_IN.as_ref().map_err(|problem| ScenarioError::new("compare/course (built in)", problem.clone()))
}

/// Returns the text of the benchmark scenario with this name, or `None` if there is none.
pub(crate) fn scenario(name: &str) -> Option<&'static str> {
    let course = course().ok()?;
    course.legs.iter().find(|leg| leg.name == name).map(|leg| leg.text.as_str())
}

impl Course {
    /// Reads a benchmark file. Returns an error that names the wrong key or value.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut course = Self {
            about: file.about.clone(),
            contenders: named(&file.contender, |contender: &mut Contender, name| contender.name = name)?,
            moves: named(&file.r#move, |each: &mut Move, name| each.name = name)?,
            workloads: named(&file.workload, |each: &mut Workload, name| each.name = name)?,
            legs: Vec::new(),
        };
        for (who, contender) in course.contenders.iter().enumerate() {
            let moves = contender.cannot.keys().map(|name| ("cannot", name));
            let mut moves = moves.chain(contender.on.keys().map(|name| ("on", name)));
            if let Some((key, unknown)) = moves.find(|(_, name)| !file.r#move.contains_key(name.as_str())) {
                return Err(format!(
                    "`contender.{}.{key}`: there is no move `{unknown}`; there are: {}",
                    contender.name,
                    file.r#move.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
                ));
            }
            for (how, each) in course.moves.iter().enumerate() {
                if contender.cannot.contains_key(&each.name) {
                    continue;
                }
                for (load, workload) in course.workloads.iter().enumerate() {
                    let leg = leg(&file, [contender.into(), each.into(), workload.into()], contender)?;
                    course.legs.push(Leg { contender: who, r#move: how, workload: load, ..leg });
                }
            }
        }
        Ok(course)
    }
}

/// A protocol, a move or a workload: its name, its description, and its additions to a scenario.
type Layer<'a> = (&'a str, &'a str, &'a Table);

impl<'a> From<&'a Contender> for Layer<'a> {
    fn from(contender: &'a Contender) -> Self {
        (&contender.name, &contender.title, &contender.scenario)
    }
}

impl<'a> From<&'a Move> for Layer<'a> {
    fn from(each: &'a Move) -> Self {
        (&each.name, &each.about, &each.scenario)
    }
}

impl<'a> From<&'a Workload> for Layer<'a> {
    fn from(workload: &'a Workload) -> Self {
        (&workload.name, &workload.about, &workload.scenario)
    }
}

fn leg(file: &File, layers: [Layer<'_>; 3], contender: &Contender) -> Result<Leg, String> {
    let [(who, title, own), (how, moves, r#move), (load, _, workload)] = layers;
    let mut document = Table::new();
    document.insert("about".to_owned(), format!("{title}, {load}: {moves}").into());
    lay_over(&mut document, &file.same);
    lay_over(&mut document, r#move);
    for part in &contender.parts {
        let part = file.part.get(part).ok_or_else(|| {
            let all = file.part.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            format!("`contender.{who}.parts`: there is no part `{part}`; there are: {all}")
        })?;
        lay_over(&mut document, part);
    }
    // The roles of a protocol come before those of applications, so they handle events first.
    lay_over(&mut document, own);
    contender.on.get(how).into_iter().for_each(|more| lay_over(&mut document, more));
    lay_over(&mut document, workload);
    contender.transport.carry(&mut document);
    let mover = Mover::of(&document, file.at).ok_or_else(|| {
        format!("`contender.{who}`: no role has `moves`, and no host has `course`; add one of them")
    })?;
    let text = toml::to_string(&document).map_err(|error| error.to_string())?;
    let name = format!("compare/{who}/{how}/{load}");
    let hosts = document.get("host").and_then(Value::as_table).into_iter().flat_map(Table::keys);
    Ok(Leg { name, contender: 0, r#move: 0, workload: 0, text, hosts: hosts.cloned().collect(), mover })
}

fn named<T: serde::de::DeserializeOwned>(
    all: &Map<String, Value>,
    name: impl Fn(&mut T, String),
) -> Result<Vec<T>, String> {
    let read = |(key, value): (&String, &Value)| {
        let mut one: T = value.clone().try_into().map_err(|error| format!("{key}: {error}"))?;
        name(&mut one, key.clone());
        Ok(one)
    };
    all.iter().map(read).collect()
}

/// Merges a table into another: tables are merged recursively, lists are appended, and other values are replaced.
fn lay_over(base: &mut Table, more: &Table) {
    for (key, value) in more {
        match (base.get_mut(key), value) {
            (Some(Value::Table(base)), Value::Table(more)) => lay_over(base, more),
            (Some(Value::Array(base)), Value::Array(more)) => base.extend(more.iter().cloned()),
            _ => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use node::config::parse_span;
    use scenario::Scenario;

    #[test]
    fn every_leg_of_the_course_makes_a_plan() {
        let course = course().unwrap_or_else(|error| panic!("{error}"));
        for leg in &course.legs {
            let (file, text) = catalogue::find(&leg.name).unwrap_or_else(|error| panic!("{error}"));
            let plan = Scenario::plan(&file, &text, &[], 1).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert!(plan.world().is_ok(), "{}", leg.name);
        }
    }

    #[test]
    fn contenders_share_wires_cells_instants_and_traffic() {
        let course = course().unwrap();
        let shared = |leg: &Leg| {
            let document: Table = toml::from_str(&leg.text).unwrap();
            let of = |path: &str| {
                let (table, key) = path.split_once('.').unwrap();
                let each = document[table].as_table().unwrap().values();
                each.map(|entry| entry[key].clone()).collect::<Vec<_>>()
            };
            let roles = document["host"].as_table().unwrap().values().filter_map(|host| host.get("role"));
            let roles: Vec<&Value> = roles.filter_map(Value::as_array).flatten().collect();
            let has = |key: &str| roles.iter().filter_map(|role| role.get(key)).cloned().collect::<Vec<_>>();
            let mut instants: Vec<Value> = has("moves").iter().map(|moves| moves[0]["at"].clone()).collect();
            let mut radio = document["radio"].clone();
            if let Mover::Course { at, .. } = leg.mover {
                instants.push(format!("{}ms", at.as_millis()).into());
                // The points of a `course` define the time without reception, so the retune time is not compared.
                radio["retune"] = course.moves[leg.r#move].scenario["radio"]["retune"].clone();
            }
            let instants: Vec<_> = instants.iter().map(|at| parse_span(at.as_str().unwrap())).collect();
            // A variant may have a home network that no other protocol has.
            let is_variant = course.contenders[leg.contender].variant;
            let wires = [("wire.rate", 3), ("wire.delay", 3), ("cell.rate", 2)].map(|(key, shared)| {
                let most = if is_variant { shared } else { usize::MAX };
                of(key).into_iter().take(most).collect::<Vec<_>>()
            });
            let works = |role: &&&Value| role.get("moves").is_none();
            let traffic = ["duration", "start"].map(|key| {
                roles.iter().filter(works).filter_map(|role| role.get(key)).cloned().collect::<Vec<_>>()
            });
            (wires, instants, radio, traffic)
        };
        for leg in &course.legs {
            let same = |other: &&Leg| other.r#move == leg.r#move && other.workload == leg.workload;
            let first = course.legs.iter().find(same).unwrap();
            let (ours, theirs) = (shared(leg), shared(first));
            assert_eq!(ours, theirs, "{} and {}", leg.name, first.name);
            assert_eq!(ours.1.len(), 1, "one move: {}", leg.name);
        }
    }

    #[test]
    fn what_is_wrong_with_a_course_is_named() {
        let text = include_str!("../../../../scenarios/compare/course.toml");
        for (from, to, says) in [
            ("cannot.gap", "cannot.jump", "there is no move `jump`"),
            ("parts = [\"routed\"]", "parts = [\"rooted\"]", "there is no part `rooted`"),
            (
                "contender.sigma.on.gap",
                "contender.sigma.on.jump",
                "`contender.sigma.on`: there is no move `jump`",
            ),
            ("moves = [", "ways = [", "no role has `moves`"),
            ("[same]", "[shared]", "unknown field"),
        ] {
            assert!(text.contains(from), "{from}");
            let refusal = Course::read(&text.replace(from, to)).unwrap_err();
            assert!(refusal.contains(says), "{to}: {refusal}");
        }
    }

    #[test]
    fn a_contender_who_cannot_has_no_leg_there() {
        let course = course().unwrap();
        let all = course.contenders.len() * course.moves.len() * course.workloads.len();
        let cannot: usize = course.contenders.iter().map(|contender| contender.cannot.len()).sum();
        assert_eq!(course.legs.len(), all - cannot * course.workloads.len());
        assert!(cannot > 0 && scenario("compare/cellular-ip-semisoft/gap/bulk").is_none());
    }

    #[test]
    fn every_leg_is_valid_by_the_schema() {
        let options = jsonschema::draft202012::options().should_validate_formats(true);
        let validator = options.build(&scenario::schema()).unwrap();
        let legs = &course().unwrap().legs;
        assert!(legs.len() > 10);
        for leg in legs {
            let document = serde_json::to_value(toml::from_str::<Table>(&leg.text).unwrap()).unwrap();
            let problems: Vec<String> = validator
                .iter_errors(&document)
                .map(|error| format!("{} at {}", error, error.instance_path()))
                .collect();
            assert!(problems.is_empty(), "{}: {problems:#?}", leg.name);
        }
    }
}
