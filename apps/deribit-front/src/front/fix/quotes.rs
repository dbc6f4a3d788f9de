//! Market maker quotes and market maker protection over FIX.

use tickpath_deribit::codes::{CancelReason, OrderState};
use tickpath_deribit::error_code::ErrorCode;
use tickpath_fix::deribit::{
    MassQuote, MassQuoteAck, ProtectionLimits, ProtectionReset, ProtectionResult, QuoteCancel, QuoteEntry,
    QuoteResult, SideCode,
};
use tickpath_fix::session::Refusal;
use tickpath_fix::{Body, Decimal as FixDecimal, FieldError, Group, Message, tag};
use tickpath_types::{Nanos, Side};

use super::orders::{Instructions, Outcome, kind_of};
use super::reports::{SUCCESS, contracts};
use super::{
    Caller, Front, Outgoing, check_id, decimal_of, figure_of, missing, number_of, out_of_range, text,
    words_of, written,
};
use crate::fault::Fault;
use crate::front::protection::SECONDS_MAX;
use crate::front::quotes::{QUOTES_MAX, Quote};
use crate::labels::LABEL_LEN_MAX;
use crate::listing::{Listing, decimal_money};
use crate::order::{Extra, Order, UserTrade};
use crate::pending::{FixKind, FixRequest, QuoteError, Quoting};
use crate::record::Protection;

/// QuoteCancelType (298).
const OF_SYMBOL: u64 = 1;
const OF_SECURITY_TYPE: u64 = 2;
const ALL: u64 = 4;
const OF_CURRENCY: u64 = 5;
const OF_SET: u64 = 6;
const OF_DELTAS: u64 = 7;
/// QuoteStatus (297).
const ACCEPTED: u64 = 0;
const REJECTED: u64 = 5;
/// QuoteEntryType (9020).
const ORDER: u64 = 0;
const TRADE: u64 = 1;
const ERROR: u64 = 2;
/// Default quote currency of an index.
const SECONDARY_DEFAULT: &str = "USD";

impl Front {
    pub(super) fn mass_quote_by_fix(&mut self, caller: Caller, message: &Message<'_>) -> Result<(), Refusal> {
        let request = MassQuote::decode(message)?;
        request.check()?;
        let quotes = quotes_of(&request)?;
        let asked = FixRequest {
            client_id: request.quote_id.to_owned(),
            ..FixRequest::of(caller.sequence, FixKind::Quote)
        };
        let valid_until = request.valid_until_time.map(|time| time.0 / 1_000_000);
        self.do_by_fix(caller, asked, |front, to| {
            front.check_quoting(caller.account, caller.number, valid_until)?;
            match quotes.len() {
                0 => return Err(Fault::because(ErrorCode::InvalidArguments, "no bid and no offer")),
                1..=QUOTES_MAX => {}
                _ => return Err(ErrorCode::TooManyQuotes.into()),
            }
            let group = front.quote_all(caller.account, quotes, true, to);
            front.finish_of_group(group, None);
            Ok(Outcome::Later)
        });
        Ok(())
    }

    /// Writes the outcome of a mass quote.
    pub(super) fn quote_ack(&self, account: usize, quote_id: &str, quoting: &Quoting) -> Option<Outgoing> {
        let known = &self.accounts[account];
        let orders: Vec<(&Order, String)> = quoting
            .orders
            .iter()
            .filter_map(|number| known.order(*number))
            .map(|order| (order, order.id(&self.settings.listings[order.listing])))
            .collect();
        let trades: Vec<(&UserTrade, String, String)> = quoting
            .trades
            .iter()
            .map(|trade| {
                let listing = &self.settings.listings[trade.listing];
                let order = known.order(trade.order).map(|order| order.id(listing));
                (trade, trade.public.id(listing), order.unwrap_or_default())
            })
            .collect();
        let words: Vec<(&QuoteError, String)> =
            quoting.errors.iter().map(|error| (error, words_of(&error.fault))).collect();
        let mut entries: Vec<QuoteResult<'_>> = Vec::new();
        entries.extend(
            orders.iter().map(|(order, id)| order_entry(&self.settings.listings[order.listing], order, id)),
        );
        entries.extend(
            trades.iter().map(|(trade, id, order)| {
                trade_entry(&self.settings.listings[trade.listing], trade, id, order)
            }),
        );
        entries.extend(words.iter().map(|(error, words)| error_entry(error, words)));
        written(&MassQuoteAck {
            status: ACCEPTED,
            quote_id: text(quote_id),
            entries: Group::of(&entries),
            ..MassQuoteAck::default()
        })
    }

    pub(super) fn quotes_refused(&self, asked: &FixRequest, fault: &Fault, words: &str) -> Option<Outgoing> {
        written(&MassQuoteAck {
            status: REJECTED,
            quote_id: text(&asked.client_id),
            reject_reason: Some(match fault.code {
                ErrorCode::InvalidOrUnsupportedInstrument => 1,
                ErrorCode::BookClosed | ErrorCode::SettlementInProgress => 2,
                ErrorCode::TooManyQuotes => 3,
                ErrorCode::TimedOut => 4,
                ErrorCode::CodNotEnabled | ErrorCode::QuotesFrozen | ErrorCode::MmpTrigger => 9,
                _ => 99,
            }),
            text: Some(words),
            ..MassQuoteAck::default()
        })
    }

    pub(super) fn cancel_quotes_by_fix(
        &mut self,
        caller: Caller,
        message: &Message<'_>,
    ) -> Result<(), Refusal> {
        let request = QuoteCancel::decode(message)?;
        let cancel_type = request.cancel_type.unwrap_or(ALL);
        if !(cancel_type == ALL || (OF_SYMBOL..=OF_DELTAS).contains(&cancel_type) && cancel_type != 3) {
            return Err(out_of_range(tag::QUOTE_CANCEL_TYPE).into());
        }
        let needs = |wanted: &[u64], given: bool, tag| match wanted.contains(&cancel_type) && !given {
            true => Err(missing(tag)),
            false => Ok(()),
        };
        needs(&[OF_SYMBOL], request.symbol.is_some(), tag::SYMBOL)?;
        needs(&[OF_SECURITY_TYPE], request.security_type.is_some(), tag::SECURITY_TYPE)?;
        needs(&[OF_SECURITY_TYPE, OF_CURRENCY], request.currency.is_some(), tag::CURRENCY)?;
        needs(&[OF_SET], request.set_id.is_some(), tag::QUOTE_SET_ID)?;
        let asked = FixRequest {
            client_id: request.message_id.unwrap_or_default().to_owned(),
            ..FixRequest::of(caller.sequence, FixKind::CancelQuotes(cancel_type))
        };
        self.do_by_fix(caller, asked, |front, to| {
            let numbers = front.quotes_meant(caller.account, cancel_type, &request)?;
            front.freeze_quotes_where(caller.account, request.freeze_quotes == Some(true));
            front.cancel_all_of(caller.account, &numbers, Vec::new(), true, to)
        });
        Ok(())
    }

    fn quotes_meant(
        &self,
        account: usize,
        cancel_type: u64,
        request: &QuoteCancel<'_>,
    ) -> Result<Vec<u64>, Fault> {
        if cancel_type == OF_DELTAS {
            return Err(Fault::because(
                ErrorCode::NotImplemented,
                "quotes by delta are cancelled by JSON-RPC alone",
            ));
        }
        let listing = match request.symbol.filter(|_| cancel_type == OF_SYMBOL) {
            Some(symbol) => Some(self.find_listing(symbol)?),
            None => None,
        };
        let kind = match request.security_type.filter(|_| cancel_type == OF_SECURITY_TYPE) {
            Some(name) => Some(kind_of(name).ok_or(Fault::param("kind", "no such kind"))?),
            None => None,
        };
        let of_currency = [OF_SECURITY_TYPE, OF_CURRENCY].contains(&cancel_type);
        let currency = request.currency.filter(|_| of_currency).unwrap_or("any");
        let set_id = request.set_id.filter(|_| cancel_type == OF_SET);
        let is_meant = |order: &&Order| {
            order.terms.is_quote
                && listing.is_none_or(|listing| order.listing == listing)
                && self.settings.listings[order.listing].is_of(kind, currency)
                && set_id.is_none_or(|id| order.extra.as_ref().is_some_and(|extra| extra.quote_set_id == id))
        };
        Ok(self.accounts[account].open.values().filter(is_meant).map(|order| order.number).collect())
    }

    /// Returns the index of two currencies.
    fn index_of(&self, currency: &str, secondary: Option<&str>) -> Result<usize, Fault> {
        let name = format!("{currency}_{}", secondary.unwrap_or(SECONDARY_DEFAULT)).to_lowercase();
        let place = self.indices.iter().position(|index| index.name == name);
        place.ok_or(Fault::param("index_name", "no index has these currencies"))
    }

    pub(super) fn protection_limits(&mut self, caller: Caller, message: &Message<'_>) -> Result<(), Refusal> {
        let request = ProtectionLimits::decode(message)?;
        check_id(request.request_id, tag::PROTECTION_REQUEST_ID)?;
        let asks = request.interval_s.is_none()
            && request.frozen_s.is_none()
            && request.max_quote_quantity.is_none()
            && request.qty_limit.or(request.delta_limit).or(request.vega_limit).is_none();
        if asks {
            let limits = self.written_limits(caller.account, &request);
            let limits = limits.unwrap_or_else(|fault| protection_result(request.request_id, Err(fault)));
            self.send_fix(caller.number, limits);
            return Ok(());
        }
        let protection = self.protection_of(caller.account, &request)?;
        let done = self.index_of(request.currency, request.secondary_currency).and_then(|index| {
            if request.vega_limit.is_some_and(|limit| limit.normalized().mantissa() != 0) {
                return Err(Fault::because(ErrorCode::NotImplemented, "vega_limit is set by JSON-RPC alone"));
            }
            self.check_groups(caller.account, index, &protection.group)?;
            let index_name = self.indices[index].name.clone();
            self.protect(caller.account, index, Protection { index: index_name, ..protection });
            Ok(())
        });
        self.send_fix(caller.number, protection_result(request.request_id, done));
        Ok(())
    }

    fn protection_of(
        &self,
        account: usize,
        request: &ProtectionLimits<'_>,
    ) -> Result<Protection, FieldError> {
        let seconds = |seconds: u64, tag| match seconds <= SECONDS_MAX {
            true => Ok(seconds),
            false => Err(out_of_range(tag)),
        };
        let limit = |limit: Option<FixDecimal>, tag| -> Result<Option<String>, FieldError> {
            let Some(limit) = limit else { return Ok(None) };
            let limit = number_of(limit, tag)?;
            if limit.is_negative() {
                return Err(out_of_range(tag));
            }
            Ok(Some(limit).filter(|limit| !limit.is_zero()).map(|limit| decimal_money(limit).to_string()))
        };
        let interval_s = request.interval_s.ok_or(missing(tag::INTERVAL_LENGTH))?;
        let frozen = request.frozen_s.ok_or(missing(tag::FROZEN_LIMIT))?.normalized();
        let frozen_s = u64::try_from(frozen.mantissa()).ok().filter(|_| frozen.scale() == 0);
        Ok(Protection {
            account: self.accounts[account].name.clone(),
            index: String::new(),
            group: request.mmp_group.unwrap_or_default().to_owned(),
            interval_s: seconds(interval_s, tag::INTERVAL_LENGTH)?,
            frozen_s: seconds(frozen_s.ok_or(out_of_range(tag::FROZEN_LIMIT))?, tag::FROZEN_LIMIT)?,
            quantity: limit(request.qty_limit, tag::PROTECTION_QTY_LIMIT)?,
            delta: limit(request.delta_limit, tag::PROTECTION_DELTA_LIMIT)?,
            vega: None,
            quote_quantity: limit(request.max_quote_quantity, tag::MAX_QUOTE_QUANTITY)?,
        })
    }

    fn written_limits(
        &self,
        account: usize,
        request: &ProtectionLimits<'_>,
    ) -> Result<Option<Outgoing>, Fault> {
        let index = self.index_of(request.currency, request.secondary_currency)?;
        let group = request.mmp_group.unwrap_or_default();
        let guard = self.guard(account, index, group);
        let guard = guard.ok_or(Fault::because(ErrorCode::BadArguments, "no limits are set"))?;
        let limit = |limit: Option<_>| Some(limit.map_or(FixDecimal::ZERO, figure_of));
        Ok(written(&ProtectionLimits {
            qty_limit: limit(guard.quantity),
            delta_limit: limit(guard.delta),
            frozen_s: Some(FixDecimal::from((guard.frozen_ms / 1_000) as i64)),
            interval_s: Some(guard.interval_ms / 1_000),
            max_quote_quantity: guard.quote_quantity.map(figure_of),
            ..*request
        }))
    }

    pub(super) fn protection_reset(&mut self, caller: Caller, message: &Message<'_>) -> Result<(), Refusal> {
        let request = ProtectionReset::decode(message)?;
        check_id(request.request_id, tag::PROTECTION_REQUEST_ID)?;
        let group = request.mmp_group.unwrap_or_default();
        let done = self.index_of(request.currency, request.secondary_currency);
        let done = done.and_then(|index| self.reset_group(caller.account, index, group));
        self.send_fix(caller.number, protection_result(request.request_id, done));
        Ok(())
    }
}

fn protection_result(request_id: &str, done: Result<(), Fault>) -> Option<Outgoing> {
    let words = done.as_ref().err().map(words_of);
    written(&ProtectionResult {
        request_id,
        is_done: done.is_ok(),
        text: Some(words.as_deref().unwrap_or(SUCCESS)),
    })
}

/// Returns the quoted sides in request order.
fn quotes_of(request: &MassQuote<'_>) -> Result<Vec<Quote>, FieldError> {
    let checked = |text: &str, tag| match text.chars().count() <= LABEL_LEN_MAX {
        true => Ok(text.to_owned()),
        false => Err(out_of_range(tag)),
    };
    let quote_id = checked(request.quote_id, tag::QUOTE_ID)?;
    let mmp_group = checked(request.mmp_group, tag::MMP_GROUP)?;
    let mut quotes = Vec::new();
    for set in request.sets.iter() {
        let set = set?;
        let quote_set_id = checked(set.id, tag::QUOTE_SET_ID)?;
        for entry in set.entries.iter() {
            let entry = entry?;
            let extra = Extra {
                quote_id: quote_id.clone(),
                quote_set_id: quote_set_id.clone(),
                quote_entry_id: checked(entry.id, tag::QUOTE_ENTRY_ID)?,
                mmp_group: mmp_group.clone(),
                ..Extra::default()
            };
            quotes.extend(side_of(&entry, Side::Buy, &extra)?);
            quotes.extend(side_of(&entry, Side::Sell, &extra)?);
        }
    }
    Ok(quotes)
}

/// Returns one side of a quote, if present.
fn side_of(entry: &QuoteEntry<'_>, side: Side, extra: &Extra) -> Result<Option<Quote>, FieldError> {
    let (price, size, price_tag, size_tag) = match side {
        Side::Buy => (entry.bid_px, entry.bid_size, tag::BID_PX, tag::BID_SIZE),
        Side::Sell => (entry.offer_px, entry.offer_size, tag::OFFER_PX, tag::OFFER_SIZE),
    };
    if price.is_none() && size.is_none() {
        return Ok(None);
    }
    let instructions = Instructions::read(entry.exec_inst)?;
    Ok(Some(Quote {
        instrument: entry.symbol.to_owned(),
        side,
        amount: None,
        contracts: size.map(|size| number_of(size, size_tag)).transpose()?,
        price: price.map(|price| number_of(price, price_tag)).transpose()?,
        is_post_only: instructions.is_post_only,
        rejects_post_only: instructions.rejects_post_only,
        extra: extra.clone(),
    }))
}

fn order_entry<'a>(listing: &'a Listing, order: &'a Order, id: &'a str) -> QuoteResult<'a> {
    let extra = order.extra.as_deref();
    let price = Some(decimal_of(listing.price(order.price)));
    let size = Some(contracts(listing, order.leaves()));
    let entry = QuoteResult {
        id: extra.map(|extra| extra.quote_entry_id.as_str()).filter(|id| !id.is_empty()).unwrap_or("-"),
        kind: Some(ORDER),
        set_id: extra.and_then(|extra| text(&extra.quote_set_id)),
        status: Some(match order.state {
            OrderState::Filled => 20,
            OrderState::Cancelled if order.cancel_reason == Some(CancelReason::MmpTrigger) => 18,
            OrderState::Cancelled => 17,
            OrderState::Rejected => REJECTED,
            _ if order.is_replaced => 19,
            _ => 21,
        }),
        symbol: Some(&listing.name),
        side: Some(SideCode::from(order.side)),
        order_id: Some(id),
        transact_time: Some(Nanos::from_millis(order.updated_ms)),
        ..QuoteResult::default()
    };
    match order.side {
        Side::Buy => QuoteResult { bid_px: price, bid_size: size, ..entry },
        Side::Sell => QuoteResult { offer_px: price, offer_size: size, ..entry },
    }
}

fn trade_entry<'a>(
    listing: &'a Listing,
    trade: &UserTrade,
    id: &'a str,
    order_id: &'a str,
) -> QuoteResult<'a> {
    let price = Some(decimal_of(listing.price(trade.public.price)));
    let entry = QuoteResult {
        id,
        kind: Some(TRADE),
        symbol: Some(&listing.name),
        side: Some(SideCode::from(trade.side)),
        traded_qty: Some(contracts(listing, trade.public.qty)),
        order_id: text(order_id),
        transact_time: Some(Nanos::from_millis(trade.public.at_ms)),
        ..QuoteResult::default()
    };
    match trade.side {
        Side::Buy => QuoteResult { bid_px: price, ..entry },
        Side::Sell => QuoteResult { offer_px: price, ..entry },
    }
}

fn error_entry<'a>(error: &'a QuoteError, words: &'a str) -> QuoteResult<'a> {
    QuoteResult {
        id: text(&error.entry_id).unwrap_or("-"),
        kind: Some(ERROR),
        status: Some(REJECTED),
        symbol: text(&error.instrument),
        side: Some(SideCode::from(error.side)),
        reject_code: Some(error.fault.code.code().unsigned_abs()),
        text: Some(words),
        ..QuoteResult::default()
    }
}
