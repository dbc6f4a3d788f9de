//! Funding, the day's settlement, and expiry.
//!
//! Prices are simulated, and times are arguments. Each step is a record, so it has the same result after a
//! restart.

use tickpath_deribit::codes::{CancelReason, OrderState};
use tickpath_deribit::messages::EstimatedExpirationPrice;
use tickpath_deribit::number::Number;
use tickpath_derivatives::{Money, funding_rate_ppb};
use tickpath_exchange::{FrontRequest, FrontRequestKind};
use tickpath_types::{Nanos, Price, Qty, SessionId, Side, TradingState};

use super::{Delivery, Front};
use crate::account::Changes;
use crate::json::json;
use crate::ledger::{Cause, Entry};
use crate::listing::figure;
use crate::market::{FundingPaid, Life};
use crate::record::Record;

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 86_400_000;
/// Time of the daily settlement and of expiry: 08:00 UTC.
const SETTLEMENT_MS: u64 = 8 * 3_600_000;
/// Time over which the index is averaged for delivery: the half hour before expiry.
pub(super) const DELIVERY_WINDOW_MS: u64 = 1_800_000;
/// Period that a funding rate refers to.
const FUNDING_PERIOD_MS: u64 = 8 * 3_600_000;
/// Maximum number of settlements per instrument and deliveries per index kept; the oldest is dropped.
pub(super) const SETTLEMENTS_MAX: usize = 1_000;
/// Scale of rates, which are stored in 10^-9.
const RATE_UNIT: i128 = 10_i128.pow(Money::DECIMALS - 9);

/// Returns the latest settlement time at or before a time.
pub(super) const fn settlement_before(now_ms: u64) -> u64 {
    now_ms.saturating_sub(SETTLEMENT_MS) / DAY_MS * DAY_MS + SETTLEMENT_MS
}

impl Front {
    /// Does the settlement work that is due; once a second, after the price update.
    pub(super) fn run_settlements(&mut self) {
        let now_ms = self.now_ms();
        if now_ms >= self.next_minute_ms {
            // Funding missed while the venue was stopped is not paid.
            self.next_minute_ms = now_ms / MINUTE_MS * MINUTE_MS + MINUTE_MS;
            self.pay_funding();
            self.sample_prices();
            self.note_new_prices();
        }
        if settlement_before(now_ms) > self.settled_ms {
            self.note_new_prices();
            self.decide(&Record::Settled);
        }
        self.expire();
    }

    /// Accrues one minute of funding for all accounts.
    fn pay_funding(&mut self) {
        let at_ms = self.now_ms();
        for (market, listing) in self.markets.iter_mut().zip(&self.settings.listings) {
            let index = listing.price_of(market.index);
            if listing.is_perpetual() && index.0 > 0 {
                let rate_ppb = funding_rate_ppb(listing.contract.price(market.mark), market.index);
                market.funding.meter.accrue(&listing.contract, index, rate_ppb, MINUTE_MS);
                market.funding.note(FundingPaid { at_ms, rate_ppb, index: market.index });
            }
        }
        self.are_prices_new = true;
    }

    /// Returns the current 8-hour funding rate, and its mean over the last eight hours.
    pub(super) fn funding_rates(&self, place: usize) -> [Money; 2] {
        let (listing, market) = self.listed(place);
        let now = funding_rate_ppb(listing.contract.price(market.mark), market.index);
        let since = self.now_ms().saturating_sub(FUNDING_PERIOD_MS);
        let (sum, count) = market
            .funding
            .within(since, u64::MAX)
            .fold((0, 0), |(sum, count), paid| (sum + i128::from(paid.rate_ppb), count + 1));
        [Money(i128::from(now) * RATE_UNIT), Money(sum * RATE_UNIT / i128::from(count.max(1)))]
    }

    /// Returns the funding paid per unit of value in a time range.
    pub(super) fn funding_paid(&self, place: usize, from_ms: u64, to_ms: u64) -> Money {
        let paid = self.markets[place].funding.within(from_ms, to_ms);
        let sum: i128 = paid.map(|paid| i128::from(paid.rate_ppb)).sum();
        Money(sum * RATE_UNIT * i128::from(MINUTE_MS) / i128::from(FUNDING_PERIOD_MS))
    }

    /// Pays the profit and funding of all futures since the last settlement.
    pub(super) fn settle_all(&mut self, at_ms: u64) {
        self.settled_ms = self.settled_ms.max(settlement_before(at_ms));
        for place in 0..self.settings.listings.len() {
            if !self.settings.listings[place].is_future() {
                continue;
            }
            if !matches!(self.markets[place].life, Life::Delivered(_)) {
                self.markets[place].settled = Some(self.markets[place].mark);
            }
            for account in 0..self.accounts.len() {
                self.settle_one(account, place, at_ms);
            }
        }
        for account in 0..self.accounts.len() {
            for position in self.accounts[account].positions.values_mut() {
                // For options the premium was already paid, so only the session profit is reset.
                position.realized = Money::ZERO;
            }
            self.cover_debts(account, at_ms);
        }
        self.tell_of_positions();
    }

    fn settle_one(&mut self, account: usize, place: usize, at_ms: u64) {
        let (listing, market) = (&self.settings.listings[place], &self.markets[place]);
        let known = &mut self.accounts[account];
        let Some(position) = known.positions.get_mut(&place) else { return };
        let profit = position.settle(&listing.contract, market.mark);
        let funding = position.take_funding(&market.funding.meter);
        let size = position.size;
        if size == 0 && profit == Money::ZERO && funding == Money::ZERO {
            return;
        }
        *known.balances.entry(listing.settlement.clone()).or_default() += profit + funding;
        let entry = Entry {
            change: profit + funding,
            funding,
            profit,
            ..self.entry_of(account, place, Cause::Settlement, at_ms, size)
        };
        self.accounts[account].ledger.add(entry);
    }

    /// Creates an entry for an earlier position size, with the current amounts of the account.
    fn entry_of(&self, account: usize, place: usize, cause: Cause, at_ms: u64, size: i64) -> Entry {
        let (listing, market) = self.listed(place);
        let figures = self.figures_of(account, &listing.settlement, None);
        Entry {
            listing: Some(place),
            side: Some(if size < 0 { Side::Sell } else { Side::Buy }).filter(|_| size != 0),
            qty: Qty(size.unsigned_abs()),
            mark: market.mark,
            index: market.index,
            position: self.accounts[account].position(place).size,
            balance: figures.balance,
            equity: figures.equity(),
            ..Entry::new(cause, at_ms, &listing.settlement)
        }
    }

    /// Pays the debt of an account without positions from the insurance fund, as far as the fund allows.
    fn cover_debts(&mut self, account: usize, at_ms: u64) {
        let debts: Vec<(String, Money)> = self.accounts[account]
            .balances
            .iter()
            .filter(|(_, balance)| **balance < Money::ZERO)
            .map(|(currency, balance)| (currency.clone(), -*balance))
            .collect();
        for (currency, debt) in debts {
            let known = &mut self.accounts[account];
            let is_open = |(place, position): (&usize, &tickpath_derivatives::Position)| {
                !position.is_flat() && self.settings.listings[*place].settlement == currency
            };
            let fund = self.fund.entry(currency.clone()).or_default();
            let paid = debt.min((*fund).max(Money::ZERO));
            if paid == Money::ZERO || known.positions.iter().any(is_open) {
                continue;
            }
            *fund -= paid;
            let balance = known.balances.entry(currency.clone()).or_default();
            *balance += paid;
            let balance = *balance;
            let entry = Entry::new(Cause::Bankruptcy, at_ms, &currency);
            known.ledger.add(Entry { change: paid, balance, equity: balance, ..entry });
        }
    }

    /// Writes `estimated_expiration_price` for the next delivery on the index. Without one it refers to the
    /// next settlement, which delivers nothing.
    pub(super) fn estimated_expiration(&self, index: usize) -> Vec<u8> {
        let now_ms = self.now_ms();
        let listings = self.settings.listings.iter().zip(0..);
        let own = listings.filter(|(listing, _)| listing.index == index);
        let ends = own.filter_map(|(listing, place)| Some((listing.expiration_ms?, place)));
        let next = ends.filter(|(end, _)| *end > now_ms).min();
        let (end_ms, price) = match next {
            Some((end, place)) => (end, self.estimated_delivery(place)),
            None => (settlement_before(now_ms) + 86_400_000, self.indices[index].price),
        };
        let price = figure(price).to_string();
        json(&EstimatedExpirationPrice {
            is_estimated: next.is_some_and(|(end, _)| now_ms + DELIVERY_WINDOW_MS > end),
            price: Number::new(&price).expect("money is written as a number"),
            seconds: end_ms.saturating_sub(now_ms) / 1_000,
        })
    }

    /// Returns the estimated delivery price: the mean index of the half hour before expiry, else the index.
    pub(super) fn estimated_delivery(&self, place: usize) -> Money {
        let (listing, market) = self.listed(place);
        let index = &self.indices[listing.index];
        match (market.life, listing.expiration_ms) {
            (Life::Delivered(price) | Life::Expired(price), _) => price,
            (Life::Listed, Some(end)) if self.now_ms() + DELIVERY_WINDOW_MS > end => {
                let mean = index.mean.mean_since(end.saturating_sub(DELIVERY_WINDOW_MS));
                mean.map_or(index.price, |mean| Money::ratio(mean.into(), 10_000))
            }
            _ => index.price,
        }
    }

    /// Suspends expired instruments; each is delivered once the log confirms it. Suspends delivered
    /// instruments again that are open because the log lost the command.
    fn expire(&mut self) {
        for place in 0..self.settings.listings.len() {
            let is_due = self.settings.listings[place].expiration_ms.is_some_and(|end| end <= self.now_ms());
            let is_halted = self.markets[place].state == TradingState::Halted;
            match self.markets[place].life {
                Life::Listed if is_due => {
                    self.markets[place].life = Life::Expired(self.estimated_delivery(place));
                    self.suspend(place);
                }
                Life::Delivered(_) if !is_halted => self.suspend(place),
                _ => {}
            }
        }
    }

    fn suspend(&mut self, place: usize) {
        self.requests.push_back(FrontRequest {
            session: SessionId::default(),
            received_ns: Nanos::from_micros(self.now_us).0,
            kind: FrontRequestKind::Suspend(self.settings.listings[place].id),
        });
    }

    /// Handles the suspension of an instrument.
    pub(super) fn note_suspended(&mut self, place: usize) {
        let life = self.markets[place].life;
        if !self.is_live || life == Life::Listed {
            return;
        }
        let waiting: Vec<(usize, u64)> = (0..self.accounts.len())
            .flat_map(|account| {
                let waiting = self.accounts[account].waiting.values();
                waiting.filter(|order| order.listing == place).map(move |order| (account, order.number))
            })
            .collect();
        for (account, number) in waiting {
            self.end_trigger(account, number, OrderState::Cancelled, Some(CancelReason::Settlement));
        }
        let Life::Expired(price) = life else { return };
        self.note_new_prices();
        let units = price.0 / 10_i128.pow(Money::DECIMALS - 4);
        let instrument = self.settings.listings[place].name.clone();
        self.decide(&Record::Delivered { instrument, price: i64::try_from(units).unwrap_or(i64::MAX) });
        self.tell_of_state(place);
    }

    /// Closes all positions at the delivery price.
    pub(super) fn deliver(&mut self, place: usize, price: Money, at_ms: u64) {
        self.markets[place].life = Life::Delivered(price);
        self.deliveries.push_back(Delivery { index: self.settings.listings[place].index, at_ms, price });
        if self.deliveries.len() > SETTLEMENTS_MAX {
            self.deliveries.pop_front();
        }
        for account in 0..self.accounts.len() {
            self.deliver_one(account, place, price, at_ms);
        }
        self.tell_of_positions();
    }

    fn deliver_one(&mut self, account: usize, place: usize, price: Money, at_ms: u64) {
        let listing = &self.settings.listings[place];
        let (contract, known) = (&listing.contract, &mut self.accounts[account]);
        let Some(position) = known.positions.get_mut(&place) else { return };
        let (size, qty) = (position.size, Qty(position.size.unsigned_abs()));
        let unit = match (listing.strike, listing.option_type) {
            (Some(strike), Some(right)) => {
                let strike = crate::listing::decimal_money(strike);
                contract.payoff(Qty(1), strike, right == tickpath_deribit::codes::OptionType::Call, price)
            }
            _ => contract.value(Qty(1), Price(listing.price_of(price).0.max(1))),
        };
        // Each unit has the same value, so gains and losses balance exactly, however positions are split.
        let value = Money(i128::from(qty.0) * unit.0);
        let profit = position.deliver(contract.style, value);
        known.usd_values.remove(&place);
        if size == 0 && profit == Money::ZERO {
            return;
        }
        let cash = match contract.is_option() {
            true => Money(i128::from(size.signum()) * value.0),
            false => profit,
        };
        let fee = contract.fee_at(listing.delivery_fee_ppm, qty, value, price);
        *known.balances.entry(listing.settlement.clone()).or_default() += cash - fee;
        *known.fees.entry(listing.settlement.clone()).or_default() += fee;
        let entry = Entry {
            change: cash - fee,
            commission: fee,
            profit,
            index: price,
            price: Some(listing.price_of(price)).filter(|_| !contract.is_option()),
            ..self.entry_of(account, place, Cause::Delivery, at_ms, size)
        };
        self.accounts[account].ledger.add(entry);
    }

    /// Publishes its positions to every account.
    fn tell_of_positions(&mut self) {
        if self.is_live {
            let changes = self.accounts.iter().enumerate().map(|(account, known)| {
                let positions = known.positions.keys().copied().collect();
                (account, Changes { positions, ..Changes::default() })
            });
            let changes = changes.collect();
            self.tell(&[], &[], &changes);
        }
    }
}
