//! A market maker that quotes both sides around the fair price.

use tickpath_types::{
    BookHealth, CancelReason, Instrument, InstrumentId, Nanos, Price, Qty, RejectReason, Side,
};

use crate::{
    Context, Features, NewOrder, OrderChange, OrderUpdate, OwnOrder, OwnState, Refusal, Strategy, WarmUp,
};

/// Settings of a [`MarketMaker`]; clip, threshold and maximum position are in the instrument's
/// [`Limits`](crate::Limits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MakerConfig {
    /// Extra distance of every quote from the best price of its side, in ticks: 0 for a normal market maker.
    /// A larger value places quotes deep in the book, where they do not affect a replayed recording.
    pub offset_ticks: u32,
    /// Extra distance, in ticks, of the quote that would increase the position. The full distance applies at
    /// the maximum position; below, it is proportional to the position.
    pub skew_ticks: u32,
    /// A quote is moved once its price differs by at least this number of ticks from the intended price.
    pub min_move_ticks: u32,
}

impl Default for MakerConfig {
    fn default() -> Self {
        MakerConfig { offset_ticks: 0, skew_ticks: 4, min_move_ticks: 1 }
    }
}

/// Keeps one post-only order of the clip size on each side of every instrument.
///
/// A quote is at the best price of its side if the fair price is at least `threshold` price units away from
/// it. Otherwise it is one tick behind, since an order near the fair price trades too easily. The quote that
/// would increase the position is further from the market. It is removed when less than a lot may be added.
///
/// Quotes move by replacement, one request per order at a time. They are cancelled while the book cannot be
/// trusted or is crossed. A second live order on a side is cancelled, as is a quote at or through the fair price that
/// cannot be moved (rate limit, full queue). Refused requests are retried on the timer or on a market change.
/// One-sided markets are ignored.
#[derive(Clone, Debug)]
pub struct MarketMaker {
    config: MakerConfig,
    /// True if a request was refused; the timer retries it.
    was_refused: bool,
}

/// The intended price and quantity of one side's quote.
#[derive(Clone, Copy)]
struct Quote {
    price: Price,
    qty: Qty,
}

impl MarketMaker {
    /// Creates a maker that quotes every instrument.
    #[must_use]
    pub const fn new(config: MakerConfig) -> MarketMaker {
        MarketMaker { config, was_refused: false }
    }

    /// Creates a maker with a second instance for its warm-up. That instance moves its quotes whenever a
    /// price changes by a tick, so that the warm-up sends replacements even if the maker itself rarely would.
    #[must_use]
    pub const fn warmed_up(config: MakerConfig) -> WarmUp<MarketMaker> {
        let instance = MarketMaker::new(MakerConfig { min_move_ticks: 1, ..config });
        WarmUp { strategy: MarketMaker::new(config), instance: Some(instance) }
    }

    fn quote(&mut self, instrument: InstrumentId, cx: &mut Context<'_>) {
        let Some(features) = cx.features(instrument) else { return };
        if features.health() != BookHealth::Live || features.bbo().is_crossed() {
            self.was_refused |= !pull(instrument, cx);
            return;
        }
        let Some(fair) = features.bbo().fair_price() else { return };
        for side in Side::BOTH {
            let target_quote = self.target_quote(instrument, side, fair, cx);
            let is_done = self.move_quote(instrument, side, target_quote, fair, cx);
            self.was_refused |= !is_done;
        }
    }

    fn target_quote(&self, id: InstrumentId, side: Side, fair: Price, cx: &Context<'_>) -> Option<Quote> {
        let (instrument, limits) = (cx.instrument(id)?, cx.limits(id)?);
        let (best, _) = cx.bbo(id).best(side)?;
        let inventory = cx.position(id)?.net_qty().saturating_mul(side.sign());
        let largest = i64::try_from(limits.max_position.0).unwrap_or(i64::MAX);

        let remaining = u64::try_from(largest.saturating_sub(inventory)).unwrap_or(0);
        let qty = round_to_lots(limits.clip.0.min(remaining), instrument);
        let fades = fair.0.abs_diff(best.0) < limits.threshold;
        let skew = share(self.config.skew_ticks, inventory.clamp(0, largest), largest);
        let ticks = i128::from(fades) + i128::from(skew) + i128::from(self.config.offset_ticks);
        let away = i128::from(side.sign()) * ticks * i128::from(instrument.tick_size.0);
        let price = i64::try_from(i128::from(best.0) - away).ok().map(Price)?;
        (!qty.is_zero() && instrument.is_within_collar(price)).then_some(Quote { price, qty })
    }

    /// Enters, moves or cancels the quote of a side as needed; returns false when the request was refused,
    /// which the engine counts.
    fn move_quote(
        &self,
        instrument: InstrumentId,
        side: Side,
        target_quote: Option<Quote>,
        fair: Price,
        cx: &mut Context<'_>,
    ) -> bool {
        let mut open = cx.orders(instrument, side);
        let (current, other) = (open.next().copied(), open.next());
        if other.is_some() {
            return cancel_extra_orders(instrument, side, cx);
        }
        match (current, target_quote) {
            (Some(order), _) if order.state != OwnState::Live => true,
            (None, None) => true,
            (None, Some(quote)) => {
                let order = NewOrder::limit(instrument, side, quote.qty, quote.price).post_only();
                cx.enter(&order).is_ok()
            }
            (Some(order), None) => cx.cancel(order.user_ref).is_ok(),
            (Some(order), Some(quote)) if self.is_off_target(&order, &quote, cx) => {
                replace_or_cancel(&order, &quote, fair, cx)
            }
            (Some(_), Some(_)) => true,
        }
    }

    fn is_off_target(&self, order: &OwnOrder, quote: &Quote, cx: &Context<'_>) -> bool {
        let tick = cx.instrument(order.instrument).map_or(1, |instrument| instrument.tick_size.0);
        let distance = i128::from(order.price.0.abs_diff(quote.price.0));
        distance >= i128::from(tick) * i128::from(self.config.min_move_ticks.max(1))
    }
}

fn replace_or_cancel(order: &OwnOrder, quote: &Quote, fair: Price, cx: &mut Context<'_>) -> bool {
    let size = Qty(order.cum_qty.0.saturating_add(quote.qty.0));
    let is_through_fair = order.side.crosses(order.price, fair);
    match cx.replace(order.user_ref, size, quote.price) {
        Ok(_) => true,
        // The size includes the executions of all replaced orders, and exceeds the maximum: cancel instead.
        Err(Refusal::InvalidQty) => cx.cancel(order.user_ref).is_ok(),
        Err(_) if is_through_fair => cx.cancel(order.user_ref).is_ok(),
        Err(_) => false,
    }
}

/// Cancels every live order of a side but the first; orders with a pending request stay. During a replacement
/// at most one order is live. Several are live if an order that was treated as rejected after a lost
/// connection did reach the venue. Returns false when a cancel was refused.
#[cold]
fn cancel_extra_orders(instrument: InstrumentId, side: Side, cx: &mut Context<'_>) -> bool {
    let is_live = |order: &&OwnOrder| order.state == OwnState::Live;
    while let Some(order) = cx.orders(instrument, side).filter(is_live).nth(1) {
        if cx.cancel(order.user_ref).is_err() {
            return false;
        }
    }
    true
}

/// Cancels all live orders of an instrument; returns false when a cancel was refused.
fn pull(instrument: InstrumentId, cx: &mut Context<'_>) -> bool {
    for side in Side::BOTH {
        while let Some(order) = cx.orders(instrument, side).find(|order| order.state == OwnState::Live) {
            if cx.cancel(order.user_ref).is_err() {
                return false;
            }
        }
    }
    true
}

/// Returns `whole * part / of`, rounded down, for `part` from 0 to `of`; zero when both are 0.
fn share(whole: u32, part: i64, of: i64) -> i64 {
    if part == 0 {
        return 0;
    }
    match part.checked_mul(i64::from(whole)) {
        Some(product) => product / of,
        None => (i128::from(part) * i128::from(whole) / i128::from(of)) as i64,
    }
}

fn round_to_lots(qty: u64, instrument: &Instrument) -> Qty {
    Qty(qty - qty % instrument.lot_size.0)
}

impl Strategy for MarketMaker {
    fn name(&self) -> &str {
        "maker"
    }

    fn on_market(&mut self, instrument: InstrumentId, cx: &mut Context<'_>) {
        if cx.features(instrument).is_some_and(Features::has_changed) {
            self.quote(instrument, cx);
        }
    }

    /// Retries refused requests.
    fn on_timer(&mut self, _: Nanos, cx: &mut Context<'_>) {
        if std::mem::take(&mut self.was_refused) {
            for index in 0..cx.instruments().len() {
                self.quote(InstrumentId(index as u16 + 1), cx);
            }
        }
    }

    /// Requotes, since an answer may allow a quote to be moved. Rejected requests are retried on a market
    /// change or on the timer: an immediate retry could loop.
    fn on_order(&mut self, update: &OrderUpdate, cx: &mut Context<'_>) {
        let is_refused = match update.change {
            OrderChange::Rejected { reason } => reason != RejectReason::UnknownOrder,
            OrderChange::CancelRejected { .. } => true,
            OrderChange::Canceled { reason, .. } => reason != CancelReason::User,
            _ => false,
        };
        if is_refused {
            self.was_refused = true;
        } else {
            self.quote(update.order.instrument, cx);
        }
    }
}
