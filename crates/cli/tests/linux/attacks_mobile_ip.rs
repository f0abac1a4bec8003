//! Attacks and malformed input on running daemons of Mobile IP and DHCP. `attacks.rs` describes the scripts.

use crate::attacks::{Case, FOREIGN_AGENT, prints};

/// A daemon with these interface addresses and roles. The attacker sends whole frames.
pub(crate) const fn case(addresses: [&'static str; 2], config: &'static str) -> Case {
    Case { addresses, config, attackers: &[], descriptors: None }
}

/// Mobile nodes of a home agent from 10.1.0.`first` on, and further keys of the role.
pub(crate) fn home_agent(first: u8, last: u8, more: &str) -> Case {
    let node = |last: u8, keys: &str| {
        format!(
            "{{ address = \"10.1.0.{last}\", spi = 256, key = \"000102030405060708090a0b0c0d0e0f\"{keys} }}"
        )
    };
    let mut nodes: Vec<String> = (first..=last).map(|last| node(last, "")).collect();
    nodes.extend([node(200, ", replay = \"nonces\""), node(201, ", algorithm = \"hmac-md5\"")]);
    let config = format!("{more}\nmobile_nodes = [{}]\n", nodes.join(", "));
    case(["10.1.0.2/24", "10.9.0.1/24"], config.leak())
}

pub(crate) const HOME: &str =
    "[[role]]\nkind = \"mobile-ip/home-agent\"\ninterface = \"visited\"\naddress = \"10.1.0.2/24\"\n";

#[test]
fn a_host_on_a_visited_link_takes_over_no_visitor() {
    prints(&FOREIGN_AGENT, "mobile_ip_foreign.py", FOREIGN_AGENT_ROWS);
}

#[test]
fn a_home_agent_binds_nobody_without_the_key() {
    let more = format!(
        "{HOME}foreign_agents = [{{ address = \"10.4.0.1\", spi = 300, key = \"101112131415161718191a1b1c1d1e1f\" }}]"
    );
    prints(&home_agent(7, 60, &more), "mobile_ip_home.py", HOME_AGENT_ROWS);
}

#[test]
fn a_stranger_gets_and_diverts_no_packet_of_a_tunnel() {
    let more = format!(
        "route = [{{ to = \"0.0.0.0/0\", interface = \"up\", via = \"10.9.0.2\" }}]\n{HOME}reverse_tunnel = \"offered\""
    );
    prints(&home_agent(7, 20, &more), "mobile_ip_tunnels.py", TUNNEL_ROWS);
}

#[test]
fn a_visitor_with_a_key_is_taken_over_by_nobody() {
    let keys = [("10.1.0.7", 301), ("10.1.0.8", 301), ("10.1.0.9", 301)].map(|(node, spi)| {
        format!("{{ address = \"{node}\", spi = {spi}, key = \"000102030405060708090a0b0c0d0e0f\" }}")
    });
    let config = format!(
        "route = [{{ to = \"0.0.0.0/0\", interface = \"up\", via = \"10.9.0.2\" }}]
[[role]]
kind = \"mobile-ip/foreign-agent\"
interface = \"visited\"
address = \"10.3.0.1/24\"
reverse_tunnel = \"offered\"
challenge = true
challenge_window = 16
advertise = {{ interval = \"100ms\", jitter = \"0ms\", lifetime = \"3s\" }}
mobile_nodes = [{}]
home_agents = [{{ address = \"10.1.0.2\", spi = 302, key = \"000102030405060708090a0b0c0d0e0f\" }}]
",
        keys.join(", ")
    );
    prints(&case(["10.3.0.1/24", "10.9.0.1/24"], config.leak()), "mobile_ip_visitors.py", VISITOR_ROWS);
}

/// A foreign agent with smooth handoffs, one mobile node, and further keys of the role.
pub(crate) fn handoff_agent(more: &str) -> Case {
    let config = format!(
        r#"route = [{{ to = "0.0.0.0/0", interface = "up", via = "10.9.0.2" }}]
[[role]]
kind = "mobile-ip/foreign-agent"
interface = "visited"
address = "10.3.0.1/24"
smooth_handoff = true
mobile_nodes = [{{ address = "10.1.0.7", spi = 301, key = "000102030405060708090a0b0c0d0e0f" }}]
{more}"#
    );
    case(["10.3.0.1/24", "10.9.0.1/24"], config.leak())
}

#[test]
fn a_visitor_leaves_and_returns_by_its_own_updates_only() {
    prints(&handoff_agent(""), "mobile_ip_handoffs.py", HANDOFF_ROWS);
}

const NODE: &str = "[[role]]\nkind = \"mobile-ip/mobile-node\"\ninterface = \"visited\"\naddress = \"10.1.0.7/24\"\n\
    home_agent = { address = \"10.1.0.2\", spi = 256, key = \"000102030405060708090a0b0c0d0e0f\" }\n";

#[test]
fn a_mobile_node_follows_no_forged_message() {
    let case = case(["10.1.0.7/24", "10.9.0.1/24"], NODE);
    prints(&case, "mobile_ip_node.py", MOBILE_NODE_ROWS);
}

#[test]
fn a_client_of_dhcp_keeps_its_address_and_its_tunnel() {
    let config = format!(
        "{NODE}care_of = \"acquired\"\n[[role]]\nkind = \"dhcp/client\"\ninterface = \"visited\"\nretry = \"1s\"\nprobe_wait = \"300ms\"\n"
    );
    let case = case(["10.1.0.7/24", "10.9.0.1/24"], config.leak());
    prints(&case, "mobile_ip_own_address.py", OWN_ADDRESS_ROWS);
}

#[test]
fn a_server_of_dhcp_keeps_leases_and_answers_in_a_flood() {
    const SERVER: Case = case(
        ["10.3.0.1/16", "10.9.0.1/24"],
        r#"role = [{ kind = "dhcp/server", interface = "visited", address = "10.3.0.1/16", first = "10.3.0.2",
    last = "10.3.255.254", probe_wait = "50ms" }]"#,
    );
    prints(&SERVER, "dhcp_server.py", DHCP_SERVER_ROWS);
}

/// What `mobile_ip_foreign.py` prints.
const FOREIGN_AGENT_ROWS: &[&str] = &[
    "own-reply-0 not_from_home_agent+1 same",
    "own-reply-1 not_from_home_agent+1 same",
    "after-own-replies none",
    "repeated-request repeated_by_another+1 same",
    "reply-of-another-host not_from_home_agent+1 same",
    "after-repeated-request 020000000007",
    "repeated-later repeated_by_another+1 same",
    "after-repeated-later 020000000007",
    "from-an-unknown-agent none",
    "strange-tunnel not_a_visitor+1 same",
    "unknown-type mip_unknown_type+1 same",
    "truncated mip_request_short+1 same",
    "fragment fragment_overlap+1 same",
    "from-no-address implausible_source+1 same",
    "reply-to-nothing not_pending+1 same",
    "reserved-flag code-70+1 same",
    "minimal code-72+1 same",
    "gre code-72+1 same",
    "reverse-tunnel code-74+1 same",
    "delivery-style-alone code-70+1 same",
    "another-care-of-address code-77+1 same",
    "care-of-address-of-a-neighbor implausible_source+1 same",
    "care-of-address-of-the-agent implausible_source+1 same",
    "care-of-address-elsewhere code-77+1 same",
    "lifetime-too-long code-69+1 same",
    "agent-is-the-home-agent code-194+1 same",
    "home-agent-0.0.0.0 code-70+1 same",
    "home-agent-127.0.0.1 code-70+1 same",
    "home-agent-224.0.0.5 code-70+1 same",
    "home-agent-255.255.255.255 code-70+1 same",
    "home-agent-10.3.0.255 code-70+1 same",
    "home-agent-10.1.0.66 code-70+1 same",
    "home-10.3.0.77 code-65+1 same",
    "home-10.9.0.1 code-65+1 same",
    "no-home-0.0.0.0 implausible_source+1 same",
    "no-home-127.0.0.1 implausible_source+1 same",
    "no-home-224.0.0.5 implausible_source+1 same",
    "no-home-255.255.255.255 implausible_source+1 same",
    "no-home-10.3.0.1 implausible_source+1 same",
    "source-is-not-home implausible_source+1 same",
    "from-a-group implausible_source+1 same",
    "extension-overrun mip_extension_overrun+1 same",
    "extension-without-its-end mip_extension_truncated+1 same",
    "unknown-extension mip_unknown_extension+1 same",
    "previous-agent-extension mip_unknown_extension+1 same",
    "authentication-without-spi mip_authentication_length+1 same",
    "authentication-twice mip_authentication_twice+1 same",
    "many-extensions mip_extensions_count+1 same",
    "empty mip_empty+1 same",
    "denied-twice answered_recently+1 code-70+1 same",
    "from-the-uplink wrong_direction+1 same",
    "to-the-uplink nothing same",
    "reply-from-the-link not_from_home_agent+1 same",
    "reply-to-another-node not_pending+1 same",
    "reply-to-another-request not_pending+1 same",
    "reply-of-a-second-server not_pending+1 same",
    "error-from-the-link not_from_home_agent+1 same",
    "error-with-eight-octets not_pending+1 same",
    "error-about-another-request not_pending+1 same",
    "while-it-waits 020000000007",
    "malformed-reply 1",
    "after-malformed-reply 020000000007",
    "error-about-the-request 1",
    "after-error-about-the-request 020000000007",
    "to-another-visitor not_a_visitor+1 same",
    "to-the-agent not_a_visitor+1 same",
    "inner-truncated ip_truncated+1 same",
    "inner-empty ip_truncated+1 same",
    "inner-version ip_version+1 same",
    "inner-checksum ip_checksum+1 same",
    "inner-no-hops ipip_ttl+1 same",
    "inner-last-hop ttl_expired+1 same",
    "outer-no-hops nothing same",
    "nested not_a_visitor+1 same",
    "minimal-truncated tunnel_kind+1 same",
    "minimal-checksum tunnel_kind+1 same",
    "minimal-fragment fragment_overlap+1 same",
    "gre-truncated tunnel_kind+1 same",
    "gre-flags tunnel_kind+1 same",
    "gre-version tunnel_kind+1 same",
    "gre-protocol tunnel_kind+1 same",
    "gre-checksum tunnel_kind+1 same",
    "tunnel-on-the-visited-link not_a_visitor+1 same",
    "after-tunnels 020000000007",
    "solicitation-from-afar mip_ttl+1 same",
    "solicitation-code mip_solicitation_code+1 same",
    "solicitation-short mip_solicitation_short+1 same",
    "solicitation-checksum icmp_checksum+1 same",
    "advertisement-as-the-agent no_listener+1 same",
    "at-the-end 020000000007",
    "a-renewal-during-a-flood True",
    "a-newcomer-during-a-flood True",
    "large-requests-of-many counted same",
];

/// What `mobile_ip_home.py` prints.
const HOME_AGENT_ROWS: &[&str] = &[
    "wrong-key code-131+1 denied+1 same",
    "wrong-spi code-131+1 denied+1 same",
    "reserved-spi code-131+1 denied+1 same",
    "unknown-node no_association+1 same",
    "no-authentication no_authentication+1 same",
    "authenticator-of-another-algorithm code-131+1 denied+1 same",
    "hmac-md5-for-sha256 code-131+1 denied+1 same",
    "keyed-md5-for-hmac-md5 code-131+1 denied+1 same",
    "half-an-authenticator code-131+1 denied+1 same",
    "empty-authenticator code-131+1 denied+1 same",
    "longer-authenticator code-131+1 denied+1 same",
    "no-spi mip_authentication_length+1 same",
    "authentication-twice mip_authentication_twice+1 same",
    "authentication-of-another-peer no_authentication+1 same",
    "foreign-authentication-first mip_extension_order+1 same",
    "another-care-of-address code-131+1 denied+1 same",
    "another-home-address code-131+1 denied+1 same",
    "a-longer-lifetime code-131+1 denied+1 same",
    "another-flag code-131+1 denied+1 same",
    "a-byte-in-a-skipped-extension code-131+1 denied+1 same",
    "wrong-key-twice answered_recently+1 code-131+1 denied+1 same",
    "unknown-agent-signs unknown_agent_association+1 same",
    "agent-does-not-sign code-132+1 denied+1 same",
    "agent-signs-wrongly code-132+1 denied+1 same",
    "other-agent code-136+1 denied+1 same",
    "an-hour-old code-133+1 denied+1 same",
    "an-hour-ahead code-133+1 denied+1 same",
    "nine-seconds-ahead code-133+1 denied+1 same",
    "zero code-133+1 denied+1 same",
    "before-1968 code-133+1 denied+1 same",
    "care-of-10.1.0.11 code-134+1 denied+1 same",
    "care-of-10.1.0.2 code-134+1 denied+1 same",
    "care-of-10.9.0.1 code-134+1 denied+1 same",
    "care-of-255.255.255.255 code-134+1 denied+1 same",
    "care-of-10.1.0.255 code-134+1 denied+1 same",
    "care-of-127.0.0.1 code-134+1 denied+1 same",
    "care-of-224.0.0.1 code-134+1 denied+1 same",
    "care-of-0.0.0.0 code-134+1 denied+1 same",
    "care-of-240.0.0.1 code-134+1 denied+1 same",
    "home-0.0.0.0 no_association+1 same",
    "home-127.0.0.1 no_association+1 same",
    "home-255.255.255.255 no_association+1 same",
    "home-10.1.0.2 no_association+1 same",
    "reserved-flag code-134+1 denied+1 same",
    "minimal code-139+1 denied+1 same",
    "gre code-139+1 denied+1 same",
    "reverse-tunnel code-137+1 denied+1 same",
    "reply unexpected_message+1 same",
    "own-reply unexpected_message+1 same",
    "from-itself unexpected_message+1 same",
    "unknown-type mip_unknown_type+1 same",
    "empty mip_empty+1 same",
    "truncated mip_request_short+1 same",
    "one-byte-behind mip_extension_truncated+1 same",
    "extension-without-its-end mip_extension_truncated+1 same",
    "truncated-extension mip_extension_overrun+1 same",
    "extension-overrun mip_extension_overrun+1 same",
    "unknown-extension mip_unknown_extension+1 same",
    "generalized-authentication mip_unknown_extension+1 same",
    "fragment fragment_overlap+1 same",
    "lying-length udp_truncated+1 same",
    "length-below-the-header udp_length+1 same",
    "wrong-checksum udp_checksum+1 same",
    "to-the-network-without-key code-131+1 denied+1 same",
    "solicitation-from-afar mip_ttl+1 same",
    "solicitation-code mip_solicitation_code+1 same",
    "solicitation-short mip_solicitation_short+1 same",
    "solicitation-checksum icmp_checksum+1 same",
    "solicitation-as-the-agent wrong_direction+1 same",
    "solicitation-of-a-group wrong_direction+1 same",
    "answers-to-solicitations limited",
    "solicitations same",
    "announced-so-far nothing",
    "answers-for-a-node-at-home False",
    "authentic code-0+1 CHANGED",
    "announced-now 020000000001",
    "answers-for-a-node-that-is-away True",
    "deregistration-without-key code-131+1 denied+1 same",
    "deregistration-at-home-without-key code-131+1 denied+1 same",
    "renewal code-0+1 CHANGED",
    "renewed-again code-0+1 CHANGED",
    "replay code-133+1 denied+1 same",
    "older code-133+1 denied+1 same",
    "last-repeated-twice answered_recently+1 code-0+1 same",
    "deregistration code-0+1 CHANGED",
    "replay-after-deregistration code-133+1 denied+1 same",
    "deregistration-replayed code-0+1 same",
    "announced-at-the-end 020000000001",
    "endless code-0+1 CHANGED",
    "endless-lifetime 3600",
    "nonce-guessed code-133+1 denied+1 same",
    "nonce-right code-0+1 CHANGED",
    "nonce-replayed code-0+1 same",
    "nonce-used-again code-133+1 denied+1 same",
    "nonce-denied code-134+1 denied+1 same",
    "nonce-of-a-denied-request code-133+1 denied+1 same",
    "nonces-differ True",
    "ninth-binding code-135+1 denied+1 same",
    "bindings 8",
    "another-binding-without-key code-131+1 denied+1 same",
    "noise same",
    "forged-by-one counted same",
    "forged-by-many counted same",
    "replayed-by-many counted same",
    "unknown-by-many counted same",
    "a-registration-during-the-flood True",
];

/// What `mobile_ip_tunnels.py` prints.
const TUNNEL_ROWS: &[&str] = &[
    "at-first 10.3.0.1 10.1.0.7",
    "from-another-care-of-address no_reverse_tunnel+1 same",
    "from-the-care-of-address-of-an-insider no_reverse_tunnel+1 same",
    "without-reverse-tunnel no_reverse_tunnel+1 same",
    "from-the-home-link no_reverse_tunnel+1 same",
    "of-a-node-at-home no_reverse_tunnel+1 same",
    "inner-truncated ip_truncated+1 same",
    "inner-empty ip_truncated+1 same",
    "inner-version ip_version+1 same",
    "inner-checksum ip_checksum+1 same",
    "inner-length ip_truncated+1 same",
    "inner-no-hops ipip_ttl+1 same",
    "inner-last-hop ttl_expired+1 same",
    "outer-no-hops reversed+1 same",
    "nested no_reverse_tunnel+1 reversed+1 same",
    "minimal-encapsulation minimal_checksum+1 same",
    "gre tunnel_kind+1 same",
    "after-reverse-tunnels 10.3.0.1 10.1.0.7",
    "no-hops ttl_expired+1 same",
    "last-hop ttl_expired+1 same",
    "from-the-exit tunnel_loop+1 same",
    "as-the-agent tunnel_loop+1 same",
    "as-the-agents-uplink tunnel_loop+1 same",
    "too-big too_big+1 same",
    "home-address-claimed nothing same",
    "after-the-claims 10.3.0.1 10.1.0.7",
    "tunnel-into-a-tunnel tunnel_depth+1 same",
    "error-about-another-exit not_about_a_tunnel+1 same",
    "error-about-another-entry not_about_a_tunnel+1 same",
    "error-about-udp nothing same",
    "error-cut nothing same",
    "error-empty nothing same",
    "error-checksum icmp_checksum+1 same",
    "source-quench tunnel_error_not_relayed+1 same",
    "redirect tunnel_error_not_relayed+1 same",
    "port-unreachable tunnel_error_not_relayed+1 same",
    "source-route tunnel_error_not_relayed+1 same",
    "reassembly tunnel_error_not_relayed+1 same",
    "parameter-of-the-tunnel tunnel_error_not_relayed+1 same",
    "reported-mtu none",
    "too-big-above tunnel_errors+1 CHANGED",
    "reported-mtu none",
    "too-big-0 tunnel_errors+1 CHANGED",
    "too-big-20 tunnel_errors+1 same",
    "too-big-67 tunnel_errors+1 same",
    "too-big-68 tunnel_errors+1 same",
    "too-big-575 tunnel_errors+1 same",
    "reported-mtu 548",
    "after-too-big 10.3.0.1 10.1.0.7",
    "unreachable-with-eight-octets tunnel_errors+1 CHANGED",
    "time-exceeded-with-eight-octets tunnel_errors+1 CHANGED",
    "after-unreachable 10.3.0.1 10.1.0.7",
    "last-hop-from-10.1.0.255 0",
    "no-route-from-10.1.0.255 0",
    "error-quotes-10.1.0.255 0",
    "last-hop-from-10.9.0.255 0",
    "no-route-from-10.9.0.255 0",
    "error-quotes-10.9.0.255 0",
    "last-hop-from-255.255.255.255 0",
    "no-route-from-255.255.255.255 0",
    "error-quotes-255.255.255.255 0",
    "last-hop-from-224.0.0.1 0",
    "no-route-from-224.0.0.1 0",
    "error-quotes-224.0.0.1 0",
    "last-hop-from-0.0.0.0 0",
    "no-route-from-0.0.0.0 0",
    "error-quotes-0.0.0.0 0",
    "last-hop-from-127.0.0.1 0",
    "no-route-from-127.0.0.1 0",
    "error-quotes-127.0.0.1 0",
    "fragments-overlap fragment_overlap+2 same",
    "fragment-overlaps-by-a-byte fragment_overlap+2 same",
    "fragment-of-nothing fragment_overlap+1 same",
    "fragment-not-of-eight fragment_overlap+1 same",
    "fragment-beyond-the-end fragment_overlap+1 same",
    "last-fragment-twice fragment_overlap+2 same",
    "in-pieces 104 True",
    "in-pieces 8 True",
    "fragments-without-end same",
    "in-pieces 104 True",
    "after-fragments 10.3.0.1 10.1.0.7",
    "a-broadcast 10.6.0.1",
    "a-broadcast-as-the-agent none",
    "a-broadcast-from-elsewhere none",
    "two-bindings 10.5.0.1 10.5.0.2",
    "last-hop-to-two ttl_expired+1 same",
    "as-the-agent-to-two tunnel_loop+1 same",
    "forged-reverse-tunnels counted same",
    "errors-about-a-tunnel same",
    "at-the-end 10.3.0.1 10.1.0.7",
    "reported-mtu 548",
];

/// What `mobile_ip_visitors.py` prints.
const VISITOR_ROWS: &[&str] = &[
    "without-challenge code-105+1 same",
    "unknown-challenge code-104+1 same",
    "challenge-without-authentication code-67+1 same",
    "challenge-behind-the-authentication code-67+1 same",
    "wrong-key code-67+1 same",
    "wrong-spi code-67+1 same",
    "unknown-node code-67+1 same",
    "authentication-twice mip_authentication_twice+1 same",
    "empty-challenge code-104+1 same",
    "changed-lifetime code-67+1 same",
    "a-router-away code-76+1 same",
    "style-with-data code-70+1 same",
    "style-without-tunnel code-70+1 same",
    "reply-without-authentication code-68+1 home_agent_failed+1 same",
    "reply-with-wrong-key code-68+1 home_agent_failed+1 same",
    "reply-with-wrong-spi code-68+1 home_agent_failed+1 same",
    "at-first 020000000007 tunnel tunnel",
    "replayed-by-another repeated_by_another+1 same",
    "replayed-from-its-own-address code-106+1 same",
    "challenge-of-another code-104+1 same",
    "deregistration-without-key code-67+1 same",
    "deregistration-without-challenge code-105+1 same",
    "challenge-too-old code-104+1 same",
    "after-requests 020000000007 tunnel tunnel",
    "from-another-link-address plain",
    "of-another-visitor none",
    "in-the-name-of-another-visitor not_of_the_visitor+1 same",
    "of-no-visitor plain",
    "tunnel-of-another-link-address not_a_visitor+1 same",
    "tunnel-with-the-source-of-another not_of_the_visitor+1 same",
    "tunnel-of-a-direct-visitor not_a_visitor+1 same",
    "tunnel-inner-truncated ip_truncated+1 same",
    "tunnel-inner-no-hops ipip_ttl+1 same",
    "tunnel-inner-last-hop ttl_expired+1 same",
    "tunnel-in-a-fragment fragment_overlap+1 same",
    "tunnel-nested nothing same",
    "an-insider-with-the-link-address-of-the-victim 020000000007",
    "beside-the-insider 020000000007 tunnel tunnel",
    "forged-by-many counted same",
    "tunnels-by-many same",
    "at-the-end 020000000007 tunnel tunnel",
];

/// What `mobile_ip_node.py` prints.
const MOBILE_NODE_ROWS: &[&str] = &[
    "at-first 020000000009",
    "from-afar mip_ttl+1 same",
    "code mip_advertisement_code+1 same",
    "checksum icmp_checksum+1 same",
    "short ip_truncated+1 same",
    "entry-size mip_entry_size+1 same",
    "router-overrun mip_advertisement_short+1 same",
    "a-router-that-is-no-agent mip_no_agent+1 same",
    "neither-kind mip_no_agent+1 same",
    "no-care-of-address mip_no_care_of+1 same",
    "length-of-mobility mip_mobility_length+1 same",
    "length-too-short mip_mobility_length+1 same",
    "extension-twice mip_extension_twice+1 same",
    "extension-overrun mip_extension_overrun+1 same",
    "extension-without-its-end mip_extension_truncated+1 same",
    "unknown-extension mip_unknown_extension+1 same",
    "prefix-count mip_prefix_lengths+1 same",
    "prefix-of-33-bits mip_prefix_lengths+1 same",
    "empty-challenge mip_challenge_length+1 same",
    "fragment ip_checksum+1 same",
    "from-a-group implausible_agent+1 same",
    "on-another-link no_listener+1 same",
    "agent-10.1.0.7 implausible_agent+1 same",
    "agent-0.0.0.0 implausible_agent+1 same",
    "agent-127.0.0.1 implausible_agent+1 same",
    "agent-224.0.0.1 implausible_agent+1 same",
    "agent-255.255.255.255 implausible_agent+1 same",
    "care-of-10.1.0.7 implausible_agent+1 same",
    "care-of-0.0.0.0 implausible_agent+1 same",
    "care-of-127.0.0.1 implausible_agent+1 same",
    "care-of-224.0.0.1 implausible_agent+1 same",
    "care-of-255.255.255.255 implausible_agent+1 same",
    "care-of-10.1.0.255 implausible_agent+1 same",
    "agent-with-another-link-address agent_link_address+1 same",
    "agent-said-to-have-left agent_link_address+1 same",
    "after-advertisements 020000000009",
    "reply-to-nothing stale_reply+1 same",
    "request-to-a-node unexpected_message+1 same",
    "reply-truncated mip_reply_short+1 same",
    "unknown-type mip_unknown_type+1 same",
    "empty mip_empty+1 same",
    "reply-without-key bad_authentication+1 same",
    "reply-with-wrong-key bad_authentication+1 same",
    "reply-with-wrong-spi bad_authentication+1 same",
    "reply-authenticated-twice mip_authentication_twice+1 same",
    "reply-from-another unexpected_message+1 same",
    "reply-to-another-node stale_reply+1 same",
    "reply-to-another-request stale_reply+1 same",
    "reply-of-the-home-agent-without-key bad_authentication+1 same",
    "reply-extension-overrun mip_extension_overrun+1 same",
    "reply-unknown-extension mip_unknown_extension+1 same",
    "reply-on-another-link other_station+1 same",
    "accepted-after-forged-denials registered 300",
    "replayed-reply stale_reply+1 same",
    "after-replies 020000000009",
    "redirect nothing same",
    "tunnel-to-the-home-address nothing same",
    "answers-arp-of-a-host False",
    "answers-arp-of-the-agent True",
    "address-of-the-agent-claimed nothing same",
    "after-arp 020000000009",
    "many-agents True 10.3.0.1 registered",
    "after-many-agents 020000000009",
    "restarts-of-the-agent few requests",
    "after-restarts 020000000009",
    "replies-of-many counted same",
    "after-noise registered 10.3.0.1",
    "at-the-end 020000000009",
];

/// What `mobile_ip_own_address.py` prints.
const OWN_ADDRESS_ROWS: &[&str] = &[
    "empty dhcp_truncated+1 same",
    "truncated dhcp_truncated+1 same",
    "cookie dhcp_cookie+1 same",
    "hardware dhcp_hardware+1 same",
    "no-end dhcp_no_end+1 same",
    "option-truncated dhcp_option_truncated+1 same",
    "wrong-direction dhcp_op+1 same",
    "no-type dhcp_type+1 same",
    "option-twice dhcp_option_twice+1 same",
    "lease-of-three-bytes dhcp_option_length+1 same",
    "no-router-in-the-option dhcp_option_length+1 same",
    "overload-of-nothing dhcp_overload+1 same",
    "another-transaction dhcp_transaction+1 same",
    "for-another-client no_listener+1 same",
    "no-server dhcp_no_server+1 same",
    "server-is-no-host dhcp_no_server+1 same",
    "no-mask dhcp_no_mask+1 same",
    "mask-of-no-bits dhcp_no_mask+1 same",
    "mask-with-a-hole dhcp_mask+1 same",
    "no-lease-time dhcp_lease+1 same",
    "lease-of-zero dhcp_lease+1 same",
    "address-0.0.0.0 dhcp_address+1 same",
    "address-127.0.0.1 dhcp_address+1 same",
    "address-224.0.0.1 dhcp_address+1 same",
    "address-255.255.255.255 dhcp_address+1 same",
    "address-10.3.0.0 dhcp_address+1 same",
    "address-10.3.0.255 dhcp_address+1 same",
    "address-10.3.0.1 dhcp_address+1 same",
    "acknowledgment-of-nothing dhcp_unexpected+1 same",
    "refusal-of-nothing dhcp_unexpected+1 same",
    "on-another-link no_listener+1 same",
    "rogue-offer dhcp_unexpected+1 same",
    "rogue-acknowledgment dhcp_other_server+1 same",
    "rogue-refusal dhcp_other_server+1 same",
    "refusal-without-server dhcp_no_server+1 same",
    "another-address dhcp_other_address+1 same",
    "acknowledgment-of-zero-seconds dhcp_lease+1 same",
    "acknowledgment-of-another-transaction dhcp_transaction+1 same",
    "declines-an-address-in-use True None",
    "at-first 020000000009",
    "offer-unasked dhcp_unexpected+1 same",
    "acknowledgment-unasked dhcp_unexpected+1 same",
    "refusal-unasked dhcp_unexpected+1 same",
    "acknowledgment-by-unicast dhcp_unexpected+1 same",
    "tunnel-of-another-home-agent not_home_agents_tunnel+1 same",
    "tunnel-of-the-router not_home_agents_tunnel+1 same",
    "tunnel-for-another-node not_for_home_address+1 same",
    "tunnel-for-the-care-of-address not_for_home_address+1 same",
    "tunnel-inner-truncated ip_truncated+1 same",
    "tunnel-inner-empty ip_truncated+1 same",
    "tunnel-inner-version ip_version+1 same",
    "tunnel-inner-checksum ip_checksum+1 same",
    "tunnel-inner-no-hops ipip_ttl+1 same",
    "tunnel-nested not_for_home_address+1 same",
    "tunnel-gre-checksum tunnel_kind+1 same",
    "tunnel-minimal-checksum tunnel_kind+1 same",
    "after-tunnels 020000000009",
    "rogue-extension dhcp_other_server+1 same",
    "rogue-refusal-of-the-extension dhcp_other_server+1 same",
    "extension-of-another-address dhcp_other_address+1 same",
    "extension-of-zero-seconds dhcp_lease+1 same",
    "extension-of-another-transaction dhcp_transaction+1 same",
    "while-it-extends 020000000009",
    "extended bound",
    "address-claimed arp_conflict+1 same",
    "address-defended True",
    "after-the-claim 020000000009",
    "refusals-of-many counted same",
    "tunnels-of-many counted same",
    "after-noise bound",
    "after-floods 020000000009",
    "after-two-claims pausing",
];

/// What `dhcp_server.py` prints.
const DHCP_SERVER_ROWS: &[&str] = &[
    "leased 10.3.0.2",
    "at-first extended",
    "empty dhcp_truncated+1 same",
    "truncated dhcp_truncated+1 same",
    "cookie dhcp_cookie+1 same",
    "hardware dhcp_hardware+1 same",
    "client-is-a-group dhcp_client+1 same",
    "no-type dhcp_type+1 same",
    "unknown-type dhcp_type+1 same",
    "wrong-direction dhcp_op+1 same",
    "no-end dhcp_no_end+1 same",
    "option-truncated dhcp_option_truncated+1 same",
    "address-of-three-bytes dhcp_option_length+1 same",
    "lease-of-five-bytes dhcp_option_length+1 same",
    "option-twice dhcp_option_twice+1 same",
    "overload-of-nothing dhcp_overload+1 same",
    "overload-without-end dhcp_option_length+1 same",
    "mask-with-a-hole dhcp_mask+1 same",
    "fragment dhcp_fragment+1 same",
    "an-offer dhcp_unsupported+1 same",
    "an-acknowledgment dhcp_unsupported+1 same",
    "a-refusal dhcp_unsupported+1 same",
    "inform dhcp_unsupported+1 same",
    "relayed dhcp_relayed+1 same",
    "from-the-other-link no_listener+1 same",
    "for-another-server dhcp_other_server+1 same",
    "address-of-another dhcp_not_leased+1 same",
    "address-of-another-after-a-restart dhcp_not_leased+1 same",
    "address-of-another-renewed dhcp_not_leased+1 same",
    "no-address dhcp_no_address+1 same",
    "address-of-the-server dhcp_not_leased+1 same",
    "address-elsewhere dhcp_not_leased+1 same",
    "release-of-another dhcp_not_leased+1 same",
    "release-at-another-server dhcp_other_server+1 same",
    "release-without-server dhcp_other_server+1 same",
    "decline-of-another dhcp_not_leased+1 same",
    "decline-without-address dhcp_no_address+1 same",
    "after-messages extended",
    "after-claims extended",
    "after-discovers extended",
    "requests-of-many counted same",
    "after-noise extended",
    "a-newcomer-during-the-flood True",
];

/// What `mobile_ip_handoffs.py` prints.
pub(crate) const HANDOFF_ROWS: &[&str] = &[
    "at-first 020000000007",
    "update-with-wrong-key bad_authentication+1 same",
    "update-with-wrong-spi no_association+1 same",
    "update-with-wrong-subtype bad_authentication+1 same",
    "update-with-weaker-algorithm bad_authentication+1 same",
    "update-of-unknown-node no_association+1 same",
    "update-without-identification no_identification+1 same",
    "update-from-yesterday stale_update+1 same",
    "update-to-this-agent implausible_care_of+1 same",
    "update-to-a-group implausible_care_of+1 same",
    "update-to-the-broadcast-address implausible_care_of+1 same",
    "update-to-the-home-agent implausible_care_of+1 same",
    "update-without-authentication mip_binding_unauthenticated+1 same",
    "update-of-one-octet mip_update_short+1 same",
    "update-cut-in-the-authenticator mip_extension_overrun+1 same",
    "update-longer mip_binding_trailing+1 same",
    "acknowledge unexpected_message+1 same",
    "warning unexpected_message+1 same",
    "warning-without-targets mip_warning_targets+1 same",
    "update-with-another-care-of-address bad_authentication+1 same",
    "update-from-the-visited-link bad_authentication+1 same",
    "after-updates 020000000007",
    "forwarded tunnel-to-10.4.0.1",
    "replayed nothing same",
    "replayed-by-another nothing same",
    "older stale_update+1 same",
    "tunnel-of-another-host not_a_visitor+1 same",
    "tunnel-of-the-new-agent not_a_visitor+1 same",
    "tunnel-for-another-host not_a_visitor+1 same",
    "still-forwarded tunnel-to-10.4.0.1",
    "notification-of-0 mip_notification_length+1 same",
    "notification-of-13 mip_notification_length+1 same",
    "notification-without-authentication code-67+1 same",
    "update-is-that-of-the-mobile-node True",
    "early-tunnel-of-another-host not_the_previous_agent+1 same",
    "request-of-another-link-address repeated_by_another+1 same",
    "early-packets 80 020000000007",
    "registered 020000000007",
    "registered-by-the-previous-agent 020000000007",
    "old-update-after-the-return stale_update+1 same",
    "at-the-end 020000000007",
];
