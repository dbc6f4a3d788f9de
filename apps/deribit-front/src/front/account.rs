//! Positions, money and margin of an account.

use tickpath_deribit::codes::{Direction, Kind};
use tickpath_deribit::field::Field;
use tickpath_deribit::messages::{AccountSummary, GetAccountSummary, GetPosition, GetPositions, Position};
use tickpath_deribit::number::Number;
use tickpath_deribit::request::Request;
use tickpath_deribit::scan::{Scanner, Value};
use tickpath_deribit::text::Text;
use tickpath_derivatives::{Money, Style};
use tickpath_types::{Price, Qty, Side};

use super::{Answer, Front};
use crate::fault::Fault;
use crate::json::{Json, Object, get, list, text_of};
use crate::listing::figure;
use crate::order::Order;

/// An account's figures in one currency.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    pub(super) balance: Money,
    pub(super) floating: Money,
    /// Of futures, since the last settlement; funding apart.
    pub(super) realized: Money,
    /// Since the last settlement.
    pub(super) funding: Money,
    pub(super) options_value: Money,
    pub(super) initial_margin: Money,
    pub(super) maintenance_margin: Money,
    /// Of what is open and waits.
    pub(super) open_orders: Money,
    pub(super) delta: Money,
}

impl Figures {
    pub(super) fn equity(&self) -> Money {
        self.balance + self.floating + self.realized + self.funding + self.options_value
    }

    /// What new orders may use.
    pub(super) fn available(&self) -> Money {
        self.equity() - self.options_value.max(Money::ZERO) - self.initial_margin - self.open_orders
    }
}

impl Front {
    /// The figures of an account; without the order `but`, which is to be replaced.
    pub(super) fn figures_of(&self, account: usize, currency: &str, but: Option<u64>) -> Figures {
        let known = &self.accounts[account];
        let mut figures = Figures { balance: known.balance(currency), ..Figures::default() };
        for (place, position) in &known.positions {
            let (listing, market) = self.listed(*place);
            if listing.settlement != currency {
                continue;
            }
            if listing.is_future() {
                // What is due of funding is due though the position is closed.
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
            } else {
                figures.floating += position.floating(contract, market.mark);
                figures.delta += Money(i128::from(position.size.signum()) * value.0);
            }
        }
        for order in known.open.values().filter(|order| Some(order.number) != but) {
            figures.open_orders += self.held_for(
                account,
                currency,
                order.listing,
                order.side,
                order.leaves(),
                order.price,
                order.terms.is_reduce_only,
            );
        }
        for pending in &known.pending {
            let (before, intent) = match pending.work {
                crate::pending::Work::Place(intent) => (None, intent),
                crate::pending::Work::Edit { number, intent } if Some(number) != but => {
                    let Some(order) = known.open.get(&number) else { continue };
                    (Some(order), intent)
                }
                _ => continue,
            };
            let held = |qty: Qty, price: Price| {
                let is_reduce_only = intent.terms.is_reduce_only;
                self.held_for(account, currency, intent.listing, intent.side, qty, price, is_reduce_only)
            };
            // A change on its way holds what it will hold more than the order does.
            figures.open_orders += before.map_or_else(
                || held(intent.qty, intent.price),
                |order| {
                    let leaves = Qty(intent.qty.0.saturating_sub(order.filled.0));
                    let more = held(leaves, intent.price) - held(order.leaves(), order.price);
                    more.max(Money::ZERO)
                },
            );
        }
        figures
    }

    /// What an order holds of a currency: margin of a future, the premium of an option that is bought, the other side of a
    /// pair. An order that lowers the position holds nothing.
    #[expect(clippy::too_many_arguments, reason = "an order that is not made yet")]
    pub(super) fn held_for(
        &self,
        account: usize,
        currency: &str,
        place: usize,
        side: Side,
        qty: Qty,
        price: Price,
        is_reduce_only: bool,
    ) -> Money {
        let (listing, market) = self.listed(place);
        let contract = &listing.contract;
        if contract.style == Style::Spot {
            return match side {
                Side::Buy if listing.settlement == currency => contract.value(qty, price),
                Side::Sell if listing.base == currency => contract.amount(qty),
                _ => Money::ZERO,
            };
        }
        let size = self.accounts[account].position(place).size;
        let lowers = size.signum() == -side.sign() && qty.0 <= size.unsigned_abs();
        if listing.settlement != currency || is_reduce_only || lowers {
            return Money::ZERO;
        }
        match (contract.is_option(), side) {
            (true, Side::Buy) => contract.value(qty, price),
            (true, Side::Sell) => contract.margin(-(qty.0 as i64), market.mark, market.index).0,
            _ => contract.margin(qty.0 as i64, price, market.index).0,
        }
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
        let orders = self.accounts[account].open.values().filter(|order| order.listing == place);
        let held = |order: &Order| {
            self.held_for(
                account,
                &listing.settlement,
                place,
                order.side,
                order.leaves(),
                order.price,
                order.terms.is_reduce_only,
            )
        };
        let open_orders: Money = orders.map(held).sum();
        let leverage = (1_000_000 / i128::from(contract.initial_margin_ppm.max(1))).to_string();
        let texts = [
            maintenance,
            initial,
            market.index,
            contract.price(market.mark),
            coins,
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
            size: figure(size),
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
            interest_value: None,
            delta: coins,
            average_price: average.expect("money is written as a number"),
            floating_profit_loss: floating,
            realized_profit_loss: realized,
            total_profit_loss: total,
            realized_funding: funding.filter(|_| listing.is_perpetual()),
            leverage: Number::new(&leverage).ok().filter(|_| is_future),
            size_currency: coins.filter(|_| is_future),
            open_orders_margin: open_orders,
            estimated_liquidation_price: None,
            average_price_usd: None,
            floating_profit_loss_usd: None,
            gamma: None,
            vega: None,
            theta: None,
        }
        .write(out);
    }

    /// Every currency that the account has, or could win.
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
        let params: Value<'_> = request.params()?;
        let is_extended = get::<bool>(&params, "extended").unwrap_or(false);
        let summaries = list(self.currencies_of(account), |currency, out| {
            self.write_summary_of(account, &currency, is_extended, out);
        });
        let summary = Object::new()
            .with("id", u64::from(self.accounts[account].session.0))
            .with("username", Text::new(&self.accounts[account].name))
            .with("type", Text::new("main"))
            .with("summaries", Json(summaries));
        Ok(Some(summary.end()))
    }

    fn limits(&self) -> String {
        let (rate, burst) = self.settings.matching;
        let pool = format!("{{\"burst\":{burst},\"rate\":{rate}}}");
        format!(
            "{{\"limits_per_currency\":false,\"non_matching_engine\":{{\"burst\":100,\"rate\":20}},\
             \"matching_engine\":{{\"trading\":{{\"total\":{pool}}},\"cancel_all\":{pool}}}}}"
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
            figures.delta,
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
            options_pl: None,
            options_value: number(9),
            options_delta: None,
            options_gamma: None,
            options_theta: None,
            options_vega: None,
            delta_total: number(10),
            projected_delta_total: number(10),
            spot_reserve: None,
            additional_reserve: None,
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
        }
        .write(out);
    }

    pub(super) fn margins(&self, _account: usize, request: &Request<'_>) -> Answer {
        let params: Value<'_> = request.params()?;
        let name =
            text_of(&params, "instrument_name").ok_or(Fault::param("instrument_name", "value required"))?;
        let place = self.find_listing(&name)?;
        let (listing, market) = self.listed(place);
        let amount = get(&params, "amount").ok_or(Fault::param("amount", "value required"))?;
        let price = get(&params, "price").ok_or(Fault::param("price", "value required"))?;
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
