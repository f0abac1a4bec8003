//! Fragmentation and reassembly of IPv4 datagrams (RFC 791, sections 2.3 and 3.2; RFC 815), with bounded memory.

use crate::ipv4::{self, Header};
use crate::{Instant, Ipv4Addr, Malformed};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

/// The reassembly time-out: between the 15 s of RFC 791, section 3.2, and the 60 s to 120 s of RFC 1122, section
/// 3.3.2.
const PATIENCE: Duration = Duration::from_secs(30);
/// The largest number of incomplete datagrams. If there are more, the datagram that got no fragment for the longest
/// time is discarded.
const DATAGRAMS: usize = 64;
/// The largest number of payload bytes in all incomplete datagrams. If there are more, the datagram that got no
/// fragment for the longest time is discarded.
const BYTES: usize = 256 * 1024;
/// The largest number of fragments of all incomplete datagrams. If there are more, the datagram that got no fragment for
/// the longest time is discarded. Each fragment takes about 100 bytes besides its payload, which may be tiny. A datagram
/// of 65,535 bytes has at most 1366 fragments of the smallest MTU.
const FRAGMENTS: usize = 4096;
/// The longest payload of a datagram with a header of 20 bytes, in bytes.
const LONGEST: usize = 65_535 - ipv4::HEADER;

/// The largest number of outer IP headers that are looked through.
pub(crate) const NESTING: u8 = 4;
/// The smallest MTU of a link, in bytes (RFC 791, section 3.2). A smaller one counts as this.
pub const SMALLEST: usize = 68;

/// Cuts the datagram with this header and payload into fragments of at most `mtu` bytes, headers included. An `mtu`
/// below 68 counts as 68 (RFC 791). DF is clear in each fragment.
pub fn cut(header: &Header, payload: &[u8], mtu: u16) -> Vec<Vec<u8>> {
    let room = usize::from(mtu).max(SMALLEST) - ipv4::HEADER;
    if payload.len() <= room {
        return [Header { dont_fragment: false, ..*header }.emit(payload)].into();
    }
    let units = room / 8;
    let count = payload.len().div_ceil(units * 8);
    let piece = |(at, piece): (usize, &[u8])| {
        let offset = header.offset + (at * units) as u16;
        let more_fragments = header.more_fragments || at + 1 < count;
        Header { dont_fragment: false, more_fragments, offset, ..*header }.emit(piece)
    };
    payload.chunks(units * 8).enumerate().map(piece).collect()
}

/// Cuts the datagram `bytes`, which may be a fragment itself, into fragments of at most `mtu` bytes, headers included.
/// DF is clear in each fragment. The first fragment has all options of the datagram; the others have the options with
/// the copied flag only (RFC 791, section 3.2). An `mtu` below 68 counts as 68.
///
/// Fails if the header is malformed, an option exceeds the header (`ip_options`), or the datagram extends beyond 65,535
/// bytes (`ip_fragment_offset`).
pub fn pieces(bytes: &[u8], mtu: u16) -> Result<Vec<Vec<u8>>, Malformed> {
    let mut first = bytes.to_vec();
    let mut cut = cut_off(&mut first, mtu)?;
    cut.insert(0, first);
    Ok(cut)
}

/// Cuts a datagram as [`pieces`] does. Leaves the first fragment in `bytes`, so that most of the datagram is not copied,
/// and returns the others. Fails as [`pieces`] does; `bytes` is then unchanged.
pub fn cut_off(bytes: &mut Vec<u8>, mtu: u16) -> Result<Vec<Vec<u8>>, Malformed> {
    let (header, payload) = Header::parse(bytes)?;
    let header_len = ipv4::total_len(bytes).saturating_sub(payload.len());
    let options = bytes.get(ipv4::HEADER..header_len).unwrap_or_default();
    if header_len + usize::from(header.offset) * 8 + payload.len() > usize::from(u16::MAX) {
        return Err(Malformed("ip_fragment_offset"));
    }
    let copied = copied_options(options)?;
    let mtu = usize::from(mtu).max(SMALLEST);
    let (piece, mut rest) = split(payload, mtu - header_len);
    let (mut later, first_len) = (Vec::new(), header_len + piece.len());
    let mut offset = header.offset + (piece.len() / 8) as u16;
    let more_behind_first = header.more_fragments || !rest.is_empty();
    while !rest.is_empty() {
        let (piece, behind) = split(rest, mtu - ipv4::HEADER - copied.len());
        let more_fragments = header.more_fragments || !behind.is_empty();
        let own = Header { dont_fragment: false, more_fragments, offset, ..header };
        later.push(own.emit_with(&copied, piece));
        offset += (piece.len() / 8) as u16;
        rest = behind;
    }
    bytes.truncate(first_len);
    ipv4::set_fragment(bytes, more_behind_first, header.offset);
    Ok(later)
}

/// Splits a payload into the part that fits into `room` bytes, and the rest. If there is a rest, the length of the part
/// is a multiple of eight bytes.
fn split(payload: &[u8], room: usize) -> (&[u8], &[u8]) {
    payload.split_at(if payload.len() <= room { payload.len() } else { room / 8 * 8 })
}

/// Returns the options with the copied flag, padded to a multiple of four bytes. Fails if an option exceeds the options.
fn copied_options(options: &[u8]) -> Result<Vec<u8>, Malformed> {
    const MALFORMED: Malformed = Malformed("ip_options");
    let (mut copied, mut rest) = (Vec::new(), options);
    while let [kind, later @ ..] = rest {
        let len = match kind {
            0 => break, // the end of the options
            1 => 1,     // no operation, without a length
            _ => usize::from(*later.first().ok_or(MALFORMED)?),
        };
        if *kind != 1 && len < 2 {
            return Err(MALFORMED);
        }
        let (option, after) = rest.split_at_checked(len).ok_or(MALFORMED)?;
        if kind & 0x80 != 0 {
            copied.extend_from_slice(option);
        }
        rest = after;
    }
    copied.resize(copied.len().next_multiple_of(4), 0);
    Ok(copied)
}

/// Returns whether the datagram `bytes`, or a datagram inside of it, is a fragment. At most four tunnels are looked
/// through. The headers are not checked.
pub fn is_in(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    for _ in 0..=NESTING {
        match rest {
            [_, _, _, _, _, _, high, low, _, protocol, ..] => {
                if u16::from_be_bytes([*high, *low]) & 0x3fff != 0 {
                    return true;
                }
                let payload = ipv4::payload(rest);
                rest = match *protocol {
                    ipv4::IPIP => payload,
                    ipv4::GRE => payload.get(4..).unwrap_or_default(),
                    _ => return false, // minimal encapsulation carries no fragments
                };
            }
            _ => return false,
        }
    }
    false
}

/// Source, destination, protocol and identification, which all fragments of one datagram share.
type Name = (Ipv4Addr, Ipv4Addr, u8, u16);

#[derive(Clone, Debug)]
struct Partial<T> {
    name: Name,
    until: Instant,
    /// The payload and the token of each received fragment, by the offset of its first byte.
    pieces: BTreeMap<usize, (Vec<u8>, T)>,
    /// The number of payload bytes in `pieces`.
    bytes: usize,
    /// The length of the datagram's payload in bytes, or `None` before the last fragment has arrived.
    len: Option<usize>,
    /// The header of the first fragment with its options, or `None` before this fragment has arrived.
    head: Option<(Header, Vec<u8>)>,
}

/// What happened to a fragment that was put to its datagram.
enum Put<T> {
    Kept,
    /// The fragment is an exact copy of an earlier one.
    Copy(T),
    /// The fragment is empty, overlaps another one, or does not fit the length of the datagram.
    Misfit(T),
}

impl<T> Partial<T> {
    /// Inserts a fragment, or returns it. An overlap may be an attack (RFC 5722, section 4, about IPv6; the same
    /// applies to IPv4).
    fn put(&mut self, at: usize, piece: &[u8], last: bool, token: T) -> Put<T> {
        let end = at + piece.len();
        let before = self.pieces.range(..=at).next_back();
        if let Some((begin, (known, _))) = before {
            if *begin == at && known == piece {
                return Put::Copy(token);
            }
            if begin + known.len() > at {
                return Put::Misfit(token);
            }
        }
        let overlaps = self.pieces.range(at..).next().is_some_and(|(begin, _)| *begin < end);
        let beyond = self.len.is_some_and(|len| end > len || (last && end != len));
        let short = last && self.pieces.keys().next_back().is_some_and(|begin| *begin > at);
        // The payload of each fragment but the last must have a length that is a multiple of eight bytes.
        let uneven = !last && !piece.len().is_multiple_of(8);
        if overlaps || beyond || short || uneven || end > LONGEST || piece.is_empty() {
            return Put::Misfit(token);
        }
        self.len = if last { Some(end) } else { self.len };
        self.bytes += piece.len();
        self.pieces.insert(at, (piece.to_vec(), token));
        Put::Kept
    }

    fn is_whole(&self) -> bool {
        self.len == Some(self.bytes)
    }

    fn payload(&self) -> Vec<u8> {
        self.pieces.values().flat_map(|(piece, _)| piece).copied().collect()
    }

    /// Returns the whole datagram with the header of its first fragment.
    fn datagram(&self) -> Option<Vec<u8>> {
        let (header, options) = self.head.as_ref()?;
        Some(Header { more_fragments: false, ..*header }.emit_with(options, &self.payload()))
    }

    /// Returns the first fragment, or `None` if it has not arrived.
    fn first(&self) -> Option<Vec<u8>> {
        let ((header, options), (piece, _)) = (self.head.as_ref()?, self.pieces.get(&0)?);
        Some(header.emit_with(options, piece))
    }

    fn into_tokens(self) -> impl Iterator<Item = T> {
        self.pieces.into_values().map(|(_, token)| token)
    }
}

/// How a fragment ended that a [`Reassembly`] no longer holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ended {
    /// The datagram is complete, and this fragment is a part of it.
    Joined,
    /// An earlier fragment is the same.
    Copied,
    /// A fragment is empty, overlaps another one, or does not fit the length of its datagram. All fragments of the
    /// datagram end.
    Misfit,
    /// There was no room for the datagram, so all its fragments end.
    NoRoom,
}

/// The result of adding a fragment. `T` is the type of the caller's name for a fragment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Added<T> {
    /// The datagram if it is complete now, with the header of its first fragment.
    pub whole: Option<Vec<u8>>,
    /// The fragments that ended. If the datagram is complete, the last fragment is not one of them.
    pub ended: Vec<(T, Ended)>,
}

/// A datagram whose reassembly timed out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimedOut<T> {
    /// The first fragment, about which an ICMP error may be sent (RFC 792); `None` if it has not arrived.
    pub first: Option<Vec<u8>>,
    /// The fragments that have arrived.
    pub fragments: Vec<T>,
}

/// The datagrams of which only some fragments have arrived. `T` is the type of the tokens by which the caller knows
/// its fragments.
#[derive(Clone, Debug)]
pub struct Reassembly<T = ()> {
    waiting: VecDeque<Partial<T>>,
}

impl<T> Default for Reassembly<T> {
    fn default() -> Self {
        Self { waiting: VecDeque::new() }
    }
}

impl Reassembly {
    /// Takes a fragment. Returns the payload of its datagram if the datagram is now complete, otherwise `None`. An
    /// invalid fragment discards its datagram. An incomplete datagram is discarded 30 s after its first fragment
    /// arrived, or when there are too many datagrams, fragments or bytes.
    pub fn take(&mut self, now: Instant, header: &Header, payload: &[u8]) -> Option<Vec<u8>> {
        self.waiting.retain(|partial| partial.until > now);
        let whole = self.put(now, (header, &[]), payload, (), &mut Vec::new())?;
        Some(whole.payload())
    }
}

impl<T> Reassembly<T> {
    /// Adds the fragment `bytes`, which the caller knows by its `token`. An invalid fragment discards its datagram.
    /// When there are too many datagrams, fragments or bytes, those end that got no fragment for the longest time. The caller
    /// calls [`Self::time_out`] first. Fails, and discards the token, if the header of the fragment is malformed.
    pub fn add(&mut self, now: Instant, bytes: &[u8], token: T) -> Result<Added<T>, Malformed> {
        let (header, payload) = Header::parse(bytes)?;
        let header_len = ipv4::total_len(bytes).saturating_sub(payload.len());
        let options = bytes.get(ipv4::HEADER..header_len).unwrap_or_default();
        let mut ended = Vec::new();
        let partial = self.put(now, (&header, options), payload, token, &mut ended);
        let whole = partial.as_ref().and_then(Partial::datagram);
        if let Some(mut partial) = partial {
            // The datagram continues in place of the last fragment.
            partial.pieces.remove(&(usize::from(header.offset) * 8));
            ended.extend(partial.into_tokens().map(|token| (token, Ended::Joined)));
        }
        Ok(Added { whole, ended })
    }

    /// Adds a fragment. Returns its datagram if the datagram is complete now.
    fn put(
        &mut self,
        now: Instant,
        (header, options): (&Header, &[u8]),
        payload: &[u8],
        token: T,
        ended: &mut Vec<(T, Ended)>,
    ) -> Option<Partial<T>> {
        let name = (header.src, header.dst, header.protocol, header.id);
        let (at, last) = (usize::from(header.offset) * 8, !header.more_fragments);
        let known = self.waiting.iter().position(|partial| partial.name == name);
        let mut partial = known.and_then(|at| self.waiting.remove(at)).unwrap_or_else(|| Partial {
            name,
            until: now + PATIENCE,
            pieces: BTreeMap::new(),
            bytes: 0,
            len: None,
            head: None,
        });
        match partial.put(at, payload, last, token) {
            Put::Kept if header.offset == 0 => partial.head = Some((*header, options.to_vec())),
            Put::Kept => {}
            Put::Copy(token) => ended.push((token, Ended::Copied)),
            Put::Misfit(token) => {
                ended.push((token, Ended::Misfit));
                ended.extend(partial.into_tokens().map(|token| (token, Ended::Misfit)));
                return None;
            }
        }
        if partial.is_whole() {
            return Some(partial);
        }
        self.waiting.push_back(partial);
        while self.waiting.len() > DATAGRAMS || self.bytes() > BYTES || self.fragments() > FRAGMENTS {
            let oldest = self.waiting.pop_front().into_iter().flat_map(Partial::into_tokens);
            ended.extend(oldest.map(|token| (token, Ended::NoRoom)));
        }
        None
    }

    /// Removes the datagrams whose first arrival was at least 30 s ago, and returns them.
    pub fn time_out(&mut self, now: Instant) -> Vec<TimedOut<T>> {
        let mut over = Vec::new();
        while let Some(at) = self.waiting.iter().position(|partial| partial.until <= now)
            && let Some(partial) = self.waiting.remove(at)
        {
            over.push(TimedOut { first: partial.first(), fragments: partial.into_tokens().collect() });
        }
        over
    }

    /// Returns when [`Self::time_out`] is due, or `None` if no datagram is incomplete.
    pub fn deadline(&self) -> Option<Instant> {
        self.waiting.iter().map(|partial| partial.until).min()
    }

    /// Calls `each` with the token of each fragment that is held.
    pub fn holds(&self, each: &mut dyn FnMut(&T)) {
        self.waiting.iter().flat_map(|partial| partial.pieces.values()).for_each(|(_, token)| each(token));
    }

    /// Returns the number of payload bytes that all incomplete datagrams hold.
    pub fn bytes(&self) -> usize {
        self.waiting.iter().map(|partial| partial.bytes).sum()
    }

    fn fragments(&self) -> usize {
        self.waiting.iter().map(|partial| partial.pieces.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn header(id: u16) -> Header {
        Header { id, ..Header::new(ipv4::SCTP, Ipv4Addr::new(10, 1, 0, 7), Ipv4Addr::new(10, 2, 0, 1)) }
    }

    fn payload(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at % 251) as u8).collect()
    }

    fn take(reassembly: &mut Reassembly, ms: u64, bytes: &[u8]) -> Option<Vec<u8>> {
        let (header, payload) = Header::parse(bytes).unwrap();
        assert!(!header.dont_fragment);
        reassembly.take(Instant::from_millis(ms), &header, payload)
    }

    #[test]
    fn what_was_cut_is_put_together_in_any_order() {
        for (len, mtu, count) in [(1480, 1400, 2), (1480, 576, 3), (1480, 68, 31), (48, 68, 1), (49, 68, 2)] {
            let mut pieces = cut(&header(7), &payload(len), mtu);
            assert_eq!(pieces.len(), count, "{len} by {mtu}");
            assert!(pieces.iter().all(|piece| piece.len() <= usize::from(mtu)));
            for _ in 0..pieces.len() {
                pieces.rotate_left(1);
                let mut reassembly = Reassembly::default();
                let last = pieces.pop().unwrap();
                for piece in &pieces {
                    assert_eq!(take(&mut reassembly, 0, piece), None);
                    assert_eq!(take(&mut reassembly, 0, piece), None, "a copy");
                }
                assert_eq!(take(&mut reassembly, 0, &last), Some(payload(len)));
                assert_eq!(reassembly.bytes(), 0);
                pieces.push(last);
            }
        }
    }

    #[test]
    fn a_fragment_is_cut_again() {
        let mut reassembly = Reassembly::default();
        let mut whole = None;
        for piece in cut(&header(7), &payload(3000), 1400) {
            let (header, payload) = Header::parse(&piece).unwrap();
            for smaller in cut(&header, payload, 600) {
                whole = whole.or(take(&mut reassembly, 0, &smaller));
            }
        }
        assert_eq!(whole, Some(payload(3000)));
    }

    /// Returns a datagram with these options, whose length must be a multiple of four.
    fn with_options(header: Header, options: &[u8], len: usize) -> Vec<u8> {
        header.emit_with(options, &payload(len))
    }

    /// Strict source routing (137) and stream identifier (136) have the copied flag, record route (7) has not.
    #[test]
    fn later_fragments_have_the_options_with_the_copied_flag_only() {
        let options = [7, 7, 4, 0, 0, 0, 0, 1, 136, 4, 0, 9, 1, 137, 3, 4, 0, 0, 0, 0];
        let divisible = Header { dont_fragment: false, ..header(7) };
        let cut = pieces(&with_options(divisible, &options, 1000), 576).unwrap();
        let options_of = |bytes: &Vec<u8>| bytes[20..usize::from(bytes[0] & 15) * 4].to_vec();
        let later = [136, 4, 0, 9, 137, 3, 4, 0].to_vec();
        assert_eq!(cut.iter().map(options_of).collect::<Vec<_>>(), [options.to_vec(), later]);
        assert!(cut.iter().all(|piece| piece.len() <= 576));
        let mut reassembly = Reassembly::default();
        assert_eq!(take(&mut reassembly, 0, &cut[1]), None);
        assert_eq!(take(&mut reassembly, 0, &cut[0]), Some(payload(1000)));
    }

    #[test]
    fn a_fragment_is_found_in_a_tunnel() {
        let divisible = Header { dont_fragment: false, ..header(7) };
        let whole = divisible.emit(&payload(1000));
        let piece = pieces(&whole, 576).unwrap().remove(1);
        let wrapped =
            |bytes: &[u8]| crate::ipip::encapsulate(bytes, header(7).src, header(7).dst, 1).unwrap();
        assert_eq!([&whole, &wrapped(&whole)].map(|bytes| is_in(bytes)), [false; 2]);
        assert_eq!(
            [&piece, &wrapped(&piece), &wrapped(&wrapped(&piece))].map(|bytes| is_in(bytes)),
            [true; 3]
        );
        assert!(is_in(&pieces(&wrapped(&whole), 576).unwrap()[1]) && !is_in(&piece[..5]));
    }

    #[test]
    fn a_fragment_of_a_fragment_has_the_offset_in_the_whole_datagram() {
        let divisible = Header { dont_fragment: false, ..header(7) };
        let places = |cut: Vec<Vec<u8>>| -> Vec<(u16, bool, usize)> {
            let place = |bytes: &Vec<u8>| {
                let (header, payload) = Header::parse(bytes).unwrap();
                (header.offset, header.more_fragments, payload.len())
            };
            cut.iter().map(place).collect()
        };
        let first = pieces(&divisible.emit(&payload(1480)), 1000).unwrap();
        assert_eq!(places(first.clone()), [(0, true, 976), (122, false, 504)]);
        assert_eq!(places(pieces(&first[0], 576).unwrap()), [(0, true, 552), (69, true, 424)]);
        assert_eq!(places(pieces(&first[1], 300).unwrap()), [(122, true, 280), (157, false, 224)]);
        assert_eq!(pieces(&first[0], 1000).unwrap(), [first[0].clone()], "it fits");
    }

    /// The first fragment stays in the buffer. Padding behind the datagram is no part of a fragment.
    #[test]
    fn the_first_fragment_stays_in_its_buffer() {
        let whole = with_options(Header { dont_fragment: false, ..header(7) }, &[136, 4, 0, 9], 1480);
        for (mtu, count) in [(576, 3), (1500, 2), (9000, 1)] {
            let mut first = [whole.clone(), vec![9; 5]].concat();
            let at = first.as_ptr();
            let later = cut_off(&mut first, mtu).unwrap();
            assert_eq!(first.as_ptr(), at);
            let cut = [vec![first], later].concat();
            assert_eq!(cut, pieces(&whole, mtu).unwrap());
            assert_eq!(cut.len(), count);
        }
        let bytes = with_options(header(7), &[7, 1, 4, 0], 1000);
        let mut unchanged = bytes.clone();
        assert!(cut_off(&mut unchanged, 576).is_err() && unchanged == bytes);
    }

    #[test]
    fn what_cannot_be_cut_is_refused_with_a_reason() {
        let refusal = |bytes: &[u8]| pieces(bytes, 576).unwrap_err().0;
        let divisible = Header { dont_fragment: false, ..header(7) };
        assert_eq!(refusal(&with_options(divisible, &[7, 9, 4, 0], 1000)), "ip_options");
        assert_eq!(refusal(&with_options(divisible, &[7, 1, 4, 0], 1000)), "ip_options");
        assert_eq!(refusal(&with_options(divisible, &[1, 1, 1, 7], 1000)), "ip_options");
        let last = Header { offset: 8191, ..divisible };
        assert_eq!(refusal(&last.emit(&payload(1000))), "ip_fragment_offset");
        assert_eq!(refusal(&[]), "ip_truncated");
    }

    #[test]
    fn what_overlaps_or_cannot_be_is_given_up() {
        let piece = |offset, more_fragments, len| {
            Header { offset, more_fragments, dont_fragment: false, ..header(7) }.emit(&payload(len))
        };
        for (first, second) in [
            (piece(0, true, 16), piece(1, true, 16)),
            (piece(1, true, 16), piece(0, true, 16)),
            (piece(0, true, 16), piece(1, false, 3)),
            (piece(4, false, 3), piece(4, true, 8)),
            (piece(0, true, 16), piece(2, true, 9)),
            (piece(4, true, 8), piece(2, false, 8)),
            (piece(0, true, 8), piece(8191, false, 8)),
        ] {
            let mut reassembly = Reassembly::default();
            assert_eq!(take(&mut reassembly, 0, &first), None);
            assert_eq!(take(&mut reassembly, 0, &second), None);
            assert_eq!(reassembly.bytes(), 0, "all of it");
        }
    }

    #[test]
    fn memory_and_time_are_bounded() {
        let mut reassembly = Reassembly::default();
        for id in 0..2000 {
            let pieces = cut(&header(id), &payload(60_000), 40_000);
            assert_eq!(take(&mut reassembly, 0, &pieces[0]), None);
            assert!(reassembly.bytes() <= BYTES && reassembly.waiting.len() <= DATAGRAMS);
        }
        let pieces = cut(&header(1999), &payload(60_000), 40_000);
        assert_eq!(take(&mut reassembly, 30_000, &pieces[1]), None, "the first has been dropped");
        assert_eq!(reassembly.waiting.len(), 1);
    }

    /// A fragment takes memory besides its payload.
    #[test]
    fn the_number_of_tiny_fragments_is_bounded() {
        let mut reassembly = Reassembly::default();
        for number in 0..20_000_u16 {
            let offset = number % 4000 * 2 + 1;
            let own = Header { offset, more_fragments: true, dont_fragment: false, ..header(number / 4000) };
            assert_eq!(take(&mut reassembly, 0, &own.emit(&[0; 8])), None);
            assert!(reassembly.fragments() <= FRAGMENTS);
        }
        assert!(reassembly.fragments() > FRAGMENTS / 2);
    }

    fn ended<T: Ord + Copy>(added: &Added<T>, how: Ended) -> Vec<T> {
        let mut tokens: Vec<T> = added.ended.iter().filter(|(_, it)| *it == how).map(|(it, _)| *it).collect();
        assert_eq!(tokens.len(), added.ended.len());
        tokens.sort_unstable();
        tokens
    }

    /// The datagram has the header of its first fragment, and each fragment ends once.
    #[test]
    fn each_fragment_ends_once() {
        let divisible = Header { dont_fragment: false, ..header(7) };
        let whole = with_options(divisible, &[136, 4, 0, 9], 1480);
        let cut = pieces(&whole, 576).unwrap();
        let mut reassembly = Reassembly::default();
        let mut add = |token: u8, bytes: &[u8]| reassembly.add(Instant::ZERO, bytes, token).unwrap();
        assert_eq!(add(1, &cut[2]), Added { whole: None, ended: Vec::new() });
        assert_eq!(ended(&add(2, &cut[2]), Ended::Copied), [2]);
        assert_eq!(add(3, &cut[0]).whole, None);
        let last = add(4, &cut[1]);
        assert_eq!(last.whole.as_ref(), Some(&whole));
        assert_eq!(ended(&last, Ended::Joined), [1, 3], "the datagram continues in place of the last");
        assert_eq!(add(5, &cut[0]).whole, None);
        let bad = divisible.emit_with(&[], &payload(64));
        assert_eq!(ended(&add(6, &bad), Ended::Misfit), [5, 6]);
        assert_eq!((reassembly.bytes(), reassembly.deadline()), (0, None));
    }

    #[test]
    fn what_stays_incomplete_times_out_with_its_first_fragment() {
        let divisible = Header { dont_fragment: false, ..header(7) };
        let cut = pieces(&divisible.emit(&payload(1480)), 576).unwrap();
        let mut reassembly = Reassembly::default();
        let at = Instant::from_millis;
        assert_eq!(reassembly.add(at(5), &cut[1], 1).unwrap().ended, []);
        assert_eq!(reassembly.add(at(6), &cut[0], 2).unwrap().ended, []);
        let other = Header { id: 8, ..divisible }.emit(&payload(1480));
        assert_eq!(reassembly.add(at(7), &pieces(&other, 576).unwrap()[1], 3).unwrap().ended, []);
        assert_eq!((reassembly.deadline(), reassembly.time_out(at(30_004))), (Some(at(30_005)), Vec::new()));
        let mut held = Vec::new();
        reassembly.holds(&mut |token| held.push(*token));
        assert_eq!(held, [2, 1, 3]);
        let over = reassembly.time_out(at(30_007));
        assert_eq!(
            over,
            [
                TimedOut { first: Some(cut[0].clone()), fragments: [2, 1].to_vec() },
                TimedOut { first: None, fragments: [3].to_vec() }
            ]
        );
        assert_eq!(reassembly.deadline(), None);
    }
}
