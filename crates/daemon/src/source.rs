//! The sources that a daemon waits for, and their tokens.

use node::{Addr, StreamId};
#[cfg(test)]
use os::epoll::Epoll;
use os::epoll::{Events, Ready as ReadyToken};
use std::collections::BTreeSet;
use wire::{Iface, Ipv4Addr};

/// A source of events. A token identifies a source, and not a descriptor. So it does no harm if the kernel gives a
/// descriptor number to another source, and a token of a source that was closed meanwhile is ignored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Source {
    Timer,
    Signals,
    Emulator,
    Links,
    Hooks,
    /// The listener of the control socket, and its connections.
    Control,
    Store,
    /// A packet socket: number 0 is the socket of the host's own stack, and other numbers are those of the interfaces.
    Interface(Iface),
    Udp(StreamId),
    /// A TCP socket of a role: a listener or a connection.
    Tcp(StreamId),
    ClientListener,
    /// A program that has connected to the daemon, and has not sent its request yet.
    Asking(u64),
    /// A socket that listens on the address of a destination.
    StandIn(Addr),
    /// A connection of a program.
    Bridge(StreamId),
}

/// Bits of a token for the value of a source.
const VALUE: u32 = 56;

impl Source {
    /// Returns the token of the source. Tokens have the order of the sources.
    pub(crate) fn token(self) -> u64 {
        let (kind, value) = match self {
            Self::Timer => (0, 0),
            Self::Signals => (1, 0),
            Self::Emulator => (2, 0),
            Self::Links => (3, 0),
            Self::Hooks => (4, 0),
            Self::Control => (5, 0),
            Self::Store => (6, 0),
            Self::Interface(Iface(number)) => (7, number.into()),
            Self::Udp(StreamId(id)) => (8, id.into()),
            Self::Tcp(StreamId(id)) => (9, id.into()),
            Self::ClientListener => (10, 0),
            Self::Asking(number) => (11, number),
            Self::StandIn(addr) => (12, u64::from(addr.ip().to_bits()) << 16 | u64::from(addr.port())),
            Self::Bridge(StreamId(id)) => (13, id.into()),
        };
        kind << VALUE | value & ((1 << VALUE) - 1)
    }

    /// Returns the source of a token; `None` if no source has it.
    pub(crate) fn of(token: u64) -> Option<Self> {
        let value = token & ((1 << VALUE) - 1);
        let id = StreamId(value as u32);
        Some(match token >> VALUE {
            0 => Self::Timer,
            1 => Self::Signals,
            2 => Self::Emulator,
            3 => Self::Links,
            4 => Self::Hooks,
            5 => Self::Control,
            6 => Self::Store,
            7 => Self::Interface(Iface(value as u16)),
            8 => Self::Udp(id),
            9 => Self::Tcp(id),
            10 => Self::ClientListener,
            11 => Self::Asking(value),
            12 => Self::StandIn(Addr::new(Ipv4Addr::from_bits((value >> 16) as u32), value as u16)),
            13 => Self::Bridge(id),
            _ => return None,
        })
    }
}

/// The sources that have an event.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each flag is independent: the source has an event to handle"
)]
pub(crate) struct Ready {
    pub(crate) timer: bool,
    pub(crate) signals: bool,
    pub(crate) links: bool,
    pub(crate) hooks: bool,
    pub(crate) control: bool,
    pub(crate) radio: bool,
    /// The link emulator has closed the connection.
    pub(crate) radio_ends: bool,
    pub(crate) interfaces: Vec<Iface>,
    pub(crate) sockets: ReadySockets,
    pub(crate) clients: ReadyClients,
}

/// The sockets of roles that have an event.
#[derive(Debug, Default)]
pub(crate) struct ReadySockets {
    pub(crate) udp: Vec<StreamId>,
    pub(crate) tcp: Vec<StreamId>,
}

/// The sockets of programs that have an event.
#[derive(Debug, Default)]
pub(crate) struct ReadyClients {
    pub(crate) listener: bool,
    pub(crate) asking: Vec<u64>,
    pub(crate) stand_ins: Vec<Addr>,
    pub(crate) bridges: BTreeSet<StreamId>,
}

impl Ready {
    /// Sorts the tokens that a wait has returned by their sources.
    pub(crate) fn of(tokens: &[ReadyToken]) -> Self {
        let mut ready = Self::default();
        for ReadyToken { token, events } in tokens {
            let Some(source) = Source::of(*token) else { continue };
            match source {
                Source::Timer => ready.timer = true,
                Source::Signals => ready.signals = true,
                Source::Emulator => {
                    ready.radio = true;
                    ready.radio_ends = events.contains(Events::HUP);
                }
                Source::Links => ready.links = true,
                Source::Hooks => ready.hooks = true,
                Source::Control => ready.control = true,
                Source::Store => {} // asked at each turn
                Source::Interface(iface) => ready.interfaces.push(iface),
                Source::Udp(id) => ready.sockets.udp.push(id),
                Source::Tcp(id) => ready.sockets.tcp.push(id),
                Source::ClientListener => ready.clients.listener = true,
                Source::Asking(number) => ready.clients.asking.push(number),
                Source::StandIn(addr) => ready.clients.stand_ins.push(addr),
                Source::Bridge(id) => _ = ready.clients.bridges.insert(id),
            }
        }
        ready
    }

    /// Returns what is ready now, without waiting.
    #[cfg(test)]
    pub(crate) fn now(epoll: &Epoll) -> Self {
        let mut tokens = Vec::new();
        epoll.wait(&mut tokens, Some(&rustix::time::Timespec::default())).unwrap();
        Self::of(&tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_names_its_source_and_has_its_place_in_the_order() {
        let (low, high) = (StreamId(0), StreamId(u32::MAX));
        let addr = |ip, port| Addr::new(Ipv4Addr::from_bits(ip), port);
        let all = [
            Source::Timer,
            Source::Signals,
            Source::Emulator,
            Source::Links,
            Source::Hooks,
            Source::Control,
            Source::Store,
            Source::Interface(Iface(0)),
            Source::Interface(Iface(u16::MAX)),
            Source::Udp(low),
            Source::Udp(high),
            Source::Tcp(low),
            Source::Tcp(high),
            Source::ClientListener,
            Source::Asking(0),
            Source::Asking((1 << VALUE) - 1),
            Source::StandIn(addr(0, 1)),
            Source::StandIn(addr(1, 0)),
            Source::StandIn(addr(u32::MAX, u16::MAX)),
            Source::Bridge(low),
            Source::Bridge(high),
        ];
        for pair in all.windows(2) {
            assert!(pair[0] < pair[1] && pair[0].token() < pair[1].token(), "{pair:?}");
        }
        assert!(all.iter().all(|source| Source::of(source.token()) == Some(*source)));
        assert_eq!(Source::of(u64::MAX), None);
    }
}
