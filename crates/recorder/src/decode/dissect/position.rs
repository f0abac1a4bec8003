//! The offset at which bytes become malformed.

use wire::Malformed;

/// Where the bytes of a message become malformed.
pub(super) struct Position {
    /// The offset of the refused field or extension; the number of bytes if the message ends too early.
    pub(super) at: usize,
    /// The length of the longest begin that is a well-formed message; `None` if there is none.
    pub(super) good: Option<usize>,
}

/// In a longer message, no offset is searched, because the search takes a time that is quadratic in the length. All
/// messages of Mobile IP fit into one Ethernet frame.
const LONGEST: usize = 8192;
/// More bytes than the fixed part of any message has: the longest is that of an advertisement with 255 router addresses.
const MORE: usize = 4096;

/// Returns where `bytes` become malformed, for which `parse` returns `refused`. `parse` must read from the left to the
/// right, and must stop at the first error.
///
/// A message consists of a fixed part and of extensions. If a begin of the bytes is well-formed, then the extension
/// behind it is refused. If none is, a field of the fixed part is refused, or the fixed part is too short: then more
/// bytes would give another result.
pub(super) fn position(
    bytes: &[u8],
    refused: Malformed,
    parse: impl Fn(&[u8]) -> Result<(), Malformed>,
) -> Position {
    if bytes.len() > LONGEST {
        return Position { at: 0, good: None };
    }
    let begin = |length: usize| bytes.get(..length).unwrap_or_default();
    let good = (0..bytes.len()).rev().find(|length| parse(begin(*length)).is_ok());
    if let Some(good) = good {
        return Position { at: good, good: Some(good) };
    }
    let longer = [bytes, &[0; MORE]].concat();
    if parse(&longer) != Err(refused) {
        return Position { at: bytes.len(), good: None };
    }
    // The refused field ends with the last byte that changes the result.
    let differs = (0..bytes.len()).rev().find(|length| parse(begin(*length)) != Err(refused));
    Position { at: differs.unwrap_or(0), good: None }
}
