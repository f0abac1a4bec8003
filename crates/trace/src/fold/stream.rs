//! The 64-bit words that operations and events of streams add to a fingerprint. Of bytes that are written or read, only
//! the number is added, because the packets on the links contain the bytes. The bytes of a connection that is moved,
//! and staged bytes, are added.

use crate::{Fingerprinter, Fold};
use node::stream::OwnedStreamEvent;
use node::{
    AppChange, AppEvent, Guard, MigrateEvent, MigrateOp, SocketOption, StreamEvent, StreamId, StreamOp,
    Transport, Tuple,
};

fold_newtype! {
    StreamId(number)
}

fold_struct! {
    Tuple { local, remote }
    AppEvent { stream, change }
}

fold_enum!(Transport { 0 Udp, 1 Tcp, 2 Role(name) });
fold_enum!(Guard { 0 Drop, 1 Hold(most), 2 Reset });
fold_enum!(SocketOption { 0 SendBuffer(bytes), 1 ReceiveBuffer(bytes), 2 Nagle(on), 3 DontFragment(on) });
fold_enum!(MigrateOp {
    0 Freeze,
    1 Export,
    2 Import(state),
    3 Thaw,
    4 Forget,
    5 Guard(tuple, guard),
    6 Join(other, staged),
    7 Part,
});
fold_enum!(MigrateEvent<'_> { 0 Exported(state), 1 Imported, 2 Refused(why), 3 Parted(back) });
fold_enum!(AppChange {
    0 Asked { role, by, local, peer },
    1 Opened(local),
    2 Accepted { new, local, peer },
    3 Read(bytes),
    4 Finished,
    5 Closed(why),
});

impl Fold for StreamOp {
    fn fold(&self, into: &mut Fingerprinter) {
        match self {
            Self::Open { by, local, peer, foreign } => (0u64, by, local, (peer, foreign)).fold(into),
            Self::Listen { by, local, foreign } => (1u64, by, local, foreign).fold(into),
            Self::Read(most) => (2u64, most).fold(into),
            Self::Write(bytes) => (3u64, bytes.len()).fold(into),
            Self::Finish => into.word(4),
            Self::Abort => into.word(5),
            Self::Set(option) => (6u64, option).fold(into),
            Self::Migrate(op) => (7u64, op).fold(into),
        }
    }
}

/// Adds the variant and its fields; of `Data`, only the number of bytes. This type does not contain the ids of the
/// stream and the packet. The implementation for [`OwnedStreamEvent`] adds these ids.
impl Fold for StreamEvent<'_> {
    fn fold(&self, into: &mut Fingerprinter) {
        match self {
            Self::Opened(local) => (0u64, local).fold(into),
            Self::Accepted(new, local, peer) => (1u64, new, local, peer).fold(into),
            Self::Data(bytes) => (2u64, bytes.len()).fold(into),
            Self::Room(more) => (3u64, more).fold(into),
            Self::Finished => into.word(4),
            Self::Closed(why) => (5u64, why).fold(into),
            Self::Migrate(event) => (6u64, event).fold(into),
        }
    }
}

impl Fold for OwnedStreamEvent {
    fn fold(&self, into: &mut Fingerprinter) {
        let (stream, event) = self.event();
        (stream, event).fold(into);
        if let Self::Data(_, packet, _) = self {
            packet.fold(into);
        }
    }
}
