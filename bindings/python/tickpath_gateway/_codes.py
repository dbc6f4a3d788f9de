"""Codes of events and requests: numbers that have names.

They are plain numbers, as a gateway of a later version may have more.
"""

# Constants: generated from here on.


class Event:
    """Codes."""

    START = 1
    STOP = 2
    TIMER = 3
    CONNECTED = 4
    DISCONNECTED = 5
    LAPPED = 6
    PING = 7
    DOWNLOAD_BEGIN = 10
    DOWNLOAD_END = 11
    READY = 12
    GATEWAY_STATUS = 13
    STREAM_STATUS = 14
    EXTERNAL_LATENCY = 15
    RATE_LIMITS_UPDATE = 16
    RATE_LIMIT_TRIGGER = 17
    ACCOUNT_REFERENCE = 18
    REFERENCE_DATA = 20
    TICK_SIZE_STEPS = 21
    MARKET_STATUS = 22
    TOP_OF_BOOK = 23
    MARKET_BY_PRICE = 24
    TRADE_SUMMARY = 25
    STATISTICS = 26
    TIME_SERIES = 27
    ORDER_ACK = 30
    ORDER_UPDATE = 31
    TRADE_UPDATE = 32
    POSITION_UPDATE = 33
    FUNDS_UPDATE = 34
    MASS_QUOTE_ACK = 35
    CANCEL_QUOTES_ACK = 36
    CANCEL_ALL_ACK = 37
    RISK_LIMITS = 38
    CUSTOM_MESSAGE = 40


class Request:
    """Codes."""

    CREATE_ORDER = 1
    MODIFY_ORDER = 2
    CANCEL_ORDER = 3
    CANCEL_ALL = 4
    MASS_QUOTE = 5
    CANCEL_QUOTES = 6
    PONG = 7
    DOWNLOAD_MARKET_DATA = 8
    CUSTOM_MESSAGE = 9
    SET_RISK_LIMITS = 10


class Side:
    """Codes."""

    BUY = 1
    SELL = 2


class OrderType:
    """Codes."""

    LIMIT = 1
    MARKET = 2
    STOP_LIMIT = 3
    STOP_MARKET = 4
    TAKE_LIMIT = 5
    TAKE_MARKET = 6
    MARKET_LIMIT = 7
    TRAILING_STOP = 8


class TimeInForce:
    """Codes."""

    GTC = 1
    DAY = 2
    IOC = 3
    FOK = 4


class Trigger:
    """Codes."""

    INDEX = 1
    MARK = 2
    LAST = 3


class Execution:
    """Codes."""

    POST_ONLY = 1
    REJECT_POST_ONLY = 2
    REDUCE_ONLY = 4
    MMP = 8


class OrderStatus:
    """Codes."""

    SENT = 1
    WORKING = 2
    COMPLETED = 3
    CANCELED = 4
    REJECTED = 5
    EXPIRED = 6
    UNTRIGGERED = 7
    UNKNOWN = 8


class Origin:
    """Codes."""

    CLIENT = 1
    GATEWAY = 2
    EXCHANGE = 3


class AckStatus:
    """Codes."""

    RECEIVED = 1
    ACCEPTED = 2
    REJECTED = 3
    TIMEOUT = 4


class AckType:
    """Codes."""

    CREATE = 1
    MODIFY = 2
    CANCEL = 3
    CANCEL_ALL = 4
    MASS_QUOTE = 5
    CANCEL_QUOTES = 6
    SET_RISK_LIMITS = 7
    CUSTOM_MESSAGE = 8
    DOWNLOAD_MARKET_DATA = 9


class Error:
    """Codes."""

    MALFORMED = 1
    NOT_READY = 2
    UNKNOWN_ACCOUNT = 3
    UNKNOWN_SYMBOL = 4
    NOT_PERMITTED = 5
    RATE_LIMITED = 6
    BANNED = 7
    UNKNOWN_ORDER = 8
    DUPLICATE_ORDER = 9
    INVALID_PRICE = 10
    INVALID_QUANTITY = 11
    INVALID_TERMS = 12
    MAX_ORDER_QUANTITY = 13
    MAX_ORDER_NOTIONAL = 14
    MAX_OPEN_ORDERS = 15
    KILLED = 16
    TOO_LATE = 17
    BUSY = 18
    NOT_SUPPORTED = 19
    VENUE = 20
    INSUFFICIENT_FUNDS = 21
    TIMEOUT = 22
    CONNECTION_LOST = 23
    DRY_RUN = 24
    STOPPING = 25
    VENUE_RATE_LIMITED = 26
    WOULD_TAKE = 27
    NO_REFERENCE_PRICE = 28
    NO_RISK_LIMITS = 29
    UNREADABLE_ORDER = 30
    INVALID_ORDER_ID = 31


class Liquidity:
    """Codes."""

    MAKER = 1
    TAKER = 2


class Update:
    """Codes."""

    SNAPSHOT = 1
    INCREMENTAL = 2
    STALE = 3


class BookUpdate:
    """Codes."""

    SNAPSHOT = 1
    INCREMENTAL = 2
    STALE = 3


class InstrumentKind:
    """Codes."""

    PERPETUAL = 1
    FUTURE = 2
    OPTION = 3
    SPOT = 4
    FUTURE_COMBO = 5
    OPTION_COMBO = 6


class OptionType:
    """Codes."""

    CALL = 1
    PUT = 2


class MarketState:
    """Codes."""

    OPEN = 1
    HALTED = 2
    CLOSED = 3
    PRE_OPEN = 4


class TickDirection:
    """Codes."""

    PLUS = 1
    ZERO_PLUS = 2
    MINUS = 3
    ZERO_MINUS = 4


class Statistic:
    """Codes."""

    MARK_PRICE = 1
    INDEX_PRICE = 2
    LAST_PRICE = 3
    OPEN_INTEREST = 4
    CURRENT_FUNDING = 5
    FUNDING_8H = 6
    INTEREST_VALUE = 7
    ESTIMATED_DELIVERY_PRICE = 8
    DELIVERY_PRICE = 9
    SETTLEMENT_PRICE = 10
    MIN_PRICE = 11
    MAX_PRICE = 12
    HIGH = 13
    LOW = 14
    VOLUME = 15
    VOLUME_USD = 16
    PRICE_CHANGE = 17
    BID_IV = 18
    ASK_IV = 19
    MARK_IV = 20
    UNDERLYING_PRICE = 21
    DELTA = 22
    GAMMA = 23
    THETA = 24
    VEGA = 25
    RHO = 26
    INTEREST_RATE = 27
    VOLUME_NOTIONAL = 28


class ConnectionStatus:
    """Codes."""

    DISCONNECTED = 1
    CONNECTING = 2
    LOGIN_SENT = 3
    DOWNLOADING = 4
    READY = 5
    WAITING = 6


class GatewayState:
    """Codes."""

    DISCONNECTED = 1
    RECONCILING = 2
    MARKET_DATA = 3
    READY = 4
    KILLED = 5
    STOPPING = 6


class Transport:
    """Codes."""

    WS = 1
    FIX = 2


class ReadyScope:
    """Codes."""

    MARKET_DATA = 1
    ACCOUNT = 2
    INSTRUMENT = 3


class RateLimit:
    """Codes."""

    USER = 1
    VENUE = 2


class RateLimitReason:
    """Codes."""

    REFUSED = 1
    BANNED = 2
    VENUE_REFUSED = 3


class Flag:
    """Codes."""

    LAST_IN_BATCH = 1
    BROADCAST = 2
    DOWNLOAD = 4


class Capability:
    """Codes."""

    TRADING = 1
    CANCEL_ON_DISCONNECT = 2
    PRODUCTION = 4
    DRY_RUN = 8

# Generated up to here.
