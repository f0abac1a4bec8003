//! The format of DNS messages (RFC 1035, section 4).

use super::resource_record::ResourceRecord;
use super::tsig::Tsig;
use super::{Name, Rcode, Signed, kind};
use wire::{Malformed, Reader};

/// The header of a DNS message, without the numbers of records (RFC 1035, section 4.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// The message number, which an answer repeats.
    pub id: u16,
    /// QR: whether the message is an answer.
    pub is_response: bool,
    /// OPCODE: the purpose of the message, one of [`super::opcode`], or another number up to 15.
    pub opcode: u8,
    /// AA: the server is authoritative for the name.
    pub authoritative: bool,
    /// RD: recursion is desired; the answer repeats it.
    pub recursion_desired: bool,
    /// RCODE: the result, 0 to 15. [`Rcode::of`] returns the code with this number.
    pub rcode: u8,
}

/// A question (RFC 1035, section 4.1.2); in an update, the zone (RFC 2136, section 2.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// The name that is asked for; in an update, the name of the zone.
    pub name: Name,
    /// The type of record: one of [`kind`], or another number.
    pub kind: u16,
    /// The class: one of [`super::class`], or another number.
    pub class: u16,
}

/// A message without its signature (RFC 1035, section 4.1; in an update, RFC 2136, section 2).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Message {
    /// The header, without the numbers of records.
    pub header: Header,
    /// The questions; in an update, the zone.
    pub questions: Vec<Question>,
    /// The answers; in an update, the prerequisites.
    pub answers: Vec<ResourceRecord>,
    /// The authority records; in an update, the changes.
    pub authority: Vec<ResourceRecord>,
    /// The additional records, without the signature.
    pub additional: Vec<ResourceRecord>,
}

/// A message that was received, and its signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Received {
    /// The message without its signature.
    pub message: Message,
    /// The signature with the bytes that it covers; `None` if the message is not signed. It is not verified yet.
    pub signed: Option<Signed>,
}

/// The length of the header of a message, in bytes.
const HEADER: usize = 12;
/// The maximum number of questions and records in one message, without the signature. A location manager needs fewer.
const RECORDS: usize = 64;

const SHORT: Malformed = Malformed("dns_truncated");

impl Header {
    /// Parses the first 4 bytes of a message. They suffice for an answer to a message whose other bytes are malformed.
    /// Fails if there are fewer than 4 bytes.
    pub fn peek(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(bytes, SHORT);
        let (id, high, low) = (r.u16()?, r.u8()?, r.u8()?);
        Ok(Self {
            id,
            is_response: high & 0x80 != 0,
            opcode: high >> 3 & 15,
            authoritative: high & 4 != 0,
            recursion_desired: high & 1 != 0,
            rcode: low & 15,
        })
    }

    /// Returns the header of an answer to this message with the result `rcode`. Flag AA is not set.
    #[must_use]
    pub const fn answer(self, rcode: Rcode) -> Self {
        Self { is_response: true, authoritative: false, rcode: rcode as u8, ..self }
    }

    fn emit(self) -> [u8; 4] {
        let [a, b] = self.id.to_be_bytes();
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let high = bit(self.is_response, 0x80)
            | (self.opcode & 15) << 3
            | bit(self.authoritative, 4)
            | bit(self.recursion_desired, 1);
        [a, b, high, self.rcode & 15]
    }
}

struct Cursor<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn name(&mut self) -> Result<Name, Malformed> {
        let (name, behind) = Name::read(self.message, self.at)?;
        self.at = behind;
        Ok(name)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let taken = self.message.get(self.at..self.at + count).ok_or(SHORT)?;
        self.at += count;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        Reader::new(self.take(2)?, SHORT).u16()
    }

    fn question(&mut self) -> Result<Question, Malformed> {
        Ok(Question { name: self.name()?, kind: self.u16()?, class: self.u16()? })
    }

    fn record(&mut self) -> Result<ResourceRecord, Malformed> {
        let (name, kind, class) = (self.name()?, self.u16()?, self.u16()?);
        let ttl = Reader::new(self.take(4)?, SHORT).u32()?;
        let length = usize::from(self.u16()?);
        Ok(ResourceRecord { name, kind, class, ttl, data: self.take(length)?.to_vec() })
    }
}

impl Received {
    /// Parses a message. Fails if it has more than 64 questions and records besides the signature, if it is malformed,
    /// or if the signature is not the last record (RFC 8945, section 5.2).
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let header = Header::peek(bytes)?;
        let mut r = Reader::new(bytes.get(4..).unwrap_or_default(), SHORT);
        let counts = [r.u16()?, r.u16()?, r.u16()?, r.u16()?].map(usize::from);
        // The signature is not counted, so that the largest message can be signed.
        let count = counts.iter().sum::<usize>();
        if count > RECORDS + 1 {
            return Err(Malformed("dns_too_many_records"));
        }
        let [questions, answers, authority, additional] = counts;
        let mut cursor = Cursor { message: bytes, at: HEADER };
        let questions = (0..questions).map(|_| cursor.question()).collect::<Result<_, _>>()?;
        let mut records = |count: usize| (0..count).map(|_| cursor.record()).collect::<Result<Vec<_>, _>>();
        let (answers, authority) = (records(answers)?, records(authority)?);
        let mut extra = Vec::new();
        let mut signature = None;
        for left in (0..additional).rev() {
            let from = cursor.at;
            let record = cursor.record()?;
            if record.kind != kind::TSIG {
                extra.push(record);
                continue;
            }
            // The signature must be the last record (RFC 8945, section 5.2).
            if left > 0 {
                return Err(Malformed("tsig_not_last"));
            }
            signature = Some((from, Tsig::parse(&record)?));
        }
        if cursor.at != bytes.len() {
            return Err(Malformed("dns_trailing_bytes"));
        }
        if count - usize::from(signature.is_some()) > RECORDS {
            return Err(Malformed("dns_too_many_records"));
        }
        let message = Message { header, questions, answers, authority, additional: extra };
        let signed = signature.map(|(from, tsig)| Signed::new(bytes, from, additional as u16 - 1, tsig));
        Ok(Self { message, signed })
    }
}

impl Message {
    /// Returns the wire format without a signature. If the name of a record is the name of the first question, a
    /// pointer to the question replaces it.
    pub fn emit(&self) -> Vec<u8> {
        let mut bytes = self.header.emit().to_vec();
        let counts = [self.questions.len(), self.answers.len(), self.authority.len(), self.additional.len()];
        for count in counts {
            bytes.extend((count as u16).to_be_bytes());
        }
        for question in &self.questions {
            bytes.extend(question.name.as_bytes());
            bytes.extend(question.kind.to_be_bytes());
            bytes.extend(question.class.to_be_bytes());
        }
        for record in self.answers.iter().chain(&self.authority).chain(&self.additional) {
            self.emit_record(record, &mut bytes);
        }
        bytes
    }

    fn emit_record(&self, record: &ResourceRecord, bytes: &mut Vec<u8>) {
        const FIRST_QUESTION: [u8; 2] = [0xc0, HEADER as u8];
        match self.questions.first() {
            Some(first) if first.name.as_bytes() == record.name.as_bytes() => bytes.extend(FIRST_QUESTION),
            _ => bytes.extend(record.name.as_bytes()),
        }
        bytes.extend(record.kind.to_be_bytes());
        bytes.extend(record.class.to_be_bytes());
        bytes.extend(record.ttl.to_be_bytes());
        bytes.extend((record.data.len() as u16).to_be_bytes());
        bytes.extend(&record.data);
    }
}

#[cfg(test)]
mod tests {
    use super::super::class;
    use super::super::opcode;
    use super::*;
    use wire::Ipv4Addr;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    /// An answer of 44 bytes with a question and an A record, in the format of RFC 1035, section 4.
    const ANSWER: &[u8] = b"\x12\x34\x84\0\0\x01\0\x01\0\0\0\0\x02mn\x07example\0\0\x01\0\x01\
        \xc0\x0c\0\x01\0\x01\0\0\0\x05\0\x04\x0a\x01\x06\x64";

    #[test]
    fn golden_bytes_both_ways() {
        let received = Received::parse(ANSWER).unwrap();
        assert_eq!(received.signed, None);
        let Message { header, questions, answers, .. } = &received.message;
        assert_eq!((header.id, header.is_response, header.authoritative), (0x1234, true, true));
        assert_eq!(questions[0], Question { name: name("mn.example"), kind: kind::A, class: class::IN });
        assert_eq!(answers[0].as_address(), Some(Ipv4Addr::new(10, 1, 6, 100)));
        assert_eq!(received.message.emit(), ANSWER);
    }

    #[test]
    fn what_is_emitted_is_read() {
        let header = Header { id: 7, opcode: opcode::UPDATE, recursion_desired: true, ..Header::default() };
        let zone = Question { name: name("example"), kind: kind::SOA, class: class::IN };
        let gone = ResourceRecord {
            name: name("mn.example"),
            kind: kind::A,
            class: class::ANY,
            ttl: 0,
            data: Vec::new(),
        };
        let new = ResourceRecord::address(name("mn.example"), 5, Ipv4Addr::new(10, 1, 6, 100));
        let message =
            Message { header, questions: vec![zone], authority: vec![gone, new], ..Message::default() };
        assert_eq!(Received::parse(&message.emit()).unwrap().message, message);
    }

    #[test]
    fn what_cannot_be_a_message_is_refused_with_a_reason() {
        let refused = |bytes: &[u8]| Received::parse(bytes).unwrap_err().0;
        for len in 0..ANSWER.len() {
            assert_eq!(refused(&ANSWER[..len]), "dns_truncated", "{len}");
        }
        assert_eq!(refused(&[ANSWER, b"x"].concat()), "dns_trailing_bytes");
        let mut many = ANSWER.to_vec();
        many[10] = 1;
        assert_eq!(refused(&many), "dns_too_many_records");
        let full = |records: usize| {
            let record = ResourceRecord::address(name("mn.example"), 5, Ipv4Addr::new(10, 1, 6, 100));
            Message { answers: vec![record; records], ..Message::default() }.emit()
        };
        assert_eq!(refused(&full(RECORDS + 1)), "dns_too_many_records");
        let key = super::super::TsigKey { name: name("mn.example"), secret: auth::Key::new([7; 32]) };
        assert!(
            Received::parse(&key.sign(&full(RECORDS), None, 0).0).unwrap().signed.is_some(),
            "and signed"
        );
        let header = b"\0\0\0\0\0\0\0\0\0\0\0\x02";
        let tsig = b"\0\0\xfa\0\xff\0\0\0\0\0\x11\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
        let options = b"\0\0\x29\x04\0\0\0\0\0\0\0";
        let last = [header.as_slice(), options, tsig].concat();
        assert!(Received::parse(&last).unwrap().signed.is_some());
        assert_eq!(refused(&[header.as_slice(), tsig, options].concat()), "tsig_not_last");
    }
}
