//! Message authentication and replay windows, which the control messages of all protocols use.
//!
//! The crate has no clock, no random source and no state: keys, times and the last accepted timestamp are arguments. An
//! algorithm is added only when a protocol needs it.

mod equal;
mod key;
mod mac;
mod replay;

pub use equal::equal;
pub use key::{Key, ParseKeyError};
pub use mac::{hmac_md5, hmac_sha1, hmac_sha256};
pub use replay::{ReplayWindow, Untimely};
