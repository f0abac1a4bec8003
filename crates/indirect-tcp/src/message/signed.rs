//! What all messages have in common: four bytes in front, and a code behind.
//!
//! ```text
//! +-------------------------------+---------------+---------------+
//! |         Magic 0x4954          |   Version 1   |     Type      |
//! +-------------------------------+---------------+---------------+
//! | Body …                                                        |
//! +---------------------------------------------------------------+
//! | HMAC-SHA-256 over all before it (32 bytes)                    |
//! +---------------------------------------------------------------+
//! ```

use auth::Key;
use std::fmt::Debug;
use wire::{Malformed, Reader};

const MAGIC: u16 = 0x4954;
const VERSION: u8 = 1;
/// Bytes around a body.
pub(super) const AROUND: usize = 4 + CODE;
pub(super) const CODE: usize = 32;

/// The body of a message.
pub trait Message: Clone + PartialEq + Eq + Debug + Sized {
    /// Its type.
    const TYPE: u8;
    /// Reads a body; what is left over is refused by the caller.
    fn take(r: &mut Reader<'_>) -> Result<Self, Malformed>;
    /// The inverse.
    fn put(&self, out: &mut Vec<u8>);
}

/// A message with the code that was made of it. It is well-formed; whether it is authentic, a key tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signed<T> {
    /// What it says.
    pub message: T,
    code: [u8; CODE],
}

impl<T: Message> Signed<T> {
    /// A message, signed with a key.
    pub fn new(message: T, key: &Key) -> Self {
        let code = code(&message, key);
        Self { message, code }
    }

    /// A message with the code that its signer made of it.
    pub(super) const fn with_code(message: T, code: [u8; CODE]) -> Self {
        Self { message, code }
    }

    /// The message in these bytes, which are all of it.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(bytes, Malformed("itcp_truncated"));
        if r.u16()? != MAGIC {
            return Err(Malformed("itcp_magic"));
        }
        if r.u8()? != VERSION {
            return Err(Malformed("itcp_version"));
        }
        if r.u8()? != T::TYPE {
            return Err(Malformed("itcp_unknown_type"));
        }
        let message = T::take(&mut r)?;
        let code = r.array()?;
        if !r.is_empty() {
            return Err(Malformed("itcp_trailing"));
        }
        Ok(Self { message, code })
    }

    /// Its bytes.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = front(&self.message);
        out.extend(self.code);
        out
    }

    /// Whether it was signed with this key.
    pub fn is_by(&self, key: &Key) -> bool {
        auth::equal(&code(&self.message, key), &self.code)
    }
}

/// The code that this key makes of a message.
pub(super) fn code<T: Message>(message: &T, key: &Key) -> [u8; CODE] {
    auth::hmac_sha256(key, &[&front(message)])
}

fn front<T: Message>(message: &T) -> Vec<u8> {
    let mut out = MAGIC.to_be_bytes().to_vec();
    out.extend([VERSION, T::TYPE]);
    message.put(&mut out);
    out
}
