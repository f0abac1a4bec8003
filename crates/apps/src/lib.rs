//! Workloads as roles: programs that send and receive over [`node::stream`]s. The same role runs over the sockets of
//! the simulator and over those of the Linux kernel.

pub mod bulk;
mod client;
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
