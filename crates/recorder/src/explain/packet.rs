//! The text of `explain --packet N`: the path of a packet.

use super::{count, exact_ms};
use crate::decode::{Control, describe};
use crate::journey::{End, Journey, Journeys, Sighting};
use crate::run::Outcome;
use draw::Table;
use std::collections::BTreeMap;
use std::fmt::Write;
use wire::{Iface, Instant};

/// Returns the path of a packet, hop by hop, and the end of each of its copies. If the run has no packet with this
/// number, the error names the valid numbers.
pub fn packet(outcome: &Outcome, number: u64) -> Result<String, String> {
    let journeys = Journeys::new(&outcome.plan, &outcome.records);
    let last = journeys.packets().count();
    let journey = journeys
        .packet(number)
        .ok_or_else(|| format!("no packet {number}; this run has packets 1 to {last}"))?;
    let mut life = Life { journeys: &journeys, copies: BTreeMap::new(), ends: Vec::new() };
    for root in journeys.roots(journey) {
        life.follow(root);
    }
    life.ends.extend(journey.strays.iter().cloned());
    Ok(life.text(outcome, number, journey))
}

struct Life<'a> {
    journeys: &'a Journeys<'a>,
    /// For each hop index, the numbers (from 1) of the copies that passed the hop.
    copies: BTreeMap<usize, Vec<usize>>,
    ends: Vec<End>,
}

impl Life<'_> {
    /// Numbers the copies after a hop in the order in which they branch, and returns their numbers.
    fn follow(&mut self, index: usize) -> Vec<usize> {
        let Some(hop) = self.journeys.hops().get(index) else { return Vec::new() };
        let mut copies = Vec::new();
        if hop.next.is_empty() {
            for end in self.journeys.ends(index) {
                self.ends.push(end);
                copies.push(self.ends.len());
            }
        } else {
            for end in &hop.ends {
                self.ends.push(end.clone());
                copies.push(self.ends.len());
            }
            for next in &hop.next {
                copies.extend(self.follow(*next));
            }
        }
        self.copies.insert(index, copies.clone());
        copies
    }

    fn text(&self, outcome: &Outcome, number: u64, journey: &Journey) -> String {
        let first = journey.hops.first().and_then(|hop| self.journeys.seen(self.journeys.hops().get(*hop)?));
        let mut out = String::new();
        match first {
            Some(Sighting { packet, .. }) => {
                let numbers = outcome.plan.numbers();
                let what = Control::of(packet, &numbers)
                    .map_or_else(|| describe(packet, &numbers), |control| control.text(&outcome.names()));
                let _ = writeln!(out, "packet {number}: {what}, {}", count(packet.bytes.len(), "byte"));
            }
            None => {
                let _ = writeln!(out, "packet {number}: never seen at an interface");
            }
        }
        out.push('\n');
        out.push_str(&self.table(outcome, journey));
        out.push('\n');
        let alone = self.ends.len() == 1;
        for (copy, end) in (1..).zip(&self.ends) {
            let name = if alone { "fate".to_owned() } else { format!("copy {copy}") };
            let _ = writeln!(out, "{name}: {} at {} s", end.fate, end.at);
        }
        out
    }

    fn table(&self, outcome: &Outcome, journey: &Journey) -> String {
        let mut rows: Vec<(usize, Instant, String, String, String)> = Vec::new();
        for index in &journey.hops {
            let hop = self.journeys.hops().get(*index);
            let Some((hop, seen)) = hop.and_then(|hop| Some((hop, self.journeys.seen(hop)?))) else {
                continue;
            };
            let place = self.journeys.place(seen.host, seen.iface);
            let copies: Vec<String> =
                self.copies.get(index).into_iter().flatten().map(ToString::to_string).collect();
            rows.push((hop.record, seen.at, place, event(&seen).to_owned(), copies.join(" ")));
        }
        for (copy, end) in (1..).zip(&self.ends) {
            let host = outcome.records.get(end.record).map_or("".into(), |record| outcome.host(record.host));
            rows.push((end.record, end.at, host.into_owned(), end.fate.to_string(), i32::to_string(&copy)));
        }
        rows.sort_by_key(|row| row.0);
        let begin =
            journey.sent.map(|(at, _)| at).or_else(|| rows.first().map(|row| row.1)).unwrap_or_default();
        let several = self.ends.len() > 1;
        let mut table = Table::new(
            ["at s", "ms since begin", "where", "what"].into_iter().chain(several.then_some("copy")),
        );
        for (_, at, place, what, copy) in rows {
            let row = [at.to_string(), exact_ms(at.since(begin)), place, what];
            table.push(row.into_iter().chain(several.then_some(copy)));
        }
        table.render()
    }
}

const fn event(seen: &Sighting<'_>) -> &'static str {
    match (seen.iface, seen.sent) {
        (Iface::HOST, false) => "from the host's stack",
        (Iface::HOST, true) => "to the host's stack",
        (_, false) => "received",
        (_, true) => "sent",
    }
}
