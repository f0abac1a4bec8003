//! SIGMA: seamless IP diversity based generalized mobility architecture (Fu, Ma, Atiquzzaman and others, technical
//! report TR-OU-TNRL-04-105). Hosts keep their associations by changing the addresses of the transport; who wants to
//! begin one asks a location manager where its peer is.
//!
//! ```text
//!   mobile node ──── UPDATE, signed ───> location manager <──── query ──── correspondent
//! ```
//!
//! - [`location_manager`]: keeps where each mobile node is, as records of a zone.
//! - [`registrar`]: keeps a location manager told, from the mobile node's side.
//! - [`message`]: what they say to each other. [`mark`]: what they mark for whoever measures.
//!
//! The report leaves the location manager's protocol open. Here it is dynamic update of DNS (RFC 2136) under
//! transaction signatures (RFC 8945), so that any name server can take its place, and any resolver ask it.

pub mod config;
pub mod correspondent;
pub mod location_manager;
pub mod mark;
pub mod message;
pub mod mobile_node;
mod monitor;
mod patience;
mod place;
pub mod registrar;
mod resolver;
mod transport;
mod update;

pub use correspondent::Correspondent;
pub use location_manager::LocationManager;
pub use mobile_node::MobileNode;
