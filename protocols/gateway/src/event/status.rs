//! Events about connections, downloads, limits, and the client itself.

use super::bodies;
use crate::field::structures;
use crate::{
    ConnectionStatus, FieldKind, GatewayState, RateLimitKind, RateLimitReason, ReadyScope, Reserved, Text,
    Transport,
};

structures! {
    /// The client began.
    Start "start" {
        /// Monotonic time.
        now_ns: u64,
    }

    /// The client ends.
    Stop "stop" {
        /// Monotonic time.
        now_ns: u64,
    }

    /// A period of the client's own has passed.
    Timer "timer" {
        /// Monotonic time.
        now_ns: u64,
        /// How often it has passed.
        count: u64,
    }

    /// The gateway has let the client in.
    Connected "connected" {
        /// The client's number in this life of the gateway, from 1.
        client: u32,
        /// What the user may do: [`crate::frame::capability`].
        capabilities: u32,
        /// The gateway's name.
        gateway: Text<32>,
        /// The venue.
        exchange: Text<32>,
    }

    /// The connection with the gateway is gone. Orders may go on resting at the venue.
    Disconnected "disconnected" {
        /// Why, for people.
        reason: Text<64>,
    }

    /// Broadcast events were overwritten before the client read them: books are stale until they are sent anew.
    Lapped "lapped" {
        /// How many.
        lost: u64,
    }

    /// A sign of life; the client's library answers it with both times.
    Ping "ping" {
        /// Number of the ping, from 1.
        number: u64,
        /// When the gateway sent it.
        ping_ns: u64,
        /// One way to the client and one way back of the last ping that was answered, in nanoseconds; 0 before.
        to_client_ns: u64,
        /// As said above.
        to_gateway_ns: u64,
    }

    /// What follows is the state as it was.
    DownloadBegin "download_begin" {
        /// Of market data, or of the header's account.
        scope: ReadyScope,
        /// Zero.
        reserved: Reserved<7>,
    }

    /// The state is complete.
    DownloadEnd "download_end" {
        /// Of market data, or of the header's account.
        scope: ReadyScope,
        /// Zero.
        reserved: Reserved<7>,
        /// The highest order id that this user's clients have used at this account, in earlier lives too: the client goes
        /// on above it. 0 for none, and for market data.
        max_order_id: u64,
    }

    /// Something can be worked with.
    Ready "ready" {
        /// What.
        scope: ReadyScope,
        /// Zero.
        reserved: Reserved<7>,
        /// Of an instrument: broadcast events of it up to this sequence are in what was downloaded; the client's library
        /// gives out none of them, and all that come later.
        broadcast_sequence: u64,
    }

    /// How the gateway stands with its venue.
    GatewayStatus "gateway_status" {
        /// How it stands.
        state: GatewayState,
        /// By which transport it trades.
        trading: Transport,
        /// 1 when the venue is a real one.
        is_production: u8,
        /// 1 when no order is sent to the venue, and no cancellation but that of the kill switch.
        is_dry_run: u8,
        /// Accounts that are ready.
        accounts_ready: u16,
        /// Accounts that there are.
        accounts: u16,
        /// The venue.
        exchange: Text<32>,
        /// Why it stands so, for people.
        text: Text<64>,
    }

    /// How one of the gateway's connections stands.
    StreamStatus "stream_status" {
        /// How it stands.
        status: ConnectionStatus,
        /// What it speaks.
        transport: Transport,
        /// 1 when it brings market data.
        is_market_data: u8,
        /// 1 when orders go by it.
        is_trading: u8,
        /// How often it was lost.
        losses: u32,
        /// What it is called.
        name: Text<16>,
        /// Where it leads.
        uri: Text<80>,
    }

    /// How long the venue took to answer a ping.
    ExternalLatency "external_latency" {
        /// Both ways, in nanoseconds.
        round_trip_ns: u64,
    }

    /// What is left of a limit on requests.
    RateLimitsUpdate "rate_limits_update" {
        /// Whose.
        limit: RateLimitKind,
        /// Zero.
        reserved: Reserved<3>,
        /// Requests, or credits, that can be used now.
        available: u32,
        /// As many at most.
        maximum: u32,
        /// Zero.
        reserved_too: Reserved<4>,
        /// The period that the maximum is for, in nanoseconds.
        period_ns: u64,
    }

    /// A limit on requests was hit.
    RateLimitTrigger "rate_limit_trigger" {
        /// Whose.
        limit: RateLimitKind,
        /// What follows.
        reason: RateLimitReason,
        /// Zero.
        reserved: Reserved<6>,
        /// Until when, by the monotonic clock; 0 when it is over at once.
        until_ns: u64,
    }

    /// The number of an account, with its name.
    AccountReference "account_reference" {
        /// Its name in the gateway's configuration.
        name: Text<32>,
        /// 1 when the user may trade for it.
        may_trade: u8,
        /// Zero.
        reserved: Reserved<7>,
    }

    /// What another client said.
    CustomMessage "custom_message" {
        /// The client's number.
        client: u32,
        /// What it is, as the clients agreed.
        topic: u16,
        /// Bytes of `data` that were sent, up to 64.
        len: u16,
        /// What was said.
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
