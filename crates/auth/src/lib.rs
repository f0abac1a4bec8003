//! Message authentication and replay windows: what control messages of every protocol are judged by.
//!
//! No clocks, no randomness, no state: keys, times and the last accepted timestamp are arguments. An algorithm is
//! added with the first protocol that uses it.

mod key;
mod mac;
mod replay;

pub use key::{Key, ParseKeyError};
pub use mac::{equal, hmac_md5, hmac_sha1, hmac_sha256};
pub use replay::{ReplayWindow, Untimely};
