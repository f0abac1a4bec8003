//! `capture.pcapng`: every sighting of every packet, with its fate.

use crate::journey::Journeys;
use crate::run::Outcome;
use draw::{Capture, Direction, Interface, Seen, Snap};
use std::io;
use wire::ethernet;

pub(super) fn capture(outcome: &Outcome, journeys: &Journeys<'_>, snap: Snap) -> io::Result<Vec<u8>> {
    // The host's own stack first, as interface number 0 is; then the others in their order.
    let mut interfaces = Vec::new();
    let mut first = Vec::new();
    for host in &outcome.plan.hosts {
        first.push(interfaces.len());
        let names = std::iter::once("host").chain(host.ports.iter().map(|port| port.name.as_str()));
        let name = |name: &str| Interface { host: host.config.name.clone(), name: name.to_owned() };
        interfaces.extend(names.map(name));
    }
    let mut capture = Capture::new(&interfaces, outcome.epoch(), snap);
    for (index, hop) in journeys.hops().iter().enumerate() {
        let Some(seen) = journeys.seen(hop) else { continue };
        let Some(base) = first.get(usize::from(seen.host.0)) else { continue };
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
