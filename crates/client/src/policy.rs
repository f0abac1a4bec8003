//! Rules for the destinations to which programs connect by the transport of a role: a text in an environment variable,
//! parsed without allocation.

use std::net::SocketAddrV4;
use wire::Prefix;

/// The largest number of rules of a policy.
const RULES: usize = 32;

/// The destinations to which programs connect by the transport of a role: those that an *only* rule names, or all if
/// there is no such rule. Destinations that an *except* rule names are excluded. The loopback network and 0.0.0.0 are
/// always excluded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Policy {
    rules: [Option<Rule>; RULES],
}

/// A rule of a policy. As text: `+` for only or `-` for except, a prefix or an address, and optionally `:` and a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    only: bool,
    to: Prefix,
    port: Option<u16>,
}

/// Why a text is not a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PolicyError {
    /// The rule that begins at this byte of the text (from 0) is not valid.
    Rule(usize),
    /// There are more rules than a policy can have (32).
    TooMany,
}

impl Policy {
    /// Parses rules with commas between them, for example `+10.0.0.0/8:80,-10.1.0.1`. An empty text has no rules.
    /// Fails if a rule is malformed, or if there are too many.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let mut policy = Self::default();
        let mut free = policy.rules.iter_mut();
        let mut at = 0;
        for word in text.split(',').filter(|_| !text.is_empty()) {
            let rule = Rule::parse(word).ok_or(PolicyError::Rule(at))?;
            *free.next().ok_or(PolicyError::TooMany)? = Some(rule);
            at += word.len() + 1;
        }
        Ok(policy)
    }

    /// Returns whether the policy selects this destination.
    pub fn takes(&self, peer: SocketAddrV4) -> bool {
        let rules = || self.rules.iter().flatten();
        let named = |only| rules().any(|rule| rule.only == only && rule.names(peer));
        let is_local = peer.ip().is_loopback() || peer.ip().is_unspecified();
        !is_local && !named(false) && (named(true) || rules().all(|rule| !rule.only))
    }
}

impl Rule {
    fn parse(word: &str) -> Option<Self> {
        let (only, word) = match word.split_at_checked(1)? {
            ("+", word) => (true, word),
            ("-", word) => (false, word),
            _ => return None,
        };
        let (to, port) = match word.split_once(':') {
            Some((to, port)) => (to, Some(port.parse().ok()?)),
            None => (word, None),
        };
        let host = || to.parse().ok().map(Prefix::host);
        Some(Self { only, to: to.parse().ok().or_else(host)?, port })
    }

    fn names(&self, peer: SocketAddrV4) -> bool {
        self.to.contains(*peer.ip()) && self.port.is_none_or(|port| port == peer.port())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(policy: &str, peer: &str) -> bool {
        Policy::parse(policy).unwrap().takes(peer.parse().unwrap())
    }

    #[test]
    fn destinations_are_sorted_by_prefix_and_port() {
        assert!(takes("", "10.1.0.1:80"));
        for never in ["127.0.0.1:80", "0.0.0.0:80"] {
            assert!(!takes("", never) && !takes("+0.0.0.0/0", never), "{never}");
        }
        let policy = "+10.0.0.0/8:80,-10.1.0.1,+192.0.2.1";
        for (peer, is_taken) in [
            ("10.2.0.1:80", true),
            ("10.2.0.1:81", false),
            ("10.1.0.1:80", false),
            ("192.0.2.1:9", true),
            ("192.0.2.2:9", false),
        ] {
            assert_eq!(takes(policy, peer), is_taken, "{peer}");
        }
        assert!(takes("-10.0.0.0/8", "192.0.2.1:80") && !takes("-10.0.0.0/8", "10.0.0.1:80"));
    }

    #[test]
    fn what_is_no_rule_is_shown() {
        for (text, at) in [("10.0.0.1", 0), ("+10.0.0.1,", 10), ("+10.0.0.0/8:x", 0), ("-", 0), ("+a,-b", 0)]
        {
            assert_eq!(Policy::parse(text), Err(PolicyError::Rule(at)), "{text}");
        }
        let many = vec!["-10.0.0.1"; RULES + 1].join(",");
        assert_eq!(Policy::parse(&many), Err(PolicyError::TooMany));
    }
}
