//! The file formats, one module each; the [registry](crate::registry) lists them.

mod captures;
mod dbn;
mod events;
mod itch;
mod lobster;

pub(crate) use captures::{PCAP, PCAP_NG};
pub(crate) use dbn::DBN;
pub(crate) use itch::ITCH;
pub(crate) use lobster::LOBSTER;
