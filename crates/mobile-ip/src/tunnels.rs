//! What an agent learns about its tunnels from ICMP errors (RFC 2003, sections 4 and 5). It knows the path MTU to each
//! exit, whether the exit is reachable, and whether datagrams have too few hops to reach it. The sender of the inner
//! datagram gets an error. The exits of a home agent are care-of addresses. The exits of a foreign agent are the home
//! agents of visitors with reverse tunnels.
//!
//! Each part of this state expires separately. A datagram that violates the state enters the tunnel all the same, and its
//! sender gets an ICMP error.

use crate::clock::Clock;
use crate::encapsulation::room;
use node::{Encap, Expiry, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use wire::icmp::{self, IcmpError, Quote};
use wire::tunnel::{self, Kind};
use wire::{Duration, Instant, Ipv4Addr, Reason, ipv4};

/// The reason to drop an ICMP error that does not quote a packet of one of this agent's tunnels.
pub(crate) const NOT_ABOUT_A_TUNNEL: Reason = Reason("not_about_a_tunnel");

/// The reason to drop an ICMP error about a packet in a tunnel: the senders of inner datagrams do not get errors of
/// this kind (RFC 2003, section 4).
pub(crate) const NOT_RELAYED: Reason = Reason("tunnel_error_not_relayed");

/// How long a part of the state of a tunnel is used after it was last reported (RFC 1191, section 6.3).
const BELIEVED: Duration = Duration::from_mins(10);
/// The smallest MTU inside a tunnel by IP in IP that a report or `tunnel_mtu` may set, in bytes (not from an RFC). With the
/// outer header, a packet has 568 bytes. Each host must accept 576 bytes (RFC 791, section 3.1). A smaller report counts
/// as this value, because an ICMP error is easily forged: it need only quote the tunnel's two addresses.
pub(crate) const SMALLEST_MTU: u16 = 548;
/// The smallest path MTU that a report may set, in bytes.
const SMALLEST_PATH_MTU: u16 = SMALLEST_MTU + Kind::IpInIp.overhead() as u16;

/// The content of an ICMP error about a packet in a tunnel.
#[derive(Debug)]
struct Report<'a> {
    /// Where the tunnel ends.
    exit: Ipv4Addr,
    kind: Kind,
    /// The reported path MTU in bytes; `None` unless the error says that the packet was too big.
    path_mtu: Option<u16>,
    /// Why packets do not reach the exit; `None` if the error does not say so.
    fault: Option<Fault>,
    /// The error for the sender of the inner datagram; `None` if the sender gets no error.
    error: Option<IcmpError>,
    /// The quoted part of the inner datagram; empty if its source address is not quoted.
    inner: Cow<'a, [u8]>,
}

/// Why packets do not reach the exit of a tunnel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Fault {
    /// A router or the exit says that the exit is unreachable.
    Unreachable,
    /// The time to live of the outer datagrams ends before the exit: the path is too long, or it is a loop.
    Hops,
}

impl<'a> Report<'a> {
    /// Parses an ICMP error about a tunnel that begins at `own`. Fails with the reason to drop the ICMP error.
    fn parse(icmp: &'a [u8], own: Ipv4Addr) -> Result<Self, Reason> {
        let message = icmp::Message::parse(icmp)?;
        let quote = Quote::of(&message)?;
        let kind = Kind::of_protocol(quote.protocol).filter(|_| quote.src == own);
        let (Some(kind), Some(inner)) = (kind, tunnel::quoted_inner(&quote)) else {
            return Err(NOT_ABOUT_A_TUNNEL);
        };
        // A router older than RFC 1191 reports an MTU of 0. Then `SMALLEST_PATH_MTU` is used.
        let path_mtu = ((quote.kind, quote.code) == (3, 4)).then(|| quote.mtu.max(SMALLEST_PATH_MTU));
        let (error, fault) = match (quote.kind, quote.code, path_mtu) {
            (.., Some(path_mtu)) => {
                let mtu = path_mtu.saturating_sub(inner.overhead as u16);
                (Some(IcmpError::FragmentationNeeded { mtu }), None)
            }
            // The sender gets neither "port unreachable" (3) nor "source route failed" (5) of the tunnel, nor source
            // quenches and redirects (RFC 2003, sections 4.1 to 4.4).
            (3, 0 | 1 | 2 | 6..=12, _) => (Some(IcmpError::HostUnreachable), Some(Fault::Unreachable)),
            // "Time exceeded" becomes "host unreachable" (RFC 2003, section 4.5). With minimal encapsulation, the time to
            // live is the inner datagram's, so it says nothing about other datagrams.
            (11, 0, _) => (Some(IcmpError::HostUnreachable), (kind != Kind::Minimal).then_some(Fault::Hops)),
            (12, 0, _) => {
                (parameter_problem(message.body.first().copied().unwrap_or_default(), &inner), None)
            }
            _ => (None, None),
        };
        Ok(Self { exit: quote.dst, kind, path_mtu, fault, error, inner: inner.bytes })
    }
}

/// Returns the error for the sender of the inner datagram about the byte `pointer` of the outer datagram (RFC 2003,
/// section 4.6). `None`: the byte does not come from the inner datagram.
fn parameter_problem(pointer: u8, inner: &tunnel::QuotedInner<'_>) -> Option<IcmpError> {
    const TOS: u8 = 1;
    let pointer = if pointer == TOS { TOS } else { pointer.checked_sub(inner.overhead as u8)? };
    Some(IcmpError::ParameterProblem { pointer })
}

/// What follows from an ICMP error about a tunnel.
#[derive(Debug)]
pub(crate) struct Heard {
    /// Where the tunnel ends.
    pub(crate) exit: Ipv4Addr,
    /// Whether the state of the tunnel changed.
    pub(crate) is_changed: bool,
    /// Whether the error says that packets do not reach the exit.
    pub(crate) is_unreached: bool,
    /// The ICMP error for the sender of the inner datagram, and the sender. `None` if the sender is not known, or gets no
    /// error.
    pub(crate) error: Option<(Ipv4Addr, Vec<u8>)>,
}

/// The tunnels in use, by their exits, and what was reported about them.
#[derive(Debug, Default)]
pub(crate) struct Tunnels {
    /// Number of mobile nodes with a tunnel to each exit.
    bound: BTreeMap<Ipv4Addr, usize>,
    /// The reported path MTUs, in bytes of the outer datagram.
    path_mtu: BTreeMap<Ipv4Addr, u16>,
    /// Exits that are reported as not reached, by errors that do not quote the inner sender.
    faults: BTreeSet<(Ipv4Addr, Fault)>,
    expiry: Expiry<(Ipv4Addr, Learnt)>,
    /// The number of ICMP errors about these tunnels that were believed.
    believed: u64,
}

/// A part of the state of a tunnel. Each expires separately.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Learnt {
    Mtu,
    Fault(Fault),
}

impl Tunnels {
    /// Handles an ICMP error about a packet in a tunnel from `own` (RFC 2003, section 4). `configured` is the MTU inside a
    /// tunnel by IP in IP. Fails with the reason to drop the ICMP error.
    pub(crate) fn heard(
        &mut self,
        now: Instant,
        icmp: &[u8],
        own: Ipv4Addr,
        configured: u16,
    ) -> Result<Heard, Reason> {
        let report = Report::parse(icmp, own)?;
        let exit = report.exit;
        if !self.is_exit(exit) {
            return Err(NOT_ABOUT_A_TUNNEL);
        }
        if report.error.is_none() && report.fault.is_none() {
            return Err(NOT_RELAYED);
        }
        self.believed += 1;
        let mut is_changed = report.path_mtu.is_some_and(|mtu| self.lower(now, exit, mtu));
        let error = report.error.map(|error| match report.path_mtu {
            // The reported MTU may be that of an earlier path to the exit, and larger than the present MTU.
            Some(_) => {
                let mtu = self.encap(own, exit, report.kind, configured).reported;
                IcmpError::FragmentationNeeded { mtu }
            }
            None => error,
        });
        let error = error.and_then(|error| error.about_quoted(&report.inner, own));
        // Many routers quote too little to know the sender of the inner datagram. Then each sender of a later packet to
        // this exit is notified (RFC 2003, section 5).
        if let Some(fault) = report.fault
            && report.inner.len() < ipv4::HEADER
        {
            is_changed |= self.fail(now, exit, fault);
        }
        let error = error.and_then(|bytes| Some((ipv4::addresses(&bytes)?.1, bytes)));
        Ok(Heard { exit, is_changed, is_unreached: report.fault.is_some(), error })
    }

    /// Records a path MTU to `exit` for [`BELIEVED`], unless a smaller one is known. Returns whether the known MTU
    /// changed.
    fn lower(&mut self, now: Instant, exit: Ipv4Addr, path_mtu: u16) -> bool {
        let known = self.path_mtu.get(&exit).copied();
        if known.is_some_and(|known| known < path_mtu) {
            return false;
        }
        self.expiry.set((exit, Learnt::Mtu), now + BELIEVED);
        self.path_mtu.insert(exit, path_mtu);
        known != Some(path_mtu)
    }

    /// Returns the tunnel of this kind from `own` to `exit`, with what is known about its path now. `configured` is the MTU
    /// inside a tunnel by IP in IP.
    pub(crate) fn encap(&self, own: Ipv4Addr, exit: Ipv4Addr, kind: Kind, configured: u16) -> Encap {
        let mtu = room(kind, configured);
        let known = self.path_mtu.get(&exit).map(|path| path.saturating_sub(kind.overhead() as u16));
        let reported = known.map_or(mtu, |known| known.min(mtu));
        let is_failing =
            [Fault::Unreachable, Fault::Hops].iter().any(|fault| self.faults.contains(&(exit, *fault)));
        Encap { reported, kind, is_failing, ..Encap::new(own, exit, mtu) }
    }

    /// Records why packets do not reach the exit, for [`BELIEVED`]. Returns whether that was not known.
    fn fail(&mut self, now: Instant, exit: Ipv4Addr, fault: Fault) -> bool {
        self.expiry.set((exit, Learnt::Fault(fault)), now + BELIEVED);
        self.faults.insert((exit, fault))
    }

    /// Forgets a fault. Returns whether it was known.
    fn clear(&mut self, exit: Ipv4Addr, fault: Fault) -> bool {
        self.expiry.stop((exit, Learnt::Fault(fault)));
        self.faults.remove(&(exit, fault))
    }

    /// Returns when the next part of the state of a tunnel expires; `None` if nothing is known.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.expiry.next()
    }

    /// Removes a part that has expired, and returns the tunnel's exit; `None` if none has expired.
    pub(crate) fn expired(&mut self, now: Instant) -> Option<Ipv4Addr> {
        let (exit, learnt) = self.expiry.pop(now)?;
        match learnt {
            Learnt::Mtu => drop(self.path_mtu.remove(&exit)),
            Learnt::Fault(fault) => drop(self.faults.remove(&(exit, fault))),
        }
        Some(exit)
    }

    /// Returns what is known about the paths to the exits, and how many ICMP errors were believed, for a status. `path_mtu`
    /// is that of the outer datagram, in bytes.
    pub(crate) fn status(&self, clock: Clock) -> [(&'static str, Value); 2] {
        let mut paths = BTreeMap::<String, Vec<Value>>::new();
        for ((exit, learnt), ends) in self.expiry.iter() {
            let (learnt, mtu) = match learnt {
                Learnt::Mtu => ("path_mtu", self.path_mtu.get(&exit)),
                Learnt::Fault(Fault::Unreachable) => ("unreachable", None),
                Learnt::Fault(Fault::Hops) => ("too_few_hops", None),
            };
            paths.entry(exit.to_string()).or_default().push(Value::map([
                ("learnt", learnt.into()),
                ("path_mtu", mtu.map_or(Value::None, |mtu| u32::from(*mtu).into())),
                ("ends_unix_s", clock.unix_seconds(ends).into()),
            ]));
        }
        let paths = paths.into_iter().map(|(exit, learnt)| (exit, Value::List(learnt)));
        [("paths", Value::Map(paths.collect())), ("tunnel_errors", self.believed.into())]
    }

    /// Returns whether a tunnel to this exit is in use.
    pub(crate) fn is_exit(&self, exit: Ipv4Addr) -> bool {
        self.bound.contains_key(&exit)
    }

    /// Moves a mobile node from one exit to another; `None` means no tunnel. An exit to which a mobile node comes, or where
    /// it renews, is reachable. The time to live that packets need to get there is not known from that. When the last
    /// mobile node leaves an exit, all that is known about the exit is removed. Returns whether the state of the tunnels to
    /// `to` changed.
    pub(crate) fn rebind(&mut self, from: Option<Ipv4Addr>, to: Option<Ipv4Addr>) -> bool {
        let mut is_changed = false;
        if let Some(exit) = to {
            is_changed = self.clear(exit, Fault::Unreachable);
            *self.bound.entry(exit).or_default() += 1;
        }
        let Some(exit) = from else { return is_changed };
        if let Some(count) = self.bound.get_mut(&exit) {
            *count -= 1;
            if *count == 0 {
                self.bound.remove(&exit);
                self.path_mtu.remove(&exit);
                self.expiry.stop((exit, Learnt::Mtu));
                self.clear(exit, Fault::Unreachable);
                self.clear(exit, Fault::Hops);
            }
        }
        is_changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::icmp::Message;
    use wire::ipv4::Header;
    use wire::tunnel::encapsulate;

    const OWN: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
    const CARE_OF: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 1);
    const SENDER: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);
    const HOME: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);

    /// Returns an ICMP error of this type and code about a packet in a tunnel of this kind.
    fn error(kind: Kind, (number, code): (u8, u8), rest: [u8; 4]) -> Vec<u8> {
        let inner = Header::new(ipv4::UDP, SENDER, HOME).emit(&[7; 100]);
        let outer = encapsulate(kind, &inner, OWN, CARE_OF, 9).unwrap();
        Message { kind: number, code, body: &[&rest[..], &outer].concat() }.emit()
    }

    /// Each row of RFC 2003, section 4.
    #[test]
    fn each_error_in_a_tunnel_becomes_that_of_the_inner_datagram() {
        let unreachable = Some(IcmpError::HostUnreachable);
        let pointer = |pointer| Some(IcmpError::ParameterProblem { pointer });
        let too_big = Some(IcmpError::FragmentationNeeded { mtu: 1380 });
        for (number, code, rest, expected) in [
            (3, 0, [0; 4], unreachable),
            (3, 1, [0; 4], unreachable),
            (3, 2, [0; 4], unreachable),
            (3, 3, [0; 4], None),
            (3, 4, [0, 0, 5, 120], too_big),
            (3, 4, [0; 4], Some(IcmpError::FragmentationNeeded { mtu: SMALLEST_MTU })),
            (3, 5, [0; 4], None),
            (3, 13, [0; 4], None),
            (4, 0, [0; 4], None),
            (5, 1, [0; 4], None),
            (11, 0, [0; 4], unreachable),
            (11, 1, [0; 4], None),
            (12, 0, [1, 0, 0, 0], pointer(1)),
            (12, 0, [9, 0, 0, 0], None),
            (12, 0, [22, 0, 0, 0], pointer(2)),
        ] {
            let bytes = error(Kind::IpInIp, (number, code), rest);
            let report = Report::parse(&bytes, OWN).unwrap();
            assert_eq!((report.exit, report.error), (CARE_OF, expected), "{number}/{code} {rest:?}");
        }
    }

    #[test]
    fn an_error_about_another_kind_of_tunnel_has_another_mtu() {
        for (kind, mtu) in [(Kind::Minimal, 1388), (Kind::Gre, 1376)] {
            let bytes = error(kind, (3, 4), [0, 0, 5, 120]);
            let report = Report::parse(&bytes, OWN).unwrap();
            assert_eq!(report.path_mtu, Some(1400));
            assert_eq!(report.error, Some(IcmpError::FragmentationNeeded { mtu }));
            let sent = report.error.unwrap().about_quoted(&report.inner, OWN).unwrap();
            assert_eq!(Header::parse(&sent).unwrap().0.dst, SENDER);
            assert_eq!(Report::parse(&bytes, HOME).unwrap_err(), NOT_ABOUT_A_TUNNEL);
            // The path to the exit is the same for all kinds of tunnels.
            let mut tunnels = Tunnels::default();
            tunnels.rebind(None, Some(CARE_OF));
            let heard = tunnels.heard(Instant::ZERO, &bytes, OWN, 1480).unwrap();
            assert_eq!((heard.is_changed, heard.error.map(|(to, _)| to)), (true, Some(SENDER)));
            let rooms = [Kind::IpInIp, Kind::Minimal, Kind::Gre]
                .map(|kind| tunnels.encap(OWN, CARE_OF, kind, 1480))
                .map(|encap| (encap.reported, encap.mtu));
            assert_eq!(rooms, [(1380, 1480), (1388, 1488), (1376, 1476)]);
        }
    }

    /// With IP in IP and GRE, the entry sets the time to live. With minimal encapsulation, the sender does.
    #[test]
    fn too_few_hops_concern_all_packets_unless_the_sender_sets_them() {
        for (kind, fault) in
            [(Kind::IpInIp, Some(Fault::Hops)), (Kind::Gre, Some(Fault::Hops)), (Kind::Minimal, None)]
        {
            let bytes = error(kind, (11, 0), [0; 4]);
            let report = Report::parse(&bytes, OWN).unwrap();
            assert_eq!((report.fault, report.error), (fault, Some(IcmpError::HostUnreachable)), "{kind:?}");
        }
        assert_eq!(
            Report::parse(&error(Kind::Gre, (3, 1), [0; 4]), OWN).unwrap().fault,
            Some(Fault::Unreachable)
        );
    }

    #[test]
    fn a_status_has_what_is_learnt_and_until_when() {
        let mut tunnels = Tunnels::default();
        tunnels.rebind(None, Some(CARE_OF));
        for (report, rest) in [((3, 4), [0, 0, 5, 120]), ((11, 0), [0; 4]), ((3, 3), [0; 4])] {
            let bytes = error(Kind::IpInIp, report, rest);
            let Message { kind, code, body } = Message::parse(&bytes).unwrap();
            let quotes_little = &body[..4 + ipv4::HEADER + 8];
            let _ =
                tunnels.heard(Instant::ZERO, &Message { kind, code, body: quotes_little }.emit(), OWN, 1480);
        }
        let [(_, paths), (_, errors)] = tunnels.status(Clock::default());
        let row = |learnt: &'static str, mtu: Value| {
            Value::map([
                ("learnt", learnt.into()),
                ("path_mtu", mtu),
                ("ends_unix_s", Clock::default().unix_seconds(Instant::ZERO + BELIEVED).into()),
            ])
        };
        let rows = vec![row("path_mtu", 1400_u32.into()), row("too_few_hops", Value::None)];
        assert_eq!(paths, Value::Map([(CARE_OF.to_string(), Value::List(rows))].into()));
        assert_eq!(errors, Value::from(2_u64), "a port unreachable is not believed");
    }

    /// A report of the known MTU extends its time, and a report of a larger MTU does not.
    #[test]
    fn a_path_mtu_expires_ten_minutes_after_the_last_report_of_it() {
        let mut tunnels = Tunnels::default();
        let at = |minutes| Instant::ZERO + Duration::from_mins(minutes);
        tunnels.rebind(None, Some(CARE_OF));
        assert!(tunnels.lower(at(0), CARE_OF, 1400));
        assert!(!tunnels.lower(at(3), CARE_OF, 1400));
        assert_eq!(tunnels.due(), Some(at(13)));
        assert!(!tunnels.lower(at(4), CARE_OF, 1401));
        assert_eq!(tunnels.due(), Some(at(13)));
    }

    /// The parts of the state of a tunnel are separate: each expires 10 minutes after its last report. A registration shows
    /// that the exit is reachable, and nothing about the hops.
    #[test]
    fn what_is_learnt_of_an_exit_expires_or_ends_with_its_last_binding() {
        let mut tunnels = Tunnels::default();
        let at = |minutes| Instant::ZERO + Duration::from_mins(minutes);
        let state = |tunnels: &Tunnels| {
            let encap = tunnels.encap(OWN, CARE_OF, Kind::IpInIp, 1480);
            (encap.reported, encap.is_failing)
        };
        let [unreachable, hops] = [Fault::Unreachable, Fault::Hops];
        tunnels.rebind(None, Some(CARE_OF));
        assert!(tunnels.fail(at(0), CARE_OF, unreachable) && !tunnels.fail(at(1), CARE_OF, unreachable));
        assert!(tunnels.lower(at(2), CARE_OF, 1400) && tunnels.fail(at(3), CARE_OF, hops));
        assert_eq!((tunnels.due(), tunnels.expired(at(10))), (Some(at(11)), None));
        assert_eq!((tunnels.expired(at(11)), state(&tunnels)), (Some(CARE_OF), (1380, true)));
        assert_eq!((tunnels.expired(at(12)), state(&tunnels)), (Some(CARE_OF), (1480, true)));
        assert_eq!((tunnels.expired(at(13)), state(&tunnels)), (Some(CARE_OF), (1480, false)));
        assert!(tunnels.fail(at(14), CARE_OF, unreachable));
        tunnels.rebind(Some(CARE_OF), Some(CARE_OF));
        assert_eq!(state(&tunnels), (1480, false), "a registration came from there");
        assert!(tunnels.fail(at(14), CARE_OF, hops) && tunnels.lower(at(14), CARE_OF, 1400));
        tunnels.rebind(Some(CARE_OF), Some(CARE_OF));
        assert_eq!(state(&tunnels), (1380, true));
        tunnels.rebind(Some(CARE_OF), None);
        assert_eq!((state(&tunnels), tunnels.due()), ((1480, false), None));
    }
}
