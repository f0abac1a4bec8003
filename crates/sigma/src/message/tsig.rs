//! Transaction signatures (RFC 8945), with HMAC-SHA-256.

use super::{Name, ResourceRecord, class, kind};
use auth::{Key, equal, hmac_sha256};
use wire::{Malformed, Reader};

/// The permitted difference between two clocks, in seconds (RFC 8945, section 10).
const FUDGE: u16 = 300;

/// The name of the algorithm, `hmac-sha256.`, in wire format.
const ALGORITHM: &[u8] = b"\x0bhmac-sha256\0";
const SHORT: Malformed = Malformed("tsig_truncated");

/// A key for HMAC-SHA-256 that two hosts share, and its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TsigKey {
    /// The name of the key, which both hosts use in signatures.
    pub name: Name,
    /// The bytes of the shared key.
    pub secret: Key,
}

/// The signature of a message: the content of a TSIG record (RFC 8945, section 4.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tsig {
    /// The name of the key.
    pub key: Name,
    /// The name of the algorithm (RFC 8945, section 6).
    pub algorithm: Name,
    /// When the message was signed, in seconds since 1970.
    pub time: u64,
    /// The permitted difference between `time` and the clock of the receiver, in seconds.
    pub fudge: u16,
    /// The MAC, 32 bytes with HMAC-SHA-256; empty in the answer to a request whose key or MAC is not accepted.
    pub mac: Vec<u8>,
    /// The message number when the message was signed. A relay may change the number in the header.
    pub original_id: u16,
    /// The error of the request's signature, a number of [`Failure`]; 0 in requests, and if there is no error.
    pub error: u16,
    /// With the error BADTIME, the server's time as 6 bytes, in seconds since 1970; otherwise empty.
    pub other: Vec<u8>,
}

/// Why a signature is refused (RFC 8945, section 5.2). The value is the number in field `error` of the answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u16)]
pub enum Failure {
    /// The MAC is wrong or missing.
    BadSig = 16,
    /// The key or the algorithm is not known.
    BadKey = 17,
    /// The signing time differs too much from the receiver's clock, or is before that of the last accepted update.
    BadTime = 18,
    /// The MAC is truncated: it has fewer than 32 bytes.
    BadTrunc = 22,
}

impl Failure {
    /// Returns the name of the error in the IANA registry, for example `BADTIME`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BadSig => "BADSIG",
            Self::BadKey => "BADKEY",
            Self::BadTime => "BADTIME",
            Self::BadTrunc => "BADTRUNC",
        }
    }
}

/// A signature and the message that it covers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signed {
    /// The signature, which may be wrong; [`Signed::verify`] checks it.
    pub tsig: Tsig,
    /// The message before it was signed.
    bytes: Vec<u8>,
}

impl Tsig {
    pub(super) fn parse(record: &ResourceRecord) -> Result<Self, Malformed> {
        if record.class != class::ANY || record.ttl != 0 {
            return Err(Malformed("tsig_class"));
        }
        // The name of the algorithm is not compressed (RFC 8945, section 4.2), so it can be parsed without the other
        // parts of the message.
        let (algorithm, at) = Name::read(&record.data, 0)?;
        let mut r = Reader::new(record.data.get(at..).unwrap_or_default(), SHORT);
        let time = u64::from(r.u16()?) << 32 | u64::from(r.u32()?);
        let fudge = r.u16()?;
        let length = usize::from(r.u16()?);
        let mac = r.take(length)?.to_vec();
        let (original_id, error) = (r.u16()?, r.u16()?);
        let length = usize::from(r.u16()?);
        let other = r.take(length)?.to_vec();
        if !r.is_empty() {
            return Err(Malformed("tsig_trailing_bytes"));
        }
        Ok(Self { key: record.name.clone(), algorithm, time, fudge, mac, original_id, error, other })
    }

    /// Returns the server's time in field `other`, in seconds since 1970; `None` if the field does not have 6 bytes.
    pub fn server_time(&self) -> Option<u64> {
        let other = <[u8; 6]>::try_from(self.other.as_slice()).ok()?;
        let mut bytes = [0; 8];
        bytes.iter_mut().skip(2).zip(other).for_each(|(to, from)| *to = from);
        Some(u64::from_be_bytes(bytes))
    }

    /// Returns the bytes that are signed in addition to the message (RFC 8945, section 4.3.3).
    fn variables(&self) -> Vec<u8> {
        let mut bytes = self.key.canonical().as_bytes().to_vec();
        bytes.extend(class::ANY.to_be_bytes());
        bytes.extend([0; 4]); // TTL
        bytes.extend(self.algorithm.canonical().as_bytes());
        bytes.extend(self.time_and_fudge());
        bytes.extend(self.error.to_be_bytes());
        bytes.extend((self.other.len() as u16).to_be_bytes());
        bytes.extend(&self.other);
        bytes
    }

    fn time_and_fudge(&self) -> Vec<u8> {
        let [_, _, time @ ..] = self.time.to_be_bytes();
        [time.as_slice(), &self.fudge.to_be_bytes()].concat()
    }

    /// Returns the MAC of a message. `request` is the MAC of the request that the message answers; `None` for a
    /// request.
    fn code(&self, secret: &Key, request: Option<&[u8]>, message: &[u8]) -> [u8; 32] {
        let length = request.map(|mac| (mac.len() as u16).to_be_bytes());
        let (length, request) = (length.as_ref().map_or(&[][..], |two| two), request.unwrap_or_default());
        hmac_sha256(secret, &[length, request, message, &self.variables()])
    }

    fn record(&self) -> Vec<u8> {
        let mut data = self.algorithm.as_bytes().to_vec();
        data.extend(self.time_and_fudge());
        data.extend((self.mac.len() as u16).to_be_bytes());
        data.extend(&self.mac);
        data.extend(self.original_id.to_be_bytes());
        data.extend(self.error.to_be_bytes());
        data.extend((self.other.len() as u16).to_be_bytes());
        data.extend(&self.other);
        let mut bytes = self.key.as_bytes().to_vec();
        bytes.extend(kind::TSIG.to_be_bytes());
        bytes.extend(class::ANY.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend((data.len() as u16).to_be_bytes());
        bytes.extend(data);
        bytes
    }
}

impl Signed {
    /// Returns the signature and the message before it was signed. `from` is the offset of the TSIG record, and
    /// `additional` is the number of additional records without this record.
    pub(super) fn new(message: &[u8], from: usize, additional: u16, tsig: Tsig) -> Self {
        let mut bytes = message.get(..from).unwrap_or_default().to_vec();
        put(&mut bytes, 0, tsig.original_id);
        put(&mut bytes, 10, additional);
        Self { tsig, bytes }
    }

    /// Verifies the signature with `key`, and the signing time against `now`, in seconds since 1970. `request` is the
    /// MAC of the request that this message answers; `None` for a request.
    ///
    /// Fails with the first check that fails: the key, the length of the MAC, the MAC, the time (RFC 8945, section
    /// 5.2). A truncated MAC is never accepted.
    pub fn verify(&self, key: &TsigKey, request: Option<&[u8]>, now: u64) -> Result<(), Failure> {
        let tsig = &self.tsig;
        if tsig.key != key.name || tsig.algorithm.canonical().as_bytes() != ALGORITHM {
            return Err(Failure::BadKey);
        }
        let code = tsig.code(&key.secret, request, &self.bytes);
        if tsig.mac.len() < code.len() {
            return Err(if tsig.mac.is_empty() { Failure::BadSig } else { Failure::BadTrunc });
        }
        if !equal(&tsig.mac, &code) {
            return Err(Failure::BadSig);
        }
        if tsig.time.abs_diff(now) > u64::from(tsig.fudge) {
            return Err(Failure::BadTime);
        }
        Ok(())
    }
}

impl TsigKey {
    /// Returns the signed message and its MAC. `request` is the MAC of the request that the message answers; `None` for
    /// a request. `now` is the signing time in seconds since 1970. The MAC of a request is needed to verify the answer.
    pub fn sign(&self, message: &[u8], request: Option<&[u8]>, now: u64) -> (Vec<u8>, [u8; 32]) {
        self.sign_with(message, request, (now, FUDGE), None)
    }

    /// Returns the signed answer to a request whose signing time is not accepted. The answer has the signing time of
    /// the request, and `now` as the server's time, in seconds since 1970 (RFC 8945, section 5.2.3).
    pub fn sign_bad_time(&self, message: &[u8], request: &Tsig, now: u64) -> Vec<u8> {
        self.sign_with(message, Some(&request.mac), (request.time, request.fudge), Some(now)).0
    }

    fn sign_with(
        &self,
        message: &[u8],
        request: Option<&[u8]>,
        (time, fudge): (u64, u16),
        server: Option<u64>,
    ) -> (Vec<u8>, [u8; 32]) {
        let id = Reader::new(message, SHORT).u16().unwrap_or_default();
        let other = server.map(|now| now.to_be_bytes().get(2..).unwrap_or_default().to_vec());
        let mut tsig = Tsig {
            key: self.name.clone(),
            algorithm: algorithm(),
            time,
            fudge,
            mac: Vec::new(),
            original_id: id,
            error: if server.is_some() { Failure::BadTime as u16 } else { 0 },
            other: other.unwrap_or_default(),
        };
        let code = tsig.code(&self.secret, request, message);
        tsig.mac = code.to_vec();
        (attach(message, &tsig), code)
    }
}

/// Returns the answer, with an empty MAC, to a request whose key or MAC is not accepted (RFC 8945, section 5.3.2).
pub(crate) fn unsigned(message: &[u8], request: &Tsig, failure: Failure) -> Vec<u8> {
    let tsig = Tsig { mac: Vec::new(), error: failure as u16, other: Vec::new(), ..request.clone() };
    attach(message, &tsig)
}

fn attach(message: &[u8], tsig: &Tsig) -> Vec<u8> {
    let mut bytes = message.to_vec();
    let mut additional = Reader::new(message.get(10..).unwrap_or_default(), SHORT);
    put(&mut bytes, 10, additional.u16().unwrap_or_default() + 1);
    bytes.extend(tsig.record());
    bytes
}

fn algorithm() -> Name {
    Name::read(ALGORITHM, 0).map_or_else(|_| Name::root(), |(name, _)| name)
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(two) = bytes.get_mut(at..at + 2) {
        two.copy_from_slice(&value.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Message, Question, Received};
    use super::*;

    const NOW: u64 = 1_700_000_000;

    fn key(secret: u8) -> TsigKey {
        TsigKey { name: "mn.example".parse().unwrap(), secret: Key::new([secret; 32]) }
    }

    fn request() -> Vec<u8> {
        let zone = Question { name: "example".parse().unwrap(), kind: kind::SOA, class: class::IN };
        Message { questions: vec![zone], ..Message::default() }.emit()
    }

    fn signed(bytes: &[u8]) -> Signed {
        Received::parse(bytes).unwrap().signed.unwrap()
    }

    #[test]
    fn a_signature_holds_for_this_key_this_message_and_this_time() {
        let (bytes, code) = key(1).sign(&request(), None, NOW);
        let at = |now| signed(&bytes).verify(&key(1), None, now);
        assert_eq!(at(NOW), Ok(()));
        assert_eq!([at(NOW + 300), at(NOW - 300)], [Ok(()); 2]);
        assert_eq!([at(NOW + 301), at(NOW - 301)], [Err(Failure::BadTime); 2]);
        assert_eq!(signed(&bytes).verify(&key(2), None, NOW), Err(Failure::BadSig));
        let other = TsigKey { name: "other.example".parse().unwrap(), ..key(1) };
        assert_eq!(signed(&bytes).verify(&other, None, NOW), Err(Failure::BadKey));
        assert_eq!(signed(&bytes).verify(&key(1), Some(&code), NOW), Err(Failure::BadSig), "not an answer");
        let (answer, _) = key(1).sign(&request(), Some(&code), NOW);
        assert_eq!(signed(&answer).verify(&key(1), Some(&code), NOW), Ok(()));
        assert_eq!(signed(&answer).verify(&key(1), Some(&[0; 32]), NOW), Err(Failure::BadSig));
    }

    #[test]
    fn no_bit_can_be_changed() {
        let (bytes, _) = key(1).sign(&request(), None, NOW);
        for at in 2..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x20;
            let Ok(Received { signed: Some(signed), message }) = Received::parse(&changed) else { continue };
            let unchanged = Received::parse(&bytes).unwrap().message == message;
            // A change is accepted only if it changes the case of a letter in a name.
            let verdict = signed.verify(&key(1), None, NOW);
            assert!(verdict.is_err() || (unchanged && bytes[at].is_ascii_alphabetic()), "{at}");
        }
    }

    /// RFC 8945, section 4.2: the class is ANY and the TTL is 0. The MAC is computed over these values, not over the
    /// received ones, so a changed class or TTL must be refused by the parser.
    #[test]
    fn a_tsig_of_another_class_or_with_a_ttl_is_malformed() {
        let (bytes, _) = key(1).sign(&request(), None, NOW);
        let class_at = request().len() + key(1).name.as_bytes().len() + 2;
        assert_eq!(bytes[class_at..class_at + 6], [0, 255, 0, 0, 0, 0]);
        for (at, changed) in [(1, 1), (0, 1), (2, 1), (5, 1)] {
            let mut other = bytes.clone();
            other[class_at + at] = changed;
            assert_eq!(Received::parse(&other).err(), Some(Malformed("tsig_class")), "{at}");
        }
    }

    #[test]
    fn a_relay_may_number_a_message_anew() {
        let (mut bytes, _) = key(1).sign(&request(), None, NOW);
        bytes[1] ^= 9;
        assert_eq!(signed(&bytes).verify(&key(1), None, NOW), Ok(()));
    }

    #[test]
    fn a_code_that_is_cut_is_not_accepted() {
        let (bytes, _) = key(1).sign(&request(), None, NOW);
        let mut cut = signed(&bytes);
        cut.tsig.mac.truncate(16);
        assert_eq!(cut.verify(&key(1), None, NOW), Err(Failure::BadTrunc));
        cut.tsig.mac.clear();
        assert_eq!(cut.verify(&key(1), None, NOW), Err(Failure::BadSig));
        cut.tsig.mac = [signed(&bytes).tsig.mac.as_slice(), b"x"].concat();
        assert_eq!(cut.verify(&key(1), None, NOW), Err(Failure::BadSig));
    }

    #[test]
    fn who_is_not_in_time_is_told_the_time() {
        let (bytes, code) = key(1).sign(&request(), None, NOW);
        let answer = key(1).sign_bad_time(&request(), &signed(&bytes).tsig, NOW + 1000);
        let answer = signed(&answer);
        assert_eq!(answer.verify(&key(1), Some(&code), NOW), Ok(()));
        assert_eq!((answer.tsig.error, answer.tsig.server_time()), (18, Some(NOW + 1000)));
    }
}
