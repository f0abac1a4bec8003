//! The streams of applications, reconstructed from the records.

use node::{AppChange, AppEvent, StreamId, Transport};
use scenario::Application;
use std::collections::BTreeMap;
use trace::{HostId, Record, What};
use wire::{Instant, SocketAddrV4};

/// One stream at one host, from its request or acceptance to its end.
#[derive(Clone, Debug)]
pub(super) struct AppStream {
    pub(super) host: HostId,
    pub(super) role: &'static str,
    pub(super) by: Transport,
    pub(super) local: Option<SocketAddrV4>,
    pub(super) peer: SocketAddrV4,
    /// Whether this end requested the connection. Otherwise this end accepted the connection.
    pub(super) asked: bool,
    pub(super) begun: Instant,
    /// When the stream was ready to carry data; `None` if it never was. An accepted stream is ready when it begins.
    pub(super) opened: Option<Instant>,
    /// When the application read data, and how many bytes.
    pub(super) reads: Vec<(Instant, u64)>,
    pub(super) finished: Option<Instant>,
    pub(super) closed: Option<(Instant, Option<String>)>,
}

impl AppStream {
    /// Returns whether a support router of Indirect TCP relays this stream.
    pub(super) fn is_relayed(&self) -> bool {
        self.by == Transport::Role("indirect")
    }

    pub(super) fn is_application(&self) -> bool {
        is_application(self.role)
    }
}

/// Returns whether a role of this name is an application. A program outside of the daemon has an empty name.
pub(super) fn is_application(role: &str) -> bool {
    role.is_empty() || Application::named(role).is_some()
}

/// All streams of a run.
#[derive(Default)]
pub(super) struct AppStreams {
    /// Connections, in the order in which they began.
    pub(super) all: Vec<AppStream>,
    /// The role that uses each port of a host.
    pub(super) ports: BTreeMap<(HostId, u16), &'static str>,
    open: BTreeMap<(HostId, StreamId), usize>,
    listeners: BTreeMap<(HostId, StreamId), (&'static str, Transport)>,
}

impl AppStreams {
    pub(super) fn new(records: &[Record]) -> Self {
        let mut streams = Self::default();
        for record in records {
            if let What::App(event) = &record.what {
                streams.note(record.at, record.host, event);
            }
        }
        streams
    }

    fn note(&mut self, at: Instant, host: HostId, event: &AppEvent) {
        let key = (host, event.stream);
        let new = |role, by, local, peer, asked| AppStream {
            host,
            role,
            by,
            local,
            peer,
            asked,
            begun: at,
            opened: (!asked).then_some(at),
            reads: Vec::new(),
            finished: None,
            closed: None,
        };
        match &event.change {
            AppChange::Asked { role, by, local, peer: Some(peer) } => {
                self.open.insert(key, self.all.len());
                self.all.push(new(role, *by, *local, *peer, true));
            }
            AppChange::Asked { role, by, local, peer: None } => {
                self.listeners.insert(key, (role, *by));
                self.ports.extend(local.map(|local| ((host, local.port()), *role)));
            }
            AppChange::Accepted { new: id, local, peer } => {
                if let Some((role, by)) = self.listeners.get(&key) {
                    self.open.insert((host, *id), self.all.len());
                    self.all.push(new(role, *by, Some(*local), *peer, false));
                }
            }
            change => {
                let Some(stream) = self.open.get(&key).and_then(|index| self.all.get_mut(*index)) else {
                    return;
                };
                match change {
                    AppChange::Opened(local) => {
                        (stream.local, stream.opened) = (Some(*local), Some(at));
                        self.ports.insert((host, local.port()), stream.role);
                    }
                    AppChange::Read(bytes) => stream.reads.push((at, *bytes)),
                    AppChange::Finished => stream.finished = stream.finished.or(Some(at)),
                    AppChange::Closed(why) => {
                        stream.closed = Some((at, why.clone()));
                        self.open.remove(&key);
                    }
                    _ => {}
                }
            }
        }
    }
}
