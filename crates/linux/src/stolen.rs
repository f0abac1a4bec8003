//! Time that a hypervisor kept the processors of this machine for others: a lab that stood still may owe it to nobody here.

use wire::Duration;

/// A tick of `/proc/stat`, the same on every architecture (`USER_HZ`, proc(5)).
const TICK: Duration = Duration::from_millis(10);

/// What has been stolen since the machine started, summed over its processors; nothing where that is not counted.
pub fn stolen() -> Duration {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    TICK * ticks(&text).unwrap_or_default()
}

/// The eighth number after `cpu` (proc(5): user, nice, system, idle, iowait, irq, softirq, steal).
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
