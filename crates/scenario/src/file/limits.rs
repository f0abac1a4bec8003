//! Limits of names and of sizes that several tables share.

use super::error::Wrong;
use super::networks::AIR;

/// The least MTU of IPv4, in bytes (RFC 791, section 3.2).
const LEAST_MTU: u16 = 68;
/// Longest name of a host, in bytes. An interface has the name of the neighbor, and Linux limits the length of the
/// names of interfaces (`IFNAMSIZ`).
const LONGEST_NAME: usize = 15;

/// Returns whether a name has 1 to `longest` letters, digits, `-` and `_`.
pub(super) fn is_name(name: &str, longest: usize) -> bool {
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=longest).contains(&name.len()) && name.chars().all(letters)
}

/// Returns why a host or segment cannot have this name, which is also the name of interfaces. `None` if it can.
pub(super) fn name_of_interface(name: &str) -> Option<String> {
    if !is_name(name, LONGEST_NAME) {
        let problem = "must be 1 to 15 letters, digits, - and _, because interfaces have the names of hosts and segments";
        return Some(problem.to_owned());
    }
    let radio = name.strip_prefix(AIR);
    let is_taken = ["lo", "wf-host", "wf-node"].contains(&name)
        || radio.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()));
    is_taken.then(|| {
        "must not be the name of an interface that each host may have: lo, wf-host, wf-node, or air with digits"
            .to_owned()
    })
}

/// Checks the MTU of a link with the path `path`. An error has the path of the key, and the problem.
pub(super) fn mtu(path: &str, mtu: u16) -> Result<(), Wrong> {
    mtu_problem(mtu).map_or(Ok(()), |problem| Err((format!("{path}.mtu"), problem)))
}

/// Returns why a link cannot have this MTU. `None` if it can.
pub(super) fn mtu_problem(mtu: u16) -> Option<String> {
    (mtu < LEAST_MTU).then(|| format!("must be at least {LEAST_MTU} bytes (RFC 791, section 3.2)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_an_interface_cannot_have_is_refused_with_the_reason() {
        assert_eq!(name_of_interface("lan-of-15-bytes"), None);
        let problem = name_of_interface("lan-of-16-bytes-").unwrap();
        assert!(problem.ends_with("because interfaces have the names of hosts and segments"), "{problem}");
    }
}
