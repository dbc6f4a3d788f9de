//! Quotes: market maker orders, many of which are changed by one request.

use tickpath_deribit::codes::CancelReason;
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::field::Field;
use tickpath_deribit::messages::{CancelQuotes, MassQuote, QuoteSide};
use tickpath_deribit::number::Decimal;
use tickpath_deribit::request::Request;
use tickpath_deribit::scan::Value;
use tickpath_deribit::text::Text;
use tickpath_derivatives::Style;
use tickpath_types::{Qty, Side};

use super::trading::NewTerms;
use super::{Answer, Front};
use crate::account::Changes;
use crate::fault::Fault;
use crate::json::{Json, Object, list, param};
use crate::listing::decimal_money;
use crate::options::as_float;
use crate::order::{Extra, Order, Terms};
use crate::pending::{Group, Intent, Origin, Pending, QuoteError, Quoting, ReplyTo, Work};

/// Maximum number of quotes in one request; each side counts.
pub(super) const QUOTES_MAX: usize = 100;
/// Maximum length of a quote's texts, in characters.
const TEXT_LEN_MAX: usize = 64;
/// Duration of the quote freeze that a cancel may request, in milliseconds.
const FREEZE_MS: u64 = 1_000;

/// One requested side of a quote.
pub(super) struct Quote {
    pub(super) instrument: String,
    pub(super) side: Side,
    pub(super) amount: Option<Decimal>,
    pub(super) contracts: Option<Decimal>,
    pub(super) price: Option<Decimal>,
    pub(super) is_post_only: bool,
    pub(super) rejects_post_only: bool,
    pub(super) extra: Extra,
}

impl Front {
    pub(super) fn mass_quote(&mut self, account: usize, request: &Request<'_>, to: &ReplyTo) -> Answer {
        let asked: MassQuote<'_> = request.params()?;
        self.check_quoting(account, to.connection, asked.valid_until)?;
        let number = self.quote_all(account, quotes_of(&asked)?, asked.detailed, to);
        if asked.wait_for_response == Some(false) {
            // The reply contains only the immediate results.
            let known = self.groups.remove(&number).map(|group| self.quoting_result(&group));
            return Ok(known);
        }
        self.finish_of_group(number, None);
        Ok(None)
    }

    /// Checks that the account may quote on this connection now.
    pub(super) fn check_quoting(
        &self,
        account: usize,
        connection: u64,
        valid_until: Option<u64>,
    ) -> Result<(), Fault> {
        self.check_deadline(valid_until)?;
        let connection = self.connections.get(&connection);
        if !connection.is_some_and(|connection| connection.cancels_on_disconnect) {
            return Err(ErrorCode::CodNotEnabled.into());
        }
        if self.now_ms() < self.accounts[account].quotes_frozen_ms {
            return Err(ErrorCode::QuotesFrozen.into());
        }
        Ok(())
    }

    /// Sends quotes; returns the number of their group, which is complete only after one more
    /// [`finish_of_group`](Front::finish_of_group).
    pub(super) fn quote_all(
        &mut self,
        account: usize,
        quotes: Vec<Quote>,
        is_detailed: bool,
        to: &ReplyTo,
    ) -> u64 {
        let number = self.next_group;
        self.next_group += 1;
        // The extra count keeps the group open until all quotes are sent.
        let group = Group {
            reply: to.clone(),
            waiting: 1,
            cancelled: Vec::new(),
            is_detailed,
            account,
            quoting: Some(Quoting::default()),
        };
        self.groups.insert(number, group);
        if let Some(connection) = self.connections.get_mut(&to.connection) {
            connection.quoted.insert(account);
        }
        let mut seen = Vec::new();
        for quote in quotes {
            let key = (quote.instrument.clone(), quote.side);
            let is_new = !seen.contains(&key);
            seen.push(key);
            let sent = match is_new {
                true => self.quote(account, &quote, to.connection, number),
                false => Err(Fault::because(ErrorCode::InvalidArguments, "the same side is there twice")),
            };
            let Some(group) = self.groups.get_mut(&number) else { break };
            let quoting = group.quoting.get_or_insert_default();
            match sent {
                Ok(Sent::OnItsWay) => group.waiting += 1,
                Ok(Sent::AsItIs(order)) => quoting.orders.push(order),
                Ok(Sent::Nothing) => {}
                Err(fault) => quoting.errors.push(QuoteError {
                    instrument: quote.instrument,
                    side: quote.side,
                    set_id: quote.extra.quote_set_id,
                    entry_id: quote.extra.quote_entry_id,
                    fault,
                }),
            }
        }
        number
    }

    /// Enters, changes or cancels one side.
    fn quote(&mut self, account: usize, quote: &Quote, connection: u64, group: u64) -> Result<Sent, Fault> {
        let listing = self.find_traded(&quote.instrument)?;
        let name = &quote.extra.mmp_group;
        self.check_protection(account, self.settings.listings[listing].index, name)?;
        let known = &self.accounts[account];
        let is_same = |order: &&Order| {
            order.terms.is_quote
                && order.listing == listing
                && order.side == quote.side
                && order.extra.as_ref().is_some_and(|extra| extra.mmp_group == *name)
        };
        let before = known.open.values().find(is_same).cloned();
        let before_number = before.as_ref().map(|order| order.number);
        let is_moving = known.pending.iter().any(|pending| match pending.work {
            Work::Place(intent) => {
                intent.terms.is_quote
                    && (intent.listing, intent.side) == (listing, quote.side)
                    && pending.extra.as_ref().is_some_and(|extra| extra.mmp_group == *name)
            }
            Work::Edit { number, .. } | Work::Cancel { number, .. } => before_number == Some(number),
        });
        if is_moving {
            return Err(ErrorCode::Retry.into());
        }
        if quote.amount.or(quote.contracts).is_some_and(|amount| amount.is_zero()) {
            let Some(number) = before_number else { return Ok(Sent::Nothing) };
            self.send_cancel(account, number, None, Some(group), CancelReason::UserRequest)?;
            return Ok(Sent::OnItsWay);
        }
        // Values that are not given remain unchanged.
        let qty = match (&before, quote.amount.or(quote.contracts)) {
            (Some(order), None) => order.leaves(),
            _ => self.qty_of(listing, quote.amount, quote.contracts)?,
        };
        self.check_quote_quantity(account, listing, qty, name)?;
        let order_type = tickpath_deribit::codes::OrderType::Limit;
        let price = match (&before, quote.price) {
            (Some(order), None) => order.price,
            (_, price) => self.price_of(listing, quote.side, order_type, price)?,
        };
        let terms = Terms {
            is_post_only: quote.is_post_only,
            rejects_post_only: quote.is_post_only && quote.rejects_post_only,
            is_protected: true,
            is_quote: true,
            ..Terms::default()
        };
        let extra = Some(Box::new(quote.extra.clone()));
        if let Some(Order { number, filled, .. }) = before {
            let qty = Qty(filled.0 + qty.0);
            let terms = NewTerms { number, qty, price, terms, display: None };
            // The texts are replaced once the quote is changed.
            let origin = Origin {
                connection: Some(connection),
                group: Some(group),
                extra: extra.clone(),
                ..Origin::default()
            };
            if self.send_change(account, terms, origin)? {
                return Ok(Sent::OnItsWay);
            }
            if let Some(order) = self.accounts[account].open.get_mut(&number) {
                (order.extra, order.connection) = (extra, Some(connection));
            }
            return Ok(Sent::AsItIs(number));
        }
        let mut intent =
            Intent { listing, side: quote.side, qty, price, terms, display: Qty::ZERO, moves: 0 };
        self.keep_off_the_book(&mut intent)?;
        self.check_funds(account, &intent, qty, None)?;
        let origin = Origin { connection: Some(connection), group: Some(group), extra, ..Origin::default() };
        self.enter_as(account, intent, origin)?;
        Ok(Sent::OnItsWay)
    }

    /// Cancels a quote that was confirmed late if another one has replaced it.
    pub(super) fn cancel_second_quote(&mut self, account: usize, number: u64) {
        let known = &self.accounts[account];
        let Some(late) = known.open.get(&number).filter(|order| order.terms.is_quote) else { return };
        let group = |order: &Order| order.extra.as_ref().map(|extra| extra.mmp_group.clone());
        let has_another = known.open.values().any(|other| {
            other.number != number
                && other.terms.is_quote
                && (other.listing, other.side) == (late.listing, late.side)
                && group(other) == group(late)
        });
        if has_another {
            // If the queue is full, the next request for this side changes one; MMP covers both.
            let _ = self.send_cancel(account, number, None, None, CancelReason::UserRequest);
        }
    }

    /// Checks that a quote does not exceed the account's maximum quote quantity.
    fn check_quote_quantity(
        &self,
        account: usize,
        listing: usize,
        qty: Qty,
        group: &str,
    ) -> Result<(), Fault> {
        let (known, market) = self.listed(listing);
        let limit = self.guard(account, known.index, group).and_then(|guard| guard.quote_quantity);
        let amount = match known.contract.style {
            Style::Inverse => known.contract.value(qty, market.mark),
            _ => known.contract.amount(qty),
        };
        match limit {
            Some(limit) if amount > limit => {
                Err(Fault::because(ErrorCode::InvalidAmount, "above max_quote_quantity"))
            }
            _ => Ok(()),
        }
    }

    /// Records the outcome of a quote that the log confirms.
    pub(super) fn answer_quote(
        &mut self,
        account: usize,
        group: u64,
        pending: &Pending,
        outcome: Result<Option<u64>, Fault>,
        changes: &Changes,
    ) {
        let listing = match pending.work {
            Work::Place(intent) | Work::Edit { intent, .. } => Some((intent.listing, intent.side)),
            Work::Cancel { number, .. } => {
                self.accounts[account].order(number).map(|order| (order.listing, order.side))
            }
        };
        if let Some(quoting) = self.groups.get_mut(&group).and_then(|group| group.quoting.as_mut()) {
            match outcome {
                Ok(number) => {
                    quoting.orders.extend(number);
                    let own = changes.trades.iter().filter(|trade| Some(trade.order) == number);
                    quoting.trades.extend(own.cloned());
                }
                Err(fault) => {
                    let (place, side) = listing.unwrap_or((0, Side::Buy));
                    quoting.errors.push(QuoteError {
                        instrument: self.settings.listings[place].name.clone(),
                        side,
                        set_id: pending
                            .extra
                            .as_ref()
                            .map_or_else(String::new, |extra| extra.quote_set_id.clone()),
                        entry_id: pending
                            .extra
                            .as_ref()
                            .map_or_else(String::new, |extra| extra.quote_entry_id.clone()),
                        fault,
                    });
                }
            }
        }
        self.finish_of_group(group, None);
    }

    pub(super) fn quoting_result(&self, group: &Group) -> Vec<u8> {
        let Some(quoting) = &group.quoting else { return b"{}".to_vec() };
        let errors = list(&quoting.errors, |error, out| {
            let message = match error.fault.limit {
                Some(limit) => format!("{} {limit}", error.fault.code.message()),
                None => error.fault.code.message().to_owned(),
            };
            let reason = Some(error.fault.reason).filter(|reason| !reason.is_empty());
            let fault = Object::new()
                .with("code", error.fault.code.code())
                .with("message", Text::new(&message))
                .with("data", reason.map(|reason| Object::new().with("reason", Text::new(reason)).json()));
            let side = if error.side == Side::Buy { "bid" } else { "ask" };
            Object::new()
                .with("instrument_name", Text::new(&error.instrument))
                .with("side", Text::new(side))
                .with("quote_set_id", Text::new(&error.set_id))
                .with("error", fault.json())
                .json()
                .write(out);
        });
        let account = &self.accounts[group.account];
        let mut result = Object::new()
            .with("errors", Json(errors))
            .with("errors_count", quoting.errors.len() as u64)
            .with("orders_count", quoting.orders.len() as u64)
            .with("trades_count", quoting.trades.len() as u64);
        if group.is_detailed {
            let orders = quoting.orders.iter().filter_map(|number| account.order(*number));
            result = result
                .with("orders", Json(list(orders, |order, out| self.write_order(order, out))))
                .with("trades", Json(list(&quoting.trades, |trade, out| self.write_user_trade(trade, out))));
        }
        result.end()
    }

    /// `private/cancel_quotes`: cancels the quotes selected by `cancel_type`; the result is their number.
    pub(super) fn cancel_quotes(&mut self, account: usize, request: &Request<'_>, to: &ReplyTo) -> Answer {
        let asked: CancelQuotes<'_> = request.params()?;
        let needed = |name: &'static str, text: Option<Text<'_>>| {
            text.map(|text| text.to_cow().into_owned()).ok_or(Fault::param(name, "value required"))
        };
        let currency = || asked.currency.map_or_else(|| "any".to_owned(), |text| text.to_cow().into_owned());
        let front = &*self;
        let listings = &front.settings.listings;
        let is_meant: Box<dyn Fn(&Order) -> bool + '_> = match &*asked.cancel_type.to_cow() {
            "all" => Box::new(|_| true),
            "quote_set_id" => {
                let id = needed("quote_set_id", asked.quote_set_id)?;
                Box::new(move |order| order.extra.as_ref().is_some_and(|extra| extra.quote_set_id == id))
            }
            "instrument" => {
                let place = front.find_listing(&needed("instrument_name", asked.instrument_name)?)?;
                Box::new(move |order| order.listing == place)
            }
            "instrument_kind" => {
                let kind = asked.kind.ok_or(Fault::param("kind", "value required"))?;
                let currency = currency();
                Box::new(move |order| listings[order.listing].is_of(Some(kind), &currency))
            }
            "currency" => {
                let currency = needed("currency", asked.currency)?;
                Box::new(move |order| listings[order.listing].is_of(None, &currency))
            }
            "currency_pair" => {
                let pair = needed("currency_pair", asked.currency_pair)?;
                Box::new(move |order| front.is_pair(order.listing, &pair))
            }
            "delta" => {
                let limit = |name, limit: Option<Decimal>| {
                    let limit = limit.ok_or(Fault::param(name, "value required"))?;
                    Ok::<f64, Fault>(as_float(decimal_money(limit)))
                };
                let (min, max) = (limit("min_delta", asked.min_delta)?, limit("max_delta", asked.max_delta)?);
                let currency = currency();
                Box::new(move |order| {
                    let found = front.sensitivities(order.listing);
                    found.is_some_and(|found| (min..=max).contains(&found.delta))
                        && listings[order.listing].is_of(None, &currency)
                })
            }
            _ => return Err(Fault::param("cancel_type", "no such type")),
        };
        let quotes = front.accounts[account].open.values().filter(|order| order.terms.is_quote);
        let numbers: Vec<u64> = quotes.filter(|order| is_meant(order)).map(|order| order.number).collect();
        drop(is_meant);
        self.freeze_quotes_where(account, asked.freeze_quotes);
        let group = self.cancel_all_of(account, &numbers, Vec::new(), asked.detailed, to)?;
        Ok(group.map(|group| self.group_result(&group)))
    }

    /// Rejects quotes for a second if a cancel requests it.
    pub(super) fn freeze_quotes(&mut self, account: usize, params: &Value<'_>) -> Result<(), Fault> {
        self.freeze_quotes_where(account, param(params, "freeze_quotes")?.unwrap_or(false));
        Ok(())
    }

    pub(super) fn freeze_quotes_where(&mut self, account: usize, is_asked: bool) {
        if is_asked {
            self.accounts[account].quotes_frozen_ms = self.now_ms() + FREEZE_MS;
        }
    }

    /// Cancels quotes whose connection has ended, whatever its cancel on disconnect setting; after a restart
    /// that is all of them. Repeated until none is left, also if the queue is full.
    pub(super) fn cancel_orphaned_quotes(&mut self) {
        for account in std::mem::take(&mut self.orphaned) {
            let open = self.accounts[account].open.values();
            let orphans: Vec<u64> =
                open.filter(|order| self.is_orphan(order)).map(|order| order.number).collect();
            if !orphans.is_empty() {
                self.orphaned.insert(account);
            }
            for number in orphans {
                if !self.accounts[account].is_cancelling(number) {
                    let reason = CancelReason::CancelOnDisconnect;
                    let _ = self.send_cancel(account, number, None, None, reason);
                }
            }
        }
    }

    /// Returns true for a quote whose connection has ended.
    fn is_orphan(&self, order: &Order) -> bool {
        let is_here = || order.connection.is_some_and(|number| self.connections.contains_key(&number));
        order.terms.is_quote && !is_here()
    }

    /// Marks an account if its changed orders include quotes of an ended connection, to cancel them too.
    pub(super) fn note_orphans(&mut self, account: usize, changed: &[u64]) {
        let open = &self.accounts[account].open;
        let mut changed = changed.iter().filter_map(|number| open.get(number));
        if self.is_live && changed.any(|order| self.is_orphan(order)) {
            self.orphaned.insert(account);
        }
    }
}

/// Immediate outcome of a quote.
enum Sent {
    /// Sent; the log confirms it.
    OnItsWay,
    /// Unchanged.
    AsItIs(u64),
    /// Nothing to cancel.
    Nothing,
}

fn quotes_of(asked: &MassQuote<'_>) -> Result<Vec<Quote>, Fault> {
    let text = |name: &'static str, text: Text<'_>| match text.to_cow() {
        text if text.chars().count() <= TEXT_LEN_MAX => Ok(text.into_owned()),
        _ => Err(Fault::param(name, "at most 64 characters")),
    };
    let (quote_id, mmp_group) = (text("quote_id", asked.quote_id)?, text("mmp_group", asked.mmp_group)?);
    let mut found = Vec::new();
    for entry in asked.quotes.iter() {
        let entry = entry.map_err(|_| Fault::param("quotes", "value must be a list of quotes"))?;
        let instrument = text("instrument_name", entry.instrument_name)?;
        let quote_set_id = text("quote_set_id", entry.quote_set_id)?;
        for (terms, side) in [(entry.bid, Side::Buy), (entry.ask, Side::Sell)] {
            let Some(QuoteSide { price, amount, post_only, reject_post_only }) = terms else { continue };
            found.push(Quote {
                instrument: instrument.clone(),
                side,
                amount,
                contracts: None,
                price,
                is_post_only: post_only,
                rejects_post_only: reject_post_only,
                extra: Extra {
                    quote_id: quote_id.clone(),
                    quote_set_id: quote_set_id.clone(),
                    mmp_group: mmp_group.clone(),
                    ..Extra::default()
                },
            });
        }
    }
    match found.len() {
        0 => Err(Fault::param("quotes", "value must have a bid or an ask")),
        1..=QUOTES_MAX => Ok(found),
        _ => Err(ErrorCode::TooManyQuotes.into()),
    }
}
