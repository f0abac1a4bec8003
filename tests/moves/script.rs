//! The operations of a move, and of an abandoned move, in order. They are the same on both backends.

/// A command to a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) host: &'static str,
    pub(crate) verb: &'static str,
    /// The host to which the router must send; `None` for other verbs.
    pub(crate) to: Option<&'static str>,
}

pub(crate) const CORRESPONDENT: &str = "correspondent";
pub(crate) const ROUTER: &str = "router";

const fn at(host: &'static str, verb: &'static str) -> Step {
    Step { host, verb, to: None }
}

pub(crate) const fn route(to: &'static str) -> Step {
    Step { host: ROUTER, verb: "route", to: Some(to) }
}

/// Returns the steps of a move. Only the old host may send until it deletes the connection, and only the new host from
/// its thaw on. The old host's guard stays, as packets may still be on their way to it.
pub(crate) const fn relocation(old: &'static str, new: &'static str) -> [Step; 10] {
    [
        at(new, "hold"),
        at(old, "rest"),
        at(old, "freeze"),
        at(old, "export"),
        route(new),
        at(new, "import"),
        at(old, "drop"),
        at(old, "forget"),
        at(new, "thaw"),
        at(new, "lift"),
    ]
}

/// The numbers of steps after which a move can be abandoned: from the freeze to the last step before the old host
/// deletes the connection.
pub(crate) const FREEZES: usize = 3;
const ROUTES: usize = 5;
const IMPORTS: usize = 6;
pub(crate) const LAST: usize = 7;

/// Returns the steps of a move that is abandoned after `after` steps. The new host deletes all its state, and the old
/// host resumes.
pub(crate) fn abandoned(old: &'static str, new: &'static str, after: usize) -> Vec<Step> {
    assert!((FREEZES..=LAST).contains(&after));
    let mut steps = relocation(old, new)[..after].to_vec();
    // Packets that the new host holds or still receives must not meet a stack without the connection.
    steps.push(at(new, "drop"));
    if after >= IMPORTS {
        steps.push(at(new, "forget"));
    }
    if after >= ROUTES {
        steps.push(route(old));
    }
    steps.push(at(old, "thaw"));
    if after >= LAST {
        steps.push(at(old, "lift"));
    }
    steps
}

/// Returns the hosts of the service before and after the move of this number.
pub(crate) const fn ends(number: usize) -> (&'static str, &'static str) {
    if number.is_multiple_of(2) { ("m1", "m2") } else { ("m2", "m1") }
}

/// Returns the number of the step after which an attempt is abandoned: from [`FREEZES`] to [`LAST`] in turn. `number`
/// is the number of the move after this attempt.
pub(crate) const fn gives_up_after(number: usize) -> usize {
    FREEZES + number % (LAST - FREEZES + 1)
}
