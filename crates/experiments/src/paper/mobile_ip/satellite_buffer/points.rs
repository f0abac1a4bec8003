//! The points of the experiment: the number of packets in three beds, and variations.

use super::super::satellite::{ACROSS, Case, NEAR, SAME_SIDE, SatelliteWay, VARIATION};
use super::evaluated;
use crate::reproduce::{BOTH, Kind, Point, SIM, Scale, settings};
use recorder::run::Backend;

/// The names of parameters of points.
pub(super) const BED: &str = "bed";
pub(super) const PACKETS: &str = "packets";

/// The numbers of packets that an agent keeps for a visitor. 0: it has no buffer.
const NUMBERS: [u32; 5] = [0, 1, 2, 4, 8];
/// The numbers for which other parameters are varied.
const VARIED: [u32; 2] = [0, 1];

/// A path with a move.
pub(super) struct Bed {
    pub(super) name: &'static str,
    way: SatelliteWay,
    set: &'static [&'static str],
    /// Whether the bed is measured on Linux at the quick scale.
    is_on_linux: bool,
}

/// The correspondent's path has no satellite, and the cells are those of a wireless LAN.
const WLAN: &[&str] = &[
    NEAR[0],
    NEAR[1],
    "wire.geo.delay=1ms",
    "cell.1={ station = \"home\", rate = \"2Mb/s\", mtu = 1440, net = \"10.1.0.0/24\" }",
    "cell.2={ station = \"a1\", rate = \"2Mb/s\", mtu = 1440, net = \"10.2.0.0/24\" }",
    "cell.3={ station = \"b1\", rate = \"2Mb/s\", mtu = 1440, net = \"10.3.0.0/24\" }",
    "cell.4={ station = \"b2\", rate = \"2Mb/s\", mtu = 1440, net = \"10.4.0.0/24\" }",
];

pub(super) const BEDS: [Bed; 3] = [
    Bed { name: "across", way: ACROSS, set: &[], is_on_linux: true },
    Bed { name: "same side", way: SAME_SIDE, set: &[], is_on_linux: false },
    Bed { name: "WLAN", way: ACROSS, set: WLAN, is_on_linux: false },
];

/// Five moves a minute, and ten, between the networks of B, in seconds.
const OFTEN: [(&str, &[f64]); 2] = [
    ("5 moves per minute", &[4.25, 16.25, 28.25]),
    ("10 moves per minute", &[4.25, 10.25, 16.25, 22.25, 28.25]),
];

pub(super) fn points(scale: Scale) -> Vec<Point> {
    let (n, few) = match scale {
        Scale::Quick => (6, 2),
        Scale::Default => (16, 8),
        Scale::Full => (60, 20),
    };
    let mut points = Vec::new();
    for bed in &BEDS {
        for packets in NUMBERS {
            // On Linux the other points would exceed the time of the quick scale.
            let is_short = scale != Scale::Quick || (bed.is_on_linux && packets < 2);
            let backends = if is_short && packets < 2 { BOTH } else { SIM };
            points.push(bed.point(packets, n, backends));
        }
    }
    for bed in &BEDS {
        for packets in [4, 8] {
            points.push(bed.varied(packets, n, "paced", &["mobile-ip.buffer.drain=paced"]));
        }
        points.push(bed.varied(1, n, "link-down", &["mobile-ip.buffer.when=link-down"]));
    }
    let [across, near, wlan] = &BEDS;
    let few = few.min(n.div_ceil(3));
    for packets in VARIED {
        for (bed, name, set) in [
            (across, "loss 0.01", &["wire.geo.loss=0.01"][..]),
            (
                wlan,
                "loss 0.01",
                &["cell.1.loss=0.01", "cell.2.loss=0.01", "cell.3.loss=0.01", "cell.4.loss=0.01"],
            ),
            (across, "CUBIC", &["host.correspondent.tcp.congestion=cubic"]),
            (
                across,
                "tail loss probes",
                &["host.correspondent.tcp.recovery=[\"rack\", \"tlp\", \"prr\", \"frto\"]"],
            ),
            (across, "4.4BSD", &["host.correspondent.tcp={ profile = \"bsd44\" }", "duration=20s"]),
            (across, "window 16 KiB", &["host.mobile.tcp.receive_buffer=16384"]),
            (across, "window 64 KiB", &["host.mobile.tcp.receive_buffer=65535"]),
        ] {
            points.push(bed.varied(packets, few, name, set));
        }
        for (name, times) in OFTEN {
            points.push(near.often(packets, few.div_ceil(2), name, times));
        }
    }
    points
}

impl Bed {
    fn point(&self, packets: u32, n: usize, backends: &'static [Backend]) -> Point {
        let case = Case::whole(self.way, n, evaluated);
        let mut point =
            case.point(&format!("{}, {packets} packets", self.name), Kind::Main, backends, self.set);
        if packets > 0 {
            point.overrides.extend(settings([format!("mobile-ip.buffer={{ packets = {packets} }}")]));
        }
        point.setting.extend([(BED, self.name.into()), (PACKETS, f64::from(packets).into())]);
        point
    }

    fn varied(&self, packets: u32, n: usize, name: &'static str, set: &[&str]) -> Point {
        let mut point = self.point(packets, n, SIM);
        point.overrides.extend(settings(set.iter().copied()));
        point.label = format!("{}, {name}", point.label);
        point.setting.push((VARIATION, name.into()));
        Point { kind: Kind::Sensitivity, ..point }
    }

    /// Returns a variation with several moves, to and fro between the networks of the bed. The first of them is that of the
    /// other runs.
    fn often(&self, packets: u32, n: usize, name: &'static str, times: &[f64]) -> Point {
        let mut point = self.varied(
            packets,
            n,
            name,
            &["duration=34s", "bulk-server.bytes=100000000", "wire.to-correspondent.rate=500kb/s"],
        );
        let moved = |run: usize| {
            let step = |(number, at): (usize, &f64)| {
                let to = if number % 2 == 0 { self.way.to } else { self.way.from };
                format!("{{ at = \"{:.3}s\", to = \"{to}\" }}", at + run as f64 / n as f64)
            };
            let steps: Vec<String> = times.iter().enumerate().map(step).collect();
            settings([format!("roam.moves=[{}]", steps.join(", ")), "phase=0s".to_owned()])
        };
        point.runs = (0..n).map(moved).collect();
        point
    }
}
