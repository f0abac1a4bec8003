//! Limits of requests to the location manager: ports, streams, pauses and the longest answer.

use node::Rng;
use wire::Duration;

/// The wait for an answer after each attempt. After the last wait, the request has failed.
pub(crate) const PAUSES: [Duration; 5] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];
/// The number of streams of one registrar or resolver. They are used in turn, so that a late event of an old stream is
/// not taken for an event of a new stream.
pub(crate) const STREAMS: u32 = 64;
/// The maximum length of an answer that is read, in bytes.
pub(crate) const LONGEST: usize = 1500;

/// Returns a random ephemeral port (RFC 6335, section 6). A host must guess this port to forge an answer.
pub(crate) fn port(rng: &mut Rng) -> u16 {
    49_152 + (rng.draw() % 16_384) as u16
}
