//! Reading bytes that a stranger sent, without an index that can fail.

use core::fmt;

/// Why bytes are not what they claim to be. The text is the reason that counters and captures show.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Malformed({})", self.0)
    }
}

impl core::error::Error for Malformed {}

/// A cursor over received bytes. Every read that would pass the end is refused with the reason given at the start.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    short: Malformed,
}

impl<'a> Reader<'a> {
    /// Reads `bytes`; `short` is the refusal when they end too early.
    pub const fn new(bytes: &'a [u8], short: Malformed) -> Self {
        Self { rest: bytes, short }
    }

    /// The next `n` bytes.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.rest.split_at_checked(n).ok_or(self.short)?;
        self.rest = tail;
        Ok(head)
    }

    /// The next `N` bytes, as an array.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or(self.short)?;
        self.rest = tail;
        Ok(*head)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[b]| b)
    }

    /// Two bytes, big-endian.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    /// Four bytes, big-endian.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    /// Eight bytes, big-endian.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// What has not been read yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether all has been read.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}
