//! Checks of flows in a run without records: connections that were refused, reset or unfinished, wrong data, and hosts
//! that received no datagram. The cost of handoffs needs the records.

use super::stream::is_application;
use crate::expected::{SETUP, Wrong, asks_for, is_cut_short, sends_from};
use node::{AppChange, AppEvent, StreamId};
use roles::RoleConfig;
use scenario::Plan;
use std::collections::{BTreeMap, BTreeSet};
use trace::{HostId, What};
use wire::{Instant, Ipv4Addr, SocketAddrV4};

/// The largest number of failures that are listed by name, to limit the memory.
const NAMED: usize = 100;

/// A connection that an application requested or accepted, until it is closed.
struct Connection {
    local: Option<SocketAddrV4>,
    peer: SocketAddrV4,
    begun: Instant,
    opened: bool,
    read: bool,
    finished: bool,
}

/// The state of a run's applications, updated with each event.
#[derive(Default)]
pub(crate) struct Counted {
    /// Listeners of applications.
    listeners: BTreeSet<(HostId, StreamId)>,
    open: BTreeMap<(HostId, StreamId), Connection>,
    /// Hosts where an application received a datagram.
    given: BTreeSet<HostId>,
    /// Failed connections: the host, its peer, and the failure.
    failed: Vec<(HostId, SocketAddrV4, String)>,
    failures: u64,
}

impl Counted {
    /// Updates the state with an event at a host.
    pub(crate) fn note(&mut self, at: Instant, host: HostId, what: &What) {
        match what {
            What::AppReceived(_) => {
                self.given.insert(host);
            }
            What::App(event) => self.stream(at, host, event),
            What::Marked(mark) => {
                if let Some(wrong) = Wrong::of(mark) {
                    self.wrong(host, &wrong);
                }
            }
            _ => {}
        }
    }

    fn stream(&mut self, begun: Instant, host: HostId, event: &AppEvent) {
        let key = (host, event.stream);
        let new =
            |local, peer, opened| Connection { local, peer, begun, opened, read: false, finished: false };
        match &event.change {
            AppChange::Asked { role, local, peer: Some(peer), .. } if is_application(role) => {
                self.open.insert(key, new(*local, *peer, false));
            }
            AppChange::Asked { role, peer: None, .. } if is_application(role) => {
                self.listeners.insert(key);
            }
            AppChange::Asked { .. } => {}
            AppChange::Accepted { new: id, local, peer } => {
                if self.listeners.contains(&key) {
                    self.open.insert((host, *id), new(Some(*local), *peer, true));
                }
            }
            AppChange::Closed(why) => {
                if let Some(connection) = self.open.remove(&key) {
                    let why = why.as_deref().unwrap_or("closed");
                    let reset =
                        event.change != AppChange::Closed(None) && connection.read && !connection.finished;
                    if !connection.opened {
                        self.fail(host, connection.peer, format!("refused: {why}"));
                    } else if reset {
                        self.fail(host, connection.peer, format!("reset: {why}"));
                    }
                }
            }
            AppChange::Opened(local) => {
                if let Some(connection) = self.open.get_mut(&key) {
                    (connection.local, connection.opened) = (Some(*local), true);
                }
            }
            AppChange::Read(_) => {
                if let Some(connection) = self.open.get_mut(&key) {
                    connection.read = true;
                }
            }
            AppChange::Finished => {
                if let Some(connection) = self.open.get_mut(&key) {
                    connection.finished = true;
                }
            }
        }
    }

    fn wrong(&mut self, host: HostId, wrong: &Wrong) {
        let peer = wrong.peer.unwrap_or(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        self.fail(host, peer, wrong.to_string());
    }

    fn fail(&mut self, host: HostId, peer: SocketAddrV4, how: String) {
        self.failures += 1;
        if self.failed.len() < NAMED {
            self.failed.push((host, peer, how));
        }
    }

    /// Returns the failures as text. Call this function after the run has ended.
    pub(crate) fn failures(mut self, plan: &Plan) -> Vec<String> {
        for ((host, _), connection) in std::mem::take(&mut self.open) {
            let life = plan.end().since(connection.begun);
            if !connection.opened {
                if life > SETUP {
                    let why = format!("not open {} s after the request", life.as_secs_f64());
                    self.fail(host, connection.peer, why);
                }
                continue;
            }
            let local = connection.local.map(|local| local.port());
            let sends = local.is_some_and(|port| sends_from(plan, host, port, connection.begun));
            if !connection.finished && (sends || asks_for(plan, host, connection.peer.port())) {
                self.fail(host, connection.peer, "unfinished when the run ended".to_owned());
            }
        }
        let owners = plan.owners();
        let name = |peer: &SocketAddrV4| {
            let host = owners
                .get(peer.ip())
                .map_or_else(|| peer.ip().to_string().into(), |host| plan.host_name(*host));
            format!("{host}:{}", peer.port())
        };
        let failed = self.failed.iter().map(|(host, peer, how)| {
            format!("{}: its connection with {}: {how}", plan.host_name(*host), name(peer))
        });
        let mut all: Vec<String> = failed.collect();
        if self.failures > all.len() as u64 {
            all.push(format!("{} more failures of connections", self.failures - all.len() as u64));
        }
        for (id, host) in (0..).map(HostId).zip(&plan.hosts) {
            let sender = &host.config.name;
            for role in &host.config.roles {
                let RoleConfig::ConstantRate(source) = role else { continue };
                let starts = source.start < source.stop && Instant::ZERO + source.start < plan.end();
                let receiver = owners.get(source.to.ip());
                if starts && receiver.is_some_and(|receiver| !self.given.contains(receiver)) {
                    all.push(format!("{sender} > {}, UDP: no datagram arrived", name(&source.to)));
                } else if starts && is_cut_short(plan, id, Instant::ZERO + source.stop) {
                    all.push(format!("{sender} > {}, UDP: unfinished when the run ended", name(&source.to)));
                }
            }
        }
        all
    }
}
