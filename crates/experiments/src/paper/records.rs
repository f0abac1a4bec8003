//! What the experiments take from the records of a run.

use node::Mark;
use recorder::run::Outcome;
use trace::{Record, What};
use wire::{Duration, Iface, Instant, Packet};

pub(super) const MOBILE: &str = "mobile";
pub(super) const CORRESPONDENT: &str = "correspondent";

/// The width of the bins of time. Bins without received bytes are counted.
pub(super) const BIN: Duration = Duration::from_millis(100);

/// Returns the marks of a host, in the order of time.
pub(super) fn marks<'a>(outcome: &'a Outcome, host: &str) -> impl Iterator<Item = (Instant, &'a Mark)> {
    here(outcome, host).filter_map(|record| match &record.what {
        What::Marked(mark) => Some((record.at, mark)),
        _ => None,
    })
}

/// Returns the integer in a field of a mark; `None` if there is none.
pub(super) fn number(mark: &Mark, name: &str) -> Option<i64> {
    mark.fields.iter().find(|(key, _)| *key == name).and_then(|(_, value)| value.as_int())
}

/// Returns whether a field of a mark has this text.
pub(super) fn is(mark: &Mark, name: &str, text: &str) -> bool {
    mark.fields.iter().any(|(key, value)| *key == name && value.as_text() == Some(text))
}

/// Returns when a mobile node first sends a request through this foreign agent, from `moved` on. No packet arrives by the
/// new cell before. On Linux, a packet by the old cell can arrive after the move is recorded, so the instant of the move
/// does not separate the two cells.
pub(super) fn asked(outcome: &Outcome, agent: &str, moved: Instant) -> Option<Instant> {
    let is_asked = |mark: &Mark| mark.name == "request_sent" && is(mark, "agent", agent);
    marks(outcome, MOBILE).find(|(at, mark)| *at >= moved && is_asked(mark)).map(|(at, _)| at)
}

/// Returns the last arrival by the old cell and the first one by the new cell; the mobile node asked at `asked`.
pub(super) fn around(data: impl Iterator<Item = Instant>, asked: Instant) -> [Option<Instant>; 2] {
    let (old, new): (Vec<_>, Vec<_>) = data.partition(|at| *at < asked);
    [old.last(), new.first()].map(Option::<&Instant>::copied)
}

/// Returns when a host's applications read data, and how many bytes.
pub(super) fn reads(outcome: &Outcome, host: &str) -> Vec<(Instant, u64)> {
    here(outcome, host).filter_map(|record| Some((record.at, record.what.read()?))).collect()
}

/// Returns the bytes that were read in each whole bin of time, from the first read on. The last bin is incomplete, so it
/// is left out.
pub(super) fn bins(reads: &[(Instant, u64)]) -> Vec<u64> {
    let Some(((first, _), (last, _))) = reads.first().zip(reads.last()) else { return Vec::new() };
    let bin = |at: Instant| (at.since(*first).as_nanos() / BIN.as_nanos()) as usize;
    let mut bins = vec![0; bin(*last)];
    for (at, bytes) in reads {
        bins.get_mut(bin(*at)).into_iter().for_each(|sum| *sum += bytes);
    }
    bins
}

/// Returns the goodput in Mb/s during `span` from `from` on.
pub(super) fn goodput(reads: &[(Instant, u64)], from: Instant, span: Duration) -> f64 {
    let within = reads.iter().filter(|(at, _)| *at >= from && at.since(from) < span);
    within.map(|(_, bytes)| *bytes).sum::<u64>() as f64 * 8.0 / span.as_secs_f64() / 1e6
}

/// Returns the packets that a host receives from its links.
pub(super) fn arrivals<'a>(
    outcome: &'a Outcome,
    host: &str,
) -> impl Iterator<Item = (Instant, &'a Packet)> + Clone {
    here(outcome, host).filter_map(|record| match &record.what {
        What::Received(iface, packet) if *iface != Iface::HOST => Some((record.at, packet)),
        _ => None,
    })
}

/// Returns the packets that a host sends on its links.
pub(super) fn departures<'a>(
    outcome: &'a Outcome,
    host: &str,
) -> impl Iterator<Item = (Instant, &'a Packet)> + Clone {
    here(outcome, host).filter_map(|record| match &record.what {
        What::Sent(iface, packet) if *iface != Iface::HOST => Some((record.at, packet)),
        _ => None,
    })
}

fn here<'a>(outcome: &'a Outcome, host: &str) -> impl Iterator<Item = &'a Record> + Clone {
    let id = outcome.records.iter().map(|record| record.host).find(|id| outcome.host(*id) == host);
    outcome.records.iter().filter(move |record| Some(record.host) == id)
}

pub(super) fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The move is recorded at 2.5 s, and a packet by the old cell arrives 1 ms later.
    #[test]
    fn a_packet_that_the_old_cell_delivers_late_does_not_end_the_gap() {
        let data = || [2496, 2501, 6400, 6405].map(Instant::from_millis).into_iter();
        let around = |asked| around(data(), Instant::from_millis(asked));
        assert_eq!(around(5000), [2501, 6400].map(|ms| Some(Instant::from_millis(ms))));
        assert_eq!(around(7000), [Some(Instant::from_millis(6405)), None]);
    }
}
