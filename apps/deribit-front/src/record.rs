//! Records: decisions of the front that the log does not contain, such as prices, settlements and settings.
//!
//! A record belongs between two log commands and is a line of JSON in a separate file. Applied again at its
//! place, it has the same effect, so balances are the same after a restart.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tickpath_derivatives::Money;

/// A record with its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamped {
    /// Number of log commands before it.
    pub(crate) after: u64,
    /// Time, in milliseconds since 1970.
    pub(crate) at_ms: u64,
    #[serde(flatten)]
    pub(crate) record: Record,
}

/// A decision of the front.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(crate) enum Record {
    /// Changed prices: of indices by name, and of instruments.
    Prices { indices: Vec<(String, i64)>, markets: Vec<MarketPrices> },
    /// The daily settlement at the mark prices.
    Settled,
    /// The delivery of an instrument at this index price, in 10^-4.
    Delivered { instrument: String, price: i64 },
    /// The cancel on disconnect default for new connections of the account.
    CancelOnDisconnect { account: String, is_enabled: bool },
    /// An untriggered or linked order; replaces an earlier one with its number.
    Waits(WaitingOrder),
    /// A new price of a trailing stop.
    Trails { number: u64, price: i64 },
    /// An order that no longer waits: it was entered or closed.
    WaitsNoMore { number: u64 },
    /// A part of a waiting order entered under this engine number: either the log has it, or it waits again.
    HandedOver { number: u64, qty: u64, user_ref: u32 },
    /// Linked orders of an order sent under this engine number; they start once the log has the order.
    LinksAsked { account: String, user_ref: u32, link: Link, linked: Vec<WaitingOrder> },
    /// An order entered again under this engine number; the engine removed it as its edit would have taken.
    EnteredAgain { account: String, number: u64, user_ref: u32 },
    /// A request recorded under this engine number that never reached the log.
    NeverAsked { account: String, user_ref: u32 },
    /// The links of an order in the log.
    Linked { account: String, number: u64, link: Link },
    /// New market maker protection; an interval of 0 removes it.
    Protection(Protection),
    /// Quoting stopped by market maker protection until this time (2^64 - 1: until a reset), or its reset.
    Frozen { account: String, index: String, group: String, until_ms: Option<u64> },
    /// Fees and initial balances that apply from now on.
    MoneyTerms(MoneyTerms),
    /// A transfer to another account or a withdrawal.
    Transfer(Transfer),
    /// A token valid for several connections; the stored data does not reveal it.
    Token(Token),
    /// The end of a token.
    TokenEnds { digest: String },
    /// A FIX Logon of a key with this timestamp; the same and older timestamps are no longer valid.
    FixLogon { client_id: String, timestamp_ms: u64 },
    /// Acknowledged log commands may be lost and their numbers reused since this log generation.
    LogLost { generation: u32 },
    /// The cancel of a linked order, because the commands that it depends on are lost.
    LinkLost { number: u64 },
}

/// An exact amount, as text in units of 10^-18.
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

/// An amount that left an account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Transfer {
    pub(crate) account: String,
    /// The receiving account; none for a withdrawal.
    pub(crate) to: Option<String>,
    /// Address of a withdrawal.
    pub(crate) address: String,
    pub(crate) currency: String,
    pub(crate) amount: Exact,
}

/// Calculated prices of an instrument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MarketPrices {
    pub(crate) name: String,
    pub(crate) mark: i64,
    pub(crate) basis: i64,
    /// Perpetuals only: total funding paid per unit, in 10^-18, and the rate, in 10^-9.
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
    /// Encoded as in the log.
    pub(crate) terms: String,
    pub(crate) price: i64,
    pub(crate) qty: u64,
    pub(crate) created_ms: u64,
    pub(crate) is_replaced: bool,
    /// Watched price type, trigger price, trailing offset, and the watched price at entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trigger: Option<(String, i64, Option<i64>, i64)>,
    /// Its links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) link: Option<Box<Link>>,
    /// The linked order that it is a part of; that order has this quantity less to release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) part_of: Option<u64>,
    /// True if its trigger price was reached but its entry was lost; the next price update enters it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_overdue: bool,
}

/// Links of an order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Link {
    pub(crate) triggers: bool,
    pub(crate) cancels: bool,
    /// 0 for any fill, 1 for a complete fill, 2 for a proportional one.
    pub(crate) condition: u8,
    pub(crate) secondaries: Vec<u64>,
    pub(crate) secondary_ids: Vec<String>,
    pub(crate) primary_id: String,
    pub(crate) oco_ref: String,
    /// Trigger terms after the release, in the form of `WaitingOrder::trigger`.
    pub(crate) armed: Option<(String, i64, Option<i64>, i64)>,
    pub(crate) released: u64,
}

/// Market maker protection of an index and an MMP group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Protection {
    pub(crate) account: String,
    pub(crate) index: String,
    pub(crate) group: String,
    pub(crate) interval_s: u64,
    pub(crate) frozen_s: u64,
    /// Limits in 10^-18.
    pub(crate) quantity: Option<String>,
    pub(crate) delta: Option<String>,
    pub(crate) vega: Option<String>,
    pub(crate) quote_quantity: Option<String>,
}

/// Terms that past amounts depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MoneyTerms {
    pub(crate) instruments: Vec<InstrumentTerms>,
    /// Initial balances, by user and currency, in 10^-18.
    pub(crate) accounts: BTreeMap<String, BTreeMap<String, Exact>>,
}

/// Definition and fees of an instrument.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InstrumentTerms {
    pub(crate) name: String,
    /// Text of everything that must not change.
    pub(crate) nature: String,
    /// Maker, taker, delivery and liquidation fees, in millionths.
    pub(crate) fees: [i32; 4],
}

/// A token, by its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Token {
    pub(crate) digest: String,
    /// Digest of the token issued together with it.
    pub(crate) other: String,
    pub(crate) key: String,
    pub(crate) scope: String,
    pub(crate) expires_us: u64,
    pub(crate) is_refresh: bool,
}

/// Error in the stored records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The line is unknown: start the program version that wrote it, or restore the files.
    #[error(
        "line {line} is no record that this version of the program knows: start the version that wrote it, or put this \
         file back from a copy that was made after the last stop"
    )]
    Line {
        /// Line number in the file, from 1.
        line: usize,
    },
    /// Balances depend on the old definition: restore it, or begin another session with `--new-session`,
    /// which keeps the files of this one.
    #[error(
        "instrument {instrument} was {was} and {is}: past trades would be worth something else. Put it back as it was in \
         the venue's file, or begin another session with --new-session, which keeps the files of this one"
    )]
    Changed {
        /// Name of the instrument.
        instrument: String,
        /// Its recorded definition.
        was: String,
        /// Its definition in the configuration.
        is: String,
    },
}

impl Record {
    /// Tokens do not depend on log commands.
    pub(crate) const fn is_token(&self) -> bool {
        matches!(self, Record::Token(_) | Record::TokenEnds { .. })
    }
}

impl Stamped {
    /// Parses records from lines.
    pub(crate) fn read_all(lines: &[u8]) -> Result<Vec<Stamped>, RecordError> {
        let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let records = lines.zip(1..);
        records
            .map(|(text, line)| serde_json::from_slice(text).map_err(|_| RecordError::Line { line }))
            .collect()
    }

    /// Appends the record as a line.
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
        // An invalid number is not read as 0.
        let forged = String::from_utf8(lines).unwrap().replace("\"-5\"", "\"-5x\"");
        assert!(Stamped::read_all(forged.as_bytes()).is_err());
        let unknown = b"{\"after\":1,\"at_ms\":2,\"what\":\"else\"}\n";
        assert_eq!(Stamped::read_all(unknown), Err(RecordError::Line { line: 1 }));
    }
}
