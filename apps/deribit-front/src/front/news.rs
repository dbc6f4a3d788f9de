//! Changes of a JSON object, by member.

use std::collections::HashMap;

use tickpath_deribit::scan::Scanner;

use crate::json::{Json, Object};

/// Strips the leading time of an object, so that an otherwise unchanged object is not published again.
pub(super) fn timeless(object: &[u8]) -> &[u8] {
    let rest = object.strip_prefix(b"{\"timestamp\":").unwrap_or(object);
    let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    &rest[len..]
}

/// Adds a type before the members of an object.
pub(super) fn typed(kind: &str, object: &[u8]) -> Vec<u8> {
    let mut out = format!("{{\"type\":\"{kind}\",").into_bytes();
    out.extend_from_slice(&object[1..]);
    out
}

/// Returns the changed members of an object, together with its time and name. Returns none if nothing else
/// has changed.
pub(super) fn changed_members(before: &[u8], now: &[u8]) -> Option<Vec<u8>> {
    let members = |bytes: &[u8]| -> Vec<(String, String)> {
        let mut found = Vec::new();
        let Ok(mut scanner) = Scanner::from_bytes(bytes) else { return found };
        if scanner.open_object().is_ok() {
            while let Ok(Some(key)) = scanner.next_key() {
                let Ok(value) = scanner.value() else { break };
                found.push((key.to_owned(), value.text().to_owned()));
            }
        }
        found
    };
    let old: HashMap<String, String> = members(before).into_iter().collect();
    let mut object = Object::new();
    let mut is_changed = false;
    for (key, value) in members(now) {
        let is_named = matches!(key.as_str(), "timestamp" | "instrument_name");
        if is_named || old.get(&key) != Some(&value) {
            is_changed |= !is_named;
            object = object.with(&key, Json(value.into_bytes()));
        }
    }
    is_changed.then(|| typed("change", &object.end()))
}
