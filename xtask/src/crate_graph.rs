//! docs/crates.md: a graph and a table of the crates of the product, made from their manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::print_stdout::print_stdout;
use crate::tidy::layers::{Crate, crates};
use crate::tidy::{Problem, Tree};

const PAGE: &str = "docs/crates.md";
const FOLDERS: [&str; 4] = ["apps", "io", "core", "protocols"];
const HEAD: &str = "# Crates

The crates of the product with the other crates of the project that each uses. The page is made from their manifests:

    cargo xtask crates

An arrow leads from a crate to one that it uses. An arrow is left out where a longer way leads to the same crate.
";

/// Writes the page.
pub fn run(root: &Path) -> Result<bool> {
    let page = page(root)?;
    fs::write(root.join(PAGE), page).with_context(|| format!("cannot write {PAGE}"))?;
    print_stdout(format_args!("{PAGE}: written"));
    Ok(true)
}

/// Reports the page if it differs from the manifests. Reports nothing in a tree without the page.
pub fn check(tree: &Tree) -> Result<Vec<Problem>> {
    if !tree.files().iter().any(|path| path == PAGE) {
        return Ok(Vec::new());
    }
    let is_current = tree.read_text(PAGE)?.is_some_and(|text| page(tree.root()).is_ok_and(|new| new == text));
    let problem = || Problem::in_file(PAGE, "it differs from the manifests: run cargo xtask crates");
    Ok((!is_current).then(problem).into_iter().collect())
}

fn page(root: &Path) -> Result<String> {
    let mut crates = crates(root)?;
    let folder = |path: &str| FOLDERS.iter().position(|folder| path.split('/').next() == Some(folder));
    crates.retain(|path, _| folder(path).is_some());
    let uses: BTreeMap<&str, BTreeSet<&str>> = crates
        .iter()
        .map(|(path, it)| (path.as_str(), it.uses.iter().map(String::as_str).collect()))
        .collect();
    let mut page = format!("{HEAD}\n```mermaid\nflowchart LR\n");
    for folder in FOLDERS {
        writeln!(page, "  subgraph {folder}")?;
        for path in crates.keys().filter(|path| path.split('/').next() == Some(folder)) {
            writeln!(page, "    {}[{}]", node(path), path.split('/').nth(1).unwrap_or(path))?;
        }
        writeln!(page, "  end")?;
    }
    for (from, to) in reduced(&uses) {
        writeln!(page, "  {} --> {}", node(from), node(to))?;
    }
    writeln!(page, "```\n\n| crate | purpose | uses |\n|---|---|---|")?;
    for (path, Crate { description, uses }) in &crates {
        let uses: Vec<String> = uses.iter().map(|used| format!("`{used}`")).collect();
        writeln!(page, "| `{path}` | {description} | {} |", uses.join(" "))?;
    }
    Ok(page)
}

fn node(path: &str) -> String {
    path.replace(['/', '-'], "_")
}

/// Returns the direct dependencies, without those that are also indirect.
fn reduced<'a>(uses: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<(&'a str, &'a str)> {
    let mut edges = Vec::new();
    for (from, direct) in uses {
        let indirect: BTreeSet<&str> = direct.iter().flat_map(|used| reachable(uses, used)).collect();
        edges.extend(direct.difference(&indirect).map(|to| (*from, *to)));
    }
    edges
}

/// The crates that a crate uses, directly or not, without itself.
fn reachable<'a>(uses: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &'a str) -> BTreeSet<&'a str> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(path) = open.pop() {
        open.extend(uses.get(path).into_iter().flatten().copied().filter(|to| found.insert(*to)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrow_that_follows_from_others_is_left_out() {
        let uses = BTreeMap::from([
            ("a", BTreeSet::from(["b", "c", "d"])),
            ("b", BTreeSet::from(["c"])),
            ("c", BTreeSet::from(["d"])),
            ("d", BTreeSet::new()),
        ]);
        assert_eq!(reduced(&uses), [("a", "b"), ("b", "c"), ("c", "d")]);
    }
}
