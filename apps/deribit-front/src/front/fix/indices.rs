//! Indices over FIX: instruments of type INDEX whose names end in `-DERIBIT-INDEX`.
//!
//! Source: Deribit, "FIX API", Security List and Market Data Request: index value, estimated delivery price.

use tickpath_derivatives::Money;
use tickpath_fix::Group;
use tickpath_fix::deribit::{
    MarketDataIncremental, MarketDataSnapshot, MdChange, MdEntry, MdEntryType, MdUpdateAction, Security,
};

use super::market_data::Kinds;
use super::{Front, Outgoing, figure_of, written};

/// SecurityType (167).
pub(super) const INDEX: &str = "INDEX";
const ENDING: &str = "-DERIBIT-INDEX";
/// Quote currency that names omit.
const QUOTE_DEFAULT: &str = "USD";

/// An index subscription of a client.
pub(super) struct IndexFeed {
    /// Id of the request.
    pub(super) id: String,
    /// Place of the index.
    pub(super) index: usize,
    pub(super) kinds: Kinds,
    /// True if each update is a snapshot, not a change.
    pub(super) is_whole: bool,
    /// Latest published value.
    pub(super) told: Money,
}

/// Returns the FIX name of an index such as `btc_usd` or `eth_usdc`.
pub(super) fn symbol_of(index: &str) -> String {
    let (base, quote) = currencies_of(index);
    match quote.as_str() {
        QUOTE_DEFAULT | "" => format!("{base}{ENDING}"),
        _ => format!("{base}_{quote}{ENDING}"),
    }
}

fn currencies_of(index: &str) -> (String, String) {
    let (base, quote) = index.split_once('_').unwrap_or((index, ""));
    (base.to_uppercase(), quote.to_uppercase())
}

impl Front {
    /// Returns the place of the index with this name.
    pub(super) fn index_of_symbol(&self, symbol: &str) -> Option<usize> {
        let is_index = symbol.ends_with(ENDING);
        self.indices.iter().position(|index| is_index && symbol_of(&index.name) == symbol)
    }

    /// Returns the matching indices as instruments: name, base and quote currency.
    pub(super) fn listed_indices(&self, base: Option<&str>, quote: Option<&str>) -> Vec<[String; 3]> {
        let is_wanted = |own: &str, wanted: Option<&str>| {
            wanted.is_none_or(|wanted| wanted.eq_ignore_ascii_case(own) || wanted.eq_ignore_ascii_case("any"))
        };
        let names = self.indices.iter().map(|index| {
            let (base, quote) = currencies_of(&index.name);
            [symbol_of(&index.name), base, quote]
        });
        names.filter(|[_, of, against]| is_wanted(of, base) && is_wanted(against, quote)).collect()
    }

    /// Writes a snapshot of an index.
    pub(super) fn index_snapshot(&self, id: &str, index: usize, kinds: Kinds) -> Option<Outgoing> {
        let entries: Vec<MdEntry<'_>> = self
            .index_entries(index, kinds)
            .map(|(entry_type, price)| MdEntry {
                entry_type,
                price: Some(figure_of(price)),
                time: Some(self.now()),
                ..MdEntry::default()
            })
            .collect();
        written(&MarketDataSnapshot {
            symbol: &symbol_of(&self.indices[index].name),
            md_req_id: Some(id),
            entries: Group::of(&entries),
            ..MarketDataSnapshot::default()
        })
    }

    fn index_change(&self, id: &str, index: usize, kinds: Kinds) -> Option<Outgoing> {
        let changes: Vec<MdChange<'_>> = self
            .index_entries(index, kinds)
            .map(|(entry_type, price)| MdChange {
                action: MdUpdateAction::CHANGE,
                entry_type,
                price: Some(figure_of(price)),
                time: Some(self.now()),
                ..MdChange::default()
            })
            .collect();
        written(&MarketDataIncremental {
            symbol: &symbol_of(&self.indices[index].name),
            md_req_id: Some(id),
            changes: Group::of(&changes),
            ..MarketDataIncremental::default()
        })
    }

    /// Returns the index value and the estimated delivery price, which equals it as over JSON-RPC.
    fn index_entries(&self, index: usize, kinds: Kinds) -> impl Iterator<Item = (MdEntryType, Money)> {
        let price = self.indices[index].price;
        let value = kinds.has_index.then_some(MdEntryType::INDEX_VALUE);
        let delivery = kinds.has_settlement.then_some(MdEntryType::SETTLEMENT_PRICE);
        [value, delivery].into_iter().flatten().map(move |entry_type| (entry_type, price))
    }

    /// Publishes changed indices to their subscribers.
    pub(super) fn tell_index_feeds(&mut self) {
        let mut due = Vec::new();
        for (number, connection) in &mut self.connections {
            let Some(link) = connection.fix.as_deref_mut() else { continue };
            for feed in &mut link.index_feeds {
                let price = self.indices[feed.index].price;
                let is_told = feed.kinds.has_index || feed.kinds.has_settlement;
                if std::mem::replace(&mut feed.told, price) != price && is_told {
                    due.push((*number, feed.id.clone(), feed.index, feed.kinds, feed.is_whole));
                }
            }
        }
        for (number, id, index, kinds, is_whole) in due {
            let message = match is_whole {
                true => self.index_snapshot(&id, index, kinds),
                false => self.index_change(&id, index, kinds),
            };
            self.send_fix(number, message);
        }
    }
}

/// Describes an index as an instrument.
pub(super) fn index_security([symbol, base, quote]: &[String; 3]) -> Security<'_> {
    Security {
        symbol,
        description: Some("index"),
        security_type: Some(INDEX),
        currency: Some(base),
        price_quote_currency: Some(quote).filter(|quote| !quote.is_empty()).map(String::as_str),
        ..Security::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_leave_the_dollar_out() {
        assert_eq!(symbol_of("btc_usd"), "BTC-DERIBIT-INDEX");
        assert_eq!(symbol_of("eth_usdc"), "ETH_USDC-DERIBIT-INDEX");
    }
}
