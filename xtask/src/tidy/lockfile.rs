//! Checks that the lock file is committed, and that every package in it comes from the default registry.

use anyhow::Result;

use super::Problem;
use super::tree::Tree;

const LOCK_FILE: &str = "Cargo.lock";
/// The name of the default registry in a lock file, independent of the mirror used.
const DEFAULT_REGISTRY: &str = concat!("registry+https://github.com/rust-lang/crates", ".io-index");

/// Checks every lock file of the tree.
pub fn check(tree: &Tree) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    if !tree.is_committed(LOCK_FILE) {
        problems.push(Problem::in_file(LOCK_FILE, "not committed: commit it, so that versions are fixed"));
    }
    for path in tree.files().iter().filter(|path| path.ends_with(LOCK_FILE)) {
        problems.extend(other_registries(path, &tree.read_text(path)?.unwrap_or_default()));
    }
    Ok(problems)
}

fn other_registries(path: &str, text: &str) -> Vec<Problem> {
    let sources = text.lines().enumerate().filter_map(|(index, line)| {
        let source = line.strip_prefix("source = \"")?.strip_suffix('"')?;
        (source != DEFAULT_REGISTRY).then_some((index + 1, source))
    });
    sources
        .map(|(line, source)| {
            Problem::at(path, line, format!("{source} is not the default registry: use a release from there"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::temp::TempTree;

    #[test]
    fn a_missing_lock_file_and_another_registry_are_found() {
        let temp = TempTree::new(&[("a.rs", "")]);
        assert_eq!(check(&temp.tree()).unwrap().len(), 1);
        temp.write("Cargo.lock", &format!("name = \"a\"\nsource = \"{DEFAULT_REGISTRY}\"\n"));
        assert_eq!(check(&temp.tree()).unwrap(), []);
        temp.write("fuzz/Cargo.lock", "name = \"a\"\nsource = \"git+https://example.org/a\"\n");
        let problems = check(&temp.tree()).unwrap();
        assert_eq!(
            (problems.len(), problems[0].path.as_str(), problems[0].line),
            (1, "fuzz/Cargo.lock", Some(2))
        );
    }
}
