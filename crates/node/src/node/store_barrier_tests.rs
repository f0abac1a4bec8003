//! Tests of several pending records: what waits, in which order it continues, and what is withdrawn.

use super::*;
use crate::{CommandId, Mark, Role, Value};
use wire::{EtherType, Frame, Ipv4Addr, Mac, Packet};

const ETH: Iface = Iface(1);
const CLERK: RoleId = RoleId(0);
const OTHER: RoleId = RoleId(1);
const NOW: Instant = Instant::ZERO;

/// A role that records a mark for each answer about its records.
#[derive(Debug)]
struct Clerk(&'static str);

impl Role for Clerk {
    fn name(&self) -> &'static str {
        self.0
    }
    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        let said = |what: &str, key: &[u8]| Mark::new("clerk", "said").with("is", format!("{what} {key:?}"));
        match input {
            Input::Stored(key) => out.mark(said("stored", key)),
            Input::Failed(Fault { act: FailedAct::Store(key), .. }) => out.mark(said("failed", key)),
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

struct Stage {
    node: Node,
    out: Outbox,
}

impl Stage {
    fn new() -> Self {
        let roles: Vec<Box<dyn Role>> = vec![Box::new(Clerk("clerk")), Box::new(Clerk("other"))];
        Self { node: Node::new(roles, Vec::new()), out: Outbox::default() }
    }

    /// Runs one step of a role with these requests: a digit is a record, and a letter is a packet with this name.
    /// Returns the acts as [`Self::shown`] does.
    fn step(&mut self, role: RoleId, asks: &str) -> String {
        self.out.set_current_role(role);
        for ask in asks.bytes() {
            if ask.is_ascii_digit() {
                self.out.store(vec![ask], Some(Vec::new()));
            } else {
                self.out.send(ETH, packet(ask));
            }
        }
        self.node.settle(NOW, &mut self.out);
        self.shown()
    }

    fn durable(&mut self, records: usize) -> String {
        self.node.resume(NOW, records, &mut self.out);
        self.shown()
    }

    fn fail(&mut self) -> String {
        self.node.withdraw(NOW, "no space", &mut self.out);
        self.shown()
    }

    /// Returns the acts for the driver: records and packets by their names, `!` for a dropped packet. `+` and `-` are
    /// marks of a role: its record is stored, or has failed.
    fn shown(&mut self) -> String {
        let mut shown = String::new();
        while let Some((_, act)) = self.out.next_act() {
            match act {
                Act::Store(key, _) => shown.push(char::from(*key.last().unwrap())),
                Act::Transmit(_, packet) => shown.push(char::from(packet.bytes[0])),
                Act::Drop(_, packet, reason::NOT_STORED) => {
                    shown.extend(['!', char::from(packet.bytes[0])]);
                }
                Act::Mark(mark) => {
                    let Value::Text(said) = &mark.fields[0].1 else { panic!() };
                    shown.push(if said.starts_with("stored") { '+' } else { '-' });
                }
                other => panic!("{other:?}"),
            }
        }
        shown
    }

    fn held(&self) -> Vec<u64> {
        let mut held = Vec::new();
        self.node.holds(&mut |id| held.push(id.0));
        held
    }
}

fn packet(name: u8) -> Packet {
    let link = Frame { kind: EtherType::IPV4, src: Mac::ZERO, dst: Mac::BROADCAST };
    Packet { link, id: PacketId(name.into()), bytes: vec![name] }
}

#[test]
fn records_go_at_once_and_what_stands_behind_each_waits_for_it() {
    let mut stage = Stage::new();
    assert_eq!(stage.step(CLERK, "a1b"), "a1", "effects before the record do not wait");
    assert_eq!(stage.step(CLERK, "2c3d"), "23", "and no record waits for another");
    assert_eq!(stage.held(), [b'b', b'c', b'd'].map(u64::from));
    assert_eq!(stage.durable(1), "b");
    assert_eq!(stage.durable(2), "cd+++", "messages of roles to it are last");
    assert_eq!((stage.held(), stage.node.records_under_way()), (vec![], 0));
    assert_eq!(stage.durable(1), "", "there is none");
}

#[test]
fn a_role_is_obeyed_in_the_order_in_which_it_asked() {
    let mut stage = Stage::new();
    assert_eq!(stage.step(CLERK, "1"), "1");
    assert_eq!(stage.step(CLERK, "a"), "a", "another step, and nothing of this role waits");
    assert_eq!(stage.step(CLERK, "2b"), "2");
    assert_eq!(stage.step(CLERK, "c"), "", "behind b");
    assert_eq!(stage.step(OTHER, "d"), "d", "other roles continue");
    assert_eq!(stage.step(OTHER, "3e"), "3");
    assert_eq!(stage.durable(1), "", "messages of the role to it are behind b too");
    assert_eq!(stage.durable(1), "bc++");
    assert_eq!(stage.durable(1), "e+");
}

#[test]
fn a_failure_takes_back_what_stood_behind_records_and_nothing_else() {
    let mut stage = Stage::new();
    stage.step(CLERK, "a1b");
    stage.step(CLERK, "c");
    stage.step(CLERK, "2d");
    stage.step(OTHER, "3e");
    assert_eq!(stage.durable(1), "bc");
    assert_eq!(stage.step(CLERK, "f"), "");
    assert_eq!(stage.fail(), "!d+f!e--", "each failure is reported, behind the effects that waited");
    assert_eq!((stage.held(), stage.node.records_under_way()), (vec![], 0));
    assert_eq!(stage.step(CLERK, "g4h"), "g4", "and on it goes");
    assert_eq!(stage.durable(1), "h+");
}

#[test]
fn a_packet_that_is_another_s_is_not_taken_back() {
    let mut stage = Stage::new();
    stage.out.set_current_role(CLERK);
    stage.out.store(vec![b'1'], None);
    stage.out.discard(ETH, packet(b'a'), reason::CONSUMED);
    stage.out.answer(CommandId(4), Ok(Value::None));
    stage.node.settle(NOW, &mut stage.out);
    assert_eq!(stage.shown(), "1");
    stage.node.withdraw(NOW, "no space", &mut stage.out);
    let acts: Vec<Act> = std::iter::from_fn(|| stage.out.next_act()).map(|(_, act)| act).collect();
    assert_eq!(acts[0], Act::Drop(ETH, packet(b'a'), reason::CONSUMED));
    assert_eq!(acts[1], Act::Answer(CommandId(4), Err("not stored: no space".to_owned())));
    assert!(matches!(acts[2..], [Act::Mark(_)]));
}

#[test]
fn a_key_is_the_role_s_own_again_when_it_hears_of_it() {
    for fails in [false, true] {
        let mut stage = Stage::new();
        stage.out.set_current_role(OTHER);
        stage.out.store(b"key".to_vec(), None);
        stage.node.settle(NOW, &mut stage.out);
        let Some((OTHER, Act::Store(key, None))) = stage.out.next_act() else { panic!() };
        assert_eq!(key, b"other\0\0key");
        if fails {
            stage.node.withdraw(NOW, "no space", &mut stage.out);
        } else {
            stage.node.resume(NOW, 1, &mut stage.out);
        }
        let Some((OTHER, Act::Mark(mark))) = stage.out.next_act() else { panic!() };
        let heard = format!("{} {:?}", if fails { "failed" } else { "stored" }, b"key");
        assert_eq!(mark.fields[0].1, Value::from(heard));
    }
}

#[test]
fn the_table_and_arp_wait_for_nothing() {
    let mut stage = Stage::new();
    stage.node.add_address(NOW, ETH, "10.1.0.1/24".parse().unwrap());
    let up = crate::Link::Up { cell: None, mac: Mac([2, 0, 0, 0, 0, 1]), mtu: 1500, name: "eth" };
    stage.node.handle(NOW, Input::Link(ETH, up), &mut stage.out);
    assert_eq!(stage.step(CLERK, "1a"), "1");
    let (asker, own) = (Ipv4Addr::new(10, 1, 0, 2), Ipv4Addr::new(10, 1, 0, 1));
    let request = wire::arp::Message::request(Mac([2, 0, 0, 0, 0, 2]), asker, own);
    let link = Frame { kind: EtherType::ARP, src: request.sender_mac, dst: Mac::BROADCAST };
    stage.node.receive(NOW, ETH, Packet { link, id: PacketId(1), bytes: request.emit() }, &mut stage.out);
    let mut acts = std::iter::from_fn(|| stage.out.next_act());
    assert!(acts.any(|(_, act)| matches!(act, Act::Transmit(ETH, sent) if sent.link.kind == EtherType::ARP)));
}
