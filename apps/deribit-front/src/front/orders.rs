//! Order query methods.

use tickpath_deribit::codes::{Kind, OrderFilter};
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::messages::GetOrderStateByLabel;
use tickpath_deribit::method::Method;
use tickpath_deribit::request::Request;
use tickpath_deribit::scan::Value;

use super::history::number_of;
use super::{Answer, Front};
use crate::fault::Fault;
use crate::json::{list, member, param, text_param};
use crate::order::Order;

/// Orders selected by a request.
#[derive(Default)]
pub(super) struct Selection {
    pub(super) listing: Option<usize>,
    /// Any of these currencies; all currencies if empty.
    pub(super) currencies: Vec<String>,
    pub(super) pair: Option<String>,
    pub(super) kind: Option<Kind>,
    pub(super) filter: Option<OrderFilter>,
    pub(super) label: Option<String>,
}

impl Front {
    /// Reads the selection of a request; checks the types of its params and that required ones are present.
    pub(super) fn selection(&self, request: &Request<'_>) -> Result<Selection, Fault> {
        let params: Value<'_> = request.params()?;
        let listing = match text_param(&params, "instrument_name")? {
            Some(name) => Some(self.find_listing(&name)?),
            None => None,
        };
        let selection = Selection {
            listing,
            currencies: currencies(&params)?,
            pair: text_param(&params, "currency_pair")?,
            kind: param(&params, "kind")?,
            filter: param(&params, "type")?,
            label: text_param(&params, "label")?,
        };
        let needed = match request.method {
            Method::CancelByLabel => Some(("label", selection.label.is_some())),
            Method::GetOpenOrdersByLabel | Method::CancelAllByKindOrType => {
                Some(("currency", !selection.currencies.is_empty()))
            }
            Method::CancelAllByInstrument | Method::GetOpenOrdersByInstrument => {
                Some(("instrument_name", listing.is_some()))
            }
            Method::CancelAllByCurrency | Method::GetOpenOrdersByCurrency => {
                Some(("currency", selection.currencies.len() == 1))
            }
            Method::CancelAllByCurrencyPair => Some(("currency_pair", selection.pair.is_some())),
            _ => None,
        };
        match needed {
            Some((name, false)) => Err(Fault::param(name, "value required")),
            _ => Ok(selection),
        }
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

    /// Returns true for an instrument of a pair such as `btc_usd`.
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

    /// Returns the number of an open or recently closed order of the account.
    pub(super) fn order_number(&self, account: usize, id: &str) -> Result<u64, Fault> {
        let number = number_of(id).ok_or(Fault::new(ErrorCode::InvalidOrderId))?;
        match self.accounts[account].order(number) {
            Some(order) if order.id(&self.settings.listings[order.listing]) == id => Ok(number),
            _ => Err(ErrorCode::OrderNotFound.into()),
        }
    }
}

/// Reads one currency or a list of them; returns an empty list if none is named.
fn currencies(params: &Value<'_>) -> Result<Vec<String>, Fault> {
    let wrong = || Fault::param("currency", "value must be a currency or a list of them");
    let Some(value) = member(params, "currency") else { return Ok(Vec::new()) };
    let mut scanner = value.scanner();
    if !value.text().starts_with('[') {
        return text_param(params, "currency").map(|currency| currency.into_iter().collect());
    }
    scanner.open_array().map_err(|_| wrong())?;
    let mut found = Vec::new();
    while scanner.next_element().map_err(|_| wrong())? {
        let text = scanner.text().map_err(|_| wrong())?;
        found.push(text.to_cow().into_owned());
    }
    if found.is_empty() { Err(wrong()) } else { Ok(found) }
}
