//! `wayfare compare [PROTOCOL ...]`: compares the protocols in the same scenario.

use crate::Failure;
use crate::measuring::{self, Backends, On, few};
use crate::output::{Format, print};
use experiments::contest::{self, Comparison, Course, Repeat};
use experiments::reproduce::{NotRun, Scale};
use recorder::kept::Folder;
use recorder::run::Backend;
use std::path::PathBuf;
use wire::Duration;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Protocols, or variants by their names in the output of `--format json`. The name of a protocol means all its variants:
    /// `mobile-ip`, `cellular-ip` [default: all].
    #[arg(value_name = "PROTOCOL")]
    who: Vec<String>,
    /// The backend: the simulator, Linux, or both.
    #[arg(long, value_enum, default_value_t = On::Sim)]
    on: On,
    /// Make 6 runs of each leg on Linux instead of 20: with fewer than 6 there is no confidence interval. The runs then
    /// take about two minutes. In the simulator the option changes nothing. There, each leg has 10 runs. It has 20 or
    /// 40 if the interval of an outage is otherwise not narrower than 15 % of the median.
    #[arg(long)]
    quick: bool,
    /// Make N runs of each leg, on every backend.
    #[arg(long, value_name = "N", conflicts_with = "quick", value_parser = few, allow_negative_numbers = true)]
    runs: Option<u16>,
    /// Disable each mechanism in the simulator, and check that the requirements that depend on it then fail.
    #[arg(long, conflicts_with_all = ["on", "quick", "runs", "who"])]
    self_test: bool,
    /// The number of runs at the same time.
    #[arg(long, default_value_t = 4, value_parser = few, allow_negative_numbers = true)]
    jobs: u16,
    /// The folder for `compare.csv`, `compare.json` and `compare.svg` [default: runs/compare, or runs/compare.2 and so
    /// on if files there must not be replaced].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace files that Wayfare did not write, or that were changed after Wayfare wrote them.
    #[arg(long)]
    force: bool,
    /// The format of the output.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(crate) fn compare(args: &Args) -> Result<(), Failure> {
    let course = contest::course().map_err(|error| Failure::Usage(error.to_string()))?;
    let means = Backends::new(args.jobs)?;
    if args.self_test {
        return self_test(course, &means);
    }
    let wanted = contest::select(course, &args.who).map_err(Failure::Usage)?;
    let usual = contest::repetitions(if args.quick { Scale::Quick } else { Scale::Default });
    let repeat = args.runs.map_or(Repeat::UntilNarrow(usual), |runs| Repeat::Fixed(runs.into()));
    let names = FILES.map(|end| format!("compare.{end}"));
    let names = names.each_ref().map(String::as_str);
    let mut folder = measuring::folder(args.out.as_deref(), "compare", &names, args.force)?;
    let on_linux = args.on.backends().contains(&Backend::Linux);
    let estimate = if on_linux {
        contest::span(course, &wanted, repeat.on_linux(), args.jobs.into())
    } else {
        Duration::ZERO
    };
    let comparison = means
        .carry_out("compare", estimate, |how| {
            contest::compare(course, &wanted, repeat, args.on.backends(), how)
        })
        .map_err(|problem| means.failure(problem))?;
    for (backend, why) in &comparison.absent {
        args.on.without(format!("{}: {why}", backend.name()))?;
    }
    let json = format!("{:#}\n", contest::json(&comparison));
    match args.format {
        Format::Text => print(&contest::text(&comparison)),
        Format::Json => print(&json),
    }
    keep(args, &mut folder, &comparison, &json)?;
    verdict(&comparison)
}

fn verdict(comparison: &Comparison) -> Result<(), Failure> {
    let untrusted = comparison.untrusted();
    if !untrusted.is_empty() {
        return Err(Failure::Untrusted(untrusted));
    }
    let verdicts = contest::verdicts(comparison);
    let failed: Vec<_> = verdicts.iter().filter(|verdict| !verdict.holds()).collect();
    if failed.iter().any(|verdict| !verdict.invalid) {
        return Err(Failure::DidNotHold);
    }
    // The requirements in `failed` have no valid run, so it is not known whether they hold.
    if failed.is_empty() { Ok(()) } else { Err(Failure::Untrusted(comparison.invalid())) }
}

fn self_test(course: &'static Course, means: &Backends) -> Result<(), Failure> {
    let tests = means.carry_out("compare", Duration::ZERO, |how| contest::self_test(course, how)).map_err(
        |error| match error {
            NotRun::Cannot(why) => Failure::Machine(why),
            NotRun::Broken(why) => means.failure(why),
        },
    )?;
    print(&contest::self_test_text(&tests));
    // Without a breaker, nothing was tested.
    let has_broken = !tests.is_empty() && tests.iter().all(contest::Broken::broke);
    if has_broken { Ok(()) } else { Err(Failure::DidNotHold) }
}

/// The suffixes of the files that `compare` writes.
const FILES: [&str; 3] = ["csv", "json", "svg"];

fn keep(args: &Args, folder: &mut Folder, comparison: &Comparison, json: &str) -> Result<(), Failure> {
    let texts = [&contest::csv(comparison), json, &contest::svg(comparison)];
    for (end, text) in FILES.into_iter().zip(texts) {
        let path = measuring::keep(folder, &format!("compare.{end}"), text)?;
        if args.format == Format::Text {
            print(&format!("{end}: {}\n", path.display()));
        }
    }
    Ok(())
}
