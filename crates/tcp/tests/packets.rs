//! Scripts of TCP conversations, in the manner of packetdrill: one side is this crate, the other is the script. Each
//! file in `tests/packets/` shows a rule of an RFC or of 4.4BSD, and names its source. A line is a time in milliseconds
//! and one of
//!
//! ```text
//! connect | listen | write N | read N | finish | abort | path N     a call of the application, or a new path MSS
//! < FLAGS FROM:END ack N win N ...                                   a segment of the peer
//! > FLAGS FROM:END ack N win N ...                                   a segment of ours, at exactly this time
//! = cwnd N ...                                                       internal values at this time
//! ```
//!
//! Numbers count from the initial sequence numbers, and flags are those of packetdrill. The whole conversation is
//! compared: a segment that is not in the script fails the test. `WAYFARE_BLESS=1` writes the actual segments into the
//! files. Compare them with the RFC before a commit.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use tcp::{
    Blocks, Connection, Flags, Mechanisms, Options, Profile, Recovery, Segment, Seq, Ticks, Timestamps,
    Timing, TooBig, Wheel,
};
use wire::{Duration, Instant, Ipv4Addr, SocketAddrV4};

const US: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 2, 0, 1), 4000);
const PEER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 1, 0, 7), 80);
/// The initial sequence number of this end. The sequence numbers of this end wrap after 1500 bytes of data.
const ISS: Seq = Seq(u32::MAX - 1500);
const IRS: Seq = Seq(u32::MAX - 3);

struct Script {
    profile: Profile,
    tcp: Option<Connection>,
    out: String,
}

type Words<'a> = std::str::SplitWhitespace<'a>;

fn number<'a, T: std::str::FromStr>(words: &mut impl Iterator<Item = &'a str>) -> T {
    let word = words.next().unwrap_or_else(|| panic!("a number is missing"));
    word.parse().unwrap_or_else(|_| panic!("`{word}` is no such number"))
}

/// Parses `FROM:END`, two sequence numbers.
fn span(word: &str) -> (u32, u32) {
    let (from, end) = word.split_once(':').unwrap_or_else(|| panic!("`{word}` is no span"));
    (from.parse().unwrap(), end.parse().unwrap())
}

fn profile(text: &str) -> Profile {
    let mut words = text.split_whitespace().skip(1);
    let mut profile = match words.next() {
        Some("rfc6298-reno") => Profile::rfc6298_reno(),
        Some("linux") => Profile::linux(),
        Some("bsd44") => Profile::bsd44(),
        other => panic!("no such profile: {other:?}"),
    };
    profile.mss = 1000;
    while let Some(word) = words.next() {
        match word {
            "recovery" => {
                profile.recovery = match words.next() {
                    Some("tahoe") => Recovery::Tahoe,
                    Some("reno") => Recovery::Reno,
                    Some("newreno") => Recovery::NewReno,
                    Some("sack") => Recovery::Sack,
                    Some("no-probe") => Recovery::Segments(Mechanisms { tlp: false, ..Mechanisms::ALL }),
                    other => panic!("no such recovery: {other:?}"),
                };
                profile.sack = matches!(profile.recovery, Recovery::Sack | Recovery::Segments(_));
            }
            "window" => profile.initial_window = number(&mut words),
            "buffer" => (profile.receive_buffer, profile.window_shift) = (number(&mut words), None),
            "phase" => {
                let phase = Some(Duration::from_millis(number(&mut words)));
                profile.timing = match profile.timing {
                    Timing::Wheel(wheel) => Timing::Wheel(Wheel { phase, ..wheel }),
                    _ => Timing::Ticks(Ticks { phase, ..Ticks::BSD }),
                };
            }
            "timestamps" => profile.timestamps = true,
            "sack" => profile.sack = true,
            "dsack" => profile.dsack = true,
            "limited" => profile.limited_transmit = true,
            "no-nagle" => profile.nagle = false,
            "await-timeout" => profile.too_big = TooBig::AwaitTimeout,
            "ack-each" => profile.delayed_ack = None,
            other => panic!("no such parameter: {other}"),
        }
    }
    profile
}

impl Script {
    /// Runs a script. Returns the script with the actual segments and values.
    fn play(text: &str) -> String {
        let mut script = Self { profile: Profile::rfc6298_reno(), tcp: None, out: String::new() };
        let mut comments = String::new();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                None | Some("#") => _ = writeln!(comments, "{line}"),
                Some("profile") => {
                    script.profile = profile(line);
                    _ = writeln!(script.out, "{}{line}", std::mem::take(&mut comments));
                }
                Some(time) => {
                    let at =
                        Instant::from_millis(time.parse().unwrap_or_else(|_| panic!("`{line}`: a time")));
                    let Some(what) = words.next().filter(|what| *what != ">") else { continue };
                    script.pass(at);
                    script.out.push_str(&std::mem::take(&mut comments));
                    let told = if what == "=" { script.look(words) } else { script.act(at, what, words) };
                    _ = writeln!(script.out, "{:>6} {what}{told}", at.0 / 1_000_000);
                    script.says(at);
                }
            }
        }
        script.out + &comments
    }

    /// Advances the time, and lets timers expire.
    fn pass(&mut self, until: Instant) {
        while let Some(at) = self.tcp.as_ref().and_then(Connection::deadline).filter(|at| *at <= until) {
            self.tcp.as_mut().unwrap().timeout(at);
            self.says(at);
        }
    }

    fn tcp(&mut self) -> &mut Connection {
        self.tcp.as_mut().unwrap_or_else(|| panic!("no connection"))
    }

    fn act(&mut self, now: Instant, what: &str, mut words: Words<'_>) -> String {
        let rest: Vec<&str> = words.clone().collect();
        match what {
            "connect" => self.tcp = Some(Connection::connect(US, PEER, ISS, &self.profile)),
            "listen" => {}
            "write" => {
                let bytes: Vec<u8> = vec![b'w'; number(&mut words)];
                assert_eq!(self.tcp().write(&bytes), bytes.len());
            }
            "read" => _ = self.tcp().read(number(&mut words)),
            "finish" => self.tcp().finish(),
            "abort" => self.tcp().abort(),
            "path" => self.tcp().path_mss(number(&mut words)),
            "<" => {
                let segment = heard(words);
                match &mut self.tcp {
                    Some(tcp) => tcp.receive(now, &segment),
                    none => *none = Connection::accept(now, US, PEER, &segment, ISS, &self.profile),
                }
            }
            other => panic!("what is `{other}`?"),
        }
        rest.iter().fold(String::new(), |text, word| text + " " + word)
    }

    fn says(&mut self, now: Instant) {
        while let Some(segment) = self.tcp.as_mut().and_then(|tcp| tcp.poll(now)) {
            let time = now.0 as f64 / 1e6;
            _ = writeln!(self.out, "{time:>6} > {}", said(&segment));
        }
    }

    /// Returns the keys of a line with their actual values.
    fn look(&mut self, words: Words<'_>) -> String {
        let tcp = self.tcp();
        let (info, readable) = (tcp.info(), tcp.readable());
        let ms = |span: Duration| (span.as_micros() as f64 / 1e3).to_string();
        let mut told = String::new();
        for key in words.step_by(2) {
            let value = match key {
                "state" => info.state.name().to_owned(),
                "ended" => format!("{:?}", tcp.ended()),
                "cwnd" => info.cwnd.to_string(),
                "ssthresh" => info.ssthresh.to_string(),
                "recovering" => info.recovering.to_string(),
                "rto" => ms(info.rto),
                "srtt" => info.srtt.map_or("none".to_owned(), ms),
                "mss" => info.mss.to_string(),
                "readable" => readable.to_string(),
                other => panic!("what is `{other}`?"),
            };
            _ = write!(told, " {key} {value}");
        }
        told
    }
}

/// Parses a segment of the peer.
fn heard(mut words: Words<'_>) -> Segment<'static> {
    let bit = |flag| match flag {
        'S' => Flags::SYN,
        'F' => Flags::FIN,
        'R' => Flags::RST,
        'P' => Flags::PSH,
        '.' => Flags::ACK,
        _ => panic!("no such flag: {flag}"),
    };
    let flags = words.next().unwrap_or_default().chars().map(bit).fold(Flags::default(), Flags::with);
    let (from, end) = span(words.next().unwrap_or_default());
    let (mut ack, mut window, mut options) = (0, 60_000, Options::default());
    let mut blocks = Blocks::default();
    while let Some(word) = words.next() {
        match word {
            "ack" => ack = number(&mut words),
            "win" => window = number(&mut words),
            "mss" => options.mss = Some(number(&mut words)),
            "wscale" => options.window_scale = Some(number(&mut words)),
            "sackOK" => options.sack_permitted = true,
            "TS" => {
                let (value, echo): (u32, u32) = (number(&mut words), number(&mut words));
                options.timestamps = Some(Timestamps { value, echo: ISS.plus(echo).0 });
            }
            "sack" => {}
            block => {
                let (from, end) = span(block);
                assert!(blocks.push(ISS.plus(from), ISS.plus(end)));
            }
        }
    }
    options.sack = blocks;
    let controls = u32::from(flags.has(Flags::SYN)) + u32::from(flags.has(Flags::FIN));
    let payload = vec![b'x'; (end - from - controls) as usize].into();
    Segment {
        src_port: PEER.port(),
        dst_port: US.port(),
        seq: IRS.plus(from),
        ack: ISS.plus(ack),
        flags,
        window,
        options,
        payload,
    }
}

/// Formats a segment of this end as in the scripts.
fn said(segment: &Segment<'_>) -> String {
    let flag = |bit, name| if segment.has(bit) { name } else { "" };
    let flags = [
        flag(Flags::SYN, "S"),
        flag(Flags::FIN, "F"),
        flag(Flags::RST, "R"),
        flag(Flags::PSH, "P"),
        flag(Flags::ACK, "."),
    ];
    let from = segment.seq.since(ISS);
    let mut text = format!("{} {from}:{}", flags.concat(), from + segment.len());
    if segment.has(Flags::ACK) {
        _ = write!(text, " ack {}", segment.ack.since(IRS));
    }
    _ = write!(text, " win {}", segment.window);
    let Options { mss, window_scale, sack_permitted, timestamps, sack } = segment.options;
    _ = mss.map(|mss| write!(text, " mss {mss}"));
    _ = window_scale.map(|shift| write!(text, " wscale {shift}"));
    if sack_permitted {
        text.push_str(" sackOK");
    }
    if let Some(Timestamps { value, echo }) = timestamps {
        _ = write!(text, " TS {} {echo}", Seq(value).since(ISS));
    }
    for (number, (from, end)) in sack.as_slice().iter().enumerate() {
        let word = if number == 0 { " sack" } else { "" };
        _ = write!(text, "{word} {}:{}", from.since(IRS), end.since(IRS));
    }
    text
}

#[expect(clippy::disallowed_methods, reason = "maintainers request an update by a variable")]
fn asked(name: &str) -> bool {
    std::env::var(name).is_ok_and(|value| !value.is_empty())
}

#[test]
fn conversations_are_as_the_rfcs_tell_them() {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "packets"].iter().collect();
    let mut played = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy();
        let really = Script::play(&text);
        if asked("WAYFARE_BLESS") {
            fs::write(&path, &really).unwrap();
        } else {
            assert!(text == really, "{name}\n--- was written\n{text}\n--- was said\n{really}");
        }
        assert!(text.contains("# RFC") || text.contains("# 4.4BSD"), "{name} cites its source");
        assert!(really.contains(" > "), "{name} says something");
        played += 1;
    }
    assert!(played >= 20, "{played} scripts: the folder is not where it was");
}
