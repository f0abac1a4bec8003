//! What a home agent learns about its tunnels from ICMP errors (RFC 2003, sections 4 and 5.1): the path MTU to each
//! care-of address, whether it is reachable, and errors for the sender of the inner datagram.

use node::Expiry;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use wire::icmp::{self, IcmpError, Quote};
use wire::{Duration, Instant, Ipv4Addr, Reason, tunnel};

/// The reason to drop an ICMP error that does not quote a packet of one of this agent's tunnels.
pub(crate) const NOT_ABOUT_A_TUNNEL: Reason = Reason("not_about_a_tunnel");

/// The reason to drop an ICMP error about a packet in a tunnel: the error is of a kind that the senders of inner datagrams
/// do not get (RFC 2003, section 4).
pub(crate) const NOT_RELAYED: Reason = Reason("tunnel_error_not_relayed");

/// How long a path MTU, or that the exit is unreachable, is used after it was last reported (RFC 1191, section 6.3).
const BELIEVED: Duration = Duration::from_mins(10);
/// The smallest MTU inside a tunnel that a report or `tunnel_mtu` may set, in bytes (not from an RFC). With the outer
/// header, a packet has 568 bytes. Each host must accept 576 bytes (RFC 791, section 3.1). A smaller report counts as
/// this value, because an ICMP error is easily forged: it need only quote the tunnel's two addresses.
pub(crate) const SMALLEST_MTU: u16 = 548;

/// The content of an ICMP error about a packet in a tunnel.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    /// The care-of address, where the tunnel ends.
    pub(crate) care_of: Ipv4Addr,
    /// The error for the sender of the inner datagram; `None` if the sender gets no error.
    pub(crate) error: Option<IcmpError>,
    /// The quoted part of the inner datagram; empty if its source address is not quoted.
    pub(crate) inner: Cow<'a, [u8]>,
}

impl<'a> Report<'a> {
    /// Returns the MTU inside the tunnel in bytes; `None` unless the error says that the packet was too big.
    pub(crate) const fn mtu(&self) -> Option<u16> {
        match self.error {
            Some(IcmpError::FragmentationNeeded { mtu }) => Some(mtu),
            _ => None,
        }
    }

    /// Parses an ICMP error about a tunnel that begins at `own`. Fails with the reason to drop the ICMP error.
    pub(crate) fn parse(icmp: &'a [u8], own: Ipv4Addr) -> Result<Self, Reason> {
        let message = icmp::Message::parse(icmp)?;
        let quote = Quote::of(&message)?;
        let quoted = tunnel::quoted_inner(&quote).filter(|_| quote.src == own);
        let inner = quoted.ok_or(NOT_ABOUT_A_TUNNEL)?;
        let error = match (quote.kind, quote.code) {
            // A router older than RFC 1191 reports an MTU of 0. Then `SMALLEST_MTU` is used.
            (3, 4) => {
                let mtu = quote.mtu.saturating_sub(inner.overhead as u16).max(SMALLEST_MTU);
                Some(IcmpError::FragmentationNeeded { mtu })
            }
            // The sender gets neither "port unreachable" (3) nor "source route failed" (5) of the tunnel, nor source
            // quenches and redirects (RFC 2003, sections 4.1 to 4.4).
            (3, 0 | 1 | 2 | 6..=12) | (11, 0) => Some(IcmpError::HostUnreachable),
            (12, 0) => parameter_problem(message.body.first().copied().unwrap_or_default(), &inner),
            _ => None,
        };
        Ok(Self { care_of: quote.dst, error, inner: inner.bytes })
    }
}

/// Returns the error for the sender of the inner datagram about the byte `pointer` of the outer datagram, or `None` if
/// the byte does not come from the inner datagram (RFC 2003, section 4.6).
fn parameter_problem(pointer: u8, inner: &tunnel::QuotedInner<'_>) -> Option<IcmpError> {
    const TOS: u8 = 1;
    let pointer = if pointer == TOS { TOS } else { pointer.checked_sub(inner.overhead as u8)? };
    Some(IcmpError::ParameterProblem { pointer })
}

/// The tunnels in use, by their exits, and the reported path MTUs.
#[derive(Debug, Default)]
pub(crate) struct Tunnels {
    /// Number of mobile nodes at each care-of address.
    bound: BTreeMap<Ipv4Addr, usize>,
    mtu: BTreeMap<Ipv4Addr, u16>,
    /// Exits that are unreachable, as errors said whose inner sender is not known.
    failing: BTreeSet<Ipv4Addr>,
    expiry: Expiry<(Ipv4Addr, Learnt)>,
}

/// A kind of knowledge about a tunnel. Each expires separately.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Learnt {
    Mtu,
    Failing,
}

impl Tunnels {
    /// Records an MTU of the tunnel to `care_of` for [`BELIEVED`], unless a smaller one is known. Returns whether the
    /// known MTU changed.
    pub(crate) fn lower(&mut self, now: Instant, care_of: Ipv4Addr, mtu: u16) -> bool {
        let known = self.mtu.get(&care_of).copied();
        if known.is_some_and(|known| known < mtu) {
            return false;
        }
        self.expiry.set((care_of, Learnt::Mtu), now + BELIEVED);
        self.mtu.insert(care_of, mtu);
        known != Some(mtu)
    }

    /// Returns the MTU inside the tunnel to `care_of`: the smaller of the reported one and `configured`.
    pub(crate) fn mtu(&self, care_of: Ipv4Addr, configured: u16) -> u16 {
        self.mtu.get(&care_of).map_or(configured, |known| configured.min(*known))
    }

    /// Records that the exit `care_of` is unreachable, for [`BELIEVED`]. Returns whether that was not known.
    pub(crate) fn fail(&mut self, now: Instant, care_of: Ipv4Addr) -> bool {
        self.expiry.set((care_of, Learnt::Failing), now + BELIEVED);
        self.failing.insert(care_of)
    }

    /// Returns whether the exit is known to be unreachable, and the senders have to be notified.
    pub(crate) fn is_failing(&self, care_of: Ipv4Addr) -> bool {
        self.failing.contains(&care_of)
    }

    /// Forgets that the exit is unreachable: a registration came from there.
    pub(crate) fn recover(&mut self, care_of: Ipv4Addr) {
        if self.failing.remove(&care_of) {
            self.expiry.stop((care_of, Learnt::Failing));
        }
    }

    /// Returns when the next item of knowledge expires; `None` if nothing is known.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.expiry.next()
    }

    /// Removes an item that has expired, and returns the tunnel's exit; `None` if none has expired.
    pub(crate) fn expired(&mut self, now: Instant) -> Option<Ipv4Addr> {
        let (care_of, learnt) = self.expiry.pop(now)?;
        match learnt {
            Learnt::Mtu => drop(self.mtu.remove(&care_of)),
            Learnt::Failing => drop(self.failing.remove(&care_of)),
        }
        Some(care_of)
    }

    /// Returns whether a mobile node is bound to this care-of address.
    pub(crate) fn is_exit(&self, care_of: Ipv4Addr) -> bool {
        self.bound.contains_key(&care_of)
    }

    /// Moves a mobile node from one care-of address to another; `None` means no binding. When the last mobile node
    /// leaves a care-of address, all that is known about this address is removed.
    pub(crate) fn rebind(&mut self, from: Option<Ipv4Addr>, to: Option<Ipv4Addr>) {
        if let Some(care_of) = to {
            self.recover(care_of);
            *self.bound.entry(care_of).or_default() += 1;
        }
        let Some(care_of) = from else { return };
        if let Some(count) = self.bound.get_mut(&care_of) {
            *count -= 1;
            if *count == 0 {
                self.bound.remove(&care_of);
                self.mtu.remove(&care_of);
                self.expiry.stop((care_of, Learnt::Mtu));
                self.recover(care_of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::icmp::Message;
    use wire::ipv4::{self, Header};
    use wire::tunnel::{Kind, encapsulate};

    const OWN: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
    const CARE_OF: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 1);
    const SENDER: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);
    const HOME: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);

    /// Returns an ICMP error of this type and code about a packet in a tunnel of this kind.
    fn error(kind: Kind, (number, code): (u8, u8), rest: [u8; 4]) -> Vec<u8> {
        let inner = Header::new(ipv4::UDP, SENDER, HOME).emit(&[7; 100]);
        let outer = encapsulate(kind, &inner, OWN, CARE_OF, 9).unwrap();
        Message { kind: number, code, body: &[&rest[..], &outer].concat() }.emit()
    }

    /// Each row of RFC 2003, section 4.
    #[test]
    fn each_error_in_a_tunnel_becomes_that_of_the_inner_datagram() {
        let unreachable = Some(IcmpError::HostUnreachable);
        let pointer = |pointer| Some(IcmpError::ParameterProblem { pointer });
        let too_big = Some(IcmpError::FragmentationNeeded { mtu: 1380 });
        for (number, code, rest, expected) in [
            (3, 0, [0; 4], unreachable),
            (3, 1, [0; 4], unreachable),
            (3, 2, [0; 4], unreachable),
            (3, 3, [0; 4], None),
            (3, 4, [0, 0, 5, 120], too_big),
            (3, 4, [0; 4], Some(IcmpError::FragmentationNeeded { mtu: SMALLEST_MTU })),
            (3, 5, [0; 4], None),
            (3, 13, [0; 4], None),
            (4, 0, [0; 4], None),
            (5, 1, [0; 4], None),
            (11, 0, [0; 4], unreachable),
            (11, 1, [0; 4], None),
            (12, 0, [1, 0, 0, 0], pointer(1)),
            (12, 0, [9, 0, 0, 0], None),
            (12, 0, [22, 0, 0, 0], pointer(2)),
        ] {
            let bytes = error(Kind::IpInIp, (number, code), rest);
            let report = Report::parse(&bytes, OWN).unwrap();
            assert_eq!((report.care_of, report.error), (CARE_OF, expected), "{number}/{code} {rest:?}");
        }
    }

    #[test]
    fn an_error_about_another_kind_of_tunnel_has_another_mtu() {
        for (kind, mtu) in [(Kind::Minimal, 1388), (Kind::Gre, 1376)] {
            let bytes = error(kind, (3, 4), [0, 0, 5, 120]);
            let report = Report::parse(&bytes, OWN).unwrap();
            assert_eq!(report.mtu(), Some(mtu));
            let told = report.error.unwrap().about_quoted(&report.inner, OWN).unwrap();
            assert_eq!(Header::parse(&told).unwrap().0.dst, SENDER);
            assert_eq!(Report::parse(&bytes, HOME).unwrap_err(), NOT_ABOUT_A_TUNNEL);
        }
    }

    #[test]
    fn what_is_learnt_of_an_exit_expires_or_ends_with_its_last_binding() {
        let mut tunnels = Tunnels::default();
        let at = |minutes| Instant::ZERO + Duration::from_mins(minutes);
        tunnels.rebind(None, Some(CARE_OF));
        assert!(tunnels.fail(at(0), CARE_OF) && !tunnels.fail(at(1), CARE_OF));
        assert!(tunnels.lower(at(2), CARE_OF, 1380) && tunnels.is_failing(CARE_OF));
        assert_eq!((tunnels.due(), tunnels.expired(at(10))), (Some(at(11)), None));
        assert_eq!((tunnels.expired(at(11)), tunnels.is_failing(CARE_OF)), (Some(CARE_OF), false));
        assert_eq!((tunnels.mtu(CARE_OF, 1480), tunnels.due()), (1380, Some(at(12))));
        assert!(tunnels.fail(at(11), CARE_OF));
        tunnels.rebind(Some(CARE_OF), None);
        assert_eq!((tunnels.mtu(CARE_OF, 1480), tunnels.is_failing(CARE_OF)), (1480, false));
        assert_eq!(tunnels.due(), None);
    }
}
