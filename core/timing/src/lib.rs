//! Hops, stamps, the trace ring, joining by id, and histograms that keep the whole tail.
