//! Reports of a handler, as text and as JSON.

use serde_json::{Value, json};
use tickpath_config::thousands;
use tickpath_feed::LineCounters;
use tickpath_types::{Nanos, Price, Qty, Symbol};

use super::channel::{BookStatus, ChannelStatus, ResyncOutcome};
use super::handler::ChannelReport;

/// Time without a packet after which a channel is reported as quiet: every protocol sends a heartbeat each
/// second.
const QUIET_MAX: Nanos = Nanos::from_secs(5);
/// Number of packets of another session that causes a warning. A normal session change causes fewer packets.
const OTHER_SESSION_PACKETS: u64 = 100;

/// Returns the channels and the given books as JSON.
#[must_use]
pub fn to_json(channels: &[ChannelReport], books: &[(String, BookStatus)]) -> Value {
    json!({
        "channels": channels.iter().map(channel_json).collect::<Vec<_>>(),
        "books": books.iter().map(|(channel, book)| book_json(channel, book)).collect::<Vec<_>>(),
    })
}

fn level(level: Option<(Price, Qty)>) -> Value {
    level.map_or(Value::Null, |(price, qty)| json!({"price": price.to_string(), "qty": qty.0}))
}

fn book_json(channel: &str, book: &BookStatus) -> Value {
    json!({
        "channel": channel,
        "instrument": book.instrument.0,
        "symbol": book.symbol.as_str(),
        "health": book.health.as_str(),
        "reason": book.reason.map(|reason| reason.as_str()),
        "bid": level(book.bid),
        "ask": level(book.ask),
    })
}

/// Creates a JSON object from the named fields of a struct, and from further pairs of key and value.
macro_rules! counts {
    ($of:expr; $($name:ident),*; $($key:literal: $value:expr),* $(,)?) => {
        json!({$((stringify!($name)): $of.$name,)* $($key: $value),*})
    };
}

fn line_json(line: &LineCounters) -> Value {
    counts!(
        line; packets, first_messages, duplicate_messages, missed_messages, malformed, wrong_session, far_ahead, backward;
        "behind_count": line.skew.count,
        "behind_mean_ns": line.skew.mean().0,
        "behind_p50_ns": line.skew.quantile(500).0,
        "behind_p99_ns": line.skew.quantile(990).0,
        "behind_max_ns": line.skew.max.0,
    )
}

fn channel_json(report: &ChannelReport) -> Value {
    let ChannelStatus { lines, builder, channel, snapshot_recovery, recovery, .. } = &report.status;
    let status = &report.status;
    let [live, recovering, stale, suspect] = status.health;
    json!({
        "name": report.name,
        "messages": builder.messages,
        "next_sequence": status.next_sequence,
        "updates": status.updates,
        "trades": status.trades,
        "state_hash": format!("{:016x}", status.state_hash),
        "instruments": status.instruments,
        "quiet_ns": status.quiet.0,
        "lacks_books": status.lacks_books(),
        "health": {"live": live, "recovering": recovering, "stale": stale, "suspect": suspect},
        "line_a": line_json(&lines.lines[0]),
        "line_b": line_json(&lines.lines[1]),
        "recovery_line": line_json(&lines.lines[2]),
        "gaps": {
            "opened": lines.gaps_opened,
            "healed_by_line": lines.gaps_healed_by_line,
            "healed_by_retransmission": lines.gaps_healed_by_retransmission,
            "lost": lines.gaps_lost,
            "messages_lost": lines.messages_lost,
            "not_held": lines.not_held,
            "unavailable": lines.unavailable,
            "longest_ns": lines.longest_gap.0,
        },
        "sessions": {
            "changes": channel.session_changes,
            "ended": channel.ended_sessions,
            "restarts": lines.restarts,
            "jumps_back": lines.jumps_back,
            "left_behind": lines.left_behind,
        },
        "disagreements": lines.disagreements,
        "aside": lines.out_of_band,
        "unauthorised": status.unauthorised,
        "truncated": status.truncated,
        "kernel_drops": status.kernel_drops,
        "contradictions": counts!(
            builder; malformed, unknown_type, unknown_order, duplicate_order, beyond_qty, refused, crossed,
            other_symbols, unmapped, symbol_gaps;
        ),
        "recovery": counts!(
            recovery; requests, refusals, answers, unsolicited, connections, failures, snapshot_requests, snapshots;
            "books_waiting": status.waiting,
            "books_healed": snapshot_recovery.recovered,
            "snapshots_too_old": snapshot_recovery.too_old,
            "snapshots_too_far_ahead": snapshot_recovery.too_far_ahead,
            "snapshots_abandoned": snapshot_recovery.abandoned,
            "messages_dropped": snapshot_recovery.dropped,
            "resyncs": channel.resyncs,
            "resyncs_asked": channel.resyncs_asked,
        ),
    })
}

/// Returns the answer to a resync command.
///
/// # Errors
/// A message, when no channel began to resync.
pub(super) fn resynced(symbol: Symbol, outcomes: &[(String, ResyncOutcome)]) -> Result<Value, String> {
    let of = |selected: ResyncOutcome| {
        let names = outcomes.iter().filter(move |(_, outcome)| *outcome == selected);
        names.map(|(name, _)| name.as_str()).collect::<Vec<_>>()
    };
    let begun = of(ResyncOutcome::Begun);
    if !begun.is_empty() {
        return Ok(json!({"ok": true, "symbol": symbol.as_str(), "channels": begun}));
    }
    match of(ResyncOutcome::NoSnapshots)[..] {
        [] => Err(format!("no channel has {symbol}")),
        ref channels => {
            Err(format!("channel {} has no snapshots to recover {symbol} from", channels.join(", ")))
        }
    }
}

/// Returns the texts of all warnings about a channel, except those about the health of books. The flag of
/// a warning is true if it applies.
pub(super) fn warnings(status: &ChannelStatus) -> [(bool, &'static str); 17] {
    let lines = &status.lines;
    let of_lines = |count: fn(&LineCounters) -> u64| lines.lines.iter().any(|line| count(line) > 0);
    [
        (status.unauthorised > 0, "packets from unauthorised addresses, or of another feed: dropped"),
        (of_lines(|line| line.malformed), "packets of another protocol, or damaged ones: dropped"),
        (status.truncated > 0, "packets longer than a frame of 9216 bytes: dropped"),
        (status.kernel_drops > 0, "the kernel dropped packets that were not read in time"),
        (
            of_lines(|line| line.far_ahead),
            "a packet's number is far ahead of all others: accepted when a second such packet confirms it",
        ),
        (status.channel.session_changes > 0, "the lines changed to another session: its books were reset"),
        (lines.restarts > 0, "the publisher numbers from 1 again: its books were reset"),
        (lines.jumps_back > 0, "the lines repeated earlier numbers: its books were reset"),
        (lines.disagreements > 0, "the lines carried different bytes under the same numbers"),
        (
            lines.messages_lost > 0,
            "messages were lost for good: its books are stale until a snapshot recovers them",
        ),
        (
            status.lacks_books(),
            "messages about instruments without a book: never mapped, or beyond max_instruments",
        ),
        (
            is_quiet_in_session(status),
            "no packet for 5 s, not even the heartbeats that are due each second: check that its publisher runs",
        ),
        (
            lines.lines[..2].iter().any(|line| line.wrong_session >= OTHER_SESSION_PACKETS),
            "packets of another session keep arriving: check for a second publisher on its groups",
        ),
        (
            status.recovery.failures > 0,
            "a recovery server was unreachable, or closed the connection: it is tried again",
        ),
        (status.recovery.refusals > 0, "a recovery server refused a request for lost messages"),
        (status.recovery.unsolicited > 0, "answers from an unrequested address: dropped"),
        (status.builder.unknown_type > 0, "messages of types that its protocol does not list: skipped"),
    ]
}

/// Returns whether packets have stopped although the session has not ended.
fn is_quiet_in_session(status: &ChannelStatus) -> bool {
    let has_ended = status.channel.ended_sessions > status.channel.session_changes;
    status.quiet >= QUIET_MAX && !has_ended
}

/// Formats the current state of a channel in one line. `rate` is in messages per second.
#[must_use]
pub fn status_line(report: &ChannelReport, rate: u64) -> String {
    let status = &report.status;
    let [live, recovering, stale, suspect] = status.health;
    let mut line = format!(
        "{}: {} messages, {}/s, books {live} live",
        report.name,
        thousands(status.builder.messages),
        thousands(rate)
    );
    for (count, name) in [(recovering, "recovering"), (stale, "STALE"), (suspect, "SUSPECT")] {
        if count > 0 {
            line += &format!(", {count} {name}");
        }
    }
    let lines = &status.lines;
    line += &format!("; gaps {}, lost {}", lines.gaps_opened, lines.messages_lost);
    if status.quiet >= QUIET_MAX {
        line += &format!("; no packet for {} s", status.quiet.0 / 1_000_000_000);
    }
    line
}

/// Formats one book in one line.
#[must_use]
pub fn book_line(channel: &str, book: &BookStatus) -> String {
    let level = |level: Option<(Price, Qty)>| {
        level.map_or_else(|| "-".to_owned(), |(price, qty)| format!("{} at {price}", thousands(qty.0)))
    };
    let (bid, ask) = (level(book.bid), level(book.ask));
    let reason = book.reason.map_or(String::new(), |reason| format!(": {}", reason.as_str()));
    format!("  {channel} {:<8} bid {bid}, ask {ask}, {}{reason}", book.symbol, book.health.as_str())
}

/// Formats the status of a channel in a few lines.
#[must_use]
pub fn summary(report: &ChannelReport) -> String {
    let status = &report.status;
    let (lines, recovery) = (&status.lines, &status.recovery);
    let [live, recovering, stale, suspect] = status.health;
    let mut text = format!(
        "channel '{}': {} messages, {} updates, {} trades; books {:016x}\n  health    {live} live, {recovering} \
         recovering, {stale} stale, {suspect} suspect of {} instruments{}\n",
        report.name,
        thousands(status.builder.messages),
        thousands(status.updates),
        thousands(status.trades),
        status.state_hash,
        status.instruments,
        if status.lacks_books() { ", and others without a book" } else { "" },
    );
    for (name, line) in ["A", "B"].iter().zip(&lines.lines) {
        if line.packets == 0 && line.malformed == 0 && line.wrong_session == 0 {
            continue;
        }
        text += &format!(
            "  line {name}    {} packets, first with {} messages, {} copies, {} missed, {} malformed, {} of another session",
            thousands(line.packets),
            thousands(line.first_messages),
            thousands(line.duplicate_messages),
            thousands(line.missed_messages),
            line.malformed,
            line.wrong_session,
        );
        if line.skew.count > 0 {
            text += &format!(
                "; behind by {} ns in the mean, p99 {} ns, {} ns at most",
                thousands(line.skew.mean().0),
                thousands(line.skew.quantile(990).0),
                thousands(line.skew.max.0)
            );
        }
        text += "\n";
    }
    text += &format!(
        "  gaps      {} opened, {} closed by the other line, {} by request, {} lost with {} messages\n",
        lines.gaps_opened,
        lines.gaps_healed_by_line,
        lines.gaps_healed_by_retransmission,
        lines.gaps_lost,
        thousands(lines.messages_lost),
    );
    text += &format!(
        "  recovery  {} requests, {} refused, {} books recovered by snapshots, {} waiting, {} requested again",
        recovery.requests,
        recovery.refusals,
        status.snapshot_recovery.recovered,
        status.waiting,
        status.channel.resyncs + status.channel.resyncs_asked,
    );
    text + &rare_counters(status)
}

/// Formats the counters of rare events that are above 0, each with its name.
fn rare_counters(status: &ChannelStatus) -> String {
    let (lines, recovery) = (&status.lines, &status.recovery);
    let counters = [
        ("unauthorised", status.unauthorised + recovery.unsolicited),
        ("kernel drops", status.kernel_drops),
        ("too long", status.truncated),
        ("session changes", status.channel.session_changes),
        ("restarts", lines.restarts),
        ("jumps back", lines.jumps_back),
        ("disagreements", lines.disagreements),
        ("unknown types", status.builder.unknown_type),
    ];
    let counters: Vec<String> = counters
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    if counters.is_empty() { String::new() } else { format!("\n  besides   {}", counters.join(", ")) }
}
