//! The nonces of the Binding Updates to one correspondent (draft-ietf-mobileip-optim-09, section 4.3).

use node::Rng;
use std::collections::VecDeque;
use wire::Reason;

/// A Binding Request was answered already, or does not have one of the nonces that the last Binding Updates to this correspondent
/// have announced. So it may be a repetition.
pub const STALE_REQUEST: Reason = Reason("stale_request");

/// The number of Updates of which the announced nonce is known (not from an RFC).
const MOST_ANNOUNCED: usize = 16;

/// What is known about the nonces of one correspondent.
#[derive(Debug, Default)]
pub(super) struct Nonces {
    /// The nonce of the next Update; `None` before the first.
    next: Option<u32>,
    /// The nonces that the last Updates have announced, from the oldest to the latest.
    announced: VecDeque<u32>,
    /// The Identifications of the Binding Requests with one of these nonces that were answered. Each answer announces a nonce, so
    /// there are at most as many.
    answered: Vec<u64>,
}

impl Nonces {
    /// Returns the Identification of the next Update. The high half is the nonce of the Update after it.
    pub(super) fn identification(&mut self, rng: &mut Rng) -> u64 {
        let next = rng.draw() as u32;
        let this = self.next.replace(next).unwrap_or_else(|| rng.draw() as u32);
        if self.announced.len() == MOST_ANNOUNCED {
            self.announced.pop_front();
        }
        self.announced.push_back(next);
        let announced = &self.announced;
        self.answered.retain(|asked| announced.contains(&nonce_of(*asked)));
        u64::from(next) << 32 | u64::from(this)
    }

    /// Checks the Identification of an authentic Binding Request. A repeated one would change the nonce of the next Update to one that
    /// the correspondent does not accept any more.
    pub(super) fn check(&self, asked: u64) -> Result<(), Reason> {
        let is_new = self.announced.contains(&nonce_of(asked)) && !self.answered.contains(&asked);
        if is_new { Ok(()) } else { Err(STALE_REQUEST) }
    }

    /// Notes a Binding Request that is answered by the next Update.
    pub(super) fn answer(&mut self, asked: u64) {
        self.next = Some(asked as u32);
        self.answered.push(asked);
    }
}

/// Returns the nonce of this agent in the Identification of a Binding Request.
const fn nonce_of(asked: u64) -> u32 {
    (asked >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_answered_once_and_only_with_a_nonce_that_was_announced() {
        let (mut nonces, mut rng) = (Nonces::default(), Rng::new(1));
        assert_eq!(nonces.check(7), Err(STALE_REQUEST), "no Update was sent");
        let announced = (nonces.identification(&mut rng) >> 32) << 32;
        assert_eq!(nonces.check(7), Err(STALE_REQUEST));
        nonces.check(announced | 7).unwrap();
        nonces.answer(announced | 7);
        assert_eq!(nonces.identification(&mut rng) as u32, 7, "the answer has the nonce of the request");
        assert_eq!(nonces.check(announced | 7), Err(STALE_REQUEST));
        nonces.check(announced | 8).unwrap();
        for _ in 2..MOST_ANNOUNCED {
            nonces.identification(&mut rng);
        }
        nonces.check(announced | 8).unwrap();
        nonces.identification(&mut rng);
        assert_eq!(nonces.check(announced | 8), Err(STALE_REQUEST), "the nonce is too old");
        assert!(nonces.answered.is_empty() && nonces.announced.len() == MOST_ANNOUNCED);
    }
}
