//! The moves on Linux: real daemons, each in its own network namespace, behind the lab's links. They get their commands
//! over their control sockets.

use crate::moves::cast;
use crate::moves::judge::{self, Verdict};
use crate::moves::script::{self, CORRESPONDENT, Step};
use daemon::{Answer, Ask, Interface, Spec};
use emulator::link_emulator::{LinkEmulator, Report};
use node::Node;
use os::json_lines::{Heard, Lines};
use os::{Clock, NetNs};
use scenario::Plan;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, spawn};
use trace::{HostId, Record};
use wire::{Duration, Instant};

/// The limit of each wait, except that for the end of a daemon.
const PATIENCE: Duration = Duration::from_secs(20);
/// The limit for the end of a daemon, which writes its records then.
const GOODBYE: Duration = Duration::from_mins(5);
/// The number of bytes that both ends must receive between two attempts.
const LOAD: u64 = 8 * 1024;

/// Runs `number` moves, each after an abandoned one. Must run in a separate sandbox.
pub(crate) fn moves(number: usize) -> Verdict {
    let plan = cast::plan(Duration::from_secs(1));
    let dir = tempfile::tempdir().unwrap();
    let ports = emulator::run::ports(&plan);
    let namespaces = emulator::run::lay_out(&plan, &ports).unwrap();
    let mut radio = LinkEmulator::new(plan.fabric(), ports, &dir.path().join("radio")).unwrap();
    // The links need the namespaces longer than the daemons do.
    let namespaces: Vec<Arc<NetNs>> = namespaces.into_iter().map(Arc::new).collect();
    let mut hosts = Hosts::start(&plan, &namespaces, dir.path());
    let clock = Clock::ahead(Duration::from_millis(100));
    hosts.each(&Ask::Begin { t0: clock.t0, end: None, since: 0, wall_shift: 0 });
    let over = Arc::new(AtomicBool::new(false));
    let carrier: JoinHandle<Report> = {
        let over = Arc::clone(&over);
        spawn(move || {
            radio.run(clock, Instant::NEVER, &over).unwrap();
            radio.take_stock().unwrap()
        })
    };
    os::pause(Duration::from_millis(200));
    let last_at = converse(&mut hosts, number);
    hosts.stop();
    over.store(true, Ordering::Relaxed);
    let carried = carrier.join().unwrap();
    assert_eq!(carried.capture_drops, 0, "frames that the links never saw");
    judge::judge(&plan, &records(&plan, dir.path(), carried.records), last_at)
}

/// Runs the conversation to its end. Returns the host at which the service is at the end.
fn converse(hosts: &mut Hosts, number: usize) -> &'static str {
    let (first, _) = script::ends(0);
    hosts.all(&[script::route(first), Step { host: CORRESPONDENT, verb: "call", to: None }]);
    for number in 0..number {
        let (old, new) = script::ends(number);
        hosts.listen_on(old);
        hosts.all(&script::abandoned(old, new, script::gives_up_after(number)));
        hosts.listen_on(old);
        hosts.all(&script::relocation(old, new));
    }
    let (last_at, _) = script::ends(number);
    hosts.listen_on(last_at);
    hosts.all(&[CORRESPONDENT, last_at].map(|host| Step { host, verb: "finish", to: None }));
    let is_over =
        |hosts: &mut Hosts| [CORRESPONDENT, last_at].map(|host| hosts.report(host, "closed")) == [1, 1];
    hosts.until("the end", is_over);
    // Waits for the last acknowledgments.
    os::pause(Duration::from_millis(100));
    last_at
}

/// The daemons, and their control connections.
struct Hosts {
    lines: BTreeMap<String, Lines>,
    daemons: Vec<JoinHandle<()>>,
}

impl Hosts {
    fn start(plan: &Plan, namespaces: &[Arc<NetNs>], dir: &Path) -> Self {
        let mut hosts = Self { lines: BTreeMap::new(), daemons: Vec::new() };
        for ((host, node), namespace) in plan.hosts.iter().zip(cast::nodes(plan)).zip(namespaces) {
            let (spec, namespace) = (spec(host, node, dir), Arc::clone(namespace));
            // A daemon opens its sockets in the namespace of its thread.
            let run = move || namespace.run(|| daemon::run(spec)).unwrap().unwrap();
            hosts.daemons.push(spawn(run));
        }
        for name in plan.host_names() {
            let control = dir.join(format!("{name}.sock"));
            let mut connected = None;
            patiently(PATIENCE, &format!("{name}'s control socket"), || {
                connected = Lines::connect(&control).ok();
                connected.is_some()
            });
            hosts.lines.insert(name, connected.unwrap());
        }
        hosts.each(&Ask::Ready);
        hosts
    }

    fn each(&mut self, ask: &Ask) {
        let names: Vec<String> = self.lines.keys().cloned().collect();
        for name in names {
            self.ask(&name, ask);
        }
    }

    #[track_caller]
    fn ask(&mut self, host: &str, ask: &Ask) -> serde_json::Value {
        let lines = self.lines.get_mut(host).unwrap();
        lines.send(ask).unwrap();
        let mut heard = Heard::Nothing;
        let limit = if *ask == Ask::Stop { GOODBYE } else { PATIENCE };
        patiently(limit, &format!("{host}'s answer to {ask:?}"), || {
            heard = lines.hear();
            heard != Heard::Nothing
        });
        let Heard::Message(Answer::Ok(answer)) = heard else { panic!("{host}, {ask:?}: {heard:?}") };
        answer
    }

    fn all(&mut self, steps: &[Step]) {
        for step in steps {
            let args = step.to.map_or(serde_json::Value::Null, |to| serde_json::json!({ "to": to }));
            self.ask(step.host, &Ask::Do { verb: step.verb.to_owned(), args });
            if step.verb == "rest" {
                // Bytes that arrive while no program reads must be in the exported state.
                os::pause(Duration::from_millis(15));
            }
        }
    }

    fn report(&mut self, host: &str, field: &str) -> u64 {
        let ask = Ask::Do { verb: "report".to_owned(), args: serde_json::Value::Null };
        self.ask(host, &ask)[field].as_u64().unwrap()
    }

    /// Waits until both ends have received [`LOAD`] more bytes from each other.
    fn listen_on(&mut self, at: &str) {
        for host in [CORRESPONDENT, at] {
            let wanted = self.report(host, "heard") + LOAD;
            self.until("the other's voice", |hosts| hosts.report(host, "heard") >= wanted);
        }
    }

    #[track_caller]
    fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        patiently(PATIENCE, what, || done(self));
    }

    /// Stops all daemons. No kernel may have sent a reset.
    fn stop(mut self) {
        let names: Vec<String> = self.lines.keys().cloned().collect();
        for name in names {
            let summary = self.ask(&name, &Ask::Stop);
            assert_eq!(summary["counters"]["Tcp.OutRsts"], 0, "{name}");
            assert_eq!(summary["capture_drops"], 0, "{name}");
        }
        for daemon in self.daemons {
            daemon.join().unwrap();
        }
    }
}

#[track_caller]
fn patiently(limit: Duration, what: &str, mut done: impl FnMut() -> bool) {
    let clock = Clock::start();
    while !done() {
        assert!(clock.now() < Instant::ZERO + limit, "{what} did not come");
        os::pause(Duration::from_micros(200));
    }
}

fn spec(host: &scenario::HostPlan, node: Node, dir: &Path) -> Spec {
    let config = &host.config;
    let interfaces = config.interfaces.iter().zip(&host.ports);
    Spec {
        name: config.name.clone(),
        node,
        clock_error: wire::ClockError::NONE,
        addresses: config.own_addresses().unwrap(),
        interfaces: interfaces
            .map(|(interface, port)| Interface {
                name: port.name.clone(),
                mac: port.mac,
                mtu: interface.mtu,
                tunes: false,
            })
            .collect(),
        tcp: os::TcpMetrics { congestion: Some("reno".to_owned()), ..Default::default() },
        clients: None,
        control: Some(dir.join(format!("{}.sock", config.name))),
        radio: None,
        records: Some(dir.join(format!("{}.jsonl", config.name))),
        records_at_once: false,
        store: None,
        store_without_sync: false,
        store_needs_room: false,
        data_path_in_kernel: false,
        hold: true,
    }
}

/// Returns the records of all hosts, in the order of time.
fn records(plan: &Plan, dir: &Path, mut records: Vec<Record>) -> Vec<Record> {
    for (host, name) in (0..).map(HostId).zip(plan.host_names()) {
        let text = std::fs::read_to_string(dir.join(format!("{name}.jsonl"))).unwrap();
        records.extend(text.lines().map(|line| Record::from_line(host, line).unwrap()));
    }
    records.sort_by_key(|record| record.at);
    records
}
