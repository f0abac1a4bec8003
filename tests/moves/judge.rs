//! Checks of a finished conversation, for both backends.

use node::{Mark, Value};
use recorder::ledger;
use scenario::Plan;
use std::fmt::Write as _;
use tcp::{Flags, PROTOCOL, Segment};
use trace::{HostId, Record, What};
use wire::ipv4::Header;
use wire::{Duration, Iface, Instant, Packet};

/// The result of a run: times, counts, and the bytes in both directions.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// For each completed move, the time from `freeze` to `thaw`. `deaf` has the times from `freeze` to the next byte
    /// received.
    pub(crate) silent: Vec<Duration>,
    pub(crate) deaf: Vec<Duration>,
    /// The number of exported states with both unread and unacknowledged bytes.
    pub(crate) full: usize,
    /// The number and the SHA-256 of the bytes from the correspondent. `down` has the number and the
    /// SHA-256 of the bytes to the correspondent.
    pub(crate) up: (i64, String),
    pub(crate) down: (i64, String),
    /// The number of attempts to move, completed or abandoned.
    pub(crate) attempts: usize,
}

/// Checks the records of a run, and panics on a violation.
#[track_caller]
pub(crate) fn judge(plan: &Plan, records: &[Record], last_at: &str) -> Verdict {
    let ledger = ledger::close(plan, records);
    assert!(ledger.balances(), "{:?}", ledger.doubts());
    assert_eq!(count(records, Flags::RST), 0, "segments that reset");
    assert_eq!(count(records, Flags::SYN), 2, "one handshake and no other");
    let names = plan.host_names();
    let id = |name: &str| HostId(names.iter().position(|other| other == name).unwrap() as u32);
    let closed = |host| {
        let marks: Vec<&Mark> =
            marks(records, "closed").filter(|(_, at, _)| *at == host).map(|m| m.2).collect();
        assert_eq!(marks.len(), 1, "{marks:?}");
        marks[0]
    };
    let (far, near) = (closed(id("correspondent")), closed(id(last_at)));
    for mark in [far, near] {
        assert_eq!(field(mark, "why"), Value::from(""), "{mark:?}");
    }
    assert_eq!(marks(records, "closed").count(), 2);
    assert_eq!(marks(records, "finished").count(), 2);
    assert_eq!(marks(records, "refused").map(|m| m.2.clone()).collect::<Vec<_>>(), []);
    let stream = |from: &Mark, to: &Mark| {
        let said = (field(from, "said"), field(from, "said_sum"));
        assert_eq!(said, (field(to, "heard"), field(to, "heard_sum")));
        (said.0.as_int().unwrap(), said.1.as_text().unwrap().to_owned())
    };
    let (silent, deaf) = gaps(records);
    let full = marks(records, "exported").filter(|(.., mark)| {
        ["unread", "unacknowledged"].iter().all(|name| field(mark, name) != Value::Int(0))
    });
    Verdict {
        silent,
        deaf,
        full: full.count(),
        up: stream(far, near),
        down: stream(near, far),
        attempts: marks(records, "frozen").count(),
    }
}

fn marks<'a>(records: &'a [Record], name: &'a str) -> impl Iterator<Item = (Instant, HostId, &'a Mark)> {
    records.iter().filter_map(move |record| match &record.what {
        What::Marked(mark) if mark.role == "talker" && mark.name == name => {
            Some((record.at, record.host, mark))
        }
        _ => None,
    })
}

fn field(mark: &Mark, name: &str) -> Value {
    mark.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value.clone()).unwrap()
}

/// Counts the segments with a flag at the host that sent them, as its stack gave them to its node.
fn count(records: &[Record], flag: Flags) -> usize {
    let has = |packet: &Packet| {
        let Ok((header, payload)) = Header::parse(&packet.bytes) else { return false };
        header.protocol == PROTOCOL
            && Segment::parse(payload, header.src, header.dst).is_ok_and(|segment| segment.has(flag))
    };
    let made = |record: &&Record| matches!(&record.what, What::Received(Iface::HOST, packet) if has(packet));
    records.iter().filter(made).count()
}

/// Returns the times of each completed move: from `freeze` to `thaw` at the other host, and to the first byte there.
fn gaps(records: &[Record]) -> (Vec<Duration>, Vec<Duration>) {
    let (mut silent, mut deaf) = (Vec::new(), Vec::new());
    let mut frozen: Option<(Instant, HostId)> = None;
    let mut thawed: Option<(Instant, HostId)> = None;
    for record in records {
        let What::Marked(mark) = &record.what else { continue };
        match (mark.name, frozen, thawed) {
            ("frozen", ..) => (frozen, thawed) = (Some((record.at, record.host)), None),
            ("thawed", Some((at, host)), _) if host != record.host => {
                silent.push(record.at.since(at));
                thawed = Some((at, record.host));
            }
            ("first_byte", _, Some((at, host))) if host == record.host => {
                deaf.push(record.at.since(at));
                thawed = None;
            }
            _ => {}
        }
    }
    (silent, deaf)
}

impl Verdict {
    /// Returns the result as text, for a manual run.
    pub(crate) fn text(&self, backend: &str) -> String {
        let mut text = format!("{backend}: {} moves, {} attempts, ", self.silent.len(), self.attempts);
        let _ = writeln!(text, "{} times with bytes in every queue", self.full);
        for (name, times) in [("freeze to thaw", &self.silent), ("freeze to the first byte", &self.deaf)] {
            let mut sorted = times.clone();
            sorted.sort_unstable();
            let ms = |at: usize| sorted.get(at).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3);
            let (median, max) = (ms(sorted.len() / 2), ms(sorted.len().saturating_sub(1)));
            let times = sorted.len();
            let _ = writeln!(text, "  {name}, {times} times: median {median:.3} ms, max {max:.3} ms");
        }
        for (name, (bytes, sum)) in [("up", &self.up), ("down", &self.down)] {
            let _ = writeln!(text, "  {name}: {bytes} bytes, SHA-256 {sum} at both ends");
        }
        text
    }
}
