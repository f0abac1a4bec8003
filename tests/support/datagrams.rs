//! Datagrams that arrive while their stream ends: one script for the UDP sockets of both backends.

use node::stream::OwnedStreamEvent;
use node::{Addr, StreamId, StreamOp, Transport};
use wire::Ipv4Addr;

/// Events of streams, and the reasons of dropped datagrams, in the order in which they were reported.
pub(crate) type Answer = (Vec<OwnedStreamEvent>, Vec<&'static str>);

/// The UDP sockets of a backend, and a peer.
pub(crate) trait Backend {
    /// Returns the peer's address.
    fn peer(&self) -> Addr;
    /// Lets a datagram of the peer arrive.
    fn arrives(&mut self, to: Addr, text: &str);
    /// Lets the sockets receive the datagrams that have arrived.
    fn receive(&mut self) -> Answer;
    /// Applies an operation to a stream.
    fn operate(&mut self, id: StreamId, op: StreamOp) -> Answer;
}

pub(crate) const HOST: Ipv4Addr = Ipv4Addr::LOCALHOST;
const AT: Addr = Addr::new(HOST, 5300);
const FIRST: StreamId = StreamId(1);
/// More steps than any script here needs: a script that does not end fails.
const STEPS: usize = 100;

/// The reaction of a role to an event: an operation on the event's stream, or on an accepted one.
type Role = fn(&OwnedStreamEvent) -> Option<(StreamId, StreamOp)>;

/// Plays a role until there are no more events. Returns the events as text.
fn play(backend: &mut impl Backend, first: Answer, role: Role) -> Vec<String> {
    let (mut said, mut answer) = (Vec::new(), first);
    for _ in 0..STEPS {
        let (told, ended) = std::mem::take(&mut answer);
        said.extend(told.iter().filter_map(name));
        said.extend(ended.iter().map(|reason| format!("ended: {reason}")));
        for (id, op) in told.iter().filter_map(role) {
            let (told, ended) = backend.operate(id, op);
            answer.0.extend(told);
            answer.1.extend(ended);
        }
        if answer.0.is_empty() && answer.1.is_empty() {
            return said;
        }
    }
    panic!("no rest: {said:?}");
}

/// Returns an event as text, or `None` for an event that the scripts ignore, such as credit.
fn name(told: &OwnedStreamEvent) -> Option<String> {
    match told {
        OwnedStreamEvent::Accepted { .. } => Some("accepted".to_owned()),
        OwnedStreamEvent::Data(_, _, bytes) => Some(format!("data: {}", String::from_utf8_lossy(bytes))),
        OwnedStreamEvent::Closed(_, why) => Some(why.clone().unwrap_or_else(|| "closed".to_owned())),
        _ => None,
    }
}

/// Opens a listener to which one peer sends three datagrams.
fn asked(backend: &mut impl Backend) -> Answer {
    let (told, _) =
        backend.operate(FIRST, StreamOp::Listen { by: Transport::Udp, local: AT, foreign: false });
    assert_eq!(told, [OwnedStreamEvent::Opened(FIRST, AT)]);
    for question in ["one", "two", "three"] {
        backend.arrives(AT, question);
    }
    backend.receive()
}

/// If a role ends a stream after one datagram, the next datagram of the same peer comes by a new stream.
pub(crate) fn what_a_listener_has_left_is_accepted_again(backend: &mut impl Backend) {
    let first = asked(backend);
    let said = play(backend, first, |told| match told {
        OwnedStreamEvent::Accepted { new, .. } => Some((*new, StreamOp::Read(512))),
        OwnedStreamEvent::Data(id, ..) => Some((*id, StreamOp::Finish)),
        _ => None,
    });
    let each = |text| ["accepted".to_owned(), format!("data: {text}"), "closed".to_owned()];
    assert_eq!(said, ["one", "two", "three"].map(each).concat());
}

/// If a role aborts a peer's stream, the peer's datagrams are reported as dropped. No new stream follows, because the
/// role would abort it as well.
pub(crate) fn what_comes_by_an_aborted_stream_is_reported(backend: &mut impl Backend) {
    let first = asked(backend);
    let said = play(backend, first, |told| match told {
        OwnedStreamEvent::Accepted { new, .. } => Some((*new, StreamOp::Abort)),
        _ => None,
    });
    assert_eq!(said, ["accepted", "closed", "ended: no_socket", "ended: no_socket", "ended: no_socket"]);
}

/// A listener that has ended accepts nothing, so the datagrams of its streams are reported as dropped when the streams
/// end.
pub(crate) fn what_is_left_without_a_listener_is_reported(backend: &mut impl Backend) {
    let first = asked(backend);
    let said = play(backend, first, |told| match told {
        OwnedStreamEvent::Accepted { .. } => Some((FIRST, StreamOp::Finish)),
        OwnedStreamEvent::Closed(FIRST, None) => Some((StreamId(StreamId::DRIVER), StreamOp::Finish)),
        _ => None,
    });
    assert_eq!(
        said,
        ["accepted", "closed", "closed", "ended: no_socket", "ended: no_socket", "ended: no_socket"]
    );
}

/// Datagrams that a stream to one peer has not read when it ends are reported as dropped, with the reason.
pub(crate) fn what_a_closing_socket_has_left_is_reported(backend: &mut impl Backend) {
    let open = StreamOp::Open { by: Transport::Udp, local: None, peer: backend.peer(), foreign: false };
    let (told, _) = backend.operate(FIRST, open);
    let Some(OwnedStreamEvent::Opened(_, local)) = told.first().cloned() else { panic!("{told:?}") };
    for text in ["one", "two"] {
        backend.arrives(local, text);
    }
    assert_eq!(backend.receive(), Answer::default());
    backend.arrives(local, "not taken yet");
    let mut first = backend.operate(FIRST, StreamOp::Finish);
    // A backend without a queue before its sockets receives the last datagram immediately. No socket has its port.
    first.1.extend(backend.receive().1);
    let said = play(backend, first, |_| None);
    assert_eq!(said, ["closed", "ended: no_socket", "ended: no_socket", "ended: no_socket"]);
}
