//! Every role that a configuration can name: its configuration, and the inputs of its scripts.

use crate::laws::player::{Post, Talk, WALL, command, rx};
use auth::Key;
use cellular_ip::message::{Authentication, RouteUpdate, Skipped, session_key};
use node::{PuntReason, Rng, Transport};
use roles::{RoleConfig, Surroundings};
use wire::{Instant, InterfaceAddress, Ipv4Addr, Mac, Packet, SocketAddrV4, ipv4, udp};

#[path = "dhcp.rs"]
mod dhcp;
#[path = "indirect_tcp.rs"]
mod indirect_tcp;
#[path = "mobile_ip.rs"]
mod mobile_ip;
#[path = "sigma.rs"]
mod sigma;

/// One kind of role, with its configuration and the inputs of its scripts.
pub(crate) struct Row {
    pub(crate) kind: &'static str,
    config: &'static str,
    interfaces: &'static [&'static str],
    addresses: &'static [Ipv4Addr],
    says: Says,
    /// Texts that must occur in the `Debug` output of the effects in its scripts.
    pub(crate) reached: &'static [&'static str],
}

#[derive(Clone, Copy)]
enum Says {
    Station,
    Mobile,
    HomeAgent,
    ForeignAgent,
    KeepingAgent,
    MobileNode,
    TwoRadios,
    BindingCache,
    DhcpClient,
    DhcpServer,
    SupportRouter,
    IndirectHost,
    SigmaMobileNode,
    Correspondent,
    LocationManager,
    Workload,
    Carrier,
}

const HOSTS: [Ipv4Addr; 3] =
    [Ipv4Addr::new(10, 1, 0, 7), Ipv4Addr::new(10, 1, 0, 8), Ipv4Addr::new(10, 1, 0, 9)];
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);
const R_MH: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

/// The pools are small and the lifetimes short, so that scripts exhaust the pools and outlive the lifetimes.
const STATION: &str = r#"
    id = 1
    gateway = "10.1.0.1"
    uplink = { interface = "up", mac = "02:00:00:00:00:01" }
    downlinks = ["left", "right"]
    radio = "air"
    network_key = "000102030405060708090a0b0c0d0e0f"
    route_timeout = "2s"
    delay_device = 2
    delay_pool = 2
    cache_capacity = 2
"#;

const STATION_REACHES: &[&str] = &[
    "semisoft_begun",
    "semisoft_cancelled",
    "mapping_expired",
    "delay_pool_exhausted",
    "semisoft_ended",
    "cache_full",
    "bad_auth",
    "stale_timestamp",
    "uplink_mismatch",
    "icmp_checksum",
];

/// All kinds of roles; [`super::no_kind_of_role_is_forgotten`] compares them with the configuration's list.
pub(crate) const ROWS: &[Row] = &[
    Row {
        kind: "cellular-ip/gateway",
        config: STATION,
        interfaces: &["up", "left", "right", "air"],
        addresses: &[GATEWAY],
        says: Says::Station,
        reached: STATION_REACHES,
    },
    Row {
        kind: "cellular-ip/station",
        config: STATION,
        interfaces: &["up", "left", "right", "air"],
        addresses: &[],
        says: Says::Station,
        reached: STATION_REACHES,
    },
    Row {
        kind: "cellular-ip/mobile",
        config: r#"
            address = "10.1.0.7"
            gateway = "10.1.0.1"
            interface = "air"
            r_mh = "0102030405060708"
            session_key = "00"
            tuning_queue = 3
            stations = [
                { name = "b2", id = 2, cell = 2, mac = "02:00:00:00:00:b2" },
                { name = "b3", id = 3, cell = 3, mac = "02:00:00:00:00:b3" },
            ]
            moves = [
                { at = "1s", to = "b3", kind = "semisoft" },
                { at = "1s", to = "b2", kind = "hard" },
                { at = "1s", to = "b2", kind = "semisoft" },
                { at = "5s", to = "b2", kind = "hard" },
            ]
        "#,
        interfaces: &["air"],
        addresses: &[HOSTS[0]],
        says: Says::Mobile,
        reached: &[
            "SendInCell(",
            "Tune(",
            "handoff_failed",
            "handoff_refused",
            "tuning_queue_full",
            "Send(None",
        ],
    },
    Row {
        kind: "mobile-ip/home-agent",
        config: mobile_ip::HOME_AGENT,
        interfaces: &["home", "up"],
        addresses: &[mobile_ip::AGENT],
        says: Says::HomeAgent,
        reached: &[
            "Store(",
            "Tunnel(",
            "Proxy",
            "binding_changed",
            "binding_removed",
            "binding_expired",
            "not_stored",
            "no_association",
            "answered_recently",
            "unexpected_message",
            "udp_checksum",
        ],
    },
    Row {
        kind: "mobile-ip/foreign-agent",
        config: mobile_ip::FOREIGN_AGENT,
        interfaces: &["visited", "up"],
        addresses: &[mobile_ip::VISITED],
        says: Says::ForeignAgent,
        reached: &[
            "visitor_arrived",
            "visitor_expired",
            "request_timed_out",
            "not_pending",
            "answered_recently",
            "wrong_direction",
            "too_many_solicitations",
        ],
    },
    Row {
        kind: "mobile-ip/foreign-agent",
        config: mobile_ip::KEEPING_AGENT,
        interfaces: &["visited", "up"],
        addresses: &[mobile_ip::VISITED],
        says: Says::KeepingAgent,
        reached: &["kept_replaced", "kept_too_old", "kept_visit_ended", "key_received"],
    },
    Row {
        kind: "mobile-ip/mobile-node",
        config: mobile_ip::MOBILE_NODE,
        interfaces: &["air"],
        addresses: &[HOSTS[0]],
        says: Says::MobileNode,
        reached: &[
            "request_sent",
            "registered",
            "denied",
            "agent_lost",
            "Mute",
            "stale_reply",
            "bad_authentication",
        ],
    },
    Row {
        kind: "mobile-ip/mobile-node",
        config: mobile_ip::TWO_RADIOS,
        interfaces: &["air", "air2"],
        addresses: &[HOSTS[0]],
        says: Says::TwoRadios,
        reached: &[
            "interface_usable",
            "interface_unusable",
            "preferred_interface",
            "link_down",
            "weak_signal",
            "registered",
        ],
    },
    Row {
        kind: "mobile-ip/correspondent",
        config: mobile_ip::CORRESPONDENT,
        interfaces: &["up"],
        addresses: &[FAR],
        says: Says::BindingCache,
        reached: &[
            "Tunnel(",
            "binding_learnt",
            "binding_forgotten",
            "no_room",
            "expired",
            "stale_timestamp",
            "bad_authentication",
            "no_association",
        ],
    },
    Row {
        kind: "dhcp/client",
        config: dhcp::CLIENT,
        interfaces: &["eth"],
        addresses: &[],
        says: Says::DhcpClient,
        reached: &[
            "Address(Iface(1), 10.3.0.100/24, true)",
            "Address(Iface(1), 10.3.0.100/24, false)",
            "Watched",
            "address_ready",
            "address_in_use",
            "address_failed",
            "lease_refused",
            "released",
            "dhcp_unexpected",
            "dhcp_lease",
        ],
    },
    Row {
        kind: "dhcp/server",
        config: dhcp::SERVER,
        interfaces: &["eth"],
        addresses: &[dhcp::SERVER_ADDRESS],
        says: Says::DhcpServer,
        reached: &[
            "Watched",
            "leased",
            "address_in_use",
            "pool_exhausted",
            "dhcp_not_leased",
            "dhcp_unsupported",
        ],
    },
    Row {
        kind: "indirect-tcp/support-router",
        config: indirect_tcp::SUPPORT_ROUTER,
        interfaces: &["air", "up"],
        addresses: &[indirect_tcp::LEFT],
        says: Says::SupportRouter,
        reached: &[
            "greeted",
            "pointer_sent",
            "pointer_taken",
            "connection_lost",
            "Hold(",
            "Reset",
            "itcp_forged",
            "itcp_stale",
            "itcp_stranger",
            "itcp_misdirected",
            "itcp_unexpected",
            "Read(4)",
            "Abort",
        ],
    },
    Row {
        kind: "indirect-tcp/mobile-host",
        config: indirect_tcp::MOBILE_HOST,
        interfaces: &["air"],
        addresses: &[HOSTS[0]],
        says: Says::IndirectHost,
        reached: &[
            "greeting_sent",
            "welcomed",
            "not_welcome",
            "itcp_forged",
            "itcp_stale",
            "Open {",
            "Write(",
            "Closed(",
        ],
    },
    Row {
        kind: "sigma/mobile-node",
        config: sigma::MOBILE_NODE,
        interfaces: &["air", "air2"],
        addresses: &[sigma::OWN],
        says: Says::SigmaMobileNode,
        reached: &["Tune(", "Address(", "Route(", "handoff", "Send(None", "Served(Opened"],
    },
    Row {
        kind: "sigma/correspondent",
        config: "address = \"10.9.0.9\"",
        interfaces: &["eth"],
        addresses: &[sigma::CORRESPONDENT],
        says: Says::Correspondent,
        reached: &["Served(Opened", "Send(None", "address in use", "sctp_no_association"],
    },
    Row {
        kind: "sigma/location-manager",
        config: sigma::LOCATION_MANAGER,
        interfaces: &["eth"],
        addresses: &[sigma::MANAGER],
        says: Says::LocationManager,
        reached: &[
            "Listen",
            "Read",
            "Write",
            "Finish",
            "Store(",
            "located",
            "location_lapsed",
            "not_stored",
            "deaf",
        ],
    },
    Row {
        kind: "apps/constant-rate",
        config: r#"
            to = "10.1.0.7:9000"
            rate = 50
            size = 16
            start = "0.5s"
            stop = "8s"
        "#,
        interfaces: &["eth"],
        addresses: &[FAR],
        says: Says::Workload,
        reached: &["Open", "Write"],
    },
    Row {
        kind: "apps/sink",
        config: "at = \"10.0.0.1:9000\"",
        interfaces: &["eth"],
        addresses: &[Ipv4Addr::new(10, 0, 0, 1)],
        says: Says::Workload,
        reached: &["Listen", "Read"],
    },
    Row {
        kind: "apps/bulk-server",
        config: "at = \"10.0.0.1:9000\"\nduration = \"2s\"",
        interfaces: &["eth"],
        addresses: &[Ipv4Addr::new(10, 0, 0, 1)],
        says: Says::Workload,
        reached: &["Listen", "Read", "Write", "Finish", "client_lost", "served"],
    },
    Row {
        kind: "apps/bulk-client",
        config: "to = \"10.1.0.7:9000\"\nstart = \"0.5s\"\nprogress = \"1s\"",
        interfaces: &["eth"],
        addresses: &[FAR],
        says: Says::Workload,
        reached: &["Open", "Read", "Finish", "first_byte", "progress", "done", "failed", "wrong_at"],
    },
    Row {
        kind: "apps/request-server",
        config: "at = \"10.0.0.1:9000\"",
        interfaces: &["eth"],
        addresses: &[Ipv4Addr::new(10, 0, 0, 1)],
        says: Says::Workload,
        reached: &["Listen", "Read", "Abort", "bad_question", "client_lost", "Finish"],
    },
    Row {
        kind: "apps/request-client",
        config: "to = \"10.1.0.7:9000\"\nstart = \"0.5s\"\nanswer = 40\nexchanges = 2",
        interfaces: &["eth"],
        addresses: &[FAR],
        says: Says::Workload,
        reached: &["Open", "Read", "Write", "answered", "wrong_at", "Finish", "done", "failed"],
    },
    Row {
        kind: "apps/roam",
        config: r#"
            interface = "air"
            places = [{ name = "home", cell = 1 }, { name = "foreign", cell = 2 }]
            moves = [{ at = "1s", to = "foreign" }, { at = "3s", to = "home" }]
        "#,
        interfaces: &["air"],
        addresses: &[HOSTS[0]],
        says: Says::Carrier,
        reached: &["Tune(", "handoff", "stuck", "no place"],
    },
];

impl Row {
    pub(crate) fn config(&self) -> RoleConfig {
        let mut table: toml::Table = self.config.parse().unwrap();
        table.insert("kind".to_owned(), self.kind.into());
        toml::Value::Table(table).try_into().unwrap()
    }

    pub(crate) fn interfaces(&self) -> Vec<String> {
        self.interfaces.iter().map(|name| (*name).to_owned()).collect()
    }

    pub(crate) fn addresses(&self) -> Vec<Ipv4Addr> {
        self.addresses.to_vec()
    }

    pub(crate) fn surroundings(&self) -> Surroundings {
        let own = self.addresses.iter().map(|address| InterfaceAddress::new(*address, 24)).collect();
        Surroundings { own, ..Surroundings::default() }
    }

    pub(crate) fn talk(&self) -> Talk {
        let (packet, commands): (fn(&mut Rng, Instant) -> Post, _) = match self.says {
            Says::Station => (to_station, Vec::new()),
            Says::Mobile => {
                let kinds = [("b2", "hard"), ("b3", "hard"), ("b2", "semisoft"), ("b3", "semisoft")];
                let mut commands: Vec<_> = kinds
                    .iter()
                    .map(|(to, kind)| command("handoff", &[("to", to), ("kind", kind)]))
                    .collect();
                commands.push(command("handoff", &[("to", "b9")]));
                commands.push(command("handoff", &[("to", "b3"), ("kind", "soft")]));
                commands.push(command("handoff", &[]));
                (of_the_host, commands)
            }
            Says::HomeAgent => (mobile_ip::to_home_agent, Vec::new()),
            Says::ForeignAgent => (mobile_ip::to_foreign_agent, Vec::new()),
            Says::KeepingAgent => (mobile_ip::to_keeping_agent, Vec::new()),
            Says::MobileNode => (mobile_ip::to_mobile_node, mobile_ip::commands()),
            Says::TwoRadios => (mobile_ip::to_two_radios, mobile_ip::commands()),
            Says::BindingCache => (mobile_ip::to_correspondent, Vec::new()),
            Says::DhcpClient => (dhcp::to_client, dhcp::commands()),
            Says::DhcpServer => (dhcp::to_server, Vec::new()),
            Says::SupportRouter => (indirect_tcp::to_support_router, Vec::new()),
            Says::IndirectHost => (indirect_tcp::to_mobile_host, Vec::new()),
            Says::SigmaMobileNode => (sigma::to_mobile_node, Vec::new()),
            Says::Correspondent => (sigma::to_correspondent, Vec::new()),
            Says::LocationManager | Says::Workload => (of_the_host, Vec::new()),
            Says::Carrier => {
                let moves = ["home", "foreign", "away"].map(|to| command("move", &[("to", to)]));
                (of_the_host, moves.to_vec())
            }
        };
        let takes_packets = !matches!(self.says, Says::LocationManager | Says::Workload | Says::Carrier);
        let is_two = matches!(self.says, Says::TwoRadios);
        let tunes = is_two
            || matches!(self.says, Says::Mobile | Says::MobileNode | Says::SigmaMobileNode | Says::Carrier);
        let answer: Option<fn(&mut Rng, &Packet) -> Option<Post>> = match self.says {
            Says::ForeignAgent => Some(|rng, sent| mobile_ip::answer(rng, sent, mobile_ip::VISITED)),
            Says::KeepingAgent => Some(mobile_ip::answer_with_key),
            Says::MobileNode => Some(|rng, sent| mobile_ip::answer(rng, sent, HOSTS[0])),
            Says::TwoRadios => Some(mobile_ip::answer_two_radios),
            Says::DhcpClient => Some(dhcp::answer),
            Says::IndirectHost => Some(indirect_tcp::answer),
            _ => None,
        };
        let datagram: Option<fn(&mut Rng, Instant) -> Vec<u8>> = match self.says {
            Says::LocationManager => Some(sigma::to_location_manager),
            _ => None,
        };
        let interfaces = self.interfaces();
        let hears = is_two || matches!(self.says, Says::SigmaMobileNode);
        let serves = match self.says {
            Says::SigmaMobileNode | Says::Correspondent => Some(Transport::Role("sctp")),
            Says::IndirectHost => Some(::indirect_tcp::TRANSPORT),
            _ => None,
        };
        let news = match self.says {
            Says::IndirectHost => indirect_tcp::NEWS,
            Says::DhcpClient | Says::DhcpServer => dhcp::NEWS,
            _ => &[],
        };
        Talk { interfaces, tunes, hears, commands, packet, takes_packets, datagram, serves, answer, news }
    }
}

/// Returns a route-update or data of one of three hosts by one of three neighbors, or data to a host.
fn to_station(rng: &mut Rng, now: Instant) -> Post {
    let host = HOSTS[(rng.draw() % 6).saturating_sub(3) as usize]; // one of them more often than the others
    let down = (rng.draw() % 3) as u16 + 2;
    let neighbor = |iface: u16| Mac([2, 0, 0, 0, 0, iface as u8]);
    match rng.draw() % 8 {
        0..=2 => {
            let rx = rx(if rng.draw().is_multiple_of(16) { 1 } else { down }, PuntReason::Listen);
            Post { rx, from: neighbor(rx.iface.0), bytes: route_update(rng, now, host) }
        }
        3 => {
            let why = if rng.draw().is_multiple_of(2) { PuntReason::ReversePath } else { PuntReason::Check };
            Post { rx: rx(down, why), from: neighbor(down), bytes: datagram(rng, host, FAR) }
        }
        _ => Post { rx: rx(1, PuntReason::Action), from: neighbor(1), bytes: datagram(rng, FAR, host) },
    }
}

fn route_update(rng: &mut Rng, now: Instant, mobile: Ipv4Addr) -> Vec<u8> {
    let network_key: Key = "000102030405060708090a0b0c0d0e0f".parse().unwrap();
    let mut update = RouteUpdate {
        mobile,
        gateway: GATEWAY,
        timestamp: WALL.plus(now.since(Instant::ZERO)).to_ntp(),
        semisoft: rng.draw().is_multiple_of(2),
        auth: Authentication::unsigned(1, R_MH),
        serving_bs: Some(1),
        skipped: Skipped::default(),
    };
    // The sender's clock is off by up to a second, or by minutes.
    let off = if rng.draw().is_multiple_of(16) { 300 << 32 } else { rng.draw() >> 32 };
    update.timestamp = update.timestamp.wrapping_add(off);
    let r_mh = if rng.draw().is_multiple_of(16) { [0; 8] } else { R_MH }; // its key is wrong
    update.sign(&session_key(&network_key, 1, mobile, r_mh));
    update.emit()
}

/// Returns a datagram that the host itself sends.
fn of_the_host(rng: &mut Rng, _now: Instant) -> Post {
    Post { rx: rx(0, PuntReason::Action), from: Mac::ZERO, bytes: datagram(rng, HOSTS[0], FAR) }
}

fn datagram(rng: &mut Rng, src: Ipv4Addr, dst: Ipv4Addr) -> Vec<u8> {
    let ends = [src, dst].map(|address| SocketAddrV4::new(address, 9000));
    let bytes = udp::packet(ends[0], ends[1], &rng.draw().to_be_bytes());
    let (header, payload) = ipv4::Header::parse(&bytes).unwrap();
    let ttl = if rng.draw().is_multiple_of(8) { 1 } else { 64 };
    let tos = if rng.draw().is_multiple_of(8) { 46 << 2 } else { 0 };
    ipv4::Header { ttl, tos, ..header }.emit(payload)
}
