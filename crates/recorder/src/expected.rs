//! What a plan expects of its applications, and the mark of an application that read wrong data.

use node::{Mark, Value};
use roles::RoleConfig;
use scenario::Plan;
use std::fmt;
use trace::HostId;
use wire::{Instant, SocketAddrV4};

/// The longest time for which a flow may be without a byte: the initial retransmission timeout (RFC 6298, section 2.1),
/// after which a lost SYN is repeated.
pub(crate) const SETUP: wire::Duration = wire::Duration::from_secs(1);

/// The first byte of a stream, or the first answer to a request, that differs from the expected one.
pub(crate) struct Wrong {
    /// The far end of the stream, as in the receiver's mark; `None` if the mark has no valid address.
    pub(crate) peer: Option<SocketAddrV4>,
    /// The role that read the stream.
    pub(crate) reader: &'static str,
    at: u64,
}

impl Wrong {
    /// Returns the contents of a mark `wrong`, or `None` for any other or malformed mark.
    pub(crate) fn of(mark: &Mark) -> Option<Self> {
        let field = |name: &str| mark.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value);
        let Value::Int(at) = field("wrong_at").filter(|_| mark.name == "wrong")? else { return None };
        let peer = field("peer").and_then(Value::as_text).and_then(|peer| peer.parse().ok());
        Some(Self { peer, reader: mark.role, at: u64::try_from(*at).ok()? })
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reader {
            "request-client" => write!(f, "answer {} does not match its request", self.at),
            _ => write!(f, "byte {} of the stream, counted from 0, differs from the sent byte", self.at),
        }
    }
}

/// Returns when the last `constant-rate` source of `host` to `to` is to stop, or `None` if there is no such source.
pub(crate) fn stop_of(plan: &Plan, host: HostId, to: SocketAddrV4) -> Option<Instant> {
    let stop = |role: &RoleConfig| match role {
        RoleConfig::ConstantRate(config) if config.to == to => Some(Instant::ZERO + config.stop),
        _ => None,
    };
    roles(plan, host).filter_map(stop).max()
}

/// Returns whether `host` goes down before `stop` for the rest of the run, and `stop` is before the end of the run.
pub(crate) fn is_cut_short(plan: &Plan, host: HostId, stop: Instant) -> bool {
    stop < plan.end() && plan.down_for_good(host).is_some_and(|down| down < stop)
}

fn roles(plan: &Plan, host: HostId) -> impl Iterator<Item = &RoleConfig> {
    plan.hosts.get(host.index()).into_iter().flat_map(|host| &host.config.roles)
}

/// Returns whether a host has a bulk server at this port with a fixed size, or with a fixed duration that ends before
/// the run. The duration counts from `begun`, the begin of the connection.
pub(crate) fn sends_from(plan: &Plan, host: HostId, port: u16, begun: Instant) -> bool {
    let ends = |span: wire::Duration| begun + span < plan.end();
    roles(plan, host).any(|role| match role {
        RoleConfig::BulkServer(config) if config.at.port() == port => {
            config.bytes.is_some() || config.duration.is_some_and(ends)
        }
        _ => false,
    })
}

/// Returns whether a host has a request client to this port with a fixed number of exchanges.
pub(crate) fn asks_for(plan: &Plan, host: HostId, port: u16) -> bool {
    roles(plan, host).any(|role| match role {
        RoleConfig::RequestClient(config) => config.to.port() == port && config.exchanges.is_some(),
        _ => false,
    })
}
