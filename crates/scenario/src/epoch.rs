//! The wall clock of simulated runs.

use wire::WallTime;

/// The wall-clock time at which every simulated run begins: 2000-01-01 00:00 UTC, the year of the Cellular IP paper.
pub const EPOCH: WallTime = WallTime(946_684_800_000_000_000);
