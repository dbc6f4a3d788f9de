"""Events and requests as they lie in memory: docs/clients.md, include/tickpath_gateway.h."""

from ctypes import Structure, c_char, c_int64, c_uint8, c_uint16, c_uint32, c_uint64
from decimal import Context, Decimal

#: Enough digits for whatever a structure holds.
EXACT = Context(prec=60)


class Record(Structure):
    """A structure whose prices and quantities, money and texts are read by name as what they mean."""

    fixed: tuple = ()

    def __getattribute__(self, name):
        value = super().__getattribute__(name)
        if isinstance(value, bytes):
            return value.decode("ascii", "replace")
        if name in super().__getattribute__("fixed"):
            return Decimal(value).scaleb(-8, EXACT)
        return value

    def __setattr__(self, name, value):
        if name in self.fixed:
            units = Decimal(value).scaleb(8, EXACT)
            if units != units.to_integral_value():
                raise ValueError(f"{name}: {value} has more than 8 decimal places")
            value = int(units)
            if not -(2**63) <= value < 2**63:
                raise ValueError(f"{name}: it is out of range")
        super().__setattr__(name, value)


class Money(Structure):
    """Whole numbers of 10^-18 in 128 bits."""

    _fields_ = [("low", c_uint64), ("high", c_int64)]

    def value(self) -> Decimal:
        """The amount, exactly."""
        return Decimal(self.high * 2**64 + self.low).scaleb(-18, EXACT)


# Structures: generated from here on.


class EventHeader(Record):
    """72 bytes."""

    _fields_ = [
        ("kind", c_uint16),
        ("flags", c_uint16),
        ("source", c_uint8),
        ("stream", c_uint8),
        ("account", c_uint16),
        ("symbol", c_uint32),
        ("body_len", c_uint32),
        ("session", c_uint64 * 2),
        ("sequence", c_uint64),
        ("receive_ns", c_uint64),
        ("send_ns", c_uint64),
        ("origin_ns", c_uint64),
        ("origin_utc_ns", c_uint64),
    ]
    fixed = ()


class RequestHeader(Record):
    """48 bytes."""

    _fields_ = [
        ("kind", c_uint16),
        ("flags", c_uint16),
        ("account", c_uint16),
        ("reserved", c_uint8 * 2),
        ("symbol", c_uint32),
        ("reserved_too", c_uint8 * 4),
        ("request_id", c_uint64),
        ("client_order_id", c_uint64),
        ("order_id", c_uint64),
        ("create_ns", c_uint64),
    ]
    fixed = ()


class Level(Record):
    """16 bytes."""

    _fields_ = [
        ("price", c_int64),
        ("quantity", c_int64),
    ]
    fixed = ("price", "quantity",)


class Statistic(Record):
    """16 bytes."""

    _fields_ = [
        ("kind", c_uint32),
        ("reserved", c_uint8 * 4),
        ("value", c_int64),
    ]
    fixed = ("value",)


class StartEvent(Record):
    """8 bytes."""

    _fields_ = [
        ("now_ns", c_uint64),
    ]
    fixed = ()


class StopEvent(Record):
    """8 bytes."""

    _fields_ = [
        ("now_ns", c_uint64),
    ]
    fixed = ()


class TimerEvent(Record):
    """16 bytes."""

    _fields_ = [
        ("now_ns", c_uint64),
        ("count", c_uint64),
    ]
    fixed = ()


class ConnectedEvent(Record):
    """72 bytes."""

    _fields_ = [
        ("client", c_uint32),
        ("capabilities", c_uint32),
        ("gateway", c_char * 32),
        ("exchange", c_char * 32),
    ]
    fixed = ()


class DisconnectedEvent(Record):
    """64 bytes."""

    _fields_ = [
        ("reason", c_char * 64),
    ]
    fixed = ()


class LappedEvent(Record):
    """8 bytes."""

    _fields_ = [
        ("lost", c_uint64),
    ]
    fixed = ()


class PingEvent(Record):
    """32 bytes."""

    _fields_ = [
        ("number", c_uint64),
        ("ping_ns", c_uint64),
        ("to_client_ns", c_uint64),
        ("to_gateway_ns", c_uint64),
    ]
    fixed = ()


class DownloadBeginEvent(Record):
    """8 bytes."""

    _fields_ = [
        ("scope", c_uint8),
        ("reserved", c_uint8 * 7),
    ]
    fixed = ()


class DownloadEndEvent(Record):
    """16 bytes."""

    _fields_ = [
        ("scope", c_uint8),
        ("reserved", c_uint8 * 7),
        ("max_order_id", c_uint64),
    ]
    fixed = ()


class ReadyEvent(Record):
    """16 bytes."""

    _fields_ = [
        ("scope", c_uint8),
        ("reserved", c_uint8 * 7),
        ("broadcast_sequence", c_uint64),
    ]
    fixed = ()


class GatewayStatusEvent(Record):
    """104 bytes."""

    _fields_ = [
        ("state", c_uint8),
        ("trading", c_uint8),
        ("is_production", c_uint8),
        ("is_dry_run", c_uint8),
        ("accounts_ready", c_uint16),
        ("accounts", c_uint16),
        ("exchange", c_char * 32),
        ("text", c_char * 64),
    ]
    fixed = ()


class StreamStatusEvent(Record):
    """104 bytes."""

    _fields_ = [
        ("status", c_uint8),
        ("transport", c_uint8),
        ("is_market_data", c_uint8),
        ("is_trading", c_uint8),
        ("losses", c_uint32),
        ("name", c_char * 16),
        ("uri", c_char * 80),
    ]
    fixed = ()


class ExternalLatencyEvent(Record):
    """8 bytes."""

    _fields_ = [
        ("round_trip_ns", c_uint64),
    ]
    fixed = ()


class RateLimitsUpdateEvent(Record):
    """24 bytes."""

    _fields_ = [
        ("limit", c_uint8),
        ("reserved", c_uint8 * 3),
        ("available", c_uint32),
        ("maximum", c_uint32),
        ("reserved_too", c_uint8 * 4),
        ("period_ns", c_uint64),
    ]
    fixed = ()


class RateLimitTriggerEvent(Record):
    """16 bytes."""

    _fields_ = [
        ("limit", c_uint8),
        ("reason", c_uint8),
        ("reserved", c_uint8 * 6),
        ("until_ns", c_uint64),
    ]
    fixed = ()


class AccountReferenceEvent(Record):
    """40 bytes."""

    _fields_ = [
        ("name", c_char * 32),
        ("may_trade", c_uint8),
        ("reserved", c_uint8 * 7),
    ]
    fixed = ()


class ReferenceDataEvent(Record):
    """112 bytes."""

    _fields_ = [
        ("name", c_char * 40),
        ("tick_size", c_int64),
        ("min_quantity", c_int64),
        ("contract_size", c_int64),
        ("strike", c_int64),
        ("expiry_utc_ns", c_uint64),
        ("base_currency", c_char * 8),
        ("quote_currency", c_char * 8),
        ("settlement_currency", c_char * 8),
        ("kind", c_uint8),
        ("option", c_uint8),
        ("is_inverse", c_uint8),
        ("is_active", c_uint8),
        ("reserved", c_uint8 * 4),
    ]
    fixed = ("tick_size", "min_quantity", "contract_size", "strike",)


class TickSizeStepsEvent(Record):
    """104 bytes."""

    _fields_ = [
        ("count", c_uint32),
        ("reserved", c_uint8 * 4),
        ("steps", Level * 6),
    ]
    fixed = ()


class MarketStatusEvent(Record):
    """8 bytes."""

    _fields_ = [
        ("state", c_uint8),
        ("reserved", c_uint8 * 7),
    ]
    fixed = ()


class TopOfBookEvent(Record):
    """48 bytes."""

    _fields_ = [
        ("bid_price", c_int64),
        ("bid_quantity", c_int64),
        ("ask_price", c_int64),
        ("ask_quantity", c_int64),
        ("change_id", c_uint64),
        ("update", c_uint8),
        ("reserved", c_uint8 * 7),
    ]
    fixed = ("bid_price", "bid_quantity", "ask_price", "ask_quantity",)


class MarketByPriceEvent(Record):
    """112 bytes."""

    _fields_ = [
        ("change_id", c_uint64),
        ("bids", c_uint8),
        ("asks", c_uint8),
        ("update", c_uint8),
        ("reserved", c_uint8 * 5),
        ("levels", Level * 6),
    ]
    fixed = ()


class TradeSummaryEvent(Record):
    """72 bytes."""

    _fields_ = [
        ("price", c_int64),
        ("quantity", c_int64),
        ("mark_price", c_int64),
        ("index_price", c_int64),
        ("trade_sequence", c_uint64),
        ("trade_id", c_char * 24),
        ("side", c_uint8),
        ("direction", c_uint8),
        ("is_liquidation", c_uint8),
        ("is_block", c_uint8),
        ("reserved", c_uint8 * 4),
    ]
    fixed = ("price", "quantity", "mark_price", "index_price",)


class StatisticsEvent(Record):
    """104 bytes."""

    _fields_ = [
        ("count", c_uint32),
        ("reserved", c_uint8 * 4),
        ("figures", Statistic * 6),
    ]
    fixed = ()


class TimeSeriesEvent(Record):
    """64 bytes."""

    _fields_ = [
        ("begin_utc_ns", c_uint64),
        ("period_secs", c_uint32),
        ("update", c_uint8),
        ("reserved", c_uint8 * 3),
        ("open", c_int64),
        ("high", c_int64),
        ("low", c_int64),
        ("close", c_int64),
        ("volume", c_int64),
        ("cost", c_int64),
    ]
    fixed = ("open", "high", "low", "close", "volume", "cost",)


class OrderAckEvent(Record):
    """112 bytes."""

    _fields_ = [
        ("client_order_id", c_uint64),
        ("order_id", c_uint64),
        ("request_id", c_uint64),
        ("external_order_id", c_char * 24),
        ("round_trip_ns", c_uint64),
        ("origin", c_uint8),
        ("status", c_uint8),
        ("request", c_uint8),
        ("side", c_uint8),
        ("error", c_uint16),
        ("reserved", c_uint8 * 2),
        ("text", c_char * 48),
    ]
    fixed = ()


class OrderUpdateEvent(Record):
    """104 bytes."""

    _fields_ = [
        ("client_order_id", c_uint64),
        ("order_id", c_uint64),
        ("external_order_id", c_char * 24),
        ("price", c_int64),
        ("stop_price", c_int64),
        ("remaining_quantity", c_int64),
        ("traded_quantity", c_int64),
        ("average_price", c_int64),
        ("created_utc_ns", c_uint64),
        ("status", c_uint8),
        ("side", c_uint8),
        ("order_type", c_uint8),
        ("time_in_force", c_uint8),
        ("execution", c_uint16),
        ("trigger", c_uint8),
        ("update", c_uint8),
        ("error", c_uint16),
        ("reserved", c_uint8 * 6),
    ]
    fixed = ("price", "stop_price", "remaining_quantity", "traded_quantity", "average_price",)


class TradeUpdateEvent(Record):
    """112 bytes."""

    _fields_ = [
        ("client_order_id", c_uint64),
        ("order_id", c_uint64),
        ("external_order_id", c_char * 24),
        ("trade_id", c_char * 24),
        ("price", c_int64),
        ("quantity", c_int64),
        ("fee", Money),
        ("fee_currency", c_char * 8),
        ("side", c_uint8),
        ("liquidity", c_uint8),
        ("update", c_uint8),
        ("reserved", c_uint8 * 5),
    ]
    fixed = ("price", "quantity",)


class PositionUpdateEvent(Record):
    """96 bytes."""

    _fields_ = [
        ("quantity", c_int64),
        ("average_price", c_int64),
        ("mark_price", c_int64),
        ("floating_profit", Money),
        ("realized_profit", Money),
        ("initial_margin", Money),
        ("maintenance_margin", Money),
        ("update", c_uint8),
        ("reserved", c_uint8 * 7),
    ]
    fixed = ("quantity", "average_price", "mark_price",)


class FundsUpdateEvent(Record):
    """112 bytes."""

    _fields_ = [
        ("currency", c_char * 8),
        ("balance", Money),
        ("equity", Money),
        ("available", Money),
        ("initial_margin", Money),
        ("maintenance_margin", Money),
        ("withdrawable", Money),
        ("update", c_uint8),
        ("reserved", c_uint8 * 7),
    ]
    fixed = ()


class QuoteAckEvent(Record):
    """104 bytes."""

    _fields_ = [
        ("request_id", c_uint64),
        ("quote_set", c_uint64),
        ("round_trip_ns", c_uint64),
        ("done", c_uint32),
        ("refused", c_uint32),
        ("origin", c_uint8),
        ("status", c_uint8),
        ("request", c_uint8),
        ("reserved", c_uint8 * 1),
        ("error", c_uint16),
        ("reserved_too", c_uint8 * 2),
        ("text", c_char * 64),
    ]
    fixed = ()


class RiskLimitsEvent(Record):
    """40 bytes."""

    _fields_ = [
        ("max_order_quantity", c_int64),
        ("max_order_notional", Money),
        ("max_open_orders", c_uint32),
        ("open_orders", c_uint32),
        ("is_killed", c_uint8),
        ("caps", c_uint8),
        ("reserved", c_uint8 * 6),
    ]
    fixed = ("max_order_quantity",)


class CustomMessageEvent(Record):
    """72 bytes."""

    _fields_ = [
        ("client", c_uint32),
        ("topic", c_uint16),
        ("len", c_uint16),
        ("data", c_uint8 * 64),
    ]
    fixed = ()


class CreateOrderRequest(Record):
    """40 bytes."""

    _fields_ = [
        ("price", c_int64),
        ("quantity", c_int64),
        ("stop_price", c_int64),
        ("max_show", c_int64),
        ("side", c_uint8),
        ("order_type", c_uint8),
        ("time_in_force", c_uint8),
        ("trigger", c_uint8),
        ("execution", c_uint16),
        ("reserved", c_uint8 * 2),
    ]
    fixed = ("price", "quantity", "stop_price", "max_show",)


class ModifyOrderRequest(Record):
    """32 bytes."""

    _fields_ = [
        ("price", c_int64),
        ("quantity", c_int64),
        ("stop_price", c_int64),
        ("execution", c_uint16),
        ("reserved", c_uint8 * 6),
    ]
    fixed = ("price", "quantity", "stop_price",)


class CancelOrderRequest(Record):
    """8 bytes."""

    _fields_ = [
        ("reserved", c_uint8 * 8),
    ]
    fixed = ()


class CancelAllRequest(Record):
    """8 bytes."""

    _fields_ = [
        ("side", c_uint8),
        ("reserved", c_uint8 * 7),
    ]
    fixed = ()


class MassQuoteRequest(Record):
    """48 bytes."""

    _fields_ = [
        ("quote_set", c_uint64),
        ("bid_price", c_int64),
        ("bid_quantity", c_int64),
        ("ask_price", c_int64),
        ("ask_quantity", c_int64),
        ("execution", c_uint16),
        ("reserved", c_uint8 * 6),
    ]
    fixed = ("bid_price", "bid_quantity", "ask_price", "ask_quantity",)


class CancelQuotesRequest(Record):
    """8 bytes."""

    _fields_ = [
        ("quote_set", c_uint64),
    ]
    fixed = ()


class PongRequest(Record):
    """24 bytes."""

    _fields_ = [
        ("number", c_uint64),
        ("ping_ns", c_uint64),
        ("received_ns", c_uint64),
    ]
    fixed = ()


class DownloadMarketDataRequest(Record):
    """8 bytes."""

    _fields_ = [
        ("reserved", c_uint8 * 8),
    ]
    fixed = ()


class CustomMessageRequest(Record):
    """72 bytes."""

    _fields_ = [
        ("topic", c_uint16),
        ("len", c_uint16),
        ("reserved", c_uint8 * 4),
        ("data", c_uint8 * 64),
    ]
    fixed = ()


class SetRiskLimitsRequest(Record):
    """24 bytes."""

    _fields_ = [
        ("max_order_quantity", c_int64),
        ("max_order_notional", c_int64),
        ("max_open_orders", c_uint32),
        ("caps", c_uint16),
        ("reserved", c_uint8 * 2),
    ]
    fixed = ("max_order_quantity", "max_order_notional",)


BODIES = {
    1: StartEvent,
    2: StopEvent,
    3: TimerEvent,
    4: ConnectedEvent,
    5: DisconnectedEvent,
    6: LappedEvent,
    7: PingEvent,
    10: DownloadBeginEvent,
    11: DownloadEndEvent,
    12: ReadyEvent,
    13: GatewayStatusEvent,
    14: StreamStatusEvent,
    15: ExternalLatencyEvent,
    16: RateLimitsUpdateEvent,
    17: RateLimitTriggerEvent,
    18: AccountReferenceEvent,
    20: ReferenceDataEvent,
    21: TickSizeStepsEvent,
    22: MarketStatusEvent,
    23: TopOfBookEvent,
    24: MarketByPriceEvent,
    25: TradeSummaryEvent,
    26: StatisticsEvent,
    27: TimeSeriesEvent,
    30: OrderAckEvent,
    31: OrderUpdateEvent,
    32: TradeUpdateEvent,
    33: PositionUpdateEvent,
    34: FundsUpdateEvent,
    35: QuoteAckEvent,
    36: QuoteAckEvent,
    37: QuoteAckEvent,
    38: RiskLimitsEvent,
    40: CustomMessageEvent,
}

REQUESTS = {
    CreateOrderRequest: 1,
    ModifyOrderRequest: 2,
    CancelOrderRequest: 3,
    CancelAllRequest: 4,
    MassQuoteRequest: 5,
    CancelQuotesRequest: 6,
    PongRequest: 7,
    DownloadMarketDataRequest: 8,
    CustomMessageRequest: 9,
    SetRiskLimitsRequest: 10,
}

# Generated up to here.
