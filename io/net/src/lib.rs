//! UDP multicast and TCP transports with kernel receive time stamps.
