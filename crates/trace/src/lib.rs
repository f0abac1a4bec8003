//! What the simulator and Linux record of a run. Both backends write the same [`Record`]s, so the ledger, the captures
//! and the comparison of backends read the records of both. The crate also has the [`Fingerprint`] of a simulated run,
//! and the [`Doubt`]s about a run.

mod app;
pub mod doubt;
mod event;
mod fingerprint;
mod fold;
mod intern;
mod record;
mod text;
mod witness;

pub use doubt::{Doubt, NamedDoubt};
pub use event::{Event, EventKind};
pub use fingerprint::{Fingerprint, Fingerprinter, Fold, ParseFingerprintError};
pub use record::{HostId, Record, What};
pub use text::{Trail, hex, json_of, unhex, value_of};
pub use witness::Witness;
