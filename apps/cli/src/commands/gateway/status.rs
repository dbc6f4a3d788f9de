//! Text form of a running gateway's status.

use std::fmt::{self, Write};

use serde_json::Value;
use tickpath_config::{Date, counted, thousands};

const SECOND_NS: u64 = 1_000_000_000;
const DAY_S: u64 = 86_400;

/// Formats the gateway's answer as a short overview. `now_ns` is the present time in
/// nanoseconds since 1970.
pub fn to_text(answer: &Value, now_ns: u64) -> String {
    let mut out = String::new();
    let mut answer = answer.clone();
    make_visible(&mut answer);
    // Writing into memory does not fail.
    let _ = write_all(&mut out, &answer, now_ns);
    out.trim_end().to_owned()
}

/// Replaces control characters by question marks: those in untrusted names and venue texts could control a
/// terminal.
fn make_visible(value: &mut Value) {
    match value {
        Value::String(text) if text.contains(char::is_control) => {
            *text = text.replace(char::is_control, "?");
        }
        Value::Array(items) => items.iter_mut().for_each(make_visible),
        Value::Object(members) => members.values_mut().for_each(make_visible),
        _ => {}
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn count(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or(0)
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default().iter()
}

fn write_all(out: &mut String, answer: &Value, now_ns: u64) -> fmt::Result {
    let (state, why) = (text(answer, "state").replace('_', " "), text(answer, "why"));
    let does = match (answer["is_trading"] == true, why) {
        (true, "") => "orders are accepted".to_owned(),
        (true, why) => format!("orders are accepted; {why}"),
        (false, why) => format!("no order is accepted: {why}"),
    };
    writeln!(out, "{}: {state}; {does}", text(answer, "gateway"))?;
    let money = if answer["is_production"] == true { ", real money" } else { "" };
    let transport = match text(answer, "transport") {
        "fix" => "FIX",
        _ => "the WebSocket",
    };
    writeln!(
        out,
        "  venue        {} at {}{money}; orders over {transport}",
        text(answer, "exchange"),
        text(answer, "venue")
    )?;
    let (started, since) = (count(answer, "started_ns"), count(answer, "state_since_ns"));
    write!(out, "  since        {}, for {}", moment(started), period(now_ns.saturating_sub(started)))?;
    if since > started {
        write!(out, "; {state} for {}", period(now_ns.saturating_sub(since)))?;
    }
    writeln!(out)?;
    let accounts = list(answer, "accounts").count();
    writeln!(
        out,
        "  accounts     {} of {accounts} ready, {}, {}",
        count(answer, "accounts_ready"),
        counted(count(answer, "open_orders"), "open order"),
        counted(count(answer, "instruments"), "instrument")
    )?;
    list(answer, "accounts").try_for_each(|account| write_account(out, account))?;
    let external = count(answer, "foreign_orders");
    if external > 0 {
        let unreadable = count(answer, "unreadable_orders");
        writeln!(
            out,
            "  of others    {}, {unreadable} that cannot be read",
            counted(external, "open order")
        )?;
    }
    let external_changes = count(answer, "orders_elsewhere");
    if external_changes > 0 {
        writeln!(
            out,
            "  elsewhere    {} orders of its name were entered or changed by somebody else",
            thousands(external_changes)
        )?;
    }
    let is_ready = |connection: &&Value| connection["status"] == "ready";
    let ready = list(answer, "connections").filter(is_ready).count();
    writeln!(out, "  connections  {ready} of {} ready", list(answer, "connections").count())?;
    list(answer, "connections").try_for_each(|connection| write_connection(out, connection))?;
    writeln!(out, "  clients      {}", count(answer, "clients"))?;
    list(answer, "client_list").try_for_each(|client| write_client(out, client))?;
    list(answer, "banned").try_for_each(|ban| {
        let left = period(count(ban, "until_ns").saturating_sub(now_ns));
        writeln!(out, "  banned       {} for another {left}", text(ban, "user"))
    })
}

fn write_account(out: &mut String, account: &Value) -> fmt::Result {
    write!(
        out,
        "    {:<10} {}; {}; ",
        text(account, "name"),
        text(account, "words"),
        counted(count(account, "open_orders"), "open order")
    )?;
    if account["waits_for_limits"] == true {
        return writeln!(out, "no limits are published, and no order leaves before");
    }
    let limits = &account["limits"];
    let mut known = Vec::new();
    for (key, label) in [("order_size_max", "an order"), ("notional_max", "its value")] {
        if let Some(most) = limits[key].as_str() {
            known.push(format!("{label} up to {most}"));
        }
    }
    if let Some(most) = limits["open_orders_max"].as_u64() {
        known.push(counted(most, "open order"));
    }
    let of = if account["published"].is_null() { "" } else { ", as published" };
    match known.is_empty() {
        true => writeln!(out, "no limits"),
        false => writeln!(out, "limits: {}{of}", known.join(", ")),
    }
}

fn write_connection(out: &mut String, connection: &Value) -> fmt::Result {
    let kind = match (connection["is_trading"] == true, connection["is_market_data"] == true) {
        (true, _) => "orders",
        (_, true) => "market data",
        _ => "account",
    };
    write!(
        out,
        "    {:<10} {:<9} {kind:<11} {}",
        text(connection, "name"),
        transport_of(text(connection, "transport")),
        text(connection, "status").replace('_', " ")
    )?;
    if let Some(ns) = connection["round_trip_ns"].as_u64() {
        write!(out, ", round trip {}", micros(ns))?;
    }
    match count(connection, "losses") {
        0 => {}
        1 => write!(out, ", lost once")?,
        losses => write!(out, ", lost {} times", thousands(losses))?,
    }
    match text(connection, "last_loss") {
        "" => writeln!(out),
        loss => writeln!(out, ", last: {loss}"),
    }
}

fn write_client(out: &mut String, client: &Value) -> fmt::Result {
    let does = if client["may_trade"] == true { "may trade" } else { "watches" };
    write!(
        out,
        "    {:<10} number {}, user {}, {does}",
        text(client, "name"),
        count(client, "number"),
        text(client, "user")
    )?;
    match (client["to_client_mean_ns"].as_u64(), client["to_gateway_mean_ns"].as_u64()) {
        (Some(there), Some(back)) => {
            writeln!(out, ", pings {} there, {} back", micros(there), micros(back))
        }
        _ => writeln!(out),
    }
}

fn transport_of(name: &str) -> &str {
    match name {
        "ws" => "WebSocket",
        "fix" => "FIX",
        other => other,
    }
}

/// Formats nanoseconds as microseconds with one decimal.
fn micros(ns: u64) -> String {
    format!("{}.{} us", thousands(ns / 1_000), ns / 100 % 10)
}

/// Formats a time as `2026-11-22 18:40:03 UTC`.
fn moment(utc_ns: u64) -> String {
    let seconds = utc_ns / SECOND_NS;
    let (day, rest) = (seconds / DAY_S, seconds % DAY_S);
    format!("{} {:02}:{:02}:{:02} UTC", Date::of_day(day), rest / 3_600, rest / 60 % 60, rest % 60)
}

/// Formats a duration with its two largest units.
fn period(ns: u64) -> String {
    let seconds = ns / SECOND_NS;
    match (seconds / DAY_S, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, seconds) => format!("{seconds} s"),
        (0, 0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (0, hours, minutes, _) => format!("{hours} h {minutes} min"),
        (days, hours, ..) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn control_characters_of_others_are_removed() {
        let answer = json!({
            "gateway": "deribit", "state": "ready", "is_trading": true, "clients": 1,
            "connections": [{ "name": "A1", "status": "waiting", "losses": 1, "last_loss": "gone\u{1b}[2J\nby" }],
            "client_list": [{ "number": 1, "name": "a\u{1b}]0;b\u{7}", "user": "mia", "may_trade": true }],
        });
        let shown = to_text(&answer, 0);
        assert!(shown.chars().all(|character| character == '\n' || !character.is_control()), "{shown}");
        assert!(shown.contains("gone?[2J?by") && shown.contains("a?]0;b?"), "{shown}");
    }

    #[test]
    fn a_gateway_status_is_summarised() {
        let limits = json!({ "order_size_max": "10", "notional_max": null, "open_orders_max": 5 });
        let answer = json!({
            "gateway": "deribit", "exchange": "deribit", "venue": "wss://test.deribit.com/ws/api/v2",
            "transport": "ws", "state": "ready", "is_trading": true, "why": "B1 requests positions",
            "started_ns": 1_795_362_361_000_000_000_u64, "state_since_ns": 1_795_362_363_000_000_000_u64,
            "is_production": true, "open_orders": 3, "instruments": 1234, "accounts_ready": 1, "clients": 1,
            "orders_elsewhere": 2, "banned": [{ "user": "leo", "until_ns": 1_795_369_854_000_000_000_u64 }],
            "accounts": [
                { "name": "A1", "words": "is ready", "open_orders": 3, "limits": limits, "published": limits },
                { "name": "B1", "words": "requests positions", "waits_for_limits": true, "limits": {} },
            ],
            "connections": [
                { "name": "market-1", "transport": "ws", "is_market_data": true, "status": "ready", "losses": 0 },
                { "name": "A1", "transport": "fix", "is_trading": true, "status": "login_sent", "losses": 2,
                  "last_loss": "silent for 30 s", "round_trip_ns": 310_250 },
            ],
            "client_list": [{ "number": 4, "name": "maker", "user": "mia", "may_trade": true,
                "to_client_mean_ns": 640, "to_gateway_mean_ns": 1_050 }],
        });
        let expected = "\
deribit: ready; orders are accepted; B1 requests positions
  venue        deribit at wss://test.deribit.com/ws/api/v2, real money; orders over the WebSocket
  since        2026-11-22 15:46:01 UTC, for 2 h 1 min; ready for 2 h 1 min
  accounts     1 of 2 ready, 3 open orders, 1,234 instruments
    A1         is ready; 3 open orders; limits: an order up to 10, 5 open orders, as published
    B1         requests positions; 0 open orders; no limits are published, and no order leaves before
  elsewhere    2 orders of its name were entered or changed by somebody else
  connections  1 of 2 ready
    market-1   WebSocket market data ready
    A1         FIX       orders      login sent, round trip 310.2 us, lost 2 times, last: silent for 30 s
  clients      1
    maker      number 4, user mia, may trade, pings 0.6 us there, 1.0 us back
  banned       leo for another 3 min 20 s";
        assert_eq!(to_text(&answer, 1_795_369_654_000_000_000), expected);
    }

    #[test]
    fn an_incomplete_answer_is_no_panic() {
        assert!(to_text(&json!({}), 0).contains("no order is accepted"));
    }
}
