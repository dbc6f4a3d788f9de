//! Text form of the answer to `status`: the instruments with their trades, then the counters.

use std::collections::BTreeMap;

use serde_json::Value;
use tickpath_config::thousands;

/// Maximum line length, in columns.
const WIDTH: usize = 80;
/// Width of the first column of the list of phases: the phase and its number of instruments.
const INDENT: usize = 22;
/// Width of one counter, in columns: its name at the left, its value at the right.
const CELL: usize = 38;
/// Maximum number of rows in the market table; with more instruments, a list of all phases precedes it.
const INSTRUMENTS_SHOWN: usize = 20;

/// Formats the answer in lines of at most [`WIDTH`] columns.
pub(super) fn describe(answer: &Value) -> String {
    let phases = answer["phases"].as_object();
    let mut lines = Vec::new();
    if let Some(phases) = phases.filter(|phases| phases.len() > INSTRUMENTS_SHOWN) {
        lines.extend(group_by_value(phases));
        lines.push(String::new());
    }
    lines.extend(market_table(answer));
    lines.push(String::new());
    let mut cells = Vec::new();
    for (name, value) in answer.as_object().into_iter().flatten().filter(|(name, _)| *name != "ok") {
        match value {
            Value::Object(_) => {}
            Value::Bool(flag) => cells.push(cell(name, if *flag { "yes" } else { "no" })),
            Value::Number(number) => {
                let shown = number.as_u64().map_or_else(|| number.to_string(), thousands);
                cells.push(cell(name, &shown));
            }
            other => cells.push(cell(name, other.as_str().unwrap_or_default())),
        }
    }
    // Show the counters in two columns: fill the first from top to bottom, then the second.
    let rows = cells.len().div_ceil(2);
    for row in 0..rows {
        let second = cells.get(rows + row).map_or("", String::as_str);
        lines.push(format!("{}    {second}", cells[row]).trim_end().to_owned());
    }
    lines.join("\n")
}

/// Formats a table of the instruments' phases and trades, those with the most trades first.
pub(in crate::commands) fn market_table(answer: &Value) -> Vec<String> {
    let mut rows: Vec<(&String, &Value)> = answer["market"].as_object().into_iter().flatten().collect();
    rows.sort_by_key(|(_, totals)| std::cmp::Reverse(totals["trades"].as_u64()));
    let number = |value: &Value| thousands(value.as_u64().unwrap_or(0));
    let mut lines = vec![format!(
        "{:<10} {:<8} {:>14} {:>16} {:>12}",
        "instrument", "phase", "last price", "traded quantity", "trades"
    )];
    lines.extend(rows.iter().take(INSTRUMENTS_SHOWN).map(|(symbol, totals)| {
        format!(
            "{symbol:<10} {:<8} {:>14} {:>16} {:>12}",
            answer["phases"][symbol.as_str()].as_str().unwrap_or_default(),
            totals["last"].as_str().unwrap_or("-"),
            number(&totals["volume"]),
            number(&totals["trades"]),
        )
    }));
    if let left @ 1.. = rows.len().saturating_sub(INSTRUMENTS_SHOWN) {
        lines.push(format!("... and {} more: all of them in --json", thousands(left as u64)));
    }
    lines
}

fn cell(name: &str, value: &str) -> String {
    let room = CELL.saturating_sub(name.len());
    format!("{name}{value:>room$}")
}

/// Lists each value, such as a phase, and the symbols that have it, in lines of at most [`WIDTH`] columns.
fn group_by_value(values: &serde_json::Map<String, Value>) -> Vec<String> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (symbol, value) in values {
        groups.entry(value.as_str().unwrap_or_default()).or_default().push(symbol);
    }
    let mut lines = Vec::new();
    for (value, symbols) in groups {
        let count = format!("{value} ({})", thousands(symbols.len() as u64));
        let mut line = format!("{count:<INDENT$}");
        for symbol in symbols {
            if line.len() + 1 + symbol.len() > WIDTH {
                lines.push(std::mem::replace(&mut line, " ".repeat(INDENT)));
            }
            line.push(' ');
            line.push_str(symbol);
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn trades(count: u64) -> Value {
        json!({ "last": (count > 0).then_some("100.5000"), "volume": 100 * count, "trades": count })
    }

    #[test]
    fn few_instruments_have_a_row_each() {
        let status = json!({
            "ok": true, "phases": { "ALPHA": "trading", "BRAVO": "halted" },
            "market": { "ALPHA": trades(0), "BRAVO": trades(1_234) },
            "is_killed": false, "commands": 1_234_567, "users": 3, "executions": 0,
            "drop_copy_readers_slow": 0,
        });
        let expected = [
            "instrument phase        last price  traded quantity       trades",
            "BRAVO      halted         100.5000          123,400        1,234",
            "ALPHA      trading               -                0            0",
            "",
            "commands                     1,234,567    is_killed                           no",
            "drop_copy_readers_slow               0    users                                3",
            "executions                           0",
        ];
        assert_eq!(describe(&status), expected.join("\n"));
    }

    #[test]
    fn many_instruments_fill_lines() {
        let symbols = || (0..4_096).map(|number| format!("S{number:07}"));
        let phases: serde_json::Map<String, Value> =
            symbols().map(|symbol| (symbol, "auction".into())).collect();
        let market: serde_json::Map<String, Value> = symbols().map(|symbol| (symbol, trades(1))).collect();
        let shown = describe(&json!({ "ok": true, "phases": phases, "market": market, "users": 1 }));
        assert!(shown.starts_with("auction (4,096)        S0000000 S0000001 "), "{shown:.60}");
        assert!(shown.lines().all(|line| line.len() <= WIDTH), "{shown}");
        let (list, rest) = shown.split_once("\n\n").unwrap();
        assert_eq!(list.split_whitespace().filter(|word| word.starts_with('S')).count(), 4_096);
        // Six symbols of nine columns fit on a line.
        assert_eq!(list.lines().count(), 4_096_usize.div_ceil(6));
        assert_eq!(rest.lines().count(), 1 + INSTRUMENTS_SHOWN + 3);
        assert!(rest.contains("\n... and 4,076 more: all of them in --json\n"), "{rest}");
    }
}
