//! Wires and radio cells without I/O: when a frame that is offered now arrives, at whom, or why never.
//!
//! Both backends carry frames by this one model: the simulator in virtual time, the lab's radio process on Linux in real
//! time. The model keeps no frames. [`Fabric::offer`] answers with a [`Flight`], plain data that the caller keeps with
//! the frame until the flight lands; [`Fabric::land`] then says who hears it. Where the channel is not free the answer is a
//! [`Ticket`] instead: the caller keeps the frame under it, and calls [`Fabric::decide`] when [`Fabric::next_decision`] is
//! due, which says of tickets that they fly, or why not.
//!
//! A wire is full duplex. A cell is one half-duplex medium that its radios share; each radio, the base station's too, has a
//! bounded queue of its own, and the channel is granted for one frame at a time ([`Access`]). A frame is heard by a radio
//! that was on the cell's frequency from its first bit to its last; a radio that is away, to listen or to send elsewhere,
//! keeps its own frames until it is back; one that leaves its cell drops the frames that wait at it, unless it has time to send them
//! first ([`Listening::drain`]). Where a radio has a
//! [`Course`], it hears cells as strongly as that says, and loses its own where that ends.

mod air;
mod cell;
mod change;
mod channel;
mod course;
mod drain;
mod fabric;
mod grant;
mod medium;
mod radio;

pub use air::{Access, Air, Beacon, Contention};
pub use change::{Becomes, Change, Follows, Place};
pub use course::{Course, SAMPLING};
pub use drain::Tune;
pub use fabric::{Arrived, Fabric, Flight, Landing, Offer, Sample, Ticket};
pub use grant::Decision;
pub use medium::{Burst, CellSpec, Faults, WireSpec};
pub use radio::{Listening, RadioSpec, Scan, Tuning};

/// One end of a wire, or a radio: an interface of a host, numbered by whoever lays the fabric out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortId(pub u32);

/// Why a link loses a frame.
pub mod reason {
    use wire::Reason;

    /// The queue in front of the link was full.
    pub const QUEUE_FULL: Reason = Reason("queue_full");
    /// Longer than the link takes.
    pub const MTU: Reason = Reason("link_mtu");
    /// The link's error process took it.
    pub const LINK_ERROR: Reason = Reason("link_error");
    /// Sent while the radio was on its way between cells.
    pub const RETUNING: Reason = Reason("radio_retuning");
    /// Sent while the radio heard no cell.
    pub const OUT_OF_RANGE: Reason = Reason("radio_out_of_range");
    /// The radio left the cell before the frame was out.
    pub const SENDER_LEFT: Reason = Reason("sender_left_cell");
    /// Its addressee was not in the cell from the frame's first bit to its last.
    pub const RECEIVER_LEFT: Reason = Reason("receiver_left_cell");
    /// Its addressee was away, sending a packet in another cell.
    pub const RECEIVER_AWAY: Reason = Reason("receiver_away");
    /// It collided with others' frames too often.
    pub const COLLISIONS: Reason = Reason("collisions");
    /// The link was cut by an event of the scenario.
    pub const CUT: Reason = Reason("link_cut");
    /// The port leads nowhere.
    pub const NO_CARRIER: Reason = Reason("no_carrier");
}
