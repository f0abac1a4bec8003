//! What a home agent learns about its tunnels from ICMP (RFC 2003, section 4): the path MTU to each care-of address, for
//! a time, and errors that the sender of what was inside has to be told of.

use node::Expiry;
use std::collections::BTreeMap;
use wire::icmp::{self, IcmpError, Quote};
use wire::ipv4;
use wire::{Duration, Instant, Ipv4Addr, Reason};

/// An error about a packet that did not come from here.
pub(crate) const NOT_ABOUT_A_TUNNEL: Reason = Reason("not_about_a_tunnel");

/// How long a path MTU is believed after it was last reported (RFC 1191, section 6.3).
const BELIEVED: Duration = Duration::from_mins(10);
/// The smallest MTU inside a tunnel that a report may cause: what every link takes, less the outer header. An error that
/// quotes a tunnel's two addresses is easily forged.
pub(crate) const SMALLEST: u16 = 548;

/// What an ICMP error says about a tunnel.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    /// The exit of the tunnel.
    pub(crate) care_of: Ipv4Addr,
    /// What the sender of the inner datagram is to be told, if anything.
    pub(crate) error: Option<IcmpError>,
    /// What is quoted of the inner datagram.
    pub(crate) inner: &'a [u8],
}

impl<'a> Report<'a> {
    /// How much fits into the tunnel, if that is what it says.
    pub(crate) const fn mtu(&self) -> Option<u16> {
        match self.error {
            Some(IcmpError::FragmentationNeeded { mtu }) => Some(mtu),
            _ => None,
        }
    }

    /// The report in an ICMP message about a tunnel that begins at `own`.
    pub(crate) fn parse(icmp: &'a [u8], own: Ipv4Addr) -> Result<Self, Reason> {
        let message = icmp::Message::parse(icmp)?;
        let quote = Quote::of(&message)?;
        if quote.protocol != ipv4::IPIP || quote.src != own {
            return Err(NOT_ABOUT_A_TUNNEL);
        }
        let error = match (quote.kind, quote.code) {
            // An old router does not say how much fits.
            (3, 4) => Some(IcmpError::FragmentationNeeded { mtu: quote.mtu }.through_tunnel()),
            (3, 0 | 1 | 2 | 6..=12) | (11, 0) => Some(IcmpError::HostUnreachable),
            _ => None,
        };
        let error = error.map(|error| match error {
            IcmpError::FragmentationNeeded { mtu } => {
                IcmpError::FragmentationNeeded { mtu: mtu.max(SMALLEST) }
            }
            other => other,
        });
        Ok(Self { care_of: quote.dst, error, inner: quote.payload })
    }
}

/// The tunnels that there are, by their exits, and the path MTUs that were reported.
#[derive(Debug, Default)]
pub(crate) struct Tunnels {
    /// How many mobile nodes are at each care-of address.
    bound: BTreeMap<Ipv4Addr, usize>,
    mtu: BTreeMap<Ipv4Addr, u16>,
    expiry: Expiry<Ipv4Addr>,
}

impl Tunnels {
    /// Takes in that `mtu` fits into the tunnel to `care_of`. Whether that changes anything.
    pub(crate) fn lower(&mut self, now: Instant, care_of: Ipv4Addr, mtu: u16) -> bool {
        let known = self.mtu.get(&care_of).copied();
        if known.is_some_and(|known| known < mtu) {
            return false;
        }
        self.expiry.set(care_of, now + BELIEVED);
        self.mtu.insert(care_of, mtu);
        known != Some(mtu)
    }

    /// The largest datagram that fits into the tunnel to `care_of`; `configured` where nothing is known.
    pub(crate) fn mtu(&self, care_of: Ipv4Addr, configured: u16) -> u16 {
        self.mtu.get(&care_of).map_or(configured, |known| configured.min(*known))
    }

    /// When the next report is forgotten.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.expiry.next()
    }

    /// Forgets one that is no longer believed.
    pub(crate) fn expired(&mut self, now: Instant) -> Option<Ipv4Addr> {
        let care_of = self.expiry.pop(now)?;
        self.mtu.remove(&care_of);
        Some(care_of)
    }

    /// Whether a mobile node is there.
    pub(crate) fn is_exit(&self, care_of: Ipv4Addr) -> bool {
        self.bound.contains_key(&care_of)
    }

    /// A mobile node is bound to another care-of address than before. What is known of a tunnel ends with its last one.
    pub(crate) fn rebind(&mut self, from: Option<Ipv4Addr>, to: Option<Ipv4Addr>) {
        if let Some(care_of) = to {
            *self.bound.entry(care_of).or_default() += 1;
        }
        let Some(care_of) = from else { return };
        if let Some(count) = self.bound.get_mut(&care_of) {
            *count -= 1;
            if *count == 0 {
                self.bound.remove(&care_of);
                self.mtu.remove(&care_of);
                self.expiry.stop(care_of);
            }
        }
    }
}
