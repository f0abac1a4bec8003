//! The other end of an association: SCTP without a role.

use super::names::NETWORKS;
use super::{CORRESPONDENT, NEW, OLD, ROUTER, SERVICE};
use auth::Key;
use sctp::message::{Action, Address, Chunk, Packet as Said, Request, Response};
use sctp::{AssociationId, Change, Config, Endpoint, Open, PROTOCOL};
use wire::ipv4::{self, Header};
use wire::{Duration, EtherType, Instant, Ipv4Addr, Mac, Packet, Rng, arp, udp};

/// A host with SCTP, the other end of the association under test.
pub(super) struct Peer {
    endpoint: Endpoint,
    /// The address from which the peer opens associations. After a step `moves`, it prefers the new address as its
    /// source.
    home: Ipv4Addr,
}

impl Peer {
    fn new(home: Ipv4Addr) -> Self {
        Self::allowing(home, Config::default().added_per_minute)
    }

    /// Returns a host that accepts `added_per_minute` unconfirmed addresses in one minute.
    fn allowing(home: Ipv4Addr, added_per_minute: usize) -> Self {
        let config = Config { rto_min: Duration::from_millis(200), added_per_minute, ..Config::default() };
        Self { endpoint: Endpoint::new(config, Key::new([3; 16]), Rng::new(2)), home }
    }

    pub(super) fn correspondent() -> Self {
        let mut peer = Self::new(CORRESPONDENT);
        peer.endpoint.listen(SERVICE, &[CORRESPONDENT]);
        peer
    }

    pub(super) fn mobile_node() -> Self {
        Self::new(OLD)
    }

    fn association(&self) -> Option<AssociationId> {
        self.endpoint.associations().map(|(id, _)| id).next()
    }

    /// Receives a packet; ignores it if it is not SCTP.
    pub(super) fn take(&mut self, now: Instant, packet: &Packet) {
        let Ok((ip, payload)) = Header::parse(&packet.bytes) else { return };
        if ip.protocol == PROTOCOL {
            let _ = self.endpoint.receive(now, ip.src, ip.dst, payload);
        }
        self.read();
    }

    /// Reads all data that have arrived.
    fn read(&mut self) {
        let Some(association) = self.association().and_then(|id| self.endpoint.association_mut(id)) else {
            return;
        };
        while association.read(usize::MAX).is_some() {}
    }

    /// Executes a step `peer ...` of a script.
    pub(super) fn act(&mut self, now: Instant, what: &[&str]) {
        self.endpoint.on_timeout(now);
        if what == ["opens"] {
            let (local, peer) = (vec![self.home], vec![CORRESPONDENT]);
            let open = Open { local, local_port: 5000, peer, peer_port: SERVICE };
            self.endpoint.open(now, &open).unwrap();
            return;
        }
        if let ["allows", added] = what {
            *self = Self::allowing(self.home, added.parse().unwrap());
            self.endpoint.listen(SERVICE, &[CORRESPONDENT]);
            return;
        }
        let Some(id) = self.association() else { return };
        let Some(association) = self.endpoint.association_mut(id) else { return };
        let mut changes = Vec::new();
        for pair in what.chunks(2) {
            match *pair {
                ["writes", bytes] => association.write(0, 0, &vec![7; bytes.parse().unwrap()]).unwrap(),
                ["moves", to] => {
                    self.home = to.parse().unwrap();
                    association.prefer(now, None, self.home).unwrap();
                }
                ["add", address] => changes.push(Change::Add(address.parse().unwrap())),
                ["primary", address] => changes.push(Change::SetPrimary(address.parse().unwrap())),
                ["delete", address] => changes.push(Change::Delete(address.parse().unwrap())),
                ["finishes"] => association.finish(now),
                _ => panic!("no peer does {pair:?}"),
            }
        }
        if !changes.is_empty() {
            association.change(now, &changes).unwrap();
        }
    }

    /// Returns the packets that the peer sends now. If `authentic` is false, the HMAC in each AUTH chunk is wrong.
    pub(super) fn says(&mut self, now: Instant, authentic: bool) -> Vec<Packet> {
        let mut packets = Vec::new();
        while let Some(sent) = self.endpoint.poll_transmit(now) {
            let bytes = if authentic { sent.bytes } else { forged(&sent.bytes) };
            let mut packet = Packet::new(Mac::ZERO, Header::new(PROTOCOL, sent.src, sent.dst).emit(&bytes));
            packet.link.src = router_of(sent.dst);
            packets.push(packet);
        }
        packets
    }
}

/// Returns the link address of the router that delivers packets to this address.
fn router_of(address: Ipv4Addr) -> Mac {
    match address {
        OLD => NETWORKS[0].router,
        NEW => NETWORKS[1].router,
        _ => ROUTER,
    }
}

fn forged(bytes: &[u8]) -> Vec<u8> {
    let mut said = Said::parse(bytes).unwrap();
    for chunk in &mut said.chunks {
        if let Chunk::Auth(auth) = chunk {
            auth.hmac.fill(1);
        }
    }
    said.emit()
}

/// Returns the address of the requester and a router's answer to an ARP request; `None` if the packet is not an ARP
/// request for a router.
pub(super) fn arp_answer(packet: &Packet) -> Option<(Ipv4Addr, Packet)> {
    if packet.link.kind != EtherType::ARP {
        return None;
    }
    let asked = arp::Message::parse(&packet.bytes).ok()?;
    let network = NETWORKS.iter().find(|network| network.address == asked.target)?;
    let mut answer = Packet::arp(packet.link.src, &asked.answer(network.router));
    answer.link.src = network.router;
    Some((asked.sender, answer))
}

/// Returns the description of a packet, as the transcripts have it.
pub(super) fn packet_name(packet: &Packet) -> String {
    if packet.link.kind == EtherType::ARP {
        let said = arp::Message::parse(&packet.bytes).unwrap();
        return format!("arp about {}", said.target);
    }
    let (ip, payload) = Header::parse(&packet.bytes).unwrap();
    if ip.protocol == ipv4::UDP {
        let datagram = udp::Datagram::parse(payload, ip.src, ip.dst).unwrap();
        return super::names::message_name(datagram.payload);
    }
    if ip.protocol == ipv4::ICMP {
        return format!("ICMP error to {}", ip.dst);
    }
    let said = Said::parse(payload).unwrap();
    let chunks: Vec<String> = said.chunks.iter().map(chunk_name).collect();
    format!("{} ({} > {})", chunks.join(" + "), ip.src, ip.dst)
}

fn chunk_name(chunk: &Chunk) -> String {
    match chunk {
        Chunk::Data(data) => format!("DATA {}", data.data.len()),
        Chunk::Init(_) => "INIT".to_owned(),
        Chunk::InitAck(_) => "INIT ACK".to_owned(),
        Chunk::Sack(sack) if sack.gaps.is_empty() => "SACK".to_owned(),
        Chunk::Sack(sack) => format!("SACK with {} gaps", sack.gaps.len()),
        Chunk::Heartbeat(_) => "HEARTBEAT".to_owned(),
        Chunk::HeartbeatAck(_) => "HEARTBEAT ACK".to_owned(),
        Chunk::Abort { .. } => "ABORT".to_owned(),
        Chunk::Shutdown(_) => "SHUTDOWN".to_owned(),
        Chunk::ShutdownAck => "SHUTDOWN ACK".to_owned(),
        Chunk::ShutdownComplete { .. } => "SHUTDOWN COMPLETE".to_owned(),
        Chunk::CookieEcho(_) => "COOKIE ECHO".to_owned(),
        Chunk::CookieAck => "COOKIE ACK".to_owned(),
        Chunk::Error(causes) => format!("ERROR {:#x}", causes.first().map_or(0, |cause| cause.code.0)),
        Chunk::Auth(_) => "AUTH".to_owned(),
        Chunk::Asconf(asconf) => {
            let wishes: Vec<String> = asconf.requests.iter().map(wish).collect();
            format!("ASCONF of {}: {}", address(asconf.lookup), wishes.join(", "))
        }
        Chunk::AsconfAck(ack) => {
            let refusal = ack.responses.iter().find_map(|response| match response {
                Response::Refused(_, causes) => causes.first().map(|cause| cause.code.0),
                _ => None,
            });
            refusal.map_or("ASCONF-ACK: done".to_owned(), |code| format!("ASCONF-ACK: refused, {code:#x}"))
        }
        Chunk::Unknown { kind, .. } => format!("chunk {kind}"),
    }
}

fn address(address: Address) -> String {
    match address {
        Address::Ipv4(address) => address.to_string(),
        Address::Ipv6(_) => "an IPv6 address".to_owned(),
    }
}

fn wish(request: &Request) -> String {
    let Request::Change { action, address: of, .. } = request else { return "something unknown".to_owned() };
    let what = match action {
        Action::Add => "ADD",
        Action::Delete => "DELETE",
        Action::SetPrimary => "SET PRIMARY",
    };
    format!("{what} {}", address(*of))
}
