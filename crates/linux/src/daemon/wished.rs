//! What programs wish of roles, one wish after the other.

use std::collections::VecDeque;

/// Wishes in the order in which they came up. To fulfil one may bring up others, such as to write more on the stream of the
/// next: they come behind it, for while one is being fulfilled nobody gets another.
#[derive(Debug)]
pub(super) struct Wished<T> {
    queue: VecDeque<T>,
    /// One has been handed out, and is not fulfilled yet.
    is_busy: bool,
}

impl<T> Wished<T> {
    pub(super) const fn new() -> Self {
        Self { queue: VecDeque::new(), is_busy: false }
    }

    pub(super) fn extend(&mut self, wishes: impl IntoIterator<Item = T>) {
        self.queue.extend(wishes);
    }

    /// The next to be fulfilled. Whoever gets one says [`Self::done`] when it is, and asks again.
    pub(super) fn next(&mut self) -> Option<T> {
        let next = if self.is_busy { None } else { self.queue.pop_front() };
        self.is_busy |= next.is_some();
        next
    }

    pub(super) const fn done(&mut self) {
        self.is_busy = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tries, as the daemon does, to fulfil what a wish brings up on the spot: before that wish itself is fulfilled.
    struct Somebody {
        wished: Wished<u32>,
        fulfilled: Vec<u32>,
    }

    impl Somebody {
        fn fulfil(&mut self, wishes: &[u32]) {
            self.wished.extend(wishes.iter().copied());
            while let Some(wish) = self.wished.next() {
                if wish < 10 {
                    self.fulfil(&[10 * wish, 10 * wish + 1]);
                }
                self.fulfilled.push(wish);
                self.wished.done();
            }
        }
    }

    /// Bytes of a program changed places when what followed from one wish went before the next.
    #[test]
    fn what_follows_from_a_wish_comes_behind_all_that_were_there() {
        let mut somebody = Somebody { wished: Wished::new(), fulfilled: Vec::new() };
        somebody.fulfil(&[1, 2]);
        assert_eq!(somebody.fulfilled, [1, 2, 10, 11, 20, 21]);
        somebody.fulfil(&[3]);
        assert_eq!(somebody.fulfilled[6..], [3, 30, 31], "and nothing is left behind");
    }
}
