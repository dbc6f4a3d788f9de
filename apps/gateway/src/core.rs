//! The machine between clients and venue: no sockets, no clock.
