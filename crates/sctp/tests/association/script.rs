//! A scripted peer: it sends the packets of a test one by one to an endpoint. The peer does not support AUTH.

use crate::harness::{CN, PORT, endpoint, mn};
use sctp::message::{Chunk, Data, Init, Packet, Parameter, Sack};
use sctp::{AssociationEvent, AssociationId, Config, Endpoint, PathState, Transmit};
use std::fmt::Write;
use wire::{Instant, Ipv4Addr, Reason};

pub(crate) const PEER_TAG: u32 = 0x7777;
pub(crate) const PEER_TSN: u32 = u32::MAX - 2;

pub(crate) struct Script {
    pub(crate) endpoint: Endpoint,
    pub(crate) now: u64,
    pub(crate) id: Option<AssociationId>,
    /// The verification tag and the initial TSN of the endpoint under test.
    pub(crate) tag: u32,
    pub(crate) tsn: u32,
    pub(crate) events: Vec<AssociationEvent>,
    pub(crate) nonces: Vec<(Ipv4Addr, Vec<u8>)>,
}

pub(crate) fn peer_init(addresses: &[Ipv4Addr]) -> Init {
    let parameters = addresses.iter().map(|address| Parameter::Ipv4(*address)).collect();
    Init { tag: PEER_TAG, a_rwnd: 100_000, outbound: 8, inbound: 8, tsn: PEER_TSN, parameters }
}

pub(crate) fn data(number: u32, bytes: &[u8]) -> Chunk {
    Chunk::Data(Data {
        begins: true,
        ends: true,
        tsn: PEER_TSN.wrapping_add(number),
        ssn: number as u16,
        data: bytes.to_vec(),
        ..Data::default()
    })
}

impl Script {
    /// Returns a script whose endpoint listens, without an association.
    pub(crate) fn silent(config: &Config) -> Self {
        let mut script = Self {
            endpoint: endpoint(config, 3),
            now: 1000,
            id: None,
            tag: 0,
            tsn: 0,
            events: Vec::new(),
            nonces: Vec::new(),
        };
        script.endpoint.listen(PORT, &[CN]);
        script
    }

    /// Returns a script whose endpoint listens. A peer with the addresses `peer` has opened an association, and has
    /// answered the first probes.
    pub(crate) fn accepted(config: &Config, peer: &[Ipv4Addr]) -> Self {
        let mut script = Self::silent(config);
        let cookie = script.cookie(peer);
        script.hears(peer[0], vec![Chunk::CookieEcho(cookie)]).unwrap();
        assert_eq!(script.says()[0], format!("{} COOKIE-ACK", peer[0]));
        for (address, info) in std::mem::take(&mut script.nonces) {
            script.hears(address, vec![Chunk::HeartbeatAck(info)]).unwrap();
        }
        script.says();
        script
    }

    /// Sends an INIT from `peer[0]`. Returns the cookie of the INIT ACK.
    pub(crate) fn cookie(&mut self, peer: &[Ipv4Addr]) -> Vec<u8> {
        let listed = if peer.len() > 1 { peer } else { &[] };
        self.hears_tagged(0, peer[0], vec![Chunk::Init(peer_init(listed))]).unwrap();
        let answer = self.endpoint.poll_transmit(self.at()).unwrap();
        let packet = Packet::parse(&answer.bytes).unwrap();
        let [Chunk::InitAck(ack)] = packet.chunks.as_slice() else { panic!("{packet:?}") };
        (self.tag, self.tsn) = (ack.tag, ack.tsn);
        ack.cookie().unwrap().to_vec()
    }

    pub(crate) fn at(&self) -> Instant {
        Instant::from_millis(self.now)
    }

    pub(crate) fn hears(&mut self, src: Ipv4Addr, chunks: Vec<Chunk>) -> Result<(), Reason> {
        self.hears_tagged(self.tag, src, chunks)
    }

    pub(crate) fn hears_tagged(&mut self, tag: u32, src: Ipv4Addr, chunks: Vec<Chunk>) -> Result<(), Reason> {
        let bytes = Packet { src_port: 4000, dst_port: PORT, tag, chunks }.emit();
        self.endpoint.receive(self.at(), src, CN, &bytes)
    }

    /// Acknowledges the endpoint's DATA chunks below `number` and those in the gaps. Number 0 is the first chunk that
    /// the endpoint sent.
    pub(crate) fn sack(&mut self, number: u32, gaps: &[(u32, u32)]) {
        let offset = |n: u32| (n + 1 - number) as u16;
        let gaps = gaps.iter().map(|(first, last)| (offset(*first), offset(*last))).collect();
        let cumulative = self.tsn.wrapping_add(number).wrapping_sub(1);
        let sack = Sack { cumulative, a_rwnd: 100_000, gaps, duplicates: Vec::new() };
        self.hears(mn(1), vec![Chunk::Sack(sack)]).unwrap();
    }

    /// Returns the packets that the endpoint sends now: for each the destination and the chunks, in words.
    pub(crate) fn says(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        while let Some(Transmit { dst, bytes, .. }) = self.endpoint.poll_transmit(self.at()) {
            let packet = Packet::parse(&bytes).unwrap();
            for chunk in &packet.chunks {
                if let Chunk::Heartbeat(info) = chunk {
                    self.nonces.push((dst, info.clone()));
                }
            }
            let words: Vec<String> = packet.chunks.iter().map(|chunk| self.words(chunk)).collect();
            said.push(format!("{dst} {}", words.join(", ")));
        }
        while let Some((id, event)) = self.endpoint.poll_event() {
            self.id = Some(id);
            self.events.push(event);
        }
        said
    }

    fn words(&self, chunk: &Chunk) -> String {
        match chunk {
            Chunk::Data(data) => format!("DATA {}", data.tsn.wrapping_sub(self.tsn)),
            Chunk::Sack(sack) => {
                let mut words = format!("SACK {}", sack.cumulative.wrapping_sub(PEER_TSN).cast_signed());
                for (first, last) in &sack.gaps {
                    _ = write!(words, " +{first}-{last}");
                }
                for tsn in &sack.duplicates {
                    _ = write!(words, " again {}", tsn.wrapping_sub(PEER_TSN));
                }
                words
            }
            Chunk::Abort { reflected, causes } => {
                let codes: Vec<u16> = causes.iter().map(|cause| cause.code.0).collect();
                format!("ABORT{} {codes:?}", if *reflected { " T" } else { "" })
            }
            Chunk::Error(causes) => {
                format!("ERROR {:?}", causes.iter().map(|cause| cause.code.0).collect::<Vec<_>>())
            }
            Chunk::CookieAck => "COOKIE-ACK".into(),
            Chunk::InitAck(_) => "INIT-ACK".into(),
            Chunk::Heartbeat(_) => "HEARTBEAT".into(),
            Chunk::HeartbeatAck(_) => "HEARTBEAT-ACK".into(),
            Chunk::Shutdown(_) => "SHUTDOWN".into(),
            Chunk::ShutdownAck => "SHUTDOWN-ACK".into(),
            Chunk::ShutdownComplete { reflected } => {
                format!("SHUTDOWN-COMPLETE{}", if *reflected { " T" } else { "" })
            }
            other => format!("{other:?}"),
        }
    }

    pub(crate) fn wait(&mut self, ms: u64) {
        self.now += ms;
        self.endpoint.on_timeout(self.at());
    }

    /// Runs until the next timer is due. Returns the time until then, in milliseconds.
    pub(crate) fn wait_for_timer(&mut self) -> u64 {
        let at = self.endpoint.deadline().unwrap();
        let ms = (at.0 - self.at().0).div_ceil(1_000_000);
        self.wait(ms);
        ms
    }

    pub(crate) fn write(&mut self, messages: usize) {
        let association = self.endpoint.association_mut(self.id.unwrap()).unwrap();
        for _ in 0..messages {
            association.write(0, 0, &[1; 1400]).unwrap();
        }
    }

    pub(crate) fn path(&self, address: Ipv4Addr) -> sctp::PathInfo {
        let association = self.endpoint.association(self.id.unwrap()).unwrap();
        association.paths().find(|path| path.address == address).unwrap()
    }

    pub(crate) fn active(&self) -> Vec<Ipv4Addr> {
        let association = self.endpoint.association(self.id.unwrap()).unwrap();
        let active = association.paths().filter(|path| path.state == PathState::Active);
        active.map(|path| path.address).collect()
    }
}
