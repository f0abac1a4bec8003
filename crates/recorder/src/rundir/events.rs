//! `events.jsonl`: one record in each line, for readers and scripts.

use crate::journey::Journeys;
use crate::run::Outcome;
use serde_json::{Map, Value};
use std::io::{self, Write};
use trace::{Record, What};
use wire::{Iface, PacketId};

/// Fields that are left out because `packets.csv` and the capture have them.
const OF_PACKETS: [&str; 4] = ["kind", "src", "dst", "bytes"];

pub(super) fn write(outcome: &Outcome, journeys: &Journeys<'_>, mut to: impl Write) -> io::Result<()> {
    for record in &outcome.records {
        serde_json::to_writer(&mut to, &event(record, journeys))?;
        to.write_all(b"\n")?;
    }
    to.flush()
}

fn event(record: &Record, journeys: &Journeys<'_>) -> Value {
    let mut event = Map::new();
    event.insert("host".to_owned(), journeys.host(record.host).into());
    event.extend(fields(record));
    let iface = event.get("iface").and_then(Value::as_u64).map(|number| Iface(number as u16));
    if let Some(iface) = iface {
        let place = journeys.place(record.host, iface);
        let name = place.rsplit(':').next().unwrap_or_default();
        event.insert("iface".to_owned(), name.into());
    }
    let id = event.get("packet").and_then(Value::as_u64).map(PacketId);
    if let Some(number) = id.and_then(|id| journeys.number(id)) {
        event.insert("packet".to_owned(), number.into());
    }
    Value::Object(event)
}

/// Returns the fields of a record, except for the contents of packets.
fn fields(record: &Record) -> Map<String, Value> {
    // The two most frequent kinds are converted directly. The fields of the other kinds come from `Record::to_line`.
    let (name, iface, packet) = match &record.what {
        What::Received(iface, packet) => ("received", iface, packet),
        What::Sent(iface, packet) => ("sent", iface, packet),
        _ => {
            let line = serde_json::from_str(&record.to_line());
            let Ok(Value::Object(mut fields)) = line else { return Map::new() };
            fields.retain(|name, _| !OF_PACKETS.contains(&name.as_str()));
            return fields;
        }
    };
    let mut fields = Map::new();
    fields.insert("t".to_owned(), record.at.0.into());
    fields.insert("event".to_owned(), name.into());
    fields.insert("iface".to_owned(), iface.0.into());
    fields.insert("packet".to_owned(), packet.id.0.into());
    fields
}
