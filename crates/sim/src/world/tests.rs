//! Tests that each assertion of the simulator can fail.

use super::*;
use link::{Faults, WireSpec};
use node::Node;
use wire::{Ipv4Addr, Rng, SocketAddrV4, WallTime};

const PORTS: [PortId; 2] = [PortId(1), PortId(2)];

fn world() -> World {
    let mut fabric = Fabric::default();
    let delay = [Duration::from_millis(1); 2];
    let wire = WireSpec { rate: 1_000_000, delay, queue: 8, mtu: 1500, faults: Faults::default() };
    fabric.add_wire(PORTS, &wire, &Rng::new(1));
    World::new(fabric, PORTS.map(host))
}

fn host(port: PortId) -> HostSpec {
    HostSpec {
        name: format!("host {}", port.0),
        node: Node::new(Vec::new(), Vec::new()),
        addresses: Vec::new(),
        interfaces: vec![crate::InterfaceSpec {
            name: "eth".into(),
            mac: Mac([2, 0, 0, 0, 0, port.0 as u8]),
            mtu: 1500,
            port,
            tunes: false,
        }],
        wall: WallTime::default(),
        clock_error: wire::ClockError::NONE,
        tcp: tcp::Profile::linux_like().into(),
        rng: Rng::new(1),
    }
}

fn flight(world: &mut World) -> Flight {
    match world.fabric.offer(Instant::ZERO, PORTS[0], 100) {
        Ok(Offer::Flies(flight)) => flight,
        other => panic!("{other:?}"),
    }
}

#[test]
#[should_panic(expected = "an event is in the past")]
fn no_event_is_in_the_past() {
    let mut world = world();
    world.now = Instant(2);
    world.schedule(Instant(1), FutureEvent::Grant);
}

#[test]
#[should_panic(expected = "an event is for no known host, port or order")]
fn a_command_is_for_a_host_that_exists() {
    let status = Command { verb: "status".to_owned(), args: node::Value::None };
    world().command(Instant(1), HostId(2), status);
}

#[test]
#[should_panic(expected = "an event is for no known host, port or order")]
fn a_flight_is_of_a_port_that_exists() {
    let mut world = world();
    let mut flight = flight(&mut world);
    flight.from = PortId(3);
    world.fly(flight, Packet::new(Mac::ZERO, Vec::new()));
}

#[test]
#[should_panic(expected = "an earlier event has results that were not executed")]
fn an_event_begins_with_an_empty_outbox() {
    let mut world = world();
    let [src, dst] = [1, 2].map(|last| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, last), 7));
    world.output.packets.push(wire::udp::packet(src, dst, b"left"));
    world.happen(FutureEvent::Grant);
}

#[test]
#[should_panic(expected = "a frame landed at another time than its last bit")]
fn a_frame_lands_when_it_arrives() {
    let mut world = world();
    let flight = flight(&mut world);
    world.land(&flight, Packet::new(Mac::ZERO, Vec::new()));
}

#[test]
#[should_panic(expected = "no frame waits with this ticket")]
fn a_frame_that_waits_is_kept() {
    let mut fabric = Fabric::default();
    let air = link::Air::default();
    let (rate, queue, faults, delay) = (1_000_000, 8, Faults::default(), Duration::ZERO);
    let (cell, per_frame, mtu, duplex) = (Cell(1), delay, 1500, link::Duplex::Half);
    let is_segment = false;
    let cell = link::CellSpec { cell, rate, per_frame, delay, queue, mtu, faults, air, duplex, is_segment };
    fabric.add_cell(&cell, &Rng::new(1));
    let radio = link::RadioSpec {
        mac: Mac([2, 0, 0, 0, 0, 1]),
        cell: Some(Cell(1)),
        retune: delay,
        attach: delay,
        excursion: delay,
        listening: link::Listening::default(),
        queue: None,
    };
    fabric.add_radio(PORTS[0], radio);
    let mut world = World::new(fabric, [host(PORTS[0])]);
    for _ in 0..2 {
        world.fabric.offer(Instant::ZERO, PORTS[0], 100).unwrap();
    }
    world.set_grant();
    world.now = world.grant_due;
    world.grant();
}
