//! Events about connections, downloads, limits, and the client itself.

use super::bodies;
use crate::field::structures;
use crate::{
    ConnectionStatus, FieldKind, GatewayState, RateLimitKind, RateLimitReason, ReadyScope, Reserved, Text,
    Transport,
};

structures! {
    /// The client has started.
    Start "start" {
        /// Monotonic time.
        now_ns: u64,
    }

    /// The client is stopping.
    Stop "stop" {
        /// Monotonic time.
        now_ns: u64,
    }

    /// A timer period that the client has set has elapsed.
    Timer "timer" {
        /// Monotonic time.
        now_ns: u64,
        /// Number of periods elapsed.
        count: u64,
    }

    /// The gateway has accepted the client.
    Connected "connected" {
        /// The client's number in this gateway instance, from 1.
        client: u32,
        /// The user's permissions: [`crate::frame::capability`].
        capabilities: u32,
        /// The gateway's name.
        gateway: Text<32>,
        /// The venue.
        exchange: Text<32>,
    }

    /// The connection to the gateway is lost. Orders may still rest at the venue.
    Disconnected "disconnected" {
        /// Reason, as text.
        reason: Text<64>,
    }

    /// Broadcast events were overwritten before the client read them: books are stale until resent.
    Lapped "lapped" {
        /// Number of events lost.
        lost: u64,
    }

    /// A heartbeat; the client's library answers it with both times.
    Ping "ping" {
        /// Number of the ping, from 1.
        number: u64,
        /// Time when the gateway sent it.
        ping_ns: u64,
        /// One-way time to the client of the last answered ping, in nanoseconds; 0 before the first.
        to_client_ns: u64,
        /// One-way time back to the gateway of the same ping, in nanoseconds.
        to_gateway_ns: u64,
    }

    /// Start of a snapshot; the events that follow are its content.
    DownloadBegin "download_begin" {
        /// Market data, or the header's account.
        scope: ReadyScope,
        /// Zero.
        reserved: Reserved<7>,
    }

    /// The snapshot is complete.
    DownloadEnd "download_end" {
        /// Market data, or the header's account.
        scope: ReadyScope,
        /// Zero.
        reserved: Reserved<7>,
        /// The highest order id that this user's clients have used in this account, in earlier instances too:
        /// the client continues above it. 0 if there is none, and for market data.
        max_order_id: u64,
    }

    /// Market data, an account or an instrument is ready for use.
    Ready "ready" {
        /// Scope that is ready.
        scope: ReadyScope,
        /// Zero.
        reserved: Reserved<7>,
        /// For an instrument: broadcast events up to this sequence are already in the download. The client's
        /// library drops them and delivers all later ones.
        broadcast_sequence: u64,
    }

    /// State of the gateway and its venue connections.
    GatewayStatus "gateway_status" {
        /// The state.
        state: GatewayState,
        /// Transport used for trading.
        trading: Transport,
        /// 1 if the venue is a production venue.
        is_production: u8,
        /// 1 in a dry run: nothing is sent to the venue except cancellations of the kill switch.
        is_dry_run: u8,
        /// Number of accounts that are ready.
        accounts_ready: u16,
        /// Number of accounts.
        accounts: u16,
        /// The venue.
        exchange: Text<32>,
        /// Reason of the state, as text.
        text: Text<64>,
    }

    /// State of one of the gateway's connections.
    StreamStatus "stream_status" {
        /// The state.
        status: ConnectionStatus,
        /// Transport of the connection.
        transport: Transport,
        /// 1 if the connection carries market data.
        is_market_data: u8,
        /// 1 if the connection carries orders.
        is_trading: u8,
        /// Number of times the connection was lost.
        losses: u32,
        /// Name of the connection.
        name: Text<16>,
        /// Address of the remote end.
        uri: Text<80>,
    }

    /// Round-trip time of the last ping to the venue.
    ExternalLatency "external_latency" {
        /// Round-trip time in nanoseconds.
        round_trip_ns: u64,
    }

    /// Remaining capacity of a rate limit.
    RateLimitsUpdate "rate_limits_update" {
        /// The limit.
        limit: RateLimitKind,
        /// Zero.
        reserved: Reserved<3>,
        /// Requests or credits available now.
        available: u32,
        /// Maximum number of requests or credits.
        maximum: u32,
        /// Zero.
        reserved_too: Reserved<4>,
        /// Period of the maximum, in nanoseconds.
        period_ns: u64,
    }

    /// A rate limit was exceeded.
    RateLimitTrigger "rate_limit_trigger" {
        /// The limit.
        limit: RateLimitKind,
        /// Consequence.
        reason: RateLimitReason,
        /// Zero.
        reserved: Reserved<6>,
        /// End of the consequence, by the monotonic clock; 0 when it is over at once.
        until_ns: u64,
    }

    /// The number of an account and its name.
    AccountReference "account_reference" {
        /// Name of the account in the gateway's configuration.
        name: Text<32>,
        /// 1 when the user may trade for it.
        may_trade: u8,
        /// Zero.
        reserved: Reserved<7>,
    }

    /// A message from another client.
    CustomMessage "custom_message" {
        /// Number of the client that sent the message.
        client: u32,
        /// Topic, as the clients have agreed.
        topic: u16,
        /// Bytes of `data` that were sent, up to 64.
        len: u16,
        /// Payload.
        data: [u64; 8],
    }
}

bodies! {
    Start = START,
    Stop = STOP,
    Timer = TIMER,
    Connected = CONNECTED,
    Disconnected = DISCONNECTED,
    Lapped = LAPPED,
    Ping = PING,
    DownloadBegin = DOWNLOAD_BEGIN,
    DownloadEnd = DOWNLOAD_END,
    Ready = READY,
    GatewayStatus = GATEWAY_STATUS,
    StreamStatus = STREAM_STATUS,
    ExternalLatency = EXTERNAL_LATENCY,
    RateLimitsUpdate = RATE_LIMITS_UPDATE,
    RateLimitTrigger = RATE_LIMIT_TRIGGER,
    AccountReference = ACCOUNT_REFERENCE,
    CustomMessage = CUSTOM_MESSAGE,
}

impl crate::field::FieldType for [u64; 8] {
    const KIND: FieldKind = FieldKind::Array;

    fn show_field(&self, name: &str, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, " {name}=")?;
        self.iter().try_for_each(|word| write!(f, "{:016x}", word.swap_bytes()))
    }
}
