//! The home agent's record of a mobile node. The record is kept across restarts.

use wire::{Ipv4Addr, Malformed, Reader, WallTime};

/// The state of a mobile node since its last accepted registration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BindingRecord {
    /// The Identification of the request that was accepted last. A new request must have a later one.
    pub(crate) identification: u64,
    /// The current binding; `None` if the mobile node has deregistered, or the binding has expired.
    pub(crate) binding: Option<Binding>,
}

/// A mobility binding: where packets for a mobile node are tunneled to, and until when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Binding {
    /// The care-of address, where the tunnel ends.
    pub(crate) care_of: Ipv4Addr,
    /// The granted lifetime in seconds.
    pub(crate) granted: u16,
    /// When the binding ends, by the wall clock: the monotonic clock does not continue after a restart.
    pub(crate) ends: WallTime,
}

/// The first byte of a record: the version of its format.
const FORMAT: u8 = 1;

impl BindingRecord {
    pub(crate) fn emit(&self) -> Vec<u8> {
        let mut out = vec![FORMAT];
        out.extend_from_slice(&self.identification.to_be_bytes());
        if let Some(Binding { care_of, granted, ends }) = self.binding {
            out.extend_from_slice(&care_of.octets());
            out.extend_from_slice(&granted.to_be_bytes());
            out.extend_from_slice(&ends.0.to_be_bytes());
        }
        out
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(bytes, Malformed("record_short"));
        if r.u8()? != FORMAT {
            return Err(Malformed("record_format"));
        }
        let identification = r.u64()?;
        if r.is_empty() {
            return Ok(Self { identification, binding: None });
        }
        let (care_of, granted) = (Ipv4Addr::from(r.array::<4>()?), r.u16()?);
        let ends = WallTime(r.u64()?.cast_signed());
        if !r.is_empty() {
            return Err(Malformed("record_long"));
        }
        Ok(Self { identification, binding: Some(Binding { care_of, granted, ends }) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_back() {
        let binding = Binding { care_of: Ipv4Addr::new(10, 3, 0, 1), granted: 300, ends: WallTime(-7) };
        for record in [
            BindingRecord { identification: 7 << 32, binding: None },
            BindingRecord { identification: 9, binding: Some(binding) },
        ] {
            let bytes = record.emit();
            assert_eq!(BindingRecord::parse(&bytes), Ok(record));
            let refusal = |bytes: &[u8]| BindingRecord::parse(bytes).unwrap_err().0;
            for length in (0..bytes.len()).filter(|length| *length != 9) {
                assert_eq!(refusal(&bytes[..length]), "record_short", "{length}");
            }
            assert_eq!(refusal(&[&[2], &bytes[1..]].concat()), "record_format");
        }
        let record = BindingRecord { identification: 9, binding: Some(binding) };
        assert_eq!(BindingRecord::parse(&[record.emit(), vec![0]].concat()).unwrap_err().0, "record_long");
    }
}
