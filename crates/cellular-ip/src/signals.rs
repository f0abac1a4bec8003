//! How strongly a mobile host hears each base station.

use std::collections::BTreeMap;
use wire::{Duration, Instant};

/// What was heard longer ago is out of reach: radios report every 100 ms.
const FORGETS: Duration = Duration::from_millis(250);

/// The newest sample of each base station, by its place in the configuration.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// The strength in dBm, and when it was heard.
    heard: BTreeMap<usize, (i16, Instant)>,
    reported: bool,
}

impl Signals {
    pub(crate) fn hear(&mut self, now: Instant, station: usize, strength: i16) {
        self.reported = true;
        self.heard.insert(station, (strength, now));
    }

    /// The radio could not come into this cell: what was heard of it counts no more, until it is heard anew.
    pub(crate) fn forget(&mut self, station: usize) {
        self.heard.remove(&station);
    }

    /// The strongest of those that can be heard now; of two that are as strong, the first of the configuration.
    pub(crate) fn strongest(&self, now: Instant) -> Option<usize> {
        let in_reach = self.heard.iter().rev().filter(|(_, (_, at))| now.since(*at) <= FORGETS);
        in_reach.max_by_key(|(_, (strength, _))| *strength).map(|(station, _)| *station)
    }

    /// Whether this radio reports signals at all.
    pub(crate) const fn are_reported(&self) -> bool {
        self.reported
    }
}
