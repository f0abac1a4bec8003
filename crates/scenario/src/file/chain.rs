//! The table `[chain.NAME]`: routers in a row between two hosts. The chain becomes hosts and links of the scenario before
//! it is checked, so that a setting can change the number of routers.

use super::error::Wrong;
use super::limits::{is_name, mtu_problem};
use super::nearest::did_you_mean;
use super::{Access, Contention, Duplex, Scenario, Segment, Wire, units};
use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Table, Value};
use wire::{Duration, Ipv4Addr, Prefix};

/// A chain of routers between two hosts. The router number I of the chain `net` is the host `net-I`, from 1. The link from
/// the first end to the first router is the wire `net-0-1`, the next one is `net-1-2`, and so on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChainTable {
    /// The hosts at the two ends of the chain.
    ends: [String; 2],
    /// The number of routers between the ends. Without a router, one link joins the ends.
    #[serde(deserialize_with = "routers")]
    #[schemars(range(max = MOST_ROUTERS))]
    routers: u32,
    /// Bits per second of each link, for example `10Mb/s`: in each direction, or with half `duplex` for both together.
    #[serde(deserialize_with = "node::config::rate")]
    #[schemars(schema_with = "node::config::schema::rate")]
    rate: u64,
    /// The delay of each link: one for both directions, or a list of two: from the first end to the second, and back.
    #[serde(deserialize_with = "units::delay")]
    #[schemars(schema_with = "units::schema_delay")]
    delay: [Duration; 2],
    /// `full`: each link is a wire. `half`: each link is a segment, whose two hosts share one medium [default: full].
    #[serde(default = "full")]
    duplex: Duplex,
    /// The largest number of frames that wait at each end of a link, in addition to the frame that is being sent
    /// [default: 128].
    #[serde(default = "units::wire_queue")]
    queue: usize,
    /// The size of the largest datagram, in bytes [default: 1500].
    #[serde(default = "units::ethernet_mtu")]
    #[schemars(range(min = 68))]
    mtu: u16,
    /// The probability that a frame is lost on a link [default: 0].
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    loss: f64,
    /// With half `duplex`: contention between the two hosts of a link [default: none].
    contention: Option<Contention>,
    /// The network of the chain, for example `10.9.0.0/16`. The links get its networks of 4 addresses in order.
    #[serde(deserialize_with = "node::config::text")]
    #[schemars(schema_with = "node::config::schema::prefix")]
    net: Prefix,
}

/// The largest number of routers of a chain. Packets start with a time to live of 64.
const MOST_ROUTERS: u32 = 60;
/// The longest name of a chain, in bytes: a name such as `net-59-60` has at most 15.
const LONGEST: usize = 9;
/// The length of the prefix of a link's network, which has 4 addresses.
const LINK: u8 = 30;

/// Reads a number of routers. [`check`] refuses a number that is too large.
fn routers<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let value = Value::deserialize(deserializer)?;
    value.as_integer().and_then(|number| u32::try_from(number).ok()).ok_or_else(|| {
        let problem =
            format!("{value} is not a number of routers; allowed: a whole number from 0 to {MOST_ROUTERS}");
        serde::de::Error::custom(problem)
    })
}

const fn full() -> Duplex {
    Duplex::Full
}

/// Adds the routers and links of all chains to a scenario. An error has the path of a key, and the problem.
pub(super) fn expand(scenario: &mut Scenario) -> Result<(), Wrong> {
    for (name, chain) in scenario.chain.clone() {
        let path = |(key, problem): (&str, String)| {
            let key = if key.is_empty() { String::new() } else { format!(".{key}") };
            (format!("chain.{name}{key}"), problem)
        };
        check(scenario, &name, &chain).map_err(path)?;
        chain.build(&name, scenario);
    }
    Ok(())
}

fn check(scenario: &Scenario, name: &str, chain: &ChainTable) -> Result<(), (&'static str, String)> {
    if !is_name(name, LONGEST) {
        let problem = format!(
            "the name of a chain must be 1 to {LONGEST} letters, digits, - and _, because its routers have names such as `net-12`"
        );
        return Err(("", problem));
    }
    if scenario.tree.is_some() {
        return Err(("", "not allowed with a [tree]; remove the chain or the [tree]".to_owned()));
    }
    let [a, b] = &chain.ends;
    let hosts: Vec<&str> = scenario.host.keys().map(String::as_str).collect();
    if let Some(end) = chain.ends.iter().find(|end| !scenario.host.contains_key(*end)) {
        let meant = did_you_mean(end, hosts.iter().copied());
        return Err(("ends", format!("no host `{end}`{meant}; there are: {}", hosts.join(", "))));
    }
    if a == b {
        return Err(("ends", format!("must be two different hosts; both are `{a}`")));
    }
    if chain.routers > MOST_ROUTERS {
        let problem = format!(
            "must be from 0 to {MOST_ROUTERS} routers, because packets start with a time to live of 64"
        );
        return Err(("routers", problem));
    }
    if let Some(router) = (1..=chain.routers)
        .map(|number| router(name, number))
        .find(|router| scenario.host.contains_key(router) || scenario.segment.contains_key(router))
    {
        let problem =
            format!("`{router}` is the name of a router of the chain; give the host or segment another name");
        return Err(("", problem));
    }
    if let Some(link) = (0..=chain.routers)
        .map(|number| link(name, number))
        .find(|link| scenario.wire.contains_key(link) || scenario.segment.contains_key(link))
    {
        let problem =
            format!("`{link}` is the name of a link of the chain; give the wire or segment another name");
        return Err(("", problem));
    }
    let joins = |wire: &Wire| wire.ends.contains(a) && wire.ends.contains(b);
    if let Some((wire, _)) = scenario.wire.iter().find(|(_, wire)| joins(wire)).filter(|_| chain.routers == 0)
    {
        let problem = format!(
            "`{a}` and `{b}` are joined by `wire.{wire}`; without a router, the chain would be a second wire between them"
        );
        return Err(("ends", problem));
    }
    if let Some(problem) = mtu_problem(chain.mtu) {
        return Err(("mtu", problem));
    }
    if !(0.0..=1.0).contains(&chain.loss) {
        return Err(("loss", "must be a probability from 0 to 1".to_owned()));
    }
    if chain.duplex == Duplex::Half && chain.delay[0] != chain.delay[1] {
        return Err(("delay", "with half `duplex`, give one delay for both directions".to_owned()));
    }
    match chain.contention {
        Some(_) if chain.duplex == Duplex::Full => {
            let problem = "allowed only with `duplex = \"half\"`, because nothing waits for another sender";
            return Err(("contention", problem.to_owned()));
        }
        Some(contention) => contention.check().map_err(|(key, problem)| (key, problem.to_owned()))?,
        None => {}
    }
    check_net(scenario, name, chain).map_err(|problem| ("net", problem))
}

fn check_net(scenario: &Scenario, name: &str, chain: &ChainTable) -> Result<(), String> {
    let (net, links) = (chain.net, u64::from(chain.routers) + 1);
    if net.len() > LINK || (1u64 << (LINK - net.len())) < links {
        return Err(format!(
            "{net} has fewer than 4 addresses for each of {links} links; write a shorter prefix"
        ));
    }
    let wires = scenario.wire.iter().filter_map(|(name, wire)| Some((format!("wire.{name}"), wire.net?)));
    let cells = scenario.cell.iter().filter_map(|(name, cell)| Some((format!("cell.{name}"), cell.net?)));
    let segments = scenario.segment.iter();
    let segments = segments.filter_map(|(name, segment)| Some((format!("segment.{name}"), segment.net?)));
    let chains = scenario.chain.iter().filter(|(other, _)| *other != name);
    let chains = chains.map(|(name, chain)| (format!("chain.{name}"), chain.net));
    // The links of an earlier chain are in the network of this chain's table, which is named instead.
    let mut others = chains.chain(wires).chain(cells).chain(segments);
    let overlaps = |other: Prefix| net.contains(other.address()) || other.contains(net.address());
    match others.find(|(_, other)| overlaps(*other)) {
        Some((other, theirs)) => {
            Err(format!("{net} overlaps {theirs} of `{other}`; write networks that do not overlap"))
        }
        None => Ok(()),
    }
}

fn router(chain: &str, number: u32) -> String {
    format!("{chain}-{number}")
}

fn link(chain: &str, number: u32) -> String {
    format!("{chain}-{number}-{}", number + 1)
}

impl ChainTable {
    /// Adds the routers and links of this chain to a scenario. The chain was checked before.
    fn build(&self, name: &str, scenario: &mut Scenario) {
        for number in 1..=self.routers {
            scenario.host.insert(router(name, number), Value::Table(Table::new()));
        }
        let [first, last] = &self.ends;
        let host = |number: u32| match number {
            0 => first.clone(),
            number if number > self.routers => last.clone(),
            number => router(name, number),
        };
        for number in 0..=self.routers {
            let (link, ends) = (link(name, number), [host(number), host(number + 1)]);
            let address = Ipv4Addr::from_bits(self.net.address().to_bits() + 4 * number);
            let net = Some(Prefix::new(address, LINK));
            let Self { rate, delay, queue, mtu, loss, contention, .. } = *self;
            let (duplicate, duplicate_delay, burst) = (0.0, Duration::ZERO, None);
            match self.duplex {
                Duplex::Full => {
                    let wire =
                        Wire { ends, rate, delay, queue, mtu, loss, duplicate, duplicate_delay, burst, net };
                    scenario.wire.insert(link, wire);
                }
                Duplex::Half => {
                    let ([delay, _], per_frame) = (delay, Duration::ZERO);
                    let (hosts, access) = (ends.to_vec(), Access::default());
                    let segment = Segment {
                        hosts,
                        rate,
                        delay,
                        per_frame,
                        queue,
                        access,
                        mtu,
                        loss,
                        duplicate,
                        duplicate_delay,
                        burst,
                        contention,
                        net,
                    };
                    scenario.segment.insert(link, segment);
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
