//! Steal time: the time in which the hypervisor ran other guests on this machine's processors. It may be the cause of a
//! lab's stall.

use wire::Duration;

/// A tick of `/proc/stat`, the same on every architecture (`USER_HZ`, proc(5)).
const TICK: Duration = Duration::from_millis(10);

/// Returns the steal time since the machine started, summed over its processors; zero if the kernel does not count
/// it.
pub fn since_boot() -> Duration {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    TICK * ticks(&text).unwrap_or_default()
}

/// Returns the eighth number after `cpu` (proc(5): user, nice, system, idle, iowait, irq, softirq, steal).
fn ticks(stat: &str) -> Option<u32> {
    let mut words = stat.lines().next()?.split_whitespace();
    (words.next()? == "cpu").then(|| words.nth(7)?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::ticks;

    #[test]
    fn the_eighth_column_of_the_first_line() {
        assert_eq!(ticks("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n"), Some(8));
        assert_eq!(ticks("cpu  1 2 3\n"), None);
        assert_eq!(ticks("intr 1 2 3 4 5 6 7 8\n"), None);
        assert_eq!(ticks(""), None);
    }
}
