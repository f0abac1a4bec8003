//! One run: a plan is executed on a backend, and its records are analysed.

pub use crate::backend::Backend;
use crate::backend::BackendReport;
use crate::decode::Names;
use crate::failure::{self, failures};
use crate::flow::{Flow, Packets, Traffic};
use crate::handoff::{self, Handoff, Hole};
use crate::kept_records::Kept;
use crate::ledger::{self, Ledger, Running};
use scenario::{EPOCH, Plan, ScenarioError};
use std::borrow::Cow;
use trace::{Doubt, Fingerprint, HostId, Record};
use wire::WallTime;

/// A run that has ended: its plan, its records, and the results of their analysis.
#[derive(Debug)]
pub struct Outcome {
    /// The plan that was run.
    pub plan: Plan,
    /// The backend on which the plan was executed.
    pub backend: Backend,
    /// All records, ordered by time.
    pub records: Vec<Record>,
    /// The fingerprint of a simulated run; `None` on Linux.
    pub fingerprint: Option<Fingerprint>,
    /// The counts of all packets; zero if the records of a host are missing.
    pub ledger: Ledger,
    /// The flows, in the order in which they began.
    pub flows: Vec<Flow>,
    /// The packets of each flow, in the order of `flows`.
    pub(crate) packets: Vec<Packets>,
    /// The handoffs of the run, in the order of time.
    pub handoffs: Vec<Handoff>,
    /// The outages that belong to no handoff.
    pub holes: Vec<Hole>,
    /// Failures, each with the name of the flow, application or program: for example a transfer that did not end, a
    /// reset, a program that failed. They are no doubts. If there are failures and no doubts, the exit code is 1.
    pub failures: Vec<String>,
    /// Reasons why the run cannot be trusted; empty if there are none.
    pub doubts: Vec<Doubt>,
    /// The report of the backend; `None` in the simulator.
    pub report: Option<BackendReport>,
}

impl Outcome {
    /// Analyses the records of a run. `records` must be ordered by time.
    pub fn new(plan: Plan, backend: Backend, records: Vec<Record>, fingerprint: Option<Fingerprint>) -> Self {
        let ledger = ledger::close(&plan, &records);
        let traffic = Traffic::new(&plan, &records);
        let mut handoffs = handoff::handoffs(&plan, &records, &traffic);
        let mut doubts = doubts(&ledger);
        let uncut = handoff::uncut(&records).into_iter();
        doubts.extend(uncut.map(|begun| Doubt::Uncut { begun_s: begun.as_secs_f64() }));
        let holes = handoff::holes(&plan, &records, &traffic, &mut handoffs);
        doubts.extend(unexplained(&handoffs, &holes));
        let mut failures = failures(&plan, &traffic, &handoffs, &holes);
        failures.splice(0..0, failure::wrong(&plan, &traffic.flows, &records));
        let Traffic { flows, packets, .. } = traffic;
        Self {
            plan,
            backend,
            records,
            fingerprint,
            ledger,
            flows,
            packets,
            handoffs,
            holes,
            failures,
            doubts,
            report: None,
        }
    }

    /// Adds the report of the backend, and the doubts that the backend found. If the records of a host are missing,
    /// clears all results about packets.
    pub fn set_report(&mut self, report: BackendReport, found: Vec<Doubt>) {
        self.report = Some(report);
        self.withdraw_added(&found);
        self.judge_without_missing_records();
        self.doubts.splice(0..0, found);
    }

    /// Counts vanished copies of the ledger as appeared if the counters of an interface show that these copies were
    /// added at the interface.
    pub(crate) fn withdraw_added(&mut self, found: &[Doubt]) {
        let before = self.ledger.doubts();
        for doubt in found {
            match doubt {
                Doubt::FramesIn { host, interface, came, delivered } if came > delivered => {
                    self.ledger.added(host, interface, came - delivered, true);
                }
                Doubt::FramesOut { host, interface, left, sent } if left > sent => {
                    self.ledger.added(host, interface, left - sent, false);
                }
                _ => {}
            }
        }
        let after = self.ledger.doubts();
        if after != before {
            self.doubts.retain(|doubt| !before.contains(doubt));
            self.doubts.splice(0..0, after);
        }
    }

    /// Clears all results about packets if the records of a host are missing. No packet can be followed through this
    /// host, and the records of the other hosts would name the wrong host as the cause.
    fn judge_without_missing_records(&mut self) {
        if !self.lacks_records() {
            return;
        }
        self.ledger = Ledger::default();
        self.flows.clear();
        self.packets.clear();
        self.handoffs.clear();
        self.holes.clear();
        self.failures.clear();
        self.doubts.clear();
    }

    /// Returns whether the records of a host are missing. Then the run has no tables.
    pub(crate) fn lacks_records(&self) -> bool {
        self.report.as_ref().is_some_and(|report| !report.hosts_without_records.is_empty())
    }

    /// Returns the wall-clock time at which the run began; in the simulator [`EPOCH`].
    pub fn epoch(&self) -> WallTime {
        self.report.as_ref().map_or(EPOCH, |report| report.began)
    }

    /// Returns the plan and the begin of the run, which the text of control messages needs.
    pub fn names(&self) -> Names<'_> {
        Names { plan: &self.plan, epoch: self.epoch() }
    }

    /// Returns a host's name, or `?` for an unknown host.
    pub fn host(&self, host: HostId) -> Cow<'_, str> {
        self.plan.host_name(host)
    }
}

/// The error of [`simulate`]: why there is no run.
#[derive(Debug, thiserror::Error)]
pub enum NotSimulated {
    /// The simulator cannot run the plan, for example because a host runs programs.
    #[error(transparent)]
    OnlyLinux(#[from] ScenarioError),
    /// The records take more memory than a run may use.
    #[error(transparent)]
    TooLarge(ScenarioError),
}

/// The largest size of the records of a run in memory, in bytes.
const MOST_KEPT: usize = 2 << 30;

/// Runs a plan in the simulator.
///
/// # Errors
///
/// Returns an error if a host cannot be built, or if the records take more than 2 GiB.
pub fn simulate(plan: Plan) -> Result<Outcome, NotSimulated> {
    let run = plan.recorded(Kept::new(MOST_KEPT))?.run(plan.end());
    if let Some(at) = run.full {
        return Err(NotSimulated::TooLarge(plan.too_large(at.since(wire::Instant::ZERO), MOST_KEPT)));
    }
    let stopped = run.stopped.map(|stopped| restless(&plan, &stopped));
    let mut outcome = Outcome::new(plan, Backend::Sim, run.records.records, Some(run.fingerprint));
    outcome.doubts.splice(0..0, stopped);
    Ok(outcome)
}

/// Returns the doubt of a simulated run that was stopped because a role requested work without end.
fn restless(plan: &Plan, stopped: &sim::Stopped) -> Doubt {
    let host = plan.host_name(stopped.host).into_owned();
    Doubt::Restless { host, role: stopped.role.to_owned(), at_s: stopped.at.as_secs_f64() }
}

/// The results of a simulated run that kept no records.
#[derive(Debug)]
pub struct Counted {
    /// The fingerprint of the run. It is the same as with records.
    pub fingerprint: Fingerprint,
    /// The number of events that the simulator processed.
    pub events: u64,
    /// The number of frames that were put on links.
    pub hops: u64,
    /// The largest number of packets that were under way at one time.
    pub most_open: usize,
    /// The ledger of packets. It counts drops and has no list of them.
    pub ledger: Ledger,
    /// The failures that are known without records: connections that were refused, reset, unfinished or never opened;
    /// wrong data; `constant-rate` sources to a host that received no datagram; and `constant-rate` sources whose host
    /// goes down for the rest of the run. At most 100 failed connections are named; one more text has the number of the
    /// others. Empty if there are none.
    pub failures: Vec<String>,
    /// Reasons why the run cannot be trusted; empty if there are none.
    pub doubts: Vec<Doubt>,
}

/// Runs `world`, which counts its packets in a [`Running`] ledger. The ledger forgets each packet when it is finalised,
/// so that memory is bounded by the packets under way. Results that need records, such as handoffs, are not available.
pub fn count(world: sim::World<Running>, plan: &Plan) -> Counted {
    let mut run = world.run(plan.end());
    let (hops, most_open) = (run.records.hops(), run.records.most_open());
    let failures = run.records.failures(plan);
    let ledger = run.records.close();
    let mut doubts = doubts(&ledger);
    doubts.splice(0..0, run.stopped.map(|stopped| restless(plan, &stopped)));
    Counted { fingerprint: run.fingerprint, events: run.events, hops, most_open, ledger, failures, doubts }
}

/// Returns a doubt for each outage of a handoff or hole of which more than 5 % are unexplained.
fn unexplained(handoffs: &[Handoff], holes: &[Hole]) -> Vec<Doubt> {
    let of_handoffs = (1..).zip(handoffs).flat_map(|(number, handoff)| {
        handoff.flows.iter().map(move |cost| (Some(number), cost.flow, &cost.experience))
    });
    let all = of_handoffs.chain(holes.iter().map(|hole| (None, hole.flow, &hole.experience)));
    let ms = |span: wire::Duration| span.as_secs_f64() * 1e3;
    all.filter_map(|(handoff, flow, experience)| {
        let outage = experience.outage().filter(|outage| !outage.is_explained())?;
        Some(Doubt::Unexplained {
            handoff,
            flow: flow + 1,
            from_s: outage.from.as_secs_f64(),
            part_ms: ms(outage.unexplained()),
            outage_ms: ms(outage.span()),
        })
    })
    .collect()
}

/// Returns a text for each hole and each outage that is longer than the longest stall of its flow. The outage of a
/// handoff begins with the cut, also if no data are due then, so it counts since data are due. Without an error in
/// the analysis, no text is returned.
pub fn longer_than_stalls(outcome: &Outcome) -> Vec<String> {
    let of_handoffs = (1..).zip(&outcome.handoffs).flat_map(|(number, handoff)| {
        handoff.flows.iter().map(move |cost| (format!("handoff {number}"), cost.flow, &cost.experience))
    });
    let of_holes = outcome.holes.iter().map(|hole| ("a hole".to_owned(), hole.flow, &hole.experience));
    let longer = |(what, flow, experience): (String, usize, &'_ handoff::Experience)| {
        let outage = experience.outage()?;
        let (span, stall) = (outage.to.since(outage.due), outcome.flows.get(flow)?.longest_stall);
        (span > stall).then(|| {
            let [span, stall] = [span, stall].map(|span| span.as_secs_f64() * 1e3);
            let (flow, due) = (flow + 1, outage.due);
            format!("{what}, flow {flow}: no new data for {span:.3} ms from {due} s, but the longest stall is {stall:.3} ms")
        })
    };
    of_handoffs.chain(of_holes).filter_map(longer).collect()
}

fn doubts(ledger: &Ledger) -> Vec<Doubt> {
    let mut doubts = ledger.doubts();
    if doubts.is_empty() && !ledger.balances() {
        doubts.push(Doubt::Unbalanced);
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::Scenario;
    use trace::What;
    use wire::{Iface, Packet, PacketId};

    /// A third party sends frames with a station's link address to a host. The station has sent and lost none of them.
    #[test]
    fn frames_that_counters_say_were_added_are_not_lost_by_a_sender() {
        let (name, text) = Scenario::find("first").unwrap();
        let run = simulate(Scenario::plan(&name, &text, &[], 1).unwrap()).unwrap();
        let mobile = (0..).zip(&run.plan.hosts).find(|(_, host)| host.config.name == "mobile").unwrap().0;
        let (mobile, air) = (HostId(mobile), Iface(1));
        let mut records = run.records.clone();
        let came = records.iter().enumerate().find_map(|(place, record)| match &record.what {
            What::Received(iface, packet) if record.host == mobile && *iface == air => {
                Some((place, packet.clone()))
            }
            _ => None,
        });
        let (place, packet) = came.unwrap();
        let at = records[place].at;
        for number in 0..3 {
            let forged = Packet { id: PacketId(0xf0f0_0000 + number), ..packet.clone() };
            let end = What::Dropped(air, forged.id, "forged".into());
            records.insert(place, Record { at, host: mobile, what: end });
            records.insert(place, Record { at, host: mobile, what: What::Received(air, forged) });
        }
        let mut outcome = Outcome::new(run.plan.clone(), Backend::Linux, records, None);
        let is_lost = |doubt: &Doubt| matches!(doubt, Doubt::Unaccounted { .. });
        let lost = |outcome: &Outcome| outcome.doubts.iter().filter(|doubt| is_lost(doubt)).count();
        assert_eq!((lost(&outcome), outcome.ledger.vanished.len()), (1, 3), "{:?}", outcome.doubts);
        let added = |came| {
            let (host, interface) = ("mobile".to_owned(), run.plan.interface_names(mobile)[0].clone());
            [Doubt::FramesIn { host, interface, came, delivered: 50 }]
        };
        outcome.withdraw_added(&added(49));
        assert_eq!(lost(&outcome), 1, "nothing was added");
        outcome.withdraw_added(&added(52));
        assert_eq!((lost(&outcome), outcome.ledger.vanished.len()), (1, 1), "no more than were added");
        outcome.withdraw_added(&added(51));
        let here = |doubt: &Doubt| matches!(doubt, Doubt::Appeared { place, packets: 3 } if place.starts_with("mobile:"));
        assert!(lost(&outcome) == 0 && outcome.doubts.iter().any(here), "{:?}", outcome.doubts);
        assert!(!outcome.ledger.balances());
    }
}
