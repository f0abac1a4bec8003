//! Records of the number of entries that the roles of a node hold.

use super::Node;
use crate::{Act, Mark, Outbox, mark};
use table::RoleId;

/// Whether the node records the number of entries of its roles ([`crate::Role::entries`]).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum EntryRecords {
    /// It does not.
    #[default]
    Off,
    /// Nothing was recorded yet.
    First,
    /// The number that was recorded last.
    Last(u32),
}

impl Node {
    /// Makes the node record the number of entries of its roles: after its first input, and after each input that changes
    /// the number. The mark has the role `node`, the name [`crate::mark::ENTRIES`] and the field `count`.
    pub fn record_state(&mut self) {
        self.net().entries = EntryRecords::First;
    }

    /// Records the number of entries, if it has changed and the node records it.
    pub(crate) fn record_entries(&mut self, out: &mut Outbox) {
        if let Some(net) = self.net.as_mut().filter(|net| net.entries != EntryRecords::Off) {
            let count = self.roles.iter().map(|role| role.entries()).sum::<usize>();
            let last = EntryRecords::Last(u32::try_from(count).unwrap_or(u32::MAX));
            if std::mem::replace(&mut net.entries, last) != last {
                out.act(
                    RoleId::NODE,
                    Act::Mark(Mark::new(mark::NODE, mark::ENTRIES).with("count", count as u64)),
                );
            }
        }
    }
}
