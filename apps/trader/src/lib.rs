//! The trader: strategy engine and order gateway, run with any Strategy.
