//! Labels and ClOrdIDs of orders: the log stores a number for each.

use std::borrow::Cow;
use std::collections::HashMap;

use tickpath_deribit::scan::Scanner;
use tickpath_deribit::text::Text;

use crate::record::RecordError;

/// Maximum number of different labels: as many as fit into the log's text. Accounts have a separate limit.
pub(crate) const LABELS_MAX: usize = (1 << 29) - 1;
/// Maximum distance of a number in the log from the known ones; more are never lost.
const LOST_MAX: usize = 1 << 22;
/// Maximum length of a label, in characters.
pub(crate) const LABEL_LEN_MAX: usize = 64;

/// Separator between a label and a ClOrdID; FIX values cannot contain it.
const SEPARATOR: char = '\u{1}';

/// Labels by their numbers, from 1.
#[derive(Default)]
pub struct Labels {
    names: Vec<String>,
    by_name: HashMap<String, u32>,
    /// Number of labels that are already stored.
    saved: usize,
}

impl Labels {
    /// Restores stored labels, in their order.
    #[must_use]
    pub fn restored(names: Vec<String>) -> Labels {
        let by_name = (1..).zip(&names).map(|(number, name)| (name.clone(), number)).collect();
        Labels { saved: names.len(), names, by_name }
    }

    /// Reads the lines that [`write`](Labels::write) wrote.
    pub(crate) fn read(lines: &[u8]) -> Result<Labels, RecordError> {
        let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let names = lines.zip(1..).map(|(text, line)| {
            let text = Scanner::from_bytes(text).and_then(|mut scanner| scanner.text());
            text.map(|text| text.to_cow().into_owned()).map_err(|_| RecordError::Line { line })
        });
        Ok(Labels::restored(names.collect::<Result<_, _>>()?))
    }

    /// Writes labels as lines, each a JSON text.
    pub(crate) fn write(names: &[String]) -> Vec<u8> {
        let mut lines = Vec::new();
        for name in names {
            Text::new(name).write(&mut lines);
            lines.push(b'\n');
        }
        lines
    }

    /// Returns the number of a known label.
    pub(crate) fn find(&self, label: &str, client_id: &str) -> Option<u32> {
        if label.is_empty() && client_id.is_empty() {
            return Some(0);
        }
        self.by_name.get(key(label, client_id).as_ref()).copied()
    }

    /// Returns the number of a label and a FIX ClOrdID, which may be new. Returns 0 if both are empty, and
    /// none if there are too many.
    pub(crate) fn number(&mut self, label: &str, client_id: &str) -> Option<u32> {
        if label.is_empty() && client_id.is_empty() {
            return Some(0);
        }
        if let Some(number) = self.find(label, client_id) {
            return Some(number);
        }
        let name = key(label, client_id).into_owned();
        if self.names.len() == LABELS_MAX {
            return None;
        }
        self.names.push(name.clone());
        let number = self.names.len() as u32;
        self.by_name.insert(name, number);
        Some(number)
    }

    /// Marks a number in the log as used, so that it is not assigned again although its label may be lost.
    pub(crate) fn note(&mut self, number: u32) {
        let number = number as usize;
        if number > self.names.len() && number - self.names.len() <= LOST_MAX {
            self.names.resize_with(number, String::new);
        }
    }

    /// Returns the label of a number; empty for 0 and for a lost label.
    pub(crate) fn name(&self, number: u32) -> &str {
        self.both(number).0
    }

    /// Returns the ClOrdID of a number; empty for none.
    pub(crate) fn client_id(&self, number: u32) -> &str {
        self.both(number).1
    }

    fn both(&self, number: u32) -> (&str, &str) {
        let place = (number as usize).checked_sub(1);
        let name = place.and_then(|place| self.names.get(place)).map_or("", String::as_str);
        name.rsplit_once(SEPARATOR).unwrap_or((name, ""))
    }

    /// Returns the labels to be stored before orders that use them are sent.
    pub(crate) fn take_new(&mut self) -> &[String] {
        let new = &self.names[self.saved..];
        self.saved = self.names.len();
        new
    }
}

/// Returns the common storage key of both.
fn key<'a>(label: &'a str, client_id: &str) -> Cow<'a, str> {
    match client_id.is_empty() && !label.contains(SEPARATOR) {
        true => Cow::Borrowed(label),
        false => Cow::Owned(format!("{label}{SEPARATOR}{client_id}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_what_they_were_after_their_lines() {
        let names = ["a \"b\"\n".to_owned(), "\u{e9}".to_owned(), String::new(), "c".to_owned()];
        let labels = Labels::read(&Labels::write(&names)).unwrap();
        assert_eq!(
            (1..=5).map(|number| labels.name(number)).collect::<Vec<_>>(),
            ["a \"b\"\n", "\u{e9}", "", "c", ""]
        );
        assert!(Labels::read(b"\"a\"\nno label\n").is_err());
    }

    #[test]
    fn labels_have_numbers_and_come_back() {
        let mut labels = Labels::default();
        assert_eq!(
            [("a", ""), ("b", ""), ("a", ""), ("", "")]
                .map(|(label, client_id)| labels.number(label, client_id).unwrap()),
            [1, 2, 1, 0]
        );
        assert_eq!(labels.take_new(), ["a", "b"]);
        assert_eq!(labels.take_new().len(), 0);
        let mut again = Labels::restored(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!((again.name(2), again.name(3), again.name(0)), ("b", "", ""));
        assert_eq!((again.number("c", ""), again.take_new()), (Some(3), &["c".to_owned()][..]));
        // The log uses five numbers, and the labels of two were lost: their numbers are not assigned again.
        again.note(5);
        again.note(2);
        assert_eq!((again.number("d", ""), again.name(5), again.name(6)), (Some(6), "", "d"));
        assert_eq!(again.take_new(), ["", "", "d"]);
        again.note(u32::MAX);
        assert_eq!(again.number("e", ""), Some(7), "that is no number of a label");
    }
}
