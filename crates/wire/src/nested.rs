//! The number of tunnels that a datagram is in. Without a limit, a datagram that two nodes send to each other through tunnels
//! grows by a header in each round, each with a new time to live, and is cut into more and more fragments.

use crate::Malformed;
use crate::ipv4::{self, Header};

/// The largest number of tunnels around a datagram. RFC 2003 has no limit; this is the one of RFC 2473, section 4.1.1, for
/// tunnels over IPv6.
const MOST: u8 = 4;

/// The offset of a fragment within the field of the flags.
const OFFSET: u16 = 0x1fff;
/// The bits of a GRE header that say that there are 4 bytes more: a checksum, a key and a number (RFC 2890, section 2).
const GRE_OPTIONS: u8 = 0xb0;
/// The bit of a minimal header that says that it has the source (RFC 2004, section 3.1).
const HAS_SOURCE: u8 = 0x80;

/// Fails if a datagram with this header is in as many tunnels as it may be, so that another one must not be added. Fragments
/// but the first one do not show their tunnels.
pub(crate) fn check(header: &Header, payload: &[u8]) -> Result<(), Malformed> {
    if header.offset == 0 && is_full(header.protocol, payload).unwrap_or(false) {
        return Err(Malformed("nested_tunnels"));
    }
    Ok(())
}

/// Returns whether there are [`MOST`] headers of tunnels in a row; `None` if the bytes end before.
fn is_full(mut protocol: u8, mut payload: &[u8]) -> Option<bool> {
    for _ in 1..MOST {
        let at = match protocol {
            ipv4::IPIP => 0,
            ipv4::GRE => 4 + 4 * (payload.first()? & GRE_OPTIONS).count_ones() as usize,
            ipv4::MINIMAL => {
                let len = if payload.get(1)? & HAS_SOURCE == 0 { 8 } else { 12 };
                protocol = *payload.first()?;
                payload = payload.get(len..)?;
                continue;
            }
            _ => return Some(false),
        };
        let inner = payload.get(at..)?;
        let flags = u16::from_be_bytes(inner.get(6..8)?.try_into().ok()?);
        if flags & OFFSET != 0 {
            return Some(false);
        }
        protocol = *inner.get(9)?;
        payload = inner.get(usize::from(inner.first()? & 0xf) * 4..)?;
    }
    Some(matches!(protocol, ipv4::IPIP | ipv4::GRE | ipv4::MINIMAL))
}

#[cfg(test)]
mod tests {
    use crate::tunnel::{Kind, encapsulate};
    use crate::{Ipv4Addr, Malformed, SocketAddrV4, fragment, udp};
    use alloc::vec::Vec;

    /// Puts the datagram into tunnels of these kinds, each with other ends, and returns the error of the first that is refused.
    fn nested(mut bytes: Vec<u8>, kinds: &[Kind]) -> (usize, Option<Malformed>) {
        for (number, kind) in kinds.iter().enumerate() {
            let [src, dst] = [1, 2].map(|last| Ipv4Addr::new(10, 9, number as u8, last));
            match encapsulate(*kind, &bytes, src, dst, 9) {
                Ok(outer) => bytes = outer,
                Err(refused) => return (number, Some(refused)),
            }
        }
        (kinds.len(), None)
    }

    fn datagram(len: usize) -> Vec<u8> {
        let [from, to] = [1, 2].map(|last| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, last), 9));
        udp::packet(from, to, &alloc::vec![0x45; len])
    }

    /// Of all kinds, in each order; the payload looks like headers of IP.
    #[test]
    fn a_datagram_is_in_four_tunnels_at_most() {
        let refused = Some(Malformed("nested_tunnels"));
        for number in 0..3_usize.pow(5) {
            let kinds: Vec<Kind> = (0..5).map(|at| Kind::ALL[number / 3_usize.pow(at) % 3]).collect();
            assert_eq!(nested(datagram(64), &kinds), (4, refused), "{kinds:?}");
        }
    }

    /// Each round of a circle adds a tunnel, and cuts what is too long for the next link.
    #[test]
    fn a_datagram_that_grows_in_a_circle_ends_after_few_packets() {
        let [src, dst] = [1, 2].map(|last| Ipv4Addr::new(10, 9, 0, last));
        let mut under_way = alloc::vec![datagram(1400)];
        let mut sent = 0;
        while let Some(inner) = under_way.pop() {
            let Ok(outer) = encapsulate(Kind::IpInIp, &inner, src, dst, sent) else { continue };
            sent += 1;
            assert!(sent < 100, "it does not end");
            if outer.len() <= 1440 {
                under_way.push(outer);
            } else {
                under_way.extend(fragment::pieces(&outer, 1440).unwrap());
            }
        }
        assert!(sent > 4, "{sent}");
    }
}
