//! The identity of fragments in the records of a run on Linux.
//!
//! A recorder on Linux sees only bytes. The bytes of a fragment do not say the identity of its datagram, so all
//! fragments of a datagram have another identity ([`wire::fragment_identity`]). In the simulator, fragments have the
//! identity of their datagram. [`name_fragments`] makes both alike.

use std::collections::{BTreeMap, BTreeSet};
use trace::{HostId, Record, What};
use wire::fragment::{Reassembly, is_in};
use wire::ipv4::Header;
use wire::{EtherType, Iface, Instant, Packet, PacketId, fragment_identity, identity, tunnel};

/// The identities of datagrams by the identity of their fragments. After 65,536 datagrams, a sender uses an
/// identification again, so there can be several, each with the time at which its datagram was first seen.
type Names = BTreeMap<PacketId, Vec<(Instant, PacketId)>>;

/// Gives each fragment in `records` the identity of its datagram. If a host's own stack has cut a datagram, the record
/// of its first fragment becomes that of the whole datagram, and the records of the stack's other fragments are
/// removed: the simulator's stack does not cut. A datagram of which the stack's records are incomplete stays as it is.
///
/// `records` must be ordered by time.
pub fn name_fragments(records: &mut Vec<Record>) {
    let fragments: BTreeSet<PacketId> =
        records.iter().filter_map(packet_of).filter(|it| is_in(&it.bytes)).map(|it| it.id).collect();
    if fragments.is_empty() {
        return;
    }
    let (mut names, parts) = join_parts_of_stacks(records);
    for record in &*records {
        let Some(packet) = packet_of(record) else { continue };
        for name in divisible_inside(&packet.bytes).filter(|name| fragments.contains(name)) {
            note(&mut names, name, record.at, packet.id);
        }
    }
    let mut index = 0;
    records.retain(|_| {
        index += 1;
        !parts.contains(&(index - 1))
    });
    for entries in names.values_mut() {
        entries.sort_by_key(|(at, _)| *at);
    }
    for record in records {
        let at = record.at;
        if let Some(id) = id_of(&mut record.what) {
            *id = resolve(&names, *id, at);
        }
    }
}

/// Joins the fragments that each host's own stack has sent, and replaces the record of the first fragment. Returns the
/// identities of the datagrams, and the indices of the records of the other fragments.
fn join_parts_of_stacks(records: &mut [Record]) -> (Names, BTreeSet<usize>) {
    let mut stacks: BTreeMap<HostId, Reassembly<usize>> = BTreeMap::new();
    let (mut names, mut parts) = (Names::new(), BTreeSet::new());
    for index in 0..records.len() {
        let Some(Record { at, host, what: What::Received(Iface::HOST, packet) }) = records.get(index) else {
            continue;
        };
        let Ok((header, _)) = Header::parse(&packet.bytes) else { continue };
        if !header.is_fragment() {
            continue;
        }
        let stack = stacks.entry(*host).or_default();
        let _ = stack.time_out(*at);
        let Ok(added) = stack.add(*at, &packet.bytes, index) else { continue };
        let Some(bytes) = added.whole else { continue };
        let mut all: Vec<usize> = added.ended.into_iter().map(|(index, _)| index).collect();
        all.push(index);
        all.sort_unstable();
        let id = identity(&bytes);
        if let [first, others @ ..] = all.as_slice()
            && let Some(Record { at, what: What::Received(_, packet), .. }) = records.get_mut(*first)
        {
            note(&mut names, fragment_identity(&header), *at, id);
            *packet = Packet { bytes, id, link: packet.link };
            parts.extend(others);
        }
    }
    (names, parts)
}

/// Notes that fragments with the identity `name` belong to the datagram `id` from this instant. A datagram that a node
/// has reassembled still has the identity of its last fragment, so it says nothing.
fn note(names: &mut Names, name: PacketId, at: Instant, id: PacketId) {
    if name == id {
        return;
    }
    let entries = names.entry(name).or_default();
    if entries.iter().all(|(_, known)| *known != id) {
        entries.push((at, id));
    }
}

/// Returns the identity of the datagram of a fragment. The datagram may be a fragment in a tunnel itself. Returns any
/// other identity unchanged.
fn resolve(names: &Names, mut id: PacketId, at: Instant) -> PacketId {
    for _ in 0..4 {
        let Some(entries) = names.get(&id) else { break };
        let latest = entries.iter().rev().find(|(seen, _)| *seen <= at).or(entries.first());
        let Some((_, whole)) = latest else { break };
        id = *whole;
    }
    id
}

/// Returns the identities that fragments have of the datagrams in these bytes that may be cut.
fn divisible_inside(bytes: &[u8]) -> impl Iterator<Item = PacketId> {
    let mut rest = Some(bytes.to_vec());
    std::iter::from_fn(move || {
        let bytes = rest.take()?;
        let (header, _) = Header::parse(&bytes).ok()?;
        rest = tunnel::decapsulate(&bytes).ok().map(|(_, inner)| inner.into_owned());
        Some(header)
    })
    .filter(|header| !header.dont_fragment && !header.is_fragment())
    .map(|header| fragment_identity(&header))
}

fn packet_of(record: &Record) -> Option<&Packet> {
    match &record.what {
        What::Received(_, packet) | What::Sent(_, packet) => {
            Some(packet).filter(|packet| packet.link.kind == EtherType::IPV4)
        }
        _ => None,
    }
}

fn id_of(what: &mut What) -> Option<&mut PacketId> {
    match what {
        What::Received(_, packet) | What::Sent(_, packet) => Some(&mut packet.id),
        What::Dropped(_, id, _)
        | What::Lost(_, id, _)
        | What::Held(_, id)
        | What::AppSent(id)
        | What::AppReceived(id) => Some(id),
        What::Marked(mark) => mark.packet.as_mut(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Ipv4Addr, Mac, SocketAddrV4, fragment, ipip, udp};

    const SENDER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const ETH: Iface = Iface(1);

    /// Returns a datagram without DF, and the identity that its sender's socket knows.
    fn datagram(id: u16, content: u8) -> (Vec<u8>, PacketId) {
        let [from, to] = [SENDER, HOST].map(|address| SocketAddrV4::new(address, 9000));
        let bytes = udp::packet(from, to, &[content; 1500]);
        let known = identity(&bytes);
        let (header, payload) = Header::parse(&bytes).unwrap();
        (Header { dont_fragment: false, id, ..header }.emit(payload), known)
    }

    fn record(at: u64, host: u32, make: fn(Iface, Packet) -> What, iface: Iface, bytes: &[u8]) -> Record {
        let packet = Packet { id: identity(bytes), ..Packet::new(Mac::ZERO, bytes.to_vec()) };
        Record { at: Instant(at), host: HostId(host), what: make(iface, packet) }
    }

    fn ids(records: &mut [Record]) -> Vec<PacketId> {
        records.iter_mut().filter_map(|record| id_of(&mut record.what).copied()).collect()
    }

    #[test]
    fn what_a_kernel_has_cut_is_one_datagram() {
        let (whole, known) = datagram(7, 1);
        let cut = fragment::pieces(&whole, 1000).unwrap();
        let mut records = vec![Record { at: Instant(1), host: HostId(0), what: What::AppSent(known) }];
        for (at, piece) in [2, 4].into_iter().zip(&cut) {
            records.push(record(at, 0, What::Received, Iface::HOST, piece));
            records.push(record(at, 0, What::Sent, ETH, piece));
        }
        // The node of the receiver has joined the fragments.
        let mut joined = record(9, 1, What::Sent, Iface::HOST, &whole);
        *id_of(&mut joined.what).unwrap() = identity(&cut[1]);
        records.push(joined);
        let what = What::Dropped(ETH, identity(&cut[0]), node::reason::REASSEMBLED.0.into());
        records.push(Record { at: Instant(9), host: HostId(1), what });
        assert_ne!(ids(&mut records)[1], known);
        name_fragments(&mut records);
        assert_eq!(ids(&mut records), [known; 6]);
        let What::Received(Iface::HOST, packet) = &records[1].what else { panic!("{records:?}") };
        assert_eq!(packet.bytes, whole);
    }

    /// An outer datagram is cut, and it contains a fragment. Both datagrams with the same identification are told apart
    /// by time.
    #[test]
    fn fragments_in_tunnels_have_the_identity_of_the_innermost_datagram() {
        let (mut records, mut expected) = (Vec::new(), Vec::new());
        for round in 0..2 {
            let (whole, known) = datagram(7, round as u8);
            let at = 1000 * round;
            records.push(record(at, 0, What::Received, ETH, &whole));
            let inner = fragment::pieces(&whole, 1480).unwrap().remove(0);
            let outer = ipip::encapsulate(&inner, SENDER, HOST, 3).unwrap();
            records.push(record(at + 1, 0, What::Sent, ETH, &outer));
            for piece in fragment::pieces(&outer, 576).unwrap() {
                records.push(record(at + 2, 1, What::Sent, ETH, &piece));
            }
            let lost = identity(&fragment::pieces(&outer, 576).unwrap()[1]);
            let what = What::Lost(ETH, lost, "queue_full".into());
            records.push(Record { at: Instant(at + 3), host: HostId(1), what });
            expected.extend([known; 6]);
        }
        name_fragments(&mut records);
        assert_eq!(ids(&mut records), expected);
    }

    #[test]
    fn records_without_fragments_stay_as_they_are() {
        let (whole, _) = datagram(7, 1);
        let mut records = vec![record(1, 0, What::Received, Iface::HOST, &whole)];
        let before = records.clone();
        name_fragments(&mut records);
        assert_eq!(records, before);
    }
}
