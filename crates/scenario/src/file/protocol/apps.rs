//! Completes the roles of workloads, and the role `apps/roam`, which moves a host between cells.

use super::{Around, Written, begin_with, default, timetable};
use crate::file::Scenario;
use crate::file::event::known_cell;
use crate::file::layout::Layout;
use crate::file::networks::AIR;
use toml::{Table, Value};

/// The key `moves`: the times of moves, and the base stations to which the host moves.
pub(super) const MOVES: Written =
    ("moves", TIMETABLE, |generator, list| super::timetable_schema(generator, list, &[]));

/// The description of the key `moves` in the schema.
pub(super) const TIMETABLE: &str = "The moves: a list, or a rule. The rule: the host moves to the base stations in `between` \
                                    in turn, at the interval `every`, from `start` [default: the value of `every`] to `stop` [default: the end of the run].";

/// Fills in a role with a peer in the key `to`: replaces the name of the peer by its address.
#[expect(clippy::unnecessary_wraps, reason = "a row of the table of kinds")]
pub(super) fn to(around: &Around<'_>, role: &mut Table) -> Result<(), String> {
    name_to_address(around.layout, role, "to");
    Ok(())
}

/// Fills in a role that listens on the address in the key `at`: replaces the name of the host by its address.
#[expect(clippy::unnecessary_wraps, reason = "a row of the table of kinds")]
pub(super) fn at(around: &Around<'_>, role: &mut Table) -> Result<(), String> {
    name_to_address(around.layout, role, "at");
    Ok(())
}

/// Fills in a role that moves a host. The key `places` gets all cells, each with the name of its base station.
pub(super) fn roam(around: &Around<'_>, role: &mut Table) -> Result<(), String> {
    timetable(around, role)?;
    let start = role.remove("start").and_then(|value| value.as_str().map(str::to_owned));
    let mut places: Vec<Value> = around
        .layout
        .stations()
        .map(|station| {
            let keep = |key: &str| (key.to_owned(), station.get(key).cloned().unwrap_or(Value::from(0)));
            Value::Table(Table::from_iter(["name", "cell"].map(keep)))
        })
        .collect();
    begin_with(&mut places, start.as_deref())?;
    check_places(around.scenario, role)?;
    default(role, "places", places);
    default(role, "interface", AIR);
    Ok(())
}

/// Checks that the cells of the key `places` are cells of the scenario. Other values are left to the reader of roles.
fn check_places(scenario: &Scenario, role: &Table) -> Result<(), String> {
    let places = role.get("places").and_then(Value::as_array).into_iter().flatten();
    let cells = places.filter_map(|place| u16::try_from(place.get("cell")?.as_integer()?).ok());
    let mut checked = cells.map(|cell| known_cell(scenario, cell));
    checked.try_for_each(|known| known.map_err(|problem| format!("`places`: {problem}")))
}

/// Replaces a value such as `mobile:9000` of `key` by the address of the host `mobile` and the same port.
fn name_to_address(layout: &Layout, role: &mut Table, key: &str) {
    let Some((name, port)) = role.get(key).and_then(Value::as_str).and_then(|text| text.rsplit_once(':'))
    else {
        return;
    };
    if let Some(address) = layout.address(name) {
        role.insert(key.to_owned(), format!("{address}:{port}").into());
    }
}
