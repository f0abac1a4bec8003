//! The state that a router has of a connection, and what an event of one of its halves changes.

use crate::message::{Code, Entry, Halves, Side, SocketState};
use node::stream::refusal as refused;
use node::{MigrateEvent, StreamEvent, StreamId};
use wire::{Ipv4Addr, Seq};

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) entry: Entry,
    pub(super) near: Option<StreamId>,
    pub(super) far: Option<StreamId>,
    /// The sequence of the call that opened the connection, or `None` if another router handed it over. A greeting with
    /// a lower sequence does not name the connection.
    pub(super) called: Option<u64>,
    /// The number of the latest attempt to hand the connection over, by any router. 0 before the first one.
    pub(super) attempt: u32,
    pub(super) stage: Stage,
}

impl Connection {
    /// Returns a connection that is expected from another router.
    pub(super) const fn expected(entry: Entry) -> Self {
        Self { entry, near: None, far: None, called: None, attempt: 0, stage: Stage::Expected }
    }

    /// Returns the commit that is not answered, if any. Only the router to which it was sent knows whether the attempt
    /// succeeded.
    pub(super) const fn committed(&self) -> Option<Commit> {
        match &self.stage {
            Stage::Leaving(leaving) => leaving.committed,
            _ => None,
        }
    }

    /// Returns whether both halves have ended.
    pub(super) const fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// Returns whether the host called for the connection after its greeting `sequence`. Then that greeting does not
    /// name the connection, and the greeted router does not know the connection.
    pub(super) fn is_called_after(&self, sequence: u64) -> bool {
        self.called.is_some_and(|called| called > sequence)
    }

    /// Returns the existing halves, each with its stream.
    pub(super) fn halves(&self) -> impl Iterator<Item = (Side, StreamId)> + use<> {
        let near = self.near.map(|id| (Side::Near, id));
        near.into_iter().chain(self.far.map(|id| (Side::Far, id)))
    }

    pub(super) fn of(&mut self, side: Side) -> &mut Option<StreamId> {
        match side {
            Side::Near => &mut self.near,
            Side::Far => &mut self.far,
        }
    }

    /// Applies an event of one half. Returns what the router has to do next, if anything. `moves_unread`: bytes that
    /// were received and not read are handed over too.
    pub(super) fn on(&mut self, side: Side, event: StreamEvent<'_>, moves_unread: bool) -> Option<Next> {
        if let StreamEvent::Closed(_) = event {
            *self.of(side) = None;
        }
        match (&mut self.stage, side, event) {
            (Stage::Connecting, Side::Far, StreamEvent::Opened(_)) => {
                self.near.zip(self.far)?;
                self.stage = Stage::Serving;
                Some(Next::Relay)
            }
            (Stage::Connecting, Side::Far, StreamEvent::Closed(why)) => Some(Next::CallFailed(code(why))),
            (Stage::Connecting, Side::Near, StreamEvent::Closed(_)) => Some(Next::EndCall),
            (Stage::Serving, ..) if (self.near, self.far) == (None, None) => Some(Next::End),
            (Stage::Leaving(leaving), ..) => leaving.on(side, event, moves_unread),
            (Stage::Arriving(arriving), ..) => arriving.on(side, &event),
            (Stage::Connecting | Stage::Serving | Stage::Expected | Stage::Over, ..) => None,
        }
    }
}

/// What the router has to do after an event of a half.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// Notify the host that the far half is open, and relay.
    Relay,
    /// Notify the host that the far half could not be opened.
    CallFailed(Code),
    /// The near half has ended before the far half is open, so abort the far half.
    EndCall,
    /// Record that both halves have ended.
    End,
    /// Export the next half, or ship the connection if no half is left.
    Export,
    /// Reset both ends: the connection cannot be moved.
    CannotLeave,
    /// Take the connection if its state is complete.
    Take,
    /// Give the connection up: its state has come and cannot be set up.
    CannotCome,
}

/// The stage of a connection at this router.
#[derive(Debug)]
pub(super) enum Stage {
    /// The far half is being opened.
    Connecting,
    /// The connection is served here: both halves are relayed, or one has ended.
    Serving,
    /// The connection is frozen, to be handed over to another router.
    Leaving(Leaving),
    /// A greeting names the connection, and no other router has sent its state yet.
    Expected,
    /// The state of the connection is being received.
    Arriving(Arriving),
    /// Both halves have ended. The host may not know that yet, and may name the connection in a greeting. So the
    /// connection stays known, and no router reports it as lost.
    Over,
}

impl Stage {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Serving => "serving",
            Self::Leaving(_) => "leaving",
            Self::Expected => "expected",
            Self::Arriving(_) => "arriving",
            Self::Over => "over",
        }
    }
}

/// The progress of a connection that is handed over to another router.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    /// The bytes between the halves: up to the peer, and down to the host. `None` until the answer to `Part`.
    pub(super) staged: Option<[Vec<u8>; 2]>,
    /// The near half's state, then the far half's. A half that is over has none.
    pub(super) states: Vec<SocketState>,
    /// Halves that have ended cleanly but still had a socket. The bytes that they had received are in `staged`.
    pub(super) over: Vec<Side>,
    /// The commit that was sent and not answered. Only the router to which it was sent knows whether it took the
    /// connection.
    pub(super) committed: Option<Commit>,
}

impl Leaving {
    /// Returns the next of these halves that is neither exported nor known to be over.
    pub(super) fn next(&self, halves: impl Iterator<Item = (Side, StreamId)>) -> Option<StreamId> {
        let known = |side| self.over.contains(&side) || self.states.iter().any(|state| state.side == side);
        halves.into_iter().find(|(side, _)| !known(*side)).map(|(_, id)| id)
    }

    /// Applies an event of a frozen half: the answers to `Part` and `Export`.
    fn on(&mut self, side: Side, event: StreamEvent<'_>, moves_unread: bool) -> Option<Next> {
        match event {
            StreamEvent::Migrate(MigrateEvent::Parted(staged)) if moves_unread => {
                self.staged = Some(staged.map(<[u8]>::to_vec));
            }
            // If the halves are no longer joined, both have finished, and all bytes of each half were written to the
            // other half. So no bytes are between the halves. Without `moves_unread`, the bytes that `Part` returns are
            // lost.
            StreamEvent::Migrate(MigrateEvent::Parted(_) | MigrateEvent::Refused(refused::NOT_JOINED)) => {
                self.staged = Some(Default::default());
            }
            StreamEvent::Migrate(MigrateEvent::Exported(state)) => {
                let mut state = state.clone();
                if !moves_unread {
                    state.unread.clear();
                }
                self.states.push(SocketState::new(side, state));
            }
            // The half has ended cleanly: its peer has acknowledged all bytes. `Part` has returned the bytes that the
            // half had received.
            StreamEvent::Migrate(MigrateEvent::Refused(refused::NOT_ESTABLISHED)) => self.over.push(side),
            StreamEvent::Migrate(MigrateEvent::Refused(_)) | StreamEvent::Closed(_) => {
                return Some(Next::CannotLeave);
            }
            StreamEvent::Opened(_)
            | StreamEvent::Accepted(..)
            | StreamEvent::Data(_)
            | StreamEvent::Room(_)
            | StreamEvent::Finished
            | StreamEvent::Migrate(MigrateEvent::Imported) => return None,
        }
        Some(Next::Export)
    }
}

/// A commit that was sent and not answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Commit {
    pub(super) to: Ipv4Addr,
    pub(super) attempt: u32,
    /// The sequence of the host's greeting to router `to`.
    pub(super) sequence: u64,
}

/// The progress of a connection that arrives from another router.
#[derive(Debug)]
pub(super) struct Arriving {
    /// The stream to the old router by which the connection comes.
    pub(super) by: StreamId,
    pub(super) near: Arrival,
    pub(super) far: Arrival,
    pub(super) staged: [Vec<u8>; 2],
    /// Received halves without bytes to relay ([`SocketState::is_self_contained`]).
    pub(super) self_contained: Vec<Side>,
    /// The number of data bytes that came with the connection: in the states, and between the halves.
    pub(super) buffered: usize,
    /// The next sequence number that the near half expects from the mobile host.
    pub(super) expected: Option<Seq>,
    /// The number of the handoff of the commit, if the commit has come.
    pub(super) commit: Option<u64>,
}

/// The progress of one half of an arriving connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    Missing,
    Importing,
    Here,
}

impl Arriving {
    pub(super) fn new(by: StreamId) -> Self {
        let (near, far) = (Arrival::Missing, Arrival::Missing);
        let (staged, self_contained) = (Default::default(), Vec::new());
        Self { by, near, far, staged, self_contained, buffered: 0, expected: None, commit: None }
    }

    /// Applies an event of a half that is being imported.
    fn on(&mut self, side: Side, event: &StreamEvent<'_>) -> Option<Next> {
        match event {
            StreamEvent::Migrate(MigrateEvent::Imported) => {
                *self.of(side) = Arrival::Here;
                Some(Next::Take)
            }
            StreamEvent::Closed(_) => {
                *self.of(side) = Arrival::Missing;
                self.commit.map(|_| Next::CannotCome)
            }
            StreamEvent::Opened(_)
            | StreamEvent::Accepted(..)
            | StreamEvent::Data(_)
            | StreamEvent::Room(_)
            | StreamEvent::Finished
            | StreamEvent::Migrate(_) => None,
        }
    }

    const fn arrival(&self, side: Side) -> Arrival {
        match side {
            Side::Near => self.near,
            Side::Far => self.far,
        }
    }

    /// Returns whether the received state matches a commit that names `halves`: the states of exactly these halves have
    /// come. If there is only one half, it must have no bytes for the other half.
    pub(super) fn is(&self, halves: Halves) -> bool {
        let sides = [Side::Near, Side::Far];
        let as_said = sides.iter().all(|side| halves.has(*side) == (self.arrival(*side) != Arrival::Missing));
        let here = sides.iter().filter(|side| halves.has(**side));
        let alone = self.staged.iter().all(Vec::is_empty)
            && here.clone().all(|side| self.self_contained.contains(side));
        as_said && (halves == Halves::BOTH || alone)
    }

    /// Returns whether the import of each received half is finished. A half whose state was not received does not count.
    pub(super) fn is_set_up(&self) -> bool {
        [self.near, self.far].iter().all(|half| *half != Arrival::Importing)
    }

    pub(super) const fn of(&mut self, side: Side) -> &mut Arrival {
        match side {
            Side::Near => &mut self.near,
            Side::Far => &mut self.far,
        }
    }
}

/// Returns the code that reports to the host why a connection failed.
fn code(why: Option<&str>) -> Code {
    match why {
        Some(refused::REFUSED) => Code::Refused,
        Some(refused::TIMED_OUT) => Code::TimedOut,
        Some(refused::UNREACHABLE) => Code::Unreachable,
        Some(refused::IN_USE) => Code::InUse,
        Some(refused::FULL) => Code::Full,
        _ => Code::Failed,
    }
}
