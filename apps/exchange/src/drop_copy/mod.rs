//! Drop copies: what users are told, told again to those who watch over them.
//!
//! They are one more reading of the log. A thread beside the venue follows the journal as far as it is safe, matches again
//! what it reads, and sends each reader the messages of the users it watches. No duty cycle of the venue knows of it, so no
//! reader can delay anybody, and the same log gives the same copies, whoever asks and however often the venue was started
//! in between. `docs/drop-copy.md` is the protocol.

mod endpoint;

use std::net::SocketAddrV4;

pub(crate) use endpoint::{DropCopyEndpoint, DropCopyLinks};
use serde::{Deserialize, Serialize};
pub use tickpath_nasdaq::drop_copy::{Copy, HEADER_LEN as COPY_HEADER_LEN};

/// `[drop_copy]`: copies of the messages to users, for readers that watch them; needs a journal.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct DropCopySettings {
    /// The address where readers connect; port 0 takes a free one.
    pub address: SocketAddrV4,
    /// Readers at a time; further logins are refused.
    pub max_connections: usize,
    /// Messages of all users together that are kept in memory; older ones are read from the log again.
    pub retained_messages: usize,
}
