//! Attacks on the keys of smooth handoffs that home agents distribute. `attacks.rs` describes the scripts.

use crate::attacks::prints;
use crate::attacks_mobile_ip::case;

#[test]
fn a_foreign_agent_takes_only_the_keys_that_its_home_agent_has_signed() {
    let agent = case(
        ["10.3.0.1/24", "10.9.0.1/24"],
        r#"route = [{ to = "0.0.0.0/0", interface = "up", via = "10.9.0.2" }]
[[role]]
kind = "mobile-ip/foreign-agent"
interface = "visited"
address = "10.3.0.1/24"
smooth_handoff = true
distributed_keys = true
home_agents = [{ address = "10.1.0.2", spi = 400, key = "6465666768696a6b6c6d6e6f70717273" }]
"#,
    );
    prints(&agent, "mobile_ip_keys.py", KEY_ROWS);
}

/// What `mobile_ip_keys.py` prints.
const KEY_ROWS: &[&str] = &[
    "first code-0+1 CHANGED",
    "without-a-key no_association+1 same",
    "reply-signed-by-another code-68+1 home_agent_failed+1 CHANGED",
    "appended code-0+1 mip_key_position+1 CHANGED",
    "by-the-appended-key no_association+1 same",
    "short code-0+1 mip_key_length+1 CHANGED",
    "by-the-short-key no_association+1 same",
    "twice code-0+1 mip_key_twice+1 CHANGED",
    "by-one-of-two no_association+1 same",
    "of-another-vendor code-0+1 CHANGED",
    "by-the-key-of-another-vendor no_association+1 same",
    "of-another-registration code-0+1 CHANGED",
    "by-the-key-of-another-registration bad_authentication+1 same",
    "by-the-key-of-this-registration no_association+1 same",
    "before-a-key 020000000007",
    "on-the-link reply False",
    "with-wrong-key bad_authentication+1 same",
    "with-the-agents-key bad_authentication+1 same",
    "with-the-masked-key bad_authentication+1 same",
    "with-another-spi no_association+1 same",
    "with-two-keys 020000000007",
    "by-the-mobile-node nothing CHANGED",
    "forwarded tunnel-to-10.4.0.1",
    "by-the-later-key no_association+1 same",
    "at-the-end tunnel-to-10.4.0.1",
];
