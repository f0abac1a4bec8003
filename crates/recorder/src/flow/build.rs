//! Builds flows from what stacks sent and received and from what applications read.

use super::due::{longest, of_datagrams, of_stream, pace};
use super::measure::{Question, datagram_delays, delay, median_gap, smoothed, stream_delays};
use super::packets::Packets;
use super::path::{Delivery, Path, Sending, Wait};
use super::seen::Seen;
use super::stream::{AppStream, AppStreams};
use super::{Arrival, End, Flow, FlowEnd, Transport};
use crate::expected::stop_of;
use node::stream::refusal;
use scenario::Plan;
use std::collections::BTreeSet;
use trace::HostId;
use wire::{Duration, Instant, PacketId, SocketAddrV4};

/// The inputs from which the flows of a run are built.
pub(super) struct Builder<'a> {
    pub(super) plan: &'a Plan,
    pub(super) seen: &'a Seen,
    pub(super) streams: &'a AppStreams,
}

impl<'a> Builder<'a> {
    /// Returns all flows, in the order in which they began.
    pub(super) fn flows(&self) -> Vec<(Flow, Packets)> {
        let mut flows = self.datagrams();
        flows.extend(self.applications());
        flows.extend(self.programs());
        flows.sort_by_key(|(flow, _)| (flow.begun, flow.from, flow.to));
        flows
    }

    /// Returns the flows of datagrams between two ports of applications or programs.
    fn datagrams(&self) -> Vec<(Flow, Packets)> {
        let mut flows = Vec::new();
        let end = self.plan.end();
        for (index, path) in self.of(Transport::Udp) {
            if self.is_protocols(path.from) || self.is_protocols(path.to) {
                continue;
            }
            let mut packets = self.packets(&[(index, path)]);
            packets.spacing = median_gap(path.sendings.iter().map(|sending| sending.at).collect());
            packets.is_programs =
                !self.streams.ports.contains_key(&path.from) && !self.streams.ports.contains_key(&path.to);
            let new = path.deliveries.iter().filter(|delivery| !delivery.is_held);
            let arrivals: Vec<Arrival> =
                new.map(|one| Arrival { at: one.at, bytes: one.advance, packet: one.packet }).collect();
            let last = path.sendings.last().map_or(path.begun, |sending| sending.at);
            // If a source was silent for more than 2.5 of its median intervals when the run ended, it had stopped.
            let silence = packets.spacing * 2 + packets.spacing / 2;
            let stopped = end.since(last) > silence;
            // If a host goes down until the end of the run before its source stops, the flow is not complete, although
            // the source is silent.
            let stop = stop_of(self.plan, path.from.0, path.to_at);
            let goes_on = |down: Instant| stop.map_or(down.since(last) <= silence, |stop| stop > down);
            let went_down_sending = self.plan.down_for_good(path.from.0).is_some_and(goes_on);
            let ends = arrivals.last().map(|arrival| arrival.at).into_iter();
            let ends = ends.chain(packets.lost.iter().map(|lost| lost.recorded)).chain([last]);
            let ended = ends.max().filter(|_| stopped);
            // Only the arrival of the last datagram shows that a flow of datagrams is complete.
            let is_last = |one: &Arrival| path.sendings.last().is_some_and(|last| last.packet == one.packet);
            let is_complete = stopped && !went_down_sending && arrivals.iter().any(is_last);
            let until = ended.unwrap_or(end);
            packets.due = of_datagrams(&path.sendings, &arrivals, until, silence);
            packets.pace = pace(&packets.due, &arrivals);
            let flow = Flow {
                from: End { host: path.from.0, at: path.from_at },
                to: End { host: path.to.0, at: path.to_at },
                transport: Transport::Udp,
                begun: path.begun,
                ended,
                until,
                bytes: arrivals.iter().map(|arrival| arrival.bytes).sum(),
                end: if is_complete { FlowEnd::Completed } else { FlowEnd::Unfinished },
                delay: delay(datagram_delays(&path.sendings, &arrivals)),
                longest_stall: longest(&packets.due),
                lost: packets.lost.len() as u64,
                retransmissions: 0,
                arrivals,
            };
            flows.push((flow, packets));
        }
        flows
    }

    /// Returns the flows that applications read from streams, and the flows of applications' connections that never
    /// carried data.
    fn applications(&self) -> Vec<(Flow, Packets)> {
        let mut flows = Vec::new();
        for (index, stream) in self.streams.all.iter().enumerate() {
            if stream.by == node::Transport::Udp || !stream.is_application() {
                continue;
            }
            let other = self.counterpart(index);
            if self.has_data(stream, other) {
                flows.push(self.reading(stream, other));
            } else if stream.asked && !other.is_some_and(|other| self.has_data(other, Some(stream))) {
                flows.push(self.silent(stream, other));
            }
        }
        flows
    }

    /// Returns whether an application read data from `stream`, or whether the far end sent data on it. With Indirect
    /// TCP, the setup exchange of a host with its support router is not data.
    fn has_data(&self, stream: &AppStream, other: Option<&AppStream>) -> bool {
        !stream.reads.is_empty() || !self.offered(stream, other, &self.feeding(stream, other)).is_empty()
    }

    /// Returns the flow that the application reads from `stream`.
    fn reading(&self, stream: &AppStream, other: Option<&AppStream>) -> (Flow, Packets) {
        let feeding = self.feeding(stream, other);
        let mut packets = self.packets(&feeding);
        packets.is_stream = true;
        let owner = self.plan.owners().get(stream.peer.ip()).copied();
        packets.offered = self.offered(stream, other, &feeding);
        let is_front = |delivery: &&Delivery| delivery.advance > 0 && delivery.host == stream.host;
        let front: Vec<&Delivery> = packets.deliveries.iter().filter(is_front).collect();
        let packet_at = |at: Instant| {
            let index = front.partition_point(|delivery| delivery.at <= at);
            index.checked_sub(1).and_then(|index| front.get(index)).map_or(PacketId::NEW, |one| one.packet)
        };
        let arrivals: Vec<Arrival> = stream
            .reads
            .iter()
            .map(|(at, bytes)| Arrival { at: *at, bytes: *bytes, packet: packet_at(*at) })
            .collect();
        packets.spacing = median_gap(arrivals.iter().map(|arrival| arrival.at).collect());
        let opening = opening(stream, other);
        packets.waits.extend(opening);
        packets.opening = opening;
        let (end, ended, why) = fate(stream, other);
        packets.why = why;
        // Data from the end that requested the connection is a question, and the other end must answer it.
        let question = other.filter(|_| stream.asked).map(|other| Question {
            offered: self.offered(other, Some(stream), &self.feeding(other, Some(stream))),
            reads: &other.reads,
        });
        packets.questions = question.as_ref().map(Question::times).unwrap_or_default();
        packets.unread = question.as_ref().and_then(Question::unread);
        let begun = stream.begun;
        let asked = opening.map_or(begun, |opening| opening.from.min(begun));
        let local = stream.local.unwrap_or_else(|| self.own(stream.host, 0));
        let until = ended.unwrap_or_else(|| self.plan.end());
        packets.due = of_stream(&packets, &arrivals, [asked, until]);
        packets.pace = pace(&packets.due, &arrivals);
        let flow = Flow {
            from: End { host: owner.unwrap_or(HostId(u32::MAX)), at: stream.peer },
            to: End { host: stream.host, at: local },
            transport: transport(stream.by),
            begun,
            ended,
            until,
            bytes: arrivals.iter().map(|arrival| arrival.bytes).sum(),
            end,
            delay: delay(stream_delays(&packets, &arrivals)),
            longest_stall: longest(&packets.due),
            lost: packets.lost.len() as u64,
            retransmissions: feeding.iter().map(|(_, path)| path.retransmissions).sum(),
            arrivals,
        };
        (flow, packets)
    }

    /// Returns the end of each piece of data that the far end of `stream` sent, in bytes, and when the piece was first
    /// sent.
    fn offered(
        &self,
        stream: &AppStream,
        other: Option<&AppStream>,
        feeding: &[(usize, &Path)],
    ) -> Vec<(u64, Instant)> {
        let owner = self.plan.owners().get(stream.peer.ip()).copied();
        let from = owner.map(|owner| (owner, stream.peer.port()));
        let mut sources = feeding.iter().map(|(_, path)| *path).filter(|path| Some(path.from) == from);
        let Some(relayed) = other.filter(|other| other.is_relayed()) else {
            return sources.next().map(Path::offered).unwrap_or_default();
        };
        // The first bytes that the host sends to its support router are not data: the application can send only after
        // the router's answer.
        let opened = relayed.opened.unwrap_or(Instant::NEVER);
        let pieces = sources.find(|path| path.to.0 != stream.host).map(Path::offered).unwrap_or_default();
        let data = pieces.partition_point(|(_, at)| *at < opened);
        let header = data.checked_sub(1).and_then(|last| pieces.get(last)).map_or(0, |(end, _)| *end);
        pieces.iter().skip(data).map(|(end, at)| (end - header, *at)).collect()
    }

    /// Returns the flow of a connection that never carried data, or never opened.
    fn silent(&self, stream: &AppStream, other: Option<&AppStream>) -> (Flow, Packets) {
        let (end, ended, why) = fate(stream, other);
        // A connection that never opens is reported as a failure. The time of the attempt is not counted as a wait.
        let opening = opening(stream, other).filter(|wait| wait.to < Instant::NEVER);
        let waits = opening.into_iter().collect();
        let packets = Packets { is_stream: true, why, opening, waits, ..Packets::default() };
        let until = ended.unwrap_or_else(|| self.plan.end());
        let opened = stream.opened.unwrap_or(until);
        let owner = self.plan.owners().get(stream.peer.ip()).copied();
        // The records have no local port of a stream that never opened. The first packet of the stream has the port.
        let to = owner.map(|owner| (owner, stream.peer.port()));
        let is_its = |path: &&Path| {
            path.from.0 == stream.host && Some(path.to) == to && (stream.begun..=until).contains(&path.begun)
        };
        let asked = self.of(transport(stream.by)).map(|(_, path)| path).find(is_its).map(|path| path.from_at);
        let local = stream.local.or(asked).unwrap_or_else(|| self.own(stream.host, 0));
        let flow = Flow {
            from: End { host: stream.host, at: local },
            to: End { host: owner.unwrap_or(HostId(u32::MAX)), at: stream.peer },
            transport: transport(stream.by),
            begun: stream.begun,
            ended,
            until,
            bytes: 0,
            end,
            delay: None,
            longest_stall: opened.since(stream.begun),
            lost: packets.lost.len() as u64,
            retransmissions: 0,
            arrivals: Vec::new(),
        };
        (flow, packets)
    }

    /// Returns the flows of programs' TCP connections. No role reports these connections, so their segments are
    /// observed between the kernel's stack and the node. Data are new when they are in order at the receiver's stack.
    fn programs(&self) -> Vec<(Flow, Packets)> {
        let mut flows = Vec::new();
        let known: BTreeSet<(HostId, u16)> = self.streams.ports.keys().copied().collect();
        let hosts: Vec<bool> = self.plan.hosts.iter().map(|host| !host.programs.is_empty()).collect();
        let has_programs = |host: HostId| hosts.get(host.index()).copied().unwrap_or_default();
        for (index, path) in self.of(Transport::Tcp) {
            let ours = known.contains(&path.to) || known.contains(&path.from);
            let says = path.high > 0 || (path.refused && path.begun < path.reset.unwrap_or(Instant::ZERO));
            // A refused connection may have no program at its other end.
            let is_programs = has_programs(path.from.0) && (path.refused || has_programs(path.to.0));
            if ours || !is_programs || !says {
                continue;
            }
            let mut packets = self.packets(&[(index, path)]);
            (packets.is_stream, packets.is_programs) = (true, true);
            packets.offered = path.offered();
            let front = path.deliveries.iter().filter(|delivery| delivery.advance > 0);
            let arrivals: Vec<Arrival> =
                front.map(|one| Arrival { at: one.at, bytes: one.advance, packet: one.packet }).collect();
            packets.spacing = median_gap(arrivals.iter().map(|arrival| arrival.at).collect());
            let (end, ended) = match (path.finished, path.reset) {
                (Some(at), _) => (FlowEnd::Completed, Some(at)),
                (None, Some(at)) if path.refused => (FlowEnd::Refused, Some(at)),
                (None, Some(at)) => (FlowEnd::Reset, Some(at)),
                (None, None) => (FlowEnd::Unfinished, None),
            };
            let until = ended.unwrap_or_else(|| self.plan.end());
            packets.due = of_stream(&packets, &arrivals, [path.begun, until]);
            packets.pace = pace(&packets.due, &arrivals);
            let flow = Flow {
                from: End { host: path.from.0, at: path.from_at },
                to: End { host: path.to.0, at: path.to_at },
                transport: Transport::Tcp,
                begun: path.begun,
                ended,
                until,
                bytes: arrivals.iter().map(|arrival| arrival.bytes).sum(),
                end,
                delay: delay(stream_delays(&packets, &arrivals)),
                longest_stall: longest(&packets.due),
                lost: packets.lost.len() as u64,
                retransmissions: path.retransmissions,
                arrivals,
            };
            flows.push((flow, packets));
        }
        flows
    }

    fn of(&self, transport: Transport) -> impl Iterator<Item = (usize, &'a Path)> {
        self.seen.paths.iter().enumerate().filter(move |(_, path)| path.transport == transport)
    }

    /// Returns whether a role that is not an application uses this port.
    fn is_protocols(&self, port: (HostId, u16)) -> bool {
        self.streams.ports.get(&port).is_some_and(|role| !super::stream::is_application(role))
    }

    /// Returns the paths by which bytes reach an application, with their indices. There may be several if a support
    /// router relays the stream.
    fn feeding(&self, stream: &AppStream, other: Option<&AppStream>) -> Vec<(usize, &'a Path)> {
        let Some(local) = stream.local else { return Vec::new() };
        let transport = transport(stream.by);
        let until = stream.closed.as_ref().map_or(Instant::NEVER, |(at, _)| *at);
        let to = (stream.host, local.port());
        let mut feeding: Vec<(usize, &Path)> =
            self.of(transport).filter(|(_, path)| path.to == to && path.begun <= until).collect();
        // If several connections used the same ports in turn, take the last that began before the stream ended.
        let mut ports = BTreeSet::new();
        feeding.reverse();
        feeding.retain(|(_, path)| ports.insert(path.from));
        let owner = self.plan.owners().get(stream.peer.ip()).copied();
        if stream.is_relayed() {
            return feeding;
        }
        let is_source = |path: &Path| Some(path.from.0) == owner && path.from.1 == stream.peer.port();
        feeding.retain(|(_, path)| is_source(path));
        if other.is_some_and(AppStream::is_relayed) {
            let to_router =
                |(_, path): &(usize, &Path)| is_source(path) && path.to != to && path.begun <= until;
            feeding.extend(self.of(transport).filter(to_router));
        }
        feeding
    }

    fn counterpart(&self, index: usize) -> Option<&'a AppStream> {
        let one = self.streams.all.get(index)?;
        let owners = self.plan.owners();
        let (local, host) = (one.local?, owners.get(one.peer.ip()).copied());
        let is_other = |other: &&AppStream| {
            other.asked != one.asked
                && Some(other.host) == host
                && other.local.is_some_and(|at| at.port() == one.peer.port())
                && other.peer.port() == local.port()
                && owners.get(other.peer.ip()) == Some(&one.host)
        };
        let others = self.streams.all.iter().filter(is_other);
        others.min_by_key(|other| other.begun.since(one.begun).max(one.begun.since(other.begun)))
    }

    fn packets(&self, paths: &[(usize, &Path)]) -> Packets {
        let mut packets = Packets::default();
        for (index, path) in paths {
            let first_leg = packets.legs.len();
            packets.legs.extend(self.legs(path));
            let of_flow = |one: &Sending| Sending { leg: first_leg + one.leg, ..*one };
            packets.sendings.extend(path.sendings.iter().map(of_flow));
            packets.deliveries.extend(&path.deliveries);
            packets.lost.extend(self.seen.lost(*index));
            packets.held.extend(self.seen.held(*index));
            packets.lost_acks.extend(self.seen.lost_acks(*index));
            packets.opened_by.extend(self.seen.opening(*index));
            packets.waiting_acks.extend(self.seen.waiting_acks(*index));
            packets.waits.extend(path.waits());
            packets.doubles.extend(self.seen.doubles(*index));
            packets.round_trips.extend(round_trips(path));
        }
        if let [(_, path)] = paths {
            packets.acked.clone_from(&path.acked);
        }
        packets.sendings.sort_by_key(|sending| sending.at);
        packets.deliveries.sort_by_key(|delivery| delivery.at);
        packets.lost.sort_unstable();
        packets.held.sort_unstable();
        packets.lost_acks.sort_unstable();
        packets.doubles.sort_unstable();
        packets
    }

    /// Returns the names of a path's legs: the destination addresses for SCTP, the sending hosts otherwise.
    fn legs(&self, path: &Path) -> Vec<String> {
        let to = self.plan.host_name(path.to.0);
        let name = |(from, leg): &(HostId, wire::Ipv4Addr)| match path.transport {
            Transport::Sctp => format!("to {leg}"),
            Transport::Udp | Transport::Tcp => format!("{} > {to}", self.plan.host_name(*from)),
        };
        path.legs.iter().map(name).collect()
    }

    fn own(&self, host: HostId, port: u16) -> SocketAddrV4 {
        let address =
            self.plan.hosts.get(host.index()).and_then(|host| host.config.all_addresses().into_iter().next());
        SocketAddrV4::new(address.unwrap_or(wire::Ipv4Addr::UNSPECIFIED), port)
    }
}

/// Returns the smoothed round-trip time of a path, as its sender's transport reported it or, without a report,
/// estimated from one-way delays. Returns `None` for datagrams.
fn round_trips(path: &Path) -> Option<Vec<(Instant, Duration)>> {
    match path.transport {
        Transport::Udp => None,
        _ if path.round_trips.is_empty() => Some(smoothed(&path.sendings, &path.deliveries)),
        _ => Some(path.round_trips.clone()),
    }
}

/// Returns the wait for a connection: from the request until both ends were ready. An end without records is not waited
/// for. The wait lasts until [`Instant::NEVER`] if an end with records was never ready. Returns `None` if no end with
/// records requested the connection.
fn opening(stream: &AppStream, other: Option<&AppStream>) -> Option<Wait> {
    let asker = [Some(stream), other].into_iter().flatten().find(|one| one.asked)?;
    let ready = [Some(asker), Some(stream), other].into_iter().flatten().map(|one| one.opened);
    let to = ready.map(|opened| opened.unwrap_or(Instant::NEVER)).max()?;
    Some(Wait { from: asker.begun, to })
}

/// Returns how the flow into a stream ended, when, and why.
fn fate(stream: &AppStream, other: Option<&AppStream>) -> (FlowEnd, Option<Instant>, Option<String>) {
    let closed = |stream: &AppStream| stream.closed.clone();
    if let Some(at) = stream.finished {
        return (FlowEnd::Completed, Some(at), None);
    }
    match closed(stream) {
        Some((at, why)) if stream.opened.is_none() => return (FlowEnd::Refused, Some(at), why),
        Some((at, Some(why))) => return (FlowEnd::Reset, Some(at), Some(why)),
        Some((at, None)) => return (FlowEnd::Completed, Some(at), None),
        None => {}
    }
    match other.and_then(closed) {
        Some((at, Some(why))) if why != refusal::NOT_OURS => (FlowEnd::Reset, Some(at), Some(why)),
        _ => (FlowEnd::Unfinished, None, None),
    }
}

fn transport(by: node::Transport) -> Transport {
    match by {
        node::Transport::Udp => Transport::Udp,
        node::Transport::Role("sctp") => Transport::Sctp,
        node::Transport::Tcp | node::Transport::Role(_) => Transport::Tcp,
    }
}
