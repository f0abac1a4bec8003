//! Records in memory, up to a limit.

use std::mem::size_of;
use trace::{HostId, Record, What, Witness};
use wire::{Iface, Instant, Packet};

/// A witness that keeps all records in memory, and reports that it is full when they take more than `most` bytes.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) records: Vec<Record>,
    bytes: usize,
    most: usize,
}

impl Kept {
    /// Creates a witness that is full when its records take more than `most` bytes.
    pub(crate) const fn new(most: usize) -> Self {
        Self { records: Vec::new(), bytes: 0, most }
    }

    fn count(&mut self, more: usize) {
        self.bytes = self.bytes.saturating_add(size_of::<Record>() + more);
    }
}

impl Witness for Kept {
    fn received(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet) {
        self.count(packet.bytes.len());
        self.records.received(at, host, iface, packet);
    }

    fn sent(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet) {
        self.count(packet.bytes.len());
        self.records.sent(at, host, iface, packet);
    }

    fn happened(&mut self, at: Instant, host: HostId, what: What) {
        self.count(0);
        self.records.happened(at, host, what);
    }

    fn is_full(&self) -> bool {
        self.bytes > self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::Scenario;

    #[test]
    fn a_run_whose_records_do_not_fit_ends_and_says_when() {
        let (file, text) = Scenario::find("first").unwrap();
        let plan = Scenario::plan(&file, &text, &["duration=1440min".parse().unwrap()], 1).unwrap();
        let most = 200_000;
        let run = plan.recorded(Kept::new(most)).unwrap().run(plan.end());
        let at = run.full.unwrap();
        assert!(run.records.bytes < most + 10_000, "{}", run.records.bytes);
        assert!(at < plan.end() && run.records.records.iter().all(|record| record.at <= at));
        let error = plan.too_large(at.since(Instant::ZERO), 2 << 30).to_string();
        assert!(error.contains("duration=\"1440min\": `duration`: the records of "), "{error}");
        let short = Scenario::plan(&file, &text, &[], 1).unwrap();
        assert_eq!(short.recorded(Kept::new(1 << 30)).unwrap().run(short.end()).full, None);
    }
}
