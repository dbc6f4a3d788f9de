//! Checks of any text: length, size, leftovers, addresses that do not belong in a repository.

use super::Problem;
use super::purity::is_test;
use super::source::{code_only, has_word};

/// Maximum length of a source file in lines; split longer ones by concern.
const SOURCE_LINES_MAX: usize = 900;
/// Maximum size of a file in the repository, in bytes.
const FILE_LEN_MAX: u64 = 5_000_000;
/// Suffixes of source files.
const SOURCES: [&str; 3] = [".rs", ".py", ".c"];
/// Suffixes of files that may contain markers of unfinished work.
const WRITTEN: [&str; 9] = [".rs", ".py", ".pyi", ".c", ".h", ".toml", ".sh", ".yml", ".md"];

// Concatenated, so that this file does not match itself.
const MARKER_WORDS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const MARKER_CODE: [&str; 3] = [concat!("to", "do!"), concat!("unimple", "mented!"), concat!("#[ign", "ore")];
/// Names of package registries: the source of packages is the user's configuration.
const REGISTRIES: [&str; 5] = [
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("python", "hosted.org"),
    concat!("npmjs", ".org"),
    concat!("proxy.golang", ".org"),
];

/// Checks a file's size.
pub fn check_size(path: &str, len: u64) -> Option<Problem> {
    (len > FILE_LEN_MAX).then(|| {
        Problem::in_file(
            path,
            format!("{len} bytes, at most {FILE_LEN_MAX} are committed: make it smaller or generate it"),
        )
    })
}

/// Checks the text at `path`.
pub fn check(path: &str, text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    let is_one_of = |ends: &[&str]| ends.iter().any(|end| path.ends_with(end));
    if is_one_of(&SOURCES) && !is_test(path) {
        problems.extend(check_length(path, text));
    }
    if is_one_of(&WRITTEN) {
        problems.extend(check_markers(path, text));
    }
    if !path.ends_with("Cargo.lock") {
        problems.extend(check_registries(path, text));
    }
    problems
}

fn check_length(path: &str, text: &str) -> Option<Problem> {
    let lines = text.lines().count();
    (lines > SOURCE_LINES_MAX).then(|| {
        Problem::in_file(path, format!("{lines} lines, at most {SOURCE_LINES_MAX}: split it by concern"))
    })
}

fn check_markers(path: &str, text: &str) -> Vec<Problem> {
    let left = |line, marker: &str| match marker.strip_prefix("#[") {
        Some(_) => Problem::at(path, line, "a test that does not run proves nothing: run it, or remove it"),
        None => Problem::at(path, line, format!("{marker} marks unfinished work: finish it")),
    };
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let found = MARKER_WORDS.iter().filter(|word| has_word(line, word));
        problems.extend(found.map(|word| left(index + 1, word)));
    }
    if path.ends_with(".rs") {
        for (index, line) in code_only(text).lines().enumerate() {
            let found = MARKER_CODE.iter().filter(|code| has_call(line, code));
            problems.extend(found.map(|code| left(index + 1, code)));
        }
    }
    problems
}

/// Whether `line` contains `code`, not as the end of a longer name.
fn has_call(line: &str, code: &str) -> bool {
    line.match_indices(code)
        .any(|(start, _)| !line[..start].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_'))
}

fn check_registries(path: &str, text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.to_ascii_lowercase();
        let found = REGISTRIES.iter().filter(|host| line.contains(**host));
        problems.extend(found.map(|host| {
            Problem::at(
                path,
                index + 1,
                format!("names the registry {host}: remove it, each user configures the package source"),
            )
        }));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(path, text).iter().filter_map(|problem| problem.line).collect()
    }

    #[test]
    fn sources_have_a_longest_length_and_tests_have_none() {
        let longest = "\n".repeat(SOURCE_LINES_MAX);
        let longer = "\n".repeat(SOURCE_LINES_MAX + 1);
        assert_eq!(check("core/book/src/a.rs", &longest), []);
        assert_eq!(check("core/book/src/a.rs", &longer).len(), 1);
        assert_eq!(check("bindings/python/a.py", &longer).len(), 1);
        for other in ["core/book/tests/a.rs", "core/book/benches/a.rs", "docs/a.md", "data.csv"] {
            assert_eq!(check(other, &longer), [], "{other}");
        }
    }

    #[test]
    fn files_have_a_largest_size() {
        assert_eq!(check_size("a.bin", FILE_LEN_MAX), None);
        assert!(check_size("a.bin", FILE_LEN_MAX + 1).is_some());
    }

    #[test]
    fn leftovers_are_found_and_longer_words_are_not() {
        for marker in MARKER_WORDS {
            assert_eq!(lines("a.md", &format!("x\n// {marker}: y\n{marker}S\nA{marker}")), [2], "{marker}");
            assert_eq!(lines("data.csv", marker), [0; 0]);
        }
        for code in MARKER_CODE {
            assert_eq!(lines("a.rs", &format!("x\n {code} \n// {code}\n\"{code}\"\n")), [2], "{code}");
        }
        let longer = format!("my_{}()", MARKER_CODE[0]);
        assert_eq!(lines("a.rs", &longer), [0; 0]);
    }

    #[test]
    fn registries_are_found_in_any_text_but_the_lock_file() {
        for host in REGISTRIES {
            let text = format!("a\nurl = \"https://static.{}/b\"", host.to_ascii_uppercase());
            assert_eq!(lines("config.ini", &text), [2], "{host}");
            assert_eq!(lines("Cargo.lock", &text), [0; 0]);
            assert_eq!(lines("fuzz/Cargo.lock", &text), [0; 0]);
        }
    }
}
