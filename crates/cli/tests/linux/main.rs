//! The command on a real kernel: valid runs, invalid runs, the simulator against Linux, and the README.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at what it did not expect"
)]

mod adversary;
mod attacks;
mod attacks_bindings;
mod attacks_buffers;
mod attacks_circles;
mod attacks_keys;
mod attacks_mobile_ip;
mod beside_kernels;
#[path = "../support/blocks.rs"]
mod blocks;
mod bulk;
mod common;
mod compare;
mod conformance;
mod correspondent_programs;
mod ctl;
mod daemon_ends;
mod dhcp;
mod drops;
mod events;
mod evidence;
#[path = "../../../../tests/support/exchanged_radios.rs"]
mod exchanged_radios;
mod exec;
mod faults;
mod host_settings;
mod indirect_tcp;
mod kernel_data_path;
mod lacks;
mod lateness;
mod links;
mod location_manager;
mod mip_peers;
mod mobile_ip;
mod mobile_ip_agent;
mod mobile_ip_soak;
mod readme;
#[path = "../../../../tests/moves/sandbox.rs"]
#[expect(dead_code, reason = "the user `nobody` may have no rights in the folder of the command")]
mod sandbox;
#[path = "../../../../tests/support/soak_course.rs"]
mod soak_course;
mod truth;
#[path = "../../../../tests/support/tshark.rs"]
mod tshark;
mod usrsctp;
