//! Secret keys, which are never printed.

use core::fmt;
use core::str::FromStr;

/// A secret key. Its debug text has only its length, so that no log, trace or failed assertion reveals the key.
#[derive(Clone)]
pub struct Key(Vec<u8>);

impl Key {
    /// Returns the key with these bytes. Any length is accepted.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// Returns the bytes of the key. A protocol checks the length that it requires when it reads its configuration.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} bytes)", self.0.len())
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        crate::equal(&self.0, &other.0)
    }
}

impl Eq for Key {}

/// Why a text is not a key. No variant contains a character of the text, because a mistyped secret is still secret.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseKeyError {
    /// The text is empty.
    Empty,
    /// The number of digits is odd.
    OddLength {
        /// The number of digits in the text.
        characters: usize,
    },
    /// A character is not a hexadecimal digit.
    NotHex {
        /// The position of that character in the text, from 1.
        position: usize,
    },
}

impl fmt::Display for ParseKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key must have two hexadecimal digits for each byte, without spaces; ")?;
        match self {
            Self::Empty => f.write_str("this text is empty"),
            Self::OddLength { characters } => write!(f, "this text has {characters} digits, an odd number"),
            Self::NotHex { position } => {
                write!(f, "character {position} of this text is not a hexadecimal digit")
            }
        }
    }
}

impl core::error::Error for ParseKeyError {}

impl FromStr for Key {
    type Err = ParseKeyError;
    fn from_str(text: &str) -> Result<Self, ParseKeyError> {
        let mut nibbles = Vec::with_capacity(text.len());
        for (index, character) in text.chars().enumerate() {
            let digit = character.to_digit(16).ok_or(ParseKeyError::NotHex { position: index + 1 })?;
            nibbles.push(digit as u8);
        }
        let (pairs, odd) = nibbles.as_chunks::<2>();
        if !odd.is_empty() {
            return Err(ParseKeyError::OddLength { characters: nibbles.len() });
        }
        if pairs.is_empty() {
            return Err(ParseKeyError::Empty);
        }
        Ok(Self(pairs.iter().map(|[high, low]| high << 4 | low).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_in_either_case_is_read() {
        assert_eq!("00aBff".parse::<Key>().unwrap().as_bytes(), [0x00, 0xab, 0xff]);
    }

    #[test]
    fn every_refusal_says_where_and_repeats_nothing() {
        let refusal = |text: &str| text.parse::<Key>().unwrap_err();
        assert_eq!(refusal(""), ParseKeyError::Empty);
        assert_eq!(refusal("00a"), ParseKeyError::OddLength { characters: 3 });
        assert_eq!(refusal("00 a"), ParseKeyError::NotHex { position: 3 });
        assert_eq!(refusal("+1"), ParseKeyError::NotHex { position: 1 });
        assert_eq!(refusal("0é"), ParseKeyError::NotHex { position: 2 });
        assert!(refusal("5ecre7").to_string().contains("character 4 "));
        assert!(!refusal("5ecre7").to_string().contains("5ec"));
    }

    #[test]
    fn a_key_does_not_print_itself() {
        assert_eq!(format!("{:?}", Key::new([0x5e; 16])), "Key(16 bytes)");
    }

    #[test]
    fn keys_are_equal_by_their_bytes() {
        assert_eq!(Key::new([1, 2]), "0102".parse().unwrap());
        assert_ne!(Key::new([1, 2]), Key::new([1, 2, 0]));
    }
}
