//! Compares the simulator with ns-3 3.37: the times of 16 MiB over TCP differ by less than 1 %. Runs of ns-3 show where
//! it departs from the RFCs. `docs/evidence.md` has the table, `bench/ns3/bulk.cc` is the program.

use recorder::ledger;
use scenario::Scenario;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use trace::What;

/// Bytes of payload in a segment.
const MSS: u64 = 1460;
/// Bytes of a full frame: the simulator has Ethernet headers of 14 bytes, ns-3 PPP headers of 2 bytes.
const OURS: u64 = 1500 + 14;
const THEIRS: u64 = 1500 + 2;
const RATE: u64 = 2_000_000;

/// Builds the program. `None` if there is no ns-3, which CI must have.
fn ns3() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let built = || {
        #[expect(clippy::disallowed_methods, reason = "CI says so by a variable")]
        let ci = std::env::var("CI").is_ok();
        if !Path::new("/usr/include/ns3/core-module.h").exists() {
            assert!(
                !ci,
                "CI must be able to test: the agreement with ns-3; tools/setup.sh installs libns3-dev"
            );
            eprintln!("SKIPPED, because this machine lacks: ns-3; tools/setup.sh installs libns3-dev");
            return None;
        }
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ns3-bulk");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/ns3/bulk.cc");
        let libraries = ["core", "network", "internet", "point-to-point", "applications", "traffic-control"];
        let compile = |standard: &str| {
            let mut compiler = Command::new("g++");
            compiler.args([standard, "-O2", "-DNDEBUG", "-o"]).arg(&program).arg(&source);
            compiler.args(libraries.map(|name| format!("-lns3-{name}"))).output().unwrap()
        };
        // The headers of ns-3 in Debian 12 need C++17, and those in Debian 13 need C++20.
        let first = compile("-std=c++17");
        let output = if first.status.success() { first } else { compile("-std=c++20") };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(program)
    };
    BUILT.get_or_init(built).as_deref()
}

/// An event inside ns-3's sender.
#[derive(Clone, PartialEq, Debug)]
struct Observed {
    at: f64,
    what: String,
    value: f64,
}

/// Returns the events of a run, if the options request them, and the last line of its output as JSON.
fn run(program: &Path, options: &[&str]) -> (Vec<Observed>, serde_json::Value) {
    let output = Command::new(program).args(options).output().unwrap();
    assert!(output.status.success(), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut events = Vec::new();
    for line in text.lines() {
        if let [at, what, value] = line.split_whitespace().collect::<Vec<_>>()[..] {
            let (at, value) = (at.parse().unwrap(), value.parse().unwrap());
            events.push(Observed { at, what: what.to_owned(), value });
        }
    }
    (events, serde_json::from_str(text.lines().last().unwrap()).unwrap())
}

/// Returns the seconds until the client had all bytes, and the number of packets. The ledger must balance.
fn ours() -> (f64, u64) {
    let (file, text) = Scenario::find("evidence/bulk").unwrap();
    let plan = Scenario::plan(&file, &text, &[], 1).unwrap();
    let run = plan.world().unwrap().run(plan.end());
    let ledger = ledger::close(&plan, &run.records);
    assert!(ledger.balances(), "{:?}", ledger.doubts());
    let done = run.records.iter().find_map(|record| match &record.what {
        What::Marked(mark) if mark.role == "bulk-client" && mark.name == "done" => Some(record.at),
        _ => None,
    });
    (done.unwrap().as_secs_f64(), ledger.sent)
}

#[test]
fn sixteen_mebibytes_take_as_long_as_in_ns3() {
    let Some(program) = ns3() else { return };
    let (ours, packets) = ours();
    // With this rate, a full frame takes the same time in both simulators. Shorter frames do not limit the transfer.
    let same_frames = format!("--rate={}", RATE * THEIRS / OURS);
    for (what, options) in
        [("frames as long as ours", vec![same_frames.as_str()]), ("its own frames", vec![])]
    {
        let told = run(program, &options).1;
        let theirs = told["simulated_s"].as_f64().unwrap();
        let off = ours / theirs - 1.0;
        let percent = off * 100.0;
        println!("16 MiB: ours {ours:.3} s, ns-3 with {what} {theirs:.3} s: {percent:+.2} %");
        println!("  packets: {packets} and {}", told["hops"]);
        assert!(off.abs() < 0.01, "{what}: {percent:+.2} %");
    }
}

fn of<'a>(events: &'a [Observed], what: &'a str) -> impl Iterator<Item = &'a Observed> {
    events.iter().filter(move |event| event.what == what)
}

/// Returns whether two times are equal. Virtual time is the same on every machine.
fn same(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6
}

/// By RFC 5681, equation 4, the threshold is half of the flight size. ns-3 first subtracts three segments from the
/// flight size.
#[test]
fn ns3_does_not_count_duplicates_as_outstanding() {
    let Some(program) = ns3() else { return };
    let (events, _) = run(program, &["--trace", "--bytes=1000000"]);
    let halved = of(&events, "ssthresh").nth(1).unwrap();
    let una = of(&events, "data").find(|event| same(event.at, halved.at)).unwrap().value;
    let sent = of(&events, "data").take_while(|event| event.at < halved.at).map(|event| event.value);
    let outstanding = sent.fold(0.0, f64::max) + MSS as f64 - una;
    println!("{outstanding} bytes were outstanding, and the threshold is {}", halved.value);
    assert!(same(halved.value, (outstanding - 3.0 * MSS as f64) / 2.0), "{halved:?}, {outstanding}");
}

/// After two time-outs of one segment, ns-3 departs from the RFCs in the threshold, the back-off and the window.
#[test]
fn ns3_forgets_the_threshold_and_the_backing_off() {
    let Some(program) = ns3() else { return };
    let (events, _) = run(program, &["--trace", "--bytes=2000000", "--down=5", "--up=8.5"]);
    let after: Vec<Observed> = events.into_iter().filter(|event| event.at > 5.5).collect();
    // RFC 5681, section 3.1: ssthresh is kept when the timer retransmits the same segment again.
    let thresholds: Vec<f64> = of(&after, "ssthresh").map(|event| event.value).take(2).collect();
    println!("thresholds after two time-outs of one segment: {thresholds:?}");
    assert!(same(thresholds[1], 2.0 * MSS as f64) && thresholds[0] > 4.0 * MSS as f64, "{thresholds:?}");
    // RFC 6298, section 5: the time-out stays backed off until a segment that was sent once is measured.
    let spans: Vec<(f64, f64)> = of(&after, "rto").map(|event| (event.at, event.value)).take(4).collect();
    let [.., (timed_out, doubled), (answered, single)] = spans[..] else { panic!("{spans:?}") };
    println!("time-outs: {spans:?}");
    assert!(same(doubled, 8.0) && same(single, 1.0), "{spans:?}");
    let resent: Vec<f64> =
        of(&after, "data").take_while(|event| event.at < answered).map(|event| event.value).collect();
    assert!(resent.iter().all(|seq| same(*seq, resent[0])) && resent.len() == 3, "{resent:?}");
    assert!(answered - timed_out < 0.1, "it is the answer to what was sent again");
    // RFC 5681, equation 2: an acknowledgment increases the window by at most one segment.
    let windows: Vec<f64> =
        of(&after, "cwnd").filter(|event| same(event.at, answered)).map(|event| event.value).collect();
    println!("windows at one acknowledgment, from one segment of {MSS}: {windows:?}");
    assert!(windows.last().unwrap() - MSS as f64 > MSS as f64, "{windows:?}");
}

#[test]
fn ns3_opens_as_an_older_rfc_has_it() {
    let Some(program) = ns3() else { return };
    let (events, _) = run(program, &["--trace", "--bytes=100000", "--lost-syn"]);
    // RFC 6298, section 2: the first time-out is 1 s. ns-3 has 3 s.
    assert!(same(of(&events, "syn").next().unwrap().at, 3.0), "{events:?}");
    let opened = of(&events, "data").next().unwrap().at;
    // RFC 6298, section 3: a segment that was sent twice gives no sample. ns-3 measures the time since the first SYN.
    let span = of(&events, "rto").filter(|event| event.at <= opened).last().unwrap().value;
    println!("a lost SYN is sent again after 3 s, and then the time-out is {span} s");
    assert!(same(span, 3.0 * opened), "{span}");
    // RFC 5681, section 3.1: the initial window is one segment if the SYN was lost. ns-3 sends three segments.
    assert_eq!(of(&events, "data").filter(|event| same(event.at, opened)).count(), 3);
}

/// By default, fast recovery of ns-3 is that of RFC 6937, also without selective acknowledgments. The window then
/// shrinks by one segment with each duplicate acknowledgment.
#[test]
fn ns3_by_itself_reduces_in_proportion() {
    let Some(program) = ns3() else { return };
    let (events, _) = run(program, &["--trace", "--bytes=1000000", "--recovery=TcpPrrRecovery"]);
    let begun = of(&events, "ssthresh").nth(1).unwrap();
    let windows = of(&events, "cwnd").skip_while(|event| event.at < begun.at).map(|event| event.value);
    let windows: Vec<f64> = windows.take(10).collect();
    let sinks = windows.windows(2).all(|pair| same(pair[0] - pair[1], MSS as f64));
    assert!(sinks && windows[0] > begun.value, "{windows:?}");
}
