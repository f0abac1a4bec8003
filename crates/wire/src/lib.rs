//! The base crate of the workspace: time, addresses, packets and the headers of the Internet protocols.
//!
//! The crate has no dependencies and no cryptography. The crate allocates memory only for the bytes of packets and for
//! the reassembly of fragments. A parsed header is well-formed: the `parse` functions refuse all others with a
//! [`Malformed`], which names the reason.

#![no_std]
extern crate alloc;

mod address;
pub mod arp;
mod bytes;
mod checksum;
mod clock_error;
pub mod ethernet;
mod fnv;
pub mod fragment;
pub mod icmp;
mod identity;
pub mod ipip;
pub mod ipv4;
mod nested;
mod packet;
mod rng;
mod rto;
mod tcp;
mod time;
pub mod tunnel;
pub mod udp;

pub use address::{Cell, Iface, InterfaceAddress, Mac, ParseInterfaceAddressError};
pub use address::{ParseMacError, ParsePrefixError, Prefix};
pub use bytes::{Malformed, Reader};
pub use checksum::{Checksum, checksum};
pub use clock_error::ClockError;
pub use core::net::{Ipv4Addr, SocketAddrV4};
pub use core::time::Duration;
pub use icmp::IcmpError;
pub use identity::{fragment_identity, identity, udp_identity};
pub use packet::{EtherType, Frame, Packet, PacketId, Reason};
pub use rng::Rng;
pub use rto::{Rto, RtoBounds};
pub use tcp::{RoundTripTime, Seq, TcpState};
pub use time::{Instant, WallTime, nanos_of, ntp_distance, ntp_span};
