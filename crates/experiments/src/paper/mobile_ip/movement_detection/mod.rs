//! `mobile-ip/movement-detection`: how long a download halts when a mobile node moves to a foreign network, with each
//! policy of movement detection.
//!
//! The policy decides when the handoff is done. The download continues only with the next time-out of its sender, and
//! each time-out is twice the one before. So a handoff that is done 2 s later can cost much more than 2 s.

mod figures;
mod measure;
mod points;

use super::at_random;
use crate::reproduce::{BOTH, Check, Experiment, Kind, Metric, MustHold, Point, Results, SIM};
use crate::stats::median;
use points::{
    APART, BSD, CLASSIC, ECS, FIRST, FITS, LATER, LCS, LINUX, MODERN, NETWORKS, ONE_MORE, OVERLAP, PATH_MTU,
    PM_EAGER, PM_LAZY, POLICY, TCP, TRIGGER,
};

const DONE: &str = "handoff_done_s";
const HALT: &str = "tcp_halt_s";
const TICK: &str = "recovery_tick";
const FIRST_BY_TIME_OUT: &str = "first_by_time_out";
const ON_RESENT: &str = "on_retransmission";
const SINCE_DONE: &str = "recovered_after_handoff_s";
const DOUBLING: &str = "last_interval_ratio";
const LOST: &str = "lost_packets";

pub(in crate::paper) const EXPERIMENT: Experiment = Experiment {
    id: "mobile-ip/movement-detection",
    about: "how long a download halts when a mobile node moves to a foreign network: policies of movement detection",
    paper: "Fikouras et al. 1999",
    source: "Fikouras, El Malki, Cvetkovic, Smythe: Performance Evaluation of TCP over Mobile IP, section IV and figure 4; one run of \
             each policy",
    notes: &[
        "Scenario: Ethernet of 10 Mb/s (the paper does not give the rate), delay 1 ms for each link, window 32 KiB, an\n  \
         advertisement each second with a lifetime of 3 s. The mobile node is at home, then its cable is in the foreign network\n  \
         after 5 ms. Each run has a separate phase of the move against the advertisements, and of the sender's clock.",
        "handoff_done: from the move until the home agent has the new binding; networks that overlap: from the instant at\n  \
         which the foreign network is in reach. tcp_halt: from the last new data before the move to the first new data after it.",
        "recovery_tick: the number of time-outs of the sender during the halt; the last of them ends it. 0: the halt ended without\n  \
         a time-out. on_retransmission: 1 if the first new data came in a segment that had been sent before.",
        "4.4BSD: time-outs in ticks of 500 ms, and a first time-out of 1 s at least. Linux: recovery by RACK, without tail loss\n  \
         probes and F-RTO. RTO 1.75 s: as Linux, with this smallest time-out.",
        "classic: after an ICMP error about the path MTU, the sender waits for its next time-out. modern: it sends smaller\n  \
         segments at once. path MTU fits: the tunnel carries packets of 1500 bytes, so there is no such error.",
        "first_by_time_out: 1 if a time-out sends the first packet with data after the handoff. Otherwise the mobile node sent\n  \
         a delayed acknowledgment (at most 200 ms old) from the foreign network, and the sender answered with new data. This new\n  \
         packet then meets the smaller path MTU, so the classic reaction costs no further time-out. So a must-hold about\n  \
         every run is false, and it is required only of runs whose first packet is sent by a time-out.",
        "Two readings of the published times, of which neither is claimed. (a) 4.4BSD classic: the packet that is lost because\n  \
         of the path MTU moves each recovery to the next time-out. (b) RTO 1.75 s: the published times differ by 7.0 s, which\n  \
         is four times 1.75 s; with time-outs of 1.75, 3.5 and 7 s, halts take 5.25 and 12.25 s (column formula).",
        "A first time-out that is later than the handoffs of both policies hides the difference: then both halts end by the\n  \
         same time-out (rows `tick 1 s` and `RTO 3.5 s`).",
        "The paper's ECS handoffs are done 3 s earlier than those of LCS. Here: LCS waits for the end of the lifetime of\n  \
         the home agent's advertisement (2 to 3 s), and then takes the foreign agent that it heard before; ECS waits for an advertisement (0 to 1 s).\n  \
         So the mean difference is 2 s. It is 2.5 s if a mobile node forgets what it ignored, and waits for one more\n  \
         advertisement.",
        "Networks overlap for 2 s: two cells of 2 Mb/s on one channel, so the radio receives both. lost_packets: packets with\n  \
         data of which no copy arrived. PM lazy turns to another subnet only when a registration is renewed or ends.",
    ],
    backends: BOTH,
    metrics: &[
        Metric::median(HALT, 2),
        Metric::mean(DONE, 3),
        Metric::mean(TICK, 2),
        Metric::mean(FIRST_BY_TIME_OUT, 2).beside(),
        Metric::mean(ON_RESENT, 2).beside(),
        Metric::median(SINCE_DONE, 2).beside(),
        Metric::median(DOUBLING, 2).beside(),
        Metric::mean(LOST, 2),
    ],
    points: points::points,
    must_hold: MUST_HOLD,
    observed: OBSERVED,
    figures: figures::figures,
};

// --- what must hold ------------------------------------------------------------------------------------------------

/// The mobile node uses ECS at each point, also at those of LCS.
const ALL_EAGER: &[&str] = &["mobile-node.movement=ecs"];
/// Each sender sends again at once what an ICMP error refuses.
const ALL_MODERN: &[&str] = &["host.correspondent.tcp.too_big=resend-at-once"];
/// The radio receives only the station of its cell, so the networks do not overlap for it.
const ONE_CELL: &[&str] = &["radio.hears=cell"];
/// The mobile node's cable stays in its network, so nothing is lost.
const NO_MOVE: &[&str] = &["roam.moves=[{ at = \"3.5s\", to = \"home\" }]", "radio.retune=0ms"];
/// The mobile node comes home 1.9 s before its registration is to be renewed. PM lazy then turns to the home agent,
/// because it has not heard the foreign agent for half of the agent's lifetime. LCS waits until the agent has expired.
const COMES_HOME: &[&str] = &[
    "roam.start=foreign",
    "roam.moves=[{ at = \"4.5s\", to = \"home\" }]",
    "mobile-node.home_first=false",
    "mobile-node.lifetime=8s",
];

const MUST_HOLD: &[MustHold] = &[
    MustHold {
        text: FIRST,
        value: "the smallest LCS halt - ECS halt of two runs with the same phases, s",
        backends: BOTH,
        needs: is_pair,
        check: |results| {
            let least = least(differences(results, HALT, [LCS, ECS]));
            Check { value: least, holds: least.is_some_and(|least| least > at_random(results)) }
        },
        breakers: &[ALL_EAGER],
    },
    MustHold {
        text: LATER,
        value: "mean LCS - ECS handoff, s",
        backends: BOTH,
        needs: is_pair,
        check: |results| {
            let later = differences(results, DONE, [LCS, ECS]);
            Check::within(crate::stats::mean(&later), 1.5..=3.5)
        },
        breakers: &[ALL_EAGER],
    },
    MustHold {
        text: "networks apart: every recovery falls on a retransmission of the sender, and never before the handoff is done",
        value: "runs whose recovery does not",
        backends: BOTH,
        needs: is_apart,
        check: falls_on_retransmissions,
        breakers: &[NO_MOVE],
    },
    MustHold {
        text: ONE_MORE,
        value: "runs with another number of time-outs",
        backends: SIM,
        needs: |point| is_pair(point) && point.has(TCP, BSD),
        check: |results| one_more(results, true),
        breakers: &[ALL_MODERN],
    },
    MustHold {
        text: "networks overlap: PM eager and ECS lose no packet, and LCS loses packets, in every run",
        value: "the most packets that PM eager or ECS lost - the fewest that LCS lost",
        backends: BOTH,
        needs: |point| point.has(NETWORKS, OVERLAP) && !point.has(POLICY, PM_LAZY),
        check: loses,
        breakers: &[ONE_CELL],
    },
    MustHold {
        text: "networks apart: the handoff of PM lazy is done within 0.2 s of that of LCS, median of the differences",
        value: "the median difference, s",
        backends: BOTH,
        needs: |point| {
            is_apart(point) && point.has(TCP, LINUX) && (point.has(POLICY, LCS) || point.has(POLICY, PM_LAZY))
        },
        check: |results| {
            let apart = differences(results, DONE, [PM_LAZY, LCS]);
            Check::within(median(&apart.iter().map(|apart| apart.abs()).collect::<Vec<_>>()), ..=0.2)
        },
        breakers: &[COMES_HOME],
    },
];

/// Properties that the paper states or that users will ask about, beyond the must-holds.
const OBSERVED: &[MustHold] = &[
    MustHold {
        text: "4.4BSD: the same in every run, also if the first packet after the handoff is no retransmission",
        value: "runs with another number of time-outs",
        backends: SIM,
        needs: |point| is_pair(point) && point.has(TCP, BSD),
        check: |results| one_more(results, false),
        breakers: &[],
    },
    MustHold {
        text: "networks apart, LCS: each time-out is twice the one before, within 10 %, in every run (the last two)",
        value: "the largest relative difference",
        backends: BOTH,
        needs: |point| is_apart(point) && point.has(POLICY, LCS),
        check: |results| {
            let ratios = all(results, |point| is_apart(point) && point.has(POLICY, LCS), DOUBLING);
            Check::within(ratios.map(|ratio| (ratio / 2.0 - 1.0).abs()).max_by(f64::total_cmp), ..=0.1)
        },
        breakers: &[],
    },
    MustHold {
        text: "other rates, windows, ticks and time-outs: ECS recovers before LCS in every run",
        value: "the smallest LCS halt - ECS halt of two runs with the same phases, s",
        backends: SIM,
        needs: |point| point.kind == Kind::Sensitivity,
        check: |results| {
            let halts = of_pairs(results, |point| point.kind == Kind::Sensitivity, HALT, [LCS, ECS]);
            Check::within(least(halts), f64::MIN_POSITIVE..)
        },
        breakers: &[],
    },
    MustHold {
        text: "networks apart: with the link trigger, the handoff is done within 0.2 s in every run",
        value: "the latest handoff, s",
        backends: BOTH,
        needs: |point| point.has(POLICY, TRIGGER),
        check: |results| {
            let done = all(results, |point| point.has(POLICY, TRIGGER), DONE);
            Check::within(done.max_by(f64::total_cmp), ..=0.2)
        },
        breakers: &[],
    },
];

fn is_apart(point: &Point) -> bool {
    point.kind == Kind::Main && point.has(NETWORKS, APART)
}

/// Returns whether the point is one of LCS or ECS with networks apart.
fn is_pair(point: &Point) -> bool {
    is_apart(point) && (point.has(POLICY, LCS) || point.has(POLICY, ECS))
}

fn all<'a>(
    results: &'a Results,
    wanted: impl Fn(&Point) -> bool + 'a,
    metric: &'a str,
) -> impl Iterator<Item = f64> + 'a {
    let samples = results.rows(wanted).filter_map(move |(_, measured)| measured.samples.get(metric));
    samples.flatten().copied()
}

fn least(values: Vec<f64>) -> Option<f64> {
    values.into_iter().min_by(f64::total_cmp)
}

/// Returns the value of the first policy minus that of the second, for each pair of runs with the same phases and the
/// same sender, of the main points with networks apart.
fn differences(results: &Results, metric: &str, policies: [&'static str; 2]) -> Vec<f64> {
    of_pairs(results, is_apart, metric, policies)
}

fn of_pairs(
    results: &Results,
    wanted: fn(&Point) -> bool,
    metric: &str,
    [first, second]: [&'static str; 2],
) -> Vec<f64> {
    let same = |one: &Point, other: &Point| {
        one.setting
            .iter()
            .filter(|(name, _)| *name != POLICY)
            .eq(other.setting.iter().filter(|(name, _)| *name != POLICY))
    };
    let mut all = Vec::new();
    for (point, measured) in results.rows(|point| wanted(point) && point.has(POLICY, first)) {
        let others = results.rows(|other| wanted(other) && other.has(POLICY, second) && same(point, other));
        for (_, other) in others {
            let [one, other] =
                [measured, other].map(|measured| measured.samples.get(metric).into_iter().flatten());
            all.extend(one.zip(other).map(|(one, other)| one - other));
        }
    }
    all
}

fn falls_on_retransmissions(results: &Results) -> Check {
    let on = all(results, is_apart, ON_RESENT);
    let since = all(results, is_apart, SINCE_DONE);
    let runs: Vec<bool> =
        on.zip(since).map(|(on, since)| on >= 1.0 && since >= 0.0 && since.is_finite()).collect();
    let wrong = runs.iter().filter(|right| !**right).count();
    Check { value: Some(wrong as f64), holds: wrong == 0 && !runs.is_empty() }
}

/// Compares the time-outs of 4.4BSD with those of runs of the same phases whose packets fit the path. With `by_time_out`,
/// only runs are compared in which a time-out sends the first packet after the handoff.
fn one_more(results: &Results, by_time_out: bool) -> Check {
    let of = |policy, mtu, metric| {
        let wanted = move |point: &Point| {
            is_apart(point) && point.has(TCP, BSD) && point.has(POLICY, policy) && point.has(PATH_MTU, mtu)
        };
        all(results, wanted, metric).collect::<Vec<f64>>()
    };
    let mut runs = Vec::new();
    for policy in [LCS, ECS] {
        let fits = of(policy, FITS, TICK);
        for (mtu, more) in [(CLASSIC, 1.0), (MODERN, 0.0)] {
            let first = of(policy, mtu, FIRST_BY_TIME_OUT);
            let counted = of(policy, mtu, TICK).into_iter().zip(&fits).zip(first);
            let counted = counted.filter(|(_, first)| !by_time_out || *first > 0.5);
            runs.extend(counted.map(|((ticks, fits), _)| (ticks - fits - more).abs() < 0.5));
        }
    }
    let wrong = runs.iter().filter(|right| !**right).count();
    Check { value: Some(wrong as f64), holds: wrong == 0 && !runs.is_empty() }
}

fn loses(results: &Results) -> Check {
    let of = |policy| {
        all(results, move |point: &Point| point.has(NETWORKS, OVERLAP) && point.has(POLICY, policy), LOST)
    };
    let most = of(ECS).chain(of(PM_EAGER)).max_by(f64::total_cmp);
    let fewest = of(LCS).min_by(f64::total_cmp);
    let holds = most.is_some_and(|most| most < 0.5) && fewest.is_some_and(|fewest| fewest > 0.5);
    Check { value: most.zip(fewest).map(|(most, fewest)| most - fewest), holds }
}

#[cfg(test)]
mod tests;
