//! A daemon as a router between two ordinary kernels. The far ends of its veth pairs have the kernel's default
//! settings: checksums and segmentation are left to the device. The peers do not use ethtool.

use crate::common::*;
use os::{End, EndPlace, NetNs, Netlink};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;
use wire::{Mac, Prefix};

const PEERS: [(&str, Ipv4Addr); 2] =
    [("left", Ipv4Addr::new(10, 1, 0, 1)), ("right", Ipv4Addr::new(10, 2, 0, 1))];

fn mac(last: u8) -> Mac {
    Mac([2, 0, 0, 0, 1, last])
}

/// The number of the next daemon of this process.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The daemon's namespace, and the namespace of a peer at each of the daemon's two interfaces.
pub(crate) struct Between {
    /// The name of the daemon's host. No other test uses it.
    pub(crate) name: String,
    pub(crate) router: NetNs,
    pub(crate) peers: [NetNs; 2],
    dir: tempfile::TempDir,
    pub(crate) child: Option<Child>,
}

impl Between {
    pub(crate) fn new() -> Self {
        let [router, left, right] = [(); 3].map(|()| NetNs::create().unwrap());
        let dir = tempfile::tempdir().unwrap();
        for (number, (peer, (name, address))) in [&left, &right].into_iter().zip(PEERS).enumerate() {
            let [near, far] = [1, 2].map(|side| mac(side + 2 * number as u8));
            peer.run(|| {
                let mut here = Netlink::open().unwrap();
                let end = End { name: "eth0", mac: far, place: EndPlace::Here };
                here.add_veth(&end, &End { name, mac: near, place: EndPlace::Fd(router.as_fd()) }).unwrap();
                here.add_address("eth0", address, 24).unwrap();
                here.set_up("eth0", true).unwrap();
                let [a, b, c, _] = address.octets();
                here.set_route(Prefix::ANY, "eth0", Some(Ipv4Addr::new(a, b, c, 2))).unwrap();
            })
            .unwrap();
        }
        let name = format!("r{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let config = format!(
            "name = \"{name}\"\n\
             interface = [\n\
             {{ name = \"left\", mac = \"{}\", address = \"10.1.0.2/24\" }},\n\
             {{ name = \"right\", mac = \"{}\", address = \"10.2.0.2/24\" }},\n]\n\
             [daemon]\ncontrol = \"{}\"\n",
            mac(1),
            mac(3),
            dir.path().join("router.sock").display()
        );
        std::fs::write(dir.path().join("router.toml"), config).unwrap();
        Self { name, router, peers: [left, right], dir, child: None }
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.dir.path().join("router.toml")
    }

    pub(crate) fn control(&self) -> PathBuf {
        self.dir.path().join("router.sock")
    }

    pub(crate) fn spawn(&self) -> Child {
        let mut command = Command::new(wayfare());
        command.arg("node").arg(self.config());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        self.router.run(|| command.spawn()).unwrap().unwrap()
    }

    pub(crate) fn start() -> Self {
        let mut between = Self::new();
        between.begin();
        between
    }

    pub(crate) fn begin(&mut self) {
        self.child = Some(self.spawn());
        wait_for("the router", || self.status());
    }

    pub(crate) fn status(&self) -> Option<serde_json::Value> {
        let answer = ask(&self.control(), r#"{"do":{"verb":"status"}}"#)?;
        serde_json::from_str::<serde_json::Value>(&answer).ok()?.get("ok").cloned()
    }

    fn drops(&self, reason: &str) -> u64 {
        self.status().unwrap()["drops"][reason].as_u64().unwrap_or(0)
    }

    /// Sets a link down for a second.
    fn cut(namespace: &NetNs, device: &str) {
        namespace.run(|| Netlink::open().unwrap().set_up(device, false).unwrap()).unwrap();
        pause(1000);
        namespace.run(|| Netlink::open().unwrap().set_up(device, true).unwrap()).unwrap();
    }

    pub(crate) fn lives(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_none()
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // After SIGTERM, the daemon restores its namespace, and leaves no record.
            if let Ok(None) = child.try_wait() {
                signal(child.id(), rustix::process::Signal::TERM);
            }
            let _ = child.wait();
        }
    }
}

const BYTES: usize = 48 << 20;

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

#[test]
fn tcp_between_ordinary_kernels_lives_while_links_go_down_and_come_back() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = beside_others();
    let mut between = Between::start();
    let [left, right] = &between.peers;
    let listener = right.run(|| TcpListener::bind("10.2.0.1:9000").unwrap()).unwrap();
    let came = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let (mut all, mut part) = (Vec::new(), vec![0; 1 << 16]);
            loop {
                match stream.read(&mut part).unwrap() {
                    0 => return all,
                    got => all.extend_from_slice(&part[..got]),
                }
                came.store(all.len(), Ordering::Relaxed);
            }
        });
        let client = scope.spawn(|| {
            left.run(|| {
                let to = "10.2.0.1:9000".parse().unwrap();
                let mut stream = TcpStream::connect_timeout(&to, Duration::from_secs(5)).unwrap();
                for part in pattern(BYTES).chunks(1 << 20) {
                    stream.write_all(part).unwrap();
                    pause(60);
                }
            })
        });
        wait_for("the first MB", || (came.load(Ordering::Relaxed) > 1 << 20).then_some(()));
        Between::cut(&between.router, "left");
        let before = came.load(Ordering::Relaxed);
        wait_for("data after the first cut", || {
            (came.load(Ordering::Relaxed) > before + (4 << 20)).then_some(())
        });
        // The peer's end of the link is set down, so the daemon sees a loss of carrier.
        Between::cut(&between.peers[1], "eth0");
        right_again(&between);
        client.join().unwrap().unwrap();
        assert!(server.join().unwrap() == pattern(BYTES), "the bytes are others");
    });
    assert!(between.lives());
}

/// Adds the default route again: a kernel forgets the routes of a link that is set down.
fn right_again(between: &Between) {
    between.peers[1]
        .run(|| {
            Netlink::open()
                .unwrap()
                .set_route(Prefix::ANY, "eth0", Some(Ipv4Addr::new(10, 2, 0, 2)))
                .unwrap();
        })
        .unwrap();
}

#[test]
fn datagrams_that_a_kernel_left_uncut_arrive_cut_and_every_drop_is_counted() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = beside_others();
    let between = Between::start();
    let [left, right] = &between.peers;
    let to = right.run(|| UdpSocket::bind("10.2.0.1:9000").unwrap()).unwrap();
    to.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let from = left.run(|| UdpSocket::bind("10.1.0.1:9001").unwrap()).unwrap();
    // With the option UDP_SEGMENT of SOL_UDP, one call sends many datagrams of 1000 bytes.
    let size: i32 = 1000;
    // SAFETY: the value outlives the call, and its size is given.
    let set = unsafe {
        libc::setsockopt(std::os::fd::AsRawFd::as_raw_fd(&from), 17, 103, (&raw const size).cast(), 4)
    };
    assert_eq!(set, 0);
    // The first packet makes ARP find the neighbor, because only few packets may wait for the answer.
    assert_eq!(from.send_to(b"first", "10.2.0.1:9000").unwrap(), 5);
    assert_eq!(to.recv(&mut [0; 10]).unwrap(), 5);
    let all = pattern(9500);
    assert_eq!(from.send_to(&all, "10.2.0.1:9000").unwrap(), all.len());
    let (mut came, mut part) = (Vec::new(), [0; 2000]);
    while came.len() < all.len() {
        let got = to.recv(&mut part).unwrap();
        assert!(got == 1000 || got == 500, "{got}");
        came.extend_from_slice(&part[..got]);
    }
    assert!(came == all, "the bytes are others");

    // Three reasons for a drop: no host has the address, there is no route to the address, and the packet's TTL is used
    // up.
    for (target, ttl) in [("10.2.0.77:9", 64), ("10.9.0.1:9", 64), ("10.2.0.1:9", 1)] {
        from.set_ttl(ttl).unwrap();
        from.send_to(b"x", target).unwrap();
    }
    for reason in ["no_neighbor", "no_route", "ttl_expired"] {
        wait_for(reason, || (between.drops(reason) == 1).then_some(()));
    }
}
