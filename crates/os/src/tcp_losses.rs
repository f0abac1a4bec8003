//! The kernel TCP's loss detection and duplicate reports (`ip-sysctl`), per network namespace.

use crate::error::Result;
use crate::namespace::sysctl;

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
}

impl TcpLosses {
    /// Applies the settings that are not `None` to the calling thread's network namespace: `true` is the kernel's
    /// default value, `false` is 0.
    pub fn apply(self) -> Result<()> {
        let values = [
            ("tcp_recovery", self.rack, 1),
            ("tcp_early_retrans", self.probes, 3),
            ("tcp_frto", self.forward, 2),
            ("tcp_dsack", self.duplicates, 1),
        ];
        for (name, on, value) in values {
            let Some(on) = on else { continue };
            sysctl(&format!("net/ipv4/{name}"), if on { value } else { 0 }.to_string().as_str())?;
        }
        Ok(())
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
                ["tcp_recovery", "tcp_early_retrans", "tcp_frto", "tcp_dsack"].map(|name| {
                    std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap().trim().to_owned()
                })
            };
            let (on, off) = (Some(true), Some(false));
            let all = TcpLosses { rack: on, probes: on, forward: on, duplicates: on };
            all.apply().unwrap();
            assert_eq!(read(), ["1", "3", "2", "1"], "what the kernel has by itself");
            TcpLosses { rack: off, ..all }.apply().unwrap();
            assert_eq!(read(), ["0", "3", "2", "1"]);
            TcpLosses { probes: off, ..all }.apply().unwrap();
            assert_eq!(read(), ["1", "0", "2", "1"]);
            TcpLosses { forward: off, ..all }.apply().unwrap();
            assert_eq!(read(), ["1", "3", "0", "1"]);
            TcpLosses { duplicates: off, ..TcpLosses::default() }.apply().unwrap();
            assert_eq!(read(), ["1", "3", "0", "0"], "what is not given stays");
        });
    }
}
