//! The packets that foreign agents keep for their visitors, as the links show them: each was sent to the visitor, and leaves the
//! agent again in a tunnel.

use crate::plant::Plant;
use std::collections::{BTreeMap, HashMap};
use trace::HostId;
use wire::{Duration, Instant, Ipv4Addr, PacketId};

/// A kept packet leaves at most this time after it was sent to the visitor: 10 s by default, the time of pacing, and a wait for
/// ARP.
const LONGEST: Duration = Duration::from_secs(15);

/// What the links have shown of packets to visitors.
#[derive(Default)]
pub(crate) struct KeptPackets {
    /// The last time at which a foreign agent has sent each packet to its cell.
    shown: HashMap<(HostId, PacketId), Instant>,
    /// When the visit of each mobile node at each foreign agent was last ended by a deregistration.
    ended: BTreeMap<(HostId, Ipv4Addr), Instant>,
}

impl KeptPackets {
    /// Notes a packet that a foreign agent sends to its cell.
    pub(crate) fn shown(&mut self, at: Instant, agent: HostId, packet: PacketId) {
        self.shown.insert((agent, packet), at);
    }

    /// Notes that a visit has ended by a deregistration.
    pub(crate) fn ended(&mut self, at: Instant, agent: HostId, home: Ipv4Addr) {
        self.ended.insert((agent, home), at);
    }

    /// Checks a packet that a foreign agent sends in a tunnel to `exit`. Returns what is wrong; `None` also if the agent has not
    /// sent the packet to its cell before. `is_requested`: whether the mobile node has requested a care-of address.
    pub(crate) fn check(
        &self,
        at: Instant,
        (agent, packet): (HostId, PacketId),
        home: Ipv4Addr,
        exit: Ipv4Addr,
        is_requested: impl Fn(Ipv4Addr) -> bool,
        plant: Option<Plant>,
    ) -> Option<String> {
        let first = *self.shown.get(&(agent, packet))?;
        let exit = if plant == Some(Plant::Leaked) { Ipv4Addr::from_bits(exit.to_bits() + 1) } else { exit };
        let is_over = plant == Some(Plant::KeptOn)
            || self.ended.get(&(agent, home)).is_some_and(|ended| *ended > first);
        let what = if !is_requested(exit) {
            format!("to {exit}, which the mobile node has not requested")
        } else if is_over {
            "although the visit had ended".to_owned()
        } else if at > first + LONGEST {
            format!("which it had sent at {first} s")
        } else {
            return None;
        };
        Some(format!("a kept packet for {home} at {at} s, {what}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_packet_leaves_in_time_to_a_requested_address() {
        let at = Instant::from_millis;
        let (agent, home) = (HostId(1), Ipv4Addr::new(10, 1, 0, 7));
        let [asked, other] = [1, 2].map(|last| Ipv4Addr::new(10, 4, 0, last));
        let mut kept = KeptPackets::default();
        kept.shown(at(1000), agent, PacketId(5));
        let check = |kept: &KeptPackets, now, packet, exit, plant| {
            kept.check(at(now), (agent, PacketId(packet)), home, exit, |it| it == asked, plant)
        };
        assert_eq!(check(&kept, 2000, 5, asked, None), None);
        assert_eq!(check(&kept, 2000, 6, other, None), None, "it was never sent to the visitor");
        let wrong = |found: Option<String>, text: &str| assert!(found.unwrap().contains(text), "{text}");
        wrong(check(&kept, 2000, 5, other, None), "has not requested");
        wrong(check(&kept, 2000, 5, asked, Some(Plant::Leaked)), "has not requested");
        wrong(check(&kept, 2000, 5, asked, Some(Plant::KeptOn)), "had ended");
        wrong(check(&kept, 16_001, 5, asked, None), "had sent at");
        kept.ended(at(1500), agent, home);
        wrong(check(&kept, 2000, 5, asked, None), "had ended");
    }
}
