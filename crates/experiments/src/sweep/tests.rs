//! Tests of grids, of repetitions, and of continuing an interrupted sweep.

use super::*;
use recorder::run::simulate;
use std::fs;
use trace::Doubt;

const FIRST: &str = include_str!("../../../../scenarios/first.toml");
const TABLE: &str = "\n[sweep]\nrepetitions = 3\nset.\"radio.retune\" = [\"5ms\", \"9ms\"]\n";

fn sweep(text: &str, settings: &[&str]) -> Result<Option<(Sweep, Vec<Job>)>, ScenarioError> {
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    Sweep::of("first.toml", text, &settings, None, 1, Backend::Sim)
}

fn with_table() -> (Sweep, Vec<Job>) {
    sweep(&format!("{FIRST}{TABLE}"), &["station.delay_device=0|2"]).unwrap().unwrap()
}

fn document(sweep: &Sweep, job: &Job) -> String {
    sweep.plan(job).unwrap().document
}

fn done(sweep: &Sweep, number: usize, job: &Job) -> Done {
    Done::of(number, job, &simulate(sweep.plan(job).unwrap()).unwrap())
}

#[test]
fn two_points_that_are_the_same_are_refused() {
    let (file, text) = Scenario::find("first").unwrap();
    let of = |set: &str| Sweep::of(&file, &text, &[set.parse().unwrap()], Some(1), 1, Backend::Sim);
    assert!(of("radio.retune=5ms|6ms").is_ok());
    let refusal = of("radio.retune=5ms|5ms").unwrap_err().to_string();
    assert!(refusal.contains("`radio.retune` has the value 5ms twice"), "{refusal}");
}

#[test]
fn a_grid_has_every_combination_and_the_last_axis_changes_first() {
    let (sweep, jobs) = with_table();
    assert_eq!(sweep.name_of(&jobs[1]), "radio.retune=5ms, station.delay_device=0, seed 2");
    let keys: Vec<&str> = sweep.axes.iter().map(|axis| axis.key.as_str()).collect();
    assert_eq!(keys, ["radio.retune", "station.delay_device"]);
    let points: Vec<_> = (0..sweep.len()).map(|point| sweep.values(point).join(" ")).collect();
    assert_eq!(points, ["5ms 0", "5ms 2", "9ms 0", "9ms 2"]);
    assert_eq!(jobs.len(), 12);
    let seeds: Vec<u64> = jobs.iter().take(4).map(|job| job.seed).collect();
    assert_eq!(seeds, [1, 2, 3, 1], "every point has the same seeds");
    let fourth = document(&sweep, &jobs[3]);
    assert!(fourth.contains("delay_device = 2") && fourth.contains("5ms"), "{fourth}");
}

#[test]
fn what_asks_for_nothing_is_no_sweep() {
    assert!(sweep(FIRST, &["radio.retune=5ms"]).unwrap().is_none());
    let (alone, jobs) = sweep(FIRST, &["radio.retune=5ms|7ms"]).unwrap().unwrap();
    assert_eq!((alone.len(), alone.repetitions, jobs.len()), (2, 10, 20));
}

#[test]
fn what_is_set_from_outside_is_not_varied_or_by_its_own_values() {
    let text = format!("{FIRST}{TABLE}");
    let (pinned, jobs) = sweep(&text, &["radio.retune=7ms"]).unwrap().unwrap();
    assert_eq!((pinned.axes.len(), jobs.len()), (0, 3));
    assert!(document(&pinned, &jobs[0]).contains("retune = \"7ms\""));
    let (others, _) = sweep(&text, &["radio.retune=7ms|8ms|11ms"]).unwrap().unwrap();
    assert_eq!((others.axes.len(), others.len()), (1, 3));
    let twice = sweep(&text, &["radio.retune=7ms|8ms", "radio.retune=1ms|2ms"]).unwrap_err().to_string();
    assert!(twice.contains("`radio.retune` is given twice"), "{twice}");
}

#[test]
fn a_run_that_is_not_to_be_trusted_is_made_again() {
    let (sweep, jobs) = with_table();
    let folder = tempfile::tempdir().unwrap();
    let late = Done { doubts: vec![Doubt::Unbalanced], ..done(&sweep, 0, &jobs[0]) };
    Journal::open(folder.path(), &sweep).unwrap().note(&late).unwrap();
    assert!(Journal::open(folder.path(), &sweep).unwrap().is_empty());
}

#[test]
fn two_do_not_write_one_journal() {
    let (sweep, _) = with_table();
    let folder = tempfile::tempdir().unwrap();
    let _first = Journal::open(folder.path(), &sweep).unwrap();
    let refusal = Journal::open(folder.path(), &sweep).unwrap_err().to_string();
    assert!(refusal.contains("another sweep is writing this file"), "{refusal}");
}

#[test]
fn phases_are_spread_evenly_and_are_the_same_at_every_point() {
    let (sweep, jobs) = sweep(&(FIRST.to_owned() + TABLE), &[]).unwrap().unwrap();
    let start = |job: &Job| {
        document(&sweep, job)
            .lines()
            .find(|line| line.starts_with("start = \"") && line.ends_with("ns\""))
            .unwrap()
            .to_owned()
    };
    let starts: Vec<String> = jobs.iter().map(start).collect();
    assert_eq!(starts[..3], starts[3..]);
    assert!(starts[0] != starts[1] && starts[1] != starts[2]);
}

#[test]
fn mistakes_are_named() {
    for (table, expected) in [
        ("[sweep]\nset.\"radio.retune\" = \"5ms\"", "`sweep.set.radio.retune`: must be a list of values"),
        ("[sweep]\nset.\"radio.retune\" = []", "a list of values"),
        ("[sweep]\nrepetitions = 0", "from 1 to 1000000"),
        ("[sweep]\nrepetitions = 2000000", "must have from 1 to 1000000 runs in all, but has 2000000"),
        ("[sweep]\nrepeat = 3", "unknown field `repeat`"),
        ("[sweep]\nset.\"radio.speed\" = [1]", "with radio.speed=1: `radio.speed`: unknown field `speed`"),
    ] {
        let refusal = sweep(&format!("{FIRST}\n{table}\n"), &[]).unwrap_err().to_string();
        assert!(refusal.starts_with("first.toml, ") && refusal.contains(expected), "{table}: {refusal}");
    }
}

#[test]
fn an_interrupted_sweep_goes_on_where_it_stopped_and_gives_the_same() {
    let (sweep, jobs) = with_table();
    let all: Vec<Done> = jobs.iter().enumerate().map(|(number, job)| done(&sweep, number, job)).collect();
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::open(folder.path(), &sweep).unwrap();
    // The runs end in another order than that of the jobs. The journal's last line is incomplete.
    for number in [5, 0, 7] {
        journal.note(&all[number]).unwrap();
    }
    drop(journal);
    let file = folder.path().join("runs.jsonl");
    let torn = fs::read_to_string(&file).unwrap() + "{\"job\":3,\"poi";
    fs::write(&file, torn).unwrap();

    let journal = Journal::open(folder.path(), &sweep).unwrap();
    assert_eq!(journal.len(), 3);
    let rest: Vec<Done> = all.iter().filter(|run| !journal.has(run.job)).cloned().collect();
    assert_eq!(rest.len(), 9);
    for run in &rest {
        journal.note(run).unwrap();
    }
    let again = journal.all(rest);
    assert_eq!(again, all);
    assert_eq!((text(&sweep, &again), csv(&sweep, &again)), (text(&sweep, &all), csv(&sweep, &all)));
    let lines = fs::read_to_string(&file).unwrap();
    assert_eq!(lines.lines().count(), 13, "nothing torn stays");
}

#[test]
fn a_journal_that_was_changed_is_refused_with_its_line() {
    let (sweep, jobs) = with_table();
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::open(folder.path(), &sweep).unwrap();
    let mut doubtful = done(&sweep, 1, &jobs[1]);
    doubtful.doubts = vec![trace::Doubt::Appeared { place: "here".to_owned(), packets: 1 }];
    journal.note(&done(&sweep, 0, &jobs[0])).unwrap();
    journal.note(&doubtful).unwrap();
    drop(journal);
    assert_eq!(Journal::open(folder.path(), &sweep).unwrap().len(), 1);
    let file = folder.path().join("runs.jsonl");
    let whole = fs::read_to_string(&file).unwrap();
    let doubts = serde_json::to_string(&doubtful.doubts).unwrap();
    for (line, was, now) in
        [(2, "\"seed\":", "\"seed\":1"), (3, doubts.as_str(), "[]"), (3, "\"sha256\":\"", "\"sha256\":\"0")]
    {
        let changed: Vec<String> = (1..)
            .zip(whole.lines())
            .map(|(number, text)| if number == line { text.replacen(was, now, 1) } else { text.to_owned() })
            .collect();
        let changed = changed.join("\n") + "\n";
        assert_ne!(changed, whole, "{was}");
        fs::write(&file, &changed).unwrap();
        let refusal = Journal::open(folder.path(), &sweep).unwrap_err().to_string();
        assert!(refusal.contains(&format!("runs.jsonl: line {line}: was changed after")), "{refusal}");
        assert_eq!(fs::read_to_string(&file).unwrap(), changed, "nothing is cut from it");
    }
    fs::write(&file, [whole.as_bytes(), b"\xff\n"].concat()).unwrap();
    let refusal = Journal::open(folder.path(), &sweep).unwrap_err().to_string();
    assert!(refusal.starts_with("cannot read ") && refusal.contains("runs.jsonl"), "{refusal}");
}

#[test]
fn keys_that_a_sweep_varies_are_in_none_of_its_results() {
    let keys = ["000102030405060708090a0b0c0d0e0f", "101112131415161718191a1b1c1d1e1f"];
    let (_, text) = Scenario::find("mobile-ip/download").unwrap();
    let table = format!("{text}\n[sweep]\nrepetitions = 1\nset.\"mobile-ip.key\" = {keys:?}\n");
    let set = format!("mobile-ip.key={}", keys.join("|"));
    for (text, settings) in [(table.as_str(), vec![]), (text.as_str(), vec![set.as_str()])] {
        let (sweep, jobs) = super::tests::sweep(text, &settings).unwrap().unwrap();
        let shown = format!("{:?} {:?} {}", sweep.axes, sweep.values(1), sweep.name_of(&jobs[0]));
        assert!(sweep.len() == 2 && keys.iter().all(|key| !shown.contains(key)), "{shown}");
        assert_ne!(sweep.values(0), sweep.values(1));
        assert!(sweep.plan(&jobs[0]).unwrap().document.contains(keys[0]), "the run has the key itself");
    }
}

#[test]
fn the_journal_of_another_sweep_is_not_touched() {
    let (sweep, _) = with_table();
    let folder = tempfile::tempdir().unwrap();
    drop(Journal::open(folder.path(), &sweep).unwrap());
    let before = fs::read(folder.path().join("runs.jsonl")).unwrap();
    let other = super::tests::sweep(FIRST, &["radio.retune=5ms|7ms"]).unwrap().unwrap().0;
    let refusal = Journal::open(folder.path(), &other).unwrap_err().to_string();
    assert!(refusal.contains("has another sweep"), "{refusal}");
    assert_eq!(fs::read(folder.path().join("runs.jsonl")).unwrap(), before);
}

#[test]
fn a_csv_has_a_row_for_each_point_and_a_doubtful_run_does_not_count() {
    let (sweep, jobs) = with_table();
    let mut all: Vec<Done> = jobs.iter().enumerate().map(|(number, job)| done(&sweep, number, job)).collect();
    let n = |all: &[Done]| {
        let csv = csv(&sweep, all);
        let (_, outages) = csv.iter().find(|(name, _)| name == "outage_ms.hard").unwrap().clone();
        let rows: Vec<Vec<String>> =
            outages.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect();
        assert_eq!(
            (rows.len(), rows[0].join(",").as_str()),
            (5, "radio.retune,station.delay_device,n,median,lo,hi,p5,p95,mean")
        );
        rows[1][2].parse::<usize>().unwrap()
    };
    let before = n(&all);
    all[0].doubts.push(Doubt::Unbalanced);
    assert_eq!((before, n(&all)), (3, 2), "each run counts once, however many handoffs it has");
    assert!(text(&sweep, &all).contains("not counted: seed 1 at 5ms, 0: the ledger does not balance"));
}

#[test]
fn an_outage_without_end_survives_the_journal() {
    let (sweep, jobs) = with_table();
    let mut run = done(&sweep, 0, &jobs[0]);
    run.values.insert("outage_ms".to_owned(), vec![f64::INFINITY, 1.5]);
    let folder = tempfile::tempdir().unwrap();
    Journal::open(folder.path(), &sweep).unwrap().note(&run).unwrap();
    assert_eq!(Journal::open(folder.path(), &sweep).unwrap().all([]), [run]);
}

/// The schema and [`Sweep::of`] refuse the same `[sweep]` tables. Plans ignore `[sweep]`, so they cannot check it.
#[test]
fn what_the_schema_of_a_sweep_refuses_is_refused() {
    let validator = jsonschema::validator_for(&scenario::schema()).unwrap();
    for (table, is_right) in
        [("repetitions = 3", true), ("set.\"radio.retune\" = \"5ms\"", false), ("repetitions = 0", false)]
    {
        let text = FIRST.replacen("[radio]", &format!("[sweep]\n{table}\n[radio]"), 1);
        let document = serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap();
        assert_eq!(validator.is_valid(&document), is_right, "{table}");
        assert_eq!(Sweep::of("bad.toml", &text, &[], None, 1, Backend::Sim).is_ok(), is_right, "{table}");
    }
}

/// Values that are no numbers are categories of the x axis, in the order of the setting.
#[test]
fn a_sweep_over_words_has_a_figure() {
    let (sweep, jobs) = sweep_of_words();
    let runs = [0, 10].map(|number| done(&sweep, number, &jobs[number]));
    let all = figures(&sweep, &runs);
    let (_, figure) = all.iter().find(|(name, _)| name == "outage_ms").unwrap();
    assert_eq!(figure.x.names, ["cubic", "reno"]);
    assert_eq!(figure.series[0].points.iter().map(|point| point.x).collect::<Vec<_>>(), [0.0, 1.0]);
    let svg = figure.svg();
    assert!(svg.contains(">cubic</text>") && svg.contains(">reno</text>"), "{svg}");
    assert!(figure.csv().contains(",cubic,"), "{}", figure.csv());
}

fn sweep_of_words() -> (Sweep, Vec<Job>) {
    sweep(FIRST, &["host.correspondent.tcp.congestion=cubic|reno"]).unwrap().unwrap()
}

#[test]
fn a_stall_that_the_end_of_the_run_cut_is_marked() {
    let (sweep, jobs) = sweep_of_words();
    let mut run = done(&sweep, 0, &jobs[0]);
    let plain = text(&sweep, std::slice::from_ref(&run));
    assert!(!plain.contains("had no end"), "{plain}");
    run.values.insert("outage_ms.hard".to_owned(), vec![f64::INFINITY]);
    let marked = text(&sweep, &[run]);
    assert!(marked.contains("> longest_stall_ms") && marked.contains("  >"), "{marked}");
}
