//! The requests of programs to roles, handled one after the other.

use std::collections::VecDeque;

/// A queue of requests. Handling a request may add further requests, which are put at the end of the queue. While a
/// request is being handled, no other request is taken. So the queue keeps the order in which requests were added.
#[derive(Debug)]
pub(super) struct RequestQueue<T> {
    queue: VecDeque<T>,
    /// A request has been taken, and is not handled yet.
    is_busy: bool,
}

impl<T> RequestQueue<T> {
    pub(super) const fn new() -> Self {
        Self { queue: VecDeque::new(), is_busy: false }
    }

    pub(super) fn extend(&mut self, requests: impl IntoIterator<Item = T>) {
        self.queue.extend(requests);
    }

    /// Takes the next request. Returns `None` if the queue is empty, or while another request is being handled. When
    /// the caller has handled the request, it calls [`Self::done`] and then this function again.
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

    /// Adds requests while it handles a request, and tries to handle the added ones at once, as the daemon does.
    struct Handler {
        requests: RequestQueue<u32>,
        handled: Vec<u32>,
    }

    impl Handler {
        fn handle(&mut self, requests: &[u32]) {
            self.requests.extend(requests.iter().copied());
            while let Some(request) = self.requests.next() {
                if request < 10 {
                    self.handle(&[10 * request, 10 * request + 1]);
                }
                self.handled.push(request);
                self.requests.done();
            }
        }
    }

    /// A request that is added while another one is being handled is put behind all requests that already wait.
    /// Otherwise the bytes that a program writes could be reordered.
    #[test]
    fn what_follows_from_a_request_comes_behind_all_that_were_there() {
        let mut handler = Handler { requests: RequestQueue::new(), handled: Vec::new() };
        handler.handle(&[1, 2]);
        assert_eq!(handler.handled, [1, 2, 10, 11, 20, 21]);
        handler.handle(&[3]);
        assert_eq!(handler.handled[6..], [3, 30, 31], "and nothing is left behind");
    }
}
