//! The order of operations of a move, and of one that is taken back: the same in both worlds.

/// A command to a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) host: &'static str,
    pub(crate) verb: &'static str,
    /// Where the router is to send.
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

/// A move. The old host is the only one that may speak until it forgets, and the new one from its thaw on; in between
/// nobody does. The old host's guard stays: packets may be on their way to it.
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

/// The steps after which a move can be given up: from the one that freezes to the last before the old host forgets.
pub(crate) const FREEZES: usize = 3;
const ROUTES: usize = 5;
const IMPORTS: usize = 6;
pub(crate) const LAST: usize = 7;

/// A move that is given up after so many steps: the new host drops all that it has, and the old one goes on.
pub(crate) fn abandoned(old: &'static str, new: &'static str, after: usize) -> Vec<Step> {
    assert!((FREEZES..=LAST).contains(&after));
    let mut steps = relocation(old, new)[..after].to_vec();
    // What the new host holds, and what still comes, must not meet a host that knows nothing of it.
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

/// Where the service is before and after the move of this number.
pub(crate) const fn ends(number: usize) -> (&'static str, &'static str) {
    if number.is_multiple_of(2) { ("m1", "m2") } else { ("m2", "m1") }
}

/// The step after which the attempt before the move of this number is given up: each in its turn.
pub(crate) const fn gives_up_after(number: usize) -> usize {
    FREEZES + number % (LAST - FREEZES + 1)
}
