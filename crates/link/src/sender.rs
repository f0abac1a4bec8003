//! The names of the queues in front of channels.

use crate::PortId;

/// The name of a queue in front of a channel. Each radio has two queues: one for frames in its own cell, and one for
/// frames that it sends in other cells (`visits`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Sender {
    pub(crate) port: PortId,
    pub(crate) visits: bool,
}
