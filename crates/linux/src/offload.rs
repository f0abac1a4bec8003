//! What the sender of a frame left to hardware that is not there: a checksum, or the cutting of a large segment. Other machines'
//! kernels leave both to a veth or virtio device (`struct virtio_net_hdr`, `linux/virtio_net.h`); a node forwards frames that
//! are finished.

use wire::{Checksum, Ipv4Addr, Reason, checksum};

/// Bytes of `struct virtio_net_hdr` as `PACKET_VNET_HDR` puts it before each frame.
pub(crate) const HEADER: usize = 10;

const NEEDS_CSUM: u8 = 1;
const GSO_TCPV4: u8 = 1;
const GSO_UDP_L4: u8 = 5;
/// A bit beside the kind: the first segment alone carries CWR (RFC 3168, section 6.1.2).
const GSO_ECN: u8 = 0x80;

const ETHERNET: usize = 14;
const TCP: u8 = 6;
const UDP: u8 = 17;
const IPIP: u8 = 4;
/// FIN and PSH are of the last segment.
const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// A frame of a kind that cannot be finished here.
pub(crate) const UNSUPPORTED: Reason = Reason("offload_unsupported");

/// What is unfinished about a frame.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Unfinished {
    needs_checksum: bool,
    /// The kind of segments that it is to be cut into, or 0.
    gso: u8,
    /// Bytes of payload in each.
    gso_size: usize,
    /// Where the sum begins, and how far behind that it is stored. The place holds the pseudo-header's sum.
    start: usize,
    offset: usize,
}

impl Unfinished {
    /// Reads what the kernel put before a frame: in host order.
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

    /// Whether nothing is left to do.
    pub(crate) const fn is_nothing(&self) -> bool {
        !self.needs_checksum && self.gso == 0
    }

    /// The frames that the sender meant, each one packet with its checksums.
    pub(crate) fn finish(&self, frame: &[u8]) -> Result<Vec<Vec<u8>>, Reason> {
        if self.gso == 0 {
            let mut whole = frame.to_vec();
            if self.needs_checksum {
                store_sum(&mut whole, self.start, self.offset).ok_or(UNSUPPORTED)?;
            }
            return Ok(vec![whole]);
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

/// Where the IPv4 headers are before the transport's header: several, if the packet is in a tunnel.
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

/// Length, identification and checksum of an IPv4 header in the segment of this number.
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

/// The sum of the pseudo-header (RFC 9293, section 3.1), not complemented.
fn pseudo(frame: &[u8], ip: usize, proto: u8, len: usize) -> Option<u16> {
    let address = |at: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(frame.get(at..at + 4)?).ok()?));
    let sum =
        Checksum::of_pseudo_header(address(ip + 12)?, address(ip + 16)?, proto, u16::try_from(len).ok()?);
    Some(!sum.finish())
}

/// Sums up from `start`, where the place of the sum holds the pseudo-header's.
fn store_sum(frame: &mut [u8], start: usize, offset: usize) -> Option<()> {
    const UDP_OFFSET: usize = 6;
    let sum = checksum(frame.get(start..)?);
    // In UDP, zero says that there is none (RFC 768).
    put(frame, start + offset, if sum == 0 && offset == UDP_OFFSET { 0xffff } else { sum })
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn put(bytes: &mut [u8], at: usize, value: u16) -> Option<()> {
    bytes.get_mut(at..at + 2)?.copy_from_slice(&value.to_be_bytes());
    Some(())
}
