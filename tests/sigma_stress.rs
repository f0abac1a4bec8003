//! SIGMA over links that disappear, have a small MTU or lose packets. A mobile node downloads, and the time in which it
//! reads nothing is limited by what time-outs explain.

use recorder::run::Outcome;
use scenario::Scenario;
use std::fmt::Write;
use trace::What;

/// A second, in milliseconds.
const S: u64 = 1000;
/// RTO.Min of these hosts, in milliseconds.
const RTO_MIN: u64 = 200;

/// A download by a mobile node with two radios. `here` has the spans in which each cell is in reach, in milliseconds.
struct Move {
    bytes: u64,
    seconds: u64,
    loss: f64,
    mtu: u16,
    /// The delay of the wire to the correspondent, in microseconds. `wire` has further keys of that wire, as TOML.
    delay: u64,
    wire: &'static str,
    /// The start of the download, in milliseconds.
    start: u64,
    here: [Vec<(u64, u64)>; 2],
    mobile: &'static str,
    correspondent: &'static str,
}

impl Default for Move {
    fn default() -> Self {
        Self {
            bytes: 4_000_000,
            seconds: 60,
            loss: 0.0,
            mtu: 1500,
            delay: 500,
            wire: "",
            start: S,
            here: [vec![(0, 8 * S)], vec![(7 * S, 60 * S)]],
            mobile: "",
            correspondent: "",
        }
    }
}

/// Returns the points of a signal that is present in these spans, and disappears within a millisecond.
fn course(spans: &[(u64, u64)]) -> String {
    let mut points = String::new();
    let mut point = |ms: u64, strength| _ = write!(points, "[\"{ms}ms\", {strength}], ");
    if spans.first().is_none_or(|(from, _)| *from > 0) {
        point(0, -120);
    }
    for (from, to) in spans {
        if *from > 0 {
            point(from - 1, -120);
        }
        point(*from, -50);
        point(*to, -50);
        point(to + 1, -120);
    }
    points
}

impl Move {
    fn text(&self) -> String {
        let Self { bytes, seconds, loss, mtu, delay, wire, start, mobile, correspondent, .. } = self;
        let [first, second] = [0, 1].map(|at| course(&self.here[at]));
        let sctp = "sctp = { rto_min = \"200ms\", buffer = 16384";
        format!(
            r#"
about = "a move under stress"
duration = "{seconds}s"
wire.server = {{ ends = ["campus", "correspondent"], rate = "100Mb/s", delay = "{delay}us", net = "10.9.1.0/30"{wire} }}
wire.left = {{ ends = ["campus", "gateway1"], rate = "100Mb/s", delay = "0.5ms", net = "10.9.1.4/30" }}
wire.right = {{ ends = ["campus", "gateway2"], rate = "100Mb/s", delay = "0.5ms", net = "10.9.1.8/30" }}
wire.names = {{ ends = ["campus", "manager"], rate = "100Mb/s", delay = "0.5ms", net = "10.9.1.12/30" }}
cell.1 = {{ station = "gateway1", rate = "2600kb/s", loss = {loss}, net = "10.1.8.0/24" }}
cell.2 = {{ station = "gateway2", rate = "2600kb/s", loss = {loss}, mtu = {mtu}, net = "10.1.6.0/24" }}
radio.retune = "5ms"
sigma = {{ zone = "sigma.example", key = "000102030405060708090a0b0c0d0e0f" }}
[host.campus]
[host.gateway1]
[host.gateway2]
[host.correspondent]
role = [
    {{ kind = "sigma/correspondent", {sctp}, {correspondent} }} }},
    {{ kind = "apps/bulk-server", at = "correspondent:9000", transport = "sctp", bytes = {bytes} }},
]
[host.manager]
role = [{{ kind = "sigma/location-manager" }}]
[host.mobile]
radios = 2
course.1 = [{first}]
course.2 = [{second}]
role = [
    {{ kind = "sigma/mobile-node", addresses = ["10.1.8.100", "10.1.6.100"], signal = {{ hold = "250ms" }}, {mobile} {sctp} }} }},
    {{ kind = "apps/bulk-client", to = "correspondent:9000", transport = "sctp", start = "{start}ms" }},
]
"#
        )
    }

    fn run(&self, seed: u64) -> Run {
        let plan = Scenario::plan("stress.toml", &self.text(), &[], seed).unwrap();
        let outcome = recorder::run::simulate(plan).unwrap();
        assert_eq!(outcome.doubts, [], "{:#?}", outcome.handoffs);
        Run { reads: reads(&outcome, "mobile"), bytes: self.bytes, outcome }
    }
}

/// Returns the times at which a host's programs read data, in milliseconds.
fn reads(outcome: &Outcome, host: &str) -> Vec<u64> {
    let there = outcome.records.iter().filter(|record| outcome.host(record.host) == host);
    there.filter(|record| record.what.read().is_some()).map(|record| record.at.0 / 1_000_000).collect()
}

struct Run {
    outcome: Outcome,
    bytes: u64,
    /// The times at which the program read data, in milliseconds.
    reads: Vec<u64>,
}

impl Run {
    /// Checks that all bytes were read. Returns the longest time between two reads, and its start, in milliseconds.
    fn worst(&self) -> (u64, u64) {
        let read: u64 = self.outcome.records.iter().filter_map(|record| record.what.read()).sum();
        assert_eq!(read, self.bytes, "the last was read at {:?} ms", self.reads.last());
        self.reads.windows(2).map(|two| (two[1] - two[0], two[0])).max().unwrap()
    }

    /// Returns the times after `from` without a read that are longer than time-outs explain. Each has its start, its
    /// length, and the explained time, in milliseconds. `rest` is an allowance beside time-outs, a delayed
    /// acknowledgment and a few packets.
    ///
    /// An exchange that is lost `k` times costs RTO.Initial * (2^k - 1), where RTO.Initial is 1 s. Data cost the same
    /// multiple of their time-out: RTO.Min, or what recent time-outs made of it (RFC 9260, section 6.3.3, E2). So
    /// `k` is the number of packets lost in that time or in the flight before.
    fn unexplained(&self, from: u64, rest: u64) -> Vec<(u64, u64, u64)> {
        const FLIGHT: u64 = 50;
        const DELAYED: u64 = 200;
        let lost = self.outcome.records.iter().filter(|record| matches!(record.what, What::Lost(..)));
        let lost: Vec<u64> = lost.map(|record| record.at.0 / 1_000_000).collect();
        let (before, later): (Vec<u64>, Vec<u64>) = self.reads.iter().partition(|at| **at < from);
        let times: Vec<u64> = before.into_iter().chain([from]).chain(later).collect();
        let (mut unexplained, mut backed, mut packets) = (Vec::new(), 0_u32, 0);
        for two in times.windows(2) {
            let (at, ms) = (two[0], two[1] - two[0]);
            // A flight without a time-out gives a round-trip sample, which ends the back-off.
            packets += 1;
            backed = if packets > 8 { 0 } else { backed };
            let times = lost.iter().filter(|lost| (at - FLIGHT.min(at)..two[1]).contains(*lost)).count();
            let doublings = (1 << times.min(10)) - 1;
            let explained = rest + DELAYED + FLIGHT + doublings * S.max(RTO_MIN << backed);
            if at >= from && ms > explained {
                unexplained.push((at, ms, explained));
            }
            if ms >= RTO_MIN {
                (backed, packets) = ((backed + times as u32).min(8), 0);
            }
        }
        unexplained
    }

    /// Returns the last time at which the node got an address, in milliseconds.
    fn ready(&self) -> u64 {
        let ready = |what: &What| matches!(what, What::Marked(mark) if mark.name == "address_ready");
        let ready = self.outcome.records.iter().rfind(|record| ready(&record.what)).unwrap();
        ready.at.0 / 1_000_000
    }

    /// Returns the time at which the downloading program was notified of the end, in milliseconds; a very large number
    /// if it was not.
    fn ended(&self) -> u64 {
        let done = |what: &What| matches!(what, What::Marked(mark) if mark.name == "done");
        let at = self.outcome.records.iter().find(|record| done(&record.what)).map(|record| record.at.0);
        at.unwrap_or(u64::MAX) / 1_000_000
    }

    fn marks(&self, name: &str) -> usize {
        let is = |what: &What| matches!(what, What::Marked(mark) if mark.name == name);
        self.outcome.records.iter().filter(|record| is(&record.what)).count()
    }

    /// Returns the time of the first read at `ms` or later, in milliseconds.
    fn read_from(&self, ms: u64) -> u64 {
        self.reads.iter().copied().find(|at| *at >= ms).unwrap()
    }
}

/// With 10 % loss, one of these runs loses four packets of an exchange in a row. So the test does not limit the longest
/// stall: it checks that the losses in each stall explain it.
#[test]
fn a_move_over_a_bad_link_costs_what_time_outs_explain() {
    for (overlap, loss) in [(0, 0.0), (S, 0.0), (0, 0.03), (S, 0.03), (0, 0.1), (S, 0.1)] {
        for seed in 1..=60 {
            let here = [vec![(0, 8 * S)], vec![(8 * S - overlap, 60 * S)]];
            let run = Move { loss, here, bytes: 2_000_000, ..Move::default() }.run(seed);
            run.worst();
            let unexplained = run.unexplained(run.read_from(4 * S), 0);
            assert_eq!(unexplained, [], "overlap {overlap} ms, loss {loss}, seed {seed}");
        }
    }
}

#[test]
fn a_narrower_second_network_costs_no_time_out() {
    for mtu in [1400, 1000, 576] {
        let run = Move { mtu, ..Move::default() }.run(1);
        assert!(run.worst().0 <= S, "{mtu}: {:?}", run.worst());
    }
}

/// After the only cell was out of reach, the download continues as soon as the cell returns.
#[test]
fn a_network_that_returns_is_used_at_once() {
    for hole in [5, 20, 60] {
        let back = (6 + hole) * S;
        let here = [vec![(0, 6 * S), (back, 200 * S)], vec![]];
        let run = Move { here, seconds: 120, ..Move::default() }.run(1);
        let first = run.read_from(back);
        // Signals are sampled every 100 ms.
        assert!(first <= back + 300, "{hole} s away: {} ms more", first - back);
    }
}

/// A node that changes its address more than ten times per minute is not refused. Its link breaks every two seconds, or
/// the node moves every three seconds.
#[test]
fn whoever_moves_often_is_not_refused() {
    let spans =
        |from: u64, stay: u64| (0..10).map(|n| (from + 2 * n * stay, from + (2 * n + 1) * stay)).collect();
    for (stay, overlap) in [(2 * S, 0), (3 * S, 300)] {
        let mut here: [Vec<(u64, u64)>; 2] = [spans(0, stay), spans(stay, stay)];
        here.iter_mut().flatten().for_each(|(_, to)| *to += overlap);
        let run = Move { here, bytes: 6_000_000, seconds: 60, ..Move::default() }.run(1);
        assert_eq!(run.marks("change_refused"), 0);
        assert!(run.outcome.handoffs.len() >= 6);
        assert!(run.worst().0 <= 500, "{:?}", run.worst());
    }
}

/// If the correspondent refuses an address, the node requests the address again until it is accepted. The refusal has a
/// reason: the address was not confirmed, because the second cell was lost before the probe.
#[test]
fn an_address_that_is_refused_is_asked_for_again() {
    let here = [vec![(0, 70 * S)], vec![(2 * S, 2 * S + 80), (4 * S, 120 * S)]];
    let run = Move {
        here,
        delay: 80_000,
        seconds: 120,
        bytes: 4_000_000,
        correspondent: "added_per_minute = 1",
        ..Move::default()
    }
    .run(1);
    assert!(run.marks("change_refused") > 0);
    assert!(run.worst().0 <= S, "{:?}", run.worst());
}

/// The node moves every 0.5 s and keeps an old address for 300 ms. Each part of an outage has a cause.
#[test]
fn an_outage_between_two_quick_moves_has_an_owner() {
    for phase in [0, 37, 61] {
        let spans = |from: u64| (0..20).map(|n| (from + n * S, from + n * S + 500)).collect();
        let here = [spans(0), spans(500 + phase)];
        // `run` fails on an unexplained part, as that is a doubt.
        Move { here, bytes: 2_000_000, mobile: "park = \"300ms\",", seconds: 40, ..Move::default() }.run(1);
    }
}

/// The sender's own interface has a smaller MTU than is assumed for a path. So the sender's own node reports it, not a
/// router.
#[test]
fn an_own_link_that_is_narrow_costs_nothing() {
    for wire in [", mtu = 1172", ", mtu = 576"] {
        let run = Move { wire, ..Move::default() }.run(1);
        assert!(run.worst().0 <= 300, "{wire}: {:?}", run.worst());
    }
}

/// The link breaks at each step of the handshake. The association must then open from the new address.
#[test]
fn a_move_while_an_association_opens_delays_it_only() {
    for start in (7800..8120).step_by(8) {
        let here = [vec![(0, 8 * S)], vec![(8 * S, 60 * S)]];
        // The handshake takes as long as the interval of signal samples.
        let run = Move { here, start, delay: 40_000, bytes: 200_000, ..Move::default() }.run(1);
        run.worst();
        // The break is noticed by 8.1 s. Then come four round trips and the slow start of the first data.
        let (first, latest) = (run.reads[0], start.max(8105) + 5 * 85);
        assert!(first <= latest, "{start}: {first} after {latest}");
    }
}

/// The program at the other end has written all bytes and has closed while the node moves: the remaining bytes and the
/// end arrive.
#[test]
fn a_move_while_an_association_shuts_down_loses_neither_data_nor_the_end() {
    for bytes in (2_000_000..2_240_000).step_by(8000) {
        let here = [vec![(0, 8 * S)], vec![(8 * S, 60 * S)]];
        let run = Move { bytes, here, ..Move::default() }.run(1);
        run.worst();
        let ended = run.ended();
        assert!(ended <= 9 * S, "{bytes}: the end comes at {ended}");
        assert!(ended <= run.reads.last().unwrap().max(&8105) + 2 * RTO_MIN, "{bytes}: {ended}");
    }
}

/// The other network is in reach only briefly: the node is back before its first message from there is answered.
#[test]
fn who_comes_back_before_an_answer_goes_on_at_once() {
    for delay in (10..210).step_by(10) {
        let here = [vec![(0, 4 * S), (4200, 60 * S)], vec![(4 * S, 4200)]];
        let run =
            Move { here, delay: 1000 * delay, bytes: 1_000_000, seconds: 120, ..Move::default() }.run(1);
        run.worst();
        let round_trip = 2 * delay + 20;
        // The node is back at 4.305 s. The outstanding message is answered, then a change, a probe and data take a
        // round trip each.
        let next = run.read_from(4306);
        assert!(next <= 4305 + 5 * round_trip + RTO_MIN, "{delay} ms: nothing until {next}");
    }
}

/// Two mobile nodes, each with two networks that do not overlap, and a location manager behind a separate wire. The
/// first node downloads from the second.
struct Both {
    /// The times at which each node loses its first network, in milliseconds. `found` has the times from which the
    /// second network of each node is in reach.
    lost: [u64; 2],
    found: [u64; 2],
    /// The time that each node needs for an address, in milliseconds. Signals are sampled every 100 ms, so this time
    /// makes one node move a little later than the other.
    delay: [u64; 2],
    radios: u8,
    loss: f64,
    /// The delay of the wire to the location manager, in milliseconds.
    far: u64,
    /// More TOML of the scenario.
    more: String,
}

impl Default for Both {
    fn default() -> Self {
        let (lost, found) = ([4 * S; 2], [4 * S + 1; 2]);
        Self { lost, found, delay: [0; 2], radios: 2, loss: 0.0, far: 1, more: String::new() }
    }
}

impl Both {
    const BYTES: u64 = 1_500_000;

    fn node(&self, who: usize, app: &str) -> String {
        let (name, first) = [("alice", 1), ("bob", 3)][who];
        let (here, there) = (course(&[(0, self.lost[who])]), course(&[(self.found[who], 60 * S)]));
        let (second, radios, delay) = (first + 1, self.radios, self.delay[who]);
        format!(
            r#"
[host.{name}]
radios = {radios}
course.{first} = [{here}]
course.{second} = [{there}]
role = [
    {{ kind = "sigma/mobile-node", addresses = ["10.1.{first}.100", "10.1.{second}.100"], address_delay = "{delay}ms", signal = {{ hold = "250ms" }}, sctp = {{ rto_min = "200ms", buffer = 16384 }} }},
    {{ {app}, transport = "sctp" }},
]
"#
        )
    }

    fn text(&self) -> String {
        let Self { loss, far, more, .. } = self;
        let mut text = format!(
            r#"
about = "both ends move"
duration = "60s"
sigma = {{ zone = "sigma.example", key = "000102030405060708090a0b0c0d0e0f" }}
radio.retune = "5ms"
wire.names = {{ ends = ["core", "manager"], rate = "100Mb/s", delay = "{far}ms", net = "10.9.1.0/30" }}
[host.core]
[host.manager]
role = [{{ kind = "sigma/location-manager" }}]
"#
        );
        for n in 1..=4 {
            _ = write!(
                text,
                r#"
wire.w{n} = {{ ends = ["core", "g{n}"], rate = "100Mb/s", delay = "0.5ms", net = "10.9.1.{last}/30" }}
cell.{n} = {{ station = "g{n}", rate = "2600kb/s", net = "10.1.{n}.0/24" }}
host.g{n} = {{}}
"#,
                last = 4 * n
            );
        }
        let client = r#"kind = "apps/bulk-client", to = "10.1.3.100:9000", start = "1s""#;
        let server = format!(r#"kind = "apps/bulk-server", at = "10.1.3.100:9000", bytes = {}"#, Self::BYTES);
        // Tables with their own headers come last.
        let (top, hosts) = text.split_at(text.find("[host.core]").unwrap());
        let (core, rest) = hosts.split_at(hosts.find("\nwire.w1").unwrap());
        let bad =
            |cell: u8| format!("[[event]]\nat = \"3s\"\nkind = \"loss\"\ncell = {cell}\nloss = {loss}\n");
        let bad: String = (1..=4).filter(|_| *loss > 0.0).map(bad).collect();
        format!("{top}{rest}{core}{}{}{bad}{more}", self.node(0, client), self.node(1, &server))
    }

    fn run(&self, seed: u64) -> Run {
        let plan = Scenario::plan("both.toml", &self.text(), &[], seed).unwrap();
        let outcome = recorder::run::simulate(plan).unwrap();
        assert_eq!(outcome.doubts, [], "{:#?}", outcome.handoffs);
        Run { reads: reads(&outcome, "alice"), bytes: Self::BYTES, outcome }
    }
}

/// Two mobile nodes lose their networks at the same time, or one up to 20 ms after the other. Each node sends its
/// change to an address that the other one has left. The location manager knows both addresses: it is updated and
/// queried, and then the two nodes exchange a change and a probe.
#[test]
fn both_ends_move_at_once_and_meet_again() {
    for (radios, far) in [(2, 1), (2, 100), (1, 1), (1, 100)] {
        for loss in [0.0, 0.01, 0.05] {
            for seed in 1..=if radios == 2 { 60 } else { 20 } {
                let (lost, later) = (4 * S + 10 * (seed % 10), 10 * (seed % 5));
                let delay = [20_u64.saturating_sub(later), later.saturating_sub(20)];
                let (lost, found) = ([lost; 2], [lost + 1; 2]);
                let run = Both { lost, found, delay, radios, loss, far, ..Both::default() }.run(seed);
                run.worst();
                let unexplained = run.unexplained(run.ready(), 4 * far);
                assert_eq!(unexplained, [], "{radios} radios, {far} ms, loss {loss}, seed {seed}");
                assert!(loss > 0.0 || run.marks("peer_located") > 0);
            }
        }
    }
}

/// The peer moves just before the association opens, or while it opens. The peer is found by its name, within a
/// time-out and some round trips.
#[test]
fn whoever_is_called_where_it_is_not_any_more_is_looked_for() {
    for lost in [700, 900, 990, 1010] {
        let both = Both { lost: [60 * S, lost], found: [60 * S, lost + 1], ..Both::default() };
        let run = both.run(1);
        run.worst();
        assert!(run.reads[0] <= 3 * S, "{lost}: {:?}", run.reads.first());
        assert!(run.marks("peer_located") > 0 || lost > 1000, "{lost}");
    }
}

/// Two nodes, or the location manager, are out of reach for some seconds. After that, only time-outs may delay the
/// download. If the location manager was out of reach, an update may also have to be repeated.
#[test]
fn whoever_was_away_while_the_other_moved_finds_it() {
    let at = |ms: u64| format!("at = \"{ms}ms\"\n");
    let cut = format!(
        "[[event]]\n{}kind = \"cut\"\nwire = \"names\"\n[[event]]\n{}kind = \"restore\"\nwire = \"names\"\n",
        at(3500),
        at(8500)
    );
    let (gone, back) = (4 * S, 4 * S + 1);
    let runs = [
        ("both are away for 5 s", [gone; 2], [gone + 5 * S; 2], String::new(), 0),
        ("one is away for 15 s", [gone; 2], [gone + 15 * S, back], String::new(), 0),
        ("the other is away for 15 s", [gone; 2], [back, gone + 15 * S], String::new(), 0),
        ("one goes while the other is away", [gone, 6 * S], [9 * S, 6 * S + 1], String::new(), 0),
        ("the other goes while the first is away", [6 * S, gone], [6 * S + 1, 9 * S], String::new(), 0),
        // The location manager cannot be reached until 8.5 s. Then up to 4 s pass until an update is repeated.
        ("no registration says where they are", [gone; 2], [back; 2], cut, 4500 + 4000),
    ];
    for (what, lost, found, more, late) in runs {
        for radios in [1, 2] {
            let run = Both { lost, found, radios, more: more.clone(), ..Both::default() }.run(1);
            run.worst();
            assert_eq!(run.unexplained(run.ready(), late), [], "{what}, {radios} radios");
        }
    }
}
