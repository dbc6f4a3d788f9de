//! Agents, runners, idle strategies, core pinning, the stop signal and the calibrated TSC clock.
