//! Changes of our own addresses: requests to the peer, and the peer's answers (RFC 5061, sections 5.1 and 5.3).

use crate::association::{Association, Transmit};
use crate::event::{AssociationEvent, Change, ChangeOutcome, RequestError};
use crate::local_addresses::AddressUse;
use crate::message::{Action, Address, Asconf, AsconfAck, Cause, Chunk, Code, Request, Response};
use crate::unicast::unicast;
use std::collections::VecDeque;
use wire::{Duration, Instant, Ipv4Addr};

/// The largest number of ASCONF chunks that may wait for the answer to the outstanding one.
const QUEUE: usize = 16;
/// The largest number of changes in one ASCONF chunk, so that the chunk fits an MTU of 576 bytes.
const CHANGES_PER_CHUNK: usize = 16;

/// Changes that are requested in one ASCONF chunk.
#[derive(Clone, Debug)]
struct Batch {
    changes: Vec<Change>,
}

/// The ASCONF that waits for an answer.
#[derive(Clone, Debug)]
struct Outstanding {
    asconf: Asconf,
    batch: Batch,
    to: Ipv4Addr,
    due: bool,
    t4: Option<Instant>,
    /// When the ASCONF was last sent.
    left: Option<Instant>,
    /// The ASCONF was repeated since the last expiry of T4, because the peer behaved as if it had answered.
    again: bool,
}

/// The state of the end that sends ASCONF.
#[derive(Clone, Debug)]
pub(crate) struct AsconfOut {
    /// The peer supports authenticated address changes.
    pub(crate) supported: bool,
    /// The serial number of the next ASCONF. The first one is our initial TSN (RFC 5061, section 5.1, A2).
    serial: u32,
    correlation: u32,
    queue: VecDeque<Batch>,
    out: Option<Outstanding>,
}

impl AsconfOut {
    pub(crate) const fn new(tsn: u32) -> Self {
        Self { supported: false, serial: tsn, correlation: 1, queue: VecDeque::new(), out: None }
    }

    /// Returns when T4 expires, or `None` if it does not run.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.out.as_ref().and_then(|out| out.t4)
    }

    /// Returns whether a change waits for an answer and goes to another address than `peer`.
    pub(crate) fn waits_elsewhere(&self, peer: Ipv4Addr) -> bool {
        self.out.as_ref().is_some_and(|out| out.to != peer)
    }

    /// Sends the outstanding change to `peer` at once, if it went to another address. The peer may be reachable only
    /// at `peer`.
    pub(crate) fn ask_at(&mut self, now: Instant, peer: Ipv4Addr) {
        if let Some(out) = self.out.as_mut().filter(|out| out.to != peer) {
            out.to = peer;
            self.hasten(now);
        }
    }

    /// Sends the outstanding change to `peer` at once, if it went to `gone`, where the peer is not.
    pub(crate) fn ask_elsewhere(&mut self, now: Instant, gone: Ipv4Addr, peer: Ipv4Addr) {
        if self.out.as_ref().is_some_and(|out| out.to == gone) {
            self.ask_at(now, peer);
        }
    }

    /// Repeats the outstanding change, because the peer uses an address that the change adds or deletes: the change or
    /// its answer may have been lost. The first repetition leaves at once, and each further one at least `pause` after
    /// the last transmission.
    pub(crate) fn answer_was_lost(&mut self, now: Instant, pause: Duration) {
        let is_over = |out: &Outstanding| out.left.is_some_and(|left| now >= left + pause);
        let asks = |out: &mut Outstanding| !std::mem::replace(&mut out.again, true) || is_over(out);
        if self.out.as_mut().is_some_and(asks) {
            self.hasten(now);
        }
    }

    /// Makes the outstanding change due at once. T4 expires now, which does not count as a failure.
    pub(crate) fn hasten(&mut self, now: Instant) {
        if let Some(out) = &mut self.out {
            out.due = true;
            out.t4 = Some(now);
        }
    }
}

impl Batch {
    fn deleted(&self) -> Vec<Ipv4Addr> {
        let deleted = self.changes.iter().filter(|change| matches!(change, Change::Delete(_)));
        deleted.map(|change| change.address()).collect()
    }

    /// Returns the first address that the changes add, or `None`.
    fn added(&self) -> Option<Ipv4Addr> {
        let added = self.changes.iter().find(|change| matches!(change, Change::Add(_)));
        added.map(|change| change.address())
    }
}

impl Association {
    /// Queues changes. On an error, no change is queued.
    pub(crate) fn request(&mut self, now: Instant, changes: &[Change]) -> Result<(), RequestError> {
        if !self.is_open() {
            return Err(RequestError::NotOpen);
        }
        if !self.reconfigurable() {
            return Err(RequestError::Unsupported);
        }
        if self.asconf_out.queue.len() >= QUEUE || changes.len() > CHANGES_PER_CHUNK {
            return Err(RequestError::Full);
        }
        self.check(changes)?;
        let before = self.sources();
        for change in changes {
            match change {
                Change::Add(address) => {
                    self.locals.is_here(*address);
                    self.locals.set(*address, AddressUse::Adding);
                }
                Change::Delete(address) => {
                    self.locals.set(*address, AddressUse::Deleting);
                    self.locals.preferred = self.locals.preferred.filter(|preferred| preferred != address);
                    self.locals.detour = self.locals.detour.filter(|detour| detour != address);
                }
                Change::SetPrimary(_) => {}
            }
        }
        self.rerouted(&before);
        self.asconf_out.queue.push_back(Batch { changes: changes.to_vec() });
        self.settle(now);
        Ok(())
    }

    /// Checks whether each change is valid after the changes before it.
    fn check(&self, changes: &[Change]) -> Result<(), RequestError> {
        let mut after: Vec<Ipv4Addr> = self.locals.lasting().collect();
        for change in changes {
            let address = change.address();
            let ours = after.contains(&address);
            match change {
                Change::Add(_) if !unicast(address) => return Err(RequestError::Address),
                Change::Add(_) if ours || self.locals.get(address) == Some(AddressUse::Deleting) => {
                    return Err(RequestError::Known);
                }
                Change::Add(_) => after.push(address),
                Change::Delete(_) | Change::SetPrimary(_) if !ours => return Err(RequestError::Unknown),
                Change::Delete(_) if after.len() == 1 => return Err(RequestError::Last),
                Change::Delete(_) => after.retain(|other| *other != address),
                Change::SetPrimary(_) => {}
            }
        }
        Ok(())
    }

    // --- ASCONF that is sent ---------------------------------------------------------------------------------------

    /// Returns the ASCONF that is due, or `None`. At most one is outstanding (RFC 5061, section 5.1.1, C1).
    pub(crate) fn change_packet(&mut self, now: Instant) -> Option<Transmit> {
        self.next_change();
        let out = self.asconf_out.out.as_mut().filter(|out| out.due)?;
        out.due = false;
        // The destination may have been removed after the chunk was built. RFC 5061, section 5.1, B4, allows another
        // destination.
        if self.paths.get(out.to).is_none() {
            out.to = self.paths.for_data();
        }
        let rto = self.paths.get(out.to)?.rto.current();
        (out.t4, out.left) = (Some(now + rto), Some(now));
        let (dst, mut asconf) = (out.to, out.asconf.clone());
        let src = self.locals.source_of_change(&out.batch.deleted())?;
        // The chunk deletes its own source address. If the peer has applied the chunk already, it does not know the
        // source, and finds the association only by an address that the chunk adds.
        if out.batch.deleted().contains(&src)
            && let Some(added) = out.batch.added()
        {
            asconf.lookup = Address::Ipv4(added);
        }
        Some(Transmit::new(src, dst, self.seal(vec![Chunk::Asconf(asconf)])))
    }

    /// Begins the next change of the queue, if none is outstanding.
    pub(crate) fn next_change(&mut self) {
        if self.asconf_out.out.is_none()
            && let Some(batch) = self.asconf_out.queue.pop_front()
        {
            self.begin_change(batch);
        }
    }

    fn begin_change(&mut self, batch: Batch) {
        let source = self.locals.source_of_change(&batch.deleted());
        // The chunk names an address of ours that the peer knows, in case the peer does not know the source (RFC
        // 5061, section 5.3.2).
        let lookup = source.and_then(|source| self.locals.known_to_peer(source));
        let Some(lookup) = lookup else { return self.refuse(&batch) };
        let first = self.asconf_out.correlation;
        self.asconf_out.correlation = first.wrapping_add(batch.changes.len() as u32);
        let requests = (0..).zip(&batch.changes).map(|(at, change)| Request::Change {
            action: match change {
                Change::Add(_) => Action::Add,
                Change::Delete(_) => Action::Delete,
                Change::SetPrimary(_) => Action::SetPrimary,
            },
            correlation: first.wrapping_add(at),
            address: Address::Ipv4(change.address()),
        });
        let requests = requests.collect();
        let asconf = Asconf { serial: self.asconf_out.serial, lookup: Address::Ipv4(lookup), requests };
        self.asconf_out.serial = self.asconf_out.serial.wrapping_add(1);
        let to = self.paths.for_data();
        let (due, t4, left, again) = (true, None, None, false);
        self.asconf_out.out = Some(Outstanding { asconf, batch, to, due, t4, left, again });
    }

    /// Handles the expiry of T4: the same chunk is sent again, to another address if there is one (RFC 5061, section
    /// 5.1, B4).
    pub(crate) fn change_timeout(&mut self) {
        let Some(out) = &mut self.asconf_out.out else { return };
        out.t4 = None;
        // `hasten` sets T4 to the present time and makes the chunk due. Its expiry is then no failure.
        if std::mem::replace(&mut out.due, true) {
            return;
        }
        out.again = false;
        let to = out.to;
        let hearsay = self.paths.hearsay().filter(|hearsay| *hearsay != to);
        out.to = hearsay.or_else(|| self.paths.best_besides(to)).unwrap_or(to);
        self.path_failed(to, true);
    }

    // --- ASCONF-ACK that is received -------------------------------------------------------------------------------

    /// Handles ASCONF-ACK (RFC 5061, section 5.1, A5 to A8, and section 5.3, F0).
    pub(crate) fn asconf_ack_came(&mut self, now: Instant, ack: &AsconfAck) {
        let Some(out) = self.asconf_out.out.take_if(|out| out.asconf.serial == ack.serial) else {
            if ack.serial.wrapping_sub(self.asconf_out.serial).cast_signed() >= 0 {
                let cause = Cause::new(Code::ILLEGAL_ASCONF_ACK, []);
                self.abort_with(cause, crate::Ended::Violation("ASCONF-ACK for a request that was not sent"));
            }
            return;
        };
        self.heard();
        if let Some(path) = self.paths.get_mut(out.to) {
            path.errors = 0;
        }
        let before = self.sources();
        let outcomes = outcomes(&out.asconf, ack);
        for (change, outcome) in out.batch.changes.iter().zip(outcomes) {
            let is_gone = matches!(change, Change::Delete(_))
                && outcome == ChangeOutcome::Refused(Some(Code::UNRESOLVABLE_ADDRESS));
            // An address that the peer does not have counts as deleted.
            self.answered(now, *change, if is_gone { ChangeOutcome::Done } else { outcome });
        }
        self.rerouted(&before);
        if before.iter().all(|(_, source)| source.is_none()) {
            // No address of ours could send until now, so SHUTDOWN and probes that wait are due.
            self.shutdown_due |= self.waits_for_shutdown();
            self.probing = now;
            self.paths.iter_mut().filter(|path| path.probe.is_none()).for_each(|path| path.heartbeat = now);
        }
        let mut gone = out.batch.deleted();
        gone.retain(|address| {
            matches!(self.locals.get(*address), Some(AddressUse::Gone(_) | AddressUse::Here) | None)
        });
        self.outbound.lose_from(&mut self.paths, &gone);
    }

    fn answered(&mut self, now: Instant, change: Change, outcome: ChangeOutcome) {
        let address = change.address();
        match (change, outcome) {
            (Change::Add(_), ChangeOutcome::Done) => self.locals.answered(address, true),
            (Change::Delete(_), ChangeOutcome::Done) => self.locals.answered(address, false),
            _ => {}
        }
        match (change, outcome) {
            (Change::Add(_), ChangeOutcome::Done) if self.locals.get(address) == Some(AddressUse::Adding) => {
                self.locals.set(address, AddressUse::All);
            }
            (Change::Add(_), ChangeOutcome::Refused(_)) => self.locals.remove(address),
            // The host has returned to this address after it had requested the deletion.
            (Change::Delete(_), ChangeOutcome::Done) if self.locals.preferred == Some(address) => {
                self.locals.set(address, AddressUse::Here);
            }
            (Change::Delete(_), ChangeOutcome::Done) => {
                // Late packets to the deleted address are accepted for two RTOs.
                let rto =
                    self.paths.get(self.data_path).map_or(self.config.rto_initial, |path| path.rto.current());
                self.locals.set(address, AddressUse::Gone(now + rto * 2));
            }
            (Change::Delete(_), ChangeOutcome::Refused(_)) => self.locals.set(address, AddressUse::All),
            _ => {}
        }
        self.events.push_back(AssociationEvent::Changed(change, outcome));
    }

    /// Requests no more changes: the peer does not support them.
    pub(crate) fn cannot_change(&mut self) {
        self.abandon_changes();
        self.asconf_out.supported = false;
    }

    /// Reports all requested changes without an answer as refused, as they will not be answered.
    pub(crate) fn abandon_changes(&mut self) {
        let out = self.asconf_out.out.take().map(|out| out.batch);
        let waiting = std::mem::take(&mut self.asconf_out.queue);
        for batch in out.into_iter().chain(waiting) {
            self.refuse(&batch);
        }
    }

    fn refuse(&mut self, batch: &Batch) {
        for change in &batch.changes {
            self.answered(Instant::ZERO, *change, ChangeOutcome::Refused(None));
        }
    }
}

/// Returns the outcome of each request (RFC 5061, section 5.1, A7). A request without a response is done if it
/// precedes the first refusal, and refused if it follows the first refusal.
pub(crate) fn outcomes(asconf: &Asconf, ack: &AsconfAck) -> Vec<ChangeOutcome> {
    let mut refused = false;
    let judge = |request: &Request| {
        let correlation = request.correlation();
        let answer = ack.responses.iter().find_map(|response| match response {
            Response::Success(number) if *number == correlation => Some(ChangeOutcome::Done),
            Response::Refused(number, causes) if *number == correlation => {
                Some(ChangeOutcome::Refused(causes.first().map(|cause| cause.code)))
            }
            _ => None,
        });
        refused |= matches!(answer, Some(ChangeOutcome::Refused(_)));
        answer.unwrap_or(if refused { ChangeOutcome::Refused(None) } else { ChangeOutcome::Done })
    };
    asconf.requests.iter().map(judge).collect()
}
