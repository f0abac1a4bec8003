//! `sigma/handoff`: the gap in a download while a mobile node's association changes its address, compared with Mobile
//! IP between the same cells.
//!
//! The new address is known and verified while the old one still carries data. So the gap is the time between two
//! packets, plus the additional delay of the new path. A Mobile IP mobile node first has to detect that it moved.

mod measure;
mod points;

use crate::reproduce::figure::{Drawn, samples};
use crate::reproduce::{BOTH, Check, Experiment, Kind, Metric, MustHold, Point, Report, Results, SIM};
use draw::{Axis, DistributionFigure, DistributionPanel};
use measure::EMPTY;
use wire::Ipv4Addr;

const GAP: &str = "gap_ms";
const BEFORE: &str = "goodput_before_mbps";
const AFTER: &str = "goodput_after_mbps";
const AMISS: &str = "bytes_amiss";
const STALL: &str = "longest_stall_ms";
const ADD: &str = "add_round_trip_ms";
const PROOF: &str = "proof_ms";
const PRIMARY: &str = "primary_to_packet_ms";
const SPURIOUS: &str = "spurious_resent";
const UNPROVED: &str = "sent_before_proof";

const SIGMA: &str = "SIGMA";
const MOBILE_IP: &str = "Mobile IP";

/// The old and the new address of the mobile node (table I of the paper).
const OLD: Ipv4Addr = Ipv4Addr::new(10, 1, 8, 100);
const NEW: Ipv4Addr = Ipv4Addr::new(10, 1, 6, 100);

/// The transmission time of a packet of 1500 bytes with its link header in a cell of 2.6 Mb/s, in milliseconds.
const PACKET_MS: f64 = 1514.0 * 8.0 / 2600.0;
/// The round trip over two wires of 0.5 ms each, in milliseconds.
const LINK_RTT_MS: f64 = 2.0;
const MOST_MS: f64 = 2.0 * PACKET_MS + LINK_RTT_MS;
/// The permitted stall with losses, in milliseconds: longer than three retransmission time-outs in a row, of 200, 400
/// and 800 ms.
const LONG_STALL_MS: f64 = 2000.0;

pub(in crate::paper) const EXPERIMENT: Experiment = Experiment {
    id: "sigma/handoff",
    about: "the gap in a download while the mobile node changes its address: SIGMA compared with Mobile IP",
    paper: "Sivagurunathan et al. 2004",
    source: "Sivagurunathan et al. 2004 (TR-OU-TNRL-04-105), figures 4 to 7; one run of each protocol",
    notes: &[
        "Scenario: 2 MB from the correspondent, cells 2.6 Mb/s, wires 0.5 ms, window 16 KiB, smallest RTO 200 ms (our choice).\n  \
         Each run has one move, and a separate phase within 1 s for the start of the download and for the move. SIGMA has two\n  \
         radios, and moves by signal strength (hold 250 ms, our choice). Mobile IP has one radio with a retune of 5 ms.",
        "gap: until the first data packet by the new path after the move. It begins with the last data packet by the old path\n  \
         before that packet (SIGMA), or with the last data packet before the move (Mobile IP). SIGMA knows the new address before\n  \
         the move, so its gap is the time between two packets: 4.7 ms at the cells' rate, and less if both radios receive.",
        "add_round_trip: from ASCONF with ADD to its acknowledgment. proof: from the first HEARTBEAT that is sent to the new\n  \
         address until the first HEARTBEAT ACK from this address.",
        "primary_to_packet: from the decision to move (SET PRIMARY) to the first data packet by the new path. spurious_resent:\n  \
         retransmissions of data chunks of which an earlier copy arrived.",
        "sent_before_proof: packets with data to the new address before the proof (RFC 9260, section 5.4, allows none).",
        "empty_bins: intervals of 100 ms in which the application read nothing. bytes_amiss: bytes that the application did not\n  \
         receive correctly: all bytes after the first wrong byte, and missing or additional bytes.",
        "Goodput: in the second before the last data packet by the old path, and in the second after the first one by the new\n  \
         path.",
        "overlap: from the second cell at -80 dBm to the first cell at -88 dBm, 4.4 s. speed: signals rise or fall between -96\n  \
         and -50 dBm in 5 s.",
        "Cell lost: 4 MB; the first cell disappears at once, 0 or 1 s after the host receives the second, weaker cell. Lost:\n  \
         the share of all frames in both cells. Cross traffic: a neighbor in each cell receives 0.8 Mb/s. Correspondent\n  \
         receives: 2 MB from the mobile node.",
        "Mobile IP: the mobile node registers again only when the lifetime of 10 s ends, as the paper says of Dynamics; no link\n  \
         trigger. The move is spread over the lifetime, and the download is longer. sigma/mobile-ip has the terms of its gap.",
    ],
    backends: BOTH,
    metrics: &[
        Metric::mean(GAP, 2),
        Metric::mean(BEFORE, 3),
        Metric::mean(AFTER, 3),
        Metric::median(ADD, 2).beside(),
        Metric::median(PROOF, 2).beside(),
        Metric::median(PRIMARY, 2).beside(),
        Metric::mean(SPURIOUS, 2).beside(),
        Metric::mean(UNPROVED, 2).beside(),
        Metric::mean(STALL, 1).beside(),
        Metric::mean(EMPTY, 2).beside(),
        Metric::mean(AMISS, 0).beside(),
    ],
    points: points::points,
    must_hold: MUST_HOLD,
    observed: OBSERVED,
    figures,
};

// --- what must hold ------------------------------------------------------------------------------------------------

/// A host with a single radio leaves its cell later than a host with two radios moves. So the download has to be
/// longer.
const DOWNLOAD: &str = "bulk-server.bytes=2200000";
/// One radio has both addresses: nothing can be prepared, and the old path is lost before the new one exists.
const ONE_RADIO: &[&str] = &["host.mobile.radios=1", DOWNLOAD];
/// One radio has both addresses, and its retune time leaves at least one bin of 100 ms empty.
const ONE_SLOW_RADIO: &[&str] = &["host.mobile.radios=1", "radio.retune=300ms", DOWNLOAD];
/// One radio has both addresses, and its retune time is a good part of Mobile IP's gap.
const ONE_VERY_SLOW_RADIO: &[&str] = &["host.mobile.radios=1", "radio.retune=2s", DOWNLOAD];
/// The mobile node never has an address in the second network, and the first cell is out of range before the download
/// ends.
const ONE_ADDRESS: &[&str] = &[
    "mobile-node.addresses=[\"10.1.8.100\"]",
    "host.mobile.course.1=[[\"0s\", -50], [\"3s\", -50], [\"7s\", -96]]",
];

/// The new cell is faster, and the download is larger.
const FAST_CELL: &[&str] = &["cell.2.rate=5Mb/s", "bulk-server.bytes=4000000"];

const MUST_HOLD: &[MustHold] = &[
    MustHold {
        text: "SIGMA, at every overlap and speed: gap <= 2 packet times + link RTT (11.3 ms) in every run",
        value: "the longest gap, ms",
        backends: BOTH,
        needs: is_smooth,
        check: |results| Check::within(worst(results, is_smooth, GAP), ..=MOST_MS),
        breakers: &[ONE_RADIO],
    },
    MustHold {
        text: "SIGMA, at every overlap and speed: no 100 ms bin without goodput in any run",
        value: "the largest number of 100 ms bins without goodput in a run",
        backends: BOTH,
        needs: is_smooth,
        check: |results| Check::within(worst(results, is_smooth, EMPTY), ..=0.0),
        breakers: &[ONE_SLOW_RADIO],
    },
    MustHold {
        text: "SIGMA, at every overlap and speed: 0 bytes lost, duplicated or reordered to the application in every run",
        value: "the largest number of lost, duplicated or reordered bytes in a run",
        backends: BOTH,
        needs: is_smooth,
        check: |results| Check::within(worst(results, is_smooth, AMISS), ..=0.0),
        breakers: &[ONE_ADDRESS],
    },
    MustHold {
        text: "between the same cells, the mean gap of Mobile IP is at least 20 times the mean gap of SIGMA",
        value: "Mobile IP's gap / SIGMA's gap",
        backends: BOTH,
        needs: is_main,
        check: ratio,
        breakers: &[ONE_VERY_SLOW_RADIO],
    },
    MustHold {
        text: points::RATIO,
        value: "after / before",
        backends: BOTH,
        needs: |point| point.label == MOBILE_IP,
        check: |results| {
            let mean = |metric| results.named(MOBILE_IP)?.mean(metric).filter(|mbps| *mbps > 0.0);
            Check::within(mean(AFTER).zip(mean(BEFORE)).map(|(after, before)| after / before), ..=1.01)
        },
        breakers: &[FAST_CELL],
    },
];

/// Properties beyond the paper that users will ask about: losses, other hosts in the cells, and uploads.
const OBSERVED: &[MustHold] = &[
    MustHold {
        text: "SIGMA, frames or the first cell lost: 0 bytes lost, duplicated or reordered to the application in every run of 60 s",
        value: "the largest number of lost, duplicated or reordered bytes in a run",
        backends: SIM,
        needs: is_hard,
        check: |results| Check::within(worst(results, is_hard, AMISS), ..=0.0),
        breakers: &[],
    },
    MustHold {
        text: "SIGMA, frames or the first cell lost: the application waits for at most 2 s in every run",
        value: "the longest wait, ms",
        backends: SIM,
        needs: is_hard,
        check: |results| Check::within(worst(results, is_hard, STALL), ..=LONG_STALL_MS),
        breakers: &[],
    },
    MustHold {
        text: "SIGMA, at all points: no data to an address that is not proved (RFC 9260, section 5.4)",
        value: "the largest number of packets with data to an unproved address in a run",
        backends: BOTH,
        needs: is_sigma,
        check: |results| Check::within(worst(results, is_sigma, UNPROVED), ..=0.0),
        breakers: &[],
    },
    MustHold {
        text: "SIGMA, rows `cross traffic` and `correspondent receives`: gap <= 11.3 ms in every run",
        value: "the longest gap, ms",
        backends: BOTH,
        needs: is_other_traffic,
        check: |results| Check::within(worst(results, is_other_traffic, GAP), ..=MOST_MS),
        breakers: &[],
    },
    MustHold {
        text: "SIGMA, rows `cross traffic` and `correspondent receives`: 0 bytes lost, duplicated or reordered in every run",
        value: "the largest number of lost, duplicated or reordered bytes in a run",
        backends: BOTH,
        needs: is_other_traffic,
        check: |results| Check::within(worst(results, is_other_traffic, AMISS), ..=0.0),
        breakers: &[],
    },
];

fn is_main(point: &Point) -> bool {
    point.kind == Kind::Main
}

fn is_sigma(point: &Point) -> bool {
    point.has("protocol", SIGMA)
}

fn is_lossy(point: &Point) -> bool {
    point.number(points::LOSS).is_some()
}

fn is_cell_lost(point: &Point) -> bool {
    point.number(points::CELL_LOST).is_some()
}

/// Returns whether frames or the first cell are lost at this point.
fn is_hard(point: &Point) -> bool {
    is_lossy(point) || is_cell_lost(point)
}

fn is_other_traffic(point: &Point) -> bool {
    point.has(points::TRAFFIC, "cross") || point.has(points::TRAFFIC, "upload")
}

/// Returns whether the point is like the paper's, except for the overlap of the cells and the host's speed.
fn is_smooth(point: &Point) -> bool {
    is_sigma(point) && !is_hard(point) && !is_other_traffic(point)
}

fn worst(results: &Results, wanted: fn(&Point) -> bool, metric: &str) -> Option<f64> {
    let samples = results.rows(wanted).filter_map(|(_, measured)| measured.samples.get(metric));
    samples.flatten().copied().max_by(f64::total_cmp)
}

fn ratio(results: &Results) -> Check {
    let mean = |protocol| results.named(protocol)?.mean(GAP).filter(|gap| *gap > 0.0);
    let ratio = mean(MOBILE_IP).zip(mean(SIGMA)).map(|(theirs, ours)| theirs / ours);
    Check::within(ratio, 20.0..)
}

// --- the figure ----------------------------------------------------------------------------------------------------

fn figures(report: &Report) -> Vec<Drawn> {
    let shown = report.points.iter().filter(|point| is_main(point));
    let samples = shown.flat_map(|point| samples(report, point, &point.label, GAP)).collect();
    let panel = DistributionPanel {
        title: String::new(),
        axis: Axis::new("time without data in a move", "ms").in_decades(),
        samples,
    };
    vec![Drawn::Distribution(DistributionFigure {
        title: "SIGMA and Mobile IP: time without data in a move (figures 5 and 7)".to_owned(),
        panels: vec![panel],
        caption: format!(
            "Published: SIGMA 6 ms, Mobile IP 8 s, one run each: {}. Measured: each run at a separate phase, scale {}.",
            report.experiment.source,
            report.scale.name()
        ),
    })]
}
