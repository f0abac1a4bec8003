//! Writes a draft as a TOML scenario file, as a user would write it.

use crate::draft::{Draft, Kind, Link, Mobile, Move, Protocol, Second, Work, mobile_name};
use crate::fault::{Fault, Node, Spot, What};
use crate::mobile_ip::{self, KEY};
use crate::options::Late;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The wire of the correspondent.
const CORE_WIRE: &str = "internet";

/// Returns the text of the scenario file of a draft.
pub fn scenario(draft: &Draft) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "about = \"drawn by wayfare hunt {} at seed {}\"", draft.protocol, draft.seed);
    let _ = writeln!(out, "duration = \"{}\"", time(draft.end()));
    let _ = writeln!(out, "\n[radio]\nretune = \"{}\"\nattach = \"5ms\"", time(draft.retune_ms));
    if draft.options.overlaps {
        out.push_str("hears = \"channel\"\n");
    }
    match draft.protocol {
        Protocol::CellularIp => access_network(draft, &mut out),
        Protocol::MobileIp | Protocol::IndirectTcp => agents(draft, &mut out),
        Protocol::Sigma => associations(draft, &mut out),
    }
    for (number, host) in draft.hosts.iter().enumerate() {
        mobile(draft, number, host, &mut out);
    }
    draft.faults.iter().for_each(|fault| events(draft, fault, &mut out));
    out
}

/// Returns a time in milliseconds with its unit.
fn time(ms: u64) -> String {
    format!("{ms}ms")
}

fn wire(draft: &Draft, out: &mut String, name: &str, ends: [&str; 2], link: Link, net: Option<String>) {
    let _ = writeln!(out, "\n[wire.{name}]\nends = [\"{}\", \"{}\"]\nrate = \"100Mb/s\"", ends[0], ends[1]);
    if let Some(Late { percent, delay_ms }) = draft.options.late.filter(|_| name == CORE_WIRE) {
        let _ = writeln!(out, "duplicate_delay = \"{delay_ms}ms\"");
        return faulty_link_keys(link, percent * 100, out, net);
    }
    link_keys(draft, out, link, net);
}

fn link_keys(draft: &Draft, out: &mut String, link: Link, net: Option<String>) {
    faulty_link_keys(link, draft.options.duplicate.into(), out, net);
}

/// Writes the keys of a link that duplicates frames with this probability, in units of 0.01 %.
fn faulty_link_keys(link: Link, duplicate: u64, out: &mut String, net: Option<String>) {
    let _ = writeln!(out, "delay = \"{}us\"", link.delay_us);
    if link.loss > 0 {
        let _ = writeln!(out, "loss = {:.4}", f64::from(link.loss) / 1e4);
    }
    if duplicate > 0 {
        let _ = writeln!(out, "duplicate = {:.4}", duplicate as f64 / 1e4);
    }
    if link.mtu != 1500 {
        let _ = writeln!(out, "mtu = {}", link.mtu);
    }
    if let Some(net) = net {
        let _ = writeln!(out, "net = \"{net}\"");
    }
}

fn cells(draft: &Draft, out: &mut String, station: impl Fn(usize) -> String, has_net: bool) {
    for cell in draft.cells() {
        let Some(router) = draft.routers.get(cell) else { continue };
        let number = cell + 1;
        let _ = writeln!(
            out,
            "\n[cell.{number}]\nstation = \"{}\"\nrate = \"{}kb/s\"",
            station(cell),
            router.rate
        );
        if draft.options.overlaps {
            out.push_str("channel = 6\n");
        }
        if draft.options.has_cables {
            out.push_str("duplex = \"full\"\n");
        }
        link_keys(draft, out, router.air, has_net.then(|| format!("10.{number}.0.0/24")));
    }
}

fn node_name(index: usize) -> String {
    if index == 0 { "gateway".to_owned() } else { format!("n{index}") }
}

fn access_network(draft: &Draft, out: &mut String) {
    let _ = writeln!(out, "\n[cellular-ip]\nnetwork_key = \"{KEY}\"");
    wire(draft, out, CORE_WIRE, ["fixed", "gateway"], draft.core, None);
    for (index, router) in draft.routers.iter().enumerate().skip(1) {
        let (here, above) = (node_name(index), node_name(router.parent));
        wire(draft, out, &format!("w{index}"), [&above, &here], router.wire, None);
        let _ = writeln!(
            out,
            "\n[host.{here}]\nrole = [{{ kind = \"cellular-ip/station\", uplink = \"{above}\" }}]"
        );
    }
    cells(draft, out, node_name, false);
    let gateway = "role = [{ kind = \"cellular-ip/gateway\", uplink = \"fixed\" }]";
    let _ = writeln!(out, "\n[host.gateway]\naddress = \"10.1.0.1\"\n{gateway}");
    correspondent(draft, out, "address = \"10.2.0.2\"\ndefault_route = \"gateway\"\n", "");
}

fn agents(draft: &Draft, out: &mut String) {
    out.push_str(&mobile_ip::table(draft));
    let relays = draft.protocol == Protocol::IndirectTcp;
    if relays {
        // Scenarios with one key for all routers and scenarios with a key for each router are tested. Odd seeds have a
        // key for each router.
        let per_router = draft.seed % 2 == 1;
        let _ = writeln!(out, "\n[indirect-tcp]\nkey = \"101112131415161718191a1b1c1d1e1f\"");
        let _ = writeln!(out, "key_per_router = {per_router}");
    }
    routed(draft, out);
    for (index, router) in draft.routers.iter().enumerate() {
        let buffer = draft.buffer;
        let relay = format!(
            "{{ kind = \"indirect-tcp/support-router\", send_buffer = {buffer}, receive_buffer = {buffer} }}"
        );
        let mut roles = Vec::new();
        roles.extend(relays.then_some(relay));
        roles.extend(mobile_ip::router(draft, index));
        let clock = mobile_ip::clock(router.clock);
        let _ = writeln!(out, "\n[host.r{index}]\n{clock}{}", list(&roles));
    }
    let cache = if draft.options.has_cache { "{ kind = \"mobile-ip/correspondent\" }" } else { "" };
    correspondent(draft, out, "", cache);
}

/// Writes the correspondent's wire, a core router with a wire to each other router, and the cells. All links are IP
/// networks.
fn routed(draft: &Draft, out: &mut String) {
    wire(draft, out, CORE_WIRE, ["fixed", "core"], draft.core, Some("10.0.0.0/24".to_owned()));
    let _ = writeln!(out, "\n[host.core]");
    for (index, router) in draft.routers.iter().enumerate() {
        let net = Some(format!("10.0.{}.0/24", index + 1));
        wire(draft, out, &format!("w{index}"), ["core", &format!("r{index}")], router.wire, net);
    }
    cells(draft, out, |index| format!("r{index}"), true);
}

fn associations(draft: &Draft, out: &mut String) {
    let _ = writeln!(out, "\n[sigma]\nzone = \"hunt.example\"\nkey = \"{KEY}\"");
    routed(draft, out);
    let names = Link { delay_us: 500, loss: 0, mtu: 1500 };
    wire(draft, out, "names", ["core", "manager"], names, Some("10.0.200.0/24".to_owned()));
    let _ = writeln!(out, "\n[host.manager]\nrole = [{{ kind = \"sigma/location-manager\" }}]");
    for index in 0..draft.routers.len() {
        let _ = writeln!(out, "\n[host.r{index}]");
    }
    correspondent(draft, out, "", &format!("{{ kind = \"sigma/correspondent\", {} }}", sctp(draft)));
}

fn sctp(draft: &Draft) -> String {
    format!("sctp = {{ rto_min = \"200ms\", buffer = {} }}", draft.buffer)
}

fn tcp(draft: &Draft) -> String {
    format!("tcp = {{ receive_buffer = {} }}\n", draft.buffer)
}

fn correspondent(draft: &Draft, out: &mut String, keys: &str, role: &str) {
    let mut roles: Vec<String> = Vec::new();
    roles.extend((!role.is_empty()).then(|| role.to_owned()));
    for (number, host) in draft.hosts.iter().enumerate() {
        for work in host.work.iter().filter(|work| work.peer.is_none()) {
            roles.push(peers_side(draft, number, work, "fixed"));
        }
    }
    let _ = writeln!(out, "\n[host.fixed]\n{keys}{}{}", tcp(draft), list(&roles));
}

/// Returns the list of a host's roles, one per line.
fn list(roles: &[String]) -> String {
    let mut lines = String::new();
    for role in roles {
        let _ = writeln!(lines, "    {role},");
    }
    format!("role = [\n{lines}]")
}

/// Returns the address of a host's application. A SIGMA host has no permanent address, so this is its address in the
/// cell where it begins.
fn place(draft: &Draft, host: usize) -> String {
    match draft.hosts.get(host).filter(|_| draft.protocol == Protocol::Sigma) {
        Some(mobile) => format!("10.{}.0.{}", mobile.start + 1, 100 + host),
        None => mobile_name(host),
    }
}

fn transport(draft: &Draft, is_client: bool) -> &'static str {
    match draft.protocol {
        Protocol::Sigma => ", transport = \"sctp\"",
        Protocol::IndirectTcp if is_client => ", transport = \"indirect\"",
        _ => "",
    }
}

fn source(draft: &Draft, to: &str, work: &Work, rate: u32, size: u32) -> String {
    let (start, stop) = (time(work.start), time(draft.stop()));
    let cut = if draft.options.has_fragments { ", dont_fragment = false" } else { "" };
    format!(
        "{{ kind = \"apps/constant-rate\", to = \"{to}\", rate = {rate}, size = {size}{cut}, start = \"{start}\", stop = \"{stop}\" }}"
    )
}

/// Returns the role of a workload at the peer of its mobile host.
fn peers_side(draft: &Draft, mobile: usize, work: &Work, here: &str) -> String {
    let (port, start) = (work.port, time(work.start));
    let there = place(draft, mobile);
    match work.kind {
        Kind::Down(bytes) => {
            let by = transport(draft, false);
            format!("{{ kind = \"apps/bulk-server\", at = \"{here}:{port}\", bytes = {bytes}{by} }}")
        }
        Kind::Up(_) => {
            let by = transport(draft, false);
            format!("{{ kind = \"apps/bulk-client\", to = \"{there}:{port}\", start = \"{start}\"{by} }}")
        }
        Kind::Asks { .. } => {
            format!("{{ kind = \"apps/request-server\", at = \"{here}:{port}\"{} }}", transport(draft, false))
        }
        Kind::Datagrams { up: true, .. } => format!("{{ kind = \"apps/sink\", at = \"{here}:{port}\" }}"),
        Kind::Datagrams { rate, size, .. } => source(draft, &format!("{there}:{port}"), work, rate, size),
    }
}

/// Returns the role of a workload at its mobile host.
fn own_side(draft: &Draft, host: usize, work: &Work) -> String {
    let here = place(draft, host);
    let there = work.peer.map_or_else(|| "fixed".to_owned(), |peer| place(draft, peer));
    let (port, start, by) = (work.port, time(work.start), transport(draft, true));
    match work.kind {
        Kind::Down(_) => {
            format!("{{ kind = \"apps/bulk-client\", to = \"{there}:{port}\", start = \"{start}\"{by} }}")
        }
        Kind::Up(bytes) => {
            format!("{{ kind = \"apps/bulk-server\", at = \"{here}:{port}\", bytes = {bytes} }}")
        }
        Kind::Asks { question, answer, every, count } => format!(
            "{{ kind = \"apps/request-client\", to = \"{there}:{port}\", start = \"{start}\", question = {question}, \
             answer = {answer}, every = \"{}\", exchanges = {count}{by} }}",
            time(every)
        ),
        Kind::Datagrams { up: false, .. } => format!("{{ kind = \"apps/sink\", at = \"{here}:{port}\" }}"),
        Kind::Datagrams { rate, size, .. } => source(draft, &format!("{there}:{port}"), work, rate, size),
    }
}

fn mobile(draft: &Draft, number: usize, host: &Mobile, out: &mut String) {
    let mut roles = protocol_roles(draft, number, host);
    roles.extend(host.work.iter().map(|work| own_side(draft, number, work)));
    for (other, peer) in draft.hosts.iter().enumerate() {
        let here = place(draft, number);
        let mine = peer.work.iter().filter(|work| work.peer == Some(number));
        roles.extend(mine.map(|work| peers_side(draft, other, work, &here)));
    }
    let keys = if draft.protocol == Protocol::Sigma {
        courses(host)
    } else {
        let address = mobile_ip::home_address(draft, number);
        let signals = match &host.second {
            Some(second) => reach(draft, second),
            None if draft.options.hysteresis.is_some() => signals(draft, host),
            None => String::new(),
        };
        format!("address = \"{address}\"\n{signals}{}{}", mobile_ip::clock(host.clock), tcp(draft))
    };
    let _ = writeln!(out, "\n[host.m{number}]\n{keys}{}", list(&roles));
}

fn protocol_roles(draft: &Draft, number: usize, host: &Mobile) -> Vec<String> {
    let tree = draft.protocol == Protocol::CellularIp;
    let name = |index: usize| if tree { node_name(index) } else { format!("r{index}") };
    let start = name(host.start);
    let step = |step: &Move| {
        let kind = match (tree, step.soft) {
            (false, _) => "",
            (true, true) => ", kind = \"semisoft\"",
            (true, false) => ", kind = \"hard\"",
        };
        format!("{{ at = \"{}\", to = \"{}\"{kind} }}", time(step.at), name(step.to))
    };
    let moves = host.moves.iter().map(step).collect::<Vec<_>>().join(", ");
    // A mobile node with several interfaces reports its handoffs itself.
    let handoffs = if host.second.is_some() { ", handoffs = false" } else { "" };
    let roam = format!("{{ kind = \"apps/roam\", start = \"{start}\", moves = [{moves}]{handoffs} }}");
    // It tunes when it hears the cell.
    let second = host.second.as_ref().map(|second| {
        let (cell, number) = (name(second.cell), second.cell + 1);
        format!(
            "{{ kind = \"apps/roam\", interface = \"air2\", places = [{{ name = \"{cell}\", cell = {number} }}], follow = 3{handoffs} }}"
        )
    });
    match draft.protocol {
        Protocol::CellularIp => {
            vec![format!("{{ kind = \"cellular-ip/mobile\", start = \"{start}\", moves = [{moves}] }}")]
        }
        Protocol::MobileIp => {
            mobile_ip::mobile_node(draft, number).into_iter().chain([roam]).chain(second).collect()
        }
        Protocol::IndirectTcp => {
            let relay = "{ kind = \"indirect-tcp/mobile-host\" }".to_owned();
            [mobile_ip::mobile_node(draft, number), vec![relay, roam]].concat()
        }
        Protocol::Sigma => {
            let address = |cell: &usize| format!("\"10.{}.0.{}\"", cell + 1, 100 + number);
            let addresses = visited(host).iter().map(address).collect::<Vec<_>>().join(", ");
            vec![format!(
                "{{ kind = \"sigma/mobile-node\", addresses = [{addresses}], signal = {{ hold = \"250ms\" }}, {} }}",
                sctp(draft)
            )]
        }
    }
}

/// Returns the cells of a host, in the order of its first visits.
pub(crate) fn visited(host: &Mobile) -> Vec<usize> {
    let mut cells = vec![host.start];
    for step in &host.moves {
        if !cells.contains(&step.to) {
            cells.push(step.to);
        }
    }
    cells
}

/// Returns the lines of the scenario file for a host with two radios: the number of radios, and the signal of each cell
/// over time.
fn courses(host: &Mobile) -> String {
    let mut points: BTreeMap<usize, Vec<(u64, i16)>> = BTreeMap::new();
    for cell in visited(host) {
        points.entry(cell).or_default().push((0, if cell == host.start { HEARD } else { SILENT }));
    }
    let mut turn = |cell: usize, at: u64, strength: i16| {
        let course = points.entry(cell).or_default();
        let before = course.last().map_or(SILENT, |(_, strength)| *strength);
        course.extend([(at, before), (at, strength)]);
    };
    let mut here = host.start;
    for step in &host.moves {
        let apart = step.overlap.unsigned_abs();
        let (comes, goes) =
            if step.overlap < 0 { (step.at + apart, step.at) } else { (step.at, step.at + apart) };
        turn(step.to, comes, HEARD);
        turn(here, goes, SILENT);
        here = step.to;
    }
    let mut out = "radios = 2\n".to_owned();
    for (cell, course) in points {
        let course: Vec<String> =
            course.into_iter().map(|(at, strength)| format!("[\"{}\", {strength}]", time(at))).collect();
        let _ = writeln!(out, "course.{} = [{}]", cell + 1, course.join(", "));
    }
    out
}

/// Returns the lines of the scenario file for a host with two radios of Mobile IP: the cell of the second one is within
/// reach at times, and all others always.
fn reach(draft: &Draft, second: &Second) -> String {
    let mut out = "radios = 2\n".to_owned();
    for cell in draft.cells() {
        let turns = second.turns.iter().copied().zip([HEARD, SILENT].into_iter().cycle());
        let is_second = cell == second.cell;
        course(&mut out, cell, if is_second { SILENT } else { HEARD }, turns.filter(|_| is_second));
    }
    out
}

/// Returns the lines of the scenario file for the signals of a host that hears all cells: that of its own cell is stronger.
fn signals(draft: &Draft, host: &Mobile) -> String {
    let mut out = String::new();
    for cell in draft.cells() {
        let strength = |is_own: bool| if is_own { HEARD } else { WEAK };
        let moves = host.moves.iter().map(|step| (step.at, strength(step.to == cell)));
        course(&mut out, cell, strength(cell == host.start), moves);
    }
    out
}

/// Writes the signal of a cell over time: the first one, and changes to other ones at these times in milliseconds.
fn course(out: &mut String, cell: usize, first: i16, changes: impl Iterator<Item = (u64, i16)>) {
    let mut strength = first;
    let mut points = vec![format!("[\"0ms\", {strength}]")];
    for (at, next) in changes {
        let at = time(at);
        points.extend([strength, next].map(|strength| format!("[\"{at}\", {strength}]")));
        strength = next;
    }
    let _ = writeln!(out, "course.{} = [{}]", cell + 1, points.join(", "));
}

/// The signal of a cell that is heard well, of one that is heard less well, and of one that is not heard, in dBm.
const HEARD: i16 = -50;
const WEAK: i16 = -65;
const SILENT: i16 = -120;

/// Writes the events of a fault.
fn events(draft: &Draft, fault: &Fault, out: &mut String) {
    let node = |node| format!("host = \"{}\"", host_of(draft, node));
    let spot = |spot| link_of(draft, spot);
    let mut event = |at: u64, kind: &str, rest: &str| {
        let _ = writeln!(out, "\n[[event]]\nat = \"{at}ms\"\nkind = \"{kind}\"\n{rest}");
    };
    let (from, to) = (fault.at, fault.ends());
    match fault.what {
        What::Crash(host) => {
            event(from, "crash", &node(host));
            event(to, "restart", &node(host));
        }
        What::Stop(host) => {
            event(from, "stop", &node(host));
            event(to, "continue", &node(host));
        }
        What::Cut(link) => {
            event(from, "cut", &spot(link));
            event(to, "restore", &spot(link));
        }
        What::DiskFull(host) => {
            event(from, "disk-full", &node(host));
            event(to, "disk-free", &node(host));
        }
        What::Loss(link, loss) => {
            // An event sets the total loss of a link. So the loss of the fault is combined with the loss that was drawn
            // for the link.
            let was = f64::from(draft.link_at(link).map_or(0, |link| link.loss)) / 1e4;
            let more = f64::from(loss) / 1e4;
            let rest = |loss: f64| format!("{}\nloss = {loss:.6}", spot(link));
            event(from, "loss", &rest(1.0 - (1.0 - was) * (1.0 - more)));
            event(to, "loss", &rest(was));
        }
        What::Narrow(link, mtu) => event(from, "mtu", &format!("{}\nmtu = {mtu}", spot(link))),
        What::Clock(host, by) => {
            let sign = if by < 0 { '-' } else { '+' };
            event(from, "clock", &format!("{}\nstep = \"{sign}{}ms\"", node(host), by.unsigned_abs()));
        }
    }
}

/// Returns the name of the host of an event.
fn host_of(draft: &Draft, node: Node) -> String {
    match node {
        Node::Router(index) if draft.protocol == Protocol::CellularIp => node_name(index),
        Node::Router(index) => format!("r{index}"),
        Node::Mobile(index) => mobile_name(index),
        Node::Fixed => "fixed".to_owned(),
        Node::Manager => "manager".to_owned(),
    }
}

/// Returns the key of the link of an event.
fn link_of(draft: &Draft, spot: Spot) -> String {
    match spot {
        Spot::Core => format!("wire = \"{CORE_WIRE}\""),
        // The gateway of a tree has no node above it, so its wire is the core link.
        Spot::Wire(0) if draft.protocol == Protocol::CellularIp => format!("wire = \"{CORE_WIRE}\""),
        Spot::Wire(index) => format!("wire = \"w{index}\""),
        Spot::Air(index) => format!("cell = {}", index + 1),
    }
}
