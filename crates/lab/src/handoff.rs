//! What each handoff cost: packets lost and doubled, and an outage whose every part has an owner.
//!
//! An outage begins at the event that cut the path and ends when the next packet is handed to the application. Each
//! stage of a handoff begins and ends at an event of its own; what lies in no stage is *unexplained*.

use crate::Plan;
use node::{Mark, Span, Stage, Value};
use std::collections::{BTreeMap, BTreeSet};
use trace::{HostId, Record, What};
use wire::{Duration, Instant, Ipv4Addr, PacketId};

/// One handoff of one mobile host.
#[derive(Clone, PartialEq, Debug)]
pub struct Handoff {
    /// The mobile host.
    pub host: HostId,
    /// `hard` or `semisoft`, as the protocol calls it.
    pub kind: String,
    /// The station it left.
    pub from: String,
    /// The station it went to.
    pub to: String,
    /// When it was decided.
    pub begun: Instant,
    /// When the radio was pointed at the new cell: the path is cut.
    pub cut: Instant,
    /// Datagrams of which no copy reached the application.
    pub lost: u64,
    /// Copies that an application was handed beyond the first.
    pub duplicates: u64,
    /// What the application noticed.
    pub outage: Option<Outage>,
    /// From the cut to the crossover's new mapping, and one downlink time of the new leg.
    pub latency: Option<Duration>,
    /// Route-update up, data packet down: the round trip between host and crossover, as this handoff met it.
    pub round_trip: Option<Duration>,
}

/// A time without packets.
#[derive(Clone, PartialEq, Debug)]
pub struct Outage {
    /// From the cut.
    pub from: Instant,
    /// To the next packet in the application's hands.
    pub to: Instant,
    /// Its parts in the order of time, without overlap.
    pub owners: Vec<Owner>,
}

/// A part of an outage.
#[derive(Clone, PartialEq, Debug)]
pub struct Owner {
    /// Who; `None` is nobody: unexplained.
    pub stage: Option<Stage>,
    /// From.
    pub from: Instant,
    /// To.
    pub to: Instant,
    /// The event that it begins with.
    pub begins: String,
    /// The event that it ends with.
    pub ends: String,
    /// Where these two happened; nowhere, if nobody owns it.
    pub hosts: Option<(HostId, HostId)>,
}

impl Owner {
    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        self.stage.map_or("unexplained", Stage::name)
    }

    /// How long it lasts.
    pub fn span(&self) -> Duration {
        self.to.since(self.from)
    }
}

impl Outage {
    /// How long it lasts.
    pub fn span(&self) -> Duration {
        self.to.since(self.from)
    }

    /// How much of it nobody owns.
    pub fn unexplained(&self) -> Duration {
        self.owners.iter().filter(|owner| owner.stage.is_none()).map(Owner::span).sum()
    }

    /// More than a twentieth unexplained: the run is not to be trusted.
    pub fn is_explained(&self) -> bool {
        self.unexplained() * 20 <= self.span()
    }
}

/// All handoffs of a run, in the order of time.
pub fn handoffs(plan: &Plan, records: &[Record]) -> Vec<Handoff> {
    let story = Story::new(plan, records);
    let begins: Vec<(usize, &Record, &Mark)> = records
        .iter()
        .enumerate()
        .filter_map(|(index, record)| match &record.what {
            What::Marked(mark) if mark.name == cellular_ip::mobile::mark::HANDOFF => {
                Some((index, record, mark))
            }
            _ => None,
        })
        .collect();
    let mut all = Vec::new();
    for (place, (_, record, mark)) in begins.iter().enumerate() {
        let next = begins.iter().skip(place + 1).find(|(_, other, _)| other.host == record.host);
        let until = next.map_or(Instant::NEVER, |(_, other, _)| other.at);
        if let Some(handoff) = story.handoff(record, mark, until) {
            all.push(handoff);
        }
    }
    all
}

/// When handoffs began of which nobody saw what cut the path, though the radio came up in another cell.
pub fn uncut(records: &[Record]) -> Vec<Instant> {
    let mut uncut = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let edge = |r: &&Record| is_begin(r) || matches!(r.what, What::Tuned(..) | What::Up(_, Some(_)));
        let mut later = records.iter().skip(index + 1).filter(|later| later.host == record.host);
        if is_begin(record) && later.find(edge).is_some_and(|next| matches!(next.what, What::Up(..))) {
            uncut.push(record.at);
        }
    }
    uncut
}

fn is_begin(record: &Record) -> bool {
    matches!(&record.what, What::Marked(mark) if mark.name == cellular_ip::mobile::mark::HANDOFF)
}
/// An event that a stage begins or ends with.
type Event = (Instant, HostId, String);

/// The records of a run, sorted for looking things up.
struct Story<'a> {
    records: &'a [Record],
    /// Datagrams of applications: when they were sent, and by which host.
    sent: BTreeMap<PacketId, (Instant, HostId)>,
    /// When they were handed to an application, and on which host.
    received: BTreeMap<PacketId, Vec<(Instant, HostId)>>,
    /// The last that was heard of a datagram that reached nobody, by the host it was for.
    lost: Vec<(Instant, HostId)>,
    /// The usual spacing of datagrams to each host.
    spacing: BTreeMap<HostId, Duration>,
    addresses: Vec<String>,
}

impl<'a> Story<'a> {
    fn new(plan: &Plan, records: &'a [Record]) -> Self {
        let mut sent = BTreeMap::new();
        let mut received: BTreeMap<PacketId, Vec<(Instant, HostId)>> = BTreeMap::new();
        let mut last = BTreeMap::new();
        let mut addressee = BTreeMap::new();
        let mut held = BTreeSet::new();
        let owners: BTreeMap<_, _> = (0..)
            .map(HostId)
            .zip(&plan.hosts)
            .flat_map(|(id, host)| host.config.addresses.iter().map(move |address| (*address, id)))
            .collect();
        for record in records {
            match &record.what {
                What::AppSent(id) => {
                    sent.entry(*id).or_insert((record.at, record.host));
                }
                What::AppReceived(id) => received.entry(*id).or_default().push((record.at, record.host)),
                What::Dropped(_, id, _) | What::Lost(_, id, _) => {
                    last.insert(*id, record.at);
                }
                What::Held(_, id) => {
                    held.insert(*id);
                }
                What::Received(_, packet) => {
                    if let Some(host) = destination(&packet.bytes).and_then(|dst| owners.get(&dst)) {
                        addressee.insert(packet.id, *host);
                    }
                }
                _ => {}
            }
        }
        let reached_nobody = |id: &PacketId| !received.contains_key(id) && !held.contains(id);
        let lost = sent.keys().filter(|id| reached_nobody(id)).filter_map(|id| {
            Some((last.get(id).or_else(|| sent.get(id).map(|(at, _)| at)).copied()?, *addressee.get(id)?))
        });
        let mut lost: Vec<_> = lost.collect();
        lost.sort_unstable();
        let spacing = spacing(&sent, &addressee);
        let addresses = plan
            .hosts
            .iter()
            .map(|host| host.config.addresses.first().map(ToString::to_string).unwrap_or_default());
        Self { records, lost, spacing, addresses: addresses.collect(), sent, received }
    }

    fn handoff(&self, record: &Record, mark: &Mark, until: Instant) -> Option<Handoff> {
        let host = record.host;
        let field = |name: &str| {
            let value = mark.fields.iter().find(|(key, _)| *key == name).map(|(_, value)| value);
            value.and_then(Value::as_text).unwrap_or_default().to_owned()
        };
        let cut = self.first(record.at, until, |r| r.host == host && matches!(r.what, What::Tuned(..)))?.at;
        let within = |at: Instant| at >= record.at && at < until;
        let lost = self.lost.iter().filter(|(at, to)| *to == host && within(*at)).count() as u64;
        let copies = self.received.values().flat_map(|times| times.iter().skip(1));
        let duplicates = copies.filter(|(at, on)| *on == host && within(*at)).count() as u64;
        let times = self.times(host, cut, until);
        Some(Handoff {
            host,
            kind: field("kind"),
            from: field("from"),
            to: field("to"),
            begun: record.at,
            cut,
            lost,
            duplicates,
            outage: self.outage(host, cut, until, lost),
            latency: times.map(|(_, mapped, down)| mapped.since(cut) + down),
            round_trip: times.map(|(sent, mapped, down)| mapped.since(sent) + down),
        })
    }

    /// When the route-update left that the crossover took, when it took it, and the downlink time of the new leg.
    fn times(&self, host: HostId, cut: Instant, until: Instant) -> Option<(Instant, Instant, Duration)> {
        let first = self.edge(host, cut, until, Span::Begins(Stage::Registration), false)?.at;
        let mapped = self.edge(host, cut, until, Span::Ends(Stage::Registration), true)?;
        let sent = self.sent_up(host, cut, mapped).unwrap_or(first);
        let out = self.records.iter().filter(|r| r.host == mapped.host && r.at > mapped.at && r.at < until);
        let down = out.filter_map(|r| match &r.what {
            What::Sent(_, packet) => {
                let times = self.received.get(&packet.id)?;
                Some(times.iter().find(|(at, on)| *on == host && *at >= r.at)?.0.since(r.at))
            }
            _ => None,
        });
        Some((sent, mapped.at, down.into_iter().next()?))
    }

    /// When the host sent what the crossover acted upon: of a route-update's repetitions, the one that came there.
    fn sent_up(&self, host: HostId, cut: Instant, mapped: &Record) -> Option<Instant> {
        let within = |r: &&Record| r.at >= cut && r.at <= mapped.at;
        let arrived = self.records.iter().rev().filter(within).filter(|r| r.host == mapped.host);
        arrived.into_iter().find_map(|r| {
            let What::Received(_, taken) = &r.what else { return None };
            let sends = |r: &&Record| matches!(&r.what, What::Sent(_, sent) if sent.id == taken.id);
            Some(self.records.iter().filter(within).find(|r| r.host == host && sends(r))?.at)
        })
    }

    fn outage(&self, host: HostId, cut: Instant, until: Instant, lost: u64) -> Option<Outage> {
        let on = |times: &&(Instant, HostId)| times.1 == host;
        let all =
            || self.received.iter().flat_map(|(id, times)| times.iter().filter(on).map(|(at, _)| (*at, *id)));
        let (to, packet) = all().filter(|(at, _)| *at > cut && *at < until).min()?;
        let before = all().map(|(at, _)| at).filter(|at| *at <= cut).max()?;
        let spacing = self.spacing.get(&host).copied().unwrap_or_default();
        // Two spacings exactly are no gap, and on a real clock they are never exactly two.
        if lost == 0 && to.since(before) <= spacing * 2 + spacing / 8 {
            return None;
        }
        let mut outage = Outage { from: cut, to, owners: Vec::new() };
        outage.owners = share_out(cut, to, self.stages(host, cut, to, packet));
        Some(outage)
    }

    /// The stages of one handoff, each from its own two events, in their order.
    fn stages(&self, host: HostId, cut: Instant, to: Instant, packet: PacketId) -> Vec<Owner> {
        let mut stages = Vec::new();
        let mut add = |stage, begin: Option<Event>, end: Option<Event>| {
            if let (Some((from, here, begins)), Some((to, there, ends))) = (begin, end) {
                let hosts = Some((here, there));
                stages.push(Owner { stage: Some(stage), from, to, begins, ends, hosts });
            }
        };
        let here = |r: &Record| r.host == host;
        let tuned = self.first(cut, to, |r| here(r) && matches!(r.what, What::Tuned(..)));
        let up = self.first(cut, to, |r| here(r) && matches!(r.what, What::Up(_, Some(_))));
        add(
            Stage::Link,
            tuned.map(|r| (r.at, r.host, "tune".into())),
            up.map(|r| (r.at, r.host, "up".into())),
        );
        let named = |record: Option<&Record>| record.map(|r| (r.at, r.host, name_of(r)));
        for stage in [Stage::Detection, Stage::Address, Stage::Recovery] {
            let begin = self.edge(host, cut, to, Span::Begins(stage), false);
            let end = self.edge(host, cut, to, Span::Ends(stage), true);
            add(stage, named(begin), named(end));
        }
        let announced = self.edge(host, cut, to, Span::Begins(Stage::Registration), false);
        let mapped = self.edge(host, cut, to, Span::Ends(Stage::Registration), true);
        let switch = self.edge(host, cut, to, Span::Begins(Stage::PathSwitch), true);
        // Nodes below the crossover leave the same marks a little earlier. Were one of its own missing, theirs would
        // take its place, and nothing would show.
        let crossover = mapped.into_iter().chain(switch).max_by_key(|record| record.at).map(|r| r.host);
        let at_crossover = |record: &&Record| Some(record.host) == crossover;
        add(Stage::Registration, named(announced), named(mapped.filter(at_crossover)));
        let switch = switch.filter(at_crossover);
        let out = switch.and_then(|switch| {
            let sends = |r: &Record| matches!(&r.what, What::Sent(_, sent) if sent.id == packet);
            self.records.iter().rfind(|r| r.at <= to && r.host == switch.host && sends(r))
        });
        let handed = Some((to, host, "app_received".to_owned()));
        if let (Some(switch), Some(out)) = (switch, out)
            && out.at >= switch.at
        {
            add(Stage::PathSwitch, named(Some(switch)), Some((out.at, out.host, "sent".into())));
        }
        // Without a switch the packet came by a way that was there before the cut.
        let left = match crossover {
            Some(_) => out.map(|out| (out.at, out.host, "sent".to_owned())),
            None => self.sent.get(&packet).map(|(at, on)| (*at, *on, "app_sent".to_owned())),
        };
        add(Stage::FirstByte, left, handed);
        stages.sort_by_key(|owner| owner.stage);
        stages
    }

    fn first(&self, from: Instant, to: Instant, wanted: impl Fn(&Record) -> bool) -> Option<&'a Record> {
        self.records.iter().find(|r| r.at >= from && r.at <= to && wanted(r))
    }

    /// The first or the last mark of this edge that is about this host.
    fn edge(&self, host: HostId, from: Instant, to: Instant, span: Span, last: bool) -> Option<&'a Record> {
        let address = self.addresses.get(usize::from(host.0));
        let about = |r: &Record, mark: &Mark| {
            let named =
                mark.fields.iter().find(|(key, _)| *key == "host").and_then(|(_, value)| value.as_text());
            r.host == host || named.is_some_and(|named| Some(named) == address.map(String::as_str))
        };
        let mut matching = self.records.iter().filter(|r| match &r.what {
            What::Marked(mark) => r.at >= from && r.at <= to && mark.span == Some(span) && about(r, mark),
            _ => false,
        });
        if last { matching.next_back() } else { matching.next() }
    }
}

/// Who is to have a datagram: inside a tunnel, who is to have what it carries.
fn destination(bytes: &[u8]) -> Option<Ipv4Addr> {
    match wire::ipip::decapsulate(bytes) {
        Ok((_, inner)) => destination(inner),
        Err(_) => wire::ipv4::addresses(bytes).map(|(_, dst)| dst),
    }
}

fn name_of(record: &Record) -> String {
    if let What::Marked(mark) = &record.what { mark.name.to_owned() } else { String::new() }
}

/// The usual distance between two datagrams to a host: the median.
fn spacing(
    sent: &BTreeMap<PacketId, (Instant, HostId)>,
    to: &BTreeMap<PacketId, HostId>,
) -> BTreeMap<HostId, Duration> {
    let mut times: BTreeMap<HostId, Vec<Instant>> = BTreeMap::new();
    for (id, (at, _)) in sent {
        if let Some(host) = to.get(id) {
            times.entry(*host).or_default().push(*at);
        }
    }
    times
        .into_iter()
        .filter_map(|(host, mut times)| {
            times.sort_unstable();
            let mut gaps: Vec<Duration> = times.windows(2).map(|pair| pair[1].since(pair[0])).collect();
            gaps.sort_unstable();
            Some((host, *gaps.get(gaps.len() / 2)?))
        })
        .collect()
}

/// Gives every moment to one stage at most, and what is left to nobody.
fn share_out(from: Instant, to: Instant, stages: Vec<Owner>) -> Vec<Owner> {
    let nobody =
        |from, to| Owner { stage: None, from, to, begins: String::new(), ends: String::new(), hosts: None };
    let mut owners = Vec::new();
    let mut at = from;
    for mut owner in stages {
        owner.from = owner.from.max(at);
        owner.to = owner.to.min(to);
        if owner.to < owner.from {
            continue;
        }
        if owner.from > at {
            owners.push(nobody(at, owner.from));
        }
        at = owner.to;
        owners.push(owner);
    }
    if at < to {
        owners.push(nobody(at, to));
    }
    owners
}

#[cfg(test)]
#[path = "handoff_tests.rs"]
mod tests;
