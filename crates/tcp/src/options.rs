//! The options of a segment (RFC 9293, section 3.1; RFC 2018; RFC 7323).

use crate::Seq;
use wire::{Malformed, Reader};

/// The largest length of the options, in bytes. A header has at most 60 bytes, and 20 of them are fixed.
pub(crate) const MOST: usize = 40;
/// The length of the timestamps option with padding in front, in bytes (RFC 7323, appendix A).
pub(crate) const TIMESTAMPS: u32 = 12;
/// The number of blocks that fit if there are no other options (RFC 2018, section 3).
const BLOCKS: usize = 4;

/// The options that this crate supports. A field is `None` if its option is absent. Other options are skipped when
/// parsed (RFC 9293, section 3.1, MUST-6).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Options {
    /// The largest payload that the sender accepts, in bytes (RFC 9293, section 3.7.1).
    pub mss: Option<u16>,
    /// The shift of the sender's later windows (RFC 7323, section 2.2). The value is not checked, and may be more than
    /// 14.
    pub window_scale: Option<u8>,
    /// Whether the sender supports selective acknowledgments (RFC 2018, section 2).
    pub sack_permitted: bool,
    /// The timestamp of the sender, and the timestamp of the receiver that the sender echoes (RFC 7323, section 3).
    pub timestamps: Option<Timestamps>,
    /// The ranges that the sender received beyond gaps or twice, half-open (RFC 2018, section 3; RFC 2883); empty
    /// without the option.
    pub sack: Blocks,
}

/// The timestamps option (RFC 7323, section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Timestamps {
    /// `TSval`: the value of the sender's timestamp clock.
    pub value: u32,
    /// `TSecr`: the value of the receiver's timestamp clock that the sender echoes. Zero in a segment of this crate
    /// that does not acknowledge.
    pub echo: u32,
}

/// At most four half-open blocks of received data. In an option, the most recent block is the first (RFC 2018, section
/// 4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Blocks {
    blocks: [(Seq, Seq); BLOCKS],
    len: u8,
}

impl Blocks {
    /// Appends a block. Returns false, and appends nothing, if there are already four blocks.
    pub fn push(&mut self, from: Seq, end: Seq) -> bool {
        let free = self.blocks.get_mut(usize::from(self.len));
        let Some(slot) = free else { return false };
        *slot = (from, end);
        self.len += 1;
        true
    }

    /// Returns the blocks in the order of the option.
    pub fn as_slice(&self) -> &[(Seq, Seq)] {
        self.blocks.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Sorts the blocks in ascending order, relative to `una`.
    pub(crate) fn sort_from(&mut self, una: Seq) {
        if let Some(blocks) = self.blocks.get_mut(..usize::from(self.len)) {
            blocks.sort_unstable_by_key(|(from, _)| from.since(una));
        }
    }

    /// Removes all blocks except the first `most`.
    pub(crate) fn keep(&mut self, most: usize) {
        let gone = self.blocks.iter_mut().skip(most);
        gone.for_each(|block| *block = Default::default());
        self.len = self.len.min(most as u8);
    }

    /// Returns the length of an option with `blocks` blocks and padding in front, in bytes.
    pub(crate) const fn wire_len(blocks: usize) -> usize {
        if blocks == 0 { 0 } else { 4 + 8 * blocks }
    }
}

impl FromIterator<(Seq, Seq)> for Blocks {
    /// Takes the first four blocks, and drops further ones.
    fn from_iter<I: IntoIterator<Item = (Seq, Seq)>>(from: I) -> Self {
        let mut blocks = Self::default();
        from.into_iter().take(BLOCKS).for_each(|(from, end)| _ = blocks.push(from, end));
        blocks
    }
}

impl Options {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let bad = Malformed("tcp_option");
        let mut options = Self::default();
        let mut r = Reader::new(bytes, bad);
        while !r.is_empty() {
            let kind = match r.u8()? {
                0 => break,
                1 => continue,
                kind => kind,
            };
            // The length of an option includes its kind and length bytes (RFC 9293, section 3.1).
            let len = usize::from(r.u8()?).checked_sub(2).ok_or(bad)?;
            let mut body = Reader::new(r.take(len)?, bad);
            match kind {
                2 => options.mss = Some(body.u16()?),
                3 => options.window_scale = Some(body.u8()?),
                4 => options.sack_permitted = true,
                5 => options.sack = sack(&mut body)?,
                8 => options.timestamps = Some(Timestamps { value: body.u32()?, echo: body.u32()? }),
                _ => continue,
            }
            if !body.is_empty() {
                return Err(bad);
            }
        }
        Ok(options)
    }

    /// Appends the options to `out`. Each option is padded in front to a multiple of four bytes. If that does not fit,
    /// as with options from a foreign stack, only the end is padded.
    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        let tight = self.padded() > MOST;
        let begin = out.len();
        let pad = |out: &mut Vec<u8>, bytes: usize| out.resize(out.len() + if tight { 0 } else { bytes }, 1);
        if let Some(mss) = self.mss {
            out.extend_from_slice(&[2, 4]);
            out.extend_from_slice(&mss.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            pad(out, 1);
            out.extend_from_slice(&[3, 3, shift]);
        }
        if self.sack_permitted {
            pad(out, 2);
            out.extend_from_slice(&[4, 2]);
        }
        if let Some(Timestamps { value, echo }) = self.timestamps {
            pad(out, 2);
            out.extend_from_slice(&[8, 10]);
            out.extend_from_slice([value.to_be_bytes(), echo.to_be_bytes()].as_flattened());
        }
        if self.sack.len > 0 {
            pad(out, 2);
            out.extend_from_slice(&[5, 2 + 8 * self.sack.len]);
            for (from, end) in self.sack.as_slice() {
                out.extend_from_slice([from.0.to_be_bytes(), end.0.to_be_bytes()].as_flattened());
            }
        }
        out.resize(begin + self.len(), 0);
    }

    /// Returns the length on the wire, in bytes, with padding.
    pub(crate) const fn len(&self) -> usize {
        let padded = self.padded();
        if padded <= MOST { padded } else { self.packed().next_multiple_of(4) }
    }

    const fn padded(&self) -> usize {
        4 * (self.mss.is_some() as usize
            + self.window_scale.is_some() as usize
            + self.sack_permitted as usize)
            + self.timestamps.is_some() as usize * TIMESTAMPS as usize
            + Blocks::wire_len(self.sack.len as usize)
    }

    const fn packed(&self) -> usize {
        let pads = self.window_scale.is_some() as usize
            + 2 * (self.sack_permitted as usize
                + self.timestamps.is_some() as usize
                + (self.sack.len > 0) as usize);
        self.padded() - pads
    }
}

fn sack(body: &mut Reader<'_>) -> Result<Blocks, Malformed> {
    let mut blocks = Blocks::default();
    while !body.is_empty() {
        if !blocks.push(Seq(body.u32()?), Seq(body.u32()?)) {
            return Err(Malformed("tcp_option"));
        }
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emitted(options: &Options) -> Vec<u8> {
        let mut out = Vec::new();
        options.emit(&mut out);
        assert_eq!(out.len(), options.len());
        out
    }

    fn blocks(n: u32) -> Blocks {
        (0..n).map(|i| (Seq(100 * i), Seq(100 * i + 7))).collect()
    }

    /// Timestamps and SACK blocks have the layout of RFC 7323, appendix A, and RFC 2018, section 3.
    #[test]
    fn golden_bytes() {
        let timestamps = Some(Timestamps { value: 0x0102_0304, echo: 0x0506_0708 });
        let options = Options { timestamps, sack: blocks(1), ..Options::default() };
        let expected = [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1, 5, 10, 0, 0, 0, 0, 0, 0, 0, 7];
        assert_eq!(emitted(&options), expected);
    }

    #[test]
    fn what_is_emitted_is_read_back_even_where_padding_would_not_fit() {
        let timestamps = Some(Timestamps { value: 1, echo: 2 });
        let full = Options {
            mss: Some(1460),
            window_scale: Some(14),
            sack_permitted: true,
            timestamps,
            sack: blocks(0),
        };
        for (sack, len) in [(0, 24), (1, 36), (2, 40)] {
            let options = Options { sack: blocks(sack), ..full };
            assert_eq!((emitted(&options).len(), Options::parse(&emitted(&options))), (len, Ok(options)));
        }
        let plain = Options { sack: blocks(4), ..Options::default() };
        assert_eq!(Options::parse(&emitted(&plain)), Ok(plain));
    }

    #[test]
    fn half_a_block_or_five_are_refused() {
        let refused = |bytes: &[u8]| Options::parse(bytes).unwrap_err().0;
        assert_eq!(refused(&[5, 7, 0, 0, 0, 0, 1]), "tcp_option");
        assert_eq!(refused(&[[5, 42].as_slice(), &[0; 40]].concat()), "tcp_option");
        assert_eq!(refused(&[8, 9, 0, 0, 0, 0, 0, 0, 0]), "tcp_option");
        assert_eq!(refused(&[8, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0]), "tcp_option");
    }

    #[test]
    fn four_blocks_and_no_fifth() {
        let mut four = blocks(9);
        assert_eq!((four.as_slice().len(), four.push(Seq(1), Seq(2))), (4, false));
        four.keep(1);
        assert_eq!(four, blocks(1));
    }
}
