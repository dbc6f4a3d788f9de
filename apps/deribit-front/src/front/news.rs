//! What is new of an object, member by member.

use std::collections::HashMap;

use tickpath_deribit::scan::Scanner;

use crate::json::{Json, Object};

/// An object without the time that it begins with: what is the same at another time is not told again.
pub(super) fn timeless(object: &[u8]) -> &[u8] {
    let rest = object.strip_prefix(b"{\"timestamp\":").unwrap_or(object);
    let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    &rest[len..]
}

/// An object with its type before its members.
pub(super) fn typed(kind: &str, object: &[u8]) -> Vec<u8> {
    let mut out = format!("{{\"type\":\"{kind}\",").into_bytes();
    out.extend_from_slice(&object[1..]);
    out
}

/// The members of an object that are not as they were before, and always its time and name; none when there are no
/// others.
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
