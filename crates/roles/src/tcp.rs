//! The configuration of a host's TCP.

mod range;

use crate::KeyError;
use node::config::{ConfigError, some_span};
use schemars::JsonSchema;
use serde::Deserialize;
use tcp::{Avoidance, Estimator, Mechanisms, Profile, Recovery, Ticks, Timing, TooBig, Wheel};
use wire::Duration;

/// The parameters of a host's TCP. A key that is not given has the value of the profile. Keys marked "Simulator" apply
/// only to the simulator's TCP.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpConfig {
    /// Simulator: the profile that gives all values that are not set; default `linux`.
    #[serde(default)]
    pub profile: ProfileName,
    /// The congestion control of the host's connections. Simulator: `reno` or `cubic` (RFC 9438); default `reno`.
    /// Linux: any that the kernel supports, by the kernel's name.
    pub congestion: Option<String>,
    /// Simulator: whether partial acknowledgments continue fast recovery (RFC 6582). `recovery` is more general, and
    /// takes precedence.
    pub newreno: Option<bool>,
    /// The loss recovery. Simulator: `tahoe`, `reno`, `newreno`, or `sack`, which also offers selective
    /// acknowledgments. Simulator and Linux: a list of the kernel's mechanisms to use. The mechanisms are `rack` and
    /// `tlp` (RFC 8985), `prr` (RFC 6937) and `frto` (RFC 5682). The profile `linux` uses all of them. The kernel
    /// always uses `prr`, and Linux 6.18 always uses `rack`.
    pub recovery: Option<RecoveryGiven>,
    /// Simulator: whether each of the first two duplicate acknowledgments allows a new segment (RFC 3042).
    pub limited_transmit: Option<bool>,
    /// Simulator: how the retransmission time-out is computed from round-trip times: `rfc6298`, `bsd` or `linux`.
    pub estimator: Option<EstimatorName>,
    /// Simulator: the initial congestion window, in segments, at least 1.
    #[schemars(range(min = 1))]
    pub initial_window: Option<u32>,
    /// The smallest retransmission time-out, from `1us` to `1000s`. Linux: a whole number of milliseconds, from `1ms`, for the
    /// host's stack (`rto_min` of its route).
    #[serde(default, deserialize_with = "some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub rto_min: Option<Duration>,
    /// Simulator: the retransmission time-out before the first round trip was measured, from `1us` to `1000s`.
    #[serde(default, deserialize_with = "some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub rto_initial: Option<Duration>,
    /// Simulator: the largest retransmission time-out, from `rto_min` to `1000s`.
    #[serde(default, deserialize_with = "some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub rto_max: Option<Duration>,
    /// Simulator: the interval of the clock ticks at which timers expire, at most `1000s`. Each host has a random phase. With `0s`,
    /// timers expire exactly when they are due. With the profile `linux`: the tick of the timer wheel.
    #[serde(default, deserialize_with = "some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub tick: Option<Duration>,
    /// Whether selective acknowledgments are offered and sent (RFC 2018). Linux: `tcp_sack` of the host's namespace.
    pub sack: Option<bool>,
    /// Whether duplicate segments are reported in selective acknowledgments (RFC 2883), as in the profile `linux`.
    /// Linux: `tcp_dsack` of the host's namespace.
    pub dsack: Option<bool>,
    /// Whether timestamps are offered (RFC 7323). Linux: `tcp_timestamps` of the host's namespace.
    pub timestamps: Option<bool>,
    /// Whether window scaling is offered (RFC 7323). Linux: `tcp_window_scaling` of the host's namespace.
    pub window_scale: Option<bool>,
    /// Simulator: whether the congestion window returns to the initial one after an idle time (RFC 5681, section
    /// 4.1).
    pub idle_restart: Option<bool>,
    /// Simulator: whether each time-out lowers the slow start threshold, as in 4.4BSD.
    pub ssthresh_each_rto: Option<bool>,
    /// Simulator: what happens when a segment is too large for the path: `resend-at-once` or `await-timeout`.
    pub too_big: Option<TooBigName>,
    /// Simulator: whether changes of the congestion window, the slow start threshold, the round-trip time, the time-out
    /// and the state are recorded as marks; default false.
    #[serde(default)]
    pub traced: bool,
    /// Simulator: K of RFC 6298, the factor of the variation in the time-out.
    pub rto_variances: Option<u32>,
    /// Simulator: G of RFC 6298, the least that the variation adds to the time-out, at most `1000s`.
    #[serde(default, deserialize_with = "some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub granularity: Option<Duration>,
    /// Simulator: if timers have ticks (`tick`), the interval of the ticks at which delayed acknowledgments are sent,
    /// from `1us` to `1000s`. A timer wheel does not use this key.
    #[serde(default, deserialize_with = "some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub fast_tick: Option<Duration>,
    /// Simulator: if timers have ticks (`tick`), the time of the first tick, or the time when the slots of the timer
    /// wheel begin together. Without this key, each host has a random time.
    #[serde(default, deserialize_with = "some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub tick_phase: Option<Duration>,
    /// Simulator: the shortest time before a closed window is probed, at most `1000s`.
    #[serde(default, deserialize_with = "some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub persist_min: Option<Duration>,
    /// Simulator: the longest time between two probes of a closed window, from `1us` to `1000s`.
    #[serde(default, deserialize_with = "some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub persist_max: Option<Duration>,
    /// Simulator: the duration of TIME-WAIT, at most `1000s`.
    #[serde(default, deserialize_with = "some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub time_wait: Option<Duration>,
    /// Simulator: the number of consecutive time-outs without an answer that a connection survives, from 0 to
    /// 255. The next time-out ends it.
    #[schemars(range(max = 255))]
    pub max_retransmissions: Option<u32>,
    /// Simulator: the largest payload of a segment, from 48 to 65495 bytes.
    #[schemars(range(min = 48, max = 65_495))]
    pub mss: Option<u16>,
    /// Simulator: the number of duplicate acknowledgments that indicate a loss, at least 1.
    #[schemars(range(min = 1))]
    pub duplicates: Option<u32>,
    /// Simulator: the number N, at least 1. Every N-th segment is acknowledged at once.
    #[schemars(range(min = 1))]
    pub ack_every: Option<u32>,
    /// Simulator: the number of segments at the begin of a connection that are acknowledged at once.
    pub quick_acks: Option<u32>,
    /// Simulator: the tick of the timestamp clock, from `1us` to `1s`.
    #[serde(default, deserialize_with = "some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub timestamp_tick: Option<Duration>,
    /// Simulator: how long an acknowledgment waits for a second segment, at most `500ms`. With `0s`, each segment is acknowledged at
    /// once.
    #[serde(default, deserialize_with = "some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub delayed_ack: Option<Duration>,
    /// Simulator: whether small segments wait while data are unacknowledged (Nagle's algorithm).
    pub nagle: Option<bool>,
    /// The send buffer of a connection, from 536 bytes to 1 GiB. Linux: the largest size to which the kernel lets it grow (`tcp_wmem`
    /// of the host's namespace), from 4608 bytes; the kernel's bookkeeping for each packet counts too.
    #[schemars(range(min = 536, max = 1_073_741_824))]
    pub send_buffer: Option<u32>,
    /// The receive buffer of a connection, from 536 bytes to 1 GiB. Linux: about the largest window that is offered; without
    /// this key, the kernel's default.
    #[schemars(range(min = 536, max = 1_073_741_824))]
    pub receive_buffer: Option<u32>,
}

/// The largest `rto_min` of a Linux host, in milliseconds.
const MOST_RTO_MIN: u32 = 1_000_000;
/// The smallest send buffer of a socket of Linux, in bytes (`SOCK_MIN_SNDBUF`).
const LEAST_SEND_BUFFER: u32 = 4608;
/// The largest send buffer of a Linux host, in bytes.
const MOST_SEND_BUFFER: u32 = 1 << 30;

/// The name of a profile of TCP: a set of values for all parameters of [`TcpConfig`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileName {
    /// Linux with its default parameters, except for the congestion control, which is Reno.
    #[default]
    Linux,
    /// The constants of Linux with RFC 6582 (`NewReno`), without selective acknowledgments and timestamps.
    LinuxLike,
    /// TCP as in RFC 5681 (Reno) and RFC 6298.
    Rfc6298Reno,
    /// 4.4BSD-Lite: clocks of 500 ms and 200 ms, and an initial window of one segment.
    Bsd44,
}

/// How a sender recovers from a loss that duplicate acknowledgments indicate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RecoveryName {
    /// The sender uses fast retransmit and slow start.
    Tahoe,
    /// The sender uses fast retransmit and fast recovery (RFC 5681).
    Reno,
    /// Partial acknowledgments continue fast recovery (RFC 6582).
    NewReno,
    /// Selective acknowledgments show what is missing (RFC 6675).
    Sack,
}

/// The loss recovery, as configurations write it.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "allowed: `tahoe`, `reno`, `newreno`, `sack`, or a list of `rack`, `tlp`, `prr` and `frto`"
)]
pub enum RecoveryGiven {
    /// The loss recovery with this name.
    Name(RecoveryName),
    /// Linux's recovery, with only these mechanisms.
    Mechanisms(Vec<MechanismName>),
}

/// A mechanism of Linux's loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MechanismName {
    /// Loss detection by time (RFC 8985). Linux: `tcp_recovery`, which Linux 6.18 ignores.
    Rack,
    /// Tail loss probes (RFC 8985). Linux: `tcp_early_retrans`.
    Tlp,
    /// Proportional rate reduction (RFC 6937). Linux always uses it.
    Prr,
    /// Detection of spurious time-outs (RFC 5682). Linux: `tcp_frto`.
    Frto,
}

/// How the retransmission time-out is computed from round-trip times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EstimatorName {
    /// The time-out is computed as in RFC 6298, section 2.
    Rfc6298,
    /// The time-out is computed as in 4.4BSD, in whole ticks of the slow clock of 4.4BSD (500 ms).
    Bsd,
    /// The time-out is computed as in Linux: it is at least the smoothed round-trip time plus `rto_min`.
    Linux,
}

/// What a sender does when a segment is too large for the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TooBigName {
    /// The segments that are too large are sent again at once, in segments that fit. Without recovery per segment
    /// (profile `linux`, `recovery`), all unacknowledged data are sent again.
    ResendAtOnce,
    /// The data are sent again only when the retransmission timer expires, as before path MTU discovery.
    AwaitTimeout,
}

impl TcpConfig {
    /// Returns the profile of the simulator's TCP. Fails if the simulator does not have the congestion control of this
    /// configuration.
    pub fn profile(&self) -> Result<Profile, ConfigError> {
        let base = self.base();
        let by_sack =
            self.mechanisms().is_some() || self.recovery == Some(RecoveryGiven::Name(RecoveryName::Sack));
        let avoidance = match self.congestion.as_deref() {
            None => base.avoidance,
            Some("reno") => Avoidance::Reno,
            Some("cubic") => Avoidance::Cubic,
            Some(other) => {
                let problem = format!(
                    "the simulator has no congestion control `{other}`; allowed: `reno` and `cubic`, or on Linux a name of the kernel"
                );
                return Err(ConfigError::new("tcp.congestion", problem));
            }
        };
        Ok(Profile {
            mss: self.mss.unwrap_or(base.mss),
            initial_window: self.initial_window.unwrap_or(base.initial_window),
            duplicates: self.duplicates.unwrap_or(base.duplicates),
            ack_every: self.ack_every.unwrap_or(base.ack_every),
            quick_acks: self.quick_acks.unwrap_or(base.quick_acks),
            recovery: self.recovery().unwrap_or(base.recovery),
            avoidance,
            limited_transmit: self.limited_transmit.unwrap_or(base.limited_transmit),
            delayed_ack: match self.delayed_ack {
                Some(Duration::ZERO) => None,
                Some(delay) => Some(delay),
                None => base.delayed_ack,
            },
            send_buffer: self.send_buffer.unwrap_or(base.send_buffer),
            receive_buffer: self.receive_buffer.unwrap_or(base.receive_buffer),
            window_shift: base.window_shift.filter(|_| self.receive_buffer.is_none()),
            sack: self.sack.unwrap_or(base.sack || by_sack),
            dsack: self.dsack.unwrap_or(base.dsack),
            timestamps: self.timestamps.unwrap_or(base.timestamps),
            window_scale: self.window_scale.unwrap_or(base.window_scale),
            nagle: self.nagle.unwrap_or(base.nagle),
            idle_restart: self.idle_restart.unwrap_or(base.idle_restart),
            too_big: match self.too_big {
                Some(TooBigName::ResendAtOnce) => TooBig::ResendAtOnce,
                Some(TooBigName::AwaitTimeout) => TooBig::AwaitTimeout,
                None => base.too_big,
            },
            ssthresh_each_rto: self.ssthresh_each_rto.unwrap_or(base.ssthresh_each_rto),
            traced: self.traced,
            ..self.timed(&base)
        })
    }

    /// Returns the values of all keys that are not set.
    const fn base(&self) -> Profile {
        match self.profile {
            ProfileName::LinuxLike => Profile::linux_like(),
            ProfileName::Rfc6298Reno => Profile::rfc6298_reno(),
            ProfileName::Linux => Profile::linux(),
            ProfileName::Bsd44 => Profile::bsd44(),
        }
    }

    /// Returns the smallest retransmission time-out of the kernel in milliseconds; `None` if it is the kernel's. Fails
    /// if the kernel cannot have it.
    pub fn kernel_rto_min(&self) -> Result<Option<u32>, KeyError> {
        let Some(span) = self.rto_min else { return Ok(None) };
        let whole = span.subsec_nanos() % 1_000_000 == 0;
        let ms = u32::try_from(span.as_millis()).ok().filter(|ms| whole && (1..=MOST_RTO_MIN).contains(ms));
        ms.map(Some).ok_or_else(|| {
            let given = format!("{} s are not possible on Linux", span.as_secs_f64());
            KeyError::new("tcp.rto_min", format!("{given}; allowed: whole milliseconds, `1ms` to `1000s`"))
        })
    }

    /// Returns the largest send buffer of the kernel in bytes; `None` if it is the daemon's default. Fails if the kernel
    /// cannot have it.
    pub fn kernel_send_buffer(&self) -> Result<Option<u32>, KeyError> {
        match self.send_buffer {
            Some(bytes) if !(LEAST_SEND_BUFFER..=MOST_SEND_BUFFER).contains(&bytes) => Err(KeyError::new(
                "tcp.send_buffer",
                format!(
                    "{bytes} bytes are not possible on Linux; allowed: {LEAST_SEND_BUFFER} to {MOST_SEND_BUFFER}"
                ),
            )),
            given => Ok(given),
        }
    }

    /// Returns whether a key is set that changes the kernel's TCP.
    pub const fn changes_the_kernel(&self) -> bool {
        self.congestion.is_some()
            || self.rto_min.is_some()
            || self.sack.is_some()
            || self.dsack.is_some()
            || self.timestamps.is_some()
            || self.window_scale.is_some()
            || self.send_buffer.is_some()
            || self.receive_buffer.is_some()
            || matches!(self.recovery, Some(RecoveryGiven::Mechanisms(_)))
    }

    fn recovery(&self) -> Option<Recovery> {
        let newreno = self.newreno.map(|newreno| if newreno { Recovery::NewReno } else { Recovery::Reno });
        let named = match &self.recovery {
            Some(RecoveryGiven::Name(RecoveryName::Tahoe)) => Some(Recovery::Tahoe),
            Some(RecoveryGiven::Name(RecoveryName::Reno)) => Some(Recovery::Reno),
            Some(RecoveryGiven::Name(RecoveryName::NewReno)) => Some(Recovery::NewReno),
            Some(RecoveryGiven::Name(RecoveryName::Sack)) => Some(Recovery::Sack),
            Some(RecoveryGiven::Mechanisms(_)) | None => self.mechanisms().map(Recovery::Segments),
        };
        named.or(newreno)
    }

    /// Returns the mechanisms of Linux's recovery that may be used; `None` if the configuration does not list them.
    pub fn mechanisms(&self) -> Option<Mechanisms> {
        let Some(RecoveryGiven::Mechanisms(given)) = &self.recovery else { return None };
        let has = |name| given.contains(&name);
        Some(Mechanisms {
            rack: has(MechanismName::Rack),
            tlp: has(MechanismName::Tlp),
            prr: has(MechanismName::Prr),
            frto: has(MechanismName::Frto),
        })
    }

    /// Returns `base` with the timer and estimator settings of this configuration.
    fn timed(&self, base: &Profile) -> Profile {
        Profile {
            estimator: match self.estimator {
                Some(EstimatorName::Rfc6298) => Estimator::Rfc6298,
                Some(EstimatorName::Bsd) => Estimator::Bsd,
                Some(EstimatorName::Linux) => Estimator::Linux,
                None => base.estimator,
            },
            rto_initial: self.rto_initial.unwrap_or(base.rto_initial),
            rto_min: self.rto_min.unwrap_or(base.rto_min),
            rto_max: self.rto_max.unwrap_or(base.rto_max),
            rto_variances: self.rto_variances.unwrap_or(base.rto_variances),
            granularity: self.granularity.unwrap_or(base.granularity),
            timing: self.timing(base.timing),
            timestamp_tick: self.timestamp_tick.unwrap_or(base.timestamp_tick),
            persist_min: self.persist_min.unwrap_or(base.persist_min),
            persist_max: self.persist_max.unwrap_or(base.persist_max),
            time_wait: self.time_wait.unwrap_or(base.time_wait),
            max_retransmissions: self.max_retransmissions.unwrap_or(base.max_retransmissions),
            ..base.clone()
        }
    }

    fn timing(&self, base: Timing) -> Timing {
        match (self.tick, base) {
            (Some(Duration::ZERO), _) | (None, Timing::Exact) => Timing::Exact,
            (tick, Timing::Wheel(wheel)) => Timing::Wheel(Wheel {
                tick: tick.unwrap_or(wheel.tick),
                phase: self.tick_phase.or(wheel.phase),
            }),
            (tick, base) => {
                let base = if let Timing::Ticks(ticks) = base { ticks } else { Ticks::BSD };
                Timing::Ticks(Ticks {
                    slow: tick.unwrap_or(base.slow),
                    fast: self.fast_tick.unwrap_or(base.fast),
                    phase: self.tick_phase.or(base.phase),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(text: &str) -> Profile {
        toml::from_str::<TcpConfig>(text).unwrap().profile().unwrap()
    }

    #[test]
    fn what_is_not_given_is_the_profiles() {
        assert_eq!(profile(""), Profile::linux());
        assert_eq!(profile("profile = 'linux-like'"), Profile::linux_like());
        assert_eq!(profile("profile = 'rfc6298-reno'"), Profile::rfc6298_reno());
        assert_eq!(profile("profile = 'linux'"), Profile::linux());
        assert_eq!(profile("profile = 'bsd44'"), Profile::bsd44());
    }

    /// A value just outside its range is refused with the key and the range. The ends of the range, and what is not given, are
    /// accepted.
    #[test]
    fn values_that_cannot_work_are_refused_with_the_permitted_range() {
        let check = |text: &str| toml::from_str::<TcpConfig>(text).unwrap().check();
        let timer = "from 1us to 1000s";
        for (key, good, bad, allowed) in [
            ("mss", ["48", "65495"], ["47", "65496"], "from 48 to 65495 bytes"),
            ("send_buffer", ["536", "1073741824"], ["535", "1073741825"], "from 536 to 1073741824 bytes"),
            ("receive_buffer", ["536", "1073741824"], ["0", "4294967295"], "from 536 to 1073741824 bytes"),
            ("initial_window", ["1", "4294967295"], ["0", "0"], "at least 1 segment"),
            ("duplicates", ["1", "4294967295"], ["0", "0"], "at least 1 duplicate"),
            ("ack_every", ["1", "4294967295"], ["0", "0"], "at least 1 segment"),
            ("max_retransmissions", ["0", "255"], ["256", "4294967295"], "from 0 to 255 retransmissions"),
            ("rto_min", ["'1us'", "'120s'"], ["'0s'", "'1001s'"], timer),
            ("rto_initial", ["'1us'", "'1000s'"], ["'999ns'", "'1001s'"], timer),
            ("rto_max", ["'200ms'", "'1000s'"], ["'0s'", "'1001s'"], timer),
            (
                "rto_max",
                ["'200ms'", "'1000s'"],
                ["'199ms'", "'1us'"],
                "at least 200ms, the value of `rto_min`",
            ),
            ("granularity", ["'0s'", "'1000s'"], ["'1001s'", "'18446744073s'"], "from 0s to 1000s"),
            ("tick", ["'0s'", "'1000s'"], ["'1001s'", "'18446744073s'"], "from 0s to 1000s"),
            ("fast_tick", ["'1us'", "'1000s'"], ["'0s'", "'1001s'"], timer),
            ("timestamp_tick", ["'1us'", "'1s'"], ["'0s'", "'2s'"], "from 1us to 1s"),
            ("persist_min", ["'0s'", "'1000s'"], ["'1001s'", "'18446744073s'"], "from 0s to 1000s"),
            ("persist_max", ["'1us'", "'1000s'"], ["'0s'", "'1001s'"], timer),
            ("time_wait", ["'0s'", "'1000s'"], ["'1001s'", "'18446744073s'"], "from 0s to 1000s"),
            ("delayed_ack", ["'0s'", "'500ms'"], ["'501ms'", "'18446744073s'"], "from 0s to 500ms"),
        ] {
            for value in good {
                assert_eq!(check(&format!("{key} = {value}")), Ok(()), "{key} = {value}");
            }
            for value in bad {
                let error = check(&format!("{key} = {value}")).unwrap_err();
                assert_eq!(error.path, format!("tcp.{key}"));
                assert!(error.problem.starts_with(&format!("must be {allowed}")), "{value}: {error}");
            }
        }
        for profile in ["linux", "linux-like", "rfc6298-reno", "bsd44"] {
            assert_eq!(check(&format!("profile = '{profile}'")), Ok(()), "{profile}");
        }
        assert!(check("rto_min = '2s'\nrto_max = '1s'").unwrap_err().problem.contains("at least 2s"));
        let error = check("profile = 'bsd44'\nrto_min = '100s'").unwrap_err();
        assert!(error.path == "tcp.rto_min" && error.problem.contains("at most 64s"), "{error}");
    }

    #[test]
    fn what_a_kernel_cannot_have_is_refused_with_what_is_allowed() {
        let read = |text: &str| toml::from_str::<TcpConfig>(text).unwrap();
        assert_eq!(read("rto_min = '1.5s'").kernel_rto_min(), Ok(Some(1500)));
        assert_eq!(read("").kernel_rto_min(), Ok(None));
        for wrong in ["0s", "500us", "1.0005s", "1001s"] {
            let error = read(&format!("rto_min = '{wrong}'")).kernel_rto_min().unwrap_err();
            assert!(error.path == "tcp.rto_min" && error.problem.contains("`1ms` to `1000s`"), "{error}");
        }
        assert_eq!(read("send_buffer = 8192").kernel_send_buffer(), Ok(Some(8192)));
        let error = read("send_buffer = 1000").kernel_send_buffer().unwrap_err();
        assert!(error.problem.contains("4608 to 1073741824"), "{error}");
        assert!(read("sack = false").changes_the_kernel() && read("recovery = []").changes_the_kernel());
        assert!(!read("recovery = 'sack'").changes_the_kernel() && !read("mss = 512").changes_the_kernel());
    }

    #[test]
    fn knobs_turn() {
        let sack =
            profile("profile = 'rfc6298-reno'\nrecovery = 'sack'\ntick = '100ms'\ntoo_big = 'await-timeout'");
        assert_eq!((sack.recovery, sack.sack, sack.too_big), (Recovery::Sack, true, TooBig::AwaitTimeout));
        assert_eq!(sack.timing, Timing::Ticks(Ticks { slow: Duration::from_millis(100), ..Ticks::BSD }));
        let given = profile("profile = 'linux'\nrecovery = ['rack', 'prr']\ncongestion = 'cubic'");
        let some = Mechanisms { rack: true, prr: true, ..Mechanisms::NONE };
        assert_eq!(
            (given.recovery, given.avoidance, given.sack),
            (Recovery::Segments(some), Avoidance::Cubic, true)
        );
        assert!(given.dsack && !profile("dsack = false").dsack && !sack.dsack);
        let wrong = toml::from_str::<TcpConfig>("recovery = ['rock']").unwrap_err().to_string();
        assert!(wrong.contains("`rack`, `tlp`, `prr` and `frto`"), "{wrong}");
        let bbr = toml::from_str::<TcpConfig>("congestion = 'bbr'").unwrap().profile().unwrap_err();
        assert!(bbr.problem.contains("`reno` and `cubic`"), "{bbr}");
        let old =
            profile("profile = 'bsd44'\nnewreno = true\nestimator = 'rfc6298'\ntick = '0ms'\ntraced = true");
        assert_eq!(
            (old.recovery, old.estimator, old.timing),
            (Recovery::NewReno, Estimator::Rfc6298, Timing::Exact)
        );
        assert!(old.traced && !sack.traced);
        let (fast, phase) = (Duration::from_millis(100), Some(Duration::from_millis(30)));
        let ticks = profile("profile = 'bsd44'\nfast_tick = '100ms'\ntick_phase = '30ms'").timing;
        assert_eq!(ticks, Timing::Ticks(Ticks { fast, phase, ..Ticks::BSD }));
        let wheel = profile("profile = 'linux'\ntick = '1ms'\ntick_phase = '30ms'").timing;
        assert_eq!(wheel, Timing::Wheel(Wheel { tick: Duration::from_millis(1), phase }));
        let rest = profile("mss = 512\nduplicates = 2\nack_every = 1\nrto_variances = 2\ntime_wait = '2s'");
        assert_eq!((rest.mss, rest.duplicates, rest.ack_every, rest.rto_variances), (512, 2, 1, 2));
        assert_eq!(rest.time_wait, Duration::from_secs(2));
    }
}
