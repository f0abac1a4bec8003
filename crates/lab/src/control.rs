//! Control messages of the protocols as text, and what of them must be the same in every world.
//!
//! Beacons, ARP, ICMP errors and TCP are no control messages: they belong to no protocol's `message.rs`.

use crate::run::Outcome;
use cellular_ip::message::{self, RouteUpdate};
use std::fmt;
use wire::ipv4::Header;
use wire::{Ipv4Addr, Packet};

/// A control message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Control {
    /// Who sent it.
    pub src: Ipv4Addr,
    /// Who is to have it.
    pub dst: Ipv4Addr,
    /// Its code.
    pub code: u8,
    /// What it says; or why it cannot be read.
    pub says: Result<RouteUpdate, &'static str>,
}

impl Control {
    /// The control message in a packet, if it is one.
    pub fn of(packet: &Packet) -> Option<Self> {
        let (ip, payload) = Header::parse(&packet.bytes).ok()?;
        let code = message::control_code(&ip, payload)?;
        let says = RouteUpdate::parse(&ip, payload).map_err(|malformed| malformed.0);
        Some(Self { src: ip.src, dst: ip.dst, code, says })
    }

    /// Whether it asks for a second path beside the first.
    pub fn is_semisoft(&self) -> bool {
        self.says.as_ref().is_ok_and(|update| update.semisoft)
    }

    /// What must be the same in both worlds, by name. Timestamps, digests and the like depend on the wall clock.
    pub fn constant(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![
            ("type", message::ICMP_TYPE.to_string()),
            ("code", self.code.to_string()),
            ("from", self.src.to_string()),
            ("to", self.dst.to_string()),
        ];
        match &self.says {
            Ok(update) => {
                let serving = update.serving_bs.map_or_else(|| "none".to_owned(), |id| id.to_string());
                fields.push(("S", u8::from(update.semisoft).to_string()));
                fields.push(("serving bs", serving));
                fields.push(("key generation", update.auth.key_gen.to_string()));
                fields.push(("R_MH", trace::hex(&update.auth.r_mh)));
                fields.push(("other information", format!("{:?}", update.skipped)));
            }
            Err(why) => fields.push(("unreadable", (*why).to_owned())),
        }
        fields
    }

    /// The message in a line, as the run knows it: base stations by name, times since its begin.
    pub fn text(&self, run: &Outcome) -> String {
        match &self.says {
            Ok(update) => {
                let serving =
                    update.serving_bs.map_or_else(String::new, |id| format!(" to {}", run.station(id)));
                let ahead = wire::ntp_distance(update.timestamp, run.epoch().to_ntp());
                let stamp = ahead as f64 / 4_294_967_296.0;
                format!("{self}{serving}, timestamp {stamp:+.6} s, key {}", update.auth.key_gen)
            }
            Err(_) => self.to_string(),
        }
    }
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (src, dst) = (self.src, self.dst);
        match &self.says {
            Ok(update) => write!(f, "route-update S={} {src} > {dst}", u8::from(update.semisoft)),
            Err(why) => write!(f, "control code {} {src} > {dst}, unreadable: {why}", self.code),
        }
    }
}

/// Any packet in a few words: what `packets.csv` has under `what`.
pub fn describe(packet: &Packet) -> String {
    if let Some(control) = Control::of(packet) {
        return control.to_string();
    }
    let Ok((ip, payload)) = Header::parse(&packet.bytes) else { return "not IPv4".to_owned() };
    match wire::udp::Datagram::parse(payload, ip.src, ip.dst) {
        Ok(udp) if ip.protocol == wire::ipv4::UDP => {
            format!("UDP {}:{} > {}:{}", ip.src, udp.src_port, ip.dst, udp.dst_port)
        }
        _ => format!("{} {} > {}", protocol(ip.protocol), ip.src, ip.dst),
    }
}

/// A protocol's name, or its number where this program has no name for it.
pub fn protocol(number: u8) -> String {
    match number {
        1 => "ICMP".to_owned(),
        4 => "IPIP".to_owned(),
        6 => "TCP".to_owned(),
        17 => "UDP".to_owned(),
        132 => "SCTP".to_owned(),
        other => format!("protocol {other}"),
    }
}
