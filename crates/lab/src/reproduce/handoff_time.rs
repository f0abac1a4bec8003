//! `indirect-tcp/handoff-time`: how long a new support router waits for a connection, against the bytes that move with it.
//!
//! From the greeting in the new router's hands to the moment at which both halves of the connection are there: the forward
//! pointer, the offer, and the state, which is what the buffers of both sockets hold, over a link of 10 Mb/s.

use super::figure::{draw_at, line};
use super::phases::stratified;
use super::{
    Check, Experiment, Kind, Measured, Metric, MustHold, Point, Published, Report, Results, Samples, Scale,
    Setting, Statistic,
};
use crate::run::{OnWorld, Outcome};
use crate::scenario;
use crate::stats::{median, r_squared, slope};
use draw::{Axis, PointFigure, Series, Style};
use node::{Mark, Value as Field};
use toml::{Table, Value};
use trace::{Record, What};
use wire::Duration;

const TIME: &str = "handoff_time_ms";
const MOVED: &str = "bytes_moved";
const FRAMES: &str = "frame_bytes";
const CODES: &str = "code_bytes";
const RIGHT: &str = "bytes_right";

const WORLDS: &[OnWorld] = &[OnWorld::Sim, OnWorld::Linux];

/// Published: an idle connection.
const IDLE_MS: f64 = 265.0;
/// Published: with 32 KB buffers, 1230 ms after the request, which comes after 60 + 150 ms.
const FULL_MS: f64 = 1440.0;

/// Socket buffers in KB; an idle connection has nothing in them.
const BUFFERS: [u32; 5] = [0, 4, 8, 16, 32];
const ADJACENT: &str = "adjacent";
/// How the cells lie, and how long a radio hears none of them on its way.
const LAYOUTS: [(&str, Duration); 3] = [
    (ADJACENT, Duration::from_millis(5)),
    ("overlapped", Duration::ZERO),
    ("2 s apart", Duration::from_secs(2)),
];
/// Microseconds for each byte of state at 10 Mb/s.
const US_PER_BYTE: f64 = 0.8;
/// Bytes a second that one download may get through a cell of 2 Mb/s: none ends before the last move.
const AIR: f64 = 236_000.0;
/// The same that it gets at least, moves included.
const LEAST: f64 = 150_000.0;
/// When the mobile host connects, and when it first moves.
const START: Duration = Duration::from_millis(500);
const FIRST: Duration = Duration::from_secs(2);
/// In the new cell, after the radio hears it.
const DWELL: Duration = Duration::from_secs(1);
/// What nothing depends on, so that packets meet moves at different times.
const PHASE: Duration = Duration::from_millis(50);
/// Moves before the first that counts: from then on routers have a connection to each other, either way.
const WARMING: usize = 2;

/// The experiment.
pub(crate) const HANDOFF_TIME: Experiment = Experiment {
    id: "indirect-tcp/handoff-time",
    about: "the time in which a connection moves between support routers, against its buffers",
    paper: "Bakre and Badrinath 1995",
    source: "Bakre and Badrinath 1995, section 5, figure 6: 265 ms idle; the other points are in a figure that is lost",
    notes: &[
        "Router link 10 Mb/s, RTT 10 ms; cells 2 Mb/s; the fixed host sends all it can; window = socket buffer, also the mobile",
        "host's. handoff_time: from the greeting at the new router to the connection being its own, medians in the verdicts.",
        "Dwell 1 s (paper: 10 s; ours). Layouts, with one radio: it hears no cell for 0 ms (overlapped), 5 ms (adjacent), 2 s.",
        "Idle: connected, and silent until after the last move. The connection between routers is warm, as the paper proposes:",
        "two moves before those that count open it both ways. The paper's own was opened anew each time: the rows `cold`.",
        "frame_bytes: all frames of an idle connection, offer to commit, before TLS; of ours each has a code of 16 bytes more",
        "(code_bytes) in the place of TLS's own, which the bound does not count: 478 and 80, so 558 on the wire.",
        "bytes_moved: what both sockets and the relay between them hold. bytes_right: 1 if every byte came, in its place.",
        "Published for 32 KB, in the text: 1230 ms after the handoff request, which an idle connection's handoff meets at 210 ms.",
    ],
    worlds: WORLDS,
    metrics: &[
        Metric { name: TIME, digits: 2, statistic: Statistic::Median, official: true },
        Metric { name: MOVED, digits: 0, statistic: Statistic::Median, official: true },
        Metric { name: FRAMES, digits: 0, statistic: Statistic::Mean, official: true },
        Metric { name: CODES, digits: 0, statistic: Statistic::Mean, official: false },
        Metric { name: RIGHT, digits: 0, statistic: Statistic::Mean, official: false },
    ],
    points,
    must_hold: MUST_HOLD,
    figures,
};

// --- points --------------------------------------------------------------------------------------------------------

/// What a point is about.
#[derive(Clone, Copy)]
struct Case {
    layout: &'static str,
    away: Duration,
    buffer: u32,
    dwell: Duration,
}

fn points(scale: Scale) -> Vec<Point> {
    let (n, cold) = match scale {
        Scale::Quick => (6, 2),
        Scale::Default => (10, 5),
        Scale::Full => (30, 10),
    };
    let case = |(layout, away), buffer| Case { layout, away, buffer, dwell: DWELL };
    let all = LAYOUTS.iter().flat_map(|layout| BUFFERS.map(|buffer| case(*layout, buffer)));
    // Where the cells lie is tried with nothing in the buffers, and with full ones.
    let wanted = all.filter(|case| case.layout == ADJACENT || [0, 32].contains(&case.buffer));
    let mut points: Vec<Point> = wanted.map(|case| main_point(case, n)).collect();
    let adjacent = |buffer| case(LAYOUTS[0], buffer);
    let longer = Case { dwell: 2 * DWELL, ..adjacent(32) };
    points.push(sensitivity("32 KB, dwell 2 s", longer, n, ("dwell_s", 2.0.into())));
    for (label, name, value, overrides) in [
        ("32 KB, router link 5 Mb/s", "link_mbps", 5.0, ["wire.left.rate=5Mb/s", "wire.right.rate=5Mb/s"]),
        (
            "32 KB, router link 20 Mb/s",
            "link_mbps",
            20.0,
            ["wire.left.rate=20Mb/s", "wire.right.rate=20Mb/s"],
        ),
        (
            "32 KB, router link RTT 5 ms",
            "link_rtt_ms",
            5.0,
            ["wire.left.delay=1250us", "wire.right.delay=1250us"],
        ),
        (
            "32 KB, router link RTT 20 ms",
            "link_rtt_ms",
            20.0,
            ["wire.left.delay=5ms", "wire.right.delay=5ms"],
        ),
    ] {
        let mut point = sensitivity(label, adjacent(32), n, (name, value.into()));
        point.overrides.extend(overrides.iter().filter_map(|text| text.parse().ok()));
        points.push(Point { worlds: &[OnWorld::Sim], ..point });
    }
    points.extend([("idle, cold", 0), ("32 KB, cold", 32)].map(|(label, buffer)| {
        let case = adjacent(buffer);
        let phases = stratified(label, cold, PHASE);
        let runs = phases.into_iter().map(|phase| timeline(case, &[FIRST + phase])).collect();
        Point {
            runs,
            n: cold,
            worlds: &[OnWorld::Sim],
            measure: cold_one,
            ..sensitivity(label, case, 0, ("link", "cold".into()))
        }
    }));
    points
}

fn main_point(case: Case, n: usize) -> Point {
    let size = if case.buffer == 0 { "idle".to_owned() } else { format!("{} KB", case.buffer) };
    let label = format!("{size} {}", case.layout);
    let mut overrides = buffers(case);
    overrides.extend(timeline(case, &moves(case, &label, n)));
    Point {
        overrides,
        label,
        setting: vec![("buffer_kb", f64::from(case.buffer).into()), ("layout", case.layout.into())],
        kind: Kind::Main,
        worlds: WORLDS,
        scenario: "indirect-tcp/handoff-time",
        runs: Vec::new(),
        n,
        load: 10_000_000,
        published: published(case),
        formula: Vec::new(),
        base: Some(format!("idle {}", case.layout)),
        measure: if case.buffer == 0 { idle } else { download },
    }
}

fn published(case: Case) -> Vec<Published> {
    let time = Published {
        metric: TIME,
        figure: "6",
        value: IDLE_MS,
        tolerance: 0.5,
        tolerance_from: "half of the last digit that the paper prints",
        why: "of the paper's 265 ms, 210 are the work of machines of 1995 before the transfer begins; here each step is a crossing \
              of the link",
    };
    let full = Published {
        value: FULL_MS,
        tolerance: 5.0,
        tolerance_from: "the paper prints its terms (60 + 150 + 1230 ms) to 10 ms",
        why: "the paper's routers are machines of 1995 and open a connection for each handoff, in slow start; these are warm",
        ..time
    };
    let state = Published {
        metric: FRAMES,
        figure: "section 5",
        value: 500.0,
        tolerance: 50.0,
        tolerance_from: "half of the last digit of \"about 500 bytes\"",
        why: "counted without the codes of 16 bytes of each frame",
    };
    match (case.layout, case.buffer) {
        (ADJACENT, 0) => vec![time, state],
        (ADJACENT, 32) => vec![full],
        _ => Vec::new(),
    }
}

/// What became of it if something of ours were otherwise.
fn sensitivity(label: &str, case: Case, n: usize, differs: (&'static str, Setting)) -> Point {
    let mut point = main_point(case, n);
    point.overrides = buffers(case);
    point.overrides.extend(timeline(case, &moves(case, label, n)));
    point.setting.push(differs);
    Point { label: label.to_owned(), kind: Kind::Sensitivity, published: Vec::new(), base: None, ..point }
}

/// When it moves: those that warm the routers, and those that count.
fn moves(case: Case, name: &str, n: usize) -> Vec<Duration> {
    let all = stratified(name, n + WARMING, PHASE).into_iter().zip(0..);
    all.map(|(phase, i)| FIRST + phase + i * (case.dwell + case.away)).collect()
}

/// Buffers, and the way from cell to cell.
fn buffers(case: Case) -> Vec<scenario::Setting> {
    let kept = i64::from(if case.buffer == 0 { 32 } else { case.buffer }) * 1024;
    vec![
        scenario::Setting::new("support-router.send_buffer", kept),
        scenario::Setting::new("support-router.receive_buffer", kept),
        scenario::Setting::new("host.mobile.tcp", table(&[("receive_buffer", kept.into())])),
        scenario::Setting::new("radio.retune", span(case.away)),
        scenario::Setting::new("radio.attach", span(LAYOUTS[0].1)),
    ]
}

/// Moves at these instants, and traffic that lasts as long.
fn timeline(case: Case, moves: &[Duration]) -> Vec<scenario::Setting> {
    let last = moves.last().copied().unwrap_or(FIRST) + case.away;
    let heard = last.saturating_sub(START + case.away * moves.len() as u32);
    let bytes = AIR * (heard + DWELL / 4).as_secs_f64();
    let kind = |kind: &str| ("kind", Value::from(kind));
    let (server, client, end) = if case.buffer == 0 {
        // One question, when all moves are over: that the connection still is one.
        let asks = (last + DWELL).saturating_sub(START);
        let client = vec![kind("apps/request-client"), ("every", span(asks))];
        (vec![kind("apps/request-server")], client, last + 2 * DWELL)
    } else {
        let server = vec![kind("apps/bulk-server"), ("bytes", Value::from(bytes as i64))];
        let takes = Duration::from_secs_f64(bytes / LEAST);
        (server, vec![kind("apps/bulk-client")], START + takes + case.away * moves.len() as u32 + DWELL)
    };
    let server = table(&[server, vec![("at", "fixed:9000".into())]].concat());
    let common = [("to", "fixed:9000".into()), ("transport", "indirect".into()), ("start", span(START))];
    let client = table(&[client, common.to_vec()].concat());
    let to = |i| if i % 2 == 0 { "right" } else { "left" };
    let moves = moves.iter().zip(0..).map(|(at, i)| table(&[("at", span(*at)), ("to", to(i).into())]));
    let moves: Vec<Value> = moves.collect();
    let roam = table(&[kind("apps/roam"), ("start", "left".into()), ("moves", moves.into())]);
    let roles =
        [table(&[kind("mobile-ip/mobile-node")]), table(&[kind("indirect-tcp/mobile-host")]), roam, client];
    vec![
        scenario::Setting::new("host.fixed.role", vec![server]),
        scenario::Setting::new("host.mobile.role", roles.to_vec()),
        scenario::Setting::new("duration", span(end)),
    ]
}

fn table(keys: &[(&str, Value)]) -> Value {
    Value::Table(keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect::<Table>())
}

fn span(span: Duration) -> Value {
    format!("{}ns", span.as_nanos()).into()
}

// --- measuring -----------------------------------------------------------------------------------------------------

fn idle(outcome: &Outcome) -> Result<Samples, String> {
    measure(outcome, is_answered(outcome), WARMING)
}

fn download(outcome: &Outcome) -> Result<Samples, String> {
    measure(outcome, is_whole(outcome), WARMING)
}

fn cold_one(outcome: &Outcome) -> Result<Samples, String> {
    measure(outcome, is_answered(outcome) || is_whole(outcome), 0)
}

fn is_answered(outcome: &Outcome) -> bool {
    let mut answered = marks(outcome).filter(|(_, mark)| mark.name == "answered");
    answered.next().is_some_and(|(_, mark)| field(mark, "wrong_at").is_none())
}

fn is_whole(outcome: &Outcome) -> bool {
    let mut done = marks(outcome).filter(|(_, mark)| mark.name == "done");
    done.next().is_some_and(|(_, mark)| field(mark, "wrong_at").is_none())
}

/// Each handoff but the first so many.
fn measure(outcome: &Outcome, is_right: bool, skip: usize) -> Result<Samples, String> {
    let mut all = Vec::new();
    let mut greeted = None;
    let mut frames = [0.0; 2];
    for (record, mark) in marks(outcome) {
        let value = |name| number(mark, name).unwrap_or_default() as f64;
        match (mark.name, number(mark, "connections")) {
            ("greeted", Some(1..)) => greeted = Some((record.host, record.at)),
            ("offered", _) => frames = [value("bytes"), value("codes")],
            ("shipped", _) => frames = [frames[0] + value("bytes"), frames[1] + value("codes")],
            ("taken", _) => {
                let Some((_, began)) = greeted.take().filter(|(host, _)| *host == record.host) else {
                    return Err("a connection was taken at a router that was not greeted".to_owned());
                };
                let time = record.at.since(began).as_secs_f64() * 1e3;
                all.push([time, value("buffered"), frames[0] - frames[1], frames[1]]);
            }
            _ => {}
        }
    }
    let mut samples = Samples::new();
    for values in all.into_iter().skip(skip) {
        for (metric, value) in [TIME, MOVED, FRAMES, CODES].into_iter().zip(values) {
            samples.entry(metric).or_default().push(value);
        }
        samples.entry(RIGHT).or_default().push(f64::from(u8::from(is_right)));
    }
    if samples.is_empty() {
        return Err("no connection was handed over".to_owned());
    }
    Ok(samples)
}

fn marks(outcome: &Outcome) -> impl Iterator<Item = (&Record, &Mark)> {
    outcome.records.iter().filter_map(|record| match &record.what {
        What::Marked(mark) => Some((record, mark)),
        _ => None,
    })
}

fn field<'a>(mark: &'a Mark, name: &str) -> Option<&'a Field> {
    mark.fields.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
}

fn number(mark: &Mark, name: &str) -> Option<i64> {
    field(mark, name)?.as_int()
}

// --- what must hold ------------------------------------------------------------------------------------------------

/// The queues of both links between the routers take four packets: what is larger than that loses packets, and waits for
/// their recovery. Losses by chance are no breaker: three frames in ten of one link leave the median linear.
const SHORT_QUEUES: &[&str] = &["wire.left.queue=4", "wire.right.queue=4"];
/// A tenth of the rate between the routers.
const SLOW_LINK: &[&str] = &["wire.right.rate=1Mb/s"];
/// A question in each millisecond, with a long answer: there is no idle connection.
const BUSY: &[&str] = &["request-client.every=1ms", "request-client.answer=60000"];
/// The fixed host is slower than the air: buffers are empty, and fill while the mobile host is away.
const SLOW_HOST: &[&str] = &["wire.internet.rate=1Mb/s"];
/// The new router does not wait for what its host has announced.
const IMPATIENT: &[&str] = &["support-router.patience=1ms"];

const MUST_HOLD: &[MustHold] = &[
    MustHold {
        text: "the median time is linear in the bytes moved: r^2 >= 0.95",
        value: "r^2",
        worlds: WORLDS,
        metrics: &[TIME],
        needs: is_adjacent,
        check: |results| Check::within(r_squared(&by_bytes(results)), 0.95..),
        breakers: &[SHORT_QUEUES],
    },
    MustHold {
        text: "its slope is 8 bits / rate within 20 %",
        value: "slope x rate / 8",
        worlds: WORLDS,
        metrics: &[TIME],
        needs: is_adjacent,
        check: |results| {
            Check::within(slope(&by_bytes(results)).map(|slope| slope * 1e3 / US_PER_BYTE), 0.8..=1.2)
        },
        breakers: &[SLOW_LINK],
    },
    MustHold {
        text: "idle: at most 500 bytes of frames from the first to the commit, before TLS (codes not counted)",
        value: "bytes, the most",
        worlds: WORLDS,
        metrics: &[FRAMES],
        needs: is_idle,
        check: |results| {
            let frames = results.rows(is_idle).filter_map(|(_, measured)| measured.samples.get(FRAMES));
            Check::within(frames.flatten().copied().max_by(f64::total_cmp), ..=500.0)
        },
        breakers: &[BUSY],
    },
    MustHold {
        text: "the three layouts differ by at most 20 % in the median, idle and with 32 KB",
        value: "the worst longest / shortest - 1",
        worlds: WORLDS,
        metrics: &[TIME],
        needs: |point| is_main(point) && (point.has("buffer_kb", 0.0) || point.has("buffer_kb", 32.0)),
        check: layouts_agree,
        breakers: &[SLOW_HOST],
    },
    MustHold {
        text: "after every run all bytes of the stream are right",
        value: "points at which they are not",
        worlds: WORLDS,
        metrics: &[RIGHT],
        needs: |_| true,
        check: |results| {
            let wrong =
                results.rows(|_| true).filter(|(_, measured)| measured.mean(RIGHT) != Some(1.0)).count();
            Check { value: Some(wrong as f64), holds: wrong == 0 && !results.rows.is_empty() }
        },
        breakers: &[IMPATIENT],
    },
];

fn is_main(point: &Point) -> bool {
    point.kind == Kind::Main
}

fn is_adjacent(point: &Point) -> bool {
    is_main(point) && point.has("layout", ADJACENT)
}

fn is_idle(point: &Point) -> bool {
    is_main(point) && point.has("buffer_kb", 0.0)
}

/// Medians: bytes moved, milliseconds.
fn by_bytes(results: &Results) -> Vec<(f64, f64)> {
    results.rows(is_adjacent).filter_map(|(_, measured)| medians(measured)).collect()
}

fn medians(measured: &Measured) -> Option<(f64, f64)> {
    let of = |metric| median(measured.samples.get(metric)?);
    Some((of(MOVED)?, of(TIME)?))
}

fn layouts_agree(results: &Results) -> Check {
    let apart = [0.0, 32.0].map(|buffer| {
        let rows = results.rows(|point| is_main(point) && point.has("buffer_kb", buffer));
        let mut times: Vec<f64> = rows.filter_map(|(_, measured)| Some(medians(measured)?.1)).collect();
        times.sort_unstable_by(f64::total_cmp);
        let all = times.len() == LAYOUTS.len();
        times.first().zip(times.last()).filter(|_| all).map(|(least, most)| most / least - 1.0)
    });
    let [idle, full] = apart;
    Check::within(idle.zip(full).map(|(idle, full)| f64::max(idle, full)), ..=0.2)
}

// --- the figure ----------------------------------------------------------------------------------------------------

/// The published points: an idle connection, and 32 KB buffers, of which up to 64 KB move (the paper's bound, not measured).
const PUBLISHED: [(f64, f64); 2] = [(0.0, IDLE_MS), (64.0, FULL_MS)];

/// As the paper has it, and then without the paper: what is measured is a tenth of that.
fn figures(report: &Report) -> Vec<PointFigure> {
    let measured = measured(report);
    let mut both =
        vec![line(ADJACENT, Style::Published, PUBLISHED.into_iter().map(|(x, y)| draw_at(x, y, None)))];
    both.extend(measured.iter().cloned());
    let n = report.points.first().map_or(0, |point| point.n);
    let caption = format!(
        "Measured: medians of n = {n} handoffs with their intervals (below six: smallest and largest), scale {}.",
        report.scale.name()
    );
    let published = "Published: 265 ms idle, and 60 + 150 + 1230 ms (our sum of its terms) with 32 KB buffers, drawn at the 64 KB that may move at most, on machines \
                     of 1995.";
    let figure = |title: &str, series, caption| PointFigure {
        title: title.to_owned(),
        x: Axis::new("moved with a connection", "KB"),
        y: Axis::new("greeting to taken, median", "ms"),
        series,
        caption,
    };
    vec![
        figure("Indirect TCP: time of a handoff (figure 6)", both, format!("{published} {caption}")),
        figure("Indirect TCP: time of a handoff, as measured", measured, caption),
    ]
}

fn measured(report: &Report) -> Vec<Series> {
    let mut series = Vec::new();
    for (layout, _) in LAYOUTS {
        for results in &report.worlds {
            let style = match results.world {
                OnWorld::Sim => Style::Simulator,
                OnWorld::Linux => Style::Linux,
            };
            let rows = results.rows(|point| is_main(point) && point.has("layout", layout));
            let rows = rows.filter(|(_, measured)| measured.is_valid());
            let points = rows.filter_map(|(_, measured)| {
                let time = measured.estimate(HANDOFF_TIME.metrics.first()?)?;
                Some(draw_at(medians(measured)?.0 / 1024.0, time.value, time.interval))
            });
            series.push(line(layout, style, points));
        }
    }
    series
}
