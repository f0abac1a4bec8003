//! `wayfare scale`: speed and memory against the number of hosts.

use crate::measuring::{few, folder, keep};
use crate::output::{Format, print};
use crate::{Failure, interrupt};
use draw::{Axis, Csv, Point, PointFigure, Series, Style, Table};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The numbers of mobile hosts, with commas between them.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "100,1000,10000,100000,1000000",
        value_parser = mobiles)]
    hosts: Vec<u32>,
    /// Set a value of the scenario `scale/tree`, for example `duration=20s`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The number of runs of each size. The table and the figure show the fastest run, because other load on the
    /// machine can only slow a run down.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = few, allow_negative_numbers = true)]
    runs: u16,
    /// The folder for `scale.svg` and `scale.csv`.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace files that Wayfare did not write, or that were changed after Wayfare wrote them.
    #[arg(long, requires = "out")]
    force: bool,
    /// The format of the output: `json` prints one line for each run.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

fn mobiles(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| {
        format!(
            "allowed: whole numbers from 1 to {}, with commas between them, for example 100,1000",
            u32::MAX
        )
    })
}

/// The result of one run: the line of JSON that `run --no-records` prints, and the values from this line that are
/// shown.
struct Measured {
    line: String,
    mobiles: u32,
    hosts: f64,
    simulated: f64,
    setup: f64,
    wall: f64,
    events: f64,
    peak: f64,
}

pub(crate) fn scale(args: &Args) -> Result<(), Failure> {
    let mut before = std::collections::BTreeSet::new();
    if let Some(twice) = args.hosts.iter().find(|number| !before.insert(**number)) {
        return Err(Failure::Usage(format!("--hosts: {twice} is given twice; give each number once")));
    }
    interrupt::flag()?;
    let folder =
        args.out.as_deref().map(|out| folder(Some(out), "scale", &["scale.svg", "scale.csv"], args.force));
    let folder = folder.transpose()?;
    let mut all = Vec::new();
    for mobiles in &args.hosts {
        let mut best: Option<Measured> = None;
        for _ in 0..args.runs {
            let measured = measure(*mobiles, &args.set)?;
            if args.format == Format::Json {
                print(&measured.line);
            }
            if best.as_ref().is_none_or(|best| measured.wall < best.wall) {
                best = Some(measured);
            }
        }
        all.extend(best);
    }
    if args.format == Format::Text {
        print(&table(&all));
    }
    let Some(mut folder) = folder else { return Ok(()) };
    keep(&mut folder, "scale.svg", &figure(&all).svg())?;
    keep(&mut folder, "scale.csv", &csv(&all))?;
    Ok(())
}

/// Executes a run in a separate process, because the system reports the largest memory of a whole process.
fn measure(mobiles: u32, settings: &[String]) -> Result<Measured, Failure> {
    let machine = |error: std::io::Error| Failure::Machine(error.to_string());
    let mut command = Command::new(std::env::current_exe().map_err(machine)?);
    command.args(["run", "scale/tree", "--no-records", "--format", "json"]);
    command.args(["--set", &format!("tree.hosts={mobiles}")]);
    for setting in settings {
        command.args(["--set", setting]);
    }
    let worker = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let worker = worker.spawn().map_err(machine)?;
    let output = interrupt::with_worker(worker.id(), || worker.wait_with_output()).map_err(machine)?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    match output.status.code() {
        Some(0) => {}
        Some(2) => return Err(Failure::Usage(said.trim_start_matches("error: ").to_owned())),
        _ => return Err(Failure::no_result(format!("{mobiles} hosts: {}: {said}", output.status))),
    }
    let line = String::from_utf8_lossy(&output.stdout).into_owned();
    read(mobiles, line).ok_or_else(|| {
        Failure::no_result(format!(
            "{mobiles} mobile hosts: the run printed no JSON with the expected values"
        ))
    })
}

fn read(mobiles: u32, line: String) -> Option<Measured> {
    let json: serde_json::Value = serde_json::from_str(&line).ok()?;
    let number = |key: &str| json.get(key)?.as_f64();
    Some(Measured {
        mobiles,
        hosts: number("hosts")?,
        simulated: number("simulated_s")?,
        setup: number("setup_s")?,
        wall: number("wall_s")?,
        events: number("events")?,
        peak: number("peak_bytes")?,
        line,
    })
}

impl Measured {
    fn speed(&self) -> f64 {
        self.simulated / self.wall
    }

    fn row(&self) -> [String; 7] {
        [
            self.mobiles.to_string(),
            self.hosts.to_string(),
            self.events.to_string(),
            format!("{:.3}", self.setup),
            format!("{:.4}", self.wall),
            format!("{:.2}", self.speed()),
            format!("{:.1}", self.peak / 1_048_576.0),
        ]
    }
}

const HEADERS: [&str; 7] =
    ["mobile hosts", "all hosts", "events", "setup s", "wall s", "simulated s in a second", "peak MiB"];

fn table(all: &[Measured]) -> String {
    let mut table = Table::new(HEADERS);
    for measured in all {
        table.push(measured.row());
    }
    table.render()
}

fn csv(all: &[Measured]) -> String {
    let mut csv = Csv::default();
    csv.row(HEADERS);
    for measured in all {
        csv.row(measured.row());
    }
    csv.finish()
}

fn figure(all: &[Measured]) -> PointFigure {
    let point =
        |measured: &Measured| Point { x: f64::from(measured.mobiles), y: measured.speed(), whisker: None };
    PointFigure {
        title: "Speed of the simulator against the number of mobile hosts".to_owned(),
        x: Axis::new("mobile hosts", "").in_decades(),
        y: Axis::new("simulated seconds per second of wall time", "").in_decades(),
        series: vec![Series {
            name: "scale/tree".to_owned(),
            style: Style::Simulator,
            points: all.iter().map(point).collect(),
        }],
        caption:
            "The scenario is scale/tree. Packets have real bytes, and the ledger counts them. No records are kept. The run uses one thread."
                .to_owned(),
    }
}
