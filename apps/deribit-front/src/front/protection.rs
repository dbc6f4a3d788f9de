//! Market maker protection and self-trade prevention.

use std::collections::VecDeque;

use tickpath_deribit::codes::CancelReason;
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::messages::{GetMmp, ResetMmp, SetMmpConfig, SetSelfTradingConfig};
use tickpath_deribit::number::Decimal;
use tickpath_deribit::request::Request;
use tickpath_deribit::text::Text;
use tickpath_derivatives::{Money, Style};
use tickpath_exchange::{FrontRequest, FrontRequestKind};
use tickpath_types::SelfTradePrevention;

use super::{Answer, Front, REQUESTS_MAX};
use crate::account::Changes;
use crate::fault::Fault;
use crate::json::{Json, Object, json, list};
use crate::listing::{decimal_money, figure};
use crate::order::UserTrade;
use crate::pending::ReplyTo;
use crate::record::{Protection, Record};

/// Maximum length of a group's name, in characters.
const GROUP_LEN_MAX: usize = 64;
/// Maximum number of groups of one account.
const GROUPS_MAX: usize = 100;
/// Maximum duration of an interval or a pause, in seconds.
pub(super) const SECONDS_MAX: u64 = 86_400;
/// Maximum number of trades kept per interval; the oldest is dropped.
const FILLS_MAX: usize = 10_000;

/// Protection of an account's orders on one index and in one MMP group.
pub(crate) struct Guard {
    /// Place of the index.
    pub(crate) index: usize,
    /// Name of the MMP group; empty for orders that are no quotes.
    pub(crate) group: String,
    pub(super) interval_ms: u64,
    /// Duration for which quoting stops; 0 until it is reset.
    pub(super) frozen_ms: u64,
    pub(super) quantity: Option<Money>,
    pub(super) delta: Option<Money>,
    vega: Option<Money>,
    /// Maximum quantity of a quote, set by the client.
    pub(super) quote_quantity: Option<Money>,
    /// Trades in the interval, with their time.
    fills: VecDeque<(u64, Exposure)>,
    /// End of the quote freeze; `u64::MAX` until it is reset.
    frozen_until: Option<u64>,
}

/// Amount of a trade in the base currency, with its delta and vega.
#[derive(Clone, Copy, Debug, Default)]
struct Exposure {
    amount: Money,
    delta: Money,
    vega: Money,
}

impl Guard {
    fn is_frozen(&self, now_ms: u64) -> bool {
        self.frozen_until.is_some_and(|until| now_ms < until)
    }

    /// Adds a trade; returns true when a limit is reached.
    fn note(&mut self, at_ms: u64, traded: Exposure) -> bool {
        while self.fills.len() >= FILLS_MAX
            || self.fills.front().is_some_and(|(filled_ms, _)| filled_ms + self.interval_ms <= at_ms)
        {
            self.fills.pop_front();
        }
        self.fills.push_back((at_ms, traded));
        let sum = |of: fn(&Exposure) -> Money| -> Money { self.fills.iter().map(|(_, fill)| of(fill)).sum() };
        let is_reached = |limit: Option<Money>, sum: Money| limit.is_some_and(|limit| sum.max(-sum) >= limit);
        is_reached(self.quantity, sum(|fill| fill.amount))
            || is_reached(self.delta, sum(|fill| fill.delta))
            || is_reached(self.vega, sum(|fill| fill.vega))
    }

    fn write(&self, index: &str, out: &mut Vec<u8>) {
        let group = Some(Text::new(&self.group)).filter(|_| !self.group.is_empty());
        let limit = |limit: Option<Money>| {
            Json(limit.map_or(b"0".to_vec(), |limit| figure(limit).to_string().into_bytes()))
        };
        let config = Object::new()
            .with("index_name", Text::new(index))
            .with("mmp_group", group)
            .with("interval", self.interval_ms / 1_000)
            .with("frozen_time", self.frozen_ms / 1_000)
            .with("quantity_limit", limit(self.quantity))
            .with("delta_limit", limit(self.delta))
            .with("vega_limit", limit(self.vega))
            .with("max_quote_quantity", limit(self.quote_quantity));
        out.extend_from_slice(&config.end());
    }
}

/// Returns true if the guard has the given index and group; an unspecified one matches all.
fn is_of(guard: &Guard, index: Option<usize>, group: Option<Text<'_>>) -> bool {
    index.is_none_or(|index| guard.index == index) && group.is_none_or(|group| group == guard.group.as_str())
}

impl Front {
    fn index_named(&self, name: Text<'_>) -> Result<usize, Fault> {
        let place = self.indices.iter().position(|index| name == index.name.as_str());
        place.ok_or(Fault::param("index_name", "no index has this name"))
    }

    pub(super) fn set_protection(&mut self, account: usize, request: &Request<'_>) -> Answer {
        let asked: SetMmpConfig<'_> = request.params()?;
        let index = self.index_named(asked.index_name)?;
        let seconds = |name, seconds: u32| match u64::from(seconds) {
            seconds @ 0..=SECONDS_MAX => Ok(seconds),
            _ => Err(Fault::param(name, "value must be at most 86400")),
        };
        let limit = |name, limit: Option<Decimal>| match limit {
            Some(limit) if limit.is_negative() => Err(Fault::param(name, "value must not be below 0")),
            limit => Ok(limit.filter(|limit| !limit.is_zero()).map(|limit| decimal_money(limit).to_string())),
        };
        let group = asked.mmp_group.map(|group| group.to_cow().into_owned()).unwrap_or_default();
        self.check_groups(account, index, &group)?;
        let protection = Protection {
            account: self.accounts[account].name.clone(),
            index: self.indices[index].name.clone(),
            group,
            interval_s: seconds("interval", asked.interval)?,
            frozen_s: seconds("frozen_time", asked.frozen_time)?,
            quantity: limit("quantity_limit", asked.quantity_limit)?,
            delta: limit("delta_limit", asked.delta_limit)?,
            vega: limit("vega_limit", asked.vega_limit)?,
            quote_quantity: limit("max_quote_quantity", asked.max_quote_quantity)?,
        };
        let group = protection.group.clone();
        self.protect(account, index, protection);
        let guards = self.accounts[account].guards.iter();
        let set = guards.filter(|guard| guard.index == index && guard.group == group);
        Ok(Some(list(set, |guard, out| guard.write(&self.indices[guard.index].name, out))))
    }

    /// Checks that the account may have another MMP group.
    pub(super) fn check_groups(&self, account: usize, index: usize, group: &str) -> Result<(), Fault> {
        let is_known = self.guard(account, index, group).is_some();
        if group.chars().count() > GROUP_LEN_MAX {
            return Err(Fault::param("mmp_group", "at most 64 characters"));
        }
        if !is_known && self.accounts[account].guards.len() >= GROUPS_MAX {
            return Err(Fault::because(ErrorCode::BadArguments, "there are 100 groups already"));
        }
        Ok(())
    }

    /// Sets or removes the protection of a group.
    pub(super) fn protect(&mut self, account: usize, index: usize, protection: Protection) {
        if protection.interval_s == 0 && self.guard(account, index, &protection.group).is_some() {
            // These quotes are no longer protected.
            self.cancel_protected(account, index, &protection.group, CancelReason::MmpConfigCurtailment);
        }
        self.decide(&Record::Protection(protection));
    }

    /// Ends the freeze of a group.
    pub(super) fn unfreeze(&mut self, account: usize, index: usize, group: &str) {
        self.decide(&self.freeze_of(account, index, group, None));
    }

    pub(super) fn take_protection(&mut self, protection: &Protection) {
        let index = self.indices.iter().position(|index| index.name == protection.index);
        let (Some(account), Some(index)) = (self.account_named(&protection.account), index) else { return };
        let guards = &mut self.accounts[account].guards;
        guards.retain(|guard| guard.index != index || guard.group != protection.group);
        if protection.interval_s == 0 {
            return;
        }
        let limit = |text: &Option<String>| text.as_deref().and_then(Money::parse);
        guards.push(Guard {
            index,
            group: protection.group.clone(),
            interval_ms: protection.interval_s * 1_000,
            frozen_ms: protection.frozen_s * 1_000,
            quantity: limit(&protection.quantity),
            delta: limit(&protection.delta),
            vega: limit(&protection.vega),
            quote_quantity: limit(&protection.quote_quantity),
            fills: VecDeque::new(),
            frozen_until: None,
        });
    }

    pub(super) fn guard(&self, account: usize, index: usize, group: &str) -> Option<&Guard> {
        self.accounts[account].guards.iter().find(|guard| guard.index == index && guard.group == group)
    }

    /// Checks that protected orders of the group may be entered.
    pub(super) fn check_protection(&self, account: usize, index: usize, group: &str) -> Result<(), Fault> {
        match self.guard(account, index, group) {
            None => Err(Fault::because(ErrorCode::BadArguments, "set_mmp_config was not called for it")),
            Some(guard) if guard.is_frozen(self.now_ms()) => Err(ErrorCode::MmpTrigger.into()),
            Some(_) => Ok(()),
        }
    }

    pub(super) fn protection(&self, account: usize, request: &Request<'_>) -> Answer {
        let meant: GetMmp<'_> = request.params()?;
        let index = meant.index_name.map(|name| self.index_named(name)).transpose()?;
        let guards =
            self.accounts[account].guards.iter().filter(|guard| is_of(guard, index, meant.mmp_group));
        Ok(Some(list(guards, |guard, out| guard.write(&self.indices[guard.index].name, out))))
    }

    /// Returns the frozen groups.
    pub(super) fn protection_status(&self, account: usize, request: &Request<'_>) -> Answer {
        let meant: GetMmp<'_> = request.params()?;
        let index = meant.index_name.map(|name| self.index_named(name)).transpose()?;
        let now_ms = self.now_ms();
        let guards = self.accounts[account].guards.iter();
        let frozen = guards.filter(|guard| guard.is_frozen(now_ms) && is_of(guard, index, meant.mmp_group));
        Ok(Some(list(frozen, |guard, out| out.extend_from_slice(&self.frozen(guard)))))
    }

    fn frozen(&self, guard: &Guard) -> Vec<u8> {
        // 0 means that the freeze lasts until a reset.
        let until = guard.frozen_until.filter(|until| *until != u64::MAX).unwrap_or(0);
        Object::new()
            .with("index_name", Text::new(&self.indices[guard.index].name))
            .with("mmp_group", Some(Text::new(&guard.group)).filter(|_| !guard.group.is_empty()))
            .with("frozen_until", until)
            .end()
    }

    pub(super) fn reset_protection(&mut self, account: usize, request: &Request<'_>) -> Answer {
        let ResetMmp { index_name, mmp_group } = request.params()?;
        let index = self.index_named(index_name)?;
        let group = mmp_group.map(|group| group.to_cow().into_owned()).unwrap_or_default();
        self.reset_group(account, index, &group)?;
        Ok(Some(json(&Text::new("ok"))))
    }

    /// Resets a frozen group that has limits.
    pub(super) fn reset_group(&mut self, account: usize, index: usize, group: &str) -> Result<(), Fault> {
        self.guard(account, index, group)
            .ok_or(Fault::because(ErrorCode::BadArguments, "no limits are set for it"))?;
        self.unfreeze(account, index, group);
        Ok(())
    }

    fn freeze_of(&self, account: usize, index: usize, group: &str, until_ms: Option<u64>) -> Record {
        Record::Frozen {
            account: self.accounts[account].name.clone(),
            index: self.indices[index].name.clone(),
            group: group.to_owned(),
            until_ms,
        }
    }

    /// Applies the recorded start or end of a freeze.
    pub(super) fn take_freeze(&mut self, account: &str, index: &str, group: &str, until_ms: Option<u64>) {
        let index = self.indices.iter().position(|known| known.name == index);
        let (Some(account), Some(index)) = (self.account_named(account), index) else { return };
        let guards = self.accounts[account].guards.iter_mut();
        for guard in guards.filter(|guard| guard.index == index && guard.group == group) {
            (guard.frozen_until, guard.fills) = (until_ms, VecDeque::new());
        }
    }

    /// Counts the trades of protected orders, and freezes groups whose limit is reached.
    pub(super) fn watch_protected(&mut self, account: usize, changes: &Changes) {
        let mut reached = Vec::new();
        for trade in changes.trades.iter().filter(|trade| trade.terms.is_protected) {
            let group = self.group_of(account, trade.order);
            let index = self.settings.listings[trade.listing].index;
            let traded = self.exposure(trade);
            let now_ms = self.now_ms();
            let guards = self.accounts[account].guards.iter_mut();
            for guard in guards.filter(|guard| guard.index == index && guard.group == group) {
                if guard.note(now_ms, traded) && !guard.is_frozen(now_ms) {
                    guard.frozen_until = Some(match guard.frozen_ms {
                        0 => u64::MAX,
                        frozen_ms => now_ms + frozen_ms,
                    });
                    guard.fills.clear();
                    reached.push((index, group.clone(), guard.frozen_until));
                }
            }
        }
        for (index, group, until_ms) in reached {
            self.counters.protections.add(1);
            self.write_down(self.freeze_of(account, index, &group, until_ms));
            self.cancel_protected(account, index, &group, CancelReason::MmpTrigger);
            if let Some(guard) = self.guard(account, index, &group) {
                let news = self.frozen(guard);
                self.tell_of_protection(account, index, &news);
            }
        }
    }

    /// Returns the MMP group of a quote; empty for other orders.
    fn group_of(&self, account: usize, number: u64) -> String {
        let order = self.accounts[account].order(number);
        order.and_then(|order| order.extra.as_ref()).map(|extra| extra.mmp_group.clone()).unwrap_or_default()
    }

    fn exposure(&self, trade: &UserTrade) -> Exposure {
        let listing = &self.settings.listings[trade.listing];
        let (qty, price) = (trade.public.qty, trade.public.price);
        let amount = match listing.contract.style {
            Style::Inverse => listing.contract.value(qty, price),
            _ => listing.contract.amount(qty),
        };
        let size = trade.side.sign() * qty.0 as i64;
        match self.sensitivities(trade.listing) {
            Some(found) => Exposure {
                amount,
                delta: self.of_position(trade.listing, size, found.delta),
                vega: self.of_position(trade.listing, size, found.vega),
            },
            None => {
                Exposure { amount, delta: Money(i128::from(trade.side.sign()) * amount.0), vega: Money::ZERO }
            }
        }
    }

    /// Cancels the protected orders of an index and a group.
    fn cancel_protected(&mut self, account: usize, index: usize, group: &str, reason: CancelReason) {
        let known = &self.accounts[account];
        let own: Vec<u64> = known
            .open
            .values()
            .filter(|order| {
                order.terms.is_protected
                    && self.settings.listings[order.listing].index == index
                    && order.extra.as_ref().map_or("", |extra| extra.mmp_group.as_str()) == group
                    && !known.is_cancelling(order.number)
            })
            .map(|order| order.number)
            .collect();
        for number in own {
            // If the queue is full, `cancel_frozen` cancels them later.
            let _ = self.send_cancel(account, number, None, None, reason);
        }
    }

    /// Retries the cancels of frozen orders that failed because the queue was full.
    pub(super) fn cancel_frozen(&mut self) {
        let now_ms = self.now_ms();
        for account in 0..self.accounts.len() {
            let guards = self.accounts[account].guards.iter();
            let frozen: Vec<(usize, String)> = guards
                .filter(|guard| guard.is_frozen(now_ms))
                .map(|guard| (guard.index, guard.group.clone()))
                .collect();
            for (index, group) in frozen {
                self.cancel_protected(account, index, &group, CancelReason::MmpTrigger);
            }
        }
    }

    /// `private/set_self_trading_config`: replies once the log confirms the mode.
    pub(super) fn set_self_trading(&mut self, account: usize, request: &Request<'_>, to: &ReplyTo) -> Answer {
        let SetSelfTradingConfig { mode, extended_to_subaccounts } = request.params()?;
        let strategy = match &*mode.to_cow() {
            "reject_taker" => SelfTradePrevention::CancelNewest,
            "cancel_maker" => SelfTradePrevention::CancelOldest,
            _ => return Err(Fault::param("mode", "value must be reject_taker or cancel_maker")),
        };
        if extended_to_subaccounts.is_none() {
            return Err(Fault::param("extended_to_subaccounts", "value required"));
        }
        if self.requests.len() >= REQUESTS_MAX {
            return Err(ErrorCode::MatchingEngineQueueFull.into());
        }
        let known = &mut self.accounts[account];
        self.requests.push_back(FrontRequest {
            session: known.session,
            received_ns: self.now_us * 1_000,
            kind: FrontRequestKind::PreventSelfTrades(strategy),
        });
        known.mode_replies.push_back((to.clone(), strategy));
        Ok(None)
    }

    /// Applies the self-trade prevention mode that the log confirms.
    pub(super) fn take_self_trading(&mut self, account: usize, strategy: SelfTradePrevention) {
        self.accounts[account].self_trading = strategy;
        // The venue's operator may set it too; then no client waits for a reply.
        let replies = &mut self.accounts[account].mode_replies;
        if let Some((to, _)) = replies.pop_front_if(|(_, asked)| *asked == strategy) {
            self.reply(&to, Ok(json(&Text::new("ok"))));
        }
    }

    /// Returns Deribit's name of the mode.
    pub(super) fn self_trading_mode(&self, account: usize) -> Option<&'static str> {
        match self.accounts[account].self_trading {
            SelfTradePrevention::CancelNewest => Some("reject_taker"),
            SelfTradePrevention::CancelOldest => Some("cancel_maker"),
            _ => None,
        }
    }
}
