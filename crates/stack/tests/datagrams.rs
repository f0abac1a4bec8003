//! Datagrams that arrive while their stream ends, in the simulator.

use crate::sockets;
use crate::sockets::{Answer, Backend, HOST};
use node::{Addr, StreamId, StreamOp};
use stack::{Output, Stack};
use tcp::Profile;
use wire::{Instant, PacketId, Rng, udp};

/// A stack, and the datagrams that have arrived at its host.
struct Simulated {
    stack: Stack,
    arrived: Vec<Vec<u8>>,
}

impl Simulated {
    fn new() -> Self {
        let stack = Stack::new(Some(HOST), 1500, Profile::linux_like().into(), Rng::new(1));
        Self { stack, arrived: Vec::new() }
    }
}

fn answer(out: Output) -> Answer {
    (out.events, out.lost.into_iter().map(|(_, reason)| reason.0).collect())
}

impl Backend for Simulated {
    fn peer(&self) -> Addr {
        Addr::new([10, 0, 0, 2].into(), 7000)
    }

    fn arrives(&mut self, to: Addr, text: &str) {
        self.arrived.push(udp::packet(self.peer(), to, text.as_bytes()));
    }

    fn receive(&mut self) -> Answer {
        let mut out = Output::default();
        for (number, bytes) in (1..).zip(self.arrived.drain(..)) {
            self.stack.receive(Instant::ZERO, PacketId(number), &bytes, &mut out);
        }
        answer(out)
    }

    fn operate(&mut self, id: StreamId, op: StreamOp) -> Answer {
        let mut out = Output::default();
        self.stack.operate(Instant::ZERO, id, op, &mut out);
        answer(out)
    }
}

#[test]
fn what_a_listener_has_left_is_accepted_again() {
    sockets::what_a_listener_has_left_is_accepted_again(&mut Simulated::new());
}

#[test]
fn what_comes_by_an_aborted_stream_is_reported() {
    sockets::what_comes_by_an_aborted_stream_is_reported(&mut Simulated::new());
}

#[test]
fn what_is_left_without_a_listener_is_reported() {
    sockets::what_is_left_without_a_listener_is_reported(&mut Simulated::new());
}

#[test]
fn what_a_closing_socket_has_left_is_reported() {
    sockets::what_a_closing_socket_has_left_is_reported(&mut Simulated::new());
}
