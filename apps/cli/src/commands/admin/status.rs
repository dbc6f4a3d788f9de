//! Text form of the answer to `status`: the instruments by phase, then the counters.

use std::collections::BTreeMap;

use serde_json::Value;
use tickpath_config::thousands;

/// Maximum line length, in columns.
const WIDTH: usize = 80;
/// Column in which a line's values begin.
const INDENT: usize = 22;
/// Width of one counter, in columns: its name, and its value right-aligned.
const CELL: usize = 38;

/// Formats the answer in lines of at most [`WIDTH`] columns.
pub(super) fn describe(answer: &Value) -> String {
    let (mut lines, mut cells) = (Vec::new(), Vec::new());
    for (name, value) in answer.as_object().into_iter().flatten().filter(|(name, _)| *name != "ok") {
        match value {
            Value::Object(values) => lines.extend(group_by_value(values)),
            Value::Bool(flag) => cells.push(cell(name, if *flag { "yes" } else { "no" })),
            Value::Number(number) => {
                let shown = number.as_u64().map_or_else(|| number.to_string(), thousands);
                cells.push(cell(name, &shown));
            }
            other => cells.push(cell(name, other.as_str().unwrap_or_default())),
        }
    }
    // Fill the first column from top to bottom, then the second.
    let rows = cells.len().div_ceil(2);
    for row in 0..rows {
        let second = cells.get(rows + row).map_or("", String::as_str);
        lines.push(format!("{}    {second}", cells[row]).trim_end().to_owned());
    }
    lines.join("\n")
}

fn cell(name: &str, value: &str) -> String {
    let room = CELL.saturating_sub(name.len());
    format!("{name}{value:>room$}")
}

/// Lists the symbols by value, as many on a line as fit.
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

    #[test]
    fn few_instruments_follow_their_phase() {
        let status = json!({
            "ok": true, "phases": { "ALPHA": "trading", "BRAVO": "halted", "CHARLIE": "trading" },
            "is_killed": false, "commands": 1_234_567, "users": 3, "executions": 0,
            "drop_copy_readers_slow": 0,
        });
        let expected = [
            "halted (1)             BRAVO",
            "trading (2)            ALPHA CHARLIE",
            "commands                     1,234,567    is_killed                           no",
            "drop_copy_readers_slow               0    users                                3",
            "executions                           0",
        ];
        assert_eq!(describe(&status), expected.join("\n"));
    }

    #[test]
    fn many_instruments_fill_lines() {
        let phases: serde_json::Map<String, Value> =
            (0..4_096).map(|number| (format!("S{number:07}"), "auction".into())).collect();
        let shown = describe(&json!({ "ok": true, "phases": phases, "users": 1 }));
        assert!(shown.starts_with("auction (4,096)        S0000000 S0000001 "), "{shown:.60}");
        assert!(shown.lines().all(|line| line.len() <= WIDTH), "{shown}");
        let symbols = shown.split_whitespace().filter(|word| word.len() == 8 && word.starts_with('S'));
        assert_eq!(symbols.count(), 4_096);
        // Six symbols of nine columns fit on a line.
        assert_eq!(shown.lines().count(), 4_096_usize.div_ceil(6) + 1);
    }
}
