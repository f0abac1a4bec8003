//! A role that does not come to rest ends the run, and the result names the role, in each build profile.

use link::{Fabric, Faults, PortId, WireSpec};
use node::{Input, Mark, Node, Notification, Outbox, Role, Value};
use sim::{HostSpec, InterfaceSpec, Run, Stopped, World};
use trace::{HostId, What};
use wire::{Duration, Instant, Ipv4Addr, Mac, Rng, WallTime};

const AT: Instant = Instant::from_millis(10);

/// A role whose time-out is always due from `AT` on.
#[derive(Debug)]
struct Impatient;

impl Role for Impatient {
    fn name(&self) -> &'static str {
        "impatient"
    }
    fn handle(&mut self, _now: Instant, _input: Input<'_>, _out: &mut Outbox) {}
    fn deadline(&self) -> Option<Instant> {
        Some(AT)
    }
    fn status(&self) -> Value {
        Value::None
    }
}

/// A role that answers each [`Notification`] with another, from `AT` on.
#[derive(Debug, Default)]
struct Echo {
    began: bool,
}

impl Role for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }
    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        if let Input::Timeout | Input::Notification(_) = input {
            self.began = true;
            out.notify(Notification::Gateway(Ipv4Addr::LOCALHOST));
        }
    }
    fn deadline(&self) -> Option<Instant> {
        (!self.began).then_some(AT)
    }
    fn status(&self) -> Value {
        Value::None
    }
}

/// A role that marks its inputs, and has a time-out after the endless loop of the other host.
#[derive(Debug, Default)]
struct Quiet {
    done: bool,
}

impl Role for Quiet {
    fn name(&self) -> &'static str {
        "quiet"
    }
    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        self.done |= matches!(input, Input::Timeout);
        out.mark(Mark::new("quiet", if let Input::Notification(_) = input { "news" } else { "other" }));
    }
    fn deadline(&self) -> Option<Instant> {
        (!self.done).then_some(AT + Duration::from_millis(1))
    }
    fn status(&self) -> Value {
        Value::None
    }
}

fn host(number: u8, roles: Vec<Box<dyn Role>>) -> HostSpec {
    let (mac, port) = (Mac([2, 0, 0, 0, 0, number]), PortId(u32::from(number)));
    HostSpec {
        name: format!("h{number}"),
        node: Node::new(roles, Vec::new()),
        addresses: Vec::new(),
        interfaces: vec![InterfaceSpec { name: "eth".into(), mac, mtu: 1500, port, tunes: false }],
        wall: WallTime::default(),
        clock_error: wire::ClockError::NONE,
        tcp: tcp::Profile::linux_like().into(),
        rng: Rng::new(u64::from(number)),
    }
}

/// Runs a host with these roles beside a quiet host for one second.
fn run(roles: Vec<Box<dyn Role>>) -> Run {
    let mut fabric = Fabric::default();
    let (rate, delay, faults) = (1_000_000, [Duration::ZERO; 2], Faults::default());
    let wire = WireSpec { rate, delay, queue: 10, mtu: 1500, faults };
    fabric.add_wire([PortId(1), PortId(2)], &wire, &Rng::new(1));
    let quiet: Vec<Box<dyn Role>> = vec![Box::new(Quiet::default()), Box::new(Quiet::default())];
    World::new(fabric, [host(1, roles), host(2, quiet)]).run(Instant::from_millis(1000))
}

fn news(run: &Run) -> usize {
    let is_news = |what: &What| matches!(what, What::Marked(mark) if mark.name == "news");
    run.records.iter().filter(|record| is_news(&record.what)).count()
}

#[test]
fn roles_that_answer_each_other_without_end_stop_the_run() {
    let run = run(vec![Box::new(Echo::default()), Box::new(Echo::default())]);
    assert_eq!(run.stopped, Some(Stopped { at: AT, host: HostId(0), role: "echo" }));
    assert_eq!(news(&run), 0, "the other host heard nothing of it");
    assert!(run.records.iter().all(|record| record.at <= AT), "nothing happens after the stop");
}

#[test]
fn a_time_out_that_is_always_due_stops_the_run() {
    let run = run(vec![Box::new(Impatient)]);
    assert_eq!(run.stopped, Some(Stopped { at: AT, host: HostId(0), role: "impatient" }));
}

#[test]
fn a_run_that_comes_to_rest_is_not_stopped() {
    assert_eq!(run(Vec::new()).stopped, None);
}
