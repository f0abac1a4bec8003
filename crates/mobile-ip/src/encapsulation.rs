//! How datagrams are carried in tunnels: what agents offer, what a mobile node asks for, and what both ends use then (RFC
//! 5944, sections 2.1.1 and 3.3). IP in IP is always available. Flag M asks for minimal encapsulation, flag G for GRE.
//!
//! A reverse tunnel is of the same kind as the tunnel to the care-of address (RFC 3024, section 1.2).

use crate::message::{AgentFlags, RequestFlags};
use schemars::JsonSchema;
use serde::Deserialize;
use wire::tunnel::{Kind, Kinds};

/// A kind of tunnel that an agent can offer besides IP in IP.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Alternate {
    /// Minimal encapsulation (RFC 2004): 12 bytes more per datagram instead of 20. Fragments are carried as IP in IP.
    Minimal,
    /// Generic routing encapsulation (RFC 2784): 24 bytes more per datagram.
    Gre,
}

/// The kind of tunnel that a mobile node asks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Encapsulation {
    /// IP in IP (RFC 2003): 20 bytes more per datagram.
    #[default]
    IpInIp,
    /// Minimal encapsulation (RFC 2004, flag M): 12 bytes more per datagram. Fragments are carried as IP in IP.
    Minimal,
    /// Generic routing encapsulation (RFC 2784, flag G): 24 bytes more per datagram.
    Gre,
}

/// The flags of a request that ask for another kind of tunnel than IP in IP.
pub(crate) const ALTERNATES: RequestFlags = RequestFlags(RequestFlags::MINIMAL.0 | RequestFlags::GRE.0);

impl Encapsulation {
    /// Returns the flag that asks for this kind; no flag for IP in IP.
    pub(crate) const fn asks(self) -> RequestFlags {
        match self {
            Self::IpInIp => RequestFlags(0),
            Self::Minimal => RequestFlags::MINIMAL,
            Self::Gre => RequestFlags::GRE,
        }
    }

    /// Returns the flag with which an agent offers this kind; no flag for IP in IP.
    pub(crate) const fn offered_by(self) -> AgentFlags {
        match self {
            Self::IpInIp => AgentFlags(0),
            Self::Minimal => AgentFlags::MINIMAL,
            Self::Gre => AgentFlags::GRE,
        }
    }
}

/// Returns the flags of the advertisements of an agent that offers these kinds.
pub(crate) fn advertised(offers: &[Alternate]) -> AgentFlags {
    let has = |alternate| offers.contains(&alternate);
    AgentFlags::default()
        .with(AgentFlags::MINIMAL, has(Alternate::Minimal))
        .with(AgentFlags::GRE, has(Alternate::Gre))
}

/// Returns whether an agent that offers these kinds can serve a request with these flags. With both flags, it must offer
/// both kinds, because the other end of the tunnel may choose either.
pub(crate) fn are_available(offers: &[Alternate], flags: RequestFlags) -> bool {
    let has = |alternate| offers.contains(&alternate);
    (!flags.has(RequestFlags::MINIMAL) || has(Alternate::Minimal))
        && (!flags.has(RequestFlags::GRE) || has(Alternate::Gre))
}

/// Returns the kind of the tunnels of a registration with these flags. With both flags, it is the one that adds fewer bytes.
pub(crate) const fn kind(flags: RequestFlags) -> Kind {
    if flags.has(RequestFlags::MINIMAL) {
        Kind::Minimal
    } else if flags.has(RequestFlags::GRE) {
        Kind::Gre
    } else {
        Kind::IpInIp
    }
}

/// Returns the kinds in which datagrams arrive from the tunnels of a registration with these flags: those that were agreed
/// (RFC 3024, section 4.3.2).
pub(crate) const fn opened(flags: RequestFlags) -> Kinds {
    let kinds = Kinds::from_tunnel(kind(flags));
    if flags.has(RequestFlags::GRE) { kinds.and(Kinds::of(Kind::Gre)) } else { kinds }
}

/// Returns all kinds that an agent with these offers opens.
pub(crate) fn all_opened(offers: &[Alternate]) -> Kinds {
    let alternates = offers.iter().map(|offer| match offer {
        Alternate::Minimal => Kind::Minimal,
        Alternate::Gre => Kind::Gre,
    });
    alternates.map(Kinds::of).fold(Kinds::of(Kind::IpInIp), Kinds::and)
}

/// Returns the name, in a role's status, of the kind of the tunnels of a registration with these flags: that of
/// [`Encapsulation`] in a configuration.
pub(crate) const fn name_of(flags: RequestFlags) -> &'static str {
    match kind(flags) {
        Kind::IpInIp => "ip-in-ip",
        Kind::Minimal => "minimal",
        Kind::Gre => "gre",
    }
}

/// Returns the largest datagram inside a tunnel of this kind, in bytes, if the largest one inside a tunnel by IP in IP has
/// `ip_in_ip` bytes.
pub(crate) const fn room(kind: Kind, ip_in_ip: u16) -> u16 {
    ip_in_ip.saturating_add(Kind::IpInIp.overhead() as u16).saturating_sub(kind.overhead() as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Alternate; 2] = [Alternate::Minimal, Alternate::Gre];

    #[test]
    fn a_request_gets_a_kind_that_the_agent_offers() {
        let flags = [0, 0x10, 0x08, 0x18].map(RequestFlags);
        let available = |offers: &[Alternate]| flags.map(|flags| are_available(offers, flags));
        assert_eq!(available(&[]), [true, false, false, false]);
        assert_eq!(available(&[Alternate::Gre]), [true, false, true, false]);
        assert_eq!(available(&BOTH), [true; 4]);
        assert_eq!(flags.map(kind), [Kind::IpInIp, Kind::Minimal, Kind::Gre, Kind::Minimal]);
        assert_eq!(flags.map(|flags| opened(flags).bits()), [1, 3, 4, 7]);
        assert_eq!(all_opened(&BOTH), Kinds::ALL);
        assert_eq!(all_opened(&[]), Kinds::of(Kind::IpInIp));
    }

    #[test]
    fn the_room_in_a_tunnel_is_what_its_headers_leave() {
        assert_eq!([Kind::IpInIp, Kind::Minimal, Kind::Gre].map(|kind| room(kind, 1480)), [1480, 1488, 1476]);
    }
}
