//! Guards of tuples: this host's stack buffers or drops the segments on a guarded tuple, or answers them by resets. The
//! connection is being moved, has left, is lost or has ended.

use super::{LISTENER, SupportRouter, Timer};
use crate::message::Entry;
use node::{Guard, MigrateOp, Outbox, StreamOp, Tuple};
use wire::{Duration, Instant, Ipv4Addr};

/// The time for which a connection's last segments are intercepted: several retransmissions of a lost FIN. It is
/// shorter than TIME-WAIT (60 s on Linux), after which the host may use the port again, at another router.
const LAST_SEGMENTS: Duration = Duration::from_secs(10);
/// The limit of ended connections whose last segments are intercepted at a time.
const ENDED: usize = 1024;

impl SupportRouter {
    pub(super) fn guard(tuple: Tuple, guard: impl Into<Option<Guard>>, out: &mut Outbox) {
        out.stream(LISTENER, StreamOp::Migrate(MigrateOp::Guard(tuple, guard.into())));
    }

    /// Buffers packets for a connection that is expected from another router.
    pub(super) fn hold(&mut self, connection: &Entry, out: &mut Outbox) {
        for tuple in [connection.near(), connection.far()] {
            self.counts_no_more(tuple);
            Self::guard(tuple, Guard::Hold(self.config.held), out);
        }
    }

    /// Removes the guard and the timers of an earlier connection with the same end points.
    pub(super) fn begins_anew(&mut self, tuple: Tuple, out: &mut Outbox) {
        self.counts_no_more(tuple);
        Self::guard(tuple, None, out);
    }

    fn counts_no_more(&mut self, tuple: Tuple) {
        self.timers.stop(Timer::Silence(tuple));
        self.not_silent(tuple);
        self.resets.remove(&tuple);
        self.ended.remove(&tuple);
    }

    /// Drops the segments on a tuple, or answers them by resets, for the time `silence`.
    pub(super) fn silence(&mut self, now: Instant, tuple: Tuple, guard: Guard, out: &mut Outbox) {
        self.silence_until(now + self.config.silence, tuple, guard, out);
    }

    /// Answers segments on a tuple by resets for the time `silence`. A guard sees only segments that reach this host's
    /// stack. So the tuple is intercepted for the same time, beginning with the next call of `listen`.
    pub(super) fn refuse(&mut self, now: Instant, tuple: Tuple, out: &mut Outbox) {
        self.silence(now, tuple, Guard::Reset, out);
        self.resets.insert(tuple);
    }

    pub(super) fn take_in_last_segments(&mut self, now: Instant, tuple: Tuple) {
        if self.ended.len() < 2 * ENDED {
            self.ended.insert(tuple);
            self.timers.set(Timer::Ended(tuple), now + LAST_SEGMENTS);
        }
    }

    /// Drops the last segments of a half that has ended at an earlier router. This router has no socket that could
    /// answer them. A reset, from this host's stack or the mobile host's, would report an error to the peer.
    pub(super) fn last_segments(&mut self, now: Instant, tuple: Tuple, out: &mut Outbox) {
        self.take_in_last_segments(now, tuple);
        self.silence_until(now + LAST_SEGMENTS, tuple, Guard::Drop, out);
    }

    /// Sets a guard until `until`. A host has at most `GUARDS` guards: beyond that, the oldest one is removed.
    fn silence_until(&mut self, until: Instant, tuple: Tuple, guard: Guard, out: &mut Outbox) {
        Self::guard(tuple, guard, out);
        self.timers.set(Timer::Silence(tuple), until);
        let host = self.host_of(tuple);
        let host = self.hosts.get_mut(&host);
        if let Some(oldest) = host.and_then(|host| host.note_silent(tuple)) {
            self.timers.stop(Timer::Silence(oldest));
            self.speaks_again(oldest, out);
        }
    }

    /// Removes the guard of a tuple, and ends its interception.
    pub(super) fn speaks_again(&mut self, tuple: Tuple, out: &mut Outbox) {
        self.not_silent(tuple);
        Self::guard(tuple, None, out);
        if self.resets.remove(&tuple) {
            self.listen();
        }
    }

    fn not_silent(&mut self, tuple: Tuple) {
        let host = self.host_of(tuple);
        if let Some(host) = self.hosts.get_mut(&host) {
            host.silent.retain(|other| *other != tuple);
        }
    }

    /// Returns the mobile host of a tuple: its local address in a far half, its remote address in a near half.
    fn host_of(&self, tuple: Tuple) -> Ipv4Addr {
        let local = *tuple.local.ip();
        if self.hosts.contains_key(&local) { local } else { *tuple.remote.ip() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::PORT;
    use node::{Effect, Input, Rng, Role};
    use wire::SocketAddrV4;

    const CONFIG: &str = r#"
        address = "10.1.0.1"
        hosts = [{ address = "10.1.0.7", key = "01010101010101010101010101010101" }]
    "#;

    /// Returns the near half of a connection of the host.
    fn half(port: u16) -> Tuple {
        let [local, remote] = [([10, 1, 0, 1], PORT), ([10, 1, 0, 7], port)];
        let end = |(address, port): ([u8; 4], u16)| SocketAddrV4::new(address.into(), port);
        Tuple { local: end(local), remote: end(remote) }
    }

    fn lifted(out: &mut Outbox, tuple: Tuple) -> usize {
        let lifts = |effect: &Effect| matches!(effect, Effect::Stream(_, StreamOp::Migrate(MigrateOp::Guard(of, None))) if *of == tuple);
        out.drain_effects().filter(lifts).count()
    }

    /// Advances the time by the 2 minutes that a guard lasts.
    fn time_passes(router: &mut SupportRouter, out: &mut Outbox) {
        router.handle(Instant::from_millis(120_000), Input::Timeout, out);
    }

    /// The oldest of more than 256 guards is removed once. A guard that a later connection with the same end points
    /// replaced, or that has expired, is not removed again.
    #[test]
    fn a_guard_is_lifted_for_others_only_while_it_stands() {
        let many = |router: &mut SupportRouter, out: &mut Outbox| {
            (2..258).for_each(|port| router.silence(Instant::ZERO, half(port), Guard::Drop, out));
        };
        let first = |then: fn(&mut SupportRouter, &mut Outbox)| {
            let mut out = Outbox::default();
            let mut router = SupportRouter::new(toml::from_str(CONFIG).unwrap(), Rng::new(1)).unwrap();
            router.silence(Instant::ZERO, half(1), Guard::Drop, &mut out);
            then(&mut router, &mut out);
            out.drain_effects().for_each(drop);
            many(&mut router, &mut out);
            let at_once = lifted(&mut out, half(1));
            time_passes(&mut router, &mut out);
            [at_once, lifted(&mut out, half(1))]
        };
        assert_eq!(first(|_, _| {}), [1, 0]);
        assert_eq!(first(|router, out| router.begins_anew(half(1), out)), [0, 0]);
        assert_eq!(first(time_passes), [0, 0]);
    }
}
