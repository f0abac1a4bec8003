//! What both worlds write down while they run: one [`Record`] vocabulary, so that the ledger, the captures and the
//! comparison of worlds read the simulator and Linux alike, the [`Fingerprint`] of a simulated run, and every [`Doubt`]
//! of a run.

mod app;
pub mod doubt;
mod event;
mod fingerprint;
mod record;
mod text;
mod witness;

pub use doubt::{Doubt, NamedDoubt};
pub use event::{Event, EventKind};
pub use fingerprint::Fingerprint;
pub use record::{HostId, Record, Trail, What};
pub use text::{hex, json_of, unhex, value_of};
pub use witness::Witness;
