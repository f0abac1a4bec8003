//! The data path in the kernel, beside the node. It forwards packets out of tunnels, and keeps the last ones of a visitor, without
//! this process. The node gets all other packets.

use super::Daemon;
use super::Spec;
use data_path::{Counts, DataPath};
use node::Value;
use os::Result;
use std::io::Write;
use wire::{Iface, Instant};

/// Loads the data path that the configuration asks for.
pub(super) fn load(spec: &Spec) -> Result<Option<DataPath>> {
    spec.data_path_in_kernel.then(|| DataPath::load(spec.node.room_aside())).transpose()
}

/// Loads the program of the data path in the kernel, and removes it again. Fails if a daemon cannot have this data path.
pub fn try_data_path() -> Result<()> {
    DataPath::load(0).map(drop)
}

impl Daemon {
    /// Begins to forward packets in the kernel. The node has not started yet.
    pub(super) fn begin_data_path(&mut self) {
        if let Some(path) = &mut self.data_path {
            self.node.begin_mirror();
            self.node.udp_ports().for_each(|port| path.hear(port));
            path.begin(self.clock.t0);
        }
    }

    /// Changes the rules of the data path to those of the node. A route may be gone meanwhile: then the node gets the last packets
    /// that were kept for it.
    pub(super) fn follow_rules(&mut self, now: Instant) {
        let Some(path) = &mut self.data_path else { return };
        path.allow(self.node.opens_aside());
        let mut is_changed = false;
        while let Some(act) = self.node.next_mirror_act() {
            path.apply(now, &act);
            is_changed = true;
        }
        if is_changed {
            self.fetch_kept(now);
        }
    }

    /// Gives the node the packets that were kept since the last call. They come before anything else that the node gets.
    pub(super) fn fetch_kept(&mut self, now: Instant) {
        let Some(path) = &mut self.data_path else { return };
        if !path.has_kept() && path.due().is_none_or(|due| now < due) {
            return;
        }
        for mut kept in path.fetch(now) {
            kept.packet.id = self.identify(&kept.packet.bytes);
            self.node.kept(now, kept, &mut self.out);
        }
    }

    /// Takes the packets that were kept, if a route was removed more than a second ago: no other event may come for a long time.
    pub(super) fn fetch_late_packets(&mut self) {
        let now = self.clock.now();
        if self.data_path.as_ref().and_then(DataPath::due).is_some_and(|due| due <= now) {
            self.fetch_kept(now);
            self.carry_out(now);
        }
    }

    /// Handles all frames that have arrived, if one of them is a message to a role. The data path then forwards again: until now it
    /// has passed all packets, so that none overtakes a message that changes its route.
    pub(super) fn end_wait_of_data_path(&mut self) -> Result<()> {
        let now = self.clock.now();
        let Some(path) = &mut self.data_path else { return Ok(()) };
        let Some(messages) = path.messages(now) else { return Ok(()) };
        for number in 1..=self.ports.len() {
            if self.receive(Iface(number as u16))? {
                return Ok(()); // there may be more
            }
        }
        if let Some(path) = &mut self.data_path {
            path.handled(messages);
        }
        Ok(())
    }

    /// Takes the uses of routes by the data path, before the node ends lifetimes.
    pub(super) fn ask_uses(&mut self, now: Instant) {
        if let Some(path) = &self.data_path {
            self.node.ask_uses(now, &mut |key| path.last_use(key));
        }
    }

    /// Passes the state of a link to the data path: packets leave only by links that are up.
    pub(super) fn link_of_data_path(&mut self, iface: Iface, is_up: bool) {
        let mac = self.port(iface).filter(|_| is_up).map(|port| port.spec.mac);
        if let Some(path) = &mut self.data_path {
            path.link(iface, mac);
        }
    }

    /// Attaches the data path to the devices of all interfaces.
    pub(super) fn attach_data_path(&mut self) -> Result<()> {
        let Some(path) = &mut self.data_path else { return Ok(()) };
        let mut ports = (1..).map(Iface).zip(&self.ports);
        ports.try_for_each(|(iface, port)| path.attach(iface, port.state.index))
    }

    /// Attaches the data path to a device that has taken the place of another one. If it cannot, the daemon gets all packets of
    /// this device.
    pub(super) fn attach_data_path_again(&mut self, iface: Iface, index: u32) {
        let attached = self.data_path.as_mut().map_or(Ok(()), |path| path.attach(iface, index));
        if let Err(error) = attached {
            let _ = writeln!(
                std::io::stderr(),
                "interface number {}: the data path in the kernel is not attached, so the daemon forwards its packets: {error}",
                iface.0
            );
        }
    }

    /// Returns the state of the data path for an operator; `None` without one.
    pub(super) fn data_path_status(&self) -> Option<(String, Value)> {
        let Counts { forwarded, kept, passed } = self.data_path.as_ref()?.counts();
        let counts = [("forwarded", forwarded), ("kept", kept), ("passed", passed)];
        Some(("data_path".to_owned(), Value::map(counts.map(|(name, count)| (name, Value::from(count))))))
    }

    /// Returns why the data path forwards nothing, as a sentence for the operator.
    pub(super) fn data_path_trouble(&self) -> Option<String> {
        let why = self.data_path.as_ref()?.idle_because()?;
        Some(format!(
            "the data path in the kernel forwards no packets; the daemon forwards all of them: {why}"
        ))
    }
}
