//! Checks that the files of a crate do not import each other in a cycle, so that each file can be read after
//! the files that it uses.
//!
//! A file depends on the file that defines a name in its `use`, even if the name is re-exported in between.
//! `mod` and `pub use` make no dependency, nor does anything under `#[cfg(test)]`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::Problem;
use super::source::{code_only, without_tests};
use super::tree::Tree;

/// Crates that still have such cycles. Remove a crate from this list once it has none.
const NOT_YET: &[&str] =
    &["apps/deribit-front", "apps/shell", "core/gateway", "io/gateway", "protocols/deribit", "protocols/fix"];
/// Maximum number of re-exports that are followed for one name.
const STEPS_MAX: usize = 16;

/// A module's path in its crate; the root's is empty.
type ModulePath = Vec<String>;

/// The modules of a crate by path. Each has its own file.
type Modules = BTreeMap<ModulePath, Module>;

struct Module {
    file: String,
    items: BTreeSet<String>,
    imports: Vec<Import>,
}

/// One name from a `use`.
#[derive(Debug, PartialEq, Eq)]
struct Import {
    is_public: bool,
    path: Vec<String>,
    /// The name in this file: the one after `as`, if renamed.
    name: String,
}

/// Checks every crate below the root.
pub fn check(tree: &Tree) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    for (folder, modules) in crates(tree)? {
        let cycles = cycles(&modules);
        let is_exempt = NOT_YET.contains(&folder.as_str());
        if is_exempt && cycles.is_empty() {
            let text = format!("{folder} has no import cycle: remove it from NOT_YET");
            problems.push(Problem::in_file("xtask/src/tidy/cycles.rs", text));
        }
        for files in cycles.iter().filter(|_| !is_exempt) {
            let names: Vec<&str> = files
                .iter()
                .map(|file| file.rsplit_once("/src/").map_or(&**file, |(_, name)| name))
                .collect();
            let text = format!(
                "{} form an import cycle: move their shared items into a file that imports none of them",
                names.join(", ")
            );
            problems.push(Problem::in_file(&files[0], text));
        }
    }
    Ok(problems)
}

fn crates(tree: &Tree) -> Result<BTreeMap<String, Modules>> {
    let mut crates: BTreeMap<String, Modules> = BTreeMap::new();
    for path in tree.files().iter().filter(|path| path.ends_with(".rs")) {
        let Some((folder, inside)) = path.split_once("/src/") else { continue };
        let Some(place) = place_of(inside) else { continue };
        let code = without_tests(&code_only(&tree.read_text(path)?.unwrap_or_default()));
        let module = Module { file: path.clone(), items: items(&code), imports: imports(&code) };
        crates.entry(folder.to_owned()).or_default().insert(place, module);
    }
    Ok(crates)
}

/// Returns the module of a file; `None` for a program beside the library, and for tests.
fn place_of(inside: &str) -> Option<ModulePath> {
    let mut place: ModulePath = inside.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    if place.iter().any(|name| name == "tests" || name == "bin") {
        return None;
    }
    if matches!(place.last()?.as_str(), "lib" | "main" | "mod") {
        // Skipped: a program's root file imports the library's modules by the crate's name.
        if inside == "main.rs" {
            return None;
        }
        place.pop();
    }
    Some(place)
}

/// Returns the names that a file defines.
fn items(code: &str) -> BTreeSet<String> {
    const KINDS: [&str; 9] =
        ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules!"];
    let mut items = BTreeSet::new();
    // rustfmt puts the items of a module at the start of a line.
    for line in code.lines().filter(|line| !line.starts_with([' ', '}', '#'])) {
        let mut words = line
            .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '!'))
            .filter(|word| !word.is_empty());
        if let Some(kind) = words.find(|word| KINDS.contains(word)) {
            // Skip the words between keyword and name, as in `const fn name` and `static mut NAME`.
            let names = words
                .skip_while(|word| kind == "const" && matches!(*word, "fn" | "unsafe") || *word == "mut");
            items.extend(names.take(1).map(str::to_owned));
        }
    }
    items
}

/// Returns the imports of a file.
fn imports(code: &str) -> Vec<Import> {
    let mut imports = Vec::new();
    let mut rest = code;
    while let Some(start) = rest.find("use ") {
        let before = rest[..start].rsplit('\n').next().unwrap_or_default().trim();
        let after = &rest[start + 4..];
        let is_public = before.starts_with("pub");
        if before.is_empty() || is_public && !before.contains(['=', '{', ';']) {
            let statement = after.split(';').next().unwrap_or_default();
            add_imports(statement, &mut Vec::new(), is_public, &mut imports);
        }
        rest = after;
    }
    imports
}

/// Adds the names of one branch of a `use`; `prefix` is the path before it.
fn add_imports(branch: &str, prefix: &mut Vec<String>, is_public: bool, imports: &mut Vec<Import>) {
    let branch = branch.trim();
    if let Some(inner) = branch.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        for part in split_branches(inner) {
            add_imports(part, prefix, is_public, imports);
        }
    } else if let Some((first, rest)) = branch.split_once("::") {
        prefix.push(first.trim().to_owned());
        add_imports(rest, prefix, is_public, imports);
        prefix.pop();
    } else if !branch.is_empty() {
        let (name, alias) = branch.split_once(" as ").unwrap_or((branch, ""));
        let mut path = prefix.clone();
        if name != "self" {
            path.push(name.trim().to_owned());
        }
        let last = path.last().cloned().unwrap_or_default();
        let name = if alias.is_empty() { last } else { alias.trim().to_owned() };
        imports.push(Import { is_public, path, name });
    }
}

/// Splits at the commas outside of braces.
fn split_branches(inner: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    inner.split(move |c| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

/// Returns the file that defines `path`, as seen from the module `place`; `None` for another crate's.
fn defining_file<'a>(
    modules: &'a Modules,
    place: &[String],
    path: &[String],
    steps: usize,
) -> Option<&'a str> {
    let module = modules.get(place)?;
    let Some((first, rest)) = path.split_first() else { return Some(&module.file) };
    let steps = steps.checked_sub(1)?;
    let child = || place.iter().chain([first]).cloned().collect::<ModulePath>();
    match first.as_str() {
        "crate" => return defining_file(modules, &[], rest, steps),
        "self" => return defining_file(modules, place, rest, steps),
        "super" => return defining_file(modules, place.split_last()?.1, rest, steps),
        "*" => return Some(&module.file),
        name if module.items.contains(name) => return Some(&module.file),
        _ if modules.contains_key(&child()) => return defining_file(modules, &child(), rest, steps),
        _ => {}
    }
    let follow = |import: &Import| {
        let path: Vec<String> = import.path.iter().chain(rest).cloned().collect();
        is_local(modules, place, &import.path).then(|| defining_file(modules, place, &path, steps))?
    };
    let named = module.imports.iter().filter(|import| import.name == *first).find_map(follow);
    named.or_else(|| {
        let globs = module.imports.iter().filter(|import| import.is_public && import.name == "*");
        let mut inside = globs.map(|import| [&import.path[..import.path.len() - 1], path].concat());
        inside.find_map(|path| defining_file(modules, place, &path, steps))
    })
}

/// Whether a path refers to this crate.
fn is_local(modules: &Modules, place: &[String], path: &[String]) -> bool {
    path.first().is_some_and(|first| {
        matches!(first.as_str(), "crate" | "self" | "super")
            || modules.contains_key(&place.iter().chain([first]).cloned().collect::<ModulePath>())
    })
}

/// Returns sets of files that depend on each other, directly or indirectly.
fn cycles(modules: &Modules) -> Vec<Vec<String>> {
    let mut uses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (place, module) in modules {
        let local = module
            .imports
            .iter()
            .filter(|import| !import.is_public && is_local(modules, place, &import.path));
        let files = local.filter_map(|import| defining_file(modules, place, &import.path, STEPS_MAX));
        uses.insert(&module.file, files.filter(|file| *file != module.file).collect());
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        uses.keys().map(|file| (*file, reachable(&uses, file))).collect();
    let mut cycles = BTreeSet::new();
    for (file, others) in &reached {
        let cycle: Vec<String> = others
            .iter()
            .filter(|other| reached[*other].contains(file))
            .map(|file| (*file).to_owned())
            .collect();
        if others.contains(file) {
            cycles.insert(cycle);
        }
    }
    cycles.into_iter().collect()
}

/// Returns the files on which `file` depends, directly or indirectly.
fn reachable<'a>(uses: &BTreeMap<&'a str, BTreeSet<&'a str>>, file: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&str> = vec![file];
    while let Some(file) = next.pop() {
        for used in uses.get(file).into_iter().flatten() {
            if found.insert(*used) {
                next.push(used);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::TempTree;

    fn cycles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let crates = crates(&TempTree::new(files).tree()).unwrap();
        crates.values().flat_map(cycles).collect()
    }

    #[test]
    fn a_cycle_through_re_exports_is_found_once() {
        let files = [
            ("core/a/src/lib.rs", "mod one;\nmod two;\nmod three;\npub use one::{One as Other};\n"),
            ("core/a/src/one.rs", "use super::two::{self, Two};\npub struct One;\n"),
            ("core/a/src/two.rs", "use crate::{\n    Other,\n};\npub(crate) struct Two;\n"),
            ("core/a/src/three.rs", "use crate::one::One;\nuse std::fmt;\n"),
        ];
        assert_eq!(cycles_of(&files), [["core/a/src/one.rs", "core/a/src/two.rs"]]);
    }

    #[test]
    fn a_parent_and_child_that_import_each_other_are_a_cycle() {
        let parent = "mod child;\nuse child::Child;\npub const LEN: usize = 1;\n";
        let child = "use super::LEN;\npub struct Child;\n";
        let cycle = cycles_of(&[("io/a/src/parent.rs", parent), ("io/a/src/parent/child.rs", child)]);
        assert_eq!(cycle, [["io/a/src/parent.rs", "io/a/src/parent/child.rs"]]);
    }

    #[test]
    fn tests_re_exports_and_declarations_make_no_cycle() {
        let parent = "mod child;\npub use child::Child;\npub const fn len() -> usize {\n    1\n}\n";
        let child = "use super::len;\npub struct Child;\n";
        let tested = "#[cfg(test)]\nmod tests {\n    use crate::parent::Child;\n}\npub const X: u8 = 1;\n";
        let files = [
            ("io/a/src/parent.rs", parent),
            ("io/a/src/parent/child.rs", child),
            ("io/a/src/tested.rs", tested),
        ];
        assert_eq!(cycles_of(&files), Vec::<Vec<String>>::new());
    }
}
