//! The home address on a further interface, by which the mobile node is at home.

use super::{MobileNode, Timer};
use crate::mark::MobileIpEvent;
use node::{FailedAct, Fault, Outbox};
use wire::{Duration, Iface, Instant};

/// After this time, the host is asked again for an address that it did not accept or remove (not from an RFC).
const AGAIN: Duration = Duration::from_secs(1);

impl MobileNode {
    /// Gives a further interface the home address, because the node is at home by it: otherwise no ARP would be sent or answered
    /// on it. Takes the address from the interface that had it before. `None` if the node is away, or at home by the interface
    /// that always has the address.
    pub(super) fn be_at_home_by(&mut self, iface: Option<Iface>, out: &mut Outbox) {
        let further = iface.filter(|iface| *iface != self.first);
        if further == self.at_home {
            return;
        }
        if let Some(left) = std::mem::replace(&mut self.at_home, further) {
            out.remove_address(left, self.config.address);
        }
        if let Some(iface) = further {
            out.add_address(iface, self.config.address);
        }
    }

    /// The host did not do as it was asked. It is asked again later, unless the node has moved on by then.
    pub(super) fn home_address_failed(&mut self, now: Instant, fault: &Fault, out: &mut Outbox) {
        let FailedAct::Address(iface, address, is_added) = fault.act else { return };
        if address != self.config.address || iface == self.first {
            return;
        }
        let interface = self.interface_name(iface);
        out.mark(MobileIpEvent::HomeAddressFailed { interface, is_added, why: fault.why.clone() }.into());
        self.failed_addresses.insert(iface, is_added);
        self.timers.set(Timer::HomeAddress, now + AGAIN);
    }

    /// Asks the host again for what it did not do.
    pub(super) fn repeat_home_address(&mut self, out: &mut Outbox) {
        for (iface, is_added) in std::mem::take(&mut self.failed_addresses) {
            match (is_added, self.at_home == Some(iface)) {
                (true, true) => out.add_address(iface, self.config.address),
                (false, false) => out.remove_address(iface, self.config.address),
                _ => {}
            }
        }
    }

    fn interface_name(&self, iface: Iface) -> String {
        let all = [&self.used].into_iter().chain(&self.others);
        all.filter(|own| own.iface == iface).map(|own| own.name.clone()).collect()
    }
}
