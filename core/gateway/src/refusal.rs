//! Reject texts for users: the requested value and the limit. Nothing is allocated.

use std::fmt::{self, Write};

use tickpath_gateway_protocol::{CreateOrder, ErrorCode, Fixed, ModifyOrder, Text};
use tickpath_types::Nanos;

use super::Core;
use super::requests::Asked;

/// Maximum length of a text.
pub(super) const WORDS_LEN_MAX: usize = 48;

/// Requested values that a text can contain; 0 if absent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wanted {
    price: Fixed,
    stop_price: Fixed,
    quantity: Fixed,
    shown: Fixed,
}

impl From<&CreateOrder> for Wanted {
    fn from(order: &CreateOrder) -> Wanted {
        let CreateOrder { price, stop_price, quantity, max_show, .. } = *order;
        Wanted { price, stop_price, quantity, shown: max_show }
    }
}

impl From<&ModifyOrder> for Wanted {
    fn from(change: &ModifyOrder) -> Wanted {
        let ModifyOrder { price, stop_price, quantity, .. } = *change;
        Wanted { price, stop_price, quantity, shown: Fixed::ZERO }
    }
}

/// A text of bounded length: excess is cut.
struct Words {
    bytes: [u8; WORDS_LEN_MAX],
    len: usize,
}

impl Write for Words {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for (to, from) in self.bytes[self.len..].iter_mut().zip(text.bytes()) {
            *to = if from.is_ascii() { from } else { b'?' };
            self.len += 1;
        }
        Ok(())
    }
}

fn words(arguments: fmt::Arguments<'_>) -> Text<WORDS_LEN_MAX> {
    let mut words = Words { bytes: [0; WORDS_LEN_MAX], len: 0 };
    // Writing into memory does not fail.
    let _ = words.write_fmt(arguments);
    Text::cut(std::str::from_utf8(&words.bytes[..words.len]).unwrap_or_default())
}

/// Text for a number that must be above zero and a multiple of a step; none if it is both.
fn off_step(what: &str, value: Fixed, step: Fixed) -> Option<Text<WORDS_LEN_MAX>> {
    if value.0 <= 0 {
        return Some(words(format_args!("{what}{value} is not above 0")));
    }
    let is_off = step.0 <= 0 || value.0 % step.0 != 0;
    is_off.then(|| words(format_args!("{what}{value} is no multiple of {step}")))
}

impl Core {
    /// Returns the text of a rejection by the gateway.
    #[cold]
    pub(super) fn why_refused(
        &self,
        now: Nanos,
        asked: &Asked,
        error: ErrorCode,
        wanted: &Wanted,
    ) -> Text<WORDS_LEN_MAX> {
        // For a change, the order determines account and instrument.
        let order = self.find_own(asked).ok().and_then(|slot| self.orders.get(slot));
        let (account, symbol) =
            order.map_or((asked.account, asked.symbol), |order| (order.account, order.symbol));
        let id = if asked.client_order_id == 0 { asked.order_id } else { asked.client_order_id };
        match error {
            ErrorCode::INVALID_QUANTITY => self.why_not_quantity(symbol, wanted),
            ErrorCode::INVALID_PRICE => self.why_not_price(symbol, wanted),
            ErrorCode::MAX_ORDER_QUANTITY
            | ErrorCode::MAX_ORDER_NOTIONAL
            | ErrorCode::MAX_OPEN_ORDERS
            | ErrorCode::NO_RISK_LIMITS
            | ErrorCode::NOT_READY => self.why_not_account(account, error, wanted),
            ErrorCode::RATE_LIMITED => {
                let (_, most, period) = self.policy.requests_left(now, asked.user);
                words(format_args!("more than {most} requests in {} s", period.0.div_ceil(1_000_000_000)))
            }
            ErrorCode::BANNED => {
                let left = self.policy.banned_until(now, asked.user).map_or(0, |until| until.since(now).0);
                words(format_args!("banned for another {} s", left.div_ceil(1_000_000_000)))
            }
            ErrorCode::NOT_PERMITTED => Text::cut(self.why_not_permitted(asked, account)),
            ErrorCode::UNKNOWN_ORDER => words(format_args!("no open order {id}")),
            ErrorCode::DUPLICATE_ORDER => words(format_args!("an order {id} is open or was not long ago")),
            ErrorCode::INVALID_ORDER_ID => words(format_args!("order id {id} is not in 1 to 2^63-1")),
            other => Text::cut(plain_words(other)),
        }
    }

    fn why_not_quantity(&self, symbol: u32, wanted: &Wanted) -> Text<WORDS_LEN_MAX> {
        let step = self.instruments.get(symbol).map_or(Fixed::ZERO, |it| it.reference.min_quantity);
        off_step("", wanted.quantity, step)
            .or_else(|| off_step("shown ", wanted.shown, step))
            .unwrap_or_else(|| Text::cut(plain_words(ErrorCode::INVALID_QUANTITY)))
    }

    fn why_not_price(&self, symbol: u32, wanted: &Wanted) -> Text<WORDS_LEN_MAX> {
        let tick = |price| self.instruments.get(symbol).map_or(Fixed::ZERO, |it| it.tick_at(price));
        let off = |what, price: Fixed| off_step(what, price, tick(price));
        // Orders without a limit price have only a stop price.
        let limit =
            if wanted.price.is_zero() && !wanted.stop_price.is_zero() { None } else { off("", wanted.price) };
        limit
            .or_else(|| off("stop price ", wanted.stop_price))
            .unwrap_or_else(|| Text::cut(plain_words(ErrorCode::INVALID_PRICE)))
    }

    /// Text about the account's limits, or about its state.
    fn why_not_account(&self, account: u16, error: ErrorCode, wanted: &Wanted) -> Text<WORDS_LEN_MAX> {
        let Some(known) = self.accounts.get(usize::from(account)) else {
            return Text::cut(plain_words(error));
        };
        let (most, published) = self.policy.caps_of(account);
        let of = |is_published: bool| if is_published { "published" } else { "configured" };
        match error {
            ErrorCode::MAX_ORDER_QUANTITY => {
                let cap = Fixed(most.order_size_max.unwrap_or(0));
                let of = of(published.order_size_max == most.order_size_max);
                words(format_args!("{} is above {cap}, as {of}", wanted.quantity))
            }
            ErrorCode::MAX_ORDER_NOTIONAL => {
                let cap = Fixed(most.notional_max.unwrap_or(0));
                let of = of(published.notional_max == most.notional_max);
                words(format_args!("its value is above {cap}, as {of}"))
            }
            ErrorCode::MAX_OPEN_ORDERS => {
                let cap = most.open_orders_max.unwrap_or(0);
                let of = of(published.open_orders_max == most.open_orders_max);
                words(format_args!("{} orders open of {cap}, as {of}", known.all_open_orders()))
            }
            ErrorCode::NO_RISK_LIMITS => words(format_args!("no limits are published for {}", known.name)),
            _ => words(format_args!("{} {}", known.name, known.words())),
        }
    }

    fn why_not_permitted(&self, asked: &Asked, account: u16) -> &'static str {
        let is_watcher = self.clients.get(asked.client).is_some_and(|client| !client.may_trade);
        let watches = self.accounts.get(usize::from(account)).is_some_and(|account| !account.may_trade);
        match (is_watcher, watches) {
            (true, _) => "the client came to watch, not to trade",
            (_, true) => "the account's key may not trade",
            _ => "the user is not permitted to do that",
        }
    }
}

/// Text for a code that needs no details.
const fn plain_words(error: ErrorCode) -> &'static str {
    match error {
        ErrorCode::MALFORMED => "no request of this kind and layout is known",
        ErrorCode::UNKNOWN_ACCOUNT => "the user has no such account",
        ErrorCode::UNKNOWN_SYMBOL => "no such instrument, or not for this user",
        ErrorCode::INVALID_PRICE => "the price is none of the instrument",
        ErrorCode::INVALID_QUANTITY => "the quantity is none of the instrument",
        ErrorCode::INVALID_TERMS => "its terms are unknown or do not go together",
        ErrorCode::KILLED => "the kill switch is on: only cancels pass",
        ErrorCode::TOO_LATE => "an earlier request of it is on its way",
        ErrorCode::BUSY => "no room for more: try again in a moment",
        ErrorCode::NOT_SUPPORTED => "neither venue nor transport can do that",
        ErrorCode::VENUE_RATE_LIMITED => "the venue's credits are used up for now",
        ErrorCode::DRY_RUN => "a dry run: no order leaves",
        ErrorCode::STOPPING => "the gateway is stopping",
        ErrorCode::NO_REFERENCE_PRICE => "no price is known to tell its value by",
        ErrorCode::UNREADABLE_ORDER => "an open order there cannot be read",
        other => match other.name() {
            Some(name) => name,
            None => "",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_is_off_and_fit() {
        let fixed = |text: &str| text.parse::<Fixed>().unwrap();
        let said = |value, step| off_step("", fixed(value), fixed(step)).map(|text| text.as_str().to_owned());
        assert_eq!(said("7", "10").as_deref(), Some("7 is no multiple of 10"));
        assert_eq!(said("60000.3", "0.5").as_deref(), Some("60000.3 is no multiple of 0.5"));
        assert_eq!(said("0", "10").as_deref(), Some("0 is not above 0"));
        assert_eq!(said("20", "10"), None);
        let long = words(format_args!("{}\u{e9}", "x".repeat(WORDS_LEN_MAX)));
        assert_eq!(long.as_str(), "x".repeat(WORDS_LEN_MAX));
    }

    #[test]
    fn every_code_has_words_that_are_not_cut() {
        for code in ErrorCode::ALL.iter().copied() {
            let text = plain_words(code);
            assert!(!text.is_empty() && text.len() <= WORDS_LEN_MAX, "{code}: {text}");
        }
    }
}
