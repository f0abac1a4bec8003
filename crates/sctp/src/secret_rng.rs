//! Random tags, nonces and keys, and the MAC of cookies.

use auth::{Key, hmac_sha256};
use wire::{Duration, Instant, Rng};

/// The time in which one key authenticates new cookies.
const KEY_LIFE: Duration = Duration::from_hours(1);

/// A generator of random numbers. [`Rng`] makes the sequence repeatable; the secret makes the sequence unpredictable
/// to other hosts, as RFC 9260, section 5.3.1, requires of tags.
#[derive(Clone, Debug)]
pub(crate) struct SecretRng {
    secret: Key,
    rng: Rng,
}

impl SecretRng {
    pub(crate) const fn new(secret: Key, rng: Rng) -> Self {
        Self { secret, rng }
    }

    /// Returns an independent generator with the same secret.
    pub(crate) fn fork(&mut self) -> Self {
        Self { secret: self.secret.clone(), rng: Rng::new(self.rng.draw()) }
    }

    pub(crate) fn bytes(&mut self) -> [u8; 32] {
        hmac_sha256(&self.secret, &[b"number", &self.rng.draw().to_be_bytes()])
    }

    pub(crate) fn u64(&mut self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.bytes();
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    /// Returns a random verification tag that is not zero.
    pub(crate) fn tag(&mut self) -> u32 {
        (self.u64() as u32).max(1)
    }

    /// Returns the MAC of a cookie that was made at `made`. The key of the MAC changes every [`KEY_LIFE`] (RFC 9260,
    /// section 5.1.3), so a disclosed key forges cookies of one period only.
    pub(crate) fn seal(&self, made: Instant, cookie: &[u8]) -> [u8; 32] {
        let period = made.since(Instant::ZERO).as_secs() / KEY_LIFE.as_secs();
        let key = Key::new(hmac_sha256(&self.secret, &[b"cookie key", &period.to_be_bytes()]));
        hmac_sha256(&key, &[b"cookie", cookie])
    }
}
