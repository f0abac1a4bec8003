//! Finds the UDP datagrams that the daemon passed to its kernel and for which there was no socket. The kernel answers
//! such a datagram with an ICMP error to its sender, and that error passes through the daemon.

use std::collections::VecDeque;
use wire::ipv4::{self, Header};
use wire::{Ipv4Addr, PacketId, icmp};

/// Largest number of datagrams that are remembered. The kernel usually answers at once, so few datagrams wait for their
/// answer at the same time.
const KEPT: usize = 1024;
/// Type and code of "port unreachable" (RFC 792).
const PORT_UNREACHABLE: (u8, u8) = (3, 3);

/// The source address, the destination address and the UDP header of a datagram. An ICMP error quotes at least these
/// parts of the datagram that caused it (RFC 792).
type Key = (Ipv4Addr, Ipv4Addr, [u8; 8]);

/// The last UDP datagrams that were passed to the kernel. A datagram is removed when it is reported.
#[derive(Debug, Default)]
pub(super) struct KernelDatagrams(VecDeque<(Key, PacketId)>);

impl KernelDatagrams {
    /// Remembers a datagram that was passed to the kernel.
    pub(super) fn note(&mut self, packet: PacketId, bytes: &[u8]) {
        let Ok((header, payload)) = Header::parse(bytes) else { return };
        let Some(udp) = payload.first_chunk().filter(|_| header.protocol == ipv4::UDP) else { return };
        if self.0.len() >= KEPT {
            self.0.pop_front();
        }
        self.0.push_back(((header.src, header.dst, *udp), packet));
    }

    /// If this packet of the kernel is the ICMP error about a remembered datagram without a socket, returns the
    /// datagram's identity and forgets the datagram. Otherwise returns `None`.
    pub(super) fn refused(&mut self, bytes: &[u8]) -> Option<PacketId> {
        let (header, payload) =
            Header::parse(bytes).ok().filter(|(header, _)| header.protocol == ipv4::ICMP)?;
        let quote = icmp::Quote::of(&icmp::Message::parse(payload).ok()?).ok()?;
        // A kernel that has no socket for a datagram sends the error from the datagram's destination.
        let is_it = (quote.kind, quote.code) == PORT_UNREACHABLE && header.src == quote.dst;
        let key = (quote.src, quote.dst, *quote.payload.first_chunk().filter(|_| is_it)?);
        let at = self.0.iter().position(|(given, _)| *given == key)?;
        self.0.remove(at).map(|(_, packet)| packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{arp_request, datagram, hear, in_sandbox, joined};
    use os::namespace::sysctl;
    use wire::ethernet;

    /// Each of 200 datagrams without a socket is reported, also the long ones, of which the kernel quotes only the
    /// beginning. With its default rate limit the kernel would not answer all of them.
    #[test]
    fn a_kernel_says_which_datagrams_no_socket_took() {
        in_sandbox(|| {
            let joined = joined();
            joined.far.run(|| sysctl("net/ipv4/icmp_ratemask", "0")).unwrap().unwrap();
            joined.near.send(&arp_request()).unwrap();
            assert!(!hear(&joined.near, 100).is_empty());
            let mut given = KernelDatagrams::default();
            for number in 0..200_u64 {
                let frame = datagram(&number.to_be_bytes().repeat(if number % 2 == 0 { 1 } else { 150 }));
                given.note(PacketId(number), ethernet::parse(&frame).unwrap().1);
                joined.near.send(&frame).unwrap();
            }
            let heard = hear(&joined.near, 300);
            let refused: Vec<u64> = heard
                .iter()
                .filter_map(|(_, frame)| given.refused(ethernet::parse(frame).unwrap().1))
                .map(|packet| packet.0)
                .collect();
            assert!(hear(&joined.tap, 100).len() >= 200, "the kernel received all datagrams");
            assert_eq!(refused, (0..200).collect::<Vec<_>>());
            // Each datagram is reported once.
            assert_eq!(given.refused(ethernet::parse(&heard.last().unwrap().1).unwrap().1), None);
        });
    }

    #[test]
    fn the_last_are_remembered() {
        let mut given = KernelDatagrams::default();
        for number in 0..KEPT as u64 + 5 {
            given.note(PacketId(number), ethernet::parse(&datagram(b"x")).unwrap().1);
        }
        assert_eq!(given.0.len(), KEPT);
        assert_eq!(given.0.front().map(|(_, packet)| packet.0), Some(5));
    }
}
