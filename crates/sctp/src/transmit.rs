//! Packets that this end sends (RFC 9260, sections 6.1, 6.10 and 9.2).

use crate::association::{Association, Transmit};
use crate::event::State;
use crate::message::{Chunk, DATA_HEADER, HEADER, kind};
use wire::{Instant, Ipv4Addr, ipv4};

/// Length of the longest AUTH chunk, in bytes.
const AUTH: usize = 40;
/// Chunk type of SACK.
const SACK: u8 = 3;

impl Association {
    /// Returns the next packet to send; call until `None`.
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if let Some(transmit) = self.outbox.pop_front() {
            return Some(transmit);
        }
        if std::mem::take(&mut self.written) {
            self.paths.allow_bursts_again(now, self.config.max_burst);
        }
        match self.state {
            State::Closed => None,
            State::CookieWait | State::CookieEchoed => self
                .opening_packet(now)
                .or_else(|| self.second.as_mut().and_then(|second| second.poll_transmit(now))),
            _ => self
                .change_packet(now)
                .or_else(|| self.shutdown_packet(now))
                .or_else(|| self.data_packet(now)),
        }
    }

    /// Returns SHUTDOWN or SHUTDOWN ACK, if it is due.
    fn shutdown_packet(&mut self, now: Instant) -> Option<Transmit> {
        if !std::mem::take(&mut self.shutdown_due) {
            return None;
        }
        let chosen = self.shutdown_to.filter(|to| self.paths.get(*to).is_some());
        let dst = chosen.unwrap_or_else(|| self.paths.for_data());
        self.shutdown_to = Some(dst);
        let path = self.paths.get(dst)?;
        self.timer = Some(now + path.rto.current());
        let src = self.locals.source(&[path.source, self.locals.preferred, self.shutdown_by])?;
        let chunk = match self.state {
            State::ShutdownSent => Chunk::Shutdown(self.inbound.cumulative() as u32),
            State::ShutdownAckSent => Chunk::ShutdownAck,
            _ => return None,
        };
        Some(Transmit::new(src, dst, self.seal(vec![chunk])))
    }

    /// Returns a packet with data, a SACK, or both.
    fn data_packet(&mut self, now: Instant) -> Option<Transmit> {
        self.paths.iter_mut().for_each(|path| path.widen(now));
        let sends =
            matches!(self.state, State::Established | State::ShutdownPending | State::ShutdownReceived);
        let to = self.outbound.destination(&self.paths).filter(|_| sends);
        let owed = self.inbound.due || (self.inbound.delayed.is_some() && to.is_some());
        let back = self.arriving.filter(|_| owed);
        let dst = match (to, back) {
            // A SACK goes to the address that the data came from, even if our data go to another (section 6.4).
            (_, Some((_, peer))) if self.inbound.due => self.acknowledges_at(peer),
            (Some(to), _) => to,
            (None, _) => return None,
        };
        // The peer may have deleted that address since.
        let dst = if self.paths.get(dst).is_some() { dst } else { self.paths.for_data() };
        let acknowledges = back.is_some_and(|(_, peer)| self.inbound.due || peer == dst);
        let path = self.paths.get(dst)?;
        let arriving = back.filter(|_| acknowledges).map(|(local, _)| local);
        // The user's choice precedes the address that the peer happens to send to.
        let src = self.locals.source(&[path.source, self.locals.preferred, arriving])?;
        let mut room = usize::from(path.mtu).saturating_sub(ipv4::HEADER + HEADER + self.overhead());
        let mut chunks = Vec::new();
        if acknowledges {
            let sack = Chunk::Sack(self.inbound.sack(room - DATA_HEADER));
            room = room.saturating_sub(sack.emit().len());
            chunks.push(sack);
        }
        if to == Some(dst) {
            let data = self.outbound.chunks(now, &mut self.paths, (src, dst), room);
            chunks.extend(data.into_iter().map(Chunk::Data));
        }
        if chunks.is_empty() {
            return None;
        }
        let (bytes, mtu) = (self.seal(chunks), self.paths.get(dst)?.mtu);
        let cut = Some(mtu).filter(|mtu| ipv4::HEADER + bytes.len() > usize::from(*mtu));
        Some(Transmit { src, dst, bytes, cut })
    }

    /// Returns the bytes that an AUTH chunk takes from a packet with data or SACK.
    fn overhead(&self) -> usize {
        let wants = |kind| self.keys.as_ref().is_some_and(|keys| keys.peer_wants(kind));
        if wants(kind::DATA) || wants(SACK) { AUTH } else { 0 }
    }

    /// Returns a HEARTBEAT to `address`. Its information is the address and `nonce` (section 3.3.5: the format is the
    /// sender's choice).
    pub(crate) fn heartbeat(&self, address: Ipv4Addr, nonce: u64) -> Option<Transmit> {
        let path = self.paths.get(address)?;
        let src = self.locals.source(&[path.source])?;
        Some(self.heartbeat_from(src, address, nonce))
    }

    /// Returns a HEARTBEAT that leaves from `src`.
    pub(crate) fn heartbeat_from(&self, src: Ipv4Addr, address: Ipv4Addr, nonce: u64) -> Transmit {
        let info = [&address.octets()[..], &nonce.to_be_bytes()].concat();
        Transmit::new(src, address, self.seal(vec![Chunk::Heartbeat(info)]))
    }
}
