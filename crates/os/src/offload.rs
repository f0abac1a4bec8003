//! Finishes frames of which the sender has left a checksum or the segmentation to hardware. A veth or virtio device has
//! no such hardware, and passes the frames on unfinished (`struct virtio_net_hdr`, `linux/virtio_net.h`). A node
//! forwards only finished frames.

use wire::{Checksum, Ipv4Addr, Reason, checksum};

/// Bytes of `struct virtio_net_hdr` as `PACKET_VNET_HDR` puts it before each frame.
pub(crate) const HEADER: usize = 10;

const NEEDS_CSUM: u8 = 1;
const GSO_TCPV4: u8 = 1;
const GSO_UDP_L4: u8 = 5;
/// A flag in the type: only the first segment carries CWR (RFC 3168, section 6.1.2).
const GSO_ECN: u8 = 0x80;

const ETHERNET: usize = 14;
const TCP: u8 = 6;
const UDP: u8 = 17;
const IPIP: u8 = 4;
/// The flags FIN and PSH of TCP. Only the last segment carries them.
const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// The reason to drop a frame if its sender left a checksum or the segmentation to hardware, and this module cannot
/// complete this kind of frame.
pub const UNSUPPORTED: Reason = Reason("offload_unsupported");

/// The reason to drop a frame: it would become more than [`SEGMENTS`] packets.
const TOO_MANY: Reason = Reason("offload_too_many_segments");
/// The largest number of packets that one frame may become. At the smallest MTU in use, 296 bytes (RFC 1144, section
/// 5.2), 64 KiB become 256 segments of 256 bytes. A kernel leaves fewer segments to a device: it uses no path MTU below
/// 552 bytes (`net.ipv4.route.min_pmtu`), and combines at most 128 UDP datagrams (`UDP_MAX_SEGMENTS`). Without a limit,
/// the sender of one frame could make the receiver create 65,000 packets.
const SEGMENTS: usize = 256;

/// What the sender of a frame has left to hardware: a checksum, the segmentation, both or nothing.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Unfinished {
    needs_checksum: bool,
    /// The type of the segments into which the frame is to be cut, or 0.
    gso: u8,
    /// Bytes of payload in each segment.
    gso_size: usize,
    /// `start` is the offset in bytes of the first byte that the checksum covers. `offset` is the offset of the
    /// checksum field from `start`. The checksum field contains the sum of the pseudo-header.
    start: usize,
    offset: usize,
}

impl Unfinished {
    /// Parses the header that the kernel put before a frame, in host order.
    pub(crate) fn parse(header: [u8; HEADER]) -> Self {
        let [flags, gso, _, _, s0, s1, c0, c1, o0, o1] = header;
        let number = |bytes| usize::from(u16::from_ne_bytes(bytes));
        Self {
            needs_checksum: flags & NEEDS_CSUM != 0,
            gso,
            gso_size: number([s0, s1]),
            start: number([c0, c1]),
            offset: number([o0, o1]),
        }
    }

    /// Returns whether the sender left nothing to hardware.
    pub const fn is_nothing(&self) -> bool {
        !self.needs_checksum && self.gso == 0
    }

    /// Returns the finished frames: the frame with its checksum, or the segments of the frame. Fails with the reason
    /// for which the frame must be dropped.
    pub fn finish(&self, frame: &[u8]) -> Result<Vec<Vec<u8>>, Reason> {
        if self.gso == 0 {
            let mut whole = frame.to_vec();
            if self.needs_checksum {
                store_sum(&mut whole, self.start, self.offset).ok_or(UNSUPPORTED)?;
            }
            return Ok(vec![whole]);
        }
        // The length includes the headers: the limit need not be exact.
        if self.gso_size > 0 && frame.len().div_ceil(self.gso_size) > SEGMENTS {
            return Err(TOO_MANY);
        }
        self.cut(frame).ok_or(UNSUPPORTED)
    }

    fn cut(&self, frame: &[u8]) -> Option<Vec<Vec<u8>>> {
        let (proto, headers) = match self.gso & !GSO_ECN {
            GSO_TCPV4 => (TCP, usize::from(*frame.get(self.start + 12)? >> 4) * 4),
            GSO_UDP_L4 => (UDP, 8),
            _ => return None,
        };
        let ips = ip_headers(frame, self.start, proto)?;
        let (headers, payload) = frame.split_at_checked(self.start + headers)?;
        if self.gso_size == 0 || !self.needs_checksum {
            return None;
        }
        let count = payload.len().div_ceil(self.gso_size);
        let segments = payload.chunks(self.gso_size).enumerate().map(|(number, chunk)| {
            let mut segment = [headers, chunk].concat();
            for at in &ips {
                set_ip(&mut segment, *at, number)?;
            }
            match proto {
                TCP => set_tcp(segment.get_mut(self.start..)?, number, number + 1 == count, self.gso_size)?,
                _ => put(&mut segment, self.start + 4, u16::try_from(8 + chunk.len()).ok()?)?,
            }
            let len = headers.len() - self.start + chunk.len();
            put(&mut segment, self.start + self.offset, pseudo(frame, *ips.last()?, proto, len)?)?;
            store_sum(&mut segment, self.start, self.offset)?;
            Some(segment)
        });
        segments.collect()
    }
}

/// Returns the offsets of the IPv4 headers before the transport header: several, if the packet is in a tunnel.
fn ip_headers(frame: &[u8], end: usize, proto: u8) -> Option<Vec<usize>> {
    if frame.get(12..ETHERNET)? != [8, 0] {
        return None;
    }
    let (mut at, mut found) = (ETHERNET, Vec::new());
    while at < end {
        let first = *frame.get(at)?;
        let len = usize::from(first & 0xf) * 4;
        if first >> 4 != 4 || len < 20 {
            return None;
        }
        found.push(at);
        let inner = *frame.get(at + 9)?;
        at += len;
        if inner != if at < end { IPIP } else { proto } {
            return None;
        }
    }
    (at == end).then_some(found)
}

/// Sets length, identification and checksum of the IPv4 header at the offset `at` of `segment`. `number` is the number
/// of the segment, from 0.
fn set_ip(segment: &mut [u8], at: usize, number: usize) -> Option<()> {
    let len = u16::try_from(segment.len() - at).ok()?;
    put(segment, at + 2, len)?;
    let id = word(segment, at + 4)?.wrapping_add(number as u16);
    put(segment, at + 4, id)?;
    put(segment, at + 10, 0)?;
    let header = usize::from(*segment.get(at)? & 0xf) * 4;
    let sum = checksum(segment.get(at..at + header)?);
    put(segment, at + 10, sum)
}

fn set_tcp(segment: &mut [u8], number: usize, is_last: bool, size: usize) -> Option<()> {
    let sequence = segment.get_mut(4..8)?;
    let first = u32::from_be_bytes(sequence.try_into().ok()?);
    sequence.copy_from_slice(&first.wrapping_add(u32::try_from(number * size).ok()?).to_be_bytes());
    let flags = segment.get_mut(13)?;
    if !is_last {
        *flags &= !FIN_PSH;
    }
    if number > 0 {
        *flags &= !CWR;
    }
    Some(())
}

/// Returns the sum of the pseudo-header (RFC 9293, section 3.1), not complemented.
fn pseudo(frame: &[u8], ip: usize, proto: u8, len: usize) -> Option<u16> {
    let address = |at: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(frame.get(at..at + 4)?).ok()?));
    let sum =
        Checksum::of_pseudo_header(address(ip + 12)?, address(ip + 16)?, proto, u16::try_from(len).ok()?);
    Some(!sum.finish())
}

/// Stores the checksum of the bytes from `start`. Before the call, the checksum field contains the pseudo-header's sum.
fn store_sum(frame: &mut [u8], start: usize, offset: usize) -> Option<()> {
    const UDP_OFFSET: usize = 6;
    let sum = checksum(frame.get(start..)?);
    // In UDP, zero means that there is no checksum (RFC 768).
    put(frame, start + offset, if sum == 0 && offset == UDP_OFFSET { 0xffff } else { sum })
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn put(bytes: &mut [u8], at: usize, value: u16) -> Option<()> {
    bytes.get_mut(at..at + 2)?.copy_from_slice(&value.to_be_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENT: [u8; 10] = *b"abcdefghij";

    /// Builds an IPv4 header without its checksum: `set_ip` fills it in after the cut.
    fn ip(proto: u8, payload: usize) -> Vec<u8> {
        let len = (20 + payload) as u16;
        let [high, low] = len.to_be_bytes();
        vec![0x45, 0, high, low, 0, 41, 0x40, 0, 64, proto, 0, 0, 10, 1, 0, 7, 10, 2, 0, 2]
    }

    fn tcp(flags: u8) -> Vec<u8> {
        vec![0x10, 1, 0, 80, 0xff, 0xff, 0xff, 0xfc, 0, 0, 0, 9, 0x50, flags, 4, 0, 0, 0, 0, 0]
    }

    fn frame(parts: &[&[u8]]) -> Vec<u8> {
        [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0], &parts.concat()[..]].concat()
    }

    fn unfinished(gso: u8, gso_size: usize, start: usize, offset: usize) -> Unfinished {
        Unfinished { needs_checksum: true, gso, gso_size, start, offset }
    }

    /// Returns whether both checksums hold, by the receiver's rule: the sum over all bytes, with the checksum, is
    /// zero.
    fn holds(frame: &[u8], ip_at: usize) -> bool {
        let (header, rest) = frame[ip_at..].split_at(20);
        let len = u16::from_be_bytes([header[2], header[3]]);
        let [_, _, .., proto] = header[..10] else { return false };
        let pseudo = [&header[12..20], &[0, proto], &(len - 20).to_be_bytes(), rest].concat();
        checksum(header) == 0 && checksum(&pseudo) == 0 && usize::from(len) == frame.len() - ip_at
    }

    #[test]
    fn a_segment_of_tcp_is_cut_as_its_sender_would_have() {
        let all = frame(&[&ip(TCP, 30), &tcp(0x99), &CONTENT]); // CWR, ACK, PSH, FIN
        let cut = unfinished(GSO_TCPV4 | GSO_ECN, 4, 34, 16).finish(&all).unwrap();
        assert_eq!(cut.len(), 3);
        assert_eq!(cut.iter().flat_map(|one| &one[54..]).copied().collect::<Vec<u8>>(), CONTENT);
        assert!(cut.iter().all(|one| holds(one, 14)));
        let number = |one: &[u8], at: usize| u32::from_be_bytes(one[at..at + 4].try_into().unwrap());
        // The sequence wraps and the identification grows. Only the first segment has CWR, and only the last has FIN
        // and PSH.
        assert_eq!(cut.iter().map(|one| number(one, 38)).collect::<Vec<_>>(), [0xffff_fffc, 0, 4]);
        assert_eq!(cut.iter().map(|one| one[19]).collect::<Vec<_>>(), [41, 42, 43]);
        assert_eq!(cut.iter().map(|one| one[47]).collect::<Vec<_>>(), [0x90, 0x10, 0x19]);
    }

    #[test]
    fn datagrams_are_cut_and_each_has_its_length() {
        let header = [0x23, 0x28, 0x23, 0x29, 0, 18, 0, 0];
        let all = frame(&[&ip(UDP, 18), &header, &CONTENT]);
        let cut = unfinished(GSO_UDP_L4, 6, 34, 6).finish(&all).unwrap();
        let parts: Vec<(u8, &[u8])> = cut.iter().map(|one| (one[39], &one[42..])).collect();
        assert_eq!(parts, [(14, &b"abcdef"[..]), (12, &b"ghij"[..])]);
        assert!(cut.iter().all(|one| holds(one, 14)));
    }

    #[test]
    fn both_headers_of_a_tunnel_are_of_the_segment() {
        let all = frame(&[&ip(IPIP, 50), &ip(TCP, 30), &tcp(0x10), &CONTENT]);
        let cut = unfinished(GSO_TCPV4, 5, 54, 16).finish(&all).unwrap();
        assert_eq!(cut.len(), 2);
        for one in &cut {
            assert!(holds(one, 34));
            assert_eq!((checksum(&one[14..34]), one[17]), (0, 65), "the outer one");
        }
    }

    #[test]
    fn a_checksum_that_was_left_is_stored_and_zero_is_said_otherwise() {
        let mut header = vec![0x23, 0x28, 0x23, 0x29, 0, 18, 0, 0];
        let mut all = frame(&[&ip(UDP, 18), &header, &CONTENT]);
        let pseudo = pseudo(&all, 14, UDP, 18).unwrap();
        header[6..].copy_from_slice(&pseudo.to_be_bytes());
        all[34..42].copy_from_slice(&header);
        let whole = unfinished(0, 0, 34, 6).finish(&all).unwrap();
        let ip_sum = checksum(&all[14..34]).to_be_bytes();
        let mut whole = whole.into_iter().next().unwrap();
        whole[24..26].copy_from_slice(&ip_sum);
        assert!(holds(&whole, 14));
        // The payload is chosen so that the sum is zero.
        let sum = u16::from_be_bytes([whole[40], whole[41]]);
        let last = u16::from_be_bytes([all[50], all[51]]);
        let odd = u32::from(last) + u32::from(sum);
        let chosen = (odd & 0xffff) as u16 + (odd >> 16) as u16;
        all[50..52].copy_from_slice(&chosen.to_be_bytes());
        let whole = &unfinished(0, 0, 34, 6).finish(&all).unwrap()[0];
        assert_eq!(whole[40..42], [0xff, 0xff]);
    }

    #[test]
    fn a_frame_that_would_become_too_many_packets_is_refused() {
        let content = vec![7; 60_000];
        let all = frame(&[&ip(TCP, 20 + content.len()), &tcp(0x10), &content]);
        for size in [1, 48, 200] {
            assert_eq!(unfinished(GSO_TCPV4, size, 34, 16).finish(&all), Err(TOO_MANY), "{size}");
        }
        // At the smallest path MTU that a kernel uses, 552 bytes, a segment has 512 bytes of payload.
        assert_eq!(unfinished(GSO_TCPV4, 512, 34, 16).finish(&all).unwrap().len(), 118);
    }

    #[test]
    fn what_cannot_be_finished_is_refused_and_nothing_panics() {
        let all = frame(&[&ip(TCP, 30), &tcp(0x10), &CONTENT]);
        let refused = |what: Unfinished, frame: &[u8]| what.finish(frame) == Err(UNSUPPORTED);
        for kind in [3, 4, 6, 0x7f] {
            assert!(refused(unfinished(kind, 4, 34, 16), &all), "kind {kind}");
        }
        assert!(refused(unfinished(GSO_TCPV4, 0, 34, 16), &all), "segments of nothing");
        assert!(refused(Unfinished { needs_checksum: false, ..unfinished(GSO_TCPV4, 4, 34, 16) }, &all));
        assert!(refused(unfinished(GSO_UDP_L4, 4, 34, 6), &all), "another protocol");
        assert!(refused(unfinished(0, 0, 60, 16), &all), "a place behind the frame");
        for start in 0..80 {
            for offset in [0, 6, 16, 0xffff] {
                for gso in [0, GSO_TCPV4, GSO_UDP_L4] {
                    for len in 0..=all.len() {
                        let _ = unfinished(gso, 3, start, offset).finish(&all[..len]);
                    }
                }
            }
        }
    }
}
