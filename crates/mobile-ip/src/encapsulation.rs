//! How datagrams are carried in tunnels: what agents offer, what a mobile node asks for, and what both ends use then (RFC
//! 5944, sections 2.1.1 and 3.3). IP in IP is always available. Flag M asks for minimal encapsulation, flag G for GRE.
//!
//! A reverse tunnel is of the same kind as the tunnel to the care-of address (RFC 3024, section 1.2).

use crate::message::{AgentFlags, RequestFlags};
use node::config::ConfigError;
use schemars::{Schema, SchemaGenerator, json_schema};
use wire::tunnel::{Kind, Kinds};

/// Returns the schema of a kind of tunnel, as it is written in a configuration.
pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": Kind::ALL.map(Kind::name) })
}

/// Returns the schema of the kinds that an agent offers besides IP in IP.
pub(crate) fn schema_of_offers(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<&str> =
        Kind::ALL.into_iter().filter(|kind| *kind != Kind::IpInIp).map(Kind::name).collect();
    json_schema!({ "type": "array", "items": { "enum": names } })
}

/// Checks the kinds that an agent offers besides IP in IP. An error names the key and the problem.
pub(crate) fn check(offers: &[Kind]) -> Result<(), ConfigError> {
    if offers.contains(&Kind::IpInIp) {
        let problem = "must list `minimal` or `gre` only: `ip-in-ip` is always available";
        return Err(ConfigError::new("encapsulations", problem));
    }
    let is_again = |(index, kind): &(usize, &Kind)| offers.iter().take(*index).any(|other| other == *kind);
    if let Some((index, _)) = offers.iter().enumerate().find(is_again) {
        let problem = format!("must have each kind once; the kind at position {} is there before", index + 1);
        return Err(ConfigError::new("encapsulations", problem));
    }
    Ok(())
}

/// The flags of a request that ask for another kind of tunnel than IP in IP.
pub(crate) const ALTERNATES: RequestFlags = RequestFlags(RequestFlags::MINIMAL.0 | RequestFlags::GRE.0);

/// Returns the flag of a request that asks for a kind of tunnel; no flag for IP in IP.
pub(crate) const fn asks(kind: Kind) -> RequestFlags {
    match kind {
        Kind::IpInIp => RequestFlags(0),
        Kind::Minimal => RequestFlags::MINIMAL,
        Kind::Gre => RequestFlags::GRE,
    }
}

/// Returns the flag with which an agent offers a kind of tunnel; no flag for IP in IP.
pub(crate) const fn offered_by(kind: Kind) -> AgentFlags {
    match kind {
        Kind::IpInIp => AgentFlags(0),
        Kind::Minimal => AgentFlags::MINIMAL,
        Kind::Gre => AgentFlags::GRE,
    }
}

/// Returns the flags of the advertisements of an agent that offers these kinds.
pub(crate) fn advertised(offers: &[Kind]) -> AgentFlags {
    offers.iter().fold(AgentFlags::default(), |flags, kind| flags | offered_by(*kind))
}

/// Returns whether an agent that offers these kinds can serve a request with these flags. With both flags, it must offer
/// both kinds, because the other end of the tunnel may choose either.
pub(crate) fn are_available(offers: &[Kind], flags: RequestFlags) -> bool {
    Kind::ALL.into_iter().all(|kind| {
        let is_asked = kind != Kind::IpInIp && flags.has(asks(kind));
        !is_asked || offers.contains(&kind)
    })
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
    if flags.has(RequestFlags::GRE) { kinds.or(Kinds::of(Kind::Gre)) } else { kinds }
}

/// Returns all kinds that an agent with these offers opens.
pub(crate) fn all_opened(offers: &[Kind]) -> Kinds {
    offers.iter().copied().map(Kinds::of).fold(Kinds::of(Kind::IpInIp), Kinds::or)
}

/// Returns the name, in a role's status, of the kind of the tunnels of a registration with these flags.
pub(crate) const fn name_of(flags: RequestFlags) -> &'static str {
    kind(flags).name()
}

/// Returns the largest datagram inside a tunnel of this kind, in bytes, if the largest one inside a tunnel by IP in IP has
/// `ip_in_ip` bytes.
pub(crate) const fn room(kind: Kind, ip_in_ip: u16) -> u16 {
    ip_in_ip.saturating_add(Kind::IpInIp.overhead() as u16).saturating_sub(kind.overhead() as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Kind; 2] = [Kind::Minimal, Kind::Gre];

    #[test]
    fn a_request_gets_a_kind_that_the_agent_offers() {
        let flags = [0, 0x10, 0x08, 0x18].map(RequestFlags);
        let available = |offers: &[Kind]| flags.map(|flags| are_available(offers, flags));
        assert_eq!(available(&[]), [true, false, false, false]);
        assert_eq!(available(&[Kind::Gre]), [true, false, true, false]);
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
