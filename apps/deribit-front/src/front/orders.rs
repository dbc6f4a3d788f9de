//! What an account may ask of its orders.

use tickpath_deribit::codes::{Kind, OrderFilter};
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::messages::GetOrderStateByLabel;
use tickpath_deribit::request::Request;
use tickpath_deribit::scan::Value;

use super::history::number_of;
use super::{Answer, Front};
use crate::fault::Fault;
use crate::json::{get, list, member, text_of};
use crate::order::Order;

/// Which orders a request is about.
#[derive(Default)]
pub(super) struct Selection {
    pub(super) listing: Option<usize>,
    /// Any of these; all where there are none.
    pub(super) currencies: Vec<String>,
    pub(super) pair: Option<String>,
    pub(super) kind: Option<Kind>,
    pub(super) filter: Option<OrderFilter>,
    pub(super) label: Option<String>,
}

impl Front {
    pub(super) fn selection(&self, request: &Request<'_>) -> Result<Selection, Fault> {
        let params: Value<'_> = request.params()?;
        let listing = match text_of(&params, "instrument_name") {
            Some(name) => Some(self.find_listing(&name)?),
            None => None,
        };
        let mut currencies = Vec::new();
        if let Some(value) = member(&params, "currency") {
            let mut scanner = value.scanner();
            if value.text().starts_with('[') && scanner.open_array().is_ok() {
                while let Ok(true) = scanner.next_element() {
                    let Ok(text) = scanner.text() else { break };
                    currencies.push(text.to_cow().into_owned());
                }
            } else if let Some(currency) = text_of(&params, "currency") {
                currencies.push(currency);
            }
        }
        Ok(Selection {
            listing,
            currencies,
            pair: text_of(&params, "currency_pair"),
            kind: get(&params, "kind"),
            filter: get(&params, "type"),
            label: text_of(&params, "label"),
        })
    }

    pub(super) fn is_selected(&self, selection: &Selection, order: &Order) -> bool {
        let listing = &self.settings.listings[order.listing];
        let kind = selection.kind;
        let is_currency = |currency: &String| listing.is_of(kind, currency);
        let is_pair = |pair: &String| self.is_pair(order.listing, pair);
        selection.listing.is_none_or(|wanted| wanted == order.listing)
            && (selection.currencies.is_empty() || selection.currencies.iter().any(is_currency))
            && selection.pair.as_ref().is_none_or(is_pair)
            && listing.is_of(kind, "any")
            && order.passes(selection.filter)
            && selection.label.as_deref().is_none_or(|label| self.labels.name(order.terms.label) == label)
    }

    /// True for an instrument of a pair, as `btc_usd`.
    pub(super) fn is_pair(&self, place: usize, pair: &str) -> bool {
        let listing = &self.settings.listings[place];
        format!("{}_{}", listing.base, listing.quote).eq_ignore_ascii_case(pair)
            || self.indices[listing.index].name.eq_ignore_ascii_case(pair)
    }

    pub(super) fn open_orders(&self, account: usize, request: &Request<'_>) -> Answer {
        let selection = self.selection(request)?;
        let account = &self.accounts[account];
        let orders = account.open.values().chain(account.waiting.values());
        let orders = orders.filter(|order| self.is_selected(&selection, order));
        Ok(Some(list(orders, |order, out| self.write_order(order, out))))
    }

    pub(super) fn order_state_by_label(&self, account: usize, request: &Request<'_>) -> Answer {
        let GetOrderStateByLabel { currency, label } = request.params()?;
        let (currency, label) = (currency.to_cow(), label.map(|label| label.to_cow()).unwrap_or_default());
        let account = &self.accounts[account];
        let orders =
            account.open.values().chain(account.waiting.values()).chain(account.closed.iter()).filter(
                |order| {
                    self.labels.name(order.terms.label) == label
                        && self.settings.listings[order.listing].is_of(None, &currency)
                },
            );
        Ok(Some(list(orders, |order, out| self.write_order(order, out))))
    }

    /// The number of an order that the account has, or had not long ago.
    pub(super) fn order_number(&self, account: usize, id: &str) -> Result<u64, Fault> {
        let number = number_of(id).ok_or(Fault::new(ErrorCode::InvalidOrderId))?;
        match self.accounts[account].order(number) {
            Some(order) if order.id(&self.settings.listings[order.listing]) == id => Ok(number),
            _ => Err(ErrorCode::OrderNotFound.into()),
        }
    }
}
