//! The fast path and the counters give the same result for every packet, and both detect a missing record.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use scenario::{Program, Scenario};
use std::sync::LazyLock;
use step::{Kind, Step};
use trace::{Event, EventKind, Witness};
use wire::{Duration, EtherType, Frame, Iface, Mac, Packet, ipv4};

// --- topologies ------------------------------------------------------------------------------------------------------

struct Network {
    plan: Plan,
    places: Places,
    /// All ends of links.
    ends: Vec<End>,
}

impl Network {
    fn new(plan: Plan) -> Self {
        let interfaces =
            |host| (1..=plan.interface_names(host).len() as u16).map(move |iface| (host, Iface(iface)));
        let ends = (0..plan.len() as u32).map(HostId).flat_map(interfaces).collect();
        Self { places: Places::new(&plan), ends, plan }
    }

    fn of(name: &str, settings: &[&str]) -> Self {
        let (file, text) = Scenario::find(name).unwrap();
        let settings: Vec<_> = settings.iter().map(|setting| setting.parse().unwrap()).collect();
        Self::new(Scenario::plan(&file, &text, &settings, 1).unwrap())
    }

    fn hosts(&self) -> usize {
        self.plan.len()
    }

    /// Returns the possible hops from a host, each as the end at which a packet leaves and the end at which it arrives.
    fn hops(&self, host: HostId) -> Vec<(End, End)> {
        let mut hops = Vec::new();
        for from in self.ends.iter().filter(|end| end.0 == host) {
            let there = |to: &&End| **to != *from && self.places.are_joined(*from, **to);
            hops.extend(self.ends.iter().filter(there).map(|to| (*from, *to)));
        }
        hops
    }
}

/// Two hosts and a wire, which is interface 1 of both.
static WIRE: LazyLock<Network> = LazyLock::new(|| Network::of("scale/transfer", &[]));

/// Five networks: two with wires and cells, one wire, and two trees. In the second network, all hosts have programs,
/// whose reads are not recorded.
static WORLDS: LazyLock<[Network; 5]> = LazyLock::new(|| {
    let tree = ["tree.hosts=9", "tree.fan_out=[2, 2]", "duration=3s"];
    let mut silent = Network::of("first", &[]).plan;
    let program = Program { command: "true".to_owned(), start: Duration::ZERO, stop: None, ends: false };
    silent.hosts.iter_mut().for_each(|host| host.programs.push(program.clone()));
    [
        Network::of("first", &[]),
        Network::new(silent),
        Network::of("scale/transfer", &[]),
        Network::of("scale/tree", &tree),
        Network::of("scale/cellular-ip", &tree),
    ]
});

// --- journeys ----------------------------------------------------------------------------------------------------------

/// The origin of a packet.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Maker {
    Application,
    Stack,
    Role,
}

/// How the packet ends.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    Read,
    Consumed,
    Dropped,
    LostByLink,
}

/// A random path of one packet from host to host.
#[derive(Clone, Debug)]
struct Journey {
    maker: Maker,
    from: usize,
    hops: Vec<usize>,
    fate: Fate,
    is_datagram: bool,
    is_for_all: bool,
}

fn journeys() -> impl Strategy<Value = Journey> {
    let maker = prop_oneof![Just(Maker::Application), Just(Maker::Stack), Just(Maker::Role)];
    let fate =
        prop_oneof![Just(Fate::Read), Just(Fate::Consumed), Just(Fate::Dropped), Just(Fate::LostByLink)];
    let hops = vec(any::<usize>(), 0..6);
    (maker, any::<usize>(), hops, fate, any::<bool>(), any::<bool>()).prop_map(
        |(maker, from, hops, fate, is_datagram, is_for_all)| {
            let is_datagram = is_datagram || maker == Maker::Application;
            Journey { maker, from, hops, fate, is_datagram, is_for_all }
        },
    )
}

impl Journey {
    fn packet(&self, id: u64, (host, iface): End) -> Packet {
        let mut bytes = vec![0x45; 20];
        bytes[9] = if self.is_datagram { ipv4::UDP } else { tcp::PROTOCOL };
        let src = Mac([2, 0, 0, 0, host.0 as u8, iface.0 as u8]);
        let dst = if self.is_for_all { Mac::BROADCAST } else { Mac([4; 6]) };
        Packet { link: Frame { kind: EtherType::IPV4, src, dst }, id: PacketId(id), bytes }
    }

    /// Returns the records of this journey. If `straight`, the packet visits no host twice.
    fn records(&self, net: &Network, id: u64, straight: bool) -> Vec<Record> {
        let mut records = Vec::new();
        let mut write = |host, what| {
            let at = Instant(records.len() as u64 + 1);
            records.push(Record { at, host, what });
        };
        let mut here = HostId((self.from % net.hosts()) as u32);
        let own = |host| self.packet(id, (host, Iface::HOST));
        if self.maker == Maker::Application {
            write(here, What::AppSent(PacketId(id)));
        }
        if self.maker != Maker::Role {
            write(here, What::Received(Iface::HOST, own(here)));
        }
        let mut visited = vec![here];
        for hop in &self.hops {
            let mut hops = net.hops(here);
            hops.retain(|(_, to)| !straight || !visited.contains(&to.0));
            if hops.is_empty() {
                break;
            }
            let (from, to) = hops[hop % hops.len()];
            write(from.0, What::Sent(from.1, self.packet(id, from)));
            write(to.0, What::Received(to.1, self.packet(id, from)));
            here = to.0;
            visited.push(here);
        }
        let id = PacketId(id);
        match self.fate {
            Fate::Read => {
                write(here, What::Sent(Iface::HOST, own(here)));
                if self.is_datagram {
                    write(here, What::AppReceived(id));
                }
            }
            Fate::Consumed => write(here, What::Dropped(Iface::HOST, id, node::reason::CONSUMED.0.into())),
            Fate::Dropped => write(here, What::Dropped(Iface::HOST, id, "no_route".into())),
            Fate::LostByLink => {
                let (from, _) = net.hops(here)[0];
                write(here, What::Sent(from.1, self.packet(id.0, from)));
                write(here, What::Lost(from.1, id, "link_error".into()));
            }
        }
        records
    }

    fn is_delivered(&self) -> bool {
        matches!(self.fate, Fate::Read | Fate::Consumed)
    }
}

fn steps(records: &[Record]) -> Vec<Step> {
    records.iter().map(|record| Step::of(record.at, record.host, &record.what).unwrap().1).collect()
}

// --- fast path and counters ------------------------------------------------------------------------------------------

/// Returns the ledger of one packet from its counters, or `None` if a copy has not ended.
fn long_way(places: &Places, steps: &[Step]) -> Option<Ledger> {
    let (mut ledger, mut books) = (Ledger::default(), Books::default());
    books.open(steps);
    let links = books.links(places);
    if links == Links::Open || !books.hosts_are_at_rest(places) {
        return None;
    }
    ledger.close_books(places, PacketId(1), &Seen::default(), links, &mut books);
    Some(ledger)
}

/// Returns how often the fast path counts one packet as delivered (0 or 1), or `None` if the steps are no chain or have
/// no end.
fn short_way(places: &Places, steps: &[Step]) -> Option<u64> {
    let mut seen = Seen::default();
    for step in steps {
        seen.add(*step, places);
    }
    seen.chain().delivered()
}

/// Returns whether the fast path applies. If it does, asserts that the counters give the same result.
#[track_caller]
fn agree(places: &Places, steps: &[Step]) -> bool {
    let Some(delivered) = short_way(places, steps) else { return false };
    let short = Ledger { sent: 1, delivered, ..Ledger::default() };
    assert_eq!(Some(short), long_way(places, steps), "{steps:?}");
    true
}

/// An error in a list of steps.
#[derive(Clone, Debug)]
enum Fault {
    Missing(Index),
    Twice(Index),
    TooLate(Index),
    Elsewhere(Index, Index),
    OtherHost(Index, Index),
    Other(Index, Kind),
}

fn faults() -> impl Strategy<Value = Fault> {
    let place = any::<Index>;
    prop_oneof![
        place().prop_map(Fault::Missing),
        place().prop_map(Fault::Twice),
        place().prop_map(Fault::TooLate),
        (place(), place()).prop_map(|(at, to)| Fault::Elsewhere(at, to)),
        (place(), place()).prop_map(|(at, to)| Fault::OtherHost(at, to)),
        (place(), kinds()).prop_map(|(at, kind)| Fault::Other(at, kind)),
    ]
}

impl Fault {
    fn befall(&self, net: &Network, steps: &mut Vec<Step>) {
        if steps.is_empty() {
            return;
        }
        let len = steps.len();
        match self {
            Self::Missing(at) => drop(steps.remove(at.index(len))),
            Self::Twice(at) => steps.insert(at.index(len), steps[at.index(len)]),
            Self::TooLate(at) => steps[at.index(len)..].rotate_left(1),
            Self::Elsewhere(at, to) => {
                let step = &mut steps[at.index(len)];
                (step.host, step.iface) = net.ends[to.index(net.ends.len())];
            }
            Self::OtherHost(at, to) => steps[at.index(len)].host = HostId(to.index(net.hosts() + 1) as u32),
            Self::Other(at, kind) => steps[at.index(len)].kind = *kind,
        }
    }
}

const KINDS: [Kind; 14] = [
    Kind::FromLink,
    Kind::ToLink,
    Kind::FromHost,
    Kind::ToHost,
    Kind::ToStack,
    Kind::Dropped,
    Kind::Consumed,
    Kind::LostByLink,
    Kind::LostByStack,
    Kind::HeldByLink,
    Kind::HeldByStack,
    Kind::HeldByRole,
    Kind::AppSent,
    Kind::AppReceived,
];

fn kinds() -> impl Strategy<Value = Kind> {
    prop::sample::select(&KINDS[..])
}

/// Generates a step at either end of the wire, mostly of a kind that chains contain.
fn noise() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![4 => prop::sample::select(&KINDS[..8]), 1 => kinds()];
    (0_u32..2, kind, any::<bool>()).prop_map(|(host, kind, is_for_all)| {
        let on_link = matches!(kind, Kind::FromLink | Kind::ToLink | Kind::LostByLink | Kind::HeldByLink);
        let mac = if is_for_all { Mac::BROADCAST } else { Mac([2; 6]) };
        let iface = if on_link { Iface(1) } else { Iface::HOST };
        Step { at: Instant(1), host: HostId(host), iface, kind, mac }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// The fast path applies to every chain, and gives the same result as the counters.
    #[test]
    fn a_chain_has_even_books(net in any::<Index>(), journey in journeys()) {
        let net = &WORLDS[net.index(WORLDS.len())];
        let records = journey.records(net, 1, false);
        let steps = steps(&records);
        prop_assert!(agree(&net.places, &steps), "not taken for a chain: {steps:?}");
        prop_assert_eq!(short_way(&net.places, &steps), Some(u64::from(journey.is_delivered())));
    }

    #[test]
    fn what_passes_for_a_chain_though_something_is_wrong_has_even_books(
        net in any::<Index>(), journey in journeys(), faults in vec(faults(), 1..4),
    ) {
        let net = &WORLDS[net.index(WORLDS.len())];
        let mut steps = steps(&journey.records(net, 1, false));
        for fault in &faults {
            fault.befall(net, &mut steps);
        }
        agree(&net.places, &steps);
    }

    #[test]
    fn any_steps_that_pass_for_a_chain_have_even_books(steps in vec(noise(), 1..7)) {
        agree(&WIRE.places, &steps);
    }

    /// The ledger must not balance if a record of a chain is missing. It balances without the first record of a packet
    /// from a stack: then the packet looks like one that a role made.
    #[test]
    fn whatever_is_missing_of_a_chain_is_missed(
        net in any::<Index>(), journey in journeys(), at in any::<Index>(),
    ) {
        let net = &WORLDS[net.index(WORLDS.len())];
        let mut records = journey.records(net, 1, false);
        let whole = close(&net.plan, &records);
        prop_assert!(whole.balances());
        let missing = records.remove(at.index(records.len()));
        let left = close(&net.plan, &records);
        match missing.what {
            What::AppSent(_) => prop_assert_eq!(left, whole),
            What::Received(Iface::HOST, _) if journey.maker == Maker::Stack => {}
            _ if records.is_empty() => prop_assert_eq!(left, Ledger::default()),
            // No record contains what a program read.
            What::AppReceived(_) if net.places.is_silent(missing.host) => prop_assert_eq!(left, whole),
            _ => prop_assert!(!left.balances(), "without {missing:?}"),
        }
    }

    /// The steps of many packets are interleaved, and examined in between. No packet is finalised too early.
    #[test]
    fn the_books_of_many_packets_are_those_of_their_records(
        net in any::<Index>(),
        journeys in vec(journeys(), 1..12),
        order in vec((any::<Index>(), any::<bool>()), 200),
    ) {
        let net = &WORLDS[[0, 2, 3, 4][net.index(4)]];
        let mut waiting: Vec<_> = journeys.iter().collect();
        let mut ways = Vec::new();
        let (mut running, mut records, mut order) = (Running::new(&net.plan), Vec::new(), order.iter().cycle());
        while !ways.is_empty() || !waiting.is_empty() {
            let (way, is_settled) = order.next().unwrap();
            let way = way.index(ways.len() + waiting.len()).min(ways.len());
            if way == ways.len() && let Some(journey) = waiting.pop() {
                let id = (journeys.len() - waiting.len()) as u64; // in the order in which they begin
                ways.push(journey.records(net, id, true).into_iter().peekable());
            }
            let Some(record) = ways[way].next() else { unreachable!() };
            if ways[way].peek().is_none() {
                drop(ways.remove(way));
            }
            records.push(record.clone());
            match &record.what {
                What::Received(iface, packet) => running.received(record.at, record.host, *iface, packet),
                What::Sent(iface, packet) => running.sent(record.at, record.host, *iface, packet),
                _ => running.happened(record.at, record.host, record.what),
            }
            if *is_settled {
                running.settled();
            }
        }
        running.settled();
        prop_assert_eq!(running.still_open(), 0);
        let losses = Vec::new();
        prop_assert_eq!(running.close(), Ledger { losses, ..close(&net.plan, &records) });
    }
}

// --- room --------------------------------------------------------------------------------------------------------------

#[test]
fn what_has_ended_takes_no_room() {
    let net = &*WIRE;
    let journey = Journey {
        maker: Maker::Application,
        from: 0,
        hops: vec![0],
        fate: Fate::Read,
        is_datagram: true,
        is_for_all: false,
    };
    let mut running = Running::new(&net.plan);
    for id in 1..=1000 {
        let records = journey.records(net, id, true);
        for record in records {
            running.told(record.at, record.host, &record.what);
            running.settled();
        }
    }
    assert_eq!((running.still_open(), running.most_open(), running.room()), (0, 1, 1));
    assert_eq!(running.close().delivered, 1000);
}

/// A router sends an ICMP error, the error comes back to it, for example in a tunnel, and waits there for ARP. The packet
/// has not ended.
#[test]
fn a_packet_that_comes_back_to_the_role_that_made_it_is_not_over() {
    let net = &*WIRE;
    let packet = || Packet { id: PacketId(1), ..Packet::new(Mac::ZERO, Vec::new()) };
    let (here, there, wire) = (HostId(0), HostId(1), Iface(1));
    let mut running = Running::new(&net.plan);
    for (from, to) in [(here, there), (there, here)] {
        running.sent(Instant(1), from, wire, &packet());
        running.received(Instant(2), to, wire, &packet());
        running.settled();
        assert_eq!(running.still_open(), 1, "at {to:?}");
    }
    running.sent(Instant(3), here, wire, &packet());
    running.received(Instant(4), there, wire, &packet());
    running.happened(Instant(4), there, What::Dropped(wire, PacketId(1), "consumed".into()));
    running.settled();
    assert_eq!(running.still_open(), 0);
    let ledger = running.close();
    assert_eq!((ledger.sent, ledger.copied, ledger.delivered), (1, 0, 1));
    assert!(ledger.balances());
}

#[test]
#[should_panic(expected = "a packet ends again, and none was delivered")]
fn a_packet_that_was_never_delivered_is_not_taken_back() {
    let lost = What::Lost(Iface::HOST, PacketId(1), "frozen".into());
    Running::new(&WIRE.plan).happened(Instant(0), HostId(0), lost);
}

/// Returns a segment that this host sends.
fn segment(from: HostId, is_for_all: bool) -> Packet {
    let (maker, fate, hops) = (Maker::Role, Fate::Read, Vec::new());
    let journey = Journey { maker, from: from.index(), hops, fate, is_datagram: false, is_for_all };
    journey.packet(1, (from, Iface(1)))
}

/// A segment that reached a stack was counted as delivered. If a guard then loses or holds the segment, the ledger is
/// corrected.
#[test]
fn what_a_guard_loses_or_holds_was_not_delivered() {
    let net = &*WIRE;
    let (from, to) = (HostId(0), HostId(1));
    let lost = What::Lost(Iface::HOST, PacketId(1), "frozen".into());
    for end in [lost, What::Held(Some(Iface::HOST), PacketId(1))] {
        let packet = segment(from, false);
        let mut running = Running::new(&net.plan);
        running.received(Instant(0), from, Iface::HOST, &packet);
        running.sent(Instant(0), from, Iface(1), &packet);
        running.settled();
        running.received(Instant(1), to, Iface(1), &packet);
        running.sent(Instant(1), to, Iface::HOST, &packet);
        running.settled();
        running.happened(Instant(2), to, end);
        running.settled();
        let ledger = running.close();
        assert!(ledger.balances() && ledger.doubts().is_empty(), "{ledger:?}");
        assert_eq!((ledger.sent, ledger.delivered), (1, 0));
    }
}

/// A stopped host receives its copy after it continues. The packet is not finalised before.
#[test]
fn a_stopped_host_takes_its_copy_later() {
    let net = &WORLDS[1];
    let cell: Vec<End> = {
        let first = net.ends.iter().find(|end| {
            net.ends.iter().filter(|to| *to != *end && net.places.are_joined(**end, **to)).count() > 1
        });
        let first = *first.expect("a cell");
        let others = net.ends.iter().filter(|to| **to != first && net.places.are_joined(first, **to));
        std::iter::once(first).chain(others.copied()).collect()
    };
    let [sender, early, late] = [cell[0], cell[1], cell[2]];
    let packet = segment(sender.0, true);
    let mut running = Running::new(&net.plan);
    running.happened(Instant(0), late.0, What::Ordered(Event::new(EventKind::Stop, "it")));
    running.sent(Instant(1), sender.0, sender.1, &packet);
    running.settled();
    let consumed = |end: End| What::Dropped(end.1, PacketId(1), node::reason::CONSUMED.0.into());
    running.received(Instant(2), early.0, early.1, &packet);
    running.happened(Instant(2), early.0, consumed(early));
    running.settled();
    running.happened(Instant(3), late.0, What::Ordered(Event::new(EventKind::Continue, "it")));
    running.received(Instant(3), late.0, late.1, &packet);
    running.happened(Instant(3), late.0, consumed(late));
    running.settled();
    let ledger = running.close();
    assert!(ledger.balances() && ledger.doubts().is_empty(), "{ledger:?}");
}

// --- fragments -------------------------------------------------------------------------------------------------------

/// What happens to the second of two fragments.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Second {
    Joined,
    Lost,
    Held,
}

/// One datagram in two fragments over the wire is one packet: delivered, lost or held once.
#[test]
fn a_datagram_in_fragments_is_one_packet() {
    for (second, is_seen) in
        [(Second::Joined, true), (Second::Joined, false), (Second::Lost, true), (Second::Held, true)]
    {
        let (from, to) = (HostId(0), HostId(1));
        let id = PacketId(1);
        let header = ipv4::Header {
            dont_fragment: false,
            ..ipv4::Header::new(ipv4::UDP, [10, 0, 0, 1].into(), [10, 0, 0, 2].into())
        };
        let whole = header.emit(&[0; 1000]);
        let packet = |bytes: &[u8]| Packet { id, ..Packet::new(Mac::ZERO, bytes.to_vec()) };
        let cut = wire::fragment::pieces(&whole, 576).unwrap();
        let [one, two] = [0, 1].map(|at| packet(&cut[at]));
        let mut records = Vec::new();
        let mut write = |at, host, what| records.push(Record { at: Instant(at), host, what });
        write(1, from, What::AppSent(id));
        write(1, from, What::Received(Iface::HOST, packet(&whole)));
        write(1, from, What::Sent(Iface(1), one.clone()));
        write(1, from, What::Sent(Iface(1), two.clone()));
        if second == Second::Lost {
            write(2, from, What::Lost(Iface(1), id, "link_error".into()));
        }
        write(2, to, What::Received(Iface(1), one));
        match second {
            Second::Joined => {
                if is_seen {
                    write(3, to, What::Received(Iface(1), two));
                }
                write(3, to, What::Dropped(Iface(1), id, node::reason::REASSEMBLED.0.into()));
                write(3, to, What::Sent(Iface::HOST, packet(&whole)));
                write(3, to, What::AppReceived(id));
            }
            Second::Lost => {
                write(9, to, What::Dropped(Iface(1), id, node::reason::REASSEMBLY_TIMEOUT.0.into()));
            }
            Second::Held => {
                write(9, to, What::Held(None, id));
                write(9, from, What::Held(Some(Iface(1)), id));
            }
        }
        let ledger = close(&WIRE.plan, &records);
        assert_eq!(ledger.balances(), is_seen, "{second:?}: {ledger:?}");
        if !is_seen {
            continue; // the second fragment vanished on the wire
        }
        assert_eq!((ledger.sent, ledger.copied), (1, 0), "{second:?}: {ledger:?}");
        let ends = (ledger.delivered, ledger.dropped_total(), ledger.held);
        assert_eq!(
            ends,
            match second {
                Second::Joined => (1, 0, 0),
                Second::Lost => (0, 1, 0),
                Second::Held => (0, 0, 1),
            }
        );
        let reasons: Vec<&str> = ledger.losses.iter().map(|loss| loss.reason.as_str()).collect();
        let lost: &[&str] = if second == Second::Lost { &["link_error"] } else { &[] };
        assert_eq!(reasons, lost, "the cause of the first lost fragment");
    }
}

/// A role's fragments have separate identities. Those that do not continue are not counted.
#[test]
fn fragments_of_a_role_are_counted_once_when_they_are_joined() {
    let (from, to) = (HostId(0), HostId(1));
    let packet = |id| Packet { id: PacketId(id), ..segment(from, true) };
    let mut records = Vec::new();
    for id in 1..=2 {
        records.push(Record { at: Instant(id), host: from, what: What::Sent(Iface(1), packet(id)) });
        records.push(Record { at: Instant(id), host: to, what: What::Received(Iface(1), packet(id)) });
    }
    let joined = What::Dropped(Iface(1), PacketId(1), node::reason::REASSEMBLED.0.into());
    records.push(Record { at: Instant(3), host: to, what: joined });
    records.push(Record { at: Instant(3), host: to, what: What::Sent(Iface::HOST, packet(2)) });
    let ledger = close(&WIRE.plan, &records);
    assert!(ledger.balances(), "{ledger:?}");
    assert_eq!((ledger.sent, ledger.delivered), (1, 1));
}
