//! What one end of the conversation has said and heard. It belongs to the service, not to a host: it moves.

use sha2::{Digest, Sha256};
use wire::Seed;

/// A stream that never ends, the same for everybody who knows the seed, and what came from the other side.
#[derive(Clone, Debug)]
pub(crate) struct Voice {
    words: Seed,
    said: (u64, Sha256),
    heard: (u64, Sha256),
}

impl Voice {
    pub(crate) fn new(seed: u64) -> Self {
        Self { words: Seed::new(seed), said: Default::default(), heard: Default::default() }
    }

    /// The next bytes of the stream.
    pub(crate) fn say(&mut self, len: usize) -> Vec<u8> {
        let bytes: Vec<u8> = (0..len).map(|_| self.words.draw() as u8).collect();
        add(&mut self.said, &bytes);
        bytes
    }

    pub(crate) fn hear(&mut self, bytes: &[u8]) {
        add(&mut self.heard, bytes);
    }

    /// How many bytes were said, and their SHA-256.
    pub(crate) fn said(&self) -> (u64, String) {
        sum(&self.said)
    }

    /// How many bytes were heard, and their SHA-256.
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
