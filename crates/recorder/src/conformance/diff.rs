//! A comparison of two runs, as text.

use super::{Comparison, Divergence, Said, compare};
use crate::flow::Flow;
use crate::run::{Backend, Outcome};
use crate::rundir;
use std::fmt::Write;
use trace::{Record, What};
use wire::Packet;

/// The result of [`diff`]: whether two runs are equal, and a text with their first differences.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Whether the runs are equal. [`compare`] must find no divergence. Two simulator runs of the same plan must also
    /// have equal fingerprints, or equal records if their fingerprints are of different versions. Other runs must have no
    /// message that cannot be read.
    pub equal: bool,
    /// The lines that `wayfare diff` prints, each with a newline at its end.
    pub text: String,
}

/// Returns a figure of one handoff (numbered from 1) in both runs, side by side. `None` if a run has no handoff with
/// this number.
pub fn figure(runs: [&Outcome; 2], handoff: usize) -> Option<draw::SideBySideFigure> {
    let plan = &runs[0].plan;
    let of_run = |run: &Outcome| {
        let figure = rundir::sequence(run);
        let has = figure.handoffs.iter().any(|one| one.number == handoff);
        has.then(|| (format!("{}, seed {}", run.backend.title(), run.plan.seed), figure))
    };
    let beside = runs.into_iter().map(of_run).collect::<Option<Vec<_>>>()?;
    Some(draw::SideBySideFigure {
        title: format!("{}: handoff {handoff} in both runs", plan.name),
        runs: beside,
        handoff,
        caption: plan.about.clone(),
    })
}

/// Compares two runs. Returns an error if the runs have different hosts.
pub fn diff(runs: [&Outcome; 2]) -> Result<Difference, String> {
    let [a, b] = runs;
    let hosts = runs.map(|run| run.plan.host_names());
    if hosts[0] != hosts[1] {
        let [ours, theirs] = hosts.map(|names| names.join(", "));
        return Err(format!(
            "the hosts of both runs must be the same; the first run has {ours}, and the second run has {theirs}"
        ));
    }
    let mut text = String::new();
    for (name, run) in ["first", "second"].iter().zip(runs) {
        let plan = &run.plan;
        let settings: Vec<String> = plan.settings.iter().map(|setting| format!(" --set {setting}")).collect();
        let settings = settings.concat();
        let _ = writeln!(
            text,
            "{:7} {} on {}, seed {}{settings}",
            format!("{name}:"),
            plan.name,
            run.backend.name(),
            plan.seed
        );
        for doubt in &run.doubts {
            let _ = writeln!(text, "        not to be trusted: {doubt}");
        }
    }
    text.push('\n');
    text.push_str(&delivered(runs));
    let numbers = runs.map(|run| run.plan.numbers());
    let comparison = compare([(&a.records, &numbers[0]), (&b.records, &numbers[1])]);
    let unreadable = comparison.unreadable;
    let repeats = is_repetition(runs);
    let is_unlike = repeats == Ok(true) && are_unlike(runs);
    let is_complete = unreadable == 0 || repeats == Ok(true);
    text.push_str(&match &comparison.divergence {
        Some(divergence) => diverges(runs, divergence),
        None => equal(&comparison, is_unlike, is_complete),
    });
    if unreadable > 0 {
        let _ = writeln!(text, "{unreadable} messages are not compared, because they cannot be read");
    }
    if comparison.cut_off > 0 {
        let _ = writeln!(
            text,
            "{} messages and handoffs at the end of only one run are not compared",
            comparison.cut_off
        );
    }
    match repeats {
        Ok(true) => text.push_str(&fingerprints(runs)),
        Ok(false) => {}
        Err(what) => {
            let _ = writeln!(text, "records are not compared: the runs have different {what}");
        }
    }
    Ok(Difference { equal: comparison.divergence.is_none() && !is_unlike && is_complete, text })
}

/// Describes a comparison that found no divergence in the messages. `is_unlike`: two runs of the simulator with the same plan differ,
/// which must not be. `is_complete`: all messages could be read.
fn equal(comparison: &Comparison, is_unlike: bool, is_complete: bool) -> String {
    let Comparison { messages, nodes, .. } = comparison;
    if is_unlike {
        return format!(
            "divergence, but not in the {messages} control messages that were compared at {nodes} nodes\n"
        );
    }
    if !is_complete {
        return format!(
            "no divergence in the {messages} messages at {nodes} nodes that were compared, but not all could be compared\n"
        );
    }
    let refreshes = comparison.refreshes.first + comparison.refreshes.second;
    format!(
        "no divergence: {messages} messages at {nodes} nodes compared, {refreshes} periodic route-updates excluded\n"
    )
}

/// Describes what the applications received in each run. These numbers do not decide whether the runs are equal.
fn delivered([a, b]: [&Outcome; 2]) -> String {
    let mut text = String::new();
    if a.flows.len() != b.flows.len() {
        let _ = writeln!(
            text,
            "delivered: {} flows in the first run, {} in the second",
            a.flows.len(),
            b.flows.len()
        );
    }
    for (number, (ours, theirs)) in (1..).zip(a.flows.iter().zip(&b.flows)) {
        let ends = [&ours.from, &ours.to].map(|end| a.host(end.host));
        let said = |flow: &Flow| format!("{} bytes, {} packets lost", flow.bytes, flow.lost);
        let way = format!("flow {number}, {} > {}", ends[0], ends[1]);
        let _ = writeln!(text, "delivered: {way}: first run {}; second run {}", said(ours), said(theirs));
    }
    text
}

/// Returns whether both are simulator runs of the same scenario, settings, seed and phase. The error names what
/// differs between two simulator runs.
fn is_repetition([a, b]: [&Outcome; 2]) -> Result<bool, &'static str> {
    if [a.backend, b.backend] != [Backend::Sim; 2] {
        return Ok(false);
    }
    match (&a.plan, &b.plan) {
        (a, b) if a.settings != b.settings => Err("settings"),
        (a, b) if a.seed != b.seed || a.repetition != b.repetition => Err("seeds or phases"),
        (a, b) if a.document != b.document => Err("scenario files"),
        _ => Ok(true),
    }
}

fn diverges(runs: [&Outcome; 2], found: &Divergence) -> String {
    let host = runs[0].host(found.host);
    let mut text = format!("divergence at {host}, {} {}: {}\n", found.sequence, found.place, found.why);
    for ((name, said), run) in ["first", "second"].iter().zip([&found.first, &found.second]).zip(runs) {
        let said = match said {
            Some(Said { at, message: Some(message), .. }) => {
                format!("{at} s  {}", message.text(&run.names()))
            }
            Some(Said { at, what, .. }) => format!("{at} s  {what}"),
            None => "nothing".to_owned(),
        };
        let _ = writeln!(text, "  {:7} {said}", format!("{name}:"));
    }
    text
}

/// Returns whether two simulator runs differ: by their fingerprints, or by their records if the fingerprints are of
/// different versions.
fn are_unlike([a, b]: [&Outcome; 2]) -> bool {
    match (a.fingerprint, b.fingerprint) {
        (Some(one), Some(other)) if one.version != other.version => a.records != b.records,
        (one, other) => one != other,
    }
}

/// Describes the fingerprints of two simulator runs of the same plan, and the first record that differs.
fn fingerprints(runs: [&Outcome; 2]) -> String {
    let [a, b] = runs;
    let number = |run: &Outcome| {
        run.fingerprint.map_or_else(|| "none".to_owned(), |fingerprint| fingerprint.to_string())
    };
    if a.fingerprint == b.fingerprint {
        return format!("same fingerprint {}\n", number(a));
    }
    let mut text = if are_unlike(runs) {
        format!("fingerprints differ: {} and {}\n", number(a), number(b))
    } else {
        format!("same records; fingerprints of different versions: {} and {}\n", number(a), number(b))
    };
    let longest = a.records.len().max(b.records.len());
    let unlike = (0..longest).find(|index| a.records.get(*index) != b.records.get(*index));
    match unlike {
        Some(index) => {
            let _ = writeln!(text, "first differing record, {} of {longest}:", index + 1);
            for (name, run) in ["first:", "second:"].iter().zip(runs) {
                let record = run.records.get(index);
                let record = record.map_or_else(|| "nothing".to_owned(), |record| line(run, record));
                let _ = writeln!(text, "  {name:7} {record}");
            }
            let at =
                |run: &Outcome| run.records.get(index).and_then(packet).map(|packet| packet.bytes.clone());
            if let (Some(ours), Some(theirs)) = (at(a), at(b))
                && let Some(unlike) = ours.iter().zip(&theirs).position(|(a, b)| a != b)
            {
                let _ = writeln!(
                    text,
                    "  the first difference is in byte {unlike} of the packet, counted from 0"
                );
            }
        }
        None => text.push_str("no record differs\n"),
    }
    text
}

fn packet(record: &Record) -> Option<&Packet> {
    match &record.what {
        What::Sent(_, packet) | What::Received(_, packet) => Some(packet),
        _ => None,
    }
}

fn line(run: &Outcome, record: &Record) -> String {
    let text = match &record.what {
        What::Sent(iface, packet) => format!("sent on interface {}: {packet:?}", iface.0),
        What::Received(iface, packet) => format!("received on interface {}: {packet:?}", iface.0),
        _ => record.to_line(),
    };
    format!("{} s  {}: {text}", record.at, run.host(record.host))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::simulate;
    use scenario::Scenario;
    use trace::Fingerprint;

    fn first(settings: &[&str]) -> Outcome {
        let (name, text) = Scenario::find("first").unwrap();
        let settings: Vec<_> = settings.iter().map(|text| text.parse().unwrap()).collect();
        simulate(Scenario::plan(&name, &text, &settings, 1).unwrap()).unwrap()
    }

    #[test]
    fn runs_of_one_plan_are_the_same_to_the_last_bit_or_diverge() {
        let run = first(&[]);
        let same = diff([&run, &run]).unwrap();
        assert!(same.equal && same.text.contains("\nno divergence: "), "{}", same.text);
        let mut other = first(&[]);
        other.fingerprint = other.fingerprint.map(|of| Fingerprint { value: of.value ^ 1, ..of });
        other.records.pop();
        let found = diff([&run, &other]).unwrap();
        assert!(!found.equal && !found.text.contains("no divergence"), "{}", found.text);
        assert!(found.text.contains("\ndivergence, but not in the 68 control messages"), "{}", found.text);
        assert!(found.text.contains("\nfirst differing record, "), "{}", found.text);
        let mut old = first(&[]);
        old.fingerprint = Some(Fingerprint { version: 1, value: 7 });
        let found = diff([&run, &old]).unwrap();
        assert!(
            found.equal && found.text.contains("\nsame records; fingerprints of different versions: v2:"),
            "{}",
            found.text
        );
        old.records.pop();
        assert!(!diff([&run, &old]).unwrap().equal, "records decide between versions");
    }

    #[test]
    fn what_was_delivered_is_named_though_no_message_differs() {
        let found = diff([&first(&[]), &first(&["constant-rate.size=101"])]).unwrap();
        let said = "\ndelivered: flow 1, correspondent > mobile: first run 24500 bytes, 6 packets lost; second run 24745 bytes, 6 packets lost\n";
        assert!(found.text.contains(said), "{}", found.text);
    }

    /// A smooth handoff with this cache lifetime, whose messages have other numbers than the default ones.
    fn smooth(lifetime: &str) -> Outcome {
        let (name, text) = Scenario::find("mobile-ip/smooth-handoff").unwrap();
        let numbers = |role| format!("{role}.numbers={{ update = 88, previous_agent = 97 }}");
        let mut settings: Vec<scenario::Setting> = ["home-agent", "foreign-agent", "mobile-node"]
            .iter()
            .map(|role| numbers(role).parse().unwrap())
            .collect();
        settings.push(format!("mobile-node.cache_lifetime={lifetime}").parse().unwrap());
        simulate(Scenario::plan(&name, &text, &settings, 1).unwrap()).unwrap()
    }

    #[test]
    fn messages_with_other_numbers_are_compared() {
        let found = diff([&smooth("30s"), &smooth("10s")]).unwrap();
        let why = ": lifetime is 30 in the first run, 10 in the second\n";
        assert!(!found.equal && found.text.contains(why), "{}", found.text);
    }

    #[test]
    fn runs_are_not_equal_if_a_message_cannot_be_read() {
        // Neither plan has the numbers with which its messages were sent.
        let [mut first, mut second] = ["30s", "10s"].map(smooth);
        first.plan = with_default_numbers("30s");
        second.plan = with_default_numbers("10s");
        let found = diff([&first, &second]).unwrap();
        assert!(!found.equal && found.text.contains("\nno divergence in the "), "{}", found.text);
        assert!(found.text.contains("not compared, because they cannot be read\n"), "{}", found.text);
        second.plan = first.plan.clone();
        second.records.clone_from(&first.records);
        second.fingerprint = first.fingerprint;
        assert!(diff([&first, &second]).unwrap().equal, "the same run, to the last bit");
    }

    fn with_default_numbers(lifetime: &str) -> scenario::Plan {
        let (name, text) = Scenario::find("mobile-ip/smooth-handoff").unwrap();
        let setting = format!("mobile-node.cache_lifetime={lifetime}").parse().unwrap();
        Scenario::plan(&name, &text, &[setting], 1).unwrap()
    }

    #[test]
    fn runs_with_different_settings_have_one_verdict() {
        let found = diff([&first(&[]), &first(&["constant-rate.size=101"])]).unwrap();
        assert!(found.equal && found.text.contains("\nno divergence: "), "{}", found.text);
        assert!(!found.text.contains("fingerprints differ"), "{}", found.text);
    }
}
