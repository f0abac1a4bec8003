//! The bytes sent and received by one end of the conversation. They belong to the service, not to a host, so they move
//! with the service.

use sha2::{Digest, Sha256};
use wire::Rng;

/// An endless stream that is determined by its seed, and the bytes received from the other end.
#[derive(Clone, Debug)]
pub(crate) struct Voice {
    words: Rng,
    said: (u64, Sha256),
    heard: (u64, Sha256),
}

impl Voice {
    pub(crate) fn new(seed: u64) -> Self {
        Self { words: Rng::new(seed), said: Default::default(), heard: Default::default() }
    }

    /// Returns the next bytes of the stream.
    pub(crate) fn say(&mut self, len: usize) -> Vec<u8> {
        let bytes: Vec<u8> = (0..len).map(|_| self.words.draw() as u8).collect();
        add(&mut self.said, &bytes);
        bytes
    }

    pub(crate) fn hear(&mut self, bytes: &[u8]) {
        add(&mut self.heard, bytes);
    }

    /// Returns the number of bytes sent, and their SHA-256.
    pub(crate) fn said(&self) -> (u64, String) {
        sum(&self.said)
    }

    /// Returns the number of bytes received, and their SHA-256.
    pub(crate) fn heard(&self) -> (u64, String) {
        sum(&self.heard)
    }
}

fn add((count, digest): &mut (u64, Sha256), bytes: &[u8]) {
    *count += bytes.len() as u64;
    digest.update(bytes);
}

fn sum((count, digest): &(u64, Sha256)) -> (u64, String) {
    (*count, trace::hex(&digest.clone().finalize()))
}
