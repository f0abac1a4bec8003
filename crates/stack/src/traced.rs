//! Marks of changes inside a connection, for example for graphs of the window. No role receives these marks.

use node::{Mark, Tuple};
use tcp::{Change, Connection, Watch};

/// Returns a mark for each value of a connection that has changed.
pub(crate) fn changes(watch: &mut Watch, tcp: &Connection) -> Vec<Mark> {
    let tuple = Tuple { local: tcp.local(), remote: tcp.remote() };
    watch.changes(tcp.info()).map(|change| mark(&tuple, change)).collect()
}

/// Returns a mark with the connection and the new value: bytes, nanoseconds, a count, 1 or 0 for true or false, or the
/// name of a state in RFC 9293.
fn mark(tuple: &Tuple, change: Change) -> Mark {
    let mark = Mark::new(node::mark::TCP, change.name());
    let mark = mark.with("local", tuple.local.to_string()).with("peer", tuple.remote.to_string());
    match change {
        Change::State(state) => mark.with("is", state.name()),
        Change::Cwnd(bytes) | Change::Ssthresh(bytes) => mark.with("bytes", bytes),
        Change::Recovering(is) => mark.with("is", u32::from(is)),
        Change::Srtt(span) | Change::Rto(span) => mark.with("ns", wire::nanos_of(span)),
        Change::Retransmissions(count) => mark.with("count", count),
    }
}
