//! Orders and trades of an account.

use tickpath_deribit::codes::{
    Advanced, CancelReason, Direction, Liquidity, OrderFilter, OrderState, OrderType, TimeInForce, Trigger,
};
use tickpath_deribit::field::Field;
use tickpath_deribit::messages::{Order as OrderMessage, OrderPrice, UserTrade as TradeMessage};
use tickpath_deribit::number::{Decimal, Number};
use tickpath_deribit::text::Text;
use tickpath_derivatives::Money;
use tickpath_types::{ClientOrderId, Price, Qty, Side};

use crate::json::{Json, Object, json, list};
use crate::listing::{Listing, figure};
use crate::market::{Trade, prefixed};

/// A current or former order of the engine, or an untriggered order.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// Number of the command that entered it; edits and restarts keep it.
    pub(crate) number: u64,
    pub(crate) listing: usize,
    pub(crate) side: Side,
    pub(crate) terms: Terms,
    pub(crate) price: Price,
    /// Total quantity, including the executed part.
    pub(crate) qty: Qty,
    pub(crate) filled: Qty,
    /// Value of the executed part.
    pub(crate) filled_value: Money,
    pub(crate) created_ms: u64,
    pub(crate) updated_ms: u64,
    pub(crate) is_replaced: bool,
    pub(crate) state: OrderState,
    pub(crate) cancel_reason: Option<CancelReason>,
    /// Engine number of the order.
    pub(crate) user_ref: u32,
    /// Connection that entered it, for cancel on disconnect; none after a restart.
    pub(crate) connection: Option<u64>,
    pub(crate) display: Option<Qty>,
    /// Trigger terms of an untriggered or triggered order.
    pub(crate) trigger: Option<TriggerTerms>,
    /// Properties that few orders have.
    pub(crate) extra: Option<Box<Extra>>,
}

/// Fill of a primary order that releases its secondary orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FillCondition {
    /// Any fill.
    #[default]
    FirstHit,
    /// A complete fill.
    CompleteFill,
    /// Each fill releases the same proportion of the secondary orders.
    Incremental,
}

/// Properties that few orders have. After a restart only those of linked orders are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extra {
    /// Quotes only: the client's texts.
    pub(crate) quote_id: String,
    pub(crate) quote_set_id: String,
    /// Used over FIX only.
    pub(crate) quote_entry_id: String,
    /// MMP group.
    pub(crate) mmp_group: String,
    /// Linked orders that start once this order is in the log.
    pub(crate) linked: Vec<Order>,
    /// True if it triggers them.
    pub(crate) triggers: bool,
    /// True if one of them cancels the others.
    pub(crate) cancels: bool,
    pub(crate) condition: FillCondition,
    /// Numbers of the orders that it triggers.
    pub(crate) secondaries: Vec<u64>,
    /// Their ids as shown to clients.
    pub(crate) secondary_ids: Vec<String>,
    /// Id of the order that triggers this one.
    pub(crate) primary_id: String,
    /// Common reference of an OCO group.
    pub(crate) oco_ref: String,
    /// True once another order of the OCO group is filled or closed; this one is cancelled once in the log.
    pub(crate) is_other_closed: bool,
    /// Trigger terms that apply after its release.
    pub(crate) armed: Option<TriggerTerms>,
    /// Released quantity.
    pub(crate) released: Qty,
}

/// Set in the numbers of untriggered orders, which are no log commands.
pub(crate) const TRIGGER_BIT: u64 = 1 << 63;

/// Maximum part of such a number that the text in the log can hold.
const TRIGGER_TEXT_MAX: u64 = (1 << 29) - 1;

/// Trigger terms of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TriggerTerms {
    pub(crate) watched: Trigger,
    pub(crate) price: Price,
    /// Distance from the market, for trailing stops.
    pub(crate) offset: Option<i64>,
    /// Watched price at the time of entry.
    pub(crate) reference: Price,
}

/// Source of an option order's price, in hundredths of a dollar or of a percent.
pub(crate) type PricedBy = (Advanced, u32);

/// Order terms that the engine does not know, stored in the order's text in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) order_type: OrderType,
    pub(crate) time_in_force: TimeInForce,
    pub(crate) is_post_only: bool,
    pub(crate) rejects_post_only: bool,
    pub(crate) is_reduce_only: bool,
    /// True if market maker protection counts the order.
    pub(crate) is_protected: bool,
    /// True for a quote of a market maker.
    pub(crate) is_quote: bool,
    /// Number of its label; 0 for none.
    pub(crate) label: u32,
    /// Number of the trigger order that created it; 0 for none.
    pub(crate) trigger: u32,
    /// Source of an option order's price, in hundredths of a dollar or of a percent.
    pub(crate) advanced: Option<PricedBy>,
    /// True if such a price was last set by following the index, not by a request.
    pub(crate) is_auto_replaced: bool,
}

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Value of each digit character; [`NO_DIGIT`] for the others.
const VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < DIGITS.len() {
        values[DIGITS[value] as usize] = value as u8;
        value += 1;
    }
    values
};
const NO_DIGIT: u8 = u8::MAX;
/// Maximum number that the text can hold: of labels, trigger orders and price sources.
pub(crate) const TEXT_NUMBER_MAX: u32 = (1 << 29) - 1;
const TYPES: [OrderType; 9] = [
    OrderType::Limit,
    OrderType::Market,
    OrderType::MarketLimit,
    OrderType::StopLimit,
    OrderType::StopMarket,
    OrderType::TakeLimit,
    OrderType::TakeMarket,
    OrderType::TrailingStop,
    OrderType::Liquidation,
];
const TIMES: [TimeInForce; 4] = [
    TimeInForce::GoodTilCancelled,
    TimeInForce::GoodTilDay,
    TimeInForce::FillOrKill,
    TimeInForce::ImmediateOrCancel,
];

const WAYS: [Advanced; 2] = [Advanced::Usd, Advanced::ImpliedVolatility];

impl Default for Terms {
    fn default() -> Self {
        Terms {
            order_type: OrderType::Limit,
            time_in_force: TimeInForce::GoodTilCancelled,
            is_post_only: false,
            rejects_post_only: false,
            is_reduce_only: false,
            is_protected: false,
            is_quote: false,
            label: 0,
            trigger: 0,
            advanced: None,
            is_auto_replaced: false,
        }
    }
}

impl Terms {
    /// Encodes: `F`, the type, the time in force with pricing and whether the price followed the index, the
    /// flags, and in base 62 the label and the trigger or price source, in 5 digits each. Legacy logs use
    /// base 32: with `E` 4 and 6 digits, with `D` 6 and 4.
    pub(crate) fn encode(&self) -> ClientOrderId {
        let place = |found: Option<usize>| DIGITS[found.unwrap_or(0)];
        let mut text = [b'0'; 14];
        text[0] = b'F';
        text[1] = place(TYPES.iter().position(|order_type| *order_type == self.order_type));
        let time = TIMES.iter().position(|time| *time == self.time_in_force).unwrap_or(0);
        let way = self.advanced.and_then(|(way, _)| WAYS.iter().position(|known| *known == way));
        let auto = if self.is_auto_replaced { WAYS.len() } else { 0 };
        text[2] = DIGITS[time + TIMES.len() * way.map_or(0, |way| way + 1 + auto)];
        let flags = [
            self.is_post_only,
            self.rejects_post_only,
            self.is_reduce_only,
            self.is_protected,
            self.is_quote,
        ];
        text[3] =
            DIGITS[flags.iter().enumerate().map(|(bit, flag)| usize::from(*flag) << bit).sum::<usize>()];
        write_digits(self.label, &mut text[4..9]);
        write_digits(self.advanced.map_or(self.trigger, |(_, value)| value), &mut text[9..14]);
        ClientOrderId(text)
    }

    /// Returns the number of a trigger order as stored in the text of the order that it creates.
    pub(crate) const fn trigger_of(number: u64) -> u32 {
        (number & !TRIGGER_BIT & TRIGGER_TEXT_MAX) as u32
    }

    /// Decodes the terms of an order in the log; orders of other ports have the terms of a plain order.
    pub(crate) fn decode(id: &ClientOrderId) -> Terms {
        let digit =
            |byte: u8| Some(VALUES[usize::from(byte)]).filter(|value| *value != NO_DIGIT).map(usize::from);
        let text = &id.0;
        let number = |part: &[u8], base: u64| {
            let more = |value: u64, byte: &u8| Some(value * base + digit(*byte)? as u64);
            let value = part.iter().try_fold(0, more).unwrap_or(0);
            u32::try_from(value).unwrap_or(0)
        };
        let (Some(order_type), Some(time), Some(flags)) = (digit(text[1]), digit(text[2]), digit(text[3]))
        else {
            return Terms::default();
        };
        let (label_end, base) = match text[0] {
            b'D' => (10, 32),
            b'E' => (8, 32),
            b'F' => (9, 62),
            _ => return Terms::default(),
        };
        let (way, last) = (time / TIMES.len(), number(&text[label_end..14], base));
        let is_auto_replaced = way > WAYS.len();
        let way = if is_auto_replaced { way - WAYS.len() } else { way };
        let advanced = way.checked_sub(1).and_then(|way| WAYS.get(way)).map(|way| (*way, last));
        Terms {
            order_type: TYPES.get(order_type).copied().unwrap_or(OrderType::Limit),
            time_in_force: TIMES[time % TIMES.len()],
            is_post_only: flags & 1 != 0,
            rejects_post_only: flags & 2 != 0,
            is_reduce_only: flags & 4 != 0,
            is_protected: flags & 8 != 0,
            is_quote: flags & 16 != 0,
            label: number(&text[4..label_end], base),
            trigger: if advanced.is_some() { 0 } else { last },
            advanced,
            is_auto_replaced: is_auto_replaced && advanced.is_some(),
        }
    }
}

fn write_digits(mut value: u32, out: &mut [u8]) {
    debug_assert!(value <= TEXT_NUMBER_MAX, "the text has no digits for {value}");
    for byte in out.iter_mut().rev() {
        *byte = DIGITS[(value % 62) as usize];
        value /= 62;
    }
}

impl Order {
    pub(crate) const fn leaves(&self) -> Qty {
        Qty(self.qty.0.saturating_sub(self.filled.0))
    }

    /// Returns the current type: the remainder of a market order rests as a limit order.
    pub(crate) fn shown_type(&self) -> OrderType {
        match self.terms.order_type {
            waiting if self.trigger.is_some() => waiting,
            OrderType::StopLimit | OrderType::TakeLimit => OrderType::Limit,
            OrderType::StopMarket | OrderType::TakeMarket | OrderType::TrailingStop if !self.is_open() => {
                OrderType::Market
            }
            OrderType::Liquidation => OrderType::Market,
            OrderType::Limit => OrderType::Limit,
            other if !self.is_open() => other,
            _ => OrderType::Limit,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state == OrderState::Open
    }

    pub(crate) fn id(&self, listing: &Listing) -> String {
        if self.number & TRIGGER_BIT == 0 {
            prefixed(listing, self.number)
        } else {
            trigger_id(listing, self.terms.order_type, self.side, self.number & !TRIGGER_BIT)
        }
    }

    /// Returns true if the order matches a filter of open orders.
    pub(crate) fn passes(&self, filter: Option<OrderFilter>) -> bool {
        let (own, waits) = (self.terms.order_type, self.trigger.is_some());
        let is_stop = matches!(own, OrderType::StopLimit | OrderType::StopMarket);
        let is_take = matches!(own, OrderType::TakeLimit | OrderType::TakeMarket);
        match filter {
            None | Some(OrderFilter::All) => true,
            Some(OrderFilter::Limit) => !waits,
            Some(OrderFilter::TriggerAll) => waits,
            Some(OrderFilter::Stop | OrderFilter::StopAll) => waits && is_stop,
            Some(OrderFilter::Take | OrderFilter::TakeAll) => waits && is_take,
            Some(OrderFilter::TrailingStop | OrderFilter::TrailingAll) => {
                waits && own == OrderType::TrailingStop
            }
            Some(OrderFilter::StopLimit) => waits && own == OrderType::StopLimit,
            Some(OrderFilter::StopMarket) => waits && own == OrderType::StopMarket,
            Some(OrderFilter::TakeLimit) => waits && own == OrderType::TakeLimit,
            Some(OrderFilter::TakeMarket) => waits && own == OrderType::TakeMarket,
            _ => false,
        }
    }

    pub(crate) fn write(&self, listing: &Listing, label: &str, out: &mut Vec<u8>) {
        let id = self.id(listing);
        let average = figure(listing.contract.mean_price(self.filled, self.filled_value)).to_string();
        let contracts = listing.contracts(self.qty);
        let (shown, original) = (self.shown_type(), self.terms.order_type);
        let waits = self.trigger.is_some();
        let price = match waits && self.price.0 == 0 {
            true => OrderPrice::Market,
            false => OrderPrice::Limit(listing.price(self.price)),
        };
        let made_by = (!waits && self.terms.trigger != 0)
            .then(|| trigger_id(listing, original, self.side, self.terms.trigger.into()));
        let reference = self.trigger.map(|trigger| listing.price(trigger.reference).to_string());
        let priced_by = self.terms.advanced.map(|(way, value)| (way, hundredths(value).to_string()));
        let by = |wanted: Advanced| match &priced_by {
            Some((way, value)) if *way == wanted => Number::new(value).ok(),
            _ => None,
        };
        OrderMessage {
            label: Some(Text::new(label)),
            price: Some(price),
            amount: listing.amount(self.qty),
            direction: Direction::from(self.side),
            time_in_force: Some(self.terms.time_in_force),
            order_id: Text::new(&id),
            creation_timestamp: self.created_ms,
            replaced: self.is_replaced,
            filled_amount: Some(listing.amount(self.filled)).filter(|_| !waits),
            trigger: self.trigger.map(|trigger| trigger.watched),
            trigger_price: self.trigger.map(|trigger| listing.price(trigger.price)),
            stop_price: self.trigger.map(|trigger| listing.price(trigger.price)),
            trigger_offset: self
                .trigger
                .and_then(|trigger| trigger.offset)
                .map(|offset| listing.price(Price(offset))),
            trigger_reference_price: reference.as_deref().and_then(|price| Number::new(price).ok()),
            triggered: (waits || made_by.is_some()).then_some(
                self.state != OrderState::Untriggered && !(waits && self.state == OrderState::Cancelled),
            ),
            trigger_order_id: made_by.as_deref().map(Text::new),
            last_update_timestamp: self.updated_ms,
            post_only: self.terms.is_post_only,
            reduce_only: self.terms.is_reduce_only,
            cancel_reason: self.cancel_reason,
            average_price: Number::new(&average).ok(),
            contracts: Number::new(&contracts).ok(),
            reject_post_only: Some(self.terms.rejects_post_only).filter(|_| self.terms.is_post_only),
            order_state: self.state,
            order_type: shown,
            original_order_type: Some(original)
                .filter(|original| *original != shown && *original != OrderType::Liquidation),
            is_liquidation: original == OrderType::Liquidation,
            risk_reducing: self.terms.is_reduce_only || original == OrderType::Liquidation,
            display_amount: self.display.map(|display| listing.amount(display)),
            refresh_amount: self.display.map(|display| listing.amount(display)),
            advanced: self.terms.advanced.map(|(way, _)| way),
            auto_replaced: self.terms.advanced.map(|_| self.terms.is_auto_replaced),
            implv: by(Advanced::ImpliedVolatility),
            usd: by(Advanced::Usd),
            mmp: self.terms.is_protected,
            mmp_cancelled: (self.cancel_reason == Some(CancelReason::MmpTrigger)).then_some(true),
            ..OrderMessage::empty(&listing.name)
        }
        .write(out);
        self.write_extra(out);
    }
}

impl Extra {
    /// Returns the client's texts of a quote: of the request and of the set.
    pub(crate) fn quote(&self) -> Option<Box<(String, String)>> {
        (!self.quote_id.is_empty()).then(|| Box::new((self.quote_id.clone(), self.quote_set_id.clone())))
    }
}

impl Order {
    /// Writes the members that few orders have, after the common ones.
    fn write_extra(&self, out: &mut Vec<u8>) {
        if !self.terms.is_quote && self.extra.is_none() {
            return;
        }
        let extra = self.extra.as_deref().cloned().unwrap_or_default();
        let text = |text: &'_ String| (!text.is_empty()).then(|| Json(json(&Text::new(text))));
        let secondaries = list(&extra.secondary_ids, |id, out| Text::new(id).write(out));
        let members = Object::new()
            .with("quote", self.terms.is_quote.then_some(true))
            .with("quote_id", text(&extra.quote_id))
            .with("quote_set_id", text(&extra.quote_set_id))
            .with("mmp_group", text(&extra.mmp_group))
            .with("oco_ref", text(&extra.oco_ref))
            .with("is_secondary_oto", (!extra.primary_id.is_empty()).then_some(true))
            .with("primary_order_id", text(&extra.primary_id))
            .with("is_primary_otoco", (extra.triggers && extra.cancels).then_some(true))
            .with("oto_order_ids", (!extra.secondary_ids.is_empty()).then_some(Json(secondaries)))
            .end();
        if out.ends_with(b"}") && members.len() > 2 {
            out.pop();
            out.push(b',');
            out.extend_from_slice(&members[1..]);
        }
    }
}

/// Returns the id of an untriggered order: kind, side and number.
fn trigger_id(listing: &Listing, order_type: OrderType, side: Side, number: u64) -> String {
    let kind = match order_type {
        OrderType::TakeLimit | OrderType::TakeMarket => "TP",
        OrderType::TrailingStop => "TS",
        OrderType::StopLimit | OrderType::StopMarket => "SL",
        // Waits for another order.
        _ => "OT",
    };
    let side = if side == Side::Buy { "TB" } else { "TS" };
    match listing.currency() {
        "BTC" => format!("{kind}{side}-{number}"),
        currency => format!("{currency}-{kind}{side}-{number}"),
    }
}

/// Returns a decimal with two digits after the point.
pub(crate) fn hundredths(value: u32) -> Decimal {
    Decimal::new(value.into(), 2).unwrap_or(Decimal::ZERO)
}

/// A trade of an account.
#[derive(Clone, Debug)]
pub(crate) struct UserTrade {
    pub(crate) listing: usize,
    pub(crate) order: u64,
    /// Its public part.
    pub(crate) public: Trade,
    pub(crate) side: Side,
    pub(crate) is_maker: bool,
    pub(crate) fee: Money,
    pub(crate) profit: Money,
    pub(crate) terms: Terms,
    /// State of the order after the trade.
    pub(crate) state: OrderState,
    /// Change of the balance, including the fee.
    pub(crate) changed: Money,
    /// Balance after the trade.
    pub(crate) balance: Money,
    /// Balance of the base currency.
    pub(crate) base_balance: Money,
    /// Position after the trade.
    pub(crate) position: i64,
    /// The client's texts of a quote: of the request and of the set.
    pub(crate) quote: Option<Box<(String, String)>>,
}

impl UserTrade {
    pub(crate) fn write(&self, listing: &Listing, label: &str, out: &mut Vec<u8>) {
        let trade = &self.public;
        let (id, order_id) = (trade.id(listing), prefixed(listing, self.order));
        let [fee, profit, index] =
            [self.fee, self.profit, trade.index].map(|amount| figure(amount).to_string());
        let mark = listing.price(trade.mark).to_string();
        let iv = trade.volatility(listing);
        let before = self.position - self.side.sign() * trade.qty.0 as i64;
        let contracts = listing.contracts(trade.qty);
        let is_market =
            !matches!(self.terms.order_type, OrderType::Limit | OrderType::StopLimit | OrderType::TakeLimit);
        TradeMessage {
            label: Some(Text::new(label)).filter(|label| !label.is_empty()),
            timestamp: trade.at_ms,
            state: Some(self.state),
            price: listing.price(trade.price),
            user_id: None,
            amount: listing.amount(trade.qty),
            direction: Direction::from(self.side),
            index_price: Number::new(&index).ok(),
            instrument_name: Text::new(&listing.name),
            trade_seq: trade.seq,
            mark_price: Number::new(&mark).ok(),
            api: true,
            order_id: Text::new(&order_id),
            tick_direction: Some(trade.tick_direction),
            post_only: self.terms.is_post_only,
            reduce_only: self.terms.is_reduce_only,
            liquidity: Some(if self.is_maker { Liquidity::Maker } else { Liquidity::Taker }),
            fee: Number::new(&fee).ok(),
            fee_currency: Some(Text::new(&listing.settlement)),
            mmp: self.terms.is_protected,
            contracts: Number::new(&contracts).ok(),
            trade_id: Text::new(&id),
            order_type: Some(match self.terms.order_type {
                OrderType::Liquidation => OrderType::Liquidation,
                _ if is_market => OrderType::Market,
                _ => OrderType::Limit,
            }),
            profit_loss: Number::new(&profit).ok(),
            risk_reducing: before.abs() > self.position.abs(),
            iv: iv.as_deref().and_then(|iv| Number::new(iv).ok()),
            underlying_price: Number::new(&index).ok().filter(|_| listing.contract.is_option()),
            liquidation: trade.liquidation,
            block_trade_id: None,
            combo_id: None,
            combo_trade_id: None,
            self_trade: None,
            matching_id: None,
            legs: None,
            quote_id: self.quote.as_deref().map(|(id, _)| Text::new(id)),
            quote_set_id: self.quote.as_deref().map(|(_, set)| Text::new(set)),
            advanced: self.terms.advanced.map(|(way, _)| way),
        }
        .write(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_what_they_were_after_the_log() {
        for order_type in TYPES {
            for time_in_force in TIMES {
                for flags in 0..32 {
                    let terms = Terms {
                        order_type,
                        time_in_force,
                        is_post_only: flags & 1 != 0,
                        rejects_post_only: flags & 2 != 0,
                        is_reduce_only: flags & 4 != 0,
                        is_protected: flags & 8 != 0,
                        is_quote: flags & 16 != 0,
                        label: TEXT_NUMBER_MAX - flags,
                        trigger: TEXT_NUMBER_MAX - flags,
                        advanced: None,
                        is_auto_replaced: false,
                    };
                    let priced = WAYS.map(|way| Terms { trigger: 0, advanced: Some((way, flags)), ..terms });
                    let followed = priced.map(|terms| Terms { is_auto_replaced: true, ..terms });
                    for terms in [terms].into_iter().chain(priced).chain(followed) {
                        assert_eq!(Terms::decode(&terms.encode()), terms);
                        assert!(terms.encode().0.iter().all(u8::is_ascii_alphanumeric));
                    }
                }
            }
        }
        assert_eq!(Terms::decode(&ClientOrderId::default()), Terms::default());
        assert_eq!(Terms::decode(&ClientOrderId(*b"some-other-one")), Terms::default());
        assert_eq!(Terms::trigger_of(TRIGGER_BIT | u64::from(TEXT_NUMBER_MAX)), TEXT_NUMBER_MAX);
        let before = Terms::decode(&ClientOrderId(*b"E0310012000034"));
        assert_eq!((before.label, before.trigger, before.is_post_only), (34, 100, true));
        let older = Terms::decode(&ClientOrderId(*b"D0310000120034"));
        assert_eq!((older.label, older.trigger, older.is_post_only), (34, 100, true));
    }
}
