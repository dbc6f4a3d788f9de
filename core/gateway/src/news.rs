//! Execution reports, fills and positions of the venue, in the gateway's units.
//!
//! Prices and quantities are whole numbers of 10^-8. Other values are counted errors, never rounded.

use tickpath_deribit::codes::{CancelReason, Liquidity, OrderState};
use tickpath_deribit::messages::{AccountSummary, Order as VenueOrder, OrderPrice, Position, UserTrade};
use tickpath_deribit::number::{Decimal, Number};
use tickpath_gateway_protocol::{Fixed, FundsUpdate, Money, PositionUpdate, Text as FixedText};
use tickpath_types::Side;

use super::book::SCALE;
use super::orders::{ExternalId, Terms};

/// A label; maximum length 64 (Deribit API v2, `private/buy`).
pub type LabelText = FixedText<64>;
/// Name of an instrument.
pub type SymbolText = FixedText<40>;
/// Name of a quote group.
pub type GroupText = FixedText<24>;
/// Id of a trade.
pub type TradeId = FixedText<24>;

/// Decode error of a venue update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewsFault {
    /// A number that is not representable in units of 10^-8.
    Number,
    /// A text that is longer than its field or has invalid characters.
    Text,
    /// A code that this version does not know.
    Code,
}

/// Execution report: an order as the venue has it.
#[derive(Clone, Copy, Debug)]
pub struct OrderNews {
    /// The order's label.
    pub label: LabelText,
    /// The venue's order id.
    pub external_id: ExternalId,
    /// Id of the trigger order that became this order; empty for others.
    pub trigger_id: ExternalId,
    /// Name of the instrument.
    pub symbol: SymbolText,
    /// Order parameters.
    pub terms: Terms,
    /// Order state.
    pub state: OrderState,
    /// Executed quantity.
    pub filled: i64,
    /// Mean execution price, truncated to 10^-8.
    pub average_price: i64,
    /// Creation time, in ms since 1970.
    pub created_ms: u64,
    /// Time of the last change, in ms since 1970.
    pub updated_ms: u64,
    /// Reason of the cancellation.
    pub cancel_reason: Option<CancelReason>,
    /// Whether the order was changed since its entry.
    pub is_replaced: bool,
    /// Whether the report came by FIX.
    pub is_by_fix: bool,
    /// Market maker protection group of a quote; empty for other orders.
    pub quote_group: GroupText,
}

/// Fill: a trade of an account.
#[derive(Clone, Copy, Debug)]
pub struct TradeNews {
    /// Label of the order.
    pub label: LabelText,
    /// The venue's order id.
    pub order_id: ExternalId,
    /// The venue's trade id.
    pub trade_id: TradeId,
    /// Name of the instrument.
    pub symbol: SymbolText,
    /// The account's side.
    pub side: Side,
    /// Maker or taker.
    pub liquidity: Option<Liquidity>,
    /// Price.
    pub price: i64,
    /// Quantity.
    pub quantity: i64,
    /// Fee, in units of 10^-18; negative if received.
    pub fee: i128,
    /// Currency of the fee.
    pub fee_currency: FixedText<8>,
    /// Time in ms since 1970.
    pub time_ms: u64,
}

/// A position of an account.
#[derive(Clone, Copy, Debug)]
pub struct PositionNews {
    /// Name of the instrument.
    pub symbol: SymbolText,
    /// Position as sent to clients.
    pub body: PositionUpdate,
}

/// Converts a decimal to units of 10^-8.
///
/// # Errors
/// [`NewsFault::Number`] if it is not representable.
pub fn units(decimal: Decimal) -> Result<i64, NewsFault> {
    decimal.units(SCALE).map_err(|_| NewsFault::Number)
}

/// Converts a number for display to units of 10^-`scale`, truncated.
///
/// # Errors
/// [`NewsFault::Number`] if it is too large.
pub fn cut(number: Number<'_>, scale: u32) -> Result<i128, NewsFault> {
    let text = number.text();
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| NewsFault::Number)?),
        None => (text, 0),
    };
    let is_negative = mantissa.starts_with('-');
    let (whole, fraction) =
        mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa.trim_start_matches('-'), ""));
    // Number of digits in the result; further digits are truncated.
    let wanted = whole.len() as i64 + i64::from(exponent) + i64::from(scale);
    let mut value = 0_i128;
    let mut digits = whole.bytes().chain(fraction.bytes());
    for _ in 0..wanted.clamp(0, 400) {
        let digit = i128::from(digits.next().map_or(0, |digit| digit.wrapping_sub(b'0')));
        value = value.checked_mul(10).and_then(|value| value.checked_add(digit)).ok_or(NewsFault::Number)?;
    }
    Ok(if is_negative { -value } else { value })
}

/// Converts a mean price, truncated to units of 10^-8.
fn mean(number: Option<Number<'_>>) -> Result<i64, NewsFault> {
    let Some(number) = number else { return Ok(0) };
    i64::try_from(cut(number, u32::from(SCALE))?).map_err(|_| NewsFault::Number)
}

fn plain(text: tickpath_deribit::text::Text<'_>) -> Result<&str, NewsFault> {
    text.plain().ok_or(NewsFault::Text)
}

fn fixed<const N: usize>(text: tickpath_deribit::text::Text<'_>) -> Result<FixedText<N>, NewsFault> {
    FixedText::new(plain(text)?).ok_or(NewsFault::Text)
}

/// A label, or the empty text for another party's: this gateway's labels are plain.
fn label_of(text: Option<tickpath_deribit::text::Text<'_>>) -> LabelText {
    text.and_then(|text| fixed(text).ok()).unwrap_or_default()
}

impl OrderNews {
    /// Converts an order of the venue.
    ///
    /// # Errors
    /// [`NewsFault`] if a field cannot be decoded.
    pub fn read(order: &VenueOrder<'_>) -> Result<OrderNews, NewsFault> {
        let price = match order.price {
            Some(OrderPrice::Limit(price)) => units(price)?,
            Some(OrderPrice::Market) | None => 0,
        };
        let stop_price = order.trigger_price.or(order.stop_price).map_or(Ok(0), units)?;
        Ok(OrderNews {
            label: label_of(order.label),
            external_id: fixed(order.order_id)?,
            trigger_id: order.trigger_order_id.map_or(Ok(ExternalId::EMPTY), fixed)?,
            symbol: fixed(order.instrument_name)?,
            terms: Terms {
                side: order.direction.side().ok_or(NewsFault::Code)?,
                order_type: order.order_type,
                time_in_force: order
                    .time_in_force
                    .unwrap_or(tickpath_deribit::codes::TimeInForce::GoodTilCancelled),
                price,
                quantity: units(order.amount)?,
                stop_price,
                shown: order.display_amount.map_or(Ok(0), units)?,
                trigger: order.trigger,
                post_only: order.post_only,
                reject_post_only: order.reject_post_only.unwrap_or(false),
                reduce_only: order.reduce_only,
                mmp: order.mmp,
            },
            state: order.order_state,
            filled: units(order.filled())?,
            average_price: mean(order.average_price)?,
            created_ms: order.creation_timestamp,
            updated_ms: order.last_update_timestamp,
            cancel_reason: order.cancel_reason,
            is_replaced: order.replaced,
            is_by_fix: false,
            quote_group: super::quotes::group_of(order.quote == Some(true), order.mmp_group),
        })
    }
}

impl TradeNews {
    /// Converts a trade of the account.
    ///
    /// # Errors
    /// [`NewsFault`] if a field cannot be decoded.
    pub fn read(trade: &UserTrade<'_>) -> Result<TradeNews, NewsFault> {
        Ok(TradeNews {
            label: label_of(trade.label),
            order_id: fixed(trade.order_id)?,
            trade_id: fixed(trade.trade_id)?,
            symbol: fixed(trade.instrument_name)?,
            side: trade.direction.side().ok_or(NewsFault::Code)?,
            liquidity: trade.liquidity,
            price: units(trade.price)?,
            quantity: units(trade.amount)?,
            fee: trade.fee.map_or(Ok(0), |fee| cut(fee, 18))?,
            fee_currency: trade.fee_currency.map_or(Ok(FixedText::EMPTY), fixed)?,
            time_ms: trade.timestamp,
        })
    }
}

impl PositionNews {
    /// Converts a position of the account.
    ///
    /// # Errors
    /// [`NewsFault`] if a field cannot be decoded.
    pub fn read(position: &Position<'_>) -> Result<PositionNews, NewsFault> {
        let money =
            |number: Option<Number<'_>>| number.map_or(Ok(Money::ZERO), |it| cut(it, 18).map(Money::new));
        Ok(PositionNews {
            symbol: fixed(position.instrument_name)?,
            body: PositionUpdate {
                quantity: Fixed(units(position.size)?),
                average_price: Fixed(mean(Some(position.average_price))?),
                mark_price: Fixed(mean(position.mark_price)?),
                floating_profit: money(position.floating_profit_loss)?,
                realized_profit: money(position.realized_profit_loss)?,
                initial_margin: money(position.initial_margin)?,
                maintenance_margin: money(position.maintenance_margin)?,
                ..PositionUpdate::default()
            },
        })
    }
}

/// Converts the funds of an account in one currency.
///
/// # Errors
/// [`NewsFault`] if a field cannot be decoded.
pub fn funds_of(summary: &AccountSummary<'_>) -> Result<FundsUpdate, NewsFault> {
    let money = |number: Option<Number<'_>>| number.map_or(Ok(Money::ZERO), |it| cut(it, 18).map(Money::new));
    Ok(FundsUpdate {
        currency: fixed(summary.currency)?,
        balance: money(Some(summary.balance))?,
        equity: money(Some(summary.equity))?,
        available: money(Some(summary.available_funds))?,
        initial_margin: money(summary.initial_margin)?,
        maintenance_margin: money(summary.maintenance_margin)?,
        withdrawable: money(summary.available_withdrawal_funds)?,
        ..FundsUpdate::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people_are_cut_and_never_wrong() {
        for (text, scale, value) in [
            ("0", 8, Ok(0)),
            ("60000.123456789", 8, Ok(6_000_012_345_678)),
            ("-1.5e-3", 8, Ok(-150_000)),
            ("1e3", 2, Ok(100_000)),
            ("0.000000001", 8, Ok(0)),
            ("12e-30", 18, Ok(0)),
            ("1e40", 18, Err(NewsFault::Number)),
            ("1e999999999999", 8, Err(NewsFault::Number)),
            ("1e300", 18, Err(NewsFault::Number)),
        ] {
            assert_eq!(cut(Number::new(text).unwrap(), scale), value, "{text}");
        }
    }
}
