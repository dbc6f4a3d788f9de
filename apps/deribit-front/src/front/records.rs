//! Records: decisions of the front that are stored, and applied again after a restart.

use std::collections::VecDeque;

use tickpath_derivatives::Money;
use tickpath_types::{Price, Qty};

use super::Front;
use crate::market::FundingPaid;
use crate::rebase::{LogStart, Rebased, rebase};
use crate::record::{Exact, MarketPrices, Record, RecordError, Stamped};

/// Interval in milliseconds after which prices are recorded again even if unchanged: well below half a day.
const NOTE_MS: u64 = 3_600_000;

impl Front {
    /// Restores the lines from [`poll_records`](Front::poll_records). Must be called before the first log
    /// command. If the log may have lost commands, returns the replacement lines, to be stored before the
    /// venue accepts a command; stored tokens must then be deleted first, because they are not restored.
    ///
    /// # Errors
    /// [`RecordError`] naming the invalid line, or the instrument that has changed.
    pub fn recall(&mut self, lines: &[u8], log: LogStart) -> Result<Option<Rebased>, RecordError> {
        let mut records = Stamped::read_all(lines)?;
        let rebased = rebase(&mut records, log, self.now_ms());
        self.recalled = records.into();
        self.recall_terms()?;
        // Tokens do not depend on log commands.
        let (tokens, others) =
            std::mem::take(&mut self.recalled).into_iter().partition(|stamped| stamped.record.is_token());
        self.recalled = others;
        let tokens: VecDeque<Stamped> = tokens;
        tokens.iter().for_each(|stamped| self.carry_out(&stamped.record, stamped.at_ms));
        self.recall_until(0);
        Ok(rebased)
    }

    /// Returns the lines to be stored before their effects become visible.
    pub fn poll_records(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.record_lines)
    }

    /// Records the values that are otherwise recorded once a minute; called before the end.
    pub fn finish(&mut self) {
        if self.is_live {
            self.note_new_prices();
        }
    }

    /// Applies the records that were made when the log had at most `commands` commands.
    pub(super) fn recall_until(&mut self, commands: u64) {
        while let Some(stamped) = self.recalled.pop_front_if(|next| next.after <= commands) {
            self.recalled_ms = self.recalled_ms.max(stamped.at_ms);
            self.carry_out(&stamped.record, stamped.at_ms);
        }
    }

    /// Records a decision and applies it.
    pub(super) fn decide(&mut self, record: &Record) {
        self.write_down(record.clone());
        self.carry_out(record, self.now_ms());
    }

    /// Records a decision that is already applied.
    pub(super) fn write_down(&mut self, record: Record) {
        let stamped = Stamped { after: self.counters.commands.read(), at_ms: self.now_ms(), record };
        stamped.write(&mut self.record_lines);
    }

    fn carry_out(&mut self, record: &Record, at_ms: u64) {
        match record {
            Record::Prices { indices, markets } => self.take_prices(indices, markets, at_ms),
            Record::Settled => self.settle_all(at_ms),
            Record::Delivered { instrument, price } => {
                if let Some(place) = self.listing(instrument) {
                    self.deliver(place, Money::ratio((*price).into(), 10_000), at_ms);
                }
            }
            Record::CancelOnDisconnect { account, is_enabled } => {
                if let Some(account) = self.account_named(account) {
                    self.accounts[account].cancels_on_disconnect = *is_enabled;
                }
            }
            Record::Waits(order) => self.take_waiting(order, at_ms),
            Record::Trails { number, price } => self.take_trail(*number, Price(*price)),
            Record::WaitsNoMore { number } => {
                for account in &mut self.accounts {
                    account.waiting.remove(number);
                }
                self.forget_bounced(*number);
            }
            Record::HandedOver { number, qty, user_ref } => {
                self.take_handed(*number, Qty(*qty), *user_ref, true);
            }
            Record::LinksAsked { account, user_ref, link, linked } => {
                self.take_links_asked(account, *user_ref, link, linked);
            }
            Record::EnteredAgain { account, number, user_ref } => {
                if let Some(account) = self.account_named(account) {
                    self.accounts[account].again.insert(*user_ref, *number);
                }
            }
            Record::NeverAsked { account, user_ref } => {
                if let Some(account) = self.account_named(account) {
                    self.accounts[account].forget_asked(*user_ref);
                }
            }
            Record::Linked { account, number, link } => self.take_link(account, *number, link),
            Record::Protection(protection) => self.take_protection(protection),
            Record::Frozen { account, index, group, until_ms } => {
                self.take_freeze(account, index, group, *until_ms);
            }
            Record::MoneyTerms(terms) => self.take_terms(terms, at_ms),
            Record::Transfer(transfer) => self.take_transfer(transfer, at_ms),
            Record::Token(token) => self.take_token(token),
            Record::TokenEnds { digest } => self.auth.end(digest),
            Record::FixLogon { client_id, timestamp_ms } => self.take_fix_logon(client_id, *timestamp_ms),
            Record::LogLost { .. } => {}
            Record::LinkLost { number } => self.take_link_lost(*number, at_ms),
        }
    }

    pub(super) fn account_named(&self, name: &str) -> Option<usize> {
        self.accounts.iter().position(|account| account.name == name)
    }

    /// Records the prices that have changed since the last record.
    pub(super) fn note_new_prices(&mut self) {
        if !self.are_prices_new {
            return;
        }
        self.are_prices_new = false;
        let indices = self.indices.iter().map(|index| (index.name.clone(), index.walk.price()));
        let markets =
            self.markets.iter().zip(&self.settings.listings).map(|(market, listing)| MarketPrices {
                name: listing.name.clone(),
                mark: market.mark.0,
                basis: market.basis,
                funding: listing.is_perpetual().then(|| {
                    let rate = market.funding.paid.back().map_or(0, |paid| paid.rate_ppb);
                    (Exact(market.funding.meter.per_unit), rate)
                }),
            });
        let (indices, markets): (Vec<_>, Vec<_>) = (indices.collect(), markets.collect());
        let new_indices = indices.iter().filter(|index| !self.noted_prices.0.contains(index)).cloned();
        let new_markets = markets.iter().filter(|market| !self.noted_prices.1.contains(market)).cloned();
        let (new_indices, new_markets): (Vec<_>, Vec<_>) = (new_indices.collect(), new_markets.collect());
        let (commands, now_ms) = (self.counters.commands.read(), self.now_ms());
        // Without changes the record only gives the time of the earlier commands. The log has times of day
        // only, so its next command must be close to the latest record.
        let is_told = commands == self.noted_commands && now_ms < self.noted_ms + NOTE_MS;
        if new_indices.is_empty() && new_markets.is_empty() && is_told {
            return;
        }
        self.noted_prices = (indices, markets);
        (self.noted_commands, self.noted_ms) = (commands, now_ms);
        self.write_down(Record::Prices { indices: new_indices, markets: new_markets });
    }

    fn take_prices(&mut self, indices: &[(String, i64)], markets: &[MarketPrices], at_ms: u64) {
        for (name, price) in indices {
            if let Some(index) = self.indices.iter_mut().find(|index| index.name == *name) {
                index.walk.resume(*price);
                index.price = Money::ratio((*price).into(), 10_000);
                index.mean.sample(at_ms, *price);
            }
        }
        for (place, listing) in self.settings.listings.iter().enumerate() {
            self.markets[place].index = self.indices[listing.index].price;
        }
        for prices in markets {
            let Some(place) = self.listing(&prices.name) else { continue };
            let market = &mut self.markets[place];
            (market.mark, market.basis) = (Price(prices.mark), prices.basis);
            let Some((per_unit, rate_ppb)) = &prices.funding else { continue };
            let Exact(per_unit) = *per_unit;
            if market.funding.meter.per_unit != per_unit {
                market.funding.meter.per_unit = per_unit;
                let index = market.index;
                market.funding.note(FundingPaid { at_ms, rate_ppb: *rate_ppb, index });
            }
        }
    }
}
