//! Questions and answers over a byte stream: the client asks, waits for the whole answer, and asks again. It never
//! repeats a question: the transport resends what the network loses.
//!
//! ```text
//! question:  number (8 bytes) | length of the question (4) | length of the answer (4) | padding of any content
//! answer:    the requested number of bytes, of a pattern that depends on the question's number
//! ```
//!
//! Numbers are big-endian; lengths are at most [`LONGEST`].

mod client;
mod server;

pub use client::{RequestClient, RequestClientConfig};
pub use server::{RequestServer, RequestServerConfig};

use crate::bulk::{intact, pattern};

/// The largest length of a question, and of an answer, in bytes.
pub const LONGEST: u32 = 1 << 20;
/// The smallest length of a question, in bytes: that of its head.
pub const HEAD: u32 = 16;

/// The first 16 bytes of a question: its number, its length and the length of its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Head {
    number: u64,
    question: u32,
    answer: u32,
}

impl Head {
    /// Parses the head of a question; `None` if a length is out of bounds.
    fn parse(bytes: &[u8; HEAD as usize]) -> Option<Self> {
        let [number @ .., q0, q1, q2, q3, a0, a1, a2, a3] = *bytes;
        let head = Self {
            number: u64::from_be_bytes(number),
            question: u32::from_be_bytes([q0, q1, q2, q3]),
            answer: u32::from_be_bytes([a0, a1, a2, a3]),
        };
        let lengths = (HEAD..=LONGEST).contains(&head.question) && (1..=LONGEST).contains(&head.answer);
        lengths.then_some(head)
    }

    /// Returns the whole question: the head, and zeros as padding.
    fn emit(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.question as usize];
        let head = self.number.to_be_bytes().into_iter();
        let head = head.chain(self.question.to_be_bytes()).chain(self.answer.to_be_bytes());
        bytes.iter_mut().zip(head).for_each(|(byte, value)| *byte = value);
        bytes
    }

    /// Returns the offset of the answer in the pattern. Answers to different questions do not overlap.
    const fn place(&self) -> u64 {
        self.number.wrapping_mul(LONGEST as u64)
    }

    /// Returns `len` bytes of the answer, from `offset` on.
    fn answer(&self, offset: u32, len: usize) -> Vec<u8> {
        pattern(self.place().wrapping_add(u64::from(offset)), len)
    }

    /// Returns whether `bytes` are the bytes of the answer from `offset` on.
    fn is_answer(&self, offset: u32, bytes: &[u8]) -> bool {
        intact(self.place().wrapping_add(u64::from(offset)), bytes) == bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_says_what_it_wants() {
        let head = Head { number: 0x0102_0304_0506_0708, question: 20, answer: 0x0003_0201 };
        let bytes = head.emit();
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 20, 0, 3, 2, 1, 0, 0, 0, 0]);
        assert_eq!(Head::parse(bytes.first_chunk().unwrap()), Some(head));
    }

    #[test]
    fn lengths_out_of_bounds_are_refused() {
        for (question, answer) in [(15, 1), (LONGEST + 1, 1), (16, 0), (16, LONGEST + 1)] {
            let mut bytes = Head { number: 1, question: 16, answer }.emit();
            bytes.splice(8..12, question.to_be_bytes());
            assert_eq!(Head::parse(bytes.first_chunk().unwrap()), None, "{question} {answer}");
        }
    }

    #[test]
    fn another_questions_answer_is_not_this_ones() {
        let head = |number| Head { number, question: 16, answer: 100 };
        let bytes = head(7).answer(10, 50);
        assert!(head(7).is_answer(10, &bytes));
        assert!(!head(7).is_answer(11, &bytes) && !head(8).is_answer(10, &bytes));
    }
}
