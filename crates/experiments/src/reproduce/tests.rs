//! Tests of the framework with the built-in experiments, all in the simulator.

use super::*;
use crate::paper::{EXPERIMENTS, select};
use std::sync::LazyLock;
use trace::Doubt;

static NEVER: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
const HOW: How<'_> = How { jobs: 2, linux: None, stop: &NEVER, progress: &|_| {}, repeated: &|_, _| {} };

fn quick(id: &str) -> Report {
    let experiment = select(&[id.to_owned()]).unwrap()[0];
    reproduce(experiment, Scale::Quick, &[Backend::Sim], &HOW).unwrap()
}

/// All experiments at the quick scale in the simulator. Several tests read them.
static ALL: LazyLock<Vec<Report>> =
    LazyLock::new(|| EXPERIMENTS.iter().map(|experiment| quick(experiment.id)).collect());

#[test]
fn words_select_papers_and_ids() {
    assert_eq!(select(&[]).unwrap().len(), EXPERIMENTS.len());
    assert_eq!(select(&["cellular-ip/udp-loss".to_owned()]).unwrap()[0].id, "cellular-ip/udp-loss");
    assert!(select(&["cellular-ip".to_owned()]).unwrap().iter().all(|e| e.id.starts_with("cellular-ip/")));
    assert!(select(&["cellular".to_owned()]).unwrap_err().contains("experiments: cellular-ip/udp-loss"));
}

/// Returns the runs of a point whose plans are tried. Larger scales have more runs, whose settings differ in phases only.
fn tried(scale: Scale, point: &Point) -> Vec<usize> {
    let last = point.count() - 1;
    if scale == Scale::Quick { (0..=last).collect() } else { vec![0, last / 2, last] }
}

#[test]
fn every_point_has_a_plan_and_a_name_of_its_own_at_every_scale() {
    for experiment in EXPERIMENTS {
        let mut settings = Vec::new();
        for scale in [Scale::Quick, Scale::Default, Scale::Full] {
            let points = (experiment.points)(scale);
            let mut labels: Vec<&str> = points.iter().map(|point| point.label.as_str()).collect();
            labels.sort_unstable();
            labels.dedup();
            assert_eq!(labels.len(), points.len(), "{}", experiment.id);
            for point in &points {
                let durations = point.durations(&[]).unwrap();
                for run in tried(scale, point) {
                    let plan =
                        point.plan(run, &[]).unwrap_or_else(|error| panic!("{}: {error}", point.label));
                    assert_eq!(durations[run], plan.duration, "{}, run {run}", point.label);
                }
                let base = point.base.as_deref().unwrap_or(&point.label);
                assert!(labels.binary_search(&base).is_ok(), "{base}");
            }
            settings.push(points.into_iter().map(|point| (point.label, point.setting)).collect::<Vec<_>>());
        }
        assert!(settings.iter().all(|each| *each == settings[0]), "a scale changes no setting");
        for must_hold in experiment.must_hold {
            assert!(!must_hold.breakers.is_empty(), "{}", must_hold.text);
        }
    }
}

/// The experiments keep the documented time limits on Linux, with four parallel runs. In the simulator, the quick scale
/// of an experiment has less than 3000 s of virtual time. This limit is larger, because a run has few events after its
/// download has ended, and the simulator skips the time between events.
#[test]
fn no_scale_takes_longer_than_promised() {
    for experiment in EXPERIMENTS {
        let wide = experiment.id.starts_with("compare/");
        // Its runs fill long chains of links, so most of them are executed alone.
        let heavy = experiment.id == "mobile-ip/triangle";
        let limits = [
            (Scale::Quick, if wide { 120 } else { 60 }),
            (Scale::Default, if wide || heavy { 900 } else { 300 }),
        ];
        for (scale, limit) in limits {
            let span = span(experiment, scale, Backend::Linux, 4).as_secs();
            assert!(span < limit, "{} {}: {span} s", experiment.id, scale.name());
        }
        assert!(span(experiment, Scale::Quick, Backend::Sim, 1).as_secs() < 3000);
    }
}

/// The measurements of `make test` on Linux take at most six minutes, without repeated runs. Measurements that do not
/// fit are executed in turn, by commit (`--linux-seconds` and `--turn` in the Makefile).
#[test]
fn all_quick_measurements_on_linux_take_six_minutes_at_most() {
    const SECONDS: u64 = 360;
    let all = select(&[]).unwrap();
    let budget: u64 = makefile("LINUX_SECONDS").parse().unwrap();
    let most = (0..all.len()).map(|turn| {
        let chosen = in_turn(&all, Scale::Quick, 4, Duration::from_secs(budget), turn);
        let spans = all.iter().zip(chosen).filter(|(_, chosen)| *chosen);
        spans.map(|(experiment, _)| span(experiment, Scale::Quick, Backend::Linux, 4)).sum::<Duration>()
    });
    let course = crate::contest::course().unwrap();
    let wanted = crate::contest::select(course, &[]).unwrap();
    let contest = crate::contest::span(course, &wanted, crate::contest::repetitions(Scale::Quick), 4);
    // `wayfare agree first` has eight runs, one after the other.
    let (name, text) = crate::catalogue::find("first").unwrap();
    let agreement = scenario::Scenario::plan(&name, &text, &[], 1).unwrap().duration * 8;
    let sum = most.max().unwrap() + contest + agreement;
    assert!(sum.as_secs() <= SECONDS, "{sum:?}");
}

fn makefile(variable: &str) -> String {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Makefile")).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(variable)?.trim_start().strip_prefix("?="));
    value.unwrap_or_else(|| panic!("no {variable} in the Makefile")).trim().to_owned()
}

#[test]
fn successive_turns_measure_every_experiment() {
    let spans = [50, 40, 30, 200].map(Duration::from_secs);
    let chosen = |turn| fitting(&spans, Duration::from_secs(100), turn);
    assert_eq!(chosen(0), [true, true, false, false]);
    assert_eq!(chosen(1), [false, true, true, false]);
    assert_eq!(chosen(2), [false, false, true, false]);
    assert_eq!(chosen(3), [false, false, false, true], "one that never fits has its turn alone");
    assert_eq!(chosen(4), chosen(0));
    assert_eq!(fitting(&[], Duration::ZERO, 7), [] as [bool; 0]);
}

#[test]
fn all_holds_in_the_simulator() {
    for report in &*ALL {
        assert_eq!(report.untrusted(), []);
        for verdict in report.verdicts() {
            assert!(verdict.holds(), "{}: {:?}", verdict.must_hold.text, verdict.check);
        }
    }
}

/// docs/reproduced.md is the table that the simulator gives. `WAYFARE_BLESS=1` rewrites it, as does `wayfare reproduce
/// --quick --on sim --write-table docs/reproduced.md`.
#[test]
fn the_table_of_published_numbers_is_what_the_simulator_gives() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let recorded = std::fs::read_to_string(docs.join("reproduced.linux.json")).unwrap();
    let recorded = Recorded::read(&recorded).unwrap();
    let now = table(&ALL, Some(&recorded));
    let path = docs.join("reproduced.md");
    #[expect(clippy::disallowed_methods, reason = "a switch for maintainers of the table")]
    if std::env::var("WAYFARE_BLESS").is_ok() {
        std::fs::write(&path, &now).unwrap();
    }
    let then = std::fs::read_to_string(&path).unwrap();
    let differs = then.lines().zip(now.lines()).find(|(then, now)| then != now);
    assert!(then == now, "docs/reproduced.md: {differs:?}\nwrite it again with WAYFARE_BLESS=1");
}

/// The README has the short form of the table of published numbers, and the counts of verdicts.
#[test]
fn readme_counts_what_the_table_has() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    let recorded = Recorded::read(&read("docs/reproduced.linux.json")).unwrap();
    let (readme, short) = (read("README.md"), short(&ALL, Some(&recorded)));
    assert!(readme.contains(&short), "README.md, What is reproduced?\n{short}");
    let page = table(&ALL, Some(&recorded));
    let counts = page.lines().find(|line| line.starts_with("**")).unwrap();
    assert!(readme.contains(counts), "README.md, What is reproduced? {counts}");
}

#[test]
fn a_shape_is_made_of_must_holds_that_are_there_and_look_at_the_point() {
    for experiment in EXPERIMENTS {
        for point in (experiment.points)(Scale::Quick) {
            for published in &point.published {
                for name in published.shape {
                    let of = experiment.must_hold.iter().find(|must_hold| must_hold.text == *name);
                    let of = of.unwrap_or_else(|| panic!("{}: no must-hold {name}", experiment.id));
                    assert!((of.needs)(&point), "{}: {name} does not look at {}", experiment.id, point.label);
                    assert!(point.backends.iter().all(|backend| of.backends.contains(backend)), "{name}");
                }
            }
        }
    }
}

#[test]
fn a_verdict_needs_the_value_and_what_must_hold() {
    let mut report = quick("cellular-ip/udp-loss");
    let word = |report: &Report, label: &str| {
        judged(report).iter().find(|judged| judged.point.label == label).unwrap().word()
    };
    assert_eq!(word(&report, "semisoft 50/s RTT 43"), Word::Reproduced);
    // With one more lost packet in each handoff, the number differs, and a property that must hold fails.
    let lose_more = |report: &mut Report, label: &str| {
        let row = report.backends[0].rows.iter_mut().find(|(point, _)| point.label == label).unwrap();
        let lost = row.1.as_mut().unwrap().samples.get_mut("lost_per_handoff").unwrap();
        for lost in lost {
            *lost += 1.0;
        }
    };
    lose_more(&mut report, "semisoft 50/s RTT 43");
    assert_eq!(word(&report, "semisoft 50/s RTT 43"), Word::NotReproduced);
    // With one more lost packet at all three points of a line, the slope of the line is unchanged. No ratio is required
    // at RTT 3.
    for round_trip in [3, 43, 83] {
        lose_more(&mut report, &format!("hard 25/s RTT {round_trip}"));
    }
    assert_eq!(word(&report, "hard 25/s RTT 3"), Word::Shape);
    assert_eq!(word(&report, "hard 25/s RTT 43"), Word::NotReproduced, "the ratio of 50/s to 25/s is lost");
}

#[test]
fn the_json_has_the_promised_shape() {
    let report = quick("cellular-ip/udp-loss");
    let json = json(std::slice::from_ref(&report));
    let experiment = &json["experiments"][0];
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&json), ["experiments", "verdicts"]);
    assert_eq!(keys(experiment), ["id", "scale", "points", "must_hold", "observed", "numbers", "verdicts"]);
    assert_eq!(keys(&json["verdicts"]), ["reproduced", "shape", "not reproduced"]);
    let counted: u64 =
        json["verdicts"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(counted, 12, "each published number has one verdict");
    for number in experiment["numbers"].as_array().unwrap() {
        assert!(Word::ALL.iter().any(|word| number["verdict"] == word.name()), "{number}");
        let is_sure = number["verdict"] == "reproduced" && number["is_weak"] == false;
        assert_eq!(number["why"].is_null(), is_sure, "{number}");
    }
    let point = experiment["points"].as_array().unwrap().iter().find(|point| {
        let hard = serde_json::json!({"handoff": "hard", "rate_pps": 25, "rtt_ms": 43});
        point["setting"] == hard && point["kind"] == "main" && point["metric"] == "lost_per_handoff"
    });
    let point = point.unwrap();
    assert_eq!(keys(point), ["setting", "kind", "metric", "published", "sim", "linux", "n"]);
    assert_eq!(point["setting"].to_string(), r#"{"handoff":"hard","rate_pps":25,"rtt_ms":43}"#);
    assert_eq!((&point["published"], &point["n"]), (&serde_json::json!(1.22), &serde_json::json!(10)));
    assert!(point["sim"].is_f64() && point["linux"].is_null());
    let metrics = ["lost_per_handoff", "duplicates_per_handoff", "handoff_latency_ms"];
    for point in experiment["points"].as_array().unwrap() {
        assert!(metrics.contains(&point["metric"].as_str().unwrap()));
        assert!(["main", "control", "sensitivity"].contains(&point["kind"].as_str().unwrap()));
    }
    for must_hold in experiment["must_hold"].as_array().unwrap() {
        assert_eq!(keys(must_hold), ["text", "backend", "holds", "value"]);
        assert_eq!(must_hold["backend"], "sim");
    }
}

#[test]
fn a_run_that_is_not_to_be_believed_is_invalid_and_does_not_hold() {
    let point = &(EXPERIMENTS[0].points)(Scale::Quick)[0];
    let mut outcome = run_point(point.plan(0, &[]).unwrap(), Backend::Sim, &HOW).unwrap();
    assert!(carry_out::judge_one(point, &outcome).is_valid());
    let late = || vec![Doubt::WallClockSet { process: "b1".to_owned() }];
    outcome.doubts = late();
    assert_eq!(carry_out::judge_one(point, &outcome).validity, Validity::Invalid(late()));
    outcome.ledger.sent += 1;
    assert_eq!(carry_out::judge_one(point, &outcome).validity, Validity::Untrusted(late()));
    outcome = run_point(point.plan(0, &[]).unwrap(), Backend::Sim, &HOW).unwrap();
    outcome.handoffs.pop();
    assert!(!carry_out::judge_one(point, &outcome).is_valid(), "a repetition is missing");
}

#[test]
fn a_run_is_repeated_where_another_may_do_better() {
    let late = Doubt::Late { process: "b1".to_owned(), p99_us: 3000.0, alone_us: None };
    let short = Doubt::Short { metric: "frames".to_owned(), values: 2, repetitions: 4 };
    let repeats = |doubts: &[&Doubt], backend, broken| {
        let validity = Validity::Invalid(doubts.iter().map(|doubt| (*doubt).clone()).collect());
        carry_out::worth_repeating(&validity, backend, broken).is_some()
    };
    assert!(repeats(&[&late], Backend::Linux, false) && repeats(&[&short], Backend::Linux, false));
    assert!(repeats(&[&late], Backend::Linux, true) && repeats(&[&short, &late], Backend::Linux, true));
    assert!(!repeats(&[&short], Backend::Linux, true), "as it was meant to be");
    assert!(
        !repeats(&[&late, &Doubt::Unbalanced], Backend::Linux, false),
        "a busy machine excuses no other doubt"
    );
    assert!(!repeats(&[&late], Backend::Sim, false));
    assert!(carry_out::worth_repeating(&Validity::Valid, Backend::Linux, false).is_none());
}

#[test]
fn a_backend_that_cannot_run_is_absent_and_its_report_says_why() {
    let report = reproduce(&EXPERIMENTS[0], Scale::Quick, &[Backend::Linux], &HOW).unwrap();
    assert!(report.backends.is_empty() && report.verdicts().is_empty());
    assert_eq!(report.absent.len(), 1);
}

/// A computed point has no runs. Its values come from valid points on the same backend; without one of them, the point is
/// invalid, and says what is missing.
#[test]
fn a_computed_point_needs_the_points_from_which_it_is_computed() {
    let experiment = select(&["mobile-ip/triangle".to_owned()]).unwrap()[0];
    let all = (experiment.points)(Scale::Quick);
    let with = |labels: &[&str]| {
        let wanted = all.iter().filter(|point| labels.contains(&point.label.as_str()));
        let points: Vec<Point> = wanted.cloned().collect();
        assert_eq!(points.len(), labels.len());
        measure_all(&points, Backend::Sim, &[], &HOW).unwrap()
    };
    let slope = "slope over hops 1 to 3";
    let [one, two, three] = ["full duplex, 1 hop", "full duplex, 2 hops", "full duplex, 3 hops"];
    let whole = with(&[one, two, three, slope]);
    let measured = whole.named(slope).unwrap();
    assert!(measured.is_valid() && measured.samples["lost_per_hop"].len() == 4);
    assert!(!measured.samples.contains_key("completion_s"), "it is not measured itself");
    let without = with(&[one, three, slope]);
    assert!(matches!(&without.named(slope).unwrap().validity, Validity::Invalid(why)
        if why.iter().any(|doubt| matches!(doubt, Doubt::NotMeasured { why } if why.contains("hops")))));
    let claims: Vec<Point> = all.into_iter().filter(|point| point.combine.is_some()).collect();
    assert_eq!(carry_out::span(&claims, Backend::Linux, 4), Duration::ZERO);
}

/// No figure draws a point that the tables call invalid, and each caption names it.
#[test]
fn an_invalid_point_is_in_no_figure() {
    let all = ALL.iter().find(|report| report.experiment.id == "mobile-ip/satellite-buffer").unwrap();
    let mut report = all.clone();
    let (point, measured) = report.backends[0].rows.iter_mut().find(|(_, row)| row.is_some()).unwrap();
    let label = point.label.clone();
    let doubt = Doubt::NotMeasured { why: "on purpose".to_owned() };
    measured.as_mut().unwrap().validity = Validity::Invalid(vec![doubt]);
    let [before, after] = [all, &report].map(figure::figures);
    assert!(before.iter().all(|figure| !figure.svg.contains("Not drawn")));
    // The distribution has a series for each point.
    let lines = |figures: &[Figure]| figures.iter().map(|figure| figure.csv.lines().count()).sum::<usize>();
    assert!(lines(&after) < lines(&before), "{label}");
    for figure in &after {
        let text: String = figure.svg.chars().filter(|c| !c.is_whitespace()).collect();
        assert!(text.contains("Notdrawn"), "{}", figure.name);
    }
}

#[test]
fn an_infinite_value_is_no_value() {
    use super::table::number;
    assert_eq!([1.25, f64::INFINITY].map(|value| number(value, 1)), ["1.2", "-"]);
}
