//! The latency laboratory: benchmarks against the limits of the host.
