//! The kinds of roles in a scenario: a table with one row for each kind, and one file for each protocol.
//!
//! A row says what the kind means for its host ([`Kind`]). Its function fills in keys of the role from other parts of
//! the scenario, so that a user need not write them twice.

mod apps;
mod cellular_ip;
mod dhcp;
mod indirect_tcp;
mod mobile_ip;
mod sigma;

pub(crate) use cellular_ip::CellularIp;
pub(crate) use indirect_tcp::IndirectTcp;
pub(crate) use mobile_ip::MobileIp;
pub(crate) use sigma::Sigma;

use super::{Scenario, layout::Layout};
use crate::plan::HostPlan;
use schemars::{Schema, SchemaGenerator, json_schema};
use toml::{Table, Value};
use wire::Duration;

/// The meaning of a kind of role for its host.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    /// Fills in a role of this kind. Keys that the user wrote are kept, or converted to the form that the role reads.
    complete: fn(&Around<'_>, &mut Table) -> Result<(), String>,
    /// Whether the host moves. A host that moves has a radio ([`super::networks::AIR`]) that changes cells, and
    /// forwards no packets of other hosts.
    roams: bool,
    /// Whether the role ignores a move to its current base station. Roles of other kinds then retune the radio.
    ignores_own_cell: bool,
    /// Whether the role finds the host's routers itself. If so, the host gets no routes of [`super::networks`].
    finds_routers: bool,
    /// Required keys of the role that a user may leave out, because `complete` fills them in.
    fills: &'static [&'static str],
    /// Keys whose form in the scenario differs from the form that the role reads.
    writes: &'static [Written],
}

/// A key in the form of the scenario: its name, its description, and a function that returns its schema. The function
/// gets the schema of the role's own key with this name, if there is one.
type Written = (&'static str, &'static str, fn(&mut SchemaGenerator, Option<Schema>) -> Schema);

type Complete = fn(&Around<'_>, &mut Table) -> Result<(), String>;

impl Kind {
    /// Creates the row of a kind whose host does not move.
    const fn fixed(name: &'static str, complete: Complete, fills: &'static [&'static str]) -> Self {
        Self {
            name,
            complete,
            roams: false,
            ignores_own_cell: false,
            finds_routers: false,
            fills,
            writes: &[],
        }
    }

    /// Creates the row of a kind whose host moves.
    const fn mobile(name: &'static str, complete: Complete, fills: &'static [&'static str]) -> Self {
        Self { roams: true, ..Self::fixed(name, complete, fills) }
    }

    const fn writes(self, writes: &'static [Written]) -> Self {
        Self { writes, ..self }
    }

    const fn ignores_own_cell(self) -> Self {
        Self { ignores_own_cell: true, ..self }
    }

    const fn finds_routers(self) -> Self {
        Self { finds_routers: true, ..self }
    }
}

/// All kinds, in the order of `roles::RoleConfig::KINDS`.
const KINDS: &[Kind] = &[
    Kind::fixed("cellular-ip/gateway", cellular_ip::station, cellular_ip::STATION_FILLS)
        .writes(cellular_ip::STATION_WRITES),
    Kind::fixed("cellular-ip/station", cellular_ip::station, cellular_ip::STATION_FILLS)
        .writes(cellular_ip::STATION_WRITES),
    Kind::mobile(
        "cellular-ip/mobile",
        cellular_ip::mobile,
        &["address", "gateway", "interface", "stations", "session_key", "key_generation", "r_mh"],
    )
    .ignores_own_cell()
    .writes(&[START, cellular_ip::MOVES]),
    Kind::fixed("mobile-ip/home-agent", mobile_ip::home_agent, &["address", "interface", "mobile_nodes"]),
    Kind::fixed("mobile-ip/foreign-agent", mobile_ip::foreign_agent, &["address", "interface"]),
    Kind::mobile("mobile-ip/mobile-node", mobile_ip::mobile_node, &["address", "interface", "home_agent"])
        .finds_routers(),
    Kind::fixed("mobile-ip/correspondent", mobile_ip::correspondent, &["address", "home_agents"]),
    Kind::fixed("dhcp/client", dhcp::client, &["interface"]),
    Kind::fixed("dhcp/server", dhcp::server, &["address", "interface"]),
    Kind::fixed(
        "indirect-tcp/support-router",
        indirect_tcp::support_router,
        &["address", "hosts", "routers"],
    ),
    Kind::mobile("indirect-tcp/mobile-host", indirect_tcp::mobile_host, &["address", "key"]),
    Kind::mobile("sigma/mobile-node", sigma::mobile_node, &["networks", "radios", "location_manager"])
        .finds_routers()
        .writes(sigma::WRITES),
    Kind::fixed("sigma/correspondent", sigma::correspondent, &["address"]),
    Kind::fixed("sigma/location-manager", sigma::location_manager, &["address", "zone", "mobile_nodes"]),
    Kind::fixed("apps/constant-rate", apps::to, &[]),
    Kind::fixed("apps/sink", apps::at, &[]),
    Kind::fixed("apps/bulk-server", apps::at, &[]),
    Kind::fixed("apps/bulk-client", apps::to, &[]),
    Kind::fixed("apps/request-server", apps::at, &[]),
    Kind::fixed("apps/request-client", apps::to, &[]),
    Kind::mobile("apps/roam", apps::roam, &["interface", "places"]).writes(&[START, apps::MOVES]),
];

const START: Written = (
    "start",
    "The base station in whose cell the host begins [default: the first base station in the file].",
    |_, _| json_schema!({ "type": "string" }),
);

/// Returns the schema of the list of roles in a scenario.
pub(crate) fn schema(generator: &mut SchemaGenerator) -> Schema {
    let kinds: Vec<Schema> = KINDS.iter().filter_map(|kind| kind.schema(generator)).collect();
    json_schema!({ "type": "array", "items": { "oneOf": kinds } })
}

impl Kind {
    fn schema(&self, generator: &mut SchemaGenerator) -> Option<Schema> {
        let mut schema = roles::RoleConfig::schema(self.name, generator)?;
        if let Some(required) = schema.get_mut("required").and_then(|keys| keys.as_array_mut()) {
            required.retain(|key| !key.as_str().is_some_and(|key| self.fills.contains(&key)));
        }
        let keys = schema.get_mut("properties")?.as_object_mut()?;
        for (key, about, of) in self.writes {
            let mut written = of(generator, keys.get(*key).and_then(|own| own.clone().try_into().ok()));
            written.insert("description".to_owned(), (*about).into());
            keys.insert((*key).to_owned(), written.into());
        }
        Some(schema)
    }
}

/// Returns the schema of the key `moves`: a list of moves (`list`), or a rule. `more`: the further keys that a rule
/// must have, with their schemas.
fn timetable_schema(
    generator: &mut SchemaGenerator,
    list: Option<Schema>,
    more: &[(&str, Schema)],
) -> Schema {
    let span = node::config::schema::span(generator);
    let mut rule = json_schema!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "between": { "type": "array", "items": { "type": "string" }, "minItems": 1 },
            "every": span,
            "start": span,
            "stop": span,
        },
        "required": ["between", "every"],
    });
    for (key, schema) in more {
        if let Some(keys) = rule.get_mut("properties").and_then(|keys| keys.as_object_mut()) {
            keys.insert((*key).to_owned(), schema.clone().into());
        }
        if let Some(required) = rule.get_mut("required").and_then(|keys| keys.as_array_mut()) {
            required.push((*key).into());
        }
    }
    let mut list = list.unwrap_or_default();
    list.remove("default");
    json_schema!({ "anyOf": [list, rule] })
}

/// The context of a role: the scenario, its layout, and the role's host.
pub(crate) struct Around<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) layout: &'a Layout,
    pub(crate) host: &'a str,
}

/// Checks the secret keys and security associations in the tables of protocols, for example `[mobile-ip]`. An error has
/// the path of the key, and the problem.
pub(crate) fn check(scenario: &Scenario) -> Result<(), (String, String)> {
    if let Some(shared) = &scenario.cellular_ip {
        ::cellular_ip::config::check_network_key(&shared.network_key)
            .map_err(|error| (format!("cellular-ip.{}", error.key), error.problem))?;
    }
    if let Some(shared) = &scenario.mobile_ip {
        shared.check().map_err(|(key, problem)| (format!("mobile-ip.{key}"), problem))?;
    }
    let Some(shared) = &scenario.indirect_tcp else { return Ok(()) };
    shared.check().map_err(|(key, problem)| (format!("indirect-tcp.{key}"), problem))
}

/// Checks the complete configurations of several hosts together. An error has the path of the key, and the problem.
pub(crate) fn check_together(
    scenario: &Scenario,
    layout: &Layout,
    hosts: &[HostPlan],
) -> Result<(), (String, String)> {
    mobile_ip::check_together(scenario, hosts)?;
    cellular_ip::check_timers(layout, hosts)
}

/// Returns whether [`warnings`] can be about one of these roles.
pub(crate) fn has_warnings(roles: &[Table]) -> bool {
    let mut kinds = roles.iter().filter_map(|role| role.get("kind")?.as_str());
    kinds.any(|kind| kind.starts_with("mobile-ip/"))
}

/// Returns warnings about keys that have no effect together. Each has the path of its key, and the problem.
pub(crate) fn warnings(scenario: &Scenario, layout: &Layout, hosts: &[HostPlan]) -> Vec<(String, String)> {
    mobile_ip::warnings(scenario, layout, hosts)
}

/// Fills in one role. A role of an unknown kind does not change; the reader of roles refuses it.
pub(crate) fn complete(around: &Around<'_>, role: &mut Table) -> Result<(), String> {
    kind(role).map_or(Ok(()), |kind| (kind.complete)(around, role))
}

/// Returns whether a host with these roles moves between cells.
pub(crate) fn roams(roles: &[Table]) -> bool {
    roles.iter().filter_map(kind).any(|kind| kind.roams)
}

/// Returns whether a role ignores a move to its current base station.
pub(crate) fn ignores_own_cell(role: &Table) -> bool {
    kind(role).is_some_and(|kind| kind.ignores_own_cell)
}

/// Returns whether one of the roles finds the routers of its host, so that the host needs no routes.
pub(crate) fn finds_routers(roles: &[Table]) -> bool {
    roles.iter().filter_map(kind).any(|kind| kind.finds_routers)
}

fn kind(role: &Table) -> Option<&'static Kind> {
    let name = role.get("kind")?.as_str()?;
    KINDS.iter().find(|kind| kind.name == name)
}

/// Returns the names of the hosts with a role of the kind `kind`, in the order of the file.
fn hosts_of<'a>(scenario: &'a Scenario, kind: &'a str) -> impl Iterator<Item = &'a str> {
    scenario.host.iter().filter_map(move |(name, host)| {
        let mut roles = host.get("role").and_then(Value::as_array).into_iter().flatten();
        let has = roles.any(|role| role.get("kind").and_then(Value::as_str) == Some(kind));
        has.then_some(name.as_str())
    })
}

/// Replaces a rule in the key `moves` by a list of moves. A rule is for example `{ between = ["b2", "b3"], every =
/// "2s", start = "1s", stop = "20s" }`. Other keys of the rule are copied to every move.
fn timetable(around: &Around<'_>, role: &mut Table) -> Result<(), String> {
    write_out(around.scenario.duration, role)
}

/// Replaces a rule in the key `moves` by a list of moves until `duration`, the end of the run. Does nothing if
/// `moves` is not a rule.
pub(crate) fn write_out(duration: Duration, role: &mut Table) -> Result<(), String> {
    let Some(rule) = role.get("moves").and_then(Value::as_table) else { return Ok(()) };
    let span = |key: &str| -> Result<Option<Duration>, String> {
        let Some(value) = rule.get(key) else { return Ok(None) };
        let span = value.as_str().and_then(node::config::parse_span);
        span.map(Some).ok_or_else(|| format!("`moves.{key}`: must be a time, for example `2s`"))
    };
    let places: Vec<&Value> = rule.get("between").and_then(Value::as_array).into_iter().flatten().collect();
    if places.is_empty() {
        return Err("`moves.between`: must be a list of at least one station, in the order of the moves, for example `[\"b2\", \"b3\"]`".to_owned());
    }
    let every = span("every")?
        .filter(|every| !every.is_zero())
        .ok_or("`moves.every`: give the time between two moves, above 0, for example `2s`")?;
    let stop = span("stop")?.unwrap_or(duration).min(duration);
    let (mut at, mut moves) = (span("start")?.unwrap_or(every), Vec::new());
    for to in places.into_iter().cycle() {
        if at >= stop {
            break;
        }
        let mut step = rule.clone();
        step.retain(|key, _| !["between", "every", "start", "stop"].contains(&key));
        step.insert("at".to_owned(), format!("{}ns", at.as_nanos()).into());
        step.insert("to".to_owned(), to.clone());
        moves.push(Value::Table(step));
        at += every;
    }
    role.insert("moves".to_owned(), moves.into());
    Ok(())
}

/// Swaps the first entry with the entry whose name is `start`. Fails if there is no such entry.
fn begin_with(all: &mut [Value], start: Option<&str>) -> Result<(), String> {
    let Some(start) = start else { return Ok(()) };
    let named = |value: &Value| value.get("name").and_then(Value::as_str) == Some(start);
    let at = all.iter().position(named).ok_or_else(|| {
        let known: Vec<&str> =
            all.iter().filter_map(|value| value.get("name").and_then(Value::as_str)).collect();
        let meant = super::did_you_mean(start, known.iter().copied());
        format!("`start`: there is no base station `{start}`{meant}; there are: {}", known.join(", "))
    })?;
    all.swap(0, at);
    Ok(())
}

fn default(role: &mut Table, key: &str, value: impl Into<Value>) {
    if !role.contains_key(key) {
        role.insert(key.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_role_has_a_row() {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        assert_eq!(names, roles::RoleConfig::KINDS);
    }
}
