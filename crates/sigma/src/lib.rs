//! SIGMA: seamless IP diversity based generalized mobility architecture (Fu, Ma, Atiquzzaman and others, technical
//! report TR-OU-TNRL-04-105). Hosts keep their associations by changing the addresses of the transport. A host that
//! wants to open one asks a location manager for the address of its peer.
//!
//! ```text
//!   mobile node ──── UPDATE, signed ───> location manager <──── query ──── correspondent
//! ```
//!
//! - [`location_manager`]: holds the addresses of each mobile node, as records of a zone.
//! - [`registrar`]: registers a mobile node's address with a location manager.
//! - [`message`]: their messages. [`mark`]: the events that are recorded for measurements.
//!
//! The report does not define the location manager's protocol. Here it is dynamic update of DNS (RFC 2136) with
//! transaction signatures (RFC 8945). So any name server can be the location manager, and any resolver can query it.

pub mod config;
pub mod correspondent;
mod location;
pub mod location_manager;
pub mod mark;
pub mod message;
pub mod mobile_node;
pub mod registrar;
mod request_limits;
mod resolver;
mod signal_monitor;
mod transport;
mod update;

pub use correspondent::Correspondent;
pub use location_manager::LocationManager;
pub use mobile_node::MobileNode;
