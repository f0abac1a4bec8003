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

    /// Returns the SHUTDOWN or SHUTDOWN ACK that is due, or `None`.
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

    /// Returns a packet with DATA, a SACK, or both. `None` if nothing may leave now.
    fn data_packet(&mut self, now: Instant) -> Option<Transmit> {
        self.paths.iter_mut().for_each(|path| path.widen(now));
        self.outbound.reserved = self.overhead() as u32;
        let sends =
            matches!(self.state, State::Established | State::ShutdownPending | State::ShutdownReceived);
        let to = self.outbound.destination(&self.paths).filter(|_| sends);
        let owed = self.inbound.due || (self.inbound.delayed.is_some() && to.is_some());
        let back = self.arriving.filter(|_| owed);
        let dst = match (to, back) {
            // A SACK that is due goes to the source of the peer's data, even if our own data go to another address
            // (RFC 9260, section 6.4). `acknowledges_at` makes an exception.
            (_, Some((_, peer))) if self.inbound.due => self.acknowledges_at(peer),
            (Some(to), _) => to,
            (None, _) => return None,
        };
        // The peer may have deleted the address `dst` since its data came.
        let dst = if self.paths.get(dst).is_some() { dst } else { self.paths.for_data() };
        let acknowledges = back.is_some_and(|(_, peer)| self.inbound.due || peer == dst);
        let path = self.paths.get(dst)?;
        let arriving = back.filter(|_| acknowledges).map(|(local, _)| local);
        // A source that the user prefers takes precedence over the address that the peer's data came to.
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

    /// Returns the number of bytes to reserve for an AUTH chunk in a packet with DATA or SACK. Zero if the peer
    /// requires authentication of neither.
    fn overhead(&self) -> usize {
        let wants = |kind| self.keys.as_ref().is_some_and(|keys| keys.peer_wants(kind));
        if wants(kind::DATA) || wants(SACK) { AUTH } else { 0 }
    }

    /// Returns a HEARTBEAT to `address`, or `None` if `address` has no path or none of our addresses may send. The
    /// HEARTBEAT's information contains `address` and `nonce`; its format is the sender's choice (RFC 9260, section
    /// 3.3.5).
    pub(crate) fn heartbeat(&self, address: Ipv4Addr, nonce: u64) -> Option<Transmit> {
        let path = self.paths.get(address)?;
        let src = self.locals.source(&[path.source])?;
        Some(self.heartbeat_from(src, address, nonce))
    }

    /// Returns a HEARTBEAT from `src` to `address`, whose information contains `address` and `nonce`.
    pub(crate) fn heartbeat_from(&self, src: Ipv4Addr, address: Ipv4Addr, nonce: u64) -> Transmit {
        let info = [&address.octets()[..], &nonce.to_be_bytes()].concat();
        Transmit::new(src, address, self.seal(vec![Chunk::Heartbeat(info)]))
    }
}
