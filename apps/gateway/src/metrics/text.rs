//! Text format of Prometheus.
//!
//! Source: Prometheus, "Exposition formats", text format 0.0.4.

use std::fmt::Write;

use super::Histogram;

/// Common prefix of all names.
const PREFIX: &str = "tickpath_gateway_";

/// Builds the text: each family's head, followed by its samples.
#[derive(Debug)]
pub struct MetricsText {
    out: String,
    gateway: String,
    family: String,
}

impl MetricsText {
    /// Starts the text of a gateway, whose name is a label of every sample.
    #[must_use]
    pub fn new(gateway: &str) -> MetricsText {
        MetricsText { out: String::new(), gateway: gateway.to_owned(), family: String::new() }
    }

    /// Starts a family of kind `counter`, `gauge` or `histogram`.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.family = format!("{PREFIX}{name}");
        let family = &self.family;
        let head = format!("# HELP {family} {help}\n# TYPE {family} {kind}\n");
        self.out.push_str(&head);
    }

    /// Adds a sample to the family.
    pub fn value(&mut self, labels: &[(&str, &str)], value: u64) {
        let labels = self.labels(labels, "");
        self.sample("", &labels, value);
    }

    /// Adds a sample to the family unless it is zero.
    pub fn used_value(&mut self, labels: &[(&str, &str)], value: u64) {
        if value != 0 {
            self.value(labels, value);
        }
    }

    /// Adds a histogram to the family.
    pub fn histogram(&mut self, labels: &[(&str, &str)], histogram: &Histogram) {
        let mut count = 0;
        for (bound, within) in histogram.cumulative() {
            let bound = bound.map_or_else(|| "+Inf".to_owned(), |bound| bound.to_string());
            let labels = self.labels(labels, &bound);
            self.sample("_bucket", &labels, within);
            count = within;
        }
        let labels = self.labels(labels, "");
        self.sample("_sum", &labels, histogram.sum());
        self.sample("_count", &labels, count);
    }

    /// Adds a histogram to the family unless it is empty.
    pub fn used_histogram(&mut self, labels: &[(&str, &str)], histogram: &Histogram) {
        if histogram.count() != 0 {
            self.histogram(labels, histogram);
        }
    }

    /// Returns the whole text.
    #[must_use]
    pub fn finish(self) -> String {
        self.out
    }

    fn labels(&self, labels: &[(&str, &str)], bound: &str) -> String {
        let mut text = format!("gateway=\"{}\"", escaped(&self.gateway));
        let bound = (!bound.is_empty()).then_some(("le", bound));
        for (name, value) in labels.iter().copied().chain(bound) {
            // Writing to a String cannot fail.
            let _ = write!(text, ",{name}=\"{}\"", escaped(value));
        }
        text
    }

    fn sample(&mut self, suffix: &str, labels: &str, value: u64) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.out, "{}{suffix}{{{labels}}} {value}", self.family);
    }
}

/// Escapes a label's value: backslash, quote and line feed become two characters.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
