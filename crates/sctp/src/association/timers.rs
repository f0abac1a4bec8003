//! Time-outs of an association, and HEARTBEATs (RFC 9260, sections 6.3.3 and 8.1 to 8.3).

use crate::association::Association;
use crate::event::{Ended, State};
use crate::message::{Cause, Code};
use crate::path::{Path, PathState, Probe};
use wire::{Duration, Instant, Ipv4Addr, nanos_of};

impl Association {
    /// Returns when to call `on_timeout` next; `None` if no timer runs.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if self.state == State::Closed {
            return None;
        }
        let paths = self.paths.iter().flat_map(|path| [path.t3, self.probe_due(path)]);
        let second = self.second.as_ref().and_then(|second| second.deadline());
        let own = [self.timer, self.guard, self.inbound.delayed, self.asconf_out.deadline(), second];
        own.into_iter().chain(paths).flatten().min()
    }

    /// Handles all timers that are due at `now`. A call before the deadline has no effect.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.deadline()) {
            self.paths.allow_bursts(self.config.max_burst);
        }
        if due(self.inbound.delayed) {
            self.inbound.delayed = None;
            self.inbound.due = true;
        }
        if due(self.guard) {
            self.guard = None;
            self.abort_with(Cause::new(Code::PROTOCOL_VIOLATION, "T5 expired"), Ended::TimedOut);
        }
        if due(self.timer) {
            self.timer = None;
            if self.is_open() { self.shutdown_timeout() } else { self.opening_timeout(now) }
        }
        self.second_timeout(now);
        if due(self.asconf_out.deadline()) {
            self.change_timeout();
        }
        let addresses: Vec<Ipv4Addr> = self.paths.iter().map(|path| path.address).collect();
        for address in addresses {
            if self.state != State::Closed && due(self.paths.get(address).and_then(|path| path.t3)) {
                self.t3_timeout(address);
            }
            if self.state != State::Closed {
                self.probe_timeout(now, address);
            }
        }
        self.locals.forget(now);
        self.settle(now);
    }

    /// Handles the expiry of T2: SHUTDOWN or SHUTDOWN ACK is due again (RFC 9260, section 9.2).
    fn shutdown_timeout(&mut self) {
        let address = self.shutdown_to.unwrap_or_else(|| self.paths.for_data());
        if !self.path_failed(address, true) {
            self.shutdown_due = true;
            // SHUTDOWN or SHUTDOWN ACK goes to another address, if there is an active one (RFC 9260, section 6.4).
            self.shutdown_to = self.paths.best_besides(address);
        }
    }

    /// Handles the expiry of T3: data in flight to `address` are taken as lost (RFC 9260, section 6.3.3).
    fn t3_timeout(&mut self, address: Ipv4Addr) {
        if let Some(path) = self.paths.get_mut(address) {
            path.timed_out();
        }
        self.outbound.counts.timeouts += 1;
        self.outbound.lose(&mut self.paths, address, true);
        self.path_failed(address, false);
        // RFC 9260, section 6.3.3, E3. If the data go to another path, the window of that path limits them.
        self.one_packet(address);
    }

    /// Counts a failure of a path and of the association. Returns whether the failure ended the association.
    pub(crate) fn path_failed(&mut self, address: Ipv4Addr, back_off: bool) -> bool {
        let most = self.config.path_max_retrans;
        let inactive = self.paths.get_mut(address).is_some_and(|path| {
            if back_off {
                path.rto.back_off();
            }
            path.failed(most)
        });
        if inactive {
            self.path_is_inactive(address);
        }
        let over = self.failed();
        if !over {
            self.probe_other_routes(address);
        }
        over
    }

    fn path_is_inactive(&mut self, address: Ipv4Addr) {
        if self.paths.hearsay() == Some(address) {
            return self.remove_path(address);
        }
        self.path_event(address, PathState::Inactive);
        // Data in flight to an inactive address are not expected to arrive (RFC 9260, section 8.2), so they are sent
        // again.
        self.outbound.lose(&mut self.paths, address, true);
    }

    // --- heartbeats (RFC 9260, sections 5.4 and 8.3) ---------------------------------------------------------------

    /// Returns whether HEARTBEATs may be sent in the present state.
    pub(crate) const fn probes(&self) -> bool {
        matches!(self.state, State::Established | State::ShutdownPending | State::ShutdownReceived)
    }

    fn probe_due(&self, path: &Path) -> Option<Instant> {
        let next = match path.probe {
            Some(probe) => probe.until,
            // HB.Max.Burst allows one probe in each RTO, over all unconfirmed addresses (RFC 9260, section 5.4). The
            // limit applies to addresses that the peer names, which may be those of other hosts. The limit does not
            // apply to an address that a directory gave.
            None if path.state == PathState::Unconfirmed && !path.hearsay => path.heartbeat.max(self.probing),
            None => path.heartbeat,
        };
        self.probes().then_some(next)
    }

    /// Returns when an idle path is probed next: after HB.interval and a random time of 0.5 to 1.5 times its RTO.
    pub(crate) fn next_heartbeat(&mut self, now: Instant, address: Ipv4Addr) -> Instant {
        let rto = self.paths.get(address).map_or(self.config.rto_initial, |path| path.rto.current());
        let nanos = nanos_of(rto).max(1);
        let jitter = Duration::from_nanos(nanos / 2 + self.rng.u64() % nanos);
        now + self.config.heartbeat_interval + jitter
    }

    fn probe_timeout(&mut self, now: Instant, address: Ipv4Addr) {
        let Some(path) = self.paths.get(address) else { return };
        if self.probe_due(path).is_none_or(|at| at > now) {
            return;
        }
        if path.probe.is_some() && self.unanswered(now, address) {
            return;
        }
        let Some(path) = self.paths.get(address) else { return };
        if self.probe_due(path).is_none_or(|at| at > now) {
            return;
        }
        if path.flight > 0 && path.confirmed {
            // T3 supervises a path with data in flight, so its probe is postponed. An unconfirmed address gets no new
            // data, so its probe is not postponed.
            let later = self.next_heartbeat(now, address);
            self.paths.get_mut(address).into_iter().for_each(|path| path.heartbeat = later);
            return;
        }
        self.probe(now, address);
    }

    /// Probes an unconfirmed address that has no outstanding probe, if HB.Max.Burst allows a probe now.
    pub(crate) fn probe_the_new(&mut self, now: Instant) {
        let new = |path: &&Path| path.state == PathState::Unconfirmed && path.probe.is_none();
        let due = |path: &&Path| new(path) && self.probe_due(path).is_some_and(|at| at <= now);
        let address = self.paths.iter().find(due).map(|path| path.address);
        if let Some(address) = address {
            self.probe(now, address);
        }
    }

    /// Repeats data to `address` that wait for a backed-off time-out, because the peer was heard there or our link
    /// has returned. At most one packet leaves in a time-out without back-off, even if a host replays packets. T3 does
    /// not change until data are acknowledged (RFC 9260, section 6.3.2): a packet from the peer does not show that
    /// our packets arrive.
    pub(crate) fn wake(&mut self, now: Instant, address: Ipv4Addr) {
        let Some(path) = self.paths.get_mut(address).filter(|path| path.asleep(now)) else { return };
        path.woken = Some(now);
        let t3 = path.t3;
        self.outbound.lose(&mut self.paths, address, false);
        let stays = self.paths.for_retransmission(address, false) == address;
        self.paths.get_mut(address).filter(|_| stays).into_iter().for_each(|path| path.t3 = t3);
        self.one_packet(address);
    }

    /// Sends the last probe of `address` again, because the peer was heard there and the address is not confirmed.
    /// Earlier probes may have been lost before the peer could be reached. The probe is repeated at most once in a
    /// time-out without back-off. The nonce stays the same, so an answer to any copy counts.
    pub(crate) fn probe_where_heard(&mut self, now: Instant, address: Ipv4Addr) {
        let Some(path) = self.paths.get_mut(address).filter(|path| path.probe_sleeps(now)) else { return };
        path.woken = Some(now);
        let Some(probe) = &mut path.probe else { return };
        probe.sent = None;
        let nonce = probe.nonce;
        let transmit = self.heartbeat(address, nonce);
        self.outbox.extend(transmit);
    }

    /// Lets only one packet leave to `address`. The congestion window of one chunk would allow a second packet if the
    /// first is small.
    fn one_packet(&mut self, address: Ipv4Addr) {
        self.paths.get_mut(address).into_iter().for_each(|path| path.burst = 1);
    }

    /// Makes probes of unconfirmed addresses due again, as they may have been lost while our link was interrupted.
    /// HB.Max.Burst still limits the probes.
    pub(crate) fn probe_again(&mut self, now: Instant) {
        for path in self.paths.iter_mut().filter(|path| path.state == PathState::Unconfirmed) {
            (path.probe, path.heartbeat) = (None, now);
            self.probing = now;
        }
    }

    /// Sends a HEARTBEAT on the data path without waiting for the timer of HEARTBEATs. The HEARTBEAT shows the peer
    /// that this host can be reached.
    pub(crate) fn announce(&mut self, now: Instant) {
        if self.probes() {
            self.probe(now, self.paths.for_data());
        }
    }

    /// Sends a HEARTBEAT to `address`, and notes its nonce and when its answer is due. If no address of ours may
    /// send, the HEARTBEAT is tried again after one RTO.
    fn probe(&mut self, now: Instant, address: Ipv4Addr) {
        let (nonce, later) = (self.rng.u64(), self.next_heartbeat(now, address));
        let transmit = self.heartbeat(address, nonce);
        let Some(path) = self.paths.get_mut(address) else { return };
        let until = now + path.rto.current();
        if transmit.is_none() {
            // None of our addresses may send yet.
            path.heartbeat = until;
            return;
        }
        path.probe = Some(Probe { nonce, sent: Some(now), until });
        path.heartbeat = later;
        if path.state == PathState::Unconfirmed && !path.hearsay {
            self.probing = until;
        }
        self.outbox.extend(transmit);
    }

    /// Handles a HEARTBEAT that was not answered within one RTO. Returns whether the failure ended the association.
    fn unanswered(&mut self, now: Instant, address: Ipv4Addr) -> bool {
        let in_use = self.paths.for_data() == address;
        let most = self.config.path_max_retrans;
        let Some(path) = self.paths.get_mut(address) else { return false };
        path.probe = None;
        path.rto.back_off();
        let (mut counts, inactive) = (path.confirmed, path.failed(most));
        // A HEARTBEAT that was not answered is repeated at once, without HB.interval (like RFC 7829, section 3.2). So
        // an end that only receives detects a dead peer about as early as an end that sends.
        if path.state != PathState::Inactive || in_use {
            path.heartbeat = now;
        }
        if inactive {
            self.path_is_inactive(address);
        }
        // Only a failure of the address in use counts for the association. A failure of an unconfirmed address counts
        // only if no address is confirmed: then the peer replaced its last address, and never answered at the new
        // one.
        counts |= !self.paths.iter().any(|path| path.confirmed);
        let over = counts && in_use && self.failed();
        if in_use && !over {
            self.probe_other_routes(address);
        }
        over
    }
}
