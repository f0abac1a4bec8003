//! Sample figures of invented numbers, for tests and for viewing.

use draw::{
    Axis, Band, Cost, Counts, DistributionFigure, DistributionPanel, FlowTrace, Handoff, Mark, MarkKind,
    Noticed, Owner, Point, PointFigure, Sample, SequenceFigure, Series, Style, Whisker,
};
use wire::{Duration, Instant};

pub(crate) fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// Returns a handoff of `mobile` with these parts of the outage of flow 0. Without parts, there is no outage.
pub(crate) fn handoff(number: usize, at: u64, label: &str, outage: &[(Owner, u64)]) -> Handoff {
    let mut from = ms(at);
    let mut bands = Vec::new();
    for (owner, length) in outage {
        let to = from + Duration::from_millis(*length);
        bands.push(Band { owner: *owner, from, to });
        from = to;
    }
    let noticed = if bands.is_empty() { Noticed::Nothing } else { Noticed::Outage };
    let cut = if label.starts_with("semisoft") { ms(at + 100) } else { ms(at) };
    let costs = vec![Cost { flow: 0, noticed, outage: bands, recovered: None, lost: Vec::new() }];
    Handoff { number, host: "mobile".to_owned(), at: ms(at), cut, label: label.to_owned(), costs }
}

pub(crate) fn trace(name: &str, counts: Counts) -> FlowTrace {
    FlowTrace { name: name.to_owned(), counts, paths: Vec::new(), marks: Vec::new() }
}

/// Adds a flow with a packet every `every` milliseconds until `end`. Packets are lost within an outage, and arrive
/// twice just after a semisoft handoff.
fn flow(figure: &mut SequenceFigure, every: u64, end: u64) {
    let mut trace = trace("server:4000 > mobile:5000, UDP", Counts::Datagrams);
    let mut push = |at, kind, place| trace.marks.push(Mark { at, kind, place, path: 0 });
    for (place, sent) in (1..).zip((0..end).step_by(usize::try_from(every).unwrap())) {
        push(ms(sent), MarkKind::Sent, place);
        let arrival = ms(sent + 7);
        let costs = || figure.handoffs.iter().flat_map(|handoff| &handoff.costs);
        if costs().any(|cost| cost.outage.iter().any(|band| (band.from..band.to).contains(&arrival))) {
            push(arrival, MarkKind::Lost, place);
            continue;
        }
        push(arrival, MarkKind::Received, place);
        let doubled = |handoff: &Handoff| {
            handoff.label.starts_with("semisoft")
                && (ms(0)..ms(60)).contains(&Instant(arrival.0.wrapping_sub(handoff.at.0)))
        };
        if figure.handoffs.iter().any(doubled) {
            push(arrival + Duration::from_millis(9), MarkKind::Duplicate, place);
        }
    }
    figure.flows.push(trace);
}

/// Three packets and one handoff: small enough to read its CSV.
pub(crate) fn small_sequence() -> SequenceFigure {
    let mut figure = SequenceFigure::new("A small <flow> & a handoff");
    figure.handoffs = vec![handoff(1, 15, "hard b2->b3", &[(Owner::Link, 5), (Owner::PathSwitch, 10)])];
    flow(&mut figure, 10, 40);
    figure
}

/// One handoff in which each owner except `Unexplained` has a part of the outage.
pub(crate) fn one_handoff() -> SequenceFigure {
    let mut figure = SequenceFigure::new("Mobile IP, one hard handoff: UDP, 100 packets/s");
    let lengths = [50, 120, 30, 86, 40, 8, 300, 20];
    let outage: Vec<_> = Owner::ALL.into_iter().zip(lengths).collect();
    figure.handoffs = vec![handoff(1, 4000, "hard b2->b3", &outage)];
    figure.handoffs[0].costs[0].recovered = Some(ms(4950));
    "Simulator, seed 1. Bands show what each part of the outage is due to.".clone_into(&mut figure.caption);
    flow(&mut figure, 10, 9000);
    figure
}

/// A long run with clusters of handoffs. Some handoffs are within each other's panel, one is near the end of the run.
pub(crate) fn many_handoffs() -> SequenceFigure {
    let mut figure = SequenceFigure::new(
        "Cellular IP, ten handoffs between three base stations: UDP, 50 packets/s downlink",
    );
    let hard = [(Owner::Link, 4), (Owner::Registration, 3), (Owner::PathSwitch, 46), (Owner::FirstByte, 20)];
    figure.handoffs = vec![
        handoff(1, 5000, "hard b1->b2", &hard),
        handoff(2, 5900, "hard b2->b3", &hard),
        handoff(3, 6400, "semisoft b3->b2", &[]),
        handoff(4, 20000, "semisoft b2->b1", &[]),
        handoff(5, 30000, "hard b1->b2", &hard),
        handoff(
            6,
            30120,
            "hard b2->b1",
            &[(Owner::Link, 4), (Owner::Detection, 90), (Owner::Unexplained, 12)],
        ),
        handoff(7, 41000, "hard b1->b2", &hard),
        handoff(8, 42000, "hard b2->b3", &[(Owner::Link, 4), (Owner::Address, 60), (Owner::Recovery, 900)]),
        handoff(9, 58500, "semisoft b3->b2", &[]),
        handoff(10, 59400, "hard b2->b1", &hard),
    ];
    "Linux, 1 of 20 runs. Bands show what each part of the outage is due to.".clone_into(&mut figure.caption);
    flow(&mut figure, 20, 60000);
    figure
}

/// Two mobile hosts with one flow each: datagrams to the first host, and a stream to the second host that never
/// recovers.
pub(crate) fn two_hosts() -> SequenceFigure {
    let mut figure = SequenceFigure::new("Two hosts, two flows");
    let mut second = handoff(2, 2100, "hard b2->b1", &[]);
    "other".clone_into(&mut second.host);
    second.costs[0].flow = 1;
    second.costs[0].noticed = Noticed::Never;
    let mut last = handoff(3, 3000, "hard b2->b1", &[]);
    last.costs[0].noticed = Noticed::NotMeasured;
    let first = handoff(1, 2000, "hard b1->b2", &[(Owner::Link, 20), (Owner::PathSwitch, 60)]);
    figure.handoffs = vec![first, second, last];
    flow(&mut figure, 10, 2500);
    let mut stream = trace("server:80 > other:49152, TCP", Counts::Bytes);
    for (segment, at) in (0..).zip((0..4000).step_by(10)) {
        stream.marks.push(Mark { at: ms(at), kind: MarkKind::Sent, place: segment * 1460, path: 0 });
        let kind = if at < 2100 { MarkKind::Received } else { MarkKind::Lost };
        stream.marks.push(Mark { at: ms(at + 5), kind, place: segment * 1460, path: 0 });
    }
    figure.flows.push(stream);
    figure
}

/// Published and measured losses of two kinds of handoff.
pub(crate) fn losses() -> PointFigure {
    let rtts = [3.0, 13.0, 23.0, 33.0, 43.0, 53.0];
    let line = |slope: f64, base: f64, error: Option<f64>| {
        let point = |x: f64| {
            let y = base + slope * x;
            let whisker =
                error.map(|share| Whisker { lo: y * (1.0 - share), hi: y * (1.0 + share), is_range: false });
            Point { x, y, whisker }
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

/// Outages with two modes on both backends, a series that coincides with another, and values that never ended.
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
