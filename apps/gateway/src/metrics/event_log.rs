//! Metrics of the event log.

use std::sync::Arc;

use super::Sampler;
use crate::event_log::LogCounters;

/// Returns a sampler of a log's counters.
#[must_use]
pub fn event_log_sampler(counters: Arc<LogCounters>) -> Sampler {
    Box::new(move |text| {
        text.family("event_log_records_total", "counter", "Records of the event log, written and lost.");
        for (state, counter) in [
            ("offered", &counters.offered),
            ("written", &counters.written),
            ("lost_to_memory", &counters.lost_to_ring),
            ("lost_to_disk", &counters.lost_to_disk),
        ] {
            text.value(&[("state", state)], counter.read());
        }
        text.family("event_log_bytes_total", "counter", "Bytes written to the event log.");
        text.value(&[], counters.bytes.read());
        text.family("event_log_errors_total", "counter", "Writes and flushes of the event log that failed.");
        text.value(&[("kind", "write")], counters.disk_errors.read());
        text.value(&[("kind", "flush")], counters.flush_errors.read());
    })
}
