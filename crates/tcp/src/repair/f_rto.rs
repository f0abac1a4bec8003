//! Detection of spurious time-outs (RFC 5682, section 3.1: F-RTO with selective acknowledgments). New data is sent
//! instead of what seems lost. The next acknowledgment shows whether the original segments arrived.

/// The step of F-RTO (RFC 5682, section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum FRto {
    /// F-RTO is not in progress.
    #[default]
    Off,
    /// Step 1: the first segment was sent again.
    Asked,
    /// Step 2b: only new data may be sent until the next acknowledgment.
    NewData,
}

/// What an acknowledgment after a time-out shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate condition of the RFC's steps")]
pub(crate) struct Seen {
    /// It acknowledges, cumulatively or selectively, data that was sent once and before the time-out.
    pub(crate) original: bool,
    /// The cumulative acknowledgment advanced.
    pub(crate) advanced: bool,
    /// It acknowledges everything sent before the time-out.
    pub(crate) recovered: bool,
    /// New data was sent since the time-out.
    pub(crate) new_sent: bool,
    /// It is a duplicate, or acknowledges something selectively.
    pub(crate) duplicate: bool,
    /// There is new data, and the peer's window has room for it.
    pub(crate) can_send: bool,
}

/// The decision after an acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// The time-out was spurious: nothing is lost.
    Spurious,
    /// New data is to be sent.
    SendNew,
    /// What is lost is to be sent again.
    Retransmit,
}

impl FRto {
    /// Steps 2 and 3.
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

    /// RFC 5682, section 3.1: steps 1, 2b, 3b.
    #[test]
    fn what_was_only_late_is_found_out() {
        let mut forward = FRto::Asked;
        assert_eq!((forward.judge(ADVANCED), forward), (Step::SendNew, FRto::NewData));
        let late = Seen { original: true, new_sent: true, ..ADVANCED };
        assert_eq!((forward.judge(late), forward), (Step::Spurious, FRto::Off));
    }

    /// Steps 2a and 3a.
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
