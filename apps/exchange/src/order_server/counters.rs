//! Counters of the order server.

tickpath_lockfree::counters! {
    /// Counters of an [`OrderServer`](super::OrderServer), readable from outside while it runs.
    pub struct OrderServerCounters {
        /// Connections accepted.
        pub connections => "connections",
        /// Logins refused because as many clients were logged in as may be.
        pub connections_refused => "connections_refused",
        /// Connections closed before their login, because others came and there was no capacity.
        pub pre_login_evicted => "pre_login_evicted",
        /// Connections closed because their login did not come in time.
        pub pre_login_expired => "pre_login_expired",
        /// Times that the system refused a connection, mostly by the limit of open files; the connection waits.
        pub accept_errors => "accept_errors",
        /// Connections closed, by whichever side.
        pub disconnects => "disconnects",
        /// Logins accepted.
        pub logins => "logins",
        /// Logins refused.
        pub logins_refused => "logins_refused",
        /// Requests sequenced, refused ones included.
        pub requests => "requests",
        /// Requests refused before the log.
        pub requests_refused => "requests_refused",
        /// Messages that were no OUCH, packets that were no SoupBinTCP, and messages that are not offered.
        pub malformed => "malformed",
        /// Answers to users.
        pub responses,
        /// Times that a connection took no more, because its client does not read; it is left alone for a while.
        pub full_connections => "full_connections",
        /// Clients disconnected because they read too slowly for what is kept.
        pub slow_clients => "slow_clients",
        /// Commands in the log, the venue's own included.
        pub commands => "commands",
        /// Wrong passwords, and unknown names.
        pub wrong_passwords => "wrong_passwords",
        /// Logins whose check was put off: too many passwords were wrong before, or too many checks waited.
        pub logins_delayed => "logins_delayed",
        /// Passwords checked whose connection was closed by then.
        pub checks_dropped => "checks_dropped",
        /// Sessions whose open orders were cancelled because they had no connection.
        pub cancels_on_disconnect => "cancels_on_disconnect",
        /// Commands of the administrator that were carried out.
        pub admin_commands => "admin_commands",
        /// 1 between kill and unkill of all users.
        pub is_killed,
        /// 1 once the venue takes no new orders until it stops.
        pub is_draining,
    }
}
