/* Client library of a Tickpath gateway.
 *
 * The gateway holds the connection to the venue; programs on the same machine share it through memory.
 * Details: docs/clients.md; examples: subscribe-all.c, order-test.c. Link with libtickpath_gateway_client.
 *
 * Numbers: prices and quantities are units of 10^-8 in an int64_t, money is units of 10^-18 in 128 bits;
 * there are no floats. Times are nanoseconds of CLOCK_MONOTONIC unless their name says utc. Texts in structures
 * are padded with zeros; a text that fills its field has no terminating zero.
 *
 * Threads: a client may be used by one thread at a time; different clients are independent.
 */
#ifndef TICKPATH_GATEWAY_H
#define TICKPATH_GATEWAY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define TP_LAYOUT(fact) static_assert(fact, #fact)
extern "C" {
#else
#define TP_LAYOUT(fact) _Static_assert(fact, #fact)
#endif

/* Required result of tp_gateway_version(). */
#define TP_GATEWAY_VERSION 1

/* Results of functions: 0 and above for success; below 0 for an error, whose text tp_error_text gives. */
enum {
    TP_OK = 0,             /* success; of a poll: no event at the moment */
    TP_EVENT = 1,          /* success of a poll: an event was written */
    TP_INVALID = -1,       /* an argument is missing or invalid */
    TP_CONNECT = -2,       /* the gateway is not reachable, or refused the client */
    TP_NOT_CONNECTED = -3, /* the client is not connected at the moment */
    TP_FULL = -4,          /* the ring to the gateway is full */
    TP_FINISHED = -5,      /* the client will not connect again */
    TP_PANIC = -100        /* an error in the library: free the client */
};

/* The number one as a price or quantity. */
#define TP_ONE INT64_C(100000000)

/* high * 2^64 + low units of 10^-18; high has the sign. */
typedef struct tp_money {
    uint64_t low;
    int64_t high;
} tp_money;

/* Constants and structures: generated from here on. */

enum {
    TP_EVENT_START = 1,
    TP_EVENT_STOP = 2,
    TP_EVENT_TIMER = 3,
    TP_EVENT_CONNECTED = 4,
    TP_EVENT_DISCONNECTED = 5,
    TP_EVENT_LAPPED = 6,
    TP_EVENT_PING = 7,
    TP_EVENT_DOWNLOAD_BEGIN = 10,
    TP_EVENT_DOWNLOAD_END = 11,
    TP_EVENT_READY = 12,
    TP_EVENT_GATEWAY_STATUS = 13,
    TP_EVENT_STREAM_STATUS = 14,
    TP_EVENT_EXTERNAL_LATENCY = 15,
    TP_EVENT_RATE_LIMITS_UPDATE = 16,
    TP_EVENT_RATE_LIMIT_TRIGGER = 17,
    TP_EVENT_ACCOUNT_REFERENCE = 18,
    TP_EVENT_REFERENCE_DATA = 20,
    TP_EVENT_TICK_SIZE_STEPS = 21,
    TP_EVENT_MARKET_STATUS = 22,
    TP_EVENT_TOP_OF_BOOK = 23,
    TP_EVENT_MARKET_BY_PRICE = 24,
    TP_EVENT_TRADE_SUMMARY = 25,
    TP_EVENT_STATISTICS = 26,
    TP_EVENT_TIME_SERIES = 27,
    TP_EVENT_ORDER_ACK = 30,
    TP_EVENT_ORDER_UPDATE = 31,
    TP_EVENT_TRADE_UPDATE = 32,
    TP_EVENT_POSITION_UPDATE = 33,
    TP_EVENT_FUNDS_UPDATE = 34,
    TP_EVENT_MASS_QUOTE_ACK = 35,
    TP_EVENT_CANCEL_QUOTES_ACK = 36,
    TP_EVENT_CANCEL_ALL_ACK = 37,
    TP_EVENT_RISK_LIMITS = 38,
    TP_EVENT_CUSTOM_MESSAGE = 40,
};

enum {
    TP_REQUEST_CREATE_ORDER = 1,
    TP_REQUEST_MODIFY_ORDER = 2,
    TP_REQUEST_CANCEL_ORDER = 3,
    TP_REQUEST_CANCEL_ALL = 4,
    TP_REQUEST_MASS_QUOTE = 5,
    TP_REQUEST_CANCEL_QUOTES = 6,
    TP_REQUEST_PONG = 7,
    TP_REQUEST_DOWNLOAD_MARKET_DATA = 8,
    TP_REQUEST_CUSTOM_MESSAGE = 9,
    TP_REQUEST_SET_RISK_LIMITS = 10,
};

enum {
    TP_SIDE_BUY = 1,
    TP_SIDE_SELL = 2,
};

enum {
    TP_ORDER_TYPE_LIMIT = 1,
    TP_ORDER_TYPE_MARKET = 2,
    TP_ORDER_TYPE_STOP_LIMIT = 3,
    TP_ORDER_TYPE_STOP_MARKET = 4,
    TP_ORDER_TYPE_TAKE_LIMIT = 5,
    TP_ORDER_TYPE_TAKE_MARKET = 6,
    TP_ORDER_TYPE_MARKET_LIMIT = 7,
    TP_ORDER_TYPE_TRAILING_STOP = 8,
};

enum {
    TP_TIME_IN_FORCE_GTC = 1,
    TP_TIME_IN_FORCE_DAY = 2,
    TP_TIME_IN_FORCE_IOC = 3,
    TP_TIME_IN_FORCE_FOK = 4,
};

enum {
    TP_TRIGGER_INDEX = 1,
    TP_TRIGGER_MARK = 2,
    TP_TRIGGER_LAST = 3,
};

enum {
    TP_EXECUTION_POST_ONLY = 1,
    TP_EXECUTION_REJECT_POST_ONLY = 2,
    TP_EXECUTION_REDUCE_ONLY = 4,
    TP_EXECUTION_MMP = 8,
};

enum {
    TP_ORDER_STATUS_SENT = 1,
    TP_ORDER_STATUS_WORKING = 2,
    TP_ORDER_STATUS_COMPLETED = 3,
    TP_ORDER_STATUS_CANCELED = 4,
    TP_ORDER_STATUS_REJECTED = 5,
    TP_ORDER_STATUS_EXPIRED = 6,
    TP_ORDER_STATUS_UNTRIGGERED = 7,
    TP_ORDER_STATUS_UNKNOWN = 8,
};

enum {
    TP_ORIGIN_CLIENT = 1,
    TP_ORIGIN_GATEWAY = 2,
    TP_ORIGIN_EXCHANGE = 3,
};

enum {
    TP_ACK_STATUS_RECEIVED = 1,
    TP_ACK_STATUS_ACCEPTED = 2,
    TP_ACK_STATUS_REJECTED = 3,
    TP_ACK_STATUS_TIMEOUT = 4,
};

enum {
    TP_ACK_TYPE_CREATE = 1,
    TP_ACK_TYPE_MODIFY = 2,
    TP_ACK_TYPE_CANCEL = 3,
    TP_ACK_TYPE_CANCEL_ALL = 4,
    TP_ACK_TYPE_MASS_QUOTE = 5,
    TP_ACK_TYPE_CANCEL_QUOTES = 6,
    TP_ACK_TYPE_SET_RISK_LIMITS = 7,
    TP_ACK_TYPE_CUSTOM_MESSAGE = 8,
    TP_ACK_TYPE_DOWNLOAD_MARKET_DATA = 9,
};

enum {
    TP_ERROR_MALFORMED = 1,
    TP_ERROR_NOT_READY = 2,
    TP_ERROR_UNKNOWN_ACCOUNT = 3,
    TP_ERROR_UNKNOWN_SYMBOL = 4,
    TP_ERROR_NOT_PERMITTED = 5,
    TP_ERROR_RATE_LIMITED = 6,
    TP_ERROR_BANNED = 7,
    TP_ERROR_UNKNOWN_ORDER = 8,
    TP_ERROR_DUPLICATE_ORDER = 9,
    TP_ERROR_INVALID_PRICE = 10,
    TP_ERROR_INVALID_QUANTITY = 11,
    TP_ERROR_INVALID_TERMS = 12,
    TP_ERROR_MAX_ORDER_QUANTITY = 13,
    TP_ERROR_MAX_ORDER_NOTIONAL = 14,
    TP_ERROR_MAX_OPEN_ORDERS = 15,
    TP_ERROR_KILLED = 16,
    TP_ERROR_TOO_LATE = 17,
    TP_ERROR_BUSY = 18,
    TP_ERROR_NOT_SUPPORTED = 19,
    TP_ERROR_VENUE = 20,
    TP_ERROR_INSUFFICIENT_FUNDS = 21,
    TP_ERROR_TIMEOUT = 22,
    TP_ERROR_CONNECTION_LOST = 23,
    TP_ERROR_DRY_RUN = 24,
    TP_ERROR_STOPPING = 25,
    TP_ERROR_VENUE_RATE_LIMITED = 26,
    TP_ERROR_WOULD_TAKE = 27,
    TP_ERROR_NO_REFERENCE_PRICE = 28,
    TP_ERROR_NO_RISK_LIMITS = 29,
    TP_ERROR_UNREADABLE_ORDER = 30,
    TP_ERROR_INVALID_ORDER_ID = 31,
};

enum {
    TP_LIQUIDITY_MAKER = 1,
    TP_LIQUIDITY_TAKER = 2,
};

enum {
    TP_UPDATE_SNAPSHOT = 1,
    TP_UPDATE_INCREMENTAL = 2,
    TP_UPDATE_STALE = 3,
};

enum {
    TP_BOOK_UPDATE_SNAPSHOT = 1,
    TP_BOOK_UPDATE_INCREMENTAL = 2,
    TP_BOOK_UPDATE_STALE = 3,
};

enum {
    TP_INSTRUMENT_KIND_PERPETUAL = 1,
    TP_INSTRUMENT_KIND_FUTURE = 2,
    TP_INSTRUMENT_KIND_OPTION = 3,
    TP_INSTRUMENT_KIND_SPOT = 4,
    TP_INSTRUMENT_KIND_FUTURE_COMBO = 5,
    TP_INSTRUMENT_KIND_OPTION_COMBO = 6,
};

enum {
    TP_OPTION_TYPE_CALL = 1,
    TP_OPTION_TYPE_PUT = 2,
};

enum {
    TP_MARKET_STATE_OPEN = 1,
    TP_MARKET_STATE_HALTED = 2,
    TP_MARKET_STATE_CLOSED = 3,
    TP_MARKET_STATE_PRE_OPEN = 4,
};

enum {
    TP_TICK_DIRECTION_PLUS = 1,
    TP_TICK_DIRECTION_ZERO_PLUS = 2,
    TP_TICK_DIRECTION_MINUS = 3,
    TP_TICK_DIRECTION_ZERO_MINUS = 4,
};

enum {
    TP_STATISTIC_MARK_PRICE = 1,
    TP_STATISTIC_INDEX_PRICE = 2,
    TP_STATISTIC_LAST_PRICE = 3,
    TP_STATISTIC_OPEN_INTEREST = 4,
    TP_STATISTIC_CURRENT_FUNDING = 5,
    TP_STATISTIC_FUNDING_8H = 6,
    TP_STATISTIC_INTEREST_VALUE = 7,
    TP_STATISTIC_ESTIMATED_DELIVERY_PRICE = 8,
    TP_STATISTIC_DELIVERY_PRICE = 9,
    TP_STATISTIC_SETTLEMENT_PRICE = 10,
    TP_STATISTIC_MIN_PRICE = 11,
    TP_STATISTIC_MAX_PRICE = 12,
    TP_STATISTIC_HIGH = 13,
    TP_STATISTIC_LOW = 14,
    TP_STATISTIC_VOLUME = 15,
    TP_STATISTIC_VOLUME_USD = 16,
    TP_STATISTIC_PRICE_CHANGE = 17,
    TP_STATISTIC_BID_IV = 18,
    TP_STATISTIC_ASK_IV = 19,
    TP_STATISTIC_MARK_IV = 20,
    TP_STATISTIC_UNDERLYING_PRICE = 21,
    TP_STATISTIC_DELTA = 22,
    TP_STATISTIC_GAMMA = 23,
    TP_STATISTIC_THETA = 24,
    TP_STATISTIC_VEGA = 25,
    TP_STATISTIC_RHO = 26,
    TP_STATISTIC_INTEREST_RATE = 27,
    TP_STATISTIC_VOLUME_NOTIONAL = 28,
};

enum {
    TP_CONNECTION_STATUS_DISCONNECTED = 1,
    TP_CONNECTION_STATUS_CONNECTING = 2,
    TP_CONNECTION_STATUS_LOGIN_SENT = 3,
    TP_CONNECTION_STATUS_DOWNLOADING = 4,
    TP_CONNECTION_STATUS_READY = 5,
    TP_CONNECTION_STATUS_WAITING = 6,
};

enum {
    TP_GATEWAY_STATE_DISCONNECTED = 1,
    TP_GATEWAY_STATE_RECONCILING = 2,
    TP_GATEWAY_STATE_MARKET_DATA = 3,
    TP_GATEWAY_STATE_READY = 4,
    TP_GATEWAY_STATE_KILLED = 5,
    TP_GATEWAY_STATE_STOPPING = 6,
};

enum {
    TP_TRANSPORT_WS = 1,
    TP_TRANSPORT_FIX = 2,
};

enum {
    TP_READY_SCOPE_MARKET_DATA = 1,
    TP_READY_SCOPE_ACCOUNT = 2,
    TP_READY_SCOPE_INSTRUMENT = 3,
};

enum {
    TP_RATE_LIMIT_USER = 1,
    TP_RATE_LIMIT_VENUE = 2,
};

enum {
    TP_RATE_LIMIT_REASON_REFUSED = 1,
    TP_RATE_LIMIT_REASON_BANNED = 2,
    TP_RATE_LIMIT_REASON_VENUE_REFUSED = 3,
};

enum {
    TP_FLAG_LAST_IN_BATCH = 1,
    TP_FLAG_BROADCAST = 2,
    TP_FLAG_DOWNLOAD = 4,
};

enum {
    TP_CAPABILITY_TRADING = 1,
    TP_CAPABILITY_CANCEL_ON_DISCONNECT = 2,
    TP_CAPABILITY_PRODUCTION = 4,
    TP_CAPABILITY_DRY_RUN = 8,
};

typedef struct tp_event_header {
    uint16_t kind;
    uint16_t flags;
    uint8_t source;
    uint8_t stream;
    uint16_t account;
    uint32_t symbol;
    uint32_t body_len;
    uint64_t session[2];
    uint64_t sequence;
    uint64_t receive_ns;
    uint64_t send_ns;
    uint64_t origin_ns;
    uint64_t origin_utc_ns;
} tp_event_header;
TP_LAYOUT(sizeof(tp_event_header) == 72);
TP_LAYOUT(offsetof(tp_event_header, flags) == 2);
TP_LAYOUT(offsetof(tp_event_header, source) == 4);
TP_LAYOUT(offsetof(tp_event_header, stream) == 5);
TP_LAYOUT(offsetof(tp_event_header, account) == 6);
TP_LAYOUT(offsetof(tp_event_header, symbol) == 8);
TP_LAYOUT(offsetof(tp_event_header, body_len) == 12);
TP_LAYOUT(offsetof(tp_event_header, session) == 16);
TP_LAYOUT(offsetof(tp_event_header, sequence) == 32);
TP_LAYOUT(offsetof(tp_event_header, receive_ns) == 40);
TP_LAYOUT(offsetof(tp_event_header, send_ns) == 48);
TP_LAYOUT(offsetof(tp_event_header, origin_ns) == 56);
TP_LAYOUT(offsetof(tp_event_header, origin_utc_ns) == 64);

typedef struct tp_request_header {
    uint16_t kind;
    uint16_t flags;
    uint16_t account;
    uint8_t reserved[2];
    uint32_t symbol;
    uint8_t reserved_too[4];
    uint64_t request_id;
    uint64_t client_order_id;
    uint64_t order_id;
    uint64_t create_ns;
} tp_request_header;
TP_LAYOUT(sizeof(tp_request_header) == 48);
TP_LAYOUT(offsetof(tp_request_header, flags) == 2);
TP_LAYOUT(offsetof(tp_request_header, account) == 4);
TP_LAYOUT(offsetof(tp_request_header, reserved) == 6);
TP_LAYOUT(offsetof(tp_request_header, symbol) == 8);
TP_LAYOUT(offsetof(tp_request_header, reserved_too) == 12);
TP_LAYOUT(offsetof(tp_request_header, request_id) == 16);
TP_LAYOUT(offsetof(tp_request_header, client_order_id) == 24);
TP_LAYOUT(offsetof(tp_request_header, order_id) == 32);
TP_LAYOUT(offsetof(tp_request_header, create_ns) == 40);

typedef struct tp_level {
    int64_t price;
    int64_t quantity;
} tp_level;
TP_LAYOUT(sizeof(tp_level) == 16);
TP_LAYOUT(offsetof(tp_level, quantity) == 8);

typedef struct tp_statistic {
    uint32_t kind;
    uint8_t reserved[4];
    int64_t value;
} tp_statistic;
TP_LAYOUT(sizeof(tp_statistic) == 16);
TP_LAYOUT(offsetof(tp_statistic, reserved) == 4);
TP_LAYOUT(offsetof(tp_statistic, value) == 8);

typedef struct tp_start {
    uint64_t now_ns;
} tp_start;
TP_LAYOUT(sizeof(tp_start) == 8);

typedef struct tp_stop {
    uint64_t now_ns;
} tp_stop;
TP_LAYOUT(sizeof(tp_stop) == 8);

typedef struct tp_timer {
    uint64_t now_ns;
    uint64_t count;
} tp_timer;
TP_LAYOUT(sizeof(tp_timer) == 16);
TP_LAYOUT(offsetof(tp_timer, count) == 8);

typedef struct tp_connected {
    uint32_t client;
    uint32_t capabilities;
    char gateway[32];
    char exchange[32];
} tp_connected;
TP_LAYOUT(sizeof(tp_connected) == 72);
TP_LAYOUT(offsetof(tp_connected, capabilities) == 4);
TP_LAYOUT(offsetof(tp_connected, gateway) == 8);
TP_LAYOUT(offsetof(tp_connected, exchange) == 40);

typedef struct tp_disconnected {
    char reason[64];
} tp_disconnected;
TP_LAYOUT(sizeof(tp_disconnected) == 64);

typedef struct tp_lapped {
    uint64_t lost;
} tp_lapped;
TP_LAYOUT(sizeof(tp_lapped) == 8);

typedef struct tp_ping {
    uint64_t number;
    uint64_t ping_ns;
    uint64_t to_client_ns;
    uint64_t to_gateway_ns;
} tp_ping;
TP_LAYOUT(sizeof(tp_ping) == 32);
TP_LAYOUT(offsetof(tp_ping, ping_ns) == 8);
TP_LAYOUT(offsetof(tp_ping, to_client_ns) == 16);
TP_LAYOUT(offsetof(tp_ping, to_gateway_ns) == 24);

typedef struct tp_download_begin {
    uint8_t scope;
    uint8_t reserved[7];
} tp_download_begin;
TP_LAYOUT(sizeof(tp_download_begin) == 8);
TP_LAYOUT(offsetof(tp_download_begin, reserved) == 1);

typedef struct tp_download_end {
    uint8_t scope;
    uint8_t reserved[7];
    uint64_t max_order_id;
} tp_download_end;
TP_LAYOUT(sizeof(tp_download_end) == 16);
TP_LAYOUT(offsetof(tp_download_end, reserved) == 1);
TP_LAYOUT(offsetof(tp_download_end, max_order_id) == 8);

typedef struct tp_ready {
    uint8_t scope;
    uint8_t reserved[7];
    uint64_t broadcast_sequence;
} tp_ready;
TP_LAYOUT(sizeof(tp_ready) == 16);
TP_LAYOUT(offsetof(tp_ready, reserved) == 1);
TP_LAYOUT(offsetof(tp_ready, broadcast_sequence) == 8);

typedef struct tp_gateway_status {
    uint8_t state;
    uint8_t trading;
    uint8_t is_production;
    uint8_t is_dry_run;
    uint16_t accounts_ready;
    uint16_t accounts;
    char exchange[32];
    char text[64];
} tp_gateway_status;
TP_LAYOUT(sizeof(tp_gateway_status) == 104);
TP_LAYOUT(offsetof(tp_gateway_status, trading) == 1);
TP_LAYOUT(offsetof(tp_gateway_status, is_production) == 2);
TP_LAYOUT(offsetof(tp_gateway_status, is_dry_run) == 3);
TP_LAYOUT(offsetof(tp_gateway_status, accounts_ready) == 4);
TP_LAYOUT(offsetof(tp_gateway_status, accounts) == 6);
TP_LAYOUT(offsetof(tp_gateway_status, exchange) == 8);
TP_LAYOUT(offsetof(tp_gateway_status, text) == 40);

typedef struct tp_stream_status {
    uint8_t status;
    uint8_t transport;
    uint8_t is_market_data;
    uint8_t is_trading;
    uint32_t losses;
    char name[16];
    char uri[80];
} tp_stream_status;
TP_LAYOUT(sizeof(tp_stream_status) == 104);
TP_LAYOUT(offsetof(tp_stream_status, transport) == 1);
TP_LAYOUT(offsetof(tp_stream_status, is_market_data) == 2);
TP_LAYOUT(offsetof(tp_stream_status, is_trading) == 3);
TP_LAYOUT(offsetof(tp_stream_status, losses) == 4);
TP_LAYOUT(offsetof(tp_stream_status, name) == 8);
TP_LAYOUT(offsetof(tp_stream_status, uri) == 24);

typedef struct tp_external_latency {
    uint64_t round_trip_ns;
} tp_external_latency;
TP_LAYOUT(sizeof(tp_external_latency) == 8);

typedef struct tp_rate_limits_update {
    uint8_t limit;
    uint8_t reserved[3];
    uint32_t available;
    uint32_t maximum;
    uint8_t reserved_too[4];
    uint64_t period_ns;
} tp_rate_limits_update;
TP_LAYOUT(sizeof(tp_rate_limits_update) == 24);
TP_LAYOUT(offsetof(tp_rate_limits_update, reserved) == 1);
TP_LAYOUT(offsetof(tp_rate_limits_update, available) == 4);
TP_LAYOUT(offsetof(tp_rate_limits_update, maximum) == 8);
TP_LAYOUT(offsetof(tp_rate_limits_update, reserved_too) == 12);
TP_LAYOUT(offsetof(tp_rate_limits_update, period_ns) == 16);

typedef struct tp_rate_limit_trigger {
    uint8_t limit;
    uint8_t reason;
    uint8_t reserved[6];
    uint64_t until_ns;
} tp_rate_limit_trigger;
TP_LAYOUT(sizeof(tp_rate_limit_trigger) == 16);
TP_LAYOUT(offsetof(tp_rate_limit_trigger, reason) == 1);
TP_LAYOUT(offsetof(tp_rate_limit_trigger, reserved) == 2);
TP_LAYOUT(offsetof(tp_rate_limit_trigger, until_ns) == 8);

typedef struct tp_account_reference {
    char name[32];
    uint8_t may_trade;
    uint8_t reserved[7];
} tp_account_reference;
TP_LAYOUT(sizeof(tp_account_reference) == 40);
TP_LAYOUT(offsetof(tp_account_reference, may_trade) == 32);
TP_LAYOUT(offsetof(tp_account_reference, reserved) == 33);

typedef struct tp_reference_data {
    char name[40];
    int64_t tick_size;
    int64_t min_quantity;
    int64_t contract_size;
    int64_t strike;
    uint64_t expiry_utc_ns;
    char base_currency[8];
    char quote_currency[8];
    char settlement_currency[8];
    uint8_t kind;
    uint8_t option;
    uint8_t is_inverse;
    uint8_t is_active;
    uint8_t reserved[4];
} tp_reference_data;
TP_LAYOUT(sizeof(tp_reference_data) == 112);
TP_LAYOUT(offsetof(tp_reference_data, tick_size) == 40);
TP_LAYOUT(offsetof(tp_reference_data, min_quantity) == 48);
TP_LAYOUT(offsetof(tp_reference_data, contract_size) == 56);
TP_LAYOUT(offsetof(tp_reference_data, strike) == 64);
TP_LAYOUT(offsetof(tp_reference_data, expiry_utc_ns) == 72);
TP_LAYOUT(offsetof(tp_reference_data, base_currency) == 80);
TP_LAYOUT(offsetof(tp_reference_data, quote_currency) == 88);
TP_LAYOUT(offsetof(tp_reference_data, settlement_currency) == 96);
TP_LAYOUT(offsetof(tp_reference_data, kind) == 104);
TP_LAYOUT(offsetof(tp_reference_data, option) == 105);
TP_LAYOUT(offsetof(tp_reference_data, is_inverse) == 106);
TP_LAYOUT(offsetof(tp_reference_data, is_active) == 107);
TP_LAYOUT(offsetof(tp_reference_data, reserved) == 108);

typedef struct tp_tick_size_steps {
    uint32_t count;
    uint8_t reserved[4];
    tp_level steps[6];
} tp_tick_size_steps;
TP_LAYOUT(sizeof(tp_tick_size_steps) == 104);
TP_LAYOUT(offsetof(tp_tick_size_steps, reserved) == 4);
TP_LAYOUT(offsetof(tp_tick_size_steps, steps) == 8);

typedef struct tp_market_status {
    uint8_t state;
    uint8_t reserved[7];
} tp_market_status;
TP_LAYOUT(sizeof(tp_market_status) == 8);
TP_LAYOUT(offsetof(tp_market_status, reserved) == 1);

typedef struct tp_top_of_book {
    int64_t bid_price;
    int64_t bid_quantity;
    int64_t ask_price;
    int64_t ask_quantity;
    uint64_t change_id;
    uint8_t update;
    uint8_t reserved[7];
} tp_top_of_book;
TP_LAYOUT(sizeof(tp_top_of_book) == 48);
TP_LAYOUT(offsetof(tp_top_of_book, bid_quantity) == 8);
TP_LAYOUT(offsetof(tp_top_of_book, ask_price) == 16);
TP_LAYOUT(offsetof(tp_top_of_book, ask_quantity) == 24);
TP_LAYOUT(offsetof(tp_top_of_book, change_id) == 32);
TP_LAYOUT(offsetof(tp_top_of_book, update) == 40);
TP_LAYOUT(offsetof(tp_top_of_book, reserved) == 41);

typedef struct tp_market_by_price {
    uint64_t change_id;
    uint8_t bids;
    uint8_t asks;
    uint8_t update;
    uint8_t reserved[5];
    tp_level levels[6];
} tp_market_by_price;
TP_LAYOUT(sizeof(tp_market_by_price) == 112);
TP_LAYOUT(offsetof(tp_market_by_price, bids) == 8);
TP_LAYOUT(offsetof(tp_market_by_price, asks) == 9);
TP_LAYOUT(offsetof(tp_market_by_price, update) == 10);
TP_LAYOUT(offsetof(tp_market_by_price, reserved) == 11);
TP_LAYOUT(offsetof(tp_market_by_price, levels) == 16);

typedef struct tp_trade_summary {
    int64_t price;
    int64_t quantity;
    int64_t mark_price;
    int64_t index_price;
    uint64_t trade_sequence;
    char trade_id[24];
    uint8_t side;
    uint8_t direction;
    uint8_t is_liquidation;
    uint8_t is_block;
    uint8_t reserved[4];
} tp_trade_summary;
TP_LAYOUT(sizeof(tp_trade_summary) == 72);
TP_LAYOUT(offsetof(tp_trade_summary, quantity) == 8);
TP_LAYOUT(offsetof(tp_trade_summary, mark_price) == 16);
TP_LAYOUT(offsetof(tp_trade_summary, index_price) == 24);
TP_LAYOUT(offsetof(tp_trade_summary, trade_sequence) == 32);
TP_LAYOUT(offsetof(tp_trade_summary, trade_id) == 40);
TP_LAYOUT(offsetof(tp_trade_summary, side) == 64);
TP_LAYOUT(offsetof(tp_trade_summary, direction) == 65);
TP_LAYOUT(offsetof(tp_trade_summary, is_liquidation) == 66);
TP_LAYOUT(offsetof(tp_trade_summary, is_block) == 67);
TP_LAYOUT(offsetof(tp_trade_summary, reserved) == 68);

typedef struct tp_statistics {
    uint32_t count;
    uint8_t reserved[4];
    tp_statistic figures[6];
} tp_statistics;
TP_LAYOUT(sizeof(tp_statistics) == 104);
TP_LAYOUT(offsetof(tp_statistics, reserved) == 4);
TP_LAYOUT(offsetof(tp_statistics, figures) == 8);

typedef struct tp_time_series {
    uint64_t begin_utc_ns;
    uint32_t period_secs;
    uint8_t update;
    uint8_t reserved[3];
    int64_t open;
    int64_t high;
    int64_t low;
    int64_t close;
    int64_t volume;
    int64_t cost;
} tp_time_series;
TP_LAYOUT(sizeof(tp_time_series) == 64);
TP_LAYOUT(offsetof(tp_time_series, period_secs) == 8);
TP_LAYOUT(offsetof(tp_time_series, update) == 12);
TP_LAYOUT(offsetof(tp_time_series, reserved) == 13);
TP_LAYOUT(offsetof(tp_time_series, open) == 16);
TP_LAYOUT(offsetof(tp_time_series, high) == 24);
TP_LAYOUT(offsetof(tp_time_series, low) == 32);
TP_LAYOUT(offsetof(tp_time_series, close) == 40);
TP_LAYOUT(offsetof(tp_time_series, volume) == 48);
TP_LAYOUT(offsetof(tp_time_series, cost) == 56);

typedef struct tp_order_ack {
    uint64_t client_order_id;
    uint64_t order_id;
    uint64_t request_id;
    char external_order_id[24];
    uint64_t round_trip_ns;
    uint8_t origin;
    uint8_t status;
    uint8_t request;
    uint8_t side;
    uint16_t error;
    uint8_t reserved[2];
    char text[48];
} tp_order_ack;
TP_LAYOUT(sizeof(tp_order_ack) == 112);
TP_LAYOUT(offsetof(tp_order_ack, order_id) == 8);
TP_LAYOUT(offsetof(tp_order_ack, request_id) == 16);
TP_LAYOUT(offsetof(tp_order_ack, external_order_id) == 24);
TP_LAYOUT(offsetof(tp_order_ack, round_trip_ns) == 48);
TP_LAYOUT(offsetof(tp_order_ack, origin) == 56);
TP_LAYOUT(offsetof(tp_order_ack, status) == 57);
TP_LAYOUT(offsetof(tp_order_ack, request) == 58);
TP_LAYOUT(offsetof(tp_order_ack, side) == 59);
TP_LAYOUT(offsetof(tp_order_ack, error) == 60);
TP_LAYOUT(offsetof(tp_order_ack, reserved) == 62);
TP_LAYOUT(offsetof(tp_order_ack, text) == 64);

typedef struct tp_order_update {
    uint64_t client_order_id;
    uint64_t order_id;
    char external_order_id[24];
    int64_t price;
    int64_t stop_price;
    int64_t remaining_quantity;
    int64_t traded_quantity;
    int64_t average_price;
    uint64_t created_utc_ns;
    uint8_t status;
    uint8_t side;
    uint8_t order_type;
    uint8_t time_in_force;
    uint16_t execution;
    uint8_t trigger;
    uint8_t update;
    uint16_t error;
    uint8_t reserved[6];
} tp_order_update;
TP_LAYOUT(sizeof(tp_order_update) == 104);
TP_LAYOUT(offsetof(tp_order_update, order_id) == 8);
TP_LAYOUT(offsetof(tp_order_update, external_order_id) == 16);
TP_LAYOUT(offsetof(tp_order_update, price) == 40);
TP_LAYOUT(offsetof(tp_order_update, stop_price) == 48);
TP_LAYOUT(offsetof(tp_order_update, remaining_quantity) == 56);
TP_LAYOUT(offsetof(tp_order_update, traded_quantity) == 64);
TP_LAYOUT(offsetof(tp_order_update, average_price) == 72);
TP_LAYOUT(offsetof(tp_order_update, created_utc_ns) == 80);
TP_LAYOUT(offsetof(tp_order_update, status) == 88);
TP_LAYOUT(offsetof(tp_order_update, side) == 89);
TP_LAYOUT(offsetof(tp_order_update, order_type) == 90);
TP_LAYOUT(offsetof(tp_order_update, time_in_force) == 91);
TP_LAYOUT(offsetof(tp_order_update, execution) == 92);
TP_LAYOUT(offsetof(tp_order_update, trigger) == 94);
TP_LAYOUT(offsetof(tp_order_update, update) == 95);
TP_LAYOUT(offsetof(tp_order_update, error) == 96);
TP_LAYOUT(offsetof(tp_order_update, reserved) == 98);

typedef struct tp_trade_update {
    uint64_t client_order_id;
    uint64_t order_id;
    char external_order_id[24];
    char trade_id[24];
    int64_t price;
    int64_t quantity;
    tp_money fee;
    char fee_currency[8];
    uint8_t side;
    uint8_t liquidity;
    uint8_t update;
    uint8_t reserved[5];
} tp_trade_update;
TP_LAYOUT(sizeof(tp_trade_update) == 112);
TP_LAYOUT(offsetof(tp_trade_update, order_id) == 8);
TP_LAYOUT(offsetof(tp_trade_update, external_order_id) == 16);
TP_LAYOUT(offsetof(tp_trade_update, trade_id) == 40);
TP_LAYOUT(offsetof(tp_trade_update, price) == 64);
TP_LAYOUT(offsetof(tp_trade_update, quantity) == 72);
TP_LAYOUT(offsetof(tp_trade_update, fee) == 80);
TP_LAYOUT(offsetof(tp_trade_update, fee_currency) == 96);
TP_LAYOUT(offsetof(tp_trade_update, side) == 104);
TP_LAYOUT(offsetof(tp_trade_update, liquidity) == 105);
TP_LAYOUT(offsetof(tp_trade_update, update) == 106);
TP_LAYOUT(offsetof(tp_trade_update, reserved) == 107);

typedef struct tp_position_update {
    int64_t quantity;
    int64_t average_price;
    int64_t mark_price;
    tp_money floating_profit;
    tp_money realized_profit;
    tp_money initial_margin;
    tp_money maintenance_margin;
    uint8_t update;
    uint8_t reserved[7];
} tp_position_update;
TP_LAYOUT(sizeof(tp_position_update) == 96);
TP_LAYOUT(offsetof(tp_position_update, average_price) == 8);
TP_LAYOUT(offsetof(tp_position_update, mark_price) == 16);
TP_LAYOUT(offsetof(tp_position_update, floating_profit) == 24);
TP_LAYOUT(offsetof(tp_position_update, realized_profit) == 40);
TP_LAYOUT(offsetof(tp_position_update, initial_margin) == 56);
TP_LAYOUT(offsetof(tp_position_update, maintenance_margin) == 72);
TP_LAYOUT(offsetof(tp_position_update, update) == 88);
TP_LAYOUT(offsetof(tp_position_update, reserved) == 89);

typedef struct tp_funds_update {
    char currency[8];
    tp_money balance;
    tp_money equity;
    tp_money available;
    tp_money initial_margin;
    tp_money maintenance_margin;
    tp_money withdrawable;
    uint8_t update;
    uint8_t reserved[7];
} tp_funds_update;
TP_LAYOUT(sizeof(tp_funds_update) == 112);
TP_LAYOUT(offsetof(tp_funds_update, balance) == 8);
TP_LAYOUT(offsetof(tp_funds_update, equity) == 24);
TP_LAYOUT(offsetof(tp_funds_update, available) == 40);
TP_LAYOUT(offsetof(tp_funds_update, initial_margin) == 56);
TP_LAYOUT(offsetof(tp_funds_update, maintenance_margin) == 72);
TP_LAYOUT(offsetof(tp_funds_update, withdrawable) == 88);
TP_LAYOUT(offsetof(tp_funds_update, update) == 104);
TP_LAYOUT(offsetof(tp_funds_update, reserved) == 105);

typedef struct tp_quote_ack {
    uint64_t request_id;
    uint64_t quote_set;
    uint64_t round_trip_ns;
    uint32_t done;
    uint32_t refused;
    uint8_t origin;
    uint8_t status;
    uint8_t request;
    uint8_t reserved[1];
    uint16_t error;
    uint8_t reserved_too[2];
    char text[64];
} tp_quote_ack;
TP_LAYOUT(sizeof(tp_quote_ack) == 104);
TP_LAYOUT(offsetof(tp_quote_ack, quote_set) == 8);
TP_LAYOUT(offsetof(tp_quote_ack, round_trip_ns) == 16);
TP_LAYOUT(offsetof(tp_quote_ack, done) == 24);
TP_LAYOUT(offsetof(tp_quote_ack, refused) == 28);
TP_LAYOUT(offsetof(tp_quote_ack, origin) == 32);
TP_LAYOUT(offsetof(tp_quote_ack, status) == 33);
TP_LAYOUT(offsetof(tp_quote_ack, request) == 34);
TP_LAYOUT(offsetof(tp_quote_ack, reserved) == 35);
TP_LAYOUT(offsetof(tp_quote_ack, error) == 36);
TP_LAYOUT(offsetof(tp_quote_ack, reserved_too) == 38);
TP_LAYOUT(offsetof(tp_quote_ack, text) == 40);

typedef struct tp_risk_limits {
    int64_t max_order_quantity;
    tp_money max_order_notional;
    uint32_t max_open_orders;
    uint32_t open_orders;
    uint8_t is_killed;
    uint8_t caps;
    uint8_t reserved[6];
} tp_risk_limits;
TP_LAYOUT(sizeof(tp_risk_limits) == 40);
TP_LAYOUT(offsetof(tp_risk_limits, max_order_notional) == 8);
TP_LAYOUT(offsetof(tp_risk_limits, max_open_orders) == 24);
TP_LAYOUT(offsetof(tp_risk_limits, open_orders) == 28);
TP_LAYOUT(offsetof(tp_risk_limits, is_killed) == 32);
TP_LAYOUT(offsetof(tp_risk_limits, caps) == 33);
TP_LAYOUT(offsetof(tp_risk_limits, reserved) == 34);

typedef struct tp_custom_message {
    uint32_t client;
    uint16_t topic;
    uint16_t len;
    uint8_t data[64];
} tp_custom_message;
TP_LAYOUT(sizeof(tp_custom_message) == 72);
TP_LAYOUT(offsetof(tp_custom_message, topic) == 4);
TP_LAYOUT(offsetof(tp_custom_message, len) == 6);
TP_LAYOUT(offsetof(tp_custom_message, data) == 8);

typedef struct tp_create_order_request {
    int64_t price;
    int64_t quantity;
    int64_t stop_price;
    int64_t max_show;
    uint8_t side;
    uint8_t order_type;
    uint8_t time_in_force;
    uint8_t trigger;
    uint16_t execution;
    uint8_t reserved[2];
} tp_create_order_request;
TP_LAYOUT(sizeof(tp_create_order_request) == 40);
TP_LAYOUT(offsetof(tp_create_order_request, quantity) == 8);
TP_LAYOUT(offsetof(tp_create_order_request, stop_price) == 16);
TP_LAYOUT(offsetof(tp_create_order_request, max_show) == 24);
TP_LAYOUT(offsetof(tp_create_order_request, side) == 32);
TP_LAYOUT(offsetof(tp_create_order_request, order_type) == 33);
TP_LAYOUT(offsetof(tp_create_order_request, time_in_force) == 34);
TP_LAYOUT(offsetof(tp_create_order_request, trigger) == 35);
TP_LAYOUT(offsetof(tp_create_order_request, execution) == 36);
TP_LAYOUT(offsetof(tp_create_order_request, reserved) == 38);

typedef struct tp_modify_order_request {
    int64_t price;
    int64_t quantity;
    int64_t stop_price;
    uint16_t execution;
    uint8_t reserved[6];
} tp_modify_order_request;
TP_LAYOUT(sizeof(tp_modify_order_request) == 32);
TP_LAYOUT(offsetof(tp_modify_order_request, quantity) == 8);
TP_LAYOUT(offsetof(tp_modify_order_request, stop_price) == 16);
TP_LAYOUT(offsetof(tp_modify_order_request, execution) == 24);
TP_LAYOUT(offsetof(tp_modify_order_request, reserved) == 26);

typedef struct tp_cancel_order_request {
    uint8_t reserved[8];
} tp_cancel_order_request;
TP_LAYOUT(sizeof(tp_cancel_order_request) == 8);

typedef struct tp_cancel_all_request {
    uint8_t side;
    uint8_t reserved[7];
} tp_cancel_all_request;
TP_LAYOUT(sizeof(tp_cancel_all_request) == 8);
TP_LAYOUT(offsetof(tp_cancel_all_request, reserved) == 1);

typedef struct tp_mass_quote_request {
    uint64_t quote_set;
    int64_t bid_price;
    int64_t bid_quantity;
    int64_t ask_price;
    int64_t ask_quantity;
    uint16_t execution;
    uint8_t reserved[6];
} tp_mass_quote_request;
TP_LAYOUT(sizeof(tp_mass_quote_request) == 48);
TP_LAYOUT(offsetof(tp_mass_quote_request, bid_price) == 8);
TP_LAYOUT(offsetof(tp_mass_quote_request, bid_quantity) == 16);
TP_LAYOUT(offsetof(tp_mass_quote_request, ask_price) == 24);
TP_LAYOUT(offsetof(tp_mass_quote_request, ask_quantity) == 32);
TP_LAYOUT(offsetof(tp_mass_quote_request, execution) == 40);
TP_LAYOUT(offsetof(tp_mass_quote_request, reserved) == 42);

typedef struct tp_cancel_quotes_request {
    uint64_t quote_set;
} tp_cancel_quotes_request;
TP_LAYOUT(sizeof(tp_cancel_quotes_request) == 8);

typedef struct tp_pong_request {
    uint64_t number;
    uint64_t ping_ns;
    uint64_t received_ns;
} tp_pong_request;
TP_LAYOUT(sizeof(tp_pong_request) == 24);
TP_LAYOUT(offsetof(tp_pong_request, ping_ns) == 8);
TP_LAYOUT(offsetof(tp_pong_request, received_ns) == 16);

typedef struct tp_download_market_data_request {
    uint8_t reserved[8];
} tp_download_market_data_request;
TP_LAYOUT(sizeof(tp_download_market_data_request) == 8);

typedef struct tp_custom_message_request {
    uint16_t topic;
    uint16_t len;
    uint8_t reserved[4];
    uint8_t data[64];
} tp_custom_message_request;
TP_LAYOUT(sizeof(tp_custom_message_request) == 72);
TP_LAYOUT(offsetof(tp_custom_message_request, len) == 2);
TP_LAYOUT(offsetof(tp_custom_message_request, reserved) == 4);
TP_LAYOUT(offsetof(tp_custom_message_request, data) == 8);

typedef struct tp_set_risk_limits_request {
    int64_t max_order_quantity;
    int64_t max_order_notional;
    uint32_t max_open_orders;
    uint16_t caps;
    uint8_t reserved[2];
} tp_set_risk_limits_request;
TP_LAYOUT(sizeof(tp_set_risk_limits_request) == 24);
TP_LAYOUT(offsetof(tp_set_risk_limits_request, max_order_notional) == 8);
TP_LAYOUT(offsetof(tp_set_risk_limits_request, max_open_orders) == 16);
TP_LAYOUT(offsetof(tp_set_risk_limits_request, caps) == 20);
TP_LAYOUT(offsetof(tp_set_risk_limits_request, reserved) == 22);

/* Generated up to here. */

/* An event: a header and a body; the header's kind selects the body's member. Read that, or use memcpy. */
typedef struct tp_event {
    tp_event_header header;
    union {
        uint64_t raw[14];
        tp_timer timer;
        tp_connected connected;
        tp_disconnected disconnected;
        tp_lapped lapped;
        tp_ping ping;
        tp_download_begin download_begin;
        tp_download_end download_end;
        tp_ready ready;
        tp_gateway_status gateway_status;
        tp_stream_status stream_status;
        tp_external_latency external_latency;
        tp_rate_limits_update rate_limits_update;
        tp_rate_limit_trigger rate_limit_trigger;
        tp_account_reference account_reference;
        tp_reference_data reference_data;
        tp_tick_size_steps tick_size_steps;
        tp_market_status market_status;
        tp_top_of_book top_of_book;
        tp_market_by_price market_by_price;
        tp_trade_summary trade_summary;
        tp_statistics statistics;
        tp_time_series time_series;
        tp_order_ack order_ack;
        tp_order_update order_update;
        tp_trade_update trade_update;
        tp_position_update position_update;
        tp_funds_update funds_update;
        tp_quote_ack quote_ack;
        tp_risk_limits risk_limits;
        tp_custom_message custom_message;
    } body;
} tp_event;
TP_LAYOUT(sizeof(tp_event) == 184);

/* A request; unused fields are zero. The library fills in header.create_ns and, if it is 0,
 * header.request_id. */
typedef struct tp_request {
    tp_request_header header;
    union {
        uint64_t raw[9];
        tp_create_order_request create_order;
        tp_modify_order_request modify_order;
        tp_cancel_all_request cancel_all;
        tp_mass_quote_request mass_quote;
        tp_cancel_quotes_request cancel_quotes;
        tp_set_risk_limits_request set_risk_limits;
        tp_custom_message_request custom_message;
    } body;
} tp_request;
TP_LAYOUT(sizeof(tp_request) == 120);

/* Configuration of a client. Unused fields are zero; texts are zero-terminated and owned by the caller. */
typedef struct tp_gateway_config {
    const char *socket;   /* path of the gateway's Unix socket */
    const char *name;     /* name of the client; null for "client" */
    const char *user;
    const char *password;
    uint32_t timeout_ms;  /* time to wait for an answer when connecting; 0 for 5,000 */
    uint32_t timer_ms;    /* period of TP_EVENT_TIMER; 0 for none */
    uint8_t is_trading;   /* 1 to send orders */
    uint8_t is_persistent; /* 1 to reconnect when the connection is lost */
    uint8_t reserved[6];
} tp_gateway_config;

typedef struct tp_gateway_client tp_gateway_client;

/* Connects, and waits for the gateway's answer. On TP_OK *out is a client, owned by the caller until freed;
 * otherwise *out is null. */
int32_t tp_gateway_client_new(const tp_gateway_config *config, tp_gateway_client **out);

/* Closes the connection and frees the client; no effect for null. */
void tp_gateway_client_free(tp_gateway_client *client);

/* Writes the next event to *event: TP_EVENT if there is one, TP_OK if there is none now, TP_FINISHED if there
 * will be no more. Never blocks while connected; otherwise, with is_persistent, it tries to connect. */
int32_t tp_gateway_client_poll(tp_gateway_client *client, tp_event *event);

/* Sends a request: TP_OK, TP_FULL or TP_NOT_CONNECTED. */
int32_t tp_gateway_client_send(tp_gateway_client *client, tp_request *request);

/* Returns a client order id that is unused by this user, as far as reported; valid once the account is
 * ready. */
uint64_t tp_gateway_client_next_order_id(tp_gateway_client *client);

/* Returns 1 while connected. */
int32_t tp_gateway_client_is_connected(const tp_gateway_client *client);

/* Texts: each function writes as much as fits, and a zero; it returns the length of the whole text. */

/* Error of this thread's last failed call. */
size_t tp_error_text(char *out, size_t room);
/* An event or a request as one line. */
size_t tp_event_text(const tp_event *event, char *out, size_t room);
size_t tp_request_text(const tp_request *request, char *out, size_t room);
/* A price or quantity as a decimal number; 32 bytes are always enough. */
size_t tp_fixed_text(int64_t units, char *out, size_t room);

/* Parses a decimal number as a price or quantity, exactly: TP_OK or TP_INVALID. */
int32_t tp_fixed_parse(const char *number, int64_t *units);

/* The clock of events and requests. */
uint64_t tp_monotonic_ns(void);

/* Version of the library; compare it with TP_GATEWAY_VERSION. */
uint32_t tp_gateway_version(void);

#ifdef __cplusplus
}
#endif

#endif
