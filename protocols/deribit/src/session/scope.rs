//! Scope of a token, to the extent that a client needs it.

/// Scope element that is required for orders.
pub(super) const TRADE: &str = "trade:read_write";

/// True if the granted scope includes a requested element, or a stronger one of the same kind.
fn has(granted: &str, asked: &str) -> bool {
    let mut words = granted.split_ascii_whitespace();
    match asked.rsplit_once(':') {
        Some((kind, "read")) => words.any(|word| {
            word.rsplit_once(':')
                .is_some_and(|(own, access)| own == kind && matches!(access, "read" | "read_write"))
        }),
        Some((_, "read_write")) => words.any(|word| word == asked),
        // Elements that the server renames, or requires less for.
        _ => true,
    }
}

/// First element that was requested but not granted.
pub(super) fn missing<'s>(asked: &'s str, granted: &str) -> Option<&'s str> {
    asked.split_ascii_whitespace().find(|word| !has(granted, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_found() {
        let granted = "connection mainaccount account:read trade:read_write";
        for asked in ["", "trade:read_write", "trade:read account:read", "session:x wallet:none expires:60"] {
            assert_eq!(missing(asked, granted), None, "{asked}");
        }
        assert_eq!(missing("trade:read_write account:read_write", granted), Some("account:read_write"));
        assert_eq!(missing("wallet:read", granted), Some("wallet:read"));
        assert_eq!(missing(TRADE, "connection trade:read account:read_write"), Some(TRADE));
    }
}
