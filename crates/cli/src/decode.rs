//! `wayfare decode`: prints messages field by field.

use crate::Failure;
use crate::output::{Format, print};
use recorder::decode::dissect::{Begin, Dissection, Layer, dissect, in_bytes, meaning};
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The end of the long help.
const MORE: &str = "\
Each message is one block with all its fields. The number before a field is its offset in the packet.
A malformed message is printed with the reason and with the offset of the refused field or extension.
The exit code is then 1.

Examples:
  wayfare decode runs/first-sim-1/capture.pcapng
  wayfare decode --hex '01 2a 01 2c 0a01010a 0a010114 0a010207 ed00000012345800'
  tcpdump -w - udp port 434 | wayfare decode -";

#[derive(clap::Args)]
#[command(after_long_help = MORE)]
pub(crate) struct Args {
    /// A pcap or pcapng file, or a text file with one packet in hexadecimal digits on each line; `-` is standard input.
    /// In a text file, blanks, colons, and lines that begin with `#` are ignored.
    #[arg(required_unless_present = "hex", conflicts_with = "hex")]
    file: Option<PathBuf>,
    /// Decode one packet, given in hexadecimal digits. Blanks and colons between the digits are ignored.
    #[arg(long, value_name = "BYTES")]
    hex: Option<String>,
    /// With what packets in hexadecimal digits begin. A message is the payload of a datagram to or from UDP port 434.
    #[arg(long = "as", value_name = "LAYER", default_value = "auto")]
    layer: Begins,
    /// Print all packets of a file, and not only messages and malformed packets.
    #[arg(long)]
    all: bool,
    /// Print text, or one object of JSON on each line.
    #[arg(long, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Begins {
    /// What the bytes look like.
    Auto,
    /// An Ethernet header.
    Ethernet,
    /// An IPv4 header.
    Ip,
    /// An ICMP header.
    Icmp,
    /// A message of Mobile IP.
    Message,
}

impl Begins {
    fn of(self, bytes: &[u8]) -> Begin {
        match self {
            Self::Auto => Begin::guess(bytes),
            Self::Ethernet => Begin::Ethernet,
            Self::Ip => Begin::Ip,
            Self::Icmp => Begin::Icmp,
            Self::Message => Begin::Message,
        }
    }
}

/// A packet that is to be decoded.
struct Packet {
    /// Where the packet is: its number in the file, and the time and interface of a capture.
    place: String,
    bytes: Vec<u8>,
    /// `None` if the protocol with which a captured packet begins is not known.
    begin: Option<Begin>,
    original_len: usize,
    comment: String,
}

pub(crate) fn decode(args: &Args) -> Result<(), Failure> {
    let packets = match (&args.hex, &args.file) {
        (Some(text), _) => vec![of_hex(args, text, "the bytes").map_err(Failure::Usage)?],
        (None, Some(path)) => of_file(args, path).map_err(Failure::Usage)?,
        (None, None) => Vec::new(), // clap has refused it
    };
    let (mut printed, mut malformed) = (0, 0);
    for (number, packet) in (1..).zip(&packets) {
        let is_cut = packet.original_len > packet.bytes.len();
        let found = match packet.begin {
            Some(begin) => dissect(&packet.bytes, begin, is_cut),
            None => Dissection::default(),
        };
        malformed += usize::from(found.problem.is_some());
        if !(found.is_message || args.all || args.hex.is_some()) {
            continue;
        }
        printed += 1;
        print(&match args.format {
            Format::Text => text_of(packet, &found, is_cut),
            Format::Json => format!("{}\n", json_of(number, packet, &found)),
        });
    }
    if args.format == Format::Text && args.hex.is_none() {
        let rest = packets.len() - printed;
        let others = if rest == 0 {
            String::new()
        } else {
            format!(
                "; --all prints the {}",
                if rest == 1 { "other one".to_owned() } else { format!("{rest} others") }
            )
        };
        let all = packets.len();
        let noun = if all == 1 { "packet" } else { "packets" };
        print(&format!("{all} {noun}, {printed} printed, {malformed} malformed{others}\n"));
    }
    if malformed == 0 { Ok(()) } else { Err(Failure::DidNotHold) }
}

/// Returns the packet of a text in hexadecimal digits. `place` is where the text is.
fn of_hex(args: &Args, text: &str, place: &str) -> Result<Packet, String> {
    let is_ignored = |c: char| c.is_whitespace() || c == ':';
    let digits: String = text.chars().filter(|c| !is_ignored(*c)).collect();
    let digits = digits.strip_prefix("0x").unwrap_or(&digits);
    if let Some((at, wrong)) = text.char_indices().find(|(at, c)| {
        let is_prefix = *at < 2 && text.starts_with("0x");
        !c.is_ascii_hexdigit() && !is_ignored(*c) && !is_prefix
    }) {
        return Err(format!(
            "{place}: `{wrong}` at character {} is not a hexadecimal digit; allowed: 0 to 9, a to f, blanks and colons",
            at + 1
        ));
    }
    let bytes = trace::unhex(digits).ok_or_else(|| {
        format!("{place}: {} digits are no whole bytes; allowed: two digits for each byte", digits.len())
    })?;
    Ok(Packet {
        place: place.to_owned(),
        begin: Some(args.layer.of(&bytes)),
        original_len: bytes.len(),
        bytes,
        comment: String::new(),
    })
}

fn of_file(args: &Args, path: &Path) -> Result<Vec<Packet>, String> {
    let name = path.display();
    let mut file = Vec::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().lock().read_to_end(&mut file).map(drop)
    } else {
        std::fs::read(path).map(|read| file = read)
    };
    read.map_err(|error| format!("cannot read {name}: {error}"))?;
    if draw::is_capture(&file) {
        let packets = draw::read_capture(&file).map_err(|error| format!("{name}: {error}"))?;
        return Ok((1..).zip(packets).map(|(number, packet)| of_capture(number, packet)).collect());
    }
    let text = std::str::from_utf8(&file).map_err(|_| {
        format!("{name} is neither a capture nor text; allowed: pcap, pcapng, or hexadecimal digits")
    })?;
    let lines = (1..).zip(text.lines()).filter(|(_, line)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    });
    lines.map(|(line, text)| of_hex(args, text, &format!("{name}, line {line}"))).collect()
}

fn of_capture(number: usize, packet: draw::Captured) -> Packet {
    let time = packet.at.map(|at| format!(", {}.{:06} s", at.as_secs(), at.subsec_micros()));
    let interface = packet.interface.map(|name| format!(", {name}"));
    // The numbers are from the registry of LINKTYPE values: Ethernet, raw IP, and raw IPv4.
    let begin = match packet.link_type {
        1 => Some(Begin::Ethernet),
        12 | 14 | 101 | 228 => Some(Begin::Ip),
        _ => None,
    };
    let of_link = if begin.is_some() {
        String::new()
    } else {
        format!(", link type {}: not decoded; allowed: 1 (Ethernet), 101 and 228 (IP)", packet.link_type)
    };
    Packet {
        place: format!(
            "packet {number}{}{}{of_link}",
            time.unwrap_or_default(),
            interface.unwrap_or_default()
        ),
        bytes: packet.bytes,
        begin,
        original_len: packet.original_len,
        comment: packet.comment,
    }
}

/// Width of the names of fields.
const WIDTH: usize = 24;

fn text_of(packet: &Packet, found: &Dissection, is_cut: bool) -> String {
    let mut out = format!("{}, {}\n", packet.place, in_bytes(packet.original_len));
    if !packet.comment.is_empty() {
        let _ = writeln!(out, "  {:WIDTH$} {}", "comment", packet.comment);
    }
    for layer in &found.layers {
        add_layer(&mut out, layer);
    }
    if is_cut {
        let (kept, whole) = (packet.bytes.len(), packet.original_len);
        let _ = writeln!(out, "  cut: the capture has the first {kept} of {}", in_bytes(whole));
    }
    if let Some(problem) = &found.problem {
        let why = meaning(&problem.reason).map(|why| format!(": {why}")).unwrap_or_default();
        let _ = writeln!(out, "  malformed at byte {}: {}{why}", problem.at, problem.reason);
    }
    out.push('\n');
    out
}

fn add_layer(out: &mut String, layer: &Layer) {
    let _ = writeln!(out, "  {}", layer.name);
    for field in &layer.fields {
        let _ = writeln!(out, "  {:>5}  {:WIDTH$} {}", field.at, field.name, field.value);
    }
}

fn json_of(number: usize, packet: &Packet, found: &Dissection) -> Value {
    let problem = found.problem.as_ref().map(
        |problem| json!({ "reason": problem.reason, "at": problem.at, "meaning": meaning(&problem.reason) }),
    );
    json!({
        "number": number,
        "place": packet.place,
        "bytes": packet.original_len,
        "captured": packet.bytes.len(),
        "comment": packet.comment,
        "message": found.is_message,
        "tunneled": found.is_tunneled,
        "layers": found.layers,
        "malformed": problem,
    })
}
