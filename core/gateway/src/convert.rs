//! Conversion between the gateway protocol's codes and the venue's codes.

use tickpath_deribit::codes::{
    Direction, Liquidity as VenueLiquidity, OrderType as VenueType, TimeInForce as VenueTime,
    Trigger as VenueTrigger,
};
use tickpath_deribit::envelope::ErrorBody;
use tickpath_deribit::error_code::ErrorCode as VenueError;
use tickpath_deribit::number::Decimal;
use tickpath_deribit::session::RequestError;
use tickpath_gateway_protocol::{
    ErrorCode, ExecutionFlags, Liquidity, OrderStatus, OrderType, Side as EventSide, Text, TimeInForce,
    Trigger,
};
use tickpath_types::Side;

use super::book::SCALE;
use super::orders::{State, Terms};

/// Converts units of 10^-8 to the venue's decimal.
pub(super) fn decimal(units: i64) -> Decimal {
    Decimal::new(units.max(-i64::MAX), SCALE).expect("8 places are few enough")
}

/// Like [`decimal`], but `None` for 0.
pub(super) fn optional(units: i64) -> Option<Decimal> {
    (units != 0).then(|| decimal(units))
}

pub(super) fn side_of(side: EventSide) -> Option<Side> {
    match side {
        EventSide::BUY => Some(Side::Buy),
        EventSide::SELL => Some(Side::Sell),
        _ => None,
    }
}

pub(super) const fn event_side(side: Side) -> EventSide {
    match side {
        Side::Buy => EventSide::BUY,
        Side::Sell => EventSide::SELL,
    }
}

pub(super) fn direction_side(direction: Direction) -> EventSide {
    direction.side().map_or(EventSide::default(), event_side)
}

pub(super) const fn venue_type(order_type: OrderType) -> Option<VenueType> {
    Some(match order_type {
        OrderType::LIMIT => VenueType::Limit,
        OrderType::MARKET => VenueType::Market,
        OrderType::STOP_LIMIT => VenueType::StopLimit,
        OrderType::STOP_MARKET => VenueType::StopMarket,
        OrderType::TAKE_LIMIT => VenueType::TakeLimit,
        OrderType::TAKE_MARKET => VenueType::TakeMarket,
        OrderType::MARKET_LIMIT => VenueType::MarketLimit,
        OrderType::TRAILING_STOP => VenueType::TrailingStop,
        _ => return None,
    })
}

pub(super) const fn event_type(order_type: VenueType) -> OrderType {
    match order_type {
        VenueType::Limit => OrderType::LIMIT,
        VenueType::Market | VenueType::Liquidation => OrderType::MARKET,
        VenueType::StopLimit => OrderType::STOP_LIMIT,
        VenueType::StopMarket => OrderType::STOP_MARKET,
        VenueType::TakeLimit => OrderType::TAKE_LIMIT,
        VenueType::TakeMarket => OrderType::TAKE_MARKET,
        VenueType::MarketLimit => OrderType::MARKET_LIMIT,
        VenueType::TrailingStop => OrderType::TRAILING_STOP,
        _ => OrderType(0),
    }
}

/// Whether an order of this type has a limit price.
pub(super) const fn has_price(order_type: VenueType) -> bool {
    matches!(order_type, VenueType::Limit | VenueType::StopLimit | VenueType::TakeLimit)
}

/// Whether an order of this type has a trigger price.
pub(super) const fn has_trigger(order_type: VenueType) -> bool {
    matches!(
        order_type,
        VenueType::StopLimit
            | VenueType::StopMarket
            | VenueType::TakeLimit
            | VenueType::TakeMarket
            | VenueType::TrailingStop
    )
}

pub(super) const fn venue_time(time: TimeInForce) -> Option<VenueTime> {
    Some(match time {
        TimeInForce::GTC => VenueTime::GoodTilCancelled,
        TimeInForce::DAY => VenueTime::GoodTilDay,
        TimeInForce::IOC => VenueTime::ImmediateOrCancel,
        TimeInForce::FOK => VenueTime::FillOrKill,
        _ => return None,
    })
}

pub(super) const fn event_time(time: VenueTime) -> TimeInForce {
    match time {
        VenueTime::GoodTilCancelled => TimeInForce::GTC,
        VenueTime::GoodTilDay => TimeInForce::DAY,
        VenueTime::ImmediateOrCancel => TimeInForce::IOC,
        VenueTime::FillOrKill => TimeInForce::FOK,
        _ => TimeInForce(0),
    }
}

pub(super) const fn venue_trigger(trigger: Trigger) -> Option<VenueTrigger> {
    match trigger {
        Trigger::INDEX => Some(VenueTrigger::IndexPrice),
        Trigger::MARK => Some(VenueTrigger::MarkPrice),
        Trigger::LAST => Some(VenueTrigger::LastPrice),
        _ => None,
    }
}

pub(super) const fn event_trigger(trigger: Option<VenueTrigger>) -> Trigger {
    match trigger {
        Some(VenueTrigger::IndexPrice) => Trigger::INDEX,
        Some(VenueTrigger::MarkPrice) => Trigger::MARK,
        Some(VenueTrigger::LastPrice) => Trigger::LAST,
        _ => Trigger(0),
    }
}

pub(super) const fn event_liquidity(liquidity: Option<VenueLiquidity>) -> Liquidity {
    match liquidity {
        Some(VenueLiquidity::Maker) => Liquidity::MAKER,
        Some(VenueLiquidity::Taker) => Liquidity::TAKER,
        _ => Liquidity(0),
    }
}

pub(super) const fn status_of(state: State) -> OrderStatus {
    match state {
        State::Sent => OrderStatus::SENT,
        State::Working => OrderStatus::WORKING,
        State::Waiting => OrderStatus::UNTRIGGERED,
        State::Completed => OrderStatus::COMPLETED,
        State::Canceled => OrderStatus::CANCELED,
        State::Expired => OrderStatus::EXPIRED,
        State::Rejected => OrderStatus::REJECTED,
    }
}

pub(super) const fn flags_of(terms: &Terms) -> ExecutionFlags {
    let mut flags = ExecutionFlags(0);
    if terms.post_only {
        flags = flags.with(ExecutionFlags::POST_ONLY);
    }
    if terms.reject_post_only {
        flags = flags.with(ExecutionFlags::REJECT_POST_ONLY);
    }
    if terms.reduce_only {
        flags = flags.with(ExecutionFlags::REDUCE_ONLY);
    }
    if terms.mmp {
        flags = flags.with(ExecutionFlags::MMP);
    }
    flags
}

/// Error code for a request that could not be passed to the connection.
pub(super) const fn request_error(error: RequestError) -> ErrorCode {
    match error {
        RequestError::NotReady | RequestError::NoKey => ErrorCode::NOT_READY,
        RequestError::RateLimit { .. } => ErrorCode::VENUE_RATE_LIMITED,
        _ => ErrorCode::BUSY,
    }
}

/// Error code for a rejection by the venue.
pub(super) fn venue_error(error: &ErrorBody<'_>) -> ErrorCode {
    match error.error_code() {
        Some(VenueError::NotEnoughFunds) => ErrorCode::INSUFFICIENT_FUNDS,
        Some(
            VenueError::TooManyRequests
            | VenueError::TooManyConcurrentRequests
            | VenueError::MatchingEngineQueueFull,
        ) => ErrorCode::VENUE_RATE_LIMITED,
        Some(VenueError::PostOnlyReject | VenueError::PostOnlyPriceModificationNotPossible) => {
            ErrorCode::WOULD_TAKE
        }
        Some(
            VenueError::OrderNotFound
            | VenueError::NotOpenOrder
            | VenueError::AlreadyClosed
            | VenueError::AlreadyFilled,
        ) => ErrorCode::UNKNOWN_ORDER,
        _ => ErrorCode::VENUE,
    }
}

/// Whether the error leaves open if the request was executed: the order's status must be queried.
pub(super) fn is_uncertain(error: &ErrorBody<'_>) -> bool {
    error.error_code().is_some_and(|code| code.is_unsure() || code == VenueError::TemporarilyUnavailable)
}

/// Whether the venue's error means that the order's assumed state is wrong.
pub(super) fn is_about_state(error: &ErrorBody<'_>) -> bool {
    venue_error(error) == ErrorCode::UNKNOWN_ORDER
}

/// The venue's message and its error code unless that is 0, cut to fit.
pub(super) fn words<const N: usize>(error: &ErrorBody<'_>) -> Text<N> {
    use std::io::Write;
    let mut buffer = [0_u8; 96];
    let mut rest = &mut buffer[..];
    let code = error.code;
    // A text that exceeds the buffer is cut.
    let _ = match error.message.plain() {
        Some(message) if code == 0 => write!(rest, "{message}"),
        Some(message) => write!(rest, "{message} ({code})"),
        None => write!(rest, "({code})"),
    };
    let len = 96 - rest.len();
    Text::cut(std::str::from_utf8(&buffer[..len]).unwrap_or("refused"))
}
