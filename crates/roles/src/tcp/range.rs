//! The permitted values of a host's TCP.

use super::{MOST_RTO_MIN, MOST_SEND_BUFFER, TcpConfig};
use crate::KeyError;
use std::ops::RangeInclusive;
use wire::Duration;

/// The smallest segment size, in bytes: 40 bytes of options, and 8 bytes of data (`TCP_MIN_SND_MSS` of Linux).
const LEAST_MSS: u32 = 48;
/// The largest segment size, in bytes: that of the largest IPv4 datagram without its two headers of 20 bytes.
const MOST_MSS: u32 = 65_495;
/// The smallest buffer, in bytes: a segment that each host must be able to receive (RFC 9293, section 3.7.1).
const LEAST_BUFFER: u32 = 536;
/// The largest number of retransmissions. Linux has one byte for it (`tcp_retries2`).
const MOST_RETRANSMISSIONS: u32 = 255;

/// The shortest time-out and tick that are not zero. Linux counts time-outs in microseconds (`tcp_rto_min_us`).
const LEAST: Duration = Duration::from_micros(1);
/// The longest time of a timer.
const LONGEST: Duration = Duration::from_millis(MOST_RTO_MIN as u64);
/// The longest delay of an acknowledgment (RFC 5681, section 4.2).
const LONGEST_DELAY: Duration = Duration::from_millis(500);
/// The longest tick of the timestamp clock (RFC 7323, section 5.4).
const LONGEST_TICK: Duration = Duration::from_secs(1);

impl TcpConfig {
    /// Checks that each value can work. An error has the path of the key from the host on, and what is permitted.
    pub(crate) fn check(&self) -> Result<(), KeyError> {
        let wrong =
            |key: &str, allowed: &str| KeyError::new(format!("tcp.{key}"), format!("must be {allowed}"));
        for (key, value, range, allowed) in self.numbers() {
            if value.is_some_and(|value| !range.contains(&value)) {
                return Err(wrong(key, allowed));
            }
        }
        for (key, value, range, allowed) in self.times() {
            if value.is_some_and(|value| !range.contains(&value)) {
                return Err(wrong(key, allowed));
            }
        }
        let least = self.rto_min.unwrap_or(self.base().rto_min);
        match (self.rto_max, self.base().rto_max) {
            (Some(most), _) if most < least => {
                Err(wrong("rto_max", &format!("at least {least:?}, the value of `rto_min`")))
            }
            (None, most) if most < least => Err(wrong(
                "rto_min",
                &format!("at most {most:?}, the default of `rto_max`; or give `rto_max` too"),
            )),
            _ => Ok(()),
        }
    }

    fn numbers(&self) -> [(&'static str, Option<u32>, RangeInclusive<u32>, &'static str); 7] {
        let buffer = LEAST_BUFFER..=MOST_SEND_BUFFER;
        let bytes = "from 536 to 1073741824 bytes";
        [
            ("mss", self.mss.map(u32::from), LEAST_MSS..=MOST_MSS, "from 48 to 65495 bytes"),
            ("send_buffer", self.send_buffer, buffer.clone(), bytes),
            ("receive_buffer", self.receive_buffer, buffer, bytes),
            ("initial_window", self.initial_window, 1..=u32::MAX, "at least 1 segment"),
            ("duplicates", self.duplicates, 1..=u32::MAX, "at least 1 duplicate acknowledgment"),
            ("ack_every", self.ack_every, 1..=u32::MAX, "at least 1 segment"),
            (
                "max_retransmissions",
                self.max_retransmissions,
                0..=MOST_RETRANSMISSIONS,
                "from 0 to 255 retransmissions",
            ),
        ]
    }

    fn times(&self) -> [(&'static str, Option<Duration>, RangeInclusive<Duration>, &'static str); 11] {
        let (timer, or_zero) = ("from 1us to 1000s", "from 0s to 1000s");
        let all = Duration::ZERO..=LONGEST;
        [
            ("rto_min", self.rto_min, LEAST..=LONGEST, timer),
            ("rto_initial", self.rto_initial, LEAST..=LONGEST, timer),
            ("rto_max", self.rto_max, LEAST..=LONGEST, timer),
            ("granularity", self.granularity, all.clone(), or_zero),
            ("tick", self.tick, all.clone(), or_zero),
            ("fast_tick", self.fast_tick, LEAST..=LONGEST, timer),
            ("timestamp_tick", self.timestamp_tick, LEAST..=LONGEST_TICK, "from 1us to 1s"),
            ("persist_min", self.persist_min, all.clone(), or_zero),
            ("persist_max", self.persist_max, LEAST..=LONGEST, timer),
            ("time_wait", self.time_wait, all, or_zero),
            ("delayed_ack", self.delayed_ack, Duration::ZERO..=LONGEST_DELAY, "from 0s to 500ms"),
        ]
    }
}
