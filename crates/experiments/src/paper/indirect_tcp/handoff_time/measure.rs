//! The evaluation of a run of `indirect-tcp/handoff-time`.

use super::{CODES, FRAMES, MOVED, RIGHT, SENT, TIME, WARMING};
use crate::reproduce::Samples;
use node::{Mark, Value as Field};
use recorder::run::Outcome;
use trace::{Record, What};
use wire::Instant;

/// Evaluates a run whose clients send requests: those of an upload, or one request on each idle connection after all
/// moves.
pub(super) fn answers(outcome: &Outcome) -> Result<Samples, String> {
    measure(outcome, all_answered(outcome), WARMING)
}

pub(super) fn download(outcome: &Outcome) -> Result<Samples, String> {
    measure(outcome, all_done(outcome), WARMING)
}

pub(super) fn cold_idle(outcome: &Outcome) -> Result<Samples, String> {
    measure(outcome, all_answered(outcome), 0)
}

pub(super) fn cold_download(outcome: &Outcome) -> Result<Samples, String> {
    measure(outcome, all_done(outcome), 0)
}

/// Evaluates a run with losses. A handoff that did not end, or found no connection, has infinite values, except for
/// `bytes_right`.
pub(super) fn lossy(outcome: &Outcome) -> Result<Samples, String> {
    let moves = outcome.records.iter().filter(|record| match &record.what {
        What::Marked(mark) => mark.name == node::HANDOFF,
        _ => false,
    });
    let wanted = moves.count().saturating_sub(WARMING);
    let mut samples = measure(outcome, all_done(outcome), WARMING)?;
    let right = f64::from(u8::from(all_done(outcome)));
    for (metric, values) in &mut samples {
        values.resize(wanted, if *metric == RIGHT { right } else { f64::INFINITY });
    }
    Ok(samples)
}

/// Returns the number of clients of this run; each has one connection.
fn clients(outcome: &Outcome) -> usize {
    let marks = marks(outcome).filter(|(_, mark)| mark.name == "opened");
    marks.count().max(1)
}

fn all_answered(outcome: &Outcome) -> bool {
    // Each connection of an upload ends with `done`. An idle connection has one answer, and stays open.
    let marks = || marks(outcome).map(|(_, mark)| mark);
    let failed = marks().any(|mark| mark.name == "failed" || field(mark, "wrong_at").is_some());
    let asked_on = marks().any(|mark| mark.name == "bad_question");
    let ends = |name: &str| marks().filter(|mark| mark.name == name).count();
    let is_upload = ends("answered") > clients(outcome);
    let ended = ends(if is_upload { "done" } else { "answered" });
    !failed && !asked_on && ended == clients(outcome)
}

fn all_done(outcome: &Outcome) -> bool {
    let done = marks(outcome).filter(|(_, mark)| mark.name == "done" && field(mark, "wrong_at").is_none());
    done.count() == clients(outcome)
}

/// A handoff, from the greeting at the new router until this router has taken all connections.
struct Handoff {
    host: trace::HostId,
    began: Instant,
    /// The number of connections that are not taken yet.
    left: i64,
    moved: f64,
    bytes: f64,
    codes: f64,
}

/// Returns the values of each handoff, without the first `skip` handoffs.
fn measure(outcome: &Outcome, is_right: bool, skip: usize) -> Result<Samples, String> {
    let mut all = Vec::new();
    let mut under_way: Option<Handoff> = None;
    for (record, mark) in marks(outcome) {
        let value = |name| number(mark, name).unwrap_or_default() as f64;
        match (mark.name, number(mark, "connections")) {
            ("greeted", Some(left @ 1..)) => {
                let (host, began) = (record.host, record.at);
                under_way = Some(Handoff { host, began, left, moved: 0.0, bytes: 0.0, codes: 0.0 });
            }
            ("offered" | "shipped", _) => {
                if let Some(handoff) = &mut under_way {
                    handoff.bytes += value("bytes");
                    handoff.codes += value("codes");
                }
            }
            ("taken", _) if field(mark, "closing").is_some() => {}
            ("taken", _) => {
                let Some(handoff) = under_way.as_mut().filter(|handoff| handoff.host == record.host) else {
                    return Err("a router took a connection without a greeting".to_owned());
                };
                handoff.left -= 1;
                handoff.moved += value("buffered");
                if handoff.left == 0 {
                    let time = record.at.since(handoff.began).as_secs_f64() * 1e3;
                    let Handoff { moved, bytes, codes, .. } = *handoff;
                    all.push([time, moved, bytes, bytes - codes, codes]);
                    under_way = None;
                }
            }
            _ => {}
        }
    }
    let mut samples = Samples::new();
    for values in all.into_iter().skip(skip) {
        for (metric, value) in [TIME, MOVED, SENT, FRAMES, CODES].into_iter().zip(values) {
            samples.entry(metric).or_default().push(value);
        }
        samples.entry(RIGHT).or_default().push(f64::from(u8::from(is_right)));
    }
    if samples.is_empty() {
        return Err("no connection was handed over".to_owned());
    }
    Ok(samples)
}

fn marks(outcome: &Outcome) -> impl Iterator<Item = (&Record, &Mark)> {
    outcome.records.iter().filter_map(|record| match &record.what {
        What::Marked(mark) => Some((record, mark)),
        _ => None,
    })
}

fn field<'a>(mark: &'a Mark, name: &str) -> Option<&'a Field> {
    mark.fields.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
}

fn number(mark: &Mark, name: &str) -> Option<i64> {
    field(mark, name)?.as_int()
}
