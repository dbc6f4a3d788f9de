//! Converts reports to JSON. Field names are stable, also those of structures that derive `Serialize`.

use std::net::SocketAddrV4;

use serde_json::{Map, Value, json};
use tickpath_book::Level;
use tickpath_capture::{DbnDefinition, PacketCounters};
use tickpath_recording::{
    CaptureReport, ChannelReport, DbnSchema, EndReason, ModelReport, SymbolBook, SymbolStatistics, TypeCount,
};
use tickpath_types::{Decimal, Price, Side};

use crate::cost::{Cost, peak_rss_bytes};
use crate::registry;
use crate::report::{FileReport, ReplayReport};
use crate::text::side_word;

impl ReplayReport {
    /// Returns the report as one JSON object: the fields of a single file, or sums over several files.
    /// `files` has the object of each file. Prices are decimals as text.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let files: Vec<Value> = self.files.iter().map(FileReport::to_json).collect();
        let mut report = match files.as_slice() {
            [one] => one.clone(),
            _ => self.sum(),
        };
        report["files"] = Value::Array(files);
        report["failures"] = self
            .failures
            .iter()
            .map(|(path, error)| json!({ "file": path.display().to_string(), "error": error }))
            .collect();
        report["left_out"] = self.left_out.iter().map(|path| path.display().to_string()).collect();
        report["trustworthy"] = json!(self.is_trustworthy());
        report
    }

    fn sum(&self) -> Value {
        let mean = |cost: fn(&FileReport) -> Option<Cost>| {
            let costs =
                self.files.iter().filter_map(|file| Some((cost(file)?.mean_ns, file.messages_read as f64)));
            let (ns, messages) =
                costs.fold((0.0, 0.0), |(ns, sum), (mean, messages)| (ns + mean * messages, sum + messages));
            (messages > 0.0).then(|| ns / messages)
        };
        let checks: Vec<Value> = self.files.iter().map(check).collect();
        json!({
            "messages": self.messages(),
            "by_type": by_type(&self.by_type()),
            "decode_ns_per_message": mean(|file| file.decode),
            "books_ns_per_message": mean(|file| file.books),
            "peak_rss_bytes": peak_rss_bytes(),
            "seconds": self.files.iter().map(|file| file.elapsed.as_secs_f64()).sum::<f64>(),
            "integrity": self.integrity(),
            "check": checks,
            "tops": self.files.iter().flat_map(FileReport::tops).collect::<Value>(),
            "symbol_count": self.files.iter().map(|file| file.symbol_count).sum::<usize>(),
            "absent_symbols": self.absent_symbols(),
            "exported": self.exported(),
        })
    }
}

impl FileReport {
    /// The report as a JSON object.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let symbols: Vec<Value> = self
            .statistics
            .iter()
            .map(|(symbol, statistics)| symbol_json(symbol, statistics, self.price_decimals))
            .collect();
        json!({
            "file": self.path.display().to_string(),
            "format": registry::file_format(self.format).json_name,
            "messages": self.messages,
            "messages_read": self.messages_read,
            "snapshot_messages": self.snapshot_messages,
            "by_type": by_type(&self.by_type),
            "type_names": self.by_type.iter().map(|entry| (entry.code.clone(), json!(entry.name))).collect::<Map<_, _>>(),
            "first_ns": self.span.map(|(first, _)| first.ns),
            "last_ns": self.span.map(|(_, last)| last.ns),
            "decode_ns_per_message": self.decode.map(|cost| cost.median_ns),
            "decode_ns_per_message_mean": self.decode.map(|cost| cost.mean_ns),
            "books_ns_per_message": self.books.map(|cost| cost.median_ns),
            "books_ns_per_message_mean": self.books.map(|cost| cost.mean_ns),
            "blocks": self.decode.map(|cost| cost.blocks),
            "checksum": format!("{:016x}", self.checksum),
            "peak_rss_bytes": self.peak_rss_bytes,
            "seconds": self.elapsed.as_secs_f64(),
            "integrity": self.integrity,
            "check": check(self),
            "tops": self.tops(),
            "symbol_count": self.symbol_count,
            "symbols": symbols,
            "absent_symbols": self.absent_symbols,
            "ended": self.ended.map(|ended| match ended {
                EndReason::Limit => "limit",
                EndReason::Window => "window",
                EndReason::Stopped => "stopped",
            }),
            "exported": self.exported,
            "trustworthy": self.is_trustworthy(),
            "reliability": self.reliability().name(),
            "is_end_seen": self.is_end_seen,
            "contradictions": self.contradictions,
            "reservations": self.reservations,
            "schema": self.schema.map(DbnSchema::name),
            "definitions": self.definitions.iter().map(definition).collect::<Value>(),
            "capture": self.capture.as_ref().map(|report| capture(report, &self.frames.unwrap_or_default())),
        })
    }

    fn tops(&self) -> Vec<Value> {
        self.tops.iter().map(|book| top(book, self.price_decimals)).collect()
    }
}

fn definition(definition: &DbnDefinition) -> Value {
    json!({
        "symbol": definition.symbol,
        "class": definition.class.to_string(),
        "exchange": definition.exchange,
        "currency": definition.currency,
        "tick": definition.tick.map(|tick| tick.to_string()),
        "strike": definition.strike.map(|strike| strike.to_string()),
        "expiration_ns": definition.expiration_ns,
    })
}

fn capture(capture: &CaptureReport, frames: &PacketCounters) -> Value {
    let counts = |pairs: &[(&str, u64)]| -> Map<String, Value> {
        pairs.iter().map(|(name, count)| ((*name).to_owned(), json!(count))).collect()
    };
    json!({
        "recording": capture.name,
        "protocol": capture.protocol.name(),
        "recordings": capture.recordings,
        "frames": frames.frames,
        "frames_skipped": counts(&frames.skipped()),
        "unknown_packets": capture.unknown.count,
        "unknown_destinations": capture.unknown.destinations.iter().map(to).collect::<Value>(),
        "channels": capture.channels.iter().map(channel).collect::<Value>(),
    })
}

fn channel(report: &ChannelReport) -> Value {
    let mut channel = json!(report);
    channel["lines"] = report.lines.iter().map(to).collect();
    channel
}

fn to((dst, count): &(SocketAddrV4, u64)) -> Value {
    json!({ "to": dst.to_string(), "packets": count })
}

fn by_type(list: &[TypeCount]) -> Value {
    let mut map = Map::new();
    for TypeCount { code, count, .. } in list {
        let sum = map.get(code).and_then(Value::as_u64).unwrap_or(0) + count;
        map.insert(code.clone(), json!(sum));
    }
    Value::Object(map)
}

fn check(report: &FileReport) -> Value {
    let model = report.model.as_ref().map(|ModelReport { every, comparisons, state_hash, difference }| {
        json!({ "every": every, "comparisons": comparisons, "state_hash": format!("{state_hash:016x}"), "difference": difference })
    });
    if model.is_none() && report.rows.is_none() {
        return Value::Null;
    }
    let is_equal = report.model.as_ref().is_none_or(|model| model.difference.is_none())
        && report.rows.as_ref().is_none_or(|rows| rows.first_difference.is_none());
    json!({ "ok": is_equal, "reference_model": model, "order_book_rows": report.rows })
}

fn top(book: &SymbolBook, decimals: u8) -> Value {
    let price = |price: Price| Decimal { units: price.0, decimals }.to_string();
    let level = |level: &Level| json!({ "price": price(level.price), "qty": level.qty.0, "orders": level.order_count });
    let mut map = Map::new();
    map.insert("symbol".to_owned(), json!(book.symbol));
    for side in Side::BOTH {
        map.insert(side_word(side).to_owned(), book.sides[side.index()].iter().map(level).collect());
    }
    Value::Object(map)
}

fn symbol_json(symbol: &str, statistics: &SymbolStatistics, decimals: u8) -> Value {
    let scaled = |units| Decimal { units, decimals }.to_string();
    let price = |price: Option<Price>| price.map(|price| scaled(price.0));
    json!({
        "symbol": symbol,
        "messages": statistics.messages,
        "adds": statistics.adds,
        "executions": statistics.executions,
        "volume": u64::try_from(statistics.volume).unwrap_or(u64::MAX),
        "low": price(statistics.low),
        "high": price(statistics.high),
        "last": price(statistics.last),
        "tick": scaled(i64::try_from(statistics.tick).unwrap_or(i64::MAX)),
        "spread_sum": spread_sum(statistics.spread_sum, decimals),
        "spread_count": statistics.spread_count,
        "spread_average_ticks_ppm": statistics.spread_average_ticks_ppm().map(|ppm| u64::try_from(ppm).unwrap_or(u64::MAX)),
    })
}

/// Formats a sum of spreads, which may exceed the range of a price, with four decimals or more if needed.
fn spread_sum(units: u128, decimals: u8) -> String {
    let scale = 10_u128.pow(u32::from(decimals));
    let whole = units / scale;
    let fraction = Decimal { units: (units % scale) as i64, decimals }.to_string();
    format!("{whole}{}", fraction.trim_start_matches('0'))
}
