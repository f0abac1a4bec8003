//! Bounds-checked reading of received bytes, which may be malformed.

use core::fmt;

/// The reason why bytes were refused, for example `ip_checksum`. The reason is also the drop reason ([`crate::Reason`])
/// of a malformed packet.
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

/// A cursor over received bytes. Every read past the end fails with the [`Malformed`] that was passed to
/// [`Reader::new`].
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    short: Malformed,
}

impl<'a> Reader<'a> {
    /// Returns a cursor at the begin of `bytes`. Each read past their end fails with `short`.
    pub const fn new(bytes: &'a [u8], short: Malformed) -> Self {
        Self { rest: bytes, short }
    }

    /// Returns the next `n` bytes. Fails if fewer are left.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.rest.split_at_checked(n).ok_or(self.short)?;
        self.rest = tail;
        Ok(head)
    }

    /// Returns the next `N` bytes as an array. Fails if fewer are left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or(self.short)?;
        self.rest = tail;
        Ok(*head)
    }

    /// Returns the next byte. Fails if none is left.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[b]| b)
    }

    /// Returns the next two bytes, big-endian. Fails if fewer are left.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    /// Returns the next four bytes, big-endian. Fails if fewer are left.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    /// Returns the next eight bytes, big-endian. Fails if fewer are left.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// Returns the bytes that were not read yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns whether all bytes were read.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}
