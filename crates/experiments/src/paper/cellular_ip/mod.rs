//! Experiments with Cellular IP.

pub(super) mod udp_loss;
