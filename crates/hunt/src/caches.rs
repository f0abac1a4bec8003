//! The binding caches of correspondents, as the links show them: the Binding Updates that correspondents accept, and the ends
//! of their tunnels.

use crate::plant::Plant;
use mobile_ip::message::{Binding, Numbers, Status};
use std::collections::{BTreeMap, BTreeSet};
use wire::ipv4::{self, Header};
use wire::tunnel;
use wire::{Duration, Instant, Ipv4Addr, Packet, ntp_distance};

/// A packet that waits for ARP is sent at most this time after it was put into a tunnel.
const GRACE: Duration = Duration::from_millis(3500);

/// The last Binding Update that a correspondent has accepted about a mobile node.
#[derive(Clone, Copy, Debug)]
struct Accepted {
    identification: u64,
    /// The care-of address; the home address if the Update deletes the entry.
    care_of: Ipv4Addr,
    /// The care-of address of the accepted Update before.
    before: Option<Ipv4Addr>,
    since: Instant,
}

/// What the links have shown of binding caches.
#[derive(Default)]
pub(crate) struct Caches {
    /// The addresses of correspondents.
    own: BTreeSet<Ipv4Addr>,
    /// Whether Identifications are timestamps, so that their order is known.
    are_timed: bool,
    /// The care-of addresses of the Updates that were sent, by correspondent, home address and Identification.
    sent: BTreeMap<(Ipv4Addr, Ipv4Addr, u64), Ipv4Addr>,
    accepted: BTreeMap<(Ipv4Addr, Ipv4Addr), Accepted>,
}

impl Caches {
    /// Returns the state before a run with these correspondents.
    pub(crate) fn new(own: BTreeSet<Ipv4Addr>, are_timed: bool) -> Self {
        Self { own, are_timed, ..Self::default() }
    }

    /// Forgets what a correspondent loses in a crash.
    pub(crate) fn crashed(&mut self, is_of_host: impl Fn(Ipv4Addr) -> bool) {
        self.accepted.retain(|(own, _), _| !is_of_host(*own));
    }

    /// Checks a packet that the host with its source address sends, and notes what it shows. Returns what is wrong.
    pub(crate) fn sent(
        &mut self,
        at: Instant,
        header: &Header,
        packet: &Packet,
        plant: Option<Plant>,
    ) -> Option<String> {
        if self.own.is_empty() {
            return None;
        }
        if header.protocol == ipv4::UDP {
            let payload = ipv4::payload(&packet.bytes);
            let (_, message) = Binding::received(header, payload, &Numbers::default()).ok()??;
            return self.message(at, header, &message);
        }
        if !self.own.contains(&header.src) {
            return None;
        }
        let (_, bytes) = tunnel::decapsulate(&packet.bytes).ok()?;
        let (inner, _) = Header::parse(&bytes).ok()?;
        let last = self.accepted.get(&(header.src, inner.dst))?;
        let exit = last.before.filter(|_| plant == Some(Plant::Stale)).unwrap_or(header.dst);
        let has_waited = at < last.since + GRACE && last.before == Some(exit);
        (exit != last.care_of && !has_waited).then(|| {
            format!(
                "sent a packet for {} to {exit} at {at} s, after the Update to {}",
                inner.dst, last.care_of
            )
        })
    }

    fn message(&mut self, at: Instant, header: &Header, message: &Binding) -> Option<String> {
        match message {
            Binding::Update(update) => {
                let care_of = if update.deletes() { update.home } else { update.care_of };
                self.sent.insert((header.dst, update.home, update.identification?), care_of);
                None
            }
            Binding::Acknowledge(answer) if answer.status == Status::ACCEPTED => {
                let identification = answer.identification?;
                let care_of = *self.sent.get(&(header.src, answer.home, identification))?;
                let last = self.accepted.get(&(header.src, answer.home)).copied();
                if last.is_some_and(|last| last.identification == identification) {
                    return None;
                }
                let is_older = |last: &Accepted| ntp_distance(identification, last.identification) < 0;
                if self.are_timed && last.as_ref().is_some_and(is_older) {
                    return Some(format!("accepted an older Update about {} at {at} s", answer.home));
                }
                let before = last.map(|last| last.care_of);
                let accepted = Accepted { identification, care_of, before, since: at };
                self.accepted.insert((header.src, answer.home), accepted);
                None
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mobile_ip::message::{Acknowledge, Generalized, PORT, Update, datagram};
    use wire::{Mac, SocketAddrV4, udp};

    const CORRESPONDENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const AGENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
    const HOME: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);

    fn care_of(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 2, 0, last)
    }

    fn send(caches: &mut Caches, ms: u64, bytes: Vec<u8>, plant: Option<Plant>) -> Option<String> {
        let (header, _) = Header::parse(&bytes).unwrap();
        caches.sent(Instant::from_millis(ms), &header, &Packet::new(Mac::ZERO, bytes), plant)
    }

    /// The home agent sends an Update, and the correspondent accepts it.
    fn accept(caches: &mut Caches, ms: u64, id: u64, exit: u8) -> Option<String> {
        let [from, to] = [AGENT, CORRESPONDENT].map(|address| SocketAddrV4::new(address, PORT));
        let identification = Some(id);
        let update = Update {
            acknowledge: true,
            minimal: false,
            gre: false,
            lifetime: 300,
            home: HOME,
            care_of: care_of(exit),
            identification,
            authentication: Some(Generalized { subtype: 250, spi: 256, authenticator: vec![0; 32] }),
        };
        let emitted = Binding::Update(update).emit(&Numbers::default());
        assert_eq!(send(caches, ms, datagram(from, to, 64, &emitted), None), None);
        let answer =
            Acknowledge { status: Status::ACCEPTED, home: HOME, identification, authentication: None };
        let emitted = Binding::Acknowledge(answer).emit(&Numbers::default());
        send(caches, ms, datagram(to, from, 64, &emitted), None)
    }

    fn tunneled(caches: &mut Caches, ms: u64, exit: u8, plant: Option<Plant>) -> Option<String> {
        let [from, to] = [CORRESPONDENT, HOME].map(|address| SocketAddrV4::new(address, 9));
        let inner = udp::packet(from, to, b"data");
        let outer = wire::ipip::encapsulate(&inner, CORRESPONDENT, care_of(exit), 1).unwrap();
        send(caches, ms, outer, plant)
    }

    #[test]
    fn a_tunnel_leads_to_the_last_accepted_care_of_address() {
        let mut caches = Caches::new(BTreeSet::from([CORRESPONDENT]), true);
        assert_eq!(tunneled(&mut caches, 1, 9, None), None, "no Update was seen");
        assert_eq!(accept(&mut caches, 1000, 10, 1), None);
        assert_eq!(tunneled(&mut caches, 1001, 1, None), None);
        assert_eq!(tunneled(&mut caches, 1001, 1, Some(Plant::Stale)), None, "there is no older Update");
        assert_eq!(accept(&mut caches, 2000, 20, 2), None);
        assert_eq!(accept(&mut caches, 2500, 20, 2), None, "it repeats the answer");
        assert_eq!(tunneled(&mut caches, 3000, 1, None), None, "the packet has waited for ARP");
        assert_eq!(tunneled(&mut caches, 9000, 2, None), None);
        assert!(tunneled(&mut caches, 9000, 1, None).unwrap().contains("after the Update to 10.2.0.2"));
        assert!(tunneled(&mut caches, 9000, 2, Some(Plant::Stale)).is_some());
        assert!(accept(&mut caches, 9500, 15, 1).unwrap().contains("an older Update"));
        caches.crashed(|address| address == CORRESPONDENT);
        assert_eq!(tunneled(&mut caches, 9600, 1, None), None);
    }
}
