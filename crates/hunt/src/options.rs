//! The options of Mobile IP in a draft: what its mobile nodes and agents are configured to do beyond the defaults.
//!
//! Each option has separate random numbers, so that no other part of a draw depends on it. To add an option, add a
//! field of [`Options`], a line in [`draw`] and in [`simpler`], and its keys in [`mobile_ip`](crate::mobile_ip).

use crate::dice::Dice;
use crate::fault::{Fault, Node, What};
use wire::Rng;

/// The options of Mobile IP that all hosts of a draft share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the options are independent")]
pub struct Options {
    /// Where the mobile nodes' care-of addresses come from.
    pub care_of: CareOf,
    /// The delivery style of the reverse tunnels that the mobile nodes ask for; `None` if they ask for none.
    pub reverse: Option<Style>,
    /// Whether the agents deny registrations without a reverse tunnel.
    pub is_reverse_required: bool,
    /// Whether the mobile nodes ask for simultaneous bindings (flag S).
    pub has_bindings: bool,
    /// Whether a radio receives all cells at any time, because they share a channel.
    pub overlaps: bool,
    /// Whether requests are protected against replay by nonces. Otherwise by timestamps.
    pub has_nonces: bool,
    /// Whether foreign agents require a challenge and an authentication of the mobile node.
    pub has_challenge: bool,
    /// Whether a mobile node returns home as soon as it hears its home agent.
    pub is_home_first: bool,
    /// The home agents of a mobile node besides its own.
    pub backup: Backup,
    /// Whether each router has a home agent and a foreign agent, and the mobile nodes have different home networks.
    /// Otherwise router 0 is the home agent of all mobile nodes.
    pub has_homes: bool,
    /// Whether the cells are switches, into which hosts are plugged by cables.
    pub has_cables: bool,
    /// Whether routers may cut the datagrams of workloads into fragments (DF is 0).
    pub has_fragments: bool,
    /// The probability that a link duplicates a frame, in units of 0.01 %.
    pub duplicate: u32,
    /// The kind of tunnels that the mobile nodes ask for.
    pub tunnel: Tunnel,
    /// Whether the home agents and foreign agents have security associations with each other.
    pub has_agent_keys: bool,
    /// Whether a home agent keeps at most one binding of a mobile node.
    pub is_single_binding: bool,
    /// The value of `signal_hysteresis` in dB; `None` if the mobile nodes do not compare signals. Then the signals follow
    /// the moves.
    pub hysteresis: Option<u8>,
    /// Whether the foreign agents offer smooth handoffs, and the mobile nodes ask for them.
    pub is_smooth: bool,
    /// Whether the correspondent keeps a binding cache (route optimization).
    pub has_cache: bool,
    /// The packets that foreign agents keep for smooth handoffs; `None` if they keep none.
    pub buffer: Option<Buffer>,
    /// Whether home agents distribute the keys of smooth handoffs.
    pub has_distributed_keys: bool,
    /// Whether agents send back packets for hosts that they do not serve, in special tunnels.
    pub has_special_tunnels: bool,
    /// Whether mobile nodes ask their home agents not to reveal their care-of addresses (flag P).
    pub is_private: bool,
    /// The late copies of frames on the correspondent's wire; `None` if there are none.
    pub late: Option<Late>,
    /// How mobile nodes with two radios choose between them; `None` if each has one radio.
    pub interfaces: Option<Interfaces>,
}

/// Second copies of frames that arrive late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Late {
    /// The probability of a second copy, in percent.
    pub percent: u64,
    /// How much later than the frame the copy arrives, in milliseconds.
    pub delay_ms: u64,
}

/// How a mobile node with two interfaces chooses between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interfaces {
    /// Whether the second interface is preferred. Otherwise the first one.
    pub is_second_preferred: bool,
    /// The value of `interface_hysteresis` in milliseconds.
    pub hysteresis_ms: u64,
    /// The value of `make_before_break`.
    pub is_make_before_break: bool,
}

/// The packets that foreign agents keep for their visitors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// The maximum number of packets for one visitor.
    pub packets: u64,
    /// The maximum number of bytes for one visitor, and for all; `None` for the default.
    pub bytes: Option<[u64; 2]>,
    /// The maximum age of a packet in milliseconds; `None` for the default.
    pub max_age_ms: Option<u64>,
    /// Whether they are sent at a rate. Otherwise at once.
    pub is_paced: bool,
    /// When they are kept.
    pub when: KeepWhen,
    /// Whether the mobile nodes name the packets that they have received.
    pub are_named: bool,
}

impl Buffer {
    /// Returns the same with the default limits besides the number of packets.
    const fn with_usual_limits(self) -> Self {
        Self { bytes: None, max_age_ms: None, ..self }
    }
}

/// When a foreign agent keeps packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeepWhen {
    /// Always.
    Always,
    /// While the link to the visited network is down.
    LinkDown,
    /// When the mobile node asks for it, as each does.
    Request,
}

/// A kind of tunnel that a mobile node asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tunnel {
    /// IP in IP, which each agent has.
    IpInIp,
    /// Minimal encapsulation (flag M).
    Minimal,
    /// GRE (flag G).
    Gre,
}

impl Tunnel {
    /// Returns the largest number of bytes that the tunnel adds to a datagram.
    pub const fn overhead(self) -> u32 {
        match self {
            Self::IpInIp | Self::Minimal => 20, // fragments are carried by IP in IP
            Self::Gre => 24,
        }
    }
}

/// What the agents of a router offer, if the mobile nodes ask for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offers {
    /// The kinds of tunnels that the home agent offers besides IP in IP: minimal encapsulation, and GRE.
    pub home: [bool; 2],
    /// The kinds that the foreign agent offers.
    pub foreign: [bool; 2],
    /// Whether the foreign agent offers reverse tunnels.
    pub reverse: bool,
}

impl Offers {
    /// The agents offer everything.
    pub const ALL: Self = Self { home: [true; 2], foreign: [true; 2], reverse: true };
}

/// Where a mobile node's care-of address comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CareOf {
    /// From a foreign agent. Each router that is no home agent has one.
    Agent,
    /// From a DHCP server. Each router that is no home agent has one.
    Acquired,
    /// From the configuration of the mobile node. It is usable this number of milliseconds after the link is up.
    Configured(u64),
}

/// How a mobile node sends packets to its foreign agent for a reverse tunnel (RFC 3024).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// As to a router.
    Direct,
    /// In a tunnel.
    Encapsulating,
}

/// The home agents of a mobile node besides the only one that exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backup {
    /// None.
    None,
    /// A further one after it, which does not exist.
    Missing,
    /// One before it, which does not exist. So the mobile node must turn to the further one.
    Needed,
}

/// What a router has for visitors with an own care-of address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Visited {
    /// A foreign agent through which they must register (flag R).
    Required,
    /// A foreign agent that they need not use.
    Optional,
    /// No foreign agent.
    Plain,
}

/// The error of a host's wall clock.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Clock {
    /// How far the clock is ahead when the run begins, in milliseconds.
    pub offset_ms: i64,
    /// How much too fast the clock is, in parts per million.
    pub drift: i32,
}

impl Options {
    /// The values of the roles if a scenario gives none.
    pub const DEFAULT: Self = Self {
        care_of: CareOf::Agent,
        reverse: None,
        is_reverse_required: false,
        has_bindings: false,
        overlaps: false,
        has_nonces: false,
        has_challenge: false,
        is_home_first: true,
        backup: Backup::None,
        has_homes: false,
        has_cables: false,
        has_fragments: false,
        duplicate: 0,
        tunnel: Tunnel::IpInIp,
        has_agent_keys: false,
        is_single_binding: false,
        hysteresis: None,
        is_smooth: false,
        has_cache: false,
        buffer: None,
        has_distributed_keys: false,
        has_special_tunnels: false,
        is_private: false,
        late: None,
        interfaces: None,
    };

    /// Returns whether the mobile nodes have co-located care-of addresses.
    pub const fn is_co_located(&self) -> bool {
        !matches!(self.care_of, CareOf::Agent)
    }

    /// Returns the options with one of them set to its default each.
    pub fn simpler(self) -> Vec<Self> {
        let usual = Self::DEFAULT;
        vec![
            usual,
            Self { care_of: usual.care_of, ..self },
            Self { reverse: usual.reverse, is_reverse_required: false, ..self },
            Self { is_reverse_required: false, ..self },
            Self { has_bindings: usual.has_bindings, ..self },
            Self { overlaps: usual.overlaps, hysteresis: usual.hysteresis, ..self },
            Self { has_nonces: usual.has_nonces, ..self },
            Self { has_challenge: usual.has_challenge, ..self },
            Self { is_home_first: usual.is_home_first, ..self },
            Self { backup: usual.backup, ..self },
            Self { has_homes: usual.has_homes, ..self },
            Self { has_cables: usual.has_cables, ..self },
            Self { has_fragments: usual.has_fragments, ..self },
            Self { duplicate: usual.duplicate, ..self },
            Self { tunnel: usual.tunnel, ..self },
            Self { has_agent_keys: usual.has_agent_keys, ..self },
            Self { is_single_binding: usual.is_single_binding, ..self },
            Self { hysteresis: usual.hysteresis, ..self },
            Self { is_smooth: usual.is_smooth, buffer: None, has_distributed_keys: false, ..self },
            Self { has_distributed_keys: false, ..self },
            Self { interfaces: usual.interfaces, ..self },
            Self { buffer: usual.buffer, ..self },
            Self { buffer: self.buffer.map(Buffer::with_usual_limits), ..self },
            Self { has_cache: usual.has_cache, is_private: usual.is_private, ..self },
            Self { is_private: usual.is_private, ..self },
            Self { has_special_tunnels: usual.has_special_tunnels, ..self },
            Self { late: usual.late, ..self },
        ]
    }
}

/// Draws the options of the scenario of this seed.
pub fn draw(seed: u64) -> Options {
    let dice = |what: &str| Dice(Rng::new(seed).fork("option").fork(what));
    let is = |what: &str, percent| dice(what).percent(percent);
    let care_of = {
        let mut dice = dice("care-of");
        match dice.between(1, 10) {
            1..=6 => CareOf::Agent,
            7..=8 => CareOf::Acquired,
            _ => CareOf::Configured(dice.octaves(1, 1001) - 1),
        }
    };
    let reverse = {
        let mut dice = dice("reverse");
        let style = if dice.percent(50) { Style::Direct } else { Style::Encapsulating };
        dice.percent(40).then_some(style)
    };
    let backup = match dice("backup").between(1, 10) {
        1..=8 => Backup::None,
        9 => Backup::Missing,
        _ => Backup::Needed,
    };
    let overlaps = is("overlap", 15);
    let is_smooth = is("smooth", 30);
    let has_nonces = is("nonces", 30);
    let has_cache = is("cache", 30);
    let interfaces = draw_interfaces(&mut dice("interfaces"));
    let buffer = draw_buffer(&mut dice("buffer"));
    let late = draw_late(&mut dice("late"));
    let tunnel = match dice("tunnel").between(1, 10) {
        1..=6 => Tunnel::IpInIp,
        7..=8 => Tunnel::Minimal,
        _ => Tunnel::Gre,
    };
    Options {
        care_of,
        reverse,
        is_reverse_required: reverse.is_some() && is("required", 30),
        has_bindings: is("bindings", 25),
        overlaps,
        has_nonces,
        has_challenge: is("challenge", 20),
        is_home_first: !is("home-first", 25),
        backup,
        has_homes: is("homes", 20),
        // Cables share no channel.
        has_cables: !overlaps && is("cables", 15),
        has_fragments: is("fragments", 30),
        duplicate: if is("duplicates", 15) { dice("duplicate").between(1, 200) as u32 } else { 0 },
        tunnel,
        has_agent_keys: is("agent-keys", 20),
        is_single_binding: is("single-binding", 30),
        // Without an overlap, a radio reports one signal only.
        is_smooth,
        has_cache,
        buffer: Some(buffer).filter(|_| is_smooth && is("buffers", 70)),
        // With nonces, keys cannot be distributed.
        has_distributed_keys: is_smooth && !has_nonces && is("distributed-keys", 40),
        has_special_tunnels: is("special-tunnels", 20),
        is_private: has_cache && is("private", 10),
        late: is("late-copies", 20).then_some(late),
        // A mobile node has co-located care-of addresses on one interface only.
        interfaces: Some(interfaces)
            .filter(|_| care_of == CareOf::Agent && !overlaps && is("second-interface", 30)),
        hysteresis: (overlaps && is("hysteresis", 40)).then(|| dice("decibels").between(0, 20) as u8),
    }
}

fn draw_interfaces(dice: &mut Dice) -> Interfaces {
    let hysteresis_ms = if dice.percent(50) { 2000 } else { dice.octaves(1, 4000) };
    Interfaces {
        is_second_preferred: dice.percent(70),
        hysteresis_ms,
        is_make_before_break: dice.percent(70),
    }
}

fn draw_buffer(dice: &mut Dice) -> Buffer {
    let when = [KeepWhen::Always, KeepWhen::Always, KeepWhen::LinkDown, KeepWhen::Request];
    let when = dice.pick(&when).unwrap_or(KeepWhen::Always);
    let packets = if dice.percent(40) { 1 } else { dice.octaves(2, 64) };
    let (is_paced, are_named) = (dice.percent(50), dice.percent(30));
    let limit = dice.octaves(576, 60_000);
    let bytes = dice.percent(30).then(|| [limit, dice.octaves(limit, 4 * limit)]);
    let max_age_ms = dice.percent(30).then(|| dice.octaves(20, 10_000));
    Buffer { packets, bytes, max_age_ms, is_paced, when, are_named }
}

fn draw_late(dice: &mut Dice) -> Late {
    Late { percent: dice.between(1, 30), delay_ms: dice.octaves(10, 8000) }
}

/// Draws what the agents of the router with this index offer.
pub fn offers(seed: u64, router: usize) -> Offers {
    let mut dice = Dice(Rng::new(seed).fork("offers").fork(&router.to_string()));
    let mut offers = || dice.percent(75);
    Offers { home: [offers(), offers()], foreign: [offers(), offers()], reverse: offers() }
}

/// Draws what the router with this index has for visitors.
pub fn visited(seed: u64, router: usize) -> Visited {
    let mut dice = Dice(Rng::new(seed).fork("visited").fork(&router.to_string()));
    dice.pick(&[Visited::Required, Visited::Optional, Visited::Plain]).unwrap_or(Visited::Required)
}

/// Draws a crash of a mobile node with one of these indices, which begins at least `after` milliseconds after the begin of
/// the run. `None` in most scenarios.
pub fn crash(seed: u64, hosts: &[usize], after: u64) -> Option<Fault> {
    let mut dice = Dice(Rng::new(seed).fork("option").fork("crash"));
    let host = dice.pick(hosts).filter(|_| dice.percent(30))?;
    let at = after + dice.between(100, 5000);
    Some(Fault { at, lasts: dice.octaves(50, 5000), what: What::Crash(Node::Mobile(host)) })
}

/// Draws the clock of the host with this name. In half of the scenarios, all clocks are right.
pub fn clock(seed: u64, host: &str) -> Clock {
    let has_errors = Dice(Rng::new(seed).fork("clocks")).percent(50);
    let mut dice = Dice(Rng::new(seed).fork("clock").fork(host));
    if !has_errors || dice.percent(30) {
        return Clock::default();
    }
    let offset_ms = dice.octaves(1, 4_000_000).cast_signed();
    let offset_ms = if dice.percent(50) { offset_ms } else { -offset_ms };
    let drift = dice.between(0, 400) as i32 - 200;
    Clock { offset_ms, drift }
}

#[cfg(test)]
mod tests;
