//! The protocol as inputs and effects. Each file in `transcripts/` is a script of inputs to one role. The numbered,
//! indented lines of a file are the recorded effects of the role. The test compares them with the present effects.
//!
//! ```text
//! 20ms request fa lifetime=300     a request, relayed by the foreign agent
//! 20ms reply lifetime=300          the home agent's reply to the request that was sent last
//! 30ms advert fa2                  the second foreign agent advertises
//! 40ms tunnel 10.1.0.7             data for 10.1.0.7 arrive in a tunnel
//! 50ms wait                        no input arrives; timers run
//! ```
//!
//! With `WAYFARE_BLESS=1` in the environment, the test writes the present effects to the files. Commit them only if you
//! can explain each line that changed.

use crate::cast;
use crate::transcript;

use cast::MobileIp;
use transcript::Teller;

transcripts! {
    in "transcripts", told by Teller::<MobileIp>::tell;
    a_home_agent_stores_switches_tells_and_answers_in_this_order: "home-agent-registration";
    a_home_agent_denies_with_a_reason_or_not_at_all: "home-agent-denials";
    a_packet_is_copied_to_each_binding: "home-agent-bindings";
    broadcasts_of_the_home_network_follow_who_asks_for_them: "home-agent-broadcasts";
    a_mobile_node_receives_broadcasts_at_home_and_away: "mobile-node-broadcasts";
    a_home_agent_forwards_from_the_reverse_tunnels_of_bindings: "home-agent-reverse";
    a_foreign_agent_tunnels_what_its_visitors_send: "foreign-agent-reverse";
    a_mobile_node_sends_through_a_reverse_tunnel: "mobile-node-reverse";
    a_home_agent_tunnels_by_the_requested_kind: "home-agent-encapsulation";
    a_foreign_agent_opens_the_agreed_kinds: "foreign-agent-encapsulation";
    a_mobile_node_asks_for_a_kind_of_tunnel: "mobile-node-encapsulation";
    a_home_agent_answers_requests_to_its_network: "home-agent-discovery";
    a_mobile_node_finds_its_home_agent_and_the_next_one: "mobile-node-home-agents";
    a_mobile_node_ends_its_bindings_at_all_home_agents: "mobile-node-home-link";
    the_path_mtu_of_a_tunnel_reaches_the_sender: "home-agent-tunnels";
    a_correspondent_sends_straight_to_the_care_of_address: "correspondent";
    a_correspondent_refuses_what_it_cannot_believe: "correspondent-refusals";
    a_correspondent_uses_nonces: "correspondent-nonces";
    a_home_agent_informs_correspondents: "home-agent-informs";
    a_home_agent_informs_correspondents_by_nonces: "home-agent-nonces";
    a_private_binding_is_not_revealed: "home-agent-private";
    bindings_survive_a_restart: "home-agent-restart";
    what_cannot_be_stored_did_not_happen: "home-agent-storage";
    a_foreign_agent_relays_and_then_delivers: "foreign-agent-visit";
    a_foreign_agent_denies_by_itself: "foreign-agent-denials";
    a_foreign_agent_keeps_packets_of_its_visitors: "foreign-agent-buffer";
    a_mobile_node_takes_the_tunnels_of_correspondents: "mobile-node-direct";
    a_mobile_node_names_the_packets_that_it_has: "mobile-node-buffer";
    an_agent_is_heard: "advertising";
    a_mobile_node_goes_away_and_comes_home: "mobile-node-moves";
    a_mobile_node_that_turns_back_stays_with_whom_it_hears: "mobile-node-turns-back";
    a_mobile_node_whose_link_returns_asks_again_at_once: "mobile-node-link-returns";
    a_mobile_node_repeats_renews_and_follows_corrections: "mobile-node-registration";
    a_mobile_node_registers_an_address_that_another_role_acquires: "mobile-node-acquires";
    a_mobile_node_registers_an_address_of_its_configuration: "mobile-node-own-address";
    a_foreign_agent_relays_for_a_mobile_node_with_its_own_address: "foreign-agent-relays";
    with_expiry_a_node_at_home_waits_for_the_end_of_a_lifetime: "mobile-node-expiry";
    a_home_agent_opens_special_tunnels: "home-agent-special";
    a_foreign_agent_names_itself_to_the_previous_one: "foreign-agent-arrival";
    a_previous_foreign_agent_forwards: "foreign-agent-departure";
    a_home_agent_distributes_keys: "home-agent-keys";
    a_foreign_agent_gets_keys_with_registrations: "foreign-agent-keys";
    a_mobile_node_derives_keys: "mobile-node-keys";
    packets_of_correspondents_are_delivered_and_forwarded: "foreign-agent-direct";
    a_mobile_node_chooses_an_interface: "mobile-node-interfaces";
    a_mobile_node_avoids_an_interface_without_an_agent: "mobile-node-avoids";
    a_mobile_node_names_an_agent_from_which_it_does_not_receive: "mobile-node-interfaces-smooth";
    a_denied_mobile_node_stays_at_the_interface_of_its_registration: "mobile-node-interfaces-denied";
    a_denied_mobile_node_returns_to_the_interface_by_which_it_receives: "mobile-node-three-interfaces";
    a_mobile_node_names_its_previous_agent: "mobile-node-smooth";
    without_a_hint_the_silence_of_an_agent_has_to_tell: "mobile-node-without-trigger";
}
