//! DNS messages to and from a location manager: makes them, and describes them in words.

use crate::transcript::WALL;
use auth::Key;
use sigma::message::{
    Failure, Header, Message, Name, Question, Rcode, Received, ResourceRecord, TsigKey, class, kind, opcode,
};
use std::collections::BTreeMap;
use wire::{Instant, Ipv4Addr, Mac};

/// A network that the mobile node may be in.
pub(super) struct Network {
    pub(super) name: &'static str,
    pub(super) address: Ipv4Addr,
    pub(super) router: Mac,
}

pub(super) const NETWORKS: [Network; 2] = [
    Network { name: "gateway1", address: Ipv4Addr::new(10, 1, 8, 1), router: Mac([2, 0, 0, 0, 0, 1]) },
    Network { name: "gateway2", address: Ipv4Addr::new(10, 1, 6, 1), router: Mac([2, 0, 0, 0, 0, 2]) },
];

/// The `name=text` arguments of a step.
pub(super) struct Args<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Args<'a> {
    pub(super) fn new(words: &[&'a str]) -> Self {
        Self(words.iter().map(|word| word.split_once('=').unwrap_or((word, ""))).collect())
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn get<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.0.get(name).map(|text| text.parse().ok().unwrap())
    }
}

/// Returns the wall time at `now`, in seconds since 1970.
pub(super) fn seconds(now: Instant) -> u64 {
    WALL.plus(now.since(Instant::ZERO)).0.unsigned_abs() / 1_000_000_000
}

fn in_zone(name: &str) -> Name {
    format!("{name}.sigma.example").parse().unwrap()
}

fn key(name: &str, forged: bool) -> TsigKey {
    let mut secret: Vec<u8> = (0..16).collect();
    if name != "mn" {
        secret.reverse();
    }
    let secret = if forged { vec![9; 16] } else { secret };
    TsigKey { name: in_zone(name), secret: Key::new(secret) }
}

/// Returns an update of the mobile node `name`. Arguments: `at`, the new address; `by`, another signer; `clock`, the
/// error of the signer's clock in seconds; `forged` or `unsigned`; `if`, a text that must exist; `text`, the new text.
pub(super) fn update(name: &str, args: &Args<'_>, seconds: u64) -> Vec<u8> {
    let header = Header { id: 7, opcode: opcode::UPDATE, ..Header::default() };
    let zone = Question { name: "sigma.example".parse().unwrap(), kind: kind::SOA, class: class::IN };
    let record = |class, kind, data| ResourceRecord { name: in_zone(name), kind, class, ttl: 0, data };
    let text = |text: String| {
        let mut data = vec![text.len() as u8];
        data.extend(text.into_bytes());
        data
    };
    let answers = args.get("if").map(|seq: u32| record(class::IN, kind::TXT, text(format!("seq={seq}"))));
    let mut authority = vec![record(class::ANY, kind::A, Vec::new())];
    if let Some(at) = args.get::<Ipv4Addr>("at") {
        authority.push(record(class::IN, kind::A, at.octets().to_vec()));
    }
    if let Some(seq) = args.get::<u32>("text") {
        authority.push(record(class::ANY, kind::TXT, Vec::new()));
        authority.push(record(class::IN, kind::TXT, text(format!("seq={seq}"))));
    }
    let answers = answers.into_iter().collect();
    let message =
        Message { header, questions: vec![zone], answers, authority, additional: Vec::new() }.emit();
    if args.has("unsigned") {
        return message;
    }
    let by: String = args.get("by").unwrap_or_else(|| name.to_owned());
    let seconds = seconds.wrapping_add_signed(args.get("clock").unwrap_or_default());
    key(&by, args.has("forged")).sign(&message, None, seconds).0
}

/// Returns a query for the address of `name`.
pub(super) fn query(name: &str) -> Vec<u8> {
    let name: Name = if name.contains('.') { name.parse().unwrap() } else { in_zone(name) };
    let questions = vec![Question { name, kind: kind::A, class: class::IN }];
    Message { questions, ..Message::default() }.emit()
}

/// Returns a location manager's answer to `question`: the name has the address `address`.
pub(super) fn located(question: &[u8], address: Ipv4Addr) -> Vec<u8> {
    let Received { message, .. } = Received::parse(question).unwrap();
    let answers = vec![ResourceRecord::address(message.questions[0].name.clone(), 5, address)];
    Message { header: message.header.answer(Rcode::NoError), answers, ..message }.emit()
}

/// Returns a location manager's answer to `update`, with the result `rcode`. Arguments: `forged`, or `clock`, the error
/// of the location manager's clock in seconds.
pub(super) fn answer(update: &[u8], rcode: &str, args: &Args<'_>, seconds: u64) -> Vec<u8> {
    let Received { message, signed } = Received::parse(update).unwrap();
    let tsig = signed.unwrap().tsig;
    let key = key("mn", args.has("forged"));
    let theirs = seconds.wrapping_add_signed(args.get("clock").unwrap_or_default());
    let code = match rcode {
        "noerror" => Rcode::NoError,
        "servfail" => Rcode::ServFail,
        "nxrrset" => Rcode::NxRrSet,
        "badtime" => Rcode::NotAuth,
        _ => Rcode::Refused,
    };
    let answer = Message { header: message.header.answer(code), ..Message::default() }.emit();
    match rcode {
        "badtime" => key.sign_bad_time(&answer, &tsig, theirs),
        _ => key.sign(&answer, Some(&tsig.mac), theirs).0,
    }
}

/// Returns the description of a DNS message, as the transcripts have it.
pub(super) fn message_name(bytes: &[u8]) -> String {
    let Received { message, signed } = Received::parse(bytes).unwrap();
    let records = |records: &[ResourceRecord]| -> String {
        records.iter().filter_map(record_name).collect::<Vec<_>>().join(", ")
    };
    let said = match (message.header.is_response, message.header.opcode) {
        (false, opcode::QUERY) => {
            let name = message.questions.first().map(|question| question.name.to_string());
            format!("question: where is {}", name.unwrap_or_default())
        }
        (false, _) => {
            let only_if = records(&message.answers);
            let only_if = if only_if.is_empty() { only_if } else { format!(", if {only_if}") };
            format!("update: {}{only_if}", records(&message.authority))
        }
        (true, opcode::UPDATE) => format!("answer: {}", rcode_name(&message)),
        (true, _) => format!("answer: {} {}", rcode_name(&message), records(&message.answers)),
    };
    let signature = signed.map_or("unsigned".to_owned(), |signed| {
        let error = [Failure::BadSig, Failure::BadKey, Failure::BadTime, Failure::BadTrunc]
            .into_iter()
            .find(|failure| *failure as u16 == signed.tsig.error)
            .map_or("", Failure::name);
        let error = if error.is_empty() { String::new() } else { format!("{error}, ") };
        format!("{error}{}", if signed.tsig.mac.is_empty() { "no code" } else { "signed" })
    });
    format!("{}, {signature}", said.trim_end())
}

fn rcode_name(message: &Message) -> &'static str {
    Rcode::of(message.header.rcode).map_or("?", Rcode::name)
}

fn record_name(record: &ResourceRecord) -> Option<String> {
    let name = record.name.to_string();
    let name = name.split('.').next().unwrap_or_default().to_owned();
    match (record.class, record.kind) {
        (class::IN, kind::A) => Some(format!("{name} is at {}", record.as_address()?)),
        (class::IN, kind::TXT) => Some(String::from_utf8_lossy(record.data.get(1..)?).into_owned()),
        _ => None,
    }
}
