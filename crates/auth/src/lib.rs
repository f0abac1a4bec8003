//! Message authentication, derivation of keys, and replay windows for the control messages of the protocols.
//!
//! The crate has no clock, no random source and no state: keys, times and the last accepted timestamp are arguments. An
//! algorithm is added only when a protocol needs it.

mod equal;
mod hkdf;
mod key;
mod mac;
mod replay;

pub use equal::equal;
pub use hkdf::hkdf_sha256;
pub use key::{Key, ParseKeyError};
pub use mac::{hmac_md5, hmac_sha1, hmac_sha256, keyed_md5};
pub use replay::{ReplayWindow, Untimely};
