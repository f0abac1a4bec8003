//! Datagrams that come while their stream ends: what the UDP sockets of both backends do, by one script.

use node::stream::Told;
use node::{Addr, StreamId, StreamOp, Transport};
use wire::Ipv4Addr;

/// Events of streams, and the reasons of datagrams that ended, in the order in which they were reported.
pub(crate) type Answer = (Vec<Told>, Vec<&'static str>);

/// The UDP sockets of a backend, and a peer.
pub(crate) trait Backend {
    /// The peer's address.
    fn peer(&self) -> Addr;
    /// The peer sends a datagram, which arrives.
    fn arrives(&mut self, to: Addr, text: &str);
    /// The sockets take what has arrived.
    fn receive(&mut self) -> Answer;
    /// The user of a stream asks for something.
    fn operate(&mut self, id: StreamId, op: StreamOp) -> Answer;
}

pub(crate) const HOST: Ipv4Addr = Ipv4Addr::LOCALHOST;
const AT: Addr = Addr::new(HOST, 5300);
const FIRST: StreamId = StreamId(1);
/// More than enough for any script here: what goes on without end is a failure.
const STEPS: usize = 100;

/// What a role does about an event: an operation on the event's stream, or on one that was accepted.
type Role = fn(&Told) -> Option<(StreamId, StreamOp)>;

/// Plays a role until nothing happens any more. Returns what happened, in words.
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

/// Credit says nothing here.
fn name(told: &Told) -> Option<String> {
    match told {
        Told::Accepted { .. } => Some("accepted".to_owned()),
        Told::Data(_, _, bytes) => Some(format!("data: {}", String::from_utf8_lossy(bytes))),
        Told::Closed(_, why) => Some(why.clone().unwrap_or_else(|| "closed".to_owned())),
        _ => None,
    }
}

/// A listener to which one peer has sent three datagrams.
fn asked(backend: &mut impl Backend) -> Answer {
    let (told, _) =
        backend.operate(FIRST, StreamOp::Listen { by: Transport::Udp, local: AT, foreign: false });
    assert_eq!(told, [Told::Opened(FIRST, AT)]);
    for question in ["one", "two", "three"] {
        backend.arrives(AT, question);
    }
    backend.receive()
}

/// A role that answers one datagram and then ends the stream: the next datagram of the same peer comes by a new stream.
pub(crate) fn what_a_listener_has_left_is_accepted_again(backend: &mut impl Backend) {
    let first = asked(backend);
    let said = play(backend, first, |told| match told {
        Told::Accepted { new, .. } => Some((*new, StreamOp::Read(512))),
        Told::Data(id, ..) => Some((*id, StreamOp::Finish)),
        _ => None,
    });
    let each = |text| ["accepted".to_owned(), format!("data: {text}"), "closed".to_owned()];
    assert_eq!(said, ["one", "two", "three"].map(each).concat());
}

/// A role that has no room for a peer aborts its stream: the datagrams are reported, and no stream follows, which the role would abort
/// too.
pub(crate) fn what_comes_by_an_aborted_stream_is_reported(backend: &mut impl Backend) {
    let first = asked(backend);
    let said = play(backend, first, |told| match told {
        Told::Accepted { new, .. } => Some((*new, StreamOp::Abort)),
        _ => None,
    });
    assert_eq!(said, ["accepted", "closed", "ended: no_socket", "ended: no_socket", "ended: no_socket"]);
}

/// A listener that has ended accepts nothing, so the datagrams of its streams are reported when these end.
pub(crate) fn what_is_left_without_a_listener_is_reported(backend: &mut impl Backend) {
    let first = asked(backend);
    let said = play(backend, first, |told| match told {
        Told::Accepted { .. } => Some((FIRST, StreamOp::Finish)),
        Told::Closed(FIRST, None) => Some((StreamId(StreamId::DRIVER), StreamOp::Finish)),
        _ => None,
    });
    assert_eq!(
        said,
        ["accepted", "closed", "closed", "ended: no_socket", "ended: no_socket", "ended: no_socket"]
    );
}

/// What a stream to one peer has left when it ends has no reader: each is reported, with the reason.
pub(crate) fn what_a_closing_socket_has_left_is_reported(backend: &mut impl Backend) {
    let open = StreamOp::Open { by: Transport::Udp, local: None, peer: backend.peer(), foreign: false };
    let (told, _) = backend.operate(FIRST, open);
    let Some(Told::Opened(_, local)) = told.first().cloned() else { panic!("{told:?}") };
    for text in ["one", "two"] {
        backend.arrives(local, text);
    }
    assert_eq!(backend.receive(), Answer::default());
    backend.arrives(local, "not taken yet");
    let mut first = backend.operate(FIRST, StreamOp::Finish);
    // A backend without a queue in front of its sockets takes it at once, and nobody is there.
    first.1.extend(backend.receive().1);
    let said = play(backend, first, |_| None);
    assert_eq!(said, ["closed", "ended: no_socket", "ended: no_socket", "ended: no_socket"]);
}
