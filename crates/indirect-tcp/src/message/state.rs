//! The state of a socket in a handoff: 144 bytes, then the bytes that were received and not read, then the bytes that
//! are not acknowledged or not sent.
//!
//! ```text
//!   0 version u8 · 1 side u8 · 2 family u8 · 3 TCP state u8 · 4 flags u16 · 6 the peer's window scale u8 · 7 the router's u8
//!   8 local port u16 · 10 remote port u16 · 12 MSS u32 · 16 local address (16) · 32 remote address (16)
//!  48 SND.UNA u32 · 52 bytes to send u32 · 56 of them unsent u32 (the router's FIN is not counted)
//!  60 sequence of the first byte received u32 (one more after the peer's FIN) · 64 bytes received u32 · 68 timestamp u32
//!  72 SND.WL1 u32 · 76 SND.WND u32 · 80 largest SND.WND u32 · 84 RCV.WND u32 · 88 RCV.NXT when it was announced u32
//!  92 smoothed round trip u32 · 96 its variation u32: microseconds, or both zero (a hint: RFC 9040, section 8.1)
//! 100 hints, zero here: congestion window, buffers, options (28) · 128 congestion control's name (16)
//! 144 bytes received · bytes to send
//! ```

use super::entry::FAMILY;
use super::{mapped, put_mapped, zeros};
use wire::{Duration, Malformed, Reader, RoundTripTime, Seq, SocketAddrV4, TcpState};

const VERSION: u8 = 1;
/// The limit of the bytes in one queue (not in the paper).
pub(super) const QUEUE: u32 = 2 << 20;

mod flag {
    /// Flag: the peer's FIN has come.
    pub(super) const FINISHED: u16 = 1;
    /// Flag: the router's FIN was sent.
    pub(super) const FIN_SENT: u16 = 2;
    /// Flag: the windows in the state are valid. A router always sets this flag, and refuses a state without it.
    pub(super) const WINDOW: u16 = 8;
    pub(super) const TIMESTAMP: u16 = 16;
    pub(super) const SCALE: u16 = 32;
    pub(super) const SACK: u16 = 64;
    /// Flag (not in the paper): the router will send no more bytes on this half, whether its FIN was sent or not.
    pub(super) const FINISHING: u16 = 512;
    pub(super) const KNOWN: u16 = FINISHED | FIN_SENT | WINDOW | TIMESTAMP | SCALE | SACK | FINISHING;
}

/// Returns the number that Linux gives to the TCP state. `fin_sent`: the router's FIN was sent. `finished`: the peer's
/// FIN has come.
const fn number(fin_sent: bool, finished: bool) -> u8 {
    match (fin_sent, finished) {
        (false, false) => 1, // ESTABLISHED
        (true, false) => 4,  // FIN-WAIT-1
        (false, true) => 8,  // CLOSE-WAIT
        (true, true) => 9,   // LAST-ACK
    }
}

/// A half of a connection, seen from the router.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// The half between the router and the mobile host.
    Near,
    /// The half between the router and the peer.
    Far,
}

/// The state of one half in a handoff.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SocketState {
    /// The half to which the state belongs.
    pub side: Side,
    /// The TCP state of the socket. The message does not carry `window_ack` (SND.WL2): it is set to SND.UNA.
    pub tcp: TcpState,
}

impl SocketState {
    /// Returns whether no bytes are left to relay between this half and the other half: both ends of this half have
    /// finished, and all received bytes were read. Only then may the state of this half arrive without that of the
    /// other half.
    pub(crate) const fn is_self_contained(&self) -> bool {
        self.tcp.finishing && self.tcp.finished && self.tcp.unread.is_empty()
    }

    /// Returns the state of one half, with `window_ack` set to `send_una`.
    pub fn new(side: Side, mut tcp: TcpState) -> Self {
        tcp.window_ack = tcp.send_una;
        Self { side, tcp }
    }

    pub(super) fn take(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        if r.u8()? != VERSION {
            return Err(Malformed("itcp_state_version"));
        }
        let side = match r.u8()? {
            1 => Side::Near,
            2 => Side::Far,
            _ => return Err(Malformed("itcp_state_side")),
        };
        if r.u8()? != FAMILY {
            return Err(Malformed("itcp_family"));
        }
        let (state, flags) = (r.u8()?, r.u16()?);
        let has = |flag| flags & flag != 0;
        if flags & !flag::KNOWN != 0 || !has(flag::WINDOW) || (has(flag::FIN_SENT) && !has(flag::FINISHING)) {
            return Err(Malformed("itcp_state_flags"));
        }
        if state != number(has(flag::FIN_SENT), has(flag::FINISHED)) {
            return Err(Malformed("itcp_state_of_connection"));
        }
        let (send_scale, receive_scale) = (r.u8()?, r.u8()?);
        // The flag and the scales must agree, so that each state has one encoding. A scale is at most 14 (RFC 7323,
        // section 2.3).
        let scaled = flags & flag::SCALE != 0;
        if send_scale > 14 || receive_scale > 14 || scaled != ((send_scale, receive_scale) != (0, 0)) {
            return Err(Malformed("itcp_state_scale"));
        }
        let tcp = Self::numbers(r, flags, send_scale, receive_scale)?;
        Ok(Self { side, tcp })
    }

    fn numbers(
        r: &mut Reader<'_>,
        flags: u16,
        send_scale: u8,
        receive_scale: u8,
    ) -> Result<TcpState, Malformed> {
        let (local_port, remote_port, mss) = (r.u16()?, r.u16()?, r.u32()?);
        let (local, remote) = (mapped(r)?, mapped(r)?);
        let (send_una, to_send, unsent) = (Seq(r.u32()?), r.u32()?, r.u32()?);
        let (first_received, received) = (Seq(r.u32()?), r.u32()?);
        if to_send > QUEUE || received > QUEUE || unsent > to_send {
            return Err(Malformed("itcp_state_length"));
        }
        let fin_sent = flags & flag::FIN_SENT != 0;
        if fin_sent && unsent > 0 {
            return Err(Malformed("itcp_state_flags")); // the FIN is sent after all bytes
        }
        if mss == 0 || mss > u32::from(u16::MAX) || local_port == 0 || remote_port == 0 {
            return Err(Malformed("itcp_state_range"));
        }
        let timestamp = r.u32()?;
        let timestamp = match flags & flag::TIMESTAMP {
            0 if timestamp != 0 => return Err(Malformed("itcp_state_flags")),
            0 => None,
            _ => Some(timestamp),
        };
        let (window_seq, send_window, largest_window) = (Seq(r.u32()?), r.u32()?, r.u32()?);
        let (receive_window, announced) = (r.u32()?, Seq(r.u32()?));
        let receive_next = first_received.plus(received);
        if largest_window < send_window || announced != receive_next || receive_window > 1 << 30 {
            return Err(Malformed("itcp_state_window"));
        }
        let round_trip = round_trip(r.u32()?, r.u32()?)?;
        zeros(r, 44)?;
        Ok(TcpState {
            local: SocketAddrV4::new(local, local_port),
            remote: SocketAddrV4::new(remote, remote_port),
            send_una,
            send_next: send_una.plus(to_send - unsent + u32::from(fin_sent)),
            send_window,
            largest_window,
            window_seq,
            window_ack: send_una,
            send_scale,
            receive_next,
            receive_window,
            receive_scale,
            mss,
            unread: r.take(received as usize)?.to_vec(),
            unacknowledged: r.take(to_send as usize)?.to_vec(),
            finishing: flags & flag::FINISHING != 0,
            finished: flags & flag::FINISHED != 0,
            timestamp,
            sack_permitted: flags & flag::SACK != 0,
            round_trip,
        })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let tcp = &self.tcp;
        let side = match self.side {
            Side::Near => 1,
            Side::Far => 2,
        };
        out.extend([VERSION, side, FAMILY, number(tcp.fin_sent(), tcp.finished)]);
        let mut flags = flag::WINDOW;
        for (is, flag) in [
            (tcp.timestamp.is_some(), flag::TIMESTAMP),
            ((tcp.send_scale, tcp.receive_scale) != (0, 0), flag::SCALE),
            (tcp.sack_permitted, flag::SACK),
            (tcp.finishing, flag::FINISHING),
            (tcp.finished, flag::FINISHED),
            (tcp.fin_sent(), flag::FIN_SENT),
        ] {
            flags |= if is { flag } else { 0 };
        }
        out.extend(flags.to_be_bytes());
        out.extend([tcp.send_scale, tcp.receive_scale]);
        out.extend(tcp.local.port().to_be_bytes());
        out.extend(tcp.remote.port().to_be_bytes());
        out.extend(tcp.mss.to_be_bytes());
        put_mapped(out, *tcp.local.ip());
        put_mapped(out, *tcp.remote.ip());
        let (to_send, received) = (tcp.unacknowledged.len() as u32, tcp.unread.len() as u32);
        let unsent = to_send.saturating_sub(tcp.send_next.since(tcp.send_una));
        for word in [
            tcp.send_una.0,
            to_send,
            unsent,
            tcp.receive_next.minus(received).0,
            received,
            tcp.timestamp.unwrap_or_default(),
            tcp.window_seq.0,
            tcp.send_window,
            tcp.largest_window,
            tcp.receive_window,
            tcp.receive_next.0,
            micros(tcp.round_trip.map(|time| time.smoothed)),
            micros(tcp.round_trip.map(|time| time.variation)),
        ] {
            out.extend(word.to_be_bytes());
        }
        out.extend([0; 44]);
        out.extend(&tcp.unread);
        out.extend(&tcp.unacknowledged);
    }
}

/// Parses the smoothed round trip and its variation, in microseconds. Both are zero if no round trip was measured. A
/// measured round trip is at least 1 µs.
fn round_trip(smoothed: u32, variation: u32) -> Result<Option<RoundTripTime>, Malformed> {
    let span = |micros: u32| Duration::from_micros(micros.into());
    match (smoothed, variation) {
        (0, 0) => Ok(None),
        (0, _) => Err(Malformed("itcp_state_round_trip")),
        _ => Ok(Some(RoundTripTime::new(span(smoothed), span(variation)))),
    }
}

fn micros(span: Option<Duration>) -> u32 {
    span.map_or(0, |span| u32::try_from(span.as_micros()).unwrap_or(u32::MAX))
}
