//! The evaluation of a run of `sigma/handoff`.

use super::super::FOREIGN_AGENT;
use super::{ADD, AFTER, AMISS, BEFORE, GAP, NEW, OLD, PRIMARY, PROOF, SPURIOUS, STALL, UNPROVED};
use crate::paper::records::{
    self, CORRESPONDENT, MOBILE, around, arrivals, asked, bins, departures, is, marks, millis, number, reads,
};
use crate::reproduce::Samples;
use node::Mark;
use recorder::run::Outcome;
use recorder::segment;
use scenario::Application;
use sctp::message::Chunk;
use std::collections::{BTreeMap, BTreeSet};
use toml::Table;
use wire::{Duration, Instant, Ipv4Addr, Packet, PacketId, ipv4};

pub(super) const EMPTY: &str = "empty_bins";

/// The time over which the goodput before and after the move is measured.
const WINDOW: Duration = Duration::from_secs(1);

/// Evaluates a download by SIGMA.
pub(super) fn sigma(outcome: &Outcome) -> Result<Samples, String> {
    let right = ended(outcome).and_then(|mark| number(mark, "wrong_at").or_else(|| number(mark, "bytes")));
    let mut samples = association(outcome, [CORRESPONDENT, MOBILE])?;
    samples.insert(AMISS, vec![amiss(outcome, right)]);
    Ok(samples)
}

/// Evaluates an upload by SIGMA.
pub(super) fn upload(outcome: &Outcome) -> Result<Samples, String> {
    let is_right = ended(outcome).is_some_and(|mark| number(mark, "wrong_at").is_none());
    let read: u64 = reads(outcome, CORRESPONDENT).iter().map(|(_, bytes)| bytes).sum();
    let mut samples = association(outcome, [MOBILE, CORRESPONDENT])?;
    samples.insert(AMISS, vec![amiss(outcome, is_right.then_some(read.cast_signed()))]);
    Ok(samples)
}

/// Evaluates a download by Mobile IP. The run ends before the download, so the received bytes are not counted.
pub(super) fn mobile_ip(outcome: &Outcome) -> Result<Samples, String> {
    let moved = outcome.handoffs.first().ok_or("the run has no handoff, so nothing was measured")?.begun;
    let asked =
        asked(outcome, FOREIGN_AGENT, moved).ok_or("no request was sent through the foreign agent")?;
    let data =
        arrivals(outcome, MOBILE).filter(|(_, packet)| segment::carries_data(packet)).map(|(at, _)| at);
    let [old, new] = around(data, asked);
    goodput(outcome, MOBILE, old.zip(new))
}

/// Returns the values of an association that carries data from the first to the second host.
fn association(outcome: &Outcome, [sender, receiver]: [&str; 2]) -> Result<Samples, String> {
    // The arrivals of data packets, each with the mobile node's address: the source or the destination of the packet.
    let data: Vec<(Instant, Ipv4Addr)> = arrivals(outcome, receiver)
        .filter_map(|(at, packet)| {
            let (from, to) = ipv4::addresses(&packet.bytes).filter(|_| segment::is_sctp_data(packet))?;
            Some((at, if receiver == MOBILE { to } else { from }))
        })
        .collect();
    // Data lost on the old path may be retransmitted to the new address before the move (RFC 9260, section 6.3.3).
    let moved = outcome.handoffs.first().map(|handoff| handoff.begun);
    let is_new = |(at, by): &&(Instant, Ipv4Addr)| *by == NEW && moved.is_some_and(|moved| *at >= moved);
    let new = data.iter().find(is_new).map(|(at, _)| *at);
    let old = data.iter().filter(|(at, by)| *by == OLD && new.is_none_or(|new| *at < new));
    let old = old.map(|(at, _)| *at).next_back();
    let mut samples = goodput(outcome, receiver, old.zip(new))?;
    let mut add = |metric, value: Option<f64>| samples.insert(metric, vec![value.unwrap_or(f64::INFINITY)]);
    add(ADD, add_time(outcome));
    let proved = proof(outcome);
    add(PROOF, proved.map(|(sent, proved)| millis(proved.since(sent))));
    add(PRIMARY, moved.zip(new).map(|(moved, new)| millis(new.since(moved))));
    add(SPURIOUS, Some(spurious(outcome, [sender, receiver]) as f64));
    let early = departures(outcome, CORRESPONDENT).filter(|(at, packet)| {
        let to = ipv4::addresses(&packet.bytes).map(|(_, to)| to);
        to == Some(NEW) && segment::is_sctp_data(packet) && proved.is_none_or(|(_, proved)| *at < proved)
    });
    add(UNPROVED, Some(early.count() as f64));
    Ok(samples)
}

/// Returns the time from the ASCONF with ADD to its acknowledgment, in milliseconds.
fn add_time(outcome: &Outcome) -> Option<f64> {
    let address = NEW.to_string();
    let is_new = |mark: &Mark| is(mark, "address", &address);
    let marks = || marks(outcome, MOBILE).filter(|(at, _)| *at > Instant::ZERO);
    let (answered, _) = marks().find(|(_, mark)| mark.name == "add_acknowledged" && is_new(mark))?;
    let (asked, _) = marks().filter(|(at, mark)| mark.name == "add_sent" && *at <= answered).last()?;
    Some(millis(answered.since(asked)))
}

/// Returns the time of the correspondent's first HEARTBEAT to the new address, and of the first HEARTBEAT ACK from this
/// address.
fn proof(outcome: &Outcome) -> Option<(Instant, Instant)> {
    let has = |packet: &Packet, wanted: fn(&Chunk) -> bool| {
        segment::sctp_of(packet).is_some_and(|sctp| sctp.chunks.iter().any(wanted))
    };
    let asked = departures(outcome, CORRESPONDENT).find(|(_, packet)| {
        ipv4::addresses(&packet.bytes).is_some_and(|(_, to)| to == NEW)
            && has(packet, |chunk| matches!(chunk, Chunk::Heartbeat(_)))
    });
    let answered = arrivals(outcome, CORRESPONDENT).find(|(_, packet)| {
        ipv4::addresses(&packet.bytes).is_some_and(|(from, _)| from == NEW)
            && has(packet, |chunk| matches!(chunk, Chunk::HeartbeatAck(_)))
    });
    Some((asked?.0, answered?.0))
}

/// Counts retransmissions of data chunks of which an earlier copy arrived.
fn spurious(outcome: &Outcome, [sender, receiver]: [&str; 2]) -> usize {
    let arrived: BTreeSet<PacketId> = arrivals(outcome, receiver).map(|(_, packet)| packet.id).collect();
    let mut sent: BTreeMap<u32, Vec<PacketId>> = BTreeMap::new();
    for (_, packet) in departures(outcome, sender) {
        for chunk in segment::sctp_of(packet).into_iter().flat_map(|sctp| sctp.chunks) {
            if let Chunk::Data(data) = chunk {
                sent.entry(data.tsn).or_default().push(packet.id);
            }
        }
    }
    let again = |copies: &Vec<PacketId>| {
        let first = copies.iter().position(|copy| arrived.contains(copy));
        first.map_or(0, |first| copies.len() - 1 - first)
    };
    sent.values().map(again).sum()
}

/// Returns goodput, stall and gap. `cut`: the time of the last packet on the old path, and of the first on the new
/// one.
fn goodput(outcome: &Outcome, receiver: &str, cut: Option<(Instant, Instant)>) -> Result<Samples, String> {
    let reads = reads(outcome, receiver);
    if reads.is_empty() {
        return Err("the application received no data, so nothing was measured".to_owned());
    }
    let goodput = |from: Instant| records::goodput(&reads, from, WINDOW);
    let stalls = reads.iter().zip(reads.iter().skip(1)).map(|((one, _), (next, _))| next.since(*one));
    let mut samples = Samples::new();
    samples.insert(EMPTY, vec![bins(&reads).iter().filter(|bytes| **bytes == 0).count() as f64]);
    samples.insert(STALL, vec![millis(stalls.max().unwrap_or_default())]);
    if let Some((old, new)) = cut {
        samples.insert(GAP, vec![millis(new.since(old))]);
        samples.insert(BEFORE, vec![goodput(old - WINDOW)]);
        samples.insert(AFTER, vec![goodput(new)]);
    }
    Ok(samples)
}

/// Returns the number of bytes that the application did not receive correctly: all bytes after the first wrong one, and
/// all missing or additional bytes.
fn amiss(outcome: &Outcome, right: Option<i64>) -> f64 {
    (expected(outcome).unwrap_or_default() - right.unwrap_or_default() as f64).abs()
}

/// Returns the number of bytes to transfer, from the scenario.
fn expected(outcome: &Outcome) -> Option<f64> {
    let document: Table = toml::from_str(&outcome.plan.document).ok()?;
    let hosts = document.get("host")?.as_table()?;
    let roles = hosts.values().filter_map(|host| host.get("role")?.as_array()).flatten();
    let bytes = roles.filter_map(|role| {
        let number = |key: &str| role.get(key)?.as_integer();
        match Application::of_table(role.as_table()?)? {
            Application::BulkServer => number("bytes"),
            Application::RequestClient => Some(number("question")? * number("exchanges")?),
            _ => None,
        }
    });
    bytes.map(|bytes| bytes as f64).next()
}

/// Returns the first mark `done` or `failed` of the mobile node.
fn ended(outcome: &Outcome) -> Option<&Mark> {
    marks(outcome, MOBILE).map(|(_, mark)| mark).find(|mark| ["done", "failed"].contains(&mark.name))
}
