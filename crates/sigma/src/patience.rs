//! How the location manager is asked, by whoever asks it: from which ports and streams, how often, and how much is read.

use node::Seed;
use wire::Duration;

/// From one attempt to the next; behind the last, the request has failed.
pub(crate) const PAUSES: [Duration; 5] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];
/// Streams of one that asks. They are numbered in turn, so that a late event of an old one is not taken for one of the new.
pub(crate) const STREAMS: u32 = 64;
/// The longest answer that is read, in bytes.
pub(crate) const LONGEST: usize = 1500;

/// A port that an unauthenticated peer cannot guess, of those that are for such use (RFC 6335, section 6).
pub(crate) fn port(chance: &mut Seed) -> u16 {
    49_152 + (chance.draw() % 16_384) as u16
}
