//! Which of the kernel's ways to find a loss its TCP may use (`ip-sysctl`), per network namespace.

use crate::error::Result;
use crate::namespace::sysctl;

/// What connections of a network namespace may use. Proportional rate reduction (RFC 6937) has no switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpLosses {
    /// `tcp_recovery`: losses by time (RFC 8985, RACK).
    pub rack: bool,
    /// `tcp_early_retrans`: probes of the tail (RFC 8985, TLP).
    pub probes: bool,
    /// `tcp_frto`: spurious time-outs are found out (RFC 5682).
    pub forward: bool,
}

impl TcpLosses {
    /// Sets the three in the calling thread's network namespace, to the kernel's own values or to 0.
    pub(crate) fn apply(self) -> Result<()> {
        let values = [
            ("tcp_recovery", self.rack, 1),
            ("tcp_early_retrans", self.probes, 3),
            ("tcp_frto", self.forward, 2),
        ];
        for (name, on, value) in values {
            sysctl(&format!("net/ipv4/{name}"), if on { value } else { 0 }.to_string().as_str())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_world;

    #[test]
    fn each_is_switched_alone() {
        in_world(|| {
            let read = || {
                ["tcp_recovery", "tcp_early_retrans", "tcp_frto"].map(|name| {
                    std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap().trim().to_owned()
                })
            };
            let all = TcpLosses { rack: true, probes: true, forward: true };
            all.apply().unwrap();
            assert_eq!(read(), ["1", "3", "2"], "what the kernel has by itself");
            TcpLosses { rack: false, ..all }.apply().unwrap();
            assert_eq!(read(), ["0", "3", "2"]);
            TcpLosses { probes: false, ..all }.apply().unwrap();
            assert_eq!(read(), ["1", "0", "2"]);
            TcpLosses { forward: false, ..all }.apply().unwrap();
            assert_eq!(read(), ["1", "3", "0"]);
        });
    }
}
