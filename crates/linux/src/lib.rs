//! The former paths of what is now in `os`, `daemon` and `emulator`.

pub use daemon;
pub use daemon::{Refusal, Store};
pub use emulator::steal_time::since_boot as stolen;
pub use emulator::{cleanup as leftover, control_run as control, idle};
/// The link emulator.
pub mod radio {
    pub use emulator::link_emulator::{LinkEmulator as Radio, *};
}
/// Probes.
pub mod doctor {
    pub use emulator::doctor::*;
    pub use os::tcp_support::*;
}
pub use os::files::room;
pub use os::json_lines as lines;
pub use os::{EndPlace as Place, Sandbox as World, *};
