//! A run as a pcapng file: all interfaces in one section, and packets with comments about their ends.

mod read;

pub use read::{Captured, Packets, ReadError, is_capture, read};

use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{PcapNgWriteError, PcapNgWriter};
use pcap_file::{DataLink, Endianness};
use std::borrow::Cow;
use wire::{Duration, Instant, WallTime};

/// The largest comment in bytes, below the limit of a pcapng option (65535). A longer comment is cut.
const COMMENT_MAX: usize = 65_000;

/// An interface of a node. The capture names it `host:name`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Interface {
    /// The name of the host.
    pub host: String,
    /// The name of the interface within its host.
    pub name: String,
}

/// The direction of a packet, seen from the interface.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// The interface received the packet.
    Inbound,
    /// The interface sent the packet.
    Outbound,
}

/// How much of each frame is stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Snap {
    /// At most this number of bytes from the start of the frame.
    First(u32),
    /// The whole frame.
    Full,
}

impl Default for Snap {
    fn default() -> Self {
        Self::First(128)
    }
}

/// A packet seen at an interface.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The interface, as an index into those given to [`Capture::new`].
    pub interface: usize,
    /// The instant at which the packet was seen, in the time of the run.
    pub at: Instant,
    /// The direction of the packet.
    pub direction: Direction,
    /// The bytes of the Ethernet frame, from its header on. There may be fewer than `original_len`.
    pub frame: &'a [u8],
    /// The length of the frame on its link, in bytes.
    pub original_len: usize,
    /// The comment of the packet in the file, for example `delivered to mobile`. If it is empty, there is no comment.
    pub comment: &'a str,
}

/// The error of a packet that cannot be added, or of a file that cannot be encoded.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The packet's interface index is out of range.
    #[error("the interface index of a packet is {interface}, and must be less than {known}")]
    UnknownInterface {
        /// The packet's interface index.
        interface: usize,
        /// The number of interfaces of the capture, whose indexes begin at 0.
        known: usize,
    },
    /// A block could not be written, for example because an interface name exceeds 65535 bytes.
    #[error("the capture cannot be written as pcapng: {0}")]
    Write(#[from] PcapNgWriteError),
}

/// A packet of the capture. It is stored, because the file has all packets in the order of time.
#[derive(Debug)]
struct Kept {
    interface: u32,
    at: Instant,
    direction: Direction,
    original_len: u32,
    data: Box<[u8]>,
    comment: Box<str>,
}

/// The contents of a pcapng file. Packets are added one by one; then [`Capture::finish`] returns the bytes.
#[derive(Debug)]
pub struct Capture {
    interfaces: Vec<Interface>,
    epoch: WallTime,
    snap: Snap,
    packets: Vec<Kept>,
}

impl Capture {
    /// Returns an empty capture of a run that began at the wall-clock time `epoch`.
    pub fn new(interfaces: &[Interface], epoch: WallTime, snap: Snap) -> Self {
        Self { interfaces: interfaces.to_vec(), epoch, snap, packets: Vec::new() }
    }

    /// Adds a packet. [`Capture::finish`] sorts the packets by time; packets of one instant keep the order of these calls.
    /// Returns an error if the interface index is out of range.
    pub fn packet(&mut self, seen: &Seen<'_>) -> Result<(), CaptureError> {
        let known = self.interfaces.len();
        let interface = match u32::try_from(seen.interface) {
            Ok(index) if seen.interface < known => index,
            _ => return Err(CaptureError::UnknownInterface { interface: seen.interface, known }),
        };
        let kept = match self.snap {
            Snap::First(bytes) => seen.frame.len().min(bytes as usize),
            Snap::Full => seen.frame.len(),
        };
        let original_len = u32::try_from(seen.original_len.max(seen.frame.len())).unwrap_or(u32::MAX);
        self.packets.push(Kept {
            interface,
            at: seen.at,
            direction: seen.direction,
            original_len,
            data: seen.frame[..kept].into(),
            comment: cut(seen.comment).into(),
        });
        Ok(())
    }

    /// Returns the bytes of the file. Its packets are in the order of time, over all interfaces. Fails if a block
    /// cannot be encoded.
    pub fn finish(mut self) -> Result<Vec<u8>, CaptureError> {
        self.packets.sort_by_key(|packet| packet.at); // stable: keeps the order of calls at one instant
        let mut writer = PcapNgWriter::with_section_header(Vec::new(), section())?;
        for interface in &self.interfaces {
            writer.write_pcapng_block(description(interface, self.snap))?;
        }
        for packet in &self.packets {
            writer.write_pcapng_block(enhanced(packet, self.epoch))?;
        }
        Ok(writer.into_inner())
    }
}

/// Returns the header of the file's only section. It is little-endian on every machine, so that equal runs give equal
/// files.
fn section() -> SectionHeaderBlock<'static> {
    SectionHeaderBlock {
        endianness: Endianness::Little,
        options: vec![
            SectionHeaderOption::Hardware("Wayfare nodes".into()),
            SectionHeaderOption::OS("Wayfare".into()),
            SectionHeaderOption::UserApplication(concat!("Wayfare ", env!("CARGO_PKG_VERSION")).into()),
        ],
        ..SectionHeaderBlock::default()
    }
}

fn description(interface: &Interface, snap: Snap) -> InterfaceDescriptionBlock<'static> {
    let name = format!("{}:{}", interface.host, interface.name);
    InterfaceDescriptionBlock {
        linktype: DataLink::ETHERNET,
        snaplen: match snap {
            Snap::First(bytes) => bytes,
            Snap::Full => 0, // "no limit" (draft-ietf-opsawg-pcapng, section 4.2)
        },
        options: vec![
            InterfaceDescriptionOption::IfName(name.into()),
            InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
        ],
    }
}

fn enhanced(packet: &Kept, epoch: WallTime) -> EnhancedPacketBlock<'_> {
    // Bits 0 and 1 of the flags (draft-ietf-opsawg-pcapng, section 4.3.1).
    let flags = match packet.direction {
        Direction::Inbound => 0b01,
        Direction::Outbound => 0b10,
    };
    let mut options = Vec::with_capacity(2);
    if !packet.comment.is_empty() {
        options.push(EnhancedPacketOption::Common(CommonOption::Comment(Cow::Borrowed(&packet.comment))));
    }
    options.push(EnhancedPacketOption::Flags(flags));
    // The format has no times before 1970, so an earlier start of the run counts as 1970.
    let epoch = u64::try_from(epoch.0).unwrap_or(0);
    EnhancedPacketBlock {
        interface_id: packet.interface,
        timestamp: Duration::from_nanos(epoch.saturating_add(packet.at.0)),
        original_len: packet.original_len,
        data: Cow::Borrowed(&packet.data),
        options,
    }
}

/// Returns the comment, cut between two characters to at most [`COMMENT_MAX`] bytes.
fn cut(comment: &str) -> &str {
    &comment[..comment.floor_char_boundary(COMMENT_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_file::pcapng::{Block, PcapNgReader};

    fn interfaces() -> Vec<Interface> {
        [("mh", "wlan0"), ("gw", "eth0")]
            .map(|(host, name)| Interface { host: host.into(), name: name.into() })
            .into()
    }

    fn seen(interface: usize, ms: u64, frame: &[u8]) -> Seen<'_> {
        Seen {
            interface,
            at: Instant::from_millis(ms),
            direction: Direction::Outbound,
            frame,
            original_len: frame.len(),
            comment: "delivered",
        }
    }

    fn packets(file: &[u8]) -> Vec<EnhancedPacketBlock<'static>> {
        let mut reader = PcapNgReader::new(file).unwrap();
        let mut found = Vec::new();
        while let Some(block) = reader.next_block() {
            if let (Block::EnhancedPacket(packet), _) = block.unwrap() {
                found.push(packet.into_owned());
            }
        }
        found
    }

    #[test]
    fn packets_come_back_in_the_order_of_time_with_their_fate() {
        let mut capture = Capture::new(&interfaces(), WallTime(1_700_000_000_000_000_000), Snap::default());
        capture.packet(&seen(0, 20, &[1; 60])).unwrap();
        capture
            .packet(&Seen {
                direction: Direction::Inbound,
                comment: "lost: queue full",
                ..seen(1, 10, &[2; 200])
            })
            .unwrap();
        capture.packet(&Seen { comment: "", ..seen(1, 20, &[3; 60]) }).unwrap();
        let found = packets(&capture.finish().unwrap());

        assert_eq!(
            found.iter().map(|p| (p.interface_id, p.data[0])).collect::<Vec<_>>(),
            [(1, 2), (0, 1), (1, 3)]
        );
        assert_eq!((found[0].data.len(), found[0].original_len), (128, 200));
        assert_eq!(found[0].timestamp, Duration::new(1_700_000_000, 10_000_000));
        let comment = EnhancedPacketOption::Common(CommonOption::Comment("lost: queue full".into()));
        assert_eq!(found[0].options, [comment, EnhancedPacketOption::Flags(1)]);
        assert_eq!(found[2].options, [EnhancedPacketOption::Flags(2)]);
    }

    #[test]
    fn full_keeps_every_byte() {
        let mut capture = Capture::new(&interfaces(), WallTime(0), Snap::Full);
        capture.packet(&seen(0, 0, &[7; 1514])).unwrap();
        assert_eq!(packets(&capture.finish().unwrap())[0].data.len(), 1514);
    }

    #[test]
    fn equal_calls_make_equal_bytes_and_none_make_a_readable_file() {
        let empty = || Capture::new(&interfaces(), WallTime(0), Snap::default()).finish().unwrap();
        assert_eq!(empty(), empty());
        assert!(packets(&empty()).is_empty());
        assert!(Capture::new(&[], WallTime(0), Snap::Full).finish().is_ok());
    }

    #[test]
    fn an_interface_that_is_not_there_is_refused() {
        let mut capture = Capture::new(&interfaces(), WallTime(0), Snap::default());
        let refused = capture.packet(&seen(2, 0, &[0; 60])).unwrap_err();
        assert_eq!(refused.to_string(), "the interface index of a packet is 2, and must be less than 2");
    }

    #[test]
    fn what_the_format_cannot_hold_is_bounded() {
        let mut capture = Capture::new(&interfaces(), WallTime(-1), Snap::default());
        let long = "é".repeat(40_000);
        let never = Seen { at: Instant::NEVER, original_len: 1, comment: &long, ..seen(0, 0, &[0; 60]) };
        capture.packet(&never).unwrap();
        let found = packets(&capture.finish().unwrap());
        assert_eq!(found[0].original_len, 60);
        assert_eq!(found[0].timestamp, Duration::from_nanos(u64::MAX));
    }
}
