//! Routes: pairs of a local address and an address of the peer. A path has one route at a time, and gets another route
//! when the source of its packets changes.

use crate::Config;
use crate::association::Association;
use crate::path::Path;
use std::collections::VecDeque;
use wire::{Duration, Instant, Ipv4Addr, Rto};

/// The maximum number of routes whose round-trip times are remembered.
const MEASURED_ROUTES: usize = 32;

/// SRTT and RTTVAR of routes that paths have left. The route that was left last is at the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    measured: VecDeque<((Ipv4Addr, Ipv4Addr), (Duration, Duration))>,
}

impl Routes {
    /// Remembers SRTT and RTTVAR of a route that a path leaves, if its round trip was measured.
    fn leave(&mut self, route: (Ipv4Addr, Ipv4Addr), rto: &Rto) {
        let Some(measured) = rto.srtt().zip(rto.rttvar()) else { return };
        self.measured.retain(|(known, _)| *known != route);
        self.measured.push_back((route, measured));
        let surplus = self.measured.len().saturating_sub(MEASURED_ROUTES);
        self.measured.drain(..surplus);
    }

    /// Returns the time-out of a route. RTO.Initial holds only until a round trip was measured (RFC 9260, section
    /// 6.3.1, C1). So a route that is used again starts with its old time-out, without back-off.
    fn rto(&self, route: (Ipv4Addr, Ipv4Addr), config: &Config) -> Rto {
        let bounds = config.rto_bounds();
        let measured = self.measured.iter().find(|(known, _)| *known == route);
        measured.map_or_else(|| Rto::new(bounds), |(_, (srtt, rttvar))| Rto::measured(bounds, *srtt, *rttvar))
    }

    /// Forgets the measurements of all routes, because the association restarts.
    pub(crate) fn forget(&mut self) {
        self.measured.clear();
    }
}

impl Association {
    /// Returns each address of the peer with the source of packets to it. The source is `None` if none of our
    /// addresses may send.
    pub(crate) fn sources(&self) -> Vec<(Ipv4Addr, Option<Ipv4Addr>)> {
        self.paths.iter().map(|path| (path.address, self.locals.source(&[path.source]))).collect()
    }

    /// Resets the paths whose source differs from that in `before`, the result of [`Self::sources`] before the change.
    /// Their RTO is that of the new route, if its round trip was measured before.
    pub(crate) fn rerouted(&mut self, before: &[(Ipv4Addr, Option<Ipv4Addr>)]) {
        for (peer, source) in self.sources() {
            let was = before.iter().find(|(address, _)| *address == peer).and_then(|(_, was)| *was);
            let Some(path) = self.paths.get_mut(peer).filter(|_| was != source) else { continue };
            self.detour.begin_again();
            if let Some(was) = was {
                self.routes.leave((was, peer), &path.rto);
            }
            path.reset_congestion(&self.config);
            if let Some(source) = source {
                path.rto = self.routes.rto((source, peer), &self.config);
            }
        }
    }

    /// Adds an address of the peer. `hearsay`: only a directory named the address. A path that exists already does
    /// not change.
    pub(crate) fn add_path(&mut self, now: Instant, address: Ipv4Addr, hearsay: bool) {
        let mut path = Path::new(now, address, &self.config);
        path.hearsay = hearsay;
        if let Some(source) = self.locals.source(&[]) {
            path.rto = self.routes.rto((source, address), &self.config);
        }
        self.moved |= self.paths.add(path);
    }

    /// Removes an address at which the peer can no longer be reached.
    pub(crate) fn remove_path(&mut self, address: Ipv4Addr) {
        let Some(path) = self.paths.get(address) else { return };
        if let Some(source) = self.locals.source(&[path.source]) {
            self.routes.leave((source, address), &path.rto);
        }
        self.paths.remove(address);
        self.moved = true;
    }
}
