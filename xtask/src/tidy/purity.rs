//! Restricts Rust sources by their layer: `unsafe` in few crates, no OS and no clock in the core.

use super::Problem;
use super::source::{code_only, lines_with_word, without_tests};

/// Folders whose crates may use `unsafe`, one module of the books, and the counting allocator of tests.
const UNSAFE_PLACES: [&str; 5] = [
    "core/lockfree/",
    "core/book/src/packed/passes.rs",
    "io/",
    "bindings/",
    "test-support/base/src/allocations.rs",
];
/// Layers whose sources use neither the OS nor a clock.
const PURE_LAYERS: [&str; 2] = ["core/", "protocols/"];
/// Names that sources in these layers must not use.
const IMPURE: [&str; 5] = ["std::net", "std::fs", "std::thread", "Instant::now", "SystemTime::now"];
/// Modules of `std` that sources in these layers must not import by `use std::{...}`.
const IMPURE_MODULES: [&str; 3] = ["net", "fs", "thread"];
/// The only exception: the replacement for the time stamp instruction on a machine without it.
const CLOCK_STAND_IN: (&str, &str) = ("core/lockfree/src/cpu.rs", "Instant::now");

/// Checks the Rust source at `path`.
pub fn check(path: &str, source: &str) -> Vec<Problem> {
    let code = code_only(source);
    let mut problems = Vec::new();
    if !UNSAFE_PLACES.iter().any(|place| path.starts_with(place)) {
        problems.extend(lines_with_word(&code, "unsafe").into_iter().map(|line| {
            Problem::at(path, line, "unsafe belongs in core/lockfree, io/* and bindings/*: move it there")
        }));
    }
    if PURE_LAYERS.iter().any(|layer| path.starts_with(layer)) && path.contains("/src/") {
        problems.extend(impure(path, &without_tests(&code)));
    }
    problems
}

/// Whether the file is part of a crate's integration tests or benches.
pub fn is_test(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "benches")
}

fn impure(path: &str, code: &str) -> Vec<Problem> {
    let problem = |line, name: &str| {
        Problem::at(
            path,
            line,
            format!("{name} in a pure layer: pass time and input as arguments, see ARCHITECTURE.md"),
        )
    };
    let mut problems = Vec::new();
    for name in IMPURE.into_iter().filter(|name| (path, *name) != CLOCK_STAND_IN) {
        problems.extend(lines_with_word(code, name).into_iter().map(|line| problem(line, name)));
    }
    for (start, opening) in code.match_indices("std::{") {
        let line = code[..start].matches('\n').count() + 1;
        for name in grouped(&code[start + opening.len()..]) {
            if IMPURE_MODULES.contains(&name) {
                problems.push(problem(line, &format!("std::{name}")));
            }
        }
    }
    problems.sort_by_key(|problem| problem.line);
    problems
}

/// Returns the first names of the entries of a `use` group, given the text after its opening brace.
fn grouped(rest: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut depth = 0_usize;
    let mut start = 0;
    for (index, c) in rest.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.push(&rest[start..index]);
                start = index + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    let first_name = |entry: &'_ str| entry.trim().find([':', ' ']).unwrap_or(entry.trim().len());
    names.into_iter().map(|entry| &entry.trim()[..first_name(entry)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn lines(path: &str, source: &str) -> Vec<usize> {
        check(path, source).iter().filter_map(|problem| problem.line).collect()
    }

    #[test]
    fn unsafe_is_found_where_it_does_not_belong() {
        let source = "// unsafe\n#![allow(unsafe_code)]\nunsafe { f() }\n\"unsafe\";\n#[unsafe(no_mangle)]\n";
        assert_eq!(lines("apps/exchange/src/lib.rs", source), [3, 5]);
        assert_eq!(lines("core/book/src/lib.rs", source), [3, 5]);
        assert_eq!(lines("core/book/tests/story.rs", source), [3, 5]);
        assert_eq!(lines("test-support/base/src/wait.rs", source), [3, 5]);
        for allowed in ["core/lockfree/src/spsc.rs", "io/net/src/udp.rs", UNSAFE_PLACES[2], UNSAFE_PLACES[3]]
        {
            assert_eq!(lines(allowed, source), [0; 0], "{allowed}");
        }
    }

    #[test]
    fn the_core_names_neither_the_os_nor_a_clock() {
        let source = "use std::fs;\nfn f() { let t = Instant::now(); }\n// std::net\nuse std::{fmt, thread, io::{net}};\n\
                      #[cfg(test)]\nmod tests { use std::thread; }\nuse std::net::UdpSocket;\n";
        assert_eq!(lines("core/book/src/lib.rs", source), [1, 2, 4, 7]);
        assert_eq!(lines("protocols/nasdaq/src/lib.rs", source), [1, 2, 4, 7]);
        for outside in
            ["core/book/tests/a.rs", "core/book/benches/a.rs", "io/net/src/lib.rs", "apps/cli/src/main.rs"]
        {
            assert_eq!(lines(outside, source), [0; 0], "{outside}");
        }
    }

    #[test]
    fn one_file_may_name_a_clock_and_nothing_else() {
        let source = "fn f() { Instant::now() }\nfn g() { SystemTime::now() }";
        assert_eq!(lines("core/lockfree/src/cpu.rs", source), [2]);
        assert_eq!(lines("core/lockfree/src/spsc.rs", source), [1, 2]);
    }

    #[test]
    fn groups_are_read_by_their_first_names() {
        assert_eq!(
            grouped("fmt, net::UdpSocket, io::{fs, Read}, thread as t}; x"),
            ["fmt", "net", "io", "thread"]
        );
        assert_eq!(grouped("open, end"), ["open"]);
    }
}
