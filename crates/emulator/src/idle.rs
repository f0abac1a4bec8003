//! An idle thread: it sleeps beside the daemons of a run and does nothing else. The lateness of this thread is the
//! machine's own lateness during that run.

use daemon::{Ages, Heartbeat, Stall, Waits};
use os::{Clock, set_realtime, set_timer_slack};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use wire::{Duration, Instant};

/// Measurements of a thread that only slept during a run: how late it woke, and its stalls.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Idle {
    /// How late the thread woke.
    pub late: Ages,
    /// The thread's stalls of more than 5 ms, in order of time: at most the 1000 longest.
    pub stalls: Vec<Stall>,
}

/// Sleeps until each beat of a [`Heartbeat`] is due, from the clock's zero until `end`, or until the run is `over`.
/// Returns how late the thread woke, and its stalls.
pub fn sleep(clock: Clock, end: Instant, over: &AtomicBool) -> Idle {
    set_realtime();
    let _ = set_timer_slack(Duration::from_micros(1));
    let mut late = Waits::default();
    while !clock.has_begun() {
        os::pause(Duration::from_millis(1));
    }
    let mut heart = Heartbeat::new(end);
    while !over.load(Ordering::Relaxed) && clock.now() < end {
        let due = heart.due();
        os::pause(due.since(clock.now()));
        let now = clock.now();
        late.add(now.min(end).since(due.min(end)));
        heart.beat(now);
    }
    Idle { late: late.summary(), stalls: heart.into_stalls() }
}
