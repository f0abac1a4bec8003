//! Sets for which events of each source the daemon waits, and waits for them until the next time-out.

use super::Daemon;
use super::source::{Ready, Source};
use super::{Heartbeat, Hooks, StoreThread};
use data_path::DataPath;
use os::epoll::Events;
use os::{Attempt, PacketSocket, Result, Signals};
use rustix::time::Timespec;
use wire::{Iface, Instant};

/// Time after which the daemon tries again to accept a client.
const REST: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

impl Daemon {
    /// Adds the sources that exist from the start. The sockets of control clients, programs and roles are added when
    /// they are opened.
    pub(super) fn watch_sources(&self, signals: &Signals) -> Result<()> {
        let add = || {
            self.epoll.add(&self.timer, Source::Timer.token(), Events::IN)?;
            self.epoll.add(signals, Source::Signals.token(), Events::IN)?;
            self.epoll.add(&self.links, Source::Links.token(), Events::IN)?;
            if let Some(hooks) = &self.hooks {
                self.epoll.add(hooks, Source::Hooks.token(), Events::IN)?;
            }
            if let Some(store) = &self.store {
                self.epoll.add(store, Source::Store.token(), Events::IN)?;
            }
            // Frames that arrive before the begin stay in the sockets until then. The end of the link emulator is
            // reported all the same.
            if let Some(radio) = &self.radio {
                self.epoll.add(radio, Source::Emulator.token(), Events::empty())?;
            }
            for (iface, socket) in self.packet_sockets() {
                self.epoll.add(socket, Source::Interface(iface).token(), Events::empty())?;
            }
            Ok::<_, rustix::io::Errno>(())
        };
        add().attempt("wait on", "the daemon's sockets")
    }

    /// Makes later waits return also for frames and for messages of the link emulator. It is called when the run
    /// begins.
    pub(super) fn watch_frames(&self) -> Result<()> {
        let change = || {
            if let Some(radio) = &self.radio {
                self.epoll.modify(radio, Source::Emulator.token(), Events::IN)?;
            }
            for (iface, socket) in self.packet_sockets() {
                self.epoll.modify(socket, Source::Interface(iface).token(), Events::IN)?;
            }
            Ok::<_, rustix::io::Errno>(())
        };
        change().attempt("wait on", "the interfaces")
    }

    /// Replaces the socket of an interface.
    pub(super) fn replace_socket(&mut self, iface: Iface, socket: PacketSocket) -> Result<()> {
        let frames = if self.began { Events::IN } else { Events::empty() };
        self.epoll
            .add(&socket, Source::Interface(iface).token(), frames)
            .attempt("wait on", format_args!("interface number {}", iface.0))?;
        let epoll = &self.epoll;
        if let Some(port) = self.ports.get_mut(usize::from(iface.0).saturating_sub(1)) {
            let _ = epoll.remove(&port.socket);
            port.socket = socket;
        }
        Ok(())
    }

    fn packet_sockets(&self) -> impl Iterator<Item = (Iface, &PacketSocket)> {
        let ports = self.ports.iter().map(|port| &port.socket);
        (0..).map(Iface).zip(std::iter::once(&self.host.socket).chain(ports))
    }

    /// Waits until a source has an event, or until the pause after a failed `accept` is over. Does not wait if more can
    /// be read from clients or from the store. Returns the ready sources; no other source is read, because each read is
    /// a system call. The work does not depend on the number of sockets.
    pub(super) fn wait(&mut self) -> Result<Ready> {
        self.set_timer()?;
        self.update_interests().attempt("wait on", "the daemon's sockets")?;
        let at_once = self.control.has_more() || self.store.as_ref().is_some_and(StoreThread::has_more);
        let rests = self.control.rests() || self.clients.rests();
        let timeout = match (at_once, rests) {
            (true, _) => Some(Timespec::default()),
            (false, true) => Some(REST),
            (false, false) => None,
        };
        self.epoll.wait(&mut self.tokens, timeout.as_ref())?;
        let mut ready = Ready::of(&self.tokens);
        ready.control |= self.control.has_more() || self.control.rests();
        self.ends |= ready.signals;
        Ok(ready)
    }

    fn set_timer(&mut self) -> Result<()> {
        let beat = self.measurements.heartbeat.as_ref().map(Heartbeat::due);
        let hooks = self.hooks.as_ref().and_then(Hooks::due);
        let drifts = Some(self.clock_error.1).filter(|at| *at < Instant::NEVER);
        let kept = self.data_path.as_ref().and_then(DataPath::due);
        let due = [
            drifts,
            self.node.deadline(),
            self.clients.deadline(),
            self.sockets.deadline(),
            beat,
            hooks,
            kept,
        ]
        .into_iter()
        .flatten()
        .min();
        let due = if self.began { due.unwrap_or(Instant::NEVER) } else { Instant::ZERO };
        if (self.began || self.told_to_begin) && self.armed != Some(due) {
            self.timer.arm(self.clock, due)?;
            self.armed = Some(due);
        }
        Ok(())
    }

    fn update_interests(&mut self) -> std::result::Result<(), rustix::io::Errno> {
        self.control.update_interests()?;
        self.sockets.update_interests()?;
        // Programs that connect before the begin wait until then.
        if self.began { self.clients.update_interests() } else { Ok(()) }
    }
}
