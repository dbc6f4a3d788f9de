//! Positions, money and margin of an account.

use std::collections::HashMap;

use tickpath_deribit::codes::{Direction, Kind};
use tickpath_deribit::credits::CreditPlan;
use tickpath_deribit::field::Field;
use tickpath_deribit::messages::{
    AccountSummary, GetAccountSummaries, GetAccountSummary, GetMargins, GetPosition, GetPositions, Position,
};
use tickpath_deribit::number::Number;
use tickpath_deribit::request::Request;
use tickpath_deribit::scan::Scanner;
use tickpath_deribit::text::Text;
use tickpath_derivatives::{Money, Style};
use tickpath_types::{OrderRequest, Price, Qty, Side};

use super::{Answer, Front};
use crate::fault::Fault;
use crate::json::{Json, Object, list, param};
use crate::listing::figure;
use crate::order::Order;
use crate::pending::{Intent, Work};

/// Amounts of an account in one currency.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    pub(super) balance: Money,
    pub(super) floating: Money,
    /// Realized profit of futures since the last settlement, without funding.
    pub(super) realized: Money,
    /// Funding since the last settlement.
    pub(super) funding: Money,
    pub(super) options_value: Money,
    pub(super) initial_margin: Money,
    pub(super) maintenance_margin: Money,
    /// Amount held by open and untriggered orders.
    pub(super) open_orders: Money,
    /// Profit of options that are open or were closed since the last settlement.
    pub(super) options_profit: Money,
}

impl Figures {
    pub(super) fn equity(&self) -> Money {
        self.balance + self.floating + self.realized + self.funding + self.options_value
    }

    /// Funds available for new orders.
    pub(super) fn available(&self) -> Money {
        self.equity() - self.options_value.max(Money::ZERO) - self.initial_margin - self.open_orders
    }
}

/// Parameters of an order for calculating the amount it holds.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    listing: usize,
    side: Side,
    qty: Qty,
    price: Price,
}

impl Wanted {
    /// Takes `qty` of an order to be entered.
    pub(super) const fn of(intent: &Intent, qty: Qty) -> Wanted {
        Wanted { listing: intent.listing, side: intent.side, qty, price: intent.price }
    }

    /// Takes the remaining quantity of an open order.
    pub(super) const fn open(order: &Order) -> Wanted {
        let Order { listing, side, price, .. } = *order;
        Wanted { listing, side, qty: order.leaves(), price }
    }
}

/// Units of each position, by the place of the listing, that no earlier order reduces.
#[derive(Default)]
struct FreeSize(Vec<(usize, u64)>);

impl FreeSize {
    fn left(&mut self, place: usize, size: i64) -> u64 {
        match self.0.iter().find(|(known, _)| *known == place) {
            Some((_, left)) => *left,
            None => {
                self.0.push((place, size.unsigned_abs()));
                size.unsigned_abs()
            }
        }
    }

    fn take(&mut self, place: usize, units: u64) {
        if let Some((_, left)) = self.0.iter_mut().find(|(known, _)| *known == place) {
            *left = left.saturating_sub(units);
        }
    }
}

impl Front {
    /// Calculates the amounts of an account, without the order `but`, which is to be replaced.
    pub(super) fn figures_of(&self, account: usize, currency: &str, but: Option<u64>) -> Figures {
        let known = &self.accounts[account];
        let mut figures = Figures { balance: known.balance(currency), ..Figures::default() };
        for (place, position) in &known.positions {
            let (listing, market) = self.listed(*place);
            if listing.settlement != currency {
                continue;
            }
            if listing.is_future() {
                // Funding stays due after the position is closed.
                figures.realized += position.realized;
                figures.funding += position.funding(&market.funding.meter);
            }
            if position.is_flat() {
                continue;
            }
            let contract = &listing.contract;
            let (initial, maintenance) = contract.margin(position.size, market.mark, market.index);
            figures.initial_margin += initial;
            figures.maintenance_margin += maintenance;
            let value = contract.value(Qty(position.size.unsigned_abs()), market.mark);
            if contract.is_option() {
                figures.options_value += Money(i128::from(position.size.signum()) * value.0);
                figures.options_profit += position.floating(contract, market.mark) + position.realized;
            } else {
                figures.floating += position.floating(contract, market.mark);
            }
        }
        figures.open_orders = self.held_by_orders(account, currency, but, None);
        figures
    }

    /// Returns the amount that an account's orders hold of a currency, in-flight orders included. Leaves out
    /// the order `but`, which is to be replaced, and adds the order `more` last.
    pub(super) fn held_by_orders(
        &self,
        account: usize,
        currency: &str,
        but: Option<u64>,
        more: Option<Wanted>,
    ) -> Money {
        let known = &self.accounts[account];
        let mut free = FreeSize::default();
        let mut held = Money::ZERO;
        let is_other = |number: u64| Some(number) != but;
        let mut edits: HashMap<u64, Vec<Intent>> = HashMap::new();
        for pending in &known.pending {
            if let Work::Edit { number, intent } = pending.work {
                edits.entry(number).or_default().push(intent);
            }
        }
        for order in known.open.values().filter(|order| is_other(order.number)) {
            let (listing, side) = (order.listing, order.side);
            let now = Wanted { listing, side, qty: order.leaves(), price: order.price };
            // An in-flight edit holds its new amount if that is larger than the order's.
            let changes = edits.get(&order.number).into_iter().flatten().map(|intent| Wanted {
                qty: Qty(intent.qty.0.saturating_sub(order.filled.0)),
                price: intent.price,
                ..now
            });
            held += self.held_by(account, currency, &mut free, &mut std::iter::once(now).chain(changes));
        }
        for pending in &known.pending {
            let wanted = match (pending.work, pending.request) {
                (Work::Place(intent), _) => Wanted::of(&intent, intent.qty),
                // The order is entered again and is not in the book.
                (Work::Edit { intent, .. }, OrderRequest::Enter(order)) => Wanted::of(&intent, order.qty),
                _ => continue,
            };
            held += self.held_by(account, currency, &mut free, &mut std::iter::once(wanted));
        }
        held + self.held_by(account, currency, &mut free, &mut more.into_iter())
    }

    /// Returns the maximum amount held by the variants of one order. An order that reduces the position holds
    /// nothing, except for the quantity that earlier orders already reduce.
    fn held_by(
        &self,
        account: usize,
        currency: &str,
        free: &mut FreeSize,
        orders: &mut dyn Iterator<Item = Wanted>,
    ) -> Money {
        let (mut held, mut taken) = (Money::ZERO, None);
        for order in orders {
            let size = self.accounts[account].position(order.listing).size;
            let lowers = size.signum() == -order.side.sign();
            let left = if lowers { free.left(order.listing, size) } else { 0 };
            let lowering = left.min(order.qty.0);
            let raising = Wanted { qty: Qty(order.qty.0 - lowering), ..order };
            held = held.max(self.held_for(currency, &raising));
            let before = taken.map_or(0, |(_, lowering)| lowering);
            taken = Some((order.listing, lowering.max(before)));
        }
        if let Some((listing, lowering)) = taken {
            free.take(listing, lowering);
        }
        held
    }

    /// Returns the amount that an order opening a position holds of a currency: the margin of a future or
    /// short option, the premium of a bought option, or the paid side of a pair. Payments add the taker fee.
    pub(super) fn held_for(&self, currency: &str, order: &Wanted) -> Money {
        let Wanted { listing: place, side, qty, price } = *order;
        let (listing, market) = self.listed(place);
        let contract = &listing.contract;
        let paid = || {
            let fee = contract.fee(qty, price, false, market.index).max(Money::ZERO);
            contract.value(qty, price) + fee
        };
        if contract.style == Style::Spot {
            return match side {
                Side::Buy if listing.settlement == currency => paid(),
                Side::Sell if listing.base == currency => contract.amount(qty),
                _ => Money::ZERO,
            };
        }
        if listing.settlement != currency || qty.is_zero() {
            return Money::ZERO;
        }
        match (contract.is_option(), side) {
            (true, Side::Buy) => paid(),
            (true, Side::Sell) => contract.margin(-(qty.0 as i64), market.mark, market.index).0,
            _ => contract.margin(qty.0 as i64, price, market.index).0,
        }
    }

    /// Returns the amount held by the open orders of one instrument.
    fn held_in(&self, account: usize, place: usize) -> Money {
        let settlement = &self.settings.listings[place].settlement;
        let mut free = FreeSize::default();
        let orders = self.accounts[account].open.values().filter(|order| order.listing == place);
        orders
            .map(|order| {
                let wanted =
                    Wanted { listing: place, side: order.side, qty: order.leaves(), price: order.price };
                self.held_by(account, settlement, &mut free, &mut std::iter::once(wanted))
            })
            .sum()
    }

    pub(super) fn position(&self, account: usize, request: &Request<'_>) -> Answer {
        let GetPosition { instrument_name } = request.params()?;
        let place = self.find_listing(&instrument_name.to_cow())?;
        let mut out = Vec::new();
        self.write_position(account, place, &mut out);
        Ok(Some(out))
    }

    pub(super) fn positions(&self, account: usize, request: &Request<'_>) -> Answer {
        let GetPositions { currency, kind, .. } = request.params()?;
        let currency = currency.map(|currency| currency.to_cow()).unwrap_or("any".into());
        let places = self.accounts[account].positions.iter().filter(|(place, position)| {
            !position.is_flat() && self.settings.listings[**place].is_of(kind, &currency)
        });
        Ok(Some(list(places, |(place, _), out| self.write_position(account, *place, out))))
    }

    pub(super) fn write_position(&self, account: usize, place: usize, out: &mut Vec<u8>) {
        let (listing, market) = self.listed(place);
        let (position, contract) = (self.accounts[account].position(place), &listing.contract);
        let (initial, maintenance) = contract.margin(position.size, market.mark, market.index);
        let floating = position.floating(contract, market.mark);
        let qty = Qty(position.size.unsigned_abs());
        let sign = i128::from(position.size.signum());
        let size = Money(sign * contract.amount(qty).0);
        let coins = match contract.style {
            Style::Inverse => Money(sign * contract.value(qty, market.mark).0),
            _ => size,
        };
        let open_orders = self.held_in(account, place);
        let leverage = (1_000_000 / i128::from(contract.initial_margin_ppm.max(1))).to_string();
        let is_option = contract.is_option();
        let found = self.sensitivities(place).unwrap_or_default();
        let [delta, gamma, theta, vega] = [found.delta, found.gamma, found.theta, found.vega]
            .map(|one| self.of_position(place, position.size, one));
        let usd_value = self.accounts[account].usd_values.get(&place).copied().unwrap_or_default();
        let usd_now = match contract.style {
            Style::InverseOption => contract.value(qty, market.mark).scaled(market.index.0, Money::ONE.0),
            _ => contract.value(qty, market.mark),
        };
        let liquidation = self.liquidation_price(account, place);
        let interest = self.ticker_texts(place).interest;
        let texts = [
            maintenance,
            initial,
            market.index,
            contract.price(market.mark),
            coins,
            if is_option { delta } else { coins },
            gamma,
            theta,
            vega,
            contract.mean_price(qty, usd_value),
            Money(sign * (usd_now.0 - usd_value.0)),
            liquidation.unwrap_or_default(),
            position.average_price(contract),
            floating,
            position.realized,
            floating + position.realized,
            open_orders,
            position.funding(&market.funding.meter),
            market.settled.map_or(Money::ZERO, |settled| contract.price(settled)),
        ]
        .map(|money| figure(money).to_string());
        let [
            maintenance,
            initial,
            index,
            mark,
            coins,
            delta,
            gamma,
            theta,
            vega,
            average_usd,
            floating_usd,
            liquidation_price,
            average,
            floating,
            realized,
            total,
            open_orders,
            funding,
            settled,
        ] = texts.each_ref().map(|text| Number::new(text).ok());
        let is_future = listing.kind == Kind::Future;
        Position {
            size: figure(size).decimal(),
            kind: Some(listing.kind),
            maintenance_margin: maintenance,
            initial_margin: initial,
            direction: match position.size.signum() {
                1 => Direction::Buy,
                -1 => Direction::Sell,
                _ => Direction::Zero,
            },
            index_price: index,
            instrument_name: Text::new(&listing.name),
            settlement_price: settled,
            mark_price: mark,
            interest_value: Number::new(&interest).ok().filter(|_| listing.is_perpetual()),
            delta,
            average_price: average.expect("money is written as a number"),
            floating_profit_loss: floating,
            realized_profit_loss: realized,
            total_profit_loss: total,
            realized_funding: funding.filter(|_| listing.is_perpetual()),
            leverage: Number::new(&leverage).ok().filter(|_| is_future),
            size_currency: coins.filter(|_| is_future),
            open_orders_margin: open_orders,
            estimated_liquidation_price: liquidation_price.filter(|_| liquidation.is_some()),
            average_price_usd: average_usd.filter(|_| is_option),
            floating_profit_loss_usd: floating_usd.filter(|_| is_option),
            gamma: gamma.filter(|_| is_option),
            vega: vega.filter(|_| is_option),
            theta: theta.filter(|_| is_option),
        }
        .write(out);
    }

    /// Returns every currency that the account has or can receive.
    pub(super) fn currencies_of(&self, account: usize) -> Vec<String> {
        let mut names: Vec<String> = self.accounts[account].balances.keys().cloned().collect();
        for listing in &self.settings.listings {
            if !names.contains(&listing.settlement) {
                names.push(listing.settlement.clone());
            }
        }
        names.sort();
        names
    }

    pub(super) fn account_summary(&self, account: usize, request: &Request<'_>) -> Answer {
        let GetAccountSummary { currency, extended, .. } = request.params()?;
        let currency = currency.to_cow().to_uppercase();
        if !self.currencies_of(account).contains(&currency) {
            return Err(Fault::param("currency", "the venue has no such currency"));
        }
        let mut out = Vec::new();
        self.write_summary_of(account, &currency, extended == Some(true), &mut out);
        Ok(Some(out))
    }

    pub(super) fn account_summaries(&self, account: usize, request: &Request<'_>) -> Answer {
        let GetAccountSummaries { extended, .. } = request.params()?;
        let summaries = list(self.currencies_of(account), |currency, out| {
            self.write_summary_of(account, &currency, extended == Some(true), out);
        });
        let summary = Object::new()
            .with("id", u64::from(self.accounts[account].session.0))
            .with("username", Text::new(&self.accounts[account].name))
            .with("type", Text::new("main"))
            .with("summaries", Json(summaries));
        Ok(Some(summary.end()))
    }

    /// Returns the account itself, which has no subaccounts.
    pub(super) fn subaccounts(&self, account: usize, request: &Request<'_>) -> Answer {
        let has_portfolio = param::<bool>(&request.params()?, "with_portfolio")?.unwrap_or(false);
        let known = &self.accounts[account];
        let portfolio = has_portfolio.then(|| {
            let all = self.currencies_of(account).into_iter();
            let portfolio = all.fold(Object::new(), |portfolio, currency| {
                let mut summary = Vec::new();
                self.write_summary_of(account, &currency, false, &mut summary);
                portfolio.with(&currency.to_lowercase(), Json(summary))
            });
            portfolio.json()
        });
        Ok(Some(list([known], |known, out| {
            Object::new()
                .with("id", u64::from(known.session.0))
                .with("username", Text::new(&known.name))
                .with("system_name", Text::new(&known.name))
                .with("email", Text::new(""))
                .with("type", Text::new("main"))
                .with("is_password", true)
                .with("login_enabled", true)
                .with("receive_notifications", false)
                .with("security_keys_enabled", false)
                .with("security_keys_assignments", Json(b"[]".to_vec()))
                .with("margin_model", Text::new("segregated_sm"))
                .with("portfolio", portfolio.as_ref().map(|portfolio| Json(portfolio.0.clone())))
                .json()
                .write(out);
        })))
    }

    fn limits(&self) -> String {
        let (rate, burst) = self.settings.matching;
        let pool = format!("{{\"burst\":{burst},\"rate\":{rate}}}");
        let CreditPlan { cost, pool: credits, refill_per_s } = CreditPlan::NON_MATCHING;
        let (others, others_rate) = (credits / cost, refill_per_s / cost);
        format!(
            "{{\"limits_per_currency\":false,\"non_matching_engine\":{{\"burst\":{others},\"rate\":{others_rate}}},\
             \"matching_engine\":{{\"trading\":{{\"total\":{pool}}},\"quotes\":{pool},\"cancel_all\":{pool}}}}}"
        )
    }

    pub(super) fn write_summary_of(
        &self,
        account: usize,
        currency: &str,
        is_extended: bool,
        out: &mut Vec<u8>,
    ) {
        let figures = self.figures_of(account, currency, None);
        let (greeks, deltas) = self.exposures(account, currency);
        let [delta, gamma, theta, vega] = greeks;
        let total: Money = deltas.iter().map(|(_, delta)| *delta).sum();
        let ratio = match figures.equity() {
            equity if equity.0 > 0 => figures.maintenance_margin.scaled(Money::ONE.0, equity.0),
            _ if figures.maintenance_margin.0 > 0 => Money::ONE,
            _ => Money::ZERO,
        };
        let by_index = |value: &dyn Fn(Money) -> Money| {
            let members = deltas.iter().fold(Object::new(), |object, (index, delta)| {
                object.with(&self.indices[*index].name, figure(value(*delta)))
            });
            String::from_utf8(members.end()).unwrap_or_default()
        };
        let (delta_map, ratio_map) = (by_index(&|delta| delta), by_index(&|_| ratio));
        let texts = [
            figures.balance,
            figures.equity(),
            figures.available(),
            figures.initial_margin,
            figures.maintenance_margin,
            figures.initial_margin + figures.open_orders,
            figures.floating + figures.realized + figures.funding,
            figures.realized + figures.funding,
            figures.floating,
            figures.options_value,
            total,
            figures.options_profit,
            delta,
            gamma,
            theta,
            vega,
            self.spot_reserve(account, currency),
            ratio,
        ]
        .map(|money| figure(money).to_string());
        let number = |place: usize| Number::new(&texts[place]).ok();
        let is_shown = |text| Some(text).filter(|_| is_extended);
        let limits = self.limits();
        let name = &self.accounts[account].name;
        let required = |place| number(place).expect("money is written as a number");
        AccountSummary {
            currency: Text::new(currency),
            balance: required(0),
            equity: required(1),
            available_funds: required(2),
            available_withdrawal_funds: number(2),
            margin_balance: number(1),
            initial_margin: number(3),
            maintenance_margin: number(4),
            projected_initial_margin: number(5),
            projected_maintenance_margin: number(4),
            total_pl: number(6),
            session_rpl: number(7),
            session_upl: number(8),
            futures_pl: number(6),
            futures_session_rpl: number(7),
            futures_session_upl: number(8),
            options_pl: number(11),
            options_value: number(9),
            options_delta: number(12),
            options_gamma: number(13),
            options_theta: number(14),
            options_vega: number(15),
            delta_total: number(10),
            projected_delta_total: number(10),
            spot_reserve: number(16),
            additional_reserve: Number::new("0").ok(),
            fee_balance: Number::new("0").ok(),
            margin_model: Some(Text::new("segregated_sm")),
            portfolio_margining_enabled: Some(false),
            cross_collateral_enabled: Some(false),
            limits: Scanner::new(&limits).value().ok(),
            id: is_extended.then_some(self.accounts[account].session.0.into()),
            username: is_shown(Text::new(name)),
            system_name: is_shown(Text::new(name)),
            account_type: is_shown(Text::new("main")),
            self_trading_reject_mode: self.self_trading_mode(account).map(Text::new).filter(|_| is_extended),
            delta_total_map: Scanner::new(&delta_map).value().ok(),
            estimated_liquidation_ratio: number(17),
            estimated_liquidation_ratio_map: Scanner::new(&ratio_map).value().ok(),
            email: None,
            mmp_enabled: is_extended.then_some(true),
            fees: Scanner::new("[]").value().ok().filter(|_| is_extended),
        }
        .write(out);
    }

    pub(super) fn margins(&self, request: &Request<'_>) -> Answer {
        let GetMargins { instrument_name, amount, price } = request.params()?;
        let place = self.find_listing(&instrument_name.to_cow())?;
        let (listing, market) = self.listed(place);
        let (qty, price) = (listing.qty(amount)?, listing.parse_price(price)?);
        let contract = &listing.contract;
        let buy = match contract.style {
            Style::Spot | Style::InverseOption | Style::LinearOption => contract.value(qty, price),
            _ => contract.margin(qty.0 as i64, price, market.index).0,
        };
        let sell = match contract.style {
            Style::Spot => contract.amount(qty),
            _ => contract.margin(-(qty.0 as i64), price, market.index).0,
        };
        let (min, max) = market.band(listing, self.settings.band_ppm);
        let margins = Object::new()
            .with("buy", figure(buy))
            .with("sell", figure(sell))
            .with("min_price", listing.price(min))
            .with("max_price", listing.price(max));
        Ok(Some(margins.end()))
    }
}
