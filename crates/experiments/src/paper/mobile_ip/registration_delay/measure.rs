//! The evaluation of a run of `mobile-ip/registration-delay`.

use super::{DENIALS, RETRANSMISSIONS, SUCCESS, TIME};
use crate::paper::records::{MOBILE, marks};
use crate::reproduce::Samples;
use recorder::run::Outcome;

/// Counts the requests until the first registration is accepted, or until the end of the run.
pub(super) fn registration(outcome: &Outcome) -> Result<Samples, String> {
    let first = marks(outcome, MOBILE).find(|(_, mark)| mark.name == "request_sent");
    let (first, _) = first.ok_or("the mobile node sent no request, so nothing was measured")?;
    let accepted = marks(outcome, MOBILE).find(|(_, mark)| mark.name == "registered").map(|(at, _)| at);
    let count = |name: &str| {
        let all = marks(outcome, MOBILE)
            .filter(|(at, mark)| mark.name == name && accepted.is_none_or(|end| *at <= end));
        all.count() as f64
    };
    Ok(Samples::from([
        (SUCCESS, vec![f64::from(u8::from(accepted.is_some()))]),
        (RETRANSMISSIONS, vec![count("request_sent") - 1.0]),
        (DENIALS, vec![count("denied")]),
        (TIME, vec![accepted.map_or(f64::INFINITY, |accepted| accepted.since(first).as_secs_f64())]),
    ]))
}
