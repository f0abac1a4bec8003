//! Workloads as roles: programs that send and receive over [`node::stream`]s. The same role runs over the simulator's
//! sockets and over the kernel's.

pub mod bulk;
mod client_limit;
pub mod constant_rate;
pub mod request;
pub mod roam;
pub mod sink;

pub use bulk::{BulkClient, BulkClientConfig, BulkServer, BulkServerConfig, Carrier};
pub use constant_rate::{ConstantRate, ConstantRateConfig};
pub use request::{RequestClient, RequestClientConfig, RequestServer, RequestServerConfig};
pub use roam::{Roam, RoamConfig};
pub use sink::{Sink, SinkConfig};

/// Returns the number that a datagram of [`ConstantRate`] carries in its first eight bytes; `None` if it is shorter.
pub fn number_of(payload: &[u8]) -> Option<u64> {
    payload.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}
