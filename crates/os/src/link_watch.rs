//! Notifications of the kernel about links: changes of their state, and removals.

use crate::error::{Attempt, Result};
use crate::netlink::link_of;
use crate::{Link, Netlink};
use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// The multicast group of links (`RTNLGRP_LINK`, `linux/rtnetlink.h`).
const RTNLGRP_LINK: u32 = 1;

/// A change of a link, as the kernel reports it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkChange {
    /// The state of a link. It may equal the state that was reported before.
    Is(Link),
    /// The link with this index was removed, or moved to another namespace.
    Removed(u32),
}

/// Receives changes of the links in one network namespace: that of the thread that opened it.
#[derive(Debug)]
pub struct LinkWatch {
    socket: Socket,
}

impl LinkWatch {
    /// Opens a watch for the calling thread's network namespace.
    pub fn open() -> Result<Self> {
        let open = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind(&SocketAddr::new(0, 0))?;
            socket.add_membership(RTNLGRP_LINK)?;
            socket.set_non_blocking(true)?;
            Ok::<_, std::io::Error>(Self { socket })
        };
        open().attempt("watch", "the links of this network namespace")
    }

    /// Returns the changes since the last call, or since the watch was opened, in order. If the kernel lost
    /// notifications (`ENOBUFS`), the current state of each existing link is appended. A removal whose notification was
    /// lost is not reported.
    pub fn changes(&self) -> Result<Vec<LinkChange>> {
        let mut changes = Vec::new();
        loop {
            match self.socket.recv_from_full() {
                Ok((bytes, _)) => read(&bytes, &mut changes),
                Err(none) if none.kind() == ErrorKind::WouldBlock => return Ok(changes),
                Err(again) if again.kind() == ErrorKind::Interrupted => {}
                Err(lost) if lost.raw_os_error() == Some(libc::ENOBUFS) => {
                    changes.extend(Netlink::open()?.links()?.into_iter().map(LinkChange::Is));
                }
                Err(error) => return Err(error).attempt("watch", "the links of this network namespace"),
            }
        }
    }
}

impl AsFd for LinkWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the socket lives as long as this borrow.
        unsafe { BorrowedFd::borrow_raw(self.socket.as_raw_fd()) }
    }
}

/// Reads one datagram of notifications. After a message that cannot be parsed, the remaining messages are ignored.
fn read(mut bytes: &[u8], changes: &mut Vec<LinkChange>) {
    while !bytes.is_empty() {
        let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes) else { return };
        let len = (message.header.length as usize).next_multiple_of(4).max(4);
        bytes = bytes.get(len..).unwrap_or_default();
        match message.payload {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelLink(gone)) => {
                changes.push(LinkChange::Removed(gone.header.index));
            }
            NetlinkPayload::InnerMessage(message) => changes.extend(link_of(message).map(LinkChange::Is)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{in_sandbox, readable, veth};

    fn states(watch: &LinkWatch, name: &str) -> Vec<bool> {
        let mut states: Vec<bool> = Vec::new();
        // The kernel reports a lost carrier up to a second later.
        while readable(watch, 1500) {
            states.extend(watch.changes().unwrap().iter().filter_map(|change| match change {
                LinkChange::Is(link) if link.name == name => Some(link.carries),
                _ => None,
            }));
        }
        states.dedup();
        states
    }

    #[test]
    fn links_that_go_down_lose_their_carrier_or_go_are_heard_of() {
        in_sandbox(|| {
            veth("a0", "b0");
            let watch = LinkWatch::open().unwrap();
            let mut net = Netlink::open().unwrap();
            assert!(net.link("a0").unwrap().carries);
            let _ = states(&watch, "a0"); // discards notifications about the creation of the pair
            net.set_up("a0", false).unwrap();
            net.set_up("a0", true).unwrap();
            assert_eq!(states(&watch, "a0"), [false, true], "its own switch");
            net.set_up("b0", false).unwrap();
            assert!(!net.link("a0").unwrap().carries);
            assert_eq!(states(&watch, "a0"), [false], "the other end's");
            net.set_up("b0", true).unwrap();
            assert_eq!(states(&watch, "a0"), [true], "and back");
            let index = net.link("a0").unwrap().index;
            net.delete_link("a0").unwrap();
            assert!(readable(&watch, 1000));
            assert!(watch.changes().unwrap().contains(&LinkChange::Removed(index)));
        });
    }
}
