//! Conversations of the RFCs, segment by segment. Times are in milliseconds.

use tcp::{Connection, Ended, Flags, Options, Profile, Recovery, Segment, Seq, State, Timing};
use wire::{Duration, Instant, Ipv4Addr, SocketAddrV4};

const US: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 2, 0, 1), 4000);
const PEER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 1, 0, 7), 80);
/// The initial sequence number of this end. The sequence numbers of this end wrap after 1500 bytes of data.
const ISS: Seq = Seq(u32::MAX - 1500);
const IRS: Seq = Seq(u32::MAX - 3);

const fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn thousand() -> Profile {
    Profile { mss: 1000, nagle: false, ..Profile::rfc6298_reno() }
}

/// A connection under test. Sequence numbers in its scripts count from the initial ones.
struct Script {
    tcp: Connection,
    now: u64,
}

impl Script {
    /// Returns a connection that was opened actively at 0 ms, with a round trip of zero.
    fn established(profile: &Profile) -> Self {
        let mut script = Self::connecting(profile);
        script.says(&["S 0 ack 0"]);
        let options = Options { mss: Some(1000), ..Options::default() };
        let answer = Segment { options, ..script.segment("SA", 0, 1, 60_000, 0) };
        script.tcp.receive(at(0), &answer);
        script.says(&["A 1 ack 1"]);
        script
    }

    fn connecting(profile: &Profile) -> Self {
        Self { tcp: Connection::connect(US, PEER, ISS, profile), now: 0 }
    }

    fn segment(&self, flags: &str, seq: u32, ack: u32, window: u16, len: usize) -> Segment<'static> {
        let bit = |flag| match flag {
            'S' => Flags::SYN,
            'A' => Flags::ACK,
            'F' => Flags::FIN,
            'R' => Flags::RST,
            _ => panic!("no such flag"),
        };
        let flags = flags.chars().map(bit).fold(Flags::default(), Flags::with);
        let (seq, ack) = (IRS.plus(seq), ISS.plus(ack));
        let (src_port, dst_port) = (self.tcp.remote().port(), self.tcp.local().port());
        let payload = vec![b'x'; len].into();
        Segment { src_port, dst_port, seq, ack, flags, window, payload, ..Segment::default() }
    }

    /// Receives a segment of the peer, and checks our answers.
    #[track_caller]
    fn hears(&mut self, flags: &str, seq: u32, ack: u32, len: usize, answers: &[&str]) {
        let segment = self.segment(flags, seq, ack, 60_000, len);
        self.tcp.receive(at(self.now), &segment);
        self.says(answers);
    }

    #[track_caller]
    fn says(&mut self, expected: &[&str]) {
        let mut said = Vec::new();
        while let Some(segment) = self.tcp.poll(at(self.now)) {
            let flag = |bit, name| if segment.has(bit) { name } else { "" };
            let acks = segment.has(Flags::ACK);
            let ack = if acks { segment.ack.since(IRS) } else { 0 };
            let flags = [
                flag(Flags::SYN, "S"),
                flag(Flags::FIN, "F"),
                flag(Flags::RST, "R"),
                if acks && !segment.has(Flags::SYN) && segment.is_empty() && !segment.has(Flags::RST) {
                    "A"
                } else {
                    ""
                },
            ];
            let data = match segment.payload.len() {
                0 => String::new(),
                len => format!(" +{len}"),
            };
            said.push(
                format!("{} {} ack {ack}{data}", flags.concat(), segment.seq.since(ISS)).trim().to_owned(),
            );
        }
        assert_eq!(said, expected, "at {} ms", self.now);
    }

    /// Lets the next timer expire, which must be due at `until`.
    #[track_caller]
    fn waits(&mut self, until: u64, says: &[&str]) {
        assert_eq!(self.tcp.deadline(), Some(at(until)));
        self.now = until;
        self.tcp.timeout(at(until));
        self.says(says);
    }

    #[track_caller]
    fn writes(&mut self, len: usize, says: &[&str]) {
        assert_eq!(self.tcp.write(&vec![b'w'; len]), len);
        self.says(says);
    }

    #[track_caller]
    fn is(&self, state: State) {
        assert_eq!(self.tcp.state(), state);
    }
}

// --- opening and closing -----------------------------------------------------------------------------------------------

#[test]
fn the_last_segment_written_goes_whole_into_a_send_buffer_of_linux() {
    // With room for 32768 bytes, Linux 6.18 takes 23 segments of 1448 bytes into its send queue.
    let room = |whole_writes| {
        let profile =
            Profile { send_buffer: 32_768, mss: 1448, timestamps: false, whole_writes, ..Profile::linux() };
        let mut tcp = Connection::connect(US, PEER, ISS, &profile);
        // The application can write the reported number of bytes, even in pieces.
        let half = vec![7; 32_768];
        let taken = tcp.write(&half) + tcp.write(&half);
        (taken, tcp.room())
    };
    assert_eq!(room(true), (23 * 1448, 0));
    assert_eq!(room(false), (32_768, 0));
}

/// A passive end opens as in RFC 9293, section 3.5, figure 6. Windows are scaled in both directions or in neither (RFC
/// 7323, section 2.2).
#[test]
fn passive_opening_and_what_is_agreed() {
    let syn = |window_scale| Segment {
        seq: IRS,
        flags: Flags::SYN,
        window: 500,
        options: Options { mss: Some(400), window_scale, ..Options::default() },
        ..Segment::default()
    };
    for (theirs, shift) in [(Some(3), 3), (None, 0)] {
        let profile = Profile::linux_like();
        let mut tcp = Connection::accept(at(0), US, PEER, &syn(theirs), ISS, &profile).unwrap();
        let answer = tcp.poll(at(0)).unwrap();
        assert_eq!((answer.flags, answer.seq, answer.ack), (Flags(0x12), ISS, IRS.plus(1)));
        assert_eq!(answer.options.window_scale.is_some(), theirs.is_some());
        let ack = Segment { flags: Flags::ACK, seq: IRS.plus(1), ack: ISS.plus(1), window: 500, ..syn(None) };
        tcp.receive(at(30), &ack);
        assert_eq!((tcp.state(), tcp.info().mss), (State::Established, 400));
        assert_eq!((tcp.info().window, tcp.info().srtt), (500 << shift, Some(Duration::from_millis(30))));
    }
    let profile = Profile::rfc6298_reno();
    assert!(
        Connection::accept(at(0), US, PEER, &Segment { flags: Flags::ACK, ..syn(None) }, ISS, &profile)
            .is_none()
    );
}

/// Each lost SYN doubles the time-out. After the handshake, the time-out is 3 s (RFC 6298, 5.5 and 5.7), and the window
/// is one segment (RFC 5681, section 3.1).
#[test]
fn a_lost_syn_doubles_and_makes_careful() {
    let mut script = Script::connecting(&thousand());
    script.says(&["S 0 ack 0"]);
    script.waits(1000, &["S 0 ack 0"]);
    script.waits(3000, &["S 0 ack 0"]);
    script.hears("SA", 0, 1, 0, &["A 1 ack 1"]);
    let info = script.tcp.info();
    assert_eq!((info.rto.as_secs(), info.srtt, info.cwnd), (3, None, 536));
}

/// In Linux (`tcp_init_transfer`), the initial window is one segment if two SYNs were lost, but not if one was.
#[test]
fn linux_forgives_one_lost_syn() {
    for (lost, segments) in [(1, 10), (2, 1)] {
        let mut script = Script::connecting(&Profile { timing: Timing::Exact, ..Profile::linux() });
        script.says(&["S 0 ack 0"]);
        [1000, 3000].into_iter().take(lost).for_each(|until| script.waits(until, &["S 0 ack 0"]));
        script.hears("SA", 0, 1, 0, &["A 1 ack 1"]);
        assert_eq!((script.tcp.info().srtt, script.tcp.info().cwnd), (None, segments * 536));
    }
}

/// If both ends open at the same time, they connect as in RFC 9293, section 3.5, figure 7.
#[test]
fn simultaneous_opening() {
    let mut script = Script::connecting(&thousand());
    script.says(&["S 0 ack 0"]);
    script.hears("S", 0, 0, 0, &["S 0 ack 1"]);
    script.is(State::SynReceived);
    script.hears("SA", 0, 1, 0, &["A 1 ack 1"]);
    script.is(State::Established);
}

/// An end that finishes first closes as in RFC 9293, section 3.6, figure 12.
#[test]
fn we_finish_first() {
    let mut script = Script::established(&thousand());
    script.tcp.write(b"bye");
    script.tcp.finish();
    script.says(&["F 1 ack 1 +3"]);
    script.is(State::FinWait1);
    script.hears("A", 1, 5, 0, &[]);
    script.is(State::FinWait2);
    script.hears("A", 1, 5, 10, &[]);
    script.hears("FA", 11, 5, 0, &["A 5 ack 12"]);
    script.is(State::TimeWait);
    script.hears("FA", 11, 5, 0, &["A 5 ack 12"]);
    script.waits(240_000, &[]);
    assert_eq!((script.tcp.ended(), script.tcp.readable()), (Some(Ended::Finished), 10));
}

#[test]
fn the_peer_finishes_first() {
    let mut script = Script::established(&thousand());
    script.hears("FA", 1, 1, 5, &["A 1 ack 7"]);
    script.is(State::CloseWait);
    assert_eq!((script.tcp.at_end(), script.tcp.read(9).len(), script.tcp.at_end()), (false, 5, true));
    script.writes(4, &["1 ack 7 +4"]);
    script.tcp.finish();
    script.says(&["F 5 ack 7"]);
    script.is(State::LastAck);
    script.waits(1000, &["F 1 ack 7 +4"]);
    script.hears("A", 7, 6, 0, &[]);
    assert_eq!((script.tcp.state(), script.tcp.ended()), (State::Closed, Some(Ended::Finished)));
}

/// If both ends finish at the same time, they close as in RFC 9293, section 3.6, figure 13.
#[test]
fn simultaneous_close() {
    let mut script = Script::established(&thousand());
    script.tcp.finish();
    script.says(&["F 1 ack 1"]);
    script.hears("FA", 1, 1, 0, &["A 2 ack 2"]);
    script.is(State::Closing);
    script.hears("A", 2, 2, 0, &[]);
    script.is(State::TimeWait);
}

/// Only a reset with exactly the expected number ends a connection (RFC 9293, section 3.10.7.4; RFC 5961, sections 3 to
/// 5).
#[test]
fn only_what_fits_exactly_resets() {
    let mut script = Script::established(&thousand());
    script.hears("R", 0, 0, 0, &[]);
    script.hears("R", 100_000, 0, 0, &[]);
    script.hears("R", 2, 0, 0, &["A 1 ack 1"]);
    script.hears("SA", 1, 1, 0, &["A 1 ack 1"]);
    script.hears("A", 1, 2, 0, &["A 1 ack 1"]);
    script.is(State::Established);
    script.hears("R", 1, 0, 0, &[]);
    assert_eq!((script.tcp.ended(), script.tcp.deadline()), (Some(Ended::Reset), None));

    let mut script = Script::connecting(&thousand());
    script.says(&["S 0 ack 0"]);
    script.hears("A", 9, 7, 0, &["R 7 ack 0"]);
    script.hears("RA", 0, 7, 0, &[]);
    script.is(State::SynSent);
    script.hears("RA", 0, 1, 0, &[]);
    assert_eq!(script.tcp.ended(), Some(Ended::Refused));
}

#[test]
fn aborting_tells_the_peer() {
    let mut script = Script::established(&thousand());
    script.writes(10, &["1 ack 1 +10"]);
    script.tcp.abort();
    script.says(&["R 11 ack 1"]);
    assert_eq!((script.tcp.ended(), script.tcp.write(b"x")), (Some(Ended::Aborted), 0));
}

// --- loss --------------------------------------------------------------------------------------------------------------

/// If one of seven segments is lost, the third duplicate acknowledgment resends it at once (RFC 5681, section 3.2).
#[test]
fn the_third_duplicate_sends_again_at_once() {
    let mut script = Script::established(&Profile { initial_window: 7, ..thousand() });
    let all = [1, 1001, 2001, 3001, 4001, 5001, 6001].map(|seq| format!("{seq} ack 1 +1000"));
    script.writes(7000, &all.each_ref().map(String::as_str));
    script.now = 100;
    script.hears("A", 1, 1, 0, &[]);
    script.hears("A", 1, 1, 0, &[]);
    script.hears("A", 1, 1, 0, &["1 ack 1 +1000"]);
    let info = script.tcp.info();
    assert_eq!((info.ssthresh, info.cwnd, info.recovering), (3500, 6500, true));
    script.hears("A", 1, 1, 0, &[]);
    script.hears("A", 1, 1, 0, &[]);
    script.hears("A", 1, 1, 0, &[]);
    script.hears("A", 1, 7001, 0, &[]);
    let info = script.tcp.info();
    assert_eq!((info.cwnd, info.recovering, info.retransmissions, info.timeouts), (3500, false, 1, 0));
    assert_eq!(info.srtt, Some(Duration::ZERO), "Karn: the handshake's, and none of what was sent twice");
}

/// If two of six segments are lost, a partial acknowledgment resends the second one (RFC 6582, section 3.2). Reno would
/// wait for its timer.
#[test]
fn a_partial_acknowledgment_sends_the_next_hole() {
    for (recovery, answer) in [(Recovery::NewReno, &["3001 ack 1 +1000"][..]), (Recovery::Reno, &[])] {
        let mut script = Script::established(&Profile { initial_window: 6, recovery, ..thousand() });
        let all = [1, 1001, 2001, 3001, 4001, 5001].map(|seq| format!("{seq} ack 1 +1000"));
        script.writes(6000, &all.each_ref().map(String::as_str));
        script.hears("A", 1, 1, 0, &[]);
        script.hears("A", 1, 1, 0, &[]);
        script.hears("A", 1, 1, 0, &["1 ack 1 +1000"]);
        script.hears("A", 1, 3001, 0, answer);
        assert_eq!(script.tcp.info().recovering, recovery == Recovery::NewReno);
    }
}

/// Each time-out doubles the next one (RFC 6298, 5.4 to 5.6). Data that was sent twice gives no sample, and the doubled
/// time-out stays until there is a sample (Karn's algorithm).
#[test]
fn timeouts_double_and_karn_holds() {
    let mut script = Script::established(&thousand());
    script.writes(2000, &["1 ack 1 +1000", "1001 ack 1 +1000"]);
    script.waits(1000, &["1 ack 1 +1000"]);
    assert_eq!((script.tcp.info().cwnd, script.tcp.info().ssthresh), (1000, 2000));
    script.waits(3000, &["1 ack 1 +1000"]);
    script.waits(7000, &["1 ack 1 +1000"]);
    assert_eq!(script.tcp.info().rto.as_secs(), 8);
    script.now = 7100;
    let before = script.tcp.info().srtt;
    script.hears("A", 1, 2001, 0, &[]);
    assert_eq!((script.tcp.info().srtt, script.tcp.info().rto.as_secs()), (before, 8));
    assert_eq!((script.tcp.info().retransmissions, script.tcp.info().timeouts), (3, 3));
    script.writes(10, &["2001 ack 1 +10"]);
    script.now = 7200;
    script.hears("A", 1, 2011, 0, &[]);
    assert_eq!(script.tcp.info().rto.as_secs(), 1);
    assert_eq!(script.tcp.deadline(), None);
}

#[test]
fn silence_ends_it() {
    let mut script = Script::established(&Profile { max_retransmissions: 2, ..thousand() });
    script.writes(10, &["1 ack 1 +10"]);
    script.waits(1000, &["1 ack 1 +10"]);
    script.waits(3000, &["1 ack 1 +10"]);
    script.waits(7000, &[]);
    assert_eq!(script.tcp.ended(), Some(Ended::TimedOut));
}

// --- acknowledgments and windows ---------------------------------------------------------------------------------------

/// Every second segment is acknowledged at once, and so is a segment beyond a gap or in a gap (RFC 5681, section 4.2).
#[test]
fn every_second_segment_is_acknowledged_and_gaps_at_once() {
    let mut script = Script::established(&thousand());
    script.hears("A", 1, 1, 1000, &[]);
    script.hears("A", 1001, 1, 1000, &["A 1 ack 2001"]);
    script.now = 10;
    script.hears("A", 2001, 1, 1000, &[]);
    script.waits(210, &["A 1 ack 3001"]);
    script.hears("A", 4001, 1, 1000, &["A 1 ack 3001"]);
    script.hears("A", 5001, 1, 1000, &["A 1 ack 3001"]);
    script.hears("A", 3001, 1, 1000, &["A 1 ack 6001"]);
    script.hears("A", 3001, 1, 1000, &["A 1 ack 6001"]);
    script.hears("A", 6001, 1, 1000, &[]);
    script.writes(5, &["1 ack 7001 +5"]);
    assert_eq!(script.tcp.readable(), 7000);

    let mut eager = Script::established(&Profile { quick_acks: 1, ..thousand() });
    eager.hears("A", 1, 1, 1000, &["A 1 ack 1001"]);
    eager.hears("A", 1001, 1, 1000, &[]);
    let mut plain = Script::established(&Profile { delayed_ack: None, ..thousand() });
    plain.hears("A", 1, 1, 1000, &["A 1 ack 1001"]);
    plain.hears("A", 1001, 1, 1000, &["A 1 ack 2001"]);
}

/// The time between probes of a closed window doubles, and answered probes do not end the connection (RFC 9293, section
/// 3.8.6.1).
#[test]
fn a_closed_window_is_probed_ever_more_seldom() {
    let mut script = Script::established(&Profile { max_retransmissions: 2, ..thousand() });
    let closed = script.segment("A", 1, 1, 0, 0);
    script.tcp.receive(at(0), &closed);
    script.writes(1500, &[]);
    for until in [1000, 3000, 7000, 15_000] {
        script.waits(until, &["1 ack 1 +1"]);
        script.tcp.receive(at(until), &closed);
        script.says(&[]);
    }
    assert_eq!((script.tcp.info().timeouts, script.tcp.info().cwnd), (0, 3000));
    script.hears("A", 1, 2, 0, &["2 ack 1 +1000", "1002 ack 1 +499"]);
    script.hears("A", 1, 1501, 0, &[]);
    assert_eq!(script.tcp.deadline(), None);
}

/// The window opens by sufficient steps, and never moves back (RFC 9293, section 3.8.6.2.2).
#[test]
fn our_window_closes_and_opens() {
    let mut script = Script::established(&Profile { receive_buffer: 3000, ..thousand() });
    script.hears("A", 1, 1, 1000, &[]);
    script.hears("A", 1001, 1, 1000, &["A 1 ack 2001"]);
    script.hears("A", 2001, 1, 1500, &[]);
    script.waits(200, &["A 1 ack 3001"]);
    script.hears("A", 3001, 1, 1, &["A 1 ack 3001"]);
    assert_eq!(script.tcp.read(100).len(), 100);
    script.says(&[]);
    assert_eq!(script.tcp.read(900).len(), 900);
    let update = script.tcp.poll(at(200)).unwrap();
    assert_eq!((update.window, update.ack), (1000, IRS.plus(3001)));
    script.hears("A", 3001, 1, 1000, &[]);
    assert_eq!(script.tcp.readable(), 3000);
}

/// Small writes wait for an acknowledgment (RFC 9293, section 3.7.4). After an idle time, the window is the initial one
/// (RFC 5681, section 4.1).
#[test]
fn small_writes_wait_and_idleness_is_forgotten() {
    let mut script = Script::established(&Profile { nagle: true, ..thousand() });
    script.writes(10, &["1 ack 1 +10"]);
    script.writes(10, &[]);
    script.hears("A", 1, 11, 0, &["11 ack 1 +10"]);
    script.hears("A", 1, 21, 0, &[]);
    assert_eq!(script.tcp.info().cwnd, 3020);
    script.now = 5000;
    script.writes(10, &["21 ack 1 +10"]);
    assert_eq!(script.tcp.info().cwnd, 3000);
}
