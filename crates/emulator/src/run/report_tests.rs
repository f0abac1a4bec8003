//! Tests of the limits of a run's own checks: each number is valid up to its limit, and a doubt beyond it.

use super::*;
use recorder::run::Backend;
use scenario::Scenario;
use wire::{Ipv4Addr, Mac, Packet, SocketAddrV4, udp};

/// Returns a run without records.
fn outcome() -> Outcome {
    let (name, text) = Scenario::find("first").unwrap();
    Outcome::new(Scenario::plan(&name, &text, &[], 1).unwrap(), Backend::Linux, Vec::new(), None)
}

fn daemon(name: &str) -> HostReport {
    let counters = [
        ("Ip.OutRequests", 100),
        ("Ip.ForwDatagrams", 0),
        ("Ip.FragOKs", 0),
        ("Ip.FragCreates", 0),
        ("Ip.FragFails", 0),
        ("Ip.InReceives", 80),
        ("Ip.InDelivers", 80),
        ("link.lo.tx_packets", 0),
        ("link.lo.rx_packets", 0),
        ("Udp.OutDatagrams", 0),
        ("Udp.InDatagrams", 0),
        ("Udp.NoPorts", 0),
        ("Tcp.InSegs", 0),
        ("Ip.ReasmReqds", 0),
        ("Ip.ReasmOKs", 0),
    ];
    let counters = counters.into_iter().chain(DISCARDS.map(|name| (name, 0)));
    let received = [("host", 100), ("wire", 50)];
    let summary = DaemonSummary {
        name: name.to_owned(),
        counters: counters.map(|(name, count)| (name.to_owned(), count)).collect(),
        received: received.map(|(name, count)| (name.to_owned(), count)).into(),
        given_to_kernel: 80,
        ..DaemonSummary::default()
    };
    let exit = "exit status: 0".to_owned();
    HostReport {
        name: name.to_owned(),
        exit,
        ended_well: true,
        summary: Some(summary),
        ..HostReport::default()
    }
}

/// Returns the report of a run of two daemons in which all counters agree.
fn report() -> LinuxReport {
    let interface =
        InterfaceReport { number: 1, name: "wire".to_owned(), delivered: 50, ..Default::default() };
    LinuxReport {
        hosts: vec![daemon("east"), daemon("west")],
        interfaces: vec![interface],
        ..LinuxReport::default()
    }
}

/// Returns the doubts about the run of [`report`] after a change of that report.
fn doubts(change: impl FnOnce(&mut LinuxReport)) -> Vec<Doubt> {
    let mut report = report();
    change(&mut report);
    report.find_doubts(&outcome())
}

/// Returns the doubts about the run of [`report`] after a change of the summary of `east`.
fn of_east(change: impl FnOnce(&mut DaemonSummary)) -> Vec<Doubt> {
    doubts(|report| change(report.hosts[0].summary.as_mut().unwrap()))
}

fn east() -> String {
    "east".to_owned()
}

const fn stall(us: u64) -> Stall {
    Stall { us, until_us: 1_500_000 }
}

#[test]
fn a_run_in_which_every_count_agrees_has_no_doubt() {
    assert_eq!(doubts(|_| ()), []);
}

#[test]
fn one_frame_in_a_hundred_may_be_two_milliseconds_late() {
    assert_eq!(of_east(|daemon| daemon.handled.p99_us = 2000.0), []);
    let late = |process: &str| Doubt::Late { process: process.to_owned(), p99_us: 2001.0, alone_us: None };
    assert_eq!(of_east(|daemon| daemon.handled.p99_us = 2001.0), [late("east")]);
    assert_eq!(doubts(|report| report.lateness_us = [5.0, 2000.0, 9000.0]), []);
    assert_eq!(doubts(|report| report.lateness_us = [5.0, 2001.0, 9000.0]), [late(RADIO)]);
}

#[test]
fn a_process_may_be_stalled_for_ten_milliseconds() {
    assert_eq!(of_east(|daemon| daemon.stalls = vec![stall(10_000)]), []);
    let (until_s, stall_ms, idle_ms, alone_us) = (1.5, 10.001, 0.0, None);
    let stalled =
        |process: &str| Doubt::Stalled { process: process.to_owned(), until_s, stall_ms, idle_ms, alone_us };
    assert_eq!(of_east(|daemon| daemon.stalls = vec![stall(10_001)]), [stalled("east")]);
    assert_eq!(doubts(|report| report.stalls = vec![stall(10_001)]), [stalled(RADIO)]);
}

#[test]
fn a_stall_of_the_machine_is_one_doubt_and_no_process_is_accused() {
    let all = |report: &mut LinuxReport| {
        for host in &mut report.hosts {
            host.summary.as_mut().unwrap().stalls = vec![stall(40_000)];
        }
        report.stalls = vec![stall(40_000)];
        report.idle.stalls = vec![stall(38_000)];
    };
    let machine = |stalled| Doubt::MachineStalled {
        until_s: 1.5,
        stall_ms: 40.0,
        stalled,
        processes: 3,
        idle_ms: 38.0,
    };
    assert_eq!(doubts(all), [machine(3)]);
    // If one process ran meanwhile on another processor, the machine is still the cause.
    let but_east = |report: &mut LinuxReport| {
        all(report);
        report.hosts[0].summary.as_mut().unwrap().stalls.clear();
    };
    assert_eq!(doubts(but_east), [machine(2)]);
    // A stall of the machine does not hide a longer stall of a process.
    let frozen = |report: &mut LinuxReport| {
        all(report);
        report.hosts[0].summary.as_mut().unwrap().stalls = vec![stall(300_000)];
    };
    let (process, until_s, stall_ms, idle_ms) = (east(), 1.5, 300.0, 38.0);
    let own = Doubt::Stalled { process, until_s, stall_ms, idle_ms, alone_us: None };
    assert_eq!(doubts(frozen), [machine(3), own]);
}

#[test]
fn two_frozen_processes_are_named_and_not_the_machine() {
    // The idle thread is a part of the link emulator. So a stall of the idle thread and of the link emulator is one
    // observation.
    let both = |report: &mut LinuxReport| {
        report.hosts.extend(["north", "south"].map(daemon));
        report.hosts[0].summary.as_mut().unwrap().stalls = vec![stall(200_000)];
        report.stalls = vec![stall(200_000)];
        report.idle.stalls = vec![stall(198_000)];
    };
    let named = |process: &str| {
        let (process, until_s, stall_ms, idle_ms) = (process.to_owned(), 1.5, 200.0, 198.0);
        Doubt::Stalled { process, until_s, stall_ms, idle_ms, alone_us: None }
    };
    assert_eq!(doubts(both), [named("east"), named(RADIO)]);
    // If the idle thread ran during a stall, the machine is not the cause.
    let found = doubts(|report| {
        report.hosts[0].summary.as_mut().unwrap().stalls = vec![stall(17_000)];
        report.stalls = vec![stall(16_000)];
    });
    assert!(matches!(&found[..], [Doubt::Stalled { .. }, Doubt::Stalled { .. }]), "{found:?}");
}

#[test]
fn lateness_that_the_machine_has_without_daemons_is_the_machines() {
    let with_control = |p99_us, follows_this_run| {
        doubts(|report| {
            let frames = Ages { p99_us, ..Ages::default() };
            report.control = Some(Control { frames, sleeper: Ages::default(), follows_this_run });
            report.hosts[0].summary.as_mut().unwrap().handled.p99_us = 2500.0;
            report.hosts[1].summary.as_mut().unwrap().handled.p99_us = 3000.0;
        })
    };
    let machine = Doubt::MachineLate { late: 2, processes: 3, p99_us: 3000.0, alone_us: 2001.0 };
    assert_eq!(with_control(2001.0, true), [machine]);
    let is_late = |found: Vec<Doubt>| matches!(&found[..], [Doubt::Late { .. }, Doubt::Late { .. }]);
    assert!(is_late(with_control(2000.0, true)) && is_late(with_control(2001.0, false)));
}

#[test]
fn a_store_that_takes_long_is_named_with_its_host() {
    let found = of_east(|daemon| daemon.store_stalls = vec![stall(10_000), stall(10_001)]);
    assert!(
        matches!(&found[..], [Doubt::Stalled { process, .. }] if process == "the store of east"),
        "{found:?}"
    );
    assert_eq!(of_east(|daemon| daemon.store_stalls = vec![stall(10_000)]), []);
}

#[test]
fn what_a_kernel_discards_is_a_doubt() {
    let discarded =
        |counter: &str| Doubt::Discarded { host: east(), counter: counter.to_owned(), packets: 1 };
    for counter in DISCARDS {
        let found = of_east(|daemon| {
            *daemon.counters.get_mut(counter).unwrap() = 1;
        });
        assert_eq!(found, [discarded(counter)]);
    }
    let undelivered = discarded("Ip.InReceives without Ip.InDelivers");
    let lose = |daemon: &mut DaemonSummary| *daemon.counters.get_mut("Ip.InDelivers").unwrap() -= 1;
    assert_eq!(of_east(lose), std::slice::from_ref(&undelivered));
    // Loopback packets are counted in `Ip.InReceives` and in `Ip.InDelivers`.
    let beside_a_loopback = |daemon: &mut DaemonSummary| {
        for counter in ["Ip.InReceives", "Ip.InDelivers", "link.lo.rx_packets"] {
            *daemon.counters.get_mut(counter).unwrap() += 50;
        }
        lose(daemon);
    };
    assert_eq!(of_east(beside_a_loopback), [undelivered]);
    // The fragments of a reassembled packet are delivered as one packet.
    let assembled = |daemon: &mut DaemonSummary| {
        daemon.counters.insert("Ip.ReasmReqds".to_owned(), 2);
        daemon.counters.insert("Ip.ReasmOKs".to_owned(), 1);
        lose(daemon);
    };
    assert_eq!(of_east(assembled), []);
}

/// The ICMP errors of a node about its kernel's packets have one of the host's addresses as source and another as
/// destination. The kernel drops them. These drops are no doubt.
#[test]
fn what_a_node_sends_its_kernel_from_an_address_of_the_host_is_no_discard() {
    let mut run = outcome();
    let [first, second] = [[10, 9, 0, 1], [10, 9, 0, 2]].map(wire::Ipv4Addr::from);
    let host = 0;
    run.plan.hosts[host].config.addresses.extend([first, second]);
    let given = |source| {
        let bytes = Header::new(1, source, first).emit(&[]);
        let what = What::Sent(Iface::HOST, wire::Packet::new(wire::Mac::ZERO, bytes));
        trace::Record { at: wire::Instant::ZERO, host: trace::HostId(host as u32), what }
    };
    run.records = [first, second, wire::Ipv4Addr::new(10, 99, 0, 1)].map(given).to_vec();
    assert_eq!((from_itself(&run, host, Instant::ZERO), from_itself(&run, host + 1, Instant::ZERO)), (2, 0));
}

#[test]
fn records_that_were_lost_and_a_daemon_that_was_killed_after_its_report_are_doubts() {
    let lost = of_east(|daemon| daemon.records = 7);
    assert_eq!(lost, [Doubt::RecordsLost { host: east(), written: 7, read: 0 }]);
    let mut report = report();
    report.hosts[0].records_read = 3;
    assert_eq!(report.hosts_without_records().collect::<Vec<_>>(), ["east"]);
    // Without records there are no other doubts about packets.
    report.interfaces[0].taken = 5;
    assert_eq!(report.find_doubts(&outcome()).len(), 1);
    let exit = "signal: 9 (SIGKILL)".to_owned();
    let killed = doubts(|report| {
        let host = &mut report.hosts[0];
        (host.exit, host.ended_well) = (exit.clone(), false);
    });
    assert_eq!(killed, [Doubt::BadEnd { host: east(), exit }]);
}

#[test]
fn the_idle_thread_is_no_witness_of_its_own_process() {
    let radio = |report: &mut LinuxReport| {
        report.stalls = vec![stall(40_000)];
        report.idle.stalls = vec![stall(40_000)];
    };
    let found = doubts(radio);
    assert!(matches!(&found[..], [Doubt::Stalled { process, .. }] if process == RADIO), "{found:?}");
}

#[test]
fn packets_lost_or_added_between_a_kernel_and_its_node_are_a_doubt() {
    let stack = |to_kernel, sent, came| [Doubt::Stack { host: east(), to_kernel, sent, came }];
    let from_kernel = |came| {
        of_east(|daemon| {
            daemon.received.insert("host".to_owned(), came);
        })
    };
    assert_eq!(from_kernel(99), stack(false, 100, 99));
    assert_eq!(from_kernel(101), stack(false, 100, 101));
    assert_eq!(of_east(|daemon| daemon.given_to_kernel = 81), stack(true, 81, 80));
    // A packet longer than the path MTU does not leave the kernel.
    let too_long = |came| {
        of_east(|daemon| {
            daemon.counters.insert("Ip.FragFails".to_owned(), 2);
            daemon.received.insert("host".to_owned(), came);
        })
    };
    assert_eq!(too_long(98), []);
    assert_eq!(too_long(100), stack(false, 98, 100));
    assert_eq!(of_east(|daemon| daemon.given_to_kernel = 79), stack(true, 79, 80));
    // A packet that a program sends over the loopback may be counted more than once. So a larger count is valid, and a
    // smaller one is a doubt.
    let with_program = |came, looped| {
        doubts(|report| {
            report.programs = vec![ProgramReport { host: east(), ..ProgramReport::default() }];
            let daemon = report.hosts[0].summary.as_mut().unwrap();
            daemon.received.insert("host".to_owned(), came);
            daemon.counters.insert("link.lo.tx_packets".to_owned(), looped);
            *daemon.counters.get_mut("Ip.OutRequests").unwrap() += looped;
        })
    };
    assert_eq!(with_program(101, 0), stack(false, 100, 101), "an interface that copies packets");
    assert_eq!(with_program(101, 1), []);
    assert_eq!(with_program(99, 1), stack(false, 99 + 1, 99));
}

#[test]
fn a_missing_count_is_a_doubt_that_names_it() {
    let no_count = |counter: &str| Doubt::NoCount { host: east(), counter: counter.to_owned() };
    let HostReport { summary: Some(whole), .. } = daemon("east") else { panic!("no summary") };
    for counter in whole.counters.keys() {
        let found = of_east(|daemon| daemon.counters.retain(|name, _| name != counter));
        assert_eq!(found, [no_count(counter)]);
    }
    for (interface, counter) in [("host", "received.host"), ("wire", "received.wire")] {
        assert_eq!(
            of_east(|daemon| daemon.received.retain(|name, _| name != interface)),
            [no_count(counter)]
        );
    }
}

#[test]
fn what_a_link_lost_is_no_refusal_of_this_machine() {
    let lost = |reason: &'static str| {
        let mut outcome = outcome();
        let what = What::Lost(Iface(1), PacketId(1), reason.into());
        outcome.records.push(trace::Record { at: wire::Instant::ZERO, host: trace::HostId(0), what });
        let found = report().find_doubts(&outcome);
        found.iter().filter(|doubt| matches!(doubt, Doubt::Refused { .. })).count()
    };
    assert_eq!(lost("send_no_buffers"), 1);
    assert_eq!(lost("socket_send_full"), 1);
    assert_eq!(lost("send_window_closed"), 0, "a reason that only begins like one");
}

#[test]
fn a_kernel_that_counts_another_number_than_the_applications_is_a_doubt() {
    for counter in ["Udp.OutDatagrams", "Udp.InDatagrams", "Tcp.InSegs"] {
        let found = of_east(|daemon| {
            daemon.counters.insert(counter.to_owned(), 1);
        });
        let is_it = |doubt: &Doubt| matches!(doubt, Doubt::Counts { counter: found, kernel: 1, other: 0, .. } if found == counter);
        assert!(matches!(&found[..], [doubt] if is_it(doubt)), "{found:?}");
    }
}

/// The kernel counts a datagram for which there was no socket, and a datagram that was in a socket when the socket was
/// closed. Neither causes a doubt if the records contain the datagram's end.
#[test]
fn datagrams_that_ended_in_the_kernel_or_with_their_socket_are_counted() {
    let count = |no_ports, read, ended: &[&'static str]| {
        let (mut outcome, mut report) = (outcome(), report());
        let at = |last| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, last), 9);
        let packet = Packet { id: PacketId(7), ..Packet::new(Mac::ZERO, udp::packet(at(1), at(2), b"x")) };
        let mut add = |what| {
            outcome.records.push(trace::Record { at: Instant::ZERO, host: trace::HostId(0), what });
        };
        for reason in ended {
            add(What::Sent(Iface::HOST, packet.clone()));
            add(What::Lost(Iface::HOST, packet.id, (*reason).into()));
        }
        let counters = &mut report.hosts[0].summary.as_mut().unwrap().counters;
        counters.insert("Udp.NoPorts".to_owned(), no_ports);
        counters.insert("Udp.InDatagrams".to_owned(), read);
        let found = report.find_doubts(&outcome);
        found.iter().filter(|doubt| matches!(doubt, Doubt::Counts { .. })).count()
    };
    assert_eq!(count(1, 1, &["no_socket"; 2]), 0);
    assert_eq!(count(0, 1, &["too_many_peers"]), 0);
    assert_eq!(count(1, 0, &[]), 1, "the kernel refused one of which there is no record");
    assert_eq!(count(0, 0, &["no_socket"]), 1, "the kernel never had it");
    assert_eq!(count(0, 0, &["send_no_buffers"]), 0, "the interface refused it");
}

#[test]
fn frames_lost_or_added_at_an_interface_are_a_doubt() {
    let frames_in = |came| {
        of_east(|daemon| {
            daemon.received.insert("wire".to_owned(), came);
        })
    };
    let wanted = |came| [Doubt::FramesIn { host: east(), interface: "wire".to_owned(), came, delivered: 50 }];
    assert_eq!(frames_in(49), wanted(49));
    assert_eq!(frames_in(51), wanted(51));
    let (host, interface) = (east(), "wire".to_owned());
    let left = Doubt::FramesOut { host, interface, left: 1, sent: 0 };
    assert_eq!(doubts(|report| report.interfaces[0].taken = 1), [left]);
}

#[test]
fn what_a_process_says_against_itself_is_a_doubt() {
    let interface = || "wire".to_owned();
    assert_eq!(
        of_east(|daemon| daemon.capture_drops = 1),
        [Doubt::CaptureDrops { process: east(), frames: 1 }]
    );
    assert_eq!(of_east(|daemon| daemon.wall_clock_stepped = true), [Doubt::WallClockSet { process: east() }]);
    let lost = [Doubt::InterfaceLost { host: east(), interface: interface() }];
    assert_eq!(of_east(|daemon| daemon.lost_interfaces.push(interface())), lost);
    assert_eq!(doubts(|report| report.interfaces[0].is_lost = true), lost);
    let refused = |report: &mut LinuxReport| {
        report.interfaces[0].refused.insert("no buffers".to_owned(), 2);
    };
    let reason = "arriving, no buffers".to_owned();
    assert_eq!(
        doubts(refused),
        [Doubt::Refused { host: east(), interface: interface(), reason, packets: 2 }]
    );
    let silent = |report: &mut LinuxReport| {
        report.hosts[0].summary = None;
        report.hosts[0].why_no_summary = Some("missing field `records`".to_owned());
    };
    let why = "missing field `records`".to_owned();
    let wanted = [Doubt::NoSummary { host: east(), why }, Doubt::NoRecords { host: east() }];
    assert_eq!(doubts(silent), wanted);
}
