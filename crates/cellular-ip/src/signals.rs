//! The signal strength of each base station, as the radio of a mobile host reports it.

use std::collections::BTreeMap;
use wire::{Duration, Instant};

/// The age above which a sample is out of date: radios report every 100 ms.
const FORGETS: Duration = Duration::from_millis(250);

/// The newest sample of each base station: the strength in dBm and the time. The key is the station's index in the
/// configuration. `None` until the radio reports its first sample.
#[expect(clippy::box_collection, reason = "a map has three words, and each of a million hosts has one")]
#[derive(Debug, Default)]
pub(crate) struct Signals(Option<Box<BTreeMap<u16, (i16, Instant)>>>);

impl Signals {
    pub(crate) fn hear(&mut self, now: Instant, station: u16, strength: i16) {
        self.0.get_or_insert_default().insert(station, (strength, now));
    }

    /// Removes the sample of a station whose cell the radio lost or could not join. The next sample is stored again.
    pub(crate) fn forget(&mut self, station: u16) {
        if let Some(heard) = &mut self.0 {
            heard.remove(&station);
        }
    }

    /// Returns the index of the station with the strongest recent sample; of equal ones, the first in the
    /// configuration. Returns `None` if there is no recent sample.
    pub(crate) fn strongest(&self, now: Instant) -> Option<u16> {
        let in_reach = self.0.as_ref()?.iter().rev().filter(|(_, (_, at))| now.since(*at) <= FORGETS);
        in_reach.max_by_key(|(_, (strength, _))| *strength).map(|(station, _)| *station)
    }

    /// Returns whether the radio has ever reported a signal.
    pub(crate) const fn are_reported(&self) -> bool {
        self.0.is_some()
    }
}
