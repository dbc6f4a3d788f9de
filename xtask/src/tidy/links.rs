//! Checks the links of documents: their files and headings exist, and each page of docs is reachable from the
//! index.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::{Problem, Tree};

/// The page that leads to all others.
const INDEX: &str = "docs/README.md";

/// Checks the links of all documents.
pub fn check(tree: &Tree) -> Result<Vec<Problem>> {
    let mut pages = BTreeMap::new();
    for path in tree.files().iter().filter(|path| path.ends_with(".md")) {
        pages.extend(tree.read_text(path)?.map(|text| (path.as_str(), text)));
    }
    let files: BTreeSet<&str> = tree.files().iter().map(String::as_str).collect();
    let mut problems = Vec::new();
    let mut linked: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (path, text) in &pages {
        for (line, link) in links(text) {
            let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if target.is_empty() { (*path).to_owned() } else { resolved(path, target) };
            let is_folder = || {
                files.iter().any(|file| file.strip_prefix(&target).is_some_and(|rest| rest.starts_with('/')))
            };
            if !files.contains(target.as_str()) && !is_folder() {
                problems.push(Problem::at(
                    path,
                    line,
                    format!("'{link}' is a broken link: there is no {target}"),
                ));
            } else if let Some(page) = pages.get(target.as_str())
                && !anchor.is_empty()
                && !anchors(page).contains(anchor)
            {
                problems.push(Problem::at(
                    path,
                    line,
                    format!("'{link}': {target} has no heading of that name"),
                ));
            }
            linked.entry(path).or_default().push(target);
        }
    }
    if pages.contains_key(INDEX) {
        problems.extend(unreachable(&pages, &linked));
    }
    Ok(problems)
}

fn unreachable(pages: &BTreeMap<&str, String>, linked: &BTreeMap<&str, Vec<String>>) -> Vec<Problem> {
    let mut reached = BTreeSet::from([INDEX.to_owned()]);
    let mut open = vec![INDEX.to_owned()];
    while let Some(page) = open.pop() {
        for target in linked.get(page.as_str()).into_iter().flatten() {
            if reached.insert(target.clone()) {
                open.push(target.clone());
            }
        }
    }
    let missing = pages.keys().filter(|path| path.starts_with("docs/") && !reached.contains(**path));
    let text = "no link leads here from docs/README.md: add one";
    missing.map(|path| Problem::in_file(path, text)).collect()
}

/// Returns the links of a page to other files, outside code, with their line numbers from 1.
fn links(text: &str) -> Vec<(usize, &str)> {
    let (mut links, mut is_code) = (Vec::new(), false);
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code || line.starts_with("    ") {
            continue;
        }
        // Every second piece between backticks is code.
        for prose in line.split('`').step_by(2) {
            for (start, _) in prose.match_indices("](") {
                let target = prose[start + 2..].split(')').next().unwrap_or_default();
                if !target.contains("://") && !target.starts_with("mailto:") {
                    links.push((index + 1, target));
                }
            }
        }
    }
    links
}

/// Converts the link `target` in `page` to a path relative to the root of the tree.
fn resolved(page: &str, target: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns the anchors of a page's headings: lower case, spaces as hyphens, without punctuation.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let name = |line: &str| {
        let kept = line.trim_start_matches('#').trim().chars();
        let kept = kept.filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
    };
    headings.map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::super::TempTree;
    use super::*;

    #[test]
    fn links_lead_to_files_and_headings() {
        let index = "# Index\n[a](a.md#the-first-one) [b](../README.md) [c](sub/c.md) `[x](y)` [w](https://x.y)\n\
                     [gone](gone.md) [none](a.md#none) [own](#index) [folder](sub)\n";
        let tree = TempTree::new(&[
            (INDEX, index),
            ("README.md", "# Name\n"),
            ("docs/a.md", "## The first one!\n```\n[x](y)\n```\n"),
            ("docs/sub/c.md", "[up](../README.md)\n"),
            ("docs/lost.md", "# Lost\n"),
        ]);
        let problems = check(&tree.tree()).unwrap();
        let found: Vec<_> = problems.iter().map(|problem| (problem.path.as_str(), problem.line)).collect();
        assert_eq!(found, [(INDEX, Some(3)), (INDEX, Some(3)), ("docs/lost.md", None)]);
    }

    #[test]
    fn a_tree_without_an_index_has_no_lost_pages() {
        assert_eq!(check(&TempTree::new(&[("docs/a.md", "# A\n")]).tree()).unwrap(), []);
    }
}
