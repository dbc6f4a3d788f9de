//! Terms that past amounts depend on: fees, initial balances and instrument definitions.
//!
//! They are recorded at their first use, and again when the configuration changes. New terms apply from then
//! on and leave the past unchanged. The definition of an instrument must not change.

use std::collections::BTreeMap;

use tickpath_derivatives::Money;

use super::Front;
use crate::ledger::{Cause, Entry};
use crate::record::{Exact, InstrumentTerms, MoneyTerms, Record, RecordError, Stamped};

impl Front {
    /// Returns the terms of the configuration.
    pub(super) fn file_terms(settings: &crate::config::FrontSettings) -> MoneyTerms {
        let instruments = settings.listings.iter().map(|listing| {
            let contract = &listing.contract;
            let strike = listing.strike.map(|strike| strike.to_string()).unwrap_or_default();
            let index = settings.indices.get(listing.index).map_or("", |(name, ..)| name.as_str());
            InstrumentTerms {
                name: listing.name.clone(),
                nature: format!(
                    "{:?} {} {} {} {index} {strike}{:?}, instrument {}, {} * 10^-{} a unit, prices 10^-{}",
                    contract.style,
                    listing.base,
                    listing.quote,
                    listing.settlement,
                    listing.option_type,
                    listing.id.0,
                    contract.amount_step,
                    contract.amount_decimals,
                    contract.price_decimals,
                ),
                fees: [
                    contract.maker_fee_ppm,
                    contract.taker_fee_ppm,
                    listing.delivery_fee_ppm,
                    listing.liquidation_fee_ppm,
                ],
            }
        });
        let balances = |balances: &BTreeMap<String, Money>| {
            balances.iter().map(|(currency, amount)| (currency.clone(), Exact(*amount))).collect()
        };
        let accounts =
            settings.accounts.iter().map(|account| (account.user.clone(), balances(&account.balances)));
        MoneyTerms { instruments: instruments.collect(), accounts: accounts.collect() }
    }

    /// Before the first command: restores the first recorded terms and compares instrument definitions.
    pub(super) fn recall_terms(&mut self) -> Result<(), RecordError> {
        let of = |stamped: &Stamped| match &stamped.record {
            Record::MoneyTerms(terms) => Some(terms.clone()),
            _ => None,
        };
        let Some(first) = self.recalled.iter().find_map(of) else { return Ok(()) };
        let last = self.recalled.iter().rev().find_map(of).unwrap_or_default();
        let now = Front::file_terms(&self.settings);
        for before in &last.instruments {
            let same = now.instruments.iter().find(|now| now.name == before.name);
            if same.is_none_or(|now| now.nature != before.nature) {
                let is = same.map_or("is no longer there".to_owned(), |now| format!("is {}", now.nature));
                return Err(RecordError::Changed {
                    instrument: before.name.clone(),
                    was: before.nature.clone(),
                    is,
                });
            }
        }
        for account in &mut self.accounts {
            let balances = first.accounts.get(&account.name).cloned().unwrap_or_default();
            account.balances = balances.iter().map(|(name, amount)| (name.clone(), amount.0)).collect();
        }
        self.take_fees(&first);
        self.terms = Some(first);
        Ok(())
    }

    /// At the start: applies the terms of the configuration from now on.
    pub(super) fn use_file_terms(&mut self) {
        if self.terms.as_ref() != Some(&self.new_terms) {
            self.decide(&Record::MoneyTerms(self.new_terms.clone()));
        }
    }

    /// Applies new terms. Increased initial balances are deposited, and decreased ones withdrawn.
    pub(super) fn take_terms(&mut self, terms: &MoneyTerms, at_ms: u64) {
        self.take_fees(terms);
        let Some(before) = self.terms.replace(terms.clone()) else { return };
        let none = BTreeMap::new();
        for account in 0..self.accounts.len() {
            let name = self.accounts[account].name.clone();
            let had = before.accounts.get(&name).unwrap_or(&none);
            let has = terms.accounts.get(&name).unwrap_or(&none);
            let mut currencies: Vec<&String> = had.keys().chain(has.keys()).collect();
            currencies.sort();
            currencies.dedup();
            for currency in currencies {
                let of = |amounts: &BTreeMap<String, Exact>| {
                    amounts.get(currency).map_or(Money::ZERO, |amount| amount.0)
                };
                let change = of(has) - of(had);
                let cause = if change > Money::ZERO { Cause::Deposit } else { Cause::Withdrawal };
                self.pay_in(account, cause, "", currency, change, at_ms);
            }
        }
    }

    pub(super) fn pay_in(
        &mut self,
        account: usize,
        cause: Cause,
        address: &str,
        currency: &str,
        change: Money,
        at_ms: u64,
    ) {
        if change == Money::ZERO {
            return;
        }
        let balance = self.accounts[account].balances.entry(currency.to_owned()).or_default();
        *balance += change;
        let balance = *balance;
        let equity = self.figures_of(account, currency, None).equity();
        let entry = Entry::new(cause, at_ms, currency);
        let address = address.to_owned();
        self.accounts[account].ledger.add(Entry { change, balance, equity, address, ..entry });
    }

    fn take_fees(&mut self, terms: &MoneyTerms) {
        for known in &terms.instruments {
            let Some(place) = self.listing(&known.name) else { continue };
            let listing = &mut self.settings.listings[place];
            let [maker, taker, delivery, liquidation] = known.fees;
            (listing.contract.maker_fee_ppm, listing.contract.taker_fee_ppm) = (maker, taker);
            (listing.delivery_fee_ppm, listing.liquidation_fee_ppm) = (delivery, liquidation);
        }
    }
}
