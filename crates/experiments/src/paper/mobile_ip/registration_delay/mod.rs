//! `mobile-ip/registration-delay`: the requests that a registration needs over a satellite link, against the delay of the link.
//!
//! Each request has a new timestamp, and a reply counts only for the last request. So a mobile node whose first time-out is
//! shorter than the round trip sends requests until its time-out has doubled often enough.

mod measure;
mod points;
#[cfg(test)]
mod tests;

use crate::drawn::style;
use crate::reproduce::figure::{Drawn, draw_at, line};
use crate::reproduce::{Check, Experiment, Kind, Metric, MustHold, Point, Report, Results, SIM};
use draw::{Axis, PointFigure, Series};
use points::{DELAY, FIRST, KNOWN, UNKNOWN, WINDOW_S};

const SUCCESS: &str = "success";
const RETRANSMISSIONS: &str = "retransmissions";
const TIME: &str = "registration_s";
const DENIALS: &str = "denials";

pub(in crate::paper) const EXPERIMENT: Experiment = Experiment {
    id: "mobile-ip/registration-delay",
    about: "the requests of a registration over a satellite, as a function of the link's delay and of the first time-out",
    paper: "Johnson and Bennington 2000",
    source: "Johnson, Bennington: Mobile Internet Protocol Performance and Enhancements over ACTS, section 3, which names both effects \
             without a number",
    notes: &[
        "Scenario: a foreign agent and a home agent, joined by a link with this delay each way. The mobile node starts in the\n  \
         foreign network. success: the share of the runs in which a registration is accepted. retransmissions: requests after\n  \
         the first. registration: from the first request to the accepted reply; no value without success. denials: replies with\n  \
         a code that the mobile node accepted. A reply that comes after the next request is stale, and does not count.",
        "1 s: the mobile node does not know the round trip, so its first time-out is 1 s (RFC 5944, section 3.6.3). The wait doubles\n  \
         with each request. 2 RTT + 100 ms: it knows the round trip (key `expected_round_trip`).",
        "The replay window is 7 s: the home agent denies a request whose timestamp is older (code 133). The mobile node then sets\n  \
         its clock by the reply, which is as old as the request was. So a delay beyond the window fails for ever.",
        "The foreign agent waits for a reply for 20 s (our choice); its default is 7 s (RFC 5944, section 3.7.1). Rows with 7 s show\n  \
         that the default ends each registration whose round trip is longer.",
        "Variations: half and double the replay window; nonces, with which a repetition has the same bytes; and lost\n  \
         packets on the link, with n runs of separate random numbers. The other points have no random event, so all of their\n  \
         runs are equal.",
    ],
    backends: SIM,
    metrics: &[
        Metric::mean(SUCCESS, 2),
        Metric::mean(RETRANSMISSIONS, 2),
        Metric::median(TIME, 3),
        Metric::mean(DENIALS, 2).beside(),
    ],
    points: points::points,
    must_hold: MUST_HOLD,
    observed: OBSERVED,
    figures,
};

// --- what must hold ------------------------------------------------------------------------------------------------

/// The mobile node does not know the round trip.
const UNKNOWN_ROUND_TRIP: &[&str] = &["mobile-node.expected_round_trip=0s"];
/// The mobile node expects a round trip that is longer than each one here.
const LONG_ROUND_TRIP: &[&str] = &["mobile-node.expected_round_trip=20s"];
/// The foreign agent waits for less than most round trips.
const SHORT_WAIT: &[&str] = &["foreign-agent.pending_timeout=1s"];
/// The home agent accepts timestamps of 3.5 s at most.
const SHORT_WINDOW: &[&str] = &["home-agent.replay_window=3500ms"];
/// The home agent accepts timestamps of 10 s.
const LONG_WINDOW: &[&str] = &["home-agent.replay_window=10s"];

const MUST_HOLD: &[MustHold] = &[
    MustHold {
        text: "2 RTT + 100 ms: below the replay window, each registration is accepted without a retransmission",
        value: "runs that failed, or needed a retransmission",
        backends: SIM,
        needs: |point| is_main(point, KNOWN) && is_below_window(point),
        check: |results| {
            let wanted = |point: &Point| is_main(point, KNOWN) && is_below_window(point);
            let runs = results.values(wanted, SUCCESS).zip(results.values(wanted, RETRANSMISSIONS));
            Check::each(runs.map(|(success, again)| success > 0.5 && again < 0.5))
        },
        breakers: &[UNKNOWN_ROUND_TRIP, SHORT_WAIT, SHORT_WINDOW],
    },
    MustHold {
        text: "1 s: below the replay window, a registration needs a request for each doubling of 1 s until the wait exceeds the round trip",
        value: "runs with another number of retransmissions",
        backends: SIM,
        needs: |point| is_main(point, UNKNOWN) && is_below_window(point),
        check: |results| {
            let rows = results.rows(|point| is_main(point, UNKNOWN) && is_below_window(point));
            let runs = rows.flat_map(|(point, measured)| {
                let expected = point.formula.iter().find(|(metric, _)| *metric == RETRANSMISSIONS);
                let counted = measured.samples.get(RETRANSMISSIONS).into_iter().flatten();
                counted.map(move |counted| {
                    expected.is_some_and(|(_, expected)| (counted - expected).abs() < 0.5)
                })
            });
            Check::each(runs)
        },
        breakers: &[LONG_ROUND_TRIP],
    },
    MustHold {
        text: "beyond the replay window, no registration is accepted, with either first time-out",
        value: "accepted registrations",
        backends: SIM,
        needs: |point| point.kind == Kind::Main && !is_below_window(point),
        check: |results| {
            let wanted = |point: &Point| point.kind == Kind::Main && !is_below_window(point);
            Check::each(results.values(wanted, SUCCESS).map(|success| success < 0.5))
        },
        breakers: &[LONG_WINDOW],
    },
];

const OBSERVED: &[MustHold] = &[MustHold {
    text: "1 s: below the replay window, each registration is accepted in the end",
    value: "runs that failed",
    backends: SIM,
    needs: |point| is_main(point, UNKNOWN) && is_below_window(point),
    check: |results| {
        let wanted = |point: &Point| is_main(point, UNKNOWN) && is_below_window(point);
        Check::each(results.values(wanted, SUCCESS).map(|success| success > 0.5))
    },
    breakers: &[],
}];

fn is_main(point: &Point, first: &'static str) -> bool {
    point.kind == Kind::Main && point.has(FIRST, first)
}

fn is_below_window(point: &Point) -> bool {
    point.number(DELAY).is_some_and(|delay| delay < WINDOW_S)
}

// --- the figures ---------------------------------------------------------------------------------------------------

/// Returns two figures: the retransmissions, and the time of the registration, against the delay.
fn figures(report: &Report) -> Vec<Drawn> {
    let figure = |title: &str, y: Axis, metric: &'static str| {
        Drawn::Points(PointFigure {
            title: format!("Mobile IP: {title}"),
            x: Axis::new("delay of the satellite link, each way", "s"),
            y,
            series: [UNKNOWN, KNOWN].into_iter().flat_map(|first| drawn(report, first, metric)).collect(),
            caption: format!(
                "First time-out of the mobile node: 1 s, or twice the round trip and 100 ms. Replay window: {WINDOW_S} s; beyond it, \
                 the home agent denies each request, and these delays have no point. Scale {}.",
                report.scale.name()
            ),
        })
    };
    vec![
        figure(
            "retransmissions of a registration over a satellite",
            Axis::new("retransmissions", ""),
            RETRANSMISSIONS,
        ),
        figure(
            "time of a registration over a satellite",
            Axis::new("time from the first request to the reply", "s"),
            TIME,
        ),
    ]
}

/// Returns a metric of the accepted registrations against the delay.
fn drawn(report: &Report, first: &'static str, metric: &'static str) -> Vec<Series> {
    let of = |results: &Results| {
        let rows = results.rows(|point| is_main(point, first) && is_below_window(point));
        let points = rows.filter_map(|(point, measured)| {
            Some(draw_at(point.number(DELAY)?, measured.mean(metric)?, None))
        });
        line(first, style(results.backend), points)
    };
    report.backends.iter().map(of).collect()
}
