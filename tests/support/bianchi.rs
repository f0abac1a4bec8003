//! The theoretical throughput of a shared cell. Included by the tests of a fabric and of whole scenarios.

/// Returns the frames per second of `senders` that always have a frame to send, by Bianchi, "Performance analysis of
/// the IEEE 802.11 distributed coordination function" (2000), equations 7, 9 and 13. The probability that a station
/// sends in a slot and the probability that its frame collides depend on each other. The first contention window has
/// `window` slots, and is doubled five times. `slot` and `frame` are in seconds; a collision takes as long as a frame.
pub(crate) fn frames_a_second(senders: u32, window: f64, slot: f64, frame: f64) -> f64 {
    let [all, others] = [senders, senders - 1].map(u32::cast_signed);
    let sends = |collides: f64| {
        let doubled = 2.0 * collides;
        let below = (1.0 - doubled) * (window + 1.0) + collides * window * (1.0 - doubled.powi(5));
        2.0 * (1.0 - doubled) / below
    };
    let (mut low, mut high) = (0.0, 0.499_999);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if 1.0 - (1.0 - sends(middle)).powi(others) > middle { low = middle } else { high = middle }
    }
    let tau = sends(low);
    let busy = 1.0 - (1.0 - tau).powi(all);
    let success = f64::from(senders) * tau * (1.0 - tau).powi(others);
    success / ((1.0 - busy) * slot + busy * frame)
}
