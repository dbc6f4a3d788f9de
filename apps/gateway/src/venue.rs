//! The connections to the venue.
