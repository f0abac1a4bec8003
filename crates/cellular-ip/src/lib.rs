//! Cellular IP (Campbell et al., 2000; draft-ietf-mobileip-cellularip-00) for IPv4.

pub mod message;
