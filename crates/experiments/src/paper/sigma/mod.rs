//! Experiments with SIGMA, and with Mobile IP in the same report.

pub(super) mod handoff;
pub(super) mod mobile_ip;

/// The foreign agent (table I of the paper).
const FOREIGN_AGENT: &str = "10.1.6.1";

/// Returns settings for cross traffic until `stop`: in each cell, a neighbor receives 0.8 Mb/s from the correspondent.
/// `roles` are the correspondent's other roles.
fn cross_traffic(roles: &str, stop: &str) -> Vec<String> {
    let neighbor = |name: &str, address: &str, gateway: &str| {
        format!(
            "host.{name}={{ address = \"{address}\", role = [{{ kind = \"apps/roam\", start = \"{gateway}\" }}, \
             {{ kind = \"apps/sink\", at = \"{name}:9001\" }}] }}"
        )
    };
    let source = |name: &str| {
        format!(
            "{{ kind = \"apps/constant-rate\", to = \"{name}:9001\", rate = 100, size = 1000, start = \"0.5s\", \
             stop = \"{stop}\" }}"
        )
    };
    vec![
        neighbor("near", "10.1.8.7", "gateway1"),
        neighbor("far", "10.1.6.7", "gateway2"),
        format!("host.correspondent.role=[{roles}, {}, {}]", source("near"), source("far")),
    ]
}
