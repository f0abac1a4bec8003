//! The checks of a DNS update, and its changes (RFC 2136, section 3). If one check fails, no change is made.

use crate::location::{ADDRESSES, Location, TEXTS, is_text};
use crate::message::{Message, Name, Rcode, ResourceRecord, class, kind};
use std::collections::BTreeSet;

/// An update that may change the records of one name.
pub(crate) struct Update<'a> {
    pub(crate) message: &'a Message,
    pub(crate) zone: &'a Name,
    /// The name that the sender may change.
    pub(crate) own: &'a Name,
}

impl Update<'_> {
    /// Returns the state of the sender's name after this update. `place` is the present state of the sender's name.
    /// `places` returns the present state of any name; `None` if no mobile node has the name. Fails with the result
    /// code of the answer if the update is refused.
    pub(crate) fn judge<'p>(
        &self,
        place: &Location,
        places: impl Fn(&Name) -> Option<&'p Location>,
    ) -> Result<Location, Rcode> {
        self.zone()?;
        self.prerequisites(places)?;
        self.permission()?;
        let mut new = place.clone();
        for change in &self.message.authority {
            Self::apply(change, &mut new)?;
        }
        Ok(new)
    }

    /// Checks the zone section (RFC 2136, section 3.1).
    fn zone(&self) -> Result<(), Rcode> {
        let [zone] = self.message.questions.as_slice() else { return Err(Rcode::FormErr) };
        if zone.kind != kind::SOA {
            return Err(Rcode::FormErr);
        }
        if zone.class != class::IN || zone.name != *self.zone {
            return Err(Rcode::NotAuth);
        }
        Ok(())
    }

    /// Checks the prerequisites (RFC 2136, section 3.2).
    fn prerequisites<'p>(&self, places: impl Fn(&Name) -> Option<&'p Location>) -> Result<(), Rcode> {
        let mut sets: BTreeSet<(&Name, u16)> = BTreeSet::new();
        for wanted in &self.message.answers {
            if wanted.ttl != 0 {
                return Err(Rcode::FormErr);
            }
            if !wanted.name.is_within(self.zone) {
                return Err(Rcode::NotZone);
            }
            let place = places(&wanted.name);
            let used = wanted.name == *self.zone || place.is_some_and(|place| !place.is_empty());
            let has = place.is_some_and(|place| !place.data(wanted.kind).is_empty());
            let (holds, otherwise) = match (wanted.class, wanted.kind) {
                (class::ANY | class::NONE, _) if !wanted.data.is_empty() => return Err(Rcode::FormErr),
                (class::ANY, kind::ANY) => (used, Rcode::NxDomain),
                (class::ANY, _) => (has, Rcode::NxRrSet),
                (class::NONE, kind::ANY) => (!used, Rcode::YxDomain),
                (class::NONE, _) => (!has, Rcode::YxRrSet),
                (class::IN, meta) if meta >= kind::FIRST_META => return Err(Rcode::FormErr),
                (class::IN, _) => {
                    sets.insert((&wanted.name, wanted.kind));
                    (true, Rcode::NxRrSet)
                }
                _ => return Err(Rcode::FormErr),
            };
            if !holds {
                return Err(otherwise);
            }
        }
        // With class IN, the records of a name and type must be exactly those of the prerequisites (RFC 2136, section
        // 2.4.2).
        for (name, kind) in sets {
            let same = |record: &&ResourceRecord| {
                record.class == class::IN && record.name == *name && record.kind == kind
            };
            let wanted: BTreeSet<Vec<u8>> =
                self.message.answers.iter().filter(same).map(|record| record.data.clone()).collect();
            let there = places(name).map(|place| place.data(kind)).unwrap_or_default();
            if wanted != there.into_iter().collect() {
                return Err(Rcode::NxRrSet);
            }
        }
        Ok(())
    }

    /// Checks the form of the changes, and whether the sender may make them (RFC 2136, sections 3.3 and 3.4.1).
    fn permission(&self) -> Result<(), Rcode> {
        for change in &self.message.authority {
            if !change.name.is_within(self.zone) {
                return Err(Rcode::NotZone);
            }
            let bare = change.ttl == 0 && change.data.is_empty();
            let well_formed = match change.class {
                class::IN => change.kind < kind::FIRST_META,
                class::ANY => bare && (change.kind < kind::FIRST_META || change.kind == kind::ANY),
                class::NONE => change.ttl == 0 && change.kind < kind::FIRST_META,
                _ => false,
            };
            if !well_formed {
                return Err(Rcode::FormErr);
            }
            if change.name != *self.own {
                return Err(Rcode::Refused);
            }
        }
        Ok(())
    }

    /// Applies one change (RFC 2136, section 3.4.2).
    fn apply(change: &ResourceRecord, place: &mut Location) -> Result<(), Rcode> {
        match (change.class, change.kind) {
            (class::ANY, kind::ANY) => {
                place.addresses.clear();
                place.texts.clear();
            }
            (class::ANY, kind::A) => place.addresses.clear(),
            (class::ANY, kind::TXT) => place.texts.clear(),
            (class::NONE, kind::A) => place.addresses.retain(|known| known.octets() != *change.data),
            (class::NONE, kind::TXT) => place.texts.retain(|known| *known != change.data),
            (class::IN, kind::A) => {
                let address = change.as_address().ok_or(Rcode::FormErr)?;
                if !is_host(address) {
                    return Err(Rcode::Refused);
                }
                add(&mut place.addresses, address, ADDRESSES)?;
            }
            (class::IN, kind::TXT) if is_text(&change.data) => {
                add(&mut place.texts, change.data.clone(), TEXTS)?;
            }
            (class::IN, kind::TXT) => return Err(Rcode::FormErr),
            // Only A and TXT records can be added.
            (class::IN, _) => return Err(Rcode::Refused),
            _ => {}
        }
        Ok(())
    }
}

/// Returns whether `address` can be a host's: not unspecified, loopback, broadcast or multicast.
const fn is_host(address: wire::Ipv4Addr) -> bool {
    let nowhere = address.is_unspecified() || address.is_loopback() || address.is_broadcast();
    !(nowhere || address.is_multicast())
}

fn add<T: PartialEq>(all: &mut Vec<T>, new: T, most: usize) -> Result<(), Rcode> {
    if all.contains(&new) {
        return Ok(());
    }
    if all.len() >= most {
        return Err(Rcode::Refused);
    }
    all.push(new);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Question;
    use wire::Ipv4Addr;

    const OLD: Ipv4Addr = Ipv4Addr::new(10, 1, 8, 100);
    const NEW: Ipv4Addr = Ipv4Addr::new(10, 1, 6, 100);

    /// The name, class, type and data of a record.
    type Wish<'a> = (&'a str, u16, u16, &'a [u8]);

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn record(of: &str, class: u16, kind: u16, data: &[u8]) -> ResourceRecord {
        ResourceRecord { name: name(of), kind, class, ttl: 0, data: data.to_vec() }
    }

    fn judge(prerequisites: &[ResourceRecord], changes: &[ResourceRecord]) -> Result<Location, Rcode> {
        let zone = Question { name: name("example"), kind: kind::SOA, class: class::IN };
        let (answers, authority) = (prerequisites.to_vec(), changes.to_vec());
        let message = Message { questions: vec![zone], answers, authority, ..Message::default() };
        judge_message(&message)
    }

    fn judge_message(message: &Message) -> Result<Location, Rcode> {
        let (zone, own) = (name("example"), name("mn.example"));
        let place = Location { addresses: vec![OLD], texts: vec![b"\x01a".to_vec()], ..Location::default() };
        let update = Update { message, zone: &zone, own: &own };
        update.judge(&place, |asked| (*asked == own).then_some(&place))
    }

    #[test]
    fn an_address_takes_the_place_of_another_in_one_message() {
        let gone = record("mn.example", class::ANY, kind::A, &[]);
        let new = record("MN.example", class::IN, kind::A, &NEW.octets());
        let moved = judge(&[], &[gone, new.clone()]).unwrap();
        assert_eq!(moved.addresses, [NEW]);
        assert_eq!(judge(&[], &[new]).unwrap().addresses, [OLD, NEW]);
        let one = record("mn.example", class::NONE, kind::A, &OLD.octets());
        assert!(judge(&[], &[one]).unwrap().addresses.is_empty());
        assert!(judge(&[], &[record("mn.example", class::ANY, kind::ANY, &[])]).unwrap().is_empty());
        assert!(judge(&[], &[record("mn.example", class::ANY, 28, &[])]).is_ok(), "what is not there can go");
    }

    #[test]
    fn prerequisites_hold_or_nothing_changes() {
        let cases: &[(Wish<'_>, Option<Rcode>)] = &[
            (("mn.example", class::ANY, kind::ANY, &[]), None),
            (("other.example", class::ANY, kind::ANY, &[]), Some(Rcode::NxDomain)),
            (("example", class::ANY, kind::ANY, &[]), None),
            (("mn.example", class::ANY, kind::TXT, &[]), None),
            (("mn.example", class::ANY, 28, &[]), Some(Rcode::NxRrSet)),
            (("mn.example", class::NONE, kind::ANY, &[]), Some(Rcode::YxDomain)),
            (("mn.example", class::NONE, kind::A, &[]), Some(Rcode::YxRrSet)),
            (("mn.example", class::NONE, 28, &[]), None),
            (("mn.example", class::IN, kind::TXT, b"\x01a"), None),
            (("mn.example", class::IN, kind::TXT, b"\x01b"), Some(Rcode::NxRrSet)),
            (("mn.example", class::IN, kind::ANY, b"\x01b"), Some(Rcode::FormErr)),
            (("mn.example", class::ANY, kind::A, &[1]), Some(Rcode::FormErr)),
            (("mn.example", 3, kind::A, &[]), Some(Rcode::FormErr)),
            (("mn.elsewhere", class::ANY, kind::A, &[]), Some(Rcode::NotZone)),
        ];
        for ((of, class, kind, data), refused) in cases {
            let verdict = judge(&[record(of, *class, *kind, data)], &[]);
            assert_eq!(verdict.err(), *refused, "{of} {class} {kind} {data:?}");
        }
        // The TTL of a prerequisite must be zero (RFC 2136, section 3.2).
        for class in [class::ANY, class::NONE, class::IN] {
            let lasting = ResourceRecord { ttl: 1, ..record("mn.example", class, kind::TXT, b"") };
            assert_eq!(judge(&[lasting], &[]).err(), Some(Rcode::FormErr), "{class}");
        }
        let lasting = ResourceRecord { ttl: 1, ..record("mn.example", class::IN, kind::TXT, b"\x01a") };
        assert_eq!(judge(&[lasting], &[]).err(), Some(Rcode::FormErr));
        let both = [b"\x01a", b"\x01b"].map(|data| record("mn.example", class::IN, kind::TXT, data));
        assert_eq!(judge(&both, &[]).err(), Some(Rcode::NxRrSet), "exactly these, no fewer");
    }

    #[test]
    fn what_may_not_be_changed_is_refused_and_what_cannot_be_read_too() {
        let cases: &[(&str, u16, u16, &[u8], Rcode)] = &[
            ("other.example", class::IN, kind::A, &[10, 0, 0, 1], Rcode::Refused),
            ("example", class::ANY, kind::ANY, &[], Rcode::Refused),
            ("mn.elsewhere", class::IN, kind::A, &[10, 0, 0, 1], Rcode::NotZone),
            ("mn.example", class::IN, 28, &[0; 16], Rcode::Refused),
            ("mn.example", class::IN, kind::A, &[10, 0, 0], Rcode::FormErr),
            ("mn.example", class::IN, kind::A, &[224, 0, 0, 1], Rcode::Refused),
            ("mn.example", class::IN, kind::A, &[127, 0, 0, 1], Rcode::Refused),
            ("mn.example", class::IN, kind::TXT, b"\x05a", Rcode::FormErr),
            ("mn.example", class::IN, kind::ANY, &[], Rcode::FormErr),
            ("mn.example", class::ANY, kind::A, &[1], Rcode::FormErr),
            ("mn.example", class::ANY, 252, &[], Rcode::FormErr),
            ("mn.example", 9, kind::A, &[], Rcode::FormErr),
        ];
        for (of, class, kind, data, refused) in cases {
            let verdict = judge(&[], &[record(of, *class, *kind, data)]);
            assert_eq!(verdict.err(), Some(*refused), "{of} {class} {kind} {data:?}");
        }
        let many: Vec<ResourceRecord> =
            (1..10).map(|n| record("mn.example", class::IN, kind::A, &[10, 0, 0, n])).collect();
        assert_eq!(judge(&[], &many).err(), Some(Rcode::Refused), "more than are kept");
    }

    #[test]
    fn another_zone_is_not_ours() {
        let of = |text: &str, kind, count| {
            let zone = Question { name: name(text), kind, class: class::IN };
            judge_message(&Message { questions: vec![zone; count], ..Message::default() }).err()
        };
        assert_eq!(of("example", kind::SOA, 1), None);
        assert_eq!(of("elsewhere", kind::SOA, 1), Some(Rcode::NotAuth));
        assert_eq!(of("example", kind::A, 1), Some(Rcode::FormErr));
        assert_eq!([of("example", kind::SOA, 0), of("example", kind::SOA, 2)], [Some(Rcode::FormErr); 2]);
    }
}
