//! AUTH: the key of an association, and authentication with it (RFC 4895).

use crate::message::{Auth, Chunk, Init, Parameter, RANDOM, kind};
use crate::{Config, Hmac};
use auth::{Key, equal, hmac_sha1, hmac_sha256};

/// Offset of the HMAC in an AUTH chunk.
const CODE: usize = 8;

/// Returns the parameters of INIT or INIT ACK about extensions and AUTH.
pub(crate) fn parameters(config: &Config, random: [u8; RANDOM]) -> [Parameter; 4] {
    let mut listed = vec![kind::ASCONF, kind::ASCONF_ACK];
    if config.pair_key.is_some() {
        // A host without the pair key must not open or restart an association (RFC 5062, section 4). So each end must
        // authenticate its part of the handshake.
        listed.extend([kind::COOKIE_ECHO, kind::COOKIE_ACK]);
    }
    [
        Parameter::Extensions(vec![kind::ASCONF, kind::ASCONF_ACK, kind::AUTH]),
        Parameter::Random(random.to_vec()),
        Parameter::ChunkList(listed),
        Parameter::HmacAlgorithms(config.hmacs.iter().map(|hmac| hmac.id()).collect()),
    ]
}

/// Returns the key vector of an end: its parameters RANDOM, CHUNKS and HMAC-ALGO, without padding. Missing parameters
/// are left out (RFC 4895, section 6.1).
fn vector(init: &Init) -> Vec<u8> {
    let of = |kind: u16| init.parameters.iter().find(|parameter| parameter.kind() == kind);
    [0x8002, 0x8003, 0x8004].into_iter().filter_map(of).flat_map(Parameter::emit).collect()
}

fn random(init: &Init) -> Option<&[u8]> {
    init.parameters.iter().find_map(|parameter| match parameter {
        Parameter::Random(random) => Some(random.as_slice()),
        _ => None,
    })
}

fn hmacs(init: &Init) -> &[u16] {
    let list = init.parameters.iter().find_map(|parameter| match parameter {
        Parameter::HmacAlgorithms(list) => Some(list.as_slice()),
        _ => None,
    });
    list.unwrap_or_default()
}

/// The extensions that a peer's INIT or INIT ACK offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Offer {
    /// The peer offers no address changes.
    Plain,
    /// The peer offers address changes with authentication.
    Authenticated,
    /// The peer offers address changes without authentication, so the association must be refused (RFC 5061, section
    /// 6).
    Unsafe,
    /// RANDOM is not 32 bytes long (RFC 4895, section 6.1), or SHA-1 is missing (RFC 4895, section 3.3).
    Broken,
}

pub(crate) fn offer(init: &Init) -> Offer {
    let authenticates = init.extends(kind::AUTH) && random(init).is_some() && !hmacs(init).is_empty();
    let wants = init.extends(kind::ASCONF);
    match random(init) {
        Some(bytes) if bytes.len() != RANDOM => Offer::Broken,
        Some(_) if !hmacs(init).contains(&Hmac::Sha1.id()) => Offer::Broken,
        _ if wants && !authenticates => Offer::Unsafe,
        _ if wants => Offer::Authenticated,
        _ => Offer::Plain,
    }
}

/// Why an AUTH chunk is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AuthFailure {
    /// The chunk uses an algorithm that was not offered. The sender is notified (RFC 4895, section 6.3).
    Algorithm,
    /// The chunk has another key identifier than ours.
    KeyId,
    /// The HMAC is wrong.
    Code,
}

#[derive(Clone, Debug)]
pub(crate) struct Keys {
    key: Key,
    key_id: u16,
    /// The algorithm of our HMACs.
    hmac: Hmac,
    offered: Vec<Hmac>,
    /// Chunk types that the peer accepts only if they are authenticated.
    wanted: Vec<u8>,
    /// Chunk types that this end accepts only if they are authenticated.
    ours: Vec<u8>,
}

impl Keys {
    /// Derives the key of an association (RFC 4895, section 6.1). `None` if the peer sent no RANDOM, or lists no HMAC
    /// algorithm that this crate knows.
    pub(crate) fn derive(config: &Config, ours: &Init, peers: &Init) -> Option<Self> {
        random(peers)?;
        let hmac = hmacs(peers).iter().find_map(|id| Hmac::of(*id))?;
        let (mut small, mut large) = (vector(ours), vector(peers));
        // RFC 4895, section 6.1, compares the vectors as big-endian numbers. A vector begins with 0x80, so the longer
        // vector is the larger number.
        if (small.len(), &small) > (large.len(), &large) {
            std::mem::swap(&mut small, &mut large);
        }
        let (key_id, pair) = config.pair_key.as_ref().map_or((0, &[][..]), |(id, key)| (*id, key.as_bytes()));
        let list = |init: &Init| {
            let lists = init.parameters.iter().filter_map(|parameter| match parameter {
                Parameter::ChunkList(list) => Some(list.as_slice()),
                _ => None,
            });
            let listed: Vec<u8> = lists.flatten().copied().collect();
            listed
        };
        Some(Self {
            key: Key::new([pair, &small, &large].concat()),
            key_id,
            hmac,
            offered: config.hmacs.clone(),
            wanted: list(peers),
            ours: list(ours),
        })
    }

    /// Returns whether the peer accepts chunks of type `kind` only if they are authenticated. False for INIT, INIT ACK,
    /// SHUTDOWN COMPLETE and AUTH, which cannot be authenticated (RFC 4895, section 3.2).
    pub(crate) fn peer_wants(&self, kind: u8) -> bool {
        listable(kind) && self.wanted.contains(&kind)
    }

    /// Returns whether this end accepts chunks of type `kind` only if they are authenticated.
    pub(crate) fn we_want(&self, kind: u8) -> bool {
        listable(kind) && self.ours.contains(&kind)
    }

    /// Returns an AUTH chunk whose HMAC is still zero.
    pub(crate) fn chunk(&self) -> Chunk {
        Chunk::Auth(Auth { key_id: self.key_id, hmac_id: self.hmac.id(), hmac: vec![0; self.hmac.len()] })
    }

    /// Returns the HMAC of `covered`: a packet from its AUTH chunk to its end, with zeros in place of the HMAC.
    pub(crate) fn sign(&self, covered: &[u8]) -> Vec<u8> {
        code(self.hmac, &self.key, &[covered])
    }

    /// Verifies an AUTH chunk. `covered`: the packet from the AUTH chunk to its end.
    pub(crate) fn verify(&self, auth: &Auth, covered: &[u8]) -> Result<(), AuthFailure> {
        let hmac = Hmac::of(auth.hmac_id)
            .filter(|hmac| self.offered.contains(hmac))
            .ok_or(AuthFailure::Algorithm)?;
        if auth.key_id != self.key_id {
            return Err(AuthFailure::KeyId);
        }
        let (head, rest) = covered.split_at_checked(CODE).ok_or(AuthFailure::Code)?;
        let behind = rest.get(auth.hmac.len()..).ok_or(AuthFailure::Code)?;
        let zeros = vec![0; auth.hmac.len()];
        let expected = code(hmac, &self.key, &[head, &zeros, behind]);
        if equal(&expected, &auth.hmac) { Ok(()) } else { Err(AuthFailure::Code) }
    }
}

const fn listable(kind: u8) -> bool {
    !matches!(kind, kind::INIT | kind::INIT_ACK | kind::SHUTDOWN_COMPLETE | kind::AUTH)
}

fn code(hmac: Hmac, key: &Key, parts: &[&[u8]]) -> Vec<u8> {
    match hmac {
        Hmac::Sha1 => hmac_sha1(key, parts).to_vec(),
        Hmac::Sha256 => hmac_sha256(key, parts).to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn init(config: &Config, byte: u8) -> Init {
        Init { parameters: parameters(config, [byte; RANDOM]).to_vec(), ..Init::default() }
    }

    /// RFC 4895, section 6.1: the key is the pair key, the smaller vector and the larger vector. It does not contain
    /// padding, which a list of two chunk types has on the wire.
    #[test]
    fn the_key_is_put_together_as_the_rfc_says() {
        let config = Config { pair_key: Some((7, Key::new(*b"pair"))), ..Config::default() };
        let plain = Config::default();
        let (a, b) = (init(&plain, 1), init(&plain, 2));
        let tail = [0x80, 3, 0, 6, 0xc1, 0x80, 0x80, 4, 0, 8, 0, 3, 0, 1];
        let side = |byte| [&[0x80, 2, 0, 36][..], &[byte; 32], &tail].concat();
        let expected = Key::new([side(1), side(2)].concat());
        for (ours, peers) in [(&a, &b), (&b, &a)] {
            assert_eq!(Keys::derive(&plain, ours, peers).unwrap().key, expected);
        }
        let keys = Keys::derive(&config, &a, &b).unwrap();
        assert_eq!(keys.key, Key::new([b"pair".to_vec(), side(1), side(2)].concat()));
        assert_eq!(keys.key_id, 7);
    }

    /// RFC 4895, section 6.1: this end uses the first algorithm of the peer's list that it supports.
    #[test]
    fn the_peers_preference_counts() {
        let config = Config::default();
        let sha1 = Config { hmacs: vec![Hmac::Sha1], ..Config::default() };
        let hmac = |peers: &Config| Keys::derive(&config, &init(&config, 1), &init(peers, 2)).unwrap().hmac;
        assert_eq!((hmac(&config), hmac(&sha1)), (Hmac::Sha256, Hmac::Sha1));
        let mut other = init(&config, 2);
        other.parameters[3] = Parameter::HmacAlgorithms(vec![9]);
        assert!(Keys::derive(&config, &init(&config, 1), &other).is_none());
    }

    #[test]
    fn an_offer_is_judged() {
        let good = init(&Config::default(), 1);
        assert_eq!(offer(&good), Offer::Authenticated);
        assert_eq!(offer(&Init::default()), Offer::Plain);
        let without = |kind: u16| {
            let kept = good.parameters.iter().filter(|parameter| parameter.kind() != kind).cloned();
            Init { parameters: kept.collect(), ..Init::default() }
        };
        assert_eq!(offer(&without(0x8002)), Offer::Unsafe);
        assert_eq!(offer(&without(0x8004)), Offer::Broken);
        let mut short = good.clone();
        short.parameters[1] = Parameter::Random(vec![1; 31]);
        assert_eq!(offer(&short), Offer::Broken);
    }
}
