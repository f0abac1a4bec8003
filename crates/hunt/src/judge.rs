//! The judges: pure functions of the draft and the facts. Each checks one rule; `docs/hunt.md` has the rules with their
//! numbers.

use crate::draft::{self, Draft, Kind, Protocol, Work};
use crate::facts::{Arrivals, CONTROL, End, Facts};
use crate::interfaces::interface;
use crate::timers::{self, Lost};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use wire::{Duration, Instant};

/// A judge: a check of the facts of a run for violations of one rule. The description of each variant is its rule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Judge {
    /// A host's stack receives only packets for the host's own addresses, except at support routers of Indirect TCP.
    Misled,
    /// A packet crosses a link in one direction at most eight times, and the TTL of no packet expires.
    Loop,
    /// At most one router serves a connection at any instant.
    Owners,
    /// All bytes of a stream arrive once and in order. No connection fails without a cause. An open end waits for its
    /// next event at most 30 s, plus the time that paths and timers explain ([`explained`](crate::timers::explained)).
    Stream,
    /// A receiver of datagrams waits for the next datagram at most 10 s. If paths and timers explain more than 7 s
    /// ([`explained`](crate::timers::explained)), the receiver waits at most 3 s longer than explained.
    Served,
    /// The client of a connection waits for data at most 3 s longer than paths and timers explain
    /// ([`explained`](crate::timers::explained)).
    Stall,
    /// At most 300 packets are held at the end, and at most 5000 are under way at one time.
    Bounded,
    /// SCTP data is sent to confirmed addresses only.
    Unconfirmed,
    /// A home agent of Mobile IP tunnels packets for a mobile node to its bound care-of addresses only. A previous foreign
    /// agent forwards them only to care-of addresses that the mobile node has requested.
    Unbound,
    /// A correspondent of Mobile IP accepts no older Binding Update than the last one, and tunnels to its care-of address.
    Stale,
    /// A packet that a foreign agent has sent to a visitor leaves it again only to a care-of address that the mobile node has
    /// requested, at most 15 s later, and not after the visit has ended by a deregistration.
    Kept,
    /// A home agent accepts each request once. It may repeat its reply to the last one.
    Replayed,
    /// The packets of a visitor with a reverse tunnel leave its foreign agent in a tunnel only.
    Bypassed,
    /// A foreign agent that advertises challenges relays only requests with one of its last challenges.
    Unchallenged,
    /// The packets of a registration are in tunnels of the kind that the mobile node asked for.
    Kinds,
    /// Agents with a security association sign the requests that they relay, and their replies.
    Unsigned,
    /// A mobile node with two interfaces leaves one that has lost its link, and uses a preferred one that has a link.
    Interface,
    /// The ledger balances, and no role has more effects in one step than the limit permits. The analysis of a run explains each
    /// outage, and reports none that is longer than the longest stall of its flow.
    Laws,
}

impl Judge {
    /// All judges, the most serious rule first.
    pub const ALL: [Self; 18] = [
        Self::Misled,
        Self::Loop,
        Self::Owners,
        Self::Stream,
        Self::Served,
        Self::Stall,
        Self::Bounded,
        Self::Unconfirmed,
        Self::Unbound,
        Self::Stale,
        Self::Kept,
        Self::Replayed,
        Self::Bypassed,
        Self::Unchallenged,
        Self::Kinds,
        Self::Unsigned,
        Self::Interface,
        Self::Laws,
    ];

    /// Returns the judge's name, in reports and file names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Misled => "misled",
            Self::Loop => "loop",
            Self::Owners => "owners",
            Self::Stream => "stream",
            Self::Served => "served",
            Self::Stall => "stall",
            Self::Bounded => "bounded",
            Self::Unconfirmed => "unconfirmed",
            Self::Unbound => "unbound",
            Self::Stale => "stale",
            Self::Kept => "kept",
            Self::Replayed => "replayed",
            Self::Bypassed => "bypassed",
            Self::Unchallenged => "unchallenged",
            Self::Kinds => "kinds",
            Self::Unsigned => "unsigned",
            Self::Interface => "interface",
            Self::Laws => "laws",
        }
    }
}

impl fmt::Display for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Judge {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known: Vec<&str> = Self::ALL.iter().map(|judge| judge.name()).collect();
        let named = Self::ALL.into_iter().find(|judge| judge.name() == text);
        named.ok_or_else(|| format!("`{text}` must be the name of a judge; allowed: {}", known.join(", ")))
    }
}

/// A violation of a judge's rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The judge that found the violation.
    pub judge: Judge,
    /// What violates the rule, as text for reports.
    pub what: String,
}

/// Returns the violations, at most one of each judge, the most serious first.
pub fn judge(draft: &Draft, facts: &Facts) -> Vec<Violation> {
    let mut found = Vec::new();
    let lists = [
        (Judge::Misled, &facts.misled),
        (Judge::Loop, &facts.loops),
        (Judge::Owners, &facts.owners),
        (Judge::Unconfirmed, &facts.unconfirmed),
        (Judge::Unbound, &facts.unbound),
        (Judge::Stale, &facts.stale),
        (Judge::Kept, &facts.kept),
        (Judge::Replayed, &facts.replayed),
        (Judge::Bypassed, &facts.bypassed),
        (Judge::Unchallenged, &facts.unchallenged),
        (Judge::Kinds, &facts.kinds),
        (Judge::Unsigned, &facts.unsigned),
        (Judge::Stream, &facts.wrong),
        (Judge::Laws, &facts.doubts),
    ];
    for (judge, list) in lists {
        found.extend(list.first().map(|what| Violation { judge, what: what.clone() }));
    }
    let mut add = |judge, what: Option<String>| found.extend(what.map(|what| Violation { judge, what }));
    for work in draft.hosts.iter().flat_map(|host| &host.work) {
        add(Judge::Stream, stream(draft, work, facts));
        add(Judge::Served, served(draft, work, facts));
        add(Judge::Stall, stall(draft, work, facts));
    }
    add(Judge::Interface, interface(draft, facts));
    add(Judge::Bounded, bounded(facts));
    found.sort_by_key(|violation| violation.judge);
    found.dedup_by_key(|violation| violation.judge);
    found
}

/// An open end of a connection may have no event for this time, in seconds. The time that the paths and the timers
/// explain is added.
const SILENT: f64 = 30.0;

fn stream(draft: &Draft, work: &Work, facts: &Facts) -> Option<String> {
    if matches!(work.kind, Kind::Datagrams { .. }) {
        return None;
    }
    let port = work.port;
    let Some(ends) = facts.streams.get(&port) else {
        return Some(format!("port {port}: no connection was requested"));
    };
    let client = ends.client.as_ref()?;
    for (name, end) in [("client", Some(client)), ("server", ends.server.as_ref())] {
        let told = end.and_then(|end| Some((end, end.error()?)));
        if let Some((_, why)) = told.filter(|(end, _)| !may_fail(draft, work, facts, end)) {
            return Some(format!("port {port}: the {name} was notified of an error: {why}"));
        }
    }
    let allowed = |end: &End| SILENT + explained(draft, work, facts, (end.last, facts.ended));
    let silent = |end: &End| !end.is_over() && facts.ended.since(end.last).as_secs_f64() > allowed(end);
    // A peer that has nothing to send is not notified of a router's crash (RFC 9293, section 3.5.1).
    let server = ends.server.as_ref().filter(|_| !loses_connections(draft, work, facts));
    for (name, end) in [("client", Some(client)), ("server", server)] {
        if let Some(end) = end.filter(|end| silent(end)) {
            let (last, allowed) = (end.last, allowed(end));
            return Some(format!(
                "port {port}: the {name} had no event from {last} s until the end of the run; {allowed:.1} s are allowed"
            ));
        }
    }
    let whole = match work.kind {
        Kind::Down(bytes) | Kind::Up(bytes) => bytes,
        Kind::Asks { answer, count, .. } => u64::from(answer) * count,
        Kind::Datagrams { .. } => return None,
    };
    let failed = client.error().is_some();
    let over = client.is_over() && !failed && client.read != whole;
    (over || client.read > whole)
        .then(|| format!("port {port}: the client must receive {whole} bytes, but received {}", client.read))
}

/// The time from the first to the last ARP request for an address, in milliseconds: three requests, one per second.
const ARP: f64 = 2000.0;

/// Returns whether an end may be notified of an error. These are the permitted causes:
///
/// - Indirect TCP: a router crashed that had connections of the mobile host, or to which connections of the host were
///   sent before the crash. A connection may also fail if it was sent to the router after the crash, and the host had
///   greeted the router only before the crash. No other router knows whether the crashed router took the connection.
/// - The connection is not open, and the network is unreachable: there is no path for more than 2 s, or the probability
///   that three ARP requests in a row are lost is above 1 in 100 000.
/// - SIGMA: the peer moves before the connection is open, and gives up the address to which the connection opens.
fn may_fail(draft: &Draft, work: &Work, facts: &Facts, end: &End) -> bool {
    if loses_connections(draft, work, facts) {
        return true;
    }
    if end.opened {
        return false;
    }
    let unanswered = timers::round_trip_loss(draft).powi(3) > timers::LIKELY;
    unanswered || timers::is_away(draft, work, ARP) || calls_moving_host(draft, work)
}

fn loses_connections(draft: &Draft, work: &Work, facts: &Facts) -> bool {
    let host = draft.hosts.iter().position(|host| host.work.contains(work));
    host.is_some_and(|host| facts.crashed_for.contains(&draft::mobile_name(host)))
}

fn calls_moving_host(draft: &Draft, work: &Work) -> bool {
    // INIT is sent again after 1 s (RTO.Initial; RFC 9260, section 16).
    let opening = work.start + 1000 + 4 * draft.worst_round_trip();
    let peer = work.peer.and_then(|peer| draft.hosts.get(peer)?.moves.first());
    draft.protocol == Protocol::Sigma && peer.is_some_and(|step| step.at <= opening)
}

/// A receiver of datagrams may wait this time for the next datagram without any cause, in seconds.
const FRESH: u64 = 10;

/// The size of the IP header and the UDP header of a datagram, in bytes.
const HEADERS: u32 = 20 + 8;

/// Checks three waits: for the first datagram, the longest between two datagrams, and from the last datagram until the
/// sources stop. Returns the text of a violation; `None` if there is none.
fn served(draft: &Draft, work: &Work, facts: &Facts) -> Option<String> {
    let Kind::Datagrams { rate, size, .. } = work.kind else { return None };
    // Datagrams with DF that do not fit are dropped, and their sender is notified.
    let headers = HEADERS + draft.options.tunnel.overhead();
    let may_be_cut = draft.options.has_fragments;
    if size + headers > u32::from(draft.narrowest()) && !may_be_cut {
        return None;
    }
    // There is no check if random loss takes all datagrams of 10 s with a probability above 1 in a billion.
    let sent = f64::from(rate) * FRESH as f64;
    // A datagram is lost with any of its fragments.
    let room = u32::from(draft.narrowest()).saturating_sub(headers + 8).max(1);
    let pieces = if may_be_cut { (size / room + 1).cast_signed() } else { 1 };
    let lost = 1.0 - (1.0 - draft.worst_loss()).powi(pieces);
    if lost.powf(sent) > 1e-9 {
        return None;
    }
    let stop = Instant::ZERO + Duration::from_millis(draft.stop());
    let start = Instant::ZERO + Duration::from_millis(work.start);
    let arrivals = facts.datagrams.get(&work.port).copied();
    let waits = match arrivals {
        Some(Arrivals { first, last, gap }) => [(start, first), gap, (last, stop)],
        None => [(start, start), (start, start), (start, stop)],
    };
    let too_long = |(from, to): (Instant, Instant)| {
        let allowed = (NO_CAUSE + explained(draft, work, facts, (from, to))).max(FRESH as f64);
        (to <= facts.ended && to.since(from).as_secs_f64() > allowed).then(|| {
            format!(
                "port {}: no datagram arrived from {from} s to {to} s; {allowed:.1} s without a datagram are allowed",
                work.port
            )
        })
    };
    waits.into_iter().find_map(too_long)
}

/// An application may wait this time without any cause, in seconds.
const NO_CAUSE: f64 = 3.0;

fn stall(draft: &Draft, work: &Work, facts: &Facts) -> Option<String> {
    let client = facts.streams.get(&work.port)?.client.as_ref()?;
    if client.error().is_some() {
        return None; // another rule checks whether it was notified in time
    }
    let allowed = NO_CAUSE + explained(draft, work, facts, client.gap);
    let gap = client.gap.1.since(client.gap.0).as_secs_f64();
    (gap > allowed).then(|| {
        format!(
            "port {}: the client received no data for {gap:.3} s from {} s on; {allowed:.3} s are allowed",
            work.port, client.gap.0
        )
    })
}

/// Returns how many seconds of a wait the paths and the timers explain. The losses that count are those of the
/// workload's own packets, and of packets of no workload, such as registrations.
fn explained(draft: &Draft, work: &Work, facts: &Facts, wait: (Instant, Instant)) -> f64 {
    let of = |losses: &BTreeMap<u16, Vec<Instant>>| {
        let ports = [work.port, CONTROL];
        let mut lost: Vec<Instant> =
            ports.iter().filter_map(|port| losses.get(port)).flatten().copied().collect();
        lost.sort_unstable();
        lost
    };
    let lost = Lost { by_chance: of(&facts.lost), in_queues: of(&facts.full) };
    timers::explained(draft, work, wait, &lost)
}

/// Largest number of packets that may be held at the end of a run.
const HELD: u64 = 300;
/// Largest number of packets that may be under way at one time.
const UNDER_WAY: usize = 5000;

fn bounded(facts: &Facts) -> Option<String> {
    if facts.held > HELD {
        return Some(format!("{} packets are held at the end; at most {HELD} are allowed", facts.held));
    }
    (facts.most_open > UNDER_WAY).then(|| {
        format!("{} packets were under way at one time; at most {UNDER_WAY} are allowed", facts.most_open)
    })
}

#[cfg(test)]
pub(crate) mod tests;
