//! Link states: devices that go down, lose their carrier, are removed and return; radios that tune; wires that are cut.
//! A link is up for the roles when its device carries frames, its wire is not cut, and its radio, if it is one, is
//! tuned.

use super::Daemon;
use super::emulator_client::{EmulatorClient, EmulatorEvent};
use super::host_link::{self, KERNEL_SIDE, NODE_SIDE};
use super::port::{LinkState, Port, open_port};
use node::{Input, Link};
use os::{LinkChange, Netlink, Result, nft};
use trace::What;
use wire::{Cell, Iface};

/// The reason that a link is down: the device was set down.
const DOWN: &str = "interface_down";
/// The reason that a link is down: the device is up, but the other end of the wire or the access point is missing.
const NO_CARRIER: &str = Link::NO_CARRIER;
/// The reason that a link is down: the device was removed.
const REMOVED: &str = "interface_removed";

impl Daemon {
    /// Notifies the roles of changes of the links since the last call.
    pub(super) fn handle_link_changes(&mut self) -> Result<()> {
        for change in self.links.changes()? {
            match change {
                LinkChange::Is(link) if self.host.pair.contains(&link.index) => {
                    self.host_link_changed(&link)?;
                }
                LinkChange::Is(link) => {
                    let Some(iface) = self.iface_of(|port| port.spec.name == link.name) else { continue };
                    self.device_changed(iface, &link)?;
                }
                LinkChange::Removed(index) if self.host.pair.contains(&index) => self.host_link_removed(),
                LinkChange::Removed(index) => {
                    if let Some(iface) = self.iface_of(|port| port.state.index == index) {
                        self.lose_device(iface, REMOVED);
                    }
                }
            }
        }
        Ok(())
    }

    fn iface_of(&self, is_it: impl Fn(&Port) -> bool) -> Option<Iface> {
        self.ports.iter().position(is_it).map(|index| Iface(index as u16 + 1))
    }

    fn device_changed(&mut self, iface: Iface, link: &os::Link) -> Result<()> {
        let Some(port) = self.port_mut(iface) else { return Ok(()) };
        let mtu = port.mtu();
        port.state.mtu = link.mtu;
        // For a radio, roles get the MTU when the link comes up next.
        let is_other_mtu = port.mtu() != mtu && !port.spec.tunes && port.state.is_up;
        if link.index != port.state.index || !port.socket.is_bound_to(link.index) {
            // This is a new device with this name, or the same device after it left the namespace. The hook and the
            // socket were lost with the removal.
            match nft::install_ingress_drop(&[&link.name]).and_then(|()| open_port(&link.name)) {
                Ok(socket) => {
                    port.state.index = link.index;
                    self.replace_socket(iface, socket)?;
                    self.attach_data_path_again(iface, link.index);
                }
                // The device was removed again. If it returns, the old socket is bound to no device, and is replaced
                // then.
                Err(error) if error.is_absent() => {
                    self.lose_device(iface, REMOVED);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        if link.carries {
            if let Some(port) = self.port_mut(iface) {
                port.state.carries = true;
            }
            self.settle(iface);
            if is_other_mtu {
                self.link_up(iface, None);
            }
        } else {
            self.lose_device(iface, if link.up { NO_CARRIER } else { DOWN });
        }
        Ok(())
    }

    fn lose_device(&mut self, iface: Iface, why: &str) {
        let Some(port) = self.port_mut(iface) else { return };
        if !std::mem::take(&mut port.state.carries) {
            return;
        }
        let (name, was_up) = (port.spec.name.clone(), std::mem::take(&mut port.state.is_up));
        self.note_lost(name);
        if self.began && was_up {
            self.link_down(iface, why);
        }
    }

    /// Adds the interface to the report to the lab. No event of a scenario sets a device down, so the cause is outside
    /// the run.
    pub(super) fn note_lost(&mut self, name: String) {
        if !self.measurements.lost_interfaces.contains(&name) {
            self.measurements.lost_interfaces.push(name);
        }
    }

    /// Notifies the roles that a link is up, if it is up and the roles have not been notified yet.
    pub(super) fn settle(&mut self, iface: Iface) {
        let began = self.began;
        let Some(port) = self.port_mut(iface) else { return };
        let LinkState { carries, cell, tuning, is_cut, is_up, .. } = port.state;
        let is_tuned = !port.spec.tunes || (cell.is_some() && !tuning);
        if began && carries && !is_cut && is_tuned && !is_up {
            port.state.is_up = true;
            self.link_up(iface, cell);
        }
    }

    /// Restores the default route when the pair carries again: the kernel removed it, and the host's own stack cannot
    /// send without it.
    fn host_link_changed(&mut self, link: &os::Link) -> Result<()> {
        if !link.carries {
            if std::mem::take(&mut self.host.carries) {
                self.note_lost(link.name.clone());
            }
        } else if !self.host.carries
            && [KERNEL_SIDE, NODE_SIDE].iter().all(|end| self.net.link(end).is_ok_and(|link| link.carries))
        {
            self.host.carries = true;
            host_link::disable_autoconf(KERNEL_SIDE);
            self.host.restore_default_route(&mut self.net)?;
        }
        Ok(())
    }

    /// Handles a message of the link emulator.
    pub(super) fn emulator_reported(&mut self, event: EmulatorEvent) {
        match event {
            EmulatorEvent::Up { iface, cell } => {
                let (iface, cell) = (Iface(iface), Cell(cell));
                let Some(port) = self.port_mut(iface) else { return };
                (port.state.cell, port.state.tuning) = (Some(cell), false);
                port.state.is_up = port.state.carries;
                if port.state.carries {
                    self.link_up(iface, Some(cell));
                } else {
                    self.link_down(iface, DOWN); // answers the role that tuned the radio
                }
            }
            EmulatorEvent::Down { iface, why } => {
                let iface = Iface(iface);
                let Some(port) = self.port_mut(iface) else { return };
                port.state.tuning = false;
                // A radio comes up by the next `Up`, also after its cable was cut.
                port.state.is_cut |= why == Link::NO_CARRIER && !port.spec.tunes;
                if why != Link::UNSUPPORTED {
                    (port.state.cell, port.state.is_up) = (None, false);
                }
                self.link_down(iface, &why);
                self.settle(iface);
            }
            EmulatorEvent::Carrier { iface } => {
                let Some(port) = self.port_mut(Iface(iface)) else { return };
                port.state.is_cut = false;
                self.settle(Iface(iface));
            }
            EmulatorEvent::Mtu { iface, mtu } => {
                let Some(port) = self.port_mut(Iface(iface)) else { return };
                port.spec.mtu = mtu;
                // For a radio, roles get the MTU when the link comes up next.
                if !port.spec.tunes && port.state.is_up {
                    self.link_up(Iface(iface), None);
                }
            }
            EmulatorEvent::Heard { iface, cell, dbm } => {
                let now = self.clock.now();
                self.give(now, Input::Link(Iface(iface), Link::Heard(Cell(cell), dbm)));
            }
        }
    }

    /// Reads the link emulator's messages before the start: for a host that restarts, links may be cut or changed.
    /// Signal reports of radios are returned, because only roles that have begun can use them.
    pub(super) fn hear_emulator_before_start(&mut self) -> Vec<EmulatorEvent> {
        let mut heard = Vec::new();
        while let Some(event) = self.radio.as_mut().and_then(EmulatorClient::hear) {
            match event {
                EmulatorEvent::Down { iface, why } if why == Link::NO_CARRIER => {
                    if let Some(port) = self.port_mut(Iface(iface)).filter(|port| !port.spec.tunes) {
                        port.state.is_cut = true;
                    }
                }
                EmulatorEvent::Mtu { iface, mtu } => {
                    if let Some(port) = self.port_mut(Iface(iface)) {
                        port.spec.mtu = mtu;
                    }
                }
                EmulatorEvent::Carrier { iface } => {
                    if let Some(port) = self.port_mut(Iface(iface)) {
                        port.state.is_cut = false;
                    }
                }
                EmulatorEvent::Heard { .. } => heard.push(event),
                // All other events are about radios, which the roles have not tuned yet.
                EmulatorEvent::Up { .. } | EmulatorEvent::Down { .. } => {}
            }
        }
        heard
    }

    pub(super) fn link_up(&mut self, iface: Iface, cell: Option<Cell>) {
        let Some((spec, mtu)) = self.port(iface).map(|port| (port.spec.clone(), port.mtu())) else { return };
        let now = self.clock.now();
        self.record(now, What::Up(iface, cell));
        let link = Link::Up { cell, mac: spec.mac, mtu, name: &spec.name };
        self.give(now, Input::Link(iface, link));
        self.link_of_data_path(iface, true);
    }

    pub(super) fn link_down(&mut self, iface: Iface, why: &str) {
        let now = self.clock.now();
        self.record(now, What::Down(iface, why.to_owned().into()));
        self.link_of_data_path(iface, false);
        self.give(now, Input::Link(iface, Link::Down(why)));
    }
}

/// Returns the state of a link whose device has been taken over.
pub(super) fn link_state_of(net: &mut Netlink, name: &str) -> Result<LinkState> {
    let link = net.link(name)?;
    Ok(LinkState { index: link.index, mtu: link.mtu, carries: link.carries, ..LinkState::default() })
}
