//! What the front decided and the log does not say: prices of the simulated market, settlements, what its clients set.
//!
//! A record stands between two commands of the log and is a line of JSON in a file beside it. Read again in its place, it does
//! what it did then, so money is the same after a restart.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tickpath_derivatives::Money;

/// A record with its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamped {
    /// Commands of the log before it.
    pub(crate) after: u64,
    /// When, in milliseconds since 1970.
    pub(crate) at_ms: u64,
    #[serde(flatten)]
    pub(crate) record: Record,
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(crate) enum Record {
    /// What is new among prices: of indices by their names, of instruments.
    Prices { indices: Vec<(String, i64)>, markets: Vec<MarketPrices> },
    /// The day's settlement at the mark prices.
    Settled,
    /// An instrument expired at this price of the index, in 10^-4.
    Delivered { instrument: String, price: i64 },
    /// New connections of the account begin with cancel on disconnect, or do not.
    CancelOnDisconnect { account: String, is_enabled: bool },
    /// An order waits for a price, or for another order; in place of an earlier one of its number.
    Waits(WaitingOrder),
    /// A trailing stop followed the market.
    Trails { number: u64, price: i64 },
    /// An order waits no more: it was entered, or is over.
    WaitsNoMore { number: u64 },
    /// So much of an order that waits was entered, under this number of the engine's: the log has it, or it waits again.
    HandedOver { number: u64, qty: u64, user_ref: u32 },
    /// Orders are linked with one that is asked for under this number of the engine's: once the log has it they wait for it.
    LinksAsked { account: String, user_ref: u32, link: Link, linked: Vec<WaitingOrder> },
    /// An order is entered again under this number of the engine's: the engine let it go because a change would have taken.
    EnteredAgain { account: String, number: u64, user_ref: u32 },
    /// What was written down as asked for under this number of the engine's never came into the log.
    NeverAsked { account: String, user_ref: u32 },
    /// An order of the log is linked with others.
    Linked { account: String, number: u64, link: Link },
    /// Market maker protection is set so; with an interval of 0 it is not.
    Protection(Protection),
    /// Market maker protection stopped quoting until then (2^64 - 1: until it is reset), or was reset.
    Frozen { account: String, index: String, group: String, until_ms: Option<u64> },
    /// Fees, and what accounts began with, as they hold from now on.
    MoneyTerms(MoneyTerms),
    /// Money went to another account, or out of the venue.
    Transfer(Transfer),
    /// A token that more than one connection may show: what is kept of it does not show the token.
    Token(Token),
    /// The token is good no more.
    TokenEnds { digest: String },
    /// A key logged on by FIX with this timestamp: none that is as old or older is good any more.
    FixLogon { client_id: String, timestamp_ms: u64 },
    /// Answered commands of the log may be lost, and their numbers in use again. This is the log's generation since then.
    LogLost { generation: u32 },
    /// A linked order is cancelled: the commands that made it wait are lost.
    LinkLost { number: u64 },
}

/// Money as a text of its units of 10^-18, exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exact(pub(crate) Money);

impl Serialize for Exact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.0)
    }
}

impl<'de> Deserialize<'de> for Exact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Exact, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map(|units| Exact(Money(units))).map_err(D::Error::custom)
    }
}

/// Money that left an account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Transfer {
    pub(crate) account: String,
    /// The account that has it now; none of a withdrawal.
    pub(crate) to: Option<String>,
    /// Of a withdrawal.
    pub(crate) address: String,
    pub(crate) currency: String,
    pub(crate) amount: Exact,
}

/// What is reckoned of an instrument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MarketPrices {
    pub(crate) name: String,
    pub(crate) mark: i64,
    pub(crate) basis: i64,
    /// Of perpetuals: what a unit has paid since the beginning, in 10^-18, and the rate, in 10^-9.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) funding: Option<(Exact, i64)>,
}

/// An order that is not in the book.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WaitingOrder {
    pub(crate) account: String,
    pub(crate) instrument: String,
    pub(crate) number: u64,
    pub(crate) is_buy: bool,
    /// As the log keeps them.
    pub(crate) terms: String,
    pub(crate) price: i64,
    pub(crate) qty: u64,
    pub(crate) created_ms: u64,
    pub(crate) is_replaced: bool,
    /// The price that is watched, that fires it, how far behind it follows, and the watched price at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trigger: Option<(String, i64, Option<i64>, i64)>,
    /// What it is linked with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) link: Option<Box<Link>>,
    /// The linked order that it is a part of, which has so much less to let go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) part_of: Option<u64>,
    /// Its price had come, and what was entered for it is lost: it is entered with the next prices.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_overdue: bool,
}

/// What an order is linked with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Link {
    pub(crate) triggers: bool,
    pub(crate) cancels: bool,
    /// 0 for anything, 1 for all, 2 for as much as is filled.
    pub(crate) condition: u8,
    pub(crate) secondaries: Vec<u64>,
    pub(crate) secondary_ids: Vec<String>,
    pub(crate) primary_id: String,
    pub(crate) oco_ref: String,
    /// What it is to watch once it is let go: as an order that waits has it.
    pub(crate) armed: Option<(String, i64, Option<i64>, i64)>,
    pub(crate) released: u64,
}

/// Market maker protection of an index and a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Protection {
    pub(crate) account: String,
    pub(crate) index: String,
    pub(crate) group: String,
    pub(crate) interval_s: u64,
    pub(crate) frozen_s: u64,
    /// In 10^-18.
    pub(crate) quantity: Option<String>,
    pub(crate) delta: Option<String>,
    pub(crate) vega: Option<String>,
    pub(crate) quote_quantity: Option<String>,
}

/// What past money follows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MoneyTerms {
    pub(crate) instruments: Vec<InstrumentTerms>,
    /// What accounts began with, by user and currency, in 10^-18.
    pub(crate) accounts: BTreeMap<String, BTreeMap<String, Exact>>,
}

/// What an instrument is, and what its trades cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InstrumentTerms {
    pub(crate) name: String,
    /// What must not change, in words.
    pub(crate) nature: String,
    /// In millionths: of the resting side, of the incoming side, of delivery, of forced executions.
    pub(crate) fees: [i32; 4],
}

/// A token, by its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Token {
    pub(crate) digest: String,
    /// Of the token that it was given with.
    pub(crate) other: String,
    pub(crate) key: String,
    pub(crate) scope: String,
    pub(crate) expires_us: u64,
    pub(crate) is_refresh: bool,
}

/// What was written down cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Use the version of the program that wrote it, or put the files back.
    #[error(
        "line {line} is no record that this version of the program knows: start the version that wrote it, or put this \
         file back from a copy that was made after the last stop"
    )]
    Line {
        /// Of the file, from 1.
        line: usize,
    },
    /// Balances follow from the old definition: put it back as it was, or begin another session with
    /// `--new-session`, which keeps this one's files.
    #[error(
        "instrument {instrument} was {was} and {is}: past trades would be worth something else. Put it back as it was in \
         the venue's file, or begin another session with --new-session, which keeps the files of this one"
    )]
    Changed {
        /// Its name.
        instrument: String,
        /// What it was.
        was: String,
        /// What the file says.
        is: String,
    },
}

impl Record {
    /// Tokens have no place in the log.
    pub(crate) const fn is_token(&self) -> bool {
        matches!(self, Record::Token(_) | Record::TokenEnds { .. })
    }
}

impl Stamped {
    /// The records of lines.
    pub(crate) fn read_all(lines: &[u8]) -> Result<Vec<Stamped>, RecordError> {
        let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let records = lines.zip(1..);
        records
            .map(|(text, line)| serde_json::from_slice(text).map_err(|_| RecordError::Line { line }))
            .collect()
    }

    /// Appends it as a line.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        serde_json::to_writer(&mut *out, self)
            .expect("a record is written into memory, and its keys are texts");
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_what_they_were_after_the_file() {
        let records = [
            Record::Prices {
                indices: vec![("btc_usd".to_owned(), 600_000_000)],
                markets: vec![MarketPrices {
                    name: "BTC-PERPETUAL".to_owned(),
                    mark: 600_000_100,
                    basis: -5,
                    funding: Some((Exact(Money(i128::MAX)), -250)),
                }],
            },
            Record::Settled,
            Record::Delivered { instrument: "BTC-25DEC26".to_owned(), price: 1 },
            Record::CancelOnDisconnect { account: "ANNA".to_owned(), is_enabled: true },
            Record::Waits(WaitingOrder {
                terms: "D0".to_owned(),
                trigger: Some(("index_price".to_owned(), 5, None, 4)),
                ..WaitingOrder::default()
            }),
            Record::Trails { number: u64::MAX, price: 7 },
            Record::WaitsNoMore { number: 1 << 63 },
            Record::HandedOver { number: 1 << 63, qty: 3, user_ref: 7 },
            Record::LinksAsked {
                account: "ANNA".to_owned(),
                user_ref: 3,
                link: Link { triggers: true, ..Link::default() },
                linked: vec![WaitingOrder { part_of: Some(1), ..WaitingOrder::default() }],
            },
            Record::EnteredAgain { account: "ANNA".to_owned(), number: 9, user_ref: 4 },
            Record::NeverAsked { account: "ANNA".to_owned(), user_ref: 4 },
            Record::Linked {
                account: "ANNA".to_owned(),
                number: 9,
                link: Link { secondaries: vec![1 << 63], oco_ref: "OCO-9".to_owned(), ..Link::default() },
            },
            Record::Protection(Protection { vega: Some("1.5".to_owned()), ..Protection::default() }),
            Record::Token(Token {
                digest: "d".to_owned(),
                other: "o".to_owned(),
                key: "anna".to_owned(),
                scope: "session:x".to_owned(),
                expires_us: 3,
                is_refresh: true,
            }),
            Record::TokenEnds { digest: "d".to_owned() },
            Record::Frozen {
                account: "ANNA".to_owned(),
                index: "btc_usd".to_owned(),
                group: String::new(),
                until_ms: Some(u64::MAX),
            },
            Record::MoneyTerms(MoneyTerms {
                instruments: vec![InstrumentTerms { fees: [-1, 2, 3, 4], ..InstrumentTerms::default() }],
                accounts: [("ANNA".to_owned(), [("BTC".to_owned(), Exact(Money(-5)))].into())].into(),
            }),
            Record::Transfer(Transfer {
                to: Some("BERT".to_owned()),
                amount: Exact(Money(7)),
                ..Transfer::default()
            }),
            Record::FixLogon { client_id: "anna".to_owned(), timestamp_ms: 7 },
            Record::LogLost { generation: 2 },
            Record::LinkLost { number: 1 << 63 },
        ];
        let written: Vec<Stamped> =
            (1..).zip(records).map(|(after, record)| Stamped { after, at_ms: 9, record }).collect();
        let mut lines = Vec::new();
        written.iter().for_each(|record| record.write(&mut lines));
        assert_eq!(Stamped::read_all(&lines).unwrap(), written);
        // A number that is none is no 0.
        let forged = String::from_utf8(lines).unwrap().replace("\"-5\"", "\"-5x\"");
        assert!(Stamped::read_all(forged.as_bytes()).is_err());
        let unknown = b"{\"after\":1,\"at_ms\":2,\"what\":\"else\"}\n";
        assert_eq!(Stamped::read_all(unknown), Err(RecordError::Line { line: 1 }));
    }
}
