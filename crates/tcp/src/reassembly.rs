//! Storage of data beyond a gap until the gap is filled, and the SACK blocks that report it (RFC 2018, section 4).

use crate::{Blocks, Seq};

/// The largest number of pieces. It bounds the memory that a peer can use by sending single bytes.
pub(crate) const PIECES: usize = 1024;
/// The largest number of sequence numbers in `recent`. It is larger than the number of blocks in an option, because
/// several of the numbers can be in the same run of data.
const RECENT: usize = 8;

/// A piece of data beyond a gap.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Piece {
    from: Seq,
    bytes: Vec<u8>,
}

impl Piece {
    const fn end(&self) -> Seq {
        self.from.plus(self.bytes.len() as u32)
    }
}

/// Data beyond gaps. Pieces are sorted and do not overlap. `recent` has the sequence numbers at which data or a FIN last
/// arrived, the most recent first. The functions with a parameter `fin` count a FIN with this number as one byte of data.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Reassembly {
    pieces: Vec<Piece>,
    recent: Vec<Seq>,
}

impl Reassembly {
    pub(crate) const fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    #[cfg(test)]
    pub(crate) const fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Returns the end of the last piece; `None` if there is no piece.
    pub(crate) fn end(&self) -> Option<Seq> {
        self.pieces.last().map(Piece::end)
    }

    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
        self.recent.clear();
    }

    /// Removes the pieces that begin at `next` or below, and passes their bytes from `next` on to `each`, in order.
    /// Each piece moves `next` to its end. Returns the next number that is missing.
    pub(crate) fn join(&mut self, mut next: Seq, mut each: impl FnMut(&[u8])) -> Seq {
        let mut joined = 0;
        for piece in &self.pieces {
            if piece.from.after(next) {
                break;
            }
            joined += 1;
            let known = next.since(piece.from) as usize;
            if let Some(fresh) = piece.bytes.get(known..) {
                each(fresh);
                next = next.plus(fresh.len() as u32);
            }
        }
        self.pieces.drain(..joined);
        self.recent.retain(|place| !place.before(next));
        next
    }

    /// Stores the bytes that no piece has yet, and notes where data arrived. Bytes without room are dropped; the peer
    /// sends them again.
    pub(crate) fn keep(&mut self, mut from: Seq, mut rest: &[u8]) {
        if !rest.is_empty() {
            self.note(from);
        }
        let mut at = 0;
        while let Some(piece) = self.pieces.get(at).filter(|_| !rest.is_empty()) {
            let (begin, end) = (piece.from, piece.end());
            if from.before(begin) && self.pieces.len() < PIECES {
                let (fresh, others) = rest.split_at(rest.len().min(begin.since(from) as usize));
                self.pieces.insert(at, Piece { from, bytes: fresh.to_vec() });
                from = from.plus(fresh.len() as u32);
                rest = others;
                at += 1;
            }
            if from.before(end) {
                let known = rest.len().min(end.since(from) as usize);
                rest = rest.split_at(known).1;
                from = from.plus(known as u32);
            }
            at += 1;
        }
        if !rest.is_empty() && self.pieces.len() < PIECES {
            self.pieces.push(Piece { from, bytes: rest.to_vec() });
        }
    }

    /// Notes that data or a FIN arrived at `place`.
    pub(crate) fn note(&mut self, place: Seq) {
        self.recent.retain(|known| *known != place);
        self.recent.insert(0, place);
        self.recent.truncate(RECENT);
    }

    /// Returns the part of `from..end` that is stored already: the overlap with the first run of data in this range
    /// (RFC 2883, section 4). Returns `None` if nothing in this range is stored.
    pub(crate) fn known(&self, from: Seq, end: Seq, fin: Option<Seq>) -> Option<(Seq, Seq)> {
        let piece = self.pieces.get(self.pieces.partition_point(|piece| !piece.end().after(from)));
        let begin = from.latest(piece.map(|piece| piece.from).or(fin)?);
        let (_, run_end) = self.run(begin, fin)?;
        begin.before(end).then(|| (begin, if run_end.before(end) { run_end } else { end }))
    }

    /// Returns at most four runs of data as SACK blocks, the most recent arrival first (RFC 2018, section 4).
    pub(crate) fn blocks(&self, fin: Option<Seq>) -> Blocks {
        let mut blocks = Blocks::default();
        for place in &self.recent {
            let Some((from, end)) = self.run(*place, fin) else { continue };
            if !blocks.as_slice().contains(&(from, end)) && !blocks.push(from, end) {
                break;
            }
        }
        blocks
    }

    /// Returns the run of adjacent data that contains the sequence number `place`, half-open; `None` if no data contains
    /// it.
    fn run(&self, place: Seq, fin: Option<Seq>) -> Option<(Seq, Seq)> {
        let Some(fin) = fin else { return self.data_run(place) };
        let after = (fin, fin.plus(1));
        let before = if place == fin { self.data_run(fin.minus(1)) } else { self.data_run(place) };
        match before {
            Some((from, end)) if end == fin => Some((from, after.1)),
            _ if place == fin => Some(after),
            run => run,
        }
    }

    /// Returns the run of adjacent pieces that contains the sequence number `place`, half-open; `None` if no piece
    /// contains it.
    fn data_run(&self, place: Seq) -> Option<(Seq, Seq)> {
        let behind = self.pieces.partition_point(|piece| !piece.from.after(place));
        let mut first = behind.checked_sub(1)?;
        let piece = self.pieces.get(first).filter(|piece| piece.end().after(place))?;
        let (mut from, mut end) = (piece.from, piece.end());
        while let Some(before) = first.checked_sub(1).and_then(|at| self.pieces.get(at)) {
            if before.end() != from {
                break;
            }
            from = before.from;
            first -= 1;
        }
        for next in self.pieces.iter().skip(behind) {
            if next.from != end {
                break;
            }
            end = next.end();
        }
        Some((from, end))
    }

    /// Returns the pieces, and the sequence numbers at which data last arrived.
    pub(crate) fn export(&self) -> (Vec<(Seq, Vec<u8>)>, Vec<Seq>) {
        let pieces = self.pieces.iter().map(|piece| (piece.from, piece.bytes.clone()));
        (pieces.collect(), self.recent.clone())
    }

    /// Stores the state that [`Self::export`] returned.
    pub(crate) fn restore(&mut self, pieces: &[(Seq, Vec<u8>)], recent: &[Seq]) {
        for (from, bytes) in pieces {
            self.keep(*from, bytes);
        }
        self.recent = recent.iter().take(RECENT).copied().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(held: &Reassembly) -> Vec<(u32, u32)> {
        held.blocks(None).as_slice().iter().map(|(from, end)| (from.0, end.0)).collect()
    }

    /// The first block contains the segment that caused the acknowledgment; the others are sorted by their last growth
    /// (RFC 2018, section 4). Every second of eight segments is lost, similar to an example of RFC 2018, section 7.
    #[test]
    fn the_most_recent_block_comes_first() {
        let mut held = Reassembly::default();
        held.keep(Seq(5500), &[0; 500]);
        assert_eq!(blocks(&held), [(5500, 6000)]);
        held.keep(Seq(6500), &[0; 500]);
        assert_eq!(blocks(&held), [(6500, 7000), (5500, 6000)]);
        held.keep(Seq(7500), &[0; 500]);
        held.keep(Seq(8500), &[0; 500]);
        assert_eq!(blocks(&held), [(8500, 9000), (7500, 8000), (6500, 7000), (5500, 6000)]);
        held.keep(Seq(6000), &[0; 500]);
        assert_eq!(blocks(&held), [(5500, 7000), (8500, 9000), (7500, 8000)]);
        assert_eq!(held.join(Seq(5500), |_| ()), Seq(7000));
        assert_eq!(blocks(&held), [(8500, 9000), (7500, 8000)]);
    }

    #[test]
    fn a_fifth_block_waits_and_nothing_is_said_of_what_was_dropped() {
        let mut held = Reassembly::default();
        for i in 0..40 {
            held.keep(Seq(10 * i + 1), &[0; 2]);
        }
        assert_eq!(blocks(&held), [(391, 393), (381, 383), (371, 373), (361, 363)]);
        assert_eq!(held.recent.len(), RECENT);
        for i in 0..PIECES as u32 {
            held.keep(Seq(10 * i + 1), &[0; 2]);
        }
        held.keep(Seq(100_000), &[0; 2]);
        assert!(!blocks(&held).contains(&(100_000, 100_002)), "it was not kept");
    }

    #[test]
    fn what_is_there_already() {
        let mut held = Reassembly::default();
        for at in [2000, 3000, 6000] {
            held.keep(Seq(at), &[0; 1000]);
        }
        let known = |from, end| held.known(Seq(from), Seq(end), None).map(|(from, end)| (from.0, end.0));
        assert_eq!((known(1000, 2000), known(4000, 6000), known(7000, 8000)), (None, None, None));
        assert_eq!((known(2000, 3000), known(2500, 3500)), (Some((2000, 3000)), Some((2500, 3500))));
        assert_eq!((known(1000, 2100), known(3500, 4500)), (Some((2000, 2100)), Some((3500, 4000))));
        assert_eq!(known(1000, 9000), Some((2000, 4000)), "the first run alone");
    }

    /// A FIN beyond a gap is reported like a byte of data: alone, or at the end of the data before it.
    #[test]
    fn a_fin_beyond_a_gap_is_part_of_a_block() {
        let (mut held, fin) = (Reassembly::default(), Some(Seq(3000)));
        let blocks = |held: &Reassembly| {
            held.blocks(fin).as_slice().iter().map(|(from, end)| (from.0, end.0)).collect::<Vec<_>>()
        };
        held.note(Seq(3000));
        assert_eq!(blocks(&held), [(3000, 3001)]);
        assert_eq!(held.known(Seq(2500), Seq(3001), fin), Some((Seq(3000), Seq(3001))));
        assert_eq!(held.known(Seq(2500), Seq(3000), fin), None, "the data before it");
        held.keep(Seq(1000), &[0; 500]);
        assert_eq!(blocks(&held), [(1000, 1500), (3000, 3001)]);
        held.keep(Seq(2000), &[0; 1000]);
        assert_eq!(blocks(&held), [(2000, 3001), (1000, 1500)]);
        assert_eq!(held.known(Seq(2500), Seq(3001), fin), Some((Seq(2500), Seq(3001))));
    }
}
