//! The points of the experiment: policies of movement detection, each with several senders of TCP.

use super::{HALT, measure};
use crate::reproduce::{BOTH, Kind, Measure, Point, Published, SIM, Scale, Trace, settings, stratified};
use recorder::run::Backend;
use scenario::Setting;
use wire::Duration;

pub(super) const LCS: &str = "LCS";
pub(super) const ECS: &str = "ECS";
pub(super) const PM_LAZY: &str = "PM lazy";
pub(super) const PM_EAGER: &str = "PM eager";
pub(super) const TRIGGER: &str = "link trigger";

/// The names of points' parameters, and values of them.
pub(super) const POLICY: &str = "policy";
pub(super) const TCP: &str = "tcp";
pub(super) const PATH_MTU: &str = "path_mtu";
pub(super) const NETWORKS: &str = "networks";
pub(super) const BSD: &str = "4.4BSD";
pub(super) const LINUX: &str = "Linux";
pub(super) const FLOOR: &str = "RTO 1.75 s";
pub(super) const CLASSIC: &str = "classic";
pub(super) const MODERN: &str = "modern";
pub(super) const FITS: &str = "fits";
pub(super) const APART: &str = "apart";
pub(super) const OVERLAP: &str = "overlap";

/// The first instant at which the mobile node moves. The phase of a run is added.
const MOVE: Duration = Duration::from_millis(3500);
/// The interval of advertisements. The phases of the move cover it.
const INTERVAL: Duration = Duration::from_secs(1);
/// The tick of 4.4BSD. The phases of the sender's clock cover it.
const TICK: Duration = Duration::from_millis(500);
/// How long the networks overlap.
const OVERLAPS: Duration = Duration::from_secs(2);

/// The texts of the must-holds about the series of halts.
pub(super) const FIRST: &str = "networks apart: ECS recovers before LCS in every run (Linux: by more than 100 ms), with every sender of TCP";
pub(super) const LATER: &str =
    "networks apart: the mean handoff of LCS is done 1.5 to 3.5 s after that of ECS";
pub(super) const ONE_MORE: &str = "4.4BSD: the classic reaction to path MTU discovery costs exactly one more time-out than a path that \
                                   fits, the modern reaction none, in every run in which a time-out sends the first packet after the handoff";

const TOLERANCE: &str = "a tick of 4.4BSD, 500 ms: the paper prints one run of each policy, to 0.5 s";

pub(super) fn points(scale: Scale) -> Vec<Point> {
    // Points that run on Linux take its time at the quick scale.
    let (alone, both, few) = match scale {
        Scale::Quick => (8, 4, 2),
        Scale::Default => (20, 10, 10),
        Scale::Full => (100, 40, 40),
    };
    let mut points = Vec::new();
    for (tcp, mtu) in [(BSD, CLASSIC), (BSD, MODERN), (BSD, FITS), (FLOOR, CLASSIC)] {
        points.extend([LCS, ECS].map(|policy| Case::new(policy, tcp, mtu).point(alone, SIM)));
    }
    // On Linux, these points would exceed the time of the quick scale.
    let longer = if scale == Scale::Quick { SIM } else { BOTH };
    points.extend([LCS, ECS].map(|policy| Case::new(policy, FLOOR, MODERN).point(both, longer)));
    for (policy, n) in [(LCS, both), (ECS, both), (PM_LAZY, both), (PM_EAGER, few), (TRIGGER, few)] {
        points.push(Case::new(policy, LINUX, MODERN).point(n, BOTH));
    }
    for policy in [LCS, ECS, PM_LAZY, PM_EAGER] {
        let backends = if policy == PM_LAZY { longer } else { BOTH };
        points.push(Case { overlaps: true, ..Case::new(policy, LINUX, FITS) }.point(few, backends));
    }
    for varied in &VARIED {
        points.extend([LCS, ECS].map(|policy| varied.point(policy, few)));
    }
    points
}

/// A variation of a parameter that the paper does not give.
struct Varied {
    name: &'static str,
    parameter: &'static str,
    value: f64,
    tcp: &'static str,
    tick: Duration,
    set: &'static [&'static str],
}

const VARIED: [Varied; 8] = [
    Varied::new("5 Mb/s", "rate_mbps", 5.0, &["cell.1.rate=5Mb/s", "cell.2.rate=5Mb/s"]),
    Varied::new(
        "20 Mb/s",
        "rate_mbps",
        20.0,
        &[
            "cell.1.rate=20Mb/s",
            "cell.2.rate=20Mb/s",
            "wire.internet.rate=20Mb/s",
            "wire.left.rate=20Mb/s",
            "wire.right.rate=20Mb/s",
            "bulk-server.bytes=5000000",
        ],
    ),
    Varied::new("window 16 KiB", "window_kib", 16.0, &["host.mobile.tcp.receive_buffer=16384"]),
    Varied::new("window 64 KiB", "window_kib", 64.0, &["host.mobile.tcp.receive_buffer=65535"]),
    Varied { tick: Duration::from_millis(250), ..Varied::new("tick 250 ms", "tick_ms", 250.0, &[]) },
    Varied { tick: Duration::from_secs(1), ..Varied::new("tick 1 s", "tick_ms", 1000.0, &["duration=45s"]) },
    Varied {
        tcp: FLOOR,
        ..Varied::new("RTO 0.875 s", "rto_ms", 875.0, &["host.correspondent.tcp.rto_min=875ms"])
    },
    Varied {
        tcp: FLOOR,
        ..Varied::new(
            "RTO 3.5 s",
            "rto_ms",
            3500.0,
            &["host.correspondent.tcp.rto_min=3500ms", "duration=45s"],
        )
    },
];

impl Varied {
    const fn new(
        name: &'static str,
        parameter: &'static str,
        value: f64,
        set: &'static [&'static str],
    ) -> Self {
        Self { name, parameter, value, tcp: BSD, tick: TICK, set }
    }

    fn point(&self, policy: &'static str, n: usize) -> Point {
        let case = Case { tick: self.tick, ..Case::new(policy, self.tcp, CLASSIC) };
        let mut point = case.point(n, SIM);
        point.label = match self.tcp {
            BSD => format!("{policy}, {BSD} {CLASSIC}, {}", self.name),
            _ => format!("{policy}, {} {CLASSIC}", self.name),
        };
        point.setting.push((self.parameter, self.value.into()));
        point.overrides.extend(settings(self.set.iter().copied()));
        if self.tick != TICK {
            point
                .overrides
                .extend(settings([format!("host.correspondent.tcp.tick={}ms", self.tick.as_millis())]));
        }
        point.kind = Kind::Sensitivity;
        point.published.clear();
        point.formula.clear();
        point.trace = None;
        point
    }
}

/// What a point measures.
#[derive(Clone, Copy)]
struct Case {
    policy: &'static str,
    tcp: &'static str,
    mtu: &'static str,
    overlaps: bool,
    tick: Duration,
}

impl Case {
    const fn new(policy: &'static str, tcp: &'static str, mtu: &'static str) -> Self {
        Self { policy, tcp, mtu, overlaps: false, tick: TICK }
    }

    fn point(self, n: usize, backends: &'static [Backend]) -> Point {
        let Self { policy, tcp, mtu, overlaps, .. } = self;
        let networks = if overlaps { OVERLAP } else { APART };
        let label = match (overlaps, tcp, mtu) {
            (true, ..) => format!("{policy}, {networks}"),
            (false, LINUX, _) => format!("{policy}, {tcp}"),
            (false, _, FITS) => format!("{policy}, {tcp}, path MTU fits"),
            (false, ..) => format!("{policy}, {tcp} {mtu}"),
        };
        let is_eager = !matches!(policy, LCS | PM_LAZY);
        let measure: Measure = match (overlaps, is_eager, tcp, mtu) {
            (true, ..) => measure::overlapped,
            (false, false, LINUX, _) | (false, false, _, CLASSIC) => measure::moved_late,
            _ => measure::moved,
        };
        Point {
            label,
            setting: vec![
                (POLICY, policy.into()),
                (TCP, tcp.into()),
                (PATH_MTU, mtu.into()),
                (NETWORKS, networks.into()),
            ],
            kind: Kind::Main,
            backends,
            scenario: if overlaps { "mobile-ip/movement-overlap" } else { "mobile-ip/movement-detection" },
            overrides: self.overrides(),
            runs: self.runs(n),
            phases: false,
            n,
            load: 10_000_000,
            published: published(policy, tcp, mtu),
            formula: formula(policy, tcp, mtu).map(|halt| (HALT, halt)).into_iter().collect(),
            base: None,
            measure,
            combine: None,
            trace: (!overlaps && matches!(policy, LCS | ECS)).then_some(measure::trace as Trace),
        }
    }

    /// Returns the settings in which all runs of the point differ from the scenario.
    fn overrides(self) -> Vec<Setting> {
        let (movement, trigger) = match self.policy {
            ECS => ("ecs", false),
            PM_LAZY => ("pm", false),
            PM_EAGER => ("pm-eager", false),
            TRIGGER => ("lcs", true),
            _ => ("lcs", false),
        };
        let mut set =
            vec![format!("mobile-node.movement={movement}"), format!("mobile-node.link_trigger={trigger}")];
        let tcp: &[&str] = match self.tcp {
            BSD => &[
                "host.correspondent.tcp={ profile = \"bsd44\", traced = true }",
                "host.mobile.tcp={ profile = \"bsd44\", receive_buffer = 32768 }",
            ],
            FLOOR => &["host.correspondent.tcp.rto_min=1750ms"],
            _ => &[],
        };
        let mtu: &[&str] = match (self.mtu, self.overlaps) {
            (CLASSIC, _) => &["host.correspondent.tcp.too_big=await-timeout"],
            (FITS, false) => &["wire.left.mtu=1520", "wire.right.mtu=1520", "home-agent.tunnel_mtu=1500"],
            _ => &[],
        };
        set.extend(tcp.iter().chain(mtu).map(|&text| text.to_owned()));
        set.push(format!("duration={}s", self.duration()));
        settings(set)
    }

    /// Returns the duration of a run in seconds: until the download has continued after the last time-out that can be
    /// needed. The kernel's time-outs are shorter than the others.
    fn duration(self) -> u32 {
        let is_lazy = matches!(self.policy, LCS | PM_LAZY);
        match (self.overlaps, self.tcp, self.mtu) {
            (true, ..) => [9, 12][usize::from(is_lazy)],
            (false, LINUX, _) => [8, 10][usize::from(is_lazy)],
            (false, FLOOR, MODERN) => [8, 12][usize::from(is_lazy)],
            _ => [16, 26][usize::from(is_lazy)],
        }
    }

    /// Returns the phases of each run: the move against the advertisements and packets, and the sender's clock.
    fn runs(self, n: usize) -> Vec<Vec<Setting>> {
        let moves = stratified("move", n, INTERVAL);
        let ticks = stratified("tick", n, self.tick);
        let run = |(i, phase): (usize, &Duration)| {
            let at = MOVE + *phase;
            let mut set = if self.overlaps {
                let (near, far) = ((at + OVERLAPS).as_nanos(), at.as_nanos());
                vec![format!(
                    "host.mobile.course={{ 1 = [[\"0s\", -60], [\"{near}ns\", -60], [\"{near}ns\", -120]], \
                     2 = [[\"0s\", -120], [\"{far}ns\", -120], [\"{far}ns\", -62], [\"60s\", -62]] }}"
                )]
            } else {
                vec![format!("roam.moves=[{{ at = \"{}ns\", to = \"foreign\" }}]", at.as_nanos())]
            };
            if let (BSD, Some(tick)) = (self.tcp, ticks.get(elsewhere(i, n))) {
                set.push(format!("host.correspondent.tcp.tick_phase={}ns", tick.as_nanos()));
            }
            settings(set)
        };
        moves.iter().enumerate().map(run).collect()
    }
}

/// Returns the place of `i` in a fixed permutation of `0..n`, in which neighbours are far apart.
fn elsewhere(i: usize, n: usize) -> usize {
    let common = |mut a: usize, mut b: usize| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let step =
        (1..=n).filter(|step| common(*step, n) == 1).min_by_key(|step| (step * 1000).abs_diff(n * 618));
    i * step.unwrap_or(1) % n.max(1)
}

/// Returns the halt of reading (b) in seconds: time-outs of 1.75 s, 3.5 s and 7 s one after the other. The first is too
/// early for LCS. With the classic reaction, the first one after the handoff has no effect. `None` for other senders.
fn formula(policy: &str, tcp: &str, mtu: &str) -> Option<f64> {
    match (policy, mtu) {
        _ if tcp != FLOOR => None,
        (ECS, MODERN) => Some(1.75),
        (ECS, _) | (_, MODERN) => Some(1.75 + 3.5),
        _ => Some(1.75 + 3.5 + 7.0),
    }
}

fn published(policy: &str, tcp: &str, mtu: &str) -> Vec<Published> {
    let value = match (policy, tcp, mtu) {
        (LCS, BSD, CLASSIC) => 12.5,
        (ECS, BSD, CLASSIC) => 5.5,
        _ => return Vec::new(),
    };
    vec![Published {
        metric: HALT,
        figure: "4",
        value,
        tolerance: 0.5,
        tolerance_from: TOLERANCE,
        why: "the halt ends with a time-out of the sender, and the paper gives neither its first time-out nor the round trip on which \
              the time-out depends",
        shape: &[FIRST, LATER, ONE_MORE],
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_phase_of_the_clock_is_used_once_and_not_in_order() {
        for n in [1, 2, 4, 8, 10, 20, 40, 100] {
            let all: Vec<usize> = (0..n).map(|i| elsewhere(i, n)).collect();
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), n, "{n}");
            assert!(n < 8 || !all.is_sorted(), "{n}");
        }
    }

    #[test]
    fn each_point_has_a_plan_for_each_run() {
        for scale in [Scale::Quick, Scale::Default] {
            for point in points(scale) {
                assert_eq!(point.count(), point.n, "{}", point.label);
                assert!((0..point.n).all(|run| point.plan(run, &[]).is_ok()), "{}", point.label);
            }
        }
    }
}
