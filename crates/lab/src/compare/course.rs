//! One description of where and when a host moves, from which each contender's scenario is made.

use crate::ScenarioError;
use crate::scenario::roles_of;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use toml::map::Map;
use toml::{Table, Value};
use wire::Duration;

/// The course, as its file has it. Contenders stand in the order of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    about: String,
    same: Table,
    r#move: Map<String, Value>,
    workload: Map<String, Value>,
    part: BTreeMap<String, Table>,
    contender: Map<String, Value>,
}

/// What is compared.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Contender {
    /// Its name in commands and files.
    #[serde(skip)]
    pub name: String,
    /// Its name in tables.
    pub title: String,
    /// How it stands in this course.
    pub about: String,
    /// Why it never recovers, if it is here to show that.
    pub never: Option<String>,
    /// Moves that it cannot make, and why.
    #[serde(default)]
    pub cannot: BTreeMap<String, String>,
    parts: Vec<String>,
    /// What carries the workload's bytes.
    #[serde(default)]
    transport: Carriers,
    #[serde(flatten)]
    scenario: Table,
}

/// What carries a workload's bytes, where it is not the hosts' own TCP.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Carriers {
    /// At the host that moves.
    client: Option<String>,
    /// At its correspondent.
    server: Option<String>,
}

impl Carriers {
    /// Writes them into the workload's roles.
    fn carry(&self, document: &mut Table) {
        for role in roles_of(document) {
            let kind = role.get("kind").and_then(Value::as_str).unwrap_or_default();
            let carrier = match kind {
                "apps/bulk-client" | "apps/request-client" => &self.client,
                "apps/bulk-server" | "apps/request-server" => &self.server,
                _ => continue,
            };
            if let Some(carrier) = carrier {
                role.insert("transport".to_owned(), carrier.clone().into());
            }
        }
    }
}

/// A way to move.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Move {
    /// Its name.
    #[serde(skip)]
    pub name: String,
    /// What it is, in a line.
    pub about: String,
    /// How long one watches, from its instant on.
    #[serde(deserialize_with = "node::config::span")]
    pub window: Duration,
    #[serde(flatten)]
    scenario: Table,
}

/// What the applications do meanwhile.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Workload {
    /// Its name.
    #[serde(skip)]
    pub name: String,
    /// What it is, in a line.
    pub about: String,
    #[serde(flatten)]
    scenario: Table,
}

/// One scenario of the course.
#[derive(Clone, PartialEq, Debug)]
pub struct Leg {
    /// `compare/CONTENDER/MOVE/WORKLOAD`.
    pub name: String,
    /// Who.
    pub contender: usize,
    /// How.
    pub r#move: usize,
    /// Under what.
    pub workload: usize,
    /// The scenario file.
    pub text: String,
    /// The role that has the timetable, as settings name it.
    pub mover: String,
}

/// All there is to compare.
#[derive(Clone, PartialEq, Debug)]
pub struct Course {
    /// What it is about, in a line.
    pub about: String,
    /// Who.
    pub contenders: Vec<Contender>,
    /// The moves.
    pub moves: Vec<Move>,
    /// The workloads.
    pub workloads: Vec<Workload>,
    /// The scenarios: every workload and move of every contender that can make it.
    pub legs: Vec<Leg>,
}

static BUILT_IN: LazyLock<Result<Course, String>> =
    LazyLock::new(|| Course::read(include_str!("../../../../scenarios/compare/course.toml")));

/// What the scenarios of the course are called in lists.
pub const PATTERN: &str = "compare/CONTENDER/MOVE/WORKLOAD";

/// The course that is compiled in.
pub fn course() -> Result<&'static Course, ScenarioError> {
    BUILT_IN.as_ref().map_err(|problem| ScenarioError::new("compare/course (built in)", problem.clone()))
}

/// The scenario of the course that has this name.
pub(crate) fn scenario(name: &str) -> Option<&'static str> {
    let course = course().ok()?;
    course.legs.iter().find(|leg| leg.name == name).map(|leg| leg.text.as_str())
}

impl Course {
    /// Reads a course; an error names what is wrong.
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
            let mut moves = contender.cannot.keys();
            if let Some(unknown) = moves.find(|name| !file.r#move.contains_key(name.as_str())) {
                return Err(format!("contender.{}.cannot: there is no move `{unknown}`", contender.name));
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

/// A name, what it says of itself, and what it adds to a scenario.
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
        let part =
            file.part.get(part).ok_or_else(|| format!("contender.{who}: there is no part `{part}`"))?;
        lay_over(&mut document, part);
    }
    // A protocol's roles are asked before those of applications.
    lay_over(&mut document, own);
    lay_over(&mut document, workload);
    contender.transport.carry(&mut document);
    let mover = mover(&document).ok_or_else(|| format!("contender.{who}: no role has `moves`"))?;
    let text = toml::to_string(&document).map_err(|error| error.to_string())?;
    let name = format!("compare/{who}/{how}/{load}");
    Ok(Leg { name, contender: 0, r#move: 0, workload: 0, text, mover })
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

/// Fills a table up from another: tables are filled up in turn, lists grow, and what else is there already is replaced.
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

/// The role with a timetable, by the name that settings reach it by.
fn mover(document: &Table) -> Option<String> {
    let hosts = document.get("host")?.as_table()?;
    let mut roles = hosts.values().filter_map(|host| host.get("role")?.as_array()).flatten();
    let role = roles.find(|role| role.get("moves").is_some())?;
    role.get("kind")?.as_str()?.rsplit('/').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    #[test]
    fn every_leg_of_the_course_makes_a_plan() {
        let course = course().unwrap_or_else(|error| panic!("{error}"));
        for leg in &course.legs {
            let (file, text) = Scenario::find(&leg.name).unwrap_or_else(|error| panic!("{error}"));
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
            let instants: Vec<Value> = has("moves").iter().map(|moves| moves[0]["at"].clone()).collect();
            let wires = ["wire.rate", "wire.delay", "cell.rate"].map(of);
            (wires, instants, document["radio"].clone(), [has("duration"), has("start")].map(|all| all.len()))
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
}
