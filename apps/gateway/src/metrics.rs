//! Counters and histograms in Prometheus form.
