//! `mobile-ip/satellite-buffer`: the paper's three open questions about buffers at foreign agents: when packets are kept, how
//! many, and how they are sent.

mod points;

use super::at_random;
use super::satellite::PAPER;
use super::satellite::run::Run;
use crate::drawn::style;
use crate::reproduce::figure::{Drawn, draw_at, line, samples};
use crate::reproduce::{BOTH, Check, Experiment, Kind, Metric, MustHold, Point, Report, Results, Samples};
use crate::stats::{mean, mean_interval};
use draw::{Axis, DistributionFigure, DistributionPanel, PointFigure, Series};
use points::{BED, BEDS, PACKETS};
use recorder::run::{Backend, Outcome};

const HALT: &str = "halt_s";
const STALL: &str = "stall_after_finish_reg_s";
const LOST: &str = "lost_packets";
const KEPT: &str = "kept_packets";
const GOODPUT: &str = "goodput_kbps";

pub(in crate::paper) const EXPERIMENT: Experiment = Experiment {
    id: "mobile-ip/satellite-buffer",
    about: "halt and loss of a download in a smooth handoff, against the number of packets that the old agent keeps",
    paper: PAPER,
    source: "Johnson, Bennington: Mobile Internet Protocol Performance and Enhancements over ACTS, section 5, which names three open questions \
             without a number",
    notes: &[
        "Scenario: as mobile-ip/satellite-single-buffer. across, same side: the moves of that experiment. WLAN: as across, with 1 ms in place of\n  \
         the satellite, and half-duplex cells of 2 Mb/s.",
        "halt: from the last data by the old network to the first ones by the new network. stall_after_finish_reg: from Finish Reg to the first\n  \
         data; 0 if data came before. lost: packets that the correspondent sent before the end of the halt, and that never arrived. kept: packets\n  \
         that the old agent sent to the new one. goodput: new data over the whole download.",
        "All packets of a window are lost before the mobile node notices its move. The last packet that the old agent sends is the last\n  \
         retransmission, so more than one kept packet saves only as many of the lost ones.",
        "link-down: the agents keep packets only while their own link is down. Here the mobile node leaves, and the agent's link stays up. So these\n  \
         rows are those of no buffer.",
        "moves per minute: the mobile node moves between the two networks of B for 30 s; halt and stall are those of its first move.",
    ],
    backends: BOTH,
    metrics: &[
        Metric::mean(HALT, 3),
        Metric::mean(STALL, 3),
        Metric::mean(LOST, 1),
        Metric::mean(KEPT, 2),
        Metric::mean(GOODPUT, 0),
    ],
    points: points::points,
    must_hold: MUST_HOLD,
    observed: OBSERVED,
    figures,
};

// --- what a run shows ----------------------------------------------------------------------------------------------

fn evaluated(outcome: &Outcome) -> Result<Samples, String> {
    let run = Run::of(outcome)?;
    let flow = outcome.flows.iter().max_by_key(|flow| flow.bytes).ok_or("the run has no flow")?;
    Ok(Samples::from([
        (HALT, vec![run.halt_s()]),
        (STALL, vec![run.stall_s()]),
        (LOST, vec![run.lost().len() as f64]),
        (KEPT, vec![run.kept.map_or(0.0, |(_, packets)| packets as f64)]),
        (GOODPUT, vec![flow.goodput() / 1e3]),
    ]))
}

// --- what must hold ------------------------------------------------------------------------------------------------

/// The agents keep packets only while their own link is down, and nothing takes it down.
const KEEPS_NOTHING: &[&str] = &["mobile-ip.buffer={ when = \"link-down\" }"];

const MUST_HOLD: &[MustHold] = &[MustHold {
    text: "1 packet beats 0: in each bed, the mean halt is shorter (Linux: by more than 100 ms)",
    value: "the smallest difference of the means, s",
    backends: BOTH,
    needs: |point| is_main(point) && (has(point, 0) || has(point, 1)),
    check: |results| {
        let shorter = BEDS.iter().map(|bed| {
            let halt = |packets| {
                mean(&results.values(|point| is_of(point, bed.name, packets), HALT).collect::<Vec<_>>())
            };
            Some((halt(0), halt(1)))
        });
        // On Linux, only some beds are measured.
        let measured = shorter.flatten().filter_map(|(none, one)| Some(none? - one?));
        let least = measured.min_by(f64::total_cmp);
        Check { value: least, holds: least.is_some_and(|least| least > at_random(results)) }
    },
    breakers: &[KEEPS_NOTHING],
}];

const OBSERVED: &[MustHold] = &[MustHold {
    text: "the 95 % interval of the mean difference of the halts with 0 and 1 packets is above 0 in each bed",
    value: "the lowest end, s",
    backends: BOTH,
    needs: |point| is_main(point) && (has(point, 0) || has(point, 1)),
    check: |results| {
        let halts = |bed, packets| results.values(move |point| is_of(point, bed, packets), HALT);
        let pairs = |bed: &points::Bed| -> Vec<f64> {
            halts(bed.name, 0).zip(halts(bed.name, 1)).map(|(none, one)| none - one).collect()
        };
        // On Linux, only some beds are measured.
        let all = results.backend == Backend::Sim;
        let measured = BEDS.iter().map(pairs).filter(|pairs| all || !pairs.is_empty());
        let ends: Option<Vec<f64>> = measured.map(|pairs| Some(mean_interval(&pairs)?.lo)).collect();
        let least = ends.and_then(|ends| ends.into_iter().min_by(f64::total_cmp));
        Check { value: least, holds: least.is_some_and(|least| least > 0.0) }
    },
    breakers: &[],
}];

fn is_main(point: &Point) -> bool {
    point.kind == Kind::Main
}

fn has(point: &Point, packets: u32) -> bool {
    point.has(PACKETS, f64::from(packets))
}

fn is_of(point: &Point, bed: &'static str, packets: u32) -> bool {
    is_main(point) && point.has(BED, bed) && has(point, packets)
}

// --- the figures ---------------------------------------------------------------------------------------------------

/// Returns the halt and the lost packets against the number of kept packets, and the distribution of the halts.
fn figures(report: &Report) -> Vec<Drawn> {
    let scale = report.scale.name();
    let runs = format!("Each run at a separate phase of the move against the advertisements, scale {scale}.");
    let caption = format!("Means; the bars are 95 % intervals where there are enough runs. {runs}");
    let figure = |title: &str, y: Axis, metric: &'static str| {
        let series = report
            .backends
            .iter()
            .flat_map(|results| BEDS.iter().map(|bed| drawn(results, bed.name, metric)));
        Drawn::Points(PointFigure {
            title: format!("Mobile IP: {title}"),
            x: Axis::new("packets that the old agent keeps", ""),
            y,
            series: series.collect(),
            caption: caption.clone(),
        })
    };
    let halts = DistributionFigure {
        title: "Mobile IP: halts of a download in a smooth handoff, by the number of kept packets".to_owned(),
        panels: BEDS.iter().map(|bed| distribution(report, bed.name)).collect(),
        caption: runs,
    };
    vec![
        figure(
            "halt of a download and packets that the old agent keeps",
            Axis::new("time without data", "s"),
            HALT,
        ),
        figure("lost packets and packets that the old agent keeps", Axis::new("lost packets", ""), LOST),
        Drawn::Distribution(halts),
    ]
}

/// Returns the distribution of the halts in one network, with a line for each number of packets.
fn distribution(report: &Report, bed: &'static str) -> DistributionPanel {
    let points = report.points.iter().filter(|point| is_main(point) && point.has(BED, bed));
    DistributionPanel {
        title: bed.to_owned(),
        axis: Axis::new("time without data", "s"),
        samples: points.flat_map(|point| samples(report, point, &point.label, HALT)).collect(),
    }
}

fn drawn(results: &Results, bed: &'static str, metric: &'static str) -> Series {
    let rows = results.rows(|point| is_main(point) && point.has(BED, bed));
    let points = rows.filter_map(|(point, measured)| {
        let values = measured.samples.get(metric)?;
        Some(draw_at(point.number(PACKETS)?, measured.mean(metric)?, mean_interval(values)))
    });
    line(bed, style(results.backend), points)
}

#[cfg(test)]
mod tests {
    use super::super::satellite::SatelliteWay;
    use super::*;
    use crate::reproduce::Scale;

    #[test]
    fn only_the_buffer_of_foreign_agents_differs() {
        let points = points::points(Scale::Quick);
        let of = |packets| points.iter().find(|point| is_of(point, BEDS[0].name, packets)).unwrap();
        let [none, one] =
            [0, 1].map(|packets| of(packets).plan(0, &[]).unwrap().document.parse::<toml::Table>().unwrap());
        let without = |mut table: toml::Table| {
            let removed = table["mobile-ip"].as_table_mut().unwrap().remove("buffer");
            (table, removed.is_some())
        };
        let ((none, before), (one, after)) = (without(none), without(one));
        assert!(!before && after);
        assert_eq!(none, one);
        assert!(points.iter().all(|point| SatelliteWay::of(point).is_some()));
    }
}
