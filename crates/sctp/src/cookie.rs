//! The state cookie contains the state that an INIT would create. The peer keeps the cookie, so the listening endpoint
//! keeps no state (RFC 9260, section 5.1.3).

use crate::message::{Init, RANDOM};
use crate::secret_rng::SecretRng;
use auth::equal;
use wire::{Instant, Ipv4Addr, Malformed, Reader};

/// Length of the MAC at the front of a cookie, in bytes.
const SEAL: usize = 32;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cookie {
    pub(crate) made: Instant,
    /// The peer's address: the source of its INIT, and the destination of INIT ACK.
    pub(crate) remote: Ipv4Addr,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    /// Tie-tags of the association that matched the INIT. Zero if there was none, or if it was in COOKIE-WAIT (RFC
    /// 9260, sections 5.2.1 and 5.2.2).
    pub(crate) ties: (u32, u32),
    pub(crate) tag: u32,
    pub(crate) tsn: u32,
    pub(crate) random: [u8; RANDOM],
    /// Our addresses that the INIT ACK lists. Empty if our only address is the source of the INIT ACK.
    pub(crate) locals: Vec<Ipv4Addr>,
    /// The peer's INIT.
    pub(crate) init: Init,
}

impl Cookie {
    pub(crate) fn emit(&self, rng: &SecretRng) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend_from_slice(&self.made.0.to_be_bytes());
        body.extend_from_slice(&self.remote.octets());
        body.extend_from_slice(&self.local_port.to_be_bytes());
        body.extend_from_slice(&self.remote_port.to_be_bytes());
        for number in [self.ties.0, self.ties.1, self.tag, self.tsn] {
            body.extend_from_slice(&number.to_be_bytes());
        }
        body.extend_from_slice(&self.random);
        body.extend_from_slice(&(self.locals.len() as u16).to_be_bytes());
        for address in &self.locals {
            body.extend_from_slice(&address.octets());
        }
        body.extend_from_slice(&self.init.to_bytes());
        [&rng.seal(self.made, &body)[..], &body].concat()
    }

    /// Parses a cookie. Fails if the cookie is truncated, or if its MAC was not made with our key for the time
    /// `made`.
    pub(crate) fn open(bytes: &[u8], rng: &SecretRng) -> Result<Self, Malformed> {
        let (seal, body) = bytes.split_at_checked(SEAL).ok_or(Malformed("sctp_cookie_truncated"))?;
        let mut r = Reader::new(body, Malformed("sctp_cookie_truncated"));
        let made = Instant(r.u64()?);
        if !equal(seal, &rng.seal(made, body)) {
            return Err(Malformed("sctp_cookie_forged"));
        }
        let remote = r.array::<4>()?.into();
        let (local_port, remote_port) = (r.u16()?, r.u16()?);
        let ties = (r.u32()?, r.u32()?);
        let (tag, tsn, random) = (r.u32()?, r.u32()?, r.array()?);
        let count = r.u16()?;
        let locals = (0..count).map(|_| r.array::<4>().map(Ipv4Addr::from)).collect::<Result<_, _>>()?;
        let init = Init::from_bytes(r.rest())?;
        Ok(Self { made, remote, local_port, remote_port, ties, tag, tsn, random, locals, init })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Parameter;
    use auth::Key;
    use wire::Rng;

    fn cookie() -> Cookie {
        Cookie {
            made: Instant(77),
            remote: Ipv4Addr::new(10, 2, 0, 1),
            local_port: 80,
            remote_port: 4000,
            ties: (1, 2),
            tag: 3,
            tsn: 4,
            random: [5; 32],
            locals: vec![Ipv4Addr::new(10, 1, 0, 7), Ipv4Addr::new(10, 1, 1, 7)],
            init: Init { tag: 6, parameters: vec![Parameter::Adaptation(9)], ..Init::default() },
        }
    }

    fn rng(secret: u8) -> SecretRng {
        SecretRng::new(Key::new([secret; 32]), Rng::new(1))
    }

    #[test]
    fn what_was_sealed_is_read_back_and_nothing_else() {
        let bytes = cookie().emit(&rng(1));
        assert_eq!(Cookie::open(&bytes, &rng(1)), Ok(cookie()));
        assert_eq!(Cookie::open(&bytes, &rng(2)), Err(Malformed("sctp_cookie_forged")));
        assert_eq!(Cookie::open(&bytes[..31], &rng(1)), Err(Malformed("sctp_cookie_truncated")));
        let later = Cookie { made: Instant::from_millis(3_600_000), ..cookie() }.emit(&rng(1));
        let moved = [&bytes[..SEAL], &later[SEAL..]].concat();
        assert_eq!(Cookie::open(&moved, &rng(1)), Err(Malformed("sctp_cookie_forged")), "another key");
        for at in 0..bytes.len() {
            let mut forged = bytes.clone();
            forged[at] ^= 1;
            assert_eq!(Cookie::open(&forged, &rng(1)), Err(Malformed("sctp_cookie_forged")));
        }
    }
}
