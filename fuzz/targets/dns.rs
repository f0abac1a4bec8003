//! A DNS message as a location manager or a mobile node receives it.

use auth::Key;
use sigma::message::{Received, TsigKey};

const NOW: u64 = 946_684_800;

/// Runs the target on one input.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(Received { message, signed }) = Received::parse(bytes) else { return };
    // Names may have been compressed in another way, so the content is compared, and not the bytes.
    let emitted = message.emit();
    let again = Received::parse(&emitted).expect("what is emitted is right");
    assert_eq!(again, Received { message, signed: None });
    let key = TsigKey { name: "mn.example".parse().expect("a name"), secret: Key::new([7; 32]) };
    if let Some(signed) = signed {
        // A wrong signature gives an error and no panic.
        let _ = signed.verify(&key, None, NOW);
        let answer = key.sign_bad_time(&emitted, &signed.tsig, NOW);
        assert!(Received::parse(&answer).is_ok());
    }
    let (ours, _) = key.sign(&emitted, None, NOW);
    let ours = Received::parse(&ours).expect("what is signed is right").signed.expect("and is signed");
    assert_eq!(ours.verify(&key, None, NOW), Ok(()));
}
