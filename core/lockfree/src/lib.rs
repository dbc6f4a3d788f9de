//! Bounded lock-free rings, an index pool and the CPU's prefetch, pause and time-stamp instructions.
