//! Text form of the answer to `users`: one line per user, in columns as wide as their contents.

use serde_json::Value;

/// Column headers. Limits are named as in `tickpath admin limits`.
const HEADS: [&str; 9] =
    ["user", "state", "logins", "failed", "refused", "messages", "open-orders", "qty", "notional"];
/// Number of left-aligned text columns; the columns after them hold numbers.
const WORDS: usize = 2;
/// Separator between columns.
const GAP: &str = "  ";

/// Formats a header and a line for each user.
pub(super) fn describe(users: &[Value]) -> String {
    let rows: Vec<[String; HEADS.len()]> =
        std::iter::once(HEADS.map(str::to_owned)).chain(users.iter().map(row)).collect();
    let widths: [usize; HEADS.len()] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0));
    let line = |row: &[String; HEADS.len()]| {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            if column < WORDS { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        cells.collect::<Vec<_>>().join(GAP)
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn row(user: &Value) -> [String; HEADS.len()] {
    let states = [("is_connected", "connected"), ("is_killed", "killed")];
    let state: Vec<&str> =
        states.iter().filter(|(field, _)| user[field] == true).map(|(_, state)| *state).collect();
    let count = |field: &str| user[field].as_u64().unwrap_or(0).to_string();
    let limits = &user["limits"];
    let limit = |field: &str| match &limits[field] {
        Value::Null => "-".to_owned(),
        Value::String(limit) => limit.clone(),
        limit => limit.to_string(),
    };
    let messages = match &limits["messages_per_second"] {
        Value::Null => "-".to_owned(),
        per_second => format!("{per_second}/{}", limits["burst"]),
    };
    [
        user["name"].as_str().unwrap_or_default().to_owned(),
        if state.is_empty() { "away".to_owned() } else { state.join(", ") },
        count("logins"),
        count("wrong_passwords"),
        count("requests_refused"),
        messages,
        limit("open_orders"),
        limit("order_qty"),
        limit("order_notional"),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn users_are_in_columns_with_their_limits() {
        let none = json!({
            "messages_per_second": null, "burst": null, "open_orders": null, "order_qty": null, "order_notional": null
        });
        let some = json!({
            "messages_per_second": 10_000_000, "burst": 200, "open_orders": 4_194_304, "order_qty": 1_000_000,
            "order_notional": "250000000.00"
        });
        let user = |name: &str, is_in: bool, limits: &Value| {
            json!({
                "name": name, "is_connected": is_in, "is_killed": is_in, "logins": 1_234,
                "wrong_passwords": 5, "requests_refused": 678, "limits": limits
            })
        };
        let text = describe(&[user("ANNA", true, &some), user("TEST01", false, &none)]);
        let lines: Vec<&str> = text.lines().collect();
        let columns = |line: &str| -> Vec<String> {
            line.split("  ").filter(|word| !word.is_empty()).map(|word| word.trim().to_owned()).collect()
        };
        assert_eq!(columns(lines[0]), HEADS);
        let anna = [
            "ANNA",
            "connected, killed",
            "1234",
            "5",
            "678",
            "10000000/200",
            "4194304",
            "1000000",
            "250000000.00",
        ];
        assert_eq!(columns(lines[1]), anna);
        assert_eq!(columns(lines[2]), ["TEST01", "away", "1234", "5", "678", "-", "-", "-", "-"]);
        assert!(lines.iter().all(|line| line.len() == lines[0].len() && line.len() <= 120), "{text}");
    }
}
