//! The recorded protocols, each in a separate file or folder.

pub(crate) mod dbn;
pub(crate) mod event_books;
pub(crate) mod events;
pub(crate) mod iex;
pub(crate) mod itch;
pub(crate) mod lobster;
pub(crate) mod xdp;
