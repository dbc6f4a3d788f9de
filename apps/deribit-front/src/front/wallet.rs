//! Transfers between accounts, and withdrawals. There is no blockchain behind them: an address is a name, and
//! withdrawn amounts leave the venue.

use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::field::Field;
use tickpath_deribit::method::Method;
use tickpath_deribit::number::Decimal;
use tickpath_deribit::request::Request;
use tickpath_deribit::scan::Value;
use tickpath_deribit::text::Text;
use tickpath_derivatives::Money;

use super::{Answer, Front};
use crate::fault::Fault;
use crate::json::{Json, Object, list, param, text_param};
use crate::ledger::{Cause, Entry};
use crate::listing::{decimal_money, figure};
use crate::record::{Exact, Record, Transfer};

/// Default and maximum number of elements in an answer.
const COUNT_DEFAULT: u64 = 10;
const COUNT_MAX: u64 = 1_000;
/// Maximum number of transfers kept; the oldest is dropped.
const TRANSFERS_MAX: usize = 10_000;
/// Maximum length of an address, in bytes.
const ADDRESS_LEN_MAX: usize = 128;

/// A completed transfer.
pub(super) struct Done {
    number: u64,
    at_ms: u64,
    transfer: Transfer,
}

impl Front {
    fn currency_of(&self, account: usize, params: &Value<'_>) -> Result<String, Fault> {
        let currency = text_param(params, "currency")?.ok_or(Fault::param("currency", "value required"))?;
        let currency = currency.to_uppercase();
        match self.currencies_of(account).contains(&currency) {
            true => Ok(currency),
            false => Err(Fault::param("currency", "the venue has no such currency")),
        }
    }

    /// Returns the deposit address of an account: a name that no chain accepts, as the venue has no wallet.
    pub(super) fn deposit_address(&self, account: usize, request: &Request<'_>) -> Answer {
        let currency = self.currency_of(account, &request.params()?)?;
        let address = format!("simulated-{}-{}", currency, self.accounts[account].name);
        let address = Object::new()
            .with("address", Text::new(&address))
            .with("creation_timestamp", crate::listing::Listing::CREATION_MS)
            .with("currency", Text::new(&currency))
            .with("requires_confirmation", false)
            .with("status", Text::new("ready"))
            .with("type", Text::new("deposit"));
        Ok(Some(address.end()))
    }

    /// Returns deposits or withdrawals, latest first.
    pub(super) fn payments(&self, account: usize, request: &Request<'_>) -> Answer {
        let params: Value<'_> = request.params()?;
        let currency = self.currency_of(account, &params)?;
        let is_deposits = request.method == Method::GetDeposits;
        let cause = if is_deposits { Cause::Deposit } else { Cause::Withdrawal };
        let entries = self.accounts[account].ledger.entries().rev();
        let wanted: Vec<&Entry> =
            entries.filter(|entry| entry.cause == cause && entry.currency == currency).collect();
        page(&params, &wanted, |entry, out| {
            let amount = if is_deposits { entry.change } else { -entry.change };
            let time = if is_deposits { "received_timestamp" } else { "created_timestamp" };
            payment(entry.number, &entry.address, &entry.currency, amount, (time, entry.at_ms), !is_deposits)
                .json()
                .write(out);
        })
    }

    pub(super) fn transfers(&self, account: usize, request: &Request<'_>) -> Answer {
        let params: Value<'_> = request.params()?;
        let currency = self.currency_of(account, &params)?;
        let name = &self.accounts[account].name;
        let is_own = |done: &&Done| {
            let Transfer { account, to, currency: of, .. } = &done.transfer;
            to.as_ref().is_some_and(|to| account == name || to == name) && *of == currency
        };
        let wanted: Vec<&Done> = self.transfers.iter().rev().filter(is_own).collect();
        page(&params, &wanted, |done, out| self.write_transfer(account, done, out))
    }

    fn write_transfer(&self, account: usize, done: &Done, out: &mut Vec<u8>) {
        let Transfer { account: from, to, currency, amount, .. } = &done.transfer;
        let is_sent = *from == self.accounts[account].name;
        let other = if is_sent { to.as_deref().unwrap_or_default() } else { from };
        Object::new()
            .with("id", done.number)
            .with("amount", figure(amount.0))
            .with("currency", Text::new(currency))
            .with("direction", Text::new(if is_sent { "payment" } else { "income" }))
            .with("other_side", Text::new(other))
            .with("state", Text::new("confirmed"))
            .with("type", Text::new("user"))
            .with("created_timestamp", done.at_ms)
            .with("updated_timestamp", done.at_ms)
            .json()
            .write(out);
    }

    /// Transfers an amount to another account, given by name or number, or out of the venue.
    pub(super) fn send_money(&mut self, account: usize, request: &Request<'_>) -> Answer {
        let params: Value<'_> = request.params()?;
        let currency = self.currency_of(account, &params)?;
        let amount = param::<Decimal>(&params, "amount")?.ok_or(Fault::param("amount", "value required"))?;
        let amount = decimal_money(amount);
        if amount <= Money::ZERO {
            return Err(Fault::param("amount", "value must be above 0"));
        }
        let is_withdrawal = request.method == Method::Withdraw;
        let name = if is_withdrawal { "address" } else { "destination" };
        let number = param::<u64>(&params, name).ok().flatten();
        let target = match number {
            Some(number) => number.to_string(),
            None => text_param(&params, name)?.ok_or(Fault::param(name, "value required"))?,
        };
        let to = match is_withdrawal {
            true if target.len() > ADDRESS_LEN_MAX => return Err(Fault::param(name, "value is too long")),
            true => None,
            false => {
                Some(self.account_of(&target).ok_or(Fault::param(name, "the venue has no such account"))?)
            }
        };
        if to == Some(account) {
            return Err(Fault::param(name, "value must be another account"));
        }
        self.check_storage()?;
        if self.figures_of(account, &currency, None).available() < amount {
            return Err(ErrorCode::NotEnoughFunds.into());
        }
        let named = |account: usize| self.accounts[account].name.clone();
        let record = Transfer {
            account: named(account),
            to: to.map(named),
            address: if is_withdrawal { target } else { String::new() },
            currency,
            amount: Exact(amount),
        };
        self.decide(&Record::Transfer(record));
        let mut out = Vec::new();
        match self.transfers.back() {
            Some(done) if is_withdrawal => {
                let Transfer { address, currency, amount, .. } = &done.transfer;
                let time = ("created_timestamp", done.at_ms);
                out = payment(done.number, address, currency, amount.0, time, true).end();
            }
            Some(done) => self.write_transfer(account, done, &mut out),
            None => {}
        }
        Ok(Some(out))
    }

    /// Finds an account by its user's name or by its number.
    fn account_of(&self, target: &str) -> Option<usize> {
        let is_meant = |account: &crate::account::Account| {
            account.name == *target || account.session.0.to_string() == *target
        };
        self.accounts.iter().position(is_meant)
    }

    pub(super) fn take_transfer(&mut self, transfer: &Transfer, at_ms: u64) {
        let Transfer { account, to, address, currency, amount } = transfer;
        let (from, to) = (self.account_named(account), to.as_deref().map(|to| self.account_named(to)));
        let cause = if to.is_some() { Cause::Transfer } else { Cause::Withdrawal };
        if let Some(from) = from {
            self.pay_in(from, cause, address, currency, -amount.0, at_ms);
        }
        if let Some(Some(to)) = to {
            self.pay_in(to, cause, "", currency, amount.0, at_ms);
        }
        self.transfers_done += 1;
        if self.transfers.len() == TRANSFERS_MAX {
            self.transfers.pop_front();
        }
        self.transfers.push_back(Done { number: self.transfers_done, at_ms, transfer: transfer.clone() });
    }
}

/// Writes a deposit or a withdrawal; a withdrawal has a fee of 0.
fn payment(
    number: u64,
    address: &str,
    currency: &str,
    amount: Money,
    (time, at_ms): (&str, u64),
    is_withdrawal: bool,
) -> Object {
    let null = || Json(b"null".to_vec());
    Object::new()
        .with("id", is_withdrawal.then_some(number))
        .with("address", Text::new(address))
        .with("amount", figure(amount))
        .with("confirmed_timestamp", is_withdrawal.then_some(at_ms))
        .with(time, at_ms)
        .with("currency", Text::new(currency))
        .with("fee", is_withdrawal.then_some(0_u64))
        .with("priority", is_withdrawal.then_some(0_u64))
        .with("state", Text::new("completed"))
        .with("transaction_id", null())
        .with("updated_timestamp", at_ms)
}

/// Writes a page of `count` elements after `offset`, and the total number.
fn page<T>(params: &Value<'_>, all: &[T], mut write: impl FnMut(&T, &mut Vec<u8>)) -> Answer {
    let count = param::<u64>(params, "count")?.unwrap_or(COUNT_DEFAULT);
    if !(1..=COUNT_MAX).contains(&count) {
        return Err(Fault::param("count", "value must be 1 to 1000"));
    }
    let offset = usize::try_from(param::<u64>(params, "offset")?.unwrap_or(0)).unwrap_or(usize::MAX);
    let shown = all.iter().skip(offset).take(count as usize);
    let data = list(shown, |element, out| write(element, out));
    Ok(Some(Object::new().with("count", all.len() as u64).with("data", Json(data)).end()))
}
