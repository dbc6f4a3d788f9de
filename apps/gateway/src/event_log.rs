//! The log of every event and request.
