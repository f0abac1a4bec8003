//! Structured data for commands, answers, status and marks. Drivers and tools convert it to and from JSON.

/// A value of one of five types. Maps keep the order of their entries.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Value {
    /// The absence of a value.
    #[default]
    None,
    /// A whole number.
    Int(i64),
    /// A text in UTF-8.
    Text(String),
    /// A list of values, in this order.
    List(Vec<Self>),
    /// Values by name, in this order.
    Map(Vec<(String, Self)>),
}

impl Value {
    /// Returns the first value of `name`, or `None` if this value is not a map or does not contain the name.
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Map(entries) => entries.iter().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Returns the text, or `None` if this value is not a text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the number, or `None` if this value is not a number.
    pub const fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns a map of names and values.
    pub fn map<'a>(entries: impl IntoIterator<Item = (&'a str, Self)>) -> Self {
        Self::Map(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Int(i64::from(number))
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<wire::Ipv4Addr> for Value {
    fn from(address: wire::Ipv4Addr) -> Self {
        Self::Text(address.to_string())
    }
}
