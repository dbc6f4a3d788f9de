//! Drop copies: copies of the messages to users, for readers that watch these users.
//!
//! A thread separate from the venue's duty cycles follows the journal up to its durable end and replays the
//! commands on a separate engine. It sends each reader the messages to the users that the reader watches. The
//! duty cycles do not depend on it, so a reader cannot delay the venue. The same log gives all readers the
//! same copies, across any number of restarts. `docs/drop-copy.md` describes the protocol.

mod endpoint;

use std::net::SocketAddrV4;

pub(crate) use endpoint::{DropCopyEndpoint, DropCopyLinks};
use serde::{Deserialize, Serialize};
pub use tickpath_nasdaq::drop_copy::{DropCopy, HEADER_LEN as COPY_HEADER_LEN};

/// `[drop_copy]`: copies of the messages to users, for readers that watch these users; needs a journal.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct DropCopySettings {
    /// Listening address for readers; port 0 takes a free one.
    pub address: SocketAddrV4,
    /// Maximum number of readers; further logins are refused.
    pub max_connections: usize,
    /// Messages of all users together that are retained in memory; older ones are read from the log again.
    pub retained_messages: usize,
}
