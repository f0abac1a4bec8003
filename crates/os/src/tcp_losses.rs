//! The options and the loss detection of the kernel's TCP (`ip-sysctl`), per network namespace.

use crate::error::Result;
use crate::namespace::{sysctl, sysctl_value};

/// Mechanisms of TCP that are switched on (`true`) or off for all connections of a network namespace; `None` keeps the
/// kernel's setting. Proportional rate reduction (RFC 6937) cannot be switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpLosses {
    /// `tcp_recovery`: time-based loss detection (RFC 8985, RACK).
    pub rack: Option<bool>,
    /// `tcp_early_retrans`: tail loss probes (RFC 8985, TLP).
    pub probes: Option<bool>,
    /// `tcp_frto`: detection of spurious time-outs (RFC 5682).
    pub forward: Option<bool>,
    /// `tcp_dsack`: reports of duplicate segments (RFC 2883).
    pub duplicates: Option<bool>,
    /// `tcp_sack`: selective acknowledgments (RFC 2018).
    pub selective: Option<bool>,
    /// `tcp_timestamps`: timestamps (RFC 7323).
    pub timestamps: Option<bool>,
    /// `tcp_window_scaling`: window scaling (RFC 7323).
    pub scaling: Option<bool>,
}

/// The settings of a network namespace that show how its TCP recovers and which buffers it has, below `net/ipv4/`.
const SHOWN: [&str; 10] = [
    "tcp_congestion_control",
    "tcp_rto_min_us",
    "tcp_early_retrans",
    "tcp_recovery",
    "tcp_frto",
    "tcp_sack",
    "tcp_dsack",
    "tcp_timestamps",
    "tcp_rmem",
    "tcp_wmem",
];

/// Returns the settings of TCP in the calling thread's network namespace, by name and value. Settings that this kernel
/// does not have are left out.
pub fn tcp_settings() -> Vec<(&'static str, String)> {
    let read = |name| Some((name, sysctl_value(&format!("net/ipv4/{name}"))?));
    SHOWN.into_iter().filter_map(read).collect()
}

impl TcpLosses {
    /// Applies the settings that are not `None` to the calling thread's network namespace: `true` is the kernel's
    /// default value, `false` is 0.
    pub fn apply(self) -> Result<()> {
        for (name, on, value) in self.values() {
            let Some(on) = on else { continue };
            sysctl(&format!("net/ipv4/{name}"), if on { value } else { 0 }.to_string().as_str())?;
        }
        Ok(())
    }

    /// Returns the names of the settings that are not `None` and that this kernel does not have.
    pub fn missing(self) -> Vec<&'static str> {
        let given = self.values().into_iter().filter(|(_, on, _)| on.is_some());
        let names = given.map(|(name, ..)| name);
        names.filter(|name| sysctl_value(&format!("net/ipv4/{name}")).is_none()).collect()
    }

    /// Returns the name of each setting, whether it is on, and the kernel's default value.
    const fn values(self) -> [(&'static str, Option<bool>, u8); 7] {
        [
            ("tcp_recovery", self.rack, 1),
            ("tcp_early_retrans", self.probes, 3),
            ("tcp_frto", self.forward, 2),
            ("tcp_dsack", self.duplicates, 1),
            ("tcp_sack", self.selective, 1),
            ("tcp_timestamps", self.timestamps, 1),
            ("tcp_window_scaling", self.scaling, 1),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_sandbox;

    #[test]
    fn each_is_switched_alone() {
        in_sandbox(|| {
            let read = || {
                ["tcp_recovery", "tcp_early_retrans", "tcp_frto", "tcp_dsack", "tcp_sack"].map(|name| {
                    std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap().trim().to_owned()
                })
            };
            let (on, off) = (Some(true), Some(false));
            let all = TcpLosses {
                rack: on,
                probes: on,
                forward: on,
                duplicates: on,
                selective: on,
                timestamps: on,
                scaling: on,
            };
            all.apply().unwrap();
            assert_eq!(read(), ["1", "3", "2", "1", "1"], "what the kernel has by itself");
            TcpLosses { rack: off, ..all }.apply().unwrap();
            assert_eq!(read(), ["0", "3", "2", "1", "1"]);
            TcpLosses { probes: off, ..all }.apply().unwrap();
            assert_eq!(read(), ["1", "0", "2", "1", "1"]);
            TcpLosses { forward: off, ..all }.apply().unwrap();
            assert_eq!(read(), ["1", "3", "0", "1", "1"]);
            TcpLosses { duplicates: off, ..TcpLosses::default() }.apply().unwrap();
            assert_eq!(read(), ["1", "3", "0", "0", "1"], "what is not given stays");
            TcpLosses { selective: off, timestamps: off, ..TcpLosses::default() }.apply().unwrap();
            assert_eq!(read(), ["1", "3", "0", "0", "0"]);
            assert!(all.missing().is_empty(), "this kernel has them all");
            let shown = tcp_settings();
            assert!(shown.contains(&("tcp_timestamps", "0".to_owned())), "{shown:?}");
        });
    }
}
