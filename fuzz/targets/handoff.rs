//! The frames that two Indirect TCP routers exchange on their connection during a handoff, in pieces of any size.

use indirect_tcp::message::{Frame, Frames, LONGEST};

/// Runs the target on one input.
pub(crate) fn run(bytes: &[u8]) {
    if let Ok(frame) = Frame::parse(bytes) {
        assert_eq!(frame.emit(), bytes, "reading and writing are inverse");
    }
    let (whole, pieces) = (cut(bytes, bytes.len().max(1)), cut(bytes, 3));
    assert_eq!(whole, pieces, "where it was cut does not matter");
}

/// Returns the frames in a stream of bytes that arrives in pieces of `size` bytes, up to the first error.
fn cut(bytes: &[u8], size: usize) -> Vec<Vec<u8>> {
    let (mut frames, mut found) = (Frames::default(), Vec::new());
    frames.trust();
    for piece in bytes.chunks(size) {
        frames.push(piece);
        loop {
            match frames.next_frame() {
                Ok(Some(frame)) => {
                    assert!(frame.len() <= LONGEST + 36);
                    let front = frame.get(..frame.len() - 16).unwrap_or_default();
                    if let Ok(read) = Frame::parse(front) {
                        assert_eq!(read.emit(), front);
                    }
                    found.push(frame);
                }
                Ok(None) => break,
                Err(_) => return found,
            }
        }
    }
    found
}
