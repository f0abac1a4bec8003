//! Many peers of one listening port: the limits of associations, and the end of associations whose peer is gone.

use crate::harness::{CN, PORT, endpoint, mn};
use crate::script::peer_init;
use sctp::message::{Chunk, Packet};
use sctp::{AssociationEvent, AssociationId, Config, Ended, Endpoint, Transmit};
use std::collections::BTreeMap;
use wire::{Duration, Instant, Ipv4Addr, Reason};

struct Server {
    endpoint: Endpoint,
    now: Instant,
    /// Number of packets sent, by destination.
    sent: BTreeMap<Ipv4Addr, usize>,
}

fn says(tag: u32, port: u16, chunk: Chunk) -> Vec<u8> {
    Packet { src_port: port, dst_port: PORT, tag, chunks: vec![chunk] }.emit()
}

impl Server {
    fn new(config: &Config) -> Self {
        let mut endpoint = endpoint(config, 1);
        endpoint.listen(PORT, &[CN]);
        Self { endpoint, now: Instant::from_millis(1000), sent: BTreeMap::new() }
    }

    fn polls(&mut self) -> Option<Transmit> {
        let transmit = self.endpoint.poll_transmit(self.now)?;
        *self.sent.entry(transmit.dst).or_default() += 1;
        Some(transmit)
    }

    /// Opens an association from `address` and `port`, with an INIT that lists `listed`. COOKIE ECHO comes from the
    /// address `from`. Returns the reason if COOKIE ECHO is refused, and the server's tag.
    fn called(
        &mut self,
        address: Ipv4Addr,
        port: u16,
        listed: &[Ipv4Addr],
        from: Ipv4Addr,
    ) -> (Option<Reason>, u32) {
        let init = says(0, port, Chunk::Init(peer_init(listed)));
        self.endpoint.receive(self.now, address, CN, &init).unwrap();
        let answer = Packet::parse(&self.polls().unwrap().bytes).unwrap();
        let [Chunk::InitAck(ack)] = answer.chunks.as_slice() else { panic!("{answer:?}") };
        let echo = says(ack.tag, port, Chunk::CookieEcho(ack.cookie().unwrap().to_vec()));
        let refused = self.endpoint.receive(self.now, from, CN, &echo).err();
        if refused.is_some() {
            self.polls();
        }
        (refused, ack.tag)
    }

    /// Runs until `until`. All packets of the server are lost. If `tags` is given, the server's probes are answered.
    /// `tags` has the server's tag for each port of a peer.
    fn runs(&mut self, until: Instant, tags: Option<&BTreeMap<u16, u32>>) {
        loop {
            while let Some(sent) = self.polls() {
                let packet = Packet::parse(&sent.bytes).unwrap();
                let answer = packet.chunks.iter().find_map(|chunk| match chunk {
                    Chunk::Heartbeat(info) => Some(Chunk::HeartbeatAck(info.clone())),
                    _ => None,
                });
                if let Some((answer, tags)) = answer.zip(tags) {
                    let bytes = says(tags[&packet.dst_port], packet.dst_port, answer);
                    self.endpoint.receive(self.now, sent.dst, CN, &bytes).unwrap();
                }
            }
            let Some(at) = self.endpoint.deadline().filter(|at| *at <= until) else { break };
            self.now = self.now.max(at);
            self.endpoint.on_timeout(self.now);
        }
        self.now = until;
    }
}

/// Ten peers with 40 addresses each do not answer any more. Each association ends by time-outs within ten minutes,
/// whether the addresses are confirmed or not. At most 20 packets go to each address, and no state is left when the
/// associations are released.
#[test]
fn associations_of_many_addresses_end_when_their_peer_is_gone() {
    for proved in [false, true] {
        let mut server = Server::new(&Config::default());
        let mut tags = BTreeMap::new();
        for host in 0..10 {
            let listed: Vec<Ipv4Addr> = (1..=40).map(|last| Ipv4Addr::new(10, 200, host, last)).collect();
            let port = 4000 + u16::from(host);
            let (refused, tag) = server.called(listed[0], port, &listed, listed[0]);
            assert_eq!(refused, None);
            tags.insert(port, tag);
        }
        if proved {
            server.runs(server.now + Duration::from_secs(25), Some(&tags));
        }
        let most = Config::default().max_addresses;
        for (_, association) in server.endpoint.associations() {
            assert_eq!(association.paths().count(), most);
            let active = association.paths().filter(|path| path.state == sctp::PathState::Active).count();
            assert_eq!(active, if proved { most } else { 1 });
        }
        server.runs(server.now + Duration::from_mins(10), None);
        let events: Vec<(AssociationId, AssociationEvent)> =
            std::iter::from_fn(|| server.endpoint.poll_event()).collect();
        let ends: Vec<AssociationId> = events
            .iter()
            .filter(|(_, event)| *event == AssociationEvent::Closed(Ended::TimedOut))
            .map(|(id, _)| *id)
            .collect();
        assert_eq!(ends.len(), 10, "proved: {proved}");
        assert_eq!(server.endpoint.deadline(), None);
        for id in ends {
            server.endpoint.release(id);
        }
        assert_eq!(server.endpoint.associations().count(), 0);
        assert!(server.sent.len() <= 10 * most, "{}", server.sent.len());
        assert!(server.sent.values().all(|sent| *sent <= 20), "{:?}", server.sent);
        assert_eq!(server.polls(), None);
        let (refused, _) = server.called(mn(1), 5000, &[], mn(1));
        assert_eq!(refused, None);
    }
}

/// A port has at most 256 associations with an address that got INIT ACK, whatever the source of COOKIE ECHO. So a
/// second address, real or forged, does not give a host more associations.
#[test]
fn a_cookie_from_another_address_counts_for_the_one_that_made_it() {
    let mut server = Server::new(&Config::default());
    for port in 1..=256 {
        let from = Ipv4Addr::new(10, 77, (port >> 8) as u8, port as u8);
        assert_eq!(server.called(mn(1), port, &[], from).0, None, "{port}");
    }
    let more = server.called(mn(1), 300, &[], mn(2)).0;
    assert_eq!(more, Some(Reason("sctp_too_many_of_address")));
    assert_eq!(server.called(mn(2), 300, &[], mn(2)).0, None);
    assert_eq!(server.endpoint.associations().count(), 257);
}

/// An address that a peer lists does not count towards the limit of associations with this address, until the address
/// is confirmed. So a peer cannot exclude another host by listing the other host's address.
#[test]
fn naming_an_address_keeps_nobody_out() {
    let mut server = Server::new(&Config::default());
    for port in 1..=200 {
        assert_eq!(server.called(mn(1), port, &[mn(1), mn(9)], mn(1)).0, None);
        assert_eq!(server.called(mn(2), port, &[mn(2), mn(8)], mn(2)).0, None);
        assert_eq!(server.called(mn(3), port + 200, &[mn(3), mn(9)], mn(3)).0, None);
    }
    assert_eq!(server.called(mn(9), 1000, &[], mn(9)).0, None);
}

/// An endpoint with `max_associations` associations refuses more, and keeps no state of the refused ones.
#[test]
fn a_full_port_refuses_and_keeps_nothing() {
    let mut server = Server::new(&Config { max_associations: 3, ..Config::default() });
    for host in 1..=3 {
        assert_eq!(server.called(mn(host), 4000, &[], mn(host)).0, None);
    }
    for host in 4..200 {
        assert_eq!(server.called(mn(host), 4000, &[], mn(host)).0, Some(Reason("sctp_too_many")));
    }
    assert_eq!(server.endpoint.associations().count(), 3);
}
