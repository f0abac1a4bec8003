//! Wires and radio cells without I/O: when and where an offered frame arrives, or why it does not.
//!
//! Both backends use this model: the simulator in virtual time, the lab's link emulator on Linux in real time. The
//! model does not store frames. [`Fabric::offer`] returns a [`Flight`], plain data that the caller keeps with the frame
//! until the flight lands. [`Fabric::land`] then returns the receivers. If the channel is not free, [`Fabric::offer`]
//! returns a [`Ticket`] instead, under which the caller keeps the frame. The caller calls [`Fabric::decide`] when
//! [`Fabric::next_decision`] is due. For each decided ticket, [`Fabric::decide`] returns the flight, or the reason why
//! the frame is lost.
//!
//! A wire is full duplex. A cell is one half-duplex medium that its radios share. Each radio, also that of the base
//! station, has its own bounded queue, and the channel is granted for one frame at a time ([`Access`]). A radio
//! receives a frame only if the radio was in the cell, and not away, from the frame's first bit to its last.
//!
//! A radio can also receive other stations of its channel ([`Hears`]), where their cells overlap.
//!
//! A cell can also be full duplex ([`Duplex::Full`]): a switch, into which hosts are plugged by cables. Each sender then
//! has a separate medium, and nothing waits for the frame of another sender. Such a cell has the same rules for a radio
//! that leaves or arrives. A host whose cable is unplugged is notified ([`Tuning::unplugs`]).
//!
//! A radio that is away, to listen or to send elsewhere, keeps its own frames until it is back. A radio that leaves its
//! cell drops the frames that wait at it, unless it has time to send them first ([`Listening::drain`]). A
//! [`SignalCourse`] gives the strength with which a radio hears each cell. If its own cell becomes too weak, the radio
//! loses the cell.

mod air;
mod cell;
mod channel;
mod fabric;
mod flight;
mod medium;
mod radio;
mod sender;
mod signal_course;

pub use air::{Access, Air, Beacon, Contention};
pub use fabric::change::{Change, ChangedLink, Consequence, InterfaceState};
pub use fabric::drain::Tune;
pub use fabric::grant::Decision;
pub use fabric::{Arrived, Fabric, Landing, Offer, Sample};
pub use flight::{Flight, Ticket};
pub use medium::{Burst, CellSpec, Duplex, Faults, WireSpec};
pub use radio::{Hears, Listening, RadioSpec, Scan, Tuning};
pub use signal_course::{SAMPLING, SignalCourse};

/// The number of a port: one end of a wire, or a radio. A port is an interface of a host. The caller chooses the
/// numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortId(pub u32);

/// The reasons for which a link loses a frame.
pub mod reason {
    use wire::Reason;

    /// The queue in front of the link was full.
    pub const QUEUE_FULL: Reason = Reason("queue_full");
    /// The frame is longer than the link's MTU.
    pub const MTU: Reason = Reason("link_mtu");
    /// The link lost the frame at random.
    pub const LINK_ERROR: Reason = Reason("link_error");
    /// The frame was offered while the radio changed cells, or before the radio was first tuned.
    pub const RETUNING: Reason = Reason("radio_retuning");
    /// The frame was offered while the radio had no cell in reach.
    pub const OUT_OF_RANGE: Reason = Reason("radio_out_of_range");
    /// The radio left the cell before the last bit of the frame was sent.
    pub const SENDER_LEFT: Reason = Reason("sender_left_cell");
    /// The destination of the frame was not in the cell from the frame's first bit to its last.
    pub const RECEIVER_LEFT: Reason = Reason("receiver_left_cell");
    /// The destination of the frame was listening or sending in another cell.
    pub const RECEIVER_AWAY: Reason = Reason("receiver_away");
    /// The frame collided with other frames 7 times.
    pub const COLLISIONS: Reason = Reason("collisions");
    /// The link was cut by an event of the scenario.
    pub const CUT: Reason = Reason("link_cut");
    /// The port has no link, or the cell does not exist.
    pub const NO_CARRIER: Reason = Reason("no_carrier");
}
