//! The home agent's record of a mobile node. The record is kept across restarts.

use wire::{Ipv4Addr, Malformed, Reader, WallTime};

/// The state of a mobile node since its last accepted registration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BindingRecord {
    /// The Identification of the request that was accepted last. With timestamps, a new request must have a later one.
    pub(crate) identification: u64,
    /// With nonces: the nonce that the next request must have in the high half of its Identification. `None` with
    /// timestamps.
    pub(crate) nonce: Option<u32>,
    /// The current bindings, each with a different care-of address, the oldest first. Empty if the mobile node has
    /// deregistered, or its last binding has expired.
    pub(crate) bindings: Vec<Binding>,
}

/// A mobility binding: where packets for a mobile node are tunneled to, and until when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Binding {
    /// The care-of address, where the tunnel ends.
    pub(crate) care_of: Ipv4Addr,
    /// The flags of the request, in the bits of the message.
    pub(crate) flags: u8,
    /// The granted lifetime in seconds.
    pub(crate) granted: u16,
    /// The SPI of the association that signed the request; `None` in a record of an older format.
    pub(crate) spi: Option<u32>,
    /// When the care-of address was registered first, by the wall clock. Renewals do not change it.
    pub(crate) since: WallTime,
    /// When the binding ends, by the wall clock: the monotonic clock does not continue after a restart.
    pub(crate) ends: WallTime,
}

/// The first byte of a record: the version of its format. Records of [`FORMAT_1`] are read too.
const FORMAT: u8 = 2;
/// The first format: at most one binding, without flags, SPI and start; no nonce.
const FORMAT_1: u8 = 1;

impl BindingRecord {
    /// Returns the binding of a care-of address; `None` if there is none.
    pub(crate) fn of(&self, care_of: Ipv4Addr) -> Option<&Binding> {
        self.bindings.iter().find(|binding| binding.care_of == care_of)
    }

    pub(crate) fn emit(&self) -> Vec<u8> {
        let mut out = vec![FORMAT];
        out.extend_from_slice(&self.identification.to_be_bytes());
        out.push(self.nonce.is_some().into());
        out.extend_from_slice(&self.nonce.unwrap_or(0).to_be_bytes());
        for Binding { care_of, flags, granted, spi, since, ends } in &self.bindings {
            out.extend_from_slice(&care_of.octets());
            out.push(*flags);
            out.extend_from_slice(&granted.to_be_bytes());
            // SPI 0 is reserved, so it can mean that the SPI is not known.
            out.extend_from_slice(&spi.unwrap_or(0).to_be_bytes());
            out.extend_from_slice(&since.0.to_be_bytes());
            out.extend_from_slice(&ends.0.to_be_bytes());
        }
        out
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(bytes, Malformed("record_short"));
        match r.u8()? {
            FORMAT_1 => Self::parse_1(&mut r),
            FORMAT => Self::parse_2(&mut r),
            _ => Err(Malformed("record_format")),
        }
    }

    fn parse_1(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut record = Self { identification: r.u64()?, nonce: None, bindings: Vec::new() };
        if r.is_empty() {
            return Ok(record);
        }
        let (care_of, granted) = (Ipv4Addr::from(r.array::<4>()?), r.u16()?);
        let ends = WallTime(r.u64()?.cast_signed());
        if !r.is_empty() {
            return Err(Malformed("record_long"));
        }
        let since = WallTime(ends.0.saturating_sub(i64::from(granted) * 1_000_000_000));
        record.bindings.push(Binding { care_of, flags: 0, granted, spi: None, since, ends });
        Ok(record)
    }

    fn parse_2(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let identification = r.u64()?;
        let nonce = match (r.u8()?, r.u32()?) {
            (0, _) => None,
            (1, nonce) => Some(nonce),
            _ => return Err(Malformed("record_nonce")),
        };
        let mut record = Self { identification, nonce, bindings: Vec::new() };
        while !r.is_empty() {
            let binding = Binding {
                care_of: Ipv4Addr::from(r.array::<4>()?),
                flags: r.u8()?,
                granted: r.u16()?,
                spi: Some(r.u32()?).filter(|spi| *spi != 0),
                since: WallTime(r.u64()?.cast_signed()),
                ends: WallTime(r.u64()?.cast_signed()),
            };
            if record.of(binding.care_of).is_some() {
                return Err(Malformed("record_care_of_twice"));
            }
            record.bindings.push(binding);
        }
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(last: u8) -> Binding {
        Binding {
            care_of: Ipv4Addr::new(10, 3, 0, last),
            flags: 0x82,
            granted: 300,
            spi: Some(256),
            since: WallTime(-300_000_000_007),
            ends: WallTime(-7),
        }
    }

    #[test]
    fn what_is_kept_is_read_back() {
        for record in [
            BindingRecord { identification: 7 << 32, nonce: None, bindings: Vec::new() },
            BindingRecord { identification: 9, nonce: Some(0), bindings: vec![binding(1)] },
            BindingRecord { identification: 9, nonce: Some(5), bindings: vec![binding(1), binding(2)] },
        ] {
            let bytes = record.emit();
            assert_eq!(BindingRecord::parse(&bytes), Ok(record.clone()));
            let refusal = |bytes: &[u8]| BindingRecord::parse(bytes).unwrap_err().0;
            for length in (0..bytes.len()).filter(|length| *length < 14 || (length - 14) % 27 != 0) {
                assert_eq!(refusal(&bytes[..length]), "record_short", "{length}");
            }
            assert_eq!(refusal(&[&[3], &bytes[1..]].concat()), "record_format");
        }
        let record = BindingRecord { identification: 9, nonce: None, bindings: vec![binding(1), binding(1)] };
        let refusal = |bytes: &[u8]| BindingRecord::parse(bytes).unwrap_err().0;
        assert_eq!(refusal(&record.emit()), "record_care_of_twice");
        let mut bytes = BindingRecord { bindings: Vec::new(), ..record }.emit();
        bytes[9] = 2;
        assert_eq!(refusal(&bytes), "record_nonce");
    }

    /// The bytes are those that an earlier version has stored.
    #[test]
    fn a_record_of_the_first_format_is_read() {
        let mut bytes = vec![1, 0, 0, 0, 0, 0, 0, 0, 9];
        let none = BindingRecord { identification: 9, nonce: None, bindings: Vec::new() };
        assert_eq!(BindingRecord::parse(&bytes), Ok(none));
        bytes.extend_from_slice(&[10, 3, 0, 1, 1, 44, 0, 0, 0, 0, 0, 0, 0, 7]);
        let ends = WallTime(7);
        let old = Binding { flags: 0, spi: None, since: WallTime(7 - 300_000_000_000), ends, ..binding(1) };
        let record = BindingRecord { identification: 9, nonce: None, bindings: vec![old] };
        assert_eq!(BindingRecord::parse(&bytes), Ok(record));
        for length in (0..bytes.len()).filter(|length| *length != 9) {
            assert_eq!(BindingRecord::parse(&bytes[..length]).unwrap_err().0, "record_short", "{length}");
        }
        assert_eq!(BindingRecord::parse(&[bytes, vec![0]].concat()).unwrap_err().0, "record_long");
    }
}
