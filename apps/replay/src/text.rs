//! Formats reports as text.

use std::fmt;

use tickpath_book::Level;
use tickpath_capture::PacketCounters;
use tickpath_config::{Zone, thousands};
use tickpath_recording::{
    CaptureReport, ChannelReport, DbnSchema, EndReason, Finding, Reliability, SYMBOLS_SHOWN, SymbolBook,
    SymbolStatistics, TypeCount,
};
use tickpath_types::{Decimal, Price, Side};

use crate::cost::Cost;
use crate::exports::ExportedRows;
use crate::registry;
use crate::report::{FileReport, ReplayReport};

/// Maximum number of a capture's recordings that the report lists.
const RECORDINGS_SHOWN: usize = 8;

impl fmt::Display for ReplayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_sum = self.files.len() + self.failures.len() > 1;
        if is_sum {
            write_verdict_of_all(self, f)?;
        }
        for (index, file) in self.files.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{file}")?;
        }
        for (path, error) in &self.failures {
            let names_path = error.contains(&*path.to_string_lossy());
            let name = if names_path { String::new() } else { format!("{}: ", path.display()) };
            write!(f, "\nNOT REPLAYED: {name}{error}")?;
        }
        if !self.left_out.is_empty() {
            let count = self.left_out.len();
            write!(f, "\nSTOPPED: {count} file(s) not started, the first {}", self.left_out[0].display())?;
        }
        if is_sum { write_sum(self, f) } else { Ok(()) }
    }
}

fn write_verdict_of_all(report: &ReplayReport, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let count = report.files.len() + report.failures.len();
    let trusted = report.files.iter().filter(|file| file.is_trustworthy()).count();
    match trusted == count {
        true => writeln!(f, "PASS: all {count} files can be trusted\n"),
        false => writeln!(f, "FAIL: {trusted} of {count} files can be trusted\n"),
    }
}

fn write_sum(report: &ReplayReport, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let count = report.files.len() + report.failures.len();
    write!(f, "\n\nSum of {count} files: {} messages, ", thousands(report.messages()))?;
    write!(f, "{} orders left", thousands(report.integrity().orders_left))?;
    for symbol in report.absent_symbols() {
        write!(f, "\nThere is no symbol {symbol} in any of them.")?;
    }
    write_types(&report.by_type(), report.messages(), f)?;
    write_exports(&report.exported(), f)
}

impl FileReport {
    /// Returns the name of the file's format, such as `DBN, market by order`.
    #[must_use]
    pub fn title(&self) -> String {
        (registry::file_format(self.format).title)(self)
    }
}

impl fmt::Display for FileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_verdict(self, f)?;
        write_head(self, f)?;
        for symbol in &self.absent_symbols {
            write!(f, "\nThere is no symbol {symbol} in the recording.")?;
        }
        write_exports(&self.exported, f)?;
        write_statistics(self, f)?;
        write_tops(&self.tops, self.price_decimals, f)?;
        write_definitions(self, f)?;
        write_checks(self, f)?;
        if let Some(capture) = &self.capture {
            write_capture(capture, &self.frames.unwrap_or_default(), f)?;
        }
        write_types(&self.by_type, self.messages, f)?;
        write_integrity(self, f)?;
        write_costs(self, f)
    }
}

fn write_head(report: &FileReport, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let title = report.title();
    let symbols = if report.symbol_count == 1 {
        "1 symbol".to_owned()
    } else {
        format!("{} symbols", thousands(report.symbol_count as u64))
    };
    write!(f, "\n{}: {title}, {symbols}", report.path.display())?;
    if let Some((first, last)) = report.span {
        write!(f, "\n{first} to {last}")?;
    }
    let seconds = report.elapsed.as_secs_f64();
    let rate = report.messages_read as f64 / seconds.max(1e-9) / 1e6;
    write!(f, "\n{} messages in {seconds:.2} s ({rate:.2} million/s)", thousands(report.messages_read))?;
    if report.snapshot_messages > 0 {
        let count = thousands(report.snapshot_messages);
        write!(f, ", {count} of them in a snapshot, which builds the books but is not in the statistics")?;
    }
    if report.messages != report.messages_read {
        write!(f, ", {} of them in the window", thousands(report.messages))?;
    }
    match report.ended {
        Some(EndReason::Limit) => write!(f, "; ended at --limit"),
        Some(EndReason::Window) => write!(f, "; ended at --to"),
        Some(EndReason::Stopped) => write!(f, "; STOPPED before the end of the file"),
        None => Ok(()),
    }
}

fn write_capture(
    capture: &CaptureReport,
    frames: &PacketCounters,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let CaptureReport { channels, recordings, unknown, .. } = capture;
    if recordings.len() > 1 {
        write!(f, "\nThe capture has {} recordings, each with a separate report: ", recordings.len())?;
        let shown: Vec<String> = (1..)
            .zip(recordings)
            .take(RECORDINGS_SHOWN)
            .map(|(number, name)| format!("{number} {name}"))
            .collect();
        write!(f, "{}", shown.join("; "))?;
        if recordings.len() > shown.len() {
            write!(f, "; and {} more", recordings.len() - shown.len())?;
        }
    }
    write!(f, "\n{} frames", thousands(frames.frames))?;
    for (what, count) in frames.skipped().into_iter().filter(|(_, count)| *count > 0) {
        write!(f, ", {} {what}", thousands(count))?;
    }
    if unknown.count > 0 {
        write!(f, ", {} of no known protocol", thousands(unknown.count))?;
        if let Some((dst, count)) = unknown.destinations.first() {
            write!(f, " (most to {dst}: {})", thousands(*count))?;
        }
    }
    write!(
        f,
        "\n\n{:<26} {:>10} {:>12} {:>11} {:>8} {:>7} {:>9} {:>9}",
        "Channel", "packets", "messages", "duplicates", "filled", "gaps", "lost", "malformed"
    )?;
    for channel in channels {
        write_channel(channel, f)?;
    }
    Ok(())
}

fn write_channel(channel: &ChannelReport, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "\n{:<26} {:>10} {:>12} {:>11} {:>8} {:>7} {:>9} {:>9}",
        channel.name,
        thousands(channel.packets),
        thousands(channel.messages),
        thousands(channel.duplicates),
        thousands(channel.gaps_filled),
        thousands(channel.gaps),
        thousands(channel.lost),
        thousands(channel.malformed),
    )?;
    let mut notes: Vec<String> = Vec::new();
    if channel.stream.is_none() {
        let lines = channel.lines.iter().map(|(dst, packets)| format!("{dst} ({})", thousands(*packets)));
        notes.push(format!("to {}", lines.collect::<Vec<_>>().join(" and ")));
    }
    let counts = [
        (channel.heartbeats, "heartbeat(s)"),
        (channel.restarts, "sequence reset(s)"),
        (channel.unnumbered, "message(s) without a sequence number"),
        (channel.uncompared, "duplicate(s) not compared"),
        (channel.before_first, "message(s) before the first sequence number, skipped"),
        (channel.disagreements, "packet(s) that differ between the lines"),
        (channel.jumped_back, "packet(s) whose sequence numbers jumped back"),
        (channel.skipped, "packet(s) outside the sequence"),
        (channel.recovered, "book(s) recovered by refreshes"),
    ];
    notes.extend(
        counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{} {what}", thousands(*count))),
    );
    if channel.first_sequence > 1 {
        notes.push(format!("begins with message {}", thousands(channel.first_sequence)));
    }
    if let Some(stream) = &channel.stream {
        notes.push(format!(
            "{} segment(s), {} byte(s) retransmitted, {} out of order, {} hole(s)",
            thousands(stream.segments),
            thousands(stream.retransmitted_bytes),
            thousands(stream.out_of_order),
            thousands(stream.holes)
        ));
    }
    write!(f, "\n  {}", notes.join(", "))
}

fn write_types(by_type: &[TypeCount], messages: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "\n\nMessages")?;
    for TypeCount { code, name, count } in by_type {
        let share = *count as f64 * 100.0 / messages.max(1) as f64;
        write!(f, "\n  {code:<3} {name:<32} {:>14} {share:>7.2}%", thousands(*count))?;
    }
    Ok(())
}

/// Description of the cost of the books.
const BOOKS_COST: &str = "
  \"books + best\" is the time to find, decode and check each message, to apply it to the full books, and to
  build the best prices after it. It excludes the reading of the file, statistics, comparisons and exports.";

fn write_costs(report: &FileReport, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "\n\nCost of a message")?;
    let mut line = |name: &str, cost: Option<Cost>| match cost {
        Some(Cost { median_ns, mean_ns, blocks }) => {
            write!(
                f,
                "\n  {name:<26} {median_ns:>8.1} ns median of {blocks} block(s), {mean_ns:.1} ns overall"
            )
        }
        None => Ok(()),
    };
    line("decode + checksum", report.decode)?;
    line("decode + books + best", report.books)?;
    if report.books.is_some() {
        f.write_str(BOOKS_COST)?;
    }
    if let Some(bytes) = report.peak_rss_bytes {
        write!(f, "\n  peak memory of the process {:>8.1} MiB", bytes as f64 / (1 << 20) as f64)?;
    }
    write!(f, "\n  checksum of all fields     {:016x}", report.checksum)
}

fn write_integrity(report: &FileReport, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let integrity = &report.integrity;
    write!(f, "\n\nIntegrity")?;
    let mut line = |name: &str, finding: &Finding| {
        write!(f, "\n  {name:<34} {:>12}", thousands(finding.count))?;
        match &finding.first {
            Some(first) => write!(f, "  first at {first}"),
            None => Ok(()),
        }
    };
    line("malformed messages", &integrity.malformed)?;
    line("times that run backwards", &integrity.time_backwards)?;
    if report.books.is_some() {
        line("references to unknown orders", &integrity.unknown_references)?;
        line("executions above the quantity", &integrity.beyond_quantity)?;
        line("duplicate order references", &integrity.duplicate_references)?;
        line("orders rejected by the books", &integrity.refused)?;
        for (name, finding) in [
            ("messages of unmapped symbols", &integrity.unmapped),
            ("gaps of one symbol", &integrity.symbol_gaps),
        ] {
            if finding.count > 0 {
                line(name, finding)?;
            }
        }
        for (name, _, finding) in integrity.crossed.by_state() {
            line(name, finding)?;
        }
        write!(f, "\n  {:<34} {:>12}", "orders left at the end", thousands(integrity.orders_left))?;
    }
    if registry::file_format(report.format).has_order_book_files && report.books.is_some() {
        write!(f, "\n  {:<34} {:>12}", "orders removed without a message", thousands(integrity.unreported))?;
        f.write_str("\n  The recording covers the best levels only: orders from before it and from below these levels")?;
        f.write_str(
            "\n  are missing, so these counts are no verdict; use --check with the order book file.",
        )?;
    }
    Ok(())
}

fn write_checks(report: &FileReport, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if let Some(model) = &report.model {
        let result = if model.difference.is_none() { "equal" } else { "DIFFERENT" };
        write!(
            f,
            "\n\nCheck: {result} to the reference model after every message in best prices, and in all orders of"
        )?;
        write!(
            f,
            "\n  all books at {} comparison(s), every {} messages and at the end; state {:016x}",
            model.comparisons,
            thousands(model.every),
            model.state_hash
        )?;
    }
    if let Some(rows) = &report.rows {
        write!(f, "\n\nCheck against {}:", rows.file)?;
        write!(
            f,
            "\n  {:>12} rows equal the expected row: the previous row plus the message",
            thousands(rows.determined - rows.different.min(rows.determined))
        )?;
        write!(f, "\n  {:>12} rows differ from the expected row", thousands(rows.different))?;
        write!(
            f,
            "\n  {:>12} rows cannot be determined: the first, and those that show a deeper level",
            thousands(rows.undeterminable)
        )?;
    }
    Ok(())
}

fn write_statistics(report: &FileReport, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if report.statistics.is_empty() || report.schema == Some(DbnSchema::Definition) {
        return Ok(());
    }
    write!(
        f,
        "\n\n{:<10} {:>10} {:>10} {:>10} {:>14} {:>10} {:>11} {:>8} {:>8}",
        "Symbol", "last", "low", "high", "volume", "executions", "messages", "tick", "spread/t"
    )?;
    let shown = report.shown_count;
    for (symbol, statistics) in report.statistics.iter().take(shown) {
        write_symbol(symbol, statistics, report.price_decimals, f)?;
    }
    if let left @ 1.. = report.statistics.len().saturating_sub(shown) {
        let left = thousands(left as u64);
        write!(f, "\n... and {left} more: choose with --symbols, or all of them in --json")?;
    }
    write!(f, "\n  spread/t: average spread in ticks")
}

fn write_symbol(
    symbol: &str,
    statistics: &SymbolStatistics,
    decimals: u8,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let scaled = |units| Decimal { units, decimals }.to_string();
    let price = |price: Option<Price>| price.map_or("-".to_owned(), |price| scaled(price.0));
    let tick = scaled(i64::try_from(statistics.tick).unwrap_or(i64::MAX));
    let spread = statistics
        .spread_average_ticks_ppm()
        .map_or("-".to_owned(), |ppm| format!("{}.{:03}", ppm / 1_000_000, ppm / 1_000 % 1_000));
    write!(
        f,
        "\n{symbol:<10} {:>10} {:>10} {:>10} {:>14} {:>10} {:>11} {tick:>8} {spread:>8}",
        price(statistics.last),
        price(statistics.low),
        price(statistics.high),
        thousands(u64::try_from(statistics.volume).unwrap_or(u64::MAX)),
        thousands(statistics.executions),
        thousands(statistics.messages),
    )
}

fn write_tops(tops: &[SymbolBook], decimals: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for book in tops {
        let [bids, asks] = &book.sides;
        write!(
            f,
            "\n\n{:<10} {:>7} {:>12} {:>12}   {:<12} {:>12} {:>7}",
            book.symbol, "orders", "bid qty", "bid", "ask", "ask qty", "orders"
        )?;
        if bids.is_empty() && asks.is_empty() {
            write!(f, "\n{:>30}", "no orders")?;
        }
        for rank in 0..bids.len().max(asks.len()) {
            let (bid, ask) = (bids.get(rank), asks.get(rank));
            let cell = |text: Option<String>| text.unwrap_or_default();
            let price = |level: &Level| Decimal { units: level.price.0, decimals }.to_string();
            write!(
                f,
                "\n{:>18} {:>12} {:>12}   {:<12} {:>12} {:>7}",
                cell(bid.map(|level| level.order_count.to_string())),
                cell(bid.map(|level| thousands(level.qty.0))),
                cell(bid.map(price)),
                cell(ask.map(price)),
                cell(ask.map(|level| thousands(level.qty.0))),
                cell(ask.map(|level| level.order_count.to_string())),
            )?;
        }
    }
    Ok(())
}

fn write_definitions(report: &FileReport, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if report.definitions.is_empty() {
        return Ok(());
    }
    write!(
        f,
        "\n\n{:<24} {:>5} {:>8} {:>8} {:>14} {:>14}   expires",
        "Definition", "class", "exchange", "currency", "tick", "strike"
    )?;
    for definition in report.definitions.iter().take(SYMBOLS_SHOWN) {
        let price = |price: Option<Decimal>| price.map_or("-".to_owned(), |price| price.to_string());
        let expires = definition.expiration_ns.map_or("-".to_owned(), |ns| Zone::UTC.date_at(ns).to_string());
        write!(
            f,
            "\n{:<24} {:>5} {:>8} {:>8} {:>14} {:>14}   {expires}",
            definition.symbol,
            definition.class,
            definition.exchange,
            definition.currency,
            price(definition.tick),
            price(definition.strike),
        )?;
    }
    match report.definitions.len().saturating_sub(SYMBOLS_SHOWN) {
        0 => Ok(()),
        left => write!(f, "\n... and {} more: all of them in --json", thousands(left as u64)),
    }
}

fn write_exports(exported: &ExportedRows, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let names = ["best prices", "trades", "depth", "order changes"];
    for (name, rows) in names.into_iter().zip(exported.values()) {
        if let Some(rows) = rows {
            write!(f, "\nExported {} row(s) of {name}.", thousands(rows))?;
        }
    }
    Ok(())
}

fn write_verdict(report: &FileReport, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(match report.reliability() {
        Reliability::Complete if report.is_end_seen => {
            "PASS: nothing contradicts the recording, and nothing is missing from it"
        }
        Reliability::Complete => {
            "PASS: nothing contradicts the recording, and no loss is detected; no message ends the session"
        }
        Reliability::Partial => "PASS: nothing contradicts the recording, but it is reliable only in part:",
        Reliability::Contradicted => "FAIL: the recording cannot be trusted:",
    })?;
    for reason in report.contradictions.iter().chain(&report.reservations) {
        write!(f, "\n  {reason}")?;
    }
    Ok(())
}

/// Returns the word for the orders of a side: bids or asks.
pub(crate) const fn side_word(side: Side) -> &'static str {
    match side {
        Side::Buy => "bids",
        Side::Sell => "asks",
    }
}
