//! The configuration of the packets that a foreign agent keeps for its visitors.

use node::config::{ConfigError, span};
use schemars::JsonSchema;
use serde::Deserialize;
use wire::Duration;

/// The maximum of `packets` (not from a specification): all of them may leave in one step.
const MOST_PACKETS: usize = 1000;
/// The room of one packet, in bytes, by which `packets` gives the default of `bytes`.
const PACKET: usize = 1500;
/// The minimum of `bytes`: the size that each host must accept (RFC 791, section 3.1).
const FEWEST_BYTES: usize = 576;
/// The default of `rate`, in bit/s.
const DEFAULT_RATE: u64 = 2_000_000;

/// Which packets a foreign agent keeps for each visitor, and how it sends them after the visitor has moved: the table
/// `buffer`. Without a key, the agent keeps the last packet that it sent to each visitor (Johnson and Bennington, Mobile IP
/// over ACTS). The other values are not from a specification.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Buffering {
    /// When packets are kept; default `always`.
    pub when: KeepWhen,
    /// The maximum number of packets that are kept for one visitor, from 1 to 1000; default 1. The oldest is dropped first.
    #[schemars(range(min = 1, max = 1000))]
    pub packets: usize,
    /// The maximum number of bytes that are kept for one visitor, at least 576; default 1500 for each of `packets`. The bytes
    /// of a packet are those of its IP datagram.
    #[schemars(range(min = 576))]
    pub bytes: Option<usize>,
    /// The maximum number of bytes that are kept for all visitors of the agent, not less than `bytes`; default 67108864 (64
    /// MiB). If a packet needs more, the oldest packets of the visitor with the most bytes are dropped.
    #[schemars(range(min = 576))]
    pub total_bytes: usize,
    /// How long a packet is kept, greater than zero; default `10s`.
    #[serde(deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub max_age: Duration,
    /// How the kept packets are sent to the visitor's new care-of address, or by the link after it was down; default `at-once`.
    pub drain: Drain,
    /// With `drain = "paced"`, the rate for each visitor in bit/s, of the datagrams without outer headers; default `2Mb/s`.
    #[serde(deserialize_with = "node::config::some_rate")]
    #[schemars(schema_with = "node::config::schema::rate")]
    pub rate: Option<u64>,
}

/// When a foreign agent keeps packets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KeepWhen {
    /// Each packet that is sent to a visitor is kept too: the agent cannot know when a visitor leaves.
    #[default]
    Always,
    /// Packets are kept, and not sent, while the link to the visited network is down. If a visitor registers again after that,
    /// it gets them by the link.
    LinkDown,
    /// The packets of a visitor are kept from its Buffer Control Request with flag B on (draft-mkhalil-mobileip-buffer-00,
    /// section 4.1). A mobile node with `ask_to_keep` sends it.
    Request,
}

/// How kept packets are sent to a new care-of address, or by the link after it was down.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Drain {
    /// All kept packets are sent at once.
    #[default]
    AtOnce,
    /// The kept packets are sent at `rate`. Later packets of the visitor wait behind them. If these are more than fit into the
    /// same room again, or after twice as many packets as were kept, the rest is sent at once. No packet is dropped for it, but a
    /// link whose queue is full may lose some.
    Paced,
}

/// The limits of the packets that an agent keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// The maximum number of packets of one visitor, at least 1.
    pub(crate) packets: usize,
    /// The maximum number of bytes of one visitor.
    pub(crate) bytes: usize,
    /// The maximum number of bytes of all visitors.
    pub(crate) total_bytes: usize,
    /// How long a packet is kept.
    pub(crate) max_age: Duration,
}

impl Default for Buffering {
    fn default() -> Self {
        Self {
            when: KeepWhen::Always,
            packets: 1,
            bytes: None,
            total_bytes: 64 << 20,
            max_age: Duration::from_secs(10),
            drain: Drain::AtOnce,
            rate: None,
        }
    }
}

impl Buffering {
    /// Returns whether kept packets are sent only after a smooth handoff. With `link-down`, they are sent by the link when the
    /// visitor registers again, without a key.
    pub fn needs_handoffs(&self) -> bool {
        self.when != KeepWhen::LinkDown
    }

    /// Returns the rate in bit/s at which kept packets are sent with `drain = "paced"`.
    pub(crate) fn paced_rate(&self) -> u64 {
        self.rate.unwrap_or(DEFAULT_RATE)
    }

    /// Returns the limits that these values give.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            packets: self.packets,
            bytes: self.bytes.unwrap_or_else(|| self.packets.saturating_mul(PACKET)),
            total_bytes: self.total_bytes,
            max_age: self.max_age,
        }
    }

    /// Checks the values. An error has the path of the key from the agent's table on, and the problem.
    pub fn check(&self) -> Result<(), ConfigError> {
        let limits = self.limits();
        let (key, problem) = if !(1..=MOST_PACKETS).contains(&self.packets) {
            ("buffer.packets", format!("must be from 1 to {MOST_PACKETS}"))
        } else if limits.bytes < FEWEST_BYTES {
            let problem = format!(
                "must be at least {FEWEST_BYTES}, which each host must accept (RFC 791, section 3.1)"
            );
            ("buffer.bytes", problem)
        } else if limits.total_bytes < limits.bytes {
            let problem = format!("must be at least {}, the bytes of one visitor", limits.bytes);
            ("buffer.total_bytes", problem)
        } else if self.max_age.is_zero() {
            ("buffer.max_age", "must be greater than zero, for example `10s`".to_owned())
        } else if self.rate.is_some() && self.drain != Drain::Paced {
            ("buffer.rate", "needs `drain = \"paced\"`: otherwise the packets are sent at once".to_owned())
        } else {
            return Ok(());
        };
        Err(ConfigError::new(key, problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Buffering {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn without_a_key_it_is_the_last_packet() {
        let all = of("");
        assert_eq!(all, Buffering::default());
        assert_eq!(all.check(), Ok(()));
        let Limits { packets, bytes, total_bytes, max_age } = all.limits();
        assert_eq!((packets, bytes, total_bytes, max_age.as_secs()), (1, 1500, 64 << 20, 10));
        assert_eq!(of("packets = 8").limits().bytes, 12_000);
        let paced = of("drain = \"paced\"\nwhen = \"link-down\"\nrate = \"64kb/s\"");
        assert_eq!((paced.drain, paced.when, paced.rate), (Drain::Paced, KeepWhen::LinkDown, Some(64_000)));
        assert_eq!([paced.paced_rate(), all.paced_rate()], [64_000, 2_000_000]);
    }

    #[test]
    fn impossible_values_are_refused() {
        for (text, key) in [
            ("packets = 0", "buffer.packets"),
            ("packets = 1001", "buffer.packets"),
            ("bytes = 575", "buffer.bytes"),
            ("total_bytes = 1499", "buffer.total_bytes"),
            ("packets = 100\ntotal_bytes = 149999", "buffer.total_bytes"),
            ("max_age = \"0s\"", "buffer.max_age"),
            ("rate = \"64kb/s\"", "buffer.rate"),
            ("rate = \"2Mb/s\"", "buffer.rate"),
        ] {
            let error = of(text).check().unwrap_err();
            assert_eq!(error.key, key, "{text}: {error}");
        }
        for text in ["rate = \"0Mb/s\"", "rate = 5", "when = \"never\"", "size = 1", "drain = \"fast\""] {
            assert!(toml::from_str::<Buffering>(text).is_err(), "{text}");
        }
    }
}
