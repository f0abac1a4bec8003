//! Numbers that a stranger cannot guess, and a seal that he cannot forge.

use auth::{Key, hmac_sha256};
use wire::{Duration, Instant, Seed};

/// For how long cookies are sealed under one key.
const KEY_LIFE: Duration = Duration::from_hours(1);

/// A secret and a sequence. The [`Seed`] says which number comes next, so that a run can be repeated; the secret is what
/// makes it hard to guess (RFC 9260, section 5.3.1: tags are random).
#[derive(Clone, Debug)]
pub(crate) struct Chance {
    secret: Key,
    seed: Seed,
}

impl Chance {
    pub(crate) const fn new(secret: Key, seed: Seed) -> Self {
        Self { secret, seed }
    }

    /// A sequence of its own.
    pub(crate) fn fork(&mut self) -> Self {
        Self { secret: self.secret.clone(), seed: Seed::new(self.seed.draw()) }
    }

    pub(crate) fn bytes(&mut self) -> [u8; 32] {
        hmac_sha256(&self.secret, &[b"number", &self.seed.draw().to_be_bytes()])
    }

    pub(crate) fn u64(&mut self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.bytes();
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    /// A verification tag, which is not zero.
    pub(crate) fn tag(&mut self) -> u32 {
        (self.u64() as u32).max(1)
    }

    /// The seal of a cookie that was made at `made`. Its key changes every [`KEY_LIFE`] (RFC 9260, section 5.1.3): whoever finds
    /// one out can forge no cookie of another period.
    pub(crate) fn seal(&self, made: Instant, cookie: &[u8]) -> [u8; 32] {
        let period = made.since(Instant::ZERO).as_secs() / KEY_LIFE.as_secs();
        let key = Key::new(hmac_sha256(&self.secret, &[b"cookie key", &period.to_be_bytes()]));
        hmac_sha256(&key, &[b"cookie", cookie])
    }
}
