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
const KEY_ROWS: &[&str] = &[];
