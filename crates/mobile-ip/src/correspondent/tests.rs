use super::*;
use crate::message::{Generalized, Numbers};
use node::{Effect, PuntReason};
use wire::Iface;

const OWN: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);

/// A foreign agent can be on this host, with another address: Binding Updates to it are not the correspondent's.
#[test]
fn a_message_to_another_address_of_this_host_is_for_another_role() {
    let config = "address = \"10.2.0.2\"\nhome_agents = []";
    let mut role = Correspondent::new(toml::from_str(config).unwrap(), Rng::new(1)).unwrap();
    for (to, is_ours) in [(OWN, true), (Ipv4Addr::new(10, 2, 0, 9), false)] {
        let update = Update {
            acknowledge: false,
            minimal: false,
            gre: false,
            lifetime: 30,
            home: Ipv4Addr::new(10, 1, 0, 7),
            care_of: Ipv4Addr::new(10, 3, 0, 1),
            identification: None,
            authentication: Some(Generalized { subtype: 251, spi: 300, authenticator: vec![0; 32] }),
        };
        let bytes = Binding::Update(update).datagram(Ipv4Addr::new(10, 1, 0, 2), to, &Numbers::default());
        let packet = Packet::new(Mac::ZERO, bytes);
        let rx = Rx::parse(Iface(1), PuntReason::Listen, &packet).unwrap();
        let mut out = Outbox::default();
        role.handle(Instant::ZERO, Input::Packet(rx, packet), &mut out);
        let effects: Vec<_> = out.drain_effects().collect();
        let is_passed = matches!(effects[..], [Effect::Pass(..)]);
        let is_dropped = matches!(effects[..], [Effect::Discard(_, _, refusal::NO_ASSOCIATION)]);
        assert_eq!((is_dropped, is_passed), (is_ours, !is_ours), "{to}");
    }
}
