//! Detection of spurious time-outs (RFC 5682, section 3.1: F-RTO with selective acknowledgments). After a time-out, new
//! data is sent instead of segments that seem lost. The next acknowledgment shows whether the original segments
//! arrived.

/// The step of F-RTO (RFC 5682, section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum FRto {
    /// F-RTO is not in progress.
    #[default]
    Off,
    /// After a time-out, the next acknowledgment decides (RFC 5682, section 3.1, steps 2 and 3).
    Asked,
    /// Step 2b: only new data may be sent until the next acknowledgment.
    NewData,
}

/// What an acknowledgment after a time-out shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate condition of the RFC's steps")]
pub(crate) struct Seen {
    /// Whether the acknowledgment covers data, cumulatively or selectively, that was sent once and before the time-out.
    pub(crate) original: bool,
    /// Whether the cumulative acknowledgment advanced.
    pub(crate) advanced: bool,
    /// Whether the acknowledgment covers everything sent before the time-out.
    pub(crate) recovered: bool,
    /// Whether new data was sent since the time-out.
    pub(crate) new_sent: bool,
    /// Whether the acknowledgment is a duplicate, or acknowledges data selectively.
    pub(crate) duplicate: bool,
    /// Whether there is new data, and the peer's window has room for it.
    pub(crate) can_send: bool,
}

/// The decision after an acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// The time-out was spurious: nothing is lost.
    Spurious,
    /// New data is to be sent.
    SendNew,
    /// Lost segments are to be sent again.
    Retransmit,
}

impl FRto {
    /// Decides what to do after an acknowledgment (RFC 5682, section 3.1, steps 2 and 3).
    pub(crate) fn judge(&mut self, seen: Seen) -> Step {
        let before = std::mem::take(self);
        if before == Self::Off {
            return Step::Retransmit;
        }
        if seen.original {
            return Step::Spurious; // step 3b
        }
        if seen.new_sent {
            // Step 3a: a duplicate shows that the loss was real.
            *self = if seen.duplicate { Self::Off } else { Self::Asked };
        } else if seen.advanced && !seen.recovered {
            if seen.can_send {
                *self = Self::NewData;
                return Step::SendNew;
            }
        } else if !seen.advanced {
            *self = Self::Asked;
        }
        Step::Retransmit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADVANCED: Seen = Seen {
        original: false,
        advanced: true,
        recovered: false,
        new_sent: false,
        duplicate: false,
        can_send: true,
    };

    /// A time-out is spurious if an original arrives after new data was sent (RFC 5682, section 3.1, steps 1, 2b and
    /// 3b).
    #[test]
    fn what_was_only_late_is_found_out() {
        let mut forward = FRto::Asked;
        assert_eq!((forward.judge(ADVANCED), forward), (Step::SendNew, FRto::NewData));
        let late = Seen { original: true, new_sent: true, ..ADVANCED };
        assert_eq!((forward.judge(late), forward), (Step::Spurious, FRto::Off));
    }

    /// Lost segments are sent again in three cases (RFC 5682, section 3.1). An acknowledgment covers everything sent
    /// before the time-out (step 2a), a duplicate arrives after new data was sent (step 3a), or no new data can be sent
    /// (step 2b).
    #[test]
    fn what_was_lost_is_lost() {
        let mut forward = FRto::Asked;
        assert_eq!(
            (forward.judge(Seen { recovered: true, ..ADVANCED }), forward),
            (Step::Retransmit, FRto::Off)
        );
        let mut forward = FRto::NewData;
        let duplicate = Seen { advanced: false, duplicate: true, new_sent: true, ..ADVANCED };
        assert_eq!((forward.judge(duplicate), forward), (Step::Retransmit, FRto::Off));
        let mut forward = FRto::Asked;
        assert_eq!(
            (forward.judge(Seen { can_send: false, ..ADVANCED }), forward),
            (Step::Retransmit, FRto::Off)
        );
    }

    #[test]
    fn who_does_not_ask_learns_nothing() {
        let mut forward = FRto::Off;
        assert_eq!(
            (forward.judge(Seen { original: true, ..ADVANCED }), forward),
            (Step::Retransmit, FRto::Off)
        );
    }
}
