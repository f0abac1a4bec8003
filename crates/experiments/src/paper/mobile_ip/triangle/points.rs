//! The points of the experiment: those of the paper, variations of parameters that the paper does not give, and the claims
//! of the paper, which are computed from other points.

use super::claims;
use super::{
    CHAIN_DELAY_US, EFFICIENCY, FULL_DUPLEX, HOPS, LOST_PER_HOP, LOST_POINTS, MORE_DELAY, SERIES,
    SHARED_LINKS, VARIATION, WINDOW_LIMITED, measure,
};
use crate::reproduce::{BOTH, Combine, Kind, Measure, Point, Published, SIM, Scale};
use recorder::run::Backend;
use scenario::Setting;
use wire::Duration;

/// The paper's efficiencies in percent, of 1, 2 and 3 hops (table 1).
pub(super) const TABLE_1: [f64; 3] = [76.56, 75.63, 74.67];
/// The hops of the first series. 0: without Mobile IP.
const FULL_DUPLEX_HOPS: [u32; 8] = [0, 1, 2, 3, 5, 10, 15, 20];
/// The hops that are measured on Linux too: a chain of 20 hops at 10 Mb/s is too much for a small machine.
const ON_LINUX: [u32; 4] = [0, 1, 2, 3];
/// The hops of the series that a window limits which are measured on Linux at every scale; the other scales than quick
/// also have 20 hops. Each hop is a process.
const WINDOW_ON_LINUX: [u32; 3] = [1, 5, 10];

/// The round trip without hops in the series that a window limits, in milliseconds.
pub(super) const BASE_RTT_MS: f64 = 30.0;
/// The additional round trip of each hop in this series, in milliseconds.
pub(super) const RTT_PER_HOP_MS: f64 = 5.0;
/// The propagation delay of both wires of the correspondent in this series. The rest of [`BASE_RTT_MS`] is 100 us in
/// each direction of the cell, and transmission times on two links each. These are of a data packet outside the tunnel
/// (1494 bytes with the link header), and of an acknowledgment (66 bytes). The next data packet (1514 bytes) counts
/// too, because the receiver acknowledges every second one.
const WINDOW_WIRES: &str = "13046400ns";
/// The propagation delay of each link of the chain in this series. The transmission time of a data packet in the tunnel
/// (1514 bytes with the link header) is the rest of [`RTT_PER_HOP_MS`].
const WINDOW_CHAIN: &str = "3788800ns";
/// The receive buffer of this series, in bytes. With it, the simulator and Linux offer a window of 22 segments of 1428
/// bytes, the most that fit in 32 KiB.
const WINDOW_BUFFER: u32 = 33_600;
/// The window of the other series, in bytes.
const USUAL_WINDOW: u32 = 64 * 1024;

/// The longest shift of the start of the download, as in the scenarios (`phase`), and the start before the shift.
const PHASE: Duration = Duration::from_millis(500);
const START: Duration = Duration::from_millis(2500);
/// The least goodput of the full-duplex series, and of the other one that has no window limit, in bytes/s.
const LEAST: f64 = 1_100_000.0;
const LEAST_SHARED: f64 = 600_000.0;

/// The number of repetitions and the bytes of a download at a scale.
#[derive(Clone, Copy)]
struct Size {
    n: usize,
    bytes: u32,
    window_bytes: u32,
}

impl Size {
    const fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self { n: 2, bytes: 2_000_000, window_bytes: 2_500_000 },
            Scale::Default => Self { n: 6, bytes: 8_000_000, window_bytes: 4_000_000 },
            // The paper sends 1000 MB. The records of such a run would not fit in memory: those of 16 MB over 20 hops take 1 GB.
            Scale::Full => Self { n: 10, bytes: 16_000_000, window_bytes: 8_000_000 },
        }
    }
}

/// The smallest number of repetitions of the full-duplex series: the fastest one counts.
const LEAST_REPETITIONS: usize = 4;

pub(super) fn points(scale: Scale) -> Vec<Point> {
    let size = Size::of(scale);
    let often = Size { n: size.n.max(LEAST_REPETITIONS), ..size };
    let mut points: Vec<Point> = FULL_DUPLEX_HOPS.map(|hops| full_duplex(hops, &often)).into();
    // On Linux these points would exceed the time of the quick scale.
    let longer = if scale == Scale::Quick { SIM } else { BOTH };
    points.extend(ON_LINUX.map(|hops| Point { backends: longer, ..shared(hops, &size) }));
    points.extend((1..=20).map(|hops| window(hops, &size, longer)));
    points.extend(claims(&often, &size, longer));
    points.extend(sensitivity(&size));
    points
}

// --- the three series ----------------------------------------------------------------------------------------------

fn full_duplex(hops: u32, size: &Size) -> Point {
    let published = match hops.checked_sub(1).and_then(|at| TABLE_1.get(at as usize)) {
        Some(value) => vec![table_1(*value)],
        None => Vec::new(),
    };
    let takes = f64::from(size.bytes) / LEAST;
    Point {
        backends: if ON_LINUX.contains(&hops) { BOTH } else { SIM },
        published,
        ..point(FULL_DUPLEX, hops, size, takes)
    }
}

fn shared(hops: u32, size: &Size) -> Point {
    let takes = f64::from(size.bytes) / LEAST_SHARED;
    Point {
        scenario: "mobile-ip/triangle-shared",
        measure: measure::shared,
        ..point(SHARED_LINKS, hops, size, takes)
    }
}

/// Returns a point of the series that a window limits. `longer`: the backends of the longest chain.
fn window(hops: u32, size: &Size, longer: &'static [Backend]) -> Point {
    let size = Size { bytes: size.window_bytes, ..*size };
    let round_trip = RTT_PER_HOP_MS.mul_add(f64::from(hops), BASE_RTT_MS) / 1e3;
    // After slow start, one window arrives per round trip. A window has 30 kB here: it holds whole segments.
    let takes = f64::from(size.bytes) / (30_000.0 / round_trip) + 5.0 * round_trip;
    let mut point = point(WINDOW_LIMITED, hops, &size, takes);
    point.overrides.extend(set(&[
        ("wire.there.delay", WINDOW_WIRES),
        ("wire.back.delay", WINDOW_WIRES),
        ("chain.net.delay", WINDOW_CHAIN),
    ]));
    point.overrides.push(receive_buffer(WINDOW_BUFFER));
    let backends = match hops {
        20 => longer,
        hops if WINDOW_ON_LINUX.contains(&hops) => BOTH,
        _ => SIM,
    };
    Point { backends, measure: measure::window, ..point }
}

/// Returns a point of a series without published numbers. `takes`: the longest time of the download, in seconds.
fn point(series: &'static str, hops: u32, size: &Size, takes: f64) -> Point {
    let duration = START + PHASE + Duration::from_secs_f64(takes) + Duration::from_millis(500);
    let mut overrides = set(&[("duration", &format!("{}ms", duration.as_nanos() / 1_000_000))]);
    overrides.push(Setting::new("bulk-server.bytes", i64::from(size.bytes)));
    // Without Mobile IP, the mobile node is at home.
    overrides.extend(if hops == 0 {
        set(&[("roam.start", "home")])
    } else {
        vec![Setting::new("chain.net.routers", i64::from(hops - 1))]
    });
    Point {
        label: format!("{series}, {hops} {}", if hops == 1 { "hop" } else { "hops" }),
        setting: vec![(SERIES, series.into()), (HOPS, f64::from(hops).into())],
        kind: Kind::Main,
        backends: BOTH,
        scenario: "mobile-ip/triangle",
        overrides,
        runs: vec![Vec::new(); size.n],
        phases: true,
        n: size.n,
        load: load(hops, size, duration),
        published: Vec::new(),
        formula: Vec::new(),
        base: None,
        measure: measure::full_duplex as Measure,
        trace: None,
        combine: None,
    }
}

/// Returns the sum of the rates of all links, in bit/s. It is the mean over the run, which is longer than the download. Data or
/// acknowledgments cross each hop, both wires and the cell.
fn load(hops: u32, size: &Size, duration: Duration) -> u64 {
    let bits = u64::from(size.bytes) * 8 * u64::from(hops + 3);
    (bits as f64 / duration.as_secs_f64()) as u64
}

// --- the claims ----------------------------------------------------------------------------------------------------

/// Returns the claims of the paper, and the slope of the shared links. `often`: the size of the full-duplex series; `size`:
/// that of the others; `longer`: the backends of the shared links.
fn claims(often: &Size, size: &Size, longer: &'static [Backend]) -> Vec<Point> {
    let slope = claim("slope over hops 1 to 3", FULL_DUPLEX, claims::slope, often);
    let shared = claim("shared links, slope over hops 1 to 3", SHARED_LINKS, claims::slope, size);
    let lost = |hops: u32, tolerance| {
        let label = format!("{hops} hops against no Mobile IP");
        let mut point = claim(&label, FULL_DUPLEX, claims::lost_points, often);
        point.setting.push((HOPS, f64::from(hops).into()));
        Point { backends: SIM, published: vec![lost_points(f64::from(hops), tolerance)], ..point }
    };
    let lower = claim("efficiency 20 points below that of 1 hop", WINDOW_LIMITED, claims::lower, size);
    let mut long = claim("20 hops against no Mobile IP, delay", FULL_DUPLEX, claims::more_delay, often);
    long.setting.push((HOPS, 20.0.into()));
    vec![
        Point { published: vec![PER_HOP], ..slope },
        lost(10, 5.0),
        lost(15, 7.5),
        Point { published: vec![LOWER], ..lower },
        Point { backends: SIM, published: vec![TWENTY_HOPS], ..long },
        Point { backends: longer, ..shared },
    ]
}

fn claim(label: &str, series: &'static str, combine: Combine, size: &Size) -> Point {
    Point {
        label: label.to_owned(),
        setting: vec![(SERIES, series.into()), ("computed", "yes".into())],
        runs: Vec::new(),
        combine: Some(combine),
        ..point(series, 1, size, 0.0)
    }
}

const MACHINES: &str = "the paper's hosts are PCs of 1998 on half-duplex Ethernet, which do not reach the rate of a link; here hosts \
     compute in no time (simulator) or faster than the link (Linux), and links are full duplex";
const PIPELINE: &str = "a hop that forwards at the rate of the link delays the first packet, and no later one: in the simulator, the download \
     takes one packet time and the propagation longer for each of the first hops, whatever its size; on Linux it takes some packet times longer, for a \
     reason that was not examined";
const LONG_PIPELINE: &str = "a hop that forwards at the rate of the link delays the first packets, and no later one; from 10 hops on, the \
     initial window does not fill a round trip, so a hop costs more than one packet time, and still much less than in the paper";

const fn table_1(value: f64) -> Published {
    Published {
        metric: EFFICIENCY,
        figure: "table 1",
        value,
        tolerance: 0.465,
        tolerance_from: "half of the smallest difference between two rows of table 1",
        why: MACHINES,
        // The slope is a separate number.
        shape: &[],
    }
}

/// The first claim.
const PER_HOP: Published = Published {
    metric: LOST_PER_HOP,
    figure: "section IV-A",
    value: 1.0,
    tolerance: 0.5,
    tolerance_from: "half, because the paper says \"almost 1 %\" for 0.93 and 0.96 points",
    why: PIPELINE,
    shape: &[],
};

/// The second claim: 10 to 15 hops cost 10 to 15 %.
const fn lost_points(value: f64, tolerance: f64) -> Published {
    Published {
        metric: LOST_POINTS,
        figure: "section IV-A",
        value,
        tolerance,
        tolerance_from: "50 %, as for the slope: the paper extrapolates from it",
        why: LONG_PIPELINE,
        shape: &[],
    }
}

/// The third claim.
const LOWER: Published = Published {
    metric: MORE_DELAY,
    figure: "section IV-A",
    value: 50.0,
    tolerance: 5.0,
    tolerance_from: "half a unit of the first digit, because the paper prints 50 %",
    why: "the delay is size / efficiency, so the number follows from the efficiency E of 1 hop alone: E / (E - 20) - 1, and with the paper's \
          76.56 % it is 35 %",
    shape: &[],
};

/// The fourth claim.
const TWENTY_HOPS: Published = Published { figure: "section V", why: LONG_PIPELINE, ..LOWER };

// --- variations ----------------------------------------------------------------------------------------------------

/// A variation of a parameter that the paper leaves open.
struct Variation {
    name: &'static str,
    /// The measured point with this number of hops, before the settings.
    of: fn(u32, &Size) -> Point,
    size: Size,
    settings: Vec<Setting>,
}

impl Variation {
    /// Returns the points of 1 and 3 hops, and the slope between them.
    fn points(&self) -> Vec<Point> {
        let measured = |hops| {
            let mut point = (self.of)(hops, &self.size);
            point.overrides.extend(self.settings.iter().cloned());
            point.label = format!("{}, {}", point.label, self.name);
            point
        };
        let [one, three] = [1, 3].map(measured);
        let series = if one.has(SERIES, SHARED_LINKS) { SHARED_LINKS } else { FULL_DUPLEX };
        let slope = claim(&format!("{series}, slope, {}", self.name), series, claims::slope, &self.size);
        let mut points = vec![one, three, slope];
        for point in &mut points {
            point.setting.push((VARIATION, self.name.into()));
            (point.kind, point.backends, point.published) = (Kind::Sensitivity, SIM, Vec::new());
        }
        points
    }
}

/// Returns the variations, each with half and double the value, and two other kinds of half-duplex links.
fn sensitivity(size: &Size) -> Vec<Point> {
    // A variation is compared with the main points, so half of their repetitions are enough.
    let usual = Size { n: size.n.div_ceil(2), ..*size };
    let full = |name, settings| Variation { name, of: full_duplex, size: usual, settings };
    let bytes = |name, bytes| Variation { size: Size { bytes, ..usual }, ..full(name, Vec::new()) };
    let delay = |factor: f64| set(&[("chain.net.delay", &format!("{}us", CHAIN_DELAY_US * factor))]);
    let half_duplex = [("chain.net.duplex", "half"), ("cell.1.duplex", "half"), ("cell.2.duplex", "half")];
    let contention = ["segment.lan", "chain.net", "cell.1", "cell.2"].map(|link| {
        let [slot, window, most] = [("slot", "51200ns".into()), ("window", 2.into()), ("most", 1024.into())];
        let keys = [slot, window, most].map(|(key, value): (&str, toml::Value)| (key.to_owned(), value));
        Setting::new(&format!("{link}.contention"), toml::Value::Table(keys.into_iter().collect()))
    });
    let variations = [
        full("window 32 KiB", vec![receive_buffer(USUAL_WINDOW / 2)]),
        full("window 128 KiB", vec![receive_buffer(USUAL_WINDOW * 2)]),
        full("delay of a hop 50 us", delay(0.5)),
        full("delay of a hop 200 us", delay(2.0)),
        bytes("half the bytes", size.bytes / 2),
        bytes("double the bytes", size.bytes * 2),
        full("half duplex", set(&half_duplex)),
        Variation { of: shared, ..full("contention", contention.into()) },
    ];
    variations.iter().flat_map(Variation::points).collect()
}

fn receive_buffer(bytes: u32) -> Setting {
    Setting::new("host.mobile.tcp.receive_buffer", i64::from(bytes))
}

fn set(settings: &[(&str, &str)]) -> Vec<Setting> {
    settings.iter().map(|(key, value)| Setting::new(key, *value)).collect()
}
