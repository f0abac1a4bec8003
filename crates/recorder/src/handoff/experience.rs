//! Types for the cost of a handoff or a hole.

use crate::flow::PacketEvent;
use node::Stage;
use trace::HostId;
use wire::{Duration, Instant};

/// One move of a mobile host from a station to another, and the cost for each flow of the host.
#[derive(Clone, PartialEq, Debug)]
pub struct Handoff {
    /// The mobile host that moved.
    pub host: HostId,
    /// The kind of the handoff, as the protocol names it, for example `hard` or `semisoft`.
    pub kind: String,
    /// The name of the station that the host left.
    pub from: String,
    /// The name of the station to which the host moved, or was to move.
    pub to: String,
    /// Whether the host did not reach `to`. Then `latency` and `round_trip` are `None`.
    pub failed: bool,
    /// When the handoff was decided, or when the path was cut if the cut was earlier.
    pub begun: Instant,
    /// When the path was cut: the link was lost, the radio started to tune to the new cell, or the host decided to
    /// switch to another usable path.
    pub cut: Instant,
    /// The cost for each flow from or to the host; empty if no flow existed at the cut.
    pub flows: Vec<FlowCost>,
    /// The time from the cut until the node that switches the path has the new path, plus the delay of one packet
    /// from this node to the host. `None` if it was not measured. `docs/glossary.md` defines the node for each
    /// protocol; it may be a correspondent with a binding cache.
    pub latency: Option<Duration>,
    /// The time of the host's signalling to the node that changed the host's mapping (for example the crossover), plus
    /// the delay of one packet with data from this node to the host. `None` if it was not measured.
    pub round_trip: Option<Duration>,
    /// The code and its meaning of the last denied registration (Mobile IP), for example `129 (home agent:
    /// prohibited)`. `None` if none was denied until the host's next handoff, or if a later one was accepted.
    pub denied: Option<String>,
}

/// The cost of a handoff for one flow: its outage and recovery, and the lost and duplicated packets.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowCost {
    /// The flow's index in [`crate::run::Outcome::flows`].
    pub flow: usize,
    /// The effect on the receiving application.
    pub experience: Experience,
    /// When the flow again had half of the goodput that it had in the second before the cut.
    pub recovery: Recovery,
    /// Packets with data of which no copy arrived (datagrams at the application, segments at the host's stack). A
    /// packet counts if it was lost between the decision to move and the decision for the host's next handoff, and
    /// was not sent after the recovery. Without a recovery, the limit is the end of the outage. If the outage did not
    /// end, there is no limit. If the home agent cuts the path, a packet counts from the cut on, or from the last
    /// arrival before it if there was an outage. Packets of an idle flow that were sent after the handoff do not
    /// count. Packets that were sent after the cut, or lost before it, do not count if they were lost in a hole.
    pub(crate) losses: Vec<PacketEvent>,
    /// The number of copies that arrived beyond the first. A copy counts if it arrived between the decision to move and
    /// the decision for the host's next handoff, and was not sent after the recovery. Without a recovery, the limit is
    /// the end of the outage. If the outage did not end, there is no limit.
    pub duplicates: u64,
    /// The effect and the recovery without the losses; `None` if there are none. They replace the others if all
    /// losses belong to holes or to other handoffs.
    pub(super) lossless: Option<Box<(Experience, Recovery)>>,
}

impl FlowCost {
    /// Keeps the losses for which `is_own` returns true. If none is left, the effect is that of a handoff without
    /// losses.
    pub(super) fn keep(&mut self, is_own: impl Fn(&PacketEvent) -> bool) {
        self.losses.retain(is_own);
        if let Some(lossless) = self.lossless.take_if(|_| self.losses.is_empty()) {
            (self.experience, self.recovery) = *lossless;
        }
    }

    /// Returns the number of lost packets with data that belong to the handoff.
    pub fn lost(&self) -> u64 {
        self.losses.len() as u64
    }
}

/// When a flow again had half of the goodput that it had in the second before the cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovery {
    /// There was no outage, and after the cut the goodput was never less than half of the goodput before the cut.
    Unneeded,
    /// From this instant on, the flow had half of its goodput before the cut over one window (at least one round trip),
    /// or the flow completed, or a connection without data opened. The instant is not before the end of the outage.
    At(Instant),
    /// The flow did not recover before the flow or the run ended.
    Never,
    /// The run ended too early to measure the recovery, or the outage was not measured.
    NotMeasured,
}

impl Recovery {
    /// Returns the instant of [`Self::At`], or `None` for any other value.
    pub const fn at(self) -> Option<Instant> {
        match self {
            Self::At(at) => Some(at),
            _ => None,
        }
    }
}

/// The effect of a handoff or a hole on a receiving application.
#[derive(Clone, PartialEq, Debug)]
pub enum Experience {
    /// No data was lost, and there was no gap.
    None,
    /// The application received no new data for this time.
    Outage(Outage),
    /// The application received nothing new until the flow or the run ended, and the flow was not complete.
    Never {
        /// The instant of the cut, or the begin of the hole.
        from: Instant,
    },
    /// The flow was idle when the path was cut, no data became due until the handoff had ended, or the run ended
    /// before the sender had to retransmit.
    NotMeasured,
}

impl Experience {
    /// Returns the outage; `None` if there was none, if it did not end, or if it was not measured.
    pub const fn outage(&self) -> Option<&Outage> {
        match self {
            Self::Outage(outage) => Some(outage),
            _ => None,
        }
    }

    /// Returns the time without new data in milliseconds: 0 if there was no gap, infinity if no new data arrived.
    /// Returns `None` if the time was not measured.
    pub fn millis(&self) -> Option<f64> {
        match self {
            Self::None => Some(0.0),
            Self::Outage(outage) => Some(outage.span().as_secs_f64() * 1e3),
            Self::Never { .. } => Some(f64::INFINITY),
            Self::NotMeasured => None,
        }
    }
}

impl Handoff {
    /// Returns the cost for the flow with the longest outage, or for the first of several such flows. Returns `None` if
    /// no flow was measured.
    pub fn worst(&self) -> Option<&FlowCost> {
        let measured = self.flows.iter().filter_map(|cost| Some((cost, cost.experience.millis()?)));
        let worse = |one: (&'_ FlowCost, f64), other: (&'_ FlowCost, f64)| other.1 > one.1;
        let worst = measured.reduce(|one, other| if worse(one, other) { other } else { one });
        worst.map(|(cost, _)| cost)
    }

    /// Returns the longest outage of a flow. Returns `None` if no flow had an outage, if an outage did not end, or if
    /// no flow was measured.
    pub fn outage(&self) -> Option<&Outage> {
        self.worst()?.experience.outage()
    }

    /// Returns whether at least one flow received no new data after the cut, although data were due.
    pub fn is_never(&self) -> bool {
        self.flows.iter().any(|cost| matches!(cost.experience, Experience::Never { .. }))
    }

    /// Returns the longest outage of a flow in milliseconds: 0 if no flow had an outage, infinity if an outage did not
    /// end. Returns `None` if no flow was measured.
    pub fn outage_ms(&self) -> Option<f64> {
        self.worst()?.experience.millis()
    }

    /// Returns whether the effect on at least one flow was measured.
    pub fn is_measured(&self) -> bool {
        self.flows.iter().any(|cost| !matches!(cost.experience, Experience::NotMeasured))
    }

    /// Returns the number of lost packets with data, of all flows.
    pub fn lost(&self) -> u64 {
        self.flows.iter().map(FlowCost::lost).sum()
    }

    /// Returns the number of copies that arrived beyond the first, of all flows.
    pub fn duplicates(&self) -> u64 {
        self.flows.iter().map(|cost| cost.duplicates).sum()
    }
}

/// A time in which an application received no new data.
#[derive(Clone, PartialEq, Debug)]
pub struct Outage {
    /// The instant of the cut, or the begin of the hole.
    pub from: Instant,
    /// The next arrival of new data at the application, or the instant at which a connection without data opened. An
    /// outage also ends when the source pauses, and a hole when a handoff begins.
    pub to: Instant,
    /// Since when data were due without a pause: `from`, or later if the source sent nothing at `from`. The longest
    /// stall of the flow is not shorter than the time from `due` to `to`.
    pub due: Instant,
    /// The parts of the outage, each with its cause, in the order of time and without overlap.
    pub owners: Vec<Owner>,
}

/// A part of an outage, and its cause.
#[derive(Clone, PartialEq, Debug)]
pub struct Owner {
    /// The cause; `None` if the part is unexplained.
    pub stage: Option<Stage>,
    /// When this part begins.
    pub from: Instant,
    /// When this part ends.
    pub to: Instant,
    /// The name of the event with which the part begins; empty if the part is unexplained.
    pub begins: String,
    /// The name of the event with which the part ends; empty if the part is unexplained.
    pub ends: String,
    /// The hosts of the events `begins` and `ends`; `None` if the part is unexplained.
    pub hosts: Option<(HostId, HostId)>,
}

impl Owner {
    /// Returns the cause by its name in reports, for example `registration`; `unexplained` if there is no cause.
    pub fn name(&self) -> &'static str {
        self.stage.map_or("unexplained", Stage::name)
    }

    /// Returns the time from `from` to `to`.
    pub fn span(&self) -> Duration {
        self.to.since(self.from)
    }
}

impl Outage {
    /// Returns the time from `from` to `to`.
    pub fn span(&self) -> Duration {
        self.to.since(self.from)
    }

    /// Returns the total duration of the unexplained parts.
    pub fn unexplained(&self) -> Duration {
        self.owners.iter().filter(|owner| owner.stage.is_none()).map(Owner::span).sum()
    }

    /// Returns whether at most 5 % of the outage are unexplained. Otherwise the run has a doubt.
    pub fn is_explained(&self) -> bool {
        self.unexplained() * 20 <= self.span()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::PacketId;

    /// The only loss of a handoff belongs to a hole. So the handoff did not interrupt the flow.
    #[test]
    fn a_handoff_that_keeps_no_loss_has_the_effect_of_one_without_losses() {
        let at = Instant::from_millis(1_200);
        let lost = PacketEvent { at, packet: PacketId(1), sent: at, recorded: at };
        let cost = FlowCost {
            flow: 0,
            experience: Experience::Never { from: at },
            recovery: Recovery::Never,
            losses: vec![lost],
            duplicates: 0,
            lossless: Some(Box::new((Experience::None, Recovery::Unneeded))),
        };
        let after = |is_kept: bool| {
            let mut cost = cost.clone();
            cost.keep(|_| is_kept);
            (cost.experience, cost.recovery)
        };
        assert_eq!(after(true), (Experience::Never { from: at }, Recovery::Never));
        assert_eq!(after(false), (Experience::None, Recovery::Unneeded));
    }
}
