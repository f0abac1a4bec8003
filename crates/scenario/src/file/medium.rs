//! The media of links, as the fabric has them.

use link::{Access, Air, Burst, Contention};

/// Returns how the senders of a link share its medium, without a channel and without beacons.
pub(super) fn shared_medium(contention: Option<super::Contention>, access: super::Access) -> Air {
    Air {
        contention: contention.map(|of| Contention { slot: of.slot, window: of.window, most: of.most }),
        access: match access {
            super::Access::Fair => Access::Fair,
            super::Access::Fifo => Access::Fifo,
        },
        ..Air::default()
    }
}

pub(super) const fn burst(super::Burst { enter, leave, loss }: super::Burst) -> Burst {
    Burst { enter, leave, loss }
}
