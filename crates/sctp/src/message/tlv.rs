//! Parameters and causes: type, length and value, padded to four bytes (RFC 9260, section 3.2.1).

use wire::{Malformed, Reader};

/// Length of the fields type and length together, in bytes.
pub(super) const HEADER: usize = 4;

/// Returns the type and the value of the next parameter or cause, or `None` at the end. The length field includes the
/// header, but not the padding. The padding may be missing behind the last parameter or cause.
pub(super) fn next<'a>(r: &mut Reader<'a>) -> Result<Option<(u16, &'a [u8])>, Malformed> {
    if r.is_empty() {
        return Ok(None);
    }
    let (kind, len) = (r.u16()?, usize::from(r.u16()?));
    let value = r.take(len.checked_sub(HEADER).ok_or(Malformed("sctp_tlv_length"))?)?;
    let padding = len.next_multiple_of(4) - len;
    r.take(padding.min(r.rest().len()))?;
    Ok(Some((kind, value)))
}

/// Pads `out` to a multiple of four bytes, and then appends a parameter or a cause without padding. The length of a
/// chunk does not include the padding of its last parameter or cause.
pub(super) fn put(out: &mut Vec<u8>, kind: u16, parts: &[&[u8]]) {
    pad(out);
    let len = HEADER + parts.iter().map(|part| part.len()).sum::<usize>();
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&(len as u16).to_be_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// Appends zeros up to the next multiple of four bytes.
pub(super) fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

/// Parses `bytes` as 16-bit numbers in network byte order. Returns the error `odd` if one byte remains.
pub(super) fn numbers(bytes: &[u8], odd: Malformed) -> Result<Vec<u16>, Malformed> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if rest.is_empty() { Ok(pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect()) } else { Err(odd) }
}

/// Returns 16-bit numbers as bytes in network byte order.
pub(super) fn number_bytes(numbers: &[u16]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}
