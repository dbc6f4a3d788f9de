//! Deterministic price-time matching: commands in, responses and market events out.
