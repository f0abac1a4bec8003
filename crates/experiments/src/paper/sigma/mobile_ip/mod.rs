//! `sigma/mobile-ip`: the gap in a download when a mobile node moves and does not register before the lifetime of its
//! registration ends, as Dynamics in the paper.
//!
//! ```text
//!   last packet                                                         first packet
//!   of domain 1   move          lifetime ends   request      reply      of domain 2
//!       |──────────|──────────────────|────────────|───────────|────────────|
//!                   remaining lifetime   advert wait registration  wait for the sender
//! ```
//!
//! The paper has the three terms in the middle. With TCP there is a fourth: the sender is silent until its next
//! retransmission.

mod drawing;
mod measure;
mod points;

pub(super) use points::downloads;

use crate::reproduce::{BOTH, Check, Experiment, Kind, Metric, MustHold, Point, Results, SIM};
use points::{TCP, TRAFFIC};

const GAP: &str = "gap_s";
const BEFORE: &str = "throughput_before_mbps";
const AFTER: &str = "throughput_after_mbps";
const RTT_PEAK: &str = "rtt_peak_s";
const HOME_REGISTRATION: &str = "registration_home_ms";
const REGISTRATION: &str = "registration_ms";
const REMAINING: &str = "remaining_lifetime_s";
const ADVERT_WAIT: &str = "advert_wait_s";
const SENDER_WAIT: &str = "sender_wait_s";
const TERMS_LEFT: &str = "gap_less_terms_ms";
const LEFT: &str = "gap_less_all_ms";
const EMPTY: &str = "zero_throughput_s";

/// The transmission time of a packet of 1500 bytes with its link header in a cell of 2.6 Mb/s, in milliseconds.
const PACKET_MS: f64 = 1514.0 * 8.0 / 2600.0;
/// The permitted difference between the gap and the sum of its terms, in milliseconds.
const REST_MS: f64 = 20.0 + PACKET_MS;
/// The permitted difference between the gap and the bins without throughput, in seconds: an incomplete bin at each end.
const BINS_S: f64 = 0.2;

pub(in crate::paper) const EXPERIMENT: Experiment = Experiment {
    id: "sigma/mobile-ip",
    about: "the gap in a download when a mobile node moves and registers only when its lifetime ends",
    paper: "Sivagurunathan et al. 2004",
    source: "Sivagurunathan et al. 2004 (TR-OU-TNRL-04-105), figures 4 and 5, section IV.A; one run",
    notes: &[
        "Scenario: a download over TCP, cells 2.6 Mb/s, wires 0.5 ms, window 16 KiB, smallest RTO 200 ms, retune 5 ms (our choice).\n  \
         Addresses of table I. One move from the home agent's to the foreign agent's cell in each run, at a separate phase\n  \
         within the lifetime. Lifetime of a registration 10 s, advertisements 1/s (our choice; the paper gives neither).",
        "The mobile node registers again only when the lifetime ends, at home and away, as the paper says of Dynamics. It ignores\n  \
         the advertisements of the foreign agent until then. RFC 5944 has no lifetime at home: the mobile node counts it itself.",
        "gap: from the last data packet by the old cell to the first one by the new cell, at the mobile node. Its terms:\n  \
         remaining_lifetime: from the move to the end of the lifetime. advert_wait: from then to the first request through the\n  \
         foreign agent. registration: from the request to the reply.",
        "advert_wait is 0 if the mobile node has already heard the foreign agent, and no longer hears the home agent. If the home\n  \
         agent's last advertisement has not expired, the mobile node first registers at home without success. So the sum of the first\n  \
         two terms is at least the 2 to 3 s until this advertisement expires.",
        "sender_wait: from the reply to the transmission of the packet that ends the gap. The paper does not have this term. TCP\n  \
         is silent until its next time-out, and its time-outs double: the gap is 0.25, 0.75, 1.8, 3.8, 8 or 16 s. So the\n  \
         published 8 s may be a time-out of TCP. gap_less_terms: the gap without the three terms. gap_less_all: also without\n  \
         sender_wait.",
        "Datagrams: 200 datagrams/s instead of the download. Formula: lifetime / 2 + interval of advertisements / 2, the mean of\n  \
         the paper's terms.",
        "rtt_peak: the longest time from the first transmission of a segment to its acknowledgment. zero_throughput: intervals of\n  \
         100 ms in which the application read nothing. Throughput: in the second before the gap, and in the second from 0.5 s\n  \
         after it.",
        "registration_home: the first registration, before the download. The paper prints 38.3 ms for the registration through the\n  \
         foreign agent, but its times differ by 118.4 ms.",
        "lcs, ecs: other policies of movement detection. Link trigger: ecs, with a report of the link.",
    ],
    backends: BOTH,
    metrics: &[
        Metric::mean(GAP, 3),
        Metric::mean(BEFORE, 3),
        Metric::mean(AFTER, 3),
        Metric::mean(RTT_PEAK, 3),
        Metric::median(HOME_REGISTRATION, 2),
        Metric::median(REGISTRATION, 2),
        Metric::mean(REMAINING, 3),
        Metric::mean(ADVERT_WAIT, 3),
        Metric::mean(SENDER_WAIT, 3).beside(),
        Metric::mean(TERMS_LEFT, 2).beside(),
        Metric::mean(LEFT, 2).beside(),
        Metric::mean(EMPTY, 2).beside(),
    ],
    points: points::points,
    must_hold: MUST_HOLD,
    observed: OBSERVED,
    figures: drawing::figures,
};

// --- what must hold ------------------------------------------------------------------------------------------------

/// The text of the must-hold for the order of the two published registration times.
const SLOWER: &str = "TCP: the registration through the foreign agent takes longer than at home, medians";
/// The text of the must-hold for the ratio of the two published throughputs.
const RATIO: &str =
    "TCP: throughput after the move <= 1.01 times the throughput before it, means over the phases";

/// Four datagrams per second: the gap is longer than its terms by up to two spacings.
const SPARSE: &[&str] = &["constant-rate.rate=4"];
/// A packet needs 60 ms in the new cell.
const SLOW_NEW_CELL: &[&str] = &["cell.2.rate=200kb/s"];
/// A request at home and its reply need more time in their cell than through the foreign agent.
const SLOW_HOME: &[&str] = &["cell.1.rate=100kb/s"];
/// A packet takes 190 ms on the correspondent's wire, so there are bins without throughput before and after the gap.
const SLOW_SERVER: &[&str] = &["wire.server.rate=64kb/s"];
/// The new cell is faster, and the download is larger.
const FAST_CELL: &[&str] = &["cell.2.rate=5Mb/s", "bulk-server.bytes=9000000"];

const MUST_HOLD: &[MustHold] = &[
    MustHold {
        text: "datagrams, at every lifetime: the three terms are the gap within 20 ms + one packet time (24.7 ms) in every run",
        value: "the largest difference, ms",
        backends: BOTH,
        needs: is_datagrams,
        check: |results| Check::within(largest(results, is_datagrams, TERMS_LEFT), ..=REST_MS),
        breakers: &[SPARSE],
    },
    MustHold {
        text: "TCP: the three terms and the wait for the sender are the gap within 24.7 ms in every run",
        value: "the largest difference, ms",
        backends: BOTH,
        needs: is_main,
        check: |results| Check::within(largest(results, is_main, LEFT), ..=REST_MS),
        breakers: &[SLOW_NEW_CELL],
    },
    MustHold {
        text: SLOWER,
        value: "through the foreign agent - at home, ms",
        backends: BOTH,
        needs: is_main,
        check: |results| {
            let median = |metric| {
                let measured = results.named(TCP)?;
                crate::stats::median(measured.samples.get(metric)?)
            };
            let both = median(REGISTRATION).zip(median(HOME_REGISTRATION));
            let more = both.map(|(away, home)| away - home);
            Check { value: more, holds: more.is_some_and(|more| more > 0.0) }
        },
        breakers: &[SLOW_HOME],
    },
    MustHold {
        text: "TCP: the bins of 100 ms without throughput are the gap within 0.2 s in every run",
        value: "the largest difference, s",
        backends: BOTH,
        needs: is_main,
        check: |results| {
            let pairs = results.named(TCP).into_iter().flat_map(|measured| {
                let values = |metric| measured.samples.get(metric).into_iter().flatten();
                values(EMPTY).zip(values(GAP))
            });
            let off = pairs.map(|(empty, gap)| (empty - gap).abs()).max_by(f64::total_cmp);
            Check::within(off, ..=BINS_S)
        },
        breakers: &[SLOW_SERVER],
    },
    MustHold {
        text: RATIO,
        value: "after / before",
        backends: BOTH,
        needs: is_main,
        check: |results| {
            let mean = |metric| results.named(TCP)?.mean(metric).filter(|mbps| *mbps > 0.0);
            Check::within(mean(AFTER).zip(mean(BEFORE)).map(|(after, before)| after / before), ..=1.01)
        },
        breakers: &[FAST_CELL],
    },
];

/// Properties that fail with TCP, or that are beyond the paper.
const OBSERVED: &[MustHold] = &[
    MustHold {
        text: "TCP: the three terms alone are the gap within 24.7 ms in every run (the paper's sum, without the wait for the sender)",
        value: "the largest difference, ms",
        backends: BOTH,
        needs: is_main,
        check: |results| Check::within(largest(results, is_main, TERMS_LEFT), ..=REST_MS),
        breakers: &[],
    },
    MustHold {
        text: "datagrams, lifetimes of 5 to 20 s: the mean gap is lifetime / 2 + advertisement interval / 2 within 20 %",
        value: "mean gap / formula, the farthest from 1",
        backends: SIM,
        needs: is_datagrams,
        check: |results| {
            let ratios = results.rows(is_datagrams).filter_map(|(point, measured)| {
                let (_, formula) = point.formula.first()?;
                Some(measured.mean(GAP)? / formula)
            });
            let farthest = ratios.max_by(|a, b| (a - 1.0).abs().total_cmp(&(b - 1.0).abs()));
            Check::within(farthest, 0.8..=1.2)
        },
        breakers: &[],
    },
    MustHold {
        text: "TCP, mean gaps: link trigger < ecs < lcs < expiry",
        value: "the smallest quotient of two successive means",
        backends: SIM,
        needs: |point| is_main(point) || (point.kind == Kind::Control && !is_datagrams(point)),
        check: |results| {
            let mean = |label: &str| results.named(label)?.mean(GAP);
            let all = ["", ", lcs", ", ecs", ", link trigger"].map(|policy| mean(&format!("{TCP}{policy}")));
            let ratios = all.iter().zip(all.iter().skip(1)).map(|(slow, fast)| Some((*slow)? / (*fast)?));
            let smallest = ratios.collect::<Option<Vec<f64>>>();
            let smallest = smallest.and_then(|all| all.into_iter().min_by(f64::total_cmp));
            Check { value: smallest, holds: smallest.is_some_and(|smallest| smallest > 1.0) }
        },
        breakers: &[],
    },
];

fn is_main(point: &Point) -> bool {
    point.kind == Kind::Main
}

fn is_datagrams(point: &Point) -> bool {
    point.has(TRAFFIC, "datagrams")
}

/// Returns the largest absolute value of a metric in any run of the wanted points.
fn largest(results: &Results, wanted: fn(&Point) -> bool, metric: &str) -> Option<f64> {
    let samples = results.rows(wanted).filter_map(|(_, measured)| measured.samples.get(metric));
    samples.flatten().map(|value| value.abs()).max_by(f64::total_cmp)
}
