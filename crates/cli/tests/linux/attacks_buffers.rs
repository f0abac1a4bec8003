//! Attacks on the packets that a foreign agent keeps for its visitors. `attacks.rs` describes the scripts.

use crate::attacks::prints;
use crate::attacks_mobile_ip::handoff_agent;

#[test]
fn kept_packets_are_the_visitors_only() {
    let agent = handoff_agent("buffer = { when = \"request\", packets = 8 }\n");
    prints(&agent, "mobile_ip_buffers.py", BUFFER_ROWS);
}

/// What `mobile_ip_buffers.py` prints.
pub(crate) const BUFFER_ROWS: &[&str] = &[
    "not-asked 020000000007 kept 0",
    "keep-with-wrong-key bad_authentication+1 same",
    "keep-with-wrong-spi no_association+1 same",
    "keep-with-wrong-subtype bad_authentication+1 same",
    "keep-with-weaker-algorithm bad_authentication+1 same",
    "keep-for-another-host no_association+1 same",
    "keep-without-identification mip_control_flags+1 same",
    "keep-and-stop mip_control_flags+1 same",
    "with-sizes mip_control_flags+1 same",
    "with-reserved-bits mip_control_reserved+1 same",
    "without-authentication mip_binding_unauthenticated+1 same",
    "of-one-octet mip_control_short+1 same",
    "cut-in-the-authenticator mip_extension_overrun+1 same",
    "longer mip_binding_trailing+1 same",
    "filter-beyond-the-end mip_extension_overrun+1 same",
    "filter-of-another-type mip_unknown_extension+1 same",
    "for-another-home-address no_association+1 same",
    "after-forgeries 020000000007 kept 0",
    "asked 020000000007 kept 1",
    "keep-again stale_control+1 same",
    "keep-again-by-another stale_control+1 same",
    "stop-with-wrong-key bad_authentication+1 same",
    "stop-from-earlier stale_control+1 same",
    "named-with-wrong-key bad_authentication+1 same",
    "of-11-packets 8",
    "theft-with-wrong-key bad_authentication+1 same",
    "theft-changed bad_authentication+1 same",
    "theft-from-earlier stale_update+1 same",
    "after-thefts 8",
    "flushed 8 tunnel-to-10.4.0.1 kept 0",
    "update-again nothing same",
    "not-flushed-again 0",
    "keep-after-leaving stale_control+1 same",
    "at-the-end tunnel-to-10.4.0.1 kept 0",
    "returned 020000000007 kept 0",
    "keep-of-the-earlier-visit stale_control+1 same",
    "after-the-return 020000000007 kept 0",
];
