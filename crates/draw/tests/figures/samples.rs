//! Figures to look at and to test, made of invented numbers.

use draw::{
    Axis, Band, DistributionFigure, DistributionPanel, Handoff, Mark, MarkKind, Owner, Point, PointFigure,
    Sample, SequenceFigure, Series, Style,
};
use wire::{Duration, Instant};

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn handoff(at: u64, label: &str, outage: &[(Owner, u64)]) -> Handoff {
    let mut from = ms(at);
    let mut bands = Vec::new();
    for (owner, length) in outage {
        let to = from + Duration::from_millis(*length);
        bands.push(Band { owner: *owner, from, to });
        from = to;
    }
    Handoff { at: ms(at), label: label.to_owned(), outage: bands }
}

/// A packet every `every` milliseconds until `end`: lost within an outage, twice just after a semisoft handoff.
fn flow(figure: &mut SequenceFigure, every: u64, end: u64) {
    let mut push = |at, kind, packet| figure.marks.push(Mark { at, kind, packet, flow: 0 });
    for (packet, sent) in (1..).zip((0..end).step_by(usize::try_from(every).unwrap())) {
        push(ms(sent), MarkKind::Sent, packet);
        let arrival = ms(sent + 7);
        let within =
            |handoff: &Handoff| handoff.outage.iter().any(|band| (band.from..band.to).contains(&arrival));
        if figure.handoffs.iter().any(within) {
            push(arrival, MarkKind::Lost, packet);
            continue;
        }
        push(arrival, MarkKind::Received, packet);
        let doubled = |handoff: &Handoff| {
            handoff.label.starts_with("semisoft")
                && (ms(0)..ms(60)).contains(&Instant(arrival.0.wrapping_sub(handoff.at.0)))
        };
        if figure.handoffs.iter().any(doubled) {
            push(arrival + Duration::from_millis(9), MarkKind::Duplicate, packet);
        }
    }
}

/// Three packets and one handoff: small enough to read its CSV.
pub(crate) fn small_sequence() -> SequenceFigure {
    let mut figure = SequenceFigure::new("A small <flow> & a handoff");
    figure.handoffs = vec![handoff(15, "hard b2->b3", &[(Owner::Link, 5), (Owner::PathSwitch, 10)])];
    flow(&mut figure, 10, 40);
    figure
}

/// One handoff in which every owner has a share.
pub(crate) fn one_handoff() -> SequenceFigure {
    let mut figure = SequenceFigure::new("Mobile IP, one hard handoff: UDP, 100 packets/s");
    let lengths = [50, 120, 30, 86, 40, 8, 300, 20];
    let outage: Vec<_> = Owner::ALL.into_iter().zip(lengths).collect();
    figure.handoffs = vec![handoff(4000, "hard b2->b3", &outage)];
    "Simulator, seed 1. Bands show who owns each part of the outage.".clone_into(&mut figure.caption);
    flow(&mut figure, 10, 9000);
    figure
}

/// A long run whose handoffs come in clusters, some within each other's panel, one near the end.
pub(crate) fn many_handoffs() -> SequenceFigure {
    let mut figure = SequenceFigure::new(
        "Cellular IP, ten handoffs between three base stations: UDP, 50 packets/s downlink",
    );
    let hard = [(Owner::Link, 4), (Owner::Registration, 3), (Owner::PathSwitch, 46), (Owner::FirstByte, 20)];
    figure.handoffs = vec![
        handoff(5000, "hard b1->b2", &hard),
        handoff(5900, "hard b2->b3", &hard),
        handoff(6400, "semisoft b3->b2", &[]),
        handoff(20000, "semisoft b2->b1", &[]),
        handoff(30000, "hard b1->b2", &hard),
        handoff(30120, "hard b2->b1", &[(Owner::Link, 4), (Owner::Detection, 90), (Owner::Unexplained, 12)]),
        handoff(41000, "hard b1->b2", &hard),
        handoff(42000, "hard b2->b3", &[(Owner::Link, 4), (Owner::Address, 60), (Owner::Recovery, 900)]),
        handoff(58500, "semisoft b3->b2", &[]),
        handoff(59400, "hard b2->b1", &hard),
    ];
    "Linux, 1 of 20 runs. Bands show who owns each part of the outage.".clone_into(&mut figure.caption);
    flow(&mut figure, 20, 60000);
    figure
}

/// Published and measured losses of two kinds of handoff.
pub(crate) fn losses() -> PointFigure {
    let rtts = [3.0, 13.0, 23.0, 33.0, 43.0, 53.0];
    let line = |slope: f64, base: f64, error: Option<f64>| {
        let point = |x: f64| {
            let y = base + slope * x;
            Point { x, y, error: error.map(|share| (y * (1.0 - share), y * (1.0 + share))) }
        };
        rtts.map(point).to_vec()
    };
    let series = |name: &str, style, points| Series { name: name.to_owned(), style, points };
    PointFigure {
        title: "Packet loss per handoff against round-trip time".to_owned(),
        x: Axis::new("round-trip time between mobile host and gateway", "ms"),
        y: Axis::new("packets lost per handoff", ""),
        series: vec![
            series("hard, 25 packets/s", Style::Published, line(0.025, 0.05, None)),
            series("hard, 25 packets/s", Style::Simulator, line(0.0252, 0.04, Some(0.06))),
            series("hard, 25 packets/s", Style::Linux, line(0.0247, 0.09, Some(0.09))),
            series("hard, 50 packets/s", Style::Published, line(0.05, 0.05, None)),
            series("hard, 50 packets/s", Style::Simulator, line(0.0501, 0.06, Some(0.05))),
            series("hard, 50 packets/s", Style::Linux, line(0.0495, 0.12, Some(0.08))),
            series("semisoft", Style::Published, line(0.0, 0.0, None)),
            series("semisoft", Style::Simulator, line(0.0, 0.0, Some(0.0))),
            series("semisoft", Style::Linux, Vec::new()),
        ],
        caption: "published: invented for this sample, figure 0; measured: medians with 95 % intervals, n = 30 runs of 20 \
                  handoffs each."
            .to_owned(),
    }
}

/// Outages with two modes on both backends, one that coincides with another, and values that never ended.
pub(crate) fn outages() -> DistributionFigure {
    let spread = |n: u32, lo: f64, hi: f64| (0..n).map(move |i| lo + (hi - lo) * f64::from(i) / f64::from(n));
    let download = |low: f64| spread(20, low, 92.0).chain(spread(20, 344.0, 1437.0)).collect::<Vec<f64>>();
    let hard: Vec<f64> = spread(40, 20.0, 60.0).collect();
    let mut lost: Vec<f64> = spread(10, 100.0, 900.0).collect();
    lost.extend([f64::INFINITY, f64::INFINITY, f64::NAN]);
    let samples = vec![
        Sample::new("Mobile IP", Style::Simulator, download(41.0)),
        Sample::new("Mobile IP", Style::Linux, download(46.0)),
        Sample::new("Cellular IP hard", Style::Simulator, hard.clone()),
        Sample::new("Cellular IP semisoft", Style::Simulator, hard),
        Sample::new("plain IP", Style::Simulator, lost),
        Sample::new("Mobile IP", Style::Published, vec![700.0]),
    ];
    let panel = DistributionPanel {
        title: "outage after one move".to_owned(),
        axis: Axis::new("outage", "ms"),
        samples,
    };
    DistributionFigure {
        title: "Outage of a download on both backends".to_owned(),
        panels: vec![panel],
        caption: "Invented for this sample.".to_owned(),
    }
}
