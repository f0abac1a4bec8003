//! Checks of a route-update before a node accepts it. They change no state except the count of wrong digests.

use crate::cache::RouteCache;
use crate::config::StationConfig;
use crate::message::{RouteUpdate, session_key};
use crate::per_second::PerSecond;
use crate::reason;
use auth::ReplayWindow;
use node::Rx;
use wire::{Instant, Ipv4Addr, Mac, Packet, Reason, WallTime};

/// The maximum number of wrong digests from one neighbor in a second. After that, the node refuses the neighbor's
/// further route-updates of this second, and does not check their digests. To check 1000 digests takes less than 1 % of
/// a processor's time.
const WRONG_DIGESTS: u16 = 1000;

/// What a node needs to check route-updates: its clock, the replay window, and the counts of wrong digests.
#[derive(Debug)]
pub(crate) struct Admission {
    window: ReplayWindow,
    wall: WallTime,
    /// The time at which this node started, as an NTP timestamp of the present clock. Older messages are refused: the
    /// node may have accepted them before it started.
    began: u64,
    wrong: PerSecond<(u16, Mac)>,
}

impl Admission {
    pub(crate) fn new(config: &StationConfig) -> Self {
        let window = ReplayWindow::new(config.replay_window);
        Self { window, wall: WallTime::default(), began: 0, wrong: PerSecond::default() }
    }

    pub(crate) fn start(&mut self, now: Instant, wall: WallTime) {
        self.wall = wall;
        self.began = self.ntp(now);
    }

    /// Sets the clock. `began` changes by the difference of the two clocks, so that it remains the time of the start.
    pub(crate) fn set_clock(&mut self, now: Instant, wall: WallTime) {
        let before = self.ntp(now);
        self.wall = wall;
        self.began = self.began.wrapping_add(self.ntp(now).wrapping_sub(before));
    }

    pub(crate) fn ntp(&self, now: Instant) -> u64 {
        self.wall.plus(now.since(Instant::ZERO)).to_ntp()
    }

    /// Checks a route-update from a downlink neighbor, and counts a wrong digest. `air`: whether the route-update
    /// arrived by radio. The two HMACs are expensive, so they are computed last. The error is the reason to drop the
    /// message.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        rx: &Rx,
        packet: &Packet,
        config: &StationConfig,
        air: bool,
        cache: &RouteCache,
    ) -> Result<RouteUpdate, Reason> {
        let update = RouteUpdate::parse(&rx.header, rx.payload(packet))?;
        if update.gateway != config.gateway {
            return Err(reason::WRONG_GATEWAY);
        }
        if !plausible(update.mobile, config) {
            return Err(reason::BAD_SOURCE);
        }
        if update.auth.key_gen != config.key_generation {
            return Err(reason::KEY_GENERATION);
        }
        // Only the first hop can check to which base station the message was sent.
        if air && update.serving_bs != Some(config.id) {
            return Err(reason::SERVING_BS);
        }
        self.timely(now, &update, cache)?;
        if !cache.has_room_for(update.mobile, config.cache_capacity) {
            return Err(reason::CACHE_FULL);
        }
        let neighbor = (rx.iface.0, packet.link.src);
        if self.wrong.count(now, &neighbor) >= WRONG_DIGESTS {
            return Err(reason::AUTH_LIMIT);
        }
        let key = session_key(&config.network_key, update.auth.key_gen, update.mobile, update.auth.r_mh);
        if !update.verify(&key) {
            self.wrong.add(now, neighbor);
            return Err(reason::BAD_AUTH);
        }
        Ok(update)
    }

    /// Checks the timestamp. A node remembers no timestamps from before its start, so a message from before the start
    /// may be a replay.
    fn timely(&self, now: Instant, update: &RouteUpdate, cache: &RouteCache) -> Result<(), Reason> {
        let last = cache.hosts.get(&update.mobile).map(|entry| entry.last_timestamp);
        self.window.check(self.ntp(now), last, update.timestamp)?;
        if wire::ntp_distance(update.timestamp, self.began) < 0 {
            return Err(auth::Untimely::OutsideWindow.into());
        }
        Ok(())
    }
}

/// Returns whether a mobile host can have this address.
pub(crate) fn plausible(source: Ipv4Addr, config: &StationConfig) -> bool {
    let first = source.octets()[0];
    let nowhere = first == 0 || source.is_loopback() || source.is_multicast() || first >= 240;
    !(nowhere || source == config.gateway || config.own.contains(&source))
}
