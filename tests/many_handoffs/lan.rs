//! What a handoff costs in a network of 1 ms, with the link trigger, smooth handoffs and a ring of 8 kept packets: the lost packets
//! of 50 per second, and the stall of a download.

use super::print;
use super::watch::{Ended, quantile_ms, run};
use std::collections::BTreeMap;

const SCENARIO: &str = include_str!("../../scenarios/mobile-ip/smooth-handoff.toml");

/// The time between two moves in microseconds. It is no multiple of the 20 ms between two packets, so that the moves come at all
/// times between two packets.
const EVERY_US: usize = 2_003_700;
const FIRST_US: usize = 5_000_000;

/// Returns the settings of a run with this number of moves between three foreign agents: 1 ms from the correspondent to each of
/// them, and `home` from there to the home agent.
fn settings(moves: usize, home: &str, more: &[&str]) -> Vec<String> {
    let stop = FIRST_US + moves * EVERY_US - EVERY_US / 2;
    let rule = format!(
        "roam.moves={{ between = [\"b\", \"c\", \"a\"], every = \"{EVERY_US}us\", start = \"{FIRST_US}us\", stop = \"{stop}us\" }}"
    );
    let wires = ["internet", "to-a", "to-b", "to-c"].map(|wire| format!("wire.{wire}.delay=500us"));
    let fixed = [rule, format!("wire.far.delay={home}"), format!("duration={}us", stop + 3_000_000)];
    let more = more.iter().map(|setting| (*setting).to_owned());
    fixed
        .into_iter()
        .chain(wires)
        .chain(more)
        .chain([format!("constant-rate.stop={}us", stop + 1_000_000)])
        .collect()
}

/// Returns the scenario with a ring of 8 packets, and with a binding cache at the correspondent.
fn ring(has_cache: bool) -> String {
    let text = SCENARIO
        .replace("smooth_handoff = true\n", "smooth_handoff = true\nbuffer = { packets = 8 }\n")
        .replace("rate = 100, size", "rate = 50, size");
    assert!(text.contains("buffer = {") && text.contains("rate = 50, size"), "{text}");
    if !has_cache {
        return text;
    }
    let with_cache = text.replace(
        "role = [{ kind = \"apps/constant-rate\"",
        "role = [{ kind = \"mobile-ip/correspondent\" }, { kind = \"apps/constant-rate\"",
    );
    assert!(with_cache.contains("mobile-ip/correspondent"), "{text}");
    with_cache
}

/// Returns the scenario with a download instead of datagrams.
fn download(has_cache: bool) -> String {
    let text = ring(has_cache);
    let source = text.lines().find(|line| line.contains("apps/constant-rate")).unwrap();
    let roles = source.replace("stop = \"15s\"", "").replace(
        "{ kind = \"apps/constant-rate\", to = \"mobile:7000\", rate = 50, size = 100, start = \"3.2s\",  }",
        "{ kind = \"apps/bulk-server\", at = \"correspondent:9000\", duration = \"1s\" }",
    );
    assert!(roles.contains("bulk-server"), "{roles}");
    text.replace(source, &roles).replace(
        "{ kind = \"apps/sink\", at = \"mobile:7000\" }",
        "{ kind = \"apps/bulk-client\", to = \"correspondent:9000\", start = \"3.2s\" }",
    )
}

/// The datagrams of a run that no application received, the number that one received twice or more, and the shortest delay in
/// milliseconds.
struct Delivery {
    lost: Vec<String>,
    twice: usize,
    delay_ms: f64,
}

/// Returns the delivery of the datagrams. Each lost one is described by its time, that of the last move before it, and why its
/// copies ended.
fn delivery(ended: &Ended) -> Delivery {
    let moves = ended.moves();
    let describe = |sent: wire::Instant, ends: &[(wire::Instant, trace::HostId, String)]| {
        let place = moves.partition_point(|at| *at <= sent);
        let next = moves.get(place).map(|at| at.since(sent));
        let last = place.checked_sub(1).and_then(|place| moves.get(place)).map(|at| sent.since(*at));
        let ends: Vec<String> = ends
            .iter()
            .map(|(at, host, why)| {
                format!("{why} at {} after {:?}", ended.plan.host_name(*host), at.since(sent))
            })
            .collect();
        format!("sent at {sent} s, {last:?} after a move and {next:?} before one: {}", ends.join(", "))
    };
    let all = || ended.datagrams.values();
    let delays = all().filter_map(|datagram| Some(datagram.received.first()?.since(datagram.sent)));
    Delivery {
        lost: all()
            .filter(|datagram| datagram.received.is_empty())
            .map(|datagram| describe(datagram.sent, &datagram.ends))
            .collect(),
        twice: all().filter(|datagram| datagram.received.len() > 1).count(),
        delay_ms: delays.min().map_or(f64::NAN, |delay| delay.as_secs_f64() * 1e3),
    }
}

/// Runs datagrams, and returns their delivery. All moves must be smooth handoffs.
fn datagrams(moves: usize, has_cache: bool, home: &str, more: &[&str]) -> (Ended, Delivery) {
    let ended = run(&ring(has_cache), &settings(moves, home, more));
    assert_eq!((ended.moves().len(), ended.count("forwarding_begun")), (moves, moves));
    assert_eq!(ended.count("binding_learnt") > 0, has_cache);
    let delivery = delivery(&ended);
    (ended, delivery)
}

#[test]
fn no_packet_of_a_slow_flow_is_lost() {
    for has_cache in [false, true] {
        let (_, delivery) = datagrams(50, has_cache, "500us", &[]);
        assert_eq!(delivery.lost, [""; 0], "with a cache: {has_cache}");
    }
}

/// No packet is lost, for several times of the radio without a cell.
#[test]
#[ignore = "minutes: `make handoff-costs`"]
fn the_packets_of_a_slow_flow_that_a_thousand_moves_lose() {
    for (home, has_cache) in [("500us", false), ("500us", true), ("20ms", false), ("20ms", true)] {
        for retune in ["5ms", "50ms", "100ms", "150ms"] {
            let setting = format!("radio.retune={retune}");
            let (ended, delivery) = datagrams(1000, has_cache, home, &[&setting]);
            let (sent, lost) = (ended.datagrams.len(), delivery.lost.len());
            print(&format!(
                "home agent {home} away, cache {has_cache}, {retune} without a cell: {lost} of {sent} datagrams lost in 1000 moves, \
                 {} received twice: {}",
                delivery.twice,
                if lost == 0 { "holds" } else { "does not hold" }
            ));
            assert_eq!(
                lost,
                0,
                "home agent {home} away, cache {has_cache}, {retune}: {:?}",
                delivery.lost.first()
            );
            let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
            ended.ledger.dropped.iter().for_each(|(why, count)| *reasons.entry(why).or_default() += count);
            print(&format!("    drops of all packets: {reasons:?}"));
        }
    }
}

/// The time beyond one round trip that a stall may last.
const MARGIN_MS: f64 = 20.0;

/// Returns the round trip of an idle path in milliseconds: a datagram to the mobile node, by the home agent or straight, and the
/// answer, which is always sent straight.
fn round_trip_ms(has_cache: bool, home: &str) -> f64 {
    let delay = |has_cache| datagrams(3, has_cache, home, &[]).1.delay_ms;
    // A run with a cache has also packets that took the straight path, so its shortest delay is that of this path.
    delay(has_cache) + delay(true)
}

/// The path of a download: the rate of the cells, the largest window in segments (`None`: as large as the hosts offer), and the number
/// of moves.
type Path = (&'static str, Option<u64>, usize);

/// Returns the stalls of a download in each move.
fn stalls(has_cache: bool, home: &str, (rate, window, moves): Path) -> Ended {
    let cells = ["2", "3", "4"].map(|cell| format!("cell.{cell}.rate={rate}"));
    let end_ms = (FIRST_US + moves * EVERY_US) / 1000;
    let mut settings = settings(moves, home, &[]);
    settings.retain(|setting| !setting.starts_with("constant-rate"));
    settings.extend(cells);
    settings.push(format!("bulk-server.duration={}ms", end_ms - 3200));
    // What waits in the buffer of the sender must still arrive.
    settings.push(format!("duration={}ms", end_ms + 30_000));
    settings
        .extend(window.map(|segments| format!("host.mobile.tcp={{ receive_buffer = {} }}", segments * 1440)));
    run(&download(has_cache), &settings)
}

/// Prints how long a download stalls in a move. The previous agent is nearer than the home agent.
#[test]
#[ignore = "minutes: `make handoff-costs`"]
fn the_stalls_of_a_download_in_many_moves() {
    const HOME: &str = "20ms";
    const PATHS: [Path; 5] = [
        ("2Mb/s", None, 1000),
        ("2Mb/s", Some(8), 1000),
        ("10Mb/s", None, 300),
        ("10Mb/s", Some(8), 300),
        ("10Mb/s", Some(16), 300),
    ];
    for has_cache in [true, false] {
        let allowed = round_trip_ms(has_cache, HOME) + MARGIN_MS;
        for path in PATHS {
            let ended = stalls(has_cache, HOME, path);
            let stalls = ended.stalls("mobile");
            let [median, p99, most] = [0.5, 0.99, 1.0].map(|part| quantile_ms(&stalls, part));
            let (rate, window, moves) = path;
            print(&format!(
                "cache {has_cache}, cells of {rate}, window {window:?} segments, {moves} moves: stall median {median:.1} ms, 99 % at \
                 most {p99:.1} ms, longest {most:.1} ms; allowed {allowed:.1} ms: {}",
                if p99 <= allowed { "holds" } else { "does not hold" }
            ));
            print(&format!("    drops: {:?}", ended.ledger.dropped));
        }
    }
}
