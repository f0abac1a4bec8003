//! A netfilter ingress hook that drops every frame of a device. The hook comes after the packet sockets in the kernel's
//! receive path. So packet sockets receive the frame, and the kernel's IP stack does not.
//!
//! This module builds the netlink messages itself, so neither the `nft` program nor its library is needed. Only ingress
//! is blocked. What the kernel sends by itself on such a device (IPv6 neighbor discovery, IGMP) is prevented by giving
//! the device no address, and by [`crate::namespace::sysctl`].

use crate::Netlink;
use crate::error::{Attempt, Result};
use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_REQUEST};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// The table that Wayfare owns, in the family `netdev`.
const TABLE: &str = "wayfare_own";
/// The kernel runs hooks in ascending order of priority. Other tables usually have -300 or more.
const PRIORITY: i32 = -500;

// Numbers of messages and attributes, from `linux/netfilter/nfnetlink.h` and `nf_tables.h`.
const NFNL_SUBSYS_NFTABLES: u16 = 10;
const NFNL_MSG_BATCH_BEGIN: u16 = 0x10;
const NFNL_MSG_BATCH_END: u16 = 0x11;
const NFT_MSG_NEWTABLE: u16 = NFNL_SUBSYS_NFTABLES << 8;
const NFT_MSG_DELTABLE: u16 = NFT_MSG_NEWTABLE | 2;
const NFT_MSG_NEWCHAIN: u16 = NFT_MSG_NEWTABLE | 3;
const NFT_MSG_GETCHAIN: u16 = NFT_MSG_NEWTABLE | 4;
/// The multicast group of changes of tables (`NFNLGRP_NFTABLES`).
const NFNLGRP_NFTABLES: u32 = 7;
const NFPROTO_NETDEV: u8 = 5;
const NFTA_TABLE_NAME: u16 = 1;
const NFTA_CHAIN_TABLE: u16 = 1;
const NFTA_CHAIN_NAME: u16 = 3;
const NFTA_CHAIN_HOOK: u16 = 4;
const NFTA_CHAIN_POLICY: u16 = 5;
const NFTA_CHAIN_TYPE: u16 = 7;
const NFTA_HOOK_HOOKNUM: u16 = 1;
const NFTA_HOOK_PRIORITY: u16 = 2;
const NFTA_HOOK_DEV: u16 = 3;
const NF_NETDEV_INGRESS: u32 = 0;
const NF_DROP: u32 = 0;
const NLA_F_NESTED: u16 = 1 << 15;

/// Installs the ingress drop on `devices`: on all of them or, on an error, on none. Packet sockets still receive all
/// frames. Further calls add devices.
///
/// The drop applies in the calling thread's network namespace. It lasts until [`remove_ingress_drop`] or the
/// namespace's end.
pub fn install_ingress_drop(devices: &[&str]) -> Result<()> {
    // Newer kernels (seen on 6.18) accept a hook for a device that does not exist yet, so a misspelt name would go
    // unnoticed.
    let mut here = Netlink::open()?;
    for device in devices {
        here.link(device)?;
    }
    let mut batch = Batch::new();
    batch.message(NFT_MSG_NEWTABLE, NLM_F_CREATE, &attribute(NFTA_TABLE_NAME, &text(TABLE)));
    for device in devices {
        batch.message(NFT_MSG_NEWCHAIN, NLM_F_CREATE, &chain(device));
    }
    batch.commit().attempt("install the ingress hook on", devices.join(", "))
}

/// Undoes [`install_ingress_drop`] for all devices of the calling thread's network namespace. Does nothing if there is
/// no hook.
pub fn remove_ingress_drop() -> Result<()> {
    let mut batch = Batch::new();
    batch.message(NFT_MSG_DELTABLE, 0, &attribute(NFTA_TABLE_NAME, &text(TABLE)));
    match batch.commit() {
        Err(none) if none.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        other => other.attempt("remove the nftables table", TABLE),
    }
}

/// Returns whether the hook of [`install_ingress_drop`] is on this device and drops.
pub fn has_ingress_drop(device: &str) -> Result<bool> {
    let named = [attribute(NFTA_CHAIN_TABLE, &text(TABLE)), attribute(NFTA_CHAIN_NAME, &text(device))];
    let mut question = Batch { bytes: Vec::new(), sequence: 0 };
    question.push(NFT_MSG_GETCHAIN, 0, NFPROTO_NETDEV, 0, &named.concat());
    let ask = || {
        let socket = Socket::new(NETLINK_NETFILTER)?;
        socket.connect(&SocketAddr::new(0, 0))?;
        socket.send(&question.bytes, 0)?;
        let (answer, _) = socket.recv_from_full()?;
        match codes(&answer).first() {
            Some(code) if -code == libc::ENOENT => Ok(false),
            Some(code) => Err(io::Error::from_raw_os_error(-code)),
            None => Ok(policy(&answer) == Some(NF_DROP)),
        }
    };
    ask().attempt("read the ingress hook of", device)
}

/// Returns the policy of the chain in a message (`NF_DROP` is 0), or `None` if the message has none.
fn policy(message: &[u8]) -> Option<u32> {
    let mut rest = message.get(16 + 4..)?;
    while let Some((&[l0, l1, k0, k1], _)) = rest.split_first_chunk::<4>() {
        let len = usize::from(u16::from_ne_bytes([l0, l1]));
        if u16::from_ne_bytes([k0, k1]) == NFTA_CHAIN_POLICY {
            return Some(u32::from_be_bytes(*rest.get(4..len)?.first_chunk()?));
        }
        rest = rest.get(len.next_multiple_of(4).max(4)..)?;
    }
    None
}

/// Detects changes of nftables tables in one network namespace: that of the thread that opened the watch.
#[derive(Debug)]
pub struct Watch {
    socket: Socket,
}

impl Watch {
    /// Opens a watch of the calling thread's network namespace.
    pub fn open() -> Result<Self> {
        let open = || {
            let mut socket = Socket::new(NETLINK_NETFILTER)?;
            socket.bind(&SocketAddr::new(0, 0))?;
            socket.add_membership(NFNLGRP_NFTABLES)?;
            socket.set_non_blocking(true)?;
            Ok::<_, io::Error>(Self { socket })
        };
        open().attempt("watch", "the tables of nftables")
    }

    /// Returns whether an object of nftables changed since the last call, or since the watch was opened. Returns true
    /// also if the kernel could not report all changes.
    pub fn has_changed(&self) -> bool {
        let mut has_changed = false;
        loop {
            match self.socket.recv_from_full() {
                Ok(_) => has_changed = true,
                Err(again) if again.kind() == io::ErrorKind::Interrupted => {}
                // The kernel had no room to report all changes.
                Err(lost) if lost.raw_os_error() == Some(libc::ENOBUFS) => has_changed = true,
                Err(_) => return has_changed,
            }
        }
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the socket lives as long as this borrow.
        unsafe { BorrowedFd::borrow_raw(self.socket.as_raw_fd()) }
    }
}

/// Builds a chain without rules: its policy drops every frame.
fn chain(device: &str) -> Vec<u8> {
    let hook = [
        attribute(NFTA_HOOK_HOOKNUM, &NF_NETDEV_INGRESS.to_be_bytes()),
        attribute(NFTA_HOOK_PRIORITY, &PRIORITY.to_be_bytes()),
        attribute(NFTA_HOOK_DEV, &text(device)),
    ];
    [
        attribute(NFTA_CHAIN_TABLE, &text(TABLE)),
        attribute(NFTA_CHAIN_NAME, &text(device)),
        attribute(NFTA_CHAIN_HOOK | NLA_F_NESTED, &hook.concat()),
        attribute(NFTA_CHAIN_POLICY, &NF_DROP.to_be_bytes()),
        attribute(NFTA_CHAIN_TYPE, &text("filter")),
    ]
    .concat()
}

/// A transaction: the kernel applies all of it or nothing.
struct Batch {
    bytes: Vec<u8>,
    sequence: u32,
}

impl Batch {
    fn new() -> Self {
        let mut batch = Self { bytes: Vec::new(), sequence: 0 };
        batch.push(NFNL_MSG_BATCH_BEGIN, 0, 0, NFNL_SUBSYS_NFTABLES, &[]);
        batch
    }

    fn message(&mut self, kind: u16, flags: u16, attributes: &[u8]) {
        self.push(kind, flags | NLM_F_ACK, NFPROTO_NETDEV, 0, attributes);
    }

    /// Appends `struct nlmsghdr` in host order, `struct nfgenmsg` with its last field in network order, and the
    /// attributes.
    fn push(&mut self, kind: u16, flags: u16, family: u8, resource: u16, attributes: &[u8]) {
        let len = (16 + 4 + attributes.len()) as u32;
        self.bytes.extend_from_slice(&len.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(&(flags | NLM_F_REQUEST).to_ne_bytes());
        self.bytes.extend_from_slice(&self.sequence.to_ne_bytes());
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(&[family, 0]);
        self.bytes.extend_from_slice(&resource.to_be_bytes());
        self.bytes.extend_from_slice(attributes);
        self.sequence += 1;
    }

    /// Sends the batch, and waits until each message between its begin and end markers is acknowledged. Fails with the
    /// kernel's error if a message or the whole batch is refused.
    fn commit(mut self) -> io::Result<()> {
        let messages = 1..self.sequence;
        self.push(NFNL_MSG_BATCH_END, 0, 0, NFNL_SUBSYS_NFTABLES, &[]);
        let socket = Socket::new(NETLINK_NETFILTER)?;
        socket.connect(&SocketAddr::new(0, 0))?;
        socket.send(&self.bytes, 0)?;
        let (mut answered, mut refused) = (0, None);
        // After a refusal of the whole batch (no rights, no nftables) no other answer follows.
        while answered < messages.len() && refused.is_none() {
            let (answer, _) = socket.recv_from_full()?;
            for code in codes(&answer) {
                answered += 1;
                if code != 0 && refused.is_none() {
                    refused = Some(io::Error::from_raw_os_error(-code));
                }
            }
        }
        refused.map_or(Ok(()), Err)
    }
}

/// Returns the codes of all `NLMSG_ERROR` messages in a datagram; zero is an acknowledgement.
fn codes(mut bytes: &[u8]) -> Vec<i32> {
    const NLMSG_ERROR: u16 = 2;
    let mut codes = Vec::new();
    while let Some((header, rest)) = bytes.split_first_chunk::<16>() {
        let [l0, l1, l2, l3, k0, k1, ..] = *header;
        let len = u32::from_ne_bytes([l0, l1, l2, l3]) as usize;
        if let (NLMSG_ERROR, Some(code)) = (u16::from_ne_bytes([k0, k1]), rest.first_chunk()) {
            codes.push(i32::from_ne_bytes(*code));
        }
        bytes = bytes.get(len.next_multiple_of(4).max(16)..).unwrap_or_default();
    }
    codes
}

/// Encodes an attribute: length and type in host order, the value, and zeros up to a multiple of four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = 4 + value.len();
    let mut out = Vec::with_capacity(len.next_multiple_of(4));
    out.extend_from_slice(&(len as u16).to_ne_bytes());
    out.extend_from_slice(&kind.to_ne_bytes());
    out.extend_from_slice(value);
    out.resize(len.next_multiple_of(4), 0);
    out
}

/// Encodes text for netfilter: the text and a zero byte.
fn text(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{arp_request, datagram, hear, in_sandbox, in_sandbox_of_root_and_of_nobody, joined};

    /// Sends an ARP request, and a datagram to a closed port. Returns the number of answers of the far kernel, and the
    /// number of frames that the packet socket in front of the far kernel received.
    fn answers(is_blocked: bool) -> (usize, usize) {
        let wire = joined();
        if is_blocked {
            wire.far.run(|| install_ingress_drop(&["b0"])).unwrap().unwrap();
        }
        let mut answers = 0;
        for frame in [arp_request(), datagram(b"is there a receiver?")] {
            wire.near.send(&frame).unwrap();
            answers += hear(&wire.near, 200).len();
        }
        let seen = hear(&wire.tap, 0);
        assert_eq!(seen.first().map(|(_, bytes)| &bytes[..]), Some(&arp_request()[..]));
        (answers, seen.len())
    }

    #[test]
    fn a_blocked_kernel_says_nothing_and_its_tap_hears_everything() {
        in_sandbox_of_root_and_of_nobody(|| assert_eq!(answers(true), (0, 2)));
    }

    /// Without the hook, the same kernel answers both frames. So the hook is the cause if the kernel does not answer.
    #[test]
    fn a_kernel_that_hears_answers() {
        in_sandbox_of_root_and_of_nobody(|| assert_eq!(answers(false), (2, 2)));
    }

    #[test]
    fn it_can_be_repeated_extended_and_undone() {
        in_sandbox(|| {
            let wire = joined();
            let heard = || {
                wire.near.send(&arp_request()).unwrap();
                hear(&wire.near, 100).len()
            };
            wire.far
                .run(|| {
                    crate::testing::veth("c0", "d0");
                    remove_ingress_drop().unwrap();
                    assert_eq!(heard(), 1);
                    install_ingress_drop(&["c0"]).unwrap();
                    assert_eq!(heard(), 1);
                    install_ingress_drop(&["b0", "c0"]).unwrap();
                    install_ingress_drop(&["b0"]).unwrap();
                    assert_eq!(heard(), 0);
                    remove_ingress_drop().unwrap();
                    assert_eq!(heard(), 1);
                })
                .unwrap();
        });
    }

    #[test]
    fn a_hook_that_is_removed_or_lets_pass_is_heard_of_and_seen() {
        in_sandbox(|| {
            let wire = joined();
            wire.far
                .run(|| {
                    let watch = Watch::open().unwrap();
                    assert!(!watch.has_changed() && !has_ingress_drop("b0").unwrap());
                    install_ingress_drop(&["b0"]).unwrap();
                    assert!(watch.has_changed() && !watch.has_changed());
                    assert!(has_ingress_drop("b0").unwrap() && !has_ingress_drop("a0").unwrap());
                    remove_ingress_drop().unwrap();
                    assert!(watch.has_changed() && !has_ingress_drop("b0").unwrap());
                })
                .unwrap();
        });
    }

    #[test]
    fn all_devices_or_none() {
        in_sandbox(|| {
            let wire = joined();
            let refused = wire.far.run(|| install_ingress_drop(&["b0", "no-such-dev"])).unwrap().unwrap_err();
            assert!(refused.is_absent(), "{refused}");
            assert!(refused.to_string().contains("no-such-dev"), "{refused}");
            wire.near.send(&arp_request()).unwrap();
            assert_eq!(hear(&wire.near, 100).len(), 1);
        });
    }
}
