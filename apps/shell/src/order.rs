//! Orders as the user states them: parsed, checked, and converted to the venue's parameters.

use std::fmt::Display;

use anyhow::{Context, bail, ensure};
use tickpath_deribit::codes::{InstrumentType, Kind, OrderType, TimeInForce, Trigger};
use tickpath_deribit::messages::{EditOrder, Instrument, PlaceOrder};
use tickpath_deribit::number::Decimal;
use tickpath_deribit::text::Text;

use crate::words::Arguments;

/// Upper bound of the length of a label, in characters.
const LABEL_MAX: usize = 64;
/// Order flags, which need no value.
pub const FLAGS: [&str; 4] = ["post_only", "reject_post_only", "reduce_only", "mmp"];

/// The order types by name.
pub const TYPES: [(&str, OrderType); 8] = [
    ("limit", OrderType::Limit),
    ("market", OrderType::Market),
    ("stop_limit", OrderType::StopLimit),
    ("take_limit", OrderType::TakeLimit),
    ("stop_market", OrderType::StopMarket),
    ("take_market", OrderType::TakeMarket),
    ("market_limit", OrderType::MarketLimit),
    ("trailing_stop", OrderType::TrailingStop),
];
/// The times in force by name and short name.
pub const TIMES: [(&str, TimeInForce); 8] = [
    ("good_til_cancelled", TimeInForce::GoodTilCancelled),
    ("good_til_day", TimeInForce::GoodTilDay),
    ("fill_or_kill", TimeInForce::FillOrKill),
    ("immediate_or_cancel", TimeInForce::ImmediateOrCancel),
    ("gtc", TimeInForce::GoodTilCancelled),
    ("gtd", TimeInForce::GoodTilDay),
    ("fok", TimeInForce::FillOrKill),
    ("ioc", TimeInForce::ImmediateOrCancel),
];
/// The trigger prices by name.
pub const TRIGGERS: [(&str, Trigger); 3] = [
    ("index_price", Trigger::IndexPrice),
    ("mark_price", Trigger::MarkPrice),
    ("last_price", Trigger::LastPrice),
];

/// A new order.
#[derive(Clone, Debug, PartialEq)]
pub struct NewOrder {
    /// The instrument.
    pub instrument: String,
    /// Its amount; amount or contracts must be set.
    pub amount: Option<Decimal>,
    /// Its amount in contracts.
    pub contracts: Option<Decimal>,
    /// The order type.
    pub order_type: OrderType,
    /// The limit price, for types that have one.
    pub price: Option<Decimal>,
    /// Its label; the shell sets one if the user does not, so that the order can be found again.
    pub label: Option<String>,
    /// The time in force.
    pub time_in_force: Option<TimeInForce>,
    /// True if it must not take liquidity.
    pub post_only: bool,
    /// True if it is refused rather than repriced.
    pub reject_post_only: bool,
    /// True if it must not increase the position.
    pub reduce_only: bool,
    /// True if market maker protection counts it.
    pub mmp: bool,
    /// The amount shown in the book.
    pub display_amount: Option<Decimal>,
    /// The price that the trigger watches.
    pub trigger: Option<Trigger>,
    /// The trigger price.
    pub trigger_price: Option<Decimal>,
    /// The offset of a trailing stop.
    pub trigger_offset: Option<Decimal>,
}

impl NewOrder {
    /// An order of an instrument and a type, with no other fields.
    #[must_use]
    pub fn of(instrument: &str, order_type: OrderType) -> NewOrder {
        NewOrder {
            instrument: instrument.to_owned(),
            amount: None,
            contracts: None,
            order_type,
            price: None,
            label: None,
            time_in_force: None,
            post_only: false,
            reject_post_only: false,
            reduce_only: false,
            mmp: false,
            display_amount: None,
            trigger: None,
            trigger_price: None,
            trigger_offset: None,
        }
    }

    /// Parses an order: `INSTRUMENT AMOUNT [PRICE] [name=value ...]`.
    ///
    /// # Errors
    /// A missing, invalid or contradictory argument, in one line.
    pub fn parse(mut arguments: Arguments) -> anyhow::Result<NewOrder> {
        let instrument = arguments
            .named("instrument_name")
            .or_else(|| arguments.next("instrument"))
            .context("which instrument?")?;
        let contracts = decimal(arguments.named("contracts"), "contracts")?;
        let amount = match contracts {
            Some(_) => decimal(arguments.named("amount"), "amount")?,
            None => decimal(arguments.next("amount"), "amount")?,
        };
        let price = decimal(arguments.next("price"), "price")?;
        let order_type = match choice(arguments.named("type"), &TYPES, "type")? {
            Some(order_type) => order_type,
            None if price.is_none() => OrderType::Market,
            None => OrderType::Limit,
        };
        let order = NewOrder {
            instrument,
            amount,
            contracts,
            order_type,
            price,
            label: arguments.named("label").filter(|label| !label.is_empty()),
            time_in_force: choice(
                arguments.named("time_in_force").or_else(|| arguments.named("tif")),
                &TIMES,
                "time_in_force",
            )?,
            post_only: arguments.flag("post_only")?,
            reject_post_only: arguments.flag("reject_post_only")?,
            reduce_only: arguments.flag("reduce_only")?,
            mmp: arguments.flag("mmp")?,
            display_amount: decimal(arguments.named("display_amount"), "display_amount")?,
            trigger: choice(arguments.named("trigger"), &TRIGGERS, "trigger")?,
            trigger_price: decimal(arguments.named("trigger_price"), "trigger_price")?,
            trigger_offset: decimal(arguments.named("trigger_offset"), "trigger_offset")?,
        };
        arguments.finish()?;
        order.check()?;
        Ok(order)
    }

    /// Checks that the order is complete and consistent.
    ///
    /// # Errors
    /// The contradiction.
    pub fn check(&self) -> anyhow::Result<()> {
        ensure!(self.amount.is_some() || self.contracts.is_some(), "state amount= or contracts=");
        for (name, value) in [("amount", self.amount), ("contracts", self.contracts), ("price", self.price)] {
            let is_positive = value.is_none_or(|value| value > Decimal::ZERO);
            // Combination prices can be negative.
            ensure!(is_positive || name == "price", "{name} has to be above 0");
        }
        if let Some(label) = &self.label {
            let len = label.chars().count();
            ensure!(len <= LABEL_MAX, "a label has at most {LABEL_MAX} characters, this one has {len}");
        }
        let name = name_of(&TYPES, self.order_type);
        let has_limit = has_limit(self.order_type);
        ensure!(!has_limit || self.price.is_some(), "a {name} order needs price=");
        ensure!(
            has_limit || self.price.is_none(),
            "a {name} order has no price: leave it out, or name a type with a limit"
        );
        ensure!(
            has_limit || self.time_in_force.is_none(),
            "a {name} order takes no time_in_force: leave it out"
        );
        ensure!(!self.reject_post_only || self.post_only, "reject_post_only goes with post_only");
        self.check_trigger(name)
    }

    fn check_trigger(&self, name: &str) -> anyhow::Result<()> {
        let is_trailing = self.order_type == OrderType::TrailingStop;
        let has_trigger = is_trailing || name.starts_with("stop_") || name.starts_with("take_");
        if has_trigger {
            let known: Vec<&str> = TRIGGERS.iter().map(|(name, _)| *name).collect();
            ensure!(self.trigger.is_some(), "a {name} order needs trigger=: one of {}", known.join(", "));
            ensure!(is_trailing || self.trigger_price.is_some(), "a {name} order needs trigger_price=");
            ensure!(!is_trailing || self.trigger_offset.is_some(), "a {name} order needs trigger_offset=");
        } else {
            let has_some =
                self.trigger.is_some() || self.trigger_price.is_some() || self.trigger_offset.is_some();
            ensure!(!has_some, "a {name} order has no trigger: name a stop, take or trailing type");
        }
        Ok(())
    }

    /// Checks the order against its instrument: amount step, price ticks, and amount equal to contracts.
    ///
    /// # Errors
    /// The mismatch, and the next valid value.
    pub fn check_instrument(&self, instrument: &Instrument<'_>) -> anyhow::Result<()> {
        if let (Some(amount), Some(contracts), Some(size)) =
            (self.amount, self.contracts, instrument.contract_size)
        {
            ensure!(
                agree(amount, contracts, size),
                "amount={amount} and contracts={contracts} do not agree: a contract is {size}"
            );
        }
        if let Some(amount) = self.amount {
            let step = instrument.min_trade_amount;
            ensure!(amount >= step, "amount={amount} is below the least one, {step}");
            ensure!(is_multiple(amount, step), "amount={amount} is no multiple of {step}");
        }
        for (name, price) in [("price", self.price), ("trigger_price", self.trigger_price)] {
            if let Some(price) = price {
                let tick = instrument.tick_at(price);
                ensure!(is_multiple(price, tick), "{name}={price} is no multiple of the tick, {tick}");
            }
        }
        Ok(())
    }

    /// The request's parameters. The venue rejects it after `valid_until`, in milliseconds of its clock.
    #[must_use]
    pub fn params(&self, valid_until: Option<u64>) -> PlaceOrder<'_> {
        PlaceOrder {
            instrument_name: Text::new(&self.instrument),
            amount: self.amount,
            contracts: self.contracts,
            order_type: Some(self.order_type),
            price: self.price,
            label: self.label.as_deref().map(Text::new),
            time_in_force: self.time_in_force,
            post_only: self.post_only,
            reject_post_only: self.reject_post_only,
            reduce_only: self.reduce_only,
            display_amount: self.display_amount,
            trigger: self.trigger,
            trigger_price: self.trigger_price,
            trigger_offset: self.trigger_offset,
            advanced: None,
            mmp: self.mmp,
            valid_until,
        }
    }
}

/// A change of an order.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The order.
    pub order_id: String,
    /// The new total amount, including the executed part.
    pub amount: Option<Decimal>,
    /// The new total amount in contracts.
    pub contracts: Option<Decimal>,
    /// The new price.
    pub price: Option<Decimal>,
    /// True if it must not take liquidity.
    pub post_only: bool,
    /// True if it is cancelled rather than repriced.
    pub reject_post_only: bool,
    /// True if it must not increase the position.
    pub reduce_only: bool,
    /// True if market maker protection counts it.
    pub mmp: bool,
    /// The new trigger price.
    pub trigger_price: Option<Decimal>,
    /// The offset of a trailing stop.
    pub trigger_offset: Option<Decimal>,
    /// The amount shown in the book.
    pub display_amount: Option<Decimal>,
}

impl Change {
    /// Parses a change: `ORDER_ID [AMOUNT] [PRICE] [name=value ...]`.
    ///
    /// # Errors
    /// A missing or invalid argument.
    pub fn parse(mut arguments: Arguments) -> anyhow::Result<Change> {
        let order_id = arguments.next("order_id").context("which order? its id is shown by orders")?;
        let contracts = decimal(arguments.named("contracts"), "contracts")?;
        let change = Change {
            order_id,
            amount: match contracts {
                Some(_) => decimal(arguments.named("amount"), "amount")?,
                None => decimal(arguments.next("amount"), "amount")?,
            },
            contracts,
            price: decimal(arguments.next("price"), "price")?,
            post_only: arguments.flag("post_only")?,
            reject_post_only: arguments.flag("reject_post_only")?,
            reduce_only: arguments.flag("reduce_only")?,
            mmp: arguments.flag("mmp")?,
            trigger_price: decimal(arguments.named("trigger_price"), "trigger_price")?,
            trigger_offset: decimal(arguments.named("trigger_offset"), "trigger_offset")?,
            display_amount: decimal(arguments.named("display_amount"), "display_amount")?,
        };
        arguments.finish()?;
        let has_some =
            [change.amount, change.contracts, change.price, change.trigger_price, change.trigger_offset]
                .iter()
                .any(Option::is_some);
        ensure!(
            has_some,
            "what is to change? state amount=, contracts=, price=, trigger_price= or trigger_offset="
        );
        Ok(change)
    }

    /// The request's parameters, with the same deadline as those of an order.
    #[must_use]
    pub fn params(&self, valid_until: Option<u64>) -> EditOrder<'_> {
        EditOrder {
            order_id: Text::new(&self.order_id),
            amount: self.amount,
            contracts: self.contracts,
            price: self.price,
            post_only: self.post_only,
            reduce_only: self.reduce_only,
            reject_post_only: self.reject_post_only,
            advanced: None,
            trigger_price: self.trigger_price,
            trigger_offset: self.trigger_offset,
            mmp: self.mmp,
            valid_until,
            display_amount: self.display_amount,
        }
    }
}

/// Whether orders of this type have a limit price.
#[must_use]
pub fn has_limit(order_type: OrderType) -> bool {
    matches!(order_type, OrderType::Limit | OrderType::StopLimit | OrderType::TakeLimit)
}

/// Parses an optional decimal; an empty text counts as absent.
///
/// # Errors
/// Not a number.
pub fn decimal(text: Option<String>, name: &str) -> anyhow::Result<Option<Decimal>> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    text.parse().map(Some).map_err(|error| anyhow::anyhow!("{name}={text}: {error}"))
}

/// Parses an optional name of a list; an empty text counts as absent.
///
/// # Errors
/// An unknown name, with the list of known ones.
pub fn choice<T: Copy>(text: Option<String>, names: &[(&str, T)], what: &str) -> anyhow::Result<Option<T>> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    match names.iter().find(|(name, _)| *name == text) {
        Some((_, value)) => Ok(Some(*value)),
        None => bail!("{what}={text}: one of {}", list(names.iter().map(|(name, _)| name))),
    }
}

/// The name of a value.
#[must_use]
pub fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|(_, other)| *other == value).map_or("?", |(name, _)| name)
}

/// Joins items to `a, b, c`.
pub fn list(items: impl Iterator<Item = impl Display>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

/// The currency by which orders of an instrument are requested: its settlement currency.
#[must_use]
pub fn currency_of(instrument: &str) -> &str {
    let pair = instrument.split_once('-').map_or(instrument, |(pair, _)| pair);
    pair.split_once('_').map_or(pair, |(_, quote)| quote)
}

/// The value of an order, in 10^-scale, which `limits.notional_max` bounds. `price` is the order's own or the
/// market's. `index` is the underlying's; it replaces the price of inverse options and combinations, whose
/// price is a difference that says nothing about their value. `None` if a factor is missing or on overflow.
#[must_use]
pub fn notional(
    instrument: &Instrument<'_>,
    amount: Decimal,
    price: Option<Decimal>,
    index: Option<Decimal>,
) -> Option<(i128, u8)> {
    let is_inverse = instrument.instrument_type == Some(InstrumentType::Reversed);
    match (instrument.kind, is_inverse) {
        (Kind::OptionCombo, _) | (Kind::FutureCombo, false) | (Kind::Option, true) => product(amount, index?),
        (_, true) => Some((i128::from(amount.mantissa()), amount.scale())),
        (_, false) => product(amount, price?),
    }
}

/// Whether `value` (in 10^-scale) exceeds a limit; true also if they cannot be compared.
#[must_use]
pub fn exceeds((value, scale): (i128, u8), limit: Decimal) -> bool {
    let limit_scale = limit.scale();
    let up = |number: i128, places: u8| {
        10_i128.checked_pow(u32::from(places)).and_then(|ten| number.checked_mul(ten))
    };
    let common = scale.max(limit_scale);
    match (up(value, common - scale), up(i128::from(limit.mantissa()), common - limit_scale)) {
        // A negative price costs as much as a positive one.
        (Some(value), Some(limit)) => value.saturating_abs() > limit,
        _ => true,
    }
}

/// Whether an amount equals a number of contracts.
#[must_use]
pub fn agree(amount: Decimal, contracts: Decimal, size: Decimal) -> bool {
    product(contracts, size) == product(amount, Decimal::from(1))
}

/// An exact product with the smallest scale.
fn product(a: Decimal, b: Decimal) -> Option<(i128, u8)> {
    let mut value = i128::from(a.mantissa()).checked_mul(i128::from(b.mantissa()))?;
    let mut scale = a.scale() + b.scale();
    while scale > 0 && value % 10 == 0 {
        value /= 10;
        scale -= 1;
    }
    Some((value, scale))
}

/// Whether a number is a multiple of a step; true for a step of zero.
#[must_use]
pub fn is_multiple(value: Decimal, step: Decimal) -> bool {
    if step.is_zero() {
        return true;
    }
    let common = value.scale().max(step.scale());
    let up =
        |number: Decimal| i128::from(number.mantissa()) * 10_i128.pow(u32::from(common - number.scale()));
    up(value) % up(step) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::words;

    fn parse(text: &str) -> anyhow::Result<NewOrder> {
        NewOrder::parse(Arguments::new(&words(text)?, &FLAGS)?)
    }

    fn number(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    #[test]
    fn orders_are_read_by_place_and_by_name() {
        let order = parse("BTC-PERPETUAL 10 50000.5 label='my order' tif=ioc reduce_only").unwrap();
        assert_eq!((order.instrument.as_str(), order.order_type), ("BTC-PERPETUAL", OrderType::Limit));
        assert_eq!((order.amount, order.price), (Some(number("10")), Some(number("50000.5"))));
        assert_eq!(order.label.as_deref(), Some("my order"));
        assert_eq!(order.time_in_force, Some(TimeInForce::ImmediateOrCancel));
        assert!(order.reduce_only && !order.post_only);
        assert_eq!(parse("X 10").unwrap().order_type, OrderType::Market);
        assert_eq!(parse("instrument=X contracts=1 price=5").unwrap().contracts, Some(number("1")));
        let stop = parse("X 10 type=stop_market trigger=mark_price trigger_price=9").unwrap();
        assert_eq!(stop.trigger, Some(Trigger::MarkPrice));
    }

    #[test]
    fn orders_that_cannot_be_meant_are_refused_in_words() {
        for (text, words) in [
            ("", "which instrument"),
            ("X", "amount="),
            ("X 0 5", "above 0"),
            ("X -1 5", "above 0"),
            ("X ten", "amount=ten"),
            ("X 10 1e400", "price=1e400"),
            ("X 10 5 7", "too many"),
            ("X 10 5 lable=x", "lable"),
            ("X 10 type=limit", "needs price"),
            ("X 10 5 type=market", "no price"),
            ("X 10 tif=gtc", "no time_in_force"),
            ("X 10 5 tif=soon", "good_til_day"),
            ("X 10 5 type=iceberg", "trailing_stop"),
            ("X 10 5 reject_post_only", "post_only"),
            ("X 10 5 trigger=mark_price", "no trigger"),
            ("X 10 type=stop_market trigger_price=9", "index_price"),
            ("X 10 type=stop_market trigger=mark_price", "trigger_price"),
            ("X 10 type=trailing_stop trigger=mark_price", "trigger_offset"),
            (&format!("X 10 5 label={}", "x".repeat(65)), "64"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        assert!(parse(&format!("X 10 5 label={}", "x".repeat(64))).is_ok());
    }

    #[test]
    fn a_combination_is_worth_what_its_legs_are() {
        let (amount, index) = (number("10"), number("60000"));
        for (kind, instrument_type, value) in [
            (Kind::FutureCombo, InstrumentType::Linear, Some((600_000, 0))),
            (Kind::OptionCombo, InstrumentType::Linear, Some((600_000, 0))),
            (Kind::OptionCombo, InstrumentType::Reversed, Some((600_000, 0))),
            (Kind::FutureCombo, InstrumentType::Reversed, Some((10, 0))),
            (Kind::Future, InstrumentType::Linear, Some((-10, 0))),
        ] {
            let instrument =
                Instrument { kind, instrument_type: Some(instrument_type), ..Instrument::default() };
            let found = notional(&instrument, amount, Some(number("-1")), Some(index));
            assert_eq!(found, value, "{kind} {instrument_type}");
        }
        // A negative price also has a value.
        assert!(exceeds((-11, 0), number("10")) && !exceeds((-10, 0), number("10")));
        assert!(exceeds((i128::MIN, 0), number("10")));
    }

    #[test]
    fn changes_say_what_is_to_change() {
        let parse = |text: &str| Change::parse(Arguments::new(&words(text)?, &FLAGS)?);
        assert_eq!(parse("id7 20 5.5").unwrap().price, Some(number("5.5")));
        assert_eq!(parse("id7 price=5.5").unwrap().amount, None);
        assert!(parse("id7").unwrap_err().to_string().contains("what is to change"));
        assert!(parse("").unwrap_err().to_string().contains("which order"));
    }

    #[test]
    fn numbers_are_compared_exactly() {
        assert!(is_multiple(number("0.3"), number("0.1")) && !is_multiple(number("0.35"), number("0.1")));
        assert!(is_multiple(number("1000000000000000000"), number("0.000000000000000001")));
        let value = product(number("0.1"), number("50000.5")).unwrap();
        assert!(!exceeds(value, number("5000.05")) && exceeds(value, number("5000.04999")));
        assert!(exceeds((i128::MAX, 0), number("0.000000000000000001")));
        assert_eq!(product(number("2.5"), number("4")), Some((10, 0)));
    }

    #[test]
    fn currencies_are_those_that_are_settled_in() {
        for (name, currency) in [
            ("BTC-PERPETUAL", "BTC"),
            ("ETH_USDC-PERPETUAL", "USDC"),
            ("BTC_USDC", "USDC"),
            ("BTC-25DEC26-100000-C", "BTC"),
        ] {
            assert_eq!(currency_of(name), currency);
        }
    }
}
