//! Domain names.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use wire::Malformed;

/// A domain name in its uncompressed wire format (RFC 1035, section 3.1). The case of letters is kept, but comparison
/// and order ignore it (RFC 4343).
#[derive(Clone)]
pub struct Name(Vec<u8>);

/// The maximum length of a name, and of a label, in bytes (RFC 1035, section 2.3.4).
const LONGEST: usize = 255;
const LONGEST_LABEL: usize = 63;
/// The two bits that mark a pointer (RFC 1035, section 4.1.4).
const POINTER: u8 = 0xc0;

const SHORT: Malformed = Malformed("dns_truncated");

impl Name {
    /// Returns the root name, which has no labels.
    pub fn root() -> Self {
        Self(vec![0])
    }

    /// Parses the name at offset `at` of a message. Returns the name, and the offset of the byte after it.
    ///
    /// The target of each pointer must be before the begin of the name, and before the target of the previous pointer.
    /// So there are no loops. Fails if a pointer does not satisfy this, if a label has more than 63 bytes or the name
    /// more than 255, or if the message ends within the name.
    pub fn read(message: &[u8], at: usize) -> Result<(Self, usize), Malformed> {
        let mut bytes = Vec::new();
        let (mut at, mut limit, mut behind) = (at, at, None);
        loop {
            let length = *message.get(at).ok_or(SHORT)?;
            if length & POINTER == POINTER {
                let low = *message.get(at + 1).ok_or(SHORT)?;
                let target = usize::from(u16::from_be_bytes([length & !POINTER, low]));
                behind.get_or_insert(at + 2);
                if target >= limit {
                    return Err(Malformed("dns_pointer"));
                }
                (at, limit) = (target, target);
                continue;
            }
            if usize::from(length) > LONGEST_LABEL {
                return Err(Malformed("dns_label"));
            }
            let label = message.get(at..=at + usize::from(length)).ok_or(SHORT)?;
            bytes.extend_from_slice(label);
            if bytes.len() > LONGEST {
                return Err(Malformed("dns_name_length"));
            }
            at += label.len();
            if length == 0 {
                return Ok((Self(bytes), behind.unwrap_or(at)));
            }
        }
    }

    /// Returns the wire format without compression: each label after a byte with its length, and a zero byte at the
    /// end.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the name in lower case: the canonical form (RFC 4034, section 6.2).
    #[must_use]
    pub(crate) fn canonical(&self) -> Self {
        Self(self.0.to_ascii_lowercase())
    }

    /// Returns whether this name is `zone` or a name below `zone`. The case of letters is ignored.
    pub fn is_within(&self, zone: &Self) -> bool {
        let mut rest = self.0.as_slice();
        loop {
            if rest.eq_ignore_ascii_case(&zone.0) {
                return true;
            }
            match rest.split_first() {
                Some((length, tail)) if *length > 0 => {
                    rest = tail.get(usize::from(*length)..).unwrap_or_default();
                }
                _ => return false,
            }
        }
    }

    /// Returns this name with `label` before it. Fails if the label is invalid, or if the result has more than 255
    /// bytes.
    pub(crate) fn with_label(&self, label: &str) -> Result<Self, ParseNameError> {
        let mut bytes = Vec::new();
        push_label(&mut bytes, label)?;
        bytes.extend_from_slice(&self.0);
        if bytes.len() > LONGEST { Err(ParseNameError) } else { Ok(Self(bytes)) }
    }
}

fn push_label(bytes: &mut Vec<u8>, label: &str) -> Result<(), ParseNameError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if label.is_empty() || label.len() > LONGEST_LABEL || !label.bytes().all(plain) {
        return Err(ParseNameError);
    }
    bytes.push(label.len() as u8);
    bytes.extend_from_slice(label.as_bytes());
    Ok(())
}

impl PartialEq for Name {
    /// Compares all bytes without the case of letters. This is correct, because the length of a label is at most 63,
    /// and the codes of letters begin at 65.
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.to_ascii_lowercase().cmp(&other.0.to_ascii_lowercase())
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_ascii_lowercase().hash(state);
    }
}

/// A text is not a domain name. A domain name has labels of letters, digits, `-` and `_`, with dots between the labels.
/// A label has 1 to 63 bytes, and the text at most 253 without a dot at the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParseNameError;

impl fmt::Display for ParseNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a name must have labels of 1 to 63 letters, digits, `-` or `_`, with dots between the labels, \
            and at most 253 characters, for example mobile.example",
        )
    }
}

impl std::error::Error for ParseNameError {}

impl FromStr for Name {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, ParseNameError> {
        let mut bytes = Vec::new();
        let text = text.strip_suffix('.').unwrap_or(text);
        for label in text.split('.') {
            push_label(&mut bytes, label)?;
        }
        bytes.push(0);
        if bytes.len() > LONGEST { Err(ParseNameError) } else { Ok(Self(bytes)) }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_slice();
        let mut separator = "";
        while let Some((length, tail)) = rest.split_first() {
            let (label, tail) = tail.split_at_checked(usize::from(*length)).unwrap_or_default();
            if label.is_empty() {
                break;
            }
            write!(f, "{separator}{}", label.escape_ascii())?;
            (rest, separator) = (tail, ".");
        }
        if separator.is_empty() { f.write_str(".") } else { Ok(()) }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    #[test]
    fn a_name_is_read_and_written_and_its_case_does_not_count() {
        assert_eq!(name("Mobile.Example").as_bytes(), b"\x06Mobile\x07Example\0");
        assert_eq!(name("Mobile.Example"), name("mobile.example."));
        assert_eq!(name("Mobile.Example").to_string(), "Mobile.Example");
        for bad in ["", ".", "a..b", "a b", &"a".repeat(64), &["a"; 128].join(".")] {
            assert_eq!(bad.parse::<Name>(), Err(ParseNameError), "{bad}");
        }
        assert!(name("mn.sigma.example").is_within(&name("SIGMA.example")));
        assert!(!name("mnsigma.example").is_within(&name("sigma.example")));
        assert!(!name("example").is_within(&name("sigma.example")));
        assert!(name("example").is_within(&Name::root()));
    }

    #[test]
    fn pointers_lead_back_and_never_in_circles() {
        let message = b"\x07example\0\x02mn\xc0\0\xc0\x09";
        assert_eq!(Name::read(message, 9), Ok((name("mn.example"), 14)));
        assert_eq!(Name::read(message, 14), Ok((name("mn.example"), 16)));
        let refused = |message: &[u8], at| Name::read(message, at).unwrap_err().0;
        assert_eq!(refused(b"\xc0\0", 0), "dns_pointer", "to itself");
        assert_eq!(refused(b"\x01a\xc0\0", 0), "dns_pointer", "to its own begin");
        assert_eq!(refused(b"\xc0\x02\xc0\0", 2), "dns_pointer", "to and fro");
        assert_eq!(refused(b"\x05ab", 0), "dns_truncated");
        assert_eq!(refused(b"\xc0", 0), "dns_truncated");
        assert_eq!(refused(b"\x80", 0), "dns_label");
        let long: Vec<u8> = std::iter::repeat_n(*b"\x01a", 128).flatten().chain([0]).collect();
        assert_eq!(refused(&long, 0), "dns_name_length");
    }
}
