//! The packets that a mobile node receives, and what it asks of the buffers of foreign agents: to keep its packets, and not to send those that it has received
//! (draft-mkhalil-mobileip-buffer-00).

use super::MobileNode;
use crate::message::{ADVERTISEMENT, PORT};
use node::{Outbox, Rx};
use std::collections::VecDeque;
use wire::ipv4::{self, Header};
use wire::{Iface, Instant, Ipv4Addr, Mac, Packet};

/// The last packets without DF that the mobile node has received: the source and the identification of each, the oldest first.
#[derive(Debug, Default)]
pub(super) struct LastReceived(VecDeque<(Ipv4Addr, u16)>);

impl LastReceived {
    /// Records a packet, if it is not a fragment. At most `most` packets are remembered.
    fn add(&mut self, header: &Header, most: usize) {
        if !header.dont_fragment && !header.is_fragment() {
            while self.0.len() >= most {
                self.0.pop_front();
            }
            self.0.push_back((header.src, header.id));
        }
    }
}

impl MobileNode {
    /// Handles a packet for which this role listens. Most of them are for this host itself, and are declined.
    pub(super) fn packet(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        let is_to_port = || rx.payload(&packet).get(2..4) == Some(&PORT.to_be_bytes());
        let is_update = || rx.payload(&packet).get(8) == Some(&self.config.numbers.update);
        let ends = match rx.header.protocol {
            // It is for a correspondent on this host.
            ipv4::UDP if is_to_port() && is_update() => return out.pass(rx, packet),
            ipv4::UDP if self.is_own(rx.header.dst) && is_to_port() => {
                self.registration(now, rx, &packet, out)
            }
            ipv4::ICMP if rx.payload(&packet).first() == Some(&ADVERTISEMENT) => {
                self.advertisement(now, rx, &packet, out)
            }
            ipv4::ICMP if self.is_about_reverse(&rx, &packet) => self.tunnel_error(now, &rx, &packet, out),
            _ => {
                self.note(&rx);
                match self.broadcast(rx, packet) {
                    Ok(broadcast) => return out.send(Iface::HOST, broadcast),
                    // The groups that the role listens to also receive packets for other roles.
                    Err(packet) => return out.pass(rx, packet),
                }
            }
        };
        self.refused.end(rx.iface, packet, ends, out);
    }

    /// Records a packet to the home address that arrived on the link, and is not for this role.
    fn note(&mut self, rx: &Rx) {
        let most = self.config.named_packets;
        if most > 0 && self.interface(rx.iface).is_some() && rx.header.dst == self.home {
            self.received.add(&rx.header, most);
        }
    }

    /// Names the last received packets to the previous foreign agent, by the agent with the link address `mac`, if a handoff
    /// begins. The message leaves before the request, so that it arrives before the Binding Update of the new agent.
    pub(super) fn name_received(&mut self, mac: Mac, out: &mut Outbox) {
        if self.received.0.is_empty() || mac == Mac::ZERO {
            return;
        }
        let numbers = self.config.numbers;
        let named = self.received.0.iter().copied();
        let update = self.registrar.unacknowledged().last();
        let message = update.and_then(|update| update.names(self.home, named, &numbers));
        if let Some(bytes) = message {
            out.send(self.used.iface, Packet::new(mac, bytes));
        }
    }

    /// Asks the foreign agent that has accepted the registration to keep packets, if the configuration says so.
    pub(super) fn ask_to_keep(&mut self, now: Instant, out: &mut Outbox) {
        let mac = self.attached.and_then(|agent| self.used.agents.get(agent)).map(|agent| agent.mac);
        if let Some(mac) = mac.filter(|_| self.config.ask_to_keep)
            && let Some(bytes) = self.registrar.asks_to_keep(now)
        {
            out.send(self.used.iface, Packet::new(mac, bytes));
        }
    }
}
