//! Packets that would circle between foreign agents, and notifications that would flood a victim. `attacks.rs` describes the scripts.

use crate::attacks::prints;
use crate::attacks_mobile_ip::handoff_agent;

#[test]
fn no_packet_circles_and_no_notification_floods_a_victim() {
    prints(&handoff_agent(""), "mobile_ip_circles.py", ROWS);
}

/// What `mobile_ip_circles.py` prints. The state that changes is the number of packets that the agent has forwarded.
const ROWS: &[&str] = &[
    "two-agents forwarding_loop+20 same",
    "two-agents packets 20 rounds 1",
    "two-agents-from-the-other forwarding_loop+20 same",
    "two-agents-from-the-other packets 0 rounds",
    "three-agents forwarding_loop+20 CHANGED",
    "three-agents packets 20 rounds 2",
    "three-agents-from-the-last forwarding_loop+20 CHANGED",
    "three-agents-from-the-last packets 20 rounds 1",
    "victim-of-many-hosts some at-most 64 fewer-bytes",
    "victim-of-one-host some at-most 4 fewer-bytes",
];
