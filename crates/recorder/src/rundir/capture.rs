//! `capture.pcapng`: each observation of a packet at an interface, with the packet's fate as a comment.

use crate::journey::Journeys;
use crate::run::Outcome;
use draw::{Capture, Direction, Interface, Seen, Snap};
use std::io;
use trace::HostId;
use wire::ethernet;

pub(super) fn capture(outcome: &Outcome, journeys: &Journeys<'_>, snap: Snap) -> io::Result<Vec<u8>> {
    // The first interface of each host is its stack. Its other interfaces follow in the plan's order.
    let mut interfaces = Vec::new();
    let mut first = Vec::new();
    for host in (0..outcome.plan.len() as u32).map(HostId) {
        first.push(interfaces.len());
        let names = std::iter::once("host".to_owned()).chain(outcome.plan.interface_names(host));
        let name = |name| Interface { host: outcome.host(host).into_owned(), name };
        interfaces.extend(names.map(name));
    }
    let mut capture = Capture::new(&interfaces, outcome.epoch(), snap);
    for (index, hop) in journeys.hops().iter().enumerate() {
        let Some(seen) = journeys.seen(hop) else { continue };
        let Some(base) = first.get(seen.host.index()) else { continue };
        let frame = ethernet::emit(&seen.packet.link, &seen.packet.bytes);
        let direction = if seen.sent { Direction::Outbound } else { Direction::Inbound };
        let comment = journeys.fate(index);
        let interface = base + usize::from(seen.iface.0);
        let original_len = frame.len();
        let seen = Seen { interface, at: seen.at, direction, frame: &frame, original_len, comment: &comment };
        capture.packet(&seen).map_err(io::Error::other)?;
    }
    capture.finish().map_err(io::Error::other)
}
