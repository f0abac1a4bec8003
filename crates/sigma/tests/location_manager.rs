//! Tests of the location manager's answers to valid messages, and to messages of an attacker.

use auth::Key;
use node::{
    Act, Boot, Effect, FailedAct, Fault, Input, Outbox, Role, RoleId, StreamEvent, StreamId, StreamOp, Value,
};
use sigma::LocationManager;
use sigma::message::{
    Failure, Header, Message, Name, Question, Rcode, Received, ResourceRecord, TsigKey, class, kind, opcode,
};
use wire::{Duration, Instant, Ipv4Addr, WallTime};

const CONFIG: &str = r#"
    address = "10.1.0.2"
    zone = "sigma.example"
    lifetime = "60s"
    updates = 3
    answers = 20
    mobile_nodes = [
        { name = "mn.sigma.example", key = "000102030405060708090a0b0c0d0e0f" },
        { name = "10.1.8.5.home.sigma.example", key = "0f0e0d0c0b0a09080706050403020100" },
    ]
"#;
const WALL: u64 = 946_684_800;
const OLD: Ipv4Addr = Ipv4Addr::new(10, 1, 8, 100);
const NEW: Ipv4Addr = Ipv4Addr::new(10, 1, 6, 100);

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn key() -> TsigKey {
    TsigKey { name: name("mn.sigma.example"), secret: Key::new((0..16).collect::<Vec<u8>>()) }
}

fn forged() -> TsigKey {
    TsigKey { secret: Key::new([1; 16]), ..key() }
}

fn update(address: Ipv4Addr) -> Vec<u8> {
    let header = Header { id: 7, opcode: opcode::UPDATE, ..Header::default() };
    let zone = Question { name: name("sigma.example"), kind: kind::SOA, class: class::IN };
    let (own, gone) = (name("mn.sigma.example"), class::ANY);
    let gone = ResourceRecord { name: own.clone(), kind: kind::A, class: gone, ttl: 0, data: Vec::new() };
    let authority = vec![gone, ResourceRecord::address(own, 0, address)];
    Message { header, questions: vec![zone], authority, ..Message::default() }.emit()
}

fn query(of: &str, kind: u16) -> Vec<u8> {
    let question = Question { name: name(of), kind, class: class::IN };
    Message { questions: vec![question], ..Message::default() }.emit()
}

/// A location manager, and the last record that it asked to store.
struct Stage {
    role: LocationManager,
    now: Instant,
    streams: u32,
    stored: Option<(Vec<u8>, Vec<u8>)>,
    /// Whether records stay pending until the test calls [`Stage::decide`].
    slow: bool,
}

impl Stage {
    fn new() -> Self {
        Self::with(&Boot::new(WallTime(WALL.cast_signed() * 1_000_000_000)))
    }

    fn with(boot: &Boot) -> Self {
        let role = LocationManager::new(toml::from_str(CONFIG).unwrap()).unwrap();
        let mut stage = Self { role, now: Instant::ZERO, streams: 0, stored: None, slow: false };
        let asked = stage.give(Input::Start(boot));
        assert!(matches!(asked[..], [Effect::Stream(StreamId(0), StreamOp::Listen { .. })]), "{asked:?}");
        stage
    }

    fn give(&mut self, input: Input<'_>) -> Vec<Effect> {
        let mut out = Outbox::default();
        self.role.handle(self.now, input, &mut out);
        out.drain_effects().collect()
    }

    /// Delivers a message from 10.1.8.100 on a separate stream. If it causes a record, reports that the record is
    /// durable, unless `slow`. Returns the effects of the message and of this report.
    fn send(&mut self, bytes: &[u8]) -> Vec<Effect> {
        self.send_from(Ipv4Addr::new(10, 1, 8, 100), bytes)
    }

    fn send_from(&mut self, source: Ipv4Addr, bytes: &[u8]) -> Vec<Effect> {
        let id = StreamId(StreamId::DRIVER + self.streams);
        self.streams += 1;
        let (here, there) = ("10.1.0.2:53".parse().unwrap(), node::Addr::new(source, 5000));
        let read = self.give(Input::Stream(StreamId(0), StreamEvent::Accepted(id, here, there)));
        assert!(matches!(read[..], [Effect::Stream(of, StreamOp::Read(_))] if of == id));
        let effects = self.give(Input::Stream(id, StreamEvent::Data(bytes)));
        for effect in &effects {
            if let Effect::Do(Act::Store(key, Some(value))) = effect {
                self.stored = Some((key.clone(), value.clone()));
            }
        }
        let is_stored = matches!(effects[..], [Effect::Do(Act::Store(..))]);
        if is_stored && self.slow {
            return effects;
        }
        let effects = if is_stored { [effects, self.decide(true)].concat() } else { effects };
        let ended = matches!(effects.last(), Some(Effect::Stream(of, StreamOp::Finish)) if *of == id);
        assert!(ended, "{effects:?}");
        effects
    }

    /// Reports that the oldest pending record of the mobile node is durable, or that it could not be stored. Returns
    /// the effects.
    fn decide(&mut self, durable: bool) -> Vec<Effect> {
        let key = self.stored.clone().unwrap().0;
        if durable {
            return self.give(Input::Stored(&key));
        }
        let fault = Fault { role: RoleId(0), act: FailedAct::Store(key), why: "no space".to_owned() };
        self.give(Input::Failed(&fault))
    }

    fn answer(&mut self, bytes: &[u8]) -> Option<Received> {
        written(&self.send(bytes))
    }

    fn rcode(&mut self, bytes: &[u8]) -> Rcode {
        Rcode::of(self.answer(bytes).unwrap().message.header.rcode).unwrap()
    }

    /// Queries the mobile node's addresses, and returns them.
    fn place(&mut self) -> Vec<Ipv4Addr> {
        let answer = self.answer(&query("mn.sigma.example", kind::A)).unwrap();
        answer.message.answers.iter().filter_map(ResourceRecord::as_address).collect()
    }

    fn seconds(&self) -> u64 {
        WALL + self.now.0 / 1_000_000_000
    }

    fn signed(&self, bytes: &[u8]) -> Vec<u8> {
        key().sign(bytes, None, self.seconds()).0
    }

    fn pass(&mut self, span: Duration) {
        self.now += span;
    }
}

fn written(effects: &[Effect]) -> Option<Received> {
    effects.iter().find_map(|effect| match effect {
        Effect::Stream(_, StreamOp::Write(bytes)) => Some(Received::parse(bytes).unwrap()),
        _ => None,
    })
}

#[test]
fn an_update_is_stored_before_it_is_answered_and_then_told_to_whoever_asks() {
    let mut stage = Stage::new();
    let update = stage.signed(&update(OLD));
    let effects = stage.send(&update);
    let at = |wanted: fn(&Effect) -> bool| effects.iter().position(wanted).unwrap();
    let store = at(|effect| matches!(effect, Effect::Do(Act::Store(..))));
    assert!(store < at(|effect| matches!(effect, Effect::Stream(_, StreamOp::Write(_)))), "{effects:?}");
    let answer = written(&effects).unwrap();
    let sent = Received::parse(&update).unwrap().signed.unwrap();
    assert_eq!(answer.message.header.rcode, 0);
    assert_eq!(answer.signed.unwrap().verify(&key(), Some(&sent.tsig.mac), WALL), Ok(()));
    assert_eq!(stage.place(), [OLD]);
    stage.pass(Duration::from_secs(1));
    let moved = stage.signed(&self::update(NEW));
    assert_eq!(stage.rcode(&moved), Rcode::NoError);
    assert_eq!(stage.place(), [NEW]);
}

#[test]
fn what_nobody_knows_is_denied_with_how_long_that_holds() {
    let mut stage = Stage::new();
    let absent = stage.answer(&query("mn.sigma.example", kind::A)).unwrap().message;
    assert_eq!(Rcode::of(absent.header.rcode), Some(Rcode::NxDomain));
    assert!(absent.header.authoritative && absent.authority[0].kind == kind::SOA);
    assert_eq!(stage.rcode(&query("elsewhere.example", kind::A)), Rcode::Refused);
    assert_eq!(stage.rcode(&query("sigma.example", kind::ANY)), Rcode::Refused);
    let zone = stage.answer(&query("sigma.example", kind::SOA)).unwrap().message;
    assert_eq!((zone.header.rcode, zone.answers.len()), (0, 1));
    let update = stage.signed(&update(OLD));
    stage.send(&update);
    let other = stage.answer(&query("mn.sigma.example", 28)).unwrap().message;
    assert_eq!(
        (other.header.rcode, other.answers.len(), other.authority.len()),
        (0, 0, 1),
        "no such records"
    );
}

#[test]
fn nobody_else_moves_a_mobile_node() {
    let mut stage = Stage::new();
    assert_eq!(stage.rcode(&update(OLD)), Rcode::Refused, "unsigned");
    let answer = stage.answer(&forged().sign(&update(OLD), None, WALL).0).unwrap();
    assert_eq!(Rcode::of(answer.message.header.rcode), Some(Rcode::NotAuth));
    let said = answer.signed.unwrap().tsig;
    assert_eq!((said.error, said.mac.len()), (Failure::BadSig as u16, 0));
    let stranger = TsigKey { name: name("x.sigma.example"), ..key() };
    let answer = stage.answer(&stranger.sign(&update(OLD), None, WALL).0).unwrap();
    assert_eq!(answer.signed.unwrap().tsig.error, Failure::BadKey as u16);
    let other = TsigKey {
        name: name("10.1.8.5.home.sigma.example"),
        secret: Key::new((0..16).rev().collect::<Vec<u8>>()),
    };
    assert_eq!(stage.rcode(&other.sign(&update(OLD), None, WALL).0), Rcode::Refused, "another's name");
    assert!(stage.place().is_empty() && stage.stored.is_none());
}

#[test]
fn what_is_played_back_changes_nothing() {
    let mut stage = Stage::new();
    let (first, second) = (stage.signed(&update(OLD)), stage.signed(&update(NEW)));
    stage.send(&first);
    stage.send(&second);
    assert_eq!(stage.place(), [NEW]);
    // In the same second, the location manager recognizes the repeated update by its MAC, and answers NOERROR.
    let effects = stage.send(&first);
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Do(_))), "{effects:?}");
    assert_eq!(written(&effects).unwrap().message.header.rcode, 0);
    stage.pass(Duration::from_secs(2));
    let third = stage.signed(&update(OLD));
    stage.send(&third);
    // After a later update, an earlier signing time is refused, although it is within the fudge.
    let answer = stage.answer(&second).unwrap();
    let said = answer.signed.unwrap().tsig;
    assert_eq!((said.error, said.server_time()), (Failure::BadTime as u16, Some(WALL + 2)));
    assert_eq!(stage.place(), [OLD]);
}

#[test]
fn an_end_does_not_let_an_old_update_come_back_nor_does_a_restart() {
    let mut stage = Stage::new();
    let old = stage.signed(&update(OLD));
    stage.send(&old);
    stage.pass(Duration::from_secs(61));
    assert_eq!(stage.role.deadline(), Some(Instant::from_millis(60_000)));
    let effects = stage.give(Input::Timeout);
    let lapsed =
        effects.iter().any(|it| matches!(it, Effect::Do(Act::Mark(mark)) if mark.name == "location_lapsed"));
    assert!(lapsed && stage.place().is_empty());
    assert!(stage.decide(true).is_empty(), "no reply waits for that");
    assert_eq!(stage.rcode(&old), Rcode::NoError, "a repetition");
    assert!(stage.place().is_empty(), "and nothing more");
    let second = stage.signed(&update(NEW));
    stage.send(&second);
    let mut boot = Boot::new(WallTime((WALL + 70).cast_signed() * 1_000_000_000));
    boot.stored.extend(stage.stored.clone());
    let mut again = Stage::with(&boot);
    assert_eq!(again.place(), [NEW]);
    assert_eq!(again.answer(&old).unwrap().signed.unwrap().tsig.error, Failure::BadTime as u16);
}

#[test]
fn what_cannot_be_stored_did_not_happen_and_its_sender_hears_so() {
    let mut stage = Stage::new();
    let first = stage.signed(&update(OLD));
    stage.send(&first);
    stage.slow = true;
    let second = stage.signed(&update(NEW));
    stage.send(&second);
    assert_eq!(stage.place(), [OLD], "no answer before that is known");
    let effects = stage.decide(false);
    assert_eq!(Rcode::of(written(&effects).unwrap().message.header.rcode), Some(Rcode::ServFail));
    stage.slow = false;
    assert_eq!(stage.place(), [OLD]);
    assert_eq!(stage.rcode(&second), Rcode::NoError);
    assert_eq!(stage.place(), [NEW], "it may be tried again");
}

#[test]
fn updates_under_way_build_on_each_other_and_are_answered_one_by_one() {
    const LAST: Ipv4Addr = Ipv4Addr::new(10, 1, 4, 100);
    let mut stage = Stage::new();
    let updates = [OLD, NEW, LAST].map(|address| stage.signed(&update(address)));
    stage.slow = true;
    for update in &updates {
        assert!(written(&stage.send(update)).is_none());
    }
    let codes = |stage: &Stage| stage.stored.as_ref().unwrap().1.len();
    let rcode = |effects: &[Effect]| written(effects).unwrap().message.header.rcode;
    let longest = codes(&stage);
    assert!(stage.place().is_empty());
    assert_eq!(rcode(&stage.decide(true)), 0);
    assert_eq!(stage.place(), [OLD]);
    assert_eq!(rcode(&stage.decide(true)), 0);
    assert_eq!(stage.place(), [NEW]);
    assert_eq!(Rcode::of(rcode(&stage.decide(false))), Some(Rcode::ServFail));
    assert_eq!(stage.place(), [NEW], "only the last is taken back");
    assert!(stage.decide(true).is_empty(), "there is no more");
    // The last record contains the MACs of the updates before it, which were not durable yet.
    let mut again = Stage::new();
    for update in &updates {
        assert_eq!(again.rcode(update), Rcode::NoError);
    }
    assert_eq!((again.place(), codes(&again)), (vec![LAST], longest));
}

#[test]
fn a_repetition_of_what_is_under_way_is_not_answered_before_it() {
    let mut stage = Stage::new();
    stage.slow = true;
    let update = stage.signed(&update(OLD));
    stage.send(&update);
    let again = stage.send(&update);
    assert!(written(&again).is_none() && !again.iter().any(|it| matches!(it, Effect::Do(_))), "{again:?}");
    assert_eq!(written(&stage.decide(true)).unwrap().message.header.rcode, 0);
    assert_eq!(written(&stage.send(&update)).unwrap().message.header.rcode, 0);
}

/// An update that was signed before a pending update must be refused with BADTIME, although the pending update is not
/// in effect yet (RFC 8945, section 5.2.3). Otherwise the older update would replace the newer one.
#[test]
fn an_update_that_was_signed_before_the_one_under_way_is_not_in_time() {
    let mut stage = Stage::new();
    let early = stage.signed(&update(OLD));
    stage.pass(Duration::from_secs(2));
    stage.slow = true;
    let late = stage.signed(&update(NEW));
    stage.send(&late);
    let answer = stage.answer(&early).unwrap();
    assert_eq!(Rcode::of(answer.message.header.rcode), Some(Rcode::NotAuth));
    assert_eq!(answer.signed.unwrap().tsig.error, Failure::BadTime as u16);
    stage.decide(true);
    assert_eq!(stage.place(), [NEW]);
}

#[test]
fn an_update_under_way_outlives_the_lapse_of_the_one_before() {
    let mut stage = Stage::new();
    let first = stage.signed(&update(OLD));
    stage.send(&first);
    stage.pass(Duration::from_mins(1));
    stage.slow = true;
    let second = stage.signed(&update(NEW));
    stage.send(&second);
    let effects = stage.give(Input::Timeout);
    assert!(!effects.iter().any(|it| matches!(it, Effect::Do(Act::Store(..)))), "its record is the last");
    assert!(stage.place().is_empty());
    stage.decide(true);
    assert_eq!(stage.place(), [NEW]);
}

#[test]
fn who_says_too_much_is_refused_and_then_not_answered() {
    let mut stage = Stage::new();
    for last in 1..=4 {
        let update = stage.signed(&update(Ipv4Addr::new(10, 1, 0, last)));
        let expected = if last <= 3 { Rcode::NoError } else { Rcode::Refused };
        assert_eq!(stage.rcode(&update), expected, "{last}");
    }
    let answered = (0..30).filter(|_| stage.answer(&query("mn.sigma.example", kind::A)).is_some()).count();
    assert_eq!(answered, 20, "updates have a separate rate limit");
    stage.pass(Duration::from_secs(1));
    assert!(stage.answer(&query("mn.sigma.example", kind::A)).is_some());
    let answers = stage.role.status();
    let dropped = answers.get("answers").and_then(|answers| answers.get("too many messages in this second"));
    assert_eq!(dropped, Some(&Value::Int(10)));
}

#[test]
fn what_cannot_be_read_is_answered_only_if_it_asks() {
    let mut stage = Stage::new();
    assert!(stage.answer(b"").is_none() && stage.answer(b"\0\0\0").is_none());
    assert_eq!(stage.rcode(b"\0\x07\0\0"), Rcode::FormErr);
    assert!(stage.answer(b"\0\x07\x80\0").is_none(), "an answer to nothing");
    let header = Header { opcode: 4, ..Header::default() };
    assert_eq!(stage.rcode(&Message { header, ..Message::default() }.emit()), Rcode::NotImp);
    // With one address, the answer is only 16 bytes longer than the query. So an attacker with a forged source address
    // gains at most 16 bytes for each query.
    let update = stage.signed(&update(OLD));
    stage.send(&update);
    let asked = query("mn.sigma.example", kind::A);
    let answered = stage.answer(&asked).unwrap().message.emit();
    assert_eq!(answered.len(), asked.len() + 16);
}

/// Sends messages of a host without the key within one second: `same` messages from the mobile node's address, and
/// `others` messages from other addresses. Then the mobile node's update must be accepted, and its query must be
/// answered.
#[track_caller]
fn flooded(same: u32, others: u32, bytes: &dyn Fn(&Stage, u32) -> Vec<u8>) {
    let mut stage = Stage::new();
    let first = stage.signed(&update(OLD));
    assert_eq!(stage.rcode(&first), Rcode::NoError);
    for number in 0..same.max(others) {
        let bytes = bytes(&stage, number);
        if number < same {
            stage.send(&bytes);
        }
        if number < others {
            stage.send_from(Ipv4Addr::from_bits(0x0a64_0000 + number), &bytes);
        }
    }
    let signed = stage.signed(&update(NEW));
    assert_eq!(stage.rcode(&signed), Rcode::NoError);
    let question = stage.signed(&query("mn.sigma.example", kind::A));
    assert_eq!(stage.answer(&question).unwrap().message.answers.len(), 1);
}

#[test]
fn a_flood_does_not_stop_who_signs() {
    let short = |_: &Stage, _| b"xx".to_vec();
    let question = |_: &Stage, _| query("mn.sigma.example", kind::A);
    let unsigned = |_: &Stage, _| update(NEW);
    let bad = |stage: &Stage, _| forged().sign(&update(NEW), None, stage.seconds()).0;
    flooded(200, 0, &short);
    flooded(0, 5000, &short);
    for message in [&question as &dyn Fn(&Stage, u32) -> Vec<u8>, &unsigned, &bad] {
        flooded(200, 0, message);
        flooded(0, 9000, message);
        flooded(1500, 25_000, message);
    }
}

/// If another host repeats signed messages from its address, the location manager must not take this address for that
/// of the mobile node. So in a flood of forged messages, signatures from the mobile node's address must still be
/// verified.
#[test]
fn a_repetition_from_elsewhere_does_not_stop_who_signs() {
    let mut stage = Stage::new();
    let elsewhere = Ipv4Addr::from_bits(0x0a63_0001);
    let first = stage.signed(&update(OLD));
    assert_eq!(stage.rcode(&first), Rcode::NoError);
    let question = stage.signed(&query("mn.sigma.example", kind::A));
    for repeated in [&first, &question] {
        stage.send_from(elsewhere, repeated);
    }
    let bad = forged().sign(&update(NEW), None, stage.seconds()).0;
    for number in 0..25_000 {
        stage.send_from(Ipv4Addr::from_bits(0x0a64_0000 + number), &bad);
    }
    let next = stage.signed(&update(NEW));
    assert_eq!(stage.rcode(&next), Rcode::NoError);
}

/// Repetitions of an update must not use up the mobile node's rate of updates.
#[test]
fn repetitions_do_not_stop_a_mobile_node() {
    let mut stage = Stage::new();
    let first = stage.signed(&update(OLD));
    let answered = (0..100).filter(|_| stage.answer(&first).is_some()).count();
    assert_eq!(answered, 21, "the first, and what a host is answered in a second");
    let next = stage.signed(&update(NEW));
    assert_eq!(stage.rcode(&next), Rcode::NoError);
}

/// Messages that are too short for a header must not count against the rate of their source address. If there are too
/// many hosts to count separately, a further host must still be answered.
#[test]
fn hosts_that_ask_are_answered_beside_a_flood() {
    let mut stage = Stage::new();
    for _ in 0..200 {
        stage.send(b"xx");
    }
    assert!(stage.answer(&query("mn.sigma.example", kind::A)).is_some());
    for number in 0..5000 {
        stage.send_from(Ipv4Addr::from_bits(0x0a64_0000 + number), &query("mn.sigma.example", kind::A));
    }
    let newcomer = stage.send_from(Ipv4Addr::new(10, 9, 9, 9), &query("mn.sigma.example", kind::A));
    assert!(written(&newcomer).is_some());
}

/// Sends updates of a mobile node that corrects its clock after each BADTIME answer. Returns the number of corrections
/// before an update was accepted; `None` if the update was refused for another reason, or after 3 corrections.
fn moves(stage: &mut Stage, to: Ipv4Addr, mut time: u64) -> Option<u32> {
    for told in 0..4 {
        let answer = stage.answer(&key().sign(&update(to), None, time).0).unwrap();
        let tsig = answer.signed.unwrap().tsig;
        if answer.message.header.rcode == 0 {
            return Some(told);
        }
        time = tsig.server_time()?;
    }
    None
}

fn wall(seconds: i64) -> WallTime {
    WallTime((WALL.cast_signed() + seconds) * 1_000_000_000)
}

/// If the location manager's wall clock was set back, an update with a later signing time must still be accepted. The
/// clock for signatures is not set back, and BADTIME never gives an earlier time than that of the last accepted update.
#[test]
fn a_clock_that_is_set_back_does_not_lock_a_mobile_node_out() {
    const YEARS: i64 = 10 * 365 * 86_400;
    let mut stage = Stage::new();
    for (step, signs, told) in [(0, 0, 0), (-3600, -3600, 1), (YEARS, 0, 1), (0, 0, 1), (YEARS, YEARS, 0)] {
        stage.pass(Duration::from_secs(2));
        stage.give(Input::Wall(wall(step)));
        let time = stage.seconds().checked_add_signed(signs).unwrap();
        assert_eq!(moves(&mut stage, OLD, time), Some(told), "{step} {signs}");
    }
    assert_eq!(stage.place(), [OLD]);
    // The same mobile node is accepted after a restart with a correct wall clock.
    let mut boot = Boot::new(wall(100));
    boot.stored.extend(stage.stored.clone());
    let mut again = Stage::with(&boot);
    assert_eq!(again.role.deadline(), Some(Instant::from_millis(60_000)), "what is stored lasts no longer");
    let time = again.seconds() + 100;
    assert_eq!(moves(&mut again, NEW, time), Some(1));
    assert_eq!(again.place(), [NEW]);
}

/// If a mobile node corrects a clock that was ahead by less than the fudge, its next signing time is before the last
/// accepted signing time. The BADTIME answer must then give a time that the location manager accepts.
#[test]
fn a_mobile_node_whose_clock_was_ahead_is_told_a_time_that_is_accepted() {
    let mut stage = Stage::new();
    assert_eq!(moves(&mut stage, OLD, WALL + 250), Some(0));
    stage.pass(Duration::from_secs(2));
    assert_eq!(moves(&mut stage, NEW, WALL + 2), Some(1));
}

/// After each of three starts of the location manager, a mobile node signs with a time that is 299 s, 1 s less than the
/// fudge, ahead of the location manager's clock for its signatures. The clock for the signatures of other mobile nodes
/// must not change.
#[test]
fn after_a_restart_a_mobile_node_is_compared_with_its_own_signatures_only() {
    const OTHER: &str = "10.1.8.5.home.sigma.example";
    let other = TsigKey { name: name(OTHER), secret: Key::new((0..16).rev().collect::<Vec<u8>>()) };
    let (mut boot, mut time) = (Boot::new(wall(0)), WALL);
    for _ in 0..3 {
        let mut stage = Stage::with(&boot);
        time += 299;
        assert_eq!(moves(&mut stage, OLD, time), Some(0), "its own clock continues");
        boot.stored.extend(stage.stored.clone());
    }
    let mut stage = Stage::with(&boot);
    for (signed, failure) in [(WALL - 300, None), (WALL + 300, None), (WALL + 301, Some(Failure::BadTime))] {
        let answer = stage.answer(&other.sign(&query(OTHER, kind::A), None, signed).0).unwrap();
        let expected = failure.map_or(0, |failure| failure as u16);
        assert_eq!(answer.signed.unwrap().tsig.error, expected, "{signed}");
    }
    assert_eq!(moves(&mut stage, NEW, time), Some(0));
    assert_eq!(moves(&mut stage, OLD, WALL), Some(1), "it may not go back");
}

/// For each signing time, at most 16 updates must be accepted, because the location manager remembers 16 MACs to
/// recognize repetitions. The time of arrival does not matter.
#[test]
fn no_update_is_taken_whose_repetition_would_not_be_known() {
    let mut stage = Stage::new();
    let of = |last: u8| key().sign(&update(Ipv4Addr::new(10, 1, 0, last)), None, WALL + 100).0;
    for last in 1..=18 {
        stage.pass(Duration::from_secs(1));
        let expected = if last <= 16 { Rcode::NoError } else { Rcode::ServFail };
        assert_eq!(stage.rcode(&of(last)), expected, "{last}");
    }
    assert_eq!(stage.rcode(&of(1)), Rcode::NoError, "a repetition");
    assert_eq!(stage.place(), [Ipv4Addr::new(10, 1, 0, 16)]);
    let updates = |count: u16| {
        let text = CONFIG.replace("updates = 3", &format!("updates = {count}"));
        LocationManager::new(toml::from_str(&text).unwrap()).err().map(|why| why.to_string())
    };
    assert_eq!(updates(16), None);
    assert!(updates(17).unwrap().contains("at most 16"));
}

/// At most 4096 streams may wait for their message. A further stream must be refused until one of them has ended.
#[test]
fn those_that_are_about_to_be_heard_are_bounded() {
    let mut stage = Stage::new();
    let (here, there) = ("10.1.0.2:53".parse().unwrap(), node::Addr::new(OLD, 5000));
    let accepted = |stage: &mut Stage, number: u32| {
        let id = StreamId(StreamId::DRIVER + number);
        let effects = stage.give(Input::Stream(StreamId(0), StreamEvent::Accepted(id, here, there)));
        matches!(effects[..], [Effect::Stream(_, StreamOp::Read(_))])
    };
    assert!((0..4096).all(|number| accepted(&mut stage, number)));
    assert!(!accepted(&mut stage, 4096));
    stage.give(Input::Stream(StreamId(StreamId::DRIVER), StreamEvent::Closed(None)));
    assert!(accepted(&mut stage, 4097));
}

/// Answers are counted separately for 4096 hosts in one second. All other hosts together must get at most 4096 answers
/// in this second.
#[test]
fn hosts_that_are_not_counted_share_their_answers() {
    let mut stage = Stage::new();
    let query = query("mn.sigma.example", kind::A);
    let answers = |stage: &mut Stage, hosts: std::ops::Range<u32>| {
        let from = |number| Ipv4Addr::from_bits(0x0b00_0000 + number);
        hosts.filter(|number| written(&stage.send_from(from(*number), &query)).is_some()).count()
    };
    assert_eq!(answers(&mut stage, 0..9000), 2 * 4096);
    stage.pass(Duration::from_secs(1));
    assert_eq!(answers(&mut stage, 9000..9100), 100);
}

/// A damaged record does not show which updates were accepted. So updates that were signed before the start must be
/// refused.
#[test]
fn after_a_damaged_record_nothing_is_taken_that_was_signed_before_the_start() {
    let mut stage = Stage::new();
    let old = stage.signed(&update(OLD));
    stage.send(&old);
    let (key, mut record) = stage.stored.clone().unwrap();
    record.truncate(3);
    let boot = Boot { stored: vec![(key, record)], ..Boot::new(wall(70)) };
    let role = LocationManager::new(toml::from_str(CONFIG).unwrap()).unwrap();
    let mut again = Stage { role, now: Instant::ZERO, streams: 0, stored: None, slow: false };
    again.give(Input::Start(&boot));
    assert_eq!(again.answer(&old).unwrap().signed.unwrap().tsig.error, Failure::BadTime as u16);
    assert!(again.place().is_empty());
}
