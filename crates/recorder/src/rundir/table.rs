//! `packets.csv`: a row for each packet and hop, with the packet's fate.

use super::Options;
use crate::decode::{Numbers, describe, protocol};
use crate::journey::{Fate, Journey, Journeys};
use crate::run::Outcome;
use draw::Csv;
use std::collections::BTreeSet;
use std::io::{self, Write};
use wire::ipv4::Header;

/// A table without all packets has this number of packets before the begin of each handoff, and this number after it.
const AROUND: usize = 100;

const COLUMNS: [&str; 13] = [
    "packet",
    "id",
    "time_s",
    "host",
    "interface",
    "direction",
    "src",
    "dst",
    "protocol",
    "length",
    "what",
    "next",
    "fate",
];

pub(super) fn write(
    outcome: &Outcome,
    journeys: &Journeys<'_>,
    options: &Options,
    mut to: impl Write,
) -> io::Result<()> {
    let chosen = (journeys.hops().len() > options.hops).then(|| choose(outcome, journeys));
    let numbers = outcome.plan.numbers();
    to.write_all(row(COLUMNS).as_bytes())?;
    for (index, hop) in journeys.hops().iter().enumerate() {
        if chosen.as_ref().is_none_or(|chosen| chosen.contains(&hop.packet)) {
            to.write_all(hop_row(journeys, index, &numbers).unwrap_or_default().as_bytes())?;
        }
    }
    to.flush()
}

fn row<S: AsRef<str>>(fields: impl IntoIterator<Item = S>) -> String {
    let mut csv = Csv::default();
    csv.row(fields);
    csv.finish()
}

fn hop_row(journeys: &Journeys<'_>, index: usize, numbers: &Numbers) -> Option<String> {
    let hop = journeys.hops().get(index)?;
    let seen = journeys.seen(hop)?;
    let place = journeys.place(seen.host, seen.iface);
    let (host, interface) = place.rsplit_once(':')?;
    let ip = Header::parse(&seen.packet.bytes).ok().map(|(ip, _)| ip);
    let next = hop.next.iter().filter_map(|next| journeys.seen(journeys.hops().get(*next)?));
    let next: Vec<String> = next.map(|seen| journeys.place(seen.host, seen.iface)).collect();
    Some(row([
        hop.packet.to_string(),
        seen.packet.id.0.to_string(),
        seen.at.to_string(),
        host.to_owned(),
        interface.to_owned(),
        if seen.sent { "out" } else { "in" }.to_owned(),
        ip.map(|ip| ip.src.to_string()).unwrap_or_default(),
        ip.map(|ip| ip.dst.to_string()).unwrap_or_default(),
        ip.map(|ip| protocol(ip.protocol)).unwrap_or_default(),
        seen.packet.bytes.len().to_string(),
        describe(seen.packet, numbers),
        next.join(" "),
        journeys.fate(index),
    ]))
}

/// Returns the numbers of packets that were lost, held or copied, or that appeared close to a handoff.
fn choose(outcome: &Outcome, journeys: &Journeys<'_>) -> BTreeSet<u64> {
    let striking = journeys.packets().filter(|(_, journey)| is_striking(journeys, journey));
    let mut chosen: BTreeSet<u64> = striking.map(|(number, _)| number).collect();
    let appeared: Vec<(u64, wire::Instant)> = journeys
        .packets()
        .filter_map(|(number, journey)| {
            Some((number, journeys.seen(journeys.hops().get(*journey.hops.first()?)?)?.at))
        })
        .collect();
    for handoff in &outcome.handoffs {
        let middle = appeared.partition_point(|(_, at)| *at < handoff.begun);
        let around = middle.saturating_sub(AROUND)..(middle + AROUND).min(appeared.len());
        chosen.extend(appeared.get(around).into_iter().flatten().map(|(number, _)| *number));
    }
    chosen
}

fn is_striking(journeys: &Journeys<'_>, journey: &Journey) -> bool {
    let ends = journeys.all_ends(journey);
    ends.len() > 1 || ends.iter().any(|end| !matches!(end.fate, Fate::Delivered(_) | Fate::Consumed(_)))
}
