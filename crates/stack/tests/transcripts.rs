//! Transcripts of conversations, segment by segment and event by event.
//!
//! With `WAYFARE_BLESS=1`, the tests record the transcripts again.

use crate::harness;
use harness::{Net, User, at, noise};
use node::{Guard, MigrateOp, StreamId, StreamOp, Transport, Tuple};
use tcp::Profile;

const CLIENT: StreamId = StreamId(1);
const SERVER: StreamId = StreamId(2);
const ACCEPTED: StreamId = StreamId(StreamId::DRIVER);

#[track_caller]
fn told_as(name: &str, net: &Net) {
    let path = format!("{}/tests/transcripts/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    #[expect(clippy::disallowed_methods, reason = "maintainers ask for new transcripts by a variable")]
    let bless = std::env::var("WAYFARE_BLESS").is_ok();
    if bless {
        std::fs::write(&path, &net.log).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(net.log == expected, "{name}: other events:\n{}", net.log);
}

/// Returns a network with a download of `bytes` that is about to begin.
fn download(hosts: usize, bytes: usize) -> Net {
    let mut net = Net::new(hosts, &Profile::rfc6298_reno());
    let listen = StreamOp::Listen { by: Transport::Tcp, local: at(1, 80), foreign: false };
    net.user(1, SERVER, listen, User::default());
    let says = noise(1, bytes);
    net.hosts[1].guest = Some(User { says, appetite: 1, finishes: true, ..User::default() });
    let open = StreamOp::Open { by: Transport::Tcp, local: None, peer: at(1, 80), foreign: false };
    let user = User { appetite: 2000, ..User::default() };
    net.user(0, CLIENT, open, user);
    net
}

#[test]
fn connect_transfer_close() {
    let mut net = download(2, 4000);
    net.run(1);
    told_as("connect-transfer-close", &net);
}

#[test]
fn refused() {
    let mut net = Net::new(2, &Profile::rfc6298_reno());
    let open = StreamOp::Open { by: Transport::Tcp, local: None, peer: at(1, 80), foreign: false };
    net.user(0, CLIENT, open, User::default());
    net.run(1);
    told_as("refused", &net);
}

/// A router forwards datagrams of at most 1000 bytes. Retransmitted segments are smaller, and the congestion window
/// does not change.
#[test]
fn path_mtu() {
    let mut net = download(2, 6000);
    net.mtu = 1000;
    net.run(1);
    told_as("path-mtu", &net);
}

/// A connection moves from host 1 to host 2 in the middle of a transfer, while the peer continues.
#[test]
fn moved() {
    let mut net = download(3, 14_000);
    let until = net.now + wire::Duration::from_millis(45);
    while net.step(until) {}
    let tuple = Tuple { local: at(1, 80), remote: at(0, 49_152) };
    net.op(2, SERVER, StreamOp::Migrate(MigrateOp::Guard(tuple, Some(Guard::Hold(8)))));
    net.op(1, ACCEPTED, StreamOp::Migrate(MigrateOp::Freeze));
    net.op(1, ACCEPTED, StreamOp::Migrate(MigrateOp::Export));
    let state = net.hosts[1].exported.take().unwrap();
    net.op(1, ACCEPTED, StreamOp::Migrate(MigrateOp::Guard(tuple, Some(Guard::Drop))));
    net.op(1, ACCEPTED, StreamOp::Migrate(MigrateOp::Forget));
    net.owner.insert(*tuple.local.ip(), 2);
    let until = net.now + wire::Duration::from_millis(20);
    while net.step(until) {}
    net.user(
        2,
        SERVER,
        StreamOp::Migrate(MigrateOp::Import(state)),
        User { appetite: 1, finishes: true, ..User::default() },
    );
    net.op(2, SERVER, StreamOp::Migrate(MigrateOp::Thaw));
    net.op(2, SERVER, StreamOp::Migrate(MigrateOp::Guard(tuple, None)));
    net.read(2, SERVER);
    net.op(2, SERVER, StreamOp::Finish);
    net.run(5);
    told_as("moved", &net);
}
