//! Checks beyond the compiler's: layers, sizes, leftovers.

mod cycles;
pub mod layers;
mod links;
mod lockfile;
mod purity;
mod source;
mod text;
mod tree;
mod words;

use std::fmt;
use std::path::Path;

use anyhow::Result;

use crate::print_stdout::print_stdout;
use crate::{crate_graph, figures, layouts};
pub use tree::Tree;
#[cfg(test)]
pub use tree::temp::TempTree;

/// One problem to fix.
#[derive(Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path of the file, relative to the root of the tree.
    pub path: String,
    /// Line number from 1; `None` if the problem concerns the whole file.
    pub line: Option<usize>,
    /// Description of the problem and its remedy.
    pub text: String,
}

impl Problem {
    pub fn in_file(path: &str, text: impl Into<String>) -> Problem {
        Problem { path: path.to_owned(), line: None, text: text.into() }
    }

    pub fn at(path: &str, line: usize, text: impl Into<String>) -> Problem {
        Problem { path: path.to_owned(), line: Some(line), text: text.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.text),
            None => write!(f, "{}: {}", self.path, self.text),
        }
    }
}

/// Runs every check on the tree at `root` and prints the problems; returns whether there are none.
pub fn run(root: &Path) -> Result<bool> {
    let tree = Tree::open(root)?;
    let problems = check(&tree)?;
    for problem in &problems {
        print_stdout(problem);
    }
    match problems.len() {
        0 => print_stdout(format_args!("tidy: {} files, no problems", tree.files().len())),
        1 => print_stdout("tidy: 1 problem to fix"),
        count => print_stdout(format_args!("tidy: {count} problems to fix")),
    }
    Ok(problems.is_empty())
}

fn check(tree: &Tree) -> Result<Vec<Problem>> {
    let mut problems = lockfile::check(tree)?;
    problems.extend(layers::check(tree)?);
    problems.extend(cycles::check(tree)?);
    problems.extend(links::check(tree)?);
    problems.extend(figures::check(tree)?);
    problems.extend(layouts::check(tree)?);
    problems.extend(crate_graph::check(tree)?);
    for path in tree.files() {
        problems.extend(text::check_size(path, tree.len(path)?));
        let Some(text) = tree.read_text(path)? else { continue };
        problems.extend(text::check(path, &text));
        problems.extend(words::check(path, &text));
        if path.ends_with(".rs") {
            problems.extend(purity::check(path, &text));
        }
    }
    Ok(problems)
}
