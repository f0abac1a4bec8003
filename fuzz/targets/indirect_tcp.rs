//! Indirect TCP's datagrams, requests to connect to a peer (`Call`) and answers, as a router or a host receives them.

use auth::Key;
use indirect_tcp::message::{Answer, Call, Datagram, Message, Signed};

/// Runs the target on one input.
pub(crate) fn run(bytes: &[u8]) {
    match Datagram::parse(bytes) {
        Ok(Datagram::Greeting(said)) => inverse(&said, bytes),
        Ok(Datagram::GreetingReply(said)) => inverse(&said, bytes),
        Ok(Datagram::ForwardPointer(said)) => inverse(&said, bytes),
        Ok(Datagram::ForwardReply(said)) => inverse(&said, bytes),
        Ok(Datagram::Lost(said)) => inverse(&said, bytes),
        Err(_) => {}
    }
    if let Ok(said) = Signed::<Call>::parse(bytes) {
        assert_eq!(bytes.len(), Call::LEN);
        inverse(&said, bytes);
    }
    if let Ok(said) = Signed::<Answer>::parse(bytes) {
        assert_eq!(bytes.len(), Answer::LEN);
        inverse(&said, bytes);
    }
}

/// Checks that a message that was read is written as the same bytes. Otherwise its authentication code would not be
/// valid.
fn inverse<T: Message>(said: &Signed<T>, bytes: &[u8]) {
    assert_eq!(said.emit(), bytes);
    let key = Key::new([7; 16]);
    assert!(Signed::new(said.message.clone(), &key).is_by(&key));
}
