//! Draws a scenario from a seed. `docs/hunt.md` has the values and their probabilities.

use crate::dice::Dice;
use crate::draft::{Detection, Draft, Kind, Link, Mobile, Move, Protocol, Router, Second, Work, mobile_name};
use crate::fault::{Fault, Node, Spot, What};
use crate::options::{self, Clock, Offers, Options, Visited};
use crate::write;
use wire::Rng;

/// The limits of a random scenario: its numbers of hosts, routers, moves, faults and bytes, and its times in
/// milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// Largest number of nodes of a tree.
    nodes: u64,
    /// Largest number of routers of a protocol without a tree.
    routers: u64,
    /// Largest number of mobile hosts.
    hosts: u64,
    /// Largest number of moves of a host, if there are at most 4 hosts.
    moves: u64,
    /// Largest number of changes of the reach of a second radio.
    turns: u64,
    /// Longest pause between two moves of a host that does not move back and forth.
    pause: u64,
    /// Largest number of bytes of a download or an upload, if there are at most 4 hosts.
    bytes: u64,
    /// Largest number of faults.
    faults: u64,
    /// The value of [`Draft::watched_ms`].
    watched: u64,
}

impl Size {
    /// The limits for the simulator. It runs a scenario within these limits in a fraction of a second.
    pub const SIMULATOR: Self = Self {
        nodes: 40,
        routers: 6,
        hosts: 30,
        moves: 16,
        turns: 6,
        pause: 5000,
        bytes: 500_000,
        faults: 3,
        watched: 20_000,
    };

    /// The limits for Linux, where a run takes real time and needs a process for each host. `watched` exceeds 10 s,
    /// because the judge of datagrams permits each wait of at most 10 s.
    pub const LINUX: Self = Self {
        nodes: 7,
        routers: 4,
        hosts: 3,
        moves: 6,
        turns: 2,
        pause: 2000,
        bytes: 150_000,
        faults: 2,
        watched: 12_000,
    };
}

/// The highest probabilities of a loss in a wire and in a cell, in units of 0.01 %.
struct Losses {
    wires: u64,
    air: u64,
}

impl Losses {
    fn draw(dice: &mut Dice) -> Self {
        let most = match dice.between(1, 100) {
            1..=50 => 0,
            51..=75 => 200,
            _ => 1000,
        };
        let (wires, air) = match dice.between(1, 3) {
            1 => (most, 0),
            2 => (0, most),
            _ => (most / 4, most),
        };
        Self { wires, air }
    }
}

/// Returns the smallest MTU of a link, in bytes. Mobile IP works with any MTU from 576 bytes on, which is what each host
/// must accept (RFC 791).
const fn smallest_mtu(protocol: Protocol) -> u64 {
    if matches!(protocol, Protocol::MobileIp) { 576 } else { 1000 }
}

fn link(dice: &mut Dice, longest_us: u64, loss: u64, smallest_mtu: u64) -> Link {
    let delay_us = dice.octaves(200, longest_us);
    let mtu = if dice.percent(8) { dice.between(smallest_mtu, 1499) as u16 } else { 1500 };
    Link { delay_us, loss: dice.between(0, loss) as u32, mtu }
}

/// Draws the scenario of this seed, within the limits of `size`.
pub fn draw(protocol: Protocol, seed: u64, size: &Size) -> Draft {
    let mut dice = Dice(Rng::new(seed).fork("hunt").fork(protocol.name()));
    let losses = Losses::draw(&mut dice);
    let tree = protocol == Protocol::CellularIp;
    let number = if tree { dice.octaves(5, size.nodes) } else { dice.between(2, size.routers) };
    // A path in a deep tree has many wires. So the longest delay of a wire is shorter in a tree.
    let longest = if tree { 20_000 } else { 100_000 };
    let mtu = smallest_mtu(protocol);
    let core = link(&mut dice, 100_000, losses.wires, mtu);
    let routers = (0..number).map(|index| Router {
        parent: dice.between(0, index.saturating_sub(1)) as usize,
        wire: link(&mut dice, longest, losses.wires, mtu),
        air: link(&mut dice, 2_000, losses.air, mtu),
        rate: dice.pick(&[1000, 2000, 5500, 11_000]).unwrap_or(2000),
        visited: Visited::Required,
        offers: Offers::ALL,
        clock: Clock::default(),
    });
    let routers = routers.collect();
    let retune_ms = if dice.percent(70) { 5 } else { dice.between(20, 1000) };
    let buffer = 1 << dice.between(13, 17);
    let mut draft = Draft {
        protocol,
        seed,
        core,
        routers,
        retune_ms,
        detection: detection(protocol, seed),
        options: Options::DEFAULT,
        buffer,
        hosts: Vec::new(),
        faults: Vec::new(),
        watched_ms: size.watched,
    };
    let cells = draft.cells();
    let hosts = dice.octaves(1, size.hosts).min(dice.octaves(1, size.hosts));
    for number in 0..hosts as usize {
        let host = mobile(&mut dice, protocol, size, &cells, (number, hosts as usize));
        draft.hosts.push(host);
    }
    both_ends(&mut dice, &mut draft);
    if protocol == Protocol::MobileIp {
        with_options(&mut draft, size);
    }
    // The faults are drawn last, so that no other random number of the draw depends on the faults.
    draft.faults = faults(&mut dice, &draft, size.faults);
    if protocol == Protocol::MobileIp {
        let after = draft.faults.last().map_or(1000, Fault::ends);
        draft.faults.extend(options::crash(seed, &draft.with_datagrams_only(), after));
        // A radio with a course cannot tune to a cell that is cut, and `apps/roam` does not repeat a move that failed. So
        // the host would have no link until its next move.
        if draft.faults.iter().any(|fault| matches!(fault.what, What::Cut(Spot::Air(_)))) {
            draft.options.hysteresis = None;
            draft.hosts.iter_mut().for_each(|host| host.second = None);
        }
    }
    draft
}

/// Draws the options of Mobile IP.
fn with_options(draft: &mut Draft, size: &Size) {
    let seed = draft.seed;
    draft.options = options::draw(seed);
    for (index, router) in draft.routers.iter_mut().enumerate() {
        router.visited = options::visited(seed, index);
        router.offers = options::offers(seed, index);
        router.clock = options::clock(seed, &format!("r{index}"));
    }
    let routers = draft.routers.len();
    for (number, host) in draft.hosts.iter_mut().enumerate() {
        host.home = if draft.options.has_homes { number % routers } else { 0 };
        host.clock = options::clock(seed, &mobile_name(number));
        // If cells overlap, two mobile hosts hear each other only in one cell. So the home network is no link on which its
        // hosts reach each other.
        host.work.iter_mut().filter(|_| draft.options.overlaps).for_each(|work| work.peer = None);
        host.second = draft.options.interfaces.and_then(|_| second(seed, number, host, (routers, size)));
    }
}

/// Draws the second radio of a mobile host. It has separate random numbers, as an option has.
fn second(seed: u64, number: usize, host: &Mobile, (routers, size): (usize, &Size)) -> Option<Second> {
    let mut dice = Dice(Rng::new(seed).fork("second").fork(&mobile_name(number)));
    let visited = write::visited(host);
    let others: Vec<usize> = (0..routers).filter(|cell| !visited.contains(cell)).collect();
    let cell = dice.pick(&others).filter(|_| dice.percent(80))?;
    let mut at = dice.between(300, 5000);
    let turns = (0..dice.between(1, size.turns)).map(|_| {
        at += dice.octaves(100, 4 * size.pause);
        at
    });
    Some(Second { cell, turns: turns.collect() })
}

/// Draws the movement detection. It has separate random numbers, so that no other part of the draw depends on it.
fn detection(protocol: Protocol, seed: u64) -> Detection {
    let mut dice = Dice(Rng::new(seed).fork("detection").fork(protocol.name()));
    if dice.percent(40) {
        return Detection::DEFAULT;
    }
    let policy = dice.pick(&Detection::POLICIES).unwrap_or(Detection::DEFAULT.policy);
    Detection { policy, trigger: dice.percent(40) }
}

/// Draws the faults: none in 65 % of scenarios, and 1 to `most` in the others. Faults do not overlap.
fn faults(dice: &mut Dice, draft: &Draft, most: u64) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    if !dice.percent(35) {
        return faults;
    }
    let mut at = dice.between(600, 4000);
    for _ in 0..dice.between(1, most) {
        let lasts = dice.octaves(50, 5000);
        let what = fault(dice, draft);
        let stays = matches!(what, What::Clock(..) | What::Narrow(..));
        let fault = Fault { at, lasts: if stays { 0 } else { lasts }, what };
        at = fault.ends() + dice.octaves(10, 4000);
        faults.push(fault);
    }
    faults
}

fn fault(dice: &mut Dice, draft: &Draft) -> What {
    let router = dice.between(0, draft.routers.len() as u64 - 1) as usize;
    let mobile = Node::Mobile(dice.between(0, draft.hosts.len() as u64 - 1) as usize);
    let keeper = match draft.protocol {
        Protocol::Sigma => Node::Manager,
        _ => Node::Router(0), // the home agent, or the gateway
    };
    // Only routers and agents crash: a crash of an end host ends its applications.
    let between = if dice.percent(20) { keeper } else { Node::Router(router) };
    let any = dice.pick(&[mobile, mobile, Node::Fixed, between, keeper]).unwrap_or(mobile);
    let cell = dice.pick(&draft.cells()).unwrap_or(0);
    let spot = dice.pick(&[Spot::Core, Spot::Wire(router), Spot::Air(cell), Spot::Air(cell)]);
    let spot = spot.unwrap_or(Spot::Core);
    match dice.between(1, 20) {
        1..=5 => What::Crash(between),
        6..=8 => What::Stop(any),
        9..=13 => What::Cut(spot),
        14..=15 => What::Loss(spot, dice.between(100, 1000) as u32),
        // The MTU changes only on wires. Both ends know the MTU of a wire, and a router reports packets that are too
        // large for the wire. No node reports packets that are too large for a cell.
        16..=17 => {
            let wire = if dice.percent(50) { Spot::Core } else { Spot::Wire(router) };
            What::Narrow(wire, dice.between(smallest_mtu(draft.protocol), 1499) as u16)
        }
        18..=19 => {
            // The clocks of all nodes of a Cellular IP access network must agree within 5 s. So three steps of at most
            // 1.5 s are permitted. The clocks of mobile hosts need not agree.
            let is_node = draft.protocol == Protocol::CellularIp && matches!(any, Node::Router(_));
            let by = dice.octaves(100, if is_node { 1500 } else { 100_000 }).cast_signed();
            What::Clock(any, if dice.percent(50) { by } else { -by })
        }
        _ => What::DiskFull(keeper),
    }
}

/// Draws a mobile host. The last argument is its index and the number of hosts.
fn mobile(
    dice: &mut Dice,
    protocol: Protocol,
    size: &Size,
    cells: &[usize],
    (number, hosts): (usize, usize),
) -> Mobile {
    let start = dice.pick(cells).unwrap_or(0);
    // If there are more than 4 hosts, each has a small workload, so that a run takes a fraction of a second.
    let few = hosts > 4;
    let size = if few { &Size { moves: 3, bytes: 60_000, ..*size } } else { size };
    let moves = moves(dice, protocol, cells, start, size);
    let works = if few { 1 } else { dice.between(1, 3) };
    let work = (0..works).map(|index| {
        let port = 9000 + (number * 8) as u16 + index as u16;
        let start = dice.between(500, 2500);
        let peer = peer(dice, protocol, number, hosts);
        // With SIGMA, a workload connects to the first address of its peer. So the workload starts before the peer
        // moves.
        let start = if protocol == Protocol::Sigma && peer.is_some() { 500 + start / 5 } else { start };
        Work { port, peer, start, kind: kind(dice, protocol, few, size.bytes) }
    });
    Mobile { start, moves, work: work.collect(), home: 0, clock: Clock::default(), second: None }
}

/// Draws the other end of a workload: the correspondent or, in 20 % of workloads, another mobile host. With one host or
/// Indirect TCP, it is always the correspondent.
fn peer(dice: &mut Dice, protocol: Protocol, number: usize, hosts: usize) -> Option<usize> {
    if hosts < 2 || protocol == Protocol::IndirectTcp || !dice.percent(20) {
        return None;
    }
    Some((number + dice.between(1, hosts as u64 - 1) as usize) % hosts)
}

fn kind(dice: &mut Dice, protocol: Protocol, few: bool, most: u64) -> Kind {
    let bytes = dice.octaves(2_000, most);
    let datagrams = matches!(protocol, Protocol::CellularIp | Protocol::MobileIp);
    match dice.between(1, if datagrams { 10 } else { 6 }) {
        1..=2 => Kind::Down(bytes),
        // Over Indirect TCP and SIGMA, the applications only send requests. So an upload consists of long requests.
        3..=4 if !datagrams => Kind::Asks {
            question: bytes.min(60_000) as u32,
            answer: 20,
            every: 100,
            count: 1 + bytes / 60_000,
        },
        3..=4 => Kind::Up(bytes),
        5..=6 => {
            let every = dice.octaves(20, 400);
            let count = if few { 20 } else { dice.between(10, 6_000 / every) };
            Kind::Asks {
                question: dice.octaves(20, 2000) as u32,
                answer: dice.octaves(20, 4000) as u32,
                every,
                count,
            }
        }
        _ => Kind::Datagrams {
            up: dice.percent(40),
            rate: if few { 5 } else { dice.between(5, 40) as u32 },
            size: dice.octaves(20, 1400) as u32,
        },
    }
}

fn moves(dice: &mut Dice, protocol: Protocol, cells: &[usize], start: usize, size: &Size) -> Vec<Move> {
    let mut moves = Vec::new();
    let (mut here, mut before) = (start, start);
    let mut at = dice.between(1500, 4000);
    let ping_pong = dice.percent(40);
    let number = dice.octaves(1, size.moves);
    let beat = dice.octaves(100, 2000);
    for _ in 0..number {
        let others: Vec<usize> = cells.iter().copied().filter(|cell| *cell != here).collect();
        let Some(other) = dice.pick(&others) else { break };
        let back = before != here && dice.percent(if ping_pong { 95 } else { 30 });
        let to = if back { before } else { other };
        let overlap = overlap(dice, protocol, beat);
        let soft = dice.percent(40);
        moves.push(Move { at, to, soft, overlap });
        (before, here) = (here, to);
        at += if ping_pong { beat + dice.between(0, beat / 4) } else { dice.octaves(100, size.pause) };
        if protocol == Protocol::Sigma {
            at += overlap.unsigned_abs(); // changes of cell do not overlap
        }
    }
    moves
}

fn overlap(dice: &mut Dice, protocol: Protocol, beat: u64) -> i64 {
    if protocol != Protocol::Sigma {
        return 0;
    }
    match dice.between(1, 10) {
        1..=4 => dice.octaves(50, 2000).cast_signed(),
        5..=8 => 0,
        _ => -dice.between(1, beat).cast_signed(),
    }
}

/// In 25 % of scenarios, lets the other hosts move 0 to 20 ms after the moves of the first host.
fn both_ends(dice: &mut Dice, draft: &mut Draft) {
    let Some((first, others)) = draft.hosts.split_first_mut() else { return };
    if !dice.percent(25) {
        return;
    }
    for host in others {
        for (step, model) in host.moves.iter_mut().zip(&first.moves) {
            step.at = model.at + dice.between(0, 20);
            step.overlap = model.overlap;
        }
        host.moves.truncate(first.moves.len());
    }
}
