//! Tests of the world: addresses of interfaces, records that cannot be stored, radios.

use link::{Air, CellSpec, Fabric, Faults, Listening, PortId, RadioSpec, SignalCourse, WireSpec};
use node::{
    FailedAct, Fault, Input, Link, Node, Outbox, Role, StreamEvent, StreamId, StreamOp, Transport, Value,
};
use sim::{HostSpec, InterfaceSpec, Run, StoreFault, World};
use trace::{HostId, What};
use wire::{
    Cell, Duration, EtherType, Iface, Instant, InterfaceAddress, Ipv4Addr, Mac, Packet, Rng, SocketAddrV4,
    WallTime, udp,
};

const AT: Instant = Instant::from_millis(10);
const HERE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);

/// A role that twice stores a record and sends a datagram about it. It sets a mark for each record that was not stored.
#[derive(Debug, Default)]
struct Clerk {
    done: bool,
}

impl Role for Clerk {
    fn name(&self) -> &'static str {
        "clerk"
    }
    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Timeout => {
                self.done = true;
                for _ in 0..2 {
                    out.store(b"binding".to_vec(), b"made".to_vec());
                    let ends = [HERE, THERE].map(|address| SocketAddrV4::new(address, 434));
                    out.send_routed(Packet::new(Mac::ZERO, udp::packet(ends[0], ends[1], b"made")));
                }
            }
            Input::Failed(Fault { act: FailedAct::Store(key), .. }) => {
                assert_eq!(key, b"binding");
                out.mark(node::Mark::new("clerk", "not_stored"));
            }
            _ => {}
        }
    }
    fn deadline(&self) -> Option<Instant> {
        (!self.done).then_some(AT)
    }
    fn status(&self) -> Value {
        Value::None
    }
}

/// A role that receives datagrams.
#[derive(Debug)]
struct Listener;

impl Role for Listener {
    fn name(&self) -> &'static str {
        "listener"
    }
    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(_) => {
                let local = SocketAddrV4::new(THERE, 434);
                out.stream(StreamId(1), StreamOp::Listen { by: Transport::Udp, local, foreign: false });
            }
            Input::Stream(_, StreamEvent::Accepted(new, ..)) => out.stream(new, StreamOp::Read(99)),
            Input::Stream(id, StreamEvent::Data(_)) => out.stream(id, StreamOp::Read(99)),
            _ => {}
        }
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn status(&self) -> Value {
        Value::None
    }
}

fn host(number: u8, role: Box<dyn Role>) -> HostSpec {
    let address = Ipv4Addr::new(10, 1, 0, number);
    let mut node = Node::new(vec![role], Vec::new());
    node.add_address(Instant::ZERO, Iface(1), InterfaceAddress::new(address, 24));
    let (mac, port) = (Mac([2, 0, 0, 0, 0, number]), PortId(u32::from(number)));
    HostSpec {
        name: format!("h{number}"),
        node,
        addresses: vec![address],
        interfaces: vec![InterfaceSpec { name: "eth".into(), mac, mtu: 1500, port, tunes: false }],
        wall: WallTime::default(),
        clock_error: wire::ClockError::NONE,
        tcp: tcp::Profile::linux_like().into(),
        rng: Rng::new(u64::from(number)),
    }
}

/// A role that tunes its radio to a cell. It sets a mark when it hears a cell, and when an interface goes down.
#[derive(Debug)]
struct Wanderer;

impl Role for Wanderer {
    fn name(&self) -> &'static str {
        "wanderer"
    }
    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        let mark = |name| node::Mark::new("wanderer", name);
        match input {
            Input::Start(_) => out.tune(Iface(1), Cell(1)),
            Input::Link(iface, Link::Heard(cell, strength)) => out.mark(
                mark("heard")
                    .with("iface", u64::from(iface.0))
                    .with("cell", u64::from(cell.0))
                    .with("dbm", i64::from(strength)),
            ),
            Input::Link(iface, Link::Down(why)) => {
                out.mark(mark("down").with("why", why));
                if iface == Iface(1) {
                    out.tune(Iface(2), Cell(1));
                }
            }
            _ => {}
        }
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn status(&self) -> Value {
        Value::None
    }
}

#[test]
fn radios_on_their_way_hear_samples_and_lose_their_cells() {
    let at = Instant::from_millis;
    let mut fabric = Fabric::default();
    let (rate, delay, queue) = (1_000_000, Duration::ZERO, 10);
    let (per_frame, faults) = (Duration::ZERO, Faults::default());
    fabric.add_cell(
        &CellSpec {
            cell: Cell(1),
            rate,
            per_frame,
            delay,
            queue,
            mtu: 1500,
            faults,
            air: Air::default(),
            duplex: link::Duplex::Half,
            is_segment: false,
        },
        &Rng::new(1),
    );
    let course = SignalCourse::default().with(Cell(1), vec![(at(0), -60), (at(200), -60), (at(200), -120)]);
    let mut host = host(1, Box::new(Wanderer));
    host.interfaces = (1..=2)
        .map(|number| {
            let (mac, port) = (Mac([2, 0, 0, 0, 0, number]), PortId(u32::from(number)));
            let radio = RadioSpec {
                mac,
                cell: None,
                retune: Duration::ZERO,
                attach: Duration::ZERO,
                excursion: Duration::ZERO,
                listening: Listening::default(),
                queue: None,
            };
            fabric.add_radio(port, radio);
            fabric.add_course(port, course.clone());
            InterfaceSpec { name: format!("air{number}").into(), mac, mtu: 1500, port, tunes: true }
        })
        .collect();
    let run = World::new(fabric, vec![host]).run(at(350));
    let told = run.records.iter().filter_map(|record| match &record.what {
        What::Marked(mark) => {
            let words: Vec<String> = mark.fields.iter().map(|(_, value)| format!("{value:?}")).collect();
            Some(format!("{} {} {}", record.at.0 / 1_000_000, mark.name, words.join(" ")))
        }
        What::Up(iface, _) => Some(format!("{} up {}", record.at.0 / 1_000_000, iface.0)),
        _ => None,
    });
    let told: Vec<String> = told.collect();
    let sample = |ms, iface| format!("{ms} heard Int({iface}) Int(1) Int(-60)");
    let lost = format!("200 down Text({:?})", Link::OUT_OF_RANGE);
    // The first radio loses its cell. The role then tunes the second radio to that cell, which is out of range as well,
    // so the role gets a second notification.
    assert!(told.starts_with(&["0 up 1".to_owned(), sample(0, 1), sample(0, 2)]), "{told:?}");
    assert_eq!(told[3..5], [sample(100, 1), sample(100, 2)]);
    assert_eq!(told[5..7], [lost.clone(), lost], "{told:?}");
}

fn run(fault: Option<StoreFault>) -> Run {
    run_slowly(fault, Duration::ZERO)
}

fn run_slowly(fault: Option<StoreFault>, sync: Duration) -> Run {
    let delay = [Duration::from_millis(1); 2];
    let spec = WireSpec { rate: 1_000_000_000, delay, queue: 10, mtu: 1500, faults: Faults::default() };
    let mut fabric = Fabric::default();
    fabric.add_wire([PortId(1), PortId(2)], &spec, &Rng::new(1));
    let hosts = vec![host(1, Box::new(Clerk::default())), host(2, Box::new(Listener))];
    let mut world = World::new(fabric, hosts);
    world.slow_stores(HostId(0), sync);
    if let Some(fault) = fault {
        world.fail_stores(HostId(0), fault);
    }
    world.run(Instant::from_millis(100))
}

fn count(run: &Run, what: impl Fn(&What) -> bool) -> usize {
    run.records.iter().filter(|record| what(&record.what)).count()
}

fn arrived(run: &Run) -> usize {
    count(run, |what| matches!(what, What::AppReceived(_)))
}

fn failures(run: &Run) -> usize {
    count(run, |what| matches!(what, What::Marked(mark) if mark.name == "not_stored"))
}

#[test]
fn hosts_find_each_other_by_arp_and_every_message_of_it_has_an_end() {
    let run = run(None);
    assert_eq!((arrived(&run), failures(&run)), (2, 0));
    let arp = |packet: &Packet| packet.link.kind == EtherType::ARP;
    assert_eq!(count(&run, |what| matches!(what, What::Sent(_, packet) if arp(packet))), 2);
    assert_eq!(count(&run, |what| matches!(what, What::Received(_, packet) if arp(packet))), 2);
    let consumed = |what: &What| matches!(what, What::Dropped(_, _, reason) if reason == "consumed");
    assert_eq!(count(&run, consumed), 2);
}

#[test]
fn no_packet_tells_of_a_record_that_was_not_stored() {
    let full = run(Some(StoreFault::Always));
    assert_eq!((arrived(&full), failures(&full)), (0, 2), "each record is reported");
    let second = run(Some(StoreFault::Nth(2)));
    assert_eq!((arrived(&second), failures(&second)), (1, 1));
    assert_ne!(second.fingerprint, run(None).fingerprint);
}

#[test]
fn a_slow_disk_delays_what_waits_for_it_and_takes_together_what_has_gathered() {
    let sync = Duration::from_millis(30);
    for (fault, expected) in
        [(None, (2, 0)), (Some(StoreFault::Nth(2)), (1, 1)), (Some(StoreFault::Always), (0, 2))]
    {
        let slow = run_slowly(fault, sync);
        assert_eq!((arrived(&slow), failures(&slow)), expected, "{fault:?}");
        let told = slow.records.iter().filter(|record| match &record.what {
            What::Sent(_, packet) => packet.link.kind == EtherType::IPV4,
            What::Marked(_) => true,
            _ => false,
        });
        // Both records are stored with one sync; the datagrams also wait for ARP.
        let early = AT + sync;
        let late = early + Duration::from_millis(5);
        assert!(told.clone().count() > 0);
        assert!(told.clone().all(|record| (early..late).contains(&record.at)), "{fault:?}");
    }
}
