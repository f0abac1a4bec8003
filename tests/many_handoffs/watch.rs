//! Observes a run without keeping its packets, so that a run of half an hour needs little memory.

use node::{AppChange, AppEvent, HANDOFF, Mark};
use recorder::ledger::{Ledger, Running};
use scenario::{Plan, Scenario, Setting};
use std::collections::BTreeMap;
use trace::{HostId, What, Witness};
use wire::{Duration, Iface, Instant, Packet, PacketId};

/// A datagram of an application.
#[derive(Debug)]
pub(crate) struct Datagram {
    pub(crate) sent: Instant,
    /// When applications received it.
    pub(crate) received: Vec<Instant>,
    /// Why copies of it ended on their way, in the order of time.
    pub(crate) ends: Vec<(Instant, HostId, String)>,
}

/// The ledger of a run, its marks, and what its applications received.
pub(crate) struct Watch {
    books: Running,
    marks: Vec<(Instant, HostId, Mark)>,
    /// When an application received bytes of a stream.
    reads: Vec<(Instant, HostId)>,
    datagrams: BTreeMap<PacketId, Datagram>,
    crashes: usize,
}

impl Witness for Watch {
    fn received(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet) {
        self.books.received(at, host, iface, packet);
    }

    fn sent(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet) {
        self.books.sent(at, host, iface, packet);
    }

    fn happened(&mut self, at: Instant, host: HostId, what: What) {
        match &what {
            What::Marked(mark) => self.marks.push((at, host, mark.clone())),
            What::App(AppEvent { change: AppChange::Read(_), .. }) => self.reads.push((at, host)),
            What::AppSent(packet) => {
                self.datagrams.insert(*packet, Datagram { sent: at, received: Vec::new(), ends: Vec::new() });
            }
            What::AppReceived(packet) => {
                if let Some(datagram) = self.datagrams.get_mut(packet) {
                    datagram.received.push(at);
                }
            }
            What::Dropped(_, packet, why) | What::Lost(_, packet, why) => {
                if let Some(datagram) = self.datagrams.get_mut(packet) {
                    datagram.ends.push((at, host, why.as_ref().to_owned()));
                }
            }
            What::Ordered(event) if event.kind == trace::EventKind::Crash => self.crashes += 1,
            _ => {}
        }
        self.books.happened(at, host, what);
    }

    fn doubled(&mut self, packet: PacketId, more: u8) {
        self.books.doubled(packet, more);
    }

    fn settled(&mut self) {
        self.books.settled();
    }
}

/// A run that has ended.
pub(crate) struct Ended {
    pub(crate) plan: Plan,
    pub(crate) ledger: Ledger,
    pub(crate) marks: Vec<(Instant, HostId, Mark)>,
    reads: Vec<(Instant, HostId)>,
    pub(crate) datagrams: BTreeMap<PacketId, Datagram>,
    pub(crate) crashes: usize,
}

/// Runs a scenario with these settings. The ledger must balance, and no connection may fail.
#[track_caller]
pub(crate) fn run(text: &str, settings: &[String]) -> Ended {
    let settings: Vec<Setting> = settings.iter().map(|setting| setting.parse().unwrap()).collect();
    let plan = Scenario::plan("many-handoffs.toml", text, &settings, 1).unwrap();
    let watch = Watch {
        books: Running::new(&plan),
        marks: Vec::new(),
        reads: Vec::new(),
        datagrams: BTreeMap::new(),
        crashes: 0,
    };
    let run = plan.watched(watch).unwrap().run(plan.end());
    assert!(run.stopped.is_none(), "{:?}", run.stopped);
    let Watch { mut books, marks, reads, datagrams, crashes } = run.records;
    assert_eq!(books.failures(&plan), [""; 0]);
    let ledger = books.close();
    assert!(ledger.balances(), "{:?}", ledger.doubts());
    Ended { plan, ledger, marks, reads, datagrams, crashes }
}

impl Ended {
    pub(crate) fn host(&self, name: &str) -> HostId {
        HostId(self.plan.hosts.iter().position(|host| host.config.name == name).unwrap() as u32)
    }

    /// Returns the times of the marks with this name.
    pub(crate) fn times(&self, name: &str) -> Vec<Instant> {
        self.marks.iter().filter(|(.., mark)| mark.name == name).map(|(at, ..)| *at).collect()
    }

    pub(crate) fn count(&self, name: &str) -> usize {
        self.times(name).len()
    }

    /// Returns the times of all moves.
    pub(crate) fn moves(&self) -> Vec<Instant> {
        self.times(HANDOFF)
    }

    /// Returns for each move the longest time without new data of a stream at this host, of those that end between the move
    /// and the next one, or the end of the run. If no data arrived in between, returns the time from the last data to then.
    pub(crate) fn stalls(&self, host: &str) -> Vec<Duration> {
        let host = self.host(host);
        let reads: Vec<Instant> =
            self.reads.iter().filter(|(_, at)| *at == host).map(|(at, _)| *at).collect();
        let moves = self.moves();
        let ends = moves.iter().skip(1).copied().chain([self.plan.end()]);
        moves.iter().zip(ends).map(|(from, to)| longest(&reads, *from, to)).collect()
    }
}

/// Returns the longest time between two successive instants of which the second is later than `from`, up to `to`.
fn longest(reads: &[Instant], from: Instant, to: Instant) -> Duration {
    let first = reads.partition_point(|at| *at <= from);
    let after = reads.get(first..).unwrap_or_default();
    let before = first.checked_sub(1).and_then(|index| reads.get(index)).copied().unwrap_or(from);
    let within = after.iter().copied().take_while(|at| *at <= to);
    let mut last = before;
    let mut most = Duration::ZERO;
    for at in within {
        most = most.max(at.since(last));
        last = at;
    }
    if last == before { to.since(before) } else { most }
}

/// Returns this quantile of the values, in milliseconds: the smallest value that at least this part of all values do not
/// exceed.
pub(crate) fn quantile_ms(values: &[Duration], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let place = ((sorted.len() as f64 * part).ceil() as usize).clamp(1, sorted.len().max(1)) - 1;
    sorted.get(place).map_or(f64::NAN, |value| value.as_secs_f64() * 1e3)
}

#[test]
fn a_stall_is_the_longest_time_without_data_that_ends_after_the_move() {
    let at = Instant::from_millis;
    let reads = [at(10), at(20), at(120), at(130), at(400)];
    assert_eq!(longest(&reads, at(30), at(300)), Duration::from_millis(100), "it began before the move");
    assert_eq!(longest(&reads, at(125), at(300)), Duration::from_millis(10));
    assert_eq!(longest(&reads, at(140), at(300)), Duration::from_millis(170), "nothing arrived");
    let values: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
    let quantiles = [0.5, 0.99, 1.0].map(|part| quantile_ms(&values, part).round() as u64);
    assert_eq!(quantiles, [100, 198, 200]);
}
