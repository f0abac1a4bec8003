//! Ethernet frames: a frame that is read must be written as the same bytes.

use wire::ethernet;

/// Runs the target on one input.
pub(crate) fn run(bytes: &[u8]) {
    if let Ok((frame, payload)) = ethernet::parse(bytes) {
        assert_eq!(ethernet::emit(&frame, payload), bytes);
    }
}
