//! Counters of the order server.

use tickpath_agent::Counter;

/// Counters of an [`OrderServer`](super::OrderServer), readable from outside while it runs.
#[derive(Default)]
#[repr(align(128))] // on cache lines that it shares with nothing: another thread's writes beside it would cost its writer
pub struct OrderServerCounters {
    /// Connections accepted.
    pub connections: Counter,
    /// Logins refused because as many clients were logged in as may be.
    pub connections_refused: Counter,
    /// Connections closed before their login, because others came and there was no capacity.
    pub pre_login_evicted: Counter,
    /// Connections closed because their login did not come in time.
    pub pre_login_expired: Counter,
    /// Times that the system refused a connection, mostly by the limit of open files; the connection waits.
    pub accept_errors: Counter,
    /// Connections closed, by whichever side.
    pub disconnects: Counter,
    /// Logins accepted.
    pub logins: Counter,
    /// Logins refused.
    pub logins_refused: Counter,
    /// Requests sequenced, refused ones included.
    pub requests: Counter,
    /// Requests refused before the log.
    pub requests_refused: Counter,
    /// Messages that were no OUCH, packets that were no SoupBinTCP, and messages that are not offered.
    pub malformed: Counter,
    /// Answers to users.
    pub responses: Counter,
    /// Times that a connection took no more, because its client does not read; it is left alone for a while.
    pub full_connections: Counter,
    /// Clients disconnected because they read too slowly for what is kept.
    pub slow_clients: Counter,
    /// Commands in the log, the venue's own included.
    pub commands: Counter,
    /// Wrong passwords, and unknown names.
    pub wrong_passwords: Counter,
    /// Logins whose check was put off: too many passwords were wrong before, or too many checks waited.
    pub logins_delayed: Counter,
    /// Passwords checked whose connection was closed by then.
    pub checks_dropped: Counter,
    /// Sessions whose open orders were cancelled because they had no connection.
    pub cancels_on_disconnect: Counter,
    /// Commands of the administrator that were carried out.
    pub admin_commands: Counter,
    /// 1 between kill and unkill of all users.
    pub is_killed: Counter,
    /// 1 once the venue takes no new orders until it stops.
    pub is_draining: Counter,
}
