//! Attacks with the messages of route optimization, on a correspondent and on a home agent. `attacks.rs` describes the scripts.

use crate::attacks::{Case, prints};
use crate::attacks_mobile_ip::{HOME, case, home_agent};

#[test]
fn a_correspondent_believes_only_the_home_agent() {
    const CORRESPONDENT: Case = case(
        ["10.8.0.2/24", "10.2.0.2/24"],
        r#"route = [{ to = "0.0.0.0/0", interface = "up", via = "10.2.0.1" }]
[[role]]
kind = "mobile-ip/correspondent"
address = "10.2.0.2"
home_agents = [{ address = "10.1.0.2", spi = 400, key = "000102030405060708090a0b0c0d0e0f", networks = ["10.1.0.0/16"] }]
"#,
    );
    prints(&CORRESPONDENT, "mobile_ip_correspondent.py", CORRESPONDENT_ROWS);
}

#[test]
fn a_home_agent_informs_only_correspondents_and_seldom() {
    let more = format!(
        "route = [{{ to = \"0.0.0.0/0\", interface = \"up\", via = \"10.9.0.2\" }}]\n{HOME}correspondents = [{{ address = \"10.2.0.2\", spi = 400, key = \"000102030405060708090a0b0c0d0e0f\" }}]"
    );
    prints(&home_agent(7, 20, &more), "mobile_ip_informs.py", INFORMS_ROWS);
}

/// What `mobile_ip_correspondent.py` prints.
const CORRESPONDENT_ROWS: &[&str] = &[
    "first nothing CHANGED",
    "after-first 10.3.0.1",
    "wrong-key bad_authentication+1 same",
    "unknown-spi no_association+1 same",
    "of-another-host no_association+1 same",
    "of-the-node no_association+1 same",
    "subtype-of-handoffs bad_authentication+1 same",
    "keyed-md5 bad_authentication+1 same",
    "hmac-md5 bad_authentication+1 same",
    "another-care-of-address bad_authentication+1 same",
    "another-lifetime bad_authentication+1 same",
    "another-flag bad_authentication+1 same",
    "reserved-bits mip_binding_reserved+1 same",
    "without-identification no_identification+1 same",
    "old stale_timestamp+1 same",
    "too-old stale_timestamp+1 same",
    "too-early outside_window+1 CHANGED",
    "after-too-early none",
    "again nothing CHANGED",
    "too-early-again outside_window+1 same",
    "deletes-old stale_timestamp+1 same",
    "trailing mip_binding_trailing+1 same",
    "no-authentication mip_binding_unauthenticated+1 same",
    "length-of-authentication mip_authentication_length+1 same",
    "other-extension mip_unknown_extension+1 same",
    "empty nothing same",
    "home-of-another-network not_of_the_home_agent+1 same",
    "home-is-own not_of_the_home_agent+1 same",
    "home-is-the-agent not_of_the_home_agent+1 same",
    "own-acknowledge nothing same",
    "warning nothing same",
    "registration nothing same",
    "at-last 10.3.0.1",
    "care-of-own implausible_care_of+1 CHANGED",
    "care-of-loopback implausible_care_of+1 same",
    "care-of-group implausible_care_of+1 same",
    "care-of-all implausible_care_of+1 same",
    "care-of-none implausible_care_of+1 same",
    "after-nonsense none",
    "moves nothing CHANGED",
    "after-move 10.4.0.1",
    "replayed-first stale_timestamp+1 same",
    "after-replay 10.4.0.1",
    "deletes nothing CHANGED",
    "replayed-after-delete stale_timestamp+1 same",
    "after-delete none",
];

/// What `mobile_ip_informs.py` prints.
const INFORMS_ROWS: &[&str] = &[
    "request 1",
    "request-again answered_recently+1 same",
    "acknowledge-of-another no_association+1 same",
    "acknowledge-other-update acknowledge_unmatched+1 same",
    "acknowledge-without-identification acknowledge_unmatched+1 same",
    "acknowledge-unsigned no_authentication+1 same",
    "acknowledge-reserved mip_binding_reserved+1 same",
    "acknowledge-wrong-key bad_authentication+1 same",
    "acknowledge-of-another-node acknowledge_unmatched+1 same",
    "acknowledge-truncated mip_extension_overrun+1 same",
    "acknowledge-short mip_acknowledge_length+1 same",
    "update-reflected unexpected_message+1 same",
    "request-of-another no_association+1 same",
    "request-for-another-node home_address_not_served+1 same",
    "request-truncated mip_binding_request_length+1 same",
    "request-trailing mip_unknown_extension+1 same",
    "request-wrong-key bad_authentication+1 same",
    "request-reserved mip_binding_reserved+1 same",
    "no-target mip_warning_targets+1 same",
    "17-targets too_many_targets+1 same",
    "half-a-target mip_warning_targets+1 same",
    "other-targets no_association+1 same",
    "group-target no_association+1 same",
    "own-target no_association+1 same",
    "another-node home_address_not_served+1 same",
    "16-targets 1",
    "16-targets-again 0",
];
