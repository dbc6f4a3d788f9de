//! Drop copies: what users are told, told again to those who watch over them.
//!
//! They are one more reading of the log. A thread beside the venue follows the journal as far as it is safe, matches again
//! what it reads, and sends each reader the messages of the users it watches. No duty cycle of the venue knows of it, so no
//! reader can delay anybody, and the same log gives the same copies, whoever asks and however often the venue was started
//! in between. `docs/drop-copy.md` is the protocol.

mod endpoint;
mod logins;

use std::net::SocketAddrV4;

pub(crate) use endpoint::{DropCopyEndpoint, DropCopyLinks};
pub(crate) use logins::ReaderLogins;
use serde::{Deserialize, Serialize};
pub use tickpath_nasdaq::drop_copy::{Copy, CopyError, HEADER_LEN as COPY_HEADER_LEN};

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

tickpath_lockfree::counters! {
    /// Counters of the drop copies; other threads may read them while the venue runs.
    pub struct DropCopyCounters {
        /// The last command whose messages are copied.
        pub commands,
        /// Messages of users that were read from the log.
        pub messages,
        /// Copies sent, over all readers.
        pub copies => "drop_copies",
        /// Connections accepted.
        pub connections,
        /// Connections closed before their login, because others came and there was no capacity, or it did not come in time.
        pub pre_login_evicted => "drop_copy_evicted",
        /// Connections closed, by whichever side.
        pub disconnects,
        /// Logins accepted.
        pub logins => "drop_copy_logins",
        /// Logins refused, for whichever reason.
        pub logins_refused => "drop_copy_refused",
        /// Wrong passwords, and unknown names.
        pub wrong_passwords,
        /// Bytes that are no SoupBinTCP packet, and messages of readers, which must not send any.
        pub malformed => "drop_copy_malformed",
        /// Readers who began before what is kept in memory, and for whom the log was read again.
        pub rewinds => "drop_copy_rewinds",
        /// Of these, those who were disconnected because the log had gone before they had all of it.
        pub rewinds_failed => "drop_copy_rewinds_cut",
        /// Readers disconnected because they read too slowly for what is kept.
        pub slow_readers => "drop_copy_readers_slow",
        /// 1 once the log cannot be followed any more: there are no drop copies until the venue is started again.
        pub has_failed,
    }
}
