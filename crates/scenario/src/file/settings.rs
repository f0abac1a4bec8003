//! `--set key=value` changes one value of a scenario. `--set key=@FILE` reads the value from a file, which may be
//! `/dev/stdin`.

use super::nearest::did_you_mean;
use super::secret::{self, has_keys, is_secret};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use toml::{Table, Value};

/// A change of a scenario: a path and a value. The path `ROLE.KEY` sets a key of every role with the name `ROLE`. The
/// path `ROLE.LIST.KEY` sets a key of every table of a list in such roles. Any other path is the path of a value in the
/// file. The value is parsed as TOML; if it is not TOML, it is a string.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    path: Vec<String>,
    value: Value,
    /// Whether the value was read from a file.
    is_from_file: bool,
}

/// Returns the text of a scenario in which its secret keys, and those of `settings`, are replaced by other
/// hexadecimal digits.
pub fn redacted(text: &str, settings: &[Setting]) -> String {
    secret::redacted(text, settings.iter().flat_map(Setting::keys))
}

/// Returns the secret keys of a scenario and of settings that have at least 8 bytes, the longest first.
pub(super) fn keys_of(text: &str, settings: &[Setting]) -> Vec<String> {
    secret::keys_of(text, settings.iter().flat_map(Setting::keys))
}

/// Returns the first two settings of the same key; `None` if each key is set once. Only equal paths are found: see [`overwritten`].
pub fn repeated(settings: &[Setting]) -> Option<[&Setting; 2]> {
    settings.iter().enumerate().find_map(|(index, later)| {
        let first = settings.iter().take(index).find(|earlier| earlier.path == later.path)?;
        Some([first, later])
    })
}

/// Returns the first setting of the scenario `text` whose values later settings all replace, with the last of these; `None` if there
/// is none. The same value may have several paths: `mobile.lifetime` and `mobile-node.lifetime`, or a key of a table and the table. A
/// key may be set for all hosts, and then again for one of them.
pub fn overwritten<'a>(text: &str, settings: &'a [Setting]) -> Option<[&'a Setting; 2]> {
    let mut document: Table = toml::from_str(text).ok()?;
    // A setting that cannot be applied is refused later.
    let changed: Vec<Vec<String>> =
        settings.iter().map(|setting| setting.apply(&mut document).unwrap_or_default()).collect();
    settings.iter().zip(&changed).enumerate().find_map(|(index, (first, paths))| {
        let later = settings.iter().zip(&changed).skip(index + 1);
        let later: Vec<_> =
            later.filter(|(later, _)| first.is_of_one_host() || !later.is_of_one_host()).collect();
        let replaces = |new: &[String], path: &str| new.iter().any(|outer| contains(outer, path));
        let is_replaced = |path: &String| later.iter().any(|(_, new)| replaces(new, path));
        let one = paths.first().filter(|_| paths.iter().all(is_replaced))?;
        let (last, _) = later.iter().rev().find(|(_, new)| replaces(new, one))?;
        Some([first, last])
    })
}

/// Returns whether the value at the path `inner` is that at `outer`, or a part of it.
fn contains(outer: &str, inner: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns the setting of a grid with the values of both settings, as text; `None` if one of the values cannot be written in a grid, is
/// a secret key, or is in both settings.
pub fn as_grid([first, later]: [&Setting; 2]) -> Option<String> {
    let [(path, one), (_, other)] = [first.parts(), later.parts()];
    let text = format!("{path}={one}|{other}");
    let wanted = [first.alternatives(), later.alternatives()].concat();
    let is_twice =
        |(index, setting): (usize, &Setting)| wanted.iter().skip(index + 1).any(|next| next == setting);
    let is_distinct = !wanted.iter().enumerate().any(is_twice);
    let found = text.parse::<Setting>().ok()?.alternatives();
    let is_same = found
        .iter()
        .map(|found| (&found.path, &found.value))
        .eq(wanted.iter().map(|wanted| (&wanted.path, &wanted.value)));
    (is_distinct && is_same).then_some(text)
}

/// Returns whether a setting for `name` applies to a kind of role. The name `station` applies to base stations and to
/// gateways of Cellular IP. The name `mobile` applies to mobile hosts of Cellular IP and to mobile nodes of Mobile IP.
fn answers_to(kind: &str, name: &str) -> bool {
    kind.rsplit('/').next() == Some(name)
        || matches!((kind, name), ("cellular-ip/gateway", "station") | ("mobile-ip/mobile-node", "mobile"))
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The error must not show the value, which may be a secret.
        let shown = text.split_inclusive('=').next().unwrap_or_default();
        let bad = || {
            format!("`{shown}`: must be KEY=VALUE, for example station.delay_device=0 or radio.retune=5ms")
        };
        let (path, value) = text.split_once('=').ok_or_else(bad)?;
        let path: Vec<String> = path.split('.').map(|step| step.trim().to_owned()).collect();
        if path.iter().any(String::is_empty) {
            return Err(bad());
        }
        // Every user of the machine can read a command line, so a value, for example a key, can be in a file.
        let read = |file: &str| {
            let read = std::fs::read_to_string(file).map_err(|error| format!("`{text}`: {file}: {error}"));
            read.map(|value| value.trim().to_owned())
        };
        let file = value.strip_prefix('@');
        let value = &file.map_or_else(|| Ok(value.to_owned()), read)?;
        // A value that is not TOML is a string, so that `5ms` needs no second pair of quotes.
        let parsed =
            format!("value = {value}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
        let value = parsed.unwrap_or_else(|| Value::String(value.to_owned()));
        Ok(Self { path, value, is_from_file: file.is_some() })
    }
}

/// Writes the setting as `PATH=VALUE`, in which secret keys are replaced.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path();
        write!(f, "{path}={}", secret::without_keys(&path, &self.value))
    }
}

impl Setting {
    /// Creates a setting of the value at `path`, whose steps are separated by dots.
    pub fn new(path: &str, value: impl Into<Value>) -> Self {
        let path = path.split('.').map(str::to_owned).collect();
        Self { path, value: value.into(), is_from_file: false }
    }

    /// Returns the path and the value of the setting as text. Secret keys are replaced.
    pub fn parts(&self) -> (String, String) {
        let path = self.path();
        let value = secret::without_keys(&path, &self.value);
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (path, value)
    }

    /// Returns the secret keys in the value of the setting.
    fn keys(&self) -> Vec<String> {
        secret::keys_in(&self.path(), &self.value)
    }

    /// Returns whether the setting shows a secret key on the command line, which every user of the machine can read.
    /// `false` if the value comes from a file.
    pub fn shows_key(&self) -> bool {
        let is_key = self.path.last().is_some_and(|name| is_secret(name)) && self.value.is_str();
        !self.is_from_file && (is_key || has_keys(&format!("value = {}", self.value)))
    }

    /// Returns the path of the setting as in `--set`, with dots between its steps.
    pub fn path(&self) -> String {
        self.path.join(".")
    }

    /// Returns whether the setting names one host, for example `host.mobile.role[0].lifetime`.
    fn is_of_one_host(&self) -> bool {
        ["host", "tree"].iter().any(|table| self.is_below(table))
    }

    /// Returns whether the first step of the setting's path is `key`.
    pub(crate) fn is_below(&self, key: &str) -> bool {
        self.path.first().is_some_and(|first| first == key)
    }

    /// Returns the settings `KEY=A`, `KEY=B` and `KEY=C` for the setting `KEY=A|B|C`. Returns the setting itself if
    /// its value has no `|`, or has white space.
    pub fn alternatives(&self) -> Vec<Self> {
        let text =
            self.value.as_str().filter(|text| text.contains('|') && !text.contains(char::is_whitespace));
        let Some(text) = text else { return vec![self.clone()] };
        let path = self.path.join(".");
        text.split('|').filter_map(|value| format!("{path}={value}").parse().ok()).collect()
    }

    /// Applies the setting to a scenario's document. Returns the paths of the changed values. Fails if the setting
    /// applies to no role, and its path leads to no table.
    pub(crate) fn apply(&self, document: &mut Table) -> Result<Vec<String>, String> {
        let (first, rest) = self
            .path
            .split_first()
            .ok_or("a setting has no key; write KEY=VALUE, for example radio.retune=5ms")?;
        let (mut changed, mut is_role) = (Vec::new(), false);
        for (path, role) in roles_at(document) {
            if role.get("kind").and_then(Value::as_str).is_some_and(|kind| answers_to(kind, first)) {
                is_role = true;
                changed.extend(self.set_in(role, rest).into_iter().map(|key| format!("{path}.{key}")));
            }
        }
        if !changed.is_empty() {
            return Ok(changed);
        }
        let applied = self.apply_to_path(document).map(|()| vec![self.path()]);
        match rest {
            // The roles have this name, but no such list, so the message of a path would not fit.
            [list, key] if is_role => applied.map_err(|_| {
                format!(
                    "`{}`: no role `{first}` has a list of tables `{list}`; set the whole value: {first}.{list}={{ {key} = ... }}",
                    self.path()
                )
            }),
            _ => applied,
        }
    }

    /// Sets a key of a role (`path` has one step), or a key of every table in a list of the role (`path` has two
    /// steps). Returns the keys that were set.
    fn set_in(&self, role: &mut Table, path: &[String]) -> Vec<String> {
        match path {
            [key] => {
                role.insert(key.clone(), self.value.clone());
                vec![key.clone()]
            }
            [list, key] => {
                let entries = role.get_mut(list).and_then(Value::as_array_mut);
                let tables = entries.into_iter().flatten().enumerate();
                let tables = tables.filter_map(|(index, entry)| Some((index, entry.as_table_mut()?)));
                tables
                    .map(|(index, entry)| {
                        entry.insert(key.clone(), self.value.clone());
                        format!("{list}[{index}].{key}")
                    })
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    fn apply_to_path(&self, document: &mut Table) -> Result<(), String> {
        let name = self.path.join(".");
        let (last, parents) = self
            .path
            .split_last()
            .ok_or("a setting has no key; write KEY=VALUE, for example radio.retune=5ms")?;
        let mut known = names_of(document);
        let mut table = document;
        for (depth, step) in parents.iter().enumerate() {
            if depth > 0 {
                let inner = table.iter().filter(|(_, value)| is_inner(value)).map(|(name, _)| name.as_str());
                let optional = optional(parents.get(..depth).unwrap_or_default());
                let all: BTreeSet<&str> = inner.chain(optional.iter().copied()).collect();
                known = all.into_iter().map(str::to_owned).collect();
            }
            // A step such as `program[0]` is an element of a list, as in messages.
            let (key, place) = match step.strip_suffix(']').and_then(|step| step.split_once('[')) {
                Some((key, place)) => (key, place.parse::<usize>().ok()),
                None => (step.as_str(), None),
            };
            if place.is_none() && optional(parents.get(..depth).unwrap_or_default()).contains(&key) {
                table.entry(key).or_insert_with(|| Value::Table(Table::new()));
            }
            let length = table.get(key).and_then(Value::as_array).map(Vec::len).filter(|length| *length > 0);
            let inner = match (table.get_mut(key), place) {
                (Some(Value::Array(list)), Some(place)) => list.get_mut(place),
                (value, None) => value,
                _ => None,
            };
            table = match inner {
                Some(Value::Table(table)) => table,
                Some(Value::Array(list)) => {
                    let last = list.len().saturating_sub(1);
                    return Err(format!("`{name}`: `{key}` is a list; write {key}[0] to {key}[{last}]"));
                }
                None if length.is_some() => {
                    let length = length.unwrap_or_default();
                    let last = if length > 1 { format!(" to {key}[{}]", length - 1) } else { String::new() };
                    return Err(format!("`{name}`: there is no `{step}`; there are: {key}[0]{last}"));
                }
                _ => {
                    let what = if depth > 0 { "table" } else { "role and no table" };
                    let nearest = did_you_mean(step, known.iter().map(String::as_str));
                    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                    return Err(format!(
                        "`{name}`: there is no {what} `{step}`{nearest}; there are: {known}"
                    ));
                }
            };
        }
        table.insert(last.clone(), self.value.clone());
        Ok(())
    }
}

/// Returns the tables of all roles in a scenario's document: of all hosts, and of the root and the hosts of a tree.
pub fn roles_of(document: &mut Table) -> impl Iterator<Item = &mut Table> {
    roles_at(document).map(|(_, role)| role)
}

/// Returns the path and the table of each role in a scenario's document.
fn roles_at(document: &mut Table) -> impl Iterator<Item = (String, &mut Table)> {
    // In `[tree]`, only the tables `root` and `host` have roles.
    let tables = document.iter_mut().filter(|(table, _)| ["host", "tree"].contains(&table.as_str()));
    let hosts = tables.flat_map(|(table, hosts)| {
        let hosts = hosts.as_table_mut().into_iter().flatten();
        hosts.map(move |(name, host)| (format!("{table}.{name}"), host))
    });
    let lists = hosts.filter_map(|(name, host)| Some((name, host.get_mut("role")?.as_array_mut()?)));
    lists.flat_map(|(name, roles)| {
        let roles = roles.iter_mut().enumerate();
        roles.filter_map(move |(index, role)| Some((format!("{name}.role[{index}]"), role.as_table_mut()?)))
    })
}

/// Returns the tables that the table at `path` may leave out, so that a setting of one of their keys adds them.
fn optional(path: &[String]) -> &'static [&'static str] {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path[..] {
        ["host", _] => &["clock", "tcp"],
        ["cell", _] => &["beacon", "burst", "contention"],
        ["wire", _] => &["burst"],
        ["segment", _] => &["burst", "contention"],
        ["chain", _] => &["contention"],
        ["radio"] => &["scan"],
        ["mobile-ip"] => &["buffer"],
        _ => &[],
    }
}

fn is_inner(value: &Value) -> bool {
    value.is_table() || value.is_array()
}

fn names_of(document: &mut Table) -> Vec<String> {
    let tables = document.iter().filter(|(_, value)| value.is_table()).map(|(name, _)| name.clone());
    let mut names: Vec<String> = tables.collect();
    let kinds =
        roles_of(document).filter_map(|role| role.get("kind").and_then(Value::as_str).map(str::to_owned));
    names.extend(kinds.filter_map(|kind| kind.rsplit('/').next().map(str::to_owned)));
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_there_is_instead_is_told_of_the_table_that_has_no_such_name() {
        let text = "[wire.left]\ndelay = '1ms'\n[wire.right]\ndelay = '1ms'\n[[host.mobile.role]]\nkind = 'apps/sink'\n";
        let mut document: Table = text.parse().unwrap();
        let mut refusal =
            |setting: &str| setting.parse::<Setting>().unwrap().apply(&mut document).unwrap_err();
        assert_eq!(
            refusal("wire.leftt.delay=5ms"),
            "`wire.leftt.delay`: there is no table `leftt`, did you mean `left`?; there are: left, right"
        );
        assert_eq!(
            refusal("wire.left.bust.enter=0.1"),
            "`wire.left.bust.enter`: there is no table `bust`, did you mean `burst`?; there are: burst"
        );
        assert_eq!(
            refusal("wir.left.delay=5ms"),
            "`wir.left.delay`: there is no role and no table `wir`, did you mean `wire`?; there are: host, sink, wire"
        );
        assert_eq!(
            refusal("sink.sctp.rto_min=1s"),
            "`sink.sctp.rto_min`: no role `sink` has a list of tables `sctp`; set the whole value: sink.sctp={ rto_min = ... }"
        );
    }

    #[test]
    fn a_setting_adds_a_table_that_a_scenario_may_leave_out() {
        let mut document: Table = "[host.mobile]\naddress = '10.1.0.7'\n[cell.1]\n".parse().unwrap();
        for setting in
            ["host.mobile.clock.offset=+5s", "host.mobile.clock.drift=20", "cell.1.burst.enter=0.1"]
        {
            setting.parse::<Setting>().unwrap().apply(&mut document).unwrap();
        }
        let clock = &document["host"]["mobile"]["clock"];
        assert_eq!((clock["offset"].as_str(), clock["drift"].as_integer()), (Some("+5s"), Some(20)));
        assert_eq!(document["cell"]["1"]["burst"]["enter"].as_float(), Some(0.1));
        let refused = "host.mobile.clok.offset=+5s".parse::<Setting>().unwrap().apply(&mut document);
        assert!(refused.unwrap_err().starts_with("`host.mobile.clok.offset`: there is no table `clok`"));
    }

    #[test]
    fn a_value_may_be_in_a_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "000102030405060708090a0b0c0d0e0f").unwrap();
        let path = file.path().display();
        let setting: Setting = format!("cellular-ip.network_key=@{path}").parse().unwrap();
        assert_eq!(setting.keys().first().map(String::as_str), Some("000102030405060708090a0b0c0d0e0f"));
        assert!(!setting.parts().1.contains("0001"), "what is printed has no key");
        let refused = format!("mobile.key=@{path}-that-is-not-there").parse::<Setting>().unwrap_err();
        assert!(refused.contains("that-is-not-there: No such file"), "{refused}");
        assert!(!setting.shows_key(), "it is on no command line");
    }

    #[test]
    fn a_key_that_is_set_twice_is_found() {
        let all = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<Setting>>();
        let twice = all(&["mobile.movement=lcs", "radio.retune=5ms", "mobile.movement=ecs|pm"]);
        assert_eq!(
            repeated(&twice).map(|pair| pair.map(ToString::to_string)),
            Some(["mobile.movement=\"lcs\"".to_owned(), "mobile.movement=\"ecs|pm\"".to_owned()])
        );
        let once = all(&["mobile.movement=lcs", "host.mobile.role[0].movement=ecs", "mobile.lifetime=9s"]);
        assert_eq!(repeated(&once), None, "of all hosts, and of one");
    }

    #[test]
    fn a_setting_that_later_ones_replace_is_found() {
        let (_, text) = crate::Scenario::find("mobile-ip/smooth-handoff").unwrap();
        let found = |texts: &[&str]| {
            let all: Vec<Setting> = texts.iter().map(|text| text.parse().unwrap()).collect();
            overwritten(&text, &all).map(|pair| pair.map(Setting::path).join(" "))
        };
        let buffer = "mobile-ip.buffer={ packets = 4 }";
        let one = "host.mobile.role[0].lifetime=60s";
        for (settings, expected) in [
            (
                &["mobile.lifetime=9s", "mobile-node.lifetime=60s"][..],
                Some("mobile.lifetime mobile-node.lifetime"),
            ),
            (&["mobile-ip.buffer.packets=8", buffer], Some("mobile-ip.buffer.packets mobile-ip.buffer")),
            (&[one, "mobile.lifetime=9s"], Some("host.mobile.role[0].lifetime mobile.lifetime")),
            (&[one, "host.mobile.role=[]"], Some("host.mobile.role[0].lifetime host.mobile.role")),
            (&[buffer, "mobile-ip.buffer.packets=8"], None),
            (&["mobile.lifetime=9s", one], None),
            (&["mobile.lifetime=9s", "mobile-node.lifetimes=60s", "mobile.nothing.is=1"], None),
        ] {
            assert_eq!(found(settings).as_deref(), expected, "{settings:?}");
        }
    }

    /// The text of a grid is accepted, and has the values of both settings.
    #[test]
    fn two_values_are_a_grid_if_they_can_be_written_as_one() {
        let grid = |one: &str, other: &str| {
            let [one, other] = [one, other].map(|text| text.parse().unwrap());
            as_grid([&one, &other])
        };
        assert_eq!(
            grid("radio.retune=1ms", "radio.retune=2ms|3ms"),
            Some("radio.retune=1ms|2ms|3ms".to_owned())
        );
        assert_eq!(grid("cell.1.loss=0.1", "cell.1.loss=0.2"), Some("cell.1.loss=0.1|0.2".to_owned()));
        assert_eq!(grid("radio.retune=1ms", "radio.retune=1ms"), None, "twice");
        assert_eq!(grid("radio={ retune = \"1ms\" }", "radio={ retune = \"2ms\" }"), None, "tables");
        assert_eq!(grid("mobile.key=00010203", "mobile.key=00010204"), None, "secret keys");
    }

    #[test]
    fn a_key_in_the_setting_itself_is_seen() {
        let shows = |text: &str| text.parse::<Setting>().unwrap().shows_key();
        assert!(shows("cellular-ip.network_key=000102030405060708090a0b0c0d0e0f"));
        assert!(shows("mobile.key=00|01"));
        assert!(shows("host.home.role[0]={ kind = \"x\", mobile_nodes = [{ key = \"00\" }] }"));
        assert!(!shows("radio.retune=5ms") && !shows("cellular-ip.key_generation=1"));
    }
}
