//! Checks comments, strings and documents for phrases that a reader has to decode.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::Problem;

/// Phrases that no text may use, one per line, in lower case. `|` separates the alternatives of a word.
const PHRASES: &str = include_str!("words/phrases.txt");
/// Words that must not begin a comment or heading that is not a question: they paraphrase a noun.
const OPENINGS: &str = include_str!("words/openings.txt");
/// Files that hold text for people, by the end of their name.
const CHECKED_ENDINGS: [&str; 8] = [".rs", ".md", ".toml", ".py", ".c", ".h", ".java", ".yml"];
/// Files whose wording is given by a format or by history, by the end of their name.
const EXCLUDED_ENDINGS: [&str; 4] = ["CHANGELOG.md", "Cargo.toml", "Cargo.lock", "LICENSE"];
/// Marks a line that may use a ruled-out phrase; the reason follows.
const ALLOWED: &str = "plain-words: allow ";

/// Checks the text at `path`.
pub fn check(path: &str, text: &str) -> Vec<Problem> {
    let is_checked = CHECKED_ENDINGS.iter().any(|end| path.ends_with(end))
        && !EXCLUDED_ENDINGS.iter().any(|end| path.ends_with(end));
    if !is_checked {
        return Vec::new();
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.contains(ALLOWED));
    let found = lines.filter_map(|(index, line)| {
        let phrase = found(&prose_of(path, line))?;
        let text = format!("'{phrase}' is not plain: rewrite it, see the prose rules in CONTRIBUTING.md");
        Some(Problem::at(path, index + 1, text))
    });
    found.collect()
}

/// The part of a line that people read: all of a document, comments and string literals of code.
fn prose_of(path: &str, line: &str) -> String {
    if path.ends_with(".md") {
        return line.to_owned();
    }
    let mark = if [".toml", ".py", ".yml"].iter().any(|end| path.ends_with(end)) { "#" } else { "//" };
    let (code, comment) = line.split_at(line.find(mark).unwrap_or(line.len()));
    if code.trim().is_empty() {
        return comment.to_owned();
    }
    let literals = code.split('"').skip(1).step_by(2);
    literals.chain([comment]).collect::<Vec<_>>().join(" | ")
}

/// Returns the first ruled-out phrase in a text, if any.
fn found(text: &str) -> Option<String> {
    let text = text.to_lowercase();
    let words = words(&text);
    let starting_at = |place: usize| {
        let rest = &words[place..];
        let phrase = phrases().get(rest[0].0)?.iter().find(|phrase| is_phrase(rest, phrase))?;
        Some(joined(&rest[..phrase.len()]))
    };
    (0..words.len()).find_map(starting_at).or_else(|| opening(&text))
}

/// The words of a phrase, each with its alternatives.
type Phrase = Vec<Vec<&'static str>>;

/// The phrases, indexed by each alternative of their first word for a fast search.
fn phrases() -> &'static HashMap<&'static str, Vec<Phrase>> {
    static BY_FIRST_WORD: OnceLock<HashMap<&'static str, Vec<Phrase>>> = OnceLock::new();
    BY_FIRST_WORD.get_or_init(|| {
        let mut all: HashMap<&str, Vec<Phrase>> = HashMap::new();
        for phrase in PHRASES.lines() {
            let phrase: Phrase = phrase.split(' ').map(|word| word.split('|').collect()).collect();
            for first in phrase[0].clone() {
                all.entry(first).or_default().push(phrase.clone());
            }
        }
        all
    })
}

/// A word, and whether exactly one space separates it from the previous word.
type Word<'a> = (&'a str, bool);

fn words(text: &str) -> Vec<Word<'_>> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '\'';
    let mut words = Vec::new();
    let mut end = 0;
    for word in text.split(|c| !is_part(c)).filter(|word| !word.is_empty()) {
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        words.push((word.trim_matches('\''), &text[end..start] == " "));
        end = start + word.len();
    }
    words
}

/// Whether words begin with a phrase, with one space between its words.
fn is_phrase(words: &[Word<'_>], phrase: &Phrase) -> bool {
    let Some(words) = words.get(..phrase.len()) else { return false };
    let is_together = words.iter().skip(1).all(|(_, is_next)| *is_next);
    let mut pairs = words.iter().zip(phrase);
    is_together && pairs.all(|((word, _), known)| known.contains(word))
}

fn joined(words: &[Word<'_>]) -> String {
    words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(" ")
}

/// Returns the ruled-out opening of a comment or heading, if any.
fn opening(text: &str) -> Option<String> {
    let text = text.trim_start();
    let body = ["///", "//!", "//"].iter().find_map(|mark| text.strip_prefix(mark));
    let body = body.or_else(|| text.starts_with('#').then(|| text.trim_start_matches('#')))?.trim_start();
    let begins = |opening: &&str| {
        body.strip_prefix(*opening)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    let opening = OPENINGS.lines().find(begins).filter(|_| !body.contains('?'))?;
    Some(format!("{opening} ..."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(path, text).iter().filter_map(|problem| problem.line).collect()
    }

    // Lines that the check reports, each in pieces, so that it does not report this file.
    const TOLD: &str = concat!("the order is ", "told");
    const GOES_ON: &str = concat!("It goes ", "on");
    const WHAT: &str = concat!("//", "! What a venue has.");
    const HOW_MANY: &str = concat!("//", "/ How many there are.");

    #[test]
    fn phrases_are_found_in_prose() {
        let text = format!(
            "fn is_told(order: &Order) {{}} // {TOLD}\n/// It is fine.\nlet told = 1;\n\
             say(\"{GOES_ON}\", told); // fine\nlet x = \"told\"; // is, told\n"
        );
        assert_eq!(lines("a.rs", &text), [1, 4]);
        let upper = TOLD.to_uppercase();
        assert_eq!(lines("a.md", &format!("{TOLD}\n\nnothing\n{upper}\n")), [1, 4]);
        assert_eq!(lines("a.toml", &format!("is = 1 # {TOLD}\ntold = \"{GOES_ON}\"\n")), [1, 2]);
        assert_eq!(lines("data.csv", TOLD), [0; 0]);
    }

    #[test]
    fn openings_are_found_at_the_beginning_alone() {
        let text = format!("{WHAT}\n{HOW_MANY}\n/// Whole.\n// Why: what follows.\n/// What now?\n");
        assert_eq!(lines("a.rs", &text), [1, 2]);
        assert_eq!(lines("a.md", "## Where it lies\nWhat it is.\n"), [1]);
    }

    #[test]
    fn a_line_with_a_reason_is_allowed() {
        let text = format!("// {TOLD} {ALLOWED}a quotation\n// {TOLD}\n");
        assert_eq!(lines("a.rs", &text), [2]);
    }
}
