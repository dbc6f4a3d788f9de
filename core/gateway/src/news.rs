//! What the venue says of orders, trades and positions, in the gateway's own units.
//!
//! Prices and quantities are whole numbers of 10^-8. What does not fit is a fault that is counted, never another number.

use tickpath_deribit::codes::{CancelReason, Liquidity, OrderState};
use tickpath_deribit::messages::{AccountSummary, Order as VenueOrder, OrderPrice, Position, UserTrade};
use tickpath_deribit::number::{Decimal, Number};
use tickpath_gateway_protocol::{Fixed, FundsUpdate, Money, PositionUpdate, Text as FixedText};
use tickpath_types::Side;

use super::book::SCALE;
use super::orders::{ExternalId, Terms};

/// Most characters of a label (Deribit API v2, `private/buy`).
pub type LabelText = FixedText<64>;
/// Most characters of an instrument's name.
pub type SymbolText = FixedText<40>;
/// Most characters of a group of quotes.
pub type GroupText = FixedText<24>;
/// Most characters of a trade's id.
pub type TradeId = FixedText<24>;

/// Why news of the venue cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewsFault {
    /// A number that does not fit units of 10^-8.
    Number,
    /// A text that is longer than its field, or has characters that no id has.
    Text,
    /// A code that this version does not know.
    Code,
}

/// An order as the venue has it.
#[derive(Clone, Copy, Debug)]
pub struct OrderNews {
    /// The client's text.
    pub label: LabelText,
    /// The venue's id.
    pub external_id: ExternalId,
    /// The order that a trigger made this one of; empty for others.
    pub trigger_id: ExternalId,
    /// The instrument.
    pub symbol: SymbolText,
    /// What it is to do.
    pub terms: Terms,
    /// Where it is.
    pub state: OrderState,
    /// Executed.
    pub filled: i64,
    /// Mean price of the executions, rounded to 10^-8.
    pub average_price: i64,
    /// When it was created, in ms since 1970.
    pub created_ms: u64,
    /// When it changed last, in ms since 1970.
    pub updated_ms: u64,
    /// Why it was cancelled.
    pub cancel_reason: Option<CancelReason>,
    /// It was changed since it was entered.
    pub is_replaced: bool,
    /// It came by FIX.
    pub is_by_fix: bool,
    /// The group of market maker protection that it is a quote of; empty for what is no quote of this gateway.
    pub quote_group: GroupText,
}

/// A trade of an account.
#[derive(Clone, Copy, Debug)]
pub struct TradeNews {
    /// The order's text.
    pub label: LabelText,
    /// The order.
    pub order_id: ExternalId,
    /// Its id.
    pub trade_id: TradeId,
    /// The instrument.
    pub symbol: SymbolText,
    /// The account's side.
    pub side: Side,
    /// Whether the order rested or came in.
    pub liquidity: Option<Liquidity>,
    /// The price.
    pub price: i64,
    /// The quantity.
    pub quantity: i64,
    /// What was paid, in units of 10^-18; below 0 what was received.
    pub fee: i128,
    /// In which currency.
    pub fee_currency: FixedText<8>,
    /// In ms since 1970.
    pub time_ms: u64,
}

/// A position of an account.
#[derive(Clone, Copy, Debug)]
pub struct PositionNews {
    /// The instrument.
    pub symbol: SymbolText,
    /// What clients are told.
    pub body: PositionUpdate,
}

/// A decimal in units of 10^-8.
///
/// # Errors
/// [`NewsFault::Number`].
pub fn units(decimal: Decimal) -> Result<i64, NewsFault> {
    decimal.units(SCALE).map_err(|_| NewsFault::Number)
}

/// A number for people, in units of 10^-`scale`, cut where it is finer.
///
/// # Errors
/// [`NewsFault::Number`] when it is too large.
pub fn cut(number: Number<'_>, scale: u32) -> Result<i128, NewsFault> {
    let text = number.text();
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| NewsFault::Number)?),
        None => (text, 0),
    };
    let is_negative = mantissa.starts_with('-');
    let (whole, fraction) =
        mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa.trim_start_matches('-'), ""));
    // Digits before the point of the result; what is behind them is cut.
    let wanted = whole.len() as i64 + i64::from(exponent) + i64::from(scale);
    let mut value = 0_i128;
    let mut digits = whole.bytes().chain(fraction.bytes());
    for _ in 0..wanted.clamp(0, 400) {
        let digit = i128::from(digits.next().map_or(0, |digit| digit.wrapping_sub(b'0')));
        value = value.checked_mul(10).and_then(|value| value.checked_add(digit)).ok_or(NewsFault::Number)?;
    }
    Ok(if is_negative { -value } else { value })
}

/// A mean price: cut to units of 10^-8.
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

/// A label, or nothing for one that is none of ours: ours are plain.
fn label_of(text: Option<tickpath_deribit::text::Text<'_>>) -> LabelText {
    text.and_then(|text| fixed(text).ok()).unwrap_or_default()
}

impl OrderNews {
    /// Reads an order of the venue.
    ///
    /// # Errors
    /// [`NewsFault`].
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
    /// Reads a trade of the account.
    ///
    /// # Errors
    /// [`NewsFault`].
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
    /// Reads a position of the account.
    ///
    /// # Errors
    /// [`NewsFault`].
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

/// Reads what an account holds of a currency.
///
/// # Errors
/// [`NewsFault`].
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
