//! Selects the rows that a filter names.

use crate::measurement::RowSpec;
use crate::rows::{row_names, specs};

/// Maximum number of similar names in the message for an unknown name.
const SIMILAR_MAX: usize = 5;
/// Minimum length of the prefix that a similar name shares with the unknown name.
const COMMON_PREFIX_MIN: usize = 2;

/// Returns the rows that a filter names, and those that limit them directly or through other limits. Returns
/// all rows if the filter is empty.
///
/// # Errors
/// As [`matching_names`].
pub(crate) fn select_rows(filter: &[String], external: &[&str]) -> anyhow::Result<Vec<&'static RowSpec>> {
    let filter = matching_names(filter, external)?;
    Ok(specs().filter(|spec| is_selected(spec.name, &filter)).collect())
}

/// Returns the names that match a filter. Each of its words is a row's name, or a prefix that selects all
/// rows whose names begin with it. `external` has the names of rows that the caller measures.
///
/// # Errors
/// A word that is no prefix of any row's name; lists similar names.
pub fn matching_names(filter: &[String], external: &[&str]) -> anyhow::Result<Vec<String>> {
    let mut known: Vec<&str> = row_names().collect();
    known.extend(external);
    let mut matches = Vec::new();
    for word in filter {
        if known.contains(&word.as_str()) {
            matches.push(word.clone());
            continue;
        }
        let with_prefix = known.iter().filter(|name| !word.is_empty() && name.starts_with(word.as_str()));
        let before = matches.len();
        matches.extend(with_prefix.map(|name| (*name).to_owned()));
        if matches.len() == before {
            anyhow::bail!("there is no row '{word}'{}: --list names all", similar_names(word, &known));
        }
    }
    Ok(matches)
}

/// Lists the names that share the longest prefix with an unknown word, for the error message.
fn similar_names(word: &str, known: &[&str]) -> String {
    let common = |name: &str| name.bytes().zip(word.bytes()).take_while(|(a, b)| a == b).count();
    let most = known.iter().map(|name| common(name)).max().unwrap_or_default();
    if most < COMMON_PREFIX_MIN {
        return String::new();
    }
    let names = known.iter().filter(|name| common(name) == most).take(SIMILAR_MAX);
    format!(", near it are {}", names.copied().collect::<Vec<_>>().join(", "))
}

/// Returns true if a filter names this row, or a row that this one limits directly or through other limits.
fn is_selected(name: &str, filter: &[String]) -> bool {
    let is_limit_of = |spec: &RowSpec| spec.limit == Some(name) && is_selected(spec.name, filter);
    filter.is_empty() || filter.iter().any(|named| named == name) || specs().any(is_limit_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(filter: &[&str]) -> Vec<&'static str> {
        let filter: Vec<String> = filter.iter().map(|name| (*name).to_owned()).collect();
        select_rows(&filter, &["elsewhere"]).unwrap().iter().map(|spec| spec.name).collect()
    }

    #[test]
    fn a_filter_includes_the_limits_of_its_rows() {
        assert_eq!(chosen(&[]).len(), row_names().count());
        assert_eq!(chosen(&["order_rtt", "stamp"]), ["tsc_read", "stamp", "tcp_echo", "order_rtt"]);
        assert_eq!(chosen(&["tcp_echo"]), ["tcp_echo"]);
        assert_eq!(chosen(&["journal_async_cost"]), ["tcp_echo", "order_rtt", "journal_async_cost"]);
        assert_eq!(chosen(&["elsewhere"]), [""; 0]);
        assert_eq!(chosen(&["elsew"]), [""; 0]);
    }

    #[test]
    fn a_prefix_selects_all_of_its_names() {
        let deribit = chosen(&["deribit_parse"]);
        assert!(["deribit_parse_book", "deribit_parse_order"].iter().all(|name| deribit.contains(name)));
        assert!(deribit.len() < chosen(&["deribit"]).len());
        // The full name of a row selects only that row, although other names begin with it.
        assert!(!chosen(&["matching"]).contains(&"matching_open_loop"));
    }

    #[test]
    fn an_unknown_name_is_an_error_with_similar_names() {
        let error = select_rows(&["stmap".to_owned()], &["elsewhere"]).err().unwrap().to_string();
        assert!(error.contains("'stmap'") && error.contains("near it are stamp"), "{error}");
        for word in ["", "?"] {
            let error = select_rows(&[word.to_owned()], &["elsewhere"]).err().unwrap().to_string();
            assert_eq!(error, format!("there is no row '{word}': --list names all"));
        }
    }
}
