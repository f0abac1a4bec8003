//! A small role that keeps the laws, and variants of it that each violate one.

use crate::laws::player::{Post, Talk, command, rx};
use node::{
    Action, Input, InterfaceAddress, Lifetime, Mark, Outbox, PuntReason, Role, Route, RouteKey, Rx, Value,
};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use wire::ipv4::Header;
use wire::{Duration, Iface, Instant, Ipv4Addr, Mac, Packet, PacketId, Reason};

const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// The violation of a law by a [`Toy`]; `None` if it keeps all laws.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    None,
    ActsEarly,
    CountsEarly,
    StaysDue,
    IsLate,
    Panics,
    Differs,
    NoAnswer,
    TwoAnswers,
    OthersAnswer,
    Swallows,
    SwallowsForeign,
    ForgetsHeld,
    HidesHeld,
    Endless,
    IgnoresFailure,
    AsksAgain,
}

/// A role that holds packets with less than 30 bytes of payload for [`HOLD`], and then sends them. It answers each
/// command.
#[derive(Debug)]
pub(crate) struct Toy {
    fault: Fault,
    kept: VecDeque<Packet>,
    due: Option<Instant>,
    timeouts: u32,
}

const HOLD: Duration = Duration::from_millis(20);

/// State that is not an input, so a role must not depend on it.
static ELSEWHERE: AtomicU64 = AtomicU64::new(0);

impl Toy {
    pub(crate) const fn new(fault: Fault) -> Self {
        Self { fault, kept: VecDeque::new(), due: None, timeouts: 0 }
    }

    pub(crate) fn talk() -> Talk {
        Talk {
            interfaces: vec!["eth".to_owned()],
            tunes: false,
            commands: vec![command("ping", &[])],
            packet: |rng, _| Post {
                rx: rx(1, PuntReason::Action),
                from: Mac([2; 6]),
                bytes: Header::new(200, PEER, OWN).emit(&vec![0x45; rng.draw() as usize % 40]),
            },
            takes_packets: true,
            datagram: None,
            hears: false,
            serves: None,
            answer: None,
            news: &[],
        }
    }

    fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        let on_time = self.due.is_some_and(|due| due <= now);
        match self.fault {
            Fault::ActsEarly if !on_time => out.mark(Mark::new("toy", "early")),
            Fault::CountsEarly => self.timeouts += 1,
            Fault::IsLate if self.due == Some(now) => return,
            _ => {}
        }
        if on_time {
            self.timeouts += 1;
            for packet in self.kept.drain(..) {
                out.send(Iface(1), packet);
            }
            if self.fault != Fault::StaysDue {
                self.due = None;
            }
        }
    }

    fn packet(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        let len = rx.payload(&packet).len();
        match self.fault {
            Fault::Panics => assert!(len != 7, "seven bytes"),
            Fault::Swallows if len == 0 => return,
            Fault::ForgetsHeld if self.kept.len() == 2 => {
                self.kept.pop_front();
            }
            _ => {}
        }
        if len == 30 && self.fault != Fault::SwallowsForeign {
            return out.pass(rx, packet); // for another role
        }
        if len == 30 {
            return;
        }
        if len > 30 {
            return out.discard(Iface(1), packet, Reason("too_long"));
        }
        self.kept.push_back(packet);
        self.due.get_or_insert(now + HOLD);
    }
}

fn address() -> InterfaceAddress {
    "10.0.0.1/24".parse().unwrap()
}

impl Role for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn verbs(&self) -> &[&'static str] {
        &["ping"]
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(_) => {
                let route = Route::new(Action::Punt, Lifetime::Permanent);
                out.route(RouteKey { class: None, src: wire::Prefix::ANY, dst: wire::Prefix::ANY }, route);
                out.add_address(Iface(1), address());
            }
            Input::Failed(_) if self.fault == Fault::IgnoresFailure => {}
            Input::Failed(_) if self.fault == Fault::AsksAgain => out.add_address(Iface(1), address()),
            Input::Failed(_) => out.mark(Mark::new("toy", "failed")),
            Input::Wall(_) if self.fault == Fault::Endless => {
                (0..100_000).for_each(|_| out.mark(Mark::new("toy", "endless")));
            }
            Input::Timeout => self.timeout(now, out),
            Input::Packet(rx, packet) => self.packet(now, rx, packet, out),
            Input::Command(id, _) => {
                let id = if self.fault == Fault::OthersAnswer { node::CommandId(0) } else { id };
                let times = match self.fault {
                    Fault::NoAnswer => 0,
                    Fault::TwoAnswers => 2,
                    _ => 1,
                };
                (0..times).for_each(|_| out.answer(id, Ok(Value::None)));
            }
            Input::Link(..) if self.fault == Fault::Differs => {
                let count = ELSEWHERE.fetch_add(1, Ordering::Relaxed);
                out.mark(Mark::new("toy", "counted").with("at", count));
            }
            Input::Link(..)
            | Input::Idle(..)
            | Input::Stream(..)
            | Input::Wall(_)
            | Input::Serve(..)
            | Input::Notice(_)
            | Input::Notification(_)
            | Input::Stored(_) => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.due
    }

    fn status(&self) -> Value {
        Value::from(u64::from(self.timeouts))
    }

    fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        let hidden = usize::from(self.fault == Fault::HidesHeld);
        self.kept.iter().skip(hidden).for_each(|packet| each(packet.id));
    }
}
