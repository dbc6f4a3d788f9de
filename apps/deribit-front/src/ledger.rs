//! The ledger of an account: all changes of its balances.

use std::collections::VecDeque;

use tickpath_deribit::field::Field;
use tickpath_deribit::text::Text;
use tickpath_derivatives::{Contract, Money};
use tickpath_types::{Price, Qty, Side};

use crate::json::{Json, Object};
use crate::listing::{Listing, figure};

/// Maximum number of entries kept; the oldest is dropped.
const ENTRIES_MAX: usize = 20_000;

/// Cause of a balance change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Trade,
    /// A trade of a liquidation order.
    Liquidation,
    Settlement,
    Delivery,
    /// A payment of the account's debt by the insurance fund.
    Bankruptcy,
    /// A change of the initial balance in the venue's file, or a withdrawal.
    Deposit,
    Withdrawal,
    /// A transfer to or from another account.
    Transfer,
}

impl Cause {
    /// Returns true for entries of the settlement history.
    pub(crate) const fn is_settlement(self) -> bool {
        matches!(self, Cause::Settlement | Cause::Delivery | Cause::Bankruptcy)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Cause::Trade => "trade",
            Cause::Liquidation => "liquidation",
            Cause::Settlement => "settlement",
            Cause::Delivery => "delivery",
            Cause::Bankruptcy => "bankruptcy",
            Cause::Deposit => "deposit",
            Cause::Withdrawal => "withdrawal",
            Cause::Transfer => "transfer",
        }
    }
}

/// One change of an account's balance in a currency.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Number within the account, from 1.
    pub(crate) number: u64,
    pub(crate) at_ms: u64,
    pub(crate) cause: Cause,
    /// Place of the instrument; none for an entry about the account.
    pub(crate) listing: Option<usize>,
    pub(crate) currency: String,
    pub(crate) side: Option<Side>,
    pub(crate) qty: Qty,
    pub(crate) price: Option<Price>,
    pub(crate) mark: Price,
    pub(crate) index: Money,
    /// Position after the change.
    pub(crate) position: i64,
    /// Change of the balance.
    pub(crate) change: Money,
    pub(crate) commission: Money,
    /// Funding included in the change.
    pub(crate) funding: Money,
    /// Profit since the last settlement, without funding.
    pub(crate) profit: Money,
    pub(crate) balance: Money,
    pub(crate) equity: Money,
    /// Ids as shown to users; empty for none.
    pub(crate) trade_id: String,
    pub(crate) order_id: String,
    /// Address of a withdrawal; empty otherwise.
    pub(crate) address: String,
}

impl Entry {
    /// Creates an entry without amounts.
    pub(crate) fn new(cause: Cause, at_ms: u64, currency: &str) -> Entry {
        Entry {
            number: 0,
            at_ms,
            cause,
            listing: None,
            currency: currency.to_owned(),
            side: None,
            qty: Qty::ZERO,
            price: None,
            mark: Price(0),
            index: Money::ZERO,
            position: 0,
            change: Money::ZERO,
            commission: Money::ZERO,
            funding: Money::ZERO,
            profit: Money::ZERO,
            balance: Money::ZERO,
            equity: Money::ZERO,
            trade_id: String::new(),
            order_id: String::new(),
            address: String::new(),
        }
    }

    /// Writes the entry for `private/get_transaction_log`.
    pub(crate) fn write(&self, listing: Option<&Listing>, account: (u64, &str), out: &mut Vec<u8>) {
        let money = |amount: Money| figure(amount);
        let signed = |contract: &Contract, size: i64| {
            Money(i128::from(size.signum()) * contract.amount(Qty(size.unsigned_abs())).0)
        };
        let side = self.side.map(|side| {
            let opens = self.position != 0 && (self.position > 0) == (side == Side::Buy);
            match (opens, side) {
                (true, Side::Buy) => "open buy",
                (true, Side::Sell) => "open sell",
                (false, Side::Buy) => "close buy",
                (false, Side::Sell) => "close sell",
            }
        });
        let id = |id: &String| (!id.is_empty()).then(|| Text::new(id).to_cow().into_owned());
        let (trade_id, order_id) = (id(&self.trade_id), id(&self.order_id));
        let is_settled = matches!(self.cause, Cause::Settlement);
        Object::new()
            .with("id", self.number)
            .with("timestamp", self.at_ms)
            .with("type", Text::new(self.cause.name()))
            .with("currency", Text::new(&self.currency))
            .with("instrument_name", listing.map(|listing| Text::new(&listing.name)))
            .with("side", Json(side.map_or(b"\"-\"".to_vec(), |side| format!("\"{side}\"").into_bytes())))
            .with("amount", listing.map(|listing| listing.amount(self.qty)))
            .with("contracts", listing.map(|listing| Json(listing.contracts(self.qty).into_bytes())))
            .with("price", self.price.zip(listing).map(|(price, listing)| listing.price(price)))
            .with("position", listing.map(|listing| money(signed(&listing.contract, self.position))))
            .with("mark_price", listing.filter(|_| self.mark.0 > 0).map(|listing| listing.price(self.mark)))
            .with("index_price", listing.map(|_| money(self.index)))
            .with("commission", money(self.commission))
            .with("change", money(self.change))
            .with("cashflow", money(self.change + self.commission))
            .with("interest_pl", Some(money(self.funding)).filter(|_| is_settled))
            .with("session_rpl", Some(money(self.profit)).filter(|_| is_settled))
            .with("balance", money(self.balance))
            .with("equity", money(self.equity))
            .with("trade_id", trade_id.as_deref().map(Text::new))
            .with("order_id", order_id.as_deref().map(Text::new))
            .with("user_seq", self.number)
            .with("user_id", account.0)
            .with("username", Text::new(account.1))
            .json()
            .write(out);
    }

    /// Writes the entry for `private/get_settlement_history_by_*`.
    pub(crate) fn write_settlement(&self, listing: Option<&Listing>, out: &mut Vec<u8>) {
        let position = listing.map(|listing| {
            let amount = listing.contract.amount(self.qty);
            if self.side == Some(Side::Sell) { -amount } else { amount }
        });
        let is_bankruptcy = self.cause == Cause::Bankruptcy;
        Object::new()
            .with("type", Text::new(self.cause.name()))
            .with("timestamp", self.at_ms)
            .with("instrument_name", listing.map(|listing| Text::new(&listing.name)))
            .with("position", position.map(figure))
            .with("mark_price", listing.filter(|_| self.mark.0 > 0).map(|listing| listing.price(self.mark)))
            .with("index_price", listing.map(|_| figure(self.index)))
            .with("profit_loss", figure(self.change))
            .with("session_profit_loss", figure(self.profit))
            .with("funding", listing.filter(|listing| listing.is_perpetual()).map(|_| figure(self.funding)))
            .with("funded", Some(figure(self.change)).filter(|_| is_bankruptcy))
            .json()
            .write(out);
    }
}

/// The entries of an account, oldest first.
#[derive(Default)]
pub(crate) struct Ledger {
    entries: VecDeque<Entry>,
    /// Numbers of the settlement entries, which are few compared to trades.
    settlements: VecDeque<u64>,
    last: u64,
}

impl Ledger {
    pub(crate) fn add(&mut self, mut entry: Entry) {
        self.last += 1;
        entry.number = self.last;
        if self.entries.len() == ENTRIES_MAX
            && let Some(gone) = self.entries.pop_front()
        {
            self.settlements.pop_front_if(|number| *number == gone.number);
        }
        if entry.cause.is_settlement() {
            self.settlements.push_back(entry.number);
        }
        self.entries.push_back(entry);
    }

    pub(crate) fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Returns the changes without a trade: settlements, deliveries and payments of the insurance fund.
    pub(crate) fn settlements(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        let first = self.entries.front().map_or(0, |entry| entry.number);
        self.settlements.iter().filter_map(move |number| self.entries.get((number - first) as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settlements_are_found_among_trades_and_go_with_the_oldest() {
        let mut ledger = Ledger::default();
        for number in 1..=ENTRIES_MAX as u64 + 3 {
            let cause = if number % 5_000 == 1 { Cause::Settlement } else { Cause::Trade };
            ledger.add(Entry::new(cause, number, "BTC"));
        }
        let found: Vec<u64> = ledger.settlements().map(|entry| entry.at_ms).collect();
        assert_eq!(found, [5_001, 10_001, 15_001, 20_001], "the first is no longer told");
        assert!(ledger.settlements().all(|entry| entry.at_ms == entry.number));
    }
}
