//! The number of segments that may be sent in a recovery (RFC 6937, with the slow start reduction bound). The window
//! falls in proportion to what arrives, until it equals the threshold.

/// The counters of proportional rate reduction in a recovery, in segments (RFC 6937, section 3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Prr {
    /// `prr_delivered`: the number of segments that arrived since the recovery began.
    pub delivered: u32,
    /// `prr_out`: the number of segments sent since the recovery began.
    pub out: u32,
    /// `RecoverFS`: the congestion window when the recovery began, in segments.
    pub before: u32,
}

impl Prr {
    /// Returns the counters of a recovery that begins with a window of `before` segments.
    pub(crate) const fn new(before: u32) -> Self {
        Self { delivered: 0, out: 0, before }
    }

    /// Returns the number of segments that may be sent after `delivered` segments arrived, with `pipe` segments in
    /// flight (`sndcnt`). `ssthresh` is the threshold, in segments. The first segment of a recovery may always be sent.
    /// `safe`: the acknowledgment advanced, and showed no further loss. Only if `safe`, slow start adds a segment, as
    /// in the kernel.
    pub(crate) fn count(&mut self, ssthresh: u32, pipe: u32, delivered: u32, safe: bool) -> u32 {
        self.delivered += delivered;
        let count = if pipe > ssthresh {
            let part = u64::from(self.delivered) * u64::from(ssthresh);
            (part.div_ceil(u64::from(self.before.max(1))) as u32).saturating_sub(self.out)
        } else {
            let limit = self.delivered.saturating_sub(self.out).max(delivered) + u32::from(safe);
            limit.min(ssthresh - pipe)
        };
        count.max(u32::from(self.out == 0)) // the fast retransmit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After one loss of 20 segments, the window is to be reduced to 10. So one segment is sent for every two that
    /// arrive (RFC 6937, section 3.1).
    #[test]
    fn one_loss_of_twenty() {
        let (mut prr, mut sent) = (Prr::new(20), Vec::new());
        let mut pipe = 19;
        for ack in 0..19 {
            pipe -= u32::from(ack > 0);
            let count = prr.count(10, pipe, 1, false);
            prr.out += count;
            pipe += count;
            sent.push(count);
        }
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0]);
        assert_eq!(pipe, 10, "the threshold, and no burst on the way");
    }

    /// After a loss of 15 of 20 segments, four acknowledgments release at most eight segments. The window does not jump
    /// to the threshold (RFC 6937, section 3.1).
    #[test]
    fn a_burst_of_losses() {
        let mut prr = Prr::new(20);
        let mut pipe = 4;
        let mut sent = Vec::new();
        for _ in 0..4 {
            let count = prr.count(10, pipe, 1, true);
            prr.out += count;
            pipe = pipe + count - 1;
            sent.push(count);
        }
        assert_eq!(sent, [2, 2, 2, 2], "slow start: two for one");
        let mut careful = Prr::new(20);
        let conservative: Vec<_> = (0..4)
            .map(|_| {
                let n = careful.count(10, 4, 1, false);
                careful.out += n;
                n
            })
            .collect();
        assert_eq!(conservative, [1, 1, 1, 1], "with more losses: conservation of packets");
        assert_eq!(
            Prr { delivered: 30, out: 1, before: 20 }.count(10, 8, 9, true),
            2,
            "no more than the threshold"
        );
    }

    #[test]
    fn the_first_goes_whatever_the_pipe() {
        assert_eq!(Prr::new(20).count(10, 40, 0, false), 1);
        assert_eq!(Prr { out: 1, ..Prr::new(20) }.count(10, 40, 1, false), 0);
    }
}
