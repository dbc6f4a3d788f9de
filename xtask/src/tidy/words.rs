//! Phrases that a reader has to decode, in comments, strings and documents.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::Problem;

/// Phrases that no text uses, in lower case. `|` separates the alternatives of a word.
const PHRASES: [&str; 27] = [
    "is|are|was|were|be|been|being|get|gets|got told",
    "anew",
    "nobody",
    "whoever",
    "so many",
    "nought",
    "good|heard|wanted|there no more",
    "cannot|can be had",
    "it is said",
    "is said",
    "come|comes|came to be",
    "is|are|was|were asked for",
    "believe|believes|believed|believable",
    "speak|speaks of",
    "who|whom|whose is|are gone",
    "of its|one's own",
    "door|doors",
    "stranger|strangers",
    "thrice",
    "in words",
    "meet|meets nobody|somebody",
    "go|goes on",
    "went on",
    "stand|stands in|at|on|still|behind|beside|here|there",
    "hear|hears",
    "heard",
    "must|will|shall be told",
];
/// Words at the beginning of a comment or heading that make a riddle of a noun, unless it is a question.
const OPENINGS: [&str; 10] =
    ["what", "where", "whose", "who", "whatever", "whoever", "how many", "how much", "how far", "how long"];
/// Files that hold text for people, by the end of their name.
const SPOKEN: [&str; 8] = [".rs", ".md", ".toml", ".py", ".c", ".h", ".java", ".yml"];
/// Files of which the words are those of a format or of history.
const LEFT_OUT: [&str; 5] =
    ["CHANGELOG.md", "Cargo.toml", "Cargo.lock", "LICENSE", "xtask/src/tidy/words.rs"];
/// Marks a line whose phrase is correct; a reason follows.
const ALLOWED: &str = "plain-words: allow ";

/// Checks the text at `path`.
pub fn check(path: &str, text: &str) -> Vec<Problem> {
    let is_spoken =
        SPOKEN.iter().any(|end| path.ends_with(end)) && !LEFT_OUT.iter().any(|end| path.ends_with(end));
    if !is_spoken {
        return Vec::new();
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.contains(ALLOWED));
    let found = lines.filter_map(|(index, line)| {
        let phrase = found(&spoken(path, line))?;
        let text =
            format!("'{phrase}' has to be decoded: say it plainly, see the prose rules in CONTRIBUTING.md");
        Some(Problem::at(path, index + 1, text))
    });
    found.collect()
}

/// The part of a line that people read: all of a document, comments and string literals of code.
fn spoken(path: &str, line: &str) -> String {
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

/// The phrase in a text that is ruled out, if any.
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

/// The phrases by each alternative of their first word, since few words of a text begin one.
fn phrases() -> &'static HashMap<&'static str, Vec<Phrase>> {
    static BY_FIRST_WORD: OnceLock<HashMap<&'static str, Vec<Phrase>>> = OnceLock::new();
    BY_FIRST_WORD.get_or_init(|| {
        let mut all: HashMap<&str, Vec<Phrase>> = HashMap::new();
        for phrase in PHRASES {
            let phrase: Phrase = phrase.split(' ').map(|word| word.split('|').collect()).collect();
            for first in phrase[0].clone() {
                all.entry(first).or_default().push(phrase.clone());
            }
        }
        all
    })
}

/// A word, and whether one space and nothing else is before it.
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

/// The opening of a comment or heading that is ruled out, if any.
fn opening(text: &str) -> Option<String> {
    let text = text.trim_start();
    let body = ["///", "//!", "//"].iter().find_map(|mark| text.strip_prefix(mark));
    let body = body.or_else(|| text.starts_with('#').then(|| text.trim_start_matches('#')))?.trim_start();
    let begins = |opening: &&&str| {
        body.strip_prefix(**opening)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    let opening = OPENINGS.iter().find(begins).filter(|_| !body.contains('?'))?;
    Some(format!("{opening} ..."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(path, text).iter().filter_map(|problem| problem.line).collect()
    }

    #[test]
    fn phrases_are_found_in_what_people_read() {
        let text = "fn is_told(door: &Door) {} // the order is told\n/// It is fine.\nlet nobody = 1;\n\
                    say(\"It goes on\", anew); // fine\nlet x = \"told\"; // is, told\n";
        assert_eq!(lines("a.rs", text), [1, 4]);
        assert_eq!(lines("a.md", "the two doors\n\nnothing\nIt IS TOLD.\n"), [1, 4]);
        assert_eq!(lines("a.toml", "door = 1 # begins anew\nname = \"nobody\"\n"), [1, 2]);
        assert_eq!(lines("data.csv", "anew\n"), [0; 0]);
    }

    #[test]
    fn openings_are_found_at_the_beginning_alone() {
        let text = "//! What a venue has.\n/// How many there are.\n/// Whole.\n// Why: what follows.\n/// What now?\n";
        assert_eq!(lines("a.rs", text), [1, 2]);
        assert_eq!(lines("a.md", "## Where it lies\nWhat it is.\n"), [1]);
    }

    #[test]
    fn a_line_with_a_reason_is_allowed() {
        assert_eq!(
            lines("a.rs", "// A door. plain-words: allow it is the name of a venue\n// A door.\n"),
            [2]
        );
    }
}
