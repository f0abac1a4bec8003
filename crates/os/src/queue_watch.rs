//! Queueing disciplines and filters (`tc(8)`) that the lab has not set. Packets may wait in them between a host's
//! kernel and its node, where no record is made.

use crate::Netlink;
use crate::error::{Attempt, Result};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};

/// The multicast group of traffic control (`RTNLGRP_TC`, `linux/rtnetlink.h`).
const RTNLGRP_TC: u32 = 4;
const RTM_NEWQDISC: u16 = 36;
const RTM_DELQDISC: u16 = 37;
const RTM_GETQDISC: u16 = 38;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// The flags of a request for a dump: `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
/// The headers of a message: `struct nlmsghdr` and `struct tcmsg`.
const HEADERS: usize = 16 + 20;
const TCA_KIND: u16 = 1;
/// If the kernel could not report all changes, [`QueueWatch::found`] returns this kind for each interface, because the
/// changes may belong to any interface.
const LOST: &str = "changes that the kernel had no room to report";

/// Detects queueing disciplines, classes and filters that are set or removed on some interfaces of one network
/// namespace. The kernel's default disciplines are not reported.
#[derive(Debug)]
pub struct QueueWatch {
    socket: Socket,
    names: BTreeMap<i32, String>,
    found: BTreeSet<(String, String)>,
}

impl QueueWatch {
    /// Watches these interfaces of the calling thread's network namespace. Disciplines that they already have, other
    /// than the default, count as found.
    pub fn open(net: &mut Netlink, interfaces: &[&str]) -> Result<Self> {
        let mut names = BTreeMap::new();
        for name in interfaces {
            names.insert(net.link(name)?.index.cast_signed(), (*name).to_owned());
        }
        let open = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind(&SocketAddr::new(0, 0))?;
            socket.add_membership(RTNLGRP_TC)?;
            socket.set_non_blocking(true)?;
            let mut watch = Self { socket, names, found: BTreeSet::new() };
            watch.dump()?;
            Ok::<_, io::Error>(watch)
        };
        open().attempt("watch", format_args!("the queueing disciplines of {}", interfaces.join(", ")))
    }

    /// Returns the interface and the kind of each discipline, class and filter that was set or removed since
    /// [`QueueWatch::open`]. Disciplines that existed at that time are included, but not the kernel's default. An
    /// example is `("wf-host", "netem")`. If the kernel could not report all changes, each interface has an entry that
    /// says so.
    pub fn found(&mut self) -> Vec<(String, String)> {
        loop {
            match self.socket.recv_from_full() {
                Ok((bytes, _)) => self.read(&bytes),
                Err(again) if again.kind() == ErrorKind::Interrupted => {}
                Err(none) if none.kind() == ErrorKind::WouldBlock => break,
                Err(lost) if lost.raw_os_error() == Some(libc::ENOBUFS) => self.note_all(LOST),
                Err(error) => {
                    self.note_all(&error.to_string());
                    break;
                }
            }
        }
        self.found.iter().cloned().collect()
    }

    fn note_all(&mut self, what: &str) {
        self.found.extend(self.names.values().map(|name| (name.clone(), what.to_owned())));
    }

    fn dump(&mut self) -> io::Result<()> {
        let mut asked = Socket::new(NETLINK_ROUTE)?;
        asked.bind(&SocketAddr::new(0, 0))?;
        asked.connect(&SocketAddr::new(0, 0))?;
        let mut request = vec![0; HEADERS];
        let head = (HEADERS as u32).to_ne_bytes().into_iter();
        let head = head.chain(RTM_GETQDISC.to_ne_bytes()).chain(DUMP.to_ne_bytes());
        request.iter_mut().zip(head).for_each(|(byte, value)| *byte = value);
        asked.send(&request, 0)?;
        loop {
            let (bytes, _) = asked.recv_from_full()?;
            if let Some(number) = refusal(&bytes) {
                // A kernel without traffic control has nothing to report.
                let has_none = number == libc::EOPNOTSUPP;
                return if has_none { Ok(()) } else { Err(io::Error::from_raw_os_error(number)) };
            }
            self.read(&bytes);
            if messages(&bytes).any(|(kind, _)| kind == NLMSG_DONE) {
                return Ok(());
            }
        }
    }

    /// Reads a datagram. The default discipline of a device has no handle and is ignored.
    fn read(&mut self, bytes: &[u8]) {
        for (kind, body) in messages(bytes).filter(|(kind, _)| *kind >= RTM_NEWQDISC) {
            let word = |at: usize| body.get(at..).and_then(|rest| rest.first_chunk().copied());
            let Some(name) = word(4).and_then(|index| self.names.get(&i32::from_ne_bytes(index))) else {
                continue;
            };
            let is_default = matches!(kind, RTM_NEWQDISC | RTM_DELQDISC) && word(8) == Some([0; 4]);
            if is_default {
                continue;
            }
            let what = body.get(HEADERS - 16..).and_then(kind_of);
            let what = what.unwrap_or_else(|| format!("kind without a name, rtnetlink message type {kind}"));
            self.found.insert((name.clone(), what));
        }
    }
}

/// Returns the error number with which the kernel refuses a dump (netlink(7)). The number begins the body of the
/// message, and is negative there.
fn refusal(bytes: &[u8]) -> Option<i32> {
    let (_, body) = messages(bytes).find(|(kind, _)| *kind == NLMSG_ERROR)?;
    body.first_chunk().map(|number| i32::from_ne_bytes(*number).saturating_neg())
}

/// Returns the messages of a datagram: type and body.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
        let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
        let body = bytes.get(16..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, body))
    })
}

/// Returns the name of the discipline or filter from its attributes.
fn kind_of(mut attributes: &[u8]) -> Option<String> {
    loop {
        let len = usize::from(u16::from_ne_bytes(*attributes.first_chunk()?));
        let kind = u16::from_ne_bytes(*attributes.get(2..)?.first_chunk()?);
        let value = attributes.get(4..len)?;
        if kind == TCA_KIND {
            let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
            return value.get(..end).map(|name| String::from_utf8_lossy(name).into_owned());
        }
        attributes = attributes.get(len.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{in_sandbox, need, veth};

    fn tc(words: &str) -> bool {
        let status = std::process::Command::new("tc").args(words.split(' ')).status();
        status.is_ok_and(|status| status.success())
    }

    #[test]
    fn a_dump_that_the_kernel_refuses_is_no_empty_one() {
        let message = |kind: u16, body: &[u8]| {
            let mut bytes = (16 + body.len() as u32).to_ne_bytes().to_vec();
            bytes.extend(kind.to_ne_bytes());
            bytes.extend([0; 10]);
            [bytes, body.to_vec()].concat()
        };
        let refused = message(NLMSG_ERROR, &[(-1_i32).to_ne_bytes(), [0; 4]].concat());
        assert_eq!(refusal(&[message(RTM_NEWQDISC, &[0; 20]), refused].concat()), Some(libc::EPERM));
        assert_eq!(refusal(&message(NLMSG_DONE, &[0; 4])), None);
    }

    #[test]
    fn a_queueing_discipline_is_found_also_if_it_is_gone_at_the_end() {
        in_sandbox(|| {
            veth("a0", "b0");
            veth("c0", "d0");
            let mut net = Netlink::open().unwrap();
            let watched = |net: &mut Netlink| QueueWatch::open(net, &["a0", "b0"]).unwrap();
            let mut watch = watched(&mut net);
            // Setting the link down and up, and changes on other interfaces, are not reported.
            net.set_up("a0", false).unwrap();
            net.set_up("a0", true).unwrap();
            if !need("tc (iproute2) and the pfifo discipline", tc("qdisc add dev c0 root pfifo limit 10")) {
                return;
            }
            assert_eq!(watch.found(), []);
            assert!(tc("qdisc add dev a0 root tbf rate 1mbit burst 3k limit 9k"));
            assert!(tc("qdisc add dev b0 root pfifo limit 10"));
            let pair = |name: &str, kind: &str| (name.to_owned(), kind.to_owned());
            assert_eq!(watched(&mut net).found(), [pair("a0", "tbf"), pair("b0", "pfifo")], "at the begin");
            assert!(tc("qdisc del dev a0 root"));
            assert_eq!(watch.found(), [pair("a0", "tbf"), pair("b0", "pfifo")]);
            assert_eq!(watched(&mut net).found(), [pair("b0", "pfifo")]);
        });
    }
}
