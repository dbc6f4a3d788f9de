//! The configuration file of the gateway.
