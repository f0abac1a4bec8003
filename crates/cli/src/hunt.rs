//! `wayfare hunt [PROTOCOL]`: a search for violated requirements in random scenarios. A judge checks one requirement
//! (docs/hunt.md).

mod files;
mod known;
mod on_linux;

use crate::measuring::{count, few, seed, size};
use crate::output::{Progress, print, tell};
use crate::{Failure, interrupt};
use ::hunt::Judge;
use ::hunt::draft::Protocol;
use ::hunt::draw::{Size, draw};
use ::hunt::plant::Plant;
use ::hunt::search::{self, Found};
use ::hunt::shrink::shrink;
use ::hunt::write;
use known::Known;
use os::Clock;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The protocol: cellular-ip, mobile-ip, sigma or indirect-tcp [default: all].
    protocol: Option<Protocol>,
    /// The number of random scenarios of each protocol.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = count, allow_negative_numbers = true)]
    seeds: u64,
    /// The first random seed.
    #[arg(long, value_name = "BASE", default_value_t = 1, value_parser = seed, allow_negative_numbers = true)]
    seed: u64,
    /// The number of runs at the same time [default: one per processor in the simulator, 4 on Linux].
    #[arg(long, value_parser = few, allow_negative_numbers = true)]
    jobs: Option<u16>,
    /// The folder for scenario files of violations.
    #[arg(long, value_name = "DIR", default_value = "runs/hunt")]
    out: PathBuf,
    /// A TOML file of open findings: `[[known]]` with `protocol`, `judge`, `finding`, and `found` of `of` seeds. The
    /// hunt prints and counts them. It fails if an open finding occurs significantly more often than recorded, or if a
    /// frequent open finding does not occur.
    #[arg(long, value_name = "FILE", conflicts_with = "self_test")]
    known: Option<PathBuf>,
    /// The number of violations of each judge (check of a requirement) that are shrunk and written to files.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = size, allow_negative_numbers = true)]
    shrink: usize,
    /// The backend: the simulator or Linux. On Linux, scenarios are smaller, and violations are not shrunk.
    #[arg(long, value_enum, default_value_t = On::Sim, conflicts_with = "self_test")]
    on: On,
    /// Print the scenario of the first seed, and run nothing.
    #[arg(long, requires = "protocol", conflicts_with = "self_test")]
    show: bool,
    /// Plant mistakes in the results of runs, and check that the hunt finds each mistake.
    #[arg(long, conflicts_with_all = ["protocol", "seeds", "seed"])]
    self_test: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum On {
    Sim,
    Linux,
}

impl On {
    const fn size(self) -> &'static Size {
        match self {
            Self::Sim => &Size::SIMULATOR,
            Self::Linux => &Size::LINUX,
        }
    }

    fn jobs(self) -> usize {
        match self {
            Self::Sim => std::thread::available_parallelism().map_or(1, usize::from),
            Self::Linux => on_linux::JOBS,
        }
    }
}

/// The number of seeds within which a planted mistake must be found.
const SELF_TEST: u64 = 200;

pub(crate) fn hunt(args: &Args) -> Result<(), Failure> {
    if args.self_test {
        return self_test();
    }
    if args.seed.checked_add(args.seeds - 1).is_none() {
        let last = u64::MAX - (args.seeds - 1);
        let why = format!(
            "--seed {} and --seeds {}: there are no seeds beyond {}; allowed for --seed: at most {last}",
            args.seed,
            args.seeds,
            u64::MAX
        );
        return Err(Failure::Usage(why));
    }
    let protocols = args.protocol.map_or_else(|| Protocol::ALL.to_vec(), |protocol| vec![protocol]);
    if args.show {
        let draft = |protocol: &Protocol| draw(*protocol, args.seed, args.on.size());
        for protocol in &protocols {
            print(&write::scenario(&draft(protocol)));
        }
        return Ok(());
    }
    if args.on == On::Linux && args.known.is_some() {
        let why = "--known is allowed only with --on sim, because the findings in the file were counted in the simulator";
        return Err(Failure::Usage(why.to_owned()));
    }
    let known = args.known.as_deref().map_or_else(|| Ok(Vec::new()), Known::read)?;
    files::check(&args.out)?;
    let one = |protocol| one(args, protocol, &known);
    let found = protocols.into_iter().map(one).collect::<Result<Vec<_>, Failure>>()?;
    if found.iter().any(|(violations, _)| *violations > 0) {
        return Err(Failure::DidNotHold);
    }
    if found.iter().any(|(_, is_incomplete)| *is_incomplete) {
        Err(Failure::no_result("some seeds are inconclusive, so they could not be checked".to_owned()))
    } else {
        Ok(())
    }
}

/// Runs the random scenarios of one protocol, and prints the violations. Returns the number of failures that [`report`]
/// counts, and whether a seed could not be evaluated.
fn one(args: &Args, protocol: Protocol, known: &[Known]) -> Result<(usize, bool), Failure> {
    let stop = interrupt::flag()?;
    let jobs = args.jobs.map_or_else(|| args.on.jobs(), usize::from);
    let clock = Clock::start();
    let progress = RefCell::new(Progress::new(usize::try_from(args.seeds).unwrap_or(usize::MAX)));
    let each = |_| progress.borrow_mut().step();
    let (found, is_incomplete) = match args.on {
        On::Sim => (search::search(protocol, args.seed, args.seeds, jobs, &stop, &each), false),
        On::Linux => on_linux::search(protocol, (args.seed, args.seeds), jobs, &args.out, &stop, &each)?,
    };
    drop(progress);
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    let seconds = clock.now().as_secs_f64().max(1e-3);
    let rate = args.seeds as f64 / seconds;
    match args.on {
        On::Sim => tell!("hunt {protocol}: {rate:.0} seeds a second"),
        On::Linux => tell!("hunt {protocol}: {:.1} seeds a minute", rate * 60.0),
    }
    let invalid = found.iter().filter(|found| found.refused.is_some()).count();
    print(&format!(
        "{protocol}: {} seeds from {} on, {} with a violation, {invalid} with an invalid scenario\n",
        args.seeds,
        args.seed,
        found.len() - invalid
    ));
    Ok((report(args, protocol, &found, known)?, is_incomplete))
}

/// Prints the findings of each judge. Returns the number of failures: invalid scenarios, known findings that must occur
/// and did not, and, for each judge, the seeds with a violation. The seeds do not count if the violation is known, and
/// occurs at no more seeds than allowed.
fn report(args: &Args, protocol: Protocol, found: &[Found], known: &[Known]) -> Result<usize, Failure> {
    let mut by_judge: BTreeMap<Judge, Vec<&Found>> = BTreeMap::new();
    for found in found {
        for violation in &found.violations {
            by_judge.entry(violation.judge).or_default().push(found);
        }
        if let Some(why) = &found.refused {
            print(&format!("  seed {}: not a valid scenario: {why}\n", found.seed));
        }
    }
    let mut failed: usize = found.iter().filter(|found| found.refused.is_some()).count();
    let gone =
        |known: &&Known| known.must_appear(protocol, args.seeds) && !by_judge.contains_key(&known.judge());
    for known in known.iter().filter(gone) {
        print(&format!(
            "  known: {}: this finding did not occur; remove its entry from the file of --known: {}\n",
            known.judge(),
            known.finding
        ));
        failed += 1;
    }
    for (judge, all) in by_judge {
        let open = known.iter().find(|known| known.is_about(protocol, judge));
        if let Some(open) = open.filter(|open| all.len() as u64 <= open.most(args.seeds)) {
            let (most, finding) = (open.most(args.seeds), &open.finding);
            let seeds: Vec<_> = all.iter().map(|found| found.seed.to_string()).collect();
            let seeds = seeds.join(" ");
            print(&format!(
                "  known: {judge}: found at {} seeds (at most {most} are allowed): {seeds}: {finding}\n",
                all.len()
            ));
            continue;
        }
        failed += all.len();
        let seeds: Vec<_> = all.iter().map(|found| found.seed.to_string()).collect();
        print(&format!("  {judge}: {} seeds: {}\n", all.len(), seeds.join(" ")));
        for found in all.into_iter().take(args.shrink) {
            smallest(args, found, judge)?;
        }
    }
    Ok(failed)
}

/// Shrinks the scenario of a seed, and writes it to a file. A scenario from Linux is not shrunk.
fn smallest(args: &Args, found: &Found, judge: Judge) -> Result<(), Failure> {
    let violation = found.violations.iter().find(|violation| violation.judge == judge);
    let Some(violation) = violation else { return Ok(()) };
    print(&format!("    seed {}: {}\n", found.seed, violation.what));
    if args.on == On::Linux {
        let path = files::keep(&args.out, &found.draft, judge, &violation.what)?;
        print(&format!("      {}\n", path.display()));
        return Ok(());
    }
    let smallest = shrink(&found.draft, judge);
    let what = match ::hunt::run::run(&smallest, None) {
        ::hunt::run::Verdict::Ran(found) => found.into_iter().find(|violation| violation.judge == judge),
        ::hunt::run::Verdict::Refused(_) => None,
    };
    let what = what.map_or_else(String::new, |violation| violation.what);
    let path = files::keep(&args.out, &smallest, judge, &what)?;
    print(&format!("      {}\n", path.display()));
    Ok(())
}

fn self_test() -> Result<(), Failure> {
    let mut missed = 0;
    for plant in Plant::ALL {
        let judge = plant.judge();
        match search::finds(plant, SELF_TEST) {
            Some((protocol, seed)) => {
                print(&format!("{plant:?}: found by `{judge}` in {protocol}, at seed {seed}\n"));
            }
            None => {
                missed += 1;
                print(&format!("{plant:?}: not found by `{judge}` within {SELF_TEST} seeds\n"));
            }
        }
    }
    if missed > 0 { Err(Failure::DidNotHold) } else { Ok(()) }
}
