//! Untriggered orders: stop orders, take orders and trailing stops.
//!
//! They wait in the front because they watch prices that the engine does not know. They are recorded, and
//! wait again after a restart.

use tickpath_deribit::codes::{CancelReason, OrderState, OrderType, Trigger};
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::messages::PlaceOrder;
use tickpath_deribit::number::{Decimal, NumberError};
use tickpath_derivatives::Money;
use tickpath_types::{ClientOrderId, Price, Qty, Side};

use super::Front;
use crate::account::Changes;
use crate::fault::Fault;
use crate::json::whole;
use crate::listing::Listing;
use crate::order::{Extra, FillCondition, Order, TRIGGER_BIT, Terms, TriggerTerms};
use crate::pending::{Intent, ReplyTo};
use crate::record::{Link, Record, WaitingOrder};

/// Maximum trigger price of an option's order in units of the index, so that the sum of two cannot overflow.
const UNDERLYING_MAX: i64 = i64::MAX / 4;

/// Maximum number of untriggered orders of one account.
pub(super) const WAITING_MAX: usize = 100;

impl Front {
    /// Accepts an untriggered order.
    pub(super) fn place_trigger(
        &mut self,
        account: usize,
        listing: usize,
        side: Side,
        order: &PlaceOrder<'_>,
        (qty, terms): (Qty, Terms),
        to: &ReplyTo,
    ) -> Result<u64, Fault> {
        if self.waiting_count(account) >= WAITING_MAX {
            return Err(Fault::beyond(ErrorCode::NoMoreTriggers, whole(WAITING_MAX as u64)));
        }
        let watched = order.trigger.ok_or(Fault::param("trigger", "value required"))?;
        let now = self
            .watched(listing, watched)
            .ok_or(Fault::because(ErrorCode::InvalidTriggerPrice, "there was no trade yet"))?;
        let watching = (listing, watched);
        let (price, offset) = self.trigger_price(watching, side, terms.order_type, order, now)?;
        let limit = match terms.order_type {
            OrderType::StopLimit | OrderType::TakeLimit => {
                let limit = order.price.ok_or(Fault::param("price", "value required"))?;
                self.settings.listings[listing].parse_price(limit)?
            }
            _ => Price(0),
        };
        let number = self.next_trigger | TRIGGER_BIT;
        self.next_trigger += 1;
        let waiting = Order {
            number,
            listing,
            side,
            terms,
            price: limit,
            qty,
            filled: Qty::ZERO,
            filled_value: Money::ZERO,
            created_ms: self.now_ms(),
            updated_ms: self.now_ms(),
            is_replaced: false,
            state: OrderState::Untriggered,
            cancel_reason: None,
            user_ref: 0,
            connection: Some(to.connection),
            display: None,
            trigger: Some(TriggerTerms { watched, price, offset, reference: now }),
            extra: None,
        };
        self.keep_waiting(account, waiting);
        Ok(number)
    }

    /// Stores, records and publishes a new or changed untriggered order.
    pub(super) fn keep_waiting(&mut self, account: usize, order: Order) {
        let number = order.number;
        self.write_waiting(account, order, None);
        self.tell_of(account, number);
    }

    /// Stores and records it without publishing; `part_of` is set for a part of a linked order.
    pub(super) fn write_waiting(&mut self, account: usize, order: Order, part_of: Option<u64>) {
        let record = WaitingOrder { part_of, ..self.waiting_record(account, &order) };
        self.accounts[account].waiting.insert(order.number, order);
        self.write_down(Record::Waits(record));
    }

    /// Returns the record of an untriggered order.
    pub(super) fn waiting_record(&self, account: usize, order: &Order) -> WaitingOrder {
        WaitingOrder {
            account: self.accounts[account].name.clone(),
            instrument: self.settings.listings[order.listing].name.clone(),
            number: order.number,
            is_buy: order.side == Side::Buy,
            terms: order.terms.encode().0.iter().map(|byte| char::from(*byte)).collect(),
            price: order.price.0,
            qty: order.qty.0,
            created_ms: order.created_ms,
            is_replaced: order.is_replaced,
            trigger: order.trigger.as_ref().map(trigger_record),
            link: order.extra.as_deref().map(link_record).map(Box::new),
            part_of: None,
            is_overdue: self.accounts[account].overdue.contains(&order.number),
        }
    }

    /// Restores an order and its account from a record.
    pub(super) fn waiting_order(&self, record: &WaitingOrder, at_ms: u64) -> Option<(usize, Order)> {
        let (account, listing) = (self.account_named(&record.account)?, self.listing(&record.instrument)?);
        let mut terms = ClientOrderId([b' '; 14]);
        for (place, byte) in terms.0.iter_mut().zip(record.terms.bytes()) {
            *place = byte;
        }
        let order = Order {
            number: record.number,
            listing,
            side: if record.is_buy { Side::Buy } else { Side::Sell },
            terms: Terms::decode(&terms),
            price: Price(record.price),
            qty: Qty(record.qty),
            filled: Qty::ZERO,
            filled_value: Money::ZERO,
            created_ms: record.created_ms,
            updated_ms: at_ms,
            is_replaced: record.is_replaced,
            state: OrderState::Untriggered,
            cancel_reason: None,
            user_ref: 0,
            connection: None,
            display: None,
            trigger: record.trigger.as_ref().and_then(trigger_of),
            extra: record.link.as_deref().map(extra_of),
        };
        Some((account, order))
    }

    /// Applies the record of an untriggered order.
    pub(super) fn take_waiting(&mut self, record: &WaitingOrder, at_ms: u64) {
        let Some((account, order)) = self.waiting_order(record, at_ms) else { return };
        self.next_trigger = self.next_trigger.max((record.number & !TRIGGER_BIT) + 1);
        let known = &mut self.accounts[account];
        known.handed.remove(&record.number);
        if record.is_overdue {
            known.overdue.insert(record.number);
        }
        known.note_label(order.terms.label);
        // Its label number is used, although the log may never contain it.
        self.labels.note(order.terms.label);
        let whole = record.part_of.and_then(|number| known.waiting.get_mut(&number));
        if let Some(extra) = whole.and_then(|whole| whole.extra.as_mut()) {
            extra.released.0 += order.qty.0;
        }
        known.waiting.insert(record.number, order);
    }

    /// Applies the recorded price of a trailing stop.
    pub(super) fn take_trail(&mut self, number: u64, price: Price) {
        for account in &mut self.accounts {
            if let Some(trigger) = account.waiting.get_mut(&number).and_then(|order| order.trigger.as_mut()) {
                trigger.price = price;
            }
        }
    }

    /// Returns the trigger price of an order, and its offset if it trails the market.
    fn trigger_price(
        &self,
        (listing, watched): (usize, Trigger),
        side: Side,
        order_type: OrderType,
        order: &PlaceOrder<'_>,
        now: Price,
    ) -> Result<(Price, Option<i64>), Fault> {
        if order_type == OrderType::TrailingStop {
            let offset = order.trigger_offset.ok_or(Fault::param("trigger_offset", "value required"))?;
            let (price, offset) = self.trailing((listing, watched), side, offset, now)?;
            return Ok((price, Some(offset)));
        }
        let price = order.trigger_price.ok_or(Fault::param("trigger_price", "value required"))?;
        let price = self.on_trigger_tick((listing, watched), price)?;
        if is_reached(side, order_type, price, now) {
            return Err(ErrorCode::InvalidTriggerPrice.into());
        }
        Ok((price, None))
    }

    /// Returns the current trigger price of a trailing stop, and its offset.
    fn trailing(
        &self,
        (listing, watched): (usize, Trigger),
        side: Side,
        offset: Decimal,
        now: Price,
    ) -> Result<(Price, i64), Fault> {
        let offset = self.on_offset_tick((listing, watched), offset)?.0;
        Ok((self.behind((listing, watched), side, offset, now)?, offset))
    }

    /// Returns the price at the given offset from the market, if it is a valid trigger price.
    pub(super) fn behind(
        &self,
        (listing, watched): (usize, Trigger),
        side: Side,
        offset: i64,
        now: Price,
    ) -> Result<Price, Fault> {
        let price = Price(now.0 + side.sign() * offset);
        let listing = &self.settings.listings[listing];
        let (low, high) = match is_underlying(listing, watched) {
            true => (Price(1), Price(UNDERLYING_MAX)),
            false => listing.collar,
        };
        match price {
            price if price < low => Err(ErrorCode::TriggerPriceTooLow.into()),
            price if price > high => Err(ErrorCode::TriggerPriceTooHigh.into()),
            price => Ok(price),
        }
    }

    pub(super) fn on_trigger_tick(
        &self,
        (listing, watched): (usize, Trigger),
        price: Decimal,
    ) -> Result<Price, Fault> {
        let listing = &self.settings.listings[listing];
        if is_underlying(listing, watched) {
            return underlying_price(listing, price);
        }
        let (low, high) = (listing.price(listing.collar.0), listing.price(listing.collar.1));
        if price > high {
            return Err(Fault::beyond(ErrorCode::TriggerPriceTooHigh, high));
        }
        if price < low {
            return Err(Fault::beyond(ErrorCode::TriggerPriceTooLow, low));
        }
        listing.parse_price(price).map_err(|_| ErrorCode::TriggerPriceWrongTick.into())
    }

    pub(super) fn on_offset_tick(
        &self,
        (listing, watched): (usize, Trigger),
        offset: Decimal,
    ) -> Result<Price, Fault> {
        let listing = &self.settings.listings[listing];
        if is_underlying(listing, watched) {
            return underlying_price(listing, offset);
        }
        listing.parse_price(offset).map_err(|code| match code {
            ErrorCode::PriceWrongTick => ErrorCode::TriggerPriceWrongTick.into(),
            _ => ErrorCode::InvalidTriggerPrice.into(),
        })
    }

    /// Returns the watched price, in units of the instrument.
    pub(super) fn watched(&self, listing: usize, watched: Trigger) -> Option<Price> {
        let (known, market) = self.listed(listing);
        match watched {
            Trigger::LastPrice => market.last,
            Trigger::MarkPrice => Some(market.mark),
            _ => {
                let unit = 10_i128.pow(Money::DECIMALS - u32::from(known.contract.price_decimals));
                i64::try_from(market.index.0 / unit).ok().map(Price)
            }
        }
    }

    /// Enters the orders whose trigger price is reached.
    pub(super) fn fire_triggers(&mut self) {
        for account in 0..self.accounts.len() {
            let mut due = Vec::new();
            let numbers: Vec<u64> = self.accounts[account].waiting.keys().copied().collect();
            for number in numbers {
                let Some(order) = self.accounts[account].waiting.get(&number) else { continue };
                let (listing, side, order_type) = (order.listing, order.side, order.terms.order_type);
                let Some(terms) = order.trigger else { continue };
                let Some(now) = self.watched(listing, terms.watched) else { continue };
                let is_overdue = self.accounts[account].overdue.remove(&number);
                if is_overdue || is_reached(side, order_type, terms.price, now) {
                    due.push(number);
                } else if let Some(offset) = terms.offset
                    && let Some(order) = self.accounts[account].waiting.get_mut(&number)
                    && let Some(terms) = &mut order.trigger
                {
                    // A sell order trails a rising market, a buy order a falling one.
                    let followed = Price(now.0 + side.sign() * offset);
                    let price =
                        if side == Side::Buy { terms.price.min(followed) } else { terms.price.max(followed) };
                    if price != terms.price {
                        terms.price = price;
                        self.write_down(Record::Trails { number, price: price.0 });
                    }
                }
            }
            due.into_iter().for_each(|number| self.fire(account, number));
        }
    }

    fn fire(&mut self, account: usize, number: u64) {
        let Some(order) = self.accounts[account].waiting.get(&number).cloned() else { return };
        let Order { listing, side, qty, .. } = order;
        if let Some(extra) = order.extra.as_ref().filter(|extra| !extra.oco_ref.is_empty()) {
            // The others are cancelled first, because the new order could trade with them.
            self.cancel_others(account, number, &extra.oco_ref);
        }
        let is_limit = matches!(order.terms.order_type, OrderType::StopLimit | OrderType::TakeLimit);
        let price = match is_limit {
            true => Ok(order.price),
            false => self.price_of(listing, side, OrderType::Market, None),
        };
        let terms = Terms { trigger: Terms::trigger_of(number), ..order.terms };
        let qty = match order.terms.is_reduce_only {
            true => self.reducing(account, listing, side, qty),
            false => Ok(qty),
        };
        let entered = price.and_then(|price| {
            let qty = qty?;
            let mut intent = Intent { listing, side, qty, price, terms, display: Qty::ZERO, moves: 0 };
            self.keep_off_the_book(&mut intent)?;
            self.check_funds(account, &intent, qty, None)?;
            self.enter(account, intent, order.connection, None)
        });
        let state = match entered {
            Ok(()) => {
                self.hand_over_part(account, number, order.qty);
                OrderState::Triggered
            }
            Err(_) => OrderState::Rejected,
        };
        self.end_trigger(account, number, state, None);
    }

    /// Removes an untriggered order.
    pub(super) fn end_trigger(
        &mut self,
        account: usize,
        number: u64,
        state: OrderState,
        reason: Option<CancelReason>,
    ) {
        let now_ms = self.now_ms();
        let Some(mut order) = self.accounts[account].waiting.remove(&number) else { return };
        (order.state, order.cancel_reason, order.updated_ms) = (state, reason, now_ms);
        self.accounts[account].keep_closed(order);
        self.write_down(Record::WaitsNoMore { number });
        self.tell_of(account, number);
        self.follow_link(account, number);
    }

    /// Changes an untriggered order.
    pub(super) fn edit_trigger(
        &mut self,
        account: usize,
        number: u64,
        change: &TriggerChange,
    ) -> Result<(), Fault> {
        let order = self.accounts[account].waiting.get(&number).ok_or(Fault::new(ErrorCode::NotOpenOrder))?;
        let (listing, side, order_type) = (order.listing, order.side, order.terms.order_type);
        let terms = order.trigger.ok_or(Fault::because(
            ErrorCode::UnsupportedArgCombination,
            "it waits for another order: cancel it and enter it again",
        ))?;
        if change.offset.is_some() != terms.offset.is_some()
            && (change.offset.is_some() || change.price.is_some())
        {
            return Err(Fault::because(
                ErrorCode::UnsupportedArgCombination,
                "trailing stops have a trigger_offset, and all others a trigger_price",
            ));
        }
        let watching = (listing, terms.watched);
        let price = change.price.map(|price| self.on_trigger_tick(watching, price)).transpose()?;
        let offset = match change.offset {
            None => None,
            Some(offset) => {
                let now = self
                    .watched(listing, terms.watched)
                    .ok_or(Fault::because(ErrorCode::InvalidTriggerPrice, "there was no trade yet"))?;
                Some(self.trailing(watching, side, offset, now)?)
            }
        };
        let limit =
            change.limit.map(|limit| self.settings.listings[listing].parse_price(limit)).transpose()?;
        if let Some(price) = price
            && self
                .watched(listing, terms.watched)
                .is_some_and(|now| is_reached(side, order_type, price, now))
        {
            return Err(ErrorCode::InvalidTriggerPrice.into());
        }
        let now_ms = self.now_ms();
        if let Some(mut order) = self.accounts[account].waiting.get(&number).cloned() {
            order.qty = change.qty.unwrap_or(order.qty);
            order.price = limit.unwrap_or(order.price);
            order.terms.is_reduce_only |= change.is_reduce_only;
            (order.is_replaced, order.updated_ms) = (true, now_ms);
            if let Some(terms) = &mut order.trigger {
                terms.price = price.unwrap_or(terms.price);
                if let Some((price, offset)) = offset {
                    (terms.offset, terms.price) = (Some(offset), price);
                }
            }
            self.keep_waiting(account, order);
        }
        Ok(())
    }

    /// Publishes one order to the account's channels.
    pub(super) fn tell_of(&mut self, account: usize, number: u64) {
        let changes = Changes { orders: vec![number], ..Changes::default() };
        self.tell(&[], &[], &[(account, changes)].into());
    }
}

/// Changes of an untriggered order.
pub(super) struct TriggerChange {
    pub(super) qty: Option<Qty>,
    pub(super) price: Option<Decimal>,
    pub(super) limit: Option<Decimal>,
    /// New offset from the current market price.
    pub(super) offset: Option<Decimal>,
    pub(super) is_reduce_only: bool,
}

/// Returns the record of trigger terms.
fn trigger_record(trigger: &TriggerTerms) -> (String, i64, Option<i64>, i64) {
    (trigger.watched.to_string(), trigger.price.0, trigger.offset, trigger.reference.0)
}

fn trigger_of(record: &(String, i64, Option<i64>, i64)) -> Option<TriggerTerms> {
    let (watched, price, offset, reference) = record;
    let known = [Trigger::LastPrice, Trigger::MarkPrice, Trigger::IndexPrice];
    let watched = known.into_iter().find(|known| known.to_string() == *watched)?;
    let (price, reference) = (Price(*price), Price(*reference));
    Some(TriggerTerms { watched, price, offset: *offset, reference })
}

/// Returns the record of an order's links.
pub(super) fn link_record(extra: &Extra) -> Link {
    Link {
        triggers: extra.triggers,
        cancels: extra.cancels,
        condition: extra.condition as u8,
        secondaries: extra.secondaries.clone(),
        secondary_ids: extra.secondary_ids.clone(),
        primary_id: extra.primary_id.clone(),
        oco_ref: extra.oco_ref.clone(),
        armed: extra.armed.as_ref().map(trigger_record),
        released: extra.released.0,
    }
}

pub(super) fn extra_of(link: &Link) -> Box<Extra> {
    Box::new(Extra {
        triggers: link.triggers,
        cancels: link.cancels,
        condition: match link.condition {
            0 => FillCondition::FirstHit,
            1 => FillCondition::CompleteFill,
            _ => FillCondition::Incremental,
        },
        secondaries: link.secondaries.clone(),
        secondary_ids: link.secondary_ids.clone(),
        primary_id: link.primary_id.clone(),
        oco_ref: link.oco_ref.clone(),
        armed: link.armed.as_ref().and_then(trigger_of),
        released: Qty(link.released),
        ..Extra::default()
    })
}

/// Returns true if an option's order watches the index, which has other prices, ranges and ticks.
fn is_underlying(listing: &Listing, watched: Trigger) -> bool {
    listing.contract.is_option() && !matches!(watched, Trigger::LastPrice | Trigger::MarkPrice)
}

/// Converts a price or an offset of an option's index to units of the option.
fn underlying_price(listing: &Listing, price: Decimal) -> Result<Price, Fault> {
    let units = price.units(listing.contract.price_decimals);
    match units.map_err(|error| match error {
        NumberError::TooLarge => ErrorCode::TriggerPriceTooHigh,
        _ => ErrorCode::TriggerPriceWrongTick,
    })? {
        ..=0 => Err(ErrorCode::TriggerPriceTooLow.into()),
        units if units > UNDERLYING_MAX => Err(ErrorCode::TriggerPriceTooHigh.into()),
        units => Ok(Price(units)),
    }
}

/// Returns true if the trigger price is reached: a stop's in a worse market, a take's in a better one.
fn is_reached(side: Side, order_type: OrderType, price: Price, now: Price) -> bool {
    let is_take = matches!(order_type, OrderType::TakeLimit | OrderType::TakeMarket);
    if (side == Side::Buy) == is_take { now <= price } else { now >= price }
}

/// Returns true for untriggered order types.
pub(super) fn waits(order_type: OrderType) -> bool {
    !matches!(order_type, OrderType::Limit | OrderType::Market | OrderType::MarketLimit)
}
