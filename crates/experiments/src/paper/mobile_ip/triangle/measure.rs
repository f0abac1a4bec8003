//! The evaluation of a run of `mobile-ip/triangle`.

use super::{CAPACITY_MBPS, COMPLETION, EFFICIENCY, IN_FLIGHT, SHARED, WINDOW};
use crate::reproduce::Samples;
use recorder::flow::FlowEnd;
use recorder::run::Outcome;
use recorder::segment::{self, Seen};
use trace::{Record, What};
use wire::{Iface, Instant};

const CORRESPONDENT: &str = "correspondent";
const MOBILE: &str = "mobile";
/// The port of the server of the measured download.
const PORT: u16 = 9000;

pub(super) fn full_duplex(outcome: &Outcome) -> Result<Samples, String> {
    download(outcome, EFFICIENCY)
}

pub(super) fn shared(outcome: &Outcome) -> Result<Samples, String> {
    download(outcome, SHARED)
}

pub(super) fn window(outcome: &Outcome) -> Result<Samples, String> {
    download(outcome, WINDOW)
}

/// Evaluates the download. `efficiency`: the metric that gets the efficiency in percent.
fn download(outcome: &Outcome, efficiency: &'static str) -> Result<Samples, String> {
    let flow = outcome.flows.iter().find(|flow| flow.from.at.port() == PORT);
    let flow = flow.ok_or("the run has no download, so nothing was measured")?;
    if flow.end != FlowEnd::Completed {
        return Err(format!("the download is {}, so it has no completion time", flow.end.name()));
    }
    if let Some(failure) = outcome.failures.first() {
        return Err(failure.clone());
    }
    let sent = here(outcome, CORRESPONDENT).find_map(|record| match sender_event(record)? {
        (SenderEvent::Sent(_), at) => Some(at),
        (SenderEvent::Acknowledged(_), _) => None,
    });
    let reads = here(outcome, MOBILE).filter(|record| record.what.read().is_some());
    let read = reads.map(|record| record.at).next_back();
    let (sent, read) = sent.zip(read).ok_or("the records have no data of the download")?;
    let seconds = read.since(sent).as_secs_f64();
    let mbps = flow.bytes as f64 * 8.0 / 1e6 / seconds;
    let mut samples = Samples::new();
    samples.insert(efficiency, vec![mbps / CAPACITY_MBPS * 100.0]);
    samples.insert(COMPLETION, vec![seconds]);
    let quarter = read.since(sent) / 4;
    samples.insert(IN_FLIGHT, vec![in_flight(outcome, sent + quarter, read - quarter)?]);
    Ok(samples)
}

/// A packet of the download at the correspondent.
enum SenderEvent {
    /// Data were sent: the sequence number after their last byte.
    Sent(u32),
    /// An acknowledgment arrived: its number.
    Acknowledged(u32),
}

/// Returns the event of the download that a record of the correspondent shows, or `None` if it shows another packet.
fn sender_event(record: &Record) -> Option<(SenderEvent, Instant)> {
    let (packet, is_sent) = match &record.what {
        What::Sent(iface, packet) if *iface != Iface::HOST => (packet, true),
        What::Received(iface, packet) if *iface != Iface::HOST => (packet, false),
        _ => return None,
    };
    let Seen { from, to, segment } = segment::of(packet)?;
    let event = if is_sent {
        let is_data = from.port() == PORT && !segment.payload.is_empty();
        is_data.then(|| SenderEvent::Sent(segment.seq.0.wrapping_add(segment.payload.len() as u32)))
    } else {
        (to.port() == PORT).then_some(SenderEvent::Acknowledged(segment.ack.0))
    };
    Some((event?, record.at))
}

/// Returns the mean number of bytes in flight from one instant to another, weighted with time: sent by the correspondent,
/// and not yet acknowledged.
fn in_flight(outcome: &Outcome, from: Instant, until: Instant) -> Result<f64, String> {
    // The highest sequence number after sent bytes, and the highest acknowledgment. Both are relative to the first one,
    // because sequence numbers start at random and wrap around.
    let mut first = None;
    let (mut sent, mut acknowledged) = (0u32, 0u32);
    let (mut since, mut sum) = (from, 0.0);
    for (event, at) in here(outcome, CORRESPONDENT).filter_map(sender_event) {
        let held = f64::from(sent.saturating_sub(acknowledged));
        if at > from {
            let to = at.min(until);
            sum += held * to.since(since).as_secs_f64();
            since = to;
        }
        if at >= until {
            break;
        }
        let relative = |number: u32, first: u32| number.wrapping_sub(first);
        match event {
            SenderEvent::Sent(end) => {
                let first = *first.get_or_insert(end);
                sent = sent.max(relative(end, first));
            }
            SenderEvent::Acknowledged(number) => {
                // An acknowledgment of the handshake is below the first sequence number.
                let relative = first.map(|first| relative(number, first)).filter(|ack| *ack <= sent);
                acknowledged = acknowledged.max(relative.unwrap_or_default());
            }
        }
    }
    let span = until.since(from).as_secs_f64();
    if span > 0.0 { Ok(sum / span) } else { Err("the download has no plateau".to_owned()) }
}

fn here<'a>(outcome: &'a Outcome, host: &str) -> impl DoubleEndedIterator<Item = &'a Record> {
    outcome.records.iter().filter(move |record| outcome.host(record.host) == host)
}
