//! How strongly a mobile host hears each base station.

use std::collections::BTreeMap;
use wire::{Duration, Instant};

/// What was heard longer ago is out of reach: radios report every 100 ms.
const FORGETS: Duration = Duration::from_millis(250);

/// The newest sample of each base station, by its place in the configuration.
///
/// The strength in dBm, and when it was heard. Most radios of a large world report none.
#[expect(clippy::box_collection, reason = "a map has three words, and each of a million hosts has one")]
#[derive(Debug, Default)]
pub(crate) struct Signals(Option<Box<BTreeMap<u16, (i16, Instant)>>>);

impl Signals {
    pub(crate) fn hear(&mut self, now: Instant, station: u16, strength: i16) {
        self.0.get_or_insert_default().insert(station, (strength, now));
    }

    /// The radio could not come into this cell: what was heard of it counts no more, until it is heard anew.
    pub(crate) fn forget(&mut self, station: u16) {
        if let Some(heard) = &mut self.0 {
            heard.remove(&station);
        }
    }

    /// The strongest of those that can be heard now; of two that are as strong, the first of the configuration.
    pub(crate) fn strongest(&self, now: Instant) -> Option<u16> {
        let in_reach = self.0.as_ref()?.iter().rev().filter(|(_, (_, at))| now.since(*at) <= FORGETS);
        in_reach.max_by_key(|(_, (strength, _))| *strength).map(|(station, _)| *station)
    }

    /// Whether this radio reports signals at all.
    pub(crate) const fn are_reported(&self) -> bool {
        self.0.is_some()
    }
}
