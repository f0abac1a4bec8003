//! `wayfare decode`: prints messages field by field.

use crate::Failure;
use crate::output::{Format, is_unread, print};
use recorder::decode::Numbers;
use recorder::decode::dissect::{Begin, Dissection, Layer, dissect, in_bytes, meaning};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

/// The end of the long help.
const MORE: &str = "\
Each message is one block. The number before a field is its offset in the packet. The messages of Mobile IP have all their
fields; those of the other protocols (Cellular IP, DHCP, Indirect TCP, SIGMA) are one line. Checksums are checked, and
only those of GRE are printed. A malformed message is printed with the reason and with the offset of the refused field or
extension. The exit code is then 1.

A packet is printed as soon as it is read. If a file is damaged or cut, the packets before the damage are printed, and
the exit code is 2.

Examples:
  wayfare decode runs/first-sim-1/capture.pcapng
  wayfare decode --hex '01 2a 01 2c 0a01010a 0a010114 0a010207 ed00000012345800'
  tcpdump -w - udp port 434 | wayfare decode --numbers '{ update = 88 }' -";

/// What clap prints if the arguments are wrong.
const USAGE: &str = "wayfare decode [OPTIONS] <FILE>\n       wayfare decode [OPTIONS] --hex <BYTES>";

/// The longest line of a text file in bytes. A datagram has at most 65535 bytes, and thus 131070 digits.
const LONGEST_LINE: u64 = 1 << 20;

#[derive(clap::Args)]
#[command(after_long_help = MORE, override_usage = USAGE)]
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
    /// The numbers of the messages of Mobile IP that differ from the default ones, as in a scenario: `{ update = 88 }`.
    /// A capture in the directory of a run has the numbers of the run.
    #[arg(long, value_name = "{ NAME = NUMBER, ... }", value_parser = numbers)]
    numbers: Option<Numbers>,
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
    /// The protocol with which the packet begins; the `LINKTYPE` of its capture if the protocol is not known.
    begin: Result<Begin, u32>,
    original_len: usize,
    comment: String,
}

pub(crate) fn decode(args: &Args) -> Result<(), Failure> {
    let numbers = match (args.numbers, &args.file) {
        (Some(numbers), _) => Ok(Some(numbers)),
        (None, Some(path)) if path.as_os_str() != "-" => recorder::rundir::numbers_beside(path),
        _ => Ok(None),
    };
    let numbers = numbers.map_err(|error| {
        Failure::Usage(format!("{error}, or give the numbers of its messages, for example --numbers '{{}}'"))
    })?;
    let mut shown = Shown { numbers: numbers.unwrap_or_default(), ..Shown::default() };
    let read = match (&args.hex, &args.file) {
        (Some(text), _) => of_hex(args, text, "the bytes").map(|packet| shown.packet(args, &packet)),
        (None, Some(path)) => of_file(args, path, &mut shown),
        (None, None) => Ok(()), // clap has refused it
    };
    if args.format == Format::Text && args.hex.is_none() && (read.is_ok() || shown.all > 0) {
        print(&shown.summary());
    }
    read.map_err(Failure::Usage)?;
    if shown.malformed == 0 { Ok(()) } else { Err(Failure::DidNotHold) }
}

/// How many packets were read, and what was printed of them.
#[derive(Default)]
struct Shown {
    numbers: Numbers,
    all: usize,
    printed: usize,
    malformed: usize,
    /// The number of printed packets of which the capture has only the first bytes.
    cut: usize,
    /// The number of packets by the `LINKTYPE` that is not decoded.
    not_decoded: BTreeMap<u32, usize>,
}

impl Shown {
    /// Prints a packet if it is a message or malformed, or if all packets are requested.
    fn packet(&mut self, args: &Args, packet: &Packet) {
        let is_cut = packet.original_len > packet.bytes.len();
        let found = match packet.begin {
            Ok(begin) => dissect(&packet.bytes, begin, is_cut, &self.numbers),
            Err(_) => Dissection::default(),
        };
        self.all += 1;
        self.malformed += usize::from(found.problem.is_some());
        if let Err(link_type) = packet.begin {
            *self.not_decoded.entry(link_type).or_default() += 1;
        }
        if !(found.is_message || args.all || args.hex.is_some()) {
            return;
        }
        self.printed += 1;
        self.cut += usize::from(is_cut);
        print(&match args.format {
            Format::Text => text_of(packet, &found, is_cut),
            Format::Json => format!("{}\n", json_of(self.all, packet, &found)),
        });
    }

    fn summary(&self) -> String {
        let Self { all, printed, malformed, .. } = *self;
        let others = match all - printed {
            0 => String::new(),
            1 => "; --all prints the other one".to_owned(),
            rest => format!("; --all prints the {rest} others"),
        };
        let noun = if all == 1 { "packet" } else { "packets" };
        let mut text = format!("{all} {noun}, {printed} printed, {malformed} malformed{others}\n");
        if self.cut > 0 {
            let _ = writeln!(
                text,
                "{} of the printed packets are cut: what is at their end is missing or not recognized; `wayfare run --snap full` captures whole packets",
                self.cut
            );
        }
        for (link_type, number) in &self.not_decoded {
            let _ = writeln!(text, "{number} of them not decoded: {}", undecoded(*link_type));
        }
        text
    }
}

/// Reads the argument of `--numbers`.
fn numbers(text: &str) -> Result<Numbers, String> {
    let refused = |problem: &str| {
        format!(
            "{problem}; allowed: names and numbers in braces, for example `{{ update = 88, previous_agent = 97 }}`"
        )
    };
    let given: toml::Table =
        toml::from_str(&format!("numbers = {text}")).map_err(|error| refused(error.message()))?;
    let table = match given.get("numbers") {
        Some(toml::Value::Table(table)) if given.len() == 1 => table,
        Some(other) if given.len() == 1 => {
            return Err(refused(&format!("invalid type: {} `{other}`", other.type_str())));
        }
        _ => return Err(refused("more than one table")),
    };
    let numbers: Numbers = table.clone().try_into().map_err(|error| wrong_number(table, &error))?;
    numbers.check().map_err(|error| error.to_string())?;
    Ok(numbers)
}

/// Returns the error for a table that [`Numbers`] refuses: the first wrong name or number, and what is allowed.
fn wrong_number(table: &toml::Table, error: &toml::de::Error) -> String {
    for (name, value) in table {
        let one = toml::Table::from_iter([(name.clone(), value.clone())]);
        match one.try_into::<Numbers>() {
            Ok(_) => {}
            Err(error) if error.message().starts_with("unknown field") => return error.message().to_owned(),
            Err(_) => {
                let largest = Numbers::largest(name);
                return format!("`{name} = {value}`: allowed: a whole number from 0 to {largest}");
            }
        }
    }
    error.message().to_owned()
}

fn undecoded(link_type: u32) -> String {
    format!("link type {link_type}; allowed: 1 (Ethernet), 101 and 228 (IP)")
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
        begin: Ok(args.layer.of(&bytes)),
        original_len: bytes.len(),
        bytes,
        comment: String::new(),
    })
}

/// Reads a file, and prints each packet as soon as it is read. Ends early if the reader of the output has exited.
fn of_file(args: &Args, path: &Path, shown: &mut Shown) -> Result<(), String> {
    let name = path.display();
    let unread = |error: std::io::Error| format!("cannot read {name}: {error}");
    if path.is_dir() {
        return Err(format!(
            "{name} is a directory; allowed: a file, for example the capture of a run, {}",
            path.join("capture.pcapng").display()
        ));
    }
    let mut file: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(unread)?)
    };
    // Four bytes show whether the file is a capture.
    let mut first = Vec::new();
    file.by_ref().take(4).read_to_end(&mut first).map_err(unread)?;
    let is_capture = draw::is_capture(&first);
    let file = Cursor::new(first).chain(file);
    if is_capture {
        let packets = draw::CapturedPackets::of(file).map_err(|error| format!("{name}: {error}"))?;
        for (number, packet) in (1..).zip(packets) {
            let packet = packet.map_err(|error| format!("{name}: {error}"))?;
            shown.packet(args, &of_capture(number, packet));
            if is_unread() {
                break;
            }
        }
        return Ok(());
    }
    let mut file = BufReader::new(file);
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let read = file.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(unread)?;
        if read == 0 || is_unread() {
            break;
        }
        let text = std::str::from_utf8(&line).ok().filter(|_| (read as u64) < LONGEST_LINE);
        let text = text.ok_or_else(|| {
            format!("{name} is neither a capture nor text; allowed: pcap, pcapng, or hexadecimal digits")
        })?;
        let text = text.trim_end_matches(['\n', '\r']);
        if !text.trim().is_empty() && !text.trim().starts_with('#') {
            shown.packet(args, &of_hex(args, text, &format!("{name}, line {number}"))?);
        }
    }
    Ok(())
}

fn of_capture(number: usize, packet: draw::Captured) -> Packet {
    let time = packet.at.map(|at| format!(", {}.{:06} s", at.as_secs(), at.subsec_micros()));
    let interface = packet.interface.map(|name| format!(", {name}"));
    // The numbers are from the registry of LINKTYPE values: Ethernet, raw IP, and raw IPv4.
    let begin = match packet.link_type {
        1 => Ok(Begin::Ethernet),
        12 | 14 | 101 | 228 => Ok(Begin::Ip),
        other => Err(other),
    };
    let of_link =
        begin.err().map(|link_type| format!(", not decoded: {}", undecoded(link_type))).unwrap_or_default();
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
