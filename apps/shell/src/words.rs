//! The words of a command line.

use anyhow::{bail, ensure};

/// Splits a text into commands at line ends and `;`, without comments. `#` starts a comment only at the start
/// of a word, so that it cannot cut an order short. Both are literal within quotes.
#[must_use]
pub fn commands(text: &str) -> Vec<String> {
    let mut commands = vec![String::new()];
    let mut quote = None;
    let mut is_comment = false;
    let mut before = ' ';
    for character in text.chars() {
        let is_first = std::mem::replace(&mut before, character).is_whitespace();
        match (character, quote) {
            ('\n', _) => (quote, is_comment) = (None, false),
            _ if is_comment => continue,
            (mark, Some(open)) if mark == open => quote = None,
            ('"' | '\'', None) => quote = Some(character),
            ('#', None) if is_first => {
                is_comment = true;
                continue;
            }
            _ => {}
        }
        if character == '\n' || (character == ';' && quote.is_none()) {
            before = ' ';
            commands.push(String::new());
        } else if let Some(command) = commands.last_mut() {
            command.push(character);
        }
    }
    commands.retain_mut(|command| {
        *command = command.trim().to_owned();
        !command.is_empty()
    });
    commands
}

/// Formats a count: `1 order`, `2 orders`.
#[must_use]
pub fn counted(count: impl TryInto<u64>, name: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

/// Splits a command into words at spaces; quotes keep spaces.
///
/// # Errors
/// A quote that is not closed.
pub fn words(command: &str) -> anyhow::Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for character in command.chars() {
        match (character, quote) {
            (mark, Some(open)) if mark == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (space, None) if space.is_whitespace() => words.extend(word.take()),
            (other, _) => word.get_or_insert_default().push(other),
        }
    }
    if let Some(open) = quote {
        bail!("a quote {open} has no end");
    }
    words.extend(word);
    Ok(words)
}

/// The arguments of a command: positional, named, and flags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    places: Vec<String>,
    names: Vec<(String, String)>,
}

impl Arguments {
    /// Sorts words into positional and named ones (`name=value`); `flags` are names without a value.
    ///
    /// # Errors
    /// A duplicate name.
    pub fn new(words: &[String], flags: &[&str]) -> anyhow::Result<Arguments> {
        let mut arguments = Arguments::default();
        for word in words {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, value),
                None if flags.contains(&word.as_str()) => (word.as_str(), "true"),
                None => {
                    arguments.places.push(word.clone());
                    continue;
                }
            };
            ensure!(arguments.names.iter().all(|(other, _)| other != name), "{name} is given twice");
            arguments.names.push((name.to_owned(), value.to_owned()));
        }
        Ok(arguments)
    }

    /// Takes the argument of that name, or else the next positional one.
    pub fn next(&mut self, name: &str) -> Option<String> {
        self.named(name).or_else(|| (!self.places.is_empty()).then(|| self.places.remove(0)))
    }

    /// Takes the argument of that name.
    pub fn named(&mut self, name: &str) -> Option<String> {
        let at = self.names.iter().position(|(other, _)| other == name)?;
        Some(self.names.remove(at).1)
    }

    /// Takes a flag.
    ///
    /// # Errors
    /// A value that is neither true nor false.
    pub fn flag(&mut self, name: &str) -> anyhow::Result<bool> {
        match self.named(name).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => bail!("{name}={other}: write {name} alone, or {name}=false"),
        }
    }

    /// Takes all remaining positional arguments.
    pub fn rest(&mut self) -> Vec<String> {
        std::mem::take(&mut self.places)
    }

    /// Whether there are no arguments.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty() && self.names.is_empty()
    }

    /// Rejects unused arguments.
    ///
    /// # Errors
    /// The first unused argument.
    pub fn finish(self) -> anyhow::Result<()> {
        if let Some(word) = self.places.first() {
            bail!("{word:?} is one argument too many");
        }
        if let Some((name, _)) = self.names.first() {
            bail!("there is no argument {name}=");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_cut_into_commands() {
        let text = "connect; buy X 1 # not; this\n\n  cancel 'a;b' ;; # \"\nquit";
        assert_eq!(commands(text), ["connect", "buy X 1", "cancel 'a;b'", "quit"]);
        // A `#` within a label does not start a comment.
        assert_eq!(commands("buy X 1 label=a#1 post_only;#x"), ["buy X 1 label=a#1 post_only"]);
    }

    #[test]
    fn what_is_counted_is_one_or_many() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "order")), ["0 orders", "1 order", "2 orders"]);
        assert_eq!(counted(usize::MAX, "x"), "18446744073709551615 xs");
    }

    #[test]
    fn a_command_is_cut_into_words() {
        assert_eq!(words("buy  X label='a b' \"\"").unwrap(), ["buy", "X", "label=a b", ""]);
        assert!(words("buy 'x").unwrap_err().to_string().contains("no end"));
        assert!(words("").unwrap().is_empty());
    }

    #[test]
    fn arguments_come_by_place_and_by_name() {
        let words = words("BTC-PERPETUAL post_only price=5 10").unwrap();
        let mut arguments = Arguments::new(&words, &["post_only"]).unwrap();
        assert_eq!(arguments.next("instrument").as_deref(), Some("BTC-PERPETUAL"));
        assert_eq!(arguments.next("amount").as_deref(), Some("10"));
        assert_eq!(arguments.next("price").as_deref(), Some("5"));
        assert!(arguments.flag("post_only").unwrap() && !arguments.flag("reduce_only").unwrap());
        assert_eq!(arguments.next("label"), None);
        arguments.finish().unwrap();
        let arguments = Arguments::new(&["x".to_owned()], &[]).unwrap();
        assert!(arguments.finish().unwrap_err().to_string().contains("too many"));
        assert!(Arguments::new(&["a=1".to_owned(), "a=2".to_owned()], &[]).is_err());
    }
}
