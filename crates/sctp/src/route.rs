//! Routes: from one of our addresses to one of the peer's. A path to the peer has one route at a time, and another when we move.

use crate::Config;
use crate::association::Association;
use crate::path::Path;
use std::collections::VecDeque;
use wire::{Duration, Instant, Ipv4Addr, Rto};

/// Routes whose round trips are remembered.
const MEASURED_ROUTES: usize = 32;

/// Round trips of routes that are not used now: smoothed, and its variance. The latest route that was left is the last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    measured: VecDeque<((Ipv4Addr, Ipv4Addr), (Duration, Duration))>,
}

impl Routes {
    /// A route is left, and was measured.
    fn leave(&mut self, route: (Ipv4Addr, Ipv4Addr), rto: &Rto) {
        let Some(measured) = rto.srtt().zip(rto.rttvar()) else { return };
        self.measured.retain(|(known, _)| *known != route);
        self.measured.push_back((route, measured));
        let surplus = self.measured.len().saturating_sub(MEASURED_ROUTES);
        self.measured.drain(..surplus);
    }

    /// The time-out of a route. RTO.Initial holds only until a round trip was measured (RFC 9260, section 6.3.1, C1), so that of a
    /// route that is used again is what it was, but not backed off.
    fn rto(&self, route: (Ipv4Addr, Ipv4Addr), config: &Config) -> Rto {
        let bounds = config.rto_bounds();
        let measured = self.measured.iter().find(|(known, _)| *known == route);
        measured.map_or_else(|| Rto::new(bounds), |(_, (srtt, rttvar))| Rto::measured(bounds, *srtt, *rttvar))
    }

    /// The association begins again.
    pub(crate) fn forget(&mut self) {
        self.measured.clear();
    }
}

impl Association {
    /// Our address for each of the peer's.
    pub(crate) fn sources(&self) -> Vec<(Ipv4Addr, Option<Ipv4Addr>)> {
        self.paths.iter().map(|path| (path.address, self.locals.source(&[path.source]))).collect()
    }

    /// Begins anew with paths whose source is another than it was.
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

    /// The peer may be reached at `address`; `hearsay`: as only a directory says. A path that is there already stays.
    pub(crate) fn add_path(&mut self, now: Instant, address: Ipv4Addr, hearsay: bool) {
        let mut path = Path::new(now, address, &self.config);
        path.hearsay = hearsay;
        if let Some(source) = self.locals.source(&[]) {
            path.rto = self.routes.rto((source, address), &self.config);
        }
        self.moved |= self.paths.add(path);
    }

    /// The peer cannot be reached at `address` any more.
    pub(crate) fn remove_path(&mut self, address: Ipv4Addr) {
        let Some(path) = self.paths.get(address) else { return };
        if let Some(source) = self.locals.source(&[path.source]) {
            self.routes.leave((source, address), &path.rto);
        }
        self.paths.remove(address);
        self.moved = true;
    }
}
