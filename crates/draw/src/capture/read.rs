//! Reads the packets of a pcap or pcapng file, of Wayfare or of another program.

use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::io::Read;
use wire::Duration;

/// A packet of a capture file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Captured {
    /// When the packet was seen: the time since 1970. `None` if the file does not have it.
    pub at: Option<Duration>,
    /// The name of the interface; `None` if the file does not have it.
    pub interface: Option<String>,
    /// The protocol with which the bytes begin: the file's `LINKTYPE`, for example 1 for Ethernet and 101 for IP.
    pub link_type: u32,
    /// The bytes of the packet that the file has.
    pub bytes: Vec<u8>,
    /// The length of the packet on its link, in bytes. It is greater than that of `bytes` if the capture cut the packet.
    pub original_len: usize,
    /// The comment of the packet; empty for none.
    pub comment: String,
}

/// Why a capture file cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is neither pcap nor pcapng.
    #[error("not a capture file; allowed: pcap or pcapng")]
    Format,
    /// The file is damaged.
    #[error("packet {number}: {why}")]
    Packet {
        /// The number of the packet that cannot be read, from 1.
        number: usize,
        /// What is wrong.
        why: String,
    },
}

/// The first four bytes of a pcapng file: the type of its section header (draft-ietf-opsawg-pcapng, section 4.1).
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// The first four bytes of a pcap file, with times in microseconds or nanoseconds (draft-ietf-opsawg-pcap, section 4).
const PCAP: [u32; 2] = [0xa1b2_c3d4, 0xa1b2_3c4d];

/// Returns whether `file` begins like a pcap or pcapng file.
pub fn is_capture(file: &[u8]) -> bool {
    is_pcapng(file) || is_pcap(file)
}

fn is_pcapng(file: &[u8]) -> bool {
    file.starts_with(&PCAPNG)
}

fn is_pcap(file: &[u8]) -> bool {
    file.first_chunk::<4>().is_some_and(|first| {
        PCAP.contains(&u32::from_be_bytes(*first)) || PCAP.contains(&u32::from_le_bytes(*first))
    })
}

/// Returns the packets of a pcap or pcapng file, in the order of the file. Fails if `file` is of another format or is
/// damaged.
pub fn read(file: &[u8]) -> Result<Vec<Captured>, ReadError> {
    Packets::of(file)?.collect()
}

/// The packets of a pcap or pcapng file, each as soon as it is read. After an error, there are no more packets.
#[derive(Debug)]
pub struct Packets<R: Read> {
    format: Reading<R>,
    /// The number of packets that were read.
    number: usize,
}

#[derive(Debug)]
enum Reading<R: Read> {
    Pcap(PcapReader<Source<R>>, u32),
    Pcapng(PcapNgReader<Source<R>>),
    Ended,
}

/// A file whose first bytes were read already.
type Source<R> = std::io::Chain<std::io::Cursor<Vec<u8>>, R>;

impl<R: Read> Packets<R> {
    /// Begins to read a file, and reads its header. Fails if the file is of another format or is damaged.
    pub fn of(mut file: R) -> Result<Self, ReadError> {
        let mut first = Vec::new();
        file.by_ref().take(4).read_to_end(&mut first).map_err(|error| damaged(0, &error))?;
        let source = std::io::Cursor::new(first.clone()).chain(file);
        let format = if is_pcapng(&first) {
            Reading::Pcapng(PcapNgReader::new(source).map_err(|error| damaged(0, &error))?)
        } else if is_pcap(&first) {
            let reader = PcapReader::new(source).map_err(|error| damaged(0, &error))?;
            let link_type = number_of(reader.header().datalink);
            Reading::Pcap(reader, link_type)
        } else {
            return Err(ReadError::Format);
        };
        Ok(Self { format, number: 0 })
    }
}

impl<R: Read> Iterator for Packets<R> {
    type Item = Result<Captured, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = match &mut self.format {
            Reading::Pcap(reader, link_type) => next_of_pcap(reader, *link_type),
            Reading::Pcapng(reader) => next_of_pcapng(reader),
            Reading::Ended => None,
        };
        match read {
            Some(Ok(packet)) => {
                self.number += 1;
                Some(Ok(packet))
            }
            Some(Err(why)) => {
                self.format = Reading::Ended;
                Some(Err(damaged(self.number, &why)))
            }
            None => None,
        }
    }
}

/// Returns the error of the packet after the first `read` packets.
fn damaged(read: usize, why: &impl ToString) -> ReadError {
    ReadError::Packet { number: read + 1, why: why.to_string() }
}

fn next_of_pcap<R: Read>(reader: &mut PcapReader<R>, link_type: u32) -> Option<Result<Captured, String>> {
    let packet = match reader.next_packet()? {
        Ok(packet) => packet,
        Err(error) => return Some(Err(error.to_string())),
    };
    Some(Ok(Captured {
        at: Some(packet.timestamp()),
        interface: None,
        link_type,
        original_len: packet.orig_len() as usize,
        bytes: packet.data().to_vec(),
        comment: String::new(),
    }))
}

fn next_of_pcapng<R: Read>(reader: &mut PcapNgReader<R>) -> Option<Result<Captured, String>> {
    loop {
        let captured = match reader.next_block()? {
            Err(error) => return Some(Err(error.to_string())),
            Ok((Block::EnhancedPacket(packet), state)) => {
                let on = state.interfaces().get(packet.interface_id as usize);
                let comment = packet.options.iter().find_map(|option| match option {
                    EnhancedPacketOption::Common(CommonOption::Comment(text)) => Some(text.to_string()),
                    _ => None,
                });
                Captured {
                    at: Some(packet.timestamp),
                    comment: comment.unwrap_or_default(),
                    ..on_interface(on, packet.data.into_owned(), packet.original_len)
                }
            }
            Ok((Block::SimplePacket(packet), state)) => {
                on_interface(state.interfaces().first(), packet.data.into_owned(), packet.original_len)
            }
            Ok(_) => continue,
        };
        return Some(Ok(captured));
    }
}

fn on_interface(
    interface: Option<&InterfaceDescriptionBlock<'_>>,
    bytes: Vec<u8>,
    original_len: u32,
) -> Captured {
    let name = interface.and_then(|interface| {
        interface.options.iter().find_map(|option| match option {
            InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
            _ => None,
        })
    });
    let link_type = interface.map_or(DataLink::ETHERNET, |interface| interface.linktype);
    Captured {
        at: None,
        interface: name,
        link_type: number_of(link_type),
        bytes,
        original_len: original_len as usize,
        comment: String::new(),
    }
}

fn number_of(link: DataLink) -> u32 {
    u32::from(link)
}

#[cfg(test)]
mod tests {
    use super::super::{Capture, Direction, Interface, Seen, Snap};
    use super::*;
    use wire::{Instant, WallTime};

    #[test]
    fn what_is_written_is_read_back() {
        let interfaces = [Interface { host: "mh".into(), name: "wlan0".into() }];
        let mut capture = Capture::new(&interfaces, WallTime(1_700_000_000_000_000_000), Snap::First(60));
        let frame = [7; 100];
        let seen = Seen {
            interface: 0,
            at: Instant::from_millis(20),
            direction: Direction::Inbound,
            frame: &frame,
            original_len: 100,
            comment: "delivered",
        };
        capture.packet(&seen).unwrap();
        let expected = Captured {
            at: Some(Duration::new(1_700_000_000, 20_000_000)),
            interface: Some("mh:wlan0".into()),
            link_type: 1,
            bytes: vec![7; 60],
            original_len: 100,
            comment: "delivered".into(),
        };
        let file = capture.finish().unwrap();
        assert_eq!(read(&file), Ok(vec![expected]));
        let cut = read(&file[..file.len() - 3]).unwrap_err().to_string();
        assert!(cut.starts_with("packet 1: "), "{cut}");
    }

    #[test]
    fn the_packets_before_a_cut_one_are_read() {
        let mut file = pcap([0xd4, 0xc3, 0xb2, 0xa1]);
        let record = file[24..].to_vec();
        file.extend_from_slice(&record);
        file.extend_from_slice(&record[..17]);
        let mut packets = Packets::of(&file[..]).unwrap();
        assert_eq!(packets.by_ref().take_while(Result::is_ok).count(), 2);
        assert!(packets.next().is_none(), "the error is the last item");
        let error = Packets::of(&file[..]).unwrap().last().unwrap().unwrap_err();
        assert!(matches!(error, ReadError::Packet { number: 3, .. }), "{error}");
    }

    /// A pcap file as another program writes it: little-endian, microseconds, link type 101.
    fn pcap(magic: [u8; 4]) -> Vec<u8> {
        let mut file = magic.to_vec();
        file.extend_from_slice(&[2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0]);
        file.extend_from_slice(&[10, 0, 0, 0, 250, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0, 0x45, 1, 2]);
        file
    }

    #[test]
    fn a_pcap_file_has_times_and_the_link_type() {
        for (magic, nanos) in [([0xd4, 0xc3, 0xb2, 0xa1], 250_000), ([0x4d, 0x3c, 0xb2, 0xa1], 250)] {
            let read = read(&pcap(magic)).unwrap();
            let [packet] = &read[..] else { panic!("{read:?}") };
            assert_eq!(packet.at, Some(Duration::new(10, nanos)));
            assert_eq!(
                (packet.link_type, packet.original_len, &packet.bytes[..]),
                (101, 9, &[0x45, 1, 2][..])
            );
        }
    }

    #[test]
    fn other_files_are_refused() {
        for file in [&b""[..], b"\x0a\x0d", b"01 2a 01 2c"] {
            assert_eq!(read(file), Err(ReadError::Format));
            assert!(!is_capture(file));
        }
        let cut = read(&pcap([0xd4, 0xc3, 0xb2, 0xa1])[..30]).unwrap_err();
        assert!(matches!(cut, ReadError::Packet { number: 1, .. }), "{cut}");
    }
}
