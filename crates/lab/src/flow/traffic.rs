//! Flows and what is known of their packets, joined from the streams of applications and from what stacks saw.

use super::seen::{Delivery, Path, Seen, Sending};
use super::stream::{AppStream, AppStreams};
use super::{Arrival, Delay, End, Flow, FlowEnd, Transport};
use crate::Plan;
use node::stream::refusal;
use std::collections::{BTreeMap, BTreeSet};
use trace::{HostId, Record};
use wire::{Duration, Instant, PacketId, SocketAddrV4};

/// The flows of a run, in the order in which they began, and the packets of each.
pub(crate) struct Traffic {
    pub(crate) flows: Vec<Flow>,
    pub(crate) packets: Vec<Packets>,
    delivered: BTreeMap<PacketId, Vec<(Instant, HostId)>>,
    sent: BTreeMap<PacketId, Vec<(Instant, HostId)>>,
}

/// What is known of the packets of a flow.
#[derive(Clone, Default)]
pub(crate) struct Packets {
    /// Bytes of a stream, whose sender repeats what was lost.
    pub(crate) is_stream: bool,
    /// Transmissions of packets with data, in the order of time.
    pub(crate) sendings: Vec<Sending>,
    /// Packets with data in the hands of a stack, in the order of time.
    pub(crate) deliveries: Vec<Delivery>,
    /// Where each piece of the stream ends, and when it was first sent.
    pub(crate) offered: Vec<(u64, Instant)>,
    /// Packets that were lost, and when: no copy arrived.
    pub(crate) lost: Vec<(Instant, PacketId)>,
    /// When copies arrived beyond the first.
    pub(crate) doubles: Vec<Instant>,
    /// The usual time from one datagram to the next, or from one read to the next.
    pub(crate) spacing: Duration,
    /// Its programs are not ours: they are judged by their exit.
    pub(crate) is_programs: bool,
    /// Why the connection was closed, if it was not as asked.
    pub(crate) why: Option<String>,
}

impl Packets {
    /// When the piece was first sent that begins at this place of the stream; `None` if it never was.
    pub(crate) fn first_sent(&self, place: u64) -> Option<Instant> {
        let index = self.offered.partition_point(|(end, _)| *end <= place);
        self.offered.get(index).map(|(_, at)| *at)
    }

    fn offered_bytes(&self) -> u64 {
        self.offered.last().map_or(0, |(end, _)| *end)
    }
}

impl Traffic {
    pub(crate) fn new(plan: &Plan, records: &[Record]) -> Self {
        let seen = Seen::new(plan, records);
        let streams = AppStreams::new(records);
        let builder = Builder { plan, seen: &seen, streams: &streams };
        let mut flows = builder.datagrams();
        flows.extend(builder.applications());
        flows.extend(builder.programs());
        flows.sort_by_key(|(flow, _)| (flow.begun, flow.from, flow.to));
        let (flows, packets) = flows.into_iter().unzip();
        Self { flows, packets, delivered: seen.delivered, sent: seen.sent }
    }

    /// When a packet reached this host at or after `from`.
    pub(crate) fn reached(&self, packet: PacketId, host: HostId, from: Instant) -> Option<Instant> {
        let times = self.delivered.get(&packet)?;
        times.iter().find(|(at, on)| *on == host && *at >= from).map(|(at, _)| *at)
    }

    /// When and where a packet last left its origin before `until`.
    pub(crate) fn origin(&self, packet: PacketId, until: Instant) -> Option<(Instant, HostId)> {
        self.sent.get(&packet)?.iter().rev().find(|(at, _)| *at <= until).copied()
    }
}

struct Builder<'a> {
    plan: &'a Plan,
    seen: &'a Seen,
    streams: &'a AppStreams,
}

impl<'a> Builder<'a> {
    /// Datagrams between two ports; of a host's own applications, or of programs.
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
            // A source that was silent for more than two of its own intervals has stopped.
            let stopped = end.since(last) > packets.spacing * 2 + packets.spacing / 2;
            let ended = stopped.then(|| arrivals.last().map_or(last, |arrival| arrival.at.max(last)));
            let times: BTreeMap<PacketId, Instant> =
                path.sendings.iter().map(|sending| (sending.packet, sending.at)).collect();
            let delays = arrivals.iter().filter_map(|one| Some(one.at.since(*times.get(&one.packet)?)));
            let flow = Flow {
                from: End { host: path.from.0, at: path.from_at },
                to: End { host: path.to.0, at: path.to_at },
                transport: Transport::Udp,
                begun: path.begun,
                ended,
                until: ended.unwrap_or(end),
                bytes: arrivals.iter().map(|arrival| arrival.bytes).sum(),
                end: if stopped { FlowEnd::Completed } else { FlowEnd::Unfinished },
                delay: delay(delays.collect()),
                longest_stall: datagram_stall(path, &arrivals),
                retransmissions: 0,
                arrivals,
            };
            flows.push((flow, packets));
        }
        flows
    }

    /// Streams of bytes that an application reads.
    fn applications(&self) -> Vec<(Flow, Packets)> {
        let mut flows = Vec::new();
        for (index, stream) in self.streams.all.iter().enumerate() {
            if stream.by == node::Transport::Udp || !stream.is_application() {
                continue;
            }
            let other = self.counterpart(index);
            let offers = self.feeding(stream).iter().any(|(_, path)| path.high > 0);
            if offers || !stream.reads.is_empty() {
                flows.push(self.reading(stream, other));
            } else if stream.asked && !other.is_some_and(|other| self.has_data(other)) {
                flows.push(self.silent(stream, other));
            }
        }
        flows
    }

    fn has_data(&self, stream: &AppStream) -> bool {
        !stream.reads.is_empty() || self.feeding(stream).iter().any(|(_, path)| path.high > 0)
    }

    /// The flow into one end of a connection.
    fn reading(&self, stream: &AppStream, other: Option<&AppStream>) -> (Flow, Packets) {
        let feeding = self.feeding(stream);
        let mut packets = self.packets(&feeding);
        packets.is_stream = true;
        let owner = self.plan.owners().get(stream.peer.ip()).copied();
        let source = owner.and_then(|owner| {
            feeding.iter().find(|(_, path)| path.from == (owner, stream.peer.port())).map(|(_, path)| *path)
        });
        packets.offered = source.map(Path::offered).unwrap_or_default();
        let front: Vec<&Delivery> =
            packets.deliveries.iter().filter(|delivery| delivery.advance > 0).collect();
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
        let (end, ended, why) = fate(stream, other);
        packets.why = why;
        let begun = stream.begun;
        let local = stream.local.unwrap_or_else(|| self.own(stream.host, 0));
        let until = ended.unwrap_or_else(|| self.plan.end());
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
            longest_stall: stream_stall(&packets, &arrivals, begun, until),
            retransmissions: feeding.iter().map(|(_, path)| path.retransmissions).sum(),
            arrivals,
        };
        (flow, packets)
    }

    /// A connection on which nothing was ever said, or that never opened.
    fn silent(&self, stream: &AppStream, other: Option<&AppStream>) -> (Flow, Packets) {
        let (end, ended, why) = fate(stream, other);
        let local = stream.local.unwrap_or_else(|| self.own(stream.host, 0));
        let owner = self.plan.owners().get(stream.peer.ip()).copied();
        let flow = Flow {
            from: End { host: stream.host, at: local },
            to: End { host: owner.unwrap_or(HostId(u32::MAX)), at: stream.peer },
            transport: transport(stream.by),
            begun: stream.begun,
            ended,
            until: ended.unwrap_or_else(|| self.plan.end()),
            bytes: 0,
            end,
            delay: None,
            longest_stall: Duration::ZERO,
            retransmissions: 0,
            arrivals: Vec::new(),
        };
        (flow, Packets { is_stream: true, why, ..Packets::default() })
    }

    /// Connections of programs, which no daemon speaks for: observed where the kernel's stack meets the node. New data is
    /// what the receiver's stack has without a gap.
    fn programs(&self) -> Vec<(Flow, Packets)> {
        let mut flows = Vec::new();
        let known: BTreeSet<(HostId, u16)> = self.streams.ports.keys().copied().collect();
        let hosts: Vec<bool> = self.plan.hosts.iter().map(|host| !host.programs.is_empty()).collect();
        let has_programs = |host: HostId| hosts.get(host.index()).copied().unwrap_or_default();
        for (index, path) in self.of(Transport::Tcp) {
            let ours = known.contains(&path.to) || known.contains(&path.from);
            let says = path.high > 0 || (path.refused && path.begun < path.reset.unwrap_or(Instant::ZERO));
            if ours || !has_programs(path.to.0) || !has_programs(path.from.0) || !says {
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
                longest_stall: stream_stall(&packets, &arrivals, path.begun, until),
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

    /// Whether a role has this port that is no application.
    fn is_protocols(&self, port: (HostId, u16)) -> bool {
        self.streams.ports.get(&port).is_some_and(|role| !super::stream::is_application(role))
    }

    /// The paths by which bytes come to an application: two, if a support router relays.
    fn feeding(&self, stream: &AppStream) -> Vec<(usize, &'a Path)> {
        let Some(local) = stream.local else { return Vec::new() };
        let transport = transport(stream.by);
        let until = stream.closed.as_ref().map_or(Instant::NEVER, |(at, _)| *at);
        let to = (stream.host, local.port());
        let mut feeding: Vec<(usize, &Path)> =
            self.of(transport).filter(|(_, path)| path.to == to && path.begun <= until).collect();
        // Of connections between the same ports, one after the other, the last that began before the stream's end.
        let mut ports = BTreeSet::new();
        feeding.reverse();
        feeding.retain(|(_, path)| ports.insert(path.from));
        let owner = self.plan.owners().get(stream.peer.ip()).copied();
        if stream.by != node::Transport::Role("indirect") {
            feeding.retain(|(_, path)| Some(path.from.0) == owner && path.from.1 == stream.peer.port());
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
            packets.sendings.extend(&path.sendings);
            packets.deliveries.extend(&path.deliveries);
            packets.lost.extend(self.seen.lost(*index));
            packets.doubles.extend(self.seen.doubles(*index));
        }
        packets.sendings.sort_by_key(|sending| sending.at);
        packets.deliveries.sort_by_key(|delivery| delivery.at);
        packets.lost.sort_unstable();
        packets.doubles.sort_unstable();
        packets
    }

    fn own(&self, host: HostId, port: u16) -> SocketAddrV4 {
        let address =
            self.plan.hosts.get(host.index()).and_then(|host| host.config.all_addresses().into_iter().next());
        SocketAddrV4::new(address.unwrap_or(wire::Ipv4Addr::UNSPECIFIED), port)
    }
}

/// How the flow into a stream ended, when, and why.
fn fate(stream: &AppStream, other: Option<&AppStream>) -> (FlowEnd, Option<Instant>, Option<String>) {
    let closed = |stream: &AppStream| stream.closed.clone();
    if let Some(at) = stream.finished {
        return (FlowEnd::Completed, Some(at), None);
    }
    match closed(stream) {
        Some((at, why)) if !stream.opened => return (FlowEnd::Refused, Some(at), why),
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

fn delay(mut all: Vec<Duration>) -> Option<Delay> {
    all.sort_unstable();
    let rank = |percent: usize| all.get((all.len() * percent).div_ceil(100).checked_sub(1)?).copied();
    Some(Delay { p50: rank(50)?, p99: rank(99)? })
}

/// Of each piece, from its first transmission to the read that has its last byte.
fn stream_delays(packets: &Packets, arrivals: &[Arrival]) -> Vec<Duration> {
    let mut delays = Vec::new();
    let mut pieces = packets.offered.iter().peekable();
    let mut read = 0;
    for arrival in arrivals {
        read += arrival.bytes;
        while let Some((_, sent)) = pieces.next_if(|(end, _)| *end <= read) {
            delays.push(arrival.at.since(*sent));
        }
    }
    delays
}

/// The longest time without new data of which some had been sent.
fn stream_stall(packets: &Packets, arrivals: &[Arrival], begun: Instant, until: Instant) -> Duration {
    let (mut read, mut last, mut longest) = (0, begun, Duration::ZERO);
    for arrival in arrivals {
        let from = packets.first_sent(read).map_or(last, |sent| sent.max(last));
        longest = longest.max(arrival.at.since(from.min(arrival.at)));
        (read, last) = (read + arrival.bytes, arrival.at);
    }
    match packets.first_sent(read) {
        Some(sent) if read < packets.offered_bytes() => longest.max(until.since(sent.max(last).min(until))),
        _ => longest,
    }
}

/// The same of datagrams: from the first that was sent after the last arrival.
fn datagram_stall(path: &Path, arrivals: &[Arrival]) -> Duration {
    let mut longest = Duration::ZERO;
    let times = arrivals.iter().map(|arrival| Some(arrival.at)).chain([None]);
    let mut last = Instant::ZERO;
    for at in times {
        let index = path.sendings.partition_point(|sending| sending.at <= last);
        let sent = path.sendings.get(index).map(|sending| sending.at);
        let end = at.unwrap_or_else(|| path.sendings.last().map_or(last, |sending| sending.at));
        if let Some(sent) = sent.filter(|sent| *sent < end) {
            longest = longest.max(end.since(sent));
        }
        last = end;
    }
    longest
}

/// The usual time from one to the next. What comes within a millisecond is one: an application may read a message in
/// parts.
fn median_gap(mut times: Vec<Instant>) -> Duration {
    times.sort_unstable();
    let mut last: Option<Instant> = None;
    times.retain(|at| {
        let is_new = last.is_none_or(|last| at.since(last) >= Duration::from_millis(1));
        if is_new {
            last = Some(*at);
        }
        is_new
    });
    let mut gaps: Vec<Duration> = times.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len() / 2).copied().unwrap_or_default()
}
