//! A client's lease: what the server granted, and when it is to be renewed.

use crate::config::is_on_link;
use crate::message::{INFINITE, Message};
use crate::refusal;
use node::{InterfaceAddress, Rng};
use wire::{Duration, Instant, Ipv4Addr, Mac, Reason};

/// The longest pause between two requests to renew or rebind (RFC 2131, section 4.4.5).
const LEAST_WAIT: Duration = Duration::from_mins(1);

/// A lease of an address.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub(crate) address: InterfaceAddress,
    /// The router of the link; `None` if the server gave none on this link.
    pub(crate) router: Option<Ipv4Addr>,
    pub(crate) terms: Terms,
}

/// The part of a lease that changes when it is renewed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// The server that granted the lease.
    pub(crate) server: Ipv4Addr,
    /// The link address from which the server's answer came.
    pub(crate) server_mac: Mac,
    /// The lease time in seconds.
    pub(crate) seconds: u32,
    /// When the client renews (T1).
    pub(crate) renew: Instant,
    /// When the client rebinds (T2).
    pub(crate) rebind: Instant,
    /// When the lease ends.
    pub(crate) end: Instant,
}

/// Returns the address in an offer or acknowledgment. Fails with a reason if the address is no host address of a link,
/// or if the server is missing, or if the lease time is zero or missing.
pub(crate) fn check(message: &Message) -> Result<(InterfaceAddress, Ipv4Addr, u32), Reason> {
    let server = message.server.filter(|server| wire::ipv4::is_host(*server)).ok_or(refusal::NO_SERVER)?;
    let len = message.prefix.filter(|len| *len > 0).ok_or(refusal::NO_MASK)?;
    let address = InterfaceAddress::new(message.yours, len);
    if !is_on_link(address, message.yours) || message.yours == server {
        return Err(refusal::BAD_ADDRESS);
    }
    let seconds = message.lease.filter(|seconds| *seconds > 0).ok_or(refusal::NO_LEASE)?;
    Ok((address, server, seconds))
}

impl Lease {
    /// Returns the lease of an acknowledgment of a request that was `sent` at this instant. `from` is the link address
    /// from which the acknowledgment came. Fails as [`check`]. A router that is not on the link is ignored.
    pub(crate) fn of(message: &Message, from: Mac, sent: Instant, rng: &mut Rng) -> Result<Self, Reason> {
        let (address, server, seconds) = check(message)?;
        let is_router = |router: &Ipv4Addr| is_on_link(address, *router) && *router != address.address;
        let router = message.router.filter(is_router);
        Ok(Self { address, router, terms: Terms::of(message, (server, from), seconds, sent, rng) })
    }
}

impl Terms {
    fn of(message: &Message, server: (Ipv4Addr, Mac), seconds: u32, sent: Instant, rng: &mut Rng) -> Self {
        let (server, server_mac) = server;
        if seconds == INFINITE {
            let never = Instant::NEVER;
            return Self { server, server_mac, seconds, renew: never, rebind: never, end: never };
        }
        let lease = Duration::from_secs(seconds.into());
        let given = message.renew.zip(message.rebind).filter(|(t1, t2)| 0 < *t1 && t1 < t2 && *t2 < seconds);
        let (t1, t2) = given.map_or((lease / 2, lease / 8 * 7), |(t1, t2)| {
            (Duration::from_secs(t1.into()), Duration::from_secs(t2.into()))
        });
        // Clients that were started together must not renew together (RFC 2131, section 4.4.5).
        let fuzz = lease.mul_f64((rng.draw() % 1000) as f64 / 1000.0 / 50.0);
        let (t1, t2) = (t1.saturating_sub(fuzz), t2.saturating_sub(fuzz));
        Self { server, server_mac, seconds, renew: sent + t1, rebind: sent + t2, end: sent + lease }
    }

    /// Returns when a request that was sent at `now` is repeated: after half of the time until `until`, and at least
    /// [`LEAST_WAIT`] (RFC 2131, section 4.4.5). If the lease is shorter than 8 minutes, an eighth of it is sufficient (not
    /// from the RFC): otherwise one lost message could end a short lease. `None` if the time is not sufficient for
    /// another request.
    pub(crate) fn again(&self, now: Instant, until: Instant) -> Option<Instant> {
        let least = LEAST_WAIT.min(Duration::from_secs(self.seconds.into()) / 8);
        let next = now + (until.since(now) / 2).max(least);
        (next < until).then_some(next)
    }
}
