//! What both worlds write down while they run: one [`Record`] vocabulary, so that the ledger, the captures and the
//! comparison of worlds read the simulator and Linux alike, and the [`Fingerprint`] of a simulated run.

mod app;
mod fingerprint;
mod record;
mod text;
mod witness;

pub use fingerprint::Fingerprint;
pub use record::{HostId, Record, Trail, What};
pub use text::{hex, json_of, unhex, value_of};
pub use witness::Witness;
