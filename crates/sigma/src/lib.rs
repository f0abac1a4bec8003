//! SIGMA: seamless IP diversity based generalized mobility architecture (Fu, Ma, Atiquzzaman and others, technical
//! report TR-OU-TNRL-04-105). A host that moves keeps its SCTP associations: it changes the addresses of each
//! association (RFC 5061). It registers its current address with a location manager. Other hosts can ask the location
//! manager for the address, to open an association.
//!
//! ```text
//!   mobile node ──── UPDATE, signed ───> location manager <──── query ──── another host
//! ```
//!
//! - [`mobile_node`]: moves between networks. [`correspondent`]: a host with SCTP whose peers may move.
//! - [`location_manager`]: holds the addresses of each mobile node, as records of a DNS zone.
//! - [`registrar`]: registers a mobile node's address with a location manager.
//! - [`message`]: the DNS messages. [`mark`]: the events that are recorded for measurements.
//!
//! The report does not define the location manager's protocol. This crate uses dynamic updates of DNS (RFC 2136) with
//! transaction signatures (RFC 8945). So a name server that supports both can be the location manager, and a DNS
//! resolver can query it.

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
