//! Changes of the peer's addresses that the peer requests by ASCONF (RFC 5061, section 5.2).

use crate::association::Association;
use crate::association::receive::PacketContext;
use crate::event::AssociationEvent;
use crate::message::{Action, Address, Asconf, AsconfAck, Cause, Chunk, Code, Request, Response};
use crate::path::PathState;
use crate::unicast::unicast;
use std::collections::VecDeque;
use wire::{Duration, Instant, Ipv4Addr};

/// The largest number of answers that are kept, to be sent again if their ASCONF is repeated. The kept answers are
/// those to the ASCONFs of one packet.
const ANSWERS: usize = 16;
/// The largest number of former addresses that are kept for late packets.
const FORMER: usize = 16;
/// The period of `Config::added_per_minute`.
const MINUTE: Duration = Duration::from_mins(1);

/// The state of the end that answers ASCONF.
#[derive(Clone, Debug, Default)]
pub(crate) struct AsconfIn {
    /// The serial number of the last ASCONF that was applied.
    serial: u32,
    /// How often the last ASCONF was repeated and accepted as a sign that the peer is alive.
    repeated: u32,
    /// The answers to the ASCONFs of the last packet with a new ASCONF.
    answers: Vec<AsconfAck>,
    /// The primary address that the peer has requested, until the address is confirmed.
    primary: Option<Ipv4Addr>,
    /// Addresses that the peer has deleted, the latest last. Late packets from them still belong to the association,
    /// and so does a repeated ASCONF that names one of them.
    former: VecDeque<Ipv4Addr>,
    /// Unconfirmed addresses that the peer added in the last minute, and when. A confirmed address is removed from
    /// the list, as it cannot be that of another host.
    added: VecDeque<(Instant, Ipv4Addr)>,
}

impl AsconfIn {
    pub(crate) fn new(tsn: u32) -> Self {
        let (former, added) = (VecDeque::new(), VecDeque::new());
        let (serial, answers) = (tsn.wrapping_sub(1), Vec::new());
        Self { serial, repeated: 0, answers, primary: None, former, added }
    }

    /// Records that the peer no longer has `address`.
    pub(crate) fn has_left(&mut self, address: Ipv4Addr) {
        self.former.push_back(address);
        if self.former.len() > FORMER {
            self.former.pop_front();
        }
    }

    /// Returns the addresses that the peer has deleted: at most [`FORMER`], the latest last.
    pub(crate) fn former(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.former.iter().copied()
    }
}

impl Association {
    /// Handles an authenticated ASCONF (RFC 5061, section 5.2, E1 to E5). An ASCONF with the next serial number is
    /// applied. An earlier ASCONF is answered again if its answer is kept. A later ASCONF is ignored.
    pub(crate) fn asconf_came(&mut self, context: &mut PacketContext<'_>, asconf: &Asconf) {
        if !self.is_open() {
            return;
        }
        let ahead = asconf.serial.wrapping_sub(self.asconf_in.serial).cast_signed();
        if ahead > 1 {
            return; // RFC 5061, section 5.2, E5
        }
        if ahead < 1 {
            // RFC 5061, section 5.2, E2: a repeated ASCONF shows that the answer was lost and that the peer is alive.
            // Only `association_max_retrans` repetitions count as such a sign, because a peer does not repeat an
            // ASCONF more often. Any host that has read the ASCONF could replay it more often.
            if ahead == 0 && self.asconf_in.repeated < self.config.association_max_retrans {
                self.asconf_in.repeated += 1;
                self.heard();
            }
            let known = self.asconf_in.answers.iter().find(|answer| answer.serial == asconf.serial);
            context.replies.extend(known.cloned().map(Chunk::AsconfAck));
            return;
        }
        if !std::mem::replace(&mut context.asconf, true) {
            // RFC 5061, section 5.2, E1: a new ASCONF shows that the peer has received the kept answers.
            self.asconf_in.answers.clear();
        }
        (self.asconf_in.serial, self.asconf_in.repeated) = (asconf.serial, 0);
        // A new ASCONF shows that the peer is alive: packets that were not answered may have gone to its old address.
        // RFC 9260, section 8.1, names only SACK and HEARTBEAT ACK, but does not consider peers that move.
        self.heard();
        // A request whose response may not fit the answer is refused for lack of resources (RFC 5061, section 4.3.2).
        // Otherwise the peer could take an applied request as refused (RFC 5061, section 5.1, A7).
        let told = AsconfAck::tells_of(self.answer_room(context.src));
        let mut short = false;
        let mut respond = |(at, request): (usize, &Request)| {
            let outcome = if at < told {
                self.carry_out(context, request, &mut short)
            } else {
                Err(Cause::new(Code::RESOURCE_SHORTAGE, request.emit()))
            };
            match outcome {
                Ok(()) => Response::Success(request.correlation()),
                Err(cause) => Response::Refused(request.correlation(), vec![cause]),
            }
        };
        let responses: Vec<Response> = asconf.requests.iter().enumerate().map(&mut respond).collect();
        let answer = AsconfAck { serial: asconf.serial, responses };
        if self.asconf_in.answers.len() < ANSWERS {
            self.asconf_in.answers.push(answer.clone());
        }
        context.replies.push(Chunk::AsconfAck(answer));
        if self.paths.get(context.src).is_some() {
            self.asconf_out.ask_at(context.now, context.src);
        }
    }

    /// Applies one request. `short`: an earlier request of the chunk to add an address was refused for lack of
    /// resources. Then no request to add or delete an address is applied (RFC 5061, section 5.3, F11).
    fn carry_out(
        &mut self,
        context: &PacketContext<'_>,
        request: &Request,
        short: &mut bool,
    ) -> Result<(), Cause> {
        let Request::Change { action, address, .. } = request else {
            return Err(Cause::new(Code::UNRECOGNIZED_PARAMETERS, request.emit()));
        };
        let refuse = |code: Code| Err(Cause::new(code, request.emit()));
        let Address::Ipv4(address) = *address else { return refuse(Code::UNRESOLVABLE_ADDRESS) };
        if address.is_unspecified() {
            // The wildcard address means the source of the packet. A forged source would not be detected, as AUTH does
            // not cover it (RFC 5061, section 6).
            return refuse(Code::NO_AUTHORIZATION);
        }
        if !unicast(address) {
            return refuse(Code::UNRESOLVABLE_ADDRESS);
        }
        if *short && *action != Action::SetPrimary {
            return refuse(Code::RESOURCE_SHORTAGE);
        }
        match action {
            Action::Add => {
                let added = self.add_peer(context, address);
                *short |= added == Err(Code::RESOURCE_SHORTAGE);
                added.or_else(refuse)
            }
            Action::Delete => self.delete_peer(context, address).or_else(refuse),
            Action::SetPrimary => self.prefer_peer(address).or_else(refuse),
        }
    }

    /// Adds an address of the peer, or refuses to (RFC 5061, section 5.3, F1 and F9).
    fn add_peer(&mut self, context: &PacketContext<'_>, address: Ipv4Addr) -> Result<(), Code> {
        if let Some(path) = self.paths.get_mut(address) {
            path.hearsay = false;
            return Ok(());
        }
        if context.taken.contains(&address) {
            return Err(Code::NO_AUTHORIZATION); // it is an address of another peer with the same ports
        }
        let added = &mut self.asconf_in.added;
        while added.front().is_some_and(|(at, _)| context.now.since(*at) >= MINUTE) {
            added.pop_front();
        }
        if self.paths.len() >= self.config.max_addresses || added.len() >= self.config.added_per_minute {
            return Err(Code::RESOURCE_SHORTAGE);
        }
        added.push_back((context.now, address));
        self.asconf_in.former.retain(|former| *former != address);
        self.add_path(context.now, address, false);
        self.events.push_back(AssociationEvent::PeerAdded(address));
        Ok(())
    }

    fn delete_peer(&mut self, context: &PacketContext<'_>, address: Ipv4Addr) -> Result<(), Code> {
        if self.paths.get(address).is_none() {
            return Err(Code::UNRESOLVABLE_ADDRESS);
        }
        if self.paths.len() == 1 {
            // RFC 5061, section 5.3, F7 and F8: the last address is checked before the source of the packet.
            return Err(Code::DELETE_LAST_ADDRESS);
        }
        if address == context.src {
            return Err(Code::DELETE_SOURCE_ADDRESS);
        }
        // The outstanding probe of a deleted address no longer delays the probes of other addresses (HB.Max.Burst).
        if self
            .paths
            .get(address)
            .is_some_and(|path| !path.confirmed && !path.hearsay && path.probe.is_some())
        {
            self.probing = context.now;
        }
        // Data in flight to the deleted address are sent again to a present address at once. No time-out is counted.
        self.outbound.lose(&mut self.paths, address, false);
        self.remove_path(address);
        self.asconf_in.has_left(address);
        if self.asconf_in.primary == Some(address) {
            self.asconf_in.primary = None;
        }
        if self.paths.primary == address {
            let here = self.paths.get(context.src).map(|path| path.address);
            let first = self.paths.iter().next().map(|path| path.address);
            let next = self.paths.best_besides(address).or(here).or(first);
            self.paths.primary = next.unwrap_or(address);
        }
        self.shutdown_due |= self.waits_for_shutdown();
        self.events.push_back(AssociationEvent::PeerDeleted(address));
        Ok(())
    }

    /// Makes `address` the primary address when it is confirmed and active. Otherwise a peer could direct data at
    /// another host.
    fn prefer_peer(&mut self, address: Ipv4Addr) -> Result<(), Code> {
        let path = self.paths.get(address).ok_or(Code::UNRESOLVABLE_ADDRESS)?;
        self.asconf_in.primary = Some(address);
        if path.confirmed && path.state == PathState::Active {
            self.confirmed_primary(address);
        }
        Ok(())
    }

    /// Handles the confirmation of `address`: it is no longer counted in `added`, and becomes primary if the peer has
    /// requested that.
    pub(crate) fn confirmed_primary(&mut self, address: Ipv4Addr) {
        self.asconf_in.added.retain(|(_, added)| *added != address);
        if self.asconf_in.primary != Some(address) {
            return;
        }
        self.asconf_in.primary = None;
        let old = std::mem::replace(&mut self.paths.primary, address);
        if old != address
            && let Some(path) = self.paths.get_mut(old)
        {
            path.superseded = true;
        }
        if let Some(path) = self.paths.get_mut(address) {
            path.superseded = false;
            if old != address {
                path.restart_window();
            }
        }
        self.events.push_back(AssociationEvent::PeerPrimary(address));
    }
}

#[cfg(test)]
#[path = "asconf_in_tests.rs"]
mod tests;
