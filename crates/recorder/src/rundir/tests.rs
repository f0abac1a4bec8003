//! A run directory has all data of a run, and appears complete or not at all.

use super::*;
use crate::run::{Backend, simulate};
use scenario::Plan;
use tshark::tshark;

#[path = "../../../../tests/support/tshark.rs"]
mod tshark;

const FIRST: &str = include_str!("../../../../scenarios/first.toml");

fn first() -> Outcome {
    let settings = ["station.delay_device=2", "radio.retune=7ms"].map(|text| text.parse().unwrap());
    simulate(Scenario::plan("first (built in)", FIRST, &settings, 7).unwrap()).unwrap()
}

/// Reads the directory of a run in the simulator, which has no report of a backend.
fn read(dir: &Path) -> Result<Outcome, ReadError> {
    super::read(dir, |_, _| unreachable!("a simulated run"))
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_written_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("deep/down/run");
    let outcome = first();
    let file = write(&outcome, &dir, &Options::default()).unwrap();
    assert_eq!(
        names(&dir),
        [
            "SHA256SUMS",
            "capture.pcapng",
            "events.jsonl",
            "figures",
            "flows.csv",
            "packets.csv",
            "records.jsonl",
            "run.json"
        ]
    );
    assert_eq!(names(dir.parent().unwrap()), ["run"], "nothing half-written stays");

    let back = read(&dir).unwrap();
    assert_eq!(back.records, outcome.records);
    assert_eq!((&back.ledger, &back.handoffs), (&outcome.ledger, &outcome.handoffs));
    assert_eq!((back.fingerprint, back.backend, back.plan.seed), (outcome.fingerprint, Backend::Sim, 7));
    assert!(file.files.contains(&"records.jsonl".to_owned()) && file.files.contains(&"run.json".to_owned()));
    assert_eq!(RunFile { files: file.files.clone(), ..RunFile::new(&back, true) }, file);
    assert!(outcome.plan.text.contains("000102030405060708090a0b0c0d0e0f"));
    assert!(!fs::read_to_string(dir.join("run.json")).unwrap().contains("000102030405060708090a0b0c0d0e0f"));
    let again = simulate(back.plan).unwrap();
    let repeated = (&again.ledger, &again.handoffs) == (&outcome.ledger, &outcome.handoffs);
    assert!(repeated, "but for its keys, the directory suffices to repeat the run");
}

#[test]
fn this_very_run_is_replaced_and_anything_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let outcome = first();
    write(&outcome, &dir, &Options::default()).unwrap();
    fs::write(dir.join("mynotes.txt"), "mine").unwrap();
    write(&outcome, &dir, &Options::default()).unwrap();
    assert!(dir.join("mynotes.txt").exists());
    let (plan, sim) = (&outcome.plan, Backend::Sim);
    check(&dir, plan, sim, false).unwrap();

    let refusal = |dir: &Path, plan: &Plan, backend, force| {
        let refused = check(dir, plan, backend, force).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        refused.to_string()
    };
    let mut others = vec![(plan.clone(), Backend::Linux)];
    let settings = ["station.delay_device=3", "radio.retune=7ms"].map(|text| text.parse().unwrap());
    others.push((Scenario::plan("first (built in)", FIRST, &settings, 7).unwrap(), sim));
    others.push((Plan { seed: 8, ..plan.clone() }, sim));
    others.push((Plan { text: format!("{FIRST}\n"), ..plan.clone() }, sim));
    for (plan, backend) in &others {
        let problem = refusal(&dir, plan, *backend, false);
        assert!(problem.contains("holds another run") && problem.contains("--force"), "{problem}");
        check(&dir, plan, *backend, true).unwrap();
    }

    // Without `--force`, a run is not replaced if a user changed one of its files.
    let flows = dir.join("flows.csv");
    let whole = fs::read(&flows).unwrap();
    fs::write(&flows, [&whole[..], b"mine\n"].concat()).unwrap();
    let problem = refusal(&dir, plan, sim, false);
    assert!(
        problem.contains("flows.csv was changed after the run") && problem.contains("--force"),
        "{problem}"
    );
    check(&dir, plan, sim, true).unwrap();
    fs::write(&flows, whole).unwrap();
    check(&dir, plan, sim, false).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&dir, &link).unwrap();
    let problem = refusal(&link, plan, sim, true);
    assert!(problem.contains("is a symbolic link; name the directory itself"), "{problem}");
    fs::remove_file(link).unwrap();
    let unread = folder.path().join("unread");
    fs::create_dir_all(unread.join("run.json")).unwrap();
    let problem = refusal(&unread, plan, sim, true);
    assert!(problem.contains("has a run.json that cannot be read"), "{problem}");
    fs::remove_dir_all(unread).unwrap();

    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    check(&empty, plan, sim, false).unwrap();
    let precious = folder.path().join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("run.json"), "{\"name\": \"something else\"}").unwrap();
    let refused = write(&outcome, &precious, &Options::default()).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
    fs::write(folder.path().join("file"), "").unwrap();
    for taken in [&precious, &folder.path().join("file")] {
        let problem = refusal(taken, plan, sim, true);
        assert!(problem.contains("is not a run directory; not overwritten"), "{problem}");
    }
    assert_eq!(names(&precious), ["run.json"]);
    assert_eq!(names(folder.path()), ["empty", "file", "precious", "run"]);
}

#[test]
fn a_damaged_directory_is_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    write(&first(), &dir, &Options::default()).unwrap();
    let records = fs::read_to_string(dir.join("records.jsonl")).unwrap();
    let refusal = || read(&dir).unwrap_err().to_string();

    let (_, cut) = records.split_once('\n').unwrap();
    fs::write(dir.join("records.jsonl"), cut).unwrap();
    assert!(refusal().contains("records.jsonl: the file was changed after the run"), "{}", refusal());
    digests::write(&dir).unwrap();
    assert!(refusal().contains("and run.json requires"), "{}", refusal());
    fs::write(dir.join("records.jsonl"), records.replacen("\"t\":", "\"tt\":", 1)).unwrap();
    digests::write(&dir).unwrap();
    assert!(refusal().contains("records.jsonl, line 1: "), "{}", refusal());
    let json = fs::read_to_string(dir.join("run.json")).unwrap();
    fs::write(dir.join("run.json"), json.replace("\"format\": 6", "\"format\": 99")).unwrap();
    assert!(
        refusal().contains("the run directory has format 99, and this program reads format 6"),
        "{}",
        refusal()
    );
    // Format 5 had another key for the backend.
    let older = json.replace("\"format\": 6", "\"format\": 5").replace("\"backend\": ", "\"world\": ");
    fs::write(dir.join("run.json"), older).unwrap();
    assert!(
        refusal().contains("the run directory has format 5, and this program reads format 6"),
        "{}",
        refusal()
    );
    assert!(
        read(folder.path()).unwrap_err().to_string().contains("give a directory that `wayfare run` wrote")
    );
}

/// A run directory is rejected if a byte in the middle of a file was changed, also in a file that is not read back. The
/// error has the file's name. Files that are not read back may be missing.
#[test]
fn a_file_that_was_changed_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    write(&first(), &dir, &Options::default()).unwrap();
    for name in
        ["run.json", "records.jsonl", "events.jsonl", "packets.csv", "capture.pcapng", "figures/handoffs.svg"]
    {
        let path = dir.join(name);
        let bytes = fs::read(&path).unwrap();
        let mut changed = bytes.clone();
        let middle = changed.len() / 2;
        changed[middle] = if changed[middle] == b'1' { b'2' } else { b'1' };
        fs::write(&path, changed).unwrap();
        let refused = read(&dir).unwrap_err().to_string();
        assert!(refused.contains(name), "{name}: {refused}");
        fs::write(&path, bytes).unwrap();
        read(&dir).unwrap();
    }
    fs::remove_file(dir.join("packets.csv")).unwrap();
    read(&dir).unwrap();
    let sums = fs::read_to_string(dir.join("SHA256SUMS")).unwrap();
    let twice = format!("{}  flows.csv\n{sums}", "0".repeat(64));
    for wrong in [
        sums.replace("  run.json", "  ../run.json"),
        sums.replace("  run.json", "  other"),
        String::new(),
        twice,
    ] {
        fs::write(dir.join("SHA256SUMS"), wrong).unwrap();
        assert!(matches!(read(&dir), Err(ReadError::Changed(_))));
    }
    let without: Vec<&str> = sums.lines().filter(|line| !line.ends_with("  flows.csv")).collect();
    fs::write(dir.join("SHA256SUMS"), without.join("\n")).unwrap();
    assert!(read(&dir).unwrap_err().to_string().contains("flows.csv"), "a line was taken out");
    fs::write(dir.join("SHA256SUMS"), sums).unwrap();
    read(&dir).unwrap();
    fs::rename(dir.join("flows.csv"), dir.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", dir.join("flows.csv")).unwrap();
    assert!(read(&dir).unwrap_err().to_string().contains("flows.csv"), "a link in the place of a file");
    fs::remove_file(dir.join("SHA256SUMS")).unwrap();
    assert!(read(&dir).unwrap_err().to_string().contains("SHA256SUMS"));
}

#[test]
fn every_hop_has_a_row_and_every_row_a_fate() {
    let folder = tempfile::tempdir().unwrap();
    let setting = "constant-rate.rate=200".parse().unwrap();
    let outcome = simulate(Scenario::plan("first.toml", FIRST, &[setting], 1).unwrap()).unwrap();
    let table = |hops: usize| {
        let dir = folder.path().join(hops.to_string());
        let file = write(&outcome, &dir, &Options { hops, ..Options::default() }).unwrap();
        let events = fs::read_to_string(dir.join("events.jsonl")).unwrap();
        assert_eq!(events.lines().count(), outcome.records.len());
        (fs::read_to_string(dir.join("packets.csv")).unwrap(), file.packets_complete)
    };
    let (all, complete) = table(2_000_000);
    let journeys = Journeys::new(&outcome.plan, &outcome.records);
    assert!(complete);
    assert_eq!(all.lines().count(), journeys.hops().len() + 1);
    assert!(!all.contains("not seen after"));
    assert!(all.lines().all(|line| !line.ends_with(',')));

    // At 200 packets/s, the last half second is far from every handoff.
    let (some, complete) = table(0);
    assert!(!complete && some.lines().count() < all.lines().count());
    let lost = |text: &str| text.lines().filter(|line| line.contains("lost at")).count();
    assert_eq!(lost(&some), lost(&all));
}

#[test]
fn equal_runs_make_equal_files() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| {
        let dir = folder.path().join(name);
        write(&first(), &dir, &Options::default()).unwrap();
        let files = ["run.json", "events.jsonl", "packets.csv", "capture.pcapng", "figures/handoffs.svg"];
        files.map(|file| fs::read(dir.join(file)).unwrap())
    });
    assert!(a == b);
}

#[test]
fn wireshark_reads_interfaces_and_fates_and_finds_nothing_malformed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let outcome = first();
    write(&outcome, &dir, &Options::default()).unwrap();
    let file = dir.join("capture.pcapng");
    let Some(malformed) = tshark(&file, &["-Y", "_ws.malformed"]) else { return };
    assert_eq!(malformed, "");
    let columns = ["-T", "fields", "-E", "separator=|", "-e", "frame.interface_name", "-e", "frame.cap_len"];
    let columns =
        [&columns[..], &["-e", "icmp.type", "-e", "icmp.checksum.status", "-e", "frame.comment"]].concat();
    let rows = tshark(&file, &columns).unwrap();
    let journeys = Journeys::new(&outcome.plan, &outcome.records);
    assert_eq!(rows.lines().count(), journeys.hops().len());
    for expected in [
        "mobile:air|84|253|1|consumed by b1",
        "b2:air|128|||lost at b2:air: receiver_left_cell",
        "correspondent:host|128|||delivered to mobile",
        "mobile:host|128|||delivered to mobile",
    ] {
        assert!(rows.lines().any(|row| row == expected), "`{expected}`");
    }
}

/// With more events than fit, the figure draws none, and its caption says so. The CSV file has all events. An event
/// causes a hole.
#[test]
fn a_figure_says_that_it_draws_no_events() {
    let text = |events: usize| {
        let one = |number: usize| {
            let (kind, at) = (if number.is_multiple_of(2) { "cut" } else { "restore" }, 1300 + 100 * number);
            format!("[[event]]\nat = \"{at}ms\"\nkind = \"{kind}\"\nwire = \"internet\"\n")
        };
        format!("{FIRST}\n{}", (0..events).map(one).collect::<String>())
    };
    for (events, is_drawn) in [(4, true), (26, false)] {
        let outcome = simulate(Scenario::plan("x.toml", &text(events), &[], 7).unwrap()).unwrap();
        assert!(!outcome.holes.is_empty());
        let figure = sequence(&outcome);
        let (svg, csv) = (figure.svg(), figure.csv());
        assert_eq!(svg.contains("cut of wire internet") || svg.contains("cut of wire"), is_drawn);
        assert_eq!(figure.caption.contains("events of the scenario are too many to be drawn"), !is_drawn);
        assert_eq!(
            csv.lines().filter(|line| line.contains("cut of wire internet")).count(),
            events / 2,
            "{csv}"
        );
        assert!(csv.contains("\nhole,") && svg.contains("outage without a handoff"));
    }
}
