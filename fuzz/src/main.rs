//! All fuzz targets in one program, because instrumented code takes long to compile and to link. `FUZZ_TARGET` names the
//! target that runs; `run.sh` sets it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

#[path = "../targets/dhcp.rs"]
mod dhcp;
#[path = "../targets/dns.rs"]
mod dns;
#[path = "../targets/ethernet.rs"]
mod ethernet;
#[path = "../targets/handoff.rs"]
mod handoff;
#[path = "../targets/indirect_tcp.rs"]
mod indirect_tcp;
#[path = "../targets/ipv4.rs"]
mod ipv4;
#[path = "../targets/mobile_ip.rs"]
mod mobile_ip;
#[path = "../targets/route_update.rs"]
mod route_update;
#[path = "../targets/sctp_packet.rs"]
mod sctp_packet;
#[path = "../targets/sctp_wire.rs"]
mod sctp_wire;
#[path = "../targets/stack.rs"]
mod stack;
#[path = "../targets/tcp.rs"]
mod tcp;
#[path = "../targets/udp.rs"]
mod udp;

/// The targets by their names, which are those of the folders of seeds.
const TARGETS: &[(&str, fn(&[u8]))] = &[
    ("dhcp", dhcp::run),
    ("dns", dns::run),
    ("ethernet", ethernet::run),
    ("handoff", handoff::run),
    ("indirect_tcp", indirect_tcp::run),
    ("ipv4", ipv4::run),
    ("mobile_ip", mobile_ip::run),
    ("route_update", route_update::run),
    ("sctp_packet", sctp_packet::run),
    ("sctp_wire", sctp_wire::run),
    ("stack", stack::run),
    ("tcp", tcp::run),
    ("udp", udp::run),
];

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let wanted = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let named = TARGETS.iter().find(|(name, _)| *name == wanted);
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    named.unwrap_or_else(|| panic!("FUZZ_TARGET must be one of: {}", names.join(", "))).1
});

fuzz_target!(|bytes: &[u8]| TARGET(bytes));
