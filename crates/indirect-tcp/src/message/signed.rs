//! The format of signed messages (datagrams, calls and answers): 4 bytes of header, the body, and an authentication
//! code.
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
/// The length of the header and the code around a body, in bytes.
pub(super) const AROUND: usize = 4 + CODE;
pub(super) const CODE: usize = 32;

/// The body of a signed message.
pub trait Message: Clone + PartialEq + Eq + Debug + Sized {
    /// The number of the type in the header.
    const TYPE: u8;
    /// Parses a body, or returns an error if it is malformed. The caller refuses bytes after the body.
    fn take(r: &mut Reader<'_>) -> Result<Self, Malformed>;
    /// Appends the encoded body to `out`, in the form that [`Self::take`] parses.
    fn put(&self, out: &mut Vec<u8>);
}

/// A well-formed message with its authentication code. [`Self::is_by`] checks whether it is authentic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signed<T> {
    /// The body between the header and the code.
    pub message: T,
    code: [u8; CODE],
}

impl<T: Message> Signed<T> {
    /// Returns the message, signed with a key.
    pub fn new(message: T, key: &Key) -> Self {
        let code = code(&message, key);
        Self { message, code }
    }

    /// Returns the message with a code that the signer computed earlier.
    pub(super) const fn with_code(message: T, code: [u8; CODE]) -> Self {
        Self { message, code }
    }

    /// Parses a message. Returns an error if it is malformed, is of another version or type, or has bytes after it.
    /// Does not check the code.
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

    /// Returns the encoded message with its authentication code.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = front(&self.message);
        out.extend(self.code);
        out
    }

    /// Returns whether the message was signed with this key. The comparison takes constant time.
    pub fn is_by(&self, key: &Key) -> bool {
        auth::equal(&code(&self.message, key), &self.code)
    }
}

/// Returns the authentication code of a message.
pub(super) fn code<T: Message>(message: &T, key: &Key) -> [u8; CODE] {
    auth::hmac_sha256(key, &[&front(message)])
}

fn front<T: Message>(message: &T) -> Vec<u8> {
    let mut out = MAGIC.to_be_bytes().to_vec();
    out.extend([VERSION, T::TYPE]);
    message.put(&mut out);
    out
}
