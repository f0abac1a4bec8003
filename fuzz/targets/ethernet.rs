//! Any frame that is read is written back byte for byte.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::ethernet;

fuzz_target!(|bytes: &[u8]| {
    if let Ok((frame, payload)) = ethernet::parse(bytes) {
        assert_eq!(ethernet::emit(&frame, payload), bytes);
    }
});
